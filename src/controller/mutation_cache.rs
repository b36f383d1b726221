//! What the caches do not show of one CronJob: objects that this process wrote or read live, and Jobs that are gone.
//!
//! Guarantees: a sync sees this process's own writes, however long the watch is silent. It neither repeats requests nor
//! decides on a cache older than its own writes. A slot whose Job came and went before the status listed it stays
//! taken. An entry is dropped when the cache reaches the write's resource version. So a missed watch event neither
//! hides an object for ever nor leaks memory.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::retained::Retained;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{Uid, compare_resource_versions, shows};

/// How many Jobs that vanished are kept of one CronJob. Only the newest success and some Events follow from them.
const MOST_VANISHED: usize = 100;

/// How long a watch may lag behind own writes before the cache is suspect. Watches usually lag by milliseconds.
pub const EXPIRY: Duration = Duration::from_secs(30);

/// The overlay over the stores, of one CronJob and its Jobs.
#[derive(Debug, Default)]
pub struct MutationCache {
    cron_job: Option<Entry<Arc<CronJob>>>,
    created: Vec<Entry<Arc<Job>>>,
    /// By the Job's UID, since when. A map, because one sync may delete many Jobs.
    deleted: HashMap<Uid, Entry<()>>,
    /// Finished Jobs that the watch showed as deleted, until a sync has recorded them.
    vanished: Vec<Arc<Job>>,
    /// The newest slot known to have had its Job, until the status lists it.
    taken: Option<DateTime<Utc>>,
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
    pub fn cron_job_known(&mut self, cron_job: &Arc<CronJob>) {
        self.cron_job = Some(Entry::new(cron_job.for_cache()));
    }

    /// The newer of the cached version and the one remembered here, and whether the cache has lagged for so long
    /// that it is suspect.
    pub fn newest(&mut self, cached: Arc<CronJob>) -> (Arc<CronJob>, bool) {
        let Some(own) = &self.cron_job else { return (cached, false) };
        let order = compare_resource_versions(&own.value.resource_version, &cached.resource_version);
        if order.is_some_and(Ordering::is_gt) {
            return (Arc::clone(&own.value), !own.is_fresh());
        }
        self.cron_job = None;
        (cached, false)
    }

    /// Remembers a Job that was created. Call [`Self::job_seen`] afterwards if the cache has it already.
    pub fn job_created(&mut self, job: &Arc<Job>) {
        self.created.push(Entry::new(Arc::clone(job)));
    }

    /// The cache has shown the Job, so its entry is dropped.
    pub fn job_seen(&mut self, uid: &Uid) {
        self.created.retain(|created| created.value.uid != *uid);
    }

    /// The Jobs that were created here and that the cache has not shown yet. The cache shows every Job up to the
    /// resource version `shown`; a Job that it does not show by then is gone.
    pub fn created(&mut self, shown: impl FnOnce() -> String) -> Vec<Arc<Job>> {
        if self.created.is_empty() {
            return Vec::new();
        }
        let shown = shown();
        self.created.retain(|created| !shows(&shown, &created.value.resource_version));
        self.unseen().cloned().collect()
    }

    /// The Jobs that were created here and that the cache has not shown yet.
    pub fn unseen(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.created.iter().map(|created| &created.value)
    }

    /// Remembers that a Job was deleted here. Call [`Self::job_gone`] afterwards if the cache has already dropped it.
    pub fn job_deleted(&mut self, uid: &Uid) {
        self.job_seen(uid);
        self.deleted.insert(uid.clone(), Entry::new(()));
    }

    /// The cache has dropped the Job. Returns whether it was deleted here.
    pub fn job_gone(&mut self, uid: &Uid) -> bool {
        self.job_seen(uid);
        self.deleted.remove(uid).is_some_and(|deleted| deleted.is_fresh())
    }

    /// The Jobs that were deleted here and that the cache still shows.
    pub fn deleted(&mut self) -> HashSet<Uid> {
        self.deleted.retain(|_, deleted| deleted.is_fresh());
        self.deleted.keys().cloned().collect()
    }

    /// Remembers a finished Job that was deleted, for any cause and whether or not a sync saw its end.
    /// Of many, the newest are kept, and those that succeeded.
    pub fn job_vanished(&mut self, job: &Arc<Job>) {
        if self.vanished.len() >= MOST_VANISHED {
            // Of a success the status tells for long.
            let failed = self.vanished.iter().position(|job| !job.succeeded);
            self.vanished.remove(failed.unwrap_or(0));
        }
        self.vanished.push(Arc::clone(job));
    }

    /// The Jobs that finished and were deleted, and that no sync has recorded yet.
    pub fn vanished(&self) -> &[Arc<Job>] {
        &self.vanished
    }

    /// A sync has recorded these Jobs.
    pub fn noted(&mut self, noted: &[Arc<Job>]) {
        self.vanished.retain(|job| !noted.iter().any(|noted| noted.uid == job.uid));
    }

    /// Remembers that a slot had its Job.
    pub fn slot_taken(&mut self, slot: DateTime<Utc>) {
        self.taken = self.taken.max(Some(slot));
    }

    /// The newest slot that had its Job, if the status of `cron_job` does not list it.
    pub fn taken(&mut self, cron_job: &CronJob) -> Option<DateTime<Utc>> {
        self.taken = self.taken.filter(|slot| cron_job.status.last_schedule_time < Some(*slot));
        self.taken
    }

    /// The amount of retained state.
    pub fn retained(&self) -> Retained {
        let template = |known: &Entry<Arc<CronJob>>| known.value.spec.job_template.text().map_or(0, str::len);
        let deleted_jobs = self.deleted.len();
        Retained {
            entries: self.created.len() + deleted_jobs + self.vanished.len(),
            deleted_jobs,
            template_bytes: self.cron_job.as_ref().map_or(0, template),
        }
    }

    /// Whether the caches show everything.
    pub fn is_empty(&self) -> bool {
        let Self { cron_job, created, deleted, vanished, taken } = self;
        cron_job.is_none() && created.is_empty() && deleted.is_empty() && vanished.is_empty() && taken.is_none()
    }
}

#[cfg(test)]
mod tests;
