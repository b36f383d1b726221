//! What a sync does and how it ends, as [`decide`](super::reconcile::decide) and [`conclude`](super::reconcile::conclude) say it.
//!
//! Guarantees: an attempt and a settlement hold everything needed to carry them out, but for a long template.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schedule::missed::Missed;

use super::observation::{CreateReply, DeleteReply};
use super::status::Edits;
use crate::api::batch_v1::{CronJob, CronJobStatus, Job};
use crate::api::{ApiError, EventType, FailureClass, ObjectName, Uid};

/// What is done about a due slot, in this order.
#[derive(Debug)]
pub struct Attempt {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// Running Jobs that the Job of the slot replaces, or that are stuck: deleted one after the other, until a deletion fails.
    pub victims: Vec<Victim>,
    /// What follows when they are deleted.
    pub then: Then,
    /// The slot to look at after this one, as soon as this one has its Job, or will not have one.
    pub next: Option<DateTime<Utc>>,
}

impl Attempt {
    /// The Jobs that it deletes.
    pub fn deleted(&self) -> HashSet<Uid> {
        self.victims.iter().map(|victim| victim.uid.clone()).collect()
    }
}

/// What follows the deletions of an attempt.
#[derive(Debug)]
pub enum Then {
    /// The slot's Job is created.
    Create {
        /// The Job's name.
        name: ObjectName,
        /// Roughly how many earlier slots are not started.
        missed: Missed,
    },
    /// The slot waits until the Job of that name, which `replace-waits` replaces, is gone.
    Wait(Arc<str>),
    /// The sync fails: a Job that is in the way could not be read.
    GiveUp(ApiError),
}

/// What became of an attempt.
#[derive(Debug, Default)]
pub struct Attempted {
    /// The answers to the deletions that were sent, in the order of the victims.
    pub deletions: Vec<DeleteReply>,
    /// The answer to the create, if it was reached.
    pub create: Option<CreateReply>,
    /// Whether the CronJob changed, or the slot's starting deadline passed, while the sync waited for answers. Nothing
    /// more was sent for the slot then.
    pub is_overtaken: bool,
    /// Why it could not be read whether it changed.
    pub failure: Option<ApiError>,
}

/// One live read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The CronJob itself.
    CronJob,
    /// A Job by name.
    Job(ObjectName),
}

/// A running Job that is deleted for the Job of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The Job's name.
    pub name: ObjectName,
    /// Its UID, the deletion's precondition: a later Job of the same name is never deleted.
    pub uid: Uid,
    /// Whether it exists until its Pods are gone.
    pub propagation: Propagation,
}

/// How a deletion treats the Pods of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The Job goes at once, and its Pods afterwards.
    Background,
    /// The Job goes when its Pods are gone.
    Foreground,
}

/// The end of a sync.
#[derive(Debug)]
pub struct Settlement {
    /// The status to write, if it changed.
    pub status: Option<StatusWrite>,
    /// The same changes as edits, for a later sync if this write does not succeed.
    pub edits: Edits,
    /// The events to record.
    pub events: Vec<Event>,
    /// What the next sync is to know.
    pub memo: Memo,
    /// The slot whose Job existed before this process could create it.
    pub already_there: Option<DateTime<Utc>>,
    /// The newest due slot that a change of the CronJob passed over, in the sync that finds the change.
    pub passed_over: Option<DateTime<Utc>>,
    /// What is deleted of the history after the status write.
    pub pruning: Pruning,
    /// The decision about the due slots, for logs, metrics, commands, and creates whose name is taken.
    pub verdict: Verdict,
    /// Whether the API server refused the create because of the object or its namespace; `None` without a create.
    pub is_refused: Option<bool>,
    /// Findings about Jobs, for logs and metrics.
    pub notes: Vec<Note>,
    /// What happens to the key.
    pub outcome: Outcome,
}

impl Settlement {
    /// The Jobs of slots whose end is news, in the order of their ends. One made by hand is no run.
    pub fn ended_runs(&self, cron_job: &CronJob) -> Vec<&Arc<Job>> {
        let ended = self.notes.iter().filter_map(Note::ended);
        let mut runs: Vec<_> = ended.filter(|job| job.slot_of(cron_job).is_some()).collect();
        runs.sort_by_key(|job| job.ended());
        runs
    }
}

/// What one sync notes for the next, beside the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memo {
    /// The Events about held slots that are not recorded again for an hour.
    pub recent_events: Vec<RecentEvent>,
    /// The slot whose name was last reported as that of a Job of another owner.
    pub name_taken: Option<DateTime<Utc>>,
    /// For a CronJob with `backlog: 0`: the newest slot that was kept from starting when it was last looked at.
    pub blocked: Option<Blocked>,
}

/// A slot that was kept from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// Whether it is to start however late it is: it was not only runs that kept it, or a Job was deleted for it.
    pub waits: bool,
}

/// Finished Jobs beyond the history limits.
#[derive(Debug, Default)]
pub struct Pruning {
    /// Those that are deleted: the oldest, at most `MOST_PRUNED` (32).
    pub jobs: Vec<Arc<Job>>,
    /// The one that shows which slots were started until the status is written, so that it goes only after that.
    pub unrecorded: Option<Uid>,
    /// How many more there are.
    pub more: usize,
}

/// A sync's decision about the slots that came due since the last one that had its Job. Of several slots, the newest
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// No decision: a request failed, a create has no answer, or the CronJob is being deleted or was taken back.
    #[default]
    Open,
    /// No slot is due.
    NothingDue,
    /// This sync started the Job of the slot.
    Started {
        /// The slot.
        slot: DateTime<Utc>,
        /// Roughly how many earlier slots were not started.
        missed: Missed,
    },
    /// The slot is not started, for good or until what [holds](Skip::held) it is over.
    Skipped(Skip),
}

/// Why a slot is not started: for decisions, log, metrics, `explain --since` and the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A Job of an earlier slot runs, and the concurrency policy is Forbid.
    Forbid(DateTime<Utc>),
    /// The starting deadline passed before a controller could start it.
    Deadline(DateTime<Utc>),
    /// A Job of another owner has the slot's name.
    NameTaken(DateTime<Utc>),
    /// As many Jobs as `max-concurrent` allows are unfinished.
    MaxConcurrent(DateTime<Utc>),
    /// With `replace-waits`, the Job of an earlier slot is not gone yet.
    Replacing(DateTime<Utc>),
    /// The last Jobs failed, as many as `pause-after-failures` allows.
    Paused(DateTime<Utc>),
    /// It could not start in the time that `backlog: 0` leaves it.
    PassedOver(DateTime<Utc>),
    /// The CronJob is suspended; its slots are not computed.
    Suspended,
    /// The schedule, the time zone or a policy is invalid, or the schedule has no future slot.
    Invalid,
}

impl Skip {
    /// The slot, if there is one.
    pub fn slot(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Forbid(slot)
            | Self::MaxConcurrent(slot)
            | Self::Replacing(slot)
            | Self::Paused(slot)
            | Self::Deadline(slot)
            | Self::NameTaken(slot)
            | Self::PassedOver(slot) => Some(slot),
            Self::Suspended | Self::Invalid => None,
        }
    }

    /// The slot, if it starts later.
    pub fn held(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Forbid(slot) | Self::MaxConcurrent(slot) | Self::Replacing(slot) | Self::Paused(slot) => Some(slot),
            Self::Deadline(_) | Self::NameTaken(_) | Self::PassedOver(_) | Self::Suspended | Self::Invalid => None,
        }
    }

    /// In a word: the value of the metrics' `reason` label, and of `reason` in the log and on the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbid(_) => "forbid",
            Self::Deadline(_) => "deadline",
            Self::NameTaken(_) => "name_taken",
            Self::MaxConcurrent(_) => "max_concurrent",
            Self::Replacing(_) => "replacing",
            Self::Paused(_) => "paused",
            Self::PassedOver(_) => "passed_over",
            Self::Suspended => "suspended",
            Self::Invalid => "invalid",
        }
    }
}

/// A fact about one Job that no earlier sync found.
#[derive(Clone, Debug)]
pub enum Note {
    /// The Job takes its slot although no status says so: the controller that made it died first, or is another
    /// controller.
    Adopted(Arc<Job>, DateTime<Utc>),
    /// The Job was active and has ended.
    Ended(Arc<Job>),
}

impl Note {
    /// The Job, if its end is news: it was active, or is adopted when it has ended.
    pub fn ended(&self) -> Option<&Arc<Job>> {
        match self {
            Self::Ended(job) => Some(job),
            Self::Adopted(job, _) => Some(job).filter(|job| job.finished.is_some()),
        }
    }
}

/// One write of `status`.
#[derive(Debug, Clone)]
pub struct StatusWrite {
    /// The version that the change is based on; the API server refuses the write for any other version.
    pub base: Arc<CronJob>,
    /// The status to write.
    pub status: CronJobStatus,
}

/// One Event on the CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Severity.
    pub type_: EventType,
    /// Machine-readable reason, same as upstream.
    pub reason: &'static str,
    /// Human-readable text, same as upstream.
    pub message: String,
}

/// When an Event was recorded that says why slots are held. It is recorded again after an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentEvent {
    /// The Event's reason.
    pub reason: &'static str,
    /// Until when it says that they are held.
    pub until: Option<DateTime<Utc>>,
    /// When.
    pub at: DateTime<Utc>,
}

/// What happens to the key after a sync.
#[derive(Debug)]
pub enum Outcome {
    /// No requeue: the next change of an object enqueues the key.
    Done,
    /// No decision: there are more references to Jobs that may be gone. Requeue at once.
    Again,
    /// Requeue at this wall time: when the next slot is due, or something that holds or decides one may be over.
    Requeue(DateTime<Utc>),
    /// A Job was started and the status does not list it yet. Requeue after all keys that have a Job to start, and at
    /// the next slot.
    SettleLater {
        /// The next slot.
        next: Option<DateTime<Utc>>,
    },
    /// No decision: the template budget is used up. The key is requeued when there is space.
    AwaitTemplate,
    /// Retry with backoff.
    Failed(Failure),
}

impl Outcome {
    /// When to requeue, but for at once: at the next slot, or when what holds one ends.
    pub fn requeue_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Requeue(next) | Self::SettleLater { next: Some(next) } => Some(*next),
            Self::Done | Self::Again | Self::AwaitTemplate | Self::Failed(_) | Self::SettleLater { next: None } => None,
        }
    }
}

/// Why a sync has to be retried.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Failure {
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A running Job could not be deleted, so its successor was not started.
    #[error("could not replace job {0}: {1}")]
    CouldNotReplace(ObjectName, #[source] ApiError),
    /// The live object is another CronJob of the same name; the watch has not shown it yet.
    #[error("CronJob {0} was deleted and created again")]
    Recreated(ObjectName),
    /// The CronJob was released and handed over again; the watch has not shown this yet.
    #[error("CronJob {0} was taken back and handed over again")]
    HandedOverAgain(ObjectName),
    /// While the sync waited for answers, the CronJob changed, the slot's starting deadline passed, or the clock was set back.
    #[error(
        "CronJob {0} has changed, its starting deadline passed, or the clock was set back, before its Job was created"
    )]
    Changed(ObjectName),
    /// No Job can be made from the template.
    #[error("{0}")]
    Template(String),
    /// The Jobs of its namespace may not be listed.
    #[error("the Jobs of CronJob {0} are not known: those of its namespace were not listed yet")]
    JobsNotListed(ObjectName),
}

impl Failure {
    /// The API error that caused the failure, if any.
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) | Self::CouldNotReplace(_, error) => Some(error),
            Self::Recreated(_)
            | Self::HandedOverAgain(_)
            | Self::Changed(_)
            | Self::Template(_)
            | Self::JobsNotListed(_) => None,
        }
    }

    /// The scope of the failure: the key, its namespace or the API server.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::JobsNotListed(_) => FailureClass::Namespace,
            _ => self.api_error().map_or(FailureClass::Key, ApiError::class),
        }
    }
}
