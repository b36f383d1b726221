//! How the runs of one CronJob ended, how long they took, and what runs now.
//!
//! Guarantees: pure. A run is counted by the sync that finds its end, of which there is one ([`Settlement::ended_runs`]). Of the durations
//! of runs that succeeded, the last [`REMEMBERED`] are kept.
//!
//! [`Settlement::ended_runs`]: crate::controller::plan::Settlement::ended_runs

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::api::batch_v1::Job;

/// How many runs that succeeded the median is of.
pub const REMEMBERED: usize = 15;
/// From how many on there is a median: as many as a CronJob keeps by default.
const ENOUGH: usize = 3;

/// The runs of one CronJob.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStats {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// How long these took together, in seconds.
    pub seconds: f64,
    /// How long the last one took that ended.
    pub last: Option<TimeDelta>,
    /// The durations of the last ones that succeeded, in seconds, the newest at the end.
    recent: VecDeque<u32>,
    /// The Jobs that have not ended.
    pub unfinished: Unfinished,
    /// At how many starts in a row more Jobs were unfinished than at the start before.
    pub grown_in_a_row: u64,
    /// How many were at the last start.
    at_last_start: Option<usize>,
    /// From when the slot of the Job that was started last was due, to its start.
    pub last_start_delay: Option<TimeDelta>,
    /// From when the slot of a Job was due, to its first ready Pod, of the Job whose Pod was ready last.
    pub last_pod_delay: Option<TimeDelta>,
}

/// The Jobs of a CronJob that have not ended, apart from those of a backfill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Their number.
    pub count: usize,
    /// Since when the oldest of those runs that were started for a slot. One made by hand may have other work.
    pub runs_since: Option<DateTime<Utc>>,
    /// Since when the oldest of those that are to be started exists.
    pub unstarted_since: Option<DateTime<Utc>>,
}

impl Unfinished {
    /// Those among `jobs` at `now`.
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a Arc<Job>>, now: DateTime<Utc>) -> Self {
        let mut found = Self::default();
        let earlier = |known: &mut Option<DateTime<Utc>>, time: DateTime<Utc>| {
            *known = Some(known.map_or(time, |known| known.min(time)));
        };
        for job in jobs.into_iter().filter(|job| job.finished.is_none() && !job.of_backfill) {
            found.count += 1;
            if job.awaits_start() {
                earlier(&mut found.unstarted_since, job.creation_timestamp);
            } else if job.waits_for().is_none()
                && job.scheduled_timestamp.is_some()
                && let Some(start) = job.started(now)
            {
                earlier(&mut found.runs_since, start);
            }
        }
        found
    }
}

impl RunStats {
    /// The runs of a CronJob of which nothing is counted yet: durations are those of the Jobs of slots that still exist.
    pub fn open<'a>(runs: impl Iterator<Item = &'a Arc<Job>>, now: DateTime<Utc>) -> Self {
        let mut stats = Self::default();
        let mut ended: Vec<_> = runs.filter(|job| job.finished.is_some()).collect();
        ended.sort_by_key(|job| job.completion_time.or(job.failed_at));
        for job in ended {
            stats.remember(job, now);
        }
        stats
    }

    /// Counts a run that ended.
    pub fn count(&mut self, job: &Job, now: DateTime<Utc>) {
        *if job.succeeded { &mut self.succeeded } else { &mut self.failed } += 1;
        self.seconds += job.ran_for(now).as_seconds_f64();
    }

    /// Remembers how long a run took.
    pub fn remember(&mut self, job: &Job, now: DateTime<Utc>) {
        let took = job.ran_for(now);
        self.last = Some(took);
        if job.succeeded {
            if self.recent.len() == REMEMBERED {
                self.recent.pop_front();
            }
            self.recent.push_back(u32::try_from(took.num_seconds()).unwrap_or(u32::MAX));
        }
    }

    /// Counts a start beside the Jobs that have not ended.
    pub fn started(&mut self) {
        let now = self.unfinished.count;
        let grew = self.at_last_start.replace(now).is_some_and(|before| before < now);
        self.grown_in_a_row = if grew { self.grown_in_a_row + 1 } else { 0 };
    }

    /// How many ended.
    pub fn ended(&self) -> u64 {
        self.succeeded + self.failed
    }

    /// The median of how long the last runs took that succeeded, in seconds; `None` for fewer than three.
    pub fn median(&self) -> Option<u32> {
        let mut recent: Vec<u32> = self.recent.iter().copied().collect();
        recent.sort_unstable();
        recent.get(recent.len().saturating_sub(1) / 2).copied().filter(|_| recent.len() >= ENOUGH)
    }
}

#[cfg(test)]
mod tests;
