#![allow(clippy::unwrap_used, clippy::type_complexity)]

use apimachinery::clock::TestClock;
use chrono::DateTime;
use proptest::prelude::*;

use super::*;
use crate::workqueue::Config;

const MIB: usize = 1 << 20;

fn key(namespace: &str, name: usize) -> ObjectName {
    ObjectName::new(namespace, name.to_string())
}

fn budget() -> (Arc<TemplateBudget>, WorkQueue<ObjectName>) {
    let queue = WorkQueue::new(Config::new("test", TestClock::new(DateTime::UNIX_EPOCH)));
    (TemplateBudget::new(queue.clone()), queue)
}

/// The keys that were added to the queue, in order.
async fn added(queue: &WorkQueue<ObjectName>) -> Vec<String> {
    let mut keys = Vec::new();
    while !queue.is_empty() {
        let key = queue.get().await.unwrap();
        queue.done(&key);
        keys.push(key.to_string());
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn templates_are_held_up_to_the_budget_and_to_the_namespaces_share() {
    // (sentence, bytes held, bytes requested, whether they fit)
    let rows: [(&str, &[(&str, usize)], (&str, usize), bool); 11] = [
        ("nothing is held", &[], ("a", MIB), true),
        ("longer than the budget, and nothing is held", &[], ("a", 2 * BUDGET), true),
        ("longer than the budget beside another", &[("b", 1)], ("a", 2 * BUDGET), true),
        ("beside one that is longer than the budget", &[("a", 2 * BUDGET)], ("b", 4 * MIB), true),
        ("up to the namespace's share", &[("a", 2 * MIB)], ("a", MIB), true),
        ("beyond the namespace's share", &[("a", 2 * MIB)], ("a", MIB + 1), false),
        ("longer than the share, the first of its namespace", &[("b", MIB)], ("a", 5 * MIB), true),
        ("up to three quarters", &[("a", 3 * MIB), ("b", MIB)], ("c", 2 * MIB), true),
        ("beyond three quarters", &[("a", 3 * MIB), ("b", MIB)], ("c", 2 * MIB + 1), false),
        ("an object as long as etcd takes, in the rest", &[("a", 3 * MIB), ("b", 3 * MIB)], ("c", 3 * MIB / 2), true),
        ("and a longer one", &[("a", 3 * MIB), ("b", 3 * MIB)], ("c", 3 * MIB / 2 + 1), false),
    ];
    for (sentence, held, (namespace, bytes), expected) in rows {
        let (budget, _queue) = budget();
        let held: Vec<_> = held
            .iter()
            .enumerate()
            .map(|(at, (name, bytes))| budget.reserve(&key(name, at), *bytes).unwrap())
            .collect();
        assert_eq!(budget.reserve(&key(namespace, 9), bytes).is_some(), expected, "{sentence}");
        drop(held);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_put_aside_are_added_again_in_turns_when_there_is_room() {
    let (budget, queue) = budget();
    let held = [budget.reserve(&key("x", 0), 3 * MIB).unwrap(), budget.reserve(&key("y", 0), 3 * MIB).unwrap()];
    for (namespace, name) in [("a", 0), ("a", 1), ("a", 0), ("b", 0), ("c", 0)] {
        assert!(budget.reserve(&key(namespace, name), 2 * MIB).is_none());
    }
    assert!(queue.is_empty(), "nothing is added before there is room");
    let [first, second] = held;
    drop(first);
    assert_eq!(added(&queue).await, ["a/0"]);
    drop(second);
    assert_eq!(added(&queue).await, ["b/0", "c/0", "a/1"]);
    assert!(budget.state.lock().waiting.is_empty() && budget.state.lock().is_waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_put_aside_comes_back_though_no_room_was_made() {
    let (budget, queue) = budget();
    let _held = [("a", 0), ("c", 0)].map(|(namespace, name)| budget.reserve(&key(namespace, name), BUDGET).unwrap());
    assert!(budget.reserve(&key("b", 0), 2 * MIB).is_none());
    tokio::time::sleep(RETRY + Duration::from_millis(10)).await;
    assert_eq!(added(&queue).await, ["b/0"]);
}

proptest! {
    #[test]
    fn what_is_held_is_bounded_and_all_of_it_is_given_back(
        asked in prop::collection::vec((0_usize..4, 1_usize..6 * MIB, any::<bool>()), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let _entered = runtime.enter();
        let (budget, _queue) = budget();
        let mut held: Vec<(Reservation, usize, usize)> = Vec::new();
        for (at, (namespace, bytes, release)) in asked.into_iter().enumerate() {
            if let Some(reservation) = budget.reserve(&key(&namespace.to_string(), at), bytes) {
                held.push((reservation, namespace, bytes));
            }
            let counted = |bytes: &usize| (*bytes).min(NAMESPACE_SHARE);
            prop_assert!(held.iter().map(|(.., bytes)| counted(bytes)).sum::<usize>() <= BUDGET);
            for namespace in 0..4 {
                let own: Vec<_> = held.iter().filter(|(_, of, _)| *of == namespace).map(|(.., bytes)| counted(bytes)).collect();
                prop_assert!(own.iter().sum::<usize>() <= NAMESPACE_SHARE);
            }
            if release && !held.is_empty() {
                drop(held.remove(0));
            }
        }
        drop(held);
        let state = budget.state.lock();
        prop_assert!(state.held == 0 && state.held_by_namespace.is_empty());
    }
}
