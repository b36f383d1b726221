//! No worker sleeps while a key may be handed out: after every change of limits, every end of processing, every timer, and
//! every worker that stops waiting.
//!
//! A worker that ends its work mostly asks for the next key at once, which hides that another should have been woken. Here it
//! goes away, unless another one comes. What may be handed out is asked of a copy of the queue, because a look that finds
//! nothing is remembered.

use proptest::prelude::*;
use tokio::task::JoinHandle;

use super::*;

/// A group and a number.
type Key = (usize, u8);

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Timers have a resolution of a millisecond, and the queue may need a second try to meet the wall clock.
const GRAIN: Duration = Duration::from_millis(2);

/// The most workers that wait at a time.
const WORKERS: usize = 6;

#[derive(Debug, Clone)]
enum Move {
    Add(Key, Priority),
    /// Of several keys, all of which are due after so many milliseconds by the monotonic or by the wall clock.
    AddLater(Vec<Key>, u64, bool),
    Limit(usize),
    GroupLimit(usize, Option<usize>),
    PauseLow(u64),
    /// A worker ends its work and goes away.
    Done(usize),
    /// Another worker waits.
    Come,
    /// A worker that waits goes away.
    Go(usize),
    Pass(u64),
    ShutDown,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let key = || (0..NAMES.len(), 0u8..4);
    let priority = prop_oneof![Just(Priority::Low), Just(Priority::Retry), Just(Priority::High)];
    let one = prop_oneof![
        24 => (key(), priority).prop_map(|(key, priority)| Move::Add(key, priority)),
        8 => (prop::collection::vec(key(), 1..5), 1u64..400, any::<bool>())
            .prop_map(|(keys, millis, by_wall)| Move::AddLater(keys, millis, by_wall)),
        6 => (1usize..9).prop_map(Move::Limit),
        2 => Just(Move::Limit(usize::MAX)),
        8 => (0..NAMES.len(), prop::option::of(1usize..4)).prop_map(|(group, limit)| Move::GroupLimit(group, limit)),
        2 => (1u64..6_000).prop_map(Move::PauseLow),
        14 => (0usize..60).prop_map(Move::Done),
        20 => Just(Move::Come),
        4 => (0usize..60).prop_map(Move::Go),
        8 => (1u64..500).prop_map(Move::Pass),
        6 => (900u64..6_000).prop_map(Move::Pass),
        1 => Just(Move::ShutDown),
    ];
    prop::collection::vec(one, 1..120)
}

struct Workers {
    queue: WorkQueue<Key>,
    waiting: Vec<JoinHandle<Option<Key>>>,
    working: Vec<Key>,
}

impl Workers {
    fn come(&mut self) {
        let queue = self.queue.clone();
        self.waiting.push(tokio::spawn(async move { queue.get().await }));
    }

    /// Lets everything happen that needs no time.
    async fn settle(&mut self) {
        for _ in 0..4 * WORKERS {
            tokio::task::yield_now().await;
        }
        for worker in std::mem::take(&mut self.waiting) {
            if worker.is_finished() {
                self.working.extend(worker.await.unwrap());
            } else {
                self.waiting.push(worker);
            }
        }
    }

    /// A key that may be handed out, and could have been for as long as a timer may be late.
    fn may_be_handed_out(&self) -> Option<Key> {
        let mut queue = self.queue.shared.state.lock().queue.clone();
        queue.get(|| now().checked_sub(GRAIN).unwrap())
    }

    fn check(&self, what: &str) {
        if !self.waiting.is_empty() {
            let key = self.may_be_handed_out();
            assert_eq!(key, None, "{what}: {} workers sleep beside it", self.waiting.len());
        }
    }
}

async fn play(moves: Vec<Move>) -> Workers {
    let clock = TestClock::silent(noon());
    let config = Config::new("wakes", Arc::<TestClock>::clone(&clock))
        .grouped_by(|key: &Key| NAMES[key.0])
        .pausing_at_due(Duration::from_millis(250));
    let queue = WorkQueue::new(config);
    queue.set_limit(4);
    let mut workers = Workers { queue: queue.clone(), waiting: Vec::new(), working: Vec::new() };
    sleep_millis(10).await;
    for next in moves {
        match next.clone() {
            Move::Add(key, priority) => queue.add_with(key, priority),
            Move::AddLater(keys, millis, by_wall) => {
                for key in keys {
                    if by_wall {
                        queue.add_at(key, clock.now() + TimeDelta::milliseconds(i64::try_from(millis).unwrap()));
                    } else {
                        queue.add_after(key, Duration::from_millis(millis));
                    }
                }
            }
            Move::Limit(limit) => queue.set_limit(limit),
            Move::GroupLimit(group, limit) => queue.set_group_limit(NAMES[group], limit),
            Move::PauseLow(millis) => queue.pause_low_priority(Duration::from_millis(millis)),
            Move::Done(index) if !workers.working.is_empty() => {
                let at = index % workers.working.len();
                queue.done(&workers.working.swap_remove(at));
            }
            Move::Come if workers.waiting.len() < WORKERS => workers.come(),
            Move::Go(index) if !workers.waiting.is_empty() => {
                let at = index % workers.waiting.len();
                workers.waiting.swap_remove(at).abort();
            }
            Move::Done(_) | Move::Come | Move::Go(_) => continue,
            Move::Pass(millis) => sleep_millis(millis).await,
            Move::ShutDown => queue.shut_down(),
        }
        workers.settle().await;
        workers.check(&format!("{next:?}"));
    }
    workers
}

/// A sentence, the moves after which no worker may sleep, and how many have a key then.
#[tokio::test(start_paused = true)]
async fn both_of_two_idle_workers_are_woken_for_two_keys() {
    let later = |by_wall| Move::AddLater(vec![(0, 0), (1, 0)], 10, by_wall);
    let add = |number| Move::Add((0, number), Priority::High);
    let first = || Move::Done(0);
    let rows: Vec<(&str, Vec<Move>, usize)> = vec![
        ("their delay is over", vec![Move::Come, Move::Come, later(false), Move::Pass(20)], 2),
        ("their wall time has come", vec![Move::Come, Move::Come, later(true), Move::Pass(20)], 2),
        (
            "the limit of their group is lifted",
            vec![
                Move::Come,
                Move::Come,
                add(3),
                add(2),
                Move::Pass(10),
                first(),
                Move::GroupLimit(0, Some(1)),
                Move::Come,
                Move::Come,
                add(0),
                add(1),
                Move::GroupLimit(0, None),
            ],
            3,
        ),
        (
            "the first of their group is answered",
            vec![Move::Limit(2), Move::Come, Move::Come, Move::Come, add(3), add(0), add(1), Move::Pass(10), first()],
            2,
        ),
    ];
    for (sentence, moves, working) in rows {
        let workers = play(moves).await;
        assert_eq!((workers.waiting.len(), workers.working.len()), (0, working), "{sentence}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_worker_sleeps_while_a_key_may_be_handed_out(moves in moves()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(moves));
    }
}
