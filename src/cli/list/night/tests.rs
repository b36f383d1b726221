#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::api::ObjectName;
use crate::cli::explain::tests::{facts, instant, job};

fn known(name: &str, mut change: serde_json::Value, jobs: &[(&str, Option<&str>)]) -> Known {
    change["metadata"]["name"] = name.into();
    let jobs = jobs.iter().map(|(slot, end)| {
        let mut job = job(slot, "cj", *end);
        let own = Arc::make_mut(&mut job);
        own.name = ObjectName::new("shop", own.name.name.replace("nightly", name));
        job
    });
    Known { facts: facts(&change, jobs.collect()), events: Vec::new() }
}

#[test]
fn a_night_is_from_18_to_8_on_the_clocks_of_the_zone() {
    for (now, zone, from, to) in [
        ("2026-11-22T03:00:00Z", "UTC", "2026-11-21T18:00:00Z", "2026-11-22T03:00:00Z"),
        ("2026-11-22T10:00:00Z", "UTC", "2026-11-21T18:00:00Z", "2026-11-22T08:00:00Z"),
        ("2026-11-22T17:59:59Z", "UTC", "2026-11-21T18:00:00Z", "2026-11-22T08:00:00Z"),
        ("2026-11-22T18:00:00Z", "UTC", "2026-11-22T18:00:00Z", "2026-11-22T18:00:00Z"),
        ("2026-11-22T03:00:00Z", "Asia/Tokyo", "2026-11-21T09:00:00Z", "2026-11-21T23:00:00Z"),
        // The clocks change in it.
        ("2027-03-28T09:00:00Z", "Europe/Berlin", "2027-03-27T17:00:00Z", "2027-03-28T06:00:00Z"),
    ] {
        let zone = Zone::load(zone, Zone::UTC).unwrap();
        assert_eq!(window(zone, instant(now)), (instant(from), instant(to)), "{now} in {zone}");
    }
}

#[test]
fn each_list_has_a_cron_job_once_and_the_worst_first() {
    let hourly = || json!({"spec": {"schedule": "0 * * * *"}, "status": {"lastScheduleTime": "2026-11-22T03:00:00Z"}});
    let slot = |hour: u32| format!("2026-11-22T{hour:02}:00:00Z");
    let slots: Vec<String> = (0..4).map(slot).collect();
    let failed: Vec<(&str, Option<&str>)> = slots.iter().map(|slot| (slot.as_str(), Some("Failed"))).collect();
    let all = [
        known("once", hourly(), &failed[3..]),
        known("often", hourly(), &failed),
        known(
            "stopped",
            json!({
                "metadata": {"managedFields": [{
                    "manager": "kubectl", "time": "2026-11-21T12:30:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}},
                }]},
                "spec": {"schedule": "0 * * * *", "suspend": true}, "status": {"lastScheduleTime": "2026-11-21T12:00:00Z"},
            }),
            &[],
        ),
        known("quiet", json!({"spec": {"schedule": "0 12 * * *"}}), &[]),
    ];
    let night = Night::of(&all, Zone::UTC, Zone::UTC, instant("2026-11-22T03:30:00Z"));
    let names = |part: &Part| part.entries.iter().map(|entry| (entry.name.clone(), entry.slots)).collect::<Vec<_>>();
    assert_eq!(names(&night.failed), [("often".to_owned(), 4), ("once".to_owned(), 1)]);
    assert!(night.failed.entries[1].why.starts_with("failed, Job once-"), "{:?}", night.failed);
    // The quiet one ran once at a time that its schedule does not have.
    assert_eq!((night.cron_jobs, night.started), (4, 6));
    assert_eq!(night.never_ran.total, 0, "what a user suspends is not among those that never ran");
    assert_eq!(names(&night.stopped), [("stopped".to_owned(), 10)]);
    assert_eq!(night.skipped.total, 0, "{:?}", night.skipped);
    let lines = night.lines();
    assert!(
        lines[0].starts_with("Last night, Sat 2026-11-21 18:00 to Sun 2026-11-22 03:30 (UTC): 4 CronJobs, "),
        "{lines:#?}"
    );
    assert!(
        lines.iter().any(|line| line == "FAILED: 2 CronJobs") && lines.iter().any(|line| line == "LATE: none"),
        "{lines:#?}"
    );
    let text = crate::cli::output::fitting(
        &night,
        crate::cli::output::Format::Table,
        Some(crate::cli::output::Screen { width: 60, colour: false }),
    );
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{}", &*text);
}

#[test]
fn a_list_is_short_and_says_how_many_there_are() {
    let late = json!({"spec": {"schedule": "0 * * * *"}, "status": {"lastScheduleTime": "2026-11-21T17:00:00Z"}});
    let all: Vec<Known> = (0..30).map(|number| known(&format!("c-{number:02}"), late.clone(), &[])).collect();
    let night = Night::of(&all, Zone::UTC, Zone::UTC, instant("2026-11-22T09:00:00Z"));
    assert_eq!((night.never_ran.total, night.never_ran.entries.len()), (30, MOST));
    assert!(night.lines().contains(&"  and 10 more".to_owned()));
}

#[test]
fn longest_run_is_said_to_run_only_if_it_was_started() {
    let change = || json!({"spec": {"schedule": "0 3 * * *"}, "status": {"lastScheduleTime": "2026-11-22T03:00:00Z"}});
    let slot = [("2026-11-22T03:00:00Z", None)];
    for (sentence, is_started, want) in [
        ("it runs", true, "has been running for 30m00s"),
        ("nothing has started it", false, "exists, and the Job controller has not started it for 30m00s"),
    ] {
        let mut known = known("c", change(), &slot);
        if !is_started {
            Arc::make_mut(&mut known.facts.jobs[0]).start_time = None;
        }
        let night = Night::of([known], Zone::UTC, Zone::UTC, instant("2026-11-22T03:30:00Z"));
        assert_eq!(night.longest.entries[0].why, want, "{sentence}");
    }
}

/// Each hour since midnight a run failed, and the Jobs of some are gone.
#[test]
fn runs_that_failed_and_are_not_known_any_more_are_not_left_out_of_the_count() {
    let change = |limit: u32, last_success: &str| {
        json!({
            "spec": {"schedule": "0 * * * *", "failedJobsHistoryLimit": limit},
            "status": {"lastScheduleTime": "2026-11-22T03:00:00Z", "lastSuccessfulTime": last_success},
        })
    };
    let long_ago = "2026-11-21T17:00:30Z";
    let three = [("2026-11-22T03:00:00Z", Some("Failed"))];
    let rows = [
        ("one is kept", change(1, long_ago), &three[..], Some(("at least 1 slot", "failed, Job c-"))),
        (
            "none is",
            change(0, long_ago),
            &[],
            Some(("at least 1 slot", "its Job no longer exists, and no success of it")),
        ),
        ("none is, and the last one succeeded", change(0, "2026-11-22T03:00:30Z"), &[], None),
    ];
    for (sentence, change, jobs, want) in rows {
        let night = Night::of([known("c", change, jobs)], Zone::UTC, Zone::UTC, instant("2026-11-22T03:30:00Z"));
        assert_eq!(night.failed.total, usize::from(want.is_some()), "{sentence}: {:?}", night.failed);
        let text = night.lines().join("\n");
        if let Some((slots, why)) = want {
            assert!(text.contains(slots) && text.contains(why), "{sentence}: {text}");
        }
    }
}
