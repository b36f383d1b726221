//! The days that the two day fields of a schedule match.
//!
//! Guarantees: [`DayFields`] matches as `dayMatches` of robfig's spec.go does: both fields must match if either has a star,
//! else one is enough. [`MoreDays`] without its own items matches the same days. [`DayTable`] has the days
//! of either. All answer in constant time, and the first and the last of them in a few nanoseconds.

use std::fmt;
use std::sync::Arc;

use super::Fields;
use crate::civil::{self, Date};

/// A set of days that repeats with the length and the first weekday of a month.
pub(crate) trait Days: Clone + fmt::Debug + PartialEq {
    /// Whether it has the day. `weekday` is that day's, 0 = Sunday.
    fn matches(&self, date: Date, weekday: u32) -> bool;

    /// Its days, as bits 1 to 31, in a month with that length and first weekday.
    fn of_month(&self, length: u32, first_weekday: u32) -> u32;

    /// Whether it has every day of every month.
    fn are_all(&self) -> bool;

    /// Whether it has no day in any month, because of an empty field.
    fn is_empty(&self) -> bool;

    /// The same for sets that are one; `None` for one that is not shared.
    fn key(&self) -> Option<usize> {
        None
    }
}

/// The day fields of robfig/cron.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DayFields {
    /// Bits 1 to 31, and [`DayFields::DOM_STAR`].
    pub dom: u32,
    /// Bits 0 (Sunday) to 6, and [`DayFields::DOW_STAR`].
    pub dow: u8,
}

impl DayFields {
    /// The day-of-month field has a star.
    pub const DOM_STAR: u32 = 1;
    /// The day-of-week field has a star.
    pub const DOW_STAR: u8 = 1 << 7;

    pub fn has_star(self) -> bool {
        self.dom & Self::DOM_STAR != 0 || self.dow & Self::DOW_STAR != 0
    }

    /// The days of its weekdays in a month. Bits beyond the month's length may be set.
    pub fn weekdays_of_month(self, first_weekday: u32) -> u32 {
        // Repeats the week five and a half times with bit 0 as Sunday, then shifts it so that bit 1 is the first day's weekday.
        let weeks = u64::from(self.dow & !Self::DOW_STAR) * 0x0008_1020_4081;
        #[allow(clippy::cast_possible_truncation, reason = "only as many bits as a month has days are wanted")]
        let weekdays = (weeks >> ((first_weekday + 6) % 7)) as u32;
        weekdays
    }
}

/// The bits 1 to `length`.
fn within(length: u32) -> u32 {
    u32::MAX >> (31 - length) & !1
}

impl Days for DayFields {
    fn matches(&self, date: Date, weekday: u32) -> bool {
        let dom = self.dom >> date.day & 1 == 1;
        let dow = self.dow >> weekday & 1 == 1;
        if self.has_star() { dom && dow } else { dom || dow }
    }

    fn of_month(&self, length: u32, first_weekday: u32) -> u32 {
        let weekdays = self.weekdays_of_month(first_weekday);
        let days = if self.has_star() { self.dom & weekdays } else { self.dom | weekdays };
        days & within(length)
    }

    fn are_all(&self) -> bool {
        let days = self.dom | Self::DOM_STAR == u32::MAX;
        let weekdays = self.dow | Self::DOW_STAR == u8::MAX;
        if self.has_star() { days && weekdays } else { days || weekdays }
    }

    fn is_empty(&self) -> bool {
        let days = self.dom & !Self::DOM_STAR != 0;
        let weekdays = self.dow & !Self::DOW_STAR != 0;
        if self.has_star() { !(days && weekdays) } else { !(days || weekdays) }
    }
}

/// Day fields that may also count from the end of the month, name the nearest working day, or count weekdays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MoreDays {
    /// The items of robfig/cron, and the stars.
    pub plain: DayFields,
    /// Bit n: `L-n`; bit 0: `L`.
    pub last: u32,
    /// Bit n: `nW`; bit 0: `LW`.
    pub nearest: u32,
    /// Bit 7 (k - 1) + d: the k-th weekday d (`d#k`), for k from 1 to 5. Bit 35 + d: the last one (`dL`).
    pub counted: u64,
}

impl MoreDays {
    /// Whether it has only items of robfig/cron.
    fn is_plain(self) -> bool {
        self.last == 0 && self.nearest == 0 && self.counted == 0
    }

    /// The days of the day-of-month field.
    fn days(&self, length: u32, first_weekday: u32) -> u32 {
        let mut days = self.plain.dom;
        for n in bits(self.last.into()).filter(|n| *n < length) {
            days |= 1 << (length - n);
        }
        for n in bits(self.nearest.into()).filter(|n| *n <= length) {
            let day = if n == 0 { length } else { n };
            days |= 1 << nearest_working_day(day, length, first_weekday);
        }
        days
    }

    /// The days of the day-of-week field.
    fn weekdays(&self, length: u32, first_weekday: u32) -> u32 {
        let mut days = self.plain.weekdays_of_month(first_weekday);
        for bit in bits(self.counted) {
            let (count, weekday) = (bit / 7, bit % 7);
            let first = 1 + (weekday + 7 - first_weekday) % 7;
            let day = if count == 5 { first + (length - first) / 7 * 7 } else { first + 7 * count };
            // The fifth one may be missing.
            if day <= length {
                days |= 1 << day;
            }
        }
        days
    }
}

impl From<DayFields> for MoreDays {
    fn from(plain: DayFields) -> Self {
        Self { plain, last: 0, nearest: 0, counted: 0 }
    }
}

impl From<Fields> for Fields<MoreDays> {
    fn from(fields: Fields) -> Self {
        let Fields { minute, hour, days, month, zone } = fields;
        Self { minute, hour, days: days.into(), month, zone }
    }
}

impl Days for MoreDays {
    fn matches(&self, date: Date, weekday: u32) -> bool {
        if self.is_plain() {
            return self.plain.matches(date, weekday);
        }
        self.of_month(civil::days_in_month(date.year, date.month), first_weekday(date, weekday)) >> date.day & 1 == 1
    }

    fn of_month(&self, length: u32, first_weekday: u32) -> u32 {
        if self.is_plain() {
            return self.plain.of_month(length, first_weekday);
        }
        let (days, weekdays) = (self.days(length, first_weekday), self.weekdays(length, first_weekday));
        let both = if self.plain.has_star() { days & weekdays } else { days | weekdays };
        both & within(length)
    }

    fn are_all(&self) -> bool {
        self.plain.are_all()
    }

    fn is_empty(&self) -> bool {
        let days = self.plain.dom & !DayFields::DOM_STAR != 0 || self.last != 0 || self.nearest != 0;
        let weekdays = self.plain.dow & !DayFields::DOW_STAR != 0 || self.counted != 0;
        if self.plain.has_star() { !(days && weekdays) } else { !(days || weekdays) }
    }
}

/// The days of day fields in a month of each length and first weekday, which are computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DayTable {
    months: Arc<[u32; MONTHS]>,
    are_all: bool,
    is_empty: bool,
}

/// The different months: four lengths, and seven weekdays on which each begins.
const MONTHS: usize = 28;

impl DayTable {
    pub fn of(days: &impl Days) -> Self {
        let mut months = [0; MONTHS];
        for length in 28..=31 {
            for first_weekday in 0..7 {
                months[Self::place(length, first_weekday)] = days.of_month(length, first_weekday);
            }
        }
        Self { months: Arc::new(months), are_all: days.are_all(), is_empty: days.is_empty() }
    }

    fn place(length: u32, first_weekday: u32) -> usize {
        ((length - 28) * 7 + first_weekday) as usize
    }
}

impl Days for DayTable {
    fn matches(&self, date: Date, weekday: u32) -> bool {
        self.of_month(civil::days_in_month(date.year, date.month), first_weekday(date, weekday)) >> date.day & 1 == 1
    }

    #[inline]
    fn of_month(&self, length: u32, first_weekday: u32) -> u32 {
        self.months[Self::place(length, first_weekday)]
    }

    fn are_all(&self) -> bool {
        self.are_all
    }

    fn key(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.months).addr())
    }

    fn is_empty(&self) -> bool {
        self.is_empty
    }
}

/// The weekday on which a date's month begins.
fn first_weekday(date: Date, weekday: u32) -> u32 {
    (weekday + 36 - date.day) % 7
}

/// The Monday-to-Friday nearest to a day within its month.
fn nearest_working_day(day: u32, length: u32, first_weekday: u32) -> u32 {
    match (first_weekday + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

/// The numbers of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(bit)
    })
}
