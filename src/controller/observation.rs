//! The facts that a sync decides on.
//!
//! Guarantees: an [`Observation`] only grows during a sync. Every answer of the API server is added and none is
//! removed. Deciding again from the start therefore reaches the same point and continues from there.

use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use super::control::Patience;
use super::plan::Told;
use super::status::Edits;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ApiError, ObjectName, Publish, Uid};

/// The answer to a deletion.
pub type DeleteReply = Result<(), ApiError>;

/// The answer to a create.
#[derive(Debug, Clone)]
pub enum CreateReply {
    /// The Job as the server stored it.
    Created(Arc<Job>),
    /// The API server refused, or did not answer.
    Refused(ApiError),
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
}

/// A slot that was kept from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// Whether it is to start however late it is: it was not only runs that kept it, or a Job was deleted for it.
    pub waits: bool,
}

/// The facts known about one CronJob.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Observation {
    /// The CronJob in the cache.
    pub cron_job: Arc<CronJob>,
    /// Its Jobs in the cache, without those that this process has deleted.
    pub jobs: Vec<Arc<Job>>,
    /// The time zone of schedules that do not set one.
    pub local_zone: Zone,
    /// Which annotations are written about the CronJob.
    pub publish: Publish,
    /// Whether the cache may be stale; the CronJob is then read live before a Job is created.
    pub view_is_suspect: bool,
    /// The slot whose Job name was already reported as taken by another owner.
    pub name_taken_reported: Option<DateTime<Utc>>,
    /// The Events that this process recorded about held slots in the last hour.
    pub told: Vec<Told>,
    /// The newest slot that was kept from starting when it was last looked at, for a CronJob with `backlog: 0`.
    pub blocked: Option<Blocked>,
    /// Status edits that an earlier sync decided and did not write.
    pub carried: Edits,
    /// Whether `carried` has a record of decided slots that no sync has seen yet.
    pub record_is_new: bool,
    /// Whether the CronJob changed, or the slot's starting deadline passed, while the sync waited for answers. Nothing
    /// more is sent for the slot then.
    pub is_overtaken: bool,
    /// Which controllers reconcile the CronJob.
    pub ownership: Ownership,
    /// The last create that this process sent, if its result is not known.
    pub pending_create: Option<PendingCreate>,
    /// How much longer creates of an earlier leader that let its lease expire may be committed.
    pub takeover_wait: Option<TimeDelta>,
    /// Finished Jobs that were deleted before a sync saw them finished.
    pub vanished: Vec<Arc<Job>>,
    /// Whether a transient error, such as a busy server, records no Warning yet.
    pub hides_transient: bool,
    /// The time limit of the sync's writes.
    pub patience: Patience,
    /// Whether a sync that starts a Job leaves pruning and the status to a later sync.
    pub settle_later: bool,
    /// The answer to the live read of the CronJob, if one was made.
    pub live_cron_job: Option<Result<Arc<CronJob>, ApiError>>,
    /// The answer to the create, if one was sent.
    pub create: Option<CreateReply>,
    // Keyed, because one sync may read and delete many Jobs.
    live_jobs: HashMap<ObjectName, Result<Arc<Job>, ApiError>>,
    deletions: HashMap<Uid, DeleteReply>,
}

impl Observation {
    /// The observation of the cache, before any request.
    pub fn new(cron_job: Arc<CronJob>, jobs: Vec<Arc<Job>>, local_zone: Zone) -> Self {
        Self {
            cron_job,
            jobs,
            local_zone,
            publish: Publish::default(),
            view_is_suspect: false,
            ownership: Ownership::Exclusive,
            name_taken_reported: None,
            told: Vec::new(),
            blocked: None,
            carried: Edits::default(),
            record_is_new: false,
            is_overtaken: false,
            pending_create: None,
            takeover_wait: None,
            vanished: Vec::new(),
            hides_transient: false,
            patience: Patience::default(),
            settle_later: false,
            live_cron_job: None,
            create: None,
            live_jobs: HashMap::new(),
            deletions: HashMap::new(),
        }
    }

    /// The Jobs, in the order in which they are processed.
    pub fn children(&self) -> impl Iterator<Item = &Arc<Job>> {
        steps::each(self.jobs.iter())
    }

    /// The answer to the read of a Job, if one was made.
    pub fn live_job(&self, name: &ObjectName) -> Option<&Result<Arc<Job>, ApiError>> {
        self.live_jobs.get(name)
    }

    /// The answer to the deletion of a Job, if one was sent.
    pub fn deletion_of(&self, uid: &Uid) -> Option<&DeleteReply> {
        self.deletions.get(uid)
    }

    /// Adds the answer to the read of a Job.
    pub fn learn_job(&mut self, name: ObjectName, reply: Result<Arc<Job>, ApiError>) {
        self.live_jobs.entry(name).or_insert(reply);
    }

    /// Drops the template that was read to create a Job. This is the only fact that is removed; no decision uses it, and a create
    /// that comes later reads it again.
    pub fn forget_long_template(&mut self) {
        if let Some(Ok(live)) = &mut self.live_cron_job {
            *live = live.for_cache();
        }
    }

    /// Adds the answer to a deletion.
    pub fn learn_deletion(&mut self, uid: Uid, reply: DeleteReply) {
        self.deletions.entry(uid).or_insert(reply);
    }
}
