#![allow(clippy::unwrap_used)]

use schedule::missed::Missed;
use serde_json::{Value, json};

use super::*;
use crate::api::{Interner, Object as _};
use crate::cli::explain::tests::{cron_job, instant, name_of};

/// What happens, at a time of the day of 2026-11-22.
enum Step {
    /// This controller would start a slot.
    Starts(&'static str, &'static str),
    /// It would, and may have since an earlier time.
    StartsLate(&'static str, &'static str, &'static str),
    /// It would not.
    Not(&'static str, Skip),
    /// The watch shows a Job for a slot, under a name.
    Sees(&'static str, &'static str, &'static str),
    /// The watch shows one, because of which the last slot would not start.
    Blocks(&'static str, &'static str, Skip),
    /// The watch shows one while another runs.
    SeesBeside(&'static str, &'static str, &'static str),
    /// Time passes; the status tells of this slot.
    Passes(&'static str, Option<&'static str>),
    /// What was due until then was not watched.
    Gap(&'static str),
    /// What was found of slots that were due after this time is in doubt.
    Doubts(&'static str),
    /// The CronJob is looked at, and this controller would do nothing.
    Looks(&'static str),
    /// The CronJob is changed.
    Changes(&'static str),
}
use Step::{Blocks, Changes, Doubts, Gap, Looks, Not, Passes, Sees, SeesBeside, Starts, StartsLate};

fn at(time: &str) -> DateTime<Utc> {
    instant(&format!("2026-11-22T{time}Z"))
}

fn job(slot: &str, name: &str, created: DateTime<Utc>) -> Arc<Job> {
    let object = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{name} of {slot} at {created}"), "resourceVersion": "1",
            "creationTimestamp": created.format("%FT%TZ").to_string(),
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": at(slot).to_rfc3339()},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cj", "controller": true}
            ],
        },
    });
    Arc::new(Job::decode(&object.to_string(), &Interner::default()).unwrap())
}

fn job_name(slot: &str) -> String {
    name_of(&format!("2026-11-22T{slot}Z"))
}

/// A CronJob that is due every ten minutes, with these fields, and whose slots are compared from noon on.
fn track(spec: &Value) -> (Arc<CronJob>, Track) {
    let mut spec = spec.clone();
    spec["schedule"] = "*/10 * * * *".into();
    let cron_job = cron_job(&json!({ "spec": spec, "status": {"lastScheduleTime": "2026-11-22T12:00:00Z"} }));
    let track = Track::new(&cron_job, &[], at("12:00:00"));
    (cron_job, track)
}

impl Step {
    fn take(self, cron_job: &CronJob, track: &mut Track) {
        let come_due = |track: &mut Track, new: Vec<Sight>, now: &str, running: &[&Arc<Job>]| {
            for sight in track.due(new, cron_job, at(now)) {
                track.see(&sight, running, cron_job, Zone::UTC, at(now));
            }
        };
        let see = |track: &mut Track, slot: &str, name: &str, seen: &str, running: &[&Arc<Job>]| {
            let name = if name.is_empty() { job_name(slot) } else { name.to_owned() };
            let sight = Sight { job: job(slot, &name, at(seen)), at: at(seen) };
            come_due(track, vec![sight], seen, running);
        };
        match self {
            Starts(slot, now) => {
                let verdict = Verdict::Started { slot: at(slot), missed: Missed::None };
                let _ = track.judge(verdict, cron_job, Zone::UTC, [at(now); 2]);
                come_due(track, Vec::new(), now, &[]);
            }
            StartsLate(slot, ready, now) => {
                let verdict = Verdict::Started { slot: at(slot), missed: Missed::None };
                let _ = track.judge(verdict, cron_job, Zone::UTC, [at(ready), at(now)]);
            }
            Not(now, skip) => {
                let _ = track.judge(Verdict::Skipped(skip), cron_job, Zone::UTC, [at(now); 2]);
                come_due(track, Vec::new(), now, &[]);
            }
            Looks(now) => come_due(track, Vec::new(), now, &[]),
            Changes(now) => {
                track.skip_until(at(now), cron_job, cron_job, Zone::UTC);
                track.lose_early(cron_job);
            }
            Sees(slot, name, seen) => see(track, slot, name, seen, &[]),
            SeesBeside(slot, name, seen) => see(track, slot, name, seen, &[&job("12:00:00", "before", at("12:00:00"))]),
            Blocks(slot, seen, skip) => {
                let sight = Sight { job: job(slot, &job_name(slot), at(seen)), at: at(seen) };
                track.see(&sight, &[], cron_job, Zone::UTC, at(seen));
                track.judge_again(Verdict::Skipped(skip), &[sight]);
            }
            Passes(now, told) => track.pass(told.map(at), at(now)),
            Gap(until) => track.skip_until(at(until), cron_job, cron_job, Zone::UTC),
            Doubts(since) => track.doubt(at(since)),
        }
    }
}

/// The finding in a word, with the beginning of its sentence.
fn word(finding: &Finding) -> String {
    match finding {
        Finding::Same => "same".to_owned(),
        Finding::NotSeen => "not seen".to_owned(),
        Finding::Missed(why) => format!("missed: {why}"),
        Finding::Twice(why) => format!("twice: {why}"),
        Finding::Differs(why) => format!("differs: {why}"),
        Finding::Listed(why) => format!("listed: {why}"),
    }
}

/// The findings that hold in the end, by slot, and the seconds by which Jobs were late.
fn findings(spec: &Value, steps: Vec<Step>) -> (Vec<String>, Vec<f64>) {
    let (cron_job, mut track) = track(spec);
    for step in steps {
        step.take(&cron_job, &mut track);
    }
    let (mut found, mut late) = (BTreeMap::new(), Vec::new());
    for change in track.take_changes() {
        let before = found.insert(change.slot, change.after);
        assert_eq!(before.unwrap_or_default(), change.before, "each change follows from the one before");
        late.extend(change.late.map(super::super::lateness::seconds));
    }
    let said =
        |(slot, finding): (DateTime<Utc>, Option<Finding>)| Some(format!("{} {}", slot.format("%R"), word(&finding?)));
    (found.into_iter().filter_map(said).collect(), late)
}

/// A sentence, a change of the CronJob, what happens, the findings, and how late the Jobs of the controller in charge are.
type Row<'a> = (&'a str, Value, Vec<Step>, &'a [&'a str], &'a [f64]);

#[test]
fn each_slot_has_the_finding_that_follows_from_both_controllers() {
    let forbid = || Skip::Forbid(at("12:10:00"));
    let rows: Vec<Row<'_>> = vec![
        ("no slot", json!({}), vec![], &[], &[]),
        (
            "both start it",
            json!({}),
            vec![Starts("12:10:00", "12:10:00.002"), Sees("12:10:00", "", "12:10:00.150")],
            &["12:10 same"],
            &[0.15],
        ),
        (
            "late is no difference",
            json!({}),
            vec![
                Starts("12:10:00", "12:10:00"),
                Sees("12:10:00", "", "12:11:57"),
                Starts("12:20:00", "12:20:00"),
                Sees("12:20:00", "", "12:20:00.5"),
            ],
            &["12:10 same", "12:20 same"],
            &[117.0, 0.5],
        ),
        ("not started yet", json!({}), vec![Starts("12:10:00", "12:10:00"), Passes("12:12:59", None)], &[], &[]),
        (
            "missed after three minutes",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), Passes("12:13:00", None)],
            &["12:10 missed: no Job was created for it within 3m00s"],
            &[],
        ),
        (
            "what counted as missed and comes after all is late",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), Passes("12:13:00", None), Sees("12:10:00", "", "12:15:00")],
            &["12:10 same"],
            &[300.0],
        ),
        (
            "missed at once when a later slot has its Job",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), Starts("12:20:00", "12:20:00"), Sees("12:20:00", "", "12:20:00.1")],
            &["12:10 missed: no Job was created for it before that of 2026-11-22 12:20:00Z", "12:20 same"],
            &[0.1],
        ),
        (
            "what was found shortly before another restriction was read is in doubt, and what agrees is not",
            json!({}),
            vec![
                Starts("12:10:00", "12:10:00"),
                Passes("12:13:00", None),
                Sees("12:20:00", "", "12:20:00.1"),
                Starts("12:30:00", "12:30:00"),
                Sees("12:30:00", "", "12:30:00.1"),
                Doubts("12:19:50"),
            ],
            &["12:10 missed: no Job was created for it within 3m00s", "12:20 not seen", "12:30 same"],
            &[0.1],
        ),
        (
            "a Job long before its slot",
            json!({}),
            vec![Sees("12:10:00", "", "12:09:38")],
            &["12:10 differs: Job nightly-29922490 was created 22s before it was due"],
            &[],
        ),
        (
            "a slot of which the status tells, without a Job in an unbroken watch",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), Passes("12:13:00", Some("12:10:00"))],
            &["12:10 missed: the status tells of it, and no Job was seen within 3m00s"],
            &[],
        ),
        (
            "a slot of which the status tells, and that came due in a gap",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), Gap("12:10:30"), Passes("12:13:00", Some("12:10:00"))],
            &["12:10 not seen"],
            &[],
        ),
        (
            "a status that tells of a time to come",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), Passes("12:13:00", Some("18:00:00"))],
            &["12:10 not seen"],
            &[],
        ),
        ("due before the watch, as the status tells", json!({}), vec![Passes("12:13:00", Some("12:00:00"))], &[], &[]),
        (
            "judged late by this process: lateness counts from the slot",
            json!({}),
            vec![Starts("12:10:00", "12:10:04"), Sees("12:10:00", "", "12:10:04.1")],
            &["12:10 same"],
            &[4.1],
        ),
        (
            "held, and judged late by this process: lateness counts from before the stall",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![
                Not("12:10:00", forbid()),
                StartsLate("12:10:00", "12:13:59", "12:14:09"),
                Sees("12:10:00", "", "12:14:09.2"),
            ],
            &["12:10 same"],
            &[10.2],
        ),
        (
            "neither starts it",
            json!({}),
            vec![Not("12:10:00", forbid()), Not("12:13:00", forbid())],
            &["12:10 same"],
            &[],
        ),
        (
            "held, and both start it when they may: lateness counts from then",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![Not("12:10:00", forbid()), Starts("12:10:00", "12:14:00"), Sees("12:10:00", "", "12:14:00.2")],
            &["12:10 same"],
            &[0.2],
        ),
        (
            "held by a Job that existed when it was judged, and that the watch showed later",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![
                Starts("12:10:00", "12:10:00"),
                Starts("12:20:00", "12:20:00.002"),
                Blocks("12:10:00", "12:20:00.001", Skip::Forbid(at("12:20:00"))),
                Passes("12:30:00", None),
            ],
            &["12:10 same", "12:20 same"],
            &[600.001],
        ),
        (
            "held by a Job that this controller would have started just before",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![
                Not("12:10:00", forbid()),
                Starts("12:10:00", "12:19:59"),
                Starts("12:20:00", "12:20:00.002"),
                Blocks("12:10:00", "12:20:02", Skip::Forbid(at("12:20:00"))),
                Passes("12:30:00", None),
            ],
            &["12:10 same", "12:20 same"],
            &[3.0],
        ),
        (
            "held by a Job that came later, because it was late itself",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![
                Starts("12:10:00", "12:10:00"),
                Starts("12:20:00", "12:20:00.002"),
                Blocks("12:10:00", "12:20:05", Skip::Forbid(at("12:20:00"))),
                Passes("12:30:00", None),
            ],
            &["12:10 same", "12:20 missed: no Job was created for it within 10m00s"],
            &[605.0],
        ),
        (
            "held here and started there",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![Not("12:10:00", forbid()), Sees("12:10:00", "", "12:10:00.2")],
            &[
                "12:10 differs: started there and not here (forbid): Forbid broken: a Job of an earlier slot ran; Job nightly-29922490",
            ],
            &[],
        ),
        (
            "another running Job is named",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![Starts("12:10:00", "12:10:00"), SeesBeside("12:10:00", "", "12:10:00.2")],
            &[
                "12:10 differs: Forbid broken: Job nightly-29922490 began while Job before ran, and concurrencyPolicy is Forbid",
            ],
            &[0.2],
        ),
        (
            "under Allow they may run beside each other",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), SeesBeside("12:10:00", "", "12:10:00.2")],
            &["12:10 same"],
            &[0.2],
        ),
        (
            "too late here and started there",
            json!({"startingDeadlineSeconds": 60}),
            vec![Not("12:12:00", Skip::Deadline(at("12:10:00"))), Sees("12:10:00", "", "12:12:01")],
            &[
                "12:10 differs: started there and not here (deadline): its starting deadline had passed; Job nightly-29922490",
            ],
            &[],
        ),
        (
            "twice, under another name",
            json!({}),
            vec![
                Starts("12:10:00", "12:10:00"),
                Sees("12:10:00", "", "12:10:00.1"),
                Sees("12:10:00", "again", "12:10:05"),
            ],
            &["12:10 twice: Jobs nightly-29922490 and again were created for it"],
            &[0.1],
        ),
        (
            "twice, under the same name, after the first was deleted",
            json!({}),
            vec![Starts("12:10:00", "12:10:00"), Sees("12:10:00", "", "12:10:00.1"), Sees("12:10:00", "", "12:10:09")],
            &["12:10 twice: Job nightly-29922490 was created twice"],
            &[0.1],
        ),
        (
            "no slot of the schedule",
            json!({}),
            vec![Sees("12:05:00", "", "12:05:01")],
            &["12:05 differs: started there and not here: the schedule has no such time; Job nightly-29922485"],
            &[],
        ),
        (
            "an old slot",
            json!({}),
            vec![Sees("12:10:00", "", "12:45:00")],
            &[
                "12:10 differs: started there and not here: it was not the newest slot that was due; Job nightly-29922490",
            ],
            &[],
        ),
        ("due before the watch", json!({}), vec![Sees("11:50:00", "", "12:00:01")], &[], &[]),
        (
            "a clock that is ahead by a little",
            json!({}),
            vec![Sees("12:10:00", "", "12:09:59.9"), Starts("12:10:00", "12:10:00")],
            &["12:10 same"],
            &[0.0],
        ),
        (
            "a Job a little early, whose slot is not due yet",
            json!({}),
            vec![Sees("12:10:00", "", "12:09:58")],
            &[],
            &[],
        ),
        (
            "a Job a little early of a suspended CronJob",
            json!({"suspend": true}),
            vec![Sees("12:10:00", "", "12:09:58"), Looks("12:10:00")],
            &[
                "12:10 differs: started there and not here: the CronJob is suspended (spec.suspend); Job nightly-29922490",
            ],
            &[],
        ),
        (
            "a Job a little early of a paused CronJob",
            json!({}),
            vec![Sees("12:10:00", "", "12:09:55"), Not("12:10:00", Skip::Paused(at("12:10:00")))],
            &[
                "12:10 differs: started there and not here (paused): the last Jobs failed, as many as pause-after-failures allows; Job nightly-29922490",
            ],
            &[],
        ),
        (
            "a Job a little early for no slot of the schedule",
            json!({}),
            vec![Sees("12:05:00", "", "12:04:57"), Looks("12:05:00")],
            &["12:05 differs: started there and not here: the schedule has no such time; Job nightly-29922485"],
            &[],
        ),
        (
            "a Job a little early, and a change before its slot",
            json!({}),
            vec![Sees("12:10:00", "", "12:09:57"), Changes("12:09:58"), Starts("12:10:00", "12:10:00")],
            &["12:10 not seen"],
            &[],
        ),
        (
            "two Jobs a little early",
            json!({}),
            vec![Sees("12:10:00", "", "12:09:57"), Sees("12:10:00", "x", "12:09:58"), Starts("12:10:00", "12:10:00")],
            &["12:10 twice: Jobs nightly-29922490 and x were created for it"],
            &[0.0],
        ),
        (
            "a Job long before a slot of a suspended CronJob",
            json!({"suspend": true}),
            vec![Sees("12:10:00", "", "12:09:30")],
            &[
                "12:10 differs: started there and not here: the CronJob is suspended (spec.suspend); Job nightly-29922490",
            ],
            &[],
        ),
        (
            "two hours early, and once more when it is due",
            json!({}),
            vec![Sees("12:10:00", "", "10:10:00"), Starts("12:10:00", "12:10:00"), Sees("12:10:00", "x", "12:10:01")],
            &["12:10 twice: Jobs nightly-29922490 and x were created for it"],
            &[],
        ),
        (
            "slots in a gap of the watch",
            json!({}),
            vec![
                Starts("12:10:00", "12:10:00"),
                Gap("12:35:00"),
                Sees("12:20:00", "", "12:35:01"),
                Starts("12:40:00", "12:40:00"),
                Sees("12:40:00", "", "12:40:00.1"),
            ],
            &["12:10 not seen", "12:20 not seen", "12:30 not seen", "12:40 same"],
            &[0.1],
        ),
        (
            "slots that the shadow came too late for",
            json!({}),
            vec![Starts("12:30:00", "12:30:00"), Sees("12:30:00", "", "12:30:01")],
            &["12:10 not seen", "12:20 not seen", "12:30 same"],
            &[1.0],
        ),
    ];
    for (name, spec, steps, want, late) in rows {
        let (found, seconds) = findings(&spec, steps);
        assert_eq!(
            (found.as_slice(), seconds.as_slice()),
            (want.iter().map(|&text| text.to_owned()).collect::<Vec<_>>().as_slice(), late),
            "{name}"
        );
    }
}

#[test]
fn manual_jobs_and_those_of_a_backfill_are_for_no_slot() {
    let with = |change: &Value| {
        let mut object = json!({
            "metadata": {"name": "a", "namespace": "shop", "uid": "a", "resourceVersion": "1", "annotations": {}, "labels": {}},
        });
        apiserver::merge_patch(&mut object, change);
        Job::decode(&object.to_string(), &Interner::default()).unwrap()
    };
    let slot = json!({"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-22T12:10:00Z"});
    let rows = [
        ("a manual one", json!({"metadata": {"annotations": {"cronjob.kubernetes.io/instantiate": "manual"}}}), false),
        ("one of a slot", json!({"metadata": {"annotations": slot}}), true),
    ];
    for (name, change, is_for_one) in rows {
        let mut owned = change;
        owned["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cj", "controller": true}
        ]);
        assert_eq!(slot_for(&with(&owned)).is_some(), is_for_one, "{name}");
    }
    let backfilled = Job { of_backfill: true, ..Job::clone(&job("12:10:00", "a", at("12:10:00"))) };
    assert_eq!(slot_for(&backfilled), None);
}

#[test]
fn a_cron_job_is_judged_as_it_was_before_the_jobs_that_are_compared() {
    let (cron_job, track) = track(&json!({}));
    let new = job("12:10:00", &job_name("12:10:00"), at("12:10:00"));
    let mut changed = CronJob::clone(&cron_job);
    changed.status.last_schedule_time = Some(at("12:10:00"));
    changed.status.active.push(new.reference(changed.controller_kind));
    let changed = Arc::new(changed);
    let sight = Sight { job: Arc::clone(&new), at: at("12:10:00.1") };
    let (earlier, jobs) = track.before(&changed, vec![Arc::clone(&new)], &[sight]);
    assert_eq!(
        (earlier.status.last_schedule_time, earlier.status.active.len(), jobs.len()),
        (Some(at("12:00:00")), 0, 0)
    );
    // The status may be shown before the Job.
    let (earlier, _) = track.before(&changed, Vec::new(), &[]);
    assert_eq!(earlier.status.last_schedule_time, Some(at("12:00:00")));
    let (same, _) = track.before(&cron_job, Vec::new(), &[]);
    assert!(Arc::ptr_eq(&same, &cron_job), "nothing to undo");
}

#[test]
fn what_is_kept_of_a_cron_job_is_bounded() {
    let (cron_job, mut track) = track(&json!({}));
    for minute in 0..600 {
        let slot = at("12:00:00") + TimeDelta::minutes(10 * (minute + 1));
        track.judge(Verdict::Started { slot, missed: Missed::None }, &cron_job, Zone::UTC, [slot; 2]);
    }
    assert_eq!(track.slots.len(), KEPT);
    let missed = track.take_changes().into_iter().filter(|change| matches!(change.after, Some(Finding::Missed(_))));
    assert_eq!(missed.count(), 600 - KEPT, "those that are not kept are in the sums");
}

#[test]
fn slots_that_a_long_gap_hides_take_no_memory() {
    let (cron_job, mut track) = track(&json!({}));
    for days in 1..4 {
        track.skip_until(at("12:00:00") + TimeDelta::days(days), &cron_job, &cron_job, Zone::UTC);
    }
    assert!(!track.take_changes().is_empty() && track.slots.len() <= KEPT);
}

#[test]
fn slots_before_a_change_are_those_of_the_schedule_before() {
    let every = |schedule: &str| {
        let spec = json!({"schedule": schedule});
        cron_job(&json!({"spec": spec, "status": {"lastScheduleTime": "2026-11-22T12:00:00Z"}}))
    };
    // The schedule before the change at 12:35 and after it, and the slots that were not seen.
    let rows: [(&str, &str, &[&str]); 3] = [
        ("0 0 1 1 *", "*/10 * * * *", &[]),
        ("*/10 * * * *", "0 0 1 1 *", &["12:10", "12:20", "12:30"]),
        ("*/30 * * * *", "*/10 * * * *", &["12:30"]),
    ];
    for (before, after, want) in rows {
        let (before, after) = (every(before), every(after));
        let mut track = Track::new(&before, &[], at("12:00:00"));
        track.skip_until(at("12:35:00"), &before, &after, Zone::UTC);
        let found: Vec<String> =
            track.take_changes().iter().map(|change| change.slot.format("%R").to_string()).collect();
        assert_eq!(found, want);
    }
}

#[test]
fn slot_of_a_job_without_the_annotation_is_not_compared() {
    let (cron_job, mut track) = track(&json!({}));
    let _ = track.judge(
        Verdict::Started { slot: at("12:10:00"), missed: Missed::None },
        &cron_job,
        Zone::UTC,
        [at("12:10:00"); 2],
    );
    let bare = |name: &str| {
        let job = job("12:10:00", name, at("12:10:00"));
        Arc::new(Job { scheduled_timestamp: None, ..Job::clone(&job) })
    };
    // A name, and whether it is that of the slot.
    for (name, is_of_slot) in [("by-hand", false), (&*job_name("12:10:00"), true), (&*job_name("12:10:00"), false)] {
        assert_eq!(track.take_unannotated(&bare(name), &cron_job), is_of_slot, "{name}");
    }
    track.pass(Some(at("12:10:00")), at("12:20:00"));
    let found: Vec<Option<Finding>> = track.take_changes().into_iter().map(|change| change.after).collect();
    assert_eq!(found, [None, Some(Finding::NotSeen)]);
}
