//! The simulated Job controller and the simulated node: execution of their decisions.
//!
//! Guarantees: a key is never processed twice at once. A Job is not synced until the caches show the last write for it, so no
//! Pod is created twice. A status write names the resourceVersion on which it was decided. Time comes from tokio and the clock,
//! randomness from the seed.
//!
//! `plan` decides for Jobs, `kubelet` for Pods. Matches the structure of upstream `pkg/controller/job`.

mod indexes;
pub mod plan;
mod pod_template;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::clock::SharedClock;
use http::Method;
use kube::Client;
use kube::api::PartialObjectMeta as Stored;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::kubelet::{self, Settings, Step};
use super::objects::{Job, JobStatus, Pod};
use super::requests::{JSON, MERGE_PATCH, Refusal, send};
use crate::api::{EventType, Object, ObjectName, compare_resource_versions};
use crate::cache::{ResourceEventHandler, Store};
use crate::events::EventRecorder;
use crate::workqueue::{self, WorkQueue};

/// The reporting component of Events about Jobs.
pub const COMPONENT: &str = "job-controller";

/// A workqueue key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Job(ObjectName),
    Pod(ObjectName),
}

/// The dependencies of a [`Simulation`]. The stores are filled by informers that have its handlers.
pub struct Parts {
    /// The API server.
    pub client: Client,
    /// The store of Jobs.
    pub jobs: Arc<Store<Job>>,
    /// The store of Pods, indexed by the UID of their Job.
    pub pods: Arc<Store<Pod>>,
    /// The recorder of Events about Jobs.
    pub recorder: Arc<dyn EventRecorder>,
    /// The wall clock.
    pub clock: SharedClock,
    /// How containers behave.
    pub settings: Settings,
}

/// Simulated Jobs and Pods.
pub struct Simulation {
    parts: Parts,
    queue: WorkQueue<Key>,
    /// The last write for each Job, until the caches show it.
    written: Mutex<HashMap<ObjectName, Written>>,
}

/// Resource versions; empty for none.
#[derive(Default)]
struct Written {
    job: String,
    pod: String,
}

impl Simulation {
    /// A simulation that is idle until [`Self::run`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(parts: Parts) -> Arc<Self> {
        let queue = WorkQueue::new(workqueue::Config::new("dev", Arc::clone(&parts.clock)));
        Arc::new(Self { parts, queue, written: Mutex::default() })
    }

    /// Runs `workers` workers until `cancel`; keys in progress are finished.
    pub async fn run(self: Arc<Self>, workers: usize, cancel: CancellationToken) {
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let simulation = Arc::clone(&self);
            tasks.spawn(async move { while simulation.process_next_work_item().await {} });
        }
        cancel.cancelled().await;
        self.queue.shut_down();
        while tasks.join_next().await.is_some() {}
    }

    async fn process_next_work_item(&self) -> bool {
        let Some(key) = self.queue.get().await else { return false };
        let done = match &key {
            Key::Job(name) => self.sync_job(name).await,
            Key::Pod(name) => self.sync_pod(name).await,
        };
        match done {
            Ok(()) => self.queue.forget(&key),
            Err(refusal) => {
                warn!(?key, error = %refusal, "cannot continue the simulation of an object; trying again");
                self.queue.add_rate_limited(key.clone());
            }
        }
        self.queue.done(&key);
        true
    }

    async fn sync_pod(&self, name: &ObjectName) -> Result<(), Refusal> {
        let Some(pod) = self.parts.pods.get(name) else { return Ok(()) };
        let path = object_path::<Pod>(name);
        let reply = match kubelet::step(&pod, &self.parts.settings, self.parts.clock.now()) {
            Step::Nothing => return Ok(()),
            Step::Wait(until) => {
                self.queue.add_at(Key::Pod(name.clone()), until);
                return Ok(());
            }
            Step::Patch(mut status) => {
                status["metadata"] = json!({ "resourceVersion": pod.identity.resource_version });
                self.send(Method::PATCH, &format!("{path}/status"), MERGE_PATCH, &status).await
            }
            Step::Remove => {
                let options = json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": pod.identity.uid } });
                self.send(Method::DELETE, &path, JSON, &options).await
            }
        };
        reply.or_else(overtaken)
    }

    /// Sends a request whose answer does not matter beyond success.
    async fn send(&self, method: Method, path: &str, content_type: &'static str, body: &Value) -> Result<(), Refusal> {
        send::<IgnoredAny>(&self.parts.client, method, path, content_type, body).await.map(drop)
    }

    async fn sync_job(&self, name: &ObjectName) -> Result<(), Refusal> {
        let Some(job) = self.parts.jobs.get(name) else {
            self.written.lock().remove(name);
            return Ok(());
        };
        // The watch event of the write requeues the key.
        if !self.has_caught_up(name) {
            return Ok(());
        }
        let pods = self.parts.pods.by_controller(&job.identity.uid);
        let plan = plan::reconcile(&job, &pods, self.parts.clock.now());
        if plan.delete_job {
            let options = json!({ "propagationPolicy": "Background", "preconditions": { "uid": job.identity.uid } });
            let path = object_path::<Job>(name);
            return self.send(Method::DELETE, &path, JSON, &options).await.or_else(overtaken);
        }
        for pod in &plan.delete_pods {
            self.send(Method::DELETE, &object_path::<Pod>(pod), JSON, &Value::Null).await.or_else(overtaken)?;
        }
        for index in plan.create_pods {
            self.create_pod(&job, index).await?;
        }
        if let Some(status) = &plan.status {
            self.write_status(&job, status).await?;
        }
        for event in plan.events {
            self.parts.recorder.event(&job.reference(), event.type_, event.reason, event.message);
        }
        if let Some(wake) = plan.wake {
            self.queue.add_at(Key::Job(name.clone()), wake);
        }
        Ok(())
    }

    async fn create_pod(&self, job: &Job, index: Option<u32>) -> Result<(), Refusal> {
        let name = &job.identity.name;
        let body = pod_template::pod_from_template(job, index);
        let path = Pod::RESOURCE.path(Some(&name.namespace));
        match send::<Stored>(&self.parts.client, Method::POST, &path, JSON, &body).await {
            Ok(Stored { metadata: pod, .. }) => {
                let message = format!("Created pod: {}", pod.name.unwrap_or_default());
                self.parts.recorder.event(&job.reference(), EventType::Normal, "SuccessfulCreate", message);
                self.written.lock().entry(name.clone()).or_default().pod = pod.resource_version.unwrap_or_default();
                Ok(())
            }
            // The namespace or the Job is being deleted; its Pods need no further action.
            Err(refusal) if refusal.message.contains("being terminated") => Ok(()),
            Err(refusal) => {
                let message = format!("Error creating: {refusal}");
                self.parts.recorder.event(&job.reference(), EventType::Warning, "FailedCreate", message);
                Err(refusal)
            }
        }
    }

    async fn write_status(&self, job: &Job, status: &JobStatus) -> Result<(), Refusal> {
        let name = &job.identity.name;
        // Absent fields are written as null, which removes them.
        let mut status = json!(status);
        status["uncountedTerminatedPods"] = json!({});
        let patch = json!({ "metadata": { "resourceVersion": job.identity.resource_version }, "status": status });
        let url = format!("{}/status", object_path::<Job>(name));
        match send::<Stored>(&self.parts.client, Method::PATCH, &url, MERGE_PATCH, &patch).await {
            Ok(Stored { metadata: job, .. }) => {
                self.written.lock().entry(name.clone()).or_default().job = job.resource_version.unwrap_or_default();
                Ok(())
            }
            Err(refusal) => overtaken(refusal),
        }
    }

    /// Whether the caches show every write for the Job.
    fn has_caught_up(&self, name: &ObjectName) -> bool {
        let seen = |written: &str, last: Option<String>| {
            let shows = |last: String| compare_resource_versions(&last, written).is_none_or(Ordering::is_ge);
            written.is_empty() || last.is_some_and(shows)
        };
        let written = self.written.lock();
        let Some(written) = written.get(name) else { return true };
        seen(&written.job, self.parts.jobs.last_resource_version(&name.namespace))
            && seen(&written.pod, self.parts.pods.last_resource_version(&name.namespace))
    }
}

/// Another client changed the object first; the watch event of that change requeues the key.
fn overtaken(refusal: Refusal) -> Result<(), Refusal> {
    if matches!(refusal.code, 404 | 409) { Ok(()) } else { Err(refusal) }
}

fn object_path<T: Object>(name: &ObjectName) -> String {
    format!("{}/{}", T::RESOURCE.path(Some(&name.namespace)), name.name)
}

/// Handles Job events for a simulation.
pub struct JobHandler(pub Arc<Simulation>);

/// Handles Pod events for a simulation.
pub struct PodHandler(pub Arc<Simulation>);

impl ResourceEventHandler<Job> for JobHandler {
    fn on_add(&self, job: &Arc<Job>, _is_in_initial_list: bool) {
        self.0.queue.add(Key::Job(job.identity.name.clone()));
    }

    fn on_update(&self, _old: &Arc<Job>, new: &Arc<Job>) {
        self.0.queue.add(Key::Job(new.identity.name.clone()));
    }

    fn on_delete(&self, last: &Arc<Job>, _final_state_unknown: bool) {
        self.0.queue.add(Key::Job(last.identity.name.clone()));
    }
}

impl PodHandler {
    fn enqueue(&self, pod: &Pod) {
        self.0.queue.add(Key::Pod(pod.identity.name.clone()));
        if let Some(owner) = pod.identity.owner() {
            self.0.queue.add(Key::Job(owner));
        }
    }
}

impl ResourceEventHandler<Pod> for PodHandler {
    fn on_add(&self, pod: &Arc<Pod>, _is_in_initial_list: bool) {
        self.enqueue(pod);
    }

    fn on_update(&self, _old: &Arc<Pod>, new: &Arc<Pod>) {
        self.enqueue(new);
    }

    fn on_delete(&self, last: &Arc<Pod>, _final_state_unknown: bool) {
        self.enqueue(last);
    }
}
