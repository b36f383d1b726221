//! Cron schedules: parsing, the next instant, and missed starts. Pure: no I/O, no clock; `now` is an argument.
//!
//! Guarantees: [`Schedule::parse_standard`] accepts and refuses what robfig/cron v3.0.1's `ParseStandard` does, and
//! [`Schedule::next`] is its `Next` bit for bit, through every gap and overlap of every zone. Nothing here panics or hangs,
//! on any text and at any time from the first year to the last; the cost of a call is bounded and small, however far the
//! answer lies away. Callers that loop use [`Schedule::next_after`], which always moves forward.
//!
//! Where upstream panics or never returns there is an error, or "never": a `TZ=` prefix without a blank after it, and a
//! search that runs into a day that a zone left out (Pacific/Apia, 30 December 2011).

mod civil;
mod fields;
pub mod missed;
mod parser;
mod timing;
mod zone;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Timelike, Utc};

use fields::{Fields, Search};
pub use parser::{ParseError, ParseIntError};
pub use timing::Timing;
pub use zone::{Change, TIME_ZONE_DATA, UnknownZone, Zone, local_zone};

/// A parsed schedule: four words, to be parsed once per change of the spec and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Fields(Fields),
    /// `@every`: whole seconds, at least one.
    Every(i64),
}

/// How often the wrapper looks again from a minute later: more than the longest overlap of any zone, a whole day.
const MAX_RETRIES: u32 = 1_500;

impl Schedule {
    /// Parses five fields, a descriptor (`@daily`, `@every 90s`), or either after `TZ=…` or `CRON_TZ=…`. Without a prefix
    /// the fields are read in `default_zone`, which upstream takes from the process. Matches robfig/cron v3.0.1 parser.go,
    /// `ParseStandard`.
    pub fn parse_standard(spec: &str, default_zone: Zone) -> Result<Schedule, ParseError> {
        parser::parse(spec, default_zone).map(Schedule)
    }

    /// The next instant after `t`, on a whole second; none if nothing matches until the end of the fifth calendar year
    /// after `t`'s, if the answer is beyond chrono's range, or if upstream would never return.
    ///
    /// Matches `SpecSchedule.Next` and `ConstantDelaySchedule.Next` of robfig/cron v3.0.1, whose zero time is `None` here.
    /// Like them it may return `t` itself, or an instant before it, around a change of offset.
    #[inline]
    pub fn next(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.0 {
            Kind::Every(delay) => later(t, *delay),
            Kind::Fields(fields) => match fields.next(t.timestamp() + 1) {
                Search::Found(next) => later(t, next - t.timestamp()),
                Search::Never | Search::Stuck => None,
            },
        }
    }

    /// The next instant that lies strictly after `t`. It is [`Schedule::next`]'s wherever that moves forward. Where it does
    /// not, the search goes on from a minute later, and where upstream would never return, from a day later.
    pub fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut from = t.timestamp();
        for _ in 0..MAX_RETRIES {
            match self.search(from) {
                Search::Found(next) if next > t.timestamp() => return later(t, next - t.timestamp()),
                Search::Found(_) => from += 60,
                Search::Stuck => from += civil::SECONDS_PER_DAY,
                Search::Never => return None,
            }
        }
        None
    }

    /// The zone in which the fields are read; none for `@every`, which knows no calendar.
    pub fn zone(&self) -> Option<Zone> {
        match &self.0 {
            Kind::Fields(fields) => Some(fields.zone),
            Kind::Every(_) => None,
        }
    }

    /// The same fields, read in another zone; an `@every` stays as it is. In UTC the fields are met by the times of a clock
    /// that is never changed.
    #[must_use]
    pub fn in_zone(&self, zone: Zone) -> Self {
        match &self.0 {
            Kind::Fields(fields) => Self(Kind::Fields(Fields { zone, ..*fields })),
            Kind::Every(_) => self.clone(),
        }
    }

    /// Searches from a second on; the fraction of a second that `t` may have had plays no part.
    fn search(&self, t: i64) -> Search {
        match &self.0 {
            Kind::Fields(fields) => fields.next(t + 1),
            Kind::Every(delay) => t.checked_add(*delay).map_or(Search::Never, Search::Found),
        }
    }

    /// The constant distance between two instants, if the schedule has one by construction (`@every`).
    fn interval(&self) -> Option<TimeDelta> {
        match self.0 {
            Kind::Every(delay) => TimeDelta::try_seconds(delay),
            Kind::Fields(_) => None,
        }
    }
}

/// The whole second of `t`, and so many seconds later. None beyond chrono's range.
///
/// The same as by way of Unix seconds; but most schedules fire again soon, and then most of chrono's fields stay.
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

#[cfg(test)]
mod tests;
