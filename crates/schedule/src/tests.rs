#![allow(clippy::unwrap_used)]

use super::*;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn parse(spec: &str) -> Schedule {
    Schedule::parse_standard(spec, Zone::UTC).unwrap()
}

#[test]
fn a_schedule_has_its_instants_and_no_others() {
    for (spec, instant, want) in [
        ("30 4 * * *", "2026-01-01T04:30:00Z", true),
        ("30 4 * * *", "2026-01-01T04:30:01Z", false),
        ("30 4 * * *", "2026-01-01T04:29:59.500Z", false),
        ("30 4 * * *", "2026-01-01T04:31:00Z", false),
        ("TZ=Asia/Tokyo 30 4 * * *", "2026-01-01T19:30:00Z", true),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-03-29T01:30:00Z", false),
        ("0 0 31 2 *", "2026-02-28T00:00:00Z", false),
        ("@every 90s", "2026-01-01T04:30:01Z", true),
        ("@every 90s", "2026-01-01T04:30:01.5Z", false),
    ] {
        assert_eq!(parse(spec).has(at(instant)), want, "{spec} at {instant}");
    }
}

#[test]
fn a_schedule_is_small() {
    assert!(size_of::<Schedule>() <= 64, "{} bytes", size_of::<Schedule>());
}

/// The case, the spec, the start of the search, the next instants (empty for never).
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

const NEXT: &[Row] = &[
    ("the next minute, not this one", "* * * * *", "2026-01-01T00:00:00Z", &["2026-01-01T00:01:00Z"]),
    ("a fraction of a second plays no part", "* * * * *", "2026-01-01T00:00:59.999Z", &["2026-01-01T00:01:00Z"]),
    ("a year ends", "30 4 1 1 *", "2026-01-01T04:30:00Z", &["2027-01-01T04:30:00Z"]),
    (
        "days are ORed when neither has a star",
        "0 0 13 * 5",
        "2026-01-10T00:00:00Z",
        &["2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"],
    ),
    ("days are ANDed when one has a star", "0 0 * * 5", "2026-01-10T00:00:00Z", &["2026-01-16T00:00:00Z"]),
    (
        "a star with a step is no star",
        "0 0 */10 * 5",
        "2026-01-10T00:00:00Z",
        &["2026-01-11T00:00:00Z", "2026-01-16T00:00:00Z"],
    ),
    ("a star anywhere in the list is a star", "0 0 5,* * 5", "2026-01-10T00:00:00Z", &["2026-01-16T00:00:00Z"]),
    ("a question mark is a star", "? ? ? ? ?", "2026-01-01T00:00:00Z", &["2026-01-01T00:01:00Z"]),
    (
        "a value with a step runs to the maximum",
        "50/5 0 * * *",
        "2026-01-01T00:50:00Z",
        &["2026-01-01T00:55:00Z", "2026-01-02T00:50:00Z"],
    ),
    ("a comma alone never fires", ", * * * *", "2026-01-01T00:00:00Z", &[]),
    (
        "an empty day field with a weekday fires on the weekday",
        "0 0 , * 5",
        "2026-01-10T00:00:00Z",
        &["2026-01-16T00:00:00Z"],
    ),
    ("31 February never comes", "59 23 31 2 *", "2026-01-01T00:00:00Z", &[]),
    ("a leap day is waited for", "0 0 29 2 *", "2025-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]),
    ("five years is the limit", "0 0 29 2 *", "2096-03-01T00:00:00Z", &[]),
    ("the limit is the end of a calendar year", "0 0 29 2 *", "2099-01-01T00:00:00Z", &["2104-02-29T00:00:00Z"]),
    (
        "every counts from the argument",
        "@every 90s",
        "2026-01-01T00:00:00.7Z",
        &["2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"],
    ),
    ("every is at least a second", "@every -5h", "2026-01-01T00:00:00Z", &["2026-01-01T00:00:01Z"]),
    ("a zone is read", "TZ=Asia/Kathmandu 0 0 * * *", "2026-01-01T00:00:00Z", &["2026-01-01T18:15:00Z"]),
    (
        "an hour that does not exist is skipped",
        "TZ=Europe/Berlin 30 2 * * *",
        "2026-03-28T12:00:00Z",
        &["2026-03-30T00:30:00Z"],
    ),
    (
        "an hour that exists twice fires twice",
        "TZ=Europe/Berlin 30 2 * * *",
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"],
    ),
    (
        "a day without midnight is fired on the wrong day",
        "TZ=America/Sao_Paulo 0 5 3 11 *",
        "2018-11-01T00:00:00Z",
        &["2018-11-03T08:00:00Z"],
    ),
    (
        "a rule goes on beyond the tables",
        "TZ=Europe/Berlin 0 12 1 1,7 *",
        "2437-01-02T00:00:00Z",
        &["2437-07-01T10:00:00Z", "2438-01-01T11:00:00Z"],
    ),
    ("the first year", "0 0 1 1 *", "0001-01-01T00:00:00Z", &["0002-01-01T00:00:00Z"]),
    ("the year 2999", "TZ=America/New_York 0 0 1 7 *", "2999-01-01T00:00:00Z", &["2999-07-01T04:00:00Z"]),
];

#[test]
fn next_instants() {
    for (name, spec, from, expected) in NEXT {
        let schedule = parse(spec);
        for (get, how) in [(Schedule::next as fn(&_, _) -> _, "next"), (Schedule::next_after, "next_after")] {
            let mut t = at(from);
            for expected in *expected {
                assert_eq!(get(&schedule, t), Some(at(expected)), "{name}: {how}({spec}, {t})");
                t = at(expected);
            }
            if expected.is_empty() {
                assert_eq!(get(&schedule, t), None, "{name}: {how}({spec}, {t})");
            }
        }
    }
}

#[test]
fn next_that_returns_the_same_time_is_skipped_by_the_wrapper() {
    let schedule = parse("TZ=Pacific/Chatham 59 3 * * *");
    let mut t = at("2026-04-03T00:00:00Z");
    let mut stood_still = false;
    for _ in 0..10 {
        let next = schedule.next_after(t).unwrap();
        assert!(next > t);
        stood_still |= schedule.next(t).unwrap() <= t;
        t = next;
    }
    assert!(stood_still, "the row shows nothing: next always moved");
}

#[test]
fn search_that_is_endless_upstream_returns_never() {
    let schedule = parse("TZ=Pacific/Apia 30 0 1-14 * *");
    let from = at("2011-12-29T19:59:36Z");
    assert_eq!(schedule.next(from), None);
    assert_eq!(schedule.next_after(from), Some(at("2011-12-31T10:30:00Z")));
}

#[test]
fn the_ends_of_time_give_none() {
    for spec in ["* * * * *", "@every 1s", "@every 2000000h", "TZ=Europe/Berlin 0 0 * * *", "0 0 31 12 *"] {
        let schedule = parse(spec);
        assert_eq!(schedule.next(DateTime::<Utc>::MAX_UTC), None, "{spec}");
        assert_eq!(schedule.next_after(DateTime::<Utc>::MAX_UTC), None, "{spec}");
        assert!(schedule.next_after(DateTime::<Utc>::MIN_UTC).is_some(), "{spec}");
    }
}
