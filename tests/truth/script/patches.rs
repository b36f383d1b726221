//! JSON patches, merge patches and strategic merge patches.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("json-patch", json_patch()),
        scenario("merge-patch", merge_patch()),
        scenario("strategic-patch", strategic()),
    ]
}

fn a() -> String {
    format!("{CRONJOBS}/a")
}

fn json_patch() -> Vec<Step> {
    let op = |sentence: &str, patches: Value| patch(JSON_PATCH, a(), &patches).named(sentence);
    vec![
        post(CRONJOBS, &cronjob("a").with("/metadata/labels", json!({"x": "1", "y/z": "2"}))).named("a CronJob"),
        op(
            "add, replace, remove",
            json!([{"op": "add", "path": "/metadata/labels/new", "value": "n"}, {"op": "replace", "path": "/spec/suspend", "value": true},
            {"op": "remove", "path": "/metadata/labels/x"}]),
        ),
        op("a slash in a key is escaped", json!([{"op": "replace", "path": "/metadata/labels/y~1z", "value": "3"}])),
        op(
            "copy and move",
            json!([{"op": "copy", "from": "/metadata/labels/new", "path": "/metadata/labels/copied"}, {"op": "move", "from": "/metadata/labels/new", "path": "/metadata/labels/moved"}]),
        ),
        op(
            "a test that holds",
            json!([{"op": "test", "path": "/spec/suspend", "value": true}, {"op": "replace", "path": "/spec/suspend", "value": false}]),
        ),
        op("a test that does not hold", json!([{"op": "test", "path": "/spec/suspend", "value": true}])),
        op("an empty patch changes nothing", json!([])),
        op("a removal of nothing", json!([{"op": "remove", "path": "/metadata/labels/none"}])),
        op("a replacement of nothing", json!([{"op": "replace", "path": "/metadata/annotations/none", "value": "x"}])),
        op("an addition below nothing", json!([{"op": "add", "path": "/metadata/annotations/none", "value": "x"}])),
        op("an operation that does not exist", json!([{"op": "burn", "path": "/spec"}])),
        op("a path without a slash", json!([{"op": "remove", "path": "spec"}])),
        op(
            "an append to a list",
            json!([{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/containers/-", "value": {"name": "d", "image": "x"}}]),
        ),
        op(
            "an insertion into a list",
            json!([{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/containers/0", "value": {"name": "e", "image": "x"}}]),
        ),
        op(
            "a removal from a list",
            json!([{"op": "remove", "path": "/spec/jobTemplate/spec/template/spec/containers/0"}]),
        ),
        op(
            "an index out of range",
            json!([{"op": "remove", "path": "/spec/jobTemplate/spec/template/spec/containers/9"}]),
        ),
        op("a result that is not valid", json!([{"op": "replace", "path": "/spec/schedule", "value": "bad"}])),
        op("a result of another type", json!([{"op": "replace", "path": "/spec/schedule", "value": 5}])),
        op("a patch that is no list", json!({"op": "remove", "path": "/spec"})),
        patch(JSON_PATCH, a(), &json!([])).body("nonsense").named("a patch that is no JSON"),
        patch(JSON_PATCH, format!("{CRONJOBS}/nobody"), &json!([{"op": "remove", "path": "/spec"}]))
            .named("a patch of an absent object"),
        patch("application/vnd.odd+json", a(), &json!({})).named("a patch of a type that does not exist"),
        patch("application/json", a(), &json!({})).named("a patch that does not say its type"),
        op("the name cannot be replaced", json!([{"op": "replace", "path": "/metadata/name", "value": "b"}])),
        op("the kind cannot be replaced", json!([{"op": "replace", "path": "/kind", "value": "Job"}])),
        op("a null value", json!([{"op": "add", "path": "/spec/suspend", "value": null}])),
    ]
}

fn merge_patch() -> Vec<Step> {
    let put = |sentence: &str, body: Value| patch(MERGE, a(), &body).named(sentence);
    vec![
        post(CRONJOBS, &cronjob("a").with("/metadata/labels", json!({"x": "1"}))).named("a CronJob"),
        put("a field is set", json!({"spec": {"suspend": true}})),
        put("the same again changes nothing", json!({"spec": {"suspend": true}})),
        put("an empty patch changes nothing", json!({})),
        put("a label is added and one removed", json!({"metadata": {"labels": {"x": null, "y": "2"}}})),
        put(
            "a list is replaced whole",
            json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "z", "image": "z"}]}}}}}}),
        ),
        put("a default comes back", json!({"spec": {"concurrencyPolicy": null}})),
        put("a required field cannot go", json!({"spec": {"schedule": null}})),
        put("a field of another type", json!({"spec": {"suspend": "maybe"}})),
        put("an unknown field", json!({"spec": {"color": "red"}})),
        put("a patch that is a list", json!([])),
        put("a patch that is null", json!(null)),
        put("another kind", json!({"kind": "Job"})),
        put("another version", json!({"apiVersion": "v1"})),
        patch(MERGE, a(), &json!({})).body("{").named("a patch that is no JSON"),
        patch(MERGE, a(), &json!({})).body("").named("an empty body"),
        patch(MERGE, format!("{CRONJOBS}/nobody"), &json!({})).named("a patch of an absent object"),
        patch(MERGE, format!("{}?force=true", a()), &json!({})).named("force is for apply alone"),
        patch(MERGE, format!("{}?fieldManager=me", a()), &json!({"spec": {"startingDeadlineSeconds": 5}}))
            .named("a field manager"),
        get(a()).named("what came of it"),
    ]
}

fn strategic() -> Vec<Step> {
    let put = |sentence: &str, body: Value| patch(STRATEGIC, a(), &body).named(sentence);
    let pod = |spec: Value| json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}});
    vec![
        get(format!("{NAMESPACES}/${{ns}}")).id("ns-object").named("the namespace, to own what is in it"),
        post(CRONJOBS, &cronjob("a")).named("a CronJob"),
        put("a container is merged by name", pod(json!({"containers": [{"name": "c", "image": "two"}]}))),
        put("a container is added by name", pod(json!({"containers": [{"name": "d", "image": "three"}]}))),
        put(
            "the order is set",
            pod(
                json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "d"}], "containers": [{"name": "d", "image": "four"}]}),
            ),
        ),
        put(
            "variables are merged by name",
            pod(json!({"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]})),
        ),
        put("and again", pod(json!({"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}]}))),
        put("one is deleted", pod(json!({"containers": [{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}]}))),
        put("a list of plain values is replaced", pod(json!({"containers": [{"name": "c", "command": ["false"]}]}))),
        put("a container is deleted", pod(json!({"containers": [{"name": "d", "$patch": "delete"}]}))),
        put("a deletion of nothing", pod(json!({"containers": [{"name": "none", "$patch": "delete"}]}))),
        put(
            "a list is replaced by directive",
            pod(json!({"containers": [{"$patch": "replace"}, {"name": "only", "image": "one"}]})),
        ),
        put("a map is replaced by directive", json!({"metadata": {"labels": {"$patch": "replace", "a": "b"}}})),
        put("a map is merged", json!({"metadata": {"labels": {"c": "d"}}})),
        put("a key is removed by null", json!({"metadata": {"labels": {"a": null}}})),
        put("retainKeys", pod(json!({"volumes": [{"name": "v", "emptyDir": {}}]}))),
        // Whether the real server warns about the directive is random.
        patch(
            STRATEGIC,
            format!("{}?fieldValidation=Ignore", a()),
            &pod(json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]})),
        )
        .named("retainKeys changes a union"),
        put("an element without its key", pod(json!({"containers": [{"image": "x"}]}))),
        put("an unknown directive", pod(json!({"containers": [{"$patch": "burn", "name": "x"}]}))),
        put(
            "owners are merged by uid",
            json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "${ns}", "uid": "${ns-object:/metadata/uid}"}]}}),
        ),
        put(
            "an owner is deleted by uid",
            json!({"metadata": {"ownerReferences": [{"uid": "${ns-object:/metadata/uid}", "$patch": "delete"}]}}),
        ),
        put("the same again changes nothing", json!({"metadata": {"labels": {"c": "d"}}})),
        put(
            "ports are merged by number",
            pod(json!({"containers": [{"name": "only", "ports": [{"containerPort": 80, "name": "web"}]}]})),
        ),
        put("another port", pod(json!({"containers": [{"name": "only", "ports": [{"containerPort": 81}]}]}))),
        put("a value of another type", json!({"spec": {"suspend": "maybe"}})),
        put("a list where a map is", json!({"spec": []})),
        put("a result that is not valid", json!({"spec": {"schedule": "bad"}})),
        patch(STRATEGIC, a(), &json!({})).body("{").named("a patch that is no JSON"),
        get(a()).named("what came of it"),
    ]
}
