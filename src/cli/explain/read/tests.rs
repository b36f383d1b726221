#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use http::Response;
use kube::client::Body;

use super::*;
use crate::client::on_service;

/// The limits that a list of objects of these lengths in bytes was asked with, and how many it returned.
async fn limits(lengths: Vec<usize>) -> (Vec<usize>, usize) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let limits = Arc::clone(&seen);
    let client = on_service(tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap().to_owned();
        let of = |key| query.split('&').find_map(|pair| pair.strip_prefix(key)).unwrap().parse();
        let (limit, start) = (of("limit=").unwrap(), of("continue=").unwrap_or(0));
        seen.lock().unwrap().push(limit);
        let page = lengths[start..].iter().take(limit);
        let answer = if page.clone().sum::<usize>() > 64 << 10 {
            Err(DeadlineError::Length.into())
        } else {
            let end = start + page.len();
            let token = if end < lengths.len() { end.to_string() } else { String::new() };
            let items: Vec<_> = page.map(|length| "x".repeat(*length)).collect();
            let page = serde_json::json!({"metadata": {"continue": token}, "items": items});
            Ok(Response::new(Body::from(page.to_string().into_bytes())))
        };
        async { answer as Result<_, tower::BoxError> }
    }));
    let items = list(&client, "/x", "").await.unwrap();
    let limits = limits.lock().unwrap().clone();
    (limits, items.len())
}

#[tokio::test]
async fn a_page_whose_objects_are_too_long_is_asked_for_again_with_fewer() {
    let (short, long) = (10, 20 << 10);
    let rows = [
        ("short objects", vec![short; 700], vec![500, 500]),
        ("long ones", vec![long; 5], vec![500, 62, 7, 1, 408, 51, 6, 1, 408]),
    ];
    for (sentence, lengths, expected) in rows {
        let count = lengths.len();
        assert_eq!(limits(lengths).await, (expected, count), "{sentence}");
    }
}
