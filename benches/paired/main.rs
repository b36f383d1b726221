//! Compares the schedule and the work queue with robfig/cron and client-go's queue: the same work, in one run, in
//! turns.
//!
//! `make bench-paired` measures one `next` for every valid vector of `tests/vectors/schedule.jsonl` from its instant,
//! on a schedule parsed beforehand. It measures the same for a few frequent schedules from many instants, and
//! client-go's own `BenchmarkQueue`. The Go half (`main.go` in this directory) runs as a child. Both halves measure in
//! turns, so that other load on the machine affects both. Of several rounds each side keeps its best, per vector.
//!
//! `cargo test` runs this half once on a few vectors, and needs no Go.
#![allow(clippy::cast_precision_loss, clippy::unwrap_used)]

mod classes;
mod go;
mod report;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apimachinery::clock::SystemClock;
use chrono::{DateTime, Utc};
use cronjob_controller::metrics::Registry;
use cronjob_controller::workqueue::{Config, QueueGroup, WorkQueue};
use schedule::{Schedule, Zone};
use serde::{Deserialize, Serialize};

use classes::Class;

/// One request to both halves.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Vector {
    schedule: String,
    from: DateTime<Utc>,
    #[serde(default, skip_serializing)]
    next: Option<Vec<Option<DateTime<Utc>>>>,
}

/// A vector with its class and both halves' times, in nanoseconds.
struct Pair {
    vector: Vector,
    class: Class,
    ours: f64,
    theirs: f64,
}

/// The amount of measurement.
struct Effort {
    rounds: usize,
    /// The shortest duration of one measurement.
    nanos: u64,
    /// Only every n-th vector.
    every: usize,
    queue_times: usize,
}

const FULL: Effort = Effort { rounds: 5, nanos: 20_000, every: 1, queue_times: 2_000 };
const SMALL: Effort = Effort { rounds: 1, nanos: 0, every: 40, queue_times: 2 };

fn main() {
    let measure = std::env::args().any(|arg| arg == "--bench");
    let effort = if measure { FULL } else { SMALL };
    let mut pairs: Vec<Pair> = vectors().step_by(effort.every).chain(frequent()).map(pair).collect();
    let mut go = measure.then(go::Half::start);
    let mut queue = [false, true].map(|metrics| report::Queue { metrics, ours: f64::INFINITY, theirs: f64::INFINITY });
    for _ in 0..effort.rounds {
        if let Some(go) = &mut go {
            let theirs = go.next(pairs.iter().map(|pair| &pair.vector), effort.nanos);
            for (pair, took) in pairs.iter_mut().zip(theirs) {
                pair.theirs = pair.theirs.min(took);
            }
            for queue in &mut queue {
                let name = if queue.metrics { "cronjob" } else { "" };
                queue.theirs = queue.theirs.min(go.queue(effort.queue_times, name));
            }
        }
        for pair in &mut pairs {
            pair.ours = pair.ours.min(time_next(&pair.vector, effort.nanos));
        }
        for queue in &mut queue {
            queue.ours = queue.ours.min(time_queue(effort.queue_times, queue.metrics));
        }
    }
    if go.is_some() {
        report::print(&pairs, &queue);
    } else {
        println!("{} vectors, each once; `make bench-paired` measures", pairs.len());
    }
}

fn pair(vector: (Option<&'static str>, Vector)) -> Pair {
    let (pattern, vector) = vector;
    let class = pattern.map_or_else(|| classes::classify(&vector), Class::Frequent);
    Pair { vector, class, ours: f64::INFINITY, theirs: f64::INFINITY }
}

/// The vectors that both sides accept and answer.
fn vectors() -> impl Iterator<Item = (Option<&'static str>, Vector)> {
    let text = include_str!("../../tests/vectors/schedule.jsonl");
    let rows = text.lines().map(|line| serde_json::from_str::<Vector>(line).expect("a vector is JSON"));
    rows.filter(|row| row.next.is_some()).map(|row| (None, row))
}

/// The most common schedules.
const FREQUENT: [&str; 9] = [
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "0 0 * * *",
    "30 3 * * 1-5",
    "0 0 1 * *",
    "TZ=Europe/Berlin 15,45 9-17 * * *",
    "TZ=America/New_York 0 2 * * *",
    "@every 90s",
];

/// The frequent schedules, from instants spread over two years.
fn frequent() -> impl Iterator<Item = (Option<&'static str>, Vector)> {
    let instants = (0..48).map(|i| DateTime::from_timestamp(1_767_225_600 + i * 1_327_217, 0).unwrap());
    let from = move |schedule: &'static str| {
        instants.clone().map(move |from| (Some(schedule), Vector { schedule: schedule.to_owned(), from, next: None }))
    };
    FREQUENT.into_iter().flat_map(from)
}

/// Repeats `work`, with increasing counts, until it takes `nanos` in total; returns the time of one repetition.
fn time(nanos: u64, mut work: impl FnMut()) -> f64 {
    let mut count: u32 = 1;
    loop {
        let start = Instant::now();
        for _ in 0..count {
            work();
        }
        let took = start.elapsed();
        if took >= Duration::from_nanos(nanos) {
            return took.as_nanos() as f64 / f64::from(count);
        }
        count *= 4;
    }
}

fn time_next(vector: &Vector, nanos: u64) -> f64 {
    let schedule = Schedule::parse_standard(&vector.schedule, Zone::UTC).expect("a valid vector parses");
    time(nanos, || {
        black_box(black_box(&schedule).next(black_box(vector.from)));
    })
}

/// client-go's `BenchmarkQueue` (util/workqueue/queue_test.go): a hundred times add, get and done on a fresh queue.
/// Returns the time for the hundred, in nanoseconds.
fn time_queue(times: usize, metrics: bool) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let keys: Vec<Arc<str>> = (0..100).map(|key| format!("key-{key}").into()).collect();
    let mut took = Duration::ZERO;
    for _ in 0..times {
        took += runtime.block_on(async {
            let queue = WorkQueue::new(Config::new("bench", Arc::new(SystemClock)));
            let group = || QueueGroup::register(&Registry::new(), "bench").expect("the registry is empty");
            let _counted = metrics.then(|| group().join(&queue));
            let start = Instant::now();
            for key in &keys {
                queue.add(Arc::clone(key));
                let key = queue.get().await.expect("the queue runs");
                queue.done(&key);
            }
            start.elapsed()
        });
    }
    took.as_nanos() as f64 / times as f64
}
