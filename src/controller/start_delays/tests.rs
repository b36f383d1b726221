#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::controller::tests::objects::{self, merged, time};

const NOW: &str = "2026-03-02T10:05:00Z";

fn job(status: &Value) -> Job {
    let created = json!({ "metadata": { "creationTimestamp": "2026-03-02T10:00:00Z" } });
    Job::clone(&objects::job("report-1", "u", merged(created, json!({ "status": status }))))
}

#[test]
fn a_start_and_a_first_ready_pod_are_found_once() {
    let start = "2026-03-02T10:00:03Z";
    let (at, now) = (Some(time(start)), Some(time(NOW)));
    let status = |ready: i32| json!({ "startTime": start, "ready": ready });
    let ended = json!({ "startTime": start, "conditions": [{ "type": "Complete", "status": "True" }] });
    // (a sentence, the versions of the Job, what each shows first)
    let table: [(&str, Vec<Value>, Vec<Started>); 6] = [
        ("not started", vec![json!({}), json!({ "active": 1 })], vec![Started::default(); 2]),
        (
            "started, then ready, then restarted",
            vec![json!({}), status(0), status(1), status(0), status(1)],
            vec![
                Started::default(),
                Started { job: at, pod: None },
                Started { job: None, pod: now },
                Started::default(),
                Started::default(),
            ],
        ),
        ("both at once", vec![json!({}), status(1)], vec![Started::default(), Started { job: at, pod: now }]),
        ("new with both", vec![status(1)], vec![Started { job: at, pod: now }]),
        (
            "a Pod that was never counted",
            vec![status(0), ended.clone(), status(1)],
            vec![Started { job: at, pod: None }, Started::default(), Started::default()],
        ),
        ("new and ended", vec![ended], vec![Started { job: at, pod: None }]),
    ];
    for (sentence, versions, shown) in table {
        let delays = StartDelays::default();
        let versions: Vec<Job> = versions.iter().map(job).collect();
        let before = std::iter::once(None).chain(versions.iter().map(Some));
        let found: Vec<_> = before.zip(&versions).map(|(before, job)| delays.observe(before, job, time(NOW))).collect();
        assert_eq!(found, shown, "{sentence}");
    }
}

#[test]
fn a_job_that_is_gone_is_awaited_no_longer() {
    let delays = StartDelays::default();
    let started = job(&json!({ "startTime": "2026-03-02T10:00:03Z" }));
    delays.observe(None, &started, time(NOW));
    assert_eq!(delays.awaited(), 1);
    delays.forget(&started);
    assert_eq!(delays.awaited(), 0);
}

#[test]
fn a_job_whose_start_was_seen_by_another_process_has_no_first_pod() {
    let delays = StartDelays::default();
    let [before, ready] = [0, 1].map(|ready| job(&json!({ "startTime": "2026-03-02T10:00:03Z", "ready": ready })));
    assert_eq!(delays.observe(Some(&before), &ready, time(NOW)), Started::default());
}
