//! What an API request can fail with, as the controller's decisions see it.
//!
//! Guarantee: an [`ApiError`] names the operation, the object and the cause; the questions that decisions ask of it
//! (not found, already exists, namespace terminating, server unavailable) are answered from the server's own Status,
//! never from its wording.

use std::time::Duration;

use super::ObjectName;

/// How much of a server's or a decoder's message is kept: as much as an Event can hold. They quote what they were given,
/// which may be an object of megabytes.
const LONGEST_MESSAGE: usize = 8192;

/// As much of the beginning of `text` as has no more than `most` bytes.
pub fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

/// One request that did not succeed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{operation} {object}: {message}")]
pub struct ApiError {
    /// What was tried, for example `create Job`.
    pub operation: Box<str>,
    /// On which object.
    pub object: ObjectName,
    /// The HTTP status code; 0 where no answer came.
    pub code: u16,
    /// `reason` of the Status, for example `AlreadyExists`.
    pub reason: String,
    /// `message` of the Status, or the transport's error; shortened.
    pub message: String,
    /// Whether the Status carries the cause `NamespaceTerminating`.
    pub namespace_terminating: bool,
    /// How long the server asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// A failure without an answer from the server.
    pub fn transport(operation: impl Into<Box<str>>, object: ObjectName, message: impl AsRef<str>) -> Self {
        Self {
            operation: operation.into(),
            object,
            code: 0,
            reason: String::new(),
            message: shortened(message.as_ref(), LONGEST_MESSAGE).to_owned(),
            namespace_terminating: false,
            retry_after: None,
        }
    }

    /// The object does not exist. Matches apimachinery `errors.IsNotFound`.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// The name is taken. Matches apimachinery `errors.IsAlreadyExists`.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// The write's preconditions (UID, resource version) did not hold.
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    /// The server asks to be asked less. Matches apimachinery `errors.IsTooManyRequests`.
    pub fn is_too_many_requests(&self) -> bool {
        self.code == 429
    }

    /// The server has judged the request and refuses it, for a reason that lies in the object or in its namespace: a quota,
    /// an admission policy, a namespace that is terminating. The account's own rights are refused in the same way. Not a
    /// credential that is not accepted (401), a request that took too long (408), or [`Self::is_unavailable`].
    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.code) && !matches!(self.code, 401 | 408 | 429)
    }

    /// The server, and not this object, is the trouble: no answer, 429 or 5xx. Such failures end for all keys at once
    /// when the server is back.
    pub fn is_unavailable(&self) -> bool {
        self.code == 0 || self.is_too_many_requests() || self.code >= 500
    }
}
