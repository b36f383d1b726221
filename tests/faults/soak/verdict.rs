//! Evaluates a soak by the Jobs that were seen.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use testkit::driver::{CRON_JOBS, Namespace, rfc3339};
use testkit::sightings::{Sighting, Sightings};

/// The kills so far.
#[derive(Default)]
pub struct Kills {
    pub controller: usize,
    pub api_server: usize,
    /// From the API server's end until it was ready again.
    pub longest_outage: Duration,
}

impl Kills {
    pub fn total(&self) -> usize {
        self.controller + self.api_server
    }
}

impl Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, api_server, longest_outage } = self;
        write!(f, "{controller} kills of the controller, {api_server} of kube-apiserver")?;
        if *api_server > 0 {
            write!(f, " (gone for up to {:.1} s)", longest_outage.as_secs_f64())?;
        }
        Ok(())
    }
}

/// The minute in a Job's name.
pub fn slot_of(job: &Sighting) -> Option<DateTime<Utc>> {
    let minutes: i64 = job.name.rsplit_once('-')?.1.parse().ok()?;
    DateTime::from_timestamp(minutes * 60, 0)
}

/// The results of the slots from the first to the last.
pub struct Verdict {
    slots: usize,
    lost: usize,
    /// The number of affected CronJobs by minute.
    lost_of: Vec<String>,
    twice: Vec<String>,
    /// Milliseconds from the slot to the first observation, sorted.
    skews: Vec<i64>,
}

/// Checks every slot of `cron_jobs` CronJobs from `first` to `end`.
pub fn judge(sightings: &Sightings, cron_jobs: usize, first: DateTime<Utc>, end: DateTime<Utc>) -> Verdict {
    let mut skews = Vec::new();
    let mut jobs_of_slot: HashMap<DateTime<Utc>, usize> = HashMap::new();
    for job in sightings.all() {
        if let Some(slot) = slot_of(&job).filter(|slot| (first..=end).contains(slot)) {
            skews.push((job.at - slot).num_milliseconds());
            *jobs_of_slot.entry(slot).or_default() += 1;
        }
    }
    skews.sort_unstable();
    let (mut slots, mut lost, mut lost_of) = (0, 0, Vec::new());
    for slot in std::iter::successors(Some(first), |slot| Some(*slot + TimeDelta::minutes(1))).take_while(|s| *s <= end)
    {
        let missing = cron_jobs.saturating_sub(jobs_of_slot.get(&slot).copied().unwrap_or_default());
        if missing > 0 {
            lost_of.push(format!("{missing} of {}", rfc3339(slot)));
        }
        slots += cron_jobs;
        lost += missing;
    }
    Verdict { slots, lost, lost_of, twice: sightings.created_twice(), skews }
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.twice.is_empty()
    }

    /// The skew in seconds that `per_mille` of all do not exceed.
    fn percentile(&self, per_mille: usize) -> f64 {
        let rank = (self.skews.len() * per_mille).div_ceil(1_000).max(1);
        let millis = self.skews.get(rank - 1).copied().unwrap_or_default();
        Duration::from_millis(u64::try_from(millis).unwrap_or_default()).as_secs_f64()
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, all] = [500, 990, 1_000].map(|per_mille| self.percentile(per_mille));
        write!(
            f,
            "{} slots; lost: {}{}; twice: {}{}; seen after the minute: p50 {half:.2} s, p99 {most:.2} s, max {all:.2} s",
            self.slots,
            self.lost,
            some(&self.lost_of),
            self.twice.len(),
            some(&self.twice)
        )
    }
}

/// The CronJobs whose status does not say that the last slot's Job ran and ended.
pub async fn wrong_statuses(namespaces: &[Namespace], last: DateTime<Utc>) -> Vec<String> {
    let mut wrong = Vec::new();
    for ns in namespaces {
        for object in ns.list(CRON_JOBS).await {
            let status = &object["status"];
            if status["lastScheduleTime"] != rfc3339(last) || status["active"].as_array().is_some_and(|a| !a.is_empty())
            {
                wrong.push(format!("{}: {status}", object["metadata"]["name"]));
            }
        }
    }
    wrong
}

/// The first few, for a line.
pub fn some(all: &[String]) -> String {
    if all.is_empty() { String::new() } else { format!(" {:?}", &all[..all.len().min(3)]) }
}

/// Whole numbers with spaces between.
pub fn list(figures: &[f64]) -> String {
    figures.iter().map(|figure| format!("{figure:.0}")).collect::<Vec<_>>().join(" ")
}
