//! Whether the status of a CronJob agrees with its Jobs.
//!
//! Guarantees: the rules are those of the final state. `active` is the unfinished Jobs of slots, `lastScheduleTime` the newest slot
//! that had a Job, and `lastSuccessfulTime` not before the newest success of a Job that exists. What is wrong for a moment is not
//! reported: only what has been wrong for [`LASTS`] without a break, once. Pure; `now` is an argument.

use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};

use crate::api::Uid;
use crate::api::batch_v1::{CronJob, Job};

/// How long a status may be wrong.
pub(super) const LASTS: TimeDelta = TimeDelta::seconds(60);

/// What has been wrong, since when, and whether it was reported.
#[derive(Debug, Default)]
pub(super) struct StatusWatch([Option<(DateTime<Utc>, bool)>; 3]);

impl StatusWatch {
    /// Takes what is seen at `now`, and returns what has been wrong for a minute. `started` is the newest slot that had a Job.
    pub fn look(
        &mut self,
        cron_job: &CronJob,
        jobs: &[Arc<Job>],
        started: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Vec<String> {
        let wrong = if cron_job.deleting { Default::default() } else { wrong(cron_job, jobs, started) };
        let mut found = Vec::new();
        for (known, wrong) in self.0.iter_mut().zip(wrong) {
            let Some(text) = wrong else {
                *known = None;
                continue;
            };
            let (since, is_reported) = known.get_or_insert((now, false));
            if !*is_reported && now - *since >= LASTS {
                *is_reported = true;
                found.push(format!("status wrong for over a minute: {text}"));
            }
        }
        found
    }

    /// When it has to be looked at again.
    pub fn next_look(&self) -> Option<DateTime<Utc>> {
        self.0.iter().flatten().filter(|(_, is_reported)| !is_reported).map(|(since, _)| *since + LASTS).min()
    }

    /// Forgets what was wrong: it was not watched for a while.
    pub fn reset(&mut self) {
        self.0 = Default::default();
    }
}

/// What is wrong with `active`, `lastScheduleTime` and `lastSuccessfulTime`.
fn wrong(cron_job: &CronJob, jobs: &[Arc<Job>], started: Option<DateTime<Utc>>) -> [Option<String>; 3] {
    let status = &cron_job.status;
    let of_slots = || steps::each(jobs.iter()).filter(|job| job.slot_of(cron_job).is_some());
    let unlisted = of_slots().find(|job| job.finished.is_none() && !job.deleting && !status.in_active_list(&job.uid));
    // A user decides how long both lists are.
    let by_uid: HashMap<&Uid, &Arc<Job>> = if status.active.is_empty() {
        HashMap::new()
    } else {
        steps::each(jobs.iter()).map(|job| (&job.uid, job)).collect()
    };
    let is_over = |uid: &Uid| by_uid.get(uid).is_none_or(|job| job.finished.is_some());
    let active = if let Some(job) = unlisted {
        Some(format!("active lacks the running Job {}", job.name.name))
    } else {
        let over = status.active.iter().find(|reference| is_over(&reference.uid));
        over.map(|reference| format!("active has Job {}, which has ended or is gone", reference.name))
    };
    let number = |slot: DateTime<Utc>| cron_job.controller_kind.number_of(slot);
    let is_behind = |slot: &DateTime<Utc>| status.last_schedule_time.is_none_or(|last| number(last) < number(*slot));
    let scheduled = started.filter(is_behind).map(|slot| {
        format!("lastScheduleTime is {}, and {} had a Job", told(status.last_schedule_time), told(Some(slot)))
    });
    let succeeded = of_slots()
        .filter(|job| job.succeeded)
        .filter_map(|job| Some((job.completion_time?, job)))
        .max_by_key(|(time, _)| *time);
    let has_field = cron_job.controller_kind.has_last_successful_time;
    let successful =
        succeeded.filter(|(time, _)| has_field && status.last_successful_time < Some(*time)).map(|(time, job)| {
            let last = told(status.last_successful_time);
            format!("lastSuccessfulTime is {last}, and Job {} succeeded at {}", job.name.name, told(Some(time)))
        });
    [active, scheduled, successful]
}

fn told(time: Option<DateTime<Utc>>) -> String {
    time.map_or_else(|| "not set".to_owned(), |time| time.format("%F %TZ").to_string())
}

#[cfg(test)]
mod tests;
