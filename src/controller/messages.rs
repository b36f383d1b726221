//! Texts of Events.
//!
//! Guarantees: those that upstream records, too, are upstream's.

use apimachinery::quoting::quote;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use crate::api::ObjectName;
use crate::api::manage::MANAGED_ANNOTATION;
use crate::api::policy::{
    AFTER_CHANGE, BACKLOG, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, REPLACE_WAITS, STUCK_AFTER, UnknownNames,
};

/// The reason of the Warning about a Job that blocks a slot for too long.
pub(super) const RUN_STUCK: &str = "RunStuck";

/// The reason of the Warning about failures that hold a CronJob.
pub(super) const PAUSED: &str = "Paused";

/// The reason of the Warning about a CronJob that is handed over to a controller with `--manage=annotated`, where this one runs
/// with `--manage=all`.
pub(super) const HANDED_OVER: &str = "HandedOver";

/// The reason of the Event about a freeze of the Namespace.
pub(super) const FROZEN: &str = "Frozen";

/// The reason of the Event about slots that will not start.
pub(super) const PASSED_OVER: &str = "PassedOver";

pub(super) const TOO_MANY_MISSED: &str =
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";

pub(super) const NO_SLOT_LEFT: &str = "its policy annotations leave no time at which it runs";

pub(super) fn already_active(noun: &str) -> String {
    format!("Not starting {noun} because prior execution is running and concurrency policy is Forbid")
}

pub(super) fn at_max_concurrent(noun: &str, limit: usize) -> String {
    format!("Not starting {noun} because {limit} or more are unfinished and {MAX_CONCURRENT} is {limit}")
}

pub(super) fn still_replacing(noun: &str, replaced: &str) -> String {
    format!("Not starting {noun} because {replaced}, which it replaces, still exists and {REPLACE_WAITS} is true")
}

pub(super) fn run_stuck(replaced: &str, age: TimeDelta, delete: bool) -> String {
    let then = if delete { ", and will be deleted" } else { "" };
    let seconds = age.num_seconds();
    format!("{replaced} blocks the next run and has run for longer than {STUCK_AFTER} ({seconds} s){then}")
}

pub(super) fn stuck_runs_linger(number: usize) -> String {
    format!(
        "{number} runs that were deleted because of {STUCK_AFTER} still exist, so no other is deleted: check their nodes \
         and finalizers"
    )
}

pub(super) fn paused(noun: &str, limit: usize) -> String {
    format!(
        "Not starting {noun}: the last {limit} failed and {PAUSE_AFTER_FAILURES} is {limit}. It goes on when one succeeds \
         (kubectl create job --from) or the failed ones are deleted"
    )
}

pub(super) fn handed_over(noun: &str, cron_job: &ObjectName) -> String {
    format!(
        "Not starting {noun}: the CronJob is handed over ({MANAGED_ANNOTATION} is \"true\" and spec.suspend is true), and this \
         controller runs with --manage=all, so it is suspended. cronjob-controller migrate takeback -n {} {} undoes the handover",
        cron_job.namespace, cron_job.name
    )
}

pub(super) fn frozen(namespace: &str, until: DateTime<Utc>, reason: Option<&str>) -> String {
    let why = reason.map(|reason| format!(": {}", quote(reason))).unwrap_or_default();
    format!(
        "The Namespace {namespace} is frozen until {}{why}. Nothing starts that is due before",
        Zone::UTC.rfc3339(until)
    )
}

pub(super) fn passed_over(backlog: usize) -> String {
    match backlog {
        0 => format!("Passed over a run that other runs kept from starting for 60 s: {BACKLOG} is 0"),
        most => format!("Passed over runs that could not start in time: {BACKLOG} lets the newest {most} wait"),
    }
}

/// `slot` is the newest that was passed over; slots after `until` start.
pub(super) fn passed_over_by_change(slot: DateTime<Utc>, until: DateTime<Utc>, waits: bool) -> String {
    let change = if waits {
        format!("the last edit or resume, and {AFTER_CHANGE} is wait")
    } else {
        "an annotation was changed that decides when it runs".to_owned()
    };
    format!(
        "Passed over the run of {}: it was due before {change}. Slots after {} count",
        Zone::UTC.rfc3339(slot),
        Zone::UTC.rfc3339(until)
    )
}

pub(super) fn overtaken_backlog() -> String {
    format!("Passed over waiting runs: a newer one was started ({BACKLOG})")
}

pub(super) fn unsupported_schedule(schedule: &str) -> String {
    format!(
        "CRON_TZ or TZ used in schedule {} is not officially supported, see \
         https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
        quote(schedule)
    )
}

pub(super) fn unknown_policies(names: &UnknownNames) -> String {
    format!("This version of the cronjob-controller knows no annotation {names}")
}
