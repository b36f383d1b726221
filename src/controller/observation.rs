//! The facts that a sync decides on.
//!
//! Guarantees: what a sync reads is added to its [`Observation`], and nothing is removed or changed. Deciding again therefore
//! reaches the same point and continues from there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use super::control::Patience;
use super::plan::Memo;
use super::status::Edits;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::CountedFrom;
use crate::api::{ApiError, Delivery, ObjectName, Publish, Uid};

/// The answer to a deletion.
pub type DeleteReply = Result<(), ApiError>;

/// The answer to a create.
#[derive(Debug, Clone)]
pub enum CreateReply {
    /// The Job as the server stored it.
    Created(Arc<Job>),
    /// The API server refused, or did not answer.
    Refused(ApiError),
    /// A Job of that name exists, which was read then.
    Exists(Result<Arc<Job>, ApiError>),
    /// No request was sent: no Job can be made from the template.
    BadTemplate(String),
}

/// Which controllers reconcile a CronJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Only this controller.
    Exclusive,
    /// This controller and kube-controller-manager's, which starts none of its Jobs.
    Shared,
    /// kube-controller-manager's controller again. This controller only writes its pending statuses.
    Released {
        /// The slot of the last create that was sent, if its result is not known.
        begun: Option<DateTime<Utc>>,
    },
}

/// A create with an unknown result: no answer came, or the answer leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingCreate {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// How much longer it may be committed. `None` means that time is over, and a live read gives the result.
    pub wait: Option<TimeDelta>,
    /// Whether another create of the same Job has no known result either: one may be committed after the other's Job.
    pub is_repeated: bool,
}

impl PendingCreate {
    /// How much longer it may be committed although a create of a slot up to `last` made its Job: for an earlier slot, or beside
    /// the create that made its own. A Job that is deleted before could run once more.
    pub fn stray_wait(&self, last: Option<DateTime<Utc>>) -> Option<TimeDelta> {
        if last > Some(self.slot) { self.wait } else { self.repeated_wait().filter(|_| last == Some(self.slot)) }
    }

    /// How much longer it may be committed, if another create may have made its Job.
    pub fn repeated_wait(&self) -> Option<TimeDelta> {
        self.wait.filter(|_| self.is_repeated)
    }
}

/// What earlier syncs of this process left about one CronJob.
#[derive(Clone, Debug, Default)]
pub struct Recalled {
    /// Jobs that they created and the cache does not show yet.
    pub created: Vec<Arc<Job>>,
    /// Jobs that they deleted and the cache may still show.
    pub deleted: HashSet<Uid>,
    /// What the last one noted.
    pub memo: Memo,
    /// Status edits that an earlier sync decided and did not write, with the newest slot that had its Job.
    pub carried: Edits,
    /// A record of decided slots that an edit has removed, if no sync has decided since; `carried` has it, too.
    pub record_removed: Option<Box<CountedFrom>>,
    /// The slot of the last create that this process sent, until its result is known; for a CronJob shared with another
    /// controller, until the status lists it.
    pub begun: Option<DateTime<Utc>>,
    /// That create, if its result is not known.
    pub pending_create: Option<PendingCreate>,
    /// Finished Jobs that were deleted before a sync saw them finished.
    pub vanished: Vec<Arc<Job>>,
}

/// The facts known about one CronJob.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The newest version of the CronJob that is known: that of the cache, or one that this process wrote or read live.
    pub cron_job: Arc<CronJob>,
    /// The version that the cache shows.
    pub shown: Arc<CronJob>,
    /// Its Jobs: those of the cache, with those that this process has created and without those that it has deleted.
    pub jobs: Vec<Arc<Job>>,
    /// What earlier syncs left.
    pub recalled: Recalled,
    /// The time zone of schedules that do not set one.
    pub local_zone: Zone,
    /// Which annotations are written about the CronJob.
    pub publish: Publish,
    /// Which controllers reconcile the CronJob.
    pub ownership: Ownership,
    /// Whether the cache may be stale; the CronJob is then read live before a Job is created.
    pub view_is_suspect: bool,
    /// How much longer creates may be committed for which nothing is asked: those of an earlier leader that let its lease expire,
    /// and those of this process beside one that made its slot's Job.
    pub open_creates_wait: Option<TimeDelta>,
    /// Whether a transient error, such as a busy server, records no Warning yet.
    pub hides_transient: bool,
    /// The time limit of its create, its status write, and its deletions of running Jobs.
    pub patience: Patience,
    /// Whether a sync that starts a Job leaves pruning and the status to a later sync.
    pub settle_later: bool,
    /// What was read from the API server.
    pub live: Live,
}

/// The answers to the reads of one sync.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The CronJob, if it was read; without its template, if that is long.
    pub cron_job: Option<Result<Arc<CronJob>, ApiError>>,
    // Keyed, because one sync may read many Jobs.
    jobs: HashMap<ObjectName, Result<Arc<Job>, ApiError>>,
}

/// What the API server has of a Job that is known by its UID.
#[derive(Clone, Copy, Debug)]
pub enum LiveJob<'a> {
    /// It can be read.
    Found(&'a Arc<Job>),
    /// It is there, or one of its name, and cannot be decoded: it may run.
    Unreadable,
    /// It is gone, or another Job has its name.
    Gone,
}

impl Observation {
    /// The observation of the cache, before any request.
    pub fn new(cron_job: Arc<CronJob>, jobs: Vec<Arc<Job>>, local_zone: Zone) -> Self {
        Self {
            shown: Arc::clone(&cron_job),
            cron_job,
            jobs,
            recalled: Recalled::default(),
            local_zone,
            publish: Publish::default(),
            ownership: Ownership::Exclusive,
            view_is_suspect: false,
            open_creates_wait: None,
            hides_transient: false,
            patience: Patience::default(),
            settle_later: false,
            live: Live::default(),
        }
    }

    /// The Jobs, in the order in which they are processed.
    pub fn children(&self) -> impl Iterator<Item = &Arc<Job>> {
        steps::each(self.jobs.iter())
    }

    /// The answer to the read of a Job, if one was made.
    pub fn live_job(&self, name: &ObjectName) -> Option<&Result<Arc<Job>, ApiError>> {
        self.live.jobs.get(name)
    }

    /// What the read of a Job showed, which must have been made.
    ///
    /// # Errors
    ///
    /// The read failed.
    pub fn live_job_of(&self, name: &ObjectName, uid: &Uid) -> Result<LiveJob<'_>, &ApiError> {
        match self.live_job(name) {
            Some(Ok(job)) if job.uid == *uid => Ok(LiveJob::Found(job)),
            Some(Err(error)) if error.delivery == Delivery::Unreadable => Ok(LiveJob::Unreadable),
            Some(Err(error)) if !error.is_not_found() => Err(error),
            _ => Ok(LiveJob::Gone),
        }
    }

    /// Adds the answer to the read of a Job.
    pub fn learn_job(&mut self, name: ObjectName, reply: Result<Arc<Job>, ApiError>) {
        self.live.jobs.entry(name).or_insert(reply);
    }
}
