//! What to write in place of a schedule that Kubernetes refuses.
//!
//! Guarantee: a hint follows the refusal's own text, and is given only for text that other schedulers know. Pure.

use schedule::{Schedule, Zone, zone_names};

use crate::api::policy::SCHEDULE;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The smallest and the greatest number of each field.
pub(in crate::cli) const FIELDS: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];

/// The hint for a schedule that was refused.
pub(in crate::cli) fn of(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    if let Some(rate) = lower.strip_prefix("rate(") {
        let duration = duration_of_go(rate.trim_end_matches(')').trim()).unwrap_or_else(|| "5m".to_owned());
        return Some(format!("this is an interval of AWS; write @every {duration}"));
    }
    if lower.starts_with("cron(") {
        return Some("this is a schedule of AWS; write five fields, where Sunday is 0".to_owned());
    }
    // The refusal names spec.timeZone.
    if lower.starts_with("tz=") || lower.starts_with("cron_tz=") {
        return None;
    }
    if let Some(hint) = descriptor(&lower, text).or_else(|| quoted(text)) {
        return Some(hint);
    }
    let fields: Vec<&str> = lower.split_whitespace().collect();
    if fields.len() > 5 {
        return too_many(&fields);
    }
    let fields: [&str; 5] = fields.try_into().ok()?;
    if fields
        .iter()
        .any(|field| field.split(',').any(|item| item == "h" || item.starts_with("h/") || item.starts_with("h(")))
    {
        return Some(
            "H is Jenkins's; write a number, or let the annotation cronjob-controller.dev/spread choose".to_owned(),
        );
    }
    let is_extended = |field: &str| {
        field.split(',').any(|item| {
            let is_last = item == "l" || item.starts_with("l-") || item == "lw";
            let has_suffix = item.strip_suffix(['w', 'l']).is_some_and(|day| number(4, day).is_some());
            is_last || has_suffix || item.contains('#')
        })
    };
    if is_extended(fields[2]) || is_extended(fields[4]) {
        return Some(format!("L, W and # are known to the annotation {SCHEDULE} only"));
    }
    let mut days = fields[4].split(',').filter_map(|item| item.split('/').next());
    if let Some(range) = days.find(|range| range.split('-').any(|day| day == "7")) {
        let first = range.strip_suffix("-7").filter(|_| !fields[4].contains('/')).and_then(|first| number(4, first));
        return Some(match first {
            Some(6) => "Sunday is 0; write 6,0".to_owned(),
            Some(first @ 1..6) => format!("Sunday is 0; write {first}-6,0"),
            _ => "Sunday is 0".to_owned(),
        });
    }
    let items = || fields.iter().enumerate().flat_map(|(index, field)| field.split(',').map(move |item| (index, item)));
    let hints = [long_name, beyond, wrapped];
    hints.into_iter().find_map(|hint| items().find_map(|(index, item)| hint(index, item)))
}

/// The hint for blanks around the text, and for quotation marks in it, as word processors make them.
fn quoted(text: &str) -> Option<String> {
    let plain = text.trim_matches(['"', '\'', '`', '\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}']).trim();
    let is_valid = plain != text && Schedule::parse_standard(plain, Zone::UTC).is_ok();
    let what = if plain == text.trim() { "blanks at its start or end are" } else { "the quotation marks are" };
    is_valid.then(|| format!("{what} a part of it; write {plain}"))
}

/// The hint for what begins with `@`, or should. `lower` is the text in small letters.
fn descriptor(lower: &str, text: &str) -> Option<String> {
    const KNOWN: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if lower == "@reboot" {
        return Some("Kubernetes has no @reboot; a Job runs once, when it is created".to_owned());
    }
    if let Some(meant) = KNOWN.iter().find(|known| **known == lower || known[1..] == *lower) {
        return Some(format!("write {meant}"));
    }
    let duration = lower.strip_prefix("@every")?;
    let instead = format!("@every {}", duration_of_go(duration.trim())?);
    let is_valid = instead != text && Schedule::parse_standard(&instead, Zone::UTC).is_ok();
    let is_spaced = lower.split_whitespace().eq(instead.split_whitespace());
    let why = match is_spaced {
        true if lower == instead => "it is written in small letters",
        true => "one blank follows @every",
        false => "durations have the units h, m and s",
    };
    is_valid.then(|| format!("{why}; write {instead}"))
}

/// A duration with the units that Go has, from one with words such as days.
fn duration_of_go(text: &str) -> Option<String> {
    let (mut rest, mut duration) = (text, String::new());
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let after = after.trim_start();
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        let (factor, unit) = match unit {
            "w" | "wk" | "week" | "weeks" => (168, 'h'),
            "d" | "day" | "days" => (24, 'h'),
            "h" | "hr" | "hrs" | "hour" | "hours" => (1, 'h'),
            "m" | "min" | "mins" | "minute" | "minutes" => (1, 'm'),
            "s" | "sec" | "secs" | "second" | "seconds" => (1, 's'),
            _ => return None,
        };
        duration += &digits.parse::<u32>().ok()?.checked_mul(factor)?.to_string();
        duration.push(unit);
        rest = after.trim_start();
    }
    Some(duration)
}

/// The hint for a month or a day by its whole name.
fn long_name(field: usize, item: &str) -> Option<String> {
    const LONG_MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "june",
        "july",
        "august",
        "sept",
        "september",
        "october",
        "november",
        "december",
    ];
    const LONG_DAYS: [&str; 11] =
        ["sunday", "monday", "tues", "tuesday", "weds", "wednesday", "thur", "thurs", "thursday", "friday", "saturday"];
    let known: &[&str] = match field {
        3 => &LONG_MONTHS,
        4 => &LONG_DAYS,
        _ => return None,
    };
    let is_long = |name: &str| known.contains(&name);
    let parts = || item.split(['-', '/']);
    parts().any(is_long).then(|| {
        let short = |name: &str| if is_long(name) { name[..3].to_ascii_uppercase() } else { name.to_ascii_uppercase() };
        let names: Vec<String> = parts().take_while(|part| part.parse::<u32>().is_err()).map(short).collect();
        format!("names have three letters; write {}", names.join("-"))
    })
}

/// The hint for the number behind the last one of the minutes or the hours.
fn beyond(field: usize, item: &str) -> Option<String> {
    let (_, last) = FIELDS[field];
    let unit = ["minutes", "hours"].get(field)?;
    let range = item.split('/').next()?;
    let is_beyond = |number: &str| number.parse() == Ok(last + 1);
    let instead = match range.split_once('-') {
        None if is_beyond(range) => "; write 0",
        Some((_, to)) if is_beyond(to) => "",
        _ => return None,
    };
    Some(format!("{unit} go from 0 to {last}{instead}"))
}

/// The hint for more than five fields.
fn too_many(fields: &[&str]) -> Option<String> {
    if fields.iter().any(|field| field.ends_with(',') || field.starts_with(',')) {
        return Some("a list has no blanks".to_owned());
    }
    if fields.contains(&"-") {
        return Some("a range has no blanks".to_owned());
    }
    // More often than each minute.
    if let [seconds, rest @ ..] = fields
        && rest.iter().all(|field| matches!(*field, "*" | "?"))
        && let Some(("*" | "0", step)) = seconds.split_once('/')
        && step.parse().is_ok_and(|step: u32| (1..60).contains(&step))
    {
        return Some(format!("schedules have five fields here, without seconds; write @every {step}s"));
    }
    let is_valid = |fields: &[&str]| Schedule::parse_standard(&fields.join(" "), Zone::UTC).is_ok();
    let days_of = |five: &[&str]| {
        let is_shifted = fields.contains(&"?") && five[4].starts_with(|first: char| first.is_ascii_digit());
        if is_shifted { "; Quartz and AWS count the days from 1 for Sunday, so name them, as in MON-FRI" } else { "" }
    };
    let (five, which) = match fields {
        // In AWS one of the days is always ?, and in Quartz, whose first field is the seconds.
        [five @ .., last] if fields.len() == 6 && (five[2] == "?" || five[4] == "?") && is_years(last) => {
            (five, "last (years)")
        }
        [_, five @ ..] if fields.len() == 6 && is_valid(five) => (five, "first (seconds)"),
        [five @ .., last] if fields.len() == 6 && is_years(last) && is_valid(five) => (five, "last (years)"),
        [five @ .., last] if fields.len() == 6 && is_valid(five) && is_zone(last) => {
            return Some("schedules have five fields here; the zone is a field of its own, spec.timeZone".to_owned());
        }
        [_, five @ ..] if fields.len() == 6 => {
            let instead = of(&five.join(" "))?;
            return Some(format!(
                "schedules have five fields here; leave out the first (seconds), and then: {instead}{}",
                days_of(five)
            ));
        }
        [_, five @ .., _] => (five, "first (seconds), and the last (years)"),
        _ => return None,
    };
    is_valid(five).then(|| format!("schedules have five fields here; leave out the {which}{}", days_of(five)))
}

/// Whether a last field is one of years.
fn is_years(field: &str) -> bool {
    let is_year = |text: &str| text.parse().is_ok_and(|year: u32| (1970..=2099).contains(&year));
    field == "*" || field == "?" || field.split(['-', ',', '/']).next().is_some_and(is_year)
}

/// Whether a last field is a time zone.
fn is_zone(field: &str) -> bool {
    zone_names().any(|name| name.eq_ignore_ascii_case(field))
}

/// The text of a refusal, with the hint for its schedule if there is one.
pub(in crate::cli) fn with(refusal: String, schedule: &str) -> String {
    match of(schedule) {
        Some(hint) => format!("{refusal}; {hint}"),
        None => refusal,
    }
}

/// The number of a value of the field with that index.
pub(in crate::cli) fn number(field: usize, text: &str) -> Option<u32> {
    let (first, names): (u32, &[&str]) = match field {
        3 => (1, &MONTHS),
        4 => (0, &DAYS),
        _ => (0, &[]),
    };
    let place = names.iter().position(|name| *name == text).and_then(|at| u32::try_from(at).ok());
    place.map(|at| first + at).or_else(|| text.parse().ok())
}

/// A range that goes on beyond the end of its field.
fn wrapped(field: usize, item: &str) -> Option<String> {
    let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
    let (from, to) = range.split_once('-')?;
    let (from, to) = (number(field, from)?, number(field, to)?);
    let (first, last) = FIELDS[field];
    let part = |from: u32, to: u32| if from == to { from.to_string() } else { format!("{from}-{to}") };
    let is_within = (first..=last).contains(&from) && (first..=last).contains(&to);
    let instead = match step {
        None => [part(from, last), part(first, to)].join(","),
        Some(step) => {
            let step = step.parse::<usize>().ok().filter(|step| *step > 0)?;
            let numbers = (from..=last).chain(first..=to).step_by(step);
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
        }
    };
    (from > to && is_within).then(|| format!("a range ends at the end of its field; write {instead}"))
}

#[cfg(test)]
mod tests;
