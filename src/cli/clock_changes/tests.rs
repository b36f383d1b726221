#![allow(clippy::unwrap_used)]

use super::*;

fn schedule(text: &str, zone: &str) -> Schedule {
    Schedule::parse_standard(text, Zone::load(zone, Zone::UTC).unwrap()).unwrap()
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The effects within two years, each as the day of the change, `-` or `+`, and the first and the last time.
fn shown(text: &str, zone: &str) -> Vec<String> {
    let effects = effects(&schedule(text, zone), instant("2026-01-01T00:00:00Z"), instant("2028-01-01T00:00:00Z"));
    let show = |effect: Effect| {
        let [first, last] = [effect.times[0], *effect.times.last().unwrap()].map(|t| t.format("%H:%M").to_string());
        let sign = if effect.is_skip() { '-' } else { '+' };
        format!("{} {sign}{} {first} {last}", effect.times[0].format("%F"), effect.times.len())
    };
    effects.into_iter().map(show).collect()
}

#[test]
fn skipped_and_repeated_local_times_are_found() {
    let rows: [(&str, &str, &str, &[&str]); 11] = [
        (
            "Berlin skips 02:30 in spring and has it twice in autumn",
            "30 2 * * *",
            "Europe/Berlin",
            &[
                "2026-03-29 -1 02:30 02:30",
                "2026-10-25 +1 02:30 02:30",
                "2027-03-28 -1 02:30 02:30",
                "2027-10-31 +1 02:30 02:30",
            ],
        ),
        ("03:00 is there once each day", "0 3 * * *", "Europe/Berlin", &[]),
        ("01:59 too", "59 1 * * *", "Europe/Berlin", &[]),
        (
            "New York changes its clocks on other days",
            "0 2 * * *",
            "America/New_York",
            &["2026-03-08 -1 02:00 02:00", "2027-03-14 -1 02:00 02:00"],
        ),
        (
            "and repeats the hour before",
            "30 1 * * *",
            "America/New_York",
            &["2026-11-01 +1 01:30 01:30", "2027-11-07 +1 01:30 01:30"],
        ),
        (
            "Lord Howe leaves out half an hour",
            "15,45 2 * * *",
            "Australia/Lord_Howe",
            &["2026-10-04 -1 02:15 02:15", "2027-10-03 -1 02:15 02:15"],
        ),
        (
            "and repeats half an hour",
            "15,45 1 * * *",
            "Australia/Lord_Howe",
            &["2026-04-05 +1 01:45 01:45", "2027-04-04 +1 01:45 01:45"],
        ),
        ("of a schedule of minutes the whole hour", "*/5 * 29 3 *", "Europe/Berlin", &["2026-03-29 -12 02:00 02:55"]),
        ("only on the days that it names", "30 2 * * 1-5", "Europe/Berlin", &[]),
        ("UTC never changes", "30 2 * * *", "UTC", &[]),
        ("a duration knows no clock", "@every 90m", "Europe/Berlin", &[]),
    ];
    for (sentence, text, zone, want) in rows {
        assert_eq!(shown(text, zone), want, "{sentence}");
    }
}

#[test]
fn both_runs_of_a_repeated_local_time_are_marked() {
    let rows = [
        ("the first", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", Some(Twin::First)),
        ("the second", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", Some(Twin::Second)),
        ("the day before", "30 2 * * *", "Europe/Berlin", "2026-10-24T00:30:00Z", None),
        ("in spring", "30 3 * * *", "Europe/Berlin", "2026-03-29T01:30:00Z", None),
        ("half an hour, first", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", Some(Twin::First)),
        ("half an hour, second", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T15:15:00Z", Some(Twin::Second)),
        ("before the half hour", "15 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:15:00Z", None),
        ("a duration", "@every 30m", "Europe/Berlin", "2026-10-25T00:30:00Z", None),
    ];
    for (sentence, text, zone, t, want) in rows {
        assert_eq!(twin(&schedule(text, zone), instant(t)).map(|(which, _)| which), want, "{sentence}");
    }
}

#[test]
fn hourly_schedule_is_not_affected_by_clock_changes() {
    let berlin = schedule("30 2 * * *", "Europe/Berlin");
    let change = effects(&berlin, instant("2026-01-01T00:00:00Z"), instant("2026-06-01T00:00:00Z"))[0].change;
    for (text, want) in [("30 * * * *", true), ("*/7 * * * *", true), ("0 */2 * * *", false), ("0 0-22 * * *", false)] {
        assert_eq!(runs_in_every_hour(&schedule(text, "Europe/Berlin"), change), want, "{text}");
    }
}
