//! Who gets an answer, and what a browser may do with it.
//!
//! Guarantees: a request is answered only if it names this machine (`Host`), does not come from a page of another origin
//! (`Origin`), and carries the session's cookie. The link's token is exchanged for that cookie once, and the browser is sent
//! to the same address without the token; the cookie is `HttpOnly` and `SameSite=Strict`, and differs from the token. Every
//! answer forbids other origins' scripts, styles, images, frames and requests. See `dev::guard` for the attacks.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderName, LOCATION, ORIGIN, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Request, StatusCode, Uri};

use crate::dev::guard::{self, is_loopback, same};

const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// What a user sees whose browser has no session. A link from another site does not carry the cookie, so a second try may help.
const NO_SESSION: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>No session</title>\
    <h1>No session</h1><p>Open the link that <code>cronjob-controller</code> has printed: it has this page's token.</p>\
    <p><a href=\"\">If you have done so in this browser, open this page once more.</a></p></html>";

/// The secrets of one server.
#[derive(Clone)]
pub struct Secrets {
    /// In the link.
    pub token: String,
    session: String,
    /// Ports share cookies, so each server has a name of its own.
    cookie: String,
}

impl Secrets {
    /// New secrets for a server on this port.
    pub fn new(port: u16) -> Self {
        // 128 bits, so that the link fits on a line of a terminal.
        let token = guard::token().chars().take(32).collect();
        Self { token, session: guard::token(), cookie: format!("cronjob-controller-ui-{port}") }
    }
}

/// Puts the checks before a router.
pub fn guarded(router: Router, secrets: Secrets) -> Router {
    router.layer(from_fn_with_state(Arc::new(secrets), admit))
}

async fn admit(State(secrets): State<Arc<Secrets>>, request: Request<Body>, next: Next) -> Response {
    let mut response = match judge(&request, &secrets) {
        Verdict::Admitted => next.run(request).await,
        Verdict::Exchanged(location) => {
            let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", secrets.cookie, secrets.session);
            (StatusCode::SEE_OTHER, [(LOCATION, location), (SET_COOKIE, cookie)]).into_response()
        }
        Verdict::Refused(status, sentence) => (status, sentence).into_response(),
        Verdict::NoSession => {
            (StatusCode::UNAUTHORIZED, [(CONTENT_TYPE, "text/html; charset=utf-8")], NO_SESSION).into_response()
        }
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
    Admitted,
    /// The token was right; the address without it.
    Exchanged(String),
    Refused(StatusCode, String),
    NoSession,
}

/// Checks the header of a request. Pure.
fn judge(request: &Request<Body>, secrets: &Secrets) -> Verdict {
    let header = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let refused = |sentence: String| Verdict::Refused(StatusCode::FORBIDDEN, sentence);
    let host = match (request.uri().authority(), header(HOST)) {
        (None, Some(host)) => host,
        (Some(authority), Some(host)) if authority.as_str() == host => host,
        _ => "",
    };
    if !is_loopback(host) {
        return refused("this Host is not this machine; use 127.0.0.1\n".to_owned());
    }
    if header(ORIGIN).is_some_and(|origin| origin != format!("http://{host}")) {
        return refused("requests of other pages are not answered\n".to_owned());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Verdict::Refused(StatusCode::METHOD_NOT_ALLOWED, "this server only answers GET\n".to_owned());
    }
    if let Some((sent, location)) = without_token(request.uri()) {
        return if same(&sent, &secrets.token) {
            Verdict::Exchanged(location)
        } else {
            refused("this token is not valid; use the link that was printed last\n".to_owned())
        };
    }
    let cookies = request.headers().get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    let is_known = cookies.any(|(name, value)| name == secrets.cookie && same(value, &secrets.session));
    if is_known { Verdict::Admitted } else { Verdict::NoSession }
}

/// The token in an address, and the address without it.
fn without_token(uri: &Uri) -> Option<(String, String)> {
    let query = uri.query()?;
    let (tokens, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|part| part.starts_with("token="));
    let token = tokens.first()?.strip_prefix("token=")?.to_owned();
    // An address that begins with two slashes would be on another host.
    let mut location = format!("/{}", uri.path().trim_start_matches('/'));
    if !others.is_empty() {
        // Writing into a String cannot fail.
        let _ = write!(location, "?{}", others.join("&"));
    }
    Some((token, location))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// What is sent in words, the request line, the headers, and the status of the answer.
    type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);

    fn verdict(line: &str, headers: &[(&str, &str)]) -> Verdict {
        let secrets = Secrets { token: "token".into(), session: "session".into(), cookie: "ui-1".into() };
        let (method, uri) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        judge(&request.body(Body::empty()).unwrap(), &secrets)
    }

    #[test]
    fn request_without_loopback_host_own_origin_and_session_is_refused() {
        let (here, session) = (("host", "127.0.0.1:9000"), ("cookie", "a=b; ui-1=session"));
        let status = |verdict| match verdict {
            Verdict::Admitted => 200,
            Verdict::Exchanged(_) => 303,
            Verdict::Refused(status, _) => status.as_u16(),
            Verdict::NoSession => 401,
        };
        let rows: [Row<'_>; 14] = [
            ("the page", "GET /", &[here, session], 200),
            ("by name", "GET /", &[("host", "localhost"), session], 200),
            ("its own Origin", "GET /api/summary", &[here, session, ("origin", "http://127.0.0.1:9000")], 200),
            ("a foreign Origin", "GET /api/summary", &[here, session, ("origin", "http://evil.example")], 403),
            ("an Origin that hides", "GET /api/summary", &[here, session, ("origin", "null")], 403),
            ("a foreign Host", "GET /", &[("host", "evil.example"), session], 403),
            ("a foreign Host with the token", "GET /?token=token", &[("host", "evil.example")], 403),
            ("no Host", "GET /", &[session], 403),
            ("a write", "POST /api/summary", &[here, session], 405),
            ("no cookie", "GET /", &[here], 401),
            ("another cookie", "GET /", &[here, ("cookie", "ui-1=sessioN")], 401),
            ("the cookie of another port", "GET /", &[here, ("cookie", "ui-2=session")], 401),
            ("the token", "GET /?token=token", &[here], 303),
            ("another token", "GET /?token=tokem", &[here, session], 403),
        ];
        for (sentence, line, headers, want) in rows {
            assert_eq!(status(verdict(line, headers)), want, "{sentence}");
        }
    }

    #[test]
    fn token_is_removed_from_the_address_and_no_redirect_leaves_the_host() {
        for (uri, location) in [
            ("/?token=token", "/"),
            ("/?view=heat&token=token&q=a", "/?view=heat&q=a"),
            ("//evil.example/?token=token", "/evil.example/"),
        ] {
            let want = Verdict::Exchanged(location.to_owned());
            assert_eq!(verdict(&format!("GET {uri}"), &[("host", "127.0.0.1:9000")]), want, "{uri}");
        }
    }
}
