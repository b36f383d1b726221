//! The grammar of robfig/cron v3.0.1's `ParseStandard`.
//!
//! Guarantees: every text parses or returns an error, without panic, exactly as upstream does. Upstream's peculiarities are
//! kept because users rely on them: `?` means `*` in any field. A star anywhere in a field's list marks the whole field, unless
//! it has a step above 1. `N/step` runs to the field's maximum; `+5` is 5; a field of commas parses and never matches.

use std::fmt;

use super::fields::{DayFields, Fields};
use super::zone::{UnknownZone, Zone};
use super::{Kind, civil};

mod duration;
pub(super) mod line;

/// Why a spec is invalid. The messages are robfig's and Go's, so that an Event reads as it does upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum ParseError {
    #[error("empty spec string")]
    Empty,
    /// Upstream panics here and reports the recovered panic.
    #[error("time zone without a schedule: {0}")]
    ZoneOnly(String),
    #[error("provided bad location {name}: {cause}")]
    BadLocation { name: String, cause: UnknownZone },
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    FieldCount(Vec<String>),
    #[error("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {cause}")]
    Int { text: String, cause: ParseIntError },
    #[error("negative number ({number}) not allowed: {text}")]
    Negative { number: i64, text: String },
    #[error("too many hyphens: {0}")]
    TooManyHyphens(String),
    #[error("too many slashes: {0}")]
    TooManySlashes(String),
    #[error("beginning of range ({start}) below minimum ({minimum}): {text}")]
    BelowMinimum { start: u64, minimum: u64, text: String },
    #[error("end of range ({end}) above maximum ({maximum}): {text}")]
    AboveMaximum { end: u64, maximum: u64, text: String },
    #[error("beginning of range ({start}) beyond end of range ({end}): {text}")]
    Reversed { start: u64, end: u64, text: String },
    #[error("step of range should be a positive number: {0}")]
    ZeroStep(String),
    #[error("failed to parse duration {descriptor}: {cause}")]
    Duration { descriptor: String, cause: String },
    #[error("unrecognized descriptor: {0}")]
    UnrecognizedDescriptor(String),
}

/// Why a text is not a number, in the words of Go's `strconv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseIntError {
    /// The text is not digits with an optional sign.
    Syntax,
    /// The number exceeds 64 bits.
    Range,
}

impl fmt::Display for ParseIntError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "invalid syntax",
            Self::Range => "value out of range",
        })
    }
}

/// A field's minimum and maximum, and its names, which count up from the minimum.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOUR: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DOM: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTH: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DOW: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// A parsed field: the values it names, and whether it has a star.
#[derive(Clone, Copy, Default)]
struct Field {
    bits: u64,
    star: bool,
}

/// Parses a whole spec. Matches `Parser.Parse`.
pub(super) fn parse(spec: &str, default_zone: Zone) -> Result<Kind, ParseError> {
    if spec.is_empty() {
        return Err(ParseError::Empty);
    }
    let (zone, spec) = match spec.strip_prefix("TZ=").or_else(|| spec.strip_prefix("CRON_TZ=")) {
        None => (default_zone, spec),
        Some(rest) => {
            let (name, rest) = rest.split_once(' ').ok_or_else(|| ParseError::ZoneOnly(spec.to_owned()))?;
            let zone = Zone::load(name, default_zone)
                .map_err(|cause| ParseError::BadLocation { name: name.to_owned(), cause })?;
            (zone, rest.trim())
        }
    };
    if spec.starts_with('@') {
        return parse_descriptor(spec, zone);
    }
    let [minute, hour, dom, month, dow] = five_fields(spec)?;
    let fields = [
        parse_field(minute, &MINUTE)?,
        parse_field(hour, &HOUR)?,
        parse_field(dom, &DOM)?,
        parse_field(month, &MONTH)?,
        parse_field(dow, &DOW)?,
    ];
    Ok(Kind::Fields(pack(fields, zone)))
}

fn five_fields(spec: &str) -> Result<[&str; 5], ParseError> {
    let texts: Vec<&str> = spec.split_whitespace().collect();
    texts.try_into().map_err(|texts: Vec<&str>| ParseError::FieldCount(texts.into_iter().map(str::to_owned).collect()))
}

/// A duration in Go's syntax, such as `1h30m`, in nanoseconds. Matches `ParseDuration` in Go's time/format.go; the error
/// has Go's wording.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    duration::parse_nanos(text)
}

/// Stores each field in its own integer type. The star matters only in the two day fields.
#[allow(clippy::cast_possible_truncation, reason = "the bounds of each field fit its type")]
fn pack([minute, hour, dom, month, dow]: [Field; 5], zone: Zone) -> Fields {
    let fields = Fields {
        minute: minute.bits,
        hour: hour.bits as u32,
        days: pack_days(dom, dow),
        month: month.bits as u16,
        zone,
    };
    fields.judged()
}

#[allow(clippy::cast_possible_truncation, reason = "the bounds of each field fit its type")]
fn pack_days(dom: Field, dow: Field) -> DayFields {
    DayFields {
        dom: dom.bits as u32 | if dom.star { DayFields::DOM_STAR } else { 0 },
        dow: dow.bits as u8 | if dow.star { DayFields::DOW_STAR } else { 0 },
    }
}

/// Matches `parseDescriptor`. An `@every` drops the zone, since a duration has none.
fn parse_descriptor(descriptor: &str, zone: Zone) -> Result<Kind, ParseError> {
    let first = |bounds: &Bounds| Field { bits: 1 << bounds.min, star: false };
    let all = |bounds: &Bounds| Field { bits: bits_between(bounds.min, bounds.max, 1), star: true };
    let fields = match descriptor {
        "@yearly" | "@annually" => [first(&MINUTE), first(&HOUR), first(&DOM), first(&MONTH), all(&DOW)],
        "@monthly" => [first(&MINUTE), first(&HOUR), first(&DOM), all(&MONTH), all(&DOW)],
        "@weekly" => [first(&MINUTE), first(&HOUR), all(&DOM), all(&MONTH), first(&DOW)],
        "@daily" | "@midnight" => [first(&MINUTE), first(&HOUR), all(&DOM), all(&MONTH), all(&DOW)],
        "@hourly" => [first(&MINUTE), all(&HOUR), all(&DOM), all(&MONTH), all(&DOW)],
        _ => {
            let Some(text) = descriptor.strip_prefix("@every ") else {
                return Err(ParseError::UnrecognizedDescriptor(descriptor.to_owned()));
            };
            return match duration::parse_nanos(text) {
                // Fractions of a second are truncated, and the minimum is one second.
                Ok(nanos) => Ok(Kind::Every((nanos / civil::NANOS_PER_SECOND).max(1))),
                Err(cause) => Err(ParseError::Duration { descriptor: descriptor.to_owned(), cause }),
            };
        }
    };
    Ok(Kind::Fields(pack(fields, zone)))
}

/// Matches `getField`: a list of ranges; empty items are skipped.
fn parse_field(text: &str, bounds: &Bounds) -> Result<Field, ParseError> {
    text.split(',').filter(|item| !item.is_empty()).try_fold(Field::default(), |field, item| {
        let range = parse_range(item, bounds)?;
        Ok(Field { bits: field.bits | range.bits, star: field.star | range.star })
    })
}

/// Matches `getRange`: `*`, `?`, a value, or two values with a hyphen, and an optional step after a slash.
fn parse_range(text: &str, bounds: &Bounds) -> Result<Field, ParseError> {
    let mut parts = text.split('/');
    let range: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
    let is_star = matches!(range[0], "*" | "?");
    let (start, mut end) = if is_star {
        // Upstream ignores what follows a star and a hyphen.
        (bounds.min, bounds.max)
    } else {
        let start = parse_value(range[0], bounds)?;
        match range[1..] {
            [] => (start, start),
            [end] => (start, parse_value(end, bounds)?),
            _ => return Err(ParseError::TooManyHyphens(text.to_owned())),
        }
    };
    let step = match (parts.next(), parts.next()) {
        (None, _) => 1,
        (Some(step), None) => {
            if range.len() == 1 {
                end = bounds.max;
            }
            parse_int(step)?
        }
        _ => return Err(ParseError::TooManySlashes(text.to_owned())),
    };

    let text = || text.to_owned();
    if start < bounds.min {
        return Err(ParseError::BelowMinimum { start, minimum: bounds.min, text: text() });
    }
    if end > bounds.max {
        return Err(ParseError::AboveMaximum { end, maximum: bounds.max, text: text() });
    }
    if start > end {
        return Err(ParseError::Reversed { start, end, text: text() });
    }
    if step == 0 {
        return Err(ParseError::ZeroStep(text()));
    }
    Ok(Field { bits: bits_between(start, end, step), star: is_star && step == 1 })
}

/// Bits `start`, `start + step`, … up to `end`, which is below 64.
fn bits_between(start: u64, end: u64, step: u64) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    (start..=end).step_by(step).fold(0, |bits, value| bits | 1 << value)
}

/// A name in any case, or a number.
fn parse_value(text: &str, bounds: &Bounds) -> Result<u64, ParseError> {
    // Go lowercases each character on its own.
    let lower = || text.chars().map(|c| c.to_lowercase().next().unwrap_or(c));
    match bounds.names.iter().position(|name| lower().eq(name.chars())) {
        Some(index) => Ok(bounds.min + index as u64),
        None => parse_int(text),
    }
}

/// Matches `mustParseInt` over Go's `strconv.Atoi`: decimal digits with an optional sign.
fn parse_int(text: &str) -> Result<u64, ParseError> {
    let error = |cause| ParseError::Int { text: text.to_owned(), cause };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error(ParseIntError::Syntax));
    }
    let number: i64 = text.parse().map_err(|_| error(ParseIntError::Range))?;
    u64::try_from(number).map_err(|_| ParseError::Negative { number, text: text.to_owned() })
}

#[cfg(test)]
mod tests;
