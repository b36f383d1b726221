#![allow(clippy::unwrap_used)]

use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use proptest::prelude::*;

use super::*;
use crate::{Calendar, Schedule};

/// The slots in 2027, by date if they are at noon.
fn dates(lines: &str) -> Vec<String> {
    let calendar = Calendar { lines: Some(Lines::parse(lines).unwrap()), ..Calendar::default() };
    let schedule = Schedule::parse_standard("@daily", Zone::UTC).unwrap().with_calendar(&calendar).unwrap();
    let begin: DateTime<Utc> = "2026-12-31T23:59:59Z".parse().unwrap();
    let slots = std::iter::successors(schedule.next_after(begin), |t| schedule.next_after(*t));
    let slots = slots.take_while(|t| t.year() == 2027).take(6);
    slots.map(|t| t.format("%m-%d %H:%M").to_string().trim_end_matches(" 12:00").to_owned()).collect()
}

#[test]
fn lines_have_the_days_that_they_name() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("the last day", "0 12 L * *", &["01-31", "02-28", "03-31", "04-30", "05-31", "06-30"]),
        ("the third last day", "0 12 L-2 1-3 *", &["01-29", "02-26", "03-29"]),
        ("a month without that many days", "0 12 L-30 1-4 *", &["01-01", "03-01"]),
        ("a working day stays", "0 12 15W 1 *", &["01-15"]),
        ("a Saturday goes to the Friday before", "0 12 15W 5 *", &["05-14"]),
        ("a Sunday goes to the Monday after", "0 12 15W 8 *", &["08-16"]),
        ("a Saturday that begins the month goes on", "0 12 1W 5 *", &["05-03"]),
        ("a Sunday that ends the month goes back", "0 12 31W 1 *", &["01-29"]),
        ("a day that the month lacks", "0 12 31W 2,4 *", &[]),
        ("the last working day", "0 12 LW 1-4 *", &["01-29", "02-26", "03-31", "04-30"]),
        ("the last Friday", "0 12 * 1-3 5L", &["01-29", "02-26", "03-26"]),
        ("by name", "0 12 * 1 friL", &["01-29"]),
        ("the third Friday", "0 12 * 1-3 FRI#3", &["01-15", "02-19", "03-19"]),
        ("a fifth Friday only where there is one", "0 12 * * 5#5", &["01-29", "04-30", "07-30", "10-29", "12-31"]),
        ("either day field suffices", "0 12 L 1 MON#1", &["01-04", "01-31"]),
        ("a star leaves the other field", "0 12 L,* 1 MON#1", &["01-04"]),
        ("a list of old and new items", "0 12 1,l-1,15w 1 *", &["01-01", "01-15", "01-30"]),
        ("a descriptor", "@yearly", &["01-01 00:00"]),
        ("two lines", "0 12 1 1 *; 0 9 2 1 *", &["01-01", "01-02 09:00"]),
        ("an instant chosen twice is one", "0 12 1 1 *\n0 12 * 1 FRI#1\n", &["01-01"]),
        ("a single time", "@at 2027-03-01T09:00", &["03-01 09:00"]),
        ("a single time with seconds", "@at 2027-03-01T09:00:00", &["03-01 09:00"]),
        ("a single time with an offset", "@at 2027-03-01T09:00+05:30", &["03-01 03:30"]),
        ("a single time in UTC", "@at 2027-03-01T12:00Z; @at 2027-03-01T12:00", &["03-01"]),
        ("a year is over", "@at 2020-03-01T12:00Z", &[]),
    ];
    for (name, lines, want) in rows {
        assert_eq!(dates(lines), *want, "{name}: {lines}");
    }
}

#[test]
fn an_invalid_line_is_named_with_the_reason() {
    let rows = [
        ("", "no schedule"),
        (" ;\n; ", "no schedule"),
        ("0 12 * * *; 60 * * * *", "\"60 * * * *\": end of range (60) above maximum (59): 60"),
        ("0 12 * *", "\"0 12 * *\": expected exactly 5 fields, found 4: [0 12 * *]"),
        ("@every 5m", "\"@every 5m\": @every has no calendar"),
        ("TZ=UTC 0 12 * * *", "\"TZ=UTC 0 12 * * *\": a line has no time zone of its own"),
        ("CRON_TZ=UTC @daily", "\"CRON_TZ=UTC @daily\": a line has no time zone of its own"),
        ("@noon", "\"@noon\": unrecognized descriptor: @noon"),
        ("0 12 L-31 * *", "\"0 12 L-31 * *\": end of range (31) above maximum (30): L-31"),
        ("0 12 L-0 * *", "\"0 12 L-0 * *\": beginning of range (0) below minimum (1): L-0"),
        ("0 12 0W * *", "\"0 12 0W * *\": beginning of range (0) below minimum (1): 0W"),
        ("0 12 32W * *", "\"0 12 32W * *\": end of range (32) above maximum (31): 32W"),
        ("0 12 * * 5#6", "\"0 12 * * 5#6\": end of range (6) above maximum (5): 5#6"),
        ("0 12 * * 7#1", "\"0 12 * * 7#1\": end of range (7) above maximum (6): 7#1"),
        ("0 12 * * 7L", "\"0 12 * * 7L\": end of range (7) above maximum (6): 7L"),
        ("L 12 * * *", "\"L 12 * * *\": failed to parse int from L: strconv.Atoi: parsing \"L\": invalid syntax"),
    ];
    for (text, want) in rows {
        assert_eq!(Lines::parse(text).unwrap_err().to_string(), want, "{text}");
    }
    for time in ["", "soon", "2027-03-01", "2027-03-01T09", "2027-3-01T09:00", "2027-02-30T09:00", "2027-03-01T24:00"] {
        assert!(Lines::parse(&format!("@at {time}")).is_err(), "{time}");
    }
    for rest in [":30", ":00.5", "z", "+1:00", "+24:00", "+01:60", "+0100", " 1", "é"] {
        let text = format!("@at 2027-03-01T09:00{rest}");
        assert_eq!(Lines::parse(&text), Err(LineError::At(text.clone())), "{text}");
    }
    let many = |count: usize| {
        let lines: Vec<_> = (0..count).map(|at| format!("{} {} * * *", at % 60, at / 60)).collect();
        Lines::parse(&lines.join(";")).map(|_| ())
    };
    assert_eq!((many(64), many(65)), (Ok(()), Err(LineError::TooMany(65))));
    let once = Lines::parse("0 12 * * *").unwrap();
    assert_eq!(Lines::parse(&"0 12 * * *; 00 12 1-31 * *;".repeat(600)).map(|lines| lines.fields.len()), Ok(2));
    assert_eq!(Lines::parse(&"0 12 * * *;".repeat(1_000)), Ok(once), "equal lines are one");
    assert!(Lines::parse(&"@at 2027-03-01T09:00;".repeat(700)).is_ok());
}

/// An item of a day field, and whether it has a date.
#[derive(Clone, Copy, Debug)]
enum Item {
    Star,
    Day(u32),
    FromLast(u32),
    Nearest(u32),
    LastWorkingDay,
    Weekday(u32),
    Nth(u32, u32),
    LastOf(u32),
}

impl Item {
    fn text(self) -> String {
        match self {
            Self::Star => "*".to_owned(),
            Self::Day(n) | Self::Weekday(n) => n.to_string(),
            Self::FromLast(0) => "L".to_owned(),
            Self::FromLast(n) => format!("L-{n}"),
            Self::Nearest(n) => format!("{n}W"),
            Self::LastWorkingDay => "LW".to_owned(),
            Self::Nth(day, n) => format!("{day}#{n}"),
            Self::LastOf(day) => format!("{day}L"),
        }
    }

    /// Looks at each day of the month.
    fn has(self, date: NaiveDate) -> bool {
        let first = date.with_day(1).unwrap();
        let month: Vec<NaiveDate> = first.iter_days().take_while(|day| day.month() == date.month()).collect();
        let works = |day: &&NaiveDate| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
        let on = |weekday: u32| date.weekday().num_days_from_sunday() == weekday;
        let same = || month.iter().filter(|day| day.weekday() == date.weekday());
        match self {
            Self::Star => true,
            Self::Day(n) => date.day() == n,
            Self::FromLast(n) => month.iter().rev().nth(n as usize) == Some(&date),
            Self::Nearest(n) => {
                let day = month.iter().find(|day| day.day() == n);
                day.is_some_and(|day| month.iter().filter(works).min_by_key(|at| (**at - *day).abs()) == Some(&date))
            }
            Self::LastWorkingDay => month.iter().rfind(works) == Some(&date),
            Self::Weekday(day) => on(day),
            Self::Nth(day, n) => on(day) && same().nth(n as usize - 1) == Some(&date),
            Self::LastOf(day) => on(day) && same().next_back() == Some(&date),
        }
    }
}

fn days_of_month() -> impl Strategy<Value = Item> {
    prop_oneof![
        1 => Just(Item::Star),
        2 => (1..=31u32).prop_map(Item::Day),
        3 => (0..=30u32).prop_map(Item::FromLast),
        3 => (1..=31u32).prop_map(Item::Nearest),
        1 => Just(Item::LastWorkingDay),
    ]
}

fn days_of_week() -> impl Strategy<Value = Item> {
    prop_oneof![
        3 => Just(Item::Star),
        1 => (0..=6u32).prop_map(Item::Weekday),
        2 => (0..=6u32, 1..=5u32).prop_map(|(day, n)| Item::Nth(day, n)),
        2 => (0..=6u32).prop_map(Item::LastOf),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Compared with a look at every day of two years.
    #[test]
    fn days_are_those_of_a_naive_calendar(
        dom in prop::collection::vec(days_of_month(), 1..4),
        dow in prop::collection::vec(days_of_week(), 1..3),
        year in 1970..2100,
    ) {
        let text = |items: &[Item]| items.iter().map(|item| item.text()).collect::<Vec<_>>().join(",");
        let line = format!("0 12 {} * {}", text(&dom), text(&dow));
        let calendar = Calendar { lines: Some(Lines::parse(&line).unwrap()), ..Calendar::default() };
        let schedule = Schedule::parse_standard("@daily", Zone::UTC).unwrap().with_calendar(&calendar).unwrap();
        let has_star = dom.iter().chain(&dow).any(|item| matches!(item, Item::Star));
        let mut t = NaiveDate::from_ymd_opt(year, 1, 1).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc();
        let end = t + TimeDelta::days(730);
        for date in t.date_naive().iter_days().take(730) {
            let [on_day, on_weekday] = [&dom, &dow].map(|items| items.iter().any(|item| item.has(date)));
            if if has_star { on_day && on_weekday } else { on_day || on_weekday } {
                let noon = date.and_hms_opt(12, 0, 0).unwrap().and_utc();
                prop_assert_eq!(schedule.next_after(t), Some(noon), "{} after {}", line, t);
                t = noon;
            }
        }
        prop_assert!(schedule.next_after(t).is_none_or(|next| next > end), "{line} after {t}");
    }

    #[test]
    fn no_text_makes_the_parser_of_lines_panic(text in "[-0-9*?/,+. :;#@a-zA-Z\\n=é]{0,60}") {
        let _ = Lines::parse(&text);
        let _ = Lines::parse(&format!("@at {text}"));
        let _ = Lines::parse(&format!("0 0 {text} * *"));
    }
}
