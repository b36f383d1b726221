//! What Jobs and Events tell of the slots of one CronJob, indexed.
//!
//! Guarantees: Jobs and Events are read once, and looking a slot up takes no more steps than the logarithm of their number. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, Utc};

use crate::api::batch_v1::{CronJob, Job};
use crate::cli::cluster::Known;

/// The time of a slot as upstream's Events write it.
const TIME: &str = "%a, %d %b %Y %H:%M:%S UTC";
/// The length of such a time.
const TIME_LENGTH: usize = "Sun, 22 Nov 2026 10:00:00 UTC".len();

/// The traces that slots left.
pub(super) struct Traces<'a> {
    cron_job: &'a CronJob,
    /// The CronJob's Jobs by name.
    jobs: HashMap<&'a str, &'a Arc<Job>>,
    /// The names of the Jobs that an Event says were created.
    created: HashSet<&'a str>,
    /// The times of the slots that an Event says were missed.
    missed: HashSet<&'a str>,
    /// By creation: when each Job was created, and of the Jobs until then the one that ran the longest, with its end.
    runs: Vec<(DateTime<Utc>, DateTime<Utc>, &'a Job)>,
    /// The newest slot that has a Job, or that the status names.
    pub last_slot: Option<DateTime<Utc>>,
}

impl<'a> Traces<'a> {
    /// Reads the Jobs and Events of a CronJob. A Job that has not ended runs until `now`.
    pub fn of(known: &'a Known, now: DateTime<Utc>) -> Self {
        let cron_job = &*known.facts.cron_job;
        let children = || steps::each(known.facts.jobs.iter()).filter(|job| job.is_child_of(cron_job));
        let end = |job: &Job| if job.finished.is_none() { Some(now) } else { job.completion_time };
        // Those of a backfill block nothing.
        let blocking = children().filter(|job| !job.of_backfill);
        let mut runs: Vec<_> = blocking.filter_map(|job| Some((job.creation_timestamp, end(job)?, &**job))).collect();
        runs.sort_by_key(|(created, ..)| *created);
        for later in 1..runs.len() {
            let (_, end, job) = runs[later - 1];
            if runs[later].1 <= end {
                (runs[later].1, runs[later].2) = (end, job);
            }
        }
        let said = |reason: &'a str| steps::each(known.events.iter()).filter(move |event| event.reason == reason);
        let created = said("SuccessfulCreate").filter_map(|event| Some(event.message.rsplit_once(' ')?.1));
        let missed = said("MissSchedule").filter_map(|event| {
            let start = event.message.len().checked_sub(TIME_LENGTH)?;
            event.message.get(start..)
        });
        Self {
            cron_job,
            jobs: children().map(|job| (&*job.name.name, job)).collect(),
            created: created.collect(),
            missed: missed.collect(),
            runs,
            last_slot: children()
                .filter_map(|job| job.slot_of(cron_job))
                .chain(cron_job.status.last_schedule_time)
                .max(),
        }
    }

    fn name_of(&self, slot: DateTime<Utc>) -> String {
        steps::add(1);
        self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot)
    }

    /// The Job of a slot, if it still exists.
    pub fn job_of(&self, slot: DateTime<Utc>) -> Option<&'a Arc<Job>> {
        self.jobs.get(&*self.name_of(slot)).copied()
    }

    /// Whether an Event says that the Job of a slot was created.
    pub fn says_created(&self, slot: DateTime<Utc>) -> bool {
        self.created.contains(&*self.name_of(slot))
    }

    /// Whether an Event says that a slot missed its deadline.
    pub fn says_missed(&self, slot: DateTime<Utc>) -> bool {
        steps::add(1);
        !self.missed.is_empty() && self.missed.contains(&*slot.format(TIME).to_string())
    }

    /// A Job that ran when a slot came, and until `until`: of those that did, the one that ran the longest.
    pub fn running_from(&self, slot: DateTime<Utc>, until: DateTime<Utc>) -> Option<&'a Job> {
        let started = self.runs.partition_point(|(created, ..)| {
            steps::add(1);
            *created <= slot
        });
        let (_, end, job) = self.runs.get(started.checked_sub(1)?)?;
        (*end >= until).then_some(job)
    }
}
