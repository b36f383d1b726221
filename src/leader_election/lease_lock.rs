//! The port to the Lease object, and its implementation on kube's client.
//!
//! Guarantees: a write carries the resourceVersion of the lease it was decided on, or it is a create. So two candidates can
//! never both succeed on the same observation. A lease that does not exist is not an error.

use std::error::Error;

use apimachinery::causes::with_causes;
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _, once};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};

/// Why a call on the lease failed.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The call was answered with an error, or could not be sent.
    #[error("{operation} lease {lease}: {}", with_causes(&**source))]
    Call {
        /// `get`, `create` or `update`.
        operation: &'static str,
        /// `namespace/name`.
        lease: String,
        /// The client's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No answer came in time; whether a write took effect is unknown.
    #[error("{operation} lease {lease}: no answer within {seconds:.1} s")]
    Timeout {
        /// `get`, `create` or `update`.
        operation: &'static str,
        /// `namespace/name`.
        lease: String,
        /// How long the caller waited.
        seconds: f64,
    },
}

/// Reads and writes one lease. Matches the storage half of `Interface` in client-go's
/// tools/leaderelection/resourcelock/interface.go.
pub trait LeaseLock: Send + Sync + 'static {
    /// The lease as it is now; `None` if it does not exist.
    fn get(&self) -> impl Future<Output = Result<Option<Lease>, LockError>> + Send;

    /// Creates the lease; fails if it exists.
    fn create(&self, lease: &Lease) -> impl Future<Output = Result<Lease, LockError>> + Send;

    /// Replaces the lease; fails if its resourceVersion is no longer the current one.
    fn update(&self, lease: &Lease) -> impl Future<Output = Result<Lease, LockError>> + Send;

    /// The versions of the lease after `version`, as they come. It may be late or silent, and ends for any reason.
    fn changes(&self, version: &str) -> BoxStream<'static, Lease>;
}

/// A lease on a real API server. Matches `LeaseLock` in client-go's tools/leaderelection/resourcelock/leaselock.go.
///
/// The client should not retry by itself (`Config::default_retry = false`): the elector schedules its own attempts.
#[derive(Clone)]
pub struct KubeLeaseLock {
    api: Api<Lease>,
    namespace: String,
    name: String,
}

impl KubeLeaseLock {
    /// The lease `namespace/name`.
    pub fn new(client: kube::Client, namespace: &str, name: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn error(&self, operation: &'static str, source: kube::Error) -> LockError {
        LockError::Call { operation, lease: format!("{}/{}", self.namespace, self.name), source: Box::new(source) }
    }
}

impl LeaseLock for KubeLeaseLock {
    async fn get(&self) -> Result<Option<Lease>, LockError> {
        self.api.get_opt(&self.name).await.map_err(|e| self.error("get", e))
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, LockError> {
        self.api.create(&PostParams::default(), lease).await.map_err(|e| self.error("create", e))
    }

    async fn update(&self, lease: &Lease) -> Result<Lease, LockError> {
        self.api.replace(&self.name, &PostParams::default(), lease).await.map_err(|e| self.error("update", e))
    }

    fn changes(&self, version: &str) -> BoxStream<'static, Lease> {
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let (api, version) = (self.api.clone(), version.to_owned());
        let events = once(async move { api.watch(&params, &version).await }).try_flatten();
        let lease = |event| match event {
            Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) => Some(Some(lease)),
            Ok(WatchEvent::Bookmark(_)) => Some(None),
            Ok(WatchEvent::Deleted(_) | WatchEvent::Error(_)) | Err(_) => None,
        };
        events.scan((), move |(), event| ready(lease(event))).filter_map(ready).boxed()
    }
}

#[cfg(test)]
mod tests;
