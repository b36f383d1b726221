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
mod tests;
