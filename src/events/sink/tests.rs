//! The wire format, and how responses are classified.
#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use http::Response;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::super::EventType;
use super::super::tests::{at, event};
use super::*;

fn now() -> Duration {
    Duration::ZERO
}

/// The requests to the server: method and path, content type, body.
type Seen = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A sink whose server gives one response to every request, and the requests.
fn sink_answering(code: u16, answer: &Value) -> (KubeSink, Seen) {
    let seen = Seen::default();
    let (log, answer) = (seen.clone(), answer.to_string());
    let service = service_fn(move |request: Request<Body>| {
        let (log, answer) = (log.clone(), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let content_type = parts.headers[http::header::CONTENT_TYPE].to_str().unwrap().to_owned();
            let line = format!("{} {}", parts.method, parts.uri);
            log.lock().unwrap().push((line, content_type, serde_json::from_slice(&body).unwrap()));
            let response = Response::builder().status(code).body(Body::from(answer.into_bytes())).unwrap();
            Ok::<_, kube::Error>(response)
        }
    });
    (KubeSink::new(crate::client::on_service(service), Arc::new(Gate::unconditional()), Duration::from_secs(10)), seen)
}

#[tokio::test]
async fn a_create_posts_the_event_to_its_namespace() {
    let (sink, seen) = sink_answering(201, &json!({"answers": "are not read"}));
    let event = event("hello", EventType::Normal, "SuccessfulCreate", "Created job hello-1", at(0));
    sink.create(&event).await.unwrap();
    let want = ("POST /api/v1/namespaces/default/events?fieldValidation=Ignore".into(), "application/json".into());
    let [(line, content_type, body)] = &seen.lock().unwrap()[..] else { panic!("one request") };
    assert_eq!((line, content_type), (&want.0, &want.1));
    assert_eq!(*body, serde_json::to_value(&event).unwrap());
}

#[tokio::test]
async fn a_patch_is_a_strategic_merge_patch_on_the_event() {
    let (sink, seen) = sink_answering(200, &json!({}));
    let event = Event { count: 2, ..event("hello", EventType::Normal, "R", "m", at(60)) };
    sink.patch(&event).await.unwrap();
    let [(line, content_type, body)] = &seen.lock().unwrap()[..] else { panic!("one request") };
    assert_eq!(*line, format!("PATCH /api/v1/namespaces/default/events/{}?fieldValidation=Ignore", event.name));
    assert_eq!(content_type, "application/strategic-merge-patch+json");
    assert_eq!(*body, json!({"count": 2, "lastTimestamp": "2026-11-20T17:51:00Z", "message": "m"}));
}

#[tokio::test]
async fn nothing_is_sent_while_the_gate_is_closed() {
    let (mut sink, seen) = sink_answering(201, &json!({}));
    sink.gate = Arc::default();
    let event = event("hello", EventType::Normal, "R", "m", at(0));
    for result in [sink.create(&event).await, sink.patch(&event).await] {
        assert_eq!(result.unwrap_err().disposition(), Disposition::Retry { not_before: Duration::ZERO });
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn each_answer_has_its_disposition() {
    let retry = |not_before| Disposition::Retry { not_before };
    let rows = [
        ("an event of that name exists", 409, "AlreadyExists", json!({}), Disposition::AlreadyExists),
        ("a conflict of another kind", 409, "Conflict", json!({}), Disposition::Refused),
        ("nothing there", 404, "NotFound", json!({}), Disposition::NotFound),
        ("may not", 403, "Forbidden", json!({}), Disposition::Refused),
        ("who are you", 401, "Unauthorized", json!({}), Disposition::Refused),
        ("not an event", 422, "Invalid", json!({}), Disposition::Refused),
        ("too large", 413, "RequestEntityTooLarge", json!({}), Disposition::Refused),
        ("too many", 429, "TooManyRequests", json!({"retryAfterSeconds": 7}), retry(Duration::from_secs(7))),
        ("something broke", 500, "InternalError", json!({}), retry(now())),
        ("not now", 503, "ServiceUnavailable", json!({"retryAfterSeconds": 1}), retry(Duration::from_secs(1))),
        ("too slow", 504, "Timeout", json!({}), retry(now())),
    ];
    let event = event("hello", EventType::Normal, "R", "m", at(0));
    for (row, code, reason, details, want) in rows {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": code, "reason": reason, "message": row, "details": details,
        });
        let (sink, _) = sink_answering(code, &status);
        let error = sink.create(&event).await.unwrap_err();
        assert_eq!(error.disposition(), want, "{row}");
        assert_eq!(error.to_string(), format!("could not create event default/{}: {row}", event.name));
        assert!(!error.is_namespace_terminating(), "{row}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_status_is_judged_by_its_code() {
    let rows =
        [(502, Disposition::Retry { not_before: now() }), (404, Disposition::NotFound), (400, Disposition::Refused)];
    let event = event("hello", EventType::Normal, "R", "m", at(0));
    for (code, want) in rows {
        let (sink, _) = sink_answering(code, &json!("<html>the proxy's page</html>"));
        assert_eq!(sink.patch(&event).await.unwrap_err().disposition(), want, "{code}");
    }
}

#[tokio::test]
async fn failed_connection_is_retried() {
    let service = service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))
    });
    let sink = KubeSink::new(Client::new(service, "default"), Arc::new(Gate::unconditional()), Duration::from_secs(10));
    let error = sink.patch(&event("hello", EventType::Normal, "R", "m", at(0))).await.unwrap_err();
    assert_eq!(error.disposition(), Disposition::Retry { not_before: now() });
    assert!(error.to_string().starts_with("could not patch event default/hello."), "{error}");
}

#[tokio::test]
async fn request_that_cannot_be_built_is_not_retried() {
    let (sink, seen) = sink_answering(200, &json!({}));
    let event = Event { namespace: "not a path".into(), ..event("hello", EventType::Normal, "R", "m", at(0)) };
    assert_eq!(sink.create(&event).await.unwrap_err().disposition(), Disposition::Refused);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn terminating_namespace_refuses_the_event() {
    let status = json!({
        "status": "Failure", "code": 403, "reason": "Forbidden", "message": "being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "message": "being terminated"}]},
    });
    let (sink, _) = sink_answering(403, &status);
    let error = sink.create(&event("hello", EventType::Normal, "R", "m", at(0))).await.unwrap_err();
    assert_eq!((error.disposition(), error.is_namespace_terminating()), (Disposition::Refused, true));
}
