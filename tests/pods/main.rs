//! Policies about Jobs that do not go away, with Pods: no two Pods of a CronJob with `replace-waits` are alive at once, and a
//! Pod stuck in Terminating does not block a CronJob with `stuck-after: …, delete`.
//!
//! The cluster is that of the conformance tests: kube-controller-manager's Job and garbage collector controllers,
//! kube-scheduler, and kwok as the kubelet of one node. A CronJob without the policy runs beside each, and does what the policy
//! prevents: a cluster that cannot fail would show nothing.
//!
//! `make pods-test` builds what is needed and runs it, for seven minutes. `PODS_SLOTS=30` runs thirty slots of each CronJob,
//! which takes half an hour. `cargo test` does not run it.
#![allow(clippy::unwrap_used)]

mod lives;

use std::process::ExitCode;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::policy::{REPLACE_WAITS, STUCK_AFTER};
use serde_json::{Value, json};
use testkit::driver::{CRON_JOBS, EVENTS, JOBS, Namespace, Resource, cron_job, eventually};
use testkit::fixture;
use testkit::fixture::cluster::Cluster;
use testkit::fixture::control_plane::Extras;
use testkit::fixture::controller::Controller;
use testkit::harness::block_on;
use testkit::world::World;

use lives::Lives;

const PODS: Resource = Resource("api/v1", "pods");
/// Each runs in its own Pod's time to terminate.
const WAITING: [&str; 5] = ["5s", "15s", "25s", "35s", "45s"];
/// The slots of each of them, unless PODS_SLOTS says otherwise; thirty in all.
const SLOTS: usize = 6;
const MINUTE: Duration = Duration::from_mins(1);
/// The time limit for what happens within a few slots.
const LIMIT: Duration = Duration::from_mins(9);
/// Not a multiple of the schedule's interval: the Event comes by its own timer and not with a slot.
const STUCK: TimeDelta = TimeDelta::seconds(90);
/// How late the Event may be, whose time has whole seconds.
const TOLERANCE: TimeDelta = TimeDelta::seconds(3);

fn main() -> ExitCode {
    match block_on(run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("pods: FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let binary = fixture::find()?;
    let world = World::start_with(&binary, Controller::Ours, Extras::AllControllers).await?;
    let cluster = Cluster::start(&world.plane).await?;
    let controller = world.start_controller("controller", &[]).await?;
    println!("pods: {}", cluster.versions().await?);
    let ns = world.namespace("pods").await;
    let lives = Lives::watch(&world.plane.admin(), ns.path(PODS, "")).await?;
    let slots = match std::env::var("PODS_SLOTS") {
        Ok(text) => text.parse().map_err(|_| format!("PODS_SLOTS={text} is no number"))?,
        Err(_) => SLOTS,
    };
    tokio::join!(replaced(&ns, &lives, slots), stuck(&ns, &lives));
    controller.check_running()?;
    world.verify().await
}

/// A minutely CronJob whose Pods sleep, and take `terminates_in` to go.
fn sleeper(name: &str, policy: &str, terminates_in: &str, annotations: &[(&str, &str)]) -> Value {
    let mut object = cron_job(name, "* * * * *", &json!({"concurrencyPolicy": policy}));
    for (annotation, value) in annotations {
        object["metadata"]["annotations"][annotation] = json!(value);
    }
    let job = &mut object["spec"]["jobTemplate"]["spec"];
    // Otherwise a Pod that terminates has a successor in the same Job.
    job["podReplacementPolicy"] = json!("Failed");
    let template = &mut job["template"];
    template["metadata"] = json!({"labels": {"of": name}, "annotations": {"example.com/terminates-in": terminates_in}});
    template["spec"]["containers"][0]["command"] = json!(["sleep", "3600"]);
    object
}

/// So many slots of each CronJob, and one CronJob with plain Replace.
async fn replaced(ns: &Namespace, lives: &Lives, slots: usize) {
    // A slot a minute, and some for the start.
    let limit = MINUTE * u32::try_from(slots).unwrap() + 3 * MINUTE;
    let name = |terminates_in: &str| format!("waits-{terminates_in}");
    for terminates_in in WAITING {
        let object = sleeper(&name(terminates_in), "Replace", terminates_in, &[(REPLACE_WAITS, "true")]);
        ns.create(CRON_JOBS, &object).await;
    }
    ns.create(CRON_JOBS, &sleeper("plain", "Replace", "25s", &[])).await;
    for cron_job in WAITING.map(name).iter().map(String::as_str).chain(["plain"]) {
        eventually(format!("{slots} Pods of {cron_job}"), limit, || async {
            (lives.of(cron_job).started >= slots).then_some(())
        })
        .await;
    }
    for terminates_in in WAITING {
        let life = lives.of(&name(terminates_in));
        println!("pods: replace-waits, {terminates_in} to terminate: {life}");
        assert_eq!(life.most_at_once, 1, "two Pods alive at once");
    }
    let life = lives.of("plain");
    println!("pods: plain Replace, 25s to terminate: {life}");
    assert!(life.most_at_once > 1, "Pods that overlap are not seen");
}

/// A Pod that never goes, under Forbid.
async fn stuck(ns: &Namespace, lives: &Lives) {
    let names = ["stuck", "still"];
    let stuck_after = format!("{}s", STUCK.num_seconds());
    ns.create(CRON_JOBS, &sleeper("stuck", "Forbid", "never", &[(STUCK_AFTER, &stuck_after)])).await;
    ns.create(CRON_JOBS, &sleeper("still", "Forbid", "never", &[])).await;
    for name in names {
        eventually(format!("a Pod of {name}"), LIMIT, || async { (lives.of(name).started > 0).then_some(()) }).await;
    }
    for pod in ns.list(PODS).await {
        if names.iter().any(|name| pod["metadata"]["labels"]["of"] == *name) {
            ns.delete(PODS, pod["metadata"]["name"].as_str().unwrap()).await;
        }
    }
    let event = eventually("RunStuck", LIMIT, || async {
        ns.list(EVENTS).await.into_iter().find(|event| event["reason"] == "RunStuck")
    })
    .await;
    let jobs = ns.list(JOBS).await;
    let job = jobs.iter().find(|job| job["metadata"]["ownerReferences"][0]["name"] == "stuck").unwrap();
    let late = time(&event["firstTimestamp"]) - (time(&job["status"]["startTime"]) + STUCK);
    println!("pods: a Pod stuck in Terminating under Forbid: {}, {late} late", event["message"]);
    assert!((TimeDelta::zero()..=TOLERANCE).contains(&late), "RunStuck is {late} late");
    assert_eq!(lives.of("stuck").started, 1, "told, and no more");
    ns.patch(
        CRON_JOBS,
        "stuck",
        &json!({"metadata": {"annotations": {STUCK_AFTER: format!("{stuck_after}, delete")}}}),
    )
    .await;
    eventually("the next slot's Pod", LIMIT, || async { (lives.of("stuck").started == 2).then_some(()) }).await;
    assert_eq!(lives.of("still").started, 1, "without the policy it stands still");
    println!("pods: with `delete` the next slot ran; without the policy it stands still");
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}
