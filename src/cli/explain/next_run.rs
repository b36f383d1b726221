//! What `explain` says of the next run: when it is due, and what it does then if nothing changes.
//!
//! Guarantee: a run that running Jobs hold is said to wait while a sync would start it once they have ended. Pure.

use chrono::{DateTime, TimeDelta, Utc};

use super::held::first_of;
use super::{Case, NextRun, State};
use crate::api::policy::BACKLOG;
use crate::cli::output::stretch;
use crate::controller::plan::{Skip, Verdict};

/// For so long a slot waits with a backlog of none.
const WITHOUT_BACKLOG: TimeDelta = TimeDelta::seconds(60);

impl Case<'_> {
    /// The next time, and what a sync would do then.
    pub(super) fn next_run(&self, state: State) -> Option<NextRun> {
        if matches!(state, State::Suspended | State::BeingDeleted | State::NeverFires | State::NoController) {
            return None;
        }
        let slot = self.next_due()?;
        let then = self.rehearse(|_| {}, &self.facts.jobs, slot);
        let noun = self.noun();
        let running = || first_of(&self.running(), |job| job.name.name.to_string());
        let effect = match then.starts() {
            Some((name, _)) if !then.replaced.is_empty() => {
                format!("deletes {noun} {} if it still runs, and starts {noun} {}", running(), name.name)
            }
            Some((name, _)) if running().is_empty() => format!("starts {noun} {}", name.name),
            Some((name, _)) => format!("starts {noun} {}, beside {} if it still runs", name.name, running()),
            None if matches!(then.settlement.verdict, Verdict::Skipped(Skip::Forbid(_) | Skip::MaxConcurrent(_))) => {
                format!("waits{} if {noun} {} still runs", self.patience(slot), running())
            }
            None if !then.replaced.is_empty() => {
                format!("deletes {noun} {} if it still runs, and starts a {noun} when it is gone", running())
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
        let shortest = deadline.into_iter().chain(is_none_kept.then_some((WITHOUT_BACKLOG, BACKLOG))).min();
        let nominal = self.cron_job.nominal(due);
        let next = self.schedule().and_then(|schedule| schedule.next_after(nominal));
        let shortest = shortest.filter(|(time, _)| next.is_none_or(|next| next - nominal > *time));
        shortest.map(|(time, by)| format!(" for at most {} ({by})", stretch(time))).unwrap_or_default()
    }
}
