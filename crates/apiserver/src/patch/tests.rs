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

#[test]
fn steps_of_a_patch_grow_with_its_length() {
    let resources = kinds::all();
    let kind = |kind: &str| resources.iter().find(|resource| resource.kind == kind).unwrap();
    let (pods, cron_jobs) = (kind("Pod"), kind("CronJob"));
    let containers = |number: usize, image: &str| -> Vec<Value> {
        (0..number).map(|name| json!({"name": format!("c{name}"), "image": image})).collect()
    };
    let names = |number: usize| -> Vec<Value> { (0..number).map(|name| json!(format!("a/{name}"))).collect() };
    let strategic = |target: Value, patch: Value| {
        let mut target = target;
        apimachinery::steps::of(|| super::strategic_patch(pods, &mut target, patch.as_object().unwrap()).unwrap()).0
    };
    let rows: [(&str, &dyn Fn(usize) -> u64); 6] = [
        ("items of a keyed list", &|number| {
            let before = json!({"spec": {"containers": containers(number, "a")}});
            strategic(before, json!({"spec": {"containers": containers(number, "b")}}))
        }),
        ("an order of a keyed list", &|number| {
            let (mut order, before) =
                (containers(number, "a"), json!({"spec": {"containers": containers(number, "a")}}));
            order.reverse();
            let last = json!([{"name": "c0", "image": "b"}]);
            strategic(before, json!({"spec": {"$setElementOrder/containers": order, "containers": last}}))
        }),
        ("deleted items", &|number| {
            let gone: Vec<Value> =
                (0..number).map(|name| json!({"name": format!("c{name}"), "$patch": "delete"})).collect();
            strategic(json!({"spec": {"containers": containers(number, "a")}}), json!({"spec": {"containers": gone}}))
        }),
        ("items of a set", &|number| {
            strategic(
                json!({"metadata": {"finalizers": names(number)}}),
                json!({"metadata": {"finalizers": names(number)}}),
            )
        }),
        ("items deleted from a set", &|number| {
            let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": names(number)}});
            strategic(json!({"metadata": {"finalizers": names(number)}}), gone)
        }),
        ("undeclared fields", &|number| {
            let applied: Vec<Value> = (0..number).map(|name| json!({"name": format!("c{name}"), "a": 1})).collect();
            let applied = json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": applied}}}}}});
            let unknown = cron_jobs.strategy.normalize(&mut applied.clone()).unwrap();
            assert_eq!(unknown.len(), number);
            apimachinery::steps::of(|| typed::problems(cron_jobs, &applied, &unknown)).0
        }),
    ];
    for (sentence, steps) in rows {
        let (once, twice) = (steps(300), steps(600));
        assert!(once >= 300 && twice <= once * 2 + once / 4, "{sentence}: {once} steps, and {twice} for twice as much");
    }
}

#[test]
fn json_patch_that_shifts_too_many_items_is_refused() {
    let insert = |times: usize| vec![json!({"op": "add", "path": "/a/0", "value": 0}); times];
    for (times, is_ok) in [(100, true), (200, false)] {
        let mut value = json!({"a": vec![0; 100_000]});
        assert_eq!(json_patch(&mut value, &insert(times)).is_ok(), is_ok, "{times}");
    }
}
