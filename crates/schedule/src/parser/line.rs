//! Schedules of several lines, with days that robfig/cron does not know.
//!
//! Guarantees: a line of robfig's five fields or of a descriptor has the meaning that `ParseStandard` gives it. Every text
//! parses or returns an error that names the line. In addition:
//!
//! - Day of month: `L` (the last day), `L-3` (three days before it), `15W` (the Monday to Friday nearest to the 15th, in the
//!   same month), `LW` (the last Monday to Friday). A day that a month lacks is no day of it.
//! - Day of week: `5L` (the last Friday of the month), `FRI#3` (the third).
//! - `@at 2027-03-01T09:00` is one slot, a local time. With an offset (`+01:00`, `Z`) it is an instant.
//!
//! A line has no `@every`, which counts from the last run, and no `TZ=`: all lines have the zone of their CronJob.

use std::collections::{HashMap, HashSet};

use chrono::NaiveDateTime;

use super::{
    DOM, DOW, Field, HOUR, MINUTE, MONTH, ParseError, five_fields, pack_days, parse_descriptor, parse_field, parse_int,
    parse_range, parse_value,
};
use crate::Kind;
use crate::fields::{DayTable, Fields, MoreDays};
use crate::zone::Zone;

/// The lines of a schedule, without a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Five fields and descriptors; the zone in them is UTC.
    pub(crate) fields: Box<[Fields<DayTable>]>,
    /// The lines with `@at`.
    pub(crate) at: Box<[At]>,
}

/// A single time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// Seconds since the local 1970-01-01T00:00:00.
    pub local: i64,
    /// Seconds east of UTC, if the line gives an offset; otherwise the zone decides.
    pub offset: Option<i32>,
}

/// Why lines are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// There is no line.
    #[error("no schedule")]
    Empty,
    /// There are more different lines of fields than [`Lines::MOST`].
    #[error("{0} different lines of five fields; at most {most} are allowed", most = Lines::MOST)]
    TooMany(usize),
    /// A line is invalid.
    #[error("{line:?}: {cause}")]
    Invalid {
        /// The line.
        line: String,
        /// Why.
        cause: ParseError,
    },
    /// A line has an interval.
    #[error("{0:?}: @every has no calendar")]
    Every(String),
    /// A line has a zone.
    #[error("{0:?}: a line has no time zone of its own")]
    Zone(String),
    /// The time after `@at` is invalid.
    #[error("{0:?}: @at takes a time in whole minutes such as 2027-03-01T09:00, with or without an offset")]
    At(String),
}

impl Lines {
    /// The most lines of five fields, which bounds the cost of a search. Lines that choose the same times are one. `@at` does
    /// not count.
    pub const MOST: usize = 64;

    /// The number of different lines of five fields.
    pub fn different(&self) -> usize {
        self.fields.len()
    }

    /// A line alone.
    pub(crate) fn of(fields: Fields) -> Self {
        Self::with(&[Fields { zone: Zone::UTC, ..fields }.into()], [].into())
    }

    fn with(different: &[Fields<MoreDays>], at: Box<[At]>) -> Self {
        // Lines with the same days share them.
        let mut tables = HashMap::new();
        let with_table = |fields: &Fields<MoreDays>| {
            let Fields { minute, hour, days, month, zone } = *fields;
            let days = tables.entry(days).or_insert_with(|| DayTable::of(&days)).clone();
            Fields { minute, hour, days, month, zone }
        };
        Self { fields: different.iter().map(with_table).collect(), at }
    }

    /// Parses lines that are separated by line ends or semicolons; empty ones are ignored.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let (mut fields, mut known, mut at) = (Vec::new(), HashSet::new(), Vec::new());
        for line in text.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty()) {
            if line.contains("TZ=") {
                return Err(LineError::Zone(line.to_owned()));
            }
            if let Some(time) = line.strip_prefix("@at ") {
                at.push(parse_at(time.trim()).ok_or_else(|| LineError::At(line.to_owned()))?);
                continue;
            }
            let line = parse_line(line)?;
            if known.insert(line) {
                fields.push(line);
            }
        }
        if fields.is_empty() && at.is_empty() {
            return Err(LineError::Empty);
        }
        if fields.len() > Self::MOST {
            return Err(LineError::TooMany(fields.len()));
        }
        Ok(Self::with(&fields, at.into()))
    }
}

fn parse_line(line: &str) -> Result<Fields<MoreDays>, LineError> {
    let parsed = if line.starts_with('@') {
        match parse_descriptor(line, Zone::UTC) {
            Ok(Kind::Fields(fields)) => Ok(fields.into()),
            Ok(_) => return Err(LineError::Every(line.to_owned())),
            Err(cause) => Err(cause),
        }
    } else {
        parse_fields(line)
    };
    parsed.map_err(|cause| LineError::Invalid { line: line.to_owned(), cause })
}

#[allow(clippy::cast_possible_truncation, reason = "the bounds of each field fit its type")]
fn parse_fields(line: &str) -> Result<Fields<MoreDays>, ParseError> {
    let [minute, hour, dom, month, dow] = five_fields(line)?;
    let fields = Fields {
        minute: parse_field(minute, &MINUTE)?.bits,
        hour: parse_field(hour, &HOUR)?.bits as u32,
        days: parse_days(dom, dow)?,
        month: parse_field(month, &MONTH)?.bits as u16,
        zone: Zone::UTC,
    };
    Ok(fields.judged())
}

fn parse_days(dom: &str, dow: &str) -> Result<MoreDays, ParseError> {
    let (mut last, mut nearest, mut counted) = (0, 0, 0);
    let dom = fold_items(dom, |item| {
        if item.eq_ignore_ascii_case("L") {
            last |= 1;
        } else if item.eq_ignore_ascii_case("LW") {
            nearest |= 1;
        } else if let Some(days) = item.strip_prefix(['L', 'l']).and_then(|rest| rest.strip_prefix('-')) {
            last |= 1 << within(parse_int(days)?, 1, 30, item)?;
        } else if let Some(day) = item.strip_suffix(['W', 'w']) {
            nearest |= 1 << within(parse_int(day)?, DOM.min, DOM.max, item)?;
        } else {
            return parse_range(item, &DOM);
        }
        Ok(Field::default())
    })?;
    let dow = fold_items(dow, |item| {
        let weekday = |text| within(parse_value(text, &DOW)?, DOW.min, DOW.max, item);
        if let Some((day, count)) = item.split_once('#') {
            counted |= 1 << (7 * (within(parse_int(count)?, 1, 5, item)? - 1) + weekday(day)?);
        } else if let Some(day) = item.strip_suffix(['L', 'l']) {
            counted |= 1 << (35 + weekday(day)?);
        } else {
            return parse_range(item, &DOW);
        }
        Ok(Field::default())
    })?;
    Ok(MoreDays { plain: pack_days(dom, dow), last, nearest, counted })
}

/// Joins what the items of a list add to robfig's fields; empty items are skipped.
fn fold_items(text: &str, mut item: impl FnMut(&str) -> Result<Field, ParseError>) -> Result<Field, ParseError> {
    text.split(',').filter(|text| !text.is_empty()).try_fold(Field::default(), |field, text| {
        let added = item(text)?;
        Ok(Field { bits: field.bits | added.bits, star: field.star | added.star })
    })
}

fn within(value: u64, minimum: u64, maximum: u64, text: &str) -> Result<u64, ParseError> {
    if value < minimum {
        return Err(ParseError::BelowMinimum { start: value, minimum, text: text.to_owned() });
    }
    if value > maximum {
        return Err(ParseError::AboveMaximum { end: value, maximum, text: text.to_owned() });
    }
    Ok(value)
}

/// `2027-03-01T09:00`, then nothing or `:00`, then nothing, `Z` or an offset such as `+01:00`.
fn parse_at(text: &str) -> Option<At> {
    let (time, rest) = text.split_at_checked(16)?;
    if !has_shape(time, "dddd-dd-ddTdd:dd") {
        return None;
    }
    let local = NaiveDateTime::parse_from_str(time, "%Y-%m-%dT%H:%M").ok()?.and_utc().timestamp();
    let rest = rest.strip_prefix(":00").unwrap_or(rest);
    let offset = match rest {
        "" => None,
        "Z" => Some(0),
        _ => Some(parse_offset(rest)?),
    };
    Some(At { local, offset })
}

fn parse_offset(text: &str) -> Option<i32> {
    let (sign, text) = text.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    if !has_shape(text, "dd:dd") {
        return None;
    }
    let (hours, minutes): (i32, i32) = (text[..2].parse().ok()?, text[3..].parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Whether a text has the characters of a pattern, in which `d` is a digit.
pub(crate) fn has_shape(text: &str, pattern: &str) -> bool {
    let fits = |(c, p): (u8, u8)| if p == b'd' { c.is_ascii_digit() } else { c == p };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)
}

#[cfg(test)]
mod tests;
