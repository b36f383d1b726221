//! Decisions about CronJobs with `max-concurrent`, `backlog`, `replace-waits`, `after-change`, `stuck-after` and
//! `pause-after-failures`, alone and in pairs.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::policies::annotated;
use super::*;
use crate::api::Object as _;
use crate::api::batch_v1::{ConcurrencyPolicy, FinishedCondition};
use crate::api::policy::{
    AFTER_CHANGE, BACKLOG, COUNTED_FROM, CountedFrom, LIMITS, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, REPLACE_WAITS,
    SLOT_IN_POD, SPREAD, STUCK_AFTER,
};
use crate::controller::plan::{Blocked, Propagation, RecentEvent, Skip, Verdict};
use schedule::missed::Missed;

pub(super) const CREATED: &str = "2026-03-02T08:30:00Z";

#[allow(clippy::needless_pass_by_value, reason = "callers write it with json!")]
fn with(annotations: &[(&str, &str)], spec: Value) -> Arc<CronJob> {
    annotated(annotations, CREATED, json!({ "spec": spec }))
}

/// A running Job that began at `start`.
pub(super) fn running(name: &str, start: &str) -> Arc<Job> {
    job(name, name, json!({ "metadata": { "creationTimestamp": start }, "status": { "startTime": start } }))
}

fn terminating(name: &str, start: &str) -> Arc<Job> {
    Arc::new(Job { deleting: true, ..Job::clone(&running(name, start)) })
}

pub(super) fn ended(name: &str, start: &str, kind: &str) -> Arc<Job> {
    job(
        name,
        name,
        json!({ "metadata": { "creationTimestamp": start }, "status": {
            "startTime": start, "completionTime": (kind == "Complete").then_some(start),
            "conditions": [{ "type": kind, "status": "True" }],
        } }),
    )
}

/// The slots that start, the Jobs that are deleted, and the end of a sync in which all requests succeed.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) started: Vec<DateTime<Utc>>,
    pub(super) deleted: Vec<(String, Propagation)>,
    settlement: Option<Settlement>,
}

impl Ran {
    pub(super) fn end(&self) -> &Settlement {
        self.settlement.as_ref().unwrap()
    }

    pub(super) fn skip(&self) -> Option<&'static str> {
        match self.end().verdict {
            Verdict::Skipped(skip) => Some(skip.as_str()),
            _ => None,
        }
    }
}

/// Runs a sync. Jobs are found where the observation has them; the status lists the unfinished ones as active.
fn run(mut observation: Case, now: DateTime<Utc>) -> Ran {
    let mut ran = Ran::default();
    let known = observation.jobs.clone();
    for _ in 0..100 {
        match reconcile(&observation, now) {
            Plan::Lookup(lookups) => {
                for lookup in lookups {
                    match lookup {
                        Lookup::CronJob => observation.live.cron_job = Some(Ok(Arc::clone(&observation.cron_job))),
                        Lookup::Job(name) => {
                            let found = known.iter().find(|job| job.name == name).cloned();
                            observation.learn_job(name, found.ok_or_else(|| refusal(404, "NotFound")));
                        }
                    }
                }
            }
            Plan::Replace { victims, .. } => {
                for victim in victims {
                    ran.deleted.push((victim.name.name.to_string(), victim.propagation));
                    observation.learn_deletion(victim.uid, Ok(()));
                }
            }
            Plan::Create { name, slot, .. } => {
                ran.started.push(slot);
                let job = job(&name.name, &name.name, json!({ "metadata": { "creationTimestamp": now } }));
                observation.create = Some(CreateReply::Created(job));
            }
            Plan::Prune { jobs, .. } => {
                for job in jobs {
                    observation.learn_deletion(job.uid.clone(), Ok(()));
                }
            }
            Plan::Settle(settlement) => return Ran { settlement: Some(settlement), ..ran },
        }
    }
    panic!("the sync does not end");
}

pub(super) fn sync(cron_job: &Arc<CronJob>, jobs: &[&Arc<Job>], now: &str) -> Ran {
    let active = |job: &&&Arc<Job>| job.finished.is_none() && !job.of_backfill;
    let active = jobs.iter().filter(active).map(|job| job.reference(cron_job.controller_kind)).collect();
    let status = CronJobStatus { active, ..cron_job.status.clone() };
    run(observe(&Arc::new(CronJob { status, ..CronJob::clone(cron_job) }), jobs), time(now))
}

const FORBID: &str = "Forbid";

#[test]
fn max_concurrent_counts_every_unfinished_child() {
    let two = with(&[(MAX_CONCURRENT, "2")], json!({}));
    let started = vec![time(SLOT)];
    let (a, b) = (running("report-29540700", "2026-03-02T09:00:00Z"), running("by-hand", "2026-03-02T09:10:00Z"));
    let suspended = job("suspended", "suspended", json!({ "spec": { "suspend": true } }));
    let done = ended("done", "2026-03-02T09:10:00Z", "Complete");
    let gone = terminating("gone", "2026-03-02T09:10:00Z");
    let rows: [(&str, &[&Arc<Job>], &Vec<_>); 6] = [
        ("none", &[], &started),
        ("one of two", &[&a], &started),
        ("one made by hand", &[&a, &b], &vec![]),
        ("a suspended one", &[&a, &suspended], &vec![]),
        ("one that is being deleted", &[&a, &gone], &vec![]),
        ("a finished one does not count", &[&a, &done], &started),
    ];
    for (sentence, jobs, want) in rows {
        let ran = sync(&two, jobs, "2026-03-02T10:00:05Z");
        assert_eq!(ran.started, *want, "{sentence}");
        let is_held = want.is_empty();
        assert_eq!(ran.skip(), is_held.then_some("max_concurrent"), "{sentence}");
        assert_eq!(reasons(ran.end()).contains(&"JobAlreadyActive"), is_held, "{sentence}");
    }
    // A child that the status does not list counts too.
    let mut observation = observe(&two, &[&a, &b]);
    observation.live.cron_job = Some(Ok(Arc::clone(&two)));
    assert!(run(observation, now()).started.is_empty());
}

#[test]
fn max_concurrent_one_is_a_strict_forbid() {
    let by_hand = running("by-hand", "2026-03-02T09:10:00Z");
    for (annotations, policy, started) in [
        (&[][..], FORBID, true),
        (&[(MAX_CONCURRENT, "1")], FORBID, false),
        (&[(MAX_CONCURRENT, "1")], "Allow", false),
        // It is in the place of Forbid.
        (&[(MAX_CONCURRENT, "2")], FORBID, true),
    ] {
        let cron_job = with(annotations, json!({ "concurrencyPolicy": policy }));
        let mut observation = observe(&cron_job, &[&by_hand]);
        observation.live.cron_job = Some(Ok(Arc::clone(&cron_job)));
        assert_eq!(!run(observation, now()).started.is_empty(), started, "{annotations:?} {policy}");
    }
}

/// The minutes of a sync each in which an Event says that a Job of 10:00 blocks the next.
fn told_of_blocking(cron_job: &Arc<CronJob>) -> Vec<i64> {
    let blocking = running("report-29540760", "2026-03-02T10:00:00Z");
    let mut told: Vec<RecentEvent> = Vec::new();
    let mut events = Vec::new();
    for minute in 1..150 {
        let now = time("2026-03-02T10:00:00Z") + TimeDelta::minutes(minute);
        let mut observation = observe(cron_job, &[&blocking]);
        observation.live.cron_job = Some(Ok(Arc::clone(cron_job)));
        observation.recalled.memo.recent_events = told;
        let ran = run(observation, now);
        if reasons(ran.end()).contains(&"JobAlreadyActive") {
            events.push(minute);
        }
        told = ran.settlement.unwrap().memo.recent_events;
    }
    events
}

#[test]
fn held_slots_are_told_when_it_begins_and_then_hourly() {
    let every_ten_minutes = json!({ "schedule": "*/10 * * * *" });
    assert_eq!(told_of_blocking(&with(&[(MAX_CONCURRENT, "1")], every_ten_minutes.clone())), [1, 61, 121]);
    // It holds nothing, so the Events are those of Forbid.
    let active = json!({ "status": { "active": [reference("report-29540760", "report-29540760")] } });
    let spec = json!({ "spec": merged(every_ten_minutes, json!({ "concurrencyPolicy": FORBID })) });
    let forbid = annotated(&[(AFTER_CHANGE, "wait")], CREATED, merged(spec, active));
    assert!(told_of_blocking(&forbid).len() > 100);
}

/// A sentence, and for each sync its time, the Jobs (none: a request fails), and whether a Warning about them comes.
type Syncs<'a> = (&'a str, Vec<(&'a str, Option<Vec<Arc<Job>>>, bool)>);

#[test]
fn warnings_about_held_slots_come_again_when_they_begin_anew_or_after_an_hour() {
    let failed = |start: &str| ended(&format!("report-{start}"), &format!("2026-03-02T{start}:00Z"), "Failed");
    let success = ended("report-good", "2026-03-02T10:12:00Z", "Complete");
    let runs = |start: &str| running(&format!("report-{start}"), &format!("2026-03-02T{start}:00Z"));
    let failures = || Some(vec![failed("09:10"), failed("09:20")]);
    let paused: Vec<Syncs<'_>> = vec![
        ("a pause", vec![("10:05", failures(), true), ("10:15", failures(), false), ("11:06", failures(), true)]),
        (
            "two pauses, and a success between",
            vec![
                ("10:05", failures(), true),
                ("10:13", Some(vec![failed("09:10"), failed("09:20"), success.clone()]), false),
                ("10:35", Some(vec![success, failed("10:20"), failed("10:30")]), true),
                ("10:45", failures(), false),
            ],
        ),
        (
            "a pause, and what says nothing",
            vec![("10:05", failures(), true), ("10:11", None, false), ("10:15", failures(), false)],
        ),
        (
            "a deletion of the failed Jobs",
            vec![("10:05", failures(), true), ("10:11", Some(vec![]), false), ("10:15", failures(), true)],
        ),
    ];
    let stuck: Vec<Syncs<'_>> = vec![
        ("a stuck Job", vec![("10:05", Some(vec![runs("09:00")]), true), ("10:15", Some(vec![runs("09:00")]), false)]),
        (
            "two stuck Jobs, and a start between",
            vec![
                ("10:05", Some(vec![runs("09:00")]), true),
                ("10:15", Some(vec![]), false),
                ("10:25", Some(vec![runs("09:50")]), true),
            ],
        ),
        (
            "two stuck Jobs, and one that is not between",
            vec![
                ("10:05", Some(vec![runs("09:00")]), true),
                ("10:15", Some(vec![runs("09:50")]), false),
                ("10:25", Some(vec![runs("09:50")]), true),
            ],
        ),
        (
            "two stuck Jobs, one right after the other",
            vec![
                ("10:05", Some(vec![runs("09:00")]), true),
                ("10:25", Some(vec![runs("09:50")]), false),
                ("11:06", Some(vec![runs("09:50")]), true),
            ],
        ),
    ];
    let ten_minutes = || json!({ "schedule": "*/10 * * * *" });
    let with_pause = with(&[(PAUSE_AFTER_FAILURES, "2")], ten_minutes());
    let blocks = with(&[(MAX_CONCURRENT, "1"), (STUCK_AFTER, "30m")], ten_minutes());
    for (cron_job, reason, rows) in [(with_pause, "Paused", paused), (blocks, "RunStuck", stuck)] {
        for (sentence, syncs) in rows {
            let mut told = Vec::new();
            for (now, jobs, is_told) in syncs {
                let mut observation = observe(&cron_job, &jobs.iter().flatten().collect::<Vec<_>>());
                observation.live.cron_job = Some(Ok(Arc::clone(&cron_job)));
                if jobs.is_none() {
                    (observation.view_is_suspect, observation.live.cron_job) = (true, Some(Err(refusal(503, ""))));
                }
                observation.recalled.memo.recent_events = told;
                let ran = run(observation, time(&format!("2026-03-02T{now}:00Z")));
                assert_eq!(reasons(ran.end()).contains(&reason), is_told, "{sentence}: at {now}");
                told = ran.settlement.unwrap().memo.recent_events;
            }
        }
    }
}

#[test]
fn newest_slots_wait_and_the_oldest_of_them_starts_first() {
    let slots = |texts: &[&str]| texts.iter().map(|text| time(text)).collect::<Vec<_>>();
    let rows = [
        ("absent: the newest", None, "2026-03-02T10:40:00Z"),
        ("the newest waits", Some("1"), "2026-03-02T10:40:00Z"),
        ("the two newest wait", Some("2"), "2026-03-02T10:30:00Z"),
        ("all wait", Some("100"), "2026-03-02T09:10:00Z"),
    ];
    for (sentence, backlog, first) in rows {
        let annotations: Vec<_> = backlog.map(|backlog| (BACKLOG, backlog)).into_iter().collect();
        let spec = json!({ "schedule": "*/10 * * * *", "concurrencyPolicy": FORBID });
        let cron_job = with(&annotations, spec);
        let ran = sync(&cron_job, &[], "2026-03-02T10:40:30Z");
        assert_eq!(ran.started, slots(&[first]), "{sentence}");
        let next = if matches!(backlog, None | Some("1")) { "2026-03-02T10:50:00Z" } else { "a waiting slot" };
        let back = requeued_at(ran.end()).unwrap();
        assert_eq!(back > time("2026-03-02T10:40:30Z"), next != "a waiting slot", "{sentence}");
        let Verdict::Started { missed, .. } = ran.end().verdict else { panic!("{sentence}") };
        assert_eq!(missed != Missed::None, next != "a waiting slot", "{sentence}: what is logged");
        let passed_over = backlog.is_some_and(|backlog| backlog != "100");
        assert_eq!(reasons(ran.end()).contains(&"PassedOver"), passed_over, "{sentence}");
    }
    // With a deadline, the slots past it do not wait.
    let spec = json!({ "schedule": "*/10 * * * *", "concurrencyPolicy": FORBID, "startingDeadlineSeconds": 900 });
    let ran = sync(&with(&[(BACKLOG, "9")], spec), &[], "2026-03-02T10:40:30Z");
    assert_eq!(ran.started, slots(&["2026-03-02T10:30:00Z"]));
}

#[test]
fn waiting_slots_are_passed_over_by_a_newer_job_unless_they_have_jobs_of_their_own() {
    let slots = [("report-29540770", "10:10"), ("report-29540780", "10:20"), ("report-29540790", "10:30")];
    let jobs = slots.map(|(name, slot)| job(name, name, made_by_controller(&format!("2026-03-02T{slot}:00Z"))));
    let [first, second, third] = &jobs;
    let rows: [(&str, &[&Arc<Job>], bool); 3] = [
        ("another controller started the newest", &[third], true),
        ("the newest two have Jobs", &[second, third], true),
        ("the last leader started all, and was killed before it wrote the status", &[first, second, third], false),
    ];
    let spec = json!({ "spec": { "schedule": "*/10 * * * *" } });
    let status = json!({ "status": { "lastScheduleTime": "2026-03-02T10:00:00Z" } });
    let cron_job = annotated(&[(BACKLOG, "4"), (MAX_CONCURRENT, "3")], CREATED, merged(spec, status));
    for (sentence, jobs, is_told) in rows {
        let ran = sync(&cron_job, jobs, "2026-03-02T10:30:30Z");
        assert_eq!(reasons(ran.end()).contains(&"PassedOver"), is_told, "{sentence}");
    }
}

#[test]
fn waiting_slot_whose_name_is_taken_lets_the_next_one_start() {
    let spec = json!({ "schedule": "*/10 * * * *", "concurrencyPolicy": FORBID });
    let mut observation = observe(&with(&[(BACKLOG, "2")], spec), &[]);
    observation.create = Some(CreateReply::Refused(refusal(409, "AlreadyExists")));
    let foreign = job("report-29540790", "foreign", json!({ "metadata": { "ownerReferences": [] } }));
    observation.learn_job(foreign.name.clone(), Ok(foreign));
    let Plan::Settle(settlement) = reconcile(&observation, time("2026-03-02T10:40:30Z")) else { panic!() };
    assert_eq!(settlement.memo.name_taken, Some(time("2026-03-02T10:30:00Z")));
    assert!(requeued_at(&settlement) < Some(time("2026-03-02T10:40:30Z")), "at once");
    observation.create = None;
    observation.recalled.memo.name_taken = settlement.memo.name_taken;
    let ran = run(observation, time("2026-03-02T10:40:30Z"));
    assert_eq!(ran.started, [time("2026-03-02T10:40:00Z")]);
}

/// If each were tried again once the other was found taken, the sync would never rest, and the third would never start.
#[test]
fn two_waiting_slots_whose_names_are_taken_are_tried_once_each() {
    let spec = json!({ "schedule": "*/10 * * * *", "concurrencyPolicy": FORBID });
    let mut observation = observe(&with(&[(BACKLOG, "3")], spec), &[]);
    for name in ["report-29540780", "report-29540790"] {
        let foreign = job(name, name, json!({ "metadata": { "ownerReferences": [] } }));
        observation.learn_job(foreign.name.clone(), Ok(foreign));
    }
    for taken in ["2026-03-02T10:20:00Z", "2026-03-02T10:30:00Z"] {
        observation.create = Some(CreateReply::Refused(refusal(409, "AlreadyExists")));
        let Plan::Settle(settlement) = reconcile(&observation, time("2026-03-02T10:40:30Z")) else { panic!("{taken}") };
        assert_eq!(settlement.memo.name_taken, Some(time(taken)));
        observation.recalled.memo.name_taken = settlement.memo.name_taken;
    }
    observation.create = None;
    let ran = run(observation, time("2026-03-02T10:40:30Z"));
    assert_eq!(ran.started, [time("2026-03-02T10:40:00Z")]);
}

#[test]
fn newer_job_of_another_controller_passes_waiting_slots_over() {
    let spec = json!({ "schedule": "*/10 * * * *", "concurrencyPolicy": FORBID });
    let newer = json!({ "metadata": { "annotations": {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T10:40:00Z"
    } } });
    let newer = job("report-29540800", "theirs", newer);
    let ran = sync(&with(&[(BACKLOG, "3")], spec), &[&newer], "2026-03-02T10:40:30Z");
    assert_eq!((ran.started.len(), reasons(ran.end())), (0, vec!["PassedOver"]));
    assert_eq!(written(ran.end()).last_schedule_time, Some(time("2026-03-02T10:40:00Z")));
}

#[test]
fn backlog_zero_passes_over_what_could_not_start_within_a_minute() {
    let cron_job = with(&[(BACKLOG, "0")], json!({ "concurrencyPolicy": FORBID }));
    let earlier = running("report-29540700", "2026-03-02T09:00:00Z");
    let slot = time(SLOT);
    let blocked = |slot, waits| Some(Blocked { slot, waits });
    let rows = [
        ("in time", "2026-03-02T10:01:00Z", blocked(slot, false), true),
        ("too late", "2026-03-02T10:01:01Z", blocked(slot, false), false),
        ("no run blocked it, as after a resume", "2026-03-02T10:30:00Z", None, true),
        ("a run blocked another", "2026-03-02T10:30:00Z", blocked(slot - TimeDelta::hours(1), false), true),
        ("a Job was deleted for it", "2026-03-02T10:30:00Z", blocked(slot, true), true),
    ];
    for (sentence, now, known, starts) in rows {
        let mut observation = observe(&cron_job, &[]);
        observation.recalled.memo.blocked = known;
        let ran = run(observation, time(now));
        assert_eq!(!ran.started.is_empty(), starts, "{sentence}");
        assert_eq!(ran.skip(), (!starts).then_some("passed_over"), "{sentence}");
        let recorded = ran.end().status.as_ref().and_then(|write| write.status.counted_from.clone());
        assert_eq!(recorded.map(|counted| counted.time()), (!starts).then_some(slot), "{sentence}");
    }
    // While a Job blocks, nothing is written. A new leader knows from that Job that the slot could have had none.
    let ran = sync(&cron_job, &[&earlier], "2026-03-02T10:00:30Z");
    assert_eq!(ran.skip(), Some("forbid"));
    let active = json!({ "status": { "active": [reference("report-29540700", "report-29540700")] } });
    let blocked =
        annotated(&[(BACKLOG, "0")], CREATED, merged(json!({ "spec": { "concurrencyPolicy": FORBID } }), active));
    let ran = run(observe(&blocked, &[&earlier]), time("2026-03-02T10:30:00Z"));
    assert_eq!((ran.skip(), ran.end().status.is_none()), (Some("passed_over"), true));
    // The controller comes back when the slot is too late, and not only with the next one.
    let ran = sync(&blocked, &[&earlier], "2026-03-02T10:00:30Z");
    assert_eq!((ran.skip(), requeued_at(ran.end())), (Some("forbid"), Some(time("2026-03-02T10:01:01Z"))));
    let ran = sync(&blocked, &[&earlier], "2026-03-02T10:01:01Z");
    assert_eq!((ran.skip(), requeued_at(ran.end())), (Some("passed_over"), Some(time("2026-03-02T11:00:00Z"))));
    assert_eq!(reasons(ran.end()), ["PassedOver"]);
    // A slot that waits for its deadline instead keeps the timer of `stuck-after`.
    let stuck = with(&[(BACKLOG, "0"), (MAX_CONCURRENT, "1"), (STUCK_AFTER, "100m")], json!({}));
    let mut observation = observe(&stuck, &[&earlier]);
    observation.recalled.memo.blocked = Some(Blocked { slot, waits: true });
    let ran = run(observation, time("2026-03-02T10:30:00Z"));
    assert_eq!((ran.skip(), requeued_at(ran.end())), (Some("max_concurrent"), Some(time("2026-03-02T10:40:00Z"))));
    // What began after the slot was due did not keep it from starting in time.
    let by_hand = running("by-hand", "2026-03-02T10:03:00Z");
    let one = with(&[(BACKLOG, "0"), (MAX_CONCURRENT, "1")], json!({}));
    let ran = run(observe(&one, &[&by_hand]), time("2026-03-02T10:30:00Z"));
    assert_eq!((ran.skip(), reasons(ran.end()).contains(&"PassedOver")), (Some("max_concurrent"), false));
    assert_eq!(ran.end().memo.blocked.map(|blocked| blocked.waits), Some(true));
    let early = sync(&blocked, &[&earlier], "2026-03-02T10:00:30Z");
    assert_eq!(early.end().memo.blocked.map(|blocked| blocked.waits), Some(false));
    // Nor did what had ended by then, although the status still names it, nor a Job that Forbid does not count.
    let complete = |from: &str, to: &str| {
        let conditions = json!([{ "type": "Complete", "status": "True" }]);
        json!({ "status": { "startTime": from, "completionTime": to, "conditions": conditions } })
    };
    let early = job("report-29540700", "report-29540700", complete("2026-03-02T09:00:00Z", "2026-03-02T09:31:00Z"));
    let other = job("by-hand", "by-hand", complete("2026-03-02T09:58:00Z", "2026-03-02T10:02:00Z"));
    for (cron_job, job) in [(&blocked, &early), (&cron_job, &other)] {
        assert_eq!(run(observe(cron_job, &[job]), time("2026-03-02T10:30:00Z")).started, [slot]);
    }
    let observation = observe(&blocked, &[&ended("report-29540700", "2026-03-02T09:00:00Z", "Failed")]);
    assert_eq!(run(observation, time("2026-03-02T10:30:00Z")).skip(), Some("passed_over"));
}

/// With `backlog: 0` and `stuck-after`: a Job that is deleted for a slot does not keep it from starting, and of a slot that was
/// held up by something else no leader need know more than the Jobs show.
#[test]
fn backlog_zero_passes_no_slot_over_for_a_job_that_was_stuck_by_then() {
    let rows = [
        ("stuck before the slot", "30m, delete", running("report-29540700", "2026-03-02T09:00:00Z"), true),
        ("deleted, and lingers", "30m, delete", terminating("report-29540700", "2026-03-02T09:00:00Z"), true),
        ("stuck within the minute", "61m, delete", running("report-29540700", "2026-03-02T09:00:00Z"), true),
        ("stuck later", "62m, delete", running("report-29540700", "2026-03-02T09:00:00Z"), false),
        ("stuck, and only told of", "30m", running("report-29540700", "2026-03-02T09:00:00Z"), false),
        ("not stuck", "5h, delete", running("report-29540700", "2026-03-02T09:00:00Z"), false),
    ];
    for (sentence, stuck_after, job, starts) in rows {
        let cron_job = with(&[(BACKLOG, "0"), (STUCK_AFTER, stuck_after)], json!({ "concurrencyPolicy": FORBID }));
        let ran = sync(&cron_job, &[&job], "2026-03-02T10:30:00Z");
        assert_eq!(!ran.started.is_empty(), starts, "{sentence}");
        assert_eq!(ran.skip(), (!starts).then_some("passed_over"), "{sentence}");
    }
}

#[test]
fn replace_waits_starts_when_the_replaced_job_is_gone() {
    let cron_job = with(&[(REPLACE_WAITS, "true")], json!({ "concurrencyPolicy": "Replace" }));
    let old = running("report-29540700", "2026-03-02T09:00:00Z");
    let ran = sync(&cron_job, &[&old], "2026-03-02T10:00:05Z");
    assert!(ran.started.is_empty());
    assert_eq!(ran.deleted, [("report-29540700".to_owned(), Propagation::Foreground)]);
    assert_eq!(ran.skip(), Some("replacing"));
    assert!(ran.end().status.is_none(), "it is active until it is gone");
    // Another leader finds it terminating: no second deletion.
    let rows: [(&str, Vec<Arc<Job>>, bool); 5] = [
        ("terminating", vec![terminating("report-29540700", "2026-03-02T09:00:00Z")], false),
        ("gone", vec![], true),
        ("finished", vec![ended("report-29540700", "2026-03-02T09:00:00Z", "Complete")], true),
        ("an earlier one still terminates", vec![terminating("report-29540600", "2026-03-02T07:00:00Z")], false),
        ("one made by hand terminates", vec![terminating("by-hand", "2026-03-02T07:00:00Z")], false),
    ];
    for (sentence, jobs, starts) in rows {
        let jobs: Vec<_> = jobs.iter().collect();
        let ran = sync(&cron_job, &jobs, "2026-03-02T10:00:10Z");
        assert_eq!((ran.deleted.len(), !ran.started.is_empty()), (0, starts), "{sentence}");
    }
    let newer = sync(&cron_job, &[], "2026-03-02T11:00:00Z");
    assert_eq!(newer.started, [time("2026-03-02T11:00:00Z")], "a newer slot supersedes");
}

/// The create for 10:00 was sent when nothing was left of the others, and has no answer; it is 11:00:05.
#[test]
fn create_without_an_answer_is_repeated_only_when_no_job_is_left_under_replace_waits() {
    let cron_job = with(&[(REPLACE_WAITS, "true")], json!({ "concurrencyPolicy": "Replace" }));
    let finished = ended("report-29540700", "2026-03-02T09:00:00Z", "Complete");
    let pruned = Arc::new(Job { deleting: true, ..Job::clone(&finished) });
    let step = |job: &Arc<Job>, live: Option<&Arc<Job>>| {
        let mut observation = observe(&cron_job, &[job]);
        let (slot, wait) = (time("2026-03-02T10:00:00Z"), Some(TimeDelta::seconds(20)));
        observation.recalled.pending_create = Some(PendingCreate { slot, wait, is_repeated: false });
        if let Some(live) = live {
            observation.learn_job(live.name.clone(), Ok(Arc::clone(live)));
        }
        next_step(&observation, "2026-03-02T11:00:05Z")
    };
    assert_eq!(step(&finished, None), "create report-29540760", "as history it does not count");
    assert_eq!(step(&pruned, None), "read report-29540700", "pruned since, it may linger");
    assert_eq!(step(&pruned, Some(&pruned)), "wait until 12:00:00", "it lingers; or until it is gone");
}

#[test]
fn replace_waits_deletes_nothing_past_the_deadline_and_tells_of_a_missed_run() {
    let spec = json!({ "concurrencyPolicy": "Replace", "startingDeadlineSeconds": 30 });
    let cron_job = with(&[(REPLACE_WAITS, "true")], spec);
    let old = running("report-29540700", "2026-03-02T09:00:00Z");
    let ran = sync(&cron_job, &[&old], "2026-03-02T10:00:40Z");
    assert_eq!((ran.started.len(), ran.deleted.len(), ran.skip()), (0, 0, Some("deadline")));
    let waits = sync(&cron_job, &[&terminating("report-29540700", "2026-03-02T09:00:00Z")], "2026-03-02T10:00:20Z");
    assert_eq!(requeued_at(waits.end()), Some(time("2026-03-02T10:00:31Z")), "when the deadline has passed");
    let late = sync(&cron_job, &[&terminating("report-29540700", "2026-03-02T09:00:00Z")], "2026-03-02T10:00:31Z");
    assert_eq!((late.skip(), reasons(late.end())), (Some("deadline"), vec!["MissSchedule"]));
}

/// A sentence, the policy, the Job and the time; whether a Job starts, how many are deleted, whether the Warning comes, and
/// when the controller comes back.
type Stuck<'a> = (&'a str, &'a str, &'a Arc<Job>, &'a str, (bool, usize, bool, Option<&'a str>));

#[test]
fn stuck_job_is_told_or_deleted() {
    let forbid = json!({ "concurrencyPolicy": FORBID });
    let since = "2026-03-02T09:00:00Z";
    let (runs, ends) = (running("report-29540700", since), terminating("report-29540700", since));
    let unstarted = job("report-29540700", "u", json!({}));
    // Before Kubernetes 1.36, a suspension does not remove the start time.
    let suspended_as = |spec: Value, conditions: Value| {
        let status = json!({ "startTime": since, "conditions": conditions });
        job("report-29540700", "u", json!({ "spec": spec, "status": status }))
    };
    let by_spec = suspended_as(json!({ "suspend": true }), json!([]));
    let by_condition = suspended_as(json!({ "suspend": false }), json!([{ "type": "Suspended", "status": "True" }]));
    let resumed = suspended_as(json!({ "suspend": false }), json!([{ "type": "Suspended", "status": "False" }]));
    let wake = Some("2026-03-02T10:30:00Z");
    let rows: [Stuck<'_>; 11] = [
        ("not yet", "90m", &runs, "2026-03-02T10:00:05Z", (false, 0, false, wake)),
        ("not yet, to be deleted", "90m,delete", &runs, "2026-03-02T10:00:05Z", (false, 0, false, wake)),
        ("told", "1h", &runs, "2026-03-02T10:00:05Z", (false, 0, true, None)),
        ("deleted", "1h, delete", &runs, "2026-03-02T10:00:05Z", (true, 1, true, None)),
        ("terminating and told", "1h", &ends, "2026-03-02T10:00:05Z", (false, 0, true, None)),
        ("terminating does not block", "1h, delete", &ends, "2026-03-02T10:00:05Z", (true, 0, false, None)),
        ("terminating but young", "90m, delete", &ends, "2026-03-02T10:00:05Z", (false, 0, false, wake)),
        ("suspended", "1s, delete", &unstarted, "2026-03-02T10:00:05Z", (false, 0, false, None)),
        ("suspended while it ran", "1s, delete", &by_spec, "2026-03-02T10:00:05Z", (false, 0, false, None)),
        ("resumed, and not seen", "1s, delete", &by_condition, "2026-03-02T10:00:05Z", (false, 0, false, None)),
        ("resumed", "1s, delete", &resumed, "2026-03-02T10:00:05Z", (true, 1, true, None)),
    ];
    for (sentence, stuck, job, now, (starts, deleted, told, wake)) in rows {
        let ran = sync(&with(&[(STUCK_AFTER, stuck)], forbid.clone()), &[job], now);
        assert_eq!((!ran.started.is_empty(), ran.deleted.len()), (starts, deleted), "{sentence}");
        assert_eq!(reasons(ran.end()).contains(&"RunStuck"), told, "{sentence}");
        let back = wake.unwrap_or("2026-03-02T11:00:00Z");
        assert_eq!(requeued_at(ran.end()), Some(time(back)), "{sentence}");
    }
}

/// A Job that was deleted as stuck blocks nothing, so the Warning is not about it.
#[test]
fn stuck_job_that_lingers_is_not_told_of_while_a_younger_one_blocks() {
    let lingers = terminating("report-29540640", "2026-03-02T06:00:00Z");
    let young = running("report-29540700", "2026-03-02T09:30:00Z");
    let old = running("report-29540700", "2026-03-02T07:00:00Z");
    for (sentence, blocks, about) in [("young", &young, None), ("old", &old, Some("job report-29540700 blocks"))] {
        let cron_job = with(&[(STUCK_AFTER, "2h, delete")], json!({ "concurrencyPolicy": FORBID }));
        let ran = sync(&cron_job, &[&lingers, blocks], "2026-03-02T10:00:05Z");
        let told: Vec<_> = ran.end().events.iter().filter(|event| event.reason == "RunStuck").collect();
        assert_eq!(told.len(), usize::from(about.is_some()), "{sentence}");
        assert!(told.iter().all(|event| event.message.starts_with(about.unwrap())), "{sentence}: {told:?}");
    }
}

#[test]
fn only_as_many_stuck_jobs_are_deleted_as_the_slot_needs_and_none_while_three_linger() {
    let since = "2026-03-02T08:00:00Z";
    let job = |number: usize| running(&format!("report-{number}"), &format!("2026-03-02T08:0{number}:00Z"));
    let lingering = |number: usize| terminating(&format!("gone-{number}"), since);
    let rows = [
        ("one of three", "3", 3, 0, 1),
        ("two too many", "2", 3, 0, 2),
        ("there is room", "4", 3, 0, 0),
        ("two linger", "1", 1, 2, 1),
        ("three linger", "1", 1, 3, 0),
    ];
    for (sentence, limit, running, lingers, deleted) in rows {
        let cron_job = with(&[(MAX_CONCURRENT, limit), (STUCK_AFTER, "1h, delete")], json!({}));
        let jobs: Vec<_> = (0..running).map(job).chain((0..lingers).map(lingering)).collect();
        let jobs: Vec<_> = jobs.iter().collect();
        let ran = sync(&cron_job, &jobs, "2026-03-02T10:00:05Z");
        assert_eq!(ran.deleted.len(), deleted, "{sentence}");
        assert_eq!(!ran.started.is_empty(), lingers < 3, "{sentence}");
        assert_eq!(reasons(ran.end()).contains(&"StuckRunsLinger"), lingers == 3, "{sentence}");
        if deleted == 1 {
            assert_eq!(ran.deleted[0].0, "report-0", "{sentence}: the oldest");
        }
    }
}

/// While statuses are refused, only the Job shows that its slot was started.
#[test]
fn stuck_job_is_not_deleted_before_the_status_tells_of_its_slot() {
    let since = "2026-03-02T09:00:00Z";
    let annotations = made_by_controller(since)["metadata"]["annotations"].clone();
    let old = job(
        "report-29540700",
        "report-29540700",
        json!({ "metadata": { "creationTimestamp": since, "annotations": annotations }, "status": { "startTime": since } }),
    );
    let rows = [
        ("the status tells of it", Some(since), 1),
        ("it does not", Some("2026-03-02T08:00:00Z"), 0),
        ("no status", None, 0),
    ];
    for (sentence, last, deleted) in rows {
        for (policy, annotations) in [(FORBID, vec![]), ("Allow", vec![(MAX_CONCURRENT, "1"), (BACKLOG, "2")])] {
            let annotations = [&annotations[..], &[(STUCK_AFTER, "1h, delete")]].concat();
            let mut cron_job = CronJob::clone(&with(&annotations, json!({ "concurrencyPolicy": policy })));
            cron_job.status.last_schedule_time = last.map(time);
            let ran = sync(&Arc::new(cron_job), &[&old], "2026-03-02T10:00:05Z");
            assert_eq!((ran.started.len(), ran.deleted.len()), (deleted, deleted), "{sentence}, {policy}");
            assert!(ran.end().status.is_some(), "{sentence}, {policy}: it is to be written");
        }
    }
}

/// Its name protects a slot from a create that the last leader sent.
#[test]
fn stuck_job_is_not_deleted_while_creates_of_an_earlier_leader_may_arrive() {
    let cron_job = with(&[(STUCK_AFTER, "1h, delete")], json!({ "concurrencyPolicy": FORBID }));
    let old = running("report-29540700", "2026-03-02T09:00:00Z");
    let active = json!([reference("report-29540700", "report-29540700")]);
    let status =
        serde_json::from_value(json!({ "active": active, "lastScheduleTime": "2026-03-02T09:00:00Z" })).unwrap();
    let mut observation = observe(&Arc::new(CronJob { status, ..CronJob::clone(&cron_job) }), &[&old]);
    observation.open_creates_wait = Some(TimeDelta::seconds(20));
    let ran = run(observation, now());
    assert_eq!((ran.started.len(), ran.deleted.len()), (0, 0));
    assert_eq!(requeued_at(ran.end()), Some(now() + TimeDelta::seconds(20)));
}

#[test]
fn failures_pause_until_a_success_or_their_deletion() {
    let cron_job = with(&[(PAUSE_AFTER_FAILURES, "2")], json!({}));
    let failed = |name: &str, start: &str| ended(name, start, "Failed");
    let (one, two) = (failed("a", "2026-03-02T08:00:00Z"), failed("b", "2026-03-02T09:00:00Z"));
    let by_hand = ended("by-hand", "2026-03-02T09:30:00Z", "Complete");
    let earlier = ended("early", "2026-03-02T08:30:00Z", "Complete");
    let deleted = Arc::new(Job { deleting: true, ..Job::clone(&two) });
    let suspended = job("s", "s", json!({ "spec": { "suspend": true } }));
    let ending = ended("e", "2026-03-02T09:00:00Z", "FailureTarget");
    let rows: [(&str, &[&Arc<Job>], bool); 8] = [
        ("one failure", &[&one], false),
        ("two failures", &[&one, &two], true),
        ("one failure, and one that a user suspended", &[&one, &suspended], false),
        ("one failure, and one whose Pods still end", &[&one, &ending], false),
        ("a later success, by hand", &[&one, &two, &by_hand], false),
        ("a success between them", &[&one, &two, &earlier], false),
        ("one is deleted", &[&one], false),
        ("one is being deleted", &[&one, &deleted], false),
    ];
    for (sentence, jobs, pauses) in rows {
        let ran = sync(&cron_job, jobs, "2026-03-02T10:00:05Z");
        assert_eq!(ran.started.is_empty(), pauses, "{sentence}");
        assert_eq!(ran.skip(), pauses.then_some("paused"), "{sentence}");
        assert_eq!(reasons(ran.end()).contains(&"Paused"), pauses, "{sentence}");
    }
    let success = json!({ "status": { "lastSuccessfulTime": "2026-03-02T09:20:00Z" } });
    let recovered = annotated(&[(PAUSE_AFTER_FAILURES, "2")], CREATED, success);
    assert_eq!(sync(&recovered, &[&one, &two], "2026-03-02T10:00:05Z").started.len(), 1, "its Job is gone");
    let older = ended("older", "2026-03-02T07:00:00Z", "Complete");
    let ran = sync(&recovered, &[&older, &one, &two], "2026-03-02T10:00:05Z");
    assert_eq!(ran.started.len(), 1, "its Job is gone, and that of an older success is not");
    // The newest held slot starts afterwards, unless the policy is to wait.
    let both = with(&[(PAUSE_AFTER_FAILURES, "2"), (AFTER_CHANGE, "wait")], json!({}));
    let ran = sync(&both, &[&one, &two], "2026-03-02T10:00:05Z");
    assert_eq!(written(ran.end()).counted_from.as_deref().map(CountedFrom::time), Some(time(SLOT)));
    let status = written(ran.end()).clone();
    let resumed = Arc::new(CronJob { status, ..CronJob::clone(&both) });
    assert!(sync(&resumed, &[&one], "2026-03-02T10:30:00Z").started.is_empty());
    assert_eq!(sync(&resumed, &[&one], "2026-03-02T11:00:00Z").started, [time("2026-03-02T11:00:00Z")]);
    assert_eq!(sync(&cron_job, &[&one], "2026-03-02T10:30:00Z").started, [time(SLOT)]);
}

/// Only `max-concurrent` counts them.
#[test]
fn job_of_a_backfill_is_not_stuck_not_waited_for_and_no_failure_of_the_schedule() {
    let of_backfill = |job: Arc<Job>| Arc::new(Job { of_backfill: true, ..Job::clone(&job) });
    let runs = of_backfill(running("past", "2026-03-02T08:00:00Z"));
    let failed = of_backfill(ended("past-2", "2026-03-02T08:00:00Z", "Failed"));
    let replace = json!({ "concurrencyPolicy": "Replace" });
    let rows = [
        ("replaced", with(&[(REPLACE_WAITS, "true")], replace), &runs, None),
        ("a failure", with(&[(PAUSE_AFTER_FAILURES, "1")], json!({})), &failed, None),
        (
            "stuck",
            with(&[(MAX_CONCURRENT, "1"), (STUCK_AFTER, "1h, delete")], json!({})),
            &runs,
            Some("max_concurrent"),
        ),
    ];
    for (sentence, cron_job, job, skip) in rows {
        let ran = sync(&cron_job, &[job], "2026-03-02T10:00:05Z");
        assert_eq!(
            (ran.skip(), ran.deleted.len(), ran.started.len()),
            (skip, 0, usize::from(skip.is_none())),
            "{sentence}"
        );
        let told = reasons(ran.end());
        assert!(!told.contains(&"RunStuck") && !told.contains(&"Paused"), "{sentence}: {told:?}");
    }
}

/// The failures that hold a CronJob are its own: those of a backfill have a history of their own.
#[test]
fn failed_jobs_of_a_backfill_do_not_end_a_pause() {
    let of_backfill = |job: Arc<Job>| Arc::new(Job { of_backfill: true, ..Job::clone(&job) });
    let own = ["a", "b"].map(|name| ended(name, "2026-03-02T08:00:00Z", "Failed"));
    let past = ["p", "q", "r"].map(|name| of_backfill(ended(name, "2026-03-02T09:00:00Z", "Failed")));
    let jobs: Vec<&Arc<Job>> = own.iter().chain(&past).collect();
    let limits = json!({ "failedJobsHistoryLimit": 2 });
    for (annotations, pruned) in [(&[(PAUSE_AFTER_FAILURES, "2")][..], vec!["p"]), (&[], vec!["a", "b", "p"])] {
        let ran = sync(&with(annotations, limits.clone()), &jobs, "2026-03-02T10:00:05Z");
        let mut names: Vec<&str> = ran.end().pruning.jobs.iter().map(|job| &*job.name.name).collect();
        names.sort_unstable();
        assert_eq!(names, pruned, "{annotations:?}");
    }
}

#[test]
fn job_of_a_backfill_is_not_adopted_although_it_has_the_name_and_the_time_of_its_slot() {
    let slot = json!({ "metadata": { "annotations": {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": SLOT
    } } });
    let started = job("report-29540760", "u", slot);
    let cron_job = annotated(&[], CREATED, json!({}));
    for (of_backfill, starts) in [(false, 0), (true, 1)] {
        let job = Arc::new(Job { of_backfill, ..Job::clone(&started) });
        let ran = sync(&cron_job, &[&job], "2026-03-02T10:30:00Z");
        assert_eq!(ran.started.len(), starts, "of_backfill: {of_backfill}");
        assert_eq!(written(ran.end()).active.iter().next().unwrap().uid == job.uid, !of_backfill);
    }
}

/// What was edited, the record's CronJob, the edit's time, and the slot that starts.
#[test]
fn after_change_wait_starts_nothing_older_than_the_change() {
    let record = |annotations: &[(&str, &str)], spec: Value| {
        let cron_job = annotated(annotations, CREATED, json!({ "spec": spec }));
        let written = cron_job.recount(&CronJobStatus::default(), Zone::UTC, now());
        let fingerprint = written.unwrap().to_string().split_once(' ').unwrap().1.to_owned();
        format!("2026-03-02T08:30:00Z {fingerprint}")
    };
    let wait = (AFTER_CHANGE, "wait");
    let spread = (SPREAD, "30m");
    let hourly = json!({});
    let suspended = json!({ "suspend": true });
    let other = json!({ "schedule": "30 * * * *" });
    let zone = json!({ "timeZone": "Asia/Kolkata" });
    let rows = [
        ("nothing changed", vec![wait], &hourly, "2026-03-02T10:30:00Z", true),
        ("resumed", vec![wait], &suspended, "2026-03-02T10:30:00Z", false),
        ("resumed before the slot", vec![wait], &suspended, "2026-03-02T09:30:00Z", true),
        ("another schedule", vec![wait], &other, "2026-03-02T10:30:00Z", false),
        ("without a zone", vec![wait], &zone, "2026-03-02T09:30:00Z", false),
        ("its spread is not over", vec![wait, spread], &suspended, "2026-03-02T10:24:00Z", true),
        ("its spread is over", vec![wait, spread], &suspended, "2026-03-02T10:26:00Z", false),
        ("fire", vec![(AFTER_CHANGE, "fire"), spread], &suspended, "2026-03-02T10:40:00Z", true),
    ];
    for (sentence, annotations, before, edit, starts) in rows {
        let record = record(&annotations, before.clone());
        let mut annotations = annotations.clone();
        annotations.push((COUNTED_FROM, &record));
        let cron_job = annotated(&annotations, edit, json!({}));
        let started = run(observe(&cron_job, &[]), time("2026-03-02T10:45:00Z")).started;
        assert_eq!(started, if starts { vec![time(SLOT)] } else { vec![] }, "{sentence}");
    }
    // While a policy cannot be read, whether to wait is not known: the change is judged afterwards.
    let record = record(&[wait], suspended);
    let unreadable = annotated(&[wait, (MAX_CONCURRENT, "many"), (COUNTED_FROM, &record)], SLOT, json!({}));
    let ran = run(observe(&unreadable, &[]), time("2026-03-02T10:30:00Z"));
    assert_eq!((reasons(ran.end()), ran.end().status.is_none()), (vec!["InvalidPolicy"], true));
    let fixed = annotated(&[wait, (MAX_CONCURRENT, "3"), (COUNTED_FROM, &record)], "2026-03-02T10:40:00Z", json!({}));
    assert!(run(observe(&fixed, &[]), time("2026-03-02T10:45:00Z")).started.is_empty());
    // Alone it is recorded, and counts from the creation.
    let ran = sync(&with(&[wait], json!({})), &[], "2026-03-02T10:00:05Z");
    assert_eq!(ran.started, [time(SLOT)]);
    assert_eq!(written(ran.end()).counted_from.as_deref().map(CountedFrom::time), Some(time("2026-03-02T09:00:00Z")));
}

/// A suspension that no controller saw, and a time in the object that the clock of the API server gave.
#[test]
fn change_that_was_undone_counts_from_now_if_its_time_is_ahead() {
    let wait = (AFTER_CHANGE, "wait");
    let of =
        |generation: u64, edit: &str| annotated(&[wait], edit, json!({ "metadata": { "generation": generation } }));
    let written = of(1, CREATED).recount(&CronJobStatus::default(), Zone::UTC, time(CREATED)).unwrap();
    for (edit, want) in [
        ("2026-03-02T09:50:00Z", "2026-03-02T09:50:00Z"),
        ("2026-03-02T10:20:40Z", "2026-03-02T10:20:00Z"),
        ("2026-03-02T12:00:00Z", "2026-03-02T10:20:00Z"),
    ] {
        let mut undone = CronJob::clone(&of(3, edit));
        undone.status.counted_from = Some(Box::new(written.clone()));
        let counted = undone.recount(&undone.status, Zone::UTC, time("2026-03-02T10:20:00Z")).unwrap();
        assert_eq!(counted.time(), time(want), "{edit}");
    }
}

/// The resume of a CronJob that was handed over removes an annotation, which leaves no time.
#[test]
fn resume_by_an_annotation_counts_from_when_it_is_seen() {
    let wait = (AFTER_CHANGE, "wait");
    let suspended = annotated(&[wait], CREATED, json!({ "spec": { "suspend": true } }));
    let written = suspended.recount(&CronJobStatus::default(), Zone::UTC, now()).unwrap();
    let mut resumed = CronJob::clone(&annotated(&[wait], CREATED, json!({})));
    resumed.handover.managed = true;
    resumed.status.counted_from = Some(Box::new(written));
    let counted = resumed.recount(&resumed.status, Zone::UTC, time("2026-03-02T10:20:00Z")).unwrap();
    assert_eq!(counted.time(), time("2026-03-02T10:20:00Z"));
}

/// A CronJob and its Jobs, from minute to minute. Every request succeeds, but for statuses that are refused for a while.
struct World {
    cron_job: CronJob,
    jobs: Vec<Arc<Job>>,
    told: Vec<RecentEvent>,
    now: DateTime<Utc>,
    resumed: DateTime<Utc>,
    started: VecDeque<DateTime<Utc>>,
    number: usize,
    /// No process remembers an edit that was refused: each sync is that of a process that has just started.
    statuses_are_refused: bool,
    /// They were so at some time: the record of decided slots may lack a change.
    were_refused: bool,
}

impl World {
    fn limits(&self) -> crate::api::policy::Limits {
        self.cron_job.limits()
    }

    fn put(&mut self, job: Job) {
        self.jobs.retain(|known| known.uid != job.uid);
        self.jobs.push(Arc::new(job));
    }

    /// What happens to the Jobs and the CronJob within a minute.
    fn happen(&mut self, what: u8) {
        let of = |jobs: &[Arc<Job>], is_meant: &dyn Fn(&Job) -> bool| {
            jobs.iter().filter(|job| is_meant(job)).min_by_key(|job| job.start_time).map(|job| Job::clone(job))
        };
        let runs = |job: &Job| job.finished.is_none() && !job.deleting;
        match what {
            0 | 1 => {
                if let Some(job) = of(&self.jobs, &runs) {
                    let (end, succeeded) = (Some(FinishedCondition::Complete), true);
                    self.put(Job { finished: end, succeeded, completion_time: Some(self.now), ..job });
                }
            }
            2..=4 => {
                if let Some(job) = of(&self.jobs, &runs) {
                    self.put(Job { finished: Some(FinishedCondition::Failed), ..job });
                }
            }
            5..=7 => self.jobs.retain(|job| !job.deleting),
            8 => {
                self.number += 1;
                let name = format!("by-hand-{}", self.number);
                let start_time = Some(self.now).filter(|_| self.number.is_multiple_of(2));
                let job = Job::clone(&job(&name, &name, json!({})));
                self.put(Job { creation_timestamp: self.now, start_time, ..job });
            }
            9 => {
                self.cron_job.spec.suspend = !self.cron_job.spec.suspend;
                self.resumed = self.now;
            }
            // While statuses are refused, only the Jobs show which slots were started.
            10 if !self.statuses_are_refused => {
                self.jobs.retain(|job| job.finished != Some(FinishedCondition::Failed));
            }
            11 => {
                self.statuses_are_refused = !self.statuses_are_refused;
                self.were_refused = true;
            }
            _ => {}
        }
    }

    /// Whether so many have failed since the last success that nothing may start.
    fn is_paused(&self) -> bool {
        let Some(limit) = self.limits().pause_after_failures else { return false };
        let success = self.jobs.iter().filter_map(|job| job.completion_time).max();
        let success = success.max(self.cron_job.status.last_successful_time);
        let failures = self.jobs.iter().filter(|job| job.finished == Some(FinishedCondition::Failed) && !job.deleting);
        failures.filter(|job| job.start_time.or(Some(job.creation_timestamp)) > success).count() >= limit
    }

    fn is_old(&self, job: &Job) -> bool {
        let age = self.limits().stuck_after.map(|stuck| stuck.age);
        age.is_some_and(|age| job.start_time.is_some_and(|start| start + age <= self.now))
    }

    fn judge_start(&self, slot: DateTime<Utc>) {
        let limits = self.limits();
        let status = &self.cron_job.status;
        assert!(status.last_schedule_time < Some(slot), "{slot} is not after {:?}", status.last_schedule_time);
        assert!(self.started.back() < Some(&slot), "in order, once");
        assert!(!self.cron_job.spec.suspend && !self.is_paused(), "paused");
        if let Some(decided) = status.counted_from.as_deref().map(CountedFrom::time) {
            assert!(slot > decided, "{slot} is decided until {decided}");
        }
        let rescues = limits.stuck_after.is_some_and(|stuck| stuck.delete);
        let counts = |job: &&Arc<Job>| job.finished.is_none() && !(rescues && job.deleting && self.is_old(job));
        if let Some(limit) = limits.max_concurrent {
            assert!(self.jobs.iter().filter(counts).count() < limit, "{:?}", self.jobs);
        }
        let blocks = |job: &&Arc<Job>| counts(job) && status.in_active_list(&job.uid);
        let forbids = self.cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid;
        assert!(!forbids || limits.max_concurrent.is_some() || self.jobs.iter().filter(blocks).count() == 0);
        if limits.replace_waits {
            assert!(self.jobs.iter().all(|job| job.finished.is_some() && !job.deleting), "{:?}", self.jobs);
        }
        let newest = self.now - TimeDelta::seconds(self.now.timestamp() % 60);
        let slots_since = (newest - slot).num_minutes();
        match limits.backlog {
            None => assert_eq!(slots_since, 0),
            Some(0) => assert!(self.now - slot <= TimeDelta::seconds(60), "{slot} at {}", self.now),
            Some(most) => assert!(slots_since < i64::try_from(most).unwrap(), "{slot} at {}", self.now),
        }
        if limits.waits_after_change && !self.were_refused {
            assert!(slot > self.resumed - TimeDelta::seconds(1), "{slot} was before {}", self.resumed);
        }
    }

    /// Runs a sync; returns whether another one is due at once.
    fn sync(&mut self) -> bool {
        let cron_job = Arc::new(self.cron_job.clone());
        self.jobs.sort_by(|a, b| a.name.name.cmp(&b.name.name));
        let mut observation = Case::new(Observation::new(Arc::clone(&cron_job), self.jobs.clone(), Zone::UTC));
        observation.recalled.memo.recent_events = std::mem::take(&mut self.told);
        for _ in 0..100 {
            match reconcile(&observation, self.now) {
                Plan::Lookup(lookups) => {
                    for lookup in lookups {
                        match lookup {
                            Lookup::CronJob => observation.live.cron_job = Some(Ok(Arc::clone(&cron_job))),
                            Lookup::Job(name) => {
                                let found = self.jobs.iter().find(|job| job.name == name).cloned();
                                observation.learn_job(name, found.ok_or_else(|| refusal(404, "NotFound")));
                            }
                        }
                    }
                }
                Plan::Replace { victims, .. } => {
                    for victim in victims {
                        let job = Job::clone(self.jobs.iter().find(|job| job.uid == victim.uid).unwrap());
                        assert!(job.finished.is_none() && !job.deleting, "deleted once: {job:?}");
                        match victim.propagation {
                            Propagation::Background => self.jobs.retain(|known| known.uid != job.uid),
                            Propagation::Foreground => {
                                assert!(self.limits().replace_waits || self.is_old(&job), "{job:?} at {}", self.now);
                                self.put(Job { deleting: true, ..job });
                            }
                        }
                        observation.learn_deletion(victim.uid, Ok(()));
                    }
                }
                Plan::Create { name, slot, .. } => {
                    self.judge_start(slot);
                    self.started.push_back(slot);
                    let made = made_by_controller(&slot.to_rfc3339());
                    let created = Job::clone(&job(&name.name, &name.name, made));
                    let created = Job { creation_timestamp: self.now, start_time: Some(self.now), ..created };
                    self.put(created.clone());
                    observation.create = Some(CreateReply::Created(Arc::new(created)));
                }
                Plan::Prune { jobs, .. } => {
                    for job in jobs {
                        self.jobs.retain(|known| known.uid != job.uid);
                        observation.learn_deletion(job.uid.clone(), Ok(()));
                    }
                }
                Plan::Settle(settlement) => {
                    let refused = self.statuses_are_refused && settlement.status.is_some();
                    let stays = settlement.pruning.unrecorded.as_ref().filter(|_| refused);
                    let pruned = |job: &Arc<Job>| {
                        settlement.pruning.jobs.iter().any(|gone| gone.uid == job.uid) && stays != Some(&job.uid)
                    };
                    self.jobs.retain(|job| !pruned(job));
                    let back = requeued_at(&settlement);
                    let is_started = matches!(settlement.verdict, Verdict::Started { .. });
                    if matches!(settlement.verdict, Verdict::Skipped(Skip::Suspended | Skip::Invalid)) {
                        assert!(!is_started);
                    } else {
                        assert!(back.is_some(), "it comes back: {settlement:?}");
                    }
                    if let Some(write) = settlement.status.filter(|_| !refused) {
                        self.cron_job.status = write.status;
                    }
                    self.told = settlement.memo.recent_events;
                    let at_once = back.is_some_and(|back| back <= self.now);
                    assert!(!at_once || is_started, "it would never rest");
                    return at_once;
                }
            }
        }
        panic!("the sync does not end");
    }
}

const VALUES: [(&str, &[&str]); LIMITS.len()] = [
    (MAX_CONCURRENT, &["1", "2", "3"]),
    (BACKLOG, &["0", "1", "3"]),
    (REPLACE_WAITS, &["true"]),
    (AFTER_CHANGE, &["wait", "fire"]),
    (STUCK_AFTER, &["2m", "3m, delete"]),
    (PAUSE_AFTER_FAILURES, &["1", "2"]),
    (SLOT_IN_POD, &["true"]),
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 600, ..ProptestConfig::default() })]

    /// What each policy promises, alone and with any other, whatever the Jobs do.
    #[test]
    fn policies_keep_their_promises_alone_and_in_pairs(
        (first, second) in (0..6usize, 0..6usize),
        (one, two) in (0..3usize, 0..3usize),
        policy in proptest::sample::select(&["Allow", "Forbid", "Replace"][..]),
        minutes in proptest::collection::vec((0..14u8, 0..60i64), 1..60),
    ) {
        let value = |(name, values): (&'static str, &[&'static str]), at: usize| (name, values[at % values.len()]);
        let annotations = [value(VALUES[first], one), value(VALUES[second], two)];
        let annotations = if first == second { &annotations[..1] } else { &annotations[..] };
        let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": policy, "failedJobsHistoryLimit": 3 });
        let cron_job = CronJob::clone(&with(annotations, spec));
        let start = time("2026-03-02T09:00:30Z");
        let mut world = World {
            cron_job, jobs: vec![], told: vec![], now: start, resumed: time(CREATED), started: VecDeque::new(), number: 0,
            statuses_are_refused: false, were_refused: false,
        };
        let is_valid = world.cron_job.policy().is_ok();
        for (what, second) in minutes {
            world.now += TimeDelta::seconds(second + 1);
            let edit = world.now;
            world.happen(what);
            if what == 9 {
                // The server notes when a user has changed it.
                let mut edited = CronJob::clone(&annotated(annotations, &edit.to_rfc3339(), json!({ "spec": {
                    "schedule": "* * * * *", "concurrencyPolicy": policy, "failedJobsHistoryLimit": 3,
                    "suspend": world.cron_job.spec.suspend,
                } })));
                edited.status = world.cron_job.status.clone();
                world.cron_job = edited;
            }
            let mut rounds = 0;
            while world.sync() {
                rounds += 1;
                prop_assert!(rounds < 200);
            }
        }
        prop_assert!(is_valid || world.started.is_empty());
    }
}

/// The cache shares the policies of a version with the one before. The time of the change is not among them.
#[test]
fn resume_that_a_watch_shows_starts_no_slot_from_before_it_with_after_change_wait() {
    const RESUMED: &str = "2026-03-02T10:00:03Z";
    let version = |record: &str, edit: &str, suspend: bool| {
        let annotations = [(AFTER_CHANGE, "wait"), (COUNTED_FROM, record)];
        annotated(&annotations, edit, json!({ "spec": { "suspend": suspend } }))
    };
    let new = version("", CREATED, true);
    let record = new.recount(&new.status, Zone::UTC, time(CREATED)).unwrap().to_string();
    let suspended = version(&record, CREATED, true);
    let mut resumed = CronJob::clone(&version(&record, RESUMED, false));
    resumed.succeed(&suspended);
    let counted = resumed.recount(&resumed.status, Zone::UTC, now()).unwrap();
    assert_eq!(counted.time(), time(RESUMED));
    assert!(run(observe(&Arc::new(resumed), &[]), now()).started.is_empty());
}

/// What this controller deleted in the foreground went as it was meant to.
#[test]
fn a_stuck_job_that_was_deleted_does_not_count_as_missing() {
    let status = json!({ "status": { "active": [reference("report-29540700", "report-29540700")] } });
    let spec = merged(json!({ "spec": { "concurrencyPolicy": FORBID } }), status);
    for (sentence, stuck, told) in [("deletes", "2h, delete", 0), ("tells", "2h", 1)] {
        let cron_job = annotated(&[(STUCK_AFTER, stuck)], CREATED, spec.clone());
        let ran = run(observe(&cron_job, &[]), time("2026-03-02T10:00:05Z"));
        assert_eq!(reasons(ran.end()).iter().filter(|reason| **reason == "MissingJob").count(), told, "{sentence}");
        assert!(!ran.started.is_empty(), "{sentence}");
    }
}
