//! The correlator against tables modelled on client-go's, and against a recording of client-go itself.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde::Deserialize;

use super::super::tests::{at, event};
use super::*;

const NORMAL: EventType = EventType::Normal;
const WARNING: EventType = EventType::Warning;

/// An event without its time.
type Said<'a> = (&'a str, EventType, &'static str, String);

fn said<'a>(name: &'a str, reason: &'static str, message: impl Into<String>) -> Said<'a> {
    (name, NORMAL, reason, message.into())
}

fn unique(count: usize) -> Vec<Said<'static>> {
    (0..count).map(|i| said("cj", "Similar", format!("message {i}"))).collect()
}

/// Records the events `step` seconds apart; returns the result for the last one.
fn last_of(events: &[Said<'_>], step: i64) -> Option<Event> {
    let mut correlator = Correlator::new(&CorrelatorOptions::default());
    let played = events.iter().zip(0..).map(|((name, type_, reason, message), i)| {
        correlator.correlate(event(name, *type_, reason, message, at(i * step)))
    });
    played.last().unwrap()
}

#[test]
fn last_event_is_created_counted_combined_or_dropped() {
    struct Row<'a>(&'a str, Vec<Said<'a>>, i64, Option<(i32, &'a str)>);
    let same = |count| vec![said("cj", "Again", "me again"); count];
    let then = |mut events: Vec<Said<'static>>, last: Said<'static>| {
        events.push(last);
        events
    };
    let others = (0..30).map(|i| (["a", "b", "c"][i % 3], NORMAL, "Reason", format!("{i}"))).collect::<Vec<_>>();
    let rows = [
        Row("a single event is created", same(1), 5, Some((1, "me again"))),
        Row("the same event only counts", same(2), 5, Some((2, "me again"))),
        Row("the same event only counts, even more often than would be combined", same(11), 30, Some((11, "me again"))),
        Row("the same event is spam if it comes too often", same(26), 1, None),
        Row("the last within the burst is not", same(25), 1, Some((25, "me again"))),
        Row("events about other objects change nothing", then(others, said("cj", "R", "m")), 5, Some((1, "m"))),
        Row("nine similar events stay apart", unique(9), 5, Some((1, "message 8"))),
        Row(
            "the tenth similar event is combined",
            unique(10),
            5,
            Some((1, "(combined from similar events): message 9")),
        ),
        Row(
            "more similar events count on the combined one, under the newest message",
            unique(12),
            5,
            Some((3, "(combined from similar events): message 11")),
        ),
        Row(
            "a message that came before the group was full still counts on its own",
            then(unique(12), said("cj", "Similar", "message 0")),
            5,
            Some((2, "message 0")),
        ),
        Row("other reasons are not similar", then(unique(9), said("cj", "Other", "m")), 5, Some((1, "m"))),
        Row("other types are not similar", then(unique(9), ("cj", WARNING, "Similar", "m".into())), 5, Some((1, "m"))),
        Row("other objects are not similar", then(unique(9), said("dj", "Similar", "m")), 5, Some((1, "m"))),
        Row(
            "ten minutes apart is still similar",
            unique(10),
            600,
            Some((1, "(combined from similar events): message 9")),
        ),
        Row("longer than ten minutes apart is not", unique(10), 601, Some((1, "message 9"))),
        Row(
            "other types have a budget of their own",
            then(same(26), ("cj", WARNING, "W", "m".into())),
            1,
            Some((1, "m")),
        ),
        Row("other reasons share the budget", then(same(25), said("cj", "Other", "m")), 1, None),
        Row("so do those that upstream has", then(same(25), said("cj", "MissingJob", "m")), 1, None),
        Row(
            "a reason that upstream does not have has a budget of its own",
            then(same(40), said("cj", "PassedOver", "m")),
            1,
            Some((1, "m")),
        ),
        Row("which has an end, too", vec![said("cj", "PassedOver", "m"); 26], 1, None),
        Row("other objects have a budget of their own", then(same(26), said("dj", "Other", "m")), 1, Some((1, "m"))),
    ];
    for Row(row, events, step, want) in rows {
        let got = last_of(&events, step);
        assert_eq!(got.as_ref().map(|event| (event.count, event.message.as_str())), want, "{row}");
    }
}

#[test]
fn a_repeated_event_keeps_the_name_and_first_time_of_the_first() {
    let mut correlator = Correlator::new(&CorrelatorOptions::default());
    let first = correlator.correlate(event("cj", NORMAL, "R", "m", at(0))).unwrap();
    let mut second = event("cj", NORMAL, "R", "m", at(7));
    second.involved_object.resource_version = "999".into();
    let second = correlator.correlate(second).unwrap();
    assert_eq!(second.name, first.name);
    assert_eq!((second.first_timestamp, second.last_timestamp, second.count), (at(0), at(7), 2));
}

#[test]
fn recreated_object_has_a_new_budget() {
    let mut correlator = Correlator::new(&CorrelatorOptions::default());
    for _ in 0..26 {
        correlator.correlate(event("cj", NORMAL, "R", "m", at(0)));
    }
    let mut successor = event("cj", NORMAL, "R", "m", at(1));
    successor.involved_object.uid = "another".into();
    assert_eq!(correlator.correlate(successor).map(|event| event.count), Some(1));
}

#[test]
fn a_combined_event_keeps_its_reporting_component() {
    let combined = last_of(&unique(10), 5).unwrap();
    let body = serde_json::to_value(combined).unwrap();
    assert_eq!(body["reportingComponent"], "cronjob-controller");
    assert_eq!(body["source"]["component"], "cronjob-controller");
}

#[test]
fn a_spent_budget_grows_by_one_in_five_minutes_up_to_the_burst() {
    let mut correlator = Correlator::new(&CorrelatorOptions::default());
    let mut burst_at = |second: i64| {
        let allowed = |_: &u32| correlator.correlate(event("cj", NORMAL, "R", "m", at(second))).is_some();
        (0..40).filter(allowed).count()
    };
    assert_eq!(burst_at(0), 25);
    assert_eq!(burst_at(299), 0);
    assert_eq!(burst_at(300), 1);
    assert_eq!(burst_at(1350), 3);
    assert_eq!(burst_at(1499), 0);
    assert_eq!(burst_at(1500), 1, "the rest of an interval is not lost");
    assert_eq!(burst_at(1_000_000), 25);
}

#[test]
fn spam_stays_counted() {
    let mut correlator = Correlator::new(&CorrelatorOptions::default());
    let mut at_second =
        |second| correlator.correlate(event("cj", NORMAL, "R", "m", at(second))).map(|event| event.count);
    for count in 1..=25 {
        assert_eq!(at_second(0), Some(count));
    }
    assert_eq!((at_second(1), at_second(2), at_second(300)), (None, None, Some(28)));
}

#[test]
fn a_clock_that_steps_back_does_not_mute_an_object() {
    let mut correlator = Correlator::new(&CorrelatorOptions::default());
    for _ in 0..26 {
        correlator.correlate(event("cj", NORMAL, "R", "m", at(1_000_000)));
    }
    assert!(correlator.correlate(event("cj", NORMAL, "R", "m", at(0))).is_none());
    assert!(correlator.correlate(event("cj", NORMAL, "R", "m", at(300))).is_some());
}

#[test]
fn object_evicted_from_the_caches_is_counted_from_one() {
    let mut correlator = Correlator::new(&CorrelatorOptions { cache_entries: 2, ..CorrelatorOptions::default() });
    let mut count = |name| correlator.correlate(event(name, NORMAL, "R", "m", at(0))).unwrap().count;
    assert_eq!((count("a"), count("b"), count("a"), count("c")), (1, 1, 2, 1));
    assert_eq!((count("a"), count("b")), (3, 1), "b was used longest ago");
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Recorded {
    at: i64,
    object: String,
    r#type: String,
    reason: String,
    message: String,
    out: Option<Out>,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Out {
    named_at: i64,
    first: i64,
    last: i64,
    count: i32,
    message: String,
}

/// `tests/controlplane/gorecord` played `upstream.jsonl` through `EventCorrelator` of client-go v0.37.2 (times in ms;
/// `namedAt` is the time in the Event's name). Each group in it has either few messages or always new ones, because
/// upstream forgets arbitrary messages of a full group.
#[test]
fn decides_as_client_go_did() {
    let mut correlator = Correlator::new(&CorrelatorOptions::default());
    let (mut rows, mut spam, mut combined) = (0, 0, 0);
    for line in include_str!("upstream.jsonl").lines() {
        let row: Recorded = serde_json::from_str(line).unwrap();
        let type_ = if row.r#type == "Normal" { NORMAL } else { WARNING };
        let reasons = ["SuccessfulCreate", "SawCompletedJob", "FailedCreate", "UnexpectedJob"];
        let reason = reasons.into_iter().find(|reason| *reason == row.reason).unwrap();
        let now = DateTime::from_timestamp_millis(row.at).unwrap();
        let ours = correlator.correlate(event(&row.object, type_, reason, &row.message, now)).map(|event| {
            let nanos = i64::from_str_radix(event.name.rsplit('.').next().unwrap(), 16).unwrap();
            Out {
                named_at: nanos / 1_000_000,
                first: event.first_timestamp.timestamp_millis(),
                last: event.last_timestamp.timestamp_millis(),
                count: event.count,
                message: event.message,
            }
        });
        rows += 1;
        spam += usize::from(ours.is_none());
        combined += usize::from(ours.as_ref().is_some_and(|out| out.message.starts_with(COMBINED_PREFIX)));
        assert_eq!(ours, row.out, "row {rows}: {line}");
    }
    println!("{rows} rows, {spam} spam, {combined} combined");
    assert!(rows >= 600 && spam >= 100 && combined >= 50, "the recording has lost its point");
}

proptest! {
    /// For any events at any times: no panic, bounded caches, no more separate messages than the group may have, no budget
    /// beyond its burst.
    #[test]
    fn stays_within_its_bounds(
        said in proptest::collection::vec((0_u8..12, 0_usize..3, 0_u8..20, -2000_i64..2000), 0..300),
    ) {
        let options = CorrelatorOptions { cache_entries: 8, ..CorrelatorOptions::default() };
        let full = options.spam_refill * 25;
        let mut correlator = Correlator::new(&options);
        for (object, reason, message, second) in said {
            let reason = ["A", "B", "C"][reason];
            let input = event(&format!("cj{object}"), NORMAL, reason, &message.to_string(), at(second));
            let source = Source { object: input.involved_object.identity(), type_: NORMAL };
            let (budgeted, group) = (Budgeted { source: source.clone(), reason: None }, Group { source, reason });
            let out = correlator.correlate(input);
            prop_assert!(out.is_none_or(|out| out.count >= 1 && out.last_timestamp == at(second)));
            let similar = correlator.aggregator.groups.get_or_insert_with(group, || unreachable!());
            prop_assert!(similar.messages.len() < options.max_events);
            let budget = correlator.spam_filter.budgets.get_or_insert_with(budgeted, || unreachable!());
            prop_assert!(budget.owed >= TimeDelta::zero() && budget.owed <= full);
        }
    }
}
