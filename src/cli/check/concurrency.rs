//! Jobs that pile up, because nothing bounds how many of them run at a time.
//!
//! Guarantee: a schedule costs as many steps as it has runs in [`RUNS`] at most, whatever it is. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::times::Timed;
use super::{Code, Fault};
use crate::api::policy::MAX_CONCURRENT;

/// As many runs in a day as an hourly schedule has.
const RUNS: usize = 24;

/// Whether Jobs that hang or cannot start can pile up, and what to write. Allow is the default.
pub(super) fn judge(timed: &Timed, object: &Value, today: DateTime<Utc>) -> Option<Fault> {
    let spec = &object["spec"];
    let policy = &spec["concurrencyPolicy"];
    // A kind without policies has no such annotation, and starts Pods.
    let allows = (policy.is_null() || policy == "Allow") && timed.has_policies();
    if !allows || timed.max_concurrent().is_some() || has_deadline(spec) || !is_frequent(timed, today) {
        return None;
    }
    let is = if policy.is_null() { "is not set, which means Allow" } else { "is Allow" };
    let message = format!(
        "{is}, and nothing bounds how many Jobs run at a time: those that hang or cannot start pile up, {RUNS} a day or more; write \
         Forbid or Replace here, activeDeadlineSeconds in the Job, or the annotation {MAX_CONCURRENT}"
    );
    Some(Fault::warning(Code::AllowWithoutBound, "spec.concurrencyPolicy", message))
}

/// Whether the Job or its Pods end by themselves.
pub(super) fn has_deadline(spec: &Value) -> bool {
    let template = &spec["jobTemplate"]["spec"];
    let limits = [&template["activeDeadlineSeconds"], &template["template"]["spec"]["activeDeadlineSeconds"]];
    limits.iter().any(|limit| !limit.is_null())
}

/// Whether it runs as often as once an hour, or as many times in a part of the day.
fn is_frequent(timed: &Timed, today: DateTime<Utc>) -> bool {
    let schedule = &timed.schedule;
    let first = schedule.next_after(today).filter(|_| !timed.is_never_due());
    let Some(first) = first else { return false };
    let runs = std::iter::successors(Some(first), |slot| schedule.next_after(*slot));
    runs.take_while(|slot| *slot < first + TimeDelta::days(1)).take(RUNS).count() == RUNS
}

#[cfg(test)]
mod tests;
