//! What the policies of one CronJob change: its next slots without and with them.
//!
//! Guarantees: both lanes are what [`forecast`](crate::cli::forecast) says, for the same Jobs and the same time: of the CronJob, and of
//! the same one without its policies and those of its Namespace. Each difference has one kind, and the annotation that makes it where that
//! is known. A lane has at most [`SLOTS`] slots. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::api::batch_v1::{ConcurrencyPolicy, CronJob};
use crate::api::policy::{Policy, SCHEDULE, SPREAD};
use crate::cli::explain::{Facts, explain};
use crate::cli::forecast::{Ahead, Question, Will};
use crate::cli::next::cron_jobs::{annotation, slots_after};
use crate::cli::output::stretch;

/// So many slots without the policies are looked at, and as many times more of those with them.
const SLOTS: usize = 24;
const TIMES: usize = 4;

/// The lanes.
#[derive(Debug, Serialize)]
pub struct Effect {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    without: Vec<Mark>,
    with: Vec<Mark>,
    /// How many slots each kind of change concerns.
    changes: BTreeMap<Change, usize>,
}

/// A slot on a lane.
#[derive(Debug, Serialize)]
pub struct Mark {
    due: DateTime<Utc>,
    change: Change,
    why: String,
}

/// What the policies do to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Nothing.
    Same,
    /// It exists because of them.
    Added,
    /// It starts at another time.
    Moved,
    /// It does not exist because of them.
    Dropped,
    /// They keep it from starting when it is due.
    Held,
}

/// What the policies change; `None` for a CronJob without any, and for one that does not run whatever they say.
pub fn effect(facts: &Facts, local: Zone, zone: Zone, now: DateTime<Utc>) -> Option<Effect> {
    let cron_job = &facts.cron_job;
    let policy = cron_job.policy().ok().flatten()?;
    if cron_job.spec.suspend || cron_job.deleting {
        return None;
    }
    let plain = Arc::new(CronJob { policies: None, ..CronJob::clone(cron_job) });
    let last = slots_after(&plain, local, now, now).take(SLOTS).last()?;
    let until = cron_job.due(last).max(last);
    let lane = |cron_job: &Arc<CronJob>, until, most| {
        let facts = Facts::of(Arc::clone(cron_job), facts.in_charge, facts.jobs.clone());
        let told = explain(&facts, local, now);
        let ahead = Question { facts: &facts, told: &told, local, zone, now, until, most }.answer();
        ahead.into_iter().map(|ahead| (ahead.slot, ahead)).collect::<BTreeMap<_, _>>()
    };
    let without = lane(&plain, last, SLOTS);
    let with = lane(cron_job, until, SLOTS * TIMES);
    // Slots that were due before now are of the past.
    let slots: BTreeSet<DateTime<Utc>> =
        without.keys().chain(with.keys()).copied().filter(|slot| *slot > now).collect();
    let mut found = Effect { from: now, to: until, without: Vec::new(), with: Vec::new(), changes: BTreeMap::new() };
    for slot in slots {
        let (before, after) = (without.get(&slot), with.get(&slot));
        let change = change(before, after);
        *found.changes.entry(change).or_default() += 1;
        let why = why(change, cron_job, policy, (slot, after), local);
        found.without.extend(before.map(|ahead| plain_mark(ahead, change, &why)));
        found.with.extend(after.map(|ahead| Mark { due: ahead.starts.unwrap_or(ahead.due), change, why }));
    }
    Some(found)
}

/// A slot on the lane without the policies, which hold and move nothing there.
fn plain_mark(ahead: &Ahead, change: Change, why: &str) -> Mark {
    let (change, why) = match change {
        Change::Dropped => (change, why.to_owned()),
        _ if ahead.will != Will::Start => (Change::Held, ahead.why.clone()),
        _ => (Change::Same, String::new()),
    };
    Mark { due: ahead.due, change, why }
}

fn change(before: Option<&Ahead>, after: Option<&Ahead>) -> Change {
    match (before, after) {
        (None, _) => Change::Added,
        (_, None) => Change::Dropped,
        (Some(before), Some(after)) if after.will != Will::Start && before.will == Will::Start => Change::Held,
        (Some(before), Some(after)) if before.starts != after.starts => Change::Moved,
        _ => Change::Same,
    }
}

fn why(
    change: Change,
    cron_job: &CronJob,
    policy: &Policy,
    (slot, after): (DateTime<Utc>, Option<&Ahead>),
    local: Zone,
) -> String {
    match change {
        Change::Same => String::new(),
        Change::Added if policy.lines().is_some() => SCHEDULE.to_owned(),
        Change::Added => "the policies".to_owned(),
        Change::Moved if cron_job.offset() > chrono::TimeDelta::zero() => {
            format!("{} later ({SPREAD})", stretch(cron_job.offset()))
        }
        Change::Moved | Change::Held => {
            after.map(|ahead| ahead.why.clone()).filter(|why| !why.is_empty()).unwrap_or_else(|| {
                let forbids = cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid;
                if forbids { "earlier runs end at other times" } else { "the policies" }.to_owned()
            })
        }
        Change::Dropped => {
            let before = slot - chrono::TimeDelta::seconds(1);
            let nominal = cron_job.schedule(local).and_then(|schedule| schedule.nominal(before).next());
            let left_out = nominal.filter(|nominal| nominal.slot == slot).and_then(|nominal| nominal.left_out);
            left_out.map_or(SCHEDULE, annotation).to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
