use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use apimachinery::causes::with_causes;
use axum::extract::ConnectInfo;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use http::HeaderMap;
use kube::config::Kubeconfig;
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::super::LONGEST_IN_SOCKET;
use super::super::connection::tcp;
use super::super::kubeconfig::{host_label, kube_config, named_proxy};
use super::*;
use crate::options::{Command, Environment};
use crate::server::{Tls, TlsParameters, TlsSource, bind};

struct Nowhere;

impl Environment for Nowhere {
    fn pod_namespace(&self) -> Option<String> {
        None
    }
}

fn options(args: &[&str]) -> Config {
    match crate::options::parse([PROGRAM].iter().chain(args), &Nowhere) {
        Ok(Command::Run(config)) => *config,
        other => panic!("{args:?} gives {other:?}"),
    }
}

/// A kubeconfig with two contexts, of which `second` is the current one.
fn kubeconfig(server: &str, cluster: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: second\n\
         contexts:\n\
         - {{name: first, context: {{cluster: a, user: me}}}}\n\
         - {{name: second, context: {{cluster: b, user: me, namespace: mine}}}}\n\
         clusters:\n\
         - {{name: a, cluster: {{server: 'https://wrong:1'}}}}\n\
         - {{name: b, cluster: {{server: '{server}'{cluster}}}}}\n\
         users:\n\
         - {{name: me, user: {{token: secret}}}}\n"
    )
}

fn write(directory: &tempfile::TempDir, text: &str) -> String {
    let file = directory.path().join("kubeconfig");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What the lease says of open creates leaves a socket this time: the system begins to count a second after it sent.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn socket_gives_up_what_it_cannot_deliver_within_the_time_that_the_lease_leaves_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server: http::Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let connection = tcp().oneshot(server).await.unwrap();
    let given = socket2::SockRef::from(connection.inner()).tcp_user_timeout().unwrap();
    assert_eq!(given, Some(LONGEST_IN_SOCKET / 2));
}

/// A watch sends nothing, so a server that is gone without a word would be found after minutes.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connection_on_which_nothing_comes_is_probed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server: http::Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let connection = tcp().oneshot(server).await.unwrap();
    let socket = socket2::SockRef::from(connection.inner());
    assert!(socket.keepalive().unwrap());
    let times = (socket.tcp_keepalive_time().unwrap(), socket.tcp_keepalive_interval().unwrap());
    assert_eq!(times, (Duration::from_secs(15), Duration::from_secs(5)));
}

#[tokio::test]
#[allow(clippy::type_complexity)] // A table's row.
async fn the_servers_address_comes_from_the_right_place() {
    let directory = tempfile::tempdir().unwrap();
    let insecure = ", insecure-skip-tls-verify: true";
    let rows: Vec<(&str, Option<String>, &[&str], &str, &str)> = vec![
        (
            "the current context's cluster",
            Some(kubeconfig("https://10.0.0.1:6443", "")),
            &[],
            "https://10.0.0.1:6443/",
            "10.0.0.1:6443",
        ),
        (
            "a master overrides it",
            Some(kubeconfig("https://10.0.0.1:6443", "")),
            &["--master=https://other"],
            "https://other/",
            "other",
        ),
        (
            "a master stands in for a missing address",
            Some(kubeconfig("", "")),
            &["--master=http://other"],
            "http://other/",
            "other",
        ),
        (
            "an address without scheme is plain",
            Some(kubeconfig("10.0.0.1:8080", "")),
            &[],
            "http://10.0.0.1:8080/",
            "10.0.0.1:8080",
        ),
        (
            "unless TLS is configured",
            Some(kubeconfig("10.0.0.1:6443", insecure)),
            &[],
            "https://10.0.0.1:6443/",
            "10.0.0.1:6443",
        ),
        (
            "a user and a password are dropped",
            Some(kubeconfig("https://me:secret@10.0.0.1:6443", "")),
            &[],
            "https://10.0.0.1:6443/",
            "10.0.0.1:6443",
        ),
        (
            "a path before the API is kept",
            Some(kubeconfig("https://proxy/k8s/1", "")),
            &[],
            "https://proxy/k8s/1",
            "proxy",
        ),
        ("a master alone", None, &["--master=http://[::1]:8001"], "http://[::1]:8001/", "[::1]:8001"),
        (
            "a master alone without scheme",
            None,
            &["--master=localhost:8080"],
            "http://localhost:8080/",
            "localhost:8080",
        ),
    ];
    for (sentence, file, args, url, host) in rows {
        let mut args = args.to_vec();
        let file = file.map(|text| format!("--kubeconfig={}", write(&directory, &text)));
        args.extend(file.as_deref());
        let kube = kube_config(&options(&args), PROGRAM).await.unwrap();
        assert_eq!((kube.cluster_url.to_string().as_str(), host_label(&kube).as_str()), (url, host), "{sentence}");
        assert!(!kube.default_retry, "{sentence}: a request is sent once");
        assert_eq!(kube.read_timeout, None, "{sentence}: a quiet watch lives");
        assert!(kube.connect_timeout.is_some() && kube.write_timeout.is_some(), "{sentence}");
    }
}

#[tokio::test]
async fn the_host_label_in_a_pod_carries_the_port() {
    let mut kube = kube::Config::new("https://10.96.0.1".parse().unwrap());
    assert_eq!(host_label(&kube), "10.96.0.1");
    kube.auth_info.token_file = Some("token".to_owned());
    kube.root_cert_file = Some("ca.crt".into());
    assert_eq!(host_label(&kube), "10.96.0.1:443");
}

#[tokio::test]
async fn a_proxy_counts_only_if_the_kubeconfig_names_it() {
    let named: Kubeconfig = serde_json::from_value(serde_json::json!({
        "clusters": [{ "name": "a", "cluster": { "server": "https://x", "proxy-url": "http://proxy:3128" } }],
    }))
    .unwrap();
    let proxy = |text: &str| Some(text.parse::<http::Uri>().unwrap());
    assert_eq!(named_proxy(proxy("http://proxy:3128"), &named.clusters), proxy("http://proxy:3128"));
    assert_eq!(named_proxy(proxy("http://environment:3128"), &named.clusters), None);
    assert_eq!(named_proxy(None, &named.clusters), None);
}

#[tokio::test]
async fn proxy_in_the_kubeconfig_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(&directory, &kubeconfig("https://x", ", proxy-url: 'http://proxy:3128'"));
    let error = connect(&options(&["--kubeconfig", &file]), None).await.err().unwrap().to_string();
    assert!(error.starts_with("making a client for https://x/: ") && error.contains("proxy:3128"), "{error}");
}

#[tokio::test]
async fn a_request_does_not_wait_for_the_acknowledgement_of_what_was_sent_before() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: http::Uri = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let stream = connection::tcp().oneshot(uri).await.unwrap();
    assert!(stream.inner().nodelay().unwrap(), "TCP_NODELAY is set");
}

#[tokio::test]
async fn unusable_setting_is_reported_with_its_cause() {
    let directory = tempfile::tempdir().unwrap();
    let missing_file = ", certificate-authority: missing.pem";
    let rows: Vec<(&str, String, &[&str])> = vec![
        ("a file that is no YAML", "\tno: [".to_owned(), &["failed to parse kubeconfig YAML"]),
        ("an empty file", String::new(), &["current context"]),
        (
            "a current context that does not exist",
            kubeconfig("https://x", "").replace("current-context: second", "current-context: third"),
            &["third"],
        ),
        ("a cluster without an address", kubeconfig("", ""), &["cluster url is missing"]),
        ("an address that is none", kubeconfig("http://a b", ""), &["failed to parse cluster url"]),
        (
            "a CA file that does not exist",
            kubeconfig("https://x", missing_file),
            &["certificate authority", "missing.pem", "No such file"],
        ),
        (
            "a CA that is none",
            kubeconfig("https://x", ", certificate-authority-data: '!'"),
            &["certificate authority", "base64"],
        ),
    ];
    for (sentence, text, parts) in rows {
        let path = write(&directory, &text);
        let error = connect(&options(&["--kubeconfig", &path]), None).await.err().unwrap();
        let error = error.to_string();
        let start = format!("--kubeconfig: the file {path} cannot be used: ");
        assert!(error.starts_with(&start), "{sentence}: {error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{sentence}: {error}");
    }
    let absent = directory.path().join("absent");
    let error = connect(&options(&["--kubeconfig", absent.to_str().unwrap()]), None).await.err().unwrap();
    let want =
        format!("--kubeconfig: the file {} cannot be used: No such file or directory (os error 2)", absent.display());
    assert_eq!(error.to_string(), want);
}

#[tokio::test]
async fn a_client_certificate_that_does_not_exist_is_named_too() {
    let directory = tempfile::tempdir().unwrap();
    let text =
        kubeconfig("https://x", "").replace("token: secret", "client-certificate: gone.pem, client-key: gone.pem");
    let file = write(&directory, &text);
    let error = connect(&options(&["--kubeconfig", &file]), None).await.err().unwrap().to_string();
    assert!(error.starts_with("making a client for https://x/: "), "{error}");
    assert!(error.contains("gone.pem") && error.contains("No such file"), "{error}");
}

#[tokio::test]
async fn outside_a_pod_and_without_flags_there_is_nothing_to_connect_to() {
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() || Path::new("/var/run/secrets/kubernetes.io").exists() {
        eprintln!("skipped: the test itself runs in a Pod");
        return;
    }
    let error = connect(&options(&[]), None).await.err().unwrap().to_string();
    let start = "neither --kubeconfig nor --master is given, and there is no in-cluster configuration: ";
    assert!(error.starts_with(start), "{error}");
}

/// A plain server on a free port; returns its address.
async fn serve(router: axum::Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

#[tokio::test]
async fn a_request_is_sent_once_with_credentials_and_a_user_agent() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = Arc::clone(&seen);
        move |headers: HeaderMap| async move {
            let header = |name: &str| headers.get(name).map_or("none", |value| value.to_str().unwrap()).to_owned();
            seen.lock().push((header("user-agent"), header("authorization")));
            (http::StatusCode::SERVICE_UNAVAILABLE, [("Retry-After", "1")], "starting")
        }
    };
    let address = serve(axum::Router::new().route("/x", get(handler))).await;
    let directory = tempfile::tempdir().unwrap();
    let file = write(&directory, &kubeconfig(&format!("http://{address}"), ""));
    let config = options(&["--kubeconfig", &file]);

    let notes = Arc::new(Notes::default());
    let client = connect(&config, Some(notes.clone())).await.unwrap();
    assert_eq!(client.default_namespace(), "mine");
    let error = client.request_text(request("GET", "/x")).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if retry_after(&status) == Some(Duration::from_secs(1))));
    let elector = connect_for_leader_election(&config, None).await.unwrap();
    elector.request_text(request("GET", "/x")).await.unwrap_err();

    let name = format!("cronjob-controller/{}", env!("CARGO_PKG_VERSION"));
    let token = "Bearer secret".to_owned();
    assert_eq!(*seen.lock(), [(name.clone(), token.clone()), (format!("{name} leader-election"), token)]);
    let notes = notes.take();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with(&format!("GET {address} 503 ")), "{notes:?}");
}

#[tokio::test]
async fn burst_reuses_connections_of_the_previous_one() {
    const BURST: usize = 16;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let together = Arc::new(Barrier::new(BURST));
    let handler = {
        let seen = Arc::clone(&seen);
        move |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
            seen.lock().push(peer);
            together.wait().await;
            "ok"
        }
    };
    let address = serve(axum::Router::new().route("/x", get(handler))).await;
    let client = connect(&options(&[&format!("--master=http://{address}")]), None).await.unwrap();
    let mut bursts = Vec::new();
    for _ in 0..3 {
        let burst = (0..BURST).map(|_| client.request_text(request("GET", "/x")));
        assert!(join_all(burst).await.iter().all(Result::is_ok));
        bursts.push(seen.lock().drain(..).collect::<HashSet<_>>());
    }
    assert_eq!(bursts[0].len(), BURST, "HTTP/1.1: as many connections as requests");
    assert_eq!(bursts[0], bursts[1]);
    assert_eq!(bursts[1], bursts[2]);
}

/// A server with a certificate for a host of that name; its address and the certificate.
async fn serve_tls(host: &str, stop: &CancellationToken) -> (SocketAddr, String) {
    let hosts = vec![host.to_owned()];
    let tls = Tls::load(TlsSource::SelfSigned { hosts }, &TlsParameters::default()).unwrap();
    let certificate = tls.certificate_pem().unwrap();
    let bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = bound.local_addr();
    tokio::spawn(bound.serve_https(tls, axum::Router::new(), stop.clone()));
    (addr, certificate)
}

#[tokio::test]
async fn server_whose_certificate_is_not_trusted_is_named_with_what_to_check() {
    let stop = CancellationToken::new();
    let (addr, certificate) = serve_tls("elsewhere", &stop).await;
    let (_, other) = serve_tls("127.0.0.1", &stop).await;
    let key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::default();
    authority.distinguished_name.push(rcgen::DnType::CommonName, "another");
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let another = authority.self_signed(&key).unwrap().pem();
    let check_authority = "; check the certificate authority of the cluster in the kubeconfig";
    let rows = [
        ("another authority", another, check_authority),
        ("another authority of the same name", other, check_authority),
        ("a server of another name", certificate, "; check the address, which is not in the server's certificate"),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (sentence, authority, advice) in rows {
        let authority = format!(", certificate-authority-data: {}", STANDARD.encode(authority));
        let file = write(&directory, &kubeconfig(&format!("https://{addr}"), &authority));
        let client = connect(&options(&["--kubeconfig", &file]), None).await.unwrap();
        let request = http::Request::get("/version").body(Vec::new()).unwrap();
        let error = with_causes(&client.request_text(request).await.unwrap_err());
        let start = format!("no connection to the API server https://{addr}: ");
        assert!(error.starts_with(&start) && error.ends_with(advice), "{sentence}: {error}");
    }
    stop.cancel();
}
