//! The controller in kube-controller-manager, beside the replicas. For a suspended CronJob it does everything except
//! start Jobs. It starts those of a CronJob that was given back to it; a rollback gives it all of them, while no replica runs. In
//! some worlds without handovers, operators [`Switch`] the cluster to it and back.
//!
//! Matches upstream `cleanupFinishedJobs` and `syncCronJob`, on the server's current objects. It knows no policies. It
//! runs at random times, which makes up for its always current view.

use chrono::{DateTime, SecondsFormat, Utc};
use cronjob_controller::api::Manage;
use http::Method;
use schedule::Evaluation;
use schedule::missed::{self, Observed};
use serde_json::{Value, json};

use crate::agenda::Act;
use crate::call::Call;
use crate::faults::{self, FaultKind as F};
use crate::model::{Condition, Cron, Model};
use crate::people::job_from;
use crate::rng::Rng;
use crate::scenario::{MINUTE, Millis, SECOND, Scenario};
use crate::sim::Sim;

/// When the in-tree controller is turned on and off, and the replicas stop and start, as docs/migration.md says.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    pub on: Millis,
    pub off: Millis,
    /// Whether both run for a while before it is turned off.
    pub is_beside: bool,
}

impl Scenario {
    /// In few worlds, operators go back to the in-tree controller and come again. They turn on the one before they turn off the other,
    /// so that both run for a while; or one that does harm is stopped first.
    pub fn switch(&mut self, rng: &mut Rng) {
        let is_possible = self.controller_kind.is_in_tree && self.manage == Manage::All && self.outage().is_none();
        if !is_possible || !rng.percent(30) && !faults::is_everywhere("SWITCH") {
            return;
        }
        // In place of other times without a replica.
        (self.restore, self.standstill) = (None, None);
        self.faults.retain(|fault| fault.kind != F::Outage);
        let on = rng.range(30 * SECOND, self.active - 9 * MINUTE);
        let stopped = if rng.percent(70) { on + rng.range(0, 2 * MINUTE) } else { on - rng.range(5, 25) * SECOND };
        let started = on.max(stopped) + rng.range(20, 180) * SECOND;
        let is_beside = rng.percent(70);
        let off = if is_beside { started + rng.range(0, 2 * MINUTE) } else { started - rng.range(1, 20) * SECOND };
        self.switch = Some(Switch { on, off, is_beside });
        let is_orderly = rng.range(0, 2);
        self.on_replicas(rng, 870, F::Outage, (stopped, started), is_orderly);
    }
}

/// Syncs all CronJobs, and schedules the next sync.
pub fn look(sim: &Sim, at: Millis) {
    if sim.scenario.switch.is_some_and(|switch| switch.off <= at) {
        return;
    }
    let again = at + sim.state.lock().rng.range(SECOND / 10, 4 * SECOND);
    sim.plan(again, Act::InTree);
    sync_all(sim, at);
}

/// Syncs all CronJobs.
pub fn sync_all(sim: &Sim, at: Millis) {
    let (calls, due): (Vec<Call>, Vec<Due>) = {
        let state = sim.state.lock();
        let model = &state.model;
        let due = model.live().filter_map(|(uid, cron)| due(model, uid, cron, sim.wall(at))).collect();
        (model.live().flat_map(|(uid, cron)| calls(model, uid, cron)).collect(), due)
    };
    for call in calls {
        sim.state.lock().invariants.coverage.count("world", "in-tree controller writes");
        let code = sim.act(&call);
        assert!(matches!(code, 200..300 | 404), "the in-tree controller's {call} is refused: {code}");
    }
    due.into_iter().for_each(|due| start(sim, due));
}

/// A slot to start.
struct Due {
    namespace: String,
    cron_job: String,
    uid: String,
    slot: DateTime<Utc>,
    job: Value,
    /// The Jobs to delete first.
    replaced: Vec<String>,
}

/// The newest slot of a CronJob that was given back, unless it waits.
fn due(model: &Model, uid: &str, cron: &Cron, now: DateTime<Utc>) -> Option<Due> {
    let version = cron.newest();
    if !version.is_taken_back() || version.spec()["suspend"] != false {
        return None;
    }
    let timing = version.timing()?;
    let schedule = timing.schedule.ok().filter(|_| timing.time_zone.is_ok())?;
    let observed = Observed {
        creation: version.object["metadata"]["creationTimestamp"].as_str()?.parse().ok()?,
        last_schedule: version.last_schedule_time(),
        starting_deadline_seconds: version.deadline(),
    };
    let slot = missed::next_schedule_time(&observed, now, &Evaluation::of(&schedule)).ok()?.0?;
    let active = version.active();
    if version.policy() == "Forbid" && !active.is_empty() {
        return None;
    }
    let replaces = version.policy() == "Replace";
    let named = active.iter().filter_map(|uid| model.jobs.get(*uid)).filter(|job| replaces && job.deleted.is_none());
    let kind = version.controller_kind();
    let mut job = job_from(kind, &version.object);
    job["metadata"]["name"] = json!(kind.child_name(&cron.name, slot));
    job["metadata"]["annotations"][kind.scheduled_annotation] = json!(slot.to_rfc3339_opts(SecondsFormat::Secs, true));
    let (namespace, cron_job, uid) = (cron.namespace.clone(), cron.name.clone(), uid.to_owned());
    Some(Due { namespace, cron_job, uid, slot, job, replaced: named.map(|job| job.name.clone()).collect() })
}

/// Starts a slot, and writes the status. A Job of another owner that has the name is left alone, and so is the status.
fn start(sim: &Sim, due: Due) {
    sim.state.lock().invariants.coverage.count("world", "in-tree controller starts a Job");
    let jobs = format!("/apis/batch/v1/namespaces/{}/jobs", due.namespace);
    for name in &due.replaced {
        let options = json!({"propagationPolicy": "Background"});
        sim.act(&Call::world(Method::DELETE, format!("{jobs}/{name}"), &options));
    }
    let code = sim.act(&Call::world(Method::POST, jobs, &due.job));
    assert!(matches!(code, 200..300 | 409), "the in-tree controller's create is refused: {code}");
    let name = due.job["metadata"]["name"].as_str().unwrap_or_default();
    let status = {
        let state = sim.state.lock();
        if !state.model.jobs_of(&due.uid).any(|job| job.name == name) {
            return;
        }
        let mut active: Vec<Value> = Vec::new();
        for job in state.model.jobs_of(&due.uid).filter(|job| job.is_unfinished() && !job.deleting) {
            let is_active = job.name == name || state.model.crons[&due.uid].newest().active().contains(&&*job.uid);
            if is_active {
                let reference = json!({
                    "apiVersion": "batch/v1", "kind": "Job", "namespace": job.namespace, "name": job.name, "uid": job.uid,
                });
                active.push(reference);
            }
        }
        let slot = state.model.crons[&due.uid].newest().last_schedule_time().max(Some(due.slot));
        json!({"active": active, "lastScheduleTime": slot.map(|slot| slot.to_rfc3339_opts(SecondsFormat::Secs, true))})
    };
    let path = format!("/apis/batch/v1/namespaces/{}/cronjobs/{}/status", due.namespace, due.cron_job);
    sim.act(&Call::world(Method::PATCH, path, &json!({ "status": status })));
}

fn calls(model: &Model, uid: &str, cron: &Cron) -> Vec<Call> {
    let mut calls = Vec::new();
    let version = cron.newest();
    for (field, condition) in
        [("successfulJobsHistoryLimit", Condition::Complete), ("failedJobsHistoryLimit", Condition::Failed)]
    {
        let Some(limit) = version.spec()[field].as_u64() else { continue };
        let mut finished: Vec<_> = model.jobs_of(uid).filter(|job| job.finished == Some(condition)).collect();
        finished.sort_by_key(|job| (job.created, job.name.clone()));
        let surplus = finished.len().saturating_sub(usize::try_from(limit).unwrap());
        calls.extend(finished[..surplus].iter().map(|job| {
            let path = format!("/apis/batch/v1/namespaces/{}/jobs/{}", job.namespace, job.name);
            Call::world(Method::DELETE, path, &json!({"propagationPolicy": "Background"}))
        }));
    }
    let old = version.object["status"]["active"].as_array().cloned().unwrap_or_default();
    let runs = |reference: &&Value| {
        let job = reference["uid"].as_str().and_then(|uid| model.jobs.get(uid));
        job.is_some_and(|job| job.is_unfinished())
    };
    let active: Vec<Value> = old.iter().filter(runs).cloned().collect();
    let succeeded = model.jobs_of(uid).filter_map(|job| job.succeeded).max();
    if active.len() == old.len() && succeeded <= version.last_successful_time() {
        return calls;
    }
    let status = json!({
        "active": if active.is_empty() { Value::Null } else { json!(active) },
        "lastSuccessfulTime": succeeded.max(version.last_successful_time()),
    });
    let path = format!("/apis/batch/v1/namespaces/{}/cronjobs/{}/status", cron.namespace, cron.name);
    calls.push(Call::world(Method::PATCH, path, &json!({ "status": status })));
    calls
}
