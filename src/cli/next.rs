//! The next or the previous runs of a schedule, and the schedule in words.
//!
//! Guarantees: the runs are those of the controller, from the same parser and the same search. Runs that a clock change
//! skips are listed among them. What batch/v1 refuses of the schedule is noted. Pure.
//!
//! `cron_jobs` answers for CronJobs with their policies.

pub mod cron_jobs;
#[cfg(feature = "dev")]
pub mod manifests;

use std::collections::VecDeque;

use chrono::{DateTime, FixedOffset, NaiveDateTime, TimeDelta, Utc};
use schedule::{Schedule, Zone};
use serde::Serialize;

use super::clock_changes::{Effect, Twin, clocks, effects, twin};
use super::output::{MOMENT, Report, count};
use super::words;
use crate::terminal;

/// How far back runs are searched: as far as the controller searches ahead.
const FURTHEST_BACK: TimeDelta = TimeDelta::days(5 * 366);

/// The arguments of `next`.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The schedule as written.
    pub text: String,
    /// The schedule.
    pub schedule: Schedule,
    /// List the runs after this instant, or up to it; without it, now.
    pub from: Option<DateTime<Utc>>,
    /// The number of runs.
    pub count: usize,
    /// Whether to list the runs up to the instant.
    pub previous: bool,
}

/// The runs after an instant, or up to it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextRuns {
    schedule: String,
    words: String,
    /// The zone of the fields; `None` for `@every`.
    time_zone: Option<&'static str>,
    from: DateTime<FixedOffset>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    previous: bool,
    runs: Vec<Run>,
    skipped: Vec<Skipped>,
    /// Whether no further run exists within the controller's search limit.
    ends: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    time: DateTime<FixedOffset>,
    utc: DateTime<Utc>,
    /// Which of two runs at the same local time this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    twice: Option<Twin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Local times that a clock change skips.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Skipped {
    first: NaiveDateTime,
    last: NaiveDateTime,
    times: usize,
    #[serde(skip)]
    at: DateTime<Utc>,
    note: String,
}

/// Computes the answer.
pub fn next_runs(question: &Question, now: DateTime<Utc>) -> NextRuns {
    let Question { text, schedule, from, count, previous } = question;
    let from = from.unwrap_or(now);
    let zone = schedule.zone().unwrap_or(Zone::UTC);
    let after = |t: DateTime<Utc>| std::iter::successors(schedule.next_after(t), |t| schedule.next_after(*t));
    let runs: Vec<DateTime<Utc>> =
        if *previous { previous_runs(schedule, from, *count) } else { after(from).take(*count).collect() };
    let ends = runs.len() < *count;
    let (start, end) = if *previous {
        (runs.first().map_or(from, |first| *first - TimeDelta::seconds(1)), from)
    } else {
        (from, runs.last().copied().unwrap_or(from))
    };
    let skips = effects(schedule, start, end).into_iter().filter(Effect::is_skip);
    NextRuns {
        schedule: text.clone(),
        words: words::describe(schedule),
        time_zone: schedule.zone().map(Zone::name),
        from: zone.at(from),
        previous: *previous,
        skipped: skips.map(|effect| Skipped::new(&effect)).collect(),
        runs: runs.into_iter().map(|t| Run::new(schedule, zone, t)).collect(),
        ends,
        notes: notes(text, schedule),
    }
}

/// The last runs up to `until`, ascending. A schedule is searched forward only, from further and further back.
fn previous_runs(schedule: &Schedule, until: DateTime<Utc>, count: usize) -> Vec<DateTime<Utc>> {
    let mut back = TimeDelta::days(1);
    loop {
        let first = schedule.next_after(until - back);
        let runs = std::iter::successors(first, |t| schedule.next_after(*t)).take_while(|t| *t <= until);
        let mut last = VecDeque::with_capacity(count);
        for run in runs {
            if last.len() == count {
                last.pop_front();
            }
            last.push_back(run);
        }
        if last.len() == count || back >= FURTHEST_BACK {
            return last.into();
        }
        back = (back * 4).min(FURTHEST_BACK);
    }
}

/// What a batch/v1 CronJob with this schedule does not do.
fn notes(text: &str, schedule: &Schedule) -> Vec<String> {
    let zone = text
        .contains("TZ")
        .then(|| "batch/v1 refuses it: cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    let is_close = schedule.interval().is_some_and(|interval| interval < TimeDelta::minutes(1));
    let close = is_close
        .then(|| "In batch/v1, runs within a minute share a Job's name: only the first of them starts.".to_owned());
    zone.into_iter().chain(close).collect()
}

impl NextRuns {
    /// Whether there is no run at all.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl Run {
    fn new(schedule: &Schedule, zone: Zone, t: DateTime<Utc>) -> Self {
        let twice = twin(schedule, t).map(|(which, _)| which);
        Self { time: zone.at(t), utc: t, twice, note: twin_note(schedule, t) }
    }
}

/// What the run at `t` is of two at the same local time.
fn twin_note(schedule: &Schedule, t: DateTime<Utc>) -> Option<String> {
    let (which, change) = twin(schedule, t)?;
    let (old, new) = clocks(change);
    let (old, new) = (old.format("%H:%M"), new.format("%H:%M"));
    Some(match which {
        Twin::First => format!("the first of two runs: at {old} the clocks go back to {new}"),
        Twin::Second => format!("the second of two runs: at {old} the clocks went back to {new}"),
    })
}

impl Skipped {
    fn new(effect: &Effect) -> Self {
        let (old, new) = clocks(effect.change);
        let (first, last) = (effect.times[0], effect.times[effect.times.len() - 1]);
        let times = effect.times.len();
        let what = match times {
            1 => "skipped".to_owned(),
            _ => format!("{}, to {}, skipped", count(times, "run"), last.format("%H:%M")),
        };
        let note = format!("{what}: the clocks go from {} to {}", old.format("%H:%M"), new.format("%H:%M"));
        Self { first, last, times, at: effect.change.at, note }
    }

    fn row(&self) -> [String; 3] {
        [self.first.format("%a %F %T").to_string(), "-".to_owned(), self.note.clone()]
    }
}

const HEADINGS: [&str; 3] = ["RUN", "UTC", "NOTE"];

impl Report for NextRuns {
    fn lines(&self) -> Vec<String> {
        let (from, side) = (self.from.format(MOMENT), if self.previous { "up to" } else { "after" });
        let place = match self.time_zone {
            Some(zone) => format!("in {zone}"),
            None => "counted from the last run (here from the given time)".to_owned(),
        };
        let mut lines = vec![format!("{} {place}, {side} {from}", self.schedule), self.words.clone()];
        lines.extend(self.notes.iter().cloned());
        lines.push(String::new());
        if self.is_empty() {
            let what = if self.previous {
                "It never fired: it matches no time in the five years before."
            } else {
                "It never fires: it matches no time in the next five years."
            };
            lines.push(what.to_owned());
            return lines;
        }
        let run = |run: &Run| {
            let note = run.note.clone().unwrap_or_default();
            (run.utc, [run.time.format(MOMENT).to_string(), run.utc.format("%FT%TZ").to_string(), note])
        };
        let skipped = |skip: &Skipped| (skip.at, skip.row());
        let mut rows: Vec<_> = self.skipped.iter().map(skipped).chain(self.runs.iter().map(run)).collect();
        // What a change skips at an instant comes before a run at that instant.
        rows.sort_by_key(|(at, _)| *at);
        let table: Vec<[String; 3]> =
            std::iter::once(HEADINGS.map(str::to_owned)).chain(rows.into_iter().map(|(_, cells)| cells)).collect();
        lines.extend(terminal::columns(&table));
        if self.ends {
            let side = if self.previous { "precedes" } else { "follows" };
            lines.push(format!("No run {side} within five years."));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
