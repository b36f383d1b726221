//! What `explain` says of the next run: when it is due, and what it does then if nothing changes.
//!
//! Guarantee: a run that running Jobs hold is said to wait while a sync would start it once they have ended. Pure.

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use super::{Case, Explanation, NextRun, State};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob};
use crate::api::policy::BACKLOG;
use crate::cli::output::{named, stretch};
use crate::controller::plan::{Skip, Verdict};
use crate::controller::reconcile::IN_TIME;

/// So many unfinished Jobs are named.
const NAMED: usize = 2;

/// What a run does that is held by more than a running Job.
const NOTHING: &str = "starts nothing";

impl Explanation {
    /// When a run starts next, or waits for running Jobs; `None` if something else holds it, so that the time says nothing.
    pub(crate) fn next_start(&self) -> Option<DateTime<FixedOffset>> {
        let next = self.next_run.as_ref().filter(|next| !self.by_schedule.is_held() && next.effect != NOTHING);
        next.map(|next| next.time)
    }
}

impl Case<'_> {
    /// The next time, and what a sync would do then.
    pub(super) fn next_run(&self, state: State) -> Option<NextRun> {
        if matches!(state, State::Suspended | State::BeingDeleted | State::NeverFires | State::NoController) {
            return None;
        }
        let slot = self.next_due()?;
        let then = self.rehearse(|cron_job| self.count_now(cron_job), &self.facts.jobs, slot);
        let noun = self.noun();
        let is_alone = !matches!(self.cron_job.spec.concurrency_policy, ConcurrencyPolicy::Allow);
        let all = if is_alone { self.blockers() } else { self.running() };
        let running = named(all.iter().map(|job| super::jobs::named(job)), NAMED, all.len());
        let is_one = all.len() == 1;
        let still = match (all.iter().any(|job| job.is_held()), is_one) {
            (false, true) => "still runs",
            (false, false) => "still run",
            (true, true) => "has not ended",
            (true, false) => "have not ended",
        };
        let pronoun = if is_one { "it" } else { "they" };
        let effect = match then.starts() {
            Some((name, _)) if !then.replaced.is_empty() => {
                format!("deletes {noun} {running} if {pronoun} {still}, and starts {noun} {}", name.name)
            }
            Some((name, _)) if running.is_empty() => format!("starts {noun} {}", name.name),
            Some((name, _)) => format!("starts {noun} {}, beside {running} if {pronoun} {still}", name.name),
            None if matches!(then.settlement.verdict, Verdict::Skipped(Skip::Forbid(_) | Skip::MaxConcurrent(_))) => {
                format!("waits{} if {noun} {running} {still}", self.patience(slot))
            }
            None if !then.replaced.is_empty() => {
                let gone = if is_one { "it is" } else { "they are" };
                format!("deletes {noun} {running} if {pronoun} {still}, and starts a {noun} when {gone} gone")
            }
            None if all.iter().any(|job| job.deleting) => {
                format!("starts a {noun} when {running} {} gone", if is_one { "is" } else { "are" })
            }
            None => NOTHING.to_owned(),
        };
        Some(NextRun { time: self.zone.at(slot), effect })
    }

    /// Gives it the record of decided slots that a sync would write now. An object that does not say when it was edited, such as one in
    /// a file, would have all slots decided at each later time.
    fn count_now(&self, cron_job: &mut CronJob) {
        if let Some(write) = &self.sync.settlement.status {
            cron_job.status.counted_from.clone_from(&write.status.counted_from);
        }
    }

    /// For how long at most a run that is due at a time waits for running Jobs, if that is shorter than until the next run.
    fn patience(&self, due: DateTime<Utc>) -> String {
        let deadline = self.cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        let deadline = deadline.map(|deadline| (deadline, "spec.startingDeadlineSeconds"));
        let is_none_kept = self.cron_job.limits().backlog == Some(0);
        let shortest = deadline.into_iter().chain(is_none_kept.then_some((IN_TIME, BACKLOG))).min();
        let nominal = self.cron_job.nominal(due);
        let next = self.schedule().and_then(|schedule| schedule.next_after(nominal));
        let shortest = shortest.filter(|(time, _)| next.is_none_or(|next| next - nominal > *time));
        shortest.map(|(time, by)| format!(" for at most {} ({by})", stretch(time))).unwrap_or_default()
    }
}
