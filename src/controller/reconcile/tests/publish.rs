//! What `--publish` writes.

use super::*;
use crate::api::{Publish, Published};

const NEXT: &str = "cronjob-controller.dev/next-run";
const LAST: &str = "cronjob-controller.dev/last-failure";

/// The times that the sync of a CronJob with these annotations writes; `None` if it writes no status.
#[allow(clippy::needless_pass_by_value, reason = "callers write it with json!")]
fn published(publish: Publish, annotations: Value, patch: Value, jobs: &[&Arc<Job>], now: &str) -> Option<Published> {
    let cron_job = cron_job(merged(json!({ "metadata": { "annotations": annotations } }), patch));
    let mut observation = observe(&cron_job, jobs);
    observation.publish = publish;
    let mut plan = reconcile(&observation, time(now));
    if let Plan::Create { .. } = plan {
        observation.create = Some(created());
        plan = reconcile(&observation, time(now));
    }
    let Plan::Settle(settlement) = plan else { panic!("{plan:?}") };
    settlement.status.map(|write| write.status.published.map(|published| *published).unwrap_or_default())
}

fn next(text: &str) -> Published {
    Published { next_run: Some(time(text)), last_failure: None }
}

#[test]
fn next_run_is_when_the_next_job_is_due() {
    let publish = Publish { next_run: true, last_failure: false };
    let none = Some(Published::default());
    let started = json!({ "status": { "lastScheduleTime": "2026-03-02T10:00:00Z" } });
    let running = job("report-29540700", "old", made_by_controller("2026-03-02T09:00:00Z"));
    let held = json!({
        "spec": { "concurrencyPolicy": "Forbid" },
        "status": { "lastScheduleTime": "2026-03-02T09:00:00Z", "active": [reference("report-29540700", "old")] },
    });
    let late = merged(held.clone(), json!({ "spec": { "startingDeadlineSeconds": 30 } }));
    let known = json!({ NEXT: "2026-03-02T10:00:00Z" });
    let rows = [
        ("a new one", json!({}), started.clone(), "2026-03-02T10:30:00Z", Some(next("2026-03-02T11:00:00Z"))),
        ("it is known", json!({ NEXT: "2026-03-02T11:00:00Z" }), started.clone(), "2026-03-02T10:30:00Z", None),
        ("a fire", known.clone(), json!({}), "2026-03-02T10:00:05Z", Some(next("2026-03-02T11:00:00Z"))),
        (
            "an edit",
            json!({ NEXT: "2026-03-02T11:00:00Z" }),
            merged(started.clone(), json!({ "spec": { "schedule": "30 12 * * *" } })),
            "2026-03-02T10:30:00Z",
            Some(next("2026-03-02T12:30:00Z")),
        ),
        (
            "with its delay",
            json!({ "cronjob-controller.dev/spread": "30m" }),
            started.clone(),
            "2026-03-02T10:30:00Z",
            Some(next("2026-03-02T11:25:01Z")),
        ),
        ("suspended", known.clone(), json!({ "spec": { "suspend": true } }), "2026-03-02T10:00:05Z", none.clone()),
        ("never", known.clone(), json!({ "spec": { "schedule": "0 0 30 2 *" } }), "2026-03-02T10:00:05Z", none.clone()),
        ("not readable", known.clone(), json!({ "spec": { "schedule": "often" } }), "2026-03-02T10:00:05Z", none),
        ("held", known.clone(), held.clone(), "2026-03-02T10:00:05Z", None),
        ("held for long", known.clone(), held.clone(), "2026-03-02T12:00:05Z", None),
        ("held, and not known", json!({}), held, "2026-03-02T12:00:05Z", Some(next("2026-03-02T12:00:00Z"))),
        ("passed over", known, late, "2026-03-02T10:40:00Z", None),
        (
            "a value of someone else",
            json!({ NEXT: "soon" }),
            started,
            "2026-03-02T10:30:00Z",
            Some(next("2026-03-02T11:00:00Z")),
        ),
    ];
    for (sentence, annotations, patch, now, want) in rows {
        let jobs: Vec<_> = patch["status"]["active"].as_array().map(|_| &running).into_iter().collect();
        assert_eq!(published(publish, annotations, patch, &jobs, now), want, "{sentence}");
    }
}

/// A sentence, the annotations, the Jobs, and what is written.
type Row<'a> = (&'a str, Value, &'a [&'a Arc<Job>], Option<Published>);

#[test]
fn last_failure_is_that_of_the_newest_failed_job_and_never_goes_back() {
    let publish = Publish { next_run: false, last_failure: true };
    let failed = |name: &str, at: &str, kind: &str| {
        let condition = json!([{ "type": kind, "status": "True", "lastTransitionTime": at }]);
        job(name, name, merged(finished(kind), json!({ "status": { "conditions": condition } })))
    };
    let older = failed("report-1", "2026-03-02T09:10:00Z", "Failed");
    let newer = failed("report-2", "2026-03-02T09:20:00Z", "Failed");
    let success = failed("report-3", "2026-03-02T09:30:00Z", "Complete");
    let at = |text: &str| Some(Published { next_run: None, last_failure: Some(time(text)) });
    let rows: [Row<'_>; 5] = [
        ("none failed", json!({}), &[&success], None),
        ("one failed", json!({}), &[&older, &success], at("2026-03-02T09:10:00Z")),
        ("another one", json!({ LAST: "2026-03-02T09:10:00Z" }), &[&older, &newer], at("2026-03-02T09:20:00Z")),
        ("it is known", json!({ LAST: "2026-03-02T09:20:00Z" }), &[&older, &newer], None),
        ("the newest was deleted", json!({ LAST: "2026-03-02T09:20:00Z" }), &[&older], None),
    ];
    for (sentence, annotations, jobs, want) in rows {
        let patch = json!({
            "spec": { "failedJobsHistoryLimit": 5 },
            "status": { "lastScheduleTime": "2026-03-02T10:00:00Z", "lastSuccessfulTime": "2026-03-02T10:00:00Z" },
        });
        assert_eq!(published(publish, annotations, patch, jobs, "2026-03-02T10:30:00Z"), want, "{sentence}");
    }
}

#[test]
fn without_the_flag_nothing_is_written() {
    let patch = json!({ "status": { "lastScheduleTime": "2026-03-02T10:00:00Z" } });
    let found =
        published(Publish::default(), json!({ NEXT: "2026-03-02T09:00:00Z" }), patch, &[], "2026-03-02T10:30:00Z");
    assert_eq!(found, None);
}
