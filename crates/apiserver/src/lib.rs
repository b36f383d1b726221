//! A Kubernetes API server in memory, for tests: a tower service, with or without sockets.
//!
//! Guarantees:
//! - It answers as kube-apiserver does, including the text of errors. The differences that are known are listed below.
//! - It is deterministic. Its only clock is the one in [`Config`], and all randomness follows from the seed. It starts no
//!   threads. An answer is complete when [`ApiServer::handle`] returns, including the garbage collection that it caused.
//! - Two servers share nothing.
//!
//! [`ApiServer::default`] serves every kind that the crate knows ([`kinds`]); other kinds come as CustomResourceDefinitions
//! that a client creates. [`ApiServer::client`] calls the server without a socket. `examples/label_controller.rs` tests a
//! controller of kube-runtime with it.
//!
//! Modules: `rest` reads paths and headers. `read`, `write`, `patch` and `delete` are the verbs. `store` holds objects
//! (`object`) in order (`sorted`) with their history, `versions` converts them, `state` saves and restores them, and `watch` streams
//! the history. `gc` collects garbage. `managers` and `fields`
//! track which manager owns which field. `meta` validates metadata. `admission` decides which webhooks are called (`matching`),
//! `webhook_client` calls them over HTTPS, and `pending_write` holds a write meanwhile. `policies` judges by policies, `cel`
//! evaluates expressions. `selectors`, `query`, `body` and `negotiate` parse requests; `table` makes tables of answers.
//!
//! # Differences from kube-apiserver
//! Some show in answers. They are data in `tests/truth/known.rs` of the repository, where each one fails once it is gone:
//! - Messages that quote a whole object (a patch whose result cannot be read) order its fields alphabetically and not as
//!   Go's types do.
//! - A rejected change of a Job's template or a Pod's spec does not print upstream's internal Go types.
//! - Priority classes are not served. Any name is accepted and means 0, except the two of the system.
//! - YAML is read as version 1.2: `y` and `off` are text.
//! - A Job's first write that changes nothing makes no new version. Upstream then stores labels that it only showed before.
//!
//! Others do not show in single answers:
//! - Entries of managedFields are ordered by time first, so their order depends on whether a second has passed between two
//!   writes.
//! - Protobuf is read and never written. CBOR is neither read nor written.
//! - The document at `/openapi/v2` has definitions and no paths, and is empty as protobuf. Paths are below `/openapi/v3`.
//! - Events expire an hour after their last write, but a watch shows that only with the next request. `events.k8s.io` and the `scale` subresource are not served.
//! - Garbage is collected at once. The contents of a terminating namespace go after two seconds and not five.
//! - A list from a future resourceVersion is rejected at once and not after three seconds.
//! - A watch without a timeout lasts 45 minutes.
//! - Bookmarks are sent at other times.
//! - Every request is allowed.
//! - Many kinds are stored without effect, because no controller acts on them ([`kinds`]).
//! - Expressions of CEL that are not judged (`cel`) are named in a warning; kube-apiserver refuses those that are wrong.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::too_many_lines))]
#![warn(missing_docs)]

mod admission;
mod body;
mod cel;
mod delete;
pub mod discovery;
mod fields;
mod flow_depth;
mod gc;
pub mod kinds;
mod listener;
mod log;
mod managers;
mod matching;
mod meta;
mod negotiate;
mod object;
mod openapi;
mod patch;
mod pending_write;
#[doc(hidden)]
pub mod policies;
mod query;
mod read;
mod registry;
mod rest;
mod selectors;
mod service;
mod sorted;
mod state;
mod store;
mod table;
mod versions;
mod watch;
mod webhook_client;
mod write;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use apimachinery::clock::{Clock, SharedClock, SystemClock, TestClock};
#[doc(inline)]
pub use apimachinery::field::{FieldError, FieldErrorKind};
use axum::body::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::admission::WebhookCaller;
#[doc(hidden)]
pub use self::matching::Request as AdmissionRequest;
pub use self::object::Object;
pub use self::pending_write::{WebhookAnswer, WebhookCall};
pub use self::registry::Resource;
pub use self::service::ApiService;
pub use self::store::ChangeKind;
use self::store::Store;
pub use self::webhook_client::{ServiceResolver, webhooks_over_https};
// For this project's own programs and tests; may change with any release.
#[doc(hidden)]
pub use self::{
    patch::merge_patch,
    registry::{Column, NameRule, Strategy, WrongType},
    service::MAX_BODY,
    state::{Changes, Journal, ObjectChange},
    write::{Judgement, judge_new},
};

/// The body of an answer: a whole document, or a stream of watch events.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Answers the discovery documents. Maps path, `Accept` header and the served resources to content type and document.
pub type Discovery = fn(path: &str, accept: &str, resources: &[Resource]) -> Option<(String, Value)>;

/// The log of a container, by its Pod and name; `None` if it has not started.
pub type LogSource = Arc<dyn Fn(&Value, &str) -> Option<String> + Send + Sync>;

/// How long an object with a missing owner stays, and the contents of a terminating namespace.
const LATE: Duration = Duration::from_secs(2);

/// How long an Event stays after its last write. Matches the default of kube-apiserver's `--event-ttl`.
const EVENT_TTL: TimeDelta = TimeDelta::hours(1);

/// The namespaces that exist from the start.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Wall time, for timestamps.
    pub clock: SharedClock,
    /// The kinds served from the start.
    pub resources: Vec<Resource>,
    /// Answers /api, /apis, /version and /openapi; `None` answers 404 there.
    pub discovery: Option<Discovery>,
    /// The seed of UIDs and generated name suffixes.
    pub seed: u64,
    /// Watch events kept per resource; older watches get 410.
    pub history: usize,
    /// Whether dependents of deleted owners and the contents of deleted namespaces are deleted. In a real cluster
    /// kube-controller-manager does this.
    pub garbage_collection: bool,
    /// How long an Event stays after its last write; `None` for ever.
    pub event_ttl: Option<TimeDelta>,
}

impl Default for Config {
    /// A server of every kind that the crate knows, with discovery, on the machine's clock.
    fn default() -> Self {
        Self { discovery: Some(discovery::respond), ..Self::new(Arc::new(SystemClock), kinds::all()) }
    }
}

impl Config {
    /// A server of all built-in kinds, with discovery.
    pub fn builtin(clock: SharedClock) -> Self {
        Self { discovery: Some(discovery::respond), ..Self::new(clock, kinds::builtin()) }
    }

    /// A server of `resources` with a seed of 0, 10 000 changes of history, garbage collection, Events that expire after an
    /// hour, and no discovery.
    pub fn new(clock: SharedClock, resources: Vec<Resource>) -> Self {
        let (garbage_collection, event_ttl) = (true, Some(EVENT_TTL));
        Self { clock, resources, discovery: None, seed: 0, history: 10_000, garbage_collection, event_ttl }
    }
}

/// One change of one object, for observers.
#[derive(Clone, Debug)]
pub struct Committed {
    /// `plural.group`.
    pub collection: String,
    /// The revision of the change.
    pub revision: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// The object afterwards; for a deletion its last state.
    pub object: Arc<Object>,
    /// The object before.
    pub previous: Option<Arc<Object>>,
}

/// Why a snapshot cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The snapshot is not one of this server's.
    #[error("cannot restore the API server's state: {0}")]
    Malformed(String),
}

/// An in-memory Kubernetes API server; clones share the state.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    store: Mutex<Store>,
    logs: Mutex<Option<LogSource>>,
    webhooks: Mutex<Option<WebhookCaller>>,
    /// Whether a task is waiting to run the late part of garbage collection.
    is_settling: AtomicBool,
    openapi: openapi::LastVersion2,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl ApiServer {
    /// A server with the namespaces that every cluster has (if namespaces are served) and nothing else.
    pub fn new(config: Config) -> Self {
        let mut store = Store::new(config.clock.clone(), config.seed, config.history, config.event_ttl);
        for resource in &config.resources {
            store.register(resource.clone());
        }
        let (store, logs, webhooks) = (Mutex::new(store), Mutex::new(None), Mutex::new(None));
        let is_settling = AtomicBool::new(false);
        let openapi = openapi::LastVersion2::default();
        let server = Self { inner: Arc::new(Inner { config, store, logs, webhooks, is_settling, openapi }) };
        server.make_namespaces();
        server
    }

    fn make_namespaces(&self) {
        let mut store = self.store();
        let Some(collection) = store.collections.get("namespaces") else { return };
        let resource = Arc::clone(&collection.resource);
        for name in NAMESPACES {
            let id = store::Id { collection: "namespaces".to_owned(), key: store::key("", name) };
            let now = store::timestamp(store.now());
            let uid = store::uid_from(|| store.next_random());
            let mut namespace = json!({
                "kind": "Namespace", "apiVersion": "v1",
                "metadata": {
                    "name": name, "uid": uid, "creationTimestamp": now,
                    "labels": {"kubernetes.io/metadata.name": name},
                },
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            resource.strategy.set_defaults(&mut namespace);
            store.put(&id, namespace);
        }
        store.dirty.clear();
    }

    /// A client that calls the server without sockets. Must be called inside a tokio runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.into_service(), "default")
    }

    /// Answers one request. Waits for admission webhooks and for nothing else. The body of a watch answer stays open.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Body> {
        service::answer(self, request).await
    }

    /// The server as a tower service, for any body.
    #[allow(clippy::wrong_self_convention)]
    pub fn into_service(&self) -> ApiService {
        ApiService::new(self.clone())
    }

    /// Serves plain HTTP/1.1 until `cancel`; then rejects new connections, ends the watches and returns.
    pub async fn serve(self, listener: TcpListener, cancel: CancellationToken) {
        listener::serve(self, listener, cancel).await;
    }

    /// Adds a kind.
    pub fn register(&self, resource: Resource) {
        self.store().register(resource);
    }

    /// The served kinds.
    pub fn resources(&self) -> Vec<Resource> {
        self.served().iter().map(|resource| (**resource).clone()).collect()
    }

    fn served(&self) -> Arc<[Arc<Resource>]> {
        Arc::clone(&self.store().served)
    }

    /// Drops the watch history: older watches and continue tokens get 410.
    pub fn compact(&self) {
        self.store().compact();
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.store().revision
    }

    /// The changes after `revision`, oldest first. Empty for collections whose history no longer reaches back to `revision`.
    pub fn changes_after(&self, revision: u64) -> Vec<Committed> {
        let store = self.store();
        let committed = |name: &str, change: &store::Change| Committed {
            collection: name.to_owned(),
            revision: change.revision,
            kind: change.kind,
            object: change.object.object(),
            previous: change.previous.as_ref().map(object::Entry::object),
        };
        let collections = store.collections.iter();
        let changes = collections.flat_map(|(name, collection)| {
            let committed = &committed;
            collection.since(revision).map(move |change| committed(name, change))
        });
        let mut changes: Vec<Committed> = changes.collect();
        changes.sort_by_key(|change| change.revision);
        changes
    }

    /// The whole state, for [`ApiServer::restore`].
    pub fn snapshot(&self) -> Value {
        self.store().snapshot()
    }

    /// Replaces the whole state. Open watches end.
    ///
    /// # Errors
    /// When [`ApiServer::snapshot`] did not make the snapshot, or it holds kinds that are not served. The state is then
    /// unchanged.
    pub fn restore(&self, snapshot: &Value) -> Result<(), RestoreError> {
        let mut store = self.store();
        store.restore(snapshot).map_err(RestoreError::Malformed)?;
        self.settle(&mut store);
        Ok(())
    }

    /// The whole state, for [`ApiServer::load`]. It shares the texts of objects with the server.
    #[doc(hidden)]
    pub fn state(&self) -> Changes {
        self.store().state()
    }

    /// Replaces the whole state by one of [`ApiServer::state`] or of a [`Journal`]. Open watches end. UIDs and name suffixes
    /// still follow from this server's seed.
    ///
    /// # Errors
    /// As [`ApiServer::restore`].
    #[doc(hidden)]
    pub fn load(&self, state: Changes) -> Result<(), RestoreError> {
        let mut store = self.store();
        store.load(state).map_err(RestoreError::Malformed)?;
        self.settle(&mut store);
        Ok(())
    }

    /// Records every change after the present state in the journal that `start` makes for that state. A change is recorded
    /// before any client sees it. While the journal fails, writes are answered with 500.
    ///
    /// # Errors
    /// That of `start`.
    #[doc(hidden)]
    pub fn record<E>(&self, start: impl FnOnce(&Changes) -> Result<Box<dyn Journal>, E>) -> Result<(), E> {
        let mut store = self.store();
        let journal = start(&store.state())?;
        store.recording.begin(journal);
        Ok(())
    }

    /// Removes expired Events. Every request does so first; a server without requests can be reminded of it.
    #[doc(hidden)]
    pub fn expire(&self) {
        let mut store = self.store();
        if store.expire() {
            self.settle(&mut store);
            // The journal is offered the changes again with the next write, which fails if they cannot be recorded then.
            let revision = store.revision;
            let _ = store.recording.flush(revision);
        }
    }

    /// Sets the source of `pods/log`.
    pub fn set_log_source(&self, source: LogSource) {
        *self.inner.logs.lock() = Some(source);
    }

    /// Sets how the server calls admission webhooks, if it serves their configurations.
    pub fn set_webhook_caller(&self, caller: WebhookCaller) {
        *self.inner.webhooks.lock() = Some(caller);
    }

    /// Calls a webhook. No lock is held meanwhile, so the webhook may send requests to the server before it answers.
    async fn ask(&self, call: &WebhookCall) -> WebhookAnswer {
        let caller = self.inner.webhooks.lock().clone();
        let caller = caller.ok_or("nothing carries requests to webhooks here")?;
        caller(call.clone()).await
    }

    fn log_source(&self) -> Option<LogSource> {
        self.inner.logs.lock().clone()
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.inner.store.lock()
    }

    fn now(&self) -> DateTime<Utc> {
        self.inner.config.clock.now()
    }

    fn discovery(&self) -> Option<Discovery> {
        self.inner.config.discovery
    }

    /// Collects garbage after a write. The late part needs a tokio runtime.
    fn settle(&self, store: &mut Store) {
        if !self.inner.config.garbage_collection {
            gc::end_definitions(store);
            store.dirty.clear();
            store.orphaned.clear();
            store.late.clear();
            return;
        }
        gc::settle(store);
        if store.late.is_empty() || self.inner.is_settling.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.inner.is_settling.store(false, Ordering::Relaxed);
            return;
        };
        let waiting = Waiting(Arc::downgrade(&self.inner));
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(LATE).await;
                let Some(inner) = waiting.0.upgrade() else { return };
                let mut store = inner.store.lock();
                gc::settle_late(&mut store);
                let revision = store.revision;
                // Offered again with the next write, as in `expire`.
                let _ = store.recording.flush(revision);
                if store.late.is_empty() {
                    // Under the lock, so that a write that adds late objects after this starts a new task.
                    drop(waiting);
                    return;
                }
            }
        });
    }
}

/// The task that runs the late part of garbage collection. Dropping it, for whatever reason, allows the next task to start.
struct Waiting(Weak<Inner>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.is_settling.store(false, Ordering::Relaxed);
        }
    }
}

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
