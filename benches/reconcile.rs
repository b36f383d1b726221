//! The cost of a reconciliation that finds nothing to do.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use cronjob_controller::controller::reconcile::reconcile;

#[path = "reconcile/quiet.rs"]
mod quiet;

fn quiet(c: &mut Criterion) {
    let mut group = c.benchmark_group("quiet");
    for (name, observation) in quiet::observations() {
        group.bench_function(name, |b| b.iter(|| reconcile(black_box(&observation), black_box(quiet::now()))));
    }
    group.finish();
}

criterion_group!(benches, quiet);
criterion_main!(benches);
