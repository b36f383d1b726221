//! The state of a CronJob: one answer for `explain`, `list`, the page and `dev`.
//!
//! Guarantees: how much attention a CronJob needs follows from its state alone, and so do the words for it. A CronJob whose last run
//! that ended has failed is failing, whatever runs or is about to start. Pure.

use serde::Serialize;

/// The state of a CronJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It is being deleted.
    BeingDeleted,
    /// Its Namespace is frozen.
    Frozen,
    /// `spec.timeZone` is not a known zone.
    UnknownTimeZone,
    /// The same, and the in-tree controller, which may know it, runs the CronJob.
    SlotsUnknown,
    /// `spec.suspend` is true, or the annotation in its place.
    Suspended,
    /// It is handed over, and the controller manages all CronJobs but those.
    NoController,
    /// `spec.schedule` cannot be parsed.
    UnparseableSchedule,
    /// A policy annotation cannot be read, or cannot be combined with another setting.
    BadPolicy,
    /// The schedule has no future time.
    NeverFires,
    /// A run is due, and a running one blocks it.
    Blocked,
    /// The same, and the running one is over its `stuck-after`.
    RunStuck,
    /// The last runs failed, and nothing starts until one succeeds or they are deleted.
    Paused,
    /// A run is due, and a Job of another owner has its name.
    NameTaken,
    /// A run is due, and the template cannot become a Job.
    BadTemplate,
    /// A run has just come due.
    Starting,
    /// A run is due, and no controller has started it.
    Overdue,
    /// The newest runs were not started within their deadline, and no Job of the CronJob kept them from it.
    Missed,
    /// The Job of a run exists, and its controller has not started it.
    NotStarted,
    /// The last run that ended has failed.
    Failing,
    /// Under Replace, each run is deleted before it ends.
    NeverEnds,
    /// Under Allow, more Jobs run at each start than at the one before.
    PilesUp,
    /// Nothing is due until the next run.
    Waiting,
}

/// How much attention a CronJob needs, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Urgency {
    /// A run is due, or was missed, and nothing has started it.
    Overdue,
    /// It cannot run.
    Stuck,
    /// A running Job blocks a run that is due.
    Blocked,
    /// The last run that ended failed, or none ends.
    Failed,
    /// Its runs pile up.
    Growing,
    /// It runs on schedule.
    Fine,
    /// A user has stopped it.
    Stopped,
}

impl State {
    /// How much attention it needs.
    pub fn urgency(self) -> Urgency {
        match self {
            Self::Overdue | Self::Missed | Self::NotStarted => Urgency::Overdue,
            Self::Blocked | Self::RunStuck => Urgency::Blocked,
            Self::Failing | Self::NeverEnds => Urgency::Failed,
            Self::PilesUp => Urgency::Growing,
            Self::Starting | Self::Waiting | Self::SlotsUnknown => Urgency::Fine,
            Self::Suspended | Self::BeingDeleted | Self::Frozen => Urgency::Stopped,
            Self::UnknownTimeZone
            | Self::UnparseableSchedule
            | Self::NoController
            | Self::BadPolicy
            | Self::NeverFires
            | Self::Paused
            | Self::NameTaken
            | Self::BadTemplate => Urgency::Stuck,
        }
    }

    /// In words, for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::BeingDeleted => "being deleted",
            Self::Frozen => "frozen",
            Self::UnknownTimeZone => "unknown time zone",
            Self::SlotsUnknown => "slots not known",
            Self::Suspended => "suspended",
            Self::NoController => "no controller",
            Self::UnparseableSchedule => "bad schedule",
            Self::BadPolicy => "bad policy",
            Self::NeverFires => "never runs",
            Self::Blocked => "blocked",
            Self::RunStuck => "run stuck",
            Self::Paused => "paused",
            Self::NameTaken => "name taken",
            Self::BadTemplate => "bad template",
            Self::Starting => "starting",
            Self::Overdue => "overdue",
            Self::Missed => "missed",
            Self::NotStarted => "not started",
            Self::Failing => "failing",
            Self::NeverEnds => "never ends",
            Self::PilesUp => "piles up",
            Self::Waiting => "on schedule",
        }
    }

    /// Whether a run that is due waits for something other than time, so that the next time of the schedule says nothing.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Blocked | Self::RunStuck | Self::Paused | Self::NameTaken | Self::BadTemplate)
    }
}

#[cfg(test)]
mod tests;
