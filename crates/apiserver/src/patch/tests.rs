#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::{json_patch, merge_patch, typed};
use crate::kinds;

#[test]
fn merge_patches_follow_the_examples_of_rfc_7386() {
    let rows = [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
        ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
    ];
    for (target, patch, expected) in rows {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let mut value = parse(target);
        merge_patch(&mut value, &parse(patch));
        assert_eq!(value, parse(expected), "{target} with {patch}");
    }
}

#[test]
fn json_patches_apply_or_refuse_each_operation() {
    let rows: Vec<(&str, Value, Option<Value>)> = vec![
        ("add a member", json!([{"op": "add", "path": "/x", "value": 1}]), Some(json!({"a": [1, 2], "b": {}, "x": 1}))),
        ("add to the end", json!([{"op": "add", "path": "/a/-", "value": 3}]), Some(json!({"a": [1, 2, 3], "b": {}}))),
        ("insert", json!([{"op": "add", "path": "/a/1", "value": 3}]), Some(json!({"a": [1, 3, 2], "b": {}}))),
        ("insert too far", json!([{"op": "add", "path": "/a/9", "value": 3}]), None),
        ("remove an item", json!([{"op": "remove", "path": "/a/0"}]), Some(json!({"a": [2], "b": {}}))),
        ("remove what is not there", json!([{"op": "remove", "path": "/z"}]), None),
        ("replace", json!([{"op": "replace", "path": "/b", "value": 1}]), Some(json!({"a": [1, 2], "b": 1}))),
        ("move", json!([{"op": "move", "from": "/a", "path": "/b/c"}]), Some(json!({"b": {"c": [1, 2]}}))),
        ("copy", json!([{"op": "copy", "from": "/a/0", "path": "/b/c"}]), Some(json!({"a": [1, 2], "b": {"c": 1}}))),
        ("a test that holds", json!([{"op": "test", "path": "/a/0", "value": 1}]), Some(json!({"a": [1, 2], "b": {}}))),
        ("a test that does not", json!([{"op": "test", "path": "/a/0", "value": 2}]), None),
        ("an unknown operation", json!([{"op": "frob", "path": "/a"}]), None),
        (
            "an escaped path",
            json!([{"op": "add", "path": "/b/x~1y~0", "value": 1}]),
            Some(json!({"a": [1, 2], "b": {"x/y~": 1}})),
        ),
        (
            "more copied than there is room for",
            Value::Array(vec![json!({"op": "copy", "from": "", "path": "/a/-"}); 40]),
            None,
        ),
        ("no parent", json!([{"op": "add", "path": "/q/r", "value": 1}]), None),
    ];
    for (why, patch, expected) in rows {
        let mut value = json!({"a": [1, 2], "b": {}});
        let outcome = json_patch(&mut value, patch.as_array().unwrap());
        assert_eq!(outcome.is_ok(), expected.is_some(), "{why}");
        if let Some(expected) = expected {
            assert_eq!(value, expected, "{why}");
        }
    }
}

#[test]
fn first_undeclared_field_of_each_map_is_reported() {
    let resources = kinds::all();
    let cron_jobs = resources.iter().find(|resource| resource.kind == "CronJob").unwrap();
    let rows = [
        ("one", json!({"spec": {"color": 1}}), ".spec.color: field not declared in schema"),
        (
            "two in a map",
            json!({"spec": {"size": 1, "schedule": "* * * * *", "color": 1}}),
            ".spec.color: field not declared in schema",
        ),
        (
            "one in a map, one below it",
            json!({"spec": {"jobTemplate": {"color": 1}, "zone": 1}}),
            ".spec.zone: field not declared in schema",
        ),
        (
            "one in each of two maps, one of them with dots in its name",
            json!({"metadata": {"a.b": 1}, "spec": {"color": 1}}),
            "errors:\n  .metadata.a.b: field not declared in schema\n  .spec.color: field not declared in schema",
        ),
    ];
    for (why, applied, expected) in rows {
        let unknown = cron_jobs.strategy.normalize(&mut applied.clone()).unwrap();
        assert_eq!(typed::problems(cron_jobs, &applied, &unknown).unwrap(), expected, "{why}");
    }
}
