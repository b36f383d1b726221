//! Rate limiters: how long a failed key must wait before its retry.
//!
//! Guarantees: limiters are pure; they take `now` as an argument, never wait and never read a clock. Results are those of
//! client-go's `util/workqueue/default_rate_limiters.go`: [`ItemExponentialFailure`] counts each key's own failures,
//! [`Bucket`] all keys together, and [`MaxOf`] takes the longest delay of several.
//!
//! The controller uses [`ItemExponentialFailure`] alone. client-go's default adds a bucket of ten a second with a burst of a
//! hundred. After an outage of the API server in which 2,000 keys failed, the last one would get its token after more than
//! three minutes. The per-key backoff retries all of them within seconds.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Upstream's `TypedRateLimiter`.
pub trait RateLimiter<K>: Send {
    /// Counts one more failure of `key` at `now` and returns how long it must wait.
    fn when(&mut self, key: &K, now: Instant) -> Duration;
    /// Forgets the failures of `key`, because it succeeded or was dropped.
    fn forget(&mut self, key: &K);
    /// How often `key` has failed since it was last forgotten.
    fn num_requeues(&self, key: &K) -> u32;
}

impl<K> fmt::Debug for dyn RateLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateLimiter")
    }
}

/// client-go's default for controllers (`DefaultTypedControllerRateLimiter`): the longer of 5 ms·2ⁿ up to 1000 s for each
/// key, and ten a second with a burst of a hundred for all keys.
pub fn default_controller_rate_limiter<K>() -> MaxOf<K>
where
    K: Clone + Eq + Hash + Send + 'static,
{
    MaxOf::new(vec![Box::new(ItemExponentialFailure::default()), Box::new(Bucket::new(10.0, 100))])
}

/// Backoff of each key: the base delay doubled with every failure, up to the maximum delay
/// (`TypedItemExponentialFailureRateLimiter`).
///
/// A key that is never forgotten stays in memory: call [`RateLimiter::forget`] when it succeeds or is gone.
#[derive(Debug)]
pub struct ItemExponentialFailure<K> {
    failures: HashMap<K, u32>,
    base_delay: Duration,
    max_delay: Duration,
}

impl<K> ItemExponentialFailure<K> {
    /// The first failure waits `base_delay`, and no failure waits longer than `max_delay`.
    pub fn new(base_delay: Duration, max_delay: Duration) -> Self {
        Self { failures: HashMap::new(), base_delay, max_delay }
    }
}

impl<K> Default for ItemExponentialFailure<K> {
    /// 5 ms up to 1000 s, as in `DefaultTypedControllerRateLimiter`.
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for ItemExponentialFailure<K> {
    fn when(&mut self, key: &K, _now: Instant) -> Duration {
        let Some(failures) = self.failures.get_mut(key) else {
            self.failures.insert(key.clone(), 1);
            return self.base_delay.min(self.max_delay);
        };
        let mut delay = self.base_delay;
        // No delay but zero survives this many doublings, so the loop is short for any number of failures.
        for _ in 0..(*failures).min(u128::BITS) {
            if delay >= self.max_delay {
                break;
            }
            delay = delay.saturating_mul(2);
        }
        *failures = failures.saturating_add(1);
        delay.min(self.max_delay)
    }

    fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}

/// A token bucket for all keys together (`TypedBucketRateLimiter` on golang.org/x/time/rate). Each caller takes a token, if
/// need be a future one, and gets the wait until it is available. So a thousand concurrent callers get a thousand different
/// delays, which a limiter that only answers "not yet" cannot do.
#[derive(Debug)]
pub struct Bucket {
    per_second: f64,
    burst: f64,
    /// Below zero: that many future tokens are taken.
    tokens: f64,
    /// When `tokens` was last updated.
    last: Option<Instant>,
}

/// Go's `rate` returns this where there will never be a token (`rate.InfDuration`, about 292 years).
pub const NEVER: Duration = Duration::from_nanos(i64::MAX as u64);

impl Bucket {
    /// A full bucket of `burst` tokens, refilled with `per_second` tokens a second. With a rate of zero or less it is never
    /// refilled; with a burst of zero it never gives a token.
    pub fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst: f64::from(burst), tokens: f64::from(burst), last: None }
    }

    /// Takes one token and returns the wait until it is available.
    pub fn reserve(&mut self, now: Instant) -> Duration {
        if self.burst < 1.0 {
            return NEVER;
        }
        let elapsed = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        let gained = elapsed.as_secs_f64() * self.per_second.max(0.0);
        self.tokens = (self.tokens + gained).min(self.burst) - 1.0;
        self.last = Some(now);
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        if self.per_second <= 0.0 {
            return NEVER;
        }
        Duration::try_from_secs_f64(-self.tokens / self.per_second).map_or(NEVER, |wait| wait.min(NEVER))
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn when(&mut self, _key: &K, now: Instant) -> Duration {
        self.reserve(now)
    }

    fn forget(&mut self, _key: &K) {}

    fn num_requeues(&self, _key: &K) -> u32 {
        0
    }
}

/// Asks several limiters, all of which count the failure, and takes the longest delay (`TypedMaxOfRateLimiter`).
#[derive(Debug)]
pub struct MaxOf<K> {
    limiters: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOf<K> {
    /// The longest delay of `limiters`; without any, no delay.
    pub fn new(limiters: Vec<Box<dyn RateLimiter<K>>>) -> Self {
        Self { limiters }
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        self.limiters.iter_mut().map(|limiter| limiter.when(key, now)).max().unwrap_or(Duration::ZERO)
    }

    fn forget(&mut self, key: &K) {
        for limiter in &mut self.limiters {
            limiter.forget(key);
        }
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.limiters.iter().map(|limiter| limiter.num_requeues(key)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
