#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn record(left: Vec<DateTime<Utc>>) -> Record {
    let backfill = Backfill {
        id: "x7k2p".to_owned(),
        holder: "b3n8q".to_owned(),
        from: at("2026-03-01T00:00:00Z"),
        to: at("2026-03-02T00:00:00Z"),
        again: false,
        total: left.len() + 1,
        created: 0,
        begun: Some(Begun { slot: at("2026-03-01T00:00:00Z"), at: at("2026-03-05T00:00:00Z") }),
        left,
    };
    Record { current: Some(backfill), ..Record::new(Uid::new("one")) }
}

#[test]
fn slots_at_one_distance_take_no_space() {
    let first = at("2026-03-01T00:00:00Z");
    let hourly = (1..500).map(|hour| first + TimeDelta::hours(hour)).collect();
    let text = record(hourly).text();
    assert!(text.contains(r#""left":"2026-03-01T01:00:00Z+3600x498""#), "{text}");
    let (one, another) = (Uid::new("one"), Uid::new("another"));
    assert_eq!(Record::read(&text, &one).unwrap().current.unwrap().left.len(), 499);
    assert_eq!(Record::read(&text, &another), None);
    assert!(Record::is_under_way(&text, &one) && !Record::is_under_way(&text, &another));
}

#[test]
fn finished_backfills_are_remembered_by_their_times() {
    let covering = |from: i64, to: i64| {
        let mut record = record(Vec::new());
        let current = record.current.as_mut().unwrap();
        (current.from, current.to) = (current.from + TimeDelta::hours(from), current.from + TimeDelta::hours(to));
        record.current
    };
    let mut known = record(Vec::new()).finished();
    assert!(!Record::is_under_way(&known.text(), &Uid::new("one")));
    assert!(known.covers(at("2026-03-01T00:00:00Z")) && known.covers(at("2026-03-02T00:00:00Z")));
    assert!(!known.covers(at("2026-03-02T00:01:00Z")));
    for (from, to, number) in [(48, 72, 2), (20, 30, 2), (10, 60, 1)] {
        known = Record { current: covering(from, to), ..known }.finished();
        assert_eq!(known.done.len(), number, "{known:?}");
    }
    for day in 0..200 {
        known = Record { current: covering(100 * day, 100 * day + 1), ..known }.finished();
        assert!(known.covers(at("2026-03-01T00:00:00Z") + TimeDelta::hours(100 * day)));
    }
    assert_eq!(known.done.len(), MOST_RANGES);
    assert_eq!(Record::read(&known.text(), &Uid::new("one")), Some(known));
}

#[test]
fn most_slots_fit_in_an_annotation() {
    let mut slot = at("2026-03-01T00:00:00Z");
    let mut next = |minutes: usize| {
        slot += TimeDelta::minutes(i64::try_from(minutes).unwrap());
        slot
    };
    let text = record((1..=MOST_SLOTS).map(&mut next).collect()).text();
    assert!(text.len() < 200_000, "{}", text.len());
}

#[test]
fn damaged_list_is_no_record() {
    for text in [
        "soon",
        "2026-03-01T00:00:00Z+60",
        "2026-03-01T00:00:00Z+0x3",
        "2026-03-01T00:00:00Z+60x9999999999",
        "2026-03-01T00:00:00Z+60x5000",
        "2026-03-02T00:00:00Z 2026-03-01T00:00:00Z",
    ] {
        assert_eq!(slots_of(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn record_is_read_as_it_was_written(minutes in proptest::collection::vec(1_i64..4, 0..60)) {
        let mut slot = at("2026-03-01T00:00:00Z");
        let mut next = |minutes: i64| {
            slot += TimeDelta::minutes(minutes);
            slot
        };
        let written = record(minutes.into_iter().map(&mut next).collect());
        prop_assert_eq!(Record::read(&written.text(), &Uid::new("one")), Some(written));
    }
}
