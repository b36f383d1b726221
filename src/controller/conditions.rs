//! The conditions of a CronJob.
//!
//! Guarantees: three conditions, computed from the same observation as every other decision of a sync: `Available`
//! (there is a next run), `Progressing` (a run is active) and `Degraded` (the last finished run failed). Their messages
//! contain no run name and no time, so a CronJob whose state does not change needs no write.
//!
//! The names match later editions of the kubebuilder book.

use chrono::{DateTime, SubsecRound, Utc};

use super::observation::Observation;
use super::plan::Outcome;
use super::status::Draft;
use crate::api::Condition;
use crate::api::batch_v1::FinishedCondition;

/// The conditions at the end of a sync.
pub fn of(observation: &Observation, draft: &Draft<'_>, outcome: &Outcome, now: DateTime<Utc>) -> [Condition; 3] {
    let cron_job = draft.base;
    let available = if cron_job.spec.suspend {
        (false, "Suspended", "New runs are held back.")
    } else if cron_job.timing(observation.local_zone).schedule.is_err() {
        (false, "UnparseableSchedule", "The schedule cannot be read.")
    } else if cron_job.policy().is_err() {
        (false, "InvalidPolicy", "A policy annotation cannot be read.")
    } else if matches!(outcome, Outcome::Done) {
        (false, "NeverDue", "The schedule names no time that will come.")
    } else {
        (true, "Scheduled", "The next run is waited for.")
    };
    let progressing = if draft.status.active.is_empty() {
        (false, "NothingActive", "Nothing runs.")
    } else {
        (true, "Active", "Something runs.")
    };
    // One that is being deleted is hidden for a time where this process deleted it, so it counts in none.
    let remaining = observation.children().filter(|job| !job.deleting);
    let finished = remaining.filter_map(|job| Some(((job.start_time, &job.name), job.finished?)));
    let degraded = match finished.max_by_key(|(began, _)| *began) {
        Some((_, FinishedCondition::Failed)) => (true, "Failed", "What ended last has failed."),
        Some((_, FinishedCondition::Complete)) => (false, "Succeeded", "What ended last has succeeded."),
        None => (false, "NothingFailed", "Nothing is known to have failed."),
    };
    [("Available", available), ("Progressing", progressing), ("Degraded", degraded)].map(
        |(type_, (holds, reason, message))| Condition {
            type_: type_.to_owned(),
            status: if holds { "True" } else { "False" }.to_owned(),
            observed_generation: None,
            last_transition_time: Some(now.trunc_subsecs(0)),
            reason: reason.to_owned(),
            message: message.to_owned(),
        },
    )
}
