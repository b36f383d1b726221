//! The ready keys by group, and how many workers each group may have.
//!
//! Guarantees: pure; the time is an argument. Keys of one group and one priority are handed out in the order in which they
//! became ready with it; groups take turns. The limits hold:
//! - At most `limit` keys are processed at a time, and of a group at most as many as its own limit. When the limit falls, the
//!   part of the reserve (see below) that slow groups hold does not count.
//! - No key of a slow group is handed out while slow groups hold half of the limit, or a quarter of it while keys of high
//!   priority wait whose groups have yet to show how fast they are answered.
//! - No key of a group that has yet to show how fast it is answered is handed out while such groups hold half of what slow
//!   groups leave. The first key of such a group is handed out until they hold three quarters of it. So one unanswered group
//!   does not keep the next from showing that it is answered.
//! - Slow groups and these together leave a reserve of an eighth of the limit to prompt groups, and to the first key of a
//!   group that was prompt before and returns.
//!
//! A group is slow while one of its keys has been processed for [`UNANSWERED`] or longer, or the last one that ended took
//! that long. It is prompt while the last key that ended was faster. A group that returns after it had no key must show again
//! that it is prompt. Both are remembered for [`MEMORY`] after its last key, promptness only if other groups were not prompt
//! then. A key of low priority does not make a slow group prompt: where creates hang, status writes may still be fast. So
//! unanswered groups can never take all workers, neither one group nor many.
//!
//! Without a limit nothing is measured and every key may be handed out.
//!
//! This is fair queuing as in API Priority and Fairness, with workers as seats. A group without keys has no entry unless it
//! is remembered as slow or has a limit of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::queue::Priority;

/// A group is slow once one of its keys has been processed for this long.
pub const UNANSWERED: Duration = Duration::from_secs(1);

/// A key that is done sooner than this made no request, so it shows nothing about how fast its group is answered.
const LEAST_EVIDENCE: Duration = Duration::from_millis(1);

/// How long a group without keys is remembered: several periods of a key that comes every minute.
const MEMORY: Duration = Duration::from_secs(300);

/// One in this many workers is reserved for groups that are answered.
const RESERVE: usize = 8;

const UNLIMITED: usize = usize::MAX;

/// The group without a name. It is never removed, so a queue without groups allocates nothing for it.
const UNNAMED: GroupId = 0;

/// The index of a group; valid while the group has a key.
pub(super) type GroupId = usize;

/// How fast the keys of a group are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The last key that ended was fast, and none has been processed for [`UNANSWERED`].
    Prompt,
    /// No key has ended since the group returned; it was prompt before.
    Returning,
    /// No key has ended since the group's first key came.
    Unproven,
    /// The last key that ended was slow, or one has been processed for [`UNANSWERED`].
    Slow,
}

const STANDINGS: [Standing; 4] = [Standing::Prompt, Standing::Returning, Standing::Unproven, Standing::Slow];
const LANES: usize = Priority::High as usize + 1;

/// What is remembered of the last key that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastEnd {
    None,
    /// It was fast, and the group has had no key since.
    FastBefore,
    Fast,
    Slow,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Group<K> {
    name: Box<str>,
    standing: Standing,
    last_end: LastEnd,
    /// How many of its keys are dirty or being processed.
    keys: usize,
    /// How many of them are being processed.
    processing: usize,
    /// How many of those have been processed for [`UNANSWERED`] or longer.
    unanswered: usize,
    /// How many of its keys may be processed at a time.
    limit: usize,
    /// The ready keys of each priority with their tickets, oldest first. A ticket is invalid once its key was given a higher
    /// priority.
    lanes: [VecDeque<(K, u64)>; LANES],
    /// The group's place in the ring of each lane; zero if the lane is empty.
    places: [u64; LANES],
    /// Since when the group has had no keys, if it is remembered.
    idle_since: Option<Instant>,
}

impl<K> Group<K> {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            standing: Standing::Unproven,
            last_end: LastEnd::None,
            keys: 0,
            processing: 0,
            unanswered: 0,
            limit: UNLIMITED,
            lanes: std::array::from_fn(|_| VecDeque::new()),
            places: [0; LANES],
            idle_since: None,
        }
    }

    /// The ticket of its first key in a lane, in which it has one.
    fn first_ticket(&self, lane: usize) -> u64 {
        self.lanes[lane].front().map_or(0, |(_, ticket)| *ticket)
    }

    fn judged(&self) -> Standing {
        match self.last_end {
            _ if self.unanswered > 0 => Standing::Slow,
            LastEnd::Slow => Standing::Slow,
            LastEnd::Fast => Standing::Prompt,
            LastEnd::FastBefore => Standing::Returning,
            LastEnd::None => Standing::Unproven,
        }
    }
}

/// The processing of one key: when it began, its number, and the priority with which the key was handed out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    since: Instant,
    number: u64,
    priority: Priority,
}

/// Which keys of groups of one standing may be handed out.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// Every key.
    any: bool,
    /// The first key of a group that has none in processing.
    first: bool,
}

impl Share {
    fn admits<K>(self, group: &Group<K>) -> bool {
        group.processing < group.limit && (self.any || self.first && group.processing == 0)
    }
}

/// The groups of one standing with keys in one lane, in two orders.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
struct Ring {
    /// By place; the first has its turn.
    turns: BTreeMap<u64, GroupId>,
    /// By the ticket of their first key; that of the first group has been ready for longest. Empty if there is one group.
    ages: BTreeMap<u64, GroupId>,
}

impl Ring {
    /// Puts a group at the end; `ticket_of` gives the ticket of a group's first key.
    fn insert(&mut self, place: u64, id: GroupId, ticket_of: impl Fn(GroupId) -> u64) {
        self.turns.insert(place, id);
        match self.turns.len() {
            1 => {}
            2 => self.ages.extend(self.turns.values().map(|id| (ticket_of(*id), *id))),
            _ => _ = self.ages.insert(ticket_of(id), id),
        }
    }

    fn remove(&mut self, place: u64, ticket: u64) {
        self.turns.remove(&place);
        self.ages.remove(&ticket);
        if self.turns.len() == 1 {
            self.ages.clear();
        }
    }

    /// A group's first key is another one.
    fn replace(&mut self, ticket: u64, by: u64, id: GroupId) {
        if self.turns.len() > 1 {
            self.ages.remove(&ticket);
            self.ages.insert(by, id);
        }
    }

    /// The groups in this order.
    fn groups(&self, order: Order) -> impl Iterator<Item = GroupId> {
        let by_age = order == Order::Ages && self.turns.len() > 1;
        if by_age { &self.ages } else { &self.turns }.values().copied()
    }
}

/// In which order groups are considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// They take turns.
    Turns,
    /// The one whose first key became ready first.
    Ages,
}

/// All groups.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Groups<K> {
    slots: Vec<Group<K>>,
    /// The free places in `slots`.
    free: Vec<GroupId>,
    by_name: HashMap<Box<str>, GroupId, RandomState>,
    /// For each lane and standing the groups with keys in that lane.
    rings: [[Ring; STANDINGS.len()]; LANES],
    /// For each lane, the standing whose turn it is.
    turns: [usize; LANES],
    /// How many keys of groups of each standing are being processed.
    held: [usize; STANDINGS.len()],
    processing: usize,
    /// How many keys may be processed at a time.
    limit: usize,
    /// Processing that has lasted for less than [`UNANSWERED`], by number and so by start time.
    young: BTreeMap<u64, (Instant, GroupId)>,
    /// The remembered groups without keys, and until when they are remembered.
    idle: BTreeSet<(Instant, GroupId)>,
    /// The last place, ticket or number that was assigned.
    sequence: u64,
}

impl<K> Groups<K> {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![Group::new("")],
            free: Vec::new(),
            by_name: HashMap::default(),
            rings: Default::default(),
            turns: [0; LANES],
            held: [0; STANDINGS.len()],
            processing: 0,
            limit: UNLIMITED,
            young: BTreeMap::new(),
            idle: BTreeSet::new(),
            sequence: 0,
        }
    }

    /// Counts one more key of the group of that name.
    pub(super) fn enter(&mut self, name: &str, now: Instant) -> GroupId {
        self.forget_idle(now);
        let id = self.find_or_insert(name);
        self.slots[id].keys += 1;
        if let Some(since) = self.slots[id].idle_since.take() {
            self.idle.remove(&(since + MEMORY, id));
        }
        id
    }

    /// Counts one key fewer.
    pub(super) fn leave(&mut self, id: GroupId, now: impl Fn() -> Instant) {
        let group = &mut self.slots[id];
        group.keys -= 1;
        if group.keys > 0 {
            return;
        }
        // Keys that are left in the lanes have been handed out with a higher priority.
        for lane in 0..LANES {
            let place = std::mem::take(&mut group.places[lane]);
            if let Some((_, ticket)) = group.lanes[lane].front() {
                self.rings[lane][group.standing as usize].remove(place, *ticket);
                group.lanes[lane].clear();
            }
        }
        let held_by_others = self.processing - self.held[Standing::Prompt as usize];
        group.last_end = match group.last_end {
            LastEnd::Fast | LastEnd::FastBefore if held_by_others > 0 => LastEnd::FastBefore,
            LastEnd::Slow => LastEnd::Slow,
            _ => LastEnd::None,
        };
        group.standing = group.judged();
        if group.last_end != LastEnd::None {
            let now = now();
            group.idle_since = Some(now);
            self.idle.insert((now + MEMORY, id));
            return;
        }
        self.remove_if_unneeded(id);
    }

    /// Puts `key` at the end of its lane; returns its ticket.
    pub(super) fn push(&mut self, id: GroupId, lane: Priority, key: K) -> u64 {
        self.sequence += 1;
        let (group, lane) = (&mut self.slots[id], lane as usize);
        group.lanes[lane].push_back((key, self.sequence));
        if group.places[lane] == 0 {
            group.places[lane] = self.sequence;
            let standing = group.standing as usize;
            let slots = &self.slots;
            self.rings[lane][standing].insert(self.sequence, id, |id| slots[id].first_ticket(lane));
        }
        self.sequence
    }

    /// The first group of a lane, in this order, of which a key may be handed out; `unbounded` ignores the limits. Drops the
    /// keys before its first valid one.
    pub(super) fn first(
        &mut self,
        lane: Priority,
        order: Order,
        unbounded: bool,
        is_valid: impl Fn(&K, u64) -> bool,
    ) -> Option<GroupId> {
        if !unbounded && self.is_full() {
            return None;
        }
        let lane = lane as usize;
        let turn = self.turns[lane];
        let mut firsts = (0..STANDINGS.len()).filter_map(|at| {
            let standing = (turn + at) % STANDINGS.len();
            let id = self.first_of(standing, lane, order, unbounded, &is_valid)?;
            Some((self.slots[id].lanes[lane].front()?.1, id))
        });
        let first = match order {
            Order::Turns => firsts.next(),
            Order::Ages => firsts.min(),
        };
        first.map(|(_, id)| id)
    }

    fn first_of(
        &mut self,
        standing: usize,
        lane: usize,
        order: Order,
        unbounded: bool,
        is_valid: impl Fn(&K, u64) -> bool,
    ) -> Option<GroupId> {
        let share = self.share(STANDINGS[standing]);
        if !unbounded && !share.any && !share.first {
            return None;
        }
        loop {
            // Each group that is passed over has a key in processing, so there are no more of them than workers.
            let is_admitted = |id: &GroupId| unbounded || share.admits(&self.slots[*id]);
            let id = self.rings[lane][standing].groups(order).find(is_admitted)?;
            if self.drop_stale(id, lane, &is_valid) {
                return Some(id);
            }
        }
    }

    /// The first key of a group's lane.
    pub(super) fn peek(&self, id: GroupId, lane: Priority) -> Option<&K> {
        self.slots[id].lanes[lane as usize].front().map(|(key, _)| key)
    }

    /// Takes the first key of a group's lane; the next turn goes to another group.
    pub(super) fn pop(&mut self, id: GroupId, lane: Priority) -> Option<K> {
        let (group, lane) = (&mut self.slots[id], lane as usize);
        let (key, ticket) = group.lanes[lane].pop_front()?;
        let standing = group.standing as usize;
        self.turns[lane] = (standing + 1) % STANDINGS.len();
        let ring = &mut self.rings[lane][standing];
        match group.lanes[lane].front() {
            None => ring.remove(std::mem::take(&mut group.places[lane]), ticket),
            Some(_) if ring.turns.len() == 1 => {}
            Some((_, next)) => {
                ring.replace(ticket, *next, id);
                ring.turns.remove(&group.places[lane]);
                self.sequence += 1;
                group.places[lane] = self.sequence;
                ring.turns.insert(self.sequence, id);
            }
        }
        Some(key)
    }

    /// How many keys are being processed.
    pub(super) fn processing(&self) -> usize {
        self.processing
    }

    /// Records that a key of the group is handed out, at `since` if time is measured.
    pub(super) fn started(&mut self, id: GroupId, priority: Priority, since: Option<Instant>) -> Option<Work> {
        let group = &mut self.slots[id];
        group.processing += 1;
        self.processing += 1;
        self.held[group.standing as usize] += 1;
        let since = since.filter(|_| self.limit != UNLIMITED)?;
        self.sequence += 1;
        self.young.insert(self.sequence, (since, id));
        Some(Work { since, number: self.sequence, priority })
    }

    /// Records that the processing of a key of the group has ended.
    pub(super) fn finished(&mut self, id: GroupId, work: Option<Work>, now: impl Fn() -> Instant) {
        let group = &mut self.slots[id];
        group.processing -= 1;
        self.processing -= 1;
        self.held[group.standing as usize] -= 1;
        let Some(work) = work else { return };
        if self.young.remove(&work.number).is_none() {
            group.unanswered -= 1;
        }
        let now = now();
        let took = now.saturating_duration_since(work.since);
        if took >= UNANSWERED {
            group.last_end = LastEnd::Slow;
        } else if took >= LEAST_EVIDENCE && (work.priority > Priority::Low || group.last_end != LastEnd::Slow) {
            group.last_end = LastEnd::Fast;
        }
        self.judge(id);
        self.advance(now);
    }

    /// Marks processing that has lasted for [`UNANSWERED`]; true if there is any.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(first) = self.young.first_entry().filter(|first| first.get().0 + UNANSWERED <= now) {
            let (_, id) = first.remove();
            self.slots[id].unanswered += 1;
            self.judge(id);
            any = true;
        }
        any
    }

    /// When [`Self::advance`] next has an effect if no processing ends before. Without a limit it has none.
    pub(super) fn next_advance(&self) -> Option<Instant> {
        self.is_limited().then_some(())?;
        self.young.first_key_value().map(|(_, (since, _))| *since + UNANSWERED)
    }

    /// Sets how many keys may be processed at a time.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// Sets how many keys of a group may be processed at a time; `None`: only the limit of the queue applies.
    pub(super) fn set_group_limit(&mut self, name: &str, limit: Option<usize>) {
        let id = match limit {
            None if !name.is_empty() && !self.by_name.contains_key(name) => return,
            _ => self.find_or_insert(name),
        };
        self.slots[id].limit = limit.map_or(UNLIMITED, |limit| limit.max(1));
        self.remove_if_unneeded(id);
    }

    /// Whether the queue has a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.limit != UNLIMITED
    }

    /// Whether the limit is reached. The part of the reserve that slow groups hold does not count. So when the limit falls
    /// because of slow groups, keys of other groups do not wait until the slow ones have ended.
    pub(super) fn is_full(&self) -> bool {
        let excess = self.held[Standing::Slow as usize].saturating_sub(self.unreserved());
        self.processing - excess >= self.limit
    }

    /// How many keys of groups that are not prompt may be processed.
    fn unreserved(&self) -> usize {
        // With three workers or fewer, a reserve would take more than it leaves.
        if self.limit > 3 { self.limit - self.limit.div_ceil(RESERVE) } else { self.limit }
    }

    /// Which keys of groups of that standing may be handed out.
    fn share(&self, standing: Standing) -> Share {
        let [_, returning, unproven, slow] = self.held;
        let unknown = returning + unproven;
        let free = self.limit.saturating_sub(slow);
        let is_bounded = slow + unknown < self.unreserved();
        let any_unknown = is_bounded && unknown < (free / 2).max(1);
        match standing {
            Standing::Prompt => Share { any: true, first: true },
            Standing::Returning => Share { any: any_unknown, first: true },
            Standing::Unproven => Share { any: any_unknown, first: is_bounded && unknown < (free - free / 4).max(1) },
            Standing::Slow => {
                // Groups of unknown speed come first.
                let is_unknown_due = !self.rings[Priority::High as usize][Standing::Unproven as usize].turns.is_empty();
                Share { any: slow < (self.limit / if is_unknown_due { 4 } else { 2 }).max(1), first: false }
            }
        }
    }

    /// Moves a group into the rings of its standing, which may have changed.
    fn judge(&mut self, id: GroupId) {
        let group = &mut self.slots[id];
        let (before, after) = (group.standing as usize, group.judged());
        group.standing = after;
        let after = after as usize;
        if before == after {
            return;
        }
        self.held[before] -= group.processing;
        self.held[after] += group.processing;
        let places = group.places;
        let slots = &self.slots;
        for (lane, (rings, place)) in self.rings.iter_mut().zip(places).enumerate().filter(|(_, (_, place))| *place > 0)
        {
            rings[before].remove(place, slots[id].first_ticket(lane));
            rings[after].insert(place, id, |id| slots[id].first_ticket(lane));
        }
    }

    /// Drops invalid entries from the front of a lane. False if the lane is empty now, so that the group has left the ring.
    fn drop_stale(&mut self, id: GroupId, lane: usize, is_valid: impl Fn(&K, u64) -> bool) -> bool {
        let group = &mut self.slots[id];
        let ring = &mut self.rings[lane][group.standing as usize];
        while let Some((key, ticket)) = group.lanes[lane].front() {
            if is_valid(key, *ticket) {
                return true;
            }
            let ticket = *ticket;
            group.lanes[lane].pop_front();
            match group.lanes[lane].front() {
                Some((_, next)) => ring.replace(ticket, *next, id),
                None => ring.remove(std::mem::take(&mut group.places[lane]), ticket),
            }
        }
        false
    }

    fn find_or_insert(&mut self, name: &str) -> GroupId {
        if name.is_empty() {
            return UNNAMED;
        }
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let group = Group::new(name);
        let id = if let Some(id) = self.free.pop() {
            self.slots[id] = group;
            id
        } else {
            self.slots.push(group);
            self.slots.len() - 1
        };
        self.by_name.insert(name.into(), id);
        id
    }

    /// Removes a group that has no keys, no limit and is not remembered.
    fn remove_if_unneeded(&mut self, id: GroupId) {
        let group = &self.slots[id];
        if id == UNNAMED || group.keys > 0 || group.limit != UNLIMITED || group.idle_since.is_some() {
            return;
        }
        self.by_name.remove(&group.name);
        self.slots[id] = Group::new("");
        self.free.push(id);
    }

    /// Forgets the groups that have had no key for [`MEMORY`].
    fn forget_idle(&mut self, now: Instant) {
        while let Some((_, id)) = self.idle.first().copied().filter(|(until, _)| *until <= now) {
            self.idle.pop_first();
            let group = &mut self.slots[id];
            group.idle_since = None;
            group.last_end = LastEnd::None;
            group.standing = Standing::Unproven;
            self.remove_if_unneeded(id);
        }
    }

    /// How many groups there are, for tests, without the unnamed one.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }
}

#[cfg(test)]
mod tests;
