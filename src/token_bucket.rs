//! Token buckets, from the crate `governor`.
//!
//! Guarantees: in any period `time`, at most `burst + per_second * time` tokens are taken, by any number of threads. Callers
//! that wait are served in the order of their arrival, and one that is cancelled takes no token. governor counts; this
//! module converts rates to its intervals and gives it tokio's time, because its own clocks ignore `tokio::time::pause`.
//!
//! governor has no reservations: until there is a token, it tells every caller the same time. So only the first in the
//! line asks; tokio's mutex is the line.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// governor counts nanoseconds in 64 bits without overflow checks; a quarter of that range is safe.
const GOVERNOR_RANGE: u64 = u64::MAX / 4;

/// A rate limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Tokens per second on average; above zero.
    pub(crate) per_second: f64,
    /// Tokens at once, after a pause.
    pub(crate) burst: NonZeroU32,
}

/// A token bucket.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
    clock: TokioClock,
    line: Mutex<()>,
}

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

impl TokenBucket {
    /// A full bucket. Rates beyond governor's range (a token in nine years, or above 10⁹ a second) become the nearest value
    /// in range.
    pub(crate) fn new(rate: Rate) -> Self {
        let clock = TokioClock { started: Instant::now() };
        let longest = Duration::from_nanos(GOVERNOR_RANGE / 16);
        let interval = Duration::try_from_secs_f64(1.0 / rate.per_second).unwrap_or(longest);
        let interval = interval.clamp(Duration::from_nanos(1), longest);
        let most = GOVERNOR_RANGE / u64::try_from(interval.as_nanos()).unwrap_or(GOVERNOR_RANGE);
        let most = NonZeroU32::new(u32::try_from(most).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(interval).expect("the interval is a nanosecond at least");
        let quota = quota.allow_burst(rate.burst.min(most));
        Self { limiter: RateLimiter::direct_with_clock(quota, clock), clock, line: Mutex::new(()) }
    }

    /// Takes a token, past those that wait for one.
    ///
    /// # Errors
    /// The time until there is one.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.limiter.check().map_err(|refusal| refusal.wait_time_from(self.clock.now()))
    }

    /// Takes a token as soon as there is one; returns the time that it waited.
    ///
    /// Timers have millisecond ticks, so a rate above 1000 a second needs a `burst` of at least a thousandth of it.
    pub(crate) async fn acquire(&self) -> Duration {
        let came = Instant::now();
        let _first_in_line = self.line.lock().await;
        while let Err(wait) = self.take() {
            sleep(wait).await;
        }
        came.elapsed()
    }
}

#[cfg(test)]
mod tests;
