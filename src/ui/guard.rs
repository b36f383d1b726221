//! Who gets an answer, and what a browser may do with it.
//!
//! Guarantees: a request is answered only if it names this machine (`Host`) and does not come from a page of another origin
//! (`Origin`). Below `/api/` it also has to carry a session (`access`) in `Authorization`: a browser sends that header only where
//! this page's script asks for it, unlike a cookie, which it would send to every port of this machine. The rest is the page's
//! files, which are the same for everybody. A session is made by a POST with a link's token in the same header. No answer is a
//! redirect. Every answer forbids other origins' scripts, styles, images, frames and requests. See `dev::guard` for the attacks.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Request, StatusCode};
use serde_json::json;

use super::access::Access;
use crate::dev::guard::is_loopback;

const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Where a token is exchanged.
const SESSION: &str = "/session";

/// What a user reads whose page has no session.
const NO_SESSION: &str = "A link works once, for five minutes. Open the link that cronjob-controller has printed last on its \
                          terminal; if that one was used or is too old, it has just printed another.";

/// Puts the checks before a router.
pub fn guarded(router: Router, access: Arc<Access>) -> Router {
    router.layer(from_fn_with_state(access, admit))
}

async fn admit(State(access): State<Arc<Access>>, request: Request<Body>, next: Next) -> Response {
    let no_session = || (StatusCode::UNAUTHORIZED, axum::Json(json!({ "error": NO_SESSION }))).into_response();
    let mut response = match judge(&request) {
        Verdict::Public => next.run(request).await,
        Verdict::WithSession(session) if access.is_session(&session) => next.run(request).await,
        Verdict::WithSession(_) => no_session(),
        Verdict::Exchange(token) => access
            .exchange(&token)
            .map_or_else(no_session, |session| axum::Json(json!({ "session": session })).into_response()),
        Verdict::Refused(status, sentence) => (status, sentence).into_response(),
    };
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// A file of the page.
    Public,
    /// Answered if this is a session.
    WithSession(String),
    /// The token of a link, for a session.
    Exchange(String),
    Refused(StatusCode, &'static str),
}

/// Checks the header of a request. Pure.
fn judge(request: &Request<Body>) -> Verdict {
    let header = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = match (request.uri().authority(), header(HOST)) {
        // One of several could be meant for another server.
        _ if request.headers().get_all(HOST).iter().count() != 1 => "",
        (None, Some(host)) => host,
        (Some(authority), Some(host)) if authority.as_str() == host => host,
        _ => "",
    };
    if !is_loopback(host) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "this Host is not this machine; use 127.0.0.1\n");
    }
    if header(ORIGIN).is_some_and(|origin| origin != format!("http://{host}")) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "requests of other pages are not answered\n");
    }
    let secret = || {
        let sent = header(AUTHORIZATION).and_then(|value| value.split_once(' '));
        sent.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map_or("", |(_, secret)| secret).to_owned()
    };
    match (request.method(), request.uri().path()) {
        (&Method::POST, SESSION) => Verdict::Exchange(secret()),
        (&Method::GET | &Method::HEAD, path) if path.starts_with("/api/") => Verdict::WithSession(secret()),
        (&Method::GET | &Method::HEAD, _) => Verdict::Public,
        _ => Verdict::Refused(StatusCode::METHOD_NOT_ALLOWED, "this server only answers GET\n"),
    }
}

#[cfg(test)]
mod tests;
