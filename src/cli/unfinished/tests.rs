#![allow(clippy::unwrap_used)]

use apiserver::merge_patch;
use serde_json::{Value, json};

use super::*;
use crate::cli::explain::tests::instant;

const NOW: &str = "2026-11-21T02:05:00Z";

fn with_pods(job: batch::Job, pods: Vec<Pod>) -> WithPods {
    WithPods { job, pods: Ok(pods) }
}

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
    let rows: Vec<Row> = vec![
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
                "kueue.x-k8s.io/multikueue manages it (spec.managedBy), and not the cluster's Job controller.",
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
            "a Secret that does not exist, by a variable",
            none.clone(),
            vec![pod("p", "Pending", &containers(&[waits("CreateContainerConfigError")]))],
            Some(("Pod p, container main waits: CreateContainerConfigError: Back-off pulling image \"i\".", "pod p")),
        ),
        (
            "a container that starts again and again",
            none.clone(),
            vec![pod("p", "Running", &containers(&[waits("CrashLoopBackOff")]))],
            Some(("Pod p, container main waits: CrashLoopBackOff: Back-off pulling image \"i\".", "pod p")),
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
        let got = Unfinished::of("job", &with_pods(job(&change), pods), None);
        let want = want.map(|(why, what)| Unfinished {
            job: "nightly-1".to_owned(),
            why: why.to_owned(),
            command: format!("kubectl describe -n shop {what}"),
            is_unread: false,
        });
        assert_eq!(got, want, "{sentence}");
    }
}

/// A sentence, the Pod, the Events about it (whether a Warning, reason, message), newest first, the time, and why.
type Start<'a> = (&'a str, Pod, Vec<(bool, &'a str, &'a str)>, Option<&'a str>, Option<&'a str>);

#[test]
fn pod_that_does_not_start_is_told_with_the_event_that_says_why() {
    let creating = containers(&[("main", json!({"waiting": {"reason": "ContainerCreating"}}))]);
    let since = |at: &str, change: &Value| {
        let mut change = change.clone();
        change["status"]["startTime"] = at.into();
        pod("p", "Pending", &change)
    };
    let long = || since("2026-11-21T02:00:00Z", &creating);
    let short = || since("2026-11-21T02:04:30Z", &creating);
    let init = json!({"status": {
        "initContainerStatuses": [{"name": "init", "state": {"running": {}}, "image": "i", "imageID": "", "ready": false, "restartCount": 0}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}, "image": "i", "imageID": "", "ready": false, "restartCount": 0}],
    }});
    let mount = (true, "FailedMount", "MountVolume.SetUp failed for volume \"key\" : secret \"key\" not found");
    let pulling = (false, "Pulling", "Pulling image \"i\"");
    let mounts = "Pod p, container main waits: ContainerCreating, for 5m00s: FailedMount: MountVolume.SetUp failed for volume \"key\" : \
                  secret \"key\" not found.";
    let rows: Vec<Start<'_>> = vec![
        ("a volume cannot be mounted", long(), vec![mount], Some(NOW), Some(mounts)),
        ("an image is pulled since", long(), vec![pulling, mount], Some(NOW), Some(mounts)),
        (
            "a Warning does not wait for a minute",
            short(),
            vec![mount],
            Some(NOW),
            Some(
                "Pod p, container main waits: ContainerCreating: FailedMount: MountVolume.SetUp failed for volume \"key\" : secret \
                 \"key\" not found.",
            ),
        ),
        ("the time is not known", long(), vec![pulling], None, None),
        ("it has just begun", short(), vec![pulling], Some(NOW), None),
        (
            "a large image",
            long(),
            vec![pulling],
            Some(NOW),
            Some("Pod p, container main waits: ContainerCreating, for 5m00s: Pulling: Pulling image \"i\"."),
        ),
        (
            "no Event",
            long(),
            vec![(false, "Scheduled", "Successfully assigned shop/p to node-1")],
            Some(NOW),
            Some("Pod p, container main waits: ContainerCreating, for 5m00s, and no Event says why."),
        ),
        (
            "a node was found after some time",
            long(),
            vec![(true, "FailedScheduling", "0/3 nodes are available")],
            None,
            None,
        ),
        (
            "a node that is gone",
            since("2026-11-21T02:00:00Z", &json!({"spec": {"nodeName": "node-1", "containers": []}})),
            vec![],
            Some(NOW),
            Some("Pod p, node node-1 has not begun with it, for 5m00s, and no Event says why."),
        ),
        (
            "no scheduler",
            since("2026-11-21T02:00:00Z", &json!({})),
            vec![],
            Some(NOW),
            Some("Pod p, no scheduler has given it a node, for 5m00s, and no Event says why."),
        ),
        (
            "an init container runs, and nothing says since when",
            since("2026-11-21T02:00:00Z", &init),
            vec![],
            Some(NOW),
            None,
        ),
        ("it runs", pod("p", "Running", &json!({})), vec![mount], Some(NOW), None),
    ];
    for (sentence, pod, events, now, want) in rows {
        let said = |(_, reason, message): &(bool, &str, &str)| Said {
            time: instant(NOW),
            count: 1,
            reason: (*reason).to_owned(),
            message: (*message).to_owned(),
        };
        let late = Late {
            events: events.iter().map(said).collect(),
            warnings: events.iter().filter(|event| event.0).map(said).collect(),
            now: now.map(instant),
        };
        let got = Unfinished::of("job", &with_pods(job(&json!({})), vec![pod]), Some(&late));
        assert_eq!(got.as_ref().map(|got| &*got.why), want, "{sentence}");
        let command = want.map(|_| "kubectl describe -n shop pod p --context=a".to_owned());
        assert_eq!(got.map(|got| got.with_flags(" --context=a").command), command, "{sentence}");
    }
}

/// A sentence, the init containers and the others, the time; why, and the command.
type Container<'a> = (&'a str, Value, Value, Option<&'a str>, Option<(&'a str, &'a str)>);

#[test]
fn container_that_starts_again_and_init_container_are_told_with_their_logs() {
    let crashed = json!({
        "name": "fetch", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    });
    let unpulled = json!({"name": "fetch", "state": {"waiting": {"reason": "ErrImagePull"}}});
    let init = |started: &str| json!({"name": "fetch", "state": {"running": {"startedAt": started}}});
    let proxy = json!({"name": "proxy", "state": {"running": {"startedAt": "2026-11-21T01:00:00Z"}}});
    let main = json!({"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}});
    let rows: [Container<'_>; 8] = [
        (
            "a container that starts again and again",
            json!([]),
            json!([crashed]),
            None,
            Some((
                "Pod p, container fetch waits: CrashLoopBackOff: back-off 5m0s. Before, it ended: OOMKilled, exit code 137.",
                "kubectl logs -n shop p -c fetch --previous",
            )),
        ),
        (
            "an init container that does",
            json!([crashed]),
            json!([main]),
            None,
            Some((
                "Pod p, init container fetch waits: CrashLoopBackOff: back-off 5m0s. Before, it ended: OOMKilled, exit code 137.",
                "kubectl logs -n shop p -c fetch --previous",
            )),
        ),
        (
            "an init container without its image",
            json!([unpulled]),
            json!([main]),
            None,
            Some(("Pod p, init container fetch waits: ErrImagePull.", "kubectl describe -n shop pod p")),
        ),
        (
            "an init container that runs",
            json!([init("2026-11-21T02:00:00Z")]),
            json!([main]),
            Some(NOW),
            Some((
                "Pod p: init container fetch has been running for 5m00s, and its containers wait for that to end.",
                "kubectl logs -n shop p -c fetch",
            )),
        ),
        (
            "beside a sidecar",
            json!([proxy, init("2026-11-21T02:00:00Z")]),
            json!([main]),
            Some(NOW),
            Some((
                "Pod p: init container fetch has been running for 5m00s, and its containers wait for that to end.",
                "kubectl logs -n shop p -c fetch",
            )),
        ),
        ("a sidecar alone", json!([proxy]), json!([main]), Some(NOW), None),
        ("it has just begun", json!([init("2026-11-21T02:04:30Z")]), json!([main]), Some(NOW), None),
        ("the time is not known", json!([init("2026-11-21T02:00:00Z")]), json!([main]), None, None),
    ];
    for (sentence, init, mains, now, want) in rows {
        let whole = |status: &Value| {
            let mut whole = json!({"image": "i", "imageID": "", "ready": false, "restartCount": 0});
            merge_patch(&mut whole, status);
            whole
        };
        let all = |statuses: &Value| statuses.as_array().unwrap().iter().map(whole).collect::<Vec<_>>();
        let pod = pod(
            "p",
            "Pending",
            &json!({
                "spec": {"containers": [], "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "fetch"}]},
                "status": {"initContainerStatuses": all(&init), "containerStatuses": all(&mains)},
            }),
        );
        let late = Late { events: Vec::new(), warnings: Vec::new(), now: now.map(instant) };
        let got = Unfinished::of("job", &with_pods(job(&json!({})), vec![pod]), Some(&late));
        assert_eq!(got.as_ref().map(|got| (&*got.why, &*got.command)), want, "{sentence}");
    }
}

#[test]
fn pods_that_cannot_be_read_are_said_unless_the_job_says_why() {
    let unread = |change: &Value| WithPods { job: job(change), pods: Err("read pods: pods is forbidden".to_owned()) };
    let found = Unfinished::of("job", &unread(&json!({})), None).unwrap();
    assert_eq!(found.why, "Its Pods cannot be read, so it is not known what it does: read pods: pods is forbidden.");
    assert_eq!((&*found.command, found.is_unread), ("kubectl auth can-i list pods -n shop", true));
    let found = Unfinished::of("job", &unread(&json!({"spec": {"suspend": true}})), None).unwrap();
    assert_eq!((&*found.why, found.is_unread), ("It is suspended (spec.suspend), so it has no Pods.", false));
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
        let found = as_job(pod("p", "Pending", change));
        let want = Unfinished {
            job: "p".to_owned(),
            why: why.to_owned(),
            command: "kubectl describe -n shop pod p".to_owned(),
            is_unread: false,
        };
        assert_eq!(Unfinished::of("pod", &found, None), Some(want), "{sentence}");
    }
}
