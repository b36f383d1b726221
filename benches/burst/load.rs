//! Fills namespaces with CronJobs, reports whether they have fired, and empties the namespaces again.

use chrono::{DateTime, Datelike, SecondsFormat, TimeDelta, Timelike, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::driver::{cron_job, request, rfc3339};

use crate::cases::{Case, Due};
use crate::options::At;

/// Requests in flight while objects are created and deleted.
const IN_FLIGHT: usize = 32;

/// A CronJob of the load: its namespace, name and due instant.
#[derive(Debug, Clone)]
pub struct Slot {
    pub namespace: String,
    pub name: String,
    /// `None`: idle.
    pub due: Option<DateTime<Utc>>,
}

/// The CronJobs of a case; `due` is the first due instant.
pub fn slots(case: &Case, namespaces: &[String], due: DateTime<Utc>) -> Vec<Slot> {
    (0..case.due + case.idle)
        .map(|index| {
            let after = if case.timing == Due::Alone { i64::try_from(index).unwrap_or(0) } else { 0 };
            Slot {
                namespace: namespaces[index % namespaces.len()].clone(),
                name: name_of(index, case.due + case.idle),
                due: (index < case.due).then(|| due + TimeDelta::seconds(after)),
            }
        })
        .collect()
}

/// Names in an order that mixes due and idle CronJobs: lists are sorted by name.
fn name_of(index: usize, count: usize) -> String {
    let place = (index * 7_919) % count.max(1);
    format!("cron-{place:05}-{index:05}")
}

pub async fn create_namespaces(client: &kube::Client, names: &[String]) -> Result<(), String> {
    for name in names {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        request(client, Method::POST, "/api/v1/namespaces", Some(&body)).await?;
    }
    Ok(())
}

/// Creates the CronJobs.
pub async fn create(client: &kube::Client, slots: &[Slot], at: At, timing: Due) -> Result<(), String> {
    stream::iter(slots)
        .map(|slot| create_one(client, slot, at, timing))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
}

async fn create_one(client: &kube::Client, slot: &Slot, at: At, timing: Due) -> Result<(), String> {
    let path = format!("/apis/batch/v1/namespaces/{}/cronjobs", slot.namespace);
    let schedule = match slot.due {
        None => "0 0 29 2 *".to_owned(),
        Some(due) if at == At::Minute && timing == Due::Together => {
            format!("{} {} {} {} *", due.minute(), due.hour(), due.day(), due.month())
        }
        Some(_) => "@every 24h".to_owned(),
    };
    let body = cron_job(&slot.name, &schedule, &json!({}));
    request(client, Method::POST, &path, Some(&body)).await?;
    let Some(due) = slot.due.filter(|_| schedule.starts_with('@')) else { return Ok(()) };
    // `@every` counts from the last start: with this one it is due at any second.
    let status = json!({"status": {"lastScheduleTime": rfc3339(due - TimeDelta::hours(24))}});
    request(client, Method::PATCH, &format!("{path}/{}/status", slot.name), Some(&status)).await.map(drop)
}

#[derive(Deserialize)]
struct Statuses {
    items: Vec<StatusOnly>,
}

#[derive(Deserialize)]
struct StatusOnly {
    metadata: NameOnly,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct NameOnly {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    last_schedule_time: Option<String>,
    active: Vec<Value>,
}

/// The number of due CronJobs whose status shows the start.
pub async fn settled(client: &kube::Client, namespaces: &[String], slots: &[Slot]) -> Result<usize, String> {
    let mut count = 0;
    for namespace in namespaces {
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
        let message = http::Request::get(path).body(Vec::new()).map_err(|why| why.to_string())?;
        let list: Statuses = client.request(message).await.map_err(|why| format!("list CronJobs: {why}"))?;
        let by_name: std::collections::HashMap<&str, &Status> =
            list.items.iter().map(|item| (item.metadata.name.as_str(), &item.status)).collect();
        count += slots
            .iter()
            .filter(|slot| slot.namespace == *namespace)
            .filter_map(|slot| Some((slot.due?, by_name.get(slot.name.as_str())?)))
            .filter(|(due, status)| {
                let text = due.to_rfc3339_opts(SecondsFormat::Secs, true);
                status.last_schedule_time.as_ref() == Some(&text) && status.active.len() == 1
            })
            .count();
    }
    Ok(count)
}

/// Deletes everything that a round left behind.
pub async fn clear(client: &kube::Client, namespaces: &[String]) -> Result<(), String> {
    let collections = namespaces.iter().flat_map(|namespace| {
        ["apis/batch/v1", "apis/batch/v1", "api/v1"]
            .iter()
            .zip(["cronjobs", "jobs", "events"])
            .map(move |(group, plural)| format!("/{group}/namespaces/{namespace}/{plural}"))
    });
    stream::iter(collections)
        .map(|path| async move {
            // There is no garbage collector here, so no deletion may wait for it; one long request deletes a
            // collection.
            let options = json!({"propagationPolicy": "Background"}).to_string().into_bytes();
            let message = http::Request::delete(&path).header("content-type", "application/json").body(options);
            let message = message.map_err(|why| why.to_string())?;
            client.request::<Value>(message).await.map_err(|why| format!("DELETE {path}: {why}"))
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<Vec<Value>>()
        .await
        .map(drop)
}
