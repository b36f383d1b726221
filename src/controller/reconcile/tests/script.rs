//! A sync whose answers are written down before it: the one way in which these tests go through `decide` and `conclude`.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::api::batch_v1::Job;
use crate::api::{ObjectName, Uid};
use crate::controller::observation::{CreateReply, DeleteReply, Observation};
use crate::controller::plan::{Attempt, Attempted, Lookup, Settlement, Then, Victim};
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

    /// What became of the attempt, or what is to be answered first.
    #[allow(clippy::result_large_err, reason = "one at a time")]
    fn attempted(&self, attempt: &Attempt) -> Result<Attempted, Plan> {
        let Attempt { slot, victims, then, .. } = attempt;
        let mut attempted = Attempted { is_overtaken: self.is_overtaken, ..Attempted::default() };
        for (number, victim) in victims.iter().enumerate() {
            match self.deletions.get(&victim.uid).cloned() {
                None if self.is_overtaken => return Ok(attempted),
                None => return Err(Plan::Replace { victims: victims[number..].to_vec() }),
                Some(reply) => attempted.deletions.push(reply),
            }
        }
        let Then::Create { name, .. } = then else { return Ok(attempted) };
        attempted.create = match &self.create {
            Some(CreateReply::Refused(error)) if error.is_already_exists() => match self.live_job(name) {
                None => return Err(Plan::Lookup(vec![Lookup::Job(name.clone())])),
                Some(reply) => Some(CreateReply::Exists(reply.clone())),
            },
            None if !self.is_overtaken => {
                return Err(Plan::Create { name: name.clone(), slot: *slot });
            }
            reply => reply.clone(),
        };
        Ok(attempted)
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
    let attempted = course.attempt().map(|attempt| case.attempted(attempt));
    let attempted = match attempted.transpose() {
        Ok(attempted) => attempted.unwrap_or_default(),
        Err(plan) => return plan,
    };
    let mut conclusion = conclude(course, &attempted);
    let jobs = std::mem::take(&mut conclusion.prune_first);
    if jobs.iter().any(|job| !case.deletions.contains_key(&job.uid)) {
        return Plan::Prune { jobs };
    }
    Plan::Settle(conclusion.settle(jobs.into_iter().map(|job| (Arc::clone(&job), case.deletions[&job.uid].clone()))))
}
