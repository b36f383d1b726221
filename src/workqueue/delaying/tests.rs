//! Timers at times that the test chooses.
#![allow(clippy::unwrap_used)]

use chrono::TimeDelta;

use super::*;

fn wall(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn drain(delays: &mut Delays<&'static str>, now: Instant, wall: DateTime<Utc>) -> Vec<&'static str> {
    std::iter::from_fn(|| delays.pop_due(now, wall)).map(|(key, _)| key).collect()
}

#[test]
fn timers_come_out_in_order_of_time_and_equal_ones_in_order_of_arrival() {
    let (start, noon) = (Instant::now(), wall("2026-01-01T12:00:00Z"));
    let mut delays = Delays::new();
    for (key, millis) in [("d", 300), ("b", 200), ("a", 100), ("c", 200)] {
        delays.add_after(key, Priority::Low, Duration::from_millis(millis), start);
    }
    assert_eq!(drain(&mut delays, start + Duration::from_millis(99), noon), [""; 0]);
    assert_eq!(drain(&mut delays, start + Duration::from_millis(200), noon), ["a", "b", "c"]);
    assert_eq!(drain(&mut delays, start + Duration::from_millis(900), noon), ["d"]);
    assert_eq!((delays.len(), delays.next_look(start, noon, WALL_SLICE)), (0, None));
}

#[test]
fn sooner_of_two_timers_of_one_kind_replaces_the_other() {
    let (start, noon) = (Instant::now(), wall("2026-01-01T12:00:00Z"));
    let seconds = Duration::from_secs;
    let mut delays = Delays::new();
    assert!(delays.add_after("x", Priority::Low, seconds(50), start), "the first is the soonest");
    assert!(!delays.add_after("x", Priority::Low, seconds(70), start), "a later one changes nothing");
    assert!(delays.add_after("x", Priority::Low, seconds(30), start), "a sooner one replaces it");
    assert!(!delays.add_after("y", Priority::Low, seconds(40), start), "another key behind it is not the soonest");
    assert!(delays.add_at("x", noon + TimeDelta::seconds(60)), "the wall timer lives beside the monotonic one");
    assert!(!delays.add_at("x", noon + TimeDelta::seconds(61)));
    let expected = Scheduled { after: Some(start + seconds(30)), at: Some(noon + TimeDelta::seconds(60)) };
    assert_eq!(delays.scheduled_for(&"x"), Some(expected));
    assert_eq!(delays.len(), 3);
    assert_eq!(drain(&mut delays, start + seconds(3600), noon), ["x", "y"]);
    assert_eq!(delays.scheduled_for(&"x"), Some(Scheduled { after: None, at: expected.at }));
    assert_eq!(drain(&mut delays, start, noon + TimeDelta::seconds(60)), ["x"]);
    assert_eq!(delays.scheduled_for(&"x"), None);
}

/// The row's description; the monotonic delay; the wall delay; how long to sleep.
type Row = (&'static str, Option<Duration>, Option<TimeDelta>, Option<Duration>);

#[test]
fn next_wake_up_is_the_soonest_timer_or_the_next_check_of_a_wall_timer() {
    let (start, noon) = (Instant::now(), wall("2026-01-01T12:00:00Z"));
    let rows: [Row; 8] = [
        ("nothing waits", None, None, None),
        ("a monotonic timer is slept through", Some(Duration::from_secs(90)), None, Some(Duration::from_secs(90))),
        ("a far wall timer is looked at after a slice", None, Some(TimeDelta::days(9)), Some(WALL_SLICE)),
        ("a near wall timer is met", None, Some(TimeDelta::milliseconds(400)), Some(Duration::from_millis(400))),
        ("a wall timer that is due is met at once", None, Some(TimeDelta::seconds(-5)), Some(Duration::ZERO)),
        ("of both the sooner: slice", Some(Duration::from_secs(90)), Some(TimeDelta::days(9)), Some(WALL_SLICE)),
        (
            "of both the sooner: monotonic",
            Some(Duration::from_millis(5)),
            Some(TimeDelta::days(9)),
            Some(Duration::from_millis(5)),
        ),
        ("the greatest delay is a century", Some(Duration::MAX), None, Some(Duration::from_secs(100 * 366 * 86_400))),
    ];
    for (name, after, at, expected) in rows {
        let mut delays = Delays::new();
        after.map(|after| delays.add_after("x", Priority::Low, after, start));
        at.map(|at| delays.add_at("x", noon + at));
        assert_eq!(delays.next_look(start, noon, WALL_SLICE), expected.map(|expected| start + expected), "{name}");
    }
}

#[test]
fn no_wall_time_is_too_far_away() {
    let start = Instant::now();
    for (at, now) in [
        (wall("9999-12-31T23:59:59Z"), wall("0001-01-01T00:00:00Z")),
        (DateTime::<Utc>::MAX_UTC, DateTime::<Utc>::MIN_UTC),
    ] {
        let mut delays = Delays::new();
        delays.add_at("x", at);
        assert_eq!(delays.next_look(start, now, WALL_SLICE), Some(start + WALL_SLICE));
        assert_eq!(delays.next_look(start, now, LONGEST_DELAY), Some(start + LONGEST_DELAY), "steps are told");
        assert_eq!(delays.next_look(start, at, WALL_SLICE), Some(start));
        assert_eq!(drain(&mut delays, start, now), [""; 0]);
        assert_eq!(drain(&mut delays, start, at), ["x"]);
        delays.add_at("x", now);
        assert_eq!(delays.next_look(start, at, WALL_SLICE), Some(start));
        assert_eq!(drain(&mut delays, start, at), ["x"]);
    }
}

#[test]
fn key_added_repeatedly_has_one_timer() {
    let (start, noon) = (Instant::now(), wall("2026-01-01T12:00:00Z"));
    let mut delays = Delays::new();
    for i in (1..10_000).rev() {
        delays.add_after("x", Priority::Low, Duration::from_secs(i), start);
        delays.add_at("x", noon + TimeDelta::seconds(i64::try_from(i).unwrap()));
    }
    assert_eq!((delays.after.queue.len(), delays.at.queue.len()), (1, 1));
    assert_eq!((delays.after.times.len(), delays.at.times.len()), (1, 1));
    delays.clear();
    assert_eq!(delays.len(), 0);
}

#[test]
fn when_the_wall_clock_is_set_back_every_wall_timer_is_due_in_order() {
    let (start, noon) = (Instant::now(), wall("2026-01-01T12:00:00Z"));
    let later = start + Duration::from_secs(10);
    let ran = noon + TimeDelta::seconds(10);
    let rows = [
        ("the clock runs", ran, false),
        ("it is set forward", ran + TimeDelta::minutes(10), false),
        ("it falls behind by as much as is let pass", ran - SET_BACK, false),
        ("it falls behind by more", ran - SET_BACK - TimeDelta::milliseconds(1), true),
        ("it is set back by a day", ran - TimeDelta::days(1), true),
        ("it is set back as far as can be", DateTime::<Utc>::MIN_UTC, true),
    ];
    for (name, shown, is_set_back) in rows {
        let mut delays = Delays::new();
        delays.look(start, noon);
        for (key, minutes) in [("c", 90), ("a", 30), ("b", 60)] {
            delays.add_at(key, noon + TimeDelta::minutes(minutes));
        }
        delays.add_after("retry", Priority::Low, Duration::from_secs(3600), start);
        delays.look(later, shown);
        let expected: &[&str] = if is_set_back { &["a", "b", "c"] } else { &[] };
        assert_eq!(drain(&mut delays, later, shown), expected, "{name}");
        delays.add_at("again", noon + TimeDelta::minutes(1));
        delays.look(later, shown);
        assert_eq!(drain(&mut delays, later, shown.min(noon)), [""; 0], "{name}: noticed once");
    }
}

/// The times are written out: they are the guarantee.
#[test]
fn wall_timers_are_due_after_the_clock_is_set_back_by_more_than_a_second() {
    let (start, noon) = (Instant::now(), wall("2026-01-01T12:00:00Z"));
    let rows = [(0, false), (900, false), (1_100, true), (20_000, true), (90_000, true), (1_500_000, true)];
    for (milliseconds, is_noticed) in rows {
        let mut delays = Delays::new();
        delays.look(start, noon);
        delays.add_at("x", noon + TimeDelta::hours(1));
        let shown = noon + TimeDelta::seconds(10) - TimeDelta::milliseconds(milliseconds);
        delays.look(start + Duration::from_secs(10), shown);
        let expected: &[&str] = if is_noticed { &["x"] } else { &[] };
        assert_eq!(drain(&mut delays, start + Duration::from_secs(10), shown), expected, "by {milliseconds} ms");
    }
}
