//! Jobs that pile up, because nothing bounds how many of them run at a time.
//!
//! Guarantee: a schedule costs as many steps as for a run in each minute of a day at most, whatever it is. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::times::Timed;
use super::{Code, Fault};
use crate::api::policy::MAX_CONCURRENT;

/// As many runs in a day as an hourly schedule has.
const RUNS: usize = 24;
/// A deadline bounds the Jobs of a CronJob if no more than these start until it has passed.
const MOST: usize = 100;
/// A day, and its minutes.
const DAY: TimeDelta = TimeDelta::days(1);
const MINUTES: usize = 1440;

/// Whether Jobs that hang or cannot start can pile up, and what to write. Allow is the default.
pub(super) fn judge(timed: &Timed, object: &Value, today: DateTime<Utc>) -> Option<Fault> {
    let spec = &object["spec"];
    let policy = &spec["concurrencyPolicy"];
    // A kind without policies has no such annotation, and starts Pods.
    let allows = (policy.is_null() || policy == "Allow") && timed.has_policies();
    let is_frequent = || more_than(RUNS - 1, timed, today, DAY);
    if !allows || timed.suspended || timed.max_concurrent().is_some() || !is_frequent() {
        return None;
    }
    // That of a Pod does not count while it cannot start.
    let deadline = spec["jobTemplate"]["spec"]["activeDeadlineSeconds"].as_i64().and_then(TimeDelta::try_seconds);
    if deadline.is_some_and(|deadline| !more_than(MOST, timed, today, deadline)) {
        return None;
    }
    let is = if policy.is_null() { "is not set, which means Allow" } else { "is Allow" };
    let bounds = if deadline.is_some() { "activeDeadlineSeconds is too long to bound" } else { "nothing bounds" };
    let runs = runs_a_day(timed, today);
    let message = format!(
        "{is}, and {bounds} how many Jobs run at a time: those that hang or cannot start pile up, {runs} a day; write \
         Forbid or Replace here, activeDeadlineSeconds in the Job, or the annotation {MAX_CONCURRENT}"
    );
    Some(Fault::warning(Code::AllowWithoutBound, "spec.concurrencyPolicy", message))
}

/// Whether the Job or its Pods end by themselves once they run.
pub(super) fn has_deadline(spec: &Value) -> bool {
    let template = &spec["jobTemplate"]["spec"];
    let limits = [&template["activeDeadlineSeconds"], &template["template"]["spec"]["activeDeadlineSeconds"]];
    limits.iter().any(|limit| !limit.is_null())
}

/// How many runs start in a day from its first run on.
fn runs_a_day(timed: &Timed, today: DateTime<Utc>) -> usize {
    match timed.schedule.interval() {
        // Its slots can be as close as a second.
        Some(interval) => {
            usize::try_from((DAY.num_seconds() - 1) / interval.num_seconds().max(1) + 1).unwrap_or_default()
        }
        None => runs(timed, today, DAY).take(MINUTES).count(),
    }
}

/// Whether more than `most` runs start within a time.
fn more_than(most: usize, timed: &Timed, today: DateTime<Utc>, within: TimeDelta) -> bool {
    runs(timed, today, within).take(most + 1).count() > most
}

/// The runs within a time from the first one on.
fn runs(timed: &Timed, today: DateTime<Utc>, within: TimeDelta) -> impl Iterator<Item = DateTime<Utc>> {
    let first = timed.schedule.next_after(today).filter(|_| !timed.is_never_due());
    let runs = std::iter::successors(first, |slot| timed.schedule.next_after(*slot));
    runs.take_while(move |slot| first.is_some_and(|first| *slot - first < within))
}

#[cfg(test)]
mod tests;
