//! Completes every Job, as the Job controller would when its Pods succeed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use futures::stream::{self, StreamExt};
use http::Method;
use serde_json::json;

use testkit::driver::{JOBS, Namespace, finished, request, sleep_until};
use testkit::sightings::Sighting;
use testkit::world::World;

/// How long a Job runs.
const RUNS: TimeDelta = TimeDelta::seconds(5);
/// Requests in flight.
const IN_FLIGHT: usize = 16;

pub struct Finisher {
    finished: Arc<AtomicUsize>,
}

impl Finisher {
    /// Starts to complete Jobs, for as long as the runtime lives.
    pub fn start(world: &World) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let (client, sightings, finished) = (world.plane.admin(), world.sightings.clone(), Arc::clone(&count));
        tokio::spawn(async move {
            let mut known = 0;
            loop {
                let fresh = sightings.after(known);
                known += fresh.len();
                stream::iter(fresh)
                    .for_each_concurrent(IN_FLIGHT, |job| async {
                        sleep_until(job.at, RUNS).await;
                        finish(&client, job).await;
                        finished.fetch_add(1, Ordering::Relaxed);
                    })
                    .await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Self { finished: count }
    }

    pub fn finished(&self) -> usize {
        self.finished.load(Ordering::Relaxed)
    }
}

/// Writes the Job's last status; retries while the API server is down.
async fn finish(client: &kube::Client, job: Sighting) {
    let path = format!("{}/status", Namespace::existing(client.clone(), &job.namespace).path(JOBS, &job.name));
    let body = json!({"status": finished(&["SuccessCriteriaMet", "Complete"], job.at)});
    while let Err(why) = request(client, Method::PATCH, &path, Some(&body)).await {
        // Already pruned by the controller.
        if why.contains("not found") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
