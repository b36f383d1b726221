//! What the Namespaces say about the CronJobs in them.
//!
//! Guarantees: a Namespace that the watch has not shown is read, never taken for one without a restriction. After the caches were
//! doubted, each Namespace is read once before a Job is created in it. Of two versions the later counts, and what was read once
//! counts however long later reads fail. Without the right to read Namespaces nothing is restricted until they can be read; that is
//! decided no sooner than the API server shows CronJobs and Jobs, and logged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use super::Controller;
use super::control::{CronJobControl, JobControl};
use crate::api::batch_v1::CronJob;
use crate::api::policy::Restriction;
use crate::api::{ApiError, Namespace, Object as _, ObjectName, ResourceKind, compare_resource_versions};
use crate::cache::{Cause, MalformedObject, Observer, ReflectorError, ResourceEventHandler, Store};

/// How long the API server refuses Namespaces, while it shows other objects, before that counts: one that has just started may not
/// know all roles yet.
const LONGEST_START: Duration = Duration::from_secs(1);

/// The Namespaces that matter to a process: all, by a watch, or some, which are read again and again.
#[derive(Debug)]
pub struct Namespaces {
    store: Arc<Store<Namespace>>,
    /// Those that are not watched.
    polled: Box<[Arc<str>]>,
    read: DashMap<Arc<str>, Read>,
    /// Those of `polled` whose last read was refused.
    refused: DashMap<Arc<str>, Refusal>,
    /// The namespace of a Namespace.
    root: Arc<str>,
    /// Incremented whenever the caches of the process may be stale.
    epoch: AtomicU64,
    /// Since when the API server shows CronJobs and Jobs.
    others_listed: OnceLock<Instant>,
    /// Whether none counts, since they may not be listed.
    is_off: AtomicBool,
    /// Whether the last list or watch was refused.
    is_watch_refused: AtomicBool,
    /// Whether a log tells that a Namespace that is watched may not be read.
    is_told: AtomicBool,
    /// Whether every Namespace is known, or will not be.
    known: watch::Sender<bool>,
}

/// The last read of a Namespace.
#[derive(Debug)]
struct Read {
    /// In which epoch of the caches it was.
    epoch: u64,
    namespace: Arc<Namespace>,
    /// The version that [`Namespaces::poll`] called the handlers for. A sync may have read a later one.
    handled: Option<Arc<Namespace>>,
}

/// Since when reads are refused, and whether the Namespace counts as one without a restriction for that.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    since: Instant,
    counts: bool,
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
            refused: DashMap::new(),
            root: "".into(),
            epoch: AtomicU64::new(0),
            others_listed: OnceLock::new(),
            is_off: AtomicBool::new(false),
            is_watch_refused: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
            known: watch::Sender::new(false),
        }
    }

    /// Waits until every Namespace is known, or will not be. The CronJobs and the Jobs must be listed.
    pub async fn synced(&self) {
        self.others_listed.get_or_init(Instant::now);
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

    /// How long ago the API server last confirmed them, if they are watched and may be.
    pub fn age(&self) -> Option<Duration> {
        self.store.age().filter(|_| !self.is_watch_refused.load(Ordering::Relaxed))
    }

    fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Acquire)
    }

    /// The caches may be stale.
    pub(super) fn doubt(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Whether a refusal counts, the first of which was at `since`.
    fn counts(&self, since: Instant) -> bool {
        self.others_listed.get().is_some_and(|listed| since.max(*listed).elapsed() >= LONGEST_START)
    }

    /// What is known of a Namespace.
    fn known(&self, name: &Arc<str>) -> Option<Arc<Namespace>> {
        let key = ObjectName { namespace: Arc::clone(&self.root), name: Arc::clone(name) };
        let read = self.read.get(name).map(|read| Arc::clone(&read.namespace));
        match (self.store.get(&key), read) {
            (Some(shown), Some(read)) => Some(if is_later(&read, &shown) { read } else { shown }),
            (shown, read) => shown.or(read),
        }
    }

    /// Whether a Namespace has to be read: one that is not known, and if all are `doubted`, one that was not read since.
    fn is_to_be_read(&self, name: &Arc<str>, doubted: bool) -> bool {
        let epoch = self.epoch();
        let is_confirmed = || self.read.get(name).is_some_and(|read| read.epoch >= epoch);
        let is_shown = || (!doubted || epoch == 0) && self.known(name).is_some();
        !self.is_off() && !is_shown() && !is_confirmed() && !self.is_refused(name)
    }

    /// Whether a Namespace that was never read counts as one without a restriction.
    fn is_refused(&self, name: &Arc<str>) -> bool {
        self.refused.get(name).is_some_and(|refusal| refusal.counts)
    }

    /// Whether a Namespace that may not be read holds nothing up. The watch alone shows it; if it is refused, too, it is as if
    /// the rights had never been granted.
    fn does_without(&self, name: &Arc<str>) -> bool {
        self.known(name).is_some() || self.is_watch_refused.load(Ordering::Relaxed)
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

    /// Remembers a Namespace whose read began in `epoch`.
    fn learn(&self, name: &Arc<str>, epoch: u64, namespace: Arc<Namespace>) {
        self.refused.remove(name);
        let mut read = self.read.entry(Arc::clone(name)).or_insert_with(|| Read {
            epoch,
            namespace: Arc::clone(&namespace),
            handled: None,
        });
        read.epoch = read.epoch.max(epoch);
        if is_later(&namespace, &read.namespace) {
            read.namespace = namespace;
        }
    }

    /// Whether a sync has read what the Namespace does not say in this version, and may wait for it.
    fn has_read_otherwise(&self, shown: &Namespace) -> bool {
        let read = self.read.get(&shown.object_name().name).map(|read| Arc::clone(&read.namespace));
        read.is_some_and(|read| !read.leaves_the_same_slots(shown))
    }

    /// The watch shows this version: an earlier one that was read is of no use, unless the watch is doubted.
    fn shown(&self, namespace: &Namespace) {
        if self.polled.is_empty() {
            let is_old = |read: &Read| read.epoch == 0 && !is_later(&read.namespace, namespace);
            self.read.remove_if(&namespace.object_name().name, |_, read| is_old(read));
        }
    }

    /// Reads each Namespace that is not watched once, and calls the handlers for what has changed since it last did.
    pub async fn poll(&self, control: &impl CronJobControl, handlers: &[Arc<dyn ResourceEventHandler<Namespace>>]) {
        let mut are_known = true;
        for name in &self.polled {
            let epoch = self.epoch();
            match control.get_namespace(name).await {
                Ok(new) => {
                    let before = self.read.get(name).map(|read| Arc::clone(&read.namespace));
                    self.learn(name, epoch, new);
                    self.handle(name, before.as_ref(), handlers);
                }
                Err(error) if error.code == 403 => self.refuse(name, &error),
                // It is not there, and neither are its CronJobs.
                Err(error) if error.is_not_found() => {
                    self.read.remove(name);
                    self.refused.remove(name);
                    continue;
                }
                Err(error) => warn!(namespace = &**name, %error, "the Namespace cannot be read"),
            }
            are_known &= self.read.contains_key(name) || self.is_refused(name);
        }
        if are_known {
            self.known.send_replace(true);
        }
    }

    /// Calls the handlers for a Namespace that was read. `before` is the last version that was read, also by a sync.
    fn handle(
        &self,
        name: &Arc<str>,
        before: Option<&Arc<Namespace>>,
        handlers: &[Arc<dyn ResourceEventHandler<Namespace>>],
    ) {
        let Some(mut read) = self.read.get_mut(name) else { return };
        let new = Arc::clone(&read.namespace);
        let old = read.handled.replace(Arc::clone(&new));
        // The handlers look at it.
        drop(read);
        let is_news = |old: &Namespace| !old.leaves_the_same_slots(&new);
        match old.map(|old| before.filter(|before| !is_news(&old) && is_news(before)).cloned().unwrap_or(old)) {
            Some(old) => handlers.iter().for_each(|each| each.on_update(&old, &new)),
            None => handlers.iter().for_each(|each| each.on_add(&new, !*self.known.borrow())),
        }
    }

    /// A read of a Namespace was refused.
    fn refuse(&self, name: &Arc<str>, error: &ApiError) {
        let is_known = self.read.contains_key(name);
        let first = Refusal { since: Instant::now(), counts: false };
        let before = self.refused.get(name).map(|refusal| *refusal);
        let Refusal { since, counts: counted } = before.unwrap_or(first);
        let counts = counted || !is_known && self.counts(since);
        self.refused.insert(Arc::clone(name), Refusal { since, counts });
        if is_known && before.is_none() {
            warn!(namespace = &**name, %error, "the Namespace cannot be read; what it said last goes on to hold");
        } else if counts && !counted {
            warn!(namespace = &**name, %error, "a freeze of this Namespace does not count: it cannot be read");
        }
    }
}

/// Logs what cannot be read, and keeps no more reads than are of use.
impl ResourceEventHandler<Namespace> for Namespaces {
    fn on_add(&self, namespace: &Arc<Namespace>, _is_in_initial_list: bool) {
        if self.is_off.swap(false, Ordering::AcqRel) {
            info!("the Namespaces can be listed: their freezes count");
        }
        self.shown(namespace);
        warn_of_error(None, namespace);
    }

    fn on_update(&self, old: &Arc<Namespace>, new: &Arc<Namespace>) {
        self.shown(new);
        warn_of_error(Some(old), new);
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
        self.is_watch_refused.store(is_refusal, Ordering::Relaxed);
        let counts = || self.others_listed.get().is_some_and(|listed| self.counts(*listed));
        if is_refusal && !self.store.has_synced() && counts() && !self.is_off.swap(true, Ordering::AcqRel) {
            warn!(%error, "no freeze of a Namespace counts: the Namespaces cannot be listed");
            self.known.send_replace(true);
        }
    }

    fn listed(&self, _resource: ResourceKind) {
        self.is_watch_refused.store(false, Ordering::Relaxed);
    }
}

/// Logs that a Namespace cannot be read any more. Its author may change it as often as they like.
fn warn_of_error(old: Option<&Namespace>, new: &Namespace) {
    let error = |namespace: &Namespace| namespace.restriction.as_ref()?.error().map(ToString::to_string);
    if old.and_then(error).is_none()
        && let Some(error) = error(new)
    {
        let name = &*new.object_name().name;
        warn!(namespace = name, error, "no CronJob of this Namespace starts: its restriction cannot be read");
    }
}

impl<C: JobControl + CronJobControl> ResourceEventHandler<Namespace> for Controller<C> {
    fn on_add(&self, namespace: &Arc<Namespace>, is_in_initial_list: bool) {
        // One without a restriction may follow one that was read and had one. The first list may come late.
        if !is_in_initial_list || namespace.restriction.is_some() {
            self.enqueue_namespace(namespace, None);
        }
    }

    fn on_update(&self, old: &Arc<Namespace>, new: &Arc<Namespace>) {
        let namespaces = self.parts.namespaces.as_ref();
        if !old.leaves_the_same_slots(new) || namespaces.is_some_and(|namespaces| namespaces.has_read_otherwise(new)) {
            self.enqueue_namespace(new, old.restriction.as_ref());
        }
    }

    fn on_delete(&self, _last: &Arc<Namespace>, _final_state_unknown: bool) {}

    fn on_relisted(&self) {
        self.doubt_caches();
    }
}

impl<C: JobControl + CronJobControl> Controller<C> {
    /// What the Namespace of a CronJob says. It is read first if it is not known, and if the caches are `doubted`, unless it was
    /// read since they are. A Namespace that is gone is an error: nothing can start there.
    pub(super) async fn look_at_namespace(
        &self,
        cron_job: &ObjectName,
        doubted: bool,
    ) -> Result<Option<Arc<Restriction>>, ApiError> {
        let Some(namespaces) = &self.parts.namespaces else { return Ok(None) };
        let (name, epoch) = (&cron_job.namespace, namespaces.epoch());
        if namespaces.is_to_be_read(name, doubted) {
            match self.parts.control.get_namespace(name).await {
                Ok(namespace) => namespaces.learn(name, epoch, namespace),
                Err(error) if error.code == 403 && namespaces.does_without(name) => {
                    if !namespaces.is_told.swap(true, Ordering::Relaxed) {
                        let counts =
                            "what the watch shows counts, and no freeze of a new Namespace once that is refused, too";
                        warn!(namespace = &**name, %error, "the Namespace cannot be read: {counts}");
                    }
                }
                Err(error) => return Err(error),
            }
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

    /// What a Namespace says has changed: all CronJobs in it are looked at. `before` is what it said.
    fn enqueue_namespace(&self, namespace: &Namespace, before: Option<&Arc<Restriction>>) {
        if self.stands_by() {
            return;
        }
        for cron_job in self.parts.cron_jobs.in_namespace(&namespace.object_name().name) {
            if let (Some(stats_set), Some(before)) = (&self.parts.stats_set, before) {
                stats_set.restriction_ended(&cron_job.restricted(before));
            }
            self.enqueue(cron_job.name.clone(), "Namespace updated");
        }
    }
}

fn is_later(one: &Namespace, other: &Namespace) -> bool {
    compare_resource_versions(one.resource_version(), other.resource_version()).is_some_and(std::cmp::Ordering::is_gt)
}

#[cfg(test)]
mod tests;
