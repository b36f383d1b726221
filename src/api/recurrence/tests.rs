#![allow(clippy::unwrap_used)]

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use schedule::zone_names;

use super::*;

/// The values of the fields, the zone, and the interval.
type Meaning = (Option<FieldValues>, Option<String>, Option<i64>);

/// What decisions depend on.
fn meaning(schedule: &str, local: Zone) -> (bool, Result<Meaning, ()>) {
    let timing = Timing::parse(schedule, Some("Asia/Tokyo"), local);
    let parsed = timing.schedule.map_err(drop).map(|schedule| {
        let seconds = schedule.interval().map(|interval| interval.num_seconds());
        let zone = schedule.zone().map(|zone| zone.name().to_owned());
        (schedule.values(), zone, seconds)
    });
    (timing.zone_in_schedule && parsed.is_ok(), parsed)
}

fn assert_same(text: &str) {
    let kept = kept_schedule(text.into());
    assert!(kept.len() <= LONGEST_SCHEDULE + 3, "{} bytes", kept.len());
    for local in [Zone::UTC, Zone::load("America/New_York", Zone::UTC).unwrap()] {
        assert_eq!(meaning(&kept, local), meaning(text, local), "{kept:?}");
    }
    assert_eq!(kept_schedule(kept.clone()), kept, "it stays as it is");
}

#[test]
fn long_schedule_is_kept_short_and_means_the_same() {
    let commas = ",".repeat(20_000);
    let blanks = " ".repeat(20_000);
    let rows = [
        ("a list", format!("{}5 3 * * *", "1,".repeat(50_000))),
        ("blanks", format!("{blanks}7 *{blanks}1 * *")),
        ("a field of commas never matches", format!("{commas} * * * *")),
        ("either day", format!("0 0 1-31,{commas} * 1-5")),
        ("either day, all of both", format!("0 0 1-31,{commas} * 0-6")),
        ("both days, a star for the month's", format!("0 0 *,{commas} * 1-5")),
        ("both days, a star for the week's", format!("0 0 13,{commas} * *")),
        ("both days, a star for either", format!("0 0 *,{commas} */1 ?")),
        ("steps and names", format!("*/7,{commas} 1-23/2 29-31 FEB,nov {}Sun", "mon,".repeat(9_000))),
        ("every second value, which no ranges shorten", format!("*/2,{commas} */2 1-31/2 */2 0-6/2")),
        ("a zone", format!("TZ=Europe/Berlin {blanks}0 4 * * *")),
        ("a zone with segments that mean nothing", format!("CRON_TZ=Europe/{}Berlin 0 4 * * *", "./".repeat(9_000))),
        ("the local zone", format!("CRON_TZ=Local {blanks}0 4 * * *")),
        ("no zone's name", format!("TZ= {blanks}0 4 * * *")),
        ("the letters of a zone after a star, which are ignored", format!("*-TZ{commas} 4 * * *")),
        ("an interval", format!("@every {}90s", "0h".repeat(9_000))),
        ("an interval with a zone", format!("TZ=Asia/Tokyo @every {}90s", "0h".repeat(9_000))),
        ("a long interval", format!("@every {}2540400h", "0h".repeat(9_000))),
        ("not a schedule", "0".repeat(20_000)),
        ("no schedule at the start", format!("0 0 * * *{blanks}*")),
        ("no zone", format!("TZ=Europe/{} 0 4 * * *", "x".repeat(9_000))),
        ("a zone alone", format!("TZ=Europe/{}Berlin", "./".repeat(9_000))),
    ];
    for (name, text) in rows {
        assert!(text.len() > LONGEST_SCHEDULE, "{name}");
        assert_same(&text);
    }
    assert_eq!(kept_schedule("0 0 1 1 ?".into()), "0 0 1 1 ?", "a short one stays as it was written");
}

#[test]
fn long_zone_is_kept_short_and_means_the_same() {
    assert!(zone_names().all(|name| name.len() <= LONGEST_ZONE));
    let long = format!("Europe/{}Berlin", "./".repeat(9_000));
    assert_eq!(kept_zone(&long), "Europe/Berlin");
    let unknown = kept_zone(&"x".repeat(9_000)).into_owned();
    assert!(unknown.len() <= LONGEST_ZONE + 3 && Zone::load(&unknown, Zone::UTC).is_err());
}

proptest! {
    #[test]
    fn schedule_made_long_means_the_same(
        zone in "((CRON_)?TZ=(UTC|Local|Europe/Berlin|) )?",
        fields in proptest::collection::vec("[*?]|[*?]/[1-9]|[0-9]{1,2}|[1-4]-[5-6](/[0-3])?|[1-6],[2-5],\\*|\\*-TZ|,", 5),
        at in 0_usize..5,
    ) {
        let mut fields = fields;
        fields[at].push_str(&",".repeat(LONGEST_SCHEDULE));
        assert_same(&format!("{zone}{}", fields.join(" ")));
    }

    #[test]
    fn long_schedule_fires_at_the_same_times(minutes in proptest::collection::vec(0_u32..60, 400..600), second in 0_i64..100_000_000) {
        let list: Vec<_> = minutes.iter().map(u32::to_string).collect();
        let text = format!("{} 1-6 */5 * 2", list.join(","));
        let kept = kept_schedule(text.as_str().into());
        let parsed = |text: &str| Schedule::parse_standard(text, Zone::UTC).unwrap();
        let now = DateTime::<Utc>::from_timestamp(1_700_000_000 + second, 0).unwrap();
        prop_assert_eq!(parsed(&kept).next(now), parsed(&text).next(now));
    }
}
