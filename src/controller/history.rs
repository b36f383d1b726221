//! The finished Jobs beyond the history limits.
//!
//! Guarantees: pure; the newest Jobs are kept, and a Job that alone shows which slots were started; one sync deletes at
//! most [`MOST_PRUNED`] Jobs after the status write.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::observation::{Observation, Ownership};
use crate::api::Uid;
use crate::api::batch_v1::{CronJob, FinishedCondition, Job};

/// How many Jobs of the history one sync deletes after the status write. The next sync deletes more.
pub const MOST_PRUNED: usize = 32;

/// The Jobs beyond both history limits of `cron_job`, for `cleanup_finished_jobs`.
///
/// A Job that is being deleted is not deleted again, however long a finalizer keeps it.
///
/// The Jobs of a backfill that is under way are kept, and do not count: their names show which slots it has started. With
/// `pause-after-failures`, its failed Jobs have a history of their own afterwards: the failures that hold the CronJob stay.
///
/// kube-controller-manager's controller prunes a shared history as soon as a Job ends. If both controllers delete a
/// Job, the second attempt records a Warning. So this controller waits until it has started the next Job, or `is_tried`, and
/// then deletes what is left.
pub(super) fn history_victims(observation: &Observation, cron_job: &CronJob, is_tried: bool) -> Vec<Arc<Job>> {
    if observation.ownership != Ownership::Exclusive && !is_tried {
        return Vec::new();
    }
    // A Job's name keeps its slot from being started again by a create that was sent earlier.
    let repeated = observation.recalled.pending_create.and_then(|pending| pending.repeated_wait());
    if observation.open_creates_wait.is_some() || repeated.is_some() {
        return Vec::new();
    }
    let spec = &cron_job.spec;
    let limits = [(spec.successful_jobs_history_limit, true), (spec.failed_jobs_history_limit, false)];
    let is_kept = |job: &Arc<Job>| cron_job.is_backfilled && job.of_backfill;
    let jobs: Cow<'_, [Arc<Job>]> = if observation.jobs.iter().any(is_kept) {
        observation.jobs.iter().filter(|job| !is_kept(job)).cloned().collect()
    } else {
        Cow::Borrowed(observation.jobs.as_slice())
    };
    let is_apart = cron_job.limits().pause_after_failures.is_some() && jobs.iter().any(|job| job.of_backfill);
    let beyond = |(limit, succeeded): (Option<i32>, bool)| {
        let limit = limit?;
        if succeeded || !is_apart {
            return Some(oldest_beyond_limit(&jobs, succeeded, limit));
        }
        let (of_backfill, own): (Vec<_>, Vec<_>) = jobs.iter().cloned().partition(|job| job.of_backfill);
        Some([own, of_backfill].iter().flat_map(|jobs| oldest_beyond_limit(jobs, succeeded, limit)).collect())
    };
    let beyond = limits.into_iter().filter_map(beyond).flatten();
    beyond.filter(|job| !job.deleting).collect()
}

/// The Job of the newest slot, where `lastScheduleTime` as the API server has it is earlier. Until that is written, only this
/// Job keeps its slot and those before it from being started once more, after a restart or by another leader.
pub(super) fn newest_unrecorded<'a>(
    observation: &'a Observation,
    cron_job: &CronJob,
) -> Option<(DateTime<Utc>, &'a Uid)> {
    let slots = observation.jobs.iter().filter_map(|job| Some((job.slot_of(cron_job)?, &job.uid)));
    slots.max_by_key(|(slot, _)| *slot).filter(|(slot, _)| cron_job.status.last_schedule_time < Some(*slot))
}

/// The finished Jobs to prune: all but the `limit` newest by start time. Matches upstream `removeOldestJobs` and its
/// order `byJobStartTime`: a Job that never started is the newest, and names break ties.
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
