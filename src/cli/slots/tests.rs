#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::fates::until_deadline;
use super::*;
use crate::api::Object as _;
use crate::api::ObjectName;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};
use crate::api::policy::{BACKLOG, EXCLUDE, MAX_CONCURRENT, NOT_BEFORE, PAUSE_AFTER_FAILURES, SPREAD, STUCK_AFTER};
use crate::cli::explain::DROPPED;
use crate::cli::explain::Facts;
use crate::cli::explain::read::Said;
use crate::cli::explain::tests::{cron_job, facts, instant, job, name_of};
use crate::cli::next::cron_jobs::Given;
use crate::cli::restrictions::Restrictions;

fn day(day: u32) -> String {
    format!("2026-11-{day:02}T02:00:00Z")
}

fn said(reason: &str, message: &str) -> Said {
    Said { time: instant("2026-11-22T02:00:01Z"), count: 1, reason: reason.to_owned(), message: message.to_owned() }
}

/// The slots since a day, at 10:00 on the 22nd: each with what is said of it.
fn told(since: u32, change: &Value, jobs: &[(u32, Option<&str>)], events: Vec<Said>) -> Vec<(String, Fate, String)> {
    let mut jobs: Vec<_> = jobs.iter().map(|(of, end)| job(&day(*of), "cj", *end)).collect();
    jobs.extend(change["takenBy"].as_str().map(|owner| job(&day(22), owner, None)));
    let facts = facts(change, jobs).with_events(&events, Ok(Vec::new()));
    let now = instant("2026-11-22T10:00:00Z");
    let slots = slots(&[Known { facts, events }], Zone::UTC, Since::At(Given::Instant(instant(&day(since)))), now);
    let entry = |entry: &Entry| (format!("{}x{}", entry.from.format("%d"), entry.count), entry.fate, entry.why.clone());
    slots.cron_jobs[0].slots.iter().map(entry).collect()
}

/// A writer of `spec.suspend`, at a time.
fn suspend_written(time: &str) -> Value {
    json!([{"manager": "kubectl-patch", "time": time, "fieldsV1": {"f:spec": {"f:suspend": {}}}}])
}

/// A suspended CronJob that ran on a day, and when `spec.suspend` was written.
fn suspended(written: &str, last: u32) -> Value {
    json!({
        "metadata": {"managedFields": suspend_written(written)},
        "spec": {"suspend": true}, "status": {"lastScheduleTime": day(last)},
    })
}

type Row<'a> = (&'a str, u32, Value, &'a [(u32, Option<&'a str>)], Vec<Said>, Vec<(&'a str, Fate, String)>);

#[test]
fn fate_of_each_slot_follows_from_jobs_events_and_the_status() {
    let kept = json!({"spec": {"successfulJobsHistoryLimit": 10, "failedJobsHistoryLimit": 10}});
    let missed = "no controller started it before a later run";
    let gone = "its Job, if there was one, no longer exists, and no Event tells of it";
    let deadline = "it could not start before its startingDeadlineSeconds had passed";
    let suspended_now = "it is suspended now (spec.suspend), and nothing says whether it was then";
    let rows: Vec<Row> = vec![
        (
            "the Jobs are there",
            20,
            kept.clone(),
            &[(21, Some("Failed")), (22, None)],
            vec![],
            vec![
                ("21x1", Fate::Started, "failed".to_owned()),
                ("22x1", Fate::Started, "has been running for 8h00m".to_owned()),
            ],
        ),
        (
            "a gap between Jobs that are kept",
            18,
            kept.clone(),
            &[(19, Some("Complete")), (22, Some("Complete"))],
            vec![],
            vec![
                ("19x1", Fate::Started, "succeeded".to_owned()),
                ("20x2", Fate::Missed, missed.to_owned()),
                ("22x1", Fate::Started, "succeeded".to_owned()),
            ],
        ),
        (
            "older than what the history limits keep",
            19,
            json!({"spec": {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}}),
            &[(22, Some("Complete"))],
            vec![],
            vec![("20x2", Fate::Unknown, gone.to_owned()), ("22x1", Fate::Started, "succeeded".to_owned())],
        ),
        (
            "Events tell",
            20,
            json!({"spec": {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}}),
            &[],
            vec![said("SuccessfulCreate", &format!("Created job {}", name_of(&day(21))))],
            vec![("21x2", Fate::Started, "its Job no longer exists, and no success of it is known".to_owned())],
        ),
        (
            "Events tell how runs ended whose Jobs are gone",
            18,
            json!({"spec": {"concurrencyPolicy": "Replace"}}),
            &[],
            vec![
                said("SawCompletedJob", &format!("Saw completed job: {}, condition: Complete", name_of(&day(19)))),
                said("SawCompletedJob", &format!("Saw completed job: {}, condition: Failed", name_of(&day(20)))),
                said("SuccessfulDelete", &format!("(combined from similar events): Deleted job {}", name_of(&day(21)))),
            ],
            vec![
                ("19x1", Fate::Started, "succeeded, and its Job no longer exists".to_owned()),
                ("20x1", Fate::Started, "failed, and its Job no longer exists".to_owned()),
                ("21x2", Fate::Started, "its Job no longer exists".to_owned()),
            ],
        ),
        (
            "Replace once its Events are aggregated: nothing says that a controller missed a run",
            18,
            json!({"spec": {"concurrencyPolicy": "Replace", "failedJobsHistoryLimit": 10, "successfulJobsHistoryLimit": 10}}),
            &[(22, None)],
            vec![said("SuccessfulDelete", &format!("(combined from similar events): Deleted job {}", name_of(&day(21))))],
            vec![
                (
                    "19x2",
                    Fate::Unknown,
                    "its Job, if there was one, was deleted at the latest when a later run started: concurrencyPolicy is Replace"
                        .to_owned(),
                ),
                ("21x1", Fate::Started, "its Job no longer exists".to_owned()),
                ("22x1", Fate::Started, "has been running for 8h00m".to_owned()),
            ],
        ),
        (
            "a deadline that passed",
            20,
            json!({"spec": {"startingDeadlineSeconds": 60}, "status": {"lastScheduleTime": day(20)}}),
            &[],
            vec![said("MissSchedule", "Missed scheduled time to start a job: Sat, 21 Nov 2026 02:00:00 UTC")],
            vec![
                ("21x1", Fate::Missed, deadline.to_owned()),
                ("22x1", Fate::Missed, "it did not start before its startingDeadlineSeconds had passed".to_owned()),
            ],
        ),
        (
            "suspended",
            20,
            suspended("2026-11-21T12:00:00Z", 21),
            &[],
            vec![],
            vec![
                ("21x1", Fate::Started, "its Job no longer exists".to_owned()),
                ("22x1", Fate::Suspended, "it is suspended now (spec.suspend)".to_owned()),
            ],
        ),
        (
            "suspended after it came",
            19,
            suspended("2026-11-21T12:00:00Z", 20),
            &[],
            vec![],
            vec![
                ("20x1", Fate::Started, "its Job no longer exists".to_owned()),
                ("21x1", Fate::Unknown, suspended_now.to_owned()),
                ("22x1", Fate::Suspended, "it is suspended now (spec.suspend)".to_owned()),
            ],
        ),
        (
            "suspended after a Job had blocked it",
            19,
            merged(&suspended("2026-11-21T12:00:00Z", 20), &json!({"spec": {"concurrencyPolicy": "Forbid"}})),
            &[(20, None)],
            vec![],
            vec![
                ("20x1", Fate::Started, "has been running for 2d08h".to_owned()),
                ("21x1", Fate::Skipped, format!("{} ran, and concurrencyPolicy is Forbid", name_of(&day(20)))),
                ("22x1", Fate::Suspended, "it is suspended now (spec.suspend)".to_owned()),
            ],
        ),
        (
            "nothing says since when it is suspended",
            20,
            json!({"spec": {"suspend": true}, "status": {"lastScheduleTime": day(21)}}),
            &[],
            vec![],
            vec![
                ("21x1", Fate::Started, "its Job no longer exists".to_owned()),
                ("22x1", Fate::Unknown, suspended_now.to_owned()),
            ],
        ),
        (
            "suspended by the annotation, that was written after spec.suspend",
            19,
            json!({
                "metadata": {
                    "annotations": {MANAGED_ANNOTATION: "true", SUSPEND_ANNOTATION: "true"},
                    "managedFields": [
                        {"manager": "cli", "time": "2026-11-10T12:00:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}}},
                        {"manager": "kubectl-annotate", "time": "2026-11-21T12:00:00Z", "fieldsV1": {
                            "f:metadata": {"f:annotations": {format!("f:{SUSPEND_ANNOTATION}"): {}}},
                        }},
                    ],
                },
                "spec": {"suspend": true}, "status": {"lastScheduleTime": day(20)},
            }),
            &[],
            vec![],
            vec![
                ("20x1", Fate::Started, "its Job no longer exists".to_owned()),
                ("21x1", Fate::Unknown, suspended_now.replace("spec.suspend", SUSPEND_ANNOTATION)),
                ("22x1", Fate::Suspended, format!("it is suspended now ({SUSPEND_ANNOTATION})")),
            ],
        ),
        (
            "a suspension that is over may have kept it from starting",
            18,
            merged(&kept, &json!({"metadata": {"managedFields": suspend_written("2026-11-20T12:00:00Z")}})),
            &[(19, Some("Complete")), (22, Some("Complete"))],
            vec![],
            vec![
                ("19x1", Fate::Started, "succeeded".to_owned()),
                (
                    "20x1",
                    Fate::Unknown,
                    format!("{missed}, or it was suspended: spec.suspend may have been changed since"),
                ),
                ("21x1", Fate::Missed, missed.to_owned()),
                ("22x1", Fate::Started, "succeeded".to_owned()),
            ],
        ),
        (
            "paused, and in the words of the policy alone",
            20,
            json!({
                "metadata": {"annotations": {PAUSE_AFTER_FAILURES: "1"}}, "status": {"lastScheduleTime": day(20)},
            }),
            &[(20, Some("Failed"))],
            vec![],
            vec![
                ("21x1", Fate::Skipped, format!("1 Job failed before ({PAUSE_AFTER_FAILURES} is 1)")),
                (
                    "22x1",
                    Fate::Held,
                    format!("it is held until a run succeeds: 1 Job failed before ({PAUSE_AFTER_FAILURES} is 1)"),
                ),
            ],
        ),
        (
            "paused, and two slots wait",
            20,
            json!({
                "metadata": {"annotations": {PAUSE_AFTER_FAILURES: "1", BACKLOG: "2"}},
                "spec": {"concurrencyPolicy": "Forbid"},
                "status": {"lastScheduleTime": day(20)},
            }),
            &[(20, Some("Failed"))],
            vec![],
            vec![(
                "21x2",
                Fate::Held,
                format!("it is held until a run succeeds: 1 Job failed before ({PAUSE_AFTER_FAILURES} is 1)"),
            )],
        ),
        (
            "a Job of another owner has the name of the newest",
            20,
            json!({"status": {"lastScheduleTime": day(20)}, "takenBy": "other"}),
            &[(20, Some("Complete"))],
            vec![],
            vec![
                ("21x1", Fate::Missed, "it did not start before a later slot came".to_owned()),
                (
                    "22x1",
                    Fate::Held,
                    format!("it is held until Job {} is gone, which has another owner", name_of(&day(22))),
                ),
            ],
        ),
        (
            "blocked",
            20,
            json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"lastScheduleTime": day(21)}}),
            &[(21, None)],
            vec![],
            vec![
                ("21x1", Fate::Started, "has been running for 1d08h".to_owned()),
                (
                    "22x1",
                    Fate::Waits,
                    format!("it waits until {} has ended (concurrencyPolicy is Forbid)", name_of(&day(21))),
                ),
            ],
        ),
        (
            "blocked, and a newer slot waits",
            20,
            json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"lastScheduleTime": day(20)}}),
            &[(20, None)],
            vec![],
            vec![
                ("21x1", Fate::Skipped, format!("{} ran, and concurrencyPolicy is Forbid", name_of(&day(20)))),
                (
                    "22x1",
                    Fate::Waits,
                    format!("it waits until {} has ended (concurrencyPolicy is Forbid)", name_of(&day(20))),
                ),
            ],
        ),
        (
            "as many Jobs run as may",
            21,
            json!({"metadata": {"annotations": {MAX_CONCURRENT: "1"}}, "status": {"lastScheduleTime": day(21)}}),
            &[(21, None)],
            vec![],
            vec![(
                "22x1",
                Fate::Waits,
                format!("it waits until {} has ended (cronjob-controller.dev/max-concurrent is 1)", name_of(&day(21))),
            )],
        ),
        (
            "blocked until its deadline, while the Job goes on",
            21,
            json!({
                "spec": {"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 60},
                "status": {"lastScheduleTime": day(21)},
            }),
            &[(21, None)],
            vec![],
            vec![("22x1", Fate::Skipped, until_deadline(&name_of(&day(21)), "concurrencyPolicy is Forbid"))],
        ),
        (
            "blocked until its deadline, as an Event says",
            21,
            json!({
                "spec": {"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 60},
                "status": {"lastScheduleTime": day(21)},
            }),
            &[(21, None)],
            vec![said("MissSchedule", "Missed scheduled time to start a job: Sun, 22 Nov 2026 02:00:00 UTC")],
            vec![("22x1", Fate::Skipped, until_deadline(&name_of(&day(21)), "concurrencyPolicy is Forbid"))],
        ),
        (
            "waited, and started when the Job that blocked it had ended",
            18,
            json!({
                "metadata": {"annotations": {BACKLOG: "2"}},
                "spec": {"concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0},
                "status": {"lastScheduleTime": day(21)},
            }),
            &[(19, None)],
            vec![],
            vec![
                ("19x1", Fate::Started, "has been running for 3d08h".to_owned()),
                ("20x1", Fate::Unknown, gone.to_owned()),
                ("21x1", Fate::Started, "its Job no longer exists, and no success of it is known".to_owned()),
                (
                    "22x1",
                    Fate::Waits,
                    format!("it waits until {} has ended (cronjob-controller.dev/backlog is 2)", name_of(&day(19))),
                ),
            ],
        ),
        (
            "an Event says that a change passed it over",
            20,
            kept.clone(),
            &[(20, Some("Complete")), (22, Some("Complete"))],
            vec![said("PassedOver", "Passed over the run of 2026-11-21T02:00:00Z: it was due before an annotation was changed")],
            vec![
                ("21x1", Fate::Skipped, "a change of the CronJob passed it over".to_owned()),
                ("22x1", Fate::Started, "succeeded".to_owned()),
            ],
        ),
        (
            "overdue",
            21,
            json!({"status": {"lastScheduleTime": day(21)}}),
            &[],
            vec![],
            vec![("22x1", Fate::Due, "no controller has started it; explain with the name says more".to_owned())],
        ),
    ];
    let rows = rows.into_iter().chain([passed_over()]);
    for (sentence, since, change, jobs, events, want) in rows {
        let want: Vec<_> = want.into_iter().map(|(slots, fate, why)| (slots.to_owned(), fate, why)).collect();
        assert_eq!(told(since, &change, jobs, events), want, "{sentence}");
    }
}

/// A change of the schedule, recorded on the 21st at noon.
fn passed_over() -> Row<'static> {
    let policy = json!({ "cronjob-controller.dev/after-change": "wait" });
    let changed = cron_job(&json!({ "metadata": { "annotations": policy.clone() } }));
    let record = changed.counted_at(instant("2026-11-21T12:00:00Z")).to_string();
    let mut annotations = policy;
    annotations["cronjob-controller.dev/counted-from"] = record.into();
    let change = json!({
        "metadata": { "annotations": annotations },
        "spec": { "startingDeadlineSeconds": 600 },
        "status": { "lastScheduleTime": day(20) },
    });
    let why = |why: &str| why.to_owned();
    (
        "passed over by a change, and then by a deadline",
        19,
        change,
        &[],
        vec![],
        vec![
            ("20x1", Fate::Started, why("its Job no longer exists")),
            ("21x1", Fate::Skipped, why("a change of the CronJob passed it over, or a policy did")),
            ("22x1", Fate::Missed, why("it did not start before its startingDeadlineSeconds had passed")),
        ],
    )
}

/// Forbid never waits for a Job of a backfill, nor for one that a user made. One that is deleted as stuck is in the way until then.
/// With `@every`, a slot follows from the one before, whatever time is asked about.
#[test]
fn slots_of_an_interval_are_those_that_its_jobs_have() {
    let of = |slots: &[&str]| -> Vec<_> {
        let ended = |slot: &&str| job(&format!("2026-11-22T{slot}Z"), "cj", Some("Complete"));
        slots.iter().map(ended).collect()
    };
    // When it was created, the slots of its Jobs, since when, and the slots that are told until 10:00.
    let rows: [(&str, &[&str], &str, &[&str]); 5] = [
        (
            "08:59:10",
            &["09:55:40", "09:57:10", "09:58:40"],
            "09:54:00",
            &["09:54:10", "09:55:40", "09:57:10", "09:58:40"],
        ),
        ("08:59:10", &["09:55:40", "09:57:10", "09:58:40"], "09:56:30", &["09:57:10", "09:58:40"]),
        ("08:59:10", &["09:55:40", "09:58:40"], "09:55:00", &["09:55:40", "09:57:10", "09:58:40"]),
        // A deadline has moved it.
        ("08:59:10", &["09:55:40", "09:58:00"], "09:55:00", &["09:55:40", "09:57:10", "09:58:00", "09:59:30"]),
        ("09:54:10", &[], "09:55:00", &["09:55:40", "09:57:10", "09:58:40"]),
    ];
    for (created, jobs, since, want) in rows {
        let last = jobs.last().map(|slot| format!("2026-11-22T{slot}Z"));
        let change = json!({
            "metadata": {"creationTimestamp": format!("2026-11-22T{created}Z")},
            "spec": {"schedule": "@every 90s", "timeZone": null, "successfulJobsHistoryLimit": 10},
            "status": {"lastScheduleTime": last},
        });
        let known = Known { facts: facts(&change, of(jobs)), events: vec![] };
        let history = History::new(&known, Zone::UTC, instant("2026-11-22T10:00:00Z"));
        let time = |judged: &Judged| judged.slot.format("%H:%M:%S").to_string();
        let (judged, _) = history.judged(instant(&format!("2026-11-22T{since}Z")), history.now, MAX_SLOTS);
        assert_eq!(judged.iter().map(time).collect::<Vec<_>>(), want, "{jobs:?} since {since}");
        let newest = history.newest(2);
        assert_eq!(newest.iter().map(time).collect::<Vec<_>>(), want[want.len() - 2..], "{jobs:?}: the newest");
    }
}

#[test]
fn a_job_that_blocks_nothing_does_not_explain_a_slot_that_did_not_start() {
    let of_slot = Job { creation_timestamp: instant("2026-11-21T01:00:00Z"), ..Job::clone(&job(&day(15), "cj", None)) };
    let (began, by_hand) = (Some(of_slot.creation_timestamp), ObjectName::new("shop", "by-hand"));
    let one = json!({MAX_CONCURRENT: "1"});
    let stuck = json!({STUCK_AFTER: "1h, delete"});
    let rows = [
        ("one of a slot", of_slot.clone(), json!({}), Fate::Waits),
        ("one of a backfill", Job { of_backfill: true, ..of_slot.clone() }, json!({}), Fate::Due),
        (
            "one of a backfill, and max-concurrent",
            Job { of_backfill: true, ..of_slot.clone() },
            one.clone(),
            Fate::Waits,
        ),
        ("one by hand", Job { name: by_hand.clone(), ..of_slot.clone() }, json!({}), Fate::Due),
        ("one by hand, and max-concurrent", Job { name: by_hand, ..of_slot.clone() }, one, Fate::Waits),
        ("one that is stuck", Job { start_time: began, ..of_slot }, stuck, Fate::Due),
    ];
    for (sentence, job, annotations, fate) in rows {
        let change = json!({
            "metadata": {"annotations": annotations},
            "spec": {"concurrencyPolicy": "Forbid"},
            "status": {"lastScheduleTime": day(20)},
        });
        let jobs = vec![Arc::new(job)];
        let facts = facts(&change, jobs);
        let now = instant("2026-11-22T10:00:00Z");
        let known = Known { facts, events: Vec::new() };
        let (judged, _) = History::new(&known, Zone::UTC, now).judged(instant(&day(21)), now, 10);
        assert_eq!(judged.last().map(|judged| judged.fate), Some(fate), "{sentence}: {judged:?}");
    }
}

#[test]
fn slot_that_its_spread_delays_is_told_when_it_is_due_and_is_not_late_then() {
    let change = json!({
        "metadata": {
            "annotations": {"cronjob-controller.dev/spread": "24h"},
            "managedFields": [{"manager": "kubectl", "time": "2026-11-01T12:00:00Z"}],
        },
        "status": {"lastScheduleTime": day(21)},
    });
    let cron_job = cron_job(&change);
    let due = cron_job.due(instant(&day(22)));
    let told = |seconds: i64, jobs: Vec<_>| {
        let facts = facts(&change, jobs);
        let now = due + TimeDelta::seconds(seconds);
        let slots =
            slots(&[Known { facts, events: Vec::new() }], Zone::UTC, Since::At(Given::Instant(instant(&day(21)))), now);
        slots.cron_jobs[0].slots.iter().map(|entry| (entry.fate, entry.why.clone())).collect::<Vec<_>>()
    };
    assert_eq!(told(-1, vec![]), []);
    assert_eq!(told(0, vec![]), [(Fate::Due, "it is about to start".to_owned())]);
    let mut started = Job::clone(&job(&day(22), "cj", Some("Complete")));
    started.creation_timestamp = due;
    assert_eq!(told(60, vec![Arc::new(started)]), [(Fate::Started, "succeeded".to_owned())]);
}

#[test]
fn report_names_the_cron_job_and_joins_slots() {
    let facts = facts(&suspended("2026-11-11T12:00:00Z", 10), Vec::new());
    let known = [Known { facts, events: Vec::new() }];
    let report =
        slots(&known, Zone::UTC, Since::At(Given::Instant(instant(&day(20)))), instant("2026-11-22T10:00:00Z"));
    assert_eq!(
        report.lines(),
        [
            "Since Fri 2026-11-20 02:00:00 +00:00:",
            "",
            "CronJob shop/nightly (controller not known)",
            "  Sat 2026-11-21 02:00:00 +00:00 to Sun 2026-11-22 02:00:00 +00:00 (2 slots)   suspended   it is suspended now (spec.suspend)",
        ]
    );
}

#[test]
fn steps_of_the_slots_grow_with_their_number_and_with_that_of_jobs_and_events() {
    let now = instant("2026-11-22T10:00:00Z");
    let change = json!({
        "spec": {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 10_000},
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    let steps = |hours: i64| {
        let slot = |hour: i64| (now - TimeDelta::hours(hour)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        // Every second slot has a Job, and every third an Event.
        let jobs = (0..hours).step_by(2).map(|hour| job(&slot(hour), "cj", Some("Complete"))).collect();
        let created = |hour| said("SuccessfulCreate", &format!("Created job {}", name_of(&slot(hour))));
        let events = (0..hours).step_by(3).map(created).collect();
        let facts = facts(&change, jobs);
        let known = [Known { facts, events }];
        let since = now - TimeDelta::hours(hours);
        let (steps, slots) =
            apimachinery::steps::of(|| slots(&known, Zone::UTC, Since::At(Given::Instant(since)), now));
        assert_eq!(i64::try_from(slots.cron_jobs[0].slots.iter().map(|entry| entry.count).sum::<usize>()), Ok(hours));
        steps
    };
    let (once, twice) = (steps(500), steps(1_000));
    assert!(once > 500 && twice <= once * 2 + once / 4, "{once} steps, and {twice} for twice as much");
}

/// With Forbid, the run of the 21st may have begun late, and its Job be gone.
#[test]
fn run_that_ended_before_the_next_slot_kept_none_from_starting_late() {
    let forbid = json!({"spec": {"concurrencyPolicy": "Forbid", "failedJobsHistoryLimit": 0}});
    let gone = (Fate::Unknown, "its Job, if there was one, no longer exists, and no Event tells of it".to_owned());
    let blocked = (Fate::Skipped, format!("{} ran, and concurrencyPolicy is Forbid", name_of(&day(20))));
    let rows = [
        ("until half a minute later", "2026-11-21T02:00:30Z", gone.clone()),
        ("until a second before the next slot", "2026-11-22T01:59:59Z", gone.clone()),
        ("until the next slot, by a clock that may be ahead", "2026-11-22T02:00:04Z", gone),
        ("until after the next slot", "2026-11-22T02:00:05Z", blocked),
    ];
    for (sentence, end, want) in rows {
        let object = |slot: &str, end: &str| {
            let mut object = json!({
                "metadata": {
                    "name": name_of(slot), "namespace": "shop", "uid": name_of(slot), "resourceVersion": "1",
                    "creationTimestamp": slot, "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
                },
                "status": {"startTime": slot, "completionTime": end, "conditions": [{"type": "Complete", "status": "True"}]},
            });
            object["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cj", "controller": true}]);
            Arc::new(Job::decode(&object.to_string(), &crate::api::Interner::default()).unwrap())
        };
        let jobs = vec![object(&day(20), end), object(&day(22), "2026-11-22T02:00:09Z")];
        let known = [Known { facts: facts(&forbid, jobs), events: vec![] }];
        let slots =
            slots(&known, Zone::UTC, Since::At(Given::Instant(instant(&day(20)))), instant("2026-11-22T10:00:00Z"));
        let told = &slots.cron_jobs[0].slots;
        let got = told.iter().find(|entry| entry.from == instant(&day(21))).unwrap();
        assert_eq!((got.fate, got.why.clone()), want, "{sentence}");
    }
}

/// A Job that began at one time and ended at another, with this condition.
fn ran(slot: &str, condition: &str, end: &str) -> Arc<Job> {
    let mut object = json!({
        "metadata": {
            "name": name_of(slot), "namespace": "shop", "uid": name_of(slot), "resourceVersion": "1",
            "creationTimestamp": slot, "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cj", "controller": true}],
        },
        "status": {"startTime": slot, "conditions": [{"type": condition, "status": "True", "lastTransitionTime": end}]},
    });
    if condition == "Complete" {
        object["status"]["completionTime"] = end.into();
    }
    Arc::new(Job::decode(&object.to_string(), &crate::api::Interner::default()).unwrap())
}

/// Every half hour; the Job of ten o'clock ended at 11:15, so that those of 10:30 and 11:00 did not start.
#[test]
fn a_policy_and_not_a_controller_left_a_slot_out_behind_a_job_however_it_ended() {
    let forbid = json!({"concurrencyPolicy": "Forbid"});
    let [half_past, eleven] = ["2026-11-22T10:30:00Z", "2026-11-22T11:00:00Z"].map(instant);
    let blocker = name_of("2026-11-22T10:00:00Z");
    let because = |rule: &str| format!("{blocker} ran, and {rule}");
    let rows = [
        (
            "Forbid, and it succeeded",
            forbid.clone(),
            json!({}),
            "Complete",
            "forbid",
            because("concurrencyPolicy is Forbid"),
        ),
        (
            "Forbid, and it failed",
            forbid.clone(),
            json!({}),
            "Failed",
            "forbid",
            because("concurrencyPolicy is Forbid"),
        ),
        (
            "a backlog of none",
            forbid,
            json!({BACKLOG: "0"}),
            "Failed",
            "passed_over",
            because("concurrencyPolicy is Forbid; cronjob-controller.dev/backlog is 0"),
        ),
        (
            "as many as may run",
            json!({}),
            json!({MAX_CONCURRENT: "1"}),
            "Failed",
            "max_concurrent",
            "1 Job ran, and cronjob-controller.dev/max-concurrent is 1".to_owned(),
        ),
    ];
    for (sentence, spec, annotations, end, reason, why) in rows {
        let mut change = json!({"metadata": {"annotations": annotations}, "spec": spec});
        change["spec"]["schedule"] = "*/30 * * * *".into();
        change["spec"]["successfulJobsHistoryLimit"] = 10.into();
        change["spec"]["failedJobsHistoryLimit"] = 10.into();
        change["status"] = json!({"lastScheduleTime": "2026-11-22T11:30:00Z"});
        let jobs = vec![
            ran("2026-11-22T09:30:00Z", "Complete", "2026-11-22T09:31:00Z"),
            ran("2026-11-22T09:00:00Z", "Failed", "2026-11-22T09:01:00Z"),
            ran("2026-11-22T10:00:00Z", end, "2026-11-22T11:15:00Z"),
            ran("2026-11-22T11:30:00Z", "Complete", "2026-11-22T11:31:00Z"),
        ];
        let known = Known { facts: facts(&change, jobs), events: Vec::new() };
        let now = instant("2026-11-22T11:45:00Z");
        let (judged, _) = History::new(&known, Zone::UTC, now).judged(instant("2026-11-22T10:00:00Z"), now, 10);
        let left_out: Vec<_> = judged.iter().filter(|judged| judged.fate != Fate::Started).collect();
        assert_eq!(left_out.iter().map(|judged| judged.slot).collect::<Vec<_>>(), [half_past, eleven], "{sentence}");
        for judged in left_out {
            assert_eq!((judged.fate, judged.reason, &*judged.why), (Fate::Skipped, reason, &*why), "{sentence}");
        }
    }
}

#[test]
fn unreadable_events_are_said_of_the_slots() {
    let mut facts = facts(&json!({}), vec![job(&day(22), "cj", Some("Complete"))]);
    facts.warnings = Err("read /api/v1/events: events is forbidden".to_owned());
    let known = [Known { facts, events: Vec::new() }];
    let since = Since::At(Given::Instant(instant(&day(21))));
    let lines = slots(&known, Zone::UTC, since, instant("2026-11-22T10:00:00Z")).lines();
    let want =
        "  The Events cannot be read, which tell of runs whose Jobs are gone: read /api/v1/events: events is forbidden";
    assert!(lines.iter().any(|line| line == want), "{lines:#?}");
}

/// A case, the Namespace's annotations, a change of the CronJob, its Jobs; the strip, and what is said of the slots without a Job.
type InNamespace<'a> = (&'a str, Value, Value, &'a [(u32, Option<&'a str>)], &'a str, &'a [&'a str]);

fn merged(change: &Value, with: &Value) -> Value {
    let mut change = change.clone();
    apiserver::merge_patch(&mut change, with);
    change
}

/// A change of the CronJob, and when its freeze was written.
fn merged_writer(change: &Value, written: &str) -> Value {
    let mut change = change.clone();
    change["freezeWritten"] = written.into();
    change
}

#[test]
fn slots_of_a_restricted_namespace_stay_in_the_history() {
    let frozen = "its Namespace was frozen before it started";
    let excluded = "its Namespace leaves it out (cronjob-controller.dev/exclude)";
    let gone = "its Job, if there was one, no longer exists, and no Event tells of it";
    let before = |end: &str| json!({NOT_BEFORE: end});
    let kept = json!({"spec": {"successfulJobsHistoryLimit": 10, "failedJobsHistoryLimit": 10}});
    let ran_last = |of: u32| json!({"spec": kept["spec"], "status": {"lastScheduleTime": day(of)}});
    let pausing = |limit: &str| json!({"metadata": {"annotations": {PAUSE_AFTER_FAILURES: limit}}});
    let (noon, may_pause) = ("2026-11-21T12:00:00Z", format!("{PAUSE_AFTER_FAILURES} may have kept it from starting"));
    let may_pause = format!("{may_pause}, or no controller started it");
    let one_failed = format!("1 Job failed before ({PAUSE_AFTER_FAILURES} is 1)");
    let invalid = "no controller started it before its Namespace was frozen, or a pause or an invalid value held it, of which an Event tells";
    let maybe = "no controller started it before its Namespace was frozen, or it was suspended: spec.suspend may have been changed since";
    let rows: [InNamespace<'_>; 15] = [
        (
            "a freeze",
            before("2026-11-24T00:00:00Z"),
            ran_last(20),
            &[(19, Some("Complete")), (20, Some("Failed"))],
            "\u{2713}\u{2717}**",
            &[frozen],
        ),
        (
            "a thaw, and no run since",
            before("2026-11-22T09:00:00Z"),
            ran_last(20),
            &[(19, Some("Complete")), (20, Some("Failed"))],
            "\u{2713}\u{2717}**",
            &[frozen],
        ),
        (
            "a thaw, and a run since",
            before("2026-11-22T00:00:00Z"),
            ran_last(22),
            &[(19, Some("Complete")), (20, Some("Failed")), (22, Some("Complete"))],
            "\u{2713}\u{2717}*\u{2713}",
            &[frozen],
        ),
        (
            "nothing tells whether a slot had a Job",
            before("2026-11-22T00:00:00Z"),
            json!({"spec": {"successfulJobsHistoryLimit": 1}}),
            &[(22, Some("Complete"))],
            "???\u{2713}",
            &[gone],
        ),
        (
            "a missed run after a thaw",
            before("2026-11-21T00:00:00Z"),
            ran_last(22),
            &[(19, Some("Complete")), (22, Some("Complete"))],
            "\u{2713}*!\u{2713}",
            &[frozen, "no controller started it before a later run"],
        ),
        (
            "a suspension comes first",
            before("2026-11-24T00:00:00Z"),
            suspended("2026-11-21T12:00:00Z", 21),
            &[(21, Some("Complete"))],
            "??\u{2713}\u{2016}",
            &[gone, "it is suspended now (spec.suspend)"],
        ),
        (
            "dates",
            json!({EXCLUDE: "Sat"}),
            ran_last(22),
            &[(19, Some("Complete")), (20, Some("Failed")), (22, Some("Complete"))],
            "\u{2713}\u{2717}\u{25cb}\u{2713}",
            &[excluded],
        ),
        (
            "a thaw and a later start, and no Job has ended",
            before("2026-11-22T00:00:00Z"),
            json!({"status": {"lastScheduleTime": day(22)}}),
            &[(19, None), (20, None), (22, None)],
            "\u{25cf}\u{25cf}*\u{25cf}",
            &[frozen],
        ),
        (
            "a slot that was missed before the freeze began",
            before("2026-11-24T00:00:00Z"),
            merged_writer(&ran_last(20), "2026-11-21T12:00:00Z"),
            &[(19, Some("Complete")), (20, Some("Failed"))],
            "\u{2713}\u{2717}!*",
            &["no controller started it before its Namespace was frozen", frozen],
        ),
        (
            "a slot that a pause held before the freeze began",
            before("2026-11-24T00:00:00Z"),
            merged_writer(&merged(&ran_last(20), &pausing("1")), noon),
            &[(20, Some("Failed"))],
            "?\u{2717}\u{25cb}*",
            &[gone, &one_failed, frozen],
        ),
        (
            "a pause that may be over held it",
            before("2026-11-24T00:00:00Z"),
            merged_writer(&merged(&ran_last(20), &pausing("2")), noon),
            &[(20, Some("Failed"))],
            "?\u{2717}?*",
            &[gone, &may_pause, frozen],
        ),
        (
            "a value of the Namespace that could not be read may have held it, as the Event InvalidPolicy says",
            before("2026-11-24T00:00:00Z"),
            merged_writer(&ran_last(20), noon),
            &[(19, Some("Complete")), (20, Some("Failed"))],
            "\u{2713}\u{2717}?*",
            &[invalid, frozen],
        ),
        (
            "a suspension that is over may have held it",
            before("2026-11-24T00:00:00Z"),
            merged_writer(
                &merged(
                    &ran_last(20),
                    &json!({"metadata": {"managedFields": suspend_written("2026-11-21T11:00:00Z")}}),
                ),
                noon,
            ),
            &[(19, Some("Complete")), (20, Some("Failed"))],
            "\u{2713}\u{2717}?*",
            &[maybe, frozen],
        ),
        (
            "the same, where the freeze replaced another that an Event shows",
            before("2026-11-24T00:00:00Z"),
            merged_writer(&ran_last(20), "2026-11-22T03:00:00Z"),
            &[(19, Some("Complete")), (20, Some("Failed"))],
            "\u{2713}\u{2717}!*",
            &["no controller started it before its Namespace was frozen", frozen],
        ),
        (
            "a running Job, in a freeze",
            before("2026-11-24T00:00:00Z"),
            json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"lastScheduleTime": day(20)}}),
            &[(20, None)],
            "*\u{25cf}**",
            &[frozen],
        ),
    ];
    for (sentence, annotations, change, jobs, strip, want) in rows {
        let jobs = jobs.iter().map(|(of, end)| job(&day(*of), "cj", *end)).collect();
        let mut restrictions = Restrictions::default();
        let now = instant("2026-11-22T10:00:00Z");
        let mut change = change;
        let seen = Said { time: instant("2026-11-22T01:00:00Z"), ..said("Frozen", "The Namespace shop is frozen") };
        let unreadable = at("2026-11-21T11:00:00Z", "InvalidPolicy", "It does not run");
        let events = [("an Event shows", seen), ("InvalidPolicy", unreadable)];
        let events = events.into_iter().filter(|(word, _)| sentence.contains(word)).map(|(_, said)| said).collect();
        let written = change.as_object_mut().and_then(|change| change.remove("freezeWritten"));
        let managers = json!([{
            "manager": "cronjob-controller-cli", "time": written,
            "fieldsV1": {"f:metadata": {"f:annotations": { format!("f:{NOT_BEFORE}"): {} }}},
        }]);
        let managers = if written.is_some() { managers } else { json!([]) };
        let metadata = json!({"name": "shop", "uid": "", "annotations": annotations, "managedFields": managers});
        restrictions.add(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string());
        let cron_job = Arc::new(restrictions.restricted(CronJob::clone(&cron_job(&change)), InCharge::Own));
        let known = Known { facts: Facts { cron_job, in_charge: InCharge::Own, ..facts(&change, jobs) }, events };
        let judged = History::new(&known, Zone::UTC, now).newest(4);
        assert_eq!(judged.iter().map(Judged::letter).collect::<String>(), strip, "{sentence}");
        let mut whys: Vec<_> = judged.iter().filter(|judged| judged.job.is_none()).map(|judged| &*judged.why).collect();
        whys.dedup();
        assert_eq!(whys, want, "{sentence}");
        let since = Since::At(Given::Instant(instant(&day(19)) - TimeDelta::seconds(1)));
        let told = slots(&[known], Zone::UTC, since, now);
        assert_eq!(told.cron_jobs[0].slots.iter().map(|entry| entry.count).sum::<usize>(), 4, "{sentence}");
    }
}

/// A case, a change, the Jobs, the Events, when the freeze was written and its end; the strip of four days, and why.
type Kept<'a> = (&'a str, Value, Vec<Arc<Job>>, Vec<Said>, Option<(&'a str, &'a str)>, &'a str, Vec<&'a str>);

fn at(time: &str, reason: &str, message: &str) -> Said {
    Said { time: instant(time), ..said(reason, message) }
}

#[test]
fn what_kept_a_slot_from_starting_is_told_by_freezes_names_and_events() {
    let frozen = "its Namespace was frozen before it started";
    let gone = "its Job, if there was one, no longer exists, and no Event tells of it";
    let taken = "Job nightly-29920440 existed already and has another owner";
    let missed = "no controller started it before a later run";
    let (rest, ended) =
        ("its Job no longer exists, and no success of it is known", "failed, and its Job no longer exists");
    let policy = |annotations: Value, last: u32| {
        json!({
            "metadata": {"annotations": annotations}, "spec": {"concurrencyPolicy": "Forbid"},
            "status": {"lastScheduleTime": day(last)},
        })
    };
    let kept = json!({"spec": {"successfulJobsHistoryLimit": 10, "failedJobsHistoryLimit": 10}, "status": {"lastScheduleTime": day(22)}});
    let of = |of: u32, end: Option<&str>| job(&day(of), "cj", end);
    let of_another = |created: &str| {
        Arc::new(Job { creation_timestamp: instant(created), ..Job::clone(&job(&day(21), "other", None)) })
    };
    let begun = Some(("2026-11-22T01:00:00Z", "2026-11-24T00:00:00Z"));
    let thawed = Some(("2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z"));
    let one = json!({"spec": {"successfulJobsHistoryLimit": 1}, "status": {"lastScheduleTime": day(22)}});
    let created = at("2026-11-19T02:00:01Z", "SuccessfulCreate", &format!("Created job {}", name_of(&day(19))));
    let saw = |time: &str| {
        at(time, "SawCompletedJob", &format!("Saw completed job: {}, condition: Failed", name_of(&day(19))))
    };
    let none = json!({"spec": {"concurrencyPolicy": "Forbid", "failedJobsHistoryLimit": 0}, "status": {"lastScheduleTime": day(22)}});
    let mut stuck = none.clone();
    stuck["metadata"] = json!({"annotations": {STUCK_AFTER: "1h, delete"}});
    let rows: Vec<Kept<'_>> = vec![
        (
            "it waited when the freeze began",
            policy(json!({}), 20),
            vec![of(20, None)],
            vec![],
            begun,
            "?\u{25cf}**",
            vec![gone, frozen],
        ),
        ("two did", policy(json!({BACKLOG: "2"}), 19), vec![of(19, None)], vec![], begun, "\u{25cf}***", vec![frozen]),
        (
            "one was passed over before",
            policy(json!({}), 19),
            vec![of(19, None)],
            vec![],
            begun,
            "\u{25cf}\u{25cb}**",
            vec!["nightly-29917560 ran, and concurrencyPolicy is Forbid", frozen],
        ),
        (
            "with a backlog of none it waited for a minute",
            policy(json!({BACKLOG: "0"}), 20),
            vec![of(20, None)],
            vec![],
            begun,
            "?\u{25cf}\u{25cb}*",
            vec![gone, "nightly-29919000 ran, and concurrencyPolicy is Forbid", frozen],
        ),
        (
            "a thaw, and an Event of the freeze",
            policy(json!({}), 19),
            vec![of(19, None)],
            vec![at("2026-11-21T12:00:00Z", "Frozen", "The Namespace shop is frozen")],
            Some(("2026-11-22T06:00:00Z", "2026-11-22T06:00:00Z")),
            "\u{25cf}\u{25cb}**",
            vec!["nightly-29917560 ran, and concurrencyPolicy is Forbid", frozen],
        ),
        (
            "a thaw, and a backfill that pruned the Jobs, and no Event of the freeze",
            one.clone(),
            vec![of(22, Some("Complete"))],
            vec![],
            thawed,
            "???\u{2713}",
            vec![gone],
        ),
        (
            "a thaw, and a backfill that pruned the Jobs",
            one.clone(),
            vec![of(22, Some("Complete"))],
            vec![at("2026-11-20T12:00:00Z", "Frozen", "The Namespace shop is frozen")],
            thawed,
            "??*\u{2713}",
            vec![gone, frozen],
        ),
        (
            "a thaw, and a backfill of it that pruned the Jobs",
            one,
            vec![of(22, Some("Complete"))],
            vec![at("2026-11-20T12:00:00Z", "Frozen", "The Namespace shop is frozen")],
            thawed,
            "???\u{2713}",
            vec![
                gone,
                "its Namespace was frozen before it started; a backfill covered it since, and its Job, if there was one, no longer exists",
            ],
        ),
        (
            "a Job of another owner has the name",
            kept.clone(),
            vec![
                of(19, Some("Complete")),
                of(20, Some("Complete")),
                of_another("2026-11-21T01:00:00Z"),
                of(22, Some("Complete")),
            ],
            vec![],
            None,
            "\u{2713}\u{2713}!\u{2713}",
            vec![taken],
        ),
        (
            "one has it that is younger",
            kept,
            vec![
                of(19, Some("Complete")),
                of(20, Some("Complete")),
                of_another("2026-11-21T03:00:00Z"),
                of(22, Some("Complete")),
            ],
            vec![],
            None,
            "\u{2713}\u{2713}!\u{2713}",
            vec![missed],
        ),
        (
            "Forbid behind a Job that is gone, of which Events tell",
            none.clone(),
            vec![],
            vec![saw("2026-11-21T03:00:00Z"), created.clone()],
            None,
            "\u{2717}\u{25cb}?\u{2013}",
            vec![ended, "nightly-29917560 ran, and concurrencyPolicy is Forbid", gone, rest],
        ),
        (
            "a new leader said again that it had ended",
            none.clone(),
            vec![],
            vec![saw("2026-11-21T03:00:00Z"), saw("2026-11-20T03:00:00Z"), created.clone()],
            None,
            "\u{2717}??\u{2013}",
            vec![ended, gone, rest],
        ),
        (
            "so many Events that some may have been dropped",
            none.clone(),
            vec![],
            vec![saw("2026-11-21T03:00:00Z"), created.clone(), Said { count: 23, ..created.clone() }],
            None,
            "\u{2717}??\u{2013}",
            vec![ended, gone, rest],
        ),
        (
            "that one was stuck soon, and blocked nothing from then on",
            stuck,
            vec![],
            vec![saw("2026-11-21T03:00:00Z"), created.clone()],
            None,
            "\u{2717}??\u{2013}",
            vec![ended, gone, "its Job no longer exists"],
        ),
        (
            "and one that may have started it when it ended",
            none,
            vec![],
            vec![saw("2026-11-20T03:00:00Z"), created],
            None,
            "\u{2717}??\u{2013}",
            vec![ended, gone, rest],
        ),
    ];
    for (sentence, mut change, jobs, events, freeze, strip, want) in rows {
        let mut restrictions = Restrictions::default();
        if let Some((written, end)) = freeze {
            change = merged_writer(&change, written);
            let written = change.as_object_mut().and_then(|change| change.remove("freezeWritten"));
            let managers = json!([{
                "manager": "cronjob-controller-cli", "time": written,
                "fieldsV1": {"f:metadata": {"f:annotations": { format!("f:{NOT_BEFORE}"): {} }}},
            }]);
            let metadata =
                json!({"name": "shop", "uid": "", "annotations": {NOT_BEFORE: end}, "managedFields": managers});
            restrictions.add(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string());
        }
        let cron_job = Arc::new(restrictions.restricted(CronJob::clone(&cron_job(&change)), InCharge::Own));
        let range = (instant(&day(20)), instant(&day(22)));
        let backfilled = if sentence.contains("a backfill of it") { vec![range] } else { vec![] };
        let facts = Facts { cron_job, in_charge: InCharge::Own, backfilled, ..facts(&change, jobs) };
        let known = Known { facts, events };
        let judged = History::new(&known, Zone::UTC, instant("2026-11-22T10:00:00Z")).newest(4);
        assert_eq!(judged.iter().map(Judged::letter).collect::<String>(), strip, "{sentence}");
        let mut whys: Vec<_> = judged.iter().filter(|judged| judged.job.is_none()).map(|judged| &*judged.why).collect();
        whys.dedup();
        assert_eq!(whys, want, "{sentence}");
    }
}

/// Of each slot from the 19th on: what is said if Events say this, and the Jobs are those of the days with a sign that is no dash.
#[test]
fn slots_whose_jobs_are_gone_keep_the_reason_that_an_event_gives() {
    type Row = (&'static str, Value, Vec<Said>, &'static str, Vec<String>);
    let refusal = |of: u32| {
        let name = name_of(&day(of));
        format!("Error creating job: jobs.batch \"{name}\" is forbidden: exceeded quota: q")
    };
    let refused = |of: u32| at(&format!("2026-11-{of}T02:10:00Z"), "FailedCreate", &refusal(of));
    let denied = |of: u32, hour: u32| {
        let text = "Error creating job: admission webhook \"guard\" denied the request: no";
        at(&format!("2026-11-{of}T{hour:02}:10:00Z"), "FailedCreate", text)
    };
    let created = |of: u32| {
        at(&format!("2026-11-{of}T03:00:00Z"), "SuccessfulCreate", &format!("Created job {}", name_of(&day(of))))
    };
    let failed = |of: u32| {
        let text = format!("Saw completed job: {}, condition: Failed", name_of(&day(of)));
        at(&format!("2026-11-{of}T02:30:00Z"), "SawCompletedJob", &text)
    };
    let paused = |of: u32| at(&format!("2026-11-{of}T02:00:01Z"), "Paused", "Not starting job: the last 1 failed");
    let many = Said { count: 25, ..created(22) };
    let one = json!({"spec": {"successfulJobsHistoryLimit": 1}, "status": {"lastScheduleTime": day(22)}});
    let deadline = merged(&one, &json!({"spec": {"startingDeadlineSeconds": 600}}));
    let pausing = merged(&one, &json!({"metadata": {"annotations": {PAUSE_AFTER_FAILURES: "1"}}}));
    let gone = "its Job, if there was one, no longer exists, and no Event tells of it";
    let quota =
        |of: u32| format!("the API server refused its Job: {}", refusal(of).trim_start_matches("Error creating job: "));
    let no = "the API server refused its Job: admission webhook \"guard\" denied the request: no";
    let by_failures = format!("failed runs held it, of which an Event tells ({PAUSE_AFTER_FAILURES})");
    let dropped = format!("{gone}; {DROPPED}");
    let taken = |of: u32| Said {
        message: format!("Error creating job: jobs.batch \"{}\" already exists", name_of(&day(of))),
        ..refused(of)
    };
    let lost = |of: u32| Said {
        message: "Error creating job: connection reset before the answer came".to_owned(),
        ..denied(of, 5)
    };
    let missed = at(
        "2026-11-21T02:10:01Z",
        "MissSchedule",
        "Missed scheduled time to start a job: Sat, 21 Nov 2026 02:00:00 UTC",
    );
    let rows: Vec<Row> = vec![
        ("nothing", one.clone(), vec![], "???\u{2713}", vec![gone.to_owned()]),
        (
            "two were refused",
            one.clone(),
            vec![refused(21), refused(20)],
            "?!!\u{2713}",
            vec![gone.to_owned(), quota(20), quota(21)],
        ),
        (
            "one was refused, and then started",
            one.clone(),
            vec![created(21), refused(21), refused(20)],
            "?!\u{2013}\u{2713}",
            vec![gone.to_owned(), quota(20), "its Job no longer exists".to_owned()],
        ),
        (
            "so many Events that the one about a start may be lacking",
            one.clone(),
            vec![many.clone(), refused(21)],
            "???\u{2713}",
            vec![dropped.clone(), format!("{}; nothing tells whether it started later", quota(21))],
        ),
        (
            "a create without an answer, which may have made its Job",
            one.clone(),
            vec![lost(21)],
            "???\u{2713}",
            vec![
                gone.to_owned(),
                "a create of its Job failed: connection reset before the answer came; nothing tells whether it started later"
                    .to_owned(),
            ],
        ),
        (
            "a refusal that names no Job is about the slot that was due",
            one.clone(),
            vec![denied(20, 5)],
            "?!?\u{2713}",
            vec![gone.to_owned(), no.to_owned(), gone.to_owned()],
        ),
        (
            "the Job of another owner had the name",
            one.clone(),
            vec![taken(21)],
            "??!\u{2713}",
            vec![gone.to_owned(), quota(21).replace("is forbidden: exceeded quota: q", "already exists")],
        ),
        (
            "refused until its deadline",
            deadline,
            vec![missed, refused(21)],
            "??!\u{2713}",
            vec![gone.to_owned(), quota(21)],
        ),
        (
            "a pause that ended with its failed Job",
            pausing.clone(),
            vec![paused(21), failed(19)],
            "\u{2717}\u{25cb}\u{25cb}\u{2713}",
            vec!["failed, and its Job no longer exists".to_owned(), by_failures],
        ),
        (
            "a run began since the failure",
            pausing,
            vec![paused(21), failed(19), created(20)],
            "\u{2717}\u{2013}?\u{2713}",
            vec![
                "failed, and its Job no longer exists".to_owned(),
                "its Job no longer exists".to_owned(),
                gone.to_owned(),
            ],
        ),
        ("so many Events that some may be lacking", one, vec![many], "???\u{2713}", vec![dropped]),
    ];
    for (sentence, change, events, strip, want) in rows {
        let jobs = vec![job(&day(22), "cj", Some("Complete"))];
        let facts = facts(&change, jobs).with_events(&events, Ok(Vec::new()));
        let known = Known { facts, events };
        let judged = History::new(&known, Zone::UTC, instant("2026-11-22T10:00:00Z")).newest(4);
        assert_eq!(judged.iter().map(Judged::letter).collect::<String>(), strip, "{sentence}");
        let mut whys: Vec<_> =
            judged.iter().filter(|judged| judged.job.is_none()).map(|judged| judged.why.clone()).collect();
        whys.dedup();
        assert_eq!(whys, want, "{sentence}");
    }
}

/// The run of ten o'clock ended after the slot of half past ten, and before that was due.
#[test]
fn a_slot_that_a_spread_delays_is_blocked_from_when_it_is_due() {
    let mut change = json!({
        "metadata": {"annotations": {SPREAD: "25m"}},
        "spec": {"concurrencyPolicy": "Forbid", "schedule": "*/30 * * * *", "successfulJobsHistoryLimit": 10},
        "status": {"lastScheduleTime": "2026-11-22T11:00:00Z"},
    });
    let offset = cron_job(&change).offset();
    assert!(offset > TimeDelta::minutes(1), "{offset}");
    change["spec"]["failedJobsHistoryLimit"] = 10.into();
    for (sentence, end, fate) in [("before it is due", offset / 2, Fate::Missed), ("later", offset * 2, Fate::Skipped)]
    {
        let end = (instant("2026-11-22T10:30:00Z") + end).to_rfc3339();
        let jobs = vec![
            ran("2026-11-22T09:30:00Z", "Complete", "2026-11-22T09:31:00Z"),
            ran("2026-11-22T10:00:00Z", "Complete", &end),
            ran("2026-11-22T11:00:00Z", "Complete", "2026-11-22T11:31:00Z"),
        ];
        let known = Known { facts: facts(&change, jobs), events: Vec::new() };
        let judged =
            History::new(&known, Zone::UTC, instant("2026-11-22T11:58:00Z")).judge(instant("2026-11-22T10:30:00Z"));
        assert_eq!(judged.fate, fate, "{sentence}: {}", judged.why);
    }
}

#[test]
fn the_newest_slots_have_their_results_and_durations() {
    for (start_time, newest, letters) in
        [(None, RunResult::Waiting, "?✓✗~"), (Some(instant(&day(22))), RunResult::Running, "?✓✗●")]
    {
        let jobs = vec![
            ran("2026-11-20T02:00:00Z", "Complete", "2026-11-20T02:05:00Z"),
            ran("2026-11-21T02:00:00Z", "Failed", "2026-11-21T02:00:30Z"),
            Arc::new(Job { start_time, ..Job::clone(&job(&day(22), "cj", None)) }),
        ];
        let change = json!({"spec": {"successfulJobsHistoryLimit": 10, "failedJobsHistoryLimit": 10}});
        let known = Known { facts: facts(&change, jobs), events: Vec::new() };
        let strip = History::new(&known, Zone::UTC, instant("2026-11-22T03:00:00Z")).newest(4);
        let got: Vec<_> = strip.iter().map(|judged| (judged.fate, judged.run, judged.took)).collect();
        assert_eq!(
            got,
            [
                (Fate::Unknown, None, None),
                (Fate::Started, Some(RunResult::Succeeded), Some(300)),
                (Fate::Started, Some(RunResult::Failed), Some(30)),
                (Fate::Started, Some(newest), Some(3600)),
            ]
        );
        assert_eq!(strip.iter().map(Judged::letter).collect::<String>(), letters);
    }
}
