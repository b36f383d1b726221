//! The steps that a search takes.
//!
//! Guarantees: the count depends only on the schedule, the instants and what was asked of it before, never on time or on the
//! machine. One count is used for a whole evaluation of a CronJob. When [`Steps::MOST`] are taken, a search ends without a
//! result; no schedule that can be parsed comes near, whatever the time and however many slots wait, as the tests hold.

use crate::zone::Zone;

/// The days of a line, by the set that it shares, with its months and zone.
pub(crate) type DaysOf = (usize, u16, Zone);

/// A place of a walk: the instant, and whether the smaller units have been reset.
pub(crate) type WalkPosition = (i64, bool);

/// How many answers of each kind are remembered: the arrivals of five years of days whose times are all skipped, and some.
const REMEMBERED: usize = 8;

/// What a search may still do. A step is a month in which a day is looked for, a move of the walk, or a line on one day: some
/// ten nanoseconds each, and some tens in years beyond the tables of zones.
///
/// It also remembers what the search for one line found and the next one with the same days would find.
#[derive(Debug)]
pub(crate) struct Steps {
    taken: u32,
    most: u32,
    /// `None` until there is something to remember, so that most searches do not pay for it.
    found: Option<Found>,
}

/// What was found for one line.
#[derive(Debug, Default)]
struct Found {
    /// Where walks came from, and to which day.
    arrivals: Newest<(DaysOf, WalkPosition), WalkPosition>,
    /// Beyond which months days were looked for, by their first day, and what was found.
    months: Newest<(DaysOf, i64), (i64, bool)>,
}

/// The newest answers, of which `oldest` is replaced next.
#[derive(Debug)]
struct Newest<Q, A> {
    answers: [Option<(Q, A)>; REMEMBERED],
    oldest: usize,
}

impl<Q, A> Default for Newest<Q, A> {
    fn default() -> Self {
        Self { answers: [const { None }; REMEMBERED], oldest: 0 }
    }
}

impl<Q: PartialEq, A: Copy> Newest<Q, A> {
    fn get(&self, question: &Q) -> Option<A> {
        self.answers.iter().flatten().find(|(known, _)| known == question).map(|(_, answer)| *answer)
    }

    fn add(&mut self, question: Q, answer: A) {
        self.answers[self.oldest] = Some((question, answer));
        self.oldest = (self.oldest + 1) % REMEMBERED;
    }
}

impl Steps {
    /// The most steps of an evaluation.
    pub const MOST: u32 = 1_000_000;

    /// None taken yet.
    pub fn new() -> Self {
        Self::limited(Self::MOST)
    }

    pub fn limited(most: u32) -> Self {
        Self { taken: 0, most, found: None }
    }

    /// The place to which a walk for these days came from `place`.
    pub fn arrival(&self, days: DaysOf, place: WalkPosition) -> Option<WalkPosition> {
        self.found.as_ref()?.arrivals.get(&(days, place))
    }

    pub fn remember_arrival(&mut self, days: DaysOf, from: WalkPosition, to: WalkPosition) {
        self.found.get_or_insert_default().arrivals.add((days, from), to);
    }

    /// What a search beyond the month with that first day finds for these days. What was found lately is not searched for again.
    pub fn later_month(
        &mut self,
        days: DaysOf,
        first: i64,
        search: impl FnOnce(&mut Self) -> (i64, bool),
    ) -> (i64, bool) {
        if let Some(known) = self.found.as_ref().and_then(|found| found.months.get(&(days, first))) {
            self.take();
            return known;
        }
        let found = search(self);
        self.found.get_or_insert_default().months.add((days, first), found);
        found
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
mod tests;
