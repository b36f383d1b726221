//! The cost of parsing, of the next instant and of finding the due start.

use std::hint::black_box;

use chrono::{DateTime, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use schedule::missed::{Observed, most_recent_schedule_time, next_requeue_time};
use schedule::{Calendar, ClockChanges, Evaluation, Exclusions, Lines, Schedule, Zone};

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
            b.iter(|| most_recent_schedule_time(black_box(&observed), from, &Evaluation::of(&schedule), true));
        });
    }
}

/// Three lines, which may cost 3.5 times what one costs, beside each of them alone and the same with all else.
fn calendars(c: &mut Criterion) {
    let from = at(1_793_000_000);
    let lines = ["30 2 * * 1-5", "0 12 1 * *", "15 9,17 * * 6"];
    let berlin = |spec: &str| Schedule::parse_standard(&format!("TZ=Europe/Berlin {spec}"), Zone::UTC).ok();
    for spec in lines {
        let Some(schedule) = berlin(spec) else { continue };
        c.bench_function(&format!("next {spec}, Berlin"), |b| b.iter(|| schedule.next_after(black_box(from))));
    }
    let three = Calendar { lines: Lines::parse(&lines.join(";")).ok(), ..Calendar::default() };
    let all = Calendar {
        clock_changes: ClockChanges::Once,
        exclude: Exclusions::parse("Sun,12-24/01-06").unwrap_or_default(),
        not_before: Some(from),
        ..three.clone()
    };
    for (name, calendar) in [("three lines", three), ("three lines, exclusions, once, bounds", all)] {
        let Some(schedule) = berlin(lines[0]).and_then(|own| own.with_calendar(&calendar).ok()) else { continue };
        c.bench_function(&format!("next {name}, Berlin"), |b| b.iter(|| schedule.next_after(black_box(from))));
    }
}

/// The texts that take the most steps of all that are known: as many lines as are allowed, at the times that cost most.
fn worst(c: &mut Criterion) {
    let lines = |line: &dyn Fn(usize) -> String| {
        let text: Vec<String> = (0..Lines::MOST).map(line).collect();
        Lines::parse(&text.join(";")).ok()
    };
    let day = 86_400;
    let rows = [
        (
            "lines within the hour of a clock change",
            "Pacific/Chatham",
            lines(&|at| format!("{} 3,{} * * *", 59 - at % 15, at / 15 + 4)),
            1_775_311_800,
            300 * day,
        ),
        (
            "only times that the clock skips, over twenty years",
            "America/New_York",
            lines(&|at| format!("{} 2 * 3 SUN#2", at % 60)),
            1_325_160_000,
            7_000 * day,
        ),
    ];
    for (name, zone, lines, now, age) in rows {
        let Ok(zone) = Zone::load(zone, Zone::UTC) else { continue };
        let own = Schedule::parse_standard("0 0 * * *", zone);
        let calendar = Calendar { lines, ..Calendar::default() };
        let Some(schedule) = own.ok().and_then(|own| own.with_calendar(&calendar).ok()) else { continue };
        let observed = Observed { creation: at(now - age), last_schedule: None, starting_deadline_seconds: None };
        c.bench_function(&format!("evaluate {name}"), |b| {
            b.iter(|| {
                let found =
                    most_recent_schedule_time(black_box(&observed), at(now), &Evaluation::of(&schedule), true).ok();
                next_requeue_time(&observed, at(now), &Evaluation::of(&schedule), found.as_ref())
            });
        });
    }
}

criterion_group!(benches, schedules, calendars, worst);
criterion_main!(benches);
