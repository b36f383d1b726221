//! Signs of life of a controller's workers, without which the leader does not renew its lease.
//!
//! Guarantees: a sign of life is a step of a worker: it takes a key, continues after an await, or ends a sync. While a worker is
//! idle, a task on the same runtime shows one every [`PERIOD`], so an empty queue does not look like a hang. So there is no sign
//! when all threads of the runtime are blocked, because then no task runs, nor when all workers wait for something that never
//! comes. A slow API server is not a hang: the longest request, a create, ends after 39 s. A `--kube-api-qps` that holds all
//! workers back for a minute looks like one.
//!
//! One worker that hangs among others is not reported here: its key waits, and the others go on.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often an idle worker shows a sign of life.
pub const PERIOD: Duration = Duration::from_secs(5);

/// When the workers last showed a sign of life.
#[derive(Debug)]
pub struct Heartbeat {
    started: Instant,
    /// In milliseconds since then.
    last: AtomicU64,
    workers: AtomicUsize,
}

impl Default for Heartbeat {
    /// The first sign of life is now; there are no workers yet.
    fn default() -> Self {
        Self { started: Instant::now(), last: AtomicU64::new(0), workers: AtomicUsize::new(0) }
    }
}

impl Heartbeat {
    /// When a worker last showed a sign of life, to the millisecond.
    pub fn last(&self) -> Instant {
        self.started + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    /// How many workers there are.
    pub fn set_workers(&self, workers: usize) {
        self.workers.store(workers, Ordering::Relaxed);
    }

    /// Runs a worker, whose steps are signs of life: before each, because it may come after a long wait, and after each, because
    /// the step itself may have been long.
    pub async fn watch(&self, worker: impl Future<Output = ()>) {
        let mut worker = pin!(worker);
        poll_fn(|context| {
            self.beat();
            let polled = worker.as_mut().poll(context);
            self.beat();
            polled
        })
        .await;
    }

    /// Shows a sign of life for idle workers, for ever. `busy` returns how many have a key. A controller that waits for its
    /// caches has no workers yet, and counts as idle.
    pub async fn show_idle(&self, busy: impl Fn() -> usize) {
        loop {
            if busy() < self.workers.load(Ordering::Relaxed).max(1) {
                self.beat();
            }
            sleep(PERIOD).await;
        }
    }

    fn beat(&self) {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(passed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
