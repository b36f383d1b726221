//! How long to wait after a failure: with jitter, growing, and reset after a while. Pure: the time is an argument.
//!
//! Guarantees: every failure waits, the first one for 0.8 to 1.6 seconds. The wait doubles with every further failure up to
//! 30 to 60 seconds. After two minutes without a failure it starts over.
//!
//! Matches client-go `tools/cache/reflector.go` (`defaultBackoff…`) and apimachinery's `wait.Backoff.DelayWithReset`.

use std::time::Duration;

use rand::{Rng, RngExt};
use tokio::time::Instant;

const INIT: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);
const RESET: Duration = Duration::from_secs(120);

/// The longest wait a server may ask for; with a mistaken, longer Retry-After the cache would be stale for too long.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    /// When the last wait ended.
    resumed: Option<Instant>,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: INIT, resumed: None }
    }

    /// How long to wait after a failure at `now`; at least as long as the server asked, up to five minutes.
    pub(super) fn delay(&mut self, now: Instant, retry_after: Option<Duration>, rng: &mut impl Rng) -> Duration {
        if self.resumed.is_some_and(|resumed| now.saturating_duration_since(resumed) > RESET) {
            self.next = INIT;
        }
        let jittered = self.next.mul_f64(1.0 + rng.random::<f64>());
        self.next = MAX.min(self.next * 2);
        let delay = jittered.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER));
        self.resumed = Some(now + delay);
        delay
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    /// Failures at these times; how long each must wait, in milliseconds, at least and less than.
    fn assert_delays(failures: &[(u64, Option<u64>, u64, u64)]) {
        for seed in 0..100 {
            let (mut backoff, mut rng, start) = (Backoff::new(), StdRng::seed_from_u64(seed), Instant::now());
            let mut now = start;
            for &(after, retry_after, least, less_than) in failures {
                now += Duration::from_secs(after);
                let delay = backoff.delay(now, retry_after.map(Duration::from_secs), &mut rng);
                now += delay;
                assert!(
                    (least..less_than).contains(&u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
                    "seed {seed}: {delay:?} is not in {least}..{less_than}"
                );
            }
        }
    }

    #[test]
    fn the_wait_doubles_up_to_its_limit() {
        assert_delays(&[
            (0, None, 800, 1_600),
            (0, None, 1_600, 3_200),
            (0, None, 3_200, 6_400),
            (0, None, 6_400, 12_800),
            (0, None, 12_800, 25_600),
            (0, None, 25_600, 51_200),
            (0, None, 30_000, 60_000),
            (0, None, 30_000, 60_000),
        ]);
    }

    #[test]
    fn backoff_starts_over_after_two_minutes_without_a_failure() {
        assert_delays(&[
            (0, None, 800, 1_600),
            (0, None, 1_600, 3_200),
            (119, None, 3_200, 6_400),
            (121, None, 800, 1_600),
        ]);
    }

    #[test]
    fn retry_after_makes_the_wait_longer_and_never_shorter_and_has_a_limit() {
        assert_delays(&[(0, Some(7), 7_000, 7_001), (0, Some(0), 1_600, 3_200), (0, Some(86_400), 300_000, 300_001)]);
    }
}
