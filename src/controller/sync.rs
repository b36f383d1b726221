//! One sync of a CronJob: look, decide, act, conclude.
//!
//! Guarantees:
//! - What is done about a slot is decided by [`decide`] and [`conclude`]; between them, [`act`] carries out at most one attempt.
//! - Each read answers at least one open question, so a sync ends.
//! - A sync writes the status at most once, or leaves it to the next sync.
//! - A sync with no Job left to start ends by the CronJob's next slot, however slow the API server is. A later sync
//!   retries the status and the history.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::stream;
use schedule::Schedule;
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use super::control::{CronJobControl, JobControl, Patience};
use super::effects::{Effects, act};
use super::external_jobs::Account;
use super::memory::Memory;
use super::observation::{CreateReply, DeleteReply, Observation};
use super::pending_status::LONGEST_CREATE;
use super::plan::{Attempted, Event, Failure, Lookup, Outcome, Propagation, Settlement, Victim};
use super::reconcile::{Conclusion, Decision, conclude, decide, is_too_late};
use super::status::{Edits, deletion_event};
use super::template_budget::Reservation;
use super::{Controller, PRUNE_RETRY, Parts, decision_log};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::job_template::job_from_template;
use crate::api::policy::Restriction;
use crate::api::{ApiError, Delivery, ObjectName, Uid, compare_resource_versions};

/// How many requests one key may have in flight. Only the first sync after a limit was lowered sends many deletions. Before more
/// requests than that, a long template that was read is let go.
const REQUESTS_PER_KEY: usize = 8;

/// How long the deletions of one sync's history may take. Nothing waits for them, and they occupy a worker.
const PRUNE_TIME: Duration = Duration::from_secs(5);

/// How long a sync without a next slot may take to settle; no request takes longer.
const LONGEST_SETTLING: Duration = Duration::from_secs(60);

/// How long one may take whose next slot is due already.
const SHORTEST_SETTLING: Duration = Duration::from_secs(1);

impl<C: JobControl + CronJobControl> Controller<C> {
    /// Reconciles one CronJob as it was observed; its sync began in `epoch`. All decisions are made at time `now`, by [`decide`]
    /// and [`conclude`].
    ///
    /// Matches upstream `syncCronJob`, and has the status write of its caller: there is one at most, and a requeue only if it
    /// succeeded.
    pub(super) async fn sync_cron_job(&self, mut observation: Observation, epoch: u64, now: DateTime<Utc>) -> Outcome {
        let mut start = Starting { controller: self, epoch, patience: observation.patience, template: None };
        let course = loop {
            let lookups = match decide(&observation, now) {
                Decision::Read(lookups) => lookups,
                Decision::Act(course) => break course,
            };
            if !start.read(&mut observation, lookups).await {
                return Outcome::AwaitTemplate;
            }
        };
        let attempted = match course.attempt() {
            Some(attempt) => {
                if attempt.victims.len() > REQUESTS_PER_KEY {
                    start.template = None;
                }
                act(&mut start, attempt, course.cron_job()).await
            }
            None => Attempted::default(),
        };
        drop(start);
        let (conclusion, began) = (conclude(course, &attempted), Instant::now());
        let (mut settlement, prune_failed) = self.prune_first(&observation, conclusion, now).await;
        self.decided(&observation, &mut settlement, now);
        let end = began + settling_time(settlement.outcome.requeue_at(), now);
        self.settle(&observation, settlement, end, prune_failed).await
    }

    /// Deletes the Jobs that go before the status is written, and settles. Also returns whether a deletion failed.
    async fn prune_first(
        &self,
        observation: &Observation,
        mut conclusion: Conclusion<'_>,
        now: DateTime<Utc>,
    ) -> (Settlement, bool) {
        let jobs = std::mem::take(&mut conclusion.prune_first);
        if jobs.is_empty() {
            return (conclusion.settle([]), false);
        }
        // The other half of the time is for the status write.
        let until = Instant::now() + PRUNE_TIME.min(settling_time(conclusion.requeue_at(), now) / 2);
        let (replies, failed) = self.cleanup_finished_jobs(&observation.cron_job, jobs, until).await;
        let answered = replies.into_iter().map(|(job, reply)| {
            let unanswered =
                || Err(not_in_time("delete Job", &job.name, "no answer in the time that pruning may take"));
            let reply = reply.unwrap_or_else(unanswered);
            (job, reply)
        });
        (conclusion.settle(answered), failed)
    }

    /// Writes the status and prunes the history, after deletions that `prune_failed` tells of.
    async fn settle(
        &self,
        observation: &Observation,
        settlement: Settlement,
        end: Instant,
        mut prune_failed: bool,
    ) -> Outcome {
        let (cron_job, mut outcome) = (&observation.cron_job, settlement.outcome);
        let (mut is_well, mut prune, mut again) = (true, settlement.pruning.jobs, false);
        match settlement.status {
            None => self.memories.settled(cron_job, None, settlement.edits),
            Some(write) => {
                let request = self.parts.control.update_status(&cron_job.name, &write, observation.patience);
                let unanswered =
                    |_| Err(not_in_time("update status of CronJob", &cron_job.name, "no answer until the next slot"));
                match timeout_at(end, request).await.unwrap_or_else(unanswered) {
                    Ok(written) => {
                        decision_log::status_written(&written);
                        self.memories.settled(cron_job, Some(&written), Edits::default());
                    }
                    Err(error) => {
                        debug!(%error, "Unable to update status for cronjob");
                        self.memories.settled(cron_job, None, settlement.edits);
                        if error.is_conflict() || error.is_not_found() {
                            self.memories.doubt(&cron_job.name);
                        }
                        is_well = !error.is_unavailable();
                        prune.retain(|job| settlement.pruning.unrecorded.as_ref() != Some(&job.uid));
                        outcome = Outcome::Failed(Failure::Api(error));
                    }
                }
            }
        }
        if is_well && !prune.is_empty() {
            let end = end.min(Instant::now() + PRUNE_TIME);
            let (replies, failed) = self.cleanup_finished_jobs(cron_job, prune, end).await;
            let is_pruned = !failed && replies.iter().any(|(_, reply)| matches!(reply, Some(Ok(()))));
            for (job, reply) in replies {
                let event =
                    |reply| deletion_event(cron_job.controller_kind, &job.name, &reply, observation.hides_transient);
                self.record_all(cron_job, reply.and_then(event));
            }
            prune_failed |= failed;
            // What cannot be deleted, or is gone already, is not tried again at once.
            again = is_pruned && settlement.pruning.more > 0;
        }
        if prune_failed {
            decision_log::requeued_after(PRUNE_RETRY, "history not cleaned up");
            self.parts.queue.add_after(cron_job.name.clone(), PRUNE_RETRY);
        }
        if again {
            decision_log::requeued("more to clean up");
            self.parts.queue.add(cron_job.name.clone());
        }
        outcome
    }

    /// Deletes finished Jobs of the history in batches until the first failure: no answer by `end`, or an error other than not found.
    /// A Job without an answer has no reply. Also returns whether there was a failure. Matches upstream `cleanupFinishedJobs`, for
    /// which [`conclude`] chooses the Jobs.
    async fn cleanup_finished_jobs(
        &self,
        cron_job: &CronJob,
        jobs: Vec<Arc<Job>>,
        end: Instant,
    ) -> (Vec<(Arc<Job>, Option<DeleteReply>)>, bool) {
        let (mut replies, mut trouble) = (Vec::with_capacity(jobs.len()), false);
        for some in jobs.chunks(REQUESTS_PER_KEY) {
            let requests = some.iter().map(|job| async {
                let request =
                    self.parts.control.delete_job(&job.name, &job.uid, Propagation::Background, Patience::Usual);
                let reply = if trouble { None } else { timeout_at(end, request).await.ok() };
                if let Some(Ok(())) = &reply {
                    self.deleted(cron_job, &job.name, &job.uid);
                }
                (Arc::clone(job), reply)
            });
            let some = futures::future::join_all(requests).await;
            let is_trouble = |reply: &Option<DeleteReply>| match reply {
                None => true,
                Some(reply) => reply.as_ref().is_err_and(|error| !error.is_not_found()),
            };
            trouble |= some.iter().any(|(_, reply)| is_trouble(reply));
            replies.extend(some);
        }
        (replies, trouble)
    }

    /// A request to create the Job of `slot` is about to be sent.
    fn creating(&self, cron_job: &CronJob, slot: DateTime<Utc>) {
        let name = &cron_job.name;
        // The Job that is found then may be that of a leader before, of the in-tree controller, or of the slot before.
        let number = |slot| cron_job.controller_kind.number_of(slot);
        let interval = cron_job.schedule(self.parts.local_zone).and_then(Schedule::interval);
        let beside = self.is_shared()
            || self.takeover.wait(&name.namespace).is_some()
            || interval.is_some_and(|interval| number(slot - interval) == number(slot));
        self.memories.of_name(name, |memory| {
            Account::creating(&mut memory.account, slot);
            if let Some(known) = memory.known_or_new(cron_job) {
                known.pending.begin(slot, beside);
            }
        });
    }

    /// The Job of `slot` was created.
    fn created(&self, cron_job: &CronJob, job: &Arc<Job>, slot: DateTime<Utc>) {
        let Controller { memories, parts: Parts { jobs, clock, metrics, .. }, .. } = self;
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

    /// The create was refused or not answered; the Job may exist all the same.
    fn create_failed(&self, cron_job: &CronJob, error: &ApiError) {
        let now = Instant::now();
        self.memories.update(cron_job, |known| {
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

    /// A Job of the CronJob was deleted.
    fn deleted(&self, cron_job: &CronJob, name: &ObjectName, uid: &Uid) {
        let Controller { memories, parts: Parts { jobs, .. }, .. } = self;
        memories.change(cron_job, |known| known.own.job_deleted(uid));
        // Only a child that the cache still shows has to be hidden.
        if !jobs.get(name).is_some_and(|cached| cached.uid == *uid && cached.is_child_of(cron_job)) {
            memories.update(cron_job, |known| known.own.job_gone(uid));
        }
        decision_log::deleted(name);
    }

    /// The sync is about to end with this settlement, whose Events are taken. The status write follows. It may take
    /// until the next slot, and a shutdown may cancel it. The decision's Events and statistics do not depend on it.
    fn decided(&self, observation: &Observation, settlement: &mut Settlement, judged: DateTime<Utc>) {
        let cron_job = &observation.cron_job;
        decision_log::decided(&cron_job.name, settlement);
        self.memories.decided(cron_job, &observation.recalled, settlement);
        for job in settlement.ended_runs(cron_job) {
            let took = job.ran_for(self.parts.clock.now());
            self.parts.metrics.job_ended(job.succeeded, took.as_seconds_f64());
        }
        if let Some(stats_set) = &self.parts.stats_set {
            stats_set.decided(observation, settlement, judged);
        }
        self.record_all(cron_job, std::mem::take(&mut settlement.events));
        let is_external = |memory: &mut Memory, slot| self.external_jobs.already_there(&mut memory.account, slot);
        if let Some(slot) = settlement.already_there
            && self.memories.visit(&cron_job.name, |memory| is_external(memory, slot)) == Some(true)
        {
            self.warn_of_external_job(cron_job, slot);
        }
    }

    fn record_all(&self, cron_job: &CronJob, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.record(cron_job, event.type_, event.reason, event.message);
        }
    }
}

/// A sync that may start a Job.
struct Starting<'a, C> {
    controller: &'a Controller<C>,
    /// The epoch in which the sync began.
    epoch: u64,
    /// The time limit of its create, and of its deletions of running Jobs.
    patience: Patience,
    /// The CronJob as it was read to create a Job, if its template is long. Its reservation, if the cached template was long, too,
    /// is dropped with it when the create is answered.
    template: Option<(Arc<CronJob>, Option<Reservation>)>,
}

impl<C: JobControl + CronJobControl> Starting<'_, C> {
    /// Reads from the API server; a CronJob whose template is long only if that fits into the budget. Returns whether it did.
    async fn read(&mut self, observation: &mut Observation, lookups: Vec<Lookup>) -> bool {
        if lookups.len() > REQUESTS_PER_KEY {
            self.template = None;
        }
        let mut jobs = Vec::with_capacity(lookups.len());
        for lookup in lookups {
            match lookup {
                Lookup::CronJob => {
                    let cron_job = Arc::clone(&observation.cron_job);
                    let Some(reply) = self.read_cron_job(&cron_job).await else { return false };
                    observation.live.cron_job = Some(reply);
                }
                Lookup::Job(name) => jobs.push(name),
            }
        }
        let control = &self.controller.parts.control;
        let mut replies = stream::iter(jobs)
            .map(|name| async move {
                let reply = control.get_job(&name).await;
                (name, reply)
            })
            .buffered(REQUESTS_PER_KEY);
        while let Some((name, reply)) = replies.next().await {
            observation.learn_job(name, reply);
        }
        true
    }

    /// Reads a CronJob of which `known` is known. A long template is kept, and not in the answer. Returns `None` if there is no
    /// space for it.
    async fn read_cron_job(&mut self, known: &CronJob) -> Option<Result<Arc<CronJob>, ApiError>> {
        let mut reservation = None;
        if let Some(bytes) = known.spec.job_template.omitted_bytes() {
            reservation = Some(self.controller.template_budget.reserve(&known.name, bytes)?);
        }
        // First: with the CronJob, its view is confirmed.
        let restriction = match self.controller.look_at_namespace(&known.name, true).await {
            Ok(restriction) => restriction,
            Err(error) => return Some(Err(error)),
        };
        let reply = self.controller.parts.control.get_cron_job(&known.name).await;
        match &reply {
            // A watch that hangs may not show this version for a long time.
            Ok(live) if live.uid == known.uid => self.controller.memories.confirmed(live, self.epoch),
            Err(error) if !error.is_not_found() => {}
            // Another CronJob of the same name does not confirm the one in the cache.
            _ => self.controller.memories.doubt(&known.name),
        }
        Some(reply.map(|live| {
            let cached = live.for_cache();
            let is_long = cached.spec.job_template.omitted_bytes().is_some();
            self.template = is_long.then_some((live, reservation));
            restriction.map_or_else(|| Arc::clone(&cached), |restriction| Arc::new(cached.restricted(&restriction)))
        }))
    }

    /// Whether the CronJob is as it was decided on. Its long template is kept then.
    async fn is_unchanged(&mut self, cron_job: &CronJob) -> Result<bool, ApiError> {
        let Some(live) = self.read_cron_job(cron_job).await.transpose()? else { return Ok(false) };
        let is_same = live.uid == cron_job.uid && live.spec == cron_job.spec && live.same_policies(cron_job);
        Ok(is_same && !live.deleting && live.status.last_schedule_time == cron_job.status.last_schedule_time)
    }
}

impl<C: JobControl + CronJobControl> Effects for Starting<'_, C> {
    /// Whether nothing has changed while the sync waited for answers. The watch must not have shown that the CronJob was deleted,
    /// suspended or given another spec, the starting deadline must not have passed, unless a Job was deleted for the slot (then
    /// nothing would run in its place), and the clock must not have been set back to before the slot.
    fn is_current(&self, cron_job: &CronJob, slot: DateTime<Utc>, has_deleted: bool) -> bool {
        let Parts { cron_jobs, clock, .. } = &self.controller.parts;
        let Some(cached) = cron_jobs.get(&cron_job.name) else { return false };
        let now = cron_job.nominal(clock.now());
        if slot > now || !has_deleted && is_too_late(slot, cron_job.spec.starting_deadline_seconds, now) {
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

    async fn may_create(
        &mut self,
        cron_job: &Arc<CronJob>,
        slot: DateTime<Utc>,
        has_deleted: bool,
    ) -> Result<bool, ApiError> {
        let mut is_current = self.is_current(cron_job, slot, has_deleted);
        if is_current && self.template.is_none() && cron_job.spec.job_template.omitted_bytes().is_some() {
            // The template was let go: it is read again, by a later sync if others use up the budget now.
            is_current = self.is_unchanged(cron_job).await? && self.is_current(cron_job, slot, has_deleted);
        }
        Ok(is_current)
    }

    async fn delete(&mut self, cron_job: &CronJob, victim: &Victim) -> DeleteReply {
        let Victim { name, uid, propagation } = victim;
        let reply = self.controller.parts.control.delete_job(name, uid, *propagation, self.patience).await;
        // Otherwise it exists until the watch shows its end.
        if reply.is_ok() && *propagation == Propagation::Background {
            self.controller.deleted(cron_job, name, uid);
        }
        reply
    }

    async fn get_job(&mut self, name: &ObjectName) -> Result<Arc<Job>, ApiError> {
        self.controller.parts.control.get_job(name).await
    }

    /// Afterwards the template is no longer needed.
    async fn create(&mut self, cron_job: &Arc<CronJob>, name: &ObjectName, slot: DateTime<Utc>) -> CreateReply {
        decision_log::starts(slot);
        let (template, control) = (self.template.take(), &self.controller.parts.control);
        let local_zone = self.controller.parts.local_zone;
        let cron_job = template.as_ref().map_or(cron_job, |(whole, _)| whole);
        let announce = || control.traceparent(cron_job, name, slot);
        let traceparent = cron_job.limits().slot_in_pod.then(announce).flatten();
        let body = match job_from_template(cron_job, slot, local_zone, None, traceparent.as_deref()) {
            Ok(body) => body,
            Err(error) => return CreateReply::BadTemplate(error.to_string()),
        };
        self.controller.creating(cron_job, slot);
        match control.create_job(name, body, self.patience).await {
            Ok(job) => {
                self.controller.created(cron_job, &job, slot);
                CreateReply::Created(job)
            }
            Err(error) => {
                self.controller.create_failed(cron_job, &error);
                CreateReply::Refused(error)
            }
        }
    }
}

/// How long a sync may continue once it has no Job left to start.
fn settling_time(next: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Duration {
    let until_next = |next: DateTime<Utc>| (next - now).to_std().unwrap_or(SHORTEST_SETTLING);
    next.map_or(LONGEST_SETTLING, until_next).min(LONGEST_SETTLING)
}

/// The error of a request without an answer in time.
fn not_in_time(operation: &'static str, object: &ObjectName, message: &'static str) -> ApiError {
    ApiError { delivery: Delivery::GaveUp, ..ApiError::transport(operation, object.clone(), message) }
}

#[cfg(test)]
mod tests;
