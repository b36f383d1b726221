//! Validation of a Job's specification.
//!
//! Guarantees: numbers, modes, policies, selectors and templates are validated in upstream's order and words, for Jobs and for
//! the templates of CronJobs. Matches k8s.io/kubernetes `pkg/apis/batch/validation/validation.go`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::fields::{
    at, child, copy, each_message, go_struct, immutable, invalid, invalid_as, list, nonnegative, not_supported, number,
    required, selector_json, subdomain_errors, text, too_long,
};
use super::pod_spec::{self, selectors};
use super::policies;

const SOFT_LIMIT: i64 = 100_000;
const HIGH_LIMIT: i64 = 10_000;

/// Removes the fields whose feature gates are off by default, from the Pod template, too. Matches `DropDisabledFields` of
/// k8s.io/kubernetes `pkg/api/job/util.go`; no stored Job has them.
pub(super) fn drop_disabled(spec: &mut Value) {
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("scheduling");
    }
    if let Some(template) = spec.get_mut("template") {
        pod_spec::drop_disabled(template);
    }
}

/// The warnings about a Job's spec at `path`. Matches `WarningsForJobSpec` of k8s.io/kubernetes `pkg/api/job/warnings.go`.
pub(super) fn warnings(spec: &Value, path: &str) -> Vec<String> {
    let more_than = |name: &str, most: i64| number(spec, name).is_some_and(|number| number > most);
    let is_large = more_than("completions", SOFT_LIMIT) && more_than("parallelism", HIGH_LIMIT);
    let large = (is_large && text(spec, "completionMode") == "Indexed").then(|| {
        format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    });
    large.into_iter().chain(pod_spec::warnings(&spec["template"], &format!("{path}.template"))).collect()
}

/// Matches `validateJobSpec`, which does not validate the selector.
pub(super) fn validate_common(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        nonnegative(&mut errors, spec, path, name);
    }
    let is_set = |name: &str| !spec[name].is_null();
    if is_set("maxFailedIndexes") && !is_set("backoffLimitPerIndex") {
        errors.push(required(format!("{path}.backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
    }
    if let Some(name) = spec["managedBy"].as_str() {
        validate_managed_by(name, &format!("{path}.managedBy"), &mut errors);
    }
    validate_mode(spec, path, &mut errors);
    policies::validate_failure(spec, &format!("{path}.podFailurePolicy"), &mut errors);
    if is_set("successPolicy") {
        let field = format!("{path}.successPolicy");
        if text(spec, "completionMode") == "Indexed" {
            policies::validate_success(spec, &field, &mut errors);
        } else {
            let rules = list(spec, "successPolicy.rules").iter();
            let rule = [("SucceededIndexes", "succeededIndexes"), ("SucceededCount", "succeededCount")];
            let rules = rules.map(|one| go_struct(one, &rule)).collect::<Vec<_>>().join(",");
            let shown = if spec["successPolicy"]["rules"].is_null() { "null".to_owned() } else { format!("[{rules}]") };
            errors.push(invalid_as(field, &format!("{{\"Rules\":{shown}}}"), "requires indexed completion mode"));
        }
    }
    policies::validate_replacement(spec, &format!("{path}.podReplacementPolicy"), &mut errors);
    errors.extend(pod_spec::validate_template(&spec["template"], &format!("{path}.template")));
    validate_restart_policy(spec, &format!("{path}.template.spec.restartPolicy"), &mut errors);
    errors
}

fn validate_restart_policy(spec: &Value, field: &str, errors: &mut Vec<FieldError>) {
    match text(spec, "template.spec.restartPolicy") {
        "Always" | "" => errors.push(required(field, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if !spec["podFailurePolicy"].is_null() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(invalid(field, "OnFailure", detail));
        }
        "OnFailure" | "Never" => {}
        other => errors.push(not_supported(field, other, &["OnFailure", "Never"])),
    }
}

/// Matches `validation.IsDomainPrefixedPath`.
fn validate_managed_by(name: &str, field: &str, errors: &mut Vec<FieldError>) {
    match name.split_once('/') {
        _ if name.is_empty() => errors.push(required(field, "")),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            errors.extend(each_message(field, host, subdomain_errors(host)));
            let is_sound = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
            if !rest.chars().all(is_sound) {
                let detail = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
                errors.push(invalid(field, rest, detail));
            }
        }
        _ => errors.push(invalid(field, name, "must be a domain-prefixed path (such as \"acme.io/foo\")")),
    }
    if name.len() > 63 {
        errors.push(too_long(field, 63));
    }
}

fn limit(errors: &mut Vec<FieldError>, spec: &Value, path: &str, name: &str, most: i64, tail: &str) {
    if let Some(value) = number(spec, name).filter(|value| *value > most) {
        errors.push(invalid(format!("{path}.{name}"), value, &format!("must be less than or equal to {most}{tail}")));
    }
}

fn validate_mode(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    // An empty one is not absent.
    match spec["completionMode"].as_str().unwrap_or("NonIndexed") {
        "Indexed" => validate_indexed(spec, path, errors),
        "NonIndexed" => {
            for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(value) = number(spec, name) {
                    errors.push(invalid(format!("{path}.{name}"), value, "requires indexed completion mode"));
                }
            }
        }
        mode => errors.push(not_supported(format!("{path}.completionMode"), mode, &["NonIndexed", "Indexed"])),
    }
}

fn validate_indexed(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let completions = number(spec, "completions");
    if completions.is_none() {
        errors.push(required(format!("{path}.completions"), "when completion mode is Indexed"));
    }
    limit(errors, spec, path, "parallelism", SOFT_LIMIT, " when completion mode is Indexed");
    if let Some(failed) = number(spec, "maxFailedIndexes").filter(|failed| completions.is_some_and(|n| *failed > n)) {
        let detail = "must be less than or equal to completions";
        errors.push(invalid(format!("{path}.maxFailedIndexes"), failed, detail));
    }
    limit(errors, spec, path, "maxFailedIndexes", SOFT_LIMIT, "");
    if completions.is_some_and(|n| n > SOFT_LIMIT) && !spec["backoffLimitPerIndex"].is_null() {
        if spec["maxFailedIndexes"].is_null() {
            let detail = format!("must be specified when completions is above {SOFT_LIMIT}");
            errors.push(required(format!("{path}.maxFailedIndexes"), &detail));
        }
        let tail = format!(" when completions are above {SOFT_LIMIT} and used with backoff limit per index");
        limit(errors, spec, path, "parallelism", HIGH_LIMIT, &tail);
        limit(errors, spec, path, "maxFailedIndexes", HIGH_LIMIT, &tail);
    }
}

/// Validates a Job's spec with its selector. Matches `ValidateJobSpec`.
pub(super) fn validate(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = validate_common(spec, path);
    let selector = &spec["selector"];
    if selector.is_null() {
        errors.push(required(format!("{path}.selector"), ""));
    } else {
        selectors::validate(selector, &format!("{path}.selector"), &mut errors);
    }
    let labels = at(spec, "template.metadata.labels");
    if !has_errors(selector) && !matches(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(invalid(format!("{path}.template.metadata.labels"), labels.clone(), detail));
    }
    errors
}

/// Validates the Job template of a CronJob. Matches `ValidateJobTemplateSpec`.
pub(super) fn validate_job_template(template: &Value, path: &str) -> Vec<FieldError> {
    let path = format!("{path}.spec");
    let spec = &template["spec"];
    let mut errors = validate_common(spec, &path);
    if !spec["selector"].is_null() {
        let shown = selector_json(&spec["selector"]);
        errors.push(invalid_as(format!("{path}.selector"), &shown, "`selector` will be auto-generated"));
    }
    if spec["manualSelector"] == true {
        errors.push(not_supported(format!("{path}.manualSelector"), true, &["nil", "false"]));
    }
    errors
}

fn has_errors(selector: &Value) -> bool {
    let mut errors = Vec::new();
    selectors::validate(selector, "", &mut errors);
    !errors.is_empty()
}

/// Whether labels match a selector; no labels match a missing one. Matches apimachinery `LabelSelectorAsSelector`.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    let value = |key: &str| labels[key].as_str();
    let equal = |(key, wanted): (&String, &Value)| value(key).is_some() && value(key) == wanted.as_str();
    !selector.is_null()
        && selector["matchLabels"].as_object().into_iter().flatten().all(equal)
        && list(selector, "matchExpressions").iter().all(|expression| {
            let found = value(text(expression, "key"));
            let listed = found.is_some_and(|found| list(expression, "values").iter().any(|value| value == found));
            match text(expression, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => found.is_some(),
                _ => found.is_none(),
            }
        })
}

/// Validates a change of the spec. Matches `ValidateJobSpecUpdate`.
pub(super) fn validate_update(job: &Value, old: &Value, path: &str) -> Vec<FieldError> {
    let (spec, old_spec) = (&job["spec"], &old["spec"]);
    let mut errors = validate(spec, path);
    if text(spec, "completionMode") != "Indexed" {
        immutable(&mut errors, spec, old_spec, path, "completions");
    } else if spec["completions"] != old_spec["completions"] && spec["completions"] != spec["parallelism"] {
        let detail = format!("can only be modified in tandem with {path}.parallelism");
        errors.push(invalid(format!("{path}.completions"), spec["completions"].clone(), &detail));
    }
    immutable(&mut errors, spec, old_spec, path, "selector");
    validate_template_update(spec, old, path, &mut errors);
    immutable(&mut errors, spec, old_spec, path, "completionMode");
    if spec["podFailurePolicy"] != old_spec["podFailurePolicy"] {
        let shown = serde_json::json!({"Rules": spec["podFailurePolicy"]["rules"]});
        errors.push(invalid(format!("{path}.podFailurePolicy"), shown, "field is immutable"));
    }
    for name in ["backoffLimitPerIndex", "managedBy", "successPolicy"] {
        immutable(&mut errors, spec, old_spec, path, name);
    }
    errors
}

/// A suspended Job without running Pods may change its template's scheduling fields and resources; otherwise the template is
/// immutable. Matches `validatePodTemplateUpdate`.
fn validate_template_update(spec: &Value, old: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let suspended = at(old, "spec.suspend") == &Value::Bool(true);
    let conditions = list(old, "status.conditions");
    let idle = at(old, "status.startTime").is_null()
        || conditions.iter().any(|c| c["type"] == "Suspended" && c["status"] == "True");
    let mutable = suspended && idle && number(old, "status.active").unwrap_or(0) == 0;
    if !mutable {
        immutable(errors, spec, &old["spec"], path, "template");
        return;
    }
    let mut expected = at(old, "spec.template").clone();
    let template = &spec["template"];
    for name in ["labels", "annotations"] {
        copy(child(&mut expected, "metadata"), &template["metadata"], name);
    }
    let old_spec = child(&mut expected, "spec");
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(old_spec, &template["spec"], name);
    }
    allow_node_affinity(old_spec, &template["spec"]);
    for name in ["containers", "initContainers"] {
        let Some(containers) = old_spec.get_mut(name).and_then(Value::as_array_mut) else { continue };
        for (container, new) in containers.iter_mut().zip(list(template, &format!("spec.{name}"))) {
            if container["name"] == new["name"] {
                copy(container, new, "resources");
            }
        }
    }
    if expected["spec"] != template["spec"] {
        errors.push(invalid(format!("{path}.template.spec"), template["spec"].clone(), "field is immutable"));
    }
}

/// Allows a change of node affinity.
fn allow_node_affinity(expected: &mut Value, new: &Value) {
    let affinity = &new["affinity"];
    if affinity.is_null() && expected["affinity"].is_null() {
        return;
    }
    let old = child(expected, "affinity");
    copy(old, affinity, "nodeAffinity");
    let cleared = affinity.is_null() && old.as_object().is_some_and(serde_json::Map::is_empty);
    if cleared && let Some(spec) = expected.as_object_mut() {
        spec.remove("affinity");
    }
}

/// The rules for generated labels and selectors. Matches `validateGeneratedSelector`.
pub(super) fn validate_generated_selector(job: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if at(job, "spec.manualSelector") == &Value::Bool(true) || at(job, "spec.selector").is_null() {
        return errors;
    }
    let (uid, name) = (text(job, "metadata.uid"), text(job, "metadata.name"));
    let labels = at(job, "spec.template.metadata.labels");
    let expected = [(LEGACY_CONTROLLER_UID, uid), (LEGACY_JOB_NAME, name), (CONTROLLER_UID, uid), (JOB_NAME, name)];
    for (label, value) in &expected {
        let field = format!("spec.template.metadata.labels[{label}]");
        match labels[*label].as_str() {
            None => errors.push(required(field, &format!("must be '{value}'"))),
            Some(found) if found != *value => {
                errors.push(invalid(field, labels.clone(), &format!("must be '{value}'")));
            }
            Some(_) => {}
        }
    }
    let selector = at(job, "spec.selector");
    let generated: Value = expected.iter().map(|(label, value)| ((*label).to_owned(), Value::from(*value))).collect();
    if !has_errors(selector) && !matches(selector, &generated) {
        errors.push(invalid_as("spec.selector", &selector_json(selector), "`selector` not auto-generated"));
    }
    errors
}

/// The label with the Job's UID.
pub(super) const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
/// The label with the Job's name.
pub(super) const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The older name of [`CONTROLLER_UID`].
pub(super) const LEGACY_CONTROLLER_UID: &str = "controller-uid";
/// The older name of [`JOB_NAME`].
pub(super) const LEGACY_JOB_NAME: &str = "job-name";
