//! The status that a sync writes.
//!
//! Guarantees: edits are kept apart from the version they were made to, so they can be applied to a fresher version of
//! the CronJob without loss. `lastScheduleTime` and `lastSuccessfulTime` never go back. Of two records of decided slots,
//! the later counts. An unchanged status is not written. A sync that changes nothing copies nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::observation::{DeleteReply, Recalled};
use super::plan::{Event, Memo, Note, Outcome, Pruning, RecentEvent, Settlement, StatusWrite, Verdict};
use crate::api::batch_v1::{CronJob, CronJobStatus, Job};
use crate::api::policy::CountedFrom;
use crate::api::{
    ActiveList, ApiError, Condition, ControllerKind, EventType, ObjectName, ObjectReference, Published, Uid,
};

/// How long an Event about held slots is not repeated.
const TELL_AGAIN: TimeDelta = TimeDelta::hours(1);

/// Changes to a status, independent of its version. Applying them is idempotent.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// UIDs of references to remove. A set, so that pruning a long history stays linear.
    removed: HashSet<Uid>,
    /// References to add, even if an earlier edit removed them.
    joined: ActiveList,
    scheduled: Option<DateTime<Utc>>,
    succeeded: Option<DateTime<Utc>>,
    counted: Option<Box<CountedFrom>>,
}

impl Edits {
    fn remove(&mut self, uid: &Uid) {
        self.joined.remove(uid);
        self.removed.insert(uid.clone());
    }

    fn join(&mut self, reference: ObjectReference) {
        self.joined.push(reference);
    }

    /// Records that the Job of the slot was created.
    pub fn scheduled(&mut self, slot: DateTime<Utc>) {
        self.scheduled = self.scheduled.max(Some(slot));
    }

    fn succeeded(&mut self, at: DateTime<Utc>) {
        self.succeeded = self.succeeded.max(Some(at));
    }

    /// Whether a slot was started and the status does not list it.
    pub fn has_scheduled(&self) -> bool {
        self.scheduled.is_some()
    }

    /// Records which slots are decided, unless a later record is known.
    pub fn counted(&mut self, counted: &CountedFrom) {
        if self.counted.as_ref().is_none_or(|known| known.time() <= counted.time()) {
            self.counted = Some(Box::new(counted.clone()));
        }
    }

    /// Whether slots are recorded as decided for that version of the CronJob already.
    pub fn has_counted(&self, counted: &CountedFrom) -> bool {
        self.counted.as_ref().is_some_and(|known| known.is_of_the_version_of(counted))
    }

    /// The edits without removals of references that `status` does not have.
    fn needed_by(mut self, status: &CronJobStatus) -> Self {
        if !self.removed.is_empty() {
            self.removed.retain(|uid| status.in_active_list(uid));
        }
        self
    }

    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        let Self { removed, joined, scheduled, succeeded, counted } = self;
        removed.is_empty() && joined.is_empty() && scheduled.is_none() && succeeded.is_none() && counted.is_none()
    }

    fn apply(&self, status: &mut Cow<'_, CronJobStatus>) {
        for uid in &self.removed {
            if status.in_active_list(uid) {
                status.to_mut().delete_from_active_list(uid);
            }
        }
        for reference in self.joined.iter() {
            if !status.in_active_list(&reference.uid) {
                status.to_mut().active.push(reference.clone());
            }
        }
        if status.last_schedule_time < self.scheduled {
            status.to_mut().last_schedule_time = self.scheduled;
        }
        if status.last_successful_time < self.succeeded {
            status.to_mut().last_successful_time = self.succeeded;
        }
        if let Some(counted) = &self.counted
            && status.counted_from.as_ref().is_none_or(|known| known.time() <= counted.time())
        {
            status.to_mut().counted_from = Some(counted.clone());
        }
    }
}

/// A status under construction, with its Events.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The CronJob version that the status is based on.
    pub base: &'a Arc<CronJob>,
    /// The status with all edits so far; borrowed from the base until the first edit that changes it.
    pub status: Cow<'a, CronJobStatus>,
    /// What the next sync is to know. Until the end, its Events are those of this sync alone.
    pub memo: Memo,
    /// The slot whose Job existed before this process could create it.
    pub already_there: Option<DateTime<Utc>>,
    /// The newest due slot that a change of the CronJob passed over.
    pub passed_over: Option<DateTime<Utc>>,
    /// The decision about the due slots.
    pub verdict: Verdict,
    /// The due slot that no run kept from starting.
    pub startable: Option<DateTime<Utc>>,
    /// Whether the Jobs that keep it from starting ran when it came due.
    pub blocked_from_due: bool,
    /// The newest slot that was recorded before this sync.
    recorded: Option<DateTime<Utc>>,
    edits: Edits,
    events: Vec<Event>,
    notes: Vec<Note>,
}

impl<'a> Draft<'a> {
    /// The status of `base` with what earlier syncs left.
    pub fn new(base: &'a Arc<CronJob>, recalled: &Recalled) -> Self {
        let carried = &recalled.carried;
        let mut status = Cow::Borrowed(&base.status);
        carried.apply(&mut status);
        Self {
            base,
            recorded: status.last_schedule_time,
            status,
            memo: Memo { recent_events: Vec::new(), ..recalled.memo },
            already_there: None,
            passed_over: None,
            verdict: Verdict::Open,
            startable: None,
            blocked_from_due: false,
            edits: carried.clone(),
            events: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Applies the edits to a fresher version. Upstream continues with the fresher copy but writes the older one.
    pub fn rebase(&mut self, live: &'a Arc<CronJob>) {
        self.base = live;
        self.status = Cow::Borrowed(&live.status);
        self.edits.apply(&mut self.status);
    }

    /// Removes a Job from `active`.
    pub fn remove_active(&mut self, uid: &Uid) {
        self.leave_out(uid);
        self.edits.remove(uid);
    }

    /// Removes a Job from `active` for the decisions of this sync alone: no edit, so a sync whose edits are put off leaves
    /// it to the next. Returns whether it was there.
    pub fn leave_out(&mut self, uid: &Uid) -> bool {
        let is_there = self.status.in_active_list(uid);
        if is_there {
            self.status.to_mut().delete_from_active_list(uid);
        }
        is_there
    }

    /// Records that a controller made `job` for `slot`. The Job is active until it finishes.
    pub fn adopt(&mut self, job: &Arc<Job>, slot: DateTime<Utc>) {
        let is_newest = self.status.last_schedule_time < Some(slot);
        let runs_unknown = job.finished.is_none() && !self.status.in_active_list(&job.uid);
        if is_newest {
            self.scheduled(slot);
        }
        if runs_unknown {
            self.join(job);
        }
        if self.recorded < Some(slot) || runs_unknown && !job.of_backfill {
            self.notes.push(Note::Adopted(Arc::clone(job), slot));
        }
    }

    /// Adds a Job to `active`, unless a backfill created it.
    pub fn join(&mut self, job: &Job) {
        if job.of_backfill {
            return;
        }
        let reference = job.reference(self.base.controller_kind);
        if !self.status.in_active_list(&reference.uid) {
            self.status.to_mut().active.push(reference.clone());
        }
        self.edits.join(reference);
    }

    fn scheduled(&mut self, slot: DateTime<Utc>) {
        if self.status.last_schedule_time < Some(slot) {
            self.status.to_mut().last_schedule_time = Some(slot);
        }
        self.edits.scheduled(slot);
    }

    /// Records which slots are decided.
    pub fn counted(&mut self, counted: CountedFrom) {
        self.edits.counted(&counted);
        self.status.to_mut().counted_from = Some(Box::new(counted));
    }

    /// Sets what is published about the CronJob. This is no edit: each sync computes it anew.
    pub fn publish(&mut self, published: Published) {
        let published = published.boxed();
        if self.status.published != published {
            self.status.to_mut().published = published;
        }
    }

    /// Records that the Job of `slot` runs.
    pub fn started(&mut self, job: &Job, slot: DateTime<Utc>) {
        self.join(job);
        self.scheduled(slot);
    }

    /// Records a successful completion.
    pub fn succeeded_at(&mut self, completed: Option<DateTime<Utc>>) {
        if let Some(completed) = completed
            && self.base.controller_kind.has_last_successful_time
            && self.status.last_successful_time < Some(completed)
        {
            self.status.to_mut().last_successful_time = Some(completed);
            self.edits.succeeded(completed);
        }
    }

    /// Sets conditions. An existing condition keeps its transition time while its status does not change. Conditions of
    /// other types are left alone.
    pub fn set_conditions(&mut self, conditions: impl IntoIterator<Item = Condition>) {
        for new in conditions {
            let known = self.status.conditions.iter().position(|known| known.type_ == new.type_);
            let Some(known) = known else {
                let status = self.status.to_mut();
                status.conditions = status.conditions.iter().cloned().chain([new]).collect();
                continue;
            };
            let old = &self.status.conditions[known];
            let time = if old.status == new.status { old.last_transition_time } else { new.last_transition_time };
            let new = Condition { last_transition_time: time, ..new };
            if *old != new {
                self.status.to_mut().conditions[known] = new;
            }
        }
    }

    /// Records the answer to a deletion in the foreground: the Job still exists.
    pub fn deleting(&mut self, job: &ObjectName, reply: &DeleteReply, hides_transient: bool) {
        self.events.extend(deletion_event(self.base.controller_kind, job, reply, hides_transient));
    }

    /// Records the answer to a deletion and returns whether the Job is gone.
    pub fn deleted(&mut self, job: &ObjectName, uid: &Uid, reply: &DeleteReply, hides_transient: bool) -> bool {
        self.deleting(job, reply, hides_transient);
        let is_gone = reply.as_ref().err().is_none_or(ApiError::is_not_found);
        if is_gone {
            self.remove_active(uid);
        }
        is_gone
    }

    /// Removes a Job that has ended from `active`.
    pub fn ended(&mut self, job: &Arc<Job>) {
        self.remove_active(&job.uid);
        if !self.has_ended_before(job) {
            self.notes.push(Note::Ended(Arc::clone(job)));
        }
    }

    /// Whether the end of a Job was seen at an earlier slot. Slots of one minute share a Job, which each of them makes active
    /// that comes after its end.
    fn has_ended_before(&self, job: &Job) -> bool {
        let number = |slot| self.base.controller_kind.number_of(slot);
        let slots = job.slot_of(self.base).zip(self.status.last_schedule_time);
        slots.is_some_and(|(slot, last)| slot < last && number(slot) == number(last))
    }

    /// Adds a Normal Event.
    pub fn normal(&mut self, reason: &'static str, message: String) {
        self.events.push(Event { type_: EventType::Normal, reason, message });
    }

    /// Adds a Warning Event.
    pub fn warning(&mut self, reason: &'static str, message: String) {
        self.events.push(Event { type_: EventType::Warning, reason, message });
    }

    /// Adds an Event about held slots, unless one with this reason and this end was recorded within the last hour.
    pub fn hourly_event(
        &mut self,
        known: &[RecentEvent],
        told: RecentEvent,
        type_: EventType,
        message: impl FnOnce() -> String,
    ) {
        let (RecentEvent { reason, until, at: now }, events) = (told, &mut self.memo.recent_events);
        if events.iter().any(|event| event.reason == reason) {
            return;
        }
        let recent = known.iter().find(|event| (event.reason, event.until) == (reason, until) && event.is_recent(now));
        events.push(recent.copied().unwrap_or(told));
        if recent.is_none() {
            self.events.push(Event { type_, reason, message: message() });
        }
    }

    /// Keeps the recent Events of earlier syncs, but for those whose reason holds no longer and is news when it holds again.
    pub fn keep_recent_events(&mut self, known: &[RecentEvent], now: DateTime<Utc>, news: &[&str]) {
        let events = &mut self.memo.recent_events;
        for earlier in known {
            let is_kept = earlier.is_recent(now) && !news.contains(&earlier.reason);
            if is_kept && !events.iter().any(|event| event.reason == earlier.reason) {
                events.push(*earlier);
            }
        }
    }

    /// Ends the sync. If the status is put off, its edits are left to a later sync.
    pub fn settle(self, outcome: Outcome, is_put_off: bool) -> Settlement {
        let base = self.base;
        let status = match self.status {
            Cow::Owned(status) if !is_put_off && status != base.status => Some(status),
            _ => None,
        };
        let owes = is_put_off || status.is_some();
        Settlement {
            status: status.map(|status| StatusWrite { base: Arc::clone(base), status }),
            edits: if owes { self.edits.needed_by(&base.status) } else { Edits::default() },
            events: self.events,
            memo: self.memo,
            already_there: self.already_there,
            passed_over: self.passed_over,
            pruning: Pruning::default(),
            verdict: self.verdict,
            is_refused: None,
            notes: self.notes,
            outcome,
        }
    }
}

impl RecentEvent {
    fn is_recent(&self, now: DateTime<Utc>) -> bool {
        let age = now.signed_duration_since(self.at);
        age < TELL_AGAIN && age > -TELL_AGAIN
    }
}

/// The Event for a deletion. A Job that is already gone needs none.
pub fn deletion_event(
    controller_kind: ControllerKind,
    job: &ObjectName,
    reply: &DeleteReply,
    hides_transient: bool,
) -> Option<Event> {
    match reply {
        Ok(()) => {
            let message = format!("Deleted {} {}", controller_kind.noun, job.name);
            Some(Event { type_: EventType::Normal, reason: "SuccessfulDelete", message })
        }
        // On a conflict, another Job has the name or another write came first; the next sync sees which.
        Err(error) if error.is_not_found() || error.is_conflict() => None,
        Err(error) if hides_transient && error.is_transient() => None,
        Err(error) => {
            let message = format!("Deleted {}: {}", controller_kind.noun, error.message);
            Some(Event { type_: EventType::Warning, reason: "FailedDelete", message })
        }
    }
}

#[cfg(test)]
mod tests;
