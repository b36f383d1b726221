#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use chrono::TimeDelta;
use proptest::prelude::*;
use regex::Regex;

use super::*;
use crate::api::ObjectName;
use crate::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};

const DAILY: &str = "0 3 * * *";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn reading(annotations: &[(&str, &str)], schedule: &str) -> Option<PolicyReading> {
    PolicyReading::of(annotations.iter().copied(), schedule)
}

fn policy(annotations: &[(&str, &str)], schedule: &str) -> Result<Policy, PolicyError> {
    reading(annotations, schedule).unwrap().policy
}

#[test]
fn object_without_policies_has_no_reading() {
    let rows: [&[(&str, &str)]; 4] = [
        &[],
        &[("example.com/spread", "1h"), ("kubectl.kubernetes.io/last-applied-configuration", "{}")],
        &[(MANAGED_ANNOTATION, "true"), (SUSPEND_ANNOTATION, "true"), (COUNTED_FROM, "x")],
        &[
            ("cronjob-controller.dev/next-run", "x"),
            ("cronjob-controller.dev/last-failure", "x"),
            ("cronjob-controller.dev/backfill", "x"),
            ("cronjob-controller.dev/duration", "x"),
            ("cronjob-controller.dev/outcome", "x"),
        ],
    ];
    for annotations in rows {
        assert!(reading(annotations, DAILY).is_none(), "{annotations:?}");
    }
}

#[test]
fn unknown_annotations_are_listed_and_the_rest_works() {
    let annotations = [
        ("cronjob-controller.dev/splay", "1h"),
        (SPREAD, "1h"),
        ("example.com/spread", "1h"),
        ("cronjob-controller.dev/", "x"),
        ("cronjob-controller.dev/Spread", "1h"),
    ];
    let found = reading(&annotations, DAILY).unwrap();
    let unknown = ["cronjob-controller.dev/splay", "cronjob-controller.dev/", "cronjob-controller.dev/Spread"];
    assert_eq!(found.unknown.names().collect::<Vec<_>>(), unknown);
    assert!(found.policy.unwrap().spread().is_some());
    let alone = reading(&annotations[..1], DAILY).unwrap();
    assert_eq!((alone.unknown.names().count(), alone.unknown.more()), (1, 0));
    assert_eq!(alone.policy.unwrap().spread(), None);
}

#[test]
fn of_many_unknown_annotations_eight_names_and_a_count_are_kept() {
    for (number, kept, text) in
        [(8, 8, ", cronjob-controller.dev/x7"), (9, 8, "x7 and 1 more"), (4_500, 8, "x7 and 4492 more")]
    {
        let names: Vec<_> = (0..number).map(|i| format!("{PREFIX}x{i}")).collect();
        let found = PolicyReading::of(names.iter().map(|name| (name.as_str(), "1")), DAILY).unwrap().unknown;
        assert_eq!((found.names().count(), found.more()), (kept, number - kept));
        assert!(found.to_string().ends_with(text), "{found}");
    }
    let name = format!("{PREFIX}{}", "x".repeat(1_000));
    let found = reading(&[(&name, "1")], DAILY).unwrap().unknown;
    assert_eq!(found.names().map(str::len).collect::<Vec<_>>(), [86]);
}

#[test]
fn value_longer_than_its_limit_is_refused_and_the_limit_is_named() {
    let dates = |bytes: usize| ["2026-12-24"; 1_000].join(",")[..bytes].to_owned();
    let rows = [
        (EXCLUDE, dates(4_091), dates(4_102), "4096"),
        (SCHEDULE, "@at 2027-03-01T09:00;".repeat(780), "@at 2027-03-01T09:00;".repeat(781), "16384"),
        (SPREAD, "0s".repeat(8_191) + "1s", "0s".repeat(8_192) + "1s", "16384"),
    ];
    for (name, fits, too_long, most) in rows {
        assert!(reading(&[(name, &fits)], DAILY).unwrap().policy.is_ok(), "{name}");
        let error = reading(&[(name, &too_long)], DAILY).unwrap().policy.unwrap_err();
        let text = format!("(it has {} bytes, and at most {most} are read)", too_long.len());
        assert_eq!(error.annotation(), name);
        assert!(error.to_string().contains(&text) && error.to_string().len() < 700, "{error}");
    }
}

#[test]
fn long_lines_are_shown_in_part_and_read_as_a_whole() {
    let lines = (0..60).map(|minute| format!("{minute} {} * * *", "0,".repeat(60))).collect::<Vec<_>>().join(";");
    let found = reading(&[(SCHEDULE, &lines)], DAILY).unwrap().policy.unwrap();
    let shown = found.lines().unwrap();
    assert!(shown.len() < 1_100 && shown.ends_with('…'), "{shown}");
    let daily = Schedule::parse_standard(DAILY, Zone::UTC).unwrap();
    let slots = found.schedule(&daily).nominal("2026-03-02T00:00:00Z".parse().unwrap());
    assert!(slots.take(59).last().unwrap().slot == "2026-03-02T00:59:00Z".parse::<DateTime<Utc>>().unwrap());
}

#[test]
fn allowed_values_are_read_and_have_the_form_of_the_table() {
    let rows = [
        (SPREAD, "1s"),
        (SPREAD, "24h"),
        (SPREAD, "1h30m"),
        (SPREAD, "+1.5h"),
        (SPREAD, "1500ms"),
        (SPREAD, "2000000µs"),
        (DST, "once"),
        (DST, "upstream"),
        (EXCLUDE, "Sat"),
        (EXCLUDE, "sat, SUN ,12-25"),
        (EXCLUDE, "12-24/01-06,2026-12-24/2027-01-01,2026-05-01"),
        (NOT_BEFORE, "2027-03-01T09:00:00Z"),
        (NOT_AFTER, "2027-03-01T09:00:00.5+01:00"),
        (SCHEDULE, "0 3 * * *"),
        (SCHEDULE, "0 3 L-2,15W,LW * FRI#3,5L\n@daily;@at 2027-03-01T09:00+05:30\r\n\n"),
        (SCHEDULE, "?/5 */6 1-5 JAN-mar ?"),
    ];
    for (name, value) in rows {
        let read = policy(&[(name, value)], DAILY);
        assert!(read.is_ok(), "{name}: {value}: {read:?}");
        let form = ANNOTATIONS.iter().find(|known| known.name == name).unwrap().form;
        assert!(Regex::new(&format!("^(?:{form})$")).unwrap().is_match(value), "{name}: {value} against {form}");
    }
}

#[test]
fn lists_of_excluded_days_have_the_form_of_the_table_only_if_they_are_read() {
    let form = ANNOTATIONS.iter().find(|known| known.name == EXCLUDE).unwrap().form;
    let form = Regex::new(&format!("^(?:{form})$")).unwrap();
    for value in ["", ",", "Sat,", "Sat, ", ",Sat", "Sat,,Sun", "Sat Sun", "Saturday", "12-25/", "Sat", " Sat , 12-25 "]
    {
        assert_eq!(form.is_match(value), policy(&[(EXCLUDE, value)], DAILY).is_ok(), "{value:?}");
    }
}

#[test]
fn refused_values_are_named_with_the_reason_and_what_is_allowed() {
    let long = "0 3 * * *;".repeat(2_000);
    let (a_duration, a_time) =
        ("Use a duration from 1s to 24h, such as 15m", "Use a time in RFC 3339, such as 2027-03-01T09:00:00+01:00");
    let lines = "Use cron lines, separated by line ends or semicolons, without TZ= and @every, at most 64 of them with five fields";
    let rows = [
        (SPREAD, "", "spread: \"\" is not allowed (time: invalid duration \"\"). ", a_duration),
        (SPREAD, "5x", "spread: \"5x\" is not allowed (time: unknown unit \"x\" in duration \"5x\"). ", a_duration),
        (SPREAD, "999ms", "spread: \"999ms\" is not allowed (not between 1s and 24h). ", a_duration),
        (SPREAD, "24h1ns", "spread: \"24h1ns\" is not allowed (not between 1s and 24h). ", a_duration),
        (SPREAD, "-5m", "spread: \"-5m\" is not allowed (not between 1s and 24h). ", a_duration),
        (DST, "Once", "dst: \"Once\" is not allowed (no such value). ", "Use once or upstream"),
        (NOT_BEFORE, "Monday", "not-before: \"Monday\" is not allowed (no RFC 3339 time). ", a_time),
        (
            NOT_AFTER,
            "2027-03-01 09:00:00Z",
            "not-after: \"2027-03-01 09:00:00Z\" is not allowed (no RFC 3339 time). ",
            a_time,
        ),
        (
            NOT_AFTER,
            "2027-03-01T09:00:00",
            "not-after: \"2027-03-01T09:00:00\" is not allowed (no RFC 3339 time). ",
            a_time,
        ),
        (
            SCHEDULE,
            "0 3 * *",
            "schedule: \"0 3 * *\" is not allowed (\"0 3 * *\": expected exactly 5 fields, found 4: [0 3 * *]). ",
            lines,
        ),
        (
            SCHEDULE,
            "@every 5m",
            "schedule: \"@every 5m\" is not allowed (\"@every 5m\": @every has no calendar). ",
            lines,
        ),
    ];
    for (name, value, problem, advice) in rows {
        let error = policy(&[(name, value)], DAILY).unwrap_err();
        assert_eq!(error.to_string(), format!("cronjob-controller.dev/{problem}{advice}"));
    }
    let error = policy(&[(EXCLUDE, "Someday")], DAILY).unwrap_err().to_string();
    assert!(
        error.starts_with("cronjob-controller.dev/exclude: \"Someday\" is not allowed (\"Someday\" is neither"),
        "{error}"
    );
    let error = policy(&[(SCHEDULE, &long)], DAILY).unwrap_err().to_string();
    assert!(error.contains("…") && error.contains("(it has 20000 bytes, and at most 16384 are read)"), "{error}");
}

#[test]
fn combinations_without_a_meaning_are_refused() {
    let every = "@every in spec.schedule, which has no calendar";
    let rows = [
        (SCHEDULE, "0 3 * * *", "@every 5m", every),
        (DST, "once", "@every 5m", every),
        (DST, "upstream", "TZ=Europe/Berlin @every 5m", every),
        (EXCLUDE, "Sat", "@every 5m", every),
        (NOT_AFTER, "2027-02-28T23:59:59Z", DAILY, "a later cronjob-controller.dev/not-before"),
    ];
    for (name, value, schedule, with) in rows {
        let annotations = [(NOT_BEFORE, "2027-03-01T00:00:00Z"), (name, value)];
        let error = policy(&annotations, schedule).unwrap_err();
        assert_eq!(error.to_string(), format!("{name}: {value:?} is not allowed with {with}"));
        limits::tests::assert_is_on_the_page(name, with);
    }
    for annotations in [[(SPREAD, "5m")], [(NOT_BEFORE, "2027-03-01T00:00:00Z")], [(NOT_AFTER, "2027-03-01T00:00:00Z")]]
    {
        assert!(policy(&annotations, "@every 5m").is_ok(), "{annotations:?}");
    }
    let same = "2027-03-01T00:00:00Z";
    assert!(policy(&[(NOT_BEFORE, same), (NOT_AFTER, same)], DAILY).is_ok());
    // The API server refuses it; then only the sync can say so.
    assert!(policy(&[(DST, "once")], "nonsense").is_ok());
}

#[test]
fn policy_changes_the_schedule_that_it_is_asked_for() {
    let own = Schedule::parse_standard(DAILY, Zone::load("Europe/Berlin", Zone::UTC).unwrap()).unwrap();
    let friday = at("2026-03-27T12:00:00Z");
    let rows: [(&[(&str, &str)], &str); 6] = [
        (&[(DST, "upstream")], "2026-03-28T02:00:00Z"),
        (&[(EXCLUDE, "Sat")], "2026-03-29T01:00:00Z"),
        (&[(SCHEDULE, "30 2 * * SUN"), (DST, "once")], "2026-03-29T01:00:00Z"),
        (&[(SCHEDULE, "30 2 * * SUN")], "2026-04-05T00:30:00Z"),
        (&[(NOT_BEFORE, "2026-04-01T00:00:00Z")], "2026-04-01T01:00:00Z"),
        (&[(SCHEDULE, "@at 2026-04-01T09:00")], "2026-04-01T07:00:00Z"),
    ];
    for (annotations, want) in rows {
        let policy = policy(annotations, DAILY).unwrap();
        assert_eq!(policy.schedule(&own).next_after(friday), Some(at(want)), "{annotations:?}");
    }
    for annotations in [[(SPREAD, "5m")], [(DST, "upstream")]] {
        assert!(std::ptr::eq(policy(&annotations, DAILY).unwrap().schedule(&own), &raw const own), "{annotations:?}");
    }
}

fn offset(window: &str, seed: &str, namespace: &str, name: &str) -> i64 {
    let spread = Spread::new(parse_duration(window).unwrap()).unwrap();
    spread.offset(seed, &ObjectName::new(namespace, name)).num_seconds()
}

/// The numbers are another program's.
#[test]
fn offset_is_the_hash_modulo_the_window() {
    let rows = [
        ("1h", "", "default", "backup", 1_960),
        ("1s", "", "default", "backup", 0),
        ("24h", "", "kube-system", "backup", 1_338),
        ("60m", "blue", "default", "backup", 545),
        ("90.9s", "", "default", "report", 64),
    ];
    for (window, seed, namespace, name, want) in rows {
        assert_eq!(offset(window, seed, namespace, name), want, "{window} {seed}/{namespace}/{name}");
    }
}

/// χ² with 59 degrees of freedom is above 98.3 once in a thousand times; the names are always the same.
#[test]
fn offsets_of_ten_thousand_names_are_spread_evenly() {
    for (window, seconds) in [("60s", 60), ("10m", 600), ("1h", 3_600)] {
        let mut bins = [0_i32; 60];
        for number in 0..10_000 {
            let offset = offset(window, "", &format!("team-{}", number % 97), &format!("job-{number}"));
            bins[usize::try_from(offset * 60 / seconds).unwrap()] += 1;
        }
        let expected = 10_000.0 / 60.0;
        let chi_squared: f64 = bins.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
        assert!(chi_squared < 98.3, "{window}: {chi_squared}: {bins:?}");
    }
}

#[test]
fn due_and_nominal_times_stop_at_the_ends_of_the_calendar() {
    let day = TimeDelta::hours(24);
    assert_eq!(due(at("2027-03-01T09:00:00Z"), day), at("2027-03-02T09:00:00Z"));
    assert_eq!(nominal(at("2027-03-02T09:00:00Z"), day), at("2027-03-01T09:00:00Z"));
    assert_eq!(due(DateTime::<Utc>::MAX_UTC, day), DateTime::<Utc>::MAX_UTC);
    assert_eq!(nominal(DateTime::<Utc>::MIN_UTC, day), DateTime::<Utc>::MIN_UTC);
}

#[test]
fn table_of_annotations_has_each_name_once_and_a_pattern_that_compiles() {
    let names: HashSet<_> = ANNOTATIONS.iter().map(|known| known.name).collect();
    assert_eq!(names.len(), ANNOTATIONS.len());
    for known in ANNOTATIONS {
        assert!(known.name.starts_with(PREFIX), "{}", known.name);
        assert!(Regex::new(&format!("^(?:{})$", known.form)).is_ok(), "{}", known.name);
    }
    for name in TIMING.iter().chain(&LIMITS) {
        assert!(names.contains(name), "{name}");
    }
    // Those that this module does not read are the handover's, and those that commands write.
    let elsewhere = [MANAGED_ANNOTATION, SUSPEND_ANNOTATION];
    for known in ANNOTATIONS.iter().filter(|known| matches!(known.written_by, WrittenBy::User)) {
        let is_read = Collected::default().place(known.name).is_some();
        assert!(is_read || elsewhere.contains(&known.name), "{} is documented and not read", known.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn offset_is_constant_and_in_its_window(seconds in 1..=86_400i64, seed in ".{0,5}", namespace in "[a-z]{1,9}", name in "[a-z]{1,9}") {
        let window = format!("{seconds}s");
        let found = offset(&window, &seed, &namespace, &name);
        prop_assert!((0..seconds).contains(&found), "{found}");
        prop_assert_eq!(found, offset(&window, &seed, &namespace, &name));
    }

    /// With a window of a day, two seeds give one offset less often than once in ten thousand names.
    #[test]
    fn offsets_change_with_the_seed(seed in "[a-z]{1,9}", name in "[a-z]{1,9}") {
        let moved = (0..3).any(|number| {
            let name = format!("{name}{number}");
            offset("24h", &seed, "default", &name) != offset("24h", "", "default", &name)
        });
        prop_assert!(moved);
    }

    /// No text makes reading panic, and what is accepted has the form of the table.
    #[test]
    fn accepted_values_have_the_form_of_the_table(
        name in proptest::sample::select(&TIMING[..]),
        value in prop_oneof![".{0,30}", "[-+0-9a-zA-Z*?/,#@:;. TZLW]{0,30}", "[0-9.]{1,4}(s|m|h|ms)", "[0-9]{2}-[0-9]{2}(/[0-9]{2}-[0-9]{2})?,Sun"],
    ) {
        if policy(&[(name, &value)], DAILY).is_ok() {
            let form = ANNOTATIONS.iter().find(|known| known.name == name).unwrap().form;
            prop_assert!(Regex::new(&format!("^(?:{form})$")).unwrap().is_match(&value), "{}: {}", name, value);
        }
    }

    /// As if the clock of a CronJob with an offset went that much behind.
    #[test]
    fn slots_that_are_due_are_those_that_were_due_an_offset_ago(window in 1..=86_400i64, seconds in 0..400_000_000i64, name in "[a-z]{1,9}") {
        let offset = TimeDelta::seconds(offset(&format!("{window}s"), "", "default", &name));
        let now = DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap();
        let schedule = Schedule::parse_standard("*/7 * * * *", Zone::UTC).unwrap();
        let next = schedule.next_after(nominal(now, offset)).unwrap();
        prop_assert!(due(next, offset) > now && due(next, offset) <= now + TimeDelta::minutes(7));
    }
}
