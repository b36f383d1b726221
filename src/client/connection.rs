//! The connections to the API server, and the headers of every request on them.
//!
//! Guarantee: a request is sent as soon as it is written. On a new connection the first request follows the end of the
//! TLS handshake, which the server has not acknowledged yet. Without `TCP_NODELAY` the kernel would hold the request
//! back until the acknowledgement, which a server delays by 40 ms. A CronJob that is due alone usually needs a new
//! connection.
//!
//! The service equals what kube builds from its configuration (kube-client, `client/builder.rs`,
//! `make_generic_builder`). kube gives no access to a socket's options, and adds proxies, compression and retries that
//! are not wanted here. Go sets the option on every connection (net, `newTCPConn`).

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use tower::{BoxError, Service, ServiceBuilder};

/// How long the server's system may leave a sent byte unacknowledged before the connection counts as dead. A slow
/// answer does not count. Without this limit, a request on a dead connection waits for its whole time, half a minute
/// and more.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: std::time::Duration = std::time::Duration::from_secs(10);

/// The service that sends requests to the server of `kube`, with its credentials and headers. Must be called inside a
/// tokio runtime; it sends nothing yet.
pub(super) fn service(
    kube: &kube::Config,
) -> Result<
    impl Service<Request<Body>, Response = Response<Incoming>, Error = BoxError, Future: Send> + Send + use<>,
    kube::Error,
> {
    let mut connector = TimeoutConnector::new(kube.rustls_https_connector_with_connector(tcp())?);
    connector.set_connect_timeout(kube.connect_timeout);
    connector.set_read_timeout(kube.read_timeout);
    connector.set_write_timeout(kube.write_timeout);
    Ok(ServiceBuilder::new()
        .layer(kube.base_uri_layer())
        .option_layer(kube.auth_layer()?)
        .layer(kube.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Client::builder(TokioExecutor::new()).build(connector)))
}

/// Opens TCP connections, for any protocol on them.
pub(super) fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    connector
}
