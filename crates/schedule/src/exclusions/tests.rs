#![allow(clippy::unwrap_used)]

use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;

#[test]
fn exclusions_have_the_dates_that_they_name() {
    let rows = [
        ("a weekday", "Sat", "2026-12-19", true),
        ("another day", "Sat", "2026-12-20", false),
        ("any case, and blanks", "mon , SUN", "2026-12-20", true),
        ("a day of every year", "12-25", "2031-12-25", true),
        ("the day after", "12-25", "2031-12-26", false),
        ("29 February in a leap year", "02-29", "2028-02-29", true),
        ("28 February is another day", "02-29", "2027-02-28", false),
        ("a date", "2026-12-24", "2026-12-24", true),
        ("the same day a year later", "2026-12-24", "2027-12-24", false),
        ("the start of a range", "12-24/01-06", "2026-12-24", true),
        ("a range over the end of a year", "12-24/01-06", "2027-01-01", true),
        ("the end of a range", "12-24/01-06", "2027-01-06", true),
        ("after a range", "12-24/01-06", "2027-01-07", false),
        ("a leap day inside a range of every year", "02-20/03-10", "2028-02-29", true),
        ("a range of dates", "2026-12-24/2027-01-01", "2027-01-01", true),
        ("after it", "2026-12-24/2027-01-01", "2027-01-02", false),
        ("ranges that touch", "2026-01-05/2026-01-09,2026-01-01/2026-01-04", "2026-01-05", true),
        ("a range inside another", "2026-01-01/2026-03-01,2026-01-02/2026-01-03", "2026-02-27", true),
    ];
    for (name, text, date, want) in rows {
        let exclusions = Exclusions::parse(text).unwrap();
        assert_eq!(exclusions.contains(date.parse().unwrap()), want, "{name}: {text} on {date}");
    }
}

#[test]
fn an_invalid_exclusion_is_named_with_the_reason() {
    let form = "is neither a weekday, a day of the year (12-25), a date (2026-12-24) nor a range of two days";
    let rows = [
        ("", format!("\"\" {form}")),
        ("Sat,", format!("\"\" {form}")),
        ("Saturday", format!("\"Saturday\" {form}")),
        ("Sat/Sun", format!("\"Sat/Sun\" {form}")),
        ("12-24/2027-01-01", format!("\"12-24/2027-01-01\" {form}")),
        ("12-1", format!("\"12-1\" {form}")),
        ("02-30", "\"02-30\" is no date".to_owned()),
        ("2027-02-29", "\"2027-02-29\" is no date".to_owned()),
        ("2027-01-01/2026-12-24", "\"2027-01-01/2026-12-24\" ends before it begins".to_owned()),
    ];
    for (text, want) in rows {
        assert_eq!(Exclusions::parse(text).unwrap_err().to_string(), want, "{text}");
    }
}

/// The first day that is not excluded, within forty years.
fn next_open_day(exclusions: &Exclusions, day: i64) -> Option<i64> {
    let open = OpenDays::new(exclusions, |_, length, _| u32::MAX >> (31 - length) & !1);
    open.next_after(exclusions, day, day + 40 * 366, &mut Steps::new())
}

/// One item, compared with a date in chrono's terms.
#[derive(Clone, Debug)]
enum Item {
    Weekday(usize),
    EveryYear(NaiveDate, NaiveDate),
    Dates(NaiveDate, NaiveDate),
}

impl Item {
    fn text(&self) -> String {
        match self {
            Self::Weekday(day) => WEEKDAYS[*day].to_owned(),
            Self::EveryYear(first, last) if first == last => first.format("%m-%d").to_string(),
            Self::EveryYear(first, last) => format!("{}/{}", first.format("%m-%d"), last.format("%m-%d")),
            Self::Dates(first, last) if first == last => first.to_string(),
            Self::Dates(first, last) => format!("{first}/{last}"),
        }
    }

    fn has(&self, date: NaiveDate) -> bool {
        match self {
            Self::Weekday(day) => date.weekday().num_days_from_sunday() as usize == *day,
            Self::EveryYear(first, last) => {
                let [first, last, date] = [*first, *last, date].map(|date| (date.month(), date.day()));
                if first <= last { (first..=last).contains(&date) } else { date >= first || date <= last }
            }
            Self::Dates(first, last) => (first..=last).contains(&&date),
        }
    }
}

fn date() -> impl Strategy<Value = NaiveDate> {
    (0..3_000i64).prop_map(|days| NaiveDate::from_ymd_opt(2024, 1, 1).unwrap() + TimeDelta::days(days))
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        (0..7usize).prop_map(Item::Weekday),
        (date(), date()).prop_map(|(first, last)| Item::EveryYear(first, last)),
        (date(), 0..500i64).prop_map(|(first, days)| Item::Dates(first, first + TimeDelta::days(days))),
        date().prop_map(|date| Item::Dates(date, date)),
        date().prop_map(|date| Item::EveryYear(date, date)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Also the next open day is the one that a walk by days finds.
    #[test]
    fn excluded_dates_are_those_of_a_walk_by_days(items in prop::collection::vec(item(), 1..6), offset in 0..1_000i64) {
        let text = items.iter().map(Item::text).collect::<Vec<_>>().join(",");
        let exclusions = Exclusions::parse(&text).unwrap();
        let start = NaiveDate::from_ymd_opt(2024, 1, 1).unwrap() + TimeDelta::days(offset);
        let mut open = None;
        for date in start.iter_days().take(2_500) {
            let excluded = items.iter().any(|item| item.has(date));
            prop_assert_eq!(exclusions.contains(date), excluded, "{} on {}", text, date);
            if !excluded && date > start && open.is_none() {
                open = Some(date);
            }
        }
        let day = |date: NaiveDate| (date - NaiveDate::default()).num_days();
        if let Some(open) = open {
            prop_assert_eq!(next_open_day(&exclusions, day(start)), Some(day(open)), "{}", text);
        }
    }

    #[test]
    fn no_text_makes_the_parser_of_exclusions_panic(text in "[-0-9/, a-zA-Zé]{0,40}") {
        let _ = Exclusions::parse(&text);
    }
}

#[test]
fn a_search_for_an_open_day_ends_where_there_is_none() {
    let rows = ["Sun,Mon,Tue,Wed,Thu,Fri,Sat", "01-01/12-31", "2020-01-01/2099-12-31"];
    for text in rows {
        let exclusions = Exclusions::parse(text).unwrap();
        assert_eq!(next_open_day(&exclusions, 20_000), None, "{text}");
    }
    let none = OpenDays::new(&Exclusions::default(), |_, _, _| 0);
    assert_eq!(none.next_after(&Exclusions::default(), 20_000, 40_000, &mut Steps::new()), None);
}
