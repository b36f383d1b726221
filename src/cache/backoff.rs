//! How long to wait after a failure: with jitter, growing, and reset after a while. Pure: the time is an argument.
//!
//! Guarantees: every failure waits, the first one for 0.8 to 1.6 seconds. The wait doubles with every further failure up to
//! 30 to 60 seconds, or 4 to 8 where it may pass at any moment: the server refuses, which it may do only until it knows a role. After
//! two minutes without a failure it starts over. A server that is away is asked again after 0.4 to 0.8 seconds, however long it has
//! been: a refused connection costs it next to nothing, and the first answer after an outage decides when due slots start. One that
//! asks for more time has ten seconds at most.
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

/// Half of the longest wait for what may pass at any moment.
const PASSING: Duration = Duration::from_secs(4);

/// The longest wait a server may ask for. A proxy before a server that restarts may name minutes, in which the slots of a stale cache
/// would be late.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(10);

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
    /// The server cannot be reached, does not answer in time, or cannot answer anyone at present.
    Away,
    /// The right is missing.
    Passing,
    /// Anything else.
    Other,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: INIT, resumed: None, failures: 0 }
    }

    /// How long to wait after a failure at `now`; at least as long as the server asked, up to ten seconds.
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
        let wait = match failure {
            Failure::Away => AWAY,
            Failure::Passing => self.next.min(PASSING),
            Failure::Other => self.next,
        };
        let jittered = wait.mul_f64(1.0 + rng.random::<f64>());
        self.next = match failure {
            Failure::Away => self.next,
            // What passes makes no other wait longer.
            Failure::Passing => self.next.max(PASSING.min(self.next * 2)),
            Failure::Other => MAX.min(self.next * 2),
        };
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
mod tests;
