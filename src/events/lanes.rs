//! The order of writes: one lane per object.
//!
//! Guarantees: at most one write of an object is out (ready, in flight, or asleep before another try) at any time. Writes of
//! an object come out in the order in which they were pushed. A waiting lane does not delay the others. No write is lost: a
//! pushed write is pending until `done`. Namespaces whose last answer took a second or more leave a quarter of the places to others,
//! so that a webhook that hangs for the Events of one delays those of no other. Pure: `now` is an argument.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Event, ObjectKey};

/// One event on its way to the server.
#[derive(Debug)]
pub(super) struct Write {
    /// The lane.
    pub object: Arc<ObjectKey>,
    pub event: Event,
    /// How many tries have failed.
    pub tries: u32,
    /// Whether it is out on a place of the slow namespaces.
    is_slow: bool,
}

/// A namespace is slow if its last answer took so long.
const SLOW: Duration = Duration::from_secs(1);

/// One in this many places is not for slow namespaces.
const RESERVE: usize = 4;

impl Write {
    pub fn new(event: Event) -> Self {
        Self { object: event.involved_object.identity(), event, tries: 0, is_slow: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The writes that wait behind the one that is out. A key is present exactly while its object has a write out.
    behind: HashMap<Arc<ObjectKey>, VecDeque<Write>>,
    ready: VecDeque<Write>,
    slow: HashSet<Arc<str>>,
    /// Ready writes that were found to be of slow namespaces.
    slow_ready: VecDeque<Write>,
    /// How many of their writes are in flight.
    slow_out: usize,
    /// By the time of the next try; the number distinguishes writes that wake at the same time.
    asleep: BTreeMap<(Instant, u64), Write>,
    sleepers: u64,
    pending: usize,
}

impl Lanes {
    /// How many writes were pushed and are not done.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Adds a write at the end of its object's lane.
    pub fn push(&mut self, write: Write) {
        self.pending += 1;
        if let Some(behind) = self.behind.get_mut(&write.object) {
            behind.push_back(write);
        } else {
            self.behind.insert(write.object.clone(), VecDeque::new());
            self.ready.push_back(write);
        }
    }

    /// Takes a write that may be sent now, where there are so many places. The caller must call `answered` with it, and return it by
    /// `done` or `sleep`.
    pub fn next(&mut self, places: usize) -> Option<Write> {
        while let Some(write) = self.ready.pop_front() {
            if !self.slow.contains(&write.event.namespace) {
                return Some(write);
            }
            self.slow_ready.push_back(write);
        }
        if self.slow_out >= (places - places.div_ceil(RESERVE)).max(1) {
            return None;
        }
        let write = self.slow_ready.pop_front()?;
        self.slow_out += 1;
        Some(Write { is_slow: true, ..write })
    }

    /// A try has ended after `took`.
    pub fn answered(&mut self, write: &mut Write, took: Duration) {
        self.slow_out -= usize::from(std::mem::take(&mut write.is_slow));
        let namespace = &write.event.namespace;
        if took >= SLOW {
            self.slow.insert(namespace.clone());
        } else if self.slow.remove(namespace) {
            let is_other = |write: &Write| write.event.namespace != *namespace;
            let (others, own) = std::mem::take(&mut self.slow_ready).into_iter().partition(is_other);
            self.slow_ready = others;
            self.ready.extend::<VecDeque<_>>(own);
        }
    }

    /// Whether a write waits for a place.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.slow_ready.is_empty()
    }

    /// Ends the write that was out for `object`; the next in its lane becomes ready.
    pub fn done(&mut self, object: &Arc<ObjectKey>) {
        self.pending -= 1;
        if self.pending == 0 {
            self.slow.clear();
        }
        match self.behind.get_mut(object).and_then(VecDeque::pop_front) {
            Some(next) => self.ready.push_back(next),
            None => drop(self.behind.remove(object)),
        }
    }

    /// Returns a write that was out, to be tried again at `until`.
    pub fn sleep(&mut self, write: Write, until: Instant) {
        self.sleepers += 1;
        self.asleep.insert((until, self.sleepers), write);
    }

    /// When the first sleeping write wakes.
    pub fn next_wake(&self) -> Option<Instant> {
        self.asleep.first_key_value().map(|((at, _), _)| *at)
    }

    /// Makes the writes ready whose time has come.
    pub fn wake(&mut self, now: Instant) {
        while self.next_wake().is_some_and(|at| at <= now) {
            self.ready.extend(self.asleep.pop_first().map(|(_, write)| write));
        }
    }

    /// Makes all sleeping writes ready, whatever the time.
    pub fn wake_all(&mut self) {
        self.ready.extend(std::mem::take(&mut self.asleep).into_values());
    }
}

#[cfg(test)]
mod tests;
