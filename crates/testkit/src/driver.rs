//! Requests of the scenarios to the cluster, and waits for its reactions.
//!
//! Objects are plain JSON, so that no type of this repository or of a library stands between a test and the wire. A failed
//! request panics with the request in the message. Every wait has a deadline and says what it waited for.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use apimachinery::clock::{Clock, SystemClock};
use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Timelike, Utc};
use http::{Method, Request};
use serde_json::{Value, json};

/// A namespaced collection: the path of its group and version, and its plural name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource(pub &'static str, pub &'static str);

pub const CRON_JOBS: Resource = Resource("apis/batch/v1", "cronjobs");
pub const JOBS: Resource = Resource("apis/batch/v1", "jobs");
pub const EVENTS: Resource = Resource("api/v1", "events");
pub const LEASES: Resource = Resource("apis/coordination.k8s.io/v1", "leases");
pub const DEPLOYMENTS: Resource = Resource("apis/apps/v1", "deployments");

/// The time limit for what should happen at once; the machine may be busy with a build.
pub const SOON: Duration = Duration::from_secs(20);

/// Sends one raw request. Returns the JSON of the answer, or an error that names the request.
pub async fn request(client: &kube::Client, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = body.map(|value| value.to_string().into_bytes()).unwrap_or_default();
    let message = Request::builder()
        .method(method.clone())
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(bytes)
        .map_err(|error| format!("{method} {path}: {error}"))?;
    let answer = tokio::time::timeout(Duration::from_secs(40), client.request::<Value>(message)).await;
    match answer {
        Ok(answer) => answer.map_err(|error| format!("{method} {path}: {error}")),
        Err(_) => Err(format!("{method} {path}: no answer in 15 s")),
    }
}

/// Waits until `look` returns a value; panics with `what` after `within`.
pub async fn eventually<T, F, Fut>(what: impl Display, within: Duration, mut look: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let deadline = tokio::time::Instant::now() + within;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "did not see in {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A namespace with the objects of one scenario.
#[derive(Clone)]
pub struct Namespace {
    client: kube::Client,
    pub name: String,
}

impl Namespace {
    pub async fn create_new(client: kube::Client, name: &str) -> Self {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        request(&client, Method::POST, "/api/v1/namespaces", Some(&body)).await.unwrap();
        Self { client, name: name.to_owned() }
    }

    /// An existing namespace.
    pub fn existing(client: kube::Client, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    pub fn path(&self, resource: Resource, name: &str) -> String {
        format!("/{}/namespaces/{}/{}/{name}", resource.0, self.name, resource.1).trim_end_matches('/').to_owned()
    }

    pub async fn create(&self, resource: Resource, object: &Value) -> Value {
        request(&self.client, Method::POST, &self.path(resource, ""), Some(object)).await.unwrap()
    }

    /// Creates an object like [`Self::create`]; `None` if the server rejects it.
    pub async fn try_create(&self, resource: Resource, object: &Value) -> Option<Value> {
        request(&self.client, Method::POST, &self.path(resource, ""), Some(object)).await.ok()
    }

    /// The object, or `None` if it does not exist or the API server is down.
    pub async fn get(&self, resource: Resource, name: &str) -> Option<Value> {
        request(&self.client, Method::GET, &self.path(resource, name), None).await.ok()
    }

    /// All objects; none if the API server is down.
    pub async fn list(&self, resource: Resource) -> Vec<Value> {
        let list = request(&self.client, Method::GET, &self.path(resource, ""), None).await.unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn patch(&self, resource: Resource, name: &str, patch: &Value) -> Value {
        request(&self.client, Method::PATCH, &self.path(resource, name), Some(patch)).await.unwrap()
    }

    pub async fn patch_status(&self, resource: Resource, name: &str, status: &Value) -> Value {
        let path = format!("{}/status", self.path(resource, name));
        request(&self.client, Method::PATCH, &path, Some(&json!({"status": status}))).await.unwrap()
    }

    pub async fn delete(&self, resource: Resource, name: &str) {
        let options = json!({"propagationPolicy": "Background"});
        request(&self.client, Method::DELETE, &self.path(resource, name), Some(&options)).await.unwrap();
    }

    /// Creates a CronJob that last ran at `last`, as if the controller had been down since.
    pub async fn create_overdue(&self, object: &Value, last: DateTime<Utc>) {
        let created = self.create(CRON_JOBS, object).await;
        let name = created["metadata"]["name"].as_str().unwrap();
        self.patch_status(CRON_JOBS, name, &json!({"lastScheduleTime": rfc3339(last)})).await;
    }

    /// Waits for the Job of `cron_job` and `slot`.
    pub async fn job(&self, cron_job: &str, slot: DateTime<Utc>) -> Value {
        let name = job_name(cron_job, slot);
        eventually(format!("Job {}/{name}", self.name), SOON, || self.get(JOBS, &name)).await
    }

    pub async fn job_names(&self) -> Vec<String> {
        names(&self.list(JOBS).await)
    }

    /// Waits until the namespace's Jobs are exactly these.
    pub async fn jobs_are(&self, expected: &[String]) {
        let mut expected = expected.to_vec();
        expected.sort();
        let mut last = Vec::new();
        let deadline = tokio::time::Instant::now() + SOON;
        while tokio::time::Instant::now() < deadline {
            last = self.job_names().await;
            last.sort();
            if last == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("Jobs in {}: expected {expected:?}, saw {last:?}", self.name);
    }

    /// Waits until `judge` accepts the CronJob's status.
    pub async fn status(&self, cron_job: &str, what: &str, judge: impl Fn(&Value) -> bool) -> Value {
        eventually(format!("status of {}/{cron_job}: {what}", self.name), SOON, || async {
            let object = self.get(CRON_JOBS, cron_job).await?;
            judge(&object["status"]).then(|| object["status"].clone())
        })
        .await
    }

    /// Waits for an Event about the CronJob and returns its message.
    pub async fn event(&self, cron_job: &str, kind: &str, reason: &str) -> String {
        eventually(format!("Event {kind} {reason} about {}/{cron_job}", self.name), SOON, || async {
            self.list(EVENTS).await.into_iter().find_map(|event| {
                let about = &event["involvedObject"];
                let found = event["reason"] == reason
                    && event["type"] == kind
                    && about["kind"] == "CronJob"
                    && about["name"] == cron_job;
                found.then(|| event["message"].as_str().unwrap_or_default().to_owned())
            })
        })
        .await
    }

    /// Completes the Job, as the Job controller would.
    pub async fn complete_job(&self, name: &str) {
        self.finish_job(name, &["SuccessCriteriaMet", "Complete"], Utc::now()).await;
    }

    /// Sets these conditions of the Job to true, with the start time `started`.
    pub async fn finish_job(&self, name: &str, conditions: &[&str], started: DateTime<Utc>) {
        self.patch_status(JOBS, name, &finished(conditions, started)).await;
    }
}

/// The status of a Job that finishes now with these conditions.
pub fn finished(conditions: &[&str], started: DateTime<Utc>) -> Value {
    let now = rfc3339(Utc::now());
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}))
        .collect();
    let complete = conditions.iter().any(|condition| condition["type"] == "Complete");
    let mut status = json!({"startTime": rfc3339(started), "conditions": conditions});
    if complete {
        status["completionTime"] = json!(now);
    }
    status
}

pub fn names(objects: &[Value]) -> Vec<String> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A CronJob whose Jobs have one container; `spec` overrides the defaults.
pub fn cron_job(name: &str, schedule: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": schedule,
            "jobTemplate": {
                "metadata": {"labels": {"made-for": name}, "annotations": {"example.com/note": "kept"}},
                "spec": {"template": {"spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "example.com/none"}],
                }}},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

/// The name of the Job for a slot.
pub fn job_name(cron_job: &str, slot: DateTime<Utc>) -> String {
    format!("{cron_job}-{}", slot.timestamp() / 60)
}

/// The start of the minute `minutes` before the current one.
pub fn minutes_ago(minutes: i64) -> DateTime<Utc> {
    whole_minute(Utc::now()) - TimeDelta::minutes(minutes)
}

/// A schedule that fires every hour at the minute of `slot`.
pub fn hourly_at(slot: DateTime<Utc>) -> String {
    format!("{} * * * *", slot.minute())
}

/// Waits until the next minute boundary is at least ten seconds away, and returns it. This gives time to prepare without
/// another boundary in between.
pub async fn upcoming_minute() -> DateTime<Utc> {
    let next = whole_minute(Utc::now()) + TimeDelta::minutes(1);
    if next - Utc::now() >= TimeDelta::seconds(10) {
        return next;
    }
    sleep_until(next, TimeDelta::zero()).await;
    next + TimeDelta::minutes(1)
}

/// Sleeps until `offset` after `instant`.
pub async fn sleep_until(instant: DateTime<Utc>, offset: TimeDelta) {
    let wait = (instant + offset - Utc::now()).to_std().unwrap_or_default();
    SystemClock.sleep_until(tokio::time::Instant::now() + wait).await;
}

pub fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn whole_minute(time: DateTime<Utc>) -> DateTime<Utc> {
    let time = time.trunc_subsecs(0);
    time - TimeDelta::seconds(i64::from(time.second()))
}
