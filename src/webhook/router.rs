//! The webhooks' paths, over HTTP.
//!
//! Guarantees: a body is read up to [`MAX_BODY`] and for at most [`READ_TIMEOUT`]; whatever is wrong with a request is one
//! sentence of plain text under a status that fits, which the API server repeats to its own client.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tracing::debug;

use super::review::{self, Verdict};
use super::{MUTATE_PATH, VALIDATE_PATH, defaulting, validation};
use crate::server::{not_found, plain_text};

/// The largest body in bytes: two objects as large as kube-apiserver takes them (3 MiB), old and new, and a mebibyte for
/// the rest. Matches `maxRequestSize` in controller-runtime's `pkg/webhook/admission/http.go`.
pub const MAX_BODY: usize = 7 << 20;

/// How long a body may take: no API server waits longer for a webhook.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What cannot be answered with a review.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the Content-Type is {0:?}; this webhook reads application/json")]
    ContentType(String),
    #[error("the body is larger than {MAX_BODY} bytes")]
    TooLarge,
    #[error("the body did not come within {} s", READ_TIMEOUT.as_secs())]
    TooSlow,
    #[error("the body broke off: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Review(#[from] review::ReviewError),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) | Self::Review(_) => StatusCode::BAD_REQUEST,
        };
        debug!(%status, reason = %self, "a request to a webhook was refused");
        plain_text(status, format!("{self}\n"))
    }
}

/// Both webhooks.
pub fn router() -> Router {
    Router::new()
        .route(MUTATE_PATH, webhook(defaulting::default_cron_job))
        .route(VALIDATE_PATH, webhook(validation::validate_cron_job))
        .fallback(async || not_found())
}

fn webhook(judge: fn(&review::Request) -> Verdict) -> MethodRouter {
    post(async move |request: Request<Body>| match respond(request, judge).await {
        Ok(answer) => axum::Json(answer).into_response(),
        Err(refusal) => refusal.into_response(),
    })
}

async fn respond(request: Request<Body>, judge: fn(&review::Request) -> Verdict) -> Result<serde_json::Value, Refusal> {
    let content_type = request.headers().get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
    if content_type.split(';').next().map(str::trim) != Some("application/json") {
        return Err(Refusal::ContentType(content_type.to_owned()));
    }
    let body = Limited::new(request.into_body(), MAX_BODY).collect();
    let body = match tokio::time::timeout(READ_TIMEOUT, body).await {
        Err(_) => return Err(Refusal::TooSlow),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Refusal::TooLarge),
        Ok(Err(error)) => return Err(Refusal::Broken(error)),
        Ok(Ok(body)) => body.to_bytes(),
    };
    let question = review::read(&body)?;
    Ok(review::answer(&question.uid, &judge(&question)))
}
