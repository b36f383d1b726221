//! Schedules that another reader takes otherwise than Kubernetes.
//!
//! Two are known. go-cron, which kube-state-metrics has used in place of robfig/cron since 2.19, takes the days that both day
//! fields name, refuses a step that leaves its range at once, and counts weekdays up to 7, which is Sunday. Vixie cron and cronie take a day field that begins with a star
//! for a star, also with a step. For robfig/cron only a step of 1 is a star. Vixie cron takes a single number with a step for that number.
//!
//! Guarantee: nothing is said of a schedule that they take as Kubernetes does. Pure.

use super::mistakes::{SCHEDULE, fields, is_star};
use super::{Code, Fault};
use crate::cli::hints::number;
use crate::options::go_syntax::parse_duration;

/// The smallest and the greatest number of each field in go-cron. Its Sunday is 0 and 7.
const FIELDS: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];

/// What other readers make of a schedule. A descriptor such as `@daily` is the same for all, but for an `@every` below a second.
pub(super) fn judge(text: &str) -> Vec<Fault> {
    let nanoseconds = text.strip_prefix("@every ").and_then(parse_duration);
    if nanoseconds.is_some_and(|nanoseconds| nanoseconds < 1_000_000_000) {
        let message = format!(
            "kube-state-metrics from 2.19 on refuses {text}; for Kubernetes it is a second, so write @every 1s"
        );
        return vec![Fault::warning(Code::OtherDialect, SCHEDULE, message)];
    }
    let Some(fields) = fields(text) else { return Vec::new() };
    let days = both_days(fields[2], fields[4]);
    let refused = fields.iter().enumerate().find_map(|(index, field)| {
        let lower = field.to_ascii_lowercase();
        lower.split(',').find_map(|item| refused(index, item))
    });
    let sunday = if refused.is_none() { sunday(fields[4]) } else { None };
    let alone = fields.iter().enumerate().find_map(|(index, field)| {
        let lower = field.to_ascii_lowercase();
        lower.split(',').find_map(|item| alone(index, item))
    });
    days.into_iter()
        .chain(refused)
        .chain(sunday)
        .chain(alone)
        .map(|message| Fault::warning(Code::OtherDialect, SCHEDULE, message))
        .collect()
}

/// Two day fields that name days.
fn both_days(day: &str, weekday: &str) -> Option<String> {
    if is_star(day) || is_star(weekday) {
        return None;
    }
    let stepped = [("third", day), ("fifth", weekday)].into_iter().find(|(_, field)| field.starts_with('*'));
    Some(match stepped {
        Some((which, field)) => format!(
            "Vixie cron and cronie, and kube-state-metrics from 2.19 on, take only days that the third and the fifth field both name, \
             because the {which} ({field}) begins with a star; Kubernetes takes the days that one of them names"
        ),
        None => format!(
            "kube-state-metrics from 2.19 on takes only days that the third field ({day}) and the fifth ({weekday}) both name, so its \
             kube_cronjob_next_schedule_time is later than the next run"
        ),
    })
}

/// A step that is not less than the numbers of its range, so that only the first of them matches.
fn refused(field: usize, item: &str) -> Option<String> {
    let (range, step) = item.split_once('/')?;
    let step: u32 = step.parse().ok().filter(|step| *step > 1)?;
    let (smallest, greatest) = FIELDS[field];
    let (first, last) = match range.split_once('-') {
        _ if matches!(range, "*" | "?") => (smallest, greatest),
        Some((first, last)) => (number(field, first)?, number(field, last)?),
        None => (number(field, range)?, greatest),
    };
    let size = last.checked_sub(first)? + 1;
    (step >= size).then(|| {
        format!(
            "kube-state-metrics from 2.19 on refuses {item}, whose step is not less than the {size} numbers of its range: 2.19.0 \
             crashes, and later ones may have no kube_cronjob_next_schedule_time; it matches {first} alone, so write {first}"
        )
    })
}

/// A step behind a single number, which Vixie cron leaves out.
fn alone(field: usize, item: &str) -> Option<String> {
    let (first, step) = item.split_once('/')?;
    let (from, step) = (number(field, first)?, step.parse::<u32>().ok()?);
    // Kubernetes' weekdays end with Saturday.
    let last = FIELDS[field].1.min(if field == 4 { 6 } else { u32::MAX });
    (step > 0 && from.checked_add(step)? <= last).then(|| {
        format!(
            "Vixie cron takes {item} for {first} alone, because a step belongs to a range there; {first}-{last}/{step} is the same for \
             both"
        )
    })
}

/// A step from a weekday on that reaches 7, where Sunday is not among the days for Kubernetes.
fn sunday(weekday: &str) -> Option<String> {
    let weekday = weekday.to_ascii_lowercase();
    let first = |item: &str| number(4, item.split(['/', '-']).next()?);
    if is_star(&weekday) || weekday.split(',').any(|item| item.starts_with(['*', '?']) || first(item) == Some(0)) {
        return None;
    }
    let reaches = |item: &&str| {
        let (from, step) = item.split_once('/')?;
        let (from, step) = (number(4, from)?, step.parse::<u32>().ok().filter(|step| *step > 0)?);
        7_u32.checked_sub(from).map(|days| days.is_multiple_of(step))
    };
    let item = weekday.split(',').find(|item| reaches(item) == Some(true))?;
    Some(format!(
        "kube-state-metrics from 2.19 on takes Sunday, too, for {item} in the fifth field, because its weekdays end with 7; Kubernetes' \
         end with Saturday"
    ))
}

#[cfg(test)]
mod tests;
