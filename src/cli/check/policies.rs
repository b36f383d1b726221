//! Policy annotations: what the controller would not read, and what is rarely meant.
//!
//! Guarantee: the values are read by the controller's own code. Pure.

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use schedule::Schedule;
use serde::Deserialize;
use serde_json::Value;

use super::{Code, Fault};
use crate::api::batch_v1::ConcurrencyPolicy;
use crate::api::policy::{
    DUE_TIME, EXCLUDE, NOT_BEFORE, PREFIX, Policy, PolicyError, PolicyReading, REASON, SCHEDULE, SLOT_IN_POD, Setting,
    TRACEPARENT,
};
use crate::api::{ControllerKind, ObjectName};
use crate::cli::restrictions::Restrictions;
use crate::dev::manifests::set_defaults;

/// How many runs of `spec.schedule` are compared with those of the annotation.
const COMPARED: usize = 500;

/// What the annotations of an object say; `None` without a policy, or for a kind that has none. `seed` is the
/// controller's `--spread-seed`.
pub(super) fn of(controller_kind: ControllerKind, object: &Value, seed: &str) -> Option<PolicyReading> {
    controller_kind.counted_from?;
    let mut object = object.clone();
    set_defaults(controller_kind, &mut object);
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let texts = annotations.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    let spec = &object["spec"];
    let limit = |field: &str| spec[field].as_i64().and_then(|limit| i32::try_from(limit).ok());
    let template = spec["jobTemplate"].to_string();
    let setting = Setting {
        schedule: spec["schedule"].as_str().unwrap_or_default(),
        concurrency_policy: ConcurrencyPolicy::deserialize(&spec["concurrencyPolicy"]).unwrap_or_default(),
        successful_jobs_history_limit: limit("successfulJobsHistoryLimit"),
        failed_jobs_history_limit: limit("failedJobsHistoryLimit"),
        job_template: &template,
    };
    let mut reading = PolicyReading::of(texts, setting)?;
    reading.set_offset(seed, &key(&object));
    Some(reading)
}

/// Namespace and name, on which an offset depends.
pub(super) fn key(object: &Value) -> ObjectName {
    let text = |field: &str| object["metadata"][field].as_str();
    ObjectName::new(text("namespace").unwrap_or("default"), text("name").unwrap_or_default())
}

/// The field of an annotation.
pub(super) fn field(annotation: &str) -> String {
    format!("metadata.annotations[{annotation}]")
}

/// What is wrong with the annotations. `own` is `spec.schedule` in its zone.
pub(super) fn judge(reading: &PolicyReading, own: &Schedule, now: DateTime<Utc>) -> Vec<Fault> {
    let unknown = reading.unknown.names().map(|name| {
        Fault::warning(Code::UnknownPolicy, field(name), "is no annotation of this controller, and has no effect")
    });
    let mut faults: Vec<Fault> = unknown.collect();
    if let more @ 1.. = reading.unknown.more() {
        let message = format!("has {more} more below {PREFIX} that are none of this controller, and have no effect");
        faults.push(Fault::warning(Code::UnknownPolicy, "metadata.annotations", message));
    }
    match &reading.policy {
        // The value is judged where it is written.
        Err(PolicyError::Namespace(error)) if matches!(**error, PolicyError::Value { .. }) => {}
        Err(error @ PolicyError::Namespace(_)) => {
            faults.push(Fault::error(Code::BadPolicy, "spec.schedule", error.to_string()));
        }
        Err(error) => faults.push(Fault::error(Code::BadPolicy, field(error.annotation()), error.to_string())),
        Ok(policy) => {
            let contradicted = contradicted(policy, own, now);
            let ending = ending(policy, now);
            faults.extend(
                contradicted.map(|message| Fault::warning(Code::ContradictedSchedule, field(SCHEDULE), message)),
            );
            faults.extend(ending.map(|message| Fault::warning(Code::ExclusionsEnd, field(EXCLUDE), message)));
        }
    }
    faults
}

/// What is wrong with the annotations of a Namespace.
pub(super) fn of_namespace(object: &Value, restrictions: &Restrictions) -> Vec<Fault> {
    let is_namespace = object["kind"] == "Namespace" && object["apiVersion"] == "v1";
    let Some(name) = object["metadata"]["name"].as_str().filter(|_| is_namespace) else { return Vec::new() };
    let unreadable = restrictions.of(name).and_then(|restriction| {
        let error = restriction.error()?;
        let message = format!("{error}; no CronJob of this Namespace would start");
        Some(Fault::error(Code::BadPolicy, field(error.annotation()), message))
    });
    let names = object["metadata"]["annotations"].as_object().into_iter().flat_map(|annotations| annotations.keys());
    let unknown =
        names.filter(|name| name.starts_with(PREFIX) && ![NOT_BEFORE, EXCLUDE, REASON].contains(&name.as_str()));
    let without_effect = unknown.map(|name| {
        let message = "has no effect on a Namespace, which takes not-before, exclude and reason";
        Fault::warning(Code::UnknownPolicy, field(name), message)
    });
    unreadable.into_iter().chain(without_effect).collect()
}

/// A time of `spec.schedule` that the annotation in its place does not have, the first one after today: any before may have passed.
fn contradicted(policy: &Policy, own: &Schedule, now: DateTime<Utc>) -> Option<String> {
    if !policy.has_lines() {
        return None;
    }
    let replaced = policy.schedule(own);
    let has = |slot: DateTime<Utc>| {
        replaced.nominal(slot - TimeDelta::seconds(1)).next().is_some_and(|nominal| nominal.slot == slot)
    };
    let tomorrow = now + TimeDelta::days(1) - TimeDelta::seconds(1);
    let runs = std::iter::successors(own.next_after(tomorrow), |slot| own.next_after(*slot));
    let only_there = runs.take(COMPARED).find(|slot| !has(*slot))?;
    let time = own.zone().unwrap_or_default().at(only_there).format("%a %F %H:%M");
    Some(format!(
        "replaces spec.schedule, which also names {time}: without this controller's policies the CronJob runs then"
    ))
}

/// A variable of a container that is its slot, although Pods are not told their slot.
pub(super) fn untold(controller_kind: ControllerKind, object: &Value) -> Option<Fault> {
    if object["metadata"]["annotations"][SLOT_IN_POD] == "true" {
        return None;
    }
    let pod = &object["spec"]["jobTemplate"]["spec"]["template"];
    let lists = ["initContainers", "containers"].map(|list| &pod["spec"][list]);
    let containers = lists.into_iter().filter_map(Value::as_array).flatten();
    let mut variables = containers.filter_map(|container| container["env"].as_array()).flatten();
    let is_untold = |name: &&str| {
        let names = [controller_kind.scheduled_annotation, DUE_TIME, TRACEPARENT];
        names.contains(name) && pod["metadata"]["annotations"][*name].is_null()
    };
    let message = |variable: &Value| {
        let path = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str()?;
        let name = path.strip_prefix("metadata.annotations['")?.strip_suffix("']").filter(is_untold)?;
        Some(format!("reads the annotation {name}, which Pods have with {SLOT_IN_POD}: \"true\" only; so it is empty"))
    };
    let message = variables.find_map(message)?;
    Some(Fault::warning(Code::SlotNotTold, "spec.jobTemplate.spec.template", message))
}

/// Exclusions that are all over by the end of this year.
fn ending(policy: &Policy, now: DateTime<Utc>) -> Option<String> {
    let last = policy.exclusions().last_date().filter(|last| last.year() <= now.year())?;
    Some(format!("excludes nothing after {last}; add the dates of {}", now.year() + 1))
}
