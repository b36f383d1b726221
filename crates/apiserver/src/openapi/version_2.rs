//! The document of OpenAPI v2.
//!
//! Guarantees: as JSON, it defines every kind that is served, with what kube-apiserver leaves out for this version. As protobuf it
//! describes nothing, and its paths are empty in both forms: kubectl takes those of version 3. The document is made once after
//! each change of what is served, and a client that has it already gets no second copy.
//!
//! Matches `ToStructuralOpenAPIV2` of k8s.io/apiextensions-apiserver `pkg/controller/openapi/v2`.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use serde_json::{Map, Value, json};

use super::document;
use crate::registry::Resource;

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.37.2";
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

/// The document at /openapi/v2.
#[derive(Clone)]
pub struct Version2 {
    pub content_type: &'static str,
    /// What it has until it changes, in quotes.
    pub etag: String,
    pub body: Bytes,
}

/// What is served, and the document of it.
type Made = (Arc<[Arc<Resource>]>, Version2);

/// The last document that was made.
#[derive(Default)]
pub struct LastVersion2(Mutex<Option<Made>>);

impl LastVersion2 {
    /// The document of what is served, in the form that a client accepts.
    pub fn document(&self, accept: &str, served: &Arc<[Arc<Resource>]>) -> Version2 {
        if accept.contains("openapi.spec.v2") {
            return Version2::new(PROTOBUF, protobuf());
        }
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, document)) = &*last
            && Arc::ptr_eq(of, served)
        {
            return document.clone();
        }
        let document = Version2::new("application/json", json(served));
        *last = Some((Arc::clone(served), document.clone()));
        document
    }
}

impl Version2 {
    fn new(content_type: &'static str, body: Vec<u8>) -> Self {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        Self { content_type, etag: format!("\"{:016X}\"", hasher.finish()), body: body.into() }
    }
}

fn json(served: &[Arc<Resource>]) -> Vec<u8> {
    let resources: Vec<Resource> = served.iter().map(|resource| (**resource).clone()).collect();
    let info = json!({"title": TITLE, "version": VERSION});
    let document = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions(&resources)});
    document.to_string().into_bytes()
}

fn protobuf() -> Vec<u8> {
    // The messages are shorter than 128 bytes, so a length is one byte.
    let field = |number: u8, value: &[u8]| {
        let length = u8::try_from(value.len()).unwrap_or_default();
        [&[(number << 3) | 2, length][..], value].concat()
    };
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info)].concat()
}

fn definitions(resources: &[Resource]) -> Map<String, Value> {
    let versions: BTreeSet<(&str, &str)> =
        resources.iter().map(|resource| (resource.group.as_str(), resource.version.as_str())).collect();
    let mut found = Map::new();
    for (group, version) in versions {
        let Some(mut document) = document(group, version, resources) else { continue };
        if let Value::Object(schemas) = document["components"]["schemas"].take() {
            found.extend(schemas);
        }
    }
    for schema in found.values_mut() {
        if schema[PRESERVES] == true {
            // With any property, kubectl would refuse all others.
            *schema = json!({
                "type": "object", "x-kubernetes-group-version-kind": schema["x-kubernetes-group-version-kind"],
            });
        }
        lower(schema);
    }
    found
}

/// Changes a schema of version 3 into one of version 2.
fn lower(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    // A reference beside other keywords.
    let inner = fields.remove("allOf").and_then(|all| Some(all.as_array()?.first()?.get("$ref")?.clone()));
    if let Some(path) = inner {
        fields.insert("$ref".to_owned(), path);
        fields.remove("default");
    }
    if let Some(name) = fields.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
        let path = format!("#/definitions/{name}");
        fields.insert("$ref".to_owned(), path.into());
    }
    let is = |fields: &Map<String, Value>, keyword: &str| fields.get(keyword).is_some_and(|value| *value == true);
    let (is_nullable, preserves) = (is(fields, "nullable"), is(fields, PRESERVES));
    let is_optional = |property: &str| fields["properties"][property]["nullable"] == true;
    let required = fields.get("required").and_then(Value::as_array);
    let required: Option<Vec<Value>> = required
        .filter(|_| fields.contains_key("properties"))
        .map(|names| names.iter().filter(|name| !name.as_str().is_some_and(is_optional)).cloned().collect());
    if let Some(required) = required {
        fields.insert("required".to_owned(), required.into());
    }
    for keyword in ["oneOf", "anyOf", "not", "nullable"] {
        fields.remove(keyword);
    }
    if is_nullable || preserves {
        fields.remove("items");
        fields.remove("properties");
    }
    let type_ = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_untyped =
        is_nullable || (preserves && type_ == "object") || (type_ == "array" && !fields.contains_key("items"));
    if is_untyped {
        fields.remove("type");
    }
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(lower);
    for keyword in ["items", "additionalProperties"] {
        fields.get_mut(keyword).into_iter().for_each(lower);
    }
}
