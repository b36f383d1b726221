//! The next runs of CronJobs with their policies.
//!
//! Guarantees: slots, policies and the times at which runs are due are the controller's, from the same code. Pure.

use std::sync::Arc;

use chrono::{DateTime, FixedOffset, NaiveDateTime, TimeDelta, Utc};
use schedule::missed::{self, is_never_due};
use schedule::{Evaluation, LeftOut, Schedule, Zone};
use serde::Serialize;

use super::{Skipped, twin_note};
use crate::api::batch_v1::CronJob;
use crate::api::policy::{DST, EXCLUDE, NOT_AFTER, NOT_BEFORE, Policy, SCHEDULE};
use crate::cli::clock_changes::{Effect, clocks, effects};
use crate::cli::hints;
use crate::cli::output::{MOMENT, Report};
use crate::cli::restrictions::sentences;
use crate::terminal;

/// How many slots that policies leave out are listed, if more runs are not asked for.
const MOST_LEFT_OUT: usize = 100;

/// A time as it is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given {
    /// With an offset.
    Instant(DateTime<Utc>),
    /// Without: local time in the zone of each schedule.
    Local(NaiveDateTime),
}

impl Given {
    /// The instant; `None` beyond chrono's range.
    pub fn in_zone(self, zone: Zone) -> Option<DateTime<Utc>> {
        match self {
            Self::Instant(time) => Some(time),
            Self::Local(time) => zone.instant(time),
        }
    }
}

/// What is asked of CronJobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The controller's zone, in which a schedule without one runs.
    pub zone: Zone,
    /// The controller's `--spread-seed`.
    pub seed: Arc<str>,
    /// List the runs that are due after this time; without it, now.
    pub from: Option<Given>,
    /// The number of runs of each CronJob.
    pub count: usize,
    /// Whether to list what policies leave out.
    pub all: bool,
}

/// The runs of one CronJob, or of each of several.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// Of the only one in the manifests.
    One(Box<CronJobRuns>),
    /// Of each.
    Each(Vec<CronJobRuns>),
}

/// The next runs of a CronJob.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobRuns {
    kind: &'static str,
    namespace: String,
    name: String,
    /// `spec.schedule`.
    schedule: String,
    /// The zone of the schedule; `None` for `@every`.
    time_zone: Option<&'static str>,
    from: DateTime<FixedOffset>,
    runs: Vec<Run>,
    /// What clock changes skip until the last run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped>,
    /// What policies leave out of the schedule until the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<Vec<Omission>>,
    /// Whether no further run exists within the controller's search limit.
    ends: bool,
    /// Whose rules these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<String>,
    /// Why it does not run at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    /// The time that gives the Job its name.
    slot: DateTime<FixedOffset>,
    /// When the Job may start.
    due: DateTime<FixedOffset>,
    /// Empty where there is nothing to say.
    note: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Omission {
    slot: DateTime<FixedOffset>,
    annotation: &'static str,
}

impl Answer {
    fn each(&self) -> &[CronJobRuns] {
        match self {
            Self::One(only) => std::slice::from_ref(only),
            Self::Each(all) => all,
        }
    }

    /// Whether every CronJob has a run.
    pub fn is_good(&self) -> bool {
        self.each().iter().all(|answer| !answer.runs.is_empty())
    }
}

impl CronJobRuns {
    /// The runs of a CronJob. Those of an `@every` that has run, or that exists, follow the last one.
    pub fn of(cron_job: &CronJob, question: &Question, now: DateTime<Utc>) -> Self {
        let count = question.count;
        let schedule = valid_schedule(cron_job, question.zone);
        let zone = cron_job.zone(question.zone);
        let from = question.from.and_then(|from| from.in_zone(zone)).unwrap_or(now);
        let start = cron_job.nominal(from).max(cron_job.creation_timestamp);
        let slots: Vec<DateTime<Utc>> = slots_after(cron_job, question.zone, start, now).take(count).collect();
        let ends = slots.len() < count;
        let until = slots.last().copied().filter(|_| !ends);
        let left_out = schedule.filter(|_| question.all).map(|schedule| {
            let nominal = schedule.nominal(start).take_while(|nominal| until.is_none_or(|until| nominal.slot <= until));
            let omitted = nominal.filter_map(|nominal| Some((nominal.slot, annotation(nominal.left_out?))));
            omitted
                .take(count.max(MOST_LEFT_OUT))
                .map(|(slot, annotation)| Omission { slot: zone.at(slot), annotation })
                .collect()
        });
        let skipped = schedule.zip(slots.last()).filter(|_| !is_once_a_time(cron_job)).map(|(schedule, last)| {
            let skips = effects(schedule, start, *last).into_iter().filter(Effect::is_skip);
            skips.map(|effect| Skipped::new(&effect)).collect()
        });
        let run = |slot: DateTime<Utc>| Run {
            slot: zone.at(slot),
            due: zone.at(cron_job.due(slot)),
            note: schedule.and_then(|schedule| note(cron_job, schedule, slot)).unwrap_or_default(),
        };
        Self {
            kind: cron_job.controller_kind.parent.kind,
            namespace: cron_job.name.namespace.to_string(),
            name: cron_job.name.name.to_string(),
            schedule: lines_of(cron_job).unwrap_or_else(|| cron_job.spec.recurrence.schedule()).to_owned(),
            time_zone: cron_job.own_zone(question.zone).map(Zone::name),
            from: zone.at(from),
            runs: slots.into_iter().map(run).collect(),
            skipped: skipped.unwrap_or_default(),
            left_out,
            ends,
            problem: problem(cron_job, question.zone),
            controller: None,
            notes: notes(cron_job, zone, now),
        }
    }

    /// The same, with a sentence about the controller first.
    #[must_use]
    pub fn run_by(mut self, sentence: String) -> Self {
        self.controller = Some(sentence);
        self
    }

    fn table(&self) -> Vec<String> {
        let moment = |time: &DateTime<FixedOffset>| time.format(MOMENT).to_string();
        let place = self.time_zone.map_or_else(String::new, |zone| format!(" in {zone}"));
        let title = format!(
            "{} {}/{}: {}{place}, after {}",
            self.kind,
            self.namespace,
            self.name,
            self.schedule,
            moment(&self.from)
        );
        let mut lines = vec![title];
        lines.extend(self.controller.iter().chain(&self.problem).chain(&self.notes).cloned());
        let runs = self.runs.iter().map(|run| (run.slot, [moment(&run.slot), moment(&run.due), run.note.clone()]));
        let left_out = self.left_out.iter().flatten();
        let left_out = left_out.map(|omission| {
            let note = format!("left out by {}", omission.annotation);
            (omission.slot, [moment(&omission.slot), "-".to_owned(), note])
        });
        let skipped = self.skipped.iter().map(|skip| (skip.at.fixed_offset(), skip.row()));
        // What a change skips at an instant comes before a run at that instant.
        let mut rows: Vec<_> = skipped.chain(runs).chain(left_out).collect();
        rows.sort_by_key(|(slot, _)| *slot);
        if !rows.is_empty() {
            let heading = ["SLOT", "DUE", "NOTE"].map(str::to_owned);
            let table: Vec<[String; 3]> =
                std::iter::once(heading).chain(rows.into_iter().map(|(_, row)| row)).collect();
            lines.extend(terminal::columns(&table));
        }
        if self.ends && self.problem.is_none() {
            let which = if self.runs.is_empty() { "No run" } else { "No further run" };
            lines.push(format!("{which} follows within five years."));
        }
        lines
    }
}

/// The schedule of a CronJob that can run.
fn valid_schedule(cron_job: &CronJob, zone: Zone) -> Option<&Schedule> {
    cron_job.schedule(zone).filter(|_| problem(cron_job, zone).is_none())
}

/// The slots after `start`, without an end but for that of the search. `zone` is that of the controller.
pub(crate) fn slots_after(
    cron_job: &CronJob,
    zone: Zone,
    start: DateTime<Utc>,
    now: DateTime<Utc>,
) -> impl Iterator<Item = DateTime<Utc>> {
    let schedule = valid_schedule(cron_job, zone);
    let is_counted = cron_job.creation_timestamp > DateTime::UNIX_EPOCH;
    let first = schedule.and_then(|schedule| match schedule.interval().filter(|_| is_counted) {
        Some(_) => {
            missed::next_requeue_time(&cron_job.observed(&cron_job.status, now), start, &Evaluation::of(schedule), None)
        }
        None => schedule.next_after(start),
    });
    std::iter::successors(first, move |slot| schedule?.next_after(*slot))
}

/// The lines of the annotation that replaces `spec.schedule`.
fn lines_of(cron_job: &CronJob) -> Option<&str> {
    cron_job.policy().ok().flatten().and_then(Policy::lines)
}

/// Why a CronJob does not run at all.
fn problem(cron_job: &CronJob, zone: Zone) -> Option<String> {
    let timing = cron_job.timing(zone);
    let of_zone = timing.time_zone.as_ref().err().map(|error| format!("It does not run: spec.timeZone: {error}."));
    let of_schedule = timing.schedule.as_ref().err().map(|error| {
        let refusal = format!("It does not run: spec.schedule: {error}");
        format!("{}.", hints::with(refusal, cron_job.spec.recurrence.schedule()))
    });
    let of_policy = cron_job.policy().err().map(|error| format!("It does not run: {error}."));
    let schedule = cron_job.schedule(zone);
    let of_deadline = || never_due(schedule?, cron_job.spec.starting_deadline_seconds).map(str::to_owned);
    of_zone.or(of_schedule).or(of_policy).or_else(of_deadline)
}

/// That no run of a schedule is ever in time for the deadline.
pub(crate) fn never_due(schedule: &Schedule, deadline: Option<i64>) -> Option<&'static str> {
    is_never_due(schedule, deadline).then(|| {
        if schedule.interval().is_some() {
            "It never runs: spec.startingDeadlineSeconds is shorter than the interval of @every, whose runs then always count from the \
             deadline."
        } else {
            "It never runs: spec.startingDeadlineSeconds has passed whenever a run is due."
        }
    })
}

fn notes(cron_job: &CronJob, zone: Zone, now: DateTime<Utc>) -> Vec<String> {
    let suspended = cron_job.spec.suspend.then(|| {
        let by = cron_job.handover.suspended_by();
        format!("It is suspended ({by}): no run starts until it is resumed.")
    });
    let unknown = cron_job.policies.iter().map(|policies| &policies.unknown);
    let own = cron_job.spec.recurrence.schedule();
    let replaced = lines_of(cron_job)
        .map(|_| format!("Its schedule is that of {SCHEDULE}, which replaces spec.schedule ({own})."));
    let mut notes: Vec<String> = suspended.into_iter().chain(replaced).collect();
    if let Some(restriction) = cron_job.restriction() {
        notes.extend(sentences(restriction, zone, now));
    }
    for unknown in unknown {
        notes.extend(unknown.names().map(|name| format!("The annotation {name} is not known.")));
        notes.extend((unknown.more() > 0).then(|| format!("{} more annotations are not known.", unknown.more())));
    }
    notes
}

/// The annotation that leaves a slot out.
pub(crate) fn annotation(left_out: LeftOut) -> &'static str {
    match left_out {
        LeftOut::Excluded => EXCLUDE,
        LeftOut::TooEarly => NOT_BEFORE,
        LeftOut::TooLate => NOT_AFTER,
        LeftOut::Repeated => DST,
    }
}

/// Whether each local time counts once, so that a clock change skips none.
fn is_once_a_time(cron_job: &CronJob) -> bool {
    cron_job.policy().ok().flatten().is_some_and(Policy::is_once_a_time)
}

/// What a clock change does to a run.
fn note(cron_job: &CronJob, schedule: &Schedule, slot: DateTime<Utc>) -> Option<String> {
    if !is_once_a_time(cron_job) {
        return twin_note(schedule, slot);
    }
    let skips = effects(schedule, slot - TimeDelta::seconds(1), slot);
    let skip = skips.iter().find(|effect| effect.is_skip() && effect.change.at == slot)?;
    let (old, new) = clocks(skip.change);
    let (time, old, new) = (skip.times[0].format("%H:%M"), old.format("%H:%M"), new.format("%H:%M"));
    Some(format!("the run of {time}: the clocks go from {old} to {new}"))
}

impl Report for Answer {
    fn lines(&self) -> Vec<String> {
        let tables: Vec<Vec<String>> = self.each().iter().map(CronJobRuns::table).collect();
        tables.join(&String::new())
    }
}
