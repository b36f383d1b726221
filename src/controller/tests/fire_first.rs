//! Fire first, settle after: tests of the order of requests in a burst.

use super::wire::Ask;
use super::*;
use crate::controller::OVERLOAD_PAUSE;

const WORKERS: usize = 8;
const LATENCY: Duration = Duration::from_millis(5);

/// A world at 10:00:30 with this many CronJobs due at 10:01, and a server with latency.
async fn burst(cron_jobs: usize, spec: Value) -> World {
    burst_of(World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await, cron_jobs, spec).await
}

async fn burst_of(world: World, cron_jobs: usize, spec: Value) -> World {
    for at in 0..cron_jobs {
        let spec = objects::merged(json!({ "schedule": "1 10 * * *" }), spec.clone());
        world.request("POST", CRON_JOBS, &cron_job(&format!("c{at}"), spec)).await.unwrap();
    }
    world.catch_up().await;
    world.wire.judge(|_| Orders { there: LATENCY, back: LATENCY, ..Orders::default() });
    world
}

fn settled(world: &World) -> usize {
    let slot = Some(time("2026-03-02T10:01:00Z"));
    let says_so = |cron_job: &&Arc<crate::api::batch_v1::CronJob>| {
        cron_job.status.last_schedule_time == slot && cron_job.status.active.len() == 1
    };
    world.cron_jobs.list().iter().filter(says_so).count()
}

#[tokio::test(start_paused = true)]
async fn every_job_that_is_due_is_created_before_any_status_is_written() {
    let world = burst(200, json!({})).await;
    let stop = world.work(WORKERS);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    let asked: Vec<Ask> = world.wire.asked_for_anything();
    let creates = asked.iter().filter(|ask| ask.is(Verb::Create, "jobs")).count();
    let first_status = asked.iter().position(|ask| ask.is(Verb::Patch, "cronjobs/status")).unwrap();
    let before = asked[..first_status].iter().filter(|ask| ask.is(Verb::Create, "jobs")).count();
    assert_eq!((creates, before), (200, 200));
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 200, "each status is written once");
    assert_eq!(settled(&world), 200);
    let last_status = asked.iter().rposition(|ask| ask.is(Verb::Patch, "cronjobs/status")).unwrap();
    let first_event = asked.iter().position(|ask| ask.is(Verb::Create, "events")).unwrap();
    assert!(first_event + WORKERS >= last_status, "events are written when nothing else is left: {first_event}");
    assert_eq!(world.reasons().await.len(), 200);
}

#[tokio::test(start_paused = true)]
async fn history_is_pruned_when_everything_that_is_due_runs() {
    let world = burst(40, json!({ "schedule": "* * * * *", "successfulJobsHistoryLimit": 0 })).await;
    let stop = world.work(WORKERS);
    world.pass_until("2026-03-02T10:01:30Z").await;
    for job in world.jobs.list() {
        let path = format!("{JOBS}/{}/status", job.name.name);
        let done = json!({ "type": "Complete", "status": "True" });
        let criteria = json!({ "type": "SuccessCriteriaMet", "status": "True" });
        let times = ("2026-03-02T10:01:00Z", "2026-03-02T10:01:40Z");
        let status =
            json!({ "startTime": times.0, "completionTime": times.1, "succeeded": 1, "conditions": [criteria, done] });
        // The watches are held: the controller learns of all ends at the next slot.
        world.request("PATCH", &path, &json!({ "status": status })).await.unwrap();
        world.wire.hold_watches(true);
    }
    world.pass_until("2026-03-02T10:01:59.990Z").await;
    world.wire.hold_watches(false);
    world.pass_until("2026-03-02T10:02:30Z").await;
    stop.cancel();
    let second: Vec<Ask> = world.wire.asked_for_anything();
    let creates: Vec<usize> = (0..second.len()).filter(|at| second[*at].is(Verb::Create, "jobs")).collect();
    let deletes: Vec<usize> = (0..second.len()).filter(|at| second[*at].is(Verb::Delete, "jobs")).collect();
    assert_eq!((creates.len(), deletes.len()), (80, 40));
    let early = deletes.iter().filter(|at| *at < &creates[79]).count();
    assert!(early <= 3 * WORKERS, "{early} were pruned before the last create");
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_overloaded_settling_waits_and_firing_goes_on() {
    let world = burst(40, json!({})).await;
    world.request("POST", CRON_JOBS, &cron_job("late", json!({ "schedule": "2 10 * * *" }))).await.unwrap();
    world.clock.step(TimeDelta::seconds(58));
    world.wire.judge(|ask| {
        let busy = ask.is(Verb::Patch, "cronjobs/status");
        Orders {
            there: LATENCY,
            back: LATENCY,
            fate: if busy { Fate::Refused(429, "TooManyRequests") } else { Fate::Pass },
        }
    });
    let stop = world.work(WORKERS);
    world.pass_until("2026-03-02T10:02:20Z").await;
    let refused = world.wire.count(Verb::Patch, "cronjobs/status");
    // Without the pause, each would have been tried a dozen times.
    let rounds = usize::try_from(seconds(52).as_millis() / OVERLOAD_PAUSE.as_millis()).unwrap();
    assert!(refused <= rounds * WORKERS, "{refused} status writes met a server that asks to be left alone");
    let late = world.seen().iter().find(|job| job.name.name.starts_with("late-")).cloned().unwrap();
    assert_eq!(late.creation_timestamp, time("2026-03-02T10:02:00Z"), "the fire waits for no other work");
    world.wire.judge(|_| Orders { there: LATENCY, back: LATENCY, ..Orders::default() });
    world.pass(seconds(20)).await;
    stop.cancel();
    assert_eq!(settled(&world), 40);
}

/// An API server that accepts one request every 25 ms and refuses all others.
fn squeezed(world: &World) {
    let next = std::sync::Mutex::new(tokio::time::Instant::now());
    world.wire.judge(move |_| {
        let (mut next, now) = (next.lock().unwrap(), tokio::time::Instant::now());
        let fate = if now < *next { Fate::Refused(429, "TooManyRequests") } else { Fate::Pass };
        if matches!(fate, Fate::Pass) {
            *next = now + Duration::from_millis(25);
        }
        Orders { there: LATENCY, back: LATENCY, fate }
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_found_overdue_is_not_held_back_while_the_server_is_overloaded() {
    let world = burst(200, json!({})).await;
    world.clock.step(TimeDelta::seconds(60));
    squeezed(&world);
    let stop = world.work(WORKERS);
    world.pass(seconds(30)).await;
    let (jobs, statuses) = (world.seen().len(), world.wire.count(Verb::Patch, "cronjobs/status"));
    stop.cancel();
    assert_eq!(jobs, 200, "{statuses} status writes were tried meanwhile");
}

/// A standby queues nothing, so its queue is filled when it begins to lead.
#[tokio::test(start_paused = true)]
async fn what_a_new_leader_finds_overdue_is_not_held_back_while_the_server_is_overloaded() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
    world.controller.stand_by();
    let world = burst_of(world, 200, json!({})).await;
    world.clock.step(TimeDelta::seconds(60));
    squeezed(&world);
    let stop = world.work(WORKERS);
    world.pass(seconds(30)).await;
    let (jobs, statuses) = (world.seen().len(), world.wire.count(Verb::Patch, "cronjobs/status"));
    stop.cancel();
    assert_eq!(jobs, 200, "{statuses} status writes were tried meanwhile");
}

#[tokio::test(start_paused = true)]
async fn what_was_fired_is_settled_before_the_end() {
    // Half of the workers start at once, the others after the first answer.
    let world = burst(13 * WORKERS - WORKERS / 2, json!({})).await;
    let stop = world.work(WORKERS);
    world.pass_until("2026-03-02T10:01:00.128Z").await;
    assert_eq!((world.wire.count(Verb::Create, "jobs"), world.wire.count(Verb::Patch, "cronjobs/status")), (100, 0));
    stop.cancel();
    world.pass(seconds(5)).await;
    assert_eq!(settled(&world), 100);
}

#[tokio::test(start_paused = true)]
async fn what_is_being_fired_when_the_end_begins_is_settled_although_no_watch_tells_of_it() {
    for at in ["00.007", "00.012", "00.018", "00.024"] {
        let world = burst(13 * WORKERS, json!({})).await;
        let stop = world.work(WORKERS);
        world.pass_until("2026-03-02T10:00:59.900Z").await;
        world.wire.hold_watches(true);
        world.pass_until(&format!("2026-03-02T10:01:{at}Z")).await;
        stop.cancel();
        world.pass(seconds(5)).await;
        let fired = world.wire.count(Verb::Create, "jobs");
        assert!((1..=4 * WORKERS).contains(&fired), "{fired} at {at}");
        world.wire.hold_watches(false);
        world.pass(seconds(1)).await;
        assert_eq!(settled(&world), fired, "at {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_owed_when_the_end_begins_is_tried_again_for_some_seconds_and_not_for_ever() {
    for (outage, want) in [(2, 40), (3600, 0)] {
        let world = burst(40, json!({})).await;
        world.wire.judge(|ask| {
            let down = ask.is(Verb::Patch, "cronjobs/status");
            let fate = if down { Fate::Refused(503, "ServiceUnavailable") } else { Fate::Pass };
            Orders { there: LATENCY, back: LATENCY, fate }
        });
        let (stop, working) = world.work_to_end(WORKERS);
        world.pass_until("2026-03-02T10:01:20Z").await;
        assert_eq!((world.seen().len(), settled(&world)), (40, 0));
        stop.cancel();
        world.pass(seconds(outage.min(9))).await;
        assert!(!working.is_finished(), "it goes on trying");
        if outage < 9 {
            world.wire.judge(|_| Orders { there: LATENCY, back: LATENCY, ..Orders::default() });
        }
        world.pass(seconds(5)).await;
        assert!(working.is_finished(), "in less than GRACE");
        assert_eq!(settled(&world), want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_owed_until_it_can_and_delays_no_slot() {
    let world = burst(1, json!({ "schedule": "* * * * *", "concurrencyPolicy": "Replace" })).await;
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:01:30Z").await;
    let from = world.clock.now();
    world.wire.judge(move |ask| {
        let refused = ask.is(Verb::Patch, "cronjobs/status");
        Orders::from(if refused { Fate::Refused(403, "Forbidden") } else { Fate::Pass })
    });
    // Ten slots whose status writes are refused: each replaces the Job of the one before, on time.
    world.pass_until("2026-03-02T10:11:30Z").await;
    let created: Vec<_> = world.seen().iter().map(|job| job.creation_timestamp).collect();
    let slots: Vec<_> = (0..11).map(|at| time("2026-03-02T10:01:00Z") + TimeDelta::minutes(at)).collect();
    assert_eq!(created, slots);
    world.wire.calm();
    world.pass(seconds(60)).await;
    stop.cancel();
    let status = world.cron_jobs.get(&key("c0")).unwrap().status.clone();
    assert!(status.last_schedule_time > Some(from));
    assert_eq!(status.active.len(), 1);
    let reasons = world.reasons().await;
    assert!(!reasons.iter().any(|reason| reason == "MissingJob" || reason == "UnexpectedJob"), "{reasons:?}");
}
