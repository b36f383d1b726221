//! Makes a Pod from a Job's template. Pure.
//!
//! Guarantees: the Pod has everything in the template. It also has the Job's annotations for the simulation, unless the
//! template has its own.
//!
//! Matches `GetPodFromTemplate` in upstream `pkg/controller/controller_utils.go` and `podGenerateNameWithIndex` in
//! `pkg/controller/job/indexed_job_utils.go`.

use serde_json::{Map, Value, json};

use crate::dev::kubelet::NODE;
use crate::dev::objects::{DURATION_ANNOTATION, INDEX_ANNOTATION, Job, OUTCOME_ANNOTATION};

/// The longest prefix of a generated name, in bytes. Matches apiserver `names.MaxGeneratedNameLength`.
const MAX_PREFIX: usize = 58;

/// The request body that creates a Pod of `job`; `index` is its completion index in an Indexed Job.
pub fn pod_from_template(job: &Job, index: Option<u32>) -> Value {
    let template = &job.spec.template;
    let map = |pointer: &str| template.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut labels, mut annotations) = (map("/metadata/labels"), Map::new());
    for key in [DURATION_ANNOTATION, OUTCOME_ANNOTATION] {
        annotations.extend(job.identity.annotation(key).map(|value| (key.to_owned(), value.into())));
    }
    annotations.extend(map("/metadata/annotations"));
    let mut spec = Value::Object(map("/spec"));
    // In place of a scheduler: there is one node.
    spec["nodeName"] = NODE.into();
    if let Some(index) = index {
        labels.insert(INDEX_ANNOTATION.to_owned(), index.to_string().into());
        annotations.insert(INDEX_ANNOTATION.to_owned(), index.to_string().into());
        spec["hostname"] = format!("{}-{index}", job.identity.name.name).into();
    }
    let mut metadata = json!({
        "generateName": prefix(&job.identity.name.name, index),
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": &*job.identity.name.name,
            "uid": job.identity.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    if !annotations.is_empty() {
        metadata["annotations"] = annotations.into();
    }
    if let Some(finalizers) = template.pointer("/metadata/finalizers") {
        metadata["finalizers"] = finalizers.clone();
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

fn prefix(job: &str, index: Option<u32>) -> String {
    let suffix = index.map_or_else(|| "-".to_owned(), |index| format!("-{index}-"));
    let room = if index.is_some() { MAX_PREFIX - suffix.len() } else { job.len() };
    // Names are ASCII; the server truncates a name that is still too long.
    format!("{}{suffix}", job.get(..room.min(job.len())).unwrap_or(job))
}

#[cfg(test)]
mod tests;
