//! The client-side limit of `--kube-api-qps` and `--kube-api-burst`.
//!
//! Guarantees: in any period `time`, at most `burst + qps * time` requests leave. Callers are served in the order of
//! their arrival. A caller that is cancelled while it waits uses up no token. Watches are exempt, as in client-go
//! (`rest/request.go`, `Watch`): otherwise a relist during a burst would leave the caches stale.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use http::{Request, Response};
use tokio::time::Instant;
use tower::layer::layer_fn;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use super::is_watch;
use super::observe::RequestObserver;
use crate::options::RateLimit;

/// A wait above this is logged. Matches client-go's `extraLongThrottleLatency`.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// governor counts nanoseconds in 64 bits without overflow checks; a quarter of that range is safe.
const GOVERNOR_RANGE: u64 = u64::MAX / 4;

/// tokio's time for governor, whose own clocks ignore `tokio::time::pause`.
#[derive(Debug, Clone, Copy)]
struct TokioClock {
    started: Instant,
}

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

/// governor's bucket behind a queue.
///
/// governor has no reservations: `check` gives every refused caller the same time to retry. So only the head of the
/// queue calls it. tokio's mutex is the queue: it is granted in the order of arrival.
pub(super) struct TokenBucket {
    bucket: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
    clock: TokioClock,
    line: tokio::sync::Mutex<()>,
}

impl TokenBucket {
    /// A full bucket. Rates beyond governor's range (a request in nine years, or above 10⁹ a second) become the nearest
    /// value in range.
    pub(super) fn new(limit: RateLimit) -> Self {
        let clock = TokioClock { started: Instant::now() };
        let longest = Duration::from_nanos(GOVERNOR_RANGE / 16);
        let interval = Duration::try_from_secs_f64(1.0 / limit.qps).unwrap_or(longest);
        let interval = interval.clamp(Duration::from_nanos(1), longest);
        let most = GOVERNOR_RANGE / u64::try_from(interval.as_nanos()).unwrap_or(GOVERNOR_RANGE);
        let most = NonZeroU32::new(u32::try_from(most).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
        let burst = limit.burst.min(most);
        let quota = Quota::with_period(interval).expect("the interval is a nanosecond at least").allow_burst(burst);
        Self { bucket: RateLimiter::direct_with_clock(quota, clock), clock, line: tokio::sync::Mutex::new(()) }
    }

    /// Waits until the caller may send one request; returns the time it waited.
    ///
    /// Timers have millisecond ticks, so a rate above 1000 a second needs a `burst` of at least `qps / 1000`.
    pub(super) async fn acquire(&self) -> Duration {
        let came = Instant::now();
        let _head_of_the_line = self.line.lock().await;
        while let Err(refusal) = self.bucket.check() {
            tokio::time::sleep(refusal.wait_time_from(self.clock.now())).await;
        }
        came.elapsed()
    }
}

/// Delays requests to `host`.
pub(super) fn layer<S>(
    limit: RateLimit,
    host: &str,
    observer: Arc<dyn RequestObserver>,
) -> impl Layer<S, Service = RateLimited<S>> + use<S> {
    let (bucket, host): (_, Arc<str>) = (Arc::new(TokenBucket::new(limit)), host.into());
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
            if !is_watch(&request) {
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
