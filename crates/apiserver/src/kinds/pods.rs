//! Pods of core/v1.
//!
//! Guarantees: a new Pod is Pending and has a quality of service class. It also has what kube-apiserver's default admission
//! plugins set: priority 0 and tolerations of nodes that are not ready. A Pod's spec is mostly immutable. Matches
//! k8s.io/kubernetes `pkg/registry/core/pod/strategy.go`, `ValidatePodUpdate`, and the plugins Priority and
//! DefaultTolerationSeconds. The diff that upstream prints with a rejected update is omitted.

use std::collections::HashSet;

use apimachinery::field::FieldError;
use apimachinery::steps;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::fields::{at, child, copy, default, forbidden, invalid, list, number, text};
use super::{Kind, columns, defaults, keep_status_and_count, name_warning, pod_columns, pod_spec, quantity};
use crate::registry::Column;

pub(super) struct Pods;

impl Kind for Pods {
    const ROOT: &'static str = "core.v1.Pod";
    const COLUMNS: &'static [Column] = &columns::PODS;
    const RETURNS_DELETED_OBJECT: bool = true;

    fn set_defaults(&self, object: &mut Value) {
        defaults::set_pod(object);
    }

    fn prepare_for_create(&self, object: &mut Value) {
        pod_spec::drop_disabled(object);
        admit(object);
        let class = qos_class(object);
        object["status"] = json!({"phase": "Pending", "qosClass": class});
        child(object, "metadata")["generation"] = 1.into();
        if !list(object, "spec.schedulingGates").is_empty() {
            object["status"]["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": null,
                "lastTransitionTime": text(object, "metadata.creationTimestamp"),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        pod_spec::validate_pod(object)
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        keep_status_and_count(object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        validate_update(&object["spec"], &old["spec"])
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "spec");
        for name in ["ownerReferences", "deletionTimestamp"] {
            copy(child(object, "metadata"), &old["metadata"], name);
        }
        if text(object, "status.qosClass").is_empty() {
            copy(child(object, "status"), &old["status"], "qosClass");
        }
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let name = name_warning(object, "the Pod's hostname");
        name.into_iter().chain(pod_spec::warnings(object, "")).collect()
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        pod_columns::cells(object, now)
    }

    fn row_conditions(&self, object: &Value) -> Value {
        pod_columns::row_conditions(object)
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        let mut fields: Vec<(&'static str, String)> = [
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.nominatedNodeName",
        ]
        .into_iter()
        .map(|path| (path, text(object, path).to_owned()))
        .collect();
        let host_network = at(object, "spec.hostNetwork") == &Value::Bool(true);
        let ip = list(object, "status.podIPs").first().map_or("", |ip| text(ip, "ip"));
        fields.push(("spec.hostNetwork", host_network.to_string()));
        fields.push(("status.podIP", ip.to_owned()));
        fields
    }

    fn is_atomic_list(&self, path: &[&str]) -> bool {
        path == ["status", "hostIPs"]
    }

    /// Matches `CheckGracefulDelete`.
    fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        let wanted = requested.or_else(|| number(object, "spec.terminationGracePeriodSeconds")).unwrap_or(0);
        let over = matches!(text(object, "status.phase"), "Succeeded" | "Failed");
        let unscheduled = text(object, "spec.nodeName").is_empty();
        Some(if over || unscheduled {
            0
        } else if wanted < 0 {
            1
        } else {
            wanted
        })
    }
}

/// Sets what the default admission plugins set.
fn admit(pod: &mut Value) {
    let spec = child(pod, "spec");
    // The two classes that every cluster has; no other class is known here.
    let priority = match text(spec, "priorityClassName") {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => 0,
    };
    default(spec, "priority", priority);
    default(spec, "preemptionPolicy", "PreemptLowerPriority");
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list(spec, "tolerations").iter().any(|toleration| {
            let (own, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (own == key || own.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            let mut tolerations = list(spec, "tolerations").to_vec();
            let new = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            tolerations.push(new);
            spec["tolerations"] = tolerations.into();
        }
    }
}

/// Matches `qos.ComputePodQOS` for Pods whose resources are on their containers.
fn qos_class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let mut containers = list(spec, "containers").iter().chain(list(spec, "initContainers")).peekable();
    let amount = |resources: &Value, list: &str, name: &str| {
        resources[list][name].as_str().and_then(quantity::parse).filter(|quantity| quantity.sign().is_gt())
    };
    let mut guaranteed = containers.peek().is_some();
    let mut best_effort = true;
    for container in containers {
        for name in ["cpu", "memory"] {
            let (request, limit) =
                (amount(&container["resources"], "requests", name), amount(&container["resources"], "limits", name));
            best_effort &= request.is_none() && limit.is_none();
            let both = request.zip(limit);
            guaranteed &= both.is_some_and(|(request, limit)| request.compare(&limit).is_eq());
        }
    }
    match (best_effort, guaranteed) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

/// Matches `ValidatePodUpdate`.
fn validate_update(spec: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = pod_spec::validate(spec, "spec");
    for name in ["containers", "initContainers"] {
        if list(spec, name).len() != list(old, name).len() {
            errors.push(forbidden(format!("spec.{name}"), "pod updates may not add or remove containers"));
            return errors;
        }
    }
    let deadline = number(spec, "activeDeadlineSeconds");
    if number(old, "activeDeadlineSeconds").is_some_and(|before| deadline.is_none_or(|new| new > before)) {
        if let Some(new) = deadline {
            let detail = "must be less than or equal to previous value";
            errors.push(invalid("spec.activeDeadlineSeconds", new, detail));
        } else {
            let detail = "must not update from a positive integer to nil value";
            errors.push(invalid("spec.activeDeadlineSeconds", Value::Null, detail));
        }
        return errors;
    }
    let tolerations: HashSet<&Value> = list(spec, "tolerations").iter().collect();
    let kept = steps::each(list(old, "tolerations").iter()).all(|toleration| tolerations.contains(toleration));
    if !kept {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(forbidden("spec.tolerations", detail));
        return errors;
    }
    let mut expected = old.clone();
    for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        copy(&mut expected, spec, name);
    }
    for name in ["containers", "initContainers"] {
        let Some(containers) = expected.get_mut(name).and_then(Value::as_array_mut) else { continue };
        for (container, new) in containers.iter_mut().zip(list(spec, name)) {
            copy(container, new, "image");
        }
    }
    if number(old, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        copy(&mut expected, spec, "terminationGracePeriodSeconds");
    }
    if &expected != spec {
        let detail = "pod updates may not change fields other than \
                      `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` \
                      (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 \
                      if it was previously negative)\n";
        errors.push(forbidden("spec", detail));
    }
    errors
}
