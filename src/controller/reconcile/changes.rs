//! Which slots a change of the CronJob decides, and what is said about them.
//!
//! Guarantees: the record of decided slots moves in one sync, and that sync tells of the slots that it passes over. Later syncs
//! see the record and say nothing. A slot that has its Job, may have it, or could not start anyway is not passed over.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use schedule::missed::newest_start;

use super::{Sync, is_too_late};
use crate::api::policy::CountedFrom;
use crate::controller::messages::{PASSED_OVER, passed_over_by_change};

impl Sync<'_> {
    /// Records that a change of the policies decides the slots before it. If that is news, returns up to which time slots were
    /// decided before.
    pub(super) fn count_slots(&mut self) -> Option<DateTime<Utc>> {
        let cron_job = self.draft.base;
        if cron_job.deleting || self.is_taken_back() {
            return None;
        }
        let counted = cron_job.recount(&self.draft.status, self.observation.local_zone, self.now);
        let counted = counted.or_else(|| self.removed_since_shown());
        let is_removed = self.observation.recalled.record_removed.is_some();
        let known = if is_removed { &cron_job.status } else { &*self.draft.status };
        let before = cron_job.decided_until(known, self.now).unwrap_or(DateTime::<Utc>::MIN_UTC);
        let moved = (counted.is_some() || is_removed).then_some(before);
        if let Some(counted) = counted {
            self.draft.counted(counted);
        }
        moved
    }

    /// The record of decided slots that an edit has removed which the watch has not shown yet.
    fn removed_since_shown(&self) -> Option<CountedFrom> {
        let (cron_job, zone) = (self.draft.base, self.observation.local_zone);
        if self.draft.status.counted_from.is_some() {
            return None;
        }
        let before = [&self.observation.shown, &self.observation.cron_job].into_iter();
        before
            .filter(|known| !Arc::ptr_eq(known, cron_job))
            .find_map(|known| cron_job.recount_removed(known, zone, self.now))
    }

    /// Says that slots were due that the change passes over. Jobs that an earlier sync or another controller started are
    /// adopted by now.
    pub(super) fn tell_of_passed_slots(&mut self, before: DateTime<Utc>) {
        let cron_job = self.draft.base;
        let Some(schedule) = &self.schedule else { return };
        let Some(until) = cron_job.decided_until(&self.draft.status, self.now) else { return };
        let last = self.draft.status.last_schedule_time.unwrap_or(cron_job.creation_timestamp);
        let known = [
            Some(before),
            self.observation.recalled.pending_create.map(|pending| pending.slot),
            self.observation.recalled.memo.name_taken,
        ];
        let from = known.into_iter().flatten().fold(last, DateTime::max);
        let Some(slot) = newest_start(schedule, from, until) else { return };
        if is_too_late(slot, cron_job.spec.starting_deadline_seconds, self.nominal_now()) {
            return;
        }
        self.draft.passed_over = Some(slot);
        self.draft.normal(PASSED_OVER, passed_over_by_change(slot, until, self.limits.waits_after_change));
    }
}
