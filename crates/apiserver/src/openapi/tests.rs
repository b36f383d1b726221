#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;
use crate::kinds;

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

fn custom_resource(schema: &Value) -> Resource {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    kinds::custom(&json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}, "versions": [version]},
    }))
    .unwrap()
}

fn served(schema: &Value) -> Arc<[Arc<Resource>]> {
    [Arc::new(custom_resource(schema))].into()
}

fn definition(schema: &Value) -> Value {
    let document = LastVersion2::default().document("application/json", &served(schema));
    assert_eq!(document.content_type, "application/json");
    let mut document: Value = serde_json::from_slice(&document.body).unwrap();
    assert_eq!((&document["swagger"], &document["paths"]), (&json!("2.0"), &json!({})));
    assert!(document["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.Status"].is_object());
    document["definitions"]["com.example.v1.Foo"].take()
}

#[test]
fn version_2_defines_custom_kinds_without_what_it_cannot_say() {
    let kind = json!([{"group": "example.com", "version": "v1", "kind": "Foo"}]);
    let rows = [
        ("plain", json!({"type": "string", "enum": ["a"]}), json!({"type": "string", "enum": ["a"]})),
        ("nullable", json!({"type": "string", "nullable": true}), json!({})),
        ("alternatives", json!({"type": "integer", "anyOf": [{"minimum": 1}]}), json!({"type": "integer"})),
        (
            "unknown fields",
            json!({"type": "object", PRESERVES: true, "properties": {"a": {"type": "string"}}}),
            json!({PRESERVES: true}),
        ),
        (
            "a required field that may be null",
            json!({"type": "object", "required": ["a", "b"], "properties": {
                "a": {"type": "string", "nullable": true}, "b": {"type": "string"},
            }}),
            json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}}),
        ),
        (
            "a list of objects that keep unknown fields",
            json!({"type": "array", "items": {"type": "object", PRESERVES: true}}),
            json!({"type": "array", "items": {PRESERVES: true}}),
        ),
    ];
    for (name, schema, want) in rows {
        let defined = definition(&json!({"type": "object", "properties": {"spec": schema}}));
        assert_eq!(defined["properties"]["spec"], want, "{name}");
        assert_eq!(defined["x-kubernetes-group-version-kind"], kind, "{name}");
        let metadata = &defined["properties"]["metadata"];
        assert_eq!(metadata["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "{name}");
    }
    let open = definition(&json!({"type": "object", PRESERVES: true, "properties": {"a": {"type": "string"}}}));
    assert_eq!(open, json!({"type": "object", "x-kubernetes-group-version-kind": kind}));
}

#[test]
fn custom_kinds_have_the_fields_of_every_kind_in_version_3() {
    let document = document("example.com", "v1", &[custom_resource(&json!({"type": "object"}))]).unwrap();
    let schemas = &document["components"]["schemas"];
    let properties = schemas["com.example.v1.Foo"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["apiVersion", "kind", "metadata"]);
    assert!(schemas[format!("{META}.ObjectMeta")].is_object());
}

#[test]
fn version_2_as_protobuf_describes_nothing() {
    // As kubectl asks: gnostic's Document has `swagger` in field 1 and `info`, of a title and a version, in field 2.
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let document = LastVersion2::default().document(accept, &Arc::default());
    assert!(document.content_type.ends_with("+protobuf"), "{}", document.content_type);
    assert_eq!(*document.body, *b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.37.2");
}

#[test]
fn version_2_is_made_anew_only_after_a_change_of_what_is_served() {
    let last = LastVersion2::default();
    let kinds = served(&json!({"type": "object"}));
    let first = last.document("", &kinds);
    let again = last.document("", &kinds);
    assert_eq!((again.body.as_ptr(), &again.etag), (first.body.as_ptr(), &first.etag));
    let changed = last.document("", &served(&json!({"type": "object", "description": "New."})));
    assert_ne!(changed.etag, first.etag);
}
