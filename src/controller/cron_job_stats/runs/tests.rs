#![allow(clippy::unwrap_used, clippy::float_cmp)]

use serde_json::{Value, json};

use super::*;
use crate::controller::tests::objects::{self, merged, time};

const NOW: &str = "2026-03-02T12:00:00Z";

/// A Job that was created at ten and has this status.
fn job(status: &Value) -> Arc<Job> {
    let created = json!({ "metadata": { "creationTimestamp": "2026-03-02T10:00:00Z" } });
    objects::job("report-1", "u", merged(created, json!({ "status": status })))
}

/// A Job that began at ten and ended so many seconds later, by this condition.
fn ended(condition: &str, seconds: i64) -> Arc<Job> {
    let end = (time("2026-03-02T10:00:00Z") + TimeDelta::seconds(seconds)).to_rfc3339();
    let completion = (condition == "Complete").then_some(&end);
    job(&json!({
        "startTime": "2026-03-02T10:00:00Z", "completionTime": completion,
        "conditions": [{ "type": condition, "status": "True", "lastTransitionTime": end }],
    }))
}

#[test]
fn a_duration_is_from_the_start_to_the_end_and_within_what_is_possible() {
    let complete = |start: &str, end: &str| {
        let conditions = json!([{ "type": "Complete", "status": "True" }]);
        job(&json!({ "startTime": start, "completionTime": end, "conditions": conditions }))
    };
    let table = [
        ("one that succeeded", ended("Complete", 90), 90),
        ("one that failed", ended("Failed", 5), 5),
        ("one that was started late", complete("2026-03-02T10:30:00Z", "2026-03-02T10:31:00Z"), 60),
        ("a start before the creation", complete("1970-01-01T00:00:00Z", "2026-03-02T10:00:10Z"), 10),
        ("an end in a hundred years", complete("2026-03-02T11:59:00Z", "2126-01-01T00:00:00Z"), 120),
        ("an end before the start", complete("2026-03-02T11:00:00Z", "2026-03-02T10:30:00Z"), 0),
        ("no times at all", job(&json!({})), 7_200),
    ];
    for (sentence, job, seconds) in table {
        assert_eq!(job.ran_for(time(NOW)), TimeDelta::seconds(seconds), "{sentence}");
    }
}

#[test]
fn ends_are_counted_with_their_durations() {
    let mut stats = RunStats::default();
    for (condition, seconds) in [("Complete", 10), ("Failed", 20), ("Complete", 5)] {
        stats.count(&ended(condition, seconds), time(NOW));
    }
    assert_eq!((stats.succeeded, stats.failed, stats.ended(), stats.seconds), (2, 1, 3, 35.0));
}

#[test]
fn the_median_is_of_the_last_runs_that_succeeded() {
    // (a sentence, the durations in their order, the median)
    let table: [(&str, Vec<i64>, Option<u32>); 6] = [
        ("none", vec![], None),
        ("too few", vec![10, 10], None),
        ("three", vec![30, 10, 20], Some(20)),
        ("an even number: the lower one", vec![10, 20, 30, 40], Some(20)),
        ("one that took long does not change it", vec![10, 10, 10, 900], Some(10)),
        ("older ones are forgotten", [vec![1; 100], vec![60; 8]].concat(), Some(60)),
    ];
    for (sentence, durations, want) in table {
        let mut stats = RunStats::default();
        for seconds in durations {
            stats.remember(&ended("Complete", seconds), time(NOW));
            stats.remember(&ended("Failed", 5_000), time(NOW));
            assert!(stats.recent.len() <= REMEMBERED, "{sentence}");
        }
        assert_eq!(stats.median(), want, "{sentence}");
    }
}

#[test]
fn durations_at_first_are_those_of_the_jobs_that_are_left_and_nothing_is_counted() {
    let jobs =
        [ended("Complete", 40), ended("Failed", 500), ended("Complete", 20), ended("Complete", 30), job(&json!({}))];
    let stats = RunStats::open(jobs.iter(), time(NOW));
    assert_eq!((stats.median(), stats.last, stats.ended()), (Some(30), Some(TimeDelta::seconds(500)), 0));
}

#[test]
fn jobs_that_have_not_ended_run_or_wait_or_are_suspended_or_may_have_no_pod_or_have_no_slot() {
    let (start, later) = ("2026-03-02T11:00:00Z", "2026-03-02T11:30:00Z");
    let suspended = objects::job("report-1", "u", json!({ "spec": { "suspend": true } }));
    let backfilled =
        objects::job("report-1", "u", json!({ "metadata": { "labels": { crate::api::policy::BACKFILL: "x" } } }));
    let slot = json!({ "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T10:00:00Z" } });
    let of_a_slot =
        |start: &str| objects::job("report-1", "u", json!({ "metadata": slot, "status": { "startTime": start } }));
    let without_pods = json!({
        "metadata": slot, "spec": { "parallelism": 0 }, "status": { "startTime": "2026-03-02T10:58:00Z" }
    });
    let without_pods = objects::job("report-1", "u", without_pods);
    let jobs = [
        of_a_slot(later),
        of_a_slot(start),
        without_pods,
        job(&json!({ "startTime": "2026-03-02T10:59:00Z" })),
        job(&json!({})),
        suspended,
        backfilled,
        ended("Complete", 5),
    ];
    let want =
        Unfinished { count: 6, runs_since: Some(time(start)), unstarted_since: Some(time("2026-03-02T10:00:00Z")) };
    assert_eq!(Unfinished::of(&jobs, time(NOW)), want);
    assert_eq!(Unfinished::of(&jobs[7..], time(NOW)), Unfinished::default());
}

#[test]
fn starts_beside_ever_more_jobs_are_counted_until_there_are_no_more() {
    let mut stats = RunStats::default();
    for (at_start, want) in [(0, 0), (1, 1), (2, 2), (3, 3), (3, 0), (4, 1), (1, 0), (2, 1)] {
        stats.unfinished.count = at_start;
        stats.started();
        assert_eq!(stats.grown_in_a_row, want, "{at_start}");
    }
}
