//! A sync whose answers are written down before it: the one way in which these tests go through `decide`, `act` and `conclude`.

use std::collections::HashMap;
use std::future::pending;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::FutureExt as _;

use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ApiError, ObjectName, Uid};
use crate::controller::effects::{Effects, act};
use crate::controller::observation::{CreateReply, DeleteReply, Observation};
use crate::controller::plan::{Attempted, Lookup, Settlement, Victim};
use crate::controller::reconcile::{Decision, conclude, decide};

/// What is observed, and what the API server answers to what is sent.
#[derive(Clone)]
pub struct Case {
    observation: Observation,
    pub create: Option<CreateReply>,
    pub is_overtaken: bool,
    deletions: HashMap<Uid, DeleteReply>,
}

/// The first request that has no answer yet, or the end.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one at a time")]
pub enum Plan {
    Lookup(Vec<Lookup>),
    Replace { victims: Vec<Victim> },
    Create { name: ObjectName, slot: DateTime<Utc> },
    Prune { jobs: Vec<Arc<Job>> },
    Settle(Settlement),
}

impl Case {
    pub fn new(observation: Observation) -> Self {
        Self { observation, create: None, is_overtaken: false, deletions: HashMap::new() }
    }

    pub fn learn_deletion(&mut self, uid: Uid, reply: DeleteReply) {
        self.deletions.insert(uid, reply);
    }
}

/// The answers to one attempt.
struct Answers<'a> {
    case: &'a Case,
    victims: &'a [Victim],
    /// The first request without an answer. Nothing follows it.
    open: Option<Plan>,
}

impl Answers<'_> {
    async fn wait_for<T>(&mut self, open: Plan) -> T {
        self.open = Some(open);
        pending().await
    }
}

impl Effects for Answers<'_> {
    fn is_current(&self, _cron_job: &CronJob, _slot: DateTime<Utc>, _has_deleted: bool) -> bool {
        !self.case.is_overtaken
    }

    async fn delete(&mut self, _cron_job: &CronJob, victim: &Victim) -> DeleteReply {
        if let Some(reply) = self.case.deletions.get(&victim.uid) {
            return reply.clone();
        }
        let from = self.victims.iter().position(|other| other == victim).unwrap();
        self.wait_for(Plan::Replace { victims: self.victims[from..].to_vec() }).await
    }

    async fn create(&mut self, _cron_job: &Arc<CronJob>, name: &ObjectName, slot: DateTime<Utc>) -> CreateReply {
        match &self.case.create {
            Some(reply) => reply.clone(),
            None => self.wait_for(Plan::Create { name: name.clone(), slot }).await,
        }
    }

    async fn get_job(&mut self, name: &ObjectName) -> Result<Arc<Job>, ApiError> {
        match self.case.live_job(name) {
            Some(reply) => reply.clone(),
            None => self.wait_for(Plan::Lookup(vec![Lookup::Job(name.clone())])).await,
        }
    }
}

impl Deref for Case {
    type Target = Observation;

    fn deref(&self) -> &Observation {
        &self.observation
    }
}

impl DerefMut for Case {
    fn deref_mut(&mut self) -> &mut Observation {
        &mut self.observation
    }
}

/// Goes through the sync up to the first request without an answer.
#[allow(clippy::result_large_err, reason = "one at a time")]
pub fn reconcile(case: &Case, now: DateTime<Utc>) -> Plan {
    let course = match decide(case, now) {
        Decision::Read(lookups) => return Plan::Lookup(lookups),
        Decision::Act(course) => course,
    };
    let mut attempted = Attempted::default();
    if let Some(attempt) = course.attempt() {
        let mut answers = Answers { case, victims: &attempt.victims, open: None };
        match act(&mut answers, attempt, course.cron_job()).now_or_never() {
            Some(done) => attempted = done,
            None => return answers.open.unwrap(),
        }
    }
    let mut conclusion = conclude(course, &attempted);
    let jobs = std::mem::take(&mut conclusion.prune_first);
    if jobs.iter().any(|job| !case.deletions.contains_key(&job.uid)) {
        return Plan::Prune { jobs };
    }
    Plan::Settle(conclusion.settle(jobs.into_iter().map(|job| (Arc::clone(&job), case.deletions[&job.uid].clone()))))
}
