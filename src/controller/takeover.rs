//! What is not known of the Jobs of an earlier leader.
//!
//! Guarantees: the wait ends only when its creates can no longer be committed and the store has shown those that were. A list
//! before that moment proves nothing, and a silent watch would hide them for minutes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::{Instant, sleep_until};

use crate::api::batch_v1::Job;
use crate::cache::Store;

/// How often a CronJob is looked at while the store does not show everything yet.
const UNTIL_SHOWN: Duration = Duration::from_secs(1);

/// The takeover from an earlier leader, if there was one.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    /// When creates of that leader can no longer be committed.
    ends: OnceLock<Instant>,
    is_over: AtomicBool,
}

impl Takeover {
    /// There was an earlier leader, whose creates may be committed for `pending` from now.
    pub fn begin(&self, pending: Duration) {
        let _ = self.ends.set(Instant::now() + pending);
    }

    /// How much longer it is not known which Jobs the earlier leader created.
    pub fn wait(&self) -> Option<TimeDelta> {
        let left = self.ends.get()?.saturating_duration_since(Instant::now());
        let is_over = self.is_over.load(Ordering::Acquire);
        (!is_over).then(|| TimeDelta::from_std(left.max(UNTIL_SHOWN)).unwrap_or(TimeDelta::MAX))
    }

    /// Whether creates of the earlier leader may still be committed.
    pub fn creates_may_be_pending(&self) -> bool {
        self.ends.get().is_some_and(|ends| Instant::now() < *ends)
    }

    /// Waits until the store shows all Jobs of the earlier leader; for ever, if there was none.
    pub async fn end(&self, jobs: &Store<Job>) {
        match self.ends.get() {
            None => std::future::pending().await,
            Some(ends) => sleep_until(*ends).await,
        }
        jobs.catch_up().await;
        self.is_over.store(true, Ordering::Release);
    }
}
