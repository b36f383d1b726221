//! Why a Job has not ended, where that shows in the Job or in its Pods.
//!
//! Guarantee: nothing is said of a Job whose containers run. Of several reasons the first that keeps the others from mattering is
//! given, with the command that shows more. Pure, except for [`read`].

use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Client;
use serde::Serialize;

use super::explain::read::list;
use crate::api::ControllerKind;

/// The field manager of the Job controller in kube-controller-manager.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

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
}

impl Unfinished {
    /// What keeps the Job from ending, from the Job and its Pods. `noun` is what kubectl calls it.
    fn of(noun: &str, job: &batch::Job, pods: &[Pod]) -> Option<Self> {
        let name = job.metadata.name.clone().unwrap_or_default();
        let namespace = job.metadata.namespace.clone().unwrap_or_default();
        let own = |why: String| (why, format!("{noun} {name}"));
        let without = || pods.iter().all(has_ended).then(|| "It has no Pod that runs or waits.".to_owned());
        let of_pods = || pods.iter().filter(|pod| !has_ended(pod)).find_map(of_pod);
        let (why, what) = of_job(job).map(own).or_else(of_pods).or_else(|| without().map(own))?;
        Some(Self { job: name, why, command: format!("kubectl describe -n {namespace} {what}") })
    }

    /// As lines below what it explains.
    pub(super) fn lines(&self) -> [String; 2] {
        [format!("{}: {}", self.job, self.why), format!("  {}", self.command)]
    }
}

/// Reads a Job and its Pods, or a Pod that is its own; `None` if that cannot be read, or if nothing keeps it from ending.
pub(super) async fn read(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    job: &str,
) -> Option<Unfinished> {
    let (job, pods) = read_with_pods(client, controller_kind, namespace, job).await?;
    Unfinished::of(&controller_kind.child.kind.to_ascii_lowercase(), &job, &pods)
}

/// A Job and its Pods. A Pod that is its own counts as a Job of its name with one Pod.
pub(super) async fn read_with_pods(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    job: &str,
) -> Option<(batch::Job, Vec<Pod>)> {
    let child = controller_kind.child;
    // By a list, which is the only right that the page asks for.
    let found =
        list(client, &child.path(Some(namespace)), &format!("&fieldSelector=metadata.name%3D{job}")).await.ok()?;
    let text = found.first()?.get();
    if child.kind == "Pod" {
        return Some(as_job(serde_json::from_str(text).ok()?));
    }
    let selector = format!("&labelSelector=batch.kubernetes.io/job-name%3D{job}");
    let pods = list(client, &format!("/api/v1/namespaces/{namespace}/pods"), &selector).await.ok()?;
    let pods = pods.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    Some((serde_json::from_str(text).ok()?, pods))
}

fn as_job(pod: Pod) -> (batch::Job, Vec<Pod>) {
    (batch::Job { metadata: pod.metadata.clone(), ..batch::Job::default() }, vec![pod])
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
        return Some(format!("{manager} runs it (spec.managedBy), and not the cluster's Job controller."));
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

/// What keeps a Pod from ending, and what to describe.
fn of_pod(pod: &Pod) -> Option<(String, String)> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let unscheduled = conditions.iter().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    let mains = status.container_statuses.as_deref().unwrap_or_default();
    let mut containers = status.init_container_statuses.iter().flatten().chain(mains);
    let why = if pod.metadata.deletion_timestamp.is_some() {
        format!("Pod {name} is being deleted, and its node has not ended it yet.")
    } else if let Some(unscheduled) = unscheduled {
        let reason = unscheduled.reason.as_deref().unwrap_or("Unschedulable");
        let message = unscheduled.message.as_deref().unwrap_or_default();
        format!("Pod {name} has no node: {reason}{}", end_of(message))
    } else if let Some(text) = containers.find_map(waiting) {
        format!("Pod {name}, {text}")
    } else {
        let (main, sidecar) = outlived(mains)?;
        format!("Pod {name}: container {main} has ended, and container {sidecar} still runs.")
    };
    Some((why, format!("pod {name}")))
}

/// Why a container does not start, unless it is about to.
fn waiting(status: &ContainerStatus) -> Option<String> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason =
        waiting.reason.as_deref().filter(|reason| !matches!(*reason, "ContainerCreating" | "PodInitializing"))?;
    let message = waiting.message.as_deref().unwrap_or_default();
    Some(format!("container {} waits: {reason}{}", status.name, end_of(message)))
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
