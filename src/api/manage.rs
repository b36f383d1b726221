//! Which CronJobs this controller works on, where kube-controller-manager has a controller for the same kind.
//!
//! Guarantee: only this module knows the annotations that hand a CronJob over to this controller. All code that reads
//! CronJobs from the API server filters them here. Behind it there are only CronJobs that this controller manages, and
//! `suspend` has the value that their users mean.
//!
//! The controller in kube-controller-manager never starts a Job for a suspended CronJob. A CronJob that is handed over
//! is therefore suspended in its spec, and an annotation holds its real suspension.

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
                let is_ours = cron_job.handover.managed && cron_job.spec.suspend;
                if is_ours {
                    cron_job.spec.suspend = cron_job.handover.suspend;
                }
                is_ours
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{Interner, Object};

    #[allow(clippy::unwrap_used)]
    fn cron_job(suspend: bool, annotations: &serde_json::Value) -> CronJob {
        let object = json!({
            "metadata": { "name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1", "annotations": annotations },
            "spec": { "schedule": "* * * * *", "suspend": suspend, "jobTemplate": {} },
        });
        CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
    }

    /// Whether the CronJob is managed here, and if so, whether it is suspended.
    #[test]
    fn a_cron_job_is_handed_over_by_the_annotation_and_its_suspension_together() {
        let managed = json!({ MANAGED_ANNOTATION: "true" });
        let held = json!({ MANAGED_ANNOTATION: "true", SUSPEND_ANNOTATION: "true" });
        let table = [
            ("neither", false, json!({}), Some(false), None),
            ("no annotations at all", true, json!(null), Some(true), None),
            ("suspended, as anybody's", true, json!({ "example.com/managed": "true" }), Some(true), None),
            ("annotated, and the other still fires it", false, managed.clone(), Some(false), None),
            ("handed over", true, managed, Some(true), Some(false)),
            ("handed over and held", true, held.clone(), Some(true), Some(true)),
            ("held, and the other still fires it", false, held, Some(false), None),
            ("another value", true, json!({ MANAGED_ANNOTATION: "True" }), Some(true), None),
            ("taken back", true, json!({ MANAGED_ANNOTATION: "false" }), Some(true), None),
            (
                "held by another value",
                true,
                json!({ MANAGED_ANNOTATION: "true", SUSPEND_ANNOTATION: "false" }),
                Some(true),
                Some(false),
            ),
        ];
        for (sentence, suspend, annotations, all, annotated) in table {
            let seen = |manage: Manage| {
                let mut cron_job = cron_job(suspend, &annotations);
                manage.takes(&mut cron_job).then_some(cron_job.spec.suspend)
            };
            assert_eq!(Manage::BOTH.map(seen), [all, annotated], "{sentence}");
        }
    }
}
