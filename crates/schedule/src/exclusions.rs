//! Dates on which a schedule has no slots.
//!
//! Guarantees: whether a date is excluded costs the same for any number of rules, but for a logarithm. The search for a day
//! that is not excluded looks at each month once.

use chrono::{Datelike, NaiveDate};

use crate::civil::{self, Date};
use crate::fields::DayFields;
use crate::parser::line::has_shape;
use crate::steps::Steps;

/// Weekdays, days of every year and dates, parsed from a list such as `Sat,Sun,12-24/01-06,2026-12-31`. The default excludes
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Bits 0 (Sunday) to 6.
    weekdays: u8,
    /// Days of every year: for each month, bits 1 to 31.
    annual: [u32; 12],
    /// Dates, as ranges of day numbers that are sorted and apart. Both ends are excluded.
    dates: Box<[(i64, i64)]>,
}

/// An item is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExcludeError {
    /// The item is neither a weekday nor a date nor a range.
    #[error("{0:?} is neither a weekday, a day of the year (12-25), a date (2026-12-24) nor a range of two days")]
    Form(String),
    /// No calendar has the date.
    #[error("{0:?} is no date")]
    NoDate(String),
    /// The range ends before it begins.
    #[error("{0:?} ends before it begins")]
    Reversed(String),
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The ranges, sorted and apart.
fn joined(mut dates: Vec<(i64, i64)>) -> Box<[(i64, i64)]> {
    dates.sort_unstable();
    dates.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1 + 1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
    dates.into()
}

/// One end of a range.
enum Day {
    Annual(u32, u32),
    Date(i64),
}

impl Exclusions {
    /// Parses a list, separated by commas, of `Sat`, `12-25`, `2026-12-24`, and ranges with a slash: `12-24/01-06` in every year,
    /// `2026-12-24/2027-01-01` once. Both ends of a range are excluded.
    pub fn parse(text: &str) -> Result<Self, ExcludeError> {
        let mut found = Self::default();
        let mut dates = Vec::new();
        for item in text.split(',').map(|item| item.trim_matches(' ')) {
            if let Some(weekday) = WEEKDAYS.iter().position(|name| name.eq_ignore_ascii_case(item)) {
                found.weekdays |= 1 << weekday;
                continue;
            }
            let (first, last) = item.split_once('/').unwrap_or((item, item));
            match (parse_day(first, item)?, parse_day(last, item)?) {
                (Day::Annual(month, day), Day::Annual(last_month, last_day)) => {
                    found.exclude_every_year((month, day), (last_month, last_day));
                }
                (Day::Date(first), Day::Date(last)) if first > last => {
                    return Err(ExcludeError::Reversed(item.to_owned()));
                }
                (Day::Date(first), Day::Date(last)) => dates.push((first, last)),
                _ => return Err(ExcludeError::Form(item.to_owned())),
            }
        }
        found.dates = joined(dates);
        Ok(found)
    }

    /// What this or `other` excludes.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let annual = std::array::from_fn(|month| self.annual[month] | other.annual[month]);
        let dates = self.dates.iter().chain(&other.dates).copied().collect();
        Self { weekdays: self.weekdays | other.weekdays, annual, dates: joined(dates) }
    }

    /// Whether nothing is excluded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The last excluded date; `None` if some are excluded in every year, or none at all.
    pub fn last_date(&self) -> Option<NaiveDate> {
        let is_endless = self.weekdays != 0 || self.annual.iter().any(|days| *days != 0);
        let (_, last) = self.dates.last().filter(|_| !is_endless)?;
        let Date { year, month, day } = civil::from_days(*last);
        NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
    }

    /// Whether the date is excluded.
    pub fn contains(&self, date: NaiveDate) -> bool {
        let [month, day] = [date.month(), date.day()];
        self.of_month(date.year().into(), month) >> day & 1 == 1
    }

    /// Whether a day number is excluded.
    pub(crate) fn has(&self, day: i64) -> bool {
        let Date { year, month, day } = civil::from_days(day);
        self.of_month(year, month) >> day & 1 == 1
    }

    /// The excluded days of a month, as bits 1 to 31. Other bits may be set.
    fn of_month(&self, year: i64, month: u32) -> u32 {
        let first = civil::to_days(year, month, 1);
        let from = self.dates.partition_point(|(_, last)| *last < first);
        let length = civil::days_in_month(year, month);
        self.every_year(month, civil::weekday(first)) | dates_in(&self.dates[from..], first, length)
    }

    /// Those that do not depend on the year.
    fn every_year(&self, month: u32, first_weekday: u32) -> u32 {
        let weekdays = DayFields { dom: 0, dow: self.weekdays };
        self.annual[month as usize - 1] | weekdays.weekdays_of_month(first_weekday)
    }

    /// Excludes days of every year; a range that ends before it begins goes on into the next year.
    fn exclude_every_year(&mut self, (first_month, first): (u32, u32), (last_month, last): (u32, u32)) {
        let from = u32::MAX << first;
        let to = u32::MAX >> (31 - last);
        if first_month == last_month && first <= last {
            self.annual[first_month as usize - 1] |= from & to;
            return;
        }
        self.annual[first_month as usize - 1] |= from;
        self.annual[last_month as usize - 1] |= to;
        let mut month = first_month % 12;
        while month != last_month - 1 {
            self.annual[month as usize] = u32::MAX;
            month = (month + 1) % 12;
        }
    }
}

/// The days of a month within ranges of day numbers, none of which ends before the month.
fn dates_in(ranges: &[(i64, i64)], first: i64, length: u32) -> u32 {
    let length = i64::from(length);
    let mut days = 0;
    for (start, end) in ranges.iter().take_while(|(start, _)| *start < first + length) {
        let (start, end) = ((start - first).max(0) + 1, (end - first).min(length - 1) + 1);
        days |= u32::MAX << start & u32::MAX >> (31 - end);
    }
    days
}

/// The days of a schedule that are not excluded every year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenDays {
    /// Bits 1 to 31, by the month, which is 13 for a February of 29 days, and the weekday on which it begins.
    months: Box<[[u32; 7]; 13]>,
    is_empty: bool,
}

impl OpenDays {
    /// Of the days that `days_in` has in a month of a length with a first weekday.
    pub fn new(exclusions: &Exclusions, days_in: impl Fn(u32, u32, u32) -> u32) -> Self {
        let mut months = Box::new([[0; 7]; 13]);
        for (at, shapes) in (1..).zip(months.iter_mut()) {
            let (month, year) = if at == 13 { (2, 2000) } else { (at, 2001) };
            for (first_weekday, days) in (0..).zip(shapes) {
                let all = days_in(month, civil::days_in_month(year, month), first_weekday);
                *days = all & !exclusions.every_year(month, first_weekday);
            }
        }
        let is_empty = months.iter().flatten().all(|days| *days == 0);
        Self { months, is_empty }
    }

    /// The first day after `day` and not after `last` that is not excluded.
    pub fn next_after(&self, exclusions: &Exclusions, day: i64, last: i64, steps: &mut Steps) -> Option<i64> {
        let Date { mut year, mut month, day: mut after } = civil::from_days(day);
        let mut first = day + 1 - i64::from(after);
        let mut ranges = &exclusions.dates[exclusions.dates.partition_point(|(_, last)| *last < first)..];
        while !self.is_empty && first <= last && steps.take() {
            let length = civil::days_in_month(year, month);
            let shapes = &self.months[if length == 29 { 12 } else { month as usize - 1 }];
            let days = shapes[civil::weekday(first) as usize] >> after >> 1 << after << 1;
            let open = if days == 0 { 0 } else { days & !dates_in(ranges, first, length) };
            if open != 0 {
                return Some(first - 1 + i64::from(open.trailing_zeros())).filter(|day| *day <= last);
            }
            first += i64::from(length);
            (year, month, after) = if month == 12 { (year + 1, 1, 0) } else { (year, month + 1, 0) };
            while let [(_, end), rest @ ..] = ranges
                && *end < first
            {
                ranges = rest;
                steps.take();
            }
        }
        None
    }
}

fn parse_day(text: &str, item: &str) -> Result<Day, ExcludeError> {
    let no_date = || ExcludeError::NoDate(item.to_owned());
    let is_annual = has_shape(text, "dd-dd");
    if !is_annual && !has_shape(text, "dddd-dd-dd") {
        return Err(ExcludeError::Form(item.to_owned()));
    }
    // 29 February is a day of the year.
    let date = if is_annual { format!("2000-{text}") } else { text.to_owned() };
    let date: NaiveDate = date.parse().map_err(|_| no_date())?;
    Ok(if is_annual {
        Day::Annual(date.month(), date.day())
    } else {
        Day::Date(civil::to_days(date.year().into(), date.month(), date.day()))
    })
}

#[cfg(test)]
mod tests;
