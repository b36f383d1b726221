//! RFC 7386.

use serde_json::{Map, Value};

/// Merges `patch` into `target`: null removes, objects are merged, everything else replaces.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            apply(map.entry(key).or_insert(Value::Null), value);
        }
    }
}
