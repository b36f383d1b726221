//! Cron schedules: parsing, the next instant, and missed starts. Pure: no I/O, no clock; `now` is an argument.
//!
//! Guarantees: [`Schedule::parse_standard`] accepts and rejects the same specs as robfig/cron v3.0.1's `ParseStandard`.
//! [`Schedule::next`] equals its `Next` exactly, through every gap and overlap of every zone. No function panics or hangs, for
//! any text and any time that chrono can represent. Callers that loop use [`Schedule::next_after`], which always moves forward.
//!
//! A search takes a bounded number of steps, however far away the answer is, whatever its author wrote. The bound follows from
//! the text: a calendar has at most [`Lines::MOST`] different lines. A search with a calendar looks at forty years, which hold
//! every recurrence of a calendar. [`Evaluation`] counts.
//!
//! ```
//! use chrono::{TimeZone, Utc};
//! use k8s_cron::{Schedule, Zone};
//!
//! let every_day = Schedule::parse_standard("TZ=Europe/Berlin 30 2 * * *", Zone::UTC)?;
//! // On the last Sunday in March, clocks in Berlin go from 2:00 to 3:00: robfig/cron has no run that day.
//! let evening_before = Utc.with_ymd_and_hms(2027, 3, 27, 20, 0, 0).unwrap();
//! assert_eq!(every_day.next(evening_before), Some(Utc.with_ymd_and_hms(2027, 3, 29, 0, 30, 0).unwrap()));
//! # Ok::<(), k8s_cron::ParseError>(())
//! ```
//!
//! Two cases in which upstream panics or loops forever return an error or "never": a `TZ=` prefix without a blank after it, and
//! a search that reaches a day that a zone skipped (Pacific/Apia, 30 December 2011).
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::too_many_lines))]
#![warn(missing_docs)]

mod calendar;
mod civil;
mod composite;
mod evaluation;
mod exclusions;
mod fields;
pub mod missed;
mod parser;
mod steps;
mod timing;
mod zone;

use std::sync::Arc;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Timelike, Utc};

use composite::Composite;
pub use evaluation::Evaluation;
use fields::{Fields, Search};
pub use parser::{ParseError, ParseIntError};
use steps::Steps;
pub use timing::Timing;
pub use zone::{TIME_ZONE_DATA, UnknownZone, Zone, local_zone};
// What this project's annotations and commands need beyond upstream's schedules; may change with any release.
#[doc(hidden)]
pub use {
    calendar::{Calendar, ClockChanges, LeftOut, NoCalendar, Nominal},
    exclusions::{ExcludeError, Exclusions},
    fields::FieldValues,
    parser::line::{LineError, Lines},
    parser::parse_duration,
    zone::{Change, zone_names},
};

/// A parsed schedule of four words. Parse it once for each change of the spec and keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Fields(Fields),
    /// `@every`: whole seconds, at least one.
    Every(i64),
    /// With a [`Calendar`].
    Composite(Arc<Composite>),
}

/// How often a search is moved on where it does not move forward.
const MAX_RETRIES: u32 = 16;
/// More than the longest overlap of any zone, a whole day, in minutes.
const LONGEST_OVERLAP: i64 = 1_500;

impl Schedule {
    /// Parses five fields, a descriptor (`@daily`, `@every 90s`), or either after `TZ=…` or `CRON_TZ=…`. Without a prefix the
    /// fields are in `default_zone`; upstream uses the process's zone. Matches robfig/cron v3.0.1 parser.go, `ParseStandard`.
    pub fn parse_standard(spec: &str, default_zone: Zone) -> Result<Schedule, ParseError> {
        parser::parse(spec, default_zone).map(Schedule)
    }

    /// The next instant after `t`, on a whole second. Returns `None` if nothing matches until the end of the fifth calendar
    /// year after `t`'s, if the answer is beyond chrono's range, or if upstream would loop forever.
    ///
    /// Matches `SpecSchedule.Next` and `ConstantDelaySchedule.Next` of robfig/cron v3.0.1, whose zero time is `None` here. Like
    /// them it may return `t` itself, or an earlier instant, around a change of offset. With a [`Calendar`] it never does.
    #[inline]
    pub fn next(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.0 {
            Kind::Every(delay) => later(t, *delay),
            Kind::Fields(fields) => match fields.next(t.timestamp() + 1, &mut Steps::new()) {
                Search::Found(next) => later(t, next - t.timestamp()),
                Search::Never | Search::Stuck(_) => None,
            },
            Kind::Composite(_) => self.next_after(t),
        }
    }

    /// The next instant strictly after `t`. It equals [`Schedule::next`] if that moves forward. If it does not, the search
    /// continues from a minute later, and where upstream would loop forever, from a day later.
    pub fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        Evaluation::of(self).next_after(t)
    }

    /// The next instant strictly after `t` and not after `until`. Nothing later is looked at.
    pub fn next_until(&self, t: DateTime<Utc>, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        Evaluation::of(self).next_until(t, until)
    }

    /// Whether `t` is an instant of the schedule. Those of `@every` depend on where they are counted from, so any whole
    /// second may be one.
    pub fn has(&self, t: DateTime<Utc>) -> bool {
        Evaluation::of(self).has(t)
    }

    /// The zone of the fields; `None` for `@every`, which uses no calendar.
    pub fn zone(&self) -> Option<Zone> {
        match &self.0 {
            Kind::Fields(fields) => Some(fields.zone),
            Kind::Every(_) => None,
            Kind::Composite(composite) => composite.zone(),
        }
    }

    /// The same fields in another zone; `@every` stays as it is. UTC has no changes of offset.
    #[must_use]
    pub fn in_zone(&self, zone: Zone) -> Self {
        match &self.0 {
            Kind::Fields(fields) => Self(Kind::Fields(Fields { zone, ..*fields })),
            Kind::Every(_) => self.clone(),
            Kind::Composite(composite) => Self(Kind::Composite(Arc::new(composite.in_zone(zone)))),
        }
    }

    /// The values of the fields; `None` for `@every`, and with a [`Calendar`].
    #[doc(hidden)]
    pub fn values(&self) -> Option<FieldValues> {
        match &self.0 {
            Kind::Fields(fields) => Some(fields.values()),
            Kind::Every(_) | Kind::Composite(_) => None,
        }
    }

    /// The constant interval between instants, if the schedule has one by construction (`@every`).
    pub fn interval(&self) -> Option<TimeDelta> {
        match &self.0 {
            Kind::Every(delay) => TimeDelta::try_seconds(*delay),
            Kind::Fields(_) => None,
            Kind::Composite(composite) => composite.interval(),
        }
    }

    /// The latest instant that the schedule may have until `now`.
    fn latest(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        match &self.0 {
            Kind::Fields(_) | Kind::Every(_) => now,
            Kind::Composite(composite) => composite.latest(now),
        }
    }
}

/// The first answer after `t` of a search that may stand still or move back around a change of offset. The search gets the
/// first second that it may return. Where it stands still it is asked again from a minute later, and where upstream would loop
/// forever, from whole days later.
fn forward(t: i64, mut search: impl FnMut(i64) -> Search) -> Option<i64> {
    // The usual case.
    let mut found = search(t + 1);
    if let Search::Found(next) = found
        && next > t
    {
        return Some(next);
    }
    let mut from = t;
    // Days and stretches of standing still alternate seldom.
    for _ in 0..MAX_RETRIES {
        match found {
            Search::Found(next) if next > t => return Some(next),
            Search::Never => return None,
            Search::Found(_) => (from, found) = past_overlap(t, from, &mut search)?,
            Search::Stuck(at) => {
                let days = (at - from + civil::SECONDS_PER_DAY - 1).div_euclid(civil::SECONDS_PER_DAY);
                from += days.max(1) * civil::SECONDS_PER_DAY;
                found = search(from + 1);
            }
        }
    }
    None
}

/// The first of the whole minutes after `from` from which the search does not find `t` or an earlier instant, and what it
/// finds. It is one of the minutes of an overlap, in which a search that begins earlier goes back further.
fn past_overlap(t: i64, from: i64, search: &mut impl FnMut(i64) -> Search) -> Option<(i64, Search)> {
    let mut after = |minutes: i64| {
        let found = search(from + 60 * minutes + 1);
        (!matches!(found, Search::Found(next) if next <= t)).then_some(found)
    };
    // After `still` minutes the search stands still; after `ahead` it found `result`.
    let (mut still, mut ahead) = (0, 1);
    let mut result = loop {
        match after(ahead) {
            Some(found) => break found,
            None if ahead > LONGEST_OVERLAP => return None,
            None => (still, ahead) = (ahead, ahead * 2),
        }
    };
    while ahead - still > 1 {
        let middle = still.midpoint(ahead);
        match after(middle) {
            Some(found) => (ahead, result) = (middle, found),
            None => still = middle,
        }
    }
    Some((from + 60 * ahead, result))
}

/// Truncates `t` to a whole second and adds `seconds`. Returns `None` beyond chrono's range.
///
/// Faster than by way of Unix seconds: most schedules fire again soon, and then most of chrono's fields stay the same.
#[inline]
fn later(t: DateTime<Utc>, seconds: i64) -> Option<DateTime<Utc>> {
    let t = t.naive_utc();
    let second = i64::from(t.time().num_seconds_from_midnight()).checked_add(seconds)?;
    let (date, second) = if (0..civil::SECONDS_PER_DAY).contains(&second) {
        (t.date(), second)
    } else {
        let days = second.div_euclid(civil::SECONDS_PER_DAY);
        let size = Days::new(days.unsigned_abs());
        let date = if days < 0 { t.date().checked_sub_days(size) } else { t.date().checked_add_days(size) };
        (date?, second - days * civil::SECONDS_PER_DAY)
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than a day")]
    let time = NaiveTime::from_num_seconds_from_midnight_opt(second as u32, 0)?;
    Some(date.and_time(time).and_utc())
}

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
