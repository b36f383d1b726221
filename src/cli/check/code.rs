//! The stable names of what `check` finds.
//!
//! Guarantee: each has a section of that name in docs/check.md; a test compares them. Pure.

use std::fmt;

use serde::{Serialize, Serializer};

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Not YAML.
    NotYaml,
    /// Without `apiVersion` or `kind`, of a version that is no longer served, or nearly of a kind that there is.
    NoKind,
    /// Refused by the API server.
    Invalid,
    /// A field that does not exist.
    UnknownField,
    /// Accepted by the API server with a warning.
    ServerWarning,
    /// A validation of an admission policy does not hold.
    DeniedByPolicy,
    /// An expression of an admission policy that is not evaluated here.
    PolicyNotJudged,
    /// The same name twice.
    Duplicate,
    /// A schedule without any run.
    NeverFires,
    /// Runs so close that their Jobs share a name.
    SharedName,
    /// Runs that a clock change skips or repeats.
    ClockChange,
    /// A minute in which many CronJobs start.
    BusyMinute,
    /// A star for the minute, and none for the hour.
    EveryMinute,
    /// Both day fields name days, of which one is enough.
    DayOrWeekday,
    /// A step that does not divide its field.
    UnevenStep,
    /// A time zone that is another one than its name says to most.
    MisreadZone,
    /// Days that some months do not have.
    ShortMonths,
    /// A schedule that another reader of schedules takes otherwise.
    OtherDialect,
    /// Forbid without a starting deadline.
    ForbidWithoutDeadline,
    /// Forbid without a limit on how long a Job runs.
    NoActiveDeadline,
    /// Allow, without a limit on how many Jobs run at a time.
    AllowWithoutBound,
    /// A history limit of 0.
    NoHistory,
    /// A policy annotation that cannot be read.
    BadPolicy,
    /// An annotation below the controller's prefix that has no effect.
    UnknownPolicy,
    /// A schedule that an annotation replaces, with other times.
    ContradictedSchedule,
    /// Exclusions without a date after this year.
    ExclusionsEnd,
    /// A Pod that reads its slot, which nothing tells it.
    SlotNotTold,
}

impl Code {
    /// Every code, in the order of the rules in SARIF.
    pub const ALL: [Self; 27] = [
        Self::NotYaml,
        Self::NoKind,
        Self::Invalid,
        Self::UnknownField,
        Self::ServerWarning,
        Self::DeniedByPolicy,
        Self::PolicyNotJudged,
        Self::Duplicate,
        Self::NeverFires,
        Self::SharedName,
        Self::ClockChange,
        Self::BusyMinute,
        Self::EveryMinute,
        Self::DayOrWeekday,
        Self::UnevenStep,
        Self::MisreadZone,
        Self::ShortMonths,
        Self::OtherDialect,
        Self::ForbidWithoutDeadline,
        Self::NoActiveDeadline,
        Self::AllowWithoutBound,
        Self::NoHistory,
        Self::BadPolicy,
        Self::UnknownPolicy,
        Self::ContradictedSchedule,
        Self::ExclusionsEnd,
        Self::SlotNotTold,
    ];

    /// The name, and the meaning in a sentence.
    const fn name_and_summary(self) -> (&'static str, &'static str) {
        match self {
            Self::NotYaml => ("not-yaml", "The document is not YAML."),
            Self::NoKind => ("no-kind", "The kind of the object is missing, or there is no such kind."),
            Self::Invalid => ("invalid", "The API server refuses the object."),
            Self::UnknownField => ("unknown-field", "There is no such field."),
            Self::ServerWarning => ("server-warning", "The API server warns about the object."),
            Self::DeniedByPolicy => ("denied-by-policy", "An admission policy refuses the object, or warns of it."),
            Self::PolicyNotJudged => ("policy-not-judged", "A part of an admission policy is not judged."),
            Self::Duplicate => ("duplicate", "Two objects have the same name."),
            Self::NeverFires => ("never-fires", "The schedule has no run."),
            Self::SharedName => ("shared-name", "Runs are so close that their Jobs would share a name."),
            Self::ClockChange => ("clock-change", "A clock change skips or repeats runs."),
            Self::BusyMinute => ("busy-minute", "Many CronJobs start in the same minute."),
            Self::EveryMinute => ("every-minute", "The schedule runs in every minute of some hours."),
            Self::DayOrWeekday => ("day-or-weekday", "Both day fields name days, and one of them is enough."),
            Self::UnevenStep => ("uneven-step", "A step does not divide its field."),
            Self::MisreadZone => ("misread-zone", "The time zone is another one than its name says to most."),
            Self::ShortMonths => ("short-months", "Some months do not have the days of the schedule."),
            Self::OtherDialect => ("other-dialect", "Another reader of schedules takes it otherwise."),
            Self::ForbidWithoutDeadline => ("forbid-without-deadline", "A blocked run can start at any later time."),
            Self::NoActiveDeadline => ("no-active-deadline", "A Job that hangs blocks every later run."),
            Self::AllowWithoutBound => ("allow-without-bound", "Jobs that hang or cannot start pile up."),
            Self::NoHistory => ("no-history", "Jobs that ended are deleted at once."),
            Self::BadPolicy => ("bad-policy", "A policy annotation cannot be read, so nothing starts."),
            Self::UnknownPolicy => ("unknown-policy", "There is no such policy annotation."),
            Self::ContradictedSchedule => {
                ("contradicted-schedule", "An annotation replaces a schedule that has other times.")
            }
            Self::ExclusionsEnd => ("exclusions-end", "The excluded dates end this year."),
            Self::SlotNotTold => ("slot-not-told", "Pods read a slot that they are not told."),
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
