//! The cost of the work queue. The first two benches follow client-go's `BenchmarkQueue` and
//! `BenchmarkDelayingQueue_AddAfter`, so that the numbers are comparable.
//!
//! `cargo bench --bench workqueue` measures; `cargo test` runs everything once on small sizes.
#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SystemClock;
use chrono::{TimeDelta, Utc};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use cronjob_controller::workqueue::{Config, WorkQueue};
use tokio::runtime::{Builder, Runtime};

/// Small unless cargo asks for measurements.
fn size(full: u32) -> u32 {
    if std::env::args().any(|arg| arg == "--bench") { full } else { full.min(100) }
}

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().expect("a runtime can be built")
}

fn queue() -> WorkQueue<Arc<str>> {
    WorkQueue::new(Config::new("bench", Arc::new(SystemClock)))
}

fn keys(count: u32) -> Vec<Arc<str>> {
    (0..count).map(|key| Arc::from(format!("namespace/key-{key}"))).collect()
}

/// One worker adds, gets and finishes a hundred keys.
fn add_get_done(c: &mut Criterion) {
    let runtime = runtime(1);
    let keys = keys(100);
    let mut group = c.benchmark_group("add_get_done");
    group.throughput(Throughput::Elements(100));
    group.bench_function("one_worker", |b| {
        b.iter_batched(
            || runtime.block_on(async { queue() }),
            |queue| {
                runtime.block_on(async {
                    for key in &keys {
                        queue.add(Arc::clone(key));
                        let key = queue.get().await.expect("the queue runs");
                        queue.done(black_box(&key));
                    }
                });
                queue
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// Timers in a heap that already has many.
fn add_at(c: &mut Criterion) {
    let runtime = runtime(1);
    let count = size(100_000);
    let keys = keys(count);
    let mut group = c.benchmark_group("add_at");
    group.throughput(Throughput::Elements(u64::from(count)));
    group.sample_size(10);
    group.bench_function("all_keys", |b| {
        b.iter_batched(
            || runtime.block_on(async { queue() }),
            |queue| {
                let now = Utc::now();
                for (i, key) in (0i64..).zip(&keys) {
                    // Distributed over an hour.
                    queue.add_at(Arc::clone(key), now + TimeDelta::milliseconds(60_000 + i * 7919 % 3_600_000));
                }
                queue
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// All keys come due at one instant and four workers process them.
fn burst(c: &mut Criterion) {
    let runtime = runtime(2);
    let count = size(10_000);
    let keys = keys(count);
    let mut group = c.benchmark_group("burst");
    group.throughput(Throughput::Elements(u64::from(count)));
    group.sample_size(10);
    group.bench_function("four_workers", |b| {
        b.iter(|| {
            runtime.block_on(async {
                let queue = queue();
                for key in &keys {
                    queue.add_after(Arc::clone(key), Duration::from_millis(1));
                }
                let workers: Vec<_> = (0..4).map(|_| tokio::spawn(work(queue.clone()))).collect();
                while queue.waiting() > 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                queue.shut_down_with_drain().await;
                let mut total = 0;
                for worker in workers {
                    total += worker.await.expect("a worker does not panic");
                }
                assert_eq!(total, count);
            });
        });
    });
    group.finish();
}

async fn work(queue: WorkQueue<Arc<str>>) -> u32 {
    let mut done = 0;
    while let Some(key) = queue.get().await {
        queue.done(black_box(&key));
        done += 1;
    }
    done
}

criterion_group!(benches, add_get_done, add_at, burst);
criterion_main!(benches);
