//! Carries plans out.
//!
//! Guarantees: the shell decides nothing: it does what [`reconcile`] says next, adds the answer to the observation and
//! asks again; each round answers at least one question that was open, so a sync ends; a sync writes the status once,
//! or leaves it for the next one to write.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::stream;
use tracing::debug;

use super::control::{CronJobControl, JobControl};
use super::observation::{CreateReply, Observation};
use super::plan::{Event, Failure, Lookup, Outcome, Plan, Settlement};
use super::reconcile::reconcile;
use super::status::Edits;
use super::template_budget::Reservation;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::job_template::job_from_template;
use crate::api::{ObjectName, Uid};
use crate::schedule::Zone;

/// How many requests one key may have in flight. Only the first sync after a limit was lowered has many deletions.
const REQUESTS_PER_KEY: usize = 8;

/// Who wants to know what a sync did, the moment the API server has confirmed it.
pub trait Witness: Send + Sync {
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
    /// A finished Job that the history has no room for could not be deleted.
    fn not_pruned(&self, cron_job: &ObjectName) {
        let _ = cron_job;
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
    witness: &impl Witness,
    mut observation: Observation,
    now: DateTime<Utc>,
) -> Outcome {
    let mut reservation: Option<Reservation> = None;
    loop {
        match reconcile(&observation, now) {
            Plan::Lookup(lookups) => {
                let omitted = observation.cron_job.spec.job_template.omitted_bytes();
                if let Some(bytes) = omitted.filter(|_| lookups.contains(&Lookup::CronJob)) {
                    reservation = witness.reserve_template(&observation.cron_job.name, bytes);
                    if reservation.is_none() {
                        return Outcome::AwaitTemplate;
                    }
                }
                look_up(control, witness, &mut observation, lookups).await;
            }
            Plan::Replace { cron_job, slot, .. } | Plan::Create { cron_job, slot, .. }
                if !witness.is_current(&cron_job, slot) =>
            {
                observation.is_overtaken = true;
            }
            Plan::Replace { victim, cron_job, .. } => {
                let reply = control.delete_job(&victim.name, &victim.uid).await;
                if reply.is_ok() {
                    witness.deleted(&cron_job, &victim.name, &victim.uid);
                }
                observation.learn_deletion(victim.uid, reply);
            }
            Plan::Create { name, slot, cron_job } => {
                observation.create =
                    Some(create(control, witness, &cron_job, &name, slot, observation.local_zone).await);
                // Nothing needs the template any more.
                drop(cron_job);
                observation.forget_long_template();
                drop(reservation.take());
            }
            Plan::Prune(jobs) => prune(control, witness, &mut observation, jobs).await,
            Plan::Settle(settlement) => {
                witness.decided(&observation, &settlement);
                return settle(control, witness, &observation.cron_job, settlement).await;
            }
        }
    }
}

async fn look_up<C: JobControl + CronJobControl>(
    control: &C,
    witness: &impl Witness,
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
                    witness.view_confirmed(live);
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
    witness: &impl Witness,
    cron_job: &CronJob,
    name: &ObjectName,
    slot: DateTime<Utc>,
    local: Zone,
) -> CreateReply {
    let body = match job_from_template(cron_job, slot, local) {
        Ok(body) => body,
        Err(error) => return CreateReply::BadTemplate(error.to_string()),
    };
    witness.creating(cron_job, slot);
    match control.create_job(name, body).await {
        Ok(job) => {
            witness.created(cron_job, &job, slot);
            CreateReply::Created(job)
        }
        Err(error) => CreateReply::Refused(error),
    }
}

async fn prune<C: JobControl>(control: &C, witness: &impl Witness, observation: &mut Observation, jobs: Vec<Arc<Job>>) {
    let mut replies = stream::iter(jobs)
        .map(|job| async move {
            let reply = control.delete_job(&job.name, &job.uid).await;
            (job, reply)
        })
        .buffered(REQUESTS_PER_KEY);
    while let Some((job, reply)) = replies.next().await {
        match &reply {
            Ok(()) => witness.deleted(&observation.cron_job, &job.name, &job.uid),
            Err(error) if error.is_not_found() => {}
            Err(_) => witness.not_pruned(&observation.cron_job.name),
        }
        observation.learn_deletion(job.uid.clone(), reply);
    }
}

async fn settle<C: CronJobControl>(
    control: &C,
    witness: &impl Witness,
    cron_job: &Arc<CronJob>,
    settlement: Settlement,
) -> Outcome {
    for event in settlement.events {
        witness.event(cron_job, event);
    }
    if let Some(slot) = settlement.name_taken {
        witness.name_taken(cron_job, slot);
    }
    if let Some(slot) = settlement.already_there {
        witness.already_there(cron_job, slot);
    }
    let Some(write) = settlement.status else {
        witness.owes(cron_job, settlement.edits);
        return settlement.outcome;
    };
    match control.update_status(&cron_job.name, &write).await {
        Ok(written) => {
            witness.status_written(&written);
            witness.owes(cron_job, Edits::default());
            settlement.outcome
        }
        Err(error) => {
            debug!(cronjob = %cron_job.name, %error, "Unable to update status for cronjob");
            witness.owes(cron_job, settlement.edits);
            Outcome::Failed(Failure::Api(error))
        }
    }
}
