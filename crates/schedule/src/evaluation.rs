//! All searches for the slots of one CronJob that belong together.
//!
//! Guarantees: they take from one count of steps, which ends them when it is used up, and what one search found is not searched
//! for again by the next.

use std::cell::{RefCell, RefMut};

use chrono::{DateTime, TimeDelta, Utc};

use crate::steps::Steps;
use crate::{Kind, Schedule, forward, later};

/// A schedule during one evaluation.
#[derive(Debug)]
pub struct Evaluation<'s> {
    schedule: &'s Schedule,
    steps: RefCell<Steps>,
}

impl<'s> Evaluation<'s> {
    /// No step is taken yet.
    pub fn of(schedule: &'s Schedule) -> Self {
        Self { schedule, steps: RefCell::new(Steps::new()) }
    }

    /// With so many steps left.
    #[cfg(test)]
    pub(crate) fn limited(schedule: &'s Schedule, steps: u32) -> Self {
        Self { schedule, steps: RefCell::new(Steps::limited(steps)) }
    }

    /// The schedule.
    pub fn schedule(&self) -> &'s Schedule {
        self.schedule
    }

    /// As [`Schedule::next_after`].
    pub fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.next_until(t, DateTime::<Utc>::MAX_UTC)
    }

    /// As [`Schedule::next_until`].
    pub fn next_until(&self, t: DateTime<Utc>, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (steps, last) = (&mut *self.steps(), until.timestamp());
        let next = match &self.schedule.0 {
            Kind::Fields(fields) => forward(t.timestamp(), |from| fields.next_until(from, last, steps)),
            Kind::Every(delay) => t.timestamp().checked_add(*delay),
            Kind::Composite(composite) => composite.next(t.timestamp(), last, steps),
        }?;
        if next > last { None } else { later(t, next - t.timestamp()) }
    }

    /// As [`Schedule::has`].
    pub fn has(&self, t: DateTime<Utc>) -> bool {
        let is_whole = t.timestamp_subsec_nanos() == 0;
        match &self.schedule.0 {
            Kind::Every(_) => is_whole,
            Kind::Composite(composite) if composite.interval().is_some() => is_whole && composite.is_in_bounds(t),
            Kind::Fields(_) | Kind::Composite(_) => self.next_after(t - TimeDelta::seconds(1)) == Some(t),
        }
    }

    /// How many steps were taken, of some ten nanoseconds each: a measure of the cost that does not depend on the machine.
    #[doc(hidden)]
    pub fn steps_taken(&self) -> u32 {
        self.steps().taken()
    }

    pub(crate) fn steps(&self) -> RefMut<'_, Steps> {
        self.steps.borrow_mut()
    }
}
