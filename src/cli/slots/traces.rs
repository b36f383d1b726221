//! What Jobs and Events tell of the slots of one CronJob, indexed.
//!
//! Guarantees: Jobs and Events are read once, and looking a slot up takes no more steps than the logarithm of their number. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use super::RunResult;
use super::refusals::Refusals;
use crate::api::batch_v1::{CronJob, FinishedCondition, Job};
use crate::cli::cluster::Known;
use crate::cli::explain::read::{Said, end_of};
use crate::controller::reconcile::old_at;
use crate::events::CorrelatorOptions;

/// The time of a slot as upstream's Events write it.
const TIME: &str = "%a, %d %b %Y %H:%M:%S UTC";
/// The length of such a time.
const TIME_LENGTH: usize = "Sun, 22 Nov 2026 10:00:00 UTC".len();

/// How the message of an Event begins that stands for several, which differ.
const COMBINED: &str = "(combined from similar events)";

/// The Events that say why no slot starts, and in which time each comes at most once.
const HOLDS: [&str; 2] = ["InvalidPolicy", "Paused"];
const ONCE_IN: TimeDelta = TimeDelta::hours(1);

/// The traces that slots left.
pub(super) struct Traces<'a> {
    cron_job: &'a CronJob,
    /// The CronJob's Jobs by name.
    jobs: HashMap<&'a str, &'a Arc<Job>>,
    /// The names of the Jobs that an Event says were created, ended or deleted.
    seen: HashSet<&'a str>,
    /// How those ended of which an Event says it.
    ended: HashMap<&'a str, FinishedCondition>,
    /// The times of the slots that an Event says were passed over.
    passed_over: HashSet<&'a str>,
    /// The times of the slots that an Event says were missed.
    missed: HashSet<&'a str>,
    /// The Events that say that the API server refused a Job.
    pub refusals: Refusals<'a>,
    /// From when until when failures held the CronJob, as far as an Event says it.
    paused: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Since when an Event tells of each Job that was created.
    whole_since: Option<DateTime<Utc>>,
    /// The names of slots that Jobs of other owners have, and when those were created.
    taken: HashMap<&'a str, DateTime<Utc>>,
    /// By creation: when each Job was created, and of the Jobs until then the one that ran the longest, with its end. Of Jobs that are
    /// gone, Events tell.
    runs: Vec<(DateTime<Utc>, DateTime<Utc>, &'a str)>,
    /// When each of them ended, in order.
    ends: Vec<DateTime<Utc>>,
    /// When an Event first said that its Namespace is frozen.
    pub frozen_at: Option<DateTime<Utc>>,
    /// Until when an Event says that something held it which may be over: a value that could not be read, or a pause.
    pub held_until: Option<DateTime<Utc>>,
    /// Whether it has Jobs, and none has ended, so that no history limit has deleted one.
    pub none_ended: bool,
    /// How long the longest run took whose Job exists and has ended.
    pub longest: Option<TimeDelta>,
    /// The newest slot that has a Job, or that the status names.
    pub last_slot: Option<DateTime<Utc>>,
    /// All that have, the oldest first.
    slots: Vec<DateTime<Utc>>,
}

impl<'a> Traces<'a> {
    /// Reads the Jobs and Events of a CronJob. A Job that has not ended runs until `now`.
    pub fn of(known: &'a Known, now: DateTime<Utc>) -> Self {
        let cron_job = &*known.facts.cron_job;
        let children = || steps::each(known.facts.jobs.iter()).filter(|job| job.is_child_of(cron_job));
        let limits = cron_job.limits();
        let freed = limits.deletes_after();
        let end = |job: &Job| {
            let end = if job.finished.is_none() { Some(now) } else { job.ended() };
            let freed = freed.and_then(|age| old_at(job, age));
            end.map(|end| freed.map_or(end, |freed| end.min(freed)))
        };
        // Only max-concurrent counts those of a backfill; Forbid counts those that a user made only where all are active.
        let is_counted = limits.max_concurrent.is_some();
        let all_block = is_counted || cron_job.controller_kind.every_child_is_active;
        let blocks =
            |job: &Job| all_block || job.slot_of(cron_job).is_some() || cron_job.status.in_active_list(&job.uid);
        let blocking = children().filter(|job| (is_counted || !job.of_backfill) && blocks(job));
        let runs = blocking.filter_map(|job| Some((job.creation_timestamp, end(job)?, &*job.name.name)));
        // One that was stuck kept no slot from starting from then on, also if it is gone.
        let gone = gone_runs(known).map(|(began, end, name)| {
            let freed = freed.and_then(|age| began.checked_add_signed(age));
            (began, freed.map_or(end, |freed| end.min(freed)), name)
        });
        let mut runs: Vec<_> = runs.chain(gone).collect();
        runs.sort_by_key(|(created, ..)| *created);
        let mut ends: Vec<_> = runs.iter().map(|(_, end, _)| *end).collect();
        ends.sort_unstable();
        for later in 1..runs.len() {
            let (_, end, name) = runs[later - 1];
            if runs[later].1 <= end {
                (runs[later].1, runs[later].2) = (end, name);
            }
        }
        let said = |reason| said(known, reason);
        let last_word = |reason| said(reason).filter_map(|event| Some(event.message.rsplit_once(' ')?.1));
        let ended: HashMap<_, _> = said("SawCompletedJob").filter_map(|event| end_of(&event.message)).collect();
        let seen =
            last_word("SuccessfulCreate").chain(last_word("SuccessfulDelete")).chain(ended.keys().copied()).collect();
        let passed_over = said("PassedOver")
            .filter_map(|event| Some(event.message.strip_prefix("Passed over the run of ")?.split_once(": ")?.0));
        let missed = said("MissSchedule").filter_map(|event| {
            let start = event.message.len().checked_sub(TIME_LENGTH)?;
            event.message.get(start..)
        });
        let slots = children().filter_map(|job| job.slot_of(cron_job)).chain(cron_job.status.last_schedule_time);
        let mut slots: Vec<DateTime<Utc>> = slots.collect();
        slots.sort_unstable();
        Self {
            cron_job,
            jobs: children().map(|job| (&*job.name.name, job)).collect(),
            taken: steps::each(known.facts.jobs.iter())
                .filter(|job| !job.is_child_of(cron_job) && job.name.namespace == cron_job.name.namespace)
                .map(|job| (&*job.name.name, job.creation_timestamp))
                .collect(),
            seen,
            ended,
            passed_over: passed_over.collect(),
            missed: missed.collect(),
            refusals: Refusals::of(known),
            paused: paused(known),
            whole_since: whole_since(known),
            runs,
            ends,
            frozen_at: said("Frozen").map(|event| event.time).min(),
            held_until: HOLDS.into_iter().flat_map(said).map(|event| event.time + ONCE_IN).max(),
            none_ended: children().next().is_some()
                && children().all(|job| job.finished.is_none())
                && cron_job.status.last_successful_time.is_none(),
            longest: children().filter_map(|job| Some(job.ended()? - job.creation_timestamp)).max(),
            last_slot: slots.last().copied(),
            slots,
        }
    }

    fn name_of(&self, slot: DateTime<Utc>) -> String {
        steps::add(1);
        self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot)
    }

    /// The known slots in (`from`, `until`].
    pub fn known_slots(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
        let [begin, end] = [from, until].map(|time| self.slots.partition_point(|slot| *slot <= time));
        self.slots.get(begin..end).unwrap_or_default().iter().copied()
    }

    /// The oldest known slot after `after` and before `before`.
    pub fn known_slot(&self, after: DateTime<Utc>, before: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let next = self.slots.get(self.slots.partition_point(|slot| *slot <= after)).copied();
        next.filter(|slot| *slot < before)
    }

    /// The newest time until `time` from which slots at an interval agree with the known slot that is nearest before it, or else with the
    /// oldest one. With none they are counted from the CronJob's creation.
    pub fn in_phase(&self, time: DateTime<Utc>, interval: TimeDelta) -> DateTime<Utc> {
        let before = self.slots.partition_point(|slot| *slot <= time);
        let known = self.slots.get(before.saturating_sub(1)).copied().unwrap_or(self.cron_job.creation_timestamp);
        let since = (time.timestamp() - known.timestamp()).rem_euclid(interval.num_seconds().max(1));
        DateTime::from_timestamp(time.timestamp() - since, 0).unwrap_or(time)
    }

    /// The Job of a slot, if it still exists.
    pub fn job_of(&self, slot: DateTime<Utc>) -> Option<&'a Arc<Job>> {
        self.jobs.get(&*self.name_of(slot)).copied()
    }

    /// How the run of a slot ended, if an Event says that its Job existed.
    pub fn says_started(&self, slot: DateTime<Utc>) -> Option<RunResult> {
        let name = self.name_of(slot);
        let end = || self.ended.get(&*name).map_or(RunResult::Gone, |end| RunResult::from(*end));
        self.seen.contains(&*name).then(end)
    }

    /// Whether an Event says that a change passed a slot over.
    pub fn says_passed_over(&self, slot: DateTime<Utc>) -> bool {
        steps::add(1);
        !self.passed_over.is_empty() && self.passed_over.contains(&*Zone::UTC.rfc3339(slot))
    }

    /// How many Jobs ran when a slot came.
    pub fn running_at(&self, slot: DateTime<Utc>) -> usize {
        steps::add(1);
        let started = self.runs.partition_point(|(created, ..)| *created <= slot);
        started.saturating_sub(self.ends.partition_point(|end| *end < slot))
    }

    /// Whether a run of a slot is known that began after a time, and before another.
    pub fn has_begun_between(&self, after: DateTime<Utc>, before: DateTime<Utc>) -> bool {
        steps::add(1);
        let first = self.runs.partition_point(|(created, ..)| *created <= after);
        self.runs.get(first).is_some_and(|(created, ..)| *created < before)
    }

    /// Whether an Event would tell that a Job was created after a time.
    pub fn tell_all_since(&self, time: DateTime<Utc>) -> bool {
        self.whole_since.is_some_and(|since| since <= time)
    }

    /// Since when failures held the CronJob when a slot came, if an Event says that they did.
    pub fn paused_since(&self, slot: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let ((from, until), due) = (self.paused?, self.cron_job.due(slot));
        (from..=until).contains(&due).then_some(from)
    }

    /// Whether an Event says that a slot missed its deadline.
    pub fn says_missed(&self, slot: DateTime<Utc>) -> bool {
        steps::add(1);
        !self.missed.is_empty() && self.missed.contains(&*slot.format(TIME).to_string())
    }

    /// The name of a slot, if a Job of another owner had it by a time.
    pub fn taken_by(&self, slot: DateTime<Utc>, time: DateTime<Utc>) -> Option<String> {
        if self.taken.is_empty() {
            return None;
        }
        let name = self.name_of(slot);
        self.taken.get(&*name).is_some_and(|created| *created <= time).then_some(name)
    }

    /// The name of a Job that ran when a slot came, and until `until`: of those that did, the one that ran the longest.
    pub fn running_from(&self, slot: DateTime<Utc>, until: DateTime<Utc>) -> Option<&'a str> {
        let started = self.runs.partition_point(|(created, ..)| {
            steps::add(1);
            *created <= slot
        });
        let (_, end, name) = self.runs.get(started.checked_sub(1)?)?;
        (*end >= until).then_some(*name)
    }
}

/// The Events of a reason.
pub(super) fn said<'a>(known: &'a Known, reason: &'static str) -> impl Iterator<Item = &'a Said> {
    steps::each(known.events.iter()).filter(move |event| event.reason == reason)
}

/// The time of the oldest Event, if each that is newer and about a Job is there: none was dropped, and none stands for several.
fn whole_since(known: &Known) -> Option<DateTime<Utc>> {
    let mut of_jobs = said(known, "SuccessfulCreate").chain(said(known, "SawCompletedJob"));
    let lacks = known.facts.may_lack_events || of_jobs.any(|event| event.message.starts_with(COMBINED));
    steps::each(known.events.iter()).map(|event| event.time).min().filter(|_| !lacks)
}

/// From the last failure before it, since which no run of a slot is known to have begun, until when an Event says that failures held the
/// CronJob.
fn paused(known: &Known) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let cron_job = &known.facts.cron_job;
    let held = said(known, "Paused").map(|event| event.time).max()?;
    let failed = |job: &Arc<Job>| job.ended().filter(|_| job.finished == Some(FinishedCondition::Failed));
    let is_failure = |event: &&Said| end_of(&event.message).is_some_and(|(_, end)| end == FinishedCondition::Failed);
    let saw_failure = said(known, "SawCompletedJob").filter(is_failure).map(|event| event.time);
    let failures = known.facts.children().filter_map(failed).chain(saw_failure);
    let failure = failures.filter(|failure| *failure <= held).max()?;
    // Of a run that began later, the end is not known.
    let of_slots = known.facts.children().filter(|job| job.slot_of(cron_job).is_some());
    let is_of_slot = |event: &&Said| {
        let name = event.message.rsplit_once(' ').map(|(_, name)| name);
        name.is_some_and(|name| cron_job.number_in(name).is_some())
    };
    let created = said(known, "SuccessfulCreate").filter(is_of_slot).map(|event| event.time);
    let begun = of_slots.map(|job| job.creation_timestamp).chain(created).filter(|begun| *begun <= held).max();
    (begun < Some(failure)).then_some((failure, held))
}

/// The runs of slots of which an Event says when they began and another that they ended, and whose Jobs are gone. None if the filter
/// of Events may have dropped one: what a new leader says of a run that it finds ended is then the only word about its end.
fn gone_runs(known: &Known) -> impl Iterator<Item = (DateTime<Utc>, DateTime<Utc>, &str)> {
    let cron_job = &known.facts.cron_job;
    let said = |reason| said(known, reason);
    let began = said("SuccessfulCreate").filter_map(|event| Some((event.message.rsplit_once(' ')?.1, event.time)));
    let mut began: HashMap<&str, DateTime<Utc>> =
        began.filter(|(name, _)| cron_job.number_in(name).is_some()).collect();
    if !began.is_empty() {
        for job in known.facts.children() {
            began.remove(&*job.name.name);
        }
    }
    let most = u64::from(CorrelatorOptions::default().spam_burst);
    if steps::each(known.events.iter()).map(|event| event.count).fold(0, u64::saturating_add) >= most {
        began.clear();
    }
    let mut ended: HashMap<&str, DateTime<Utc>> = HashMap::new();
    for (name, time) in said("SawCompletedJob").filter_map(|event| Some((end_of(&event.message)?.0, event.time))) {
        ended.entry(name).and_modify(|first| *first = time.min(*first)).or_insert(time);
    }
    ended.into_iter().filter_map(move |(name, end)| Some((*began.get(name)?, end, name)))
}
