//! What keeps several CronJobs from running at once, said once.
//!
//! Guarantees: a cause is named if at least two CronJobs have it, those of most CronJobs first. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::model::Model;
use crate::cli::explain::{Explanation, Urgency};
use crate::cli::output::count;

/// The least number of CronJobs that share a cause.
const LEAST: usize = 2;

/// A cause that CronJobs share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cause {
    /// In a sentence, without its end.
    text: String,
    /// What finds the CronJobs, whose words have it.
    q: String,
}

/// A cause and how many CronJobs have it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Banner {
    text: String,
    q: String,
}

impl Cause {
    /// What keeps the CronJob from running that keeps others, too: that no controller runs, or that a webhook refuses its Jobs.
    pub fn of(told: &Explanation) -> Option<Self> {
        if told.state.urgency() != Urgency::Overdue {
            return None;
        }
        if let Some(lease) = &told.abandoned_lease {
            let since = told.abandoned_since.clone().unwrap_or_else(|| "it was made".to_owned());
            return Some(Self {
                text: format!("No controller has renewed its Lease {lease} since {since}"),
                q: lease.clone(),
            });
        }
        let refusal = told.warnings.iter().find(|warning| warning.reason == "FailedCreate")?;
        let webhook = refusal.message.split_once("webhook \"")?.1.split_once('"')?.0;
        let text = format!("The webhook {webhook} refuses the Jobs of namespace {}", told.namespace);
        Some(Self { text, q: format!("{}/", told.namespace) })
    }
}

/// The causes that CronJobs share.
pub fn banners(model: &Model) -> Vec<Banner> {
    let mut found: BTreeMap<&Cause, usize> = BTreeMap::new();
    for cause in model.rows.values().filter_map(|row| row.cause.as_ref()) {
        *found.entry(cause).or_default() += 1;
    }
    let mut found: Vec<_> = found.into_iter().filter(|(_, number)| *number >= LEAST).collect();
    found.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let banner = |(cause, number): (&Cause, usize)| Banner {
        text: format!("{}: {} did not start.", cause.text, count(number, "CronJob")),
        q: cause.q.clone(),
    };
    found.into_iter().map(banner).collect()
}

#[cfg(test)]
mod tests;
