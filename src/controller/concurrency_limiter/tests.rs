//! Tests of the limits against simulated servers.
#![allow(clippy::unwrap_used)]

use super::*;

const WORKERS: usize = 64;

struct World {
    start: Instant,
    limiter: ConcurrencyLimiter,
    limits: HashMap<Arc<str>, usize>,
    total: usize,
}

impl World {
    fn new() -> Self {
        let mut limiter = ConcurrencyLimiter::new();
        limiter.set_workers(WORKERS);
        Self { start: Instant::now(), limiter, limits: HashMap::new(), total: WORKERS }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn begin(&mut self, namespace: &str, millis: u64) -> Begun {
        let now = self.at(millis);
        self.limiter.begin(&namespace.into(), now)
    }

    fn end(&mut self, namespace: &str, begun: Begun, signal: Signal, millis: u64) {
        let now = self.at(millis);
        let changes = self.limiter.end(&namespace.into(), begun, signal, now);
        self.total = changes.total.unwrap_or(self.total);
        for (namespace, limit) in changes.namespaces {
            match limit {
                Some(limit) => self.limits.insert(namespace, limit),
                None => self.limits.remove(&namespace),
            };
        }
    }

    fn limit(&self, namespace: &str) -> usize {
        self.limits.get(namespace).copied().unwrap_or(WORKERS)
    }

    /// Runs `count` syncs at once, all with the same signal.
    fn round(&mut self, namespace: &str, count: usize, signal: Signal, millis: (u64, u64)) {
        let begun: Vec<_> = (0..count).map(|_| self.begin(namespace, millis.0)).collect();
        for begun in begun {
            self.end(namespace, begun, signal, millis.1);
        }
    }
}

#[test]
fn limit_of_all_after_overload_halves_once_per_round_trip_and_recovers() {
    let mut world = World::new();
    world.round("a", 64, Signal::Overloaded, (0, 10));
    assert_eq!(world.total, 32, "64 refusals of one round halve once");
    world.round("a", 32, Signal::Overloaded, (20, 30));
    for at in 0..10 {
        world.round("a", 1, Signal::Overloaded, (40 + at * 10, 49 + at * 10));
    }
    assert_eq!(world.total, 1, "never less than one");
    for at in 0..31 {
        world.round("a", 1, Signal::Created, (1000 + at * 10, 1005 + at * 10));
    }
    assert_eq!(world.total, 32, "slow start up to where congestion was seen first");
    world.round("a", 2000, Signal::Created, (2000, 2010));
    assert_eq!(world.total, WORKERS, "never more than workers");
    assert!(world.limits.is_empty(), "overload is not a namespace's");
}

#[test]
fn limit_of_a_namespace_after_missing_answers_halves_each_round_and_leaves_others_alone() {
    let mut world = World::new();
    let mut widths = Vec::new();
    for round in 0..6 {
        let width = world.limit("noisy").min(32);
        widths.push(width);
        world.round("noisy", width, Signal::Congested, (round * 10_000, round * 10_000 + 9_000));
        world.round("calm", 5, Signal::Created, (round * 10_000 + 9_001, round * 10_000 + 9_011));
    }
    assert_eq!(widths, [32, 16, 8, 4, 2, 1], "cancelled work is not repeated at the same width");
    assert_eq!((world.total, world.limit("calm")), (WORKERS, WORKERS));
}

#[test]
fn limit_of_a_namespace_that_succeeds_again_grows_back_and_is_forgotten() {
    let mut world = World::new();
    world.round("a", 32, Signal::Congested, (0, 9_000));
    assert_eq!(world.limit("a"), 16);
    for at in 0..3000 {
        world.round("a", 1, Signal::Created, (10_000 + at * 10, 10_005 + at * 10));
    }
    assert!(world.limits.is_empty());
}

#[test]
fn constant_latency_at_any_width_leaves_the_limit_alone() {
    for latency in [5, 900, 5_000, 29_000] {
        let mut world = World::new();
        let mut at = 0;
        for width in [1, 2, 20, 32, 64, 1, 20] {
            world.round("a", width, Signal::Created, (at, at + latency));
            at += latency + 10;
        }
        assert_eq!((world.limit("a"), world.total), (WORKERS, WORKERS), "{latency} ms");
    }
}

#[test]
fn latency_that_grows_with_requests_in_flight_lowers_the_limit() {
    let mut world = World::new();
    let begun: Vec<_> = (0..32).map(|_| world.begin("a", 0)).collect();
    for (begun, at) in begun.into_iter().zip(1..) {
        world.end("a", begun, Signal::Created, at * 100);
    }
    let limit = world.limit("a");
    assert!((5..=16).contains(&limit), "{limit}");
    assert_eq!(world.total, WORKERS);
}

#[test]
fn missing_answers_in_most_namespaces_lower_the_limit_of_all_unless_one_is_answered() {
    for (is_one_answered, expected) in [(false, 32), (true, WORKERS)] {
        let mut world = World::new();
        let names: Vec<String> = (0..64).map(|at| format!("n{at}")).collect();
        let begun: Vec<_> = names.iter().map(|name| world.begin(name, 0)).collect();
        if is_one_answered {
            world.round("calm", 1, Signal::Created, (5, 10));
        }
        for (name, begun) in names.iter().zip(begun) {
            world.end(name, begun, Signal::Congested, 9_000);
        }
        assert!((expected / 4..=expected).contains(&world.total), "{is_one_answered}: {}", world.total);
        assert_eq!(world.total == WORKERS, is_one_answered);
    }
    let mut world = World::new();
    for name in ["a", "b"] {
        world.round(name, 10, Signal::Congested, (0, 9_000));
    }
    assert_eq!(world.total, WORKERS, "two namespaces are not most of a server's");
}

/// The next hour's runs wait for no outage of the last one, also if they fail for other reasons.
#[test]
fn limit_of_a_namespace_is_forgotten_ten_minutes_after_the_last_congestion() {
    for signal in [Signal::Created, Signal::Neutral, Signal::Overloaded] {
        let mut world = World::new();
        for round in 0..6 {
            world.round("a", world.limit("a").min(32), Signal::Congested, (round * 10_000, round * 10_000 + 9_000));
        }
        world.round("a", 1, signal, (600_000, 600_100));
        assert!(world.limit("a") <= 2, "{signal:?}");
        world.round("a", 1, signal, (3_600_000, 3_600_100));
        assert!(world.limits.is_empty(), "{signal:?}");
    }
}

#[test]
fn congestion_never_raises_the_limit_of_all() {
    let mut world = World::new();
    for at in 0..4 {
        world.round("a", 1, Signal::Overloaded, (at * 10, at * 10 + 5));
    }
    assert_eq!(world.total, 4);
    for (name, at) in ["a", "b", "c"].into_iter().zip(0..) {
        world.round(name, 2, Signal::Congested, (100, 9_000 + at));
    }
    assert_eq!(world.total, 4);
}

#[test]
fn with_one_worker_no_limit_of_a_namespace_is_left_after_a_success() {
    let mut world = World::new();
    world.limiter.set_workers(1);
    world.round("a", 1, Signal::Congested, (0, 9_000));
    assert_eq!(world.limits.len(), 1);
    world.round("a", 1, Signal::Created, (10_000, 10_010));
    assert!(world.limits.is_empty());
}

#[test]
fn failures_of_other_kinds_and_syncs_that_asked_nothing_change_no_limit() {
    let mut world = World::new();
    world.round("a", 8, Signal::Congested, (0, 9_000));
    world.round("a", 100, Signal::Neutral, (9_100, 9_200));
    world.round("a", 100, Signal::Succeeded, (9_300, 9_300));
    assert_eq!(world.limit("a"), 4);
}

#[test]
fn namespaces_that_were_quiet_for_long_are_forgotten_with_their_limits() {
    let mut world = World::new();
    for at in 0..500 {
        world.round(&format!("n{at}"), 1, Signal::Congested, (at, at + 9_000));
    }
    for at in 0..2_000 {
        world.round(&format!("m{at}"), 1, Signal::Created, (700_000 + at, 700_005 + at));
    }
    assert!(world.limits.is_empty());
    assert!(world.limiter.namespaces.keys().all(|name| name.starts_with('m')));
    for at in 0..2_000 {
        world.round("z", 1, Signal::Created, (2_000_000 + at, 2_000_005 + at));
    }
    assert!(world.limiter.namespaces.len() <= 4_000);
}
