//! What the live view shows: rows of CronJobs, their order, and their number by state. Pure.
//!
//! Guarantees: rows with the same key of an [`Order`] are sorted by name, so they do not jump. Every text is a single line
//! without control characters, whatever the objects contain.
//!
//! `keys` is what a user can change, `screen` draws it.

pub mod keys;
pub mod screen;

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use super::objects::{Job, utc};
use crate::api::batch_v1::CronJob;
use crate::terminal::{countdown, plain};

/// One CronJob's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Namespace and name.
    pub name: String,
    /// The schedule, with its zone if it has one.
    pub schedule: String,
    /// When it fires next.
    pub next: Next,
    /// The slot of the last start.
    pub last: Option<DateTime<Utc>>,
    /// How long after that slot its Job appeared, if it appeared during this run.
    pub skew: Option<TimeDelta>,
    /// The number of its running Jobs.
    pub active: usize,
    /// Its Jobs, oldest first.
    pub jobs: Vec<Fate>,
}

/// The next start of a CronJob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At this time.
    At(DateTime<Utc>),
    /// Not until the CronJob is resumed.
    Suspended,
    /// The schedule has no next time.
    Never,
    /// The schedule is invalid.
    Unreadable,
}

/// The state of a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
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
        match job.status.finished() {
            Some(condition) if condition.type_ == "Complete" => Self::Complete,
            Some(_) => Self::Failed,
            None => Self::Running,
        }
    }
}

/// How a CronJob is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// The newest of its finished Jobs failed.
    Failed,
    /// It cannot run: its schedule is invalid or has no next time.
    Stuck,
    /// A Job of it runs.
    Running,
    /// It waits for its next slot.
    Waiting,
    /// It is suspended.
    Suspended,
}

impl Row {
    /// The row of `cron_job`, whose Jobs are `jobs`. `local` is the zone of schedules without one.
    pub fn new(
        cron_job: &CronJob,
        jobs: &[impl AsRef<Job>],
        skew: Option<TimeDelta>,
        now: DateTime<Utc>,
        local: Zone,
    ) -> Self {
        let spec = &cron_job.spec;
        let next = match cron_job.schedule(local) {
            _ if spec.suspend => Next::Suspended,
            None => Next::Unreadable,
            Some(schedule) => {
                let slot = schedule.next_after(cron_job.nominal(now));
                slot.map_or(Next::Never, |slot| Next::At(cron_job.due(slot)))
            }
        };
        let zone = spec.recurrence.time_zone().map(|zone| format!(" ({zone})")).unwrap_or_default();
        let mut jobs: Vec<&Job> = jobs.iter().map(AsRef::as_ref).collect();
        jobs.sort_by_key(|job| (job.slot(), job.identity.name.clone()));
        let jobs: Vec<Fate> = jobs.into_iter().map(Fate::of).collect();
        Self {
            name: plain(&cron_job.name.to_string()),
            schedule: plain(&format!("{}{zone}", spec.recurrence.schedule())),
            next,
            last: cron_job.status.last_schedule_time,
            skew,
            active: jobs.iter().filter(|fate| **fate == Fate::Running).count(),
            jobs,
        }
    }

    /// How the CronJob is.
    pub fn health(&self) -> Health {
        let finished = self.jobs.iter().rev().find(|fate| **fate != Fate::Running);
        match self.next {
            _ if finished == Some(&Fate::Failed) => Health::Failed,
            Next::Never | Next::Unreadable => Health::Stuck,
            _ if self.active > 0 => Health::Running,
            Next::Suspended => Health::Suspended,
            Next::At(_) => Health::Waiting,
        }
    }
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The worst [`Health`] first.
    #[default]
    Failed,
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
            Self::Failed => Self::Next,
            Self::Next => Self::Last,
            Self::Last => Self::Name,
            Self::Name => Self::Failed,
        }
    }

    /// What comes first.
    pub fn said(self) -> &'static str {
        match self {
            Self::Failed => "failed first",
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
            Self::Failed => rows.sort_by_key(Row::health),
            Self::Next => rows.sort_by_key(|row| if let Next::At(next) = row.next { next } else { never }),
            Self::Last => rows.sort_by_key(|row| Reverse(row.last)),
            Self::Name => {}
        }
    }
}

/// The rows in one line: how many there are in each state, and the next start.
pub fn summary(rows: &[Row], now: DateTime<Utc>) -> String {
    let of = |health: Health| rows.iter().filter(|row| row.health() == health).count();
    let running: usize = rows.iter().map(|row| row.active).sum();
    let suspended = rows.iter().filter(|row| row.next == Next::Suspended).count();
    let parts = [
        (of(Health::Failed), "failed"),
        (of(Health::Stuck), "cannot run"),
        (running, if running == 1 { "Job runs" } else { "Jobs run" }),
        (suspended, "suspended"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
    let next = rows.iter().filter_map(|row| if let Next::At(next) = row.next { Some(next) } else { None }).min();
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

/// The line for a Job that has appeared, `skew` after its slot if it has one.
pub fn line_of_start(job: &Job, now: DateTime<Utc>) -> String {
    let owner = job.identity.controller.as_ref().map(|(owner, _)| format!("{owner}: ")).unwrap_or_default();
    let skew = job.slot().map(|slot| format!(", {} after its time", milliseconds(now - slot))).unwrap_or_default();
    let name = &job.identity.name;
    plain(&format!("{}/{owner}started Job {}{skew}", name.namespace, name.name))
}

/// The line for a Job that finished between these two versions; `None` if it did not.
pub fn line_of_end(old: &Job, new: &Job) -> Option<String> {
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
