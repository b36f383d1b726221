//! What a schedule may have beyond robfig's grammar, and what that leaves out.
//!
//! Guarantees: with [`ClockChanges::Once`], a schedule has the same slots wherever a search begins, unless it has all 24 hours.
//! What is as upstream may depend on where a search begins, as upstream's does near a midnight that a zone skips. Without a
//! calendar nothing here is used.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::composite::{Composite, HORIZON};
use crate::{Exclusions, Kind, Lines, Schedule, later};

/// Changes to the slots of a schedule. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    /// The lines in place of the schedule's own.
    pub lines: Option<Lines>,
    /// What a change of the zone's offset does to slots.
    pub clock_changes: ClockChanges,
    /// The local dates without slots.
    pub exclude: Exclusions,
    /// No slot is earlier.
    pub not_before: Option<DateTime<Utc>>,
    /// No slot is later.
    pub not_after: Option<DateTime<Utc>>,
}

/// What happens to slots in a gap or an overlap of local times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockChanges {
    /// What robfig/cron does: most slots in a gap are skipped, and those in an overlap are repeated.
    #[default]
    Upstream,
    /// Each wall-clock time that the fields choose has one slot: at its first instant in an overlap, at the end of a gap. Slots
    /// that meet there are one. A date that the zone skipped has none. A schedule with all 24 hours is as upstream.
    Once,
}

/// An `@every` has no calendar, so it has neither lines nor dates nor clock changes. It may have bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("@every has no calendar")]
pub struct NoCalendar;

/// A slot of the schedule's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nominal {
    /// When it is.
    pub slot: DateTime<Utc>,
    /// What leaves it out; `None` for a slot that [`Schedule::next_after`] returns.
    pub left_out: Option<LeftOut>,
}

/// Why a slot is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// [`Calendar::exclude`] has its date; with [`ClockChanges::Once`], the dates of all wall-clock times that meet at it.
    Excluded,
    /// It is before [`Calendar::not_before`].
    TooEarly,
    /// It is after [`Calendar::not_after`].
    TooLate,
    /// It repeats a wall-clock time, which [`ClockChanges::Once`] runs once.
    Repeated,
}

impl Calendar {
    /// The first second that may be a slot.
    pub(crate) fn start(&self) -> Option<i64> {
        self.not_before.map(|t| t.timestamp() + i64::from(t.timestamp_subsec_nanos() > 0))
    }

    /// The last one.
    pub(crate) fn end(&self) -> Option<i64> {
        self.not_after.map(|t| t.timestamp())
    }

    /// What leaves a slot out by its time alone.
    pub(crate) fn out_of_bounds(&self, slot: i64) -> Option<LeftOut> {
        if self.start().is_some_and(|start| slot < start) {
            Some(LeftOut::TooEarly)
        } else {
            self.end().filter(|end| slot > *end).map(|_| LeftOut::TooLate)
        }
    }
}

impl Schedule {
    /// This schedule with a calendar, in place of one that it may have. Its zone is kept. An `@every` may have bounds only.
    #[doc(hidden)]
    pub fn with_calendar(&self, calendar: &Calendar) -> Result<Self, NoCalendar> {
        Composite::new(&self.0, calendar.clone()).map(|composite| Self(Kind::Composite(Arc::new(composite))))
    }

    /// The slots of the schedule's lines in the forty years after `t`, including those that the calendar leaves out.
    #[doc(hidden)]
    pub fn nominal(&self, t: DateTime<Utc>) -> impl Iterator<Item = Nominal> + '_ {
        let all = std::iter::successors(self.next_nominal(t), |nominal| self.next_nominal(nominal.slot));
        all.take_while(move |nominal| (nominal.slot - t).num_seconds() <= HORIZON)
    }

    fn next_nominal(&self, t: DateTime<Utc>) -> Option<Nominal> {
        let Kind::Composite(composite) = &self.0 else {
            return self.next_after(t).map(|slot| Nominal { slot, left_out: None });
        };
        let (slot, left_out) = composite.next_nominal(t.timestamp())?;
        Some(Nominal { slot: later(t, slot - t.timestamp())?, left_out })
    }
}

#[cfg(test)]
mod tests;
