//! Strategic merge patches.
//!
//! Matches k8s.io/apimachinery `pkg/util/strategicpatch` for what kubectl and controllers send: lists merged by key,
//! lists of primitives merged by value (finalizers), `$patch: delete|replace|merge`, `$deleteFromPrimitiveList`,
//! `$retainKeys`. `$setElementOrder` orders the items it names.

use serde_json::{Map, Value};

use crate::apiserver::fields::{ListShape, list_shape};
use crate::apiserver::registry::Resource;

const DIRECTIVE: &str = "$patch";
const ORDER: &str = "$setElementOrder/";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const RETAIN: &str = "$retainKeys";

/// Merges `patch` into `target`, an object of the kind `resource`.
///
/// # Errors
/// In upstream's words; `target` may then be changed in part.
pub fn apply(resource: &Resource, target: &mut Value, patch: &Map<String, Value>) -> Result<(), String> {
    let mut names = Vec::new();
    Merge { resource }.map(target, patch, &mut names)
}

struct Merge<'a> {
    resource: &'a Resource,
}

impl Merge<'_> {
    fn map<'p>(
        &self,
        target: &mut Value,
        patch: &'p Map<String, Value>,
        names: &mut Vec<&'p str>,
    ) -> Result<(), String> {
        match patch.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            Some("replace") => {
                let rest = patch.iter().filter(|(key, _)| *key != DIRECTIVE);
                *target = Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect());
                return Ok(());
            }
            Some("delete") => {
                *target = Value::Object(Map::new());
                return Ok(());
            }
            Some("merge") | None => {}
            Some(other) => return Err(format!("unknown patch type: {other} in map: {}", go_map(patch))),
        }
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        let Some(map) = target.as_object_mut() else { return Ok(()) };
        if let Some(retained) = patch.get(RETAIN).and_then(Value::as_array) {
            map.retain(|key, _| retained.iter().any(|kept| kept == key.as_str()));
        }
        for (key, value) in patch {
            if let Some(name) = key.strip_prefix(DELETE_PRIMITIVES) {
                if let (Some(list), Some(gone)) = (map.get_mut(name).and_then(Value::as_array_mut), value.as_array()) {
                    list.retain(|item| !gone.contains(item));
                }
                continue;
            }
            if key.starts_with('$') {
                continue;
            }
            if value.is_null() {
                map.remove(key);
                continue;
            }
            names.push(key);
            let current = map.entry(key.clone()).or_insert(Value::Null);
            let outcome = match value {
                Value::Object(inner) => self.map(current, inner, names),
                Value::Array(items) => self.list(current, items, names),
                other => {
                    *current = other.clone();
                    Ok(())
                }
            };
            names.pop();
            outcome?;
        }
        order_lists(map, patch, self.resource, names);
        Ok(())
    }

    fn list<'p>(&self, target: &mut Value, items: &'p [Value], names: &mut Vec<&'p str>) -> Result<(), String> {
        let shape = list_shape(self.resource, names);
        let merge_key = self.resource.strategy.patch_merge_key(names).or(match &shape {
            ListShape::Keyed(keys) => keys.first().copied(),
            _ => None,
        });
        let Some(merge_key) = merge_key else {
            return self.unkeyed(target, items, &shape);
        };
        if !target.is_array() {
            *target = Value::Array(Vec::new());
        }
        let Some(list) = target.as_array_mut() else { return Ok(()) };
        if items.iter().any(|item| item[DIRECTIVE] == "replace" && item.get(merge_key).is_none()) {
            *list = items.iter().filter(|item| item.get(DIRECTIVE).is_none()).cloned().collect();
            return Ok(());
        }
        for item in items {
            let Some(patch) = item.as_object() else { continue };
            let directive = patch.get(DIRECTIVE).and_then(Value::as_str);
            let Some(wanted) = patch.get(merge_key) else {
                return Err(format!("map: {} does not contain declared merge key: {merge_key}", go_map(patch)));
            };
            let same = |candidate: &Value| candidate.get(merge_key) == Some(wanted);
            match directive {
                Some("delete") => list.retain(|candidate| !same(candidate)),
                Some("replace") => {
                    let rest = patch.iter().filter(|(key, _)| *key != DIRECTIVE);
                    let fresh = Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect());
                    match list.iter_mut().find(|candidate| same(candidate)) {
                        Some(found) => *found = fresh,
                        None => list.push(fresh),
                    }
                }
                _ => match list.iter_mut().find(|candidate| same(candidate)) {
                    Some(found) => self.map(found, patch, names)?,
                    None => {
                        let mut fresh = Value::Object(Map::new());
                        self.map(&mut fresh, patch, names)?;
                        list.push(fresh);
                    }
                },
            }
        }
        Ok(())
    }

    /// Lists without a merge key are replaced, save sets, which grow.
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)]
    fn unkeyed(&self, target: &mut Value, items: &[Value], shape: &ListShape) -> Result<(), String> {
        match target.as_array_mut() {
            Some(list) if *shape == ListShape::Set => {
                for item in items {
                    if !list.contains(item) {
                        list.push(item.clone());
                    }
                }
            }
            _ => *target = Value::Array(items.to_vec()),
        }
        Ok(())
    }
}

/// Puts the items that `$setElementOrder` names into its order; the others keep their places after them.
fn order_lists(map: &mut Map<String, Value>, patch: &Map<String, Value>, resource: &Resource, names: &[&str]) {
    for (key, order) in patch {
        let (Some(name), Some(order)) = (key.strip_prefix(ORDER), order.as_array()) else { continue };
        let path: Vec<&str> = names.iter().copied().chain([name]).collect();
        let merge_key = match list_shape(resource, &path) {
            ListShape::Keyed(keys) => keys.first().copied(),
            _ => None,
        };
        let merge_key = resource.strategy.patch_merge_key(&path).or(merge_key);
        let Some(list) = map.get_mut(name).and_then(Value::as_array_mut) else { continue };
        let identity = |item: &Value| merge_key.map_or_else(|| item.clone(), |key| item[key].clone());
        let rank = |item: &Value| {
            let wanted = identity(item);
            order.iter().position(|o| identity(o) == wanted).unwrap_or(order.len())
        };
        list.sort_by_key(rank);
    }
}

/// A map as Go's `%v` prints it.
pub fn go_map(map: &Map<String, Value>) -> String {
    let parts: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
    format!("map[{}]", parts.join(" "))
}

fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => go_map(map),
        other => other.to_string(),
    }
}
