//! One sync of a CronJob: look, decide, act, conclude.
//!
//! Guarantees:
//! - What is done about a slot is decided by [`decide`] and [`conclude`]; between them, one attempt is carried out.
//! - Nothing is sent for a slot after the CronJob was changed, suspended or handed back while an answer was awaited.
//! - Each read answers at least one open question, so a sync ends.
//! - A sync writes the status once, or leaves it to the next sync.
//! - A sync with no Job left to start ends by the CronJob's next slot, however slow the API server is. A later sync
//!   retries the status and the history.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::stream;
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use super::control::{CronJobControl, JobControl, Patience};
use super::decision_log;
use super::observation::{CreateReply, DeleteReply, Observation};
use super::plan::{
    Attempt, Attempted, Event, Failure, Lookup, Outcome, Propagation, Requeue, Settlement, Then, Victim,
};
use super::reconcile::{Conclusion, Decision, conclude, decide};
use super::status::{Edits, deletion_event};
use super::template_budget::Reservation;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::job_template::job_from_template;
use crate::api::policy::Restriction;
use crate::api::{ApiError, Delivery, ObjectName, Uid};

/// How many requests one key may have in flight. Only the first sync after a limit was lowered sends many deletions. Before more
/// requests than that, a long template that was read is let go.
const REQUESTS_PER_KEY: usize = 8;

/// How long the deletions of one sync's history may take. Nothing waits for them, and they occupy a worker.
const PRUNE_TIME: Duration = Duration::from_secs(5);

/// How long a sync without a next slot may take to settle; no request takes longer.
const LONGEST_SETTLING: Duration = Duration::from_secs(60);

/// How long one may take whose next slot is due already.
const SHORTEST_SETTLING: Duration = Duration::from_secs(1);

/// Callbacks at the moments of a sync that must not wait for its end: other syncs depend on them, or the sync may be
/// cancelled or panic before it ends. Everything else is in the [`SyncReport`].
pub trait SyncHooks: Send + Sync {
    /// The CronJob is about to be read for a template of `bytes` bytes. The template is held until the reservation is
    /// dropped. Returns `None` while other templates use up the budget; the key is then requeued when there is space.
    fn reserve_template(&self, key: &ObjectName, bytes: usize) -> Option<Reservation> {
        let _ = (key, bytes);
        Some(Reservation::unbounded())
    }
    /// What the Namespace of a CronJob that is read live says, read live, too, if that is in doubt.
    fn restriction(
        &self,
        cron_job: &CronJob,
    ) -> impl Future<Output = Result<Option<Arc<Restriction>>, ApiError>> + Send {
        std::future::ready(Ok(cron_job.restriction().cloned()))
    }
    /// The CronJob was read live; its sync continues with this version.
    fn view_confirmed(&self, cron_job: &Arc<CronJob>) {
        let _ = cron_job;
    }
    /// The CronJob was read live and not found: it was deleted, perhaps created again, or handed back.
    fn view_refuted(&self, name: &ObjectName) {
        let _ = name;
    }
    /// Whether the Job of `slot` may still be created, and others deleted for it, after waiting for answers. The watch
    /// must not have shown that the CronJob was deleted, suspended or given another spec, the starting deadline must not have
    /// passed, and the clock must not have been set back to before the slot.
    fn is_current(&self, cron_job: &CronJob, slot: DateTime<Utc>) -> bool {
        let _ = (cron_job, slot);
        true
    }
    /// A request to create the Job of `slot` is about to be sent.
    fn creating(&self, cron_job: &CronJob, slot: DateTime<Utc>) {
        let _ = (cron_job, slot);
    }
    /// The create for `slot` was answered. An error says whether the Job may exist all the same.
    fn create_answered(&self, cron_job: &CronJob, slot: DateTime<Utc>, answer: Result<&Arc<Job>, &ApiError>) {
        let _ = (cron_job, slot, answer);
    }
    /// A Job of the CronJob was deleted.
    fn deleted(&self, cron_job: &CronJob, name: &ObjectName, uid: &Uid) {
        let _ = (cron_job, name, uid);
    }
    /// The sync is about to end with this settlement, whose Events may be taken. The status write follows. It may take
    /// until the next slot, and a shutdown may cancel it. The decision's Events and statistics do not depend on it.
    fn decided(&self, observation: &Observation, settlement: &mut Settlement, judged: DateTime<Utc>);
    /// The status was written as in `written`, or not at all. `owed` are the edits that are still to be written; they
    /// may be empty. The history is pruned next; a sync that is cancelled during that still owes these edits.
    fn settled(&self, cron_job: &CronJob, written: Option<&Arc<CronJob>>, owed: Edits) {
        let _ = (cron_job, written, owed);
    }
}

/// What is left to do after a sync.
#[derive(Debug)]
pub struct SyncReport {
    /// The CronJob of the observation.
    pub cron_job: Arc<CronJob>,
    /// What happens to the key.
    pub outcome: Outcome,
    /// The Events about the history's deletions after the status write.
    pub events: Vec<Event>,
    /// Whether deletions from the history failed, or were not answered in time.
    pub prune_failed: bool,
    /// Whether more of the history is to be deleted.
    pub again: bool,
}

impl SyncReport {
    fn new(cron_job: Arc<CronJob>, outcome: Outcome) -> Self {
        Self { cron_job, outcome, events: Vec::new(), prune_failed: false, again: false }
    }
}

/// A CronJob with a long template, as it was read to create a Job. Dropped when the create is answered.
#[derive(Debug)]
struct LongTemplate {
    cron_job: Arc<CronJob>,
    /// `None` where the cached template was short.
    _reservation: Option<Reservation>,
}

/// Reconciles one CronJob as it was observed. All decisions are made at time `now`, by [`decide`] and [`conclude`].
///
/// Matches upstream `syncCronJob`, and the status write of upstream's `sync`: there is one at most, and a requeue only if it
/// succeeded.
pub async fn sync_cron_job<C: JobControl + CronJobControl>(
    control: &C,
    hooks: &impl SyncHooks,
    mut observation: Observation,
    now: DateTime<Utc>,
) -> SyncReport {
    let mut sync = Syncing { control, hooks, now, template: None };
    let course = loop {
        let lookups = match decide(&observation, now) {
            Decision::Read(lookups) => lookups,
            Decision::Act(course) => break course,
        };
        if !sync.read(&mut observation, lookups).await {
            return SyncReport::new(observation.cron_job, Outcome::AwaitTemplate);
        }
    };
    let attempted = match course.attempt() {
        Some(attempt) => sync.act(&observation, attempt, course.cron_job()).await,
        None => Attempted::default(),
    };
    sync.template = None;
    let (conclusion, began) = (conclude(course, &attempted), Instant::now());
    let (mut settlement, prune_failed) = sync.prune_first(&observation, conclusion).await;
    hooks.decided(&observation, &mut settlement, now);
    let end = began + settling_time(settlement.outcome.next_slot(), now);
    let report = sync.settle(&observation, settlement, end).await;
    SyncReport { prune_failed: prune_failed || report.prune_failed, ..report }
}

/// A sync under way.
struct Syncing<'a, C, H> {
    control: &'a C,
    hooks: &'a H,
    now: DateTime<Utc>,
    /// The template to create a Job from, if it is long and was read.
    template: Option<LongTemplate>,
}

impl<C: JobControl + CronJobControl, H: SyncHooks> Syncing<'_, C, H> {
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
        let control = self.control;
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
            reservation = Some(self.hooks.reserve_template(&known.name, bytes)?);
        }
        // First: with the CronJob, its view is confirmed.
        let restriction = match self.hooks.restriction(known).await {
            Ok(restriction) => restriction,
            Err(error) => return Some(Err(error)),
        };
        let reply = self.control.get_cron_job(&known.name).await;
        match &reply {
            Ok(live) if live.uid == known.uid => self.hooks.view_confirmed(live),
            Err(error) if !error.is_not_found() => {}
            // Another CronJob of the same name does not confirm the one in the cache.
            _ => self.hooks.view_refuted(&known.name),
        }
        Some(reply.map(|live| {
            let cached = live.for_cache();
            let is_long = cached.spec.job_template.omitted_bytes().is_some();
            self.template = is_long.then_some(LongTemplate { cron_job: live, _reservation: reservation });
            restriction.map_or_else(|| Arc::clone(&cached), |restriction| Arc::new(cached.restricted(&restriction)))
        }))
    }

    /// Carries out an attempt that was decided on this version of the CronJob, until something fails.
    async fn act(&mut self, observation: &Observation, attempt: &Attempt, cron_job: &Arc<CronJob>) -> Attempted {
        let Attempt { slot, victims, then, .. } = attempt;
        let mut attempted = Attempted::default();
        if victims.len() > REQUESTS_PER_KEY {
            self.template = None;
        }
        for Victim { name, uid, propagation } in victims {
            if !self.hooks.is_current(cron_job, *slot) {
                attempted.is_overtaken = true;
                return attempted;
            }
            let reply = self.control.delete_job(name, uid, *propagation, observation.patience).await;
            // Otherwise it exists until the watch shows its end.
            if reply.is_ok() && *propagation == Propagation::Background {
                self.hooks.deleted(cron_job, name, uid);
            }
            let is_refused = reply.as_ref().is_err_and(|error| !error.is_not_found());
            attempted.deletions.push(reply);
            if is_refused {
                return attempted;
            }
        }
        let Then::Create { name, .. } = then else { return attempted };
        let mut is_current = self.hooks.is_current(cron_job, *slot);
        if is_current && self.template.is_none() && cron_job.spec.job_template.omitted_bytes().is_some() {
            // The template was let go: it is read again, by a later sync if others use up the budget now.
            let is_unchanged = self.is_unchanged(cron_job).await;
            is_current = *is_unchanged.as_ref().unwrap_or(&false) && self.hooks.is_current(cron_job, *slot);
            attempted.failure = is_unchanged.err();
        }
        if !is_current {
            attempted.is_overtaken = true;
            return attempted;
        }
        decision_log::starts(*slot);
        attempted.create = Some(match self.create(observation, cron_job, name, *slot).await {
            CreateReply::Refused(error) if error.is_already_exists() => {
                CreateReply::Exists(self.control.get_job(name).await)
            }
            reply => reply,
        });
        attempted
    }

    /// Whether the CronJob is as it was decided on. Its long template is kept then.
    async fn is_unchanged(&mut self, cron_job: &CronJob) -> Result<bool, ApiError> {
        let Some(live) = self.read_cron_job(cron_job).await.transpose()? else { return Ok(false) };
        let is_same = live.uid == cron_job.uid && live.spec == cron_job.spec && live.same_policies(cron_job);
        Ok(is_same && !live.deleting && live.status.last_schedule_time == cron_job.status.last_schedule_time)
    }

    /// Creates the Job of a slot. Afterwards the template is no longer needed.
    async fn create(
        &mut self,
        observation: &Observation,
        cron_job: &Arc<CronJob>,
        name: &ObjectName,
        slot: DateTime<Utc>,
    ) -> CreateReply {
        let template = self.template.take();
        let cron_job = template.as_ref().map_or(cron_job, |template| &template.cron_job);
        let announce = || self.control.traceparent(cron_job, name, slot);
        let traceparent = cron_job.limits().slot_in_pod.then(announce).flatten();
        let body = match job_from_template(cron_job, slot, observation.local_zone, traceparent.as_deref()) {
            Ok(body) => body,
            Err(error) => return CreateReply::BadTemplate(error.to_string()),
        };
        self.hooks.creating(cron_job, slot);
        let answer = self.control.create_job(name, body, observation.patience).await;
        self.hooks.create_answered(cron_job, slot, answer.as_ref());
        answer.map_or_else(CreateReply::Refused, CreateReply::Created)
    }

    /// Deletes the Jobs that go before the status is written, and settles. Also returns whether a deletion failed.
    async fn prune_first(&self, observation: &Observation, mut conclusion: Conclusion<'_>) -> (Settlement, bool) {
        let jobs = std::mem::take(&mut conclusion.prune_first);
        if jobs.is_empty() {
            return (conclusion.settle([]), false);
        }
        // The other half of the time is for the status write.
        let until = Instant::now() + PRUNE_TIME.min(settling_time(conclusion.next_slot(), self.now) / 2);
        let (replies, failed) = self.cleanup_finished_jobs(&observation.cron_job, jobs, until).await;
        let answered = replies.into_iter().map(|(job, reply)| {
            let unanswered =
                || Err(not_in_time("delete Job", &job.name, "no answer in the time that pruning may take"));
            let reply = reply.unwrap_or_else(unanswered);
            (job, reply)
        });
        (conclusion.settle(answered), failed)
    }

    /// Writes the status and prunes the history.
    async fn settle(&self, observation: &Observation, settlement: Settlement, end: Instant) -> SyncReport {
        let mut report = SyncReport::new(Arc::clone(&observation.cron_job), settlement.outcome);
        let cron_job = &report.cron_job;
        let (mut is_well, mut prune) = (true, settlement.pruning.jobs);
        match settlement.status {
            None => self.hooks.settled(cron_job, None, settlement.edits),
            Some(write) => {
                let request = self.control.update_status(&cron_job.name, &write, observation.patience);
                let unanswered =
                    |_| Err(not_in_time("update status of CronJob", &cron_job.name, "no answer until the next slot"));
                match timeout_at(end, request).await.unwrap_or_else(unanswered) {
                    Ok(written) => {
                        decision_log::status_written(&written);
                        self.hooks.settled(cron_job, Some(&written), Edits::default());
                    }
                    Err(error) => {
                        debug!(%error, "Unable to update status for cronjob");
                        self.hooks.settled(cron_job, None, settlement.edits);
                        is_well = !error.is_unavailable();
                        prune.retain(|job| settlement.pruning.unrecorded.as_ref() != Some(&job.uid));
                        (report.outcome, report.again) = (Outcome::Failed(Failure::Api(error)), false);
                    }
                }
            }
        }
        if is_well && !prune.is_empty() {
            let end = end.min(Instant::now() + PRUNE_TIME);
            let (replies, failed) = self.cleanup_finished_jobs(cron_job, prune, end).await;
            let is_pruned = !failed && replies.iter().any(|(_, reply)| matches!(reply, Some(Ok(()))));
            let event = |(job, reply): (Arc<Job>, Option<DeleteReply>)| {
                deletion_event(cron_job.controller_kind, &job.name, &reply?, observation.hides_transient)
            };
            report.events = replies.into_iter().filter_map(event).collect();
            report.prune_failed = failed;
            // What cannot be deleted, or is gone already, is not tried again at once.
            report.again |= is_pruned && settlement.pruning.more > 0;
        }
        report
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
                let request = self.control.delete_job(&job.name, &job.uid, Propagation::Background, Patience::Usual);
                let reply = if trouble { None } else { timeout_at(end, request).await.ok() };
                if let Some(Ok(())) = &reply {
                    self.hooks.deleted(cron_job, &job.name, &job.uid);
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
}

/// How long a sync may continue once it has no Job left to start.
fn settling_time(next: Option<Requeue>, now: DateTime<Utc>) -> Duration {
    let until_next = |next: Requeue| (next.slot - now).to_std().unwrap_or(SHORTEST_SETTLING);
    next.map_or(LONGEST_SETTLING, until_next).min(LONGEST_SETTLING)
}

/// The error of a request without an answer in time.
fn not_in_time(operation: &'static str, object: &ObjectName, message: &'static str) -> ApiError {
    ApiError { delivery: Delivery::GaveUp, ..ApiError::transport(operation, object.clone(), message) }
}

#[cfg(test)]
mod tests;
