#![allow(clippy::unwrap_used)]

use std::time::Duration;

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config, merge_patch};
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};

use super::*;
use crate::api::batch_v1::slots_edited;
use crate::api::{ControllerKind, Interner, Object};
use crate::cli::cluster::{ControllerFlags, read_all};
use crate::cli::explain::lease::Leases;
use crate::cli::output::{Format, Report as _, render};
use crate::leader_election::Coverage;

const NOW: &str = "2026-11-22T10:00:00Z";

pub(crate) fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub(crate) fn name_of(slot: &str) -> String {
    ControllerKind::CronJob.child_name("nightly", instant(slot))
}

/// A daily CronJob that was started this morning, with `change` merged into it.
pub(in crate::cli) fn cron_job(change: &Value) -> Arc<CronJob> {
    Arc::new(CronJob::decode(&object(change), &Interner::default()).unwrap())
}

fn object(change: &Value) -> String {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {
            "name": "nightly", "namespace": "shop", "uid": "cj", "resourceVersion": "1",
            "creationTimestamp": "2026-11-01T12:00:00Z",
        },
        "spec": {
            "schedule": "0 2 * * *", "timeZone": "UTC", "concurrencyPolicy": "Allow", "suspend": false,
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {}},
        },
        "status": {"lastScheduleTime": "2026-11-22T02:00:00Z"},
    });
    merge_patch(&mut object, change);
    object.to_string()
}

/// The Job of a slot, of CronJob `owner`; `end` is the condition that ended it.
pub(crate) fn job(slot: &str, owner: &str, end: Option<&str>) -> Arc<Job> {
    let name = name_of(slot);
    let conditions: Vec<Value> = end.iter().map(|end| json!({"type": end, "status": "True"})).collect();
    let object = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1", "creationTimestamp": slot,
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": owner, "controller": true}
            ],
        },
        "status": {"startTime": slot, "conditions": conditions},
    });
    Arc::new(Job::decode(&object.to_string(), &Interner::default()).unwrap())
}

fn active(slot: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "name": name_of(slot), "namespace": "shop", "uid": name_of(slot)})
}

/// What is read about a CronJob with these Jobs, where no lease and no write says whose it is.
pub(crate) fn facts(change: &Value, jobs: Vec<Arc<Job>>) -> Facts {
    Facts { edited: slots_edited(&object(change)), ..Facts::of(cron_job(change), InCharge::Unknown, jobs) }
}

fn explained(change: &Value, jobs: Vec<Arc<Job>>, now: &str) -> Explanation {
    let facts = facts(change, jobs);
    explain(&facts, Zone::UTC, instant(now))
}

/// The first value, with the second merged into it.
fn merged(mut value: Value, change: &Value) -> Value {
    merge_patch(&mut value, change);
    value
}

/// A case, the jobs, the time; the state, the summary and what the next run will do.
type Row<'a> = (&'a str, Value, Vec<Arc<Job>>, &'a str, State, &'a str, Option<&'a str>);

fn check(rows: Vec<Row<'_>>) {
    for (sentence, change, jobs, now, state, summary, effect) in rows {
        let told = explained(&change, jobs, now);
        let next = told.next_run.as_ref().map(|run| run.effect.as_str());
        assert_eq!((told.state, told.why.as_str(), next), (state, summary, effect), "{sentence}");
    }
}

#[test]
fn policies_are_explained() {
    let annotated = |name: &str, value: &str| {
        let annotations = json!({ format!("cronjob-controller.dev/{name}"): value });
        let managers = json!([{ "manager": "kubectl", "time": "2026-11-01T12:00:00Z" }]);
        json!({ "metadata": { "annotations": annotations, "managedFields": managers } })
    };
    let bad = explained(&annotated("spread", "soon"), vec![], NOW);
    assert_eq!(bad.state, State::BadPolicy);
    let start = "It does not run: cronjob-controller.dev/spread: \"soon\" is not allowed (";
    assert!(bad.why.starts_with(start), "{}", bad.why);

    let change = annotated("spread", "1h");
    let offset = cron_job(&change).offset();
    assert!(offset > TimeDelta::zero());
    let spread = explained(&change, vec![], NOW);
    assert_eq!(spread.state, State::Waiting);
    assert!(spread.notes.iter().any(|note| note.starts_with("Each run starts ")), "{:?}", spread.notes);
    assert_eq!(spread.next_run.unwrap().time, instant("2026-11-23T02:00:00Z") + offset);
    let due = instant("2026-11-23T02:00:00Z") + offset;
    let at = |now: DateTime<Utc>| explained(&change, vec![], &now.to_rfc3339()).state;
    assert_eq!(at(due - TimeDelta::seconds(1)), State::Waiting);
    assert_eq!(at(due + TimeDelta::seconds(1)), State::Starting);

    let over = explained(&annotated("not-after", "2026-11-22T09:00:00Z"), vec![], NOW);
    assert_eq!(over.why, "It does not run: its schedule and its policies leave no time in the next five years.");
}

/// A case, annotations and spec; the schedule and the notes. It is Sunday.
type Timed<'a> = (&'a str, Value, Value, &'a str, &'a [&'a str]);

#[test]
fn annotations_that_decide_when_it_runs_are_named() {
    let daily = json!({});
    let rows: [Timed<'_>; 11] = [
        ("none", json!({}), daily.clone(), "0 2 * * *", &[]),
        (
            "other lines",
            json!({"schedule": "0 3 * * MON-FRI\n 0 12 L * *;\n"}),
            daily.clone(),
            "0 3 * * MON-FRI; 0 12 L * *",
            &["Its schedule is that of cronjob-controller.dev/schedule, which replaces spec.schedule (0 2 * * *)."],
        ),
        (
            "tomorrow is left out",
            json!({"exclude": "Mon,12-24"}),
            daily.clone(),
            "0 2 * * *",
            &[
                "The dates in cronjob-controller.dev/exclude have no slots.",
                "The slot of Mon 2026-11-23 02:00:00 +00:00 is left out by cronjob-controller.dev/exclude.",
            ],
        ),
        (
            "another day is",
            json!({"exclude": "Fri"}),
            daily.clone(),
            "0 2 * * *",
            &["The dates in cronjob-controller.dev/exclude have no slots."],
        ),
        (
            "two reasons",
            json!({"exclude": "Mon", "not-before": "2026-11-25T00:00:00Z"}),
            daily.clone(),
            "0 2 * * *",
            &[
                "The dates in cronjob-controller.dev/exclude have no slots.",
                "No slot is before Wed 2026-11-25 00:00:00 +00:00 (cronjob-controller.dev/not-before).",
                "2 slots from Mon 2026-11-23 02:00:00 +00:00 to Tue 2026-11-24 02:00:00 +00:00 are left out by \
                 cronjob-controller.dev/not-before.",
            ],
        ),
        ("it has begun long ago", json!({"not-before": "2026-11-20T00:00:00Z"}), daily.clone(), "0 2 * * *", &[]),
        (
            "many before the first",
            json!({"not-before": "2026-11-25T00:00:00Z", "dst": "once"}),
            json!({"schedule": "*/5 * * * *"}),
            "*/5 * * * *",
            &[
                "When the clocks change, each time of the schedule runs once, unless it has all 24 hours \
                 (cronjob-controller.dev/dst).",
                "No slot is before Wed 2026-11-25 00:00:00 +00:00 (cronjob-controller.dev/not-before).",
                "More than 100 slots from Sun 2026-11-22 10:05:00 +00:00 on are left out by \
                 cronjob-controller.dev/not-before.",
            ],
        ),
        (
            "the end has passed",
            json!({"not-after": "2026-11-22T09:00:00Z"}),
            daily.clone(),
            "0 2 * * *",
            &[
                "No slot is after Sun 2026-11-22 09:00:00 +00:00 (cronjob-controller.dev/not-after).",
                "More than 100 slots from Mon 2026-11-23 02:00:00 +00:00 on are left out by \
                 cronjob-controller.dev/not-after.",
            ],
        ),
        (
            "the slots of an interval depend on the last run",
            json!({"not-before": "2026-11-23T00:00:00Z"}),
            json!({"schedule": "@every 1h"}),
            "@every 1h",
            &["No slot is before Mon 2026-11-23 00:00:00 +00:00 (cronjob-controller.dev/not-before)."],
        ),
        (
            "suspended",
            json!({"exclude": "Mon"}),
            json!({"suspend": true}),
            "0 2 * * *",
            &["The dates in cronjob-controller.dev/exclude have no slots."],
        ),
        ("unreadable", json!({"exclude": "Mon", "schedule": "0 3 * *"}), daily, "0 2 * * *", &[]),
    ];
    for (sentence, annotations, spec, schedule, want) in rows {
        let annotations = annotations.as_object().unwrap().iter();
        let annotations: serde_json::Map<String, Value> =
            annotations.map(|(name, value)| (format!("cronjob-controller.dev/{name}"), value.clone())).collect();
        let managers = json!([{ "manager": "kubectl", "time": "2026-11-01T12:00:00Z" }]);
        let metadata = json!({ "annotations": annotations, "managedFields": managers });
        let told = explained(&json!({"metadata": metadata, "spec": spec}), vec![], NOW);
        assert_eq!(told.schedule, schedule, "{sentence}");
        assert_eq!(told.notes, want, "{sentence}");
        let line = |line: &String| line.starts_with("Schedule:") && line.contains(schedule);
        assert!(told.lines().iter().any(line), "{sentence}");
    }
}

#[test]
fn policies_that_hold_a_run_are_explained() {
    let (thursday, today) = ("2026-11-19T02:00:00Z", "2026-11-22T02:00:00Z");
    let held = |name: &str, value: &str, policy: &str| {
        json!({
            "metadata": {"annotations": { format!("cronjob-controller.dev/{name}"): value }},
            "spec": {"concurrencyPolicy": policy},
            "status": {"lastScheduleTime": thursday, "active": [active(thursday)]},
        })
    };
    let since = |mut change: Value, slot: &str| {
        change["status"] = json!({"lastScheduleTime": slot});
        change
    };
    let runs = "It is blocked: Job nightly-29917560 has been running for 3d08h, and ";
    let then = "2 runs were skipped since, and 1 waits. If that Job ended now, the run of";
    let two = "1 run was skipped since, and 2 wait. If that Job ended now, the run of";
    let (at_limit, waits, replaces) = (
        format!(
            "{runs}cronjob-controller.dev/max-concurrent is 1. {then} Sun 2026-11-22 02:00:00 +00:00 would start at once."
        ),
        format!("{runs}concurrencyPolicy is Forbid. {two} Sat 2026-11-21 02:00:00 +00:00 would start at once."),
        format!(
            "{runs}a run starts when the one that it replaces is gone (cronjob-controller.dev/replace-waits). {then} Sun \
             2026-11-22 02:00:00 +00:00 would start at once."
        ),
    );
    let deleted = replaces.replace("has been running for 3d08h", "is 3d08h old and being deleted");
    let running = || vec![job(thursday, "cj", None)];
    let by_hand = Arc::new(Job {
        name: ObjectName::new("shop", "nightly-by-hand"),
        uid: "by-hand".into(),
        scheduled_timestamp: None,
        ..Job::clone(&job("2026-11-18T02:00:00Z", "cj", None))
    });
    let blocked = "It is blocked: Job nightly-29917560 has been running for 3d00h, and concurrencyPolicy is Forbid. 2 runs were \
                   skipped since, and 1 waits. If that Job ended now, the run of Sun 2026-11-22 02:00:00 +00:00 would start at once.";
    let rows: Vec<Row> = vec![
        (
            "as many as may run",
            held("max-concurrent", "1", "Allow"),
            running(),
            NOW,
            State::Blocked,
            &at_limit,
            Some("waits if Job nightly-29917560 still runs"),
        ),
        (
            "two wait",
            held("backlog", "2", "Forbid"),
            running(),
            NOW,
            State::Blocked,
            &waits,
            Some("waits if Job nightly-29917560 still runs"),
        ),
        (
            "one that was made by hand blocks nothing",
            held("backlog", "2", "Forbid"),
            vec![by_hand, job(thursday, "cj", None)],
            NOW,
            State::Blocked,
            &waits,
            Some("waits if Job nightly-29917560 still runs"),
        ),
        (
            "the replaced one is not gone",
            held("replace-waits", "true", "Replace"),
            running(),
            NOW,
            State::Blocked,
            &replaces,
            Some("deletes Job nightly-29917560 if it still runs, and starts a Job when it is gone"),
        ),
        (
            "the replaced one is being deleted",
            held("replace-waits", "true", "Replace"),
            vec![Arc::new(Job { deleting: true, ..Job::clone(&job(thursday, "cj", None)) })],
            NOW,
            State::Blocked,
            &deleted,
            Some("starts a Job when nightly-29917560 is gone"),
        ),
        (
            "the last one failed",
            since(held("pause-after-failures", "1", "Allow"), today),
            vec![job(today, "cj", Some("Failed"))],
            NOW,
            State::Paused,
            "No success since its creation 20d22h ago (21 slots, 1 failed run still known). It is paused: the last Job failed (cronjob-controller.dev/pause-after-failures). It goes on when a Job succeeds, \
             also one made with kubectl create job --from, or when the failed ones are deleted.",
            Some("starts nothing"),
        ),
        (
            "it will be too late soon",
            held("backlog", "0", "Forbid"),
            running(),
            "2026-11-22T02:00:30Z",
            State::Blocked,
            blocked,
            Some("waits for at most 1m00s (cronjob-controller.dev/backlog) if Job nightly-29917560 still runs"),
        ),
        (
            "it is too late",
            held("backlog", "0", "Forbid"),
            vec![job(thursday, "cj", None)],
            NOW,
            State::Waiting,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was passed over: runs kept it from starting for 60 s \
             (cronjob-controller.dev/backlog). It waits for the next run.",
            Some("waits for at most 1m00s (cronjob-controller.dev/backlog) if Job nightly-29917560 still runs"),
        ),
    ];
    check(rows);
}

/// The notes about the Job of Thursday with `stuck-after`, under a policy; it is Sunday.
#[test]
fn stuck_job_is_explained_with_since_when_and_what_is_done() {
    let thursday = "2026-11-19T02:00:00Z";
    let name = "Job nightly-29917560 counts as stuck";
    let key = "(cronjob-controller.dev/stuck-after)";
    let since = format!("{name} since Thu 2026-11-19 03:00:00 +00:00 {key}: ");
    let from = format!("{name} from Sun 2026-11-22 22:00:00 +00:00 on {key}: ");
    let rows = [
        ("1h", "Forbid", false, format!("{since}a Warning RunStuck says so once an hour while it blocks a run.")),
        ("1h", "Forbid", true, format!("{since}a Warning RunStuck says so once an hour while it blocks a run.")),
        ("1h, delete", "Forbid", false, format!("{since}it is deleted when it blocks a run.")),
        ("1h, delete", "Forbid", true, format!("{since}it was deleted and still exists, and does not block a run.")),
        ("92h", "Forbid", false, format!("{from}a Warning says so if it blocks a run.")),
        ("92h, delete", "Forbid", false, format!("{from}it is deleted then if it blocks a run.")),
        ("1h", "Allow", false, String::new()),
        ("1h", "Replace", false, String::new()),
    ];
    for (value, policy, deleting, want) in rows {
        let change = json!({
            "metadata": {"annotations": {"cronjob-controller.dev/stuck-after": value}},
            "spec": {"concurrencyPolicy": policy},
            "status": {"lastScheduleTime": thursday, "active": [active(thursday)]},
        });
        let runs = Arc::new(Job { deleting, ..Job::clone(&job(thursday, "cj", None)) });
        let notes = explained(&change, vec![runs], NOW).notes;
        let about_stuck: Vec<_> = notes.iter().filter(|note| note.to_lowercase().contains("stuck")).collect();
        assert_eq!(
            about_stuck,
            Vec::from_iter(Some(&want).filter(|want| !want.is_empty())),
            "{value} {policy} {deleting}"
        );
    }
}

#[test]
fn run_that_a_change_passed_over_is_explained_until_a_later_one_starts() {
    let changed = |annotations: Value, last: &str| {
        let managers = json!([{ "manager": "kubectl", "operation": "Update", "time": "2026-11-22T09:00:00Z" }]);
        json!({
            "metadata": {"annotations": annotations, "managedFields": managers},
            "status": {"lastScheduleTime": last},
        })
    };
    let (friday, today) = ("2026-11-20T02:00:00Z", "2026-11-22T02:00:00Z");
    let wait = || json!({"cronjob-controller.dev/after-change": "wait"});
    let exclude = json!({"cronjob-controller.dev/exclude": "Tue"});
    // The record of a sync after the change.
    let recorded = |annotations: Value, last: &str| {
        let mut change = changed(annotations, last);
        let record = cron_job(&change).counted_at(instant("2026-11-22T09:00:00Z")).to_string();
        change["metadata"]["annotations"]["cronjob-controller.dev/counted-from"] = json!(record);
        change
    };
    let text = |why: &str| {
        format!(
            "The run of Sun 2026-11-22 02:00:00 +00:00 was passed over: {why}. Slots after Sun 2026-11-22 09:00:00 +00:00 count."
        )
    };
    let after_change = text("it was due before the last edit or resume (cronjob-controller.dev/after-change is wait)");
    let timing = text("it was due before an annotation was changed that decides when it runs");
    let rows = [
        ("not recorded yet", changed(wait(), friday), Some(&after_change)),
        ("recorded", recorded(wait(), friday), Some(&after_change)),
        ("a timing annotation", recorded(exclude, friday), Some(&timing)),
        ("it has run", recorded(wait(), today), None),
        ("no policy", changed(json!({}), friday), None),
    ];
    for (sentence, change, want) in rows {
        let notes = explained(&change, vec![], NOW).notes;
        assert_eq!(notes.iter().find(|note| note.contains("passed over")), want, "{sentence}: {notes:?}");
    }
}

/// The resume is an edit that the object does not show yet.
#[test]
fn resume_with_after_change_wait_is_said_to_start_nothing() {
    let change = json!({
        "metadata": {"annotations": {"cronjob-controller.dev/after-change": "wait"}},
        "spec": {"suspend": true},
        "status": {"lastScheduleTime": "2026-11-20T02:00:00Z"},
    });
    assert_eq!(
        explained(&change, vec![], NOW).why,
        "It does not run: it is suspended (spec.suspend). If it were resumed now, it would run at Mon 2026-11-23 02:00:00 \
         +00:00."
    );
}

/// A slot that waits for its spread is not due yet.
#[test]
fn resume_with_after_change_wait_is_said_to_start_what_waits_for_its_spread() {
    let annotations = json!({"cronjob-controller.dev/after-change": "wait", "cronjob-controller.dev/spread": "1h"});
    let change = json!({"metadata": {"annotations": annotations}, "spec": {"suspend": true}});
    let slot = instant("2026-11-23T02:00:00Z");
    let due = slot + cron_job(&change).offset();
    assert!(due > slot + TimeDelta::seconds(1));
    for (now, next) in [(due - TimeDelta::seconds(1), due), (due, due + TimeDelta::days(1))] {
        let text = format!("If it were resumed now, it would run at {}.", moment(Zone::UTC, next));
        let summary = explained(&change, vec![], &now.to_rfc3339()).why;
        assert!(summary.ends_with(&text), "{now}: {summary}");
    }
}

#[test]
fn reason_that_prevents_every_run_comes_first() {
    let rows: Vec<Row> = vec![
        (
            "on its way out",
            json!({"metadata": {"deletionTimestamp": "2026-11-22T09:00:00Z"}}),
            vec![],
            NOW,
            State::BeingDeleted,
            "It is being deleted: no further run starts.",
            None,
        ),
        (
            "an unknown zone",
            json!({"spec": {"timeZone": "Europe/Berln"}}),
            vec![],
            NOW,
            State::UnknownTimeZone,
            "It does not run: spec.timeZone \"Europe/Berln\" is not a time zone.",
            None,
        ),
        (
            "a schedule that is none",
            json!({"spec": {"schedule": "0 25 * * *"}}),
            vec![],
            NOW,
            State::UnparseableSchedule,
            "It does not run: spec.schedule \"0 25 * * *\" cannot be read: end of range (25) above maximum (23): 25.",
            None,
        ),
        (
            "a deadline of 0",
            json!({"spec": {"startingDeadlineSeconds": 0}}),
            vec![],
            NOW,
            State::NeverFires,
            "It never runs: spec.startingDeadlineSeconds has passed whenever a run is due.",
            None,
        ),
        (
            "a deadline shorter than the interval",
            json!({"spec": {"schedule": "@every 1h", "startingDeadlineSeconds": 100}}),
            vec![],
            NOW,
            State::NeverFires,
            "It never runs: spec.startingDeadlineSeconds is shorter than the interval of @every, whose runs then always count from \
             the deadline.",
            None,
        ),
        (
            "31 February",
            json!({"spec": {"schedule": "0 0 31 2 *"}}),
            vec![],
            NOW,
            State::NeverFires,
            "It never runs: the schedule matches no time in the next five years.",
            None,
        ),
        (
            "suspended, with a run that came due meanwhile",
            json!({"spec": {"suspend": true}, "status": {"lastScheduleTime": "2026-11-20T02:00:00Z"}}),
            vec![],
            NOW,
            State::Suspended,
            "It does not run: it is suspended (spec.suspend). If it were resumed now, the run of \
             Sun 2026-11-22 02:00:00 +00:00 would start at once.",
            None,
        ),
        (
            "suspended, with nothing to make up for",
            json!({"spec": {"suspend": true}}),
            vec![],
            NOW,
            State::Suspended,
            "It does not run: it is suspended (spec.suspend). If it were resumed now, it would run at \
             Mon 2026-11-23 02:00:00 +00:00.",
            None,
        ),
        (
            "a template that makes no Job",
            json!({"spec": {"jobTemplate": {"spec": {}, "metadata": {"labels": {"a": 1}}}}, "status": {"lastScheduleTime": null}}),
            vec![],
            NOW,
            State::BadTemplate,
            "A run is due and cannot start: make Job from the template of CronJob shop/nightly: invalid type: integer \
             `1`, expected a string at line 1 column 28.",
            None,
        ),
    ];
    check(rows);
}

/// The API server has accepted the zone, and its in-tree controller reads the same files.
#[test]
fn zone_that_is_not_known_here_says_nothing_of_a_cron_job_of_the_in_tree_controller() {
    let unknown = "Its slots are not known here, because spec.timeZone \"right/UTC\" is not.";
    let here = "It does not run: spec.timeZone \"right/UTC\" is not a time zone.";
    let suspended = format!("It does not run: it is suspended (spec.suspend). {unknown}");
    let failed = || vec![job("2026-11-22T02:00:00Z", "cj", Some("Failed"))];
    let rows = [
        ("in-tree", InCharge::InTree, false, vec![], State::SlotsUnknown, unknown),
        ("in-tree, and it failed", InCharge::InTree, false, failed(), State::Failing, unknown),
        ("in-tree, suspended", InCharge::InTree, true, vec![], State::Suspended, &suspended),
        ("this one", InCharge::Own, false, vec![], State::UnknownTimeZone, here),
        ("handed over", InCharge::HandedOver, false, vec![], State::UnknownTimeZone, here),
        ("not known", InCharge::Unknown, false, vec![], State::UnknownTimeZone, here),
    ];
    for (sentence, in_charge, suspend, jobs, state, why) in rows {
        let change = json!({"spec": {"timeZone": "right/UTC", "suspend": suspend}});
        let told = explain(&Facts { in_charge, ..facts(&change, jobs) }, Zone::UTC, instant(NOW));
        assert_eq!(told.state, state, "{sentence}");
        assert!(told.why.ends_with(why), "{sentence}: {}", told.why);
        assert_eq!((told.next_run.is_some(), told.time_zone), (false, None), "{sentence}");
    }
}

#[test]
fn due_run_that_does_not_start_has_a_reason() {
    let (thursday, today) = ("2026-11-19T02:00:00Z", "2026-11-22T02:00:00Z");
    let since_thursday = json!({"status": {"lastScheduleTime": thursday, "active": [active(thursday)]}});
    let mut forbid = since_thursday.clone();
    merge_patch(&mut forbid, &json!({"spec": {"concurrencyPolicy": "Forbid"}}));
    let mut forbid_with_deadline = forbid.clone();
    merge_patch(&mut forbid_with_deadline, &json!({"spec": {"startingDeadlineSeconds": 36_000}}));
    let unstarted = json!({"status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}});
    let mut too_late = unstarted.clone();
    merge_patch(&mut too_late, &json!({"spec": {"startingDeadlineSeconds": 600}}));
    let mut forbid_too_late = too_late.clone();
    merge_patch(&mut forbid_too_late, &json!({"spec": {"concurrencyPolicy": "Forbid"}}));
    let mut ended_late = Job::clone(&job("2026-11-21T02:00:00Z", "cj", Some("Complete")));
    ended_late.completion_time = Some(instant("2026-11-22T03:00:00Z"));
    let ended_late = Arc::new(ended_late);
    let blocked = "It is blocked: Job nightly-29917560 has been running for 3d08h, and concurrencyPolicy is \
                   Forbid. 2 runs were skipped since, and 1 waits. If that Job ended now, the run of Sun 2026-11-22 02:00:00 +00:00 would \
                   start at once";
    let blocked_until = format!("{blocked} (until Sun 2026-11-22 12:00:00 +00:00, its startingDeadlineSeconds).");
    let blocked = format!("{blocked}.");
    let rows: Vec<Row> = vec![
        (
            "blocked under Forbid",
            forbid,
            vec![job(thursday, "cj", None)],
            NOW,
            State::Blocked,
            &blocked,
            Some("waits if Job nightly-29917560 still runs"),
        ),
        (
            "with a starting deadline that still leaves time",
            forbid_with_deadline,
            vec![job(thursday, "cj", None)],
            NOW,
            State::Blocked,
            &blocked_until,
            Some("waits for at most 10h00m (spec.startingDeadlineSeconds) if Job nightly-29917560 still runs"),
        ),
        (
            "past its deadline",
            too_late,
            vec![],
            NOW,
            State::Missed,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was missed: it did not start within 600 s \
             (spec.startingDeadlineSeconds). It waits for the next run.",
            Some("starts Job nightly-29923320"),
        ),
        (
            "past its deadline, and a run is under way",
            forbid_too_late.clone(),
            vec![job("2026-11-21T02:00:00Z", "cj", None)],
            NOW,
            State::Blocked,
            "It is blocked: Job nightly-29920440 has been running for 1d08h, and concurrencyPolicy is Forbid. 1 run was skipped since.",
            Some("waits for at most 10m00s (spec.startingDeadlineSeconds) if Job nightly-29920440 still runs"),
        ),
        (
            "past its deadline, until which a run kept it from starting",
            forbid_too_late,
            vec![ended_late],
            NOW,
            State::Waiting,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was skipped: Job nightly-29920440 ran, concurrencyPolicy is Forbid, and it \
             did not end within 600 s (spec.startingDeadlineSeconds). It waits for the next run.",
            Some("starts Job nightly-29923320"),
        ),
        (
            "a Job of another owner has its name",
            unstarted.clone(),
            vec![job(today, "another", None)],
            NOW,
            State::NameTaken,
            "The run of Sun 2026-11-22 02:00:00 +00:00 cannot start: Job nightly-29921880 exists already and has another owner.",
            Some("starts Job nightly-29923320"),
        ),
        (
            "no controller is there",
            unstarted.clone(),
            vec![],
            NOW,
            State::Overdue,
            "The run of Sun 2026-11-22 02:00:00 +00:00 has been due for 8h00m and could start, but its Job does not exist: no \
             controller works on it, or the API server refuses the Job.",
            Some("starts Job nightly-29923320"),
        ),
        (
            "half a second after the time",
            unstarted.clone(),
            vec![],
            "2026-11-22T02:00:00.5Z",
            State::Starting,
            "The run of Sun 2026-11-22 02:00:00 +00:00 is due and about to start.",
            Some("starts Job nightly-29923320"),
        ),
        (
            "started, though the status does not say so yet",
            unstarted,
            vec![job(today, "cj", None)],
            NOW,
            State::Waiting,
            "It runs on schedule and waits for the next run.",
            Some("starts Job nightly-29923320, beside nightly-29921880 if it still runs"),
        ),
    ];
    check(rows);
}

#[test]
fn next_run_is_described_with_its_effect() {
    let today = "2026-11-22T02:00:00Z";
    let running = |policy: &str| json!({"spec": {"concurrencyPolicy": policy}, "status": {"active": [active(today)]}});
    let well = "It runs on schedule and waits for the next run.";
    let rows: Vec<Row> = vec![
        (
            "all over",
            json!({}),
            vec![job(today, "cj", Some("Complete"))],
            NOW,
            State::Waiting,
            well,
            Some("starts Job nightly-29923320"),
        ),
        (
            "the last one has failed",
            json!({}),
            vec![job(today, "cj", Some("Failed"))],
            NOW,
            State::Failing,
            "No success since its creation 20d22h ago (21 slots, 1 failed run still known): the last run failed, Job nightly-29921880. It waits for the next run.",
            Some("starts Job nightly-29923320"),
        ),
        (
            "the one before has failed, and the last one runs",
            running("Allow"),
            vec![job(today, "cj", None), job("2026-11-21T02:00:00Z", "cj", Some("Failed"))],
            NOW,
            State::Failing,
            "No success since its creation 20d22h ago (21 slots, 1 failed run still known): the last run that ended failed, Job nightly-29920440. It waits for the \
             next run.",
            Some("starts Job nightly-29923320, beside nightly-29921880 if it still runs"),
        ),
        (
            "the one before that has failed, and the last one that ended succeeded",
            running("Allow"),
            vec![
                job(today, "cj", None),
                job("2026-11-21T02:00:00Z", "cj", Some("Complete")),
                job("2026-11-20T02:00:00Z", "cj", Some("Failed")),
            ],
            NOW,
            State::Waiting,
            well,
            Some("starts Job nightly-29923320, beside nightly-29921880 if it still runs"),
        ),
        (
            "one goes on under Allow",
            running("Allow"),
            vec![job(today, "cj", None)],
            NOW,
            State::Waiting,
            well,
            Some("starts Job nightly-29923320, beside nightly-29921880 if it still runs"),
        ),
        (
            "under Forbid",
            running("Forbid"),
            vec![job(today, "cj", None)],
            NOW,
            State::Waiting,
            well,
            Some("waits if Job nightly-29921880 still runs"),
        ),
        (
            "under Replace",
            merged(running("Replace"), &json!({"status": {"lastSuccessfulTime": "2026-11-21T02:01:00Z"}})),
            vec![job(today, "cj", None)],
            NOW,
            State::Waiting,
            well,
            Some("deletes Job nightly-29921880 if it still runs, and starts Job nightly-29923320"),
        ),
        (
            "a new one",
            json!({"metadata": {"creationTimestamp": "2026-11-22T09:00:00Z"}, "status": {"lastScheduleTime": null}}),
            vec![],
            NOW,
            State::Waiting,
            "It has not run yet and waits for its first run.",
            Some("starts Job nightly-29923320"),
        ),
    ];
    check(rows);
}

/// A lease of the controller that its holder renewed last at `renewed`.
pub(crate) fn lease(name: &str, holder: &str, renewed: &str) -> Lease {
    let object = json!({
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed},
    });
    serde_json::from_value(object).unwrap()
}

/// A case, the jobs, the holder and its last renewal; the state and the summary.
type LeaseRow<'a> = (&'a str, Value, Vec<Arc<Job>>, Option<(&'a str, &'a str)>, State, String);

#[test]
fn run_that_no_controller_starts_is_overdue_by_the_oldest_slot_and_by_the_lease() {
    let minutely = |last: &str, more: Value| {
        let mut change = json!({"spec": {"schedule": "* * * * *"}, "status": {"lastScheduleTime": last}});
        merge_patch(&mut change, &more);
        change
    };
    let at = "2026-11-22T10:00:30Z";
    let dead = Some(("pod-a", "2026-11-22T09:57:00.000000Z"));
    let alive = Some(("pod-a", "2026-11-22T10:00:29.000000Z"));
    let starting = "The run of Sun 2026-11-22 10:00:00 +00:00 is due and about to start.";
    let late = "3 runs have not started, the first of them, of Sun 2026-11-22 09:58:00 +00:00, for 2m30s; that of Sun 2026-11-22 \
                10:00:00 +00:00 could start, but its Job does not exist: ";
    let one =
        "The run of Sun 2026-11-22 10:00:00 +00:00 has been due for 30s and could start, but its Job does not exist: ";
    let gone = "pod-a, which holds the lease kube-system/cronjob-controller, last renewed it 3m30s ago: no controller is running.";
    let done = |slot: &str, end: &str| {
        vec![Arc::new(Job { completion_time: Some(instant(end)), ..Job::clone(&job(slot, "cj", Some("Complete"))) })]
    };
    let forbid = json!({"spec": {"concurrencyPolicy": "Forbid"}});
    let before = "2026-11-22T09:57:00Z";
    let rows: Vec<LeaseRow<'_>> = vec![
        (
            "the newest alone is due",
            minutely("2026-11-22T09:59:00Z", json!({})),
            vec![],
            None,
            State::Starting,
            starting.into(),
        ),
        (
            "as above, no leader",
            minutely("2026-11-22T09:59:00Z", json!({})),
            vec![],
            dead,
            State::Overdue,
            format!("{one}{gone}"),
        ),
        (
            "several are due, and no lease is known",
            minutely(before, json!({})),
            vec![],
            None,
            State::Overdue,
            format!("{late}no controller works on it, or the API server refuses the Job."),
        ),
        (
            "several are due, no leader",
            minutely(before, json!({})),
            vec![],
            dead,
            State::Overdue,
            format!("{late}{gone}"),
        ),
        (
            "several are due, and the controller runs",
            minutely(before, json!({})),
            vec![],
            alive,
            State::Overdue,
            format!(
                "{late}pod-a holds the lease kube-system/cronjob-controller and renewed it 1s ago, so the API server refuses the \
                 Job, or this controller does not work on the CronJob."
            ),
        ),
        (
            "Forbid ended seconds ago",
            minutely(before, forbid.clone()),
            done(before, "2026-11-22T10:00:20Z"),
            alive,
            State::Starting,
            starting.into(),
        ),
        (
            "Forbid ended long ago",
            minutely(before, forbid.clone()),
            done(before, "2026-11-22T09:57:20Z"),
            None,
            State::Overdue,
            format!("{late}no controller works on it, or the API server refuses the Job."),
        ),
        (
            "Forbid, and the end of the last run is not known",
            minutely(before, forbid),
            vec![job(before, "cj", Some("Failed"))],
            None,
            State::Failing,
            format!(
                "No success since its creation 20d22h ago (more than 1000 slots, 1 failed run still known): the last run failed, Job {}. {starting}",
                name_of(before)
            ),
        ),
        (
            "the earlier ones are past their deadline",
            minutely(before, json!({"spec": {"startingDeadlineSeconds": 45}})),
            vec![],
            alive,
            State::Starting,
            starting.into(),
        ),
    ];
    for (sentence, change, jobs, held, state, summary) in rows {
        let leases: Vec<Lease> =
            held.iter().map(|(holder, renewed)| lease("cronjob-controller", holder, renewed)).collect();
        let lease = Leases::of(&leases).controller(ControllerKind::CronJob, "shop", false);
        let facts = Facts { lease, ..facts(&change, jobs) };
        let told = explain(&facts, Zone::UTC, instant(at));
        assert_eq!((told.state, told.why), (state, summary), "{sentence}");
    }
}

#[test]
fn abandoned_lease_proves_nothing_while_kube_controller_manager_may_run_the_cron_job() {
    let leases = [
        lease("cronjob-controller", "pod-a", "2026-11-22T08:00:00.000000Z"),
        lease("kube-controller-manager", "node-a", "2026-11-22T09:59:59.000000Z"),
    ];
    let change = json!({"spec": {"schedule": "* * * * *"}, "status": {"lastScheduleTime": "2026-11-22T09:57:00Z"}});
    let told = |handed_over: bool, now: &str| {
        let lease = Leases::of(&leases).controller(ControllerKind::CronJob, "shop", handed_over);
        let in_charge = if handed_over { InCharge::HandedOver } else { InCharge::Unknown };
        let facts = Facts { in_charge, lease, ..facts(&change, vec![]) };
        explain(&facts, Zone::UTC, instant(now))
    };
    assert_eq!(told(false, "2026-11-22T09:58:10Z").state, State::Starting);
    assert_eq!(told(true, "2026-11-22T09:58:10Z").state, State::Overdue);
    let (late, want) = (told(false, NOW), "last renewed it 2h00m ago: only kube-controller-manager is running.");
    assert!(late.state == State::Overdue && late.summary.ends_with(want), "{}", late.summary);
}

#[test]
fn abandoned_lease_is_noted_whatever_the_state() {
    let old = lease("cronjob-controller", "pod-a", "2026-11-22T08:00:00.000000Z");
    let lease = Leases::of(&[old]).controller(ControllerKind::CronJob, "shop", false);
    let facts = Facts { lease, ..facts(&json!({}), vec![]) };
    let told = explain(&facts, Zone::UTC, instant(NOW));
    let want = "No run starts until a controller is running: pod-a, which holds the lease kube-system/cronjob-controller, last \
                renewed it 2h00m ago: no controller is running.";
    assert_eq!((told.state, told.notes), (State::Waiting, vec![want.to_owned()]));
}

#[test]
#[allow(clippy::type_complexity)] // A table's row.
fn lease_is_that_of_the_controller() {
    let at = |second: u32| format!("2026-11-22T10:00:{second:02}.000000Z");
    let rows: [(&str, &[(&str, u32)], ControllerKind, Option<&str>); 5] = [
        ("none", &[("another", 9)], ControllerKind::CronJob, None),
        (
            "the newest",
            &[("80807133.tutorial.kubebuilder.io", 2), ("cronjob-controller", 1), ("cronjob-controller-2", 3)],
            ControllerKind::Tutorial,
            Some("80807133.tutorial.kubebuilder.io"),
        ),
        ("in-tree", &[("kube-controller-manager", 1)], ControllerKind::CronJob, Some("kube-controller-manager")),
        (
            "in-tree beside this one",
            &[("kube-controller-manager", 2), ("cronjob-controller", 1)],
            ControllerKind::CronJob,
            Some("cronjob-controller"),
        ),
        ("in-tree has no such controller", &[("kube-controller-manager", 1)], ControllerKind::Tutorial, None),
    ];
    for (sentence, leases, controller_kind, want) in rows {
        let leases: Vec<Lease> = leases.iter().map(|(name, second)| lease(name, "p", &at(*second))).collect();
        let found = Leases::of(&leases).controller(controller_kind, "shop", false);
        let want = want.map(|name| format!("kube-system/{name}"));
        assert_eq!(found.map(|lease| lease.name), want, "{sentence}");
    }
}

#[test]
fn lease_is_that_of_the_instance_that_works_in_the_namespace() {
    let instance = |name: &str, second: u32, controllers: &[&str], namespaces: &[&str]| {
        let mut lease = lease(name, "p", &format!("2026-11-22T10:00:{second:02}.000000Z"));
        let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
        lease.metadata.annotations = Some(Coverage::new(controllers.iter().copied(), &namespaces).annotations());
        lease
    };
    let mut leases = vec![
        instance("one", 1, &["cronjob"], &["a", "b"]),
        instance("two", 2, &["cronjob"], &["c"]),
        instance("three", 3, &["tutorial"], &[]),
        instance("four", 0, &["cronjob"], &["b"]),
    ];
    let (cron_job, tutorial) = (ControllerKind::CronJob, ControllerKind::Tutorial);
    let found = |leases: &[Lease], kind: ControllerKind, namespace: &str| {
        let leases = Leases::of(leases);
        let found = leases.controller(kind, namespace, false);
        assert_eq!(leases.are_held(kind, namespace), [found.is_some(), false], "{namespace}");
        found.map(|lease| lease.name.trim_start_matches("kube-system/").to_owned())
    };
    let rows = [
        (cron_job, "a", Some("one")),
        (cron_job, "b", Some("one")),
        (cron_job, "c", Some("two")),
        (cron_job, "d", None),
        (tutorial, "a", Some("three")),
    ];
    for (kind, namespace, want) in rows {
        assert_eq!(found(&leases, kind, namespace).as_deref(), want, "{namespace}");
    }
    assert_eq!(Leases::default().absence("d"), "cronjob-controller has no Lease");
    let absence = "no instance of cronjob-controller works in namespace d, as their Leases say";
    assert_eq!(Leases::of(&leases).absence("d"), absence);
    let mut released = instance("gone", 30, &["cronjob"], &["a"]);
    released.spec.as_mut().unwrap().holder_identity = Some(String::new());
    leases.push(released);
    assert_eq!(found(&leases, cron_job, "a").as_deref(), Some("one"), "one that was released by a clock that is ahead");
    leases.push(lease("cronjob-controller", "p", "2026-11-22T10:00:05.000000Z"));
    assert_eq!(found(&leases, cron_job, "d").as_deref(), Some("cronjob-controller"), "an older version does not say");
}

/// A case, the jobs; the notes.
type Noted<'a> = (&'a str, Value, Vec<Arc<Job>>, &'a [&'a str]);

#[test]
fn further_facts_are_noted() {
    let many = json!({"spec": {"schedule": "* * * * *"}, "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}});
    let no_zone = json!({"spec": {"timeZone": null}});
    let rows: Vec<Noted<'_>> = vec![
        ("nothing", json!({}), vec![], &[]),
        (
            "no zone of its own",
            no_zone,
            vec![],
            &["No spec.timeZone: it runs in the controller's time zone, assumed to be UTC (--time-zone)."],
        ),
        (
            "too many missed",
            many,
            vec![],
            &[
                "More than 100 runs were missed; only the newest starts late. spec.startingDeadlineSeconds limits how late.",
            ],
        ),
        (
            "an active Job that is gone",
            json!({"status": {"active": [active("2026-11-22T02:00:00Z")]}}),
            vec![],
            &["A sync would write the Event MissingJob: Active job went missing: nightly-29921880."],
        ),
        (
            "a history above its limit",
            json!({}),
            ["19", "20", "21"].map(|day| job(&format!("2026-11-{day}T02:00:00Z"), "cj", Some("Failed"))).into(),
            &["By the history limits, 2 finished Jobs will be deleted."],
        ),
    ];
    for (sentence, change, jobs, want) in rows {
        assert_eq!(explained(&change, jobs, NOW).notes, want, "{sentence}");
    }
}

#[test]
fn note_on_the_time_zone_names_what_the_kind_has() {
    for (kind, want) in [
        (ControllerKind::CronJob, "No spec.timeZone: it runs"),
        (ControllerKind::Tutorial, "No TZ= in the schedule: it runs"),
        (ControllerKind::ApiExample, "No TZ= in the schedule: it runs"),
    ] {
        let mut cron_job = CronJob::clone(&cron_job(&json!({"spec": {"timeZone": null}})));
        cron_job.controller_kind = kind;
        let facts = Facts::of(Arc::new(cron_job), InCharge::Own, vec![]);
        let notes = explain(&facts, Zone::UTC, instant(NOW)).notes;
        assert!(notes.iter().any(|note| note.starts_with(want)), "{kind}: {notes:?}");
    }
}

#[test]
fn jobs_of_a_backfill_and_those_made_by_hand_are_said_to_be() {
    let mut of_backfill = Job::clone(&job("2026-11-19T02:00:00Z", "cj", None));
    of_backfill.of_backfill = true;
    let of_backfill = Arc::new(of_backfill);
    let plain = job("2026-11-22T02:00:00Z", "cj", None);
    let lines = |change: &Value, jobs: &[&Arc<Job>]| {
        explained(change, jobs.iter().map(|job| Arc::clone(job)).collect(), NOW).lines().join("\n")
    };
    let limit = json!({
        "metadata": {"annotations": {"cronjob-controller.dev/max-concurrent": "1"}},
        "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"},
    });
    let rows = [
        ("it runs", json!({}), &of_backfill, "nightly-29917560, for 3d08h, of a backfill"),
        (
            "the next run is beside it",
            json!({}),
            &of_backfill,
            "beside nightly-29917560 (of a backfill) if it still runs",
        ),
        ("it blocks a run", limit, &of_backfill, "Job nightly-29917560 (of a backfill) has been running for 3d08h"),
        ("a regular one", json!({}), &plain, "nightly-29921880, for 8h00m\n"),
    ];
    for (sentence, change, job, want) in rows {
        let lines = lines(&change, &[job]);
        assert!(lines.contains(want), "{sentence}: {lines}");
    }
    let mut by_hand = Job::clone(&plain);
    (by_hand.name, by_hand.scheduled_timestamp) = (crate::api::ObjectName::new("shop", "once"), None);
    let never = json!({"spec": {"schedule": "0 0 31 2 *"}});
    let said = |reason: &str, message: &str| Said {
        time: instant(NOW),
        count: 1,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    let saw =
        |name: &str| said("UnexpectedJob", &format!("Saw a job that the controller did not create or forgot: {name}"));
    let text = |change: &Value, warning: Said, job: &Arc<Job>| {
        let facts = Facts { warnings: Ok(vec![warning]), ..facts(change, vec![Arc::clone(job)]) };
        explain(&facts, Zone::UTC, instant(NOW)).warnings.first().map(|said| said.message.clone())
    };
    let by_hand = Arc::new(by_hand);
    let rows = [
        ("made by hand", json!({}), saw("once"), Some("forgot: once (made by hand)")),
        ("one that is gone", json!({}), saw("twice"), Some("forgot: twice")),
        ("a schedule without a time", never, said("InvalidSchedule", "less than 1 second"), None),
        ("a schedule with times", json!({}), said("InvalidSchedule", "less than 1 second"), Some("less than 1 second")),
    ];
    for (sentence, change, warning, want) in rows {
        let found = text(&change, warning, &by_hand);
        assert_eq!(found.is_some(), want.is_some(), "{sentence}: {found:?}");
        assert!(found.as_deref().unwrap_or_default().ends_with(want.unwrap_or_default()), "{sentence}: {found:?}");
    }
}

#[test]
fn answer_comes_before_the_details() {
    let thursday = "2026-11-19T02:00:00Z";
    let change = json!({
        "spec": {"timeZone": "Europe/Berlin", "schedule": "0 3 * * *", "concurrencyPolicy": "Forbid"},
        "status": {"lastScheduleTime": thursday, "active": [active(thursday)], "lastSuccessfulTime": "2026-11-18T02:01:00Z"},
    });
    let said = Said {
        time: instant("2026-11-22T09:00:00Z"),
        count: 3,
        reason: "FailedCreate".to_owned(),
        message: "Error creating job: quota".to_owned(),
    };
    let facts = Facts { warnings: Ok(vec![said]), ..facts(&change, vec![job(thursday, "cj", None)]) };
    let told = explain(&facts, Zone::UTC, instant(NOW));
    assert_eq!(
        told.lines(),
        [
            "CronJob shop/nightly: It is not known which controller runs it. What follows holds if cronjob-controller does. It is \
             blocked: Job nightly-29917560 has been running for 3d08h, and \
             concurrencyPolicy is Forbid. 2 runs were skipped since, and 1 waits. If that Job ended now, the run of Sun 2026-11-22 \
             03:00:00 +01:00 would start at once.",
            "",
            "Schedule:       0 3 * * * in Europe/Berlin",
            "Last run:       Thu 2026-11-19 03:00:00 +01:00, 3d08h ago: nightly-29917560 has been running for 3d08h",
            "Last success:   Wed 2026-11-18 03:01:00 +01:00, 4d07h ago",
            "Running:        nightly-29917560, for 3d08h",
            "Next run:       Mon 2026-11-23 03:00:00 +01:00, in 16h00m: waits if Job nightly-29917560 still runs",
            "",
            "The run that is due starts when that Job is gone.",
            "  kubectl delete job -n shop nightly-29917560",
            "",
            "Warnings, the newest first:",
            "  FailedCreate, 1h00m ago, 3 times: Error creating job: quota",
        ]
    );
    let json: Value = serde_json::from_str(&render(&told, Format::Json)).unwrap();
    assert_eq!(json["state"], "blocked");
    assert_eq!(json["active"], json!([{"name": "nightly-29917560", "since": "2026-11-19T03:00:00+01:00"}]));
    assert_eq!(json["nextRun"]["time"], "2026-11-23T03:00:00+01:00");
    let yaml: Value = serde_saphyr::from_str(&render(&told, Format::Yaml)).unwrap();
    assert_eq!(yaml, json);
}

#[test]
fn remedy_of_a_blocked_run_names_as_many_jobs_as_have_to_end() {
    let (thursday, friday) = ("2026-11-19T02:00:00Z", "2026-11-20T02:00:00Z");
    let names = [thursday, friday].map(name_of);
    let limit = |limit: &str| json!({"metadata": {"annotations": {"cronjob-controller.dev/max-concurrent": limit}}});
    let two = format!("kubectl delete job -n shop {} {}", names[0], names[1]);
    let rows = [
        ("one place, and two Jobs", limit("1"), "The run that is due starts when these 2 Jobs are gone.", two.clone()),
        (
            "two places, and two Jobs",
            limit("2"),
            "The run that is due starts when that Job is gone.",
            format!("kubectl delete job -n shop {}", names[0]),
        ),
        (
            "Forbid, and two Jobs",
            json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [active(thursday), active(friday)]}}),
            "The run that is due starts when these 2 Jobs are gone.",
            two,
        ),
    ];
    for (sentence, change, what, command) in rows {
        let change = merged(change, &json!({"status": {"lastScheduleTime": friday}}));
        let jobs = vec![job(thursday, "cj", None), job(friday, "cj", None)];
        let told = explain(&facts(&change, jobs), Zone::UTC, instant(NOW));
        let remedy = told.remedy("p", "").unwrap();
        assert_eq!((told.state, remedy.what.as_str(), remedy.command), (State::Blocked, what, command), "{sentence}");
    }
}

/// Creates an object, and then its status, which a create leaves out.
pub(in crate::cli) async fn post(client: &kube::Client, collection: &str, object: &Value) {
    let send = |method: &str, path: String, object: &Value| {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        client.request_text(request.body(object.to_string().into_bytes()).unwrap())
    };
    send("POST", collection.to_owned(), object).await.unwrap();
    if object["status"].is_object() {
        let path = format!("{collection}/{}/status", object["metadata"]["name"].as_str().unwrap());
        send("PATCH", path, &json!({"status": object["status"]})).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_the_next_run_and_not_with_an_earlier_one() {
    let rows = [
        ("a first run after 7 s", None, Some((7, "2026-11-19T02:00:00Z")), true, 8),
        ("another run", Some("2026-11-18T02:00:00Z"), Some((7, "2026-11-19T02:00:00Z")), true, 8),
        ("no run", None, None, false, 90),
        ("only the run that was there", Some("2026-11-19T02:00:00Z"), None, false, 90),
        ("a run after the limit", None, Some((91, "2026-11-19T02:00:00Z")), false, 90),
    ];
    for (sentence, first, then, started, seconds) in rows {
        let begin = tokio::time::Instant::now();
        let look = async || {
            let next = then.filter(|(after, _)| begin.elapsed() >= Duration::from_secs(*after)).map(|(_, slot)| slot);
            Ok(facts(&json!({"status": {"lastScheduleTime": next.or(first)}}), Vec::new()))
        };
        let (_, has_started) = read::await_run(look, Duration::from_secs(90)).await.unwrap();
        assert_eq!((has_started, begin.elapsed().as_secs()), (started, seconds), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_read_from_a_cluster_and_nothing_written() {
    let clock = TestClock::new(instant("2026-11-19T02:00:01Z"));
    // Two days pass, and an Event of the first is read.
    let server = ApiServer::new(Config { event_ttl: None, ..Config::builtin(clock.clone()) });
    let (client, flags) = (server.client(), ControllerFlags::default());
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
    }}}});
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    post(
        &client,
        "/apis/batch/v1/namespaces/default/cronjobs",
        &json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "concurrencyPolicy": "Forbid", "jobTemplate": template},
            "status": {"lastScheduleTime": "2026-11-19T02:00:00Z"},
        }),
    )
    .await;
    let facts = read::read(&client, ControllerKind::CronJob, "default", "nightly", &flags).await.unwrap();
    let slot = "2026-11-19T02:00:00Z";
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": facts.cron_job.uid, "controller": true,
    }]);
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name_of(slot), "ownerReferences": owner,
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
        },
        "spec": template["spec"],
    });
    post(&client, jobs, &job).await;
    for number in 0..600 {
        job["metadata"] = json!({"name": format!("other-{number}")});
        post(&client, jobs, &job).await;
    }
    let event = |name: &str, type_: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "type": type_, "reason": "FailedCreate",
            "message": "quota", "count": 2, "lastTimestamp": "2026-11-21T02:00:01Z",
            "involvedObject": {"kind": "CronJob", "namespace": "default", "name": "nightly", "uid": facts.cron_job.uid},
        })
    };
    post(&client, "/api/v1/namespaces/default/events", &event("a", "Warning")).await;
    post(&client, "/api/v1/namespaces/default/events", &event("b", "Normal")).await;
    post(
        &client,
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
        &json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "cronjob-controller"},
            "spec": {"holderIdentity": "pod-a", "leaseDurationSeconds": 15, "renewTime": "2026-11-21T02:59:59.000000Z"},
        }),
    )
    .await;
    clock.step(TimeDelta::days(2));
    let revision = server.revision();
    let facts = read::read(&client, ControllerKind::CronJob, "default", "nightly", &flags).await.unwrap();
    assert_eq!(facts.jobs.len(), 601, "all pages");
    assert_eq!(facts.warnings.as_ref().map(Vec::len), Ok(1));
    assert_eq!(facts.lease.as_ref().map(|lease| lease.record.holder_identity.as_str()), Some("pod-a"));
    let told = explain(&facts, Zone::UTC, instant("2026-11-21T03:00:00Z"));
    assert_eq!((told.state, told.active.len(), told.warnings[0].count), (State::Blocked, 1, 2));
    assert_eq!(server.revision(), revision, "nothing is written");

    let mut handed_over: Value = serde_json::json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "moved", "annotations": {"cronjob-controller.dev/managed": "true"}},
        "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "suspend": true, "jobTemplate": template},
    });
    post(&client, "/apis/batch/v1/namespaces/default/cronjobs", &handed_over).await;
    handed_over["metadata"]["name"] = json!("moved-and-paused");
    handed_over["metadata"]["annotations"]["cronjob-controller.dev/suspend"] = json!("true");
    post(&client, "/apis/batch/v1/namespaces/default/cronjobs", &handed_over).await;
    let moved = "It is handed over: cronjob-controller runs it. It ";
    let by = "does not run: it is suspended (cronjob-controller.dev/suspend).";
    for (name, state, start) in
        [("moved", State::Waiting, moved.to_owned()), ("moved-and-paused", State::Suspended, format!("{moved}{by}"))]
    {
        let facts = read::read(&client, ControllerKind::CronJob, "default", name, &flags).await.unwrap();
        let told = explain(&facts, Zone::UTC, instant("2026-11-21T03:00:00Z"));
        assert_eq!((told.state, told.notes.len()), (state, 1), "{name}");
        assert!(told.summary.starts_with(&start), "{name}: {}", told.summary);
    }

    let mut spread = handed_over;
    spread["metadata"] = json!({"name": "spread", "annotations": {"cronjob-controller.dev/spread": "1h"}});
    post(&client, "/apis/batch/v1/namespaces/default/cronjobs", &spread).await;
    let mut offsets = Vec::new();
    for seed in ["", "blue"] {
        let flags = ControllerFlags { seed: seed.into(), ..ControllerFlags::default() };
        let facts = read::read(&client, ControllerKind::CronJob, "default", "spread", &flags).await.unwrap();
        let (all, _) =
            read_all(&client, ControllerKind::CronJob, Some("default"), Some("spread"), &flags).await.unwrap();
        assert_eq!(all[0].facts.cron_job.offset(), facts.cron_job.offset(), "{seed:?}");
        offsets.push(facts.cron_job.offset());
    }
    assert_ne!(offsets[0], offsets[1], "the seed changes the delay");

    let rows = [
        (ControllerKind::CronJob, "weekly", "there is no CronJob weekly in namespace default"),
        (ControllerKind::Tutorial, "nightly", "the cluster serves no CronJob of batch.tutorial.kubebuilder.io/v1"),
    ];
    for (controller_kind, name, want) in rows {
        let error = read::read(&client, controller_kind, "default", name, &flags).await.unwrap_err();
        assert!(error.to_string().starts_with(want), "{error}");
    }
}

#[test]
fn job_that_exists_and_was_not_started_is_told_from_one_that_does_not_exist() {
    let slot = "2026-11-22T09:58:00Z";
    let unstarted = |spec: Value| {
        let mut job = Job::clone(&job(slot, "cj", None));
        (job.start_time, job.suspended) = (None, spec["suspend"] == true);
        vec![Arc::new(job)]
    };
    let minutely = |policy: &str| {
        json!({
            "spec": { "schedule": "*/2 * * * *", "concurrencyPolicy": policy },
            "status": { "lastScheduleTime": slot, "active": [active(slot)] },
        })
    };
    let name = name_of(slot);
    let waits = format!("Job {name} exists, and the Job controller has not started it for 1m59s");
    let table = [
        (
            "nothing has started it",
            "Allow",
            "2026-11-22T09:59:59Z",
            unstarted(json!({})),
            State::NotStarted,
            format!("{waits}. The next run is not due yet."),
        ),
        (
            "it is young",
            "Allow",
            "2026-11-22T09:59:00Z",
            unstarted(json!({})),
            State::Waiting,
            "It runs on schedule and waits for the next run.".to_owned(),
        ),
        (
            "it is suspended",
            "Allow",
            "2026-11-22T09:59:59Z",
            unstarted(json!({ "suspend": true })),
            State::Waiting,
            "It runs on schedule and waits for the next run.".to_owned(),
        ),
    ];
    for (sentence, policy, now, jobs, state, why) in table {
        let told = explained(&minutely(policy), jobs, now);
        assert_eq!((told.state, told.why), (state, why), "{sentence}");
    }
    let told = explained(&minutely("Forbid"), unstarted(json!({})), "2026-11-22T10:01:00Z");
    let start = format!("It is blocked: Job {name} exists, and the Job controller has not started it for 3m00s, and");
    assert!(told.why.starts_with(&start), "{}", told.why);
    let text = told.lines().join("\n");
    assert!(text.contains(&format!("{name}, not started for 3m00s")), "{text}");
    let told = explained(&minutely("Allow"), vec![], "2026-11-22T10:03:30Z");
    assert!(told.state == State::Overdue && told.why.contains("but its Job does not exist"), "{}", told.why);
}

#[test]
fn what_pods_are_told_is_a_note() {
    let annotations = json!({ "metadata": { "annotations": { "cronjob-controller.dev/slot-in-pod": "true" } } });
    let told = explained(&annotations, vec![], NOW);
    let note = "Its Pods get their slot in annotations (cronjob-controller.dev/slot-in-pod).";
    assert!(told.notes.contains(&note.to_owned()), "{:?}", told.notes);
}

/// A case, a change and the Jobs; the state, and what is said.
type Told<'a, T> = (&'a str, Value, Vec<Arc<Job>>, State, T);

/// A CronJob of nine o'clock that starts each minute and last did at ten.
fn minutely(change: &Value) -> Value {
    let base = json!({
        "metadata": {"creationTimestamp": "2026-11-22T09:00:30Z"},
        "spec": {"schedule": "* * * * *"},
        "status": {"lastScheduleTime": "2026-11-22T10:00:00Z"},
    });
    merged(base, change)
}

/// Every minute, at ten o'clock and five seconds.
#[test]
fn a_cron_job_whose_runs_fail_or_do_not_end_is_so_whatever_runs_now() {
    let at = |minute: u32| format!("2026-11-22T09:{minute:02}:00Z");
    let run = |minute: u32, end: Option<&str>| job(&at(minute), "cj", end);
    let now_running = || job("2026-11-22T10:00:00Z", "cj", None);
    let failed = |minutes: std::ops::Range<u32>| minutes.map(|minute| run(minute, Some("Failed"))).collect::<Vec<_>>();
    let success = json!({"status": {"lastSuccessfulTime": "2026-11-22T09:30:10Z"}});
    let starting =
        json!({"status": {"lastScheduleTime": "2026-11-22T09:59:00Z", "lastSuccessfulTime": "2026-11-22T09:30:10Z"}});
    let since = "No success for 29m55s";
    let replace = |change: Value| merged(json!({"spec": {"concurrencyPolicy": "Replace"}}), &change);
    let published = json!({
        "metadata": {"annotations": {"cronjob-controller.dev/last-failure": "2026-11-22T09:59:20Z"}},
        "status": {"lastSuccessfulTime": "2026-11-22T09:30:10Z"},
    });
    let rows: Vec<Told<'_, String>> = vec![
        (
            "five failures in a row, and a run is under way",
            minutely(&success),
            [failed(55..60), vec![now_running()]].concat(),
            State::Failing,
            format!("{since} (30 slots, 5 failed runs still known): the last run that ended failed, Job nightly-29922359."),
        ),
        (
            "of which one is kept",
            minutely(&success),
            [failed(59..60), vec![now_running()]].concat(),
            State::Failing,
            format!("{since} (30 slots, 1 failed run still known): the last run that ended failed, Job nightly-29922359."),
        ),
        (
            "and the next one is about to start",
            minutely(&starting),
            failed(59..60),
            State::Failing,
            format!("{since} (30 slots, 1 failed run still known): the last run failed, Job nightly-29922359."),
        ),
        (
            "none is kept, and the record of the last failure tells",
            minutely(&published),
            vec![now_running()],
            State::Failing,
            format!("{since} (30 slots): a run failed, and its Job is gone."),
        ),
        (
            "the last one that ended succeeded",
            minutely(&json!({"status": {"lastSuccessfulTime": "2026-11-22T09:59:50Z"}})),
            [failed(58..59), vec![now_running()]].concat(),
            State::Waiting,
            "It runs on schedule and waits for the next run.".to_owned(),
        ),
        (
            "Replace deletes each run before it ends",
            minutely(&replace(success.clone())),
            vec![now_running()],
            State::NeverEnds,
            "No run has ended for 29m55s (30 slots): each is deleted when the next one starts (concurrencyPolicy is Replace). Job \
             nightly-29922360 has been running for 5s."
                .to_owned(),
        ),
        (
            "Replace, and the last but one succeeded",
            minutely(&replace(json!({"status": {"lastSuccessfulTime": "2026-11-22T09:58:50Z"}}))),
            vec![now_running()],
            State::Waiting,
            "It runs on schedule and waits for the next run.".to_owned(),
        ),
    ];
    for (sentence, change, jobs, state, why) in rows {
        let told = explained(&change, jobs, "2026-11-22T10:00:05Z");
        assert_eq!(told.state, state, "{sentence}: {}", told.why);
        assert!(told.why.starts_with(&why), "{sentence}: {}", told.why);
    }
}

#[test]
fn a_run_that_is_over_its_stuck_after_is_more_than_a_blocked_one() {
    let today = "2026-11-22T02:00:00Z";
    let change = |age: &str| {
        json!({
            "metadata": {"annotations": {"cronjob-controller.dev/stuck-after": age}},
            "spec": {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid"},
            "status": {"lastScheduleTime": today, "active": [active(today)]},
        })
    };
    let told = explained(&change("3h"), vec![job(today, "cj", None)], NOW);
    assert_eq!(told.state, State::RunStuck, "{}", told.why);
    let words =
        "Job nightly-29921880 is over its cronjob-controller.dev/stuck-after by 5h00m. It blocks the next run: ";
    assert!(told.why.starts_with(words), "{}", told.why);
    assert_eq!(explained(&change("12h"), vec![job(today, "cj", None)], NOW).state, State::Blocked);
}

/// A Job's spec and status; the end of a sentence about it, its line, and since when it blocks.
type Waits<'a> = (&'a str, Value, &'a str, &'a str);

#[test]
fn job_that_does_not_run_is_told_by_what_it_waits_for() {
    let today = "2026-11-22T02:00:00Z";
    let started = || json!({"startTime": today});
    let rows: [Waits<'_>; 10] = [
        (
            "being deleted",
            json!({"metadata": {"deletionTimestamp": "2026-11-22T09:00:00Z"}, "status": started()}),
            "is 8h00m old and being deleted",
            "Deleting: 8h00m old, being deleted",
        ),
        (
            "suspended before its start",
            json!({"spec": {"suspend": true}}),
            "is 8h00m old and waits to be resumed (spec.suspend)",
            "Waiting: 8h00m old, waits to be resumed (spec.suspend)",
        ),
        (
            "suspended after it",
            json!({"spec": {"suspend": true}, "status": started()}),
            "is 8h00m old and waits to be resumed (spec.suspend)",
            "Waiting: 8h00m old, waits to be resumed (spec.suspend)",
        ),
        (
            "no parallelism",
            json!({"spec": {"parallelism": 0}, "status": started()}),
            "is 8h00m old and waits for a spec.parallelism above 0",
            "Waiting: 8h00m old, waits for a spec.parallelism above 0",
        ),
        (
            "another manager, which has not started it",
            json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}),
            "is 8h00m old and waits for the controller that its spec.managedBy names to start it",
            "Waiting: 8h00m old, waits for the controller that its spec.managedBy names to start it",
        ),
        (
            "another manager, which has",
            json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}, "status": started()}),
            "has been running for 8h00m",
            "Running: for 8h00m",
        ),
        (
            "the usual manager by name",
            json!({"spec": {"managedBy": "kubernetes.io/job-controller"}}),
            "exists, and the Job controller has not started it for 8h00m",
            "Waiting: not started for 8h00m",
        ),
        (
            "not started, and no parallelism",
            json!({"spec": {"parallelism": 0}}),
            "exists, and the Job controller has not started it for 8h00m",
            "Waiting: not started for 8h00m",
        ),
        (
            "parallel",
            json!({"spec": {"parallelism": 2}, "status": started()}),
            "has been running for 8h00m",
            "Running: for 8h00m",
        ),
        (
            "it runs",
            json!({"spec": {"suspend": false}, "status": started()}),
            "has been running for 8h00m",
            "Running: for 8h00m",
        ),
    ];
    let forbid = json!({
        "spec": {"concurrencyPolicy": "Forbid", "schedule": "0 * * * *"},
        "status": {"lastScheduleTime": today, "active": [active(today)]},
    });
    let replace = json!({
        "metadata": {"creationTimestamp": "2026-11-21T12:00:00Z"},
        "spec": {"concurrencyPolicy": "Replace"},
        "status": {"lastScheduleTime": today, "active": [active(today)]},
    });
    for (sentence, change, doing, line) in rows {
        let mut object = json!({
            "metadata": {
                "name": name_of(today), "namespace": "shop", "uid": name_of(today), "resourceVersion": "1",
                "creationTimestamp": today,
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": today},
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cj", "controller": true}
                ],
            },
        });
        merge_patch(&mut object, &change);
        let job = Arc::new(Job::decode(&object.to_string(), &Interner::default()).unwrap());
        let told = explained(&forbid, vec![Arc::clone(&job)], NOW);
        let name = name_of(today);
        let blocked = format!("It is blocked: Job {name} {doing}, and concurrencyPolicy is Forbid.");
        assert!(told.why.starts_with(&blocked), "{sentence}: {}", told.why);
        assert_eq!(told.since().unwrap(), format!("blocked for 7h00m by {name}, which {doing}"), "{sentence}");
        assert_eq!(told.last_run.as_ref().unwrap().outcome, doing, "{sentence}");
        let lines = told.lines();
        let (label, text) = line.split_once(' ').unwrap();
        let is_line = |shown: &&String| shown.starts_with(label) && shown.ends_with(&format!("{name}, {text}"));
        assert_eq!(lines.iter().filter(is_line).count(), 1, "{sentence}: {lines:#?}");
        let still = if doing.contains(" old and waits") { "has not ended" } else { "still runs" };
        assert_eq!(told.next_run.as_ref().unwrap().effect, format!("waits if Job {name} {still}"), "{sentence}");
        // Nothing else says that it runs.
        let text = explained(&replace, vec![job], NOW).lines().join("\n");
        assert_eq!(text.contains("running for"), doing.contains("running"), "{sentence}: {text}");
    }
}

/// Whether the schedule has started a run, the Jobs that it did not start, and the line about the last run.
type Unscheduled<'a> = (&'a str, bool, Vec<Arc<Job>>, &'a str);

#[test]
fn run_by_hand_is_told_where_the_schedule_has_started_none() {
    let made = |name: &str, at: &str, end: Option<&str>| {
        let made = Job { scheduled_timestamp: None, ..Job::clone(&job(at, "cj", end)) };
        Job { name: crate::api::ObjectName { name: name.into(), ..made.name.clone() }, ..made }
    };
    let [early, late] = ["2026-11-22T03:00:00Z", "2026-11-22T07:00:00Z"];
    let by_hand = || Arc::new(made("nightly-manual-x", late, Some("Failed")));
    let backfilled = || Arc::new(Job { of_backfill: true, ..made("nightly-29921880", late, None) });
    let rows: [Unscheduled<'_>; 5] = [
        ("nothing", false, vec![], "Last run: never"),
        (
            "by hand",
            false,
            vec![Arc::new(made("first", early, None)), by_hand()],
            "Last run: never by schedule; by hand Sun 2026-11-22 07:00:00 +00:00, 3h00m ago: nightly-manual-x failed",
        ),
        (
            "by a backfill",
            false,
            vec![backfilled()],
            "Last run: never by schedule; by a backfill Sun 2026-11-22 07:00:00 +00:00, 3h00m ago: nightly-29921880 has been running for \
             3h00m",
        ),
        (
            "of another CronJob",
            false,
            vec![Arc::new(Job { controller: None, ..Job::clone(&by_hand()) })],
            "Last run: never",
        ),
        (
            "by the schedule, too",
            true,
            vec![by_hand()],
            "Last run: Sun 2026-11-22 02:00:00 +00:00, 8h00m ago: nightly-29921880 no longer exists",
        ),
    ];
    for (sentence, is_scheduled, jobs, want) in rows {
        let last = if is_scheduled { json!("2026-11-22T02:00:00Z") } else { Value::Null };
        let change = json!({
            "metadata": {"creationTimestamp": "2026-11-22T02:30:00Z"}, "status": {"lastScheduleTime": last},
        });
        let told = explained(&change, jobs, NOW);
        let lines = told.lines().into_iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let line = lines.filter(|line| line.starts_with("Last run:")).collect::<Vec<_>>();
        assert_eq!(line, [want], "{sentence}");
    }
}

/// Since when the next run is late, of a CronJob of each hour whose last run is eight hours old and is the only Job.
#[test]
fn only_a_run_that_still_starts_is_late() {
    let today = "2026-11-22T02:00:00Z";
    let with = |annotation: Option<(&str, &str)>, spec: Value| {
        let annotations: Value = annotation
            .map(|(name, value)| json!({ format!("cronjob-controller.dev/{name}"): value }))
            .unwrap_or_default();
        merged(
            json!({
                "metadata": {"annotations": annotations}, "spec": {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid"},
                "status": {"lastScheduleTime": today, "active": [active(today)]},
            }),
            &json!({ "spec": spec }),
        )
    };
    let now = "2026-11-22T10:00:30Z";
    let rows = [
        (
            "blocked, and all but the newest are skipped",
            with(None, json!({})),
            State::Blocked,
            Some("2026-11-22T10:00:00Z"),
        ),
        (
            "blocked, with a backlog of two",
            with(Some(("backlog", "2")), json!({})),
            State::Blocked,
            Some("2026-11-22T09:00:00Z"),
        ),
        (
            "blocked, and each slot is skipped before the blocker ends",
            with(None, json!({"startingDeadlineSeconds": 10})),
            State::Blocked,
            None,
        ),
        (
            "over its stuck-after",
            with(Some(("stuck-after", "1h")), json!({})),
            State::RunStuck,
            Some("2026-11-22T10:00:00Z"),
        ),
    ];
    for (sentence, change, state, want) in rows {
        let told = explained(&change, vec![job(today, "cj", None)], now);
        assert_eq!((told.state, told.late_since), (state, want.map(instant)), "{sentence}: {}", told.why);
        assert!(told.since().is_some(), "{sentence}");
    }
    let missed = json!({"spec": {"schedule": "0 * * * *", "startingDeadlineSeconds": 20}, "status": {"lastScheduleTime": today}});
    let told = explained(&missed, vec![], now);
    let since = told.since();
    assert_eq!((told.state, told.late_since), (State::Missed, None), "{}", told.why);
    assert_eq!(since.as_deref(), Some("missed its runs for 7h00m"));
    let overdue = json!({"spec": {"schedule": "0 * * * *"}, "status": {"lastScheduleTime": "2026-11-22T08:00:00Z"}});
    let told = explained(&overdue, vec![], now);
    assert_eq!((told.state, told.late_since), (State::Overdue, Some(instant("2026-11-22T09:00:00Z"))), "{}", told.why);
}

/// What a state is ended by, as `explain NAME` and the page say it.
#[test]
fn each_state_that_needs_attention_names_one_command() {
    let today = "2026-11-22T02:00:00Z";
    let forbid = json!({"spec": {"concurrencyPolicy": "Forbid", "schedule": "0 * * * *"}, "status": {"lastScheduleTime": today, "active": [active(today)]}});
    let (forbid_every_hour, waiting, going) = (forbid.clone(), forbid.clone(), forbid.clone());
    let deleting = Arc::new(Job { deleting: true, ..Job::clone(&job(today, "cj", None)) });
    let unstarted = Arc::new(Job { start_time: None, ..Job::clone(&job(today, "cj", None)) });
    let rows: Vec<Told<'_, Option<&str>>> = vec![
        ("waits", json!({}), vec![job(today, "cj", Some("Complete"))], State::Waiting, None),
        (
            "fails",
            json!({}),
            vec![job(today, "cj", Some("Failed"))],
            State::Failing,
            Some("kubectl cronjob trigger -n shop nightly"),
        ),
        (
            "blocked",
            forbid,
            vec![job(today, "cj", None)],
            State::Blocked,
            Some("kubectl delete job -n shop nightly-29921880"),
        ),
        (
            "blocked, and the run before failed",
            waiting.clone(),
            vec![job(today, "cj", None), job("2026-11-21T02:00:00Z", "cj", Some("Failed"))],
            State::Failing,
            Some("kubectl delete job -n shop nightly-29921880"),
        ),
        (
            "blocked by one that is being deleted",
            going,
            vec![deleting],
            State::Blocked,
            Some("kubectl get job -n shop nightly-29921880 -o jsonpath='{.metadata.finalizers}'"),
        ),
        (
            "blocked, and the run that is due starts no more",
            merged(forbid_every_hour, &json!({"spec": {"startingDeadlineSeconds": 10}})),
            vec![job(today, "cj", None)],
            State::Blocked,
            Some("kubectl describe job -n shop nightly-29921880"),
        ),
        (
            "suspended",
            json!({"spec": {"suspend": true}}),
            vec![],
            State::Suspended,
            Some("kubectl cronjob resume -n shop nightly"),
        ),
        (
            "unreadable",
            json!({"spec": {"schedule": "x"}}),
            vec![],
            State::UnparseableSchedule,
            Some("kubectl edit cronjob -n shop nightly"),
        ),
        (
            "not started",
            json!({}),
            vec![unstarted],
            State::NotStarted,
            Some("kubectl describe job -n shop nightly-29921880"),
        ),
        (
            "overdue",
            json!({"status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}}),
            vec![],
            State::Overdue,
            Some("kubectl get events -n shop --field-selector=involvedObject.name=nightly"),
        ),
    ];
    for (sentence, change, jobs, state, command) in rows {
        let told = explained(&change, jobs, "2026-11-22T10:00:30Z");
        let remedy = told.remedy("kubectl cronjob", "").map(|remedy| remedy.command);
        assert_eq!((told.state, remedy.as_deref()), (state, command), "{sentence}");
    }
    let templates = [
        (
            "parallelism",
            json!(0),
            Some(
                "kubectl patch cronjob -n shop nightly --type=merge -p '{\"spec\":{\"jobTemplate\":{\"spec\":{\"parallelism\":1}}}}'",
            ),
        ),
        (
            "suspend",
            json!(true),
            Some(
                "kubectl patch cronjob -n shop nightly --type=merge -p '{\"spec\":{\"jobTemplate\":{\"spec\":{\"suspend\":false}}}}'",
            ),
        ),
        ("completions", json!(1), Some("kubectl delete job -n shop nightly-29921880")),
    ];
    for (field, value, command) in templates {
        let change = merged(waiting.clone(), &json!({"spec": {"jobTemplate": {"spec": { field: value }}}}));
        let held = Job {
            suspended: field != "parallelism",
            parallelism_is_zero: field == "parallelism",
            ..Job::clone(&job(today, "cj", None))
        };
        let told = explained(&change, vec![Arc::new(held)], "2026-11-22T10:00:30Z");
        let remedy = told.remedy("kubectl cronjob", "").map(|remedy| remedy.command);
        assert_eq!((told.state, remedy.as_deref()), (State::Blocked, command), "{field}");
        assert_eq!(told.logs(""), None, "a Job that waits has no Pods: {field}");
    }
    let suspended = CronJob {
        controller_kind: ControllerKind::Tutorial,
        ..CronJob::clone(&cron_job(&json!({"spec": {"suspend": true}})))
    };
    let remedy =
        explain(&Facts::of(Arc::new(suspended), InCharge::Own, vec![]), Zone::UTC, instant(NOW)).remedy("p", "");
    assert_eq!(
        remedy.unwrap().command,
        "kubectl patch cronjob.batch.tutorial.kubebuilder.io -n shop nightly --type=merge -p '{\"spec\":{\"suspend\":false}}'"
    );
    let hostile = json!({"metadata": {"name": "a; rm -rf /"}, "spec": {"schedule": "x"}});
    let remedy = explained(&hostile, vec![], NOW).remedy("kubectl cronjob", " --context=a").unwrap();
    assert_eq!(remedy.command, "kubectl edit cronjob -n shop 'a; rm -rf /' --context=a");
}

/// Each minute a Job starts that runs for ten; it is five seconds past ten.
#[test]
fn runs_of_which_more_are_unfinished_at_each_start_pile_up() {
    let run = |minute: u32| job(&format!("2026-11-22T09:{minute:02}:00Z"), "cj", None);
    let newest = || job("2026-11-22T10:00:00Z", "cj", None);
    let running = |minutes: std::ops::Range<u32>| minutes.map(run).chain([newest()]).collect::<Vec<_>>();
    let ended = |minute: u32, end: &str| {
        let mut job = Job::clone(&job(&format!("2026-11-22T09:{minute:02}:00Z"), "cj", Some("Complete")));
        job.completion_time = Some(instant(end));
        (job.succeeded, Arc::new(job)).1
    };
    let succeeded = json!({"status": {"lastSuccessfulTime": "2026-11-22T09:59:50Z"}});
    let policy = |policy: &str| json!({"spec": {"concurrencyPolicy": policy}});
    let by_hand = |minute: u32| {
        let mut job = Job::clone(&run(minute));
        job.of_backfill = true;
        Arc::new(job)
    };
    let rows: Vec<Told<'_, &str>> = vec![
        (
            "more at each of three starts",
            json!({}),
            running(57..60),
            State::PilesUp,
            "Its Jobs pile up: 4 Jobs have not ended, and at each of the last 3 starts there were more than at the one before. The \
             oldest, Job nightly-29922357, has been running for 3m05s. It waits for the next run.",
        ),
        ("more at two starts", json!({}), running(58..60), State::Waiting, ""),
        (
            "as many at each",
            json!({}),
            [vec![ended(57, "2026-11-22T09:59:30Z")], running(58..60)].concat(),
            State::Waiting,
            "",
        ),
        (
            "one has ended since the last start",
            json!({}),
            [vec![ended(56, "2026-11-22T10:00:03Z")], running(57..60)].concat(),
            State::Waiting,
            "",
        ),
        ("one ended that was deleted", succeeded, running(57..60), State::Waiting, ""),
        ("no failed one is kept", json!({"spec": {"failedJobsHistoryLimit": 0}}), running(57..60), State::Waiting, ""),
        ("those of a backfill", json!({}), (57..60).map(by_hand).chain([newest()]).collect(), State::Waiting, ""),
        ("under Replace", policy("Replace"), running(57..60), State::NeverEnds, ""),
    ];
    for (sentence, change, jobs, state, why) in rows {
        let told = explained(&minutely(&change), jobs, "2026-11-22T10:00:05Z");
        assert_eq!(told.state, state, "{sentence}: {}", told.why);
        assert!(told.why.starts_with(why), "{sentence}: {}", told.why);
    }
    for (schedule, deadline, what) in [
        ("@daily", Some(0), "spec.startingDeadlineSeconds leaves it time"),
        ("0 0 31 2 *", None, "its schedule has a time"),
    ] {
        let change = json!({"spec": {"schedule": schedule, "startingDeadlineSeconds": deadline}});
        let remedy = explained(&minutely(&change), vec![], NOW).remedy("p", "").unwrap();
        assert!(remedy.what.contains(what), "{schedule}: {}", remedy.what);
    }
    let told = explained(&minutely(&json!({})), running(40..60), "2026-11-22T10:00:05Z");
    let lines = told.lines();
    let effect = "starts Job nightly-29922361, beside nightly-29922340, nightly-29922341 and 19 more if they still run";
    assert_eq!(told.next_run.as_ref().unwrap().effect, effect);
    let shown: Vec<&str> = lines.iter().filter(|line| line.contains("nightly-299223")).map(|line| &**line).collect();
    let label = lines.iter().filter(|line| line.starts_with("Running:")).count();
    let more = lines.iter().find(|line| line.trim() == "and 16 more");
    assert!(
        label == 5 && more.is_some() && shown.iter().any(|line| line.contains("-29922340, for 20m05s")),
        "{lines:#?}"
    );
    assert!(
        told.why.contains("21 Jobs have not ended, and at each of at least the last 20 starts there were more"),
        "{}",
        told.why
    );
    let remedy = told.remedy("kubectl cronjob", "").map(|remedy| remedy.command);
    assert_eq!(remedy.as_deref(), Some("kubectl edit cronjob -n shop nightly"));
    let last = merged(minutely(&json!({})), &json!({"status": {"lastSuccessfulTime": "2026-11-22T09:30:00Z"}}));
    let failed = job("2026-11-22T09:56:00Z", "cj", Some("Failed"));
    let told = explained(&last, [vec![failed], running(57..60)].concat(), "2026-11-22T10:00:05Z");
    assert_eq!(told.state, State::Failing, "a failure comes first: {}", told.why);
}

/// The Lease says what the controller manages, or a Warning of the controller does where the Lease leaves it out.
#[test]
fn handed_over_cron_job_that_no_controller_runs_needs_attention() {
    let managed = json!({"metadata": {"annotations": {"cronjob-controller.dev/managed": "true"}}});
    let facts = Facts { in_charge: InCharge::NotManaged, ..facts(&managed, vec![]) };
    let told = explain(&facts, Zone::UTC, instant(NOW));
    assert_eq!((told.state, told.state.urgency()), (State::NoController, Urgency::Stuck));
    assert_eq!(
        told.summary,
        "No controller runs it: it is handed over (cronjob-controller.dev/managed), and cronjob-controller runs with --manage=all. \
         No run starts until it is taken back, or a controller runs with --manage=annotated."
    );
    let remedy = told.remedy("kubectl cronjob", "").map(|remedy| remedy.command);
    assert_eq!(remedy.as_deref(), Some("kubectl cronjob migrate takeback -n shop nightly"));
    assert!(told.next_run.is_none());
    let suspended = merged(managed, &json!({"spec": {"suspend": true}}));
    let facts = Facts { in_charge: InCharge::NotManaged, ..self::facts(&suspended, vec![]) };
    let told = explain(&facts, Zone::UTC, instant(NOW));
    assert_eq!(told.state, State::Suspended, "a user has stopped it");
    assert!(told.why.ends_with("It is suspended, too (spec.suspend)."), "{}", told.why);
    let remedy = told.remedy("kubectl cronjob", "").map(|remedy| remedy.command);
    assert_eq!(remedy.as_deref(), Some("kubectl cronjob migrate takeback -n shop nightly"));
}

/// The last success was on the 19th. A freeze ended on the 22nd at one o'clock, and the run after it failed.
#[test]
fn slots_of_a_freeze_count_among_those_without_a_success() {
    let change =
        json!({"status": {"lastScheduleTime": "2026-11-22T02:00:00Z", "lastSuccessfulTime": "2026-11-19T02:01:00Z"}});
    let failed = job("2026-11-22T02:00:00Z", "cj", Some("Failed"));
    let mut restrictions = crate::cli::restrictions::Restrictions::default();
    let metadata = json!({
        "name": "shop", "uid": "", "annotations": {"cronjob-controller.dev/not-before": "2026-11-22T01:00:00Z"},
    });
    restrictions.add(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string());
    let cron_job = restrictions.applied(cron_job(&change), InCharge::Own);
    let told = explain(&Facts::of(cron_job, InCharge::Own, vec![failed]), Zone::UTC, instant(NOW));
    assert!(told.why.starts_with("No success for 3d07h (3 slots, 1 failed run still known): "), "{}", told.why);
}

/// Its history is deleted at once, and Events tell how the runs ended.
#[test]
fn runs_that_failed_and_whose_jobs_are_gone_count_by_their_events() {
    let change = json!({
        "spec": {"schedule": "0 * * * *"},
        "status": {"lastScheduleTime": "2026-11-22T09:00:00Z", "lastSuccessfulTime": "2026-11-22T05:00:30Z"},
    });
    let saw = |slot: &str, condition: &str| Said {
        time: instant(&slot.replace(":00Z", ":40Z")),
        count: 1,
        reason: "SawCompletedJob".to_owned(),
        message: format!("Saw completed job: {}, condition: {condition}", name_of(slot)),
    };
    let (eight, nine) = ("2026-11-22T08:00:00Z", "2026-11-22T09:00:00Z");
    let manual =
        Said { message: "Saw completed job: nightly-manual, condition: Failed".to_owned(), ..saw(nine, "Failed") };
    let rows = [
        ("both failed", vec![saw(nine, "Failed"), saw(eight, "Failed")], State::Failing, 2),
        ("the last succeeded", vec![saw(nine, "Complete"), saw(eight, "Failed")], State::Waiting, 1),
        ("a manual one failed", vec![manual], State::Waiting, 0),
        ("nothing is said", vec![], State::Waiting, 0),
    ];
    for (sentence, events, state, failures) in rows {
        let facts = Facts { told: read::told_runs(&events), ..facts(&change, vec![]) };
        let told = explain(&facts, Zone::UTC, instant("2026-11-22T09:30:00Z"));
        assert_eq!(told.state, state, "{sentence}: {}", told.why);
        if state == State::Failing {
            let want = format!(
                "No success for 4h29m (4 slots, {failures} failed runs still known): a run failed, and its Job is gone"
            );
            assert!(told.why.starts_with(&want), "{sentence}: {}", told.why);
        }
    }
}

/// Every hour; the last success was at five o'clock, and the Job of nine o'clock is gone.
#[test]
fn outcome_of_a_run_whose_job_is_gone_is_that_of_its_event_and_slots_count_until_now() {
    let change = json!({
        "spec": {"schedule": "0 * * * *"},
        "status": {"lastScheduleTime": "2026-11-22T09:00:00Z", "lastSuccessfulTime": "2026-11-22T05:00:30Z"},
    });
    let created = |count| Said { count, ..event(0, 0, "SuccessfulCreate", "Created job", "") };
    let saw = |end| event(0, 40, "SawCompletedJob", "Saw completed job:", end);
    let rows = [
        ("it failed", vec![saw(", condition: Failed")], "failed, and no longer exists"),
        ("it succeeded", vec![saw(", condition: Complete")], "succeeded, and no longer exists"),
        ("no Event tells", vec![created(1)], "no longer exists"),
        (
            "the Event may not have been written",
            vec![created(25)],
            "no longer exists; of so many Events some may not have been written (25 at once, then one in five minutes)",
        ),
    ];
    for (sentence, events, outcome) in rows {
        let facts = facts(&change, vec![]).with_events(&events, Ok(Vec::new()));
        let told = explain(&facts, Zone::UTC, instant("2026-11-22T12:30:00Z"));
        assert_eq!(told.last_run.as_ref().map(|run| &*run.outcome), Some(outcome), "{sentence}");
        let slots = told.no_success.map(|no_success| no_success.slots);
        assert_eq!(slots, (sentence == "it failed").then_some(7), "{sentence}");
    }
}

/// Every minute, at ten o'clock and five seconds; of nine o'clock. A case, a change, the Jobs and the Events.
type Lost<'a> = (&'a str, Value, Vec<Arc<Job>>, Vec<Said>, State, &'a str);

/// Events of a minute after nine: the reason, the text before the name of the Job, and what follows it.
fn event(minute: u32, second: u32, reason: &str, before: &str, after: &str) -> Said {
    let name = name_of(&format!("2026-11-22T09:{minute:02}:00Z"));
    Said {
        time: instant(&format!("2026-11-22T09:{minute:02}:{second:02}Z")),
        count: 1,
        reason: reason.to_owned(),
        message: format!("{before} {name}{after}"),
    }
}

#[test]
fn a_run_whose_job_is_gone_without_a_success_is_no_success_and_may_not_have_failed() {
    let created = |minute| event(minute, 0, "SuccessfulCreate", "Created job", "");
    let missing = |minute| event(minute, 30, "MissingJob", "Active job went missing:", "");
    let deleted = |minute| event(minute, 59, "SuccessfulDelete", "Deleted job", "");
    let now_running = || job("2026-11-22T10:00:00Z", "cj", None);
    let ten =
        json!({"status": {"lastScheduleTime": "2026-11-22T10:00:00Z", "lastSuccessfulTime": "2026-11-22T09:30:10Z"}});
    let last =
        json!({"status": {"lastScheduleTime": "2026-11-22T09:59:00Z", "lastSuccessfulTime": "2026-11-22T09:30:10Z"}});
    let none_kept = |change: &Value| merged(json!({"spec": {"failedJobsHistoryLimit": 0}}), change);
    let ttl = |seconds: u32, change: &Value| {
        merged(json!({"spec": {"jobTemplate": {"spec": {"ttlSecondsAfterFinished": seconds}}}}), change)
    };
    let policy = |policy: &str, change: &Value| merged(json!({"spec": {"concurrencyPolicy": policy}}), change);
    let succeeded = |at: &str, change: &Value| merged(change.clone(), &json!({"status": {"lastSuccessfulTime": at}}));
    let is_active = merged(last.clone(), &json!({"status": {"active": [active("2026-11-22T09:59:00Z")]}}));
    let gone = "No success for 29m55s (30 slots): Job nightly-29922359 is gone, and no success of it is known.";
    let earlier = "No success for 29m55s (30 slots): Job nightly-29922358 is gone, and no success of it is known.";
    let fine = "It runs on schedule and waits for the next run.";
    let (starting, replaced) =
        ("The run of", "No run has ended for 29m55s (30 slots): each is deleted when the next one");
    let rows: Vec<Lost<'_>> = vec![
        ("no failed one is kept", none_kept(&last), vec![], vec![], State::Failing, gone),
        (
            "and one that succeeded before is",
            none_kept(&last),
            vec![ended_at("2026-11-22T09:30:00Z", "2026-11-22T09:30:10Z")],
            vec![],
            State::Failing,
            gone,
        ),
        ("it may have been deleted by hand", last.clone(), vec![], vec![], State::Starting, starting),
        ("it was", none_kept(&last), vec![], vec![missing(59)], State::Starting, starting),
        ("it is active", none_kept(&is_active), vec![], vec![], State::Starting, starting),
        ("a Job that fails expires", ttl(10, &last), vec![], vec![], State::Failing, gone),
        ("it has not expired yet", ttl(3600, &last), vec![], vec![], State::Starting, starting),
        (
            "the clocks differ",
            succeeded("2026-11-22T09:58:57Z", &none_kept(&last)),
            vec![],
            vec![],
            State::Starting,
            starting,
        ),
        (
            "the next one runs, and an Event tells of the last",
            none_kept(&ten),
            vec![now_running()],
            vec![created(58)],
            State::Failing,
            earlier,
        ),
        ("no Event does", none_kept(&ten), vec![now_running()], vec![], State::Waiting, fine),
        (
            "it succeeded",
            succeeded("2026-11-22T09:58:30Z", &none_kept(&ten)),
            vec![now_running()],
            vec![created(58)],
            State::Waiting,
            fine,
        ),
        (
            "Replace, and failed ones are kept",
            policy("Replace", &ten),
            vec![now_running()],
            vec![created(58)],
            State::NeverEnds,
            replaced,
        ),
        (
            "Replace, and none is: it failed, or the next one replaced it",
            policy("Replace", &none_kept(&ten)),
            vec![now_running()],
            vec![deleted(59), created(58)],
            State::Failing,
            earlier,
        ),
        (
            "Replace, and the one before the last succeeded",
            policy("Replace", &succeeded("2026-11-22T09:58:30Z", &none_kept(&ten))),
            vec![now_running()],
            vec![created(59)],
            State::Waiting,
            fine,
        ),
        (
            "Replace, and each that fails expires soon",
            policy("Replace", &ttl(30, &ten)),
            vec![now_running()],
            vec![],
            State::Waiting,
            fine,
        ),
    ];
    for (sentence, change, jobs, events, state, why) in rows {
        let facts = Facts { told: read::told_runs(&events), ..facts(&minutely(&change), jobs) };
        let told = explain(&facts, Zone::UTC, instant("2026-11-22T10:00:05Z"));
        assert_eq!(told.state, state, "{sentence}: {}", told.why);
        assert!(told.why.starts_with(why), "{sentence}: {}", told.why);
    }
}

/// With `stuck-after` a run is deleted, which is no end. The last success was at 9:30.
#[test]
fn runs_that_are_all_deleted_as_stuck_never_end() {
    let deleted = |minute| event(minute, 59, "SuccessfulDelete", "Deleted job", "");
    let stuck = |value: &str, slot: &str| {
        json!({
            "metadata": {"annotations": {"cronjob-controller.dev/stuck-after": value}},
            "spec": {"concurrencyPolicy": "Forbid"},
            "status": {"lastScheduleTime": slot, "lastSuccessfulTime": "2026-11-22T09:30:10Z", "active": [active(slot)]},
        })
    };
    let (now, before) = ("2026-11-22T10:00:00Z", "2026-11-22T09:59:00Z");
    let rows = [
        ("the next one just started", "2m, delete", now, vec![deleted(57)], State::NeverEnds),
        ("it blocks a run", "2m, delete", before, vec![deleted(57)], State::NeverEnds),
        ("none is known to have been deleted", "2m, delete", now, vec![], State::Waiting),
        ("one was that ended", "2m, delete", now, vec![deleted(30)], State::Waiting),
        ("they may run for longer", "20m, delete", now, vec![deleted(57)], State::Waiting),
        ("it is only reported", "2m", now, vec![deleted(57)], State::Waiting),
    ];
    for (sentence, value, slot, events, state) in rows {
        let facts = Facts {
            told: read::told_runs(&events),
            ..facts(&minutely(&stuck(value, slot)), vec![job(slot, "cj", None)])
        };
        let told = explain(&facts, Zone::UTC, instant("2026-11-22T10:00:05Z"));
        assert_eq!(told.state, state, "{sentence}: {}", told.why);
        if state == State::NeverEnds {
            let words =
                "slots): each is deleted when it is stuck (cronjob-controller.dev/stuck-after). Job nightly-299223";
            assert!(told.why.starts_with("No run has ended for 29m55s (") && told.why.contains(words), "{}", told.why);
            let remedy = told.remedy("p", "").unwrap();
            assert!(remedy.what.contains("stuck-after"), "{sentence}: {}", remedy.what);
        }
    }
}

/// The Job of a slot that succeeded.
fn ended_at(slot: &str, end: &str) -> Arc<Job> {
    let end = Some(instant(end));
    Arc::new(Job { completion_time: end, succeeded: true, ..Job::clone(&job(slot, "cj", Some("Complete"))) })
}

#[test]
fn refusal_of_the_job_of_an_overdue_run_is_quoted() {
    let change = json!({"spec": {"schedule": "0 * * * *"}, "status": {"lastScheduleTime": "2026-11-22T08:00:00Z"}});
    let refused = |time: &str| Said {
        time: instant(time),
        count: 3,
        reason: "FailedCreate".to_owned(),
        message: "Error creating job: admission webhook \"guard\" denied the request: quota.".to_owned(),
    };
    let quoted = "the API server refuses the Job: admission webhook \"guard\" denied the request: quota.";
    for (time, is_quoted) in [("2026-11-22T09:00:05Z", true), ("2026-11-22T08:59:00Z", false)] {
        let facts = Facts { warnings: Ok(vec![refused(time)]), ..facts(&change, vec![]) };
        let told = explain(&facts, Zone::UTC, instant("2026-11-22T09:30:00Z"));
        assert_eq!((told.state, told.why.contains(quoted)), (State::Overdue, is_quoted), "{time}: {}", told.why);
    }
    // As soon as it is known, and not only after a minute.
    for (time, state) in [("2026-11-22T09:00:05Z", State::Overdue), ("2026-11-22T08:59:00Z", State::Starting)] {
        let facts = Facts { warnings: Ok(vec![refused(time)]), ..facts(&change, vec![]) };
        let told = explain(&facts, Zone::UTC, instant("2026-11-22T09:00:20Z"));
        assert_eq!((told.state, told.why.contains(quoted)), (state, state == State::Overdue), "{time}: {}", told.why);
    }
}

/// The Lease says that this controller runs only what is handed over, and the in-tree controller has none.
#[test]
fn cron_job_that_no_controller_runs_any_more_is_to_be_handed_over() {
    let change = json!({"spec": {"schedule": "0 * * * *"}, "status": {"lastScheduleTime": "2026-11-22T08:00:00Z"}});
    let leases = [lease("cronjob-controller", "pod-a", "2026-11-22T09:29:59.000000Z")];
    let lease = Leases::of(&leases).controller(ControllerKind::CronJob, "shop", false);
    let facts = Facts { in_charge: InCharge::InTree, lease, ..facts(&change, vec![]) };
    let told = explain(&facts, Zone::UTC, instant("2026-11-22T09:30:00Z"));
    let why = "cronjob-controller runs only what is handed over, and no lease shows that the in-tree controller runs.";
    assert!(told.why.ends_with(why), "{}", told.why);
    assert_eq!(told.remedy("X", "").unwrap().command, "X migrate handover -n shop nightly");
}

#[test]
fn commands_lead_to_the_cluster_that_was_asked() {
    let mut told = explained(&json!({"spec": {"suspend": true}}), vec![], NOW);
    told.shell = Shell { program: "kubectl cronjob", flags: cluster_flags(None, Some("prod")) };
    let lines = told.lines().join("\n");
    assert!(lines.contains("kubectl cronjob resume -n shop nightly --context=prod"), "{lines}");
}

/// A sentence, the last slot that started, further changes, the Jobs, and the state, its words, since when, and for how long in a row.
type MissedRow<'a> = (&'a str, &'a str, Value, Vec<Arc<Job>>, State, &'a str, Option<&'a str>, Option<&'a str>);

#[test]
fn runs_that_were_missed_at_the_end_are_a_state_of_their_own() {
    let friday = "2026-11-20T02:00:00Z";
    let (today, within) = ("2026-11-22T02:00:00Z", "within 600 s (spec.startingDeadlineSeconds)");
    let ended_late = |slot: &str, end: &str| {
        let mut ended = Job::clone(&job(slot, "cj", Some("Complete")));
        (ended.completion_time, ended.succeeded) = (Some(instant(end)), true);
        Arc::new(ended)
    };
    let managed = |operation: &str| {
        json!({"metadata": {
            "managedFields": [{"manager": "kubectl", "operation": "Update", "time": operation,
                "fieldsV1": {"f:spec": {"f:schedule": {}, "f:suspend": {}}}}],
        }})
    };
    let forbid = json!({"spec": {"concurrencyPolicy": "Forbid"}});
    let rows: [MissedRow<'_>; 7] = [
        (
            "one",
            "2026-11-21T02:00:00Z",
            json!({}),
            vec![],
            State::Missed,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was missed: it did not start {within}. It waits for the next run.",
            Some(today),
            Some("missed its runs for 8h00m"),
        ),
        (
            "two",
            friday,
            json!({}),
            vec![],
            State::Missed,
            "The last 2 runs were missed, those of Sat 2026-11-21 02:00:00 +00:00 to Sun 2026-11-22 02:00:00 +00:00: none started \
             {within}. It waits for the next run.",
            Some("2026-11-21T02:00:00Z"),
            Some("missed its runs for 1d08h"),
        ),
        (
            "a Job kept the first of them from starting",
            friday,
            forbid.clone(),
            vec![ended_late(friday, "2026-11-21T12:00:00Z")],
            State::Missed,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was missed: it did not start {within}. It waits for the next run.",
            Some(today),
            Some("missed its runs for 8h00m"),
        ),
        (
            "a Job kept the last one from starting",
            "2026-11-21T02:00:00Z",
            forbid,
            vec![ended_late("2026-11-21T02:00:00Z", "2026-11-22T03:00:00Z")],
            State::Waiting,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was skipped: Job nightly-29920440 ran, concurrencyPolicy is Forbid, and it did \
             not end {within}. It waits for the next run.",
            None,
            None,
        ),
        (
            "the schedule was changed, or it was resumed, after the slot",
            "2026-11-21T02:00:00Z",
            managed("2026-11-22T09:00:00Z"),
            vec![],
            State::Waiting,
            "The run of Sun 2026-11-22 02:00:00 +00:00 did not start {within}, and its schedule, its zone or its suspension has been \
             written since. It waits for the next run.",
            None,
            None,
        ),
        (
            "between the last two slots",
            friday,
            managed("2026-11-21T09:00:00Z"),
            vec![],
            State::Missed,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was missed: it did not start {within}. It waits for the next run.",
            Some(today),
            Some("missed its runs for 8h00m"),
        ),
        (
            "and before it",
            "2026-11-21T02:00:00Z",
            managed("2026-11-22T01:00:00Z"),
            vec![],
            State::Missed,
            "The run of Sun 2026-11-22 02:00:00 +00:00 was missed: it did not start {within}. It waits for the next run.",
            Some(today),
            Some("missed its runs for 8h00m"),
        ),
    ];
    for (sentence, last, more, jobs, state, why, due_since, since) in rows {
        let mut change = json!({"spec": {"startingDeadlineSeconds": 600}, "status": {"lastScheduleTime": last}});
        merge_patch(&mut change, &more);
        let told = explain(&facts(&change, jobs), Zone::UTC, instant(NOW));
        assert_eq!((told.state, told.why.as_str()), (state, &*why.replace("{within}", within)), "{sentence}");
        assert_eq!((told.due_since, told.since().as_deref()), (due_since.map(instant), since), "{sentence}");
    }
    let change =
        json!({"spec": {"startingDeadlineSeconds": 600}, "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}});
    let said = Said {
        time: instant(today),
        count: 9,
        reason: "FailedCreate".to_owned(),
        message: "Error creating job: full.".to_owned(),
    };
    let told = explain(&Facts { warnings: Ok(vec![said]), ..facts(&change, vec![]) }, Zone::UTC, instant(NOW));
    assert!(told.why.contains(". The API server refuses the Job: full. It waits"), "{}", told.why);
    let remedy = told.remedy("p", "").unwrap();
    assert_eq!(remedy.what, "The next run starts as usual. See what kept the last ones from starting.");
    assert!(remedy.command.starts_with("kubectl get events -n shop "), "{}", remedy.command);
}

#[test]
#[allow(clippy::type_complexity)] // A table's row.
fn what_is_not_fine_says_since_when() {
    let forbid =
        json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}});
    let mut blocked = forbid.clone();
    blocked["status"]["active"] = json!([active("2026-11-21T02:00:00Z")]);
    let minute = |minute: u32| job(&format!("2026-11-22T09:{minute:02}:00Z"), "cj", None);
    let minutely = |policy: &str| {
        json!({
            "spec": {"schedule": "* * * * *", "concurrencyPolicy": policy},
            "status": {"lastScheduleTime": "2026-11-22T09:59:00Z", "lastSuccessfulTime": "2026-11-22T09:30:05Z"},
        })
    };
    let rows: [(&str, Value, Vec<Arc<Job>>, Option<&str>); 9] = [
        (
            "runs that never end, in the words of the explanation",
            merged(
                minutely("Replace"),
                &json!({"spec": {"schedule": "*/5 * * * *"}, "status": {"lastScheduleTime": "2026-11-22T10:00:00Z"}}),
            ),
            vec![job("2026-11-22T10:00:00Z", "cj", None)],
            Some("no run has ended for 29m55s (6 slots)"),
        ),
        (
            "a pile, in the words of the explanation",
            merged(minutely("Allow"), &json!({"status": {"lastScheduleTime": "2026-11-22T10:00:00Z"}})),
            vec![minute(57), minute(58), minute(59), job("2026-11-22T10:00:00Z", "cj", None)],
            Some("4 Jobs have not ended, nightly-29922357 for 3m00s"),
        ),
        ("on schedule", json!({}), vec![], None),
        ("suspended", json!({"spec": {"suspend": true}}), vec![], None),
        (
            "failing",
            json!({}),
            vec![job("2026-11-22T02:00:00Z", "cj", Some("Failed"))],
            Some("no success since its creation 20d22h ago (21 slots, 1 failed run still known)"),
        ),
        ("overdue", json!({"status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}}), vec![], Some("due for 8h00m")),
        (
            "blocked",
            blocked,
            vec![job("2026-11-21T02:00:00Z", "cj", None)],
            Some("blocked for 8h00m by nightly-29920440, which has been running for 1d08h"),
        ),
        ("a bad schedule", json!({"spec": {"schedule": "0 25 * * *"}}), vec![], Some("last run 8h00m ago")),
        (
            "a bad schedule from the beginning",
            json!({"spec": {"schedule": "0 25 * * *"}, "status": {"lastScheduleTime": null}}),
            vec![],
            Some("it never ran"),
        ),
    ];
    for (sentence, change, jobs, want) in rows {
        let told = explain(&facts(&change, jobs), Zone::UTC, instant(NOW));
        assert_eq!(told.since().as_deref(), want, "{sentence}: {:?}", told.state);
        if sentence.ends_with("the explanation") {
            let words = want.unwrap_or_default().split(", ").next().unwrap_or_default();
            assert!(told.why.to_lowercase().contains(&words.to_lowercase()), "{sentence}: {}", told.why);
        }
    }
}
