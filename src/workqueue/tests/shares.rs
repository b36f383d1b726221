//! How groups share the workers: an unanswered group never holds all of them.

use super::*;

type Key = (&'static str, usize);

const WORKERS: usize = 64;
/// How long a request of a noisy group waits for an answer that never comes.
const DEADLINE: Duration = Duration::from_secs(10);
const CALM: &str = "calm";

fn grouped() -> WorkQueue<Key> {
    let clock = TestClock::silent(noon());
    WorkQueue::new(Config::new("cronjob", clock).grouped_by(|(group, _)| group))
}

fn keys(group: &'static str, count: usize) -> impl Iterator<Item = Key> {
    (0..count).map(move |at| (group, at))
}

/// The keys that are handed out without waiting.
fn take(queue: &WorkQueue<Key>) -> Vec<Key> {
    std::iter::from_fn(|| get_now(queue).flatten()).collect()
}

fn finish(queue: &WorkQueue<Key>, keys: &[Key]) {
    for key in keys {
        queue.done(key);
    }
}

fn count(keys: &[Key], group: &str) -> usize {
    keys.iter().filter(|key| key.0 == group).count()
}

#[tokio::test(start_paused = true)]
async fn groups_take_turns_however_many_keys_each_has() {
    let queue = grouped();
    keys("a", 5).chain(keys("b", 2)).chain(keys("c", 1)).for_each(|key| queue.add(key));
    let order: Vec<_> = take(&queue).into_iter().map(|key| key.0).collect();
    assert_eq!(order, ["a", "b", "c", "a", "b", "a", "a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn group_that_is_new_has_half_of_the_workers_until_its_first_answer_and_then_all() {
    let queue = grouped();
    queue.set_limit(8);
    keys("a", 20).for_each(|key| queue.add(key));
    let first = take(&queue);
    assert_eq!(first.len(), 4);
    sleep_millis(10).await;
    finish(&queue, &first[..1]);
    assert_eq!(take(&queue).len(), 5, "all workers, of which three are taken");
    finish(&queue, &first[1..]);
}

#[tokio::test(start_paused = true)]
async fn group_that_is_not_answered_for_a_second_has_half_and_keeps_it_when_it_comes_back() {
    let queue = grouped();
    queue.set_limit(8);
    keys("slow", 20).for_each(|key| queue.add(key));
    let held = take(&queue);
    tokio::time::sleep(UNANSWERED).await;
    assert_eq!(take(&queue), []);
    keys(CALM, 4).for_each(|key| queue.add(key));
    let calm = take(&queue);
    assert_eq!(count(&calm, CALM), 2, "half of what is left");
    sleep_millis(10).await;
    finish(&queue, &calm);
    assert_eq!(take(&queue).len(), 2);
    finish(&queue, &held);
    assert_eq!(take(&queue).len(), 4, "the half again, and no more although it was answered");
}

#[tokio::test(start_paused = true)]
async fn keys_waiting_for_their_groups_share_leave_when_a_worker_or_time_allows() {
    let queue = grouped();
    queue.set_limit(8);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..8 {
        let (queue, seen) = (queue.clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Some(key) = queue.get().await {
                seen.lock().push((Instant::now(), key));
                tokio::time::sleep(if key.0 == CALM { Duration::from_millis(10) } else { DEADLINE }).await;
                queue.done(&key);
            }
        });
    }
    let start = Instant::now();
    // New groups hold three quarters, so the next one waits until these are known to be slow.
    for group in ["a", "b", "c", "d", "e", "f"] {
        queue.add((group, 0));
    }
    keys(CALM, 30).for_each(|key| queue.add(key));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let seen = seen.lock();
    let calm: Vec<_> = seen.iter().filter(|(_, key)| key.0 == CALM).map(|(at, _)| *at - start).collect();
    assert!(calm[0] >= UNANSWERED, "the first of the calm waited {:?}", calm[0]);
    assert!(calm[29] < UNANSWERED + Duration::from_millis(300), "the last of the calm waited {:?}", calm[29]);
    assert_eq!(seen.len(), 36);
}

#[tokio::test(start_paused = true)]
async fn limit_of_a_group_and_of_all_hold_and_a_raise_wakes_workers() {
    let queue = grouped();
    queue.set_limit(6);
    queue.set_group_limit("a", Some(2));
    keys("a", 5).chain(keys("b", 5)).for_each(|key| queue.add(key));
    let first = take(&queue);
    assert_eq!((count(&first, "a"), count(&first, "b")), (2, 1), "half of six together");
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.unwrap() })
        })
        .collect();
    sleep_millis(1).await;
    queue.set_limit(10);
    queue.set_group_limit("a", None);
    let got = tokio::time::timeout(Duration::from_secs(1), join_all(waiting)).await;
    assert_eq!(got.expect("both are woken").len(), 2);
    queue.set_limit(0);
    assert_eq!(take(&queue), []);
    queue.shut_down();
    assert_eq!(take(&queue).len(), 5, "shutdown knows no limit");
}

#[tokio::test(start_paused = true)]
async fn keys_waiting_for_their_groups_share_do_not_make_the_queue_busy() {
    let queue = grouped();
    queue.set_limit(8);
    keys("slow", 20).for_each(|key| queue.add(key));
    assert!(queue.is_busy());
    take(&queue);
    assert!(!queue.is_busy(), "a busy queue would make others wait for a tenant's webhook");
    keys(CALM, 20).for_each(|key| queue.add(key));
    queue.set_limit(4);
    take(&queue);
    assert!(queue.is_busy(), "all workers that there may be are taken");
}

/// How long each of 100 calm keys, added every minute beside noisy ones, waited in each minute.
async fn minutes(noisy_groups: usize, minutes: usize) -> Vec<Vec<Duration>> {
    let names: Vec<&'static str> = (0..noisy_groups).map(|at| &*format!("n{at}").leak()).collect();
    let noisy: Vec<Key> = (0..1000).map(|at| (names[at % noisy_groups], at)).collect();
    let queue = grouped();
    queue.set_limit(WORKERS);
    let begun: Arc<Mutex<Vec<(Key, Instant)>>> = Arc::default();
    for _ in 0..WORKERS {
        let (queue, begun) = (queue.clone(), Arc::clone(&begun));
        tokio::spawn(async move {
            while let Some(key) = queue.get().await {
                if key.0 == CALM {
                    begun.lock().push((key, Instant::now()));
                    sleep_millis(10).await;
                } else {
                    tokio::time::sleep(DEADLINE).await;
                    queue.add_rate_limited_within(key, Duration::ZERO, Duration::from_secs(2));
                }
                queue.done(&key);
            }
        });
    }
    let mut waits = Vec::new();
    for _ in 0..minutes {
        let slot = Instant::now();
        noisy.iter().copied().chain(keys(CALM, 100)).for_each(|key| queue.add_with(key, Priority::High));
        tokio::time::sleep(Duration::from_secs(60)).await;
        waits.push(begun.lock().drain(..).map(|(_, at)| at - slot).collect());
    }
    waits
}

#[tokio::test(start_paused = true)]
async fn calm_group_beside_one_or_ten_groups_that_are_never_answered_waits_for_less_than_a_second() {
    for noisy_groups in [1, 10] {
        for (minute, waits) in minutes(noisy_groups, 5).await.into_iter().enumerate() {
            let longest = waits.iter().max().unwrap();
            assert!(waits.len() == 100 && *longest < UNANSWERED, "{noisy_groups}, minute {minute}: {longest:?}");
        }
    }
}

/// Before any group is known, sixty-four workers cannot find one answered group among two hundred.
#[tokio::test(start_paused = true)]
async fn calm_group_beside_two_hundred_groups_that_are_never_answered_waits_for_less_than_a_second_once_they_are_known()
{
    let minutes = minutes(200, 8).await;
    for (minute, waits) in minutes.iter().enumerate() {
        let longest = waits.iter().max().unwrap();
        assert!(waits.len() == 100, "minute {minute}: {} slots", waits.len());
        assert!(minute == 0 || *longest < UNANSWERED, "minute {minute}: {longest:?}");
    }
}

/// Fresh keys of another group, one in turn and one behind it, beside a backlog that is starved.
#[tokio::test(start_paused = true)]
async fn starved_keys_wait_for_no_fresh_key_of_another_group() {
    for paused in [true, false] {
        let (queue, clock) = (grouped(), noon());
        keys("backlog", 3).for_each(|key| queue.add(key));
        sleep_millis(4_900).await;
        queue.add(("fresh", 0));
        sleep_millis(100).await;
        let mut wants: Vec<Key> = keys("backlog", 3).collect();
        if paused {
            queue.pause_low_priority(STARVATION_LIMIT);
        } else {
            (0..3).for_each(|at| queue.add_at(("due", at), clock));
            wants = (0..3).flat_map(|at| [("backlog", at), ("due", at)]).collect();
        }
        let got: Vec<Key> = take(&queue).into_iter().take(wants.len()).collect();
        assert_eq!(got, wants, "paused: {paused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_starved_key_behind_a_fresh_one_wakes_a_worker_in_a_pause() {
    let queue = grouped();
    let start = Instant::now();
    keys("backlog", 2).for_each(|key| queue.add(key));
    sleep_millis(1_000).await;
    queue.add(("fresh", 0));
    let mut seen = Vec::new();
    queue.pause_low_priority(STARVATION_LIMIT);
    let pausing = queue.clone();
    tokio::spawn(async move {
        for _ in 0..20 {
            sleep_millis(500).await;
            pausing.pause_low_priority(STARVATION_LIMIT);
        }
    });
    for _ in 0..3 {
        seen.push((queue.get().await.unwrap(), start.elapsed().as_millis()));
    }
    assert_eq!(seen, [(("backlog", 0), 5_000), (("backlog", 1), 5_000), (("fresh", 0), 6_000)]);
}

#[tokio::test(start_paused = true)]
async fn groups_that_hang_are_noticed_after_a_batch_of_timers() {
    let queue = grouped();
    queue.set_limit(8);
    for key in keys("timers", BATCH) {
        queue.add_after(key, Duration::from_millis(10));
    }
    sleep_millis(20).await;
    loop {
        let taken = take(&queue);
        if taken.is_empty() {
            break;
        }
        finish(&queue, &taken);
    }
    for group in ["a", "b", "c", "d", "e", "f"] {
        queue.add((group, 0));
    }
    queue.add((CALM, 0));
    queue.add((CALM, 1));
    let start = Instant::now();
    take(&queue);
    let next = tokio::time::timeout(DEADLINE, queue.get()).await;
    assert!(next.is_ok(), "no worker was woken");
    assert!(start.elapsed() < UNANSWERED + Duration::from_millis(300), "after {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn slow_groups_leave_the_reserve_although_groups_that_are_new_hold_work() {
    let queue = grouped();
    queue.set_limit(8);
    queue.add((CALM, 0));
    queue.add(("slow", 0));
    let held = take(&queue);
    sleep_millis(10).await;
    finish(&queue, &held[..1]);
    tokio::time::sleep(UNANSWERED).await;
    finish(&queue, &held[1..]);
    for (group, count, want) in [("new", 4, 4), ("slow", 8, 3)] {
        keys(group, count).for_each(|key| queue.add_with(key, Priority::High));
        assert_eq!(take(&queue).len(), want, "{group}");
    }
    queue.add((CALM, 1));
    assert_eq!(take(&queue), [(CALM, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_lifted_leaves_nothing_to_look_at() {
    let queue = grouped();
    queue.set_limit(8);
    queue.set_group_limit("", Some(1));
    queue.add(("", 0));
    queue.add(("", 1));
    assert_eq!(take(&queue), [("", 0)], "the group without a name has a limit, too");
    queue.set_limit(usize::MAX);
    sleep_millis(2_000).await;
    assert_eq!(take(&queue), []);
    queue.set_group_limit("", None);
    assert_eq!(take(&queue), [("", 1)]);
}
