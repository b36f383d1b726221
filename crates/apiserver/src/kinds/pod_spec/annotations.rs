//! Validation of a Pod's annotations: their keys, those that have a meaning, and that they agree with the fields that replace
//! them.
//!
//! Guarantees: see [`super`]. Matches `ValidatePodSpecificAnnotations`, `validateSeccompAnnotationsAndFields` and
//! `validateAppArmorAnnotationsAndFieldsMatchOnCreate` of k8s.io/kubernetes `pkg/apis/core/validation/validation.go`.
//!
//! Known difference: tolerations in an annotation that is no JSON are refused in this parser's words and not in Go's.

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use apimachinery::quoting::quote;
use serde_json::{Map, Value};

use super::paths::local_descending;
use super::projected::ANNOTATION_BYTES;
use super::{containers_with_paths, scheduling};
use crate::kinds::fields::{each_message, forbidden, invalid, text, too_long};

const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(super) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What errors call a profile, and the annotations that mean that of the runtime.
const OF_SECCOMP: (&str, &[&str]) = ("seccomp", &["runtime/default", "docker/default"]);
const OF_APP_ARMOR: (&str, &[&str]) = ("apparmor", &["runtime/default"]);

/// Validates keys and the size. Matches apimachinery `ValidateAnnotations`.
pub(super) fn keys(annotations: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        // Upstream validates annotation keys in lower case.
        errors.extend(each_message(path, key, label_key_errors(&key.to_lowercase())));
    }
    if bytes > ANNOTATION_BYTES {
        errors.push(too_long(path, ANNOTATION_BYTES));
    }
}

/// Validates the annotations with a meaning.
pub(super) fn with_meaning(annotations: &Value, spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let value_of = |key: &str| annotations[key].as_str();
    if let Some(value) = value_of(MIRROR).filter(|_| text(spec, "nodeName").is_empty()) {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(invalid(format!("{path}[{MIRROR}]"), value, detail));
    }
    if let Some(value) = value_of(TOLERATIONS).filter(|value| !value.is_empty()) {
        match tolerations(value) {
            Ok(tolerations) => scheduling::tolerations(&tolerations, &format!("{path}.{TOLERATIONS}"), errors),
            Err(error) => errors.push(invalid(path, TOLERATIONS, &error)),
        }
    }
    if let Some(value) = value_of(DELETION_COST).filter(|value| !is_cost(value)) {
        errors.push(invalid(format!("{path}[{DELETION_COST}]"), value, "must be a 32bit integer"));
    }
    if let Some(profile) = value_of(SECCOMP_POD) {
        seccomp_profile(profile, &format!("{path}.{SECCOMP_POD}"), errors);
    }
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if key.starts_with(SECCOMP_CONTAINER) {
            seccomp_profile(value, &format!("{path}.{key}"), errors);
        }
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        let field = format!("{path}[{key}]");
        if !containers_with_paths(spec, "").any(|(of, _)| text(of, "name") == container) {
            errors.push(invalid(field.as_str(), container, "container not found"));
        }
        let is_known = matches!(value, "" | "runtime/default" | "unconfined") || value.starts_with("localhost/");
        if !is_known {
            errors.push(invalid(field, value, &format!("invalid AppArmor profile name: {}", quote(value))));
        }
    }
}

/// Tolerations in JSON. Go takes the names of their fields in any case.
fn tolerations(text: &str) -> Result<Vec<Value>, String> {
    let in_words_of_go = |error: serde_json::Error| {
        if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
    };
    let parsed: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(in_words_of_go)?;
    let names = ["key", "operator", "value", "effect", "tolerationSeconds"];
    let spelled =
        |name: String| names.iter().find(|known| known.eq_ignore_ascii_case(&name)).map_or(name, ToString::to_string);
    Ok(parsed.into_iter().map(|one| one.into_iter().map(|(name, value)| (spelled(name), value)).collect()).collect())
}

/// Matches `GetDeletionCostFromPodAnnotations`.
fn is_cost(value: &str) -> bool {
    let starts = value == "0" || value.starts_with(|c: char| c == '-' || ('1'..='9').contains(&c));
    starts && value.parse::<i32>().is_ok()
}

/// Matches `ValidateSeccompProfile`.
fn seccomp_profile(profile: &str, field: &str, errors: &mut Vec<FieldError>) {
    match profile.strip_prefix("localhost/") {
        _ if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        Some(path) => local_descending(errors, path, field),
        None => errors.push(invalid(field, profile, "must be a valid seccomp profile")),
    }
}

/// Requires that annotations and the fields that replace them agree.
pub(super) fn agree(annotations: &Value, spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let of_pod = &spec["securityContext"];
    if let Some(value) = annotations[SECCOMP_POD].as_str() {
        agrees(OF_SECCOMP, value, &of_pod["seccompProfile"], &format!("{path}.securityContext.seccompProfile"), errors);
    }
    let is_windows = text(spec, "os.name") == "windows";
    for (container, at) in containers_with_paths(spec, path) {
        let (name, own) = (text(container, "name"), &container["securityContext"]);
        if let Some(value) = annotations[format!("{SECCOMP_CONTAINER}{name}")].as_str() {
            agrees(OF_SECCOMP, value, &own["seccompProfile"], &format!("{at}.securityContext.seccompProfile"), errors);
        }
        let profile =
            if own["appArmorProfile"].is_null() { &of_pod["appArmorProfile"] } else { &own["appArmorProfile"] };
        if let Some(value) = annotations[format!("{APP_ARMOR}{name}")].as_str().filter(|_| !is_windows) {
            agrees(OF_APP_ARMOR, value, profile, &format!("{at}.securityContext.appArmorProfile"), errors);
        }
    }
}

/// Compares an annotation with the profile of `kind` that the field has; `of_runtime` are the annotations that mean the runtime's.
fn agrees(
    (kind, of_runtime): (&str, &[&str]),
    annotation: &str,
    profile: &Value,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let agrees = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => of_runtime.contains(&annotation),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(path) if profile["localhostProfile"].as_str() != Some(path) => {
                let detail = format!("{kind} profile in annotation and field must match");
                errors.push(forbidden(format!("{at}.localhostProfile"), &detail));
                return;
            }
            path => path.is_some(),
        },
        _ => true,
    };
    if !agrees {
        errors.push(forbidden(format!("{at}.type"), &format!("{kind} type in annotation and field must match")));
    }
}
