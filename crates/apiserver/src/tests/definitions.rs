//! Kinds that are created and deleted with their definitions.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::{MERGE, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/example.com/v1/namespaces/default/gadgets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with gadgets: `held` has a finalizer, `free` has a dependent.
async fn with_gadgets() -> Server {
    let server = Server::with_kinds().await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    server.post(DEFINITIONS, &definition).await.expect(201);
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
