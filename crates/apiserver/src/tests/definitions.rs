//! Kinds that are created and deleted with their definitions.

use std::time::Duration;

use axum::body::Bytes;
use http::Request;
use http::header::{ETAG, IF_NONE_MATCH};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::support::{JSON_PATCH, MERGE, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/example.com/v1/namespaces/default/gadgets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A server with gadgets: `held` has a finalizer, `free` has a dependent.
async fn with_gadgets() -> Server {
    let server = Server::with_kinds().await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    server.post(GADGETS, &gadget("held", &["example.com/wait"])).await.expect(201);
    let free = server.post(GADGETS, &gadget("free", &[])).await.expect(201);
    let owner =
        json!({"apiVersion": "example.com/v1", "kind": "Gadget", "name": "free", "uid": free["metadata"]["uid"]});
    let dependent =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "ownerReferences": [owner]}});
    server.post(CONFIG_MAPS, &dependent).await.expect(201);
    server
}

fn gadget(name: &str, finalizers: &[&str]) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name, "finalizers": finalizers}})
}

#[tokio::test(start_paused = true)]
async fn definition_is_deleted_after_its_objects_and_watches_get_the_deletions() {
    let server = with_gadgets().await;
    let list = server.get(GADGETS).await.expect(200);
    let from = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let watch = format!("{GADGETS}?watch=1&resourceVersion={from}");
    let path = format!("{DEFINITIONS}/gadgets.example.com");

    let ((), seen) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let marked = server.delete(&path).await.expect(200);
            assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
            assert_eq!(server.get(&format!("{GADGETS}/free")).await.code, 404);
            assert_eq!(server.get(&format!("{CONFIG_MAPS}/m")).await.code, 404, "its dependents go, too");
            let held = server.get(&format!("{GADGETS}/held")).await.expect(200);
            assert!(held["metadata"]["deletionTimestamp"].is_string());
            let refused = server.post(GADGETS, &gadget("new", &[])).await;
            let why = "create not allowed while custom resource definition is terminating";
            assert_eq!(refused.code, 403);
            assert!(refused.message().ends_with(why), "{}", refused.message());

            tokio::time::sleep(Duration::from_secs(60)).await;
            server.get(&path).await.expect(200);
            let free = json!({"metadata": {"finalizers": null}});
            server.patch(&format!("{GADGETS}/held"), MERGE, &free).await.expect(200);
            tokio::time::sleep(Duration::from_secs(5)).await;
        },
        server.watch(&watch)
    );
    let shown: Vec<String> = seen
        .iter()
        .map(|event| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{} {}", text(&event["type"]), text(&event["object"]["metadata"]["name"]))
        })
        .collect();
    assert_eq!(shown, ["DELETED free", "MODIFIED held", "DELETED held"]);
    assert_eq!((server.get(&path).await.code, server.get(GADGETS).await.code), (404, 404));
}

/// A server of one definition whose `v1beta1` has a field that `v1`, which is stored, does not have, and the other way round.
async fn with_two_versions() -> Server {
    let server = Server::with_kinds().await;
    let version = |name: &str, storage: bool, field: &str| {
        let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}, field: {"type": "string", "default": "x"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [version("v1beta1", false, "old"), version("v1", true, "new")],
        },
    });
    let stored = server.post(DEFINITIONS, &definition).await.expect(201);
    assert_eq!(stored["status"]["storedVersions"], json!(["v1"]));
    server
}

#[tokio::test(start_paused = true)]
async fn object_of_several_versions_is_seen_in_the_one_that_is_asked_for() {
    const BETA: &str = "/apis/example.com/v1beta1/namespaces/default/gadgets";
    let server = with_two_versions().await;
    let group = server.get("/apis/example.com").await.expect(200);
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(group["versions"][1]["groupVersion"], "example.com/v1beta1");

    let gadget = json!({
        "apiVersion": "example.com/v1beta1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1, "old": "a"},
    });
    let created = server.post(BETA, &gadget).await.expect(201);
    // What is stored has no such field, so its default is what clients get.
    assert_eq!(created["spec"], json!({"size": 1, "old": "x"}));
    assert_eq!(created["apiVersion"], "example.com/v1beta1");
    let seen = server.get(&format!("{GADGETS}/g")).await.expect(200);
    assert_eq!((&seen["apiVersion"], &seen["spec"]), (&json!("example.com/v1"), &json!({"size": 1, "new": "x"})));
    assert_eq!(seen["metadata"]["managedFields"][0]["apiVersion"], "example.com/v1beta1");

    let grown = server.patch(&format!("{BETA}/g"), MERGE, &json!({"spec": {"size": 2}})).await.expect(200);
    assert_eq!((&grown["apiVersion"], &grown["metadata"]["generation"]), (&json!("example.com/v1beta1"), &json!(2)));
    let unchanged = server.put(&format!("{BETA}/g"), &grown).await.expect(200);
    assert_eq!(unchanged["metadata"]["resourceVersion"], grown["metadata"]["resourceVersion"]);
    let other = server.patch(&format!("{BETA}/g"), MERGE, &json!({"apiVersion": "example.com/v1"})).await;
    assert_eq!(other.code, 422, "{}", other.body);
    for (path, version) in [(GADGETS, "example.com/v1"), (BETA, "example.com/v1beta1")] {
        let list = server.get(path).await.expect(200);
        assert_eq!((&list["apiVersion"], &list["items"][0]["apiVersion"]), (&json!(version), &json!(version)));
        let events = server.watch(&format!("{path}?watch=1&resourceVersion=0&sendInitialEvents=true&timeoutSeconds=1&resourceVersionMatch=NotOlderThan")).await;
        assert_eq!(events[0]["object"]["apiVersion"], version);
    }
    let from = grown["metadata"]["resourceVersion"].as_str().unwrap();
    server.delete(&format!("{GADGETS}/g")).await.expect(200);
    let events = server.watch(&format!("{BETA}?watch=1&resourceVersion={from}&timeoutSeconds=1")).await;
    assert_eq!(
        (&events[0]["type"], &events[0]["object"]["apiVersion"]),
        (&json!("DELETED"), &json!("example.com/v1beta1"))
    );
}

#[tokio::test(start_paused = true)]
async fn version_that_is_no_longer_served_is_gone_and_its_objects_stay() {
    let server = with_two_versions().await;
    server.post(GADGETS, &gadget("g", &[])).await.expect(201);
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    let change = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/served", "value": false},
    ]);
    let changed = server.patch(&path, JSON_PATCH, &change).await.expect(200);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    assert_eq!(server.get(GADGETS).await.code, 404);
    let seen = server.get("/apis/example.com/v1beta1/namespaces/default/gadgets/g").await.expect(200);
    assert_eq!(seen["apiVersion"], "example.com/v1beta1");
}

#[tokio::test(start_paused = true)]
async fn default_that_a_definition_gets_later_shows_in_what_was_stored_before() {
    let server = with_two_versions().await;
    server
        .post(
            GADGETS,
            &json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {}}),
        )
        .await
        .expect(201);
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    let place = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/size/default";
    let size = async || server.get(&format!("{GADGETS}/g")).await.expect(200)["spec"]["size"].clone();
    assert_eq!(size().await, Value::Null);
    server.patch(&path, JSON_PATCH, &json!([{"op": "add", "path": place, "value": 3}])).await.expect(200);
    assert_eq!(size().await, 3);
    let list = server.get(GADGETS).await.expect(200);
    assert_eq!(list["items"][0]["spec"]["size"], 3);
    let snapshot = server.api.snapshot();
    server.api.restore(&snapshot).unwrap();
    assert_eq!(size().await, 3);
    // It was never stored.
    server.patch(&path, JSON_PATCH, &json!([{"op": "remove", "path": place}])).await.expect(200);
    assert_eq!(size().await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn openapi_version_2_is_sent_again_only_after_a_change_of_the_definitions() {
    let server = Server::with_kinds().await;
    let ask = async |known: &str| {
        let request = Request::get("/openapi/v2").header(IF_NONE_MATCH, known).body(Bytes::new()).unwrap();
        let response = server.api.handle(request).await;
        let etag = response.headers()[ETAG].to_str().unwrap().to_owned();
        let (code, body) = (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes());
        (code, etag, body.len())
    };
    let (code, first, length) = ask("").await;
    assert!(code == 200 && length > 100_000, "{code}, {length}");
    assert_eq!(ask(&format!("\"x\", {first}")).await, (304, first.clone(), 0));
    server.post(DEFINITIONS, &definition()).await.expect(201);
    let (code, changed, _) = ask(&first).await;
    assert_eq!((code, changed == first), (200, false));
}
