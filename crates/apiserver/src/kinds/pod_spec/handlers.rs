//! Validation of probes and of lifecycle handlers.
//!
//! Guarantees: see [`super`]. Matches `validateProbe`, `validateLifecycle` and `validateHandler` of k8s.io/kubernetes
//! `pkg/apis/core/validation/validation.go`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::paths::header_name_error;
use crate::kinds::fields::{forbidden, invalid, list, nonnegative, not_supported, number, require, required, text};

/// Validates the fields that main containers and sidecars may have and other init containers may not.
pub(super) fn validate(container: &Value, grace: Option<i64>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][name];
        if !handler.is_null() {
            let kinds = ["exec", "httpGet", "tcpSocket", "sleep"];
            validate_handler(handler, &kinds, grace, &format!("{path}.lifecycle.{name}"), errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container[name].is_null() {
            validate_probe(&container[name], name, grace, &format!("{path}.{name}"), errors);
        }
    }
}

fn validate_probe(probe: &Value, name: &str, grace: Option<i64>, at: &str, errors: &mut Vec<FieldError>) {
    validate_handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace, at, errors);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        nonnegative(errors, probe, at, field);
    }
    let field = format!("{at}.terminationGracePeriodSeconds");
    let period = number(probe, "terminationGracePeriodSeconds");
    if let Some(seconds) = period.filter(|seconds| *seconds <= 0) {
        errors.push(invalid(field.as_str(), seconds, "must be greater than 0"));
    }
    let threshold = number(probe, "successThreshold").unwrap_or(0);
    match (name, period) {
        ("readinessProbe", Some(seconds)) => {
            errors.push(invalid(field, seconds, "must not be set for readinessProbes"));
        }
        ("readinessProbe", None) => {}
        _ if threshold != 1 => errors.push(invalid(format!("{at}.successThreshold"), threshold, "must be 1")),
        _ => {}
    }
}

fn validate_handler(handler: &Value, kinds: &[&str], grace: Option<i64>, path: &str, errors: &mut Vec<FieldError>) {
    let mut given = kinds.iter().filter(|name| !handler[**name].is_null());
    let Some(first) = given.next() else {
        errors.push(required(path, "must specify a handler type"));
        return;
    };
    let (action, at) = (&handler[*first], format!("{path}.{first}"));
    match *first {
        "exec" if list(action, "command").is_empty() => errors.push(required(format!("{at}.command"), "")),
        "httpGet" => http_get(action, &at, errors),
        "tcpSocket" | "grpc" => port(&action["port"], &format!("{at}.port"), errors),
        "sleep" => {
            let seconds = number(action, "seconds").unwrap_or(0);
            if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
                let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.push(invalid(at, seconds, &detail));
            }
        }
        _ => {}
    }
    for name in given {
        errors.push(forbidden(format!("{path}.{name}"), "may not specify more than 1 handler type"));
    }
}

fn http_get(action: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, action, at, "path");
    port(&action["port"], &format!("{at}.port"), errors);
    let scheme = text(action, "scheme");
    if !["HTTP", "HTTPS"].contains(&scheme) {
        errors.push(not_supported(format!("{at}.scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        errors.extend(header_name_error(name).map(|detail| invalid(format!("{at}.httpHeaders"), name, detail)));
    }
}

/// Matches `ValidatePortNumOrName`.
fn port(port: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if let Some(name) = port.as_str() {
        errors.extend(port_name_errors(name).iter().map(|detail| invalid(field, name, detail)));
    } else {
        let number = port.as_i64().unwrap_or(0);
        // The constructor prints Go's `int` as it prints all numbers.
        errors.extend(port_error(number).map(|detail| invalid(field, number, detail)));
    }
}

/// Matches `validation.IsValidPortNum`.
pub(super) fn port_error(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// Matches `validation.IsValidPortName`.
pub(super) fn port_name_errors(name: &str) -> Vec<&'static str> {
    let is_sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let checks = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            name.is_empty() || !name.chars().all(is_sound),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!name.chars().any(|c| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, message)| message).collect()
}
