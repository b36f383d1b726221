//! What is not known of the Jobs of an earlier leader.
//!
//! Guarantees: the wait ends only when its creates can no longer be committed and the store has shown those that were. A list
//! before that moment proves nothing, and a silent watch would hide them for minutes. Each namespace that is watched apart waits
//! for itself: one that may not be read any more holds up no other.

use std::sync::OnceLock;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::{Instant, sleep_until};

use crate::api::batch_v1::Job;
use crate::cache::{Asked, Store};

/// How often a CronJob is looked at while the store does not show everything yet.
const UNTIL_SHOWN: Duration = Duration::from_secs(1);

/// The takeover from an earlier leader, if there was one.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    /// When creates of that leader can no longer be committed.
    ends: OnceLock<Instant>,
    /// What the store was asked then.
    asked: OnceLock<Vec<Asked>>,
}

impl Takeover {
    /// There was an earlier leader, whose creates may be committed for `pending` from now.
    pub fn begin(&self, pending: Duration) {
        let _ = self.ends.set(Instant::now() + pending);
    }

    /// How much longer it is not known which Jobs the earlier leader created in that namespace.
    pub fn wait(&self, namespace: &str) -> Option<TimeDelta> {
        let left = self.ends.get()?.saturating_duration_since(Instant::now());
        let is_shown = |asked: &Asked| asked.is_shown() || !asked.covers(namespace);
        let is_over = self.asked.get().is_some_and(|asked| asked.iter().all(is_shown));
        (!is_over).then(|| TimeDelta::from_std(left.max(UNTIL_SHOWN)).unwrap_or(TimeDelta::MAX))
    }

    /// Whether creates of the earlier leader may still be committed.
    pub fn creates_may_be_pending(&self) -> bool {
        self.ends.get().is_some_and(|ends| Instant::now() < *ends)
    }

    /// Waits until no create of the earlier leader can be committed any more, and asks the store for its Jobs; for ever, if there
    /// was no earlier leader.
    pub async fn ask(&self, jobs: &Store<Job>) -> &[Asked] {
        match self.ends.get() {
            None => std::future::pending().await,
            Some(ends) => sleep_until(*ends).await,
        }
        self.asked.get_or_init(|| jobs.ask())
    }
}

#[cfg(test)]
mod tests;
