//! The work queue against a model, on paused time.
//!
//! The first property runs random producers, workers and clock steps in sequence and compares the queue with [`Model`]
//! after every move. No key is lost, and no key has two workers. The sooner timer wins, and no key becomes ready before
//! its time, or too late unless the wall clock is set back. Keys of one priority leave in the order in which they
//! became ready with it. No key is overtaken by one of lower priority, except by one that is past the starvation limit,
//! and no key is held for longer than the pauses last. The second property lets real workers, some of which stop waiting
//! at random, race with producers.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{Clock, TestClock};
use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::workqueue::{Config, Priority, SET_BACK, STARVATION_LIMIT, Scheduled, WALL_SLICE, WorkQueue};
use futures::FutureExt;
use proptest::prelude::*;
use tokio::time::Instant;

/// tokio's timers have a resolution of a millisecond, and the queue may need a second try to meet the wall clock.
const GRAIN: Duration = Duration::from_millis(2);
const KEYS: u8 = 6;
/// How long keys of low priority are paused at most when a wall timer comes due.
const PAUSE: Duration = Duration::from_millis(250);
/// How long that pause outlasts the last key of high priority.
const AFTER_URGENT: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
enum Move {
    Add(u8),
    AddAfter(u8, Duration),
    AddAt(u8, TimeDelta),
    AddRateLimited(u8),
    PauseLow(Duration),
    Forget(u8),
    Get,
    /// A get that is dropped; between its start and its end the key is added.
    DroppedGet(u8),
    /// Finishes one of the keys in work.
    Done(prop::sample::Index),
    Step(TimeDelta),
    Sleep(Duration),
    ShutDown,
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        6 => (0u64..20_000).prop_map(Duration::from_micros),
        6 => (0u64..5_000).prop_map(Duration::from_millis),
        1 => (0u64..300).prop_map(Duration::from_secs),
        1 => Just(Duration::MAX),
    ]
}

fn offset() -> impl Strategy<Value = TimeDelta> {
    prop_oneof![
        4 => (-5_000i64..20_000).prop_map(TimeDelta::microseconds),
        8 => (-500i64..5_000).prop_map(TimeDelta::milliseconds),
        2 => (-100i64..300).prop_map(TimeDelta::seconds),
        1 => Just(TimeDelta::days(365 * 7_900)),
    ]
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let key = || 0..KEYS;
    let one = prop_oneof![
        8 => key().prop_map(Move::Add),
        8 => (key(), delay()).prop_map(|(key, delay)| Move::AddAfter(key, delay)),
        8 => (key(), offset()).prop_map(|(key, at)| Move::AddAt(key, at)),
        4 => key().prop_map(Move::AddRateLimited),
        1 => delay().prop_map(Move::PauseLow),
        2 => key().prop_map(Move::Forget),
        16 => Just(Move::Get),
        2 => key().prop_map(Move::DroppedGet),
        14 => any::<prop::sample::Index>().prop_map(Move::Done),
        3 => offset().prop_map(Move::Step),
        2 => offset().prop_map(|by| Move::Step(-by)),
        12 => delay().prop_map(|by| Move::Sleep(by.min(Duration::from_secs(100)))),
        1 => Just(Move::ShutDown),
    ];
    prop::collection::vec(one, 1..120)
}

/// A ready key, and what is known about the moment at which it became ready.
#[derive(Debug, Clone)]
struct Ready {
    key: u8,
    /// The number of the move in which it happened.
    epoch: usize,
    /// Within that move, between these two.
    earliest: Instant,
    latest: Instant,
    /// The timers that came due: their exact times are more precise than the two moments.
    due: Scheduled,
    priority: Priority,
    /// Since when it is ready at the earliest and at the latest, whatever its priority was then.
    since: (Instant, Instant),
}

impl Ready {
    /// Whether this key certainly became ready before `other`, which has the same priority.
    fn before(&self, other: &Self) -> bool {
        let sooner = match (self.due, other.due) {
            (Scheduled { after: Some(a), at: None }, Scheduled { after: Some(b), at: None }) => a < b,
            (Scheduled { after: None, at: Some(a) }, Scheduled { after: None, at: Some(b) }) => a < b,
            _ => false,
        };
        self.epoch < other.epoch || (self.epoch == other.epoch && (self.latest < other.earliest || sooner))
    }
}

#[derive(Debug, Default)]
struct Model {
    epoch: usize,
    timers: BTreeMap<u8, Scheduled>,
    /// The priorities of the monotonic timers.
    retries: BTreeMap<u8, Priority>,
    ready: Vec<Ready>,
    /// With the priority with which each was handed out.
    processing: Vec<(u8, Priority)>,
    /// Those of high priority that were handed out during the pause for due keys, certainly or possibly.
    urgent: [BTreeSet<u8>; 2],
    added_while_processing: BTreeMap<u8, Ready>,
    paused_until: Option<Instant>,
    /// The pause for due keys ends between these two, unless they are done before.
    urgent_pause_until: Option<(Instant, Instant)>,
    /// Since when none of them is being processed, if one was: of those that certainly were, and of all.
    urgent_done_at: [Option<Instant>; 2],
    /// The last key was past the starvation limit, and came before one of high priority.
    starved_had_its_turn: bool,
    failures: BTreeMap<u8, u32>,
    last_step: Option<Instant>,
    /// The sum of the wall clock's steps.
    stepped: TimeDelta,
    /// That sum when the queue last read the clock, as far as an observer can determine; `None` before the first time.
    looked: BTreeSet<Option<TimeDelta>>,
    shut_down: bool,
}

impl Model {
    fn add(&mut self, added: Ready) {
        if self.shut_down {
            return;
        }
        let known = self.ready.iter().position(|ready| ready.key == added.key);
        if let Some(place) = known {
            if self.ready[place].priority < added.priority {
                let passed_by = self.ready.remove(place);
                self.ready.push(Ready { since: passed_by.since, ..added });
            }
        } else if self.processing.iter().any(|(key, _)| *key == added.key) {
            let dirty = self.added_while_processing.entry(added.key).or_insert_with(|| added.clone());
            dirty.priority = dirty.priority.max(added.priority);
        } else {
            self.ready.push(added);
        }
    }

    fn now(&self, key: u8, priority: Priority) -> Ready {
        let now = Instant::now();
        let due = Scheduled::default();
        Ready { key, epoch: self.epoch, earliest: now, latest: now, due, priority, since: (now, now) }
    }

    fn add_now(&mut self, key: u8, priority: Priority) {
        self.add(self.now(key, priority));
    }

    fn add_after(&mut self, key: u8, delay: Duration, priority: Priority) {
        if delay.is_zero() {
            return self.add_now(key, priority);
        }
        if !self.shut_down {
            let retry = self.retries.entry(key).or_insert(priority);
            *retry = priority.max(*retry);
            let due = Instant::now().into_std() + delay.min(Duration::from_secs(100 * 366 * 86_400));
            let timer = self.timers.entry(key).or_default();
            timer.after = Some(timer.after.map_or(due, |known| known.min(due)));
        }
    }

    fn add_at(&mut self, key: u8, at: DateTime<Utc>, wall: DateTime<Utc>) {
        if at <= wall {
            return self.add_now(key, Priority::High);
        }
        if !self.shut_down {
            let timer = self.timers.entry(key).or_default();
            timer.at = Some(timer.at.map_or(at, |known| known.min(at)));
        }
    }

    fn add_rate_limited(&mut self, key: u8) {
        let failures = self.failures.entry(key).or_default();
        let delay = Duration::from_millis((5u64 << (*failures).min(20)).min(1_000_000));
        *failures += 1;
        let handed_out = self.processing.iter().find(|(other, _)| *other == key).map(|(_, priority)| *priority);
        self.add_after(key, delay, handed_out.unwrap_or_default().min(Priority::Retry));
    }

    fn pause_low_priority(&mut self, time: Duration) {
        self.paused_until = self.paused_until.max(Some(Instant::now() + time.min(STARVATION_LIMIT)));
    }

    /// When the pause for due keys ends, at the earliest and at the latest.
    fn urgent_pause_ends(&self) -> Option<(Instant, Instant)> {
        let (earliest, latest) = self.urgent_pause_until?;
        let ends = self.urgent_done_at.map(|since| since.map(|since| since + AFTER_URGENT));
        let [one, other] = ends.map(|end| end.map_or((earliest, latest), |end| (earliest.min(end), latest.min(end))));
        Some((one.0.min(other.0), one.1.max(other.1)))
    }

    /// Whether keys of low priority are paused: certainly, and possibly.
    fn is_paused(&self) -> (bool, bool) {
        let lasts = |until: Option<Instant>| until.is_some_and(|until| Instant::now() < until) && !self.shut_down;
        let (earliest, latest) = self.urgent_pause_ends().unzip();
        (lasts(self.paused_until.max(earliest)), lasts(self.paused_until.max(latest)))
    }

    /// Ends the pause for due keys if its time has passed, and begins one for those that came due between these two.
    fn pause_for(&mut self, due: &[(Instant, Instant)]) {
        let now = Instant::now();
        if self.urgent_pause_ends().is_some_and(|(_, latest)| latest + GRAIN <= now) {
            (self.urgent_pause_until, self.urgent_done_at) = (None, [None; 2]);
        } else if let Some((earliest, _)) = self.urgent_pause_ends().filter(|(earliest, _)| *earliest <= now) {
            // The queue may have to notice it yet, and until then another urgent key would continue it.
            self.urgent_pause_until = self.urgent_pause_until.map(|(_, latest)| (earliest, latest));
        }
        for (earliest, latest) in due {
            if self.urgent_pause_until.is_none() {
                self.urgent.iter_mut().for_each(BTreeSet::clear);
            } else if self.urgent_pause_ends().is_some_and(|(end, _)| end <= now) {
                self.urgent[0].clear();
            }
            self.urgent_done_at = [None; 2];
            let known = self.urgent_pause_until.unwrap_or((*earliest, *earliest));
            self.urgent_pause_until = Some((known.0.max(*earliest + PAUSE), known.1.max(*latest.min(&now) + PAUSE)));
        }
    }

    fn is_starved(ready: &Ready) -> (bool, bool) {
        let is_past = |at: Instant| Instant::now().saturating_duration_since(at) >= STARVATION_LIMIT;
        (is_past(ready.since.1), is_past(ready.since.0))
    }

    /// `got` is the result of [`get_now`].
    #[allow(clippy::option_option)]
    fn get(&mut self, got: Option<Option<u8>>) {
        let Some(Some(key)) = got else {
            let wrongly_held =
                |ready: &&Ready| ready.priority > Priority::Low || !self.is_paused().1 || Self::is_starved(ready).0;
            // Only the first key of low priority is checked against the starvation limit.
            let lost = self.ready.iter().filter(|r| !self.ready.iter().any(|o| o.before(r))).find(wrongly_held);
            assert!(lost.is_none(), "lost: {lost:?}");
            assert_eq!(got.is_some(), self.shut_down, "None if and only if shut down");
            return;
        };
        assert!(!self.processing.iter().any(|(other, _)| *other == key), "two workers have {key}");
        let place = self.ready.iter().position(|ready| ready.key == key);
        let ready = self.ready.remove(place.unwrap_or_else(|| panic!("{key} came without reason")));
        let perhaps_starved = ready.priority < Priority::High && Self::is_starved(&ready).1;
        let is_overtaken = |other: &&Ready| {
            // Starved keys come in the order of their age.
            let is_older = !perhaps_starved || other.since.1 < ready.since.0;
            other.priority == ready.priority && other.before(&ready) && is_older
        };
        let overtaken: Vec<&Ready> = self.ready.iter().filter(is_overtaken).collect();
        assert!(overtaken.is_empty(), "{ready:?} came before {overtaken:?}");
        self.turn_was_right(&ready);
        if ready.priority == Priority::High {
            self.urgent.iter_mut().for_each(|urgent| _ = urgent.insert(key));
            self.urgent_done_at = [None; 2];
        }
        self.processing.push((key, ready.priority));
    }

    fn turn_was_right(&mut self, ready: &Ready) {
        let is_passed_by = self.ready.iter().any(|other| other.priority > ready.priority);
        let is_high_passed_by =
            ready.priority < Priority::High && self.ready.iter().any(|other| other.priority == Priority::High);
        let (_, perhaps) = Self::is_starved(ready);
        if ready.priority == Priority::Low {
            assert!(!self.is_paused().0 || perhaps, "{ready:?} was held");
        }
        assert!(!is_passed_by || perhaps, "{ready:?} came before one of higher priority");
        assert!(!(is_high_passed_by && self.starved_had_its_turn), "{ready:?} had two turns");
        let is_starved = |other: &&Ready| {
            other.priority < Priority::High && other.priority != ready.priority && Self::is_starved(other).0
        };
        if let Some(starved) = self.ready.iter().find(is_starved) {
            let has_turn = ready.priority == Priority::High && self.starved_had_its_turn;
            assert!(
                has_turn || ready.priority < Priority::High && perhaps,
                "{ready:?} came though {starved:?} starves"
            );
        }
        self.starved_had_its_turn = is_high_passed_by;
    }

    fn done(&mut self, key: u8) {
        let place = self.processing.iter().position(|(other, _)| *other == key);
        self.processing.remove(place.unwrap());
        for (urgent, urgent_done_at) in self.urgent.iter_mut().zip(&mut self.urgent_done_at) {
            if urgent.remove(&key) && urgent.is_empty() && self.urgent_pause_until.is_some() {
                *urgent_done_at = Some(Instant::now());
            }
        }
        if let Some(dirty) = self.added_while_processing.remove(&key) {
            self.ready.push(self.now(key, dirty.priority));
        }
    }

    /// Whether the queue has detected since `start` that the wall clock was set back: certainly, and possibly. It
    /// checks once per slice while a wall timer waits.
    fn set_back(&mut self, queue: &WorkQueue<u8>, start: Instant, wall: DateTime<Utc>) -> (bool, bool) {
        let is_set_back = |then: &Option<TimeDelta>| then.is_some_and(|then| then - self.stepped > SET_BACK);
        let perhaps = self.looked.iter().any(is_set_back);
        let is_early = |(key, timer): (&u8, &Scheduled)| {
            timer.at.is_some_and(|at| at > wall) && queue.scheduled_for(key).unwrap_or_default().at.is_none()
        };
        let evidently = self.timers.iter().any(is_early);
        assert!(perhaps || !evidently, "a wall time came early");
        let waits = self.timers.values().any(|timer| timer.at.is_some());
        let has_looked = waits && start.elapsed() > WALL_SLICE + GRAIN;
        let certainly = evidently || (has_looked && self.looked.iter().all(is_set_back));
        if evidently || has_looked {
            self.looked.clear();
        }
        self.looked.insert(Some(self.stepped));
        (certainly, perhaps)
    }

    /// Reads from the queue which timers came due while time passed from `start` to now, and checks each.
    fn slept(&mut self, queue: &WorkQueue<u8>, start: Instant, wall: DateTime<Utc>) {
        let now = Instant::now();
        let noticed = self.last_step.map_or(start, |step| step + WALL_SLICE);
        let (set_back, perhaps_set_back) = self.set_back(queue, start, wall);
        let timers = std::mem::take(&mut self.timers);
        let mut due_keys = Vec::new();
        for (key, timer) in timers {
            let left = queue.scheduled_for(&key).unwrap_or_default();
            let mut moments = Vec::new();
            if let Some(due) = timer.after {
                let due = Instant::from_std(due);
                let latest = due.max(start) + GRAIN;
                if left.after.is_none() {
                    assert!(due <= now, "the delay of {key} came early");
                    let priority = self.retries.remove(&key).unwrap_or_default();
                    let fired = Scheduled { after: timer.after, at: None };
                    moments.push((priority, fired, (due.max(start), latest)));
                } else {
                    assert!(now <= latest, "the delay of {key} is overdue");
                }
            }
            if let Some(at) = timer.at {
                // The moment at which the wall clock, as it now goes, showed or will show `at`.
                let due = (wall - at)
                    .to_std()
                    .map_or(now + Duration::from_nanos(1), |ago| now.checked_sub(ago).unwrap_or(start));
                let latest = if set_back { start + WALL_SLICE } else { due.max(start).max(noticed) } + GRAIN;
                if left.at.is_none() {
                    let fired = Scheduled { after: None, at: timer.at };
                    let earliest = if perhaps_set_back { start } else { due.max(start) };
                    moments.push((Priority::High, fired, (earliest, latest)));
                    due_keys.push((earliest, latest));
                } else {
                    assert!(!set_back, "the wall clock was set back, and {key} was not brought forward");
                    assert!(at > wall || now <= latest, "the wall time of {key} is overdue");
                }
            }
            let all: Vec<_> = moments.iter().map(|(_, _, moment)| *moment).collect();
            // With two timers of different priorities the key is ready with the higher when that one fires.
            if let Some(priority) = moments.iter().map(|(priority, ..)| *priority).max() {
                moments.retain(|(other, ..)| *other == priority);
                let (earliest, latest) = soonest(moments.iter().map(|(_, _, moment)| *moment));
                let due = moments.iter().fold(Scheduled::default(), |both, (_, one, _)| Scheduled {
                    after: both.after.or(one.after),
                    at: both.at.or(one.at),
                });
                let since = soonest(all.into_iter());
                self.add(Ready { key, epoch: self.epoch, earliest, latest, due, priority, since });
            }
            if left != Scheduled::default() {
                self.timers.insert(key, left);
            }
        }
        self.pause_for(&due_keys);
    }

    /// Every query of the queue has the model's result.
    fn agree(&self, queue: &WorkQueue<u8>) {
        assert_eq!(queue.len(), self.ready.len());
        let timers = self.timers.values();
        let waiting = timers.map(|timer| usize::from(timer.after.is_some()) + usize::from(timer.at.is_some()));
        assert_eq!(queue.waiting(), waiting.sum::<usize>());
        assert_eq!(queue.shutting_down(), self.shut_down);
        for key in 0..KEYS {
            assert_eq!(queue.scheduled_for(&key), self.timers.get(&key).copied(), "timers of {key}");
            let dirty = self.ready.iter().any(|r| r.key == key) || self.added_while_processing.contains_key(&key);
            assert_eq!(queue.is_dirty(&key), dirty, "{key} is dirty");
            assert_eq!(
                queue.is_processing(&key),
                self.processing.iter().any(|(other, _)| *other == key),
                "{key} is in work"
            );
            assert_eq!(queue.num_requeues(&key), self.failures.get(&key).copied().unwrap_or(0));
        }
    }
}

/// The first of each.
fn soonest(moments: impl Iterator<Item = (Instant, Instant)> + Clone) -> (Instant, Instant) {
    (moments.clone().map(|moment| moment.0).min().unwrap(), moments.map(|moment| moment.1).min().unwrap())
}

async fn play(moves: Vec<Move>) {
    let clock = TestClock::silent("2026-01-01T12:00:00.000250Z".parse().unwrap());
    let queue = WorkQueue::new(Config::new("model", Arc::<TestClock>::clone(&clock)).pausing_at_due(PAUSE));
    let mut model = Model { looked: BTreeSet::from([None]), ..Model::default() };
    for next in moves {
        model.epoch += 1;
        one_move(next, &queue, &clock, &mut model).await;
        model.agree(&queue);
    }
    finish(&queue, &clock, &mut model).await;
}

async fn one_move(next: Move, queue: &WorkQueue<u8>, clock: &TestClock, model: &mut Model) {
    match next {
        Move::Add(key) => {
            queue.add(key);
            model.add_now(key, Priority::Low);
        }
        Move::AddAfter(key, delay) => {
            queue.add_after(key, delay);
            model.add_after(key, delay, Priority::Low);
        }
        Move::PauseLow(time) => {
            queue.pause_low_priority(time);
            model.pause_low_priority(time);
        }
        Move::AddAt(key, offset) => {
            let wall = clock.now();
            queue.add_at(key, wall + offset);
            model.add_at(key, wall + offset, wall);
        }
        Move::AddRateLimited(key) => {
            queue.add_rate_limited(key);
            model.add_rate_limited(key);
        }
        Move::Forget(key) => {
            queue.forget(&key);
            model.failures.remove(&key);
        }
        Move::Get => model.get(get_now(queue)),
        Move::DroppedGet(key) => {
            let mut get = Box::pin(tokio::task::unconstrained(queue.get()));
            if let Some(got) = (&mut get).now_or_never() {
                model.get(Some(got));
            }
            queue.add(key);
            drop(get);
            model.add_now(key, Priority::Low);
        }
        Move::Done(index) => {
            if !model.processing.is_empty() {
                let (key, _) = model.processing[index.index(model.processing.len())];
                queue.done(&key);
                model.done(key);
            }
        }
        Move::Step(by) => {
            clock.step(by);
            model.stepped += by;
            model.last_step = Some(Instant::now());
        }
        Move::Sleep(by) => {
            let start = Instant::now();
            tokio::time::sleep(by).await;
            model.slept(queue, start, clock.now());
        }
        Move::ShutDown => {
            queue.shut_down();
            model.shut_down = true;
            model.timers.clear();
            model.retries.clear();
        }
    }
}

/// Lets every reachable timer come due, finishes all keys, and drains.
async fn finish(queue: &WorkQueue<u8>, clock: &TestClock, model: &mut Model) {
    model.epoch += 1;
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(600)).await;
    model.slept(queue, start, clock.now());
    model.agree(queue);
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    tokio::task::yield_now().await;
    model.shut_down = true;
    model.timers.clear();
    loop {
        model.epoch += 1;
        model.agree(queue);
        if let Some((key, _)) = model.processing.first().copied() {
            assert!(!drain.is_finished(), "{key} is not done");
            queue.done(&key);
            model.done(key);
        } else {
            let got = get_now(queue);
            model.get(got);
            if got == Some(None) {
                break;
            }
        }
    }
    tokio::time::timeout(Duration::from_secs(1), drain).await.expect("the drain ends").unwrap();
}

#[allow(clippy::option_option)]
fn get_now(queue: &WorkQueue<u8>) -> Option<Option<u8>> {
    tokio::task::unconstrained(queue.get()).now_or_never()
}

/// A worker's behaviour: how long it works on a key, and how long it waits for one before it drops the get.
#[derive(Debug, Clone)]
struct Worker {
    work: Duration,
    patience: Duration,
}

/// How many keys of all and of the odd ones may be in work at a time.
#[derive(Debug, Clone, Copy)]
struct Limits {
    all: Option<usize>,
    odd: Option<usize>,
}

/// When each key was last added and last begun, and which are in work.
#[derive(Debug, Default)]
struct KeyHistory {
    added: BTreeMap<u8, Instant>,
    begun: BTreeMap<u8, Instant>,
    in_work: BTreeSet<u8>,
}

/// Only times that come within the test are added.
async fn produce(moves: Vec<Move>, queue: WorkQueue<u8>, clock: Arc<TestClock>, history: Rc<RefCell<KeyHistory>>) {
    let reachable = |by: &Duration| *by < Duration::from_secs(1000);
    for next in moves {
        match next {
            Move::Add(key) => queue.add(key),
            Move::PauseLow(time) => queue.pause_low_priority(time),
            Move::AddAfter(key, delay) if reachable(&delay) => queue.add_after(key, delay),
            Move::AddAt(key, offset) if offset < TimeDelta::seconds(1000) => queue.add_at(key, clock.now() + offset),
            Move::Sleep(by) => {
                tokio::time::sleep(by.min(Duration::from_secs(2))).await;
                continue;
            }
            _ => continue,
        }
        if let Move::Add(key) | Move::AddAfter(key, _) | Move::AddAt(key, _) = next {
            history.borrow_mut().added.insert(key, Instant::now());
        }
    }
}

async fn work(worker: Worker, queue: WorkQueue<u8>, history: Rc<RefCell<KeyHistory>>) {
    loop {
        let Ok(got) = tokio::time::timeout(worker.patience, queue.get()).await else { continue };
        let Some(key) = got else { return };
        {
            let mut history = history.borrow_mut();
            assert!(history.in_work.insert(key), "two workers have {key}");
            history.begun.insert(key, Instant::now());
        }
        tokio::time::sleep(worker.work).await;
        history.borrow_mut().in_work.remove(&key);
        queue.done(&key);
    }
}

async fn race(producers: Vec<Vec<Move>>, workers: Vec<Worker>, limits: Limits) {
    let clock = TestClock::silent("2026-01-01T12:00:00.000250Z".parse().unwrap());
    let group = |key: &u8| ["even", "odd"][usize::from(*key % 2)];
    let config = Config::new("race", Arc::<TestClock>::clone(&clock)).grouped_by(group).pausing_at_due(PAUSE);
    let queue = WorkQueue::new(config);
    if let Some(limit) = limits.all {
        queue.set_limit(limit);
    }
    queue.set_group_limit("odd", limits.odd);
    let history = Rc::new(RefCell::new(KeyHistory::default()));
    let local = tokio::task::LocalSet::new();
    let working: Vec<_> =
        workers.into_iter().map(|worker| local.spawn_local(work(worker, queue.clone(), Rc::clone(&history)))).collect();
    let producing: Vec<_> = producers
        .into_iter()
        .map(|moves| local.spawn_local(produce(moves, queue.clone(), Arc::clone(&clock), Rc::clone(&history))))
        .collect();
    local
        .run_until(async {
            for producer in producing {
                producer.await.unwrap();
            }
            // Beyond every reachable delay; the impatient workers keep dropping their gets meanwhile.
            tokio::time::sleep(Duration::from_secs(1100)).await;
            assert_eq!((queue.len(), queue.waiting()), (0, 0), "work is left");
            let drained = tokio::time::timeout(Duration::from_secs(1), queue.shut_down_with_drain()).await;
            drained.expect("the drain ends");
            for worker in working {
                worker.await.unwrap();
            }
        })
        .await;
    let history = history.borrow();
    for (key, added) in &history.added {
        assert!(history.begun.get(key).is_some_and(|begun| begun >= added), "{key} was added last and not begun since");
    }
}

fn on_paused_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

fn worker() -> impl Strategy<Value = Worker> {
    // Without the workers that wait for ever, the next try would hide a lost wake-up.
    let patience = prop_oneof![Just(Duration::MAX), (1_000u64..60_000).prop_map(Duration::from_millis)];
    // A group counts as slow from one second on.
    let work = prop_oneof![3 => 0u64..200, 1 => 200u64..3000];
    (work, patience).prop_map(|(work, patience)| Worker { work: Duration::from_millis(work), patience })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn queue_behaves_as_the_model(moves in moves()) {
        on_paused_time(play(moves));
    }

    #[test]
    fn cancelled_gets_lose_no_key(
        producers in prop::collection::vec(moves(), 1..4),
        workers in prop::collection::vec(worker(), 1..5),
        all in prop::option::of(1usize..6),
        odd in prop::option::of(1usize..3),
    ) {
        on_paused_time(race(producers, workers, Limits { all, odd }));
    }
}
