//! The merge of server-side apply.
//!
//! Matches structured-merge-diff `typed/merge.go` (`Merge`) and `typed/remove.go` (`RemoveItems`), and the decision of
//! `merge/update.go` (`prune`): what a manager applied before and does not apply now goes, unless somebody else owns it
//! or something below it.

use serde_json::{Map, Value};

use crate::apiserver::fields::{FieldSet, ListShape, item_element, list_shape};
use crate::apiserver::registry::Resource;

/// Merges an applied configuration into an object.
pub fn merge(resource: &Resource, live: &Value, applied: &Value) -> Value {
    let mut merged = live.clone();
    into(resource, &mut merged, applied, &mut Vec::new());
    merged
}

fn into<'a>(resource: &Resource, target: &mut Value, applied: &'a Value, names: &mut Vec<&'a str>) {
    match applied {
        Value::Object(map) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let Some(object) = target.as_object_mut() else { return };
            for (key, value) in map {
                names.push(key);
                into(resource, object.entry(key.clone()).or_insert(Value::Null), value, names);
                names.pop();
            }
        }
        Value::Array(items) => list(resource, target, items, names),
        other => *target = other.clone(),
    }
}

fn list<'a>(resource: &Resource, target: &mut Value, items: &'a [Value], names: &mut Vec<&'a str>) {
    let shape = list_shape(resource, names);
    let Some(current) = target.as_array_mut().filter(|_| shape != ListShape::Atomic) else {
        *target = Value::Array(items.to_vec());
        return;
    };
    for item in items {
        let wanted = item_element(&shape, item);
        let found = current.iter_mut().find(|candidate| item_element(&shape, candidate) == wanted);
        match found {
            Some(found) => into(resource, found, item, names),
            None => current.push(item.clone()),
        }
    }
}

/// Takes out what was given up and is owned by nobody.
pub fn prune(resource: &Resource, object: &mut Value, given_up: &FieldSet, owned: &[&FieldSet]) {
    // Containers before what is in them. The keys of an item go with the item or not at all.
    for path in &given_up.iterate() {
        if !is_item_key(path) && !owned.iter().any(|set| set.has_prefix(path)) {
            remove(resource, object, path, &mut Vec::new());
        }
    }
}

fn is_item_key(path: &[String]) -> bool {
    let [.., item, field] = path else { return false };
    let (Some(keys), Some(field)) = (item.strip_prefix("k:"), field.strip_prefix("f:")) else { return false };
    serde_json::from_str::<Value>(keys).is_ok_and(|keys| keys.get(field).is_some())
}

fn remove(resource: &Resource, value: &mut Value, path: &[String], names: &mut Vec<String>) {
    let Some((element, rest)) = path.split_first() else { return };
    match value {
        Value::Object(map) => {
            let Some(field) = element.strip_prefix("f:") else { return };
            if rest.is_empty() {
                map.remove(field);
                return;
            }
            if let Some(child) = map.get_mut(field) {
                names.push(field.to_owned());
                remove(resource, child, rest, names);
                names.pop();
                // A list or map that lost its last item through this is not left behind empty.
                let emptied = match child {
                    Value::Array(items) => items.is_empty(),
                    Value::Object(map) => map.is_empty() && is_plain_map(field),
                    _ => false,
                };
                if emptied {
                    map.remove(field);
                }
            }
        }
        Value::Array(items) => {
            let path_names: Vec<&str> = names.iter().map(String::as_str).collect();
            let shape = list_shape(resource, &path_names);
            let position = items.iter().position(|item| item_element(&shape, item).as_ref() == Some(element));
            if let Some(position) = position {
                if rest.is_empty() {
                    items.remove(position);
                } else {
                    remove(resource, &mut items[position], rest, names);
                }
            }
        }
        _ => {}
    }
}

/// Maps that the real server's types leave out when empty.
fn is_plain_map(field: &str) -> bool {
    ["labels", "annotations", "limits", "requests", "matchLabels"].contains(&field)
}
