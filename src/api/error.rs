//! What an API request can fail with, as the controller's decisions see it.
//!
//! Guarantee: an [`ApiError`] names the operation, the object and the cause; the questions that decisions ask of it
//! (not found, already exists, namespace terminating, server unavailable) are answered from the code, the reason and the
//! causes of the server's own Status. One is answered from its wording, because nothing else tells it: whether admission in the
//! object's namespace refused it ([`ApiError::is_admission`]).

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

    /// Whose trouble it is.
    pub fn class(&self) -> FailureClass {
        let is_transient = matches!(self.code, 429 | 503);
        match self.code {
            _ if self.namespace_terminating => FailureClass::Namespace,
            _ if self.is_admission() && !is_transient => FailureClass::Namespace,
            // The same credentials are every key's.
            0 | 401 | 429 | 500.. => FailureClass::Server,
            _ => FailureClass::Key,
        }
    }

    /// The server has judged the request and refuses it, for a reason that lies in the object or in its namespace: a quota,
    /// an admission policy, a namespace that is terminating. The account's own rights are refused in the same way. Not a
    /// credential that is not accepted (401), a request that took too long (408), or [`Self::is_unavailable`].
    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.code) && !matches!(self.code, 401 | 408 | 429)
    }

    /// The server, and not this object nor its namespace, is the trouble.
    pub fn is_unavailable(&self) -> bool {
        self.class() == FailureClass::Server
    }

    /// Whether admission in the object's namespace refused the request: a webhook or a policy that denied it, a webhook that
    /// could not be called, a quota.
    ///
    /// Status has no reason or cause for it: a webhook that cannot be called is an `InternalError`, as a panic of the server is,
    /// a quota is `Forbidden`, as a missing right is, and a webhook's denial may have any code. So this looks for the texts
    /// of kube-apiserver (`plugin/webhook/errors/statuserror.go`, `plugin/resourcequota/controller.go`,
    /// `plugin/policy/validating/dispatcher.go` in `apiserver/pkg/admission`), which have not changed since 1.9 (policies: 1.26).
    /// Where they do, the failure is taken for the server's or the key's.
    pub fn is_admission(&self) -> bool {
        let message = &*self.message;
        match self.code {
            // The denial's code is the webhook's choice.
            _ if message.starts_with("admission webhook \"") && message.contains("denied the request") => true,
            _ if message.contains(": ValidatingAdmissionPolicy '") && message.contains(" denied request") => true,
            500 => self.is_webhook_failure(),
            403 => message.contains("exceeded quota: ") || message.contains("status unknown for quota: "),
            _ => false,
        }
    }
}

/// Whose trouble a failure is, and so whose end of it is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The object's own: trying again without a change of it will hardly help.
    Key,
    /// Its namespace's: admission, a quota, or the namespace ends.
    Namespace,
    /// The API server's: no answer, 401, 429 or 5xx, a webhook's 429 and 503 included. It ends for all keys at once.
    Server,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_of_a_failure_by_status_and_text() {
        use FailureClass::{Key, Namespace, Server};
        let rows = [
            ("no answer", 0, "no answer within 10 s", Server, false),
            ("overload", 429, "too many requests", Server, false),
            ("unavailable", 503, "etcdserver: leader changed", Server, false),
            ("timeout", 504, "Timeout: request did not complete within requested timeout", Server, false),
            ("a panic of the server", 500, "Internal error occurred: panic", Server, false),
            ("expired credentials", 401, "Unauthorized", Server, false),
            (
                "a webhook that cannot be called",
                500,
                "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: Post \"https://x\": \
                 context deadline exceeded",
                Namespace,
                true,
            ),
            ("a webhook's denial", 403, "admission webhook \"a.b.c\" denied the request: no", Namespace, true),
            (
                "a webhook's denial of the object",
                422,
                "admission webhook \"a.b.c\" denied the request: no",
                Namespace,
                true,
            ),
            (
                "a webhook that is overloaded",
                429,
                "admission webhook \"a.b.c\" denied the request: later",
                Server,
                true,
            ),
            ("a webhook that is away", 503, "admission webhook \"a.b.c\" denied the request: later", Server, true),
            (
                "a policy's denial",
                422,
                "jobs.batch \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                Namespace,
                true,
            ),
            (
                "a quota",
                403,
                "jobs.batch \"x\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: \
                 count/jobs.batch=5, limited: count/jobs.batch=5",
                Namespace,
                true,
            ),
            ("a missing right", 403, "jobs.batch is forbidden: User \"u\" cannot create resource \"jobs\"", Key, false),
            ("an invalid object", 422, "Job.batch \"x\" is invalid: spec.template: Required value", Key, false),
            ("a bad request", 400, "json: cannot unmarshal", Key, false),
            ("another write came first", 409, "the object has been modified", Key, false),
        ];
        for (sentence, code, message, class, is_admission) in rows {
            let error = ApiError { code, ..ApiError::transport("create Job", ObjectName::new("ns", "x"), message) };
            assert_eq!((error.class(), error.is_admission()), (class, is_admission), "{sentence}");
        }
        let terminating = ApiError {
            code: 403,
            namespace_terminating: true,
            ..ApiError::transport("create Job", ObjectName::new("ns", "x"), "being terminated")
        };
        assert_eq!(terminating.class(), Namespace);
    }
}
