//! What `explain` says where a policy holds a run or passes it over.
//!
//! Guarantee: the annotation to change is named. Pure.

use chrono::{DateTime, Utc};

use super::Case;
use crate::api::policy::{BACKLOG, MAX_CONCURRENT, PAUSE_AFTER_FAILURES};

/// Why a run waits for the Job that it replaces.
pub(super) const REPLACES: &str =
    "a run starts when the one that it replaces is gone (cronjob-controller.dev/replace-waits)";

impl Case<'_> {
    /// Why unfinished Jobs block a run.
    pub(super) fn at_limit(&self) -> String {
        let limit = self.cron_job.limits().max_concurrent.unwrap_or_default();
        format!("{MAX_CONCURRENT} is {limit}")
    }

    pub(super) fn paused(&self) -> String {
        let (noun, limit) = (self.noun(), self.cron_job.limits().pause_after_failures.unwrap_or_default());
        let what =
            if limit == 1 { format!("the last {noun} failed") } else { format!("the last {limit} {noun}s failed") };
        format!(
            "It is paused: {what} ({PAUSE_AFTER_FAILURES}). It goes on when a {noun} succeeds, also one made with kubectl \
             create job --from, or when the failed ones are deleted."
        )
    }

    pub(super) fn passed_over(&self, slot: DateTime<Utc>) -> String {
        let slot = self.moment(slot);
        format!(
            "The run of {slot} was passed over: it could not start within 60 s ({BACKLOG}). It waits for the next run."
        )
    }

    /// When the next run is due, or a waiting one starts.
    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        let limits = self.cron_job.limits();
        let next = self.sync.settlement.outcome.next_slot()?.slot.max(self.now);
        // The controller also comes back to look at a Job that will be stuck by then, or at a deadline.
        let comes_back = limits.stuck_after.is_some_and(|stuck| !stuck.delete) || limits.replace_waits;
        let due = || Some(self.cron_job.due(self.schedule()?.next_after(self.cron_job.nominal(self.now))?));
        if comes_back { due() } else { Some(next) }
    }
}
