//! The answer of the walk without walking.
//!
//! Guarantee: an answer, if there is one, equals that of the walk. There is none if a step of the walk might land on a local
//! time that does not exist, exists twice, or begins inside a minute; then the walk is needed.
//!
//! The walk takes these steps: to the local midnight of a day (through months and days), to the beginning of the local hour it
//! starts in, and then by whole hours and minutes of elapsed time. While each midnight on the way exists once, changes of
//! offset between them do not affect the steps to midnights. The other steps need a constant offset.

use super::{Days, Fields, HOUR, MINUTE, Search};
use crate::civil::{self, Date, SECONDS_PER_DAY};
use crate::steps::Steps;
use crate::zone::{Span, Transitions};

impl<D: Days> Fields<D> {
    /// The first match at or after `from`, which lies in `span`. The schedule must have a match.
    #[inline]
    pub(super) fn direct(
        &self,
        from: i64,
        span: &Span,
        transitions: &'static Transitions,
        steps: &mut Steps,
    ) -> Option<Search> {
        if from < span.calm_start {
            return None;
        }
        let offset = i64::from(span.offset);
        let local = from + offset;
        let day = local.div_euclid(SECONDS_PER_DAY);
        let second = local.rem_euclid(SECONDS_PER_DAY);
        let every_day = self.month & Self::EVERY_DAY != 0;
        if !(every_day || self.fires_on(day)) {
            return self.on_later_day(day, span, transitions, steps);
        }
        // The walk looks up the hour's beginning as a local time when it leaves the hour.
        let hour_is_clear = span.reads_as_itself(local - second % HOUR);
        // The first whole minute from here on, possibly the first of the next day.
        let minute = (second + 59) / MINUTE;
        let Some(minute_of_day) = self.time_of_day(minute) else {
            let ends_clear = hour_is_clear && (day + 1) * SECONDS_PER_DAY - offset < span.end;
            return if ends_clear { self.on_later_day(day, span, transitions, steps) } else { None };
        };
        let found = day * SECONDS_PER_DAY + minute_of_day * MINUTE - offset;
        let same_hour = minute_of_day / 60 == second / HOUR;
        ((same_hour || hour_is_clear) && found < span.end).then_some(Search::Found(found))
    }

    /// Whether it has a day, by its number.
    pub fn fires_on(&self, day: i64) -> bool {
        let date = civil::from_days(day);
        self.month >> date.month & 1 == 1 && self.days.matches(date, civil::weekday(day))
    }

    /// The first matching minute of a day from `minute` on; both count from midnight.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1440")]
    fn time_of_day(&self, minute: i64) -> Option<i64> {
        let (hour, minute) = (minute as u32 / 60, minute as u32 % 60);
        let this_hour = self.hour >> hour & 1;
        let minutes = self.minute >> minute;
        if this_hour != 0 && minutes != 0 {
            return Some(i64::from(hour * 60 + minute + minutes.trailing_zeros()));
        }
        let hours = self.hour >> hour >> 1;
        let later = hour + 1 + hours.trailing_zeros();
        (hours != 0).then(|| i64::from(later * 60 + self.minute.trailing_zeros()))
    }

    /// The first match on a day after `day`; `span` gives the offset of `day`.
    fn on_later_day(
        &self,
        day: i64,
        span: &Span,
        transitions: &'static Transitions,
        steps: &mut Steps,
    ) -> Option<Search> {
        let Search::Found(midnight) = self.later_midnight(day, span, transitions, steps)? else {
            return Some(Search::Never);
        };
        let end = if midnight < span.end { span.end } else { transitions.span(midnight).end };
        let minute_of_day = self.hour.trailing_zeros() * 60 + self.minute.trailing_zeros();
        let found = midnight + i64::from(minute_of_day) * MINUTE;
        (found < end).then_some(Search::Found(found))
    }

    /// The midnight at which the walk arrives on the first matching day after `day`; `span` gives the offset of `day`.
    pub(super) fn later_midnight(
        &self,
        day: i64,
        span: &Span,
        transitions: &'static Transitions,
        steps: &mut Steps,
    ) -> Option<Search> {
        let next = if self.month & Self::EVERY_DAY != 0 {
            DayAfter { earliest: day, day: day + 1, fires: true }
        } else {
            self.day_after(day, steps)
        };
        let offset = i64::from(span.offset);
        // The margin of one day exceeds any offset.
        let calm = (next.earliest - 1) * SECONDS_PER_DAY - offset >= span.calm_start
            && (next.day + 1) * SECONDS_PER_DAY - offset < span.calm_end;
        if !calm {
            return None;
        }
        if !next.fires {
            return Some(Search::Never);
        }
        let local = next.day * SECONDS_PER_DAY;
        let reads = span.reads_as_itself(local);
        Some(Search::Found(if reads { local - offset } else { transitions.instant_of_local(local) }))
    }

    /// The first day after `day` that it has, in the rest of that year and the five years after it.
    pub fn day_after(&self, day: i64, steps: &mut Steps) -> DayAfter {
        let Date { year, month, day: day_of_month } = civil::from_days(day);
        let first = day + 1 - i64::from(day_of_month);
        let mut earliest = first;
        if self.month >> month & 1 == 1 {
            earliest = day;
            let days = self.days.of_month(civil::days_in_month(year, month), civil::weekday(first));
            let later = days >> day_of_month >> 1;
            if later != 0 {
                return DayAfter { earliest, day: day + 1 + i64::from(later.trailing_zeros()), fires: true };
            }
        }
        let search = |steps: &mut Steps| self.day_of_later_month(year, month, steps);
        let (day, fires) = match self.shared_days() {
            Some(days) => steps.later_month(days, first, search),
            None => search(steps),
        };
        DayAfter { earliest, day, fires }
    }

    /// The first day that it has in a month after this one, and `true`; else the first day after all searched years.
    fn day_of_later_month(&self, mut year: i64, mut month: u32, steps: &mut Steps) -> (i64, bool) {
        let year_limit = year + 5;
        loop {
            let later = self.month >> month >> 1;
            if later == 0 {
                year += 1;
                month = (self.month & !Self::EVERY_DAY).trailing_zeros();
            } else {
                month += 1 + later.trailing_zeros();
            }
            if year > year_limit || !steps.take() {
                return (civil::to_days(year, 1, 1), false);
            }
            let first = civil::to_days(year, month, 1);
            let days = self.days.of_month(civil::days_in_month(year, month), civil::weekday(first));
            if days != 0 {
                return (first - 1 + i64::from(days.trailing_zeros()), true);
            }
        }
    }
}

/// The result of a walk through days.
pub struct DayAfter {
    /// The first day at whose midnight the walk arrives.
    earliest: i64,
    /// The day on which it ends.
    pub day: i64,
    /// Whether that day matches; otherwise it is the first day after all searched years.
    pub fires: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chrono_tz::TZ_VARIANTS;
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::fields::Walk;
    use crate::{Kind, Schedule, Zone};

    /// Specs with long walks, at the hours and days of changes of offset.
    const SPECS: &[&str] = &[
        "* * * * *",
        "*/5 * * * *",
        "0 * * * *",
        "59 * * * *",
        "0 0 * * *",
        "30 0 * * *",
        "15,45 2 * * *",
        "30 1-3 * * *",
        "59 23 * * *",
        "0 0,23 * * 0",
        "0 1 1 * *",
        "*/20 0-3 1-14 * *",
        "0 12 29-31 * 5",
        "45 23 31 12 *",
        "0 0 1 1 *",
        "0 3 29 2 *",
        "0 0 31 2 *",
        "5 4 * 3,4,10,11 6",
        "30 2 8-14 3 *",
        "30 2 * 3,10 0",
        "5-55/10 0,2 25-31 3,9 *",
    ];

    /// Tests every zone at instants around its own changes of offset and at others.
    #[test]
    fn direct_answer_and_the_walk_that_leaps_equal_the_walk_by_steps() {
        let mut rng = StdRng::seed_from_u64(7);
        let (mut direct, mut walked) = (0, 0);
        for tz in TZ_VARIANTS {
            let transitions = Zone::load(tz.name(), Zone::UTC).unwrap().transitions();
            for _ in 0..400 {
                let anywhere = rng.random_range(-4_000_000_000..6_000_000_000);
                let near = transitions.span(rng.random_range(-1_000_000_000..4_100_000_000)).start;
                let from = match rng.random_range(0..4) {
                    0 => anywhere,
                    1 => near.max(-4_000_000_000) + rng.random_range(-40 * SECONDS_PER_DAY..40 * SECONDS_PER_DAY),
                    _ => near.max(-4_000_000_000) + rng.random_range(-100_000..100_000),
                };
                let from = if rng.random() { from - from.rem_euclid(60) } else { from };
                let spec = format!("TZ={tz} {}", SPECS.choose(&mut rng).unwrap());
                let Kind::Fields(fields) = Schedule::parse_standard(&spec, Zone::UTC).unwrap().0 else { panic!() };
                let span = transitions.span(from);
                let steps = &mut Steps::new();
                let mut by_steps = Walk::new(transitions, span, from, steps);
                by_steps.leaps = false;
                let by_steps = fields.go(by_steps, i64::MAX);
                assert_eq!(fields.walk(from, i64::MAX, span, transitions, steps), by_steps, "{spec} from {from}");
                let Some(found) = fields.direct(from, &span, transitions, steps) else {
                    walked += 1;
                    continue;
                };
                direct += 1;
                assert_eq!(found, by_steps, "{spec} from {from}");
            }
        }
        assert!(direct > walked, "{direct} direct, {walked} walked");
    }
}
