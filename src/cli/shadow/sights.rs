//! The Jobs that the watch shows, and the queue of their CronJobs.
//!
//! Guarantees: a Job of a first list is no news. At most [`MOST_SIGHTS`] Jobs of a CronJob wait to be looked at.

use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::clock::SharedClock;
use parking_lot::Mutex;

use super::compare::Sight;
use crate::api::batch_v1::Job;
use crate::api::{ControllerKind, Object as _, ObjectName};
use crate::cache::ResourceEventHandler;
use crate::cli::explain::watched::Watched;
use crate::workqueue::WorkQueue;

/// The most Jobs of a CronJob that wait to be compared.
pub(super) const MOST_SIGHTS: usize = 64;

/// The Jobs that the watch has shown since their CronJobs were looked at last.
pub(super) type Sights = Mutex<HashMap<ObjectName, Vec<Sight>>>;

/// Fills the queue.
pub(super) struct Handler {
    /// The CronJobs to be looked at.
    pub queue: WorkQueue<ObjectName>,
    /// Where the Jobs go.
    pub sights: Arc<Sights>,
    /// The cluster's time.
    pub clock: SharedClock,
}

impl Handler {
    /// The CronJob that owns a Job, by name.
    fn owner_of(job: &Job) -> Option<ObjectName> {
        let (owner, parent) = (job.controller.as_ref()?, ControllerKind::CronJob.parent);
        let is_cron_job = *owner.kind == *parent.kind && *owner.group == *parent.group;
        is_cron_job.then(|| ObjectName::new(Arc::clone(&job.name.namespace), Arc::clone(&owner.name)))
    }

    fn of_job(&self, job: &Job) {
        if let Some(owner) = Self::owner_of(job) {
            self.queue.add(owner);
        }
    }
}

impl ResourceEventHandler<Watched> for Handler {
    fn on_add(&self, object: &Arc<Watched>, _is_in_initial_list: bool) {
        self.queue.add(object.object_name().clone());
    }

    fn on_update(&self, _old: &Arc<Watched>, new: &Arc<Watched>) {
        self.queue.add(new.object_name().clone());
    }

    fn on_delete(&self, last: &Arc<Watched>, _final_state_unknown: bool) {
        self.queue.add(last.object_name().clone());
    }
}

impl ResourceEventHandler<Job> for Handler {
    fn on_add(&self, job: &Arc<Job>, is_in_initial_list: bool) {
        let Some(owner) = Self::owner_of(job) else { return };
        if !is_in_initial_list {
            let mut sights = self.sights.lock();
            let known = sights.entry(owner.clone()).or_default();
            if known.len() < MOST_SIGHTS {
                known.push(Sight { job: Arc::clone(job), at: self.clock.now() });
            }
        }
        self.queue.add(owner);
    }

    fn on_update(&self, _old: &Arc<Job>, new: &Arc<Job>) {
        self.of_job(new);
    }

    fn on_delete(&self, last: &Arc<Job>, _final_state_unknown: bool) {
        self.of_job(last);
    }
}
