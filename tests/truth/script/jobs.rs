//! Jobs: defaults, generated selectors, immutable fields, status.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("job-create", create()),
        scenario("job-update", update()),
        scenario("job-status", status()),
        scenario("job-of-cronjob", of_cronjob()),
    ]
}

fn create() -> Vec<Step> {
    let at = |name: &str, sentence: &str, pointer: &str, value: Value| {
        post(JOBS, &job(name).with(pointer, value)).named(sentence)
    };
    vec![
        post(JOBS, &job("a")).named("a Job with its defaults and its selector"),
        get(format!("{JOBS}/a")).named("it is got as it was created"),
        at("always", "the restart policy Always", "/spec/template/spec/restartPolicy", json!("Always")),
        post(JOBS, &job("none").without("/spec/template/spec/restartPolicy")).named("no restart policy"),
        at("sel", "a selector of one's own", "/spec/selector", json!({"matchLabels": {"a": "b"}})),
        post(
            JOBS,
            &job("manual")
                .with("/spec/manualSelector", json!(true))
                .with("/spec/selector", json!({"matchLabels": {"a": "b"}}))
                .with("/spec/template/metadata", json!({"labels": {"a": "b"}})),
        )
        .named("a manual selector"),
        post(
            JOBS,
            &job("manual2")
                .with("/spec/manualSelector", json!(true))
                .with("/spec/selector", json!({"matchLabels": {"a": "b"}})),
        )
        .named("a manual selector that does not match"),
        at("manual3", "a manual selector that is missing", "/spec/manualSelector", json!(true)),
        at(
            "label",
            "a label of the template that is taken",
            "/spec/template/metadata",
            json!({"labels": {"job-name": "other"}}),
        ),
        at(
            "labels",
            "labels of the template are kept",
            "/spec/template/metadata",
            json!({"labels": {"x": "y"}, "annotations": {"z": "1"}}),
        ),
        at("par", "a negative parallelism", "/spec/parallelism", json!(-1)),
        at("par0", "a parallelism of zero", "/spec/parallelism", json!(0)),
        at("par3", "a parallelism of three without completions", "/spec/parallelism", json!(3)),
        at("com3", "completions without a parallelism", "/spec/completions", json!(3)),
        at("com", "negative completions", "/spec/completions", json!(-1)),
        at("back", "a negative backoff limit", "/spec/backoffLimit", json!(-1)),
        at("dead", "a negative deadline", "/spec/activeDeadlineSeconds", json!(-1)),
        at("dead0", "a deadline of zero", "/spec/activeDeadlineSeconds", json!(0)),
        at("ttl", "a negative time to live", "/spec/ttlSecondsAfterFinished", json!(-1)),
        at("ttl0", "a time to live of zero", "/spec/ttlSecondsAfterFinished", json!(0)),
        at("mode", "a completion mode that does not exist", "/spec/completionMode", json!("Odd")),
        post(JOBS, &job("indexed").with("/spec/completionMode", json!("Indexed")).with("/spec/completions", json!(2)))
            .named("an indexed Job"),
        at("indexed2", "an indexed Job without completions", "/spec/completionMode", json!("Indexed")),
        at("susp", "a suspended Job", "/spec/suspend", json!(true)),
        at("replace", "a replacement policy that does not exist", "/spec/podReplacementPolicy", json!("Odd")),
        at("replace2", "the replacement policy Failed", "/spec/podReplacementPolicy", json!("Failed")),
        at("managed", "managed by another controller", "/spec/managedBy", json!("example.com/me")),
        at("managed2", "managed by a malformed name", "/spec/managedBy", json!("me")),
        at("status", "a status in a create is dropped", "/status", json!({"active": 5})),
        at("sched", "a scheduling configuration is dropped", "/spec/scheduling", gang()),
        at("sched2", "an unknown field of a scheduling configuration", "/spec/scheduling", json!({"nothing": 1})),
        at("sched3", "a scheduling configuration of another type", "/spec/scheduling", json!("gang")),
        post(JOBS, &job("notemplate").without("/spec/template")).named("no template"),
        post(JOBS, &job("nospec").without("/spec")).named("no spec"),
        at("nocontainers", "no containers", "/spec/template/spec/containers", json!([])),
        at("gen", "a generated name in the template warns not", "/spec/template/metadata", json!({"name": "x"})),
    ]
}

/// A value of `spec.scheduling`, whose feature gate is off by default.
fn gang() -> Value {
    json!({"schedulingPolicy": {"gang": {"minCount": 2}}})
}

fn update() -> Vec<Step> {
    let a = format!("{JOBS}/a");
    let set = |sentence: &str, spec: Value| patch(MERGE, format!("{JOBS}/a"), &json!({"spec": spec})).named(sentence);
    vec![
        post(JOBS, &job("a")).id("a").named("a Job"),
        set("the parallelism can change", json!({"parallelism": 2})),
        set("the completions cannot", json!({"completions": 4})),
        set("the template cannot", json!({"template": {"spec": {"restartPolicy": "OnFailure"}}})),
        set("the selector cannot", json!({"selector": {"matchLabels": {"x": "y"}}})),
        set("the completion mode cannot", json!({"completionMode": "Indexed"})),
        set("the backoff limit can", json!({"backoffLimit": 1})),
        set("the deadline can", json!({"activeDeadlineSeconds": 100})),
        set("the time to live can", json!({"ttlSecondsAfterFinished": 100})),
        set("it can be suspended", json!({"suspend": true})),
        set("a negative parallelism", json!({"parallelism": -2})),
        set("a scheduling configuration is dropped", json!({"scheduling": gang()})),
        set("the owner of its management cannot", json!({"managedBy": "example.com/x"})),
        patch(MERGE, a.as_str(), &json!({"metadata": {"labels": {"l": "1"}}})).named("labels can"),
        put(a.as_str(), &job("a")).named("an update without the selector"),
        get(a.as_str()).named("what came of it"),
        delete_with(a.as_str(), &json!({"propagationPolicy": "Background"})).named("deleted"),
    ]
}

fn status() -> Vec<Step> {
    let set = |sentence: &str, status: Value| {
        patch(MERGE, format!("{JOBS}/a/status"), &json!({"status": status})).named(sentence)
    };
    let done = |kind: &str| json!([{"type": kind, "status": "True", "lastProbeTime": "2020-01-01T00:01:00Z", "lastTransitionTime": "2020-01-01T00:01:00Z"}]);
    vec![
        post(JOBS, &job("a")).named("a Job"),
        set(
            "it is started",
            json!({"startTime": "2020-01-01T00:00:00Z", "active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}),
        ),
        set("negative counts", json!({"active": -1})),
        set("the start cannot be taken back while it runs", json!({"startTime": null})),
        set("complete and active", json!({"conditions": done("Complete"), "completionTime": "2020-01-01T00:01:00Z"})),
        set("complete without a completion time", json!({"active": 0, "succeeded": 1, "conditions": done("Complete")})),
        set(
            "complete without its criteria",
            json!({"active": 0, "ready": 0, "succeeded": 1, "completionTime": "2020-01-01T00:01:00Z", "conditions": done("Complete")}),
        ),
        set(
            "complete before its start",
            json!({"active": 0, "ready": 0, "succeeded": 1, "completionTime": "2019-01-01T00:01:00Z",
            "conditions": [done("SuccessCriteriaMet")[0], done("Complete")[0]]}),
        ),
        set(
            "its criteria are met",
            json!({"active": 0, "ready": 0, "succeeded": 1, "conditions": done("SuccessCriteriaMet")}),
        ),
        set(
            "complete",
            json!({"active": 0, "ready": 0, "succeeded": 1, "completionTime": "2020-01-01T00:01:00Z",
            "conditions": [done("SuccessCriteriaMet")[0], done("Complete")[0]]}),
        ),
        set(
            "complete cannot become failed",
            json!({"conditions": [done("SuccessCriteriaMet")[0], done("Complete")[0], done("Failed")[0]]}),
        ),
        set("complete cannot be taken back", json!({"conditions": []})),
        set("successes cannot become fewer", json!({"succeeded": 0})),
        post(JOBS, &job("b")).named("a second Job"),
        patch(
            MERGE,
            format!("{JOBS}/b/status"),
            &json!({"status": {"startTime": "2020-01-01T00:00:00Z", "failed": 1, "conditions": done("Failed")}}),
        )
        .named("failed without its target"),
        patch(
            MERGE,
            format!("{JOBS}/b/status"),
            &json!({"status": {"startTime": "2020-01-01T00:00:00Z", "failed": 1,
            "conditions": [done("FailureTarget")[0], done("Failed")[0]]}}),
        )
        .named("failed"),
        get(JOBS).named("both"),
        get(format!("{JOBS}?fieldSelector=status.successful%3D1")).named("those that succeeded, by field"),
        put(format!("{JOBS}/b/status"), &job("b").with("/status", json!({"failed": 3})))
            .named("a status update without the selector"),
    ]
}

fn of_cronjob() -> Vec<Step> {
    let child = |name: &str| {
        job(name).with("/metadata/ownerReferences", owned_by("batch/v1", "CronJob", "c", "c", true)).with(
            "/metadata/annotations",
            json!({"batch.kubernetes.io/cronjob-scheduled-timestamp": "2020-01-01T00:00:00Z"}),
        )
    };
    vec![
        post(CRONJOBS, &cronjob("c")).id("c").named("a CronJob"),
        post(JOBS, &child("c-26297280")).id("j").named("its Job"),
        post(JOBS, &child("c-26297280")).named("the same slot again"),
        patch(MERGE, format!("{CRONJOBS}/c/status"), &json!({
            "metadata": {"resourceVersion": "${c:/metadata/resourceVersion}"},
            "status": {"lastScheduleTime": "2020-01-01T00:00:00Z", "active": [{"kind": "Job", "namespace": "${ns}", "name": "c-26297280",
                "uid": "${j:/metadata/uid}", "apiVersion": "batch/v1", "resourceVersion": "${j:/metadata/resourceVersion}"}]}})).named("the controller's status patch"),
        get(format!("{JOBS}?labelSelector=batch.kubernetes.io%2Fjob-name%3Dc-26297280")).named("Jobs do not carry the Pods' labels"),
        delete_with(format!("{JOBS}/c-26297280"), &json!({"propagationPolicy": "Background", "preconditions": {"uid": "${j:/metadata/uid}"}})).named("the controller's deletion"),
        post(JOBS, &child("c-26297285")).named("the next slot"),
        delete(format!("{CRONJOBS}/c")).named("the CronJob is deleted"),
        get(format!("{JOBS}/c-26297285")).until_status(404).named("and its Job is collected"),
        post(JOBS, &child("c-26297290")).named("a Job of a CronJob that is gone"),
        get(format!("{JOBS}/c-26297290")).until_status(404).named("is collected"),
    ]
}
