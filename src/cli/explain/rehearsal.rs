//! A sync without a cluster: what it would do if every write succeeded.
//!
//! Guarantees: the decisions are those of `decide` and `conclude`, called with the same kind of observation as in the controller,
//! and `act` carries them out as there. What was read answers each of its questions. Nothing is sent. Pure.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use schedule::Zone;

use crate::api::batch_v1::{CronJob, Job};
use crate::api::job_template::job_from_template;
use crate::api::{ApiError, ObjectName, Uid};
use crate::controller::effects::{Effects, act};
use crate::controller::observation::{CreateReply, DeleteReply, Observation};
use crate::controller::plan::{Lookup, Settlement, Verdict, Victim};
use crate::controller::reconcile::{Course, Decision, conclude, decide};

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
        observation.live.cron_job = Some(Ok(Arc::clone(cron_job)));
        // A sync may ask for every Job that the status lists.
        let by_name: OnceCell<HashMap<&ObjectName, &Arc<Job>>> = OnceCell::new();
        let by_name = || by_name.get_or_init(|| steps::each(jobs.iter()).map(|job| (&job.name, job)).collect());
        loop {
            let lookups = match decide(&observation, now) {
                Decision::Read(lookups) => lookups,
                Decision::Act(course) => return Self::concluded(course, jobs, zone),
            };
            for lookup in lookups {
                let Lookup::Job(name) = lookup else { continue };
                let found = by_name().get(&name).copied().cloned();
                observation.learn_job(name.clone(), found.ok_or_else(|| refusal(404, "NotFound", name)));
            }
        }
    }

    /// The object that a rehearsed sync creates, as the API server answers. Each has a UID of its own.
    pub fn created(name: &ObjectName, slot: DateTime<Utc>) -> Job {
        Job {
            name: name.clone(),
            uid: Uid::new(&format!("rehearsed {}", name.name)),
            resource_version: "0".into(),
            creation_timestamp: slot,
            deleting: false,
            controller: None,
            scheduled_timestamp: Some(slot),
            start_time: None,
            has_ready_pod: false,
            suspended: false,
            parallelism_is_zero: false,
            managed_by_another: false,
            completion_time: None,
            finished: None,
            succeeded: false,
            failed_at: None,
            of_backfill: false,
        }
    }

    fn concluded(course: Course<'_>, jobs: &[Arc<Job>], zone: Zone) -> Self {
        let mut pretence = Pretence { jobs, zone, start: None, replaced: Vec::new() };
        // Nothing is waited for.
        let pretend = |attempt| act(&mut pretence, attempt, course.cron_job()).now_or_never();
        let attempted = course.attempt().and_then(pretend).unwrap_or_default();
        let Pretence { start, replaced, .. } = pretence;
        let mut conclusion = conclude(course, &attempted);
        let first = std::mem::take(&mut conclusion.prune_first);
        let pruned_first = first.len();
        let settlement = conclusion.settle(first.into_iter().map(|job| (job, Ok(()))));
        let pruned = pruned_first + settlement.pruning.jobs.len() + settlement.pruning.more;
        Self { start, replaced, pruned, settlement }
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

/// The API server's answers, and what was asked of it.
struct Pretence<'a> {
    jobs: &'a [Arc<Job>],
    zone: Zone,
    start: Option<(ObjectName, DateTime<Utc>)>,
    replaced: Vec<ObjectName>,
}

impl Effects for Pretence<'_> {
    async fn delete(&mut self, _cron_job: &CronJob, victim: &Victim) -> DeleteReply {
        self.replaced.push(victim.name.clone());
        Ok(())
    }

    async fn create(&mut self, cron_job: &Arc<CronJob>, name: &ObjectName, slot: DateTime<Utc>) -> CreateReply {
        self.start = Some((name.clone(), slot));
        if self.jobs.iter().any(|job| job.name == *name) {
            return CreateReply::Refused(refusal(409, "AlreadyExists", name.clone()));
        }
        // A template that the cache does not hold is not judged.
        let is_held = cron_job.spec.job_template.omitted_bytes().is_none();
        if is_held && let Err(error) = job_from_template(cron_job, slot, self.zone, None, None) {
            return CreateReply::BadTemplate(error.to_string());
        }
        CreateReply::Created(Arc::new(Rehearsal::created(name, slot)))
    }

    async fn get_job(&mut self, name: &ObjectName) -> Result<Arc<Job>, ApiError> {
        let found = self.jobs.iter().find(|job| job.name == *name);
        found.cloned().ok_or_else(|| refusal(404, "NotFound", name.clone()))
    }
}

fn refusal(code: u16, reason: &str, name: ObjectName) -> ApiError {
    let unanswered = ApiError::transport("rehearse", name, reason);
    ApiError { code, reason: reason.to_owned(), ..unanswered }
}
