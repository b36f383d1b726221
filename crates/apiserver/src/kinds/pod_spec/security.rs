//! Validation of security contexts.
//!
//! Guarantees: see [`super`]. A privileged container is accepted, as it is by every cluster whose API server runs with
//! `--allow-privileged`. Matches `ValidateSecurityContext` and `validatePodSpecSecurityContext` of k8s.io/kubernetes
//! `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use apimachinery::field::FieldError;
use serde_json::Value;

use super::paths::local_descending;
use super::windows;
use crate::kinds::fields::{
    duplicate, go_json, go_struct, in_range, invalid, invalid_as, invalid_json, is_true, list, not_supported,
    one_of_if_set, required, text, too_long,
};

/// The largest user and group.
const LARGEST_ID: i64 = i32::MAX as i64;
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// The longest path of a profile, in bytes.
const PROFILE_PATH: usize = 4095;
const SYSCTL_LENGTH: usize = 253;
const SYSCTL: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Validates a container's security context.
pub(super) fn of_container(context: &Value, shares_users: bool, path: &str, errors: &mut Vec<FieldError>) {
    if context.is_null() {
        return;
    }
    in_range(errors, context, path, "runAsUser", 0..=LARGEST_ID);
    in_range(errors, context, path, "runAsGroup", 0..=LARGEST_ID);
    one_of_if_set(errors, context, path, "procMount", &["Default", "Unmasked"]);
    if shares_users && context["procMount"] == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        errors.push(invalid(format!("{path}.procMount"), "Unmasked", detail));
    }
    seccomp(&context["seccompProfile"], &format!("{path}.seccompProfile"), errors);
    if context["allowPrivilegeEscalation"] == false {
        if is_true(context, "privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(invalid_as(path, &shown(context), detail));
        }
        if list(context, "capabilities.add").iter().any(|capability| capability == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(invalid_as(path, &shown(context), detail));
        }
    }
    windows::options(&context["windowsOptions"], &format!("{path}.windowsOptions"), errors);
    app_armor(&context["appArmorProfile"], &format!("{path}.appArmorProfile"), errors);
}

/// A security context as upstream's internal type.
fn shown(context: &Value) -> String {
    let nested = |name: &str, fields: &[(&str, &str)]| match &context[name] {
        Value::Null => "null".to_owned(),
        object => go_struct(object, fields),
    };
    let profile = [("Type", "type"), ("LocalhostProfile", "localhostProfile")];
    // Go writes the text of an absent option as empty.
    let options = &context["seLinuxOptions"];
    let option = |name: &str| go_json(&text(options, name).into());
    let options = match options {
        Value::Null => "null".to_owned(),
        _ => format!(
            "{{\"User\":{},\"Role\":{},\"Type\":{},\"Level\":{}}}",
            option("user"),
            option("role"),
            option("type"),
            option("level")
        ),
    };
    let windows = [
        ("GMSACredentialSpecName", "gmsaCredentialSpecName"),
        ("GMSACredentialSpec", "gmsaCredentialSpec"),
        ("RunAsUserName", "runAsUserName"),
        ("HostProcess", "hostProcess"),
    ];
    let plain = |name: &str| go_json(&context[name]);
    format!(
        "{{\"Capabilities\":{},\"Privileged\":{},\"SELinuxOptions\":{options},\"WindowsOptions\":{},\"RunAsUser\":{},\
         \"RunAsGroup\":{},\"RunAsNonRoot\":{},\"ReadOnlyRootFilesystem\":{},\"AllowPrivilegeEscalation\":{},\
         \"ProcMount\":{},\"SeccompProfile\":{},\"AppArmorProfile\":{}}}",
        nested("capabilities", &[("Add", "add"), ("Drop", "drop")]),
        plain("privileged"),
        nested("windowsOptions", &windows),
        plain("runAsUser"),
        plain("runAsGroup"),
        plain("runAsNonRoot"),
        plain("readOnlyRootFilesystem"),
        plain("allowPrivilegeEscalation"),
        plain("procMount"),
        nested("seccompProfile", &profile),
        nested("appArmorProfile", &profile),
    )
}

/// Matches `validateSeccompProfileField`.
fn seccomp(profile: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, "type");
    if kind.is_empty() {
        errors.push(required(format!("{path}.type"), "type is required when seccompProfile is set"));
    } else if !PROFILE_TYPES.contains(&kind) {
        errors.push(not_supported(format!("{path}.type"), kind, &PROFILE_TYPES));
    }
    let field = format!("{path}.localhostProfile");
    match (kind, profile["localhostProfile"].as_str()) {
        ("Localhost", None) => errors.push(required(field, "must be set when seccomp type is Localhost")),
        ("Localhost", Some(file)) => local_descending(errors, file, &field),
        (_, Some(_)) => {
            let shown = go_struct(profile, &[("Type", "type"), ("LocalhostProfile", "localhostProfile")]);
            errors.push(invalid_as(field, &shown, "can only be set when seccomp type is Localhost"));
        }
        (_, None) => {}
    }
}

/// Matches `ValidateAppArmorProfileField`.
fn app_armor(profile: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if profile.is_null() {
        return;
    }
    let field = format!("{path}.localhostProfile");
    let file = profile["localhostProfile"].as_str();
    match (text(profile, "type"), file) {
        ("Localhost", None) => errors.push(required(field, "must be set when AppArmor type is Localhost")),
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                errors.push(invalid(field.as_str(), file, "must not be padded with whitespace"));
            } else if file.is_empty() {
                errors.push(required(field.as_str(), "must be set when AppArmor type is Localhost"));
            }
            if file.len() > PROFILE_PATH {
                errors.push(too_long(field, PROFILE_PATH));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            errors.push(invalid_json(field, file, "can only be set when AppArmor type is Localhost"));
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => errors.push(required(format!("{path}.type"), "type is required when appArmorProfile is set")),
        (other, _) => errors.push(not_supported(format!("{path}.type"), other, &PROFILE_TYPES)),
    }
}

/// Validates a Pod's security context.
pub(super) fn of_pod(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let context = &spec["securityContext"];
    let path = format!("{path}.securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        in_range(errors, context, &path, name, 0..=LARGEST_ID);
    }
    for (index, group) in list(context, "supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
        if !(0..=LARGEST_ID).contains(&group) {
            let detail = format!("must be between 0 and {LARGEST_ID}, inclusive");
            errors.push(invalid(format!("{path}.supplementalGroups[{index}]"), group, &detail));
        }
    }
    sysctls(spec, list(context, "sysctls"), &format!("{path}.sysctls"), errors);
    one_of_if_set(errors, context, &path, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    seccomp(&context["seccompProfile"], &format!("{path}.seccompProfile"), errors);
    windows::options(&context["windowsOptions"], &format!("{path}.windowsOptions"), errors);
    app_armor(&context["appArmorProfile"], &format!("{path}.appArmorProfile"), errors);
    one_of_if_set(errors, context, &path, "supplementalGroupsPolicy", &["Merge", "Strict"]);
    one_of_if_set(errors, context, &path, "seLinuxChangePolicy", &["MountOption", "Recursive"]);
}

fn sysctls(spec: &Value, sysctls: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let (name, field) = (text(sysctl, "name"), format!("{path}[{index}].name"));
        if name.is_empty() {
            errors.push(required(field.as_str(), ""));
        } else if !is_sysctl(name) {
            let detail = format!("must have at most {SYSCTL_LENGTH} characters and match regex {SYSCTL}");
            errors.push(invalid(field.as_str(), name, &detail));
        } else if seen.contains(name) {
            errors.push(duplicate(field.as_str(), name));
        }
        seen.insert(name);
        match namespace_of(name) {
            Some("Net") if is_true(spec, "hostNetwork") => {
                errors.push(invalid(field, name, "may not be specified when 'hostNetwork' is true"));
            }
            Some("IPC") if is_true(spec, "hostIPC") => {
                errors.push(invalid(field, name, "may not be specified when 'hostIPC' is true"));
            }
            _ => {}
        }
    }
}

/// Matches `IsValidSysctlName`.
fn is_sysctl(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_end) && part.ends_with(is_end) && part.chars().all(|c| is_end(c) || matches!(c, '-' | '_'))
    };
    name.len() <= SYSCTL_LENGTH && name.split(['.', '/']).all(is_part)
}

/// The kernel's namespace of a setting. Matches `GetNamespace` of k8s.io/component-helpers `node/util/sysctl`.
fn namespace_of(name: &str) -> Option<&'static str> {
    const IPC: [&str; 10] = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ];
    let name = normalized(name);
    let name = name.split('*').next().unwrap_or_default();
    if IPC.contains(&name) || name.starts_with("fs.mqueue.") {
        return Some("IPC");
    }
    name.starts_with("net.").then_some("Net")
}

/// A name with dots between its parts: if a slash comes first, slashes are separators and dots are not. Matches `NormalizeName`.
fn normalized(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(first) if name[first..].starts_with('/') => name
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
        _ => name.to_owned(),
    }
}
