#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashSet};

use chrono::{Datelike, NaiveDate, TimeDelta, Weekday};
use chrono_tz::TZ_VARIANTS;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::civil::SECONDS_PER_DAY;
use crate::missed::{Observed, most_recent_schedule_time, newest_starts, next_requeue_time};
use crate::{Evaluation, LineError, Zone};

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn unix(t: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(t, 0).unwrap()
}

fn zone(name: &str) -> Zone {
    Zone::load(name, Zone::UTC).unwrap()
}

fn parse(spec: &str, zone: Zone) -> Schedule {
    Schedule::parse_standard(spec, zone).unwrap()
}

fn once() -> Calendar {
    Calendar { clock_changes: ClockChanges::Once, ..Calendar::default() }
}

fn lines(text: &str) -> Calendar {
    Calendar { lines: Some(Lines::parse(text).unwrap()), ..Calendar::default() }
}

fn exclude(text: &str) -> Calendar {
    Calendar { exclude: Exclusions::parse(text).unwrap(), ..Calendar::default() }
}

fn once_without(text: &str) -> Calendar {
    Calendar { clock_changes: ClockChanges::Once, ..exclude(text) }
}

fn bounds(not_before: Option<&str>, not_after: Option<&str>) -> Calendar {
    Calendar { not_before: not_before.map(at), not_after: not_after.map(at), ..Calendar::default() }
}

/// The slots after `from` and up to `until`.
fn slots(schedule: &Schedule, from: i64, until: i64) -> Vec<i64> {
    let next = |t: DateTime<Utc>| schedule.next_after(t);
    let slots = std::iter::successors(next(unix(from)), |t| next(*t)).map(|t| t.timestamp());
    slots.take_while(|t| *t <= until).collect()
}

/// The case, the zone, the schedule, the calendar, the start, the next slots; a dot ends them.
type Row = (&'static str, &'static str, &'static str, Calendar, &'static str, &'static [&'static str]);

#[test]
fn slots_with_a_calendar() {
    let (berlin, apia, sao_paulo) = ("Europe/Berlin", "Pacific/Apia", "America/Sao_Paulo");
    let hours = "2026-01-01T00:00:00Z";
    let rows: &[Row] = &[
        (
            "a single time among those of a line, and one that meets one of them",
            berlin,
            "@daily",
            lines("0 12 * * *;@at 2026-02-01T18:00;@at 2026-02-02T12:00"),
            "2026-02-01T00:00:00Z",
            &["2026-02-01T11:00:00Z", "2026-02-01T17:00:00Z", "2026-02-02T11:00:00Z", "2026-02-03T11:00:00Z"],
        ),
        (
            "a gap moves to its end",
            berlin,
            "30 2 * * *",
            once(),
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        ),
        (
            "the first minute of an open day, before the excluded one comes again",
            "America/St_Johns",
            "*/20 0 * * *",
            once_without("Sat"),
            "2009-10-31T12:00:00Z",
            &["2009-11-01T02:30:00Z", "2009-11-01T03:50:00Z", "2009-11-01T04:10:00Z"],
        ),
        (
            "an open day whose first minute comes before the excluded day comes again",
            "America/St_Johns",
            "30 * * * *",
            exclude("2010-11-06"),
            "2010-11-06T02:30:00Z",
            &["2010-11-07T04:00:00Z", "2010-11-07T05:00:00Z"],
        ),
        (
            "29 February on a Friday, by its count",
            berlin,
            "@daily",
            Calendar { exclude: Exclusions::parse("Sat").unwrap(), ..lines("0 0 * 2 FRI#5") },
            "2026-11-27T00:00:00Z",
            &["2036-02-28T23:00:00Z", "2064-02-28T23:00:00Z"],
        ),
        (
            "the same by the wall clock",
            "Africa/Cairo",
            "@daily",
            Calendar { clock_changes: ClockChanges::Once, ..lines("0 0 * 2 FRI#5") },
            "2026-11-27T00:00:00Z",
            &["2036-02-28T22:00:00Z", "2064-02-28T22:00:00Z"],
        ),
        (
            "the same where midnights are skipped",
            "Africa/Cairo",
            "@daily",
            lines("0 0 * 2 FRI#5"),
            "2026-11-27T00:00:00Z",
            &["2036-02-28T22:00:00Z", "2064-02-28T22:00:00Z"],
        ),
        (
            "years of days that the clock skips",
            berlin,
            "30 2 24-31 3 *",
            exclude("Mon,Tue,Wed,Thu,Fri,Sat"),
            "2031-01-01T00:00:00Z",
            &["2041-03-24T01:30:00Z"],
        ),
        (
            "a bound after forty years",
            berlin,
            "@daily",
            Calendar { not_before: Some(at("2070-01-01T00:00:00Z")), ..lines("0 0 * * *; @at 2080-01-01T00:00") },
            "2026-11-27T00:00:00Z",
            &["2070-01-01T23:00:00Z"],
        ),
        (
            "several in a gap are one",
            berlin,
            "*/10 2 * * *",
            once(),
            "2026-03-29T00:30:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"],
        ),
        (
            "one in a gap and one at its end are one",
            berlin,
            "0 2,3 * * *",
            once(),
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"],
        ),
        (
            "an overlap has the first",
            berlin,
            "30 2 * * *",
            once(),
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        ),
        (
            "all 24 hours are as upstream",
            berlin,
            "30 * * * *",
            once(),
            "2026-10-25T00:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
        ),
        (
            "all 24 hours in two ranges, too",
            berlin,
            "30 0-11,12-23 * * *",
            once(),
            "2026-10-25T00:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
        ),
        (
            "a midnight that does not exist",
            sao_paulo,
            "0 0 * * *",
            once(),
            "2018-11-03T12:00:00Z",
            &["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"],
        ),
        (
            "a day that does not exist",
            apia,
            "0 5 * * *",
            once(),
            "2011-12-29T12:00:00Z",
            &["2011-12-29T15:00:00Z", "2011-12-30T15:00:00Z"],
        ),
        (
            "a weekday",
            "UTC",
            "0 6 * * *",
            exclude("Sat,Sun"),
            "2026-01-02T05:00:00Z",
            &["2026-01-02T06:00:00Z", "2026-01-05T06:00:00Z"],
        ),
        (
            "the date is local",
            "Asia/Tokyo",
            "0 6 * * *",
            exclude("2026-01-02"),
            "2026-01-01T00:00:00Z",
            &["2026-01-02T21:00:00Z"],
        ),
        (
            "Christmas of every year",
            "UTC",
            "0 0 24,25 12 *",
            exclude("12-25"),
            hours,
            &["2026-12-24T00:00:00Z", "2027-12-24T00:00:00Z"],
        ),
        ("every day of a year", "UTC", "* * * * *", exclude("2026-01-01/2026-12-31"), hours, &["2027-01-01T00:00:00Z"]),
        ("nothing is left", "UTC", "0 0 * * 1", exclude("Mon"), hours, &["."]),
        (
            "a leap day after an excluded one",
            "UTC",
            "0 0 29 2 *",
            exclude("2028-02-29"),
            hours,
            &["2032-02-29T00:00:00Z"],
        ),
        (
            "the date of the fields in a gap over midnight",
            "America/Nuuk",
            "30 23 * 3 *",
            Calendar { exclude: Exclusions::parse("2025-03-30").unwrap(), ..once() },
            "2025-03-29T12:00:00Z",
            &["2025-03-30T01:00:00Z", "2025-04-01T00:30:00Z"],
        ),
        (
            "that date alone",
            "America/Nuuk",
            "30 23 * 3 *",
            Calendar { exclude: Exclusions::parse("2025-03-29").unwrap(), ..once() },
            "2025-03-29T12:00:00Z",
            &["2025-03-31T00:30:00Z"],
        ),
        (
            "a time after a gap over midnight, at one instant with an excluded one in it",
            "America/Nuuk",
            "0 0,23 * * *",
            once_without("Sat"),
            "2027-03-27T03:00:00Z",
            &["2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z", "2027-03-29T01:00:00Z"],
        ),
        (
            "the same elsewhere",
            "America/Scoresbysund",
            "0 0,23 * * *",
            once_without("Sat"),
            "2027-03-27T03:00:00Z",
            &["2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z"],
        ),
        (
            "both of them excluded",
            "America/Nuuk",
            "0 0,23 * * *",
            once_without("Sat,Sun"),
            "2027-03-27T03:00:00Z",
            &["2027-03-29T01:00:00Z"],
        ),
        (
            "that time alone, in an inclusive bound",
            "America/Nuuk",
            "0 0,23 * * *",
            Calendar { not_after: Some(at("2027-03-28T01:00:00Z")), ..once_without("Sat") },
            "2027-03-27T03:00:00Z",
            &["2027-03-28T01:00:00Z", "."],
        ),
        (
            "a gap over midnight that ends after it",
            "America/Toronto",
            "15,45 0,23 * * *",
            once_without("1919-03-30"),
            "1919-03-30T12:00:00Z",
            &["1919-03-31T04:30:00Z", "1919-03-31T04:45:00Z"],
        ),
        (
            "an inclusive bound",
            "UTC",
            "0 * * * *",
            bounds(Some("2026-02-01T00:00:00Z"), None),
            hours,
            &["2026-02-01T00:00:00Z", "2026-02-01T01:00:00Z"],
        ),
        (
            "a fraction of a second counts",
            "UTC",
            "0 * * * *",
            bounds(Some("2026-02-01T00:00:00.5Z"), None),
            hours,
            &["2026-02-01T01:00:00Z"],
        ),
        (
            "an inclusive end",
            "UTC",
            "0 * * * *",
            bounds(None, Some("2026-01-01T02:00:00Z")),
            hours,
            &["2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z", "."],
        ),
        (
            "a bound in a decade",
            "UTC",
            "0 0 1 1 *",
            bounds(Some("2041-06-01T00:00:00Z"), None),
            hours,
            &["2042-01-01T00:00:00Z"],
        ),
        (
            "an interval keeps its pace before a bound",
            "UTC",
            "@every 7m",
            bounds(Some("2026-01-01T01:00:00Z"), None),
            hours,
            &["2026-01-01T01:03:00Z", "2026-01-01T01:10:00Z"],
        ),
        (
            "an interval ends",
            "UTC",
            "@every 7m",
            bounds(None, Some("2026-01-01T00:10:00Z")),
            hours,
            &["2026-01-01T00:07:00Z", "."],
        ),
        (
            "lines replace the schedule",
            "UTC",
            "* * * * *",
            lines("0 0 * * *;0 12 * * 4"),
            hours,
            &["2026-01-01T12:00:00Z", "2026-01-02T00:00:00Z"],
        ),
        (
            "lines are in the zone of the schedule",
            berlin,
            "* * * * *",
            lines("0 12 * * *"),
            hours,
            &["2026-01-01T11:00:00Z"],
        ),
        (
            "a single time in a gap",
            berlin,
            "* * * * *",
            lines("@at 2026-03-29T02:30"),
            hours,
            &["2026-03-29T01:00:00Z", "."],
        ),
        (
            "a single time in an overlap",
            berlin,
            "* * * * *",
            lines("@at 2026-10-25T02:30"),
            hours,
            &["2026-10-25T00:30:00Z", "."],
        ),
        (
            "a single time on a day that does not exist",
            apia,
            "* * * * *",
            lines("@at 2011-12-30T12:00"),
            "2011-01-01T00:00:00Z",
            &["."],
        ),
        (
            "an excluded single time",
            "UTC",
            "* * * * *",
            Calendar {
                exclude: Exclusions::parse("2026-02-01").unwrap(),
                ..lines("@at 2026-02-01T12:00;@at 2026-02-02T12:00")
            },
            hours,
            &["2026-02-02T12:00:00Z", "."],
        ),
        (
            "single times out of order",
            "UTC",
            "* * * * *",
            lines("@at 2026-02-02T12:00;@at 2026-02-01T12:00Z;@at 2026-02-02T12:00"),
            hours,
            &["2026-02-01T12:00:00Z", "2026-02-02T12:00:00Z", "."],
        ),
    ];
    for (name, zone_name, spec, calendar, from, expected) in rows {
        let schedule = parse(spec, zone(zone_name)).with_calendar(calendar).unwrap();
        let mut t = at(from);
        for want in *expected {
            let got = schedule.next_after(t);
            assert_eq!(got, schedule.next(t), "{name}: next after {t}");
            if *want == "." {
                assert_eq!(got, None, "{name}: after {t}");
            } else {
                assert_eq!(got, Some(at(want)), "{name}: after {t}");
                t = at(want);
            }
        }
    }
}

/// The first of January 2026 is a Thursday.
#[test]
fn a_schedule_with_a_calendar_has_its_slots_and_no_others() {
    let (daily, interval) = (parse("30 4 * * *", Zone::UTC), parse("@every 90s", Zone::UTC));
    let rows = [
        (&daily, lines("@at 2026-01-01T09:00"), "2026-01-01T09:00:00Z", true),
        (&daily, lines("@at 2026-01-01T09:00"), "2026-01-01T04:30:00Z", false),
        (&daily, exclude("Fri"), "2026-01-01T04:30:00Z", true),
        (&daily, exclude("Thu"), "2026-01-01T04:30:00Z", false),
        (&daily, bounds(Some("2026-01-01T04:30:00Z"), None), "2026-01-01T04:30:00Z", true),
        (&daily, bounds(Some("2026-01-01T04:30:01Z"), None), "2026-01-01T04:30:00Z", false),
        (&interval, bounds(None, Some("2026-01-01T00:00:00Z")), "2025-12-31T23:59:59Z", true),
        (&interval, bounds(None, Some("2026-01-01T00:00:00Z")), "2025-12-31T23:59:58.5Z", false),
        (&interval, bounds(None, Some("2026-01-01T00:00:00Z")), "2026-01-01T00:00:01Z", false),
    ];
    for (schedule, calendar, instant, want) in rows {
        let schedule = schedule.with_calendar(&calendar).unwrap();
        assert_eq!(schedule.has(at(instant)), want, "{calendar:?} at {instant}");
    }
}

#[test]
fn last_excluded_date_is_that_of_dates_alone() {
    let last = |text: &str| Exclusions::parse(text).unwrap().last_date();
    assert_eq!(last("2026-12-24/2027-01-01,2026-05-01"), NaiveDate::from_ymd_opt(2027, 1, 1));
    assert_eq!(last("2026-05-01,Sat"), None);
    assert_eq!(last("2026-05-01,12-25"), None);
}

#[test]
fn an_interval_has_bounds_and_no_other_calendar() {
    let every = parse("@every 7m", Zone::UTC);
    for calendar in [once(), exclude("Sat"), lines("0 0 * * *")] {
        assert_eq!(every.with_calendar(&calendar), Err(NoCalendar));
    }
    let bounded = every.with_calendar(&bounds(None, Some("2026-01-01T00:00:00Z"))).unwrap();
    assert_eq!((bounded.zone(), bounded.in_zone(zone("Asia/Tokyo")) == bounded), (None, true));
    assert_eq!(Lines::parse("@every 7m"), Err(LineError::Every("@every 7m".to_owned())));
}

#[test]
fn a_later_calendar_replaces_the_earlier_and_keeps_the_zone() {
    let tokyo = parse("0 6 * * *", zone("Asia/Tokyo"));
    let weekdays = tokyo.with_calendar(&exclude("Sat,Sun")).unwrap();
    assert_eq!(weekdays.zone(), Some(zone("Asia/Tokyo")));
    assert_eq!(weekdays.with_calendar(&exclude("Sat")), tokyo.with_calendar(&exclude("Sat")));
    assert_eq!(weekdays.in_zone(Zone::UTC), parse("0 6 * * *", Zone::UTC).with_calendar(&exclude("Sat,Sun")).unwrap());
}

#[test]
fn the_ends_of_time_give_none() {
    let all = Calendar { exclude: Exclusions::parse("Sat,02-29,2026-01-01").unwrap(), ..once() };
    for spec in ["* * * * *", "0 0 31 12 *", "0 0 29 2 *", "0 0 31 2 *", ", * * * *"] {
        for zone_name in ["UTC", "Europe/Berlin", "Pacific/Apia"] {
            for calendar in [&all, &exclude("Sun"), &lines("0 0 L * *;@at 2026-01-01T00:00")] {
                let schedule = parse(spec, zone(zone_name)).with_calendar(calendar).unwrap();
                assert_eq!(schedule.next_after(DateTime::<Utc>::MAX_UTC), None, "{spec}");
                schedule.next_after(DateTime::<Utc>::MIN_UTC);
                assert!(schedule.nominal(DateTime::<Utc>::MAX_UTC).next().is_none(), "{spec}");
            }
        }
    }
    let every = parse("@every 2000000h", Zone::UTC).with_calendar(&bounds(Some("2026-01-01T00:00:00Z"), None)).unwrap();
    assert_eq!(every.next_after(DateTime::<Utc>::MAX_UTC), None);
    assert!(every.next_after(DateTime::<Utc>::MIN_UTC) >= Some(at("2026-01-01T00:00:00Z")));
    let ends =
        Calendar { not_before: Some(DateTime::<Utc>::MIN_UTC), not_after: Some(DateTime::<Utc>::MAX_UTC), ..once() };
    assert!(parse("0 0 * * *", Zone::UTC).with_calendar(&ends).unwrap().next_after(DateTime::<Utc>::MIN_UTC).is_some());
}

#[test]
fn nominal_slots_are_listed_with_what_leaves_them_out() {
    let calendar = Calendar {
        exclude: Exclusions::parse("2026-10-27").unwrap(),
        not_before: Some(at("2026-10-24T12:00:00Z")),
        not_after: Some(at("2026-10-29T00:00:00Z")),
        ..once()
    };
    let schedule = parse("30 2 * * *", zone("Europe/Berlin")).with_calendar(&calendar).unwrap();
    let listed: Vec<_> = schedule.nominal(at("2026-10-24T00:00:00Z")).take(7).map(|n| (n.slot, n.left_out)).collect();
    let want = [
        ("2026-10-24T00:30:00Z", Some(LeftOut::TooEarly)),
        ("2026-10-25T00:30:00Z", None),
        ("2026-10-25T01:30:00Z", Some(LeftOut::Repeated)),
        ("2026-10-26T01:30:00Z", None),
        ("2026-10-27T01:30:00Z", Some(LeftOut::Excluded)),
        ("2026-10-28T01:30:00Z", None),
        ("2026-10-29T01:30:00Z", Some(LeftOut::TooLate)),
    ];
    assert_eq!(listed, want.map(|(slot, left_out)| (at(slot), left_out)));
    let plain = parse("30 2 * * *", zone("Europe/Berlin"));
    assert!(plain.nominal(at("2026-10-24T00:00:00Z")).take(9).all(|nominal| nominal.left_out.is_none()));
}

/// The clocks skip 23:00 to 23:59 of a Saturday.
#[test]
fn nominal_slot_is_excluded_only_if_all_times_at_its_instant_are() {
    let listed = |spec: &str, calendar: &Calendar| {
        let schedule = parse(spec, zone("America/Nuuk")).with_calendar(calendar).unwrap();
        let listed = schedule.nominal(at("2027-03-27T03:00:00Z"));
        listed.take(2).map(|nominal| (nominal.slot, nominal.left_out)).collect::<Vec<_>>()
    };
    let (gap_end, sunday, monday) =
        (at("2027-03-28T01:00:00Z"), at("2027-03-29T00:00:00Z"), at("2027-03-29T01:00:00Z"));
    let excluded = Some(LeftOut::Excluded);
    assert_eq!(listed("0 0,23 * * *", &once_without("Sat")), [(gap_end, None), (sunday, None)]);
    assert_eq!(listed("0 0,23 * * *", &once_without("Sun")), [(gap_end, None), (sunday, excluded)]);
    assert_eq!(listed("0 0,23 * * *", &once_without("Sat,Sun")), [(gap_end, excluded), (sunday, excluded)]);
    assert_eq!(listed("0 23 * * *", &once_without("Sat")), [(gap_end, excluded), (sunday, None)]);
    assert_eq!(listed("0 0 * * *", &once_without("Sat")), [(gap_end, None), (monday, None)]);
}

/// A schedule, and whether it has an hour and minute of a date.
type Spec = (&'static str, fn(i64, i64) -> bool, fn(NaiveDate) -> bool);

const SPECS: &[Spec] = &[
    ("30 2 * * *", |hour, minute| (hour, minute) == (2, 30), |_| true),
    ("0 0 * * *", |hour, minute| (hour, minute) == (0, 0), |_| true),
    ("*/20 0-22 * * *", |hour, minute| hour < 23 && minute % 20 == 0, |_| true),
    ("59 23 * * *", |hour, minute| (hour, minute) == (23, 59), |_| true),
    (
        "7,45 0,1,3 * * 0,6",
        |hour, minute| matches!((hour, minute), (0 | 1 | 3, 7 | 45)),
        |date| matches!(date.weekday(), Weekday::Sat | Weekday::Sun),
    ),
    (
        "1 0-4 1-15,L * *",
        |hour, minute| hour < 5 && minute == 1,
        |date| date.day() < 16 || date.succ_opt().unwrap().day() == 1,
    ),
];

/// Walks around every change of every zone from 1970 to 2037.
#[test]
fn each_wall_clock_time_has_one_slot_in_every_zone() {
    let (begin, end) = (unix(0), at("2038-01-01T00:00:00Z"));
    let (mut known, mut windows, mut compared) = (HashSet::new(), 0, 0);
    for tz in TZ_VARIANTS {
        let zone = zone(tz.name());
        let changes = std::iter::successors(zone.next_change(begin, end), |change| zone.next_change(change.at, end));
        let changes: Vec<_> = changes.map(|change| (change.at.timestamp(), change.before, change.after)).collect();
        // Many zones are other names of the same.
        if !known.insert(changes.clone()) {
            continue;
        }
        let schedule = |(spec, ..): &Spec| {
            let calendar = Calendar { clock_changes: ClockChanges::Once, ..lines(spec) };
            parse("@daily", zone).with_calendar(&calendar).unwrap()
        };
        let schedules: Vec<_> = SPECS.iter().map(schedule).collect();
        for (change, ..) in changes {
            windows += 1;
            let first = first_shown(zone, change);
            let core = change - SECONDS_PER_DAY..=change + SECONDS_PER_DAY;
            // Half of the schedules at a time, so that all are compared at changes in either direction.
            for (schedule, (spec, has_time, has_date)) in schedules.iter().zip(SPECS).skip(windows / 2 % 2).step_by(2) {
                let is_slot = |(wall, t): &&(i64, i64)| {
                    let minute = wall.rem_euclid(SECONDS_PER_DAY) / 60;
                    core.contains(t) && has_time(minute / 60, minute % 60) && has_date(unix(*wall).date_naive())
                };
                let mut want: Vec<i64> = first.iter().filter(is_slot).map(|(_, t)| *t).collect();
                want.dedup();
                assert_eq!(slots(schedule, core.start() - 1, *core.end()), want, "{tz} at {}: {spec}", unix(change));
                compared += want.len();
            }
        }
    }
    assert!(windows > 10_000 && compared > 250_000, "{windows} windows, {compared} slots");
}

/// With either date excluded, at every gap over midnight of every zone.
#[test]
fn time_in_a_gap_over_midnight_is_excluded_by_its_own_date() {
    let (begin, end) = (at("1900-01-01T00:00:00Z"), at("2038-01-01T00:00:00Z"));
    let (mut gaps, mut compared) = (0, 0);
    for zone in TZ_VARIANTS.map(|tz| zone(tz.name())) {
        let changes = std::iter::successors(zone.next_change(begin, end), |change| zone.next_change(change.at, end));
        for change in changes {
            let t = change.at.timestamp();
            let local = [change.before, change.after].map(|offset| unix(t + i64::from(offset)).date_naive());
            if local[0] >= local[1] {
                continue;
            }
            gaps += 1;
            for spec in ["0 0,23 * * *", "15,45 0,23 * * *", "59 23 * * *", "*/20 0-22 * * *", "7 0,22,23 * * 1-6"] {
                for excluded in [local[0].to_string(), local[1].to_string(), format!("{}/{}", local[0], local[1])] {
                    let calendar = Calendar { exclude: Exclusions::parse(&excluded).unwrap(), ..once() };
                    let schedule = parse(spec, zone).with_calendar(&calendar).unwrap();
                    let (from, until) = (t - 2 * SECONDS_PER_DAY, t + 2 * SECONDS_PER_DAY);
                    let want = wall_clock_slots(spec, &calendar.exclude, zone, from, until);
                    assert_eq!(slots(&schedule, from, until), want, "{spec} without {excluded} at {}", change.at);
                    compared += want.len();
                }
            }
        }
    }
    assert!(gaps > 300 && compared > 200_000, "{gaps} gaps, {compared} slots");
}

/// The wall-clock minutes of three days around a change, each with the instant at which it is first shown or passed over, in
/// order. The minutes of a date that is never shown are not among them.
fn first_shown(zone: Zone, change: i64) -> Vec<(i64, i64)> {
    let transitions = zone.transitions();
    let margin = SECONDS_PER_DAY * 3 / 2;
    let mut span = transitions.span(change - margin);
    let is_whole = |t: i64| t % 60 == 0;
    let step = if [change, span.offset.into(), transitions.span(change).offset.into()].into_iter().all(is_whole) {
        60
    } else {
        1
    };
    let (mut shown, mut dates) = (Vec::new(), Vec::new());
    let mut latest = change - margin + i64::from(span.offset) - 1;
    for t in (change - margin..change + margin).step_by(step) {
        if t >= span.end {
            span = transitions.span(t);
        }
        let wall = t + i64::from(span.offset);
        if dates.last() != Some(&(wall / SECONDS_PER_DAY)) {
            dates.push(wall / SECONDS_PER_DAY);
        }
        // The minutes that this instant shows for the first time or has passed over.
        let mut minute = (latest + 60) / 60 * 60;
        while minute <= wall {
            shown.push((minute, t));
            minute += 60;
        }
        latest = latest.max(wall);
    }
    shown.retain(|(wall, _)| dates.contains(&(wall / SECONDS_PER_DAY)));
    shown
}

fn any_zone() -> impl Strategy<Value = Zone> {
    select(&TZ_VARIANTS[..]).prop_map(|tz| zone(tz.name()))
}

/// A line of fields whose slots are not too many.
fn line() -> impl Strategy<Value = String> {
    let minute = select(vec!["0", "30", "*/20", "15,45", "59"]);
    let hour = select(vec!["*", "0", "2", "1-3", "0,23", "9-17", "*/6", "23"]);
    let dom = select(vec!["*", "*", "*", "1-14", "L", "15W", "1,L-2", "LW", "*/10"]);
    let month = select(vec!["*", "*", "*", "3,10", "1-6"]);
    let dow = select(vec!["*", "*", "*", "1-5", "0", "5L", "SUN#2", "6"]);
    (minute, hour, dom, month, dow).prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"))
}

/// A start in 1970 to 2037, often just before a change of the zone.
fn start(zone: Zone) -> impl Strategy<Value = i64> {
    (0..2_145_000_000i64, 0..200_000i64, any::<bool>()).prop_map(move |(t, back, near)| {
        let change = zone.next_change(unix(t), unix(t + 400 * SECONDS_PER_DAY)).filter(|_| near);
        change.map_or(t, |change| change.at.timestamp() - back)
    })
}

fn zone_and_start() -> impl Strategy<Value = (Zone, i64)> {
    any_zone().prop_flat_map(|zone| (Just(zone), start(zone)))
}

/// Whether all changes in the time that a search may see are between whole hours, by one at most, and far from midnight, and the
/// offset has no seconds. Elsewhere upstream's walk, and so all that is as upstream, depends on where it begins, since the walk
/// first goes back:
/// - to the midnight of the month's first day, which a change may have skipped (Danmarkshavn, January 1996);
/// - to the hour's local time, and where that comes twice to the second one, past another hour that comes twice if the clock goes
///   back by two (Troll);
/// - to a whole minute of UTC, which is none of the zone's (Monrovia until 1972).
fn is_regular(zone: Zone, from: i64) -> bool {
    // The walk sees the first day of the month.
    let (first, until) = (unix(from - 33 * SECONDS_PER_DAY), unix(from + 2 * SPAN + 400 * SECONDS_PER_DAY));
    if zone.transitions().span(first.timestamp()).offset % 60 != 0 {
        return false;
    }
    std::iter::successors(zone.next_change(first, until), |change| zone.next_change(change.at, until)).all(|change| {
        let [old, new] = [change.before, change.after].map(|offset| change.at.timestamp() + i64::from(offset));
        let of_day = |local: i64| local.rem_euclid(SECONDS_PER_DAY);
        let same_day = old.div_euclid(SECONDS_PER_DAY) == new.div_euclid(SECONDS_PER_DAY);
        let is_short = (change.after - change.before).abs() <= 3_600;
        same_day && is_short && [old, new].iter().all(|local| of_day(*local) % 3_600 == 0 && of_day(*local) > 0)
    })
}

/// Whether one of the lines has robfig's slots around a change.
fn is_upstream(text: &str, clock_changes: ClockChanges) -> bool {
    clock_changes == ClockChanges::Upstream || text.split('\n').any(|line| line.split(' ').nth(1) == Some("*"))
}

/// Whether nothing depends on upstream's walk where it is irregular.
fn is_certain(text: &str, clock_changes: ClockChanges, zone: Zone, from: i64) -> bool {
    !is_upstream(text, clock_changes) || is_regular(zone, from)
}

/// Each wall-clock time of a line from `from` on and up to `until`, on its own date. UTC has no gaps and no overlaps, so a
/// schedule in it lists wall-clock times.
fn wall_clock_slots(text: &str, exclude: &Exclusions, zone: Zone, from: i64, until: i64) -> Vec<i64> {
    let (zone, wall_clock) = (zone.transitions(), parse("@daily", Zone::UTC).with_calendar(&lines(text)).unwrap());
    let midnight = |day: i64| zone.first_instant(day * SECONDS_PER_DAY);
    let is_shown = |day: i64| midnight(day) < midnight(day + 1);
    let is_open =
        |local: &i64| is_shown(local.div_euclid(SECONDS_PER_DAY)) && !exclude.contains(unix(*local).date_naive());
    let local = slots(&wall_clock, from - 2 * SECONDS_PER_DAY, until + 2 * SECONDS_PER_DAY);
    let mut slots: Vec<i64> = local.into_iter().filter(is_open).map(|local| zone.first_instant(local)).collect();
    slots.dedup();
    slots.retain(|slot| (from + 1..=until).contains(slot));
    slots
}

fn exclusions() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        select(vec!["Sat", "sun", "Wed", "12-25", "12-24/01-06", "03-01/04-30", "02-29"]).prop_map(str::to_owned),
        (0..24_800i64, 0..90i64).prop_map(|(day, length)| {
            let date = NaiveDate::default() + TimeDelta::days(day);
            format!("{date}/{}", date + TimeDelta::days(length))
        }),
    ];
    prop::collection::vec(item, 1..5).prop_map(|items| items.join(","))
}

fn clock_changes() -> impl Strategy<Value = ClockChanges> {
    select(vec![ClockChanges::Upstream, ClockChanges::Once])
}

const SPAN: i64 = 40 * SECONDS_PER_DAY;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Sorted and without duplicates.
    #[test]
    fn a_union_is_the_merge_of_its_lines(
        texts in prop::collection::vec(line(), 1..5),
        clock_changes in clock_changes(),
        (zone, from) in zone_and_start(),
    ) {
        prop_assume!(is_certain(&texts.join("\n"), clock_changes, zone, from));
        let with = |text: &str| {
            let calendar = Calendar { clock_changes, ..lines(text) };
            parse("@daily", zone).with_calendar(&calendar).unwrap()
        };
        let merged: BTreeSet<i64> = texts.iter().flat_map(|text| slots(&with(text), from, from + SPAN)).collect();
        let union = slots(&with(&texts.join("\n")), from, from + SPAN);
        prop_assert!(union == merged.into_iter().collect::<Vec<_>>(), "{:?} in {} after {}", texts, zone, unix(from));
    }

    /// A line that robfig can read has robfig's slots.
    #[test]
    fn a_calendar_that_changes_nothing_changes_nothing(text in line(), (zone, from) in zone_and_start()) {
        if let Ok(plain) = Schedule::parse_standard(&text, zone) {
            let [own, line] = [Calendar::default(), lines(&text)].map(|calendar| plain.with_calendar(&calendar).unwrap());
            let want = slots(&plain, from, from + SPAN);
            prop_assert_eq!(&slots(&own, from, from + SPAN), &want, "{} in {} after {}", text, zone, unix(from));
            prop_assert_eq!(&slots(&line, from, from + SPAN), &want, "{} in {} after {}", text, zone, unix(from));
        }
    }

    /// Compared with all wall-clock times of the line, each on its own date; as upstream, with all its slots, each on the date
    /// of its instant.
    #[test]
    fn exclusions_leave_out_the_slots_of_their_dates(
        text in line(),
        excluded in exclusions(),
        clock_changes in clock_changes(),
        (zone, from) in zone_and_start(),
    ) {
        prop_assume!(is_certain(&text, clock_changes, zone, from));
        let base = Calendar { clock_changes, ..lines(&text) };
        let calendar = Calendar { exclude: Exclusions::parse(&excluded).unwrap(), ..base.clone() };
        let [base, schedule] = [&base, &calendar].map(|calendar| parse("@daily", zone).with_calendar(calendar).unwrap());
        let want = if is_upstream(&text, clock_changes) {
            let open = |t: &i64| !calendar.exclude.contains(zone.at(unix(*t)).date_naive());
            slots(&base, from, from + SPAN).into_iter().filter(open).collect()
        } else {
            wall_clock_slots(&text, &calendar.exclude, zone, from, from + SPAN)
        };
        let got = slots(&schedule, from, from + SPAN);
        prop_assert!(got == want, "{} without {} in {} after {}", text, excluded, zone, unix(from));
    }

    /// Bounds leave out what is outside; what is listed as not left out is what the search finds; and what was missed is what a
    /// walk finds.
    #[test]
    fn bounds_lists_and_missed_slots_agree_with_the_search(
        text in line(),
        excluded in exclusions(),
        clock_changes in clock_changes(),
        (zone, from) in zone_and_start(),
        (open, length) in (0..SPAN, 0..SPAN),
    ) {
        prop_assume!(is_certain(&text, clock_changes, zone, from));
        let unbounded = Calendar { clock_changes, exclude: Exclusions::parse(&excluded).unwrap(), ..lines(&text) };
        let (first, last) = (from + open, from + open + length);
        let calendar = Calendar { not_before: Some(unix(first)), not_after: Some(unix(last)), ..unbounded.clone() };
        let [unbounded, schedule] =
            [&unbounded, &calendar].map(|calendar| parse("@daily", zone).with_calendar(calendar).unwrap());
        let until = from + 2 * SPAN;
        let got = slots(&schedule, from, until);
        let want: Vec<i64> = slots(&unbounded, first - 1, last);
        prop_assert_eq!(&got, &want, "{} in {} after {}", text, zone, unix(from));
        let listed = schedule.nominal(unix(from)).take_while(|nominal| nominal.slot <= unix(until));
        let kept: Vec<i64> =
            listed.filter(|nominal| nominal.left_out.is_none()).map(|nominal| nominal.slot.timestamp()).collect();
        prop_assert_eq!(&kept, &got, "{} in {} after {}", text, zone, unix(from));
        let observed = Observed { creation: unix(from), last_schedule: None, starting_deadline_seconds: None };
        let missed = most_recent_schedule_time(&observed, unix(until), &Evaluation::of(&schedule), true);
        prop_assert_eq!(
            missed.map(|found| found.most_recent.map(|t| t.timestamp())).unwrap_or_default(),
            got.last().copied(),
            "{} in {} after {}", text, zone, unix(from)
        );
    }

    /// The slots of an `@every` are whole intervals from where they are counted, whatever the bounds are.
    #[test]
    fn bounds_of_an_interval_leave_out_what_is_outside_and_keep_its_pace(
        delay in prop_oneof![1..100i64, 1..2_000_000i64],
        from in 0..2_145_000_000i64,
        // In tenths of the interval.
        (open, length) in (prop::option::of(-50..1_500i64), prop::option::of(-100..1_500i64)),
        (half, most) in (any::<bool>(), 1..120usize),
    ) {
        let tenths = |tenths: i64| from + delay * tenths / 10;
        let (first, last) = (open.map(tenths), length.map(|length| tenths(open.unwrap_or_default() + length)));
        let fraction = |t: i64| unix(t) + TimeDelta::milliseconds(if half { 500 } else { 0 });
        let calendar = Calendar { not_before: first.map(fraction), not_after: last.map(fraction), ..Calendar::default() };
        let schedule = parse(&format!("@every {delay}s"), Zone::UTC).with_calendar(&calendar).unwrap();
        let is_within = |t: &i64| {
            let starts = first.is_none_or(|first| if half { *t > first } else { *t >= first });
            starts && last.is_none_or(|last| *t <= last)
        };
        let (all, until) = ((1..=400).map(|at| from + at * delay), from + 100 * delay);
        let (want, later): (Vec<i64>, Vec<i64>) = all.filter(is_within).partition(|t| *t <= until);
        prop_assert_eq!(&slots(&schedule, from, until), &want, "after {}", from);
        prop_assert!(want.iter().all(|t| schedule.has(unix(*t))));
        let listed: Vec<_> = schedule.nominal(unix(from)).take(100).collect();
        prop_assert!(listed.iter().map(|n| n.slot.timestamp()).eq((1..=100).map(|at| from + at * delay)));
        let kept = listed.iter().filter(|nominal| nominal.left_out.is_none()).map(|nominal| nominal.slot.timestamp());
        prop_assert!(kept.eq(want.iter().copied()), "listed after {}", from);
        for last_schedule in [None, Some(unix(from))] {
            let creation = unix(if last_schedule.is_some() { from - 7 } else { from });
            let observed = Observed { creation, last_schedule, starting_deadline_seconds: None };
            let newest = most_recent_schedule_time(&observed, unix(until), &Evaluation::of(&schedule), true);
            let newest = newest.map(|found| found.most_recent.map(|t| t.timestamp())).unwrap_or_default();
            prop_assert_eq!(newest, want.last().copied());
            let next = next_requeue_time(&observed, unix(until), &Evaluation::of(&schedule), None).map(|t| t.timestamp());
            prop_assert_eq!(next, later.first().copied(), "the next after {}", until);
        }
        let starts = newest_starts(&Evaluation::of(&schedule), unix(from), unix(until), most);
        let starts: Vec<i64> = starts.iter().map(DateTime::timestamp).collect();
        prop_assert_eq!(&starts, &want[want.len().saturating_sub(most)..]);
    }

    /// Also for times that chrono can hardly represent.
    #[test]
    fn next_after_increases_and_ends(
        text in line(),
        excluded in exclusions(),
        clock_changes in clock_changes(),
        zone in any_zone(),
        t in -8_000_000_000_000i64..8_000_000_000_000,
        interval in 1..i64::MAX / 1_000_000_000,
    ) {
        let calendar = Calendar { clock_changes, exclude: Exclusions::parse(&excluded).unwrap(), ..lines(&text) };
        let schedule = parse("@daily", zone).with_calendar(&calendar).unwrap();
        let begin = unix(t);
        let mut t = begin;
        for _ in 0..10 {
            let Some(next) = schedule.next_after(t) else { break };
            prop_assert!(next > t, "{text}: {next} after {t}");
            prop_assert!(schedule.next_after(next - TimeDelta::seconds(1)) == Some(next) || clock_changes == ClockChanges::Upstream);
            t = next;
        }
        let bounds = Calendar { not_before: Some(t), ..Calendar::default() };
        let every = parse(&format!("@every {interval}s"), zone).with_calendar(&bounds).unwrap();
        let next = every.next_after(begin);
        prop_assert!(next.is_none_or(|next| next > begin && next >= t), "@every {interval}s: {next:?} after {begin}");
    }
}
