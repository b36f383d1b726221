//! The table row of a Pod.
//!
//! Guarantees: readiness, status and restarts are what kubectl shows for a Pod on a real cluster. Matches k8s.io/kubernetes
//! `pkg/printers/internalversion/printers.go`, `printPod`.

use std::collections::{BTreeSet, HashMap};

use apimachinery::steps;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::fields::{at, list, number, text};
use super::{age, time};

/// The row conditions of Pods that have ended. Matches `podSuccessConditions` and `podFailedConditions`.
pub(super) fn row_conditions(pod: &Value) -> Value {
    let (reason, message) = match text(pod, "status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Value::Null,
    };
    json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}])
}

/// The counts over a Pod's containers.
#[derive(Default)]
struct Tally {
    ready: usize,
    restarts: i64,
    last_restart: Option<DateTime<Utc>>,
    reason: String,
}

impl Tally {
    fn restarted(&mut self, status: &Value) {
        self.restarts += number(status, "restartCount").unwrap_or(0);
        let finished = time::read(text(status, "lastState.terminated.finishedAt"));
        self.last_restart = self.last_restart.max(finished);
    }
}

/// The cells of a Pod.
pub(super) fn cells(pod: &Value, now: DateTime<Utc>) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let sidecars: Vec<&str> = list(spec, "initContainers")
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always")
        .map(|container| text(container, "name"))
        .collect();
    let total = list(spec, "containers").len() + sidecars.len();
    let mut tally = Tally { reason: first_reason(status), ..Tally::default() };
    let (initializing, sidecar_tally) = init_containers(pod, &sidecars, &mut tally);
    let initialized = list(status, "conditions").iter().any(|c| c["type"] == "Initialized" && c["status"] == "True");
    if !initializing || initialized {
        tally.restarts = sidecar_tally.restarts;
        tally.last_restart = sidecar_tally.last_restart;
        app_containers(status, &mut tally);
    }
    let deleting = !at(pod, "metadata.deletionTimestamp").is_null();
    let over = matches!(text(status, "phase"), "Succeeded" | "Failed");
    if deleting && text(status, "reason") == "NodeLost" {
        "Unknown".clone_into(&mut tally.reason);
    } else if deleting && !over {
        "Terminating".clone_into(&mut tally.reason);
    }
    let restarts = match tally.last_restart.filter(|_| tally.restarts != 0) {
        Some(last) => format!("{} ({} ago)", tally.restarts, time::human_duration(now - last)),
        None => tally.restarts.to_string(),
    };
    let or_none = |value: &str| Value::from(if value.is_empty() { "<none>" } else { value });
    vec![
        pod["metadata"]["name"].clone(),
        format!("{}/{total}", tally.ready).into(),
        tally.reason.into(),
        restarts.into(),
        age(pod, now),
        or_none(list(status, "podIPs").first().map_or("", |ip| text(ip, "ip"))),
        or_none(text(spec, "nodeName")),
        or_none(text(status, "nominatedNodeName")),
        or_none(&readiness_gates(spec, status)),
    ]
}

fn first_reason(status: &Value) -> String {
    let gated =
        list(status, "conditions").iter().any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated");
    let reason = text(status, "reason");
    if gated {
        "SchedulingGated".to_owned()
    } else if reason.is_empty() {
        text(status, "phase").to_owned()
    } else {
        reason.to_owned()
    }
}

/// The STATUS text for how a container ended.
fn ending(terminated: &Value) -> String {
    let (reason, signal) = (text(terminated, "reason"), number(terminated, "signal").unwrap_or(0));
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", number(terminated, "exitCode").unwrap_or(0))
    }
}

/// Whether the Pod is still initializing, and the counts of its sidecars.
fn init_containers(pod: &Value, sidecars: &[&str], tally: &mut Tally) -> (bool, Tally) {
    let mut sidecar_tally = Tally::default();
    let sidecars: BTreeSet<&str> = sidecars.iter().copied().collect();
    for (index, status) in list(pod, "status.initContainerStatuses").iter().enumerate() {
        tally.restarted(status);
        let is_sidecar = sidecars.contains(text(status, "name"));
        if is_sidecar {
            sidecar_tally.restarted(status);
        }
        let (terminated, waiting) = (at(status, "state.terminated"), text(status, "state.waiting.reason"));
        if !terminated.is_null() && number(terminated, "exitCode").unwrap_or(0) == 0 {
            continue;
        }
        if is_sidecar && status["started"] == true {
            tally.ready += usize::from(status["ready"] == true);
            continue;
        }
        tally.reason = if !terminated.is_null() {
            format!("Init:{}", ending(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", list(pod, "spec.initContainers").len())
        };
        return (true, sidecar_tally);
    }
    (false, sidecar_tally)
}

fn app_containers(status: &Value, tally: &mut Tally) {
    let mut running = false;
    let mut error = String::new();
    for container in list(status, "containerStatuses").iter().rev() {
        tally.restarted(container);
        let (waiting, terminated) = (text(container, "state.waiting.reason"), at(container, "state.terminated"));
        if !waiting.is_empty() {
            waiting.clone_into(&mut tally.reason);
        } else if !terminated.is_null() {
            tally.reason = ending(terminated);
            if number(terminated, "exitCode").unwrap_or(0) != 0 {
                error.clone_from(&tally.reason);
            }
        } else if container["ready"] == true && !at(container, "state.running").is_null() {
            running = true;
            tally.ready += 1;
        }
    }
    if tally.reason != "Completed" {
        return;
    }
    let ready = list(status, "conditions").iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
    if running && ready {
        "Running".clone_into(&mut tally.reason);
    } else if !error.is_empty() {
        tally.reason = error;
    } else if running {
        "NotReady".clone_into(&mut tally.reason);
    }
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = list(spec, "readinessGates");
    if gates.is_empty() {
        return String::new();
    }
    // Of several conditions of one type, the first counts.
    let conditions = list(status, "conditions").iter().rev().map(|c| (&c["type"], &c["status"]));
    let conditions: HashMap<&Value, &Value> = steps::each(conditions).collect();
    let open = |gate: &&Value| conditions.get(&gate["conditionType"]).is_some_and(|status| *status == "True");
    format!("{}/{}", gates.iter().filter(open).count(), gates.len())
}
