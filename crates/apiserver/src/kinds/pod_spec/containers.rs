//! Validation of a Pod's containers, init containers and ephemeral containers.
//!
//! Guarantees: see [`super`]. Matches k8s.io/kubernetes `pkg/apis/core/validation/validation.go`, `validateContainers`,
//! `validateInitContainers`, `validateEphemeralContainers` and what they call.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::field::FieldError;
use serde_json::Value;

use super::handlers::{self, port_error, port_name_errors};
use super::paths::{local_descending, no_backsteps};
use super::{env, resources, security};
use crate::kinds::fields::{
    dns_label_errors, duplicate, each_message, forbidden, invalid, invalid_json, is_true, list, not_found,
    not_supported, number, one_of_if_set, required, text, too_many,
};

const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// What a Pod's containers are judged by.
pub(super) struct Surroundings<'a> {
    pub spec: &'a Value,
    /// The volumes that can be mounted, by name.
    pub volumes: BTreeMap<&'a str, &'a Value>,
    /// The names of the Pod's ResourceClaims.
    pub claims: BTreeSet<&'a str>,
}

impl Surroundings<'_> {
    fn grace(&self) -> Option<i64> {
        number(self.spec, "terminationGracePeriodSeconds")
    }
}

/// Validates the containers of all three kinds.
pub(super) fn validate(pod: &Surroundings, path: &str, errors: &mut Vec<FieldError>) {
    let containers = list(pod.spec, "containers");
    let at = format!("{path}.containers");
    if containers.is_empty() {
        errors.push(required(at.as_str(), ""));
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = format!("{at}[{index}]");
        validate_common(container, pod, &at, errors);
        if !names.insert(text(container, "name")) {
            errors.push(duplicate(format!("{at}.name"), text(container, "name")));
        }
        handlers::validate(container, pod.grace(), &at, errors);
        restart_policy(container, false, &at, errors);
    }
    check_host_ports(containers, &at, errors);
    for (index, container) in list(pod.spec, "initContainers").iter().enumerate() {
        validate_init(container, pod, &mut names, &format!("{path}.initContainers[{index}]"), errors);
        // Upstream compares an init container with itself alone, and takes it for the first of the list.
        check_host_ports(std::slice::from_ref(container), &format!("{path}.initContainers"), errors);
    }
    names.extend(list(pod.spec, "initContainers").iter().map(|container| text(container, "name")));
    validate_ephemeral(pod, names, path, errors);
}

fn validate_init<'a>(
    container: &'a Value,
    pod: &Surroundings,
    names: &mut BTreeSet<&'a str>,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    validate_common(container, pod, at, errors);
    restart_policy(container, true, at, errors);
    let name = text(container, "name");
    if names.contains(name) {
        errors.push(duplicate(format!("{at}.name"), name));
    } else if !name.is_empty() {
        names.insert(name);
    }
    if text(container, "restartPolicy") == "Always" {
        handlers::validate(container, pod.grace(), at, errors);
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if !container[field].is_null() {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.push(forbidden(format!("{at}.{field}"), detail));
        }
    }
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        if text(policy, "restartPolicy") == "RestartContainer" {
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            let field = format!("{at}.resizePolicy[{index}].restartPolicy");
            errors.push(invalid_json(field, "RestartContainer", detail));
        }
    }
}

fn validate_ephemeral<'a>(
    pod: &Surroundings<'a>,
    mut names: BTreeSet<&'a str>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    const NOT_ALLOWED: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let others = names.clone();
    for (index, container) in list(pod.spec, "ephemeralContainers").iter().enumerate() {
        let at = format!("{path}.ephemeralContainers[{index}]");
        validate_common(container, pod, &at, errors);
        image_without_blanks(container, &at, errors);
        let (name, target) = (text(container, "name"), text(container, "targetContainerName"));
        if !names.insert(name) {
            errors.push(duplicate(format!("{at}.name"), name));
        }
        if !target.is_empty() && !others.contains(target) {
            errors.push(not_found(format!("{at}.targetContainerName"), target));
        }
        for field in NOT_ALLOWED {
            let is_set = match &container[field] {
                Value::Null => false,
                Value::Object(fields) => field != "resources" || !fields.is_empty(),
                _ => true,
            };
            if is_set {
                errors.push(forbidden(format!("{at}.{field}"), "cannot be set for an Ephemeral Container"));
            }
        }
        for (n, mount) in list(container, "volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, field).is_empty() {
                    let detail = "cannot be set for an Ephemeral Container";
                    errors.push(forbidden(format!("{at}.volumeMounts[{n}].{field}"), detail));
                }
            }
        }
    }
}

/// A rule for Pods and not for templates. Matches `validateContainerOnlyForPod`.
pub(super) fn image_without_blanks(container: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let image = text(container, "image");
    if image.trim() != image {
        errors.push(invalid(format!("{at}.image"), image, "must not have leading or trailing whitespace"));
    }
}

/// Matches `validateContainerCommon`.
fn validate_common(container: &Value, pod: &Surroundings, path: &str, errors: &mut Vec<FieldError>) {
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
    env::validate(list(container, "env"), &format!("{path}.env"), errors);
    env::validate_from(list(container, "envFrom"), &format!("{path}.envFrom"), errors);
    validate_mounts(container, &pod.volumes, &format!("{path}.volumeMounts"), errors);
    validate_devices(container, &pod.volumes, &format!("{path}.volumeDevices"), errors);
    pull_policy(errors, container, path, "imagePullPolicy");
    resources::of_container(&container["resources"], &pod.claims, &format!("{path}.resources"), errors);
    let policies = list(container, "resizePolicy");
    resources::resize_policy(policies, text(pod.spec, "restartPolicy"), &format!("{path}.resizePolicy"), errors);
    let shares_users = pod.spec["hostUsers"] != false;
    security::of_container(&container["securityContext"], shares_users, &format!("{path}.securityContext"), errors);
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

/// Matches `validatePullPolicy`.
pub(super) fn pull_policy(errors: &mut Vec<FieldError>, object: &Value, path: &str, name: &str) {
    one_of(object, path, name, &PULL_POLICIES, errors);
}

/// Matches `validateContainerRestartPolicy`, and `validateInitContainerRestartPolicy`, which looks at no rules without a policy.
fn restart_policy(container: &Value, is_init: bool, path: &str, errors: &mut Vec<FieldError>) {
    let rules = list(container, "restartPolicyRules");
    one_of_if_set(errors, container, path, "restartPolicy", &RESTART_POLICIES);
    if container["restartPolicy"].is_null() && !rules.is_empty() {
        let detail = "must specify restartPolicy when restart rules are used";
        errors.push(required(format!("{path}.restartPolicy"), detail));
    }
    if is_init && container["restartPolicy"].is_null() {
        return;
    }
    if rules.len() > 20 {
        errors.push(too_many(format!("{path}.restartPolicyRules"), rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = format!("{path}.restartPolicyRules[{index}]");
        let (action, codes) = (text(rule, "action"), &rule["exitCodes"]);
        let actions = ["Restart", "RestartAllContainers"];
        if !actions.contains(&action) {
            errors.push(not_supported(format!("{at}.action"), action, &actions));
        }
        if codes.is_null() {
            errors.push(required(format!("{at}.exitCodes"), "must be specified"));
            continue;
        }
        let operator = text(codes, "operator");
        if !["In", "NotIn"].contains(&operator) {
            errors.push(not_supported(format!("{at}.exitCodes.operator"), operator, &["In", "NotIn"]));
        }
        let values = list(codes, "values").len();
        if values > 255 {
            errors.push(too_many(format!("{at}.exitCodes.values"), values, 255));
        }
    }
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
            errors.extend(messages.iter().map(|message| invalid(format!("{at}.name"), name, message)));
        }
        match number(port, "containerPort").unwrap_or(0) {
            0 => errors.push(required(format!("{at}.containerPort"), "")),
            n => errors.extend(port_error(n).map(|detail| invalid(format!("{at}.containerPort"), n, detail))),
        }
        if let Some(n) = number(port, "hostPort").filter(|n| *n != 0) {
            errors.extend(port_error(n).map(|detail| invalid(format!("{at}.hostPort"), n, detail)));
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

/// Matches `ValidateVolumeMounts`. Some errors name the list and not the entry, as upstream's do.
fn validate_mounts(container: &Value, volumes: &BTreeMap<&str, &Value>, path: &str, errors: &mut Vec<FieldError>) {
    let devices = Occupied::of(list(container, "volumeDevices"), "devicePath");
    let mut points = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (name, point) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        }
        if !volumes.contains_key(name) {
            errors.push(not_found(format!("{at}.name"), name));
        }
        if point.is_empty() {
            errors.push(required(format!("{at}.mountPath"), ""));
        }
        if !points.insert(point) {
            errors.push(invalid(format!("{at}.mountPath"), point, "must be unique"));
        }
        if devices.names.contains(name) {
            errors.push(invalid(format!("{at}.name"), name, "must not already exist in volumeDevices"));
        }
        if devices.paths.contains(point) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(invalid(format!("{at}.mountPath"), point, detail));
        }
        let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !sub.is_empty() {
            local_descending(errors, sub, &format!("{path}.subPath"));
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                errors.push(invalid(format!("{at}.subPathExpr"), expression, detail));
            }
            local_descending(errors, expression, &format!("{path}.subPathExpr"));
        }
        let is_privileged = is_true(container, "securityContext.privileged");
        propagation(mount, is_privileged, path, errors);
    }
}

fn propagation(mount: &Value, is_privileged: bool, path: &str, errors: &mut Vec<FieldError>) {
    one_of_if_set(errors, mount, path, "mountPropagation", &["Bidirectional", "HostToContainer", "None"]);
    let propagation = mount["mountPropagation"].as_str();
    if propagation == Some("Bidirectional") && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(forbidden(format!("{path}.mountPropagation"), detail));
    }
    let field = format!("{path}.recursiveReadOnly");
    match mount["recursiveReadOnly"].as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !is_true(mount, "readOnly") {
                errors.push(forbidden(field.as_str(), "may only be specified when readOnly is true"));
            }
            if propagation.is_some_and(|propagation| propagation != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(forbidden(field, detail));
            }
        }
        Some(other) => errors.push(not_supported(field, other, &["Disabled", "Enabled", "IfPossible"])),
    }
}

/// The names and paths of one list, which the other may not have. Of entries with one name, upstream knows the last.
struct Occupied<'a> {
    names: BTreeSet<&'a str>,
    paths: BTreeSet<&'a str>,
}

impl<'a> Occupied<'a> {
    fn of(entries: &'a [Value], path: &str) -> Self {
        let by_name: BTreeMap<&str, &str> =
            entries.iter().map(|entry| (text(entry, "name"), text(entry, path))).collect();
        Self { names: by_name.keys().copied().collect(), paths: by_name.into_values().collect() }
    }
}

/// Matches `ValidateVolumeDevices`.
fn validate_devices(container: &Value, volumes: &BTreeMap<&str, &Value>, path: &str, errors: &mut Vec<FieldError>) {
    let mounts = Occupied::of(list(container, "volumeMounts"), "mountPath");
    let (mut paths, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (name, point) = (text(device, "name"), text(device, "devicePath"));
        let mut wrong_name = |detail: &str| errors.push(invalid(format!("{at}.name"), name, detail));
        if names.contains(name) {
            wrong_name("must be unique");
        }
        if mounts.names.contains(name) {
            wrong_name("must not already exist in volumeMounts");
        }
        match volumes.get(name) {
            Some(volume) if volume["persistentVolumeClaim"].is_null() && volume["ephemeral"].is_null() => {
                wrong_name("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
            }
            Some(_) => {}
            None => errors.push(not_found(format!("{at}.name"), name)),
        }
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else {
            names.insert(name);
        }
        let field = format!("{at}.devicePath");
        if point.is_empty() {
            errors.push(required(field.as_str(), ""));
        }
        if paths.contains(point) {
            errors.push(invalid(field.as_str(), point, "must be unique"));
        }
        let mut steps_back = Vec::new();
        no_backsteps(&mut steps_back, point, "");
        if steps_back.is_empty() {
            paths.insert(point);
        } else {
            errors.push(invalid(field.as_str(), point, "can not contain backsteps ('..')"));
        }
        if mounts.paths.contains(point) {
            errors.push(invalid(field, point, "must not already exist as a path in volumeMounts"));
        }
    }
}
