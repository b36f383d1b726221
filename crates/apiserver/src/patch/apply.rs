//! The merge of server-side apply.
//!
//! Guarantees: pure. The applied configuration sets the fields it names. Atomic lists and maps are replaced as a whole; keyed
//! lists get the configuration's order. A field that the manager applied before and no longer applies is removed, together with
//! surrounding fields left without an owner. It stays if another manager owns it or a field below it.
//!
//! Matches structured-merge-diff `typed/merge.go` (`Merge`, `visitListItems`), `typed/remove.go` (`RemoveItems`), and the
//! decision of `merge/update.go` (`prune`).

use std::collections::{HashMap, HashSet};

use apimachinery::steps;
use serde_json::{Map, Value};

use crate::fields::{FieldSet, ListShape, has_atomic_items, is_atomic_map, item_element, list_shape};
use crate::registry::Resource;

/// Merges an applied configuration into an object.
pub fn merge(resource: &Resource, live: &Value, applied: &Value) -> Value {
    let mut merged = live.clone();
    into(resource, &mut merged, applied, &mut Vec::new());
    merged
}

fn into<'a>(resource: &Resource, target: &mut Value, applied: &'a Value, names: &mut Vec<&'a str>) {
    match applied {
        Value::Object(map) if !names.last().is_some_and(|name| is_atomic_map(name)) => {
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
    let keys: Option<Vec<String>> = items.iter().map(|item| item_element(&shape, item)).collect();
    let (Some(current), Some(keys)) = (target.as_array_mut().filter(|_| shape != ListShape::Atomic), keys) else {
        *target = Value::Array(items.to_vec());
        return;
    };
    let replaces_items = names.last().is_some_and(|name| has_atomic_items(name));
    let live: Vec<(String, Value)> =
        current.drain(..).map(|item| (item_element(&shape, &item).unwrap_or_default(), item)).collect();
    let live_keys: Vec<&str> = live.iter().map(|(key, _)| key.as_str()).collect();
    let found: HashMap<&str, &Value> = live.iter().rev().map(|(key, item)| (key.as_str(), item)).collect();
    for place in merged_order(&live_keys, &keys) {
        current.push(match place {
            Origin::Live(index) => live[index].1.clone(),
            Origin::Applied(index) => match found.get(keys[index].as_str()) {
                Some(item) if !replaces_items => {
                    let mut merged = (*item).clone();
                    into(resource, &mut merged, &items[index], names);
                    merged
                }
                _ => items[index].clone(),
            },
        });
    }
}

/// The origin of an item of a merged list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The live list only.
    Live(usize),
    /// The applied list, merged with the live item of the same key.
    Applied(usize),
}

/// The order of a merged list. Applied items keep their order; an item of the live list alone stays before the applied item
/// that followed it.
fn merged_order(live: &[&str], applied: &[String]) -> Vec<Origin> {
    let places: HashMap<&str, usize> = applied.iter().enumerate().map(|(index, key)| (key.as_str(), index)).collect();
    let is_live: HashSet<&str> = live.iter().copied().collect();
    let mut shared = applied.iter().filter(|key| is_live.contains(key.as_str())).peekable();
    let mut order = Vec::with_capacity(live.len().max(applied.len()));
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < applied.len() {
        if left < live.len() && right < applied.len() {
            if live[left] == applied[right] {
                order.push(Origin::Applied(right));
                (left, right) = (left + 1, right + 1);
                shared.next();
                continue;
            }
            // An item of both lists, but not the next one.
            if places.contains_key(live[left]) && shared.peek().is_some_and(|next| *next != live[left]) {
                left += 1;
                continue;
            }
        }
        if left < live.len() {
            match places.get(live[left]) {
                None => {
                    order.push(Origin::Live(left));
                    left += 1;
                    continue;
                }
                Some(place) if *place < right => left += 1,
                Some(_) => {}
            }
        }
        if right < applied.len() {
            order.push(Origin::Applied(right));
            shared.next_if(|next| **next == applied[right]);
            right += 1;
        }
    }
    order
}

/// Removes the fields that were given up and have no owner.
pub fn prune(resource: &Resource, object: &mut Value, given_up: &FieldSet, owned: &[&FieldSet]) {
    let mut all = FieldSet::default();
    steps::each(owned.iter()).for_each(|set| all.unite(set));
    let is_owned = |path: &[String]| {
        steps::add(1);
        all.has_prefix(path)
    };
    let mut doomed = Doomed::default();
    // Containers come before their contents.
    for path in &given_up.iterate() {
        // A field is removed with everything below it, also unowned fields such as defaults, once no manager owns any part of
        // it.
        let ends = (1..=path.len()).filter(|end| *end == path.len() || path[end - 1].starts_with("f:"));
        let unowned = ends.map(|end| &path[..end]).find(|part| !is_owned(part));
        // The keys of an item are removed with the item or not at all.
        if let Some(unowned) = unowned.filter(|unowned| !is_item_key(unowned)) {
            doomed.add(unowned);
        }
    }
    doomed.remove_from(resource, object, &mut Vec::new());
}

fn is_item_key(path: &[String]) -> bool {
    let [.., item, field] = path else { return false };
    let (Some(keys), Some(field)) = (item.strip_prefix("k:"), field.strip_prefix("f:")) else { return false };
    serde_json::from_str::<Value>(keys).is_ok_and(|keys| keys.get(field).is_some())
}

/// Fields to remove, by path element.
#[derive(Default)]
struct Doomed {
    /// Whether the field itself goes.
    goes: bool,
    below: HashMap<String, Self>,
}

impl Doomed {
    fn add(&mut self, path: &[String]) {
        let mut node = self;
        for element in steps::each(path.iter()) {
            node = node.below.entry(element.clone()).or_default();
        }
        node.goes = true;
    }

    /// Removes what is below a value.
    fn remove_from(&self, resource: &Resource, value: &mut Value, names: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (element, doomed) in steps::each(self.below.iter()) {
                    let Some(field) = element.strip_prefix("f:") else { continue };
                    let Some(child) = map.get_mut(field).filter(|_| !doomed.goes) else {
                        map.remove(field);
                        continue;
                    };
                    names.push(field.to_owned());
                    doomed.remove_from(resource, child, names);
                    names.pop();
                    // A list whose last item was removed here is removed too.
                    if child.as_array().is_some_and(Vec::is_empty) {
                        map.remove(field);
                    }
                }
            }
            Value::Array(items) => {
                let path_names: Vec<&str> = names.iter().map(String::as_str).collect();
                let shape = list_shape(resource, &path_names);
                // Of several items with one key, the first is meant.
                let mut met = HashSet::new();
                items.retain_mut(|item| {
                    steps::add(1);
                    let doomed = item_element(&shape, item).and_then(|element| self.below.get_key_value(&element));
                    let Some((_, doomed)) = doomed.filter(|(element, _)| met.insert(*element)) else { return true };
                    if !doomed.goes {
                        doomed.remove_from(resource, item, names);
                    }
                    !doomed.goes
                });
            }
            _ => {}
        }
    }
}
