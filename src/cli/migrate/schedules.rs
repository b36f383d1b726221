//! What the two controllers read differently in a CronJob.
//!
//! Guarantees: slots are the controller's, from the same code, with and without the policies. What the in-tree controller
//! starts late is estimated as it does that. A difference after [`SLOTS`] slots and after [`STRETCH`] is not looked for; the steps of the
//! comparison are bounded. Pure.

use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::{Observed, next_schedule_time};
use schedule::{Evaluation, Schedule, Zone};

use super::old_slots::left_out;
use super::read::Seen;
use super::{Code, Finding, Object};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob};
use crate::api::crd::MAX_NAME_LENGTH;
use crate::api::policy::{Policy, SCHEDULE, SLOT_IN_POD, SPREAD};
use crate::cli::output::{moment, stretch};

/// How many slots are compared, and for how long: the longer of both.
const SLOTS: usize = 1000;
const STRETCH: TimeDelta = TimeDelta::days(35);

/// So many are compared at most: those of a schedule that runs each minute.
const MOST_SLOTS: usize = 35 * 24 * 60;

/// The longest name of a Job: its Pods have it as the value of a label.
const MAX_JOB_NAME_LENGTH: usize = 63;

pub(super) fn find(seen: &Seen, local: Zone, now: DateTime<Utc>) -> Vec<Finding> {
    let cron_job = &seen.cron_job;
    if cron_job.deleting {
        return Vec::new();
    }
    let timing = cron_job.timing(local);
    let own = timing.schedule.as_ref().ok().filter(|_| timing.time_zone.is_ok() && !cron_job.spec.suspend);
    let slots = own.and_then(|own| schedule_differs(cron_job, own, local, now).or_else(|| lost(seen, own, local, now)));
    let limits = own.and_then(|_| limits_differ(cron_job));
    let zone = timing.zone_in_schedule.then(|| zone_in_schedule(cron_job, timing.schedule.is_ok()));
    slots.into_iter().chain(limits).chain(zone).chain(long_name(cron_job, now)).collect()
}

/// The slot that the in-tree controller would start at `now`.
pub(super) fn in_tree_slot(cron_job: &CronJob, own: &Schedule, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let slot = next_schedule_time(&observed(cron_job), now, &Evaluation::of(own)).ok()?.0?;
    in_tree_finds(cron_job, own, now).then_some(slot)
}

/// The fields by which the in-tree controller counts.
fn observed(cron_job: &CronJob) -> Observed {
    Observed {
        creation: cron_job.creation_timestamp,
        last_schedule: cron_job.status.last_schedule_time,
        starting_deadline_seconds: cron_job.spec.starting_deadline_seconds,
    }
}

/// Whether the in-tree controller finds the slot that is due. It goes back by the first interval, as often as that fits, and
/// misses the slot if none lies between. Matches `mostRecentScheduleTime` in pkg/controller/cronjob/utils.go.
fn in_tree_finds(cron_job: &CronJob, own: &Schedule, now: DateTime<Utc>) -> bool {
    let Observed { creation, last_schedule, starting_deadline_seconds } = observed(cron_job);
    let deadline = starting_deadline_seconds.and_then(TimeDelta::try_seconds);
    let deadline = deadline.and_then(|deadline| now.checked_sub_signed(deadline));
    let earliest = last_schedule.unwrap_or(creation);
    let earliest = deadline.map_or(earliest, |deadline| deadline.max(earliest));
    let Some(first) = own.next_after(earliest).filter(|first| *first <= now) else { return true };
    let Some(second) = own.next_after(first).filter(|second| *second <= now) else { return true };
    let interval = (second - first).num_seconds().max(1);
    let missed = (now - first).num_seconds() / interval + 1;
    let from = TimeDelta::try_seconds((missed - 2) * interval).and_then(|delta| first.checked_add_signed(delta));
    from.and_then(|from| own.next_after(from)).is_some_and(|slot| slot <= now)
}

/// The slot that is due here, and that the in-tree controller would lose.
fn lost(seen: &Seen, own: &Schedule, local: Zone, now: DateTime<Utc>) -> Option<Finding> {
    let cron_job = &seen.cron_job;
    let slot = next_schedule_time(&observed(cron_job), now, &Evaluation::of(own)).ok()?.0?;
    if in_tree_finds(cron_job, own, now) || seen.has_job_of(slot) {
        return None;
    }
    let (object, zone) = (Object::of(cron_job), own.zone().unwrap_or(local));
    let message = format!(
        "{object} is due since {}, and the in-tree controller would not start it: the gaps between the slots of its schedule \
         differ, and it estimates the newest one from the first gap.",
        moment(zone, slot)
    );
    let finding = Finding::new(Code::ScheduleDiffers, object, message).changing_runs();
    Some(Finding { slot: Some(zone.at(slot)), ..finding })
}

/// The next slots of which only one controller has a slot, and the delay of `spread`.
fn schedule_differs(cron_job: &Arc<CronJob>, own: &Schedule, local: Zone, now: DateTime<Utc>) -> Option<Finding> {
    let (object, zone) = (Object::of(cron_job), own.zone().unwrap_or(local));
    let policy = match cron_job.policy() {
        Ok(policy) => policy?,
        Err(error) => {
            let slot = own.next_after(now)?;
            let when = moment(zone, slot);
            let message = format!(
                "Under the in-tree controller, {object} would run at {when}, and here it does not run: {error}."
            );
            let finding = Finding::new(Code::ScheduleDiffers, object, message).changing_runs();
            return Some(Finding { slot: Some(zone.at(slot)), ..finding });
        }
    };
    let schedule = policy.schedule(own);
    let (mut parts, mut first) = (Vec::new(), None);
    if !std::ptr::eq(schedule, own) && !policy.leaves_all_after(now) {
        let ([only_in_tree, only_here], compared) = differences(own, schedule, now);
        if let Some(slot) = only_in_tree {
            let annotation = left_out(cron_job, own, slot).unwrap_or_else(|| SCHEDULE.to_owned());
            parts.push(format!("would run at {}, which {annotation} leaves out here", moment(zone, slot)));
        }
        if let Some(slot) = only_here {
            let annotation = if policy.has_lines() { SCHEDULE } else { crate::api::policy::DST };
            parts.push(format!("would not run at {}, which {annotation} adds here", moment(zone, slot)));
        }
        first = only_in_tree.into_iter().chain(only_here).min();
        if parts.is_empty() {
            parts.push(format!("has the same slots until {}, and other ones later", moment(zone, compared)));
        }
    }
    let changes = first.is_some();
    if policy.spread().is_some() && !cron_job.offset().is_zero() {
        parts.push(format!(
            "would start each Job at its slot, {} earlier than with {SPREAD}",
            stretch(cron_job.offset())
        ));
    }
    if parts.is_empty() {
        return None;
    }
    let message = format!("Under the in-tree controller, {object} {}.", parts.join(", and "));
    let finding = Finding::new(Code::ScheduleDiffers, object, message);
    let finding = if changes { finding.changing_runs() } else { finding };
    Some(Finding { slot: first.map(|slot| zone.at(slot)), ..finding })
}

/// The first slot after `now` that only `own` has, and the first that only `other` has; and until when the slots were compared.
fn differences(own: &Schedule, other: &Schedule, now: DateTime<Utc>) -> ([Option<DateTime<Utc>>; 2], DateTime<Utc>) {
    let (mut one, mut two) = (own.next_after(now), other.next_after(now));
    let (mut found, mut compared) = ([None; 2], now);
    for number in 0..MOST_SLOTS {
        steps::add(1);
        let Some(slot) = one.into_iter().chain(two).min() else { break };
        let is_found = found.iter().any(Option::is_some);
        if found.iter().all(Option::is_some) || number >= SLOTS && (is_found || slot - now > STRETCH) {
            break;
        }
        compared = slot;
        let (is_of_one, is_of_two) = (one == Some(slot), two == Some(slot));
        if is_of_one {
            one = own.next_after(slot);
        }
        if is_of_two {
            two = other.next_after(slot);
        }
        match (is_of_one, is_of_two) {
            (true, false) => found[0] = found[0].or(Some(slot)),
            (false, true) => found[1] = found[1].or(Some(slot)),
            _ => {}
        }
    }
    (found, compared)
}

/// The annotations that have no effect there when a slot is due.
fn limits_differ(cron_job: &CronJob) -> Option<Finding> {
    let limits = cron_job.policy().ok().flatten().map(Policy::limits)?;
    let set: Vec<&str> = limits.effective().filter(|name| *name != SLOT_IN_POD).collect();
    let object = Object::of(cron_job);
    if set.is_empty() {
        // It changes no run.
        let message = format!(
            "Under the in-tree controller, {SLOT_IN_POD} of {object} has no effect: its Pods do not get their slot."
        );
        return limits.slot_in_pod.then(|| Finding::new(Code::LimitsDiffer, object, message));
    }
    let concurrency = match cron_job.spec.concurrency_policy {
        ConcurrencyPolicy::Forbid => "Forbid",
        ConcurrencyPolicy::Replace => "Replace",
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Unknown => "Allow",
    };
    let (names, has) = (set.join(", "), if set.len() == 1 { "has" } else { "have" });
    let message = format!(
        "Under the in-tree controller, {names} of {object} {has} no effect: concurrencyPolicy {concurrency} alone decides whether a \
         due slot starts."
    );
    Some(Finding::new(Code::LimitsDiffer, object, message).changing_runs())
}

fn zone_in_schedule(cron_job: &CronJob, is_valid: bool) -> Finding {
    let (object, schedule) = (Object::of(cron_job), cron_job.spec.recurrence.schedule());
    let effect = if is_valid {
        "Both controllers run it in that zone, with a Warning UnsupportedSchedule at each sync"
    } else {
        "Neither controller runs it"
    };
    let message = format!(
        "{object} has its time zone in spec.schedule ({schedule}). {effect}. The API server keeps it and refuses it in a new \
         CronJob, so that a backup of it cannot be restored; use spec.timeZone."
    );
    Finding::new(Code::TimeZoneInSchedule, object, message)
}

fn long_name(cron_job: &CronJob, now: DateTime<Utc>) -> Option<Finding> {
    let (object, name) = (Object::of(cron_job), &*cron_job.name.name);
    if name.len() <= MAX_NAME_LENGTH {
        return None;
    }
    let job = cron_job.controller_kind.child_name(name, now).len();
    let effect = if job > MAX_JOB_NAME_LENGTH {
        format!("The API server refuses its Jobs, whose names have {job}, so neither controller runs it")
    } else {
        format!("Its Jobs have names of {job}, which the API server accepts, so both controllers run it")
    };
    let message = format!(
        "{object} has a name of {} characters, and the API server allows {MAX_NAME_LENGTH} for a new CronJob. {effect}.",
        name.len()
    );
    Some(Finding::new(Code::LongName, object, message))
}
