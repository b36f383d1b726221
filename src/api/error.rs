//! What an API request can fail with, as the controller's decisions see it.
//!
//! Guarantee: an [`ApiError`] names the operation, the object and the cause; the questions that decisions ask of it
//! (not found, already exists, namespace terminating, server unavailable) are answered from the server's own Status,
//! never from its wording, but for a webhook that could not be called, of which the Status says nothing else.

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

/// What is known of a request that did not succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// The connection broke or the answer could not be read: the server may have carried the request out, or may still.
    #[default]
    Unknown,
    /// The request was never sent.
    NotSent,
    /// The client's deadline passed, and it is later than the server's own.
    GaveUp,
    /// The server answered with a Status.
    Answered,
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
    /// Whether the request reached the server, and what came back.
    pub delivery: Delivery,
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
            delivery: Delivery::default(),
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

    /// Whether the request may have been carried out all the same, now or a little later. A refusal below 500 says that it was
    /// not; so does a failed call of an admission webhook, since admission comes before storage. Any other answer from 500
    /// on may be given while the write is on its way to etcd.
    pub fn may_have_been_done(&self) -> bool {
        match self.code {
            0 => self.delivery != Delivery::NotSent,
            408 => true,
            500.. => !self.is_webhook_failure(),
            _ => false,
        }
    }

    /// The time that the request was given was too short: no answer within the client's deadline, or the server's own had
    /// passed, also inside an admission webhook.
    pub fn timed_out(&self) -> bool {
        match self.code {
            0 => self.delivery == Delivery::GaveUp,
            408 | 504 => true,
            500 => self.is_webhook_failure() && self.message.contains("context deadline exceeded"),
            _ => false,
        }
    }

    /// The server, or what it asks, was too busy for a moment; client-go's REST client hides such answers by repeating the
    /// request.
    pub fn is_transient(&self) -> bool {
        self.is_too_many_requests() || self.retry_after.is_some() || self.timed_out()
    }

    /// An admission webhook could not be asked, so that nothing was stored. kube-apiserver says so in these words only
    /// (apiserver, `admission/plugin/webhook`, `ErrCallingWebhook`).
    pub fn is_webhook_failure(&self) -> bool {
        self.code == 500 && self.message.starts_with("Internal error occurred: failed calling webhook")
    }

    /// The server, and not this object, is the trouble: no answer, 429 or 5xx. Such failures end for all keys at once
    /// when the server is back.
    pub fn is_unavailable(&self) -> bool {
        self.code == 0 || self.is_too_many_requests() || self.code >= 500
    }
}
