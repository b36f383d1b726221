//! Everything that is not fine: `explain` without a name.
//!
//! Guarantees: a CronJob is fine if it waits for its next run and its last one did not fail, or if a user has stopped it. The
//! others are explained, the worst first. For a failed run the Job's own reason is given, and for each of its failed Pods the
//! container, the reason, the exit code and the command that prints its log. Pure, except for [`find`].

use apimachinery::clock::Clock;
use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Client;
use serde::Serialize;

use super::CliError;
use super::cluster::{self, ControllerFlags, Scope};
use super::explain::{Explanation, explain};
use super::list::{Urgency, sort, state_name};
use super::output::{Report, count};
use super::unfinished::{self, Unfinished};
use crate::api::ControllerKind;

/// All that is not fine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// The number of CronJobs that were looked at.
    cron_jobs: usize,
    /// How many of them a user has stopped.
    stopped: usize,
    /// The worst first.
    #[serde(rename = "findings")]
    worst_first: Vec<Finding>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    #[serde(flatten)]
    explanation: Explanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

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
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailedContainer {
    pod: String,
    container: String,
    reason: String,
    exit_code: i32,
    /// The command that prints its log.
    logs: String,
}

impl Failure {
    /// Why the Job failed, from the Job and its Pods.
    fn of(job: &batch::Job, pods: &[Pod]) -> Self {
        let conditions = job.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        let mut failed = conditions.filter(|condition| condition.type_ == "Failed" && condition.status == "True");
        let (reason, message) =
            failed.next().map(|failed| (failed.reason.clone(), failed.message.clone())).unwrap_or_default();
        Self {
            reason: reason.unwrap_or_default(),
            message: message.unwrap_or_default(),
            containers: pods.iter().flat_map(failed_containers).collect(),
        }
    }

    /// Why the Job (or Pod) failed; `None` if that cannot be read.
    pub(super) async fn read(
        client: &Client,
        controller_kind: ControllerKind,
        namespace: &str,
        job: &str,
    ) -> Option<Self> {
        let (job, pods) = unfinished::read_with_pods(client, controller_kind, namespace, job).await?;
        Some(Self::of(&job, &pods))
    }

    /// As lines below what it explains.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.reason.is_empty() {
            lines.push(format!("  {}: {}", self.reason, self.message));
        }
        for failed in &self.containers {
            let FailedContainer { pod, container, reason, exit_code, logs } = failed;
            lines.push(format!("  Pod {pod}, container {container}: {reason}, exit code {exit_code}"));
            lines.push(format!("  {logs}"));
        }
        if self.containers.is_empty() {
            lines.push("  None of its failed Pods exists any more.".to_owned());
        }
        lines
    }
}

fn failed_containers(pod: &Pod) -> Vec<FailedContainer> {
    let status = pod.status.clone().unwrap_or_default();
    let statuses = status.init_container_statuses.into_iter().chain(status.container_statuses).flatten();
    let (name, namespace) =
        (pod.metadata.name.clone().unwrap_or_default(), pod.metadata.namespace.clone().unwrap_or_default());
    let failed = |status: ContainerStatus| {
        let is_current = status.state.as_ref().is_some_and(|state| state.terminated.is_some());
        let ended = status.state.and_then(|state| state.terminated);
        let ended = ended.or_else(|| status.last_state.and_then(|state| state.terminated));
        let ended = ended.filter(|ended| ended.exit_code != 0)?;
        let previous = if is_current { "" } else { " --previous" };
        let container = status.name;
        Some(FailedContainer {
            logs: format!("kubectl logs -n {namespace} {name} -c {container}{previous}"),
            pod: name.clone(),
            container,
            reason: ended.reason.unwrap_or_else(|| "Error".to_owned()),
            exit_code: ended.exit_code,
        })
    };
    statuses.filter_map(failed).collect()
}

impl Report for Findings {
    fn lines(&self) -> Vec<String> {
        let stopped = if self.stopped > 0 {
            format!(", {} suspended, frozen or being deleted", self.stopped)
        } else {
            String::new()
        };
        let all = count(self.cron_jobs, "CronJob");
        let mut lines = match self.worst_first.len() {
            0 => vec![format!("Nothing needs attention: {all}{stopped}.")],
            number => vec![format!("{number} of {all} need attention, the worst first{stopped}.")],
        };
        for Finding { explanation, failure } in &self.worst_first {
            let Explanation { kind, namespace, name, summary, state, .. } = explanation;
            lines.extend([String::new(), format!("{kind} {namespace}/{name} ({}): {summary}", state_name(*state))]);
            let unfinished = explanation.unfinished.iter().flat_map(Unfinished::lines);
            lines.extend(unfinished.map(|line| format!("  {line}")));
            lines.extend(failure.iter().flat_map(Failure::lines));
            let warning = explanation.warnings.first();
            lines.extend(warning.map(|warning| format!("  Warning {}: {}", warning.reason, warning.message)));
        }
        lines
    }
}

/// Reads the CronJobs of `scope` and explains those that are not fine.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn find(scope: &Scope, flags: &ControllerFlags, clock: &dyn Clock) -> Result<Findings, CliError> {
    let (client, namespace) = scope.connect().await?;
    let now = cluster::now(&client, clock).await;
    find_with(&client, scope, namespace.as_deref(), flags, now).await
}

pub(super) async fn find_with(
    client: &Client,
    scope: &Scope,
    namespace: Option<&str>,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Result<Findings, CliError> {
    let known = cluster::read_all(client, scope.controller_kind, namespace, None, flags).await?;
    let mut explanations: Vec<Explanation> = known.iter().map(|known| explain(&known.facts, flags.zone, now)).collect();
    sort(&mut explanations);
    let stopped = explanations.iter().filter(|one| Urgency::of(one) == Urgency::Stopped).count();
    let mut worst_first = Vec::new();
    for mut explanation in explanations.into_iter().filter(|one| Urgency::of(one) < Urgency::Fine) {
        explanation.read_unfinished(client, scope.controller_kind).await;
        let failure = match &explanation.last_failed_job {
            Some(job) => Failure::read(client, scope.controller_kind, &explanation.namespace, job).await,
            None => None,
        };
        worst_first.push(Finding { explanation, failure });
    }
    Ok(Findings { cron_jobs: known.len(), stopped, worst_first })
}

#[cfg(test)]
mod tests;
