//! batch/v1 CronJob and Job, reduced to what the controller decides on.
//!
//! Guarantees: fields that no decision depends on are not kept; the Job template is kept as the text the API server
//! sent, so that fields this crate has never heard of reach the Job; a CronJob's schedule is parsed once for as long as
//! its `schedule` and `timeZone` stay the same, across any number of status updates.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DecodeError, Interner, Object, ObjectName, ObjectReference, ResourceKind, Uid};
use crate::schedule::missed::Observed;
use crate::schedule::{Timing, Zone};

/// The annotation in which a Job carries the slot it was created for, RFC 3339 in the CronJob's time zone.
pub const SCHEDULED_TIMESTAMP_ANNOTATION: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What to do when a slot is due while a Job of an earlier slot runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ConcurrencyPolicy {
    /// Start the new Job beside the running ones.
    #[default]
    Allow,
    /// Skip the slot.
    Forbid,
    /// Delete the running Jobs, then start the new one.
    Replace,
    /// A value from a newer API; treated as upstream does, which compares with the two above only.
    #[serde(other)]
    Unknown,
}

/// A CronJob.
#[derive(Debug, Clone)]
pub struct CronJob {
    /// Namespace and name.
    pub name: ObjectName,
    /// UID: a recreated CronJob of the same name has another.
    pub uid: Uid,
    /// The version of this view.
    pub resource_version: Box<str>,
    /// When the object was created.
    pub creation_timestamp: DateTime<Utc>,
    /// Whether `deletionTimestamp` is set: nothing is started for such a CronJob.
    pub deleting: bool,
    /// What its owner asked for.
    pub spec: CronJobSpec,
    /// What the controller last wrote.
    pub status: CronJobStatus,
    timing: OnceLock<Arc<Timing>>,
}

/// The part of `spec` that decisions depend on. Matches batch/v1 `CronJobSpec`.
#[derive(Debug, Clone)]
pub struct CronJobSpec {
    /// The schedule as written.
    pub schedule: Arc<str>,
    /// The IANA zone as written.
    pub time_zone: Option<Arc<str>>,
    /// How late a Job may start, in seconds after its slot.
    pub starting_deadline_seconds: Option<i64>,
    /// What to do about Jobs still running.
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether starting Jobs is paused.
    pub suspend: bool,
    /// How many successful Jobs to keep; `None` keeps all.
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed Jobs to keep; `None` keeps all.
    pub failed_jobs_history_limit: Option<i32>,
    /// The Job template as the API server sent it.
    pub job_template: Arc<RawValue>,
}

impl PartialEq for CronJobSpec {
    fn eq(&self, other: &Self) -> bool {
        let decided = |spec: &Self| {
            let limits = (spec.successful_jobs_history_limit, spec.failed_jobs_history_limit);
            (spec.starting_deadline_seconds, spec.concurrency_policy, spec.suspend, limits)
        };
        decided(self) == decided(other)
            && self.schedule == other.schedule
            && self.time_zone == other.time_zone
            && (Arc::ptr_eq(&self.job_template, &other.job_template)
                || self.job_template.get() == other.job_template.get())
    }
}

/// batch/v1 `CronJobStatus`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The running Jobs, oldest first.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ObjectReference>,
    /// The newest slot for which a Job was created.
    #[serde(default, with = "super::job_template::time", skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<DateTime<Utc>>,
    /// When a Job last completed successfully.
    #[serde(default, with = "super::job_template::time", skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<DateTime<Utc>>,
}

impl CronJobStatus {
    /// Whether `active` holds the UID. Matches upstream `utils.go` `inActiveList`.
    pub fn in_active_list(&self, uid: &Uid) -> bool {
        self.active.iter().any(|reference| reference.uid == *uid)
    }

    /// Removes the UID from `active`. Matches upstream `utils.go` `deleteFromActiveList`.
    pub fn delete_from_active_list(&mut self, uid: &Uid) {
        self.active.retain(|reference| reference.uid != *uid);
    }
}

impl CronJob {
    /// The parsed schedule and zone, parsed at the first call. `local` is the process's zone, in which a schedule
    /// without a zone runs; it must be the same at every call.
    pub fn timing(&self, local: Zone) -> &Arc<Timing> {
        self.timing.get_or_init(|| Arc::new(Timing::parse(&self.spec.schedule, self.spec.time_zone.as_deref(), local)))
    }

    /// What missed starts are counted from, with `last_schedule` for the newest start.
    pub fn observed(&self, last_schedule: Option<DateTime<Utc>>) -> Observed {
        Observed {
            creation: self.creation_timestamp,
            last_schedule,
            starting_deadline_seconds: self.spec.starting_deadline_seconds,
        }
    }

    /// Whether `other` runs on the same schedule in the same zone.
    pub fn same_timing(&self, other: &Self) -> bool {
        self.spec.schedule == other.spec.schedule && self.spec.time_zone == other.spec.time_zone
    }
}

impl Object for CronJob {
    const RESOURCE: ResourceKind = ResourceKind { group: "batch", version: "v1", plural: "cronjobs", kind: "CronJob" };

    fn object_name(&self) -> &ObjectName {
        &self.name
    }

    fn uid(&self) -> &Uid {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn controller_uid(&self) -> Option<&Uid> {
        None
    }

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let wire: wire::CronJob<'_> = decode(json, Self::RESOURCE.kind)?;
        Ok(Self {
            name: ObjectName { namespace: interner.intern(&wire.metadata.namespace), name: wire.metadata.name.into() },
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version.into(),
            creation_timestamp: wire.metadata.creation_timestamp.unwrap_or_default(),
            deleting: wire.metadata.deletion_timestamp.is_some(),
            spec: CronJobSpec {
                schedule: wire.spec.schedule.into(),
                time_zone: wire.spec.time_zone.map(Into::into),
                starting_deadline_seconds: wire.spec.starting_deadline_seconds,
                concurrency_policy: wire.spec.concurrency_policy,
                suspend: wire.spec.suspend.unwrap_or(false),
                successful_jobs_history_limit: wire.spec.successful_jobs_history_limit,
                failed_jobs_history_limit: wire.spec.failed_jobs_history_limit,
                job_template: wire.spec.job_template.to_owned().into(),
            },
            status: wire.status,
            timing: OnceLock::new(),
        })
    }

    fn succeed(&mut self, previous: &Self) {
        if self.same_timing(previous) {
            self.spec.schedule = Arc::clone(&previous.spec.schedule);
            self.spec.time_zone.clone_from(&previous.spec.time_zone);
            self.timing = previous.timing.clone();
        }
        if self.spec.job_template.get() == previous.spec.job_template.get() {
            self.spec.job_template = Arc::clone(&previous.spec.job_template);
        }
        if self.name == previous.name {
            self.name = previous.name.clone();
        }
    }
}

/// The owner reference that has `controller: true`. Matches apimachinery `metav1.GetControllerOf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerRef {
    /// API group of the controller, without the version.
    pub group: Arc<str>,
    /// Kind of the controller.
    pub kind: Arc<str>,
    /// Name of the controller, in the Job's own namespace.
    pub name: Arc<str>,
    /// UID of the controller.
    pub uid: Uid,
}

/// The condition that ended a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedCondition {
    /// The Job succeeded.
    Complete,
    /// The Job failed.
    Failed,
}

impl FinishedCondition {
    /// The condition type as the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

/// A Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Namespace and name.
    pub name: ObjectName,
    /// UID.
    pub uid: Uid,
    /// The version of this view.
    pub resource_version: Box<str>,
    /// When the object was created.
    pub creation_timestamp: DateTime<Utc>,
    /// Whether `deletionTimestamp` is set.
    pub deleting: bool,
    /// The controlling owner.
    pub controller: Option<Box<ControllerRef>>,
    /// The slot in the scheduled-timestamp annotation, where it is there and well formed.
    pub scheduled_timestamp: Option<DateTime<Utc>>,
    /// When the Job's controller first acted on it.
    pub start_time: Option<DateTime<Utc>>,
    /// When it completed successfully.
    pub completion_time: Option<DateTime<Utc>>,
    /// How it ended: the first true condition among Complete and Failed. Matches upstream `jobutil.FinishedCondition`.
    pub finished: Option<FinishedCondition>,
    /// Whether any Complete condition is true. Matches upstream `jobutil.IsJobSucceeded`.
    pub succeeded: bool,
}

impl Job {
    /// A reference to this Job as `status.active` holds it. Matches client-go `reference.GetReference`.
    pub fn reference(&self) -> ObjectReference {
        ObjectReference {
            kind: Self::RESOURCE.kind.to_owned(),
            namespace: self.name.namespace.to_string(),
            name: self.name.name.to_string(),
            uid: self.uid.clone(),
            api_version: Self::RESOURCE.api_version(),
            resource_version: self.resource_version.to_string(),
            field_path: String::new(),
        }
    }

    /// Whether the controlling owner is `cron_job`: kind, group, name and UID are its own.
    ///
    /// Stricter than upstream's `getJobsToBeReconciled`, which compares names only and so counts the Jobs of a
    /// CronJob's deleted namesake.
    pub fn is_child_of(&self, cron_job: &CronJob) -> bool {
        self.controller.as_ref().is_some_and(|owner| {
            *owner.kind == *CronJob::RESOURCE.kind
                && *owner.group == *CronJob::RESOURCE.group
                && owner.name == cron_job.name.name
                && owner.uid == cron_job.uid
        })
    }
}

impl Job {
    /// The slot of a Job that a CronJob controller made for `cron_job`: its annotation and its name belong to one
    /// instant. A manual `create job --from` copies the template's annotations, but not such a name.
    pub fn slot_of(&self, cron_job: &CronJob) -> Option<DateTime<Utc>> {
        let digits = self.name.name.strip_prefix(&*cron_job.name.name)?.strip_prefix('-')?;
        let is_named_for =
            |slot: &DateTime<Utc>| !digits.starts_with(['0', '+']) && digits.parse() == Ok(slot.timestamp() / 60);
        self.scheduled_timestamp.filter(is_named_for)
    }
}

impl Object for Job {
    const RESOURCE: ResourceKind = ResourceKind { group: "batch", version: "v1", plural: "jobs", kind: "Job" };

    fn object_name(&self) -> &ObjectName {
        &self.name
    }

    fn uid(&self) -> &Uid {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn controller_uid(&self) -> Option<&Uid> {
        self.controller.as_ref().map(|owner| &owner.uid)
    }

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let wire: wire::Job<'_> = decode(json, Self::RESOURCE.kind)?;
        let conditions = &wire.status.conditions;
        let finished = conditions.iter().find_map(|c| match (&*c.kind, &*c.status) {
            ("Complete", "True") => Some(FinishedCondition::Complete),
            ("Failed", "True") => Some(FinishedCondition::Failed),
            _ => None,
        });
        let controller = wire.metadata.owner_references.into_iter().find(|owner| owner.controller == Some(true));
        Ok(Self {
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version.into(),
            creation_timestamp: wire.metadata.creation_timestamp.unwrap_or_default(),
            deleting: wire.metadata.deletion_timestamp.is_some(),
            controller: controller.map(|owner| {
                let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
                Box::new(ControllerRef {
                    group: interner.intern(group),
                    kind: interner.intern(&owner.kind),
                    name: owner.name.into(),
                    uid: owner.uid,
                })
            }),
            scheduled_timestamp: wire
                .metadata
                .annotations
                .scheduled_timestamp
                .and_then(|text| DateTime::parse_from_rfc3339(&text).ok())
                .map(|time| time.to_utc()),
            start_time: wire.status.start_time,
            completion_time: wire.status.completion_time,
            succeeded: conditions.iter().any(|c| c.kind == "Complete" && c.status == "True"),
            finished,
            name: ObjectName { namespace: interner.intern(&wire.metadata.namespace), name: wire.metadata.name.into() },
        })
    }
}

fn decode<'de, T: Deserialize<'de>>(json: &'de str, kind: &'static str) -> Result<T, DecodeError> {
    serde_json::from_str(json).map_err(|source| DecodeError { kind, source })
}

fn null_as_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

/// The JSON shapes, borrowed from the text where escapes allow it.
mod wire {
    use std::borrow::Cow;

    use chrono::{DateTime, Utc};
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::super::Uid;
    use super::super::job_template::time;
    use super::{ConcurrencyPolicy, CronJobStatus, null_as_default};

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Metadata<'a> {
        #[serde(borrow)]
        pub name: Cow<'a, str>,
        #[serde(borrow, default)]
        pub namespace: Cow<'a, str>,
        pub uid: Uid,
        #[serde(borrow, default)]
        pub resource_version: Cow<'a, str>,
        #[serde(default, with = "time")]
        pub creation_timestamp: Option<DateTime<Utc>>,
        #[serde(default, with = "time")]
        pub deletion_timestamp: Option<DateTime<Utc>>,
        #[serde(borrow, default, deserialize_with = "null_as_default")]
        pub owner_references: Vec<OwnerReference<'a>>,
        #[serde(borrow, default, deserialize_with = "null_as_default")]
        pub annotations: Annotations<'a>,
    }

    #[derive(Default, Deserialize)]
    pub struct Annotations<'a> {
        #[serde(borrow, default, rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
        pub scheduled_timestamp: Option<Cow<'a, str>>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct OwnerReference<'a> {
        #[serde(borrow)]
        pub api_version: Cow<'a, str>,
        #[serde(borrow)]
        pub kind: Cow<'a, str>,
        #[serde(borrow)]
        pub name: Cow<'a, str>,
        pub uid: Uid,
        #[serde(default)]
        pub controller: Option<bool>,
    }

    #[derive(Deserialize)]
    pub struct CronJob<'a> {
        #[serde(borrow)]
        pub metadata: Metadata<'a>,
        #[serde(borrow)]
        pub spec: CronJobSpec<'a>,
        #[serde(default, deserialize_with = "null_as_default")]
        pub status: CronJobStatus,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct CronJobSpec<'a> {
        #[serde(borrow)]
        pub schedule: Cow<'a, str>,
        #[serde(borrow, default)]
        pub time_zone: Option<Cow<'a, str>>,
        #[serde(default)]
        pub starting_deadline_seconds: Option<i64>,
        #[serde(default, deserialize_with = "null_as_default")]
        pub concurrency_policy: ConcurrencyPolicy,
        #[serde(default)]
        pub suspend: Option<bool>,
        #[serde(default)]
        pub successful_jobs_history_limit: Option<i32>,
        #[serde(default)]
        pub failed_jobs_history_limit: Option<i32>,
        #[serde(borrow)]
        pub job_template: &'a RawValue,
    }

    #[derive(Deserialize)]
    pub struct Job<'a> {
        #[serde(borrow)]
        pub metadata: Metadata<'a>,
        #[serde(borrow, default, deserialize_with = "null_as_default")]
        pub status: JobStatus<'a>,
    }

    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct JobStatus<'a> {
        #[serde(default, with = "time")]
        pub start_time: Option<DateTime<Utc>>,
        #[serde(default, with = "time")]
        pub completion_time: Option<DateTime<Utc>>,
        #[serde(borrow, default, deserialize_with = "null_as_default")]
        pub conditions: Vec<Condition<'a>>,
    }

    #[derive(Deserialize)]
    pub struct Condition<'a> {
        #[serde(borrow, rename = "type")]
        pub kind: Cow<'a, str>,
        #[serde(borrow)]
        pub status: Cow<'a, str>,
    }
}
