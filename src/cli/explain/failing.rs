//! What `explain` says of a CronJob whose runs fail or do not end: since when, and how many.
//!
//! Guarantees: a run counts as failed where its Job says so, or where the record of the last failure is newer than the last success.
//! Of Jobs that are gone, Events tell. Where nothing does, a run whose Job left no success is said to have left none, and no more. The
//! number of failed runs is that of the Jobs and Events that still exist, and said as such. Pure.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Schedule;
use serde::Serialize;

use super::read::{Told, ToldRun};
use super::{Case, State};
use crate::api::batch_v1::{ConcurrencyPolicy, FinishedCondition, Job};
use crate::api::policy::STUCK_AFTER;
use crate::cli::output::{count, stretch};

/// Counting of slots without a success stops here.
const MOST_SLOTS: usize = 1_000;
/// So many runs in a row that Replace deleted before their end are no accident.
const UNENDED: usize = 3;
/// By how much the clock that tells when a Job ended may differ from the controller's.
pub(in crate::cli) const CLOCKS_DIFFER: TimeDelta = TimeDelta::seconds(5);

/// Since when a CronJob has had no success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoSuccess {
    /// The last success; `None` if it never had one.
    pub last: Option<DateTime<Utc>>,
    /// When the CronJob was created.
    #[serde(skip)]
    pub created: DateTime<Utc>,
    /// How many runs failed since then, of those whose Jobs or Events still exist.
    pub failures: usize,
    /// The slots since then, or since its creation, until now, those of a freeze among them; one more than are counted if there are more.
    pub slots: usize,
}

impl NoSuccess {
    /// The beginning of a sentence.
    pub fn words(&self, now: DateTime<Utc>) -> String {
        let since = match self.last {
            Some(last) => format!("No success for {}", stretch(now - last)),
            None => format!("No success since its creation {} ago", stretch(now - self.created)),
        };
        let slots =
            if self.slots > MOST_SLOTS { format!("more than {MOST_SLOTS} slots") } else { count(self.slots, "slot") };
        match self.failures {
            0 => format!("{since} ({slots})"),
            // The Jobs and Events of the others may be gone.
            known if known < self.slots => format!("{since} ({slots}, {} still known)", count(known, "failed run")),
            known if known == self.slots => format!("{since}, at least {} ({slots})", count(known, "failed run")),
            // The schedule has been edited since.
            known => format!("{since}, at least {}", count(known, "failed run")),
        }
    }
}

/// Which runs had no success whose Jobs are gone.
#[derive(Debug)]
pub(in crate::cli) struct LostRuns<'a> {
    /// Between which times they began.
    bounds: (DateTime<Utc>, DateTime<Utc>),
    /// The Jobs of which that is not known.
    not_over: HashSet<&'a str>,
}

impl LostRuns<'_> {
    /// Whether the run of a time is one, whose Job had a name.
    pub(in crate::cli) fn contains(&self, began: DateTime<Utc>, name: &str) -> bool {
        let (after, before) = self.bounds;
        began > after && began < before && !self.not_over.contains(name)
    }
}

/// The slots of a schedule after a time up to another, one more than [`MOST_SLOTS`] at most.
fn slots_between(schedule: Option<&Schedule>, from: DateTime<Utc>, until: Option<DateTime<Utc>>) -> usize {
    let (Some(schedule), Some(until)) = (schedule, until) else { return 0 };
    let slots = std::iter::successors(schedule.next_after(from), |slot| schedule.next_after(*slot));
    slots.take_while(|slot| *slot <= until).take(MOST_SLOTS + 1).count()
}

impl<'a> Case<'a> {
    /// When a Job of it last succeeded.
    fn last_success(&self) -> Option<DateTime<Utc>> {
        let succeeded = self.children().filter(|job| job.succeeded).filter_map(|job| job.completion_time).max();
        succeeded.max(self.cron_job.status.last_successful_time)
    }

    /// Whether the last run that ended had no success, as far as is known.
    pub(super) fn is_failing(&self) -> bool {
        self.has_failed() || self.lost_run().is_some()
    }

    /// Whether the last run that ended failed. The newest one has often just begun, and of one whose Job is gone the status says when
    /// it succeeded.
    fn has_failed(&self) -> bool {
        let gone = self.gone_runs();
        let said = gone.iter().find(|run| matches!(run.what, Told::Ended(_)));
        let job = self.last_ended();
        if let Some(said) = said.filter(|said| job.is_none_or(|job| job.ended() < Some(said.at))) {
            return self.has_failed_since(said);
        }
        if let Some(job) = job {
            return self.is_unredeemed(job);
        }
        let published = self.cron_job.status.published.as_ref().and_then(|known| known.last_failure);
        published.is_some() && published > self.last_success()
    }

    /// What Events say of the runs of slots whose Jobs are gone, newest first.
    fn gone_runs(&self) -> Vec<&ToldRun> {
        if self.facts.told.is_empty() {
            return Vec::new();
        }
        let jobs: HashSet<&str> = self.children().map(|job| &*job.name.name).collect();
        let is_gone = |run: &&ToldRun| self.cron_job.number_in(&run.job).is_some() && !jobs.contains(&*run.job);
        self.facts.told.iter().filter(is_gone).collect()
    }

    /// Whether the run failed, and none is known to have succeeded since.
    fn has_failed_since(&self, run: &ToldRun) -> bool {
        run.what == Told::Ended(FinishedCondition::Failed)
            && self.last_success().is_none_or(|success| run.at >= success)
    }

    /// The name of the newest Job that is known to have been started, and is gone without a success, where one that fails is not kept.
    /// One that succeeds is recorded when it leaves the list of those that are active.
    fn lost_run(&self) -> Option<String> {
        let (without_success, cron_job, slot) = (self.runs_without_success()?, self.cron_job, self.last_slot()?);
        let is_deleted_first = self.replaces() || self.frees_stuck();
        // A Job that is deleted for the next one is gone before that is started.
        let may_be_lost = !is_deleted_first || self.slots_since_the_last().next().is_none();
        let name = cron_job.controller_kind.child_name(&cron_job.name.name, slot);
        if may_be_lost && self.job_of(slot).is_none() && without_success.contains(cron_job.due(slot), &name) {
            return Some(name);
        }
        if is_deleted_first && self.slots_without_success(self.last_slot()) < UNENDED {
            return None;
        }
        // One that is newer may have been created after the Jobs were read.
        let newest = cron_job.controller_kind.number_of(slot);
        let is_older = |run: &ToldRun| cron_job.number_in(&run.job).is_some_and(|number| number < newest);
        let mut created = self.gone_runs().into_iter().filter(|run| run.what == Told::Created && is_older(run));
        created.find(|run| without_success.contains(run.at, &run.job)).map(|run| run.job.clone())
    }

    /// Between which times a run began of which no success is known, and whose Job is gone if it failed.
    fn bounds_of_lost(&self) -> (DateTime<Utc>, DateTime<Utc>) {
        let success = self.last_success().map_or(DateTime::<Utc>::MIN_UTC, |success| success + CLOCKS_DIFFER);
        (success, self.keeps_failed_since().unwrap_or(DateTime::<Utc>::MAX_UTC))
    }

    /// Which runs had no success whose Jobs are gone, where nothing but its end deletes one.
    pub(in crate::cli) fn lost_runs(&self) -> Option<LostRuns<'a>> {
        Some(self.runs_without_success()?).filter(|_| !self.replaces() && !self.frees_stuck())
    }

    /// The same, but for those that were deleted before their end.
    fn runs_without_success(&self) -> Option<LostRuns<'a>> {
        let (facts, cron_job) = (self.facts, self.cron_job);
        let missing = facts.told.iter().filter(|run| run.what == Told::Missing).map(|run| run.job.as_str());
        let active = cron_job.status.active.iter().map(|active| active.name.as_str());
        let not_over = active.chain(missing).collect();
        let is_told = cron_job.controller_kind.has_last_successful_time;
        is_told.then(|| LostRuns { bounds: self.bounds_of_lost(), not_over })
    }

    /// Whether a running Job is deleted for the next one.
    pub(super) fn replaces(&self) -> bool {
        self.cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace
    }

    /// Whether a running Job is deleted once it is stuck.
    pub(super) fn frees_stuck(&self) -> bool {
        self.cron_job.limits().deletes_after().is_some()
    }

    /// Since when each Job of a slot that failed exists, if a user has not deleted it; `None` if none does.
    fn keeps_failed_since(&self) -> Option<DateTime<Utc>> {
        let spec = &self.cron_job.spec;
        let expires = spec.job_template.time_to_live().map(TimeDelta::try_seconds);
        let since = match expires {
            None => DateTime::<Utc>::MIN_UTC,
            Some(after) => after.and_then(|after| self.now.checked_sub_signed(after)).unwrap_or(self.now),
        };
        Some(since).filter(|_| spec.failed_jobs_history_limit.is_none_or(|limit| limit > 0))
    }

    /// How many slots came since the last success, up to a time.
    fn slots_without_success(&self, until: Option<DateTime<Utc>>) -> usize {
        let from = self.last_success().unwrap_or(self.cron_job.creation_timestamp);
        slots_between(self.own_schedule(), from, until)
    }

    /// The newest time of a slot that can have come.
    fn nominal_now(&self) -> DateTime<Utc> {
        self.cron_job.nominal(self.now)
    }

    /// The Job of the newest slot that ended and still exists.
    fn last_ended(&self) -> Option<&Arc<Job>> {
        let ended = self.children().filter(|job| job.finished.is_some());
        let slots = ended.filter_map(|job| Some((job.slot_of(self.cron_job)?, job)));
        slots.max_by_key(|(slot, _)| *slot).map(|(_, job)| job)
    }

    /// Whether the Job failed, and no run is known to have succeeded since.
    fn is_unredeemed(&self, job: &Job) -> bool {
        let is_newer = |success| job.failed_at.unwrap_or(job.creation_timestamp) >= success;
        job.finished == Some(FinishedCondition::Failed) && self.last_success().is_none_or(is_newer)
    }

    /// The Job of the last run that ended, if it failed.
    pub(super) fn last_failure(&self) -> Option<&Arc<Job>> {
        self.last_ended().filter(|job| self.is_unredeemed(job))
    }

    /// Since when it has had no success, for a CronJob that fails or whose runs do not end.
    pub(super) fn no_success(&self) -> NoSuccess {
        NoSuccess {
            last: self.last_success(),
            created: self.cron_job.creation_timestamp,
            failures: self.known_failures(),
            slots: self.slots_without_success(Some(self.nominal_now())),
        }
    }

    /// How many runs failed since the last success, of those whose Jobs or Events still exist.
    pub(crate) fn known_failures(&self) -> usize {
        let is_failed = |job: &&Arc<Job>| job.slot_of(self.cron_job).is_some() && self.is_unredeemed(job);
        let gone = self.gone_runs().into_iter().filter(|run| self.has_failed_since(run)).count();
        self.children().filter(is_failed).count() + gone
    }

    /// What is said of a CronJob for which nothing is late, though a running Job may hold a run: `words` unless its runs fail or do not end.
    pub(super) fn by_results(&self, state: State, words: String) -> (State, String) {
        let next = if state == State::Waiting { "It waits for the next run." } else { words.as_str() };
        let no_success = || self.no_success().words(self.now);
        if self.has_failed() {
            let last = self.last_failure().map_or("a run failed, and its Job is gone".to_owned(), |job| {
                let which = if job.slot_of(self.cron_job) == self.last_slot() { "run" } else { "run that ended" };
                format!("the last {which} failed, {} {}", self.noun(), job.name.name)
            });
            return (State::Failing, format!("{}: {last}. {next}", no_success()));
        }
        // Under Replace, one that is blocked waits until the Job before is gone.
        let is_replacing = state == State::Blocked && self.replaces();
        if let Some((head, rest)) = self.never_ends().filter(|_| !is_replacing) {
            return (State::NeverEnds, format!("{head}: {rest} {next}"));
        }
        if let Some(job) = self.lost_run() {
            let last = format!("{} {job} is gone, and no success of it is known", self.noun());
            return (State::Failing, format!("{}: {last}. {next}", no_success()));
        }
        if state == State::Blocked {
            return (state, words);
        }
        if let Some((head, rest)) = self.piles_up() {
            return (State::PilesUp, format!("Its {}s pile up: {head}, {rest} {next}", self.noun()));
        }
        (state, words)
    }

    /// That no run has ended for some slots, because each is deleted: under Replace while one runs, or with `stuck-after`, where an Event
    /// says that one was. Not where a run that failed may be gone. First the beginning of the sentence, which a row of a table has, too.
    fn never_ends(&self) -> Option<(String, String)> {
        let running = self.running().into_iter().find(|job| job.slot_of(self.cron_job).is_some());
        let (status, gone) = (&self.cron_job.status, self.gone_runs());
        let said = gone.iter().filter(|run| matches!(run.what, Told::Ended(_))).map(|run| run.at).max();
        let published = status.published.as_ref().and_then(|known| known.last_failure);
        let ended = self.children().filter_map(|job| job.ended()).max().max(status.last_successful_time);
        let from = ended.max(said).max(published).unwrap_or(self.cron_job.creation_timestamp);
        let from = from.max(self.keeps_failed_since()?);
        // Slots of a freeze deleted no run, and before an edit it may have been suspended.
        let slots = slots_between(self.schedule(), from.max(self.facts.edited.last.unwrap_or(from)), self.last_slot());
        let why = if self.replaces() {
            running?;
            "each is deleted when the next one starts (concurrencyPolicy is Replace)".to_owned()
        } else {
            let stuck = self.cron_job.limits().stuck_after.filter(|stuck| stuck.delete)?;
            let since = self.cron_job.controller_kind.number_of(from);
            let is_newer = |run: &ToldRun| self.cron_job.number_in(&run.job).is_some_and(|number| number > since);
            let is_deleted = gone.iter().any(|run| run.what == Told::Deleted && is_newer(run));
            let is_long = stuck.age.checked_mul(3).is_some_and(|long| self.now - from > long);
            (is_deleted && is_long).then(|| format!("each is deleted when it is stuck ({STUCK_AFTER})"))?
        };
        (slots >= UNENDED).then(|| {
            let slots =
                slots + slots_between(self.schedule(), self.last_slot().unwrap_or(from), Some(self.nominal_now()));
            let slots = if slots > MOST_SLOTS { format!("more than {MOST_SLOTS} slots") } else { count(slots, "slot") };
            let now = running.map(|job| format!(" {} {} {}.", self.noun(), job.name.name, self.doing(job)));
            let head = format!("No run has ended for {} ({slots})", stretch(self.now - from));
            (head, format!("{why}.{}", now.unwrap_or_default()))
        })
    }

    /// What a row of a table says in this state, in the words of the explanation.
    pub(super) fn headline(&self, state: State) -> Option<String> {
        let told = match state {
            State::NeverEnds => self.never_ends(),
            State::PilesUp => self.piles_up(),
            _ => None,
        };
        told.map(|(head, _)| head)
    }
}
