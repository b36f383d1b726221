//! What this process still has to write into the status of CronJobs: those whose Jobs it has started, or may have started,
//! and those whose status it could not write.
//!
//! Guarantees: what is owed to a CronJob is never paid to another of the same name, and does not grow beyond what its
//! status would hold. When the process dies the debt is lost and no harm is done: whoever comes next finds the Jobs by
//! their names and owner.

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use dashmap::mapref::one::RefMut;

use super::status::Edits;
use crate::api::batch_v1::CronJob;
use crate::api::{ObjectName, Uid};

/// Debts, by CronJob.
#[derive(Debug, Default)]
pub struct Unsettled(DashMap<ObjectName, Debt>);

/// What is owed to one CronJob.
#[derive(Clone, Debug)]
pub struct Debt {
    /// Whom it is owed to.
    pub uid: Uid,
    /// What its status has to say.
    pub edits: Edits,
    /// The slot whose Job was asked for last, while the status does not say that it had one: the answer may have been lost.
    pub begun: Option<DateTime<Utc>>,
}

impl Unsettled {
    /// From now on this is what is owed.
    pub fn put(&self, key: &ObjectName, uid: &Uid, edits: Edits) {
        if edits.is_empty() && !self.contains(key) {
            return;
        }
        self.debt_to(key, uid).edits = edits;
        self.drop_if_paid(key);
    }

    /// A Job for `slot` is about to be asked for.
    pub fn begin(&self, key: &ObjectName, uid: &Uid, slot: DateTime<Utc>) {
        self.debt_to(key, uid).begun = Some(slot);
    }

    /// The status was written as it is here.
    pub fn recorded(&self, cron_job: &CronJob) {
        if let Some(mut debt) = self.0.get_mut(&cron_job.name) {
            debt.begun = debt.begun.filter(|slot| cron_job.status.last_schedule_time < Some(*slot));
        }
        self.drop_if_paid(&cron_job.name);
    }

    /// What is owed to the CronJob with that name and UID.
    pub fn owed(&self, key: &ObjectName, uid: &Uid) -> Edits {
        self.0.get(key).filter(|debt| debt.uid == *uid).map(|debt| debt.edits.clone()).unwrap_or_default()
    }

    /// What is owed to whoever has, or had, that name.
    pub fn debt(&self, key: &ObjectName) -> Option<Debt> {
        self.0.get(key).map(|debt| debt.clone())
    }

    /// Whether something is owed to a CronJob of that name.
    pub fn contains(&self, key: &ObjectName) -> bool {
        self.0.contains_key(key)
    }

    /// Everybody to whom something is owed.
    pub fn keys(&self) -> Vec<ObjectName> {
        self.0.iter().map(|debt| debt.key().clone()).collect()
    }

    /// The CronJob is gone.
    pub fn forget(&self, key: &ObjectName) {
        self.0.remove(key);
    }

    fn debt_to(&self, key: &ObjectName, uid: &Uid) -> RefMut<'_, ObjectName, Debt> {
        let nothing = || Debt { uid: uid.clone(), edits: Edits::default(), begun: None };
        let mut debt = self.0.entry(key.clone()).or_insert_with(nothing);
        if debt.uid != *uid {
            *debt = nothing();
        }
        debt
    }

    fn drop_if_paid(&self, key: &ObjectName) {
        self.0.remove_if(key, |_, debt| debt.edits.is_empty() && debt.begun.is_none());
    }
}
