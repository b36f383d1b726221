//! Statistics of one CronJob's slots.
//!
//! Guarantees: pure. Every slot is counted at most once, under the one reason for which it was started or not, however
//! many syncs see it. One that was held counts once more when it starts or when a change passes over it. Nothing is decided
//! here: the counts cover the decisions of syncs, and the slots between two decisions, which were not started. At most
//! [`AT_MOST`] of those are counted, and fewer if each takes a long search.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::most_recent_schedule_time;
use schedule::{Evaluation, Schedule, Zone};

use super::plan::{Skip, Verdict};
use crate::api::Uid;
use crate::api::batch_v1::{CronJob, FinishedCondition, Job};

pub mod runs;

use runs::RunStats;

/// The maximum number of slots counted between two decisions.
pub const AT_MOST: u64 = 1_000;
/// How many steps the search for them takes, and no more slots are counted: a minutely schedule takes two for each.
const STEPS: u32 = 50_000;

/// The statistics of one CronJob.
#[derive(Clone, Debug, PartialEq)]
pub struct CronJobStats {
    /// The CronJob's UID; another CronJob of the same name has its own statistics.
    pub uid: Uid,
    /// The newest slot that was started or skipped, or the time from which slots are counted.
    decided: DateTime<Utc>,
    is_invalid: bool,
    /// Jobs started.
    pub fires: u64,
    /// Slots that were not started for no recorded reason: the controller was not running, or its requests failed.
    pub missed: u64,
    /// Skipped slots, by reason.
    pub skipped: Skipped,
    /// Slots skipped since the last start because an earlier Job is active.
    pub forbidden_in_a_row: u64,
    /// Jobs that failed since the last one that succeeded.
    pub failures_in_a_row: u64,
    /// When a Job last succeeded.
    pub last_success: Option<DateTime<Utc>>,
    /// The delay between the last Job's slot and its creation.
    pub last_skew: Option<TimeDelta>,
    /// Its Jobs, how they ended and how long they took.
    pub runs: RunStats,
    /// Whether the API server refused the last create for a reason other than its own unavailability.
    pub is_refused: bool,
    /// Whether a Job that runs for longer than `stuck-after` blocks a slot.
    pub is_stuck: bool,
}

/// Skipped slots, by [reason](Skip::as_str).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(BTreeMap<&'static str, u64>);

impl Skipped {
    fn add(&mut self, reason: &'static str, slots: u64) {
        if slots > 0 {
            *self.0.entry(reason).or_default() += slots;
        }
    }

    /// Each reason with its slots, if there are any.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(reason, slots)| (*reason, *slots))
    }
}

impl CronJobStats {
    /// The initial statistics: slots count from the last one that had its Job, failures and durations from the Jobs of slots that
    /// still exist. Those that are made by hand do not count, as [`Self::ended`] does not see them.
    pub fn open(cron_job: &CronJob, jobs: &[Arc<Job>], now: DateTime<Utc>) -> Self {
        let runs = || jobs.iter().filter(|job| job.slot_of(cron_job).is_some());
        let ended = |end| runs().filter(move |job| job.finished == Some(end)).map(|job| (job.start_time, &job.name));
        let last_good = ended(FinishedCondition::Complete).max();
        let failures = ended(FinishedCondition::Failed).filter(|failed| Some(*failed) > last_good).count();
        let completed = jobs.iter().filter(|job| job.succeeded).filter_map(|job| job.completion_time).max();
        Self {
            uid: cron_job.uid.clone(),
            decided: last_decided(cron_job),
            is_invalid: false,
            fires: 0,
            missed: 0,
            skipped: Skipped::default(),
            forbidden_in_a_row: 0,
            failures_in_a_row: failures as u64,
            last_success: completed.max(cron_job.status.last_successful_time),
            last_skew: None,
            runs: RunStats::open(runs(), now),
            is_refused: false,
            is_stuck: false,
        }
    }

    /// Counts the decision that a sync made about the slots up to `judged`, and carried out at `now`.
    pub fn decided(
        &mut self,
        cron_job: &CronJob,
        local: Zone,
        verdict: Verdict,
        judged: DateTime<Utc>,
        now: DateTime<Utc>,
    ) {
        self.last_success = self.last_success.max(cron_job.status.last_successful_time);
        if !matches!(verdict, Verdict::Open | Verdict::Skipped(Skip::Invalid)) {
            self.is_invalid = false;
        }
        match verdict {
            Verdict::Open => {}
            Verdict::NothingDue => {
                self.decided = self.decided.max(newest_slot(cron_job, local, judged).unwrap_or(self.decided));
            }
            Verdict::Started { slot, .. } => {
                self.missed += self.pass(cron_job, local, slot).saturating_sub(1);
                self.fires += 1;
                self.forbidden_in_a_row = 0;
                self.last_skew = Some(now - cron_job.due(slot));
                self.runs.started();
            }
            Verdict::Skipped(Skip::Suspended) => self.suspended(cron_job, local, judged),
            // Without a schedule there are no slots, so this counts once for each edit that makes the CronJob invalid.
            Verdict::Skipped(Skip::Invalid) => {
                let is_known = std::mem::replace(&mut self.is_invalid, true);
                self.skipped.add(Skip::Invalid.as_str(), u64::from(!is_known));
            }
            Verdict::Skipped(skip) => self.skip(cron_job, local, skip, judged),
        }
    }

    fn skip(&mut self, cron_job: &CronJob, local: Zone, skip: Skip, judged: DateTime<Utc>) {
        let Some(slot) = skip.slot() else { return };
        // With a backlog, the oldest of those that are held is reported.
        let newest = || newest_slot(cron_job, local, judged).map_or(slot, |newest| newest.max(slot));
        let slot = if skip.held().is_some() { newest() } else { slot };
        let passed = self.pass(cron_job, local, slot);
        // Only this slot has its name taken.
        let skipped = if matches!(skip, Skip::NameTaken(_)) { passed.min(1) } else { passed };
        self.skipped.add(skip.as_str(), skipped);
        self.missed += passed - skipped;
        if matches!(skip, Skip::Forbid(_) | Skip::MaxConcurrent(_)) {
            self.forbidden_in_a_row += passed;
        }
    }

    /// Counts the slots up to `slot` that a change passed over. The newest is one that would have started, so it counts even if
    /// it was held or suspended before.
    pub fn passed_over(&mut self, cron_job: &CronJob, local: Zone, slot: DateTime<Utc>) {
        let slots = self.pass(cron_job, local, slot).max(1);
        self.skipped.add(Skip::PassedOver(slot).as_str(), slots);
    }

    /// Counts Jobs of slots that have ended, in the order of their ends.
    pub fn ended(&mut self, runs: &[&Arc<Job>], now: DateTime<Utc>) {
        for job in runs {
            self.runs.count(job, now);
            self.runs.remember(job, now);
            if job.succeeded {
                self.failures_in_a_row = 0;
                self.last_success = self.last_success.max(Some(job.completion_time.unwrap_or(now)));
            } else {
                self.failures_in_a_row += 1;
            }
        }
    }

    /// Counts the slots of a suspended CronJob up to `now`, which no sync computes.
    pub fn suspended(&mut self, cron_job: &CronJob, local: Zone, now: DateTime<Utc>) {
        if let Some(newest) = newest_slot(cron_job, local, now) {
            let slots = self.pass(cron_job, local, newest);
            self.skipped.add(Skip::Suspended.as_str(), slots);
        }
    }

    /// Records an edit at `now`. The slots of a suspension that ends count as suspended, and slots of a new schedule
    /// count from now on.
    pub fn edited(&mut self, old: &CronJob, new: &CronJob, local: Zone, now: DateTime<Utc>) {
        if old.spec.suspend {
            self.suspended(old, local, now);
        }
        if !old.same_timing(new) {
            self.is_invalid = false;
            self.decided = newest_slot(new, local, now).unwrap_or(now);
        }
    }

    /// Records at `now` that the CronJob's Namespace no longer says what is in `restricted`: what it left out was not missed. A slot
    /// that it left and that is due is still to be counted.
    pub fn restriction_ended(&mut self, restricted: &CronJob, local: Zone, now: DateTime<Utc>) {
        let now = restricted.nominal(now);
        let next = schedule(restricted, local).and_then(|schedule| schedule.next_after(self.decided));
        if !restricted.spec.suspend && next.is_none_or(|slot| slot > now) {
            self.decided = self.decided.max(now);
        }
    }

    /// When the earliest slot is due that is neither started nor skipped; one in the past is overdue. `None` if no slot
    /// is expected.
    pub fn next_slot(&self, cron_job: &CronJob, local: Zone) -> Option<DateTime<Utc>> {
        if cron_job.deleting || cron_job.spec.suspend {
            return None;
        }
        schedule(cron_job, local)?.next_after(self.decided).map(|slot| cron_job.due(slot))
    }

    /// Advances to `slot`, which is decided now. Returns the number of slots passed, including `slot`.
    fn pass(&mut self, cron_job: &CronJob, local: Zone, slot: DateTime<Utc>) -> u64 {
        let from = self.decided;
        self.decided = from.max(slot);
        let Some(schedule) = schedule(cron_job, local).filter(|_| from < slot) else { return 0 };
        let schedule = &Evaluation::of(schedule);
        let passed = std::iter::successors(schedule.next_after(from), |slot| schedule.next_after(*slot));
        let limit = usize::try_from(AT_MOST).unwrap_or(usize::MAX);
        let is_counted = |passed: &DateTime<Utc>| *passed <= slot && schedule.steps_taken() < STEPS;
        passed.take_while(is_counted).take(limit).count() as u64
    }
}

fn schedule(cron_job: &CronJob, local: Zone) -> Option<&Schedule> {
    cron_job.schedule(local).filter(|_| cron_job.timing(local).time_zone.is_ok())
}

/// The time up to which slots are decided according to the status.
fn last_decided(cron_job: &CronJob) -> DateTime<Utc> {
    let observed = cron_job.observed(&cron_job.status, DateTime::<Utc>::MAX_UTC);
    observed.last_schedule.unwrap_or(observed.creation)
}

/// The newest slot that came due, or else the time from which slots are counted; `None` without a valid schedule.
fn newest_slot(cron_job: &CronJob, local: Zone, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let (observed, now) = (cron_job.observed(&cron_job.status, now), cron_job.nominal(now));
    let found = most_recent_schedule_time(&observed, now, &Evaluation::of(schedule(cron_job, local)?), false).ok()?;
    Some(found.most_recent.unwrap_or(found.earliest))
}

#[cfg(test)]
mod tests;
