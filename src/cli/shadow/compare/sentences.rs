//! The sentences of a comparison.
//!
//! Guarantee: each is one line that names the Jobs by name. Pure.

use chrono::{DateTime, Utc};
use schedule::Zone;

use super::Finding;
use crate::api::batch_v1::{CronJob, Job};
use crate::controller::plan::Skip;

/// That a slot had no Job; `cause` is one that docs/divergences.md lists.
pub(super) fn missed(why: String, cause: Option<&str>) -> Finding {
    match cause {
        Some(cause) => Finding::Listed(format!("{why}: {cause}")),
        None => Finding::Missed(why),
    }
}

/// A time for people.
pub(super) fn moment(time: DateTime<Utc>) -> String {
    time.format("%F %TZ").to_string()
}

/// That two Jobs were created for a slot.
pub(super) fn twice(first: &Job, second: &Job) -> String {
    let (first, second) = (&first.name.name, &second.name.name);
    if first == second {
        return format!("Job {first} was created twice");
    }
    format!("Jobs {first} and {second} were created for it")
}

/// Why this controller does not start a slot that has a Job.
pub(super) fn not_here(job: &Job, skip: Skip, cron_job: &CronJob) -> String {
    let suspended = suspended(cron_job);
    let why = match skip {
        Skip::Forbid(_) => "Forbid broken: a Job of an earlier slot ran",
        Skip::Deadline(_) => "its starting deadline had passed",
        Skip::NameTaken(_) => "a Job of another owner had the name",
        Skip::MaxConcurrent(_) => "as many Jobs ran as max-concurrent allows",
        Skip::Replacing(_) => "the Job that it replaces was not gone",
        Skip::Paused(_) => "the last Jobs failed, as many as pause-after-failures allows",
        Skip::PassedOver(_) => "a policy or a change of the CronJob passed it over",
        Skip::Suspended => &suspended,
        Skip::Invalid => "the schedule, the zone or a policy is invalid",
    };
    format!("started there and not here ({}): {why}; Job {}", skip.as_str(), job.name.name)
}

fn suspended(cron_job: &CronJob) -> String {
    format!("the CronJob is suspended ({})", cron_job.handover.suspended_by())
}

/// Why this controller never looks at a slot that has a Job.
pub(super) fn no_slot(job: &Job, slot: DateTime<Utc>, cron_job: &CronJob, zone: Zone) -> String {
    let own = cron_job.timing(zone).schedule.as_ref().is_ok_and(|own| own.has(slot));
    let is_slot = is_slot(slot, cron_job, zone);
    let suspended = suspended(cron_job);
    let why = match (is_slot, own) {
        (true, _) if cron_job.spec.suspend => &suspended,
        (true, _) => "it was not the newest slot that was due",
        (false, true) => "a policy leaves it out",
        (false, false) => "the schedule has no such time",
    };
    format!("started there and not here: {why}; Job {}", job.name.name)
}

/// Whether the schedule has the slot. Those of an interval depend on what was started.
pub(super) fn is_slot(slot: DateTime<Utc>, cron_job: &CronJob, zone: Zone) -> bool {
    cron_job.schedule(zone).is_some_and(|schedule| schedule.interval().is_some() || schedule.has(slot))
}
