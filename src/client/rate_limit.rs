//! The client-side limit of `--kube-api-qps` and `--kube-api-burst`.
//!
//! Guarantees: in any stretch of time, however short, no more than `burst + qps * time` requests leave; callers are
//! served in the order in which they came; one that goes away while it waits takes nothing with it. Watches pass
//! freely, as in client-go (`rest/request.go`, `Watch`), else a relist in a burst would blind the caches.

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

/// A wait above this is worth a line in the log. Matches client-go's `extraLongThrottleLatency`.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// governor counts nanoseconds in 64 bits and adds without looking; a quarter of that range leaves it room.
const GOVERNOR_RANGE: u64 = u64::MAX / 4;

/// tokio's time for governor, whose own clocks do not stop with `tokio::time::pause`.
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

/// governor's bucket with a line in front of it.
///
/// governor has no reservations: each of many callers that `check` refuses is told the same time to come back. So only
/// the head of the line asks, and the mutex, which tokio hands on first come, first served, is the line.
pub(super) struct TokenBucket {
    bucket: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
    clock: TokioClock,
    line: tokio::sync::Mutex<()>,
}

impl TokenBucket {
    /// A full bucket. Rates beyond what governor can count (a request in nine years, or above 10⁹ a second) become
    /// the nearest that it can.
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

    /// Returns when the caller may send one request; gives the time that it waited.
    ///
    /// Timers tick in milliseconds, so at rates above 1000 a second a `burst` of `qps / 1000` is needed to reach the
    /// rate.
    pub(super) async fn acquire(&self) -> Duration {
        let came = Instant::now();
        let _head_of_the_line = self.line.lock().await;
        while let Err(refusal) = self.bucket.check() {
            tokio::time::sleep(refusal.wait_time_from(self.clock.now())).await;
        }
        came.elapsed()
    }
}

/// Holds requests to `host` back.
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

    /// Always ready: the wait is the request's own, so that a watch does not stand in line behind others.
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
