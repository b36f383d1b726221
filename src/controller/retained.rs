//! What the controller keeps in memory besides the caches and the queue. Tests use it to find leaks.
//!
//! Guarantees: reading changes nothing. After the last sync of a deleted CronJob, [`Controller::retained_for`] is
//! empty. If another CronJob took the name, it is empty after that one's first sync.

use super::Controller;
use super::control::{CronJobControl, JobControl};
use crate::api::{ObjectName, Uid};

/// The amount of retained state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// CronJobs' memories, and the Jobs in them.
    pub entries: usize,
    /// Jobs deleted here that the cache still shows.
    pub deleted_jobs: usize,
    /// Bytes of Job templates in versions of CronJobs that the cache does not show yet.
    pub template_bytes: usize,
}

impl<C: JobControl + CronJobControl> Controller<C> {
    /// The state retained for all CronJobs together.
    pub fn retained(&self) -> Retained {
        self.memories.retained()
    }

    /// The number of Jobs that were found to come from another controller.
    pub fn external_jobs(&self) -> u64 {
        self.parts.metrics.external_jobs_total.get()
    }

    /// The names of what holds state for the CronJob with that name and UID.
    pub fn retained_for(&self, key: &ObjectName, uid: &Uid) -> Vec<&'static str> {
        // State without a UID may belong to the next CronJob of the same name.
        let is_there = self.parts.cron_jobs.get(key).is_some();
        let held = [
            ("memory of its UID", self.memories.knows(key, uid)),
            ("memory of its name", !is_there && self.memories.contains(key)),
            ("timers", !is_there && self.parts.queue.scheduled_for(key).is_some()),
            ("failures", !is_there && self.parts.queue.num_requeues(key) > 0),
        ];
        held.into_iter().filter(|(_, is_held)| *is_held).map(|(name, _)| name).collect()
    }
}
