//! Validation of what depends on a Pod's operating system.
//!
//! Guarantees: see [`super`]. Matches `validateWindowsSecurityContextOptions`, `validateWindowsHostProcessPod`, `validateOS`,
//! `validateLinux` and `validateWindows` of k8s.io/kubernetes `pkg/apis/core/validation/validation.go`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::containers_with_paths;
use crate::kinds::fields::{
    forbidden, invalid, invalid_json, is_true, list, not_supported, required, subdomain_errors, text,
};

/// The largest credential specification, in bytes.
const CREDENTIALS: usize = 64 << 10;
const DOMAIN: usize = 256;
const USER: usize = 104;

/// Validates the options of a security context.
pub(super) fn options(options: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        let field = format!("{path}.gmsaCredentialSpecName");
        errors.extend(subdomain_errors(name).iter().map(|detail| invalid_json(field.as_str(), name, detail)));
    }
    if let Some(specification) = options["gmsaCredentialSpec"].as_str() {
        let field = format!("{path}.gmsaCredentialSpec");
        if specification.is_empty() {
            errors.push(invalid_json(field, "", "gmsaCredentialSpec cannot be an empty string"));
        } else if specification.len() > CREDENTIALS {
            let detail = "gmsaCredentialSpec size must be under 64 KiB";
            errors.push(invalid_json(field, specification, detail));
        }
    }
    if let Some(name) = options["runAsUserName"].as_str() {
        let field = format!("{path}.runAsUserName");
        errors.extend(user_name_errors(name).iter().map(|detail| invalid_json(field.as_str(), name, detail)));
    }
}

fn user_name_errors(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return vec!["runAsUserName cannot contain more than one backslash".to_owned()],
    };
    let mut errors = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN) {
        errors.push(format!("runAsUserName's Domain length must be under {DOMAIN} characters"));
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_dns(domain)) {
        errors.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        errors.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER {
        errors.push(format!("runAsUserName's User length must not be longer than {USER} characters"));
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        errors.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        errors.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]".to_owned());
    }
    errors
}

fn is_net_bios(domain: &str) -> bool {
    let is_sound = |c: char| !matches!(c, '\\' | '/' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    (1..=15).contains(&domain.chars().count()) && domain.chars().all(is_sound) && !domain.starts_with('.')
}

fn is_dns(domain: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    domain.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| is_end(c) || c == '-')
            && label.starts_with(is_end)
            && label.ends_with(is_end)
    })
}

/// If one container is a process of the host, all are, and the Pod is in the host's network.
pub(super) fn host_processes(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let of = |context: &Value| context["windowsOptions"]["hostProcess"].as_bool();
    let of_pod = of(&spec["securityContext"]);
    let (mut all, mut of_host) = (0, 0);
    for (container, at) in containers_with_paths(spec, path) {
        let own = of(&container["securityContext"]);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let detail = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.push(invalid(format!("{at}.securityContext.windowsOptions.hostProcess"), own, &detail));
        }
        all += 1;
        of_host += usize::from(own.or(of_pod) == Some(true));
    }
    if of_host == 0 {
        return;
    }
    if of_host != all {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(invalid(path, "", detail));
    }
    if !is_true(spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(invalid(format!("{path}.hostNetwork"), false, detail));
    }
}

/// The fields of a security context that Windows does not have.
const OF_POD: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
const OF_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates `os`, and the fields that it excludes.
pub(super) fn operating_system(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if spec["os"].is_null() {
        return;
    }
    match text(spec, "os.name") {
        "" => errors.push(required(format!("{path}.os.name"), "")),
        "linux" => {
            let detail = "windows options cannot be set for a linux pod";
            let own = std::iter::once((spec, path.to_owned()));
            for (object, at) in own.chain(containers_with_paths(spec, path)) {
                if !object["securityContext"]["windowsOptions"].is_null() {
                    errors.push(forbidden(format!("{at}.securityContext.windowsOptions"), detail));
                }
            }
        }
        "windows" => {
            let detail = "cannot be set for a windows pod";
            let mut exclude = |object: &Value, at: &str, names: &[&str]| {
                let is_set = |name: &&&str| match &object[**name] {
                    Value::Null | Value::Bool(false) if name.starts_with("host") && **name != "hostUsers" => false,
                    Value::Array(items) => !items.is_empty(),
                    other => !other.is_null(),
                };
                errors.extend(names.iter().filter(is_set).map(|name| forbidden(format!("{at}.{name}"), detail)));
            };
            exclude(&spec["securityContext"], &format!("{path}.securityContext"), &OF_POD);
            exclude(spec, path, &["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"]);
            for (container, at) in containers_with_paths(spec, path) {
                exclude(&container["securityContext"], &format!("{at}.securityContext"), &OF_CONTAINER);
            }
        }
        other => errors.push(not_supported(format!("{path}.os"), other, &["linux", "windows"])),
    }
}

/// A Pod with users of its own shares no other namespace of the host.
pub(super) fn host_users(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if spec["hostUsers"] != false {
        return;
    }
    let detail = "when `hostUsers` is false";
    for (name, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if is_true(spec, name) {
            errors.push(forbidden(format!("{path}.{shown}"), detail));
        }
    }
    for (container, at) in containers_with_paths(spec, path) {
        if !list(container, "volumeDevices").is_empty() {
            errors.push(forbidden(format!("{at}.volumeDevices"), detail));
        }
    }
}
