//! The floor: the Jobs that a controller would create, created by clients that decide nothing.

use std::path::Path;

use chrono::{DateTime, Utc};
use cronjob_controller::api::batch_v1::CronJob;
use cronjob_controller::api::job_template::job_from_template;
use cronjob_controller::api::{Interner, Object};
use cronjob_controller::options::{self, Command, ProcessEnvironment};
use cronjob_controller::schedule::Zone;
use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::load::Slot;

/// A client as the controller makes it from these flags.
pub async fn client(kubeconfig: &Path, flags: &[String]) -> Result<kube::Client, String> {
    let program = ["burst".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    let command = options::parse(program.iter().chain(flags), &ProcessEnvironment).map_err(|why| why.to_string())?;
    let Command::Run(config) = command else { return Err("flags that run nothing".to_owned()) };
    cronjob_controller::client::connect(&config, None).await.map_err(|why| why.to_string())
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

/// The create requests for the due Jobs, in the order of the slots.
pub async fn requests(
    client: &kube::Client,
    namespaces: &[String],
    slots: &[Slot],
    slot: DateTime<Utc>,
) -> Result<Vec<Request<Body>>, String> {
    let mut bodies = std::collections::HashMap::new();
    for namespace in namespaces {
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
        for cron_job in list::<CronJob>(client, &path).await? {
            let body = job_from_template(&cron_job, slot, Zone::UTC).map_err(|why| why.to_string())?;
            bodies.insert((namespace.clone(), cron_job.name.name.to_string()), body);
        }
    }
    slots
        .iter()
        .map(|slot| {
            let body = bodies.remove(&(slot.namespace.clone(), slot.name.clone()));
            let body = body.ok_or_else(|| format!("CronJob {} was not listed", slot.name))?;
            Request::post(format!("/apis/batch/v1/namespaces/{}/jobs", slot.namespace))
                .header("content-type", "application/json")
                .header("accept", "application/json")
                .body(Body::from(body))
                .map_err(|why| why.to_string())
        })
        .collect()
}

/// Opens the connections that the burst will use.
pub async fn warm(client: &kube::Client, connections: usize) -> Result<(), String> {
    let gets = (0..connections).map(|_| async {
        let message = Request::get("/apis/batch/v1/jobs?limit=1").body(Body::empty()).map_err(|why| why.to_string())?;
        send(client, message).await
    });
    futures::future::try_join_all(gets).await.map(drop)
}

/// Sends all requests, so many in flight at a time.
pub async fn burst(client: &kube::Client, requests: Vec<Request<Body>>, in_flight: usize) -> Result<(), String> {
    stream::iter(requests)
        .map(|request| send(client, request))
        .buffer_unordered(in_flight)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
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
