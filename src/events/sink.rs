//! The port to the API server, and how its errors affect an event.
//!
//! Guarantees: a sink makes one try and returns the result. The writer decides whether to retry, by
//! [`SinkError::disposition`] alone. Nothing is sent while this process may not write. The body of a successful response is
//! not read.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::causes::with_causes;
use http::Request;
use kube::Client;
use kube::core::Status;
use serde::Serialize;
use thiserror::Error;

use super::Event;
use crate::api::{ACCEPT_METADATA, NO_FIELD_VALIDATION};
use crate::client::{DeadlineError, RequestLimits, TimeLimit, retry_after};
use crate::leader_election::Gate;

/// Stores events. Matches `EventSink` of client-go's `tools/record/event.go`.
pub trait EventSink: Send + Sync + 'static {
    /// Creates the Event in its namespace.
    fn create(&self, event: &Event) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Updates the Event of that name with [`Event::patch`].
    fn patch(&self, event: &Event) -> impl Future<Output = Result<(), SinkError>> + Send;
}

/// What the writer does after a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The Event does not exist: a patch must become a create.
    NotFound,
    /// An Event of that name exists.
    AlreadyExists,
    /// The server would refuse it again.
    Refused,
    /// It may succeed later, but not before this delay.
    Retry {
        /// The delay that the server asks for, or zero.
        not_before: Duration,
    },
}

/// One write that failed.
#[derive(Debug, Error)]
#[error("could not {operation} event {namespace}/{name}: {fault}")]
pub struct SinkError {
    /// `create` or `patch`.
    pub operation: &'static str,
    /// The Event's namespace.
    pub namespace: Arc<str>,
    /// The Event's name.
    pub name: Arc<str>,
    /// What went wrong.
    #[source]
    pub fault: SinkFault,
}

/// Why a write failed.
#[derive(Debug, Error)]
pub enum SinkFault {
    /// The server answered with a Status.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// The request could not be built, now or on a retry.
    #[error("cannot build the request: {0}")]
    Request(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Not sent: this process does not hold its lease.
    #[error("{}", DeadlineError::Closed)]
    Closed,
    /// There is no response, or an unreadable one.
    #[error("{}", with_causes(&**.0))]
    Transport(#[source] Box<kube::Error>),
    /// There was no response in time.
    #[error("no answer within {}s", .0.as_secs())]
    Timeout(Duration),
}

impl SinkError {
    /// An error of `operation` (`create` or `patch`) on `event`.
    pub fn new(operation: &'static str, event: &Event, fault: SinkFault) -> Self {
        Self { operation, namespace: event.namespace.clone(), name: event.name.clone(), fault }
    }

    /// How to proceed. Matches the switch in `recordEvent` (client-go's `tools/record/event.go`), with one difference: there
    /// no Status is tried again. client-go's REST client has by then repeated a 429 or 5xx ten times where the server sent
    /// `Retry-After`; this crate's client does not repeat requests by itself.
    pub fn disposition(&self) -> Disposition {
        match &self.fault {
            SinkFault::Status(status) => status_disposition(status),
            SinkFault::Request(_) => Disposition::Refused,
            SinkFault::Closed | SinkFault::Transport(_) | SinkFault::Timeout(_) => {
                Disposition::Retry { not_before: Duration::ZERO }
            }
        }
    }

    /// Whether this is the expected refusal of a namespace that is being deleted.
    pub fn is_namespace_terminating(&self) -> bool {
        let SinkFault::Status(status) = &self.fault else { return false };
        status.details.as_ref().is_some_and(|details| details.causes.iter().any(|c| c.reason == "NamespaceTerminating"))
    }
}

fn status_disposition(status: &Status) -> Disposition {
    match status.code {
        _ if status.is_already_exists() => Disposition::AlreadyExists,
        404 => Disposition::NotFound,
        // A code below 400 makes no sense for a failure; a proxy may have sent it.
        ..400 | 429 | 500.. => Disposition::Retry { not_before: retry_after(status).unwrap_or_default() },
        _ => Disposition::Refused,
    }
}

impl From<kube::Error> for SinkFault {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Status(status),
            kube::Error::Service(cause) if cause.downcast_ref() == Some(&DeadlineError::Closed) => Self::Closed,
            kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => Self::Request(Box::new(error)),
            _ => Self::Transport(Box::new(error)),
        }
    }
}

/// The sink that writes core/v1 Events through a Kubernetes client. Nothing is sent while its leadership check fails.
#[derive(Clone)]
pub struct KubeSink {
    client: Client,
    gate: Arc<Gate>,
    limit: Duration,
}

impl KubeSink {
    /// Writes through `client`, which must be made by [`crate::client`]. Each request times out after `limit`.
    pub fn new(client: Client, gate: Arc<Gate>, limit: Duration) -> Self {
        Self { client, gate, limit }
    }

    async fn send(&self, request: http::request::Builder, body: &impl Serialize) -> Result<(), SinkFault> {
        let body = serde_json::to_vec(body).map_err(|error| SinkFault::Request(error.into()))?;
        let request = request
            .header(http::header::ACCEPT, ACCEPT_METADATA)
            .extension(RequestLimits { gate: Some(Arc::clone(&self.gate)), limit: TimeLimit::Client(self.limit) })
            .body(body)
            .map_err(|error| SinkFault::Request(error.into()))?;
        self.client.request_text(request).await?;
        Ok(())
    }
}

impl EventSink for KubeSink {
    async fn create(&self, event: &Event) -> Result<(), SinkError> {
        let request = Request::post(format!("/api/v1/namespaces/{}/events{NO_FIELD_VALIDATION}", event.namespace))
            .header(http::header::CONTENT_TYPE, "application/json");
        self.send(request, event).await.map_err(|fault| SinkError::new("create", event, fault))
    }

    async fn patch(&self, event: &Event) -> Result<(), SinkError> {
        let request = Request::patch(format!(
            "/api/v1/namespaces/{}/events/{}{NO_FIELD_VALIDATION}",
            event.namespace, event.name
        ))
        .header(http::header::CONTENT_TYPE, "application/strategic-merge-patch+json");
        self.send(request, &event.patch()).await.map_err(|fault| SinkError::new("patch", event, fault))
    }
}

#[cfg(test)]
mod tests;
