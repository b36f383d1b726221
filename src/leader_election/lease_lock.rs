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
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use http::{Request, Response, StatusCode};
    use http_body_util::BodyExt;
    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;

    type Seen = Arc<Mutex<Vec<(String, Value)>>>;

    /// A lock whose API server gives the same answer to every request and records it.
    fn lock(status: StatusCode, answer: Value) -> (KubeLeaseLock, Seen) {
        let seen = Seen::default();
        let notes = seen.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (notes, answer) = (notes.clone(), answer.clone());
            async move {
                let line = format!("{} {}", request.method(), request.uri().path());
                let body = request.into_body().collect().await.unwrap().to_bytes();
                notes.lock().push((line, serde_json::from_slice(&body).unwrap_or(Value::Null)));
                let response = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, std::convert::Infallible>(response.unwrap())
            }
        });
        (KubeLeaseLock::new(kube::Client::new(service, "default"), "kube-system", "cronjob-controller"), seen)
    }

    fn lease() -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "cronjob-controller", "resourceVersion": "7", "labels": {"keep": "me"}},
            "spec": {"holderIdentity": "me"},
        })
    }

    #[tokio::test]
    async fn an_update_is_a_put_with_the_resource_version_it_was_given() {
        let (lock, seen) = lock(StatusCode::OK, lease());
        lock.update(&serde_json::from_value(lease()).unwrap()).await.unwrap();
        let (line, body) = seen.lock().remove(0);
        assert_eq!(line, "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cronjob-controller");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["metadata"]["labels"]["keep"], "me");
    }

    #[tokio::test]
    async fn a_create_is_a_post_to_the_namespace() {
        let (lock, seen) = lock(StatusCode::CREATED, lease());
        lock.create(&serde_json::from_value(lease()).unwrap()).await.unwrap();
        assert_eq!(seen.lock()[0].0, "POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
    }

    fn status(code: u16, reason: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
            "message": format!("leases {reason}"), "metadata": {},
        })
    }

    #[tokio::test]
    async fn a_missing_lease_is_an_answer_and_not_an_error() {
        let (lock, _) = lock(StatusCode::NOT_FOUND, status(404, "NotFound"));
        assert!(lock.get().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_error_names_the_operation_and_the_lease() {
        let (lock, _) = lock(StatusCode::CONFLICT, status(409, "Conflict"));
        let error = lock.update(&serde_json::from_value(lease()).unwrap()).await.unwrap_err().to_string();
        assert!(error.starts_with("update lease kube-system/cronjob-controller: "), "{error}");
        assert!(error.contains("Conflict"), "{error}");
    }
}
