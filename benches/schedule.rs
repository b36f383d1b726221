//! The cost of parsing, of the next instant and of finding the due start.

use std::hint::black_box;

use chrono::{DateTime, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use schedule::missed::{Observed, most_recent_schedule_time};
use schedule::{Schedule, Zone};

const SPECS: &[&str] = &[
    "* * * * *",
    "*/5 * * * *",
    "0 3 * * *",
    "30 6-16/4 * * 1-5",
    "0 0 1 1 *",
    "0 0 29 2 *",
    "59 23 31 2 *",
    "TZ=America/New_York 30 2 * * *",
    "TZ=Europe/Berlin 15,45 9-17 * * 1-5",
    "@every 90s",
];

fn at(unix: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(unix, 0).unwrap_or_default()
}

fn schedules(c: &mut Criterion) {
    let from = at(1_793_000_000);
    for spec in SPECS {
        c.bench_function(&format!("parse {spec}"), |b| b.iter(|| Schedule::parse_standard(black_box(spec), Zone::UTC)));
        let Ok(schedule) = Schedule::parse_standard(spec, Zone::UTC) else { continue };
        c.bench_function(&format!("next {spec}"), |b| b.iter(|| schedule.next(black_box(from))));
        // Ten years of downtime.
        let observed = Observed { creation: at(1_477_000_000), last_schedule: None, starting_deadline_seconds: None };
        c.bench_function(&format!("missed {spec}"), |b| {
            b.iter(|| most_recent_schedule_time(black_box(&observed), from, &schedule, true));
        });
    }
}

criterion_group!(benches, schedules);
criterion_main!(benches);
