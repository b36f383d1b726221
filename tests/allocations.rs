//! Without changes, nothing is allocated. In a binary of its own, because the counting allocator is global.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use allocation_counter::measure;
use cronjob_controller::api::policy::PolicyReading;
use cronjob_controller::controller::plan::Outcome;
use schedule::{Calendar, ClockChanges, Exclusions, Lines, Schedule, Zone};

#[path = "../benches/reconcile/quiet.rs"]
mod quiet;

#[test]
fn a_sync_that_finds_nothing_to_do_allocates_nothing() {
    for (name, observation) in quiet::observations() {
        let decide = || quiet::sync(&observation, quiet::now());
        // Parses the schedule and reads the zone's table, once for each spec of the CronJob.
        let first = decide();
        assert!(first.status.is_none() && first.events.is_empty(), "{name}: {first:?}");
        assert!(matches!(first.outcome, Outcome::Requeue(_)) || name == "suspended", "{name}: {first:?}");
        let counted = measure(|| {
            black_box(decide());
        });
        assert_eq!(counted.count_total, 0, "{name}: {counted:?}");
    }
}

#[test]
fn a_search_for_the_next_instant_allocates_nothing() {
    for spec in ["* * * * *", "0 0 31 2 *", "TZ=Europe/Berlin 15,45 9-17 * * *", "TZ=Asia/Gaza 0 0 * * *", "@every 1h"]
    {
        let schedule = Schedule::parse_standard(spec, Zone::UTC).unwrap();
        schedule.next(quiet::now());
        let counted = measure(|| {
            black_box(schedule.next_after(black_box(quiet::now())));
        });
        assert_eq!(counted.count_total, 0, "{spec}: {counted:?}");
    }
}

#[test]
fn a_search_with_a_calendar_allocates_nothing() {
    let calendar = Calendar {
        lines: Some(Lines::parse("30 2 L,15W * *\n0 12 * * FRI#3;@at 2030-01-01T00:00").unwrap()),
        clock_changes: ClockChanges::Once,
        exclude: Exclusions::parse("Sat,12-24/01-06,2027-01-01/2027-06-30").unwrap(),
        ..Calendar::default()
    };
    let berlin = Schedule::parse_standard("TZ=Europe/Berlin @daily", Zone::UTC).unwrap();
    let schedule = berlin.with_calendar(&calendar).unwrap();
    schedule.next(quiet::now());
    let counted = measure(|| {
        black_box(black_box(&schedule).clone().next_after(black_box(quiet::now())));
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn reading_the_policies_of_an_object_without_any_allocates_nothing() {
    let annotations = [("example.com/team", "a"), ("cronjob-controller.dev/managed", "true")];
    let counted = measure(|| {
        assert!(black_box(PolicyReading::of(black_box(annotations), "@every 5m")).is_none());
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn counting_allocator_counts() {
    assert_eq!(measure(|| drop(black_box(Box::new(1)))).count_total, 1);
}
