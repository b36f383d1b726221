//! Scenarios about the annotations that count Jobs: how many run at once, which slots wait, and how many failures pause.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::policy::{BACKLOG, MAX_CONCURRENT, PAUSE_AFTER_FAILURES};
use serde_json::json;
use testkit::driver::{
    CRON_JOBS, EVENTS, JOBS, Namespace, cron_job, eventually, hourly_at, job_name, minutes_ago, rfc3339,
    upcoming_minute,
};
use testkit::world::World;

use super::annotations::{QUIET, annotated, explain};

/// The time limit for what a CronJob with `backlog: "0"` does within 60 seconds of a slot that is at most 70 seconds ahead.
const TWO_MINUTES_AND_MORE: Duration = Duration::from_secs(150);

/// Starts a Job by hand, as users do.
fn create_job(world: &World, ns: &Namespace, job: &str, cron_job: &str) {
    let output = Command::new("kubectl")
        .arg(format!("--kubeconfig={}", world.plane.admin_kubeconfig().display()))
        .args(["create", "job", job, &format!("--from=cronjob/{cron_job}"), &format!("--namespace={}", ns.name)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Suspended, with these annotations.
async fn create_suspended(ns: &Namespace, name: &str, slot: DateTime<Utc>, annotations: &[(&str, &str)]) {
    let spec = json!({"suspend": true, "failedJobsHistoryLimit": 2});
    ns.create(CRON_JOBS, &annotated(name, &hourly_at(slot), &spec, annotations)).await;
}

/// Resumes a CronJob whose only open slot is `slot`.
async fn resume(ns: &Namespace, name: &str, slot: DateTime<Utc>) {
    ns.patch_status(CRON_JOBS, name, &json!({"lastScheduleTime": rfc3339(slot - TimeDelta::hours(1))})).await;
    ns.patch(CRON_JOBS, name, &json!({"spec": {"suspend": false}})).await;
}

/// A Job made by hand blocks `max-concurrent`, and a slot that waited for more than 60 seconds does not start with `backlog: "0"`.
/// The controller that judges the slot has led since before it.
pub async fn at_once(world: Arc<World>) -> String {
    let ns = world.namespace("at-once").await;
    let slot = minutes_ago(10);
    create_suspended(&ns, "one", slot, &[(MAX_CONCURRENT, "1")]).await;
    create_suspended(&ns, "two", slot, &[(MAX_CONCURRENT, "2")]).await;
    // Forbid does not count it.
    let forbid = json!({"suspend": true, "concurrencyPolicy": "Forbid"});
    ns.create(CRON_JOBS, &cron_job("forbid", &hourly_at(slot), &forbid)).await;
    for name in ["one", "two", "forbid"] {
        create_job(&world, &ns, &format!("{name}-by-hand"), name);
        resume(&ns, name, slot).await;
    }
    ns.job("two", slot).await;
    ns.job("forbid", slot).await;
    let message = ns.event("one", "Normal", "JobAlreadyActive").await;
    assert!(message.contains("max-concurrent is 1"), "{message}");
    tokio::time::sleep(QUIET).await;
    assert!(ns.get(JOBS, &job_name("one", slot)).await.is_none(), "the Job made by hand counts");
    ns.complete_job("one-by-hand").await;
    ns.job("one", slot).await;

    let next = upcoming_minute().await;
    for (name, annotations) in [
        ("passes", &[(MAX_CONCURRENT, "1"), (BACKLOG, "0")][..]),
        ("waits", &[(MAX_CONCURRENT, "1"), (BACKLOG, "1")]),
        ("newest", &[(MAX_CONCURRENT, "1")]),
    ] {
        ns.create(CRON_JOBS, &annotated(name, &hourly_at(next), &json!({}), annotations)).await;
        create_job(&world, &ns, &format!("{name}-by-hand"), name);
    }
    let told = eventually("PassedOver", TWO_MINUTES_AND_MORE, || async {
        ns.list(EVENTS).await.into_iter().find(|event| event["reason"] == "PassedOver")
    })
    .await;
    assert_eq!(told["involvedObject"]["name"], "passes", "{told}");
    let after = Utc::now() - next;
    assert!(after > TimeDelta::seconds(60), "passed over after {after}");
    for name in ["passes", "waits", "newest"] {
        assert!(ns.get(JOBS, &job_name(name, next)).await.is_none(), "{name} is blocked");
        ns.complete_job(&format!("{name}-by-hand")).await;
    }
    ns.job("waits", next).await;
    ns.job("newest", next).await;
    tokio::time::sleep(QUIET).await;
    assert!(ns.get(JOBS, &job_name("passes", next)).await.is_none(), "passed over for good");
    format!("PassedOver {} s after the slot", after.num_seconds())
}

/// Failures pause a CronJob until one of them is deleted or a Job succeeds; then the slot that was held starts.
pub async fn paused(world: Arc<World>) -> String {
    let ns = world.namespace("paused").await;
    let slot = minutes_ago(10);
    for name in ["deleted", "succeeds"] {
        create_suspended(&ns, name, slot, &[(PAUSE_AFTER_FAILURES, "2")]).await;
        for number in [1, 2] {
            let job = format!("{name}-{number}");
            create_job(&world, &ns, &job, name);
            ns.finish_job(&job, &["FailureTarget", "Failed"], Utc::now()).await;
        }
        resume(&ns, name, slot).await;
    }
    for name in ["deleted", "succeeds"] {
        let message = ns.event(name, "Warning", "Paused").await;
        assert!(message.contains("the last 2 failed"), "{message}");
        let explained = explain(&world, "paused", name);
        assert_eq!(explained["state"], "paused", "{explained}");
    }
    tokio::time::sleep(QUIET).await;
    let held = ["deleted", "succeeds"].map(|name| job_name(name, slot));
    let jobs = ns.job_names().await;
    assert!(!jobs.iter().any(|job| held.contains(job)), "{jobs:?}");
    ns.delete(JOBS, "deleted-1").await;
    ns.job("deleted", slot).await;
    create_job(&world, &ns, "succeeds-3", "succeeds");
    assert!(ns.get(JOBS, &held[1]).await.is_none(), "the third has not succeeded");
    ns.complete_job("succeeds-3").await;
    ns.job("succeeds", slot).await;
    String::new()
}
