//! What the Namespaces say about the CronJobs in them.
//!
//! Guarantees: a Namespace that the watch has not shown is read, never taken for one without a restriction. After the caches were
//! doubted, each Namespace is read once before a Job is created in it. Of two versions the later counts. Without the right to
//! read Namespaces nothing is restricted, which is decided at the start of the process and logged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use super::Controller;
use super::control::{CronJobControl, JobControl};
use crate::api::batch_v1::CronJob;
use crate::api::policy::Restriction;
use crate::api::{ApiError, Namespace, Object as _, ObjectName, ResourceKind, compare_resource_versions};
use crate::cache::{Cause, MalformedObject, Observer, ReflectorError, ResourceEventHandler, Store};

/// How long the API server refuses Namespaces before that counts: one that has just started may not know the roles yet.
const LONGEST_START: Duration = Duration::from_secs(1);

/// The Namespaces that matter to a process: all, by a watch, or some, which are read again and again.
#[derive(Debug)]
pub struct Namespaces {
    store: Arc<Store<Namespace>>,
    /// Those that are not watched.
    polled: Box<[Arc<str>]>,
    read: DashMap<Arc<str>, Read>,
    /// The namespace of a Namespace.
    root: Arc<str>,
    first_refusal: OnceLock<Instant>,
    is_off: AtomicBool,
    /// Whether every Namespace is known, or will not be.
    known: watch::Sender<bool>,
}

/// The last read of a Namespace.
#[derive(Debug)]
struct Read {
    /// In which epoch of the caches it was.
    epoch: u64,
    /// `None` where the API server refuses it.
    namespace: Option<Arc<Namespace>>,
}

impl Namespaces {
    /// Those that an informer keeps in `store`.
    pub fn watched(store: Arc<Store<Namespace>>) -> Arc<Self> {
        Arc::new(Self::new(store, []))
    }

    /// Those of these names, which [`poll`](Self::poll) reads.
    pub fn polled(names: impl IntoIterator<Item = Arc<str>>) -> Arc<Self> {
        Arc::new(Self::new(Arc::new(Store::new([])), names))
    }

    fn new(store: Arc<Store<Namespace>>, polled: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self {
            store,
            polled: polled.into_iter().collect(),
            read: DashMap::new(),
            root: "".into(),
            first_refusal: OnceLock::new(),
            is_off: AtomicBool::new(false),
            known: watch::Sender::new(false),
        }
    }

    /// Waits until every Namespace is known, or will not be.
    pub async fn synced(&self) {
        let mut known = self.known.subscribe();
        let settled = async {
            let _ = known.wait_for(|known| *known).await;
        };
        if self.polled.is_empty() {
            tokio::select! {
                () = self.store.wait_for_cache_sync() => {}
                () = settled => {}
            }
        } else {
            settled.await;
        }
    }

    /// The same, at once.
    pub fn have_synced(&self) -> bool {
        *self.known.borrow() || self.polled.is_empty() && self.store.has_synced()
    }

    /// How long ago the API server last confirmed them, if they are watched.
    pub fn age(&self) -> Option<Duration> {
        self.store.age().filter(|_| !self.is_off())
    }

    /// Waits until it is decided that no Namespace counts, because this user may not list them.
    pub async fn off(&self) {
        let _ = self.known.subscribe().wait_for(|_| self.is_off()).await;
    }

    fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Acquire)
    }

    /// The API server refuses to show Namespaces. Returns whether that counts.
    fn refused(&self) -> bool {
        self.first_refusal.get_or_init(Instant::now).elapsed() >= LONGEST_START
    }

    /// What is known of a Namespace.
    fn known(&self, name: &Arc<str>) -> Option<Arc<Namespace>> {
        let key = ObjectName { namespace: Arc::clone(&self.root), name: Arc::clone(name) };
        let read = self.read.get(name).and_then(|read| read.namespace.clone());
        match (self.store.get(&key), read) {
            (Some(shown), Some(read)) => Some(if is_later(&read, &shown) { read } else { shown }),
            (shown, read) => shown.or(read),
        }
    }

    /// Whether a Namespace has to be read by a sync that began in `epoch`.
    fn is_to_be_read(&self, name: &Arc<str>, epoch: u64) -> bool {
        let is_confirmed = || self.read.get(name).is_some_and(|read| read.epoch >= epoch);
        let is_shown = || epoch == 0 && self.known(name).is_some();
        !self.is_off() && !is_shown() && !is_confirmed()
    }

    /// What holds in a Namespace as far as it is known now.
    pub fn restriction(&self, name: &Arc<str>) -> Option<Arc<Restriction>> {
        self.known(name).filter(|_| !self.is_off())?.restriction.clone()
    }

    /// The CronJob with what its Namespace says.
    pub fn restricted(&self, cron_job: Arc<CronJob>) -> Arc<CronJob> {
        let restriction = self.restriction(&cron_job.name.namespace);
        cron_job.in_its_namespace(restriction.as_ref())
    }

    /// Remembers a Namespace that was read in `epoch`. Returns the version that was known.
    fn learn(&self, name: &Arc<str>, epoch: u64, namespace: Arc<Namespace>) -> Option<Arc<Namespace>> {
        let before = self.known(name);
        let mut read = self.read.entry(Arc::clone(name)).or_insert(Read { epoch, namespace: None });
        read.epoch = if read.namespace.is_some() { read.epoch.max(epoch) } else { epoch };
        if read.namespace.as_ref().is_none_or(|known| is_later(&namespace, known)) {
            read.namespace = Some(namespace);
        }
        before
    }

    /// The watch shows this version: an earlier one that was read is of no use, unless the watch is doubted.
    fn shown(&self, namespace: &Namespace) {
        if !self.polled.is_empty() {
            return;
        }
        let is_old = |read: &Read| read.namespace.as_ref().is_none_or(|read| !is_later(read, namespace));
        self.read.remove_if(&namespace.object_name().name, |_, read| read.epoch == 0 && is_old(read));
    }

    /// Reads each Namespace that is not watched once, and calls the handlers for what has changed.
    pub async fn poll(&self, control: &impl CronJobControl, handlers: &[Arc<dyn ResourceEventHandler<Namespace>>]) {
        let mut are_known = true;
        for name in &self.polled {
            let is_refused = |read: dashmap::mapref::one::Ref<'_, Arc<str>, Read>| read.namespace.is_none();
            if self.read.get(name).is_some_and(is_refused) {
                continue;
            }
            match control.get_namespace(name).await {
                Ok(new) => match self.learn(name, 0, Arc::clone(&new)) {
                    Some(old) if old.uid() == new.uid() => handlers.iter().for_each(|each| each.on_update(&old, &new)),
                    _ => handlers.iter().for_each(|each| each.on_add(&new, !*self.known.borrow())),
                },
                Err(error) if error.code == 403 => {
                    if self.refused() {
                        warn!(namespace = &**name, %error, "a freeze of this Namespace does not count: it cannot be read");
                        self.read.insert(Arc::clone(name), Read { epoch: u64::MAX, namespace: None });
                    }
                }
                // It is not there yet, and neither are its CronJobs.
                Err(error) if error.is_not_found() => continue,
                Err(error) => warn!(namespace = &**name, %error, "the Namespace cannot be read"),
            }
            are_known &= self.read.contains_key(name);
        }
        if are_known {
            self.known.send_replace(true);
        }
    }
}

/// Logs what cannot be read, and keeps no more reads than are of use.
impl ResourceEventHandler<Namespace> for Namespaces {
    fn on_add(&self, namespace: &Arc<Namespace>, _is_in_initial_list: bool) {
        self.shown(namespace);
        warn_of_error(namespace);
    }

    fn on_update(&self, old: &Arc<Namespace>, new: &Arc<Namespace>) {
        self.shown(new);
        if old.restriction != new.restriction {
            warn_of_error(new);
        }
    }

    fn on_delete(&self, last: &Arc<Namespace>, _final_state_unknown: bool) {
        self.read.remove(&last.object_name().name);
    }

    fn on_malformed(&self, object: &MalformedObject) {
        warn!(namespace = object.name, error = object.error, "a Namespace cannot be read");
    }
}

impl Observer for Namespaces {
    fn failed(&self, _resource: ResourceKind, error: &ReflectorError) {
        let is_refusal = matches!(&error.cause, Cause::Status(status) if status.code == 403);
        if is_refusal && !self.store.has_synced() && self.refused() && !self.is_off.swap(true, Ordering::AcqRel) {
            warn!(%error, "no freeze of a Namespace counts: the Namespaces cannot be listed");
            self.known.send_replace(true);
        }
    }
}

fn warn_of_error(namespace: &Namespace) {
    if let Some(error) = namespace.restriction.as_ref().and_then(|restriction| restriction.error()) {
        let name = &*namespace.object_name().name;
        warn!(namespace = name, %error, "no CronJob of this Namespace starts: its restriction cannot be read");
    }
}

/// Namespace events for a controller.
pub struct NamespaceHandler<C>(pub Arc<Controller<C>>);

impl<C: JobControl + CronJobControl> ResourceEventHandler<Namespace> for NamespaceHandler<C> {
    fn on_add(&self, namespace: &Arc<Namespace>, is_in_initial_list: bool) {
        if !is_in_initial_list && namespace.restriction.is_some() {
            self.0.enqueue_namespace(namespace);
        }
    }

    fn on_update(&self, old: &Arc<Namespace>, new: &Arc<Namespace>) {
        if old.restriction != new.restriction {
            self.0.enqueue_namespace(new);
        }
    }

    fn on_delete(&self, _last: &Arc<Namespace>, _final_state_unknown: bool) {}

    fn on_relisted(&self) {
        self.0.doubt_caches();
    }
}

impl<C: JobControl + CronJobControl> Controller<C> {
    /// What the Namespace of a CronJob says; it is read first if that is not known in this epoch. A Namespace that is gone is an
    /// error: nothing can start there.
    pub(super) async fn look_at_namespace(
        &self,
        cron_job: &ObjectName,
        epoch: u64,
    ) -> Result<Option<Arc<Restriction>>, ApiError> {
        let Some(namespaces) = &self.parts.namespaces else { return Ok(None) };
        let name = &cron_job.namespace;
        if namespaces.is_to_be_read(name, epoch) {
            let namespace = self.parts.control.get_namespace(name).await?;
            namespaces.learn(name, epoch, namespace);
        }
        Ok(namespaces.restriction(name))
    }

    /// The CronJob with what its Namespace says, as far as it is known.
    pub(super) fn in_its_namespace(&self, cron_job: Arc<CronJob>) -> Arc<CronJob> {
        match &self.parts.namespaces {
            Some(namespaces) => namespaces.restricted(cron_job),
            None => cron_job,
        }
    }

    /// What the Namespace of a CronJob says, as far as it is known.
    pub(super) fn restriction(&self, cron_job: &CronJob) -> Option<Arc<Restriction>> {
        self.parts.namespaces.as_ref()?.restriction(&cron_job.name.namespace)
    }

    /// What a Namespace says has changed: all CronJobs in it are looked at.
    fn enqueue_namespace(&self, namespace: &Namespace) {
        if self.stands_by() {
            return;
        }
        let name = &namespace.object_name().name;
        for cron_job in self.parts.cron_jobs.list() {
            if cron_job.name.namespace == *name {
                self.enqueue(cron_job.name.clone(), "Namespace updated");
            }
        }
    }
}

fn is_later(one: &Namespace, other: &Namespace) -> bool {
    compare_resource_versions(one.resource_version(), other.resource_version()).is_some_and(std::cmp::Ordering::is_gt)
}

#[cfg(test)]
mod tests;
