//! The order against a model that is recomputed for every question.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::queue::Queue;
use super::super::shares::LEAST_EVIDENCE;
use super::*;

type Key = (usize, usize);

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[derive(Debug, Clone)]
enum Move {
    Add(Key, Priority),
    Get,
    Done(prop::sample::Index),
    Pass(u64),
    Limit(usize),
    GroupLimit(usize, Option<usize>),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let priority = prop_oneof![Just(Priority::Low), Just(Priority::Retry), Just(Priority::High)];
    let one = prop_oneof![
        12 => ((0..NAMES.len(), 0usize..6), priority).prop_map(|(key, priority)| Move::Add(key, priority)),
        12 => Just(Move::Get),
        8 => any::<prop::sample::Index>().prop_map(Move::Done),
        4 => (0u64..6000).prop_map(Move::Pass),
        1 => (0u64..400_000).prop_map(Move::Pass),
        1 => (1usize..12).prop_map(Move::Limit),
        1 => (0..NAMES.len(), prop::option::of(1usize..4)).prop_map(|(group, limit)| Move::GroupLimit(group, limit)),
    ];
    prop::collection::vec(one, 1..200)
}

#[derive(Debug, Default, Clone)]
struct ModelGroup {
    /// When each key in processing was handed out.
    processing: Vec<(Key, Instant)>,
    /// How long the last key took whose time counts as evidence.
    last: Option<Duration>,
    was_prompt: bool,
    keys: usize,
    idle_since: Option<Instant>,
    limit: Option<usize>,
}

/// A ready key.
#[derive(Debug, Clone, Copy)]
struct Ready {
    key: Key,
    /// With which it was added.
    priority: Priority,
    lane: usize,
    since: Instant,
    /// Which of the keys became ready first.
    age: usize,
}

struct Model {
    now: Instant,
    limit: usize,
    widest: usize,
    groups: Vec<ModelGroup>,
    /// In the order in which they came to their lanes.
    ready: Vec<Ready>,
    dirty: BTreeMap<Key, Instant>,
    again: BTreeMap<Key, Priority>,
    /// The priority with which each key was handed out last.
    lanes: BTreeMap<Key, Priority>,
    pushes: usize,
    starved_had_its_turn: bool,
}

impl Model {
    fn standing(&self, group: usize) -> Standing {
        let group = &self.groups[group];
        let is_unanswered = group.processing.iter().any(|(_, since)| *since + UNANSWERED <= self.now);
        match group.last {
            _ if is_unanswered => Standing::Slow,
            Some(took) if took >= UNANSWERED => Standing::Slow,
            Some(_) => Standing::Prompt,
            None if group.was_prompt => Standing::Returning,
            None => Standing::Unproven,
        }
    }

    fn held(&self, standing: Standing) -> usize {
        let groups = (0..NAMES.len()).filter(|group| self.standing(*group) == standing);
        groups.map(|group| self.groups[group].processing.len()).sum()
    }

    fn may_leave(&self, group: usize) -> bool {
        let processing: usize = self.groups.iter().map(|group| group.processing.len()).sum();
        let own = &self.groups[group];
        let half = 1.max(self.limit / 2);
        let slow = self.held(Standing::Slow);
        let unknown = self.held(Standing::Returning) + self.held(Standing::Unproven);
        let reserve = if self.limit > 3 { self.limit.div_ceil(8) } else { 0 };
        let counted = slow.min(if self.limit > 3 { self.limit - reserve } else { self.limit / 2 });
        let free = self.limit - counted;
        let leaves_some = counted + unknown < self.limit - reserve;
        let is_first = own.processing.is_empty();
        let is_unknown = |group: usize| self.standing(group) == Standing::Unproven;
        let is_unknown_due = self.ready.iter().any(|ready| ready.lane == HIGH && is_unknown(ready.key.0));
        let is_admitted = match self.standing(group) {
            Standing::Prompt => true,
            Standing::Slow => leaves_some && slow < if is_unknown_due { 1.max(self.limit / 4) } else { half },
            Standing::Returning if is_first => true,
            Standing::Unproven if is_first => leaves_some && unknown < 1.max(free - free / 4),
            Standing::Returning | Standing::Unproven => leaves_some && unknown < 1.max(free / 2),
        };
        is_admitted
            && processing - slow + counted < self.limit
            && own.processing.len() < own.limit.unwrap_or(usize::MAX)
    }

    fn add(&mut self, key: Key, priority: Priority) {
        let is_processing = self.groups[key.0].processing.iter().any(|(other, _)| *other == key);
        let is_new = !is_processing && !self.dirty.contains_key(&key);
        let group = &mut self.groups[key.0];
        if is_new {
            if group.keys == 0 && group.idle_since.is_some_and(|since| since + MEMORY <= self.now) {
                group.last = None;
                group.was_prompt = false;
            }
            group.idle_since = None;
            group.keys += 1;
        }
        self.dirty.entry(key).or_insert(self.now);
        if is_processing {
            let again = self.again.entry(key).or_insert(priority);
            *again = priority.max(*again);
            return;
        }
        self.find_starved();
        match self.ready.iter().position(|ready| ready.key == key) {
            Some(place)
                if self.ready[place].priority < priority
                    && (self.ready[place].lane < HIGH || priority == Priority::High) =>
            {
                let ready = self.ready.remove(place);
                self.ready.push(Ready { priority, lane: priority as usize, ..ready });
            }
            Some(place) => self.ready[place].priority = priority.max(self.ready[place].priority),
            None => self.push(key, priority),
        }
    }

    fn push(&mut self, key: Key, priority: Priority) {
        self.find_starved();
        self.pushes += 1;
        self.ready.push(Ready { key, priority, lane: priority as usize, since: self.now, age: self.pushes });
    }

    /// Keys of lower priority that have been ready for long are starved, the oldest first.
    fn find_starved(&mut self) {
        let is_starved = |ready: &Ready| ready.lane < HIGH && ready.since + STARVATION_LIMIT <= self.now;
        let mut starved: Vec<Ready> = self.ready.iter().copied().filter(is_starved).collect();
        self.ready.retain(|ready| !is_starved(ready));
        starved.sort_by_key(|ready| ready.age);
        self.ready.extend(starved.into_iter().map(|ready| Ready { lane: STARVED, ..ready }));
    }

    fn got(&mut self, got: Option<Key>) {
        self.find_starved();
        let leavable: Vec<_> = self.ready.iter().filter(|ready| self.may_leave(ready.key.0)).copied().collect();
        let Some(key) = got else {
            assert!(leavable.is_empty(), "{leavable:?} may leave and did not");
            return;
        };
        assert!(self.may_leave(key.0), "{key:?} left although its group may have no more");
        let left = leavable.iter().find(|ready| ready.key == key).expect("it was ready");
        let first =
            leavable.iter().find(|other| other.key.0 == key.0 && other.lane == left.lane).expect("there is one");
        assert_eq!(first.key, key, "in the order in which they became ready");
        let turns = if self.starved_had_its_turn { [HIGH, STARVED, RETRY, LOW] } else { [STARVED, HIGH, RETRY, LOW] };
        let lane = turns.into_iter().find(|lane| leavable.iter().any(|other| other.lane == *lane));
        assert_eq!(Some(left.lane), lane, "{left:?} of {leavable:?}");
        self.starved_had_its_turn = left.lane == STARVED && self.ready.iter().any(|ready| ready.lane == HIGH);
        self.ready.retain(|ready| ready.key != key);
        self.dirty.remove(&key);
        self.groups[key.0].processing.push((key, self.now));
        self.lanes.insert(key, left.priority);
    }

    fn done(&mut self, key: Key) {
        let group = &mut self.groups[key.0];
        let place = group.processing.iter().position(|(other, _)| *other == key).expect("it is in processing");
        let took = self.now - group.processing.remove(place).1;
        let is_low = self.lanes[&key] == Priority::Low;
        let was_slow = group.last.is_some_and(|took| took >= UNANSWERED);
        if took >= UNANSWERED || took >= LEAST_EVIDENCE && !(is_low && was_slow) {
            group.last = Some(took);
        }
        if let Some(priority) = self.again.remove(&key) {
            self.push(key, priority);
            return;
        }
        let held_by_others: usize =
            [Standing::Returning, Standing::Unproven, Standing::Slow].map(|standing| self.held(standing)).iter().sum();
        let group = &mut self.groups[key.0];
        group.keys -= 1;
        if group.keys == 0 {
            let stays_slow = group.last.is_some_and(|took| took >= UNANSWERED);
            let is_prompt = group.last.map_or(group.was_prompt, |took| took < UNANSWERED);
            let was_prompt = is_prompt && (held_by_others > 0 || self.limit < self.widest);
            group.idle_since = (stays_slow || was_prompt).then_some(self.now);
            group.last = group.last.filter(|_| stays_slow);
            group.was_prompt = was_prompt;
        }
    }
}

fn play(moves: Vec<Move>) {
    let now = Instant::now();
    let mut queue: Queue<Key> = Queue::new(|key| NAMES[key.0]);
    queue.order().set_limit(8);
    let groups = vec![ModelGroup::default(); NAMES.len()];
    let mut model = Model {
        now,
        limit: 8,
        widest: 8,
        groups,
        ready: Vec::new(),
        dirty: BTreeMap::new(),
        again: BTreeMap::new(),
        lanes: BTreeMap::new(),
        pushes: 0,
        starved_had_its_turn: false,
    };
    for next in moves {
        match next {
            Move::Add(key, priority) => {
                queue.add(key, priority, model.now);
                model.add(key, priority);
            }
            Move::Get => model.got(queue.get(|| model.now)),
            Move::Done(index) => {
                let all: Vec<Key> =
                    model.groups.iter().flat_map(|group| &group.processing).map(|(key, _)| *key).collect();
                if !all.is_empty() {
                    let key = all[index.index(all.len())];
                    queue.done(&key, || model.now);
                    model.done(key);
                }
            }
            Move::Pass(millis) => model.now += Duration::from_millis(millis),
            Move::Limit(limit) => {
                queue.order().set_limit(limit);
                model.limit = limit;
                model.widest = model.widest.max(limit);
            }
            Move::GroupLimit(group, limit) => {
                queue.order().set_group_limit(NAMES[group], limit);
                model.groups[group].limit = limit;
            }
        }
        assert_eq!(queue.len(), model.ready.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_keys_that_the_shares_allow_leave(moves in moves()) {
        play(moves);
    }
}

#[test]
fn group_without_keys_is_forgotten_at_once_or_after_a_while_if_it_was_slow() {
    let start = Instant::now();
    let mut order: Order<&'static str> = Order::new(|key| key);
    order.set_limit(8);
    for (millis, left) in [(10, 0), (2000, 1)] {
        order.push("a", Priority::High, start);
        let (key, work) = order.pop(Some(start)).expect("it is ready");
        assert_eq!(key, "a");
        order.done(work, || start + Duration::from_millis(millis));
        assert_eq!(order.groups(), left, "{millis} ms");
    }
    order.push("b", Priority::High, start + MEMORY);
    assert_eq!(order.groups(), 2, "remembered since its last key");
    order.push("c", Priority::High, start + Duration::from_secs(2) + MEMORY);
    assert_eq!(order.groups(), 2, "a is forgotten");
    order.set_group_limit("d", Some(1));
    assert_eq!(order.groups(), 3);
    order.set_group_limit("d", None);
    assert_eq!(order.groups(), 2);
}

#[test]
fn fast_key_of_low_priority_does_not_make_its_group_prompt() {
    let mut evidence = Evidence::default();
    let rows = [
        (Priority::Low, 10, Standing::Prompt),
        (Priority::High, 2_000, Standing::Slow),
        (Priority::Low, 10, Standing::Slow),
        (Priority::Retry, 10, Standing::Prompt),
        (Priority::Low, 10, Standing::Prompt),
        (Priority::Low, 2_000, Standing::Slow),
    ];
    for (priority, millis, want) in rows {
        evidence.ended(Duration::from_millis(millis), priority, false);
        assert_eq!(evidence.standing(), want, "{priority:?} {millis} ms");
    }
}

/// However many keys come and go beside one that stays.
#[test]
fn what_is_known_of_the_age_of_keys_is_bounded() {
    let mut now = Instant::now();
    let mut order: Order<&'static str> = Order::new(|key| key);
    order.set_group_limit("stays", Some(1));
    (0..2).for_each(|_| _ = order.push("stays", Priority::Low, now));
    let (_, held) = order.pop(None).expect("both are ready");
    for _ in 0..100_000 {
        now += Duration::from_millis(10);
        order.push("passes", Priority::Low, now);
        let (key, work) = order.pop(None).expect("it is ready");
        assert_eq!(key, "passes");
        order.done(work, || now);
    }
    assert!(order.aging.len() < 1_000, "{}", order.aging.len());
    order.done(held, || now);
}

/// Hands out keys of `queue` until it gives none; how many of each group.
fn drain(queue: &mut Queue<Key>, now: Instant) -> Vec<usize> {
    let mut counts = vec![0; NAMES.len()];
    while let Some(key) = queue.get(|| now) {
        counts[key.0] += 1;
    }
    counts
}

#[test]
fn new_group_proves_itself_beside_others_that_came_first_and_are_not_answered() {
    let now = Instant::now();
    let mut queue: Queue<Key> = Queue::new(|key| NAMES[key.0]);
    queue.order().set_limit(16);
    (0..100).for_each(|key| _ = queue.add((0, key), Priority::High, now));
    assert_eq!(drain(&mut queue, now), [8, 0, 0, 0, 0]);
    (0..20).for_each(|key| _ = queue.add((1, key), Priority::High, now));
    assert_eq!(drain(&mut queue, now), [0, 1, 0, 0, 0], "its first key");
    queue.done(&(1, 0), || now + Duration::from_millis(5));
    assert_eq!(drain(&mut queue, now), [0, 8, 0, 0, 0], "all that is left");
}

#[test]
fn smaller_limit_does_not_stop_other_groups_until_slow_keys_have_ended() {
    let start = Instant::now();
    let now = start + UNANSWERED;
    let mut queue: Queue<Key> = Queue::new(|key| NAMES[key.0]);
    queue.order().set_limit(16);
    (0..8).for_each(|key| _ = queue.add((0, key), Priority::High, start));
    queue.add((1, 0), Priority::High, start);
    assert_eq!(drain(&mut queue, start), [7, 1, 0, 0, 0]);
    queue.done(&(1, 0), || start + Duration::from_millis(5));
    assert_eq!(drain(&mut queue, start), [1, 0, 0, 0, 0]);
    queue.order().set_limit(8);
    (1..20).for_each(|key| _ = queue.add((1, key), Priority::High, now));
    (8..20).for_each(|key| _ = queue.add((0, key), Priority::High, now));
    assert_eq!(drain(&mut queue, now), [0, 1, 0, 0, 0]);
    queue.done(&(1, 1), || now + Duration::from_millis(5));
    assert_eq!(drain(&mut queue, now), [0, 1, 0, 0, 0]);
}

/// Keys of one group hang, and then the limit falls: of a group that is prompt, one key at a time goes on at least.
#[test]
fn however_small_the_limit_becomes_what_hangs_does_not_stop_other_groups() {
    for limit in [1, 2, 3, 4, 5, 8] {
        let start = Instant::now();
        let now = start + UNANSWERED;
        let mut queue: Queue<Key> = Queue::new(|key| NAMES[key.0]);
        queue.order().set_limit(16);
        queue.add((1, 0), Priority::High, start);
        assert_eq!(drain(&mut queue, start), [0, 1, 0, 0, 0], "{limit}");
        (0..8).for_each(|key| _ = queue.add((0, key), Priority::High, start));
        let hung = drain(&mut queue, start)[0];
        assert!(hung > 4, "{limit}: {hung}");
        queue.done(&(1, 0), || start + Duration::from_millis(5));
        queue.order().set_limit(limit);
        // It has no other key meanwhile, so it returns each time.
        for key in 1..4 {
            queue.add((1, key), Priority::High, now);
            assert_eq!(drain(&mut queue, now), [0, 1, 0, 0, 0], "{limit}: key {key}");
            queue.done(&(1, key), || now + Duration::from_millis(5));
        }
    }
}

/// Keys of one group hang, and then the limit falls to three or less: a group that was never seen goes on, too.
#[test]
fn group_that_is_new_goes_on_beside_what_hangs_with_a_small_limit() {
    for limit in 1..=3 {
        let start = Instant::now();
        let now = start + UNANSWERED;
        let mut queue: Queue<Key> = Queue::new(|key| NAMES[key.0]);
        queue.order().set_limit(16);
        (0..8).for_each(|key| _ = queue.add((0, key), Priority::High, start));
        assert!(drain(&mut queue, start)[0] > 4, "{limit}");
        queue.order().set_limit(limit);
        (8..20).for_each(|key| _ = queue.add((0, key), Priority::High, now));
        queue.add((1, 0), Priority::High, now);
        assert_eq!(drain(&mut queue, now), [0, 1, 0, 0, 0], "{limit}");
    }
}

/// The server refuses keys of all groups at once, also of those that hung before: these do not pass for prompt ones.
#[test]
fn refusal_of_all_does_not_show_that_a_group_is_answered() {
    for is_disregarded in [true, false] {
        let start = Instant::now();
        let now = start + UNANSWERED;
        let mut queue: Queue<Key> = Queue::new(|key| NAMES[key.0]);
        queue.order().set_limit(16);
        (0..4).for_each(|group| _ = queue.add((group, 0), Priority::High, start));
        assert_eq!(drain(&mut queue, start), [1, 1, 1, 1, 0]);
        queue.done(&(3, 0), || start + Duration::from_millis(5));
        (0..3).for_each(|group| _ = queue.done(&(group, 0), || now));
        (0..4).for_each(|group| _ = queue.add((group, 1), Priority::High, now));
        assert_eq!(drain(&mut queue, now), [1, 1, 1, 1, 0]);
        (0..4).filter(|_| is_disregarded).for_each(|group| queue.disregard(&(group, 1)));
        (0..4).for_each(|group| _ = queue.done(&(group, 1), || now + Duration::from_millis(5)));
        queue.order().set_limit(1);
        (0..4).for_each(|group| _ = queue.add((group, 2), Priority::High, now));
        let taken = drain(&mut queue, now);
        // One of those that hang may go, and the last place is for the one that is answered.
        assert_eq!(taken[3] == 1, is_disregarded, "{taken:?}");
    }
}

/// The server refuses all keys of two groups, which leave; then one of them hangs, with a limit of one.
#[test]
fn group_whose_keys_were_all_refused_returns_beside_one_that_hangs() {
    let start = Instant::now();
    let mut queue: Queue<Key> = Queue::new(|key| NAMES[key.0]);
    queue.order().set_limit(16);
    (0..2).for_each(|group| _ = queue.add((group, 0), Priority::High, start));
    assert_eq!(drain(&mut queue, start), [1, 1, 0, 0, 0]);
    queue.order().set_limit(1);
    (0..2).for_each(|group| _ = queue.done(&(group, 0), || start + Duration::from_millis(5)));
    queue.add((0, 1), Priority::High, start);
    assert_eq!(drain(&mut queue, start), [1, 0, 0, 0, 0]);
    queue.add((1, 1), Priority::High, start);
    assert_eq!(drain(&mut queue, start), [0; 5], "the limit is reached");
    assert_eq!(drain(&mut queue, start + UNANSWERED), [0, 1, 0, 0, 0]);
}

#[test]
fn group_that_was_prompt_comes_back_beside_two_hundred_that_hang() {
    let mut now = Instant::now();
    let mut queue: Queue<(usize, usize)> = Queue::new(|key| NAMES_OF_MANY[key.0].as_str());
    queue.order().set_limit(64);
    let calm = 0;
    queue.add((calm, 0), Priority::High, now);
    (1..=200).for_each(|group| _ = queue.add((group, 0), Priority::High, now));
    let get_all = |queue: &mut Queue<(usize, usize)>, now: Instant| -> Vec<usize> {
        std::iter::from_fn(|| queue.get(|| now).map(|key| key.0)).collect()
    };
    assert_eq!(get_all(&mut queue, now).len(), 48, "three quarters");
    queue.done(&(calm, 0), || now + Duration::from_millis(5));
    let more: usize = (1..60)
        .map(|_| {
            now += Duration::from_secs(1);
            get_all(&mut queue, now).len()
        })
        .sum();
    assert_eq!(more, 9, "an eighth is left");
    (1..=20).for_each(|key| _ = queue.add((calm, key), Priority::High, now));
    assert_eq!(get_all(&mut queue, now), [calm]);
    queue.done(&(calm, 1), || now + Duration::from_millis(5));
    assert_eq!(get_all(&mut queue, now), [calm; 8]);
}

static NAMES_OF_MANY: std::sync::LazyLock<Vec<String>> =
    std::sync::LazyLock::new(|| (0..=200).map(|group| format!("group-{group}")).collect());
