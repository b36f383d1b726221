//! AdmissionReviews, `admission.k8s.io/v1`, as far as the webhooks need them.
//!
//! Guarantee: an answer carries the UID of its request, and the object is never decoded into types that could drop a field.
//! Matches k8s.io/api `admission/v1/types.go`.

use apimachinery::status::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Why a body is not a request.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// Not JSON, or not an AdmissionReview.
    #[error("the body is no AdmissionReview: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another kind, or an unsupported version.
    #[error("the body is a {kind:?} of {api_version:?}; this webhook answers an {KIND} of {API_VERSION}")]
    Other { api_version: String, kind: String },
    /// The review has no request.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

/// An admission request.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// The UID, repeated in the answer.
    pub uid: String,
    /// The operation.
    pub operation: Operation,
    /// The new object; null on deletion.
    #[serde(default)]
    pub object: Value,
}

/// The operation of an admission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// The decision on a request.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// Allows the object unchanged.
    Allowed,
    /// Allows the object with these operations of a JSON patch.
    Patched(Vec<Value>),
    /// Rejects the object with this Status.
    Denied(Box<Status>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

/// Parses an AdmissionReview.
///
/// # Errors
/// One sentence for the sender of the body.
pub fn read(body: &[u8]) -> Result<Request, ReviewError> {
    let Review { api_version, kind, request } = serde_json::from_slice(body)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(ReviewError::Other { api_version, kind });
    }
    request.ok_or(ReviewError::NoRequest)
}

/// The AdmissionReview that answers the request `uid`.
pub fn answer(uid: &str, verdict: &Verdict) -> Value {
    let mut response = json!({ "uid": uid, "allowed": !matches!(verdict, Verdict::Denied(_)) });
    match verdict {
        Verdict::Allowed => {}
        Verdict::Patched(operations) => {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(Value::from(operations.clone()).to_string()));
        }
        Verdict::Denied(status) => response["status"] = status.to_value(),
    }
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}
