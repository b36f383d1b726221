//! The order of writes: one lane per object.
//!
//! Guarantees: at most one write of an object is out (ready, in flight, or asleep before another try) at any time. Writes of
//! an object come out in the order in which they were pushed. A waiting lane does not delay the others. No write is lost: a
//! pushed write is pending until `done`. Pure: `now` is an argument.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

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
}

impl Write {
    pub fn new(event: Event) -> Self {
        Self { object: event.involved_object.identity(), event, tries: 0 }
    }
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The writes that wait behind the one that is out. A key is present exactly while its object has a write out.
    behind: HashMap<Arc<ObjectKey>, VecDeque<Write>>,
    ready: VecDeque<Write>,
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

    /// Takes a write that may be sent now. The caller must return it by `done` or `sleep`.
    pub fn next(&mut self) -> Option<Write> {
        self.ready.pop_front()
    }

    /// Whether `next` would return a write.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Ends the write that was out for `object`; the next in its lane becomes ready.
    pub fn done(&mut self, object: &Arc<ObjectKey>) {
        self.pending -= 1;
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
