//! Jobs of batch/v1.
//!
//! Guarantees: selectors and labels are generated from the UID, templates and selectors are immutable, and statuses change as
//! upstream allows. Matches k8s.io/kubernetes `pkg/registry/batch/job/strategy.go`.

use apimachinery::field::FieldError;
use apimachinery::names::label_value_errors;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::fields::{at, child, copy, default, dns_label_errors, invalid, list, number, text};
use super::job_spec::{self, CONTROLLER_UID, JOB_NAME, LEGACY_CONTROLLER_UID, LEGACY_JOB_NAME};
use super::{
    Kind, POD_NAMES, age, columns, container_cells, defaults, is_new_spec, job_status, keep_status_and_count,
    name_warning, selector_cell, time,
};
use crate::registry::Column;

pub(super) struct Jobs;

impl Kind for Jobs {
    const ROOT: &'static str = "batch.v1.Job";
    const COLUMNS: &'static [Column] = &columns::JOBS;
    // Upstream keeps this default for old clients.
    const DEFAULT_PROPAGATION: &'static str = "Orphan";

    fn set_defaults(&self, object: &mut Value) {
        defaults::set_job(object);
    }

    fn prepare_for_create(&self, object: &mut Value) {
        // Upstream's defaulting makes the Job's labels and its template's labels one map, so generated labels appear in both.
        let shared = at(object, "metadata.labels") == at(object, "spec.template.metadata.labels");
        if at(object, "spec.manualSelector") != &Value::Bool(true) {
            generate_selector(object);
        }
        if shared {
            copy(child(object, "metadata"), &Value::Null, "labels");
        }
        object["status"] = json!({});
        child(object, "metadata")["generation"] = 1.into();
        job_spec::drop_disabled(child(object, "spec"));
        // Upstream sets defaults again when it reads what it has stored, so labels that it rejects are not set yet.
        if label_value_errors(text(object, "metadata.name")).is_empty() {
            defaults::labels_from_template(object);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        validate(object)
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        job_spec::drop_disabled(child(object, "spec"));
        keep_status_and_count(object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = job_spec::validate_update(object, old, "spec");
        errors.extend(unusable_name(object));
        errors
    }

    fn validate_status_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        job_status::validate(object, old)
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "spec");
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let name = name_warning(object, POD_NAMES);
        let of_spec = is_new_spec(object, old).then(|| job_spec::warnings(&object["spec"], "spec"));
        name.into_iter().chain(of_spec.into_iter().flatten()).collect()
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let succeeded = number(status, "succeeded").unwrap_or(0);
        let completions = match (number(spec, "completions"), number(spec, "parallelism").unwrap_or(0)) {
            (Some(completions), _) => format!("{succeeded}/{completions}"),
            (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
            (None, _) => format!("{succeeded}/1"),
        };
        let read = |name: &str| time::read(text(status, name));
        let duration = read("startTime")
            .map(|start| time::human_duration(read("completionTime").unwrap_or(now) - start))
            .unwrap_or_default();
        let [containers, images] = container_cells(list(spec, "template.spec.containers"));
        vec![
            object["metadata"]["name"].clone(),
            status_cell(object).into(),
            completions.into(),
            duration.into(),
            age(object, now),
            containers,
            images,
            selector_cell(&spec["selector"]),
        ]
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("status.successful", number(object, "status.succeeded").unwrap_or(0).to_string())]
    }

    fn is_atomic_list(&self, path: &[&str]) -> bool {
        path == ["status", "conditions"]
    }
}

/// Matches `generateSelector`.
fn generate_selector(job: &mut Value) {
    let (uid, name) = (text(job, "metadata.uid").to_owned(), text(job, "metadata.name").to_owned());
    let spec = child(job, "spec");
    let labels = child(child(child(spec, "template"), "metadata"), "labels");
    for label in [LEGACY_JOB_NAME, JOB_NAME] {
        default(labels, label, name.as_str());
    }
    for label in [LEGACY_CONTROLLER_UID, CONTROLLER_UID] {
        default(labels, label, uid.as_str());
    }
    default(child(child(spec, "selector"), "matchLabels"), CONTROLLER_UID, uid);
}

/// Matches `ValidateJobCreate` without the metadata.
fn validate(job: &Value) -> Vec<FieldError> {
    let mut errors = job_spec::validate_generated_selector(job);
    errors.extend(job_spec::validate(&job["spec"], "spec"));
    errors.extend(unusable_name(job));
    errors
}

/// Matches `validateNameAllowsCompletions`.
fn unusable_name(job: &Value) -> Option<FieldError> {
    let completions = number(job, "spec.completions").unwrap_or(0);
    if text(job, "spec.completionMode") != "Indexed" || completions <= 0 {
        return None;
    }
    let name = text(job, "metadata.name");
    let hostname = format!("{name}-{}", completions - 1);
    let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
    (!dns_label_errors(&hostname).is_empty()).then(|| invalid("metadata.name", name, &detail))
}

fn status_cell(job: &Value) -> &'static str {
    let is_true = |condition: &str| {
        list(job, "status.conditions").iter().any(|c| c["type"] == condition && c["status"] == "True")
    };
    let first = ["Complete", "Failed"].into_iter().find(|condition| is_true(condition));
    let later = ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(|condition| is_true(condition));
    match first {
        Some(status) => status,
        None if !at(job, "metadata.deletionTimestamp").is_null() => "Terminating",
        None => later.unwrap_or("Running"),
    }
}
