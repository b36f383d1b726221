//! The wire format: the body compared with an object of a real server, names, times, messages.
#![allow(clippy::unwrap_used)]

use chrono::TimeZone;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A CronJob named `name`.
pub(super) fn cron_job(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: "batch/v1".into(),
        kind: "CronJob".into(),
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-of-{name}").into(),
        resource_version: "207".into(),
    }
}

/// A first occurrence of `reason` about `name` at `now`.
pub(super) fn event(name: &str, type_: EventType, reason: &'static str, message: &str, now: DateTime<Utc>) -> Event {
    let nanos = now.timestamp_nanos_opt().unwrap();
    Event::new(&cron_job(name), type_, reason, message.into(), "cronjob-controller", now, nanos)
}

/// 17:50 on 2026-11-20 plus this many seconds.
pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    Utc.timestamp_opt(1_795_197_000 + seconds, 0).unwrap()
}

/// Two Events of kube-controller-manager v1.37.2 as the server returns them, without the fields that the server adds.
/// `tests/reference/record` writes them.
const IN_TREE: &str = include_str!("../../tests/reference/in-tree-events.json");

#[test]
fn the_body_is_that_of_the_in_tree_controller_in_every_field() {
    let recorded: Vec<Value> = serde_json::from_str(IN_TREE).unwrap();
    assert_eq!(recorded.len(), 2);
    for theirs in recorded {
        let text = |pointer: &str| theirs.pointer(pointer).unwrap().as_str().unwrap();
        let nanos = i64::from_str_radix(text("/metadata/name").strip_prefix("hello.").unwrap(), 16).unwrap();
        let regarding = ObjectReference {
            uid: text("/involvedObject/uid").into(),
            resource_version: text("/involvedObject/resourceVersion").into(),
            ..cron_job("hello")
        };
        let (now, message) = (DateTime::from_timestamp_nanos(nanos), text("/message").into());
        let component = "cronjob-controller";
        let ours = Event::new(&regarding, EventType::Normal, "SuccessfulCreate", message, component, now, nanos);
        let ours = serde_json::to_value(&ours).unwrap();
        for (field, value) in theirs.as_object().unwrap() {
            assert_eq!(&ours[field], value, "{field}");
        }
        assert_eq!(ours, theirs, "no field more than theirs");
    }
}

#[test]
fn the_body_is_an_event_to_k8s_openapi() {
    let body = serde_json::to_value(event("hello", EventType::Warning, "FailedCreate", "no", at(0))).unwrap();
    let typed: k8s_openapi::api::core::v1::Event = serde_json::from_value(body).unwrap();
    assert_eq!(typed.type_.as_deref(), Some("Warning"));
    assert_eq!(typed.count, Some(1));
    assert_eq!(typed.event_time, None);
}

#[test]
fn an_object_without_namespace_has_its_events_in_default_and_empty_fields_are_left_out() {
    let regarding = ObjectReference { namespace: "".into(), resource_version: "".into(), ..cron_job("n") };
    let event = Event::new(&regarding, EventType::Normal, "Reason", "m".into(), "c", at(0), 1);
    let body = serde_json::to_value(event).unwrap();
    assert_eq!(body["metadata"], json!({"name": "n.1", "namespace": "default"}));
    let about = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "n", "uid": "uid-of-n"});
    assert_eq!(body["involvedObject"], about);
}

#[test]
fn times_are_cut_to_whole_seconds_and_not_rounded() {
    let now = at(0) + chrono::TimeDelta::nanoseconds(999_999_999);
    let body = serde_json::to_value(event("n", EventType::Normal, "R", "m", now)).unwrap();
    assert_eq!(body["lastTimestamp"], "2026-11-20T17:50:00Z");
}

#[test]
fn a_patch_carries_count_last_time_and_message() {
    let event = Event { count: 3, last_timestamp: at(61), ..event("n", EventType::Normal, "R", "m", at(0)) };
    let patch = serde_json::to_value(event.patch()).unwrap();
    assert_eq!(patch, json!({"count": 3, "lastTimestamp": "2026-11-20T17:51:01Z", "message": "m"}));
}

#[test]
fn names() {
    let (long, longest) = ("a".repeat(251), "a".repeat(250));
    let uid = "61ab93d6-a54e-4366-8ceb-d74618b1bb91";
    let rows = [
        ("the object's name and the time in hex", "hello", uid, 0x18e9_d229, "hello.18e9d229".to_owned()),
        ("dots are fine", "a.b-c", uid, 1, "a.b-c.1".to_owned()),
        ("a name of 253 in all is fine", &longest, uid, 0xff, format!("{longest}.ff")),
        ("one more is not", &long, uid, 0xff, format!("{uid}.ff")),
        ("upper case is no Event's name", "Hello", uid, 2, format!("{uid}.2")),
        ("nor is a path", "a/b", uid, 2, format!("{uid}.2")),
        ("nor is none at all", "", uid, 2, format!("{uid}.2")),
        ("no UID to fall back to", "a..b", "", 2, "event.2".to_owned()),
        ("a time before 1970 is its two's complement", "a", uid, -1, "a.ffffffffffffffff".to_owned()),
    ];
    for (row, object, uid, nanos, want) in rows {
        assert_eq!(&*event_name(object, uid, nanos), want, "{row}");
    }
}

#[test]
fn messages_are_sent_whole_up_to_the_bound_and_cut_between_characters() {
    let rows = [
        ("longer than events.k8s.io would take", "x".repeat(5000), 5000),
        ("just at the bound", "x".repeat(MAX_MESSAGE_BYTES), MAX_MESSAGE_BYTES),
        ("one too many", "x".repeat(MAX_MESSAGE_BYTES + 1), MAX_MESSAGE_BYTES),
        ("a character on the bound goes", format!("x{}", "é".repeat(MAX_MESSAGE_BYTES)), MAX_MESSAGE_BYTES - 1),
        ("an empty one stays", String::new(), 0),
    ];
    for (row, message, want) in rows {
        let cut = truncated(message.clone());
        assert_eq!(cut.len(), want, "{row}");
        assert!(message.starts_with(&cut), "{row}");
    }
}

proptest! {
    #[test]
    fn every_name_is_a_valid_one(object in ".{0,300}|[a-z0-9.-]{0,260}", uid in "[a-z0-9-]{0,40}|.{0,10}", nanos: i64) {
        let name = event_name(&object, &uid, nanos);
        prop_assert!(name.len() <= 253);
        // The API server's own expression.
        prop_assert!(name.split('.').all(|label| {
            !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
                && label.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
        }), "{}", name);
    }
}
