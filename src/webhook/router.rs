//! The HTTP endpoints of the webhooks.
//!
//! Guarantees: a body is read up to [`MAX_BODY`] and for at most [`READ_TIMEOUT`]. All bodies together hold at most [`BODIES`]
//! bytes, and one is processed at a time, whatever clients send. A body is always read before the answer, because a client that
//! is still writing would get a connection reset before it could read the answer. Each error is one sentence in a Status: the
//! API server passes on only the code of any other answer (`Result.Error` in k8s.io/client-go `rest/request.go`).

use std::sync::Arc;
use std::time::Duration;

use apimachinery::status::Status;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use tokio::sync::Semaphore;
use tracing::debug;

use super::review::{self, Verdict};
use super::{MUTATE_PATH, VALIDATE_PATH, defaulting, validation};
use crate::server::budgets::{BodyBudget, ReadError};
use crate::server::not_found;

/// The largest body in bytes: the old and the new object at kube-apiserver's limit (3 MiB each), and 1 MiB for the rest.
/// Matches `maxRequestSize` in controller-runtime's `pkg/webhook/admission/http.go`.
pub const MAX_BODY: usize = 7 << 20;

/// The total number of bytes of all bodies: two of the largest, or thousands of usual ones. A parsed document takes about ten
/// times its text, so only one is parsed at a time.
pub(super) const BODIES: usize = 16 << 20;

/// The time limit for a body: no API server waits longer for a webhook.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// An error that cannot be answered with a review.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the Content-Type is {0:?}; this webhook reads application/json")]
    ContentType(String),
    #[error("the body is larger than {MAX_BODY} bytes")]
    TooLarge,
    #[error("the body did not come within {} s", .0.as_secs_f32())]
    TooSlow(Duration),
    #[error("too many bytes of other requests are being read, please try again later")]
    Busy,
    #[error("the body broke off: {0}")]
    Broken(axum::Error),
    #[error(transparent)]
    Review(#[from] review::ReviewError),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (code, reason) = match self {
            Self::ContentType(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Self::TooSlow(_) => (StatusCode::REQUEST_TIMEOUT, "Timeout"),
            Self::Busy => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            Self::Broken(_) | Self::Review(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
        };
        debug!(status = %code, reason = %self, "a request to a webhook was refused");
        let message = self.to_string();
        let status = Status { code: code.as_u16(), reason, message, details: None, continue_token: None };
        let mut response = (code, axum::Json(status.to_value())).into_response();
        if code == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// Both webhooks.
pub fn router() -> Router {
    router_within(READ_TIMEOUT)
}

/// Both webhooks, with the time limit `limit` for bodies.
pub(super) fn router_within(limit: Duration) -> Router {
    router_with(limit, BodyBudget::new(BODIES))
}

/// Both webhooks, with the time limit `limit` and the byte budget `budget` for bodies.
fn router_with(limit: Duration, budget: BodyBudget) -> Router {
    let turn = Arc::new(Semaphore::new(1));
    Router::new()
        .route(MUTATE_PATH, webhook(defaulting::default_cron_job, Arc::clone(&turn)))
        .route(VALIDATE_PATH, webhook(validation::validate_cron_job, turn))
        .fallback(async || not_found())
        // `read_first` applies the limit with a better message.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(move |request, next| read_first(request, next, limit, budget.clone())))
}

fn webhook(judge: fn(&review::Request) -> Verdict, turn: Arc<Semaphore>) -> MethodRouter {
    post(async move |headers: HeaderMap, body: Bytes| {
        let _turn = turn.acquire().await;
        match respond(&headers, &body, judge) {
            Ok(answer) => axum::Json(answer).into_response(),
            Err(refusal) => refusal.into_response(),
        }
    })
}

async fn read_first(request: Request<Body>, next: Next, limit: Duration, budget: BodyBudget) -> Response {
    let (head, body) = request.into_parts();
    let refusal = match budget.read(body, MAX_BODY, limit).await {
        // The bytes count against the budget until the answer is complete.
        Ok(body) => return next.run(Request::from_parts(head, Body::from(body.bytes.clone()))).await,
        Err(ReadError::TooLarge) => Refusal::TooLarge,
        Err(ReadError::TooSlow) => Refusal::TooSlow(limit),
        Err(ReadError::Busy) => Refusal::Busy,
        Err(ReadError::Broken(error)) => Refusal::Broken(error),
    };
    refusal.into_response()
}

fn respond(
    headers: &HeaderMap,
    body: &[u8],
    judge: fn(&review::Request) -> Verdict,
) -> Result<serde_json::Value, Refusal> {
    let content_type = headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
    if content_type.split(';').next().map(str::trim) != Some("application/json") {
        return Err(Refusal::ContentType(content_type.to_owned()));
    }
    let question = review::read(body)?;
    Ok(review::answer(&question.uid, &judge(&question)))
}
