//! ApiExample, `myapp.my.domain/v1alpha1`: Pods on a schedule, without Jobs between, as its schema describes it.
//!
//! Guarantees: the field names are those of the original controller for this kind: its history limits are
//! `successfulJobHistoryLimit` and `failedJobHistoryLimit`, and `jobTemplate` is the template of a Pod. The group is
//! that of a kubebuilder project without a domain of its own. The types exist for the schema ([`super::crd`]).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::ResourceKind;
use super::template_schema::PodTemplate;
use super::tutorial_v1::{ConcurrencyPolicy, Reference};

/// Where ApiExamples live.
pub const RESOURCE: ResourceKind =
    ResourceKind { group: "myapp.my.domain", version: "v1alpha1", plural: "apiexamples", kind: "ApiExample" };

/// The check of a schedule's form by the API server itself, since no webhook validates this kind. The controller judges
/// the numbers. The rule refuses no schedule that could run, except one of more than 1,024 characters, because the API
/// server limits what a rule may cost.
fn schedule_rules() -> Value {
    // White space as Go's unicode.IsSpace defines it.
    const BLANK: &str = r"[\s\v\x{85}\pZ]";
    const FIELD: &str = "[*?+,/0-9A-Za-z-]+";
    const DESCRIPTOR: &str = "@(yearly|annually|monthly|weekly|daily|midnight|hourly|every .+)";
    let fields = format!("{FIELD}({BLANK}+{FIELD}){{4}}");
    let rule = format!("self.matches(r'^((CRON_)?TZ=[^ ]* )?{BLANK}*({DESCRIPTOR}|{fields}){BLANK}*$')");
    json!([{ "rule": rule, "message": "must have five fields, or be a descriptor such as @daily or @every 90s" }])
}

/// A Pod on a schedule.
#[derive(JsonSchema)]
pub struct ApiExample {
    /// What is wanted.
    pub spec: ApiExampleSpec,
    /// What was last seen of it; written by the controller.
    pub status: Option<ApiExampleStatus>,
}

/// What is wanted.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ApiExampleSpec {
    /// When to run, in Cron format: five fields, or a descriptor such as @daily
    /// or @every 90s, after TZ= and a time zone if it is not the controller's.
    #[schemars(length(max = 1024), extend("x-kubernetes-validations" = schedule_rules()))]
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
    /// The Pod that each run creates.
    pub job_template: PodTemplate,
    /// How many Pods that succeeded are kept; 0 keeps none, and without it all are kept.
    #[schemars(range(min = 0))]
    pub successful_job_history_limit: Option<i32>,
    /// How many Pods that failed are kept; 0 keeps none, and without it all are kept.
    #[schemars(range(min = 0))]
    pub failed_job_history_limit: Option<i32>,
}

/// What was last seen; written by the controller.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ApiExampleStatus {
    /// The Pods that run now.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub active: Option<Vec<Reference>>,
    /// The time for which the last Pod was created.
    pub last_schedule_time: Option<DateTime<Utc>>,
}
