//! The CustomResourceDefinitions of this binary, from the Rust types.
//!
//! Guarantees: every schema is structural (one plain type at each place, no references, no alternatives, nothing
//! nullable) and the output is the same on every run. Each kind has its status as a subresource and the columns of a
//! batch/v1 CronJob. The API server itself validates everything that a schema can express, with or without the webhook:
//! types, policies, limits below zero, and names too long for the suffix of a Job's name.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::ResourceKind;
use super::api_example::{self, ApiExample};
use super::tutorial_v1::{self, CronJob};
use crate::yaml;

/// The longest name of an object whose Jobs (or Pods) are named after it. A label holds 63 characters, of which `-` and
/// a slot's ten digits take eleven. Matches upstream `ValidateCronJobCreate` in `pkg/apis/batch/validation`.
pub const MAX_NAME_LENGTH: usize = 52;

/// What differs between the kinds.
struct Kind {
    resource: ResourceKind,
    short_name: &'static str,
    schema: fn() -> Value,
}

const KINDS: [Kind; 2] = [
    Kind { resource: tutorial_v1::RESOURCE, short_name: "tcj", schema: schema_of::<CronJob> },
    Kind { resource: api_example::RESOURCE, short_name: "apiex", schema: schema_of::<ApiExample> },
];

/// All definitions, ready to apply.
pub fn all() -> Vec<Value> {
    KINDS.iter().map(definition).collect()
}

/// All definitions as YAML, each with the file name that kubebuilder gives it.
///
/// # Errors
/// When YAML encoding fails. The documents are constants, so a test would meet the error.
pub fn files() -> Result<Vec<(String, String)>, serde_saphyr::SerializeError> {
    let file = |(kind, definition): (&Kind, Value)| {
        let text = yaml::write(&definition)?;
        Ok((format!("{}_{}.yaml", kind.resource.group, kind.resource.plural), format!("---\n{text}")))
    };
    KINDS.iter().zip(all()).map(file).collect()
}

fn definition(kind: &Kind) -> Value {
    let ResourceKind { group, version, plural, kind: name } = kind.resource;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "names": {
                "kind": name,
                "listKind": format!("{name}List"),
                "plural": plural,
                "singular": name.to_lowercase(),
                "shortNames": [kind.short_name],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(),
                "schema": { "openAPIV3Schema": (kind.schema)() },
            }],
        },
    })
}

/// The columns of a batch/v1 CronJob, as far as a path can express them: a path cannot count, so `Active` shows the
/// first Job's name.
fn columns() -> Value {
    json!([
        { "name": "Schedule", "type": "string", "jsonPath": ".spec.schedule" },
        { "name": "Suspend", "type": "boolean", "jsonPath": ".spec.suspend" },
        { "name": "Active", "type": "string", "jsonPath": ".status.active[*].name" },
        { "name": "Last Schedule", "type": "date", "jsonPath": ".status.lastScheduleTime" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ])
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::default().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_structural(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        if let Some(Value::Object(properties)) = root.get_mut("properties") {
            properties.insert("apiVersion".to_owned(), json!({ "type": "string" }));
            properties.insert("kind".to_owned(), json!({ "type": "string" }));
            let name = json!({ "type": "string", "maxLength": MAX_NAME_LENGTH });
            properties.insert("metadata".to_owned(), json!({ "type": "object", "properties": { "name": name } }));
        }
    }
    schema
}

/// Turns an optional value's schema, "this or null", into "this". An optional field need not be nullable, and the API
/// server drops a null where none is allowed. Descriptions lose the line breaks of the source.
fn make_structural(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(alternatives)) = map.remove("anyOf") {
                let present = alternatives.into_iter().find(|alternative| alternative["type"] != "null");
                if let Some(Value::Object(present)) = present {
                    let own = std::mem::replace(map, present);
                    map.extend(own);
                }
            }
            drop_null(map);
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            map.values_mut().for_each(make_structural);
        }
        Value::Array(items) => items.iter_mut().for_each(make_structural),
        _ => {}
    }
}

fn drop_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get("type")
        && let Some(only) = types.iter().find(|one| *one != "null").cloned()
    {
        map.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

#[cfg(test)]
mod tests;
