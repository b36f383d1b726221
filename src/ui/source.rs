//! Where the page's facts come from: the informers of a cluster, or manifests.
//!
//! Guarantees: reads only, with list and watch alone. What is known of one CronJob is what `explain` reads about it: its
//! Jobs, the Events about it, its controller's lease. A kind that cannot be listed is reported by name; unreadable Events,
//! leases and manifests hide nothing else. `connection` says since when it is old.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, Utc};
use futures::future::join3;
use kube::Client;
use parking_lot::{Mutex, RwLock};
use schedule::Zone;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::UiError;
use super::connection::{Outage, Watches, sentence};
use super::objects::{WatchedCronJob, WatchedEvent, WatchedJob};
use crate::api::batch_v1::CronJob;
use crate::api::policy::PolicyOptions;
use crate::api::{ControllerKind, Object as _, ObjectName, ResourceKind};
use crate::cache::{Informer, Observer, Operation, ReflectorError, ResourceEventHandler, Store};
use crate::cli::check::sources::{self, Read};
use crate::cli::cluster::Known;
use crate::cli::explain::lease::ControllerLease;
use crate::cli::explain::lease::Leases;
use crate::cli::explain::read::{Said, lease_at, lease_of, list, list_leases};
use crate::cli::explain::watched::Watched;
use crate::cli::explain::{Case, Facts, InCharge, leases_unread};
use crate::cli::next::manifests;
use crate::cli::restrictions::{Restrictions, unread};
use crate::yaml;

/// How often leases are read.
const LEASE_PERIOD: Duration = Duration::from_secs(10);

/// How many files and documents that cannot be read the page names.
const MOST_UNREADABLE: usize = 10;

/// What has changed since it was last asked.
#[derive(Debug, Default)]
pub struct Changes {
    names: Mutex<HashSet<ObjectName>>,
    /// Wakes the task that computes rows.
    pub notify: Notify,
}

impl Changes {
    fn add(&self, name: ObjectName) {
        self.names.lock().insert(name);
        self.notify.notify_one();
    }

    /// The CronJobs that have changed, or whose Jobs or Events have.
    pub fn take(&self) -> HashSet<ObjectName> {
        std::mem::take(&mut *self.names.lock())
    }
}

/// The facts about all CronJobs.
pub struct Source {
    /// The CronJobs.
    pub cron_jobs: Arc<Store<WatchedCronJob>>,
    /// All Jobs of the same namespaces.
    pub jobs: Arc<Store<WatchedJob>>,
    events: Arc<Store<WatchedEvent>>,
    /// `None` until they were read.
    leases: RwLock<Option<Leases>>,
    /// What the Namespaces say.
    restrictions: RwLock<Restrictions>,
    /// The namespace of the CronJobs; `None` for all.
    namespace: Option<String>,
    /// The latest failure for each kind that cannot be read.
    trouble: Mutex<BTreeMap<&'static str, String>>,
    outage: RwLock<Option<Outage>>,
    /// See `connection`.
    pub(super) watches: RwLock<Watches>,
    /// Whether a watch has broken off, and a wake for that.
    broken: (AtomicBool, Notify),
    origin: Origin,
    /// What has changed.
    pub changes: Arc<Changes>,
}

enum Origin {
    Cluster(Client),
    Files {
        /// The objects as they were read.
        objects: HashMap<ObjectName, Value>,
        /// What could not be read, and why.
        unreadable: Vec<String>,
    },
}

/// The informers of a source.
pub struct Informers {
    cron_jobs: Informer<WatchedCronJob>,
    jobs: Informer<WatchedJob>,
    events: Informer<WatchedEvent>,
}

impl Source {
    /// The CronJobs of a cluster, in one namespace or in all. Nothing is read until [`Informers::run`].
    pub fn of_cluster(client: Client, namespace: Option<&str>, seed: &Arc<str>) -> (Arc<Self>, Informers) {
        let namespaces: Vec<String> = namespace.map(str::to_owned).into_iter().collect();
        let number: u64 = rand::random();
        let policies = PolicyOptions { enabled: true, seed: Arc::clone(seed) };
        let cron_jobs =
            Informer::<WatchedCronJob>::new(client.clone(), &namespaces, number).selecting(move |watched| {
                watched.apply(&policies);
                true
            });
        let jobs = Informer::<WatchedJob>::new(client.clone(), &namespaces, number.wrapping_add(1));
        let events = Informer::<WatchedEvent>::new(client.clone(), &namespaces, number.wrapping_add(2));
        let events = events.selecting(|event| event.kind == ControllerKind::CronJob.parent.kind);
        let mut informers = Informers { cron_jobs, jobs, events };
        let source = Arc::new(Self {
            cron_jobs: informers.cron_jobs.store(),
            jobs: informers.jobs.store(),
            events: informers.events.store(),
            leases: RwLock::default(),
            restrictions: RwLock::default(),
            namespace: namespace.map(str::to_owned),
            trouble: Mutex::default(),
            outage: RwLock::default(),
            watches: RwLock::default(),
            broken: (AtomicBool::default(), Notify::new()),
            origin: Origin::Cluster(client),
            changes: Arc::default(),
        });
        let observer: Arc<dyn Observer> = Arc::new(TroubleObserver(Arc::downgrade(&source)));
        informers.cron_jobs.set_observer(Arc::clone(&observer));
        informers.jobs.set_observer(Arc::clone(&observer));
        informers.events.set_observer(observer);
        let handler = Arc::new(Handler(Arc::clone(&source.changes)));
        informers.cron_jobs.add_event_handler(Arc::clone(&handler) as _);
        informers.jobs.add_event_handler(Arc::clone(&handler) as _);
        informers.events.add_event_handler(handler);
        (source, informers)
    }

    /// The CronJobs in manifests. What is found in a directory and cannot be read is logged and named on the page. They count as created now, so that no run is overdue.
    ///
    /// # Errors
    /// The first of `paths` that cannot be read.
    pub fn of_files(
        paths: &[PathBuf],
        recursive: bool,
        namespace: &str,
        seed: &Arc<str>,
        clock: &SharedClock,
    ) -> Result<Arc<Self>, UiError> {
        let Read { sources, left_out, mut unreadable } = sources::read(paths, recursive)?;
        for line in left_out.lines("check") {
            tracing::warn!("{line}");
        }
        let found = manifests::find(&sources, namespace, seed);
        unreadable.extend(found.unreadable);
        let cron_jobs = Store::new([]);
        let mut objects = HashMap::new();
        let restrictions = manifests::restrictions(&sources);
        for (object, mut cron_job, in_charge) in found.cron_jobs {
            // The API server keeps whole seconds.
            cron_job.creation_timestamp = DateTime::from_timestamp(clock.now().timestamp(), 0).unwrap_or_default();
            let name = cron_job.name.clone();
            let watched = Watched::new(cron_job, in_charge.is_handed_over(), Some(false));
            cron_jobs.upsert(WatchedCronJob::new(watched, &object.to_string()));
            objects.insert(name, object);
        }
        let unreadable: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
        for error in &unreadable {
            tracing::warn!("{error}");
        }
        Ok(Arc::new(Self {
            cron_jobs: Arc::new(cron_jobs),
            jobs: Arc::new(Store::new([])),
            events: Arc::new(Store::new([])),
            leases: RwLock::default(),
            restrictions: RwLock::new(restrictions),
            namespace: None,
            trouble: Mutex::default(),
            outage: RwLock::default(),
            watches: RwLock::default(),
            broken: (AtomicBool::default(), Notify::new()),
            origin: Origin::Files { objects, unreadable },
            changes: Arc::default(),
        }))
    }

    /// Whether CronJobs and Jobs are known completely.
    pub fn has_synced(&self) -> bool {
        self.cron_jobs.has_synced() && self.jobs.has_synced()
    }

    /// The client of the cluster, if there is one.
    pub fn client(&self) -> Option<&Client> {
        if let Origin::Cluster(client) = &self.origin { Some(client) } else { None }
    }

    /// Whether the CronJobs come from manifests.
    pub fn is_files(&self) -> bool {
        matches!(self.origin, Origin::Files { .. })
    }

    /// What cannot be read, and why, one sentence for each cause.
    pub fn trouble(&self) -> Vec<String> {
        let mut trouble: Vec<String> = self.trouble.lock().values().cloned().collect();
        trouble.dedup();
        if let Origin::Files { unreadable, .. } = &self.origin {
            trouble.extend(unreadable.iter().take(MOST_UNREADABLE).cloned());
            let more = unreadable.len().saturating_sub(MOST_UNREADABLE);
            trouble.extend((more > 0).then(|| format!("{more} more files or documents cannot be read.")));
        }
        trouble
    }

    /// Why the Events cannot be read.
    pub fn unread_events(&self) -> Option<String> {
        self.trouble.lock().get(WatchedEvent::RESOURCE.kind).cloned()
    }

    /// Why the CronJobs or the Jobs cannot be listed.
    pub(super) fn unreadable(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        [WatchedCronJob::RESOURCE, WatchedJob::RESOURCE].iter().find_map(|kind| trouble.get(kind.kind).cloned())
    }

    /// Since when what is shown is old.
    pub fn outage(&self) -> Option<Outage> {
        self.outage.read().clone()
    }

    pub(super) fn set_outage(&self, outage: Option<Outage>) {
        let is_new = *self.outage.read() != outage;
        if is_new {
            *self.outage.write() = outage;
            self.changes.notify.notify_one();
        }
    }

    /// How long the API server has sent nothing about CronJobs or Jobs.
    pub(super) fn silence(&self) -> Duration {
        self.cron_jobs.age().max(self.jobs.age()).unwrap_or_default()
    }

    /// Whether a watch has broken off since this was last asked.
    pub(super) fn take_broken(&self) -> bool {
        self.broken.0.swap(false, Ordering::Relaxed)
    }

    /// Waits until a watch breaks off.
    pub(super) async fn broken(&self) {
        self.broken.1.notified().await;
    }

    /// Which controller runs a CronJob, as `explain` finds it, and what that controller sees.
    pub fn seen(&self, watched: &WatchedCronJob) -> (InCharge, Arc<CronJob>) {
        let (in_charge, cron_job) = watched.seen(self.leases.read().as_ref().unwrap_or(&Leases::default()));
        (in_charge, self.restrictions.read().applied(cron_job, in_charge))
    }

    /// All that is known of a CronJob. A Job of another owner that has the name of a due run is among its Jobs.
    pub fn known(&self, watched: &WatchedCronJob, zone: Zone, now: DateTime<Utc>) -> Known {
        let (in_charge, cron_job) = self.seen(watched);
        let jobs = self.jobs.by_controller(&cron_job.uid).iter().map(|watched| Arc::clone(&watched.job)).collect();
        let mut events = self.events.by_controller(&cron_job.uid);
        events.sort_by_key(|event| std::cmp::Reverse(event.said.as_ref().map(|said| said.time)));
        let said = |is_meant: &dyn Fn(&WatchedEvent) -> bool| {
            events.iter().filter(|event| is_meant(event)).filter_map(|event| event.said.clone()).collect()
        };
        let warnings = self.unread_events().map_or_else(|| Ok(said(&|event| event.is_warning)), Err);
        let leases = self.leases.read();
        let (none, warned) = (Leases::default(), warnings.as_deref().unwrap_or_default());
        let in_charge = in_charge.warned(&cron_job, leases.as_ref().unwrap_or(&none), warned);
        let lease = leases.as_ref().and_then(|leases| lease_of(leases, &cron_job, in_charge));
        drop(leases);
        let namespace_unread = self.restrictions.read().unread.clone();
        let events: Vec<Said> = said(&|_| true);
        let facts = Facts {
            lease,
            namespace_unread,
            edited: watched.edited,
            backfilled: watched.backfilled.to_vec(),
            ..Facts::of(Arc::clone(&cron_job), in_charge, jobs)
        };
        let mut known = Known { facts: facts.with_events(&events, warnings), events };
        let taken = Case::new(&known.facts, zone, now).wanted().and_then(|name| self.jobs.get(name));
        let taken = taken.filter(|taken| !taken.job.is_child_of(&cron_job));
        known.facts.jobs.extend(taken.map(|taken| Arc::clone(&taken.job)));
        known
    }

    /// The object as YAML, without what only the API server and kubectl read.
    pub async fn yaml(&self, name: &ObjectName) -> Result<String, String> {
        let mut object = match &self.origin {
            Origin::Files { objects, .. } => objects.get(name).cloned().unwrap_or_default(),
            Origin::Cluster(client) => {
                let kind = ControllerKind::CronJob.parent;
                let selector = format!("&fieldSelector=metadata.name={}", name.name);
                let found = list(client, &kind.path(Some(&name.namespace)), &selector).await;
                let found = found.map_err(|error| error.to_string())?.into_iter().next();
                let text = found.ok_or_else(|| "it no longer exists".to_owned())?;
                let mut object: Value = serde_json::from_str(text.get()).map_err(|error| error.to_string())?;
                // The items of a list do not say their kind.
                if let Some(fields) = object.as_object_mut() {
                    fields.insert("apiVersion".to_owned(), kind.api_version().into());
                    fields.insert("kind".to_owned(), kind.kind.into());
                }
                object
            }
        };
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
            let is_empty = annotations.is_some_and(|annotations| {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
                annotations.is_empty()
            });
            if is_empty {
                metadata.remove("annotations");
            }
        }
        yaml::write(&object).map_err(|error| error.to_string())
    }

    /// The Lease under which a controller works on CronJobs of a namespace; `None` while Leases are not known.
    pub fn lease_finder(&self) -> Option<impl Fn(&str, InCharge) -> Option<ControllerLease>> {
        let leases = self.leases.read().clone()?;
        Some(move |namespace: &str, in_charge| lease_at(&leases, ControllerKind::CronJob, namespace, in_charge))
    }

    /// Reads the leases and the Namespaces again and again.
    async fn read_leases(&self, clock: &SharedClock, cancel: &CancellationToken) {
        let Origin::Cluster(client) = &self.origin else { return };
        let mut at = clock.now();
        loop {
            let found = list_leases(client).await;
            let restrictions = Restrictions::read(client, self.namespace.as_deref()).await;
            self.note("Lease", found.as_ref().err().map(|error| format!("{}.", leases_unread(&error.to_string()))));
            self.note("Namespace", restrictions.unread.as_deref().map(|error| format!("{}.", unread(error))));
            let restrictions = restrictions.or_last(&self.restrictions.read());
            let is_read = found.is_ok();
            let before = self.leases.read().clone().unwrap_or_default();
            let found = found.unwrap_or_else(|_| before.clone());
            let restricted = std::mem::replace(&mut *self.restrictions.write(), restrictions.clone());
            let (was, now) = (at, clock.now());
            for watched in self.cron_jobs.list() {
                let CronJob { controller_kind, name, .. } = &*watched.cron_job;
                let said = |leases: &Leases, now| {
                    let lease = leases.controller(*controller_kind, &name.namespace, false);
                    let is_held = leases.are_held(*controller_kind, &name.namespace);
                    let manage = leases.manage(*controller_kind, &name.namespace);
                    let elsewhere = leases.work_elsewhere(*controller_kind, &name.namespace);
                    (is_held, manage, elsewhere, lease.map(|lease| (lease.name.clone(), lease.is_expired(now))))
                };
                if said(&found, now) != said(&before, was)
                    || restrictions.of(&name.namespace) != restricted.of(&name.namespace)
                {
                    self.changes.add(name.clone());
                }
            }
            if is_read || self.leases.read().is_some() {
                *self.leases.write() = Some(found);
            }
            at = now;
            if cancel.run_until_cancelled(tokio::time::sleep(LEASE_PERIOD)).await.is_none() {
                return;
            }
        }
    }

    /// Notes why a kind cannot be read, or that it can.
    fn note(&self, kind: &'static str, trouble: Option<String>) {
        // An outage is said, and this may be a part of it.
        if trouble.is_some() && self.outage().is_some() {
            return;
        }
        let mut all = self.trouble.lock();
        if all.get(kind) == trouble.as_ref() {
            return;
        }
        match trouble {
            Some(trouble) => drop(all.insert(kind, trouble)),
            None => drop(all.remove(kind)),
        }
        self.changes.notify.notify_one();
    }
}

impl Informers {
    /// Lists and watches until `cancel`.
    pub async fn run(self, source: Arc<Source>, clock: SharedClock, cancel: CancellationToken) {
        let Self { cron_jobs, jobs, events } = self;
        let connection = async {
            if let Origin::Cluster(client) = &source.origin {
                source.watch_connection(client, &clock, &cancel).await;
            }
        };
        let informers = join3(cron_jobs.run(cancel.clone()), jobs.run(cancel.clone()), events.run(cancel.clone()));
        tokio::join!(informers, source.read_leases(&clock, &cancel), connection);
    }
}

/// Records what cannot be read. The source owns the informers' stores, so a weak reference ends with it.
struct TroubleObserver(std::sync::Weak<Source>);

impl Observer for TroubleObserver {
    fn failed(&self, resource: ResourceKind, error: &ReflectorError) {
        let Some(source) = self.0.upgrade() else { return };
        let is_event = resource.kind == WatchedEvent::RESOURCE.kind;
        // A watch that ends is resumed, and one that cannot be is behind.
        if error.operation == Operation::Watch {
            if !is_event {
                source.broken.0.store(true, Ordering::Relaxed);
            }
        } else {
            source.trouble.lock().insert(resource.kind, sentence(resource.plural, error));
            source.changes.notify.notify_one();
        }
        source.broken.1.notify_one();
    }

    fn listed(&self, resource: ResourceKind) {
        if let Some(source) = self.0.upgrade() {
            source.trouble.lock().remove(resource.kind);
            source.changes.notify.notify_one();
        }
    }
}

/// Records the CronJobs that a change concerns.
struct Handler(Arc<Changes>);

impl Handler {
    fn of_job(&self, watched: &WatchedJob) {
        let name = &watched.job.name;
        if let Some(owner) = &watched.job.controller {
            self.0.add(ObjectName::new(Arc::clone(&name.namespace), Arc::clone(&owner.name)));
        }
        // It may have the name of another CronJob's run.
        if let Some((stem, _)) = name.name.rsplit_once('-') {
            self.0.add(ObjectName::new(Arc::clone(&name.namespace), stem));
        }
    }

    fn of_event(&self, event: &WatchedEvent) {
        self.0.add(ObjectName::new(Arc::clone(&event.object_name().namespace), event.about.as_str()));
    }
}

impl ResourceEventHandler<WatchedCronJob> for Handler {
    fn on_add(&self, object: &Arc<WatchedCronJob>, _is_in_initial_list: bool) {
        self.0.add(object.cron_job.name.clone());
    }

    fn on_update(&self, _old: &Arc<WatchedCronJob>, new: &Arc<WatchedCronJob>) {
        self.0.add(new.cron_job.name.clone());
    }

    fn on_delete(&self, last: &Arc<WatchedCronJob>, _final_state_unknown: bool) {
        self.0.add(last.cron_job.name.clone());
    }

    fn on_relisted(&self) {
        self.0.notify.notify_one();
    }
}

impl ResourceEventHandler<WatchedJob> for Handler {
    fn on_add(&self, object: &Arc<WatchedJob>, _is_in_initial_list: bool) {
        self.of_job(object);
    }

    fn on_update(&self, _old: &Arc<WatchedJob>, new: &Arc<WatchedJob>) {
        self.of_job(new);
    }

    fn on_delete(&self, last: &Arc<WatchedJob>, _final_state_unknown: bool) {
        self.of_job(last);
    }
}

impl ResourceEventHandler<WatchedEvent> for Handler {
    fn on_add(&self, object: &Arc<WatchedEvent>, _is_in_initial_list: bool) {
        self.of_event(object);
    }

    fn on_update(&self, _old: &Arc<WatchedEvent>, new: &Arc<WatchedEvent>) {
        self.of_event(new);
    }

    fn on_delete(&self, last: &Arc<WatchedEvent>, _final_state_unknown: bool) {
        self.of_event(last);
    }
}

#[cfg(test)]
mod tests;
