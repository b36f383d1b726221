//! Clients without credentials on a controller's own port, and a kubelet's probes beside them.
//!
//! Guarantees: it connects only to 127.0.0.1, with at most [`CONNECTIONS`] connections and [`RATE`] requests a second,
//! and ends by itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connections of all unauthenticated clients together.
pub const CONNECTIONS: usize = 128;
/// Requests per second of all unauthenticated clients together.
pub const RATE: usize = 5_000;
/// Streams of one HTTP/2 connection.
const STREAMS: usize = 4;
/// The kubelet's default timeout, for the connection and the answer together.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// How the unauthenticated clients send requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One request at a time on each connection.
    Http1,
    /// Four at a time.
    Http2,
    /// As `Http1`, each request with a unique bearer token.
    Http1Tokens,
}

/// What the unauthenticated clients did.
#[derive(Debug, Default)]
pub struct Tally {
    pub answered: AtomicUsize,
    /// Connections that were opened, including the first ones.
    pub connections: AtomicUsize,
    sent: AtomicUsize,
}

/// Sends requests for /metrics, the probe's own path and unique paths, until `end`.
pub async fn strangers(port: u16, shape: Shape, probe_path: &str, end: Instant) -> Tally {
    let tally = Tally::default();
    join_all((0..CONNECTIONS).map(|_| connections(port, shape, probe_path, end, &tally))).await;
    tally
}

/// One connection after the other.
async fn connections(port: u16, shape: Shape, probe_path: &str, end: Instant, tally: &Tally) {
    while Instant::now() < end {
        let ran = tokio::time::timeout_at(end, connection(port, shape, probe_path, tally)).await;
        if ran.is_ok() {
            // The server closed or refused it.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// One connection until it breaks.
async fn connection(port: u16, shape: Shape, probe_path: &str, tally: &Tally) -> Option<()> {
    let alpn: &[u8] = if shape == Shape::Http2 { b"h2" } else { b"http/1.1" };
    let io = TokioIo::new(tls(port, alpn).await.ok()?);
    tally.connections.fetch_add(1, Ordering::Relaxed);
    if shape == Shape::Http2 {
        let (sender, driver) = http2::handshake(TokioExecutor::new(), io).await.ok()?;
        let streams = (0..STREAMS).map(|_| {
            let mut sender = sender.clone();
            async move {
                let mut ticks = ticks(CONNECTIONS * STREAMS);
                loop {
                    ticks.tick().await;
                    sender.ready().await.ok()?;
                    drain(sender.send_request(request(shape, probe_path, tally)).await.ok()?, tally).await?;
                }
            }
        });
        tokio::select! {
            _ = driver => None,
            _ = join_all(streams.map(|stream| async { let ended: Option<()> = stream.await; ended })) => None,
        }
    } else {
        let (mut sender, driver) = http1::handshake(io).await.ok()?;
        let stream = async {
            let mut ticks = ticks(CONNECTIONS);
            loop {
                ticks.tick().await;
                sender.ready().await.ok()?;
                drain(sender.send_request(request(shape, probe_path, tally)).await.ok()?, tally).await?;
            }
        };
        tokio::select! {
            _ = driver => None,
            ended = stream => ended,
        }
    }
}

/// A share of [`RATE`].
fn ticks(senders: usize) -> tokio::time::Interval {
    let mut ticks = interval(Duration::from_secs(1) * u32::try_from(senders).unwrap() / u32::try_from(RATE).unwrap());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn request(shape: Shape, probe_path: &str, tally: &Tally) -> Request<Empty<Bytes>> {
    let number = tally.sent.fetch_add(1, Ordering::Relaxed);
    let path = match number % 3 {
        0 => "/metrics".to_owned(),
        1 => probe_path.to_owned(),
        _ => format!("/stranger/{number}"),
    };
    // HTTP/2 takes scheme and authority from the URI, HTTP/1.1 the authority from the header.
    let request = if shape == Shape::Http2 {
        Request::get(format!("https://localhost{path}"))
    } else {
        Request::get(path).header("host", "localhost")
    };
    let request = match shape {
        Shape::Http1Tokens => request.header("authorization", format!("Bearer stranger-{number}")),
        Shape::Http1 | Shape::Http2 => request,
    };
    request.body(Empty::new()).unwrap()
}

async fn drain(answer: http::Response<hyper::body::Incoming>, tally: &Tally) -> Option<()> {
    answer.into_body().collect().await.ok()?;
    tally.answered.fetch_add(1, Ordering::Relaxed);
    Some(())
}

/// Probes as the kubelet does, ten a second, each on a new connection; returns the number of failures.
pub async fn probes(port: u16, is_tls: bool, path: &str, count: usize) -> usize {
    let mut ticks = interval(Duration::from_millis(100));
    let mut running = Vec::new();
    for _ in 0..count {
        ticks.tick().await;
        let path = path.to_owned();
        running.push(tokio::spawn(async move {
            matches!(timeout(PROBE_TIMEOUT, probe(port, is_tls, &path)).await, Ok(Ok(200)))
        }));
    }
    let answers = join_all(running).await;
    answers.iter().filter(|answer| !matches!(answer, Ok(true))).count()
}

async fn probe(port: u16, is_tls: bool, path: &str) -> std::io::Result<u16> {
    if is_tls {
        ask(tls(port, b"http/1.1").await?, path).await
    } else {
        ask(TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await?, path).await
    }
}

/// One request; the status of its answer.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> std::io::Result<u16> {
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: kube-probe/1.36\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[9..]).parse().unwrap_or(0))
}

/// A connection that does not verify the server, as the kubelet's does not.
async fn tls(port: u16, alpn: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = CryptoProvider::get_default().expect("the runner installs it");
    let mut config = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified(Arc::clone(provider))))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
