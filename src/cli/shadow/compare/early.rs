//! Jobs that come before their slots, and Jobs that name no slot.
//!
//! Guarantees: a Job that comes a little early is compared when its slot is due, on the objects as they were before it. A slot whose Job
//! does not say for which slot it is counts as not seen. Pure; `now` is an argument.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{EARLY, Finding, KEPT, Sight, Slot, Track, slot_for};
use crate::api::batch_v1::{CronJob, Job};

impl Track {
    /// The Jobs of `new`, and those that came before, whose slots are due `now`. A Job that came a little early is compared when its
    /// slot is due.
    pub fn due(&mut self, new: Vec<Sight>, cron_job: &CronJob, now: DateTime<Utc>) -> Vec<Sight> {
        let known = std::mem::take(&mut self.early);
        let mut due = Vec::new();
        for sight in known.into_iter().chain(new) {
            let of_slot = slot_for(&sight.job).map(|slot| cron_job.due(slot));
            let is_early = of_slot.is_some_and(|due| now < due && due - sight.at <= EARLY);
            if is_early && self.early.len() < KEPT { &mut self.early } else { &mut due }.push(sight);
        }
        due
    }

    /// Whether the Job waits for its slot to be due.
    pub fn is_early(&self, job: &Job) -> bool {
        self.early.iter().any(|sight| sight.job.uid == job.uid)
    }

    /// Compares the slots no longer whose Jobs came a little early.
    pub fn lose_early(&mut self, cron_job: &CronJob) {
        for sight in std::mem::take(&mut self.early) {
            let Some(slot) = slot_for(&sight.job) else { continue };
            let due = cron_job.due(slot);
            let known = self.slots.entry(slot).or_insert_with(|| Slot { due, ..Slot::default() });
            if known.theirs.is_none() {
                known.theirs = Some(sight.job);
                self.find(slot, Finding::NotSeen);
            }
        }
        self.forget_old_slots();
    }

    /// Takes a Job of the CronJob without the annotation that says for which slot it is. Returns whether its name is that of a slot,
    /// which is then not compared.
    pub fn take_unannotated(&mut self, job: &Arc<Job>, cron_job: &CronJob) -> bool {
        if job.scheduled_timestamp.is_some() || job.of_backfill {
            return false;
        }
        let is_named_for = |slot: DateTime<Utc>| {
            let named = Job { scheduled_timestamp: Some(slot), ..Job::clone(job) };
            named.slot_of(cron_job).is_some()
        };
        let Some(slot) = self.slots.keys().rev().copied().find(|slot| is_named_for(*slot)) else { return false };
        let is_new = self.slots.get_mut(&slot).is_some_and(|known| known.theirs.is_none());
        if is_new {
            if let Some(known) = self.slots.get_mut(&slot) {
                known.theirs = Some(Arc::clone(job));
            }
            self.find(slot, Finding::NotSeen);
        }
        is_new
    }
}
