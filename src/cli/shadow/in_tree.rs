//! Which differences of the in-tree controller docs/divergences.md lists, as far as the objects show their cause.
//!
//! Guarantees: a difference counts as listed only if the in-tree controller is in charge, and only by what that controller could know:
//! the CronJob before the Job that is compared. Pure.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::{self, newest_start};
use schedule::{Evaluation, Zone};

use crate::api::batch_v1::{CronJob, Job};

/// How long after a status was written the in-tree controller's cache may still show the one before.
const LATE_CACHE: TimeDelta = TimeDelta::seconds(5);

/// What is known of the in-tree controller's view of a CronJob.
#[derive(Debug, Default)]
pub(super) struct InTree {
    /// The CronJob as it was looked at before; `None` if another controller is in charge.
    before: Option<Arc<CronJob>>,
    /// When the status was seen to tell of another slot.
    told: Option<DateTime<Utc>>,
    zone: Zone,
    /// It met a Job of another owner with the name of a slot's Job, and does not look at the CronJob again before an edit.
    is_stopped: bool,
}

impl InTree {
    /// Takes the CronJob as it was looked at before, if the in-tree controller is in charge, and as it is `now`.
    pub fn look(&mut self, before: Option<Arc<CronJob>>, cron_job: &CronJob, zone: Zone, now: DateTime<Utc>) {
        let last = cron_job.status.last_schedule_time;
        if before.as_ref().is_some_and(|before| before.status.last_schedule_time != last) {
            self.told = Some(now);
        }
        (self.before, self.zone) = (before, zone);
    }

    /// The name of a slot's Job is taken.
    pub fn meets_taken_name(&mut self) {
        self.is_stopped = true;
    }

    /// It was seen to look at the CronJob, or the CronJob was edited.
    pub fn goes_on(&mut self) {
        self.is_stopped = false;
    }

    /// Why it starts a slot again whose Job is gone, with one that was seen `at`: the status in its cache did not tell of it yet.
    pub fn starts_again(&self, slot: DateTime<Utc>, first: &Job, second: &Job, at: DateTime<Utc>) -> Option<String> {
        let is_untold = self.before.as_ref()?.status.last_schedule_time < Some(slot);
        let is_news = self.told.is_some_and(|told| at - told <= LATE_CACHE);
        ((is_untold || is_news) && first.name == second.name).then(|| {
            format!("Job {} was created again: it was gone before the status told of its slot", first.name.name)
        })
    }

    /// Why it starts `job` although `others` run, under Forbid: no status tells of them.
    pub fn overlooks(&self, job: &Job, others: &[&Arc<Job>]) -> Option<String> {
        let status = &self.before.as_ref()?.status;
        let other = others.first().filter(|_| !others.iter().any(|other| status.in_active_list(&other.uid)))?;
        let (job, other) = (&job.name.name, &other.name.name);
        Some(format!("Forbid broken: Job {job} began while Job {other} ran, of which the status does not tell"))
    }

    /// Why it does not start any slot.
    pub fn waits(&self) -> Option<&'static str> {
        self.before.as_ref()?;
        let why = "since a Job of another owner had the name of an earlier slot's Job, it waits for an edit";
        self.is_stopped.then_some(why)
    }

    /// Why it cannot find a slot that has had no Job until `now`. `last` is the newest slot with a Job before it.
    pub fn loses(&self, slot: DateTime<Utc>, last: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<&'static str> {
        let before = self.before.as_ref()?;
        let told = before.status.last_schedule_time.filter(|told| *told < slot);
        let last = last.max(told).unwrap_or(before.creation_timestamp);
        let deadline = before.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        let oldest = deadline.and_then(|deadline| now.checked_sub_signed(deadline));
        let earliest = oldest.map_or(last, |oldest| last.max(oldest));
        let schedule = &Evaluation::of(before.schedule(self.zone)?);
        let is_newest = newest_start(schedule, earliest, now) == Some(slot);
        (is_newest && estimate(schedule, earliest, now).is_none())
            .then_some("its estimate of the newest slot of an uneven schedule leaves it out")
    }
}

/// The newest slot after `earliest` that is due at `now`, as upstream's `mostRecentScheduleTime` estimates it.
fn estimate(schedule: &Evaluation<'_>, earliest: DateTime<Utc>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let first = schedule.next_after(earliest).filter(|first| *first <= now)?;
    let Some(second) = schedule.next_until(first, now) else { return Some(first) };
    // It searches from one interval before the last one that fits.
    let whole = i32::try_from(missed::estimate(first, second, now) - 2).ok()?;
    newest_start(schedule, first.checked_add_signed((second - first).checked_mul(whole)?)?, now)
}

#[cfg(test)]
mod tests;
