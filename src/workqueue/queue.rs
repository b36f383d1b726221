//! The core of the queue: which keys are ready, which are being processed, and in which order they are handed out.
//!
//! Guarantees: pure; no lock and no waiting. The caller passes in the clock, which is read only where the result depends on
//! it. At any moment a key is ready at most once or processed at most once, and never both. A key that is added while it is
//! processed becomes ready when that processing is done. Keys of one group and one priority are handed out in the order in
//! which they became ready with it. Groups take turns ([`Groups`], which also decides which groups have to wait). A key is
//! handed out before all keys of lower priority that may be handed out. Once one of those has been dirty for
//! [`STARVATION_LIMIT`], it is starved, and such keys get every second turn: that of the group in turn, else the one that
//! became ready first, whatever its group. While low priority is paused, only starved keys of it are handed out. It is paused for a time, or for a time while urgent keys, those of the highest priority, are being
//! processed. After shutdown began no key is accepted, nothing is paused, and there are no limits.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::groups::{GroupId, Groups, Order, Work};
use super::metrics::Stats;

/// How long a key may be passed over for keys of higher priority; from then on they take turns. It bounds the starvation of
/// lower priorities under any load of higher ones.
pub const STARVATION_LIMIT: Duration = Duration::from_secs(5);

/// The pause for urgent keys outlasts them by this: what they have caused, such as the events of watches, is still on its way.
pub(super) const AFTER_URGENT: Duration = Duration::from_millis(5);

/// Which keys go first. A key that is added with two priorities has the higher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Work that can wait a little.
    #[default]
    Low,
    /// Work that was due at a certain time, and has failed since.
    Retry,
    /// Work that is due at a certain time.
    High,
}

/// Upstream's `Typed` (`util/workqueue/queue.go`) without its lock, with priorities and groups.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Queue<K> {
    /// The keys that wait for a worker.
    groups: Groups<K>,
    /// The name of a key's group.
    group_of: fn(&K) -> &str,
    /// How many keys wait: those with valid tickets in all lanes.
    ready: usize,
    /// Upstream's dirty and processing sets in one map. A key in neither has no entry. Every add, get and done looks keys up,
    /// so the hasher matters; its seed is the process's own.
    entries: HashMap<K, Entry, RandomState>,
    /// How many entries are dirty.
    dirty: usize,
    /// Whether the last turn went to a starved key.
    starved_had_its_turn: bool,
    /// Low priority is paused until then.
    paused_until: Option<Instant>,
    /// It is paused until then for urgent keys, or until [`AFTER_URGENT`] after the last of them.
    urgent_pause_until: Option<Instant>,
    /// How many urgent keys are being processed that were handed out since that pause began.
    urgent: usize,
    /// The number of that pause, or of the last one.
    pause: u64,
    /// When the last of them was done, if low priority is paused for them and none has been handed out since.
    urgent_done_at: Option<Instant>,
    /// Whether a worker may sleep although keys are ready.
    stall: Stall,
    shutting_down: bool,
    /// A task waits for the last key to be done.
    draining: bool,
    /// What the metrics count, if they are on.
    stats: Option<Stats>,
}

/// Whether looks for a key failed while keys were ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stall {
    /// Every look found one.
    None,
    /// An earlier look found no key that may be handed out; the last one did.
    Earlier,
    /// The last look found none.
    Now,
}

/// A key is dirty, or being processed, or both.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its group.
    group: GroupId,
    /// Since when it is dirty, that is, needs to be processed, now or once more.
    dirty_since: Option<Instant>,
    /// The priority with which it is dirty.
    dirty: Priority,
    /// It is being processed.
    processing: Option<Processing>,
    /// Its ticket in its lane; zero if it has none.
    ticket: u64,
}

impl Entry {
    fn of(group: GroupId) -> Self {
        Self { group, dirty_since: None, dirty: Priority::Low, processing: None, ticket: 0 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Processing {
    /// The priority with which the key was handed out.
    priority: Priority,
    /// The number of the last pause for urgent keys then.
    pause: u64,
    /// When, if metrics are on.
    since: Option<Instant>,
    /// The group's record of this processing.
    work: Option<Work>,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue; `group_of` names the group of a key.
    pub(super) fn new(group_of: fn(&K) -> &str) -> Self {
        Self {
            groups: Groups::new(),
            group_of,
            ready: 0,
            entries: HashMap::default(),
            dirty: 0,
            starved_had_its_turn: false,
            paused_until: None,
            urgent_pause_until: None,
            urgent: 0,
            pause: 0,
            urgent_done_at: None,
            stall: Stall::None,
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
        let (groups, group_of) = (&mut self.groups, self.group_of);
        let enter = || Entry::of(groups.enter(group_of(&key), now));
        let entry = self.entries.entry(key.clone()).or_insert_with(enter);
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
        entry.ticket = self.groups.push(entry.group, priority, key);
        true
    }

    /// Hands out the key that has its turn, with its priority.
    pub(super) fn get(&mut self, now: impl Fn() -> Instant) -> Option<(K, Priority)> {
        let is_limited = self.groups.is_limited();
        if is_limited {
            self.groups.advance(now());
        }
        let Some((lane, group)) = self.turn(&now) else {
            self.stall = if self.ready > 0 { Stall::Now } else { Stall::None };
            return None;
        };
        let key = self.groups.pop(group, lane)?;
        let entry = self.entries.get_mut(&key).expect("every ready key has an entry");
        let dirty_since = entry.dirty_since.take();
        let priority = std::mem::take(&mut entry.dirty);
        let since = (is_limited || self.stats.is_some()).then(now);
        if let (Some(stats), Some(now)) = (&mut self.stats, since) {
            stats.get(dirty_since.map(|since| now.saturating_duration_since(since)).unwrap_or_default());
        }
        let work = self.groups.started(group, priority, since);
        entry.processing = Some(Processing { priority, pause: self.pause, since, work });
        entry.ticket = 0;
        if priority == Priority::High {
            self.urgent += 1;
            self.urgent_done_at = None;
        }
        self.ready -= 1;
        self.dirty -= 1;
        if self.stall == Stall::Now {
            self.stall = Stall::Earlier;
        }
        Some((key, priority))
    }

    /// Whether a worker should be woken after a change that may let a ready key be handed out. Such changes are an end of
    /// processing, a new limit, and each [`Self::get`] that hands out a key, since its cause may let another key be handed
    /// out.
    pub(super) fn is_waited_for(&mut self) -> bool {
        if self.ready == 0 {
            self.stall = Stall::None;
        }
        self.stall != Stall::None
    }

    /// The priority and the group that have this turn.
    fn turn(&mut self, now: impl Fn() -> Instant) -> Option<(Priority, GroupId)> {
        let lanes = [Priority::High, Priority::Retry, Priority::Low];
        let first = lanes.into_iter().find_map(|lane| Some((lane, self.first(lane, Order::Turns)?)))?;
        if first.0 == Priority::Low {
            if self.has_pause() && self.is_low_paused(now()) {
                return self.starved(Priority::Low, now).map(|(_, turn)| turn);
            }
            return Some(first);
        }
        let starved = self.starved_below(first.0, now).filter(|_| !self.starved_had_its_turn);
        self.starved_had_its_turn = starved.is_some();
        Some(starved.unwrap_or(first))
    }

    /// Of the lower priorities, the starved key that has been dirty for longest.
    fn starved_below(&mut self, lane: Priority, now: impl Fn() -> Instant) -> Option<(Priority, GroupId)> {
        let lower = [Priority::Retry, Priority::Low].into_iter().filter(|lower| *lower < lane);
        let starved = lower.filter_map(|lower| self.starved(lower, &now));
        starved.min_by_key(|(since, _)| *since).map(|(_, turn)| turn)
    }

    /// The starved key that a lane hands out next, and since when it is dirty: that of the group in turn, else the one that
    /// became ready first. So a fresh key of one group never holds up the starved ones of others.
    fn starved(&mut self, lane: Priority, now: impl Fn() -> Instant) -> Option<(Instant, (Priority, GroupId))> {
        [Order::Turns, Order::Ages].into_iter().find_map(|order| {
            let turn = (lane, self.first(lane, order)?);
            let since = self.since(turn)?;
            (since + STARVATION_LIMIT <= now()).then_some((since, turn))
        })
    }

    /// The first group of a lane, in this order.
    fn first(&mut self, lane: Priority, order: Order) -> Option<GroupId> {
        let entries = &self.entries;
        // No key is moved out of the highest lane.
        let is_valid =
            |key: &K, ticket| lane == Priority::High || entries.get(key).is_some_and(|entry| entry.ticket == ticket);
        self.groups.first(lane, order, self.shutting_down, is_valid)
    }

    /// Since when the key that has this turn is dirty.
    fn since(&self, (lane, group): (Priority, GroupId)) -> Option<Instant> {
        self.entries.get(self.groups.peek(group, lane)?)?.dirty_since
    }

    /// Since when the key of low priority is dirty that is starved next, of those that may be handed out.
    fn first_low(&mut self) -> Option<Instant> {
        let firsts = [Order::Turns, Order::Ages].map(|order| {
            let group = self.first(Priority::Low, order)?;
            self.since((Priority::Low, group))
        });
        firsts.into_iter().flatten().min()
    }

    /// Marks groups that have become slow; true if a worker should be woken because other groups may use their workers.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        self.groups.is_limited() && self.groups.advance(now) && self.is_waited_for()
    }

    /// When to call [`Self::advance`] next although no worker looks.
    fn next_advance(&mut self) -> Option<Instant> {
        self.is_waited_for().then(|| self.groups.next_advance()).flatten()
    }

    /// Sets how many keys are processed at a time. True if a worker should be woken.
    pub(super) fn set_limit(&mut self, limit: usize) -> bool {
        self.groups.set_limit(limit);
        self.is_waited_for()
    }

    /// Sets how many keys of a group are processed at a time. True if a worker should be woken.
    pub(super) fn set_group_limit(&mut self, name: &str, limit: Option<usize>) -> bool {
        self.groups.set_group_limit(name, limit);
        self.is_waited_for()
    }

    /// Ends the processing of `key`; does nothing for a key that is not being processed. True if a worker should be woken:
    /// the key was added meanwhile and is ready again, or other keys can be handed out now.
    pub(super) fn done(&mut self, key: &K, now: impl Fn() -> Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let Some(processing) = entry.processing.take() else { return false };
        if let (Some(stats), Some(since)) = (&mut self.stats, processing.since) {
            stats.done(now().saturating_duration_since(since));
        }
        if processing.priority == Priority::High && processing.pause == self.pause {
            self.urgent -= 1;
            if self.urgent == 0 && self.urgent_pause_until.is_some() {
                self.urgent_done_at = Some(now());
            }
        }
        self.groups.finished(entry.group, processing.work, &now);
        if entry.dirty_since.is_some() {
            self.ready += 1;
            entry.ticket = self.groups.push(entry.group, entry.dirty, key.clone());
            return true;
        }
        let group = entry.group;
        self.entries.remove(key);
        self.groups.leave(group, now);
        self.is_waited_for()
    }

    /// Pauses low priority for `time`, [`STARVATION_LIMIT`] at most, from now on; never shortens a pause.
    pub(super) fn pause_low_priority(&mut self, time: Duration, now: Instant) {
        self.paused_until = self.paused_until.max(Some(now + time.min(STARVATION_LIMIT)));
    }

    /// Pauses low priority until [`AFTER_URGENT`] after the last urgent key is done, for `time` from now on at most, and no
    /// longer than [`STARVATION_LIMIT`]. An urgent key that was handed out before the pause does not prolong it: one that
    /// hangs would do so each time.
    pub(super) fn pause_for_urgent(&mut self, time: Duration, now: Instant) {
        if self.urgent_pause_until.is_none() {
            self.pause += 1;
            self.urgent = 0;
        }
        self.urgent_done_at = None;
        self.urgent_pause_until = self.urgent_pause_until.max(Some(now + time.min(STARVATION_LIMIT)));
    }

    /// Whether low priority is paused for urgent keys, and all of them are done.
    pub(super) fn is_urgent_done(&self) -> bool {
        self.urgent_done_at.is_some()
    }

    /// When the pause for urgent keys ends, if no other one is handed out.
    fn urgent_pause_ends(&self) -> Option<Instant> {
        let until = self.urgent_pause_until?;
        Some(self.urgent_done_at.map_or(until, |since| until.min(since + AFTER_URGENT)))
    }

    /// Whether low priority is paused.
    pub(super) fn is_low_paused(&self, now: Instant) -> bool {
        self.paused_until.max(self.urgent_pause_ends()).is_some_and(|until| now < until) && !self.shutting_down
    }

    /// Whether there was a pause of which [`Self::release`] has not seen the end.
    pub(super) fn has_pause(&self) -> bool {
        self.paused_until.is_some() || self.urgent_pause_until.is_some()
    }

    /// Releases pauses whose time has ended. True if workers should look, also because a paused key is starved.
    pub(super) fn release(&mut self, now: Instant) -> bool {
        if !self.has_pause() {
            return false;
        }
        let mut released = self.paused_until.take_if(|until| *until <= now).is_some();
        if self.urgent_pause_ends().is_some_and(|until| until <= now) {
            (self.urgent_pause_until, self.urgent_done_at) = (None, None);
            released = true;
        }
        released || self.first_low().is_some_and(|since| since + STARVATION_LIMIT <= now)
    }

    /// When to wake the workers for paused keys. A pause lasts at most [`STARVATION_LIMIT`] after the last request for it, so
    /// a key that is added during the pause is not starved before it ends.
    fn next_release(&mut self, now: Instant) -> Option<Instant> {
        let ends = [self.paused_until, self.urgent_pause_ends()].into_iter().flatten();
        let until = ends.filter(|until| now < *until).min()?;
        let starves_at = self.first_low().map(|since| since + STARVATION_LIMIT).filter(|at| now < *at);
        Some(starves_at.map_or(until, |at| at.min(until)))
    }

    /// When the timer task is to look at the queue next, for [`Self::release`] or [`Self::advance`].
    pub(super) fn next_look(&mut self, now: Instant) -> Option<Instant> {
        [self.next_release(now), self.next_advance()].into_iter().flatten().min()
    }

    /// The priority for a retry of `key`: [`Priority::Retry`] if it is being processed and is urgent.
    pub(super) fn retry_priority(&self, key: &K) -> Priority {
        let processing = self.entries.get(key).and_then(|entry| entry.processing);
        processing.map_or(Priority::Low, |processing| processing.priority.min(Priority::Retry))
    }

    pub(super) fn shut_down(&mut self, draining: bool) {
        self.shutting_down = true;
        self.draining = draining;
    }

    pub(super) fn shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Whether the wait for the drain is over: every key is done, or the wait was ended.
    pub(super) fn drained(&self) -> bool {
        self.entries.is_empty() || !self.draining
    }

    /// Whether keys wait only for workers, and not for the limits of their groups.
    pub(super) fn is_busy(&self) -> bool {
        self.ready > 0 && (self.stall != Stall::Now || self.groups.is_full())
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

    /// How many keys are being processed.
    pub(super) fn processing(&self) -> usize {
        self.groups.processing()
    }

    /// The start of each processing that is counted.
    pub(super) fn processing_since(&self) -> impl Iterator<Item = Instant> {
        self.entries.values().filter_map(|entry| entry.processing?.since)
    }
}
