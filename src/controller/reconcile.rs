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
use std::ops::ControlFlow;
use std::sync::Arc;

use apimachinery::quoting::quote;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::{Missed, MostRecent, Observed};
use schedule::{Evaluation, Schedule};

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
    start: Start<'a>,
}

/// How the sync ends without an attempt to start a slot, or the attempt and its schedule.
type Start<'a> = ControlFlow<Outcome, (Attempt, &'a Schedule)>;

impl<'a> Course<'a> {
    /// What is done about the due slot.
    pub fn attempt(&self) -> Option<&Attempt> {
        if let ControlFlow::Continue((attempt, _)) = &self.start { Some(attempt) } else { None }
    }

    /// The CronJob version that this was decided on.
    pub fn cron_job(&self) -> &'a Arc<CronJob> {
        self.sync.draft.base
    }
}

/// Why a decision stops early.
#[allow(clippy::large_enum_variant, reason = "it is in a box")]
enum Stop {
    /// A request has to be made first.
    Needs(Vec<Lookup>),
    /// A request failed; the decisions made so far are kept.
    Failed(Failure),
}

/// Boxed, because the hot path has no stop.
type Decided<T> = Result<T, Box<Stop>>;

/// An attempt to start a slot, or how the sync ends without one.
type Choose = ControlFlow<Outcome, Attempt>;

fn needs<T>(lookups: Vec<Lookup>) -> Decided<T> {
    Err(Box::new(Stop::Needs(lookups)))
}

fn failed<T>(failure: impl Into<Failure>) -> Decided<T> {
    Err(Box::new(Stop::Failed(failure.into())))
}

/// Decides what the sync of one CronJob does next.
pub fn decide(observation: &Observation, now: DateTime<Utc>) -> Decision<'_> {
    let mut sync = Sync::new(observation, now);
    match sync.run().map_err(|stop| *stop) {
        Ok(start) => Decision::Act(Course { sync, start }),
        Err(Stop::Failed(failure)) => {
            Decision::Act(Course { sync, start: ControlFlow::Break(Outcome::Failed(failure)) })
        }
        Err(Stop::Needs(lookups)) => Decision::Read(lookups),
    }
}

#[derive(Debug)]
struct Sync<'a> {
    observation: &'a Observation,
    now: DateTime<Utc>,
    /// The policies of the CronJob that choose no slots.
    limits: Limits,
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
    /// The count of steps of all searches for slots so far, while none is under way.
    evaluation: Option<Evaluation<'a>>,
}

impl<'a> Sync<'a> {
    fn new(observation: &'a Observation, now: DateTime<Utc>) -> Self {
        let mut draft = Draft::new(&observation.cron_job, &observation.recalled);
        // Once the CronJob was read live, every decision is made on that version, those about the history included.
        if let Some(Ok(live)) = &observation.live.cron_job
            && live.uid == draft.base.uid
        {
            draft.rebase(live);
        }
        let limits = draft.base.limits();
        Self {
            observation,
            now,
            limits,
            draft,
            beyond_history: Vec::new(),
            left_out: HashSet::new(),
            by_uid: OnceCell::new(),
            fired: false,
            starts: None,
            evaluation: None,
        }
    }

    fn run(&mut self) -> Decided<Start<'a>> {
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
        if self.drop_missing_jobs()?.is_break() {
            // References to Jobs that are gone must not hold a slot.
            return Ok(ControlFlow::Break(Outcome::Again));
        }
        let schedule = match self.usable_schedule() {
            ControlFlow::Break(outcome) => return Ok(ControlFlow::Break(outcome)),
            ControlFlow::Continue(schedule) => schedule,
        };
        Ok(self.search(schedule, Self::choose_slot)?.map_continue(|attempt| (attempt, schedule)))
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

    /// Searches for slots of the CronJob's schedule. All searches of a sync take from one count of steps.
    fn search<T>(&mut self, schedule: &'a Schedule, search: impl FnOnce(&mut Self, &Evaluation<'a>) -> T) -> T {
        let evaluation = self.evaluation.take().unwrap_or_else(|| Evaluation::of(schedule));
        let found = search(self, &evaluation);
        self.evaluation = Some(evaluation);
        found
    }

    /// The schedule with its policies, if Jobs are to be started by it.
    fn usable_schedule(&mut self) -> ControlFlow<Outcome, &'a Schedule> {
        let cron_job = self.draft.base;
        if cron_job.deleting || self.is_taken_back() {
            return ControlFlow::Break(Outcome::Done);
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
            self.hourly_event_until(EventType::Normal, FROZEN, text, Some(until));
        }
        if timing.zone_in_schedule && cron_job.controller_kind.has_time_zone {
            self.draft.warning("UnsupportedSchedule", unsupported_schedule(cron_job.spec.recurrence.schedule()));
        }
        let own = match &timing.schedule {
            Ok(schedule) => schedule,
            Err(error) => {
                let text = format!("unparseable schedule: {} : {error}", quote(cron_job.spec.recurrence.schedule()));
                self.draft.warning("UnparseableSchedule", text);
                return self.wait_for_an_edit(Skip::Invalid);
            }
        };
        match cron_job.policy() {
            Ok(policy) => ControlFlow::Continue(policy.map_or(own, |policy| policy.schedule(own))),
            Err(error) => {
                if matches!(error, PolicyError::Namespace(_)) {
                    // One edit of a Namespace concerns all its CronJobs.
                    self.hourly_event(EventType::Warning, "InvalidPolicy", || error.to_string());
                } else {
                    self.draft.warning("InvalidPolicy", error.to_string());
                }
                self.wait_for_an_edit(Skip::Invalid)
            }
        }
    }

    /// Chooses among the due slots.
    fn choose_slot(&mut self, schedule: &Evaluation<'_>) -> Decided<Choose> {
        let is_paused = self.limits.pause_after_failures.is_some_and(|limit| self.is_paused(limit));
        if let Some(most) = self.limits.backlog.filter(|most| *most > 0) {
            self.warn_of_overtaken_slots(most, schedule);
        }
        Ok(match self.find_starts(schedule, true) {
            // The Event about the freeze says why nothing starts.
            Err(_) if self.is_frozen() => {
                self.draft.verdict = Verdict::NothingDue;
                ControlFlow::Break(Outcome::Done)
            }
            Err(error) => {
                let recurrence = &self.draft.base.spec.recurrence;
                let timing = self.draft.base.timing(self.observation.local_zone);
                let is_own = timing.schedule.as_ref().is_ok_and(|own| std::ptr::eq(schedule.schedule(), own));
                let cause = if is_own { error.to_string() } else { NO_SLOT_LEFT.to_owned() };
                let text = format!("invalid schedule: {} : {cause}", recurrence.schedule());
                self.draft.warning("InvalidSchedule", text);
                self.wait_for_an_edit(Skip::Invalid)
            }
            Ok(MostRecent { most_recent: None, .. }) => {
                self.draft.verdict = self.nothing_due(schedule);
                ControlFlow::Break(self.wait_for_next_slot(schedule))
            }
            Ok(MostRecent { most_recent: Some(slot), .. }) if is_paused => {
                ControlFlow::Break(self.skip_for_failures(slot, schedule))
            }
            Ok(MostRecent { most_recent: Some(slot), missed, .. }) => {
                if missed == Missed::Many {
                    self.draft.warning("TooManyMissedTimes", TOO_MANY_MISSED.to_owned());
                }
                let (slot, next) = match self.limits.backlog {
                    Some(0) if self.is_passed_over(slot) => {
                        return Ok(ControlFlow::Break(self.pass_over(slot, schedule)));
                    }
                    None | Some(0) => (slot, None),
                    Some(most) => self.oldest_waiting(most, slot, schedule),
                };
                // With a backlog the oldest starts, and nothing was missed before it.
                let missed = if next.is_none() { missed } else { Missed::None };
                match self.start_job_of(slot, missed, schedule)? {
                    ControlFlow::Break(outcome) => ControlFlow::Break(self.and_then(slot, next, outcome)),
                    ControlFlow::Continue(attempt) => {
                        ControlFlow::Continue(Attempt { next: attempt.next.or(next), ..attempt })
                    }
                }
            }
        })
    }

    fn start_job_of(&mut self, slot: DateTime<Utc>, missed: Missed, schedule: &Evaluation<'_>) -> Decided<Choose> {
        let cron_job = self.draft.base;
        let spec = &cron_job.spec;
        if is_too_late(slot, spec.starting_deadline_seconds, self.nominal_now()) {
            self.draft.verdict = Verdict::Skipped(Skip::Deadline(slot));
            self.draft.warning("MissSchedule", missed_schedule(slot));
            return Ok(ControlFlow::Break(self.wait_for_next_slot(schedule)));
        }
        let name = self.job_of(slot);
        let running = self.draft.status.active.iter().any(|reference| reference.name == *name.name);
        if running || self.draft.status.last_schedule_time == Some(slot) {
            self.draft.verdict = Verdict::NothingDue;
            return Ok(ControlFlow::Break(self.wait_for_next_slot(schedule)));
        }
        if let Some(blocker) = self.blocker(slot) {
            return Ok(ControlFlow::Break(self.skip_for(blocker, slot, schedule)));
        }
        self.draft.startable = Some(slot);
        if self.decides_on_live() && self.observation.live.cron_job.is_none() {
            return needs(vec![Lookup::CronJob]);
        }
        if let Some(earlier) = self.settle_earlier_create(slot, schedule)? {
            if earlier.is_break() {
                // The Job of an earlier slot may be the one that is in the way.
                self.draft.startable = None;
            }
            return Ok(earlier);
        }
        if let Some(blocker) = self.blocker(slot) {
            return Ok(ControlFlow::Break(self.skip_for(blocker, slot, schedule)));
        }
        let last = self.draft.status.last_schedule_time;
        let stray = self.observation.recalled.pending_create.and_then(|pending| pending.stray_wait(last));
        let open = self.observation.open_creates_wait.max(stray);
        if let Some(wait) = open.filter(|_| self.an_open_create_may_interfere(slot, schedule)) {
            return Ok(ControlFlow::Break(self.come_back_after(wait, schedule)));
        }
        let mut attempt = Attempt { slot, victims: Vec::new(), then: Then::Create { name, missed }, next: None };
        if self.has_victims() {
            self.rescue(&mut attempt)?;
        }
        if matches!(attempt.then, Then::Create { .. }) {
            if self.limits.replace_waits {
                self.replace_and_wait(&mut attempt)?;
            } else if spec.concurrency_policy == ConcurrencyPolicy::Replace {
                self.delete_replaced_jobs(&mut attempt)?;
            }
        }
        Ok(ControlFlow::Continue(attempt))
    }

    /// Under Forbid and Replace, no slot starts while the create of another one may still be committed: the two Jobs
    /// would run at the same time. Repeating the earlier create gives its result. If the slot may not start, since its
    /// starting deadline has passed, the schedule or a policy was changed, or the clock was set back, the sync waits until the
    /// create can no longer be committed, and then reads the Job.
    fn settle_earlier_create(&mut self, slot: DateTime<Utc>, schedule: &Evaluation<'_>) -> Decided<Option<Choose>> {
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
            if is_late || is_decided || pending.slot > slot || !schedule.has(pending.slot) {
                return Ok(Some(ControlFlow::Break(self.come_back_after(wait, schedule))));
            }
            // The next sync starts the slot that is due now.
            let then = Then::Create { name, missed: Missed::None };
            let mut attempt = Attempt { slot: pending.slot, victims: Vec::new(), then, next: Some(slot) };
            if self.limits.replace_waits {
                self.replace_and_wait(&mut attempt)?;
            } else if cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace {
                self.delete_replaced_jobs(&mut attempt)?;
            }
            return Ok(Some(ControlFlow::Continue(attempt)));
        }
        self.adopt_live(&name, pending.slot)?;
        if self.draft.status.last_schedule_time >= Some(slot) {
            self.draft.verdict = Verdict::NothingDue;
            return Ok(Some(ControlFlow::Break(self.wait_for_next_slot(schedule))));
        }
        Ok(None)
    }

    /// Whether a create that was sent earlier could be committed beside the next step. Under Forbid and Replace this is
    /// the create of an earlier slot without a visible Job. For a Job that is to be deleted it is a repeat of its own
    /// create.
    fn an_open_create_may_interfere(&self, slot: DateTime<Utc>, schedule: &Evaluation<'_>) -> bool {
        let status = &self.draft.status;
        let has_earlier = || {
            let from = status.last_schedule_time.unwrap_or(self.draft.base.creation_timestamp);
            schedule.next_after(from).is_some_and(|first| first < slot)
        };
        match self.draft.base.spec.concurrency_policy {
            _ if self.has_victims() => true,
            _ if self.limits.max_concurrent.is_some() => has_earlier(),
            ConcurrencyPolicy::Allow | ConcurrencyPolicy::Unknown => false,
            ConcurrencyPolicy::Forbid => has_earlier(),
            ConcurrencyPolicy::Replace => !status.active.is_empty() || has_earlier(),
        }
    }

    /// Decides nothing about the due slots, and requeues after `wait`, or at the next slot if that is earlier.
    fn come_back_after(&self, wait: TimeDelta, schedule: &Evaluation<'_>) -> Outcome {
        let back = self.now.checked_add_signed(wait).unwrap_or(self.now);
        let next = self.wait_for_next_slot(schedule).requeue_at();
        Outcome::Requeue(next.map_or(back, |next| next.min(back)))
    }

    /// Only an edit of the CronJob, or a clock that is set back, starts the next sync.
    fn wait_for_an_edit<T>(&mut self, why: Skip) -> ControlFlow<Outcome, T> {
        self.draft.verdict = Verdict::Skipped(why);
        ControlFlow::Break(Outcome::Done)
    }

    fn observed(&self) -> Observed {
        self.draft.base.observed(&self.draft.status, self.now)
    }

    /// The newest time whose slot may start now: slots are searched as if the clock were behind by the CronJob's offset.
    fn nominal_now(&self) -> DateTime<Utc> {
        self.draft.base.nominal(self.now)
    }

    /// Whether a policy is set that holds slots, or says what becomes of held ones.
    fn has_limits(&self) -> bool {
        Limits { waits_after_change: false, slot_in_pod: false, ..self.limits } != Limits::default()
    }

    fn is_frozen(&self) -> bool {
        self.draft.base.restriction().is_some_and(|restriction| restriction.frozen_until(self.now).is_some())
    }

    /// Adds an Event about held slots, once an hour.
    fn hourly_event(&mut self, type_: EventType, reason: &'static str, message: impl FnOnce() -> String) {
        self.hourly_event_until(type_, reason, message, None);
    }

    /// The same of slots that are held until a time; another time is news.
    fn hourly_event_until(
        &mut self,
        type_: EventType,
        reason: &'static str,
        message: impl FnOnce() -> String,
        until: Option<DateTime<Utc>>,
    ) {
        let (known, told) =
            (&self.observation.recalled.memo.recent_events, RecentEvent { reason, until, at: self.now });
        self.draft.hourly_event(known, told, type_, message);
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
