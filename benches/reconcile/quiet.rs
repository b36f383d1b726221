//! CronJobs without anything to do, as in most syncs.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::batch_v1::{CronJob, Job};
use cronjob_controller::api::policy::Restriction;
use cronjob_controller::api::{Interner, Namespace, Object, ObjectName, Uid};
use cronjob_controller::controller::observation::Observation;
use cronjob_controller::controller::plan::{Attempted, Settlement};
use cronjob_controller::controller::reconcile::{Decision, conclude, decide};
use schedule::Zone;
use serde_json::{Value, json};

/// Half an hour before the next slot of the hourly schedules.
pub fn now() -> DateTime<Utc> {
    "2026-03-02T09:30:00Z".parse().expect("a time")
}

/// The decisions of a sync that sends nothing.
pub fn sync(observation: &Observation, now: DateTime<Utc>) -> Settlement {
    match decide(observation, now) {
        Decision::Act(course) => conclude(course, &Attempted::default()).settle([]),
        Decision::Read(lookups) => panic!("there is nothing to read: {lookups:?}"),
    }
}

/// The decisions of a sync up to its first request.
#[allow(dead_code, reason = "only the benchmark measures it")]
pub fn first_decision(observation: &Observation, now: DateTime<Utc>) -> bool {
    matches!(decide(observation, now), Decision::Read(_))
}

/// A description of each, and its observed state.
pub fn observations() -> Vec<(&'static str, Observation)> {
    let no_jobs: Vec<Arc<Job>> = Vec::new();
    let history: Vec<_> = [("06", "Complete"), ("07", "Complete"), ("08", "Complete"), ("05", "Failed")]
        .into_iter()
        .map(|(hour, condition)| finished(hour, condition))
        .collect();
    let mut with_running = history.clone();
    with_running.push(job("09", &json!({ "startTime": "2026-03-02T09:00:01Z" })));
    let runs = json!([reference("09")]);
    let berlin = json!({ "timeZone": "Europe/Berlin", "schedule": "45,55 9-17 * * 1-5" });
    vec![
        ("no Job yet", observe(&json!({}), &json!([]), &no_jobs)),
        ("three succeeded, one failed", observe(&json!({}), &json!([]), &history)),
        ("one runs", observe(&json!({}), &runs, &with_running)),
        ("one runs, Forbid, with a deadline", observe(&forbid(), &runs, &with_running)),
        ("in a zone", observe(&berlin, &json!([]), &no_jobs)),
        ("three policies", with_policies(&history)),
        ("suspended", observe(&json!({ "suspend": true }), &json!([]), &history)),
    ]
}

/// A CronJob with so many running Jobs, which its status lists.
#[allow(dead_code, reason = "only the benchmark measures it")]
pub fn with_running(number: usize) -> Observation {
    let last: DateTime<Utc> = "2026-03-02T09:00:00Z".parse().expect("a time");
    let named = |number: usize| {
        let slot = last - TimeDelta::minutes(i64::try_from(number).expect("few"));
        (slot, format!("report-{}", slot.timestamp() / 60), format!("5e1f0000-0000-4000-8000-{number:012}"))
    };
    let running = job("09", &json!({ "startTime": "2026-03-02T09:00:01Z" }));
    let jobs: Vec<_> = (0..number)
        .map(|number| {
            let (slot, name, uid) = named(number);
            let (name, uid) = (ObjectName::new("ns", name), Uid::new(&uid));
            Arc::new(Job { name, uid, scheduled_timestamp: Some(slot), ..Job::clone(&running) })
        })
        .collect();
    let active = (0..number).map(|number| {
        let (_, name, uid) = named(number);
        json!({ "kind": "Job", "namespace": "ns", "name": name, "uid": uid, "apiVersion": "batch/v1" })
    });
    observe(&json!({}), &active.collect(), &jobs)
}

/// With the record of decided slots that the controller would have written.
fn with_policies(jobs: &[Arc<Job>]) -> Observation {
    let annotations = json!({
        "cronjob-controller.dev/exclude": "12-24/01-06",
        "cronjob-controller.dev/dst": "once",
        "cronjob-controller.dev/max-concurrent": "3",
    });
    let mut object = cron_job(&json!({}), &json!([]));
    object["metadata"]["annotations"] = annotations;
    let slot = "2026-03-02T09:00:00Z".parse().expect("a time");
    object["metadata"]["annotations"]["cronjob-controller.dev/counted-from"] =
        json!(decode(&object).counted_at(slot).to_string());
    Observation::new(Arc::new(decode(&object)), jobs.to_vec(), Zone::UTC)
}

/// A CronJob whose Namespace is frozen, after the Event that says so.
#[allow(dead_code, reason = "only the benchmark measures it")]
pub fn with_freeze() -> Observation {
    let mut observation = Observation::new(in_its_namespace(&frozen()), Vec::new(), Zone::UTC);
    observation.recalled.memo = sync(&observation, now()).memo;
    observation
}

/// A CronJob, and the restriction of its Namespace, which is frozen.
#[allow(dead_code, reason = "only the benchmark measures it")]
pub fn frozen() -> (Arc<CronJob>, Option<Arc<Restriction>>) {
    let annotations = json!({ "cronjob-controller.dev/not-before": "2026-04-01T00:00:00Z" });
    let namespace =
        json!({ "metadata": { "name": "ns", "uid": uid("01"), "resourceVersion": "5", "annotations": annotations } });
    let namespace = Namespace::decode(&namespace.to_string(), &Interner::default()).expect("a Namespace");
    (Arc::new(decode(&cron_job(&json!({}), &json!([])))), namespace.restriction)
}

/// What a sync does before it decides.
#[allow(dead_code, reason = "only the benchmark measures it")]
pub fn in_its_namespace((cron_job, restriction): &(Arc<CronJob>, Option<Arc<Restriction>>)) -> Arc<CronJob> {
    Arc::clone(cron_job).in_its_namespace(restriction.as_ref())
}

fn forbid() -> Value {
    json!({ "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 200 })
}

fn observe(spec: &Value, active: &Value, jobs: &[Arc<Job>]) -> Observation {
    Observation::new(Arc::new(decode(&cron_job(spec, active))), jobs.to_vec(), Zone::UTC)
}

fn decode(object: &Value) -> CronJob {
    CronJob::decode(&object.to_string(), &Interner::default()).expect("a CronJob")
}

fn cron_job(spec: &Value, active: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "report", "namespace": "ns", "uid": uid("00"), "resourceVersion": "7",
            "creationTimestamp": "2026-03-01T08:30:00Z",
        },
        "spec": {
            "schedule": "0 * * * *", "jobTemplate": { "spec": {} },
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
        },
        "status": {
            "lastScheduleTime": "2026-03-02T09:00:00Z", "lastSuccessfulTime": "2026-03-02T08:10:00Z", "active": active,
        },
    });
    for (key, value) in spec.as_object().expect("an object") {
        object["spec"][key] = value.clone();
    }
    object
}

fn finished(hour: &str, condition: &str) -> Arc<Job> {
    let completion_time = (condition == "Complete").then(|| format!("2026-03-02T{hour}:10:00Z"));
    let status = json!({
        "startTime": format!("2026-03-02T{hour}:00:01Z"), "completionTime": completion_time,
        "conditions": [{ "type": condition, "status": "True" }],
    });
    job(hour, &status)
}

fn job(hour: &str, status: &Value) -> Arc<Job> {
    let object = json!({
        "metadata": {
            "name": name(hour), "namespace": "ns", "uid": uid(hour), "resourceVersion": "3",
            "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": format!("2026-03-02T{hour}:00:00Z") },
            "ownerReferences": [
                { "apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": uid("00"), "controller": true },
            ],
        },
        "status": status,
    });
    Arc::new(Job::decode(&object.to_string(), &Interner::default()).expect("a Job"))
}

fn name(hour: &str) -> String {
    let slot: DateTime<Utc> = format!("2026-03-02T{hour}:00:00Z").parse().expect("a time");
    format!("report-{}", slot.timestamp() / 60)
}

fn uid(hour: &str) -> String {
    format!("5e1f0000-0000-4000-8000-0000000000{hour}")
}

fn reference(hour: &str) -> Value {
    json!({ "kind": "Job", "namespace": "ns", "name": name(hour), "uid": uid(hour), "apiVersion": "batch/v1" })
}
