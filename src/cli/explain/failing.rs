//! What `explain` says of a CronJob whose runs fail or do not end: since when, and how many.
//!
//! Guarantees: a run counts as failed where its Job says so, or where the record of the last failure is newer than the last success.
//! Of Jobs that are gone, Events tell. The number of failed runs is that of the Jobs and Events that still exist, so it is a least one.
//! Pure.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schedule::Schedule;
use serde::Serialize;

use super::read::EndedRun;
use super::{Case, State};
use crate::api::batch_v1::{ConcurrencyPolicy, FinishedCondition, Job};
use crate::cli::output::{count, stretch};

/// Counting of slots without a success stops here.
const MOST_SLOTS: usize = 1_000;
/// So many runs in a row that Replace deleted before their end are no accident.
const UNENDED: usize = 3;

/// Since when a CronJob has had no success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoSuccess {
    /// The last success; `None` if it never had one.
    pub last: Option<DateTime<Utc>>,
    /// How many runs failed since then, of those whose Jobs or Events still exist.
    pub failures: usize,
    /// The slots since then, or since its creation, those of a freeze among them; one more than are counted if there are more.
    pub slots: usize,
}

impl NoSuccess {
    /// The beginning of a sentence.
    pub fn words(&self, now: DateTime<Utc>) -> String {
        let since =
            self.last.map_or("No success yet".to_owned(), |last| format!("No success for {}", stretch(now - last)));
        let runs = if self.failures > 0 {
            format!(", at least {}", count(self.failures, "failed run"))
        } else {
            String::new()
        };
        let slots =
            if self.slots > MOST_SLOTS { format!("more than {MOST_SLOTS} slots") } else { count(self.slots, "slot") };
        format!("{since}{runs} ({slots})")
    }
}

/// The slots of a schedule after a time up to the newest one that started, one more than [`MOST_SLOTS`] at most.
fn slots_between(schedule: Option<&Schedule>, from: DateTime<Utc>, until: Option<DateTime<Utc>>) -> usize {
    let (Some(schedule), Some(until)) = (schedule, until) else { return 0 };
    let slots = std::iter::successors(schedule.next_after(from), |slot| schedule.next_after(*slot));
    slots.take_while(|slot| *slot <= until).take(MOST_SLOTS + 1).count()
}

impl Case<'_> {
    /// When a Job of it last succeeded.
    fn last_success(&self) -> Option<DateTime<Utc>> {
        let succeeded = self.children().filter(|job| job.succeeded).filter_map(|job| job.completion_time).max();
        succeeded.max(self.cron_job.status.last_successful_time)
    }

    /// Whether the last run that ended failed. The newest one has often just begun, and of one whose Job is gone the status says when
    /// it succeeded.
    pub(super) fn is_failing(&self) -> bool {
        let (job, said) = (self.last_ended(), self.gone_runs().first().copied());
        if let Some(said) = said.filter(|said| job.is_none_or(|job| job.ended() < Some(said.at))) {
            return self.has_failed_since(said);
        }
        if let Some(job) = job {
            return self.is_unredeemed(job);
        }
        let published = self.cron_job.status.published.as_ref().and_then(|known| known.last_failure);
        published.is_some() && published > self.last_success()
    }

    /// The runs of slots that ended as Events say, whose Jobs are gone, newest first.
    fn gone_runs(&self) -> Vec<&EndedRun> {
        if self.facts.ended.is_empty() {
            return Vec::new();
        }
        let jobs: HashSet<&str> = self.children().map(|job| &*job.name.name).collect();
        let is_of_slot = |name: &str| {
            let digits = name.strip_prefix(&*self.cron_job.name.name).and_then(|rest| rest.strip_prefix('-'));
            digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        };
        self.facts.ended.iter().filter(|run| is_of_slot(&run.job) && !jobs.contains(&*run.job)).collect()
    }

    /// Whether the run failed, and none is known to have succeeded since.
    fn has_failed_since(&self, run: &EndedRun) -> bool {
        run.end == FinishedCondition::Failed && self.last_success().is_none_or(|success| run.at >= success)
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
        let last = self.last_success();
        let from = last.unwrap_or(self.cron_job.creation_timestamp);
        let failures =
            self.children().filter(|job| job.slot_of(self.cron_job).is_some() && self.is_unredeemed(job)).count();
        let failures = failures + self.gone_runs().into_iter().filter(|run| self.has_failed_since(run)).count();
        NoSuccess { last, failures, slots: slots_between(self.own_schedule(), from, self.last_slot()) }
    }

    /// What is said of a CronJob for which nothing is late, though a running Job may hold a run: `words` unless its runs fail or do not end.
    pub(super) fn by_results(&self, state: State, words: String) -> (State, String) {
        let next = if state == State::Waiting { "It waits for the next run." } else { words.as_str() };
        if self.is_failing() {
            let no_success = self.no_success().words(self.now);
            let last = self.last_failure().map_or("a run failed, and its Job is gone".to_owned(), |job| {
                let which = if job.slot_of(self.cron_job) == self.last_slot() { "run" } else { "run that ended" };
                format!("the last {which} failed, {} {}", self.noun(), job.name.name)
            });
            return (State::Failing, format!("{no_success}: {last}. {next}"));
        }
        if state == State::Blocked {
            return (state, words);
        }
        if let Some(text) = self.never_ends() {
            return (State::NeverEnds, format!("{text} {next}"));
        }
        if let Some(text) = self.piles_up() {
            return (State::PilesUp, format!("{text} {next}"));
        }
        (state, words)
    }

    /// Under Replace: that no run has ended for some slots, while one runs.
    fn never_ends(&self) -> Option<String> {
        let replaces = self.cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace;
        let running = self.running().into_iter().find(|job| job.slot_of(self.cron_job).is_some())?;
        let ended = self.children().filter_map(|job| job.ended()).max().max(self.cron_job.status.last_successful_time);
        let from = ended.unwrap_or(self.cron_job.creation_timestamp);
        // Slots of a freeze deleted no run.
        let slots = slots_between(self.schedule(), from, self.last_slot());
        (replaces && slots >= UNENDED).then(|| {
            let slots = if slots > MOST_SLOTS { format!("more than {MOST_SLOTS} slots") } else { count(slots, "slot") };
            format!(
                "No run has ended for {} ({slots}): each is deleted when the next one starts (concurrencyPolicy is Replace). {} {} \
                 {}.",
                stretch(self.now - from),
                self.noun(),
                running.name.name,
                self.doing(running)
            )
        })
    }
}
