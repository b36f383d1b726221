//! What this process still has to write into the status of CronJobs: those whose Jobs it has started, and those whose
//! status it could not write.
//!
//! Guarantees: what is owed to a CronJob is never paid to another of the same name, and does not grow beyond what its
//! status would hold. When the process dies the debt is lost and no harm is done: whoever comes next finds the Jobs by
//! their names and owner.

use dashmap::DashMap;

use super::status::Edits;
use crate::api::{ObjectName, Uid};

/// Edits of statuses, by CronJob.
#[derive(Debug, Default)]
pub struct Unsettled(DashMap<ObjectName, (Uid, Edits)>);

impl Unsettled {
    /// From now on this is what is owed.
    pub fn put(&self, key: &ObjectName, uid: &Uid, edits: Edits) {
        if !edits.is_empty() {
            self.0.insert(key.clone(), (uid.clone(), edits));
        } else if self.contains(key) {
            self.forget(key);
        }
    }

    /// What is owed to the CronJob with that name and UID.
    pub fn owed(&self, key: &ObjectName, uid: &Uid) -> Edits {
        self.0.get(key).filter(|owed| owed.0 == *uid).map(|owed| owed.1.clone()).unwrap_or_default()
    }

    /// Whether something is owed to a CronJob of that name.
    pub fn contains(&self, key: &ObjectName) -> bool {
        self.0.contains_key(key)
    }

    /// The CronJob is gone.
    pub fn forget(&self, key: &ObjectName) {
        self.0.remove(key);
    }
}
