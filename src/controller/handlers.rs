//! Event handlers for the controller's informers.
//!
//! Guarantees:
//! - A handler calls no API: it reads the stores, adds to the queue, remembers what the caches no longer show, and reports what
//!   cannot be read.
//! - A Job enqueues the CronJob that controls it; on a change of owner, the old one too.
//! - A new CronJob goes before keys that wait to be settled.
//! - A changed schedule is requeued at its next slot; any other change is synced at once.
//! - The start of a Job and its first ready Pod are measured once, by the leader whose watch shows them.
//! - On a standby no handler evaluates a schedule: its workers do once it leads.
//! - A list after a gap enqueues the CronJobs whose Jobs the watch has not shown.
//!
//! The controller is the handler of its informers: by `add_job`, `update_job`, `delete_job`, `update_cron_job`.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::control::{CronJobControl, JobControl};
use super::external_jobs::Account;
use super::memory::Memory;
use super::start_delays::Started;
use super::{Controller, decision_log, reference};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{EventType, NameConflict, Object, ObjectName, ResourceKind};
use crate::cache::{MalformedObject, ResourceEventHandler};
use crate::workqueue::Priority;

impl<C: JobControl + CronJobControl> ResourceEventHandler<NameConflict> for Controller<C> {
    fn on_add(&self, name_conflict: &Arc<NameConflict>, _is_in_initial_list: bool) {
        let name = name_conflict.object_name();
        if self.parts.cron_jobs.get(name).is_some() {
            self.enqueue(name.clone(), "batch/v1 CronJob added");
        }
    }

    fn on_update(&self, _old: &Arc<NameConflict>, _new: &Arc<NameConflict>) {}

    fn on_delete(&self, _last: &Arc<NameConflict>, _final_state_unknown: bool) {}
}

impl<C: JobControl + CronJobControl> ResourceEventHandler<Job> for Controller<C> {
    fn on_add(&self, job: &Arc<Job>, is_in_initial_list: bool) {
        self.add_job(job);
        if !is_in_initial_list {
            self.observe_start(None, job);
        }
    }

    fn on_update(&self, old: &Arc<Job>, new: &Arc<Job>) {
        self.update_job(old, new);
        self.observe_start(Some(old), new);
    }

    fn on_delete(&self, last: &Arc<Job>, _final_state_unknown: bool) {
        self.delete_job(last);
    }

    fn on_malformed(&self, object: &MalformedObject) {
        self.report_malformed(self.parts.controller_kind.child, object);
    }

    fn on_relisted(&self) {
        self.doubt_caches();
        // A Job created here that came and went in the gap has no event: its CronJob would wait for the next slot.
        for job in self.memories.unseen() {
            self.enqueue_owner(&job, "list of Jobs");
        }
    }
}

impl<C: JobControl + CronJobControl> ResourceEventHandler<CronJob> for Controller<C> {
    /// A CronJob is new. No sync has seen it yet, and it may be overdue, so it goes before keys that only wait to be settled.
    fn on_add(&self, cron_job: &Arc<CronJob>, is_in_initial_list: bool) {
        if self.stands_by() {
            return;
        }
        if self.is_shared() && !is_in_initial_list {
            let account = Account::handed_over(self.parts.clock.now());
            self.memories.of_name(&cron_job.name, |memory| memory.account = Some(account));
        }
        decision_log::queued(&cron_job.name, "CronJob added");
        self.parts.queue.add_with(cron_job.name.clone(), Priority::High);
    }

    fn on_update(&self, old: &Arc<CronJob>, new: &Arc<CronJob>) {
        self.update_cron_job(old, new);
    }

    fn on_delete(&self, last: &Arc<CronJob>, _final_state_unknown: bool) {
        if self.stands_by() {
            self.forget(&last.name);
        }
        self.enqueue(last.name.clone(), "CronJob deleted");
    }

    fn on_malformed(&self, object: &MalformedObject) {
        self.report_malformed(self.parts.controller_kind.parent, object);
    }

    fn on_relisted(&self) {
        self.doubt_caches();
    }
}

impl<C: JobControl + CronJobControl> Controller<C> {
    /// A Job was created, or is seen for the first time. One that is pending deletion enqueues its owner, too. Matches upstream
    /// `addJob`.
    fn add_job(&self, job: &Arc<Job>) {
        self.memories.job_seen(job);
        let Some(cron_job) = self.resolve_controller_ref(job) else { return };
        if let Some(slot) = job.slot_of(&cron_job)
            && self.is_external(&cron_job, slot)
        {
            self.warn_of_external_job(&cron_job, slot);
        }
        self.enqueue(cron_job.name.clone(), "Job added");
    }

    /// A Job changed. On a change of owner, the old one is enqueued, too. Matches upstream `updateJob`.
    fn update_job(&self, old: &Arc<Job>, new: &Arc<Job>) {
        if old.resource_version == new.resource_version {
            return;
        }
        if old.controller != new.controller {
            // It is no longer a child, and its deletion will not name this owner.
            self.memories.job_gone(old);
            self.enqueue_owner(old, "Job updated");
        }
        self.enqueue_owner(new, "Job updated");
    }

    /// Measures how long after its due time a Job was started and its first Pod was ready, when the watch shows it. A standby leaves
    /// that to the leader.
    fn observe_start(&self, before: Option<&Job>, job: &Job) {
        if self.stands_by() {
            return;
        }
        let started = self.start_delays.observe(before, job, self.parts.clock.now());
        if started == Started::default() {
            return;
        }
        let Some(cron_job) = self.resolve_controller_ref(job) else { return };
        let Some(slot) = job.slot_of(&cron_job) else { return };
        let due = cron_job.due(slot);
        let [to_start, to_pod] =
            [started.job, started.pod].map(|time| time.map(|time| (time - due).max(TimeDelta::zero())));
        let metrics = &self.parts.metrics;
        for (delay, histogram) in [(to_start, &metrics.cronjob_start_delay), (to_pod, &metrics.cronjob_pod_delay)] {
            if let Some(delay) = delay {
                histogram.observe(delay.as_seconds_f64());
            }
        }
        if let Some(stats_set) = &self.parts.stats_set {
            stats_set.job_started(&cron_job, to_start, to_pod);
        }
    }

    /// A Job is gone. Matches upstream `deleteJob`.
    fn delete_job(&self, last: &Arc<Job>) {
        let is_own_deletion = self.memories.job_gone(last);
        self.start_delays.forget(last);
        let Some(cron_job) = self.resolve_controller_ref(last) else { return };
        // It no longer shows that its slot was taken.
        if let Some(slot) = last.slot_of(&cron_job)
            && cron_job.status.last_schedule_time < Some(slot)
        {
            self.memories.change(&cron_job, |known| known.own.slot_taken(slot));
        }
        if last.finished.is_some() && !is_own_deletion && !self.stands_by() {
            self.memories.change(&cron_job, |known| known.own.job_vanished(last));
        }
        self.enqueue(cron_job.name.clone(), "Job deleted");
    }

    /// Whether another controller made a Job of `slot` that the watch shows now.
    fn is_external(&self, cron_job: &CronJob, slot: DateTime<Utc>) -> bool {
        let appeared = |memory: &mut Memory| self.external_jobs.appeared(&mut memory.account, slot);
        self.external_jobs.is_in_our_time(slot) && self.memories.of_name(&cron_job.name, appeared)
    }

    /// After a change of schedule or zone, the key is requeued at the next slot; if the old timer fires earlier, its
    /// sync finds nothing to do. Any other change is synced at once, and one of the policies, too: it must be recorded. So is
    /// every change where the next run is published. Matches upstream `updateCronJob`.
    fn update_cron_job(&self, old: &CronJob, new: &CronJob) {
        if let Some(stats_set) = &self.parts.stats_set {
            stats_set.edited(old, new);
        }
        if let Some(counted) = new.recount_removed(old, self.parts.local_zone, self.parts.clock.now()) {
            self.memories.change(new, |known| {
                // A sync that read this version live has counted it, and told of it.
                if !known.pending.edits.has_counted(&counted) {
                    known.record_removed = Some(counted.into());
                }
            });
        }
        if self.stands_by() {
            // The first sync decides by the schedule, and reports one that cannot be read.
            return;
        }
        let is_recorded = !old.same_policies(new) || new.limits().waits_after_change;
        if old.spec.recurrence == new.spec.recurrence || is_recorded {
            self.enqueue(new.name.clone(), "CronJob updated");
            return;
        }
        let is_published = self.parts.publish.next_run;
        if new.timing(self.parts.local_zone).schedule.is_err() {
            let text = format!("unparseable schedule for cronjob: {}", new.spec.recurrence.schedule());
            self.record(new, EventType::Warning, "UnParseableCronJobSchedule", text);
            if is_published {
                self.enqueue(new.name.clone(), "CronJob updated");
            }
            return;
        }
        let restricted = self.restriction(new).map(|restriction| new.restricted(&restriction));
        match self.next_scheduled_time(restricted.as_ref().unwrap_or(new)).filter(|_| !is_published) {
            Some(slot) => {
                decision_log::queued_at(&new.name, slot, "schedule changed");
                self.parts.queue.add_at(new.name.clone(), slot);
            }
            // The schedule has no slot: the sync reports that.
            None => self.enqueue(new.name.clone(), "CronJob updated"),
        }
    }

    fn report_malformed(&self, kind: ResourceKind, object: &MalformedObject) {
        self.parts.metrics.malformed_objects_total.with_label_values(&[kind.kind]).inc();
        if self.is_shared() {
            // The annotation cannot be read, so the owning controller is not known.
            return;
        }
        let name = ObjectName::new(object.namespace.as_str(), object.name.as_str());
        let regarding = reference(kind, &name, &object.uid, &object.resource_version);
        let text = format!("The cronjob-controller cannot read this object and ignores it: {}", object.error);
        self.parts.recorder.event(&regarding, EventType::Warning, "MalformedObject", text);
    }
}
