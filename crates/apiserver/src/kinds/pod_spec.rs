//! Validation of Pods and of Pod templates.
//!
//! Guarantees: every field is validated in upstream's order and words, by the feature gates that are on by default. Matches
//! k8s.io/kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePodTemplateSpec`, `ValidatePodCreate` and
//! `ValidatePodSpec`. `tests/truth/mutations` compares drawn templates with the real server.
//!
//! Known differences: `--allow-privileged` counts as given. Entries of maps are judged in alphabetical order, where Go has none.
//! Tolerations in an annotation that is no JSON are refused in other words.

mod annotations;
mod claims;
mod containers;
mod disabled;
mod env;
mod handlers;
mod host;
mod overlaps;
mod paths;
mod plain_volumes;
mod projected;
mod resources;
mod scheduling;
mod security;
pub(super) mod selectors;
mod volume_sources;
mod volumes;
mod warnings;
mod windows;

use apimachinery::field::FieldError;
use apimachinery::names::{label_key_errors, label_value_errors};
use serde_json::Value;

use super::fields::{
    at, dns_label_errors, each_message, forbidden, in_range, invalid, is_true, list, nonnegative, not_supported,
    required, subdomain_errors, text,
};
use containers::Surroundings;

pub(super) use disabled::drop as drop_disabled;
pub(super) use warnings::warnings;

/// Validates a Pod template at `path`.
pub(super) fn validate_template(template: &Value, path: &str) -> Vec<FieldError> {
    let (metadata, spec) = (&template["metadata"], &template["spec"]);
    let mut errors = validate_labels(&metadata["labels"], &format!("{path}.labels"));
    let field = format!("{path}.annotations");
    annotations::keys(&metadata["annotations"], &field, &mut errors);
    annotations::with_meaning(&metadata["annotations"], spec, &field, &mut errors);
    let at = format!("{path}.spec");
    errors.extend(validate(spec, &at));
    annotations::agree(&metadata["annotations"], spec, &at, &mut errors);
    if !list(spec, "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(forbidden(format!("{at}.ephemeralContainers"), detail));
    }
    errors
}

/// Validates a new Pod without its metadata. Matches `ValidatePodCreate`.
pub(super) fn validate_pod(pod: &Value) -> Vec<FieldError> {
    let (given, spec) = (at(pod, "metadata.annotations"), &pod["spec"]);
    let mut errors = Vec::new();
    annotations::with_meaning(given, spec, "metadata.annotations", &mut errors);
    validate_at(spec, Some(text(pod, "metadata.name")), "spec", &mut errors);
    if text(spec, "serviceAccountName").is_empty() {
        for (index, volume) in list(spec, "volumes").iter().enumerate() {
            for (n, source) in list(volume, "projected.sources").iter().enumerate() {
                if !source["serviceAccountToken"].is_null() {
                    let field = format!("spec.volumes[{index}].projected.sources[{n}].serviceAccountToken");
                    errors.push(forbidden(field, "must not be specified when serviceAccountName is not set"));
                }
            }
        }
    }
    nonnegative(&mut errors, spec, "spec", "terminationGracePeriodSeconds");
    for name in ["containers", "initContainers"] {
        for (index, container) in list(spec, name).iter().enumerate() {
            containers::image_without_blanks(container, &format!("spec.{name}[{index}]"), &mut errors);
        }
    }
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.push(forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        errors.push(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
    }
    annotations::agree(given, spec, "spec", &mut errors);
    errors
}

/// Validates a map of labels. Matches apimachinery `ValidateLabels`.
pub(super) fn validate_labels(labels: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        errors.extend(each_message(path, key, label_key_errors(key)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(each_message(path, value, label_value_errors(value)));
    }
    errors
}

/// Validates the spec of a Pod template at `path`, or that of a Pod whose name does not matter any more.
pub(super) fn validate(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_at(spec, None, path, &mut errors);
    errors
}

fn validate_at(spec: &Value, pod_name: Option<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let volumes = volumes::validate(spec, pod_name, &format!("{path}.volumes"), errors);
    let claims = claims::resource_claim_names(spec);
    claims::resource_claims(spec, &format!("{path}.resourceClaims"), errors);
    let surroundings = Surroundings { spec, volumes, claims };
    containers::validate(&surroundings, path, errors);
    resources::of_pod(spec, &surroundings.claims, path, errors);
    host::ports(spec, pod_name.is_some(), path, errors);
    one_of(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"], errors);
    one_of(spec, path, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    errors.extend(validate_labels(&spec["nodeSelector"], &format!("{path}.nodeSelector")));
    security::of_pod(spec, path, errors);
    if is_true(spec, "shareProcessNamespace") && is_true(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(invalid(format!("{path}.shareProcessNamespace"), true, detail));
    }
    scheduling::affinity(&spec["affinity"], &format!("{path}.affinity"), errors);
    host::dns_config(spec, path, errors);
    validate_gates(spec, path, errors);
    let constraints = list(spec, "topologySpreadConstraints");
    scheduling::spread(constraints, &format!("{path}.topologySpreadConstraints"), errors);
    windows::host_processes(spec, path, errors);
    windows::host_users(spec, path, errors);
    host::name(spec, path, errors);
    validate_names(spec, path, errors);
    windows::operating_system(spec, path, errors);
    env::files(spec, path, errors);
}

/// Checks a field that must have one of some values.
fn one_of(spec: &Value, path: &str, name: &str, supported: &[&str], errors: &mut Vec<FieldError>) {
    match text(spec, name) {
        "" => errors.push(required(format!("{path}.{name}"), "")),
        value if supported.contains(&value) => {}
        value => errors.push(not_supported(format!("{path}.{name}"), value, supported)),
    }
}

fn validate_gates(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let condition = text(gate, "conditionType");
        let field = format!("{path}.readinessGates[{index}].conditionType");
        errors.extend(each_message(&field, condition, label_key_errors(condition)));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let (name, field) = (text(gate, "name"), format!("{path}.schedulingGates[{index}]"));
        errors.extend(each_message(&field, name, label_key_errors(name)));
        if !seen.insert(name) {
            errors.push(super::fields::duplicate(field, name));
        }
    }
}

fn validate_names(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let judge = |errors: &mut Vec<FieldError>, name: &str, rule: fn(&str) -> Vec<String>| {
        let value = text(spec, name);
        if !value.is_empty() {
            errors.extend(each_message(&format!("{path}.{name}"), value, rule(value)));
        }
    };
    judge(errors, "serviceAccountName", subdomain_errors);
    judge(errors, "nodeName", subdomain_errors);
    in_range(errors, spec, path, "activeDeadlineSeconds", 1..=i64::from(i32::MAX));
    judge(errors, "hostname", dns_label_errors);
    judge(errors, "subdomain", dns_label_errors);
    scheduling::tolerations(list(spec, "tolerations"), &format!("{path}.tolerations"), errors);
    host::aliases(list(spec, "hostAliases"), &format!("{path}.hostAliases"), errors);
    judge(errors, "priorityClassName", subdomain_errors);
    if let Some(class) = spec["runtimeClassName"].as_str() {
        errors.extend(each_message(&format!("{path}.runtimeClassName"), class, subdomain_errors(class)));
    }
    if let Some(policy) = spec["preemptionPolicy"].as_str() {
        let policies = ["PreemptLowerPriority", "Never"];
        let field = format!("{path}.preemptionPolicy");
        if policy.is_empty() {
            errors.push(required(field, ""));
        } else if !policies.contains(&policy) {
            errors.push(not_supported(field, policy, &policies));
        }
    }
    resources::overhead(&spec["overhead"], &format!("{path}.overhead"), errors);
}

/// The containers of all kinds with their paths, in the order of upstream's `VisitContainersWithPath`.
fn containers_with_paths<'a>(spec: &'a Value, path: &str) -> impl Iterator<Item = (&'a Value, String)> {
    let path = path.to_owned();
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |name| {
        let path = path.clone();
        list(spec, name).iter().enumerate().map(move |(n, container)| (container, format!("{path}.{name}[{n}]")))
    })
}
