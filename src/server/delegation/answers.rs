//! The refusals, with the texts of the API server.
//!
//! Guarantee: no client input is echoed in a form that a browser could render as a document.

use apimachinery::quoting::quote;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::reviews::ReviewError;
use crate::server::plain_text;

/// Matches `NewUnauthorized` in k8s.io/apimachinery's pkg/api/errors.
pub(super) fn unauthorized() -> Response {
    status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized".to_owned())
}

/// Matches `ForbiddenStatusError` in k8s.io/apiserver's pkg/endpoints/handlers/responsewriters, for a non-resource
/// path.
pub(super) fn forbidden(user: &str, verb: &str, path: &str, reason: &str) -> Response {
    let mut message =
        format!("forbidden: {}", harmless(&format!("User {} cannot {verb} path {}", quote(user), quote(path))));
    if !reason.is_empty() {
        message = format!("{message}: {reason}");
    }
    status(StatusCode::FORBIDDEN, "Forbidden", message)
}

/// Matches `NewTooManyRequestsError` in k8s.io/apimachinery's pkg/api/errors.
pub(super) fn too_many_requests() -> Response {
    let message = "too many requests, please try again later".to_owned();
    let mut response = status(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Matches `InternalError` there.
pub(super) fn internal_error(path: &str, error: &ReviewError) -> Response {
    let text = harmless(&format!("Internal Server Error: {}: {error}", quote(path)));
    plain_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{text}\n"))
}

fn status(code: StatusCode, reason: &str, message: String) -> Response {
    let status = Status {
        status: Some("Failure".to_owned()),
        message: Some(message),
        reason: Some(reason.to_owned()),
        code: Some(code.as_u16().into()),
        ..Status::default()
    };
    let mut response = (code, axum::Json(status)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn harmless(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
