#![allow(clippy::unwrap_used)]

use super::*;

fn load(name: &str) -> Zone {
    Zone::load(name, Zone::UTC).unwrap()
}

#[test]
fn names_are_found_as_go_finds_them() {
    let local = load("Asia/Tokyo");
    let rows: &[(&str, Option<&str>)] = &[
        ("", Some("UTC")),
        ("UTC", Some("UTC")),
        ("Local", Some("Asia/Tokyo")),
        ("local", None),
        ("utc", None),
        ("Europe/Berlin", Some("Europe/Berlin")),
        ("Europe//Berlin", Some("Europe/Berlin")),
        ("./Europe/./Berlin", Some("Europe/Berlin")),
        ("Europe/Berlin/", None),
        ("Europe/Berlin/.", None),
        ("/Europe/Berlin", None),
        ("\\Europe", None),
        ("Europe/../Europe/Berlin", None),
        ("Europe", None),
        ("Etc/GMT+12", Some("Etc/GMT+12")),
        ("GMT+5", None),
        ("posix/Europe/Berlin", Some("Europe/Berlin")),
        ("posix/UTC", Some("UTC")),
        ("posix/posix/UTC", None),
        ("posix/", None),
        ("Factory", Some("UTC")),
        ("right/UTC", None),
        ("localtime", None),
        ("posixrules", None),
    ];
    for (name, found) in rows {
        assert_eq!(Zone::load(name, local).ok().map(Zone::name), *found, "{name}");
    }
}

#[test]
fn the_process_zone_is_go_s() {
    /// The case, `TZ`, the target of /etc/localtime; the zone and its source.
    type Row = (&'static str, Option<&'static str>, Option<&'static str>, (&'static str, &'static str));
    let localtime = Some("/usr/share/zoneinfo/Europe/Berlin");
    let rows: &[Row] = &[
        ("the file when nothing is set", None, localtime, ("Europe/Berlin", "/etc/localtime")),
        ("UTC when there is nothing", None, None, ("UTC", "default")),
        ("a nameless copy is UTC", None, Some("/etc/localtime"), ("UTC", "default")),
        ("an empty variable is UTC", Some(""), localtime, ("UTC", "TZ")),
        ("a name", Some("Asia/Tokyo"), localtime, ("Asia/Tokyo", "TZ")),
        ("a name after a colon", Some(":Asia/Tokyo"), localtime, ("Asia/Tokyo", "TZ")),
        ("a file", Some("/usr/share/zoneinfo/Asia/Tokyo"), localtime, ("Asia/Tokyo", "TZ")),
        ("the file by name", Some(":/etc/localtime"), localtime, ("Europe/Berlin", "TZ")),
        ("an unknown name is UTC", Some("Nowhere"), localtime, ("UTC", "default")),
    ];
    for (name, variable, localtime, (zone, source)) in rows {
        let got = zone_of_process(*variable, localtime.map(Path::new), || None);
        assert_eq!((got.0.name(), got.1), (*zone, *source), "{name}");
    }
    let recorded = zone_of_process(None, Some(Path::new("/etc/localtime")), || Some("Asia/Tokyo".to_owned()));
    assert_eq!(recorded.0.name(), "Asia/Tokyo");
}

#[test]
fn local_times_are_printed_as_go_prints_them() {
    let t: DateTime<Utc> = "2026-07-01T12:00:00.9Z".parse().unwrap();
    assert_eq!(load("Asia/Kathmandu").rfc3339(t), "2026-07-01T17:45:00+05:45");
    assert_eq!(Zone::UTC.rfc3339(t), "2026-07-01T12:00:00Z");
    assert_eq!(load("Africa/Abidjan").rfc3339(t), "2026-07-01T12:00:00Z");
}

#[test]
fn no_transition_of_any_zone_is_overlooked() {
    // The stride divides neither a day nor a week, so that every zone is tested at every hour.
    for tz in TZ_VARIANTS {
        let transitions = Zone(tz).transitions();
        let mut t = BEGIN;
        while t < END {
            let expected = tz.offset_from_utc_datetime(&DateTime::from_timestamp(t, 0).unwrap().naive_utc()).fix();
            let span = transitions.span(t);
            assert_eq!(span.offset, expected.local_minus_utc(), "{tz} at {t}");
            assert!(span.start <= t && t < span.end, "{tz} at {t}");
            t += 1_234_567;
        }
    }
}

#[test]
fn every_later_month_has_a_model_year_with_the_same_weekdays() {
    for year in 2100..2500 {
        for month in 1..=12 {
            let weekday = civil::weekday(civil::to_days(year, month, 1));
            assert!(MODEL_YEARS.map(|y| civil::weekday(civil::to_days(y, month, 1))).any(|w| w == weekday));
        }
    }
}

#[test]
fn rule_applies_after_the_last_transition_of_the_table() {
    let berlin = load("Europe/Berlin").transitions();
    let rows = [("2100-03-28T00:59:59Z", 3_600), ("2100-03-28T01:00:00Z", 7_200), ("2100-10-31T01:00:00Z", 3_600)];
    for (t, offset) in rows {
        assert_eq!(berlin.span(t.parse::<DateTime<Utc>>().unwrap().timestamp()).offset, offset, "{t}");
    }
    // Morocco's moon-dependent table ends in 2087, and no rule follows.
    assert!(!load("Africa/Casablanca").transitions().recurs);
}

#[test]
fn local_times_in_gaps_and_overlaps_are_read_as_go_reads_them() {
    // The instants that a Go program printed with `time.Date`.
    let rows = [
        ("a gap, east of Greenwich", "Europe/Berlin", "2026-03-29T02:30:00Z", "2026-03-29T01:30:00Z"),
        ("a gap, west of it", "America/New_York", "2026-03-08T02:30:00Z", "2026-03-08T06:30:00Z"),
        ("an overlap, east", "Europe/Berlin", "2026-10-25T02:30:00Z", "2026-10-25T01:30:00Z"),
        ("an overlap, west", "America/New_York", "2026-11-01T01:30:00Z", "2026-11-01T05:30:00Z"),
        ("a gap at zero offset", "Europe/London", "2026-03-29T01:30:00Z", "2026-03-29T01:30:00Z"),
        ("an overlap at zero offset", "Europe/London", "2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z"),
        ("no midnight", "America/Sao_Paulo", "2018-11-04T00:00:00Z", "2018-11-04T02:00:00Z"),
        ("no day", "Pacific/Apia", "2011-12-30T00:00:00Z", "2011-12-29T10:00:00Z"),
    ];
    for (name, zone, local, expected) in rows {
        let [local, expected] = [local, expected].map(|t| t.parse::<DateTime<Utc>>().unwrap().timestamp());
        assert_eq!(load(zone).transitions().instant_of_local(local), expected, "{name}");
    }
}
