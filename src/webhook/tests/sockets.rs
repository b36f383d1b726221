//! The webhooks over real sockets, in both versions of HTTP. Requests that are too large, too slow, malformed or too many are
//! answered, and other clients are served meanwhile.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use futures::stream;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::certificate::Certificate;
use super::super::router::{MAX_BODY, READ_TIMEOUT, router_within};
use super::super::{MUTATE_PATH, VALIDATE_PATH};
use super::tls::{connect_speaking, make};
use super::{cron_job, review};
use crate::server::{Bound, Tls, TlsParameters, TlsSource, bind};

const JSON: &str = "application/json";
/// The time limit for what should happen at once.
const SOON: Duration = Duration::from_secs(20);
const PROTOCOLS: [&[u8]; 2] = [b"http/1.1", b"h2"];

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Webhooks that are served until this value is dropped.
struct Served {
    addr: SocketAddr,
    ca: String,
    _stop: DropGuard,
}

impl Served {
    /// Serves with the read timeout `read`; `limit` changes the other limits.
    async fn start(read: Duration, limit: impl FnOnce(&mut Bound)) -> Self {
        let certificate = make(None);
        let tls = Tls::load(TlsSource::Handed, &TlsParameters::default()).unwrap();
        tls.slot().install(certificate.cert.as_bytes(), certificate.key.as_bytes()).unwrap();
        Self::start_with(tls, certificate.ca, read, limit).await
    }

    async fn start_with(tls: Tls, ca: String, read: Duration, limit: impl FnOnce(&mut Bound)) -> Self {
        let mut bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        limit(&mut bound);
        let (addr, cancel) = (bound.local_addr(), CancellationToken::new());
        tokio::spawn(bound.serve_https(tls, router_within(read), cancel.clone()));
        Self { addr, ca, _stop: cancel.drop_guard() }
    }

    async fn connect(&self, protocol: &[u8]) -> Sender {
        Sender::open(self.addr, &self.ca, protocol).await.unwrap()
    }

    /// Asserts that a new client is served.
    async fn serves(&self) {
        for protocol in PROTOCOLS {
            let mut sender = self.connect(protocol).await;
            let (code, answer) = sender.send(Method::POST, VALIDATE_PATH, JSON, whole(question())).await.unwrap();
            assert_eq!((code, &answer["response"]["allowed"]), (200, &json!(true)), "{answer}");
        }
    }
}

/// A connection.
enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

impl Sender {
    async fn open(addr: SocketAddr, ca: &str, protocol: &[u8]) -> std::io::Result<Self> {
        let stream = connect_speaking(addr, ca, &[protocol]).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        let stream = TokioIo::new(stream);
        if protocol == b"h2" {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            return Ok(Self::Http2(sender));
        }
        let (sender, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Ok(Self::Http1(sender))
    }

    /// The status and the document of an answer; a text becomes a JSON string.
    async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Body,
    ) -> hyper::Result<(u16, Value)> {
        let request = Request::builder().method(method).header("content-type", content_type);
        let exchange = async {
            let answer: Response<Incoming> = match self {
                Self::Http1(sender) => {
                    let request = request.uri(path).header("host", "webhook").body(body).unwrap();
                    sender.ready().await?;
                    sender.send_request(request).await?
                }
                Self::Http2(sender) => {
                    let request = request.uri(format!("https://webhook{path}")).body(body).unwrap();
                    sender.ready().await?;
                    sender.send_request(request).await?
                }
            };
            let code = answer.status().as_u16();
            let text = answer.into_body().collect().await?.to_bytes();
            let text = String::from_utf8(text.to_vec()).unwrap();
            Ok((code, serde_json::from_str(&text).unwrap_or(Value::String(text))))
        };
        timeout(SOON, exchange).await.expect("an answer")
    }

    async fn asks(&mut self) {
        let (code, answer) = self.send(Method::POST, VALIDATE_PATH, JSON, whole(question())).await.unwrap();
        assert_eq!((code, &answer["response"]["allowed"]), (200, &json!(true)), "{answer}");
    }
}

fn question() -> String {
    review("CREATE", &cron_job("report", &json!({ "schedule": "@daily" }))).to_string()
}

fn whole(body: impl Into<Bytes>) -> Body {
    Full::from(body.into()).boxed_unsync()
}

/// A body that never ends, one byte at a time.
fn drops() -> Body {
    let drops = stream::unfold((), |()| async {
        sleep(Duration::from_millis(10)).await;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b" "))), ()))
    });
    StreamBody::new(drops).boxed_unsync()
}

#[tokio::test]
async fn client_that_still_sends_an_invalid_request_reads_why_it_is_refused() {
    let served = Served::start(READ_TIMEOUT, |_| {}).await;
    let padded = |size: usize| format!("{}{}", question(), " ".repeat(size - question().len()));
    let large = "x".repeat(1 << 20);
    let rows = [
        ("as large as allowed", Method::POST, VALIDATE_PATH, JSON, padded(MAX_BODY), 200, ""),
        ("a byte larger", Method::POST, VALIDATE_PATH, JSON, padded(MAX_BODY + 1), 413, "the body is larger than "),
        ("much larger", Method::POST, MUTATE_PATH, JSON, padded(3 * MAX_BODY), 413, "the body is larger than "),
        ("no JSON", Method::POST, MUTATE_PATH, JSON, "{".to_owned(), 400, "the body is no AdmissionReview: "),
        ("no body", Method::POST, MUTATE_PATH, JSON, String::new(), 400, "the body is no AdmissionReview: EOF "),
        ("another object", Method::POST, MUTATE_PATH, JSON, "{}".to_owned(), 400, "the body is a \"\" of \"\"; "),
        ("another form", Method::POST, MUTATE_PATH, "text/plain", large.clone(), 415, "the Content-Type is "),
        ("another path", Method::POST, "/mutate", JSON, large.clone(), 404, ""),
        ("another method", Method::PUT, MUTATE_PATH, JSON, large, 405, ""),
        ("a question to read", Method::GET, VALIDATE_PATH, JSON, String::new(), 405, ""),
    ];
    for protocol in PROTOCOLS {
        let mut sender = served.connect(protocol).await;
        for (sentence, method, path, content_type, body, status, says) in rows.clone() {
            let sentence = format!("{sentence}, {}", String::from_utf8_lossy(protocol));
            let sent = sender.send(method, path, content_type, whole(body)).await;
            let (code, answer) = sent.unwrap_or_else(|error| panic!("{sentence}: {error:?}"));
            assert_eq!(code, status, "{sentence}: {answer}");
            if !says.is_empty() {
                assert_eq!((&answer["kind"], &answer["code"]), (&json!("Status"), &json!(status)), "{sentence}");
                assert!(answer["message"].as_str().unwrap().starts_with(says), "{sentence}: {answer}");
            }
            // The connection stays usable.
            sender.asks().await;
        }
    }
}

#[tokio::test]
async fn client_with_a_slow_body_is_refused_in_time_and_delays_no_other_client() {
    let limit = Duration::from_secs(2);
    let served = Served::start(limit, |_| {}).await;
    for protocol in PROTOCOLS {
        let started = Instant::now();
        let mut slow = served.connect(protocol).await;
        let slow = tokio::spawn(async move { slow.send(Method::POST, MUTATE_PATH, JSON, drops()).await });
        served.serves().await;
        let (code, answer) = slow.await.unwrap().unwrap();
        assert_eq!((code, &answer["message"]), (408, &json!("the body did not come within 2 s")), "{answer}");
        assert!(started.elapsed() >= limit);
    }
}

#[tokio::test]
async fn handshake_that_never_ends_is_aborted_and_delays_no_other_client() {
    let limit = Duration::from_secs(2);
    let served = Served::start(READ_TIMEOUT, |bound| bound.limits.handshake = limit).await;
    // The first bytes of a record that should hold a ClientHello, or nothing at all.
    for sent in [&b"\x16\x03\x01\x02\x00\x01"[..], b""] {
        let started = Instant::now();
        let mut silent = TcpStream::connect(served.addr).await.unwrap();
        silent.write_all(sent).await.unwrap();
        served.serves().await;
        let mut answer = Vec::new();
        let _ = timeout(SOON, silent.read_to_end(&mut answer)).await.expect("it is let go");
        assert!(started.elapsed() >= limit && answer.is_empty(), "{answer:?}");
    }
}

#[tokio::test]
async fn slow_bodies_on_all_connections_lock_no_client_out() {
    let served = Served::start(READ_TIMEOUT, |bound| bound.limits.connections = 4).await;
    let mut slow = Vec::new();
    for protocol in PROTOCOLS.into_iter().cycle().take(8) {
        let mut sender = served.connect(protocol).await;
        slow.push(tokio::spawn(async move { sender.send(Method::POST, MUTATE_PATH, JSON, drops()).await }));
    }
    served.serves().await;
    for sending in slow {
        sending.abort();
    }
}

#[tokio::test]
async fn open_connections_are_kept_when_the_certificate_files_change() {
    let dir = tempfile::tempdir().unwrap();
    let write = |certificate: &Certificate| {
        std::fs::write(dir.path().join("tls.crt"), &certificate.cert).unwrap();
        std::fs::write(dir.path().join("tls.key"), &certificate.key).unwrap();
    };
    let (first, second) = (make(None), make(None));
    write(&first);
    let (cert, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let tls = Tls::load(TlsSource::Files { cert, key }, &TlsParameters::default()).unwrap();
    let tls = tls.looking_every(Duration::from_millis(10));
    let served = Served::start_with(tls, first.ca.clone(), READ_TIMEOUT, |_| {}).await;
    let mut kept = Vec::new();
    for protocol in PROTOCOLS {
        kept.push(served.connect(protocol).await);
    }
    write(&second);
    let deadline = Instant::now() + SOON;
    while let Err(error) = Sender::open(served.addr, &second.ca, PROTOCOLS[0]).await {
        assert!(Instant::now() < deadline, "{error}");
        sleep(Duration::from_millis(10)).await;
    }
    assert!(Sender::open(served.addr, &first.ca, PROTOCOLS[0]).await.is_err(), "the first one is gone");
    for sender in &mut kept {
        sender.asks().await;
    }
}
