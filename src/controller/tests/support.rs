//! A real controller on the real embedded API server, with a [`Wire`] in between.
//!
//! Guarantees: no sockets, no threads, no clock except tokio's paused one, no randomness. The test's own requests
//! bypass the wire. The test decides how Jobs end ([`Ends`]); there are no Pods.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{Clock, SharedClock, TestClock};
use apiserver::{ApiServer, kinds};
use axum::body::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use http::{Method, Request};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use prometheus::Registry;
use schedule::Zone;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::objects::{merged, time};
use super::wire::Wire;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ControllerKind, Manage, NameConflict, Namespace, ObjectName, Publish, crd};
use crate::cache::{Informer, ResourceEventHandler, Store};
use crate::client;
use crate::controller::control::RealControl;
use crate::controller::cron_job_metrics::CronJobMetrics;
use crate::controller::namespaces::Namespaces;
use crate::controller::{Controller, Parts};
use crate::events;
use crate::leader_election::{Gate, Leadership};
use crate::metrics::ControllerMetrics;
use crate::workqueue::{self, WorkQueue};

/// The namespace of the tests' objects.
pub const NAMESPACE: &str = "default";
/// The path of its CronJobs.
pub const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
/// The number of CronJobs with series of their own.
pub const MAX_SERIES: usize = 10;
/// The path of its Jobs.
pub const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// How a Job ends, and how long after its creation; `None` if it runs for ever.
pub type Ends = fn(&Job) -> Option<(Duration, Ending)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Complete,
    Failed,
}

/// A controller that is not running yet, its running informers, and the API server.
pub struct World {
    controller_kind: ControllerKind,
    manage: Manage,
    pub server: ApiServer,
    pub wire: Wire,
    pub clock: Arc<TestClock>,
    pub controller: Arc<Controller<RealControl>>,
    /// Whether it may write.
    pub leadership: Leadership,
    pub cron_jobs: Arc<Store<CronJob>>,
    pub jobs: Arc<Store<Job>>,
    /// The metrics of each CronJob.
    pub registry: Registry,
    seen: Arc<Mutex<Vec<Arc<Job>>>>,
    _ends: DropGuard,
}

impl World {
    /// An empty world at `now`, in which Jobs run for ever.
    pub async fn new(now: &str) -> Self {
        Self::with_jobs_that_end(now, |_| None).await
    }

    /// An empty world at `now`.
    pub async fn with_jobs_that_end(now: &str, ends: Ends) -> Self {
        Self::of(ControllerKind::CronJob, now, ends).await
    }

    /// The same for a controller of `controller_kind`; the kinds of all controller kinds are served.
    pub async fn of(controller_kind: ControllerKind, now: &str, ends: Ends) -> Self {
        Self::managing(Manage::All, controller_kind, now, ends).await
    }

    /// The same for a controller that may manage only some objects.
    pub async fn managing(manage: Manage, controller_kind: ControllerKind, now: &str, ends: Ends) -> Self {
        let clock = TestClock::new(time(now));
        let shared: SharedClock = clock.clone();
        let mut resources = kinds::builtin();
        resources.extend(crd::all().iter().map(|definition| kinds::custom(definition).unwrap()));
        // Tests look at the Events of hours and days.
        let config = apiserver::Config { event_ttl: None, ..apiserver::Config::new(shared, resources) };
        Self::on(ApiServer::new(config), clock, (controller_kind, manage, Publish::default()), ends).await
    }

    /// The same world with a controller that publishes times in annotations.
    pub async fn publishing(self, ends: Ends) -> Self {
        let publish = Publish { next_run: true, last_failure: true };
        Self::on(self.server, self.clock, (self.controller_kind, self.manage, publish), ends).await
    }

    /// The next leader, after this controller died without a clean shutdown.
    pub async fn successor(self) -> Self {
        Self::on(
            self.server.clone(),
            Arc::clone(&self.clock),
            (self.controller_kind, self.manage, Publish::default()),
            |_| None,
        )
        .await
    }

    async fn on(server: ApiServer, clock: Arc<TestClock>, what: (ControllerKind, Manage, Publish), ends: Ends) -> Self {
        let (controller_kind, manage, publish) = what;
        let shared: SharedClock = clock.clone();
        let (wire, stop) = (Wire::new(), CancellationToken::new());
        let client = client::on_service(wire.around(server.into_service()));
        let mut cron_job_informer = Informer::<CronJob>::new(client.clone(), &[], 1)
            .of_resource(controller_kind.parent)
            .selecting(move |cron_job| manage.takes(cron_job));
        let mut job_informer = Informer::<Job>::new(client.clone(), &[], 2).of_resource(controller_kind.child);
        let mut name_conflict_informer = Informer::<NameConflict>::new(client.clone(), &[], 4);
        let mut namespace_informer = Informer::<Namespace>::new(client.clone(), &[], 5);
        let namespaces = Namespaces::watched(namespace_informer.store());
        let (cron_jobs, jobs) = (cron_job_informer.store(), job_informer.store());
        let config = events::Config { seed: Some(3), max_queued: 10_000, max_pending: 10_000, ..Default::default() };
        let (recorder, sink) = events::Recorder::new(config, Arc::clone(&shared), |_| {});
        let registry = Registry::new();
        let all = CronJobMetrics::register(&registry, NonZeroUsize::new(MAX_SERIES).unwrap()).unwrap();
        let stats_set = all.join(
            controller_kind,
            Arc::clone(&cron_jobs),
            Some(Arc::clone(&namespaces)),
            Arc::clone(&shared),
            Zone::UTC,
        );
        let (gate, leadership) = (Arc::new(Gate::default()), Leadership::unconditional());
        gate.open(leadership.clone());
        let controller = Controller::new(Parts {
            controller_kind,
            manage,
            queue: WorkQueue::new(
                workqueue::Config::new(controller_kind.name, Arc::clone(&shared)).grouped_by(ObjectName::namespace_of),
            ),
            cron_jobs: Arc::clone(&cron_jobs),
            jobs: Arc::clone(&jobs),
            name_conflicts: Some(name_conflict_informer.store()),
            namespaces: Some(Arc::clone(&namespaces)),
            control: RealControl::new(controller_kind, client.clone(), gate).managing(manage),
            recorder: Arc::new(recorder),
            clock: shared,
            metrics: ControllerMetrics::register(&Registry::new()).unwrap(),
            stats_set: Some(stats_set),
            local_zone: Zone::UTC,
            publish,
        });
        let seen = Arc::default();
        let finisher =
            Finisher { controller_kind, server: server.clone(), clock: clock.clone(), ends, seen: Arc::clone(&seen) };
        cron_job_informer.add_event_handler(Arc::clone(&controller) as _);
        job_informer.add_event_handler(Arc::clone(&controller) as _);
        job_informer.add_event_handler(Arc::new(finisher));
        name_conflict_informer.add_event_handler(Arc::clone(&controller) as _);
        if controller_kind.fears_name_conflicts {
            tokio::spawn(name_conflict_informer.run(stop.clone()));
        }
        tokio::spawn(cron_job_informer.run(stop.clone()));
        tokio::spawn(job_informer.run(stop.clone()));
        namespace_informer.add_event_handler(Arc::clone(&namespaces) as _);
        namespace_informer.add_event_handler(Arc::clone(&controller) as _);
        namespace_informer.set_observer(Arc::clone(&namespaces) as _);
        tokio::spawn(namespace_informer.run(stop.clone()));
        let queue = controller.queue().clone();
        let sink = sink.yielding_to(move || queue.is_busy());
        tokio::spawn(sink.run(
            events::KubeSink::new(client, Arc::new(Gate::unconditional()), Duration::from_secs(10)),
            stop.clone(),
        ));
        cron_jobs.wait_for_cache_sync().await;
        jobs.wait_for_cache_sync().await;
        namespaces.synced().await;
        let ends = stop.drop_guard();
        Self {
            controller_kind,
            manage,
            server,
            wire,
            clock,
            controller,
            leadership,
            cron_jobs,
            jobs,
            registry,
            seen,
            _ends: ends,
        }
    }

    /// Runs the controller until the returned token is cancelled.
    pub fn work(&self, workers: usize) -> CancellationToken {
        self.work_to_end(workers).0
    }

    /// The same, with a handle that completes when the controller has stopped.
    pub fn work_to_end(&self, workers: usize) -> (CancellationToken, JoinHandle<()>) {
        let (stop, controller) = (CancellationToken::new(), Arc::clone(&self.controller));
        let cancel = stop.clone();
        let working = tokio::spawn(async move { controller.run(workers, cancel).await });
        (stop, working)
    }

    /// Advances the time and runs everything due in it.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Advances the time until the clock shows `at`.
    pub async fn pass_until(&self, at: &str) {
        self.pass((time(at) - self.clock.now()).to_std().unwrap()).await;
    }

    /// Waits until the informers show the last write.
    pub async fn catch_up(&self) {
        self.pass(Duration::from_millis(1)).await;
    }

    /// Compacts the watch history while the watches are held, so that the informers miss `meanwhile`. Returns after the
    /// relist.
    pub async fn gap(&self, meanwhile: impl AsyncFnOnce()) {
        self.wire.hold_watches(true);
        meanwhile().await;
        self.server.compact();
        self.wire.cut_watches();
        self.wire.hold_watches(false);
        self.pass(Duration::from_secs(5)).await;
    }

    /// Sends a request that bypasses the wire.
    pub async fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        request(&self.server, method, path, body).await
    }

    /// Creates, changes (by merge patch) or deletes an object, and waits for the informers. Panics if the request
    /// fails.
    pub async fn write(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.request(method, path, body).await.unwrap();
        self.catch_up().await;
        answer
    }

    /// Creates a CronJob, due every minute unless `spec` says otherwise, and waits for the informers.
    pub async fn create_cron_job(&self, name: &str, spec: Value) -> Value {
        let mut object = cron_job(name, spec);
        object["apiVersion"] = self.controller_kind.parent.api_version().into();
        object["kind"] = self.controller_kind.parent.kind.into();
        if self.controller_kind == ControllerKind::ApiExample {
            object["spec"]["jobTemplate"] = object["spec"]["jobTemplate"]["spec"]["template"].take();
        }
        self.write("POST", &self.controller_kind.parent.path(Some(NAMESPACE)), &object).await
    }

    /// A CronJob as stored by the API server.
    pub async fn get(&self, name: &str) -> Value {
        let path = format!("{}/{name}", self.controller_kind.parent.path(Some(NAMESPACE)));
        self.request("GET", &path, &Value::Null).await.unwrap()
    }

    /// The names of the children stored by the API server.
    pub async fn children(&self) -> Vec<String> {
        let children = self.list(&self.controller_kind.child.path(Some(NAMESPACE))).await;
        children.iter().map(|child| child["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn list(&self, path: &str) -> Vec<Value> {
        self.request("GET", path, &Value::Null).await.unwrap()["items"].as_array().unwrap().clone()
    }

    /// Writes an object without validation, as an older API server may have left it, and waits until the informers list
    /// it.
    pub async fn smuggle(&self, collection: &str, name: &str, patch: Value) {
        let mut state = self.server.snapshot();
        let revision = state["revision"].as_u64().unwrap() + 1;
        let objects = state["collections"][collection].as_array_mut().unwrap();
        let object = objects.iter_mut().find(|object| object["metadata"]["name"] == name).unwrap();
        let patch = merged(patch, json!({ "metadata": { "resourceVersion": revision.to_string() } }));
        *object = merged(object.take(), patch);
        state["revision"] = revision.into();
        self.server.restore(&state).unwrap();
        self.pass(Duration::from_secs(5)).await;
    }

    /// Every Job ever created, in the order in which the informer showed them.
    pub fn seen(&self) -> Vec<Arc<Job>> {
        self.seen.lock().clone()
    }

    /// The names of [`Self::seen`].
    pub fn seen_names(&self) -> Vec<String> {
        self.seen().iter().map(|job| job.name.name.to_string()).collect()
    }

    /// Reason and object of the stored Events by time, each repeated by its count.
    pub async fn events(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut events = self.list("/api/v1/events").await;
        events.sort_by_key(|event| text(&event["firstTimestamp"]));
        let pairs = events.iter().flat_map(|event| {
            let pair = (text(&event["reason"]), text(&event["involvedObject"]["name"]));
            std::iter::repeat_n(pair, usize::try_from(event["count"].as_u64().unwrap()).unwrap())
        });
        pairs.collect()
    }

    /// The reasons of [`Self::events`].
    pub async fn reasons(&self) -> Vec<String> {
        self.events().await.into_iter().map(|(reason, _)| reason).collect()
    }

    /// Removes and returns the keys in the queue.
    pub async fn ready(&self) -> Vec<String> {
        let queue = self.controller.queue();
        let mut keys = Vec::new();
        while !queue.is_empty() {
            let key = queue.get().await.unwrap();
            keys.push(key.name.to_string());
            queue.done(&key);
        }
        keys.sort();
        keys
    }
}

/// The key of a CronJob.
pub fn key(name: &str) -> ObjectName {
    ObjectName::new(NAMESPACE, name)
}

/// A CronJob to create.
pub fn cron_job(name: &str, spec: Value) -> Value {
    let spec = merged(json!({ "schedule": "* * * * *", "jobTemplate": { "spec": job_spec() } }), spec);
    json!({ "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": name }, "spec": spec })
}

/// A Job to create.
pub fn job(name: &str, owners: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "ownerReferences": owners },
        "spec": job_spec(),
    })
}

fn job_spec() -> Value {
    let containers = json!([{ "name": "c", "image": "busybox" }]);
    json!({ "template": { "spec": { "restartPolicy": "Never", "containers": containers } } })
}

pub async fn request(server: &ApiServer, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let method: Method = method.parse().unwrap();
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let answer = server.handle(request.body(bytes).unwrap()).await;
    let is_success = answer.status().is_success();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let answer = serde_json::from_slice(&bytes).unwrap();
    if is_success { Ok(answer) } else { Err(answer) }
}

/// Records every new Job, and ends it at its time.
struct Finisher {
    controller_kind: ControllerKind,
    server: ApiServer,
    clock: Arc<TestClock>,
    ends: Ends,
    seen: Arc<Mutex<Vec<Arc<Job>>>>,
}

impl ResourceEventHandler<Job> for Finisher {
    fn on_add(&self, job: &Arc<Job>, _is_in_initial_list: bool) {
        self.seen.lock().push(Arc::clone(job));
        let Some((after, ending)) = (self.ends)(job).filter(|_| job.finished.is_none()) else { return };
        let (server, clock, job) = (self.server.clone(), Arc::clone(&self.clock), Arc::clone(job));
        let controller_kind = self.controller_kind;
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let path = format!("{}/{}/status", controller_kind.child.path(Some(&job.name.namespace)), job.name.name);
            let status = match controller_kind {
                ControllerKind::ApiExample => final_phase(ending, job.creation_timestamp),
                _ => final_status(ending, job.creation_timestamp, clock.now()),
            };
            let body = json!({ "metadata": { "uid": job.uid }, "status": status });
            // The Job may be deleted by now, or replaced by another of the same name.
            let _ = request(&server, "PATCH", &path, &body).await;
        });
    }

    fn on_update(&self, _: &Arc<Job>, _: &Arc<Job>) {}

    fn on_delete(&self, _: &Arc<Job>, _: bool) {}
}

pub fn final_status(ending: Ending, started: DateTime<Utc>, ended: DateTime<Utc>) -> Value {
    let text = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": text(ended) });
    match ending {
        Ending::Complete => json!({
            "startTime": text(started), "completionTime": text(ended), "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        }),
        Ending::Failed => json!({
            "startTime": text(started), "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")],
        }),
    }
}

fn final_phase(ending: Ending, started: DateTime<Utc>) -> Value {
    let phase = if ending == Ending::Complete { "Succeeded" } else { "Failed" };
    json!({ "startTime": started.to_rfc3339_opts(SecondsFormat::Secs, true), "phase": phase })
}
