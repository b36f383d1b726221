#![allow(clippy::unwrap_used, clippy::type_complexity)]

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use apimachinery::clock::SystemClock;
use apiserver::{Config, kinds};
use futures::stream;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> Router {
    router(&ApiServer::new(Config::new(Arc::new(SystemClock), kinds::all())), "secret")
}

async fn send(router: &Router, request: Request<Body>) -> (u16, Value) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn request_without_loopback_host_own_origin_content_type_and_token_is_refused() {
    let host = |name: &'static str| ("host", name);
    let (here, token, json) =
        (host("127.0.0.1:6443"), ("authorization", "Bearer secret"), ("content-type", "application/json"));
    let rows: [(&str, &str, &[(&str, &str)], u16); 22] = [
        ("kubectl", "POST", &[here, token, json], 201),
        ("by name", "POST", &[host("LocalHost"), token, json], 201),
        ("over IPv6", "POST", &[host("[::1]:6443"), token, json], 201),
        ("a scheme in small letters", "GET", &[here, ("authorization", "bearer secret")], 200),
        ("a foreign Host", "GET", &[host("evil.example:6443"), token], 403),
        ("a Host that begins like loopback", "GET", &[host("127.0.0.1.evil.example"), token], 403),
        ("a Host that ends like loopback", "GET", &[host("evil.localhost"), token], 403),
        ("a Host with a user", "GET", &[host("localhost@evil.example"), token], 403),
        ("a user before a loopback Host", "GET", &[host("evil.example@localhost"), token], 403),
        ("no Host", "GET", &[token], 403),
        ("a foreign Host for health", "GET /healthz", &[host("evil.example")], 403),
        ("health", "GET /healthz", &[here], 200),
        ("a foreign Origin", "POST", &[here, token, json, ("origin", "http://evil.example")], 403),
        ("an Origin that hides", "POST", &[here, token, json, ("origin", "null")], 403),
        ("another port's Origin", "POST", &[here, token, json, ("origin", "https://127.0.0.1:3000")], 403),
        ("its own Origin", "POST", &[here, token, json, ("origin", "https://127.0.0.1:6443")], 201),
        ("a body without a Content-Type", "POST", &[here, token], 415),
        ("a body of a form", "POST", &[here, token, ("content-type", "text/plain")], 415),
        ("a deletion without a body", "DELETE", &[here, token], 200),
        ("no token", "GET", &[here], 401),
        ("another token", "GET", &[here, ("authorization", "Bearer secreT")], 401),
        ("a longer token", "GET", &[here, ("authorization", "Bearer secrets")], 401),
    ];
    let router = server();
    for (number, (sentence, line, headers, status)) in rows.into_iter().enumerate() {
        let (method, path) = line.split_once(' ').unwrap_or((line, PATH));
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{number}")}});
        let body = if method == "POST" { Body::from(object.to_string()) } else { Body::empty() };
        let (code, answer) = send(&router, request.body(body).unwrap()).await;
        assert_eq!(code, status, "{sentence}: {answer}");
        assert!(code < 400 || answer["kind"] == "Status" && answer["code"] == code, "{sentence}: {answer}");
    }
}

#[tokio::test]
async fn absolute_target_must_agree_with_the_host() {
    for (uri, host, status) in [
        ("https://127.0.0.1:6443/api", None, 401),
        ("https://evil.example/api", None, 403),
        ("https://127.0.0.1:6443/api", Some("evil.example"), 403),
        ("https://evil.example/api", Some("127.0.0.1:6443"), 403),
    ] {
        let request = Request::get(uri);
        let request = if let Some(host) = host { request.header("host", host) } else { request };
        let (code, answer) = send(&server(), request.body(Body::empty()).unwrap()).await;
        assert_eq!(code, status, "{uri} {host:?}: {answer}");
    }
}

#[tokio::test]
async fn body_of_500_megabytes_is_refused_while_it_is_read() {
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let chunks = (0..500).map(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(vec![b' '; 1 << 20])
    });
    let request = Request::post(PATH).header("host", "localhost").header("content-type", "application/json");
    let request = |token: &str| {
        request.header("authorization", format!("Bearer {token}")).body(Body::from_stream(stream::iter(chunks)))
    };
    let (code, answer) = send(&server(), request("secret").unwrap()).await;
    assert_eq!((code, &answer["reason"]), (413, &json!("RequestEntityTooLarge")), "{answer}");
    assert!(read.load(Ordering::Relaxed) < 20, "{read:?} MiB were read");
}

#[test]
fn tokens_are_long_and_never_the_same() {
    let (first, second) = (token(), token());
    assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    assert_ne!(first, second);
}
