//! The heart of the queue: which keys are ready, which are being worked on, and in which order.
//!
//! Guarantees: pure; no lock, no clock, no waiting. At any moment a key is ready at most once and is worked on at most
//! once, and never both; what is added while it is worked on becomes ready when that work is done; ready keys leave in
//! the order in which they became ready. After shutdown began nothing new is taken in.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Instant;

use super::metrics::Stats;

/// Upstream's `Typed` (`util/workqueue/queue.go`) without its lock.
#[derive(Debug)]
pub(super) struct Queue<K> {
    /// The keys that wait for a worker, oldest first. Every one of them is dirty and none is being processed.
    ready: VecDeque<K>,
    /// Upstream's dirty and processing sets in one map. A key in neither has no entry.
    entries: HashMap<K, Entry>,
    /// How many entries are dirty.
    dirty: usize,
    shutting_down: bool,
    /// Somebody waits for the last key to be done.
    draining: bool,
    /// What the metrics tell.
    pub(super) stats: Stats,
}

/// At least one of the two is set.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// Dirty since then: the key needs to be processed, now or once more.
    dirty_since: Option<Instant>,
    /// Processing since then.
    started: Option<Instant>,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    pub(super) fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            entries: HashMap::new(),
            dirty: 0,
            shutting_down: false,
            draining: false,
            stats: Stats::new(),
        }
    }

    /// Marks `key` as needing to be processed. True if it is ready now and a worker should be woken.
    pub(super) fn add(&mut self, key: K, now: Instant) -> bool {
        if self.shutting_down {
            return false;
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.dirty_since.is_none() {
                entry.dirty_since = Some(now);
                self.dirty += 1;
                self.stats.add();
            }
            return false;
        }
        self.entries.insert(key.clone(), Entry { dirty_since: Some(now), started: None });
        self.ready.push_back(key);
        self.dirty += 1;
        self.stats.add();
        true
    }

    /// Hands out the key that has been ready longest.
    pub(super) fn get(&mut self, now: Instant) -> Option<K> {
        let key = self.ready.pop_front()?;
        let entry = self.entries.get_mut(&key).expect("every ready key has an entry");
        let waited = entry.dirty_since.take().map(|since| now.saturating_duration_since(since));
        entry.started = Some(now);
        self.dirty -= 1;
        self.stats.get(waited.unwrap_or_default());
        Some(key)
    }

    /// Ends the work on `key`. True if it was added meanwhile, so that it is ready again and a worker should be woken.
    /// A key that is not being processed is left as it is.
    pub(super) fn done(&mut self, key: &K, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let Some(started) = entry.started.take() else { return false };
        self.stats.done(now.saturating_duration_since(started));
        if entry.dirty_since.is_some() {
            self.ready.push_back(key.clone());
            return true;
        }
        self.entries.remove(key);
        false
    }

    pub(super) fn shut_down(&mut self, draining: bool) {
        self.shutting_down = true;
        self.draining = draining;
    }

    pub(super) fn shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Nobody needs to wait for the drain any longer: all is done, or it was called off.
    pub(super) fn drained(&self) -> bool {
        self.entries.is_empty() || !self.draining
    }

    /// How many keys are ready.
    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    /// How many keys are dirty: ready, or added again while being processed. Upstream's depth gauge counts both.
    pub(super) fn depth(&self) -> usize {
        self.dirty
    }

    pub(super) fn is_dirty(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.dirty_since.is_some())
    }

    pub(super) fn is_processing(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.started.is_some())
    }

    /// When the work that is going on began.
    pub(super) fn processing_since(&self) -> impl Iterator<Item = Instant> {
        self.entries.values().filter_map(|entry| entry.started)
    }
}
