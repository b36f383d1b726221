//! Property tests of the schedule: against the `cron` crate, and of the module's own guarantees.
//!
//! The `cron` crate is no replacement: it requires six fields, counts Sunday as 1, ANDs the two day fields, and has no
//! descriptors and no zones. But it is independent, so where both give an expression the same meaning they must agree.
//! The test prints how many of the vectors' expressions the crate interprets differently.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use schedule::missed::{Observed, most_recent_schedule_time};
use schedule::{Evaluation, Schedule, Zone};

/// One item of a field's list, in the whole grammar.
fn item(min: u32, max: u32, names: &'static [&'static str]) -> BoxedStrategy<String> {
    let range = move || (min..=max).prop_flat_map(move |low| (Just(low), low..=max));
    let mut kinds = vec![
        (min..=max).prop_map(|n| n.to_string()).boxed(),
        range().prop_map(|(low, high)| format!("{low}-{high}")).boxed(),
        (range(), 1u32..40).prop_map(|((low, high), step)| format!("{low}-{high}/{step}")).boxed(),
        ((min..=max), 1u32..70).prop_map(|(n, step)| format!("{n}/{step}")).boxed(),
        (1u32..70).prop_map(|step| format!("*/{step}")).boxed(),
        select(vec!["*".to_owned(), "?".to_owned(), String::new()]).boxed(),
    ];
    if !names.is_empty() {
        kinds.push(select(names).prop_map(str::to_owned).boxed());
    }
    Union::new(kinds).boxed()
}

fn field(min: u32, max: u32, names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let list = prop::collection::vec(item(min, max, names), 1..4).prop_map(|items| items.join(","));
    // An empty field would remove a field; a comma replaces it.
    prop_oneof![Just("*".to_owned()), list.prop_map(|list| if list.is_empty() { ",".to_owned() } else { list })]
}

const MONTHS: &[&str] = &["jan", "Feb", "MAR", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "Mon", "TUE", "wed", "thu", "fri", "sat"];

fn five_fields() -> impl Strategy<Value = String> {
    (field(0, 59, &[]), field(0, 23, &[]), field(1, 31, &[]), field(1, 12, MONTHS), field(0, 6, WEEKDAYS))
        .prop_map(|(minute, hour, dom, month, dow)| format!("{minute} {hour} {dom} {month} {dow}"))
}

/// Any spec of the grammar, in any zone.
fn spec() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        8 => five_fields(),
        1 => select(vec!["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly"]).prop_map(str::to_owned),
        1 => (1u64..10_000_000).prop_map(|seconds| format!("@every {seconds}s")),
    ];
    (select(&TZ_VARIANTS[..]), plain).prop_map(|(zone, plain)| format!("TZ={zone} {plain}"))
}

/// An instant of the years 1 to 3000, with a fraction of a second.
fn instant() -> impl Strategy<Value = DateTime<Utc>> {
    (-62_135_596_800i64..32_503_680_000, select(vec![0u32, 1, 500_000_000, 999_999_999]))
        .prop_map(|(seconds, nanos)| DateTime::from_timestamp(seconds, nanos).unwrap())
}

/// An instant of a day on which many zones change their offset, or one skips a day or a midnight.
fn change_of_offset() -> impl Strategy<Value = i64> {
    let days = select(vec![
        "2026-03-08",
        "2026-03-29",
        "2026-04-05",
        "2026-10-04",
        "2026-10-25",
        "2026-11-01",
        "2018-11-04",
        "2011-12-30",
    ]);
    (days, -36_000i64..100_000)
        .prop_map(|(day, second)| format!("{day}T00:00:00Z").parse::<DateTime<Utc>>().unwrap().timestamp() + second)
}

fn parse(spec: &str) -> Schedule {
    Schedule::parse_standard(spec, Zone::UTC).unwrap_or_else(|err| panic!("{spec}: {err}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The wrapper moves forward at every call, to whole seconds, and ends; `next` ends too.
    #[test]
    fn next_after_is_strictly_increasing_and_ends(spec in spec(), start in instant()) {
        let schedule = parse(&spec);
        let mut t = start;
        for _ in 0..20 {
            schedule.next(t);
            let Some(next) = schedule.next_after(t) else { break };
            prop_assert!(next > t, "{spec}: {next} after {t}");
            prop_assert_eq!(next.timestamp_subsec_nanos(), 0);
            t = next;
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = Schedule::parse_standard(&text, Zone::UTC);
    }

    #[test]
    fn no_text_of_the_right_characters_makes_the_parser_panic(
        text in "(TZ=|CRON_TZ=|@|@every )?[-0-9*?/,+. a-zA-Z_µ=\\t]{0,40}",
        t in instant(),
    ) {
        if let Ok(schedule) = Schedule::parse_standard(&text, Zone::UTC) {
            schedule.next(t);
            schedule.next_after(t);
        }
    }

    /// The newest due start is the one that walking from the earliest time finds.
    #[test]
    fn the_most_recent_start_is_the_last_of_a_walk(
        spec in spec(),
        now in prop_oneof![946_684_800i64..2_208_988_800, change_of_offset()],
        back in prop_oneof![0i64..600, 0i64..200_000, 0i64..3_000_000],
        fraction in 0u32..2,
    ) {
        let schedule = parse(&spec);
        let now = DateTime::from_timestamp(now, fraction * 700_000_000).unwrap();
        let creation = now - TimeDelta::seconds(back);
        let observed = Observed { creation, last_schedule: None, starting_deadline_seconds: None };
        let mut newest = None;
        let mut t = creation;
        for _ in 0..5_000 {
            match schedule.next_after(t) {
                Some(next) if next <= now => { newest = Some(next); t = next; }
                _ => {
                    let found = most_recent_schedule_time(&observed, now, &Evaluation::of(&schedule), true);
                    prop_assert_eq!(found.map(|found| found.most_recent).unwrap_or_default(), newest);
                    break;
                }
            }
        }
    }
}

/// An expression with the same meaning for both: stars, values, ranges and steps over ranges, and a star in at least
/// one day field.
fn common_fields() -> impl Strategy<Value = [String; 5]> {
    fn plain(min: u32, max: u32) -> BoxedStrategy<String> {
        let range = move || (min..=max).prop_flat_map(move |low| (Just(low), low..=max));
        let item = prop_oneof![
            (min..=max).prop_map(|n| n.to_string()),
            range().prop_map(|(low, high)| format!("{low}-{high}")),
            (range(), 1u32..10).prop_map(|((low, high), step)| format!("{low}-{high}/{step}")),
        ];
        prop_oneof![Just("*".to_owned()), prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),].boxed()
    }
    // Weekdays by name: the crates number them differently.
    let weekday = select(&["*", "Sun", "Mon,Wed", "Tue-Sat"][..]).prop_map(str::to_owned);
    (plain(0, 59), plain(0, 23), plain(1, 31), plain(1, 12), weekday, any::<bool>()).prop_map(
        |(minute, hour, dom, month, dow, day_of_month)| {
            let star = || "*".to_owned();
            let (dom, dow) = if day_of_month { (dom, star()) } else { (star(), dow) };
            // `cron` has no named range from Tue to Sat in robfig's spelling of days; both know the names alone.
            [minute, hour, dom, month, dow.replace("Tue-Sat", "Tue,Wed,Thu,Fri,Sat")]
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_cron_crate_on_the_common_subset(
        fields in common_fields(),
        start in 0i64..4_000_000_000,
    ) {
        let spec = fields.join(" ");
        let ours = parse(&spec);
        let theirs = cron::Schedule::from_str(&format!("0 {spec}")).unwrap();
        let start = DateTime::from_timestamp(start, 0).unwrap();
        let mut t = start;
        for expected in theirs.after(&start).take(5) {
            // Upstream stops searching after five years; the crate after a hundred.
            if expected - t > TimeDelta::days(5 * 365) {
                break;
            }
            prop_assert_eq!(ours.next(t), Some(expected), "{} after {}", spec, t);
            t = expected;
        }
    }
}

/// The `cron` crate's result for a vector's spec, with the one necessary change: a field for the seconds in front.
fn by_cron_crate(spec: &str, from: DateTime<Utc>, count: usize) -> Option<Vec<DateTime<Utc>>> {
    let rest = spec.strip_prefix("CRON_TZ=").or_else(|| spec.strip_prefix("TZ="));
    let (zone, fields) = rest.map_or(Some(("UTC", spec)), |rest| rest.split_once(' '))?;
    let zone = Tz::from_str(zone).ok()?;
    let schedule = cron::Schedule::from_str(&format!("0 {fields}")).ok()?;
    Some(schedule.after(&from.with_timezone(&zone)).take(count).map(|t| t.with_timezone(&Utc)).collect())
}

#[test]
fn how_many_vectors_the_cron_crate_reads_differently() {
    let text = include_str!("vectors/schedule.jsonl");
    let (mut same, mut different, mut refused) = (0, 0, 0);
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(expected) = row["next"].as_array() else { continue };
        let count = expected.len();
        let expected: Vec<DateTime<Utc>> = expected.iter().filter_map(|t| t.as_str()?.parse().ok()).collect();
        let from = row["from"].as_str().unwrap().parse().unwrap();
        match by_cron_crate(row["schedule"].as_str().unwrap(), from, count) {
            None => refused += 1,
            Some(got) if got == expected => same += 1,
            Some(_) => different += 1,
        }
    }
    writeln!(
        std::io::stdout(),
        "the cron crate reads {same} of {} valid vectors alike, {different} differently, {refused} not at all",
        same + different + refused
    )
    .unwrap();
    assert!(same > 0 && different > 0);
}
