//! Which policies of one CronJob were together when it started a Job.
//!
//! Every pair that validation allows is required of a run of many seeds: of two annotations, and of an annotation and a
//! concurrency policy.

use cronjob_controller::api::policy::{LIMITS, MAX_CONCURRENT, REPLACE_WAITS, STUCK_AFTER};

use crate::coverage::Coverage;
use crate::model::Version;
use crate::policies::TIMING;

/// The pairs that docs/policies.md does not allow, whatever their values.
const NOT_ALLOWED: [(&str, &str); 5] = [
    (MAX_CONCURRENT, REPLACE_WAITS),
    (REPLACE_WAITS, STUCK_AFTER),
    ("Allow", REPLACE_WAITS),
    ("Forbid", REPLACE_WAITS),
    ("Replace", MAX_CONCURRENT),
];

const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

fn name(first: &str, second: &str) -> String {
    let short = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    format!("{} and {}", short(first), short(second))
}

/// Counts the pairs of a CronJob that starts a Job.
pub fn count(coverage: &mut Coverage, version: &Version) {
    let annotations: Vec<&str> = version.policies();
    for (place, second) in annotations.iter().enumerate() {
        coverage.count("pair", &name(version.policy(), second));
        for first in &annotations[..place] {
            coverage.count("pair", &name(first, second));
        }
    }
}

/// All pairs that are allowed.
pub fn allowed() -> Vec<String> {
    let all: Vec<&str> = POLICIES.iter().chain(&TIMING).chain(&LIMITS).copied().collect();
    let pairs = all.iter().enumerate().flat_map(|(place, second)| all[..place].iter().map(|first| (*first, *second)));
    let is_allowed = |pair: &(&str, &str)| {
        let is_of_policies = POLICIES.contains(&pair.0) && POLICIES.contains(&pair.1);
        !is_of_policies && !NOT_ALLOWED.contains(pair)
    };
    pairs.filter(is_allowed).map(|(first, second)| name(first, second)).collect()
}
