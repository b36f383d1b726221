//! Jobs and Pods as the simulation decodes them.
//!
//! Guarantees: decoding keeps the fields on which the simulated controllers decide, and the Pod template as it was sent, so
//! that the Pods have all of it. Missing fields get the API server's defaults.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::job_template::time;
use crate::api::{DecodeError, Interner, Object, ObjectName, ResourceKind, Uid};
use crate::events::ObjectReference;

/// Annotation of a Job or a Pod: how long its simulated containers run, such as `45s`.
pub const DURATION_ANNOTATION: &str = "dev.cronjob-controller/duration";
/// Annotation of a Job or a Pod: `fail` or `succeed`.
pub const OUTCOME_ANNOTATION: &str = "dev.cronjob-controller/outcome";
/// Annotation and label of a Pod of an Indexed Job: its completion index.
pub const INDEX_ANNOTATION: &str = "batch.kubernetes.io/job-completion-index";

/// The part of `metadata` that both kinds use.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    name: String,
    namespace: String,
    uid: Option<Uid>,
    resource_version: String,
    #[serde(with = "time")]
    deletion_timestamp: Option<DateTime<Utc>>,
    annotations: Option<Annotations>,
    owner_references: Option<Vec<OwnerReference>>,
}

/// The annotations that the simulation reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// See [`DURATION_ANNOTATION`].
    #[serde(rename = "dev.cronjob-controller/duration")]
    pub duration: Option<String>,
    /// See [`OUTCOME_ANNOTATION`].
    #[serde(rename = "dev.cronjob-controller/outcome")]
    pub outcome: Option<String>,
    /// The slot, on a Job of a CronJob.
    #[serde(rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
    pub scheduled_timestamp: Option<String>,
    /// The slot, on a Job of the tutorial's CronJob.
    #[serde(rename = "batch.tutorial.kubebuilder.io/scheduled-at")]
    pub scheduled_at: Option<String>,
    /// See [`INDEX_ANNOTATION`].
    #[serde(rename = "batch.kubernetes.io/job-completion-index")]
    pub completion_index: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct OwnerReference {
    uid: Option<Uid>,
    kind: String,
    name: String,
    controller: Option<bool>,
}

/// The identity of an object.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Namespace and name.
    pub name: ObjectName,
    /// UID.
    pub uid: Uid,
    /// The resourceVersion of this copy.
    pub resource_version: Box<str>,
    /// Whether `deletionTimestamp` is set.
    pub deleting: bool,
    /// The name and UID of the controlling owner, if it has the expected kind.
    pub controller: Option<(Arc<str>, Uid)>,
    /// The annotations for the simulation.
    pub annotations: Annotations,
}

impl Identity {
    fn new(metadata: Metadata, owner_kind: &str, interner: &Interner) -> Self {
        let controller = metadata.owner_references.unwrap_or_default().into_iter().find(|r| r.controller == Some(true));
        Self {
            name: ObjectName { namespace: interner.intern(&metadata.namespace), name: metadata.name.into() },
            uid: metadata.uid.unwrap_or_else(|| Uid::new("")),
            resource_version: metadata.resource_version.into(),
            deleting: metadata.deletion_timestamp.is_some(),
            controller: controller
                .filter(|owner| owner.kind == owner_kind)
                .and_then(|owner| Some((owner.name.into(), owner.uid?))),
            annotations: metadata.annotations.unwrap_or_default(),
        }
    }

    /// The owner's name; its namespace is the object's.
    pub fn owner(&self) -> Option<ObjectName> {
        let (name, _) = self.controller.as_ref()?;
        Some(ObjectName { namespace: Arc::clone(&self.name.namespace), name: Arc::clone(name) })
    }
}

/// The spec of a simulated kind.
pub trait Spec: fmt::Debug + Clone + DeserializeOwned + Send + Sync + 'static {
    /// The status of the kind.
    type Status: fmt::Debug + Clone + Default + DeserializeOwned + Send + Sync + 'static;
    /// The kind.
    const RESOURCE: ResourceKind;
    /// The kind of its owners.
    const OWNER: &'static str;
}

impl Spec for JobSpec {
    type Status = JobStatus;
    const RESOURCE: ResourceKind = ResourceKind { group: "batch", version: "v1", plural: "jobs", kind: "Job" };
    const OWNER: &'static str = "CronJob";
}

impl Spec for PodSpec {
    type Status = PodStatus;
    const RESOURCE: ResourceKind = ResourceKind { group: "", version: "v1", plural: "pods", kind: "Pod" };
    const OWNER: &'static str = "Job";
}

/// A simulated object.
#[derive(Debug, Clone)]
pub struct Simulated<S: Spec> {
    /// Its identity.
    pub identity: Identity,
    /// The desired state.
    pub spec: S,
    /// The last written status.
    pub status: S::Status,
}

/// A Job.
pub type Job = Simulated<JobSpec>;

/// A Pod.
pub type Pod = Simulated<PodSpec>;

/// The part of batch/v1 `JobSpec` that is simulated.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// The maximum number of concurrent Pods.
    pub parallelism: Option<u32>,
    /// The number of Pods that must succeed; `None` for any one.
    pub completions: Option<u32>,
    /// The number of retries before the Job fails.
    pub backoff_limit: Option<u32>,
    /// The time limit of the Job in seconds.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after which a finished Job is deleted.
    pub ttl_seconds_after_finished: Option<i64>,
    /// Whether the Job is suspended.
    pub suspend: Option<bool>,
    /// `Indexed` or `NonIndexed`.
    pub completion_mode: Option<String>,
    /// The controller that manages the Job, if it is another one.
    pub managed_by: Option<String>,
    /// The Pod template as it was sent.
    pub template: Value,
}

impl Default for JobSpec {
    fn default() -> Self {
        Self {
            parallelism: None,
            completions: None,
            backoff_limit: None,
            active_deadline_seconds: None,
            ttl_seconds_after_finished: None,
            suspend: None,
            completion_mode: None,
            managed_by: None,
            template: Value::Null,
        }
    }
}

/// batch/v1 `JobStatus`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// Pods that are pending or running and not being deleted.
    pub active: Option<u32>,
    /// Active Pods that are ready.
    pub ready: Option<u32>,
    /// Pods that are being deleted.
    pub terminating: Option<u32>,
    /// Pods that have succeeded.
    pub succeeded: Option<u32>,
    /// Pods that have failed.
    pub failed: Option<u32>,
    /// The succeeded indexes of an Indexed Job, such as `0-2,5`.
    pub completed_indexes: Option<String>,
    /// When the Job was started or last resumed.
    #[serde(with = "time")]
    pub start_time: Option<DateTime<Utc>>,
    /// When the Job completed.
    #[serde(with = "time")]
    pub completion_time: Option<DateTime<Utc>>,
    /// The conditions of the Job.
    pub conditions: Option<Vec<Condition>>,
}

/// batch/v1 `JobCondition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type, such as `Complete`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True` or `False`.
    pub status: String,
    /// When the condition was last checked.
    #[serde(default, with = "time")]
    pub last_probe_time: Option<DateTime<Utc>>,
    /// When the condition last changed.
    #[serde(default, with = "time")]
    pub last_transition_time: Option<DateTime<Utc>>,
    /// The reason, in UpperCamelCase.
    #[serde(default)]
    pub reason: String,
    /// The message for people.
    #[serde(default)]
    pub message: String,
}

impl JobStatus {
    /// The condition of that type, if it is true.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().flatten().find(|condition| condition.type_ == type_ && condition.status == "True")
    }

    /// The condition that ended the Job: Complete or Failed.
    pub fn finished(&self) -> Option<&Condition> {
        self.condition("Complete").or_else(|| self.condition("Failed"))
    }
}

impl Job {
    /// The slot for which a CronJob controller created the Job.
    pub fn slot(&self) -> Option<DateTime<Utc>> {
        let Annotations { scheduled_timestamp, scheduled_at, .. } = &self.identity.annotations;
        let text = scheduled_timestamp.as_ref().or(scheduled_at.as_ref())?;
        DateTime::parse_from_rfc3339(text).ok().map(|slot| slot.to_utc())
    }

    /// The reference to the Job in Events.
    pub fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            namespace: Arc::clone(&self.identity.name.namespace),
            name: Arc::clone(&self.identity.name.name),
            uid: self.identity.uid.to_string().into(),
            resource_version: (&*self.identity.resource_version).into(),
        }
    }
}

/// The part of core/v1 `PodSpec` that is simulated.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// `Always`, `OnFailure` or `Never`.
    pub restart_policy: String,
    /// The containers.
    pub containers: Vec<Container>,
}

/// The part of a container that its log mentions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Container {
    /// The container's name.
    pub name: String,
    /// The container's image.
    pub image: String,
    /// The command, which does not run.
    pub command: Option<Vec<String>>,
    /// The command's arguments.
    pub args: Option<Vec<String>>,
}

/// The part of core/v1 `PodStatus` that the simulation reads back.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded` or `Failed`; empty is `Pending`.
    pub phase: String,
    /// One per container.
    pub container_statuses: Option<Vec<ContainerStatus>>,
}

/// The part of core/v1 `ContainerStatus` that the simulation reads back.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Whether the container is ready.
    pub ready: bool,
    /// The number of restarts.
    pub restart_count: u32,
    /// The container's state.
    pub state: ContainerState,
}

/// core/v1 `ContainerState`, of which at most one is set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// The container is running.
    pub running: Option<Running>,
    /// The container has ended.
    pub terminated: Option<Terminated>,
}

/// core/v1 `ContainerStateRunning`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// The start time.
    #[serde(with = "time")]
    pub started_at: Option<DateTime<Utc>>,
}

/// The part of core/v1 `ContainerStateTerminated` that the simulation reads back.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// 0 is success.
    pub exit_code: i32,
    /// The start time.
    #[serde(with = "time")]
    pub started_at: Option<DateTime<Utc>>,
    /// The end time.
    #[serde(with = "time")]
    pub finished_at: Option<DateTime<Utc>>,
}

impl Pod {
    fn container(&self) -> Option<&ContainerStatus> {
        self.status.container_statuses.as_ref()?.first()
    }

    /// Whether all containers have ended for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether all containers are ready.
    pub fn is_ready(&self) -> bool {
        self.status.container_statuses.as_ref().is_some_and(|all| !all.is_empty() && all.iter().all(|one| one.ready))
    }

    /// The number of restarts. All containers are simulated in step, so one status is enough.
    pub fn restart_count(&self) -> u32 {
        self.container().map_or(0, |container| container.restart_count)
    }

    /// The start time of the containers.
    pub fn started_at(&self) -> Option<DateTime<Utc>> {
        let state = &self.container()?.state;
        let terminated = || state.terminated.as_ref().and_then(|terminated| terminated.started_at);
        state.running.as_ref().and_then(|running| running.started_at).or_else(terminated)
    }

    /// The result and end time of the containers.
    pub fn terminated(&self) -> Option<&Terminated> {
        self.container()?.state.terminated.as_ref()
    }

    /// The completion index in an Indexed Job.
    pub fn index(&self) -> Option<u32> {
        self.identity.annotations.completion_index.as_ref()?.parse().ok()
    }
}

#[derive(Deserialize)]
struct Wire<S, T: Default> {
    metadata: Metadata,
    spec: S,
    #[serde(default)]
    status: T,
}

impl<S: Spec> Object for Simulated<S> {
    const RESOURCE: ResourceKind = S::RESOURCE;

    fn object_name(&self) -> &ObjectName {
        &self.identity.name
    }

    fn uid(&self) -> &Uid {
        &self.identity.uid
    }

    fn resource_version(&self) -> &str {
        &self.identity.resource_version
    }

    fn controller_uid(&self) -> Option<&Uid> {
        self.identity.controller.as_ref().map(|(_, uid)| uid)
    }

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let error = |source| DecodeError { kind: S::RESOURCE.kind, source };
        let wire: Wire<S, S::Status> = serde_json::from_str(json).map_err(error)?;
        Ok(Self { identity: Identity::new(wire.metadata, S::OWNER, interner), spec: wire.spec, status: wire.status })
    }
}
