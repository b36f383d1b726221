//! The log lines for a sync's decisions.
//!
//! Guarantees: one line per decision, with the CronJob's key as `cronjob`, its slot as `slot` and, where there is one,
//! its Job as `job`. The levels are:
//! - debug: decisions that follow the CronJob's spec;
//! - info: a run that is skipped although the spec asks for it, and an adopted Job;
//! - warn: a state that lasts until a user fixes it.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use schedule::missed::Missed;
use tracing::{debug, info, warn};

use super::plan::{Note, Settlement, Skip, Verdict};
use crate::api::ObjectName;
use crate::api::batch_v1::{FinishedCondition, Job};

/// A Job was created.
pub fn created(cron_job: &ObjectName, job: &Job, slot: DateTime<Utc>, skew: TimeDelta) {
    let skew_ms = skew.num_milliseconds();
    debug!(cronjob = %cron_job, job = %job.name.name, slot = Zone::UTC.rfc3339(slot), skew_ms, "Created Job");
}

/// A Job was deleted: replaced by the next one, or beyond the history limits.
pub fn deleted(cron_job: &ObjectName, job: &ObjectName) {
    debug!(cronjob = %cron_job, job = %job.name, "Deleted Job");
}

/// A sync ended.
pub fn decided(cron_job: &ObjectName, settlement: &Settlement) {
    for note in &settlement.notes {
        match note {
            Note::Adopted(job, slot) => {
                info!(cronjob = %cron_job, job = %job.name.name, slot = Zone::UTC.rfc3339(*slot), "Adopted Job");
            }
            Note::Ended(job) => {
                let condition = job.finished.map(FinishedCondition::as_str);
                debug!(cronjob = %cron_job, job = %job.name.name, condition, "Saw Job end");
            }
        }
    }
    if let Some(slot) = settlement.passed_over {
        info!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), "Passed over the slots before a change");
    }
    match settlement.verdict {
        Verdict::Open | Verdict::NothingDue | Verdict::Started { missed: Missed::None, .. } => {}
        Verdict::Started { slot, missed } => {
            info!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), ?missed, "Missed the slots before this one");
        }
        Verdict::Skipped(why) => skipped(cron_job, why),
    }
}

fn skipped(cron_job: &ObjectName, why: Skip) {
    let reason = why.as_str();
    match why {
        Skip::Forbid(slot) | Skip::MaxConcurrent(slot) | Skip::Replacing(slot) => {
            debug!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), reason, "Skipped the slot");
        }
        Skip::Deadline(slot) | Skip::PassedOver(slot) => {
            info!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), reason, "Skipped the slot");
        }
        Skip::NameTaken(slot) | Skip::Paused(slot) => {
            warn!(cronjob = %cron_job, slot = Zone::UTC.rfc3339(slot), reason, "Skipped the slot");
        }
        Skip::Suspended => debug!(cronjob = %cron_job, reason, "Skipping every slot"),
        Skip::Invalid => warn!(cronjob = %cron_job, reason, "Skipping every slot"),
    }
}
