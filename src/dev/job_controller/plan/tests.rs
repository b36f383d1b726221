#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::{Interner, Object as _};

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn job(spec: &Value, status: &Value) -> Job {
    let mut whole = json!({
        "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed",
        "template": { "spec": { "restartPolicy": "Never" } },
    });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let object = json!({ "metadata": { "name": "j", "namespace": "n", "uid": "u" }, "spec": whole, "status": status });
    Job::decode(&object.to_string(), &Interner::default()).unwrap()
}

fn pod(name: &str, phase: &str, end: i64, index: Option<u32>, restarts: u32) -> Arc<Pod> {
    let state = match phase {
        "Pending" => json!({}),
        "Running" => json!({ "running": { "startedAt": text(at(0)) } }),
        _ => json!({ "terminated": { "exitCode": 0, "startedAt": text(at(0)), "finishedAt": text(at(end)) } }),
    };
    let annotations = index.map(|index| json!({ "batch.kubernetes.io/job-completion-index": index.to_string() }));
    let object = json!({
        "metadata": { "name": name, "namespace": "n", "uid": name, "annotations": annotations },
        "spec": {},
        "status": {
            "phase": phase,
            "containerStatuses": [{ "ready": phase == "Running", "restartCount": restarts, "state": state }],
        },
    });
    Arc::new(Pod::decode(&object.to_string(), &Interner::default()).unwrap())
}

fn pods(phases: &[&str]) -> Vec<Arc<Pod>> {
    phases.iter().enumerate().map(|(n, phase)| pod(&format!("p{n}"), phase, 10, None, 0)).collect()
}

/// A plan on one line: deletions, creations, status (conditions, then counts), Events and the wake time.
fn line(plan: &JobPlan) -> String {
    let mut parts = Vec::new();
    parts.extend(plan.delete_pods.iter().map(|name| format!("delete {}", name.name)));
    if !plan.create_pods.is_empty() {
        let indexes: Vec<String> = plan.create_pods.iter().flatten().map(u32::to_string).collect();
        parts.push(format!(
            "create {}{}",
            plan.create_pods.len(),
            if indexes.is_empty() { String::new() } else { format!(" as {}", indexes.join(",")) }
        ));
    }
    if let Some(status) = &plan.status {
        let conditions: Vec<String> = status
            .conditions
            .iter()
            .flatten()
            .map(|c| if c.status == "True" { c.type_.clone() } else { format!("not {}", c.type_) })
            .collect();
        let n = |count: Option<u32>| count.unwrap_or(0);
        parts.push(format!(
            "[{}] a{} r{} t{} s{} f{}",
            conditions.join(" "),
            n(status.active),
            n(status.ready),
            n(status.terminating),
            n(status.succeeded),
            n(status.failed)
        ));
    }
    parts.extend(plan.events.iter().map(|event| event.reason.to_owned()));
    if plan.delete_job {
        parts.push("delete Job".to_owned());
    }
    if let Some(wake) = plan.wake {
        parts.push(format!("wake {}", (wake - at(0)).num_seconds()));
    }
    parts.join("; ")
}

fn condition(type_: &str, reason: &str, second: i64) -> Value {
    json!({ "type": type_, "status": "True", "reason": reason, "message": "m", "lastTransitionTime": text(at(second)) })
}

#[test]
#[allow(clippy::type_complexity)]
fn plan_for_each_job_equals_upstreams() {
    let started = json!({ "startTime": text(at(0)), "ready": 0, "terminating": 0 });
    let running = json!({ "startTime": text(at(0)), "active": 1, "ready": 1, "terminating": 0 });
    let with = |base: &Value, key: &str, value: Value| {
        let mut base = base.clone();
        base[key] = value;
        base
    };
    let on_failure = json!({ "spec": { "restartPolicy": "OnFailure" } });
    let rows: Vec<(&str, Value, Value, Vec<Arc<Pod>>, &str)> = vec![
        ("a new Job starts", json!({}), json!({}), vec![], "create 1; [] a1 r0 t0 s0 f0"),
        ("a running one is left alone", json!({}), running.clone(), pods(&["Running"]), ""),
        ("readiness is counted", json!({}), with(&running, "ready", json!(0)), pods(&["Running"]), "[] a1 r1 t0 s0 f0"),
        (
            "the last success completes it",
            json!({}),
            running.clone(),
            pods(&["Succeeded"]),
            "[SuccessCriteriaMet Complete] a0 r0 t0 s1 f0; Completed",
        ),
        (
            "no more Pods than completions remain",
            json!({ "parallelism": 5, "completions": 3 }),
            started.clone(),
            pods(&["Succeeded", "Running"]),
            "create 1; [] a2 r1 t0 s1 f0",
        ),
        (
            "a work queue's Job starts no Pod after the first success",
            json!({ "parallelism": 3, "completions": null }),
            started.clone(),
            pods(&["Succeeded", "Running"]),
            "[] a1 r1 t0 s1 f0",
        ),
        (
            "a work queue's Job completes with the last Pod",
            json!({ "parallelism": 3, "completions": null }),
            started.clone(),
            pods(&["Succeeded", "Failed"]),
            "[SuccessCriteriaMet Complete] a0 r0 t0 s1 f1; Completed",
        ),
        (
            "a parallelism that was lowered",
            json!({ "parallelism": 1, "completions": 5 }),
            started.clone(),
            pods(&["Running", "Pending"]),
            "delete p1; [] a1 r1 t1 s0 f0; SuccessfulDelete",
        ),
        (
            "a failed Pod is replaced after ten seconds",
            json!({}),
            started.clone(),
            vec![pod("p", "Failed", 15, None, 0)],
            "[] a0 r0 t0 s0 f1; wake 25",
        ),
        (
            "the pause doubles",
            json!({}),
            with(&started, "failed", json!(2)),
            vec![pod("p", "Failed", 15, None, 0), pod("q", "Failed", 19, None, 0)],
            "wake 39",
        ),
        (
            "after the pause",
            json!({}),
            with(&started, "failed", json!(1)),
            vec![pod("p", "Failed", 10, None, 0)],
            "create 1; [] a1 r0 t0 s0 f1",
        ),
        (
            "too many failures kill what still runs",
            json!({ "backoffLimit": 0, "parallelism": 2, "completions": 2 }),
            started.clone(),
            pods(&["Failed", "Running"]),
            "delete p1; [FailureTarget] a0 r0 t1 s0 f1; SuccessfulDelete",
        ),
        (
            "which counts as failed when it is gone",
            json!({ "backoffLimit": 0, "parallelism": 2, "completions": 2 }),
            json!({ "terminating": 1, "failed": 1, "conditions": [condition("FailureTarget", "BackoffLimitExceeded", 19)] }),
            pods(&["Failed"]),
            "[FailureTarget Failed] a0 r0 t0 s0 f2; BackoffLimitExceeded",
        ),
        (
            "too many failures and no Pod left",
            json!({ "backoffLimit": 1 }),
            started.clone(),
            pods(&["Failed", "Failed"]),
            "[FailureTarget Failed] a0 r0 t0 s0 f2; BackoffLimitExceeded",
        ),
        (
            "too many restarts in place",
            json!({ "backoffLimit": 2, "template": on_failure }),
            running.clone(),
            vec![pod("p", "Running", 0, None, 2)],
            "delete p; [FailureTarget] a0 r0 t1 s0 f0; SuccessfulDelete",
        ),
        (
            "few restarts in place",
            json!({ "backoffLimit": 3, "template": on_failure }),
            running.clone(),
            vec![pod("p", "Running", 0, None, 2)],
            "",
        ),
        ("a deadline to come", json!({ "activeDeadlineSeconds": 30 }), running.clone(), pods(&["Running"]), "wake 30"),
        (
            "a deadline that has passed",
            json!({ "activeDeadlineSeconds": 20 }),
            running.clone(),
            pods(&["Running"]),
            "delete p0; [FailureTarget] a0 r0 t1 s0 f0; SuccessfulDelete",
        ),
        (
            "a deadline that has passed, after the Pod",
            json!({ "activeDeadlineSeconds": 20 }),
            json!({ "terminating": 1, "conditions": [condition("FailureTarget", "DeadlineExceeded", 20)] }),
            vec![],
            "[FailureTarget Failed] a0 r0 t0 s0 f1; DeadlineExceeded",
        ),
        (
            "a Job that begins suspended",
            json!({ "suspend": true }),
            json!({}),
            vec![],
            "[Suspended] a0 r0 t0 s0 f0; Suspended",
        ),
        (
            "a Job that is suspended on its way",
            json!({ "suspend": true, "activeDeadlineSeconds": 5 }),
            running.clone(),
            pods(&["Running"]),
            "delete p0; [Suspended] a0 r0 t1 s0 f0; SuccessfulDelete; Suspended",
        ),
        (
            "a Job that is resumed",
            json!({}),
            json!({ "conditions": [condition("Suspended", "JobSuspended", 1)] }),
            vec![],
            "create 1; [not Suspended] a1 r0 t0 s0 f0; Resumed",
        ),
        (
            "indexes that are left",
            json!({ "parallelism": 3, "completions": 4, "completionMode": "Indexed" }),
            started.clone(),
            vec![pod("p", "Succeeded", 5, Some(1), 0), pod("q", "Running", 0, Some(0), 0)],
            "create 2 as 2,3; [] a3 r1 t0 s1 f0",
        ),
        (
            "a Job that has ended",
            json!({}),
            json!({ "conditions": [condition("Complete", "CompletionsReached", 10)] }),
            pods(&["Running"]),
            "",
        ),
        (
            "a Job that is kept for a while",
            json!({ "ttlSecondsAfterFinished": 60 }),
            json!({ "conditions": [condition("Failed", "BackoffLimitExceeded", 10)] }),
            vec![],
            "wake 70",
        ),
        (
            "a Job that was kept long enough",
            json!({ "ttlSecondsAfterFinished": 10 }),
            json!({ "conditions": [condition("Complete", "CompletionsReached", 10)] }),
            vec![],
            "delete Job",
        ),
        ("another controller's Job", json!({ "managedBy": "example.com/other" }), json!({}), vec![], ""),
    ];
    for (sentence, spec, status, pods, want) in rows {
        let plan = reconcile(&job(&spec, &status), &pods, at(20));
        assert_eq!(line(&plan), want, "{sentence}: {plan:?}");
    }
}

#[test]
fn conditions_have_the_words_of_upstream() {
    let rows = [
        (pods(&["Succeeded"]), "Complete", "CompletionsReached", "Reached expected number of succeeded pods"),
        (pods(&["Failed"]), "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
    ];
    for (pods, type_, reason, message) in rows {
        let plan = reconcile(&job(&json!({ "backoffLimit": 0 }), &json!({ "startTime": text(at(0)) })), &pods, at(20));
        let status = plan.status.unwrap();
        let condition = status.finished().unwrap();
        assert_eq!(
            (&*condition.type_, condition.reason.as_deref(), condition.message.as_deref()),
            (type_, Some(reason), Some(message))
        );
        assert_eq!(status.completion_time.is_some(), type_ == "Complete", "only success has a completion time");
        assert_eq!(condition.last_transition_time.as_ref().and_then(utc), Some(at(20)));
    }
}

proptest! {
    /// For any Job and Pods, repeated plans reach a stable state.
    #[test]
    fn repeated_plans_reach_a_stable_state(
        parallelism in 0_u32..5, completions in prop::option::of(0_u32..6), backoff in 0_u32..3, suspend: bool,
        indexed: bool, fates in prop::collection::vec(any::<bool>(), 1..8), deadline in prop::option::of(1_i64..100),
    ) {
        let spec = json!({
            "parallelism": parallelism, "completions": completions, "backoffLimit": backoff, "suspend": suspend,
            "completionMode": if indexed && completions.is_some() { "Indexed" } else { "NonIndexed" },
            "activeDeadlineSeconds": deadline,
        });
        let (mut status, mut pods, mut now, mut made) = (JobStatus::default(), Vec::<Arc<Pod>>::new(), 0, 0_usize);
        for _ in 0..60 {
            let mut job = job(&spec, &json!({}));
            job.status = status.clone();
            let plan = reconcile(&job, &pods, at(now));
            if let Some(written) = &plan.status {
                let active = pods.iter().filter(|pod| !pod.is_finished()).count();
                prop_assert!(written.ready.unwrap_or(0) <= written.active.unwrap_or(0));
                prop_assert!(written.succeeded.unwrap_or(0) >= status.succeeded.unwrap_or(0));
                prop_assert!(written.failed.unwrap_or(0) >= status.failed.unwrap_or(0));
                prop_assert!(active + plan.create_pods.len() <= parallelism.max(1) as usize + active);
                prop_assert!(plan.create_pods.is_empty() || written.finished().is_none());
                status = written.clone();
            }
            pods.retain(|pod| !plan.delete_pods.contains(&pod.identity.name));
            // Every running Pod ends as its entry in `fates` says.
            for pod in &mut pods {
                if !pod.is_finished() {
                    let phase = if fates[made % fates.len()] { "Succeeded" } else { "Failed" };
                    made += 1;
                    *pod = super::tests::pod(&pod.identity.name.name, phase, now, pod.index(), 0);
                }
            }
            for index in plan.create_pods {
                pods.push(super::tests::pod(&format!("p{made}-{}", pods.len()), "Running", 0, index, 0));
            }
            now = plan.wake.map_or(now + 1, |wake| (wake - at(0)).num_seconds().max(now + 1));
        }
        let mut job = job(&spec, &json!({}));
        job.status = status.clone();
        let last = reconcile(&job, &pods, at(now));
        prop_assert!(last.create_pods.is_empty() && last.delete_pods.is_empty() && last.status.is_none(), "{last:?}");
        let may_end = !suspend && (parallelism > 0 || completions == Some(0) || deadline.is_some());
        prop_assert_eq!(status.finished().is_some(), may_end, "{:?}", status);
    }
}
