//! Counts and times requests.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response, Uri};
use tokio::time::Instant;
use tower::layer::layer_fn;
use tower::{Layer, Service};
use tracing::Level;

use super::stays_open;

/// Observes the results of requests. Implementations must not block: they are called while the request is processed.
pub trait RequestObserver: Send + Sync + 'static {
    /// A request was answered or abandoned. `code` is the HTTP status, or `<error>` without an answer. `seconds` runs
    /// from the caller's call to the head of the answer and includes the wait for the rate limit. It is `None` for a
    /// watch, which is counted but not timed. Matches client-go's `RequestResult` and `RequestLatency`, except that the
    /// latter runs to the end of the answer's body.
    fn observe(&self, method: &str, host: &str, code: &str, seconds: Option<f64>);

    /// A request waited this long for the client's rate limit; the wait may be zero. Not called without a limit, nor
    /// for watches. Matches client-go's `RateLimiterLatency`.
    fn rate_limited(&self, verb: &str, host: &str, seconds: f64);
}

/// An observer that ignores everything.
#[derive(Debug, Default, Clone, Copy)]
pub struct Unobserved;

impl RequestObserver for Unobserved {
    fn observe(&self, _: &str, _: &str, _: &str, _: Option<f64>) {}

    fn rate_limited(&self, _: &str, _: &str, _: f64) {}
}

/// Reports each request to `host` to `observer`.
pub(super) fn layer<S>(
    host: &str,
    observer: Arc<dyn RequestObserver>,
) -> impl Layer<S, Service = Observing<S>> + use<S> {
    let host: Arc<str> = host.into();
    layer_fn(move |inner| Observing { inner, host: Arc::clone(&host), observer: Arc::clone(&observer) })
}

#[derive(Clone)]
pub(super) struct Observing<S> {
    inner: S,
    host: Arc<str>,
    observer: Arc<dyn RequestObserver>,
}

impl<S, A, B> Service<Request<A>> for Observing<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let record = Record {
            method: request.method().clone(),
            uri: tracing::enabled!(Level::TRACE).then(|| request.uri().clone()),
            timed: !stays_open(&request),
            started: Instant::now(),
            code: None,
            host: Arc::clone(&self.host),
            observer: Arc::clone(&self.observer),
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            // Captures the whole record: capturing `record.code` alone would not move the rest, and its `Drop` would
            // not run here.
            let mut record = record;
            let answer = answer.await;
            record.code = answer.as_ref().ok().map(Response::status);
            answer
        })
    }
}

/// Reports on drop, so that a request whose caller was cancelled is counted too.
struct Record {
    method: Method,
    /// For the log, if the request is logged.
    uri: Option<Uri>,
    timed: bool,
    started: Instant,
    code: Option<http::StatusCode>,
    host: Arc<str>,
    observer: Arc<dyn RequestObserver>,
}

impl Drop for Record {
    fn drop(&mut self) {
        let code = self.code.as_ref().map_or("<error>", http::StatusCode::as_str);
        let seconds = self.timed.then(|| Duration::as_secs_f64(&self.started.elapsed()));
        self.observer.observe(self.method.as_str(), &self.host, code, seconds);
        if let Some(uri) = &self.uri {
            tracing::trace!(method = self.method.as_str(), %uri, code, seconds, "Sent a request");
        }
    }
}
