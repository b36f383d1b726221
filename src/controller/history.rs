//! Which finished Jobs the history limits leave no room for.
//!
//! Guarantees: pure; the newest are kept; no more than [`MOST_PRUNED`] are deleted by one sync once the status is written.

use std::sync::Arc;

use super::observation::{Observation, Ownership};
use crate::api::batch_v1::{FinishedCondition, Job};

/// How many Jobs of the history one sync deletes once the status is written; the next one goes on.
pub const MOST_PRUNED: usize = 32;

/// What both history limits leave no room for. Matches upstream `cleanupFinishedJobs`.
///
/// A history that is shared is pruned by the other controller the moment that a Job ends; a Job that both delete gives a
/// Warning about the one who comes second. So this one waits until the next Job was started, and deletes what is left then.
pub(super) fn history_victims(observation: &Observation) -> Vec<Arc<Job>> {
    if observation.ownership != Ownership::Exclusive && observation.create.is_none() {
        return Vec::new();
    }
    // A Job's name keeps its slot from being started again, by a create that an earlier leader sent.
    if observation.takeover_wait.is_some() {
        return Vec::new();
    }
    let spec = &observation.cron_job.spec;
    let limits = [(spec.successful_jobs_history_limit, true), (spec.failed_jobs_history_limit, false)];
    let beyond =
        |(limit, succeeded): (Option<i32>, bool)| Some(oldest_beyond_limit(&observation.jobs, succeeded, limit?));
    limits.into_iter().filter_map(beyond).flatten().collect()
}

/// The finished Jobs to prune: all but the `limit` newest by start time. Matches upstream `removeOldestJobs` and the
/// order `byJobStartTime`: a Job that never started is the newest, names break ties.
pub(super) fn oldest_beyond_limit(jobs: &[Arc<Job>], succeeded: bool, limit: i32) -> Vec<Arc<Job>> {
    let of_kind =
        |job: &&Arc<Job>| job.finished.is_some_and(|condition| (condition == FinishedCondition::Complete) == succeeded);
    let keep = usize::try_from(limit).unwrap_or(0);
    let finished = jobs.iter().filter(of_kind).count();
    // The usual case: nothing to prune, nothing allocated.
    if finished <= keep {
        return Vec::new();
    }
    let mut finished: Vec<_> = jobs.iter().filter(of_kind).cloned().collect();
    finished.sort_by(|a, b| {
        let key = |job: &Job| (job.start_time.is_none(), job.start_time);
        key(a).cmp(&key(b)).then_with(|| a.name.name.cmp(&b.name.name))
    });
    finished.truncate(finished.len() - keep);
    finished
}
