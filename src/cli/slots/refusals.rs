//! Of which slots Events say that the API server refused their Jobs.
//!
//! Guarantee: an Event that names the Job of a slot is about that slot, and one that names none is about the slot that was the newest when
//! it was recorded. Pure.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::traces::said;
use crate::api::batch_v1::CronJob;
use crate::cli::cluster::Known;
use crate::cli::explain::read::Said;

/// The Events about refusals.
pub(super) struct Refusals<'a> {
    cron_job: &'a CronJob,
    /// The newest one for each Job that is named.
    by_job: HashMap<&'a str, &'a Said>,
    /// Those that name no Job, by their time.
    others: Vec<&'a Said>,
}

impl<'a> Refusals<'a> {
    /// Reads the Events of a CronJob.
    pub fn of(known: &'a Known) -> Self {
        let cron_job = &*known.facts.cron_job;
        let (mut by_job, mut others): (HashMap<&str, &Said>, Vec<&Said>) = (HashMap::new(), Vec::new());
        for refusal in said(known, "FailedCreate") {
            match job_in(cron_job, &refusal.message) {
                Some(job) => {
                    let newest = by_job.entry(job).or_insert(refusal);
                    *newest = if refusal.time > newest.time { refusal } else { *newest };
                }
                None => others.push(refusal),
            }
        }
        others.sort_by_key(|refusal| refusal.time);
        Self { cron_job, by_job, others }
    }

    /// The newest one of a slot. The next slot is due at `next`.
    pub fn of_slot(&self, slot: DateTime<Utc>, next: impl FnOnce() -> Option<DateTime<Utc>>) -> Option<&'a Said> {
        if self.by_job.is_empty() && self.others.is_empty() {
            return None;
        }
        let name = self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot);
        if let Some(refusal) = self.by_job.get(&*name) {
            return Some(refusal);
        }
        // With a backlog the oldest slot that waits is tried.
        let is_newest = self.cron_job.limits().backlog.is_none_or(|backlog| backlog == 0);
        let next = next();
        let before = self.others.partition_point(|refusal| next.is_none_or(|next| refusal.time < next));
        let newest = self.others.get(before.checked_sub(1)?).copied();
        newest.filter(|refusal| is_newest && refusal.time >= self.cron_job.due(slot))
    }
}

/// Whether a refusal is an answer of the API server or of what it asks. A create without an answer may have made its Job.
pub(super) fn is_answer(message: &str) -> bool {
    [" is forbidden", " is invalid", "denied the request"].iter().any(|words| message.contains(words))
}

/// The Job of a slot that a message names.
fn job_in<'a>(cron_job: &CronJob, message: &'a str) -> Option<&'a str> {
    let mut words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.');
    words.find(|word| cron_job.number_in(word).is_some())
}
