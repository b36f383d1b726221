//! Requests of `dev` to its own API server.
//!
//! Guarantees: every request has a timeout. An error keeps the server's code and message.

use std::fmt::Display;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The server is in this process: an answer that takes longer will never come.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The field manager and user agent of `dev`'s own writes.
pub const MANAGER: &str = "cronjob-controller-dev";

/// The body of a merge patch.
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// Any other body.
pub const JSON: &str = "application/json";

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The HTTP status; 0 if there was no answer.
    pub code: u16,
    /// The reason of the Status, such as `AlreadyExists`.
    pub reason: String,
    /// The message of the Status.
    pub message: String,
}

impl Refusal {
    fn none(error: &dyn Display) -> Self {
        Self { code: 0, reason: String::new(), message: error.to_string() }
    }
}

/// Sends one request and decodes the answer as `T`; `serde::de::IgnoredAny` ignores it.
///
/// # Errors
/// The server's error, or that it did not answer.
pub async fn send<T: DeserializeOwned>(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &'static str,
    body: &Value,
) -> Result<T, Refusal> {
    send_and_tell(client, method, path, content_type, body, &mut |_| {}).await
}

/// The same; `tell` takes what the server warns of.
///
/// # Errors
/// As [`send`].
pub async fn send_and_tell<T: DeserializeOwned>(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &'static str,
    body: &Value,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<T, Refusal> {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::ACCEPT, JSON)
        .header(http::header::USER_AGENT, MANAGER)
        .body(bytes)
        .map_err(|error| Refusal::none(&error))?;
    let answer = async {
        let response = client.send(request.map(Into::into)).await.map_err(|error| Refusal::none(&error))?;
        let (parts, body) = response.into_parts();
        let warnings = parts.headers.get_all(http::header::WARNING).iter();
        warnings.filter_map(|value| value.to_str().ok()).for_each(|value| tell(&text_of(value)));
        let body = body.collect().await.map_err(|error| Refusal::none(&error))?.to_bytes();
        if parts.status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| Refusal::none(&error));
        }
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        Err(Refusal { code: parts.status.as_u16(), reason: text("reason"), message: text("message") })
    };
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Refusal::none(&"no answer within 10 s")),
    }
}

/// The text of a header such as `299 - "text"`.
fn text_of(warning: &str) -> String {
    let quoted = warning.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
    quoted.map_or(warning, |(text, _)| text).replace("\\\"", "\"").replace("\\\\", "\\")
}
