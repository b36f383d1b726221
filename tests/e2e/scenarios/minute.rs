//! Scenarios that need a minute boundary. They all use the same one or two boundaries.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use testkit::driver::{
    CRON_JOBS, JOBS, SOON, cron_job, eventually, hourly_at, job_name, minutes_ago, rfc3339, sleep_until,
    upcoming_minute,
};
use testkit::world::World;

/// Long enough after a boundary that no Job starts for it any more.
const QUIET: TimeDelta = TimeDelta::seconds(5);

pub async fn fires(world: Arc<World>) -> String {
    let ns = world.namespace("minutely").await;
    let first = upcoming_minute().await;
    let created = ns.create(CRON_JOBS, &cron_job("tick", "* * * * *", &json!({}))).await;
    let mut skews = Vec::new();
    for slot in [first, first + TimeDelta::minutes(1)] {
        let within = (slot - chrono::Utc::now()).to_std().unwrap_or_default() + Duration::from_secs(10);
        let seen = world.sightings.job(&ns.name, "tick", slot, within).await;
        let skew = (seen - slot).num_milliseconds();
        assert!(skew >= 0, "the Job of {slot} was seen {skew} ms before it");
        skews.push(skew);

        let job = ns.job("tick", slot).await;
        let owner = &job["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], created["metadata"]["uid"]);
        assert_eq!((&owner["controller"], &owner["blockOwnerDeletion"]), (&json!(true), &json!(true)));
        assert_eq!(job["metadata"]["labels"]["made-for"], "tick");
        assert_eq!(job["metadata"]["annotations"]["example.com/note"], "kept");
        assert_eq!(job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"], rfc3339(slot));
        ns.status("tick", "lastScheduleTime is the slot, the Job is active", |status| {
            status["lastScheduleTime"] == rfc3339(slot)
                && status["active"].as_array().is_some_and(|active| {
                    active.iter().any(|entry| entry["uid"] == job["metadata"]["uid"] && entry["kind"] == "Job")
                })
        })
        .await;
    }
    let message = ns.event("tick", "Normal", "SuccessfulCreate").await;
    assert!(message.starts_with("Created job tick-"), "{message}");
    // The machine may have paused at one boundary, hardly at both.
    assert!(skews.iter().any(|skew| *skew < 1000), "the Jobs were seen {skews:?} ms after their minutes");
    format!("seen {} ms and {} ms after the minute", skews[0], skews[1])
}

pub async fn suspends(world: Arc<World>) -> String {
    let ns = world.namespace("suspend").await;
    let slot = upcoming_minute().await;
    // One is overdue already, the other becomes due while suspended.
    let missed = minutes_ago(10);
    let suspended = json!({"suspend": true});
    ns.create_overdue(&cron_job("overdue", &hourly_at(missed), &suspended), missed - TimeDelta::hours(1)).await;
    ns.create(CRON_JOBS, &cron_job("minutely", "* * * * *", &suspended)).await;
    sleep_until(slot, QUIET).await;
    ns.jobs_are(&[]).await;
    for name in ["overdue", "minutely"] {
        ns.patch(CRON_JOBS, name, &json!({"spec": {"suspend": false}})).await;
    }
    ns.jobs_are(&[job_name("overdue", missed), job_name("minutely", slot)]).await;
    String::new()
}

pub async fn edits(world: Arc<World>) -> String {
    let ns = world.namespace("edit").await;
    let slot = upcoming_minute().await;
    let yearly = "0 0 1 1 *";
    ns.create(CRON_JOBS, &cron_job("sooner", yearly, &json!({}))).await;
    ns.create(CRON_JOBS, &cron_job("later", "* * * * *", &json!({}))).await;
    // Long enough for the first schedules to have been queued.
    tokio::time::sleep(Duration::from_secs(2)).await;
    ns.patch(CRON_JOBS, "sooner", &json!({"spec": {"schedule": "* * * * *"}})).await;
    ns.patch(CRON_JOBS, "later", &json!({"spec": {"schedule": yearly}})).await;
    sleep_until(slot, QUIET).await;
    ns.jobs_are(&[job_name("sooner", slot)]).await;
    String::new()
}

pub async fn deletes(world: Arc<World>) -> String {
    let ns = world.namespace("delete").await;
    let slot = upcoming_minute().await;
    let past = minutes_ago(1);
    // Fired once for the past, and due again at the boundary.
    ns.create_overdue(&cron_job("gone", "* * * * *", &json!({})), past - TimeDelta::minutes(1)).await;
    let fired = eventually("a first Job", SOON, || async { ns.list(JOBS).await.pop() }).await;
    ns.delete(CRON_JOBS, "gone").await;
    eventually("the garbage collector to take the Job", Duration::from_secs(60), || async {
        ns.list(JOBS).await.is_empty().then_some(())
    })
    .await;
    sleep_until(slot, QUIET).await;
    ns.jobs_are(&[]).await;
    let count = world.sightings.count_in(&ns.name);
    assert_eq!(count, 1, "only {} was to be created", fired["metadata"]["name"]);
    String::new()
}
