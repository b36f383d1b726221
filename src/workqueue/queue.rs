//! Which keys have to be processed, and which are being processed: upstream's `Typed` (`util/workqueue/queue.go`) without its
//! lock.
//!
//! Guarantees: pure; no lock and no waiting. The caller passes in the clock, which is read only where the result depends on it.
//! At any moment a key is ready at most once or processed at most once, and never both. A key that is added while it is
//! processed becomes ready when that processing is done. [`Order`] decides which ready key leaves next. After shutdown began no
//! key is accepted, and no ready key has to wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::metrics::Stats;
use super::order::{Order, Place, Priority, Work};

/// The keys of a queue.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Queue<K> {
    /// The ready keys: those that are dirty and not being processed.
    order: Order<K>,
    /// Upstream's dirty and processing sets in one map. A key in neither has no entry. Every add, get and done looks keys up,
    /// so the hasher matters; its seed is the process's own.
    entries: HashMap<K, Entry, RandomState>,
    /// How many entries are dirty.
    dirty: usize,
    /// The last look for a key found none that may leave, although some are ready.
    is_stalled: bool,
    shutting_down: bool,
    /// A task waits for the last key to be done.
    draining: bool,
    /// What the metrics count, if they are on.
    stats: Option<Stats>,
}

/// A key is dirty, or being processed, or both.
#[derive(Debug, Default, Clone, Copy)]
struct Entry {
    /// Since when and with which priority it is dirty, that is, needs to be processed, now or once more.
    dirty: Option<(Instant, Priority)>,
    /// It is being processed.
    processing: Option<Work>,
    /// Where it is in the order, while it is ready.
    place: Place,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue; `group_of` names the group of a key.
    pub(super) fn new(group_of: fn(&K) -> &str) -> Self {
        Self {
            order: Order::new(group_of),
            entries: HashMap::default(),
            dirty: 0,
            is_stalled: false,
            shutting_down: false,
            draining: false,
            stats: None,
        }
    }

    /// Turns counting on; it costs two readings of the clock for each key.
    pub(super) fn keep_stats(&mut self) {
        self.stats.get_or_insert_with(Stats::new);
    }

    /// The counts so far.
    pub(super) fn stats(&self) -> Option<&Stats> {
        self.stats.as_ref()
    }

    /// Counts a key that is requeued with a delay, which may be zero.
    pub(super) fn count_retry(&mut self) {
        if let Some(stats) = &mut self.stats {
            stats.retry();
        }
    }

    /// Marks `key` as needing to be processed. True if it can be handed out now, or sooner than before, so that a worker
    /// should be woken.
    pub(super) fn add(&mut self, key: K, priority: Priority, now: Instant) -> bool {
        if self.shutting_down {
            return false;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        let is_ready = entry.processing.is_none();
        match &mut entry.dirty {
            Some((_, known)) if priority <= *known => return false,
            Some((_, known)) => {
                *known = priority;
                if is_ready {
                    entry.place = self.order.touch(entry.place, priority, now);
                }
            }
            None => {
                entry.dirty = Some((now, priority));
                self.dirty += 1;
                if let Some(stats) = &mut self.stats {
                    stats.add();
                }
                if is_ready {
                    entry.place = self.order.push(key, priority, now);
                }
            }
        }
        is_ready
    }

    /// Hands out the key that has its turn.
    pub(super) fn get(&mut self, now: impl Fn() -> Instant) -> Option<K> {
        let now = (self.stats.is_some() || self.order.depends_on_time()).then(now);
        let popped = self.order.pop(now);
        self.is_stalled = popped.is_none() && self.order.len() > 0;
        let (key, work) = popped?;
        let entry = self.entries.get_mut(&key).expect("every ready key has an entry");
        let dirty = entry.dirty.take();
        entry.processing = Some(work);
        self.dirty -= 1;
        if let (Some(stats), Some(now), Some((since, _))) = (&mut self.stats, now, dirty) {
            stats.get(now.saturating_duration_since(since));
        }
        Some(key)
    }

    /// Ends the processing of `key`; does nothing for a key that is not being processed. True if a worker should be woken:
    /// the key was added meanwhile and is ready again, or another one may be handed out now.
    pub(super) fn done(&mut self, key: &K, now: impl Fn() -> Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let Some(work) = entry.processing.take() else { return false };
        if let (Some(stats), Some(since)) = (&mut self.stats, work.since) {
            stats.done(now().saturating_duration_since(since));
        }
        if let Some((_, priority)) = entry.dirty {
            entry.place = self.order.push(key.clone(), priority, now());
        } else {
            self.entries.remove(key);
        }
        self.order.done(work, now);
        self.has_ready()
    }

    /// What the processing of `key` takes shows nothing about how fast its group is answered.
    pub(super) fn disregard(&mut self, key: &K) {
        if let Some(work) = self.entries.get_mut(key).and_then(|entry| entry.processing.as_mut()) {
            work.is_evidence = false;
        }
    }

    /// Whether keys are ready, so that a worker should be woken after a change that may let one leave. A key that is handed out
    /// is such a change, too: what made it ready may have let more leave.
    pub(super) fn has_ready(&self) -> bool {
        self.order.len() > 0
    }

    /// The order of the ready keys, to change what may leave.
    pub(super) fn order(&mut self) -> &mut Order<K> {
        &mut self.order
    }

    /// The priority for a retry of `key`: [`Priority::Retry`] if it is being processed and was due, or is a retry itself.
    pub(super) fn retry_priority(&self, key: &K) -> Priority {
        let processing = self.entries.get(key).and_then(|entry| entry.processing);
        processing.map_or(Priority::Low, |work| work.priority.min(Priority::Retry))
    }

    pub(super) fn shut_down(&mut self, draining: bool) {
        (self.shutting_down, self.draining) = (true, draining);
        self.order.unbound();
    }

    pub(super) fn shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Whether the wait for the drain is over: every key is done, or the wait was ended.
    pub(super) fn drained(&self) -> bool {
        self.entries.is_empty() || !self.draining
    }

    /// Whether keys wait for workers or at the gate, and not only for the limits of their groups.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.has_ready() && (!self.is_stalled || self.order.is_full()) || self.order.is_closed(now)
    }

    /// How many keys are ready.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// How many keys are dirty: ready, or added again while being processed. Upstream's depth gauge counts both.
    pub(super) fn depth(&self) -> usize {
        self.dirty
    }

    pub(super) fn is_dirty(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.dirty.is_some())
    }

    pub(super) fn is_processing(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.processing.is_some())
    }

    /// How many keys are being processed.
    pub(super) fn processing(&self) -> usize {
        self.order.processing()
    }

    /// How long each key in processing has taken, if that is counted.
    pub(super) fn running(&self, now: Instant) -> Vec<Duration> {
        let since = self.entries.values().filter_map(|entry| entry.processing?.since);
        since.map(|since| now.saturating_duration_since(since)).collect()
    }
}
