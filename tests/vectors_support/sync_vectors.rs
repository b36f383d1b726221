//! `sync.jsonl`: cached and live objects, faults by verb, and the effects of upstream's `sync`.
//!
//! Compared are the set of creates with their whole body, the set of deletes, the final status, the multiset of events,
//! the result, and that Replace deletes before it creates. Not compared are the order of cleanup deletions, the reads,
//! a status write that changes nothing, and the library's text at the end of the three schedule errors.
//!
//! The rows are also translated for the tutorial's kind, which decides the same except for its intended differences.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use apimachinery::clock::{Clock, SharedClock};
use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::batch_v1::{CronJob, CronJobStatus, Job};
use cronjob_controller::api::{
    ApiError, ControllerKind, EventType, Interner, Manage, Namespace, Object, ObjectName, Publish, Uid,
};
use cronjob_controller::cache::Store;
use cronjob_controller::controller::control::{CronJobControl, JobControl, Patience};
use cronjob_controller::controller::plan::{Event, Outcome, Propagation, StatusWrite};
use cronjob_controller::controller::{Controller, Parts};
use cronjob_controller::events::{EventRecorder, ObjectReference};
use cronjob_controller::metrics::ControllerMetrics;
use cronjob_controller::workqueue::{Config, WorkQueue};
use prometheus::Registry;
use schedule::Zone;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::support::{check_file, say};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Row {
    #[serde(rename = "name")]
    _name: String,
    now: DateTime<Utc>,
    cron_job_cached: Box<RawValue>,
    cron_job_live: Option<Box<RawValue>>,
    jobs_cached: Option<Vec<Box<RawValue>>>,
    jobs_live: Option<Vec<Box<RawValue>>>,
    faults: Option<Vec<Fault>>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    verb: Verb,
    code: u16,
    reason: String,
    cause: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Verb {
    Get,
    GetCronJob,
    Create,
    Delete,
    UpdateStatus,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Expect {
    writes: Option<Vec<Write>>,
    reads: Option<Vec<Read>>,
    events: Option<Vec<ExpectedEvent>>,
    result: Verdict,
    requeue_after_nanos: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    verb: Verb,
    name: String,
    status: Option<CronJobStatus>,
    job: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    verb: Verb,
    #[serde(rename = "name")]
    _name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedEvent {
    #[serde(rename = "type")]
    type_: String,
    reason: String,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Verdict {
    Done,
    RequeueAfter,
    RateLimited,
}

/// What upstream adds to every requeue.
const UPSTREAM_DELTA: TimeDelta = TimeDelta::milliseconds(100);

#[test]
fn sync() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    check_file("sync.jsonl", |row: &Row| runtime.block_on(judge(row)));
}

/// Rows that the tutorial's kind handles differently are left out. Names count seconds, so a slot inside a minute has
/// no translation. Every unfinished child is active, where upstream asks the server. A status is also written for its
/// conditions, and that write meets a failure that upstream does not.
#[test]
fn sync_of_the_tutorial() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let judged = Mutex::new(0);
    check_file::<Box<RawValue>>("sync.jsonl", |raw| {
        let row: Row = serde_json::from_str(&translated(raw.get())).unwrap();
        let differs = row.cron_job_cached.get().contains("@every")
            || row.expect.reads.iter().flatten().any(|read| read.verb == Verb::GetCronJob)
            || row.faults.iter().flatten().any(|fault| fault.verb == Verb::UpdateStatus);
        if differs {
            return Ok(());
        }
        *judged.lock().unwrap() += 1;
        runtime.block_on(judge(&row))
    });
    let judged = judged.into_inner().unwrap();
    say(&format!("sync.jsonl: {judged} of them translated for the tutorial"));
    assert!(judged > 0, "nothing was judged");
}

/// The row with the CronJob as the tutorial's kind.
fn translated(row: &str) -> String {
    const API_VERSION: &str = r#""apiVersion":"batch.tutorial.kubebuilder.io/v1""#;
    let mut parts = row.split("cj-");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("cj-");
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, rest) = part.split_at(digits(part));
        match rest.strip_prefix('-').map(|rest| rest.split_at(digits(rest))) {
            Some((minutes, rest)) if !number.is_empty() => {
                let seconds = minutes.parse::<i64>().unwrap() * 60;
                text.extend([number, "-", &seconds.to_string(), rest]);
            }
            _ => text.push_str(part),
        }
    }
    text.replace(r#""apiVersion":"batch/v1","kind":"CronJob""#, &format!(r#"{API_VERSION},"kind":"CronJob""#))
        .replace(r#""cronJobCached":{"#, &format!(r#""cronJobCached":{{{API_VERSION},"#))
        .replace(r#""cronJobLive":{"#, &format!(r#""cronJobLive":{{{API_VERSION},"#))
        .replace(ControllerKind::CronJob.scheduled_annotation, ControllerKind::Tutorial.scheduled_annotation)
}

fn decode<T: Object>(raw: &RawValue) -> Arc<T> {
    Arc::new(T::decode(raw.get(), &Interner::default()).unwrap())
}

/// In one sync, and in two: the first starts the Job, and the second writes the status.
async fn judge(row: &Row) -> Result<(), String> {
    judge_settling(row, false).await?;
    judge_settling(row, true).await.map_err(|error| format!("settled later: {error}"))
}

async fn judge_settling(row: &Row, later: bool) -> Result<(), String> {
    let cron_job: Arc<CronJob> = decode(&row.cron_job_cached);
    let world = World::new(row);
    let controller = world.controller(row);
    // Upstream hides no failure.
    for _ in 0..HIDDEN_FAILURES {
        controller.queue().add_rate_limited(cron_job.name.clone());
    }
    if !later {
        controller.queue().shut_down();
    }
    let mut outcome = controller.sync(&cron_job.name).await;
    if let Outcome::SettleLater { next } = outcome {
        let events = world.0.lock().unwrap().events.len();
        controller.queue().shut_down();
        outcome = controller.sync(&cron_job.name).await;
        same("next slot", &next, &outcome.requeue_at().or(next))?;
        // Every sync reports these two.
        let mut index = 0;
        world.0.lock().unwrap().events.retain(|event| {
            index += 1;
            index <= events || !matches!(event.reason, "UnsupportedSchedule" | "UnexpectedJob")
        });
    }

    let seen = world.0.lock().unwrap();
    compare_result(row, &outcome)?;
    compare_writes(row, &seen, &cron_job)?;
    compare_events(row, &seen)
}

fn compare_result(row: &Row, outcome: &Outcome) -> Result<(), String> {
    let (verdict, nanos) = match outcome {
        Outcome::Done => (Verdict::Done, None),
        Outcome::Failed(_) => (Verdict::RateLimited, None),
        Outcome::Requeue(at) => (Verdict::RequeueAfter, (*at + UPSTREAM_DELTA - row.now).num_nanoseconds()),
        Outcome::Again => return Err("no status names so many Jobs".to_owned()),
        Outcome::AwaitTemplate => return Err("no template is long".to_owned()),
        Outcome::SettleLater { .. } => return Err("the status was left for later twice".to_owned()),
    };
    same("result", &(row.expect.result, row.expect.requeue_after_nanos), &(verdict, nanos))
}

fn compare_writes(row: &Row, seen: &Seen, cron_job: &CronJob) -> Result<(), String> {
    let expected = row.expect.writes.as_deref().unwrap_or_default();
    let creates = expected.iter().filter(|w| w.verb == Verb::Create).map(|w| w.job.clone().unwrap());
    same("creates", &creates.collect::<Vec<_>>(), &seen.creates)?;
    let deletes = expected.iter().filter(|w| w.verb == Verb::Delete).map(|w| w.name.clone());
    same("deletes", &deletes.collect::<BTreeSet<_>>(), &seen.deletes.iter().cloned().collect())?;
    let status = expected.iter().filter_map(|w| w.status.as_ref()).next_back().unwrap_or(&cron_job.status);
    let controller_kind = cron_job.controller_kind;
    let got = seen.statuses.last().unwrap_or(&cron_job.status);
    same("status", &comparable_status(controller_kind, status), &comparable_status(controller_kind, got))?;
    if seen.statuses.len() > 1 {
        return Err(format!("{} status writes", seen.statuses.len()));
    }
    // Replace: what was active and unfinished is deleted before the create.
    if cron_job.spec.concurrency_policy == cronjob_controller::api::batch_v1::ConcurrencyPolicy::Replace
        && let Some(create) = seen.order.iter().position(|(verb, _)| *verb == Verb::Create)
    {
        let late = seen.order[create..].iter().find(|(verb, name)| *verb == Verb::Delete && seen.was_running(name));
        if let Some((_, name)) = late {
            return Err(format!("{name} was deleted after the create"));
        }
    }
    Ok(())
}

/// The status without the fields that only one of the kinds has.
fn comparable_status(controller_kind: ControllerKind, status: &CronJobStatus) -> CronJobStatus {
    let last_successful_time = status.last_successful_time.filter(|_| controller_kind.has_last_successful_time);
    CronJobStatus { last_successful_time, conditions: Box::default(), ..status.clone() }
}

fn compare_events(row: &Row, seen: &Seen) -> Result<(), String> {
    let has_time_zone = seen.cached.controller_kind.has_time_zone;
    let mut expected: Vec<_> = row
        .expect
        .events
        .iter()
        .flatten()
        .filter(|event| has_time_zone || event.reason != "UnsupportedSchedule")
        .map(|event| (event.type_.clone(), event.reason.clone(), comparable(&event.reason, &event.message)))
        .collect();
    let mut got: Vec<_> = seen
        .events
        .iter()
        .map(|event| {
            let type_ = if event.type_ == EventType::Normal { "Normal" } else { "Warning" };
            (type_.to_owned(), event.reason.to_owned(), comparable(event.reason, &event.message))
        })
        .collect();
    expected.sort();
    got.sort();
    same("events", &expected, &got)
}

/// The message without the library's text where that is not compared.
fn comparable(reason: &str, message: &str) -> String {
    let end = match reason {
        "UnparseableSchedule" | "InvalidSchedule" => message.find(" : "),
        "UnknownTimeZone" => message.rfind("\": "),
        _ => None,
    };
    message[..end.unwrap_or(message.len())].to_owned()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, got: &T) -> Result<(), String> {
    if expected == got { Ok(()) } else { Err(format!("{what}:\n    expected {expected:?}\n    got      {got:?}")) }
}

/// After so many failures of a key none is hidden.
const HIDDEN_FAILURES: usize = 10;

/// The time of a row.
#[derive(Debug)]
struct Now(DateTime<Utc>);

impl Clock for Now {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }
}

/// The API server of one row, and all writes and Events that it received.
#[derive(Clone)]
struct World(Arc<Mutex<Seen>>);

struct Seen {
    cached: Arc<CronJob>,
    cron_job: Option<Arc<CronJob>>,
    jobs: BTreeMap<String, Arc<Job>>,
    finished: BTreeSet<String>,
    faults: Vec<(Verb, ApiError)>,
    creates: Vec<Value>,
    deletes: Vec<String>,
    statuses: Vec<CronJobStatus>,
    events: Vec<Event>,
    order: Vec<(Verb, String)>,
}

impl Seen {
    fn was_running(&self, name: &str) -> bool {
        !self.finished.contains(name)
    }

    fn fault(&self, verb: Verb) -> Result<(), ApiError> {
        self.faults.iter().find(|(faulty, _)| *faulty == verb).map_or(Ok(()), |(_, error)| Err(error.clone()))
    }
}

fn refusal(name: &str, code: u16, reason: &str, message: String) -> ApiError {
    ApiError { code, reason: reason.to_owned(), ..ApiError::transport("test", ObjectName::new("ns", name), message) }
}

impl World {
    fn new(row: &Row) -> Self {
        let fault = |fault: &Fault| {
            let error = refusal("", fault.code, &fault.reason, format!("injected {}", fault.reason));
            let namespace_terminating = fault.cause.as_deref() == Some("NamespaceTerminating");
            (fault.verb, ApiError { namespace_terminating, ..error })
        };
        let live = |raw: &RawValue| {
            let job: Arc<Job> = decode(raw);
            (job.name.name.to_string(), job)
        };
        let cached: Vec<Arc<Job>> = row.jobs_cached.iter().flatten().map(|raw| decode(raw)).collect();
        Self(Arc::new(Mutex::new(Seen {
            cached: decode(&row.cron_job_cached),
            cron_job: row.cron_job_live.as_deref().map(decode),
            jobs: row.jobs_live.iter().flatten().map(|raw| live(raw)).collect(),
            finished: cached.iter().filter(|j| j.finished.is_some()).map(|j| j.name.name.to_string()).collect(),
            faults: row.faults.iter().flatten().map(fault).collect(),
            creates: Vec::new(),
            deletes: Vec::new(),
            statuses: Vec::new(),
            events: Vec::new(),
            order: Vec::new(),
        })))
    }

    /// A controller of this world whose caches show what the row says.
    fn controller(&self, row: &Row) -> Arc<Controller<Self>> {
        // Without scopes they are synced.
        let (cron_jobs, jobs) = (Store::new([]), Store::new([]));
        let cron_job = CronJob::clone(&self.0.lock().unwrap().cached);
        let controller_kind = cron_job.controller_kind;
        cron_jobs.upsert(cron_job);
        for raw in row.jobs_cached.iter().flatten() {
            jobs.upsert(Job::clone(&decode(raw)));
        }
        let clock: SharedClock = Arc::new(Now(row.now));
        Controller::new(Parts {
            controller_kind,
            manage: Manage::All,
            queue: WorkQueue::new(Config::new("vectors", Arc::clone(&clock))),
            cron_jobs: Arc::new(cron_jobs),
            jobs: Arc::new(jobs),
            name_conflicts: None,
            namespaces: None,
            control: self.clone(),
            recorder: Arc::new(self.clone()),
            clock,
            metrics: ControllerMetrics::register(&Registry::new()).unwrap(),
            stats_set: None,
            local_zone: Zone::UTC,
            publish: Publish::default(),
        })
    }
}

impl JobControl for World {
    async fn get_job(&self, name: &ObjectName) -> Result<Arc<Job>, ApiError> {
        let seen = self.0.lock().unwrap();
        seen.fault(Verb::Get)?;
        let missing = || refusal(&name.name, 404, "NotFound", format!("jobs.batch {:?} not found", &*name.name));
        seen.jobs.get(&*name.name).cloned().ok_or_else(missing)
    }

    async fn create_job(&self, name: &ObjectName, body: Vec<u8>, _: Patience) -> Result<Arc<Job>, ApiError> {
        let mut seen = self.0.lock().unwrap();
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        let slot = DateTime::parse_from_rfc3339(
            body["metadata"]["annotations"][seen.cached.controller_kind.scheduled_annotation].as_str().unwrap(),
        );
        // On the wire, unlike in the row: apiVersion, kind, namespace. In the row only: what the server fills in.
        for (field, value) in [("apiVersion", "batch/v1"), ("kind", "Job")] {
            assert_eq!(body.as_object_mut().unwrap().remove(field), Some(Value::from(value)));
        }
        assert_eq!(body["metadata"].as_object_mut().unwrap().remove("namespace"), Some(Value::from(&*name.namespace)));
        let slot = slot.unwrap().to_utc().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        body["metadata"]["creationTimestamp"] = Value::from(slot);
        body["status"] = Value::Object(serde_json::Map::new());
        seen.order.push((Verb::Create, name.name.to_string()));
        seen.creates.push(body.clone());
        seen.fault(Verb::Create)?;
        if seen.jobs.contains_key(&*name.name) {
            let message = format!("jobs.batch {:?} already exists", &*name.name);
            return Err(refusal(&name.name, 409, "AlreadyExists", message));
        }
        body["metadata"]["uid"] = Value::from("created-uid");
        body["metadata"]["resourceVersion"] = Value::from("200");
        body["metadata"]["namespace"] = Value::from(&*name.namespace);
        Ok(Arc::new(Job::decode(&body.to_string(), &Interner::default()).unwrap()))
    }

    async fn delete_job(&self, name: &ObjectName, uid: &Uid, _: Propagation, _: Patience) -> Result<(), ApiError> {
        let mut seen = self.0.lock().unwrap();
        seen.order.push((Verb::Delete, name.name.to_string()));
        seen.deletes.push(name.name.to_string());
        seen.fault(Verb::Delete)?;
        match seen.jobs.remove(&*name.name) {
            Some(job) if job.uid == *uid => Ok(()),
            Some(_) => Err(refusal(&name.name, 409, "Conflict", "the UID in the precondition differs".to_owned())),
            None => Err(refusal(&name.name, 404, "NotFound", format!("jobs.batch {:?} not found", &*name.name))),
        }
    }
}

impl CronJobControl for World {
    async fn get_cron_job(&self, name: &ObjectName) -> Result<Arc<CronJob>, ApiError> {
        let seen = self.0.lock().unwrap();
        seen.fault(Verb::GetCronJob)?;
        let missing = || refusal(&name.name, 404, "NotFound", format!("cronjobs.batch {:?} not found", &*name.name));
        seen.cron_job.clone().ok_or_else(missing)
    }

    async fn get_namespace(&self, name: &Arc<str>) -> Result<Arc<Namespace>, ApiError> {
        Err(refusal(name, 404, "NotFound", format!("namespaces {name:?} not found")))
    }

    async fn update_status(
        &self,
        name: &ObjectName,
        write: &StatusWrite,
        _: Patience,
    ) -> Result<Arc<CronJob>, ApiError> {
        let mut seen = self.0.lock().unwrap();
        seen.order.push((Verb::UpdateStatus, name.name.to_string()));
        seen.statuses.push(write.status.clone());
        seen.fault(Verb::UpdateStatus)?;
        let mut written = CronJob::clone(&seen.cached);
        written.status = write.status.clone();
        Ok(Arc::new(written))
    }
}

impl EventRecorder for World {
    fn event(&self, _: &ObjectReference, type_: EventType, reason: &'static str, message: String) {
        self.0.lock().unwrap().events.push(Event { type_, reason, message });
    }
}
