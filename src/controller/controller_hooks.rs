//! Updates the controller's memory and metrics for each request of a sync, and applies its report.
//!
//! Guarantees: a hook never blocks, and never calls the API server but to read a Namespace. Every sync that begins after the
//! server confirmed a change sees it, whatever the caches show.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::control::{CronJobControl, JobControl};
use super::external_jobs::Account;
use super::memory::Memory;
use super::observation::Observation;
use super::pending_status::LONGEST_CREATE;
use super::plan::{Event, Note, Outcome, Settlement};
use super::status::Edits;
use super::sync::{SyncHooks, SyncReport};
use super::template_budget::Reservation;
use super::{Controller, PRUNE_RETRY, Parts, decision_log, reconcile};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::Restriction;
use crate::api::{ApiError, Delivery, Manage, ObjectName, Uid, compare_resource_versions};

/// Records what one sync did in the controller's memory and metrics.
pub(super) struct ControllerHooks<'a, C> {
    pub(super) controller: &'a Controller<C>,
    /// The epoch in which the sync began.
    pub(super) epoch: u64,
}

impl<C: JobControl + CronJobControl> ControllerHooks<'_, C> {
    /// Whether another controller reconciles the CronJobs too, so that one may be released while its Job is being
    /// created.
    fn is_shared(&self) -> bool {
        self.controller.parts.manage == Manage::Annotated
    }

    fn created(&self, cron_job: &CronJob, job: &Arc<Job>, slot: DateTime<Utc>) {
        let Controller { memories, parts: Parts { jobs, clock, metrics, .. }, .. } = self.controller;
        memories.change(cron_job, |known| {
            known.pending.created(self.is_shared());
            known.own.slot_taken(slot);
            known.own.job_created(job);
        });
        if jobs.get(&job.name).is_some_and(|cached| cached.uid == job.uid) {
            memories.update(cron_job, |known| known.own.job_seen(&job.uid));
        }
        let now = clock.now();
        let due = cron_job.due(slot);
        metrics.job_creation_skew.observe((now - due).as_seconds_f64());
        metrics.job_creation_skew_duration.observe((job.creation_timestamp - due).as_seconds_f64());
        decision_log::created(job, slot, now - due);
    }

    fn create_failed(&self, cron_job: &CronJob, error: &ApiError) {
        let now = Instant::now();
        self.controller.memories.update(cron_job, |known| {
            if !error.may_have_been_done() {
                known.pending.refused(self.is_shared());
            } else if error.delivery == Delivery::GaveUp {
                // The client waited longer than the server works on the request.
                known.pending.unanswered(now);
            } else {
                known.pending.unanswered(now + LONGEST_CREATE);
            }
        });
    }
}

impl<C: JobControl + CronJobControl> Controller<C> {
    /// Does what a sync left to do, and returns its outcome.
    pub(super) fn apply(&self, report: SyncReport) -> Outcome {
        let SyncReport { cron_job, outcome, events, prune_failed, again } = report;
        self.record_all(&cron_job, events);
        if prune_failed {
            self.parts.queue.add_after(cron_job.name.clone(), PRUNE_RETRY);
        }
        if again {
            decision_log::requeued("more to clean up");
            self.parts.queue.add(cron_job.name.clone());
        }
        outcome
    }

    fn record_all(&self, cron_job: &CronJob, events: Vec<Event>) {
        for event in events {
            self.record(cron_job, event.type_, event.reason, event.message);
        }
    }
}

impl<C: JobControl + CronJobControl> SyncHooks for ControllerHooks<'_, C> {
    fn reserve_template(&self, key: &ObjectName, bytes: usize) -> Option<Reservation> {
        self.controller.template_budget.reserve(key, bytes)
    }

    async fn restriction(&self, cron_job: &CronJob) -> Result<Option<Arc<Restriction>>, ApiError> {
        self.controller.look_at_namespace(&cron_job.name, true).await
    }

    fn view_confirmed(&self, cron_job: &Arc<CronJob>) {
        // A watch that hangs may not show this version for a long time.
        self.controller.memories.confirmed(cron_job, self.epoch);
    }

    fn view_refuted(&self, name: &ObjectName) {
        self.controller.memories.not_found(name);
    }

    fn creating(&self, cron_job: &CronJob, slot: DateTime<Utc>) {
        self.controller.memories.of_name(&cron_job.name, |memory| {
            Account::creating(&mut memory.account, slot);
            if let Some(known) = memory.known_or_new(cron_job) {
                known.pending.begin(slot);
            }
        });
    }

    fn create_answered(&self, cron_job: &CronJob, slot: DateTime<Utc>, answer: Result<&Arc<Job>, &ApiError>) {
        match answer {
            Ok(job) => self.created(cron_job, job, slot),
            Err(error) => self.create_failed(cron_job, error),
        }
    }

    fn deleted(&self, cron_job: &CronJob, name: &ObjectName, uid: &Uid) {
        let Controller { memories, parts: Parts { jobs, .. }, .. } = self.controller;
        memories.change(cron_job, |known| known.own.job_deleted(uid));
        // Only a child that the cache still shows has to be hidden.
        if !jobs.get(name).is_some_and(|cached| cached.uid == *uid && cached.is_child_of(cron_job)) {
            memories.update(cron_job, |known| known.own.job_gone(uid));
        }
        decision_log::deleted(name);
    }

    fn decided(&self, observation: &Observation, settlement: &mut Settlement, judged: DateTime<Utc>) {
        let (controller, cron_job) = (self.controller, &observation.cron_job);
        decision_log::decided(&cron_job.name, settlement);
        controller.memories.decided(cron_job, &observation.recalled, settlement);
        for job in settlement.notes.iter().filter_map(Note::ended) {
            let took = job.ran_for(controller.parts.clock.now());
            controller.parts.metrics.job_ended(job.succeeded, took.as_seconds_f64());
        }
        if let Some(stats_set) = &controller.parts.stats_set {
            stats_set.decided(observation, settlement, judged);
        }
        controller.record_all(cron_job, std::mem::take(&mut settlement.events));
        let is_external = |memory: &mut Memory, slot| controller.external_jobs.already_there(&mut memory.account, slot);
        if let Some(slot) = settlement.already_there
            && controller.memories.visit(&cron_job.name, |memory| is_external(memory, slot)) == Some(true)
        {
            controller.warn_of_external_job(cron_job, slot);
        }
    }

    fn settled(&self, cron_job: &CronJob, written: Option<&Arc<CronJob>>, owed: Edits) {
        self.controller.memories.settled(cron_job, written, owed);
    }

    fn is_current(&self, cron_job: &CronJob, slot: DateTime<Utc>) -> bool {
        let Parts { cron_jobs, clock, .. } = &self.controller.parts;
        let Some(cached) = cron_jobs.get(&cron_job.name) else { return false };
        if reconcile::is_too_late(slot, cron_job.spec.starting_deadline_seconds, cron_job.nominal(clock.now())) {
            return false;
        }
        let (known, decided_on) = (self.controller.restriction(cron_job), cron_job.restriction());
        if !Restriction::is_same(known.as_deref(), decided_on.map(|restriction| &**restriction)) {
            return false;
        }
        let is_newer = compare_resource_versions(&cached.resource_version, &cron_job.resource_version)
            .is_some_and(std::cmp::Ordering::is_gt);
        let is_changed = || cached.spec != cron_job.spec || !cached.same_policies(cron_job);
        cached.uid == cron_job.uid && !(is_newer && (cached.deleting || is_changed()))
    }
}
