//! The simulated Job controller's decision for one Job. Pure.
//!
//! Guarantees: the decision depends on the Job, its Pods and `now` alone. A finished Job is not changed again, except for its
//! deletion after `ttlSecondsAfterFinished`. Conditions, reasons and messages are upstream's. [`JobPlan::wake`] is set for every
//! wait.
//!
//! Matches `syncJob` and `manageJob` of upstream `pkg/controller/job/job_controller.go`, without finalizers on Pods, Pod
//! failure policies, success policies and limits per index. A finished Pod stays counted after a client deletes it. A deleted
//! running Pod is replaced and does not count as failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::indexes;
use crate::api::{EventType, ObjectName};
use crate::dev::objects::{Job, JobStatus, Pod, utc};

/// The first backoff after a failed Pod; each further failure doubles it. Matches upstream `DefaultJobPodFailureBackOff`.
const BACKOFF: TimeDelta = TimeDelta::seconds(10);
/// Matches upstream `MaxJobPodFailureBackOff`.
const MAX_BACKOFF: TimeDelta = TimeDelta::minutes(10);
/// Matches upstream `MaxPodCreateDeletePerSync`.
const MAX_PODS_PER_SYNC: u32 = 500;
/// The default of `backoffLimit`.
const BACKOFF_LIMIT: u32 = 6;

/// The actions, in this order, and the time of the next sync.
#[derive(Debug, Default, PartialEq)]
pub struct JobPlan {
    /// Pods to delete.
    pub delete_pods: Vec<ObjectName>,
    /// Pods to create, each with its completion index in an Indexed Job.
    pub create_pods: Vec<Option<u32>>,
    /// The new status, if it changed.
    pub status: Option<JobStatus>,
    /// Events about the Job, written after the status.
    pub events: Vec<Event>,
    /// Whether the Job's TTL has expired.
    pub delete_job: bool,
    /// When to sync again if nothing changes before.
    pub wake: Option<DateTime<Utc>>,
}

/// An Event about the Job.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Normal or Warning.
    pub type_: EventType,
    /// The reason.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
}

/// Decides the actions for `job`, whose Pods are `pods`.
pub fn reconcile(job: &Job, pods: &[Arc<Pod>], now: DateTime<Utc>) -> JobPlan {
    // The API has times in whole seconds, so a status that is compared with a stored one must have them too.
    let stamp = now.trunc_subsecs(0);
    if job.identity.deleting
        || job.spec.fields.managed_by.as_deref().is_some_and(|name| name != "kubernetes.io/job-controller")
    {
        return JobPlan::default();
    }
    if let Some(finished) = job.status.finished() {
        return after_finish(job, finished, now);
    }
    let tally = Tally::new(job, pods);
    let mut sync = Sync { job, tally, now, stamp, status: job.status.clone(), plan: JobPlan::default() };
    if sync.status.start_time.is_none() && !sync.suspended() {
        sync.status.start_time = Some(stamp);
    }
    match sync.failure() {
        Some((reason, message)) => sync.fail(reason, &message),
        None => sync.manage(),
    }
    sync.finish()
}

fn after_finish(job: &Job, finished: &JobCondition, now: DateTime<Utc>) -> JobPlan {
    let ttl = job.spec.fields.ttl_seconds_after_finished.map(|ttl| TimeDelta::seconds(ttl.into()));
    let Some(expiry) =
        ttl.zip(finished.last_transition_time.as_ref().and_then(utc)).and_then(|(ttl, at)| at.checked_add_signed(ttl))
    else {
        return JobPlan::default();
    };
    if expiry <= now {
        JobPlan { delete_job: true, ..JobPlan::default() }
    } else {
        JobPlan { wake: Some(expiry), ..JobPlan::default() }
    }
}

/// The Pods by state.
struct Tally {
    active: Vec<Arc<Pod>>,
    terminating: u32,
    succeeded: u32,
    failed: u32,
    /// The succeeded indexes of an Indexed Job.
    succeeded_indexes: BTreeSet<u32>,
    failures_since_success: u32,
    last_failure: Option<DateTime<Utc>>,
}

impl Tally {
    fn new(job: &Job, pods: &[Arc<Pod>]) -> Self {
        let in_phase = |phase: &'static str| pods.iter().filter(move |pod| pod.is_in(phase));
        let mut active: Vec<_> =
            pods.iter().filter(|pod| !pod.is_finished() && !pod.identity.deleting).cloned().collect();
        // Pods that are not running yet come first when some must be deleted.
        active.sort_by(|a, b| {
            (a.started_at().is_some(), &a.identity.name).cmp(&(b.started_at().is_some(), &b.identity.name))
        });
        let last_success = in_phase("Succeeded").filter_map(|pod| pod.finished_at()).max();
        let recent = in_phase("Failed").filter(|pod| pod.finished_at() > last_success);
        let mut succeeded_indexes = BTreeSet::new();
        if let Some(completions) = indexed_completions(job) {
            succeeded_indexes =
                indexes::parse(job.status.completed_indexes.as_deref().unwrap_or_default(), completions);
            succeeded_indexes.extend(in_phase("Succeeded").filter_map(|pod| pod.index()).filter(|i| *i < completions));
        }
        let succeeded = if indexed_completions(job).is_some() {
            count(succeeded_indexes.len())
        } else {
            count(in_phase("Succeeded").count()).max(job.status.succeeded.unwrap_or(0))
        };
        Self {
            terminating: count(pods.iter().filter(|pod| !pod.is_finished() && pod.identity.deleting).count()),
            succeeded,
            failed: count(in_phase("Failed").count()).max(job.status.failed.unwrap_or(0)),
            succeeded_indexes,
            failures_since_success: count(recent.clone().count()),
            last_failure: recent.filter_map(|pod| pod.finished_at()).max(),
            active,
        }
    }

    fn ready(&self) -> u32 {
        count(self.active.iter().filter(|pod| pod.is_ready()).count())
    }

    /// The end of the backoff after the last failures. Matches upstream `getRemainingTimeForFailuresCount`.
    fn backoff_until(&self) -> Option<DateTime<Utc>> {
        let doublings = self.failures_since_success.checked_sub(1)?.min(16);
        let pause = (BACKOFF * (1 << doublings)).min(MAX_BACKOFF);
        self.last_failure?.checked_add_signed(pause)
    }
}

/// The number of completions of an Indexed Job.
fn indexed_completions(job: &Job) -> Option<u32> {
    number(job.spec.fields.completions).filter(|_| job.spec.fields.completion_mode.as_deref() == Some("Indexed"))
}

/// A count of a spec; the API server refuses negative ones.
fn number(n: Option<i32>) -> Option<u32> {
    n?.try_into().ok()
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// One decision in progress.
struct Sync<'a> {
    job: &'a Job,
    tally: Tally,
    now: DateTime<Utc>,
    /// `now` in whole seconds, as the API stores it.
    stamp: DateTime<Utc>,
    status: JobStatus,
    plan: JobPlan,
}

impl Sync<'_> {
    fn suspended(&self) -> bool {
        self.job.spec.fields.suspend == Some(true)
    }

    /// The reason and message of the Job's failure, if it has failed.
    fn failure(&mut self) -> Option<(&'static str, String)> {
        if let Some(target) = self.status.condition("FailureTarget") {
            let is_deadline = target.reason.as_deref() == Some(DEADLINE.0);
            let reason = if is_deadline { DEADLINE.0 } else { BACKOFF_LIMIT_EXCEEDED.0 };
            return Some((reason, target.message.clone().unwrap_or_default()));
        }
        let limit = number(self.job.spec.fields.backoff_limit).unwrap_or(BACKOFF_LIMIT);
        if self.tally.failed > limit || self.restarted_too_often(limit) {
            return Some((BACKOFF_LIMIT_EXCEEDED.0, BACKOFF_LIMIT_EXCEEDED.1.to_owned()));
        }
        let seconds = self.job.spec.fields.active_deadline_seconds.filter(|_| !self.suspended())?;
        let deadline = self.status.start_time?.checked_add_signed(TimeDelta::try_seconds(seconds)?)?;
        if deadline <= self.now {
            return Some((DEADLINE.0, DEADLINE.1.to_owned()));
        }
        self.wake_at(deadline);
        None
    }

    /// Matches upstream `pastBackoffLimitOnFailure`.
    fn restarted_too_often(&self, limit: u32) -> bool {
        let on_failure =
            self.job.spec.template.pointer("/spec/restartPolicy").is_some_and(|policy| policy == "OnFailure");
        let restarts: u32 = self.tally.active.iter().map(|pod| pod.restart_count()).sum();
        on_failure && restarts > 0 && restarts >= limit
    }

    /// Fails the Job once its last Pod is gone.
    fn fail(&mut self, reason: &'static str, message: &str) {
        self.set_condition("FailureTarget", "True", reason, message);
        let killed = self.status.terminating.unwrap_or(0);
        self.delete_active(usize::MAX);
        if self.plan.delete_pods.is_empty() && self.tally.terminating == 0 {
            // Active Pods that are deleted count as failed.
            self.tally.failed += killed;
            self.set_condition("Failed", "True", reason, message);
            self.event(EventType::Warning, reason, message);
        }
    }

    /// Creates or deletes Pods to reach the desired number, and completes the Job if no work is left.
    fn manage(&mut self) {
        if self.suspended() {
            self.delete_active(usize::MAX);
            if self.set_condition("Suspended", "True", "JobSuspended", "Job suspended") {
                self.status.start_time = None;
                self.event(EventType::Normal, "Suspended", "Job suspended");
            }
            return;
        }
        let active = count(self.tally.active.len());
        let parallelism = number(self.job.spec.fields.parallelism).unwrap_or(1);
        let (want, complete) = match number(self.job.spec.fields.completions) {
            None if self.tally.succeeded > 0 => (active, active == 0),
            None => (parallelism, false),
            Some(completions) => {
                let remaining = completions.saturating_sub(self.tally.succeeded);
                (remaining.min(parallelism), remaining == 0 && active == 0)
            }
        };
        if complete {
            return self.complete();
        }
        if self.status.condition("Suspended").is_some() {
            self.set_condition("Suspended", "False", "JobResumed", "Job resumed");
            self.status.start_time = Some(self.stamp);
            self.event(EventType::Normal, "Resumed", "Job resumed");
        }
        if active > want {
            self.delete_active((active - want) as usize);
        } else if active < want {
            match self.tally.backoff_until().filter(|until| *until > self.now) {
                Some(until) => self.wake_at(until),
                None => self.create((want - active).min(MAX_PODS_PER_SYNC)),
            }
        }
    }

    fn complete(&mut self) {
        const REASON: &str = "CompletionsReached";
        const MESSAGE: &str = "Reached expected number of succeeded pods";
        self.set_condition("SuccessCriteriaMet", "True", REASON, MESSAGE);
        self.set_condition("Complete", "True", REASON, MESSAGE);
        self.status.completion_time = Some(self.stamp);
        self.event(EventType::Normal, "Completed", "Job completed");
    }

    fn create(&mut self, number: u32) {
        let Some(completions) = indexed_completions(self.job) else {
            self.plan.create_pods = vec![None; number as usize];
            return;
        };
        let running: BTreeSet<u32> = self.tally.active.iter().filter_map(|pod| pod.index()).collect();
        let pending = (0..completions)
            .filter(|index| !running.contains(index) && !self.tally.succeeded_indexes.contains(index))
            .take(number as usize);
        self.plan.create_pods = pending.map(Some).collect();
    }

    fn delete_active(&mut self, number: usize) {
        let names: Vec<ObjectName> =
            self.tally.active.iter().take(number).map(|pod| pod.identity.name.clone()).collect();
        for name in &names {
            self.event(EventType::Normal, "SuccessfulDelete", &format!("Deleted pod: {}", name.name));
        }
        self.tally.active.drain(..names.len());
        self.tally.terminating += count(names.len());
        self.plan.delete_pods = names;
    }

    /// Returns true if the condition changed. A condition that would be false from the start is not set.
    fn set_condition(&mut self, type_: &str, status: &str, reason: &str, message: &str) -> bool {
        let conditions = self.status.conditions.get_or_insert_default();
        let known = conditions.iter().position(|condition| condition.type_ == type_);
        if known.is_some_and(|at| conditions[at].status == status) {
            return false;
        }
        let stamp = Timestamp::from_second(self.stamp.timestamp()).ok().map(Time);
        let condition = JobCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            last_probe_time: stamp.clone(),
            last_transition_time: stamp,
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
        };
        match known {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
        true
    }

    fn event(&mut self, type_: EventType, reason: &'static str, message: &str) {
        self.plan.events.push(Event { type_, reason, message: message.to_owned() });
    }

    fn wake_at(&mut self, at: DateTime<Utc>) {
        self.plan.wake = Some(self.plan.wake.map_or(at, |wake| wake.min(at)));
    }

    fn finish(mut self) -> JobPlan {
        let above_zero = |n: u32| Some(n).filter(|n| *n > 0);
        self.status.active = above_zero(count(self.tally.active.len() + self.plan.create_pods.len()));
        self.status.ready = Some(self.tally.ready());
        self.status.terminating = Some(self.tally.terminating);
        self.status.succeeded = above_zero(self.tally.succeeded);
        self.status.failed = above_zero(self.tally.failed);
        if !self.tally.succeeded_indexes.is_empty() {
            self.status.completed_indexes = Some(indexes::format(&self.tally.succeeded_indexes));
        }
        self.plan.status = Some(self.status).filter(|status| *status != self.job.status);
        self.plan
    }
}

const BACKOFF_LIMIT_EXCEEDED: (&str, &str) = ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
const DEADLINE: (&str, &str) = ("DeadlineExceeded", "Job was active longer than specified deadline");

#[cfg(test)]
mod tests;
