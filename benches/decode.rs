//! The cost of decoding the objects of a burst: watch lines and answers, as kube-apiserver writes them, with
//! managedFields. `IgnoredAny` over the same bytes is the floor: it validates the text and keeps nothing.
#![allow(missing_docs)]

#[path = "size/objects.rs"]
#[allow(dead_code)]
mod objects;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cronjob_controller::api::batch_v1::{CronJob, Job};
use cronjob_controller::api::job_template::job_from_template;
use cronjob_controller::api::{Interner, Object};
use schedule::Zone;
use serde::de::IgnoredAny;

fn texts() -> (String, String, String) {
    let due = chrono::DateTime::from_timestamp(1_795_000_020, 0).unwrap_or_default();
    let world = objects::World { cron_jobs: 1000, firing: 100, jobs_each: 3, due, policies: false, frozen: false };
    let status = r#"{"active":[{"kind":"Job","namespace":"team-07","name":"nightly-report-000007-29916667","uid":"3d1b6dd9-1a2c-4c55-9f6b-9d7c7a1d6b01","apiVersion":"batch/v1","resourceVersion":"10000007"}],"lastScheduleTime":"2026-11-18T11:07:00Z","lastSuccessfulTime":"2026-11-18T10:07:49Z"}"#;
    (world.cron_job(7, 1007, None), world.cron_job(7, 1007, Some(status)), world.job(21, 1021))
}

fn decode<T: Object>(c: &mut Criterion, name: &str, text: &str) {
    let interner = Interner::default();
    let mut group = c.benchmark_group("decode");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function(BenchmarkId::new("object", name), |b| {
        b.iter(|| T::decode(black_box(text), &interner).expect("the object is well formed"));
    });
    group.bench_function(BenchmarkId::new("floor", name), |b| {
        b.iter(|| serde_json::from_str::<IgnoredAny>(black_box(text)).expect("the object is JSON"));
    });
    group.finish();
}

fn all(c: &mut Criterion) {
    let (cron_job, active, job) = texts();
    decode::<CronJob>(c, "cronjob", &cron_job);
    decode::<CronJob>(c, "cronjob_active", &active);
    decode::<Job>(c, "job", &job);
    let parent = CronJob::decode(&cron_job, &Interner::default()).expect("the object is well formed");
    let slot = chrono::DateTime::from_timestamp(1_795_000_020, 0).unwrap_or_default();
    c.bench_function("job_from_template", |b| {
        b.iter(|| {
            job_from_template(black_box(&parent), slot, Zone::UTC, None, None).expect("the template makes a Job")
        });
    });
}

criterion_group!(benches, all);
criterion_main!(benches);
