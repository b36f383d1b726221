//! Tables and partial object metadata.
//!
//! Matches `doTransformObject` of k8s.io/apiserver `pkg/endpoints/handlers/response.go` and the table convertor of
//! kubernetes `pkg/printers/storage`.

use apimachinery::status::{self, Result};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::negotiate::{IncludeObject, Output, Transform};
use super::object::Document;
use super::registry::Resource;

/// Transforms an object or a list into the requested form.
pub fn transform(resource: &Resource, document: Document, output: Output, now: DateTime<Utc>) -> Result<Document> {
    if output.transform == Transform::None {
        return Ok(document);
    }
    transform_tree(resource, document.into_tree(), output, now).map(Document::Tree)
}

fn transform_tree(resource: &Resource, value: Value, output: Output, now: DateTime<Utc>) -> Result<Value> {
    let is_list = value.get("items").is_some_and(Value::is_array);
    // A Status is never transformed.
    if value["kind"] == "Status" {
        return Ok(value);
    }
    match (output.transform, is_list) {
        (Transform::Table, _) => Ok(table(resource, &value, output, now, true)),
        (Transform::Metadata, false) => Ok(metadata(&value, output)),
        (Transform::MetadataList, true) => {
            let items = value["items"].as_array().into_iter().flatten();
            let items: Vec<Value> = items.map(|item| metadata(item, output)).collect();
            let kind = "PartialObjectMetadataList";
            Ok(json!({
                "kind": kind, "apiVersion": output.api_version(), "metadata": value["metadata"], "items": items,
            }))
        }
        (Transform::Metadata, true) => {
            let list = format!("*{}.{}List", resource.group, resource.kind);
            let message = format!("you requested PartialObjectMetadata, but the requested object is a list ({list})");
            Err(status::not_acceptable(message))
        }
        (_, _) => {
            let object = format!("*{}.{}", resource.group, resource.kind);
            let why = "you requested PartialObjectMetadataList, but the requested object is not a list";
            Err(status::not_acceptable(format!("{why} ({object})")))
        }
    }
}

/// `PartialObjectMetadata` of one object.
pub fn metadata(object: &Value, output: Output) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": output.api_version(), "metadata": object["metadata"],
    })
}

/// A table of one object or of a list's items.
pub fn table(resource: &Resource, value: &Value, output: Output, now: DateTime<Utc>, headers: bool) -> Value {
    let one = std::slice::from_ref(value);
    let list = value["items"].as_array();
    let objects = list.map_or(one, Vec::as_slice);
    let rows: Vec<Value> = objects.iter().map(|object| row(resource, object, output, now)).collect();
    let mut meta = json!({});
    for key in ["resourceVersion", "continue", "remainingItemCount"] {
        let known = &value["metadata"][key];
        if !known.is_null() && (list.is_some() || key == "resourceVersion") {
            meta[key] = known.clone();
        }
    }
    let columns = if headers {
        let columns = resource.strategy.columns();
        columns
            .iter()
            .map(|c| {
                json!({
                    "name": c.name, "type": c.type_, "format": c.format, "description": c.description,
                    "priority": c.priority,
                })
            })
            .collect()
    } else {
        Value::Null
    };
    json!({
        "kind": "Table", "apiVersion": output.api_version(), "metadata": meta, "columnDefinitions": columns, "rows": rows,
    })
}

fn row(resource: &Resource, object: &Value, output: Output, now: DateTime<Utc>) -> Value {
    let marked = &object["metadata"]["annotations"]["k8s.io/initial-events-end"];
    let carried = match output.include {
        IncludeObject::Object => {
            let mut whole = object.clone();
            super::body::set_kind(resource, &mut whole);
            whole
        }
        IncludeObject::None if marked.is_null() => Value::Null,
        IncludeObject::Metadata | IncludeObject::None => metadata(object, output),
    };
    let mut row = json!({"cells": resource.strategy.cells(object, now), "object": carried});
    let conditions = resource.strategy.row_conditions(object);
    if !conditions.is_null() {
        row["conditions"] = conditions;
    }
    row
}
