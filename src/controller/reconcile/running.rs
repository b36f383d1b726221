//! The Jobs because of which a slot does not start: which they are, and what is done about them.
//!
//! Guarantees: without policy annotations this is upstream's Forbid and Replace. A Job is deleted by UID, after a live
//! read, and not while an earlier leader's create may be committed. With `stuck-after: …, delete` only as many Jobs are
//! deleted as the slot needs, and none while [`LINGERING`] deleted ones still exist.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::{self, InvalidSchedule, MostRecent};

use super::{Decided, Sync, missed_schedule, newest_unrecorded};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, CronJobStatus, FinishedCondition, Job};
use crate::api::policy::{Limits, StuckAfter};
use crate::api::{EventType, Uid};
use crate::controller::messages::{
    PAUSED, RUN_STUCK, already_active, at_max_concurrent, paused, run_stuck, still_replacing, stuck_runs_linger,
};
use crate::controller::observation::{LiveJob, Observation};
use crate::controller::plan::{Attempt, Outcome, Propagation, Skip, Then, Verdict, Victim};

/// How many stuck Jobs that were deleted may still exist.
const LINGERING: usize = 3;

/// Up to how many children are searched one after the other.
const FEW: usize = 16;

/// When a Job has run for that long; `None` for one that does not run, and for one of a backfill, which is never stuck.
pub fn old_at(job: &Job, age: TimeDelta) -> Option<DateTime<Utc>> {
    job.start_time.filter(|_| !job.suspended && !job.of_backfill)?.checked_add_signed(age)
}

/// The Jobs that may keep a slot from starting, at one point of a sync.
#[derive(Clone, Copy)]
pub(super) struct Blockers<'s, 'a> {
    pub(super) observation: &'a Observation,
    pub(super) base: &'a Arc<CronJob>,
    pub(super) status: &'s CronJobStatus,
    pub(super) limits: Limits,
    by_uid: &'s OnceCell<HashMap<&'a Uid, &'a Arc<Job>>>,
    pub(super) now: DateTime<Utc>,
}

impl<'a> Blockers<'_, 'a> {
    /// Whether Jobs block the slot, apart from those that may be deleted for it.
    pub(super) fn blocker(self, slot: DateTime<Utc>) -> Option<Skip> {
        let limit = self.most_at_a_time()?;
        let skip = if self.limits.max_concurrent.is_some() { Skip::MaxConcurrent } else { Skip::Forbid };
        let freed = self.rescues_after();
        let kept = freed.and_then(|_| self.only_record());
        let is_freed = |job: &Arc<Job>| freed.is_some_and(|age| self.frees(job, age, kept));
        let blocking = self.unfinished().filter(|job| !job.is_some_and(is_freed)).count();
        (blocking >= limit).then(|| skip(slot))
    }

    /// How many Jobs there may be at a time; `None` if any number.
    pub(super) fn most_at_a_time(self) -> Option<usize> {
        let is_one = self.base.spec.concurrency_policy == ConcurrencyPolicy::Forbid;
        self.limits.max_concurrent.or(is_one.then_some(1))
    }

    /// The Jobs that count against the limit of those at a time; `None` for one of which only a reference is known. Under
    /// Forbid these are the active ones, with `max-concurrent` all that are not finished.
    pub(super) fn unfinished(self) -> impl Iterator<Item = Option<&'a Arc<Job>>> {
        let status = self.status;
        let active = status.active.iter().map(move |reference| self.child(&reference.uid));
        let counts_all = self.limits.max_concurrent.is_some();
        let is_beside = move |job: &&Arc<Job>| job.finished.is_none() && !status.in_active_list(&job.uid);
        active.chain(self.observation.children().filter(move |_| counts_all).filter(is_beside).map(Some))
    }

    /// The child with the UID, if it is known.
    pub(super) fn child(self, uid: &Uid) -> Option<&'a Arc<Job>> {
        let jobs = &self.observation.jobs;
        if jobs.len() <= FEW {
            return steps::each(jobs.iter()).find(|job| job.uid == *uid);
        }
        self.by_uid.get_or_init(|| steps::each(jobs.iter()).map(|job| (&job.uid, job)).collect()).get(uid).copied()
    }

    fn is_older(self, job: &Job, age: TimeDelta) -> bool {
        old_at(job, age).is_some_and(|time| time <= self.now)
    }

    /// The Jobs that were deleted as stuck, or could have been, and still exist.
    fn lingering(self, age: TimeDelta) -> usize {
        self.unfinished().flatten().filter(|job| job.deleting && self.is_older(job, age)).count()
    }

    /// After what time a Job that blocks a slot is deleted; `None` if it is not.
    pub(super) fn rescues_after(self) -> Option<TimeDelta> {
        let StuckAfter { age, .. } = self.limits.stuck_after.filter(|stuck| stuck.delete)?;
        (self.lingering(age) < LINGERING).then_some(age)
    }

    /// Whether a stuck Job is deleted for a slot, or was: all but the one that is kept.
    fn frees(self, job: &Job, age: TimeDelta, kept: Option<&Uid>) -> bool {
        self.is_older(job, age) && (job.deleting || kept != Some(&job.uid))
    }

    /// The Job that alone shows which slots were started, until the status tells of its slot.
    fn only_record(self) -> Option<&'a Uid> {
        newest_unrecorded(self.observation, self.base).map(|(_, uid)| uid)
    }

    /// The stuck Jobs that have to be deleted before a slot can start, the oldest first.
    fn victims(self) -> Vec<Arc<Job>> {
        let Some(age) = self.rescues_after() else { return Vec::new() };
        let Some(limit) = self.most_at_a_time() else { return Vec::new() };
        let remaining = self.unfinished().filter(|job| !job.is_some_and(|job| job.deleting && self.is_older(job, age)));
        let needed = (remaining.count() + 1).saturating_sub(limit);
        let kept = self.only_record();
        let is_stuck = |job: &&Arc<Job>| !job.deleting && self.frees(job, age, kept);
        let mut stuck: Vec<_> = self.unfinished().flatten().filter(is_stuck).collect();
        stuck.sort_by(|a, b| (a.start_time, &a.name).cmp(&(b.start_time, &b.name)));
        stuck.into_iter().take(needed).cloned().collect()
    }

    /// Whether a slot can start only if stuck Jobs are deleted.
    pub(super) fn has_victims(self) -> bool {
        self.limits.stuck_after.is_some() && !self.victims().is_empty()
    }

    /// When the next of the blocking Jobs counts as stuck.
    fn next_stuck(self) -> Option<DateTime<Utc>> {
        let StuckAfter { age, .. } = self.limits.stuck_after?;
        let times = self.unfinished().flatten().filter_map(|job| old_at(job, age));
        times.filter(|time| *time > self.now).min()
    }
}

impl<'a> Sync<'a> {
    /// The Jobs that may keep a slot from starting, as the sync knows them now.
    pub(super) fn blockers(&self) -> Blockers<'_, 'a> {
        Blockers {
            observation: self.observation,
            base: self.draft.base,
            status: &self.draft.status,
            limits: self.limits,
            by_uid: &self.by_uid,
            now: self.now,
        }
    }

    /// Adds the deletions of the stuck Jobs in the way of the slot.
    pub(super) fn rescue(&mut self, attempt: &mut Attempt) -> Decided<()> {
        self.warn_of_stuck_jobs();
        let stuck = self.blockers().victims();
        self.ask_for_jobs(stuck.iter().map(|job| &job.name))?;
        for known in stuck {
            match self.observation.live_job_of(&known.name, &known.uid) {
                Ok(LiveJob::Found(job)) if job.finished.is_none() && !job.deleting => {
                    let (name, uid) = (known.name.clone(), known.uid.clone());
                    attempt.victims.push(Victim { name, uid, propagation: Propagation::Foreground });
                }
                Ok(_) => {}
                Err(error) => {
                    attempt.then = Then::GiveUp(error.clone());
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Records that the slot waits for other Jobs.
    pub(super) fn skip_for(&mut self, blocker: Skip, slot: DateTime<Utc>) -> Outcome {
        let text = match self.limits.max_concurrent {
            Some(limit) => at_max_concurrent(self.noun(), limit),
            None => already_active(self.noun()),
        };
        if self.limits.hold() {
            self.hourly_event(EventType::Normal, "JobAlreadyActive", || text);
        } else {
            self.draft.normal("JobAlreadyActive", text);
        }
        self.draft.verdict = Verdict::Skipped(blocker);
        self.draft.blocked_from_due = self.blockers().is_blocked_from_due(slot);
        self.warn_of_stuck_jobs();
        let next = self.blockers().next_stuck().into_iter().chain(self.passed_over_at(slot)).min();
        self.wait_until(next)
    }

    fn warn_of_stuck_jobs(&mut self) {
        let Some(StuckAfter { age, delete }) = self.limits.stuck_after else { return };
        // One that was deleted blocks nothing, unless so many linger that no more are deleted.
        let blockers = self.blockers();
        let frees = blockers.rescues_after().is_some();
        let blocks = |job: &&Arc<Job>| blockers.is_older(job, age) && !(frees && job.deleting);
        let stuck = blockers.unfinished().flatten().filter(blocks);
        let Some(name) = stuck.min_by_key(|job| job.start_time).map(|job| job.name.name.to_string()) else { return };
        let number = blockers.lingering(age);
        let lingers = delete && number >= LINGERING;
        let text = run_stuck(&format!("{} {name}", self.noun()), age, delete && !lingers);
        self.hourly_event(EventType::Warning, RUN_STUCK, || text);
        if lingers {
            self.hourly_event(EventType::Warning, "StuckRunsLinger", || stuck_runs_linger(number));
        }
    }

    /// Whether the last Jobs failed, as many as the policy allows. Says so.
    pub(super) fn is_paused(&mut self, limit: usize) -> bool {
        let succeeded = self.observation.children().filter(|job| job.succeeded);
        let success = succeeded.map(|job| job.completion_time.unwrap_or_else(|| job.began())).max();
        let success = success.max(self.draft.status.last_successful_time);
        let has_failed =
            |job: &&Arc<Job>| job.finished == Some(FinishedCondition::Failed) && !job.deleting && !job.of_backfill;
        let failures = self.observation.children().filter(has_failed).filter(|job| Some(job.began()) > success).count();
        if failures >= limit {
            let noun = self.noun();
            self.hourly_event(EventType::Warning, PAUSED, || paused(noun, limit));
        }
        failures >= limit
    }

    /// Leaves out a slot because of the failures before it. With `after-change: wait` it does not start later either.
    pub(super) fn skip_for_failures(&mut self, slot: DateTime<Utc>) -> Outcome {
        self.draft.verdict = Verdict::Skipped(Skip::Paused(slot));
        if self.limits.waits_after_change {
            self.draft.counted(self.draft.base.counted_at(slot));
        }
        self.wait_for_next_slot()
    }

    /// Adds the deletions of the running Jobs that the Job of the slot replaces, if the policy says so. With `replace-waits` the
    /// slot waits until every child is gone, as far as a live read shows.
    pub(super) fn replace(&mut self, attempt: &mut Attempt) -> Decided<()> {
        let waits = self.limits.replace_waits;
        if !waits && self.draft.base.spec.concurrency_policy != ConcurrencyPolicy::Replace {
            return Ok(());
        }
        let (rescued, status) = (attempt.deleted(), &self.draft.status);
        let active = status.active.iter().filter(|reference| waits || !rescued.contains(&reference.uid));
        let mut present: Vec<_> =
            active.map(|reference| (reference.uid.clone(), self.name_of(&reference.name))).collect();
        if waits {
            let others = self.observation.children().filter(|job| job.finished.is_none() || job.deleting);
            for job in others.filter(|job| !job.of_backfill && !status.in_active_list(&job.uid)) {
                present.push((job.uid.clone(), job.name.clone()));
            }
        }
        self.ask_for_jobs(present.iter().map(|(_, name)| name))?;
        let propagation = if waits { Propagation::Foreground } else { Propagation::Background };
        let mut waits_for = None;
        for (uid, name) in present {
            let (deleting, unfinished) = match self.observation.live_job_of(&name, &uid) {
                Ok(LiveJob::Found(job)) => (job.deleting, job.finished.is_none()),
                Ok(LiveJob::Unreadable) => (false, true),
                Ok(LiveJob::Gone) => {
                    self.draft.remove_active(&uid);
                    continue;
                }
                Err(error) => {
                    attempt.then = Then::GiveUp(error.clone());
                    return Ok(());
                }
            };
            if waits && (deleting || unfinished) {
                waits_for.get_or_insert_with(|| Arc::clone(&name.name));
            }
            // One that is being deleted is gone but for a finalizer.
            if !deleting && (unfinished || !waits) && !rescued.contains(&uid) {
                attempt.victims.push(Victim { name, uid, propagation });
            }
        }
        if let Some(name) = waits_for {
            attempt.then = Then::Wait(name);
        }
        Ok(())
    }

    /// Records that the slot waits until the Jobs that it replaces are gone, `name` among them.
    pub(super) fn wait_for_replaced(&mut self, name: &str, slot: DateTime<Utc>) -> Outcome {
        let text = still_replacing(self.noun(), &format!("{} {name}", self.noun()));
        self.hourly_event(EventType::Normal, "JobAlreadyActive", || text);
        self.draft.verdict = Verdict::Skipped(Skip::Replacing(slot));
        self.draft.blocked_from_due = self.blockers().is_blocked_from_due(slot);
        let next = self.deadline_of(slot).into_iter().chain(self.passed_over_at(slot)).min();
        self.wait_until(next)
    }

    /// No slot may be due because the last one's starting deadline has passed: such slots are not found as those to start.
    pub(super) fn nothing_due(&mut self) -> Verdict {
        if self.draft.base.spec.starting_deadline_seconds.is_none() {
            return Verdict::NothingDue;
        }
        let found = self.find_starts(false).ok().and_then(|found| found.most_recent);
        let Some(slot) = found else { return Verdict::NothingDue };
        // Its create has no answer, so it may have its Job.
        if self.observation.recalled.pending_create.is_some_and(|pending| pending.slot == slot) {
            return Verdict::Open;
        }
        let blocker = self.blockers().blocker(slot);
        if blocker.is_none() && self.waited_to_replace() {
            self.hourly_event(EventType::Warning, "MissSchedule", || missed_schedule(slot));
        }
        Verdict::Skipped(blocker.unwrap_or(Skip::Deadline(slot)))
    }

    /// Whether the Job of `slot`, whose deadline has passed, would have had to wait for another to go.
    fn waited_to_replace(&self) -> bool {
        let exists = |job: &Arc<Job>| job.finished.is_none() || job.deleting;
        self.limits.replace_waits && (!self.draft.status.active.is_empty() || self.observation.children().any(exists))
    }

    /// The first second after the starting deadline of `slot`.
    fn deadline_of(&self, slot: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let seconds = TimeDelta::try_seconds(self.draft.base.spec.starting_deadline_seconds?.saturating_add(1))?;
        self.draft.base.due(slot).checked_add_signed(seconds)
    }

    /// Finds the newest slot that may be due. What it finds is kept for [`Self::next_slot`], which would search for it again.
    pub(super) fn find_starts(&mut self, include_deadline: bool) -> Result<MostRecent, InvalidSchedule> {
        let (schedule, now) = (self.schedule.as_ref().ok_or(InvalidSchedule)?, self.nominal_now());
        let found = missed::most_recent_schedule_time(&self.observed(), now, schedule, include_deadline);
        self.starts = found.ok();
        found
    }

    /// When the next slot is due.
    pub(super) fn next_slot(&self) -> Option<DateTime<Utc>> {
        let (schedule, known) = (self.schedule.as_ref()?, self.starts.as_ref());
        let slot = missed::next_requeue_time(&self.observed(), self.nominal_now(), schedule, known)?;
        Some(self.draft.base.due(slot))
    }

    pub(super) fn wait_for_next_slot(&self) -> Outcome {
        self.next_slot().map_or(Outcome::Done, Outcome::Requeue)
    }

    /// Requeues at the next slot, or at `time` if that is earlier and in the future.
    fn wait_until(&self, time: Option<DateTime<Utc>>) -> Outcome {
        let outcome = self.wait_for_next_slot();
        let Some(time) = time.filter(|time| *time > self.now) else { return outcome };
        Outcome::Requeue(outcome.requeue_at().map_or(time, |next| next.min(time)))
    }
}
