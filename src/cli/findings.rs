//! Everything that is not fine: `explain` without a name.
//!
//! Guarantees: a CronJob is fine if it waits for its next run and its last one did not fail, or if a user has stopped it. The
//! others are explained, the worst first, with why the last run failed. Pure, except for [`find`].

use apimachinery::clock::Clock;
use chrono::{DateTime, Utc};
use kube::Client;
use serde::Serialize;

use super::CliError;
use super::cluster::{self, ControllerFlags, Scope, Unread};
use super::explain::cluster_flags;
use super::explain::{Explanation, Urgency, explain};
use super::list::sort;
use super::output::{NO_CRON_JOBS, Report, count};
use super::unfinished::Unfinished;

/// All that is not fine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// The number of CronJobs that were looked at.
    #[serde(rename = "cronJobCount")]
    cron_jobs: usize,
    /// How many of them a user has stopped.
    stopped: usize,
    /// The worst first.
    #[serde(rename = "findings")]
    worst_first: Vec<Explanation>,
    /// What is not known of them.
    #[serde(flatten)]
    unread: Unread,
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
            _ if self.cron_jobs == 0 => vec![NO_CRON_JOBS.to_owned()],
            0 => vec![format!("Nothing needs attention: {all}{stopped}.")],
            1 => vec![format!("1 of {all} needs attention{stopped}.")],
            number => vec![format!("{number} of {all} need attention, the worst first{stopped}.")],
        };
        for explanation in &self.worst_first {
            let Explanation { kind, namespace, name, summary, state, .. } = explanation;
            lines.extend([String::new(), format!("{kind} {namespace}/{name} ({}): {summary}", state.label())]);
            let unfinished = explanation.unfinished.iter().flat_map(Unfinished::lines);
            lines.extend(unfinished.map(|line| format!("  {line}")));
            lines.extend(explanation.failure.iter().flat_map(|failure| failure.lines(&explanation.shell.flags)));
            let warning = explanation.warnings.first();
            lines.extend(warning.map(|warning| format!("  Warning {}: {}", warning.reason, warning.message)));
        }
        lines.extend(self.unread.lines());
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
    let (known, not_decoded) = cluster::read_all(client, scope.controller_kind, namespace, None, flags).await?;
    let mut explanations: Vec<Explanation> = known.iter().map(|known| explain(&known.facts, flags.zone, now)).collect();
    sort(&mut explanations);
    let stopped = explanations.iter().filter(|one| one.state.urgency() == Urgency::Stopped).count();
    let mut worst_first = Vec::new();
    for mut explanation in explanations.into_iter().filter(|one| one.state.urgency() < Urgency::Fine) {
        explanation.shell.flags = cluster_flags(scope.kubeconfig.as_deref(), scope.context.as_deref());
        explanation.read_unfinished(client, scope.controller_kind).await;
        explanation.read_failure(client, scope.controller_kind).await;
        worst_first.push(explanation);
    }
    Ok(Findings { cron_jobs: known.len(), stopped, worst_first, unread: Unread::of(&known, not_decoded) })
}

#[cfg(test)]
mod tests;
