//! Scenarios that kill dependencies in the middle of the work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use serde_json::json;

use testkit::driver::{CRON_JOBS, LEASES, Namespace, cron_job, eventually, hourly_at, job_name, minutes_ago, rfc3339};
use testkit::fixture::account::NAME;
use testkit::fixture::controller::{Controller, Running};
use testkit::world::World;

/// The number of CronJobs due at once: enough for a kill to hit the middle.
const BURST: usize = 150;
/// The kill happens after this many Jobs were seen.
const KILL_AFTER: usize = 20;
/// Slow enough that the burst takes seconds on any machine.
const THROTTLE: [&str; 2] = ["--kube-api-qps=100", "--kube-api-burst=20"];

/// Creates a burst of CronJobs that are all due for one slot, while no controller runs.
async fn overdue_burst(world: &World, namespace: &str) -> (Namespace, DateTime<Utc>) {
    let ns = world.namespace(namespace).await;
    let slot = minutes_ago(10);
    stream::iter(0..BURST)
        .for_each_concurrent(16, |index| {
            let ns = ns.clone();
            let policy = ["Allow", "Forbid", "Replace"][index % 3];
            async move {
                let object = cron_job(&name(index), &hourly_at(slot), &json!({"concurrencyPolicy": policy}));
                ns.create_overdue(&object, slot - TimeDelta::hours(1)).await;
            }
        })
        .await;
    (ns, slot)
}

fn name(index: usize) -> String {
    format!("burst-{index:03}")
}

async fn seen_at_least(world: &World, ns: &Namespace, count: usize) -> usize {
    eventually(format!("{count} Jobs in {}", ns.name), Duration::from_secs(60), || async {
        Some(world.sightings.count_in(&ns.name)).filter(|seen| *seen >= count)
    })
    .await
}

/// Every CronJob of the burst has exactly its one Job, and its status lists it.
async fn settled(ns: &Namespace, slot: DateTime<Utc>, within: Duration) {
    let expected: Vec<String> = (0..BURST).map(|index| job_name(&name(index), slot)).collect();
    let deadline = Instant::now() + within;
    loop {
        let mut jobs = ns.job_names().await;
        jobs.sort();
        let missing = expected.iter().filter(|job| jobs.binary_search(job).is_err()).count();
        let cron_jobs = ns.list(CRON_JOBS).await;
        let wrong: Vec<String> = cron_jobs
            .iter()
            .filter(|object| {
                let (status, name) = (&object["status"], object["metadata"]["name"].as_str().unwrap_or_default());
                let active = status["active"].as_array().map(Vec::as_slice).unwrap_or_default();
                status["lastScheduleTime"] != rfc3339(slot)
                    || active.len() != 1
                    || active[0]["name"] != job_name(name, slot)
            })
            .map(|object| format!("{} {}", object["metadata"]["name"], object["status"]))
            .collect();
        if missing == 0 && jobs.len() == BURST && cron_jobs.len() == BURST && wrong.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "after {within:?}: {} Jobs, {missing} missing; {} statuses are wrong: {:?}",
            jobs.len(),
            wrong.len(),
            wrong.iter().take(3).collect::<Vec<_>>()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A CronJob created now starts its Job: the controller does not only run but follows the cluster.
async fn still_works(ns: &Namespace, name: &str) {
    let slot = minutes_ago(20);
    ns.create_overdue(&cron_job(name, &hourly_at(slot), &json!({})), slot - TimeDelta::hours(1)).await;
    ns.job(name, slot).await;
    ns.delete(CRON_JOBS, name).await;
}

pub async fn controller_restart(world: Arc<World>) -> String {
    let (ns, slot) = overdue_burst(&world, "restart").await;
    let first = world.start_controller("killed", &THROTTLE).await.unwrap();
    seen_at_least(&world, &ns, KILL_AFTER).await;
    first.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let seen = world.sightings.count_in(&ns.name);
    assert!(seen < BURST, "the burst was over before the kill");
    let second = world.start_controller("restarted", &[]).await.unwrap();
    settled(&ns, slot, Duration::from_secs(60)).await;
    still_works(&ns, "afterwards").await;
    second.kill();
    format!("killed at {seen} of {BURST}")
}

pub async fn api_server_restart(world: Arc<World>) -> String {
    let (ns, slot) = overdue_burst(&world, "api-server").await;
    let controller = world.start_controller("api-server-restart", &THROTTLE).await.unwrap();
    let seen = seen_at_least(&world, &ns, KILL_AFTER).await;
    assert!(seen < BURST, "the burst was over before the kill");
    world.plane.kill_api_server();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.plane.start_api_server().await.unwrap();
    let back = Instant::now();
    settled(&ns, slot, Duration::from_secs(60)).await;
    let took = back.elapsed();
    still_works(&ns, "afterwards").await;
    controller.kill();
    format!("killed at {seen} of {BURST}, settled {:.1} s after its return", took.as_secs_f64())
}

/// A short lease shortens the test; the ratios are the defaults'.
pub const LEASE: Duration = Duration::from_secs(6);
pub const ELECTION: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];
/// A candidate watches the lease. Without a watch it checks it every retry period, with jitter at most 2.2 s apart: once to see
/// the last renewal and once after the lease has expired. The rest is for a busy machine.
pub const LOOKS: Duration = Duration::from_millis(6400);

/// The holder of the lease of that name.
pub struct Electorate {
    pub lease: Namespace,
    pub name: &'static str,
}

impl Electorate {
    pub fn of(world: &World) -> Self {
        match world.controller {
            Controller::Ours => Self { lease: world.system(), name: NAME },
            Controller::InTree => {
                Self { lease: Namespace::existing(world.plane.admin(), "kube-system"), name: "kube-controller-manager" }
            }
        }
    }

    pub async fn holder(&self) -> Option<String> {
        let lease = self.lease.get(LEASES, self.name).await?;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(ToOwned::to_owned)
    }

    /// Waits for a holder that is not `before`.
    pub async fn next_holder(&self, before: Option<&String>, within: Duration) -> String {
        eventually(format!("a leader other than {before:?}"), within, || async {
            self.holder().await.filter(|holder| Some(holder) != before)
        })
        .await
    }
}

pub async fn failover(world: Arc<World>) -> String {
    let ns = world.namespace("failover").await;
    let electorate = Electorate::of(&world);
    let start = |name: &'static str| world.start_controller(name, &ELECTION);

    let first = start("first").await.unwrap();
    let leader = electorate.next_holder(None, LEASE + LOOKS).await;
    // A standby is ready: its caches are warm.
    let second = start("second").await.unwrap();
    still_works(&ns, "under-the-first").await;
    assert_eq!(electorate.holder().await.as_ref(), Some(&leader), "the second replica waits");

    let killed = Instant::now();
    first.kill();
    let next = electorate.next_holder(Some(&leader), LEASE + LOOKS).await;
    let after_kill = killed.elapsed();
    still_works(&ns, "under-the-second").await;

    let third = start("third").await.unwrap();
    // The first replica let its lease expire: if it had announced a create, that may be committed for 39 s at most, and the
    // second would create the same.
    tokio::time::sleep(Duration::from_secs(40)).await;
    let stopped = Instant::now();
    let ended = stop(second).await;
    electorate.next_holder(Some(&next), LOOKS).await;
    let after_stop = stopped.elapsed();
    still_works(&ns, "under-the-third").await;
    third.kill();
    format!(
        "new leader {:.1} s after the kill, {:.1} s after SIGTERM (exit {ended})",
        after_kill.as_secs_f64(),
        after_stop.as_secs_f64()
    )
}

/// SIGTERM ends a controller at once and without errors.
pub async fn stop(controller: Running) -> i32 {
    let status = controller.terminate(Duration::from_secs(20)).await.unwrap();
    assert!(status.success(), "SIGTERM: {status}");
    status.code().unwrap_or_default()
}
