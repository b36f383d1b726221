//! The state of all CronJobs, the worst first.
//!
//! Guarantees: each state is that of `explain`. CronJobs in the same condition are sorted by namespace and name. Pure, except
//! for [`watch`].

use std::time::Duration;

use apimachinery::clock::Clock;
use chrono::{DateTime, FixedOffset, Utc};
use schedule::Zone;
use serde::Serialize;

use super::CliError;
use super::cluster::{self, ControllerFlags, Known, Scope};
use super::explain::{Explanation, InCharge, State, explain, some_of};
use super::output::{Format, Report, render, stretch};
use super::restrictions::Freeze;
use crate::terminal::{self, PlainText};

/// How often [`watch`] reads.
const PERIOD: Duration = Duration::from_secs(2);

/// How much attention a CronJob needs, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Urgency {
    /// A run is due, and no controller starts it.
    Overdue,
    /// It cannot run.
    Stuck,
    /// A running Job blocks a run that is due.
    Blocked,
    /// The last run that ended failed.
    Failed,
    /// It runs on schedule.
    Fine,
    /// A user has stopped it.
    Stopped,
}

impl Urgency {
    /// The urgency of what was explained.
    pub(crate) fn of(explanation: &Explanation) -> Self {
        let failed = explanation.last_failed_job.is_some();
        match explanation.state {
            State::Overdue => Self::Overdue,
            State::Blocked => Self::Blocked,
            State::Failing => Self::Failed,
            State::Starting | State::Waiting if failed => Self::Failed,
            State::Starting | State::Waiting => Self::Fine,
            State::Suspended | State::BeingDeleted | State::Frozen => Self::Stopped,
            _ => Self::Stuck,
        }
    }
}

/// Sorts explanations, the worst first.
pub(super) fn sort(explanations: &mut [Explanation]) {
    explanations.sort_by(|a, b| {
        let key = |explanation: &Explanation| Urgency::of(explanation);
        key(a).cmp(&key(b)).then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
    });
}

/// All CronJobs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The worst first.
    cron_jobs: Vec<Entry>,
    #[serde(skip)]
    now: DateTime<Utc>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    namespace: String,
    name: String,
    /// Which controller runs it.
    controller: InCharge,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_run: Option<DateTime<FixedOffset>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_run: Option<DateTime<FixedOffset>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_outcome: Option<String>,
    /// Since when a run is due that has not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_since: Option<DateTime<Utc>>,
    /// The running Jobs because of which it does not start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_by: Vec<String>,
    /// The freeze of its Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    freeze: Option<Freeze>,
}

impl From<Explanation> for Entry {
    fn from(explanation: Explanation) -> Self {
        let is_blocked = explanation.state == State::Blocked;
        let (last_run, last_outcome) = explanation.last_run.map(|run| (run.time, run.outcome)).unzip();
        Self {
            namespace: explanation.namespace,
            name: explanation.name,
            controller: explanation.controller,
            state: explanation.state,
            next_run: explanation.next_run.map(|run| run.time),
            last_run,
            last_outcome,
            due_since: explanation.due_since,
            freeze: explanation.freeze,
            blocked_by: explanation.active.into_iter().filter(|_| is_blocked).map(|active| active.name).collect(),
        }
    }
}

/// Lists CronJobs as of `now`. `local` is the zone of the controller.
pub fn listing(known: &[Known], local: Zone, now: DateTime<Utc>) -> Listing {
    let mut explanations: Vec<Explanation> = known.iter().map(|known| explain(&known.facts, local, now)).collect();
    sort(&mut explanations);
    Listing { cron_jobs: explanations.into_iter().map(Entry::from).collect(), now }
}

impl Listing {
    fn rows(&self) -> Vec<[String; 7]> {
        let heading = ["CRONJOB", "CONTROLLER", "STATE", "NEXT", "LAST", "LATE", "BLOCKED BY"].map(str::to_owned);
        let row = |entry: &Entry| {
            let none = || "-".to_owned();
            let last = entry.last_run.map(|time| format!("{} ago", stretch(self.now - time.to_utc())));
            let outcome = entry.last_outcome.as_ref().map(|outcome| format!(", {outcome}")).unwrap_or_default();
            [
                format!("{}/{}", entry.namespace, entry.name),
                entry.controller.word().to_owned(),
                state_name(entry.state),
                entry.next_run.map_or_else(none, |time| format!("in {}", stretch(time.to_utc() - self.now))),
                last.map_or_else(none, |last| last + &outcome),
                entry.due_since.map_or_else(none, |since| stretch(self.now - since)),
                if let Some(freeze) = &entry.freeze {
                    freeze.to_string()
                } else if entry.blocked_by.is_empty() {
                    none()
                } else {
                    some_of(entry.blocked_by.iter().cloned(), entry.blocked_by.len())
                },
            ]
        };
        std::iter::once(heading).chain(self.cron_jobs.iter().map(row)).collect()
    }
}

impl Report for Listing {
    fn lines(&self) -> Vec<String> {
        if self.cron_jobs.is_empty() {
            return vec!["There are no CronJobs.".to_owned()];
        }
        terminal::columns(&self.rows())
    }
}

/// The name of a state, as in JSON.
pub(super) fn state_name(state: State) -> String {
    serde_json::to_value(state).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Reads the CronJobs and lists them.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn list(scope: &Scope, flags: &ControllerFlags, clock: &dyn Clock) -> Result<Listing, CliError> {
    let (client, namespace) = scope.connect().await?;
    let known = cluster::read_all(&client, scope.controller_kind, namespace.as_deref(), None, flags).await?;
    Ok(listing(&known, flags.zone, cluster::now(&client, clock).await))
}

/// Lists the CronJobs, and again whenever the state of one changes or a run starts, until `print` returns false.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn watch(
    scope: &Scope,
    flags: &ControllerFlags,
    format: Format,
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
) -> Result<(), CliError> {
    let (client, namespace) = scope.connect().await?;
    let mut before = None;
    loop {
        let known = cluster::read_all(&client, scope.controller_kind, namespace.as_deref(), None, flags).await?;
        let listing = listing(&known, flags.zone, cluster::now(&client, clock).await);
        let seen: Vec<_> = listing.cron_jobs.iter().map(signature).collect();
        if before.as_ref() != Some(&seen) {
            let is_separated = before.is_none() || format != Format::Table || print(&PlainText::lines([""]));
            if !is_separated || !print(&render(&listing, format)) {
                return Ok(());
            }
            before = Some(seen);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// What of an entry does not change by the passing of time alone.
fn signature(entry: &Entry) -> (String, String, State, Option<DateTime<FixedOffset>>, Vec<String>) {
    let Entry { namespace, name, state, last_run, blocked_by, .. } = entry;
    (namespace.clone(), name.clone(), *state, *last_run, blocked_by.clone())
}

#[cfg(test)]
mod tests;
