//! What the controller knows of each CronJob beyond the caches and the queue.
//!
//! Guarantees:
//! - All of it is in one place: [`Memories::forget`] leaves nothing behind.
//! - What is [known](Known) of one UID is dropped as a whole by the first sync of a later CronJob of that name. The last
//!   sync of the earlier one may have ended after the later one was in the store, so no sync saw the earlier one gone.
//! - The store may go back to an earlier CronJob of the name, if a list is stale. Nothing known of the later one is
//!   dropped then, and nothing is recorded for the earlier one, until the API server itself returns the earlier one.
//! - Nothing is kept, and nothing is allocated, for a CronJob of which nothing is known.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::one::RefMut;
use schedule::Zone;
use tokio::time::Instant;

use super::control::Patience;
use super::external_jobs::Account;
use super::mutation_cache::MutationCache;
use super::observation::{Observation, Recalled};
use super::pending_status::PendingStatus;
use super::plan::{Memo, Settlement, Skip, Verdict};
use super::retained::Retained;
use super::status::Edits;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::CountedFrom;
use crate::api::{ObjectName, ResourceVersion, Uid, compare_resource_versions};

/// The memories of all CronJobs. No method calls back while it holds a lock, except the functions that its caller
/// passes; these must not use the memories.
#[derive(Debug, Default)]
pub struct Memories(DashMap<ObjectName, Memory>);

/// The memory of the CronJobs of one name. Everything but `known` belongs to the name and outlives a recreation.
#[derive(Debug, Default)]
pub struct Memory {
    /// The newest slot that is accounted for, to detect another controller's Jobs.
    pub account: Option<Account>,
    /// The last epoch in which the CronJob was read live.
    pub confirmed: u64,
    /// Whether the cache is known to show it wrongly: a live read did not find it, or it had another version when a status was written.
    pub doubted: bool,
    /// Whether a request timed out, and no sync has ended since without a failed one.
    pub timed_out: bool,
    /// In a box, because it is mostly empty: it is needed from a create until the watch shows its effects.
    known: Option<Box<Known>>,
}

/// What is known of the CronJob with one UID.
#[derive(Debug)]
pub struct Known {
    uid: Uid,
    /// A version of that CronJob: every version of an earlier CronJob of the name is older.
    version: ResourceVersion,
    /// What the last sync noted.
    memo: Memo,
    /// The record of decided slots that an edit removed with the policies, until a sync writes it anew.
    pub record_removed: Option<Box<CountedFrom>>,
    /// Whether a name conflict was reported.
    pub name_conflict_reported: bool,
    /// A hash of the unknown policy annotations that were reported.
    pub unknown_policies: Option<u64>,
    /// What its status lacks.
    pub pending: PendingStatus,
    /// Own writes that the caches do not show.
    pub own: MutationCache,
}

impl Known {
    fn new(cron_job: &CronJob) -> Self {
        Self {
            uid: cron_job.uid.clone(),
            version: cron_job.resource_version.clone(),
            memo: Memo::default(),
            record_removed: None,
            name_conflict_reported: false,
            unknown_policies: None,
            pending: PendingStatus::default(),
            own: MutationCache::default(),
        }
    }

    fn is_empty(&self) -> bool {
        let is_reported = self.name_conflict_reported || self.unknown_policies.is_some();
        let has_notes = self.memo != Memo::default() || self.record_removed.is_some();
        !has_notes && !is_reported && self.pending.is_empty() && self.own.is_empty()
    }

    /// Whether this is of an earlier CronJob than `cron_job`. Without comparable versions, the one that is shown now is
    /// the later one.
    fn is_of_predecessor_of(&self, cron_job: &CronJob) -> bool {
        let is_later =
            compare_resource_versions(&self.version, &cron_job.resource_version).is_some_and(std::cmp::Ordering::is_gt);
        self.uid != cron_job.uid && !is_later
    }
}

impl Memory {
    /// What is known of this CronJob. Drops what is known of an earlier one.
    fn known(&mut self, cron_job: &CronJob) -> Option<&mut Known> {
        if self.known.as_ref().is_some_and(|known| known.is_of_predecessor_of(cron_job)) {
            self.known = None;
        }
        self.known.as_deref_mut().filter(|known| known.uid == cron_job.uid)
    }

    /// The same, ready to be written; `None` only if a later CronJob of the name is known.
    pub fn known_or_new(&mut self, cron_job: &CronJob) -> Option<&mut Known> {
        if self.known(cron_job).is_none() && self.known.is_none() {
            self.known = Some(Box::new(Known::new(cron_job)));
        }
        self.known(cron_job)
    }

    /// The same for a version that the API server returned: no later CronJob of the name exists.
    fn known_to_server(&mut self, cron_job: &CronJob) -> Option<&mut Known> {
        self.known = self.known.take().filter(|known| known.uid == cron_job.uid);
        self.known_or_new(cron_job)
    }

    fn is_empty(&self) -> bool {
        let Self { account, confirmed, doubted, timed_out, known } = self;
        account.is_none() && *confirmed == 0 && !doubted && !timed_out && known.is_none()
    }

    /// Drops what is empty. Returns whether nothing is left.
    fn tidy(&mut self) -> bool {
        if self.known.as_ref().is_some_and(|known| known.is_empty()) {
            self.known = None;
        }
        self.is_empty()
    }
}

impl Memories {
    /// The observation of a CronJob that the cache shows, or that was read live, with what is remembered of it; its Jobs are to be
    /// added. The sync begins in `epoch`, and `shown` is the resource version up to which the cache shows Jobs.
    pub fn recall(
        &self,
        cached: &Arc<CronJob>,
        local_zone: Zone,
        epoch: u64,
        shown: impl FnOnce() -> String,
    ) -> Observation {
        let mut observation = Observation::new(Arc::clone(cached), Vec::new(), local_zone);
        observation.view_is_suspect = epoch > 0;
        self.visit(&cached.name, |memory| {
            observation.view_is_suspect = memory.doubted || memory.confirmed < epoch;
            if memory.timed_out {
                observation.patience = Patience::Longest;
            }
            let Some(known) = memory.known(cached) else { return };
            let (newest, is_overdue) = known.own.newest(Arc::clone(cached));
            observation.view_is_suspect |= is_overdue;
            observation.open_creates_wait = known.pending.others_wait();
            let recalled = &mut observation.recalled;
            (recalled.created, recalled.deleted) = (known.own.created(shown), known.own.deleted());
            recalled.vanished = known.own.vanished().to_vec();
            recalled.memo.clone_from(&known.memo);
            // It is written once, although a server may not show it. A record that is shown was written since, by the leader
            // of that time.
            let has_record = newest.status.counted_from.is_some();
            if has_record {
                known.record_removed = None;
            } else if let Some(counted) = &known.record_removed {
                known.pending.edits.counted(counted);
                recalled.record_removed = Some(counted.clone());
            }
            recalled.carried = known.pending.edits.clone();
            recalled.begun = known.pending.begun.map(|begun| begun.slot);
            recalled.pending_create = known.pending.begun.and_then(|begun| begun.pending());
            if let Some(slot) = known.own.taken(&newest) {
                recalled.carried.scheduled(slot);
            }
            observation.cron_job = newest;
        });
        observation
    }

    /// The newer of the cached version and one that was read live or written.
    pub fn newest(&self, cached: Arc<CronJob>) -> Arc<CronJob> {
        let newest = self
            .visit(&cached.name, |memory| memory.known(&cached).map(|known| known.own.newest(Arc::clone(&cached)).0));
        newest.flatten().unwrap_or(cached)
    }

    /// Changes what is known of a CronJob, whether or not anything is. Returns `None` if a later CronJob of the name is
    /// known, and then changes nothing.
    pub fn change<R>(&self, cron_job: &CronJob, change: impl FnOnce(&mut Known) -> R) -> Option<R> {
        self.of_name(&cron_job.name, |memory| memory.known_or_new(cron_job).map(change))
    }

    /// Changes what is known of a CronJob, if anything is.
    pub fn update<R>(&self, cron_job: &CronJob, change: impl FnOnce(&mut Known) -> R) -> Option<R> {
        self.visit(&cron_job.name, |memory| memory.known(cron_job).map(change)).flatten()
    }

    /// Remembers a version that the API server returned for a live read in this epoch.
    pub fn confirmed(&self, live: &Arc<CronJob>, epoch: u64) {
        self.of_name(&live.name, |memory| {
            (memory.confirmed, memory.doubted) = (epoch, false);
            if let Some(known) = memory.known_to_server(live) {
                known.own.cron_job_known(live);
            }
        });
    }

    /// The server shows that the CronJob is not what the cache shows: until a live read finds it, no Job is created from that.
    pub fn doubt(&self, name: &ObjectName) {
        self.of_name(name, |memory| memory.doubted = true);
    }

    /// A sync has decided on what it `recalled`: what later ones recall.
    pub fn decided(&self, cron_job: &CronJob, recalled: &Recalled, settlement: &Settlement) {
        self.told(cron_job, recalled);
        if !recalled.vanished.is_empty() {
            self.update(cron_job, |known| known.own.noted(&recalled.vanished));
        }
        if let Verdict::Skipped(Skip::NameTaken(slot)) = settlement.verdict {
            self.update(cron_job, |known| known.pending.name_taken(slot));
        }
        if settlement.memo != recalled.memo {
            self.change(cron_job, |known| known.memo.clone_from(&settlement.memo));
        }
    }

    /// A sync that `recalled` a removed record has told what it passes over. Another may have been removed since.
    fn told(&self, cron_job: &CronJob, recalled: &Recalled) {
        if let Some(counted) = &recalled.record_removed {
            self.update(cron_job, |known| known.record_removed.take_if(|removed| removed == counted));
        }
    }

    /// The status was written as in `written`, or not at all. `owed` are the edits that it lacks.
    pub fn settled(&self, cron_job: &CronJob, written: Option<&Arc<CronJob>>, owed: Edits) {
        if let Some(written) = written {
            self.of_name(&written.name, |memory| {
                if let Some(known) = memory.known_to_server(written) {
                    known.own.cron_job_known(written);
                    known.pending.recorded(written);
                    known.pending.edits = owed;
                }
            });
        } else if owed.is_empty() {
            self.update(cron_job, |known| known.pending.edits = owed);
        } else {
            self.change(cron_job, |known| known.pending.edits = owed);
        }
    }

    /// Changes the memory of a name, whether or not there is one.
    pub fn of_name<R>(&self, name: &ObjectName, change: impl FnOnce(&mut Memory) -> R) -> R {
        self.changed(name, self.0.entry(name.clone()).or_default(), change)
    }

    /// Changes the memory of a name, if there is one.
    pub fn visit<R>(&self, name: &ObjectName, change: impl FnOnce(&mut Memory) -> R) -> Option<R> {
        Some(self.changed(name, self.0.get_mut(name)?, change))
    }

    fn changed<R>(
        &self,
        name: &ObjectName,
        mut memory: RefMut<'_, ObjectName, Memory>,
        change: impl FnOnce(&mut Memory) -> R,
    ) -> R {
        let answer = change(&mut memory);
        let is_empty = memory.tidy();
        drop(memory);
        if is_empty {
            self.0.remove_if(name, |_, memory| memory.is_empty());
        }
        answer
    }

    /// Drops everything about a deleted CronJob.
    pub fn forget(&self, name: &ObjectName) {
        self.0.remove(name);
    }

    /// The cache shows a Job.
    pub fn job_seen(&self, job: &Job) {
        self.of_owner(job, |own| own.job_seen(&job.uid));
    }

    /// The cache has dropped a Job. Returns whether it was deleted here.
    pub fn job_gone(&self, job: &Job) -> bool {
        self.of_owner(job, |own| own.job_gone(&job.uid)).unwrap_or_default()
    }

    fn of_owner<R>(&self, job: &Job, change: impl FnOnce(&mut MutationCache) -> R) -> Option<R> {
        let owner = job.controller.as_ref()?;
        let name = ObjectName { namespace: Arc::clone(&job.name.namespace), name: Arc::clone(&owner.name) };
        let of_owner = |memory: &mut Memory| {
            let known = memory.known.as_deref_mut().filter(|known| known.uid == owner.uid);
            known.map(|known| change(&mut known.own))
        };
        self.visit(&name, of_owner).flatten()
    }

    /// All Jobs created here that the cache has not shown yet, in a stable order.
    pub fn unseen(&self) -> Vec<Arc<Job>> {
        let mut jobs: Vec<_> = self.each(|known| known.own.unseen().cloned().collect::<Vec<_>>()).flatten().collect();
        jobs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        jobs
    }

    /// The UID of the CronJob under that name that has a pending status.
    pub fn pending(&self, name: &ObjectName) -> Option<Uid> {
        let memory = self.0.get(name)?;
        let known = memory.known.as_ref().filter(|known| !known.pending.is_empty())?;
        Some(known.uid.clone())
    }

    /// Whether the pending status under that name is [open](PendingStatus::is_open).
    pub fn is_open(&self, name: &ObjectName) -> bool {
        self.0.get(name).is_some_and(|memory| memory.known.as_ref().is_some_and(|known| known.pending.is_open()))
    }

    /// The CronJobs whose pending status is open, by name.
    pub fn open(&self) -> Vec<ObjectName> {
        let mut names: Vec<_> = self.0.iter().map(|memory| memory.key().clone()).collect();
        names.retain(|name| self.is_open(name));
        names.sort_unstable();
        names
    }

    /// Until when any create with an unknown result may be committed. The instant is in the past if none may be
    /// committed now.
    pub fn last_commit(&self) -> Option<Instant> {
        self.each(|known| known.pending.may_commit_until()).flatten().max()
    }

    fn each<'a, R: 'a>(&'a self, read: impl Fn(&Known) -> R + 'a) -> impl Iterator<Item = R> + 'a {
        self.0.iter().filter_map(move |memory| memory.known.as_deref().map(&read))
    }

    /// The amount of retained state.
    pub fn retained(&self) -> Retained {
        let of_known = self.each(|known| known.own.retained());
        let sum = |a: Retained, b: Retained| Retained {
            entries: a.entries + b.entries,
            deleted_jobs: a.deleted_jobs + b.deleted_jobs,
            template_bytes: a.template_bytes + b.template_bytes,
        };
        of_known.fold(Retained { entries: self.0.len(), ..Retained::default() }, sum)
    }

    /// Whether anything is known of the CronJob with that name and UID.
    pub fn knows(&self, name: &ObjectName, uid: &Uid) -> bool {
        self.0.get(name).is_some_and(|memory| memory.known.as_ref().is_some_and(|known| known.uid == *uid))
    }

    /// Whether anything is kept under that name.
    pub fn contains(&self, name: &ObjectName) -> bool {
        self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests;
