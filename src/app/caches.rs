//! Whether the caches show the server's present state, for `/readyz`, and whether a replica can work yet, for the lease.
//!
//! Guarantees: a process is not ready before the first list of everything it works on, nor while one of its caches has had
//! no news for [`STALE_AFTER`]. Such a cache may still be right, but the process cannot know.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join_all, select_all};
use tokio::time::timeout;

use super::{ControllerInstance, Controllers};
use crate::api::{ControllerKind, Object};
use crate::cache::Store;
use crate::controller::namespaces::Namespaces;
use crate::server::HealthCheck;

/// From this age on a cache may be stale. API servers send a bookmark every minute. A watch that stays silent for three
/// minutes is reopened, and its first bookmark comes within another minute.
const STALE_AFTER: Duration = Duration::from_secs(300);

/// For how long more the caches of the other controllers are waited for …
const OTHER_CACHES: Duration = Duration::from_secs(10);
/// … and those of batch/v1 CronJobs: 100,000 take a third of that.
const CRON_JOB_CACHES: Duration = Duration::from_secs(60);

/// For how long more namespaces are waited for whose list was refused: a server that has just started may not know all roles yet.
const REFUSED_CACHES: Duration = Duration::from_secs(3);

/// The state of the caches at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caches {
    /// Whether every cache has its first list.
    pub synced: bool,
    /// How long ago the server last confirmed the stalest cache.
    pub age: Duration,
}

/// Returns the present state of the caches.
pub type LookAtCaches = Arc<dyn Fn() -> Caches + Send + Sync>;

impl Caches {
    /// The state of one cache.
    pub fn of<T: Object>(store: &Store<T>) -> Self {
        Self { synced: store.has_synced(), age: store.age().unwrap_or_default() }
    }

    /// The state of what is known of the Namespaces; where they may not be read, there is nothing to know.
    pub fn of_namespaces(namespaces: &Namespaces) -> Self {
        Self { synced: namespaces.have_synced(), age: namespaces.age().unwrap_or_default() }
    }

    /// The combined state of several caches.
    pub fn all(caches: impl IntoIterator<Item = Self>) -> Self {
        let none = Self { synced: true, age: Duration::ZERO };
        caches.into_iter().fold(none, |all, one| Self { synced: all.synced && one.synced, age: all.age.max(one.age) })
    }
}

impl Controllers {
    /// Waits until the caches are synced: all but those of kinds that are not served, or some time after those of the first
    /// controller. A replica that cannot work yet leaves the lease to one that can: after an outage, to the one that has its caches.
    pub(super) async fn can_work(&self) {
        select_all(self.instances.iter().map(|instance| instance.synced().boxed())).await;
        join_all(self.instances.iter().map(|instance| {
            let is_cron_job = instance.controller.controller_kind() == ControllerKind::CronJob;
            let longest = if is_cron_job { CRON_JOB_CACHES } else { OTHER_CACHES };
            let caches = async {
                instance.synced().await;
                let _ = timeout(REFUSED_CACHES, instance.listed()).await;
            };
            timeout(longest, instance.unless_unserved(caches))
        }))
        .await;
    }
}

impl ControllerInstance {
    /// Waits until its caches are synced, but for namespaces that may not be read.
    pub(super) async fn synced(&self) {
        self.cron_jobs.wait_for_readable_scopes().await;
        self.jobs.wait_for_readable_scopes().await;
        if let Some(namespaces) = &self.namespaces {
            namespaces.synced().await;
        }
    }

    /// Waits until its CronJobs and Jobs are listed in each namespace.
    async fn listed(&self) {
        self.cron_jobs.wait_for_cache_sync().await;
        self.jobs.wait_for_cache_sync().await;
    }

    /// Waits for `caches`, or until the server says that it does not serve its kind.
    async fn unless_unserved(&self, caches: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = caches => {}
            () = self.cron_jobs.wait_until_unserved() => {}
        }
    }

    /// The namespaces that may not be read.
    pub(super) fn unlisted_namespaces(&self) -> BTreeSet<Arc<str>> {
        [self.cron_jobs.unlisted_namespaces(), self.jobs.unlisted_namespaces()].into_iter().flatten().collect()
    }

    /// The state of each of its caches.
    pub(super) fn caches(&self) -> impl Iterator<Item = Caches> + use<> {
        let namespaces = self.namespaces.as_ref().map(|namespaces| Caches::of_namespaces(namespaces));
        [Some(Caches::of(&self.cron_jobs)), Some(Caches::of(&self.jobs)), namespaces].into_iter().flatten()
    }
}

/// The checks of `/readyz`: `informer-sync`, as upstream's, and `watches`.
pub fn health_checks(look: LookAtCaches) -> [HealthCheck; 2] {
    let synced = Arc::clone(&look);
    let watches = HealthCheck::new("watches", move || {
        let age = look().age;
        if age < STALE_AFTER {
            return Ok(());
        }
        Err(format!("the API server has not said for {} s how its objects are", age.as_secs()))
    });
    [HealthCheck::informer_sync(move || synced().synced), watches]
}

#[cfg(test)]
mod tests;
