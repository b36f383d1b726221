//! The course of Jobs and of the Pods in their place: they finish, fail, hang, exceed their TTL, or a user deletes
//! them.
//!
//! A Job's course follows from the seed and its name, independent of other events.

use chrono::SecondsFormat;
use cronjob_controller::api::ControllerKind;
use cronjob_controller::api::policy::{LIMITS, STUCK_AFTER};
use http::Method;
use serde_json::{Value, json};

use crate::agenda::Act;
use crate::call::Call;
use crate::limits::FINALIZER;
use crate::rng::Rng;
use crate::scenario::{Millis, SECOND};
use crate::sim::Sim;

/// A step in a Job's course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its start is written to its status.
    Begin,
    Finish,
    Fail,
    /// A user deletes it, running or finished.
    Delete,
    Ttl,
    /// It gets a finalizer that keeps it after its deletion.
    Hold,
    /// Its finalizer is removed, a while after its deletion.
    Release,
}

/// The fault of a Job that lingers after its deletion.
pub const LINGERS: &str = "deleted Job lingers with a finalizer";

/// Decides a new Job's course.
pub fn begins(sim: &Sim, uid: &str, at: Millis) {
    let mut state = sim.state.lock();
    let Some(job) = state.model.jobs.get(uid) else { return };
    let (namespace, name) = (job.namespace.clone(), job.name.clone());
    let mut rng = Rng::fork(sim.scenario.seed, &format!("{namespace}/{name}"));
    let base = name.split('-').next().unwrap_or_default();
    let spec = sim.scenario.cron_jobs.iter().find(|cron_job| cron_job.name == base);
    let fate = spec.map_or("mixed", |cron_job| cron_job.spec.fate);
    let drawn = match fate {
        "mixed" => rng.weighted(&[(50, "quick"), (18, "slow"), (16, "fails"), (6, "hangs"), (10, "vanishes")]),
        fate => fate,
    };
    let seconds = |rng: &mut Rng, low, high| rng.range(low * SECOND, high * SECOND);
    let uid = uid.to_owned();
    // Only there does a decision depend on it.
    if spec.is_some_and(|cron_job| cron_job.policies.contains_key(STUCK_AFTER)) {
        state.plan(at + Rng::fork(sim.scenario.seed, &uid).range(0, 2 * SECOND), Act::Job(uid.clone(), Step::Begin));
    }
    let may_linger = spec.is_some_and(|cron_job| LIMITS.iter().any(|name| cron_job.policies.contains_key(name)));
    if may_linger && Rng::fork(sim.scenario.seed, &format!("linger {uid}")).percent(40) {
        state.plan(at, Act::Job(uid.clone(), Step::Hold));
    }
    match drawn {
        "quick" => state.plan(at + seconds(&mut rng, 0, 15), Act::Job(uid, Step::Finish)),
        "slow" => state.plan(at + seconds(&mut rng, 30, 130), Act::Job(uid, Step::Finish)),
        "fails" => state.plan(at + seconds(&mut rng, 0, 40), Act::Job(uid, Step::Fail)),
        "hangs" => state.plan(at + seconds(&mut rng, 150, 420), Act::Job(uid, Step::Finish)),
        _ => {
            let end = at + seconds(&mut rng, 0, 20);
            let step = if rng.percent(50) { Step::Finish } else { Step::Fail };
            if rng.percent(60) {
                state.plan(end, Act::Job(uid.clone(), step));
                state.plan(end + seconds(&mut rng, 0, 8), Act::Job(uid, Step::Ttl));
            } else {
                state.plan(end, Act::Job(uid, Step::Delete));
            }
        }
    }
}

/// How long a Job lingers after its deletion.
pub fn lingering(seed: u64, uid: &str) -> Millis {
    let mut rng = Rng::fork(seed, &format!("release {uid}"));
    let seconds = rng.weighted(&[(45, 20), (35, 120), (20, 500)]);
    rng.range(SECOND, seconds * SECOND)
}

/// Takes a step of a Job's course.
pub fn step(sim: &Sim, uid: &str, step: Step, at: Millis) {
    let (namespace, name, slot) = {
        let state = sim.state.lock();
        let Some(job) = state.model.jobs.get(uid).filter(|job| job.deleted.is_none()) else { return };
        let is_over = matches!(step, Step::Begin | Step::Finish | Step::Fail) && job.finished.is_some();
        if is_over || step == Step::Hold && job.deleting {
            return;
        }
        (job.namespace.clone(), job.name.clone(), job.created)
    };
    let path = format!("{}/{name}", sim.scenario.controller_kind.child.path(Some(&namespace)));
    let what = match step {
        Step::Begin => "Job began",
        Step::Finish => "Job finished",
        Step::Fail => "Job failed",
        Step::Delete => "Job deleted by hand",
        Step::Ttl => "Job gone after its TTL",
        Step::Hold => "Job gets a finalizer",
        Step::Release => "Job loses its finalizer",
    };
    sim.state.lock().invariants.coverage.count("world", what);
    let code = match step {
        Step::Begin => {
            let start = sim.wall(slot).to_rfc3339_opts(SecondsFormat::Secs, true);
            sim.act(&Call::world(Method::PATCH, format!("{path}/status"), &json!({ "status": { "startTime": start } })))
        }
        Step::Finish | Step::Fail => {
            let status = status(sim, slot, at, step == Step::Finish);
            sim.act(&Call::world(Method::PATCH, format!("{path}/status"), &json!({ "status": status })))
        }
        Step::Hold | Step::Release => {
            let names = if step == Step::Hold { json!([FINALIZER]) } else { json!([]) };
            sim.act(&Call::world(Method::PATCH, path, &json!({ "metadata": { "finalizers": names } })))
        }
        Step::Delete | Step::Ttl => {
            let options = json!({"propagationPolicy": "Background", "preconditions": {"uid": uid}});
            sim.act(&Call::world(Method::DELETE, path, &options))
        }
    };
    // The garbage collector may have been faster.
    assert!(matches!(code, 200..300 | 404), "the world's own step {step:?} of {name} is refused: {code}");
}

fn status(sim: &Sim, begun: Millis, ended: Millis, is_success: bool) -> Value {
    if sim.scenario.controller_kind == ControllerKind::ApiExample {
        return json!({"phase": if is_success { "Succeeded" } else { "Failed" }});
    }
    let time = |at| sim.wall(at).to_rfc3339_opts(SecondsFormat::Secs, true);
    let (first, last) = if is_success { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") };
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time(ended)});
    let mut status = json!({"startTime": time(begun), "conditions": [condition(first), condition(last)]});
    if is_success {
        status["completionTime"] = json!(time(ended));
        status["succeeded"] = json!(1);
    } else {
        status["failed"] = json!(1);
    }
    status
}
