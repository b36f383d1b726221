//! Kinds that a CustomResourceDefinition has brought, without the schema.
//!
//! Guarantees: an object is kept as it was sent but for nulls in its metadata; its status is changed through `/status` only,
//! and everything else never there; the generation counts the changes of what is not the status. Nothing is defaulted,
//! judged or pruned, as where the schema says only `x-kubernetes-preserve-unknown-fields`.
//!
//! Matches k8s.io/apiextensions-apiserver `pkg/registry/customresource/strategy.go` and `status_strategy.go`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::fields::{child, copy};
use super::{age, keep_status_and_count};
use crate::apiserver::registry::{Column, FieldError, Resource, Strategy};

/// A namespaced kind with a status.
pub fn custom(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        has_status: true,
        strategy: Arc::new(Custom),
    }
}

struct Custom;

impl Strategy for Custom {
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String> {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|_, value| !value.is_null());
        }
        Ok(Vec::new())
    }

    fn set_defaults(&self, _object: &mut Value) {}

    fn prepare_for_create(&self, object: &mut Value) {
        object.as_object_mut().and_then(|object| object.remove("status"));
        child(object, "metadata")["generation"] = 1.into();
    }

    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        keep_status_and_count(object, old);
    }

    fn validate_update(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "spec");
    }

    fn validate_status_update(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    fn columns(&self) -> Vec<Column> {
        let column = |name, type_, format, description| Column { name, type_, format, priority: 0, description };
        vec![
            column("Name", "string", "name", "Name must be unique within a namespace."),
            column("Age", "date", "", "CreationTimestamp is the time at which the object was created."),
        ]
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        vec![object["metadata"]["name"].clone(), age(object, now)]
    }

    fn selectable_fields(&self, _object: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn patch_merge_key(&self, _path: &[&str]) -> Option<&'static str> {
        None
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": Map::new() })
    }
}
