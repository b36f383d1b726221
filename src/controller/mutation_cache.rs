//! Objects that this process wrote, or read live, and that the caches do not show yet.
//!
//! Guarantees: a sync sees this process's own writes, however long the watch is silent. It neither repeats requests nor
//! decides on a cache older than its own writes. A slot whose Job came and went before the status listed it stays
//! taken. An entry is dropped when the cache reaches the write's resource version. So a missed watch event neither
//! hides an object for ever nor leaks memory. The entries of a CronJob are dropped with it, or by the first sync of
//! another CronJob of the same name.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use tokio::time::Instant;

use super::retained::Retained;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ObjectName, Uid, compare_resource_versions};

/// How long a watch may lag behind own writes before the cache is suspect. Watches usually lag by milliseconds.
pub const EXPIRY: Duration = Duration::from_secs(30);

/// The overlay over the stores of CronJobs and Jobs.
#[derive(Debug, Default)]
pub struct MutationCache {
    cron_jobs: DashMap<ObjectName, Entry<Arc<CronJob>>>,
    /// By the Job's UID.
    created: DashMap<Uid, Entry<Arc<Job>>>,
    /// The UIDs of Jobs created for a CronJob.
    children: DashMap<ObjectName, (Uid, Vec<Uid>)>,
    deleted: DashMap<Uid, Entry<()>>,
    /// Finished Jobs that the watch showed as deleted, until a sync of their CronJob has recorded them.
    vanished: DashMap<ObjectName, (Uid, Vec<Arc<Job>>)>,
    /// The newest slot of a CronJob known to have had its Job, until the status lists it.
    taken: DashMap<ObjectName, (Uid, DateTime<Utc>)>,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    since: Instant,
}

impl<T> Entry<T> {
    fn new(value: T) -> Self {
        Self { value, since: Instant::now() }
    }

    fn is_fresh(&self) -> bool {
        self.since.elapsed() < EXPIRY
    }
}

impl MutationCache {
    /// Remembers a version that the API server returned for a status write or a live read. Of a long template only the
    /// digest is kept.
    pub fn cron_job_known(&self, cron_job: &Arc<CronJob>) {
        self.cron_jobs.insert(cron_job.name.clone(), Entry::new(cron_job.for_cache()));
    }

    /// The newer of the cached version and the one remembered here, and whether the cache has lagged for so long
    /// that it is suspect.
    pub fn newest(&self, cached: Arc<CronJob>) -> (Arc<CronJob>, bool) {
        let Some(own) = self.cron_jobs.get(&cached.name).map(|entry| (Arc::clone(&entry.value), entry.is_fresh()))
        else {
            return (cached, false);
        };
        let (own, fresh) = own;
        let ahead = compare_resource_versions(&own.resource_version, &cached.resource_version)
            .is_some_and(std::cmp::Ordering::is_gt);
        if ahead && own.uid == cached.uid {
            return (own, !fresh);
        }
        self.cron_jobs.remove_if(&cached.name, |_, entry| Arc::ptr_eq(&entry.value, &own));
        (cached, false)
    }

    /// Remembers a Job created for `owner`. Call [`Self::job_seen`] afterwards if the cache has it already.
    pub fn job_created(&self, owner: &CronJob, job: &Arc<Job>) {
        self.forget_children(&owner.name, |of| *of != owner.uid);
        self.created.insert(job.uid.clone(), Entry::new(Arc::clone(job)));
        let mut children = self.children.entry(owner.name.clone()).or_insert_with(|| (owner.uid.clone(), Vec::new()));
        children.1.push(job.uid.clone());
    }

    /// The cache has shown the Job, so its entry is dropped.
    pub fn job_seen(&self, uid: &Uid) {
        self.created.remove(uid);
    }

    /// Jobs of `owner` that were created here and that the cache has not shown yet. A Job that the cache
    /// `has_caught_up` with and does not show is gone.
    pub fn created_for(&self, owner: &CronJob, has_caught_up: impl Fn(&Job) -> bool) -> Vec<Arc<Job>> {
        let children = self.children.get(&owner.name).filter(|children| children.0 == owner.uid);
        let Some(uids) = children.map(|children| children.1.clone()) else { return Vec::new() };
        let unseen = |uid: &Uid| {
            let job = self.created.get(uid).map(|entry| Arc::clone(&entry.value))?;
            if has_caught_up(&job) {
                self.created.remove(uid);
                return None;
            }
            Some(job)
        };
        let jobs: Vec<_> = uids.iter().filter_map(unseen).collect();
        if jobs.is_empty() {
            self.children.remove_if(&owner.name, |_, now| now.0 == owner.uid && now.1 == uids);
        }
        jobs
    }

    /// All Jobs created here that the cache has not shown yet, in a stable order.
    pub fn unseen(&self) -> Vec<Arc<Job>> {
        let mut jobs: Vec<_> = self.created.iter().map(|entry| Arc::clone(&entry.value)).collect();
        jobs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        jobs
    }

    /// Remembers that a Job was deleted here. Call [`Self::job_gone`] afterwards if the cache has already dropped it.
    pub fn job_deleted(&self, uid: &Uid) {
        self.created.remove(uid);
        self.deleted.insert(uid.clone(), Entry::new(()));
    }

    /// The cache has dropped the Job.
    pub fn job_gone(&self, uid: &Uid) {
        self.deleted.remove(uid);
        self.created.remove(uid);
    }

    /// Whether the Job was deleted here and the cache still shows it.
    pub fn is_deleted(&self, uid: &Uid) -> bool {
        // There is rarely an entry, so this takes a read lock first.
        let Some(fresh) = self.deleted.get(uid).map(|entry| entry.is_fresh()) else { return false };
        if !fresh {
            self.deleted.remove_if(uid, |_, entry| !entry.is_fresh());
        }
        fresh
    }

    /// Remembers a finished Job that was deleted, for any cause and whether or not a sync saw its end.
    pub fn job_vanished(&self, owner: &CronJob, job: &Arc<Job>) {
        let mut known = self.vanished.entry(owner.name.clone()).or_insert_with(|| (owner.uid.clone(), Vec::new()));
        if known.0 != owner.uid {
            *known = (owner.uid.clone(), Vec::new());
        }
        known.1.push(Arc::clone(job));
    }

    /// The Jobs of `owner` that finished and were deleted, and that no sync has recorded yet.
    pub fn vanished(&self, owner: &CronJob) -> Vec<Arc<Job>> {
        let known = self.vanished.get(&owner.name).filter(|known| known.0 == owner.uid);
        known.map(|known| known.1.clone()).unwrap_or_default()
    }

    /// A sync of `owner` has recorded these Jobs.
    pub fn noted(&self, owner: &ObjectName, noted: &[Arc<Job>]) {
        if noted.is_empty() {
            return;
        }
        if let Some(mut known) = self.vanished.get_mut(owner) {
            known.1.retain(|job| !noted.iter().any(|noted| noted.uid == job.uid));
        }
        self.vanished.remove_if(owner, |_, known| known.1.is_empty());
    }

    /// Remembers that a slot had its Job.
    pub fn slot_taken(&self, cron_job: &CronJob, slot: DateTime<Utc>) {
        let mut known = self.taken.entry(cron_job.name.clone()).or_insert_with(|| (cron_job.uid.clone(), slot));
        if known.0 != cron_job.uid || known.1 < slot {
            *known = (cron_job.uid.clone(), slot);
        }
    }

    /// The newest slot that had its Job, if the status does not list it.
    pub fn taken(&self, cron_job: &CronJob) -> Option<DateTime<Utc>> {
        let is_news = |known: &(Uid, DateTime<Utc>)| {
            known.0 == cron_job.uid && cron_job.status.last_schedule_time < Some(known.1)
        };
        let (slot, is_news) = self.taken.get(&cron_job.name).map(|known| (known.1, is_news(&known)))?;
        if !is_news {
            self.taken.remove_if(&cron_job.name, |_, known| known.1 == slot);
        }
        is_news.then_some(slot)
    }

    /// Drops the entries of a deleted CronJob.
    pub fn cron_job_gone(&self, name: &ObjectName) {
        self.cron_jobs.remove(name);
        self.taken.remove(name);
        self.vanished.remove(name);
        self.forget_children(name, |_| true);
    }

    /// Drops the entries of other CronJobs of the same name.
    pub fn forget_predecessor(&self, cron_job: &CronJob) {
        let CronJob { name, uid, .. } = cron_job;
        remove_if(&self.cron_jobs, name, |entry| entry.value.uid != *uid);
        remove_if(&self.taken, name, |known| known.0 != *uid);
        remove_if(&self.vanished, name, |known| known.0 != *uid);
        self.forget_children(name, |of| *of != *uid);
    }

    fn forget_children(&self, owner: &ObjectName, is_forgotten: impl Fn(&Uid) -> bool) {
        let children = remove_if(&self.children, owner, |children| is_forgotten(&children.0));
        for job in children.into_iter().flat_map(|(_, jobs)| jobs) {
            self.created.remove(&job);
        }
    }

    /// The amount of retained state.
    pub fn retained(&self) -> Retained {
        let of_cron_jobs = self.cron_jobs.len() + self.children.len() + self.taken.len() + self.vanished.len();
        let template_bytes =
            self.cron_jobs.iter().map(|entry| entry.value.spec.job_template.text().map_or(0, str::len)).sum();
        let deleted_jobs = self.deleted.len();
        Retained { entries: of_cron_jobs + self.created.len() + deleted_jobs, deleted_jobs, template_bytes }
    }

    /// The names of the maps that hold state for the CronJob with that name and UID.
    pub fn retained_for(&self, name: &ObjectName, uid: &Uid) -> impl Iterator<Item = &'static str> {
        let is_child = |job: &Job| job.controller.as_ref().is_some_and(|owner| owner.uid == *uid);
        let held = [
            ("mutation_cache.cron_jobs", self.cron_jobs.get(name).is_some_and(|entry| entry.value.uid == *uid)),
            ("mutation_cache.children", self.children.get(name).is_some_and(|children| children.0 == *uid)),
            ("mutation_cache.vanished", self.vanished.get(name).is_some_and(|known| known.0 == *uid)),
            ("mutation_cache.taken", self.taken.get(name).is_some_and(|known| known.0 == *uid)),
            ("mutation_cache.created", self.created.iter().any(|entry| is_child(&entry.value))),
        ];
        held.into_iter().filter(|(_, is_held)| *is_held).map(|(name, _)| name)
    }

    /// Whether the cache is empty.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        let of_cron_jobs = self.cron_jobs.is_empty() && self.children.is_empty() && self.taken.is_empty();
        let of_cron_jobs = of_cron_jobs && self.vanished.is_empty();
        of_cron_jobs && self.created.is_empty() && self.deleted.is_empty()
    }
}

/// Removes the entry if `is_removed` accepts it. There is rarely one to remove, so this takes a read lock first.
pub(super) fn remove_if<V>(
    map: &DashMap<ObjectName, V>,
    name: &ObjectName,
    is_removed: impl Fn(&V) -> bool,
) -> Option<V> {
    if !map.get(name).is_some_and(|value| is_removed(&value)) {
        return None;
    }
    map.remove_if(name, |_, value| is_removed(value)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
