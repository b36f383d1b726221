//! Why a Job has not ended, where that shows in the Job, in its Pods, or in the Events of a Pod that does not start.
//!
//! Guarantees: nothing is said of a Job whose containers run. Of several reasons the first that keeps the others from mattering is
//! given, with the command that shows more: of a container that ended before, how, and the command that prints the log of that end. A Pod
//! that is about to start is said to be late only if a Warning says why, or after a minute; so is one whose init container still runs.
//! Pods that cannot be read are said. Pure, except for [`read`].

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use kube::Client;
use serde::Serialize;

use super::cluster::by_object;
use super::explain::read::{Said, list};
use super::output::stretch;
use crate::api::ControllerKind;
use crate::api::batch_v1::JOB_CONTROLLER;

/// For so long a Pod may be about to start.
const STARTS_WITHIN: TimeDelta = TimeDelta::seconds(60);
/// The reasons of a container that is about to start.
const ABOUT_TO_START: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// What keeps a Job from ending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfinished {
    /// The Job.
    job: String,
    /// A sentence.
    why: String,
    /// The command that shows more.
    command: String,
    /// Whether it is only that the Pods cannot be read.
    #[serde(skip)]
    pub(super) is_unread: bool,
}

/// A Job and its Pods, or why they cannot be read.
pub(super) struct WithPods {
    pub job: batch::Job,
    pub pods: Result<Vec<Pod>, String>,
}

impl Unfinished {
    /// What keeps the Job from ending, from the Job and its Pods. `noun` is what kubectl calls it, and `why_late` says of a Pod that
    /// is about to start why it does not.
    fn of(noun: &str, found: &WithPods, why_late: Option<&Late>) -> Option<Self> {
        let job = &found.job;
        let name = job.metadata.name.clone().unwrap_or_default();
        let namespace = job.metadata.namespace.clone().unwrap_or_default();
        let describe = |what: &str| format!("kubectl describe -n {namespace} {what}");
        let own = |why: String| (why, describe(&format!("{noun} {name}")), false);
        let (why, command, is_unread) = of_job(job).map(own).or_else(|| match &found.pods {
            Err(error) => {
                let why = format!(
                    "Its Pods cannot be read, so it is not known what it does: {}.",
                    error.trim_end_matches('.')
                );
                Some((why, format!("kubectl auth can-i list pods -n {namespace}"), true))
            }
            Ok(pods) => {
                let left = || pods.iter().filter(|pod| !has_ended(pod));
                let late = || left().find_map(|pod| late(pod, why_late?).or_else(|| initialising(pod, why_late?.now?)));
                let of_pods = left().find_map(of_pod).or_else(late);
                let none = || (left().count() == 0).then(|| own("It has no Pod that runs or waits.".to_owned()));
                let told = |told: OfPod| {
                    (told.why, told.command.unwrap_or_else(|| describe(&format!("pod {}", told.pod))), false)
                };
                of_pods.map(told).or_else(none)
            }
        })?;
        Some(Self { job: name, why, command, is_unread })
    }

    /// The same with flags that choose the cluster, each after a space, behind its command.
    #[must_use]
    pub(super) fn with_flags(self, flags: &str) -> Self {
        Self { command: self.command + flags, ..self }
    }

    /// As lines below what it explains.
    pub(super) fn lines(&self) -> [String; 2] {
        [format!("{}: {}", self.job, self.why), format!("  {}", self.command)]
    }
}

/// Reads a Job and its Pods, or a Pod that is its own; `None` if the Job cannot be read, or if nothing keeps it from ending. Without
/// the time, a Pod that is about to start is late only if a Warning says so.
pub(super) async fn read(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    job: &str,
    now: Option<DateTime<Utc>>,
) -> Option<Unfinished> {
    let found = read_with_pods(client, controller_kind, namespace, job).await?;
    let noun = controller_kind.child.kind.to_ascii_lowercase();
    if let Some(unfinished) = Unfinished::of(&noun, &found, None) {
        return Some(unfinished);
    }
    let pods = found.pods.iter().flatten();
    let is_late = |pod: &&Pod| about_to_start(pod).is_some() || init_container(pod).is_some();
    let pod = pods.filter(|pod| !has_ended(pod)).find(is_late)?;
    let about = format!("&fieldSelector=involvedObject.uid={}", pod.metadata.uid.as_deref()?);
    let events = list(client, &format!("/api/v1/namespaces/{namespace}/events"), &about).await.unwrap_or_default();
    let (events, warnings) = by_object(events).into_values().next().unwrap_or_default();
    Unfinished::of(&noun, &found, Some(&Late { events, warnings, now }))
}

/// A Job and its Pods. A Pod that is its own counts as a Job of its name with one Pod.
pub(super) async fn read_with_pods(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    job: &str,
) -> Option<WithPods> {
    let child = controller_kind.child;
    // By a list, which is the only right that the page asks for.
    let found =
        list(client, &child.path(Some(namespace)), &format!("&fieldSelector=metadata.name%3D{job}")).await.ok()?;
    let text = found.first()?.get();
    if child.kind == "Pod" {
        return Some(as_job(serde_json::from_str(text).ok()?));
    }
    let selector = format!("&labelSelector=batch.kubernetes.io/job-name%3D{job}");
    let pods = list(client, &format!("/api/v1/namespaces/{namespace}/pods"), &selector).await;
    let pods = pods.map(|pods| pods.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect());
    Some(WithPods { job: serde_json::from_str(text).ok()?, pods: pods.map_err(|error| error.to_string()) })
}

fn as_job(pod: Pod) -> WithPods {
    WithPods { job: batch::Job { metadata: pod.metadata.clone(), ..batch::Job::default() }, pods: Ok(vec![pod]) }
}

/// What in the Job itself keeps it from ending.
fn of_job(job: &batch::Job) -> Option<String> {
    let spec = job.spec.as_ref();
    let finalizers = job.metadata.finalizers.as_deref().unwrap_or_default();
    if job.metadata.deletion_timestamp.is_some() && !finalizers.is_empty() {
        return Some(format!("It is being deleted, and waits for its finalizers: {}.", finalizers.join(", ")));
    }
    if let Some(manager) = spec.and_then(|spec| spec.managed_by.as_deref()).filter(|manager| *manager != JOB_CONTROLLER)
    {
        return Some(format!("{manager} manages it (spec.managedBy), and not the cluster's Job controller."));
    }
    if spec.and_then(|spec| spec.suspend) == Some(true) {
        return Some("It is suspended (spec.suspend), so it has no Pods.".to_owned());
    }
    if spec.and_then(|spec| spec.parallelism) == Some(0) {
        return Some("Its spec.parallelism is 0, so it has no Pods.".to_owned());
    }
    None
}

fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
}

/// What keeps a Pod from ending.
struct OfPod {
    pod: String,
    why: String,
    /// The command that shows more, unless that is to describe it.
    command: Option<String>,
}

/// The command that prints the log of a container, or of its last end.
pub(super) fn logs(pod: &Pod, container: &str, is_previous: bool) -> String {
    let [namespace, name] =
        [&pod.metadata.namespace, &pod.metadata.name].map(|word| word.as_deref().unwrap_or_default());
    let previous = if is_previous { " --previous" } else { "" };
    format!("kubectl logs -n {namespace} {name} -c {container}{previous}")
}

/// What keeps a Pod from ending.
fn of_pod(pod: &Pod) -> Option<OfPod> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let mut command = None;
    let mut conditions = status.conditions.iter().flatten();
    let unscheduled = conditions.find(|one| one.type_ == "PodScheduled" && one.status == "False");
    let mains = status.container_statuses.as_deref().unwrap_or_default();
    let mut containers = all_containers(&status);
    let why = if pod.metadata.deletion_timestamp.is_some() {
        format!("Pod {name} is being deleted, and its node has not ended it yet.")
    } else if let Some(unscheduled) = unscheduled {
        let reason = unscheduled.reason.as_deref().unwrap_or("Unschedulable");
        let message = unscheduled.message.as_deref().unwrap_or_default();
        format!("Pod {name} has no node: {reason}{}", end_of(message))
    } else if let Some((status, init, text)) =
        containers.find_map(|(status, init)| Some((status, init, waiting(status)?)))
    {
        let ended = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        command = ended.map(|_| logs(pod, &status.name, true));
        let ended = ended.map(|ended| format!(" Before, it ended: {}.", end(ended))).unwrap_or_default();
        format!("Pod {name}, {init}container {} {text}{ended}", status.name)
    } else {
        let (main, sidecar) = outlived(mains)?;
        format!("Pod {name}: container {main} has ended, and container {sidecar} still runs.")
    };
    Some(OfPod { pod: name, why, command })
}

/// How a container ended.
fn end(ended: &ContainerStateTerminated) -> String {
    let reason = ended.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("Error");
    format!("{reason}, exit code {}", ended.exit_code)
}

/// The Events about a Pod that is about to start, newest first, the Warnings among them, and the time, if it is known.
struct Late {
    events: Vec<Said>,
    warnings: Vec<Said>,
    now: Option<DateTime<Utc>>,
}

/// What a Pod is doing that has a node, or waits for a scheduler, and of which no container has begun.
fn about_to_start(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref().filter(|status| status.phase.as_deref() == Some("Pending"))?;
    let mut statuses = all_containers(status);
    let has_begun = |status: &ContainerStatus| {
        status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    if statuses.clone().any(|(status, _)| has_begun(status)) {
        return None;
    }
    let reason = |status: &ContainerStatus| status.state.as_ref()?.waiting.as_ref()?.reason.clone();
    let waits = statuses.find_map(|(status, init)| Some((format!("{init}container {}", status.name), reason(status)?)));
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    Some(match (waits, node) {
        (Some((container, reason)), _) => format!("{container} waits: {reason}"),
        (None, Some(node)) => format!("node {node} has not begun with it"),
        (None, None) => "no scheduler has given it a node".to_owned(),
    })
}

/// The init container that runs, if the others wait for its end, and since when it runs.
fn init_container(pod: &Pod) -> Option<(&str, DateTime<Utc>)> {
    let status = pod.status.as_ref().filter(|status| status.phase.as_deref() == Some("Pending"))?;
    let spec = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: Vec<&str> = spec
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| &*container.name)
        .collect();
    let runs = |status: &ContainerStatus| {
        let since = status.state.as_ref()?.running.as_ref()?.started_at.as_ref();
        since.and_then(|since| DateTime::from_timestamp(since.0.as_second(), 0))
    };
    let inits = status.init_container_statuses.iter().flatten();
    let mut inits = inits.filter(|status| !sidecars.contains(&&*status.name));
    inits.find_map(|status| Some((&*status.name, runs(status)?)))
}

/// That an init container has been running for some time, and the others wait for it.
fn initialising(pod: &Pod, now: DateTime<Utc>) -> Option<OfPod> {
    let (container, began) = init_container(pod)?;
    let since = Some(now - began).filter(|since| *since > STARTS_WITHIN)?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    let why = format!(
        "Pod {name}: init container {container} has been running for {}, and its containers wait for that to end.",
        stretch(since)
    );
    Some(OfPod { pod: name, why, command: Some(logs(pod, container, false)) })
}

/// Why a Pod that is about to start does not.
fn late(pod: &Pod, Late { events, warnings, now }: &Late) -> Option<OfPod> {
    let doing = about_to_start(pod)?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    let begun = started.or(pod.metadata.creation_timestamp.as_ref());
    let begun = begun.and_then(|time| DateTime::from_timestamp(time.0.as_second(), 0));
    let since = now.zip(begun).map(|(now, begun)| now - begun).filter(|since| *since > STARTS_WITHIN);
    let newest = events.first().filter(|newest| newest.reason != "Scheduled");
    // One of the scheduler is over once there is a node.
    let warning = warnings.iter().find(|said| said.reason != "FailedScheduling");
    let said = warning.or(newest.filter(|_| since.is_some()));
    let since = since.map(|since| format!(", for {}", stretch(since))).unwrap_or_default();
    let why = match said {
        Some(said) => format!("Pod {name}, {doing}{since}: {}{}", said.reason, end_of(&said.message)),
        None if !since.is_empty() => format!("Pod {name}, {doing}{since}, and no Event says why."),
        None => return None,
    };
    Some(OfPod { pod: name, why, command: None })
}

/// The init containers and the others, each with what its name begins with.
pub(super) fn all_containers(status: &PodStatus) -> impl Iterator<Item = (&ContainerStatus, &'static str)> + Clone {
    let init = status.init_container_statuses.iter().flatten().map(|status| (status, "init "));
    init.chain(status.container_statuses.iter().flatten().map(|status| (status, "")))
}

/// Why a container does not start, unless it is about to: the end of a sentence about it.
fn waiting(status: &ContainerStatus) -> Option<String> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| !ABOUT_TO_START.contains(reason))?;
    let message = waiting.message.as_deref().unwrap_or_default();
    Some(format!("waits: {reason}{}", end_of(message)))
}

/// A container that has ended, and one that still runs beside it.
fn outlived(statuses: &[ContainerStatus]) -> Option<(&str, &str)> {
    let state = |status: &ContainerStatus| status.state.clone().unwrap_or_default();
    let ended = statuses.iter().find(|status| state(status).terminated.is_some())?;
    let runs = statuses.iter().find(|status| state(status).running.is_some())?;
    Some((&ended.name, &runs.name))
}

/// The end of a sentence with a message of the cluster, which may be a sentence itself.
fn end_of(message: &str) -> String {
    match message.trim().trim_end_matches('.') {
        "" => ".".to_owned(),
        message => format!(": {message}."),
    }
}

#[cfg(test)]
mod tests;
