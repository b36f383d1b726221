//! The serving endpoints: health, metrics, configuration and version, over HTTP and HTTPS.
//!
//! Guarantees: an address that cannot be had is known before anything else starts ([`bind`]). No client can hold the
//! server: handshakes, headers, idleness and whole connections have time limits, headers a size, and the number of
//! connections is bounded; where there are too many, the idle make room (`connections`), and who has not sent its request
//! yet is idle (`upload`). On the secure port nothing but
//! what is always allowed is shown to whom the API server does not allow it (`delegation`). After a cancel, no new
//! connection is accepted, requests in flight are answered, and serving ends within a few seconds whatever the clients do.

mod connections;
pub mod delegation;
mod endpoints;
mod health;
mod tls;
mod upload;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::{debug, warn};

use self::connections::{Place, Places};
pub use self::delegation::{Delegation, PeerCertificates};
pub use self::endpoints::{Endpoints, VersionInfo, Which, router};
pub(crate) use self::endpoints::{not_found, plain_text};
pub use self::health::HealthCheck;
pub use self::tls::{CertificateSlot, RELOAD_PERIOD, Tls, TlsParameters, TlsSource, TlsVersion, cipher_suites};
use self::upload::Upload;

/// Why a server cannot start. Once it is bound and its certificate loaded, it has no way to fail.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {}", explain(source))]
    Bind {
        /// The address that was asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or key file cannot be read.
    #[error("cannot read the TLS file {}: {source}", path.display())]
    ReadTls {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("cannot use the TLS certificate: {0}")]
    Tls(String),
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is already in use by another process".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission (ports below 1024 are privileged)".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => error.to_string(),
    }
}

/// What a client is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time.
    pub(crate) connections: usize,
    /// For the TLS handshake.
    pub(crate) handshake: Duration,
    /// For the header of an HTTP/1.1 request, the idle time before it included; and between HTTP/2 keep-alives.
    header: Duration,
    /// Bytes of a request's header. Tokens with many groups in them are the largest that is sent.
    header_size: u16,
    /// Without a request.
    idle: Duration,
    /// For the whole connection. Scrapers simply connect again.
    age: Duration,
    /// For requests in flight when a connection ends for age or by a cancel.
    drain: Duration,
}

const LIMITS: Limits = Limits {
    connections: 128,
    handshake: Duration::from_secs(10),
    header: Duration::from_secs(32),
    header_size: 32 << 10,
    idle: Duration::from_secs(120),
    age: Duration::from_secs(600),
    drain: Duration::from_secs(5),
};

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

/// How long to wait when the system has no file descriptor for a new connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener that has its address and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    local_addr: SocketAddr,
    pub(crate) limits: Limits,
}

/// Takes the address. Port 0 takes a free port; see [`Bound::local_addr`]. An unspecified address (`0.0.0.0` or `::`) is
/// that of all interfaces and address families, as with Go (package net, `favoriteAddrFamily`) and so with
/// kube-controller-manager: in a cluster of IPv6 alone the kubelet knocks there.
///
/// # Errors
/// One sentence that names the address and what is in the way.
pub async fn bind(addr: SocketAddr) -> Result<Bound, ServerError> {
    let bind_error = |source| ServerError::Bind { addr, source };
    let listener = listen(addr).map_err(bind_error)?;
    let local_addr = listener.local_addr().map_err(bind_error)?;
    Ok(Bound { listener, local_addr, limits: LIMITS })
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    if !addr.ip().is_unspecified() {
        return listen_on(addr);
    }
    listen_on(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), addr.port())).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        // There is no IPv6 here.
        _ => listen_on(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), addr.port())),
    })
}

fn listen_on(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), Some(socket2::Protocol::TCP))?;
    if addr.is_ipv6() {
        // What the system does by default, an administrator may have changed.
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    // A restart finds connections of the one before in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

impl Bound {
    /// The address that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves plain HTTP/1.1 until `cancel` fires and the last request is answered.
    pub async fn serve_http(self, router: Router, cancel: CancellationToken) {
        let limits = self.limits;
        let stop = cancel.clone();
        let serve = move |stream, place| {
            let client = Client { protocol: Protocol::Http1, certificates: None, place };
            serve_connection(stream, client, router.clone(), limits, stop.clone())
        };
        self.accept(serve, &cancel).await;
    }

    /// Serves HTTPS (h2 and HTTP/1.1) until `cancel` fires and the last request is answered, and keeps the
    /// certificate fresh meanwhile. What certificates a client shows is with each of its requests ([`PeerCertificates`]).
    pub async fn serve_https(self, tls: Tls, router: Router, cancel: CancellationToken) {
        let limits = self.limits;
        let acceptor = TlsAcceptor::from(tls.config.clone());
        let stop = cancel.clone();
        let serve =
            move |stream, place| serve_tls(stream, place, acceptor.clone(), router.clone(), limits, stop.clone());
        tokio::select! {
            () = self.accept(serve, &cancel) => {}
            () = tls.keep_fresh() => {}
        }
    }

    /// Accepts until cancelled, then waits for the connections to end.
    async fn accept<F, C>(self, serve: F, cancel: &CancellationToken)
    where
        F: Fn(TcpStream, Arc<Place>) -> C,
        C: Future<Output = ()> + Send + 'static,
    {
        let places = Places::new(self.limits.connections);
        let connections = TaskTracker::new();
        while let Some(accepted) = cancel.run_until_cancelled(self.listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => {
                    // An answer must not wait until the peer has acknowledged what was sent before it.
                    if let Err(error) = stream.set_nodelay(true) {
                        debug!(%peer, %error, "cannot set TCP_NODELAY on a connection");
                    }
                    if let Some(place) = places.take() {
                        connections.spawn(serve(stream, Arc::new(place)));
                    } else {
                        debug!(%peer, "no place for a connection: there is a request on each of the others");
                    }
                }
                Err(error) => {
                    warn!(addr = %self.local_addr, %error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // Refuse at once rather than let clients wait in the backlog.
        drop(self.listener);
        connections.close();
        connections.wait().await;
    }
}

/// The protocol of a connection, known before its first byte: there is no guessing phase that a silent client could
/// draw out.
#[derive(Debug, Clone, Copy)]
enum Protocol {
    Http1,
    Http2,
}

/// Who is at the other end of a connection.
struct Client {
    protocol: Protocol,
    certificates: Option<PeerCertificates>,
    place: Arc<Place>,
}

async fn serve_tls(
    stream: TcpStream,
    place: Arc<Place>,
    tls: TlsAcceptor,
    router: Router,
    limits: Limits,
    cancel: CancellationToken,
) {
    let handshake = timeout(limits.handshake, tls.accept(stream));
    let stream = tokio::select! {
        handshake = handshake => match handshake {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(%error, "TLS handshake failed"),
            Err(_) => return,
        },
        () = place.lost(limits.idle) => return,
        () = cancel.cancelled() => return,
    };
    let session = stream.get_ref().1;
    let protocol = match session.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    let certificates = session.peer_certificates().map(PeerCertificates::new);
    serve_connection(stream, Client { protocol, certificates, place }, router, limits, cancel).await;
}

async fn serve_connection<S>(stream: S, client: Client, router: Router, limits: Limits, cancel: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(limits.header_size.into());
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.header)
        .keep_alive_timeout(limits.handshake)
        .max_header_list_size(limits.header_size.into())
        .max_concurrent_streams(100);
    let Client { protocol, certificates, place } = client;
    let builder = match protocol {
        Protocol::Http1 => builder.http1_only(),
        Protocol::Http2 => builder.http2_only(),
    };
    let answer = {
        let place = Arc::clone(&place);
        tower::service_fn(move |request| answer(request, router.clone(), certificates.clone(), Arc::clone(&place)))
    };
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(answer));
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.lost(limits.idle) => return,
        () = cancel.cancelled() => {}
        () = sleep(limits.age) => {}
    }
    connection.as_mut().graceful_shutdown();
    // Nobody is left to tell: the client is gone, or about to be.
    let _ = timeout(limits.drain, connection).await;
}

/// Answers one request. From its end to its answer the connection is busy.
async fn answer(
    request: Request<Incoming>,
    router: Router,
    certificates: Option<PeerCertificates>,
    place: Arc<Place>,
) -> Result<Response, std::convert::Infallible> {
    let mut request = request.map(|body| Upload::new(body, place));
    let _in_flight = request.body().in_flight();
    if let Some(certificates) = certificates {
        request.extensions_mut().insert(certificates);
    }
    router.oneshot(request).await
}

#[cfg(test)]
mod tests;
