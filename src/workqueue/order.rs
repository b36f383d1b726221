//! The order in which ready keys are handed out, behind the four methods of client-go's `Queue`: touch, push, len, pop.
//!
//! Guarantees: pure; the time is an argument.
//! - Keys of one group and one priority leave in the order in which they were pushed, and groups take turns. Which groups have
//!   to wait is decided by [`Shares`], by the limit of each group, and by [`Gate`] for low priority.
//! - A key that may leave goes before all of lower priority. Those that have been ready for [`STARVATION_LIMIT`] are starved:
//!   they get every second turn, the oldest of each group first, and no gate holds them.
//! - A group without keys has no entry, unless it has a limit or is remembered for [`MEMORY`].
//!
//! Beyond client-go, the order is told when the processing of a key ends, because it depends on what is being processed.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::fifo::Fifo;
use super::gate::Gate;
use super::shares::{Evidence, STANDINGS, Shares, Standing, UNANSWERED, UNLIMITED};

/// How long a key may be passed over for keys of higher priority; from then on they take turns. It bounds the starvation of
/// lower priorities under any load of higher ones.
pub const STARVATION_LIMIT: Duration = Duration::from_secs(5);

/// How long a group without keys is remembered: several periods of a key that comes every minute.
const MEMORY: Duration = Duration::from_secs(300);

/// How many starved keys are found at a time, so that a worker does not wait for a hundred thousand.
const STARVED_AT_A_TIME: usize = 256;

/// The group without a name. It is never removed, so a queue without groups allocates nothing for it.
const UNNAMED: GroupId = 0;

/// The index of a group; valid while the group has a key.
type GroupId = usize;

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

/// The ready keys of each priority, and the starved ones.
const LANES: usize = STARVED + 1;
const LOW: usize = Priority::Low as usize;
const RETRY: usize = Priority::Retry as usize;
const HIGH: usize = Priority::High as usize;
const STARVED: usize = HIGH + 1;

/// Where a ready key stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    group: GroupId,
    lane: usize,
    number: u64,
    /// Its number in [`Order::aging`], and in the lane of starved keys.
    age: u64,
}

/// A ready key.
#[derive(Debug, Clone)]
struct Ready<K> {
    key: K,
    /// The highest with which it was added.
    priority: Priority,
    /// See [`Place::age`].
    age: u64,
}

/// A key that was handed out, until it is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    group: GroupId,
    /// With which it was pushed.
    pub(super) priority: Priority,
    /// When it was handed out, if that depended on the time, or was measured.
    pub(super) since: Option<Instant>,
    /// Its number in [`Order::young`]; zero if there is no limit.
    number: u64,
    /// See [`Gate::due_started`].
    closing: u64,
    /// Whether what it takes shows how fast its group is answered.
    pub(super) is_evidence: bool,
}

#[derive(Debug, Clone)]
struct Group<K> {
    name: Box<str>,
    /// Its ready keys.
    lanes: [Fifo<Ready<K>>; LANES],
    ready: usize,
    processing: usize,
    /// How many keys may be processed at a time.
    limit: usize,
    evidence: Evidence,
    /// What the evidence says, as [`Order::rings`] and [`Shares`] know it.
    standing: Standing,
    /// Since when the group has had no keys, if it is remembered.
    idle_since: Option<Instant>,
}

impl<K> Group<K> {
    fn new(name: &str) -> Self {
        let evidence = Evidence::default();
        Self {
            name: name.into(),
            lanes: Default::default(),
            ready: 0,
            processing: 0,
            limit: UNLIMITED,
            standing: evidence.standing(),
            evidence,
            idle_since: None,
        }
    }
}

/// The ready keys.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Order<K> {
    /// The name of a key's group.
    group_of: fn(&K) -> &str,
    groups: Vec<Group<K>>,
    /// The free places in `groups`.
    free: Vec<GroupId>,
    by_name: HashMap<Box<str>, GroupId, RandomState>,
    /// For each lane and standing, the groups with such keys in the order of their turns.
    rings: [[VecDeque<GroupId>; STANDINGS.len()]; LANES],
    /// For each lane, the standing whose turn it is.
    turns: [usize; LANES],
    /// How many keys each lane has.
    ready: [usize; LANES],
    /// Whether the last turn went to a starved key although keys of the highest priority are ready.
    starved_had_its_turn: bool,
    /// Since when and where keys of lower priority are ready that are not starved, oldest first.
    aging: Fifo<(Instant, Place)>,
    gate: Gate,
    shares: Shares,
    /// Work that has lasted for less than [`UNANSWERED`].
    young: Fifo<(Instant, GroupId)>,
    /// The remembered groups without keys, and until when they are remembered.
    idle: BTreeSet<(Instant, GroupId)>,
    /// The last number that was given to a place or to work.
    sequence: u64,
    /// Nothing has to wait any more.
    is_unbounded: bool,
}

impl<K> Order<K> {
    /// No keys; `group_of` names the group of a key.
    pub(super) fn new(group_of: fn(&K) -> &str) -> Self {
        Self {
            group_of,
            groups: vec![Group::new("")],
            free: Vec::new(),
            by_name: HashMap::default(),
            rings: Default::default(),
            turns: [0; LANES],
            ready: [0; LANES],
            starved_had_its_turn: false,
            aging: Fifo::default(),
            gate: Gate::default(),
            shares: Shares::unlimited(),
            young: Fifo::default(),
            idle: BTreeSet::new(),
            sequence: 0,
            is_unbounded: false,
        }
    }

    /// Adds a ready key.
    pub(super) fn push(&mut self, key: K, priority: Priority, now: Instant) -> Place {
        self.find_starved(now);
        self.forget_idle(now);
        let id = self.find_or_insert((self.group_of)(&key));
        let group = &mut self.groups[id];
        group.ready += 1;
        if let Some(since) = group.idle_since.take() {
            self.idle.remove(&(since + MEMORY, id));
        }
        self.sequence += 1;
        let place = Place { group: id, lane: priority as usize, number: self.sequence, age: self.sequence };
        if priority < Priority::High {
            self.aging.push(place.age, (now, place));
        }
        self.put(place, Ready { key, priority, age: place.age });
        place
    }

    /// Gives a ready key a higher priority. One that is starved keeps its place, unless it has the highest one now.
    pub(super) fn touch(&mut self, before: Place, priority: Priority, now: Instant) -> Place {
        self.find_starved(now);
        let mut known = self.take_out(before);
        if known.is_none() && priority == Priority::High {
            known = self.take_out(Place { lane: STARVED, number: before.age, ..before });
        }
        let Some(ready) = known else {
            if let Some(starved) = self.groups[before.group].lanes[STARVED].get_mut(before.age) {
                starved.priority = priority;
            }
            return before;
        };
        self.sequence += 1;
        let place = Place { lane: priority as usize, number: self.sequence, ..before };
        if priority == Priority::High {
            self.aging.remove(place.age);
        } else if let Some((_, known)) = self.aging.get_mut(place.age) {
            *known = place;
        }
        self.put(place, Ready { priority, ..ready });
        place
    }

    /// How many keys are ready.
    pub(super) fn len(&self) -> usize {
        self.ready.iter().sum()
    }

    /// Takes out the key that has its turn. `now` may be missing unless it [depends on the time](Self::depends_on_time).
    pub(super) fn pop(&mut self, now: Option<Instant>) -> Option<(K, Work)> {
        if let Some(now) = now {
            self.advance(now);
        }
        let (lane, standing, at) = self.turn()?;
        let ring = &mut self.rings[lane][standing];
        let id = ring.remove(at)?;
        let group = &mut self.groups[id];
        let Ready { key, priority, age } = group.lanes[lane].pop()?;
        if !group.lanes[lane].is_empty() {
            ring.push_back(id);
        }
        group.ready -= 1;
        group.processing += 1;
        self.turns[lane] = (standing + 1) % STANDINGS.len();
        self.starved_had_its_turn = lane == STARVED && self.ready[HIGH] > 0;
        self.ready[lane] -= 1;
        self.shares.take(group.standing);
        let mut work = Work { group: id, priority, since: now, number: 0, closing: 0, is_evidence: true };
        if let Some(since) = now.filter(|_| self.shares.limit != UNLIMITED) {
            self.sequence += 1;
            work.number = self.sequence;
            self.young.push(work.number, (since, id));
        }
        if priority == Priority::High {
            work.closing = self.gate.due_started();
        }
        if lane < HIGH {
            self.aging.remove(age);
        }
        Some((key, work))
    }

    /// Ends the processing of a key. One of its group that is to follow must have been pushed before.
    pub(super) fn done(&mut self, work: Work, now: impl Fn() -> Instant) {
        let group = &mut self.groups[work.group];
        group.processing -= 1;
        self.shares.give_back(group.standing);
        if work.priority == Priority::High {
            self.gate.due_done(work.closing, &now);
        }
        if let Some(since) = work.since.filter(|_| work.number > 0) {
            let was_unanswered = self.young.remove(work.number).is_none();
            let now = now();
            let took = if work.is_evidence { now.saturating_duration_since(since) } else { Duration::ZERO };
            group.evidence.ended(took, work.priority, was_unanswered);
            self.judge(work.group);
            self.find_unanswered(now);
        }
        let group = &self.groups[work.group];
        if group.ready == 0 && group.processing == 0 {
            self.leave(work.group, now);
        }
    }

    /// Whether [`Self::pop`] depends on the time.
    pub(super) fn depends_on_time(&self) -> bool {
        // Keys age only beside others of higher priority, or at a closed gate.
        let ages = self.ready[LOW] < self.len() && !self.aging.is_empty();
        ages || self.is_limited() || self.gate.is_closed()
    }

    /// Does what the time does. Returns whether keys may leave now that had to wait before.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        let (opened, starved, unanswered) = (self.gate.open(now), self.find_starved(now), self.find_unanswered(now));
        (opened || starved || unanswered) && self.len() > 0
    }

    /// When [`Self::advance`] next has an effect on a key that has to wait.
    pub(super) fn next_advance(&self) -> Option<Instant> {
        let opens_at = self.gate.opens_at();
        let starves_at = self.aging.front().filter(|_| opens_at.is_some()).map(|(since, _)| *since + STARVATION_LIMIT);
        let is_awaited = self.is_limited() && self.len() > 0;
        let slow_at = self.young.front().filter(|_| is_awaited).map(|(since, _)| *since + UNANSWERED);
        [opens_at, starves_at, slow_at].into_iter().flatten().min()
    }

    /// The gate for keys of low priority.
    pub(super) fn gate(&mut self) -> &mut Gate {
        &mut self.gate
    }

    /// Whether keys of low priority have to wait at the gate.
    pub(super) fn is_closed(&self, now: Instant) -> bool {
        self.gate.opens_at().is_some_and(|end| now < end) && !self.is_unbounded
    }

    /// Sets how many keys, at least one, may be processed at a time.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.shares.set_limit(limit);
    }

    /// Sets how many keys of a group, at least one, may be processed at a time; `None`: only the limit of all applies.
    pub(super) fn set_group_limit(&mut self, name: &str, limit: Option<usize>) {
        let id = match limit {
            None if !name.is_empty() && !self.by_name.contains_key(name) => return,
            _ => self.find_or_insert(name),
        };
        self.groups[id].limit = limit.map_or(UNLIMITED, |limit| limit.max(1));
        self.remove_if_unneeded(id);
    }

    /// From now on nothing has to wait.
    pub(super) fn unbound(&mut self) {
        self.is_unbounded = true;
    }

    /// Whether as many keys are being processed as may be.
    pub(super) fn is_full(&self) -> bool {
        self.shares.is_full() && !self.is_unbounded
    }

    /// How many keys are being processed.
    pub(super) fn processing(&self) -> usize {
        self.shares.held()
    }

    fn is_limited(&self) -> bool {
        self.shares.limit != UNLIMITED
    }

    /// The lane, the standing and the place in their ring of the group that has its turn.
    fn turn(&self) -> Option<(usize, usize, usize)> {
        if self.is_full() {
            return None;
        }
        let lanes = if self.starved_had_its_turn { [HIGH, STARVED, RETRY, LOW] } else { [STARVED, HIGH, RETRY, LOW] };
        let passes =
            |lane: &usize| self.ready[*lane] > 0 && (*lane > LOW || self.is_unbounded || !self.gate.is_closed());
        lanes.into_iter().filter(passes).find_map(|lane| {
            (0..STANDINGS.len()).find_map(|turn| {
                let standing = (self.turns[lane] + turn) % STANDINGS.len();
                Some((lane, standing, self.first_admitted(lane, standing)?))
            })
        })
    }

    fn first_admitted(&self, lane: usize, standing: usize) -> Option<usize> {
        let ring = &self.rings[lane][standing];
        if self.is_unbounded || ring.is_empty() {
            return (!ring.is_empty()).then_some(0);
        }
        let is_unknown_due = !self.rings[HIGH][Standing::Unproven as usize].is_empty();
        let share = self.shares.of(STANDINGS[standing], is_unknown_due);
        if !share.any && !share.first {
            return None;
        }
        // Each group that is passed over has a key in processing, so there are no more of them than workers.
        ring.iter().position(|id| {
            let group = &self.groups[*id];
            group.processing < group.limit && (share.any || share.first && group.processing == 0)
        })
    }

    /// Puts a key at the end of a lane.
    fn put(&mut self, Place { group: id, lane, number, .. }: Place, ready: Ready<K>) {
        let group = &mut self.groups[id];
        if group.lanes[lane].is_empty() {
            self.rings[lane][group.standing as usize].push_back(id);
        }
        group.lanes[lane].push(number, ready);
        self.ready[lane] += 1;
    }

    /// Takes a key out, if it still has that place.
    fn take_out(&mut self, Place { group: id, lane, number, .. }: Place) -> Option<Ready<K>> {
        let group = &mut self.groups[id];
        let ready = group.lanes[lane].remove(number)?;
        if group.lanes[lane].is_empty() {
            remove(&mut self.rings[lane][group.standing as usize], id);
        }
        self.ready[lane] -= 1;
        Some(ready)
    }

    /// Finds the keys that have waited for [`STARVATION_LIMIT`]; true if there are any.
    fn find_starved(&mut self, now: Instant) -> bool {
        let mut any = false;
        for _ in 0..STARVED_AT_A_TIME {
            let Some(&(since, place)) = self.aging.front() else { break };
            if since + STARVATION_LIMIT > now {
                break;
            }
            self.aging.pop();
            if let Some(ready) = self.take_out(place) {
                self.put(Place { lane: STARVED, number: place.age, ..place }, ready);
                any = true;
            }
        }
        any
    }

    /// Marks work that has lasted for [`UNANSWERED`]; true if there is any.
    fn find_unanswered(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(&(since, id)) = self.young.front()
            && since + UNANSWERED <= now
        {
            self.young.pop();
            self.groups[id].evidence.unanswered();
            self.judge(id);
            any = true;
        }
        any
    }

    /// Moves a group to the rings of its standing, which may have changed.
    fn judge(&mut self, id: GroupId) {
        let group = &mut self.groups[id];
        let (before, after) = (group.standing, group.evidence.standing());
        if before == after {
            return;
        }
        group.standing = after;
        self.shares.transfer(group.processing, before, after);
        for (rings, _) in self.rings.iter_mut().zip(&group.lanes).filter(|(_, lane)| !lane.is_empty()) {
            remove(&mut rings[before as usize], id);
            rings[after as usize].push_back(id);
        }
    }

    /// A group has no key any more.
    fn leave(&mut self, id: GroupId, now: impl Fn() -> Instant) {
        let remembers_prompt = self.shares.remembers_prompt();
        let group = &mut self.groups[id];
        let is_remembered = group.evidence.gone(remembers_prompt);
        group.standing = group.evidence.standing();
        if is_remembered {
            let now = now();
            group.idle_since = Some(now);
            self.idle.insert((now + MEMORY, id));
        }
        self.remove_if_unneeded(id);
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
            self.groups[id] = group;
            id
        } else {
            self.groups.push(group);
            self.groups.len() - 1
        };
        self.by_name.insert(name.into(), id);
        id
    }

    /// Removes a group that has no keys, no limit and is not remembered.
    fn remove_if_unneeded(&mut self, id: GroupId) {
        let group = &self.groups[id];
        let has_keys = group.ready > 0 || group.processing > 0;
        if id == UNNAMED || has_keys || group.limit != UNLIMITED || group.idle_since.is_some() {
            return;
        }
        self.by_name.remove(&group.name);
        self.groups[id] = Group::new("");
        self.free.push(id);
    }

    /// Forgets the groups that have had no key for [`MEMORY`].
    fn forget_idle(&mut self, now: Instant) {
        while let Some((_, id)) = self.idle.first().copied().filter(|(until, _)| *until <= now) {
            self.idle.pop_first();
            let group = &mut self.groups[id];
            (group.idle_since, group.evidence) = (None, Evidence::default());
            group.standing = group.evidence.standing();
            self.remove_if_unneeded(id);
        }
    }

    /// How many groups there are, for tests, without the unnamed one.
    #[cfg(test)]
    pub(super) fn groups(&self) -> usize {
        self.by_name.len()
    }
}

fn remove(ring: &mut VecDeque<GroupId>, id: GroupId) {
    if let Some(at) = ring.iter().position(|other| *other == id) {
        ring.remove(at);
    }
}

#[cfg(test)]
mod tests;
