//! An in-memory Kubernetes API server.
pub mod discovery;
pub mod kinds;
pub mod meta;
mod openapi;
pub mod registry;
pub mod status;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::registry::{Column, FieldError, FieldErrorKind, NameRule, Resource, Strategy};
use crate::clock::SharedClock;

/// The body of an answer: whole, or a stream of watch events.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Answers the discovery documents: path, `Accept` header and the served resources to content type and document.
pub type Discovery = fn(path: &str, accept: &str, resources: &[Resource]) -> Option<(String, Value)>;

/// What a pod's container has logged: namespace, pod, container (empty for the first).
pub type LogSource = Arc<dyn Fn(&str, &str, &str) -> Option<String> + Send + Sync>;

/// How a server is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// Wall time, for timestamps.
    pub clock: SharedClock,
    /// The kinds that are served from the start.
    pub resources: Vec<Resource>,
    /// Answers /api, /apis, /version and /openapi; without it they are not found.
    pub discovery: Option<Discovery>,
    /// From which uids and generated name suffixes follow.
    pub seed: u64,
    /// Watch events kept per resource; older watches get 410.
    pub history: usize,
    /// Whether dependents of deleted owners and the contents of deleted namespaces go. kube-apiserver alone does not
    /// do this (kube-controller-manager does).
    pub garbage_collection: bool,
}

impl Config {
    /// A server of `resources` with a seed of 0, 10 000 events of history, garbage collection, and no discovery.
    pub fn new(clock: SharedClock, resources: Vec<Resource>) -> Self {
        Self { clock, resources, discovery: None, seed: 0, history: 10_000, garbage_collection: true }
    }
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
    logs: Mutex<Option<LogSource>>,
}

impl ApiServer {
    /// A server with the namespaces that every cluster has and nothing else.
    pub fn new(config: Config) -> Self {
        Self { inner: Arc::new(Inner { config, logs: Mutex::new(None) }) }
    }

    /// A client that calls the server without sockets. Must be called inside a tokio runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.into_service(), "default")
    }

    /// Answers one request.
    #[allow(clippy::unused_async)]
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Body> {
        let _ = (request, &self.inner.config);
        let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        response
    }

    /// The server as a tower service, for any body.
    #[allow(clippy::wrong_self_convention)]
    pub fn into_service(&self) -> ApiService {
        ApiService { server: self.clone() }
    }

    /// Serves plain HTTP/1.1 until `cancel` fires.
    #[allow(clippy::unused_async)]
    pub async fn serve(self, listener: TcpListener, cancel: CancellationToken) {
        let _ = (listener, cancel);
    }

    /// Serves one more kind from now on.
    pub fn register(&self, resource: Resource) {
        let _ = (resource, self);
    }

    /// Forgets the watch history: watches and continue tokens from before get 410.
    pub fn compact(&self) {
        let _ = self;
    }

    /// The whole state, for [`ApiServer::restore`].
    pub fn snapshot(&self) -> Value {
        let _ = self;
        Value::Null
    }

    /// Replaces the whole state. Open watches end.
    ///
    /// # Errors
    /// When the snapshot is not one that [`ApiServer::snapshot`] gave; the state is then untouched.
    pub fn restore(&self, snapshot: Value) -> Result<(), RestoreError> {
        let _ = (snapshot, self);
        Ok(())
    }

    /// Where `pods/log` is read from.
    pub fn set_log_source(&self, source: LogSource) {
        *self.inner.logs.lock() = Some(source);
    }
}

/// The server as a tower service.
#[derive(Clone)]
pub struct ApiService {
    server: ApiServer,
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
            Ok(server.handle(Request::from_parts(parts, bytes)).await)
        })
    }
}
