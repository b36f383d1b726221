//! Token buckets, from the crate `governor`.
//!
//! Guarantees: in any period `time`, at most `burst + per_second * time` tokens are taken, by any number of threads. A bucket
//! never waits: it says how long a caller would have to. governor counts; this module converts rates to its intervals and
//! gives it tokio's time, because its own clocks ignore `tokio::time::pause`.
//!
//! governor has no reservations: until there is a token, every caller is told the same time.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

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
        Self { limiter: RateLimiter::direct_with_clock(quota, clock), clock }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The time until there is one.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.limiter.check().map_err(|refusal| refusal.wait_time_from(self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn token_bucket_admits_its_burst_and_then_its_rate() {
        let bucket = TokenBucket::new(Rate { per_second: 2.0, burst: NonZeroU32::new(3).unwrap() });
        for (passes, want) in [(0.0, 3), (0.5, 1), (0.5, 1), (9.0, 3), (0.2, 0)] {
            advance(Duration::from_secs_f64(passes)).await;
            assert_eq!((0..10).filter(|_| bucket.take().is_ok()).count(), want, "after {passes} s more");
        }
        assert_eq!(bucket.take(), Err(Duration::from_millis(300)));
    }
}
