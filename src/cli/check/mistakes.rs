//! Mistakes that the API server accepts.
//!
//! Guarantee: each finding is about one CronJob alone, and does not depend on the time of day. Pure.

use chrono::{DateTime, Datelike, Months, Utc};
use schedule::{Schedule, Zone};
use serde_json::Value;

use super::{Code, Fault, concurrency, policies};
use crate::api::manage::MANAGED_ANNOTATION;
use crate::api::policy::MAX_CONCURRENT;
use crate::cli::hints::{FIELDS, number};
use crate::cli::output::count;
use crate::cli::words::joined;

pub(super) const SCHEDULE: &str = "spec.schedule";
/// How far ahead months are looked at: four years have a leap year, except around some centuries.
const MONTHS: u32 = 48;

/// The index, the size and the unit of the fields whose steps start over, and the period after which they do. Days have no
/// fixed size.
const CYCLES: [(usize, u32, &str, &str); 3] =
    [(0, 60, "minute", "hour"), (1, 24, "hour", "day"), (3, 12, "month", "year")];

/// The mistakes in the fields of a schedule. A descriptor such as `@daily` has none.
pub(super) fn of_schedule(text: &str, today: DateTime<Utc>) -> Vec<Fault> {
    let Some(fields) = fields(text) else { return Vec::new() };
    let [minute, hour, day, month, weekday] = fields;
    let mut faults = Vec::new();
    // A step of 1 is a star, too, and means something else to its author.
    let is_some_days = !is_star(day) || !(is_star(weekday) || weekday.contains('-'));
    if is_all(0, minute) && !matches!(hour, "*" | "?") {
        let message = format!(
            "runs in every minute of the hours that the second field ({hour}) names; for one run in each of them, write 0 in the \
             first field"
        );
        faults.push(Fault::warning(Code::EveryMinute, SCHEDULE, message));
    } else if is_all(0, minute) && is_some_days {
        let message = "runs in every minute of the days that it names; for one run on each of them, write 0 in the first two fields";
        faults.push(Fault::warning(Code::EveryMinute, SCHEDULE, message));
    }
    if !is_star(day) && !is_star(weekday) {
        let message = format!(
            "runs on the days that the third field ({day}) or the fifth ({weekday}) names: where both name days, one is enough"
        );
        faults.push(Fault::warning(Code::DayOrWeekday, SCHEDULE, message));
    }
    faults.extend(
        CYCLES.into_iter().filter_map(|(index, size, unit, cycle)| uneven(index, fields[index], size, unit, cycle)),
    );
    faults.extend(restarting_month(day));
    faults.extend(restarting_week(weekday));
    faults.extend(short_months(fields, today).map(|missing| {
        let message =
            format!("has no run in {missing}: the third field ({day}) names days that not every month ({month}) has");
        Fault::warning(Code::ShortMonths, SCHEDULE, message)
    }));
    faults
}

/// The mistakes in the other fields of a CronJob, and in the annotation that hands it over. `most` is how many Jobs its annotations allow
/// at a time, also under Forbid, and `deletes_stuck` is whether they delete one that hangs.
pub(super) fn of_rest(object: &Value, most: Option<usize>, deletes_stuck: bool) -> Vec<Fault> {
    let spec = &object["spec"];
    let mut faults = Vec::new();
    if let Some(message) = spec["timeZone"].as_str().and_then(misread_zone) {
        faults.push(Fault::warning(Code::MisreadZone, "spec.timeZone", message));
    }
    let managed = object["metadata"]["annotations"][MANAGED_ANNOTATION].as_str();
    if managed.is_some_and(|managed| !matches!(managed, "true" | "false")) {
        let message = "is neither \"true\" nor \"false\", and has no effect";
        faults.push(Fault::warning(Code::UnknownPolicy, policies::field(MANAGED_ANNOTATION), message));
    }
    if spec["concurrencyPolicy"] == "Forbid" {
        // The annotation takes the place of the field.
        let several = most.filter(|most| *most > 1).map(|most| format!("{MAX_CONCURRENT} is {most}"));
        if spec["startingDeadlineSeconds"].is_null() {
            let message = match &several {
                None => "is Forbid, without startingDeadlineSeconds: a run that an earlier one blocks starts when that one ends, \
                         however late"
                    .to_owned(),
                Some(several) => format!(
                    "has no effect, because {several}, and startingDeadlineSeconds is missing: a run that earlier ones block starts \
                     when one of them ends, however late"
                ),
            };
            faults.push(Fault::warning(Code::ForbidWithoutDeadline, "spec.concurrencyPolicy", message));
        }
        if !concurrency::has_deadline(spec) && !deletes_stuck {
            let message = match &several {
                None => {
                    "has no activeDeadlineSeconds, and concurrencyPolicy is Forbid: if it hangs, no later run starts"
                        .to_owned()
                }
                Some(several) => {
                    format!("has no activeDeadlineSeconds, and {several}: if so many hang, no later run starts")
                }
            };
            faults.push(Fault::warning(Code::NoActiveDeadline, "spec.jobTemplate.spec", message));
        }
    }
    for (field, which) in [("failedJobsHistoryLimit", "fails"), ("successfulJobsHistoryLimit", "succeeds")] {
        if spec[field] == 0 {
            let message = format!("is 0: what {which} is deleted at once, with its logs");
            faults.push(Fault::warning(Code::NoHistory, format!("spec.{field}"), message));
        }
    }
    faults
}

/// The five fields of a schedule, without its time zone.
pub(super) fn fields(text: &str) -> Option<[&str; 5]> {
    let zone = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
    let fields = zone.map_or(Some(text), |rest| rest.split_once(' ').map(|(_, fields)| fields))?;
    fields.split_whitespace().collect::<Vec<_>>().try_into().ok()
}

/// Whether a field counts as a star for robfig/cron: a star somewhere in its list, without a step.
pub(super) fn is_star(field: &str) -> bool {
    field.split(',').any(|item| {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        matches!(range.split('-').next(), Some("*" | "?")) && step.parse() == Ok(1_u32)
    })
}

/// Whether the field with that index matches all numbers.
fn is_all(index: usize, field: &str) -> bool {
    field.split(',').any(|item| step_of_all(index, item) == Some(1))
}

/// The step of an item that goes from the first number of its field to the last, however that is written.
fn step_of_all(index: usize, item: &str) -> Option<u32> {
    let item = item.to_ascii_lowercase();
    let (range, step) = item.split_once('/').map_or((&*item, None), |(range, step)| (range, Some(step)));
    let (first, last) = FIELDS[index];
    let is_all = match range.split_once('-') {
        None if matches!(range, "*" | "?") => true,
        None => step.is_some() && number(index, range) == Some(first),
        Some(("*" | "?", _)) => true,
        Some((from, to)) => number(index, from) == Some(first) && number(index, to) == Some(last),
    };
    is_all.then(|| step.map_or(Some(1), |step| step.parse().ok())).flatten()
}

/// The first item of a field that goes over all numbers by a larger step, and its step.
fn stepped(index: usize, field: &str) -> Option<(&str, u32)> {
    field.split(',').find_map(|item| Some((item, step_of_all(index, item).filter(|step| *step > 1)?)))
}

/// A step that does not divide its field.
fn uneven(index: usize, field: &str, size: u32, unit: &str, cycle: &str) -> Option<Fault> {
    let mut items = field.split(',').filter_map(|item| Some((item, step_of_all(index, item)?)));
    let (item, step) = items.find(|(_, step)| *step > 0 && !size.is_multiple_of(*step))?;
    let message = if step > size {
        format!(
            "the step {step} is more than the {size} {unit}s of the {cycle}, so only the first {unit} of each {cycle} matches"
        )
    } else {
        format!(
            "{item} does not divide {size}: it starts over with each {cycle}, and the last run of one is {} before the first of the \
             next",
            count(usize::try_from(size % step).unwrap_or_default(), unit)
        )
    };
    Some(Fault::warning(Code::UnevenStep, SCHEDULE, message))
}

/// A step on the days of the month, which does not go on from one month to the next.
fn restarting_month(day: &str) -> Option<Fault> {
    let (item, step) = stepped(2, day)?;
    let days: Vec<String> = (1..=31).step_by(usize::try_from(step).ok()?).map(|day: u32| day.to_string()).collect();
    let message = match days.as_slice() {
        [_] => format!("the step {step} is not less than the days of a month, so only day 1 of each month matches"),
        days => {
            format!(
                "{item} starts over with each month: it names day {}, and then day 1 of the next month",
                joined(days)
            )
        }
    };
    Some(Fault::warning(Code::UnevenStep, SCHEDULE, message))
}

/// A step on the days of the week, which does not go on from one week to the next.
fn restarting_week(weekday: &str) -> Option<Fault> {
    const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let (item, step) = stepped(4, weekday)?;
    let days: Vec<String> = DAYS.iter().step_by(usize::try_from(step).ok()?).map(|day| (*day).to_owned()).collect();
    let message = match days.as_slice() {
        [_] => format!("the step {step} is not less than the days of a week, so only Sunday matches"),
        days => format!("{item} starts over with each week: it names {}, and then Sunday", joined(days)),
    };
    Some(Fault::warning(Code::UnevenStep, SCHEDULE, message))
}

/// A time zone whose name means something else to most readers.
fn misread_zone(zone: &str) -> Option<String> {
    if let Some(offset) = zone.strip_prefix("Etc/GMT") {
        let (hours, side) = match offset.split_at_checked(1)? {
            ("+", hours) => (hours, "behind"),
            ("-", hours) => (hours, "ahead of"),
            _ => return None,
        };
        let hours: u32 = hours.parse().ok().filter(|hours| *hours > 0)?;
        return Some(format!("{zone} is {hours} h {side} UTC: the sign of these names is that of POSIX"));
    }
    let region = match zone {
        "EST" => "America/New_York",
        "MST" => "America/Denver",
        _ => return None,
    };
    Some(format!("{zone} has the same time all year, without summer time; the zone of a place is such as {region}"))
}

/// The months without a run because they are too short, if every day that the schedule names is at the end of a month.
fn short_months([minute, hour, day, month, weekday]: [&str; 5], today: DateTime<Utc>) -> Option<String> {
    let is_late =
        |item: &str| item.split(['-', '/']).next().and_then(|day| day.parse::<u32>().ok()).is_some_and(|day| day > 28);
    if !day.split(',').all(is_late) || !is_star(weekday) {
        return None;
    }
    let parse = |day: &str| {
        let text = [minute, hour, day, month, weekday].join(" ");
        Schedule::parse_standard(&text, Zone::UTC).ok()
    };
    let (own, all) = (parse(day)?, parse("*")?);
    let start = today.date_naive().with_day(1)?.and_time(chrono::NaiveTime::MIN).and_utc();
    let mut missing: Vec<(u32, String)> = Vec::new();
    for number in 0..MONTHS {
        let (from, until) =
            (start.checked_add_months(Months::new(number))?, start.checked_add_months(Months::new(number + 1))?);
        let runs = |schedule: &Schedule| {
            let next = schedule.next_after(from - chrono::TimeDelta::seconds(1));
            next.is_some_and(|t| t < until)
        };
        let name = (from.month(), from.format("%B").to_string());
        if runs(&all) && !runs(&own) && !missing.contains(&name) {
            missing.push(name);
        }
    }
    missing.sort();
    let names: Vec<String> = missing.into_iter().map(|(_, name)| name).collect();
    // A schedule without any run is another mistake.
    let never = own.next_after(today).is_none();
    (!names.is_empty() && !never).then(|| match names.as_slice() {
        [february] if february == "February" && day.split(',').any(|item| item.starts_with("29")) => {
            "February, except in a leap year".to_owned()
        }
        names => names.join(", "),
    })
}

#[cfg(test)]
mod tests;
