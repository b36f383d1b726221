//! A schedule in words.
//!
//! Guarantees: the words come from the values that the parser found, so they say what runs and not what was meant. Where lines replace
//! the schedule, the words are theirs. Pure.

use schedule::{FieldValues, Schedule, Zone};

use crate::api::batch_v1::CronJob;
use crate::terminal;

/// So many times of day are listed; more are described by their minutes and hours.
const MAX_TIMES: usize = 6;
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 13] = [
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The schedule by which a CronJob runs, as a sentence: its annotation's lines if it has any; `None` if it cannot be read. `local` is
/// the zone of the controller.
pub fn of(cron_job: &CronJob, local: Zone) -> Option<String> {
    let own = cron_job.timing(local).schedule.as_ref().ok()?;
    let policy = cron_job.policy().ok()?;
    Some(policy.and_then(|policy| policy.lines()).map_or_else(|| describe(own), lines))
}

/// Lines with semicolons between them, as a sentence. A line beyond the grammar of `spec.schedule` stands as it was written.
fn lines(text: &str) -> String {
    let line = |line: &str| match Schedule::parse_standard(line, Zone::UTC) {
        Ok(schedule) if schedule.values().is_some() => {
            let words = describe(&schedule);
            let mut letters = words.trim_end_matches('.').chars();
            let first = letters.next().map(|letter| letter.to_ascii_lowercase());
            first.into_iter().chain(letters).collect()
        }
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text.split(';').map(|text| line(text.trim())).collect();
    sentence(&lines.join("; "))
}

/// The schedule as a sentence.
pub fn describe(schedule: &Schedule) -> String {
    let words = match (schedule.values(), schedule.interval()) {
        (Some(values), _) => [times(&values), days(&values), months(&values)].concat(),
        (None, interval) => {
            format!("every {}, counted from the last run", terminal::countdown(interval.unwrap_or_default()))
        }
    };
    sentence(&words)
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

fn times(values: &FieldValues) -> String {
    let FieldValues { minutes, hours, .. } = values;
    let (each_minute, each_hour) = (minutes.len() == 60, hours.len() == 24);
    if each_minute && each_hour {
        return "every minute".to_owned();
    }
    if each_minute {
        return match (hours.as_slice(), is_run(hours)) {
            ([first, .., last], true) => format!("every minute from {first:02}:00 to {last:02}:59"),
            ([hour], _) => format!("every minute from {hour:02}:00 to {hour:02}:59"),
            _ => format!("every minute of {}", the_hours(hours)),
        };
    }
    if !each_hour && minutes.len() * hours.len() <= MAX_TIMES {
        let times = hours.iter().flat_map(|hour| minutes.iter().map(move |minute| format!("{hour:02}:{minute:02}")));
        return format!("at {}", joined(&times.collect::<Vec<_>>()));
    }
    let past = match minutes.as_slice() {
        [0] => "on the hour".to_owned(),
        [minute] => format!("at minute {minute}"),
        _ => format!("at minutes {}", listed(minutes, number)),
    };
    match (step(minutes, 60), step(hours, 24)) {
        (Some(minutes), Some(1)) => format!("every {minutes} minutes"),
        (Some(step), _) if step > 1 && is_run(hours) => {
            let ([first, ..], [.., last], [.., minute]) = (hours.as_slice(), hours.as_slice(), minutes.as_slice())
            else {
                return past;
            };
            format!("every {step} minutes from {first:02}:00 to {last:02}:{minute:02}")
        }
        (Some(minutes), _) if minutes > 1 => format!("every {minutes} minutes of {}", the_hours(hours)),
        (_, Some(1)) => format!("every hour, {past}"),
        (_, Some(step)) => format!("every {step} hours, {past}"),
        _ if minutes == &[0] => format!("at minute 0 of {}", the_hours(hours)),
        _ => format!("{past} of {}", the_hours(hours)),
    }
}

fn days(values: &FieldValues) -> String {
    let each_day = values.days.len() == 31;
    let each_weekday = values.weekdays.len() == 7;
    let weekdays = || format!("on {}", listed(&values.weekdays, |day| WEEKDAYS[day as usize % 7].to_owned()));
    let noun = if values.days.len() == 1 { "day" } else { "days" };
    let days = || format!("on {noun} {} of the month", listed(&values.days, number));
    match (each_day, each_weekday) {
        (true, true) if values.minutes.len() * values.hours.len() > MAX_TIMES => String::new(),
        (true, true) => " every day".to_owned(),
        (false, false) => format!(" {} or {}", days(), weekdays()),
        // Without a star in either field, one of them is enough.
        _ if values.either_day => " every day".to_owned(),
        (true, false) => format!(" {}", weekdays()),
        (false, true) => format!(" {}", days()),
    }
}

fn months(values: &FieldValues) -> String {
    if values.months.len() == 12 {
        return String::new();
    }
    format!(" in {}", listed(&values.months, |month| MONTHS[month as usize % 13].to_owned()))
}

fn the_hours(hours: &[u32]) -> String {
    let noun = if hours.len() == 1 { "hour" } else { "hours" };
    format!("the {noun} {}", listed(hours, number))
}

fn number(value: u32) -> String {
    value.to_string()
}

/// Whether each value follows the one before it.
fn is_run(values: &[u32]) -> bool {
    values.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

/// The step, if the values are all multiples of a divisor of `size`, from 0 on.
fn step(values: &[u32], size: u32) -> Option<u32> {
    let step = size.checked_div(u32::try_from(values.len()).ok()?)?;
    let even = values.len() > 1
        && values.iter().enumerate().all(|(i, value)| usize::try_from(*value) == Ok(i * step as usize));
    (even && size.is_multiple_of(step)).then_some(step)
}

/// The values, with three and more in a row as a range.
fn listed(values: &[u32], name: impl Fn(u32) -> String) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = values;
    while let Some(first) = rest.first() {
        let length = (1..=rest.len()).rev().find(|length| is_run(&rest[..*length])).unwrap_or(1);
        let length = if length > 2 { length } else { 1 };
        let last = rest[length - 1];
        parts.push(if length > 1 { format!("{} to {}", name(*first), name(last)) } else { name(*first) });
        rest = &rest[length..];
    }
    joined(&parts)
}

/// `a, b and c`.
pub(super) fn joined(parts: &[String]) -> String {
    match parts {
        [init @ .., last] if !init.is_empty() => format!("{} and {last}", init.join(", ")),
        parts => parts.concat(),
    }
}

#[cfg(test)]
mod tests;
