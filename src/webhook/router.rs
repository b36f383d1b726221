//! The webhooks' paths, over HTTP.
//!
//! Guarantees: a body is read up to [`MAX_BODY`] and for at most [`READ_TIMEOUT`], and whatever the answer, it is read before
//! it is answered, since who is still writing would have its connection reset before it had read anything. What is wrong
//! with a request is said in one sentence, in a Status: of any other answer the API server repeats the code alone to its own
//! client (`Result.Error` in k8s.io/client-go `rest/request.go`).

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use super::review::{self, Verdict};
use super::{MUTATE_PATH, VALIDATE_PATH, defaulting, validation};
use crate::apiserver::status::Status;
use crate::server::not_found;

/// The largest body in bytes: two objects as large as kube-apiserver takes them (3 MiB), old and new, and a mebibyte for
/// the rest. Matches `maxRequestSize` in controller-runtime's `pkg/webhook/admission/http.go`.
pub const MAX_BODY: usize = 7 << 20;

/// How much of a body that is too large is read and thrown away before it is refused.
const MAX_WASTE: usize = 4 * MAX_BODY;

/// How long a body may take: no API server waits longer for a webhook.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What cannot be answered with a review.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the Content-Type is {0:?}; this webhook reads application/json")]
    ContentType(String),
    #[error("the body is larger than {MAX_BODY} bytes")]
    TooLarge,
    #[error("the body did not come within {} s", .0.as_secs_f32())]
    TooSlow(Duration),
    #[error("the body broke off: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Review(#[from] review::ReviewError),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (code, reason) = match self {
            Self::ContentType(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Self::TooSlow(_) => (StatusCode::REQUEST_TIMEOUT, "Timeout"),
            Self::Broken(_) | Self::Review(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
        };
        debug!(status = %code, reason = %self, "a request to a webhook was refused");
        let message = self.to_string();
        let status = Status { code: code.as_u16(), reason, message, details: None, continue_token: None };
        (code, axum::Json(status.to_value())).into_response()
    }
}

/// Both webhooks.
pub fn router() -> Router {
    router_within(READ_TIMEOUT)
}

/// Both webhooks, for bodies that come within `limit`.
pub(super) fn router_within(limit: Duration) -> Router {
    Router::new()
        .route(MUTATE_PATH, webhook(defaulting::default_cron_job))
        .route(VALIDATE_PATH, webhook(validation::validate_cron_job))
        .fallback(async || not_found())
        // The limit is `read`'s, which has words for it.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(move |request, next| read_first(request, next, limit)))
}

fn webhook(judge: fn(&review::Request) -> Verdict) -> MethodRouter {
    post(async move |headers: HeaderMap, body: Bytes| match respond(&headers, &body, judge) {
        Ok(answer) => axum::Json(answer).into_response(),
        Err(refusal) => refusal.into_response(),
    })
}

async fn read_first(request: Request<Body>, next: Next, limit: Duration) -> Response {
    let (head, body) = request.into_parts();
    match read(body, limit).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// The whole body.
async fn read(mut body: Body, limit: Duration) -> Result<Bytes, Refusal> {
    let deadline = Instant::now() + limit;
    match timeout_at(deadline, Limited::new(&mut body, MAX_BODY).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            // Whether its end is seen or not, the answer is the same.
            let _ = timeout_at(deadline, waste(body)).await;
            Err(Refusal::TooLarge)
        }
        Ok(Err(error)) => Err(Refusal::Broken(error)),
        Err(_) => Err(Refusal::TooSlow(limit)),
    }
}

/// Reads what is left of a body, up to a limit, and forgets it.
async fn waste(body: Body) {
    let mut rest = Limited::new(body, MAX_WASTE);
    while let Some(Ok(_)) = rest.frame().await {}
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
