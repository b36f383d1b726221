//! Fills namespaces with CronJobs, reports whether they have fired, and empties the namespaces again.

use chrono::{DateTime, Datelike, SecondsFormat, TimeDelta, Timelike, Utc};
use cronjob_controller::api::ObjectName;
use cronjob_controller::api::policy::{MAX_CONCURRENT, PAUSE_AFTER_FAILURES, SPREAD, STUCK_AFTER, Spread};
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
    /// When its Job may start; `None`: idle.
    pub due: Option<DateTime<Utc>>,
    /// How long that is after the time that the schedule names.
    pub offset: TimeDelta,
}

impl Slot {
    /// The time that the schedule names.
    pub fn nominal(&self) -> Option<DateTime<Utc>> {
        Some(self.due? - self.offset)
    }
}

/// The CronJobs of a case; `due` is the first due instant.
pub fn slots(case: &Case, namespaces: &[String], due: DateTime<Utc>) -> Vec<Slot> {
    (0..case.due + case.idle)
        .map(|index| {
            let after = if case.timing == Due::Alone { i64::try_from(index).unwrap_or(0) } else { 0 };
            let namespace = namespaces[index % namespaces.len()].clone();
            let name = name_of(index, case.due + case.idle);
            let window = Spread::new(i64::from(case.window) * 60_000_000_000).ok();
            let offset = window.map(|window| window.offset("", &ObjectName::new(namespace.as_str(), name.as_str())));
            let offset = offset.unwrap_or_default();
            let due = (index < case.due).then(|| due + TimeDelta::seconds(after) + offset);
            Slot { namespace, name, due, offset }
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
pub async fn create(client: &kube::Client, slots: &[Slot], at: At, case: &Case) -> Result<(), String> {
    stream::iter(slots)
        .map(|slot| create_one(client, slot, at, case))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
}

async fn create_one(client: &kube::Client, slot: &Slot, at: At, case: &Case) -> Result<(), String> {
    let path = format!("/apis/batch/v1/namespaces/{}/cronjobs", slot.namespace);
    let schedule = match slot.nominal() {
        None => "0 0 29 2 *".to_owned(),
        Some(due) if at == At::Minute && case.timing == Due::Together => {
            format!("{} {} {} {} *", due.minute(), due.hour(), due.day(), due.month())
        }
        Some(_) => "@every 24h".to_owned(),
    };
    let mut body = cron_job(&slot.name, &schedule, &json!({}));
    if case.window > 0 {
        body["metadata"]["annotations"][SPREAD] = json!(format!("{}m", case.window));
    }
    if case.policies {
        for (name, value) in [(MAX_CONCURRENT, "1"), (STUCK_AFTER, "2h"), (PAUSE_AFTER_FAILURES, "1")] {
            body["metadata"]["annotations"][name] = json!(value);
        }
    }
    request(client, Method::POST, &path, Some(&body)).await?;
    let Some(due) = slot.nominal().filter(|_| schedule.starts_with('@')) else { return Ok(()) };
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
            .filter_map(|slot| Some((slot.nominal()?, by_name.get(slot.name.as_str())?)))
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
