//! The state of all CronJobs, the worst first.
//!
//! Guarantees: each state is that of `explain`, and each cell of a strip is a slot of `explain --since`. CronJobs in the same condition
//! are sorted by namespace and name. On a terminal no line is longer than the terminal, and the worst ones are last, above the
//! prompt. Pure, except for [`read`] and [`watch`].

pub(crate) mod next_hour;
pub(crate) mod night;
mod table;

use std::time::Duration;

use apimachinery::clock::Clock;
use chrono::{DateTime, FixedOffset, Utc};
use schedule::Zone;
use serde::Serialize;

use super::CliError;
use super::cluster::{self, ControllerFlags, Known, Scope};
use super::explain::{Explanation, InCharge, NoSuccess, State, Urgency, some_of};
use super::output::{Format, Report, Screen, render, stretch};
use super::restrictions::Freeze;
use super::slots::{History, Judged, STRIP};
use crate::terminal::{self, PlainText};

/// How often [`watch`] reads.
const PERIOD: Duration = Duration::from_secs(2);

/// Sorts explanations, the worst first.
pub(super) fn sort(explanations: &mut [Explanation]) {
    explanations.sort_by(|a, b| {
        let key = |explanation: &Explanation| explanation.state.urgency();
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
    /// Since when it has had no success, if it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_success: Option<NoSuccess>,
    /// The newest slots, the oldest first.
    #[serde(skip)]
    strip: String,
}

impl Entry {
    fn new(explanation: Explanation, strip: String) -> Self {
        let is_blocked = explanation.state.urgency() == Urgency::Blocked;
        let (last_run, last_outcome) = explanation.last_run.map(|run| (run.time, run.outcome)).unzip();
        Self {
            namespace: explanation.namespace,
            name: explanation.name,
            controller: explanation.controller,
            state: explanation.state,
            next_run: explanation.next_run.map(|run| run.time).filter(|_| !explanation.by_schedule.is_held()),
            no_success: explanation.no_success,
            strip,
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
    let entry = |known: &Known| {
        let history = History::new(known, local, now);
        let strip = history.newest(STRIP).iter().map(Judged::letter).collect();
        Entry::new(history.explanation, strip)
    };
    let mut cron_jobs: Vec<Entry> = known.iter().map(entry).collect();
    cron_jobs.sort_by(|a, b| {
        let key = |entry: &Entry| entry.state.urgency();
        key(a).cmp(&key(b)).then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
    });
    Listing { cron_jobs, now }
}

impl Listing {
    fn rows(&self) -> Vec<table::Row> {
        let row = |entry: &Entry| {
            let none = || "-".to_owned();
            let last = entry.last_run.map(|time| format!("{} ago", stretch(self.now - time.to_utc())));
            let outcome = entry.last_outcome.as_ref().map(|outcome| format!(", {outcome}")).unwrap_or_default();
            let next = |time: DateTime<FixedOffset>| format!("in {}", stretch(time.to_utc() - self.now));
            [
                format!("{}/{}", entry.namespace, entry.name),
                entry.controller.word().to_owned(),
                entry.state.label().to_owned(),
                entry.next_run.map_or_else(none, next),
                last.map_or_else(none, |last| last + &outcome),
                entry.due_since.map_or_else(none, |since| stretch(self.now - since)),
                if let Some(freeze) = &entry.freeze {
                    freeze.to_string()
                } else if entry.blocked_by.is_empty() {
                    none()
                } else {
                    some_of(entry.blocked_by.iter().cloned(), entry.blocked_by.len())
                },
                entry.strip.clone(),
            ]
        };
        self.cron_jobs.iter().map(row).collect()
    }

    /// In the given format; a table fits the terminal, if there is one.
    pub fn shown(&self, format: Format, screen: Option<Screen>) -> PlainText {
        match screen.filter(|_| format == Format::Table && !self.cron_jobs.is_empty()) {
            Some(screen) => {
                let urgencies: Vec<Urgency> = self.cron_jobs.iter().map(|entry| entry.state.urgency()).collect();
                table::on_screen(self.rows(), &urgencies, screen)
            }
            None => render(self, format),
        }
    }
}

impl Report for Listing {
    fn lines(&self) -> Vec<String> {
        if self.cron_jobs.is_empty() {
            return vec!["There are no CronJobs.".to_owned()];
        }
        let mut rows = self.rows();
        rows.insert(0, table::COLUMNS.map(str::to_owned));
        terminal::columns(&rows)
    }
}

/// Reads the CronJobs, and reports of what is known of them and of the time.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn read<R>(
    scope: &Scope,
    flags: &ControllerFlags,
    clock: &dyn Clock,
    report: impl FnOnce(&[Known], DateTime<Utc>) -> R,
) -> Result<R, CliError> {
    let (client, namespace) = scope.connect().await?;
    let known = cluster::read_all(&client, scope.controller_kind, namespace.as_deref(), None, flags).await?;
    Ok(report(&known, cluster::now(&client, clock).await))
}

/// A report in the given format; its lines fit the terminal, if there is one.
pub fn fitting(report: &impl Report, format: Format, screen: Option<Screen>) -> PlainText {
    match screen.filter(|_| format == Format::Table) {
        Some(screen) => PlainText::lines(report.lines().iter().flat_map(|line| table::folded(line, screen.width))),
        None => render(report, format),
    }
}

/// Lists the CronJobs, and again whenever the state of one changes or a run starts, until `print` returns false.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn watch(
    scope: &Scope,
    flags: &ControllerFlags,
    format: Format,
    screen: Option<Screen>,
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
            if !is_separated || !print(&listing.shown(format, screen)) {
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
