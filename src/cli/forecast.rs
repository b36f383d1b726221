//! What the next slots of a CronJob do if nothing changes, and if its Jobs take as long as those before.
//!
//! Guarantees: the slots are those of `next`, and what becomes of each is decided by `reconcile`, rehearsed at its time. A running Job
//! ends when the median of the runs that succeeded has passed; one that has run for longer does not end. Where no run has succeeded,
//! it is not known whether it ends in time for the next slot, and that is said. Without a controller, and while the API server refuses its
//! Jobs, no slot starts. A CronJob that nothing can hold is not rehearsed. The work is bounded by the number of slots that are asked
//! for. Pure.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use serde::Serialize;

use super::explain::rehearsal::Rehearsal;
use super::explain::{Explanation, Facts, InCharge, State};
use super::next::cron_jobs::slots_after;
use super::output::{count, moment, stretch};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, FinishedCondition, Job};
use crate::api::policy::{BACKLOG, MAX_CONCURRENT, PAUSE_AFTER_FAILURES};
use crate::api::{ControllerRef, ObjectName};
use crate::controller::plan::{Failure, Outcome, Skip, Verdict};
use crate::options::PROGRAM;

/// So many syncs follow one another at one time, at most.
const SYNCS: usize = 8;
/// So many running Jobs are named.
const NAMED: usize = 2;

/// How long runs took that succeeded and whose Jobs still exist, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Durations {
    /// The newest one.
    pub last: f64,
    /// The median of all of them.
    pub median: f64,
    /// The number of runs.
    pub runs: usize,
}

impl Durations {
    /// Those of the children of a CronJob; `None` if none has succeeded.
    pub(crate) fn of<'a>(children: impl IntoIterator<Item = &'a Arc<Job>>, now: DateTime<Utc>) -> Option<Self> {
        let succeeded = children.into_iter().filter(|job| job.succeeded && !job.of_backfill);
        let mut runs: Vec<_> = succeeded.map(|job| (job.began(), job.ran_for(now).as_seconds_f64())).collect();
        let last = runs.iter().max_by_key(|(began, _)| *began)?.1;
        runs.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        Some(Self { last, median: runs[(runs.len() - 1) / 2].1, runs: runs.len() })
    }

    /// The median.
    fn median(self) -> TimeDelta {
        #[allow(clippy::cast_possible_truncation, reason = "no Job has run for so long that this matters")]
        let millis = (self.median * 1000.0) as i64;
        TimeDelta::try_milliseconds(millis).unwrap_or(TimeDelta::MAX)
    }
}

/// What a slot will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Will {
    /// It starts when it is due.
    Start,
    /// It is held, and starts later, or nothing says when.
    Wait,
    /// It is held, and a later one starts in its place.
    Skip,
    /// It starts if a Job before it has ended by then, and no run tells how long one takes.
    Unknown,
}

/// A slot that comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ahead {
    /// The time that gives its Job its name.
    pub slot: DateTime<Utc>,
    /// When it may start.
    pub due: DateTime<Utc>,
    /// What it does.
    pub will: Will,
    /// When it starts, if that is known.
    pub starts: Option<DateTime<Utc>>,
    /// What holds it; else what it does beside its start, if anything.
    pub why: String,
}

/// What is asked of a CronJob.
pub(crate) struct Question<'a> {
    /// What is known of it.
    pub facts: &'a Facts,
    /// What `explain` says of it.
    pub told: &'a Explanation,
    /// The zone of its controller.
    pub local: Zone,
    /// The zone of the times in sentences.
    pub zone: Zone,
    /// The present.
    pub now: DateTime<Utc>,
    /// The last time at which a slot may be due.
    pub until: DateTime<Utc>,
    /// The most slots.
    pub most: usize,
}

impl Question<'_> {
    /// The slots until then, at most one in each minute, in the order in which they are due. A slot that is due already and held is
    /// the first, if it starts by then.
    pub(crate) fn answer(&self) -> Vec<Ahead> {
        let cron_job = &self.facts.cron_job;
        if cron_job.spec.suspend || cron_job.deleting {
            return Vec::new();
        }
        let start = |(slot, due)| Ahead { slot, due, will: Will::Start, starts: Some(due), why: String::new() };
        let slots = self.slots();
        if let Some(why) = stopped(self.facts, self.told) {
            let held = |at| Ahead { will: Will::Wait, starts: None, why: why.clone(), ..start(at) };
            return slots.into_iter().map(held).collect();
        }
        if !self.told.by_schedule.is_held() && !can_be_held(cron_job) {
            return slots.into_iter().map(start).collect();
        }
        Simulation::new(self).run(&slots)
    }

    fn slots(&self) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
        let cron_job = &self.facts.cron_job;
        let slots = slots_after(cron_job, self.local, cron_job.nominal(self.now), self.now);
        let slots = slots.map(|slot| (slot, cron_job.due(slot))).take_while(|(_, due)| *due <= self.until);
        let mut minute = None;
        slots
            .filter(|(_, due)| minute.replace(due.timestamp() / 60) != Some(due.timestamp() / 60))
            .take(self.most)
            .collect()
    }
}

/// Why no slot starts that nothing of the CronJob itself holds.
pub(crate) fn stopped(facts: &Facts, told: &Explanation) -> Option<String> {
    if let Some(lease) = &told.abandoned_lease {
        return Some(format!("no controller renews its Lease {lease}"));
    }
    let is_overdue = matches!(told.by_schedule, State::Overdue | State::Missed);
    match told.controller {
        InCharge::NoInstance => return Some(format!("no instance of {PROGRAM} works in its namespace")),
        InCharge::NotManaged => return Some("no controller runs what is handed over".to_owned()),
        InCharge::InTree if told.is_left_alone => {
            return Some("no lease shows that the in-tree controller runs, and it is not handed over".to_owned());
        }
        InCharge::HandedOver if is_overdue && facts.lease.is_none() => {
            return Some("no lease shows that a controller runs what is handed over".to_owned());
        }
        _ => {}
    }
    let since = told.due_since.filter(|_| is_overdue)?;
    facts.refused_since(since).map(|said| format!("the API server refuses its Job: {}", said.refusal()))
}

/// Whether running Jobs, or failed ones, may matter to a slot.
fn can_be_held(cron_job: &CronJob) -> bool {
    let limits = cron_job.limits();
    matches!(cron_job.spec.concurrency_policy, ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace)
        || limits.max_concurrent.is_some()
        || limits.backlog.is_some()
        || limits.pause_after_failures.is_some()
}

/// The CronJob and its Jobs as they will be.
struct Simulation<'a> {
    question: &'a Question<'a>,
    cron_job: Arc<CronJob>,
    jobs: Vec<Arc<Job>>,
    median: Option<TimeDelta>,
    found: Vec<Ahead>,
}

impl<'a> Simulation<'a> {
    fn new(question: &'a Question<'a>) -> Self {
        let Facts { cron_job, jobs, .. } = question.facts;
        let median = Durations::of(question.facts.children(), question.now).map(Durations::median);
        Self { question, cron_job: Arc::clone(cron_job), jobs: jobs.clone(), median, found: Vec::new() }
    }

    fn run(mut self, slots: &[(DateTime<Utc>, DateTime<Utc>)]) -> Vec<Ahead> {
        self.step(self.question.now);
        let mut slots = slots.iter().copied().peekable();
        loop {
            let end = self.next_end().filter(|end| *end <= self.question.until);
            let due = slots.peek().map(|(_, due)| *due);
            match (due, end) {
                (Some(due), end) if end.is_none_or(|end| due < end) => {
                    let slot = slots.next().map_or(due, |(slot, _)| slot);
                    self.found.push(Ahead { slot, due, will: Will::Wait, starts: None, why: String::new() });
                    self.step(due);
                    self.doubt();
                }
                (_, Some(end)) => {
                    self.end(end);
                    // A slot that is due at that very time is looked at next.
                    if due != Some(end) {
                        self.step(end);
                    }
                }
                (_, None) => break,
            }
        }
        let last = self.found.iter().filter(|ahead| ahead.starts.is_some()).map(|ahead| ahead.slot).max();
        for ahead in &mut self.found {
            let is_held = ahead.starts.is_none() && ahead.will == Will::Wait;
            if is_held && last.is_some_and(|last| last > ahead.slot) {
                ahead.will = Will::Skip;
            }
        }
        self.found.sort_by_key(|ahead| ahead.due);
        self.found
    }

    /// The slot that was looked at last is in doubt if Jobs hold it of which nothing tells how long they run, and that hold none now.
    fn doubt(&mut self) {
        let is_open =
            self.median.is_none() && !self.question.told.by_schedule.is_held() && self.running().next().is_some();
        if let Some(ahead) = self.found.last_mut().filter(|ahead| is_open && ahead.starts.is_none()) {
            ahead.will = Will::Unknown;
        }
    }

    /// When a running Job is expected to end.
    fn end_of(&self, job: &Job) -> Option<DateTime<Utc>> {
        if job.is_held() {
            return None;
        }
        let end = job.began().checked_add_signed(self.median?)?;
        (end > self.question.now).then_some(end)
    }

    fn running(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.iter().filter(|job| job.finished.is_none() && job.is_child_of(&self.cron_job))
    }

    fn next_end(&self) -> Option<DateTime<Utc>> {
        self.running().filter_map(|job| self.end_of(job)).min()
    }

    /// Ends the Jobs that are expected to end then.
    fn end(&mut self, at: DateTime<Utc>) {
        let is_over = |job: &Arc<Job>| {
            job.finished.is_none() && job.is_child_of(&self.cron_job) && self.end_of(job).is_some_and(|end| end <= at)
        };
        let over: Vec<usize> = (0..self.jobs.len()).filter(|number| is_over(&self.jobs[*number])).collect();
        for number in over {
            let job = Arc::make_mut(&mut self.jobs[number]);
            (job.finished, job.succeeded, job.completion_time) = (Some(FinishedCondition::Complete), true, Some(at));
        }
    }

    /// What syncs do at a time.
    fn step(&mut self, at: DateTime<Utc>) {
        for _ in 0..SYNCS {
            let sync = Rehearsal::of(&self.cron_job, &self.jobs, self.question.local, at);
            let started = sync.starts().cloned();
            let why = if started.is_none() { self.why(&sync) } else { String::new() };
            let Rehearsal { replaced: deleted, settlement, .. } = sync;
            if let Some(write) = settlement.status {
                Arc::make_mut(&mut self.cron_job).status = write.status;
            }
            self.jobs.retain(|job| !deleted.contains(&job.name));
            if let Some((name, slot)) = started {
                self.started(slot, at, &deleted);
                self.jobs.push(Arc::new(self.job(&name, slot, at)));
                continue;
            }
            if let Some(ahead) = self.found.iter_mut().rfind(|ahead| ahead.due == at && ahead.starts.is_none()) {
                ahead.why = why;
            }
            if deleted.is_empty() {
                return;
            }
        }
    }

    fn started(&mut self, slot: DateTime<Utc>, at: DateTime<Utc>, deleted: &[ObjectName]) {
        let due = self.cron_job.due(slot);
        let found = self.found.iter().rposition(|ahead| ahead.slot == slot);
        let found = found.unwrap_or_else(|| {
            let why = format!("it has been due since {}", moment(self.question.zone, due));
            self.found.push(Ahead { slot, due, will: Will::Wait, starts: None, why });
            self.found.len() - 1
        });
        let ahead = &mut self.found[found];
        ahead.starts = Some(at);
        if at <= due {
            ahead.will = Will::Start;
            let names: Vec<&str> = deleted.iter().take(NAMED).map(|name| &*name.name).collect();
            ahead.why = if names.is_empty() {
                String::new()
            } else {
                let still =
                    if self.median.is_some() { "which still runs by then" } else { "if that still runs by then" };
                format!("it deletes {}, {still} (concurrencyPolicy is Replace)", names.join(" and "))
            };
        }
    }

    /// The Job that a sync creates.
    fn job(&self, name: &ObjectName, slot: DateTime<Utc>, at: DateTime<Utc>) -> Job {
        let parent = self.cron_job.controller_kind.parent;
        let controller = ControllerRef {
            group: parent.group.into(),
            kind: parent.kind.into(),
            name: Arc::clone(&self.cron_job.name.name),
            uid: self.cron_job.uid.clone(),
        };
        Job {
            creation_timestamp: at,
            controller: Some(Arc::new(controller)),
            start_time: Some(at),
            ..Rehearsal::created(name, slot)
        }
    }

    /// Why a sync starts nothing.
    fn why(&self, sync: &Rehearsal) -> String {
        let limits = self.cron_job.limits();
        if sync.event("Paused").is_some() {
            let failed = match limits.pause_after_failures.unwrap_or_default() {
                1 => "run".to_owned(),
                number => count(number, "run"),
            };
            return format!("it is paused until a run succeeds: the last {failed} failed ({PAUSE_AFTER_FAILURES})");
        }
        if let Outcome::Failed(Failure::Template(message)) = &sync.settlement.outcome {
            return format!("its template cannot become a Job: {message}");
        }
        let Verdict::Skipped(skip) = sync.settlement.verdict else { return "nothing starts it".to_owned() };
        match skip {
            Skip::Forbid(_) => self.behind("concurrencyPolicy is Forbid"),
            Skip::MaxConcurrent(_) => {
                self.behind(&format!("{MAX_CONCURRENT} is {}", limits.max_concurrent.unwrap_or_default()))
            }
            Skip::Replacing(_) => self.behind("replace-waits"),
            Skip::Paused(_) => format!("it is paused until a run succeeds ({PAUSE_AFTER_FAILURES})"),
            Skip::PassedOver(_) => format!("it cannot start within 60 s ({BACKLOG})"),
            Skip::NameTaken(_) => "a Job of another owner has the name of its Job".to_owned(),
            Skip::Deadline(_) => "its startingDeadlineSeconds has passed by then".to_owned(),
            Skip::Suspended | Skip::Invalid => "it does not run".to_owned(),
        }
    }

    /// That running Jobs hold a slot.
    fn behind(&self, rule: &str) -> String {
        let mut running: Vec<&Arc<Job>> = self.running().collect();
        running.sort_by_key(|job| job.began());
        let name = |job: &&Arc<Job>| {
            let name = &job.name.name;
            match self.end_of(job) {
                Some(end) => {
                    let median = stretch(self.median.unwrap_or_default());
                    format!("{name} runs until {} by the median of {median}", moment(self.question.zone, end))
                }
                None if self.median.is_none() => {
                    format!("{name} has to end first, and no run tells how long one takes")
                }
                None => format!("{name} has to end first, and nothing says when it does"),
            }
        };
        let names: Vec<String> = running.iter().take(NAMED).map(name).collect();
        let more = running.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more} ({rule})", names.join(" and "))
    }
}

#[cfg(test)]
mod tests;
