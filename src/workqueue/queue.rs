//! The heart of the queue: which keys are ready, which are being worked on, and in which order.
//!
//! Guarantees: pure; no lock, no waiting, and of the clock only what the caller hands in, which is asked only where the
//! answer depends on it. At any moment a key is ready at most once and is worked on at most
//! once, and never both; what is added while it is worked on becomes ready when that work is done. Keys of one group and one
//! priority leave in the order in which they became ready with it, and groups take turns ([`Groups`], which also says which
//! groups have to wait). A key leaves before all of lower priority that may leave, but once the first of these has been dirty
//! for [`STARVATION_LIMIT`] every second turn is theirs. While low priority is held,
//! only keys out of patience leave it. After shutdown began nothing new is taken in, nothing is held, and there are no limits.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::groups::{GroupId, Groups, Work};
use super::metrics::Stats;

/// How long a key may be passed by for keys of higher priority; from then on they take turns. It bounds how long lower
/// priorities can be starved, whatever comes in at higher ones.
pub const STARVATION_LIMIT: Duration = Duration::from_secs(5);

/// Which keys go first. A key that is added with both has the higher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// What can wait a little.
    #[default]
    Low,
    /// What had a time at which it should happen, and has failed since.
    Retry,
    /// What has a time at which it should happen.
    High,
}

/// Upstream's `Typed` (`util/workqueue/queue.go`) without its lock, and with priorities and groups.
#[derive(Debug)]
pub(super) struct Queue<K> {
    /// The keys that wait for a worker.
    groups: Groups<K>,
    /// The name of a key's group.
    group_of: fn(&K) -> &str,
    /// How many keys wait: those of all lanes whose tickets are valid.
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
    /// Whether a worker may sleep although keys are ready.
    stall: Stall,
    shutting_down: bool,
    /// Somebody waits for the last key to be done.
    draining: bool,
    /// What the metrics tell, where there are any.
    stats: Option<Stats>,
}

/// What the looks for a key have found while keys were ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stall {
    /// Each found one.
    None,
    /// One found none that may leave; the last found one.
    Earlier,
    /// The last found none.
    Now,
}

/// A key is dirty, or being processed, or both.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its group.
    group: GroupId,
    /// Dirty since then: the key needs to be processed, now or once more.
    dirty_since: Option<Instant>,
    /// The priority with which it is dirty.
    dirty: Priority,
    /// It is being processed.
    processing: Option<Processing>,
    /// Its place in its lane; zero if it has none.
    ticket: u64,
}

impl Entry {
    fn of(group: GroupId) -> Self {
        Self { group, dirty_since: None, dirty: Priority::Low, processing: None, ticket: 0 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Processing {
    /// With which the key was handed out.
    priority: Priority,
    /// When, if anybody counts.
    since: Option<Instant>,
    /// The same for its group.
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
            impatient_had_its_turn: false,
            held_until: None,
            stall: Stall::None,
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

    /// Hands out the key whose turn it is.
    pub(super) fn get(&mut self, now: impl Fn() -> Instant) -> Option<K> {
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
        entry.processing = Some(Processing { priority, since, work: self.groups.started(group, priority, since) });
        entry.ticket = 0;
        self.ready -= 1;
        self.dirty -= 1;
        if self.stall == Stall::Now {
            self.stall = Stall::Earlier;
        }
        Some(key)
    }

    /// Whether a worker should be woken when something has changed that may let a ready key leave: an end, a limit, and each
    /// [`Self::get`] that hands out a key, because what let that key leave may let another leave.
    pub(super) fn is_waited_for(&mut self) -> bool {
        if self.ready == 0 {
            self.stall = Stall::None;
        }
        self.stall != Stall::None
    }

    /// Which priority and which group have this turn.
    fn turn(&mut self, now: impl Fn() -> Instant) -> Option<(Priority, GroupId)> {
        let lanes = [Priority::High, Priority::Retry, Priority::Low];
        let first = lanes.into_iter().find_map(|lane| Some((lane, self.first(lane)?)))?;
        if first.0 == Priority::Low {
            let may_leave = self.held_until.is_none() || {
                let now = now();
                !self.holds_low(now) || self.since(first).is_some_and(|since| since + STARVATION_LIMIT <= now)
            };
            return may_leave.then_some(first);
        }
        let late = self.late_below(first.0, now).filter(|_| !self.impatient_had_its_turn);
        self.impatient_had_its_turn = late.is_some();
        Some(late.unwrap_or(first))
    }

    /// Of the keys of lower priority that have the next turns, the one that has been dirty for longest, if it is out of patience.
    fn late_below(&mut self, lane: Priority, now: impl Fn() -> Instant) -> Option<(Priority, GroupId)> {
        let lower = [Priority::Retry, Priority::Low].into_iter().filter(|lower| *lower < lane);
        let firsts = lower.filter_map(|lower| {
            let turn = (lower, self.first(lower)?);
            Some((self.since(turn)?, turn))
        });
        let (since, turn) = firsts.min_by_key(|(since, _)| *since)?;
        (since + STARVATION_LIMIT <= now()).then_some(turn)
    }

    /// The group that has the next turn of a lane.
    fn first(&mut self, lane: Priority) -> Option<GroupId> {
        let entries = &self.entries;
        // Nothing is moved out of the highest lane.
        let is_valid =
            |key: &K, ticket| lane == Priority::High || entries.get(key).is_some_and(|entry| entry.ticket == ticket);
        self.groups.first(lane, self.shutting_down, is_valid)
    }

    /// Since when the key of a turn is dirty.
    fn since(&self, (lane, group): (Priority, GroupId)) -> Option<Instant> {
        self.entries.get(self.groups.peek(group, lane)?)?.dirty_since
    }

    /// Since when the first key of low priority that may leave is dirty.
    fn first_low(&mut self) -> Option<Instant> {
        let group = self.first(Priority::Low)?;
        self.since((Priority::Low, group))
    }

    /// Notices which groups have become slow by now; true if a worker should be woken because others may have their workers.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        self.groups.is_limited() && self.groups.advance(now) && self.is_waited_for()
    }

    /// When to [`Self::advance`] next although no worker looks.
    pub(super) fn next_advance(&mut self) -> Option<Instant> {
        self.is_waited_for().then(|| self.groups.next_advance()).flatten()
    }

    /// From now on so many keys are processed at a time. True if a worker should be woken.
    pub(super) fn set_limit(&mut self, limit: usize) -> bool {
        self.groups.set_limit(limit);
        self.is_waited_for()
    }

    /// From now on so many keys of a group. True if a worker should be woken.
    pub(super) fn set_group_limit(&mut self, name: &str, limit: Option<usize>) -> bool {
        self.groups.set_group_limit(name, limit);
        self.is_waited_for()
    }

    /// Ends the work on `key`. True if a worker should be woken: it was added meanwhile, so that it is ready again, or others
    /// wait that could not leave.
    /// A key that is not being processed is left as it is.
    pub(super) fn done(&mut self, key: &K, now: impl Fn() -> Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let Some(processing) = entry.processing.take() else { return false };
        if let (Some(stats), Some(since)) = (&mut self.stats, processing.since) {
            stats.done(now().saturating_duration_since(since));
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

    /// Holds low priority for `time`, [`STARVATION_LIMIT`] at most, from now on; no hold ends sooner for it.
    pub(super) fn pause_low_priority(&mut self, time: Duration, now: Instant) {
        self.held_until = self.held_until.max(Some(now + time.min(STARVATION_LIMIT)));
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
        until <= now || self.first_low().is_some_and(|since| since + STARVATION_LIMIT <= now)
    }

    /// When to wake the workers for what was held. A hold lasts [`STARVATION_LIMIT`] at most from when it was last asked for, so
    /// whoever comes while it lasts is not out of patience before it ends.
    pub(super) fn next_release(&mut self, now: Instant) -> Option<Instant> {
        let until = self.held_until.filter(|until| now < *until)?;
        let patient_until = self.first_low().map(|since| since + STARVATION_LIMIT).filter(|patient| now < *patient);
        Some(patient_until.map_or(until, |patient| patient.min(until)))
    }

    /// The priority with which `key` is to be tried again: that of a retry if it is being processed and is urgent.
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

    /// Nobody needs to wait for the drain any longer: all is done, or it was called off.
    pub(super) fn drained(&self) -> bool {
        self.entries.is_empty() || !self.draining
    }

    /// Whether keys wait only for workers, and not for what others of their groups wait for.
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

    /// When the work that is going on and that is counted began.
    pub(super) fn processing_since(&self) -> impl Iterator<Item = Instant> {
        self.entries.values().filter_map(|entry| entry.processing?.since)
    }
}
