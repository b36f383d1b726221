//! Jobs and Pods as the simulation sees them.
//!
//! Guarantees: decoding keeps what the simulated controllers decide on, and the Pod template as it was sent, so that
//! nothing of it is lost in the Pods; what is missing has the API server's default.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::job_template::time;
use crate::api::{DecodeError, Interner, Object, ObjectName, ResourceKind, Uid};
use crate::events::ObjectReference;

/// On a Job or a Pod: how long its simulated containers run, such as `45s`.
pub const DURATION_ANNOTATION: &str = "dev.cronjob-controller/duration";
/// On a Job or a Pod: `fail` or `succeed`.
pub const OUTCOME_ANNOTATION: &str = "dev.cronjob-controller/outcome";
/// The index of a Pod of an Indexed Job, as annotation and as label.
pub const INDEX_ANNOTATION: &str = "batch.kubernetes.io/job-completion-index";

/// The part of `metadata` that both kinds need.
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
    /// The slot for which a CronJob's controller made the Job.
    #[serde(rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
    pub scheduled_timestamp: Option<String>,
    /// The same, from the controller of the tutorial's CronJobs.
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

/// What an object is called, in all the ways that are needed.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Namespace and name.
    pub name: ObjectName,
    /// UID.
    pub uid: Uid,
    /// The version of this view.
    pub resource_version: Box<str>,
    /// Whether `deletionTimestamp` is set.
    pub deleting: bool,
    /// Name and UID of the controlling owner, if it is of the kind that is looked for.
    pub controller: Option<(Arc<str>, Uid)>,
    /// What its owner asked of the simulation.
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

    /// The name of the owner, in the same namespace.
    pub fn owner(&self) -> Option<ObjectName> {
        let (name, _) = self.controller.as_ref()?;
        Some(ObjectName { namespace: Arc::clone(&self.name.namespace), name: Arc::clone(name) })
    }
}

/// The spec of a kind that is simulated.
pub trait Spec: fmt::Debug + Clone + DeserializeOwned + Send + Sync + 'static {
    /// What goes with it.
    type Status: fmt::Debug + Clone + Default + DeserializeOwned + Send + Sync + 'static;
    /// The kind.
    const RESOURCE: ResourceKind;
    /// The kind of the owners that matter.
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

/// An object that is simulated.
#[derive(Debug, Clone)]
pub struct Simulated<S: Spec> {
    /// What it is called.
    pub identity: Identity,
    /// What is asked for.
    pub spec: S,
    /// What was last written.
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
    /// How many Pods may run at once.
    pub parallelism: Option<u32>,
    /// How many must succeed; `None`: any one.
    pub completions: Option<u32>,
    /// How many may fail.
    pub backoff_limit: Option<u32>,
    /// How many seconds the Job may take.
    pub active_deadline_seconds: Option<i64>,
    /// How many seconds it is kept once it has ended.
    pub ttl_seconds_after_finished: Option<i64>,
    /// Whether it is paused.
    pub suspend: Option<bool>,
    /// `Indexed` or `NonIndexed`.
    pub completion_mode: Option<String>,
    /// Another controller's name, if the Job is that one's.
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
    /// Of an Indexed Job, the indexes that have succeeded, such as `0-2,5`.
    pub completed_indexes: Option<String>,
    /// When it was first, or after a pause again, started.
    #[serde(with = "time")]
    pub start_time: Option<DateTime<Utc>>,
    /// When it completed.
    #[serde(with = "time")]
    pub completion_time: Option<DateTime<Utc>>,
    /// What happened to it.
    pub conditions: Option<Vec<Condition>>,
}

/// batch/v1 `JobCondition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Such as `Complete`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True` or `False`.
    pub status: String,
    /// When it was last looked at.
    #[serde(default, with = "time")]
    pub last_probe_time: Option<DateTime<Utc>>,
    /// When it last changed.
    #[serde(default, with = "time")]
    pub last_transition_time: Option<DateTime<Utc>>,
    /// Why, in UpperCamelCase.
    #[serde(default)]
    pub reason: String,
    /// Why, for people.
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
    /// The slot for which a CronJob's controller made it.
    pub fn slot(&self) -> Option<DateTime<Utc>> {
        let Annotations { scheduled_timestamp, scheduled_at, .. } = &self.identity.annotations;
        let text = scheduled_timestamp.as_ref().or(scheduled_at.as_ref())?;
        DateTime::parse_from_rfc3339(text).ok().map(|slot| slot.to_utc())
    }

    /// The Job as Events name it.
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
    /// What runs.
    pub containers: Vec<Container>,
}

/// A container, as far as a log tells of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// What it would run.
    pub command: Option<Vec<String>>,
    /// With what.
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

/// The part of core/v1 `ContainerStatus` that is read back.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Whether it is ready.
    pub ready: bool,
    /// How often it was started again.
    pub restart_count: u32,
    /// What it does.
    pub state: ContainerState,
}

/// core/v1 `ContainerState`, of which at most one is set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It runs.
    pub running: Option<Running>,
    /// It has ended.
    pub terminated: Option<Terminated>,
}

/// core/v1 `ContainerStateRunning`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// Since when.
    #[serde(with = "time")]
    pub started_at: Option<DateTime<Utc>>,
}

/// The part of core/v1 `ContainerStateTerminated` that is read back.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// 0 is success.
    pub exit_code: i32,
    /// Since when it ran.
    #[serde(with = "time")]
    pub started_at: Option<DateTime<Utc>>,
    /// Until when it ran.
    #[serde(with = "time")]
    pub finished_at: Option<DateTime<Utc>>,
}

impl Pod {
    fn container(&self) -> Option<&ContainerStatus> {
        self.status.container_statuses.as_ref()?.first()
    }

    /// Whether its containers have ended for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether all its containers are ready.
    pub fn is_ready(&self) -> bool {
        self.status.container_statuses.as_ref().is_some_and(|all| !all.is_empty() && all.iter().all(|one| one.ready))
    }

    /// How often its containers were started again. They are simulated in step, so one speaks for all.
    pub fn restart_count(&self) -> u32 {
        self.container().map_or(0, |container| container.restart_count)
    }

    /// Since when its containers run.
    pub fn started_at(&self) -> Option<DateTime<Utc>> {
        let state = &self.container()?.state;
        let terminated = || state.terminated.as_ref().and_then(|terminated| terminated.started_at);
        state.running.as_ref().and_then(|running| running.started_at).or_else(terminated)
    }

    /// How and when its containers have ended.
    pub fn terminated(&self) -> Option<&Terminated> {
        self.container()?.state.terminated.as_ref()
    }

    /// Its index, in an Indexed Job.
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
