//! The proleptic Gregorian calendar in terms of day numbers.
//!
//! Guarantees: exact for every day that a chrono `DateTime<Utc>` can represent, in constant time, without tables. Day 0 is
//! 1970-01-01. Years are counted from March, so that the leap day comes last.

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

/// Eras added before a division, so that every day in chrono's range is non-negative.
const SHIFT: i64 = 700;

/// The date of a day number.
///
/// Uses the method of Neri and Schneider ("Euclidean affine functions and their application to calendar algorithms", 2022):
/// each unit is the high half of one multiplication, and the low half yields the remainder.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "each part is small and positive")]
pub(super) fn from_days(days: i64) -> Date {
    let quarters = 4 * (days + EPOCH + SHIFT * DAYS_PER_ERA) as u32 + 3;
    let (century, day_of_century) = (quarters / DAYS_PER_ERA as u32, quarters % DAYS_PER_ERA as u32 / 4);
    let years = 2_939_745 * u64::from(4 * day_of_century + 3);
    let (year_of_century, day_of_year) = ((years >> 32) as u32, years as u32 / 2_939_745 / 4);
    let months = 2_141 * day_of_year + 197_913;
    let (month, day) = (months >> 16, (months & 0xffff) / 2_141 + 1);
    // January and February belong to the next year; in a year that begins in March they are months 13 and 14.
    let next_year = day_of_year >= 306;
    let year = i64::from(100 * century + year_of_century + u32::from(next_year)) - SHIFT * 400;
    Date { year, month: if next_year { month - 12 } else { month }, day }
}

/// The number of days in a month; month 1 to 12.
pub(super) fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        // 30 and 31 alternate, but July and August both have 31.
        _ => 30 + ((month ^ (month >> 3)) & 1),
    }
}

/// The day number of a date. A month above 12 overflows into the next year, and a day beyond the month's end into the next
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
mod tests;
