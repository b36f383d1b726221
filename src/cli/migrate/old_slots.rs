//! Slots that this controller does not start, and that the in-tree controller would start at once.
//!
//! Guarantees: the in-tree controller's next slot comes from `spec.schedule`, `lastScheduleTime` and `startingDeadlineSeconds`
//! alone, because it reads no annotation. What this controller does with the slot is the decision of `reconcile`, and with
//! changes that are not recorded yet, of `recount`. A slot that this controller starts now, or when its Job is due, is no finding.
//! Pure.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::{Schedule, Zone};
use serde::Serialize;

use super::read::Seen;
use super::schedules::in_tree_slot;
use super::{Code, Finding, Object};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, Job};
use crate::api::policy::{BACKLOG, COUNTED_FROM, DST, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, REPLACE_WAITS, SCHEDULE};
use crate::cli::explain::rehearsal::Rehearsal;
use crate::cli::next::cron_jobs::annotation;
use crate::cli::output::{moment, stretch};
use crate::controller::plan::{Skip, Verdict};

/// Why this controller does not start a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reason {
    /// A policy leaves it out.
    LeftOut,
    /// It is decided and was not started: a change, a pause or `backlog: "0"` passed over it.
    PassedOver,
    /// It waits until the CronJob is not paused any more.
    Paused,
    /// It waits for other Jobs to end.
    Waiting,
    /// A policy cannot be read, and nothing starts.
    BadPolicy,
}

pub(super) fn find(seen: &Seen, local: Zone, now: DateTime<Utc>) -> Option<Finding> {
    let cron_job = &seen.cron_job;
    let (own, slot) = overdue(seen, local, now)?;
    let (reason, why) = reason(cron_job, &seen.jobs, own, slot, local, now)?;
    let object = Object::of(cron_job);
    let message = format!("{object} would start {}: {why}.", late_job(cron_job, own, slot, local, now));
    let finding = Finding::new(Code::OldSlot, object, message).changing_runs();
    let job = cron_job.controller_kind.child_name(&cron_job.name.name, slot);
    let slot = own.zone().unwrap_or(local).at(slot);
    Some(Finding { slot: Some(slot), job: Some(job), reason: Some(reason), ..finding })
}

/// The slot without a Job that the in-tree controller starts at `now`, and the schedule that it reads.
pub(super) fn overdue(seen: &Seen, local: Zone, now: DateTime<Utc>) -> Option<(&Schedule, DateTime<Utc>)> {
    let cron_job = &*seen.cron_job;
    if cron_job.deleting || cron_job.spec.suspend {
        return None;
    }
    let timing = cron_job.timing(local);
    let own = timing.schedule.as_ref().ok().filter(|_| timing.time_zone.is_ok())?;
    let slot = in_tree_slot(cron_job, own, now).filter(|slot| !seen.has_job_of(*slot))?;
    Some((own, slot))
}

/// The Job of a slot that starts late, in words.
pub(super) fn late_job(
    cron_job: &CronJob,
    own: &Schedule,
    slot: DateTime<Utc>,
    local: Zone,
    now: DateTime<Utc>,
) -> String {
    let job = cron_job.controller_kind.child_name(&cron_job.name.name, slot);
    format!("Job {job} of {}, {} late", moment(own.zone().unwrap_or(local), slot), stretch(now - slot))
}

/// Why `slot` of `spec.schedule`, whose reading is `own`, does not start here at `now`; `None` if it starts, or waits only for
/// its due time.
fn reason(
    cron_job: &Arc<CronJob>,
    jobs: &[Arc<Job>],
    own: &Schedule,
    slot: DateTime<Utc>,
    local: Zone,
    now: DateTime<Utc>,
) -> Option<(Reason, String)> {
    if let Err(error) = cron_job.policy() {
        let why = format!("a policy cannot be read, so that nothing starts here ({error})");
        return Some((Reason::BadPolicy, why));
    }
    if let Some(annotation) = left_out(cron_job, own, slot) {
        return Some((Reason::LeftOut, format!("{annotation} leaves this slot out")));
    }
    match Rehearsal::of(cron_job, jobs, local, now).settlement.verdict {
        Verdict::Skipped(Skip::Paused(_)) => {
            Some((Reason::Paused, format!("the last Jobs failed, and {PAUSE_AFTER_FAILURES} holds this slot")))
        }
        Verdict::Skipped(Skip::PassedOver(_)) => {
            Some((Reason::PassedOver, format!("it could not start in time, and {BACKLOG} passed over it")))
        }
        Verdict::Skipped(Skip::MaxConcurrent(_)) if !is_forbidden(cron_job) => {
            Some((Reason::Waiting, format!("as many Jobs are unfinished as {MAX_CONCURRENT} allows")))
        }
        Verdict::Skipped(Skip::Replacing(_)) => {
            Some((Reason::Waiting, format!("the Job that it replaces is not gone ({REPLACE_WAITS})")))
        }
        Verdict::NothingDue => passed_over(cron_job, slot, local, now),
        _ => None,
    }
}

/// Whether a change of the CronJob passed over `slot`, recorded or not.
fn passed_over(cron_job: &CronJob, slot: DateTime<Utc>, local: Zone, now: DateTime<Utc>) -> Option<(Reason, String)> {
    let why = if cron_job.decided_until(&cron_job.status, now).is_some_and(|until| slot <= until) {
        format!("it is decided here, after a change or a pause ({COUNTED_FROM})")
    } else {
        cron_job.recount(&cron_job.status, local, now).filter(|counted| slot <= counted.time())?;
        "a change of the CronJob passes over it here, which is not recorded yet".to_owned()
    };
    Some((Reason::PassedOver, why))
}

/// Whether the in-tree controller waits, too.
fn is_forbidden(cron_job: &CronJob) -> bool {
    cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid && !cron_job.status.active.is_empty()
}

/// The annotation because of which a slot of `spec.schedule`, whose reading is `own`, is none here: the CronJob's own, or its
/// Namespace's.
pub(super) fn left_out(cron_job: &Arc<CronJob>, own: &Schedule, slot: DateTime<Utc>) -> Option<String> {
    let alone = Arc::clone(cron_job).in_its_namespace(None);
    match (by_policy(&alone, own, slot), by_policy(cron_job, own, slot)) {
        (Some(annotation), _) => Some(annotation.to_owned()),
        (None, annotation) => annotation.map(|annotation| format!("{annotation} of the Namespace")),
    }
}

fn by_policy(cron_job: &CronJob, own: &Schedule, slot: DateTime<Utc>) -> Option<&'static str> {
    let policy = cron_job.policy().ok().flatten()?;
    let schedule = policy.schedule(own);
    if schedule.has(slot) {
        return None;
    }
    let nominal = schedule.nominal(slot - TimeDelta::seconds(1)).next().filter(|nominal| nominal.slot == slot);
    let named = nominal.and_then(|nominal| nominal.left_out).map(annotation);
    Some(named.unwrap_or(if policy.has_lines() { SCHEDULE } else { DST }))
}
