//! The public behaviour of the queue, on paused time. The tables follow client-go's `queue_test.go` and
//! `delaying_queue_test.go`.
#![allow(clippy::unwrap_used)]

mod shares;
mod wakes;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use apimachinery::clock::{Clock, SystemClock, TestClock};
use chrono::TimeDelta;
use futures::FutureExt;
use futures::future::join_all;

use super::*;
use crate::metrics::{Registry, encode};

type TestQueue = WorkQueue<&'static str>;

fn wall(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn noon() -> DateTime<Utc> {
    wall("2026-01-01T12:00:00Z")
}

fn queue_with_clock() -> (TestQueue, Arc<TestClock>) {
    queue_on(TestClock::silent(noon()))
}

fn queue_on(clock: Arc<TestClock>) -> (TestQueue, Arc<TestClock>) {
    (WorkQueue::new(Config::new("cronjob", Arc::<TestClock>::clone(&clock))), clock)
}

/// Keys of low priority are paused for that many milliseconds when others are due.
fn queue_pausing_at_due(millis: u64) -> (TestQueue, Arc<TestClock>) {
    let clock = TestClock::silent(noon());
    let config = Config::new("cronjob", Arc::<TestClock>::clone(&clock)).pausing_at_due(Duration::from_millis(millis));
    (WorkQueue::new(config), clock)
}

fn queue() -> TestQueue {
    queue_with_clock().0
}

/// What `get` returns without waiting; `None` if it would wait.
#[allow(clippy::option_option)]
fn get_now<K: Key>(queue: &WorkQueue<K>) -> Option<Option<K>> {
    tokio::task::unconstrained(queue.get()).now_or_never()
}

/// Takes out and finishes every ready key.
fn drain<K: Key>(queue: &WorkQueue<K>) -> Vec<K> {
    std::iter::from_fn(|| get_now(queue).flatten().inspect(|key| queue.done(key))).collect()
}

async fn sleep_millis(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn keys_leave_in_the_order_in_which_they_became_ready_and_each_once() {
    let queue = queue();
    for key in ["a", "b", "a", "c", "b"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 3);
    assert_eq!(drain(&queue), ["a", "b", "c"]);
    assert!(queue.is_empty());
    assert_eq!(get_now(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn key_added_while_it_is_processed_is_queued_again_after_done() {
    let queue = queue();
    queue.add("foo");
    assert_eq!(queue.get().await, Some("foo"));
    queue.add("foo");
    queue.add("foo");
    queue.add("bar");
    assert!(queue.is_dirty(&"foo") && queue.is_processing(&"foo"));
    assert_eq!((queue.len(), get_now(&queue)), (1, Some(Some("bar"))), "foo is not given to a second worker");
    assert_eq!(get_now(&queue), None);
    queue.done(&"foo");
    assert_eq!(get_now(&queue), Some(Some("foo")));
    queue.done(&"foo");
    assert!(!queue.is_dirty(&"foo") && !queue.is_processing(&"foo"));
    assert_eq!(get_now(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn done_for_a_key_that_no_worker_holds_changes_nothing() {
    let queue = queue();
    queue.done(&"unknown");
    queue.add("foo");
    queue.done(&"foo");
    assert_eq!(drain(&queue), ["foo"]);
    assert_eq!(get_now(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_woken_for_each_key() {
    let queue = queue();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            tokio::spawn({
                let queue = queue.clone();
                async move { queue.get().await }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let mut got: Vec<_> = join_all(workers).await.into_iter().map(|key| key.unwrap().unwrap()).collect();
    got.sort_unstable();
    assert_eq!(got, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn done_wakes_a_worker_for_a_key_that_was_added_meanwhile() {
    let queue = queue();
    queue.add("foo");
    assert_eq!(get_now(&queue), Some(Some("foo")));
    queue.add("foo");
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await }
    });
    sleep_millis(1).await;
    queue.done(&"foo");
    assert_eq!(tokio::time::timeout(Duration::from_secs(1), waiting).await.unwrap().unwrap(), Some("foo"));
}

#[tokio::test(start_paused = true)]
async fn dropped_get_loses_no_key_and_wakes_another_worker() {
    let queue = queue();
    let mut first = Box::pin(queue.get());
    let mut second = Box::pin(queue.get());
    assert_eq!(futures::poll!(&mut first), std::task::Poll::Pending);
    assert_eq!(futures::poll!(&mut second), std::task::Poll::Pending);
    queue.add("foo");
    drop(first);
    let got = tokio::time::timeout(Duration::from_secs(1), second).await;
    assert_eq!(got, Ok(Some("foo")), "the wake-up was meant for the first and reached the second");
}

#[tokio::test(start_paused = true)]
async fn worker_that_always_finds_keys_yields_to_other_tasks() {
    let queue = queue();
    let others = Arc::new(AtomicUsize::new(0));
    let neighbour = tokio::spawn({
        let others = Arc::clone(&others);
        async move { others.fetch_add(1, Ordering::Relaxed) }
    });
    queue.add("foo");
    for _ in 0..10_000 {
        let key = queue.get().await.unwrap();
        queue.add(key);
        queue.done(&key);
    }
    assert_eq!(others.load(Ordering::Relaxed), 1, "ten thousand keys without a turn for the neighbour");
    neighbour.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_returns_ready_keys_then_none_and_accepts_no_key() {
    let (queue, clock) = queue_with_clock();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move {
            let first = queue.get().await;
            (first, queue.get().await, queue.get().await)
        }
    });
    tokio::task::yield_now().await;
    queue.add("a");
    queue.add("b");
    queue.add_after("later", Duration::from_secs(1));
    queue.add_at("at noon", noon() + TimeDelta::seconds(5));
    assert_eq!(queue.waiting(), 2);
    queue.shut_down();
    queue.add("after shutdown");
    queue.add_after("after shutdown", Duration::from_secs(1));
    queue.add_at("after shutdown", clock.now());
    queue.add_rate_limited("after shutdown");
    assert!(queue.shutting_down());
    assert_eq!(queue.waiting(), 0);
    assert_eq!(waiting.await.unwrap(), (Some("a"), Some("b"), None));
    sleep_millis(10_000).await;
    assert_eq!(get_now(&queue), Some(None));
}

#[tokio::test(start_paused = true)]
async fn drain_waits_until_keys_in_work_are_done() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    assert_eq!((get_now(&queue), get_now(&queue)), (Some(Some("foo")), Some(Some("bar"))));
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    sleep_millis(1).await;
    assert_eq!(get_now(&queue), Some(None));
    queue.done(&"foo");
    sleep_millis(1).await;
    assert!(!drain.is_finished());
    queue.done(&"bar");
    tokio::time::timeout(Duration::from_secs(1), drain).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_key_that_was_added_while_it_was_processed() {
    let queue = queue();
    queue.add("foo");
    assert_eq!(get_now(&queue), Some(Some("foo")));
    queue.add("foo");
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    sleep_millis(1).await;
    assert_eq!(get_now(&queue), Some(None));
    queue.done(&"foo");
    assert_eq!(get_now(&queue), Some(Some("foo")), "the shutdown is taken back for the key that is ready again");
    sleep_millis(1).await;
    assert!(!drain.is_finished());
    queue.done(&"foo");
    drain.await.unwrap();
    assert_eq!(get_now(&queue), Some(None));
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_ready_keys_that_no_worker_has_yet() {
    let queue = queue();
    queue.add("foo");
    let mut draining = Box::pin(queue.shut_down_with_drain());
    assert_eq!(futures::poll!(&mut draining), std::task::Poll::Pending);
    assert_eq!(drain(&queue), ["foo"]);
    draining.await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_cancels_a_drain_and_an_idle_queue_drains_at_once() {
    let queue = queue();
    queue.shut_down_with_drain().await;
    let queue = self::queue();
    queue.add("foo");
    assert_eq!(get_now(&queue), Some(Some("foo")));
    let mut draining = Box::pin(queue.shut_down_with_drain());
    assert_eq!(futures::poll!(&mut draining), std::task::Poll::Pending);
    queue.shut_down();
    draining.await;
}

#[tokio::test(start_paused = true)]
async fn delayed_key_is_added_once_at_the_sooner_of_its_times() {
    let rows: [(&str, &[u64], u64); 4] = [
        ("alone", &[50], 50),
        ("a later one is dropped", &[50, 70], 50),
        ("a sooner one replaces", &[50, 30], 30),
        ("the soonest of many", &[900, 40, 20, 60, 20], 20),
    ];
    for (name, delays, expected) in rows {
        let queue = queue();
        for delay in delays {
            queue.add_after("foo", Duration::from_millis(*delay));
        }
        let started = Instant::now();
        assert_eq!(queue.waiting(), 1, "{name}");
        assert_eq!(queue.get().await, Some("foo"), "{name}");
        let took = started.elapsed().as_millis();
        assert!((u128::from(expected)..=u128::from(expected) + 2).contains(&took), "{name}: {took} ms");
        queue.done(&"foo");
        sleep_millis(3_600_000).await;
        assert_eq!((get_now(&queue), queue.waiting()), (None, 0), "{name}: came again");
    }
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_come_in_the_order_of_their_times() {
    let queue = queue();
    for (key, delay) in [("foo", 1000), ("bar", 500), ("baz", 250)] {
        queue.add_after(key, Duration::from_millis(delay));
    }
    sleep_millis(2000).await;
    assert_eq!(drain(&queue), ["baz", "bar", "foo"]);
}

#[tokio::test(start_paused = true)]
async fn time_in_the_past_adds_the_key_at_once() {
    let (queue, clock) = queue_with_clock();
    queue.add_after("zero", Duration::ZERO);
    queue.add_at("now", clock.now());
    queue.add_at("year one", wall("0001-01-01T00:00:00Z"));
    assert_eq!((drain(&queue), queue.waiting()), (vec!["now", "year one", "zero"], 0));
}

#[tokio::test(start_paused = true)]
async fn due_keys_and_their_retries_go_before_added_keys() {
    let (queue, clock) = queue_with_clock();
    queue.add("changed");
    queue.add("both");
    queue.add_at("due", clock.now());
    queue.add_at("both", clock.now());
    queue.add("due");
    assert_eq!((queue.len(), get_now(&queue)), (3, Some(Some("due"))));
    queue.add_rate_limited("due");
    queue.add_rate_limited("never due");
    queue.done(&"due");
    sleep_millis(10).await;
    queue.add("changed later");
    assert_eq!(drain(&queue), ["both", "due", "changed", "never due", "changed later"]);
}

#[tokio::test(start_paused = true)]
async fn first_attempts_leave_before_retries_and_retries_before_what_was_added() {
    let (queue, clock) = queue_with_clock();
    for key in ["fails", "fails too", "fails for long"] {
        queue.add_at(key, clock.now());
        assert_eq!(get_now(&queue), Some(Some(key)));
        queue.add_rate_limited(key);
        queue.done(&key);
    }
    queue.add("changed");
    sleep_millis(10).await;
    queue.add_at("due", clock.now());
    queue.add_at("fails too", clock.now());
    assert_eq!(drain(&queue), ["due", "fails too", "fails", "fails for long", "changed"]);
}

#[tokio::test(start_paused = true)]
async fn starving_retry_gets_every_second_turn() {
    let (queue, clock) = queue_with_clock();
    queue.add_at("fails", clock.now());
    assert_eq!(get_now(&queue), Some(Some("fails")));
    queue.add_rate_limited("fails");
    queue.done(&"fails");
    sleep_millis(10).await;
    queue.add("changed");
    tokio::time::sleep(STARVATION_LIMIT).await;
    for key in ["due 0", "due 1", "due 2"] {
        queue.add_at(key, clock.now());
    }
    let turns: Vec<_> = (0..5).map(|_| get_now(&queue).flatten().unwrap()).collect();
    assert_eq!(turns, ["fails", "due 0", "changed", "due 1", "due 2"]);
}

#[tokio::test(start_paused = true)]
async fn removed_timers_never_fire_and_a_ready_key_stays_ready() {
    let (queue, clock) = queue_with_clock();
    queue.add("foo");
    queue.add_after("foo", Duration::from_secs(1));
    queue.add_at("foo", clock.now() + TimeDelta::seconds(2));
    queue.add_after("bar", Duration::from_secs(3));
    queue.remove_timers(&"foo");
    assert_eq!((queue.scheduled_for(&"foo"), queue.waiting()), (None, 1));
    assert_eq!(drain(&queue), ["foo"]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(drain(&queue), ["bar"]);
}

#[tokio::test(start_paused = true)]
async fn starving_key_gets_every_second_turn() {
    let (queue, clock) = queue_with_clock();
    let due = |names: &[&'static str]| names.iter().for_each(|name| queue.add_at(name, clock.now()));
    for low in ["a", "b", "c"] {
        queue.add(low);
    }
    due(&["due 0", "due 1"]);
    let first: Vec<_> = (0..2).map(|_| get_now(&queue).flatten().unwrap()).collect();
    assert_eq!(first, ["due 0", "due 1"], "no key is starving yet");
    due(&["due 2", "due 3", "due 4", "due 5", "due 6"]);
    tokio::time::sleep(STARVATION_LIMIT).await;
    let turns: Vec<_> = (0..7).map(|_| get_now(&queue).flatten().unwrap()).collect();
    assert_eq!(turns, ["a", "due 2", "b", "due 3", "c", "due 4", "due 5"]);
}

#[tokio::test(start_paused = true)]
async fn keys_of_the_first_list_are_reached_however_many_others_come_due() {
    let (queue, clock) = queue_with_clock();
    let listed = ["a", "b", "c"];
    for key in listed {
        queue.add(key);
    }
    // More keys come due than one worker, which needs a second for each, can do.
    let due: Vec<&'static str> = (0..60).map(|at| &*format!("due {at}").leak()).collect();
    let mut served = Vec::new();
    for pair in due.chunks(2) {
        for key in pair {
            queue.add_at(*key, clock.now());
        }
        served.push(get_now(&queue).flatten().unwrap());
        sleep_millis(1000).await;
    }
    let places = listed.map(|key| served.iter().position(|found| *found == key));
    assert_eq!(places, [Some(5), Some(7), Some(9)]);
}

#[tokio::test(start_paused = true)]
async fn low_priority_keys_wait_for_the_end_of_the_pause_or_the_starvation_limit() {
    let (queue, clock) = queue_with_clock();
    queue.add("early");
    sleep_millis(3000).await;
    queue.pause_low_priority(Duration::from_secs(60));
    queue.add("late");
    queue.add_at("due", clock.now());
    assert!(queue.is_busy());
    let start = Instant::now();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let key = queue.get().await.unwrap();
        seen.push((key, start.elapsed().as_secs()));
    }
    assert_eq!(seen, [("due", 0), ("early", 2), ("late", 5)]);
    assert!(!queue.is_busy(), "the hold is over");

    queue.pause_low_priority(Duration::from_secs(60));
    queue.add("last");
    queue.shut_down();
    assert_eq!(get_now(&queue), Some(Some("last")), "shutdown holds nothing");
}

#[tokio::test(start_paused = true)]
async fn low_priority_keys_wait_when_the_wall_time_of_others_has_come() {
    let (queue, clock) = queue_pausing_at_due(60);
    queue.add("before");
    assert_eq!(get_now(&queue), Some(Some("before")), "nothing is due");
    queue.done(&"before");
    queue.add_at("due", clock.now() + TimeDelta::seconds(1));
    queue.add_after("backoff", Duration::from_millis(500));
    queue.add_after("settles", Duration::from_millis(1010));
    let mut seen = Vec::new();
    let start = Instant::now();
    for _ in 0..3 {
        let key = queue.get().await.unwrap();
        seen.push((key, start.elapsed().as_millis()));
    }
    // A timer of the monotonic clock pauses nothing.
    assert_eq!(seen, [("backoff", 500), ("due", 1000), ("settles", 1060)]);
}

#[tokio::test(start_paused = true)]
async fn the_pause_for_keys_whose_wall_time_has_come_ends_soon_after_all_of_them_are_done() {
    let (queue, _clock) = queue_pausing_at_due(60);
    let start = Instant::now();
    for key in ["due", "due too"] {
        queue.add_at(key, noon() + TimeDelta::seconds(1));
    }
    for key in ["due", "due too"] {
        assert_eq!(queue.get().await, Some(key));
    }
    for key in ["status", "another"] {
        queue.add(key);
    }
    let workers = [queue.clone(), queue.clone()].map(|queue| {
        tokio::spawn(async move {
            let key = queue.get().await.unwrap();
            (key, start.elapsed().as_millis())
        })
    });
    sleep_millis(10).await;
    queue.done(&"due");
    assert!(queue.is_busy(), "one is still being processed");
    sleep_millis(10).await;
    queue.done(&"due too");
    let mut seen: Vec<_> = join_all(workers).await.into_iter().map(Result::unwrap).collect();
    seen.sort_unstable();
    assert_eq!(seen, [("another", 1025), ("status", 1025)], "both workers were woken");
    assert!(!queue.is_busy());
}

/// Counts how often the timer task goes to sleep.
#[derive(Debug)]
struct SleepCounter(Arc<TestClock>, AtomicUsize);

impl Clock for SleepCounter {
    fn now(&self) -> DateTime<Utc> {
        self.0.now()
    }

    fn sleep_until(&self, deadline: Instant) -> apimachinery::clock::Sleep {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.sleep_until(deadline)
    }
}

#[tokio::test(start_paused = true)]
async fn workers_that_find_only_paused_keys_do_not_wake_the_timer_task() {
    let clock = Arc::new(SleepCounter(TestClock::silent(noon()), AtomicUsize::new(0)));
    let queue = WorkQueue::new(
        Config::new("cronjob", Arc::<SleepCounter>::clone(&clock)).pausing_at_due(Duration::from_millis(60)),
    );
    queue.set_limit(8);
    queue.add_at("due", noon() + TimeDelta::seconds(1));
    assert_eq!(queue.get().await, Some("due"));
    queue.add("status");
    assert_eq!(get_now(&queue), None, "it is paused");
    sleep_millis(1).await;
    let before = clock.1.load(Ordering::Relaxed);
    for _ in 0..10 {
        assert_eq!(get_now(&queue), None, "it is paused");
        tokio::task::yield_now().await;
    }
    assert_eq!(clock.1.load(Ordering::Relaxed), before);
}

#[tokio::test(start_paused = true)]
async fn each_paused_key_leaves_at_its_starvation_limit() {
    let (queue, _clock) = queue_with_clock();
    let start = Instant::now();
    for key in ["first", "second", "third"] {
        queue.add(key);
        sleep_millis(100).await;
    }
    sleep_millis(700).await;
    queue.pause_low_priority(Duration::from_secs(60));
    sleep_millis(3000).await;
    queue.pause_low_priority(Duration::from_secs(60));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let key = queue.get().await.unwrap();
        seen.push((key, start.elapsed().as_millis()));
    }
    assert_eq!(seen, [("first", 5000), ("second", 5100), ("third", 5200)]);
}

#[tokio::test(start_paused = true)]
async fn no_time_is_too_far_away() {
    let (queue, _clock) = queue_with_clock();
    queue.add_after("max", Duration::MAX);
    queue.add_after("tokio-util panics", Duration::from_millis(1 << 36));
    queue.add_at("year 9999", wall("9999-12-31T23:59:59Z"));
    queue.add_at("end of time", DateTime::<Utc>::MAX_UTC);
    queue.add_at("soon", noon() + TimeDelta::seconds(2));
    assert_eq!(queue.get().await, Some("soon"));
    assert_eq!(queue.waiting(), 4);
    assert_eq!(queue.scheduled_for(&"end of time").unwrap().at, Some(DateTime::<Utc>::MAX_UTC));
}

#[tokio::test(start_paused = true)]
async fn both_kinds_of_timer_of_one_key_fire() {
    let (queue, _clock) = queue_with_clock();
    queue.add_after("foo", Duration::from_millis(300));
    queue.add_at("foo", noon() + TimeDelta::milliseconds(700));
    sleep_millis(302).await;
    assert_eq!(drain(&queue), ["foo"]);
    assert!(queue.scheduled_for(&"foo").unwrap().at.is_some());
    sleep_millis(398).await;
    sleep_millis(2).await;
    assert_eq!(drain(&queue), ["foo"]);
    assert_eq!(queue.scheduled_for(&"foo"), None);
}

#[tokio::test(start_paused = true)]
async fn an_immediate_add_leaves_the_timers_alone() {
    let (queue, _clock) = queue_with_clock();
    queue.add_at("foo", noon() + TimeDelta::seconds(30));
    queue.add("foo");
    assert_eq!(drain(&queue), ["foo"]);
    assert_eq!(queue.get().await, Some("foo"));
}

#[tokio::test(start_paused = true)]
async fn a_wall_time_is_met_within_two_milliseconds_and_never_early() {
    let (queue, clock) = queue_with_clock();
    for (key, millis) in [("a", 3), ("b", 999), ("c", 1000), ("d", 1001), ("e", 60_000), ("f", 86_400_000)] {
        let at = clock.now() + TimeDelta::milliseconds(millis) + TimeDelta::microseconds(300);
        queue.add_at(key, at);
        assert_eq!(queue.get().await, Some(key));
        queue.done(&key);
        let late = clock.now() - at;
        assert!(late >= TimeDelta::zero() && late <= TimeDelta::milliseconds(2), "{key} came {late} late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stepped_wall_clock_moves_wall_timers_and_no_others() {
    type Row = (&'static str, bool, i64, [(&'static str, std::ops::RangeInclusive<u128>); 2]);
    let (told, silent) = (true, false);
    let after = || ("after", 30_000..=30_002);
    let rows: [Row; 6] = [
        ("no step", silent, 0, [after(), ("at", 60_000..=60_002)]),
        ("forward: due within a slice", silent, 3600, [("at", 10_000..=11_002), after()]),
        ("forward, and told of it: due at once", told, 3600, [("at", 10_000..=10_001), after()]),
        ("backward, by no more than a second", silent, -1, [after(), ("at", 61_000..=61_002)]),
        ("backward: due within a slice, to be judged anew", silent, -3600, [("at", 10_000..=11_002), after()]),
        ("backward, and told of it: due at once", told, -3600, [("at", 10_000..=10_001), after()]),
    ];
    for (name, told, step, expected) in rows {
        let (queue, clock) = queue_on(if told { TestClock::new(noon()) } else { TestClock::silent(noon()) });
        let started = Instant::now();
        queue.add_at("at", noon() + TimeDelta::seconds(60));
        queue.add_after("after", Duration::from_secs(30));
        sleep_millis(10_000).await;
        clock.step(TimeDelta::seconds(step));
        for (key, range) in expected {
            assert_eq!(queue.get().await, Some(key), "{name}");
            let took = started.elapsed().as_millis();
            assert!(range.contains(&took), "{name}: {key} after {took} ms");
        }
    }
}

/// A clock that counts how often it is read.
#[derive(Debug)]
struct CountingClock(Arc<TestClock>, AtomicUsize);

impl Clock for CountingClock {
    fn now(&self) -> DateTime<Utc> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.now()
    }

    fn steps(&self) -> Option<watch::Receiver<()>> {
        self.0.steps()
    }
}

#[tokio::test(start_paused = true)]
async fn the_timer_task_wakes_only_for_what_waits() {
    for (clock, wanted) in [(TestClock::silent(noon()), 59..=61), (TestClock::new(noon()), 0..=0)] {
        let clock = Arc::new(CountingClock(clock, AtomicUsize::new(0)));
        let queue = WorkQueue::new(Config::new("cronjob", Arc::<CountingClock>::clone(&clock)));
        let looks_in = async |seconds: u64| {
            let before = clock.1.load(Ordering::Relaxed);
            sleep_millis(seconds * 1000).await;
            clock.1.load(Ordering::Relaxed) - before
        };
        looks_in(1).await;
        assert_eq!(looks_in(86_400).await, 0, "nothing waits");
        queue.add_after("foo", Duration::from_secs(7200));
        looks_in(1).await;
        assert_eq!(looks_in(3600).await, 0, "a monotonic timer waits");
        queue.add_at("bar", noon() + TimeDelta::days(365));
        looks_in(1).await;
        let looks = looks_in(60).await;
        assert!(wanted.contains(&looks), "a wall timer waits: {looks} looks in a minute, not {wanted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_keys_due_at_once_leave_in_order_of_arrival() {
    let clock = TestClock::new(noon());
    let queue = WorkQueue::new(Config::new("cronjob", clock));
    for key in 0..10_000u32 {
        queue.add_at(key, noon() + TimeDelta::seconds(60));
    }
    assert_eq!(queue.waiting(), 10_000);
    sleep_millis(60_002).await;
    assert_eq!(drain(&queue), (0..10_000).collect::<Vec<u32>>());
}

#[tokio::test(start_paused = true)]
async fn a_failing_key_backs_off_until_it_is_forgotten() {
    let queue = queue();
    for expected in [5, 10, 20, 40] {
        queue.add_rate_limited("foo");
        let started = Instant::now();
        assert_eq!(queue.get().await, Some("foo"));
        let took = started.elapsed().as_millis();
        assert!((expected..=expected + 2).contains(&took), "{took} ms instead of {expected}");
        queue.done(&"foo");
    }
    assert_eq!(queue.num_requeues(&"foo"), 4);
    queue.forget(&"foo");
    assert_eq!(queue.num_requeues(&"foo"), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_the_timer_task() {
    let (queue, clock) = queue_with_clock();
    queue.add_at("foo", noon() + TimeDelta::days(1));
    let other = queue.clone();
    sleep_millis(10).await;
    drop(queue);
    sleep_millis(10).await;
    assert!(Arc::strong_count(&clock) > 1, "a handle is left");
    drop(other);
    sleep_millis(10).await;
    assert_eq!(Arc::strong_count(&clock), 1, "nothing holds the queue's parts");
}

#[tokio::test(start_paused = true)]
async fn metrics_count_what_client_go_counts() {
    let (queue, _clock) = queue_with_clock();
    let registry = Registry::new();
    let group = QueueGroup::register(&registry, "cronjob").unwrap();
    let member = group.join(&queue);
    let assert_metrics = |step: &str, expected: &[(&str, &str)]| {
        let text = encode(&registry);
        for (name, value) in expected {
            let line = format!("workqueue_{name}{{name=\"cronjob\"}} {value}\n");
            assert!(text.contains(&line), "{step}: no {line}in\n{text}");
        }
    };
    assert_metrics("new", &[("depth", "0"), ("adds_total", "0"), ("retries_total", "0")]);
    queue.add("foo");
    queue.add("foo");
    assert_metrics("added twice", &[("adds_total", "1"), ("depth", "1"), ("queue_duration_seconds_count", "0")]);
    sleep_millis(50).await;
    assert_eq!(get_now(&queue), Some(Some("foo")));
    assert_metrics(
        "taken",
        &[
            ("depth", "0"),
            ("queue_duration_seconds_count", "1"),
            ("queue_duration_seconds_sum", "0.05"),
            ("work_duration_seconds_count", "0"),
        ],
    );
    sleep_millis(500).await;
    queue.add("foo");
    assert_metrics(
        "added while processed",
        &[
            ("adds_total", "2"),
            ("depth", "1"),
            ("unfinished_work_seconds", "0.5"),
            ("longest_running_processor_seconds", "0.5"),
        ],
    );
    queue.add("bar");
    assert_eq!(get_now(&queue), Some(Some("bar")));
    sleep_millis(250).await;
    assert_metrics("two in work", &[("unfinished_work_seconds", "1"), ("longest_running_processor_seconds", "0.75")]);
    queue.done(&"foo");
    queue.done(&"bar");
    assert_metrics(
        "done",
        &[
            ("depth", "1"),
            ("unfinished_work_seconds", "0"),
            ("longest_running_processor_seconds", "0"),
            ("work_duration_seconds_count", "2"),
            ("work_duration_seconds_sum", "1"),
        ],
    );
    queue.add_after("foo", Duration::ZERO);
    queue.add_after("foo", Duration::from_secs(9));
    queue.add_at("foo", noon());
    queue.add_at("foo", noon() + TimeDelta::days(1));
    queue.add_rate_limited("foo");
    assert_metrics("delays, the passed ones too, are retries", &[("retries_total", "5"), ("adds_total", "3")]);
    queue.shut_down();
    queue.add_after("foo", Duration::from_secs(1));
    assert_metrics("shut down", &[("retries_total", "5")]);
    drop((member, queue));
    assert_metrics("left", &[("depth", "0"), ("retries_total", "5"), ("adds_total", "3")]);
}

#[tokio::test(start_paused = true)]
async fn queues_of_one_group_share_metrics_and_keep_counts_when_one_is_dropped() {
    let registry = Registry::new();
    let group = QueueGroup::register(&registry, "cronjob").unwrap();
    let ((first, _), (second, _)) = (queue_with_clock(), queue_with_clock());
    let member = group.join(&first);
    let _other = group.join(&second);
    first.add("foo");
    second.add("foo");
    second.add("bar");
    sleep_millis(10).await;
    assert_eq!(get_now(&first), Some(Some("foo")));
    assert_eq!(get_now(&second), Some(Some("foo")));
    let counts = |depth: u32| {
        format!(
            "workqueue_adds_total{{name=\"cronjob\"}} 3\n# HELP workqueue_depth [BETA] Current depth of workqueue\n# TYPE workqueue_depth gauge\nworkqueue_depth{{name=\"cronjob\"}} {depth}\n"
        )
    };
    assert!(encode(&registry).contains(&counts(1)), "{}", encode(&registry));
    assert!(encode(&registry).contains("workqueue_queue_duration_seconds_count{name=\"cronjob\"} 2\n"));
    assert!(group.is_busy());
    first.done(&"foo");
    drop((member, first));
    assert!(encode(&registry).contains(&counts(1)), "{}", encode(&registry));
    assert!(encode(&registry).contains("workqueue_work_duration_seconds_count{name=\"cronjob\"} 1\n"));
    assert_eq!(get_now(&second), Some(Some("bar")));
    assert!(!group.is_busy());
}

#[test]
fn second_metrics_group_of_the_same_name_is_refused() {
    let registry = Registry::new();
    QueueGroup::register(&registry, "a").unwrap();
    let refused = QueueGroup::register(&registry, "a").map(drop).unwrap_err().to_string();
    assert!(refused.starts_with("register metric workqueue_*: "), "{refused}");
    QueueGroup::register(&registry, "b").unwrap();
    let text = encode(&registry);
    assert!(text.contains("workqueue_depth{name=\"a\"} 0\nworkqueue_depth{name=\"b\"} 0\n"), "{text}");
}

/// Real threads: producers add, workers re-add and finish, and no two of them ever hold one key.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_producers_and_workers_on_many_threads_never_share_or_lose_a_key() {
    const KEYS: usize = 50;
    const ROUNDS: usize = 200;
    let queue = WorkQueue::<usize>::new(Config::new("cronjob", Arc::new(SystemClock)));
    let held: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let workers: Vec<_> = (0..10)
        .map(|_| {
            let (queue, held) = (queue.clone(), Arc::clone(&held));
            tokio::spawn(async move {
                let mut seen: HashMap<usize, usize> = HashMap::new();
                while let Some(key) = queue.get().await {
                    assert_eq!(held[key].fetch_add(1, Ordering::SeqCst), 0, "two workers on {key}");
                    let times = seen.entry(key).or_default();
                    *times += 1;
                    if *times == 1 {
                        queue.add(key);
                    }
                    tokio::task::yield_now().await;
                    held[key].fetch_sub(1, Ordering::SeqCst);
                    queue.done(&key);
                }
                seen
            })
        })
        .collect();
    let producers = (0..KEYS).map(|key| {
        let queue = queue.clone();
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                match round % 3 {
                    0 => queue.add(key),
                    1 => queue.add_after(key, Duration::from_micros(50)),
                    _ => queue.add_at(key, Utc::now() + TimeDelta::microseconds(50)),
                }
                tokio::task::yield_now().await;
            }
        })
    });
    join_all(producers).await.into_iter().for_each(|producer| producer.unwrap());
    tokio::time::timeout(Duration::from_secs(60), queue.shut_down_with_drain()).await.unwrap();
    let mut processed = [0; KEYS];
    for worker in join_all(workers).await {
        worker.unwrap().into_iter().for_each(|(key, times)| processed[key] += times);
    }
    assert!(processed.iter().all(|times| *times > 0), "{processed:?}");
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_hangs_since_an_earlier_time_does_not_prolong_the_pause() {
    let (queue, _clock) = queue_pausing_at_due(250);
    let start = Instant::now();
    queue.add_at("hangs", noon() + TimeDelta::seconds(1));
    queue.add_at("due", noon() + TimeDelta::seconds(2));
    assert_eq!(queue.get().await, Some("hangs"));
    assert_eq!(queue.get().await, Some("due"));
    queue.add("status");
    queue.done(&"due");
    assert_eq!(queue.get().await, Some("status"));
    assert_eq!(start.elapsed().as_millis(), 2_005);
}
