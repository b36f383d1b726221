//! The controller in kube-controller-manager, beside the replicas. For a suspended CronJob it does everything except
//! start Jobs.
//!
//! Matches upstream `cleanupFinishedJobs` and the part of `syncCronJob` before it checks `suspend`, on the server's
//! current objects. It runs at random times, which makes up for its always current view.

use http::Method;
use serde_json::{Value, json};

use crate::agenda::Act;
use crate::call::Call;
use crate::model::{Condition, Cron, Model};
use crate::scenario::{Millis, SECOND};
use crate::sim::Sim;

/// Syncs all CronJobs, and schedules the next sync.
pub fn look(sim: &Sim, at: Millis) {
    let calls: Vec<Call> = {
        let mut state = sim.state.lock();
        let again = at + state.rng.range(SECOND / 10, 4 * SECOND);
        state.plan(again, Act::InTree);
        state.model.live().flat_map(|(uid, cron)| calls(&state.model, uid, cron)).collect()
    };
    for call in calls {
        sim.state.lock().invariants.coverage.count("world", "in-tree controller writes");
        let code = sim.act(&call);
        assert!(matches!(code, 200..300 | 404), "the in-tree controller's {call} is refused: {code}");
    }
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
