//! Past and expected runs on a line of time.
//!
//! Guarantees: what became of a slot is what `explain --since` says, and expected runs are those of `next`. A line has a
//! bounded number of marks: expected runs are joined, and if there are more passed slots, it says so. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use serde::Serialize;

use super::model::Board;
use super::objects::WatchedCronJob;
use crate::api::ObjectName;
use crate::api::batch_v1::CronJob;
use crate::cli::forecast::stopped;
use crate::cli::next::cron_jobs::slots_after;
use crate::cli::slots::{Fate, History, Judged, RunResult};

/// The most slots of a line without a Job.
const MARKS: usize = 1_500;
/// So many marks of expected runs have room on a line.
const MARKS_EXPECTED: i32 = 150;

/// The line of one CronJob.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its Jobs.
    pub runs: Vec<Run>,
    /// Slots without a Job.
    pub slots: Vec<Mark>,
    /// Expected runs.
    pub expected: Vec<Expected>,
    /// Whether there are more slots than are shown.
    pub cut: bool,
}

/// One expected run, or several that are too close to be drawn one by one.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// When the first is due.
    pub from: DateTime<Utc>,
    /// When the last is due, to within the distance of two marks.
    pub to: DateTime<Utc>,
}

/// A Job.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its name.
    pub job: String,
    /// Its slot; `None` for one that a user or a backfill created.
    pub slot: Option<DateTime<Utc>>,
    /// Whether a backfill created it.
    pub of_backfill: bool,
    /// When it was created.
    pub start: DateTime<Utc>,
    /// When it ended, if it has and this is known.
    pub end: Option<DateTime<Utc>>,
    /// How it ended.
    pub result: RunResult,
}

/// A slot without a Job.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// When it was due.
    pub due: DateTime<Utc>,
    /// What became of it.
    pub fate: Fate,
    /// How its run ended, for one whose Job no longer exists.
    pub run: Option<RunResult>,
    /// Why it was not started, in a word.
    pub reason: &'static str,
    /// The same in words.
    pub why: String,
}

/// The Jobs of a CronJob, oldest first.
pub fn runs(board: &Board, watched: &WatchedCronJob) -> Vec<Run> {
    let cron_job = &watched.cron_job;
    let jobs = board.source.jobs.by_controller(&cron_job.uid);
    let mut runs: Vec<Run> = jobs
        .iter()
        .filter(|watched| watched.job.is_child_of(cron_job))
        .map(|watched| Run {
            job: watched.job.name.name.to_string(),
            slot: watched.job.slot_of(cron_job),
            of_backfill: watched.job.of_backfill,
            start: watched.job.creation_timestamp,
            end: watched.ended,
            result: RunResult::of(&watched.job),
        })
        .collect();
    runs.sort_by(|a, b| (a.start, &a.job).cmp(&(b.start, &b.job)));
    runs
}

/// The line of a CronJob between two times; `None` if it no longer exists.
pub fn line(board: &Board, name: &ObjectName, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<Line> {
    let watched = board.source.cron_jobs.get(name)?;
    let (now, zone): (_, Zone) = (board.now(), board.zone);
    let known = board.source.known(&watched, zone, now);
    let cron_job = &known.facts.cron_job;
    let (since, until) = (cron_job.nominal(from) - TimeDelta::seconds(1), cron_job.nominal(to));
    let history = History::new(&known, zone, now);
    let told = &history.explanation;
    let is_held = told.by_schedule.is_held() || stopped(&known.facts, told).is_some();
    let (judged, cut) = history.judged(since, until, MARKS);
    // A Job is a bar of its own.
    let slots = judged.into_iter().filter(|judged| judged.job.is_none());
    let slots = slots.map(|judged| {
        let Judged { slot, fate, run, reason, why, .. } = judged;
        Mark { due: cron_job.due(slot), fate, run, reason, why }
    });
    let in_view = |run: &Run| run.start <= to && run.end.is_none_or(|end| end >= from);
    Some(Line {
        namespace: cron_job.name.namespace.to_string(),
        name: cron_job.name.name.to_string(),
        runs: runs(board, &watched).into_iter().filter(in_view).collect(),
        slots: slots.collect(),
        cut,
        // What is held starts when something else than time has happened.
        expected: if is_held { Vec::new() } else { expected(cron_job, zone, (from, to), now) },
    })
}

/// The runs after `now` in a time. The search passes over slots that are closer than half a mark, so that its steps are
/// bounded for any schedule.
fn expected(
    cron_job: &CronJob,
    zone: Zone,
    (from, to): (DateTime<Utc>, DateTime<Utc>),
    now: DateTime<Utc>,
) -> Vec<Expected> {
    let mut groups: Vec<Expected> = Vec::new();
    if cron_job.spec.suspend || cron_job.deleting {
        return groups;
    }
    let gap = (to - from) / MARKS_EXPECTED;
    let next = |after: DateTime<Utc>| slots_after(cron_job, zone, cron_job.nominal(after), now).next();
    let mut after = from.max(now);
    while let Some(due) = next(after).map(|slot| cron_job.due(slot)).filter(|due| *due <= to) {
        match groups.last_mut().filter(|last| due - last.to < gap) {
            Some(last) => last.to = due,
            None => groups.push(Expected { from: due, to: due }),
        }
        after = due + gap / 2;
    }
    groups
}

#[cfg(test)]
mod tests;
