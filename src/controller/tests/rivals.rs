//! Tests with another controller that starts Jobs of the same CronJobs.

use super::*;

/// A world at 10:00:30 with the CronJob `c`, and the Jobs that another controller makes for it.
async fn contested(spec: Value) -> (World, impl Fn(&str) -> Value) {
    let world = World::new("2026-03-02T10:00:30Z").await;
    let uid = world.create_cron_job("c", spec).await["metadata"]["uid"].as_str().unwrap().to_owned();
    let theirs = move |slot: &str| {
        let mut theirs = job(&format!("c-{}", time(slot).timestamp() / 60), &json!([controlled_by("c", &uid)]));
        theirs["metadata"]["annotations"] = json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": slot });
        theirs
    };
    (world, theirs)
}

fn foreign(world: &World) -> u64 {
    world.controller.parts.metrics.external_jobs_total.get()
}

#[tokio::test(start_paused = true)]
async fn jobs_that_another_controller_starts_are_counted_once_each_and_start_no_slot_twice() {
    let (world, theirs) = contested(json!({})).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:30Z").await;
    assert_eq!(foreign(&world), 0);
    // The other controller's clock is ahead.
    world.pass_until("2026-03-02T10:01:59.900Z").await;
    world.write("POST", JOBS, &theirs("2026-03-02T10:02:00Z")).await;
    assert_eq!(foreign(&world), 1);
    // The other controller is faster, and the watch has not shown its Job yet.
    world.pass_until("2026-03-02T10:02:59.900Z").await;
    world.wire.hold_watches(true);
    world.write("POST", JOBS, &theirs("2026-03-02T10:03:00Z")).await;
    world.pass_until("2026-03-02T10:03:10Z").await;
    assert_eq!((foreign(&world), world.wire.count(Verb::Create, "jobs")), (2, 2), "the server told");
    world.wire.hold_watches(false);
    world.pass_until("2026-03-02T10:04:30Z").await;
    stop.cancel();
    assert_eq!(foreign(&world), 2, "each counts once");
    let names: Vec<String> = (761..765).map(|at| format!("c-29540{at}")).collect();
    assert_eq!(world.seen_names(), names);
    let status = world.cron_jobs.get(&key("c")).unwrap().status.clone();
    assert_eq!((status.active.len(), status.last_schedule_time), (4, Some(time("2026-03-02T10:04:00Z"))));
}

#[tokio::test(start_paused = true)]
async fn what_a_predecessor_left_is_not_another_controllers() {
    let (world, theirs) = contested(json!({})).await;
    // The informers show these Jobs only after the controller has started.
    world.wire.hold_watches(true);
    world.pass_until("2026-03-02T10:01:05Z").await;
    world.write("POST", JOBS, &theirs("2026-03-02T10:01:00Z")).await;
    let stop = world.work(2);
    world.pass(seconds(1)).await;
    world.wire.hold_watches(false);
    world.pass_until("2026-03-02T10:03:30Z").await;
    stop.cancel();
    assert_eq!((world.seen().len(), foreign(&world)), (3, 0));
}

/// The last leader's clock may have been ahead of this one's. A leader that hung for too long sees what the next one has started.
#[tokio::test(start_paused = true)]
async fn a_job_that_the_last_or_the_next_leader_may_have_started_is_not_another_controllers() {
    for (row, takes_over, is_lost, counted) in
        [("leads", false, false, 1), ("takes over", true, false, 0), ("leads no more", false, true, 0)]
    {
        let (world, theirs) = contested(json!({})).await;
        if takes_over {
            world.controller.take_over(seconds(120));
        }
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:01:59.900Z").await;
        if is_lost {
            world.leadership.revoke(false);
        }
        world.write("POST", JOBS, &theirs("2026-03-02T10:02:00Z")).await;
        world.pass_until("2026-03-02T10:02:20Z").await;
        stop.cancel();
        assert_eq!((world.seen().len(), foreign(&world)), (2, counted), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_came_of_a_request_without_an_answer_is_not_another_controllers() {
    for fate in [Fate::AnswerLost, Fate::Unreachable, Fate::Swallowed, Fate::Refused(504, "Timeout")] {
        for held in [false, true] {
            let (world, _) = contested(json!({})).await;
            let mut creates = 0;
            world.wire.judge(move |ask| {
                creates += u32::from(ask.is(Verb::Create, "jobs"));
                if ask.is(Verb::Create, "jobs") && creates % 2 == 1 { fate } else { Fate::Pass }
            });
            let stop = world.work(2);
            world.pass_until("2026-03-02T10:01:50Z").await;
            world.wire.hold_watches(held);
            world.pass_until("2026-03-02T10:02:40Z").await;
            world.wire.hold_watches(false);
            world.pass_until("2026-03-02T10:04:40Z").await;
            stop.cancel();
            assert_eq!((world.seen().len(), foreign(&world)), (4, 0), "{fate:?}, held: {held}");
        }
    }
}

/// The names of Jobs have minutes, so three slots share one.
#[tokio::test(start_paused = true)]
async fn own_job_of_an_earlier_slot_of_the_minute_is_not_another_controllers() {
    let rows: [(Duration, support::Ends); 2] = [
        (seconds(1), |_| Some((seconds(1), Ending::Complete))),
        (seconds(90), |_| Some((seconds(90), Ending::Complete))),
    ];
    for (runs_for, ends) in rows {
        let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", ends).await;
        let uid = world.create_cron_job("c", json!({ "schedule": "@every 20s" })).await["metadata"]["uid"].clone();
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:10:35Z").await;
        assert_eq!(foreign(&world), 0, "{runs_for:?}");
        let names: Vec<String> = (760..771).map(|at| format!("c-29540{at}")).collect();
        assert_eq!(world.seen_names(), names, "{runs_for:?}: one for each minute, as upstream");
        // It is still seen when there is one: its Job is there when the first slot of a minute comes.
        world.wire.hold_watches(true);
        let mut theirs = job("c-29540771", &json!([controlled_by("c", uid.as_str().unwrap())]));
        theirs["metadata"]["annotations"] =
            json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T10:11:10Z" });
        world.request("POST", JOBS, &theirs).await.unwrap();
        world.pass_until("2026-03-02T10:11:15Z").await;
        assert_eq!(foreign(&world), 1, "{runs_for:?}");
        world.wire.hold_watches(false);
        world.pass_until("2026-03-02T10:15:30Z").await;
        stop.cancel();
        assert_eq!(foreign(&world), 1, "{runs_for:?}");
    }
}

/// Jobs of another owner have the names of two slots, and the CronJob is synced several times for each.
#[tokio::test(start_paused = true)]
async fn name_that_is_taken_is_told_of_once_for_each_slot_and_the_next_one_starts() {
    let (world, _) = contested(json!({})).await;
    for name in ["c-29540761", "c-29540762"] {
        world.write("POST", JOBS, &job(name, &json!([]))).await;
    }
    let stop = world.work(2);
    let told = async || world.reasons().await.iter().filter(|reason| *reason == "FailedCreate").count();
    for (until, want) in
        [("10:00:50", 0), ("10:01:10", 1), ("10:01:20", 1), ("10:02:10", 2), ("10:02:20", 2), ("10:03:10", 2)]
    {
        world.pass_until(&format!("2026-03-02T{until}Z")).await;
        assert_eq!(told().await, want, "until {until}");
        world.controller.queue().add(key("c"));
    }
    stop.cancel();
    assert_eq!(world.seen_names().last().unwrap(), "c-29540763");
    assert_eq!(
        (world.get("c").await["status"]["lastScheduleTime"].clone(), foreign(&world)),
        ("2026-03-02T10:03:00Z".into(), 0)
    );
}
