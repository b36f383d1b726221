//! Tests of the whole controller on the embedded API server, with paused time.
#![allow(clippy::unwrap_used)]

mod controller_kinds;
mod day;
mod fire_first;
mod found;
mod handover;
mod limits;
mod logs;
mod long_templates;
pub(crate) mod objects;
mod policies;
mod pressure;
mod record_limits;
mod recovery;
mod rivals;
mod slow_server;
pub(crate) mod support;
pub(crate) mod wire;

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};

use self::objects::{controlled_by, time};
use self::support::{CRON_JOBS, Ending, JOBS, World, cron_job, job, key};
use self::wire::{Fate, Orders, Verb};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_minutely_cron_job_fires_at_each_minute_and_settles() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.create_cron_job("hello", json!({ "successfulJobsHistoryLimit": 3 })).await;
    world.pass_until("2026-03-02T10:00:30Z").await;
    let stop = world.work(2);
    world.pass(seconds(600)).await;
    stop.cancel();

    let created = world.wire.asked(Verb::Create, "jobs");
    // The slot of 10:00 was due when the controller started. Then one Job starts each minute, on time.
    let names: Vec<String> = (0..11).map(|at| format!("hello-{}", 29_540_760 + at)).collect();
    assert_eq!(world.seen_names(), names);
    for (at, ask) in created.iter().enumerate().skip(1) {
        let slot = time("2026-03-02T10:00:00Z") + TimeDelta::minutes(i64::try_from(at).unwrap());
        let late = world.clock.now() - TimeDelta::from_std(ask.at.elapsed()).unwrap() - slot;
        assert!(late >= TimeDelta::zero() && late < TimeDelta::milliseconds(10), "{slot}: {late} late");
    }
    let status = world.cron_jobs.get(&key("hello")).unwrap().status.clone();
    assert_eq!((status.active.len(), status.last_schedule_time), (11, Some(time("2026-03-02T10:10:00Z"))));
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 11, "one status write for each fire");
    assert_eq!((world.wire.count(Verb::Get, "jobs"), world.wire.count(Verb::Get, "cronjobs")), (0, 0));
    assert_eq!(world.reasons().await, ["SuccessfulCreate"; 11]);
}

#[tokio::test(start_paused = true)]
async fn a_standby_queues_nothing_and_begins_with_all_that_is_there() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.controller.stand_by();
    for name in ["goes", "stays"] {
        world.create_cron_job(name, json!({})).await;
    }
    let owner = world.cron_jobs.get(&key("stays")).unwrap().uid.to_string();
    world.write("POST", JOBS, &job("foreign", &json!([controlled_by("stays", &owner)]))).await;
    world.write("DELETE", &format!("{CRON_JOBS}/goes"), &Value::Null).await;
    world.pass_until("2026-03-02T10:00:30Z").await;
    assert!(world.controller.queue().is_empty(), "no worker takes keys from it");
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    assert_eq!(world.wire.count(Verb::Create, "jobs"), 2, "the slot that was missed, and the next");
}

#[tokio::test(start_paused = true)]
async fn a_standby_reads_a_changed_schedule_only_once_it_leads() {
    for (schedule, event) in [("5 * * * *", None), ("bad", Some("UnparseableSchedule"))] {
        let world = World::new("2026-03-02T10:05:30Z").await;
        world.controller.stand_by();
        world.create_cron_job("a", json!({ "schedule": "0 * * * *" })).await;
        world.smuggle("cronjobs.batch", "a", json!({ "spec": { "schedule": schedule } })).await;
        let is_parsed = || world.cron_jobs.get(&key("a")).unwrap().spec.recurrence.is_parsed();
        assert!(!is_parsed(), "{schedule}: by a handler of a standby");
        let stop = world.work(1);
        world.pass(seconds(1)).await;
        stop.cancel();
        assert!(is_parsed(), "{schedule}: by a worker of the leader");
        assert_eq!(world.reasons().await, event.into_iter().collect::<Vec<_>>(), "{schedule}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_leaves_active_and_history_keeps_the_newest() {
    let world = World::with_jobs_that_end("2026-03-02T09:59:30Z", |job| {
        let ending = if job.creation_timestamp.timestamp() / 60 % 2 == 0 { Ending::Complete } else { Ending::Failed };
        Some((seconds(20), ending))
    })
    .await;
    world.create_cron_job("hello", json!({ "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1 })).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:06:30Z").await;
    stop.cancel();
    assert_eq!(world.seen().len(), 7);
    let mut left: Vec<String> = world.jobs.list().iter().map(|job| job.name.name.to_string()).collect();
    left.sort();
    assert_eq!(left, ["hello-29540764", "hello-29540765", "hello-29540766"]);
    let status = world.cron_jobs.get(&key("hello")).unwrap().status.clone();
    assert!(status.active.is_empty());
    assert_eq!(status.last_successful_time, Some(time("2026-03-02T10:06:20Z")));
}

#[tokio::test(start_paused = true)]
async fn an_outage_at_the_minute_is_made_good_within_five_seconds_of_its_end() {
    let world = World::new("2026-03-02T10:00:00Z").await;
    for at in 0..2000 {
        world
            .request("POST", CRON_JOBS, &cron_job(&format!("c{at}"), json!({ "schedule": "1 * * * *" })))
            .await
            .unwrap();
    }
    world.catch_up().await;
    let stop = world.work(64);
    world.pass_until("2026-03-02T10:00:55Z").await;
    let ends = tokio::time::Instant::now() + seconds(15);
    let latency = Duration::from_millis(20);
    world.wire.judge(move |ask| {
        let fate = if ask.at + latency < ends { Fate::Unreachable } else { Fate::Pass };
        Orders { there: latency, back: latency, fate }
    });
    world.wire.cut_watches();
    world.pass(seconds(35)).await;
    stop.cancel();
    let created = world.seen();
    assert_eq!(created.len(), 2000);
    let last = created.iter().map(|job| job.creation_timestamp).max().unwrap();
    assert!(last < time("2026-03-02T10:01:15Z"), "the last was created at {last}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_one_key_harms_no_other() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.write("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": "poisoned" } })).await;
    world.write("POST", "/apis/batch/v1/namespaces/poisoned/cronjobs", &cron_job("poison", json!({}))).await;
    world.create_cron_job("healthy", json!({})).await;
    world.wire.judge(|ask| {
        if ask.is(Verb::Create, "jobs") && ask.namespace == "poisoned" { Fate::Panic } else { Fate::Pass }
    });
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:00:05Z").await;
    assert_eq!(world.seen_names(), ["healthy-29540760"]);
    let panics = world.controller.parts.metrics.sync_panics_total.get();
    assert!((2..20).contains(&panics), "tried again with backoff: {panics}");
    world.wire.calm();
    world.pass_until("2026-03-02T10:01:05Z").await;
    stop.cancel();
    let names = world.seen_names();
    assert!(
        names.contains(&"healthy-29540761".to_owned()) && names.contains(&"poison-29540761".to_owned()),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_ends_well_is_forgotten() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.create_cron_job("hello", json!({})).await;
    world.ready().await;
    world.pass_until("2026-03-02T10:00:30Z").await;
    world.wire.judge(
        |ask| {
            if ask.is(Verb::Patch, "cronjobs/status") { Fate::Refused(409, "Conflict") } else { Fate::Pass }
        },
    );
    let (queue, hello) = (world.controller.queue(), key("hello"));
    queue.add(hello.clone());
    for _fire_then_settle in 0..2 {
        assert!(world.controller.process_next_work_item().await);
    }
    assert_eq!(queue.num_requeues(&hello), 1);
    world.wire.calm();
    assert!(world.controller.process_next_work_item().await);
    assert_eq!(queue.num_requeues(&hello), 0);
    assert_eq!(world.seen().len(), 1, "the Job of the first try is adopted");
    assert!(queue.scheduled_for(&hello).is_some(), "the next slot has a timer");
}

#[tokio::test(start_paused = true)]
async fn what_wakes_a_cron_job() {
    let world = World::new("2026-03-02T10:00:30Z").await;
    let uid = |cron_job: Value| cron_job["metadata"]["uid"].as_str().unwrap().to_owned();
    let a = controlled_by("a", &uid(world.create_cron_job("a", json!({})).await));
    let b = controlled_by("b", &uid(world.create_cron_job("b", json!({})).await));
    assert_eq!(world.ready().await, ["a", "b"]);
    let owned_by = |owners: Value| json!({ "metadata": { "ownerReferences": owners } });
    let predecessor = controlled_by("a", "uid-of-a-predecessor");
    let background = json!({ "propagationPolicy": "Background" });
    let j = &format!("{JOBS}/j");
    let table: [(&str, &str, &str, Value, &[&str]); 10] = [
        ("a Job that appears wakes its owner", "POST", JOBS, job("j", &json!([a])), &["a"]),
        (
            "a Job of a deleted CronJob of the same name is not queued",
            "POST",
            JOBS,
            job("k", &json!([predecessor])),
            &[],
        ),
        ("a Job without an owner adds no key", "POST", JOBS, job("l", &Value::Null), &[]),
        ("a change wakes the owner", "PATCH", j, json!({ "metadata": { "labels": { "x": "y" } } }), &["a"]),
        ("an irrelevant change adds no key", "PATCH", j, json!({ "metadata": { "labels": { "x": "y" } } }), &[]),
        ("a change of owner wakes both", "PATCH", j, owned_by(json!([b])), &["a", "b"]),
        ("a Job that is orphaned wakes its old owner", "PATCH", j, owned_by(json!([])), &["b"]),
        ("a Job that is adopted wakes its new owner", "PATCH", j, owned_by(json!([a])), &["a"]),
        ("a Job that goes wakes its owner", "DELETE", j, background, &["a"]),
        ("so does one that comes back", "POST", JOBS, job("j", &json!([b])), &["b"]),
    ];
    for (sentence, method, path, body, woken) in table {
        world.write(method, path, &body).await;
        assert_eq!(world.ready().await, woken, "{sentence}");
    }
    world.gap(async || {}).await;
    assert_eq!(world.ready().await, [""; 0], "a list that shows nothing new adds no key");
    world.gap(async || drop(world.request("DELETE", j, &Value::Null).await.unwrap())).await;
    assert_eq!(world.ready().await, ["b"], "a Job that vanished unseen adds its owner's key");
}

#[tokio::test(start_paused = true)]
async fn a_changed_schedule_is_waited_for_and_any_other_change_is_synced_now() {
    let table = [
        ("a later slot", json!({ "schedule": "30 10 * * *" }), false, Some("2026-03-02T10:30:00Z"), None),
        (
            "another zone",
            json!({ "schedule": "0 * * * *", "timeZone": "Asia/Kathmandu" }),
            false,
            Some("2026-03-02T10:15:00Z"),
            None,
        ),
        ("suspended", json!({ "schedule": "0 * * * *", "suspend": true }), true, None, None),
        ("nonsense", json!({ "schedule": "bad" }), false, None, Some("UnParseableCronJobSchedule")),
        ("a day that never comes", json!({ "schedule": "59 23 31 2 *" }), true, None, None),
    ];
    for (sentence, spec, now, timer, event) in table {
        let world = World::new("2026-03-02T10:05:30Z").await;
        world.create_cron_job("a", json!({ "schedule": "0 * * * *" })).await;
        world.ready().await;
        // The API server's validation would reject some of these edits today.
        world.smuggle("cronjobs.batch", "a", json!({ "spec": spec })).await;
        let scheduled = world.controller.queue().scheduled_for(&key("a"));
        assert_eq!(scheduled.and_then(|timers| timers.at), timer.map(time), "{sentence}");
        assert_eq!(world.ready().await.len(), usize::from(now), "{sentence}");
        assert_eq!(world.reasons().await, event.into_iter().collect::<Vec<_>>(), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_object_is_counted_and_its_owner_told() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    for name in ["bad", "good"] {
        world.create_cron_job(name, json!({})).await;
    }
    world.smuggle("cronjobs.batch", "bad", json!({ "spec": { "schedule": 5 } })).await;
    let counted = world.controller.parts.metrics.malformed_objects_total.with_label_values(&["CronJob"]).get();
    assert_eq!(counted, 1);
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:00:05Z").await;
    stop.cancel();
    assert_eq!(world.seen_names(), ["good-29540760"]);
    let event = |reason: &str, name: &str| (reason.to_owned(), name.to_owned());
    assert_eq!(world.events().await, [event("MalformedObject", "bad"), event("SuccessfulCreate", "good")]);
}

/// An active Job that cannot be read may run: its reference stays, and counts for the policies. It stops nothing else.
#[tokio::test(start_paused = true)]
async fn an_active_job_that_cannot_be_read_counts_as_running() {
    let name = |slot: i64| format!("c-{}", 29_540_760 + slot);
    let table = [
        ("Allow", json!({ "concurrencyPolicy": "Allow" }), json!({}), vec![name(0), name(1), name(2)]),
        ("Forbid", json!({ "concurrencyPolicy": "Forbid" }), json!({}), vec![name(0)]),
        ("Replace", json!({ "concurrencyPolicy": "Replace" }), json!({}), vec![name(2)]),
        (
            "replace-waits",
            json!({ "concurrencyPolicy": "Replace" }),
            json!({ "cronjob-controller.dev/replace-waits": "true" }),
            vec![name(2)],
        ),
        (
            "max-concurrent",
            json!({ "concurrencyPolicy": "Allow" }),
            json!({ "cronjob-controller.dev/max-concurrent": "2" }),
            vec![name(0), name(1)],
        ),
    ];
    for (policy, spec, annotations, jobs) in table {
        let world = World::new("2026-03-02T09:59:30Z").await;
        world.create_cron_job("c", spec).await;
        let patch = json!({ "metadata": { "annotations": annotations } });
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &patch).await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:00:30Z").await;
        world.smuggle("jobs.batch", &name(0), json!({ "status": { "startTime": 5 } })).await;
        world.pass_until("2026-03-02T10:02:30Z").await;
        stop.cancel();
        let running = world.children().await;
        assert_eq!(running, jobs, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_gap_in_the_watch_a_cron_job_is_read_once_before_it_fires() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    let hello = key("hello");
    let confirmed = || world.controller.memories.visit(&hello, |memory| memory.confirmed > 0) == Some(true);
    world.create_cron_job("hello", json!({ "suspend": true })).await;
    world.gap(async || {}).await;
    world.pass_until("2026-03-02T10:00:30Z").await;
    assert!(world.controller.process_next_work_item().await);
    assert_eq!((world.wire.count(Verb::Get, "cronjobs"), confirmed()), (0, false), "nothing due, so nothing read");
    let path = format!("{CRON_JOBS}/hello");
    world.write("PATCH", &path, &json!({ "spec": { "suspend": false } })).await;
    let stop = world.work(1);
    world.pass(seconds(1)).await;
    assert_eq!((world.seen().len(), world.wire.count(Verb::Get, "cronjobs"), confirmed()), (1, 1, true));
    world.pass_until("2026-03-02T10:05:30Z").await;
    assert_eq!((world.seen().len(), world.wire.count(Verb::Get, "cronjobs")), (6, 1), "it is read once");
    for (until, jobs, reads) in [("2026-03-02T10:07:30Z", 8, 2), ("2026-03-02T10:09:30Z", 10, 3)] {
        world.gap(async || {}).await;
        world.pass_until(until).await;
        assert_eq!((world.seen().len(), world.wire.count(Verb::Get, "cronjobs")), (jobs, reads), "and after each gap");
    }
    world.write("DELETE", &path, &Value::Null).await;
    assert!(!world.controller.memories.contains(&hello), "nothing is kept of what is gone");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_gap_in_either_watch_alone_is_enough_for_a_cron_job_to_be_read_before_it_fires() {
    for relisted in ["jobs", "cronjobs"] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        let watches = || ["cronjobs", "jobs"].map(|kind| world.wire.count(Verb::Watch, kind));
        let reads = || world.wire.count(Verb::Get, "cronjobs");
        world.create_cron_job("hello", json!({})).await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:01:30Z").await;
        // The watch that saw the last write resumes; unless a Job is written here, that was the status write. The other
        // watch is refused and lists again with a new watch.
        if relisted == "cronjobs" {
            world.write("POST", JOBS, &job("by-hand", &json!([]))).await;
        }
        let (read, [cron_jobs, jobs]) = (reads(), watches());
        world.gap(async || {}).await;
        let more = if relisted == "jobs" { [1, 2] } else { [2, 1] };
        assert_eq!(watches(), [cron_jobs + more[0], jobs + more[1]], "{relisted}");
        world.pass_until("2026-03-02T10:05:30Z").await;
        assert_eq!(reads(), read + 1, "{relisted}");
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspension_that_fell_into_a_gap_is_seen_before_the_next_slot() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.create_cron_job("hello", json!({})).await;
    let stop = world.work(1);
    let path = format!("{CRON_JOBS}/hello");
    world
        .gap(async || drop(world.request("PATCH", &path, &json!({ "spec": { "suspend": true } })).await.unwrap()))
        .await;
    world.pass(seconds(120)).await;
    stop.cancel();
    assert_eq!(world.seen_names(), [""; 0]);
}

/// What happens to the create, and how many creates and live reads of the Job follow.
#[tokio::test(start_paused = true)]
async fn a_create_of_unknown_outcome_ends_in_one_job() {
    let table = [
        ("the answer is lost", Fate::AnswerLost),
        ("the request is lost", Fate::Unreachable),
        ("no answer ever comes", Fate::Swallowed),
        ("a proxy gives up", Fate::Refused(504, "Timeout")),
        ("the server is busy", Fate::Refused(429, "TooManyRequests")),
    ];
    for (sentence, fate) in table {
        let world = World::new("2026-03-02T09:59:30Z").await;
        world.create_cron_job("hello", json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Forbid" })).await;
        let mut first = true;
        world.wire.judge(move |ask| {
            let troubled = ask.is(Verb::Create, "jobs") && std::mem::take(&mut first);
            if troubled { fate } else { Fate::Pass }
        });
        let stop = world.work(2);
        // The client gives up on a create without an answer after 39 s.
        world.pass_until("2026-03-02T10:01:00Z").await;
        stop.cancel();
        assert_eq!(world.seen_names(), ["hello-29540760"], "{sentence}");
        let status = world.cron_jobs.get(&key("hello")).unwrap().status.clone();
        let slot = Some(time("2026-03-02T10:00:00Z"));
        assert_eq!((status.active.len(), status.last_schedule_time), (1, slot), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_costs_neither_a_second_job_nor_a_read() {
    let world = World::with_jobs_that_end("2026-03-02T09:59:30Z", |_| Some((seconds(5), Ending::Complete))).await;
    world.create_cron_job("hello", json!({ "concurrencyPolicy": "Forbid" })).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T09:59:59Z").await;
    world.wire.hold_watches(true);
    world.pass(seconds(20)).await;
    assert_eq!(world.wire.count(Verb::Create, "jobs"), 1);
    // A sync in between finds nothing to do.
    world.controller.queue().add(key("hello"));
    world.catch_up().await;
    world.wire.hold_watches(false);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    assert_eq!(world.seen_names(), ["hello-29540760", "hello-29540761"]);
    assert_eq!((world.wire.count(Verb::Get, "jobs"), world.wire.count(Verb::Get, "cronjobs")), (0, 0));
    let reasons = world.reasons().await;
    assert!(!reasons.contains(&"UnexpectedJob".to_owned()), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_of_the_wall_clock_brings_the_slot_at_once_and_a_step_back_does_not_repeat_it() {
    let world = World::new("2026-03-02T09:30:00Z").await;
    world.create_cron_job("hello", json!({ "schedule": "0 * * * *" })).await;
    let stop = world.work(1);
    world.pass(seconds(1)).await;
    Arc::clone(&world.clock).step(TimeDelta::minutes(30));
    world.catch_up().await;
    assert_eq!(world.seen_names(), ["hello-29540760"]);
    world.clock.step(TimeDelta::minutes(-20));
    world.pass(seconds(30 * 60)).await;
    stop.cancel();
    assert_eq!(world.seen_names(), ["hello-29540760"]);
}
