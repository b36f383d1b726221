#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;

use super::*;

/// The number of requests that arrive at a server of which `request` is sent, and whether the answer is an error.
async fn sent(request: http::request::Builder) -> (usize, bool) {
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&arrived);
    let server = tower::service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, BoxError>(Response::new(Body::from(b"{}".to_vec()))) }
    });
    let client = crate::client::on_service(read_only(server));
    let answer = client.send(request.body(Body::empty()).unwrap()).await;
    (arrived.load(Ordering::Relaxed), answer.is_err())
}

#[tokio::test]
async fn only_reads_are_sent() {
    const JOBS: &str = "/apis/batch/v1/namespaces/a/jobs";
    let request = |method: Method, path: &str| Request::builder().method(method).uri(path.to_owned());
    let rows = [
        ("a list", request(Method::GET, JOBS), true),
        ("a get", request(Method::GET, &format!("{JOBS}/b")), true),
        ("a watch", request(Method::GET, &format!("{JOBS}?watch=true")), true),
        ("a create", request(Method::POST, JOBS), false),
        ("an update", request(Method::PUT, &format!("{JOBS}/b")), false),
        ("a patch", request(Method::PATCH, &format!("{JOBS}/b/status")), false),
        ("a deletion", request(Method::DELETE, &format!("{JOBS}/b")), false),
        ("a deletion of all", request(Method::DELETE, JOBS), false),
        ("a review", request(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), false),
        ("a method of another name", request(Method::from_bytes(b"PURGE").unwrap(), JOBS), false),
        ("exec", request(Method::GET, "/api/v1/namespaces/a/pods/b/exec").header(UPGRADE, "websocket"), false),
    ];
    for (name, request, is_sent) in rows {
        assert_eq!(sent(request).await, (usize::from(is_sent), !is_sent), "{name}");
    }
}
