//! Which CronJobs would start something old if the in-tree controller took over: `migrate check`.
//!
//! Guarantees: the in-tree controller's next slot comes from `spec.schedule`, `lastScheduleTime` and `startingDeadlineSeconds`
//! alone, because it reads no annotation. It is named if the policies left it out, or passed over it. A slot that this controller
//! would start, too, is not. Pure, except for [`check`].

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use kube::Client;
use schedule::missed::{Observed, next_schedule_time};
use schedule::{Schedule, Zone};
use serde::Serialize;

use super::CliError;
use super::cluster::Scope;
use super::explain::read::list;
use super::next::cron_jobs::annotation;
use super::output::{MOMENT, Report, count, stretch};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::{DST, Policy, SCHEDULE};
use crate::api::{ControllerKind, Interner, Manage, Object as _};

/// The CronJobs that would start something old.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// How many were looked at.
    checked: usize,
    cron_jobs: Vec<Finding>,
}

/// A CronJob that would start something old.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    namespace: String,
    name: String,
    slot: DateTime<FixedOffset>,
    /// The Job that would be created.
    job: String,
    reason: Reason,
    why: String,
    #[serde(skip)]
    age: TimeDelta,
}

/// Why this controller does not start a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Reason {
    /// A policy leaves it out.
    LeftOut,
    /// A change of the policies passed over it.
    PassedOver,
    /// A policy cannot be read, and nothing starts.
    BadPolicy,
}

impl Findings {
    /// Whether no CronJob would.
    pub fn is_empty(&self) -> bool {
        self.cron_jobs.is_empty()
    }
}

/// What `cron_job` would start at `now` under the in-tree controller, whose zone is `local`. `jobs` are the names of the Jobs in
/// its namespace. A CronJob that is handed over must read as a controller with `--manage=annotated` sees it.
fn find(cron_job: &CronJob, jobs: &HashSet<&str>, local: Zone, now: DateTime<Utc>) -> Option<Finding> {
    if cron_job.deleting || cron_job.spec.suspend {
        return None;
    }
    let timing = cron_job.timing(local);
    let own = timing.schedule.as_ref().ok().filter(|_| timing.time_zone.is_ok())?;
    let observed = Observed {
        creation: cron_job.creation_timestamp,
        last_schedule: cron_job.status.last_schedule_time,
        starting_deadline_seconds: cron_job.spec.starting_deadline_seconds,
    };
    let slot = next_schedule_time(&observed, now, own).ok()?.0?;
    let job = cron_job.controller_kind.child_name(&cron_job.name.name, slot);
    if jobs.contains(&*job) {
        return None;
    }
    let (reason, why) = match cron_job.policy() {
        Err(error) => (Reason::BadPolicy, format!("a policy cannot be read, so that nothing starts here ({error})")),
        Ok(policy) => {
            let left_out = policy.and_then(|policy| left_out(policy, policy.schedule(own), slot));
            let is_decided = cron_job.decided_until(&cron_job.status, now).is_some_and(|until| slot <= until);
            match left_out {
                Some(annotation) => (Reason::LeftOut, format!("{annotation} leaves this slot out")),
                None if is_decided => (Reason::PassedOver, "a change of the policies passed over this slot".to_owned()),
                None => return None,
            }
        }
    };
    let zone = own.zone().unwrap_or(local);
    Some(Finding {
        namespace: cron_job.name.namespace.to_string(),
        name: cron_job.name.name.to_string(),
        slot: zone.at(slot),
        job,
        reason,
        why,
        age: now - slot,
    })
}

/// The annotation because of which a slot of `spec.schedule` is none of `schedule`.
fn left_out(policy: &Policy, schedule: &Schedule, slot: DateTime<Utc>) -> Option<&'static str> {
    if schedule.has(slot) {
        return None;
    }
    let nominal = schedule.nominal(slot - TimeDelta::seconds(1)).next().filter(|nominal| nominal.slot == slot);
    let named = nominal.and_then(|nominal| nominal.left_out).map(annotation);
    Some(named.unwrap_or(if policy.has_lines() { SCHEDULE } else { DST }))
}

impl Finding {
    fn line(&self) -> String {
        let Self { namespace, name, job, why, .. } = self;
        let (slot, age) = (self.slot.format(MOMENT), stretch(self.age));
        format!("CronJob {namespace}/{name} would start Job {job} of {slot}, {age} late: {why}.")
    }
}

impl Report for Findings {
    fn lines(&self) -> Vec<String> {
        let checked = count(self.checked, "CronJob");
        if self.is_empty() {
            return vec![format!("None of {checked} would start an old slot under the in-tree controller.")];
        }
        let number = self.cron_jobs.len();
        let mut lines = vec![
            format!("{number} of {checked} would start an old slot if the in-tree controller took over now:"),
            String::new(),
        ];
        lines.extend(self.cron_jobs.iter().map(Finding::line));
        let advice = "To start nothing old, suspend them during the handover and until their next slot, or set \
                      spec.startingDeadlineSeconds to less than these ages.";
        lines.extend([String::new(), advice.to_owned()]);
        lines
    }
}

/// Reads the CronJobs of `scope`, and finds those that would start something old.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn check(scope: &Scope, zone: Zone, now: DateTime<Utc>) -> Result<Findings, CliError> {
    let (client, namespace) = scope.connect().await?;
    check_with(&client, namespace.as_deref(), zone, now).await
}

pub(super) async fn check_with(
    client: &Client,
    namespace: Option<&str>,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<Findings, CliError> {
    let (controller_kind, interner) = (ControllerKind::CronJob, Interner::default());
    let cron_jobs = list(client, &controller_kind.parent.path(namespace), "").await?;
    let jobs = list(client, &controller_kind.child.path(namespace), "").await?;
    let jobs: Vec<Job> = jobs.iter().filter_map(|raw| Job::decode(raw.get(), &interner).ok()).collect();
    let mut names: HashMap<&str, HashSet<&str>> = HashMap::new();
    for job in &jobs {
        names.entry(&job.name.namespace).or_default().insert(&job.name.name);
    }
    let none = HashSet::new();
    let mut findings = Findings { checked: cron_jobs.len(), cron_jobs: Vec::new() };
    for raw in cron_jobs {
        let Ok(mut cron_job) = CronJob::decode(raw.get(), &interner) else { continue };
        Manage::Annotated.takes(&mut cron_job);
        let names = names.get(&*cron_job.name.namespace).unwrap_or(&none);
        findings.cron_jobs.extend(find(&cron_job, names, zone, now));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests;
