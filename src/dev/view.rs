//! The live view's content. Pure.
//!
//! Guarantees: [`screen`] returns at most `height` lines of at most `width` characters. Rows are sorted by name, so they do not
//! jump. Every text is a single line without control characters, whatever the objects contain.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use super::objects::{Job, utc};
use crate::api::batch_v1::CronJob;
use crate::terminal::{columns, countdown, plain};

/// The number of Jobs shown for a CronJob.
const RECENT: usize = 12;

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

    fn glyph(self) -> char {
        match self {
            Self::Running => '…',
            Self::Complete => '✓',
            Self::Failed => '✗',
        }
    }
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
        let next = match &cron_job.timing(local).schedule {
            _ if spec.suspend => Next::Suspended,
            Err(_) => Next::Unreadable,
            Ok(schedule) => schedule.next_after(now).map_or(Next::Never, Next::At),
        };
        let zone = spec.recurrence.time_zone().map(|zone| format!(" ({zone})")).unwrap_or_default();
        let mut jobs: Vec<&Job> = jobs.iter().map(AsRef::as_ref).collect();
        jobs.sort_by_key(|job| (job.slot(), job.identity.name.clone()));
        let jobs: Vec<Fate> = jobs.into_iter().map(Fate::of).collect();
        Self {
            name: cron_job.name.to_string(),
            schedule: format!("{}{zone}", spec.recurrence.schedule()),
            next,
            last: cron_job.status.last_schedule_time,
            skew,
            active: jobs.iter().filter(|fate| **fate == Fate::Running).count(),
            jobs,
        }
    }

    fn cells(&self, now: DateTime<Utc>, local: Zone) -> [String; 6] {
        let next = match self.next {
            Next::At(next) => format!("in {}", countdown(next - now)),
            Next::Suspended => "suspended".to_owned(),
            Next::Never => "never".to_owned(),
            Next::Unreadable => "bad schedule".to_owned(),
        };
        let last = self.last.map_or_else(|| "-".to_owned(), |last| local.at(last).format("%H:%M:%S").to_string());
        let skew = self.skew.map(|skew| format!(" +{}", milliseconds(skew))).unwrap_or_default();
        let recent = self.jobs.iter().skip(self.jobs.len().saturating_sub(RECENT));
        [
            self.name.clone(),
            self.schedule.clone(),
            next,
            format!("{last}{skew}"),
            self.active.to_string(),
            recent.map(|fate| fate.glyph()).collect(),
        ]
    }
}

/// Formats a skew: `3 ms`, `1.2 s`, `75 s`.
pub fn milliseconds(skew: TimeDelta) -> String {
    match skew.num_milliseconds() {
        ms @ ..1_000 => format!("{ms} ms"),
        ms @ 1_000..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{} s", ms / 1000),
    }
}

const HEADINGS: [&str; 6] = ["CRONJOB", "SCHEDULE", "NEXT", "LAST", "ACTIVE", "JOBS"];

/// The lines of the live view: `header`, then the table. The last line counts the rows that do not fit.
pub fn screen(
    header: &[String],
    rows: &[Row],
    now: DateTime<Utc>,
    local: Zone,
    width: usize,
    height: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = header.to_vec();
    lines.push(String::new());
    if rows.is_empty() {
        lines.push("There are no CronJobs. Apply one with kubectl apply -f FILE.".to_owned());
    } else {
        let room = height.saturating_sub(lines.len() + 1);
        let shown = if rows.len() <= room { rows.len() } else { room.saturating_sub(1) };
        let mut table = vec![HEADINGS.map(str::to_owned)];
        table.extend(rows[..shown].iter().map(|row| row.cells(now, local).map(|cell| plain(&cell))));
        lines.extend(columns(&table));
        if shown < rows.len() {
            lines.push(format!("and {} more", rows.len() - shown));
        }
    }
    lines.truncate(height);
    lines.iter().map(|line| clip(line, width)).collect()
}

fn clip(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
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
