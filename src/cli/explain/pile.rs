//! What `explain` says of a CronJob whose runs pile up: more of them at each start.
//!
//! Guarantees: a pile is said only of Jobs that exist, and only while none that ended in the meantime can have been deleted. That is
//! what `cronjob_controller_cronjob_active_grown_in_a_row` counts, but for a controller that has just begun. Pure.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::Case;
use crate::api::batch_v1::{ConcurrencyPolicy, Job};
use crate::cli::output::count;

/// At so many starts in a row more must have run than at the one before.
const GROWN: usize = 3;
/// So many starts are compared with the one before.
const MOST: usize = 20;

impl Case<'_> {
    /// Under Allow: that at each of the last starts more Jobs had not ended than at the one before, and that none has ended since.
    /// First the part of the sentence that a row of a table has, too.
    pub(super) fn piles_up(&self) -> Option<(String, String)> {
        let is_allowed =
            matches!(self.cron_job.spec.concurrency_policy, ConcurrencyPolicy::Allow | ConcurrencyPolicy::Unknown);
        let jobs: Vec<&Arc<Job>> = self.children().filter(|job| is_allowed && !job.of_backfill).collect();
        let mut starts: Vec<DateTime<Utc>> = Vec::new();
        starts.extend(jobs.iter().filter(|job| job.slot_of(self.cron_job).is_some()).map(|job| job.creation_timestamp));
        starts.sort_unstable();
        starts.dedup();
        // Of the oldest one, the number of Jobs counts alone.
        let newest = &starts[starts.len().saturating_sub(MOST + 1)..];
        let unfinished_at = |at: DateTime<Utc>| {
            let had_ended = |job: &Job| job.finished.is_some() && job.ended().is_none_or(|ended| ended <= at);
            jobs.iter().filter(|job| job.creation_timestamp <= at && !had_ended(job)).count()
        };
        let counts: Vec<usize> = newest.iter().map(|at| unfinished_at(*at)).collect();
        let grown = counts.windows(2).rev().take_while(|pair| pair[0] < pair[1]).count();
        let unfinished = unfinished_at(self.now);
        let first = newest.len().checked_sub(grown + 1).map(|first| newest[first])?;
        if grown < GROWN || unfinished < *counts.last()? || self.may_miss_an_end_since(first) {
            return None;
        }
        let (noun, oldest) = (self.noun(), *self.running().first()?);
        let at_least = if grown == MOST { "at least " } else { "" };
        let rest = format!(
            "and at each of {at_least}the last {grown} starts there were more than at the one before. The oldest, {noun} {}, {}.",
            oldest.name.name,
            self.doing(oldest)
        );
        Some((format!("{} have not ended", count(unfinished, noun)), rest))
    }

    /// Whether a Job can have ended after a time and been deleted, so that nothing shows it any more.
    fn may_miss_an_end_since(&self, time: DateTime<Utc>) -> bool {
        let (spec, status) = (&self.cron_job.spec, &self.cron_job.status);
        let is_shown = |end| self.children().any(|job| job.succeeded && job.completion_time >= Some(end));
        let unseen = status.last_successful_time.filter(|end| *end > time && !is_shown(*end));
        let expires = spec.job_template.time_to_live().and_then(TimeDelta::try_seconds);
        unseen.is_some()
            || spec.failed_jobs_history_limit == Some(0)
            || expires.is_some_and(|after| after < self.now - time)
    }
}
