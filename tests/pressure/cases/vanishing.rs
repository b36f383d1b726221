//! Jobs that finish and are deleted at once, as with `ttlSecondsAfterFinished: 0`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use http::{Method, Request};
use serde::Deserialize;
use serde_json::json;
use testkit::burst::Burst;
use testkit::driver::{EVENTS, JOBS, Namespace, finished, request};
use testkit::sightings::Sighting;
use tokio::task::JoinHandle;

use super::{lateness, upcoming};
use crate::contenders::{Arena, still_runs};
use crate::lateness::done_or_late;
use crate::table::{Figure, Reach, float};

const DUE: usize = 1_500;
/// Requests in flight while Jobs are completed.
const IN_FLIGHT: usize = 64;
/// The time that 20 requests a second need for three requests per Job.
const LONGEST_WAIT: TimeDelta = TimeDelta::seconds(330);

#[derive(Deserialize)]
struct List {
    items: Vec<CronJob>,
}

#[derive(Deserialize)]
struct CronJob {
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    last_successful_time: Option<String>,
}

pub async fn jobs(arena: &Arc<Arena>) -> Vec<Figure> {
    let controller = arena.start_controller(&[]).await;
    let template = json!({"jobTemplate": {"spec": {
        "ttlSecondsAfterFinished": 0,
        "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/none"}],
        }},
    }}});
    let burst = Burst::due(&arena.world, "vanishing", DUE, upcoming(DUE), |_| template.clone()).await;
    assert!(Utc::now() < burst.slot, "making {DUE} CronJobs took too long; the machine is busy");
    let gone = Arc::new(AtomicUsize::new(0));
    let finisher = finish_all(arena, &burst.ns, Arc::clone(&gone));
    let deadline = burst.slot + LONGEST_WAIT;
    done_or_late(deadline, || gone.load(Ordering::Relaxed) >= DUE).await;
    let last = lateness(arena, &burst).last();
    let gone = gone.load(Ordering::Relaxed);
    let without = without_success(arena, &burst.ns, deadline).await;
    still_runs(&controller);
    finisher.abort();
    let events = burst.ns.list(EVENTS).await.iter().filter(|event| event["reason"] == "MissingJob").count();
    vec![
        Figure::count(format!("Jobs finished and deleted of {DUE}"), gone, Reach::AtLeast(float(DUE))),
        Figure::seconds("the last one's lateness", last, Reach::Shown),
        Figure::count("CronJobs without lastSuccessfulTime", without, Reach::AtMost(0.0)),
        Figure::count("MissingJob Events", events, Reach::AtMost(0.0)),
    ]
}

/// The number of CronJobs without lastSuccessfulTime once it has not changed for ten seconds.
async fn without_success(arena: &Arena, ns: &Namespace, deadline: chrono::DateTime<Utc>) -> usize {
    let mut last = (usize::MAX, Utc::now());
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let message = Request::get(ns.path(testkit::driver::CRON_JOBS, "")).body(Vec::new()).unwrap();
        let found: List = arena.world.plane.admin().request(message).await.unwrap();
        let without = found.items.iter().filter(|item| item.status.last_successful_time.is_none()).count();
        if without != last.0 {
            last = (without, Utc::now());
        }
        let is_still = Utc::now() - last.1 >= TimeDelta::seconds(10);
        if without == 0 || is_still || Utc::now() > deadline + TimeDelta::seconds(30) {
            return without;
        }
    }
}

/// Completes and deletes every Job of a namespace as soon as the watch delivers it.
fn finish_all(arena: &Arena, ns: &Namespace, gone: Arc<AtomicUsize>) -> JoinHandle<()> {
    let (client, sightings, ns) = (arena.world.plane.admin(), arena.world.sightings.clone(), ns.clone());
    let fresh = stream::unfold(0, move |known| {
        let sightings = sightings.clone();
        async move {
            loop {
                let fresh = sightings.after(known);
                if !fresh.is_empty() {
                    return Some((stream::iter(fresh.clone()), known + fresh.len()));
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    tokio::spawn(async move {
        fresh
            .flatten()
            .filter(|job| std::future::ready(job.namespace == ns.name))
            .for_each_concurrent(IN_FLIGHT, |job| {
                let (client, ns, gone) = (&client, &ns, &gone);
                async move {
                    finish(client, ns, &job).await;
                    gone.fetch_add(1, Ordering::Relaxed);
                }
            })
            .await;
    })
}

async fn finish(client: &kube::Client, ns: &Namespace, job: &Sighting) {
    let path = ns.path(JOBS, &job.name);
    let status = json!({"status": finished(&["SuccessCriteriaMet", "Complete"], job.at)});
    request(client, Method::PATCH, &format!("{path}/status"), Some(&status)).await.unwrap();
    let options = json!({"propagationPolicy": "Background"});
    request(client, Method::DELETE, &path, Some(&options)).await.unwrap();
}
