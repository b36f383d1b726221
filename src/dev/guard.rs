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
mod tests;
