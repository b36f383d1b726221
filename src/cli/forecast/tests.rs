#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::cli::explain::explain;
use crate::cli::explain::read::Said;
use crate::cli::explain::tests::{facts, instant, job, name_of};

const NOW: &str = "2026-11-22T10:01:00Z";

/// A CronJob that runs every five minutes, with `change` and Jobs: the time of each slot today, its condition, and for how many
/// minutes it ran.
fn known(change: &Value, jobs: &[(&str, Option<&str>, i64)]) -> Facts {
    let slot = |clock: &str| format!("2026-11-22T{clock}:00Z");
    let active: Vec<Value> = jobs
        .iter()
        .filter(|(_, end, _)| end.is_none())
        .map(|(clock, ..)| {
            let name = name_of(&slot(clock));
            json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "shop", "name": name, "uid": name})
        })
        .collect();
    let mut all = json!({
        "metadata": {"managedFields": [{"manager": "kubectl", "time": "2026-11-01T12:00:00Z"}]},
        "spec": {"schedule": "*/5 * * * *"},
        "status": {"active": active, "lastScheduleTime": slot("09:55")},
    });
    apiserver::merge_patch(&mut all, change);
    let jobs = jobs.iter().map(|(clock, end, minutes)| {
        let mut job = job(&slot(clock), "cj", *end);
        let ended = end.map(|_| instant(&slot(clock)) + TimeDelta::minutes(*minutes));
        let own = Arc::make_mut(&mut job);
        own.succeeded = *end == Some("Complete");
        (own.completion_time, own.failed_at) = (ended.filter(|_| own.succeeded), ended.filter(|_| !own.succeeded));
        job
    });
    facts(&all, jobs.collect())
}

fn merged_with(value: &Value, with: &Value) -> Value {
    let mut value = value.clone();
    apiserver::merge_patch(&mut value, with);
    value
}

fn ahead(facts: &Facts, minutes: i64, change: impl FnOnce(&mut Explanation)) -> Vec<Ahead> {
    let (now, local) = (instant(NOW), Zone::UTC);
    let mut told = explain(facts, local, now);
    change(&mut told);
    let until = now + TimeDelta::minutes(minutes);
    Question { facts, told: &told, local, zone: Zone::UTC, now, until, most: 60 }.answer()
}

/// Each as the time at which it is due, what it does, when it starts, and the first words of why.
fn words(ahead: &[Ahead]) -> Vec<String> {
    let clock = |time: DateTime<Utc>| time.format("%H:%M").to_string();
    let one = |ahead: &Ahead| {
        let starts = ahead.starts.map_or("-".to_owned(), clock);
        format!("{} {:?} {starts} {}", clock(ahead.due), ahead.will, ahead.why).trim_end().to_owned()
    };
    ahead.iter().map(one).collect()
}

#[test]
fn slots_are_held_as_reconcile_decides_by_the_durations_known() {
    let forbid = json!({"spec": {"concurrencyPolicy": "Forbid"}});
    let annotated = |name: &str, value: &str| json!({"metadata": {"annotations": {format!("cronjob-controller.dev/{name}"): value}}});
    let ran = ("09:40", Some("Complete"), 8);
    let running = ("09:55", None, 0);
    let name = |clock: &str| name_of(&format!("2026-11-22T{clock}:00Z"));
    let until = |job: &str, end: &str| {
        format!("{} runs until Sun 2026-11-22 {end}:00 +00:00 by the median of 8m00s", name(job))
    };
    let unknown = format!("{} has to end first, and no run tells how long one takes", name("09:55"));
    let first = format!(
        "{} has to end first, and no run tells how long one takes (concurrencyPolicy is Forbid)",
        name("10:05")
    );
    let rows: Vec<(&str, Value, Vec<_>, i64, Vec<String>)> = vec![
        ("Allow holds nothing", json!({}), vec![ran, running], 9, vec!["10:05 Start 10:05".into(), "10:10 Start 10:10".into()]),
        ("a suspended one has no slots", json!({"spec": {"suspend": true}}), vec![], 9, vec![]),
        (
            "Forbid starts the newest slot when a Job ends",
            forbid.clone(),
            vec![ran, running],
            12,
            vec![
                "10:00 Wait 10:03 it has been due since Sun 2026-11-22 10:00:00 +00:00".into(),
                format!("10:05 Skip - {} (concurrencyPolicy is Forbid)", until("10:00", "10:11")),
                format!("10:10 Wait 10:11 {} (concurrencyPolicy is Forbid)", until("10:00", "10:11")),
            ],
        ),
        (
            "a Job that ends when a slot is due holds it no more",
            forbid.clone(),
            vec![("09:40", Some("Complete"), 10), running],
            9,
            vec![
                "10:05 Start 10:05".into(),
                format!(
                    "10:10 Wait - {} runs until Sun 2026-11-22 10:15:00 +00:00 by the median of 10m00s (concurrencyPolicy is Forbid)",
                    name("10:05")
                ),
            ],
        ),
        (
            "a Job that nothing tells the end of holds all",
            forbid.clone(),
            vec![running],
            9,
            vec![
                format!("10:05 Wait - {unknown} (concurrencyPolicy is Forbid)"),
                format!("10:10 Wait - {unknown} (concurrencyPolicy is Forbid)"),
            ],
        ),
        (
            "a new one has no run that tells how long one takes",
            merged_with(&forbid, &json!({"status": {"lastScheduleTime": "2026-11-22T10:00:00Z"}})),
            vec![],
            16,
            vec!["10:05 Start 10:05".into(), format!("10:10 Unknown - {first}"), format!("10:15 Unknown - {first}")],
        ),
        (
            "one that has run for longer than the median holds all",
            forbid.clone(),
            vec![("09:30", Some("Complete"), 2), running],
            5,
            vec![format!(
                "10:05 Wait - {} has to end first, and nothing says when it does (concurrencyPolicy is Forbid)",
                name("09:55")
            )],
        ),
        (
            "Replace deletes by the duration that is known",
            json!({"spec": {"concurrencyPolicy": "Replace"}, "status": {"lastScheduleTime": "2026-11-22T10:00:00Z"}}),
            vec![("09:40", Some("Complete"), 8), ("10:00", None, 0)],
            5,
            vec![format!("10:05 Start 10:05 it deletes {}, which still runs by then (concurrencyPolicy is Replace)", name("10:00"))],
        ),
        (
            "Replace deletes",
            json!({"spec": {"concurrencyPolicy": "Replace"}, "status": {"lastScheduleTime": "2026-11-22T10:00:00Z"}}),
            vec![("10:00", None, 0)],
            5,
            vec![format!("10:05 Start 10:05 it deletes {}, if that still runs by then (concurrencyPolicy is Replace)", name("10:00"))],
        ),
        (
            "a limit of two",
            annotated("max-concurrent", "2"),
            vec![ran, running],
            9,
            vec!["10:00 Wait 10:01 it has been due since Sun 2026-11-22 10:00:00 +00:00".into(), "10:05 Start 10:05".into(), "10:10 Start 10:10".into()],
        ),
        (
            "failures pause it",
            annotated("pause-after-failures", "1"),
            vec![("09:55", Some("Failed"), 1)],
            5,
            vec!["10:05 Wait - it is paused until a run succeeds: the last run failed (cronjob-controller.dev/pause-after-failures)".into()],
        ),
    ];
    for (case, change, jobs, minutes, want) in rows {
        assert_eq!(words(&ahead(&known(&change, &jobs), minutes, |_| ())), want, "{case}");
    }
}

#[test]
fn nothing_starts_without_a_controller() {
    let ahead = ahead(&known(&json!({}), &[]), 5, |told| told.abandoned_lease = Some("kube-system/x".to_owned()));
    assert_eq!(words(&ahead), ["10:05 Wait - no controller renews its Lease kube-system/x"]);
    let ahead = self::ahead(&known(&json!({}), &[]), 5, |told| told.controller = InCharge::NoInstance);
    assert_eq!(words(&ahead), ["10:05 Wait - no instance of cronjob-controller works in its namespace"]);
}

#[test]
fn nothing_starts_that_no_controller_runs() {
    let (handed_over, left) = (InCharge::HandedOver, "2026-11-22T09:30:00Z");
    let none = ["10:05 Wait - no controller runs what is handed over"];
    let alone = ["10:05 Wait - no lease shows that the in-tree controller runs, and it is not handed over"];
    let no_lease = ["10:05 Wait - no lease shows that a controller runs what is handed over"];
    let starts = ["10:05 Start 10:05"];
    // (a sentence, which controller runs it, the last slot, whether the in-tree controller has no lease, what comes)
    let rows = [
        ("--manage=all, and it is handed over", InCharge::NotManaged, "2026-11-22T10:00:00Z", false, none),
        ("--manage=annotated, and it is not handed over", InCharge::InTree, left, true, alone),
        ("the same, and the in-tree controller runs", InCharge::InTree, "2026-11-22T10:00:00Z", false, starts),
        ("handed over to no one", handed_over, left, false, no_lease),
        ("handed over, and nothing is overdue", handed_over, "2026-11-22T10:00:00Z", false, starts),
    ];
    for (sentence, in_charge, last, is_left_alone, want) in rows {
        let facts = known(&json!({"status": {"lastScheduleTime": last}}), &[]);
        let facts = Facts { in_charge, ..facts };
        let found = ahead(&facts, 5, |told| told.is_left_alone = is_left_alone);
        assert_eq!(words(&found), want, "{sentence}");
    }
}

/// At 10:01 the slot of ten o'clock is due, and those of the half hour before were missed.
#[test]
fn nothing_starts_while_the_api_server_refuses_the_jobs() {
    let last = json!({"status": {"lastScheduleTime": "2026-11-22T09:30:00Z"}});
    let refused = |time: &str| Said {
        time: instant(time),
        count: 1,
        reason: "FailedCreate".to_owned(),
        message: "Error creating job: jobs.batch \"x\" is forbidden: exceeded quota: q.".to_owned(),
    };
    let held = ["10:05 Wait - the API server refuses its Job: jobs.batch \"x\" is forbidden: exceeded quota: q"];
    let deadline = json!({"spec": {"startingDeadlineSeconds": 30}});
    let rows = [
        ("a run is overdue", json!({}), "2026-11-22T10:00:02Z", held),
        ("the deadline of the last run has passed", deadline, "2026-11-22T10:00:02Z", held),
        ("it was an earlier run", json!({}), "2026-11-22T09:29:00Z", ["10:05 Start 10:05"]),
    ];
    for (sentence, change, time, want) in rows {
        let facts = known(&merged_with(&last, &change), &[]);
        let facts = Facts { warnings: Ok(vec![refused(time)]), ..facts };
        assert_eq!(words(&ahead(&facts, 5, |_| ())), want, "{sentence}");
    }
}

#[test]
fn slots_of_a_fast_schedule_are_one_in_a_minute() {
    let often = json!({"spec": {"schedule": "@every 1s", "concurrencyPolicy": "Forbid"}});
    let ahead = ahead(&known(&often, &[]), 600, |_| ());
    assert!(ahead.len() <= 61, "{}", ahead.len());
}
