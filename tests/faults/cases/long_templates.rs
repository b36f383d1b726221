//! One tenant with CronJobs of the largest size that etcd accepts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::burst::Burst;
use testkit::driver::{eventually, minutes_ago};
use testkit::usage;
use testkit::world::World;

use super::seconds;
use crate::luck::Luck;

/// The number of CronJobs; `LONG_TEMPLATES=100` creates fewer.
const COUNT: usize = 400;
/// The bytes of arguments in each; etcd accepts objects of up to 1.5 MiB.
const ARGUMENTS: usize = 1_300_000;
/// The limit of the controller's peak resident memory, in MB.
const AT_MOST: f64 = 128.0;

/// Arguments that differ from CronJob to CronJob.
fn spec(index: usize) -> Value {
    let argument = format!("{index:05}").repeat(ARGUMENTS / 5);
    let container = json!({"name": "main", "image": "example.com/none", "args": [argument]});
    // Suspended, or the Job controller would create Pods of that size, too.
    json!({"jobTemplate": {"spec": {"suspend": true, "template": {"spec": {
        "restartPolicy": "Never", "containers": [container],
    }}}}})
}

pub async fn all_due(world: Arc<World>, _: Luck) -> String {
    let count = std::env::var("LONG_TEMPLATES").ok().and_then(|text| text.parse().ok()).unwrap_or(COUNT);
    let burst = Burst::due(&world, "long", count, minutes_ago(10), spec).await;
    let running = world.start_controller("first", &[]).await.unwrap();
    let started = Instant::now();
    // Half a gigabyte passes through the API server twice.
    eventually("every Job", Duration::from_secs(400), || async { (burst.seen() >= count).then_some(()) }).await;
    let jobs = started.elapsed();
    burst.settled(Duration::from_secs(300)).await;
    let first = usage::peak(running.id()).unwrap();
    running.kill();
    // The second run starts with all CronJobs and all of their Jobs.
    let running = world.start_controller("second", &[]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let second = usage::peak(running.id()).unwrap();
    let resident = usage::of(running.id()).unwrap().resident;
    running.kill();

    let first_job = burst.ns.job("cron-00000", burst.slot).await;
    let arguments = &first_job["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(*arguments, spec(0)["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]);
    let figures = format!(
        "{count} Jobs after {}; at most {first:.0} MB resident, after a restart {second:.0} MB, 20 s later {resident:.0} MB",
        seconds(jobs)
    );
    assert!(first <= AT_MOST && second <= AT_MOST, "{figures}");
    figures
}
