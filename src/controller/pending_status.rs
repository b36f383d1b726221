//! The pending statuses of this process: edits that CronJobs' statuses lack for Jobs that it started or may have
//! started, or because a status write failed.
//!
//! Guarantees: a pending status is never written to another CronJob of the same name. It does not grow beyond the size
//! of the CronJob's status. If the process dies, losing it does no harm: the next leader finds the Jobs by name and
//! owner.

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

/// How long after it was sent a create may be committed, even if its sender died.
pub const LONGEST_CREATE: Duration = LONGEST_WRITE.saturating_add(SERVER_MARGIN);

/// Pending statuses by CronJob.
#[derive(Debug, Default)]
pub struct PendingStatuses(DashMap<ObjectName, PendingStatus>);

/// The pending status of one CronJob.
#[derive(Clone, Debug)]
pub struct PendingStatus {
    /// The CronJob's UID.
    pub uid: Uid,
    /// The edits to write.
    pub edits: Edits,
    /// The last create that was sent, while its result is not known. For a CronJob shared with another controller, it
    /// is kept until the status lists it.
    pub begun: Option<BegunCreate>,
}

/// A create that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunCreate {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// Until when an earlier create for the same slot with an unknown result may be committed.
    earlier: Option<Instant>,
    /// Until when any create for this slot may be committed.
    may_commit_until: Option<Instant>,
}

impl BegunCreate {
    /// The create as an observation holds it; `None` if its result is known.
    pub fn pending(&self) -> Option<PendingCreate> {
        let left = self.may_commit_until?.saturating_duration_since(Instant::now());
        let wait = TimeDelta::from_std(left).ok().filter(|left| !left.is_zero());
        Some(PendingCreate { slot: self.slot, wait })
    }
}

impl PendingStatuses {
    /// Replaces the CronJob's pending edits.
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

    /// The last create succeeded. With `keeps`, it is remembered until the status lists it.
    pub fn created(&self, key: &ObjectName, keeps: bool) {
        if let Some(mut pending) = self.0.get_mut(key) {
            pending.begun =
                pending.begun.filter(|_| keeps).map(|begun| BegunCreate { may_commit_until: None, ..begun });
        }
        self.drop_if_paid(key);
    }

    /// The last create was refused or not sent. The result of an earlier create for the same slot stays unknown.
    pub fn refused(&self, key: &ObjectName, keeps: bool) {
        if let Some(mut pending) = self.0.get_mut(key) {
            let before = pending.begun.map(|begun| BegunCreate { may_commit_until: begun.earlier, ..begun });
            pending.begun = before.filter(|begun| keeps || begun.may_commit_until.is_some());
        }
        self.drop_if_paid(key);
    }

    /// The last create has no answer and may be committed until `end`.
    pub fn unanswered(&self, key: &ObjectName, end: Instant) {
        if let Some(mut pending) = self.0.get_mut(key)
            && let Some(begun) = &mut pending.begun
        {
            begun.may_commit_until = begun.earlier.max(Some(end));
        }
    }

    /// The last create that was sent for the CronJob with that name and UID.
    pub fn begun(&self, key: &ObjectName, uid: &Uid) -> Option<BegunCreate> {
        self.0.get(key).filter(|pending| pending.uid == *uid).and_then(|pending| pending.begun)
    }

    /// Until when any create with an unknown result may be committed. The instant is in the past if none may be
    /// committed now.
    pub fn last_commit(&self) -> Option<Instant> {
        self.0.iter().filter_map(|pending| pending.begun?.may_commit_until).max()
    }

    /// Whether this CronJob's status lacks an edit, or a create for it may still be committed.
    pub fn is_open(&self, key: &ObjectName) -> bool {
        let now = Instant::now();
        let may_commit = |pending: &PendingStatus| {
            pending.begun.and_then(|begun| begun.may_commit_until).is_some_and(|end| now < end)
        };
        self.0.get(key).is_some_and(|pending| !pending.edits.is_empty() || may_commit(&pending))
    }

    /// The status in `cron_job` was written.
    pub fn recorded(&self, cron_job: &CronJob) {
        if let Some(mut pending) = self.0.get_mut(&cron_job.name) {
            pending.begun = pending.begun.filter(|begun| cron_job.status.last_schedule_time < Some(begun.slot));
        }
        self.drop_if_paid(&cron_job.name);
    }

    /// The pending edits of the CronJob with that name and UID.
    pub fn owed(&self, key: &ObjectName, uid: &Uid) -> Edits {
        self.0.get(key).filter(|pending| pending.uid == *uid).map(|pending| pending.edits.clone()).unwrap_or_default()
    }

    /// The pending status under that name, for any UID.
    pub fn pending(&self, key: &ObjectName) -> Option<PendingStatus> {
        self.0.get(key).map(|pending| pending.clone())
    }

    /// Whether there is a pending status under that name.
    pub fn contains(&self, key: &ObjectName) -> bool {
        self.0.contains_key(key)
    }

    /// How many CronJobs have an entry.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The CronJobs whose pending status is [open](Self::is_open).
    pub fn open(&self) -> Vec<ObjectName> {
        let keys: Vec<_> = self.0.iter().map(|pending| pending.key().clone()).collect();
        keys.into_iter().filter(|key| self.is_open(key)).collect()
    }

    /// Drops the pending status of a deleted CronJob.
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
