//! Validation of environment variables and of what they refer to.
//!
//! Guarantees: see [`super`]. Matches `ValidateEnv`, `ValidateEnvFrom` and `validateFileKeyRefVolumes` of k8s.io/kubernetes
//! `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeMap;

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use serde_json::Value;

use super::containers_with_paths;
use super::paths::{config_key_errors, env_name_error, no_backsteps};
use crate::kinds::fields::{
    dns_label_errors, each_message, invalid, list, not_found, not_supported_text, required, subdomain_errors, text,
};

const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates `env`.
pub(super) fn validate(vars: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, var) in vars.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = text(var, "name");
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else {
            errors.extend(env_name_error(name).map(|detail| invalid(format!("{at}.name"), name, detail)));
        }
        if !var["valueFrom"].is_null() {
            value_from(&var["valueFrom"], text(var, "value"), &format!("{at}.valueFrom"), errors);
        }
    }
}

fn value_from(source: &Value, value: &str, path: &str, errors: &mut Vec<FieldError>) {
    let mut given = 0;
    let mut at = |name: &str| {
        let is_given = !source[name].is_null();
        given += usize::from(is_given);
        is_given.then(|| (&source[name], format!("{path}.{name}")))
    };
    if let Some((field, at)) = at("fieldRef") {
        field_ref(field, &FIELDS, &at, errors);
    }
    if let Some((resource, at)) = at("resourceFieldRef") {
        resource_ref(resource, false, &at, errors);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some((reference, at)) = at(name) {
            key_ref(reference, &at, errors);
        }
    }
    if let Some((reference, at)) = at("fileKeyRef") {
        file_key_ref(reference, &at, errors);
    }
    if given == 0 {
        let detail =
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(invalid(path, "", detail));
    } else if !value.is_empty() {
        errors.push(invalid(path, "", "may not be specified when `value` is not empty"));
    } else if given > 1 {
        errors.push(invalid(path, "", "may not have more than one field specified at a time"));
    }
}

/// Matches `validateObjectFieldSelector`.
pub(super) fn field_ref(field: &Value, supported: &[&str], at: &str, errors: &mut Vec<FieldError>) {
    let (version, path) = (text(field, "apiVersion"), text(field, "fieldPath"));
    if version.is_empty() {
        errors.push(required(format!("{at}.apiVersion"), ""));
        return;
    }
    if path.is_empty() {
        errors.push(required(format!("{at}.fieldPath"), ""));
        return;
    }
    match internal_path(version, path) {
        Err(error) => {
            let detail = format!("error converting fieldPath: {error}");
            errors.push(invalid(format!("{at}.fieldPath"), path, &detail));
        }
        Ok(internal) => match subscript(internal) {
            Some(("metadata.annotations", key)) => {
                let key = key.to_lowercase();
                errors.extend(each_message(at, &key, label_key_errors(&key)));
            }
            Some((_, key)) => errors.extend(each_message(at, key, label_key_errors(key))),
            None if !supported.contains(&internal) => {
                errors.push(not_supported_text(format!("{at}.fieldPath"), internal, supported));
            }
            None => {}
        },
    }
}

/// Matches `ConvertDownwardAPIFieldLabel`.
fn internal_path<'a>(version: &str, path: &'a str) -> Result<&'a str, String> {
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    match subscript(path) {
        Some(("metadata.annotations" | "metadata.labels", _)) => return Ok(path),
        Some(_) => return Err(format!("field label does not support subscript: {path}")),
        None => {}
    }
    match path {
        "spec.host" => Ok("spec.nodeName"),
        "metadata.annotations" | "metadata.labels" | "spec.restartPolicy" | "spec.schedulerName" | "status.phase" => {
            Ok(path)
        }
        path if FIELDS.contains(&path) => Ok(path),
        path => Err(format!("field label not supported: {path}")),
    }
}

/// The parts of `metadata.labels['key']`. Matches `SplitMaybeSubscriptedPath`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

/// Matches `validateContainerResourceFieldSelector`; a volume must say which container is meant.
pub(super) fn resource_ref(reference: &Value, in_volume: bool, at: &str, errors: &mut Vec<FieldError>) {
    let resource = text(reference, "resource");
    let is_huge = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && text(reference, "containerName").is_empty() {
        errors.push(required(format!("{at}.containerName"), ""));
    } else if resource.is_empty() {
        errors.push(required(format!("{at}.resource"), ""));
    } else if !RESOURCES.contains(&resource) && !is_huge {
        errors.push(not_supported_text(format!("{at}.resource"), resource, &RESOURCES));
    }
    let divisor = reference["divisor"].as_str().unwrap_or("0");
    let is_unit = DIVISORS.contains(&divisor);
    let of =
        |what: &str| format!("only divisor's values {} are supported with the {what} resource", DIVISORS.join(", "));
    let detail = match resource {
        _ if divisor == "0" => return,
        "limits.cpu" | "requests.cpu" if !["1m", "1"].contains(&divisor) => {
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()
        }
        "limits.memory" | "requests.memory" if !is_unit => of("memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" if !is_unit => of("local ephemeral storage"),
        _ if is_huge && !is_unit => of("hugepages"),
        _ => return,
    };
    errors.push(invalid(format!("{at}.divisor"), resource, &detail));
}

/// Matches `validateConfigMapKeySelector` and `validateSecretKeySelector`.
fn key_ref(reference: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (name, key) = (text(reference, "name"), text(reference, "key"));
    errors.extend(each_message(&format!("{at}.name"), name, subdomain_errors(name)));
    if key.is_empty() {
        errors.push(required(format!("{at}.key"), ""));
    } else {
        errors.extend(each_message(&format!("{at}.key"), key, config_key_errors(key)));
    }
}

fn file_key_ref(reference: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (key, volume, path) = (text(reference, "key"), text(reference, "volumeName"), text(reference, "path"));
    for (name, value) in [("key", key), ("volumeName", volume), ("path", path)] {
        if value.is_empty() {
            errors.push(required(format!("{at}.{name}"), ""));
        }
    }
    if !key.is_empty() {
        errors.extend(env_name_error(key).map(|detail| invalid(format!("{at}.key"), key, detail)));
    }
    if !volume.is_empty() {
        errors.extend(each_message(&format!("{at}.volumeName"), volume, dns_label_errors(volume)));
    }
    no_backsteps(errors, path, &format!("{at}.path"));
}

/// Validates `envFrom`. Upstream does not say which entry has the wrong number of sources.
pub(super) fn validate_from(sources: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, source) in sources.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errors.extend(env_name_error(prefix).map(|detail| invalid(format!("{at}.prefix"), prefix, detail)));
        }
        let given: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|name| !source[*name].is_null()).collect();
        for name in &given {
            let referred = text(&source[*name], "name");
            let field = format!("{at}.{name}.name");
            if referred.is_empty() {
                errors.push(required(field, ""));
            } else {
                errors.extend(each_message(&field, referred, subdomain_errors(&as_prefix(referred))));
            }
        }
        match given.len() {
            0 => errors.push(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(invalid(path, "", "may not have more than one field specified at a time")),
        }
    }
}

/// A name as upstream judges one that something is appended to: a hyphen may end it. Matches `maskTrailingDash`.
fn as_prefix(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut masked = rest.to_owned();
            masked.pop();
            masked + "a"
        }
        _ => name.to_owned(),
    }
}

/// Files with variables are in volumes of type emptyDir.
pub(super) fn files(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let volumes: BTreeMap<&str, &Value> =
        list(spec, "volumes").iter().map(|volume| (text(volume, "name"), volume)).collect();
    for (container, at) in containers_with_paths(spec, path) {
        for (index, var) in list(container, "env").iter().enumerate() {
            let reference = &var["valueFrom"]["fileKeyRef"];
            if reference.is_null() {
                continue;
            }
            let name = text(reference, "volumeName");
            let field = format!("{at}.env[{index}].valueFrom.fileKeyRef.volumeName");
            match volumes.get(name) {
                None => errors.push(not_found(field, name)),
                Some(volume) if volume["emptyDir"].is_null() => {
                    errors.push(invalid(field, name, "referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    }
}
