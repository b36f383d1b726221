#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A lock whose API server gives the same answer to every request and records it.
fn lock(status: StatusCode, answer: Value) -> (KubeLeaseLock, Seen) {
    let seen = Seen::default();
    let notes = seen.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (notes, answer) = (notes.clone(), answer.clone());
        async move {
            let line = format!("{} {}", request.method(), request.uri().path());
            let body = request.into_body().collect().await.unwrap().to_bytes();
            notes.lock().push((line, serde_json::from_slice(&body).unwrap_or(Value::Null)));
            let response = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        }
    });
    (KubeLeaseLock::new(kube::Client::new(service, "default"), "kube-system", "cronjob-controller"), seen)
}

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "cronjob-controller", "resourceVersion": "7", "labels": {"keep": "me"}},
        "spec": {"holderIdentity": "me"},
    })
}

#[tokio::test]
async fn an_update_is_a_put_with_the_resource_version_it_was_given() {
    let (lock, seen) = lock(StatusCode::OK, lease());
    lock.update(&serde_json::from_value(lease()).unwrap()).await.unwrap();
    let (line, body) = seen.lock().remove(0);
    assert_eq!(line, "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cronjob-controller");
    assert_eq!(body["metadata"]["resourceVersion"], "7");
    assert_eq!(body["metadata"]["labels"]["keep"], "me");
}

#[tokio::test]
async fn a_create_is_a_post_to_the_namespace() {
    let (lock, seen) = lock(StatusCode::CREATED, lease());
    lock.create(&serde_json::from_value(lease()).unwrap()).await.unwrap();
    assert_eq!(seen.lock()[0].0, "POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
}

fn status(code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("leases {reason}"), "metadata": {},
    })
}

#[tokio::test]
async fn a_missing_lease_is_an_answer_and_not_an_error() {
    let (lock, _) = lock(StatusCode::NOT_FOUND, status(404, "NotFound"));
    assert!(lock.get().await.unwrap().is_none());
}

#[tokio::test]
async fn an_error_names_the_operation_and_the_lease() {
    let (lock, _) = lock(StatusCode::CONFLICT, status(409, "Conflict"));
    let error = lock.update(&serde_json::from_value(lease()).unwrap()).await.unwrap_err().to_string();
    assert!(error.starts_with("update lease kube-system/cronjob-controller: "), "{error}");
    assert!(error.contains("Conflict"), "{error}");
}
