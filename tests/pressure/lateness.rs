//! The delay of Jobs, as a watch of the test has seen them.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use testkit::driver::job_name;
use testkit::sightings::Sightings;

use crate::table::float;

/// The times from a slot to its Jobs, in seconds, in ascending order.
#[derive(Debug, Default)]
pub struct Lateness(Vec<f64>);

impl Lateness {
    /// Of the Jobs of one slot that were seen, counted from `since`.
    pub fn of(
        sightings: &Sightings,
        namespace: &str,
        cron_jobs: impl IntoIterator<Item = String>,
        slot: DateTime<Utc>,
        since: DateTime<Utc>,
    ) -> Self {
        let all = sightings.all();
        let seen: HashMap<&str, DateTime<Utc>> =
            all.iter().filter(|job| job.namespace == namespace).map(|job| (job.name.as_str(), job.at)).collect();
        let times = cron_jobs.into_iter().filter_map(|name| seen.get(job_name(&name, slot).as_str()).copied());
        let mut seconds: Vec<f64> = times.map(|at| (at - since).as_seconds_f64()).collect();
        seconds.sort_unstable_by(f64::total_cmp);
        Self(seconds)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The number of Jobs with at most this delay.
    pub fn within(&self, seconds: f64) -> usize {
        self.0.iter().filter(|late| **late <= seconds).count()
    }

    /// The smallest time that this share of the Jobs does not exceed.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank within the list")]
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let rank = (float(self.0.len()) * share).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied()
    }

    pub fn last(&self) -> Option<f64> {
        self.0.last().copied()
    }
}

/// Waits until `is_done`, or until `deadline`.
pub async fn done_or_late(deadline: DateTime<Utc>, is_done: impl Fn() -> bool) {
    while !is_done() && Utc::now() < deadline {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
