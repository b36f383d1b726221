//! OpenAPI v3 documents, for `kubectl explain` and kubectl's validation, and the document of OpenAPI v2 (`version_2`).
//!
//! Guarantees: the schemas of the built-in kinds are those of kube-apiserver v1.37.2, with descriptions and patch strategies.
//! The schemas of other kinds come from their strategies, with the fields that every kind has. The operations of a kind list
//! their parameters, so that clients leave field validation to the server.

mod version_2;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

pub(super) use self::version_2::LastVersion2;
use super::kinds::package;
use super::registry::Resource;

/// The schemas that the built-in kinds use, by name. They are taken from the documents that kube-apiserver v1.37.2 serves under
/// /openapi/v3 and of kubernetes' `api/openapi-spec/v3` (Kubernetes, Apache-2.0).
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("openapi_schemas.json")).expect("the file is generated, and a test parses it")
});

/// The media types of patches. The last one is only for kinds whose lists have merge keys; kubectl relies on this.
const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The schema of a Go type such as `batch.v1.CronJob`.
pub(super) fn builtin_schema(go_type: &str) -> Value {
    SCHEMAS.get(&schema_name(go_type)).cloned().unwrap_or(Value::Null)
}

fn schema_name(go_type: &str) -> String {
    match go_type.strip_prefix("meta.v1.") {
        Some(name) => format!("{META}.{name}"),
        None => format!("io.k8s.api.{go_type}"),
    }
}

/// The document at a path below /openapi/v3; the index for an empty path.
pub(super) fn respond(path: &[&str], resources: &[Resource]) -> Option<Value> {
    match path {
        [] => Some(index(resources)),
        ["api", version] => document("", version, resources),
        ["apis", group, version] => document(group, version, resources),
        _ => None,
    }
}

fn root(resource: &Resource) -> String {
    let prefix = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", resource.api_version())
}

fn index(resources: &[Resource]) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        let root = root(resource);
        if paths.contains_key(&root) {
            continue;
        }
        // A client keeps a document as long as its hash is the same.
        let mut hasher = DefaultHasher::new();
        for served in resources.iter().filter(|served| self::root(served) == root) {
            served.plural.hash(&mut hasher);
            // The schemas of built-in kinds never change.
            if !SCHEMAS.contains_key(&component_name(served)) {
                served.strategy.schema().to_string().hash(&mut hasher);
            }
        }
        let url = format!("/openapi/v3/{root}?hash={:016X}", hasher.finish());
        paths.insert(root, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn document(group: &str, version: &str, resources: &[Resource]) -> Option<Value> {
    let served: Vec<&Resource> = resources.iter().filter(|r| r.group == group && r.version == version).collect();
    let first = served.first()?;
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for name in ["DeleteOptions", "Status", "Patch"] {
        add_schema(&format!("{META}.{name}"), &mut schemas);
    }
    for resource in &served {
        let name = component_name(resource);
        let list = format!("{name}List");
        add_schema(&name, &mut schemas);
        add_schema(&list, &mut schemas);
        if !schemas.contains_key(&name) {
            add_foreign(resource, &name, &mut schemas);
        }
        add_paths(resource, &format!("/{}", root(first)), &name, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.37"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// The name of a resource's schema: upstream's name for a built-in kind, the reversed group for others.
fn component_name(resource: &Resource) -> String {
    let package = package(&resource.group);
    let builtin = format!("io.k8s.api.{package}.{}.{}", resource.version, resource.kind);
    if SCHEMAS.contains_key(&builtin) {
        return builtin;
    }
    let reversed: Vec<&str> = resource.group.split('.').rev().collect();
    format!("{}.{}.{}", reversed.join("."), resource.version, resource.kind)
}

/// Adds a schema and all schemas that it refers to.
fn add_schema(name: &str, schemas: &mut Map<String, Value>) {
    let Some(schema) = SCHEMAS.get(name).filter(|_| !schemas.contains_key(name)) else { return };
    schemas.insert(name.to_owned(), schema.clone());
    add_references(schema, schemas);
}

fn add_references(schema: &Value, schemas: &mut Map<String, Value>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
                add_schema(name, schemas);
            }
            fields.values().for_each(|value| add_references(value, schemas));
        }
        Value::Array(items) => items.iter().for_each(|value| add_references(value, schemas)),
        _ => {}
    }
}

/// Adds the schemas of a kind that is not built in and of its list.
fn add_foreign(resource: &Resource, name: &str, schemas: &mut Map<String, Value>) {
    let gvk = |kind: &str| json!([{"group": resource.group, "version": resource.version, "kind": kind}]);
    let mut schema = resource.strategy.schema();
    add_references(&schema, schemas);
    if schema.is_object() {
        schema["x-kubernetes-group-version-kind"] = gvk(&resource.kind);
        add_common(&mut schema, schemas);
    }
    schemas.insert(name.to_owned(), schema);
    let list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"type": "array", "items": {"$ref": format!("#/components/schemas/{name}")}}},
        "x-kubernetes-group-version-kind": gvk(&format!("{}List", resource.kind)),
    });
    schemas.insert(format!("{name}List"), list);
}

/// Adds the fields that every kind has, with the texts of a built-in kind. Matches `buildKubeNative` of
/// k8s.io/apiextensions-apiserver `pkg/controller/openapi/builder`.
fn add_common(schema: &mut Value, schemas: &mut Map<String, Value>) {
    let common = builtin_schema("batch.v1.CronJob");
    for name in ["apiVersion", "kind", "metadata"] {
        let field = &common["properties"][name];
        add_references(field, schemas);
        schema["properties"][name] = field.clone();
    }
}

fn add_paths(resource: &Resource, root: &str, schema: &str, paths: &mut Map<String, Value>) {
    let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{namespace}/{}", resource.plural);
    let one = format!("{collection}/{{name}}");
    let list = format!("{schema}List");
    let operation = |action: &str, answer: &str, body: Option<&str>, parameters: &[&str]| {
        operation(resource, action, answer, body, parameters)
    };
    let write: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
    let post = operation("post", schema, Some(schema), write);
    if resource.strategy.is_virtual() {
        paths.insert(collection, json!({"post": post, "parameters": path_parameters(namespace, false)}));
        return;
    }
    let status = format!("{META}.Status");
    let (options, patch) = (format!("{META}.DeleteOptions"), format!("{META}.Patch"));
    let read: &[&str] = &["continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "watch"];
    let delete: &[&str] = &["dryRun", "gracePeriodSeconds", "propagationPolicy"];
    if resource.namespaced {
        let everywhere = operation("list", &list, None, read);
        paths.insert(format!("{root}/{}", resource.plural), json!({"get": everywhere}));
    }
    paths.insert(
        collection,
        json!({
            "get": operation("list", &list, None, read),
            "post": post,
            "delete": operation("deletecollection", &status, Some(&options), delete),
            "parameters": path_parameters(namespace, false),
        }),
    );
    let single = json!({
        "get": operation("get", schema, None, &[]),
        "put": operation("put", schema, Some(schema), write),
        "patch": operation("patch", schema, Some(&patch), &["dryRun", "fieldManager", "fieldValidation", "force"]),
        "delete": operation("delete", &status, Some(&options), delete),
        "parameters": path_parameters(namespace, true),
    });
    if resource.has_status {
        let mut status = single.clone();
        if let Some(operations) = status.as_object_mut() {
            operations.remove("delete");
        }
        paths.insert(format!("{one}/status"), status);
    }
    paths.insert(one, single);
}

fn path_parameters(namespace: &str, name: bool) -> Value {
    let names = [("namespace", !namespace.is_empty()), ("name", name)];
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
    names.into_iter().filter(|(_, given)| *given).map(|(name, _)| parameter(name)).collect()
}

fn operation(resource: &Resource, action: &str, answer: &str, body: Option<&str>, parameters: &[&str]) -> Value {
    let refer = |name: &str| json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
    let parameter = |name: &&str| {
        let type_ = match *name {
            "limit" | "gracePeriodSeconds" => "integer",
            "watch" | "force" => "boolean",
            _ => "string",
        };
        json!({"name": name, "in": "query", "schema": {"type": type_, "uniqueItems": true}})
    };
    let mut operation = json!({
        "parameters": parameters.iter().map(parameter).collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK", "content": {"application/json": refer(answer)}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group, "version": resource.version, "kind": resource.kind,
        },
    });
    if let Some(body) = body {
        let kinds: &[&str] = match action {
            "patch" if resource.strategy.takes_strategic_patches() => &PATCHES,
            "patch" => &PATCHES[..3],
            _ => &["*/*"],
        };
        let content: Map<String, Value> = kinds.iter().map(|kind| ((*kind).to_owned(), refer(body))).collect();
        operation["requestBody"] = json!({"content": content});
    }
    operation
}

#[cfg(test)]
mod tests;
