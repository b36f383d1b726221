//! Each pair of policies in a Namespace that is frozen, thawed, restricted to some dates, or not to be read.

use super::limits::{running, sync};
use super::pairs::{Case, EVERY, cases};
use super::*;
use crate::api::policy::{EXCLUDE, NOT_BEFORE, REASON, Restriction};
use crate::api::{Interner, Namespace, Object as _};

/// When the freeze of these tests ends.
const UNTIL: &str = "2026-03-02T12:00:00Z";

#[allow(clippy::needless_pass_by_value, reason = "callers write it with json!")]
fn restriction(annotations: Value) -> Arc<Restriction> {
    let object = json!({ "metadata": { "name": "ns", "uid": "ns", "annotations": annotations } });
    Namespace::decode(&object.to_string(), &Interner::default()).unwrap().restriction.unwrap()
}

fn freeze(until: &str) -> Arc<Restriction> {
    restriction(json!({ NOT_BEFORE: until, REASON: "release week" }))
}

/// The CronJob of the case, last fired at nine, in a Namespace with this restriction.
fn restricted(case: &Case, restriction: &Arc<Restriction>) -> Arc<CronJob> {
    Arc::new(case.cron_job(time("2026-03-02T09:00:00Z")).restricted(restriction))
}

fn allowed() -> impl Iterator<Item = (String, Case)> {
    let name = |case: &Case| format!("{:?} {} {}", case.policies, case.schedule, case.concurrency);
    cases().filter(|case| !case.is_forbidden()).map(move |case| (name(&case), case))
}

/// The first slot of the case at or after `from`.
fn first_slot(case: &Case, from: &str) -> DateTime<Utc> {
    case.slots().into_iter().find(|slot| *slot >= time(from)).unwrap()
}

#[test]
fn nothing_starts_or_is_deleted_in_a_freeze_and_the_first_slot_after_it_starts() {
    let frozen = freeze(UNTIL);
    let old = running("report-29540700", "2026-03-02T09:00:00Z");
    let jobs: [&[&Arc<Job>]; 2] = [&[], &[&old]];
    for (name, case) in allowed() {
        let cron_job = restricted(&case, &frozen);
        let first = first_slot(&case, UNTIL);
        for now in ["2026-03-02T10:00:00Z", "2026-03-02T10:30:00Z", "2026-03-02T11:00:07Z", "2026-03-02T11:59:54Z"] {
            for jobs in jobs {
                let ran = sync(&cron_job, jobs, now);
                assert_eq!((ran.started.len(), ran.deleted.len()), (0, 0), "{name}: at {now}");
                assert_eq!(requeued_at(ran.end()), Some(case.due(first)), "{name}: at {now}");
                let event = ran.end().events.iter().find(|event| event.reason == "Frozen").unwrap();
                assert!(event.message.contains("until 2026-03-02T12:00:00Z: \"release week\""), "{name}: {event:?}");
            }
        }
        let ran = sync(&cron_job, &[], &case.due(first).to_rfc3339());
        assert_eq!((ran.started.as_slice(), reasons(ran.end()).contains(&"Frozen")), (&[first][..], false), "{name}");
    }
}

#[test]
fn thaw_starts_nothing_older_than_itself() {
    let (thaw, thawed) = ("2026-03-02T11:15:00Z", freeze("2026-03-02T11:15:00Z"));
    for (name, case) in allowed() {
        let cron_job = restricted(&case, &thawed);
        let first = first_slot(&case, thaw);
        // A minute later, and when the slot of 11:00 would be due with the spread.
        for now in ["2026-03-02T11:15:00Z", "2026-03-02T11:16:00Z", "2026-03-02T11:29:59Z"] {
            let ran = sync(&cron_job, &[], now);
            assert_eq!((ran.started.len(), requeued_at(ran.end())), (0, Some(case.due(first))), "{name}: at {now}");
        }
        // It was written in the second before its bound, and is no news then, also for a clock that is behind.
        for (now, is_told) in [("2026-03-02T11:14:55Z", false), ("2026-03-02T11:14:54Z", true)] {
            let ran = sync(&cron_job, &[], now);
            assert_eq!(reasons(ran.end()).contains(&"Frozen"), is_told, "{name}: at {now}");
        }
        assert_eq!(sync(&cron_job, &[], &case.due(first).to_rfc3339()).started, [first], "{name}");
    }
}

#[test]
fn removal_of_a_freeze_is_like_a_resume() {
    for (name, case) in allowed() {
        let cron_job = case.cron_job(time("2026-03-02T09:00:00Z"));
        let (first, second) = (case.slots()[0], case.slots()[1]);
        let late = case.due(second) + TimeDelta::seconds(30);
        let oldest = case.policies.contains(&(crate::api::policy::BACKLOG, "2"));
        let started = sync(&cron_job, &[], &late.to_rfc3339()).started;
        assert_eq!(started, [if oldest { first } else { second }], "{name}");
    }
}

#[test]
fn dates_that_a_namespace_excludes_have_no_slots_and_hold_an_interval() {
    let closed = restriction(json!({ EXCLUDE: "Mon" }));
    for (name, case) in allowed() {
        let cron_job = restricted(&case, &closed);
        let ran = sync(&cron_job, &[], "2026-03-02T23:59:59Z");
        let is_held = case.schedule == EVERY;
        let first = (!is_held).then(|| case.due(first_slot(&case, "2026-03-03T00:00:00Z")));
        assert_eq!((ran.started.len(), requeued_at(ran.end())), (0, first), "{name}");
        assert_eq!(reasons(ran.end()).contains(&"InvalidPolicy"), is_held, "{name}");
    }
}

#[test]
fn restriction_that_cannot_be_read_holds_every_cron_job_and_is_told() {
    let unreadable = restriction(json!({ NOT_BEFORE: "soon" }));
    for (name, case) in allowed() {
        let ran = sync(&restricted(&case, &unreadable), &[], "2026-03-03T01:30:00Z");
        assert_eq!((ran.started.len(), ran.skip()), (0, Some("invalid")), "{name}");
        let event = ran.end().events.iter().find(|event| event.reason == "InvalidPolicy").unwrap();
        assert!(
            event.message.starts_with("on the Namespace: cronjob-controller.dev/not-before: \"soon\""),
            "{name}: {event:?}"
        );
    }
}

#[test]
fn suspended_cron_job_is_not_told_of_a_freeze() {
    let suspended = cron_job(json!({ "spec": { "suspend": true } })).restricted(&freeze(UNTIL));
    assert_eq!(reasons(sync(&Arc::new(suspended), &[], "2026-03-02T10:00:00Z").end()), [""; 0]);
}

/// Each sync knows what the ones before it told. The reasons are those of its Events.
#[test]
fn events_about_a_namespace_are_told_once_an_hour_and_anew_with_another_end() {
    let [soon, later] = ["soon", "later"].map(|value| restriction(json!({ NOT_BEFORE: value })));
    let rows: [(&str, Arc<Restriction>, &str, &[&str]); 8] = [
        ("a freeze", freeze(UNTIL), "10:00", &["Frozen"]),
        ("the same", freeze(UNTIL), "10:01", &[]),
        ("it is extended", freeze("2026-03-02T13:00:00Z"), "10:02", &["Frozen"]),
        ("with no end within the calendar", freeze("9999-12-31T00:00:00Z"), "10:03", &["Frozen"]),
        ("the same again", freeze("9999-12-31T00:00:00Z"), "10:04", &[]),
        ("it cannot be read", Arc::clone(&soon), "10:05", &["InvalidPolicy"]),
        ("in another way", later, "10:06", &[]),
        ("an hour later", soon, "11:06", &["InvalidPolicy"]),
    ];
    let mut told = Vec::new();
    for (sentence, restriction, minute, want) in rows {
        let mut observation =
            observe(&cron_job(json!({ "status": { "lastScheduleTime": "2026-03-02T09:00:00Z" } })), &[]);
        observation.cron_job = Arc::new(observation.cron_job.restricted(&restriction));
        observation.recalled.memo.recent_events = told;
        let Plan::Settle(settlement) = reconcile(&observation, time(&format!("2026-03-02T{minute}:00Z"))) else {
            panic!("{sentence}: it does not settle")
        };
        assert_eq!(reasons(&settlement), want, "{sentence}");
        told = settlement.memo.recent_events;
    }
}
