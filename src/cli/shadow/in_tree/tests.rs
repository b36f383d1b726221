#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::cli::explain::tests::{cron_job, instant, job};

/// On 2026-11-22 in UTC.
fn at(time: &str) -> DateTime<Utc> {
    instant(&format!("2026-11-22T{time}:00Z"))
}

#[test]
fn slot_is_lost_only_where_upstreams_estimate_does_not_find_it() {
    // A sentence, the schedule, the deadline, the last slot, the slot, when it is looked for, and whether it is lost.
    let rows = [
        ("even", "*/10 * * * *", None, "12:00", "12:30", "12:33", false),
        ("the only slot that is due", "0,30,31 * * * *", None, "12:00", "12:30", "12:30", false),
        ("the second of a burst", "0,30,31 * * * *", None, "12:00", "12:31", "12:31", false),
        ("the last of a burst, some time later", "0,30,31 * * * *", None, "12:00", "12:31", "12:40", true),
        ("one of a burst that is not the newest", "0,30,31 * * * *", None, "12:00", "12:30", "12:40", false),
        ("a deadline begins the search later", "0,30,31 * * * *", Some(570), "12:00", "12:31", "12:40", false),
        ("an interval", "@every 10m", None, "12:00", "12:30", "12:39", false),
    ];
    for (sentence, schedule, deadline, last, slot, now, is_lost) in rows {
        let spec = json!({"schedule": schedule, "startingDeadlineSeconds": deadline});
        let cron_job = cron_job(&json!({"spec": spec, "status": {"lastScheduleTime": at(last)}}));
        let mut in_tree = InTree::default();
        assert_eq!(in_tree.loses(at(slot), None, at(now)), None, "{sentence}: another controller is in charge");
        in_tree.look(Some(Arc::clone(&cron_job)), &cron_job, Zone::UTC, at(now));
        assert_eq!(in_tree.loses(at(slot), None, at(now)).is_some(), is_lost, "{sentence}");
    }
}

#[test]
fn controller_that_met_a_taken_name_waits_until_it_goes_on() {
    let mut in_tree = InTree::default();
    let cron_job = cron_job(&json!({}));
    in_tree.look(Some(Arc::clone(&cron_job)), &cron_job, Zone::UTC, at("12:00"));
    assert_eq!(in_tree.waits(), None);
    in_tree.meets_taken_name();
    assert!(in_tree.waits().is_some());
    in_tree.goes_on();
    assert_eq!(in_tree.waits(), None);
}

#[test]
fn slot_starts_again_while_its_cache_may_not_tell_of_it() {
    let told = |last: &str| cron_job(&json!({"status": {"lastScheduleTime": at(last)}}));
    let first = job("2026-11-22T12:00:00Z", "cj", None);
    let (before, after) = (told("11:59"), told("12:00"));
    // A sentence, the slot whose name the second Job has, how long after the status it is seen, and whether the status told of the slot before.
    let rows = [
        ("no status tells of it", "12:00", None, true),
        ("the status has just been written", "12:00", Some(20), true),
        ("the status has been there for some time", "12:00", Some(5_001), false),
        ("it has another name", "12:01", Some(20), false),
    ];
    for (sentence, second, late, is_listed) in rows {
        let mut in_tree = InTree::default();
        let mut seen = at("12:01");
        in_tree.look(Some(Arc::clone(&before)), &before, Zone::UTC, at("12:00"));
        if let Some(late) = late {
            in_tree.look(Some(Arc::clone(&before)), &after, Zone::UTC, seen);
            seen += TimeDelta::milliseconds(late);
            in_tree.look(Some(Arc::clone(&after)), &after, Zone::UTC, seen);
        }
        let second = job(&at(second).to_rfc3339(), "cj", None);
        let listed = in_tree.starts_again(at("12:00"), &first, &second, seen);
        assert_eq!(listed.is_some(), is_listed, "{sentence}");
    }
}
