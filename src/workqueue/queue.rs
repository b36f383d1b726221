//! The heart of the queue: which keys are ready, which are being worked on, and in which order.
//!
//! Guarantees: pure; no lock, no waiting, and of the clock only what the caller hands in, which is asked only where the
//! answer depends on it. At any moment a key is ready at most once and is worked on at most
//! once, and never both; what is added while it is worked on becomes ready when that work is done. Keys of one priority
//! leave in the order in which they became ready with it. A key of high priority leaves before all of low priority, but
//! once the first of these has been dirty for [`PATIENCE`] every second turn is theirs. While low priority is held,
//! only keys out of patience leave it. After shutdown began nothing new is taken in, and nothing is held.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::metrics::Stats;

/// How long a key of low priority may be passed by; from then on low and high take turns. It bounds how long low
/// priority can be starved, whatever comes in at high.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Which keys go first. A key that is added with both has the higher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// What can wait a little.
    #[default]
    Low,
    /// What has a time at which it should happen.
    High,
}

/// Upstream's `Typed` (`util/workqueue/queue.go`) without its lock, and with two priorities.
#[derive(Debug)]
pub(super) struct Queue<K> {
    /// The keys that wait for a worker.
    lanes: Lanes<K>,
    /// How many keys wait: those of the high lane, and those of the low one whose tickets are valid.
    ready: usize,
    /// Upstream's dirty and processing sets in one map. A key in neither has no entry. Every add, get and done looks
    /// keys up, so the hasher counts; its seed is the process's own.
    entries: HashMap<K, Entry, RandomState>,
    /// How many entries are dirty.
    dirty: usize,
    /// The last turn went to a key that was out of patience.
    impatient_had_its_turn: bool,
    /// Until then low priority is held.
    held_until: Option<Instant>,
    shutting_down: bool,
    /// Somebody waits for the last key to be done.
    draining: bool,
    /// What the metrics tell, where there are any.
    stats: Option<Stats>,
}

/// A key is dirty, or being processed, or both.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// Dirty since then: the key needs to be processed, now or once more.
    dirty_since: Option<Instant>,
    /// The priority with which it is dirty.
    dirty: Priority,
    /// It is being processed.
    processing: Option<Processing>,
    /// Its place in the low lane; zero if it has none.
    ticket: u64,
}

#[derive(Debug, Clone, Copy)]
struct Processing {
    /// With which the key was handed out.
    priority: Priority,
    /// When, if anybody counts.
    since: Option<Instant>,
}

/// Both lanes, oldest key first.
#[derive(Debug)]
struct Lanes<K> {
    high: VecDeque<K>,
    /// A key whose ticket is not its entry's any more has been given high priority since.
    low: VecDeque<(K, u64)>,
    /// The last ticket given out.
    tickets: u64,
}

impl<K> Lanes<K> {
    /// Puts `key` at the end of its lane; gives the ticket for it.
    fn push(&mut self, key: K, priority: Priority) -> u64 {
        match priority {
            Priority::High => {
                self.high.push_back(key);
                0
            }
            Priority::Low => {
                self.tickets += 1;
                self.low.push_back((key, self.tickets));
                self.tickets
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    pub(super) fn new() -> Self {
        Self {
            lanes: Lanes { high: VecDeque::new(), low: VecDeque::new(), tickets: 0 },
            ready: 0,
            entries: HashMap::default(),
            dirty: 0,
            impatient_had_its_turn: false,
            held_until: None,
            shutting_down: false,
            draining: false,
            stats: None,
        }
    }

    /// From now on what happens is counted; it costs two looks at the clock for each key.
    pub(super) fn keep_stats(&mut self) {
        self.stats.get_or_insert_with(Stats::new);
    }

    /// What was counted.
    pub(super) fn stats(&self) -> Option<&Stats> {
        self.stats.as_ref()
    }

    /// A key was asked to come back later, now included.
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
        let was_dirty = entry.dirty_since.is_some();
        if was_dirty && priority <= entry.dirty {
            return false;
        }
        entry.dirty = priority;
        if !was_dirty {
            entry.dirty_since = Some(now);
            self.dirty += 1;
            if let Some(stats) = &mut self.stats {
                stats.add();
            }
        }
        if entry.processing.is_some() {
            return false;
        }
        self.ready += usize::from(!was_dirty);
        entry.ticket = self.lanes.push(key, priority);
        true
    }

    /// Hands out the key whose turn it is.
    pub(super) fn get(&mut self, now: impl Fn() -> Instant) -> Option<K> {
        let key = match self.turn(&now)? {
            Priority::High => self.lanes.high.pop_front(),
            Priority::Low => self.lanes.low.pop_front().map(|(key, _)| key),
        }?;
        let entry = self.entries.get_mut(&key).expect("every ready key has an entry");
        let dirty_since = entry.dirty_since.take();
        let priority = std::mem::take(&mut entry.dirty);
        let since = self.stats.as_mut().map(|stats| {
            let now = now();
            stats.get(dirty_since.map(|since| now.saturating_duration_since(since)).unwrap_or_default());
            now
        });
        entry.processing = Some(Processing { priority, since });
        entry.ticket = 0;
        self.ready -= 1;
        self.dirty -= 1;
        Some(key)
    }

    /// Which priority has this turn.
    fn turn(&mut self, now: impl Fn() -> Instant) -> Option<Priority> {
        let patient_until = self.first_low().map(|since| since + PATIENCE);
        let impatient = || patient_until.is_some_and(|until| until <= now());
        if !self.lanes.high.is_empty() {
            self.impatient_had_its_turn = !self.impatient_had_its_turn && impatient();
            return Some(if self.impatient_had_its_turn { Priority::Low } else { Priority::High });
        }
        let may_leave = patient_until.is_some() && (self.held_until.is_none() || !self.holds_low(now()) || impatient());
        may_leave.then_some(Priority::Low)
    }

    /// Since when the first key of low priority is dirty. Drops what has moved to high priority.
    fn first_low(&mut self) -> Option<Instant> {
        while let Some((key, ticket)) = self.lanes.low.front() {
            match self.entries.get(key) {
                Some(entry) if entry.ticket == *ticket => return entry.dirty_since,
                _ => drop(self.lanes.low.pop_front()),
            }
        }
        None
    }

    /// Ends the work on `key`. True if it was added meanwhile, so that it is ready again and a worker should be woken.
    /// A key that is not being processed is left as it is.
    pub(super) fn done(&mut self, key: &K, now: impl Fn() -> Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let Some(processing) = entry.processing.take() else { return false };
        if let (Some(stats), Some(since)) = (&mut self.stats, processing.since) {
            stats.done(now().saturating_duration_since(since));
        }
        if entry.dirty_since.is_some() {
            self.ready += 1;
            entry.ticket = self.lanes.push(key.clone(), entry.dirty);
            return true;
        }
        self.entries.remove(key);
        false
    }

    /// Holds low priority for `time`, [`PATIENCE`] at most, from now on; no hold ends sooner for it.
    pub(super) fn hold_low(&mut self, time: Duration, now: Instant) {
        self.held_until = self.held_until.max(Some(now + time.min(PATIENCE)));
    }

    /// Whether low priority is held.
    pub(super) fn holds_low(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until) && !self.shutting_down
    }

    /// Whether a hold has yet to be released.
    pub(super) fn is_holding(&self) -> bool {
        self.held_until.is_some()
    }

    /// Whether workers should look because of a hold that has ended, or a held key that is out of patience.
    pub(super) fn release(&mut self, now: Instant) -> bool {
        let Some(until) = self.held_until else { return false };
        if until <= now {
            self.held_until = None;
        }
        until <= now || self.first_low().is_some_and(|since| since + PATIENCE <= now)
    }

    /// When to wake the workers for what was held. A hold lasts [`PATIENCE`] at most from when it was last asked for, so
    /// whoever comes while it lasts is not out of patience before it ends.
    pub(super) fn next_release(&mut self, now: Instant) -> Option<Instant> {
        let until = self.held_until.filter(|until| now < *until)?;
        let patient_until = self.first_low().map(|since| since + PATIENCE).filter(|patient| now < *patient);
        Some(patient_until.map_or(until, |patient| patient.min(until)))
    }

    /// The priority with which `key`, if it is being processed, was handed out.
    pub(super) fn processing_priority(&self, key: &K) -> Option<Priority> {
        self.entries.get(key)?.processing.map(|processing| processing.priority)
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
        self.ready
    }

    /// How many keys are dirty: ready, or added again while being processed. Upstream's depth gauge counts both.
    pub(super) fn depth(&self) -> usize {
        self.dirty
    }

    pub(super) fn is_dirty(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.dirty_since.is_some())
    }

    pub(super) fn is_processing(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.processing.is_some())
    }

    /// When the work that is going on and that is counted began.
    pub(super) fn processing_since(&self) -> impl Iterator<Item = Instant> {
        self.entries.values().filter_map(|entry| entry.processing?.since)
    }
}
