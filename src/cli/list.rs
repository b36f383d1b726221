//! The state of all CronJobs, the worst first.
//!
//! Guarantees: each state is that of `explain`, each cell of a strip is a slot of `explain --since`, and the banners are the page's.
//! CronJobs in the same condition are sorted by namespace and name. On a terminal no line is longer than the terminal, and the worst
//! ones are last, above the banners and the prompt. Pure, except for [`read`] and [`watch`].

pub(crate) mod next_hour;
pub(crate) mod night;
mod table;

use std::collections::HashMap;
use std::time::Duration;

use apimachinery::clock::Clock;
use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use kube::Client;
use schedule::Zone;
use serde::Serialize;
use tokio::time::Instant;

use super::CliError;
use super::banners::{Concern, Refusal, banners, outage};
use super::cluster::{self, ControllerFlags, Known, Scope, Unread};
use super::explain::lease::ControllerLease;
use super::explain::read::ReadError;
use super::explain::{Explanation, Facts, InCharge, NoSuccess, State, Urgency, some_of};
use super::output::{Format, NO_CRON_JOBS, Report, Screen, progress, render, stretch};
use super::restrictions::Freeze;
use super::slots::{History, Judged, STRIP};
use crate::api::ControllerKind;
use crate::terminal::{self, PlainText};

/// How often [`watch`] reads.
const PERIOD: Duration = Duration::from_secs(2);
/// A read that takes longer, and three times as long as the last one, has no answer.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// What keeps several of them from running, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    banners: Vec<String>,
    /// What is not known of them.
    #[serde(flatten)]
    unread: Unread,
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
    /// When the run became due that starts next, late.
    #[serde(skip)]
    late_since: Option<DateTime<Utc>>,
    /// The running Jobs because of which it does not start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_by: Vec<String>,
    /// The freeze of its Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    freeze: Option<Freeze>,
    /// Since when it has had no success, if it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_success: Option<NoSuccess>,
    /// Since when it is not fine, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// With what the API server refuses its Jobs.
    #[serde(skip)]
    refusal: Option<Refusal>,
    /// The newest slots, the oldest first.
    #[serde(skip)]
    strip: String,
}

impl Entry {
    /// What a banner may say of it.
    fn concern(&self) -> Concern<'_> {
        let (namespace, urgency, refusal) = (&*self.namespace, self.state.urgency(), self.refusal.as_ref());
        Concern { namespace, in_charge: self.controller, urgency, refusal }
    }

    fn new(explanation: Explanation, strip: String, refusal: Option<Refusal>) -> Self {
        let since = explanation.since();
        let next_run = explanation.next_start();
        let is_blocked = explanation.state.urgency() == Urgency::Blocked;
        let (last_run, last_outcome) = explanation.last_run.map(|run| (run.time, run.outcome)).unzip();
        Self {
            namespace: explanation.namespace,
            name: explanation.name,
            controller: explanation.controller,
            state: explanation.state,
            next_run,
            no_success: explanation.no_success,
            since,
            refusal,
            strip,
            last_run,
            last_outcome,
            due_since: explanation.due_since,
            late_since: explanation.late_since,
            freeze: explanation.freeze,
            blocked_by: explanation.active.into_iter().filter(|_| is_blocked).map(|active| active.name).collect(),
        }
    }
}

/// Lists CronJobs as of `now`. `local` is the zone of the controller.
pub fn listing(known: &[Known], local: Zone, now: DateTime<Utc>) -> Listing {
    listing_of(known, Vec::new(), local, now)
}

/// The same, where others cannot be decoded.
pub fn listing_of(known: &[Known], not_decoded: Vec<String>, local: Zone, now: DateTime<Utc>) -> Listing {
    let entry = |known: &Known| {
        let history = History::new(known, local, now);
        let strip = history.newest(STRIP).iter().map(Judged::letter).collect();
        let refusal = Refusal::of(&history.explanation, &known.facts);
        Entry::new(history.explanation, strip, refusal)
    };
    let mut cron_jobs: Vec<Entry> = known.iter().map(entry).collect();
    cron_jobs.sort_by(|a, b| {
        let key = |entry: &Entry| entry.state.urgency();
        key(a).cmp(&key(b)).then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
    });
    let (banners, unread) = (banners_of(&cron_jobs, known, now), Unread::of(known, not_decoded));
    Listing { cron_jobs, banners, unread, now }
}

/// What keeps several CronJobs from running, in sentences.
fn banners_of(cron_jobs: &[Entry], known: &[Known], now: DateTime<Utc>) -> Vec<String> {
    let of = |known: &Known| {
        let Facts { cron_job, in_charge, lease, .. } = &known.facts;
        ((cron_job.name.namespace.to_string(), *in_charge as u8), lease.clone())
    };
    let leases: HashMap<(String, u8), Option<ControllerLease>> = known.iter().map(of).collect();
    let lease = |namespace: &str, in_charge: InCharge| leases.get(&(namespace.to_owned(), in_charge as u8))?.clone();
    let are_read = known.iter().all(|known| known.facts.leases_unread.is_none());
    let banners = banners(cron_jobs.iter().map(Entry::concern), are_read.then_some(&lease), now);
    banners.into_iter().map(|banner| banner.text).collect()
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
                entry.late_since.map_or_else(none, |since| stretch(self.now - since)),
                if let Some(freeze) = &entry.freeze {
                    freeze.to_string()
                } else if entry.blocked_by.is_empty() {
                    none()
                } else {
                    some_of(entry.blocked_by.iter().cloned(), entry.blocked_by.len())
                },
                entry.since.clone().unwrap_or_else(none),
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
                table::on_screen(self.rows(), &urgencies, &self.unread.lines(), &self.banners, screen)
            }
            None => render(self, format),
        }
    }
}

impl Report for Listing {
    fn lines(&self) -> Vec<String> {
        if self.cron_jobs.is_empty() {
            return std::iter::once(NO_CRON_JOBS.to_owned()).chain(self.unread.lines()).collect();
        }
        let mut rows = self.rows();
        rows.insert(0, table::COLUMNS.map(str::to_owned));
        let mut lines = terminal::columns(&rows);
        lines.extend(self.unread.lines().into_iter().chain(self.banners.iter().cloned()));
        lines
    }
}

/// Reads the CronJobs, and reports of what is known of them, of those that cannot be decoded, and of the time.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn read<R>(
    scope: &Scope,
    flags: &ControllerFlags,
    clock: &dyn Clock,
    report: impl FnOnce(&[Known], Vec<String>, DateTime<Utc>) -> R,
) -> Result<R, CliError> {
    let (client, namespace) = scope.connect().await?;
    let place = (scope.controller_kind, namespace.as_deref());
    let (known, not_decoded) = cluster::read_all(&client, place.0, place.1, None, flags).await?;
    Ok(report(&known, not_decoded, cluster::now(&client, clock).await))
}

/// Lists the CronJobs, and again whenever the state of one changes or a run starts, until `print` returns false. While the cluster
/// cannot be read, that is said once, and a line on a terminal says for how long.
///
/// # Errors
/// When the cluster cannot be read at first.
pub async fn watch(
    scope: &Scope,
    flags: &ControllerFlags,
    format: Format,
    screen: Option<Screen>,
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
) -> Result<(), CliError> {
    let (client, namespace) = scope.connect().await?;
    let place = (scope.controller_kind, namespace.as_deref());
    watch_with(&client, place, flags, (format, screen), clock, print, &mut progress).await
}

/// The same over a client. `age` shows for how long the cluster could not be read, in place of what it showed before; an empty text takes
/// that away.
async fn watch_with(
    client: &Client,
    (controller_kind, namespace): (ControllerKind, Option<&str>),
    flags: &ControllerFlags,
    (format, screen): (Format, Option<Screen>),
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
    age: &mut dyn FnMut(&str),
) -> Result<(), CliError> {
    let (mut before, mut read_at, mut is_lost) = (None, None, false);
    let mut patience = PATIENCE;
    loop {
        let began = Instant::now();
        let read = async {
            let known = cluster::read_all(client, controller_kind, namespace, None, flags).await?;
            Ok::<_, ReadError>((known, cluster::now(client, clock).await))
        };
        // A server that is stopped keeps its connections, and answers on none.
        let known = match read_at {
            None => Ok(read.await?),
            Some(since) => match tokio::time::timeout(patience, read).await {
                Ok(known) => known.map_err(|error| (since, error.to_string())),
                Err(_) => Err((since, "the API server does not answer".to_owned())),
            },
        };
        let (known, now) = match known {
            Ok(known) => known,
            Err(((since, at), error)) => {
                let lost = outage(since, &error, flags.zone);
                if !is_lost && format == Format::Table && !print(&PlainText::lines([lost])) {
                    return Ok(());
                }
                is_lost = true;
                let lasts = TimeDelta::from_std(Instant::elapsed(&at)).unwrap_or(TimeDelta::MAX);
                age(&format!("Not live for {}.", stretch(lasts)));
                tokio::time::sleep(PERIOD).await;
                continue;
            }
        };
        patience = PATIENCE.max(began.elapsed() * 3);
        let (known, not_decoded) = known;
        let listing = listing_of(&known, not_decoded, flags.zone, now);
        let seen: Vec<_> = listing.cron_jobs.iter().map(signature).collect();
        let was_lost = std::mem::take(&mut is_lost);
        if was_lost {
            age("");
        }
        read_at = Some((now, began));
        if before.as_ref() != Some(&seen) || was_lost {
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
