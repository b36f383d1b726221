//! Which of the due slots starts.
//!
//! Guarantees: without the policy `backlog` it is the newest, as upstream. With it, the newest slots wait and start in
//! order, each once, because `lastScheduleTime` follows them. While slots wait, nothing is written about them.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::newest_starts;

use super::running::Blockers;
use super::{Sync, is_too_late, old_at};
use crate::api::EventType;
use crate::api::batch_v1::Job;
use crate::controller::messages::{PASSED_OVER, overtaken_backlog, passed_over};
use crate::controller::observation::Observation;
use crate::controller::plan::{Blocked, Outcome, Skip, Verdict};
use crate::controller::status::Draft;

/// How late a slot may start with `backlog: 0`.
pub const IN_TIME: TimeDelta = TimeDelta::seconds(60);

/// How long after a slot came due its first look may be. A Job that began until then counts as one that ran when it came due.
const FIRST_LOOK: TimeDelta = TimeDelta::seconds(5);

impl Sync<'_> {
    /// Of the due slots, of which `newest` is the newest and `most` may wait, the oldest, and the one that waits after it.
    pub(super) fn oldest_waiting(
        &mut self,
        most: usize,
        newest: DateTime<Utc>,
    ) -> (DateTime<Utc>, Option<DateTime<Utc>>) {
        let observed = self.observed();
        let last = observed.last_schedule.unwrap_or(observed.creation);
        let mut waiting = self.waiting(last, most, newest);
        let slot = waiting.pop_front().unwrap_or(newest);
        let first = self.schedule.as_ref().and_then(|schedule| schedule.next_after(last));
        if first.is_some_and(|first| first < slot && self.is_startable(first)) {
            self.hourly_event(EventType::Normal, PASSED_OVER, || passed_over(most));
        }
        (slot, waiting.front().copied())
    }

    /// Says that slots were waiting when another controller started a newer one.
    pub(super) fn warn_of_overtaken_slots(&mut self, most: usize) {
        let (written, known) = (self.draft.base.status.last_schedule_time, self.draft.status.last_schedule_time);
        let Some((written, last)) = written.zip(known).filter(|(written, last)| written < last) else { return };
        // This controller starts the oldest first.
        if self.observation.recalled.carried.has_scheduled() {
            return;
        }
        // Those that this controller started have their Jobs, also if it was killed before it wrote the status.
        let base = self.draft.base;
        let has_job = |slot: &DateTime<Utc>| self.observation.children().any(|job| job.slot_of(base) == Some(*slot));
        if self.waiting(written, most, last).iter().any(|slot| *slot < last && !has_job(slot)) {
            self.hourly_event(EventType::Normal, PASSED_OVER, overtaken_backlog);
        }
    }

    /// Whether its deadline has not passed, and no Job of another owner is known to have its name.
    fn is_startable(&self, slot: DateTime<Utc>) -> bool {
        let deadline = self.draft.base.spec.starting_deadline_seconds;
        !is_too_late(slot, deadline, self.nominal_now()) && self.observation.recalled.memo.name_taken < Some(slot)
    }

    /// The newest slots after `last`, up to `newest`, that may start, the oldest first.
    fn waiting(&self, last: DateTime<Utc>, most: usize, newest: DateTime<Utc>) -> VecDeque<DateTime<Utc>> {
        let found = self.schedule.as_ref().map(|schedule| newest_starts(schedule, last, newest, most));
        let mut found = found.unwrap_or_default();
        found.retain(|slot| self.is_startable(*slot));
        found
    }

    /// With `backlog: 0`: whether runs kept the slot from starting in time, and none of them was deleted for it. What else may
    /// have kept it waits for its starting deadline instead.
    pub(super) fn is_passed_over(&self, slot: DateTime<Utc>) -> bool {
        let known = self.observation.recalled.memo.blocked.filter(|known| known.slot == slot);
        let was_blocked = || self.blockers().was_blocked(self.draft.base.due(slot));
        self.nominal_now().signed_duration_since(slot) > IN_TIME && known.map_or_else(was_blocked, |known| !known.waits)
    }

    /// With `backlog: 0`: the first second in which a slot that is blocked until then is passed over. `None` once that has
    /// passed, for a slot that waits for its deadline: it must not hide a later time.
    pub(super) fn passed_over_at(&self, slot: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.limits.backlog.filter(|most| *most == 0)?;
        let time = self.draft.base.due(slot).checked_add_signed(IN_TIME + TimeDelta::seconds(1));
        time.filter(|time| *time > self.now)
    }

    /// Leaves out a slot for good. Once nothing blocks the next one, the record of decided slots says so.
    pub(super) fn pass_over(&mut self, slot: DateTime<Utc>) -> Outcome {
        self.hourly_event(EventType::Normal, PASSED_OVER, || passed_over(0));
        self.draft.verdict = Verdict::Skipped(Skip::PassedOver(slot));
        if self.blockers().blocker(slot).is_none() {
            self.draft.counted(self.draft.base.counted_at(slot));
        }
        self.wait_for_next_slot()
    }

    /// Comes back at once if another slot waits after `slot`, which has its Job or will not have one. A failure stays one.
    pub(super) fn and_then(&self, slot: DateTime<Utc>, next: Option<DateTime<Utc>>, outcome: Outcome) -> Outcome {
        let is_taken = self.draft.memo.name_taken == Some(slot) || self.draft.status.last_schedule_time >= Some(slot);
        match next.filter(|_| is_taken && !matches!(outcome, Outcome::Failed(_))) {
            Some(next) => Outcome::Requeue(self.draft.base.due(next)),
            None => outcome,
        }
    }
}

impl Blockers<'_, '_> {
    /// Whether earlier Jobs blocked a slot from `due` on for as long as it may be late. One that became stuck by then, and is
    /// deleted for a slot, did not.
    fn was_blocked(self, due: DateTime<Utc>) -> bool {
        let Some(limit) = self.most_at_a_time() else { return false };
        let freed = self.rescues_after();
        let is_freed = |job: &Job| {
            let stuck_at = freed.and_then(|age| old_at(job, age));
            stuck_at.is_some_and(|at| at.signed_duration_since(due) <= IN_TIME)
        };
        let (base, counts_all) = (self.base, self.limits.max_concurrent.is_some());
        let covers = |job: &&Arc<Job>| {
            let was_active = base.status.in_active_list(&job.uid);
            let lasted = match (job.finished, job.completion_time) {
                (None, _) => !is_freed(job),
                (Some(_), Some(end)) => end.signed_duration_since(due) > IN_TIME,
                // When it failed is not known.
                (Some(_), None) => was_active,
            };
            job.began() <= due && lasted && (counts_all || was_active || job.slot_of(base).is_some())
        };
        // Of these only a reference is known.
        let unknown = self.unfinished().filter(Option::is_none).count();
        unknown + self.observation.children().filter(covers).count() >= limit
    }

    /// Whether the Jobs that keep a slot from starting ran when it came due.
    pub(super) fn is_blocked_from_due(self, slot: DateTime<Utc>) -> bool {
        let until = self.base.due(slot).checked_add_signed(FIRST_LOOK);
        let is_early = |job: &Arc<Job>| until.is_none_or(|until| job.began() <= until);
        if self.limits.replace_waits {
            let mut present = self.observation.children().filter(|job| job.finished.is_none() || job.deleting);
            return present.any(is_early);
        }
        let early = self.unfinished().filter(|job| job.is_none_or(is_early)).count();
        self.most_at_a_time().is_some_and(|limit| early >= limit)
    }
}

/// With `backlog: 0`: the slot that is kept from starting, after a sync at `now` that deleted Jobs for the slot `deleted_for`.
pub(super) fn blocked(
    observation: &Observation,
    draft: &Draft<'_>,
    outcome: &Outcome,
    deleted_for: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Option<Blocked> {
    let cron_job = &observation.cron_job;
    cron_job.limits().backlog.filter(|most| *most == 0)?;
    let known = observation.recalled.memo.blocked;
    let may_be_in_time = |slot| now.signed_duration_since(cron_job.due(slot)) <= IN_TIME;
    let slot = match draft.verdict {
        Verdict::Skipped(Skip::PassedOver(slot)) => return Some(Blocked { slot, waits: false }),
        Verdict::Skipped(Skip::Forbid(slot) | Skip::MaxConcurrent(slot) | Skip::Replacing(slot)) => slot,
        Verdict::Skipped(Skip::Paused(slot)) if may_be_in_time(slot) => return Some(Blocked { slot, waits: true }),
        // It was tried, and no run was in the way.
        Verdict::Open if draft.startable.is_some() => {
            return draft.startable.map(|slot| Blocked { slot, waits: true });
        }
        Verdict::Started { .. } | Verdict::NothingDue => return None,
        // A suspension or a failure keeps the slot, too, if it could still start in time.
        Verdict::Skipped(
            Skip::Deadline(_) | Skip::NameTaken(_) | Skip::Paused(_) | Skip::Suspended | Skip::Invalid,
        ) => return known.map(|known| also_kept(known, may_be_in_time(known.slot))),
        Verdict::Open => {
            let fails = matches!(outcome, Outcome::Failed(_));
            return known.map(|known| also_kept(known, fails && may_be_in_time(known.slot)));
        }
    };
    let waits = known.filter(|known| known.slot == slot).map_or(!draft.blocked_from_due, |known| known.waits);
    Some(Blocked { slot, waits: waits || deleted_for == Some(slot) })
}

/// The slot, which something other than a run keeps from starting, too, if `is_kept`.
fn also_kept(blocked: Blocked, is_kept: bool) -> Blocked {
    Blocked { waits: blocked.waits || is_kept, ..blocked }
}

#[cfg(test)]
mod tests;
