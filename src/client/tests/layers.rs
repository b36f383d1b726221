use std::time::Duration;

use futures::future::{join_all, pending};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::time::{Instant, sleep};

use super::super::deadline::LONGEST_REFUSAL;
use super::*;
use crate::leader_election::{Gate, Leadership};
use crate::logging::tests::{Page, subscriber};

async fn ok(_: Request<Body>) -> Result<Response<Body>, BoxError> {
    Ok(Response::new(b"{}".to_vec().into()))
}

#[test]
fn request_that_stays_open_is_known_by_its_query() {
    let rows = [
        ("a list", "/apis/batch/v1/jobs", false),
        ("a watch", "/apis/batch/v1/jobs?watch=true", true),
        ("a watch in client-go's other spelling", "/apis/batch/v1/jobs?a=b&watch=1&c=d", true),
        ("a list that says it is none", "/apis/batch/v1/jobs?watch=false", false),
        ("a log that is followed", "/api/v1/namespaces/a/pods/b/log?container=c&follow=true", true),
        ("a parameter that ends alike", "/apis/batch/v1/jobs?nowatch=true", false),
    ];
    for (sentence, path, want) in rows {
        assert_eq!(stays_open(&request("GET", path)), want, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_and_timed_and_watches_only_counted() {
    let notes = Arc::new(Notes::default());
    let client = client(None, notes.clone(), |request: Request<Body>| async move {
        sleep(Duration::from_millis(250)).await;
        match request.uri().path() {
            "/gone" => Ok(Response::builder().status(404).body(Body::empty())?),
            "/broken" => Err("connection refused".into()),
            _ => ok(request).await,
        }
    });
    client.request_text(request("GET", "/x")).await.unwrap();
    client.request_text(request("GET", "/x?watch=true")).await.unwrap();
    client.request_text(request("DELETE", "/gone")).await.unwrap_err();
    client.request_text(request("POST", "/broken")).await.unwrap_err();
    let impatient = tokio::time::timeout(Duration::from_millis(100), client.request_text(request("PUT", "/x"))).await;
    assert!(impatient.is_err());
    assert_eq!(
        notes.take(),
        [
            "GET server:6443 200 0.250s",
            "GET server:6443 200 untimed",
            "DELETE server:6443 404 0.250s",
            "POST server:6443 <error> 0.250s",
            "PUT server:6443 <error> 0.100s",
        ]
    );
}

#[tokio::test]
async fn requests_are_in_the_log_from_verbosity_six_on() {
    for (verbosity, want) in [(5, vec![]), (6, vec!["GET /x 200", "GET /x?watch=true 200"])] {
        let page = Page::default();
        let _logged = tracing::subscriber::set_default(subscriber(verbosity, &page));
        let client = client(None, Arc::new(Unobserved), ok);
        for path in ["/x", "/x?watch=true"] {
            client.request_text(request("GET", path)).await.unwrap();
        }
        let lines = page.lines().into_iter().filter(|line| line["msg"] == "Sent a request");
        let text = |key: &serde_json::Value| key.as_str().unwrap().to_owned();
        let got: Vec<String> =
            lines.map(|line| [&line["method"], &line["uri"], &line["code"]].map(text).join(" ")).collect();
        assert_eq!(got, want, "-v={verbosity}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_lets_a_burst_through_then_a_steady_rate_and_watches_at_once() {
    let notes = Arc::new(Notes::default());
    let client = client(Some(limit(10.0, 2)), notes.clone(), ok);
    for _ in 0..4 {
        client.request_text(request("POST", "/x")).await.unwrap();
    }
    client.request_text(request("GET", "/x?watch=1")).await.unwrap();
    let notes = notes.take();
    let waits: Vec<_> = notes.iter().filter(|note| note.contains("waited")).map(String::as_str).collect();
    assert_eq!(
        waits,
        [
            "POST server:6443 waited 0.000s",
            "POST server:6443 waited 0.000s",
            "POST server:6443 waited 0.100s",
            "POST server:6443 waited 0.100s",
        ]
    );
    assert_eq!(notes.last().unwrap(), "GET server:6443 200 untimed");
    assert!(notes.contains(&"POST server:6443 200 0.100s".to_owned()), "the wait is part of the request's time");
}

#[tokio::test(start_paused = true)]
async fn watch_is_not_rate_limited() {
    let client = client(Some(limit(1.0, 1)), Arc::new(Unobserved), ok);
    let crowd: Vec<_> = (0..50).map(|_| client.clone()).collect();
    let crowd = crowd.into_iter().map(|client| async move { client.request_text(request("POST", "/x")).await });
    let crowd = tokio::spawn(join_all(crowd));
    tokio::task::yield_now().await;
    let started = Instant::now();
    client.request_text(request("GET", "/x?watch=true")).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(crowd.await.unwrap().iter().all(Result::is_ok));
    assert_eq!(started.elapsed(), Duration::from_secs(49));
}

#[tokio::test(start_paused = true)]
#[allow(clippy::type_complexity)] // A table's row.
async fn a_retry_after_reaches_the_caller_whatever_carries_it() {
    let status = |seconds: u32| {
        let details = serde_json::json!({ "retryAfterSeconds": seconds, "name": "a" });
        let status = serde_json::json!({
            "kind": "Status", "status": "Failure", "message": "slow down", "reason": "Timeout", "code": 504,
            "details": details,
        });
        status.to_string()
    };
    let long = "x".repeat(200_000);
    let rows: Vec<(&str, u16, Option<&str>, String, Option<u64>, &str, &str)> = vec![
        (
            "priority and fairness refuses in plain text",
            429,
            Some("1"),
            "Too many requests, please try again later.\n".into(),
            Some(1),
            "TooManyRequests",
            "Too many requests, please try again later.",
        ),
        (
            "a server that shuts down",
            503,
            Some("5"),
            "apiserver is shutting down".into(),
            Some(5),
            "ServiceUnavailable",
            "apiserver is shutting down",
        ),
        ("an empty body", 429, Some(" 2 "), String::new(), Some(2), "TooManyRequests", "Too Many Requests"),
        ("a status with its own figure keeps it", 504, Some("1"), status(7), Some(7), "Timeout", "slow down"),
        ("a status without one gets the header's", 504, Some("3"), status(0), Some(3), "Timeout", "slow down"),
        ("a status in the body is enough", 504, None, status(7), Some(7), "Timeout", "slow down"),
        ("a proxy's page of any length", 502, Some("4"), long, Some(4), "InternalError", "Bad Gateway"),
        (
            "a date is not understood",
            503,
            Some("Fri, 31 Dec 1999 23:59:59 GMT"),
            "no".into(),
            None,
            "Failed to parse error data",
            "no",
        ),
        ("zero is no wish", 429, Some("0"), "no".into(), None, "TooManyRequests", "no"),
        ("a refusal that waiting does not heal", 403, Some("9"), "no".into(), None, "Failed to parse error data", "no"),
    ];
    for (sentence, code, header, body, want, reason, message) in rows {
        let client = client(None, Arc::new(Unobserved), move |_| {
            let mut response = Response::builder().status(code);
            if let Some(header) = header {
                response = response.header("Retry-After", header);
            }
            let response = response.header("Content-Length", body.len()).body(Body::from(body.clone().into_bytes()));
            async move { Ok(response?) }
        });
        let error = client.request_text(request("POST", "/x")).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{sentence}: {error}") };
        assert_eq!(retry_after(&status), want.map(Duration::from_secs), "{sentence}");
        assert_eq!((status.reason.as_str(), status.message.as_str()), (reason, message), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn successful_answer_passes_unchanged() {
    let client = client(None, Arc::new(Unobserved), |_| async {
        Ok(Response::builder().header("Retry-After", "9").body(Body::from(b"as it is".to_vec()))?)
    });
    assert_eq!(client.request_text(request("GET", "/x")).await.unwrap(), "as it is");
}

#[tokio::test(start_paused = true)]
async fn endless_refusal_is_cut_and_keeps_its_code() {
    let pieces = || futures::stream::repeat_with(|| Ok(http_body::Frame::data(vec![b'x'; 1 << 20].into())));
    for (path, header, message) in [
        ("/x", None, LONGEST_REFUSAL),
        ("/x?watch=true", None, LONGEST_REFUSAL),
        ("/x", Some("1"), "Internal Server Error".len()),
    ] {
        let client = client(None, Arc::new(Unobserved), move |_| async move {
            let mut response = Response::builder().status(500);
            if let Some(header) = header {
                response = response.header("Retry-After", header);
            }
            let body: UnsyncBoxBody<_, BoxError> = StreamBody::new(pieces()).boxed_unsync();
            Ok(response.body(body)?)
        });
        let error = client.request_text(request("GET", path)).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{path}: {error}") };
        assert_eq!((status.code, status.message.len()), (500, message), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_accepts_compression() {
    let client = client(None, Arc::new(Unobserved), |request: Request<Body>| async move {
        assert_eq!(request.headers().get("Accept-Encoding"), None);
        ok(request).await
    });
    client.request_text(request("GET", "/x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn request_to_a_silent_server_times_out_but_a_watch_does_not() {
    let client = client(None, Arc::new(Unobserved), |_| pending::<Result<Response<Body>, _>>());
    let started = Instant::now();
    let error = client.request_text(request("GET", "/x")).await.unwrap_err();
    assert_eq!(DeadlineError::of(&error), Some(DeadlineError::Answer), "{error}");
    assert_eq!(started.elapsed(), REQUEST_DEADLINE);
    assert_eq!(error.to_string(), "ServiceError: no answer from the API server within 30s");

    let watch = client.request_text(request("GET", "/x?watch=true"));
    assert!(tokio::time::timeout(Duration::from_secs(3600), watch).await.is_err(), "its reader bounds a watch");
}

#[tokio::test(start_paused = true)]
async fn time_in_the_rate_limiter_does_not_count_against_the_deadline() {
    let client = client(Some(limit(0.01, 1)), Arc::new(Unobserved), ok);
    client.request_text(request("GET", "/x")).await.unwrap();
    let started = Instant::now();
    client.request_text(request("GET", "/x")).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_request_start_after_the_rate_limiter() {
    let slow = |request: Request<Body>| async move {
        sleep(Duration::from_secs(if request.uri().path() == "/slow" { 5 } else { 3 })).await;
        ok(request).await
    };
    let client = client(Some(limit(0.01, 1)), Arc::new(Unobserved), slow);
    let leadership = Leadership::unconditional();
    let send = |path| {
        let gate = Arc::new(Gate::default());
        gate.open(leadership.clone());
        let mut request = request("POST", path);
        request
            .extensions_mut()
            .insert(RequestLimits { gate: Some(gate), limit: TimeLimit::Client(Duration::from_secs(4)) });
        client.request_text(request)
    };
    send("/x").await.unwrap();
    let started = Instant::now();
    send("/x").await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(100), "a wait for a token is no part of the four seconds");
    let late = send("/slow").await.unwrap_err();
    assert_eq!(late.to_string(), "ServiceError: no answer within 4 s");

    let (waiting, ()) = tokio::join!(send("/x"), async {
        sleep(Duration::from_secs(50)).await;
        leadership.revoke(false);
    });
    assert_eq!(
        DeadlineError::of(&waiting.unwrap_err()),
        Some(DeadlineError::Closed),
        "a lease may be lost in the line"
    );
}

#[tokio::test(start_paused = true)]
async fn answer_with_a_total_limit_ends_even_if_it_makes_progress() {
    let client =
        client(None, Arc::new(Unobserved), |_| async { Ok(Response::new(dripping(9, Duration::from_secs(1), false))) });
    let mut request = request("GET", "/x");
    request
        .extensions_mut()
        .insert(RequestLimits { gate: None, limit: TimeLimit::Client(Duration::from_millis(4500)) });
    let started = Instant::now();
    let error = client.request_text(request).await.unwrap_err();
    assert_eq!(DeadlineError::of(&error), Some(DeadlineError::Late(Duration::from_millis(4500))), "{error}");
    assert_eq!(started.elapsed(), Duration::from_millis(4500));
}

/// A body of `pieces`, each after a pause; after the last one it hangs if it `stalls`.
fn dripping(pieces: usize, pause: Duration, stalls: bool) -> UnsyncBoxBody<<Body as http_body::Body>::Data, BoxError> {
    let pieces = futures::stream::unfold(0, move |n| async move {
        if n == pieces {
            return if stalls { pending().await } else { None };
        }
        sleep(pause).await;
        Some((Ok(http_body::Frame::data(b"piece ".to_vec().into())), n + 1))
    });
    StreamBody::new(pieces).boxed_unsync()
}

#[tokio::test(start_paused = true)]
async fn long_answer_may_continue_while_it_makes_progress() {
    let slow = Duration::from_secs(29);
    let rows = [
        ("ten pieces, each in time", "/x", 10, slow, false, Ok(60)),
        ("a piece too late", "/x", 2, Duration::from_secs(31), false, Err(DeadlineError::Body)),
        ("silence after a good start", "/x", 3, slow, true, Err(DeadlineError::Body)),
        ("a watch may pause for an hour", "/x?watch=true", 2, Duration::from_secs(3600), false, Ok(12)),
    ];
    for (sentence, path, pieces, pause, stalls, want) in rows {
        let client =
            client(
                None,
                Arc::new(Unobserved),
                move |_| async move { Ok(Response::new(dripping(pieces, pause, stalls))) },
            );
        let got = client.request_text(request("GET", path)).await;
        let got =
            got.map(|text| text.len()).map_err(|error| DeadlineError::of(&error).unwrap_or(DeadlineError::Answer));
        assert_eq!(got, want, "{sentence}");
    }
}
