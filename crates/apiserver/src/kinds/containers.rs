//! Validation of a Pod's containers.
//!
//! Guarantees: see [`super::pod_spec`]. Matches k8s.io/kubernetes `pkg/apis/core/validation/validation.go`,
//! `validateContainers`, `validateInitContainers` and what they call.

use std::collections::BTreeSet;

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use serde_json::Value;

use super::fields::{
    at, dns_label_errors, duplicate, each_message, forbidden, invalid, list, nonnegative, not_found, not_supported,
    number, required, subdomain_errors, text,
};
use super::quantity;

/// Validates the containers and init containers of `spec`; `volumes` are those that can be mounted.
pub(super) fn validate(spec: &Value, volumes: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let containers = list(spec, "containers");
    if containers.is_empty() {
        errors.push(required(format!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = format!("{path}.containers[{index}]");
        validate_common(container, volumes, &at, errors);
        if !names.insert(text(container, "name")) {
            errors.push(duplicate(format!("{at}.name"), text(container, "name")));
        }
        validate_running(container, &at, errors);
    }
    check_host_ports(containers, &format!("{path}.containers"), errors);
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let at = format!("{path}.initContainers[{index}]");
        validate_common(container, volumes, &at, errors);
        let name = text(container, "name");
        if names.contains(name) {
            errors.push(duplicate(format!("{at}.name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        if text(container, "restartPolicy") == "Always" {
            validate_running(container, &at, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if !container[field].is_null() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(forbidden(format!("{at}.{field}"), detail));
            }
        }
    }
}

/// Matches `validateContainerCommon`.
fn validate_common(container: &Value, volumes: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.push(required(format!("{path}.name"), ""));
    } else {
        errors.extend(each_message(&format!("{path}.name"), name, dns_label_errors(name)));
    }
    if text(container, "image").is_empty() {
        errors.push(required(format!("{path}.image"), ""));
    }
    one_of(container, path, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], errors);
    validate_ports(list(container, "ports"), &format!("{path}.ports"), errors);
    validate_env(list(container, "env"), &format!("{path}.env"), errors);
    validate_env_from(list(container, "envFrom"), &format!("{path}.envFrom"), errors);
    validate_mounts(list(container, "volumeMounts"), volumes, &format!("{path}.volumeMounts"), errors);
    one_of(container, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], errors);
    validate_resources(&container["resources"], &format!("{path}.resources"), errors);
}

/// Checks a field that must have one of some values.
fn one_of(object: &Value, path: &str, name: &str, supported: &[&str], errors: &mut Vec<FieldError>) {
    let field = format!("{path}.{name}");
    match text(object, name) {
        "" => errors.push(required(field, "")),
        value if supported.contains(&value) => {}
        value => errors.push(not_supported(field, value, supported)),
    }
}

/// Validates the fields that main containers and sidecars may have and other init containers may not.
fn validate_running(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][name];
        if !handler.is_null() {
            validate_handler(handler, &format!("{path}.lifecycle.{name}"), errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[name];
        if probe.is_null() {
            continue;
        }
        let at = format!("{path}.{name}");
        validate_handler(probe, &at, errors);
        for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            nonnegative(errors, probe, &at, field);
        }
        if let Some(seconds) = number(probe, "terminationGracePeriodSeconds").filter(|seconds| *seconds <= 0) {
            errors.push(invalid(format!("{at}.terminationGracePeriodSeconds"), seconds, "must be greater than 0"));
        }
        let threshold = number(probe, "successThreshold").unwrap_or(0);
        if name != "readinessProbe" && threshold != 1 {
            errors.push(invalid(format!("{at}.successThreshold"), threshold, "must be 1"));
        }
    }
}

fn validate_handler(handler: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let given = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"].into_iter().filter(|name| !handler[*name].is_null());
    let given: Vec<&str> = given.collect();
    for name in given.iter().skip(1) {
        errors.push(forbidden(format!("{path}.{name}"), "may not specify more than 1 handler type"));
    }
    match given.first() {
        None => errors.push(required(path, "must specify a handler type")),
        Some(&"exec") if list(handler, "exec.command").is_empty() => {
            errors.push(required(format!("{path}.exec.command"), ""));
        }
        Some(_) => {}
    }
}

fn port_errors(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// Matches `validation.IsValidPortName`.
fn port_name_errors(name: &str) -> Vec<String> {
    let checks = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!name.chars().any(|c| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, message)| message.to_owned()).collect()
}

fn validate_ports(ports: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let messages = port_name_errors(name);
            if messages.is_empty() && !names.insert(name) {
                errors.push(duplicate(format!("{at}.name"), name));
            }
            errors.extend(each_message(&format!("{at}.name"), name, messages));
        }
        match number(port, "containerPort").unwrap_or(0) {
            0 => errors.push(required(format!("{at}.containerPort"), "")),
            n => errors.extend(port_errors(n).map(|detail| invalid(format!("{at}.containerPort"), n, detail))),
        }
        if let Some(n) = number(port, "hostPort").filter(|n| *n != 0) {
            errors.extend(port_errors(n).map(|detail| invalid(format!("{at}.hostPort"), n, detail)));
        }
        one_of(port, &at, "protocol", &["SCTP", "TCP", "UDP"], errors);
    }
}

fn check_host_ports(containers: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (n, port) in list(container, "ports").iter().enumerate() {
            let Some(number) = number(port, "hostPort").filter(|number| *number != 0) else { continue };
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if !seen.insert(key.clone()) {
                errors.push(duplicate(format!("{path}[{index}].ports[{n}].hostPort"), key));
            }
        }
    }
}

fn validate_env(vars: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, var) in vars.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = text(var, "name");
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else if name.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
            let detail =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(invalid(format!("{at}.name"), name, detail));
        }
        let Some(sources) = var["valueFrom"].as_object() else { continue };
        let field = format!("{at}.valueFrom");
        for (source, wanted) in [("configMapKeyRef", "key"), ("secretKeyRef", "key"), ("fieldRef", "fieldPath")] {
            if sources.contains_key(source) && text(&sources[source], wanted).is_empty() {
                errors.push(required(format!("{field}.{source}.{wanted}"), ""));
            }
        }
        if sources.is_empty() {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
            errors.push(invalid(field, "", detail));
        } else if !text(var, "value").is_empty() {
            errors.push(invalid(field, "", "may not be specified when `value` is not empty"));
        } else if sources.len() > 1 {
            errors.push(invalid(field, "", "may not have more than one field specified at a time"));
        }
    }
}

fn validate_env_from(sources: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, source) in sources.iter().enumerate() {
        let field = format!("{path}[{index}]");
        let given: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|name| !source[*name].is_null()).collect();
        for name in &given {
            let referred = text(&source[*name], "name");
            if referred.is_empty() {
                errors.push(required(format!("{field}.{name}.name"), ""));
            } else {
                errors.extend(each_message(&format!("{field}.{name}.name"), referred, subdomain_errors(referred)));
            }
        }
        match given.len() {
            0 => errors.push(invalid(field, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(invalid(field, "", "may not have more than one field specified at a time")),
        }
    }
}

fn validate_mounts(mounts: &[Value], volumes: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let mut points = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (name, point) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        }
        if !volumes.contains(name) {
            errors.push(not_found(format!("{at}.name"), name));
        }
        if point.is_empty() {
            errors.push(required(format!("{at}.mountPath"), ""));
        }
        if !points.insert(point) {
            errors.push(invalid(format!("{at}.mountPath"), point, "must be unique"));
        }
    }
}

/// Matches `validateContainerResourceName`; upstream gives both messages for an unknown name without a domain.
fn resource_name_errors(name: &str) -> Vec<String> {
    let mut messages = label_key_errors(name);
    if messages.is_empty() && !name.contains('/') {
        let standard = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
        let known = standard || ["storage", "pods", "services"].contains(&name);
        if !known {
            messages.push("must be a standard resource type or fully qualified".to_owned());
        }
        if !standard {
            messages.push("must be a standard resource for containers".to_owned());
        }
    }
    messages
}

/// Matches `ValidateContainerResourceRequirements`, without claims.
fn validate_resources(resources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for list in ["limits", "requests"] {
        for (name, value) in resources[list].as_object().into_iter().flatten() {
            let field = format!("{path}.{list}[{name}]");
            errors.extend(each_message(&field, name, resource_name_errors(name)));
            let quantity = value.as_str().unwrap_or_default();
            let Some(amount) = quantity::parse(quantity) else { continue };
            if amount.milli < 0 {
                errors.push(invalid(field.as_str(), quantity, "must be greater than or equal to 0"));
            }
            let limit = at(resources, "limits")[name].as_str().unwrap_or_default();
            if list == "requests" && quantity::parse(limit).is_some_and(|limit| amount.milli > limit.milli) {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(invalid(format!("{path}.requests"), quantity, &detail));
            }
        }
    }
}
