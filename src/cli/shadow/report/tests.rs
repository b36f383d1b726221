#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::cli::output::{Format, render};
use crate::terminal::tests::{HOSTILE, harmful};

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn name(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

fn change(slot: &str, before: Option<Finding>, after: Option<Finding>, late: Option<i64>) -> Change {
    let slot = at(slot);
    let late = late.map(TimeDelta::milliseconds);
    let uid = Uid::new("cj");
    Change { uid, slot, due: slot, before, after, was_apart: false, is_apart: false, late, own: None }
}

fn apart(change: Change) -> Change {
    Change { was_apart: true, is_apart: true, ..change }
}

fn report(sums: &Sums) -> Value {
    serde_json::to_value(sums.report(3, 0, at("2026-11-22T12:00:00Z"), at("2026-11-22T13:00:00Z"))).unwrap()
}

/// A sentence, the finding before and after, and the sums then.
type Row<'a> = (&'a str, Option<Finding>, Option<Finding>, [u64; 5]);

#[test]
fn sums_follow_the_changes_and_take_back_what_is_corrected() {
    const SLOT: &str = "2026-11-22T12:10:00Z";
    let missed = || Finding::Missed("no Job".to_owned());
    let differs = || Finding::Differs("forbid".to_owned());
    let twice = || Finding::Twice("two Jobs".to_owned());
    let counts = |sums: &Sums| {
        [sums.same, sums.missed.len() as u64, sums.twice.len() as u64, sums.differs.len() as u64, sums.slots()]
    };
    let steps: Vec<Row<'_>> = vec![
        ("neither starts it", None, Some(Finding::Same), [1, 0, 0, 0, 1]),
        ("it may start now", Some(Finding::Same), None, [0, 0, 0, 0, 0]),
        ("missed", None, Some(missed()), [0, 1, 0, 0, 1]),
        ("late after all", Some(missed()), Some(Finding::Same), [1, 0, 0, 0, 1]),
        ("beside another", Some(Finding::Same), Some(differs()), [0, 0, 0, 1, 1]),
        ("twice", Some(differs()), Some(twice()), [0, 0, 1, 0, 1]),
        ("not seen", Some(twice()), Some(Finding::NotSeen), [0, 0, 0, 0, 0]),
    ];
    let mut sums = Sums::default();
    for (step, before, after, want) in steps {
        sums.apply(&name("a"), &change(SLOT, before, after, None));
        assert_eq!(counts(&sums), want, "{step}");
    }
    sums.wrong_status(&name("a"), None, "active lacks a Job");
    assert_eq!(counts(&sums), [0, 0, 0, 1, 0], "a wrong status is no slot");
    assert!(!sums.is_same());
}

#[test]
fn json_has_the_keys_that_programs_read() {
    let mut sums = Sums::default();
    let found = report(&sums);
    for (key, want) in
        [("slots", json!(0)), ("same", json!(0)), ("missed", json!([])), ("twice", json!([])), ("differs", json!([]))]
    {
        assert_eq!(found[key], want, "{key} of nothing");
    }
    assert_eq!(found["late"], json!({"p50": 0.0, "p99": 0.0, "max": 0.0}));
    assert_eq!(found.get("agreement"), None, "of nothing");
    sums.apply(&name("a"), &change("2026-11-22T12:10:00Z", None, Some(Finding::Same), Some(117_020)));
    sums.apply(&name("b"), &change("2026-11-22T12:10:00Z", None, Some(Finding::Missed("no Job".to_owned())), None));
    let found = report(&sums);
    assert_eq!(found["late"], json!({"p50": 117.02, "p99": 117.02, "max": 117.02}));
    assert_eq!(
        found["missed"],
        json!([{"namespace": "shop", "name": "b", "slot": "2026-11-22T12:10:00Z", "why": "no Job"}])
    );
    assert_eq!((&found["slots"], &found["same"], &found["agreement"]), (&json!(2), &json!(1), &json!(50.0)));
    assert_eq!(found["byMinute"], json!([{"minute": 10, "slots": 1, "p50": 117.02, "p99": 117.02, "max": 117.02}]));
    assert_eq!(found["hottest"], json!([{"minute": "2026-11-22T12:10:00Z", "slots": 1, "max": 117.02}]));
    assert_eq!(found["worst"][0]["why"], "its Job was created 117.02 s late");
    assert_eq!(found["verdict"], "2 slots: the controller in charge missed 1, started 0 twice, and differs in 0.");
}

#[test]
fn listed_divergence_is_a_slot_that_is_not_the_same_and_no_difference() {
    let mut sums = Sums::default();
    let listed = Finding::Listed("it was gone".to_owned());
    for (name_of, finding) in [("a", Finding::Same), ("b", listed)] {
        sums.apply(&name(name_of), &change("2026-11-22T12:10:00Z", None, Some(finding), None));
    }
    let found = report(&sums);
    assert_eq!((&found["slots"], &found["same"], sums.is_same()), (&json!(2), &json!(1), true));
    assert_eq!(found["listed"][0]["name"], "b");
    let verdict = "2 slots: this controller would have started the same Jobs, but for 1 that differ as docs/divergences.md lists. \
                   The latest was 0 s late.";
    assert_eq!(found["verdict"], verdict);
}

#[test]
fn lateness_alone_is_no_difference() {
    let mut sums = Sums::default();
    sums.apply(&name("a"), &change("2026-11-22T12:10:00Z", None, Some(Finding::Same), Some(600_000)));
    assert!(sums.is_same());
    assert_eq!(report(&sums)["agreement"], 100.0);
}

#[test]
fn what_the_controller_in_charge_does_not_read_is_counted_apart() {
    let mut sums = Sums::default();
    let (slot, missed) = ("2026-11-22T12:10:00Z", Finding::Missed("no Job".to_owned()));
    sums.apply(&name("a"), &apart(change(slot, None, Some(missed.clone()), None)));
    assert_eq!(report(&sums)["apart"], json!({"slots": 1, "same": 0}));
    sums.apply(&name("a"), &apart(change(slot, Some(missed), Some(Finding::Same), Some(1))));
    assert_eq!(report(&sums)["apart"], json!({"slots": 1, "same": 1}));
    assert_eq!((sums.slots(), sums.is_same(), sums.late.len()), (0, true, 0));
    let twice = Finding::Twice("Jobs a-1 and b were created for it".to_owned());
    sums.apply(&name("a"), &apart(change(slot, Some(Finding::Same), Some(twice), None)));
    assert_eq!((sums.is_same(), sums.twice.len()), (false, 1), "no annotation allows that");
}

/// The finding before and after, whether each is counted apart, and then the slots, the same ones, the missed ones, and those apart.
type MovedRow = (Option<Finding>, Option<Finding>, [bool; 2], [u64; 5]);

#[test]
fn finding_is_taken_back_from_where_it_was_counted() {
    let missed = || Some(Finding::Missed("no Job".to_owned()));
    let same = || Some(Finding::Same);
    let twice = || Some(Finding::Twice("two Jobs".to_owned()));
    let rows: Vec<(&str, Vec<MovedRow>)> = vec![
        (
            "annotated after it was missed",
            vec![(None, missed(), [false, false], [1, 0, 1, 0, 0]), (missed(), same(), [false, true], [0, 0, 0, 1, 1])],
        ),
        (
            "annotated after it was the same",
            vec![(None, same(), [false, false], [1, 1, 0, 0, 0]), (same(), twice(), [false, true], [1, 0, 0, 1, 0])],
        ),
        (
            "no longer annotated",
            vec![(None, missed(), [true, true], [0, 0, 0, 1, 0]), (missed(), same(), [true, false], [1, 1, 0, 0, 0])],
        ),
    ];
    for (case, steps) in rows {
        let mut sums = Sums::default();
        for (before, after, [was_apart, is_apart], want) in steps {
            let change = Change { was_apart, is_apart, ..change("2026-11-22T12:10:00Z", before, after, None) };
            sums.apply(&name("a"), &change);
            let apart = sums.apart;
            let found = [sums.slots(), sums.same, sums.missed.len() as u64, apart.slots, apart.same];
            assert_eq!(found, want, "{case}");
        }
    }
}

#[test]
fn lists_and_minutes_are_bounded_and_the_rest_is_counted() {
    let mut sums = Sums::default();
    let start = at("2026-11-22T00:00:00Z");
    for n in 0..6_000 {
        let slot = (start + TimeDelta::minutes(n)).to_rfc3339();
        sums.apply(&name("a"), &change(&slot, None, Some(Finding::Missed("no Job".to_owned())), None));
        sums.apply(&name("b"), &change(&slot, None, Some(Finding::Same), Some(1000 + n)));
    }
    for _ in 0..5 {
        sums.apply(&name("c"), &change("2026-11-22T03:00:00Z", None, Some(Finding::Same), Some(1)));
    }
    let found = report(&sums);
    assert_eq!((found["missed"].as_array().unwrap().len(), &found["more"]["missed"]), (MOST, &json!(6_000 - MOST)));
    assert_eq!(sums.minutes.len(), MINUTES);
    assert_eq!((found["worst"].as_array().unwrap().len(), &found["worst"][0]["seconds"]), (WORST, &json!(6.999)));
    assert_eq!(found["hottest"].as_array().unwrap().len(), WORST);
    assert_eq!(sums.slots(), 12_005);
    // Those that the list leaves out can be taken back, too.
    let last = (start + TimeDelta::minutes(5_999)).to_rfc3339();
    sums.apply(&name("a"), &change(&last, Some(Finding::Missed("no Job".to_owned())), Some(Finding::Same), None));
    assert_eq!(sums.missed.len(), 5_999);
}

#[test]
fn slots_whose_jobs_the_api_server_refused_are_no_difference() {
    let mut sums = Sums::default();
    for (object, slot) in [("a", "2026-11-22T12:10:00Z"), ("a", "2026-11-22T12:20:00Z"), ("b", "2026-11-22T12:10:00Z")]
    {
        sums.apply(&name(object), &change(slot, None, Some(Finding::Missed("no Job".to_owned())), None));
    }
    assert_eq!(sums.namespaces_of_missed().into_iter().collect::<Vec<_>>(), ["shop"]);
    sums.take_back_refused("other", |_| true);
    assert_eq!(sums.missed.len(), 3);
    sums.take_back_refused("shop", |missed| missed.name == "a" && missed.slot == Some(at("2026-11-22T12:10:00Z")));
    let found = report(&sums);
    assert_eq!((&found["same"], &found["refused"], sums.missed.len()), (&json!(1), &json!(1), 2));
}

#[test]
fn words_of_objects_are_plain_in_every_format() {
    for (sentence, words) in HOSTILE {
        let mut sums = Sums::default();
        let object = ObjectName::new(words, words);
        for finding in
            [Finding::Missed(words.to_owned()), Finding::Twice(words.to_owned()), Finding::Differs(words.to_owned())]
        {
            sums.apply(&object, &change("2026-11-22T12:10:00Z", None, Some(finding), Some(5000)));
        }
        let report = sums.report(1, 1, at("2026-11-22T12:00:00Z"), at("2026-11-22T13:00:00Z"));
        for format in [Format::Table, Format::Json] {
            assert_eq!(harmful(&render(&report, format)), [""; 0], "{sentence}: {format:?}");
        }
    }
}
