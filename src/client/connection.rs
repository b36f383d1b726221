//! The connections to the API server, and the headers of every request on them.
//!
//! Guarantee: a request is sent as soon as it is written. On a new connection the first request follows the end of the
//! TLS handshake, which the server has not acknowledged yet. Without `TCP_NODELAY` the kernel would hold the request
//! back until the acknowledgement, which a server delays by 40 ms. A CronJob that is due alone usually needs a new
//! connection.
//!
//! A failure names the server, its cause, and what to check, without the layers of the libraries below.
//!
//! The service equals what kube builds from its configuration (kube-client, `client/builder.rs`,
//! `make_generic_builder`). kube gives no access to a socket's options, and adds proxies, compression and retries that
//! are not wanted here. Go sets the option on every connection (net, `newTCPConn`).

use std::error::Error;
use std::time::Duration;

use apimachinery::causes::with_causes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

use super::DeadlineError;
use super::punctual::{Punctual, in_time, punctual};

/// The service that sends requests to the server of `kube`, with its credentials and headers. Must be called inside a
/// tokio runtime; it sends nothing yet.
pub(super) fn service(
    kube: &kube::Config,
) -> Result<
    impl Service<Request<Body>, Response = Response<Incoming>, Error = BoxError, Future: Send> + Send + use<>,
    kube::Error,
> {
    let server = kube.cluster_url.to_string();
    let mut connector = TimeoutConnector::new(kube.rustls_https_connector_with_connector(tcp())?);
    connector.set_connect_timeout(kube.connect_timeout);
    connector.set_read_timeout(kube.read_timeout);
    connector.set_write_timeout(kube.write_timeout);
    Ok(ServiceBuilder::new()
        .layer(kube.base_uri_layer())
        .option_layer(kube.auth_layer()?)
        .layer(kube.extra_headers_layer()?)
        .map_err(BoxError::from)
        .filter(in_time)
        .map_request(punctual)
        .service(
            Client::builder(TokioExecutor::new())
                .build::<_, Punctual>(connector)
                .map_err(move |error| unanswered(&server, &error)),
        ))
}

/// Why there is no answer from the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// No connection.
    #[error("no connection to the API server {server}: {cause}{}", advice(.cause))]
    Connect {
        /// The server's URL.
        server: String,
        /// The cause.
        cause: String,
    },
    /// The connection ended before the answer.
    #[error("the connection to the API server {server} failed: {cause}")]
    Request {
        /// The server's URL.
        server: String,
        /// The cause.
        cause: String,
    },
}

/// Why there is no answer. A body that was late is no failure of the connection: it was not sent.
fn unanswered(server: &str, error: &legacy::Error) -> BoxError {
    DeadlineError::of(error).map_or_else(|| ConnectionError::new(server, error).into(), Into::into)
}

impl ConnectionError {
    fn new(server: &str, error: &legacy::Error) -> Self {
        let server = server.trim_end_matches('/').to_owned();
        let cause = error.source().map_or_else(|| error.to_string(), with_causes);
        let cause = cause.strip_prefix("tcp connect error: ").unwrap_or(&cause).to_owned();
        if error.is_connect() { Self::Connect { server, cause } } else { Self::Request { server, cause } }
    }
}

/// What to check, by the cause in the words of the system and of the TLS library.
fn advice(cause: &str) -> &'static str {
    const ADVICE: [(&str, &str); 7] = [
        ("refused", "; check that the server runs and that its address is right"),
        ("dns error", "; check the name of the host"),
        ("UnknownIssuer", "; check the certificate authority of the cluster in the kubeconfig"),
        // Another authority of the same name: that of each kubeadm cluster is called kubernetes.
        ("BadSignature", "; check the certificate authority of the cluster in the kubeconfig"),
        ("not valid for name", "; check the address, which is not in the server's certificate"),
        ("elapsed", "; check the network between this machine and the server"),
        ("unreachable", "; check the network between this machine and the server"),
    ];
    ADVICE.iter().find(|(word, _)| cause.contains(word)).map_or("", |(_, advice)| advice)
}

/// A connection on which nothing came for so long is probed. On Linux, where [`LONGEST_IN_SOCKET`](super::LONGEST_IN_SOCKET) limits
/// the answer, too, it ends with the first probe that is not answered: after 20 s in all. Elsewhere after the last, 30 s.
const IDLE: Duration = Duration::from_secs(15);

/// The time between two probes.
const PROBE: Duration = Duration::from_secs(5);

/// How many are sent without an answer.
const PROBES: u32 = 3;

/// Opens TCP connections, for any protocol on them.
pub(super) fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    // Without this limit, a request on a dead connection waits for its whole time, half a minute and more. The system counts from
    // the first time that it sends a byte again, which may be a second after it sent it.
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(super::LONGEST_IN_SOCKET / 2));
    // A watch sends nothing, so it would not notice for minutes that its server is gone. client-go finds out by HTTP/2 pings, in 45 s.
    connector.set_keepalive(Some(IDLE));
    connector.set_keepalive_interval(Some(PROBE));
    connector.set_keepalive_retries(Some(PROBES));
    connector
}
