#![allow(clippy::unwrap_used)]
use chrono::TimeZone;
use proptest::prelude::*;

use super::*;

/// The rows of apimachinery's `TestHumanDuration` and its boundaries.
#[test]
fn durations_read_as_human_duration_prints_them() {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let rows = [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (1, "1s"),
        (70, "70s"),
        (119, "119s"),
        (120, "2m"),
        (190, "3m10s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (47 * MINUTE + 30, "47m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (5 * HOUR + 20 * MINUTE, "5h20m"),
        (8 * HOUR, "8h"),
        (47 * HOUR + 59 * MINUTE, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - HOUR, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 83 * DAY, "2y83d"),
        (8 * YEAR - DAY, "7y364d"),
        (8 * YEAR, "8y"),
        (8 * YEAR + 364 * DAY, "8y"),
    ];
    for (seconds, expected) in rows {
        assert_eq!(human_duration(TimeDelta::seconds(seconds)), expected, "{seconds} s");
    }
    assert_eq!(human_duration(TimeDelta::milliseconds(-1_900)), "0s", "seconds are cut off towards zero");
}

#[test]
fn times_are_read_as_go_reads_them() {
    type Outcome<T> = Result<T, T>;
    let micro = normalize_micro;
    let rows: [(&str, Outcome<String>, Outcome<&str>); 9] = [
        ("a fraction is cut off", normalize("2026-01-02T03:04:05.999Z"), Ok("2026-01-02T03:04:05Z")),
        ("an offset is taken off", normalize("2026-01-02T03:04:05+02:00"), Ok("2026-01-02T01:04:05Z")),
        (
            "a date alone is no time",
            normalize("2026-01-02"),
            Err(r#"parsing time "2026-01-02" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#),
        ),
        (
            "words are no time",
            normalize("now"),
            Err(r#"parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006""#),
        ),
        (
            "a zone is needed",
            normalize("2026-01-02T03:04:05"),
            Err(r#"parsing time "2026-01-02T03:04:05" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#),
        ),
        (
            "there is no thirteenth month",
            normalize("2026-13-02T03:04:05Z"),
            Err(r#"parsing time "2026-13-02T03:04:05Z": month out of range"#),
        ),
        (
            "February has no thirtieth",
            normalize("2026-02-30T03:04:05Z"),
            Err(r#"parsing time "2026-02-30T03:04:05Z": day out of range"#),
        ),
        ("six digits are kept", micro("2026-01-02T03:04:05.120000Z"), Ok("2026-01-02T03:04:05.120000Z")),
        (
            "fewer than six digits are refused",
            micro("2026-01-02T03:04:05.12Z"),
            Err(
                r#"parsing time "2026-01-02T03:04:05.12Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".12Z" as ".000000""#,
            ),
        ),
    ];
    for (name, got, expected) in rows {
        assert_eq!(got.as_deref().map_err(String::as_str), expected, "{name}");
    }
}

#[test]
fn a_missing_timestamp_has_no_age() {
    let now = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).unwrap();
    assert_eq!(since(None, now), "<unknown>");
    assert_eq!(since(Some("2026-01-02T03:04:00Z"), now), "5s");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}|[0-9TZ:.+-]{0,30}") {
        let _ = normalize(&text);
        let _ = normalize_micro(&text);
    }

    #[test]
    fn canonical_times_stay(seconds in 0i64..4_000_000_000) {
        let text = DateTime::from_timestamp(seconds, 0).unwrap().to_rfc3339_opts(SecondsFormat::Secs, true);
        prop_assert_eq!(normalize(&text).unwrap(), text);
    }
}
