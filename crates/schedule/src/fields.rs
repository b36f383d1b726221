//! The search for the next instant of a five-field schedule.
//!
//! Guarantees: [`Fields::next`] equals `SpecSchedule.Next` of robfig/cron v3.0.1 exactly, including its behaviour around
//! daylight saving time. It always returns: where upstream loops forever, the answer is [`Search::Stuck`], as soon as the walk is
//! where it was before. The cost grows by at most a few steps for each month until the answer; all are counted.
//!
//! Upstream moves an instant forward one unit at a time (month, day, hour, minute, second) and starts over whenever a unit
//! wraps around. Where a step of a month or a day lands depends on the zone, since a midnight may not exist. The walk therefore
//! affects the result and is kept. While the offset is known to stay the same, many steps become one addition. If no step of
//! the walk can land on an irregular local time, which is the usual case, `direct` computes the answer without walking, and a walk
//! that goes on from a midnight leaps over the days without a match.

use super::civil::{self, Date, SECONDS_PER_DAY};
use super::steps::{DaysOf, Steps, WalkPosition};
use super::zone::{Span, Transitions, Zone};

mod days;
mod direct;

pub(super) use days::{DayFields, DayTable, Days, MoreDays};

/// The values of a schedule's fields, one bit each, and its zone. Seconds are always zero in this grammar. [`Fields::judged`]
/// completes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fields<D = DayFields> {
    /// Bits 0 to 59; empty if no instant matches, because of any field.
    pub minute: u64,
    /// Bits 0 to 23.
    pub hour: u32,
    /// Day of month and day of week.
    pub days: D,
    /// Bits 1 to 12, and [`Fields::EVERY_DAY`].
    pub month: u16,
    /// The zone in which the fields are interpreted.
    pub zone: Zone,
}

/// The values that the fields of a schedule name, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValues {
    /// From 0 to 59.
    pub minutes: Vec<u32>,
    /// From 0 to 23.
    pub hours: Vec<u32>,
    /// Days of the month, from 1 to 31.
    pub days: Vec<u32>,
    /// From 1 to 12.
    pub months: Vec<u32>,
    /// From 0, which is Sunday, to 6.
    pub weekdays: Vec<u32>,
    /// Whether a day that one of the two day fields names is enough; otherwise both must name it.
    pub either_day: bool,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// The next instant, in Unix seconds.
    Found(i64),
    /// No instant matches until the end of the fifth year, or until the last instant that was asked for.
    Never,
    /// Upstream's walk would loop forever around this instant.
    Stuck(i64),
}

/// At this distance (in seconds) from a change of offset, a local time is unambiguous and `time.Date` finds it.
const MARGIN: i64 = 2 * SECONDS_PER_DAY;
const HOUR: i64 = 3_600;
const MINUTE: i64 = 60;

impl Fields {
    /// The values of all fields.
    pub fn values(&self) -> FieldValues {
        let listed = |bits: u64| (0..u64::BITS).filter(|bit| bits >> bit & 1 == 1).collect();
        FieldValues {
            minutes: listed(self.minute),
            hours: listed(self.hour.into()),
            days: listed((self.days.dom & !DayFields::DOM_STAR).into()),
            months: listed((self.month & !Self::EVERY_DAY).into()),
            weekdays: listed((self.days.dow & !DayFields::DOW_STAR).into()),
            either_day: !self.days.has_star(),
        }
    }
}

impl<D: Days> Fields<D> {
    /// The schedule matches every day of every month.
    const EVERY_DAY: u16 = 1;

    /// Sets the values that derive from the fields.
    pub fn judged(mut self) -> Self {
        // A field of commas alone parses to an empty one.
        if self.hour == 0 || self.month == 0 || self.days.is_empty() {
            self.minute = 0;
        }
        if self.days.are_all() && self.month | Self::EVERY_DAY == 0x1fff {
            self.month |= Self::EVERY_DAY;
        }
        self
    }

    /// Whether the hour field has all 24 hours.
    pub fn is_hourly(&self) -> bool {
        self.hour == 0x00ff_ffff
    }

    /// The matching days of a month of a length and a first weekday, as bits 1 to 31.
    pub fn days_in(&self, month: u32, length: u32, first_weekday: u32) -> u32 {
        if self.month >> month & 1 == 0 || self.minute == 0 { 0 } else { self.days.of_month(length, first_weekday) }
    }

    /// Whether it has a day in any month of any year.
    pub fn has_days(&self) -> bool {
        let has_days = |month, length| (0..7).any(|first_weekday| self.days_in(month, length, first_weekday) != 0);
        (1..=12).any(|month| has_days(month, civil::days_in_month(2001, month))) || has_days(2, 29)
    }

    /// The first match at or after `from`, in Unix seconds. The caller has already moved to the next whole second.
    pub fn next(&self, from: i64, steps: &mut Steps) -> Search {
        self.next_until(from, i64::MAX, steps)
    }

    /// The same, where no match after `until` is wanted; it may be returned nevertheless.
    pub fn next_until(&self, from: i64, until: i64, steps: &mut Steps) -> Search {
        let transitions = self.zone.transitions();
        self.next_in(from, until, &transitions.span(from), transitions, steps)
    }

    /// The same; `span` is that of `from` in `transitions`, those of the zone.
    #[inline]
    pub fn next_in(
        &self,
        from: i64,
        until: i64,
        span: &Span,
        transitions: &'static Transitions,
        steps: &mut Steps,
    ) -> Search {
        if self.minute == 0 {
            return Search::Never;
        }
        self.direct(from, span, transitions, steps).unwrap_or_else(|| self.walk(from, until, *span, transitions, steps))
    }

    /// The walk as upstream does it.
    #[cold]
    fn walk(&self, from: i64, until: i64, span: Span, transitions: &'static Transitions, steps: &mut Steps) -> Search {
        self.go(Walk::new(transitions, span, from, steps), until)
    }

    fn go(&self, mut walk: Walk<'_>, until: i64) -> Search {
        // Around a change of offset the walk goes back by less than a day.
        let until = until.saturating_add(SECONDS_PER_DAY);
        let year_limit = walk.date.year + 5;
        let is_over = |walk: &Walk<'_>| walk.date.year > year_limit || walk.t > until || walk.steps.are_taken();
        // Where the search for the next matching day began.
        let mut from = walk.place();
        loop {
            if is_over(&walk) {
                return Search::Never;
            }
            if walk.is_stuck(Unit::All) {
                return Search::Stuck(walk.t);
            }
            let has_arrived = walk.leaps && self.arrive_as_before(&mut walk);
            let is_endless = walk.leaps && !has_arrived && walk.floored && !self.leap(&mut walk);
            if is_endless || is_over(&walk) {
                return Search::Never;
            }
            // Each seek is false if its unit wrapped around; then the larger units are checked again.
            if !(has_arrived || self.seek_month(&mut walk, until) && self.seek_day(&mut walk, until)) {
                continue;
            }
            self.remember_arrival(from, &mut walk);
            if self.seek_hour(&mut walk) && self.seek_minute(&mut walk) && Self::seek_second(&mut walk) {
                return Search::Found(walk.t);
            }
            from = walk.place();
        }
    }

    /// Moves to the day to which another line with these days came from the same place; `false` if none is known.
    fn arrive_as_before(&self, walk: &mut Walk<'_>) -> bool {
        let known = self.shared_days().and_then(|days| walk.steps.arrival(days, walk.place()));
        let Some((t, floored)) = known else { return false };
        walk.move_to(t);
        walk.floored = floored;
        true
    }

    fn remember_arrival(&self, from: WalkPosition, walk: &mut Walk<'_>) {
        let to = walk.place();
        if let Some(days) = self.shared_days().filter(|_| from != to) {
            walk.steps.remember_arrival(days, from, to);
        }
    }

    /// Which days it has, if other lines may share them.
    pub(super) fn shared_days(&self) -> Option<DaysOf> {
        self.days.key().map(|days| (days, self.month, self.zone))
    }

    /// From a midnight, moves to that of the next matching day, if no step on the way can land on an irregular local time.
    /// `false` if no day matches.
    fn leap(&self, walk: &mut Walk<'_>) -> bool {
        if walk.second_of_day != 0 || walk.t < walk.span.calm_start || self.fires_on(walk.days) {
            return true;
        }
        match self.later_midnight(walk.days, &walk.span, walk.transitions, walk.steps) {
            Some(Search::Found(midnight)) => walk.move_to(midnight),
            Some(Search::Never | Search::Stuck(_)) => return false,
            None => {}
        }
        true
    }

    fn seek_month(&self, walk: &mut Walk<'_>, until: i64) -> bool {
        while self.month >> walk.date.month & 1 == 0 {
            if walk.is_stuck(Unit::Month) || walk.t > until {
                return false;
            }
            if !walk.floored {
                walk.floored = true;
                walk.set_local(civil::to_days(walk.date.year, walk.date.month, 1), 0);
            }
            walk.set_local(civil::to_days(walk.date.year, walk.date.month + 1, walk.date.day), walk.second_of_day);
            if walk.date.month == 1 {
                return false;
            }
        }
        true
    }

    fn seek_day(&self, walk: &mut Walk<'_>, until: i64) -> bool {
        while !self.days.matches(walk.date, civil::weekday(walk.days)) {
            if walk.is_stuck(Unit::Day) || walk.t > until {
                return false;
            }
            if !walk.floored {
                walk.floored = true;
                walk.set_local(walk.days, 0);
            }
            let ahead = self.days_ahead(walk) * SECONDS_PER_DAY;
            if walk.second_of_day == 0 && walk.keeps_offset(ahead + MARGIN) {
                walk.advance(ahead);
            } else {
                walk.set_local(walk.days + 1, walk.second_of_day);
                // Upstream's correction for a midnight that does not exist.
                match walk.second_of_day / HOUR {
                    0 => {}
                    hour @ 13.. => walk.advance((24 - hour) * HOUR),
                    hour => walk.advance(-hour * HOUR),
                }
            }
            if walk.date.day == 1 {
                return false;
            }
        }
        true
    }

    /// The number of days to the next match in this month, else to the first day of the next month.
    fn days_ahead(&self, walk: &Walk<'_>) -> i64 {
        let Date { year, month, day } = walk.date;
        let length = civil::days_in_month(year, month);
        let first = walk.days + 1 - i64::from(day);
        let after = self.days.of_month(length, civil::weekday(first)) >> day >> 1;
        i64::from(if after == 0 { length + 1 - day } else { after.trailing_zeros() + 1 })
    }

    fn seek_hour(&self, walk: &mut Walk<'_>) -> bool {
        loop {
            let hour = walk.second_of_day / HOUR;
            if self.hour >> hour & 1 == 1 {
                return true;
            }
            if walk.is_stuck(Unit::Hour) {
                return false;
            }
            if !walk.floored {
                walk.floored = true;
                walk.set_local(walk.days, hour * HOUR);
            }
            let hour = walk.second_of_day / HOUR;
            walk.advance_units(HOUR, bits_ahead(self.hour.into(), hour, 24));
            if walk.second_of_day < HOUR {
                return false;
            }
        }
    }

    fn seek_minute(&self, walk: &mut Walk<'_>) -> bool {
        loop {
            let minute = walk.second_of_day / MINUTE % 60;
            if self.minute >> minute & 1 == 1 {
                return true;
            }
            if walk.is_stuck(Unit::Minute) {
                return false;
            }
            if !walk.floored {
                walk.floored = true;
                // Whole minutes of UTC, whatever the zone's seconds are: `Truncate` ignores zones.
                walk.advance(-walk.t.rem_euclid(MINUTE));
            }
            let minute = walk.second_of_day / MINUTE % 60;
            walk.advance_units(MINUTE, bits_ahead(self.minute, minute, 60));
            if walk.second_of_day / MINUTE % 60 == 0 {
                return false;
            }
        }
    }

    fn seek_second(walk: &mut Walk<'_>) -> bool {
        if walk.second_of_day % MINUTE == 0 {
            return true;
        }
        walk.floored = true;
        while walk.second_of_day % MINUTE != 0 && !walk.is_stuck(Unit::Second) {
            walk.advance_units(1, MINUTE - walk.second_of_day % MINUTE);
        }
        false
    }
}

/// The distance from `from` to the next set bit, or to the end.
fn bits_ahead(bits: u64, from: i64, end: i64) -> i64 {
    let above = (bits >> from) >> 1;
    if above == 0 { end - from } else { i64::from(above.trailing_zeros()) + 1 }
}

/// An instant that moves through a zone. The local date and time always correspond to `t`.
struct Walk<'s> {
    transitions: &'static Transitions,
    t: i64,
    /// The span of constant offset that holds `t`.
    span: Span,
    /// The local day number, and its date.
    days: i64,
    date: Date,
    second_of_day: i64,
    /// Upstream's `added`: whether the smaller units have been reset to their start.
    floored: bool,
    /// Whether it moves over many days at once.
    leaps: bool,
    steps: &'s mut Steps,
    /// How often [`Self::is_stuck`] looked, and where the walk was when it last did so for the 2^n-th time.
    looks: u32,
    seen: Option<(i64, Unit)>,
    stuck: bool,
}

/// The loops of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    All,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

impl<'s> Walk<'s> {
    fn new(transitions: &'static Transitions, span: Span, t: i64, steps: &'s mut Steps) -> Self {
        let local = t + i64::from(span.offset);
        let days = local.div_euclid(SECONDS_PER_DAY);
        let second_of_day = local.rem_euclid(SECONDS_PER_DAY);
        let date = civil::from_days(days);
        let (looks, seen, stuck) = (0, None, false);
        Self { transitions, t, span, days, date, second_of_day, floored: false, leaps: true, steps, looks, seen, stuck }
    }

    /// What the walk does next depends on this and on the fields.
    fn place(&self) -> WalkPosition {
        (self.t, self.floored)
    }

    /// Whether the walk loops forever: it is at the same instant in the same loop as before, and what it does next depends on
    /// nothing else. Every turn of every loop asks.
    fn is_stuck(&mut self, turn: Unit) -> bool {
        if !self.floored || self.stuck {
            return self.stuck;
        }
        // Brent's algorithm: the place to compare with moves on at powers of two, so any circle is found.
        let place = Some((self.t, turn));
        self.stuck = self.seen == place || self.steps.are_taken();
        self.looks += 1;
        if self.looks.is_power_of_two() {
            self.seen = place;
        }
        self.stuck
    }

    /// Whether the offset stays the same until `seconds` later.
    fn keeps_offset(&self, seconds: i64) -> bool {
        self.t + seconds < self.span.end
    }

    /// Advances by `count` units at once if the offset stays the same, else by one.
    fn advance_units(&mut self, unit: i64, count: i64) {
        let all = unit * count;
        self.advance(if self.keeps_offset(all) { all } else { unit });
    }

    fn advance(&mut self, seconds: i64) {
        self.move_to(self.t + seconds);
    }

    /// Moves to a local time, as Go's `time.Date` interprets it.
    fn set_local(&mut self, days: i64, second_of_day: i64) {
        let local = days * SECONDS_PER_DAY + second_of_day;
        let clear = self.span.reads_as_itself(local);
        self.move_to(if clear {
            local - i64::from(self.span.offset)
        } else {
            self.transitions.instant_of_local(local)
        });
    }

    fn move_to(&mut self, t: i64) {
        self.steps.take();
        self.t = t;
        if t < self.span.start || t >= self.span.end {
            self.span = self.transitions.span(t);
        }
        let local = t + i64::from(self.span.offset);
        let days = local.div_euclid(SECONDS_PER_DAY);
        self.second_of_day = local.rem_euclid(SECONDS_PER_DAY);
        if days != self.days {
            self.days = days;
            self.date = civil::from_days(days);
        }
    }
}
