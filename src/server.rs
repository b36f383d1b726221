//! The serving endpoints: health, metrics, configuration and version, over HTTP and HTTPS.
//!
//! Guarantees: an address that cannot be bound is reported before anything else starts ([`bind`]). No client can block
//! the server. Handshakes, headers, idle time and whole connections have time limits, headers have a size limit, and
//! the number of connections is bounded. At that limit a new connection replaces an idle one (`connections`); a client
//! whose request is incomplete counts as idle (`upload`). New connections are rate limited before TLS, and an answer
//! 429 closes its connection, so the CPU time that unauthenticated clients use is bounded (`budgets`). Connections above
//! the rate wait, so a health probe on the secure port is late during a flood, but not refused. There every path that
//! is not always allowed requires authentication and authorization by the API server (`delegation`). After a cancel, no
//! new connection is accepted, requests in flight are answered, and serving ends within a few seconds whatever the
//! clients do.
//!
//! Health probes have a listener of their own ([`Bound::for_probes`]): one request per connection, no rate limit, no
//! TLS. It shares only the process's CPU with the other listeners.

pub(crate) mod budgets;
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::{debug, trace, warn};

use self::budgets::{LogLimit, STRANGERS};
use self::connections::{ConnectionSlot, ConnectionSlots};
pub use self::delegation::{Delegation, PeerCertificates};
pub use self::endpoints::{Endpoints, VersionInfo, Which, router};
pub(crate) use self::endpoints::{not_found, plain_text};
pub use self::health::HealthCheck;
pub use self::tls::{CertificateSlot, RELOAD_PERIOD, Tls, TlsParameters, TlsSource, TlsVersion, cipher_suites};
use self::upload::TrackedBody;
use crate::token_bucket::{Rate, TokenBucket};

/// Why a server cannot start. Once bound, with its certificate loaded, it cannot fail.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be bound.
    #[error("cannot listen on {addr}: {}", explain(source))]
    Bind {
        /// The requested address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A certificate or key file cannot be read.
    #[error("cannot read the TLS file {}: {source}", path.display())]
    ReadTls {
        /// The file.
        path: PathBuf,
        /// The system's error.
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

/// The limits of a listener's clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Concurrent connections.
    pub(crate) connections: usize,
    /// New connections per second. Any above wait before their first byte is read. `None` is no limit.
    pub(crate) arrivals: Option<Rate>,
    /// Time for the TLS handshake.
    pub(crate) handshake: Duration,
    /// Time for the header of an HTTP/1.1 request, including the idle time before it; also the interval of HTTP/2
    /// keep-alives.
    header: Duration,
    /// Bytes of a request's header. The largest real headers are tokens with many groups.
    header_size: u16,
    /// Whether an HTTP/1.1 connection may have another request after the first.
    keep_alive: bool,
    /// Concurrent requests on one HTTP/2 connection.
    streams: u32,
    /// Time without a request.
    idle: Duration,
    /// Time for the whole connection. Scrapers reconnect.
    age: Duration,
    /// Time for requests in flight when a connection ends because of its age or a cancel.
    drain: Duration,
}

const LIMITS: Limits = Limits {
    connections: 128,
    arrivals: Some(STRANGERS),
    handshake: Duration::from_secs(10),
    header: Duration::from_secs(32),
    header_size: 32 << 10,
    keep_alive: true,
    streams: 16,
    idle: Duration::from_secs(120),
    age: Duration::from_secs(600),
    drain: Duration::from_secs(5),
};

/// The kubelet opens a connection for each probe and sends one request at once. Of a flood of silent connections, the
/// newest 512 stay open. At 5,000 new ones a second, a probe has 100 ms to send its request.
const PROBES: Limits = Limits {
    connections: 512,
    arrivals: None,
    header: Duration::from_secs(2),
    keep_alive: false,
    idle: Duration::from_secs(5),
    age: Duration::from_secs(30),
    ..LIMITS
};

/// The clients of `dev` are local, and their watches stay open.
const DEV: Limits = Limits {
    connections: 512,
    arrivals: None,
    header: Duration::from_secs(300),
    header_size: u16::MAX,
    streams: 250,
    idle: Duration::from_secs(3600),
    age: Duration::from_secs(3600),
    drain: Duration::from_millis(500),
    ..LIMITS
};

/// Bytes of request bodies that may be buffered on an HTTP/2 connection, and on each of its streams.
const WINDOW: u32 = 64 << 10;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

/// How long to wait when the system has no file descriptor for a new connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener that is bound and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    local_addr: SocketAddr,
    pub(crate) limits: Limits,
}

/// Binds the address. Port 0 selects a free port; see [`Bound::local_addr`]. An unspecified address (`0.0.0.0` or `::`)
/// means all interfaces and address families, as in Go (package net, `favoriteAddrFamily`) and so in
/// kube-controller-manager. In an IPv6-only cluster the kubelet probes over IPv6.
///
/// # Errors
/// One sentence with the address and the cause.
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
        // The system has no IPv6.
        _ => listen_on(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), addr.port())),
    })
}

fn listen_on(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), Some(socket2::Protocol::TCP))?;
    if addr.is_ipv6() {
        // An administrator may have changed the system's default.
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    // After a restart, connections of the previous process are in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

impl Bound {
    /// The bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// With limits for health probes: one request per connection, two seconds to send it, and no refusals because of
    /// other clients' requests.
    #[must_use]
    pub fn for_probes(self) -> Self {
        Self { limits: PROBES, ..self }
    }

    /// With limits for the API server of `dev`, whose clients are local: watches last for an hour.
    #[must_use]
    pub fn for_dev(self) -> Self {
        Self { limits: DEV, ..self }
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

    /// Serves HTTPS (h2 and HTTP/1.1) until `cancel` fires and the last request is answered, and reloads the
    /// certificate meanwhile. A client's certificates are an extension of each of its requests ([`PeerCertificates`]).
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
        F: Fn(TcpStream, Arc<ConnectionSlot>) -> C,
        C: Future<Output = ()> + Send + 'static,
    {
        let slots = ConnectionSlots::new(self.limits.connections);
        let arrivals = self.limits.arrivals.map(TokenBucket::new);
        let (delayed, failed) = (LogLimit::default(), LogLimit::default());
        let connections = TaskTracker::new();
        while let Some(accepted) = cancel.run_until_cancelled(self.listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => {
                    if let Some(arrivals) = &arrivals
                        && arrivals.take().is_err()
                    {
                        if let Some(suppressed) = delayed.admit(Instant::now()) {
                            warn!(addr = %self.local_addr, %peer, suppressed, "too many new connections; they wait");
                        }
                        cancel.run_until_cancelled(arrivals.acquire()).await;
                    }
                    // An answer must not wait until the peer has acknowledged earlier data.
                    if let Err(error) = stream.set_nodelay(true) {
                        debug!(%peer, %error, "cannot set TCP_NODELAY on a connection");
                    }
                    if let Some(place) = slots.take() {
                        connections.spawn(serve(stream, Arc::new(place)));
                    } else {
                        trace!(%peer, "no place for a connection: there is a request on each of the others");
                    }
                }
                Err(error) => {
                    if let Some(suppressed) = failed.admit(Instant::now()) {
                        warn!(addr = %self.local_addr, %error, suppressed, "cannot accept a connection");
                    }
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

/// The protocol of a connection, known before its first byte: there is no detection phase that a silent client could
/// prolong.
#[derive(Debug, Clone, Copy)]
enum Protocol {
    Http1,
    Http2,
}

/// An extension of the first request on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstRequest;

/// The client of a connection.
struct Client {
    protocol: Protocol,
    certificates: Option<PeerCertificates>,
    place: Arc<ConnectionSlot>,
}

async fn serve_tls(
    stream: TcpStream,
    place: Arc<ConnectionSlot>,
    tls: TlsAcceptor,
    router: Router,
    limits: Limits,
    cancel: CancellationToken,
) {
    let handshake = timeout(limits.handshake, tls.accept(stream));
    let stream = tokio::select! {
        handshake = handshake => match handshake {
            Ok(Ok(stream)) => stream,
            // Logged at trace: the manifests log at debug, and clients can cause hundreds of these lines a second.
            Ok(Err(error)) => return trace!(%error, "TLS handshake failed"),
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
    builder
        .http1()
        .timer(TokioTimer::new())
        .keep_alive(limits.keep_alive)
        .header_read_timeout(limits.header)
        .max_buf_size(limits.header_size.into());
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.header)
        .keep_alive_timeout(limits.handshake)
        .max_header_list_size(limits.header_size.into())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_concurrent_streams(limits.streams);
    let Client { protocol, certificates, place } = client;
    let builder = match protocol {
        Protocol::Http1 => builder.http1_only(),
        Protocol::Http2 => builder.http2_only(),
    };
    let refused = CancellationToken::new();
    let answer = {
        let (place, refused, used) = (Arc::clone(&place), refused.clone(), Arc::new(AtomicBool::new(false)));
        tower::service_fn(move |mut request: Request<Incoming>| {
            if !used.swap(true, Ordering::Relaxed) {
                request.extensions_mut().insert(FirstRequest);
            }
            let answer = answer(request, router.clone(), certificates.clone(), Arc::clone(&place));
            let refused = refused.clone();
            async move {
                let response = answer.await?;
                if response.status() == StatusCode::TOO_MANY_REQUESTS {
                    refused.cancel();
                }
                Ok::<_, std::convert::Infallible>(response)
            }
        })
    };
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(answer));
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.lost(limits.idle) => return,
        () = refused.cancelled() => {}
        () = cancel.cancelled() => {}
        () = sleep(limits.age) => {}
    }
    connection.as_mut().graceful_shutdown();
    // The result does not matter: the client is gone, or about to be.
    let _ = timeout(limits.drain, async {
        tokio::select! {
            _ = connection => {}
            () = place.lost(limits.idle) => {}
        }
    })
    .await;
}

/// Answers one request. From the end of the request to the answer the connection is busy.
async fn answer(
    request: Request<Incoming>,
    router: Router,
    certificates: Option<PeerCertificates>,
    place: Arc<ConnectionSlot>,
) -> Result<Response, std::convert::Infallible> {
    let mut request = request.map(|body| TrackedBody::new(body, place));
    let _in_flight = request.body().in_flight();
    if let Some(certificates) = certificates {
        request.extensions_mut().insert(certificates);
    }
    router.oneshot(request).await
}

#[cfg(test)]
mod tests;
