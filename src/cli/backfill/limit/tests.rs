use serde_json::{Value, json};

use super::*;
use crate::api::policy::{EXCLUDE, NOT_BEFORE};
use crate::cli::explain::tests::{cron_job, instant};
use crate::cli::restrictions::Restrictions;

/// A case, a change of the daily CronJob that ran yesterday at two, the unfinished Jobs, whether today's slot has a Job, since
/// when there is a place, and now; the slot that is waited for (0 for a place), and until when.
type Row<'a> = (&'a str, Value, usize, bool, &'a str, &'a str, Option<(u32, &'a str)>);

#[test]
fn start_waits_for_a_place_and_then_for_the_regular_run() {
    let limited = |more: Value| {
        let mut change = json!({
            "metadata": {"annotations": {"cronjob-controller.dev/max-concurrent": "2"}},
            "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            change[key] = value.clone();
        }
        change
    };
    let usual = || limited(json!({}));
    let deadline = |seconds: u32| limited(json!({"spec": {"startingDeadlineSeconds": seconds}}));
    let decided = limited(json!({"status": {"lastScheduleTime": "2026-11-22T02:00:00Z"}}));
    let unlimited = json!({"status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}});
    let rows: Vec<Row<'_>> = vec![
        ("no policy", unlimited.clone(), 9, false, "01:00:00", "01:59:58", None),
        ("Forbid", merged(unlimited, "Forbid"), 9, false, "01:00:00", "01:59:58", None),
        ("a place, and no slot soon", usual(), 1, false, "01:00:00", "01:59:54", None),
        ("no place", usual(), 2, false, "01:00:00", "01:10:00", Some((0, "01:11:00"))),
        ("no place, and a slot soon", usual(), 3, false, "01:00:00", "01:59:58", Some((0, "02:00:58"))),
        ("a slot soon", usual(), 1, false, "01:00:00", "01:59:55", Some((22, "02:00:20"))),
        ("a slot is due", usual(), 0, false, "01:00:00", "02:00:19", Some((22, "02:00:20"))),
        ("it has its Job", usual(), 1, true, "01:00:00", "02:00:01", None),
        ("it is decided", decided, 1, false, "01:00:00", "02:00:01", None),
        ("it does not start", usual(), 1, false, "01:00:00", "02:00:20", None),
        ("it waited for the place, too", usual(), 1, false, "05:00:00", "05:00:01", Some((22, "05:00:20"))),
        ("it does not take the place", usual(), 1, false, "05:00:00", "05:00:20", None),
        ("a short deadline before the slot", deadline(3), 1, false, "01:00:00", "01:59:56", Some((22, "02:00:20"))),
        ("a short deadline at the slot", deadline(3), 1, false, "01:00:00", "02:00:02", Some((22, "02:00:20"))),
        ("a deadline that has passed", deadline(3), 1, false, "01:00:00", "02:00:04", None),
        ("a slot past its deadline", deadline(600), 1, false, "05:00:00", "05:00:01", None),
    ];
    let at = |time: &str| instant(&format!("2026-11-22T{time}Z"));
    for (sentence, change, unfinished, has_job, since, now, want) in rows {
        let found = wait(&cron_job(&change), None, Zone::UTC, unfinished, |_| has_job, at(since), at(now));
        let want = want.map(|(day, until)| Wait { slot: (day > 0).then(|| at("02:00:00")), until: at(until) });
        assert_eq!(found, want, "{sentence}");
    }
}

fn merged(mut change: Value, policy: &str) -> Value {
    change["spec"] = json!({ "concurrencyPolicy": policy });
    change
}

#[test]
fn run_that_the_namespace_leaves_out_is_not_waited_for() {
    let cron_job = cron_job(&json!({
        "metadata": {"annotations": {"cronjob-controller.dev/max-concurrent": "1"}},
        "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"},
    }));
    let now = instant("2026-11-22T02:00:01Z");
    let slot = instant("2026-11-22T02:00:00Z");
    let rows = [
        ("a freeze", json!({NOT_BEFORE: "2026-11-24T00:00:00Z"}), false),
        ("a thaw right after the slot", json!({NOT_BEFORE: "2026-11-22T02:00:01Z"}), false),
        ("a date", json!({EXCLUDE: "2026-11-22"}), false),
        ("what cannot be read holds", json!({EXCLUDE: "Blursday"}), false),
        ("a thaw before the slot", json!({NOT_BEFORE: "2026-11-22T02:00:00Z"}), true),
        ("another date", json!({EXCLUDE: "2026-11-23"}), true),
    ];
    for (sentence, annotations, waits) in rows {
        let mut restrictions = Restrictions::default();
        let metadata = json!({"name": "shop", "uid": "", "annotations": annotations});
        restrictions.add(&json!({"metadata": metadata}).to_string());
        let of = |unfinished| wait(&cron_job, restrictions.of("shop"), Zone::UTC, unfinished, |_| false, slot, now);
        assert_eq!(of(0).and_then(|wait| wait.slot), waits.then_some(slot), "{sentence}");
        assert_eq!(of(1).map(|wait| wait.slot), Some(None), "{sentence}: the limit holds nevertheless");
    }
}

#[test]
fn regular_run_is_due_after_its_spread() {
    let annotations = json!({
        "cronjob-controller.dev/max-concurrent": "1",
        "cronjob-controller.dev/spread": "12h",
    });
    let cron_job = cron_job(&json!({
        "metadata": {"annotations": annotations},
        "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"},
    }));
    let slot = instant("2026-11-22T02:00:00Z");
    let due = cron_job.due(slot);
    assert!(due > slot + AHEAD);
    let at = |seconds| wait(&cron_job, None, Zone::UTC, 0, |_| false, slot, due + TimeDelta::seconds(seconds));
    let held = Some(Wait { slot: Some(slot), until: due + LONGEST });
    assert_eq!([at(-6), at(-5), at(19), at(20)], [None, held, held, None]);
}
