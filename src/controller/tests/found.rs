//! Regressions that the simulation found, each reduced to its smallest form.

use prometheus::Registry;

use super::support::NAMESPACE;
use super::*;
use crate::controller::PRUNE_RETRY;
use crate::controller::history::MOST_PRUNED;
use crate::metrics::encode;
use crate::workqueue::QueueGroup;

/// A world at 10:00:30 with the CronJob `c` and a running controller.
async fn working(spec: Value) -> World {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
    world.create_cron_job("c", spec).await;
    world.work(2);
    world
}

#[tokio::test(start_paused = true)]
async fn an_own_job_is_known_however_long_the_watch_is_silent() {
    let world = working(json!({ "concurrencyPolicy": "Forbid" })).await;
    world.wire.hold_watches(true);
    world.pass_until("2026-03-02T10:03:30Z").await;
    assert_eq!(world.list(JOBS).await.len(), 1, "the first still runs");
}

#[tokio::test(start_paused = true)]
async fn an_own_job_that_came_and_went_in_a_gap_wakes_its_cron_job_when_all_is_listed_again() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
    world.create_cron_job("c", json!({})).await;
    assert_eq!(world.ready().await, ["c"]);
    let owner = world.cron_jobs.get(&key("c")).unwrap();
    let uid = owner.uid.to_string();
    let metadata = json!({ "namespace": NAMESPACE, "ownerReferences": [objects::controlled_by("c", &uid)] });
    let gone = objects::job("c-29540761", "gone", json!({ "metadata": metadata }));
    world.controller.memories.change(&owner, |known| known.own.job_created(&gone));
    world.gap(async || ()).await;
    assert_eq!(world.ready().await, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_new_leader_read_live_is_not_forgotten_while_its_watches_are_silent() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
    let uid = world.create_cron_job("c", json!({ "concurrencyPolicy": "Forbid" })).await["metadata"]["uid"].clone();
    world.catch_up().await;
    world.wire.hold_watches(true);
    // The previous leader starts the Job of 10:01, writes its status, and dies.
    let mut theirs = job("c-29540761", &json!([objects::controlled_by("c", uid.as_str().unwrap())]));
    theirs["metadata"]["annotations"] =
        json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T10:01:00Z" });
    world.clock.step(TimeDelta::seconds(40));
    let theirs = world.write("POST", JOBS, &theirs).await;
    let active = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": "c-29540761", "namespace": "default",
        "uid": theirs["metadata"]["uid"],
    }]);
    let status = json!({ "status": { "active": active, "lastScheduleTime": "2026-03-02T10:01:00Z" } });
    world.write("PATCH", &format!("{CRON_JOBS}/c/status"), &status).await;
    world.controller.doubt_caches();
    world.work(2);
    world.pass_until("2026-03-02T10:04:30Z").await;
    assert_eq!(world.list(JOBS).await.len(), 1, "the first still runs");
}

#[tokio::test(start_paused = true)]
async fn no_job_is_started_for_a_cron_job_that_a_new_leader_finds_created_again() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
    world.create_cron_job("c", json!({})).await;
    world.catch_up().await;
    world.wire.hold_watches(true);
    world.write("DELETE", &format!("{CRON_JOBS}/c"), &Value::Null).await;
    world.create_cron_job("c", json!({ "suspend": true })).await;
    world.controller.doubt_caches();
    world.work(2);
    world.pass_until("2026-03-02T10:04:30Z").await;
    assert!(world.wire.count(Verb::Get, "cronjobs") > 0, "it was asked for");
    assert_eq!(world.wire.count(Verb::Create, "jobs"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_not_started_again_though_no_answer_came_and_its_job_is_gone() {
    let world = working(json!({})).await;
    world.wire.judge(|ask| if ask.is(Verb::Create, "jobs") { Fate::AnswerLost } else { Fate::Pass });
    world.pass_until("2026-03-02T10:01:00.001Z").await;
    let name = world.seen_names().remove(0);
    world.write("DELETE", &format!("{JOBS}/{name}"), &Value::Null).await;
    world.pass_until("2026-03-02T10:01:50Z").await;
    assert_eq!(world.seen_names(), [name]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_for_a_cron_job_suspended_while_an_answer_was_waited_for() {
    let world = working(json!({ "concurrencyPolicy": "Replace" })).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    world.wire.answer_late(Verb::Get, "jobs", seconds(1));
    world.pass_until("2026-03-02T10:02:00.500Z").await;
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": { "suspend": true } })).await;
    world.pass_until("2026-03-02T10:02:30Z").await;
    assert!(world.wire.count(Verb::Get, "jobs") > 0, "the slot was about to be started");
    assert_eq!(world.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_job_is_replaced_for_a_cron_job_suspended_while_an_answer_was_waited_for() {
    let spec = |spec: Value| json!({ "spec": spec });
    let annotation =
        |value: &str| json!({ "metadata": { "annotations": { "cronjob-controller.dev/stuck-after": value } } });
    let table = [
        ("nothing is changed", spec(json!({})), true),
        ("it is suspended", spec(json!({ "suspend": true })), false),
        ("it may no longer be replaced", spec(json!({ "concurrencyPolicy": "Forbid" })), false),
        ("a policy is added that cannot be read", annotation("soon"), false),
        ("an annotation is added that is no policy", json!({ "metadata": { "annotations": { "team": "a" } } }), true),
    ];
    for (sentence, change, is_replaced) in table {
        let world = working(json!({ "concurrencyPolicy": "Replace" })).await;
        world.pass_until("2026-03-02T10:01:30Z").await;
        let running = world.seen_names();
        world.wire.answer_late(Verb::Get, "jobs", seconds(1));
        world.pass_until("2026-03-02T10:02:00.500Z").await;
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &change).await;
        world.pass_until("2026-03-02T10:02:30Z").await;
        let left: Vec<_> = world.list(JOBS).await.iter().map(|job| job["metadata"]["name"].clone()).collect();
        assert_eq!(left != running, is_replaced, "{sentence}: {left:?}");
        assert_eq!(left.len(), 1, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_replace_deleted_is_not_reported_missing_though_the_cron_job_changed_before_the_next_was_created() {
    let table = [
        (
            "another policy",
            json!({ "concurrencyPolicy": "Forbid" }),
            vec!["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate"],
            1,
        ),
        ("suspended", json!({ "suspend": true }), vec!["SuccessfulCreate", "SuccessfulDelete"], 0),
    ];
    for (sentence, change, reasons, running) in table {
        let world = working(json!({ "concurrencyPolicy": "Replace" })).await;
        world.pass_until("2026-03-02T10:01:30Z").await;
        world.wire.answer_late(Verb::Delete, "jobs", seconds(1));
        world.pass_until("2026-03-02T10:02:00.500Z").await;
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": change })).await;
        world.pass_until("2026-03-02T10:02:30Z").await;
        assert_eq!(world.reasons().await, reasons, "{sentence}");
        let active = world.get("c").await["status"]["active"].as_array().map_or(0, Vec::len);
        assert_eq!((active, world.list(JOBS).await.len()), (running, running), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_job_is_replaced_after_its_starting_deadline_passed_while_an_answer_was_waited_for() {
    // With this spread, a slot is due 14 s after its time.
    let rows = [
        ("it has not passed", "0s", 10, true),
        ("it has passed", "0s", 1, false),
        ("it has not passed since the slot is due", "1m", 10, true),
        ("it has passed since the slot is due", "1m", 1, false),
    ];
    for (sentence, spread, deadline, is_replaced) in rows {
        let world = working(json!({ "concurrencyPolicy": "Replace", "startingDeadlineSeconds": deadline })).await;
        if spread != "0s" {
            let annotations = json!({ "metadata": { "annotations": { "cronjob-controller.dev/spread": spread } } });
            world.write("PATCH", &format!("{CRON_JOBS}/c"), &annotations).await;
        }
        world.pass_until("2026-03-02T10:01:30Z").await;
        let running = world.seen_names();
        assert_eq!(running.len(), 1, "{sentence}");
        world.wire.answer_late(Verb::Get, "jobs", seconds(3));
        world.pass_until("2026-03-02T10:02:50Z").await;
        assert!(world.wire.count(Verb::Get, "jobs") > 0, "{sentence}: the slot was about to be started");
        let left: Vec<_> = world.list(JOBS).await.iter().map(|job| job["metadata"]["name"].clone()).collect();
        assert_eq!(left != running, is_replaced, "{sentence}: {left:?}");
        assert_eq!(left.len(), 1, "{sentence}");
    }
}

/// The answer to the deletion comes when the deadline has passed. Upstream creates the Job then, too.
#[tokio::test(start_paused = true)]
async fn a_job_that_was_deleted_for_a_slot_is_followed_by_the_slots_job_whatever_the_deadline() {
    let world = working(json!({ "concurrencyPolicy": "Replace", "startingDeadlineSeconds": 3 })).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    world.wire.answer_late(Verb::Delete, "jobs", seconds(5));
    world.pass_until("2026-03-02T10:02:30Z").await;
    let left: Vec<_> = world.list(JOBS).await.iter().map(|job| job["metadata"]["name"].clone()).collect();
    assert_eq!(left, ["c-29540762"]);
}

/// The watch of CronJobs shows none of what the server has.
#[tokio::test(start_paused = true)]
async fn a_status_that_meets_another_version_is_a_reason_to_read_before_the_next_start() {
    let world = working(json!({})).await;
    world.pass(seconds(5)).await;
    world.wire.silence("cronjobs");
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": { "concurrencyPolicy": "Forbid" } })).await;
    world.pass_until("2026-03-02T10:03:30Z").await;
    assert_eq!(world.list(JOBS).await.len(), 1, "the first still runs");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_be_left_alone_for_a_day_is_asked_again_after_a_minute() {
    let world = working(json!({ "schedule": "1 10 * * *" })).await;
    world.wire.judge(|ask| if ask.is(Verb::Create, "jobs") { Fate::Overloaded(86_400) } else { Fate::Pass });
    world.pass_until("2026-03-02T10:01:30Z").await;
    assert_eq!(world.wire.count(Verb::Create, "jobs"), 1, "its wish is kept");
    world.wire.calm();
    world.pass_until("2026-03-02T10:02:10Z").await;
    assert_eq!(world.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_counts_as_one_retry() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.create_cron_job("c", json!({})).await;
    world.pass_until("2026-03-02T10:00:30Z").await;
    let registry = Registry::new();
    let group = QueueGroup::register(&registry, "cronjob").unwrap();
    let _member = group.join(world.controller.queue());
    world.wire.judge(|ask| if ask.is(Verb::Create, "jobs") { Fate::Refused(403, "Forbidden") } else { Fate::Pass });
    for failures in 1..4 {
        assert!(world.controller.process_next_work_item().await);
        let text = encode(&registry);
        let line = format!("workqueue_retries_total{{name=\"cronjob\"}} {failures}\n");
        assert!(text.contains(&line), "after {failures}:\n{text}");
    }
    let timers = world.controller.queue().scheduled_for(&key("c")).unwrap();
    assert_eq!(timers.at, Some(time("2026-03-02T10:00:58Z")), "the end of the slot's time is waited for, too");
}

#[tokio::test(start_paused = true)]
async fn a_running_job_whose_deletion_met_a_conflict_is_not_taken_for_replaced() {
    let world = working(json!({ "concurrencyPolicy": "Replace" })).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    world.wire.judge(|ask| if ask.is(Verb::Delete, "jobs") { Fate::Refused(409, "Conflict") } else { Fate::Pass });
    world.pass_until("2026-03-02T10:02:30Z").await;
    assert_eq!(world.seen().len(), 1);
    world.wire.calm();
    world.pass_until("2026-03-02T10:02:59Z").await;
    assert_eq!(world.seen().len(), 2, "tried again until it is replaced");
}

#[tokio::test(start_paused = true)]
async fn the_first_job_that_cannot_be_replaced_leaves_the_others_running() {
    let world = working(json!({})).await;
    world.pass_until("2026-03-02T10:03:30Z").await;
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": { "concurrencyPolicy": "Replace" } })).await;
    let running = world.seen_names();
    assert_eq!(running.len(), 3);
    let second = running[1].clone();
    world.wire.judge(move |ask| {
        let is_refused = ask.is(Verb::Delete, "jobs") && ask.name == second;
        if is_refused { Fate::Refused(403, "Forbidden") } else { Fate::Pass }
    });
    world.pass_until("2026-03-02T10:04:30Z").await;
    let tried: Vec<_> = world.wire.asked(Verb::Delete, "jobs").into_iter().map(|ask| ask.name).collect();
    assert!(tried.starts_with(&running[..2]) && !tried.contains(&running[2]), "{tried:?}");
    assert_eq!(world.seen_names(), running, "{tried:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pruning_that_failed_is_tried_again_before_the_next_slot() {
    let ends = |_: &crate::api::batch_v1::Job| Some((Duration::from_secs(1), Ending::Complete));
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", ends).await;
    world.create_cron_job("c", json!({ "schedule": "1 10 * * *", "successfulJobsHistoryLimit": 0 })).await;
    world.work(2);
    world.wire.judge(|ask| if ask.is(Verb::Delete, "jobs") { Fate::Refused(403, "Forbidden") } else { Fate::Pass });
    world.pass_until("2026-03-02T10:01:30Z").await;
    assert_eq!(world.list(JOBS).await.len(), 1);
    world.wire.calm();
    world.pass(PRUNE_RETRY).await;
    assert!(world.list(JOBS).await.is_empty());
}

/// More than one sync prunes.
#[tokio::test(start_paused = true)]
async fn a_long_history_that_cannot_be_pruned_is_tried_again_after_a_minute_and_not_at_once() {
    let ends = |_: &crate::api::batch_v1::Job| Some((Duration::from_secs(1), Ending::Complete));
    let rows = [
        ("refused", Fate::Refused(403, "Forbidden"), 16..=40),
        ("gone, and the watch has yet to show it", Fate::Refused(404, "NotFound"), MOST_PRUNED..=MOST_PRUNED),
    ];
    for (sentence, fate, expected) in rows {
        let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", ends).await;
        world.create_cron_job("c", json!({ "successfulJobsHistoryLimit": 100 })).await;
        world.work(2);
        world.pass_until("2026-03-02T10:50:30Z").await;
        assert_eq!(world.list(JOBS).await.len(), 50, "{sentence}");
        world.wire.judge(move |ask| {
            let there = Duration::from_millis(100);
            if ask.is(Verb::Delete, "jobs") { Orders { there, fate, ..Orders::default() } } else { Orders::default() }
        });
        let change = json!({ "spec": { "successfulJobsHistoryLimit": 0, "schedule": "0 0 1 1 *" } });
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &change).await;
        world.pass(seconds(150)).await;
        let tried = world.wire.count(Verb::Delete, "jobs");
        assert!(expected.contains(&tried), "{sentence}: {tried} deletions in 150 s");
    }
}

/// The clock runs two hours ahead for a while. By that clock, a slot in between has missed its deadline.
#[tokio::test(start_paused = true)]
async fn slots_between_the_true_time_and_that_of_a_clock_that_ran_ahead_are_not_lost() {
    for (sentence, held) in [("set back while the key waits", false), ("set back while its sync waits", true)] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        let spec = json!({ "schedule": "30 10 * * *", "startingDeadlineSeconds": 600 });
        world.create_cron_job("c", spec).await;
        world.clock.step(TimeDelta::hours(2));
        let back = Duration::from_secs(if held { 3 } else { 0 });
        world.wire.judge(move |_| Orders { back, ..Orders::default() });
        // With a stale cache and an unknown Job, the sync waits for an answer.
        if held {
            let uid = world.cron_jobs.get(&key("c")).unwrap().uid.to_string();
            world.write("POST", JOBS, &job("manual", &json!([controlled_by("c", &uid)]))).await;
        }
        world.work(1);
        world.pass(seconds(2)).await;
        world.clock.step(TimeDelta::hours(-2));
        world.pass_until("2026-03-02T10:31:00Z").await;
        assert_eq!(world.seen_names().last().map(String::as_str), Some("c-29540790"), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn slot_that_the_clock_has_left_while_an_answer_was_waited_for_does_not_start() {
    for (sentence, step, started) in [("the clock is right", 0, true), ("it is set back", -30, false)] {
        let world = working(json!({ "concurrencyPolicy": "Replace" })).await;
        world.pass_until("2026-03-02T10:01:30Z").await;
        world.wire.answer_late(Verb::Get, "jobs", seconds(1));
        world.pass_until("2026-03-02T10:02:00.500Z").await;
        world.clock.step(TimeDelta::seconds(step));
        world.pass(seconds(10)).await;
        assert!(world.wire.count(Verb::Get, "jobs") > 0, "{sentence}: the slot of 10:02 was about to be started");
        assert_eq!(world.seen_names().contains(&"c-29540762".to_owned()), started, "{sentence}");
        world.pass(seconds(30)).await;
        assert!(world.seen_names().contains(&"c-29540762".to_owned()), "{sentence}: in its time it does");
    }
}

#[tokio::test(start_paused = true)]
async fn cron_job_created_again_while_an_answer_was_waited_for_gets_no_job_with_the_old_uid() {
    for (sentence, is_recreated) in [("it stays", false), ("it is created again with the same spec", true)] {
        let world = working(json!({ "concurrencyPolicy": "Replace" })).await;
        world.pass_until("2026-03-02T10:01:30Z").await;
        let old = world.cron_jobs.get(&key("c")).unwrap().uid.clone();
        world.wire.answer_late(Verb::Get, "jobs", seconds(1));
        world.pass_until("2026-03-02T10:02:00.500Z").await;
        if is_recreated {
            world.write("DELETE", &format!("{CRON_JOBS}/c"), &Value::Null).await;
            world.create_cron_job("c", json!({ "concurrencyPolicy": "Replace" })).await;
        }
        world.pass_until("2026-03-02T10:02:30Z").await;
        assert!(world.wire.count(Verb::Get, "jobs") > 0, "{sentence}: the slot of 10:02 was about to be started");
        let of_the_old =
            world.seen().iter().filter(|job| job.controller.as_ref().is_some_and(|o| o.uid == old)).count();
        assert_eq!(of_the_old, if is_recreated { 1 } else { 2 }, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn sync_of_a_cron_job_that_is_created_again_meanwhile_leaves_nothing_under_the_old_uid() {
    let table = [
        ("its Job is being created", None, Verb::Create),
        ("another Job has that name", Some("c-29540761"), Verb::Get),
    ];
    for (sentence, other_job, awaited) in table {
        let world = working(json!({})).await;
        let old = world.cron_jobs.get(&key("c")).unwrap().uid.clone();
        if let Some(name) = other_job {
            world.write("POST", JOBS, &job(name, &Value::Null)).await;
        }
        world.wire.answer_late(awaited, "jobs", seconds(2));
        world.pass_until("2026-03-02T10:01:01Z").await;
        world.write("DELETE", &format!("{CRON_JOBS}/c"), &Value::Null).await;
        world.create_cron_job("c", json!({ "schedule": "0 0 1 1 *" })).await;
        assert_eq!(world.wire.count(awaited, "jobs"), 1, "{sentence}: there is no answer yet");
        world.pass_until("2026-03-02T10:01:30Z").await;
        assert_eq!(world.controller.retained_for(&key("c"), &old), [""; 0], "{sentence}: once the answer is there");
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_cron_job_leaves_nothing_in_the_maps_of_the_controller() {
    let world = working(json!({ "concurrencyPolicy": "Replace" })).await;
    let uid = world.cron_jobs.get(&key("c")).unwrap().uid.clone();
    world.pass_until("2026-03-02T10:01:30Z").await;
    world.wire.hold_watches(true);
    world.pass_until("2026-03-02T10:02:30Z").await;
    let before = world.controller.retained_for(&key("c"), &uid);
    assert_eq!(before, ["memory of its UID"]);
    assert!(world.controller.retained().template_bytes > 0);
    world.wire.hold_watches(false);
    world.write("DELETE", &format!("{CRON_JOBS}/c"), &Value::Null).await;
    world.pass_until("2026-03-02T10:03:30Z").await;
    assert_eq!(world.controller.retained_for(&key("c"), &uid), [""; 0]);
    assert_eq!(world.controller.retained(), crate::controller::retained::Retained::default());
}
