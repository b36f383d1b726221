//! Keys with timers.
//!
//! Guarantees: pure; the time is an argument. A key has at most one timer of each kind, monotonic (after a duration) and wall
//! (at a time). Of two timers of one kind for a key the sooner one stays, so memory is bounded by the number of keys. No
//! timer is due early by the clock of its kind, unless that clock is set back. Timers of one kind come out in order of their
//! time, equal ones in insertion order. Adding and removing cost O(log n).
//!
//! The two kinds differ when the wall clock is stepped or the machine sleeps: a backoff of ten seconds still lasts ten
//! seconds, while the slot at noon is due as soon as the clock shows noon.
//!
//! When the wall clock is set back, every wall timer is due at once, in the order of their times. A timer for tomorrow may
//! have been set because a clock that ran ahead showed that today's time had passed. Its key must be judged again.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

use super::Priority;

/// The longest time between two looks at a wall clock that does not report its steps, while wall timers wait: a clock step or
/// a sleep of the machine is noticed within this time.
pub const WALL_SLICE: Duration = Duration::from_secs(1);

/// How far the wall clock must have fallen behind the monotonic one between two looks to count as set back. NTP corrections
/// without a step are smaller.
pub const SET_BACK: TimeDelta = TimeDelta::seconds(1);

/// Longer delays are cut to this, a century, which every clock and timer can represent. `Duration::MAX` is a valid delay.
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(100 * 366 * 86_400);

/// When a key will be added, by each kind of timer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// By the monotonic clock.
    pub after: Option<Instant>,
    /// By the wall clock.
    pub at: Option<DateTime<Utc>>,
}

/// The timers of both kinds.
#[derive(Debug)]
pub(super) struct Delays<K> {
    after: Timers<K, Instant>,
    at: Timers<K, DateTime<Utc>>,
    /// What both clocks showed at the last look.
    looked: Option<(Instant, DateTime<Utc>)>,
}

impl<K: Clone + Eq + Hash> Delays<K> {
    pub(super) fn new() -> Self {
        Self { after: Timers::new(), at: Timers::new(), looked: None }
    }

    /// Reads both clocks; must be called before timers are taken out. If the wall clock was set back since the last look,
    /// every wall timer is due now.
    pub(super) fn look(&mut self, now: Instant, wall: DateTime<Utc>) {
        let Some((then, shown)) = self.looked.replace((now, wall)) else { return };
        let passed = TimeDelta::from_std(now.saturating_duration_since(then)).unwrap_or(TimeDelta::MAX);
        if shown.checked_add_signed(passed).is_some_and(|expected| expected - wall > SET_BACK) {
            self.at.bring_forward(wall);
        }
    }

    /// Adds a monotonic timer. True if it is now the soonest of them, so that the timer task may have to wake sooner.
    pub(super) fn add_after(&mut self, key: K, priority: Priority, delay: Duration, now: Instant) -> bool {
        self.after.insert(key, priority, now + delay.min(LONGEST_DELAY))
    }

    /// Adds a wall timer, which has high priority. True if it is now the soonest of them.
    pub(super) fn add_at(&mut self, key: K, at: DateTime<Utc>) -> bool {
        self.at.insert(key, Priority::High, at)
    }

    /// Takes out one due key. Wall timers come first: a due slot goes before a retry.
    pub(super) fn pop_due(&mut self, now: Instant, wall: DateTime<Utc>) -> Option<(K, Priority)> {
        self.at.pop_due(wall).or_else(|| self.after.pop_due(now))
    }

    /// When to look again, for wall timers after `slice` at the latest; no timer is due before. `None` if no timer waits.
    pub(super) fn next_look(&self, now: Instant, wall: DateTime<Utc>, slice: Duration) -> Option<Instant> {
        let until_wall = |at: DateTime<Utc>| (at - wall).to_std().unwrap_or(Duration::ZERO).min(slice);
        let by_wall = self.at.soonest().map(|at| now + until_wall(at));
        [by_wall, self.after.soonest()].into_iter().flatten().min()
    }

    /// How many timers there are.
    pub(super) fn len(&self) -> usize {
        self.after.times.len() + self.at.times.len()
    }

    /// Removes the timers of `key`. A task that sleeps until one of them wakes without effect.
    pub(super) fn remove(&mut self, key: &K) {
        self.after.remove(key);
        self.at.remove(key);
    }

    pub(super) fn scheduled_for(&self, key: &K) -> Option<Scheduled> {
        let scheduled = Scheduled { after: self.after.time_of(key), at: self.at.time_of(key) };
        (scheduled != Scheduled::default()).then_some(scheduled)
    }

    pub(super) fn upcoming(&self, window: TimeDelta, at_most: usize) -> Option<(DateTime<Utc>, usize)> {
        let soonest = self.at.soonest()?;
        let end = soonest.checked_add_signed(window).unwrap_or(soonest);
        let due = self.at.queue.keys().take(at_most).take_while(|(at, _)| *at <= end).count();
        Some((soonest, due))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

/// The timers of one kind.
#[derive(Debug)]
struct Timers<K, T> {
    /// Keys by their time; the number makes equal times distinct and keeps their order.
    queue: BTreeMap<(T, u64), (K, Priority)>,
    /// The place of each key in `queue`; both always hold the same keys.
    times: HashMap<K, (T, u64)>,
    /// How many timers were ever inserted.
    sequence: u64,
}

impl<K: Clone + Eq + Hash, T: Copy + Ord> Timers<K, T> {
    fn new() -> Self {
        Self { queue: BTreeMap::new(), times: HashMap::new(), sequence: 0 }
    }

    /// True if the key is now the first. Of two priorities for one timer the higher stays.
    fn insert(&mut self, key: K, mut priority: Priority, time: T) -> bool {
        let place = (time, self.sequence);
        match self.times.get_mut(&key) {
            Some(known) if known.0 <= time => {
                if let Some((_, known)) = self.queue.get_mut(known) {
                    *known = priority.max(*known);
                }
                return false;
            }
            Some(known) => {
                if let Some((_, known)) = self.queue.remove(known) {
                    priority = priority.max(known);
                }
                *known = place;
            }
            None => {
                self.times.insert(key.clone(), place);
            }
        }
        self.sequence += 1;
        self.queue.insert(place, (key, priority));
        self.queue.first_key_value().is_some_and(|(first, _)| *first == place)
    }

    fn pop_due(&mut self, now: T) -> Option<(K, Priority)> {
        let first = self.queue.first_entry().filter(|first| first.key().0 <= now)?;
        let (key, priority) = first.remove();
        self.times.remove(&key);
        Some((key, priority))
    }

    fn remove(&mut self, key: &K) {
        if let Some(place) = self.times.remove(key) {
            self.queue.remove(&place);
        }
    }

    /// Makes every timer due at `now`, keeping their order.
    fn bring_forward(&mut self, now: T) {
        for (sequence, (_, (key, priority))) in std::mem::take(&mut self.queue).into_iter().enumerate() {
            let place = (now, sequence as u64);
            self.times.insert(key.clone(), place);
            self.queue.insert(place, (key, priority));
        }
    }

    fn soonest(&self) -> Option<T> {
        self.queue.first_key_value().map(|(place, _)| place.0)
    }

    fn time_of(&self, key: &K) -> Option<T> {
        self.times.get(key).map(|place| place.0)
    }
}

#[cfg(test)]
mod tests;
