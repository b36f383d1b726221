//! The interfaces through which a sync reaches the API server, and their implementation on kube's client.
//!
//! Guarantees:
//! - No request takes longer than its deadline, and the size of an answer is limited.
//! - No write is sent while the process does not hold its lease.
//! - Nothing is retried here; the workqueue retries, where retries are visible.
//! - A deletion has the UID as precondition, so a later object of the same name is never deleted.
//! - A write asks for metadata only in the answer, and skips field validation: the template's author already got those
//!   warnings.
//!
//! Matches upstream `pkg/controller/cronjob/injection.go` (`jobControlInterface`, `cjControlInterface`).

mod long_answers;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use apimachinery::causes::with_causes;
use apimachinery::names::is_subdomain;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::json;
use tower::BoxError;

use super::plan::{Propagation, StatusWrite};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::{COUNTED_FROM, PolicyOptions};
use crate::api::{
    ACCEPT_METADATA, ApiError, ControllerKind, CountedFromPlace, Delivery, Interner, Manage, NO_FIELD_VALIDATION,
    Namespace, Object, ObjectName, Published, ResourceKind, Uid,
};
use crate::client::{
    ConnectionError, DeadlineError, LONGEST_IN_SOCKET, LONGEST_UNSENT, LONGEST_WRITE, RequestLimits, TimeLimit,
    USUAL_REQUEST, retry_after,
};
use crate::leader_election::Gate;
use crate::traces::{Stopwatch, Traces};
use long_answers::{LONG_ANSWER, LongAnswers, Permit};

/// The time limit of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// A create until the lease expires, any other write ten seconds.
    #[default]
    Usual,
    /// As long as the server itself works on a request. Used when the key's last request timed out, for example behind
    /// a slow admission webhook.
    Longest,
}

impl Patience {
    /// Other writes are fenced by the version or UID that they name, so they may outlive the lease.
    fn of_fenced(self) -> TimeLimit {
        match self {
            Self::Usual => TimeLimit::Client(USUAL_REQUEST),
            Self::Longest => TimeLimit::Longest,
        }
    }
}

/// Reads, creates and deletes Jobs.
pub trait JobControl: Send + Sync + 'static {
    /// Reads a Job.
    fn get_job(&self, name: &ObjectName) -> impl Future<Output = Result<Arc<Job>, ApiError>> + Send;
    /// The trace of the fire that the create of this Job begins, as W3C Trace Context has it; `None` where nothing is traced.
    fn traceparent(&self, cron_job: &CronJob, job: &ObjectName, slot: DateTime<Utc>) -> Option<String> {
        let _ = (cron_job, job, slot);
        None
    }
    /// Whether this process may write: it holds its lease.
    fn may_write(&self) -> bool {
        true
    }
    /// Creates a Job from its JSON body.
    fn create_job(
        &self,
        name: &ObjectName,
        body: Vec<u8>,
        patience: Patience,
    ) -> impl Future<Output = Result<Arc<Job>, ApiError>> + Send;
    /// Deletes the Job of that name and UID, and its Pods.
    fn delete_job(
        &self,
        name: &ObjectName,
        uid: &Uid,
        propagation: Propagation,
        patience: Patience,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// Reads CronJobs and writes their status.
pub trait CronJobControl: Send + Sync + 'static {
    /// Reads a CronJob. One that this controller does not manage is not found.
    fn get_cron_job(&self, name: &ObjectName) -> impl Future<Output = Result<Arc<CronJob>, ApiError>> + Send;
    /// Reads a CronJob unchanged, whichever controller manages it.
    fn get_cron_job_of_any_controller(
        &self,
        name: &ObjectName,
    ) -> impl Future<Output = Result<Arc<CronJob>, ApiError>> + Send {
        self.get_cron_job(name)
    }
    /// Reads a Namespace.
    fn get_namespace(&self, name: &Arc<str>) -> impl Future<Output = Result<Arc<Namespace>, ApiError>> + Send;
    /// Writes the status if the CronJob still has the version that the write is based on; returns the new version.
    fn update_status(
        &self,
        name: &ObjectName,
        write: &StatusWrite,
        patience: Patience,
    ) -> impl Future<Output = Result<Arc<CronJob>, ApiError>> + Send;
}

/// The implementation on kube's client.
#[derive(Clone)]
pub struct RealControl {
    controller_kind: ControllerKind,
    manage: Manage,
    policies: PolicyOptions,
    client: Client,
    interner: Arc<Interner>,
    gate: Arc<Gate>,
    traces: Option<Arc<Traces>>,
    long_answers: Arc<LongAnswers>,
}

impl RealControl {
    /// Creates the control of a `controller_kind` controller on `client`, which must be made by [`crate::client`].
    pub fn new(controller_kind: ControllerKind, client: Client, gate: Arc<Gate>) -> Self {
        Self {
            controller_kind,
            manage: Manage::All,
            policies: PolicyOptions::default(),
            client,
            interner: Arc::default(),
            gate,
            traces: None,
            long_answers: Arc::new(LongAnswers::new()),
        }
    }

    /// The same, recording fires to `traces`.
    #[must_use]
    pub fn traced(self, traces: Option<Arc<Traces>>) -> Self {
        Self { traces, ..self }
    }

    /// The same, for CronJobs selected by `manage`: any other is not found.
    #[must_use]
    pub fn managing(self, manage: Manage) -> Self {
        Self { manage, ..self }
    }

    /// The same, for CronJobs whose policies count as these options say.
    #[must_use]
    pub fn with_policies(self, policies: PolicyOptions) -> Self {
        Self { policies, ..self }
    }

    /// The next creates may have to outlive the lease, and whoever takes that over has to know it. Nothing waits: until the lease
    /// says so, a create has the usual time. It is asked for when one has timed out, some time before its next attempt.
    fn announce_long_creates(&self) {
        let _ = self.gate.announce(LONGEST_WRITE + LONGEST_UNSENT + LONGEST_IN_SOCKET).now_or_never();
    }

    async fn read_cron_job(&self, name: &ObjectName) -> Result<CronJob, ApiError> {
        let request = ApiRequest::new("get", Method::GET, self.controller_kind.parent, name);
        let mut cron_job: CronJob = self.request(request).await?;
        self.policies.apply(&mut cron_job);
        Ok(cron_job)
    }

    async fn request<T: Object>(&self, request: ApiRequest<'_>) -> Result<T, ApiError> {
        let (verb, resource, name) = (request.verb, request.resource, request.name);
        let Answer { text, .. } = &self.send(request).await?;
        T::decode(text, &self.interner).map_err(|error| ApiError {
            delivery: Delivery::Unreadable,
            ..ApiError::transport(operation(verb, resource), name.clone(), error.to_string())
        })
    }

    async fn send(&self, request: ApiRequest<'_>) -> Result<Answer, ApiError> {
        let (verb, resource, object) = (request.verb, request.resource, request.name);
        let failed = |(delivery, message): (Delivery, String)| ApiError {
            delivery,
            ..ApiError::transport(operation(verb, resource), object.clone(), message)
        };
        if request.method != Method::POST && !is_subdomain(&object.name) {
            // No object has such a name, and in a path it would be another request.
            let error = failed((Delivery::NotSent, "no object can have this name".to_owned()));
            return Err(ApiError { code: 404, reason: "NotFound".to_owned(), ..error });
        }
        let is_read = request.method == Method::GET;
        let gate = (!is_read).then(|| Arc::clone(&self.gate));
        let mut path = resource.path(Some(&*object.namespace).filter(|namespace| !namespace.is_empty()));
        // A create goes to the collection. Names and namespaces need no escaping.
        if request.method != Method::POST {
            path = format!("{path}/{}{}", object.name, request.subresource);
        }
        if matches!(request.method, Method::POST | Method::PATCH) {
            path.push_str(NO_FIELD_VALIDATION);
        }
        let http_request = Request::builder()
            .method(request.method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, request.content_type)
            .header(http::header::ACCEPT, request.accept)
            .extension(RequestLimits { gate, limit: request.limit })
            .body(Body::from(request.body))
            .map_err(|error| failed((Delivery::NotSent, error.to_string())))?;
        let response = self.client.send(http_request).await.map_err(|error| failed(unanswered(&error)))?;
        let (head, body) = response.into_parts();
        let (bytes, permit) = self
            .read(body, is_read.then_some(&object.namespace))
            .await
            .map_err(|error| failed((delivery(&*error), with_causes(&*error))))?;
        if !head.status.is_success() {
            return Err(refusal(operation(verb, resource), object, head.status, &bytes));
        }
        let text = String::from_utf8(bytes).map_err(|error| failed((Delivery::Unreadable, error.to_string())))?;
        Ok(Answer { text, _permit: permit })
    }

    /// The bytes of an answer. A whole object of a namespace that is long waits until few others are; what a write answers is no
    /// whole object.
    async fn read(&self, body: Body, of_whole: Option<&Arc<str>>) -> Result<(Vec<u8>, Option<Permit>), BoxError> {
        let mut body = pin!(Limited::new(body, LONGEST_ANSWER));
        let (mut bytes, mut permit) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if let Some(namespace) = of_whole.filter(|_| permit.is_none() && bytes.len() + data.len() > LONG_ANSWER) {
                permit = self.long_answers.permit(namespace).await;
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes, permit))
    }
}

/// The text of an answer.
struct Answer {
    text: String,
    /// Held until the text is dropped, if it is long.
    _permit: Option<Permit>,
}

/// One request, before it has a URL.
struct ApiRequest<'a> {
    verb: &'static str,
    resource: ResourceKind,
    name: &'a ObjectName,
    method: Method,
    /// Appended to the object's URL.
    subresource: &'static str,
    content_type: &'static str,
    accept: &'static str,
    limit: TimeLimit,
    body: Vec<u8>,
}

/// The longest answer that is read. etcd refuses objects beyond 1.5 MiB by default; this allows for clusters that
/// raised the limit.
const LONGEST_ANSWER: usize = 32 << 20;

const UPDATE_STATUS: &str = "update status of";

/// The operation, as error messages name it.
fn operation(verb: &str, resource: ResourceKind) -> Box<str> {
    format!("{verb} {}", resource.kind).into()
}

/// The whole object.
const WHOLE: &str = "application/json";

impl<'a> ApiRequest<'a> {
    fn new(verb: &'static str, method: Method, resource: ResourceKind, name: &'a ObjectName) -> Self {
        Self {
            verb,
            resource,
            name,
            accept: if method == Method::GET { WHOLE } else { ACCEPT_METADATA },
            method,
            subresource: "",
            content_type: "application/json",
            limit: TimeLimit::Client(USUAL_REQUEST),
            body: Vec::new(),
        }
    }
}

impl JobControl for RealControl {
    async fn get_job(&self, name: &ObjectName) -> Result<Arc<Job>, ApiError> {
        self.request(ApiRequest::new("get", Method::GET, self.controller_kind.child, name)).await.map(Arc::new)
    }

    fn traceparent(&self, cron_job: &CronJob, job: &ObjectName, slot: DateTime<Utc>) -> Option<String> {
        self.traces.as_ref()?.announce(&cron_job.name, job, slot)
    }

    fn may_write(&self) -> bool {
        self.gate.time_left().is_some()
    }

    async fn create_job(&self, name: &ObjectName, body: Vec<u8>, patience: Patience) -> Result<Arc<Job>, ApiError> {
        let watch = Stopwatch::of_create(self.traces.as_ref(), name);
        let limit = if patience == Patience::Longest { TimeLimit::Announced } else { TimeLimit::Lease };
        if limit == TimeLimit::Announced {
            self.announce_long_creates();
        }
        let request = ApiRequest::new("create", Method::POST, self.controller_kind.child, name);
        let request = ApiRequest { limit, body, ..request };
        let reply = self.request(request).await.map(Arc::new);
        if reply.as_ref().is_err_and(ApiError::timed_out) {
            self.announce_long_creates();
        }
        watch.created(name, &reply);
        reply
    }

    async fn delete_job(
        &self,
        name: &ObjectName,
        uid: &Uid,
        propagation: Propagation,
        patience: Patience,
    ) -> Result<(), ApiError> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            },
            "preconditions": { "uid": uid },
        });
        let body = options.to_string().into_bytes();
        let request = ApiRequest::new("delete", Method::DELETE, self.controller_kind.child, name);
        self.send(ApiRequest { body, limit: patience.of_fenced(), ..request }).await.map(drop)
    }
}

impl CronJobControl for RealControl {
    async fn get_cron_job(&self, name: &ObjectName) -> Result<Arc<CronJob>, ApiError> {
        let mut cron_job = self.read_cron_job(name).await?;
        if self.manage.takes(&mut cron_job) { Ok(Arc::new(cron_job)) } else { Err(not_ours(cron_job.name)) }
    }

    async fn get_cron_job_of_any_controller(&self, name: &ObjectName) -> Result<Arc<CronJob>, ApiError> {
        self.read_cron_job(name).await.map(Arc::new)
    }

    async fn get_namespace(&self, name: &Arc<str>) -> Result<Arc<Namespace>, ApiError> {
        let name = Namespace::key(name);
        self.request(ApiRequest::new("get", Method::GET, Namespace::RESOURCE, &name)).await.map(Arc::new)
    }

    async fn update_status(
        &self,
        name: &ObjectName,
        write: &StatusWrite,
        patience: Patience,
    ) -> Result<Arc<CronJob>, ApiError> {
        let request = ApiRequest {
            subresource: "/status",
            content_type: "application/merge-patch+json",
            body: status_patch(write),
            limit: patience.of_fenced(),
            ..ApiRequest::new(UPDATE_STATUS, Method::PATCH, self.controller_kind.parent, name)
        };
        let watch = Stopwatch::start(self.traces.as_ref());
        let reply = self.send(request).await;
        watch.settled(name, &write.base.uid, &reply);
        let answer = reply?;
        let written: Written = serde_json::from_str(&answer.text).map_err(|error| {
            let operation = operation(UPDATE_STATUS, self.controller_kind.parent);
            let error = ApiError::transport(operation, name.clone(), error.to_string());
            ApiError { delivery: Delivery::Unreadable, ..error }
        })?;
        // The server changed only the status of this version.
        Ok(Arc::new(CronJob {
            resource_version: written.metadata.resource_version.into(),
            status: write.status.clone(),
            ..CronJob::clone(&write.base)
        }))
    }
}

/// The answer to a status write.
#[derive(Deserialize)]
struct Written {
    metadata: WrittenMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMetadata {
    resource_version: String,
}

/// A merge patch with the version as precondition. Replacing `/status` with a slim object would remove labels and
/// annotations. An empty list is written as `null`, which removes the field; upstream's encoder omits it too. The status
/// strategy of a batch/v1 CronJob keeps changes of annotations.
fn status_patch(write: &StatusWrite) -> Vec<u8> {
    let mut status = json!(write.status);
    if write.status.active.is_empty() {
        status["active"] = serde_json::Value::Null;
    }
    let mut metadata = json!({ "resourceVersion": &*write.base.resource_version });
    let mut annotations = Published::patch(write.base.status.published.as_deref(), write.status.published.as_deref());
    if write.base.controller_kind.counted_from == Some(CountedFromPlace::Annotation)
        && let Some(counted) = status.as_object_mut().and_then(|status| status.remove("countedFrom"))
    {
        annotations.insert(COUNTED_FROM.to_owned(), counted);
    }
    if !annotations.is_empty() {
        metadata["annotations"] = annotations.into();
    }
    json!({ "metadata": metadata, "status": status }).to_string().into_bytes()
}

/// The error for a CronJob that exists but is no longer handed over to this controller; the watch has not shown this
/// yet.
fn not_ours(name: ObjectName) -> ApiError {
    let error = ApiError::transport("get CronJob", name, "it is no longer handed over to this controller");
    ApiError { code: 404, reason: "NotFound".to_owned(), ..error }
}

/// Whether a request without an answer may have been delivered, and why no answer came, in one line.
fn unanswered(error: &kube::Error) -> (Delivery, String) {
    match error {
        kube::Error::Service(cause) if cause.is::<DeadlineError>() => (delivery(&**cause), cause.to_string()),
        _ => (delivery(error), with_causes(error)),
    }
}

fn delivery(error: &(dyn std::error::Error + 'static)) -> Delivery {
    let causes = || std::iter::successors(Some(error), |error| error.source());
    match causes().find_map(|error| error.downcast_ref()) {
        Some(DeadlineError::Closed | DeadlineError::Unsent) => Delivery::NotSent,
        Some(DeadlineError::Late(_)) => Delivery::GaveUp,
        Some(_) => Delivery::Unknown,
        // Without a connection nothing is sent.
        None => match causes().find_map(|error| error.downcast_ref()) {
            Some(ConnectionError::Connect { .. }) => Delivery::NotSent,
            _ => Delivery::Unknown,
        },
    }
}

/// Decodes the Status of a refusal. Any other body (from a proxy or an overloaded server) becomes the message.
fn refusal(operation: Box<str>, object: &ObjectName, code: http::StatusCode, body: &[u8]) -> ApiError {
    let status: kube::core::Status = serde_json::from_slice(body).unwrap_or_default();
    let details = status.details.as_ref();
    let retry_after = retry_after(&status);
    let message = if status.message.is_empty() {
        let text: String = String::from_utf8_lossy(body).trim().chars().take(512).collect();
        format!("{code}: {text}")
    } else {
        status.message
    };
    ApiError {
        namespace_terminating: details
            .is_some_and(|d| d.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")),
        code: code.as_u16(),
        reason: status.reason,
        retry_after,
        delivery: Delivery::Answered,
        ..ApiError::transport(operation, object.clone(), message)
    }
}

#[cfg(test)]
mod tests;
