//! Everything a sync's decisions rest on.
//!
//! Guarantees: an [`Observation`] only grows while a sync lasts; every answer of the API server is added to it and none
//! is taken back, so that deciding again from the start reaches the same point and goes on from there.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use super::control::Patience;
use super::status::Edits;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ApiError, ObjectName, Uid};

/// The answer to a deletion.
pub type DeleteReply = Result<(), ApiError>;

/// The answer to a create.
#[derive(Debug, Clone)]
pub enum CreateReply {
    /// The Job as the server stored it.
    Created(Arc<Job>),
    /// The server's refusal, or no answer.
    Refused(ApiError),
    /// No request was sent: the template does not make a Job.
    BadTemplate(String),
}

/// Which controllers work on a CronJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This one alone.
    Exclusive,
    /// kube-controller-manager's controller works on it, too, though it starts none of its Jobs.
    Shared,
    /// It was handed back to that controller. This one only writes the statuses that it still owes.
    Released {
        /// The slot whose Job was asked for last, where nobody here knows whether it was created.
        begun: Option<DateTime<Utc>>,
    },
}

/// A create that was sent and whose result is not known: no answer came, or one that leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingCreate {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// How much longer it may still be committed; `None` once that is over, so that a live read tells what became of it.
    pub wait: Option<TimeDelta>,
}

/// What is known of one CronJob.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Observation {
    /// The CronJob as the cache has it.
    pub cron_job: Arc<CronJob>,
    /// Its Jobs as the cache has them, less those this process knows to be deleted.
    pub jobs: Vec<Arc<Job>>,
    /// The zone of schedules that name none.
    pub local_zone: Zone,
    /// Whether the cache may be behind what was already acted on; then the CronJob is read before a Job is created.
    pub view_is_suspect: bool,
    /// The slot whose name was already reported as taken by somebody else.
    pub name_taken_reported: Option<DateTime<Utc>>,
    /// What an earlier sync decided about the status and left to be written.
    pub carried: Edits,
    /// Whether the CronJob changed, or the slot's starting deadline passed, while answers were waited for: then nothing
    /// more is sent for the slot.
    pub is_overtaken: bool,
    /// Whose affair the CronJob is.
    pub ownership: Ownership,
    /// The last create of this process, where its result is not known.
    pub pending_create: Option<PendingCreate>,
    /// How much longer creates of an earlier leader, which let its lease run out, may be committed.
    pub takeover_wait: Option<TimeDelta>,
    /// Finished Jobs that the watch showed as deleted before a sync had seen them finished.
    pub vanished: Vec<Arc<Job>>,
    /// Whether a refusal that says that the server is busy is not worth a Warning yet.
    pub hides_transient: bool,
    /// How long the sync's writes may take.
    pub patience: Patience,
    /// Whether a sync that starts a Job leaves the pruning and the status for later.
    pub settle_later: bool,
    /// The CronJob as the API server has it, once asked.
    pub live_cron_job: Option<Result<Arc<CronJob>, ApiError>>,
    /// The answer to the create, once sent.
    pub create: Option<CreateReply>,
    live_jobs: Vec<(ObjectName, Result<Arc<Job>, ApiError>)>,
    /// A history of any length may be pruned at once.
    deletions: HashMap<Uid, DeleteReply>,
}

impl Observation {
    /// What the cache shows, before anything was asked.
    pub fn new(cron_job: Arc<CronJob>, jobs: Vec<Arc<Job>>, local_zone: Zone) -> Self {
        Self {
            cron_job,
            jobs,
            local_zone,
            view_is_suspect: false,
            ownership: Ownership::Exclusive,
            name_taken_reported: None,
            carried: Edits::default(),
            is_overtaken: false,
            pending_create: None,
            takeover_wait: None,
            vanished: Vec::new(),
            hides_transient: false,
            patience: Patience::default(),
            settle_later: false,
            live_cron_job: None,
            create: None,
            live_jobs: Vec::new(),
            deletions: HashMap::new(),
        }
    }

    /// The Jobs in the order they are walked.
    pub fn children(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.iter()
    }

    /// The answer to the read of a Job, where it was asked for.
    pub fn live_job(&self, name: &ObjectName) -> Option<&Result<Arc<Job>, ApiError>> {
        self.live_jobs.iter().find(|(known, _)| known == name).map(|(_, reply)| reply)
    }

    /// The answer to the deletion of a Job, where it was sent.
    pub fn deletion_of(&self, uid: &Uid) -> Option<&DeleteReply> {
        self.deletions.get(uid)
    }

    /// Adds the answer to the read of a Job.
    pub fn learn_job(&mut self, name: ObjectName, reply: Result<Arc<Job>, ApiError>) {
        self.live_jobs.push((name, reply));
    }

    /// Lets go of the template that was read to create a Job. This is the one thing that is taken back, and no decision
    /// depends on it once the create was answered.
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
