//! Strategic merge patches.
//!
//! Matches k8s.io/apimachinery `pkg/util/strategicpatch` for what kubectl and controllers send: lists merged by key, lists of
//! primitives merged by value (finalizers), `$patch: delete|replace|merge`, `$deleteFromPrimitiveList`, `$retainKeys`.
//! `$setElementOrder` sorts the items that it names.

use serde_json::{Map, Value};

use crate::fields::{ListShape, list_shape};
use crate::registry::Resource;

const DIRECTIVE: &str = "$patch";
const ORDER: &str = "$setElementOrder/";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const RETAIN: &str = "$retainKeys";

/// Merges `patch` into `target`, an object of the kind `resource`.
///
/// # Errors
/// Upstream's messages. `target` may then be partly changed.
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
        let before = map.clone();
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
            // Upstream drops a value with a directive if there is nothing to apply it to.
            if !map.contains_key(key) && value.get(DIRECTIVE).is_some() {
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
        order_lists(map, patch, &before, self.resource, names);
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
                _ => {
                    let position = list.iter().position(same).unwrap_or_else(|| {
                        list.push(Value::Object(Map::new()));
                        list.len() - 1
                    });
                    self.map(&mut list[position], patch, names)?;
                }
            }
        }
        Ok(())
    }

    /// Lists without a merge key are replaced, except sets, which are extended.
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

/// Sorts every merged list. Items that `$setElementOrder` names (or else the patch itself) get its order, the others keep
/// theirs. Between the two groups the previous order counts, with new items first. Matches `normalizeElementOrder`.
fn order_lists(
    map: &mut Map<String, Value>,
    changes: &Map<String, Value>,
    before: &Map<String, Value>,
    resource: &Resource,
    above: &[&str],
) {
    let arrays = changes.iter().filter(|(_, value)| value.is_array());
    let mut lists: Vec<&str> = arrays.map(|(key, _)| key.strip_prefix(ORDER).unwrap_or(key)).collect();
    lists.sort_unstable();
    lists.dedup();
    for name in lists {
        let path: Vec<&str> = above.iter().copied().chain([name]).collect();
        let shape = list_shape(resource, &path);
        let by_shape = if let ListShape::Keyed(keys) = &shape { keys.first().copied() } else { None };
        let merge_key = resource.strategy.patch_merge_key(&path).or(by_shape);
        if merge_key.is_none() && shape != ListShape::Set {
            continue;
        }
        let identity = |item: &Value| merge_key.map_or_else(|| item.clone(), |key| item[key].clone());
        let wanted = changes.get(&format!("{ORDER}{name}")).or_else(|| changes.get(name));
        let order: Vec<Value> = wanted.and_then(Value::as_array).into_iter().flatten().map(identity).collect();
        let old: Vec<Value> = before.get(name).and_then(Value::as_array).into_iter().flatten().map(identity).collect();
        if let Some(list) = map.get_mut(name).and_then(Value::as_array_mut) {
            *list = interleave(std::mem::take(list), &order, &old, &identity);
        }
    }
}

fn interleave(list: Vec<Value>, order: &[Value], old: &[Value], identity: &dyn Fn(&Value) -> Value) -> Vec<Value> {
    let place = |within: &[Value], item: &Value| within.iter().position(|known| *known == identity(item));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        list.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(old, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut merged = Vec::new();
    while let (Some(left), Some(right)) = (others.peek(), named.peek()) {
        let before = place(old, left).zip(place(old, right)).is_some_and(|(left, right)| left < right);
        merged.extend(if before { others.next() } else { named.next() });
    }
    merged.extend(named);
    merged.extend(others);
    merged
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
