//! What became of each slot since a time: `explain --since`.
//!
//! Guarantees: what is said follows from Jobs, Events and the status; where they no longer tell, that is said. A slot before a later
//! run counts as missed only if an Event says so, or its Job would still exist (`kept_since`). Consecutive slots of which the same
//! is said are one entry. The Jobs and Events are read once for all slots. Pure, except for [`read`].

mod traces;

use std::collections::VecDeque;

use apimachinery::clock::Clock;
use apimachinery::steps;
use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use schedule::missed::newest_starts;
use schedule::{Evaluation, Zone};
use serde::Serialize;

use super::CliError;
use super::backfill::plan::kept_since;
use super::cluster::{self, ControllerFlags, Known, Scope};
use super::explain::{Case, Explanation, InCharge, State};
use super::options::cluster::Since;
use super::output::{MOMENT, Report, count, stretch};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, FinishedCondition, Job};
use crate::api::policy::{BACKLOG, EXCLUDE, MAX_CONCURRENT};
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
    /// It was left out, as the CronJob asks for.
    Skipped,
    /// No controller started it in time.
    Missed,
    /// It is due and has not started.
    Due,
    /// It is due and starts when another Job has ended.
    Waiting,
    /// What would tell is gone.
    Unknown,
}

/// How the run of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunResult {
    /// It has not ended.
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
        job.finished.map_or(Self::Running, Self::from)
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
    /// For how long the Job ran, or has run, in seconds.
    pub took: Option<i64>,
    /// How long after it was due its Job was created, if that still exists.
    #[serde(skip)]
    pub late: Option<TimeDelta>,
    /// Why it was not started, [in a word](Skip::as_str), or "not_started" if no controller was there to start it; "none" if it
    /// was started or is due, or what would tell is gone.
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
            (Fate::Due, None) => '>',
            (Fate::Waiting, None) => '~',
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
    Slots { since, cron_jobs }
}

/// A CronJob with what tells of its slots.
pub(crate) struct History<'a> {
    known: &'a Known,
    case: Case<'a>,
    traces: Traces<'a>,
    pub(crate) explanation: Explanation,
    now: DateTime<Utc>,
    /// A slot after this one left a trace, if it started.
    kept_since: Option<DateTime<Utc>>,
    /// The oldest slot that waits for other Jobs to end.
    waits_from: Option<DateTime<Utc>>,
}

impl<'a> History<'a> {
    pub(crate) fn new(known: &'a Known, local: Zone, now: DateTime<Utc>) -> Self {
        let case = Case::new(&known.facts, local, now);
        let explanation = case.explain();
        let cron_job = &known.facts.cron_job;
        let children = known.facts.jobs.iter().filter(|job| job.is_child_of(cron_job));
        let kept_since = kept_since(cron_job, children);
        let traces = Traces::of(known, now);
        let waits_from = waits_from(&case, cron_job, &explanation, traces.last_slot, now);
        Self { known, case, traces, explanation, now, kept_since, waits_from }
    }

    /// The newest slots that have come, the oldest first.
    pub(crate) fn newest(&self, most: usize) -> Vec<Judged> {
        let cron_job = &self.known.facts.cron_job;
        let Some(schedule) = self.case.own_schedule() else { return Vec::new() };
        let (from, until) = (cron_job.creation_timestamp, cron_job.nominal(self.now));
        newest_starts(&Evaluation::of(schedule), from, until, most).into_iter().map(|slot| self.judge(slot)).collect()
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
        let next = |t: DateTime<Utc>| schedule.and_then(|schedule| schedule.next_after(t));
        let (mut due, mut cut) = (VecDeque::new(), false);
        for slot in steps::each(std::iter::successors(next(from), |t| next(*t)).take_while(|t| *t <= until)) {
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
            return Judged {
                slot,
                fate: Fate::Started,
                run: Some(RunResult::of(job)),
                job: Some(job.name.name.to_string()),
                took: Some(job.ran_for(self.now).num_seconds()),
                late: Some(delay),
                reason: "none",
                why: format!("{}{late}", self.case.outcome(Some(job))),
            };
        }
        let (run, (fate, skip, why)) = match self.result_without_job(slot) {
            Some((run, why)) => (Some(run), (Fate::Started, None, why.to_owned())),
            None => (None, self.fate_of(slot)),
        };
        let reason = skip.map_or(if fate == Fate::Missed { "not_started" } else { "none" }, Skip::as_str);
        Judged { slot, fate, run, job: None, took: None, late: None, reason, why }
    }

    /// How the run of a slot ended whose Job no longer exists, if it is known that it had one.
    fn result_without_job(&self, slot: DateTime<Utc>) -> Option<(RunResult, &'static str)> {
        let is_last = || self.known.facts.cron_job.status.last_schedule_time == Some(slot);
        let run = self.traces.says_started(slot).or_else(|| is_last().then_some(RunResult::Gone))?;
        let why = match run {
            RunResult::Succeeded => "succeeded, and its Job no longer exists",
            RunResult::Failed => "failed, and its Job no longer exists",
            RunResult::Gone | RunResult::Running => "its Job no longer exists",
        };
        Some((run, why))
    }

    /// What became of a slot of which no Job is known.
    fn fate_of(&self, slot: DateTime<Utc>) -> (Fate, Option<Skip>, String) {
        let cron_job = &self.known.facts.cron_job;
        if self.traces.says_missed(slot) {
            let why = "it could not start before its startingDeadlineSeconds had passed".to_owned();
            return (Fate::Missed, Some(Skip::Deadline(slot)), why);
        }
        let is_later = self.traces.last_slot.is_none_or(|last| slot > last);
        let is_kept = self.kept_since.is_some_and(|since| slot > since);
        if self.traces.says_passed_over(slot) {
            let why = "a change of the CronJob passed it over";
            return if is_later || is_kept {
                (Fate::Skipped, Some(Skip::PassedOver(slot)), why.to_owned())
            } else {
                // A backfill may have started it since, which no Event tells of.
                (Fate::Unknown, None, format!("{why}; the Job of a backfill, if there was one, no longer exists"))
            };
        }
        let by_namespace = self.left_out_by_namespace(slot);
        if by_namespace.is_none()
            && let Some(waiting) = self.waits(slot)
        {
            return waiting;
        }
        if let Some(blocked) = self.blocked_at(slot, is_later, is_kept) {
            return blocked;
        }
        if is_later {
            return self.not_started(slot, by_namespace);
        }
        if let Some(why) = by_namespace.filter(|_| is_kept) {
            return (Fate::Skipped, Some(Skip::PassedOver(slot)), why);
        }
        if is_kept {
            return (Fate::Missed, None, "no controller started it before a later run".to_owned());
        }
        let why = if cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace {
            "its Job, if there was one, was deleted at the latest when a later run started: concurrencyPolicy is Replace"
        } else {
            "its Job, if there was one, and its Events no longer exist"
        };
        (Fate::Unknown, None, why.to_owned())
    }

    /// Why a slot of the CronJob is none in its Namespace, as that is now. When a freeze began is not known.
    fn left_out_by_namespace(&self, slot: DateTime<Utc>) -> Option<String> {
        let restriction = self.known.facts.cron_job.restriction()?;
        if restriction.not_before().is_some_and(|end| slot < end) {
            return Some("its Namespace was frozen before it started".to_owned());
        }
        let schedule = self.case.schedule().filter(|_| !restriction.excluded().is_empty())?;
        let is_left = schedule.next_after(slot - TimeDelta::seconds(1)) == Some(slot);
        (!is_left).then(|| format!("its Namespace leaves it out ({EXCLUDE})"))
    }

    /// A slot that starts when other Jobs have ended.
    fn waits(&self, slot: DateTime<Utc>) -> Option<(Fate, Option<Skip>, String)> {
        self.waits_from.filter(|from| slot >= *from)?;
        let backlog = self.known.facts.cron_job.limits().backlog.unwrap_or_default();
        let blocker = self.explanation.active.first().map_or_else(|| "a Job".to_owned(), |job| job.name.clone());
        Some((Fate::Waiting, None, format!("it waits until {blocker} has ended ({BACKLOG} is {backlog})")))
    }

    /// A slot for which as many Jobs ran as may.
    fn blocked_at(&self, slot: DateTime<Utc>, is_later: bool, is_kept: bool) -> Option<(Fate, Option<Skip>, String)> {
        let cron_job = &self.known.facts.cron_job;
        let limits = cron_job.limits();
        // One that may be gone started late, unless it was blocked until the next slot came and did not wait any longer.
        let waits = limits.backlog > Some(0);
        let next = || self.case.schedule().filter(|_| !waits).and_then(|schedule| schedule.next_after(slot));
        let until = || if is_later || is_kept { Some(slot) } else { next() };
        if let Some(limit) = limits.max_concurrent {
            let is_full = |time| self.traces.running_at(time) >= limit;
            let is_blocked = (is_later || is_kept) && is_full(slot);
            let why = format!("{} ran, and {MAX_CONCURRENT} is {limit}", count(limit, "Job"));
            return is_blocked.then(|| self.left_out(slot, Skip::MaxConcurrent(slot), is_later, why));
        }
        if cron_job.spec.concurrency_policy != ConcurrencyPolicy::Forbid {
            return None;
        }
        let job = until().and_then(|until| self.traces.running_from(slot, until))?;
        let why = format!("{} ran, and concurrencyPolicy is Forbid", job.name.name);
        Some(self.left_out(slot, Skip::Forbid(slot), is_later, why))
    }

    /// A slot that other Jobs kept from starting: with a backlog it was passed over once a later one has started.
    fn left_out(&self, slot: DateTime<Utc>, skip: Skip, is_later: bool, why: String) -> (Fate, Option<Skip>, String) {
        match self.known.facts.cron_job.limits().backlog {
            Some(backlog) if !is_later || self.waits_from.is_some() => {
                (Fate::Skipped, Some(Skip::PassedOver(slot)), format!("{why}; {BACKLOG} is {backlog}"))
            }
            _ => (Fate::Skipped, Some(skip), why),
        }
    }

    /// A slot after the last one that was started.
    fn not_started(&self, slot: DateTime<Utc>, by_namespace: Option<String>) -> (Fate, Option<Skip>, String) {
        let cron_job = &self.known.facts.cron_job;
        if cron_job.decided_until(&cron_job.status, self.now) >= Some(slot) {
            let why = "a change of the CronJob passed it over, or a policy did".to_owned();
            return (Fate::Skipped, Some(Skip::PassedOver(slot)), why);
        }
        if let Some(why) = by_namespace.filter(|_| self.explanation.by_schedule != State::Suspended) {
            return (Fate::Skipped, Some(Skip::PassedOver(slot)), why);
        }
        let (summary, limits) = (&*self.explanation.why, cron_job.limits());
        let (fate, reason, why) = match self.explanation.by_schedule {
            State::Suspended => {
                let why = format!("it is suspended now ({})", cron_job.handover.suspended_by());
                return (Fate::Skipped, Some(Skip::Suspended), why);
            }
            State::Blocked | State::RunStuck if limits.max_concurrent.is_some() => {
                (Fate::Skipped, Some(Skip::MaxConcurrent(slot)), summary)
            }
            State::Blocked | State::RunStuck if limits.replace_waits => {
                (Fate::Skipped, Some(Skip::Replacing(slot)), summary)
            }
            State::Blocked | State::RunStuck => {
                (Fate::Skipped, Some(Skip::Forbid(slot)), "a running Job blocks it, and concurrencyPolicy is Forbid")
            }
            State::Paused => (Fate::Skipped, Some(Skip::Paused(slot)), summary),
            State::Starting => (Fate::Due, None, "it is about to start"),
            State::Overdue if self.explanation.due_since.is_none_or(|since| cron_job.due(slot) >= since) => {
                (Fate::Due, None, "no controller has started it; explain with the name says more")
            }
            State::Waiting | State::NotStarted | State::Overdue => {
                let why = "it did not start before its startingDeadlineSeconds had passed";
                (Fate::Missed, Some(Skip::Deadline(slot)), why)
            }
            State::NameTaken => (Fate::Missed, Some(Skip::NameTaken(slot)), summary),
            _ => (Fate::Missed, Some(Skip::Invalid), summary),
        };
        (fate, reason, why.to_owned())
    }
}

/// With a backlog, the oldest of the slots that wait while other Jobs run.
fn waits_from(
    case: &Case<'_>,
    cron_job: &CronJob,
    explanation: &Explanation,
    last_slot: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let most = cron_job.limits().backlog.filter(|most| *most > 0)?;
    if !matches!(explanation.by_schedule, State::Blocked | State::RunStuck) {
        return None;
    }
    let last = last_slot.unwrap_or(cron_job.creation_timestamp);
    let from = cron_job.decided_until(&cron_job.status, now).map_or(last, |decided| decided.max(last));
    let deadline = cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
    let until = cron_job.nominal(now);
    let from = deadline.and_then(|deadline| until.checked_sub_signed(deadline)).map_or(from, |first| first.max(from));
    newest_starts(&Evaluation::of(case.schedule()?), from, until, most).front().copied()
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
            lines.push("There are no CronJobs.".to_owned());
        }
        lines
    }
}

/// Reads the CronJobs of `scope` and tells their slots.
///
/// # Errors
/// When the cluster cannot be read, or there is no CronJob of the name in `scope`.
pub async fn read(scope: &Scope, flags: &ControllerFlags, since: Since, clock: &dyn Clock) -> Result<Slots, CliError> {
    let (client, namespace) = scope.connect().await?;
    let name = scope.name.as_deref();
    let known = cluster::read_all(&client, scope.controller_kind, namespace.as_deref(), name, flags).await?;
    let now = cluster::now(&client, clock).await;
    Ok(slots(&known, flags.zone, since, now))
}

#[cfg(test)]
mod tests;
