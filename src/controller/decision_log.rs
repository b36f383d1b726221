//! The log lines that tell what becomes of a CronJob: queued, started, decided, created, status written, requeued.
//!
//! Guarantees: one line per step, with the slot as `slot` and, where there is one, the Job as `job`. The CronJob's key is
//! `cronjob`, from the span `sync` or, where there is none, in the line itself. The levels are:
//! - debug: the steps of each sync, and decisions that follow the CronJob's spec;
//! - info: a run that is skipped although the spec asks for it, the newest of several due slots, and an adopted Job;
//! - warn: a state that lasts until a user fixes it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use schedule::missed::Missed;
use tracing::{debug, info, warn};

use super::plan::{Note, Settlement, Skip, Verdict};
use crate::api::ObjectName;
use crate::api::batch_v1::{CronJob, FinishedCondition, Job};

/// The key becomes ready now, because of `why`.
pub fn queued(cron_job: &ObjectName, why: &'static str) {
    debug!(cronjob = %cron_job, why, "Queued");
}

/// The key becomes ready at `due`.
pub fn queued_at(cron_job: &ObjectName, due: DateTime<Utc>, why: &'static str) {
    debug!(cronjob = %cron_job, due = Zone::UTC.rfc3339(due), why, "Queued");
}

/// A worker has taken the key.
pub fn started() {
    debug!("Started");
}

/// The Job of a slot is to be created.
pub fn starts(slot: DateTime<Utc>) {
    debug!(slot = Zone::UTC.rfc3339(slot), what = "start", "Decided");
}

/// The status was written.
pub fn status_written(cron_job: &CronJob) {
    let last = cron_job.status.last_schedule_time.map(|last| Zone::UTC.rfc3339(last));
    debug!(active = cron_job.status.active.len(), last_schedule_time = last, "Status written");
}

/// The sync has ended, and the key becomes ready again now.
pub fn requeued(why: &'static str) {
    debug!(why, "Requeued");
}

/// The sync has ended, and the key becomes ready at `due`: at the next slot, or when what holds one ends.
pub fn requeued_at(due: DateTime<Utc>, why: &'static str) {
    debug!(due = Zone::UTC.rfc3339(due), why, "Requeued");
}

/// The sync has ended, and the key becomes ready after `delay`.
pub fn requeued_after(delay: Duration, why: &'static str) {
    let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    debug!(delay_ms, why, "Requeued");
}

/// The sync has ended, and the key waits for a change.
pub fn done() {
    debug!("Not requeued");
}

/// A Job was created.
pub fn created(job: &Job, slot: DateTime<Utc>, skew: TimeDelta) {
    let skew_ms = skew.num_milliseconds();
    debug!(job = %job.name.name, slot = Zone::UTC.rfc3339(slot), skew_ms, "Created Job");
}

/// A Job was deleted: replaced by the next one, or beyond the history limits.
pub fn deleted(job: &ObjectName) {
    debug!(job = %job.name, "Deleted Job");
}

/// A sync has decided; its status write follows.
pub fn decided(cron_job: &ObjectName, settlement: &Settlement) {
    for note in &settlement.notes {
        match note {
            Note::Adopted(job, slot) => {
                info!(cronjob = %cron_job, job = %job.name.name, slot = Zone::UTC.rfc3339(*slot), "Adopted Job");
            }
            Note::Ended(job) => {
                let condition = job.finished.map(FinishedCondition::as_str);
                debug!(job = %job.name.name, condition, "Saw Job end");
            }
        }
    }
    if let Some(slot) = settlement.passed_over {
        info!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), "Passed over the slots before a change");
    }
    match settlement.verdict {
        Verdict::Open | Verdict::Started { missed: Missed::None, .. } => {}
        Verdict::NothingDue => debug!(what = "nothing due", "Decided"),
        Verdict::Started { slot, missed } => {
            // The earlier ones were missed, or blocked until a newer one came due.
            info!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), others = ?missed, "Started the newest of several due slots");
        }
        Verdict::Skipped(why) => skipped(cron_job, why),
    }
}

fn skipped(cron_job: &ObjectName, why: Skip) {
    let reason = why.as_str();
    match why {
        Skip::Forbid(slot) | Skip::MaxConcurrent(slot) | Skip::Replacing(slot) => {
            debug!(slot = Zone::UTC.rfc3339(slot), reason, "Skipped the slot");
        }
        Skip::Deadline(slot) | Skip::PassedOver(slot) => {
            info!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), reason, "Skipped the slot");
        }
        Skip::NameTaken(slot) | Skip::Paused(slot) => {
            warn!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), reason, "Skipped the slot");
        }
        Skip::Suspended => debug!(reason, "Skipping every slot"),
        Skip::Invalid => warn!(cronjob = %cron_job, reason, "Skipping every slot"),
    }
}
