//! What `explain` says of the Jobs of a CronJob: those that ended, those that run, and those that exist and were not started yet.
//!
//! Guarantee: a Job that is suspended or being deleted does not count as one to be started. Pure.

use std::sync::Arc;

use super::{Case, LATE_AFTER};
use crate::api::batch_v1::{FinishedCondition, Job};
use crate::cli::output::stretch;

impl Case<'_> {
    /// What became of a Job; `None` is one that is gone.
    pub(in crate::cli) fn outcome(&self, job: Option<&Arc<Job>>) -> String {
        match job.map(|job| (job, job.finished)) {
            None => "no longer exists".to_owned(),
            Some((job, None)) => self.doing(job),
            Some((job, Some(FinishedCondition::Complete))) => {
                let took = job.completion_time.map(|end| format!(" after {}", stretch(end - job.began())));
                format!("succeeded{}", took.unwrap_or_default())
            }
            Some((_, Some(FinishedCondition::Failed))) => "failed".to_owned(),
        }
    }

    /// Since when an unfinished Job runs, or is to be started; without its name.
    pub(super) fn doing(&self, job: &Job) -> String {
        let since = stretch(self.now - job.began());
        if !job.awaits_start() {
            return format!("has been running for {since}");
        }
        let starter = if self.noun() == "Job" { "Job controller" } else { "kubelet" };
        format!("exists, and the {starter} has not started it for {since}")
    }

    /// The Job that has waited longest to be started, if that is long.
    pub(super) fn unstarted(&self) -> Option<String> {
        let is_late = |job: &&Arc<Job>| job.awaits_start() && self.now - job.creation_timestamp > LATE_AFTER;
        let job = self.running().into_iter().find(is_late)?;
        Some(format!("{} {} {}.", self.noun(), job.name.name, self.doing(job)))
    }
}
