//! Jobs and Pods as the simulation decodes them.
//!
//! Guarantee: decoding keeps the Pod template as it was sent, so that the Pods have all of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch;
use k8s_openapi::api::batch::v1::JobCondition;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::job_template::time;
use crate::api::policy::BACKFILL;
use crate::api::{ControllerKind, DecodeError, Interner, Object, ObjectName, ResourceKind, Uid, identity_at};
use crate::events::ObjectReference;

/// Annotation of a Job or a Pod: how long its simulated containers run, such as `45s`.
pub const DURATION_ANNOTATION: &str = "cronjob-controller.dev/duration";
/// Annotation of a Job or a Pod: `fail` or `succeed`.
pub const OUTCOME_ANNOTATION: &str = "cronjob-controller.dev/outcome";
/// Annotation and label of a Pod of an Indexed Job: its completion index.
pub const INDEX_ANNOTATION: &str = "batch.kubernetes.io/job-completion-index";

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
    /// Whether a backfill created it.
    pub of_backfill: bool,
    /// All annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Identity {
    fn new(metadata: ObjectMeta, owner_kind: &str, interner: &Interner) -> Self {
        let controller = metadata.owner_references.unwrap_or_default().into_iter().find(|r| r.controller == Some(true));
        Self {
            name: ObjectName {
                namespace: interner.intern(&metadata.namespace.unwrap_or_default()),
                name: metadata.name.unwrap_or_default().into(),
            },
            uid: Uid::new(&metadata.uid.unwrap_or_default()),
            resource_version: metadata.resource_version.unwrap_or_default().into(),
            deleting: metadata.deletion_timestamp.is_some(),
            controller: controller
                .filter(|owner| owner.kind == owner_kind)
                .map(|owner| (owner.name.into(), Uid::new(&owner.uid))),
            of_backfill: metadata.labels.is_some_and(|labels| labels.contains_key(BACKFILL)),
            annotations: metadata.annotations.unwrap_or_default(),
        }
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
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

/// batch/v1 `JobSpec`.
#[derive(Debug, Clone, Deserialize)]
pub struct JobSpec {
    /// The Pod template as it was sent.
    #[serde(default)]
    pub template: Value,
    /// Everything else.
    #[serde(flatten)]
    pub fields: batch::v1::JobSpec,
}

/// The part of batch/v1 `JobStatus` that is simulated. A field without a value is written as null, which removes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    pub conditions: Option<Vec<JobCondition>>,
}

impl JobStatus {
    /// The condition of that type, if it is true.
    pub fn condition(&self, type_: &str) -> Option<&JobCondition> {
        self.conditions.iter().flatten().find(|condition| condition.type_ == type_ && condition.status == "True")
    }

    /// The condition that ended the Job: Complete or Failed.
    pub fn finished(&self) -> Option<&JobCondition> {
        self.condition("Complete").or_else(|| self.condition("Failed"))
    }
}

impl Job {
    /// The slot for which a CronJob controller created the Job.
    pub fn slot(&self) -> Option<DateTime<Utc>> {
        let text = ControllerKind::ALL.iter().find_map(|kind| self.identity.annotation(kind.scheduled_annotation))?;
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

impl Pod {
    fn container(&self) -> Option<&ContainerStatus> {
        self.status.container_statuses.as_ref()?.first()
    }

    /// Whether the Pod is in that phase.
    pub fn is_in(&self, phase: &str) -> bool {
        self.status.phase.as_deref() == Some(phase)
    }

    /// Whether all containers have ended for good.
    pub fn is_finished(&self) -> bool {
        self.is_in("Succeeded") || self.is_in("Failed")
    }

    /// Whether the Pod has that restart policy.
    pub fn restarts(&self, policy: &str) -> bool {
        self.spec.restart_policy.as_deref() == Some(policy)
    }

    /// Whether all containers are ready.
    pub fn is_ready(&self) -> bool {
        self.status.container_statuses.as_ref().is_some_and(|all| !all.is_empty() && all.iter().all(|one| one.ready))
    }

    /// The number of restarts. All containers are simulated in step, so one status is enough.
    pub fn restart_count(&self) -> u32 {
        self.container().and_then(|container| container.restart_count.try_into().ok()).unwrap_or(0)
    }

    /// The start time of the containers.
    pub fn started_at(&self) -> Option<DateTime<Utc>> {
        let running = || self.container()?.state.as_ref()?.running.as_ref()?.started_at.as_ref();
        running().or_else(|| self.terminated()?.started_at.as_ref()).and_then(utc)
    }

    /// The result of the containers.
    pub fn terminated(&self) -> Option<&ContainerStateTerminated> {
        self.container()?.state.as_ref()?.terminated.as_ref()
    }

    /// The end time of the containers.
    pub fn finished_at(&self) -> Option<DateTime<Utc>> {
        utc(self.terminated()?.finished_at.as_ref()?)
    }

    /// The completion index in an Indexed Job.
    pub fn index(&self) -> Option<u32> {
        self.identity.annotation(INDEX_ANNOTATION)?.parse().ok()
    }
}

/// The time of a k8s-openapi type.
pub fn utc(time: &Time) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(time.0.as_microsecond())
}

#[derive(Deserialize)]
struct Wire<S, T: Default> {
    metadata: ObjectMeta,
    spec: S,
    #[serde(default)]
    status: T,
}

impl<S: Spec> Object for Simulated<S> {
    const RESOURCE: ResourceKind = S::RESOURCE;

    identity_at!(self.identity);

    fn controller_uid(&self) -> Option<&Uid> {
        self.identity.controller.as_ref().map(|(_, uid)| uid)
    }

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let error = |source| DecodeError { kind: S::RESOURCE.kind, source };
        let wire: Wire<S, S::Status> = serde_json::from_str(json).map_err(error)?;
        Ok(Self { identity: Identity::new(wire.metadata, S::OWNER, interner), spec: wire.spec, status: wire.status })
    }
}
