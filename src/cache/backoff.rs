//! How long to wait after a failure: with jitter, growing, and reset after a while. Pure: the time is an argument.
//!
//! Guarantees: every failure waits, the first one for 0.8 to 1.6 seconds. The wait doubles with every further failure up to
//! 30 to 60 seconds. After two minutes without a failure it starts over. A server that is away is asked again after 0.4 to 0.8
//! seconds, however long it has been: a refusal costs it next to nothing, and the first answer after an outage decides when due
//! slots start.
//!
//! Matches client-go `tools/cache/reflector.go` (`defaultBackoff…`) and apimachinery's `wait.Backoff.DelayWithReset`, but for a
//! server that is away.

use std::time::Duration;

use rand::{Rng, RngExt};
use tokio::time::Instant;

const INIT: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);
const RESET: Duration = Duration::from_secs(120);
/// Half of the longest wait for a server that is away.
const AWAY: Duration = Duration::from_millis(400);

/// The longest wait a server may ask for; with a mistaken, longer Retry-After the cache would be stale for too long.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    /// When the last wait ended.
    resumed: Option<Instant>,
    /// How many failures there were since it started over.
    failures: u32,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server cannot be reached, or cannot answer anyone at present.
    Away,
    /// Anything else.
    Other,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: INIT, resumed: None, failures: 0 }
    }

    /// How long to wait after a failure at `now`; at least as long as the server asked, up to five minutes.
    pub(super) fn delay(
        &mut self,
        now: Instant,
        failure: Failure,
        retry_after: Option<Duration>,
        rng: &mut impl Rng,
    ) -> Duration {
        if self.resumed.is_some_and(|resumed| now.saturating_duration_since(resumed) > RESET) {
            (self.next, self.failures) = (INIT, 0);
        }
        self.failures += 1;
        let wait = if failure == Failure::Away { AWAY } else { self.next };
        let jittered = wait.mul_f64(1.0 + rng.random::<f64>());
        if failure == Failure::Other {
            self.next = MAX.min(self.next * 2);
        }
        let delay = jittered.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER));
        self.resumed = Some(now + delay);
        delay
    }

    /// Whether a log tells of the last failure: of less and less of them, since a server may be away for hours.
    pub(super) fn is_told(&self) -> bool {
        self.failures.is_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    /// When a failure comes after the last wait and what the server asks for, in seconds; how long it must wait, in milliseconds, at
    /// least and less than.
    type Row = (u64, Option<u64>, u64, u64);

    fn assert_delays(failures: &[Row]) {
        let all: Vec<_> = failures.iter().map(|failure| (Failure::Other, *failure)).collect();
        assert_mixed_delays(&all);
    }

    fn assert_mixed_delays(failures: &[(Failure, Row)]) {
        for seed in 0..100 {
            let (mut backoff, mut rng, start) = (Backoff::new(), StdRng::seed_from_u64(seed), Instant::now());
            let mut now = start;
            for &(failure, (after, retry_after, least, less_than)) in failures {
                now += Duration::from_secs(after);
                let delay = backoff.delay(now, failure, retry_after.map(Duration::from_secs), &mut rng);
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
    fn a_server_that_is_away_is_asked_again_soon_however_long_it_was() {
        use Failure::{Away, Other};
        let mut failures = vec![(Away, (0, None, 400, 800)); 50];
        failures.extend([
            (Other, (0, None, 800, 1_600)),
            (Other, (0, None, 1_600, 3_200)),
            (Away, (0, None, 400, 800)),
        ]);
        failures.extend([(Away, (0, Some(5), 5_000, 5_001)), (Other, (0, None, 3_200, 6_400))]);
        assert_mixed_delays(&failures);
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
