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
    /// Entries in all maps, those for Jobs included.
    pub entries: usize,
    /// Jobs deleted here that the cache still shows.
    pub deleted_jobs: usize,
    /// Bytes of Job templates in versions of CronJobs that the cache does not show yet.
    pub template_bytes: usize,
}

impl<C: JobControl + CronJobControl> Controller<C> {
    /// The state retained for all CronJobs together.
    pub fn retained(&self) -> Retained {
        let by_name =
            [self.name_taken.len(), self.name_conflicts_told.len(), self.confirmed.len(), self.timed_out.len()];
        let others = self.pending_statuses.len() + self.external_jobs.len() + by_name.iter().sum::<usize>();
        let own = self.mutation_cache.retained();
        Retained { entries: own.entries + others, ..own }
    }

    /// The names of the maps that hold state for the CronJob with that name and UID.
    pub fn retained_for(&self, key: &ObjectName, uid: &Uid) -> Vec<&'static str> {
        // In a map without UIDs, an entry may belong to the next CronJob of the same name.
        let is_there = self.parts.cron_jobs.get(key).is_some();
        let held = [
            ("pending_statuses", self.pending_statuses.pending(key).is_some_and(|pending| pending.uid == *uid)),
            ("name_taken", self.name_taken.get(key).is_some_and(|taken| taken.0 == *uid)),
            ("name_conflicts_told", self.name_conflicts_told.get(key).is_some_and(|told| *told == *uid)),
            ("external_jobs", !is_there && self.external_jobs.contains(key)),
            ("confirmed", !is_there && self.confirmed.contains_key(key)),
            ("timed_out", !is_there && self.timed_out.contains_key(key)),
            ("timers", !is_there && self.parts.queue.scheduled_for(key).is_some()),
            ("failures", !is_there && self.parts.queue.num_requeues(key) > 0),
        ];
        let held = held.into_iter().filter(|(_, is_held)| *is_held).map(|(name, _)| name);
        held.chain(self.mutation_cache.retained_for(key, uid)).collect()
    }
}
