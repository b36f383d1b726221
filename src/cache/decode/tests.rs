#![allow(clippy::unwrap_used)]

use std::time::Duration;

use serde_json::json;

use super::super::error::Cause;
use super::*;
use crate::api::batch_v1::Job;

fn decode(namespace: Option<&str>, text: &str) -> Result<Job, MalformedObject> {
    let raw: &RawValue = serde_json::from_str(text).unwrap();
    decode_object(raw, namespace, &Interner::default())
}

#[test]
fn readable_fields_of_a_malformed_object_are_read() {
    // (sentence, text, namespace, name, uid, resource version)
    let rows = [
        (
            "a bad status leaves the metadata whole",
            r#"{"metadata":{"namespace":"a","name":"n","uid":"u","resourceVersion":"5"},"status":{"startTime":7}}"#,
            ["a", "n", "u", "5"],
        ),
        (
            "a bad field of the metadata leaves the other fields",
            r#"{"metadata":{"namespace":"a","name":"n","uid":17,"resourceVersion":"5"}}"#,
            ["a", "n", "", "5"],
        ),
        (
            "a name with an escape is read",
            r#"{"metadata":{"namespace":"a","name":"\u006e","uid":"u","resourceVersion":"5","annotations":3}}"#,
            ["a", "n", "u", "5"],
        ),
        (
            "an object without a resource version cannot be compared",
            r#"{"metadata":{"namespace":"a","name":"n","uid":"u"}}"#,
            ["a", "n", "u", ""],
        ),
        (
            "an object without a name cannot be kept",
            r#"{"metadata":{"namespace":"a","name":"","uid":"u","resourceVersion":"5"}}"#,
            ["a", "", "u", "5"],
        ),
        (
            "an object of another namespace does not belong here",
            r#"{"metadata":{"namespace":"b","name":"n","uid":"u","resourceVersion":"5"}}"#,
            ["b", "n", "u", "5"],
        ),
        ("metadata of the wrong type are empty", r#"{"metadata":[]}"#, ["", "", "", ""]),
        ("no metadata are empty", "{}", ["", "", "", ""]),
        ("what is not even an object is empty", "null", ["", "", "", ""]),
    ];
    for (sentence, text, [namespace, name, uid, resource_version]) in rows {
        let got = decode(Some("a"), text).expect_err(sentence);
        assert!(!got.error.is_empty(), "{sentence}");
        let expected = MalformedObject {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
            resource_version: resource_version.into(),
            error: got.error.clone(),
        };
        assert_eq!(got, expected, "{sentence}");
    }
}

#[test]
fn error_about_a_malformed_object_is_short() {
    let long = "é".repeat(1 << 20);
    let bad = json!({"metadata": {"namespace": "a", "name": "n", "uid": "u", "resourceVersion": "5"},
                     "status": {"startTime": long}});
    let malformed = decode(Some("a"), &bad.to_string()).unwrap_err();
    assert_eq!(malformed.name, "n");
    let [unknown, no_event, no_page] =
        [json!({"type": long, "object": {}}), json!(long), json!({"metadata": long})].map(|text| text.to_string());
    let unknown = Event::decode(unknown.as_bytes()).unwrap();
    let no_event = Event::decode(no_event.as_bytes()).unwrap_err();
    let no_page = PageEnvelope::decode(no_page.as_bytes()).map(drop).unwrap_err();
    let refused = decode_status(json!({"code": 500, "reason": long, "message": long}).to_string().as_bytes(), None);
    let rows = [
        ("an object", malformed.error),
        ("a type of event", format!("{unknown:?}")),
        ("a line", Cause::Envelope(no_event).to_string()),
        ("a page", Cause::Envelope(no_page).to_string()),
        ("a Status", refused.to_string()),
    ];
    for (sentence, said) in rows {
        assert!((1..=3 * MAX_MESSAGE).contains(&said.len()), "{sentence}: {}", said.len());
    }
}

#[test]
fn events_are_read_whatever_the_order_of_their_fields() {
    let rows = [
        (r#"{"type":"ADDED","object":{"a":1}}"#, r#"Upserted(RawValue({"a":1}))"#),
        (r#"{"object":{"a":1},"type":"MODIFIED"}"#, r#"Upserted(RawValue({"a":1}))"#),
        (r#"{"type":"DELETED","object":{}}"#, "Deleted(RawValue({}))"),
        (
            r#"{"type":"BOOKMARK","object":{"kind":"Job","metadata":{"resourceVersion":"7","creationTimestamp":null}}}"#,
            r#"Bookmark { resource_version: "7", ends_initial_events: false }"#,
        ),
        (
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            r#"Bookmark { resource_version: "7", ends_initial_events: true }"#,
        ),
        (r#"{"type":"NEWS","object":{}}"#, r#"Unknown("NEWS")"#),
    ];
    for (line, expected) in rows {
        assert_eq!(format!("{:?}", Event::decode(line.as_bytes()).unwrap()), expected);
    }
    for garbage in ["", "{", "[]", r#"{"type":"ADDED"}"#, r#"{"type":"BOOKMARK","object":{}}"#, "\u{0}"] {
        assert!(Event::decode(garbage.as_bytes()).is_err(), "{garbage:?}");
    }
    assert!(Event::decode(b"{\"type\":\"ADDED\",\"object\":\"\xff\"}").is_err(), "not UTF-8");
}

#[test]
fn a_line_that_is_read_in_one_pass_is_as_servers_write_it() {
    let job = r#"{"metadata":{"name":"n","namespace":"a","uid":"u","resourceVersion":"5"}}"#;
    let rows = [
        ("an addition", format!(r#"{{"type":"ADDED","object":{job}}}"#), Some(Change::Upserted)),
        (
            "a change, with a carriage return",
            format!("{{\"type\":\"MODIFIED\",\"object\":{job}}}\r"),
            Some(Change::Upserted),
        ),
        ("a deletion", format!(r#"{{"type":"DELETED","object":{job}}}"#), Some(Change::Deleted)),
        ("a bookmark", format!(r#"{{"type":"BOOKMARK","object":{job}}}"#), None),
        ("another order", format!(r#"{{"object":{job},"type":"ADDED"}}"#), None),
        ("blanks between", format!(r#"{{"type":"ADDED", "object":{job}}}"#), None),
        ("more behind the object", format!(r#"{{"type":"ADDED","object":{job},"more":{{}}}}"#), None),
        ("two lines in one", format!(r#"{{"type":"ADDED","object":{job}}}{{"type":"ADDED","object":{job}}}"#), None),
        ("a brace too few", format!(r#"{{"type":"ADDED","object":{job}"#), None),
        ("a brace too many", format!(r#"{{"type":"ADDED","object":{job}}}}}"#), None),
        ("no object", r#"{"type":"ADDED","object":null}"#.to_owned(), None),
        (
            "an object without a version",
            r#"{"type":"ADDED","object":{"metadata":{"name":"n","uid":"u"}}}"#.into(),
            None,
        ),
        ("another namespace", format!(r#"{{"type":"ADDED","object":{}}}"#, job.replace(r#""a""#, r#""b""#)), None),
    ];
    for (sentence, line, expected) in rows {
        let got = decode_quickly::<Job>(line.as_bytes(), Some("a"), &Interner::default());
        assert_eq!(got.map(|(change, _)| change), expected, "{sentence}");
    }
    let latin = [br#"{"type":"ADDED","object":{"metadata":{"name":"n"#, &b"\xff"[..], br#""}}}"#].concat();
    assert!(decode_quickly::<Job>(&latin, None, &Interner::default()).is_none(), "not UTF-8");
}

#[test]
fn a_page_may_leave_out_what_is_empty() {
    for (text, items, token) in [
        (r#"{"metadata":{"resourceVersion":"5"},"items":null}"#, 0, ""),
        (r#"{"metadata":{"resourceVersion":"5"}}"#, 0, ""),
        (r#"{"items":[{},null],"metadata":{"continue":"x","resourceVersion":"5","remainingItemCount":3}}"#, 2, "x"),
    ] {
        let page = PageEnvelope::decode(text.as_bytes()).unwrap();
        assert_eq!((page.items().count(), page.metadata.continue_token.as_str()), (items, token), "{text}");
        assert_eq!(page.metadata.resource_version, "5", "{text}");
    }
}

#[test]
fn a_refusal_is_read_from_a_status_and_from_prose() {
    let status = json!({
        "kind": "Status", "code": 504, "reason": "Timeout", "message": "Too large resource version",
        "details": {"retryAfterSeconds": 1, "causes": [{"reason": "ResourceVersionTooLarge"}]},
    });
    let read = decode_status(status.to_string().as_bytes(), None);
    assert_eq!((read.code, read.reason.as_str(), read.resource_version_too_large), (504, "Timeout", true));
    assert_eq!(read.retry_after, Some(Duration::from_secs(1)));

    let long = "é".repeat(10_000);
    let read = decode_status(long.as_bytes(), Some(502));
    assert_eq!((read.code, read.message.len()), (502, MAX_MESSAGE));
}
