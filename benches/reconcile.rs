//! The cost of a reconciliation that finds nothing to do.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};

#[path = "reconcile/quiet.rs"]
mod quiet;

fn quiet(c: &mut Criterion) {
    let mut group = c.benchmark_group("quiet");
    for (name, observation) in quiet::observations() {
        group.bench_function(name, |b| b.iter(|| quiet::sync(black_box(&observation), black_box(quiet::now()))));
    }
    let (frozen, observation) = (quiet::frozen(), quiet::with_freeze());
    group.bench_function("in a frozen Namespace", |b| {
        b.iter(|| quiet::sync(black_box(&observation), black_box(quiet::now())));
    });
    group.bench_function("what a sync does before that", |b| b.iter(|| quiet::in_its_namespace(black_box(&frozen))));
    group.finish();
}

/// Whoever may create Jobs decides how many a CronJob has.
fn many(c: &mut Criterion) {
    let mut group = c.benchmark_group("running Jobs");
    for number in [100, 1_000, 10_000] {
        let observation = quiet::with_running(number);
        group.bench_function(number.to_string(), |b| {
            b.iter(|| quiet::first_decision(black_box(&observation), black_box(quiet::now())));
        });
    }
    group.finish();
}

criterion_group!(benches, quiet, many);
criterion_main!(benches);
