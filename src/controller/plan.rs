//! What [`reconcile`](super::reconcile::reconcile) can ask of the shell around it.
//!
//! Guarantee: a plan holds everything that carrying it out needs; the shell looks nothing up on its own.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use schedule::missed::Missed;

use super::status::Edits;
use crate::api::batch_v1::{CronJob, CronJobStatus, Job};
use crate::api::{ApiError, EventType, FailureClass, ObjectName, Uid};

/// The next step of a sync.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation in every sync that finds nothing to do")]
pub enum Plan {
    /// Ask the API server before anything is decided. The reads are independent of each other.
    Lookup(Vec<Lookup>),
    /// Delete a running Job to make room for that of `slot`; the create waits for the answer.
    Replace {
        /// The Job to delete.
        victim: Victim,
        /// The slot it makes room for.
        slot: DateTime<Utc>,
        /// The CronJob version that says so.
        cron_job: Arc<CronJob>,
    },
    /// Create the Job of `slot`.
    Create {
        /// The Job's name.
        name: ObjectName,
        /// The slot it is for.
        slot: DateTime<Utc>,
        /// The CronJob version whose template it is made from.
        cron_job: Arc<CronJob>,
    },
    /// Delete finished Jobs beyond the history limits that the status names as active: what it has to say of them depends on
    /// the answers. The deletions are independent of each other.
    Prune {
        /// What to delete.
        jobs: Vec<Arc<Job>>,
        /// When the CronJob's next Job is to be created, by which the sync ends.
        next: Option<Requeue>,
    },
    /// Write the status, record the events, and be done; or be done for now.
    Settle(Settlement),
}

/// One live read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The CronJob itself.
    CronJob,
    /// A Job by name.
    Job(ObjectName),
}

/// A running Job that Replace deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The Job's name.
    pub name: ObjectName,
    /// Its UID, the deletion's precondition: a namesake is never deleted.
    pub uid: Uid,
}

/// The end of a sync.
#[derive(Debug)]
pub struct Settlement {
    /// The status to write, where it changed.
    pub status: Option<StatusWrite>,
    /// The same as changes, for a later sync to make if this one does not.
    pub edits: Edits,
    /// The events to record.
    pub events: Vec<Event>,
    /// The slot whose name belongs to somebody else's Job, to be remembered so that it is reported once.
    pub name_taken: Option<DateTime<Utc>>,
    /// The slot for which this CronJob had a Job before ours could be created.
    pub already_there: Option<DateTime<Utc>>,
    /// Finished Jobs beyond the history limits, to be deleted once the status is written: the oldest, no more than
    /// `MOST_PRUNED` (32).
    pub prune: Vec<Arc<Job>>,
    /// How many more there are.
    pub not_pruned: usize,
    /// What was decided about the slots that have come. Nothing depends on it: it is for logs and metrics.
    pub verdict: Verdict,
    /// What else there is to tell.
    pub notes: Vec<Note>,
    /// What becomes of the key.
    pub outcome: Outcome,
}

/// What a sync decided about the slots that have come since the last one that had its Job; of several, the newest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: a request failed, or the CronJob is being deleted.
    #[default]
    Open,
    /// There is none.
    NothingDue,
    /// This sync started the Job of the slot.
    Started {
        /// The slot.
        slot: DateTime<Utc>,
        /// Roughly how many came before it and were not started.
        missed: Missed,
    },
    /// It is not started, and will not be.
    Skipped(Skip),
}

/// Why a slot is not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A Job of an earlier slot runs, and the concurrency policy is Forbid.
    Forbid(DateTime<Utc>),
    /// The starting deadline passed before anybody could start it.
    Deadline(DateTime<Utc>),
    /// Its name belongs to somebody else's Job.
    NameTaken(DateTime<Utc>),
    /// The CronJob is suspended, so that nobody asks what slots come.
    Suspended,
    /// The schedule or the time zone is none, or no slot will ever come.
    Invalid,
}

impl Skip {
    /// In one word, as a metric's label has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbid(_) => "forbid",
            Self::Deadline(_) => "deadline",
            Self::NameTaken(_) => "name_taken",
            Self::Suspended => "suspended",
            Self::Invalid => "invalid",
        }
    }
}

/// Something about one Job that this sync found out, and no sync before it.
#[derive(Clone, Debug)]
pub enum Note {
    /// It takes its slot although no status said so: whoever made it died first, or is another controller.
    Adopted(Arc<Job>, DateTime<Utc>),
    /// It was active and has ended.
    Ended(Arc<Job>),
}

/// One write of `status`.
#[derive(Debug, Clone)]
pub struct StatusWrite {
    /// The version that the change was made to; the server refuses it on any other.
    pub base: Arc<CronJob>,
    /// The status as it shall be.
    pub status: CronJobStatus,
}

/// One Event on the CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Severity.
    pub type_: EventType,
    /// Machine-readable reason, upstream's.
    pub reason: &'static str,
    /// Text for people, upstream's.
    pub message: String,
}

/// What becomes of the key after a sync.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing to wait for: the next change of an object brings the key back.
    Done,
    /// Come back at a slot.
    Requeue(Requeue),
    /// A Job was started and the status does not say so yet: come back when no other key has to start one, and at the
    /// next slot.
    SettleLater {
        /// When the next slot is.
        next: Option<Requeue>,
    },
    /// Nothing was decided: there is no room for the template yet. The key comes back once there is.
    AwaitTemplate,
    /// Try again with backoff.
    Failed(Failure),
}

impl Outcome {
    /// The slot to come back at.
    pub fn next_slot(&self) -> Option<Requeue> {
        match self {
            Self::Requeue(next) | Self::SettleLater { next: Some(next) } => Some(*next),
            Self::Done | Self::AwaitTemplate | Self::Failed(_) | Self::SettleLater { next: None } => None,
        }
    }
}

/// When to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// The wall time of the next slot.
    pub slot: DateTime<Utc>,
}

/// Why a sync has to be tried again.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Failure {
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A running Job could not be deleted, so its successor was not started.
    #[error("could not replace job {0}: {1}")]
    CouldNotReplace(ObjectName, #[source] ApiError),
    /// The live object is another CronJob of the same name; the watch has yet to tell.
    #[error("CronJob {0} was deleted and created again")]
    Recreated(ObjectName),
    /// It was taken back and is ours again; the watch has yet to tell.
    #[error("CronJob {0} was taken back and handed over again")]
    HandedOverAgain(ObjectName),
    /// While answers were waited for it changed, or the slot's starting deadline passed.
    #[error("CronJob {0} has changed, or its starting deadline passed, before its Job was created")]
    Changed(ObjectName),
    /// The template does not make a Job.
    #[error("{0}")]
    Template(String),
}

impl Failure {
    /// The refusal or the missing answer that it comes from, if it comes from one.
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) | Self::CouldNotReplace(_, error) => Some(error),
            Self::Recreated(_) | Self::HandedOverAgain(_) | Self::Changed(_) | Self::Template(_) => None,
        }
    }

    /// Whose trouble it is.
    pub fn class(&self) -> FailureClass {
        self.api_error().map_or(FailureClass::Key, ApiError::class)
    }
}
