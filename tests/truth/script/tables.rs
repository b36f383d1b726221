//! The output of `kubectl get`.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![scenario("tables", tables())]
}

fn nothing(_: Value) -> Value {
    Value::Null
}

fn tables() -> Vec<Step> {
    let table = |path: &str, query: &str| get(format!("{path}?{query}")).accept(TABLE);
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    let done = json!([{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]);
    let failed = json!([{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]);
    let mut steps = vec![
        table(CRONJOBS, "").named("a table of no CronJobs"),
        post(CRONJOBS, &cronjob("a")).part(nothing).named("a CronJob"),
        post(CRONJOBS, &cronjob("b").with("/spec/timeZone", json!("UTC")).with("/spec/suspend", json!(true)))
            .part(nothing)
            .named("another"),
        patch(
            MERGE,
            format!("{CRONJOBS}/b/status"),
            &json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00Z", "active": [{"name": "x"}, {"name": "y"}]}}),
        )
        .part(nothing)
        .named("its status"),
        table(CRONJOBS, "").named("CronJobs"),
        table(CRONJOBS, "includeObject=None").named("CronJobs without objects"),
        table(CRONJOBS, "includeObject=Object").named("CronJobs with whole objects"),
        table(CRONJOBS, "includeObject=Odd").named("an inclusion that does not exist"),
        table(&format!("{CRONJOBS}/a"), "").named("one CronJob"),
        get(CRONJOBS).accept(kubectl).named("what kubectl asks for"),
        get(CRONJOBS).accept(PARTIAL_LIST).named("metadata of CronJobs"),
        get(format!("{CRONJOBS}/a")).accept(PARTIAL).named("metadata of a CronJob"),
        get(CRONJOBS).accept(PARTIAL).named("metadata of one asked of a list"),
        get(format!("{CRONJOBS}/a")).accept(PARTIAL_LIST).named("metadata of a list asked of one"),
        get(CRONJOBS)
            .accept("application/json;as=Table;v=v1beta1;g=meta.k8s.io")
            .part(version_of)
            .named("the older table"),
        get(format!("{CRONJOBS}/nobody")).accept(TABLE).named("a table of an absent object is a Status"),
        post(format!("{CRONJOBS}?dryRun=All"), &cronjob("t")).accept(TABLE).named("a create answered by a table"),
        delete(format!("{CRONJOBS}/nobody")).accept(TABLE).named("a deletion of an absent object with a table"),
    ];
    for (name, status) in [
        ("new", json!({})),
        ("running", json!({"startTime": "2020-01-01T00:00:00Z", "active": 1})),
        (
            "complete",
            json!({"startTime": "2020-01-01T00:00:00Z", "completionTime": "2020-01-01T00:01:30Z", "succeeded": 1, "conditions": done}),
        ),
        ("failed", json!({"startTime": "2020-01-01T00:00:00Z", "failed": 1, "conditions": failed})),
    ] {
        steps.push(post(JOBS, &job(name)).part(nothing).named(format!("a Job that is {name}")));
        steps.push(
            patch(MERGE, format!("{JOBS}/{name}/status"), &json!({"status": status}))
                .part(nothing)
                .named(format!("the status of the one that is {name}")),
        );
    }
    steps.extend([
        post(JOBS, &job("parallel").with("/spec/parallelism", json!(3))).part(nothing).named("a Job of many Pods"),
        post(JOBS, &job("suspended").with("/spec/suspend", json!(true)).with("/spec/completions", json!(5)))
            .part(nothing)
            .named("a suspended Job"),
        table(JOBS, "").named("Jobs"),
        table(&format!("{JOBS}/complete"), "includeObject=None").named("one Job"),
    ]);
    let waiting = |reason: &str| json!([{"name": "c", "image": "x", "imageID": "", "ready": false, "restartCount": 2, "state": {"waiting": {"reason": reason}}}]);
    let ended = |code: i32, reason: &str| json!([{"name": "c", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": code, "reason": reason}}}]);
    for (name, status) in [
        ("pending", json!({"phase": "Pending"})),
        ("creating", json!({"phase": "Pending", "containerStatuses": waiting("ContainerCreating")})),
        (
            "crashing",
            json!({"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}], "containerStatuses": waiting("CrashLoopBackOff")}),
        ),
        (
            "running",
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "c", "image": "x", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]}),
        ),
        ("completed", json!({"phase": "Succeeded", "containerStatuses": ended(0, "Completed")})),
        ("error", json!({"phase": "Failed", "containerStatuses": ended(1, "Error")})),
        ("evicted", json!({"phase": "Failed", "reason": "Evicted"})),
        ("coded", json!({"phase": "Failed", "containerStatuses": ended(3, "")})),
    ] {
        steps.push(post(PODS, &pod(name)).part(nothing).named(format!("a Pod that is {name}")));
        steps.push(
            patch(MERGE, format!("{PODS}/{name}/status"), &json!({"status": status}))
                .part(nothing)
                .named(format!("the status of the Pod that is {name}")),
        );
    }
    steps.extend([
        table(PODS, "includeObject=None").named("Pods"),
        table(&format!("{PODS}/running"), "").named("one Pod"),
        post(EVENTS, &event("a")).part(nothing).named("an Event"),
        post(EVENTS, &event("b").with("/count", json!(7)).with("/type", json!("Warning")))
            .part(nothing)
            .named("a repeated Event"),
        table(EVENTS, "").named("Events"),
        post(LEASES, &lease("a")).part(nothing).named("a Lease"),
        table(LEASES, "").named("Leases"),
        table(&format!("{NAMESPACES}/${{ns}}"), "").named("a namespace"),
        table(NAMESPACES, "fieldSelector=metadata.name%3D${ns}").named("namespaces"),
    ]);
    steps
}

fn version_of(value: Value) -> Value {
    json!({"kind": value["kind"], "apiVersion": value["apiVersion"]})
}
