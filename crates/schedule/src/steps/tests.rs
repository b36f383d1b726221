#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use chrono_tz::TZ_VARIANTS;
use proptest::prelude::*;
use proptest::sample::select;

use crate::fields::Search;
use crate::missed::{
    Observed, most_recent_schedule_time, newest_start, newest_starts, next_requeue_time, steps_of_evaluation,
};
use crate::steps::Steps;
use crate::{Calendar, ClockChanges, Evaluation, Exclusions, Kind, Lines, Schedule, Zone};

/// The most steps of a search and of an evaluation, for any text and any time.
const OF_SEARCH: u32 = 20_000;
const OF_EVALUATION: u32 = 100_000;
/// The most lines of a schedule of which a hundred slots or fewer may wait. Such an evaluation has the same bound.
const LINES_OF_BACKLOG: usize = 16;

/// Starting deadlines, in seconds.
const DEADLINES: [Option<i64>; 4] = [None, Some(60), Some(200 * 86_400), Some(6_000 * 86_400)];

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn zone(name: &str) -> Zone {
    Zone::load(name, Zone::UTC).unwrap()
}

fn composite(zone: Zone, calendar: &Calendar) -> Schedule {
    Schedule::parse_standard("0 0 * * *", zone).unwrap().with_calendar(calendar).unwrap()
}

/// Different lines, of the given number.
fn lines(most: usize, line: impl Fn(usize) -> String) -> Lines {
    let text: Vec<String> = (0..most).map(line).collect();
    Lines::parse(&text.join(";")).unwrap()
}

/// Every day but the second Sundays of March, on which clocks go forward in the USA: of each year, or of one in 39.
fn all_but_gaps(step: usize) -> Exclusions {
    let (mut text, mut open) = (String::new(), NaiveDate::from_ymd_opt(2020, 1, 1).unwrap());
    for year in (2021..2600).step_by(step).take(60) {
        let march = NaiveDate::from_ymd_opt(year, 3, 1).unwrap();
        let sunday = NaiveDate::from_weekday_of_month_opt(march.year(), 3, Weekday::Sun, 2).unwrap();
        write!(text, "{open}/{},", sunday.pred_opt().unwrap()).unwrap();
        open = sunday.succ_opt().unwrap();
    }
    Exclusions::parse(&format!("{text}{open}/9999-12-31")).unwrap()
}

fn steps_of_next(schedule: &Schedule, t: DateTime<Utc>) -> u32 {
    let evaluation = Evaluation::of(schedule);
    evaluation.next_after(t);
    evaluation.steps_taken()
}

/// Schedules of `most` lines, with their names and zones.
fn hostile(most: usize) -> Vec<(&'static str, &'static str, Calendar)> {
    let working = (1..=31).map(|day| format!("{day}W")).chain((1..=25).map(|day| format!("L-{day}")));
    let many = working.collect::<Vec<_>>().join(",");
    let exclude = |text: &str| Exclusions::parse(text).unwrap();
    let none = Calendar::default;
    let date = |days: i64| NaiveDate::from_ymd_opt(2026, 1, 1).unwrap() + TimeDelta::days(days);
    let every_other: Vec<String> = (0..1_300).map(|at| date(2 * at).to_string()).collect();
    let new_york = "America/New_York";
    vec![
        (
            "the same days, open on days of a clock change 39 years apart",
            new_york,
            Calendar {
                lines: Some(lines(most, |at| format!("{} 2 {many} * *", at % 60))),
                exclude: all_but_gaps(39),
                ..none()
            },
        ),
        (
            "different days, the same exclusions",
            new_york,
            Calendar {
                lines: Some(lines(most, |at| format!("30 2 {}W,L-{} {} *", at % 31 + 1, at % 25 + 1, at % 12 + 1))),
                exclude: all_but_gaps(39),
                ..none()
            },
        ),
        (
            "open on days of a clock change of every year",
            new_york,
            Calendar {
                lines: Some(lines(most, |at| format!("{} 2 {}W,8-14 3 *", at % 60, at % 31 + 1))),
                exclude: all_but_gaps(1),
                ..none()
            },
        ),
        (
            "only days of a clock change",
            new_york,
            Calendar { lines: Some(lines(most, |at| format!("{} 2 * 3 SUN#2", at % 60))), ..none() },
        ),
        (
            "a date that the zone lacks",
            "Pacific/Apia",
            Calendar {
                lines: Some(lines(most, |at| format!("{} {} 30 12 *", at % 60, at / 60))),
                not_before: Some(at("2011-01-01T00:00:00Z")),
                not_after: Some(at("2011-12-31T23:00:00Z")),
                ..none()
            },
        ),
        (
            "times at which upstream stands still",
            "Pacific/Chatham",
            Calendar { lines: Some(lines(most, |at| format!("{} 3,{} * * *", 59 - at % 15, at / 15 + 4))), ..none() },
        ),
        (
            "a fifth Thursday of February by the wall clock",
            "Etc/GMT-8",
            Calendar {
                lines: Some(lines(most, |at| format!("{} 0,23 30 2 THU#5", at % 60))),
                clock_changes: ClockChanges::Once,
                ..none()
            },
        ),
        (
            "fifth Thursdays where midnights are skipped",
            "Africa/Cairo",
            Calendar {
                lines: Some(lines(most, |at| format!("{} 22-23,0-2 * 2,4,6,9,11 THU#5", at % 60))),
                exclude: exclude("Sun"),
                ..none()
            },
        ),
        (
            "fifth Thursdays that are the last day of February",
            "Africa/Cairo",
            Calendar { lines: Some(lines(most, |at| format!("{} * 31 2 THU#5", at % 60))), ..none() },
        ),
        (
            "29 February on one weekday",
            new_york,
            Calendar {
                lines: Some(lines(most, |at| format!("{} {} 29 2 *", at % 60, at / 60))),
                clock_changes: ClockChanges::Once,
                exclude: exclude("Mon,Tue,Wed,Thu,Fri,Sat"),
                ..none()
            },
        ),
        (
            "days that no month has on that weekday",
            new_york,
            Calendar { lines: Some(lines(most, |at| format!("{} {} {many},* * */7", at % 60, at / 60))), ..none() },
        ),
        (
            "changes at midnight",
            "America/Santiago",
            Calendar {
                lines: Some(lines(most, |at| format!("{} 0 {many} * *", at % 60))),
                exclude: all_but_gaps(39),
                ..none()
            },
        ),
        (
            "every other day excluded",
            new_york,
            Calendar {
                lines: Some(lines(most, |at| format!("{} 3 * * *", at % 60))),
                exclude: exclude(&every_other.join(",")),
                ..none()
            },
        ),
        (
            "bounds far away",
            new_york,
            Calendar {
                lines: Some(lines(most, |at| format!("{} 0 29 2 *", at % 60))),
                exclude: exclude("Mon"),
                not_before: Some(at("9999-01-01T00:00:00Z")),
                ..none()
            },
        ),
    ]
}

/// Times of clock changes, of dates that zones lack, and others.
const INSTANTS: [&str; 11] = [
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "2007-06-01T12:00:00Z",
    "2011-12-29T12:00:00Z",
    "2026-03-08T06:59:59Z",
    "2026-04-04T14:10:00Z",
    "2026-11-01T05:30:00Z",
    "2027-02-28T23:59:59Z",
    "2065-12-31T00:00:00Z",
    "2071-04-24T00:29:00Z",
    "2999-03-01T00:00:00Z",
];

#[test]
fn every_search_and_evaluation_has_few_steps_whatever_the_text_says() {
    for (name, zone_name, calendar) in hostile(Lines::MOST) {
        let schedule = composite(zone(zone_name), &calendar);
        for now in INSTANTS.map(at) {
            assert!(steps_of_next(&schedule, now) <= OF_SEARCH, "{name} at {now}: {}", steps_of_next(&schedule, now));
            for age in [TimeDelta::minutes(1), TimeDelta::days(300), TimeDelta::days(7_000)] {
                for deadline in DEADLINES {
                    let creation = now - age;
                    let observed = Observed { creation, last_schedule: None, starting_deadline_seconds: deadline };
                    let steps = steps_of_evaluation(&observed, now, &schedule);
                    assert!(
                        steps <= OF_EVALUATION,
                        "{name} at {now}, {age} old, with a deadline of {deadline:?}: {steps}"
                    );
                }
            }
        }
    }
}

/// What a sync looks for at most: the slot that is due, the slots that wait for it, whether there were more, and the next one.
#[test]
fn every_sync_has_few_steps_whatever_waits() {
    for (name, zone_name, calendar) in hostile(LINES_OF_BACKLOG) {
        let schedule = composite(zone(zone_name), &calendar);
        for now in INSTANTS.map(at) {
            for age in [TimeDelta::minutes(1), TimeDelta::days(300), TimeDelta::days(7_000)] {
                let observed =
                    Observed { creation: now - age, last_schedule: None, starting_deadline_seconds: Some(60) };
                for waiting in [1, 3, 10, 32, 50, 100] {
                    let evaluation = &Evaluation::of(&schedule);
                    let found = [true, false]
                        .map(|deadline| most_recent_schedule_time(&observed, now, evaluation, deadline).ok());
                    newest_starts(evaluation, now - age, now, waiting);
                    evaluation.next_after(now - age);
                    next_requeue_time(&observed, now, evaluation, found[1].as_ref());
                    let steps = evaluation.steps_taken();
                    assert!(steps <= OF_EVALUATION, "{name} at {now}, {age} old, {waiting} may wait: {steps}");
                }
            }
        }
    }
}

#[test]
fn whether_a_recurrence_ever_fires_is_searched_for_once() {
    let calendar = Calendar {
        lines: Some(lines(Lines::MOST, |at| format!("{} 3 6 1 *", at % 60))),
        exclude: Exclusions::parse("01-06,2026-01-06").unwrap(),
        ..Calendar::default()
    };
    let schedule = composite(zone("Europe/Berlin"), &calendar);
    let observed = Observed { creation: at(INSTANTS[4]), last_schedule: None, starting_deadline_seconds: None };
    let steps = || {
        let evaluation = Evaluation::of(&schedule);
        most_recent_schedule_time(&observed, at(INSTANTS[6]), &evaluation, true).unwrap_err();
        evaluation.steps_taken()
    };
    let first = steps();
    assert!(steps() < first, "{first}");
}

/// What is not counted is not bounded.
#[test]
fn each_part_of_a_search_counts_its_steps() {
    let midday = |text: &str| at(&format!("{text}T12:00:00Z"));
    let plain = |spec: &str| Schedule::parse_standard(spec, Zone::UTC).unwrap();
    let berlin = zone("Europe/Berlin");
    let with = |text: &str, exclude: &str, clock_changes| {
        let exclude = if exclude.is_empty() { Exclusions::default() } else { Exclusions::parse(exclude).unwrap() };
        composite(
            berlin,
            &Calendar { lines: Some(Lines::parse(text).unwrap()), exclude, clock_changes, ..Calendar::default() },
        )
    };
    let (upstream, once) = (ClockChanges::Upstream, ClockChanges::Once);
    let skipped = Calendar {
        lines: Some(Lines::parse("30 2 8-14 3 *").unwrap()),
        exclude: all_but_gaps(1),
        ..Calendar::default()
    };
    let skipped = composite(zone("America/New_York"), &skipped);
    let gaps = Calendar { lines: Some(Lines::parse("30 2 * 3 SUN#2").unwrap()), ..Calendar::default() };
    let gaps = composite(zone("America/New_York"), &gaps);
    let rows = [
        ("a month", plain("0 0 30 2 *"), midday("2026-03-01"), 4, 10),
        ("a walk", plain("TZ=Europe/Berlin 30 2 * * *"), midday("2026-03-28"), 3, 100),
        ("a search that stands still", plain("TZ=Pacific/Chatham 59 3 * * *"), at("2026-04-04T14:10:00Z"), 20, 500),
        ("a search that would be endless", plain("TZ=Pacific/Apia 0 0 30 12 *"), midday("2011-06-01"), 10, 1_000),
        ("a line", with("0 3 * * *; 0 4 * * *", "", upstream), midday("2026-05-01"), 2, 4),
        ("a line over a clock change", with("30 2 * * *", "", upstream), midday("2026-03-28"), 3, 100),
        ("a line by the wall clock", with("0 3 29 2 *", "", once), midday("2026-03-01"), 2, 10),
        ("an open day", with("0 3 * * *", "2026-05-01/2036-05-01", upstream), midday("2026-05-02"), 120, 140),
        (
            "a rule of exclusion",
            with("0 3 * * *", "Mon,Tue,Wed,Thu,Fri,Sat,2026-05-03,2026-05-10", upstream),
            midday("2026-05-01"),
            2,
            20,
        ),
        ("a walk over years", gaps, midday("2026-05-01"), 20, 60),
        ("days that the clock skips", skipped, midday("2026-05-01"), 40, 300),
        ("a day that is never open", with("0 3 6 1 *", "01-06", upstream), midday("2026-05-01"), 1, 10),
    ];
    for (name, schedule, from, least, most) in rows {
        let steps = steps_of_next(&schedule, from);
        assert!((least..=most).contains(&steps), "{name}: {steps}");
    }
}

#[test]
fn slots_that_wait_count_their_steps() {
    let schedule = composite(
        zone("Europe/Berlin"),
        &Calendar {
            lines: Some(lines(Lines::MOST, |at| format!("{} {} * * *", at % 60, 3 + at / 60))),
            ..Calendar::default()
        },
    );
    let evaluation = Evaluation::of(&schedule);
    let newest = newest_starts(&evaluation, at(INSTANTS[1]), at(INSTANTS[4]), 100);
    assert_eq!(newest.len(), 100);
    let least = 100 * u32::try_from(Lines::MOST).unwrap();
    assert!(evaluation.steps_taken() > least, "{}", evaluation.steps_taken());
}

#[test]
fn a_search_without_steps_ends() {
    for (name, zone_name, calendar) in hostile(Lines::MOST) {
        let schedule = composite(zone(zone_name), &calendar);
        for start in INSTANTS.map(at) {
            for limit in [0, 1, 10, 100, 500] {
                let evaluation = Evaluation::limited(&schedule, limit);
                evaluation.next_after(start);
                // Each line is asked once more at most.
                assert!(evaluation.steps_taken() <= limit, "{name}");
            }
        }
    }
}

/// The next start, minute by minute where the search stands still, and day by day where it would be endless.
fn step_by_step(schedule: &Schedule, t: i64) -> Option<i64> {
    let Kind::Fields(fields) = &schedule.0 else { panic!("no fields") };
    let mut from = t;
    for _ in 0..3_000 {
        match fields.next(from + 1, &mut Steps::new()) {
            Search::Found(next) if next > t => return Some(next),
            Search::Found(_) => from += 60,
            Search::Stuck(_) => from += 86_400,
            Search::Never => return None,
        }
    }
    None
}

#[test]
fn a_search_that_stands_still_goes_on_as_minute_by_minute() {
    let specs =
        ["59 3 * * *", "45 1 * * *", "0 0 * * *", "30 0 1-14 * *", "0 0 30 12 *", "*/20 0-3 * * *", "15,45 2 31 12 *"];
    for tz in TZ_VARIANTS {
        let changes = std::iter::successors(
            zone(tz.name()).next_change(at("1850-01-01T00:00:00Z"), at("2090-01-01T00:00:00Z")),
            |change| zone(tz.name()).next_change(change.at, at("2090-01-01T00:00:00Z")),
        );
        // Every change of every zone would take a minute.
        for change in changes.step_by(7) {
            for (spec, minutes) in specs.iter().zip([-95, -31, -1, 0, 17, 44, 90]) {
                let schedule = Schedule::parse_standard(spec, zone(tz.name())).unwrap();
                let t = (change.at + TimeDelta::minutes(minutes)).timestamp();
                let found = schedule.next_after(DateTime::from_timestamp(t, 0).unwrap()).map(|next| next.timestamp());
                assert_eq!(found, step_by_step(&schedule, t), "{tz}: {spec} after {} {minutes:+}", change.at);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_calendars_have_few_steps(
        parts in prop::collection::vec(
            (0..60u32, select(vec!["2", "0", "23", "1-3", "*", "3"]), select(vec!["*", "31", "15W", "L-3", "30W,L-30", "29", "*/31", "8-14"]),
                select(vec!["*", "2", "3", "10,11", "2,4,6,9,11"]), select(vec!["*", "0", "SUN#2", "1", "*/7"])),
            1..64,
        ),
        exclude in select(vec!["Mon", "Mon,Tue,Wed,Thu,Fri,Sat", "02-29", "2020-01-01/9999-12-31", "03-15/03-07", "01-01/12-31"]),
        clock_changes in select(vec![ClockChanges::Upstream, ClockChanges::Once]),
        tz in select(TZ_VARIANTS.to_vec()),
        t in -2_000_000_000i64..9_000_000_000,
    ) {
        let text: Vec<String> =
            parts.iter().map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}")).collect();
        let calendar = Calendar {
            lines: Some(Lines::parse(&text.join(";")).unwrap()),
            exclude: Exclusions::parse(exclude).unwrap(),
            clock_changes,
            ..Calendar::default()
        };
        let schedule = composite(zone(tz.name()), &calendar);
        let from = DateTime::from_timestamp(t, 0).unwrap();
        let steps = steps_of_next(&schedule, from);
        prop_assert!(steps <= OF_SEARCH, "{steps}");
        let until = from + TimeDelta::days(400);
        let next = schedule.next_after(from);
        prop_assert_eq!(schedule.next_until(from, until), next.filter(|next| *next <= until));
    }

    /// Many lines of few kinds, near the changes of a zone's clock.
    #[test]
    fn evaluations_of_random_calendars_have_few_steps(
        kinds in prop::collection::vec(
            (select(vec!["2", "0", "23", "1-3", "*", "0-3", "22-23,0-2"]), select(vec!["*", "31", "15W", "30W,L-30", "30", "8-14", "*/2"]),
                select(vec!["*", "2", "3", "4,9", "2,4,6,9,11"]), select(vec!["*", "0", "SUN#2", "FRI#5", "THU#5", "SAT,SUN"])),
            1..4,
        ),
        exclude in select(vec!["", "Mon", "Mon,Tue,Wed,Thu,Fri,Sat", "02-29", "2020-01-01/2060-12-31", "01-01/12-30"]),
        clock_changes in select(vec![ClockChanges::Upstream, ClockChanges::Once]),
        tz in select(TZ_VARIANTS.to_vec()),
        (anywhere, minutes) in (600_000_000i64..4_000_000_000, -1_500i64..1_500),
        age in select(vec![60, 86_400, 300 * 86_400, 7_000 * 86_400]),
        starting_deadline_seconds in select(DEADLINES.to_vec()),
    ) {
        let line = |at: usize| {
            let (hour, day, month, weekday) = kinds[at % kinds.len()];
            format!("{} {hour} {day} {month} {weekday}", at / kinds.len() % 60)
        };
        let exclude = if exclude.is_empty() { Exclusions::default() } else { Exclusions::parse(exclude).unwrap() };
        let schedule = composite(zone(tz.name()), &Calendar { lines: Some(lines(Lines::MOST, line)), exclude, clock_changes, ..Calendar::default() });
        let anywhere = DateTime::from_timestamp(anywhere, 0).unwrap();
        let change = zone(tz.name()).next_change(anywhere, at("2099-01-01T00:00:00Z"));
        let now = change.map_or(anywhere, |change| change.at + TimeDelta::minutes(minutes));
        let observed = Observed { creation: now - TimeDelta::seconds(age), last_schedule: None, starting_deadline_seconds };
        let steps = steps_of_evaluation(&observed, now, &schedule);
        prop_assert!(steps <= OF_EVALUATION, "{steps}");
    }

    #[test]
    fn the_newest_starts_are_those_of_a_walk_over_all(
        spec in select(vec!["* * 1-3 1 *", "*/7 9-17 * * 1-5", "0 3 * * *", "30 2 29 2 *", "15,45 9-17 1 * *", "0 0 30 2 *", "@every 9h7m", "@every 2m"]),
        length in 0..60_000_000i64,
        most in 1..101usize,
    ) {
        let schedule = Schedule::parse_standard(spec, Zone::UTC).unwrap();
        let until = at("2026-11-26T12:00:30Z");
        let after = until - TimeDelta::seconds(length);
        let all: Vec<_> = std::iter::successors(schedule.next_until(after, until), |last| schedule.next_until(*last, until)).collect();
        let want = &all[all.len().saturating_sub(most)..];
        prop_assert_eq!(newest_starts(&Evaluation::of(&schedule), after, until, most), want, "{} after {}", spec, after);
        prop_assert_eq!(newest_start(&Evaluation::of(&schedule), after, until), all.last().copied());
    }
}

#[test]
fn the_newest_starts_of_a_burst_long_ago_take_few_searches() {
    let all = ["* * * 1 *", "*/2 0-11 1-7 2 *", "@every 1s"];
    for spec in all {
        let schedule = Schedule::parse_standard(spec, Zone::UTC).unwrap();
        let (after, until) = (at("2020-01-01T00:00:00Z"), at("2026-11-26T12:00:00Z"));
        let newest = newest_starts(&Evaluation::of(&schedule), after, until, 100);
        assert_eq!(newest.len(), 100, "{spec}");
        assert_eq!(newest.back().copied(), newest_start(&Evaluation::of(&schedule), after, until), "{spec}");
    }
}
