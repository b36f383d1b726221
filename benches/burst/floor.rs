//! The floor: clients without any decisions create the Jobs that a controller would create, and after the last of them
//! write the statuses that it would write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::batch_v1::{CronJob, CronJobStatus};
use cronjob_controller::api::job_template::job_from_template;
use cronjob_controller::api::{ControllerKind, Interner, Object, ObjectReference};
use cronjob_controller::controller::control::{CronJobControl, Patience, RealControl};
use cronjob_controller::controller::plan::StatusWrite;
use cronjob_controller::leader_election::Gate;
use cronjob_controller::options::{self, Command, ProcessEnvironment};
use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use schedule::Zone;
use serde::Deserialize;
use serde_json::value::RawValue;
use testkit::driver::job_name;

use crate::load::Slot;

/// A client that the controller would make from these flags.
pub async fn client(kubeconfig: &Path, flags: &[String]) -> Result<kube::Client, String> {
    let program = ["burst".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    let command = options::parse(program.iter().chain(flags), &ProcessEnvironment).map_err(|why| why.to_string())?;
    let Command::Run(config) = command else { return Err("flags that run nothing".to_owned()) };
    cronjob_controller::client::connect(&config, None).await.map_err(|why| why.to_string())
}

/// The controller's own write path on this client.
pub fn control(client: &kube::Client) -> RealControl {
    // A full queue of writes may precede a request: longer than any sync's own deadline.
    RealControl::new(ControllerKind::CronJob, client.clone(), Arc::new(Gate::unconditional()))
}

#[derive(Deserialize)]
struct RawList {
    items: Vec<Box<RawValue>>,
}

/// Reads the CronJobs at `path` as the controller decodes them.
pub async fn list<T: Object>(client: &kube::Client, path: &str) -> Result<Vec<T>, String> {
    let message = Request::get(path).body(Vec::new()).map_err(|why| why.to_string())?;
    let list: RawList = client.request(message).await.map_err(|why| format!("GET {path}: {why}"))?;
    let interner = Interner::default();
    list.items.iter().map(|item| T::decode(item.get(), &interner).map_err(|why| why.to_string())).collect()
}

/// The requests that a burst needs at least.
pub struct Writes {
    /// The creates of the due Jobs, in the order of the slots.
    pub jobs: Vec<Request<Body>>,
    /// The status of each CronJob with its Job.
    pub statuses: Vec<StatusWrite>,
}

/// The requests of the slots that are due at the same instant.
pub struct Part {
    /// How long that is after the time that the schedule names.
    pub offset: TimeDelta,
    pub jobs: Vec<Request<Body>>,
    pub statuses: Vec<StatusWrite>,
}

impl Writes {
    /// Divides the writes for `slots` by their offsets, in the order of time.
    pub fn by_offset(self, slots: &[Slot]) -> Vec<Part> {
        let mut parts = BTreeMap::new();
        for (slot, (job, status)) in slots.iter().zip(self.jobs.into_iter().zip(self.statuses)) {
            let new = || Part { offset: slot.offset, jobs: Vec::new(), statuses: Vec::new() };
            let part = parts.entry(slot.offset).or_insert_with(new);
            part.jobs.push(job);
            part.statuses.push(status);
        }
        parts.into_values().collect()
    }
}

/// The writes for the CronJobs of `slots`, which must exist.
pub async fn writes(
    client: &kube::Client,
    namespaces: &[String],
    slots: &[Slot],
    slot: DateTime<Utc>,
) -> Result<Writes, String> {
    let mut cron_jobs = std::collections::HashMap::new();
    for namespace in namespaces {
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
        for cron_job in list::<CronJob>(client, &path).await? {
            cron_jobs.insert((namespace.clone(), cron_job.name.name.to_string()), cron_job);
        }
    }
    let mut writes = Writes { jobs: Vec::with_capacity(slots.len()), statuses: Vec::with_capacity(slots.len()) };
    for Slot { namespace, name, .. } in slots {
        let key = (namespace.clone(), name.clone());
        let cron_job = cron_jobs.remove(&key).ok_or_else(|| format!("CronJob {name} was not listed"))?;
        let job = job_from_template(&cron_job, slot, Zone::UTC, None, None).map_err(|why| why.to_string())?;
        let create = Request::post(format!("/apis/batch/v1/namespaces/{namespace}/jobs"))
            .header("content-type", "application/json")
            .header("accept", "application/json");
        writes.jobs.push(create.body(Body::from(job)).map_err(|why| why.to_string())?);
        writes.statuses.push(started(cron_job, slot));
    }
    Ok(writes)
}

/// The status write for the slot's Job; the API server does not check whether a Job has that UID.
fn started(cron_job: CronJob, slot: DateTime<Utc>) -> StatusWrite {
    let job = ObjectReference {
        kind: cron_job.controller_kind.child.kind.to_owned(),
        namespace: cron_job.name.namespace.to_string(),
        name: job_name(&cron_job.name.name, slot),
        uid: cron_job.uid.clone(),
        api_version: cron_job.controller_kind.child.api_version(),
        resource_version: String::new(),
        field_path: String::new(),
    };
    let status = CronJobStatus {
        active: [job].into_iter().collect(),
        last_schedule_time: Some(slot),
        ..CronJobStatus::default()
    };
    StatusWrite { status, base: Arc::new(cron_job) }
}

/// Opens the connections that the burst will use.
pub async fn warm(client: &kube::Client, connections: usize) -> Result<(), String> {
    let gets = (0..connections).map(|_| async {
        let message = Request::get("/apis/batch/v1/jobs?limit=1").body(Body::empty()).map_err(|why| why.to_string())?;
        send(client, message).await
    });
    futures::future::try_join_all(gets).await.map(drop)
}

/// Sends all requests, with this many in flight.
pub async fn burst(client: &kube::Client, requests: Vec<Request<Body>>, in_flight: usize) -> Result<(), String> {
    all(requests.into_iter().map(|request| send(client, request)), in_flight).await
}

/// Writes all statuses as the controller does, with this many in flight.
pub async fn settle(client: &kube::Client, statuses: &[StatusWrite], in_flight: usize) -> Result<(), String> {
    let control = &control(client);
    let writes = statuses.iter().map(|write| async move {
        control.update_status(&write.base.name, write, Patience::Usual).await.map(drop).map_err(|why| why.to_string())
    });
    all(writes, in_flight).await
}

async fn all<F>(writes: impl Iterator<Item = F>, in_flight: usize) -> Result<(), String>
where
    F: Future<Output = Result<(), String>>,
{
    stream::iter(writes).buffer_unordered(in_flight).try_collect::<Vec<()>>().await.map(drop)
}

async fn send(client: &kube::Client, request: Request<Body>) -> Result<(), String> {
    let response = client.send(request).await.map_err(|why| why.to_string())?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|why| why.to_string())?.to_bytes();
    if status.is_success() {
        return Ok(());
    }
    Err(format!("{status}: {}", String::from_utf8_lossy(&body)))
}
