//! The status a sync is going to write.
//!
//! Guarantees: every edit is kept apart from the version it was made to, so that a fresher version of the CronJob can
//! be put underneath and no edit is lost; `lastScheduleTime` and `lastSuccessfulTime` never go back; a status that did
//! not change is not written. A sync that changes nothing copies nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::observation::DeleteReply;
use super::plan::{Event, Note, Outcome, Settlement, StatusWrite, Verdict};
use crate::api::batch_v1::{CronJob, CronJobStatus, Job};
use crate::api::{ApiError, Condition, ControllerKind, EventType, ObjectReference, Uid};

/// Changes to a status, apart from any version of it. To apply them twice is to apply them once.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// Whose references go. However long a history is that is pruned at once, each is found in one step.
    removed: HashSet<Uid>,
    /// What is there in the end, though it may have gone before.
    joined: Vec<ObjectReference>,
    scheduled: Option<DateTime<Utc>>,
    succeeded: Option<DateTime<Utc>>,
}

impl Edits {
    fn remove(&mut self, uid: &Uid) {
        self.joined.retain(|known| known.uid != *uid);
        self.removed.insert(uid.clone());
    }

    fn join(&mut self, reference: ObjectReference) {
        self.joined.retain(|known| known.uid != reference.uid);
        self.joined.push(reference);
    }

    /// Adds that the slot had its Job.
    pub fn scheduled(&mut self, slot: DateTime<Utc>) {
        self.scheduled = self.scheduled.max(Some(slot));
    }

    fn succeeded(&mut self, at: DateTime<Utc>) {
        self.succeeded = self.succeeded.max(Some(at));
    }

    /// Without the removal of what is not there.
    fn needed_by(mut self, status: &CronJobStatus) -> Self {
        if !self.removed.is_empty() {
            let there = status.active.iter().filter(|reference| self.removed.contains(&reference.uid));
            self.removed = there.map(|reference| reference.uid.clone()).collect();
        }
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.joined.is_empty() && self.scheduled.is_none() && self.succeeded.is_none()
    }

    fn apply(&self, status: &mut Cow<'_, CronJobStatus>) {
        let goes = |reference: &ObjectReference| self.removed.contains(&reference.uid);
        if status.active.iter().any(goes) {
            status.to_mut().active.retain(|reference| !goes(reference));
        }
        for reference in &self.joined {
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
    }
}

/// A status under construction, with the events that go with it.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The version of the CronJob that the status belongs to.
    pub base: &'a Arc<CronJob>,
    /// The status with all edits so far: the base's own until the first that changes it.
    pub status: Cow<'a, CronJobStatus>,
    /// The slot whose name belongs to somebody else's Job.
    pub name_taken: Option<DateTime<Utc>>,
    /// The slot for which this CronJob had a Job before ours could be created.
    pub already_there: Option<DateTime<Utc>>,
    /// What is decided about the slots that have come.
    pub verdict: Verdict,
    edits: Edits,
    events: Vec<Event>,
    notes: Vec<Note>,
}

impl<'a> Draft<'a> {
    /// The status of `base` with what an earlier sync had `carried` on.
    pub fn new(base: &'a Arc<CronJob>, carried: &Edits) -> Self {
        let mut status = Cow::Borrowed(&base.status);
        carried.apply(&mut status);
        let (edits, verdict) = (carried.clone(), Verdict::Open);
        let (events, notes) = (Vec::new(), Vec::new());
        Self { base, status, name_taken: None, already_there: None, verdict, edits, events, notes }
    }

    /// Moves the edits to a fresher version. Upstream goes on with the fresher copy but writes the older one.
    pub fn rebase(&mut self, live: &'a Arc<CronJob>) {
        self.base = live;
        self.status = Cow::Borrowed(&live.status);
        self.edits.apply(&mut self.status);
    }

    /// Takes a Job out of `active`.
    pub fn remove_active(&mut self, uid: &Uid) {
        if self.status.in_active_list(uid) {
            self.status.to_mut().delete_from_active_list(uid);
        }
        self.edits.remove(uid);
    }

    /// Records that `job` was made for `slot`, by whomever; while unfinished it is active.
    pub fn adopt(&mut self, job: &Arc<Job>, slot: DateTime<Utc>) {
        let is_newest = self.status.last_schedule_time < Some(slot);
        let runs_unknown = job.finished.is_none() && !self.status.in_active_list(&job.uid);
        if is_newest {
            self.scheduled(slot);
        }
        if runs_unknown {
            self.join(job);
        }
        if is_newest || runs_unknown {
            self.notes.push(Note::Adopted(Arc::clone(job), slot));
        }
    }

    /// Puts a Job into `active`.
    pub fn join(&mut self, job: &Job) {
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

    /// Says how the CronJob is. A condition that is there keeps its time while its status stays; the conditions of others
    /// stay as they are.
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

    /// Records the answer to a deletion; says whether the Job is gone.
    pub fn deleted(&mut self, job: &Job, reply: &DeleteReply, hides_transient: bool) -> bool {
        self.events.extend(deletion_event(self.base.controller_kind, job, reply, hides_transient));
        let is_gone = reply.as_ref().err().is_none_or(ApiError::is_not_found);
        if is_gone {
            self.remove_active(&job.uid);
        }
        is_gone
    }

    /// Takes a Job that has ended out of `active`.
    pub fn ended(&mut self, job: &Arc<Job>) {
        self.remove_active(&job.uid);
        self.notes.push(Note::Ended(Arc::clone(job)));
    }

    /// Adds a Normal Event.
    pub fn normal(&mut self, reason: &'static str, message: String) {
        self.events.push(Event { type_: EventType::Normal, reason, message });
    }

    /// Adds a Warning Event.
    pub fn warning(&mut self, reason: &'static str, message: String) {
        self.events.push(Event { type_: EventType::Warning, reason, message });
    }

    /// Ends the sync for now: the status is left to be written.
    pub fn put_off(self, outcome: Outcome) -> Settlement {
        let Self { base, name_taken, already_there, verdict, edits, events, notes, .. } = self;
        let edits = edits.needed_by(&base.status);
        let (prune, not_pruned) = (Vec::new(), 0);
        Settlement {
            status: None,
            edits,
            events,
            name_taken,
            already_there,
            prune,
            not_pruned,
            verdict,
            notes,
            outcome,
        }
    }

    /// Ends the sync.
    pub fn settle(self, outcome: Outcome) -> Settlement {
        let Self { base, status, name_taken, already_there, verdict, edits, events, notes } = self;
        let status = changed(status, base).map(|status| StatusWrite { base: Arc::clone(base), status });
        let edits = if status.is_some() { edits.needed_by(&base.status) } else { Edits::default() };
        let (prune, not_pruned) = (Vec::new(), 0);
        Settlement { status, edits, events, name_taken, already_there, prune, not_pruned, verdict, notes, outcome }
    }
}

/// What there is to tell of a deletion. A Job that is gone already needs no Event: that is what was wanted.
pub fn deletion_event(
    controller_kind: ControllerKind,
    job: &Job,
    reply: &DeleteReply,
    hides_transient: bool,
) -> Option<Event> {
    match reply {
        Ok(()) => {
            let message = format!("Deleted {} {}", controller_kind.noun, job.name.name);
            Some(Event { type_: EventType::Normal, reason: "SuccessfulDelete", message })
        }
        // On a conflict another Job has the name, or another write was in the way: the next look will tell.
        Err(error) if error.is_not_found() || error.is_conflict() => None,
        Err(error) if hides_transient && error.is_transient() => None,
        Err(error) => {
            let message = format!("Deleted {}: {}", controller_kind.noun, error.message);
            Some(Event { type_: EventType::Warning, reason: "FailedDelete", message })
        }
    }
}

/// The status, if it is not what `base` says already.
fn changed(status: Cow<'_, CronJobStatus>, base: &CronJob) -> Option<CronJobStatus> {
    match status {
        Cow::Owned(status) if status != base.status => Some(status),
        _ => None,
    }
}
