//! The proleptic Gregorian calendar on day numbers.
//!
//! Guarantees: exact for every day that a chrono `DateTime<Utc>` can show, in constant time, without tables. Day 0 is
//! 1970-01-01. The arithmetic counts years from March, so that a leap day comes last.

/// Seconds in a day without a change of offset.
pub(super) const SECONDS_PER_DAY: i64 = 86_400;

/// Nanoseconds in a second.
pub(super) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Days in four centuries, after which the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// A date; month 1 to 12, day 1 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub year: i64,
    pub month: u32,
    pub day: u32,
}

/// The date of a day number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both remainders are small and positive")]
pub(super) fn from_days(days: i64) -> Date {
    let days = days + EPOCH;
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA) as u32;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    Date { year: era * 400 + i64::from(year_of_era) + i64::from(month <= 2), month, day }
}

/// The day number of a date. A month beyond 12 runs into the next year and a day beyond the month's end into the next
/// month, as in Go's `time.Date`.
pub(super) fn to_days(year: i64, month: u32, day: u32) -> i64 {
    let year = year + i64::from((month - 1) / 12);
    let month = i64::from((month - 1) % 12 + 1);
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + i64::from(day) - 1;
    era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH
}

/// The day of the week, 0 = Sunday.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the remainder is 0 to 6")]
pub(super) fn weekday(days: i64) -> u32 {
    (days + 4).rem_euclid(7) as u32
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate, TimeDelta};

    use super::*;

    #[test]
    fn dates_agree_with_chrono() {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).expect("the epoch exists");
        for days in (-90_000_000..90_000_000).step_by(9_973).chain(-1_000_000..-700_000).chain(0..60_000) {
            let expected = epoch + TimeDelta::days(days);
            let date = from_days(days);
            assert_eq!((date.year, date.month, date.day), (expected.year().into(), expected.month(), expected.day()));
            assert_eq!(to_days(date.year, date.month, date.day), days);
            assert_eq!(weekday(days), expected.weekday().num_days_from_sunday());
        }
    }

    #[test]
    fn months_and_days_run_over() {
        assert_eq!(to_days(2024, 13, 1), to_days(2025, 1, 1));
        assert_eq!(to_days(2025, 2, 31), to_days(2025, 3, 3));
    }
}
