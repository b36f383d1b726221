//! The CronJob of the kubebuilder book's tutorial, `batch.tutorial.kubebuilder.io/v1`, as its schema describes it.
//!
//! Guarantees: the names and meanings of the fields are the tutorial's. `kubectl explain` shows their doc comments. The
//! types exist for the schema ([`super::crd`]): objects are read as JSON, so that no field is lost.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;

use super::ResourceKind;
use super::template_schema::JobTemplate;

/// Where these CronJobs live.
pub const RESOURCE: ResourceKind =
    ResourceKind { group: "batch.tutorial.kubebuilder.io", version: "v1", plural: "cronjobs", kind: "CronJob" };

/// A Job on a schedule.
#[derive(JsonSchema)]
pub struct CronJob {
    /// What is wanted.
    pub spec: CronJobSpec,
    /// What was last seen of it; written by the controller.
    pub status: Option<CronJobStatus>,
}

/// What is wanted.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When to run, in Cron format: five fields, or a descriptor such as @daily
    /// or @every 90s, after TZ= and a time zone if it is not the controller's.
    pub schedule: String,
    /// How many seconds late a run may still start when its time was missed; a run later than that is left out. Without
    /// it there is no limit.
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do when a run is due while the last one is still going: Allow (the default) runs both, Forbid leaves the
    /// new one out, Replace ends the old one.
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Whether new runs are held back; what has started goes on. False by default.
    pub suspend: Option<bool>,
    /// The Job that each run creates.
    pub job_template: JobTemplate,
    /// How many Jobs that succeeded are kept; 3 by default, and 0 keeps none.
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many Jobs that failed are kept; 1 by default, and 0 keeps none.
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What to do when a run is due while the last one is still going.
#[derive(JsonSchema)]
#[allow(missing_docs, reason = "a comment would make it another kind of schema; the field above says it")]
pub enum ConcurrencyPolicy {
    Allow,
    Forbid,
    Replace,
}

/// What was last seen; written by the controller.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The Jobs that run now.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub active: Option<Vec<Reference>>,
    /// The time for which the last Job was created.
    pub last_schedule_time: Option<DateTime<Utc>>,
    /// Up to when slots are decided, and for which schedule; only with a policy.
    pub counted_from: Option<String>,
    /// How the CronJob is.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// An object that is meant.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-map-type" = "atomic"))]
pub struct Reference {
    /// Its API group and version.
    pub api_version: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its UID.
    pub uid: Option<String>,
    /// The version that was seen.
    pub resource_version: Option<String>,
    /// The part of it that is meant.
    pub field_path: Option<String>,
}

/// One side of how an object is.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct Condition {
    /// Which side, in camel case.
    #[schemars(length(max = 316))]
    pub r#type: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation of the object that was looked at.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    pub last_transition_time: DateTime<Utc>,
    /// Why, for programs: a word in camel case.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Why, for people.
    #[schemars(length(max = 32_768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(JsonSchema)]
#[allow(missing_docs, reason = "a comment would make it another kind of schema")]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}
