//! What follows from the answers to an attempt, and how a sync ends.
//!
//! Guarantees: what was decided before the attempt stays; only the answers are added. Events, edits of the status and what is
//! pruned follow from the draft alone.

use std::sync::Arc;

use apimachinery::quoting::quote;
use chrono::{DateTime, Utc};
use schedule::missed::Missed;

use super::backlog::blocked;
use super::{Course, Sync};
use crate::api::batch_v1::Job;
use crate::api::{ApiError, Publish, Uid};
use crate::controller::conditions;
use crate::controller::history::{MOST_PRUNED, history_victims, newest_unrecorded};
use crate::controller::messages::{FROZEN, HANDED_OVER, PAUSED, RUN_STUCK};
use crate::controller::observation::{CreateReply, DeleteReply};
use crate::controller::plan::{
    Attempt, Attempted, Failure, Outcome, Propagation, Pruning, Settlement, Skip, Then, Verdict, Victim,
};

/// The end of a sync, but for the Jobs of the history that are deleted before the status is written.
#[derive(Debug)]
pub struct Conclusion<'a> {
    sync: Sync<'a>,
    outcome: Outcome,
    /// Whether the status and the history are left to a later sync.
    is_put_off: bool,
    /// Whether the API server refused the create because of the object or its namespace; `None` without a create.
    is_refused: Option<bool>,
    /// The slot for which running Jobs were to be deleted.
    deleted_for: Option<DateTime<Utc>>,
    /// Finished Jobs beyond the history limits that the status lists as active: the next status depends on the answers to their
    /// deletions, which are independent of each other.
    pub prune_first: Vec<Arc<Job>>,
    /// The others.
    prune: Vec<Arc<Job>>,
    /// See [`Pruning::unrecorded`].
    unrecorded: Option<Uid>,
}

/// Concludes a sync from the answers to its attempt.
pub fn conclude<'a>(course: Course<'a>, attempted: &Attempted) -> Conclusion<'a> {
    let deletes = course.attempt().filter(|attempt| !attempt.victims.is_empty());
    let deleted_for = deletes.map(|attempt| attempt.slot);
    let Course { mut sync, start } = course;
    let outcome = match start {
        Err(outcome) => outcome,
        Ok(attempt) => sync.conclude_attempt(attempt, attempted),
    };
    let news: &[&str] =
        if sync.draft.verdict == Verdict::Open { &[] } else { &[FROZEN, HANDED_OVER, PAUSED, RUN_STUCK] };
    sync.draft.keep_recent_events(&sync.observation.recalled.memo.recent_events, sync.now, news);
    let settles_later = sync.fired && sync.observation.settle_later;
    let outcome = if settles_later { Outcome::SettleLater { next: outcome.requeue_at() } } else { outcome };
    // After an overtaking, the version to patch may be outdated, so the edits are left to the sync of the next version.
    let is_put_off = settles_later || attempted.is_overtaken;
    let is_refused = attempted.create.as_ref().map(|reply| match reply {
        CreateReply::Refused(error) => error.is_refusal(),
        CreateReply::Created(_) | CreateReply::Exists(_) | CreateReply::BadTemplate(_) => false,
    });
    let (mut prune_first, mut prune, mut unrecorded) = (Vec::new(), Vec::new(), None);
    if !is_put_off {
        let newest = newest_unrecorded(sync.observation, sync.draft.base);
        (prune_first, prune) = sync.jobs_to_prune(attempted, newest);
        unrecorded = newest.map(|(_, uid)| uid.clone());
    }
    Conclusion { sync, outcome, is_put_off, is_refused, deleted_for, prune_first, prune, unrecorded }
}

impl Conclusion<'_> {
    /// When to look at the CronJob next, by which the sync ends.
    pub fn requeue_at(&self) -> Option<DateTime<Utc>> {
        self.outcome.requeue_at()
    }

    /// Ends the sync with the answers to the deletions of [`Self::prune_first`].
    pub fn settle(self, pruned: impl IntoIterator<Item = (Arc<Job>, DeleteReply)>) -> Settlement {
        let Self { mut sync, outcome, is_put_off, is_refused, deleted_for, mut prune, unrecorded, .. } = self;
        sync.draft.memo.blocked = blocked(sync.observation, &sync.draft, &outcome, deleted_for, sync.now);
        for (job, reply) in pruned {
            sync.conclude_pruning(&job, &reply);
        }
        // These go after the status is written, and the status has them no longer.
        for job in prune.iter().filter(|job| sync.left_out.contains(&job.uid)) {
            sync.draft.ended(job);
        }
        if !is_put_off && sync.observation.publish != Publish::default() {
            sync.publish(&outcome);
        }
        let more = prune.len().saturating_sub(MOST_PRUNED);
        prune.truncate(MOST_PRUNED);
        let Sync { observation, now, mut draft, .. } = sync;
        if !is_put_off && draft.base.controller_kind.has_conditions && !draft.base.deleting {
            draft.set_conditions(conditions::of(observation, &draft, &outcome, now));
        }
        let pruning = Pruning { jobs: prune, unrecorded, more };
        Settlement { pruning, is_refused, ..draft.settle(outcome, is_put_off) }
    }
}

impl Sync<'_> {
    fn conclude_attempt(&mut self, attempt: Attempt, attempted: &Attempted) -> Outcome {
        let Attempt { slot, victims, then, next } = attempt;
        if let Err(failure) = self.conclude_deletions(&victims, &attempted.deletions) {
            return Outcome::Failed(failure);
        }
        let outcome = match then {
            Then::GiveUp(error) => {
                self.warn_of("FailedGet", format!("Get {}: {}", self.noun(), error.message), &error);
                Outcome::Failed(error.into())
            }
            Then::Wait(job) => self.wait_for_replaced(&job, slot),
            Then::Create { missed, .. } => match (&attempted.create, &attempted.failure) {
                (Some(reply), _) => self.conclude_create(reply, slot, missed),
                (None, Some(error)) => Outcome::Failed(error.clone().into()),
                (None, None) => Outcome::Failed(Failure::Changed(self.draft.base.name.clone())),
            },
        };
        if matches!(outcome, Outcome::Failed(_)) {
            return outcome;
        }
        if self.draft.startable == Some(slot) {
            return self.and_then(slot, next, outcome);
        }
        // An earlier create was repeated: its Job may be the one that is in the way, or the slot that is due now follows.
        self.draft.startable = None;
        match next.filter(|_| attempted.create.is_some()) {
            Some(next) => Outcome::Requeue(self.draft.base.due(next)),
            None => outcome,
        }
    }

    /// Records the answers to the deletions of running Jobs. It is a failure unless all are deleted.
    fn conclude_deletions(&mut self, victims: &[Victim], replies: &[DeleteReply]) -> Result<(), Failure> {
        let hides_transient = self.observation.hides_transient;
        for (Victim { name, uid, propagation }, reply) in victims.iter().zip(replies) {
            match propagation {
                Propagation::Background => {
                    self.draft.deleted(name, uid, reply, hides_transient);
                }
                // It exists until the watch shows that it is gone.
                Propagation::Foreground => self.draft.deleting(name, reply, hides_transient),
            }
            if let Err(error) = reply
                && !error.is_not_found()
            {
                return Err(Failure::CouldNotReplace(name.clone(), error.clone()));
            }
        }
        if replies.len() < victims.len() {
            return Err(Failure::Changed(self.draft.base.name.clone()));
        }
        Ok(())
    }

    fn conclude_create(&mut self, reply: &CreateReply, slot: DateTime<Utc>, missed: Missed) -> Outcome {
        match reply {
            CreateReply::Created(job) => {
                self.draft.normal("SuccessfulCreate", format!("Created {} {}", self.noun(), job.name.name));
                self.draft.verdict = Verdict::Started { slot, missed };
                self.started(job, slot);
                self.wait_for_next_slot()
            }
            CreateReply::BadTemplate(message) => Outcome::Failed(Failure::Template(message.clone())),
            CreateReply::Exists(Ok(job)) => self.name_is_taken(job, slot),
            // The namespace is terminating, so no Job can be created and no Event is needed.
            CreateReply::Refused(error) if error.namespace_terminating => Outcome::Failed(error.clone().into()),
            CreateReply::Refused(error) => {
                let text = format!("Error creating {}: {}", self.noun(), error.message);
                self.warn_of("FailedCreate", text, error);
                Outcome::Failed(error.clone().into())
            }
            CreateReply::Exists(Err(error)) => Outcome::Failed(error.clone().into()),
        }
    }

    /// A Job with the slot's name exists. If it belongs to this CronJob, an earlier sync made it and could not write
    /// the status. If it belongs to another owner, the slot is skipped with one Warning, and the next slot is tried.
    fn name_is_taken(&mut self, job: &Job, slot: DateTime<Utc>) -> Outcome {
        let ours = job.controller.as_ref().is_some_and(|owner| owner.uid == self.draft.base.uid);
        if ours {
            self.draft.verdict = Verdict::NothingDue;
            // Slots of one minute share a name, so it may be the Job of an earlier one.
            self.draft.already_there = job.slot_of(self.draft.base).filter(|made_for| *made_for == slot);
            if !self.draft.status.in_active_list(&job.uid) {
                self.started(job, slot);
            }
        } else {
            if self.draft.memo.name_taken != Some(slot) {
                let kind = self.draft.base.controller_kind.child.qualified_name();
                let name = quote(&job.name.name);
                let text = format!("Error creating {}: {kind} {name} already exists", self.noun());
                self.draft.warning("FailedCreate", text);
            }
            self.draft.memo.name_taken = Some(slot);
            self.draft.verdict = Verdict::Skipped(Skip::NameTaken(slot));
        }
        self.wait_for_next_slot()
    }

    fn started(&mut self, job: &Job, slot: DateTime<Utc>) {
        self.draft.started(job, slot);
        self.fired = true;
    }

    /// The finished Jobs beyond the history limits that may go: those that the status lists as active, and the others. `newest` is
    /// the Job that shows which slots were started.
    fn jobs_to_prune(
        &mut self,
        attempted: &Attempted,
        newest: Option<(DateTime<Utc>, &Uid)>,
    ) -> (Vec<Arc<Job>>, Vec<Arc<Job>>) {
        let base = self.draft.base;
        let beyond_history = if attempted.create.is_some() {
            history_victims(self.observation, base, true)
        } else {
            std::mem::take(&mut self.beyond_history)
        };
        // A sync that ended early has not found that the slot was started, so that its status does not tell of it.
        let stays = newest.filter(|(slot, _)| self.draft.status.last_schedule_time < Some(*slot)).map(|(_, uid)| uid);
        let unrecorded = newest.map(|(_, uid)| uid);
        let goes_first = |job: &Arc<Job>| base.status.in_active_list(&job.uid) && unrecorded != Some(&job.uid);
        beyond_history.into_iter().filter(|job| stays != Some(&job.uid)).partition(goes_first)
    }

    /// Records the answer to the deletion of a Job that the status lists as active. If it cannot be deleted, its end is still
    /// to be reported; otherwise it only counts.
    fn conclude_pruning(&mut self, job: &Arc<Job>, reply: &DeleteReply) {
        let is_gone = self.draft.deleted(&job.name, &job.uid, reply, self.observation.hides_transient);
        match job.finished.filter(|_| self.left_out.contains(&job.uid)) {
            Some(_) if is_gone => self.draft.ended(job),
            Some(condition) => self.saw_completed(job, condition),
            None => {}
        }
    }

    /// Records a Warning about a failed request, unless the error is transient and such errors are hidden.
    fn warn_of(&mut self, reason: &'static str, message: String, error: &ApiError) {
        if !(self.observation.hides_transient && error.is_transient()) {
            self.draft.warning(reason, message);
        }
    }
}
