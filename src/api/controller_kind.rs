//! The differences between the controllers of this binary. They share everything else.
//!
//! Guarantee: every CronJob carries its [`ControllerKind`], and the kind's [`KindSpec`] lists every difference between
//! the controllers. No other code asks which controller it is part of.

use std::fmt;
use std::ops::Deref;

use chrono::{DateTime, Utc};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::{ResourceKind, api_example, tutorial_v1};

/// One of the controllers in this binary, and the kind that it works on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControllerKind {
    /// batch/v1 CronJobs, in place of the controller in kube-controller-manager.
    #[default]
    CronJob,
    /// The CronJobs of the kubebuilder tutorial, with their webhooks.
    Tutorial,
    /// ApiExamples, which run Pods on a schedule.
    ApiExample,
}

/// One column of the table of differences between the kinds.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "a table, whose columns are independent of each other")]
pub struct KindSpec {
    /// The name on the command line and of the queue in the metrics.
    pub name: &'static str,
    /// The kind of object that the controller reconciles.
    pub parent: ResourceKind,
    /// The kind of object that a slot starts.
    pub child: ResourceKind,
    /// The child's name in messages for people.
    pub noun: &'static str,
    /// The annotation in which a child carries its slot, RFC 3339.
    pub scheduled_annotation: &'static str,
    /// The unit of the slot's number in a child's name, in seconds since 1970.
    pub seconds_in_name: i64,
    /// Whether every unfinished child is active, not only those that a controller created for a slot.
    pub every_child_is_active: bool,
    /// Whether the spec has a time zone field, so that a zone inside the schedule deserves a Warning.
    pub has_time_zone: bool,
    /// Whether the status says when a child last succeeded.
    pub has_last_successful_time: bool,
    /// Whether the status has conditions.
    pub has_conditions: bool,
    /// Where the record of decided slots is; `None` for a kind without policies.
    pub counted_from: Option<CountedFromPlace>,
    /// Whether kube-controller-manager has a controller for this kind.
    pub is_in_tree: bool,
    /// Whether another controller could mistake its children for those of a batch/v1 CronJob of the same name.
    pub fears_name_conflicts: bool,
}

/// Where an object has the record of its decided slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedFromPlace {
    /// In an annotation, which the write of the status may change, too.
    Annotation,
    /// In `status.countedFrom`: the status of a custom resource is written without its metadata.
    Status,
}

const JOB: ResourceKind = ResourceKind { group: "batch", version: "v1", plural: "jobs", kind: "Job" };

const CRON_JOB: KindSpec = KindSpec {
    name: "cronjob",
    parent: ResourceKind { group: "batch", version: "v1", plural: "cronjobs", kind: "CronJob" },
    child: JOB,
    noun: "job",
    scheduled_annotation: "batch.kubernetes.io/cronjob-scheduled-timestamp",
    seconds_in_name: 60,
    every_child_is_active: false,
    has_time_zone: true,
    has_last_successful_time: true,
    has_conditions: false,
    counted_from: Some(CountedFromPlace::Annotation),
    is_in_tree: true,
    fears_name_conflicts: false,
};

const TUTORIAL: KindSpec = KindSpec {
    name: "tutorial",
    parent: tutorial_v1::RESOURCE,
    scheduled_annotation: "batch.tutorial.kubebuilder.io/scheduled-at",
    seconds_in_name: 1,
    every_child_is_active: true,
    has_time_zone: false,
    has_last_successful_time: false,
    has_conditions: true,
    counted_from: Some(CountedFromPlace::Status),
    is_in_tree: false,
    fears_name_conflicts: true,
    ..CRON_JOB
};

/// Its annotation is the tutorial's, from which this kind was derived.
const API_EXAMPLE: KindSpec = KindSpec {
    name: "apiexample",
    parent: api_example::RESOURCE,
    child: ResourceKind { group: "", version: "v1", plural: "pods", kind: "Pod" },
    noun: "pod",
    has_conditions: false,
    counted_from: None,
    fears_name_conflicts: false,
    ..TUTORIAL
};

impl Deref for ControllerKind {
    type Target = KindSpec;

    fn deref(&self) -> &KindSpec {
        match self {
            Self::CronJob => &CRON_JOB,
            Self::Tutorial => &TUTORIAL,
            Self::ApiExample => &API_EXAMPLE,
        }
    }
}

impl ControllerKind {
    /// The batch/v1 kind, as a constant.
    pub(super) const CRON_JOB: KindSpec = CRON_JOB;

    /// All kinds.
    pub const ALL: [Self; 3] = [Self::CronJob, Self::Tutorial, Self::ApiExample];

    /// The kind whose parents have this group and kind.
    pub fn of_parent(group: &str, kind: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|controller_kind| controller_kind.parent.group == group && controller_kind.parent.kind == kind)
    }

    /// The name of the child of one slot. With minutes in it, it matches upstream `getJobName`.
    pub fn child_name(self, parent: &str, slot: DateTime<Utc>) -> String {
        format!("{parent}-{}", self.number_of(slot))
    }

    /// The number that stands for a slot in its child's name.
    pub fn number_of(self, slot: DateTime<Utc>) -> i64 {
        // Go divides toward zero. Slots before 1970 exist only in tests, where both must agree.
        slot.timestamp() / self.seconds_in_name
    }
}

impl fmt::Display for ControllerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Read from an object's `apiVersion`. Lists of built-in kinds omit it; custom resources have it in every object.
impl<'de> Deserialize<'de> for ControllerKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ApiVersion;
        impl Visitor<'_> for ApiVersion {
            type Value = ControllerKind;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the apiVersion of something with a schedule")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ControllerKind, E> {
                let (group, version) = text.split_once('/').unwrap_or_default();
                let is_meant = |controller_kind: &ControllerKind| {
                    controller_kind.parent.group == group && controller_kind.parent.version == version
                };
                ControllerKind::ALL
                    .into_iter()
                    .find(is_meant)
                    .ok_or_else(|| E::custom(format!("unknown apiVersion {text:?}")))
            }
        }
        deserializer.deserialize_str(ApiVersion)
    }
}
