//! Limits how many long answers of live reads are in memory at a time.
//!
//! Guarantees: at most [`LONG_ANSWERS`] are, half of them at most of one namespace. Those of one namespace wait for each other
//! before they stand in the line of all, so each namespace has two places in it at most. Nothing is kept for a namespace of which
//! none is read.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// From how many bytes on an answer is long: an ordinary Job is a tenth of this.
pub(super) const LONG_ANSWER: usize = 64 << 10;

/// How many long answers are read at a time.
pub(super) const LONG_ANSWERS: usize = 4;

/// Hands out [`Permit`]s.
#[derive(Debug)]
pub(super) struct LongAnswers {
    all: Arc<Semaphore>,
    by_namespace: DashMap<Arc<str>, Arc<Semaphore>>,
}

/// Held as long as a long answer is in memory.
#[derive(Debug)]
pub(super) struct Permit {
    _of_namespace: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl LongAnswers {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(LONG_ANSWERS)), by_namespace: DashMap::new() }
    }

    /// Waits until one more may be read of that namespace.
    pub(super) async fn permit(&self, namespace: &Arc<str>) -> Option<Permit> {
        self.by_namespace.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let share = || Arc::new(Semaphore::new(LONG_ANSWERS / 2));
        let of_namespace = Arc::clone(&self.by_namespace.entry(Arc::clone(namespace)).or_insert_with(share));
        let of_namespace = of_namespace.acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Permit { _of_namespace: of_namespace, _of_all: of_all })
    }
}

#[cfg(test)]
mod tests;
