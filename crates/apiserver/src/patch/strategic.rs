//! Strategic merge patches.
//!
//! Matches k8s.io/apimachinery `pkg/util/strategicpatch` for what kubectl and controllers send: lists merged by key, lists of
//! primitives merged by value (finalizers), `$patch: delete|replace|merge`, `$deleteFromPrimitiveList`, `$retainKeys`.
//! `$setElementOrder` sorts the items that it names.
//!
//! Guarantee: the items of a list are looked up by hash, so the work grows with the length of the object and of the patch.

use std::collections::{BTreeSet, HashMap, HashSet};

use apimachinery::steps;
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
        let lists = Ordered::of(map, patch, self.resource, names);
        if let Some(retained) = patch.get(RETAIN).and_then(Value::as_array) {
            let retained: HashSet<&str> = steps::each(retained.iter()).filter_map(Value::as_str).collect();
            map.retain(|key, _| retained.contains(&**key));
        }
        for (key, value) in patch {
            if let Some(name) = key.strip_prefix(DELETE_PRIMITIVES) {
                if let (Some(list), Some(gone)) = (map.get_mut(name).and_then(Value::as_array_mut), value.as_array()) {
                    let gone: HashSet<&Value> = steps::each(gone.iter()).collect();
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
        for list in lists {
            list.sort(map);
        }
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
        let mut keyed = KeyedList::of(std::mem::take(list), merge_key);
        let outcome = items.iter().try_for_each(|item| self.item(&mut keyed, item, merge_key, names));
        *list = keyed.items.into_iter().flatten().collect();
        outcome
    }

    /// Merges one item of a patch into a list.
    fn item<'p>(
        &self,
        list: &mut KeyedList,
        item: &'p Value,
        merge_key: &str,
        names: &mut Vec<&'p str>,
    ) -> Result<(), String> {
        let Some(patch) = item.as_object() else { return Ok(()) };
        let directive = patch.get(DIRECTIVE).and_then(Value::as_str);
        let Some(wanted) = patch.get(merge_key) else {
            return Err(format!("map: {} does not contain declared merge key: {merge_key}", go_map(patch)));
        };
        match directive {
            Some("delete") => list.delete(wanted),
            Some("replace") => {
                let rest = patch.iter().filter(|(key, _)| *key != DIRECTIVE);
                *list.entry(wanted) = Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect());
            }
            _ => self.map(list.entry(wanted), patch, names)?,
        }
        Ok(())
    }

    /// Lists without a merge key are replaced, except sets, which are extended.
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)]
    fn unkeyed(&self, target: &mut Value, items: &[Value], shape: &ListShape) -> Result<(), String> {
        match target.as_array_mut() {
            Some(list) if *shape == ListShape::Set => {
                let known: HashSet<&Value> = steps::each(list.iter()).collect();
                let mut added = HashSet::new();
                let new = steps::each(items.iter()).filter(|item| !known.contains(item) && added.insert(*item));
                let new: Vec<Value> = new.cloned().collect();
                list.extend(new);
            }
            _ => *target = Value::Array(items.to_vec()),
        }
        Ok(())
    }
}

/// A list whose items are found by their key.
struct KeyedList {
    /// `None` for deleted ones.
    items: Vec<Option<Value>>,
    /// The positions of the items with each key, in order.
    places: HashMap<Value, Vec<usize>>,
}

impl KeyedList {
    fn of(items: Vec<Value>, merge_key: &str) -> Self {
        let mut places: HashMap<Value, Vec<usize>> = HashMap::new();
        for (place, item) in steps::each(items.iter()).enumerate() {
            if let Some(key) = item.get(merge_key) {
                places.entry(key.clone()).or_default().push(place);
            }
        }
        Self { items: items.into_iter().map(Some).collect(), places }
    }

    fn delete(&mut self, key: &Value) {
        for place in steps::each(self.places.remove(key).into_iter().flatten()) {
            self.items[place] = None;
        }
    }

    /// The first item with this key; a new one, at the end, if there is none.
    fn entry(&mut self, key: &Value) -> &mut Value {
        steps::add(1);
        let places = self.places.entry(key.clone()).or_default();
        let place = places.first().copied().unwrap_or(self.items.len());
        if place == self.items.len() {
            places.push(place);
            self.items.push(Some(Value::Null));
        }
        self.items[place].get_or_insert_with(|| Value::Object(Map::new()))
    }
}

/// The place of each identity; of several equal ones, the first.
fn places(items: &[Value]) -> HashMap<&Value, usize> {
    steps::each(items.iter().enumerate().rev()).map(|(place, item)| (item, place)).collect()
}

/// A merged list that is to be sorted. Items that `$setElementOrder` names (or else the patch itself) get its order, the others
/// keep theirs. Between the two groups the previous order counts, with new items first. Matches `normalizeElementOrder`.
struct Ordered<'p> {
    name: &'p str,
    merge_key: Option<&'static str>,
    /// The identities of the items in the order that the patch wants, and in the one that they had.
    wanted: Vec<Value>,
    old: Vec<Value>,
}

impl<'p> Ordered<'p> {
    /// The lists in `map` that `changes` merges.
    fn of(
        map: &Map<String, Value>,
        changes: &'p Map<String, Value>,
        resource: &Resource,
        above: &[&'p str],
    ) -> Vec<Self> {
        let arrays = changes.iter().filter(|(_, value)| value.is_array());
        let names: BTreeSet<&str> = arrays.map(|(key, _)| key.strip_prefix(ORDER).unwrap_or(key)).collect();
        let ordered = |name: &'p str| {
            let path: Vec<&str> = above.iter().copied().chain([name]).collect();
            let shape = list_shape(resource, &path);
            let by_shape = if let ListShape::Keyed(keys) = &shape { keys.first().copied() } else { None };
            let merge_key = resource.strategy.patch_merge_key(&path).or(by_shape);
            if merge_key.is_none() && shape != ListShape::Set {
                return None;
            }
            let identities = |list: Option<&Value>| {
                let items = list.and_then(Value::as_array).into_iter().flatten();
                steps::each(items).map(|item| identity(item, merge_key).clone()).collect()
            };
            let wanted = changes.get(&format!("{ORDER}{name}")).or_else(|| changes.get(name));
            Some(Self { name, merge_key, wanted: identities(wanted), old: identities(map.get(name)) })
        };
        names.into_iter().filter_map(ordered).collect()
    }

    fn sort(&self, map: &mut Map<String, Value>) {
        let Some(list) = map.get_mut(self.name).and_then(Value::as_array_mut) else { return };
        let (wanted, old) = (places(&self.wanted), places(&self.old));
        let place = |within: &HashMap<&Value, usize>, item: &Value| {
            steps::add(1);
            within.get(identity(item, self.merge_key)).copied()
        };
        let (mut named, mut others): (Vec<Value>, Vec<Value>) =
            std::mem::take(list).into_iter().partition(|item| place(&wanted, item).is_some());
        named.sort_by_cached_key(|item| place(&wanted, item));
        others.sort_by_cached_key(|item| place(&old, item));
        let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
        while let (Some(left), Some(right)) = (others.peek(), named.peek()) {
            let before = place(&old, left).zip(place(&old, right)).is_some_and(|(left, right)| left < right);
            list.extend(if before { others.next() } else { named.next() });
        }
        list.extend(named);
        list.extend(others);
    }
}

/// What tells an item of a list from the others: its key, or the item itself.
fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> &'a Value {
    merge_key.map_or(item, |key| &item[key])
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
