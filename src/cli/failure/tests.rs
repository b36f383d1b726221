#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn containers_that_failed_are_named_or_why_they_are_not_known() {
    let job = json!({"metadata": {"name": "a"}, "status": {"conditions": [{
        "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often",
    }]}});
    let pod = json!({
        "metadata": {"name": "p", "namespace": "shop"},
        "status": {"containerStatuses": [{
            "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
        }]},
    });
    let init = json!({
        "metadata": {"name": "p", "namespace": "shop"},
        "status": {"initContainerStatuses": [{
            "name": "fetch", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 2}},
        }]},
    });
    let rows = [
        (
            "a Pod",
            Ok(vec![serde_json::from_value(pod).unwrap()]),
            &["  Pod p, container main: OOMKilled, exit code 137", "  kubectl logs -n shop p -c main --context=b"][..],
        ),
        (
            "an init container that ended before",
            Ok(vec![serde_json::from_value(init).unwrap()]),
            &[
                "  Pod p, init container fetch: Error, exit code 2",
                "  kubectl logs -n shop p -c fetch --previous --context=b",
            ],
        ),
        ("none", Ok(vec![]), &["  None of its failed Pods exists any more."]),
        (
            "no right",
            Err("read /pods: pods is forbidden".to_owned()),
            &["  Its Pods cannot be read, so the container that failed is not known: read /pods: pods is forbidden"],
        ),
    ];
    for (sentence, pods, want) in rows {
        let failure = Failure::of(&WithPods { job: serde_json::from_value(job.clone()).unwrap(), pods });
        let lines = failure.lines(" --context=b");
        assert_eq!(lines[0], "  BackoffLimitExceeded: too often", "{sentence}");
        assert_eq!(lines[1..], *want, "{sentence}");
    }
}
