//! Timestamps as Go's metav1 types parse and print them, and ages as kubectl prints them.
//!
//! Guarantees: `Time` is written in UTC with whole seconds, `MicroTime` with six digits; a text that is not a time is an
//! error in the words of Go's `time.Parse`. Durations are printed as `duration.HumanDuration` does.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// The canonical text of a metav1 `Time`.
pub(super) fn normalize(text: &str) -> Result<String, String> {
    let time = parse(text, LAYOUT, false)?;
    Ok(time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// The canonical text of a metav1 `MicroTime`.
pub(super) fn normalize_micro(text: &str) -> Result<String, String> {
    let time = parse(text, MICRO_LAYOUT, true)?;
    Ok(time.to_rfc3339_opts(SecondsFormat::Micros, true))
}

fn parse(text: &str, layout: &str, micro: bool) -> Result<DateTime<Utc>, String> {
    let error = |rest: &str, element: &str| {
        Err(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}"))
    };
    let mut rest = text;
    let elements = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    for element in elements {
        let width = element.len();
        let fits = rest.get(..width).is_some_and(|head| {
            if element.starts_with(|c: char| c.is_ascii_digit()) {
                head.bytes().all(|byte| byte.is_ascii_digit())
            } else {
                head == element
            }
        });
        if !fits {
            return error(rest, element);
        }
        rest = &rest[width..];
    }
    let digits = rest.strip_prefix('.').map_or(0, |tail| tail.bytes().take_while(u8::is_ascii_digit).count());
    if micro && digits < 6 {
        return error(rest, ".000000");
    }
    if micro {
        rest = &rest[7..];
    } else if digits > 0 {
        rest = &rest[digits + 1..];
    }
    let zone = rest == "Z"
        || (rest.len() == 6
            && rest.starts_with(['+', '-'])
            && rest.as_bytes()[3] == b':'
            && rest.bytes().enumerate().skip(1).all(|(index, byte)| index == 3 || byte.is_ascii_digit()));
    if !zone {
        return error(rest, "Z07:00");
    }
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|_| format!("parsing time {text:?}: {} out of range", out_of_range(text)))
}

/// Which component of a well-formed time is out of range. Go checks the month first.
fn out_of_range(text: &str) -> &'static str {
    let number = |from: usize| text.get(from..from + 2).and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0);
    if !(1..=12).contains(&number(5)) {
        "month"
    } else if number(11) > 23 {
        "hour"
    } else if number(14) > 59 {
        "minute"
    } else if number(17) > 59 {
        "second"
    } else {
        "day"
    }
}

/// Parses a timestamp of a stored object.
pub(super) fn read(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}

/// The time since a stored timestamp, or `<unknown>`. Matches `translateTimestampSince`.
pub(super) fn since(timestamp: Option<&str>, now: DateTime<Utc>) -> String {
    timestamp.and_then(read).map_or_else(|| "<unknown>".to_owned(), |time| human_duration(now - time))
}

/// A duration in two or three figures. Matches apimachinery `util/duration`, `HumanDuration`.
pub(super) fn human_duration(duration: TimeDelta) -> String {
    let seconds = duration.num_seconds();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let pair = |big: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => pair(days, 'd', hours % 24, 'h'),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => pair(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests;
