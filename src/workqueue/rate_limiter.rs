//! How long a failed key must wait before its retry.
//!
//! Guarantees: pure; it never waits and never reads a clock. Results are those of `TypedItemExponentialFailureRateLimiter` in
//! client-go's `util/workqueue/default_rate_limiters.go`, where all failures of a key have one maximum delay. Failures with
//! different maximum delays are counted apart, so many that wait for seconds never make the first of another kind wait for
//! minutes. If the kinds alternate, the key still waits ever longer, because no failure resets a count. A failure with a maximum delay
//! of its own is not the key's fault, and someone may be mending its cause: from `PATIENCE` on, each of its delays is only an eighth
//! longer than the one before.
//!
//! client-go's default limiter also has a token bucket of ten a second with a burst of a hundred for all keys together. After
//! an outage of the API server in which 2,000 keys failed, the last one would get its token after more than three minutes. The
//! per-key backoff retries all of them within seconds.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// The delay from which one with a maximum of its own grows slowly.
const PATIENCE: Duration = Duration::from_secs(2);

/// Backoff of each key: the base delay doubled with every failure, up to the maximum delay. With a maximum of its own it grows as
/// above, up to that.
///
/// A key that is never forgotten stays in memory: call [`Self::forget`] when it succeeds or is gone.
#[derive(Debug)]
pub struct ItemExponentialFailure<K> {
    /// The number of failures of each key with each maximum delay.
    failures: HashMap<K, Vec<(Duration, u32)>>,
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
    /// Counts one more failure of `key`, which may wait for `at_most`, and returns how long it must wait. A key takes space
    /// for each different `at_most`, so a caller should have few.
    pub fn when(&mut self, key: &K, at_most: Duration) -> Duration {
        let max_delay = at_most.min(self.max_delay);
        let counts = self.failures.entry(key.clone()).or_default();
        let known = counts.iter().position(|(delay, _)| *delay == max_delay);
        let at = known.unwrap_or_else(|| {
            counts.push((max_delay, 0));
            counts.len() - 1
        });
        let failures = &mut counts[at].1;
        let mut delay = self.base_delay;
        // No delay but zero survives this many steps, so the loop is short for any number of failures.
        for _ in 0..(*failures).min(u128::BITS) {
            if delay >= max_delay {
                break;
            }
            let is_mended_by_others = max_delay < self.max_delay && delay >= PATIENCE;
            delay = delay.saturating_add(if is_mended_by_others { delay / 8 } else { delay });
        }
        *failures = failures.saturating_add(1);
        delay.min(max_delay)
    }

    /// Forgets the failures of `key`, because it succeeded or was dropped.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How often `key` has failed since it was last forgotten, in any way.
    pub fn num_requeues(&self, key: &K) -> u32 {
        let counts = self.failures.get(key).map_or(&[][..], Vec::as_slice);
        counts.iter().fold(0, |sum, (_, failures)| sum.saturating_add(*failures))
    }
}

#[cfg(test)]
mod tests;
