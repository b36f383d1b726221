#![allow(clippy::unwrap_used)]

use super::*;
use crate::api::policy;

const UID: &str = "3a1f0c52-6e0b-4d5c-9f43-0d8f3a2f7b11";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn reading(annotations: &[(&str, &str)]) -> Option<PolicyReading> {
    PolicyReading::of(annotations.iter().copied(), "0 3 * * *")
}

fn fingerprint(
    uid: &str,
    schedule: &str,
    zone: Option<&str>,
    suspended: bool,
    annotations: &[(&str, &str)],
) -> Fingerprint {
    Fingerprint::new(&Uid::new(uid), schedule, zone, suspended, reading(annotations).as_ref())
}

/// The fingerprint as it is written.
fn text(fingerprint: Fingerprint) -> String {
    CountedFrom::new(at("2027-03-01T09:00:00Z"), fingerprint, None).to_string().split_once(' ').unwrap().1.to_owned()
}

fn plain() -> Fingerprint {
    fingerprint(UID, "0 3 * * *", None, false, &[])
}

#[test]
fn fingerprint_changes_with_everything_that_changes_slots() {
    let all = [
        plain(),
        fingerprint("other", "0 3 * * *", None, false, &[]),
        fingerprint(UID, "0 4 * * *", None, false, &[]),
        fingerprint(UID, "0 3 * * *", Some(""), false, &[]),
        fingerprint(UID, "0 3 * * *", Some("Europe/Berlin"), false, &[]),
        fingerprint(UID, "0 3 * * *", None, true, &[]),
        fingerprint(UID, "0 3 * * *", None, false, &[(policy::SPREAD, "15m")]),
        fingerprint(UID, "0 3 * * *", None, false, &[(policy::SPREAD, "900s")]),
        fingerprint(UID, "0 3 * * *", None, false, &[(policy::EXCLUDE, "Sat")]),
        fingerprint(UID, "0 3 * * *", None, false, &[(policy::EXCLUDE, "nonsense")]),
        fingerprint(UID, "0 3 * * *", None, false, &[(policy::NOT_AFTER, "2027-01-01T00:00:00Z")]),
        fingerprint(UID, "0 3 * * *", None, false, &[(policy::NOT_BEFORE, "2027-01-01T00:00:00Z")]),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all[at + 1..].iter().all(|other| one != other), "{at}: {one:?}");
    }
}

#[test]
fn fingerprint_does_not_change_with_anything_else() {
    let annotations = [("example.com/team", "a"), (policy::COUNTED_FROM, "x"), ("cronjob-controller.dev/typo", "y")];
    assert_eq!(fingerprint(UID, "0 3 * * *", None, false, &annotations), plain());
    let [one, two] = [(policy::SPREAD, "15m"), (policy::EXCLUDE, "Sat")];
    let in_order = |annotations: &[(&str, &str)]| fingerprint(UID, "0 3 * * *", None, false, annotations);
    assert_eq!(in_order(&[one, two]), in_order(&[two, one]));
}

/// Replicas of two versions of the program must agree, so this value may only change with the version in it.
#[test]
fn fingerprint_of_version_1_stays_as_it_is() {
    let annotations = [(policy::SPREAD, "15m"), (policy::DST, "once")];
    let fingerprint = fingerprint(UID, "0 3 * * *", Some("Europe/Berlin"), false, &annotations);
    assert_eq!(text(fingerprint), format!("v1:{UID}:82b139591803cdc3"));
}

#[test]
fn counted_from_is_read_as_it_was_written() {
    for (generation, version, end) in [(None, "v1", ""), (Some(12), "v2", ":12")] {
        let counted = CountedFrom::new(at("2027-03-01T09:00:00.7Z"), plain(), generation);
        let text = counted.to_string();
        assert!(text.starts_with(&format!("2027-03-01T09:00:00Z {version}:{UID}:")) && text.ends_with(end), "{text}");
        assert_eq!(CountedFrom::parse(&text), Some(counted));
    }
    for text in ["2027-03-01T09:00:00Z v1:a uid: of any form:0123456789abcdef", "2027-03-01T09:00:00Z v27:what ever"] {
        assert_eq!(CountedFrom::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn text_that_is_no_counted_from_is_refused() {
    let fingerprint = text(plain());
    let rows = [
        String::new(),
        "2027-03-01T09:00:00Z".to_owned(),
        format!("soon {fingerprint}"),
        format!("2027-03-01T09:00:00Z  {fingerprint}"),
        format!("2027-03-01T09:00:00Z {fingerprint}0"),
        format!("2027-03-01T09:00:00Z {}", fingerprint.to_uppercase()),
        "2027-03-01T09:00:00Z v1:0123456789abcdef".to_owned(),
        "2027-03-01T09:00:00Z v1:u:+123456789abcdef".to_owned(),
        "2027-03-01T09:00:00Z w1:u:0123456789abcdef".to_owned(),
        "2027-03-01T09:00:00Z v:u:0123456789abcdef".to_owned(),
        "2027-03-01T09:00:00Z v2:u:0123456789abcdef".to_owned(),
        "2027-03-01T09:00:00Z v2:u:0123456789abcdef:".to_owned(),
        "2027-03-01T09:00:00Z v2:u:0123456789abcdef:one".to_owned(),
    ];
    for text in rows {
        assert_eq!(CountedFrom::parse(&text), None, "{text}");
    }
}

#[test]
fn counted_from_is_judged_by_object_version_and_clock() {
    let now = at("2027-03-01T09:00:00Z");
    let other = fingerprint(UID, "0 4 * * *", None, false, &[]);
    let retimed = fingerprint(UID, "0 4 * * *", None, false, &[(policy::SPREAD, "15m")]);
    let copy = fingerprint("copy", "0 3 * * *", None, false, &[]);
    let past = at("2027-03-01T08:00:00Z");
    let rows = [
        ("nothing changed", "2027-03-01T08:00:00Z", text(plain()), Counted::Unchanged(past)),
        (
            "the schedule changed",
            "2027-03-01T08:00:00Z",
            text(other),
            Counted::Changed { time: past, zone_removed: false, resumed: false },
        ),
        ("a timing annotation changed", "2027-03-01T08:00:00Z", text(retimed), Counted::Retimed { removed: true }),
        ("another object's", "2027-03-01T08:00:00Z", text(copy), Counted::Absent),
        ("another version", "2027-03-01T08:00:00Z", "v27:x".to_owned(), Counted::Outdated(past)),
        (
            "a clock a minute ahead",
            "2027-03-01T09:01:00Z",
            text(plain()),
            Counted::Unchanged(at("2027-03-01T09:01:00Z")),
        ),
        ("further ahead", "2027-03-01T09:01:01Z", text(plain()), Counted::Absent),
        ("another version of the future", "2027-03-01T09:01:01Z", "v27:x".to_owned(), Counted::Absent),
    ];
    for (name, time, fingerprint, want) in rows {
        let counted = CountedFrom::parse(&format!("{time} {fingerprint}")).unwrap();
        assert_eq!(counted.judge(&plain(), None, now), want, "{name}");
    }
}

/// A change that was undone, such as a suspension, is not in the fingerprint.
#[test]
fn edits_that_left_the_fingerprint_as_it_was_are_told_by_the_generation() {
    let past = at("2027-03-01T08:00:00Z");
    let rows = [
        ("it does not count", Some(3), None, Counted::Unchanged(past)),
        ("no edit", Some(3), Some(3), Counted::Unchanged(past)),
        ("one edit, of something else", Some(3), Some(4), Counted::Outdated(past)),
        ("two edits", Some(3), Some(5), Counted::Undone(past)),
        ("an earlier generation, of a backup", Some(3), Some(2), Counted::Undone(past)),
        ("the record has none", None, Some(5), Counted::Outdated(past)),
        ("as far as numbers go", Some(i64::MIN), Some(i64::MAX), Counted::Undone(past)),
    ];
    for (sentence, written, current, want) in rows {
        let counted = CountedFrom::new(past, plain(), written);
        assert_eq!(counted.judge(&plain(), current, past), want, "{sentence}");
    }
}

#[test]
fn removal_of_a_timing_annotation_is_told_from_a_change() {
    let past = at("2027-03-01T08:00:00Z");
    let judged = |written: &[(&str, &str)], current: &[(&str, &str)]| {
        let of = |annotations| fingerprint(UID, "0 3 * * *", None, false, annotations);
        CountedFrom::new(past, of(written), None).judge(&of(current), None, past)
    };
    let (spread, longer, dst) = ((policy::SPREAD, "15m"), (policy::SPREAD, "20m"), (policy::DST, "once"));
    assert_eq!(judged(&[], &[spread]), Counted::Retimed { removed: false });
    assert_eq!(judged(&[spread], &[longer]), Counted::Retimed { removed: false });
    assert_eq!(judged(&[spread], &[spread, dst]), Counted::Retimed { removed: false });
    assert_eq!(judged(&[spread, dst], &[spread]), Counted::Retimed { removed: true });
    assert_eq!(judged(&[spread], &[dst]), Counted::Retimed { removed: true });
    assert_eq!(judged(&[spread], &[]), Counted::Retimed { removed: true });
}
