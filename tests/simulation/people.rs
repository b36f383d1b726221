//! The users' edits of CronJobs.

use std::sync::Arc;

use apiserver::Object;
use chrono::TimeDelta;
use cronjob_controller::api::manage::{Handover, MANAGED_ANNOTATION, SUSPEND_ANNOTATION, Standing};
use cronjob_controller::api::policy::COUNTED_FROM;
use cronjob_controller::api::{ControllerKind, Manage};
use http::Method;
use serde_json::{Value, json};

use crate::agenda::Act;
use crate::call::Call;
use crate::calm::limits_of;
use crate::disguise::READS_AS;
use crate::freezes::FREEZING;
use crate::model::{Condition, SHARED, text};
use crate::scenario::{Action, CronJob, ELSEWHERE, MINUTE, Millis, SECOND, Spec};
use crate::sim::Sim;

fn jobs(sim: &Sim, cron_job: &CronJob) -> String {
    sim.scenario.controller_kind.child.path(Some(cron_job.namespace))
}

fn path(sim: &Sim, cron_job: &CronJob) -> String {
    format!("{}/{}", sim.scenario.controller_kind.parent.path(Some(cron_job.namespace)), cron_job.name)
}

/// A schedule in the API's form: without a time zone field, the zone is a prefix.
fn timing(controller_kind: ControllerKind, schedule: &str, zone: Option<&str>) -> Value {
    match zone {
        Some(zone) if !controller_kind.has_time_zone => json!({"schedule": format!("TZ={zone} {schedule}")}),
        _ => json!({"schedule": schedule, "timeZone": zone}),
    }
}

/// The template of a Job, or of a Pod, without metadata.
fn template(controller_kind: ControllerKind, arguments: usize) -> Value {
    let mut container = json!({"name": "c", "image": "busybox"});
    if arguments > 0 {
        container["args"] = json!(["x".repeat(arguments)]);
    }
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    if controller_kind.child == ControllerKind::CronJob.child {
        json!({"spec": {"template": template}})
    } else {
        template
    }
}

/// A spec in the API's form.
fn spec(controller_kind: ControllerKind, spec: &Spec) -> Value {
    let mut template = template(controller_kind, spec.arguments);
    template["metadata"] = json!({"labels": {"fate": spec.fate}, "annotations": {"made": "from the template"}});
    let [successful, failed] = limits_of(controller_kind);
    let mut object = timing(controller_kind, &spec.schedule, spec.zone);
    object["concurrencyPolicy"] = json!(spec.policy);
    object["suspend"] = json!(spec.suspend);
    object["startingDeadlineSeconds"] = json!(spec.deadline);
    object[successful] = json!(spec.limits.0);
    object[failed] = json!(spec.limits.1);
    object["jobTemplate"] = template;
    object
}

/// The change of a CronJob that is handed over, or was: whether the replicas may start its Jobs, whose it is, and whether the
/// in-tree controller may start none.
fn handover(is_suspended: bool, is_taken_back: bool, is_off: bool) -> Value {
    let text = |is: bool| if is { json!("true") } else { Value::Null };
    let annotations = json!({MANAGED_ANNOTATION: text(!is_taken_back), SUSPEND_ANNOTATION: text(is_suspended)});
    json!({"metadata": {"annotations": annotations}, "spec": {"suspend": is_off}})
}

/// Gives a CronJob of the scenario back to the in-tree controller, which then starts its Jobs, or hands it over again.
/// As `migrate takeback` and `migrate handover` do.
pub fn give(sim: &Sim, place: usize, is_given_back: bool) {
    let what = if is_given_back { "given back to the in-tree controller" } else { "handed over again by it" };
    sim.state.lock().invariants.coverage.count("world", what);
    let cron_job = &sim.scenario.cron_jobs[place];
    let Some(before) = newest(sim, cron_job).map(|object| standing(&object)) else { return };
    if before.is_suspended() {
        sim.state.lock().invariants.coverage.count("world", "handed over or given back while it is suspended");
    }
    let wanted = if is_given_back { before.taken_back() } else { before.handed_over() };
    sim.act(&Call::world(Method::PATCH, path(sim, cron_job), &before.patch(wanted)));
}

/// Who runs a CronJob, as the commands read it.
fn standing(object: &Value) -> Standing {
    let annotations = &object["metadata"]["annotations"];
    let handover = Handover::read([MANAGED_ANNOTATION, SUSPEND_ANNOTATION].map(|name| annotations[name].as_str()));
    Standing { handover, spec_suspend: object["spec"]["suspend"] == true }
}

/// When a CronJob is given back: now, or just before its next slot, which the in-tree controller then starts before a replica's
/// watch has told it whose the CronJob is.
fn moment_to_give_back(sim: &Sim, cron_job: &CronJob, at: Millis) -> Millis {
    let mut state = sim.state.lock();
    if state.rng.percent(20) {
        return at;
    }
    let cron = state.model.cron_named(cron_job.namespace, &cron_job.name);
    let schedule = cron.and_then(|cron| cron.newest().schedule());
    let next = schedule.and_then(|schedule| schedule.next_after(sim.wall(at)));
    let wait = next.and_then(|next| Millis::try_from((next - sim.wall(at)).num_milliseconds()).ok());
    let before = state.rng.range(0, 4);
    wait.filter(|wait| (before..90 * SECOND).contains(wait)).map_or(at, |wait| at + wait - before)
}

/// Creates a CronJob of the scenario, unless it exists.
pub fn create(sim: &Sim, place: usize, _at: Millis) {
    let cron_job = &sim.scenario.cron_jobs[place];
    if cron_job.namespace != "default" && cron_job.namespace != FREEZING {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cron_job.namespace}});
        sim.act(&Call::world(Method::POST, "/api/v1/namespaces", &namespace));
    }
    let controller_kind = sim.scenario.controller_kind;
    let mut object = json!({
        "apiVersion": controller_kind.parent.api_version(), "kind": controller_kind.parent.kind,
        "metadata": {"name": cron_job.name}, "spec": spec(controller_kind, &cron_job.spec),
    });
    for (name, value) in &cron_job.policies {
        object["metadata"]["annotations"][name] = json!(value);
    }
    if sim.scenario.manage == Manage::Annotated {
        object["metadata"]["annotations"][MANAGED_ANNOTATION] = json!("true");
        object["metadata"]["annotations"][SHARED] = json!("true");
        if cron_job.spec.suspend {
            object["metadata"]["annotations"][SUSPEND_ANNOTATION] = json!("true");
        }
        object["spec"]["suspend"] = json!(true);
    }
    sim.act(&Call::world(Method::POST, controller_kind.parent.path(Some(cron_job.namespace)), &object));
}

/// Applies an edit of the scenario.
pub fn edit(sim: &Sim, place: usize, at: Millis) {
    let edit = &sim.scenario.edits[place];
    let cron_job = &sim.scenario.cron_jobs[edit.cron_job];
    let count = |what: &str| sim.state.lock().invariants.coverage.count("world", what);
    let patch = |what: &str, patch: Value| {
        count(what);
        sim.act(&Call::world(Method::PATCH, path(sim, cron_job), &patch));
    };
    let delete =
        || sim.act(&Call::world(Method::DELETE, path(sim, cron_job), &json!({"propagationPolicy": "Background"})));
    match &edit.action {
        Action::Schedule(schedule, zone) => patch(
            "schedule changed",
            json!({
                "spec": timing(sim.scenario.controller_kind, schedule, *zone), "metadata": {"annotations": {READS_AS: null}},
            }),
        ),
        Action::Policy(policy) => patch("policy changed", json!({"spec": {"concurrencyPolicy": policy}})),
        Action::Limits(successful, failed) => {
            let fields = limits_of(sim.scenario.controller_kind);
            patch("limits changed", json!({"spec": {fields[0]: successful, fields[1]: failed}}));
        }
        Action::Deadline(seconds) => patch("deadline changed", json!({"spec": {"startingDeadlineSeconds": seconds}})),
        Action::Limited(change) => patch("other policies changed", json!({"metadata": {"annotations": change}})),
        Action::Timing(change) => {
            let is_all = change.contains_key(COUNTED_FROM) && change.len() > 1;
            let what = if is_all { "timing policies and their record removed" } else { "timing policies changed" };
            patch(what, json!({"metadata": {"annotations": change}}));
        }
        Action::Suspend(suspend) => patch(if *suspend { "suspended" } else { "resumed" }, {
            // Of the CronJobs that are handed over, some are suspended, and the others released.
            let is_taken_back = *suspend && edit.at.is_multiple_of(2);
            match sim.scenario.manage {
                Manage::All => json!({"spec": {"suspend": suspend}}),
                // Of the others, some by `suspend`.
                Manage::Annotated => match newest(sim, cron_job).map(|object| standing(&object)) {
                    Some(before) if *suspend && !is_taken_back && edit.at.is_multiple_of(3) => {
                        before.patch(before.with_suspend(true))
                    }
                    _ => handover(*suspend, is_taken_back, true),
                },
            }
        }),
        Action::TakeBack(again) => {
            let key = (cron_job.namespace.to_owned(), cron_job.name.clone());
            sim.state.lock().wanted_back.insert(key, (edit.cron_job, *again));
        }
        Action::GiveBack(again) => {
            let mut from = at;
            if again.is_multiple_of(2) {
                from = moment_to_give_back(sim, cron_job, at);
                sim.plan(from, Act::GiveBack(edit.cron_job));
            } else {
                // The annotation of the handover is not the tool's own, so it stays.
                patch("given back by a manifest that says suspend: false", json!({"spec": {"suspend": false}}));
            }
            sim.plan(from + again, Act::HandOver(edit.cron_job));
        }
        Action::Revert => {
            let mut manifest = spec(sim.scenario.controller_kind, &cron_job.spec);
            if sim.scenario.manage == Manage::Annotated {
                // Where CronJobs are handed over, the manifests say so, too.
                manifest["suspend"] = json!(true);
            }
            patch("reverted", json!({"metadata": {"annotations": cron_job.policies}, "spec": manifest}));
        }
        Action::Template(number) => patch(
            "template changed",
            json!({"spec": {"jobTemplate": {"metadata": {"labels": {"number": number.to_string()}}}}}),
        ),
        Action::Arguments(length) => patch(
            "length of the template changed",
            json!({"spec": {"jobTemplate": template(sim.scenario.controller_kind, *length)}}),
        ),
        Action::ReadsAs(what) => patch("reads otherwise", json!({"metadata": {"annotations": {READS_AS: what}}})),
        Action::Delete => {
            count("deleted");
            delete();
        }
        Action::Recreate(after) => {
            count("recreated");
            delete();
            if *after == 0 { create(sim, edit.cron_job, at) } else { sim.plan(at + after, Act::Create(edit.cron_job)) }
        }
        Action::ManualJob => {
            count("manual Job");
            manual_job(sim, cron_job, place);
            strangers_job(sim, cron_job, at);
        }
        Action::ForeignJob(minutes) => {
            count("foreign Job");
            let at = sim.wall(at) + TimeDelta::minutes(*minutes);
            let slot = at - TimeDelta::seconds(at.timestamp() % 60);
            let controller_kind = sim.scenario.controller_kind;
            let job = json!({
                "apiVersion": controller_kind.child.api_version(), "kind": controller_kind.child.kind,
                "metadata": {"name": controller_kind.child_name(&cron_job.name, slot), "labels": {"fate": "mixed"}},
                "spec": spec(controller_kind, &cron_job.spec)["jobTemplate"]["spec"],
            });
            sim.act(&Call::world(Method::POST, jobs(sim, cron_job), &job));
        }
        Action::DeleteJob => delete_newest_job(sim, cron_job),
        Action::DeleteFailures => delete_failures(sim, cron_job),
        Action::Backfill(_) => sim.plan(at, Act::Backfill(place)),
    }
}

/// Releases a CronJob of the scenario, or hands it over again.
pub fn hand(sim: &Sim, place: usize, is_taken_back: bool) {
    let what = if is_taken_back { "taken back in the very moment" } else { "handed over again" };
    sim.state.lock().invariants.coverage.count("world", what);
    let patch = handover(false, is_taken_back, true);
    sim.act(&Call::world(Method::PATCH, path(sim, &sim.scenario.cron_jobs[place]), &patch));
}

/// The CronJob as the server has it.
fn newest(sim: &Sim, cron_job: &CronJob) -> Option<Arc<Object>> {
    let state = sim.state.lock();
    state.model.cron_named(cron_job.namespace, &cron_job.name).map(|cron| Arc::clone(&cron.newest().object))
}

/// Matches kubectl's `create job --from`.
fn manual_job(sim: &Sim, cron_job: &CronJob, place: usize) {
    let Some(object) = newest(sim, cron_job) else { return };
    let mut job = job_from(sim.scenario.controller_kind, &object);
    job["metadata"]["name"] = json!(format!("{}-manual-{place}", cron_job.name));
    job["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] = json!("manual");
    sim.act(&Call::world(Method::POST, jobs(sim, cron_job), &job));
}

/// In another namespace, someone names the CronJob as the owner of a Job that looks as if it was made for a slot to come.
fn strangers_job(sim: &Sim, cron_job: &CronJob, at: Millis) {
    let Some(object) = newest(sim, cron_job) else { return };
    let controller_kind = sim.scenario.controller_kind;
    let slot = sim.wall(at + 5 * MINUTE);
    let slot = slot - TimeDelta::seconds(slot.timestamp() % 60);
    let mut job = job_from(controller_kind, &object);
    job["metadata"]["namespace"] = json!(ELSEWHERE);
    // Otherwise it is deleted at once: its owner is not in its namespace.
    job["metadata"]["finalizers"] = json!(["example.com/stays"]);
    job["metadata"]["name"] = json!(controller_kind.child_name(&cron_job.name, slot));
    job["metadata"]["annotations"][controller_kind.scheduled_annotation] = json!(slot.to_rfc3339());
    sim.act(&Call::world(Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": ELSEWHERE}})));
    let code = sim.act(&Call::world(Method::POST, controller_kind.child.path(Some(ELSEWHERE)), &job));
    let what = if code == 201 { "Job of another namespace" } else { "Job of another namespace that was refused" };
    sim.state.lock().invariants.coverage.count("world", what);
}

/// A Job from a CronJob's template, without a name.
pub fn job_from(controller_kind: ControllerKind, object: &Value) -> Value {
    let (parent, child) = (controller_kind.parent, controller_kind.child);
    let template = &object["spec"]["jobTemplate"];
    let mut metadata = template["metadata"].clone();
    metadata["ownerReferences"] = json!([{
        "apiVersion": parent.api_version(), "kind": parent.kind, "name": text(object, "name"),
        "uid": text(object, "uid"), "controller": true,
    }]);
    json!({"apiVersion": child.api_version(), "kind": child.kind, "metadata": metadata, "spec": template["spec"]})
}

fn delete_newest_job(sim: &Sim, cron_job: &CronJob) {
    let newest = {
        let mut state = sim.state.lock();
        state.invariants.coverage.count("world", "Job deleted by hand");
        let key = (cron_job.namespace.to_owned(), cron_job.name.clone());
        let uid = state.model.names.get(&key).cloned();
        let jobs = uid.iter().flat_map(|uid| state.model.jobs_of(uid));
        jobs.max_by_key(|job| job.created).map(|job| job.name.clone())
    };
    if let Some(name) = newest {
        let path = format!("{}/{name}", jobs(sim, cron_job));
        sim.act(&Call::world(Method::DELETE, path, &json!({"propagationPolicy": "Background"})));
    }
}

/// Deletes the failed Jobs of a CronJob.
pub fn delete_failures(sim: &Sim, cron_job: &CronJob) {
    let names: Vec<String> = {
        let mut state = sim.state.lock();
        state.invariants.coverage.count("world", "failed Jobs deleted by hand");
        let uid = state.model.names.get(&(cron_job.namespace.to_owned(), cron_job.name.clone())).cloned();
        let jobs = uid.iter().flat_map(|uid| state.model.jobs_of(uid));
        jobs.filter(|job| job.finished == Some(Condition::Failed)).map(|job| job.name.clone()).collect()
    };
    for name in names {
        let path = format!("{}/{name}", jobs(sim, cron_job));
        sim.act(&Call::world(Method::DELETE, path, &json!({"propagationPolicy": "Background"})));
    }
}
