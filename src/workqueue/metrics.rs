//! The metrics of queues, with client-go's names.
//!
//! Guarantees: names, help texts, labels and buckets are those of upstream's
//! `component-base/metrics/prometheus/workqueue/metrics.go`; each is counted when `util/workqueue/metrics.go` counts it. All
//! seven families of a scrape come from one snapshot of each queue, taken under its lock. Several queues can count as one
//! ([`QueueGroup`]): the numbers are then sums, and a queue's counts remain in them after it leaves.
//!
//! Upstream sets `unfinished_work_seconds` and `longest_running_processor_seconds` from a ticker, every 500 ms. Here they are
//! computed during the scrape, so they are never stale and an idle queue never wakes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use crate::metrics::family::{PlainHistogram, count, counter, gauge, histogram};
use crate::metrics::{MetricsError, exponential_buckets};

use super::{Key, WorkQueue};

/// The counters of a queue. They live inside the queue, under its lock.
#[derive(Debug, Clone)]
pub(super) struct Stats {
    adds: u64,
    retries: u64,
    queue_duration: PlainHistogram,
    work_duration: PlainHistogram,
}

impl Stats {
    pub(super) fn new() -> Self {
        // Upstream writes 10e-9; the first bound is equal, but each step must be multiplied from the one before.
        let buckets = exponential_buckets(10e-9, 10.0, 10);
        Self {
            adds: 0,
            retries: 0,
            queue_duration: PlainHistogram::new(buckets.clone()),
            work_duration: PlainHistogram::new(buckets),
        }
    }

    /// Adds the counts of another queue.
    fn sum(&mut self, other: &Self) {
        self.adds += other.adds;
        self.retries += other.retries;
        self.queue_duration.add(&other.queue_duration);
        self.work_duration.add(&other.work_duration);
    }

    /// A key became dirty.
    pub(super) fn add(&mut self) {
        self.adds += 1;
    }

    /// A key was handed to a worker after it had been dirty for `waited`.
    pub(super) fn get(&mut self, waited: Duration) {
        self.queue_duration.observe(waited.as_secs_f64());
    }

    /// A worker finished a key after `worked`.
    pub(super) fn done(&mut self, worked: Duration) {
        self.work_duration.observe(worked.as_secs_f64());
    }

    /// A key was requeued with a delay, which may be zero.
    pub(super) fn retry(&mut self) {
        self.retries += 1;
    }
}

/// One scrape's view of a queue.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) stats: Stats,
    pub(super) depth: usize,
    /// How long each key in processing has taken so far.
    pub(super) running: Vec<Duration>,
}

/// The collector's source of snapshots: a queue with any type of key.
pub(super) trait Source: Send + Sync {
    fn snapshot(&self) -> Snapshot;
    fn is_busy(&self) -> bool;
}

/// Queues that count as one in the metrics. Clones are the same group.
#[derive(Clone)]
pub struct QueueGroup(Arc<Mutex<Members>>);

struct Members {
    queues: Vec<Arc<dyn Source>>,
    /// The counts of queues that have left.
    left: Stats,
}

impl QueueGroup {
    /// An empty group whose metrics, labelled with `name`, are registered with `registry`.
    ///
    /// # Errors
    /// When `registry` already has the metrics of a queue of that name.
    pub fn register(registry: &Registry, name: &str) -> Result<Self, MetricsError> {
        let group = Self(Arc::new(Mutex::new(Members { queues: Vec::new(), left: Stats::new() })));
        QueueCollector::register(registry, name, group.clone())?;
        Ok(group)
    }

    /// Counts `queue` with the others until the returned membership is dropped.
    pub fn join<K: Key>(&self, queue: &WorkQueue<K>) -> Membership {
        let source: Arc<dyn Source> = queue.counted();
        self.0.lock().queues.push(Arc::clone(&source));
        Membership { group: self.clone(), source }
    }

    /// Whether any queue of the group [is busy](WorkQueue::is_busy).
    pub fn is_busy(&self) -> bool {
        self.0.lock().queues.iter().any(|queue| queue.is_busy())
    }

    fn snapshot(&self) -> Snapshot {
        let members = self.0.lock();
        let mut sum = Snapshot { stats: members.left.clone(), depth: 0, running: Vec::new() };
        for Snapshot { stats, depth, running } in members.queues.iter().map(|queue| queue.snapshot()) {
            sum.stats.sum(&stats);
            sum.depth += depth;
            sum.running.extend(running);
        }
        sum
    }
}

/// A queue's membership in its group; dropping it takes the queue out.
pub struct Membership {
    group: QueueGroup,
    source: Arc<dyn Source>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut members = self.group.0.lock();
        members.queues.retain(|queue| !Arc::ptr_eq(queue, &self.source));
        members.left.sum(&self.source.snapshot().stats);
    }
}

/// Collects the families of a group.
struct QueueCollector {
    group: QueueGroup,
    depth: Desc,
    adds: Desc,
    queue_duration: Desc,
    work_duration: Desc,
    unfinished_work: Desc,
    longest_running: Desc,
    retries: Desc,
}

impl QueueCollector {
    fn register(registry: &Registry, name: &str, group: QueueGroup) -> Result<(), MetricsError> {
        let desc = |metric: &str, help: &str| {
            let labels = HashMap::from([("name".to_owned(), name.to_owned())]);
            Desc::new(format!("workqueue_{metric}"), format!("[BETA] {help}"), Vec::new(), labels)
                .map_err(|source| MetricsError::new(&format!("workqueue_{metric}"), source))
        };
        let collector = Self {
            group,
            depth: desc("depth", "Current depth of workqueue")?,
            adds: desc("adds_total", "Total number of adds handled by workqueue")?,
            queue_duration: desc(
                "queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested.",
            )?,
            work_duration: desc(
                "work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
            )?,
            unfinished_work: desc(
                "unfinished_work_seconds",
                "How many seconds of work has done that is in progress and hasn't been observed by work_duration. \
                 Large values indicate stuck threads. One can deduce the number of stuck threads by observing the \
                 rate at which this increases.",
            )?,
            longest_running: desc(
                "longest_running_processor_seconds",
                "How many seconds has the longest running processor for workqueue been running.",
            )?,
            retries: desc("retries_total", "Total number of retries handled by workqueue")?,
        };
        registry.register(Box::new(collector)).map_err(|source| MetricsError::new("workqueue_*", source))
    }
}

impl Collector for QueueCollector {
    fn desc(&self) -> Vec<&Desc> {
        vec![
            &self.depth,
            &self.adds,
            &self.queue_duration,
            &self.work_duration,
            &self.unfinished_work,
            &self.longest_running,
            &self.retries,
        ]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Snapshot { stats, depth, running } = self.group.snapshot();
        let unfinished = running.iter().sum::<Duration>();
        let longest = running.into_iter().max().unwrap_or_default();
        vec![
            gauge(&self.depth, count(depth as u64)),
            counter(&self.adds, count(stats.adds)),
            histogram(&self.queue_duration, &stats.queue_duration),
            histogram(&self.work_duration, &stats.work_duration),
            gauge(&self.unfinished_work, unfinished.as_secs_f64()),
            gauge(&self.longest_running, longest.as_secs_f64()),
            counter(&self.retries, count(stats.retries)),
        ]
    }
}
