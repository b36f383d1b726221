//! What is kept of the edits of several syncs whose status was not written.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::controller::tests::objects::{at, cron_job, job};

#[derive(Clone, Copy, Debug)]
enum Edit {
    /// The Job runs for this slot.
    Starts(&'static str, &'static str),
    /// It has ended.
    Ends(&'static str),
    /// It is deleted.
    Goes(&'static str),
    /// A Job completed then.
    Succeeds(&'static str),
    /// Slots are decided until then.
    Counts(&'static str),
    /// What a sync makes of a version of which it decides only.
    LeavesOut(&'static str),
}

/// The status after the edits: active Jobs, the newest slot, the last success, and until when slots are decided.
type Want<'a> = (&'a [&'a str], &'a str, Option<&'a str>, Option<&'a str>);

#[test]
fn edits_of_several_syncs_come_to_what_the_last_of_them_saw() {
    use Edit::{Counts, Ends, Goes, LeavesOut, Starts, Succeeds};
    let rows: &[(&str, &[Edit], Want<'_>)] = &[
        ("none", &[], (&["old"], "09:00", None, None)),
        ("two starts", &[Starts("a", "10:00"), Starts("b", "10:01")], (&["old", "a", "b"], "10:01", None, None)),
        (
            "two starts, the later slot first",
            &[Starts("b", "10:01"), Starts("a", "10:00")],
            (&["old", "b", "a"], "10:01", None, None),
        ),
        ("the same Job twice", &[Starts("a", "10:00"), Starts("a", "10:00")], (&["old", "a"], "10:00", None, None)),
        ("a start and its end", &[Starts("a", "10:00"), Ends("a")], (&["old"], "10:00", None, None)),
        ("an end seen twice", &[Ends("old"), Goes("old")], (&[], "09:00", None, None)),
        ("two ends", &[Starts("a", "10:00"), Goes("old"), Ends("a")], (&[], "10:00", None, None)),
        ("an end, and it runs after all", &[Ends("old"), Starts("old", "09:00")], (&["old"], "09:00", None, None)),
        (
            "an end, and it runs after all, until it ends",
            &[Ends("old"), Starts("old", "09:00"), Ends("old")],
            (&[], "09:00", None, None),
        ),
        (
            "one that is left out runs on",
            &[Starts("a", "10:00"), LeavesOut("old")],
            (&["old", "a"], "10:00", None, None),
        ),
        ("two successes", &[Succeeds("10:05"), Succeeds("10:07")], (&["old"], "09:00", Some("10:07"), None)),
        (
            "two successes, the later first",
            &[Succeeds("10:07"), Succeeds("10:05")],
            (&["old"], "09:00", Some("10:07"), None),
        ),
        ("two changes", &[Counts("10:10"), Counts("10:20")], (&["old"], "09:00", None, Some("10:20"))),
        (
            "two changes, seen by a clock that was set back",
            &[Counts("10:20"), Counts("10:10")],
            (&["old"], "09:00", None, Some("10:20")),
        ),
    ];
    let base = |change: Value| {
        let reference =
            json!([{ "kind": "Job", "namespace": "ns", "name": "old", "uid": "old", "apiVersion": "batch/v1" }]);
        let status = json!({ "status": { "active": reference }, "metadata": { "annotations": {} } });
        cron_job(crate::controller::tests::objects::merged(status, change))
    };
    let same = base(json!({}));
    for (sentence, edits, want) in rows {
        // Each sync begins with what the one before could not write.
        let mut recalled = Recalled::default();
        for edit in *edits {
            let mut draft = Draft::new(&same, &recalled);
            match *edit {
                Edit::Starts(name, slot) => draft.started(&job(name, name, json!({})), at(slot)),
                Edit::Ends(name) => draft.ended(&job(name, name, json!({}))),
                Edit::Goes(name) => {
                    let job = job(name, name, json!({}));
                    draft.deleted(&job.name, &job.uid, &Ok(()), false);
                }
                Edit::Succeeds(time) => draft.succeeded_at(Some(at(time))),
                Edit::Counts(time) => draft.counted(same.counted_at(at(time))),
                Edit::LeavesOut(name) => assert!(draft.leave_out(&Uid::new(name)), "{name}"),
            }
            recalled.carried = draft.settle(Outcome::Done, true).edits;
        }
        let is_written = |cron_job: &Arc<CronJob>, (active, scheduled, succeeded, counted): Want<'_>, what: &str| {
            let status = Draft::new(cron_job, &recalled).status.into_owned();
            let names: Vec<&str> = status.active.iter().map(|reference| &*reference.name).collect();
            assert_eq!(names, active, "{sentence}{what}");
            assert_eq!(status.last_schedule_time, Some(at(scheduled)), "{sentence}{what}");
            assert_eq!(status.last_successful_time, succeeded.map(at), "{sentence}{what}");
            assert_eq!(status.counted_from.as_ref().map(|counted| counted.time()), counted.map(at), "{sentence}{what}");
            let written = Arc::new(CronJob { status: status.clone(), ..CronJob::clone(cron_job) });
            assert_eq!(*Draft::new(&written, &recalled).status, status, "{sentence}{what}, written twice");
        };
        is_written(&same, *want, "");
        // Another controller has written the status meanwhile.
        let later = json!({ "lastScheduleTime": "2026-03-02T11:00:00Z", "lastSuccessfulTime": "2026-03-02T11:00:00Z" });
        let (active, _, _, counted) = *want;
        is_written(
            &base(json!({ "status": later })),
            (active, "11:00", Some("11:00"), counted),
            ", to a later version",
        );
        let put_off = Draft::new(&same, &recalled).settle(Outcome::Done, true).edits;
        assert_eq!(put_off.is_empty(), edits.is_empty(), "{sentence}");
    }
}
