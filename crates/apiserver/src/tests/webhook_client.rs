//! Webhooks over HTTPS on loopback: trust, timeouts and error messages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Json, RawQuery};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::support::{Server, WIDGETS, widget};
use super::webhooks::{allowed, configured};
use crate::webhook_client::MAX_ANSWER;
use crate::webhooks_over_https;

/// Webhooks on loopback, by the names 127.0.0.1 and hooks.tests.svc.
struct Hooks {
    addr: SocketAddr,
    ca: String,
    _stop: DropGuard,
}

/// Answers every review as a mutating webhook that adds a label.
async fn label(Json(review): Json<Value>) -> Json<Value> {
    let labels = json!([{ "op": "add", "path": "/metadata/labels", "value": { "seen": "yes" } }]);
    Json(allowed(&review, &json!({ "name": "mutatingwebhookconfiguration" }), &labels))
}

/// Serves one connection. A client that does not trust the certificate ends it in the handshake.
async fn answer(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let connection = auto::Builder::new(TokioExecutor::new());
    let _ = connection.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}

impl Hooks {
    /// Webhooks whose certificate is its own CA, as operators make one for themselves.
    async fn self_signed(router: Router) -> Self {
        let mut own = CertificateParams::new(vec!["127.0.0.1".to_owned(), "hooks.tests.svc".to_owned()]).unwrap();
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let cert = own.self_signed(&key).unwrap();
        Self::serve(router, &cert, &key, cert.pem()).await
    }

    async fn start(router: Router) -> Self {
        let mut ca = CertificateParams::new(Vec::<String>::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned(), "hooks.tests.svc".to_owned()]).unwrap();
        let cert = leaf.signed_by(&key, &issuer).unwrap();
        Self::serve(router, &cert, &key, issuer.pem()).await
    }

    async fn serve(router: Router, cert: &Certificate, key: &KeyPair, ca: String) -> Self {
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, cancel) = (listener.local_addr().unwrap(), CancellationToken::new());
        tokio::spawn(cancel.clone().run_until_cancelled_owned(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream, acceptor.clone(), router.clone()));
            }
        }));
        Self { addr, ca, _stop: cancel.drop_guard() }
    }

    fn url(&self, path: &str) -> Value {
        json!({ "url": format!("https://{}{path}", self.addr), "caBundle": STANDARD.encode(&self.ca) })
    }

    fn service(&self, name: &str, port: Option<u16>) -> Value {
        let service = json!({ "name": name, "namespace": "tests", "path": "/label", "port": port });
        json!({ "service": service, "caBundle": STANDARD.encode(&self.ca) })
    }
}

/// A server that calls webhooks by this configuration. The Services `hooks` and `others` have their endpoints at `hooks`.
async fn server(hooks: &Hooks, more: &Value) -> Server {
    let server = configured(more).await;
    let addr = hooks.addr;
    let resolve = move |namespace: &str, name: &str, port: u16| {
        (namespace == "tests" && ["hooks", "others"].contains(&name) && [443, 8443].contains(&port)).then_some(addr)
    };
    server.api.set_webhook_caller(webhooks_over_https(Arc::new(resolve)));
    server
}

#[tokio::test]
async fn a_webhook_is_called_by_url_or_as_its_service() {
    let hooks = Hooks::start(Router::new().route("/label", post(label))).await;
    let rows = [
        ("by URL", hooks.url("/label")),
        ("by Service", hooks.service("hooks", None)),
        ("by another port of it", hooks.service("hooks", Some(8443))),
    ];
    for (sentence, config) in rows {
        let server = server(&hooks, &json!({ "clientConfig": config })).await;
        let stored = server.post(WIDGETS, &widget("a")).await.expect(201);
        assert_eq!(stored["metadata"]["labels"]["seen"], "yes", "{sentence}");
    }
}

#[tokio::test]
async fn certificate_that_is_its_own_ca_is_trusted_for_its_names_if_the_bundle_has_it() {
    let hooks = Hooks::self_signed(Router::new().route("/label", post(label))).await;
    let stranger = Hooks::self_signed(Router::new()).await;
    let strange = json!({ "url": format!("https://{}/label", hooks.addr), "caBundle": STANDARD.encode(&stranger.ca) });
    let rows = [
        ("by URL", hooks.url("/label"), true),
        ("by Service", hooks.service("hooks", None), true),
        ("by a name that it does not have", hooks.service("others", None), false),
        ("another certificate in the bundle", strange, false),
    ];
    for (sentence, config, is_trusted) in rows {
        let server = server(&hooks, &json!({ "clientConfig": config })).await;
        let reply = server.post(WIDGETS, &widget("a")).await;
        assert_eq!(reply.code == 201, is_trusted, "{sentence}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_webhook_that_cannot_be_asked_counts_as_its_failure_policy_says_and_the_reason_is_told() {
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "too much", "code": 413 });
    let routes = Router::new()
        .route("/slow", post(async || tokio::time::sleep(Duration::from_secs(60)).await))
        .route("/status", post(async move || (http::StatusCode::PAYLOAD_TOO_LARGE, Json(status))))
        .route("/text", post(async || (http::StatusCode::BAD_REQUEST, "no review")))
        .route("/form", post(async || (http::StatusCode::UNSUPPORTED_MEDIA_TYPE, "another form\n")))
        .route("/broken", post(async || (http::StatusCode::INTERNAL_SERVER_ERROR, "oh \"no\"")))
        .route("/endless", post(async || " ".repeat(MAX_ANSWER + 1)))
        .route("/html", post(async || "<html>"))
        .route("/label", post(label));
    let hooks = Hooks::start(routes).await;
    let stranger = Hooks::start(Router::new()).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let trusting =
        |ca: &str| json!({ "url": format!("https://{}/label", hooks.addr), "caBundle": STANDARD.encode(ca) });
    let posted = |path: &str, why: &str| format!("Post \"https://{}{path}?timeout=1s\": {why}", hooks.addr);
    let unknown = posted("/label", "tls: failed to verify certificate: x509: certificate signed by unknown authority");
    let rows = [
        (
            "no server listens",
            json!({ "url": format!("https://{free}/label"), "caBundle": STANDARD.encode(&hooks.ca) }),
            format!("Post \"https://{free}/label?timeout=1s\": dial tcp {free}: connect: connection refused"),
        ),
        ("another CA", trusting(&stranger.ca), unknown.clone()),
        ("no CA", trusting(""), unknown),
        (
            "another name",
            hooks.service("others", None),
            "Post \"https://others.tests.svc:443/label?timeout=1s\": invalid peer certificate: certificate not valid for \
             name \"others.tests.svc\"; certificate is only valid for IpAddress(127.0.0.1) or DnsName(\"hooks.tests.svc\")"
                .to_owned(),
        ),
        (
            "a Service without endpoints",
            hooks.service("absent", None),
            "Post \"https://absent.tests.svc:443/label?timeout=1s\": no endpoints available for service \"absent\""
                .to_owned(),
        ),
        ("no answer", hooks.url("/slow"), posted("/slow", "context deadline exceeded")),
        ("a Status", hooks.url("/status"), "too much".to_owned()),
        ("400 and text", hooks.url("/text"), "the server rejected our request for an unknown reason".to_owned()),
        ("404", hooks.url("/none"), "the server could not find the requested resource".to_owned()),
        ("415 and text", hooks.url("/form"), "another form".to_owned()),
        (
            "500 and text",
            hooks.url("/broken"),
            "an error on the server (\"oh \\\"no\\\"\") has prevented the request from succeeding".to_owned(),
        ),
        (
            "an answer without end",
            hooks.url("/endless"),
            format!(
                "unexpected error when reading response body. Please retry. Original error: the answer is larger than \
                 {MAX_ANSWER} bytes"
            ),
        ),
        (
            "no JSON",
            hooks.url("/html"),
            "couldn't get version/kind; json parse error: expected value at line 1 column 1".to_owned(),
        ),
        (
            "no HTTPS",
            json!({ "url": "http://127.0.0.1/" }),
            "webhook configuration must have either service or URL".to_owned(),
        ),
    ];
    for (sentence, config, want) in rows {
        let limit = if sentence == "no answer" { 1 } else { 10 };
        let want = want.replace("?timeout=1s", &format!("?timeout={limit}s"));
        let strict = json!({ "clientConfig": config, "timeoutSeconds": limit, "failurePolicy": "Fail" });
        let reply = server(&hooks, &strict).await.post(WIDGETS, &widget("a")).await;
        let want = format!("failed calling webhook \"mutatingwebhookconfiguration\": failed to call webhook: {want}");
        assert_eq!((reply.code, reply.message()), (500, &*format!("Internal error occurred: {want}")), "{sentence}");
        if sentence != "no answer" {
            let lenient = json!({ "clientConfig": config, "timeoutSeconds": limit, "failurePolicy": "Ignore" });
            server(&hooks, &lenient).await.post(WIDGETS, &widget("a")).await.expect(201);
        }
    }
}

#[tokio::test]
async fn connections_are_kept_until_the_configuration_changes_and_the_time_limit_is_told() {
    let queries = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&queries);
    let count = post(async move |RawQuery(query): RawQuery, review| {
        assert_eq!(query.as_deref(), Some("timeout=10s"), "the default");
        seen.fetch_add(1, Ordering::Relaxed);
        label(review).await
    });
    let hooks = Hooks::start(Router::new().route("/label", count)).await;
    let server = server(&hooks, &json!({ "clientConfig": hooks.url("/label") })).await;
    for name in ["a", "b", "c"] {
        server.post(WIDGETS, &widget(name)).await.expect(201);
    }
    assert_eq!(queries.load(Ordering::Relaxed), 6);

    // A webhook that is no longer trusted is not called over an old connection either.
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/tests");
        let mut object = server.get(&path).await.expect(200);
        object["webhooks"][0]["clientConfig"]["caBundle"] = json!(STANDARD.encode(""));
        server.put(&path, &object).await.expect(200);
    }
    let reply = server.post(WIDGETS, &widget("d")).await;
    assert!(reply.message().ends_with("x509: certificate signed by unknown authority"), "{}", reply.message());
    assert_eq!(queries.load(Ordering::Relaxed), 6);
}
