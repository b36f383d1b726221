//! The simulated node's decision for one Pod, and the Pod's log. Pure.
//!
//! Guarantees: the decision depends on the Pod, the settings and `now` alone, so a run with the same seed and UIDs repeats. A
//! Pod that has ended is not changed again. No container really runs, and the log says so.
//!
//! A Pod starts at once. Its containers run in step for the duration in an annotation or the settings, and succeed or fail by
//! an annotation or at random. With `Always` they run on, unless an annotation sets a duration. A restart is immediate: there
//! is no CrashLoopBackOff.
//!
//! Matches the form of the statuses that `pkg/kubelet` and `pkg/kubelet/status` write.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use super::objects::{DURATION_ANNOTATION, OUTCOME_ANNOTATION, Pod};
use super::options::duration_from;

/// The name of the simulated node.
pub const NODE: &str = "dev";

/// The behaviour of containers whose Pod does not set it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How long containers run.
    pub duration: Duration,
    /// The probability of failure, from 0 to 1.
    pub failure_rate: f64,
    /// The seed of the random outcomes.
    pub seed: u64,
}

/// The action for a Pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing, until the Pod changes.
    Nothing,
    /// Call [`step`] again at this time.
    Wait(DateTime<Utc>),
    /// Apply this merge patch to the status.
    Patch(Value),
    /// Delete the Pod for good, because its grace period is over.
    Remove,
}

/// Decides the action for `pod`.
pub fn step(pod: &Pod, settings: &Settings, now: DateTime<Utc>) -> Step {
    if pod.identity.deleting {
        return Step::Remove;
    }
    if pod.is_finished() {
        return Step::Nothing;
    }
    let Some(started) = pod.started_at() else { return Step::Patch(running(pod, 0, None, now)) };
    let fixed = pod.identity.annotation(DURATION_ANNOTATION).and_then(duration_from);
    let always = pod.restarts("Always");
    if always && fixed.is_none() {
        return Step::Nothing;
    }
    let duration = TimeDelta::from_std(fixed.unwrap_or(settings.duration)).unwrap_or(TimeDelta::MAX);
    let Some(end) = started.checked_add_signed(duration) else { return Step::Nothing };
    if now < end {
        return Step::Wait(end);
    }
    let failed = fails(pod, settings);
    if always || (failed && pod.restarts("OnFailure")) {
        // Without this pause, a container of zero duration would restart in an endless loop.
        let pause = started + TimeDelta::seconds(1);
        if now < pause {
            return Step::Wait(pause);
        }
        let last = terminated(exit_code(failed), started, now);
        return Step::Patch(running(pod, pod.restart_count() + 1, Some(&last), now));
    }
    Step::Patch(finished(pod, failed, started, now))
}

fn exit_code(failed: bool) -> i32 {
    i32::from(failed)
}

fn fails(pod: &Pod, settings: &Settings) -> bool {
    match pod.identity.annotation(OUTCOME_ANNOTATION) {
        Some("fail") => true,
        Some("succeed") => false,
        _ => dice(settings.seed, &pod.identity.uid.to_string(), pod.restart_count()) < settings.failure_rate,
    }
}

/// A number from 0 up to but excluding 1 that depends on its arguments alone: FNV-1a, mixed like splitmix64.
fn dice(seed: u64, uid: &str, restarts: u32) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in uid.bytes().chain(restarts.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // A double holds 53 bits exactly.
    #[allow(clippy::cast_precision_loss)]
    let number = ((hash ^ (hash >> 31)) >> 11) as f64;
    number / 9_007_199_254_740_992.0
}

fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn terminated(exit_code: i32, started: DateTime<Utc>, now: DateTime<Utc>) -> Value {
    json!({ "terminated": {
        "exitCode": exit_code,
        "reason": if exit_code == 0 { "Completed" } else { "Error" },
        "startedAt": stamp(started),
        "finishedAt": stamp(now),
    }})
}

fn running(pod: &Pod, restarts: u32, last: Option<&Value>, now: DateTime<Utc>) -> Value {
    let state = json!({ "running": { "startedAt": stamp(now) } });
    let mut patch = json!({ "status": {
        "phase": "Running",
        "conditions": conditions(true, None, now),
        "containerStatuses": statuses(pod, true, restarts, &state, last),
    }});
    if restarts == 0 {
        let address = address(pod);
        patch["status"]["startTime"] = stamp(now).into();
        patch["status"]["hostIP"] = "127.0.0.1".into();
        patch["status"]["hostIPs"] = json!([{ "ip": "127.0.0.1" }]);
        patch["status"]["podIP"] = address.as_str().into();
        patch["status"]["podIPs"] = json!([{ "ip": address }]);
    }
    patch
}

fn finished(pod: &Pod, failed: bool, started: DateTime<Utc>, now: DateTime<Utc>) -> Value {
    let state = terminated(exit_code(failed), started, now);
    let (phase, reason) = if failed { ("Failed", "PodFailed") } else { ("Succeeded", "PodCompleted") };
    json!({ "status": {
        "phase": phase,
        "conditions": conditions(false, Some(reason), now),
        "containerStatuses": statuses(pod, false, pod.restart_count(), &state, None),
    }})
}

/// An address in the Pod range of kubeadm's examples; nothing listens there.
fn address(pod: &Pod) -> String {
    let dice = dice(0, &pod.identity.uid.to_string(), 0) * 65_000.0;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let number = dice as u32 + 2;
    format!("10.244.{}.{}", number >> 8, number & 0xff)
}

fn conditions(ready: bool, reason: Option<&str>, now: DateTime<Utc>) -> Value {
    let condition = |type_: &str, holds: bool, reason: Option<&str>| {
        let mut condition = json!({
            "type": type_,
            "status": if holds { "True" } else { "False" },
            "lastProbeTime": null,
            "lastTransitionTime": stamp(now),
        });
        if let Some(reason) = reason {
            condition["reason"] = reason.into();
        }
        condition
    };
    json!([
        condition("PodReadyToStartContainers", ready, None),
        condition("Initialized", true, reason.filter(|reason| *reason == "PodCompleted")),
        condition("Ready", ready, reason),
        condition("ContainersReady", ready, reason),
        condition("PodScheduled", true, None),
    ])
}

fn statuses(pod: &Pod, ready: bool, restarts: u32, state: &Value, last: Option<&Value>) -> Value {
    let status = |container: &Container| {
        let image = container.image.as_deref().unwrap_or_default();
        json!({
            "name": container.name,
            "image": image,
            "imageID": format!("simulated/{image}"),
            "containerID": format!("simulated://{}-{}-{restarts}", pod.identity.uid, container.name),
            "ready": ready,
            "started": ready,
            "restartCount": restarts,
            "state": state,
            "lastState": last.cloned().unwrap_or_else(|| json!({})),
        })
    };
    pod.spec.containers.iter().map(status).collect()
}

/// The log of a container; `None` if the Pod has no such container or it has not started.
pub fn log(pod: &Pod, container: &str) -> Option<String> {
    let container = pod.spec.containers.iter().find(|one| one.name == container || container.is_empty())?;
    let started = pod.started_at()?;
    let words: Vec<&str> = container.command.iter().chain(&container.args).flatten().map(String::as_str).collect();
    let mut text = format!(
        "{} This container is simulated: nothing runs, and this is all of its log.\n{} image: {}\n",
        stamp(started),
        stamp(started),
        container.image.as_deref().unwrap_or_default()
    );
    // Writing to a String cannot fail.
    if !words.is_empty() {
        let _ = writeln!(text, "{} command: {}", stamp(started), words.join(" "));
    }
    if let Some(end) = pod.terminated() {
        let finished = pod.finished_at().unwrap_or(started);
        let _ = writeln!(text, "{} exit code: {}", stamp(finished), end.exit_code);
    }
    Some(text)
}

#[cfg(test)]
mod tests;
