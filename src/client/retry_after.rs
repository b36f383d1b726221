//! Makes the server's `Retry-After` readable.
//!
//! API Priority and Fairness and the server's own limits refuse with a header and a plain text body. kube keeps
//! neither, only a `Status` out of the body. So this layer writes the header into the body before kube reads it.

use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Either, Limited};
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;
use tower::BoxError;

/// More than any `Status` of the API server has; anything longer is a proxy's page.
const LONGEST_BODY: usize = 64 * 1024;

/// How long the server asks the client to wait before it repeats the request, if it does; also if it asked in a header.
/// The server means seconds; zero counts as absent. Matches client-go's `SuggestsClientDelay` (apimachinery
/// `pkg/api/errors`).
pub fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// Moves the `Retry-After` of a refusal into its `Status`; plain text becomes a `Status`. All other answers pass
/// unchanged. Matches client-go's `checkWait` and `newUnstructuredResponseError`.
pub(super) async fn surface<B>(response: Response<B>) -> Result<Response<Either<B, Body>>, BoxError>
where
    B: http_body::Body<Data = <Body as http_body::Body>::Data>,
    B::Error: Into<BoxError>,
{
    let Some(seconds) = asked_to_wait(&response) else { return Ok(response.map(Either::Left)) };
    let (mut parts, body) = response.into_parts();
    // A body that breaks off or never ends does not invalidate the header.
    let text = Limited::new(body, LONGEST_BODY).collect().await.map(Collected::to_bytes).unwrap_or_default();
    let mut status: Status = serde_json::from_slice(&text).unwrap_or_else(|_| status_of(parts.status, &text));
    let details = status.details.get_or_insert_with(no_details);
    if details.retry_after_seconds == 0 {
        details.retry_after_seconds = seconds;
    }
    let body = serde_json::to_vec(&status)?;
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(Response::from_parts(parts, Either::Right(body.into())))
}

/// The seconds in the header. The other form that HTTP allows, a date, is not used by the API server.
fn asked_to_wait<B>(response: &Response<B>) -> Option<u32> {
    let refused = response.status() == StatusCode::TOO_MANY_REQUESTS || response.status().is_server_error();
    let header = response.headers().get(RETRY_AFTER).filter(|_| refused)?;
    header.to_str().ok()?.trim().parse().ok()
}

fn no_details() -> StatusDetails {
    let (name, group, kind, uid) = Default::default();
    StatusDetails { name, group, kind, uid, causes: Vec::new(), retry_after_seconds: 0 }
}

fn status_of(code: StatusCode, text: &[u8]) -> Status {
    let text = String::from_utf8_lossy(text);
    let message = match text.trim() {
        "" => code.canonical_reason().unwrap_or("refused"),
        text => text,
    };
    let reason = match code {
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        _ => "InternalError",
    };
    Status::failure(message, reason).with_code(code.as_u16())
}
