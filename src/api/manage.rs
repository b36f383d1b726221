//! Which CronJobs this controller works on, where kube-controller-manager has a controller for the same kind.
//!
//! Guarantee: only this module knows the annotations that hand a CronJob over to this controller. All code that reads
//! CronJobs from the API server filters them here. Behind it there are only CronJobs that this controller manages, and
//! `suspend` has the value that their users mean.
//!
//! The controller in kube-controller-manager never starts a Job for a suspended CronJob. A CronJob that is handed over
//! is therefore suspended in its spec, and an annotation holds its real suspension.

use serde_json::{Map, Value, json};

use super::batch_v1::CronJob;

/// With the value `true`, hands a CronJob over to this controller while `spec.suspend` is true as well.
pub const MANAGED_ANNOTATION: &str = "cronjob-controller.dev/managed";

/// With the value `true`, suspends a CronJob that was handed over.
pub const SUSPEND_ANNOTATION: &str = "cronjob-controller.dev/suspend";

/// The values of a CronJob's handover annotations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Handover {
    /// Whether [`MANAGED_ANNOTATION`] is `true`.
    pub managed: bool,
    /// Whether [`SUSPEND_ANNOTATION`] is `true`.
    pub suspend: bool,
    /// Whether one of them has another value, which counts as false.
    pub has_other: bool,
}

impl Handover {
    /// Reads the values of [`MANAGED_ANNOTATION`] and [`SUSPEND_ANNOTATION`].
    pub fn read([managed, suspend]: [Option<&str>; 2]) -> Self {
        let is_other = |value: Option<&str>| value.is_some_and(|value| value != "true");
        Self {
            managed: managed == Some("true"),
            suspend: suspend == Some("true"),
            has_other: is_other(managed) || is_other(suspend),
        }
    }

    /// What suspends a CronJob that is suspended. A change of `spec.suspend` would give one back that is handed over.
    pub fn suspended_by(self) -> &'static str {
        if self.managed && self.suspend { SUSPEND_ANNOTATION } else { "spec.suspend" }
    }
}

/// The three values that decide which controller runs a batch/v1 CronJob beside the in-tree one, and whether it is suspended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// The annotations.
    pub handover: Handover,
    /// `spec.suspend`, as the API server has it.
    pub spec_suspend: bool,
}

impl Standing {
    /// The values of a CronJob that [`Manage::Annotated`] has looked at, and that it takes if `handed_over`.
    pub fn of(cron_job: &CronJob, handed_over: bool) -> Self {
        let is_shared = cron_job.controller_kind.is_in_tree;
        let handover = if is_shared { cron_job.handover } else { Handover::default() };
        Self { handover, spec_suspend: handed_over || cron_job.spec.suspend }
    }

    /// Whether a controller with `--manage=annotated` runs it, and the in-tree controller does not.
    pub fn is_handed_over(self) -> bool {
        self.handover.managed && self.spec_suspend
    }

    /// Whether the annotation says that it is handed over, and `spec.suspend` does not: the in-tree controller runs it.
    pub fn is_half_handed_over(self) -> bool {
        self.handover.managed && !self.spec_suspend
    }

    /// Whether the controller that runs it starts no Jobs.
    pub fn is_suspended(self) -> bool {
        if self.is_handed_over() { self.handover.suspend } else { self.spec_suspend }
    }

    /// Handed over, and suspended exactly if it was.
    #[must_use]
    pub fn handed_over(self) -> Self {
        if self.is_handed_over() { self } else { Self::of_this_controller(self.is_suspended()) }
    }

    /// The in-tree controller's, without annotations of any value, and suspended exactly if it was.
    #[must_use]
    pub fn taken_back(self) -> Self {
        Self { handover: Handover::default(), spec_suspend: self.is_suspended() }
    }

    /// Suspended or not. One that is half handed over is handed over by its suspension, because `spec.suspend` alone would do that
    /// and start its Jobs.
    #[must_use]
    pub fn with_suspend(self, suspend: bool) -> Self {
        if self.is_suspended() == suspend {
            self
        } else if self.handover.managed {
            Self::of_this_controller(suspend)
        } else {
            Self { spec_suspend: suspend, ..self }
        }
    }

    /// Handed over, and suspended or not.
    fn of_this_controller(suspend: bool) -> Self {
        Self { handover: Handover { managed: true, suspend, has_other: false }, spec_suspend: true }
    }

    /// The merge patch that changes these values into `wanted`, in one write.
    pub fn patch(self, wanted: Self) -> Value {
        let annotation = |is_true: bool| if is_true { json!("true") } else { Value::Null };
        let pairs = [
            (MANAGED_ANNOTATION, self.handover.managed, wanted.handover.managed),
            (SUSPEND_ANNOTATION, self.handover.suspend, wanted.handover.suspend),
        ];
        // A merge patch may remove what does not exist.
        let removes_other = self.handover.has_other && !wanted.handover.has_other;
        let changed = pairs.into_iter().filter(|(_, before, after)| before != after || removes_other && !after);
        let annotations: Map<String, Value> =
            changed.map(|(name, _, after)| (name.to_owned(), annotation(after))).collect();
        let mut patch = json!({});
        if !annotations.is_empty() {
            patch["metadata"] = json!({ "annotations": annotations });
        }
        if self.spec_suspend != wanted.spec_suspend {
            patch["spec"] = json!({ "suspend": wanted.spec_suspend });
        }
        patch
    }
}

/// Which CronJobs this controller manages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Manage {
    /// All of them: no other controller works on them, and the annotations have no effect.
    #[default]
    All,
    /// Those that were handed over. kube-controller-manager's controller runs beside this one and starts all others.
    /// For those handed over it does what it does for every suspended CronJob.
    Annotated,
}

impl Manage {
    /// Both values.
    pub const BOTH: [Self; 2] = [Self::All, Self::Annotated];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Annotated => "annotated",
        }
    }

    /// Whether this controller manages the CronJob, just decoded. If so, `suspend` is set to the value that its user
    /// means.
    pub fn takes(self, cron_job: &mut CronJob) -> bool {
        match self {
            Self::All => true,
            Self::Annotated => {
                let is_ours = Standing::of(cron_job, false).is_handed_over();
                if is_ours {
                    cron_job.spec.suspend = cron_job.handover.suspend;
                }
                is_ours
            }
        }
    }
}

#[cfg(test)]
mod tests;
