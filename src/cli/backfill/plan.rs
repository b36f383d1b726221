//! Which slots a backfill starts, and what is known of each.
//!
//! Guarantees: only slots that no controller starts any more are planned: those at or before the newest slot that is
//! started or decided. A slot counts as not run only where its Job would still exist (`kept_since`), where no controller can have
//! started it, or where it is older than the CronJob. All that may have run is started on request only. The plan of an interrupted
//! backfill has the slots that its next process starts. Pure.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, FixedOffset, SubsecRound as _, TimeDelta, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::api::ObjectName;
use crate::api::backfill::{Backfill, MOST_SLOTS, Record};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, FinishedCondition, Job};
use crate::cli::options::cluster::Since;
use crate::cli::output::{MOMENT, count};
use crate::options::PROGRAM;
use crate::terminal::{self, shell_word};

/// The most slots in a range.
const MOST_PLANNED: usize = 50_000;

/// What is asked of a backfill: at instants, or, as a command line has them, at times of which some are local.
#[derive(Clone, Debug, PartialEq)]
pub struct Question<T = DateTime<Utc>> {
    /// The first time that may be a slot.
    pub from: T,
    /// The last.
    pub to: T,
    /// The controller's zone, in which a schedule without one runs.
    pub zone: Zone,
    /// The controller's `--spread-seed`.
    pub seed: Arc<str>,
    /// The most unfinished Jobs at a time.
    pub max_active: usize,
    /// Whether to start slots again whose Job failed.
    pub again: bool,
    /// Whether to start slots that may have run.
    pub rerun: bool,
}

impl Question<Since> {
    /// The question at `now`, with local times in the zone of a schedule. The error is a sentence's end.
    pub(super) fn in_zone(&self, zone: Zone, now: DateTime<Utc>) -> Result<Question, String> {
        let at = |time: Since| match time {
            Since::At(time) => time.in_zone(zone).ok_or_else(|| "--from or --to is beyond all calendars".to_owned()),
            // Whole seconds, as the command that continues the backfill has them.
            Since::Ago(_) | Since::Day(_) => Ok(time.time(now, zone).trunc_subsecs(0)),
        };
        let (from, to) = (at(self.from)?, at(self.to)?);
        if from > to {
            return Err("--from is later than --to".to_owned());
        }
        Ok(self.clone().at(from, to))
    }
}

impl<T> Question<T> {
    /// The same question with other times.
    pub(super) fn at<U>(self, from: U, to: U) -> Question<U> {
        let Self { zone, seed, max_active, again, rerun, .. } = self;
        Question { from, to, zone, seed, max_active, again, rerun }
    }
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Known {
    /// It has a Job.
    HasJob,
    /// A Job of another owner has its name.
    NameTaken,
    /// It has no Job; one that it had may have been deleted.
    MayHaveRun,
    /// No Job was created for it.
    DidNotRun,
    /// An interrupted backfill has not begun it.
    Left,
}

/// The plan of a backfill.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillPlan {
    kind: &'static str,
    namespace: String,
    name: String,
    from: DateTime<FixedOffset>,
    to: DateTime<FixedOffset>,
    /// Later slots are the controller's.
    decided_until: DateTime<FixedOffset>,
    /// How many slots it starts.
    starts: usize,
    slots: Vec<Entry>,
    #[serde(skip)]
    is_cut: bool,
    #[serde(skip)]
    chosen: Vec<DateTime<Utc>>,
}

/// Consecutive slots of which the same is known.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    from: DateTime<FixedOffset>,
    to: DateTime<FixedOffset>,
    count: usize,
    known: Known,
    starts: bool,
    why: &'static str,
}

/// Why a CronJob cannot be backfilled now; `None` if it can.
pub(crate) fn refusal(cron_job: &CronJob, zone: Zone) -> Option<String> {
    if cron_job.deleting {
        return Some("it is being deleted".to_owned());
    }
    if cron_job.spec.suspend {
        let ObjectName { namespace, name } = &cron_job.name;
        let by = cron_job.handover.suspended_by();
        let [namespace, name] = [namespace, name].map(|word| shell_word(word));
        return Some(format!("it is suspended ({by}); {PROGRAM} resume -n {namespace} {name} resumes it"));
    }
    if cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace {
        let why = "its concurrencyPolicy is Replace, which says that of several runs only the newest is wanted";
        return Some(why.to_owned());
    }
    let timing = cron_job.timing(zone);
    let unreadable = timing.time_zone.as_ref().err().map(|error| format!("spec.timeZone: {error}"));
    let unreadable =
        unreadable.or_else(|| timing.schedule.as_ref().err().map(|error| format!("spec.schedule: {error}")));
    let unreadable = unreadable.or_else(|| cron_job.policy().err().map(ToString::to_string));
    let is_interval = || cron_job.schedule(zone).is_some_and(|schedule| schedule.interval().is_some());
    let interval = "the schedule is an @every, which counts from the last run and has no other slots in the past";
    unreadable.or_else(|| is_interval().then(|| interval.to_owned()))
}

/// Plans a backfill. `jobs` are all of the namespace. The error is a sentence's end.
pub(super) fn plan(
    cron_job: &CronJob,
    jobs: &[Arc<Job>],
    record: &Record,
    question: &Question,
    now: DateTime<Utc>,
) -> Result<BackfillPlan, String> {
    if let Some(refusal) = refusal(cron_job, question.zone) {
        return Err(refusal);
    }
    let Some(schedule) = cron_job.schedule(question.zone) else { return Err("it has no schedule".to_owned()) };
    let observed = cron_job.observed(&cron_job.status, now);
    let decided = observed.last_schedule.unwrap_or(observed.creation);
    let until = question.to.min(decided);
    let before = question.from - TimeDelta::seconds(1);
    let due = std::iter::successors(schedule.next_after(before), |slot| schedule.next_after(*slot));
    let due: Vec<DateTime<Utc>> = due.take_while(|slot| *slot <= until).take(MOST_PLANNED + 1).collect();
    if due.len() > MOST_PLANNED {
        return Err(format!("there are more than {MOST_PLANNED} slots from --from to --to; use a shorter time"));
    }
    let zone = schedule.zone().unwrap_or(question.zone);
    let evidence = Evidence::new(cron_job, jobs, record);
    let is_cut = schedule.next_after(until).is_some_and(|next| next <= question.to);
    let mut plan = BackfillPlan::new(cron_job, zone, (question.from, question.to), decided, is_cut);
    for slot in due {
        let (known, why, failed) = evidence.judge(slot);
        let starts = match known {
            Known::HasJob => question.again && failed,
            Known::NameTaken => false,
            Known::MayHaveRun => question.rerun,
            Known::DidNotRun | Known::Left => true,
        };
        plan.add(zone, slot, (known, starts, why));
    }
    if plan.starts > MOST_SLOTS {
        let planned = plan.starts;
        return Err(format!("it would start {planned} Jobs, and at most {MOST_SLOTS} are allowed; use a shorter time"));
    }
    Ok(plan)
}

/// The plan of the next process of an interrupted backfill. `is_lost` tells whether a Job of the slot that was begun last may have
/// been deleted.
pub(super) fn rest(
    cron_job: &CronJob,
    jobs: &[Arc<Job>],
    record: &Record,
    current: &Backfill,
    question: &Question,
    is_lost: bool,
) -> BackfillPlan {
    let zone = cron_job.schedule(question.zone).and_then(schedule::Schedule::zone).unwrap_or(question.zone);
    let evidence = Evidence::new(cron_job, jobs, record);
    let mut plan = BackfillPlan::new(cron_job, zone, (current.from, current.to), current.to, false);
    if let Some(begun) = current.begun {
        let row = match evidence.judge(begun.slot) {
            (known @ (Known::HasJob | Known::NameTaken), why, _) => (known, false, why),
            _ if is_lost => (Known::MayHaveRun, question.rerun, LOST),
            _ => (Known::DidNotRun, true, "the slot was begun last, and has no Job"),
        };
        plan.add(zone, begun.slot, row);
    }
    for slot in &current.left {
        let row = match evidence.judge(*slot) {
            (Known::HasJob, why, failed) => (Known::HasJob, current.again && failed, why),
            (Known::NameTaken, why, _) => (Known::NameTaken, false, why),
            _ => (Known::Left, true, "the interrupted backfill has not begun it"),
        };
        plan.add(zone, *slot, row);
    }
    plan
}

/// Why a slot without a Job may have run.
const LOST: &str = "its Job, if there was one, no longer exists";

/// What tells whether slots ran.
struct Evidence<'a> {
    cron_job: &'a CronJob,
    /// The Jobs of the CronJob by name.
    own: HashMap<&'a str, &'a Job>,
    others: HashSet<&'a str>,
    record: &'a Record,
    /// The Job of a slot after this time would still exist.
    kept_since: Option<DateTime<Utc>>,
}

impl<'a> Evidence<'a> {
    fn new(cron_job: &'a CronJob, jobs: &'a [Arc<Job>], record: &'a Record) -> Self {
        let (own, others): (Vec<&Arc<Job>>, Vec<_>) = jobs.iter().partition(|job| job.is_child_of(cron_job));
        let kept_since = kept_since(cron_job, own.iter().copied());
        Self {
            cron_job,
            own: own.into_iter().map(|job| (&*job.name.name, &**job)).collect(),
            others: others.into_iter().map(|job| &*job.name.name).collect(),
            record,
            kept_since,
        }
    }

    /// What is known of a slot, why, and whether its Job failed.
    fn judge(&self, slot: DateTime<Utc>) -> (Known, &'static str, bool) {
        let cron_job = self.cron_job;
        let name = cron_job.controller_kind.child_name(&cron_job.name.name, slot);
        if let Some(job) = self.own.get(&*name) {
            return match job.finished {
                None => (Known::HasJob, "its Job runs", false),
                Some(FinishedCondition::Complete) => (Known::HasJob, "its Job succeeded", false),
                Some(FinishedCondition::Failed) => (Known::HasJob, "its Job failed", true),
            };
        }
        if self.others.contains(&*name) {
            return (Known::NameTaken, "a Job of another owner has its name", false);
        }
        if self.record.covers(slot) {
            return (Known::MayHaveRun, "an earlier backfill covered the slot, and its Job no longer exists", false);
        }
        if slot < cron_job.creation_timestamp {
            return (Known::DidNotRun, "the slot is older than the CronJob", false);
        }
        if cron_job.status.last_schedule_time.is_none_or(|last| slot > last) {
            return (Known::DidNotRun, "a change of the policies passed over the slot", false);
        }
        if cron_job.status.last_schedule_time != Some(slot) && self.kept_since.is_some_and(|since| slot > since) {
            return (Known::DidNotRun, "its Job would still exist", false);
        }
        (Known::MayHaveRun, LOST, false)
    }
}

/// The time after which the Job of every slot that ran still exists; `None` if that is known of no time.
///
/// A history limit counts all finished Jobs of a condition, also those that a user or a backfill created, and keeps those that
/// started last. The Job of a slot starts after the slot, so that of a slot after the start of the oldest one that is kept was not
/// pruned. A limit that is not reached may have been lower, and then the oldest one that exists is the oldest one that it kept.
/// A user who deletes a Job leaves no trace, unless it is that of the newest slot.
pub(in crate::cli) fn kept_since<'a>(
    cron_job: &CronJob,
    children: impl IntoIterator<Item = &'a Arc<Job>>,
) -> Option<DateTime<Utc>> {
    let children: Vec<_> = children.into_iter().collect();
    let newest = cron_job.status.last_schedule_time;
    let newest = newest.map(|slot| cron_job.controller_kind.child_name(&cron_job.name.name, slot));
    let is_gone = |name: &String| !children.iter().any(|job| *job.name.name == **name);
    if loses_jobs(cron_job) || newest.as_ref().is_some_and(is_gone) {
        return None;
    }
    let spec = &cron_job.spec;
    let limits = [
        (FinishedCondition::Complete, spec.successful_jobs_history_limit),
        (FinishedCondition::Failed, spec.failed_jobs_history_limit),
    ];
    let mut since = None;
    for (end, limit) in limits {
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0));
        let ended = children.iter().filter(|job| job.finished == Some(end));
        let mut starts: Vec<_> = ended.map(|job| job.start_time).collect();
        // The order of the controller, which takes a Job that never started for the newest.
        starts.sort_by_key(|start| Reverse((start.is_none(), *start)));
        starts.truncate(limit);
        match starts.last() {
            Some(oldest) => since = since.max(Some((*oldest)?)),
            None if limit == 0 => return None,
            None => {}
        }
    }
    since
}

/// Whether Jobs of the CronJob are deleted for other reasons than its history limits: by Replace, when they are stuck, to end a
/// pause, or when they expire.
fn loses_jobs(cron_job: &CronJob) -> bool {
    let limits = cron_job.limits();
    cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace
        || limits.deletes_after().is_some()
        || limits.pause_after_failures.is_some()
        || cron_job.spec.job_template.time_to_live().is_some()
}

impl BackfillPlan {
    /// One without slots.
    fn new(
        cron_job: &CronJob,
        zone: Zone,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
        decided_until: DateTime<Utc>,
        is_cut: bool,
    ) -> Self {
        Self {
            kind: cron_job.controller_kind.parent.kind,
            namespace: cron_job.name.namespace.to_string(),
            name: cron_job.name.name.to_string(),
            from: zone.at(from),
            to: zone.at(to),
            decided_until: zone.at(decided_until),
            starts: 0,
            slots: Vec::new(),
            is_cut,
            chosen: Vec::new(),
        }
    }

    fn add(&mut self, zone: Zone, slot: DateTime<Utc>, (known, starts, why): (Known, bool, &'static str)) {
        self.chosen.extend(starts.then_some(slot));
        self.starts = self.chosen.len();
        let slot = zone.at(slot);
        let is_same = |last: &&mut Entry| (last.known, last.starts, last.why) == (known, starts, why);
        match self.slots.last_mut().filter(is_same) {
            Some(last) => (last.to, last.count) = (slot, last.count + 1),
            None => self.slots.push(Entry { from: slot, to: slot, count: 1, known, starts, why }),
        }
    }

    /// The slots to start, oldest first.
    pub fn chosen(&self) -> &[DateTime<Utc>] {
        &self.chosen
    }

    /// The lines for people.
    pub fn lines(&self) -> Vec<String> {
        let Self { kind, namespace, name, .. } = self;
        let all = self.slots.iter().map(|entry| entry.count).sum();
        let mut lines = vec![format!(
            "Backfill of {kind} {namespace}/{name} from {} to {}: {} of {} to start.",
            self.from.format(MOMENT),
            self.to.format(MOMENT),
            self.starts,
            count(all, "slot"),
        )];
        if self.is_cut {
            let until = self.decided_until.format(MOMENT);
            lines.push(format!("Slots after {until} are the controller's, and are left out."));
        }
        if !self.slots.is_empty() {
            let heading = ["SLOT", "KNOWN", "START", "WHY"].map(str::to_owned);
            let rows: Vec<_> = std::iter::once(heading).chain(self.slots.iter().map(Entry::row)).collect();
            lines.extend(terminal::columns(&rows));
        }
        let held = self.slots.iter().filter(|entry| entry.known == Known::MayHaveRun && !entry.starts);
        let held: usize = held.map(|entry| entry.count).sum();
        if held > 0 {
            lines.push(format!("{} may have run; --rerun starts these, too.", count(held, "slot")));
        }
        lines
    }
}

impl Entry {
    fn row(&self) -> [String; 4] {
        let (from, to) = (self.from.format(MOMENT), self.to.format(MOMENT));
        let time = if self.count == 1 { from.to_string() } else { format!("{from} to {to} ({})", self.count) };
        let known = match self.known {
            Known::HasJob => "has a Job",
            Known::NameTaken => "name is taken",
            Known::MayHaveRun => "may have run",
            Known::DidNotRun => "did not run",
            Known::Left => "is left",
        };
        let starts = if self.starts { "yes" } else { "no" };
        [time, known.to_owned(), starts.to_owned(), self.why.to_owned()]
    }
}
