//! Request checks of `dev`'s API server.
//!
//! Guarantees: a request is answered only if it names this machine (`Host`), does not come from a page of another origin
//! (`Origin`), declares the type of its body (`Content-Type`), and carries the kubeconfig's token. Health checks need no token.
//! Nothing beyond a request's header is read before these checks. The bodies of all requests together hold at most [`BODIES`]
//! bytes; one holds at most what kube-apiserver accepts.
//!
//! A page in a browser can send requests to loopback, also under its own name that resolves there (DNS rebinding), and a form
//! can send a POST without preflight. A page cannot read the kubeconfig, set `Host`, or omit `Origin` from a write.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::status::{self, Status};
use apiserver::{ApiServer, MAX_BODY};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{Request, StatusCode};
use http_body::Body as _;
use tracing::trace;

use crate::server::budgets::{BodyBudget, ReadError};

/// The total number of bytes of all request bodies: five of the largest, or thousands of usual ones.
const BODIES: usize = 16 << 20;

/// The time limit for a body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The allowed names in `Host`, with any port, since a port may be forwarded.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Paths that need no token.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// A new token: 256 random bits in hexadecimal.
pub(crate) fn token() -> String {
    hexadecimal(&rand::random::<[u8; 32]>())
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

struct Guard {
    token: String,
    bodies: BodyBudget,
}

/// The server behind the checks, for clients with this token.
pub(super) fn router(server: &ApiServer, token: &str) -> Router {
    let guard = Guard { token: token.to_owned(), bodies: BodyBudget::new(BODIES) };
    Router::new().fallback_service(server.into_service()).layer(from_fn_with_state(Arc::new(guard), admit))
}

async fn admit(State(guard): State<Arc<Guard>>, request: Request<Body>, next: Next) -> Response {
    if let Err(status) = judge(&request, &guard.token) {
        trace!(method = %request.method(), path = request.uri().path(), reason = status.message, "refused a request");
        return refuse(&status);
    }
    let (head, body) = request.into_parts();
    let body = match guard.bodies.read(body, MAX_BODY, READ_TIMEOUT).await {
        Ok(body) => body,
        Err(ReadError::TooLarge) => return refuse(&status::too_large(&format!("limit is {MAX_BODY}"))),
        Err(ReadError::Busy) => return refuse(&status::generic(429, "")),
        Err(ReadError::TooSlow | ReadError::Broken(_)) => {
            return refuse(&status::bad_request("the body of the request was not received whole"));
        }
    };
    next.run(Request::from_parts(head, Body::from(body.bytes.clone()))).await
}

fn refuse(status: &Status) -> Response {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::FORBIDDEN);
    (code, axum::Json(status.to_value())).into_response()
}

/// Checks the header of a request. Pure.
fn judge(request: &Request<Body>, token: &str) -> status::Result<()> {
    let header = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = match (request.uri().authority(), header(HOST)) {
        (Some(authority), None) => authority.as_str(),
        (None, Some(host)) => host,
        (Some(authority), Some(host)) if authority.as_str() == host => host,
        _ => "",
    };
    if !is_loopback(host) {
        return Err(forbidden(format!("the Host {host:?} is not this machine; use one of {}", LOOPBACK.join(", "))));
    }
    if let Some(origin) = header(ORIGIN).filter(|origin| *origin != format!("https://{host}")) {
        return Err(forbidden(format!("requests of pages from {origin:?} are not answered")));
    }
    if !HEALTH.contains(&request.uri().path()) {
        let sent = header(AUTHORIZATION).and_then(|value| value.split_once(' '));
        let is_known = sent.is_some_and(|(scheme, sent)| scheme.eq_ignore_ascii_case("bearer") && same(sent, token));
        if !is_known {
            let message =
                "Unauthorized: the token is in the kubeconfig that `cronjob-controller dev` has written".to_owned();
            return Err(refusal(401, "Unauthorized", message));
        }
    }
    if !request.body().is_end_stream() && header(CONTENT_TYPE).is_none_or(str::is_empty) {
        let message = "a request with a body needs a Content-Type, such as application/json";
        return Err(status::unsupported_media_type(message));
    }
    Ok(())
}

/// Whether `Host` names this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let authority = Authority::try_from(host);
    authority.is_ok_and(|authority| {
        // An authority with user information is not a host.
        !authority.as_str().contains('@') && LOOPBACK.iter().any(|name| authority.host().eq_ignore_ascii_case(name))
    })
}

/// Compares in time that does not depend on the position of a difference.
pub(crate) fn same(sent: &str, token: &str) -> bool {
    sent.len() == token.len() && sent.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn forbidden(message: String) -> Box<Status> {
    refusal(403, "Forbidden", message)
}

fn refusal(code: u16, reason: &'static str, message: String) -> Box<Status> {
    Box::new(Status { code, reason, message, details: None, continue_token: None })
}

#[cfg(test)]
mod tests {
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
}
