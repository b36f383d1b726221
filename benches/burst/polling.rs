//! A CronJob controller as in Kubernetes before 1.21: it lists everything every ten seconds, groups Jobs by owner, and
//! syncs one CronJob after the other.
//!
//! Its requests follow `pkg/controller/cronjob/cronjob_controller.go` of v1.20: pages of 500, and one status update for
//! each CronJob and sweep, even without a change. For a due CronJob follow the Job, its Event and another status
//! update. All requests pass through one client with kube-controller-manager's 20 requests a second. The decisions are
//! this crate's own `sync`, so that the comparison covers only the requests.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apimachinery::clock::{SharedClock, SystemClock};
use chrono::{SecondsFormat, Utc};
use cronjob_controller::api::batch_v1::{CronJob, Job};
use cronjob_controller::api::{ControllerKind, EventType, Interner, Manage, Object, Publish};
use cronjob_controller::cache::Store;
use cronjob_controller::controller::control::{CronJobControl, Patience, RealControl};
use cronjob_controller::controller::plan::{Event, StatusWrite};
use cronjob_controller::controller::{Controller, Parts};
use cronjob_controller::events::{EventRecorder, ObjectReference};
use cronjob_controller::metrics::ControllerMetrics;
use cronjob_controller::workqueue::{Config, WorkQueue};
use http::{Method, Request};
use prometheus::Registry;
use schedule::Zone;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use testkit::driver::request;

use crate::floor;

/// Upstream's `wait.Until(jm.syncAll, 10*time.Second, …)`: ten seconds from the end of one sweep to the next.
const PAUSE: Duration = Duration::from_secs(10);

/// Upstream's page size in `syncAll`.
const PAGE: usize = 500;

/// Polls until the process ends.
pub async fn run(kubeconfig: &Path, flags: &[String]) -> Result<(), String> {
    let client = floor::client(kubeconfig, flags).await?;
    let control = floor::control(&client);
    loop {
        if let Err(why) = sync_all(&client, &control).await {
            eprintln!("sweep: {why}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn sync_all(client: &kube::Client, control: &RealControl) -> Result<(), String> {
    // Without scopes they are synced.
    let (cron_jobs, jobs) = (Arc::new(Store::new([])), Arc::new(Store::new([])));
    for job in list_all::<Job>(client, "/apis/batch/v1/jobs").await? {
        jobs.upsert(job);
    }
    let (clock, diary): (SharedClock, _) = (Arc::new(SystemClock), Arc::new(Diary::default()));
    let controller = Controller::new(Parts {
        controller_kind: ControllerKind::CronJob,
        manage: Manage::All,
        queue: WorkQueue::new(Config::new("polling", Arc::clone(&clock))),
        cron_jobs: Arc::clone(&cron_jobs),
        jobs,
        name_conflicts: None,
        namespaces: None,
        control: control.clone(),
        recorder: Arc::clone(&diary) as _,
        clock,
        metrics: ControllerMetrics::register(&Registry::new()).map_err(|why| why.to_string())?,
        stats_set: None,
        local_zone: Zone::UTC,
        publish: Publish::default(),
    });
    // Each sync writes its status itself.
    controller.queue().shut_down();
    for cron_job in list_all::<CronJob>(client, "/apis/batch/v1/cronjobs").await? {
        let name = cron_job.name.clone();
        let unchanged = StatusWrite { status: cron_job.status.clone(), base: Arc::new(cron_job) };
        match control.update_status(&name, &unchanged, Patience::Usual).await {
            Ok(updated) => drop(cron_jobs.upsert(CronJob::clone(&updated))),
            Err(why) => {
                eprintln!("{name}: {why}");
                continue;
            }
        }
        controller.sync(&name).await;
        let events = std::mem::take(&mut *diary.0.lock().unwrap());
        for event in events {
            if let Err(why) = post(client, &unchanged.base, &event).await {
                eprintln!("{name}: {why}");
            }
        }
    }
    Ok(())
}

/// Collects the Events of one sync.
#[derive(Default)]
struct Diary(Mutex<Vec<Event>>);

impl EventRecorder for Diary {
    fn event(&self, _: &ObjectReference, type_: EventType, reason: &'static str, message: String) {
        self.0.lock().unwrap().push(Event { type_, reason, message });
    }
}

async fn post(client: &kube::Client, about: &CronJob, event: &Event) -> Result<(), String> {
    let now = Utc::now();
    let seconds = now.to_rfc3339_opts(SecondsFormat::Secs, true);
    let name = format!("{}.{:x}", about.name.name, now.timestamp_nanos_opt().unwrap_or_default());
    let body = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about.name.namespace.to_string()},
        "involvedObject": {
            "kind": "CronJob", "apiVersion": "batch/v1", "namespace": about.name.namespace.to_string(),
            "name": about.name.name.to_string(), "uid": about.uid.to_string(),
        },
        "reason": event.reason, "message": event.message, "type": event.type_.as_str(),
        "source": {"component": "cronjob-controller"},
        "firstTimestamp": seconds, "lastTimestamp": seconds, "count": 1,
    });
    let path = format!("/api/v1/namespaces/{}/events", about.name.namespace);
    request(client, Method::POST, &path, Some(&body)).await.map(drop)
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    token: String,
}

async fn list_all<T: Object>(client: &kube::Client, path: &str) -> Result<Vec<T>, String> {
    let interner = Interner::default();
    let (mut objects, mut token) = (Vec::new(), String::new());
    loop {
        let message = Request::get(format!("{path}?limit={PAGE}&continue={token}")).body(Vec::new());
        let message = message.map_err(|why| why.to_string())?;
        let page: Page = client.request(message).await.map_err(|why| format!("GET {path}: {why}"))?;
        for item in page.items {
            objects.push(T::decode(item.get(), &interner).map_err(|why| why.to_string())?);
        }
        token = page.metadata.token;
        if token.is_empty() {
            return Ok(objects);
        }
    }
}
