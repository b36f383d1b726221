//! Migrations between the in-tree controller and this one, in both directions, under a load each minute. Both run as
//! separate processes.
//!
//! Everything happens around the same three minutes. In one namespace the controllers take turns, each change in the
//! middle of a burst, and at the end both run at the same time. In the other the in-tree one keeps running unchanged; a
//! controller with `--manage=annotated` starts the CronJobs that are handed over there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use testkit::driver::{
    CRON_JOBS, EVENTS, JOBS, Namespace, cron_job, eventually, finished, hourly_at, job_name, minutes_ago, request,
    rfc3339, sleep_until, upcoming_minute,
};
use testkit::fixture::controller::{Controller, Running};
use testkit::world::World;

use super::past::{codes, migrate_check};

/// The number of CronJobs that change controllers.
pub const LOAD: Range<usize> = 0..40;
/// The number of CronJobs of each kind that is handed over.
const FEW: Range<usize> = 0..6;
/// The number of CronJobs that were handed over and are due at once.
const BURST: Range<usize> = 0..30;
/// How long a Job runs.
const RUNS: TimeDelta = TimeDelta::seconds(4);
/// The time limit of all controllers together for a minute's work; the in-tree one may send twenty requests a second.
const WORK: Duration = Duration::from_secs(40);

const ANNOTATION: &str = "cronjob-controller.dev/managed";

/// The three minutes.
#[derive(Clone, Copy)]
struct Minutes([DateTime<Utc>; 3]);

pub async fn three_ways(world: Arc<World>) -> String {
    assert_eq!(world.controller, Controller::Ours, "it is about both");
    let (turns, beside) = (world.namespace("takeover").await, world.namespace("beside").await);
    let in_tree = start_in_tree(&world, "in-tree-before").await;
    let first = upcoming_minute().await;
    let minutes = Minutes([0, 1, 2].map(|minute| first + TimeDelta::minutes(minute)));
    let finisher = Finisher::start(&world, [&turns, &beside]);
    let returned = tokio::sync::Notify::new();
    let (taken, shared) = tokio::join!(
        change_hands(&world, &turns, minutes, in_tree, &returned),
        work_beside(&world, &beside, minutes, &returned),
    );
    let (taken, in_tree) = taken;
    finisher.stop().await;
    in_tree.kill();
    let twice = world.sightings.created_twice();
    assert!(twice.is_empty(), "created twice: {twice:?}");
    format!("{taken}; {shared}")
}

pub async fn start_in_tree(world: &World, name: &str) -> Running {
    let args = ["-v=1", "--leader-elect=false"].map(str::to_owned);
    let kubeconfig = world.plane.admin_kubeconfig();
    Controller::InTree.start(&world.plane, name, &kubeconfig, &args, &[]).await.unwrap()
}

pub fn names(kind: &str, numbers: Range<usize>) -> impl Iterator<Item = String> {
    numbers.map(move |number| format!("{kind}-{number:02}"))
}

pub async fn seen_at_least(world: &World, ns: &Namespace, count: usize) -> usize {
    eventually(format!("{count} Jobs in {}", ns.name), WORK, || async {
        Some(world.sightings.count_in(&ns.name)).filter(|seen| *seen >= count)
    })
    .await
}

/// In-tree, this controller, in-tree, both.
async fn change_hands(
    world: &World,
    ns: &Namespace,
    Minutes([first, second, third]): Minutes,
    in_tree: Running,
    returned: &tokio::sync::Notify,
) -> (String, Running) {
    create_load(ns).await;
    assert!(Utc::now() < first, "too slow to be ready for the first minute");
    let load = LOAD.len();

    sleep_until(first, TimeDelta::zero()).await;
    seen_at_least(world, ns, load / 4).await;
    in_tree.kill();
    let before = world.sightings.count_in(&ns.name);
    assert!(before < load, "the burst was over before the kill");
    // On shutdown it finishes the syncs in progress, and no more.
    let slowly = ["--namespace=takeover", "--kube-api-qps=40", "--kube-api-burst=10", "--concurrent-cronjob-syncs=4"];
    let ours = world.start_controller("takeover", &slowly).await.unwrap();
    seen_at_least(world, ns, load).await;

    sleep_until(second, TimeDelta::zero()).await;
    let now = seen_at_least(world, ns, load + load / 4).await;
    let status = ours.terminate(Duration::from_secs(20)).await.unwrap();
    assert!(status.success(), "SIGTERM: {status}");
    let stopped = world.sightings.count_in(&ns.name) - load;
    assert!(stopped < load, "the burst was over before SIGTERM at {now}");
    let in_tree = start_in_tree(world, "in-tree-after").await;
    seen_at_least(world, ns, 2 * load).await;
    returned.notify_one();

    // A user forgets to turn one of them off; this controller is made the slower one.
    let slowest = ["--namespace=takeover", "--kube-api-qps=10", "--kube-api-burst=1", "--leader-elect=true"];
    let rival = world.start_controller("rival", &slowest).await.unwrap();
    assert!(third - Utc::now() > TimeDelta::seconds(31), "what a predecessor left is not counted");
    sleep_until(third, TimeDelta::zero()).await;
    seen_at_least(world, ns, 3 * load).await;
    let expected = names("turn", LOAD).flat_map(|name| [first, second, third].map(|slot| job_name(&name, slot)));
    assert_eq!(seen_in(world, ns), expected.collect());
    settled(ns, |_| third).await;
    // This controller learns the owner of an existing Job when its rate-limited queue of requests reaches that read.
    let foreign = eventually("the rival's notice of Jobs that are not its own", WORK, || async {
        Some(external_jobs(&rival).await).filter(|foreign| *foreign > 0)
    })
    .await;
    work_on_one(ns, &in_tree, &rival).await;
    let (_, answer) = migrate_check(world, &ns.name);
    assert!(codes(&answer).contains("two-controllers"), "{answer}");
    // Its lease must not outlive it.
    rival.terminate(Duration::from_secs(20)).await.unwrap();
    let text = format!(
        "{} slots once each: the in-tree one killed at {before} of {load}, ours stopped at {stopped} of {load}, and of {load} \
         {foreign} noticed that another controller had started while both were there",
        3 * load,
    );
    (text, in_tree)
}

/// One controller starts the Job of a CronJob, and the other records its end.
async fn work_on_one(ns: &Namespace, in_tree: &Running, rival: &Running) {
    let slot = minutes_ago(10);
    rival.signal(Signal::STOP);
    ns.create_overdue(&cron_job("contested", &hourly_at(slot), &json!({})), slot - TimeDelta::hours(1)).await;
    ns.status("contested", "the slot", |status| status["lastScheduleTime"] == rfc3339(slot)).await;
    in_tree.signal(Signal::STOP);
    rival.signal(Signal::CONT);
    ns.status("contested", "the end of its Job", |status| !status["lastSuccessfulTime"].is_null()).await;
    in_tree.signal(Signal::CONT);
}

/// Creates the minutely CronJobs, with each of the policies.
pub async fn create_load(ns: &Namespace) {
    join_all(LOAD.map(|number| async move {
        let policy = ["Allow", "Forbid", "Replace"][number % 3];
        let spec = json!({"concurrencyPolicy": policy, "successfulJobsHistoryLimit": 1});
        ns.create(CRON_JOBS, &cron_job(&format!("turn-{number:02}"), "* * * * *", &spec)).await;
    }))
    .await;
}

async fn external_jobs(running: &Running) -> u64 {
    let metrics = running.get("/metrics").await.unwrap();
    let value = metrics.lines().find_map(|line| line.strip_prefix("cronjob_controller_external_jobs_total "));
    value.and_then(|value| value.parse().ok()).expect("the metric is there")
}

/// The names of all Jobs that ever existed.
pub fn seen_in(world: &World, ns: &Namespace) -> BTreeSet<String> {
    world.sightings.all().into_iter().filter(|job| job.namespace == ns.name).map(|job| job.name).collect()
}

/// Waits until all Jobs have ended, every status says so and has the last slot, and each history holds only the newest
/// Job.
pub async fn settled(ns: &Namespace, last: impl Fn(&str) -> DateTime<Utc> + Send + Sync) {
    let wrong = std::sync::Mutex::new(Vec::new());
    let look = || async {
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        for job in ns.list(JOBS).await {
            let owner = job["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
            *left.entry(owner.to_owned()).or_default() += 1;
        }
        let cron_jobs = ns.list(CRON_JOBS).await;
        let is_wrong = |object: &&Value| {
            let (name, status) = (object["metadata"]["name"].as_str().unwrap_or_default(), &object["status"]);
            status["lastScheduleTime"] != rfc3339(last(name))
                || !status["active"].is_null()
                || status["lastSuccessfulTime"].is_null()
                || left.get(name) != Some(&1)
        };
        let found: Vec<String> = cron_jobs
            .iter()
            .filter(is_wrong)
            .map(|object| {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                format!("{name} with {:?} Jobs: {}", left.get(name), object["status"])
            })
            .collect();
        let is_right = found.is_empty() && !cron_jobs.is_empty();
        *wrong.lock().unwrap() = found;
        is_right.then_some(())
    };
    let what = format!("right statuses in {}", ns.name);
    if tokio::time::timeout(WORK, eventually(what, WORK * 2, look)).await.is_err() {
        let wrong = wrong.lock().unwrap();
        panic!("{} statuses in {} are wrong: {:?}", wrong.len(), ns.name, &wrong[..wrong.len().min(3)]);
    }
}

/// The changes to a CronJob that is handed over.
fn over() -> Value {
    json!({"metadata": {"annotations": {ANNOTATION: "true"}}, "spec": {"suspend": true}})
}

fn back() -> Value {
    json!({"metadata": {"annotations": {ANNOTATION: null}}, "spec": {"suspend": false}})
}

async fn create_minutely(ns: &Namespace, kind: &str, is_handed_over: bool) {
    join_all(names(kind, FEW).map(|name| async move {
        let mut object = cron_job(&name, "* * * * *", &json!({"successfulJobsHistoryLimit": 1}));
        if is_handed_over {
            object["metadata"]["annotations"] = over()["metadata"]["annotations"].clone();
            object["spec"]["suspend"] = json!(true);
        }
        ns.create(CRON_JOBS, &object).await;
    }))
    .await;
}

async fn switch(ns: &Namespace, kind: &str, patch: &Value) {
    join_all(names(kind, FEW).map(|name| async move { ns.patch(CRON_JOBS, &name, patch).await })).await;
}

/// This controller with `--manage=annotated`, while the in-tree controller runs, except between the latter's kill and
/// `returned`.
async fn work_beside(
    world: &World,
    ns: &Namespace,
    Minutes([first, second, third]): Minutes,
    returned: &tokio::sync::Notify,
) -> String {
    let ours = world.start_controller("beside-in-tree", &["--namespace=beside", "--manage=annotated"]).await.unwrap();
    let missed = minutes_ago(10);
    for kind in ["shared", "back", "back-late"] {
        create_minutely(ns, kind, true).await;
    }
    join_all(names("burst", BURST).map(|name| async move {
        let mut object = cron_job(&name, &hourly_at(missed), &json!({"suspend": true}));
        object["metadata"]["annotations"] = over()["metadata"]["annotations"].clone();
        ns.create_overdue(&object, missed - TimeDelta::hours(1)).await;
    }))
    .await;
    assert!(Utc::now() < first, "too slow to be ready for the first minute");
    let three = 3 * FEW.len();
    seen_at_least(world, ns, BURST.len()).await;
    sleep_until(first, TimeDelta::zero()).await;
    seen_at_least(world, ns, BURST.len() + three).await;
    sleep_until(second, TimeDelta::zero()).await;
    seen_at_least(world, ns, BURST.len() + 2 * three).await;

    returned.notified().await;
    for kind in ["over", "over-late"] {
        create_minutely(ns, kind, false).await;
    }
    sleep_until(third, TimeDelta::seconds(-8)).await;
    switch(ns, "back", &back()).await;
    switch(ns, "over", &over()).await;
    // The in-tree controller starts Jobs a tenth of a second after the minute.
    sleep_until(third, TimeDelta::milliseconds(60)).await;
    let (over, back) = (over(), back());
    tokio::join!(switch(ns, "over-late", &over), switch(ns, "back-late", &back));

    let runs = |name: &str| match name.rsplit_once('-').map(|(kind, _)| kind) {
        Some("burst") => vec![missed],
        Some("over" | "over-late") => vec![third],
        _ => vec![first, second, third],
    };
    let kinds = ["shared", "back", "back-late", "over", "over-late"].into_iter().flat_map(|kind| names(kind, FEW));
    let expected: BTreeSet<String> = kinds
        .chain(names("burst", BURST))
        .flat_map(|name| runs(&name).into_iter().map(move |slot| job_name(&name, slot)))
        .collect();
    seen_at_least(world, ns, expected.len()).await;
    // Including those that were released between the Job and its status.
    settled(ns, |name| runs(name).pop().expect("each has run")).await;
    assert_eq!(seen_in(world, ns), expected);
    let foreign = external_jobs(&ours).await;
    assert_eq!(foreign, 0, "the other fires nothing of ours");
    ours.check_running().unwrap();
    ours.kill();

    let reasons = reasons(ns).await;
    let count = |reason: &str| reasons.get(reason).copied().unwrap_or_default();
    let fired = BURST.len() + 2 * three + 3 * FEW.len();
    assert_eq!(count("FailedDelete") + count("FailedCreate") + count("MissingJob"), 0, "{reasons:?}");
    assert!(count("UnexpectedJob") <= fired, "more than one Warning for a run: {reasons:?}");
    format!("beside it {} slots once each, about {fired} of them ours, with Events {reasons:?}", expected.len())
}

/// How often each Event reason was recorded.
async fn reasons(ns: &Namespace) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for event in ns.list(EVENTS).await {
        let count = event["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
        *reasons.entry(event["reason"].as_str().unwrap_or_default().to_owned()).or_default() += count;
    }
    reasons
}

/// Ends every Job after its time, as its controller would.
pub struct Finisher {
    over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Finisher {
    pub fn start<const N: usize>(world: &World, namespaces: [&Namespace; N]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (is_over, client) = (Arc::clone(&over), world.plane.admin());
        let namespaces = namespaces.map(Clone::clone);
        let task = tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                for ns in &namespaces {
                    join_all(ns.list(JOBS).await.iter().filter(|job| is_due(job)).map(|job| {
                        let (client, name) = (client.clone(), job["metadata"]["name"].as_str().unwrap_or_default());
                        let status =
                            json!({"status": finished(&["SuccessCriteriaMet", "Complete"], Utc::now() - RUNS)});
                        let path = format!("{}/status", ns.path(JOBS, name));
                        // It may be deleted by now.
                        async move { drop(request(&client, Method::PATCH, &path, Some(&status)).await) }
                    }))
                    .await;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        Self { over, task }
    }

    pub async fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
    }
}

fn is_due(job: &Value) -> bool {
    let created = job["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
    job["status"]["conditions"].is_null() && created.is_some_and(|created| created + RUNS < Utc::now())
}
