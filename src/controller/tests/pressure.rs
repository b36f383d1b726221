//! Tests with slow admission, and with tenants whose requests are never answered.

use std::collections::HashMap;

use super::*;
use crate::api::{ApiError, FailureClass};
use crate::controller::plan::Failure;
use crate::controller::{NAMESPACE_BACKOFF, UNAVAILABLE_BACKOFF};

const WORKERS: usize = 64;
const LATENCY: Duration = Duration::from_millis(5);

/// A world at 10:00:30 with CronJobs due at 10:01.
async fn due(cron_jobs: usize) -> World {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
    for at in 0..cron_jobs {
        let spec = json!({ "schedule": "1 10 * * *" });
        world.request("POST", CRON_JOBS, &cron_job(&format!("c{at}"), spec)).await.unwrap();
    }
    world.catch_up().await;
    world
}

/// How late the last Job was created.
fn last(world: &World) -> TimeDelta {
    let last = world.seen().iter().map(|job| job.creation_timestamp).max().unwrap();
    last - time("2026-03-02T10:01:00Z")
}

#[tokio::test(start_paused = true)]
async fn webhook_that_does_ten_jobs_a_second_gets_all_of_them_done_at_its_own_rate() {
    let world = due(200).await;
    let mut ends: Vec<tokio::time::Instant> = Vec::new();
    world.wire.judge(move |ask| {
        if !ask.is(Verb::Create, "jobs") {
            return Orders { there: LATENCY, ..Orders::default() };
        }
        ends.retain(|end| *end > ask.at);
        let there = Duration::from_millis(100) * u32::try_from(ends.len() + 1).unwrap();
        ends.push(ask.at + there);
        Orders { there, ..Orders::default() }
    });
    let stop = world.work(WORKERS);
    world.pass_until("2026-03-02T10:02:00Z").await;
    stop.cancel();
    assert_eq!((world.seen().len(), world.wire.count(Verb::Create, "jobs")), (200, 200), "none was given up");
    assert!(last(&world) <= TimeDelta::seconds(22), "{}", last(&world));
}

#[tokio::test(start_paused = true)]
async fn webhook_that_always_takes_five_seconds_is_asked_for_all_jobs_side_by_side() {
    let world = due(20).await;
    world.wire.judge(|ask| {
        let there = if ask.is(Verb::Create, "jobs") { seconds(5) } else { LATENCY };
        Orders { there, ..Orders::default() }
    });
    let stop = world.work(WORKERS);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    assert_eq!(world.seen().len(), 20);
    assert!(last(&world) <= TimeDelta::seconds(6), "{}", last(&world));
}

#[tokio::test(start_paused = true)]
async fn namespace_whose_webhook_never_answers_delays_no_other_and_is_asked_ever_less() {
    let world = World::with_jobs_that_end("2026-03-02T09:59:30Z", |_| Some((seconds(5), Ending::Complete))).await;
    world.write("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": "noisy" } })).await;
    for at in 0..300 {
        let path = "/apis/batch/v1/namespaces/noisy/cronjobs";
        world.request("POST", path, &cron_job(&format!("n{at}"), json!({}))).await.unwrap();
    }
    for at in 0..30 {
        world.request("POST", CRON_JOBS, &cron_job(&format!("c{at}"), json!({}))).await.unwrap();
    }
    world.catch_up().await;
    world.wire.judge(|ask| {
        let never = ask.is(Verb::Create, "jobs") && ask.namespace == "noisy";
        Orders { there: LATENCY, back: LATENCY, fate: if never { Fate::Swallowed } else { Fate::Pass } }
    });
    let stop = world.work(WORKERS);
    world.pass_until("2026-03-02T10:04:30Z").await;
    stop.cancel();
    let mut slots: HashMap<TimeDelta, usize> = HashMap::new();
    for job in world.seen() {
        let late = TimeDelta::seconds(job.creation_timestamp.timestamp() % 60);
        assert!(late <= TimeDelta::seconds(1), "{} was {late} late", job.name);
        *slots.entry(TimeDelta::minutes(job.creation_timestamp.timestamp() / 60)).or_default() += 1;
    }
    assert!(slots.len() == 5 && slots.values().all(|slots| *slots == 30), "{slots:?}");
    let noisy = world.wire.asked(Verb::Create, "jobs").into_iter().filter(|ask| ask.namespace == "noisy");
    let mut at: Vec<_> = noisy.map(|ask| ask.at).collect();
    at.sort_unstable();
    let end = *at.last().unwrap();
    let recent = at.iter().filter(|at| **at + seconds(60) > end).count();
    assert!(recent <= 12, "{recent} creates in the last minute");
}

/// The server refuses everything for three seconds, also what would be slow. Then the limit is one.
#[tokio::test(start_paused = true)]
async fn after_an_overload_namespaces_that_are_slow_delay_no_other() {
    let world = World::with_jobs_that_end("2026-03-02T09:59:30Z", |_| Some((seconds(5), Ending::Complete))).await;
    for name in (0..16).map(|at| format!("{}-{at}", if at % 2 == 0 { "slow" } else { "calm" })) {
        world.write("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await;
        let path = format!("/apis/batch/v1/namespaces/{name}/cronjobs");
        world.request("POST", &path, &cron_job("c", json!({}))).await.unwrap();
    }
    world.catch_up().await;
    let clock = Arc::clone(&world.clock);
    world.wire.judge(move |ask| {
        let is_create = ask.is(Verb::Create, "jobs");
        let is_slow = ask.namespace.starts_with("slow");
        // So the slow ones are asked again first.
        let end = if is_slow { "2026-03-02T10:04:02Z" } else { "2026-03-02T10:04:03Z" };
        let is_overloaded = clock.now() >= time("2026-03-02T10:04:00Z") && clock.now() < time(end);
        let fate = if is_create && is_overloaded { Fate::Refused(429, "TooManyRequests") } else { Fate::Pass };
        let is_slow = is_slow && is_create && !is_overloaded;
        Orders { there: if is_slow { seconds(5) } else { LATENCY }, back: LATENCY, fate }
    });
    let stop = world.work(8);
    world.pass_until("2026-03-02T10:04:50Z").await;
    stop.cancel();
    let calm = world.seen().into_iter().filter(|job| job.name.namespace.starts_with("calm"));
    let late = calm.map(|job| job.creation_timestamp).max().unwrap() - time("2026-03-02T10:04:03Z");
    assert!(late <= TimeDelta::seconds(2), "{late} after the overload");
}

#[tokio::test(start_paused = true)]
async fn slot_after_a_panic_has_its_timer() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.create_cron_job("poison", json!({ "schedule": "0 * * * *" })).await;
    world.pass_until("2026-03-02T10:00:00Z").await;
    world.wire.judge(|ask| if ask.is(Verb::Create, "jobs") { Fate::Panic } else { Fate::Pass });
    let queue = world.controller.queue();
    while queue.num_requeues(&key("poison")) == 0 {
        assert!(world.controller.process_next_work_item().await);
    }
    let timers = queue.scheduled_for(&key("poison")).unwrap();
    assert_eq!(timers.at, Some(time("2026-03-02T10:59:58Z")), "once more before the next slot");
    assert!(timers.after.is_some());
    world.clock.step(time("2026-03-02T10:59:59Z") - world.clock.now());
    queue.remove_timers(&key("poison"));
    world.controller.keep_next_slot(&key("poison"));
    assert_eq!(queue.scheduled_for(&key("poison")).unwrap().at, Some(time("2026-03-02T11:00:00Z")));
}

/// Here the clock panics, which is read before and after each sync.
#[tokio::test(start_paused = true)]
async fn a_panic_outside_the_sync_costs_neither_the_worker_nor_the_key() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    world.create_cron_job("poison", json!({})).await;
    world.ready().await;
    let queue = world.controller.queue();
    queue.add(key("poison"));
    world.clock.step(chrono::DateTime::<chrono::Utc>::MAX_UTC - world.clock.now());
    tokio::time::advance(seconds(1)).await;
    assert!(world.controller.process_next_work_item().await);
    assert_eq!((queue.processing(), queue.num_requeues(&key("poison"))), (0, 1));
    assert!(queue.scheduled_for(&key("poison")).unwrap().after.is_some());
}

/// What refuses the Jobs is mended when a backoff has begun that ends after the slot's time.
#[tokio::test(start_paused = true)]
async fn slot_that_was_refused_is_tried_once_more_before_its_time_is_over() {
    let rows = [
        ("before the next slot", json!({}), "2026-03-02T10:00:50Z"),
        (
            "before its deadline",
            json!({ "schedule": "0 * * * *", "startingDeadlineSeconds": 60 }),
            "2026-03-02T10:00:50Z",
        ),
        ("before a short deadline", json!({ "startingDeadlineSeconds": 20 }), "2026-03-02T10:00:15Z"),
    ];
    for (sentence, spec, mended) in rows {
        let world = World::new("2026-03-02T09:59:30Z").await;
        world.create_cron_job("hello", spec).await;
        let clock = Arc::clone(&world.clock);
        world.wire.judge(move |ask| {
            let is_refused = ask.is(Verb::Create, "jobs") && clock.now() < time(mended);
            if is_refused { Fate::Denied(403, "Forbidden", "exceeded quota: q") } else { Fate::Pass }
        });
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:00:59Z").await;
        assert_eq!(world.seen_names(), ["hello-29540760"], "{sentence}");
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn key_that_failed_often_comes_back_as_soon_as_its_class_allows_and_at_its_slot() {
    let refused = |code, message: &str| {
        Failure::Api(ApiError { code, ..ApiError::transport("create Job", key("hello"), message) })
    };
    let table = [
        ("the server's", refused(503, "away"), FailureClass::Server, UNAVAILABLE_BACKOFF),
        ("a quota", refused(403, "x is forbidden: exceeded quota: q"), FailureClass::Namespace, NAMESPACE_BACKOFF),
        ("a missing right", refused(403, "jobs.batch is forbidden"), FailureClass::Namespace, NAMESPACE_BACKOFF),
        ("its own", refused(422, "invalid"), FailureClass::Key, seconds(1000)),
        ("a template", Failure::Template("bad".to_owned()), FailureClass::Key, seconds(1000)),
    ];
    for (sentence, failure, class, longest) in table {
        let world = World::new("2026-03-02T09:30:00Z").await;
        world.create_cron_job("hello", json!({ "schedule": "0 * * * *" })).await;
        let (queue, hello) = (world.controller.queue(), key("hello"));
        assert_eq!(failure.class(), class, "{sentence}");
        for _ in 0..40 {
            queue.remove_timers(&hello);
            world.controller.retry(&hello, &failure);
        }
        let timers = queue.scheduled_for(&hello).unwrap();
        let wait = timers.after.unwrap() - tokio::time::Instant::now().into_std();
        assert_eq!((wait, timers.at), (longest, Some(time("2026-03-02T10:00:00Z"))), "{sentence}");
    }
}
