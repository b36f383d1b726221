use chrono::{Datelike, NaiveDate, TimeDelta};

use super::*;

#[test]
fn dates_agree_with_chrono() {
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).expect("the epoch exists");
    let ends = -96_400_000..95_000_000;
    for days in ends.step_by(9_973).chain(-1_000_000..-700_000).chain(0..60_000) {
        let expected = epoch + TimeDelta::days(days);
        let date = from_days(days);
        assert_eq!((date.year, date.month, date.day), (expected.year().into(), expected.month(), expected.day()));
        assert_eq!(to_days(date.year, date.month, date.day), days);
        assert_eq!(weekday(days), expected.weekday().num_days_from_sunday());
        let length = to_days(date.year, date.month + 1, 1) - to_days(date.year, date.month, 1);
        assert_eq!(i64::from(days_in_month(date.year, date.month)), length);
    }
}

#[test]
fn months_and_days_run_over() {
    assert_eq!(to_days(2024, 13, 1), to_days(2025, 1, 1));
    assert_eq!(to_days(2025, 2, 31), to_days(2025, 3, 3));
}
