//! The steps that a search takes.
//!
//! Guarantees: the count depends only on the schedule and the instants, never on time or on the machine. One count is used for
//! a whole evaluation of a CronJob. When [`Steps::MOST`] are taken, a search ends without a result; no schedule that can be
//! parsed comes near, whatever the time, as the tests hold.

/// What a search may still do. A step is a month in which a day is looked for, a move of the walk, or a line on one day: some
/// ten nanoseconds each, and some tens in years beyond the tables of zones.
#[derive(Debug)]
pub(crate) struct Steps {
    taken: u32,
    most: u32,
}

impl Steps {
    /// The most steps of an evaluation.
    pub const MOST: u32 = 1_000_000;

    /// None taken yet.
    pub fn new() -> Self {
        Self::limited(Self::MOST)
    }

    pub fn limited(most: u32) -> Self {
        Self { taken: 0, most }
    }

    /// Counts one. `false` if there are no more.
    #[inline]
    pub fn take(&mut self) -> bool {
        let has_more = self.taken < self.most;
        self.taken += u32::from(has_more);
        has_more
    }

    /// Whether all are taken.
    pub fn are_taken(&self) -> bool {
        self.taken == self.most
    }

    /// How many were taken.
    pub fn taken(&self) -> u32 {
        self.taken
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
