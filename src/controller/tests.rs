#![allow(clippy::unwrap_used, clippy::type_complexity)]

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use parking_lot::Mutex;
use prometheus::Registry;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::control::{CronJobControl, JobControl};
use super::plan::StatusWrite;
use super::{Controller, CronJobHandler, JobHandler, Parts};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ApiError, EventType, Interner, Object, ObjectName, Uid};
use crate::cache::{MalformedObject, ResourceEventHandler, Store};
use crate::clock::{Clock, TestClock};
use crate::events::{EventRecorder, ObjectReference};
use crate::metrics::ControllerMetrics;
use crate::schedule::Zone;
use crate::workqueue::{self, WorkQueue};

/// An API server of few words, whose watch has no lag.
#[derive(Default)]
struct World {
    state: Mutex<State>,
    fixture: OnceLock<Arc<Fixture>>,
}

#[derive(Default)]
struct State {
    version: u64,
    /// Slot name and when it was created.
    created: Vec<(String, DateTime<Utc>)>,
    status_writes: usize,
    deleted: Vec<String>,
    poisoned: HashSet<String>,
    down_until: Option<DateTime<Utc>>,
    refuse_status: bool,
    latency: Duration,
}

struct Fixture {
    controller: Arc<Controller<Arc<World>>>,
    cron_jobs: Arc<Store<CronJob>>,
    jobs: Arc<Store<Job>>,
    clock: Arc<TestClock>,
    events: Mutex<Vec<(String, &'static str)>>,
    world: Arc<World>,
}

/// The fixture's ear.
struct Recorder(Arc<World>);

impl EventRecorder for Recorder {
    fn event(&self, regarding: &ObjectReference, _: EventType, reason: &'static str, _: String) {
        let fixture = self.0.fixture.get().unwrap();
        fixture.events.lock().push((regarding.name.to_string(), reason));
    }
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn fixture(now: &str) -> Arc<Fixture> {
    let world = Arc::new(World::default());
    let clock = TestClock::new(time(now));
    let (cron_jobs, jobs) = (Arc::new(Store::new(&[])), Arc::new(Store::new(&[])));
    let controller = Controller::new(Parts {
        queue: WorkQueue::new(workqueue::Config::new("cronjob", clock.clone())),
        cron_jobs: Arc::clone(&cron_jobs),
        jobs: Arc::clone(&jobs),
        control: Arc::clone(&world),
        recorder: Arc::new(Recorder(Arc::clone(&world))),
        clock: clock.clone(),
        metrics: ControllerMetrics::register(&Registry::new()).unwrap(),
        local_zone: Zone::UTC,
        schedule_delta: TimeDelta::zero(),
    });
    let fixture =
        Arc::new(Fixture { controller, cron_jobs, jobs, clock, events: Mutex::default(), world: Arc::clone(&world) });
    assert!(world.fixture.set(Arc::clone(&fixture)).is_ok());
    fixture
}

fn cron_job(name: &str, version: u64, patch: &Value) -> CronJob {
    let mut spec = json!({ "schedule": "* * * * *", "jobTemplate": { "spec": {} } });
    for (key, value) in patch.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let object = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-of-{name}"), "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-03-02T09:59:30Z",
        },
        "spec": spec,
    });
    CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
}

fn job(name: &str, version: u64, owner: Option<(&str, &str)>) -> Job {
    let owners = owner.map(|(name, uid)| {
        json!([{ "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": true }])
    });
    let object = json!({ "metadata": {
        "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(), "ownerReferences": owners,
    } });
    Job::decode(&object.to_string(), &Interner::default()).unwrap()
}

impl Fixture {
    fn apply(&self, cron_job: CronJob) {
        let handler = CronJobHandler(Arc::clone(&self.controller));
        let old = self.cron_jobs.get(&cron_job.name);
        let name = cron_job.name.clone();
        self.cron_jobs.upsert(cron_job);
        let new = self.cron_jobs.get(&name).unwrap();
        match old {
            Some(old) => handler.on_update(&old, &new),
            None => handler.on_add(&new, false),
        }
    }

    fn work(self: &Arc<Self>, workers: usize) -> CancellationToken {
        let (stop, fixture) = (CancellationToken::new(), Arc::clone(self));
        let cancel = stop.clone();
        tokio::spawn(async move { fixture.controller.run(workers, cancel).await });
        stop
    }

    fn created(&self) -> Vec<(String, DateTime<Utc>)> {
        self.world.state.lock().created.clone()
    }

    fn reasons(&self) -> Vec<&'static str> {
        self.events.lock().iter().map(|(_, reason)| *reason).collect()
    }

    /// What is in the queue now; takes it out.
    async fn ready(&self) -> Vec<String> {
        let queue = self.controller.queue();
        let mut keys = Vec::new();
        while !queue.is_empty() {
            let key = queue.get().await.unwrap();
            keys.push(key.name.to_string());
            queue.done(&key);
        }
        keys
    }
}

impl World {
    /// The way to the server, there and back.
    async fn travel(&self, operation: &'static str, name: &ObjectName) -> Result<(), ApiError> {
        let latency = self.state.lock().latency;
        tokio::time::sleep(latency).await;
        let now = self.fixture.get().unwrap().clock.now();
        let state = self.state.lock();
        assert!(!state.poisoned.contains(&*name.name), "poisoned");
        if state.down_until.is_some_and(|until| now < until) {
            return Err(ApiError::transport(operation, name.clone(), "connection refused"));
        }
        Ok(())
    }

    fn next_version(&self) -> u64 {
        let mut state = self.state.lock();
        state.version += 1;
        1000 + state.version
    }

    fn missing<T>(name: &ObjectName) -> Result<T, ApiError> {
        Err(ApiError { code: 404, ..ApiError::transport("get", name.clone(), "not found") })
    }
}

impl JobControl for Arc<World> {
    async fn get_job(&self, name: &ObjectName) -> Result<Arc<Job>, ApiError> {
        self.travel("get Job", name).await?;
        self.fixture.get().unwrap().jobs.get(name).map_or_else(|| World::missing(name), Ok)
    }

    async fn create_job(&self, name: &ObjectName, body: Vec<u8>) -> Result<Arc<Job>, ApiError> {
        self.travel("create Job", name).await?;
        let fixture = self.fixture.get().unwrap();
        if fixture.jobs.get(name).is_some() {
            let error = ApiError::transport("create Job", name.clone(), "already exists");
            return Err(ApiError { code: 409, reason: "AlreadyExists".to_owned(), ..error });
        }
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        let now = fixture.clock.now();
        body["metadata"]["uid"] = Value::from(&*name.name);
        body["metadata"]["resourceVersion"] = Value::from(self.next_version().to_string());
        body["metadata"]["creationTimestamp"] = Value::from(now.to_rfc3339_opts(SecondsFormat::Secs, true));
        self.state.lock().created.push((name.name.to_string(), now));
        fixture.jobs.upsert(Job::decode(&body.to_string(), &Interner::default()).unwrap());
        let job = fixture.jobs.get(name).unwrap();
        JobHandler(Arc::clone(&fixture.controller)).on_add(&job, false);
        Ok(job)
    }

    async fn delete_job(&self, name: &ObjectName, _: &Uid) -> Result<(), ApiError> {
        self.travel("delete Job", name).await?;
        let fixture = self.fixture.get().unwrap();
        let Some(job) = fixture.jobs.get(name) else { return World::missing(name) };
        fixture.jobs.delete(name, None);
        self.state.lock().deleted.push(name.name.to_string());
        JobHandler(Arc::clone(&fixture.controller)).on_delete(&job, false);
        Ok(())
    }
}

impl CronJobControl for Arc<World> {
    async fn get_cron_job(&self, name: &ObjectName) -> Result<Arc<CronJob>, ApiError> {
        self.travel("get CronJob", name).await?;
        self.fixture.get().unwrap().cron_jobs.get(name).map_or_else(|| World::missing(name), Ok)
    }

    async fn update_status(&self, name: &ObjectName, write: &StatusWrite) -> Result<Arc<CronJob>, ApiError> {
        self.travel("update status of CronJob", name).await?;
        let fixture = self.fixture.get().unwrap();
        let Some(current) = fixture.cron_jobs.get(name) else { return World::missing(name) };
        if *current.resource_version != *write.resource_version || self.state.lock().refuse_status {
            let error = ApiError::transport("update status of CronJob", name.clone(), "modified");
            return Err(ApiError { code: 409, reason: "Conflict".to_owned(), ..error });
        }
        let mut written = CronJob::clone(&current);
        written.status = write.status.clone();
        written.resource_version = self.next_version().to_string().into();
        self.state.lock().status_writes += 1;
        fixture.apply(written);
        Ok(fixture.cron_jobs.get(name).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_minutely_cron_job_fires_at_each_minute_and_settles() {
    let fixture = fixture("2026-03-02T10:00:30Z");
    fixture.apply(cron_job("hello", 1, &json!({ "successfulJobsHistoryLimit": 3 })));
    let stop = fixture.work(2);
    tokio::time::sleep(Duration::from_secs(600)).await;
    stop.cancel();

    let created = fixture.created();
    // The slot of 10:00 was due when the CronJob was first seen; then one each minute, on the dot.
    assert_eq!(created.len(), 11);
    for (at, (name, created)) in created.iter().enumerate().skip(1) {
        let slot = time("2026-03-02T10:00:00Z") + TimeDelta::minutes(i64::try_from(at).unwrap());
        assert_eq!(*name, format!("hello-{}", slot.timestamp() / 60));
        assert!(*created >= slot && *created - slot < TimeDelta::milliseconds(10), "{name} at {created}");
    }
    let status = fixture.cron_jobs.get(&ObjectName::new("ns", "hello")).unwrap().status.clone();
    assert_eq!((status.active.len(), status.last_schedule_time), (11, Some(time("2026-03-02T10:10:00Z"))));
    assert_eq!(fixture.world.state.lock().status_writes, 11, "one status write for each fire");
    assert_eq!(fixture.reasons(), ["SuccessfulCreate"; 11]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_at_the_minute_is_made_good_within_five_seconds_of_its_end() {
    let fixture = fixture("2026-03-02T10:00:00Z");
    for at in 0..2000 {
        fixture.apply(cron_job(&format!("c{at}"), 1, &json!({ "schedule": "1 * * * *" })));
    }
    {
        let mut state = fixture.world.state.lock();
        state.down_until = Some(time("2026-03-02T10:01:10Z"));
        state.latency = Duration::from_millis(20);
    }
    let stop = fixture.work(64);
    tokio::time::sleep(Duration::from_secs(90)).await;
    stop.cancel();
    let created = fixture.created();
    assert_eq!(created.len(), 2000);
    let last = created.iter().map(|(_, at)| *at).max().unwrap();
    assert!(last < time("2026-03-02T10:01:15Z"), "the last was created at {last}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_one_key_harms_no_other() {
    let fixture = fixture("2026-03-02T10:00:30Z");
    fixture.world.state.lock().poisoned.insert("poison-29540760".to_owned());
    fixture.apply(cron_job("poison", 1, &json!({})));
    fixture.apply(cron_job("healthy", 1, &json!({})));
    let stop = fixture.work(1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(fixture.created().len(), 1);
    let panics = fixture.controller.parts.metrics.sync_panics_total.get();
    assert!((2..20).contains(&panics), "tried again with backoff: {panics}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    stop.cancel();
    let names: Vec<_> = fixture.created().into_iter().map(|(name, _)| name).collect();
    assert!(
        names.contains(&"healthy-29540761".to_owned()) && names.contains(&"poison-29540761".to_owned()),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_ends_well_is_forgotten() {
    let fixture = fixture("2026-03-02T10:00:30Z");
    let key = ObjectName::new("ns", "hello");
    fixture.apply(cron_job("hello", 1, &json!({})));
    fixture.world.state.lock().refuse_status = true;
    for _fire_then_settle in 0..2 {
        assert!(fixture.controller.process_next_work_item(&CancellationToken::new()).await);
    }
    assert_eq!(fixture.controller.queue().num_requeues(&key), 1);
    fixture.world.state.lock().refuse_status = false;
    assert!(fixture.controller.process_next_work_item(&CancellationToken::new()).await);
    assert_eq!(fixture.controller.queue().num_requeues(&key), 0);
    assert_eq!(fixture.created().len(), 1, "the Job of the first try is adopted");
    assert!(fixture.controller.queue().scheduled_for(&key).is_some(), "the next slot has a timer");
}

#[tokio::test(start_paused = true)]
async fn what_wakes_a_cron_job() {
    let fixture = fixture("2026-03-02T10:00:30Z");
    fixture.apply(cron_job("a", 1, &json!({})));
    fixture.apply(cron_job("b", 1, &json!({})));
    assert_eq!(fixture.ready().await, ["a", "b"]);
    let handler = JobHandler(Arc::clone(&fixture.controller));
    let of_a = Arc::new(job("j", 1, Some(("a", "uid-of-a"))));
    let of_a_later = Arc::new(job("j", 2, Some(("a", "uid-of-a"))));
    let of_b = Arc::new(job("j", 3, Some(("b", "uid-of-b"))));
    let of_another_a = Arc::new(job("j", 1, Some(("a", "uid-of-a-predecessor"))));
    let orphan = Arc::new(job("j", 4, None));
    let table: [(&str, &dyn Fn(), &[&str]); 10] = [
        ("a Job that appears wakes its owner", &|| handler.on_add(&of_a, false), &["a"]),
        ("a Job of a deleted namesake wakes nobody", &|| handler.on_add(&of_another_a, true), &[]),
        ("a Job without an owner wakes nobody", &|| handler.on_add(&orphan, false), &[]),
        ("a resync wakes nobody", &|| handler.on_update(&of_a, &of_a), &[]),
        ("a change wakes the owner", &|| handler.on_update(&of_a, &of_a_later), &["a"]),
        ("a change of owner wakes both", &|| handler.on_update(&of_a, &of_b), &["a", "b"]),
        ("a Job that is orphaned wakes its old owner", &|| handler.on_update(&of_b, &orphan), &["b"]),
        ("a Job that is adopted wakes its new owner", &|| handler.on_update(&orphan, &of_a), &["a"]),
        ("a Job that goes wakes its owner", &|| handler.on_delete(&of_a, false), &["a"]),
        ("so does a tombstone", &|| handler.on_delete(&of_b, true), &["b"]),
    ];
    for (sentence, act, woken) in table {
        act();
        assert_eq!(fixture.ready().await, woken, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_schedule_is_waited_for_and_any_other_change_is_synced_now() {
    let table = [
        ("a later slot", json!({ "schedule": "30 10 * * *" }), false, Some("2026-03-02T10:30:00Z"), None),
        (
            "another zone",
            json!({ "schedule": "0 * * * *", "timeZone": "Asia/Kathmandu" }),
            false,
            Some("2026-03-02T10:15:00Z"),
            None,
        ),
        ("suspended", json!({ "schedule": "0 * * * *", "suspend": true }), true, None, None),
        ("nonsense", json!({ "schedule": "bad" }), false, None, Some("UnParseableCronJobSchedule")),
        ("a day that never comes", json!({ "schedule": "59 23 31 2 *" }), true, None, None),
    ];
    for (sentence, patch, now, timer, event) in table {
        let fixture = fixture("2026-03-02T10:05:30Z");
        fixture.apply(cron_job("a", 1, &json!({ "schedule": "0 * * * *" })));
        fixture.ready().await;
        fixture.apply(cron_job("a", 2, &patch));
        let scheduled = fixture.controller.queue().scheduled_for(&ObjectName::new("ns", "a"));
        assert_eq!(scheduled.and_then(|timers| timers.at), timer.map(time), "{sentence}");
        assert_eq!(fixture.ready().await.len(), usize::from(now), "{sentence}");
        assert_eq!(fixture.reasons(), event.into_iter().collect::<Vec<_>>(), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_object_is_counted_and_its_owner_told() {
    let fixture = fixture("2026-03-02T10:00:30Z");
    let handler = CronJobHandler(Arc::clone(&fixture.controller));
    handler.on_malformed(&MalformedObject { name: "bad".to_owned(), ..MalformedObject::default() });
    assert_eq!(*fixture.events.lock(), [("bad".to_owned(), "MalformedObject")]);
    let counted = fixture.controller.parts.metrics.malformed_objects_total.with_label_values(&["CronJob"]).get();
    assert_eq!(counted, 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_gap_in_the_watch_a_cron_job_is_read_once_before_it_fires() {
    let fixture = fixture("2026-03-02T10:00:30Z");
    let key = ObjectName::new("ns", "hello");
    let confirmed = |fixture: &Fixture| fixture.controller.confirmed.get(&key).map(|epoch| *epoch);
    fixture.apply(cron_job("hello", 1, &json!({ "suspend": true })));
    CronJobHandler(Arc::clone(&fixture.controller)).on_relisted();
    assert!(fixture.controller.process_next_work_item(&CancellationToken::new()).await);
    assert_eq!(confirmed(&fixture), None, "nothing was due, so nothing was read");
    fixture.apply(cron_job("hello", 2, &json!({})));
    assert!(fixture.controller.process_next_work_item(&CancellationToken::new()).await);
    assert_eq!((fixture.created().len(), confirmed(&fixture)), (1, Some(1)));
    fixture.controller.forget(&key);
    assert!(fixture.controller.confirmed.is_empty());
}
