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

    /// Shows a sign of life for idle workers, for ever. `busy` returns how many are not idle. A controller that waits for its
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
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Worker {
        /// It waits for a key.
        Idle,
        /// It waits for something that never comes.
        Stuck,
        /// Each of its requests is answered after so many seconds.
        Slow(u64),
    }

    /// The longest time without a sign of life in ten minutes.
    async fn longest_silence(workers: &[Worker]) -> Duration {
        let heartbeat = Arc::new(Heartbeat::default());
        heartbeat.set_workers(workers.len());
        let busy = workers.iter().filter(|worker| **worker != Worker::Idle).count();
        let mut tasks = tokio::task::JoinSet::new();
        for worker in workers.iter().copied() {
            let heartbeat = Arc::clone(&heartbeat);
            let steps = async move {
                let Worker::Slow(seconds) = worker else { return pending().await };
                loop {
                    sleep(Duration::from_secs(seconds)).await;
                }
            };
            tasks.spawn(async move { heartbeat.watch(steps).await });
        }
        let shown = Arc::clone(&heartbeat);
        tasks.spawn(async move { shown.show_idle(|| busy).await });
        let mut longest = Duration::ZERO;
        for _ in 0..600 {
            sleep(Duration::from_secs(1)).await;
            longest = longest.max(heartbeat.last().elapsed());
        }
        longest
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_end_only_if_no_worker_goes_on() {
        use Worker::{Idle, Slow, Stuck};
        let rows: [(&str, &[Worker], Duration); 6] = [
            ("no worker yet: the caches are not synced", &[], PERIOD),
            ("nothing to do", &[Idle, Idle], PERIOD),
            ("one that hangs beside an idle one", &[Stuck, Idle], PERIOD),
            ("one that hangs beside a busy one", &[Stuck, Slow(39)], Duration::from_secs(39)),
            ("a slow API server", &[Slow(39), Slow(39)], Duration::from_secs(39)),
            ("all hang", &[Stuck, Stuck], Duration::from_secs(600)),
        ];
        for (sentence, workers, want) in rows {
            let found = longest_silence(workers).await;
            assert!(found <= want && found + Duration::from_secs(1) >= want, "{sentence}: {found:?}");
        }
    }
}
