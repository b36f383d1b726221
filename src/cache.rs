//! Informers: local copies of the API server's objects, kept by list and watch.
//!
//! Guarantees:
//! - The [`Store`] of an [`Informer`] converges to the server's state, through disconnects, expired histories, silent
//!   connections and servers without streaming lists; while it runs, something is always under way to that end.
//! - What handlers are told, in order, folds to what the store holds. An object that vanished unseen is a deletion whose
//!   final state is unknown.
//! - An object that cannot be decoded harms no other object: it is left out, reported once per version, and the rest
//!   lives.
//! - Nothing here knows what a CronJob is; time is tokio's, chance comes from the seed, so tests and simulations repeat.
//!
//! The parts: `reflector` speaks the protocol, `transport` the HTTP, `error` decides how to go on after a failure,
//! `decode` reads pages and events, `pages` knows a list without end, `mirror` applies them to the `store` and calls the `handlers`.
//!
//! Matches client-go `tools/cache` (`Reflector`, `DeltaFIFO`, `SharedIndexInformer`), without resync and without a queue
//! between the reflector and the handlers.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Client;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

mod backoff;
mod decode;
mod error;
mod handlers;
mod items;
pub mod metrics;
mod pages;
mod reflector;
mod store;
mod store_updater;
mod transport;

pub use error::{Cause, Operation, ReflectorError, ServerStatus};
use handlers::Dispatcher;
pub use handlers::{MalformedObject, NoObserver, Observer, ResourceEventHandler};
use reflector::Reflector;
pub use store::{Delta, Store};
use store_updater::StoreUpdater;
use transport::Endpoint;

use crate::api::{Interner, Object, ResourceKind};
use crate::sharding::Shard;
use crate::task;

/// Says whether an object that was decoded is kept, and may change how it reads. What is not kept is, for the store and its
/// handlers, not there.
pub type Select<T> = Arc<dyn Fn(&mut T) -> bool + Send + Sync>;

/// Keeps a [`Store`] equal to the objects of one kind, in some namespaces or in all, and tells handlers of every change.
pub struct Informer<T> {
    client: Client,
    resource: ResourceKind,
    shard: Shard,
    select: Select<T>,
    store: Arc<Store<T>>,
    handlers: Vec<Arc<dyn ResourceEventHandler<T>>>,
    observer: Arc<dyn Observer>,
    seed: u64,
}

impl<T: Object> Informer<T> {
    /// An informer that does nothing until [`Self::run`]. No namespace means all of them; a namespace that is named
    /// twice is watched once. `seed` decides the jitter of waits and timeouts.
    pub fn new(client: Client, namespaces: &[String], seed: u64) -> Self {
        Self::of_shard(client, namespaces, Shard::WHOLE, seed)
    }

    /// The same for those namespaces that are in `shard`. The server is asked for no others; whether it knows how to
    /// leave them out or not, what it shows of them is passed over.
    pub fn of_shard(client: Client, namespaces: &[String], shard: Shard, seed: u64) -> Self {
        let scopes = if namespaces.is_empty() {
            vec![None]
        } else {
            let owned = namespaces.iter().filter(|namespace| shard.owns(namespace));
            let mut unique: Vec<Option<Arc<str>>> = owned.map(|namespace| Some(namespace.as_str().into())).collect();
            unique.sort_unstable();
            unique.dedup();
            unique
        };
        Self {
            client,
            resource: T::RESOURCE,
            shard,
            select: Arc::new(|_| true),
            store: Arc::new(Store::new(scopes)),
            handlers: Vec::new(),
            observer: Arc::new(NoObserver),
            seed,
        }
    }

    /// The same for objects that are read as `T` and live elsewhere.
    #[must_use]
    pub fn of_resource(self, resource: ResourceKind) -> Self {
        Self { resource, ..self }
    }

    /// The same for those objects only that `select` keeps: one that is no longer kept has gone, and one that is kept from
    /// now on has appeared.
    #[must_use]
    pub fn selecting(self, select: impl Fn(&mut T) -> bool + Send + Sync + 'static) -> Self {
        Self { select: Arc::new(select), ..self }
    }

    /// The store that this informer fills.
    pub fn store(&self) -> Arc<Store<T>> {
        Arc::clone(&self.store)
    }

    /// Adds a handler. Handlers are called in the order in which they were added.
    pub fn add_event_handler(&mut self, handler: Arc<dyn ResourceEventHandler<T>>) {
        self.handlers.push(handler);
    }

    /// Sets where failures and malformed objects are counted.
    pub fn set_observer(&mut self, observer: Arc<dyn Observer>) {
        self.observer = observer;
    }

    /// Lists and watches until `cancel`, one reflector per namespace.
    ///
    /// # Panics
    /// If a reflector panics. Handlers' panics do not get here.
    pub async fn run(self, cancel: CancellationToken) {
        let dispatcher =
            Arc::new(Dispatcher { resource: self.resource, handlers: self.handlers, observer: self.observer });
        let interner = Arc::new(Interner::default());
        let mut reflectors = JoinSet::new();
        for (scope, namespace) in self.store.scopes().enumerate() {
            // Of a namespace that is named, all is wanted.
            let selector = if namespace.is_none() { self.shard.selector() } else { None };
            let endpoint = Endpoint::new(self.client.clone(), self.resource.path(namespace.as_deref()), selector);
            let mirror = StoreUpdater {
                shard: self.shard,
                select: Arc::clone(&self.select),
                store: Arc::clone(&self.store),
                dispatcher: Arc::clone(&dispatcher),
                interner: Arc::clone(&interner),
                scope,
                namespace,
                malformed: HashMap::new(),
                listed: false,
            };
            let rng = StdRng::seed_from_u64(self.seed.wrapping_add(scope as u64));
            reflectors.spawn(task::owned(Reflector::new(endpoint, mirror, rng).run()));
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            Some(Err(ended)) = reflectors.join_next() => {
                // Better to die in plain sight than to go on with a store that stands still.
                if let Ok(panic) = ended.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
        reflectors.shutdown().await;
    }
}

#[cfg(test)]
mod tests;
