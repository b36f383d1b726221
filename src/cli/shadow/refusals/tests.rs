#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

/// The slot is due at ten minutes past noon. A sentence, a change of the Event, and whether it is about the slot.
type Row<'a> = (&'a str, Value, bool);

#[test]
fn event_is_about_a_slot_of_the_same_cron_job_that_could_start_then() {
    let due: DateTime<Utc> = "2026-11-22T12:10:00Z".parse().unwrap();
    let uid = "2f5b3f6a-6f0e-4f64-9d2e-7c0d3a7b8c11";
    let missed = Entry {
        namespace: "shop".to_owned(),
        name: "nightly".to_owned(),
        slot: Some(due),
        why: "no Job".to_owned(),
        of: Some((Uid::new(uid), due)),
    };
    let times = |first: &str, last: &str| json!({"firstTimestamp": format!("2026-11-22T{first}Z"), "lastTimestamp": format!("2026-11-22T{last}Z")});
    let rows: Vec<Row<'_>> = vec![
        ("at once", json!({}), true),
        ("of no UID", json!({"involvedObject": {"uid": null}}), true),
        ("of an earlier CronJob of the name", json!({"involvedObject": {"uid": "another"}}), false),
        ("of another name", json!({"involvedObject": {"name": "hourly"}}), false),
        ("a clock that is a little behind", times("12:09:58", "12:09:58"), true),
        ("before the slot", times("12:00:00", "12:09:57"), false),
        ("at the end of the three minutes", times("12:13:00", "12:13:00"), true),
        ("after the slot was missed", times("12:13:01", "12:20:00"), false),
        ("a series that begins with the slot", times("12:10:01", "13:10:00"), true),
        ("a series that ends with the slot", times("11:00:00", "12:10:00"), true),
        ("a series around the slot may leave it out", times("11:00:00", "13:00:00"), false),
        ("of no time", json!({"firstTimestamp": null, "lastTimestamp": null}), false),
    ];
    for (name, change, want) in rows {
        let mut event = json!({"involvedObject": {"kind": "CronJob", "name": "nightly", "uid": uid}});
        apiserver::merge_patch(&mut event, &times("12:10:00", "12:10:00"));
        apiserver::merge_patch(&mut event, &change);
        let refusal: Refusal = serde_json::from_value(event).unwrap();
        assert_eq!(refusal.is_of(&missed), want, "{name}");
    }
}
