//! Carries plans out.
//!
//! Guarantees: the shell decides nothing: it does what [`reconcile`] says next, adds the answer to the observation and
//! asks again; each round answers at least one question that was open, so a sync ends; a sync writes the status once,
//! or leaves it for the next one to write. Once a sync has nothing more to start it ends by the CronJob's next slot, whatever
//! the API server does with the status and the history: both are made up for later.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::stream;
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use super::control::{CronJobControl, JobControl, Patience};
use super::observation::{CreateReply, DeleteReply, Observation};
use super::plan::{Event, Failure, Lookup, Outcome, Plan, Requeue, Settlement};
use super::reconcile::reconcile;
use super::status::{Edits, deletion_event};
use super::template_budget::Reservation;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::job_template::job_from_template;
use crate::api::{ApiError, Delivery, ObjectName, Uid};

/// How many requests one key may have in flight. Only the first sync after a limit was lowered has many deletions.
const REQUESTS_PER_KEY: usize = 8;

/// How long the deletions of one sync's history may take: nothing waits for them, and the key has a worker meanwhile.
const PRUNE_TIME: Duration = Duration::from_secs(5);

/// How long a sync may take to settle where no slot follows; no request takes longer.
const LONGEST_SETTLING: Duration = Duration::from_secs(60);

/// Who wants to know what a sync did, the moment the API server has confirmed it.
pub trait SyncHooks: Send + Sync {
    /// The CronJob is about to be read for a template of so many bytes, which is held until the reservation is dropped;
    /// none while others hold too many: then its key comes back once they do not.
    fn reserve_template(&self, key: &ObjectName, bytes: usize) -> Option<Reservation> {
        let _ = (key, bytes);
        Some(Reservation::unbounded())
    }
    /// The CronJob was read live: its sync goes on with what is true now.
    fn view_confirmed(&self, cron_job: &Arc<CronJob>);
    /// A request to create the Job of `slot` is about to be sent.
    fn creating(&self, cron_job: &CronJob, slot: DateTime<Utc>) {
        let _ = (cron_job, slot);
    }
    /// The Job of `slot` was not created, as far as is known.
    fn create_failed(&self, cron_job: &CronJob, slot: DateTime<Utc>, error: &ApiError) {
        let _ = (cron_job, slot, error);
    }
    /// A Job was created for `slot`.
    fn created(&self, cron_job: &CronJob, job: &Arc<Job>, slot: DateTime<Utc>);
    /// A Job of the CronJob was deleted.
    fn deleted(&self, cron_job: &CronJob, name: &ObjectName, uid: &Uid);
    /// The status was written; this is the new version.
    fn status_written(&self, cron_job: &Arc<CronJob>);
    /// The sync is about to end: this is what it decided on the observation.
    fn decided(&self, observation: &Observation, settlement: &Settlement) {
        let _ = (observation, settlement);
    }
    /// What is left to be written into the status; nothing, perhaps.
    fn owes(&self, cron_job: &CronJob, edits: Edits);
    /// An Event is due.
    fn event(&self, cron_job: &CronJob, event: Event);
    /// Whether the Job of `slot` may still be created, and others deleted for it, after answers were waited for: the watch
    /// has shown neither the CronJob's end nor its suspension nor any other change of its spec, and the starting deadline
    /// has not passed.
    fn is_current(&self, cron_job: &CronJob, slot: DateTime<Utc>) -> bool {
        let _ = (cron_job, slot);
        true
    }
    /// There are finished Jobs left that the history has no room for, because of some `trouble` or because one sync deletes
    /// only so many.
    fn not_pruned(&self, cron_job: &ObjectName, trouble: bool) {
        let _ = (cron_job, trouble);
    }
    /// The CronJob had a Job for `slot` before the one that was to be created now.
    fn already_there(&self, cron_job: &CronJob, slot: DateTime<Utc>) {
        let _ = (cron_job, slot);
    }
    /// The slot's name belongs to somebody else's Job.
    fn name_taken(&self, cron_job: &CronJob, slot: DateTime<Utc>);
}

/// Runs one sync to its end. `now` is the time that all its decisions are made at.
///
/// Matches upstream `sync`: one status write, the requeue only if it succeeded.
pub async fn carry_out<C: JobControl + CronJobControl>(
    control: &C,
    hooks: &impl SyncHooks,
    mut observation: Observation,
    now: DateTime<Utc>,
) -> Outcome {
    let mut reservation: Option<Reservation> = None;
    // When the sync ends, once it has nothing more to start.
    let mut end: Option<Instant> = None;
    loop {
        match reconcile(&observation, now) {
            Plan::Lookup(lookups) => {
                let omitted = observation.cron_job.spec.job_template.omitted_bytes();
                if let Some(bytes) = omitted.filter(|_| lookups.contains(&Lookup::CronJob)) {
                    reservation = hooks.reserve_template(&observation.cron_job.name, bytes);
                    if reservation.is_none() {
                        return Outcome::AwaitTemplate;
                    }
                }
                look_up(control, hooks, &mut observation, lookups).await;
            }
            Plan::Replace { cron_job, slot, .. } | Plan::Create { cron_job, slot, .. }
                if !hooks.is_current(&cron_job, slot) =>
            {
                observation.is_overtaken = true;
            }
            Plan::Replace { victim, cron_job, .. } => {
                let reply = control.delete_job(&victim.name, &victim.uid, observation.patience).await;
                if reply.is_ok() {
                    hooks.deleted(&cron_job, &victim.name, &victim.uid);
                }
                observation.learn_deletion(victim.uid, reply);
            }
            Plan::Create { name, slot, cron_job } => {
                observation.create = Some(create(control, hooks, &cron_job, &name, slot, &observation).await);
                // Nothing needs the template any more.
                drop(cron_job);
                observation.forget_long_template();
                drop(reservation.take());
            }
            Plan::Prune { jobs, next } => {
                let cron_job = Arc::clone(&observation.cron_job);
                let (began, time) = (Instant::now(), settling_time(next, now));
                end.get_or_insert(began + time);
                // The other half is left to the status.
                let prune_until = began + PRUNE_TIME.min(time / 2);
                for (job, reply) in delete_jobs(control, hooks, &cron_job, jobs, prune_until).await {
                    let unanswered = || Err(not_in_time(&job.name));
                    observation.learn_deletion(job.uid.clone(), reply.unwrap_or_else(unanswered));
                }
            }
            Plan::Settle(settlement) => {
                hooks.decided(&observation, &settlement);
                let next = settlement.outcome.next_slot();
                let end = end.unwrap_or_else(|| Instant::now() + settling_time(next, now));
                return settle(control, hooks, &observation, settlement, end).await;
            }
        }
    }
}

/// How long a sync may go on that has nothing more to start.
fn settling_time(next: Option<Requeue>, now: DateTime<Utc>) -> Duration {
    let until_next = next.and_then(|next| (next.slot - now).to_std().ok());
    until_next.unwrap_or(LONGEST_SETTLING).min(LONGEST_SETTLING)
}

async fn look_up<C: JobControl + CronJobControl>(
    control: &C,
    hooks: &impl SyncHooks,
    observation: &mut Observation,
    lookups: Vec<Lookup>,
) {
    let (cron_job, uid) = (observation.cron_job.name.clone(), observation.cron_job.uid.clone());
    let mut jobs = Vec::with_capacity(lookups.len());
    for lookup in lookups {
        match lookup {
            Lookup::CronJob => {
                let reply = control.get_cron_job(&cron_job).await;
                // Another of that name says nothing for the one in the cache, which is gone.
                if let Ok(live) = &reply
                    && live.uid == uid
                {
                    hooks.view_confirmed(live);
                }
                observation.live_cron_job = Some(reply);
            }
            Lookup::Job(name) => jobs.push(name),
        }
    }
    let mut replies = stream::iter(jobs)
        .map(|name| async move {
            let reply = control.get_job(&name).await;
            (name, reply)
        })
        .buffered(REQUESTS_PER_KEY);
    while let Some((name, reply)) = replies.next().await {
        observation.learn_job(name, reply);
    }
}

async fn create<C: JobControl>(
    control: &C,
    hooks: &impl SyncHooks,
    cron_job: &CronJob,
    name: &ObjectName,
    slot: DateTime<Utc>,
    observation: &Observation,
) -> CreateReply {
    let body = match job_from_template(cron_job, slot, observation.local_zone) {
        Ok(body) => body,
        Err(error) => return CreateReply::BadTemplate(error.to_string()),
    };
    hooks.creating(cron_job, slot);
    match control.create_job(name, body, observation.patience).await {
        Ok(job) => {
            hooks.created(cron_job, &job, slot);
            CreateReply::Created(job)
        }
        Err(error) => {
            hooks.create_failed(cron_job, slot, &error);
            CreateReply::Refused(error)
        }
    }
}

/// Deletes finished Jobs, some at a time, until the first sign of trouble: there is no answer by `end`, or one that says more
/// than that a Job is gone. What was not answered has no reply.
async fn delete_jobs<C: JobControl>(
    control: &C,
    hooks: &impl SyncHooks,
    cron_job: &CronJob,
    jobs: Vec<Arc<Job>>,
    end: Instant,
) -> Vec<(Arc<Job>, Option<DeleteReply>)> {
    let (mut replies, mut trouble) = (Vec::with_capacity(jobs.len()), false);
    for some in jobs.chunks(REQUESTS_PER_KEY) {
        let requests = some.iter().map(|job| async {
            let request = control.delete_job(&job.name, &job.uid, Patience::Usual);
            let reply = if trouble { None } else { timeout_at(end, request).await.ok() };
            if let Some(Ok(())) = &reply {
                hooks.deleted(cron_job, &job.name, &job.uid);
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
    if trouble {
        hooks.not_pruned(&cron_job.name, true);
    }
    replies
}

/// The error of a deletion that had no answer in time.
fn not_in_time(job: &ObjectName) -> ApiError {
    let error = ApiError::transport("delete Job", job.clone(), "no answer in the time that pruning may take");
    ApiError { delivery: Delivery::GaveUp, ..error }
}

async fn settle<C: JobControl + CronJobControl>(
    control: &C,
    hooks: &impl SyncHooks,
    observation: &Observation,
    settlement: Settlement,
    end: Instant,
) -> Outcome {
    let cron_job = &observation.cron_job;
    for event in settlement.events {
        hooks.event(cron_job, event);
    }
    if let Some(slot) = settlement.name_taken {
        hooks.name_taken(cron_job, slot);
    }
    if let Some(slot) = settlement.already_there {
        hooks.already_there(cron_job, slot);
    }
    let (mut outcome, mut is_well) = (settlement.outcome, true);
    match settlement.status {
        None => hooks.owes(cron_job, settlement.edits),
        Some(write) => {
            let request = control.update_status(&cron_job.name, &write, observation.patience);
            let unanswered = |_| {
                let (operation, message) = ("update status of CronJob", "no answer until the next slot");
                let error = ApiError::transport(operation, cron_job.name.clone(), message);
                Err(ApiError { delivery: Delivery::GaveUp, ..error })
            };
            match timeout_at(end, request).await.unwrap_or_else(unanswered) {
                Ok(written) => {
                    hooks.status_written(&written);
                    hooks.owes(cron_job, Edits::default());
                }
                Err(error) => {
                    debug!(cronjob = %cron_job.name, %error, "Unable to update status for cronjob");
                    hooks.owes(cron_job, settlement.edits);
                    is_well = !error.is_unavailable();
                    outcome = Outcome::Failed(Failure::Api(error));
                }
            }
        }
    }
    if is_well && !settlement.prune.is_empty() {
        let end = end.min(Instant::now() + PRUNE_TIME);
        for (job, reply) in delete_jobs(control, hooks, cron_job, settlement.prune, end).await {
            let Some(reply) = reply else { continue };
            if let Some(event) = deletion_event(cron_job.controller_kind, &job, &reply, observation.hides_transient) {
                hooks.event(cron_job, event);
            }
        }
        if settlement.not_pruned > 0 {
            hooks.not_pruned(&cron_job.name, false);
        }
    }
    outcome
}
