//! How long a failed key must wait before its retry.
//!
//! Guarantees: pure; it never waits and never reads a clock. Results are those of `TypedItemExponentialFailureRateLimiter` in
//! client-go's `util/workqueue/default_rate_limiters.go`.
//!
//! client-go's default limiter also has a token bucket of ten a second with a burst of a hundred for all keys together. After
//! an outage of the API server in which 2,000 keys failed, the last one would get its token after more than three minutes. The
//! per-key backoff retries all of them within seconds.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Backoff of each key: the base delay doubled with every failure, up to the maximum delay.
///
/// A key that is never forgotten stays in memory: call [`Self::forget`] when it succeeds or is gone.
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

impl<K: Clone + Eq + Hash> ItemExponentialFailure<K> {
    /// Counts one more failure of `key` and returns how long it must wait.
    pub fn when(&mut self, key: &K) -> Duration {
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

    /// Forgets the failures of `key`, because it succeeded or was dropped.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How often `key` has failed since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
