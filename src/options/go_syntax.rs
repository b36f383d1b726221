//! Values as Go programs write them on a command line.
//!
//! Guarantees: a text that Go's `strconv` and `time` packages accept has the same meaning here, and a text that they
//! refuse is refused. The one exception is hexadecimal floating point numbers, which are refused here and make no sense
//! as a rate. No function in this module panics, whatever the text.

use std::fmt::Write as _;

const NANOSECOND: i64 = 1;
const MICROSECOND: i64 = 1_000 * NANOSECOND;
const MILLISECOND: i64 = 1_000 * MICROSECOND;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Reads a boolean. Matches `strconv.ParseBool`; `None` for anything else, such as `yes` or `tRuE`.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Reads a whole number with an optional sign. Matches `strconv.ParseInt(text, 0, 64)`, as pflag calls it: `0x`,
/// `0o`, `0b` and a leading `0` set the base, and `_` may stand between digits.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let (base, digits) = match digits.to_ascii_lowercase() {
        d if d.starts_with("0x") => (16, d[2..].to_owned()),
        d if d.starts_with("0o") => (8, d[2..].to_owned()),
        d if d.starts_with("0b") => (2, d[2..].to_owned()),
        d if d.len() > 1 && d.starts_with('0') => (8, d[1..].to_owned()),
        d => (10, d),
    };
    // An underscore is a separator: never last, never doubled, and first only behind a base prefix.
    let misplaced = digits.ends_with('_') || digits.contains("__") || (base == 10 && digits.starts_with('_'));
    if misplaced {
        return None;
    }
    let digits = digits.replace('_', "");
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(&digits, base).ok()?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Reads a finite decimal number. `strconv.ParseFloat` also takes infinities and NaN; no flag has a use for them.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

/// Reads a duration such as `15s`, `1m30s`, `1.5h` or `0`, in nanoseconds; it may be negative. Matches
/// `time.ParseDuration`; `None` where that returns an error, overflow included.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    schedule::parse_duration(text).ok()
}

/// Writes a duration the way Go prints one: `15s`, `1m30s`, `2h0m0s`, `1.5s`, `100ms`. Durations beyond 292 years
/// print as the longest that Go knows. Matches `time.Duration.String`.
pub(crate) fn format_duration(duration: std::time::Duration) -> String {
    let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match nanos {
        0 => "0s".to_owned(),
        n if n < MICROSECOND => format!("{n}ns"),
        n if n < MILLISECOND => format!("{}\u{b5}s", decimal(n, MICROSECOND)),
        n if n < SECOND => format!("{}ms", decimal(n, MILLISECOND)),
        n => {
            let mut text = String::new();
            let (hours, minutes) = (n / HOUR, n % HOUR / MINUTE);
            // Writing to a String cannot fail.
            if hours > 0 {
                let _ = write!(text, "{hours}h");
            }
            if n >= MINUTE {
                let _ = write!(text, "{minutes}m");
            }
            text + &decimal(n % MINUTE, SECOND) + "s"
        }
    }
}

/// `nanos / unit` with as many decimals as it takes to be exact.
fn decimal(nanos: i64, unit: i64) -> String {
    let (whole, fraction) = (nanos / unit, nanos % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{fraction:0width$}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests;
