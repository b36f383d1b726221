//! What becomes of a key whose sync failed, and of how many run at a time.
//!
//! Guarantees: whatever a sync ends in, its key has a timer for its next slot; how long it is backed off depends on whose
//! trouble the failure is ([`FailureClass`]).

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use super::Controller;
use super::concurrency_limiter::{Begun, Signal};
use super::control::{CronJobControl, JobControl};
use super::plan::{Failure, Outcome};
use crate::api::{ApiError, FailureClass, ObjectName};
use crate::workqueue::UNANSWERED;

/// While the API server itself is the trouble, a key is tried again at least this often: such a failure says nothing
/// about the key, and when the server is back every key that was due is late already.
pub const UNAVAILABLE_BACKOFF: Duration = Duration::from_secs(2);

/// While its namespace is the trouble (a webhook's denial, a quota), a key is tried again at least this often: a person ends it, who then
/// looks for the Jobs, and half a minute is less than the shortest period. It is longer than for the server, since the failure
/// may last for days and each try costs a webhook's call.
pub const NAMESPACE_BACKOFF: Duration = Duration::from_secs(30);

/// The same while a webhook of the namespace cannot be called: it comes back for all keys at once, as a server does.
pub const WEBHOOK_BACKOFF: Duration = Duration::from_secs(4);

/// The longest that a key waits because the API server asks for it: a mistaken Retry-After would cost slots.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// How long settling pauses at least when the API server says that it is overloaded.
pub const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

impl<C: JobControl + CronJobControl> Controller<C> {
    pub(super) fn retry(&self, key: &ObjectName, failure: &Failure) {
        // In an outage thousands of keys fail again and again: each is heard of ever more rarely.
        let failures = self.parts.queue.num_requeues(key);
        if failures == 0 && matches!(failure, Failure::Api(error) if error.is_conflict()) {
            // Another write came first, as is usual beside a second controller.
            debug!(cronjob = %key, "the CronJob has changed meanwhile, requeuing");
        } else if failures == 0 || failures.is_power_of_two() {
            warn!(cronjob = %key, failures, error = %failure, "error syncing CronJob, requeuing");
        }
        let (mut at_least, mut at_most) = (Duration::ZERO, longest_backoff(failure));
        if failure.class() == FailureClass::Server
            && let Some(error) = failure.api_error()
        {
            at_least = error.retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
            at_most = at_most.max(at_least);
            // What a webhook refuses is its namespace's; other namespaces go on.
            if error.is_too_many_requests() && !error.is_admission() {
                self.parts.queue.pause_low_priority(at_least.max(OVERLOAD_PAUSE));
            }
        }
        self.parts.queue.add_rate_limited_within(key.clone(), at_least, at_most);
        self.keep_next_slot(key);
    }

    /// Whatever the backoff of a key has grown to, it comes back at its next slot.
    pub(super) fn keep_next_slot(&self, key: &ObjectName) {
        let next_slot = || self.parts.cron_jobs.get(key).and_then(|cron_job| self.next_slot(&cron_job));
        // What made a sync panic may be in the schedule.
        if let Ok(Some(next)) = std::panic::catch_unwind(AssertUnwindSafe(next_slot)) {
            self.parts.queue.add_at_uncounted(key.clone(), self.time_of(next));
        }
    }

    /// From now on there are so many workers.
    pub(super) fn set_workers(&self, workers: usize) {
        self.limiter.lock().set_workers(workers);
        self.parts.queue.set_limit(workers);
    }

    /// Takes the end of a sync into the limits of how many run at a time.
    pub(super) fn adjust_limits(&self, key: &ObjectName, begun: Begun, signal: Signal) {
        let mut limiter = self.limiter.lock();
        let changes = limiter.end(&key.namespace, begun, signal, Instant::now().into_std());
        if let Some(total) = changes.total {
            self.parts.queue.set_limit(total);
        }
        for (namespace, limit) in changes.namespaces {
            self.parts.queue.set_group_limit(&namespace, limit);
        }
    }
}

/// What the end of a sync that took so long says about congestion.
pub(super) fn signal(outcome: &Outcome, took: Duration) -> Signal {
    let failure = match outcome {
        Outcome::SettleLater { .. } => return Signal::Created,
        Outcome::Done | Outcome::Requeue(_) => return Signal::Succeeded,
        Outcome::AwaitTemplate => return Signal::Neutral,
        Outcome::Failed(failure) => failure,
    };
    let Some(error) = failure.api_error() else { return Signal::Neutral };
    match error.code {
        429 | 503 if !error.is_admission() => Signal::Overloaded,
        429 | 503 | 504 => Signal::Congested,
        // A connection that is refused, or a webhook, says so at once.
        0 if took >= UNANSWERED => Signal::Congested,
        _ if error.is_admission() && took >= UNANSWERED => Signal::Congested,
        _ => Signal::Neutral,
    }
}

/// The longest backoff of a failure.
fn longest_backoff(failure: &Failure) -> Duration {
    match failure.class() {
        FailureClass::Key => Duration::MAX,
        FailureClass::Namespace if failure.api_error().is_some_and(ApiError::is_webhook_failure) => WEBHOOK_BACKOFF,
        FailureClass::Namespace => NAMESPACE_BACKOFF,
        FailureClass::Server => UNAVAILABLE_BACKOFF,
    }
}
