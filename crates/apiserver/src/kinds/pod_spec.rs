//! Validation of a Pod's specification.
//!
//! Guarantees: the fields that Jobs and CronJobs commonly use are validated in upstream's order and words: names, images,
//! ports, environment, volumes and their mounts, resources, probes, policies, names of other objects, tolerations. Rare fields
//! (affinity, security contexts, volume sources, ephemeral containers) are not validated. Matches k8s.io/kubernetes
//! `pkg/apis/core/validation/validation.go`, `ValidatePodTemplateSpec` and `ValidatePodSpec`.

use std::collections::BTreeSet;

use apimachinery::field::FieldError;
use apimachinery::names::{label_key_errors, label_value_errors};
use serde_json::Value;

use super::containers;
use super::fields::{
    dns_label_errors, duplicate, each_message, forbidden, invalid, list, not_supported, number, required,
    subdomain_errors, text,
};

/// Validates a Pod template at `path`.
pub(super) fn validate_template(template: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = validate_labels(&template["metadata"]["labels"], &format!("{path}.labels"));
    for key in template["metadata"]["annotations"].as_object().into_iter().flat_map(|entries| entries.keys()) {
        // Upstream validates annotation keys in lower case.
        errors.extend(each_message(&format!("{path}.annotations"), key, label_key_errors(&key.to_lowercase())));
    }
    errors.extend(validate(&template["spec"], &format!("{path}.spec")));
    if !list(template, "spec.ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(forbidden(format!("{path}.spec.ephemeralContainers"), detail));
    }
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

/// Validates a Pod's spec at `path`.
pub(super) fn validate(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes = validate_volumes(spec, path, &mut errors);
    containers::validate(spec, &volumes, path, &mut errors);
    match text(spec, "restartPolicy") {
        "Always" | "OnFailure" | "Never" => {}
        "" => errors.push(required(format!("{path}.restartPolicy"), "")),
        other => errors.push(not_supported(format!("{path}.restartPolicy"), other, &["Always", "OnFailure", "Never"])),
    }
    match text(spec, "dnsPolicy") {
        "ClusterFirstWithHostNet" | "ClusterFirst" | "Default" | "None" => {}
        "" => errors.push(required(format!("{path}.dnsPolicy"), "")),
        other => errors.push(not_supported(
            format!("{path}.dnsPolicy"),
            other,
            &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        )),
    }
    errors.extend(validate_labels(&spec["nodeSelector"], &format!("{path}.nodeSelector")));
    validate_names(spec, path, &mut errors);
    errors
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
    if let Some(seconds) = number(spec, "activeDeadlineSeconds").filter(|s| !(1..=i64::from(i32::MAX)).contains(s)) {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(invalid(format!("{path}.activeDeadlineSeconds"), seconds, detail));
    }
    judge(errors, "hostname", dns_label_errors);
    judge(errors, "subdomain", dns_label_errors);
    validate_tolerations(list(spec, "tolerations"), &format!("{path}.tolerations"), errors);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let ip = text(alias, "ip");
        if ip.parse::<std::net::IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(invalid(format!("{path}.hostAliases[{index}].ip"), ip, detail));
        }
        for (n, host) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            let at = format!("{path}.hostAliases[{index}].hostnames[{n}]");
            errors.extend(each_message(&at, host, subdomain_errors(host)));
        }
    }
    judge(errors, "priorityClassName", subdomain_errors);
    judge(errors, "runtimeClassName", subdomain_errors);
}

/// Matches `ValidateTolerations`.
fn validate_tolerations(tolerations: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            errors.extend(each_message(&format!("{at}.key"), key, label_key_errors(key)));
        }
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(invalid(format!("{at}.operator"), operator, detail));
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(invalid(format!("{at}.effect"), effect, detail));
        }
        match operator {
            "Equal" | "" => errors.extend(
                label_value_errors(value)
                    .first()
                    .map(|_| invalid(format!("{at}.operator"), value, &label_value_errors(value).join(";"))),
            ),
            "Exists" => {
                if !value.is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(invalid(format!("{at}.operator"), value, detail));
                }
            }
            other => errors.push(not_supported(format!("{at}.operator"), other, &["Equal", "Exists"])),
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect) {
            errors.push(not_supported(format!("{at}.effect"), effect, &effects));
        }
    }
}

/// Matches `ValidateVolumes` without the sources' own fields; returns the names.
fn validate_volumes<'a>(spec: &'a Value, path: &str, errors: &mut Vec<FieldError>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let at = format!("{path}.volumes[{index}]");
        let before = errors.len();
        // Sources are checked in the order of the Go struct, of which these are the common ones.
        let order = ["emptyDir", "hostPath", "gitRepo", "secret", "nfs", "persistentVolumeClaim", "downwardAPI"];
        let mut sources: Vec<&str> = volume
            .as_object()
            .into_iter()
            .flat_map(|f| f.keys())
            .map(String::as_str)
            .filter(|k| *k != "name")
            .collect();
        sources.sort_by_key(|name| order.iter().position(|o| o == name).unwrap_or(order.len()));
        for source in sources.iter().skip(1) {
            errors.push(forbidden(format!("{at}.{source}"), "may not specify more than 1 volume type"));
        }
        for (n, projection) in list(volume, "projected.sources").iter().enumerate() {
            if !projection["serviceAccountToken"].is_null() && text(spec, "serviceAccountName").is_empty() {
                let field = format!("{at}.projected.sources[{n}].serviceAccountToken");
                errors.push(forbidden(field, "must not be specified when serviceAccountName is not set"));
            }
        }
        let name = text(volume, "name");
        let field = format!("{at}.name");
        if name.is_empty() {
            errors.push(required(field.as_str(), ""));
        } else {
            errors.extend(each_message(&field, name, dns_label_errors(name)));
        }
        if names.contains(name) {
            errors.push(duplicate(field, name));
        }
        // Only valid volumes can be mounted.
        if errors.len() == before {
            names.insert(name);
        }
    }
    names
}

/// Warnings about a Pod's spec at `path`. Matches `GetWarningsForPodSpec` for a negative grace period only.
pub(super) fn warnings(spec: &Value, path: &str) -> Vec<String> {
    let negative = number(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0);
    let warning = format!(
        "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
    );
    negative.then_some(warning).into_iter().collect()
}
