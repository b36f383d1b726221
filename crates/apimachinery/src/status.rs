//! API errors as metav1 `Status`.
//!
//! Guarantees: every constructor returns the code, reason, message and details that the function of the same name in
//! k8s.io/apimachinery `pkg/api/errors/errors.go` returns for the same arguments.

use serde_json::{Map, Value, json};

use crate::field::FieldError;
use crate::quoting::quote;

/// One cause in the details of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable, such as `FieldValueInvalid`.
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// The field; empty if the cause concerns none.
    pub field: String,
}

/// The subject of a [`Status`]. Empty fields are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group.
    pub group: String,
    /// The kind or, as upstream often does, the plural name.
    pub kind: String,
    /// UID of the object.
    pub uid: String,
    /// The causes.
    pub causes: Vec<Cause>,
    /// Seconds after which a retry may succeed; 0 if unknown.
    pub retry_after_seconds: u32,
}

/// An API error, as metav1 `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; empty if unknown.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// The details; `None` omits the field, which clients can distinguish from empty details.
    pub details: Option<Details>,
    /// The token of an inconsistent continuation (for expired continue tokens only).
    pub continue_token: Option<String>,
}

/// The result of an operation that can fail with an API error.
pub type Result<T> = std::result::Result<T, Box<Status>>;

/// A group and a name (plural or kind) as messages print them.
#[derive(Clone, Debug, Default)]
pub struct Qualified {
    /// API group.
    pub group: String,
    /// Plural name, or kind.
    pub name: String,
}

impl Qualified {
    /// A resource (plural name) or a kind of a group; the core group is empty.
    pub fn new(group: &str, name: &str) -> Self {
        Self { group: group.to_owned(), name: name.to_owned() }
    }

    /// A kind of the group meta.k8s.io, such as `ListOptions`.
    pub fn meta(kind: &str) -> Self {
        Self { group: "meta.k8s.io".to_owned(), name: kind.to_owned() }
    }

    fn details(&self, name: &str) -> Details {
        Details { name: name.to_owned(), group: self.group.clone(), kind: self.name.clone(), ..Details::default() }
    }
}

impl std::fmt::Display for Qualified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() { f.write_str(&self.name) } else { write!(f, "{}.{}", self.name, self.group) }
    }
}

fn status(code: u16, reason: &'static str, message: String, details: Option<Details>) -> Box<Status> {
    Box::new(Status { code, reason, message, details, continue_token: None })
}

/// 404 for an object.
pub fn not_found(what: &Qualified, name: &str) -> Box<Status> {
    status(404, "NotFound", format!("{what} {} not found", quote(name)), Some(what.details(name)))
}

/// 409 for a name that is taken.
pub fn already_exists(what: &Qualified, name: &str) -> Box<Status> {
    status(409, "AlreadyExists", format!("{what} {} already exists", quote(name)), Some(what.details(name)))
}

/// 409 for a generated name that is taken.
pub fn generate_name_conflict(what: &Qualified, name: &str) -> Box<Status> {
    let quoted = quote(name);
    let message =
        format!("{what} {quoted} already exists, the server was not able to generate a unique name for the object");
    let details = Details { retry_after_seconds: 1, ..what.details(name) };
    status(409, "AlreadyExists", message, Some(details))
}

/// 403.
pub fn forbidden(what: &Qualified, name: &str, why: &str) -> Box<Status> {
    let message = if name.is_empty() {
        format!("{what} is forbidden: {why}")
    } else {
        format!("{what} {} is forbidden: {why}", quote(name))
    };
    status(403, "Forbidden", message, Some(what.details(name)))
}

/// 409 for a precondition or a resourceVersion that does not match.
pub fn conflict(what: &Qualified, name: &str, why: &str) -> Box<Status> {
    let message = format!("Operation cannot be fulfilled on {what} {}: {why}", quote(name));
    status(409, "Conflict", message, Some(what.details(name)))
}

/// 409 for fields that another manager owns.
pub fn apply_conflict(causes: Vec<Cause>, message: String) -> Box<Status> {
    status(409, "Conflict", message, Some(Details { causes, ..Details::default() }))
}

/// 422. `what` names the kind.
pub fn invalid(what: &Qualified, name: &str, errors: &[FieldError]) -> Box<Status> {
    let causes = errors
        .iter()
        .map(|error| Cause {
            reason: error.kind.reason().to_owned(),
            message: error.body.clone(),
            field: error.field.clone(),
        })
        .collect();
    let message = format!("{what} {} is invalid: {}", quote(name), aggregate(errors));
    status(422, "Invalid", message, Some(Details { causes, ..what.details(name) }))
}

/// 400.
pub fn bad_request(message: impl Into<String>) -> Box<Status> {
    status(400, "BadRequest", message.into(), None)
}

/// 410.
pub fn expired(message: impl Into<String>) -> Box<Status> {
    status(410, "Expired", message.into(), None)
}

/// 413.
pub fn too_large(message: &str) -> Box<Status> {
    status(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"), None)
}

/// 504 for a resourceVersion in the future.
pub fn too_large_resource_version(wanted: u64, current: u64) -> Box<Status> {
    let cause = Cause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    status(504, "Timeout", message, Some(details))
}

/// 500 for an error that the real server does not convert.
pub fn unknown(message: impl Into<String>) -> Box<Status> {
    status(500, "", message.into(), None)
}

/// 406 from content negotiation.
pub fn not_acceptable(message: impl Into<String>) -> Box<Status> {
    status(406, "NotAcceptable", message.into(), None)
}

/// 415 from content negotiation.
pub fn unsupported_media_type(message: impl Into<String>) -> Box<Status> {
    status(415, "UnsupportedMediaType", message.into(), None)
}

/// The Status that a client makes of an answer without one. Matches `NewGenericServerResponse` without a resource.
pub fn generic(code: u16, server_message: &str) -> Box<Status> {
    let (reason, message) = match code {
        400 => ("BadRequest", "the server rejected our request for an unknown reason"),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
        403 => ("Forbidden", server_message),
        404 => ("NotFound", "the server could not find the requested resource"),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
        406 => ("NotAcceptable", server_message),
        409 => ("AlreadyExists", "the server reported a conflict"),
        415 => ("UnsupportedMediaType", server_message),
        422 => ("Invalid", "the server rejected our request due to an error in our request"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => ("InternalError", ""),
        _ => ("", ""),
    };
    let message = match (message, code) {
        ("", 500..) => {
            format!("an error on the server ({}) has prevented the request from succeeding", quote(server_message))
        }
        ("", code) => {
            format!("the server responded with the status code {code} but did not return more information")
        }
        (message, _) => message.to_owned(),
    };
    status(code, reason, message, Some(Details::default()))
}

impl Status {
    /// The JSON document.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            value["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            value["details"] = details.to_value();
        }
        value
    }

    /// Adds one cause.
    #[must_use]
    pub fn with_cause(mut self: Box<Self>, cause: Cause) -> Box<Self> {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !text.is_empty() {
                map.insert(key.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".to_owned(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), json!(self.retry_after_seconds));
        }
        Value::Object(map)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let fields = [("reason", &self.reason), ("message", &self.message), ("field", &self.field)];
        let present = fields.into_iter().filter(|(_, text)| !text.is_empty());
        present.map(|(key, text)| (key.to_owned(), json!(text))).collect()
    }
}

/// The answer to a completed deletion. Matches `Store.finalizeDelete`.
pub fn deleted(what: &Qualified, name: &str, uid: &str) -> Value {
    let details = Details { uid: uid.to_owned(), ..what.details(name) };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_value()})
}

/// All errors in one text without duplicates. Matches `field.ErrorList.ToAggregate` and `utilerrors.Aggregate`.
fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = format!("{}: {}", error.field, error.body);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.len() == 1 { texts.swap_remove(0) } else { format!("[{}]", texts.join(", ")) }
}

#[cfg(test)]
mod tests;
