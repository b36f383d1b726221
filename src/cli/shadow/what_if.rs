//! What policies would have changed, if every CronJob had them.
//!
//! Guarantees: offsets are those of the controller. Minutes that no further start can reach are folded into the greatest, so memory
//! is bounded by the window of the spread. What `max-concurrent` would hold is counted on the Jobs that ran, which it would have changed:
//! it is an upper bound. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use serde::Serialize;

use crate::api::ObjectName;
use crate::api::policy::{Spread, due};
use crate::cli::output::count;
use crate::options::go_syntax::parse_duration;

/// How long after its time a start is still counted for its minute.
const LATEST: TimeDelta = TimeDelta::hours(1);
/// The greatest value of `max-concurrent`.
const MOST_JOBS: usize = 1_000;

/// The policies that are supposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    spread: Option<Spread>,
    max_concurrent: Option<usize>,
}

impl WhatIf {
    /// Reads the value of `--what-if`, such as `spread=10m,max-concurrent=3`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        for policy in text.split(',') {
            match policy.split_once('=')? {
                ("spread", window) if found.spread.is_none() => {
                    found.spread = Some(Spread::new(parse_duration(window)?).ok()?);
                }
                ("max-concurrent", number) if found.max_concurrent.is_none() => {
                    let number = number.parse().ok().filter(|number| (1..=MOST_JOBS).contains(number))?;
                    found.max_concurrent = Some(number);
                }
                _ => return None,
            }
        }
        Some(found)
    }
}

/// The starts of each minute, and the most of a minute that is over.
#[derive(Clone, Debug, Default)]
struct Minutes {
    starts: BTreeMap<DateTime<Utc>, u64>,
    most: u64,
}

impl Minutes {
    fn add(&mut self, time: DateTime<Utc>, over: DateTime<Utc>) {
        let minute = time.duration_trunc(TimeDelta::minutes(1)).unwrap_or(time);
        *self.starts.entry(minute).or_default() += 1;
        let open = self.starts.split_off(&over);
        let over = std::mem::replace(&mut self.starts, open);
        self.most = over.into_values().fold(self.most, u64::max);
    }

    fn most(&self) -> u64 {
        self.starts.values().copied().fold(self.most, u64::max)
    }
}

/// What the supposed policies change.
#[derive(Clone, Debug, Default)]
pub(super) struct Supposed {
    policies: WhatIf,
    seed: Arc<str>,
    minutes: Minutes,
    spread: Minutes,
    held: u64,
}

/// The same for a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changed {
    /// The most starts of a minute, as they were and spread; `None` without a spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<[u64; 2]>,
    /// How many starts would have waited at most; `None` without `max-concurrent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<u64>,
}

impl Supposed {
    /// Supposes `policies`, with the `--spread-seed`.
    pub fn new(policies: WhatIf, seed: Arc<str>) -> Self {
        Self { policies, seed, ..Self::default() }
    }

    /// Takes a slot that has its Job.
    pub fn start(&mut self, name: &ObjectName, slot: DateTime<Utc>) {
        let Some(spread) = self.policies.spread else { return };
        let over = slot - LATEST;
        self.minutes.add(slot, over);
        self.spread.add(due(slot, spread.offset(&self.seed, name)), over);
    }

    /// Takes a slot that may start while so many Jobs of its CronJob run.
    pub fn may_start(&mut self, running: usize) {
        self.held += u64::from(self.policies.max_concurrent.is_some_and(|most| running >= most));
    }

    /// What changes; `None` if nothing is supposed.
    pub fn changed(&self) -> Option<Changed> {
        let spread = self.policies.spread.map(|_| [self.minutes.most(), self.spread.most()]);
        let held = self.policies.max_concurrent.map(|_| self.held);
        (spread.is_some() || held.is_some()).then_some(Changed { spread, held })
    }
}

impl Changed {
    /// Sentences for people.
    pub fn lines(&self) -> Vec<String> {
        let spread =
            self.spread.map(|[now, then]| format!("  spread: at most {then} starts in a minute, in place of {now}"));
        let held = self.held.map(|held| {
            let starts = count(usize::try_from(held).unwrap_or(usize::MAX), "start");
            format!("  max-concurrent: {starts} would have waited at most")
        });
        spread.into_iter().chain(held).collect()
    }
}

#[cfg(test)]
mod tests;
