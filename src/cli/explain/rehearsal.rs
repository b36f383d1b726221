//! A sync without a cluster: what `reconcile` would do if every write succeeded.
//!
//! Guarantees: the decisions are those of `reconcile`, called with the same kind of observation as in the controller.
//! What was read answers each of its questions. Nothing is sent. Pure.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, Utc};
use schedule::Zone;

use crate::api::batch_v1::{CronJob, Job};
use crate::api::job_template::job_from_template;
use crate::api::{ApiError, ObjectName, Uid};
use crate::controller::observation::{CreateReply, Observation};
use crate::controller::plan::{Lookup, Plan, Settlement, Verdict};
use crate::controller::reconcile::reconcile;

/// The result of a rehearsed sync.
#[derive(Debug)]
pub(in crate::cli) struct Rehearsal {
    /// The object it would create, and for which slot.
    pub start: Option<(ObjectName, DateTime<Utc>)>,
    /// The running Jobs it would delete under Replace.
    pub replaced: Vec<ObjectName>,
    /// The number of finished Jobs beyond the history limits.
    pub pruned: usize,
    /// The end of the sync.
    pub settlement: Settlement,
}

impl Rehearsal {
    /// Rehearses the sync of `cron_job` at `now`; `jobs` are those of its namespace. `zone` is that of schedules
    /// without one.
    pub fn of(cron_job: &Arc<CronJob>, jobs: &[Arc<Job>], zone: Zone, now: DateTime<Utc>) -> Self {
        let children = jobs.iter().filter(|job| job.is_child_of(cron_job)).cloned().collect();
        let mut observation = Observation::new(Arc::clone(cron_job), children, zone);
        observation.live_cron_job = Some(Ok(Arc::clone(cron_job)));
        let (mut start, mut replaced, mut pruned) = (None, Vec::new(), 0);
        // A sync may ask for every Job that the status lists.
        let by_name: OnceCell<HashMap<&ObjectName, &Arc<Job>>> = OnceCell::new();
        let by_name = || by_name.get_or_init(|| steps::each(jobs.iter()).map(|job| (&job.name, job)).collect());
        loop {
            match reconcile(&observation, now) {
                Plan::Lookup(lookups) => {
                    for lookup in lookups {
                        let Lookup::Job(name) = lookup else { continue };
                        let found = by_name().get(&name).copied().cloned();
                        observation.learn_job(name.clone(), found.ok_or_else(|| refusal(404, "NotFound", name)));
                    }
                }
                Plan::Replace { victims, .. } => {
                    for victim in victims {
                        replaced.push(victim.name);
                        observation.learn_deletion(victim.uid, Ok(()));
                    }
                }
                Plan::Create { name, slot, cron_job } => {
                    observation.create = Some(create(&cron_job, jobs, &name, slot, zone));
                    start = Some((name, slot));
                }
                Plan::Prune { jobs, .. } => {
                    pruned += jobs.len();
                    for job in jobs {
                        observation.learn_deletion(job.uid.clone(), Ok(()));
                    }
                }
                Plan::Settle(settlement) => {
                    pruned += settlement.prune.len() + settlement.not_pruned;
                    return Self { start, replaced, pruned, settlement };
                }
            }
        }
    }

    /// The message of the Event with that reason, if the sync would record one.
    pub fn event(&self, reason: &str) -> Option<&str> {
        let event = self.settlement.events.iter().find(|event| event.reason == reason);
        event.map(|event| event.message.as_str())
    }

    /// The object it would create, if the create would succeed as far as is known.
    pub fn starts(&self) -> Option<&(ObjectName, DateTime<Utc>)> {
        self.start.as_ref().filter(|_| matches!(self.settlement.verdict, Verdict::Started { .. }))
    }
}

/// The API server's answer to the create.
fn create(cron_job: &CronJob, jobs: &[Arc<Job>], name: &ObjectName, slot: DateTime<Utc>, zone: Zone) -> CreateReply {
    if jobs.iter().any(|job| job.name == *name) {
        return CreateReply::Refused(refusal(409, "AlreadyExists", name.clone()));
    }
    if let Err(error) = job_from_template(cron_job, slot, zone) {
        return CreateReply::BadTemplate(error.to_string());
    }
    CreateReply::Created(Arc::new(Job {
        name: name.clone(),
        uid: Uid::new("rehearsed"),
        resource_version: "0".into(),
        creation_timestamp: slot,
        deleting: false,
        controller: None,
        scheduled_timestamp: Some(slot),
        start_time: None,
        suspended: false,
        completion_time: None,
        finished: None,
        succeeded: false,
        failed_at: None,
        of_backfill: false,
    }))
}

fn refusal(code: u16, reason: &str, name: ObjectName) -> ApiError {
    let unanswered = ApiError::transport("rehearse", name, reason);
    ApiError { code, reason: reason.to_owned(), ..unanswered }
}
