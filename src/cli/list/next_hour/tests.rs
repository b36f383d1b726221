#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::cli::explain::tests::{facts, instant, job, name_of};

fn known(name: &str, schedule: &str, spec: serde_json::Value) -> Known {
    let mut change = json!({"metadata": {"name": name}, "status": {"lastScheduleTime": "2026-11-22T10:00:00Z"}});
    change["spec"] = spec;
    change["spec"]["schedule"] = schedule.into();
    Known { facts: facts(&change, vec![]), events: Vec::new() }
}

#[test]
fn minutes_have_their_slots_those_that_are_held_first() {
    let mut all: Vec<Known> = (0..8).map(|number| known(&format!("c-{number}"), "30 * * * *", json!({}))).collect();
    all.push(known("alone", "45 10 * * *", json!({})));
    all.push(known("tomorrow", "0 2 * * *", json!({})));
    all.push(known("stopped", "* * * * *", json!({"suspend": true})));
    // The in-tree controller runs it, and knows the zone.
    let mut zoned = known("zoned", "* * * * *", json!({"timeZone": "right/UTC"}));
    zoned.facts.in_charge = crate::cli::explain::InCharge::InTree;
    all.push(zoned);
    let slot = "2026-11-22T10:00:00Z";
    let active = json!([{"kind": "Job", "name": name_of(slot), "namespace": "shop", "uid": name_of(slot)}]);
    let change = json!({
        "spec": {"schedule": "*/30 * * * *", "concurrencyPolicy": "Forbid"},
        "status": {"lastScheduleTime": slot, "active": active},
    });
    all.push(Known { facts: facts(&change, vec![job(slot, "cj", None)]), events: Vec::new() });
    let hour = NextHour::of(&all, Zone::UTC, Zone::UTC, instant("2026-11-22T10:05:00Z"));
    let minutes: Vec<_> = hour
        .minutes
        .iter()
        .map(|minute| (minute.at.format("%H:%M").to_string(), minute.slots, minute.held, minute.unknown))
        .collect();
    let want = [("10:30".to_owned(), 9, 0, 1), ("10:45".to_owned(), 1, 0, 0), ("11:00".to_owned(), 1, 0, 1)];
    assert_eq!(minutes, want);
    let blocker = name_of(slot);
    let why = format!("{blocker} has to end first, and no run tells how long one takes (concurrencyPolicy is Forbid)");
    assert_eq!(
        hour.lines(),
        [
            "The next hour, Sun 2026-11-22 10:05 to 11:05 (UTC): 11 slots of 10 CronJobs, 2 not known.".to_owned(),
            "Not running now: 1 suspended.".to_owned(),
            "The slots of 1 CronJob are not known here: spec.timeZone is not.".to_owned(),
            String::new(),
            "10:30    8  shop/c-0, shop/c-1, shop/c-2, shop/c-3, shop/c-4 and 3 more".to_owned(),
            format!("10:30 to 11:00    -  shop/nightly: not known: {why} (2 slots)"),
            "10:45    1  shop/alone".to_owned(),
            String::new(),
            "The fullest minutes: 10:30 (8).".to_owned(),
        ]
    );
}

#[test]
fn cron_job_that_is_blocked_is_one_line_beside_those_that_start() {
    let slot = "2026-11-22T10:00:00Z";
    let active = json!([{"kind": "Job", "name": name_of(slot), "namespace": "shop", "uid": name_of(slot)}]);
    let change = json!({
        "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid"},
        "status": {"lastScheduleTime": slot, "active": active},
    });
    let blocked = Known { facts: facts(&change, vec![job(slot, "cj", None)]), events: Vec::new() };
    let all = vec![blocked, known("each", "* * * * *", json!({})), known("late", "30 10 * * *", json!({}))];
    let lines = NextHour::of(&all, Zone::UTC, Zone::UTC, instant("2026-11-22T10:00:30Z")).lines();
    let why = format!(
        "{} has to end first, and no run tells how long one takes (concurrencyPolicy is Forbid)",
        name_of(slot)
    );
    let want = [
        "10:01 to 10:29    1  shop/each".to_owned(),
        format!("10:01 to 11:00    -  shop/nightly: not known: {why} (60 slots)"),
        "10:30    2  shop/each, shop/late".to_owned(),
        "10:31 to 11:00    1  shop/each".to_owned(),
    ];
    assert_eq!(lines[2..lines.len() - 2], want);
}

#[test]
fn a_full_minute_says_how_many_it_has() {
    let all: Vec<Known> = (0..70).map(|number| known(&format!("c-{number}"), "30 * * * *", json!({}))).collect();
    let hour = NextHour::of(&all, Zone::UTC, Zone::UTC, instant("2026-11-22T10:05:00Z"));
    assert_eq!((hour.minutes[0].slots, hour.minutes[0].runs.len()), (70, MOST));
    assert!(hour.lines()[2].ends_with(" and 65 more"), "{:?}", hour.lines());
}

#[test]
fn minutes_in_which_the_same_cron_jobs_start_are_one_line() {
    let all = vec![known("each", "* * * * *", json!({})), known("other", "3-59/30 * * * *", json!({}))];
    let lines = NextHour::of(&all, Zone::UTC, Zone::UTC, instant("2026-11-22T10:00:30Z")).lines();
    let want = [
        "10:01 to 10:02    1  shop/each",
        "10:03    2  shop/each, shop/other",
        "10:04 to 10:32    1  shop/each",
        "10:33    2  shop/each, shop/other",
        "10:34 to 11:00    1  shop/each",
    ];
    assert_eq!(lines[2..lines.len() - 2], want);
}
