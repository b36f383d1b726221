//! Decides the next step of a CronJob's sync, as a pure function of its observation.
//!
//! Guarantees: no I/O, no clock, no randomness; the same [`Observation`] and `now` give the same [`Plan`]. A sync calls
//! [`reconcile`], carries out the plan, adds the answers to the observation and calls again, until the plan is to
//! settle. Every answer becomes part of the observation, so every decision rests on recorded facts. The order of
//! requests can change without changing a decision.
//!
//! A Job is created before anything is pruned and before any status is written. With `settle_later`, pruning and the
//! status are left to a later sync, so that Jobs of other CronJobs are created first. Only Replace deletes first: no
//! new Job may start before the Job that it replaces is deleted.
//!
//! Matches upstream `pkg/controller/cronjob/cronjob_controllerv2.go` (`syncCronJob`, `cleanupFinishedJobs`), except for
//! the divergences listed in docs/divergences.md.

mod backlog;
mod changes;
mod children;
mod publish;
mod running;

pub(super) use self::backlog::IN_TIME;
pub use self::running::old_at;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use apimachinery::quoting::quote;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::Evaluation;
use schedule::missed::{Missed, MostRecent, Observed};

use super::conditions;
use super::history::{MOST_PRUNED, history_victims, newest_unrecorded};
use super::messages::{
    HANDED_OVER, NO_SLOT_LEFT, PAUSED, RUN_STUCK, TOO_MANY_MISSED, handed_over, unsupported_schedule,
};
use super::observation::{CreateReply, Observation, Ownership, PendingCreate};
use super::plan::{Failure, Lookup, Outcome, Plan, Requeue, Settlement, Skip, Verdict};
use super::status::Draft;
use crate::api::batch_v1::{ConcurrencyPolicy, Job};
use crate::api::manage::Standing;
use crate::api::policy::Limits;
use crate::api::{ApiError, EventType, ObjectName, Uid};
use backlog::Choice;

/// Why a decision stops early.
#[allow(clippy::large_enum_variant, reason = "it is in a box")]
enum Stop {
    /// A request has to be made first.
    Needs(Plan),
    /// A request failed; the decisions made so far are kept.
    Failed(Failure),
}

/// Boxed, because the hot path has no stop.
type Decided<T> = Result<T, Box<Stop>>;

fn needs<T>(plan: Plan) -> Decided<T> {
    Err(Box::new(Stop::Needs(plan)))
}

fn failed<T>(failure: impl Into<Failure>) -> Decided<T> {
    Err(Box::new(Stop::Failed(failure.into())))
}

/// Decides what the sync of one CronJob does next.
pub fn reconcile(observation: &Observation, now: DateTime<Utc>) -> Plan {
    let mut sync = Sync::new(observation, now);
    match sync.run().map_err(|stop| *stop) {
        Ok(outcome) => sync.finish(outcome),
        Err(Stop::Failed(failure)) => sync.finish(Outcome::Failed(failure)),
        Err(Stop::Needs(plan)) => plan,
    }
}

struct Sync<'a> {
    observation: &'a Observation,
    now: DateTime<Utc>,
    /// The policies of the CronJob that choose no slots.
    limits: Limits,
    draft: Draft<'a>,
    /// The finished Jobs beyond the history limits.
    beyond_history: Vec<Arc<Job>>,
    /// The children of a CronJob that has many.
    by_uid: OnceCell<HashMap<&'a Uid, &'a Arc<Job>>>,
    /// This sync started a Job, or found that an earlier one had.
    fired: bool,
    /// What `find_starts` found last.
    starts: Option<MostRecent>,
}

impl<'a> Sync<'a> {
    fn new(observation: &'a Observation, now: DateTime<Utc>) -> Self {
        let mut draft = Draft::new(&observation.cron_job, &observation.carried);
        // Once the CronJob was read live, every decision is made on that version, those about the history included.
        if let Some(Ok(live)) = &observation.live_cron_job
            && live.uid == draft.base.uid
        {
            draft.rebase(live);
        }
        let beyond_history = history_victims(observation, draft.base);
        let limits = draft.base.limits();
        Self { observation, now, limits, draft, beyond_history, by_uid: OnceCell::new(), fired: false, starts: None }
    }

    fn run(&mut self) -> Decided<Outcome> {
        self.take_note_of_vanished_jobs();
        match &self.observation.live_cron_job {
            Some(Err(error)) if self.decides_on_live() => return failed(error.clone()),
            Some(Ok(live)) if live.uid != self.draft.base.uid => return failed(Failure::Recreated(live.name.clone())),
            _ => {}
        }
        let before = self.count_slots();
        self.adopt_own_children();
        self.tell_of_passed_slots(before);
        self.adopt_begun_job()?;
        self.forget_pruned_jobs();
        self.walk_children()?;
        self.drop_missing_jobs()?;
        if self.draft.looks_again {
            // References to Jobs that are gone must not hold a slot.
            return Ok(Outcome::Done);
        }
        self.start_due_job()
    }

    /// Whether a Job is created only from a CronJob version that was read live: the cache may be stale, or does not
    /// hold the template.
    fn decides_on_live(&self) -> bool {
        self.observation.view_is_suspect || self.observation.cron_job.spec.job_template.omitted_bytes().is_some()
    }

    /// Builds the settlement, once the deletions from the history have been answered.
    fn finish(mut self, outcome: Outcome) -> Plan {
        let news: &[&str] = if self.draft.verdict == Verdict::Open { &[] } else { &[HANDED_OVER, PAUSED, RUN_STUCK] };
        self.draft.keep_told(&self.observation.told, self.now, news);
        if self.fired && self.observation.settle_later {
            let next = outcome.next_slot();
            return Plan::Settle(self.draft.put_off(Outcome::SettleLater { next }));
        }
        // The version to patch may be outdated, so the edits are left to the sync of the next version.
        if self.observation.is_overtaken {
            return Plan::Settle(self.draft.put_off(outcome));
        }
        self.publish(&outcome);
        let answered = |job: &Arc<Job>| self.observation.deletion_of(&job.uid).is_some();
        let newest = newest_unrecorded(self.observation, self.draft.base);
        // A sync that ended early has not found that the slot was started, so that its status does not tell of it.
        let stays = newest.filter(|(slot, _)| self.draft.status.last_schedule_time < Some(*slot)).map(|(_, uid)| uid);
        let unrecorded = newest.map(|(_, uid)| uid);
        let unanswered = self.beyond_history.into_iter().filter(|job| !answered(job));
        let unanswered = unanswered.filter(|job| stays != Some(&job.uid));
        let goes_first =
            |job: &Arc<Job>| self.draft.base.status.in_active_list(&job.uid) && unrecorded != Some(&job.uid);
        let (first, mut prune): (Vec<_>, Vec<_>) = unanswered.partition(goes_first);
        if !first.is_empty() {
            return Plan::Prune { jobs: first, next: outcome.next_slot() };
        }
        let not_pruned = prune.len().saturating_sub(MOST_PRUNED);
        prune.truncate(MOST_PRUNED);
        let mut draft = self.draft;
        if draft.base.controller_kind.has_conditions && !draft.base.deleting {
            draft.set_conditions(conditions::of(self.observation, &draft, &outcome, self.now));
        }
        Plan::Settle(Settlement { prune, unrecorded: unrecorded.cloned(), not_pruned, ..draft.settle(outcome) })
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

    /// Looks up the Job of a released CronJob whose create has no known result. Where creates may still be sent,
    /// another create answers this instead.
    fn adopt_begun_job(&mut self) -> Decided<()> {
        let Ownership::Released { begun: Some(slot) } = self.observation.ownership else { return Ok(()) };
        let cron_job = self.draft.base;
        let name = self.name_of(&cron_job.controller_kind.child_name(&cron_job.name.name, slot));
        if self.observation.jobs.iter().any(|job| job.name == name) {
            return Ok(());
        }
        self.ask_for_jobs([&name])?;
        match self.observation.live_job(&name) {
            Some(Ok(job)) if job.is_child_of(cron_job) => self.draft.adopt(job, slot),
            Some(Err(error)) if !error.is_not_found() => return failed(error.clone()),
            _ => {}
        }
        Ok(())
    }

    /// Makes every decision from the deletion check to the create.
    fn start_due_job(&mut self) -> Decided<Outcome> {
        let cron_job = self.draft.base;
        if cron_job.deleting || self.is_taken_back() {
            return Ok(Outcome::Done);
        }
        let timing = cron_job.timing(self.observation.local_zone);
        if let Err(error) = &timing.time_zone {
            let zone = cron_job.spec.recurrence.time_zone().unwrap_or_default();
            self.draft.warning("UnknownTimeZone", format!("invalid timeZone: {}: {error}", quote(zone)));
            return Ok(self.wait_for_an_edit(Skip::Invalid));
        }
        if cron_job.spec.suspend {
            self.warn_of_handover();
            return Ok(self.wait_for_an_edit(Skip::Suspended));
        }
        if timing.zone_in_schedule && cron_job.controller_kind.has_time_zone {
            self.draft.warning("UnsupportedSchedule", unsupported_schedule(cron_job.spec.recurrence.schedule()));
        }
        let own = match &timing.schedule {
            Ok(schedule) => schedule,
            Err(error) => {
                let text = format!("unparseable schedule: {} : {error}", quote(cron_job.spec.recurrence.schedule()));
                self.draft.warning("UnparseableSchedule", text);
                return Ok(self.wait_for_an_edit(Skip::Invalid));
            }
        };
        let schedule = match cron_job.policy() {
            Ok(policy) => policy.map_or(own, |policy| policy.schedule(own)),
            Err(error) => {
                self.draft.warning("InvalidPolicy", error.to_string());
                return Ok(self.wait_for_an_edit(Skip::Invalid));
            }
        };
        let schedule = &Evaluation::of(schedule);
        let is_paused = self.is_paused();
        self.warn_of_overtaken_slots(schedule);
        match self.find_starts(schedule, true) {
            Err(error) => {
                let cause =
                    if std::ptr::eq(schedule.schedule(), own) { error.to_string() } else { NO_SLOT_LEFT.to_owned() };
                let text = format!("invalid schedule: {} : {cause}", cron_job.spec.recurrence.schedule());
                self.draft.warning("InvalidSchedule", text);
                Ok(self.wait_for_an_edit(Skip::Invalid))
            }
            Ok(MostRecent { most_recent: None, .. }) => {
                self.draft.verdict = self.nothing_due(schedule);
                Ok(self.wait_for_next_slot(schedule))
            }
            Ok(MostRecent { most_recent: Some(slot), .. }) if is_paused => Ok(self.skip_for_failures(slot, schedule)),
            Ok(MostRecent { most_recent: Some(slot), missed, .. }) => {
                if missed == Missed::Many {
                    self.draft.warning("TooManyMissedTimes", TOO_MANY_MISSED.to_owned());
                }
                let Choice::Start { slot, next } = self.choose(slot, schedule) else {
                    return Ok(self.pass_over(slot, schedule));
                };
                let outcome = self.start_job_of(slot, missed, schedule)?;
                Ok(self.and_then(slot, next, outcome))
            }
        }
    }

    fn start_job_of(&mut self, slot: DateTime<Utc>, missed: Missed, schedule: &Evaluation<'_>) -> Decided<Outcome> {
        let cron_job = self.draft.base;
        let spec = &cron_job.spec;
        if is_too_late(slot, spec.starting_deadline_seconds, self.nominal_now()) {
            self.draft.verdict = Verdict::Skipped(Skip::Deadline(slot));
            self.draft.warning("MissSchedule", missed_schedule(slot));
            return Ok(self.wait_for_next_slot(schedule));
        }
        let name = self.name_of(&cron_job.controller_kind.child_name(&cron_job.name.name, slot));
        let running = self.draft.status.active.iter().any(|reference| reference.name == *name.name);
        if running || self.draft.status.last_schedule_time == Some(slot) {
            self.draft.verdict = Verdict::NothingDue;
            return Ok(self.wait_for_next_slot(schedule));
        }
        if let Some(blocker) = self.blocker() {
            return Ok(self.skip_for(blocker, slot, schedule));
        }
        self.draft.startable = Some(slot);
        if self.decides_on_live() && self.observation.live_cron_job.is_none() {
            return needs(Plan::Lookup(vec![Lookup::CronJob]));
        }
        if let Some(outcome) = self.settle_earlier_create(slot, schedule)? {
            // The Job of an earlier slot may be the one that is in the way.
            self.draft.startable = None;
            return Ok(outcome);
        }
        if let Some(blocker) = self.blocker() {
            return Ok(self.skip_for(blocker, slot, schedule));
        }
        if let Some(wait) =
            self.observation.takeover_wait.filter(|_| self.an_earlier_leader_may_interfere(slot, schedule))
        {
            return Ok(self.come_back_after(wait, schedule));
        }
        if self.has_victims() {
            self.rescue(slot)?;
        }
        if self.limits.replace_waits {
            if let Some(outcome) = self.replace_and_wait(slot, schedule)? {
                return Ok(outcome);
            }
        } else if spec.concurrency_policy == ConcurrencyPolicy::Replace {
            self.delete_replaced_jobs(slot)?;
        }
        self.create_job(&name, slot, missed, schedule)
    }

    /// Under Forbid and Replace, no slot starts while the create of an earlier one may still be committed: the two Jobs
    /// would run at the same time. Repeating the earlier create gives its result. If the slot may no longer start, since its
    /// starting deadline has passed or the schedule or a policy was changed, the sync waits until the create can no longer
    /// be committed, and then reads the Job.
    fn settle_earlier_create(&mut self, slot: DateTime<Utc>, schedule: &Evaluation<'_>) -> Decided<Option<Outcome>> {
        let cron_job = self.draft.base;
        let unknown =
            |pending: &PendingCreate| pending.slot < slot && self.draft.status.last_schedule_time < Some(pending.slot);
        let Some(pending) = self.observation.pending_create.filter(unknown) else { return Ok(None) };
        if !matches!(cron_job.spec.concurrency_policy, ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace)
            && self.limits.max_concurrent.is_none()
        {
            return Ok(None);
        }
        let name = self.name_of(&cron_job.controller_kind.child_name(&cron_job.name.name, pending.slot));
        if self.observation.jobs.iter().any(|job| job.name == name) {
            return Ok(None);
        }
        if let Some(wait) = pending.wait {
            let is_late = is_too_late(pending.slot, cron_job.spec.starting_deadline_seconds, self.nominal_now());
            let is_decided = cron_job.decided_until(&self.draft.status, self.now) >= Some(pending.slot);
            if is_late || is_decided || !schedule.has(pending.slot) {
                return Ok(Some(self.come_back_after(wait, schedule)));
            }
            if self.limits.replace_waits
                && let Some(outcome) = self.replace_and_wait(pending.slot, schedule)?
            {
                return Ok(Some(outcome));
            }
            let outcome = self.create_job(&name, pending.slot, Missed::None, schedule)?;
            // The next sync starts the slot that is due now.
            let is_done = matches!(outcome, Outcome::Requeue(_) | Outcome::Done);
            let slot = cron_job.due(slot);
            return Ok(Some(if is_done { Outcome::Requeue(Requeue { slot }) } else { outcome }));
        }
        self.ask_for_jobs([&name])?;
        match self.observation.live_job(&name) {
            Some(Ok(job)) if job.is_child_of(cron_job) => self.draft.adopt(job, pending.slot),
            Some(Err(error)) if !error.is_not_found() => return failed(error.clone()),
            _ => {}
        }
        Ok(None)
    }

    /// Whether a create of the last leader could be committed beside the next step. Under Forbid and Replace this is
    /// the create of an earlier slot without a visible Job. For a Job that is to be deleted it is a repeat of its own
    /// create.
    fn an_earlier_leader_may_interfere(&self, slot: DateTime<Utc>, schedule: &Evaluation<'_>) -> bool {
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
        let next = self.wait_for_next_slot(schedule).next_slot();
        Outcome::Requeue(Requeue { slot: next.map_or(back, |next| next.slot.min(back)) })
    }

    fn create_job(
        &mut self,
        name: &ObjectName,
        slot: DateTime<Utc>,
        missed: Missed,
        schedule: &Evaluation<'_>,
    ) -> Decided<Outcome> {
        match &self.observation.create {
            None => {
                self.check_not_overtaken()?;
                needs(Plan::Create { name: name.clone(), slot, cron_job: Arc::clone(self.draft.base) })
            }
            Some(CreateReply::Created(job)) => {
                self.draft.normal("SuccessfulCreate", format!("Created {} {}", self.noun(), job.name.name));
                self.draft.verdict = Verdict::Started { slot, missed };
                self.started(job, slot);
                Ok(self.wait_for_next_slot(schedule))
            }
            Some(CreateReply::BadTemplate(message)) => failed(Failure::Template(message.clone())),
            Some(CreateReply::Refused(error)) if error.is_already_exists() => {
                self.ask_for_jobs([name])?;
                self.name_is_taken(name, slot, schedule)
            }
            // The namespace is terminating, so no Job can be created and no Event is needed.
            Some(CreateReply::Refused(error)) if error.namespace_terminating => failed(error.clone()),
            Some(CreateReply::Refused(error)) => {
                let text = format!("Error creating {}: {}", self.noun(), error.message);
                self.warn_of("FailedCreate", text, error);
                failed(error.clone())
            }
        }
    }

    /// Records a Warning about a failed request, unless the error is transient and such errors are hidden.
    fn warn_of(&mut self, reason: &'static str, message: String, error: &ApiError) {
        if !(self.observation.hides_transient && error.is_transient()) {
            self.draft.warning(reason, message);
        }
    }

    fn check_not_overtaken(&self) -> Decided<()> {
        if self.observation.is_overtaken { failed(Failure::Changed(self.draft.base.name.clone())) } else { Ok(()) }
    }

    /// A Job with the slot's name exists. If it belongs to this CronJob, an earlier sync made it and could not write
    /// the status. If it belongs to another owner, the slot is skipped with one Warning, and the next slot is tried.
    fn name_is_taken(&mut self, name: &ObjectName, slot: DateTime<Utc>, schedule: &Evaluation<'_>) -> Decided<Outcome> {
        let job = match self.observation.live_job(name) {
            Some(Ok(job)) => Arc::clone(job),
            Some(Err(error)) => return failed(error.clone()),
            None => return needs(Plan::Lookup(vec![Lookup::Job(name.clone())])),
        };
        let ours = job.controller.as_ref().is_some_and(|owner| owner.uid == self.draft.base.uid);
        if ours {
            self.draft.verdict = Verdict::NothingDue;
            // Slots of one minute share a name, so it may be the Job of an earlier one.
            self.draft.already_there = job.slot_of(self.draft.base).filter(|made_for| *made_for == slot);
            if !self.draft.status.in_active_list(&job.uid) {
                self.started(&job, slot);
            }
        } else {
            if self.observation.name_taken_reported != Some(slot) {
                let kind = self.draft.base.controller_kind.child.qualified_name();
                let text = format!("Error creating {}: {kind} {} already exists", self.noun(), quote(&name.name));
                self.draft.warning("FailedCreate", text);
            }
            self.draft.name_taken = Some(slot);
            self.draft.verdict = Verdict::Skipped(Skip::NameTaken(slot));
        }
        Ok(self.wait_for_next_slot(schedule))
    }

    fn started(&mut self, job: &Job, slot: DateTime<Utc>) {
        self.draft.started(job, slot);
        self.fired = true;
    }

    /// Where no CronJob is shared, `spec.suspend` counts, although one that is handed over has it only for the in-tree controller.
    fn warn_of_handover(&mut self) {
        let cron_job = self.draft.base;
        if self.observation.ownership == Ownership::Exclusive && Standing::of(cron_job, false).is_handed_over() {
            self.tell(EventType::Warning, HANDED_OVER, handed_over(self.noun(), &cron_job.name));
        }
    }

    /// Sets no timer: only an edit of the CronJob starts the next sync.
    fn wait_for_an_edit(&mut self, why: Skip) -> Outcome {
        self.draft.verdict = Verdict::Skipped(why);
        Outcome::Done
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
        Limits { waits_after_change: false, ..self.limits } != Limits::default()
    }

    /// Adds an Event about held slots, once an hour.
    fn tell(&mut self, type_: EventType, reason: &'static str, message: String) {
        self.draft.tell(&self.observation.told, self.now, type_, reason, message);
    }

    fn is_taken_back(&self) -> bool {
        matches!(self.observation.ownership, Ownership::Released { .. })
    }

    fn noun(&self) -> &'static str {
        self.draft.base.controller_kind.noun
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
        if unknown.is_empty() { Ok(()) } else { needs(Plan::Lookup(unknown)) }
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
