//! Decisions about CronJobs with policy annotations.

use proptest::prelude::*;

use super::*;
use crate::api::policy::{COUNTED_FROM, CountedFrom, DST, EXCLUDE, NOT_AFTER, NOT_BEFORE, SCHEDULE, SPREAD};
use crate::controller::plan::Verdict;

/// How `spread: 30m` delays `ns/report`.
pub(super) const OFFSET: TimeDelta = TimeDelta::seconds(25 * 60 + 1);

/// The hourly CronJob with these annotations, last changed other than in its status at `edit`.
pub(super) fn annotated(annotations: &[(&str, &str)], edit: &str, patch: Value) -> Arc<CronJob> {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let managers = json!([
        { "manager": "kubectl", "operation": "Update", "time": edit },
        { "manager": "a", "operation": "Update", "time": "2026-02-01T08:00:00Z" },
        { "manager": "c", "operation": "Update", "time": "2026-03-02T12:00:00Z", "subresource": "status" },
    ]);
    let metadata = json!({ "metadata": { "annotations": annotations, "managedFields": managers } });
    cron_job(merged(metadata, patch))
}

/// The slot that is started, when the next sync is due, and the Events' reasons.
fn decided(
    cron_job: &Arc<CronJob>,
    now: DateTime<Utc>,
) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>, Vec<&'static str>) {
    match reconcile(&observe(cron_job, &[]), now) {
        Plan::Create { slot, .. } => (Some(slot), None, vec![]),
        Plan::Settle(settlement) => (None, requeued_at(&settlement), reasons(&settlement)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn policies_choose_and_delay_slots() {
    let started = |slot: &str| (Some(time(slot)), None, vec![]);
    let waits = |until: &str| (None, Some(time(until)), vec![]);
    let rows = [
        ("no effect", DST, "once", "2026-03-02T10:00:05Z", started(SLOT)),
        ("the slot waits for its offset", SPREAD, "30m", "2026-03-02T10:25:00Z", waits("2026-03-02T10:25:01Z")),
        ("and starts", SPREAD, "30m", "2026-03-02T10:25:01Z", started(SLOT)),
        ("a weekday", EXCLUDE, "Mon", "2026-03-02T10:00:05Z", waits("2026-03-03T00:00:00Z")),
        ("before the first", NOT_BEFORE, "2026-03-02T11:00:00Z", "2026-03-02T10:00:05Z", waits("2026-03-02T11:00:00Z")),
        ("after the last", NOT_AFTER, "2026-03-02T09:59:59Z", "2026-03-02T10:00:05Z", (None, None, vec![])),
        ("at the last", NOT_AFTER, "2026-03-02T10:00:00Z", "2026-03-02T10:00:05Z", started(SLOT)),
        ("other lines", SCHEDULE, "30 9 * * *;0 11 * * *", "2026-03-02T10:00:05Z", started("2026-03-02T09:30:00Z")),
        ("one time", SCHEDULE, "@at 2026-03-02T10:00", "2026-03-02T10:00:05Z", started(SLOT)),
        ("no time is left", EXCLUDE, "01-01/12-31", "2026-03-02T10:00:05Z", (None, None, vec!["InvalidSchedule"])),
        ("it cannot be read", SPREAD, "soon", "2026-03-02T10:00:05Z", (None, None, vec!["InvalidPolicy"])),
    ];
    for (sentence, name, value, now, want) in rows {
        let cron_job = annotated(&[(name, value)], "2026-03-02T08:30:00Z", json!({}));
        assert_eq!(decided(&cron_job, time(now)), want, "{sentence}");
    }
}

#[test]
fn invalid_policy_is_an_event_with_the_annotation_the_value_and_what_is_allowed() {
    let cron_job = annotated(&[(SPREAD, "soon")], "2026-03-02T08:30:00Z", json!({}));
    let settlement = settle(&observe(&cron_job, &[]));
    let message = &settlement.events[0].message;
    assert!(message.starts_with("cronjob-controller.dev/spread: \"soon\" is not allowed"), "{message}");
    assert!(message.ends_with("Use a duration from 1s to 24h, such as 15m"), "{message}");
    assert!(matches!(settlement.verdict, Verdict::Skipped(skip) if skip.as_str() == "invalid"));
    let suspended = annotated(&[(SPREAD, "soon")], "2026-03-02T08:30:00Z", json!({ "spec": { "suspend": true } }));
    assert_eq!(reasons(&settle(&observe(&suspended, &[]))), [""; 0], "suspension wins");
}

#[test]
fn starting_deadline_counts_from_when_the_slot_is_due() {
    let cron_job =
        annotated(&[(SPREAD, "30m")], "2026-03-02T08:30:00Z", json!({ "spec": { "startingDeadlineSeconds": 30 } }));
    let due = time(SLOT) + OFFSET;
    assert_eq!(decided(&cron_job, due + TimeDelta::seconds(29)).0, Some(time(SLOT)));
    let (started, next, _) = decided(&cron_job, due + TimeDelta::seconds(31));
    assert_eq!((started, next), (None, Some(time("2026-03-02T11:00:00Z") + OFFSET)));
}

/// A record that was written for a CronJob with these annotations.
fn record(at: &str, annotations: &[(&str, &str)]) -> String {
    let cron_job = annotated(annotations, "2026-03-02T08:30:00Z", json!({}));
    let written = cron_job.recount(&CronJobStatus::default(), Zone::UTC, now()).unwrap().to_string();
    format!("{at} {}", written.split_once(' ').unwrap().1)
}

/// A sentence, the record, the annotations, the time of the edit, the slot that starts, and the time of the new record.
type Change<'a> = (&'a str, Option<String>, &'a [(&'a str, &'a str)], &'a str, Option<&'a str>, Option<&'a str>);

#[test]
fn change_of_a_timing_annotation_decides_the_slots_before_it() {
    let exclude = (EXCLUDE, "Sat");
    // Saturday, 28 February; the last run was on Friday.
    let friday = json!({
        "metadata": { "creationTimestamp": "2026-02-20T08:30:00Z" },
        "status": { "lastScheduleTime": "2026-02-27T23:00:00Z" },
    });
    let rows: [Change<'_>; 11] = [
        (
            "nothing changed",
            Some(record("2026-02-20T08:30:00Z", &[exclude])),
            &[exclude],
            "2026-02-20T08:30:00Z",
            None,
            None,
        ),
        (
            "removed",
            Some(record("2026-02-20T08:30:00Z", &[exclude])),
            &[],
            "2026-02-20T08:30:00Z",
            None,
            Some("2026-02-28T10:00:05Z"),
        ),
        (
            "changed before the slot",
            Some(record("2026-02-20T08:30:00Z", &[exclude])),
            &[(EXCLUDE, "Sun")],
            "2026-02-28T09:59:58Z",
            Some("2026-02-28T10:00:00Z"),
            Some("2026-02-28T09:59:58Z"),
        ),
        (
            "changed after the slot",
            Some(record("2026-02-20T08:30:00Z", &[exclude])),
            &[(EXCLUDE, "Sun")],
            "2026-02-28T10:00:01Z",
            None,
            Some("2026-02-28T10:00:01Z"),
        ),
        (
            "changed just now, by a server whose clock is ahead",
            Some(record("2026-02-20T08:30:00Z", &[exclude])),
            &[(EXCLUDE, "Sun")],
            "2026-02-28T10:00:30Z",
            None,
            Some("2026-02-28T10:00:05Z"),
        ),
        (
            "changed just now, by a server whose clock is hours ahead",
            Some(record("2026-02-20T08:30:00Z", &[exclude])),
            &[(EXCLUDE, "Sun")],
            "2026-02-28T12:30:00Z",
            None,
            Some("2026-02-28T10:00:05Z"),
        ),
        ("new", None, &[(EXCLUDE, "Sun")], "2026-02-28T10:00:01Z", None, Some("2026-02-28T10:00:01Z")),
        (
            "another object's",
            Some(record("2026-02-20T08:30:00Z", &[exclude]).replace("own-uid", "other")),
            &[(EXCLUDE, "Sun")],
            "2026-02-28T09:30:00Z",
            Some("2026-02-28T10:00:00Z"),
            Some("2026-02-28T09:30:00Z"),
        ),
        (
            "of a later version of the program",
            Some("2026-02-28T09:00:00Z v9:x".to_owned()),
            &[(EXCLUDE, "Sun")],
            "2026-02-28T10:00:01Z",
            Some("2026-02-28T10:00:00Z"),
            Some("2026-02-28T09:00:00Z"),
        ),
        ("unreadable", Some("soon".to_owned()), &[exclude], "2026-02-28T10:00:01Z", None, Some("2026-02-28T10:00:01Z")),
        (
            "an unknown annotation",
            None,
            &[("cronjob-controller.dev/splay", "1h")],
            "2026-02-28T10:00:01Z",
            Some("2026-02-28T10:00:00Z"),
            None,
        ),
    ];
    for (sentence, written, annotations, edit, start, want) in rows {
        let mut annotations = annotations.to_vec();
        annotations.extend(written.as_deref().map(|written| (COUNTED_FROM, written)));
        let cron_job = annotated(&annotations, edit, friday.clone());
        let now = time("2026-02-28T10:00:05Z");
        assert_eq!(decided(&cron_job, now).0, start.map(time), "{sentence}");
        let mut observation = observe(&cron_job, &[]);
        observation.create = start.map(|_| created());
        let Plan::Settle(settlement) = reconcile(&observation, now) else { panic!("{sentence}") };
        let counted = |status: &CronJobStatus| status.counted_from.as_deref().map(CountedFrom::time);
        let recorded = settlement.status.as_ref().and_then(|write| counted(&write.status));
        assert_eq!(recorded, want.map(time), "{sentence}");
    }
}

/// A leader that dies after the create leaves the record as it was. The next one decides alike, by the same edit.
#[test]
fn next_leader_decides_a_change_alike() {
    let written = record("2026-03-02T08:30:00Z", &[(EXCLUDE, "Sun")]);
    let annotations = [(EXCLUDE, "Tue"), (COUNTED_FROM, &*written)];
    let cron_job = annotated(&annotations, "2026-03-02T10:30:00Z", json!({}));
    for now in ["2026-03-02T10:30:01Z", "2026-03-02T10:59:59Z"] {
        assert_eq!(decided(&cron_job, time(now)).0, None, "{now}");
    }
    assert_eq!(decided(&cron_job, time("2026-03-02T12:30:00Z")).0, Some(time("2026-03-02T12:00:00Z")));
}

#[test]
fn edits_that_are_put_off_carry_the_record() {
    let cron_job = annotated(&[(EXCLUDE, "Sat")], "2026-03-02T08:30:00Z", json!({}));
    let mut observation = observe(&cron_job, &[]);
    (observation.settle_later, observation.create) = (true, Some(created()));
    let put_off = settle(&observation);
    assert!(put_off.status.is_none() && !put_off.edits.is_empty());
    // Without its annotations, the next version needs no record of its own.
    let mut observation = observe(&super::cron_job(json!({})), &[&job(NAME, "new-uid", made_by_controller(SLOT))]);
    observation.recalled.carried = put_off.edits;
    let recorded = written(&settle(&observation)).counted_from.clone().unwrap();
    assert_eq!(recorded.time(), time("2026-03-02T09:00:00Z"));
}

/// The times of an `@every` stay where they were when a policy is added.
#[test]
fn interval_keeps_its_times_over_a_change() {
    let hourly = json!({
        "metadata": { "creationTimestamp": "2026-03-02T08:30:00Z" },
        "spec": { "schedule": "@every 1h" },
        "status": { "lastScheduleTime": "2026-03-02T09:10:00Z" },
    });
    let cron_job = annotated(&[(NOT_AFTER, "2027-01-01T00:00:00Z")], "2026-03-02T11:40:00Z", hourly);
    let (started, next, _) = decided(&cron_job, time("2026-03-02T11:40:01Z"));
    assert_eq!((started, next), (None, Some(time("2026-03-02T12:10:00Z"))));
}

/// A create without an answer is not repeated for a slot that a change has decided.
#[test]
fn create_from_before_a_change_is_not_repeated() {
    let forbid = json!({ "spec": { "concurrencyPolicy": "Forbid" } });
    let pending = Some(unanswered(SLOT, Some(TimeDelta::seconds(20))));
    for (edit, want) in [("2026-03-02T08:30:00Z", Some(time(SLOT))), ("2026-03-02T10:30:00Z", None)] {
        let cron_job = annotated(&[(EXCLUDE, "Sun")], edit, forbid.clone());
        let mut observation = observe(&cron_job, &[]);
        observation.recalled.pending_create = pending;
        let created = match reconcile(&observation, time("2026-03-02T11:00:01Z")) {
            Plan::Create { slot, .. } => Some(slot),
            _ => None,
        };
        assert_eq!(created, want, "{edit}");
    }
}

proptest! {
    /// A spread is a clock that is behind by its offset.
    #[test]
    fn decisions_with_a_spread_are_those_without_it_an_offset_ago(
        window in 1..=86_400i64,
        seconds in 0..200_000i64,
        schedule in proptest::sample::select(&["*/7 * * * *", "0 * * * *", "30 3 * * *", "@every 95m"][..]),
        deadline in proptest::option::of(1..10_000i64),
    ) {
        let spec = json!({ "spec": { "schedule": schedule, "startingDeadlineSeconds": deadline } });
        let window = format!("{window}s");
        let spread = annotated(&[(SPREAD, &*window)], "2026-03-02T08:30:00Z", spec.clone());
        let now = time("2026-03-02T08:30:00Z") + TimeDelta::seconds(seconds);
        let (started, next, events) = decided(&spread, now);
        let offset = spread.offset();
        let without = decided(&cron_job(spec), now - offset);
        prop_assert_eq!((started, next.map(|next| next - offset), events), without);
    }
}
