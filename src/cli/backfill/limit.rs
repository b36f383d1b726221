//! What the next start of a backfill has to wait for, under the policy `max-concurrent`.
//!
//! Guarantees: without the policy, nothing. With it, for a place: fewer Jobs of the CronJob are unfinished than are allowed. Then for
//! the regular run of a slot that is due or about to be, so that it has the place. A run that does not start is not waited for
//! for long, and one that the Namespace leaves out not at all. Pure.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::{Evaluation, Zone, missed};

use crate::api::batch_v1::CronJob;
use crate::api::policy::Restriction;

/// So long before a slot is due, its place is left free.
const AHEAD: TimeDelta = TimeDelta::seconds(5);
/// So long a regular run that could start is waited for: longer than another replica needs to take over.
const LONGEST: TimeDelta = TimeDelta::seconds(20);
/// How long a place is waited for until the CronJob is read again.
const REREAD: TimeDelta = TimeDelta::minutes(1);

/// What a start waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// The slot whose run goes first; `None` if there is no place.
    pub slot: Option<DateTime<Utc>>,
    /// When to look again, if no Job changes before.
    pub until: DateTime<Utc>,
}

/// What the next start waits for; `None` if it may happen now. `unfinished` Jobs of any kind exist, `has_job` tells whether a slot
/// has one, there may have been a place for another since `since`, and `restriction` is that of the Namespace.
pub(super) fn wait(
    cron_job: &CronJob,
    restriction: Option<&Arc<Restriction>>,
    zone: Zone,
    unfinished: usize,
    has_job: impl Fn(DateTime<Utc>) -> bool,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<Wait> {
    if unfinished >= cron_job.limits().max_concurrent? {
        return Some(Wait { slot: None, until: now + REREAD });
    }
    let restricted = restriction.map(|restriction| cron_job.restricted(restriction));
    let slot = next_run(restricted.as_ref().unwrap_or(cron_job), zone, now).filter(|slot| !has_job(*slot))?;
    let until = cron_job.due(slot).max(since) + LONGEST;
    (now < until).then_some(Wait { slot: Some(slot), until })
}

/// The newest slot that is not decided, within its deadline, and due or about to be.
fn next_run(cron_job: &CronJob, zone: Zone, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let mut observed = cron_job.observed(&cron_job.status, now);
    // The search takes a later time for now, at which a deadline must not have passed already.
    let deadline = &mut observed.starting_deadline_seconds;
    *deadline = deadline.map(|seconds| seconds.saturating_add(AHEAD.num_seconds()));
    missed::next_schedule_time(&observed, cron_job.nominal(now + AHEAD), &Evaluation::of(cron_job.schedule(zone)?))
        .ok()?
        .0
}

#[cfg(test)]
mod tests;
