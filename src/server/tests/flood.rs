//! Floods over real sockets: unauthenticated clients of every form, and a health prober beside them.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicUsize;

use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::Body as ClientBody;
use tokio::task::JoinSet;
use tower::service_fn;

use super::super::delegation::{Reviewers, Ttls};
use super::*;

/// The secure port behind an API server that takes `delay` for each review, and the port for probes.
struct Flooded {
    secure: SocketAddr,
    health: SocketAddr,
    certificate: CertificateDer<'static>,
    reviews: Arc<AtomicUsize>,
    _stop: tokio_util::sync::DropGuard,
}

impl Flooded {
    async fn start(delay: Duration) -> Self {
        let reviews = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&reviews);
        let api_server = service_fn(move |_: http::Request<ClientBody>| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(delay).await;
                let refusal = br#"{"kind": "Status", "status": "Failure", "code": 403, "message": "no"}"#;
                let response = http::Response::builder().status(403).body(ClientBody::from(refusal.to_vec()));
                Ok::<_, Infallible>(response.unwrap())
            }
        });
        let client = kube::Client::new(api_server, "default");
        let reviewers = Reviewers { authentication: client.clone(), audiences: Vec::new(), authorization: client };
        let ttl = Duration::from_secs(10);
        let times = Ttls { token: ttl, authorized: ttl, unauthorized: ttl };
        let always_allowed = ["/healthz", "/livez", "/readyz"].map(str::to_owned);
        let delegation = Delegation::new(&always_allowed, None, reviewers, times);
        let endpoints = Endpoints { livez: vec![HealthCheck::ping()], ..endpoints() };

        let tls = Tls::load(TlsSource::SelfSigned { hosts: vec![] }, &TlsParameters::default()).unwrap();
        let (certificate, cancel) = (tls.certificate(), CancellationToken::new());
        let loopback = || "127.0.0.1:0".parse().unwrap();
        let (secure, health) = (bind(loopback()).await.unwrap(), bind(loopback()).await.unwrap().for_probes());
        let flooded = Self {
            secure: secure.local_addr(),
            health: health.local_addr(),
            certificate,
            reviews,
            _stop: cancel.clone().drop_guard(),
        };
        let protected = delegation.protect(router(endpoints.clone(), Which::All));
        tokio::spawn(secure.serve_https(tls, protected, cancel.clone()));
        tokio::spawn(health.serve_http(router(endpoints, Which::HealthOnly), cancel));
        flooded
    }

    /// Sends requests to the secure port, of both protocols and without credentials, until it is dropped.
    fn ask_for_ever(&self) -> JoinSet<()> {
        let mut flood = JoinSet::new();
        for client in 0..24 {
            flood.spawn(ask_for_ever(self.secure, self.certificate.clone(), client));
        }
        for _ in 0..8 {
            flood.spawn(ask_in_streams_for_ever(self.secure, self.certificate.clone()));
        }
        flood
    }
}

/// Sends requests on one connection after the other, as many as each accepts.
async fn ask_for_ever(secure: SocketAddr, certificate: CertificateDer<'static>, client: usize) {
    for number in 0_usize.. {
        let Ok(mut stream) = tls_connect(secure, &certificate, b"http/1.1").await else {
            sleep(Duration::from_millis(5)).await;
            continue;
        };
        for request in 0.. {
            let path = if request % 2 == 0 { "/livez" } else { "/metrics" };
            let token = format!("{client}-{number}-{request}");
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
            let mut answer = [0; 1024];
            if stream.write_all(request.as_bytes()).await.is_err() || !matches!(stream.read(&mut answer).await, Ok(1..))
            {
                break;
            }
        }
    }
}

/// The same with four concurrent requests over HTTP/2.
async fn ask_in_streams_for_ever(secure: SocketAddr, certificate: CertificateDer<'static>) {
    for number in 0_usize.. {
        let Ok(stream) = tls_connect(secure, &certificate, b"h2").await else {
            sleep(Duration::from_millis(5)).await;
            continue;
        };
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let Ok((sender, connection)) = handshake else { continue };
        let connection = tokio::spawn(connection);
        for request in 0.. {
            let ask = |stream: usize| {
                let uri = format!("https://x/metrics/{number}-{request}-{stream}");
                sender.clone().send_request(Request::get(uri).body(Body::empty()).unwrap())
            };
            if futures::future::join_all((0..4).map(ask)).await.iter().any(Result::is_err) {
                break;
            }
        }
        connection.abort();
    }
}

/// Opens connections that send nothing, or too little, and keeps the newest thousand.
async fn hold_for_ever(addr: SocketAddr, sent: &'static [u8]) {
    let mut held = std::collections::VecDeque::new();
    loop {
        if let Ok(mut stream) = TcpStream::connect(addr).await {
            let _ = stream.write_all(sent).await;
            held.push_back(stream);
        }
        if held.len() > 200 {
            held.pop_front();
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Probes as the kubelet does; returns the duration.
async fn probe(health: SocketAddr) -> Duration {
    let started = Instant::now();
    let answer = timeout(Duration::from_secs(5), async {
        let mut stream = TcpStream::connect(health).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    });
    let answer = answer.await.expect("an answer in time");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer:?}");
    started.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_probe_is_answered_while_both_ports_are_flooded() {
    let flooded = Flooded::start(Duration::from_millis(100)).await;
    let mut flood = flooded.ask_for_ever();
    // Half a ClientHello, half a header, and a sequence of requests on the port for probes.
    flood.spawn(hold_for_ever(flooded.secure, b"\x16\x03\x01\x02\x00\x01"));
    flood.spawn(hold_for_ever(flooded.health, b"GET /livez HTTP/1.1\r\nhost: "));
    flood.spawn(hold_for_ever(flooded.health, b""));
    flood.spawn(hold_for_ever(flooded.health, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"));
    let (started, mut probes, mut longest) = (Instant::now(), 0, Duration::ZERO);
    while started.elapsed() < Duration::from_secs(2) {
        longest = longest.max(probe(flooded.health).await);
        probes += 1;
        sleep(Duration::from_millis(20)).await;
    }
    flood.shutdown().await;
    let (seconds, reviews) = (started.elapsed().as_secs_f64(), flooded.reviews.load(Ordering::Relaxed));
    println!("{probes} probes, the longest {longest:?}; {reviews} reviews in {seconds:.1} s");
    // Tokens and accesses have a bucket each.
    #[allow(clippy::cast_precision_loss)]
    let reviews = reviews as f64;
    assert!(
        reviews <= 2.0 * (f64::from(STRANGERS.burst.get()) + STRANGERS.per_second * seconds),
        "{reviews} reviews in {seconds} s"
    );
}

#[tokio::test]
async fn requests_waiting_for_reviews_lock_no_probe_out_of_the_secure_port() {
    let flooded = Flooded::start(Duration::from_secs(3600)).await;
    let mut held = Vec::new();
    for number in 0..LIMITS.connections {
        let mut stream = tls_connect(flooded.secure, &flooded.certificate, b"http/1.1").await.unwrap();
        let request = format!("GET /metrics/{number} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        held.push(stream);
    }
    // Each request arrives before the prober does.
    let wait = async {
        while flooded.reviews.load(Ordering::Relaxed) < 16 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), wait).await.unwrap();
    for _ in 0..20 {
        let mut prober = tls_connect(flooded.secure, &flooded.certificate, b"http/1.1").await.unwrap();
        let answer = timeout(Duration::from_secs(5), fetch(&mut prober, "/livez")).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn connections_above_their_rate_wait_and_are_answered() {
    let mut bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    bound.limits.arrivals = Some(Rate { per_second: 20.0, burst: NonZeroU32::new(2).unwrap() });
    let addr = bound.local_addr();
    tokio::spawn(bound.serve_http(router(endpoints(), Which::All), CancellationToken::new()));
    let started = Instant::now();
    let mut at = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let mut answer = String::new();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        let _ = timeout(Duration::from_secs(10), stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
        at.push(started.elapsed());
    }
    assert!(at[3] >= Duration::from_millis(95), "the fourth of two at once and 20 a second after {:?}", at[3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_probe_of_the_secure_port_is_answered_while_it_is_flooded() {
    let flooded = Flooded::start(Duration::from_millis(100)).await;
    let mut flood = flooded.ask_for_ever();
    let (started, mut longest) = (Instant::now(), Duration::ZERO);
    while started.elapsed() < Duration::from_secs(4) {
        let probe = async {
            let mut prober = tls_connect(flooded.secure, &flooded.certificate, b"http/1.1").await.unwrap();
            fetch(&mut prober, "/livez").await
        };
        let before = Instant::now();
        let answer = timeout(Duration::from_secs(5), probe).await.expect("an answer in time");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        longest = longest.max(before.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    flood.shutdown().await;
    println!("the longest took {longest:?}");
}

#[tokio::test(start_paused = true)]
async fn connection_ends_with_the_answer_429_and_stays_after_any_other() {
    let router = || {
        Router::new()
            .route("/fine", get(async || "fine"))
            .route("/missing", get(async || StatusCode::NOT_FOUND))
            .route("/busy", get(async || StatusCode::TOO_MANY_REQUESTS))
    };
    for (path, ends) in [("/fine", false), ("/missing", false), ("/busy", true)] {
        let mut client = connect(Protocol::Http1, router(), &CancellationToken::new());
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let started = Instant::now();
        read_all(&mut client).await;
        assert_eq!(started.elapsed() < Duration::from_secs(1), ends, "{path}: open for {:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn probe_gets_one_answer_a_connection() {
    let (mut client, server) = duplex(1024);
    let live = router(endpoints(), Which::HealthOnly);
    tokio::spawn(serve_connection(server, test_client(Protocol::Http1), live, PROBES, CancellationToken::new()));
    let started = Instant::now();
    client.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok"), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(1), "open for {:?}", started.elapsed());
}
