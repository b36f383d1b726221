//! Why a run failed.
//!
//! Guarantees: the Job's own reason is given, and for each of its failed Pods the container, the reason, the exit code and the command
//! that prints its log. Pods that cannot be read are said. Pure, except for `read`.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use kube::Client;
use serde::Serialize;

use super::unfinished::{self, WithPods};
use crate::api::ControllerKind;

/// Why a run failed.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The reason of the Job's condition, such as `BackoffLimitExceeded`.
    reason: String,
    /// Its message.
    message: String,
    /// Its failed containers.
    containers: Vec<FailedContainer>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods_unread: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailedContainer {
    pod: String,
    container: String,
    /// Whether it is an init container.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_init: bool,
    reason: String,
    exit_code: i32,
    /// The command that prints its log.
    logs: String,
}

impl Failure {
    /// Why the Job failed, from the Job and its Pods.
    fn of(WithPods { job, pods }: &WithPods) -> Self {
        let conditions = job.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        let mut failed = conditions.filter(|condition| condition.type_ == "Failed" && condition.status == "True");
        let (reason, message) =
            failed.next().map(|failed| (failed.reason.clone(), failed.message.clone())).unwrap_or_default();
        Self {
            reason: reason.unwrap_or_default(),
            message: message.unwrap_or_default(),
            containers: pods.iter().flatten().flat_map(failed_containers).collect(),
            pods_unread: pods.as_ref().err().cloned(),
        }
    }

    /// Why the Job (or Pod) failed; `None` if that cannot be read.
    pub(in crate::cli) async fn read(
        client: &Client,
        controller_kind: ControllerKind,
        namespace: &str,
        job: &str,
    ) -> Option<Self> {
        let found = unfinished::read_with_pods(client, controller_kind, namespace, job).await?;
        Some(Self::of(&found))
    }

    /// The command that prints the log of its first failed container.
    pub(crate) fn logs(&self) -> Option<&str> {
        self.containers.first().map(|failed| &*failed.logs)
    }

    /// As lines below what it explains; `flags` choose the cluster.
    pub(in crate::cli) fn lines(&self, flags: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.reason.is_empty() {
            lines.push(format!("  {}: {}", self.reason, self.message));
        }
        for failed in &self.containers {
            let FailedContainer { pod, container, is_init, reason, exit_code, logs } = failed;
            let init = if *is_init { "init " } else { "" };
            lines.push(format!("  Pod {pod}, {init}container {container}: {reason}, exit code {exit_code}"));
            lines.push(format!("  {logs}{flags}"));
        }
        if let Some(error) = &self.pods_unread {
            lines.push(format!("  Its Pods cannot be read, so the container that failed is not known: {error}"));
        } else if self.containers.is_empty() {
            lines.push("  None of its failed Pods exists any more.".to_owned());
        }
        lines
    }
}

fn failed_containers(pod: &Pod) -> Vec<FailedContainer> {
    let status = pod.status.clone().unwrap_or_default();
    let failed = |(status, init): (&ContainerStatus, &str)| {
        let ended = |state: &Option<ContainerState>| state.as_ref().and_then(|state| state.terminated.clone());
        let current = ended(&status.state);
        let is_previous = current.is_none();
        let ended = current.or_else(|| ended(&status.last_state)).filter(|ended| ended.exit_code != 0)?;
        Some(FailedContainer {
            logs: unfinished::logs(pod, &status.name, is_previous),
            pod: pod.metadata.name.clone().unwrap_or_default(),
            container: status.name.clone(),
            is_init: !init.is_empty(),
            reason: ended.reason.unwrap_or_else(|| "Error".to_owned()),
            exit_code: ended.exit_code,
        })
    };
    unfinished::all_containers(&status).filter_map(failed).collect()
}

#[cfg(test)]
mod tests;
