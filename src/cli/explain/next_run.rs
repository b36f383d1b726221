//! What `explain` says of the next run: when it is due, and what it does then if nothing changes.
//!
//! Guarantee: a run that running Jobs hold is said to wait while a sync would start it once they have ended. Pure.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Case, NextRun, State};
use crate::api::batch_v1::ConcurrencyPolicy;
use crate::api::policy::BACKLOG;
use crate::cli::output::{named, stretch};
use crate::controller::plan::{Skip, Verdict};
use crate::controller::reconcile::IN_TIME;

/// So many unfinished Jobs are named.
const NAMED: usize = 2;

impl Case<'_> {
    /// The next time, and what a sync would do then.
    pub(super) fn next_run(&self, state: State) -> Option<NextRun> {
        if matches!(state, State::Suspended | State::BeingDeleted | State::NeverFires | State::NoController) {
            return None;
        }
        let slot = self.next_due()?;
        let then = self.rehearse(|_| {}, &self.facts.jobs, slot);
        let noun = self.noun();
        let is_alone = !matches!(self.cron_job.spec.concurrency_policy, ConcurrencyPolicy::Allow);
        let all = if is_alone { self.blockers() } else { self.running() };
        let running = named(all.iter().map(|job| job.name.name.to_string()), NAMED, all.len());
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
            None => "starts nothing".to_owned(),
        };
        Some(NextRun { time: self.zone.at(slot), effect })
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
