//! Whether the watches show everything.
//!
//! Guarantee: a gap ends when every watch that failed, was listed again or fell silent has shown something since. What was due up to
//! then is not compared. Time is the cluster's, and tokio's for the age of a watch.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::batch_v1::Job;
use crate::api::{Object as _, ResourceKind};
use crate::cache::{Observer, ReflectorError, Store};
use crate::cli::explain::watched::Watched;

/// Servers send a bookmark every minute. After two missed ones, what is known may be old.
const STALE: Duration = Duration::from_secs(150);

/// The state of both watches.
pub(super) struct Eyes {
    clock: SharedClock,
    state: Mutex<State>,
}

struct State {
    /// Since when there was no gap.
    since: DateTime<Utc>,
    /// When the watch of CronJobs, and that of Jobs, was found to have failed.
    failed: [Option<Instant>; 2],
    /// Why each of them failed last.
    trouble: [Option<String>; 2],
    /// Whether its first list was refused, which no repetition changes.
    refusal: [Option<String>; 2],
}

impl Eyes {
    pub fn new(clock: SharedClock) -> Arc<Self> {
        let state =
            State { since: clock.now(), failed: [None; 2], trouble: Default::default(), refusal: Default::default() };
        Arc::new(Self { clock, state: Mutex::new(state) })
    }

    /// Since when the stores show everything; `None` during a gap.
    pub fn see(&self, cron_jobs: &Store<Watched>, jobs: &Store<Job>) -> Option<DateTime<Utc>> {
        let mut state = self.state.lock();
        for (place, age) in [cron_jobs.age(), jobs.age()].into_iter().enumerate() {
            let age = age.unwrap_or_default();
            let is_silent = age > STALE;
            match state.failed[place] {
                Some(failed) if age < failed.elapsed() => {
                    state.failed[place] = None;
                    state.trouble[place] = None;
                    state.since = self.clock.now();
                }
                None if is_silent => {
                    state.failed[place] = Some(Instant::now());
                    state.trouble[place] = Some(format!("the API server has sent nothing for {} s", age.as_secs()));
                }
                _ => {}
            }
        }
        state.failed.iter().all(Option::is_none).then_some(state.since)
    }

    /// Why nothing is seen, until both watches have recovered.
    pub fn trouble(&self) -> Option<String> {
        self.state.lock().trouble.iter().flatten().next().cloned()
    }

    /// Why a first list was refused.
    pub fn refusal(&self) -> Option<String> {
        self.state.lock().refusal.iter().flatten().next().cloned()
    }
}

fn place(resource: ResourceKind) -> usize {
    usize::from(resource.kind == Job::RESOURCE.kind)
}

impl Observer for Eyes {
    fn failed(&self, resource: ResourceKind, error: &ReflectorError) {
        let (mut state, place) = (self.state.lock(), place(resource));
        state.failed[place] = Some(Instant::now());
        if error.is_refused() {
            state.refusal[place] = Some(error.to_string());
        }
        state.trouble[place] = Some(error.to_string());
    }

    fn listed(&self, resource: ResourceKind) {
        let (mut state, place) = (self.state.lock(), place(resource));
        state.failed[place] = None;
        (state.trouble[place], state.refusal[place]) = (None, None);
        state.since = self.clock.now();
    }
}
