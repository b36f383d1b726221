//! What this process still has to write into the status of CronJobs whose Jobs it has started.
//!
//! Guarantees: a CronJob owes at most what one sync left, because a CronJob that owes something settles in the sync
//! that starts its next Job; what is owed to a CronJob is never paid to another of the same name. When the process dies
//! the debt is lost and no harm is done: whoever comes next finds the Job by its name and its owner.

use dashmap::DashMap;

use super::status::Edits;
use crate::api::{ObjectName, Uid};

/// Edits of statuses, by CronJob.
#[derive(Debug, Default)]
pub struct Unsettled(DashMap<ObjectName, (Uid, Edits)>);

impl Unsettled {
    /// Remembers what is owed.
    pub fn put(&self, key: &ObjectName, uid: &Uid, edits: Edits) {
        self.0.insert(key.clone(), (uid.clone(), edits));
    }

    /// What is owed to the CronJob with that name and UID.
    pub fn owed(&self, key: &ObjectName, uid: &Uid) -> Option<Edits> {
        self.0.get(key).filter(|owed| owed.0 == *uid).map(|owed| owed.1.clone())
    }

    /// Whether something is owed to a CronJob of that name.
    pub fn contains(&self, key: &ObjectName) -> bool {
        self.0.contains_key(key)
    }

    /// The status says it all, or its CronJob is gone.
    pub fn settled(&self, key: &ObjectName) {
        self.0.remove(key);
    }
}
