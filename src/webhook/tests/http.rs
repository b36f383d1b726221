//! The webhooks' endpoints: their answers, and that no client can block them.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{StreamExt as _, stream};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use super::super::router::{MAX_BODY, READ_TIMEOUT, router};
use super::super::{MUTATE_PATH, VALIDATE_PATH};
use super::{cron_job, review};

async fn send(method: &str, path: &str, content_type: &str, body: impl Into<Body>) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let response = router().oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

const JSON: &str = "application/json";

/// The message of a Status with this code; any other answer unchanged.
fn message(code: u16, answer: &str) -> String {
    let status: Value = serde_json::from_str(answer).unwrap();
    if status["kind"] != "Status" {
        return answer.to_owned();
    }
    assert_eq!((&status["apiVersion"], &status["status"]), (&json!("v1"), &json!("Failure")));
    assert_eq!(status["code"], code);
    status["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_path_runs_its_own_webhook() {
    let object = cron_job("report", &json!({ "schedule": "every day" }));
    let body = review("CREATE", &object).to_string();
    for (path, content_type, allowed, has_patch) in [
        (MUTATE_PATH, JSON, true, true),
        (VALIDATE_PATH, JSON, false, false),
        (VALIDATE_PATH, "application/json; charset=utf-8", false, false),
    ] {
        let (status, text) = send("POST", path, content_type, body.clone()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["response"]["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
        assert_eq!(answer["response"]["allowed"], allowed, "{path}");
        assert_eq!(answer["response"]["patch"].is_string(), has_patch, "{path}");
    }
}

#[tokio::test]
async fn invalid_request_is_refused_with_one_sentence() {
    let body = review("DELETE", &Value::Null).to_string();
    let padded = |size: usize| format!("{body}{}", " ".repeat(size - body.len()));
    let rows = [
        ("as large as allowed", "POST", VALIDATE_PATH, JSON, padded(MAX_BODY), 200, "{"),
        (
            "a byte larger",
            "POST",
            VALIDATE_PATH,
            JSON,
            padded(MAX_BODY + 1),
            413,
            "the body is larger than 7340032 bytes",
        ),
        ("no JSON", "POST", MUTATE_PATH, JSON, "x".to_owned(), 400, "the body is no AdmissionReview: "),
        ("no body", "POST", MUTATE_PATH, JSON, String::new(), 400, "the body is no AdmissionReview: EOF "),
        (
            "another form",
            "POST",
            MUTATE_PATH,
            "application/yaml",
            body.clone(),
            415,
            "the Content-Type is \"application/yaml\"; this webhook reads application/json",
        ),
        ("another path", "POST", "/mutate", JSON, body.clone(), 404, "404 page not found\n"),
        ("a GET", "GET", VALIDATE_PATH, JSON, String::new(), 405, ""),
    ];
    for (sentence, method, path, content_type, body, status, text) in rows {
        let (code, said) = send(method, path, content_type, body).await;
        assert_eq!(code.as_u16(), status, "{sentence}: {said}");
        let said = if [404, 405].contains(&status) { said } else { message(status, &said) };
        assert!(said.starts_with(text), "{sentence}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn missing_body_is_refused_after_a_timeout() {
    let silence = stream::pending::<Result<Bytes, Infallible>>();
    let drops = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b" ")), ()))
    });
    for (sentence, body) in [("silence", Body::from_stream(silence)), ("drop by drop", Body::from_stream(drops))] {
        let started = Instant::now();
        let got = send("POST", MUTATE_PATH, JSON, body).await;
        assert_eq!(got.0, StatusCode::REQUEST_TIMEOUT, "{sentence}");
        assert_eq!(message(408, &got.1), "the body did not come within 30 s", "{sentence}");
        assert_eq!(started.elapsed().as_secs(), READ_TIMEOUT.as_secs(), "{sentence}");
    }
}

#[tokio::test]
async fn truncated_body_is_a_bad_request() {
    let broken = stream::iter([Ok(Bytes::from_static(b"{")), Err("connection reset")]);
    let (status, text) = send("POST", MUTATE_PATH, JSON, Body::from_stream(broken)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(message(400, &text).starts_with("the body broke off: "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn bodies_of_all_requests_share_a_budget_and_a_body_beyond_it_gets_retry_after() {
    let router = router();
    let body = review("DELETE", &Value::Null).to_string();
    let send = |body: Body| {
        let request = Request::post(VALIDATE_PATH).header("content-type", JSON).body(body).unwrap();
        router.clone().oneshot(request)
    };
    // Two unfinished bodies that hold six mebibytes each.
    let held: Vec<_> = (0..2)
        .map(|_| {
            let begun = stream::iter([Ok::<_, Infallible>(Bytes::from(vec![b' '; 6 << 20]))]);
            tokio::spawn(send(Body::from_stream(begun.chain(stream::pending()))))
        })
        .collect();
    tokio::task::yield_now().await;
    let large = send(Body::from(format!("{body}{}", " ".repeat(6 << 20)))).await.unwrap();
    assert_eq!((large.status().as_u16(), &large.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(send(Body::from(body.clone())).await.unwrap().status(), StatusCode::OK, "a usual one fits");
    for held in held {
        assert_eq!(held.await.unwrap().unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    }
    let large = send(Body::from(format!("{body}{}", " ".repeat(6 << 20)))).await.unwrap();
    assert_eq!(large.status(), StatusCode::OK, "what ended holds nothing");
}
