//! The stable names of what `migrate check` finds.
//!
//! Guarantee: each has a row of that name in docs/migration.md; a test compares them. Pure.

use std::fmt;

use serde::{Serialize, Serializer};

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A slot that this controller does not start, and the in-tree controller would.
    OldSlot,
    /// Slots that only one of the two controllers starts, or that they start at another time.
    ScheduleDiffers,
    /// Annotations that the in-tree controller ignores when a slot is due.
    LimitsDiffer,
    /// `spec.timeZone` is known to the API server, and not here.
    UnknownTimeZone,
    /// A handover annotation is neither true nor false.
    HandoverValue,
    /// CronJobs that are handed over run only with `--manage=annotated`.
    HandedOver,
    /// An object that cannot be decoded.
    NotDecoded,
    /// A time zone inside `spec.schedule`.
    TimeZoneInSchedule,
    /// A name that is longer than the API server allows today.
    LongName,
    /// Both controllers start Jobs of the same CronJob.
    TwoControllers,
    /// Two instances of this controller work on the same CronJobs.
    OverlappingInstances,
    /// kube-controller-manager's CronJob controller has worked.
    InTreeIsOn,
    /// kube-controller-manager runs, and nothing shows whether its CronJob controller does.
    InTreeMayBeOn,
    /// The controller's account lacks a right.
    MissingRight,
    /// The controller's requests have no priority level of their own.
    FlowSchema,
}

impl Code {
    /// Every code, in the order of the report.
    pub const ALL: [Self; 15] = [
        Self::OldSlot,
        Self::ScheduleDiffers,
        Self::LimitsDiffer,
        Self::UnknownTimeZone,
        Self::HandoverValue,
        Self::HandedOver,
        Self::NotDecoded,
        Self::TimeZoneInSchedule,
        Self::LongName,
        Self::TwoControllers,
        Self::OverlappingInstances,
        Self::InTreeIsOn,
        Self::InTreeMayBeOn,
        Self::MissingRight,
        Self::FlowSchema,
    ];

    /// The name, and the meaning in a sentence.
    const fn name_and_summary(self) -> (&'static str, &'static str) {
        match self {
            Self::OldSlot => ("old-slot", "The in-tree controller would start a slot that does not start here."),
            Self::ScheduleDiffers => ("schedule-differs", "The two controllers start different slots."),
            Self::LimitsDiffer => ("limits-differ", "The in-tree controller ignores annotations about due slots."),
            Self::UnknownTimeZone => ("unknown-time-zone", "The time zone is not known to this controller."),
            Self::HandoverValue => ("handover-value", "A handover annotation is neither true nor false."),
            Self::HandedOver => ("handed-over", "CronJobs are handed over, and run only with --manage=annotated."),
            Self::NotDecoded => ("not-decoded", "The object cannot be decoded."),
            Self::TimeZoneInSchedule => ("time-zone-in-schedule", "The time zone is in spec.schedule."),
            Self::LongName => ("long-name", "The name is longer than the API server allows today."),
            Self::TwoControllers => ("two-controllers", "Two controllers work on the same CronJobs."),
            Self::OverlappingInstances => {
                ("overlapping-instances", "Two instances of this controller work on the same CronJobs.")
            }
            Self::InTreeIsOn => ("in-tree-is-on", "The CronJob controller of kube-controller-manager is on."),
            Self::InTreeMayBeOn => {
                ("in-tree-may-be-on", "The CronJob controller of kube-controller-manager may be on.")
            }
            Self::MissingRight => ("missing-right", "The account of this controller lacks rights."),
            Self::FlowSchema => ("flow-schema", "This controller's requests have no priority level of their own."),
        }
    }

    /// The meaning, in a sentence.
    pub fn summary(self) -> &'static str {
        self.name_and_summary().1
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name_and_summary().0)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name_and_summary().0)
    }
}
