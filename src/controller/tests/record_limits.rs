//! CronJobs with more text than a record keeps, from the API server to their Jobs.

use super::support::final_status;
use super::*;

#[tokio::test(start_paused = true)]
async fn long_schedule_fires_at_its_times() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    let schedule = format!("{}1,3 {}10 * * *", "1,".repeat(50_000), " ".repeat(50_000));
    world.create_cron_job("c", json!({ "schedule": schedule, "timeZone": "Etc/UTC" })).await;
    world.work(2);
    world.pass_until("2026-03-02T10:05:30Z").await;
    assert_eq!(world.seen_names(), ["c-29540761", "c-29540763"]);
    let cached = world.cron_jobs.get(&key("c")).unwrap();
    let recurrence = &cached.spec.recurrence;
    assert_eq!((recurrence.schedule(), recurrence.time_zone()), ("1,3 10 * * *", Some("Etc/UTC")));
    assert_eq!(world.get("c").await["spec"]["schedule"], schedule.as_str(), "the object stays as it was written");
}

#[tokio::test(start_paused = true)]
async fn warning_about_many_unknown_policies_names_eight_and_comes_once() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    let annotations: serde_json::Map<_, _> =
        (0..20).map(|i| (format!("cronjob-controller.dev/x{i:02}"), json!("1"))).collect();
    let mut object = cron_job("c", json!({}));
    object["metadata"]["annotations"] = annotations.into();
    world.write("POST", CRON_JOBS, &object).await;
    world.work(2);
    world.pass_until("2026-03-02T10:02:30Z").await;
    let events = world.list("/api/v1/events").await;
    let messages: Vec<_> = events
        .iter()
        .filter(|event| event["reason"] == "UnknownPolicy")
        .map(|event| (&event["count"], &event["message"]))
        .collect();
    let names: Vec<_> = (0..8).map(|i| format!("cronjob-controller.dev/x{i:02}")).collect();
    let text = format!("This version of the cronjob-controller knows no annotation {} and 12 more", names.join(", "));
    assert_eq!(messages, [(&json!(1), &json!(text))]);
}

#[tokio::test(start_paused = true)]
async fn jobs_beyond_the_active_references_that_are_kept_stay_active_until_they_end() {
    const RUNNING: usize = 1_300;
    let world = World::new("2026-03-02T09:59:30Z").await;
    let cron_job = world.create_cron_job("c", json!({ "suspend": true })).await;
    let owner = json!([controlled_by("c", cron_job["metadata"]["uid"].as_str().unwrap())]);
    let number = |i: usize| 29_540_000 - RUNNING + i;
    for i in 0..RUNNING {
        let slot = chrono::DateTime::from_timestamp(i64::try_from(number(i)).unwrap() * 60, 0).unwrap();
        let mut object = job(&format!("c-{}", number(i)), &owner);
        object["metadata"]["annotations"] =
            json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": slot.to_rfc3339() });
        world.request("POST", JOBS, &object).await.unwrap();
    }
    let active = async || world.get("c").await["status"]["active"].as_array().unwrap().len();
    world.catch_up().await;
    world.work(2);
    world.pass(Duration::from_secs(10)).await;
    assert_eq!(active().await, RUNNING);
    assert!(world.cron_jobs.get(&key("c")).unwrap().status.active.len() < RUNNING, "not all are kept");

    for i in [3, RUNNING - 3] {
        let now = world.clock.now();
        let status = json!({ "status": final_status(Ending::Complete, now, now) });
        world.write("PATCH", &format!("{JOBS}/c-{}/status", number(i)), &status).await;
    }
    world.pass(Duration::from_secs(10)).await;
    assert_eq!(active().await, RUNNING - 2);
}
