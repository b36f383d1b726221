#![allow(clippy::unwrap_used)]

use super::*;
use crate::Zone;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn parse(spec: &str) -> Schedule {
    Schedule::parse_standard(spec, Zone::UTC).unwrap()
}

/// The case, the schedule, the last start, the deadline, now; the due start, the estimate, the requeue time.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    Option<i64>,
    &'static str,
    Option<&'static str>,
    Missed,
    Option<&'static str>,
);

const ROWS: &[Row] = &[
    (
        "nothing is due yet",
        "0 * * * *",
        "2026-01-01T10:00:00Z",
        None,
        "2026-01-01T10:59:59Z",
        None,
        Missed::None,
        Some("2026-01-01T11:00:00Z"),
    ),
    (
        "due at this very second",
        "0 * * * *",
        "2026-01-01T10:00:00Z",
        None,
        "2026-01-01T11:00:00Z",
        Some("2026-01-01T11:00:00Z"),
        Missed::None,
        Some("2026-01-01T12:00:00Z"),
    ),
    (
        "one missed, one due",
        "0 * * * *",
        "2026-01-01T10:00:00Z",
        None,
        "2026-01-01T12:30:00Z",
        Some("2026-01-01T12:00:00Z"),
        Missed::Few,
        Some("2026-01-01T13:00:00Z"),
    ),
    (
        "a hundred are few",
        "* * * * *",
        "2026-01-01T10:00:00Z",
        None,
        "2026-01-01T11:40:00Z",
        Some("2026-01-01T11:40:00Z"),
        Missed::Few,
        Some("2026-01-01T11:41:00Z"),
    ),
    (
        "a hundred and one are many",
        "* * * * *",
        "2026-01-01T10:00:00Z",
        None,
        "2026-01-01T11:41:00Z",
        Some("2026-01-01T11:41:00Z"),
        Missed::Many,
        Some("2026-01-01T11:42:00Z"),
    ),
    (
        "the deadline hides older starts but not the requeue",
        "0 * * * *",
        "2026-01-01T10:00:00Z",
        Some(60),
        "2026-01-01T12:30:00Z",
        None,
        Missed::None,
        Some("2026-01-01T13:00:00Z"),
    ),
    (
        "an uneven schedule after a night, which upstream loses",
        "15,45 9-17 * * *",
        "2026-01-01T17:45:00Z",
        None,
        "2026-01-05T09:20:00Z",
        Some("2026-01-05T09:15:00Z"),
        Missed::Many,
        Some("2026-01-05T09:45:00Z"),
    ),
    (
        "an uneven schedule in the middle of the night",
        "15,45 9-17 * * *",
        "2026-01-01T17:15:00Z",
        None,
        "2026-01-02T03:00:00Z",
        Some("2026-01-01T17:45:00Z"),
        Missed::None,
        Some("2026-01-02T09:15:00Z"),
    ),
    (
        "a short first interval before a long pause",
        "0,1 0 1 * *",
        "2026-01-01T00:01:00Z",
        None,
        "2026-06-20T00:00:00Z",
        Some("2026-06-01T00:01:00Z"),
        Missed::Many,
        Some("2026-07-01T00:00:00Z"),
    ),
    (
        "every second, ten years down",
        "@every 1s",
        "2016-01-01T00:00:00Z",
        None,
        "2026-01-01T00:00:00.5Z",
        Some("2026-01-01T00:00:00Z"),
        Missed::Many,
        Some("2026-01-01T00:00:01Z"),
    ),
    (
        "every counts on from the last start",
        "@every 7m",
        "2026-01-01T00:01:00Z",
        None,
        "2026-01-01T01:00:00Z",
        Some("2026-01-01T00:57:00Z"),
        Missed::Few,
        Some("2026-01-01T01:04:00Z"),
    ),
    (
        "every counts on from the deadline for what is due, and from the last start for the requeue",
        "@every 7m",
        "2026-01-01T00:01:00Z",
        Some(600),
        "2026-01-01T01:02:00Z",
        Some("2026-01-01T00:59:00Z"),
        Missed::None,
        Some("2026-01-01T01:04:00Z"),
    ),
    (
        "every minute since the year 1",
        "* * * * *",
        "0001-01-01T00:00:00Z",
        None,
        "2026-01-01T00:00:30Z",
        Some("2026-01-01T00:00:00Z"),
        Missed::Many,
        Some("2026-01-01T00:01:00Z"),
    ),
    (
        "a last start in 2999 waits for it",
        "0 0 * * *",
        "2999-01-01T00:00:00Z",
        None,
        "2026-01-01T00:00:00Z",
        None,
        Missed::None,
        Some("2999-01-02T00:00:00Z"),
    ),
    (
        "a clock in 2999",
        "0 0 29 2 *",
        "2026-01-01T00:00:00Z",
        None,
        "2999-01-01T00:00:00Z",
        Some("2996-02-29T00:00:00Z"),
        // Upstream counts at most the 292 years that its durations can hold.
        Missed::Few,
        None,
    ),
    (
        "a start that none follows within five years, an error upstream",
        "0 0 29 2 *",
        "2095-01-01T00:00:00Z",
        None,
        "2096-02-29T00:00:05Z",
        Some("2096-02-29T00:00:00Z"),
        Missed::None,
        None,
    ),
    (
        "no start within five years, where upstream hangs",
        "0 0 29 2 *",
        "2096-03-01T00:00:00Z",
        None,
        "2097-01-01T00:00:00Z",
        None,
        Missed::None,
        None,
    ),
    (
        "a deadline beyond all time hides nothing",
        "0 * * * *",
        "2026-01-01T10:00:00Z",
        Some(i64::MAX),
        "2026-01-01T12:30:00Z",
        Some("2026-01-01T12:00:00Z"),
        Missed::Few,
        Some("2026-01-01T13:00:00Z"),
    ),
    (
        "a negative deadline beyond all time hides everything",
        "0 * * * *",
        "2026-01-01T10:00:00Z",
        Some(i64::MIN),
        "2026-01-01T12:30:00Z",
        None,
        Missed::None,
        Some("2026-01-01T13:00:00Z"),
    ),
];

#[test]
fn due_starts_counts_and_requeues() {
    for (name, spec, last, deadline, now, due, missed, requeue) in ROWS {
        let observed = Observed {
            creation: at("2020-01-01T00:00:00Z"),
            last_schedule: Some(at(last)),
            starting_deadline_seconds: *deadline,
        };
        let schedule = parse(spec);
        let got = next_schedule_time(&observed, at(now), &Evaluation::of(&schedule));
        assert_eq!(got, Ok((due.map(at), *missed)), "{name}");
        assert_eq!(next_requeue_time(&observed, at(now), &Evaluation::of(&schedule), None), requeue.map(at), "{name}");
        for include in [true, false] {
            let known = most_recent_schedule_time(&observed, at(now), &Evaluation::of(&schedule), include).unwrap();
            assert_eq!(
                next_requeue_time(&observed, at(now), &Evaluation::of(&schedule), Some(&known)),
                requeue.map(at),
                "{name}"
            );
        }
    }
}

#[test]
fn requeue_of_a_known_newest_start_takes_one_search() {
    let (creation, now) = (at("1990-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"));
    for spec in ["30 2 29 2 *", "0 0 31 1,12 *", "TZ=Europe/Berlin 30 2 29 2 *"] {
        let schedule = parse(spec);
        let observed = Observed { creation, last_schedule: None, starting_deadline_seconds: None };
        let evaluation = Evaluation::of(&schedule);
        let newest = most_recent_schedule_time(&observed, now, &evaluation, true).unwrap().most_recent.unwrap();
        evaluation.next_after(newest);
        let most = evaluation.steps_taken();
        assert!(steps_of_evaluation(&observed, now, &schedule) <= most, "{spec}: {most}");
    }
}

#[test]
fn the_earliest_time_is_the_last_start_else_the_creation_else_the_deadline() {
    let schedule = parse("0 * * * *");
    let now = at("2026-01-01T12:30:00Z");
    let earliest = |last: Option<&str>, deadline, include| {
        let creation = at("2026-01-01T08:10:00Z");
        let observed = Observed { creation, last_schedule: last.map(at), starting_deadline_seconds: deadline };
        most_recent_schedule_time(&observed, now, &Evaluation::of(&schedule), include).unwrap().earliest
    };
    assert_eq!(earliest(None, None, true), at("2026-01-01T08:10:00Z"));
    assert_eq!(earliest(Some("2026-01-01T09:00:00Z"), None, true), at("2026-01-01T09:00:00Z"));
    assert_eq!(earliest(Some("2026-01-01T07:00:00Z"), None, true), at("2026-01-01T07:00:00Z"));
    assert_eq!(earliest(Some("2026-01-01T09:00:00Z"), Some(3600), true), at("2026-01-01T11:30:00Z"));
    assert_eq!(earliest(Some("2026-01-01T09:00:00Z"), Some(3600), false), at("2026-01-01T09:00:00Z"));
    assert_eq!(earliest(Some("2026-01-01T12:00:00Z"), Some(3600), true), at("2026-01-01T12:00:00Z"));
}

#[test]
fn a_schedule_that_never_fires_is_invalid_and_needs_no_timer() {
    for spec in ["59 23 31 2 *", ", * * * *", "0 0 30 feb ?"] {
        let observed =
            Observed { creation: at("2026-01-01T00:00:00Z"), last_schedule: None, starting_deadline_seconds: None };
        let schedule = parse(spec);
        let now = at("2026-01-02T00:00:00Z");
        assert_eq!(next_schedule_time(&observed, now, &Evaluation::of(&schedule)), Err(InvalidSchedule), "{spec}");
        assert_eq!(next_requeue_time(&observed, now, &Evaluation::of(&schedule), None), None, "{spec}");
    }
}

#[test]
fn the_ends_of_time_do_not_overflow() {
    let (min, max) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    for spec in ["* * * * *", "@every 1s", "@every 2562047h", "TZ=Europe/Berlin 15,45 9-17 29 2 *", "59 23 31 2 *"] {
        for (creation, now) in [(min, max), (max, min), (min, min), (max, max), (min, at("2026-01-01T00:00:00Z"))] {
            for starting_deadline_seconds in [None, Some(0), Some(i64::MIN), Some(i64::MAX)] {
                let observed = Observed { creation, last_schedule: None, starting_deadline_seconds };
                let schedule = parse(spec);
                if let Ok((Some(due), _)) = next_schedule_time(&observed, now, &Evaluation::of(&schedule)) {
                    assert!(due <= now);
                }
                next_requeue_time(&observed, now, &Evaluation::of(&schedule), None);
            }
        }
    }
}
