//! Scenarios about one CronJob's policy. None waits for a minute: an older lastScheduleTime in the status makes a past
//! slot due, as if the controller had been down.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Datelike, FixedOffset, TimeDelta, Timelike, Utc};
use serde_json::{Value, json};

use testkit::driver::{
    CRON_JOBS, JOBS, Namespace, SOON, cron_job, eventually, hourly_at, job_name, minutes_ago, rfc3339,
};
use testkit::world::World;

/// Enough time for a wrong action of a controller.
const QUIET: Duration = Duration::from_secs(3);
/// The first minor version that keeps `hostnameOverride` and image volumes by default.
const FIELDS_SINCE: u32 = 35;
/// The first minor version that keeps a Pod's own `resources` by default.
const POD_RESOURCES_SINCE: u32 = 34;

/// Makes `name` fire for the slot ten minutes ago, and then makes the slot three minutes ago due by an edit.
async fn two_slots(ns: &Namespace, name: &str, policy: &str) -> (DateTime<Utc>, DateTime<Utc>) {
    let (first, second) = (minutes_ago(10), minutes_ago(3));
    let object = cron_job(name, &hourly_at(first), &json!({"concurrencyPolicy": policy}));
    ns.create_overdue(&object, first - TimeDelta::hours(1)).await;
    ns.job(name, first).await;
    ns.status(name, "the first slot", |status| status["lastScheduleTime"] == rfc3339(first)).await;
    ns.patch(CRON_JOBS, name, &json!({"spec": {"suspend": true, "schedule": hourly_at(second)}})).await;
    ns.patch(CRON_JOBS, name, &json!({"spec": {"suspend": false}})).await;
    (first, second)
}

fn active_names(status: &Value) -> Vec<String> {
    let mut names: Vec<String> = status["active"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| entry["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    names.sort();
    names
}

pub async fn forbid(world: Arc<World>) -> String {
    let ns = world.namespace("forbid").await;
    let (first, second) = two_slots(&ns, "alone", "Forbid").await;
    ns.event("alone", "Normal", "JobAlreadyActive").await;
    ns.jobs_are(&[job_name("alone", first)]).await;
    ns.complete_job(&job_name("alone", first)).await;
    ns.job("alone", second).await;
    ns.status("alone", "only the second Job is active, the first succeeded", |status| {
        status["lastScheduleTime"] == rfc3339(second)
            && status["lastSuccessfulTime"].is_string()
            && active_names(status) == [job_name("alone", second)]
    })
    .await;
    ns.event("alone", "Normal", "SawCompletedJob").await;
    String::new()
}

pub async fn replace(world: Arc<World>) -> String {
    let ns = world.namespace("replace").await;
    let (_, second) = two_slots(&ns, "newest", "Replace").await;
    ns.job("newest", second).await;
    ns.jobs_are(&[job_name("newest", second)]).await;
    ns.event("newest", "Normal", "SuccessfulDelete").await;
    ns.status("newest", "only the second Job is active", |status| {
        status["lastScheduleTime"] == rfc3339(second) && active_names(status) == [job_name("newest", second)]
    })
    .await;
    String::new()
}

pub async fn allow(world: Arc<World>) -> String {
    let ns = world.namespace("allow").await;
    let (first, second) = two_slots(&ns, "many", "Allow").await;
    ns.job("many", second).await;
    let both = vec![job_name("many", first), job_name("many", second)];
    ns.jobs_are(&both).await;
    ns.status("many", "both Jobs are active", |status| active_names(status) == both).await;
    ns.complete_job(&both[1]).await;
    ns.status("many", "the first Job is active", |status| active_names(status) == both[..1]).await;
    ns.finish_job(&both[0], &["FailureTarget", "Failed"], Utc::now()).await;
    ns.status("many", "none is active", |status| active_names(status).is_empty()).await;
    String::new()
}

pub async fn deadline(world: Arc<World>) -> String {
    let ns = world.namespace("deadline").await;
    let slot = minutes_ago(10);
    for (name, seconds) in [("late", 60), ("in-time", 3600)] {
        let object = cron_job(name, &hourly_at(slot), &json!({"startingDeadlineSeconds": seconds}));
        ns.create_overdue(&object, slot - TimeDelta::hours(1)).await;
    }
    ns.job("in-time", slot).await;
    tokio::time::sleep(QUIET).await;
    ns.jobs_are(&[job_name("in-time", slot)]).await;
    String::new()
}

pub async fn history(world: Arc<World>) -> String {
    let ns = world.namespace("history").await;
    let limits = json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1, "suspend": true});
    let owner = ns.create(CRON_JOBS, &cron_job("old", "0 0 1 1 *", &limits)).await;
    // Past children, created as the controller creates them, oldest first.
    let mut finished = Vec::new();
    for age in (1..=6).rev() {
        let slot = minutes_ago(age * 60);
        let name = job_name("old", slot);
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "old", "uid": owner["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }]},
            "spec": owner["spec"]["jobTemplate"]["spec"],
        });
        ns.create(JOBS, &job).await;
        finished.push((name, slot));
    }
    for (index, (name, slot)) in finished.iter().enumerate() {
        let conditions = if index % 2 == 0 { ["SuccessCriteriaMet", "Complete"] } else { ["FailureTarget", "Failed"] };
        ns.finish_job(name, &conditions, *slot).await;
    }
    // Newest first they are failed, succeeded, failed, succeeded, failed, succeeded.
    ns.jobs_are(&[finished[2].0.clone(), finished[4].0.clone(), finished[5].0.clone()]).await;
    ns.event("old", "Normal", "SuccessfulDelete").await;
    String::new()
}

pub async fn time_zone(world: Arc<World>) -> String {
    let ns = world.namespace("time-zone").await;
    let slot = minutes_ago(10);
    // Nepal is 5:45 ahead of UTC all year: if the zone were ignored, the minutes would be wrong, too.
    let local = slot.with_timezone(&FixedOffset::east_opt(5 * 3600 + 45 * 60).unwrap());
    let schedule = format!("{} {} {} * *", local.minute(), local.hour(), local.day());
    let object = cron_job("kathmandu", &schedule, &json!({"timeZone": "Asia/Kathmandu"}));
    ns.create_overdue(&object, slot - TimeDelta::hours(20)).await;
    let job = ns.job("kathmandu", slot).await;
    let annotation = &job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(annotation, &json!(local.to_rfc3339()));
    ns.status("kathmandu", "the slot", |status| status["lastScheduleTime"] == rfc3339(slot)).await;
    String::new()
}

pub async fn many_missed(world: Arc<World>) -> String {
    let ns = world.namespace("many-missed").await;
    ns.create_overdue(&cron_job("behind", "* * * * *", &json!({})), minutes_ago(24 * 60)).await;
    let message = ns.event("behind", "Warning", "TooManyMissedTimes").await;
    assert!(message.contains("too many missed start times"), "{message}");
    let jobs =
        eventually("a Job", SOON, || async { Some(ns.job_names().await).filter(|names| !names.is_empty()) }).await;
    tokio::time::sleep(QUIET).await;
    // One for the past; one more if a minute boundary has passed since.
    let now = ns.job_names().await;
    assert!(now.len() <= 2, "{now:?}");
    let slot: i64 = jobs[0].rsplit('-').next().unwrap().parse().unwrap();
    let behind = Utc::now().timestamp() / 60 - slot;
    assert!(behind <= 1, "the newest slot was to fire, but {} is {behind} minutes old", jobs[0]);
    String::new()
}

pub async fn missing(world: Arc<World>) -> String {
    let ns = world.namespace("missing").await;
    let slot = minutes_ago(10);
    ns.create_overdue(&cron_job("lost", &hourly_at(slot), &json!({})), slot - TimeDelta::hours(1)).await;
    let name = job_name("lost", slot);
    ns.status("lost", "the Job is active", |status| active_names(status) == [name.clone()]).await;
    ns.delete(JOBS, &name).await;
    let status = ns.status("lost", "none is active", |status| active_names(status).is_empty()).await;
    assert_eq!(status["lastScheduleTime"], rfc3339(slot));
    ns.event("lost", "Normal", "MissingJob").await;
    tokio::time::sleep(QUIET).await;
    ns.jobs_are(&[]).await;
    String::new()
}

pub async fn template(world: Arc<World>) -> String {
    let ns = world.namespace("template").await;
    let slot = minutes_ago(10);
    let mut template = json!({
        "metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}, "finalizers": ["example.com/ignored"]},
        "spec": {
            "completionMode": "Indexed",
            "completions": 3,
            "parallelism": 2,
            "backoffLimitPerIndex": 1,
            "maxFailedIndexes": 2,
            "podReplacementPolicy": "Failed",
            "managedBy": "example.com/somebody-else",
            "activeDeadlineSeconds": 1234,
            "ttlSecondsAfterFinished": 4321,
            "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]},
            "podFailurePolicy": {"rules": [
                {"action": "FailIndex", "onExitCodes": {"containerName": "main", "operator": "In", "values": [3, 5]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]},
            "template": {
                "metadata": {"annotations": {"c": "3"}},
                "spec": {
                    "restartPolicy": "Never",
                    "schedulingGates": [{"name": "example.com/gate"}],
                    "hostnameOverride": "somewhere",
                    "setHostnameAsFQDN": false,
                    "terminationGracePeriodSeconds": 7,
                    "resources": {"limits": {"cpu": "1500m"}},
                    "tolerations": [{"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}],
                    "volumes": [{"name": "v", "image": {"reference": "example.com/data", "pullPolicy": "Never"}}],
                    "containers": [{
                        "name": "main",
                        "image": "example.com/none",
                        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                        "volumeMounts": [{"name": "v", "mountPath": "/v", "recursiveReadOnly": "IfPossible", "readOnly": true}],
                        "securityContext": {"procMount": "Default", "appArmorProfile": {"type": "Unconfined"}},
                    }],
                },
            },
        },
    });
    if world.plane.minor() < FIELDS_SINCE {
        let pod = template.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut).unwrap();
        pod.remove("hostnameOverride");
        pod.insert("volumes".to_owned(), json!([{"name": "v", "emptyDir": {}}]));
    }
    if world.plane.minor() < POD_RESOURCES_SINCE {
        template["spec"]["template"]["spec"].as_object_mut().unwrap().remove("resources");
    }
    let object = cron_job("rich", &hourly_at(slot), &json!({"jobTemplate": template}));
    ns.create_overdue(&object, slot - TimeDelta::hours(1)).await;
    let job = ns.job("rich", slot).await;
    let stored = ns.get(CRON_JOBS, "rich").await.unwrap();
    let stored = &stored["spec"]["jobTemplate"];
    // The server stored what the test sent, so that no feature gate hides a field from this test.
    assert_covers(stored, &template, "the stored jobTemplate");
    assert_covers(&job["spec"], &stored["spec"], "the Job's spec");
    assert_covers(&job["metadata"]["labels"], &json!({"a": "1"}), "the Job's labels");
    assert_covers(&job["metadata"]["annotations"], &json!({"b": "2"}), "the Job's annotations");
    assert!(job["metadata"]["finalizers"].is_null(), "only labels and annotations are taken from metadata");
    String::new()
}

/// Asserts that `actual` has everything that `expected` has; it may have more.
fn assert_covers(actual: &Value, expected: &Value, at: &str) {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            for (key, value) in expected {
                let Some(found) = actual.get(key) else { panic!("{at}.{key} is missing") };
                assert_covers(found, value, &format!("{at}.{key}"));
            }
        }
        (Value::Array(actual), Value::Array(expected)) => {
            assert_eq!(actual.len(), expected.len(), "{at}: length");
            for (index, value) in expected.iter().enumerate() {
                assert_covers(&actual[index], value, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(actual, expected, "{at}"),
    }
}
