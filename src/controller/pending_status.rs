//! What this process still has to write into the status of CronJobs: those whose Jobs it has started, or may have started,
//! and those whose status it could not write.
//!
//! Guarantees: what is owed to a CronJob is never paid to another of the same name, and does not grow beyond what its
//! status would hold. When the process dies the pending is lost and no harm is done: whoever comes next finds the Jobs by
//! their names and owner.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use dashmap::DashMap;
use dashmap::mapref::one::RefMut;
use tokio::time::Instant;

use super::observation::PendingCreate;
use super::status::Edits;
use crate::api::batch_v1::CronJob;
use crate::api::{ObjectName, Uid};
use crate::client::{LONGEST_WRITE, SERVER_MARGIN};

/// How long after it was sent a create can be committed, whatever becomes of its sender.
pub const LONGEST_CREATE: Duration = LONGEST_WRITE.saturating_add(SERVER_MARGIN);

/// Debts, by CronJob.
#[derive(Debug, Default)]
pub struct PendingStatuses(DashMap<ObjectName, PendingStatus>);

/// What is owed to one CronJob.
#[derive(Clone, Debug)]
pub struct PendingStatus {
    /// Whom it is owed to.
    pub uid: Uid,
    /// What its status has to say.
    pub edits: Edits,
    /// The create that was sent last, while its result is not known, or while the status does not say it of a CronJob that is
    /// shared with another controller.
    pub begun: Option<BegunCreate>,
}

/// A create that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunCreate {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// Until when an earlier create for the same slot may be committed whose result is not known.
    earlier: Option<Instant>,
    /// Until when any of them may be.
    may_commit_until: Option<Instant>,
}

impl BegunCreate {
    /// What a decision has to know of it; `None` where its result is known.
    pub fn pending(&self) -> Option<PendingCreate> {
        let left = self.may_commit_until?.saturating_duration_since(Instant::now());
        let wait = TimeDelta::from_std(left).ok().filter(|left| !left.is_zero());
        Some(PendingCreate { slot: self.slot, wait })
    }
}

impl PendingStatuses {
    /// From now on this is what is owed.
    pub fn put(&self, key: &ObjectName, uid: &Uid, edits: Edits) {
        if edits.is_empty() && !self.contains(key) {
            return;
        }
        self.entry_for(key, uid).edits = edits;
        self.drop_if_paid(key);
    }

    /// A create of the Job for `slot` is about to be sent.
    pub fn begin(&self, key: &ObjectName, uid: &Uid, slot: DateTime<Utc>) {
        let mut pending = self.entry_for(key, uid);
        let earlier = pending.begun.filter(|begun| begun.slot == slot).and_then(|begun| begun.may_commit_until);
        pending.begun = Some(BegunCreate { slot, earlier, may_commit_until: Some(Instant::now() + LONGEST_CREATE) });
    }

    /// The create that was sent last has made its Job. `keeps` it in mind until the status says so.
    pub fn created(&self, key: &ObjectName, keeps: bool) {
        if let Some(mut pending) = self.0.get_mut(key) {
            pending.begun =
                pending.begun.filter(|_| keeps).map(|begun| BegunCreate { may_commit_until: None, ..begun });
        }
        self.drop_if_paid(key);
    }

    /// The create that was sent last was refused, or never left. What an earlier one for the same slot came to stays open.
    pub fn refused(&self, key: &ObjectName, keeps: bool) {
        if let Some(mut pending) = self.0.get_mut(key) {
            let before = pending.begun.map(|begun| BegunCreate { may_commit_until: begun.earlier, ..begun });
            pending.begun = before.filter(|begun| keeps || begun.may_commit_until.is_some());
        }
        self.drop_if_paid(key);
    }

    /// The create that was sent last may still be committed until `end`.
    pub fn unanswered(&self, key: &ObjectName, end: Instant) {
        if let Some(mut pending) = self.0.get_mut(key)
            && let Some(begun) = &mut pending.begun
        {
            begun.may_commit_until = begun.earlier.max(Some(end));
        }
    }

    /// The create that was sent last to the CronJob with that name and UID.
    pub fn begun(&self, key: &ObjectName, uid: &Uid) -> Option<BegunCreate> {
        self.0.get(key).filter(|pending| pending.uid == *uid).and_then(|pending| pending.begun)
    }

    /// Until when any create may still be committed whose result is not known; in the past when there is none.
    pub fn last_commit(&self) -> Option<Instant> {
        self.0.iter().filter_map(|pending| pending.begun?.may_commit_until).max()
    }

    /// Whether this CronJob's status lacks something, or a create for it may still be committed.
    pub fn is_open(&self, key: &ObjectName) -> bool {
        let now = Instant::now();
        let may_commit = |pending: &PendingStatus| {
            pending.begun.and_then(|begun| begun.may_commit_until).is_some_and(|end| now < end)
        };
        self.0.get(key).is_some_and(|pending| !pending.edits.is_empty() || may_commit(&pending))
    }

    /// The status was written as it is here.
    pub fn recorded(&self, cron_job: &CronJob) {
        if let Some(mut pending) = self.0.get_mut(&cron_job.name) {
            pending.begun = pending.begun.filter(|begun| cron_job.status.last_schedule_time < Some(begun.slot));
        }
        self.drop_if_paid(&cron_job.name);
    }

    /// What is owed to the CronJob with that name and UID.
    pub fn owed(&self, key: &ObjectName, uid: &Uid) -> Edits {
        self.0.get(key).filter(|pending| pending.uid == *uid).map(|pending| pending.edits.clone()).unwrap_or_default()
    }

    /// What is owed to whoever has, or had, that name.
    pub fn pending(&self, key: &ObjectName) -> Option<PendingStatus> {
        self.0.get(key).map(|pending| pending.clone())
    }

    /// Whether something is owed to a CronJob of that name.
    pub fn contains(&self, key: &ObjectName) -> bool {
        self.0.contains_key(key)
    }

    /// How many CronJobs have an entry.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The CronJobs for which something is [open](Self::is_open).
    pub fn open(&self) -> Vec<ObjectName> {
        let keys: Vec<_> = self.0.iter().map(|pending| pending.key().clone()).collect();
        keys.into_iter().filter(|key| self.is_open(key)).collect()
    }

    /// The CronJob is gone.
    pub fn forget(&self, key: &ObjectName) {
        self.0.remove(key);
    }

    fn entry_for(&self, key: &ObjectName, uid: &Uid) -> RefMut<'_, ObjectName, PendingStatus> {
        let nothing = || PendingStatus { uid: uid.clone(), edits: Edits::default(), begun: None };
        let mut pending = self.0.entry(key.clone()).or_insert_with(nothing);
        if pending.uid != *uid {
            *pending = nothing();
        }
        pending
    }

    fn drop_if_paid(&self, key: &ObjectName) {
        self.0.remove_if(key, |_, pending| pending.edits.is_empty() && pending.begun.is_none());
    }
}
