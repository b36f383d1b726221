//! The fields of a Pod that kube-apiserver drops, since their feature gates are off by default.
//!
//! Guarantees: matches `dropDisabledFields` of k8s.io/kubernetes `pkg/api/pod/util.go` for an object that has none of them yet.

use serde_json::Value;

/// Annotations of old releases, which are dropped, too. Matches `DropInitContainerAnnotations`.
const ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// The sources of a projected volume, as upstream looks at them.
const PROJECTED: [&str; 6] =
    ["secret", "downwardAPI", "configMap", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];

/// Drops the fields and annotations from a Pod or a Pod template.
pub(in crate::kinds) fn drop(pod: &mut Value) {
    for annotation in ANNOTATIONS {
        remove(pod, "metadata.annotations", annotation);
    }
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    remove(spec, "", "schedulingGroup");
    remove(spec, "", "evictionResponders");
    each(spec, "volumes", of_volume);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, of_container);
    }
}

/// Removes a field of the object at a path of fields.
fn remove(object: &mut Value, path: &str, name: &str) {
    let pointer = if path.is_empty() { String::new() } else { format!("/{}", path.replace('.', "/")) };
    if let Some(fields) = object.pointer_mut(&pointer).and_then(Value::as_object_mut) {
        fields.remove(name);
    }
}

fn each(object: &mut Value, list: &str, mut apply: impl FnMut(&mut Value)) {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().for_each(&mut apply);
}

fn of_volume(volume: &mut Value) {
    remove(volume, "emptyDir", "mode");
    if let Some(source) = first(volume, &["secret", "configMap", "downwardAPI", "projected"]) {
        remove(source, "", "defaultUser");
        each(source, "items", |item| remove(item, "", "user"));
        each(source, "sources", |one| {
            if let Some(source) = first(one, &PROJECTED) {
                remove(source, "", "user");
                each(source, "items", |item| remove(item, "", "user"));
            }
        });
    }
}

/// The first of these sources that there is. Upstream leaves the others alone; more than one is an error.
fn first<'a>(object: &'a mut Value, names: &[&str]) -> Option<&'a mut Value> {
    let name = names.iter().find(|name| !object[**name].is_null())?;
    object.get_mut(*name)
}

fn of_container(container: &mut Value) {
    each(container, "volumeMounts", |mount| remove(mount, "", "bindMountOptions"));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        remove(container, &format!("{probe}.httpGet"), "protocol");
        remove(container, &format!("{probe}.grpc"), "mode");
    }
    for handler in ["postStart", "preStop"] {
        remove(container, &format!("lifecycle.{handler}.httpGet"), "protocol");
    }
    if container.pointer("/lifecycle/stopSignal").is_some() {
        remove(container, "lifecycle", "stopSignal");
        if container["lifecycle"].as_object().is_some_and(serde_json::Map::is_empty) {
            remove(container, "", "lifecycle");
        }
    }
}
