//! What is known of each slot.

use super::*;
use crate::cli::backfill::plan::plan;
use crate::cli::cluster::Known;
use crate::cli::explain::tests::{cron_job, facts, instant, job, name_of};
use crate::cli::slots::{self, History};

const NOW: &str = "2026-11-22T10:00:00Z";

/// No earlier backfill.
fn none() -> Record {
    Record::new(Uid::new("cj"))
}

fn question() -> Question {
    let (from, to) = (instant("2026-10-30T00:00:00Z"), instant("2026-11-23T00:00:00Z"));
    Question { from, to, zone: Zone::UTC, seed: "".into(), max_active: 1, again: false, rerun: false }
}

/// The slots by what is known of them, as days of the month.
fn known(
    cron_job: &crate::api::batch_v1::CronJob,
    jobs: &[Arc<Job>],
    question: &Question,
) -> Vec<(String, bool, String)> {
    let plan = serde_json::to_value(plan(cron_job, jobs, &none(), question, instant(NOW)).unwrap()).unwrap();
    let day = |time: &Value| time.as_str().unwrap()[5..10].to_owned();
    let row = |entry: &Value| {
        let time = format!("{}/{}", day(&entry["from"]), day(&entry["to"]));
        (time, entry["starts"] == true, entry["known"].as_str().unwrap().to_owned())
    };
    plan["slots"].as_array().unwrap().iter().map(row).collect()
}

fn rows(rows: &[(&str, bool, &str)]) -> Vec<(String, bool, String)> {
    rows.iter().map(|(time, starts, known)| ((*time).to_owned(), *starts, (*known).to_owned())).collect()
}

/// `nightly` runs at 02:00, exists since the first of November, and keeps three successful Jobs and a failed one.
#[test]
fn slots_have_run_may_have_run_or_did_not() {
    let jobs = [
        job("2026-11-18T02:00:00Z", "cj", Some("Failed")),
        job("2026-11-19T02:00:00Z", "cj", Some("Complete")),
        job("2026-11-21T02:00:00Z", "cj", Some("Complete")),
        job("2026-11-22T02:00:00Z", "cj", Some("Complete")),
    ];
    let (cron_job, mut question) = (cron_job(&json!({})), question());
    let before = ("10-30/11-01", true, "didNotRun");
    let pruned = |starts| ("11-02/11-17", starts, "mayHaveRun");
    let failed = |starts| ("11-18/11-18", starts, "hasJob");
    let rest = [("11-19/11-19", false, "hasJob"), ("11-20/11-20", true, "didNotRun"), ("11-21/11-22", false, "hasJob")];
    let all = |first: [(&str, bool, &str); 3]| rows(&[&first[..], &rest[..]].concat());
    assert_eq!(known(&cron_job, &jobs, &question), all([before, pruned(false), failed(false)]));
    question.rerun = true;
    assert_eq!(known(&cron_job, &jobs, &question), all([before, pruned(true), failed(false)]));
    (question.rerun, question.again) = (false, true);
    assert_eq!(known(&cron_job, &jobs, &question), all([before, pruned(false), failed(true)]));
}

/// A Job that a user created from the CronJob at this time.
fn made_by_hand(start: &str, end: &str) -> Arc<Job> {
    let mut made = Job::clone(&job(start, "cj", Some(end)));
    made.name = crate::api::ObjectName::new("shop", "by-hand");
    made.scheduled_timestamp = None;
    Arc::new(made)
}

/// The finished Job of a slot that a backfill created at this time.
fn backfilled(day: u32, start: &str) -> Arc<Job> {
    let mut made = Job::clone(&job(&at_two(day), "cj", Some("Complete")));
    (made.creation_timestamp, made.start_time, made.of_backfill) = (instant(start), Some(instant(start)), true);
    Arc::new(made)
}

fn at_two(day: u32) -> String {
    format!("2026-11-{day:02}T02:00:00Z")
}

fn annotated(name: &str, value: &str, spec: &Value) -> Value {
    let annotations = json!({ format!("cronjob-controller.dev/{name}"): value });
    json!({"metadata": {"annotations": annotations}, "spec": spec})
}

/// A case, a change of `nightly`, its Jobs, and of the slots from the sixteenth to the twenty-second those that count as not run.
type Evident<'a> = (&'a str, Value, Vec<Arc<Job>>, &'a [u32]);

/// `nightly` keeps three successful Jobs and a failed one, unless the change says otherwise.
fn gaps() -> Vec<Evident<'static>> {
    let own =
        |days: &[u32]| -> Vec<Arc<Job>> { days.iter().map(|day| job(&at_two(*day), "cj", Some("Complete"))).collect() };
    let with = |days: &[u32], others: &[Arc<Job>]| [own(days), others.to_vec()].concat();
    let limits = |successful: Value, failed: Value| json!({"spec": {"successfulJobsHistoryLimit": successful, "failedJobsHistoryLimit": failed}});
    let unstarted = {
        let mut job = Job::clone(&job(&at_two(19), "cj", Some("Complete")));
        job.start_time = None;
        Arc::new(job)
    };
    let late = {
        let mut job = Job::clone(&job(&at_two(19), "cj", Some("Complete")));
        job.start_time = Some(instant("2026-11-20T09:00:00Z"));
        Arc::new(job)
    };
    vec![
        ("a gap between Jobs that are kept", json!({}), own(&[19, 21, 22]), &[20]),
        (
            "a Job made by hand has the place of a third",
            json!({}),
            with(&[21, 22], &[made_by_hand("2026-11-22T08:00:00Z", "Complete")]),
            &[],
        ),
        (
            "a failed Job made by hand has the place of the one that failed",
            json!({}),
            with(&[19, 20, 22], &[made_by_hand("2026-11-21T08:00:00Z", "Failed")]),
            &[],
        ),
        (
            "a Job made by hand, below the limit",
            limits(json!(10), json!(10)),
            with(&[19, 22], &[made_by_hand("2026-11-20T08:00:00Z", "Complete")]),
            &[20, 21],
        ),
        ("below a limit that may have been raised", limits(json!(10), json!(10)), own(&[20, 22]), &[21]),
        (
            "failures below a limit that may have been raised",
            limits(json!(10), json!(10)),
            with(&[17, 22], &[made_by_hand("2026-11-20T08:00:00Z", "Failed")]),
            &[21],
        ),
        ("without limits", limits(Value::Null, Value::Null), own(&[19, 22]), &[20, 21]),
        ("a limit of 0 keeps no successful Jobs", limits(json!(0), json!(10)), own(&[19, 22]), &[]),
        ("a limit of 0 keeps no failed Jobs", limits(json!(10), json!(0)), own(&[19, 22]), &[]),
        ("no Job has finished", json!({}), vec![job(&at_two(22), "cj", None)], &[]),
        ("the newest slot's Job was deleted", json!({}), own(&[18, 19, 21]), &[]),
        ("a Job that started late", json!({}), with(&[21, 22], &[late]), &[]),
        (
            "a Job that never started counts as the newest",
            json!({}),
            with(&[18, 21, 22], std::slice::from_ref(&unstarted)),
            &[],
        ),
        ("no Job that is kept has started", limits(json!(1), json!(1)), with(&[22], &[unstarted]), &[]),
        (
            "a Job of a backfill has the place of a third",
            json!({}),
            with(&[20, 22], &[backfilled(18, "2026-11-22T09:00:00Z")]),
            &[21],
        ),
        (
            "the Jobs of a backfill have the places of all others",
            json!({}),
            with(&[20, 22], &[16, 17, 18].map(|day| backfilled(day, "2026-11-22T09:00:00Z"))),
            &[],
        ),
        (
            "a stuck Job is only told",
            annotated("stuck-after", "2h", &json!({"concurrencyPolicy": "Forbid"})),
            own(&[19, 21, 22]),
            &[20],
        ),
        (
            "a stuck Job is deleted",
            annotated("stuck-after", "2h, delete", &json!({"concurrencyPolicy": "Forbid"})),
            own(&[19, 21, 22]),
            &[],
        ),
        (
            "failures are deleted to end a pause",
            annotated("pause-after-failures", "1", &json!({})),
            own(&[19, 21, 22]),
            &[],
        ),
        (
            "Jobs expire",
            json!({"spec": {"jobTemplate": {"spec": {"ttlSecondsAfterFinished": 60}}}}),
            own(&[19, 21, 22]),
            &[],
        ),
    ]
}

#[test]
fn slot_without_a_job_did_not_run_only_where_its_job_cannot_have_been_deleted() {
    let question = Question { from: instant(&at_two(16)), ..question() };
    for (sentence, change, jobs, want) in gaps() {
        let plan = plan(&cron_job(&change), &jobs, &none(), &question, instant(NOW)).unwrap();
        let want: Vec<_> = want.iter().map(|day| instant(&at_two(*day))).collect();
        assert_eq!(plan.chosen(), want, "{sentence}");
    }
}

/// `explain --since`, and the page, say the same of each slot.
#[test]
fn slot_is_missed_only_where_a_backfill_starts_it() {
    let replaced = [19, 21, 22].map(|day| job(&at_two(day), "cj", Some("Complete"))).to_vec();
    let of_replace = json!({"spec": {"concurrencyPolicy": "Replace"}});
    let replaced: Evident<'_> = ("Replace deletes Jobs, and is not backfilled", of_replace, replaced, &[]);
    for (sentence, change, jobs, want) in gaps().into_iter().chain([replaced]) {
        let facts = facts(&change, jobs);
        let known = Known { facts, events: Vec::new() };
        let history = History::new(&known, Zone::UTC, instant(NOW));
        let (judged, _) = history.judged(instant(&at_two(15)), instant(NOW), 100);
        let without_job = judged.iter().filter(|judged| judged.fate != slots::Fate::Started);
        let (missed, rest): (Vec<_>, Vec<_>) = without_job.partition(|judged| judged.fate == slots::Fate::Missed);
        let missed: Vec<_> = missed.iter().map(|judged| judged.slot).collect();
        let want: Vec<_> = want.iter().map(|day| instant(&at_two(*day))).collect();
        assert_eq!(missed, want, "{sentence}");
        assert!(rest.iter().all(|judged| judged.fate == slots::Fate::Unknown), "{sentence}");
    }
}

#[test]
fn jobs_that_expire_leave_no_evidence() {
    let expiring = json!({"spec": {"jobTemplate": {"spec": {"ttlSecondsAfterFinished": 60}}}});
    let expiring = cron_job(&expiring);
    let question = Question { from: instant("2026-11-20T00:00:00Z"), ..question() };
    let jobs = [job("2026-11-21T02:00:00Z", "cj", None)];
    let want =
        [("11-20/11-20", false, "mayHaveRun"), ("11-21/11-21", false, "hasJob"), ("11-22/11-22", false, "mayHaveRun")];
    assert_eq!(known(&expiring, &jobs, &question), rows(&want));
}

#[test]
fn slots_that_are_not_decided_are_the_controllers() {
    let annotation = "2026-11-22T03:00:00Z v1:cj:0123456789abcdef";
    let change = |last: &str| {
        json!({
            "metadata": {"annotations": {"cronjob-controller.dev/counted-from": annotation}},
            "status": {"lastScheduleTime": last},
        })
    };
    let from = |from: &str| Question { from: instant(from), to: instant("2026-12-24T00:00:00Z"), ..question() };
    // Passed over by a change of the policies, of which nothing is known but that.
    let passed = cron_job(&change("2026-11-20T02:00:00Z"));
    let want = [("11-20/11-20", false, "mayHaveRun"), ("11-21/11-22", true, "didNotRun")];
    let jobs = ["2026-11-17", "2026-11-18", "2026-11-19"].map(|day| format!("{day}T02:00:00Z"));
    let jobs = jobs.map(|slot| job(&slot, "cj", Some("Complete")));
    assert_eq!(known(&passed, &jobs, &from("2026-11-20T00:00:00Z")), rows(&want));
    let lines = plan(&passed, &jobs, &none(), &from("2026-11-20T00:00:00Z"), instant(NOW)).unwrap().lines();
    assert_eq!(lines[1], "Slots after Sun 2026-11-22 03:00:00 +00:00 are the controller's, and are left out.");
    assert_eq!(lines.last().unwrap(), "1 slot may have run; --rerun starts these, too.");
}

#[test]
fn slots_of_an_earlier_backfill_may_have_run() {
    let first = instant("2026-10-30T00:00:00Z");
    let record = Record { done: vec![(first, instant("2026-10-31T00:00:00Z"))], ..none() };
    let question = Question { to: instant("2026-11-01T00:00:00Z"), ..question() };
    let plan = plan(&cron_job(&json!({})), &[], &record, &question, instant(NOW)).unwrap();
    assert_eq!(plan.chosen(), [instant("2026-10-31T02:00:00Z")]);
}

#[test]
fn name_of_another_owner_is_left_alone() {
    let jobs = [job("2026-10-31T02:00:00Z", "other", None)];
    let question = Question { to: instant("2026-11-01T00:00:00Z"), rerun: true, ..question() };
    let want = [("10-30/10-30", true, "didNotRun"), ("10-31/10-31", false, "nameTaken")];
    assert_eq!(known(&cron_job(&json!({})), &jobs, &question), rows(&want));
    assert!(name_of("2026-10-31T02:00:00Z").starts_with("nightly-"));
}

#[test]
fn cron_jobs_without_past_slots_are_refused() {
    let all = Question { rerun: true, ..question() };
    let refused = |change: Value| plan(&cron_job(&change), &[], &none(), &all, instant(NOW)).unwrap_err();
    let rows = [
        (json!({"spec": {"concurrencyPolicy": "Replace"}}), "its concurrencyPolicy is Replace"),
        (
            json!({"spec": {"suspend": true}}),
            "it is suspended (spec.suspend); cronjob-controller resume -n shop nightly resumes it",
        ),
        (
            json!({
                "metadata": {"annotations": {"cronjob-controller.dev/managed": "true", "cronjob-controller.dev/suspend": "true"}},
                "spec": {"suspend": true},
            }),
            "it is suspended (cronjob-controller.dev/suspend); cronjob-controller resume -n shop nightly resumes it",
        ),
        (json!({"spec": {"schedule": "@every 1h"}}), "the schedule is an @every"),
        (json!({"spec": {"timeZone": "Nowhere"}}), "spec.timeZone"),
        (json!({"spec": {"schedule": "* * *"}}), "spec.schedule"),
        (
            json!({"metadata": {"annotations": {"cronjob-controller.dev/spread": "soon"}}}),
            "cronjob-controller.dev/spread",
        ),
        (json!({"metadata": {"deletionTimestamp": NOW}}), "it is being deleted"),
        (json!({"spec": {"schedule": "* * * * *"}}), "it would start"),
    ];
    for (change, want) in rows {
        let text = refused(change);
        assert!(text.starts_with(want), "{text}");
    }
    let long = Question { from: instant("2020-01-01T00:00:00Z"), ..question() };
    let minutely = cron_job(&json!({"spec": {"schedule": "* * * * *"}}));
    let error = plan(&minutely, &[], &none(), &long, instant(NOW)).unwrap_err();
    assert!(error.starts_with("there are more than"), "{error}");
}

#[test]
fn times_are_in_the_zone_of_the_cron_job_or_before_now() {
    let now = instant("2026-03-29T10:00:00.750Z");
    let local = |text: &str| Since::At(Given::Local(text.parse().unwrap()));
    let at = |text: &str| Since::At(Given::Instant(instant(text)));
    let ago = |minutes| Since::Ago(TimeDelta::minutes(minutes));
    let later = Err("--from is later than --to".to_owned());
    let rows = [
        (
            "a local time and another",
            local("2026-03-28T00:00:00"),
            at("2026-03-29T01:00:00Z"),
            Ok(("2026-03-27T23:00:00Z", "2026-03-29T01:00:00Z")),
        ),
        ("a local time after another", local("2026-03-29T04:00:00"), at("2026-03-29T01:00:00Z"), later.clone()),
        ("whole seconds before now", ago(120), ago(110), Ok(("2026-03-29T08:00:00Z", "2026-03-29T08:10:00Z"))),
        ("the other way round", ago(110), ago(120), later),
        ("local days", Since::Day(1), Since::Day(0), Ok(("2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z"))),
    ];
    let berlin = Zone::load("Europe/Berlin", Zone::UTC).unwrap();
    for (sentence, from, to, want) in rows {
        let found = question().at(from, to).in_zone(berlin, now).map(|found| (found.from, found.to));
        assert_eq!(found, want.map(|(from, to)| (instant(from), instant(to))), "{sentence}");
    }
}
