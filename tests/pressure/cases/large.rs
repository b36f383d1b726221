//! CronJobs of nearly the size that the API server accepts.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use testkit::burst::name;
use testkit::driver::{CRON_JOBS, cron_job, hourly_at, upcoming_minute};

use crate::contenders::{Arena, still_runs};
use crate::lateness::{Lateness, done_or_late};
use crate::table::{Figure, Reach, float};

const COUNT: usize = 400;
/// Arguments of each, and the length of one of them in bytes.
const ARGUMENTS: (usize, usize) = (13, 100_000);

pub async fn templates(arena: &Arc<Arena>) -> Vec<Figure> {
    let ns = arena.world.namespace("large").await;
    let controller = arena.start_controller(&[]).await;
    let slot = upcoming_minute().await + TimeDelta::minutes(2);
    let arguments: Vec<String> = (0..ARGUMENTS.0).map(|index| format!("{index:x}").repeat(ARGUMENTS.1)).collect();
    let spec: Value = json!({"jobTemplate": {"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/none", "args": arguments}],
    }}}}});
    stream::iter(0..COUNT)
        .for_each_concurrent(4, |index| {
            let (ns, spec) = (&ns, &spec);
            async move {
                ns.create(CRON_JOBS, &cron_job(&name(index), &hourly_at(slot), spec)).await;
            }
        })
        .await;
    assert!(Utc::now() < slot, "making {COUNT} CronJobs took too long; the machine is busy");
    let loaded = peak(controller.id());
    let late = || Lateness::of(&arena.world.sightings, &ns.name, (0..COUNT).map(name), slot, slot);
    done_or_late(slot + TimeDelta::seconds(150), || late().count() == COUNT).await;
    // The statuses are written after the Jobs.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    still_runs(&controller);
    vec![
        Figure::count(format!("Jobs created of {COUNT}"), late().count(), Reach::AtLeast(float(COUNT))),
        Figure::seconds("the last one's lateness", late().last(), Reach::Shown),
        Figure::megabytes("peak resident before the slot", loaded, Reach::Shown),
        Figure::megabytes("peak resident", peak(controller.id()), Reach::AtMost(128.0)),
    ]
}

/// The peak resident memory of a process, in MB (10^6 bytes).
fn peak(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
        .expect("the kernel keeps the peak");
    kib * 1024.0 / 1e6
}
