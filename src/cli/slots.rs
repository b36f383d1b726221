//! What became of each slot since a time: `explain --since`.
//!
//! Guarantees: what is said follows from Jobs, Events and the status; where they no longer tell, that is said. A slot before a later
//! run counts as missed only if an Event says so, or its Job would still exist (`kept_since`). Consecutive slots of which the same
//! is said are one entry. The Jobs and Events are read once for all slots. Pure, except for [`read`].

mod fates;
mod refusals;
mod traces;

use std::cell::OnceCell;
use std::collections::VecDeque;

use apimachinery::clock::Clock;
use apimachinery::steps;
use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use schedule::missed::newest_starts;
use schedule::{Evaluation, Schedule, Zone};
use serde::Serialize;

use super::CliError;
use super::backfill::plan::kept_since;
use super::cluster::{self, ControllerFlags, Known, Scope};
use super::explain::{Case, Explanation, InCharge, LostRuns, State};
use super::options::cluster::Since;
use super::output::{MOMENT, NO_CRON_JOBS, Report, count, stretch};
use super::restrictions::unread;
use crate::api::batch_v1::{FinishedCondition, Job};
use crate::controller::plan::Skip;
use crate::terminal;
use traces::Traces;

/// So many slots of a CronJob are told, the newest.
const MAX_SLOTS: usize = 20_000;
/// So many slots are in the strip of a CronJob.
pub(crate) const STRIP: usize = 20;
/// A start later than this is called late.
pub(crate) const LATE: TimeDelta = TimeDelta::seconds(10);

/// What became of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// Its Job was created.
    Started,
    /// It came due and starts no longer, for a reason that is named.
    Skipped,
    /// No controller ran at its time, or the API server refused its Job.
    Missed,
    /// It came due while the CronJob was suspended.
    Suspended,
    /// It came due in a freeze of its Namespace.
    Frozen,
    /// It is due and has not started.
    Due,
    /// It is due and starts when another Job has ended.
    Waits,
    /// It is due, and starts when what holds it has ended: failures, a name that is taken, or a template that makes no Job.
    Held,
    /// What would tell is gone.
    Unknown,
}

/// How the run of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunResult {
    /// Its Job has not ended, and [waits](Job::waits_for) for what lets it run.
    Waiting,
    /// Its Job has not ended.
    Running,
    /// Its Job succeeded.
    Succeeded,
    /// Its Job failed.
    Failed,
    /// Its Job no longer exists, and nothing says how it ended.
    Gone,
}

impl RunResult {
    /// The result of a Job.
    pub fn of(job: &Job) -> Self {
        let unfinished = if job.waits_for().is_some() { Self::Waiting } else { Self::Running };
        job.finished.map_or(unfinished, Self::from)
    }

    /// Whether its Job has not ended.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

impl From<FinishedCondition> for RunResult {
    fn from(end: FinishedCondition) -> Self {
        match end {
            FinishedCondition::Complete => Self::Succeeded,
            FinishedCondition::Failed => Self::Failed,
        }
    }
}

/// What became of one slot.
#[derive(Debug, Serialize)]
pub(crate) struct Judged {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// What became of it.
    pub fate: Fate,
    /// How its run is, if it was started.
    pub run: Option<RunResult>,
    /// Its Job, if that still exists.
    pub job: Option<String>,
    /// For how long the Job ran, or has run or waited until now, in seconds.
    pub took: Option<i64>,
    /// Whether its Job is gone, and left no success.
    #[serde(skip)]
    pub is_lost: bool,
    /// How long after it was due its Job was created, if that still exists.
    #[serde(skip)]
    pub late: Option<TimeDelta>,
    /// Why it was not started, [in a word](Skip::as_str), "frozen" in a freeze, or "not_started" if no controller was there to start
    /// it; "none" if it was started or is due, or what would tell is gone.
    pub reason: &'static str,
    /// Why, in words.
    pub why: String,
}

impl Judged {
    /// The slot as a character.
    pub(crate) fn letter(&self) -> char {
        match (self.fate, self.run) {
            (_, Some(RunResult::Succeeded)) => '\u{2713}',
            (_, Some(RunResult::Failed)) => '\u{2717}',
            (_, Some(RunResult::Running)) => '\u{25cf}',
            (Fate::Started, None) | (_, Some(RunResult::Gone)) => '\u{2013}',
            (Fate::Skipped, None) => '\u{25cb}',
            (Fate::Missed, None) => '!',
            (Fate::Suspended, None) => '\u{2016}',
            (Fate::Frozen, None) => '*',
            (Fate::Due, None) => '>',
            (Fate::Waits, None) | (_, Some(RunResult::Waiting)) => '~',
            (Fate::Held, None) => '=',
            (Fate::Unknown, None) => '?',
        }
    }
}

/// The slots of some CronJobs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slots {
    /// That of the first CronJob.
    since: DateTime<FixedOffset>,
    cron_jobs: Vec<OfCronJob>,
    /// Why what their Namespaces say is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces_unread: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfCronJob {
    kind: &'static str,
    namespace: String,
    name: String,
    /// Which controller runs it.
    controller: InCharge,
    since: DateTime<FixedOffset>,
    slots: Vec<Entry>,
    /// Whether there were older slots since the time, too many to tell.
    cut: bool,
    /// Why the Events cannot be read, which tell of slots whose Jobs are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_events: Option<String>,
}

/// Consecutive slots.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    from: DateTime<FixedOffset>,
    to: DateTime<FixedOffset>,
    count: usize,
    fate: Fate,
    why: String,
}

/// What became of the slots of `known` in (`since`, `now`]. `local` is the zone of the controller. A time without a zone is in that of
/// each CronJob.
pub fn slots(known: &[Known], local: Zone, since: Since, now: DateTime<Utc>) -> Slots {
    let mut begin = None;
    let cron_jobs = known.iter().map(|known| {
        let history = History::new(known, local, now);
        let own = since.time(now, history.case.zone);
        begin.get_or_insert_with(|| history.case.zone.at(own));
        history.told(own)
    });
    let cron_jobs: Vec<OfCronJob> = cron_jobs.collect();
    let since = begin.unwrap_or_else(|| local.at(since.time(now, local)));
    Slots { since, cron_jobs, namespaces_unread: cluster::namespaces_unread(known) }
}

/// A CronJob with what tells of its slots.
pub(crate) struct History<'a> {
    known: &'a Known,
    case: Case<'a>,
    traces: Traces<'a>,
    pub(crate) explanation: Explanation,
    local: Zone,
    now: DateTime<Utc>,
    /// Its state by its schedule when its Namespace was frozen.
    before_freeze: OnceCell<State>,
    /// A slot after this one left a trace, if it started.
    kept_since: Option<DateTime<Utc>>,
    /// The oldest slot that waits for other Jobs to end.
    waits_from: Option<DateTime<Utc>>,
    /// The oldest slot that something else holds.
    held_from: Option<DateTime<Utc>>,
    /// Which runs had no success whose Jobs are gone.
    lost: Option<LostRuns<'a>>,
}

impl<'a> History<'a> {
    pub(crate) fn new(known: &'a Known, local: Zone, now: DateTime<Utc>) -> Self {
        let case = Case::new(&known.facts, local, now);
        let explanation = case.explain();
        let cron_job = &known.facts.cron_job;
        let children = known.facts.jobs.iter().filter(|job| job.is_child_of(cron_job));
        let kept_since = kept_since(cron_job, children);
        let traces = Traces::of(known, now);
        let waits_from = case.slots_that_wait(explanation.by_schedule).first().copied();
        let held_from = case.slots_that_are_held(explanation.by_schedule).first().copied();
        let lost = case.lost_runs();
        Self {
            known,
            case,
            traces,
            explanation,
            local,
            now,
            before_freeze: OnceCell::new(),
            kept_since,
            waits_from,
            held_from,
            lost,
        }
    }

    /// The newest slots that have come, the oldest first.
    pub(crate) fn newest(&self, most: usize) -> Vec<Judged> {
        let cron_job = &self.known.facts.cron_job;
        let schedule = self.case.own_schedule();
        let (from, until) = (cron_job.creation_timestamp, cron_job.nominal(self.now));
        if let Some(interval) = schedule.and_then(Schedule::interval) {
            let back = i32::try_from(most + 1).ok().and_then(|most| interval.checked_mul(most));
            let since = back.and_then(|back| until.checked_sub_signed(back)).unwrap_or(from);
            return self.judged(since, self.now, most).0;
        }
        let slots = schedule.map(|schedule| newest_starts(&Evaluation::of(schedule), from, until, most));
        let mut slots: Vec<_> = slots.into_iter().flatten().chain(self.traces.known_slots(from, until)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.drain(..slots.len().saturating_sub(most));
        slots.into_iter().map(|slot| self.judge(slot)).collect()
    }

    /// The slots since a time, where consecutive ones of which the same is said are one entry.
    pub(crate) fn told(&self, since: DateTime<Utc>) -> OfCronJob {
        let (judged, cut) = self.judged(since, self.now, MAX_SLOTS);
        let mut slots: Vec<Entry> = Vec::new();
        for Judged { slot, fate, why, .. } in judged {
            let at = self.case.zone.at(slot);
            match slots.last_mut().filter(|last| last.fate == fate && last.why == why) {
                Some(last) => (last.to, last.count) = (at, last.count + 1),
                None => slots.push(Entry { from: at, to: at, count: 1, fate, why }),
            }
        }
        let Explanation { kind, namespace, name, controller, .. } = &self.explanation;
        let (namespace, name, since) = (namespace.clone(), name.clone(), self.case.zone.at(since));
        let unread_events = self.known.facts.warnings.as_ref().err().cloned();
        OfCronJob { kind, namespace, name, controller: *controller, since, slots, cut, unread_events }
    }

    /// The slots in (`since`, `until`] that have come, at most the newest `most`, and whether there were more.
    pub(crate) fn judged(&self, since: DateTime<Utc>, until: DateTime<Utc>, most: usize) -> (Vec<Judged>, bool) {
        let cron_job = &self.known.facts.cron_job;
        // A slot that its spread delays beyond now has not come.
        let (from, until) = (since.max(cron_job.creation_timestamp), until.min(cron_job.nominal(self.now)));
        let schedule = self.case.own_schedule();
        let interval = schedule.and_then(Schedule::interval);
        let begin = interval.map_or(from, |interval| self.traces.in_phase(from, interval));
        let next = |t: DateTime<Utc>| {
            let slot = schedule.and_then(|schedule| schedule.next_after(t));
            // Whatever the schedule says now, a slot that has a Job was one; and with `@every` each follows from the one before.
            self.traces.known_slot(t, slot.unwrap_or(DateTime::<Utc>::MAX_UTC)).or(slot)
        };
        let (mut due, mut cut) = (VecDeque::new(), false);
        for slot in steps::each(std::iter::successors(next(begin), |t| next(*t)).take_while(|t| *t <= until)) {
            if due.len() == most {
                due.pop_front();
                cut = true;
            }
            due.push_back(slot);
        }
        (due.into_iter().map(|slot| self.judge(slot)).collect(), cut)
    }

    fn judge(&self, slot: DateTime<Utc>) -> Judged {
        if let Some(job) = self.traces.job_of(slot) {
            let delay = job.creation_timestamp - self.known.facts.cron_job.due(slot);
            let late = if delay > LATE { format!(", {} late", stretch(delay)) } else { String::new() };
            let run = RunResult::of(job);
            return Judged {
                slot,
                fate: Fate::Started,
                run: Some(run),
                job: Some(job.name.name.to_string()),
                took: Some(job.ran_for(self.now).num_seconds()),
                is_lost: false,
                late: Some(delay),
                reason: "none",
                why: format!("{}{late}", self.case.outcome(Some(job))),
            };
        }
        let result = self.result_without_job(slot);
        let is_lost = result.is_some_and(|(run, _)| run == RunResult::Gone) && self.is_lost(slot);
        let (run, (fate, skip, why)) = match result {
            Some(_) if is_lost => {
                let why = "its Job no longer exists, and no success of it is known".to_owned();
                (Some(RunResult::Gone), (Fate::Started, None, why))
            }
            Some((run @ RunResult::Gone, why)) => (Some(run), (Fate::Started, None, self.or_dropped(why))),
            Some((run, why)) => (Some(run), (Fate::Started, None, why.to_owned())),
            None => (None, self.fate_of(slot)),
        };
        let reason = match (skip, fate) {
            (Some(skip), _) => Skip::as_str(skip),
            (None, Fate::Missed) => "not_started",
            (None, Fate::Frozen) => "frozen",
            (None, _) => "none",
        };
        Judged { slot, fate, run, job: None, took: None, is_lost, late: None, reason, why }
    }

    /// Whether the run of a slot had no success, whose Job no longer exists.
    fn is_lost(&self, slot: DateTime<Utc>) -> bool {
        let cron_job = &self.known.facts.cron_job;
        let name = || cron_job.controller_kind.child_name(&cron_job.name.name, slot);
        self.lost.as_ref().is_some_and(|lost| lost.contains(cron_job.due(slot), &name()))
    }

    /// How the run of a slot ended whose Job no longer exists, if it is known that it had one.
    fn result_without_job(&self, slot: DateTime<Utc>) -> Option<(RunResult, &'static str)> {
        let is_last = || self.known.facts.cron_job.status.last_schedule_time == Some(slot);
        let run = self.traces.says_started(slot).or_else(|| is_last().then_some(RunResult::Gone))?;
        let why = match run {
            RunResult::Succeeded => "succeeded, and its Job no longer exists",
            RunResult::Failed => "failed, and its Job no longer exists",
            RunResult::Gone | RunResult::Running | RunResult::Waiting => "its Job no longer exists",
        };
        Some((run, why))
    }
}

/// Who runs it, after its name.
fn by(controller: InCharge) -> String {
    let word = if controller == InCharge::Unknown { "controller not known" } else { controller.word() };
    format!(" ({word})")
}

impl Report for Slots {
    fn lines(&self) -> Vec<String> {
        let is_one_time = self.cron_jobs.iter().all(|of| of.since == self.since);
        let mut lines = vec![if is_one_time {
            format!("Since {}:", self.since.format(MOMENT))
        } else {
            format!("Since {} in the zone of each CronJob:", self.since.format("%Y-%m-%d %H:%M"))
        }];
        for of in &self.cron_jobs {
            lines.extend([String::new(), format!("{} {}/{}{}", of.kind, of.namespace, of.name, by(of.controller))]);
            if of.cut {
                lines.push(format!("  Only the last {MAX_SLOTS} slots are shown."));
            }
            let unread = of.unread_events.as_ref();
            lines.extend(
                unread.map(|error| {
                    format!("  The Events cannot be read, which tell of runs whose Jobs are gone: {error}")
                }),
            );
            if of.slots.is_empty() {
                lines.push("  No slot was due.".to_owned());
            }
            let row = |entry: &Entry| {
                let time = match entry.count {
                    1 => entry.from.format(MOMENT).to_string(),
                    number => format!(
                        "{} to {} ({})",
                        entry.from.format(MOMENT),
                        entry.to.format(MOMENT),
                        count(number, "slot")
                    ),
                };
                let fate = serde_json::to_value(entry.fate).ok();
                let fate = fate.and_then(|fate| fate.as_str().map(str::to_owned)).unwrap_or_default();
                [format!("  {time}"), fate, entry.why.clone()]
            };
            let table: Vec<[String; 3]> = of.slots.iter().map(row).collect();
            lines.extend(terminal::columns(&table));
        }
        if self.cron_jobs.is_empty() {
            lines.push(NO_CRON_JOBS.to_owned());
        }
        lines.extend(self.namespaces_unread.as_deref().map(unread));
        lines
    }
}

/// Reads the CronJobs of `scope` and tells their slots.
///
/// # Errors
/// When the cluster cannot be read, there is no CronJob of the name in `scope`, or the time has not come.
pub async fn read(scope: &Scope, flags: &ControllerFlags, since: Since, clock: &dyn Clock) -> Result<Slots, CliError> {
    let (client, namespace) = scope.connect().await?;
    let name = scope.name.as_deref();
    let (known, _) = cluster::read_all(&client, scope.controller_kind, namespace.as_deref(), name, flags).await?;
    let now = cluster::now(&client, clock).await;
    let zones = known.iter().map(|known| known.facts.cron_job.zone(flags.zone));
    if let Some(error) = since.fault(zones.chain(known.is_empty().then_some(flags.zone)), now) {
        return Err(error.into());
    }
    Ok(slots(&known, flags.zone, since, now))
}

#[cfg(test)]
mod tests;
