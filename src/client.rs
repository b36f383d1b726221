//! The connection to the API server.
//!
//! Guarantees: what the command line names is used and nothing else (no `~/.kube/config`, no `KUBECONFIG`, but for a person
//! at a terminal, who has them for kubectl); a request
//! is sent once, never repeated in here, so that retries happen in the workqueue where they are seen and counted; no
//! request waits for ever, watches excepted, which their reader must bound; a `Retry-After` of the server reaches the
//! caller ([`retry_after()`]), whatever the shape of the answer that carried it.
//!
//! Each request passes through these layers, from the outside in:
//!
//! 1. `observe` counts it and takes its time, waiting included, as client-go does;
//! 2. `rate_limit` holds it back (only with `--kube-api-qps`; watches pass);
//! 3. `retry_after` makes a `Retry-After` readable;
//! 4. `deadline` bounds it, and asks the gate of its [`RequestLimits`]; within the rate limit, so that a request is neither given
//!    up before it was sent nor sent when it may not be any more;
//! 5. `cert_reload` makes what is below anew when the files of a client certificate have changed;
//! 6. `connection` has the server's address, the credentials and the connection pool.
//!
//! kube speaks HTTP/1.1, so every request in flight has a connection. hyper's pool keeps as many idle ones as there
//! were, for 90 seconds: longer than a minute, so that the burst of one minute finds the connections of the last.

mod cert_reload;
mod connection;
mod deadline;
mod kubeconfig;
mod observe;
mod rate_limit;
mod retry_after;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::{InClusterError, KubeconfigError};
use tower::util::AndThenLayer;
use tower::{BoxError, Service};

use self::cert_reload::Rereading;
pub use self::deadline::{DeadlineError, REQUEST_DEADLINE, ReadInPieces};
pub use self::observe::{RequestObserver, Unobserved};
pub use self::retry_after::retry_after;
use crate::options::{Config, PROGRAM, RateLimit};

/// For how long this process surely still holds its lease, asked before each write; `None` while it may not write, and
/// [`Duration::MAX`] where there is no election.
pub type LeadershipCheck = Arc<dyn Fn() -> Option<Duration> + Send + Sync>;

/// What is asked of one request, as one of its extensions. It counts from the moment at which the request's turn has come:
/// a wait for `--kube-api-qps` is no part of it.
#[derive(Clone)]
pub struct RequestLimits {
    /// Whether the request may still be sent; `None` for reads, which always may.
    pub gate: Option<LeadershipCheck>,
    /// How long it may take until the last byte of its answer.
    pub limit: Limit,
}

/// How long a request with [`RequestLimits`] may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The client waits for so long.
    Client(Duration),
    /// The server is told to end it within the rest of the lease ([`LONGEST_WRITE`] at most), as `?timeout=`; the client
    /// waits for [`SERVER_MARGIN`] longer. So it is committed while the lease is held, or not at all.
    Lease,
    /// The same with the longest time that the server allows, whatever is left of the lease.
    Longest,
}

/// After this time kube-apiserver cuts a create, patch or delete, whatever is asked for (`requestTimeoutUpperBound` in
/// k8s.io/apiserver's endpoints/handlers/rest.go).
pub const LONGEST_WRITE: Duration = Duration::from_secs(34);

/// How much longer than the server a client waits. Its answer travels, and the server's own clock started at receipt; when
/// this has passed, too, the connection is dead, and the request is not committed any more.
pub const SERVER_MARGIN: Duration = Duration::from_secs(5);

/// Requests that may queue between two layers; as many as kube's client lets queue in front of them.
const BUFFER: usize = 1024;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig file does not exist, does not parse, or has no usable current context.
    #[error("--{flag}: the file {} cannot be used: {}", .file.display(), kubeconfig::cause(.cause))]
    Kubeconfig {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        cause: Box<KubeconfigError>,
    },
    /// Neither `KUBECONFIG` nor the default file can be used.
    #[error("kubectl's configuration ($KUBECONFIG, else ~/.kube/config) cannot be used: {cause}")]
    Kubectl {
        /// What is wrong with it.
        cause: Box<KubeconfigError>,
    },
    /// `--master` is no URL.
    #[error("--master: {master} is not a URL: {cause}")]
    Master {
        /// The flag's value.
        master: String,
        /// What is wrong with it.
        cause: http::uri::InvalidUri,
    },
    /// Neither flag was given and the process does not run in a Pod with a service account.
    #[error("neither --kubeconfig nor --master is given, and there is no in-cluster configuration: {cause}")]
    InCluster {
        /// What the Pod lacks.
        cause: InClusterError,
    },
    /// The kubeconfig file names a proxy.
    #[error("making a client for {server}: the proxy-url {proxy} is set, and proxies are not supported")]
    Proxy {
        /// The server's address.
        server: String,
        /// The proxy's.
        proxy: http::Uri,
    },
    /// The configuration was read, but a certificate, a key or a credential plugin in it cannot be used.
    #[error("making a client for {server}: {cause}")]
    Build {
        /// The server's address.
        server: String,
        /// What cannot be used.
        cause: Box<kube::Error>,
    },
}

/// Makes the client for the controller's own work: rate limited if the command line says so, observed by `observer`.
/// No request is sent yet. Must run inside a tokio runtime; reads files without yielding, so call it at the start.
///
/// The order of sources is that of client-go's `BuildConfigFromFlags`, without its last resort (the default files).
///
/// # Errors
/// See [`ConnectError`]; each is one sentence that names the flag or the file.
pub async fn connect(config: &Config, observer: Option<Arc<dyn RequestObserver>>) -> Result<Client, ConnectError> {
    build(kubeconfig::kube_config(config, PROGRAM).await?, config.kube_api, observer)
}

/// Makes the client for leader election: never rate limited and with connections of its own, so that a burst of the
/// controller's requests cannot delay the renewal of the lease until it is lost. Upstream gives leader election a
/// client of its own for the same reason (`cmd/kube-controller-manager/app`, `createResourceLock`).
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect_for_leader_election(
    config: &Config,
    observer: Option<Arc<dyn RequestObserver>>,
) -> Result<Client, ConnectError> {
    build(kubeconfig::kube_config(config, "leader-election").await?, None, observer)
}

/// Makes a client for the questions that the secure port has: never rate limited and with connections of its own, so that
/// neither a burst of the controller's requests nor one of scrapes delays the other. Upstream does so, too
/// (k8s.io/apiserver, `DelegatingAuthenticationOptions.getClient`). `kubeconfig` is a flag and the file that it names;
/// without it the connection is that of [`connect`].
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect_for_reviews(
    config: &Config,
    kubeconfig: Option<(&'static str, &Path)>,
    observer: Option<Arc<dyn RequestObserver>>,
) -> Result<Client, ConnectError> {
    const COMPONENT: &str = "secure-serving";
    let kube = match kubeconfig {
        Some((flag, file)) => kubeconfig::named(flag, file, None, COMPONENT).await?,
        None => kubeconfig::kube_config(config, COMPONENT).await?,
    };
    build(kube, None, observer)
}

/// Makes a client for a person, from the kubeconfig file and the context that are named, else as kubectl does; also gives the
/// context's namespace. For no more than some reads.
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect_for_person(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<(Client, String), ConnectError> {
    let kube = kubeconfig::of_person(kubeconfig, context).await?;
    let namespace = kube.default_namespace.clone();
    Ok((build(kube, None, None)?, namespace))
}

/// The client on a service that needs no connection, in the same layers as [`connect`]'s. Must be called inside a tokio
/// runtime.
pub fn on_service<S, B>(service: S) -> Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = <Body as http_body::Body>::Data> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    assemble(ClientBuilder::new(service, "default"), "", None, Arc::new(Unobserved))
}

fn build(
    kube: kube::Config,
    limit: Option<RateLimit>,
    observer: Option<Arc<dyn RequestObserver>>,
) -> Result<Client, ConnectError> {
    // Both of the process's TLS users want the same provider; whoever comes second finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = kube.cluster_url.to_string();
    let host = kubeconfig::host_label(&kube);
    if let Some(proxy) = kube.proxy_url {
        return Err(ConnectError::Proxy { server, proxy });
    }
    let (namespace, files) = (kube.default_namespace.clone(), cert_reload::files(&kube));
    let service = Rereading::new(files, move || connection::service(&kube));
    let service = service.map_err(|cause| ConnectError::Build { server, cause: Box::new(cause) })?;
    let builder = ClientBuilder::new(service, namespace);
    Ok(assemble(builder, &host, limit, observer.unwrap_or_else(|| Arc::new(Unobserved))))
}

/// Puts this crate's layers around the service that reaches the server.
fn assemble<S, B>(
    builder: ClientBuilder<S>,
    host: &str,
    limit: Option<RateLimit>,
    observer: Arc<dyn RequestObserver>,
) -> Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = <Body as http_body::Body>::Data> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let bounded = builder.with_layer(&deadline::layer()).with_layer(&AndThenLayer::new(retry_after::surface));
    match limit {
        None => bounded.with_layer(&observe::layer(host, observer)).build(),
        Some(limit) => {
            // A request that waits needs the service later than the call that brought it: the buffer is what makes
            // the service below it cheap to clone.
            let buffered = bounded.with_layer(&tower::buffer::BufferLayer::new(BUFFER));
            let limited = buffered.with_layer(&rate_limit::layer(limit, host, Arc::clone(&observer)));
            limited.with_layer(&observe::layer(host, observer)).build()
        }
    }
}

/// Whether this request opens a watch, which stays open for minutes by design.
fn is_watch<T>(request: &Request<T>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1")
}
