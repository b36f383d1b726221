#![allow(clippy::unwrap_used)]

use super::*;

/// What is sent in words, the request line, the headers, and what becomes of it.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn request_without_loopback_host_own_origin_and_session_is_refused() {
    let (here, session) = (("host", "127.0.0.1:9000"), ("authorization", "Bearer session"));
    let rows: [Row<'_>; 25] = [
        ("the page", "GET /", &[here], "public"),
        ("the page by name", "GET /", &[("host", "localhost")], "public"),
        ("a file of it", "GET /assets/app.js", &[here], "public"),
        ("its head", "HEAD /", &[here], "public"),
        ("an answer", "GET /api/summary", &[here, session], "session=session"),
        ("over a forwarded port", "GET /api/summary", &[("host", "127.0.0.1:8080"), session], "session=session"),
        ("its own Origin", "GET /api/a", &[here, session, ("origin", "http://127.0.0.1:9000")], "session=session"),
        ("a scheme in small letters", "GET /api/a", &[here, ("authorization", "bearer a")], "session=a"),
        ("no session", "GET /api/summary", &[here], "session="),
        ("a session in a cookie", "GET /api/summary", &[here, ("cookie", "session=session")], "session="),
        ("a session in the address", "GET /api/summary?session=session", &[here], "session="),
        ("another scheme", "GET /api/summary", &[here, ("authorization", "Basic session")], "session="),
        ("a token", "POST /session", &[here, ("authorization", "Bearer token")], "token=token"),
        (
            "a token from its own page",
            "POST /session",
            &[here, session, ("origin", "http://127.0.0.1:9000")],
            "token=session",
        ),
        ("a token of another page", "POST /session", &[here, session, ("origin", "http://127.0.0.1:9001")], "403"),
        ("a token by GET", "GET /session", &[here, session], "public"),
        ("a foreign Origin", "GET /api/summary", &[here, session, ("origin", "http://evil.example")], "403"),
        ("an Origin that hides", "GET /api/summary", &[here, session, ("origin", "null")], "403"),
        ("a foreign Host", "GET /", &[("host", "evil.example"), session], "403"),
        ("a foreign Host with the token", "POST /session", &[("host", "evil.example"), session], "403"),
        ("no Host", "GET /", &[session], "403"),
        ("two Hosts", "GET /", &[here, ("host", "evil.example"), session], "403"),
        ("the same Host twice", "GET /", &[here, here, session], "403"),
        ("a write", "POST /api/summary", &[here, session], "405"),
        ("a write of a file", "PUT /", &[here, session], "405"),
    ];
    for (sentence, line, headers, want) in rows {
        let (method, uri) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let verdict = match judge(&request.body(Body::empty()).unwrap()) {
            Verdict::Public => "public".to_owned(),
            Verdict::WithSession(session) => format!("session={session}"),
            Verdict::Exchange(token) => format!("token={token}"),
            Verdict::Refused(status, _) => status.as_u16().to_string(),
        };
        assert_eq!(verdict, want, "{sentence}");
    }
}
