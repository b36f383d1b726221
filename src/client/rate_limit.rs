//! The client-side limit of `--kube-api-qps` and `--kube-api-burst`.
//!
//! Guarantees: in any period `time`, at most `burst + qps * time` requests leave. Callers are served in the order of
//! their arrival. A caller that is cancelled while it waits uses up no token. Watches are exempt, as in client-go
//! (`rest/request.go`, `Watch`): otherwise a relist during a burst would leave the caches stale.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use tower::layer::layer_fn;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use super::observe::RequestObserver;
use super::stays_open;
use crate::options::RateLimit;
use crate::token_bucket::{Rate, TokenBucket};

/// A wait above this is logged. Matches client-go's `extraLongThrottleLatency`.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Delays requests to `host`.
pub(super) fn layer<S>(
    limit: RateLimit,
    host: &str,
    observer: Arc<dyn RequestObserver>,
) -> impl Layer<S, Service = RateLimited<S>> + use<S> {
    let bucket = Arc::new(TokenBucket::new(Rate { per_second: limit.qps, burst: limit.burst }));
    let host: Arc<str> = host.into();
    layer_fn(move |inner| RateLimited {
        inner,
        bucket: Arc::clone(&bucket),
        host: Arc::clone(&host),
        observer: Arc::clone(&observer),
    })
}

#[derive(Clone)]
pub(super) struct RateLimited<S> {
    inner: S,
    bucket: Arc<TokenBucket>,
    host: Arc<str>,
    observer: Arc<dyn RequestObserver>,
}

impl<S, A, B> Service<Request<A>> for RateLimited<S>
where
    A: Send + 'static,
    S: Service<Request<A>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    /// Always ready: each request waits on its own, so that a watch does not queue behind others.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            if !stays_open(&request) {
                let waited = this.bucket.acquire().await;
                let verb = request.method().as_str();
                this.observer.rate_limited(verb, &this.host, waited.as_secs_f64());
                if waited > LONG_WAIT {
                    let path = request.uri().path();
                    tracing::debug!(?waited, verb, path, "Held a request back for --kube-api-qps");
                }
            }
            this.inner.oneshot(request).await
        })
    }
}
