//! The failures of an API request, as the controller's decisions see them.
//!
//! Guarantee: an [`ApiError`] names the operation, the object and the cause. Decisions ask whether an object is not
//! found or already exists, its namespace is terminating, or the server is unavailable. The code, the reason and the
//! causes of the server's Status answer these questions. Only [`ApiError::is_admission`] reads the message, because
//! Status has no field for it.

use std::time::Duration;

use super::ObjectName;

/// How many bytes of a server's or a decoder's message are kept: as many as an Event can hold. Messages quote their
/// input, which may be an object of megabytes.
const LONGEST_MESSAGE: usize = 8192;

/// The longest prefix of `text` with at most `most` bytes.
pub fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

/// The text, or its first `most` bytes and an ellipsis.
pub(super) fn excerpt(text: &str, most: usize) -> String {
    match shortened(text, most) {
        whole if whole.len() == text.len() => whole.to_owned(),
        start => format!("{start}…"),
    }
}

/// What is known about a request that did not succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// The connection broke, also in the middle of an answer. The server may have carried the request out, or may still
    /// do so.
    #[default]
    Unknown,
    /// The server answered, and the answer is no object of the kind.
    Unreadable,
    /// The request was never sent.
    NotSent,
    /// The client's deadline passed, which is later than the server's own.
    GaveUp,
    /// The server answered with a Status.
    Answered,
}

/// One request that did not succeed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{operation} {object}: {message}")]
pub struct ApiError {
    /// The operation, for example `create Job`.
    pub operation: Box<str>,
    /// The object of the operation.
    pub object: ObjectName,
    /// The HTTP status code; 0 where no answer came.
    pub code: u16,
    /// `reason` of the Status, for example `AlreadyExists`.
    pub reason: String,
    /// `message` of the Status, or the transport's error; shortened.
    pub message: String,
    /// Whether the Status carries the cause `NamespaceTerminating`.
    pub namespace_terminating: bool,
    /// How long the server asked the client to wait.
    pub retry_after: Option<Duration>,
    /// Whether the request reached the server, and what the server answered.
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

    /// The server asks for fewer requests. Matches apimachinery `errors.IsTooManyRequests`.
    pub fn is_too_many_requests(&self) -> bool {
        self.code == 429
    }

    /// Whether the server may have carried the request out despite the error, or may still do so. A refusal below 500
    /// says that it did not. So does a failed call of an admission webhook, since admission comes before storage. Any
    /// other answer from 500 on may be sent while the write is on its way to etcd.
    pub fn may_have_been_done(&self) -> bool {
        match self.code {
            0 => self.delivery != Delivery::NotSent,
            408 => true,
            500.. => !self.is_webhook_failure() && !self.is_too_large(),
            _ => false,
        }
    }

    /// The object is longer than etcd takes. kube-apiserver passes etcd's own words on, as an error of the server.
    fn is_too_large(&self) -> bool {
        self.code == 500 && self.message.contains("etcdserver: request is too large")
    }

    /// A time limit passed: the client's deadline, or the server's own, also inside an admission webhook.
    pub fn timed_out(&self) -> bool {
        match self.code {
            0 => self.delivery == Delivery::GaveUp,
            408 | 504 => true,
            500 => self.is_webhook_failure() && self.message.contains("context deadline exceeded"),
            _ => false,
        }
    }

    /// The server, or a backend of it, was briefly too busy. client-go's REST client hides such answers by repeating
    /// the request.
    pub fn is_transient(&self) -> bool {
        self.is_too_many_requests() || self.retry_after.is_some() || self.timed_out()
    }

    /// The server could not call an admission webhook, so it stored nothing. kube-apiserver says so only in these words
    /// (apiserver, `admission/plugin/webhook`, `ErrCallingWebhook`).
    pub fn is_webhook_failure(&self) -> bool {
        self.code == 500 && self.message.starts_with("Internal error occurred: failed calling webhook")
    }

    /// The scope of the failure.
    pub fn class(&self) -> FailureClass {
        let is_transient = matches!(self.code, 429 | 503);
        match self.code {
            _ if self.namespace_terminating => FailureClass::Namespace,
            _ if self.is_admission() && !is_transient => FailureClass::Namespace,
            // Quotas and missing rights: when they are raised or granted, all keys can continue.
            403 => FailureClass::Namespace,
            // A create names no version. The conflict is that of the quota, whose usage others changed at the same time.
            409 if self.is_conflict() && self.operation.starts_with("create ") => FailureClass::Namespace,
            // The same object may be read again and again.
            0 if self.delivery == Delivery::Unreadable => FailureClass::Namespace,
            _ if self.is_too_large() => FailureClass::Key,
            // All keys share the same credentials.
            0 | 401 | 408 | 429 | 500.. => FailureClass::Server,
            _ => FailureClass::Key,
        }
    }

    /// The server refuses the request for a reason in the object or in its namespace: a quota, an admission policy, a
    /// terminating namespace. Missing rights of the controller's account look the same. Excluded are rejected
    /// credentials (401), a request that took too long (408), and [`Self::is_unavailable`].
    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.code) && !matches!(self.code, 401 | 408 | 429)
    }

    /// The cause is the server, not this object or its namespace.
    pub fn is_unavailable(&self) -> bool {
        self.class() == FailureClass::Server
    }

    /// Whether admission in the object's namespace refused the request: a webhook or a policy that denied it, a webhook
    /// that could not be called, or a quota.
    ///
    /// Status has no reason or cause for this. A webhook that cannot be called is an `InternalError`, as is a panic of
    /// the server. A quota is `Forbidden`, as is a missing right, and a webhook's denial may have any code. So this
    /// looks for the texts of kube-apiserver (`plugin/webhook/errors/statuserror.go`,
    /// `plugin/resourcequota/controller.go`, `plugin/policy/validating/dispatcher.go` in `apiserver/pkg/admission`),
    /// which have not changed since 1.9 (policies: 1.26). If they change, the failure is attributed to the server or
    /// the key.
    pub fn is_admission(&self) -> bool {
        let message = &*self.message;
        match self.code {
            // The webhook chooses the code of a denial.
            _ if message.starts_with("admission webhook \"") && message.contains("denied the request") => true,
            _ if message.contains(": ValidatingAdmissionPolicy '") && message.contains(" denied request") => true,
            500 => self.is_webhook_failure(),
            403 => message.contains("exceeded quota: ") || message.contains("status unknown for quota: "),
            _ => false,
        }
    }
}

/// The scope of a failure: what has to recover before a retry can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The object: a retry without a change of it is unlikely to succeed.
    Key,
    /// The namespace: admission, a quota, missing rights of the controller's account, or a terminating namespace.
    Namespace,
    /// The API server: no answer, 401, 408, 429 or 5xx, including a webhook's 429 and 503. It recovers for all keys at
    /// once.
    Server,
}

#[cfg(test)]
mod tests;
