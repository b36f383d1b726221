//! The rows of the table: one for each CronJob, computed ahead of the requests.
//!
//! Guarantees: a row says what `explain` says. It is computed again when its CronJob, a Job or an Event of it changes, and when
//! time changes its words; not while what is known is old. Readers get a whole model and never wait for the next one. Changes within
//! a quarter of a second make one model.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join;
use parking_lot::{Mutex, RwLock};
use schedule::Zone;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::connection::Outage;
use super::objects::{About, WatchedCronJob};
use super::source::Source;
use crate::api::ObjectName;
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, Job};
use crate::cli::banners::{Concern, Refusal};
pub use crate::cli::explain::Shell;
use crate::cli::explain::{Case, Explanation, InCharge, NoSuccess, State, Urgency};
use crate::cli::forecast::Durations;
use crate::cli::restrictions::Freeze;
use crate::cli::slots::{Fate, History, Judged, RunResult, STRIP};
use crate::cli::words;
use crate::controller::cron_job_stats::CronJobStats;
use crate::terminal::countdown;

/// How long changes are collected.
const COALESCE: Duration = Duration::from_millis(250);
/// How often the rows are looked through for those that time changes.
const TICK: Duration = Duration::from_secs(1);
/// How long the words of a CronJob that waits stay true at most.
const LONGEST: TimeDelta = TimeDelta::minutes(5);
/// The time for which passed slots are counted, and the most of them.
const PASSED_FOR: TimeDelta = TimeDelta::hours(24);
const PASSED_AT_MOST: usize = 2_000;
/// So many counts of passed slots are remembered.
const REMEMBERED: usize = 1_000;

/// One CronJob.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its state, as `explain` names it.
    pub state: State,
    /// The same in words.
    pub label: &'static str,
    /// How much attention it needs.
    pub urgency: Urgency,
    /// The state in `explain`'s words, and then who runs it.
    pub summary: String,
    /// The schedule by which it runs: the lines of the annotation if it has any.
    pub schedule: String,
    /// The zone of the schedule.
    pub time_zone: Option<&'static str>,
    /// The schedule in words.
    pub words: Option<String>,
    /// The next run, unless it waits for something other than time.
    pub next: Option<Next>,
    /// What the run that is due waits for.
    pub held: Option<String>,
    /// The last run.
    pub last: Option<Last>,
    /// The delays of the runs whose Jobs still exist.
    pub lateness: Option<Lateness>,
    /// How long the runs took that succeeded and whose Jobs still exist.
    pub durations: Option<Durations>,
    /// How many runs have failed since the last one that succeeded, of those whose Jobs or Events still exist.
    pub failures: u64,
    /// Since when it has had no success, if it fails.
    pub no_success: Option<NoSuccess>,
    /// Whether a run has ended, and none with success.
    pub never_succeeded: bool,
    /// What differs from a plain CronJob.
    pub policies: Vec<Chip>,
    /// Since when a run is due that has not started.
    pub due_since: Option<DateTime<Utc>>,
    /// The running Jobs.
    pub running: Vec<String>,
    /// What it is grouped by.
    #[serde(skip)]
    pub about: Arc<About>,
    /// Which controller runs it.
    #[serde(skip)]
    pub in_charge: InCharge,
    /// With what the API server refuses its Jobs.
    #[serde(skip)]
    pub refusal: Option<Refusal>,
    /// The freeze of its Namespace that holds it.
    #[serde(skip)]
    pub freeze: Option<Freeze>,
    /// When time changes the words.
    #[serde(skip)]
    until: DateTime<Utc>,
}

impl Row {
    /// What a banner may say of it.
    pub fn concern(&self) -> Concern<'_> {
        let Self { namespace, in_charge, urgency, refusal, .. } = self;
        Concern { namespace, in_charge: *in_charge, urgency: *urgency, refusal: refusal.as_ref() }
    }
}

/// The next run.
#[derive(Debug, Serialize)]
pub struct Next {
    /// When it may start.
    pub due: DateTime<Utc>,
    /// The time that gives its Job its name.
    pub slot: DateTime<Utc>,
    /// What it does if nothing changes.
    pub effect: String,
}

/// The last run.
#[derive(Debug, Serialize)]
pub struct Last {
    /// Its slot.
    pub slot: DateTime<Utc>,
    /// Its Job.
    pub job: String,
    /// How it ended.
    pub result: RunResult,
    /// When it started and ended, as far as is known.
    pub started: Option<DateTime<Utc>>,
    /// See `started`.
    pub ended: Option<DateTime<Utc>>,
}

/// The delays of runs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The number of runs.
    pub runs: usize,
}

/// A policy.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Chip {
    /// The field or annotation, without its prefix.
    pub name: String,
    /// Its value, where there is one.
    pub value: String,
}

/// Slots that were passed over for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// The reason.
    pub reason: &'static str,
    /// How many.
    pub slots: usize,
}

/// All rows at one time.
#[derive(Debug, Default)]
pub struct Model {
    /// By namespace and name.
    pub rows: BTreeMap<ObjectName, Arc<Row>>,
    /// Counts the models.
    pub version: u64,
}

/// The rows, and what computes them.
pub struct Board {
    /// The facts.
    pub source: Arc<Source>,
    /// The controller's zone.
    pub zone: Zone,
    /// The controller's `--spread-seed`.
    pub seed: Arc<str>,
    /// Wall time.
    pub clock: SharedClock,
    /// How commands are written.
    pub shell: Shell,
    model: RwLock<Arc<Model>>,
    /// The version of the model.
    versions: watch::Sender<u64>,
    past: Mutex<HashMap<ObjectName, Known>>,
    /// Those that look overdue, and since when: that is said once everything up to then is known.
    doubted: Mutex<HashMap<ObjectName, DateTime<Utc>>>,
    /// Cancelled when someone has opened the page.
    pub opened: CancellationToken,
    /// Whether the source had synced, its trouble and its outage at the last version.
    status: Mutex<Option<Status>>,
}

type Status = (bool, Vec<String>, Option<Outage>);

/// The past of a CronJob, and for what it was computed.
struct Known {
    row: Arc<Row>,
    minute: i64,
    past: Arc<Past>,
}

/// The past of a CronJob.
#[derive(Debug, Default, Serialize)]
pub struct Past {
    /// The slots of the last day that were passed over, by reason.
    passed: Vec<Passed>,
    /// The newest slots, the oldest first.
    strip: Vec<Judged>,
}

impl Board {
    /// A board without rows.
    pub fn new(source: Arc<Source>, zone: Zone, seed: Arc<str>, clock: SharedClock, shell: Shell) -> Arc<Self> {
        Arc::new(Self {
            source,
            zone,
            seed,
            clock,
            shell,
            model: RwLock::default(),
            versions: watch::Sender::default(),
            past: Mutex::default(),
            doubted: Mutex::default(),
            opened: CancellationToken::new(),
            status: Mutex::default(),
        })
    }

    /// The rows as of the last computation.
    pub fn model(&self) -> Arc<Model> {
        Arc::clone(&self.model.read())
    }

    /// The time of every answer: now, or since when what is known is old.
    pub fn now(&self) -> DateTime<Utc> {
        self.source.as_of(self.clock.now())
    }

    /// Tells each new version.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    /// Computes rows until `cancel`.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let source = &self.source;
        while !cancel.is_cancelled() {
            let synced = source.has_synced();
            let board = Arc::clone(&self);
            if let Err(panic) = tokio::task::spawn_blocking(move || board.refresh()).await {
                tracing::error!(%panic, "computing the rows panicked");
            }
            let changed = async {
                let _ = tokio::time::timeout(TICK, source.changes.notify.notified()).await;
                sleep(COALESCE).await;
            };
            // The first rows must not wait.
            let complete = join(source.cron_jobs.wait_for_cache_sync(), source.jobs.wait_for_cache_sync());
            tokio::select! {
                () = cancel.cancelled() => {}
                () = changed => {}
                _ = complete, if !synced => {}
            }
        }
    }

    /// Computes the rows that have changed.
    pub fn refresh(&self) {
        let outage = self.source.outage();
        let (is_old, now, before) = (outage.is_some(), self.now(), self.model());
        // A row without all of its Jobs would say that a run is late.
        let synced = self.source.has_synced();
        let status = Some((synced, self.source.trouble(), outage));
        if is_old && before.version > 0 {
            if *self.status.lock() != status {
                *self.status.lock() = status;
                self.publish(before.rows.clone(), before.version + 1);
            }
            return;
        }
        let changed = if synced { self.source.changes.take() } else { HashSet::new() };
        let watched = if synced { self.source.cron_jobs.list() } else { Vec::new() };
        let names: HashSet<&ObjectName> = watched.iter().map(|watched| &watched.cron_job.name).collect();
        let doubted: HashSet<ObjectName> = self.doubted.lock().keys().cloned().collect();
        let is_stale = |watched: &&Arc<WatchedCronJob>| {
            let name = &watched.cron_job.name;
            changed.contains(name) || doubted.contains(name) || before.rows.get(name).is_none_or(|row| row.until <= now)
        };
        let stale: Vec<&Arc<WatchedCronJob>> = watched.iter().filter(is_stale).collect();
        let is_gone = before.rows.keys().any(|name| !names.contains(name));
        if stale.is_empty() && !is_gone && *self.status.lock() == status {
            return;
        }
        *self.status.lock() = status;
        let mut rows = before.rows.clone();
        rows.retain(|name, _| names.contains(name));
        self.doubted.lock().retain(|name, _| names.contains(name));
        rows.extend(self.beyond_doubt(&before, self.compute(&stale, now), now));
        self.publish(rows, before.version + 1);
    }

    /// Those of the rows that can be shown. A watch that is silent does not tell that a run has started, so one that looks overdue stays
    /// as it was until nothing more may have come.
    fn beyond_doubt(
        &self,
        before: &Model,
        rows: Vec<(ObjectName, Arc<Row>)>,
        now: DateTime<Utc>,
    ) -> Vec<(ObjectName, Arc<Row>)> {
        let mut doubted = self.doubted.lock();
        let can_be_shown = |(name, row): &(ObjectName, Arc<Row>)| {
            let is_new = row.urgency == Urgency::Overdue
                && !self.source.is_files()
                && before.rows.get(name).is_some_and(|row| row.urgency != Urgency::Overdue);
            let is_doubted = is_new && !self.source.knows(*doubted.entry(name.clone()).or_insert(now));
            if !is_doubted {
                doubted.remove(name);
            }
            !is_doubted
        };
        rows.into_iter().filter(can_be_shown).collect()
    }

    fn publish(&self, rows: BTreeMap<ObjectName, Arc<Row>>, version: u64) {
        *self.model.write() = Arc::new(Model { rows, version });
        self.versions.send_replace(version);
    }

    /// Computes rows on all cores.
    fn compute(&self, stale: &[&Arc<WatchedCronJob>], now: DateTime<Utc>) -> Vec<(ObjectName, Arc<Row>)> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
        let size = stale.len().div_ceil(cores).max(64);
        let row = |watched: &&Arc<WatchedCronJob>| (watched.cron_job.name.clone(), Arc::new(self.row(watched, now)));
        std::thread::scope(|scope| {
            let parts: Vec<_> =
                stale.chunks(size).map(|part| scope.spawn(move || part.iter().map(row).collect::<Vec<_>>())).collect();
            parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
        })
    }

    fn row(&self, watched: &WatchedCronJob, now: DateTime<Utc>) -> Row {
        let known = self.source.known(watched, self.zone, now);
        let case = Case::new(&known.facts, self.zone, now);
        let told = case.explain();
        let cron_job = &known.facts.cron_job;
        let children: Vec<Arc<Job>> =
            known.facts.jobs.iter().filter(|job| job.is_child_of(cron_job)).cloned().collect();
        let stats = CronJobStats::open(cron_job, &children, now);
        let (held, refusal) = (held(&told), Refusal::of(&told, &known.facts));
        let will_start = told.next_start().is_some();
        let next = told.next_run.filter(|_| held.is_none() && will_start).map(|run| {
            let due = run.time.to_utc();
            Next { due, slot: cron_job.nominal(due), effect: run.effect }
        });
        let last = case.last_slot().map(|slot| self.last(&case, cron_job, slot));
        let has_ended = last.as_ref().is_some_and(|last| !last.result.is_under_way())
            || children.iter().any(|job| job.finished.is_some());
        Row {
            urgency: told.state.urgency(),
            label: told.state.label(),
            until: until(told.state, next.as_ref(), now).min(until(told.by_schedule, next.as_ref(), now)),
            words: words::of(cron_job, self.zone),
            never_succeeded: has_ended && stats.last_success.is_none(),
            failures: case.known_failures() as u64,
            no_success: told.no_success,
            lateness: lateness(cron_job, &children),
            durations: Durations::of(&children, now),
            policies: chips(watched),
            namespace: told.namespace,
            name: told.name,
            state: told.state,
            // Who runs it comes after what it is said of.
            summary: format!("{} {}", told.why, told.who.replace("What follows holds", "This holds")),
            schedule: told.schedule,
            time_zone: cron_job.own_zone(self.zone).map(Zone::name),
            due_since: told.due_since,
            running: told.active.into_iter().map(|active| active.name).collect(),
            about: Arc::clone(&watched.about),
            in_charge: told.controller,
            freeze: told.freeze,
            refusal,
            next,
            held,
            last,
        }
    }

    fn last(&self, case: &Case<'_>, cron_job: &CronJob, slot: DateTime<Utc>) -> Last {
        let job = case.job_of(slot);
        let name = cron_job.controller_kind.child_name(&cron_job.name.name, slot);
        Last {
            slot,
            result: job.map_or(RunResult::Gone, |job| RunResult::of(job)),
            started: job.map(|job| job.began()),
            ended: job.and_then(|job| self.source.jobs.get(&job.name)?.ended),
            job: name,
        }
    }

    /// The past of a CronJob.
    pub fn past(&self, row: &Arc<Row>) -> Arc<Past> {
        let now = self.now();
        let minute = now.timestamp() / 60;
        let name = ObjectName::new(row.namespace.as_str(), row.name.as_str());
        if let Some(known) = self.past.lock().get(&name)
            && Arc::ptr_eq(&known.row, row)
            && known.minute == minute
        {
            return Arc::clone(&known.past);
        }
        let Some(watched) = self.source.cron_jobs.get(&name) else { return Arc::default() };
        let known = self.source.known(&watched, self.zone, now);
        let history = History::new(&known, self.zone, now);
        let (judged, _) = history.judged(now - PASSED_FOR, now, PASSED_AT_MOST);
        let mut counts = BTreeMap::new();
        for judged in judged.iter().filter(|judged| is_passed(judged.fate)) {
            *counts.entry(judged.reason).or_insert(0) += 1;
        }
        let passed = counts.into_iter().map(|(reason, slots)| Passed { reason, slots }).collect();
        let past = Arc::new(Past { passed, strip: history.newest(STRIP) });
        let mut remembered = self.past.lock();
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        remembered.insert(name, Known { row: Arc::clone(row), minute, past: Arc::clone(&past) });
        past
    }
}

/// Whether a slot has come and does not start any more.
fn is_passed(fate: Fate) -> bool {
    matches!(fate, Fate::Skipped | Fate::Missed | Fate::Suspended | Fate::Frozen)
}

/// What the run that is due waits for, in the words of a table's cell.
fn held(told: &Explanation) -> Option<String> {
    let first = told.active.first().map(|active| &active.name);
    Some(match told.by_schedule {
        State::Blocked | State::RunStuck => format!("when {} has ended", first.map_or("a Job", |name| name)),
        State::Paused => "when a run succeeds".to_owned(),
        State::NameTaken | State::BadTemplate => "when it is mended".to_owned(),
        _ => return None,
    })
}

/// When time changes what is said of a CronJob in this state.
fn until(state: State, next: Option<&Next>, now: DateTime<Utc>) -> DateTime<Utc> {
    let soon = match state {
        State::Starting => TimeDelta::seconds(1),
        State::Overdue | State::Blocked | State::RunStuck | State::NotStarted => TimeDelta::seconds(5),
        State::Failing | State::NeverEnds | State::PilesUp => TimeDelta::seconds(30),
        State::Suspended => TimeDelta::minutes(1),
        _ => LONGEST,
    };
    let next = next.map(|next| next.due).filter(|due| *due > now);
    next.map_or(now + soon, |due| due.min(now + soon))
}

/// The delays between slots and Jobs, less the spread.
fn lateness(cron_job: &CronJob, children: &[Arc<Job>]) -> Option<Lateness> {
    let late =
        |job: &Arc<Job>| Some((job.creation_timestamp - cron_job.due(job.slot_of(cron_job)?)).num_milliseconds());
    let mut delays: Vec<i64> = children.iter().filter_map(late).map(|delay| delay.max(0)).collect();
    delays.sort_unstable();
    let last = delays.len().checked_sub(1)?;
    // The nearest rank, so that the largest of a few delays is their 99th percentile.
    let rank = |hundredths: usize| delays[(delays.len() * hundredths).div_ceil(100).saturating_sub(1).min(last)];
    #[allow(clippy::cast_precision_loss, reason = "a number for people")]
    let seconds = |millis: i64| millis as f64 / 1000.0;
    Some(Lateness { p50: seconds(rank(50)), p99: seconds(rank(99)), runs: delays.len() })
}

/// The policies of a CronJob.
fn chips(watched: &WatchedCronJob) -> Vec<Chip> {
    let spec = &watched.cron_job.spec;
    let chip = |name: &str, value: String| Chip { name: name.to_owned(), value };
    let concurrency = match spec.concurrency_policy {
        ConcurrencyPolicy::Forbid => Some(chip("Forbid", String::new())),
        ConcurrencyPolicy::Replace => Some(chip("Replace", String::new())),
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Unknown => None,
    };
    let deadline = spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
    let deadline = deadline.map(|deadline| chip("deadline", countdown(deadline)));
    let annotations = watched.policies.iter().map(|(name, value)| chip(name, value.to_string()));
    concurrency.into_iter().chain(deadline).chain(annotations).collect()
}

#[cfg(test)]
pub(crate) mod tests;
