#![allow(clippy::unwrap_used, clippy::type_complexity)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::{CronJobControl, JobControl, LONG_ANSWER, LONGEST_ANSWER, Patience, Propagation, RealControl, StatusWrite};
use crate::api::batch_v1::{CronJob, CronJobStatus};
use crate::api::{ApiError, ControllerKind, Delivery, FailureClass, Interner, Object, ObjectName, Published, Uid};
use crate::client::{self, Unobserved};
use crate::leader_election::{Gate, Leadership};

#[derive(Debug, PartialEq)]
struct Seen {
    method: Method,
    path: String,
    content_type: String,
    body: Value,
}

type Log = Arc<Mutex<Vec<Seen>>>;

/// A control whose server answers every request with `status`, `headers` and `body` after `delay`.
fn control(
    status: u16,
    header: Option<(&'static str, &'static str)>,
    body: &str,
    delay: Duration,
) -> (RealControl, Log) {
    let log = Log::default();
    let (seen, body) = (Arc::clone(&log), body.to_owned());
    let service = service_fn(move |request: Request<Body>| {
        let (seen, body) = (Arc::clone(&seen), body.clone());
        async move {
            let (head, sent) = request.into_parts();
            let sent = sent.collect().await.unwrap().to_bytes();
            seen.lock().unwrap().push(Seen {
                method: head.method,
                path: head.uri.to_string(),
                content_type: head.headers[http::header::CONTENT_TYPE].to_str().unwrap().to_owned(),
                body: serde_json::from_slice(&sent).unwrap_or(Value::Null),
            });
            tokio::time::sleep(delay).await;
            let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
            if let Some((name, value)) = header {
                response = response.header(name, value);
            }
            Ok::<_, std::convert::Infallible>(response.body(Body::from(body.into_bytes())).unwrap())
        }
    });
    (
        RealControl::new(ControllerKind::CronJob, client::on_service(service), {
            let gate = Gate::default();
            gate.open(Leadership::ending_in(Duration::from_secs(15), Duration::from_secs(15)));
            Arc::new(gate)
        }),
        log,
    )
}

fn name() -> ObjectName {
    ObjectName::new("ns", "report-1")
}

#[tokio::test(start_paused = true)]
async fn a_deletion_names_the_uid_it_means_and_leaves_pods_to_the_background() {
    let (control, log) = control(200, None, r#"{"kind":"Status","status":"Success"}"#, Duration::ZERO);
    control.delete_job(&name(), &Uid::new("u-1"), Propagation::Background, Patience::Usual).await.unwrap();
    let body = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": { "uid": "u-1" },
    });
    let path = "/apis/batch/v1/namespaces/ns/jobs/report-1".to_owned();
    let content_type = "application/json".to_owned();
    assert_eq!(*log.lock().unwrap(), [Seen { method: Method::DELETE, path, content_type, body }]);
}

#[tokio::test(start_paused = true)]
async fn the_status_patch_names_its_version_and_only_the_status() {
    let reply = r#"{"kind":"PartialObjectMetadata","metadata":{"name":"report","resourceVersion":"8"}}"#;
    let (control, log) = control(200, None, reply, Duration::ZERO);
    let base = r#"{"metadata":{"name":"report","namespace":"ns","uid":"u","resourceVersion":"7"},
        "spec":{"schedule":"* * * * *","jobTemplate":{}}}"#;
    let base = Arc::new(CronJob::decode(base, &Interner::default()).unwrap());
    let status =
        CronJobStatus { last_schedule_time: Some("2026-03-02T10:00:00Z".parse().unwrap()), ..Default::default() };
    let write = StatusWrite { base, status };
    let written = control.update_status(&ObjectName::new("ns", "report"), &write, Patience::Usual).await.unwrap();
    assert_eq!((&*written.resource_version, &written.status), ("8", &write.status));
    let body = json!({
        "metadata": { "resourceVersion": "7" },
        "status": { "active": null, "lastScheduleTime": "2026-03-02T10:00:00Z" },
    });
    let path = "/apis/batch/v1/namespaces/ns/cronjobs/report/status?fieldValidation=Ignore".to_owned();
    let content_type = "application/merge-patch+json".to_owned();
    assert_eq!(*log.lock().unwrap(), [Seen { method: Method::PATCH, path, content_type, body }]);
}

#[tokio::test(start_paused = true)]
async fn published_times_are_annotations_of_the_same_patch() {
    let next = "cronjob-controller.dev/next-run";
    let failure = "cronjob-controller.dev/last-failure";
    let at = |text: &str| Some(text.parse().unwrap());
    let rows = [
        ("new", json!({}), (at("2026-03-02T11:00:00Z"), None), json!({ next: "2026-03-02T11:00:00Z" })),
        ("gone", json!({ next: "2026-03-02T11:00:00Z" }), (None, None), json!({ next: null })),
        (
            "one of two",
            json!({ next: "2026-03-02T11:00:00Z", failure: "2026-03-02T09:00:00Z" }),
            (at("2026-03-02T11:00:00Z"), at("2026-03-02T10:30:00Z")),
            json!({ failure: "2026-03-02T10:30:00Z" }),
        ),
    ];
    for (sentence, annotations, (next_run, last_failure), want) in rows {
        let (control, log) = control(200, None, r#"{"metadata":{"resourceVersion":"8"}}"#, Duration::ZERO);
        let base = json!({
            "metadata": {
                "name": "report", "namespace": "ns", "uid": "u", "resourceVersion": "7", "annotations": annotations,
            },
            "spec": { "schedule": "* * * * *", "jobTemplate": {} },
        });
        let base = Arc::new(CronJob::decode(&base.to_string(), &Interner::default()).unwrap());
        let published = Published { next_run, last_failure }.boxed();
        let write = StatusWrite { base, status: CronJobStatus { published, ..Default::default() } };
        let written = control.update_status(&ObjectName::new("ns", "report"), &write, Patience::Usual).await.unwrap();
        assert_eq!(written.status, write.status, "{sentence}");
        let body = &log.lock().unwrap()[0].body;
        assert_eq!(body["metadata"], json!({ "resourceVersion": "7", "annotations": want }), "{sentence}");
        assert_eq!(
            body["status"],
            json!({ "active": null }),
            "{sentence}: the status has no field of its own for them"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_read_from_the_status_and_the_headers() {
    let terminating = json!({
        "kind": "Status", "status": "Failure", "message": "being terminated", "reason": "Forbidden", "code": 403,
        "details": { "causes": [{ "reason": "NamespaceTerminating", "message": "", "field": "metadata.namespace" }] },
    });
    let exists = json!({ "kind": "Status", "message": "there", "reason": "AlreadyExists", "code": 409 });
    let busy = json!({
        "kind": "Status", "message": "later", "reason": "TooManyRequests", "code": 429,
        "details": { "retryAfterSeconds": 3 },
    });
    let table: [(&str, u16, Option<_>, String, fn(&ApiError) -> bool); 5] = [
        ("a terminating namespace", 403, None, terminating.to_string(), |e| {
            e.namespace_terminating && !e.is_unavailable() && e.message == "being terminated"
        }),
        ("a taken name", 409, None, exists.to_string(), |e| e.is_already_exists() && !e.is_conflict()),
        ("a busy server, in the Status", 429, None, busy.to_string(), |e| {
            e.is_unavailable() && e.retry_after == Some(Duration::from_secs(3))
        }),
        ("a busy server, in the header", 429, Some(("retry-after", "1")), "Too many requests".to_owned(), |e| {
            e.retry_after == Some(Duration::from_secs(1)) && e.message == "Too many requests"
        }),
        ("a proxy without its server", 502, None, "<html>".to_owned(), |e| e.is_unavailable() && e.code == 502),
    ];
    for (sentence, status, header, body, judge) in table {
        let (control, _) = control(status, header, &body, Duration::ZERO);
        let error = control.create_job(&name(), b"{}".to_vec(), Patience::Usual).await.unwrap_err();
        assert!(judge(&error), "{sentence}: {error:?}");
        assert!(error.to_string().starts_with("create Job ns/report-1: "), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_given_up() {
    let (control, _) = control(200, None, "{}", Duration::from_secs(3600));
    let error = control.get_job(&name()).await.unwrap_err();
    assert_eq!(error.to_string(), "get Job ns/report-1: no answer within 10 s");
    assert!(error.is_unavailable() && error.timed_out());
}

#[tokio::test(start_paused = true)]
async fn a_create_is_given_the_rest_of_the_lease_and_a_slot_that_timed_out_the_servers_own_time() {
    let rows = [
        ("the rest of the lease, less the time until its receipt", Patience::Usual, 15, "timeout=11000ms", 16),
        ("what the lease announces", Patience::Longest, 38, "timeout=34000ms", 39),
        ("what the lease does not announce yet", Patience::Longest, 15, "timeout=11000ms", 16),
    ];
    for (sentence, patience, announced, timeout, given_up) in rows {
        let (mut control, log) = control(200, None, "{}", Duration::from_secs(3600));
        let gate = Gate::default();
        gate.open(Leadership::ending_in(Duration::from_secs(15), Duration::from_secs(announced)));
        control.gate = Arc::new(gate);
        let sent = tokio::time::Instant::now();
        let error = control.create_job(&name(), b"{}".to_vec(), patience).await.unwrap_err();
        assert_eq!(sent.elapsed(), Duration::from_secs(given_up), "{sentence}");
        let path = log.lock().unwrap()[0].path.clone();
        assert!(path.ends_with(&format!("/namespaces/ns/jobs?fieldValidation=Ignore&{timeout}")), "{path}");
        assert_eq!((error.delivery, error.may_have_been_done()), (Delivery::GaveUp, true));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_is_given_up_and_a_long_message_is_cut() {
    let endless = "x".repeat(LONGEST_ANSWER + 1);
    let cut = format!("500 Internal Server Error: {}", "x".repeat(512));
    for (status, want) in [(200, "length limit exceeded"), (500, &cut)] {
        let (control, _) = control(status, None, &endless, Duration::ZERO);
        let error = control.get_job(&name()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("get Job ns/report-1: {want}"));
    }
    let long = "é".repeat(1 << 20);
    let status = json!({ "kind": "Status", "code": 422, "reason": "Invalid", "message": long }).to_string();
    let no_job = json!({ "metadata": long }).to_string();
    for (code, body) in [(422, &status), (200, &no_job)] {
        let (control, _) = control(code, None, body, Duration::ZERO);
        let error = control.get_job(&name()).await.unwrap_err();
        // The next one may be read like it, so it is not asked for again at once.
        assert_eq!(error.class(), if code == 200 { FailureClass::Namespace } else { FailureClass::Key });
        assert!((512..=8192).contains(&error.message.len()), "{}", error.message.len());
    }
}

/// A status may name any text as a Job. In a path it would be a list, a watch, or another object.
#[tokio::test(start_paused = true)]
async fn no_request_is_sent_for_a_name_that_no_object_can_have() {
    let longest = "a".repeat(254);
    for text in
        ["", ".", "..", "a/b", "../../kube-system/jobs/a", "a?watch=true", "a#b", "a%2fb", "a b", "A", "é", &longest]
    {
        let (control, log) = control(200, None, "{}", Duration::ZERO);
        let name = ObjectName::new("ns", text);
        assert!(control.get_job(&name).await.unwrap_err().is_not_found(), "{text:?}");
        let deleted = control.delete_job(&name, &Uid::new("u"), Propagation::Background, Patience::Usual).await;
        assert!(deleted.unwrap_err().is_not_found(), "{text:?}");
        assert!(log.lock().unwrap().is_empty(), "{text:?}");
    }
}

/// Together they could fill the memory.
#[tokio::test(start_paused = true)]
async fn few_long_answers_are_read_at_a_time_and_short_ones_do_not_wait_for_them() {
    let job = |length: usize| json!({ "metadata": { "name": "a", "namespace": "ns", "uid": "u", "labels": { "a": "x".repeat(length) } } });
    for (sentence, length, waits) in [("short", 1_000, false), ("long", LONG_ANSWER, true)] {
        let (control, _) = control(200, None, &job(length).to_string(), Duration::ZERO);
        let name = name();
        let held = [(); 2].map(|()| control.long_answers.permit(&name.namespace).now_or_never().flatten().unwrap());
        let mut read = std::pin::pin!(control.get_job(&name));
        let waited = tokio::time::timeout(Duration::from_secs(1), &mut read).await;
        assert_eq!(waited.is_err(), waits, "{sentence}");
        drop(held);
        if waits {
            read.await.unwrap();
        }
        assert!(control.long_answers.permit(&name.namespace).now_or_never().flatten().is_some(), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_lets_reads_through_and_no_write() {
    let (mut control, log) = control(404, None, "{}", Duration::ZERO);
    control.gate = Arc::default();
    let error = control.create_job(&name(), b"{}".to_vec(), Patience::Usual).await.unwrap_err();
    assert_eq!(error.to_string(), "create Job ns/report-1: not sent: this process does not hold its lease");
    assert_eq!(error.delivery, Delivery::NotSent);
    assert!(control.delete_job(&name(), &Uid::new("u"), Propagation::Background, Patience::Usual).await.is_err());
    assert!(log.lock().unwrap().is_empty());
    assert!(control.get_job(&name()).await.unwrap_err().is_not_found());
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn write_that_waited_for_the_rate_limit_is_not_sent_after_the_gate_has_closed() {
    for (sentence, is_lost, sent) in [("the lease is kept", false, 1), ("the lease is lost", true, 0)] {
        for write in ["create", "delete", "update status"] {
            let writes = Arc::new(Mutex::new(0));
            let counted = Arc::clone(&writes);
            let serve = move |request: Request<Body>| {
                if request.method() != Method::GET {
                    *counted.lock().unwrap() += 1;
                }
                async { Ok(Response::builder().status(404).body(Body::from(b"{}".to_vec())).unwrap()) }
            };
            let client = client::tests::client(Some(client::tests::limit(0.01, 1)), Arc::new(Unobserved), serve);
            let (leadership, gate) = (Leadership::unconditional(), Arc::new(Gate::default()));
            gate.open(leadership.clone());
            let control = RealControl::new(ControllerKind::CronJob, client, gate);
            assert!(control.get_job(&name()).await.is_err(), "it has the only token");
            let waits = async {
                match write {
                    "create" => control.create_job(&name(), b"{}".to_vec(), Patience::Usual).await.err(),
                    "delete" => control
                        .delete_job(&name(), &Uid::new("u"), Propagation::Background, Patience::Usual)
                        .await
                        .err(),
                    _ => {
                        let base = r#"{"metadata":{"name":"report","namespace":"ns","uid":"u","resourceVersion":"7"},
                            "spec":{"schedule":"* * * * *","jobTemplate":{}}}"#;
                        let base = Arc::new(CronJob::decode(base, &Interner::default()).unwrap());
                        let write = StatusWrite { base, status: CronJobStatus::default() };
                        control.update_status(&name(), &write, Patience::Usual).await.err()
                    }
                }
            };
            let (error, ()) = tokio::join!(waits, async {
                tokio::time::sleep(Duration::from_secs(50)).await;
                if is_lost {
                    leadership.revoke(false);
                }
            });
            assert_eq!(*writes.lock().unwrap(), sent, "{write}, {sentence}");
            assert_eq!(error.unwrap().message.contains("not sent"), is_lost, "{write}, {sentence}");
        }
    }
}

#[tokio::test]
async fn a_request_without_a_connection_was_not_sent() {
    // Nothing listens on the port any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let text = json!({
        "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(&kubeconfig, text.to_string()).unwrap();
    let (client, _) = client::connect_for_person(Some(&kubeconfig), None).await.unwrap();
    let gate = Gate::default();
    gate.open(Leadership::ending_in(Duration::from_secs(15), Duration::from_secs(15)));
    let control = RealControl::new(ControllerKind::CronJob, client, Arc::new(gate));
    let error = control.get_job(&name()).await.unwrap_err();
    assert_eq!((error.delivery, error.may_have_been_done()), (Delivery::NotSent, false), "{error}");
}
