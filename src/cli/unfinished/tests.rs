#![allow(clippy::unwrap_used)]

use apiserver::merge_patch;
use serde_json::{Value, json};

use super::*;

fn job(change: &Value) -> batch::Job {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "nightly-1", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": []}}},
    });
    merge_patch(&mut job, change);
    serde_json::from_value(job).unwrap()
}

fn pod(name: &str, phase: &str, status: &Value) -> Pod {
    let mut pod = json!({"metadata": {"name": name, "namespace": "shop"}, "status": {"phase": phase}});
    merge_patch(&mut pod, status);
    serde_json::from_value(pod).unwrap()
}

fn containers(states: &[(&str, Value)]) -> Value {
    let one = |(name, state): &(&str, Value)| json!({"name": name, "state": state, "image": "i", "imageID": "", "ready": false, "restartCount": 0});
    json!({"status": {"containerStatuses": states.iter().map(one).collect::<Vec<_>>()}})
}

/// A sentence, the Job, its Pods; why, and what is described.
type Row = (&'static str, Value, Vec<Pod>, Option<(&'static str, &'static str)>);

#[test]
fn reason_that_keeps_a_job_from_ending_is_found() {
    let none = json!({});
    let running = || ("main", json!({"running": {"startedAt": "2026-11-21T02:00:01Z"}}));
    let ended = || ("main", json!({"terminated": {"exitCode": 0}}));
    let waits =
        |reason: &str| ("main", json!({"waiting": {"reason": reason, "message": "Back-off pulling image \"i\""}}));
    let runs = || pod("p", "Running", &containers(&[running()]));
    let unscheduled = json!({"status": {"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available.",
    }]}});
    let sidecar = containers(&[ended(), ("proxy", json!({"running": {}}))]);
    let going = json!({"metadata": {"deletionTimestamp": "2026-11-21T02:00:09Z"}});
    let held = json!({"metadata": {"deletionTimestamp": "2026-11-21T02:00:09Z", "finalizers": ["example.com/a"]}});
    let rows: [Row; 15] = [
        ("it runs", none.clone(), vec![runs()], None),
        (
            "a container is about to start",
            none.clone(),
            vec![pod("p", "Pending", &containers(&[waits("ContainerCreating")]))],
            None,
        ),
        (
            "a finalizer",
            held,
            vec![],
            Some(("It is being deleted, and waits for its finalizers: example.com/a.", "job nightly-1")),
        ),
        (
            "another manager",
            json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}),
            vec![],
            Some((
                "kueue.x-k8s.io/multikueue runs it (spec.managedBy), and not the cluster's Job controller.",
                "job nightly-1",
            )),
        ),
        ("the usual manager by name", json!({"spec": {"managedBy": JOB_CONTROLLER}}), vec![runs()], None),
        (
            "suspended",
            json!({"spec": {"suspend": true}}),
            vec![],
            Some(("It is suspended (spec.suspend), so it has no Pods.", "job nightly-1")),
        ),
        (
            "no parallelism",
            json!({"spec": {"parallelism": 0}}),
            vec![],
            Some(("Its spec.parallelism is 0, so it has no Pods.", "job nightly-1")),
        ),
        ("no Pod", none.clone(), vec![], Some(("It has no Pod that runs or waits.", "job nightly-1"))),
        (
            "only Pods that failed",
            none.clone(),
            vec![pod("p", "Failed", &none)],
            Some(("It has no Pod that runs or waits.", "job nightly-1")),
        ),
        (
            "no node",
            none.clone(),
            vec![pod("p", "Pending", &unscheduled)],
            Some(("Pod p has no node: Unschedulable: 0/3 nodes are available.", "pod p")),
        ),
        (
            "no image",
            none.clone(),
            vec![pod("p", "Pending", &containers(&[waits("ImagePullBackOff")]))],
            Some(("Pod p, container main waits: ImagePullBackOff: Back-off pulling image \"i\".", "pod p")),
        ),
        (
            "a sidecar",
            none.clone(),
            vec![pod("p", "Running", &sidecar)],
            Some(("Pod p: container main has ended, and container proxy still runs.", "pod p")),
        ),
        (
            "a node that is gone",
            none.clone(),
            vec![pod("p", "Running", &going)],
            Some(("Pod p is being deleted, and its node has not ended it yet.", "pod p")),
        ),
        (
            "the second Pod",
            none.clone(),
            vec![pod("q", "Failed", &none), runs(), pod("p", "Pending", &unscheduled)],
            Some(("Pod p has no node: Unschedulable: 0/3 nodes are available.", "pod p")),
        ),
        (
            "suspended before its Pods",
            json!({"spec": {"suspend": true}}),
            vec![pod("p", "Pending", &unscheduled)],
            Some(("It is suspended (spec.suspend), so it has no Pods.", "job nightly-1")),
        ),
    ];
    for (sentence, change, pods, want) in rows {
        let got = Unfinished::of("job", &job(&change), &pods);
        let want = want.map(|(why, what)| Unfinished {
            job: "nightly-1".to_owned(),
            why: why.to_owned(),
            command: format!("kubectl describe -n shop {what}"),
        });
        assert_eq!(got, want, "{sentence}");
    }
}

#[test]
fn pod_that_is_its_own_is_described_itself() {
    let gone = json!({"metadata": {"deletionTimestamp": "2026-11-21T02:00:09Z", "finalizers": ["example.com/a"]}});
    let waits = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}});
    let rows = [
        ("a finalizer", &gone, "It is being deleted, and waits for its finalizers: example.com/a."),
        ("no node", &waits, "Pod p has no node: Unschedulable."),
    ];
    for (sentence, change, why) in rows {
        let (job, pods) = as_job(pod("p", "Pending", change));
        let want = Unfinished {
            job: "p".to_owned(),
            why: why.to_owned(),
            command: "kubectl describe -n shop pod p".to_owned(),
        };
        assert_eq!(Unfinished::of("pod", &job, &pods), Some(want), "{sentence}");
    }
}
