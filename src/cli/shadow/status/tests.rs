#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::cli::explain::tests::{cron_job, instant, job, name_of};

const LAST: &str = "2026-11-22T02:00:00Z";
const BEFORE: &str = "2026-11-21T02:00:00Z";

/// The Job of a slot that succeeded at a time.
fn succeeded(slot: &str, time: &str) -> Arc<Job> {
    let done =
        Job { succeeded: true, completion_time: Some(instant(time)), ..Job::clone(&job(slot, "cj", Some("Complete"))) };
    Arc::new(done)
}

fn active(slot: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "name": name_of(slot), "namespace": "shop", "uid": name_of(slot)})
}

/// A sentence, the CronJob's status, its Jobs, the newest slot that has a Job, and what is wrong.
type Row<'a> = (&'a str, Value, Vec<Arc<Job>>, Option<&'a str>, &'a [&'a str]);

#[test]
fn a_status_is_wrong_if_it_does_not_follow_from_the_jobs() {
    let running = || job(LAST, "cj", None);
    let status = |active: Vec<Value>, last: &str, succeeded: Option<&str>| json!({"status": {"active": active, "lastScheduleTime": last, "lastSuccessfulTime": succeeded}});
    let (manual, leaving) = (
        Arc::new(Job { scheduled_timestamp: None, ..Job::clone(&running()) }),
        Arc::new(Job { deleting: true, ..Job::clone(&running()) }),
    );
    let rows: Vec<Row<'_>> = vec![
        ("it tells of what runs", status(vec![active(LAST)], LAST, None), vec![running()], Some(LAST), &[]),
        ("nothing ran", status(vec![], LAST, None), vec![], None, &[]),
        (
            "a running Job is missing",
            status(vec![], LAST, None),
            vec![running()],
            Some(LAST),
            &["active lacks the running Job nightly-29921880"],
        ),
        ("a manual Job is not missing", status(vec![], LAST, None), vec![manual], Some(LAST), &[]),
        ("one that is being deleted is not missing", status(vec![], LAST, None), vec![leaving], Some(LAST), &[]),
        (
            "a Job that has ended is active",
            status(vec![active(LAST)], LAST, None),
            vec![job(LAST, "cj", Some("Failed"))],
            Some(LAST),
            &["active has Job nightly-29921880, which has ended or is gone"],
        ),
        (
            "a Job that is gone is active",
            status(vec![active(BEFORE)], LAST, None),
            vec![],
            Some(LAST),
            &["active has Job nightly-29920440, which has ended or is gone"],
        ),
        (
            "the last slot is not the newest",
            status(vec![], BEFORE, None),
            vec![],
            Some(LAST),
            &["lastScheduleTime is 2026-11-21 02:00:00Z, and 2026-11-22 02:00:00Z had a Job"],
        ),
        (
            "a success is not told",
            status(vec![], LAST, Some("2026-11-21T02:05:00Z")),
            vec![succeeded(LAST, "2026-11-22T02:05:00Z")],
            Some(LAST),
            &["lastSuccessfulTime is 2026-11-21 02:05:00Z, and Job nightly-29921880 succeeded at 2026-11-22 02:05:00Z"],
        ),
        (
            "one that is gone may have succeeded",
            status(vec![], LAST, Some("2026-11-22T02:05:00Z")),
            vec![succeeded(BEFORE, "2026-11-21T02:05:00Z")],
            Some(LAST),
            &[],
        ),
    ];
    for (name, change, jobs, started, want) in rows {
        let found = wrong(&cron_job(&change), &jobs, started.map(instant));
        assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), want, "{name}");
    }
}

#[test]
fn what_is_wrong_for_a_minute_without_a_break_is_reported_once() {
    let start = instant("2026-11-22T02:00:00Z");
    let running = [job(LAST, "cj", None)];
    // Seconds, whether the status is wrong, and whether that is reported.
    let rows = [
        (0, true, 0),
        (30, true, 0),
        (40, false, 0),
        (50, true, 0),
        (109, true, 0),
        (110, true, 1),
        (300, true, 0),
        (310, false, 0),
        (320, true, 0),
        (380, true, 1),
    ];
    let mut watch = StatusWatch::default();
    for (seconds, is_wrong, reported) in rows {
        let list = if is_wrong { vec![] } else { vec![active(LAST)] };
        let cron_job = cron_job(&json!({"status": {"active": list}}));
        let now = start + TimeDelta::seconds(seconds);
        let found = watch.look(&cron_job, &running, Some(instant(LAST)), now);
        assert_eq!(found.len(), reported, "after {seconds} s: {found:?}");
        let is_awaited = is_wrong && !matches!(seconds, 110 | 300 | 380);
        assert_eq!(watch.next_look().is_some(), is_awaited, "after {seconds} s");
    }
}
