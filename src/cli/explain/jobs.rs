//! What `explain` says of the Jobs of a CronJob: those that ended, those that run, and those that wait.
//!
//! Guarantees: of a Job that has no Pods because something has yet to happen, that is said, and not that it runs. One that is suspended
//! or being deleted does not count as one to be started. Pure.

use std::sync::Arc;

use serde::Deserialize;

use super::read::{Said, Told};
use super::{Case, LATE_AFTER, LastRun, MAX_WARNINGS, State};
use crate::api::batch_v1::{FinishedCondition, Job, WaitsFor};
use crate::cli::output::stretch;

/// Why no Event may tell how a Job ended: the rate limit of Events, which is client-go's.
pub(in crate::cli) const DROPPED: &str =
    "of so many Events some may not have been written (25 at once, then one in five minutes)";

/// The patches of a template whose Jobs wait.
pub(super) const UNSUSPENDED: &str = r#"{"spec":{"jobTemplate":{"spec":{"suspend":false}}}}"#;
const PARALLEL: &str = r#"{"spec":{"jobTemplate":{"spec":{"parallelism":1}}}}"#;

#[derive(Deserialize)]
struct Template {
    spec: TemplateSpec,
}

/// The fields because of which a Job waits.
#[derive(Deserialize)]
struct TemplateSpec {
    #[serde(default)]
    suspend: Option<bool>,
    #[serde(default)]
    parallelism: Option<i64>,
}

impl<'a> Case<'a> {
    /// The unfinished children, oldest first.
    pub(super) fn running(&self) -> Vec<&'a Arc<Job>> {
        let mut running: Vec<_> = self.children().filter(|job| job.finished.is_none()).collect();
        running.sort_by_key(|job| job.began());
        running
    }

    /// Those that count for a run that is due: with `max-concurrent` all, with `replace-waits` all but a backfill's, else those that
    /// the status has.
    pub(super) fn blockers(&self) -> Vec<&'a Arc<Job>> {
        let limits = self.cron_job.limits();
        let counts_all = |job: &Job| limits.max_concurrent.is_some() || limits.replace_waits && !job.of_backfill;
        let status = self.sync.settlement.status.as_ref().map_or(&self.cron_job.status, |write| &write.status);
        let counts = |job: &&Arc<Job>| counts_all(job) || status.in_active_list(&job.uid);
        self.running().into_iter().filter(counts).collect()
    }

    /// How many of them have to end for a run to start.
    pub(super) fn too_many(&self) -> usize {
        let limit = self.cron_job.limits().max_concurrent.unwrap_or(1);
        (self.blockers().len() + 1).saturating_sub(limit).max(1)
    }

    /// The newest run of a slot.
    pub(super) fn last_run(&self) -> Option<LastRun> {
        let slot = self.last_slot()?;
        let found = self.job_of(slot);
        let job = self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot);
        let (exists, outcome) =
            (found.is_some(), found.map_or_else(|| self.outcome_of_gone(&job), |job| self.outcome(Some(job))));
        Some(LastRun { time: self.zone.at(slot), job, exists, of_backfill: false, outcome })
    }

    /// The newest run by hand or of a backfill, if the schedule has started none.
    pub(super) fn unscheduled_run(&self) -> Option<LastRun> {
        if self.last_slot().is_some() {
            return None;
        }
        let job = self.children().max_by_key(|job| job.creation_timestamp)?;
        Some(LastRun {
            time: self.zone.at(job.creation_timestamp),
            job: job.name.name.to_string(),
            exists: true,
            of_backfill: job.of_backfill,
            outcome: self.outcome(Some(job)),
        })
    }

    /// What became of a Job that is gone, as far as an Event says it.
    fn outcome_of_gone(&self, name: &str) -> String {
        let end = self.facts.told.iter().filter(|run| run.job == name).find_map(|run| match run.what {
            Told::Ended(end) => Some(end),
            _ => None,
        });
        let gone = self.outcome(None);
        match end {
            Some(FinishedCondition::Complete) => format!("succeeded, and {gone}"),
            Some(FinishedCondition::Failed) => format!("failed, and {gone}"),
            None if self.facts.may_lack_events => format!("{gone}; {DROPPED}"),
            None => gone,
        }
    }

    /// What became of a Job; `None` is one that is gone.
    pub(in crate::cli) fn outcome(&self, job: Option<&Arc<Job>>) -> String {
        match job.map(|job| (job, job.finished)) {
            None => "no longer exists".to_owned(),
            Some((job, None)) => self.doing(job),
            Some((job, Some(FinishedCondition::Complete))) => {
                let took = job.completion_time.map(|end| format!(" after {}", stretch(end - job.began())));
                format!("succeeded{}", took.unwrap_or_default())
            }
            Some((_, Some(FinishedCondition::Failed))) => "failed".to_owned(),
        }
    }

    /// Since when an unfinished Job runs, or what it waits for; without its name.
    pub(super) fn doing(&self, job: &Job) -> String {
        let age = stretch(self.now - job.creation_timestamp);
        match job.waits_for() {
            None if job.deleting => format!("is {age} old and being deleted"),
            None => format!("has been running for {}", stretch(self.now - job.began())),
            Some(WaitsFor::Start) => format!("exists, and the {} has not started it for {age}", self.starter()),
            Some(waits_for) => format!("is {age} old and waits {}", words(waits_for)),
        }
    }

    /// The same where the name stands before a comma.
    pub(super) fn doing_in_short(&self, job: &Job) -> String {
        let age = stretch(self.now - job.creation_timestamp);
        match job.waits_for() {
            None if job.deleting => format!("{age} old, being deleted"),
            None => format!("for {}", stretch(self.now - job.began())),
            Some(WaitsFor::Start) => format!("not started for {age}"),
            Some(waits_for) => format!("{age} old, waits {}", words(waits_for)),
        }
    }

    /// The patch of the CronJob that changes what in its template keeps this Job, and each that follows it, from running.
    pub(super) fn patch_of_template(&self, job: &Job) -> Option<&'static str> {
        let waits_for = job.waits_for().filter(|_| self.noun() == "Job")?;
        let template: Template = serde_json::from_str(self.cron_job.spec.job_template.text()?).ok()?;
        match waits_for {
            WaitsFor::Resumption if template.spec.suspend == Some(true) => Some(UNSUSPENDED),
            WaitsFor::Parallelism if template.spec.parallelism == Some(0) => Some(PARALLEL),
            _ => None,
        }
    }

    /// The newest Warnings. One about a Job that a user made says so. That a schedule has no time is said better elsewhere.
    pub(super) fn warnings(&self, state: State) -> Vec<Said> {
        let is_known = |said: &&Said| state == State::NeverFires && said.reason == "InvalidSchedule";
        let told = self.facts.warnings.iter().flatten().filter(|said| !is_known(said));
        let mut warnings: Vec<Said> = told.take(MAX_WARNINGS).cloned().collect();
        for warning in warnings.iter_mut().filter(|warning| warning.reason == "UnexpectedJob") {
            let is_named = |job: &&Arc<Job>| warning.message.ends_with(&format!(": {}", job.name.name));
            if self.children().find(is_named).is_some_and(|job| job.scheduled_timestamp.is_none()) {
                warning.message.push_str(" (made by hand)");
            }
        }
        warnings
    }

    /// What starts a Job that exists.
    fn starter(&self) -> &'static str {
        if self.noun() == "Job" { "Job controller" } else { "kubelet" }
    }

    /// The Job that has waited longest to be started, if that is long.
    pub(super) fn unstarted(&self) -> Option<String> {
        let is_late = |job: &&Arc<Job>| job.awaits_start() && self.now - job.creation_timestamp > LATE_AFTER;
        let job = self.running().into_iter().find(is_late)?;
        Some(format!("{} {} {}.", self.noun(), job.name.name, self.doing(job)))
    }
}

/// The name of a Job, and that it is a backfill's if it is.
pub(super) fn named(job: &Job) -> String {
    format!("{}{}", job.name.name, if job.of_backfill { " (of a backfill)" } else { "" })
}

/// The end of a sentence that says for what a Job waits.
fn words(waits_for: WaitsFor) -> &'static str {
    match waits_for {
        WaitsFor::Resumption => "to be resumed (spec.suspend)",
        WaitsFor::Manager => "for the controller that its spec.managedBy names to start it",
        WaitsFor::Start => "to be started",
        WaitsFor::Parallelism => "for a spec.parallelism above 0",
    }
}
