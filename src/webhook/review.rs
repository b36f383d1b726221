//! AdmissionReviews, `admission.k8s.io/v1`, as far as the webhooks need them.
//!
//! Guarantee: an answer carries the UID of its question, and the object that was asked about is never decoded into types
//! that could drop a field. Matches k8s.io/api `admission/v1/types.go`.

use apimachinery::status::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Why a body is no question.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// Not JSON, or not of this shape.
    #[error("the body is no AdmissionReview: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Some other object, or a version that is not spoken here.
    #[error("the body is a {kind:?} of {api_version:?}; this webhook answers an {KIND} of {API_VERSION}")]
    Other { api_version: String, kind: String },
    /// An answer, or nothing.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

/// A question.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// To be repeated in the answer.
    pub uid: String,
    /// What is to be done with the object.
    pub operation: Operation,
    /// The object as it shall be; null where it shall not be any more.
    #[serde(default)]
    pub object: Value,
}

/// What is to be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What is answered.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// As it is.
    Allowed,
    /// With these changes, operations of a JSON patch.
    Patched(Vec<Value>),
    /// No, and why.
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

/// Reads a question.
///
/// # Errors
/// One sentence for whoever sent the body.
pub fn read(body: &[u8]) -> Result<Request, ReviewError> {
    let Review { api_version, kind, request } = serde_json::from_slice(body)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(ReviewError::Other { api_version, kind });
    }
    request.ok_or(ReviewError::NoRequest)
}

/// The answer to the question `uid`.
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
