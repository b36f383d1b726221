//! Which controller runs a CronJob, as far as the cluster says.
//!
//! Guarantees: a CronJob that is handed over is this controller's, unless this controller is known to manage all others alone. Of any
//! other, a held lease of this controller which says that it runs only what is handed over says that it is not its own; else the newest
//! write to its status says whose it is, unless the object was edited since; then the leases say, and the handover annotation where they
//! leave it open and no lease says that this controller manages all. A CronJob that the
//! in-tree controller runs has no policies, because that controller reads none. Where nothing says, no lease of that controller
//! is held, or leases say that no instance works in the namespace, that is said. Pure.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::lease::{ControllerLease, Leases};
use super::read::Said;
use crate::api::batch_v1::CronJob;
use crate::api::manage::MANAGED_ANNOTATION;
use crate::api::policy::PolicyOptions;
use crate::api::{ControllerKind, DecodeError, Interner, Manage, Object as _};
use crate::cli::cluster::ControllerFlags;
use crate::cli::migrate::in_tree_wrote;
use crate::options::PROGRAM;

/// The controller of a CronJob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InCharge {
    /// This one, whatever it manages.
    Own,
    /// This one, with `--manage=annotated`.
    HandedOver,
    /// None: it is handed over, and this one runs with `--manage=all`.
    NotManaged,
    /// This one by its last write, or no other, and leases say that no instance of it works in the namespace.
    NoInstance,
    /// The one in kube-controller-manager.
    InTree,
    /// Nothing says; what is told holds for this one.
    #[default]
    Unknown,
}

impl InCharge {
    /// Which controller runs the CronJob, just decoded from `json`. Afterwards it reads as that controller reads it.
    pub fn take(cron_job: &mut CronJob, json: &str, leases: &Leases, flags: &ControllerFlags) -> Self {
        let handed_over = Manage::Annotated.takes(cron_job);
        let found = Self::of(cron_job, handed_over, in_tree_wrote(json), leases);
        if found == Self::InTree {
            without_policies(cron_job);
        } else {
            flags.apply(cron_job);
        }
        found
    }

    /// A CronJob of a list, as its controller reads it, and that controller.
    ///
    /// # Errors
    /// If it cannot be decoded.
    pub fn of_listed(
        json: &str,
        controller_kind: ControllerKind,
        interner: &Interner,
        leases: &Leases,
        flags: &ControllerFlags,
    ) -> Result<(CronJob, Self), DecodeError> {
        let mut cron_job = CronJob::decode(json, interner)?;
        // The items of a list do not say their kind.
        cron_job.controller_kind = controller_kind;
        let in_charge = Self::take(&mut cron_job, json, leases, flags);
        Ok((cron_job, in_charge))
    }

    /// Which controller runs the CronJob. `in_tree_wrote` is what its status says.
    pub fn of(cron_job: &CronJob, handed_over: bool, in_tree_wrote: Option<bool>, leases: &Leases) -> Self {
        let (kind, namespace) = (cron_job.controller_kind, &*cron_job.name.namespace);
        if handed_over {
            let is_left_out = leases.manage(kind, namespace) == Some(Manage::All);
            return if is_left_out { Self::NotManaged } else { Self::HandedOver };
        }
        if !cron_job.controller_kind.is_in_tree {
            return Self::Own;
        }
        let is_half_handed_over = cron_job.handover.managed;
        // Whatever it ran before, it now runs only what is handed over.
        let is_left_to_in_tree =
            leases.are_held(kind, namespace)[0] && leases.manage(kind, namespace) == Some(Manage::Annotated);
        if is_left_to_in_tree {
            return Self::InTree;
        }
        let is_elsewhere = leases.work_elsewhere(kind, namespace);
        let is_in_tree =
            in_tree_wrote.or_else(|| match (leases.are_held(kind, namespace), leases.manage(kind, namespace)) {
                // Where this controller manages all, the in-tree one is off, for all namespaces.
                _ if is_elsewhere == Some(Manage::All) => Some(false),
                ([false, true], _) => Some(true),
                ([true, false], Some(Manage::All)) => Some(false),
                // An older version does not say it. With --manage=annotated it does not run one that is half handed over.
                ([true, false], None) => (!is_half_handed_over).then_some(false),
                // Both read it as their own.
                (_, Some(Manage::All)) => None,
                _ => is_half_handed_over.then_some(true),
            });
        match is_in_tree {
            Some(true) => Self::InTree,
            Some(false) if is_elsewhere.is_some() => Self::NoInstance,
            Some(false) => Self::Own,
            None => Self::Unknown,
        }
    }

    /// The same where a Lease does not say what its controller manages, and a Warning of that controller since the last run does.
    #[must_use]
    pub fn warned(self, cron_job: &CronJob, leases: &Leases, warnings: &[Said]) -> Self {
        let is_said = leases.manage(cron_job.controller_kind, &cron_job.name.namespace).is_some();
        let is_warning = |warning: &Said| {
            warning.reason == "HandedOver" && cron_job.status.last_schedule_time.is_none_or(|last| last < warning.time)
        };
        let is_left_out = self == Self::HandedOver && !is_said && warnings.iter().any(is_warning);
        if is_left_out { Self::NotManaged } else { self }
    }

    /// Whether it is handed over, so that only a controller with `--manage=annotated` runs it.
    pub fn is_handed_over(self) -> bool {
        matches!(self, Self::HandedOver | Self::NotManaged)
    }

    /// In a column of a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Own => PROGRAM,
            Self::HandedOver => "handed over",
            Self::NotManaged => "none",
            Self::NoInstance => "no instance",
            Self::InTree => "in-tree",
            Self::Unknown => "not known",
        }
    }

    /// What says that the controller does not run at `now`. `lease` is that of the controller.
    fn ended(self, lease: Option<&ControllerLease>, now: DateTime<Utc>) -> Option<&'static str> {
        let is_meant = |lease: &&ControllerLease| lease.is_in_tree() == (self == Self::InTree);
        match lease.filter(is_meant) {
            Some(lease) if lease.is_expired(now) => Some("its lease has run out"),
            None if self == Self::HandedOver => Some("no lease shows that it runs"),
            _ => None,
        }
    }

    /// Whether it is known which controller runs it, and nothing says that the controller does not run at `now`.
    pub fn is_running(self, lease: Option<&ControllerLease>, now: DateTime<Utc>) -> bool {
        !matches!(self, Self::Unknown | Self::NotManaged | Self::NoInstance) && self.ended(lease, now).is_none()
    }

    /// A sentence about who runs it at `now`. `lease` is that of its controller.
    pub fn sentence(self, cron_job: &CronJob, lease: Option<&ControllerLease>, now: DateTime<Utc>) -> String {
        let ended = self.ended(lease, now);
        let half = format!("{MANAGED_ANNOTATION} is \"true\", but spec.suspend is false");
        match (self, ended) {
            (Self::Own, None) => format!("{PROGRAM} runs it."),
            (Self::Own, Some(ended)) => format!("{PROGRAM} ran it, and {ended}."),
            (Self::HandedOver, None) => format!("It is handed over: {PROGRAM} runs it."),
            (Self::HandedOver, Some(ended)) => format!("It is handed over to {PROGRAM}, and {ended}."),
            (Self::NotManaged, _) => format!(
                "No controller runs it: it is handed over ({MANAGED_ANNOTATION}), and {PROGRAM} runs with --manage=all."
            ),
            (Self::NoInstance, _) => format!(
                "No instance of {PROGRAM} works in namespace {}, as their Leases say, and only the in-tree controller would run it, if \
                 it is on. What follows holds once an instance does.",
                cron_job.name.namespace
            ),
            (Self::InTree, None) if cron_job.handover.managed => format!("The in-tree controller runs it: {half}."),
            (Self::InTree, None) => "The in-tree controller runs it.".to_owned(),
            (Self::InTree, Some(ended)) => format!("The in-tree controller ran it, and {ended}."),
            (Self::Unknown, _) => {
                let why = if cron_job.handover.managed { format!(": {half}") } else { String::new() };
                format!("It is not known which controller runs it{why}. What follows holds if {PROGRAM} does.")
            }
        }
    }
}

/// Makes it what the in-tree controller sees, which reads no policies.
pub fn without_policies(cron_job: &mut CronJob) {
    PolicyOptions { enabled: false, ..PolicyOptions::default() }.apply(cron_job);
}

#[cfg(test)]
mod tests;
