//! What the live view shows: rows of CronJobs, their order, and their number by state. Pure.
//!
//! Guarantees: rows with the same key of an [`Order`] are sorted by name, so they do not jump. Every text is a single line
//! without control characters, whatever the objects contain. The state of a CronJob is what a [`Judge`] says, which is `list`'s.
//!
//! `keys` is what a user can change, `screen` draws it.

pub mod keys;
pub mod screen;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use super::objects::{self, utc};
use crate::api::batch_v1::{CronJob, FinishedCondition, Job};
use crate::terminal::{countdown, plain};

/// The state of a CronJob, as `list` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The place of the state among all of them, the worst first.
    pub rank: u8,
    /// In words.
    pub label: &'static str,
    /// What it means for the eye.
    pub tone: Tone,
    /// Whether the next time of the schedule says nothing.
    pub is_held: bool,
}

/// What a state means for the eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It needs attention.
    Bad,
    /// It runs on schedule.
    Fine,
    /// A user has stopped it.
    Stopped,
}

/// Says the state of a CronJob with these Jobs, in the zone of schedules without one, at a time.
pub type Judge = fn(&Arc<CronJob>, Vec<Arc<Job>>, Zone, DateTime<Utc>) -> Condition;

/// One CronJob's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Namespace and name.
    pub name: String,
    /// The schedule, with its zone if it has one.
    pub schedule: String,
    /// Its state.
    pub condition: Condition,
    /// When it fires next, unless something other than time keeps it from that.
    pub next: Option<DateTime<Utc>>,
    /// The slot of the last start.
    pub last: Option<DateTime<Utc>>,
    /// How late its Job appeared, if it appeared during this run.
    pub lateness: Option<TimeDelta>,
    /// The number of its running Jobs.
    pub active: usize,
    /// Its Jobs, oldest first.
    pub jobs: Vec<Fate>,
}

/// The state of a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has not finished, and waits for what lets it run.
    Waiting,
    /// It has not finished.
    Running,
    /// It succeeded.
    Complete,
    /// It failed.
    Failed,
}

impl Fate {
    /// The state of `job`.
    pub fn of(job: &Job) -> Self {
        match job.finished {
            Some(FinishedCondition::Complete) => Self::Complete,
            Some(FinishedCondition::Failed) => Self::Failed,
            None if job.waits_for().is_some() => Self::Waiting,
            None => Self::Running,
        }
    }
}

impl Row {
    /// The row of `cron_job`, whose Jobs are `jobs`, and the last of which appeared `skew` after its slot. `local` is the zone of
    /// schedules without one.
    pub fn new(
        cron_job: &CronJob,
        jobs: &[Arc<Job>],
        condition: Condition,
        skew: Option<TimeDelta>,
        now: DateTime<Utc>,
        local: Zone,
    ) -> Self {
        let spec = &cron_job.spec;
        let schedule = cron_job.schedule(local).filter(|_| !condition.is_held && condition.tone != Tone::Stopped);
        let next = schedule.and_then(|schedule| schedule.next_after(cron_job.nominal(now)));
        let zone = spec.recurrence.time_zone().map(|zone| format!(" ({zone})")).unwrap_or_default();
        let lines = cron_job.policy().ok().flatten().and_then(|policy| policy.lines());
        let mut jobs: Vec<&Arc<Job>> = jobs.iter().collect();
        jobs.sort_by_key(|job| (job.scheduled_timestamp, job.name.clone()));
        let jobs: Vec<Fate> = jobs.into_iter().map(|job| Fate::of(job)).collect();
        Self {
            name: plain(&cron_job.name.to_string()),
            schedule: plain(&format!("{}{zone}", lines.unwrap_or_else(|| spec.recurrence.schedule()))),
            condition,
            next: next.map(|slot| cron_job.due(slot)),
            last: cron_job.status.last_schedule_time,
            lateness: skew.map(|skew| skew - cron_job.offset()),
            active: jobs.iter().filter(|fate| matches!(fate, Fate::Running | Fate::Waiting)).count(),
            jobs,
        }
    }
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The worst [`Condition`] first.
    #[default]
    Worst,
    /// The earliest next start first.
    Next,
    /// The latest last start first.
    Last,
    /// By namespace and name.
    Name,
}

impl Order {
    /// The order that the key for it selects after this one.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Worst => Self::Next,
            Self::Next => Self::Last,
            Self::Last => Self::Name,
            Self::Name => Self::Worst,
        }
    }

    /// What comes first.
    pub fn said(self) -> &'static str {
        match self {
            Self::Worst => "worst first",
            Self::Next => "next start first",
            Self::Last => "last start first",
            Self::Name => "by name",
        }
    }

    /// Sorts the rows.
    pub fn sort(self, rows: &mut [Row]) {
        let never = DateTime::<Utc>::MAX_UTC;
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        match self {
            Self::Worst => rows.sort_by_key(|row| row.condition.rank),
            Self::Next => rows.sort_by_key(|row| row.next.unwrap_or(never)),
            Self::Last => rows.sort_by_key(|row| Reverse(row.last)),
            Self::Name => {}
        }
    }
}

/// The rows in one line: how many there are in each state that is not fine, and the next start.
pub fn summary(rows: &[Row], now: DateTime<Utc>) -> String {
    let of = |tone: Tone| {
        let mut found = BTreeMap::new();
        for row in rows.iter().filter(|row| row.condition.tone == tone) {
            *found.entry((row.condition.rank, row.condition.label)).or_insert(0) += 1;
        }
        found.into_iter().map(|((_, label), number)| format!("{number} {label}"))
    };
    let running: usize = rows.iter().map(|row| row.active).sum();
    let running = (running > 0).then(|| format!("{running} {}", if running == 1 { "Job runs" } else { "Jobs run" }));
    let parts: Vec<String> = of(Tone::Bad).chain(running).chain(of(Tone::Stopped)).collect();
    let next = rows.iter().filter_map(|row| row.next).min();
    let next = next.map_or_else(|| "no start".to_owned(), |next| format!("next start in {}", countdown(next - now)));
    let plural = if rows.len() == 1 { "" } else { "s" };
    format!("{} CronJob{plural}: {}", rows.len(), [parts, vec![next]].concat().join(", "))
}

/// Formats a skew: `3 ms`, `1.2 s`, `75 s`.
pub fn milliseconds(skew: TimeDelta) -> String {
    match skew.num_milliseconds() {
        ms @ ..1_000 => format!("{ms} ms"),
        ms @ 1_000..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{} s", ms / 1000),
    }
}

/// The line for a Job that has appeared. `offset` is the delay of its CronJob's `spread`, by which it is not late. One of a backfill is
/// not late either.
pub fn line_of_start(job: &objects::Job, offset: TimeDelta, now: DateTime<Utc>) -> String {
    let owner = job.identity.controller.as_ref().map(|(owner, _)| format!("{owner}: ")).unwrap_or_default();
    let how = match job.slot() {
        Some(_) if job.identity.of_backfill => ", by a backfill".to_owned(),
        Some(slot) => format!(", {} after its time", milliseconds(now - slot - offset)),
        None => String::new(),
    };
    let name = &job.identity.name;
    plain(&format!("{}/{owner}started Job {}{how}", name.namespace, name.name))
}

/// The line for a Job that finished between these two versions; `None` if it did not.
pub fn line_of_end(old: &objects::Job, new: &objects::Job) -> Option<String> {
    let condition = new.status.finished().filter(|_| old.status.finished().is_none())?;
    let owner = new.identity.controller.as_ref().map(|(owner, _)| format!("{owner}: ")).unwrap_or_default();
    let ended = condition.last_transition_time.as_ref().and_then(utc);
    let took = ended.zip(new.status.start_time).map(|(end, start)| countdown(end - start));
    let took = took.map(|took| format!(" after {took}")).unwrap_or_default();
    let name = &new.identity.name;
    let fate = if condition.type_ == "Complete" { "succeeded" } else { "failed" };
    let why = if fate == "failed" {
        format!(": {}", condition.message.as_deref().unwrap_or_default())
    } else {
        String::new()
    };
    Some(plain(&format!("{}/{owner}Job {} {fate}{took}{why}", name.namespace, name.name)))
}

#[cfg(test)]
mod tests;
