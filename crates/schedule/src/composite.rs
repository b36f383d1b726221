//! A schedule with a calendar.
//!
//! Guarantees: [`Composite::next`] returns the first slot after `t` that some line has and the calendar does not leave out. An
//! instant that several lines or several wall-clock times choose is one slot. It is excluded only if all their dates are.
//! [`Composite::next`] allocates nothing.
//!
//! A search has a bounded number of steps: a day that is not excluded is looked for once for all lines, in forty years at most,
//! and only the lines that have the day are asked for its slots. It ends after [`MOST_BARREN`] such days without a slot, which
//! only a gap of the clock can make. Forty years hold every recurrence of the calendar, 29 February on a given weekday included.

use std::sync::OnceLock;

use chrono::{DateTime, TimeDelta, Utc};

use crate::calendar::{Calendar, ClockChanges, LeftOut, NoCalendar};
use crate::civil::SECONDS_PER_DAY;
use crate::exclusions::OpenDays;
use crate::fields::{DayTable, Fields, Search};
use crate::parser::line::{At, Lines};
use crate::steps::Steps;
use crate::zone::{Span, Transitions, Zone};
use crate::{Kind, forward};

/// How far a search looks, in seconds.
pub(crate) const HORIZON: i64 = 40 * 366 * SECONDS_PER_DAY;
/// The days that are not excluded and have no slot, after which a search ends: a day of March that is a given weekday comes again
/// after eleven years at most.
const MOST_BARREN: u32 = 12;
/// 2100-01-01, as the beginning of a search for any slot at all.
const LATEST_ORIGIN: i64 = 4_102_444_800;

/// Where slots come from, and what leaves them out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composite {
    source: Source,
    /// Without lines: they are in the source.
    calendar: Calendar,
    /// The days of the lines that are not excluded every year. `None` if nothing is excluded.
    open: Option<OpenDays>,
    never_fires: Kept,
}

/// What follows from the rest, once it was asked for.
#[derive(Clone, Debug, Default)]
struct Kept(OnceLock<bool>);

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

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
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    fields: Fields<DayTable>,
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
            Kind::Fields(fields) => (fields.zone, Lines::of(*fields)),
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
        if calendar == bounds_only {
            Ok(Self { source: Source::Every(delay), calendar, open: None, never_fires: Kept::default() })
        } else {
            Err(NoCalendar)
        }
    }

    fn of_lines(written: Lines, zone: Zone, calendar: Calendar) -> Self {
        let once = calendar.clock_changes == ClockChanges::Once;
        let line = |fields: &Fields<DayTable>| Line {
            fields: Fields { zone, ..fields.clone() },
            once: once && !fields.is_hourly(),
        };
        // A line that never fires would be searched for five years, each time.
        let lines: Box<[Line]> = written.fields.iter().filter(|fields| fields.has_days()).map(line).collect();
        let slots = written.at.iter().filter_map(|at| slot_at(*at, zone.transitions()));
        let mut at: Vec<Single> =
            slots.map(|slot| Single { slot: slot.at, excluded: calendar.exclude.has(slot.day) }).collect();
        at.sort_unstable();
        at.dedup_by_key(|single| single.slot);
        let open = (!calendar.exclude.is_empty()).then(|| {
            let days = |month, length, first_weekday| {
                lines.iter().fold(0, |days, line| days | line.fields.days_in(month, length, first_weekday))
            };
            OpenDays::new(&calendar.exclude, days)
        });
        let source = Source::Lines { zone, written, lines, at: at.into() };
        Self { source, calendar, open, never_fires: Kept::default() }
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

    /// The first slot after `t`, if it is not after `until`.
    pub fn next(&self, t: i64, until: i64, steps: &mut Steps) -> Option<i64> {
        let start = self.calendar.start();
        let end = self.calendar.end().map_or(until, |end| end.min(until));
        let next = match &self.source {
            Source::Every(delay) => {
                let first = t.checked_add(*delay)?;
                match start.filter(|start| *start > first) {
                    // Whole intervals from `t`, as without the bound.
                    Some(start) => first + (start - first + delay - 1) / delay * delay,
                    None => first,
                }
            }
            Source::Lines { lines, at, zone, .. } => {
                let from = start.map_or(t, |start| t.max(start - 1));
                let single = after(at, from).iter().find(|single| !single.excluded).map(|single| single.slot);
                // Beyond the tables of zones every month is a search of its own; only a clock goes there, and no bound.
                let of_lines = if from <= t.max(LATEST_ORIGIN) {
                    self.next_of_lines(lines, *zone, from, end.min(from.saturating_add(HORIZON)), steps)
                } else {
                    None
                };
                of_lines.into_iter().chain(single).min()?
            }
        };
        (next <= end).then_some(next)
    }

    /// Whether there is no slot at all, whatever the time. Excluded dates of forty years from 1970 on, or from the first
    /// bound on, look like those of all years.
    pub fn never_fires(&self, steps: &mut Steps) -> bool {
        *self.never_fires.0.get_or_init(|| match &self.source {
            Source::Every(_) => self.next(-LATEST_ORIGIN, i64::MAX, steps).is_none(),
            Source::Lines { at, .. } => {
                let is_allowed =
                    |single: &Single| !single.excluded && self.calendar.out_of_bounds(single.slot).is_none();
                let origin = self.calendar.start().unwrap_or(0).clamp(0, LATEST_ORIGIN) - 1;
                !at.iter().any(is_allowed) && self.next(origin, i64::MAX, steps).is_none()
            }
        })
    }

    fn next_of_lines(&self, lines: &[Line], zone: Zone, from: i64, last: i64, steps: &mut Steps) -> Option<i64> {
        let transitions = zone.transitions();
        if let Some(open) = &self.open {
            return self.next_open(lines, open, transitions, from, last, steps);
        }
        let span = transitions.span(from + 1);
        lines.iter().filter_map(|line| line.next_at(from, last, &span, transitions, steps)).min()
    }

    /// The first slot after `from` that is not on an excluded day. None after `last` is looked for.
    fn next_open(
        &self,
        lines: &[Line],
        open: &OpenDays,
        zone: &Transitions,
        mut from: i64,
        last: i64,
        steps: &mut Steps,
    ) -> Option<i64> {
        let last_day = day_of(last, zone);
        let mut slot = loop {
            let (mut slot, is_open) = self.earliest(lines, from, last, steps)?;
            if is_open {
                return Some(slot.at);
            }
            let day = open.next_after(&self.calendar.exclude, slot.day, last_day, steps);
            // Where the clock is set back over midnight, an earlier day comes again, possibly before that day.
            let change = zone.span(slot.at).end;
            let comes_again = change < slot.at + 2 * SECONDS_PER_DAY
                && day_of(change, zone) < day_of(change - 1, zone)
                && day.is_none_or(|day| zone.first_instant(day * SECONDS_PER_DAY) > change);
            if !comes_again || steps.are_taken() {
                slot.day = day?;
                break slot;
            }
            from = slot.at.max(change - 1);
        };
        for _ in 0..MOST_BARREN {
            if let Some(found) = first_on(lines, slot, zone, steps) {
                return Some(found);
            }
            slot.day = open.next_after(&self.calendar.exclude, slot.day, last_day, steps)?;
        }
        None
    }

    /// The first slot after `from` of any line, and whether it is on a day that is not excluded. Of several days that meet at
    /// its instant, the first. A slot after `last` may be missing.
    fn earliest(&self, lines: &[Line], from: i64, last: i64, steps: &mut Steps) -> Option<(Slot, bool)> {
        let mut found: Option<(Slot, bool)> = None;
        for line in lines {
            let Some(slot) = line.next(from, last, steps) else { continue };
            match &mut found {
                Some((first, _)) if first.at < slot.at => {}
                Some((first, is_open)) if first.at == slot.at => {
                    *is_open = *is_open || self.is_open(line, slot, steps);
                    first.day = first.day.min(slot.day);
                }
                _ => found = Some((slot, self.is_open(line, slot, steps))),
            }
        }
        found
    }

    /// Whether one of the days that a line has at an instant is not excluded. `slot` is on the first of them.
    fn is_open(&self, line: &Line, mut slot: Slot, steps: &mut Steps) -> bool {
        let exclude = &self.calendar.exclude;
        let mut is_open = !exclude.has(slot.day);
        // Only a gap over midnight has times of several days at its end.
        while !is_open && line.once && slot.day < day_of(slot.at, line.fields.zone.transitions()) {
            match line.next_on_wall_clock((slot.day + 1) * SECONDS_PER_DAY - 1, steps) {
                Some(next) if next.at == slot.at => slot = next,
                _ => return false,
            }
            is_open = !exclude.has(slot.day);
        }
        is_open
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
        let steps = &mut Steps::new();
        let mut found = Vec::with_capacity(2 * lines.len());
        for line in lines {
            if let Some(slot) = line.next(t, i64::MAX, steps) {
                found.push((slot.at, excluded(!self.is_open(line, slot, steps))));
            }
            if line.once
                && let Some(slot) = (Line { once: false, ..line.clone() }).next(t, i64::MAX, steps)
            {
                found.push((slot.at, Some(LeftOut::Repeated)));
            }
        }
        let singles = at.iter().map(|single| (single.slot, excluded(single.excluded))).take(1);
        // Of those at one instant, the least: one that nothing leaves out, else an excluded one.
        let (slot, left_out) = found.into_iter().chain(singles).min()?;
        Some((slot, self.calendar.out_of_bounds(slot).or(left_out)))
    }
}

impl Line {
    /// The instant of the first slot after `t`, without the search for its day; one after `last` may be missing. `span` is
    /// that of the next second in `transitions`, those of the zone.
    fn next_at(
        &self,
        t: i64,
        last: i64,
        span: &Span,
        transitions: &'static Transitions,
        steps: &mut Steps,
    ) -> Option<i64> {
        if self.once {
            return self.next(t, last, steps).map(|slot| slot.at);
        }
        steps.take();
        match self.fields.next_in(t + 1, last, span, transitions, steps) {
            Search::Found(next) if next > t => Some(next),
            Search::Never => self.next_on_rare_day(t, last, steps),
            Search::Found(_) | Search::Stuck(_) => self.next(t, last, steps).map(|slot| slot.at),
        }
    }

    /// The first slot after `t`. Of several at one instant, that of the earliest wall-clock time. One after `last` may be
    /// missing.
    fn next(&self, t: i64, last: i64, steps: &mut Steps) -> Option<Slot> {
        let zone = self.fields.zone.transitions();
        if self.once {
            return self.next_on_wall_clock(zone.latest_local(t), steps);
        }
        steps.take();
        let found = forward(t, |from| self.fields.next_until(from, last, steps));
        let at = found.or_else(|| self.next_on_rare_day(t, last, steps))?;
        Some(Slot { at, day: day_of(at, zone) })
    }

    /// The first slot on the first day after the five years in which upstream looks.
    fn next_on_rare_day(&self, t: i64, last: i64, steps: &mut Steps) -> Option<i64> {
        let zone = self.fields.zone.transitions();
        let day = self.rare_day(day_of(t, zone), day_of(last.min(t.saturating_add(HORIZON)), zone), steps)?;
        let end = zone.first_instant((day + 1) * SECONDS_PER_DAY);
        forward(zone.first_instant(day * SECONDS_PER_DAY) - 1, |from| self.fields.next_until(from, end, steps))
    }

    /// The first day of the line after the fifth year from `day` on, where upstream gives up: 29 February is on a given weekday
    /// every 28 or 40 years. `None` if it is after `last`, or if there is one before.
    fn rare_day(&self, day: i64, last: i64, steps: &mut Steps) -> Option<i64> {
        let mut tried = self.fields.day_after(day, steps);
        while !tried.fires && tried.day <= last && !steps.are_taken() {
            tried = self.fields.day_after(tried.day - 1, steps);
            if tried.fires {
                return Some(tried.day).filter(|day| *day <= last);
            }
        }
        None
    }

    /// The slot of the first wall-clock time after `local` that has one, if each has one slot.
    fn next_on_wall_clock(&self, mut local: i64, steps: &mut Steps) -> Option<Slot> {
        // The wall clock has no gaps and no overlaps.
        let wall_clock = Fields { zone: Zone::UTC, ..self.fields.clone() };
        while steps.take() {
            let mut found = wall_clock.next(local + 1, steps);
            if found == Search::Never {
                let today = local.div_euclid(SECONDS_PER_DAY);
                let day = self.rare_day(today, today + HORIZON / SECONDS_PER_DAY, steps)?;
                found = wall_clock.next(day * SECONDS_PER_DAY, steps);
            }
            let Search::Found(time) = found else { return None };
            if let Some(slot) = slot_of_local(time, self.fields.zone.transitions()) {
                return Some(slot);
            }
            local = (time.div_euclid(SECONDS_PER_DAY) + 1) * SECONDS_PER_DAY - 1;
        }
        None
    }
}

/// The first slot of the lines on the day of `after`, and after its instant.
fn first_on(lines: &[Line], after: Slot, zone: &Transitions, steps: &mut Steps) -> Option<i64> {
    let midnight = after.day * SECONDS_PER_DAY;
    let start = after.at.max(zone.first_instant(midnight) - 1);
    let end = zone.first_instant(midnight + SECONDS_PER_DAY) - 1;
    let of_line = |line: &Line| {
        let slot = if line.once {
            line.next_on_wall_clock(zone.latest_local(after.at).max(midnight - 1), steps)?
        } else {
            let slot = line.next(start, end, steps)?;
            // Where the clock is set back over midnight, the day before comes again, and then the rest of this day.
            let again = midnight - i64::from(zone.span(slot.at).offset) - 1;
            if slot.day < after.day { line.next(again.max(slot.at), end, steps)? } else { slot }
        };
        (slot.day == after.day).then_some(slot.at)
    };
    lines.iter().filter(|line| line.fields.fires_on(after.day)).filter_map(of_line).min()
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
