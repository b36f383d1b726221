//! Informers: local copies of the API server's objects, kept by list and watch.
//!
//! Guarantees:
//! - The [`Store`] of an [`Informer`] converges to the server's state, through disconnects, expired histories, silent
//!   connections and servers without streaming lists. While the informer runs, a request or a timer always works to that end.
//! - The deltas that handlers receive, in order, add up to the store's contents. An object whose deletion was missed is
//!   reported as a deletion whose final state is unknown.
//! - An object that cannot be decoded does not affect other objects: it is left out and reported once per version.
//! - Nothing here depends on CronJobs. Time is tokio's and randomness comes from the seed, so tests and simulations repeat.
//!
//! The parts: `reflector` speaks the protocol, `transport` the HTTP, and `error` decides how to recover from a failure.
//! `decode` reads pages and events, and `pages` detects endless lists. `store_updater` applies changes to the `store` and
//! calls the `handlers`.
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
mod counter;
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
pub(crate) use pages::{PAGE_SIZE, page_size};
use reflector::Reflector;
pub use store::{Asked, Delta, Store};
use store_updater::StoreUpdater;
use transport::Endpoint;

use crate::api::{Interner, Object, ResourceKind};
use crate::sim;

/// Decides whether a decoded object is kept, and may modify it. For the store and its handlers, an object that is not kept
/// does not exist.
pub type Select<T> = Arc<dyn Fn(&mut T) -> bool + Send + Sync>;

/// Keeps a [`Store`] equal to the objects of one kind, in some namespaces or in all, and calls handlers for every change.
pub struct Informer<T> {
    client: Client,
    resource: ResourceKind,
    select: Select<T>,
    store: Arc<Store<T>>,
    handlers: Vec<Arc<dyn ResourceEventHandler<T>>>,
    observer: Arc<dyn Observer>,
    seed: u64,
}

impl<T: Object> Informer<T> {
    /// An informer that does nothing until [`Self::run`]. An empty list means all namespaces; a duplicate is watched once.
    /// `seed` decides the jitter of waits and timeouts.
    pub fn new(client: Client, namespaces: &[String], seed: u64) -> Self {
        let scopes = if namespaces.is_empty() {
            vec![None]
        } else {
            let mut unique: Vec<Option<Arc<str>>> =
                namespaces.iter().map(|namespace| Some(namespace.as_str().into())).collect();
            unique.sort_unstable();
            unique.dedup();
            unique
        };
        Self {
            client,
            resource: T::RESOURCE,
            select: Arc::new(|_| true),
            store: Arc::new(Store::new(scopes)),
            handlers: Vec::new(),
            observer: Arc::new(NoObserver),
            seed,
        }
    }

    /// Reads objects of another resource as `T`.
    #[must_use]
    pub fn of_resource(self, resource: ResourceKind) -> Self {
        Self { resource, ..self }
    }

    /// Keeps only objects for which `select` returns true. An object that is no longer kept counts as deleted, and one that
    /// is kept from now on counts as added.
    #[must_use]
    pub fn selecting(self, select: impl Fn(&mut T) -> bool + Send + Sync + 'static) -> Self {
        Self { select: Arc::new(select), ..self }
    }

    /// The store that this informer keeps.
    pub fn store(&self) -> Arc<Store<T>> {
        Arc::clone(&self.store)
    }

    /// Adds a handler. Handlers are called in the order in which they were added.
    pub fn add_event_handler(&mut self, handler: Arc<dyn ResourceEventHandler<T>>) {
        self.handlers.push(handler);
    }

    /// Sets the observer that counts failures and malformed objects.
    pub fn set_observer(&mut self, observer: Arc<dyn Observer>) {
        self.observer = observer;
    }

    /// Lists and watches until `cancel`, one reflector per namespace.
    ///
    /// # Panics
    /// If a reflector panics. Panics of handlers are caught.
    pub async fn run(self, cancel: CancellationToken) {
        let dispatcher =
            Arc::new(Dispatcher { resource: self.resource, handlers: self.handlers, observer: self.observer });
        let interner = Arc::new(Interner::default());
        let mut reflectors = JoinSet::new();
        for (scope, namespace) in self.store.scopes().enumerate() {
            let endpoint = Endpoint::new(self.client.clone(), self.resource.path(namespace.as_deref()));
            let mirror = StoreUpdater {
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
            reflectors.spawn(sim::bind(Reflector::new(endpoint, mirror, rng).run()));
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            Some(Err(ended)) = reflectors.join_next() => {
                // Panicking is better than going on with a store that no longer changes.
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
