//! How long each step of a shutdown may take.
//!
//! Guarantees: the steps that follow one another end within the Pod's grace period, which `manifests/` sets. The
//! controllers' last status writes end within the time of the work in flight.

use std::time::Duration;

use crate::client::USUAL_REQUEST;

/// How long a controller goes on writing pending statuses. A sync in flight may take longer.
pub const LAST_SETTLING: Duration = Duration::from_secs(10);

/// The pause before each attempt to write a pending status.
pub const LAST_PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// How long a shutdown waits for the work in flight: as long as statuses are written, and for one more request.
pub const GRACE: Duration = LAST_SETTLING.saturating_add(USUAL_REQUEST);

/// How long the last events may take to be written.
pub const LAST_EVENTS: Duration = Duration::from_secs(3);

/// How long the release of a lease may take.
pub const LAST_RELEASE: Duration = Duration::from_secs(5);

/// How long open connections to the listeners may take to end.
pub const LAST_CONNECTIONS: Duration = Duration::from_secs(3);

/// How long the last batch of traces may take to be sent.
pub const LAST_TRACES: Duration = Duration::from_secs(2);

/// How long a shutdown may take: the steps follow one another, in this order.
pub const LONGEST_SHUTDOWN: Duration = sum(&[GRACE, LAST_EVENTS, LAST_RELEASE, LAST_CONNECTIONS, LAST_TRACES]);

/// The Pod's `terminationGracePeriodSeconds`. It includes the time until the process sees the signal, and its exit.
pub const POD_GRACE: Duration = Duration::from_secs(45);

const _: () = assert!(sum(&LAST_PAUSES).as_millis() < LAST_SETTLING.as_millis());
const _: () = assert!(LONGEST_SHUTDOWN.as_millis() < POD_GRACE.as_millis());

const fn sum(steps: &[Duration]) -> Duration {
    match steps {
        [] => Duration::ZERO,
        [first, rest @ ..] => first.saturating_add(sum(rest)),
    }
}

#[cfg(test)]
mod tests;
