//! What the annotations of `--publish` say.
//!
//! Guarantees: no decision depends on them, and without `--publish` no status changes. A fire needs no request more: its
//! status is written anyway.

use super::Sync;
use crate::api::CountedFromPlace;
use crate::controller::plan::{Outcome, Skip, Verdict};

impl Sync<'_> {
    /// Publishes when the next Job is due and when one last failed. The time of a held slot stays: it needs no write for
    /// each slot that comes due meanwhile.
    pub(super) fn publish(&mut self, outcome: &Outcome) {
        let (publish, cron_job) = (self.observation.publish, self.draft.base);
        let is_unknown = matches!(outcome, Outcome::Failed(_)) || self.draft.verdict == Verdict::Open;
        let has_annotations = cron_job.controller_kind.counted_from == Some(CountedFromPlace::Annotation);
        if !has_annotations || is_unknown {
            return;
        }
        let mut published = self.draft.status.published.as_deref().cloned().unwrap_or_default();
        if publish.next_run {
            let skip = if let Verdict::Skipped(skip) = self.draft.verdict { Some(skip) } else { None };
            published.next_run = match (skip, skip.and_then(Skip::held)) {
                (Some(Skip::Suspended | Skip::Invalid), _) => None,
                (_, Some(held)) => published.next_run.or(Some(cron_job.due(held))),
                (_, None) => self.next_slot(),
            };
        }
        if publish.last_failure {
            let jobs = self.observation.children().chain(&self.observation.recalled.vanished);
            published.last_failure = jobs.filter_map(|job| job.failed_at).max().max(published.last_failure);
        }
        self.draft.publish(published);
    }
}
