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
    if lower.starts_with("rate(") || lower.starts_with("cron(") {
        return Some(
            "this is a schedule of AWS; for an interval write @every 5m, and for times five fields, where Sunday is 0"
                .to_owned(),
        );
    }
    // The refusal names spec.timeZone.
    if lower.starts_with("tz=") || lower.starts_with("cron_tz=") {
        return None;
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
    fields.iter().enumerate().find_map(|(index, field)| field.split(',').find_map(|item| wrapped(index, item)))
}

/// The hint for more than five fields.
fn too_many(fields: &[&str]) -> Option<String> {
    if fields.iter().any(|field| field.ends_with(',') || field.starts_with(',')) {
        return Some("a list has no blanks".to_owned());
    }
    if fields.contains(&"-") {
        return Some("a range has no blanks".to_owned());
    }
    let is_valid = |fields: &[&str]| Schedule::parse_standard(&fields.join(" "), Zone::UTC).is_ok();
    let without = match fields {
        // In AWS one of the days is always ?, and in Quartz, whose first field is the seconds.
        [five @ .., last] if fields.len() == 6 && (five[2] == "?" || five[4] == "?") && is_years(last) => {
            (is_valid(five), "last (years)")
        }
        [_, five @ ..] if fields.len() == 6 && is_valid(five) => {
            let is_of_quartz = fields.contains(&"?") && five[4].starts_with(|first: char| first.is_ascii_digit());
            let days = if is_of_quartz {
                "; Quartz counts the days from 1 for Sunday, so name them, as in MON-FRI"
            } else {
                ""
            };
            return Some(format!("schedules have five fields here; leave out the first (seconds){days}"));
        }
        [five @ .., last] if fields.len() == 6 && is_years(last) => (is_valid(five), "last (years)"),
        [five @ .., last] if fields.len() == 6 && is_valid(five) && is_zone(last) => {
            return Some("schedules have five fields here; the zone is a field of its own, spec.timeZone".to_owned());
        }
        [_, five @ ..] if fields.len() == 6 => {
            let instead = of(&five.join(" "))?;
            return Some(format!(
                "schedules have five fields here; leave out the first (seconds), and then: {instead}"
            ));
        }
        [_, five @ .., _] => (is_valid(five), "first (seconds), and the last (years)"),
        _ => return None,
    };
    let (is_meant, which) = without;
    is_meant.then(|| format!("schedules have five fields here; leave out the {which}"))
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
