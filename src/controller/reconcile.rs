//! Decides what a sync of a CronJob does, and concludes from the answers, as pure functions.
//!
//! Guarantees: no I/O, no clock, no randomness; the same [`Observation`] and `now` give the same [`Decision`]. [`decide`] asks for
//! live reads until it knows what it needs, and then says what is done about the due slot. [`conclude`] takes the answers and says
//! what is written, recorded and pruned, and when the CronJob is looked at next.
//!
//! A Job is created before anything is pruned and before any status is written. With `settle_later`, pruning and the
//! status are left to a later sync, so that Jobs of other CronJobs are created first. Only Jobs that are replaced, or stuck, are
//! deleted before: no new Job may start beside them.
//!
//! docs/divergences.md lists where this differs from upstream.
#![allow(clippy::result_large_err, reason = "most syncs end without an attempt; a box would be an allocation in each")]

mod backlog;
mod changes;
mod children;
mod conclusion;
mod publish;
mod running;

pub use self::backlog::IN_TIME;
pub use self::conclusion::{Conclusion, conclude};
pub use self::running::old_at;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use apimachinery::quoting::quote;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::Evaluation;
use schedule::missed::{Missed, MostRecent, Observed};

use super::history::newest_unrecorded;
use super::messages::{FROZEN, HANDED_OVER, NO_SLOT_LEFT, TOO_MANY_MISSED, frozen, handed_over, unsupported_schedule};
use super::observation::{Observation, Ownership, PendingCreate};
use super::plan::{Attempt, Failure, Lookup, Outcome, RecentEvent, Skip, Then, Verdict};
use super::status::Draft;
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, Job};
use crate::api::manage::Standing;
use crate::api::policy::{Limits, PolicyError};
use crate::api::{EventType, ObjectName, Uid};

/// A freeze that ends this soon is no news: a thaw is written as one that ends within a second, and clocks differ.
const LAST_OF_A_FREEZE: TimeDelta = TimeDelta::seconds(5);

/// What a sync does next.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation in every sync that finds nothing to do")]
pub enum Decision<'a> {
    /// It reads from the API server, and decides again. The reads are independent of each other.
    Read(Vec<Lookup>),
    /// It makes the attempt, if there is one, and [concludes](conclude).
    Act(Course<'a>),
}

/// A sync for which everything is decided that does not depend on the answers to its attempt.
#[derive(Debug)]
pub struct Course<'a> {
    sync: Sync<'a>,
    /// The attempt to start a slot, or how the sync ends without one.
    start: Result<Attempt, Outcome>,
}

impl<'a> Course<'a> {
    /// What is done about the due slot.
    pub fn attempt(&self) -> Option<&Attempt> {
        self.start.as_ref().ok()
    }

    /// The CronJob version that this was decided on.
    pub fn cron_job(&self) -> &'a Arc<CronJob> {
        self.sync.draft.base
    }
}

/// Why there is no attempt.
#[allow(clippy::large_enum_variant, reason = "the small one is rare")]
enum Stop {
    /// A request has to be made first.
    Needs(Vec<Lookup>),
    /// The sync ends; the decisions made so far are kept.
    Ends(Outcome),
}

type Decided<T> = Result<T, Stop>;

fn needs<T>(lookups: Vec<Lookup>) -> Decided<T> {
    Err(Stop::Needs(lookups))
}

fn ends<T>(outcome: Outcome) -> Decided<T> {
    Err(Stop::Ends(outcome))
}

fn failed<T>(failure: impl Into<Failure>) -> Decided<T> {
    ends(Outcome::Failed(failure.into()))
}

/// Decides what the sync of one CronJob does next.
pub fn decide(observation: &Observation, now: DateTime<Utc>) -> Decision<'_> {
    let mut draft = Draft::new(&observation.cron_job, &observation.recalled);
    // Once the CronJob was read live, every decision is made on that version, those about the history included.
    if let Some(Ok(live)) = &observation.live.cron_job
        && live.uid == draft.base.uid
    {
        draft.rebase(live);
    }
    let mut sync = Sync {
        observation,
        now,
        limits: draft.base.limits(),
        schedule: draft.base.schedule(observation.local_zone).map(Evaluation::of),
        draft,
        beyond_history: Vec::new(),
        left_out: HashSet::new(),
        by_uid: OnceCell::new(),
        fired: false,
        starts: None,
    };
    let start = match sync.find_attempt() {
        Ok(attempt) => Ok(attempt),
        Err(Stop::Ends(outcome)) => Err(outcome),
        Err(Stop::Needs(lookups)) => return Decision::Read(lookups),
    };
    Decision::Act(Course { sync, start })
}

#[derive(Debug)]
struct Sync<'a> {
    observation: &'a Observation,
    now: DateTime<Utc>,
    /// The policies of the CronJob that choose no slots.
    limits: Limits,
    /// The schedule with its policies, if both can be read. All searches of a sync take from one count of steps.
    schedule: Option<Evaluation<'a>>,
    draft: Draft<'a>,
    /// The finished Jobs beyond the history limits; none for a sync that failed before their success was recorded.
    beyond_history: Vec<Arc<Job>>,
    /// Those of them that were active, and whose end is not reported if they are deleted.
    left_out: HashSet<Uid>,
    /// The children of a CronJob that has many.
    by_uid: OnceCell<HashMap<&'a Uid, &'a Arc<Job>>>,
    /// This sync started a Job, or found that an earlier one had.
    fired: bool,
    /// What `find_starts` found last.
    starts: Option<MostRecent>,
}

impl Sync<'_> {
    fn find_attempt(&mut self) -> Decided<Attempt> {
        self.take_note_of_vanished_jobs();
        match &self.observation.live.cron_job {
            Some(Err(error)) if self.decides_on_live() => return failed(error.clone()),
            Some(Ok(live)) if live.uid != self.draft.base.uid => return failed(Failure::Recreated(live.name.clone())),
            _ => {}
        }
        let before = self.count_slots();
        self.adopt_own_children();
        if let Some(before) = before {
            self.tell_of_passed_slots(before);
        }
        if let Ownership::Released { begun: Some(slot) } = self.observation.ownership {
            // Its create has no known result. Where creates may still be sent, another one answers this instead.
            let name = self.job_of(slot);
            if !self.observation.jobs.iter().any(|job| job.name == name) {
                self.adopt_live(&name, slot)?;
            }
        }
        self.leave_out_pruned_jobs();
        self.walk_children()?;
        self.drop_missing_jobs()?;
        self.check_spec()?;
        self.choose_slot()
    }

    /// Whether a Job is created only from a CronJob version that was read live: the cache may be stale, or does not
    /// hold the template.
    fn decides_on_live(&self) -> bool {
        self.observation.view_is_suspect || self.observation.cron_job.spec.job_template.omitted_bytes().is_some()
    }

    /// A child whose name and scheduled-timestamp agree was made by a CronJob controller, which may have died before
    /// its status write. The child's slot is taken, and the child is active until it finishes.
    fn adopt_own_children(&mut self) {
        for job in self.observation.children() {
            if let Some(slot) = job.slot_of(&self.observation.cron_job) {
                self.draft.adopt(job, slot);
            }
        }
    }

    /// Adopts the Job of that name, if it is there and a child.
    fn adopt_live(&mut self, name: &ObjectName, slot: DateTime<Utc>) -> Decided<()> {
        self.ask_for_jobs([name])?;
        match self.observation.live_job(name) {
            Some(Ok(job)) if job.is_child_of(self.draft.base) => self.draft.adopt(job, slot),
            Some(Err(error)) if !error.is_not_found() => return failed(error.clone()),
            _ => {}
        }
        Ok(())
    }

    /// Ends the sync unless Jobs are to be started by the schedule.
    fn check_spec(&mut self) -> Decided<()> {
        let cron_job = self.draft.base;
        if cron_job.deleting || self.is_taken_back() {
            return ends(Outcome::Done);
        }
        let timing = cron_job.timing(self.observation.local_zone);
        if let Err(error) = &timing.time_zone {
            let zone = cron_job.spec.recurrence.time_zone().unwrap_or_default();
            self.draft.warning("UnknownTimeZone", format!("invalid timeZone: {}: {error}", quote(zone)));
            return self.wait_for_an_edit(Skip::Invalid);
        }
        if cron_job.spec.suspend {
            // Where no CronJob is shared this counts, although one that is handed over has it only for the in-tree controller.
            if self.observation.ownership == Ownership::Exclusive && Standing::of(cron_job, false).is_handed_over() {
                let noun = self.noun();
                self.hourly_event(EventType::Warning, HANDED_OVER, || handed_over(noun, &cron_job.name));
            }
            return self.wait_for_an_edit(Skip::Suspended);
        }
        if let Some(restriction) = cron_job.restriction()
            && let Some(until) = restriction.frozen_until(self.now + LAST_OF_A_FREEZE)
        {
            let text = || frozen(&cron_job.name.namespace, until, restriction.reason.as_deref());
            // Another time is news.
            let told = RecentEvent { reason: FROZEN, until: Some(until), at: self.now };
            self.draft.hourly_event(&self.observation.recalled.memo.recent_events, told, EventType::Normal, text);
        }
        if timing.zone_in_schedule && cron_job.controller_kind.has_time_zone {
            self.draft.warning("UnsupportedSchedule", unsupported_schedule(cron_job.spec.recurrence.schedule()));
        }
        if let Err(error) = &timing.schedule {
            let text = format!("unparseable schedule: {} : {error}", quote(cron_job.spec.recurrence.schedule()));
            self.draft.warning("UnparseableSchedule", text);
            return self.wait_for_an_edit(Skip::Invalid);
        }
        if let Err(error) = cron_job.policy() {
            if matches!(error, PolicyError::Namespace(_)) {
                // One edit of a Namespace concerns all its CronJobs.
                self.hourly_event(EventType::Warning, "InvalidPolicy", || error.to_string());
            } else {
                self.draft.warning("InvalidPolicy", error.to_string());
            }
            return self.wait_for_an_edit(Skip::Invalid);
        }
        Ok(())
    }

    /// Chooses among the due slots.
    fn choose_slot(&mut self) -> Decided<Attempt> {
        let is_paused = self.limits.pause_after_failures.is_some_and(|limit| self.is_paused(limit));
        if let Some(most) = self.limits.backlog.filter(|most| *most > 0) {
            self.warn_of_overtaken_slots(most);
        }
        match self.find_starts(true) {
            // The Event about the freeze says why nothing starts.
            Err(_) if self.is_frozen() => {
                self.draft.verdict = Verdict::NothingDue;
                ends(Outcome::Done)
            }
            Err(error) => {
                let recurrence = &self.draft.base.spec.recurrence;
                let own = self.draft.base.timing(self.observation.local_zone).schedule.as_ref().ok();
                let searched = self.schedule.as_ref().map(Evaluation::schedule);
                let is_own = own.zip(searched).is_some_and(|(own, searched)| std::ptr::eq(searched, own));
                let cause = if is_own { error.to_string() } else { NO_SLOT_LEFT.to_owned() };
                let text = format!("invalid schedule: {} : {cause}", recurrence.schedule());
                self.draft.warning("InvalidSchedule", text);
                self.wait_for_an_edit(Skip::Invalid)
            }
            Ok(MostRecent { most_recent: None, .. }) => {
                self.draft.verdict = self.nothing_due();
                ends(self.wait_for_next_slot())
            }
            Ok(MostRecent { most_recent: Some(slot), .. }) if is_paused => ends(self.skip_for_failures(slot)),
            Ok(MostRecent { most_recent: Some(slot), missed, .. }) => {
                if missed == Missed::Many {
                    self.draft.warning("TooManyMissedTimes", TOO_MANY_MISSED.to_owned());
                }
                let (slot, next) = match self.limits.backlog {
                    Some(0) if self.is_passed_over(slot) => return ends(self.pass_over(slot)),
                    None | Some(0) => (slot, None),
                    Some(most) => self.oldest_waiting(most, slot),
                };
                // With a backlog the oldest starts, and nothing was missed before it.
                let missed = if next.is_none() { missed } else { Missed::None };
                match self.start_job_of(slot, missed) {
                    Ok(attempt) => Ok(Attempt { next: attempt.next.or(next), ..attempt }),
                    Err(Stop::Ends(outcome)) => ends(self.and_then(slot, next, outcome)),
                    Err(needs) => Err(needs),
                }
            }
        }
    }

    fn start_job_of(&mut self, slot: DateTime<Utc>, missed: Missed) -> Decided<Attempt> {
        let cron_job = self.draft.base;
        let spec = &cron_job.spec;
        if is_too_late(slot, spec.starting_deadline_seconds, self.nominal_now()) {
            self.draft.verdict = Verdict::Skipped(Skip::Deadline(slot));
            self.draft.warning("MissSchedule", missed_schedule(slot));
            return ends(self.wait_for_next_slot());
        }
        let name = self.job_of(slot);
        let running = self.draft.status.active.iter().any(|reference| reference.name == *name.name);
        if running || self.draft.status.last_schedule_time == Some(slot) {
            self.draft.verdict = Verdict::NothingDue;
            return ends(self.wait_for_next_slot());
        }
        if let Some(blocker) = self.blockers().blocker(slot) {
            return ends(self.skip_for(blocker, slot));
        }
        self.draft.startable = Some(slot);
        if self.decides_on_live() && self.observation.live.cron_job.is_none() {
            return needs(vec![Lookup::CronJob]);
        }
        if let Some(earlier) = self.settle_earlier_create(slot)? {
            return Ok(earlier);
        }
        if let Some(blocker) = self.blockers().blocker(slot) {
            return ends(self.skip_for(blocker, slot));
        }
        let last = self.draft.status.last_schedule_time;
        let stray = self.observation.recalled.pending_create.and_then(|pending| pending.stray_wait(last));
        let open = self.observation.open_creates_wait.max(stray);
        if let Some(wait) = open.filter(|_| self.an_open_create_may_interfere(slot)) {
            return ends(self.come_back_after(wait));
        }
        let mut attempt = Attempt { slot, victims: Vec::new(), then: Then::Create { name, missed }, next: None };
        if self.blockers().has_victims() {
            self.rescue(&mut attempt)?;
        }
        if matches!(attempt.then, Then::Create { .. }) {
            self.replace(&mut attempt)?;
        }
        Ok(attempt)
    }

    /// Under Forbid and Replace, no slot starts while the create of another one may still be committed: the two Jobs
    /// would run at the same time. Repeating the earlier create gives its result. If the slot may not start, since its
    /// starting deadline has passed, the schedule or a policy was changed, or the clock was set back, the sync waits until the
    /// create can no longer be committed, and then reads the Job.
    fn settle_earlier_create(&mut self, slot: DateTime<Utc>) -> Decided<Option<Attempt>> {
        let cron_job = self.draft.base;
        let unknown =
            |pending: &PendingCreate| pending.slot != slot && self.draft.status.last_schedule_time < Some(pending.slot);
        let Some(pending) = self.observation.recalled.pending_create.filter(unknown) else { return Ok(None) };
        if !matches!(cron_job.spec.concurrency_policy, ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace)
            && self.limits.max_concurrent.is_none()
        {
            return Ok(None);
        }
        let name = self.job_of(pending.slot);
        if self.observation.jobs.iter().any(|job| job.name == name) {
            return Ok(None);
        }
        if let Some(wait) = pending.wait {
            let is_late = is_too_late(pending.slot, cron_job.spec.starting_deadline_seconds, self.nominal_now());
            let is_decided = cron_job.decided_until(&self.draft.status, self.now) >= Some(pending.slot);
            let has_slot = self.schedule.as_ref().is_some_and(|schedule| schedule.has(pending.slot));
            if is_late || is_decided || pending.slot > slot || !has_slot {
                // The Job of that slot may be the one that is in the way.
                self.draft.startable = None;
                return ends(self.come_back_after(wait));
            }
            // The next sync starts the slot that is due now.
            let then = Then::Create { name, missed: Missed::None };
            let mut attempt = Attempt { slot: pending.slot, victims: Vec::new(), then, next: Some(slot) };
            self.replace(&mut attempt)?;
            return Ok(Some(attempt));
        }
        self.adopt_live(&name, pending.slot)?;
        if self.draft.status.last_schedule_time >= Some(slot) {
            (self.draft.verdict, self.draft.startable) = (Verdict::NothingDue, None);
            return ends(self.wait_for_next_slot());
        }
        Ok(None)
    }

    /// Whether a create that was sent earlier could be committed beside the next step. Under Forbid and Replace this is
    /// the create of an earlier slot without a visible Job. For a Job that is to be deleted it is a repeat of its own
    /// create.
    fn an_open_create_may_interfere(&self, slot: DateTime<Utc>) -> bool {
        let status = &self.draft.status;
        let has_earlier = || {
            let from = status.last_schedule_time.unwrap_or(self.draft.base.creation_timestamp);
            let first = self.schedule.as_ref().and_then(|schedule| schedule.next_after(from));
            first.is_some_and(|first| first < slot)
        };
        match self.draft.base.spec.concurrency_policy {
            _ if self.blockers().has_victims() => true,
            _ if self.limits.max_concurrent.is_some() => has_earlier(),
            ConcurrencyPolicy::Allow | ConcurrencyPolicy::Unknown => false,
            ConcurrencyPolicy::Forbid => has_earlier(),
            ConcurrencyPolicy::Replace => !status.active.is_empty() || has_earlier(),
        }
    }

    /// Decides nothing about the due slots, and requeues after `wait`, or at the next slot if that is earlier.
    fn come_back_after(&self, wait: TimeDelta) -> Outcome {
        let back = self.now.checked_add_signed(wait).unwrap_or(self.now);
        let next = self.wait_for_next_slot().requeue_at();
        Outcome::Requeue(next.map_or(back, |next| next.min(back)))
    }

    /// Only an edit of the CronJob, or a clock that is set back, starts the next sync.
    fn wait_for_an_edit<T>(&mut self, why: Skip) -> Decided<T> {
        self.draft.verdict = Verdict::Skipped(why);
        ends(Outcome::Done)
    }

    fn observed(&self) -> Observed {
        self.draft.base.observed(&self.draft.status, self.now)
    }

    /// The newest time whose slot may start now: slots are searched as if the clock were behind by the CronJob's offset.
    fn nominal_now(&self) -> DateTime<Utc> {
        self.draft.base.nominal(self.now)
    }

    fn is_frozen(&self) -> bool {
        self.draft.base.restriction().is_some_and(|restriction| restriction.frozen_until(self.now).is_some())
    }

    /// Adds an Event about held slots, once an hour.
    fn hourly_event(&mut self, type_: EventType, reason: &'static str, message: impl FnOnce() -> String) {
        let known = &self.observation.recalled.memo.recent_events;
        self.draft.hourly_event(known, RecentEvent { reason, until: None, at: self.now }, type_, message);
    }

    fn is_taken_back(&self) -> bool {
        matches!(self.observation.ownership, Ownership::Released { .. })
    }

    fn noun(&self) -> &'static str {
        self.draft.base.controller_kind.noun
    }

    /// The key of the Job of a slot.
    fn job_of(&self, slot: DateTime<Utc>) -> ObjectName {
        let cron_job = self.draft.base;
        self.name_of(&cron_job.controller_kind.child_name(&cron_job.name.name, slot))
    }

    /// The key of a Job, which is always in its CronJob's namespace.
    fn name_of(&self, job: &str) -> ObjectName {
        ObjectName::new(Arc::clone(&self.draft.base.name.namespace), job)
    }

    fn ask_for_jobs<'n>(&self, names: impl IntoIterator<Item = &'n ObjectName>) -> Decided<()> {
        let mut asked = HashSet::new();
        let unknown: Vec<_> = names
            .into_iter()
            .filter(|name| self.observation.live_job(name).is_none() && asked.insert(*name))
            .map(|name| Lookup::Job(name.clone()))
            .collect();
        if unknown.is_empty() { Ok(()) } else { needs(unknown) }
    }
}

fn missed_schedule(slot: DateTime<Utc>) -> String {
    format!("Missed scheduled time to start a job: {}", slot.format("%a, %d %b %Y %H:%M:%S UTC"))
}

/// Whether the starting deadline of `slot` has passed. A deadline beyond the calendar never passes. For a CronJob with an
/// offset, `now` is the [nominal](crate::api::batch_v1::CronJob::nominal) time.
pub fn is_too_late(slot: DateTime<Utc>, deadline_seconds: Option<i64>, now: DateTime<Utc>) -> bool {
    deadline_seconds
        .and_then(TimeDelta::try_seconds)
        .and_then(|deadline| slot.checked_add_signed(deadline))
        .is_some_and(|deadline| deadline < now)
}

#[cfg(test)]
mod tests;
