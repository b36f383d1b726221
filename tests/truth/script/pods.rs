//! Pods as Jobs need them: defaults, phases, logs.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![scenario("pods", pods()), scenario("pod-fields", fields())]
}

fn pods() -> Vec<Step> {
    let set = |sentence: &str, status: Value| {
        patch(STRATEGIC, format!("{PODS}/a/status"), &json!({"status": status})).named(sentence)
    };
    vec![
        post(PODS, &pod("a")).named("a Pod with its defaults"),
        get(format!("{PODS}/a")).named("it is got as it was created"),
        set(
            "it is scheduled",
            json!({"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}),
        ),
        set(
            "it is running",
            json!({"phase": "Running", "startTime": "2020-01-01T00:00:00Z", "podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:01Z"}],
            "containerStatuses": [{"name": "c", "image": "busybox", "imageID": "x", "ready": true, "restartCount": 0, "started": true,
                "state": {"running": {"startedAt": "2020-01-01T00:00:01Z"}}}]}),
        ),
        set(
            "a condition is merged by its type",
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}),
        ),
        set(
            "it has succeeded",
            json!({"phase": "Succeeded", "containerStatuses": [{"name": "c", "image": "busybox", "imageID": "x", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}),
        ),
        get(format!("{PODS}?fieldSelector=status.phase%3DSucceeded")).named("by phase"),
        get(format!("{PODS}?fieldSelector=status.phase%21%3DSucceeded")).named("by not the phase"),
        get(format!("{PODS}?fieldSelector=spec.nodeName%3D")).named("by no node"),
        get(format!("{PODS}?fieldSelector=spec.restartPolicy%3DAlways,metadata.name%3Da"))
            .named("by restart policy and name"),
        get(format!("{PODS}/nobody/log")).named("the log of an absent object"),
        patch(MERGE, format!("{PODS}/a"), &json!({"spec": {"containers": [{"name": "c", "image": "other"}]}}))
            .named("a merge patch that changes more than the image"),
        patch(STRATEGIC, format!("{PODS}/a"), &json!({"spec": {"containers": [{"name": "c", "image": "other"}]}}))
            .named("a strategic patch changes the image"),
        patch(STRATEGIC, format!("{PODS}/a"), &json!({"spec": {"containers": [{"name": "d", "image": "other"}]}}))
            .named("a container cannot be added"),
        patch(STRATEGIC, format!("{PODS}/a"), &json!({"spec": {"activeDeadlineSeconds": 10}}))
            .named("a deadline can be set"),
        patch(STRATEGIC, format!("{PODS}/a"), &json!({"spec": {"activeDeadlineSeconds": 20}})).named("but not raised"),
        patch(STRATEGIC, format!("{PODS}/a"), &json!({"spec": {"nodeName": "n"}})).named("a node cannot be set"),
        patch(
            STRATEGIC,
            format!("{PODS}/a"),
            &json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["batch.kubernetes.io/job-tracking"]}}),
        )
        .named("labels and finalizers can be"),
        delete(format!("{PODS}/a?gracePeriodSeconds=0")).named("it is deleted, but for its finalizer"),
        patch(MERGE, format!("{PODS}/a"), &json!({"metadata": {"finalizers": null}}))
            .named("it is gone with the finalizer"),
        get(format!("{PODS}/a")).named("not found"),
    ]
}

fn fields() -> Vec<Step> {
    let dry = |sentence: &str, pointer: &str, value: Value| {
        post(format!("{PODS}?dryRun=All"), &pod("a").with(pointer, value)).named(sentence)
    };
    vec![
        post(PODS, &pod("a").without("/spec")).named("no spec"),
        dry("no containers", "/spec/containers", json!([])),
        dry("a container without a name", "/spec/containers/0", json!({"image": "x"})),
        dry("a container without an image", "/spec/containers/0", json!({"name": "x"})),
        dry("a restart policy that does not exist", "/spec/restartPolicy", json!("Perhaps")),
        dry("the restart policy Never", "/spec/restartPolicy", json!("Never")),
        dry("a container whose name has an underscore", "/spec/containers/0/name", json!("a_b")),
        dry("a status in a create is dropped", "/status", json!({"phase": "Running"})),
        dry("tolerations of one's own", "/spec/tolerations", json!([{"operator": "Exists"}])),
        dry("a priority class that does not exist", "/spec/priorityClassName", json!("none")),
        dry("a priority class of the system", "/spec/priorityClassName", json!("system-node-critical")),
        dry(
            "requests and limits that are equal",
            "/spec/containers/0/resources",
            json!({"limits": {"cpu": "1", "memory": "1Gi"}}),
        ),
        dry("requests below limits", "/spec/containers/0/resources", json!({"requests": {"cpu": "0.1"}})),
        dry("on a node", "/spec/nodeName", json!("n")),
        dry("a host name in error", "/spec/hostname", json!("A_B")),
        dry("a pod of a job", "/metadata/labels", json!({"batch.kubernetes.io/job-name": "x", "job-name": "x"})),
    ]
}
