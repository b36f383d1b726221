//! Requeues keys whose sync failed, and adjusts how many syncs run at a time.
//!
//! Guarantees: a key has a timer for its next slot after every sync, unless it waits for the template budget or panicked. The
//! backoff depends on the scope of the failure ([`FailureClass`]), and on how many of the same scope the key had since its last
//! success.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::{Evaluation, missed};
use tokio::time::Instant;
use tracing::{debug, error, warn};

use super::Controller;
use super::concurrency_limiter::{Begun, Signal};
use super::control::{CronJobControl, JobControl};
use super::decision_log;
use super::plan::{Failure, Outcome};
use crate::api::batch_v1::CronJob;
use crate::api::{ApiError, FailureClass, ObjectName};
use crate::workqueue::UNANSWERED;

/// The longest backoff while the API server is unavailable. Such a failure says nothing about the key, and once the
/// server is back, every due key is already late.
pub const UNAVAILABLE_BACKOFF: Duration = Duration::from_secs(2);

/// The longest backoff of a failure caused by the namespace (a webhook's denial, a quota, a missing right). A user fixes
/// it and then looks for the Jobs; half a minute is less than the shortest period. It exceeds the server's backoff,
/// because the failure may last for days and each attempt calls a webhook.
pub const NAMESPACE_BACKOFF: Duration = Duration::from_secs(30);

/// The longest backoff while a webhook of the namespace cannot be called. Like a server, it returns for all keys at
/// once.
pub const WEBHOOK_BACKOFF: Duration = Duration::from_secs(4);

/// The longest wait that a Retry-After of the API server can cause: a wrong value would cost slots.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// How long before the end of its time a slot that was refused is tried once more, whatever its backoff. More than most requests
/// take.
const LAST_CHANCE: TimeDelta = TimeDelta::seconds(2);

/// The minimum pause of settling after the API server reports overload.
pub const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

impl<C: JobControl + CronJobControl> Controller<C> {
    pub(super) fn retry(&self, key: &ObjectName, failure: &Failure) {
        // In an outage, thousands of keys fail repeatedly; each is logged less and less often.
        let (failures, class) = (self.parts.queue.num_requeues(key), failure.class());
        if failures == 0 && class == FailureClass::Key && matches!(failure, Failure::Api(error) if error.is_conflict())
        {
            // Another write came first, which is common beside a second controller.
            debug!(cronjob = %key, "the CronJob has changed meanwhile, requeuing");
        } else if failures == 0 || failures.is_power_of_two() {
            warn!(cronjob = %key, failures, error = %failure, "error syncing CronJob, requeuing");
        } else {
            debug!(failures, error = %failure, "error syncing CronJob, requeuing");
        }
        let mut at_least = Duration::ZERO;
        if class == FailureClass::Server
            && let Some(error) = failure.api_error()
        {
            at_least = error.retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
            // A webhook's refusal concerns its namespace; other namespaces continue.
            if error.is_too_many_requests() && !error.is_admission() {
                self.parts.queue.pause_low_priority(at_least.max(OVERLOAD_PAUSE));
            }
        }
        let delay = self.parts.queue.add_rate_limited_within(key.clone(), at_least, longest_backoff(failure));
        decision_log::requeued_after(delay, "failure");
        self.keep_next_slot(key);
    }

    /// Requeues a key at its next slot, however long its backoff, and before that once shortly before the slot that is due can no
    /// longer start: what refuses it may have been mended meanwhile.
    pub(super) fn keep_next_slot(&self, key: &ObjectName) {
        let Some(cron_job) = self.parts.cron_jobs.get(key).map(|cron_job| self.in_its_namespace(cron_job)) else {
            return;
        };
        let next = self.next_scheduled_time(&cron_job);
        let last_chance = self.end_of_due_slot(&cron_job, next).and_then(|end| end.checked_sub_signed(LAST_CHANCE));
        let now = self.parts.clock.now();
        let last_chance = last_chance.filter(|at| *at > now).map(|at| (at, "last chance of a slot"));
        if let Some((at, why)) = last_chance.or(next.map(|at| (at, "next slot"))) {
            decision_log::requeued_at(at, why);
            self.parts.queue.add_at_uncounted(key.clone(), at);
        }
    }

    /// When the slot that is due can no longer start: at the next one, or after its deadline.
    fn end_of_due_slot(&self, cron_job: &CronJob, next: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        let (schedule, now) = (cron_job.schedule(self.parts.local_zone)?, self.parts.clock.now());
        let observed = cron_job.observed(&cron_job.status, now);
        let (slot, _) = missed::next_schedule_time(&observed, cron_job.nominal(now), &Evaluation::of(schedule)).ok()?;
        let deadline = cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        let end = deadline.and_then(|deadline| cron_job.due(slot?).checked_add_signed(deadline));
        slot.and(end.into_iter().chain(next).min())
    }

    /// Requeues a key whose sync, or what follows it, panicked.
    pub(super) fn back_off_after_panic(&self, key: &ObjectName) {
        self.parts.metrics.sync_panics_total.inc();
        error!(cronjob = %key, "a sync panicked; the key is backed off");
        decision_log::requeued_after(self.parts.queue.add_rate_limited(key.clone()), "panic");
    }

    /// Sets the number of workers.
    pub(super) fn set_workers(&self, workers: usize) {
        self.limiter.lock().set_workers(workers);
        self.parts.queue.set_limit(workers);
        self.heartbeat.set_workers(workers);
    }

    /// Updates the concurrency limits at the end of a sync.
    pub(super) fn adjust_limits(&self, key: &ObjectName, begun: Begun, signal: Signal) {
        if signal == Signal::Overloaded {
            // It was refused before anything that its namespace slows down.
            self.parts.queue.disregard(key);
        }
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

/// What the outcome and duration of a sync say about congestion.
pub(super) fn signal(outcome: &Outcome, took: Duration) -> Signal {
    let failure = match outcome {
        Outcome::SettleLater { .. } => return Signal::Created,
        Outcome::Done | Outcome::Again | Outcome::Requeue(_) => return Signal::Succeeded,
        Outcome::AwaitTemplate => return Signal::Neutral,
        Outcome::Failed(failure) => failure,
    };
    let Some(error) = failure.api_error() else { return Signal::Neutral };
    match error.code {
        429 | 503 if !error.is_admission() => Signal::Overloaded,
        408 | 429 | 503 | 504 => Signal::Congested,
        // A refused connection, or a webhook that refuses, answers at once.
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
