//! The client of the API server.
//!
//! Guarantees: the controller uses only the configuration that the command line names, without `~/.kube/config` and
//! `KUBECONFIG`. Commands for a user at a terminal read those as kubectl does. A request is sent once and never
//! repeated in this module, so that retries happen in the workqueue, where they are logged and counted. Every request
//! is bounded in time, except watches and logs that are followed, which their reader must bound. A server's `Retry-After` reaches the caller
//! ([`retry_after()`]), whatever the form of the answer that carried it.
//!
//! Each request passes through these layers, from the outside in:
//!
//! 1. `observe` counts and times it, waits included, as client-go does;
//! 2. `rate_limit` delays it (only with `--kube-api-qps`; watches pass);
//! 3. `retry_after` makes a `Retry-After` readable;
//! 4. `deadline` bounds it and checks the gate of its [`RequestLimits`]. It is inside the rate limit, so that a request
//!    is neither abandoned before it was sent nor sent after its gate has closed;
//! 5. `cert_reload` rebuilds the layers below it when the files of a client certificate have changed;
//! 6. `connection` has the server's address, the credentials and the connection pool.
//!
//! kube speaks HTTP/1.1, so every request in flight has a connection. hyper's pool keeps all idle connections for 90
//! seconds. That is longer than a minute, so that the burst of one minute finds the connections of the previous one.

mod cert_reload;
mod connection;
mod deadline;
mod kubeconfig;
mod observe;
mod punctual;
mod rate_limit;
mod read_only;
mod retry_after;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::{InClusterError, KubeconfigError};
use tower::util::AndThenLayer;
use tower::{BoxError, Service};
use tracing::info;

use self::cert_reload::Rereading;
pub(crate) use self::connection::ConnectionError;
pub use self::deadline::{DeadlineError, REQUEST_DEADLINE, ReadInPieces};
pub use self::observe::{RequestObserver, Unobserved};
pub use self::read_only::{ReadOnlyError, read_only};
pub use self::retry_after::retry_after;
use crate::leader_election::Gate;
use crate::options::{Config, PROGRAM, RateLimit};

/// The limits of one request, as one of its extensions. They count from the moment at which the request leaves the rate
/// limiter: a wait for `--kube-api-qps` is not included.
#[derive(Clone)]
pub struct RequestLimits {
    /// Whether the request may still be sent; `None` for reads, which always may.
    pub gate: Option<Arc<Gate>>,
    /// How long it may take until the last byte of its answer.
    pub limit: TimeLimit,
}

/// How long a request with [`RequestLimits`] may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// The client waits this long.
    Client(Duration),
    /// The server ends the request within the time for a usual create ([`LONGEST_WRITE`] at most), as `?timeout=` tells it. It counts
    /// from receipt, so that the time until then is taken off.
    /// The client waits [`SERVER_MARGIN`] longer. So the write is committed until then, or not at all.
    Lease,
    /// The same within what the lease says of open creates.
    Announced,
    /// The longest time that the server allows, whatever the lease says.
    Longest,
}

/// The usual time limit of a request: enough for a working server, and short enough to notice one that hangs.
pub const USUAL_REQUEST: Duration = Duration::from_secs(10);

/// The time after which kube-apiserver ends a create, patch or delete, whatever the client asked for
/// (`requestTimeoutUpperBound` in k8s.io/apiserver's endpoints/handlers/rest.go).
pub const LONGEST_WRITE: Duration = Duration::from_secs(34);

/// How much longer than the server a client waits: the answer needs time to travel, and the server's clock starts at
/// receipt. After this time the connection is dead, and the request will not be committed any more.
pub const SERVER_MARGIN: Duration = Duration::from_secs(5);

/// How long a request may lie in a socket before the server receives it: the server's system leaves no sent byte unacknowledged for
/// longer, or the connection counts as dead. A slow answer does not count.
pub const LONGEST_IN_SOCKET: Duration = Duration::from_secs(2);

/// How long a request may wait for credentials and a connection before its body is on its way. A later one is not sent.
pub const LONGEST_UNSENT: Duration = Duration::from_secs(2);

/// Requests that may queue between two layers; the same number as in kube's client in front of them.
const BUFFER: usize = 1024;

/// Why the client could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig file does not exist, does not parse, or has no usable current context.
    #[error("--{flag}: the file {} cannot be used: {}", .file.display(), kubeconfig::cause(.cause))]
    Kubeconfig {
        /// The flag that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// The cause.
        cause: Box<KubeconfigError>,
    },
    /// Neither `KUBECONFIG` nor the default file can be used.
    #[error("kubectl's configuration ($KUBECONFIG, else ~/.kube/config) cannot be used: {cause}")]
    Kubectl {
        /// The cause.
        cause: Box<KubeconfigError>,
    },
    /// `--master` is not a URL.
    #[error("--master: {master} is not a URL: {cause}")]
    Master {
        /// The flag's value.
        master: String,
        /// The cause.
        cause: http::uri::InvalidUri,
    },
    /// Neither flag was given and the process does not run in a Pod with a service account.
    #[error("neither --kubeconfig nor --master is given, and there is no in-cluster configuration: {cause}")]
    InCluster {
        /// The missing part of the Pod's configuration.
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
        /// The part that cannot be used, and why.
        cause: Box<kube::Error>,
    },
}

/// Creates the client for the controller's own work, rate limited if the command line says so, and observed by
/// `observer`. It sends no request yet. Must run inside a tokio runtime. It reads files without yielding, so call it at
/// startup.
///
/// The order of sources is that of client-go's `BuildConfigFromFlags`, without its last resort (the default files).
///
/// # Errors
/// See [`ConnectError`]; each message names the flag or the file.
pub async fn connect(config: &Config, observer: Option<Arc<dyn RequestObserver>>) -> Result<Client, ConnectError> {
    let kube = kubeconfig::kube_config(config, PROGRAM).await?;
    let identity = kubeconfig::identity(config, &kube);
    info!(server = %kube.cluster_url, identity, "requests go to this API server, under this identity");
    build(kube, config.kube_api, observer)
}

/// Creates the client for leader election. It has no rate limit and connections of its own, so that a burst of the
/// controller's requests cannot delay the renewal of the lease until it is lost. Upstream uses a separate client for
/// the same reason (`cmd/kube-controller-manager/app`, `createResourceLock`).
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect_for_leader_election(
    config: &Config,
    observer: Option<Arc<dyn RequestObserver>>,
) -> Result<Client, ConnectError> {
    build(kubeconfig::kube_config(config, "leader-election").await?, None, observer)
}

/// Creates a client for the secure port's token and access reviews. It has no rate limit and connections of its own, so
/// that a burst of the controller's requests and one of scrapes do not delay each other. Upstream does so, too
/// (k8s.io/apiserver, `DelegatingAuthenticationOptions.getClient`). `kubeconfig` is a flag and the file that it names;
/// without it the configuration is that of [`connect`].
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

/// Creates a client for a user at a terminal, from the given kubeconfig file and context, else as kubectl does. Also
/// returns the context's namespace. Meant for a few reads.
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

/// As [`connect_for_person`], but the client refuses every request that is no read before it is sent.
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect_to_read(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<(Client, String), ConnectError> {
    let kube = kubeconfig::of_person(kubeconfig, context).await?;
    let (host, namespace) = (kubeconfig::host_label(&kube), kube.default_namespace.clone());
    let builder = ClientBuilder::new(read_only(reach(kube)?), namespace.clone());
    Ok((assemble(builder, &host, None, Arc::new(Unobserved)), namespace))
}

/// The client on a service without a connection, in the same layers as [`connect`]'s. Must be called inside a tokio
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
    let (host, namespace) = (kubeconfig::host_label(&kube), kube.default_namespace.clone());
    let builder = ClientBuilder::new(reach(kube)?, namespace);
    Ok(assemble(builder, &host, limit, observer.unwrap_or_else(|| Arc::new(Unobserved))))
}

/// The service that reaches the server of `kube`.
fn reach(
    kube: kube::Config,
) -> Result<
    impl Service<Request<Body>, Response = Response<Incoming>, Error = BoxError, Future: Send> + Send + 'static,
    ConnectError,
> {
    // Both TLS users of the process want the same provider; the second installation changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = kube.cluster_url.to_string();
    if let Some(proxy) = kube.proxy_url {
        return Err(ConnectError::Proxy { server, proxy });
    }
    let files = cert_reload::files(&kube);
    let service = Rereading::new(files, move || connection::service(&kube));
    service.map_err(|cause| ConnectError::Build { server, cause: Box::new(cause) })
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
            // A waiting request needs the service for longer than its `call`: the buffer makes the service below it
            // cheap to clone.
            let buffered = bounded.with_layer(&tower::buffer::BufferLayer::new(BUFFER));
            let limited = buffered.with_layer(&rate_limit::layer(limit, host, Arc::clone(&observer)));
            limited.with_layer(&observe::layer(host, observer)).build()
        }
    }
}

/// Whether this request opens a watch or follows a log, and so stays open for minutes by design.
fn stays_open<T>(request: &Request<T>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "follow=true"))
}
