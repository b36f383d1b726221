#![allow(clippy::unwrap_used)]
//! `recorded.json` holds kube-apiserver v1.37.2's documents without the resources that the embedded server does not serve.
//! `tests/controlplane/record` writes it.

use super::*;
use crate::kinds;

fn recorded() -> Value {
    serde_json::from_str(include_str!("recorded.json")).unwrap()
}

#[test]
fn documents_are_the_real_servers_without_what_is_not_served() {
    let resources = kinds::builtin();
    for (form, accept) in [("plain", "application/json"), ("aggregated", AGGREGATED)] {
        for (path, mut expected) in recorded()[form].as_object().unwrap().clone() {
            let (_, mut document) = respond(&path, accept, &resources).unwrap();
            if path == "/api" && form == "plain" {
                // The address that clients are sent to is the server's own.
                expected["serverAddressByClientCIDRs"] = Value::Null;
                document["serverAddressByClientCIDRs"] = Value::Null;
            }
            assert_eq!(document, expected, "{form} {path}");
        }
    }
}

#[test]
fn the_accept_header_chooses_the_form() {
    let rows = [
        ("kubectl asks for the aggregated form first", format!("{AGGREGATED},application/json;q=0.9"), true),
        (
            "an older client knows only the beta form",
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json".to_owned(),
            false,
        ),
        (
            "both forms of the aggregated list are offered",
            format!(
                "{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
            ),
            true,
        ),
        ("plain JSON is enough", "application/json".to_owned(), false),
        ("plain JSON comes first", format!("application/json,{AGGREGATED}"), false),
        ("nothing is said", String::new(), false),
    ];
    for (name, accept, aggregated) in rows {
        let (content_type, document) = respond("/apis", &accept, &kinds::builtin()).unwrap();
        assert_eq!(content_type == AGGREGATED, aggregated, "{name}");
        assert_eq!(document["kind"] == "APIGroupDiscoveryList", aggregated, "{name}");
    }
}

#[test]
fn unknown_paths_have_no_document() {
    for path in [
        "/apis/apps",
        "/apis/apps/v1",
        "/api/v2",
        "/apis/batch/v2",
        "/openapi/v2",
        "/openapi/v3/apis/apps/v1",
        "/healthz",
    ] {
        assert_eq!(respond(path, "", &kinds::builtin()), None, "{path}");
    }
}

#[test]
fn the_version_tells_the_embedded_server_from_a_real_one() {
    let (_, version) = respond("/version", "", &[]).unwrap();
    assert_eq!(version["gitVersion"], "v1.37.2+embedded");
}

#[test]
fn every_reference_in_an_openapi_document_resolves() {
    fn check(value: &Value, schemas: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    let name = reference.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas.get(name).is_some(), "{path} refers to {name}");
                }
                fields.values().for_each(|value| check(value, schemas, path));
            }
            Value::Array(items) => items.iter().for_each(|value| check(value, schemas, path)),
            _ => {}
        }
    }
    let resources = kinds::all();
    let (_, index) = respond("/openapi/v3", "", &resources).unwrap();
    let paths = index["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 13);
    for (path, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let (_, document) = respond(url.split('?').next().unwrap(), "", &resources).unwrap();
        check(&document, &document["components"]["schemas"], path);
    }
}

/// A client keeps the document of a group's version as long as the index has the same hash for it.
#[test]
fn hash_of_a_document_changes_with_its_definitions() {
    let hash = |fields: Value| {
        let crd = json!({
            "metadata": {"name": "lamps.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
                }],
            },
        });
        let mut resources = kinds::all();
        resources.push(kinds::custom(&crd).unwrap());
        let (_, index) = respond("/openapi/v3", "", &resources).unwrap();
        ["apis/example.org/v1", "apis/batch/v1"].map(|root| index["paths"][root]["serverRelativeURL"].to_string())
    };
    let [lamp, batch] = hash(json!({"lit": {"type": "boolean"}}));
    let [brighter, same] = hash(json!({"lit": {"type": "string"}}));
    assert_ne!(lamp, brighter);
    assert_eq!(batch, same);
}

#[test]
fn every_stored_kind_has_a_schema_and_a_patch_operation_that_names_field_validation() {
    let resources = kinds::all();
    for resource in resources.iter().filter(|resource| !resource.strategy.is_virtual()) {
        assert_eq!(resource.strategy.schema()["type"], "object", "{resource:?}");
        let prefix = if resource.group.is_empty() { "api" } else { "apis" };
        let root = format!("{prefix}/{}", resource.api_version());
        let (_, document) = respond(&format!("/openapi/v3/{root}"), "", &resources).unwrap();
        let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let patch = &document["paths"][format!("/{root}{namespace}/{}/{{name}}", resource.plural)]["patch"];
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"), "{resource:?}");
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], *resource.kind, "{resource:?}");
    }
}
