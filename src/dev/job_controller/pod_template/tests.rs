#![allow(clippy::unwrap_used)]

use super::*;
use crate::api::{Interner, Object as _};

fn job(name: &str) -> Job {
    let object = json!({
        "metadata": { "name": name, "namespace": "n", "uid": "u", "annotations": {
            DURATION_ANNOTATION: "9s", OUTCOME_ANNOTATION: "fail",
        }},
        "spec": { "template": {
            "metadata": { "labels": { "a": "b" }, "annotations": { OUTCOME_ANNOTATION: "succeed" } },
            "spec": { "containers": [{ "name": "c", "fieldFromTheFuture": 1 }] },
        }},
    });
    Job::decode(&object.to_string(), &Interner::default()).unwrap()
}

#[test]
fn a_pod_has_everything_of_the_template_and_a_node() {
    let pod = pod_from_template(&job("j"), None);
    assert_eq!(pod["spec"], json!({ "containers": [{ "name": "c", "fieldFromTheFuture": 1 }], "nodeName": "dev" }));
    assert_eq!(pod["metadata"]["labels"], json!({ "a": "b" }));
    let annotations = json!({ DURATION_ANNOTATION: "9s", OUTCOME_ANNOTATION: "succeed" });
    assert_eq!(pod["metadata"]["annotations"], annotations, "the template's own come first");
    assert_eq!(pod["metadata"]["generateName"], "j-");
    assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "u");
}

#[test]
fn a_pod_of_an_indexed_job_carries_its_index() {
    let long = "j".repeat(63);
    let pod = pod_from_template(&job(&long), Some(12));
    assert_eq!(pod["metadata"]["labels"][INDEX_ANNOTATION], "12");
    assert_eq!(pod["metadata"]["annotations"][INDEX_ANNOTATION], "12");
    assert_eq!(pod["spec"]["hostname"], format!("{long}-12"));
    assert_eq!(pod["metadata"]["generateName"], format!("{}-12-", "j".repeat(54)));
}
