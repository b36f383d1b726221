//! Discovery, as far as both servers have the same kinds.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const SERVED: [&str; 5] = ["batch", "coordination.k8s.io", "authentication.k8s.io", "authorization.k8s.io", ""];
const CORE: [&str; 7] =
    ["namespaces", "namespaces/finalize", "namespaces/status", "pods", "pods/status", "pods/log", "events"];

pub fn scenarios() -> Vec<Scenario> {
    vec![scenario("discovery", discovery())]
}

fn discovery() -> Vec<Step> {
    vec![
        get("/api").part(without_address).named("the versions of the core group"),
        get("/apis").part(groups).named("the groups"),
        get("/apis/batch").named("a group"),
        get("/apis/coordination.k8s.io").part(first_version).named("the group of Leases"),
        get("/apis/batch/v1").named("the resources of batch"),
        get("/apis/coordination.k8s.io/v1").named("the resources of coordination"),
        get("/apis/authorization.k8s.io/v1").named("the resources of authorization"),
        get("/apis/authentication.k8s.io/v1").part(token_reviews).named("the resources of authentication"),
        get("/api/v1").part(core).named("the resources of the core group"),
        get("/apis/nothing").named("a group that does not exist"),
        get("/apis/batch/v9").named("a version that does not exist"),
        get("/apis/batch/").part(nothing).named("a group with a slash"),
        get("/apis").accept(AGGREGATED).part(aggregated).named("the groups, aggregated"),
        get("/api").accept(AGGREGATED).part(aggregated_core).named("the core group, aggregated"),
        get("/apis").accept(&format!("{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json")).part(aggregated).named("what kubectl asks for"),
        get("/version").part(shape).named("the version"),
        get("/healthz").named("health"),
        get("/livez").named("liveness"),
        get("/readyz").named("readiness"),
        get("/openapi/v3").part(openapi).named("the index of OpenAPI v3"),
        get("/openapi/v3/apis/batch/v1").part(batch_schema).named("the schema of batch"),
        get("/openapi/v3/apis/nothing/v1").part(nothing).named("the schema of nothing"),
        post("/apis", &json!({})).part(nothing).named("groups cannot be posted"),
        post("/version", &json!({})).part(nothing).named("a version cannot be posted"),
    ]
}

fn nothing(_: Value) -> Value {
    Value::Null
}

fn without_address(value: Value) -> Value {
    value.with("/serverAddressByClientCIDRs", json!(null))
}

fn retain(list: &mut Value, keep: impl Fn(&Value) -> bool) {
    if let Some(items) = list.as_array_mut() {
        items.retain(|item| keep(item));
    }
}

fn groups(mut value: Value) -> Value {
    retain(&mut value["groups"], |group| SERVED.iter().any(|name| group["name"] == *name));
    let Some(groups) = value["groups"].as_array_mut() else { return value };
    for group in groups.iter_mut() {
        // The embedded server has only v1.
        retain(&mut group["versions"], |version| version["version"] == "v1");
    }
    // The order is that of registration.
    groups.sort_by_key(|group| group["name"].to_string());
    value
}

fn first_version(mut value: Value) -> Value {
    retain(&mut value["versions"], |version| version["version"] == "v1");
    value
}

fn token_reviews(mut value: Value) -> Value {
    retain(&mut value["resources"], |resource| resource["name"] == "tokenreviews");
    value
}

fn core(mut value: Value) -> Value {
    retain(&mut value["resources"], |resource| CORE.iter().any(|name| resource["name"] == *name));
    value
}

fn aggregated(mut value: Value) -> Value {
    retain(&mut value["items"], |group| {
        ["batch", "coordination.k8s.io"].iter().any(|name| group["metadata"]["name"] == *name)
    });
    let Some(groups) = value["items"].as_array_mut() else { return value };
    for group in groups.iter_mut() {
        retain(&mut group["versions"], |version| version["version"] == "v1");
        group["metadata"]["creationTimestamp"].take();
    }
    groups.sort_by_key(|group| group["metadata"]["name"].to_string());
    value
}

fn aggregated_core(mut value: Value) -> Value {
    if let Some(versions) = value.pointer_mut("/items/0/versions") {
        for version in versions.as_array_mut().into_iter().flatten() {
            retain(&mut version["resources"], |resource| {
                ["namespaces", "events"].iter().any(|name| resource["resource"] == *name)
            });
        }
    }
    value
}

/// The names of the fields, with numbers for the numbers of the version.
fn shape(value: Value) -> Value {
    let fields = value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
    json!({"fields": fields, "major": value["major"], "minor": value["minor"]})
}

fn openapi(value: Value) -> Value {
    json!(
        ["api/v1", "apis/batch/v1", "apis/coordination.k8s.io/v1"]
            .map(|path| value["paths"][path]["serverRelativeURL"].is_string())
    )
}

fn batch_schema(value: Value) -> Value {
    let schema = &value["components"]["schemas"];
    let cronjob = &schema["io.k8s.api.batch.v1.CronJob"];
    json!({"openapi": value["openapi"], "cronjob": cronjob, "spec": schema["io.k8s.api.batch.v1.CronJobSpec"]})
}
