//! What changes when CronJobs move between the in-tree controller and this one: `migrate check`. `handover` moves them, and
//! `skip_missed` lets no slot before a time count.
//!
//! Guarantees: the findings follow from a [`Cluster`] that was read before. What this controller does with a slot is the
//! decision of `reconcile`. What the in-tree controller does follows from `spec` and `status` alone, because it reads no
//! annotation. A part that could not be read is named, and the other parts are checked. The exit code is 1 exactly if a finding
//! changes which Jobs run. Pure, except for [`check`], `handover` and `skip_missed`.

pub(super) mod changes;
mod code;
mod controllers;
mod flow_schemas;
mod handover;
mod objects;
mod old_slots;
mod read;
mod rights;
mod schedules;
pub mod skip_missed;

use apimachinery::clock::Clock;
use chrono::{DateTime, FixedOffset, Utc};
use schedule::Zone;
use serde::Serialize;

pub(crate) use changes::escaped;
pub use changes::{Changes, Selection};
pub use code::Code;
pub use handover::{Direction, Request, hand_over};
pub use read::Cluster;
pub(crate) use read::in_tree_wrote;
use read::{LEASES, Seen, read_if_allowed};
pub use rights::Account;
pub use skip_missed::skip_missed;

use super::CliError;
use super::cluster::{self, ControllerFlags, Scope};
use super::output::{Report, count};
use crate::api::batch_v1::CronJob;

/// What changes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// How many CronJobs were looked at.
    checked: usize,
    /// In the order of [`Code::ALL`].
    #[serde(rename = "findings")]
    list: Vec<Finding>,
    /// What is taken for granted.
    assumed: Vec<String>,
    /// What could not be read, and why.
    not_checked: Vec<String>,
}

/// One change, or a fact to know before the change.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    code: Code,
    /// Whether other Jobs run because of it.
    changes_runs: bool,
    object: Object,
    /// A sentence that names the object.
    message: String,
    /// The first slot concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<DateTime<FixedOffset>>,
    /// The Job that the in-tree controller would create.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Why a slot does not start here.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<old_slots::Reason>,
}

/// The object of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    kind: &'static str,
    /// `None` for an object of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

impl Object {
    fn of(cron_job: &CronJob) -> Self {
        Self::named(cron_job.controller_kind.parent.kind, &cron_job.name.namespace, &cron_job.name.name)
    }

    fn named(kind: &'static str, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: Some(namespace.to_owned()), name: name.to_owned() }
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name } = self;
        let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        write!(f, "{kind} {namespace}{name}")
    }
}

impl Finding {
    fn new(code: Code, object: Object, message: String) -> Self {
        Self { code, changes_runs: false, object, message, slot: None, job: None, reason: None }
    }

    fn changing_runs(self) -> Self {
        Self { changes_runs: true, ..self }
    }
}

/// What changes for the CronJobs of `cluster` at `now`. `flags` are those of this controller; the in-tree one runs in the same
/// zone.
pub fn findings(cluster: &Cluster, flags: &ControllerFlags, now: DateTime<Utc>) -> Findings {
    let mut list: Vec<Finding> = Vec::new();
    for seen in &cluster.cron_jobs {
        list.extend(old_slots::find(seen, flags.zone, now));
        list.extend(schedules::find(seen, flags.zone, now));
    }
    list.extend(objects::find(cluster, now));
    list.extend(controllers::find(cluster, now));
    list.extend(rights::find(cluster));
    list.extend(flow_schemas::find(cluster));
    list.sort_by_key(|finding| finding.code);
    let assumed = zone_assumed(&cluster.cron_jobs, flags.zone).into_iter().collect();
    Findings { checked: cluster.cron_jobs.len(), list, assumed, not_checked: cluster.not_read() }
}

/// That the CronJobs without a zone of their own run in one that was not read.
fn zone_assumed(cron_jobs: &[Seen], zone: Zone) -> Option<String> {
    let has_none = |seen: &&Seen| {
        seen.cron_job.spec.recurrence.time_zone().is_none() && !seen.cron_job.timing(zone).zone_in_schedule
    };
    let without = cron_jobs.iter().filter(has_none).count();
    let have = if without == 1 { "has" } else { "have" };
    (without > 0).then(|| {
        format!(
            "{} {have} no spec.timeZone: both controllers are assumed to run in {zone} (--time-zone).",
            count(without, "CronJob")
        )
    })
}

impl Findings {
    /// Whether the same Jobs run as before.
    pub fn changes_nothing(&self) -> bool {
        !self.list.iter().any(|finding| finding.changes_runs)
    }
}

impl Report for Findings {
    fn lines(&self) -> Vec<String> {
        let (all, checked) = (self.list.len(), count(self.checked, "CronJob"));
        let changes = self.list.iter().filter(|finding| finding.changes_runs).count();
        let mut lines = vec![match all {
            0 => format!("Nothing changes for {checked}."),
            _ => format!("{} for {checked}; {changes} of them change which Jobs run.", count(all, "finding")),
        }];
        for code in Code::ALL {
            let mut of_code = self.list.iter().filter(|finding| finding.code == code).peekable();
            if of_code.peek().is_some() {
                lines.extend([String::new(), format!("{code}: {}", code.summary())]);
                lines.extend(of_code.map(|finding| format!("  {}", finding.message)));
            }
            if code == Code::OldSlot && self.list.iter().any(|finding| finding.code == code) {
                lines.push(ADVICE.to_owned());
            }
        }
        if !self.assumed.is_empty() {
            lines.push(String::new());
            lines.extend(self.assumed.iter().cloned());
        }
        if !self.not_checked.is_empty() {
            lines.extend([String::new(), "Not checked, because it could not be read:".to_owned()]);
            lines.extend(self.not_checked.iter().map(|cause| format!("  {cause}")));
        }
        lines.extend([String::new(), NEXT_STEP.to_owned()]);
        lines
    }
}

const ADVICE: &str = "  To start nothing old, set spec.startingDeadlineSeconds to less than these ages. A suspension \
                      only puts the start off until the resume.";

const NEXT_STEP: &str = "Next: `cronjob-controller shadow --for 1h` watches the controller in charge, writes nothing, and says what this one \
                         would have done differently.";

/// Reads the cluster of `scope`, and finds what changes there. `account` is that of this controller.
///
/// # Errors
/// When the CronJobs or the Jobs cannot be read.
pub async fn check(
    scope: &Scope,
    account: &Account,
    flags: &ControllerFlags,
    clock: &dyn Clock,
) -> Result<Findings, CliError> {
    let (client, namespace) = scope.connect().await?;
    let cluster = Cluster::read(&client, namespace.as_deref(), account, flags).await?;
    Ok(findings(&cluster, flags, cluster::now(&client, clock).await))
}

#[cfg(test)]
mod tests;
