//! What is said about the slots that a change of a CronJob passes over.

use super::policies::annotated;
use super::*;
use crate::api::policy::{AFTER_CHANGE, COUNTED_FROM, EXCLUDE, NOT_AFTER, SPREAD};

const CREATED: &str = "2026-03-02T08:30:00Z";
/// The time of the sync: the slot of 10:00 is due.
const LATER: &str = "2026-03-02T10:45:00Z";

/// A record from 08:30, of the CronJob with these annotations and this spec.
#[allow(clippy::needless_pass_by_value, reason = "callers write it with json!")]
fn record(annotations: &[(&str, &str)], spec: Value) -> String {
    annotated(annotations, CREATED, json!({ "spec": spec })).counted_at(time(CREATED)).to_string()
}

/// The CronJob with a record that an edit has outdated.
fn changed(annotations: &[(&str, &str)], record: &str, edit: &str, patch: Value) -> Arc<CronJob> {
    let mut annotations = annotations.to_vec();
    annotations.push((COUNTED_FROM, record));
    annotated(&annotations, edit, patch)
}

/// The slot that is passed over, and the messages of the Events about it. Every request succeeds.
fn told(mut observation: Case) -> (Option<DateTime<Utc>>, Vec<String>) {
    observation.create = Some(created());
    let Plan::Settle(settlement) = reconcile(&observation, time(LATER)) else { panic!("it does not settle") };
    let told = settlement.events.into_iter().filter(|event| event.reason == "PassedOver");
    (settlement.passed_over, told.map(|event| event.message).collect())
}

/// What it is, the annotations, the record, the edit's time, the rest of the object, and whether an Event comes.
type Row<'a> = (&'a str, Vec<(&'a str, &'a str)>, String, &'a str, Value, bool);

#[test]
fn change_that_passes_over_a_due_slot_is_told() {
    let (wait, monday, sunday) = ((AFTER_CHANGE, "wait"), (EXCLUDE, "Mon"), (EXCLUDE, "Sun"));
    let suspended = || record(&[wait], json!({ "suspend": true }));
    let spec = |spec: Value| json!({ "spec": spec });
    let edit = "2026-03-02T10:30:00Z";
    let rows: Vec<Row<'_>> = vec![
        ("resumed", vec![wait], suspended(), edit, json!({}), true),
        (
            "suspended while a slot was held",
            vec![wait],
            record(&[wait], json!({})),
            edit,
            spec(json!({ "suspend": true })),
            true,
        ),
        ("resumed before the slot", vec![wait], suspended(), "2026-03-02T09:30:00Z", json!({}), false),
        (
            "resumed within its deadline",
            vec![wait],
            suspended(),
            edit,
            spec(json!({ "startingDeadlineSeconds": 2700 })),
            true,
        ),
        ("past its deadline", vec![wait], suspended(), edit, spec(json!({ "startingDeadlineSeconds": 2699 })), false),
        (
            "resumed, and it is not to wait",
            vec![(AFTER_CHANGE, "fire"), sunday],
            record(&[sunday], json!({ "suspend": true })),
            edit,
            json!({}),
            false,
        ),
        (
            "its spread is not over",
            vec![wait, (SPREAD, "30m")],
            record(&[wait, (SPREAD, "30m")], json!({ "suspend": true })),
            "2026-03-02T10:24:00Z",
            json!({}),
            false,
        ),
        ("another schedule", vec![wait], record(&[wait], json!({ "schedule": "5 * * * *" })), edit, json!({}), true),
        ("nothing changed", vec![wait], record(&[wait], json!({})), edit, json!({}), false),
        ("the slot has run", vec![wait], suspended(), edit, json!({ "status": { "lastScheduleTime": SLOT } }), false),
        ("another annotation", vec![sunday], record(&[monday], json!({})), edit, json!({}), true),
        ("a removed annotation", vec![], record(&[monday], json!({})), CREATED, json!({}), true),
        ("the new annotation leaves the slot out", vec![monday], record(&[sunday], json!({})), edit, json!({}), false),
        (
            "a bound before the slot",
            vec![(NOT_AFTER, "2026-03-02T09:30:00Z")],
            record(&[sunday], json!({})),
            edit,
            json!({}),
            false,
        ),
        ("a value that cannot be read", vec![(SPREAD, "soon")], record(&[sunday], json!({})), edit, json!({}), false),
        ("being deleted", vec![wait], suspended(), edit, json!({ "metadata": { "deletionTimestamp": edit } }), false),
    ];
    for (sentence, annotations, record, edit, patch, is_told) in rows {
        let (slot, messages) = told(observe(&changed(&annotations, &record, edit, patch), &[]));
        assert_eq!((slot, messages.len()), (is_told.then(|| time(SLOT)), usize::from(is_told)), "{sentence}");
    }
}

#[test]
fn event_about_a_change_says_why_and_from_when_on_slots_count() {
    let edit = "2026-03-02T10:30:00Z";
    let wait = (AFTER_CHANGE, "wait");
    let resumed = changed(&[wait], &record(&[wait], json!({ "suspend": true })), edit, json!({}));
    let start = "Passed over the run of 2026-03-02T10:00:00Z: it was due before ";
    let end = ". Slots after 2026-03-02T10:30:00Z count";
    let why = "the last edit or resume, and cronjob-controller.dev/after-change is wait";
    assert_eq!(told(observe(&resumed, &[])).1, [format!("{start}{why}{end}")]);
    let edited = changed(&[(EXCLUDE, "Sun")], &record(&[(EXCLUDE, "Mon")], json!({})), edit, json!({}));
    let why = "an annotation was changed that decides when it runs";
    assert_eq!(told(observe(&edited, &[])).1, [format!("{start}{why}{end}")]);
}

/// A slot that has its Job, or may have it, is not passed over.
#[test]
fn slot_that_was_started_before_the_change_is_not_told() {
    let wait = (AFTER_CHANGE, "wait");
    let record = record(&[wait], json!({ "suspend": true }));
    let cron_job = changed(&[wait], &record, "2026-03-02T10:30:00Z", json!({}));
    let unwritten = job(NAME, "orphan", made_by_controller(SLOT));
    let mut observations = [observe(&cron_job, &[&unwritten]), observe(&cron_job, &[]), observe(&cron_job, &[])];
    observations[1].recalled.pending_create = Some(unanswered(SLOT, Some(TimeDelta::seconds(20))));
    observations[2].recalled.memo.name_taken = Some(time(SLOT));
    for observation in observations {
        assert_eq!(told(observation), (None, vec![]));
    }
}

#[test]
fn change_is_told_in_the_sync_that_records_it_and_never_again() {
    let wait = (AFTER_CHANGE, "wait");
    let record = record(&[wait], json!({ "suspend": true }));
    let cron_job = changed(&[wait], &record, "2026-03-02T10:30:00Z", json!({}));
    let Plan::Settle(first) = reconcile(&observe(&cron_job, &[]), time(LATER)) else { panic!() };
    assert_eq!(reasons(&first), ["PassedOver"]);
    // The status was not written.
    let mut again = observe(&cron_job, &[]);
    again.recalled.carried = first.edits;
    // It was written.
    let status = first.status.unwrap().status;
    let written = observe(&Arc::new(CronJob { status, ..CronJob::clone(&cron_job) }), &[]);
    // Another change, with nothing due since the first.
    let mut edited = written.clone();
    let other = annotated(&[wait, (EXCLUDE, "Sat")], "2026-03-02T10:40:00Z", json!({}));
    edited.cron_job = Arc::new(CronJob { status: written.cron_job.status.clone(), ..CronJob::clone(&other) });
    for observation in [again, written, edited] {
        assert_eq!(told(observation), (None, vec![]));
    }
}

/// One edit has removed the annotations and the record, and the watch's handler has kept the record.
#[test]
fn removal_with_the_record_is_told_once() {
    let cron_job = cron_job(json!({}));
    let mut observation = observe(&cron_job, &[]);
    let counted = cron_job.counted_at(time("2026-03-02T10:30:00Z"));
    observation.recalled.carried.counted(&counted);
    assert_eq!(told(observation.clone()).0, None);
    observation.recalled.record_removed = Some(Box::new(counted));
    assert_eq!(told(observation).0, Some(time(SLOT)));
}

/// A live read, or the answer to a write, shows an edit that removes the annotations and the record. The watch shows it later.
#[test]
fn removal_that_the_watch_has_not_shown_is_counted_and_told() {
    let removed = cron_job(json!({}));
    let rows = [
        ("timing annotations and their record", annotated(&[(EXCLUDE, "Mon")], CREATED, json!({})), Some(time(SLOT))),
        ("another edit", cron_job(json!({ "spec": { "suspend": true } })), None),
    ];
    for (sentence, shown, want) in rows {
        let mut known = observe(&removed, &[]);
        known.shown = Arc::clone(&shown);
        let (slot, events) = told(known);
        assert_eq!((slot, events.len()), (want, usize::from(want.is_some())), "{sentence}");

        let mut live = observe(&shown, &[]);
        live.live.cron_job = Some(Ok(Arc::clone(&removed)));
        assert_eq!(told(live).0, want, "{sentence}, read live");
    }
    // The status was not written.
    let mut again = observe(&removed, &[]);
    again.shown = annotated(&[(EXCLUDE, "Mon")], CREATED, json!({}));
    let Plan::Settle(first) = reconcile(&again, time(LATER)) else { panic!() };
    again.recalled.carried = first.edits;
    assert_eq!(told(again), (None, vec![]));
}
