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
use schedule::Zone;
use serde::Serialize;

use super::CliError;
use super::backfill::plan::kept_since;
use super::cluster::{self, ControllerFlags, Known, Scope};
use super::explain::{Case, Explanation, InCharge, State};
use super::options::cluster::Since;
use super::output::{MOMENT, Report, count, stretch};
use crate::api::batch_v1::ConcurrencyPolicy;
use crate::controller::plan::Skip;
use crate::terminal;
use traces::Traces;

/// So many slots of a CronJob are told, the newest.
const MAX_SLOTS: usize = 20_000;
/// A start later than this is called late.
const LATE: TimeDelta = TimeDelta::seconds(10);

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
    /// What would tell is gone.
    Unknown,
}

/// What became of one slot.
#[derive(Debug)]
pub(crate) struct Judged {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// What became of it.
    pub fate: Fate,
    /// Why it was not started, [in a word](Skip::as_str), or "not_started" if no controller was there to start it; "none" if it
    /// was started or is due, or what would tell is gone.
    #[cfg_attr(not(feature = "ui"), expect(dead_code, reason = "only the page counts by reason"))]
    pub reason: &'static str,
    /// Why, in words.
    pub why: String,
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
}

impl<'a> History<'a> {
    pub(crate) fn new(known: &'a Known, local: Zone, now: DateTime<Utc>) -> Self {
        let case = Case::new(&known.facts, local, now);
        let explanation = case.explain();
        let cron_job = &known.facts.cron_job;
        let children = known.facts.jobs.iter().filter(|job| job.is_child_of(cron_job));
        let kept_since = kept_since(cron_job, children);
        Self { known, case, traces: Traces::of(known, now), explanation, now, kept_since }
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
        OfCronJob { kind, namespace, name, controller: *controller, since, slots, cut }
    }

    /// The slots in (`since`, `until`] that have come, at most the newest `most`, and whether there were more.
    pub(crate) fn judged(&self, since: DateTime<Utc>, until: DateTime<Utc>, most: usize) -> (Vec<Judged>, bool) {
        let cron_job = &self.known.facts.cron_job;
        // A slot that its spread delays beyond now has not come.
        let (from, until) = (since.max(cron_job.creation_timestamp), until.min(cron_job.nominal(self.now)));
        let next = |t: DateTime<Utc>| self.case.schedule().and_then(|schedule| schedule.next_after(t));
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
        let (fate, skip, why) = self.fate_of(slot);
        let reason = skip.map_or(if fate == Fate::Missed { "not_started" } else { "none" }, Skip::as_str);
        Judged { slot, fate, reason, why }
    }

    fn fate_of(&self, slot: DateTime<Utc>) -> (Fate, Option<Skip>, String) {
        let cron_job = &self.known.facts.cron_job;
        if let Some(job) = self.traces.job_of(slot) {
            let late = job.creation_timestamp - cron_job.due(slot);
            let late = if late > LATE { format!(", {} late", stretch(late)) } else { String::new() };
            return (Fate::Started, None, format!("{}{late}", self.case.outcome(Some(job))));
        }
        if cron_job.status.last_schedule_time == Some(slot) || self.traces.says_created(slot) {
            return (Fate::Started, None, "its Job no longer exists".to_owned());
        }
        if self.traces.says_missed(slot) {
            let why = "it could not start before its startingDeadlineSeconds had passed".to_owned();
            return (Fate::Missed, Some(Skip::Deadline(slot)), why);
        }
        let is_later = self.traces.last_slot.is_none_or(|last| slot > last);
        let is_kept = self.kept_since.is_some_and(|since| slot > since);
        let forbids =
            cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid && cron_job.limits().max_concurrent.is_none();
        // One that may be gone started late, unless it was blocked until the next slot came and did not wait any longer.
        let waits = cron_job.limits().backlog > Some(0);
        let next = || self.case.schedule().filter(|_| !waits).and_then(|schedule| schedule.next_after(slot));
        let until = || if is_later || is_kept { Some(slot) } else { next() };
        if forbids && let Some(job) = until().and_then(|until| self.traces.running_from(slot, until)) {
            let why = format!("{} ran, and concurrencyPolicy is Forbid", job.name.name);
            return (Fate::Skipped, Some(Skip::Forbid(slot)), why);
        }
        if is_later {
            return self.not_started(slot);
        }
        if is_kept {
            return (Fate::Missed, None, "no controller started it before a later run".to_owned());
        }
        (Fate::Unknown, None, "its Job, if there was one, and its Events no longer exist".to_owned())
    }

    /// A slot after the last one that was started.
    fn not_started(&self, slot: DateTime<Utc>) -> (Fate, Option<Skip>, String) {
        let cron_job = &self.known.facts.cron_job;
        if cron_job.decided_until(&cron_job.status, self.now) >= Some(slot) {
            let why = "a change of the CronJob passed it over, or a policy did".to_owned();
            return (Fate::Skipped, Some(Skip::PassedOver(slot)), why);
        }
        let (summary, limits) = (&*self.explanation.why, cron_job.limits());
        let (fate, reason, why) = match self.explanation.state {
            State::Suspended => {
                let why = format!("it is suspended now ({})", cron_job.handover.suspended_by());
                return (Fate::Skipped, Some(Skip::Suspended), why);
            }
            // A slot in a freeze is none.
            State::Frozen => {
                let why = "its Namespace was frozen before it started".to_owned();
                return (Fate::Skipped, Some(Skip::PassedOver(slot)), why);
            }
            State::Blocked if limits.max_concurrent.is_some() => {
                (Fate::Skipped, Some(Skip::MaxConcurrent(slot)), summary)
            }
            State::Blocked if limits.replace_waits => (Fate::Skipped, Some(Skip::Replacing(slot)), summary),
            State::Blocked => {
                (Fate::Skipped, Some(Skip::Forbid(slot)), "a running Job blocks it, and concurrencyPolicy is Forbid")
            }
            State::Paused => (Fate::Skipped, Some(Skip::Paused(slot)), summary),
            State::Starting => (Fate::Due, None, "it is about to start"),
            State::Overdue if self.explanation.due_since.is_none_or(|since| cron_job.due(slot) >= since) => {
                (Fate::Due, None, "no controller has started it; explain with the name says more")
            }
            State::Waiting | State::Failing | State::Overdue => {
                let why = "it did not start before its startingDeadlineSeconds had passed";
                (Fate::Missed, Some(Skip::Deadline(slot)), why)
            }
            State::NameTaken => (Fate::Missed, Some(Skip::NameTaken(slot)), summary),
            _ => (Fate::Missed, Some(Skip::Invalid), summary),
        };
        (fate, reason, why.to_owned())
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
