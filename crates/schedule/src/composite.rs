//! A schedule with a calendar.
//!
//! Guarantees: [`Composite::next`] returns the first slot after `t` that some line has and the calendar does not leave out. An
//! instant that several lines or several wall-clock times choose is one slot. It is excluded only if all their dates are. The
//! cost of a search is bounded by the number of lines and by forty years of months; excluded days are skipped without looking
//! at their slots. Nothing is allocated.

use chrono::{DateTime, TimeDelta, Utc};

use crate::calendar::{Calendar, ClockChanges, LeftOut, NoCalendar};
use crate::civil::SECONDS_PER_DAY;
use crate::fields::{Fields, MoreDays, Search};
use crate::parser::line::{At, Lines};
use crate::zone::{Span, Transitions, Zone};
use crate::{Kind, forward};

/// How often a search skips excluded days. One step goes to the next day that is not excluded, or to the next change of the
/// offset.
const MOST_SKIPS: u32 = 1_000;

/// Where slots come from, and what leaves them out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composite {
    source: Source,
    /// Without lines: they are in the source.
    calendar: Calendar,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// `@every`, in seconds.
    Every(i64),
    Lines {
        zone: Zone,
        /// What the other two were made from.
        written: Lines,
        lines: Box<[Line]>,
        /// Sorted, each instant once.
        at: Box<[Single]>,
    },
}

/// A line of fields in its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    fields: Fields<MoreDays>,
    /// Each wall-clock time has one slot.
    once: bool,
}

/// A slot of `@at`. If two of them meet, the one that is not excluded comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Single {
    slot: i64,
    excluded: bool,
}

/// A slot of a line, and the local day on which its fields are: in a gap it may be the day before the slot's.
#[derive(Clone, Copy)]
struct Slot {
    at: i64,
    day: i64,
}

impl Composite {
    /// The slots of a schedule, or of the calendar's lines in its zone, with the calendar.
    pub fn new(schedule: &Kind, mut calendar: Calendar) -> Result<Self, NoCalendar> {
        let (zone, own) = match schedule {
            Kind::Every(delay) => return Self::of_interval(*delay, calendar),
            Kind::Fields(fields) => {
                let line = Fields { zone: Zone::UTC, ..*fields };
                (fields.zone, Lines { fields: [line.into()].into(), at: [].into() })
            }
            Kind::Composite(composite) => match &composite.source {
                Source::Every(delay) => return Self::of_interval(*delay, calendar),
                Source::Lines { zone, written, .. } => (*zone, written.clone()),
            },
        };
        let lines = calendar.lines.take().unwrap_or(own);
        Ok(Self::of_lines(lines, zone, calendar))
    }

    fn of_interval(delay: i64, calendar: Calendar) -> Result<Self, NoCalendar> {
        let bounds_only =
            Calendar { not_before: calendar.not_before, not_after: calendar.not_after, ..Calendar::default() };
        if calendar == bounds_only { Ok(Self { source: Source::Every(delay), calendar }) } else { Err(NoCalendar) }
    }

    fn of_lines(written: Lines, zone: Zone, calendar: Calendar) -> Self {
        let once = calendar.clock_changes == ClockChanges::Once;
        let line =
            |fields: &Fields<MoreDays>| Line { fields: Fields { zone, ..*fields }, once: once && !fields.is_hourly() };
        let lines = written.fields.iter().map(line).collect();
        let slots = written.at.iter().filter_map(|at| slot_at(*at, zone.transitions()));
        let mut at: Vec<Single> =
            slots.map(|slot| Single { slot: slot.at, excluded: calendar.exclude.has(slot.day) }).collect();
        at.sort_unstable();
        at.dedup_by_key(|single| single.slot);
        Self { source: Source::Lines { zone, written, lines, at: at.into() }, calendar }
    }

    /// The zone of the fields.
    pub fn zone(&self) -> Option<Zone> {
        match self.source {
            Source::Every(_) => None,
            Source::Lines { zone, .. } => Some(zone),
        }
    }

    /// The same lines in another zone.
    pub fn in_zone(&self, zone: Zone) -> Self {
        match &self.source {
            Source::Every(_) => self.clone(),
            Source::Lines { written, .. } => Self::of_lines(written.clone(), zone, self.calendar.clone()),
        }
    }

    /// The interval of an `@every`.
    pub fn interval(&self) -> Option<TimeDelta> {
        match self.source {
            Source::Every(delay) => TimeDelta::try_seconds(delay),
            Source::Lines { .. } => None,
        }
    }

    /// The latest instant that the bounds allow until `now`.
    pub fn latest(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.calendar.not_after.map_or(now, |end| end.min(now))
    }

    /// Whether the bounds allow a slot at `t`.
    pub fn is_in_bounds(&self, t: DateTime<Utc>) -> bool {
        self.calendar.out_of_bounds(t.timestamp()).is_none()
    }

    /// The first slot after `t`.
    pub fn next(&self, t: i64) -> Option<i64> {
        let start = self.calendar.start();
        let end = self.calendar.end().unwrap_or(i64::MAX);
        let next = match &self.source {
            Source::Every(delay) => {
                let first = t.checked_add(*delay)?;
                match start.filter(|start| *start > first) {
                    // Whole intervals from `t`, as without the bound.
                    Some(start) => first + (start - first + delay - 1) / delay * delay,
                    None => first,
                }
            }
            Source::Lines { zone, lines, at, .. } => {
                let from = start.map_or(t, |start| t.max(start - 1));
                let transitions = zone.transitions();
                let span = transitions.span(from + 1);
                let of_lines = lines.iter().filter_map(|line| {
                    if self.calendar.exclude.is_empty() {
                        line.next_at(from, &span, transitions)
                    } else {
                        self.first_open(line, line.next(from)?, end)
                    }
                });
                let singles = after(at, from).iter().find(|single| !single.excluded).map(|single| single.slot);
                of_lines.chain(singles).min()?
            }
        };
        (next <= end).then_some(next)
    }

    /// The first slot of a line that is not on an excluded day, beginning with `slot`. Beyond `end`, excluded slots count too.
    fn first_open(&self, line: &Line, mut slot: Slot, end: i64) -> Option<i64> {
        let zone = line.fields.zone.transitions();
        for _ in 0..MOST_SKIPS {
            if slot.at > end || !self.calendar.exclude.has(slot.day) {
                return Some(slot.at);
            }
            let open = self.calendar.exclude.next_open_day(slot.day, |year, month| line.fields.days_in(year, month))?;
            let midnight = open * SECONDS_PER_DAY;
            slot = if line.once {
                // By the wall clock, as a time of the open day may be at the same instant, after a gap over midnight.
                line.next_on_wall_clock(midnight - 1)?
            } else {
                // After a change of the offset, an earlier day may come again.
                line.next((zone.first_instant(midnight) - 1).min(zone.span(slot.at).end - 1).max(slot.at))?
            };
        }
        None
    }

    /// Whether all slots that a line has at one instant are on excluded days. `slot` is the first of them.
    fn excludes(&self, line: &Line, slot: Slot) -> bool {
        if !self.calendar.exclude.has(slot.day) {
            return false;
        }
        // Only a gap over midnight has times of several days at its end.
        let is_over_midnight = line.once && slot.day < day_of(slot.at, line.fields.zone.transitions());
        !is_over_midnight || self.first_open(line, slot, slot.at) != Some(slot.at)
    }

    /// The first slot after `t` of the lines alone, and what leaves it out. The repetitions that [`ClockChanges::Once`] leaves
    /// out are among them.
    pub fn next_nominal(&self, t: i64) -> Option<(i64, Option<LeftOut>)> {
        let (lines, at) = match &self.source {
            Source::Every(delay) => {
                let slot = t.checked_add(*delay)?;
                return Some((slot, self.calendar.out_of_bounds(slot)));
            }
            Source::Lines { lines, at, .. } => (lines, after(at, t)),
        };
        let excluded = |excluded: bool| excluded.then_some(LeftOut::Excluded);
        let of_lines = lines.iter().filter_map(|line| Some((line, line.next(t)?)));
        let of_lines = of_lines.map(|(line, slot)| (slot.at, excluded(self.excludes(line, slot))));
        let repeated = lines.iter().filter(|line| line.once).filter_map(|line| Line { once: false, ..*line }.next(t));
        let repeated = repeated.map(|slot| (slot.at, Some(LeftOut::Repeated)));
        let singles = at.iter().map(|single| (single.slot, excluded(single.excluded))).take(1);
        // Of those at one instant, the least: one that nothing leaves out, else an excluded one.
        let (slot, left_out) = of_lines.chain(repeated).chain(singles).min()?;
        Some((slot, self.calendar.out_of_bounds(slot).or(left_out)))
    }
}

impl Line {
    /// The instant of the first slot after `t`, without the search for its day. `span` is that of the next second in
    /// `transitions`, those of the zone.
    fn next_at(&self, t: i64, span: &Span, transitions: &'static Transitions) -> Option<i64> {
        if self.once {
            return self.next(t).map(|slot| slot.at);
        }
        match self.fields.next_in(t + 1, span, transitions) {
            Search::Found(next) if next > t => Some(next),
            Search::Never => None,
            Search::Found(_) | Search::Stuck => forward(t, |from| self.fields.next(from)),
        }
    }

    /// The first slot after `t`. Of several at one instant, that of the earliest wall-clock time.
    fn next(&self, t: i64) -> Option<Slot> {
        let zone = self.fields.zone.transitions();
        if self.once {
            return self.next_on_wall_clock(zone.latest_local(t));
        }
        let at = forward(t, |from| self.fields.next(from))?;
        Some(Slot { at, day: day_of(at, zone) })
    }

    /// The slot of the first wall-clock time after `local` that has one, if each has one slot.
    fn next_on_wall_clock(&self, mut local: i64) -> Option<Slot> {
        // The wall clock has no gaps and no overlaps.
        let wall_clock = Fields { zone: Zone::UTC, ..self.fields };
        loop {
            let Search::Found(time) = wall_clock.next(local + 1) else { return None };
            if let Some(slot) = slot_of_local(time, self.fields.zone.transitions()) {
                return Some(slot);
            }
            local = (time.div_euclid(SECONDS_PER_DAY) + 1) * SECONDS_PER_DAY - 1;
        }
    }
}

/// The slot of a wall-clock time; `None` on a date that the zone skipped.
fn slot_of_local(local: i64, zone: &Transitions) -> Option<Slot> {
    let (at, day) = (zone.first_instant(local), local.div_euclid(SECONDS_PER_DAY));
    let is_skipped = day_of(at, zone) != day && day_of(zone.first_instant(day * SECONDS_PER_DAY), zone) != day;
    (!is_skipped).then_some(Slot { at, day })
}

fn slot_at(at: At, zone: &Transitions) -> Option<Slot> {
    match at.offset {
        None => slot_of_local(at.local, zone),
        Some(offset) => {
            let at = at.local - i64::from(offset);
            Some(Slot { at, day: day_of(at, zone) })
        }
    }
}

/// The local day of an instant.
fn day_of(t: i64, zone: &Transitions) -> i64 {
    (t + i64::from(zone.span(t).offset)).div_euclid(SECONDS_PER_DAY)
}

/// The single slots after `t`.
fn after(at: &[Single], t: i64) -> &[Single] {
    &at[at.partition_point(|single| single.slot <= t)..]
}
