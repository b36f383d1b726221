//! The endpoints through the router, the limits on paused time, and TLS over real sockets.
#![allow(clippy::unwrap_used)]

mod flood;

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::routing::get;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;
use tower::ServiceExt;

use super::*;

fn endpoints() -> Endpoints {
    let fine = HealthCheck::new("leaderElection", || Ok(()));
    Endpoints {
        healthz: vec![HealthCheck::ping(), fine.clone()],
        livez: vec![HealthCheck::ping(), HealthCheck::new("leaderElection", || Err("lease ran out".to_owned()))],
        readyz: vec![HealthCheck::informer_sync(|| false), HealthCheck::new("bad", || panic!("on purpose")), fine],
        metrics: Arc::new(|| "up 1\n".to_owned()),
        configz: json!({"cronjobcontroller.config": {"workers": 5}}),
        version: VersionInfo { git_version: "v1.2.3".to_owned(), ..VersionInfo::current() },
    }
}

async fn ask(which: Which, method: &str, path: &str) -> (StatusCode, String, String) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let response: Response<Body> = router(endpoints(), which).oneshot(request).await.unwrap();
    let header = |name| response.headers().get(name).map_or(String::new(), |v| v.to_str().unwrap().to_owned());
    let (status, content_type) = (response.status(), header("content-type"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, content_type, String::from_utf8(body.to_vec()).unwrap())
}

const TEXT: &str = "text/plain; charset=utf-8";

#[tokio::test]
async fn answers() {
    let rows: &[(&str, &str, u16, &str, &str)] = &[
        ("healthy and terse", "GET /healthz", 200, TEXT, "ok"),
        (
            "healthy and verbose",
            "GET /healthz?verbose",
            200,
            TEXT,
            "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n",
        ),
        (
            "verbose with any value",
            "GET /healthz?verbose=0",
            200,
            TEXT,
            "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n",
        ),
        (
            "a failure is always verbose and never says why",
            "GET /livez",
            500,
            TEXT,
            "[+]ping ok\n[-]leaderElection failed: reason withheld\nlivez check failed\n",
        ),
        ("an excluded failure does not count", "GET /livez?exclude=leaderElection", 200, TEXT, "ok"),
        (
            "what was excluded is shown",
            "GET /livez?exclude=leaderElection&verbose",
            200,
            TEXT,
            "[+]ping ok\n[+]leaderElection excluded: ok\nlivez check passed\n",
        ),
        (
            "unknown exclusions are sorted and warned of",
            "GET /healthz?verbose&exclude=zeta&exclude=alpha",
            200,
            TEXT,
            "[+]ping ok\n[+]leaderElection ok\nwarn: some health checks cannot be excluded: no matches for \
             \"alpha\",\"zeta\"\nhealthz check passed\n",
        ),
        (
            "caches that have not synced, and a check that panics, are not ready",
            "GET /readyz",
            500,
            TEXT,
            "[-]informer-sync failed: reason withheld\n[-]bad failed: reason withheld\n[+]leaderElection ok\n\
             readyz check failed\n",
        ),
        ("several checks excluded at once", "GET /readyz?exclude=informer-sync&exclude=bad", 200, TEXT, "ok"),
        ("one check that passes", "GET /livez/ping", 200, TEXT, "ok"),
        (
            "one check that fails says why",
            "GET /livez/leaderElection",
            500,
            TEXT,
            "internal server error: lease ran out\n",
        ),
        ("one check that panics", "GET /readyz/bad", 500, TEXT, "internal server error: the check panicked\n"),
        ("an unknown check", "GET /livez/informer-sync", 404, TEXT, "404 page not found\n"),
        ("metrics", "GET /metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "up 1\n"),
        ("configuration", "GET /configz", 200, "application/json", "{\"cronjobcontroller.config\":{\"workers\":5}}"),
        ("an unknown path", "GET /debug/pprof", 404, TEXT, "404 page not found\n"),
        ("the root", "GET /", 404, TEXT, "404 page not found\n"),
        ("a path with a slash too many", "GET /healthz/", 404, TEXT, "404 page not found\n"),
        ("HEAD has no body", "HEAD /healthz", 200, TEXT, ""),
        ("HEAD of metrics", "HEAD /metrics", 200, "text/plain; version=0.0.4; charset=utf-8", ""),
        ("POST is refused", "POST /healthz", 405, "", ""),
        ("PUT is refused", "PUT /configz", 405, "", ""),
        ("DELETE is refused", "DELETE /livez/ping", 405, "", ""),
        ("a query that is not one", "GET /healthz?%ff&&=&exclude", 200, TEXT, "ok"),
    ];
    for (name, line, status, content_type, body) in rows {
        let (method, path) = line.split_once(' ').unwrap();
        let got = ask(Which::All, method, path).await;
        assert_eq!((got.0.as_u16(), got.1.as_str(), got.2.as_str()), (*status, *content_type, *body), "{name}: {line}");
    }
}

#[tokio::test]
async fn each_listener_shows_only_its_own_paths() {
    let rows = [
        (Which::All, "/healthz /metrics /configz /version", ""),
        (Which::MetricsOnly, "/metrics", "/healthz /livez /readyz /livez/ping /configz /version"),
        (Which::HealthOnly, "/healthz /livez/ping /healthz/leaderElection", "/metrics /configz /version"),
    ];
    for (which, shown, hidden) in rows {
        for path in shown.split_whitespace() {
            assert_eq!(ask(which, "GET", path).await.0, StatusCode::OK, "{which:?} shows {path}");
        }
        for path in hidden.split_whitespace() {
            assert_eq!(ask(which, "GET", path).await.0, StatusCode::NOT_FOUND, "{which:?} hides {path}");
        }
    }
}

#[tokio::test]
async fn the_version_has_the_keys_of_kubernetes() {
    let (_, content_type, body) = ask(Which::All, "GET", "/version").await;
    assert_eq!(content_type, "application/json");
    let value: serde_json::Value = serde_json::from_str(&body).unwrap();
    let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    let want =
        ["buildDate", "compiler", "gitCommit", "gitTreeState", "gitVersion", "goVersion", "major", "minor", "platform"];
    let (time_zone_data, upstreams) = keys.split_last().unwrap();
    assert_eq!((upstreams, time_zone_data.as_str()), (&want.map(str::to_owned)[..], "timeZoneData"));
    let zones = value["timeZoneData"].as_str().unwrap();
    assert!(zones.len() == 5 && zones.starts_with("20"), "{zones}");
    assert_eq!(value["gitVersion"], "v1.2.3");
    assert!(value["compiler"].as_str().unwrap().starts_with("rustc"));
    assert!(value["platform"].as_str().unwrap().contains('/'));
}

#[tokio::test]
async fn panic_of_a_metrics_source_fails_one_scrape_only() {
    let broken = AtomicBool::new(true);
    let metrics = Arc::new(move || {
        assert!(!broken.swap(false, Ordering::Relaxed), "on purpose");
        "up 1\n".to_owned()
    });
    let router = router(Endpoints { metrics, ..endpoints() }, Which::MetricsOnly);
    for want in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK] {
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        assert_eq!(router.clone().oneshot(request).await.unwrap().status(), want);
    }
}

#[tokio::test]
async fn without_checks_there_is_ping() {
    let router = router(Endpoints { livez: vec![], ..endpoints() }, Which::HealthOnly);
    let response = router.oneshot(Request::get("/livez?verbose").body(Body::empty()).unwrap()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "[+]ping ok\nlivez check passed\n");
}

#[tokio::test]
async fn an_address_in_use_is_named_in_one_sentence() {
    let first = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let error = bind(first.local_addr()).await.unwrap_err().to_string();
    let want = format!("cannot listen on {}: the address is already in use by another process", first.local_addr());
    assert_eq!(error, want);
}

/// A connection to a server with the usual limits, on paused time.
fn connect(protocol: Protocol, router: Router, cancel: &CancellationToken) -> DuplexStream {
    let (client, server) = duplex(64);
    tokio::spawn(serve_connection(server, test_client(protocol), router, LIMITS, cancel.clone()));
    client
}

fn test_client(protocol: Protocol) -> Client {
    Client { protocol, certificates: None, place: Arc::new(ConnectionSlots::new(1).take().unwrap()) }
}

async fn read_all(client: &mut DuplexStream) -> String {
    let mut answer = Vec::new();
    // A reset counts as an end here.
    let _ = client.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn slow_router(delay: Duration) -> Router {
    router(endpoints(), Which::All).route(
        "/slow",
        get(move || async move {
            sleep(delay).await;
            "done"
        }),
    )
}

const SLOW: &[u8] = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn connections_of_silent_and_slow_clients_are_closed() {
    let seconds = Duration::from_secs;
    // What the client sends, how long the handler takes, when the connection must have ended.
    let rows: [(&str, Protocol, &[u8], Duration, Duration); 5] = [
        ("silence", Protocol::Http1, b"", seconds(0), LIMITS.header),
        ("half a header", Protocol::Http1, b"GET /healthz HT", seconds(0), LIMITS.header),
        (
            "a kept-alive connection without a next request",
            Protocol::Http1,
            b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
            seconds(0),
            LIMITS.header,
        ),
        ("silence where HTTP/2 was agreed on", Protocol::Http2, b"", seconds(0), LIMITS.idle),
        ("a request that never ends", Protocol::Http1, SLOW, seconds(100_000), LIMITS.age + LIMITS.drain),
    ];
    for (name, protocol, sent, delay, limit) in rows {
        let started = Instant::now();
        let mut client = connect(protocol, slow_router(delay), &CancellationToken::new());
        client.write_all(sent).await.unwrap();
        read_all(&mut client).await;
        let took = started.elapsed();
        assert!(took <= limit + seconds(1), "{name}: held for {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_of_a_client_that_sends_single_bytes_is_closed() {
    let started = Instant::now();
    let mut client = connect(Protocol::Http1, slow_router(Duration::ZERO), &CancellationToken::new());
    for byte in b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-filler: aaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".iter().cycle() {
        if client.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_secs(5)).await;
    }
    assert!(started.elapsed() <= LIMITS.header + Duration::from_secs(10), "held for {:?}", started.elapsed());
}

#[tokio::test]
async fn clients_that_do_not_read_the_metrics_share_a_few_texts() {
    let texts = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let metrics = Arc::clone(&texts);
    let endpoints = Endpoints {
        metrics: Arc::new(move || format!("texts {}\n", metrics.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1)),
        ..endpoints()
    };
    let router = router(endpoints, Which::All);
    let ask = || async {
        let request = Request::builder().uri("/metrics").body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    let read = |response: Response<Body>| async {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    };
    for number in 1..=3 {
        assert_eq!(read(ask().await).await, format!("texts {number}\n"), "each scrape has a text of its own");
    }
    let mut unread = Vec::new();
    for _ in 0..100 {
        unread.push(ask().await);
    }
    assert_eq!(texts.load(std::sync::atomic::Ordering::SeqCst), 3 + 8);
    assert_eq!(read(ask().await).await, "texts 11\n", "while so many are kept, the newest of them");
    drop(unread);
    assert_eq!(read(ask().await).await, "texts 12\n", "and then a new one");
}

#[tokio::test(start_paused = true)]
async fn connection_of_a_client_that_does_not_read_is_closed() {
    let cancel = CancellationToken::new();
    let big = router(endpoints(), Which::All).route("/big", get(|| async { "x".repeat(1 << 20) }));
    let (mut client, server) = duplex(64);
    let connection = tokio::spawn(serve_connection(server, test_client(Protocol::Http1), big, LIMITS, cancel));
    client.write_all(b"GET /big HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let started = Instant::now();
    connection.await.unwrap();
    assert!(started.elapsed() <= LIMITS.idle + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_lets_requests_in_flight_finish_within_the_drain_time() {
    let seconds = Duration::from_secs;
    for (name, delay, ends, answered) in [
        ("a request that takes 3 s is answered", seconds(3), seconds(3), true),
        ("a request that takes a minute is cut off", seconds(60), seconds(1) + LIMITS.drain, false),
    ] {
        let cancel = CancellationToken::new();
        let started = Instant::now();
        let mut client = connect(Protocol::Http1, slow_router(delay), &cancel);
        client.write_all(SLOW).await.unwrap();
        sleep(seconds(1)).await;
        cancel.cancel();
        let answer = read_all(&mut client).await;
        assert_eq!(answer.ends_with("done"), answered, "{name}: {answer}");
        assert!(started.elapsed() <= ends + Duration::from_millis(100), "{name}: took {:?}", started.elapsed());
    }
}

/// Sends one HTTP/1.1 request over a stream and reads until the end.
async fn fetch(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn plain_http_serves_until_cancelled() {
    let bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = bound.local_addr();
    let cancel = CancellationToken::new();
    let server = tokio::spawn(bound.serve_http(router(endpoints(), Which::All), cancel.clone()));
    let answer = fetch(&mut TcpStream::connect(addr).await.unwrap(), "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer}");
    // An idle connection does not delay the shutdown.
    let idle = TcpStream::connect(addr).await.unwrap();
    cancel.cancel();
    timeout(Duration::from_secs(10), server).await.unwrap().unwrap();
    drop(idle);
    assert!(TcpStream::connect(addr).await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn idle_connection_is_closed_at_the_limit_and_requests_in_flight_finish() {
    let mut bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    bound.limits.connections = 2;
    let addr = bound.local_addr();
    let go_on = Arc::new(tokio::sync::Notify::new());
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let wait = get({
        let go_on = Arc::clone(&go_on);
        async move || {
            let go_on = go_on.notified();
            begun.send(()).unwrap();
            go_on.await;
            "waited"
        }
    });
    tokio::spawn(bound.serve_http(Router::new().route("/wait", wait), CancellationToken::new()));
    let connect = async |path: &str| {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let ends = async |stream: &mut TcpStream| {
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    let mut busy = connect("/wait").await;
    begins.recv().await.unwrap();
    let mut slow = TcpStream::connect(addr).await.unwrap();
    slow.write_all(b"GET /wait HTT").await.unwrap();
    let answer = ends(&mut connect("/none").await).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert_eq!(ends(&mut slow).await, "", "the one that had no request went");
    let mut second = connect("/wait").await;
    begins.recv().await.unwrap();
    let turned_away = ends(&mut connect("/none").await).await;
    assert_eq!(turned_away, "", "there is a request on each of the others");
    go_on.notify_waiters();
    for stream in [&mut busy, &mut second] {
        assert!(ends(stream).await.ends_with("waited"));
    }
}

#[tokio::test]
async fn oversized_request_is_refused_before_it_is_read() {
    let filler = |size: usize| "x".repeat(size);
    // One read may go beyond the limit.
    let limit = 2 * usize::from(LIMITS.header_size);
    let request =
        |line: &str, headers: &str| format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
    let rows = [
        ("a header of the usual size", request("GET /healthz", &format!("a: {}\r\n", filler(8 << 10))), "200"),
        ("a header that is too large", request("GET /healthz", &format!("a: {}\r\n", filler(limit))), "431"),
        ("too many headers", request("GET /healthz", &"a: b\r\n".repeat(200)), "431"),
        ("a path that is too long", request(&format!("GET /{}", filler(limit)), ""), "431"),
        ("a body, whatever its size", request("GET /metrics", "content-length: 1\r\n"), "413"),
        ("a body of any size", request("POST /metrics", "content-length: 99999999999\r\n"), "413"),
        ("a body without a size", request("PUT /configz", "transfer-encoding: chunked\r\n"), "413"),
        ("no body", request("GET /healthz", "content-length: 0\r\n"), "200"),
        ("what is not HTTP", "\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), "400"),
    ];
    for (sentence, sent, status) in rows {
        let (mut client, server) = duplex(128 << 10);
        let whole = serve_connection(
            server,
            test_client(Protocol::Http1),
            router(endpoints(), Which::All),
            LIMITS,
            CancellationToken::new(),
        );
        let serving = tokio::spawn(whole);
        client.write_all(sent.as_bytes()).await.unwrap();
        let answer = timeout(Duration::from_secs(10), read_all(&mut client)).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{sentence}: {answer}");
        timeout(Duration::from_secs(10), serving).await.unwrap().unwrap();
    }
}

/// A TLS client that trusts exactly this certificate.
async fn tls_connect(
    addr: SocketAddr,
    trusted: &CertificateDer<'static>,
    alpn: &[u8],
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    tls_connect_as(addr, trusted, alpn, &rustls::version::TLS13, None).await
}

/// The same with this version of TLS, and with a client certificate.
async fn tls_connect_as(
    addr: SocketAddr,
    trusted: &CertificateDer<'static>,
    alpn: &[u8],
    version: &'static rustls::SupportedProtocolVersion,
    shown: Option<&rcgen::CertifiedKey<rcgen::KeyPair>>,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some(shown) => {
            let key = rustls::pki_types::PrivatePkcs8KeyDer::from(shown.signing_key.serialize_der());
            config.with_client_auth_cert(vec![shown.cert.der().clone()], key.into()).unwrap()
        }
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect(ServerName::try_from("localhost").unwrap(), TcpStream::connect(addr).await?).await
}

async fn start_https(tls: Tls) -> (SocketAddr, CancellationToken) {
    let bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (addr, cancel) = (bound.local_addr(), CancellationToken::new());
    tokio::spawn(bound.serve_https(tls, router(endpoints(), Which::All), cancel.clone()));
    (addr, cancel)
}

#[tokio::test]
async fn https_with_a_self_signed_certificate_serves_http_1_and_2() {
    let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let tls = Tls::load(TlsSource::SelfSigned { hosts }, &TlsParameters::default()).unwrap();
    let certificate = tls.certificate();
    let (addr, _cancel) = start_https(tls).await;

    let mut stream = tls_connect(addr, &certificate, b"http/1.1").await.unwrap();
    let answer = fetch(&mut stream, "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("up 1\n"), "{answer}");

    let mut stream = tls_connect(addr, &certificate, b"h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    // The preface, empty settings, and one stream: GET https://x/metrics in HPACK's literal form.
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let header = b"\x82\x87\x41\x01x\x44\x08/metrics";
    request.extend([0, 0, u8::try_from(header.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    request.extend(header);
    stream.write_all(&request).await.unwrap();
    loop {
        let mut head = [0; 9];
        timeout(Duration::from_secs(10), stream.read_exact(&mut head)).await.unwrap().unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == 0 {
            assert_eq!(payload, b"up 1\n");
            break;
        }
    }
}

#[tokio::test]
async fn client_without_tls_is_refused_and_affects_no_other_client() {
    let tls = Tls::load(TlsSource::SelfSigned { hosts: vec![] }, &TlsParameters::default()).unwrap();
    let certificate = tls.certificate();
    let (addr, _cancel) = start_https(tls).await;
    let mut plain = TcpStream::connect(addr).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(10), plain.read_to_end(&mut answer)).await.unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    let mut stream = tls_connect(addr, &certificate, b"http/1.1").await.unwrap();
    assert!(fetch(&mut stream, "/healthz").await.ends_with("ok"));
}

/// A certificate and its key as PEM.
fn pems() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[tokio::test]
async fn certificate_files_are_served_and_reloaded_and_half_written_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let (first, second) = (pems(), pems());
    std::fs::write(&cert, &first.0).unwrap();
    std::fs::write(&key, &first.1).unwrap();
    let tls = Tls::load(TlsSource::Files { cert: cert.clone(), key: key.clone() }, &TlsParameters::default()).unwrap();
    let original = tls.certificate();
    assert!(!tls.reload_now().await.unwrap(), "unchanged files are not news");

    std::fs::write(&cert, &second.0).unwrap();
    let error = tls.reload_now().await.unwrap_err().to_string();
    assert!(error.contains("tls.crt with "), "{error}");
    assert_eq!(tls.certificate(), original, "a certificate without its key is not served");
    std::fs::remove_file(&key).unwrap();
    assert!(tls.reload_now().await.is_err());
    assert_eq!(tls.certificate(), original, "nor is one whose key is gone");

    std::fs::write(&key, &second.1).unwrap();
    // The server's own check of the files: the first is immediate.
    let (addr, _cancel) = start_https(tls).await;
    let renewed = rustls::pki_types::pem::PemObject::from_pem_slice(second.0.as_bytes()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut stream = loop {
        match tls_connect(addr, &renewed, b"http/1.1").await {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    assert!(fetch(&mut stream, "/livez/ping").await.ends_with("ok"));
    assert!(tls_connect(addr, &original, b"http/1.1").await.is_err(), "the old certificate is gone");
}

#[tokio::test]
async fn unusable_certificate_files_stop_the_start_with_a_sentence_that_names_them() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let (mine, other) = (pems(), pems());
    let rows: [(&str, Option<&str>, Option<&str>, &str); 5] = [
        ("no certificate file", None, Some(&mine.1), "cannot read the TLS file "),
        ("no key file", Some(&mine.0), None, "cannot read the TLS file "),
        ("a certificate that is none", Some("hello"), Some(&mine.1), "tls.crt: holds no certificate"),
        ("a key that is none", Some(&mine.0), Some("hello"), "tls.key: "),
        ("a key of another certificate", Some(&mine.0), Some(&other.1), "tls.crt with "),
    ];
    for (name, cert_text, key_text, want) in rows {
        for (path, text) in [(&cert, cert_text), (&key, key_text)] {
            let _ = std::fs::remove_file(path);
            if let Some(text) = text {
                std::fs::write(path, text).unwrap();
            }
        }
        let error = Tls::load(TlsSource::Files { cert: cert.clone(), key: key.clone() }, &TlsParameters::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(want), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_replaced_certificate_serves_new_connections_and_leaves_the_open_ones() {
    let first = pems();
    let tls = Tls::load(TlsSource::Handed, &TlsParameters::default()).unwrap();
    let slot = tls.slot();
    slot.install(first.0.as_bytes(), first.1.as_bytes()).unwrap();
    let old = tls.certificate();
    let (addr, _cancel) = start_https(tls).await;
    let mut open = tls_connect(addr, &old, b"http/1.1").await.unwrap();
    let second = pems();
    slot.install(second.0.as_bytes(), second.1.as_bytes()).unwrap();
    open.write_all(b"GET /livez/ping HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    open.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let new = rustls::pki_types::pem::PemObject::from_pem_slice(second.0.as_bytes()).unwrap();
    assert!(tls_connect(addr, &new, b"http/1.1").await.is_ok());
    assert!(tls_connect(addr, &old, b"http/1.1").await.is_err());
}

/// The first message of a client that supports at most `version`, with a cipher suite of that time.
fn old_client_hello(version: u8) -> Vec<u8> {
    let mut hello = vec![3, version];
    hello.extend([7; 32]);
    hello.extend([0, 0, 4, 0xc0, 0x13, 0, 0x2f, 1, 0]);
    let length = u8::try_from(hello.len()).unwrap();
    let mut record = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
    record.extend(hello);
    record
}

#[tokio::test]
async fn only_allowed_tls_versions_and_cipher_suites_are_negotiated() {
    use rustls::version::{TLS12, TLS13};
    const ALL: &[&str] = &[];
    let start = async |min_version, cipher_suites: &[&str]| {
        let cipher_suites = cipher_suites.iter().map(|name| (*name).to_owned()).collect();
        let parameters = TlsParameters { min_version, cipher_suites, client_certificates: false };
        let tls = Tls::load(TlsSource::SelfSigned { hosts: vec![] }, &parameters).unwrap();
        let certificate = tls.certificate();
        (start_https(tls).await, certificate)
    };
    let chosen = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
    let rows = [
        ("1.2 and 1.3 by default", TlsVersion::Tls12, ALL, true, None),
        ("1.3 alone", TlsVersion::Tls13, ALL, false, None),
        ("a suite of 1.2", TlsVersion::Tls12, &[chosen][..], true, Some(chosen)),
        ("none that 1.2 could use", TlsVersion::Tls12, &["TLS_AES_128_GCM_SHA256"][..], false, None),
        (
            "none that this certificate could use",
            TlsVersion::Tls12,
            &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"][..],
            false,
            None,
        ),
    ];
    for (sentence, min_version, suites, speaks_12, suite) in rows {
        let ((addr, _cancel), certificate) = start(min_version, suites).await;
        let with_13 = tls_connect_as(addr, &certificate, b"http/1.1", &TLS13, None).await;
        assert!(with_13.is_ok(), "{sentence}: 1.3 is always spoken");
        let with_12 = tls_connect_as(addr, &certificate, b"http/1.1", &TLS12, None).await;
        assert_eq!(with_12.is_ok(), speaks_12, "{sentence}");
        if let Some(suite) = suite {
            let negotiated = with_12.unwrap().get_ref().1.negotiated_cipher_suite().unwrap().suite();
            assert_eq!(negotiated.as_str(), Some(suite), "{sentence}");
        }
    }
    let ((addr, _cancel), _) = start(TlsVersion::Tls12, ALL).await;
    for (name, version) in [("SSL 3.0", 0), ("TLS 1.0", 1), ("TLS 1.1", 2)] {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(&old_client_hello(version)).await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer.first(), Some(&21), "{name} is answered with an alert: {answer:?}");
        assert_eq!(answer.get(5), Some(&2), "{name}: a fatal one");
    }
}

#[tokio::test]
async fn client_certificate_is_passed_with_each_request_if_it_is_requested() {
    use rustls::version::{TLS12, TLS13};
    let show = get(async |certificates: Option<axum::Extension<PeerCertificates>>| match certificates {
        None => "nothing".to_owned(),
        Some(axum::Extension(certificates)) => format!("{certificates:?}").len().to_string(),
    });
    let mine = rcgen::generate_simple_self_signed(vec!["anybody".to_owned()]).unwrap();
    for asked in [false, true] {
        let parameters = TlsParameters { client_certificates: asked, ..TlsParameters::default() };
        let tls = Tls::load(TlsSource::SelfSigned { hosts: vec![] }, &parameters).unwrap();
        let certificate = tls.certificate();
        let bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (addr, cancel) = (bound.local_addr(), CancellationToken::new());
        tokio::spawn(bound.serve_https(tls, Router::new().route("/", show.clone()), cancel.clone()));
        for version in [&TLS12, &TLS13] {
            for shown in [None, Some(&mine)] {
                let mut stream = tls_connect_as(addr, &certificate, b"http/1.1", version, shown).await.unwrap();
                let answer = fetch(&mut stream, "/").await;
                let seen = !answer.ends_with("nothing");
                assert_eq!(seen, asked && shown.is_some(), "asked {asked}, shown {}: {answer}", shown.is_some());
            }
        }
        cancel.cancel();
    }
}

#[tokio::test]
async fn unspecified_address_listens_on_ipv4_and_ipv6() {
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    for unspecified in ["0.0.0.0:0", "[::]:0"] {
        let bound = bind(unspecified.parse().unwrap()).await.unwrap();
        let port = bound.local_addr().port();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok(), "{unspecified}");
        assert!(!has_ipv6 || TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.is_ok(), "{unspecified}");
        let addr = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        let again = bind(addr).await.unwrap_err().to_string();
        assert!(again.starts_with(&format!("cannot listen on {addr}: ")), "{again}");
    }
    let bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let port = bound.local_addr().port();
    assert!(TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.is_err(), "one address is that one alone");
}
