//! Scenarios about the secure port: access control, and protection against hostile clients.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::BodyExt;
use rcgen::{CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use testkit::driver::{SOON, eventually, request};
use testkit::fixture::account::token;
use testkit::fixture::control_plane::local_client;
use testkit::world::World;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A ClusterRole that may get /metrics, and its binding to `subjects`.
async fn metrics_reader(client: &kube::Client, name: &str, subjects: &Value) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    });
    request(client, Method::POST, &format!("{RBAC}/clusterroles"), Some(&role)).await.unwrap();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": subjects,
    });
    request(client, Method::POST, &format!("{RBAC}/clusterrolebindings"), Some(&binding)).await.unwrap();
}

/// A new ServiceAccount and its token for the API server.
async fn account(client: &kube::Client, namespace: &str, name: &str) -> String {
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    request(client, Method::POST, &accounts, Some(&account)).await.unwrap();
    token(client, namespace, name, &[]).await.unwrap()
}

/// Status and body of a GET with this token, or without one if it is empty.
async fn get(port: u16, token: &str, path: &str) -> (u16, String) {
    let client = local_client(port, token).unwrap();
    let request = Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

pub async fn asks(world: Arc<World>) -> String {
    let client = world.plane.admin();
    let ns = world.namespace("guarded").await;
    let scraper = account(&client, &ns.name, "scraper").await;
    let other = account(&client, &ns.name, "other").await;
    let subject = json!([{"kind": "ServiceAccount", "name": "scraper", "namespace": ns.name}]);
    metrics_reader(&client, "guarded-metrics-reader", &subject).await;
    let port = world.shared().port;
    // The API server has to see the binding first.
    eventually("the scraper's right", SOON, || async {
        (get(port, &scraper, "/metrics").await.0 == 200).then_some(())
    })
    .await;
    let forbidden = |user: &str, path: &str| format!("forbidden: User \"{user}\" cannot get path \"{path}\"");
    let name = |account: &str| format!("system:serviceaccount:{}:{account}", ns.name);
    let rows = [
        ("who may", scraper.as_str(), "/metrics", 200, None),
        ("who may not", &other, "/metrics", 403, Some(forbidden(&name("other"), "/metrics"))),
        (
            "a right to one path is none to another",
            &scraper,
            "/configz",
            403,
            Some(forbidden(&name("scraper"), "/configz")),
        ),
        ("no credentials", "", "/metrics", 403, Some(forbidden("system:anonymous", "/metrics"))),
        ("an unknown token", "forged", "/metrics", 401, Some("Unauthorized".to_owned())),
        ("a token that was changed", &format!("{scraper}x"), "/metrics", 401, Some("Unauthorized".to_owned())),
        ("who may not see the metrics may see the health", &other, "/healthz", 200, None),
        ("health checks need no credentials", "", "/healthz", 200, None),
    ];
    for (sentence, token, path, status, message) in &rows {
        let (found, body) = get(port, token, path).await;
        assert_eq!(found, *status, "{sentence}: {body}");
        if let Some(message) = message {
            let object: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(object["message"], **message, "{sentence}");
            assert_eq!((&object["kind"], &object["code"]), (&json!("Status"), &json!(status)), "{sentence}");
        } else if *path == "/metrics" {
            assert!(body.contains("workqueue_depth"), "{sentence}: {body}");
        }
    }
    format!("{} answers", rows.len())
}

/// A certificate for this machine and its key, PEM.
fn serving_certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn write_certificate(directory: &Path, (cert, key): &(String, String)) {
    std::fs::write(directory.join("tls.crt"), cert).unwrap();
    std::fs::write(directory.join("tls.key"), key).unwrap();
}

/// A client's certificate and key.
type Shown = (CertificateDer<'static>, PrivatePkcs8KeyDer<'static>);

/// A CA (PEM), and the certificate that it signed for a client of this name.
fn client_ca(name: &str) -> (String, Shown) {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &ca).unwrap();
    (ca.pem(), (certificate.der().clone(), key.serialize_der().into()))
}

/// A connection of a client that trusts exactly this certificate.
async fn connect(port: u16, trusted: &str, shown: Option<&Shown>) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder().with_root_certificates(roots);
    let config = match shown {
        None => config.with_no_client_auth(),
        Some((cert, key)) => config.with_client_auth_cert(vec![cert.clone()], key.clone_key().into()).unwrap(),
    };
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

/// Sends the rest of a request, and reads the status and the whole answer.
async fn exchange(stream: &mut TlsStream<TcpStream>, sent: &str) -> std::io::Result<u16> {
    // A server may refuse a long request before it has read all of it, and close the connection after its answer.
    let written = stream.write_all(sent.as_bytes()).await;
    let mut answer = Vec::new();
    let head = loop {
        if let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return written.and(Err(std::io::ErrorKind::UnexpectedEof.into()));
        }
    };
    let text = String::from_utf8_lossy(&answer[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0_usize);
    let missing = (head + length).saturating_sub(answer.len());
    stream.read_exact(&mut vec![0; missing]).await?;
    Ok(text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0))
}

const HEALTHZ: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// More clients than connection slots, half of them with a handshake and the beginning of a request, and a health
/// prober.
async fn crowd(port: u16, trusted: &str) -> Duration {
    let mut silent = Vec::new();
    let mut slow = Vec::new();
    let mut longest = Duration::ZERO;
    for _ in 0..100 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        let mut stream = connect(port, trusted, None).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: l").await.unwrap();
        slow.push(stream);
        let started = Instant::now();
        let mut prober = connect(port, trusted, None).await.unwrap();
        assert_eq!(exchange(&mut prober, HEALTHZ).await.unwrap(), 200);
        longest = longest.max(started.elapsed());
    }
    assert!(exchange(&mut slow[0], "ocalhost\r\n\r\n").await.is_err(), "the first had to make room");
    assert_eq!(exchange(&mut slow[99], "ocalhost\r\n\r\n").await.unwrap(), 200, "the last is still welcome");
    longest
}

/// A client that supports at most TLS 1.1 gets an alert about the version.
async fn old_client(port: u16) {
    let mut hello = vec![3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x13, 1, 0]);
    let length = u8::try_from(hello.len()).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(&[22, 3, 1, 0, length + 4, 1, 0, 0, length]).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!((answer.first(), answer.get(5)), (Some(&21), Some(&2)), "a fatal alert: {answer:?}");
}

/// Replaces the certificate under a connection with a request every second; returns the number of requests.
async fn rotate(port: u16, directory: &Path, old: &str) -> usize {
    let mut open = connect(port, old, None).await.unwrap();
    assert_eq!(exchange(&mut open, HEALTHZ).await.unwrap(), 200);
    let new = serving_certificate();
    write_certificate(directory, &new);
    for requests in 1..90 {
        assert_eq!(exchange(&mut open, HEALTHZ).await.unwrap(), 200, "the open connection stays");
        if connect(port, &new.0, None).await.is_ok() {
            assert!(connect(port, old, None).await.is_err(), "one certificate at a time");
            assert_eq!(exchange(&mut open, HEALTHZ).await.unwrap(), 200, "the open connection stays");
            return requests;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the new certificate is not served after 90 s");
}

pub async fn holds(world: Arc<World>) -> String {
    let directory = tempfile::tempdir().unwrap();
    let certificate = serving_certificate();
    write_certificate(directory.path(), &certificate);
    let (ca, jane) = client_ca("jane");
    let (_, stranger) = client_ca("jane");
    std::fs::write(directory.path().join("ca.crt"), ca).unwrap();
    let file = |flag: &str, name: &str| format!("--{flag}={}", directory.path().join(name).display());
    let admin = world.plane.admin_kubeconfig();
    let args = [
        // Another controller works on the other scenarios' namespaces.
        "--namespace=held".to_owned(),
        file("tls-cert-file", "tls.crt"),
        file("tls-private-key-file", "tls.key"),
        file("client-ca-file", "ca.crt"),
        format!("--authentication-kubeconfig={}", admin.display()),
        format!("--authorization-kubeconfig={}", admin.display()),
        // As in the Deployment.
        "--authentication-token-audiences=cronjob-controller".to_owned(),
    ];
    world.namespace("held").await;
    let for_api_server = account(&world.plane.admin(), "held", "scraper").await;
    let for_metrics = token(&world.plane.admin(), "held", "scraper", &["cronjob-controller"]).await.unwrap();
    let subjects = json!([
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"},
        {"kind": "ServiceAccount", "name": "scraper", "namespace": "held"},
    ]);
    metrics_reader(&world.plane.admin(), "held-metrics-reader", &subjects).await;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let controller = world.start_controller("held", &args).await.unwrap();
    let (port, trusted) = (controller.port, certificate.0.as_str());

    let metrics = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    eventually("jane's right", SOON, || async {
        let mut stream = connect(port, trusted, Some(&jane)).await.unwrap();
        (exchange(&mut stream, metrics).await.unwrap() == 200).then_some(())
    })
    .await;
    let filler = "x".repeat(64 << 10);
    let oversized = format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nfiller: {filler}\r\n\r\n");
    let bearing =
        |token: &str| format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    let with_body = "POST /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10000000000\r\n\r\n";
    for (sentence, shown, sent, status) in [
        ("a certificate of another CA", Some(&stranger), metrics, 401),
        ("no certificate", None, metrics, 403),
        ("a token for the metrics", None, &bearing(&for_metrics), 200),
        ("the same account's token for the API server", None, &bearing(&for_api_server), 401),
        ("a header of 64 KiB", None, oversized.as_str(), 431),
        ("a body", None, with_body, 413),
    ] {
        let mut stream = connect(port, trusted, shown).await.unwrap();
        assert_eq!(exchange(&mut stream, sent).await.unwrap(), status, "{sentence}");
    }
    old_client(port).await;
    let longest = crowd(port, trusted).await;
    let requests = rotate(port, directory.path(), trusted).await;
    controller.check_running().unwrap();
    assert!(longest < Duration::from_secs(5), "a prober waited for {longest:?}");
    format!("a prober among 200 slow clients waited {longest:?} at most; {requests} requests during a rotation")
}
