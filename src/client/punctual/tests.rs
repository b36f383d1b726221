#![allow(clippy::unwrap_used)]
use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_body_that_is_late_is_not_sent() {
    // (sentence, seconds that the request may wait, seconds until its body is asked for, whether it is sent)
    let rows = [
        ("at once", Some(2), 0, true),
        ("in time", Some(2), 2, true),
        ("after a slow connection", Some(2), 3, false),
        ("without a limit", None, 60, true),
    ];
    for (sentence, allowed, waits, is_sent) in rows {
        let mut request = Request::post("/jobs").body(Body::from(b"{}".to_vec())).unwrap();
        if let Some(allowed) = allowed {
            request.extensions_mut().insert(SendBefore(Instant::now() + Duration::from_secs(allowed)));
        }
        let (waiting, early) = (request.extensions().clone(), punctual(request));
        assert_eq!(early.body().size_hint().exact(), Some(2), "{sentence}");
        tokio::time::sleep(Duration::from_secs(waits)).await;
        assert_eq!(early.into_body().collect().await.is_ok(), is_sent, "{sentence}: its body");
        let mut late = Request::new(Body::empty());
        *late.extensions_mut() = waiting;
        assert_eq!(in_time(late).is_ok(), is_sent, "{sentence}: its credentials");
    }
}
