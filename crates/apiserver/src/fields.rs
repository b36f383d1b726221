//! Sets of fields, and the comparison of two objects by fields.
//!
//! Guarantees: a [`FieldSet`] reads and writes the `fieldsV1` form that sigs.k8s.io/structured-merge-diff writes for the same
//! set. There is no full schema here. Lists are atomic, sets or merged by the kind's merge keys; atomic maps come from a table
//! of field names.
//!
//! Matches structured-merge-diff `typed/compare.go`, `typed/tofieldset.go` and `fieldpath/serialize.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::registry::Resource;

/// A path: elements in their written form, `f:name`, `k:{"name":"x"}`, `v:"x"`.
pub type Path = Vec<String>;

/// A set of paths, stored as `fieldsV1` is: a tree of path elements. A node without children, or with the child `.`, is a
/// member. A node that is no member has children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet(Map<String, Value>);

/// Marks a node with children as a member.
const SELF: &str = ".";

/// Maps that field managers own as a whole (`x-kubernetes-map-type: atomic`).
const ATOMIC_MAPS: [&str; 20] = [
    "matchConstraints",
    "matchResources",
    "paramKind",
    "paramRef",
    "selector",
    "labelSelector",
    "nodeSelector",
    "fieldRef",
    "resourceFieldRef",
    "secretKeyRef",
    "configMapKeyRef",
    "involvedObject",
    "related",
    "secretRef",
    "nodeAffinity",
    "podSelector",
    "namespaceSelector",
    "objectSelector",
    "roleRef",
    "scopeSelector",
];

/// Lists whose items field managers own as a whole.
const ATOMIC_ITEMS: [&str; 3] = ["ownerReferences", "imagePullSecrets", "variables"];

/// How a list is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListShape {
    /// As a whole.
    Atomic,
    /// By value.
    Set,
    /// By the values of these fields.
    Keyed(Vec<&'static str>),
}

/// Whether field managers own and replace the map in the field `name` as a whole.
pub fn is_atomic_map(name: &str) -> bool {
    ATOMIC_MAPS.contains(&name)
}

/// Whether field managers own and replace the items of the list in the field `name` as a whole.
pub fn has_atomic_items(name: &str) -> bool {
    ATOMIC_ITEMS.contains(&name)
}

/// How the list at `path` (field names without indices) is merged.
pub fn list_shape(resource: &Resource, path: &[&str]) -> ListShape {
    let last = path.last().copied().unwrap_or_default();
    match (path.len().checked_sub(2).map(|parent| path[parent]), last) {
        (Some("metadata"), "ownerReferences") => return ListShape::Keyed(vec!["uid"]),
        (Some("metadata"), "finalizers") | (_, "validationActions") => return ListShape::Set,
        _ => {}
    }
    if resource.strategy.is_atomic_list(path) {
        return ListShape::Atomic;
    }
    match (last, resource.strategy.patch_merge_key(path)) {
        (_, None) => ListShape::Atomic,
        ("ports", Some(port)) => ListShape::Keyed(vec![port, "protocol"]),
        ("topologySpreadConstraints", Some(_)) => ListShape::Keyed(vec!["topologyKey", "whenUnsatisfiable"]),
        (_, Some(key)) => ListShape::Keyed(vec![key]),
    }
}

/// The path element of a list item; `None` if it has none. A missing key has its field's default.
pub fn item_element(shape: &ListShape, item: &Value) -> Option<String> {
    match shape {
        ListShape::Atomic => None,
        ListShape::Set => Some(format!("v:{item}")),
        ListShape::Keyed(keys) => {
            let given = item.as_object()?;
            let mut map = Map::new();
            for key in keys {
                let value = match (given.get(*key).unwrap_or(&Value::Null), *key) {
                    (Value::Null, "protocol") => json!("TCP"),
                    (Value::Null, "containerPort" | "port") => json!(0),
                    (Value::Null, _) => json!(""),
                    (value, _) => value.clone(),
                };
                map.insert((*key).to_owned(), value);
            }
            Some(format!("k:{}", Value::Object(map)))
        }
    }
}

impl FieldSet {
    /// Parses `fieldsV1`; what does not have that form is dropped.
    pub fn decode(fields: Value) -> Self {
        let Value::Object(mut root) = fields else { return Self::default() };
        tidy(&mut root);
        Self(root)
    }

    /// Writes `fieldsV1`.
    pub fn encode(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one path.
    pub fn insert(&mut self, path: &[String]) {
        let mut node = &mut self.0;
        let mut is_new = false;
        for (depth, element) in path.iter().enumerate() {
            if depth > 0 && !is_new && node.is_empty() {
                node.insert(SELF.to_owned(), json!({}));
            }
            is_new = !node.contains_key(element);
            node = children_mut(node.entry(element.as_str()).or_insert_with(|| json!({})));
        }
        if !is_new && !node.is_empty() {
            node.insert(SELF.to_owned(), json!({}));
        }
    }

    /// The intersection.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(intersect(&self.0, &other.0))
    }

    /// The difference: members of `self` that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.subtract(other);
        left
    }

    /// Removes the members of `other`.
    pub fn subtract(&mut self, other: &Self) {
        subtract(&mut self.0, &other.0);
    }

    /// Adds the members of `other`.
    pub fn unite(&mut self, other: &Self) {
        unite(&mut self.0, &other.0);
    }

    /// Removes everything at or below the top-level field `name`.
    pub fn exclude(&mut self, name: &str) {
        self.0.remove(&format!("f:{name}"));
    }

    /// Removes the members that `unwanted` names among the top-level fields, or among the fields of the field `parent`. Members
    /// below them stay.
    pub fn strip(&mut self, parent: Option<&str>, unwanted: impl Fn(&str) -> bool) {
        let Some(parent) = parent else { return strip(&mut self.0, unwanted) };
        let element = format!("f:{parent}");
        let Some(fields) = self.0.get_mut(&element).map(children_mut) else { return };
        let was_member = fields.is_empty();
        strip(fields, unwanted);
        if fields.is_empty() && !was_member {
            self.0.remove(&element);
        }
    }

    /// Whether the set has a member at or below `path`.
    pub fn has_prefix(&self, path: &[String]) -> bool {
        path.iter().try_fold(&self.0, |node, element| node.get(element)?.as_object()).is_some()
    }

    /// The paths, a node before its children, in structured-merge-diff's order.
    pub fn iterate(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        collect(&self.0, &mut Vec::new(), &mut paths);
        paths
    }
}

fn children_mut(node: &mut Value) -> &mut Map<String, Value> {
    if !node.is_object() {
        *node = json!({});
    }
    node.as_object_mut().expect("was made an object in the line above")
}

fn is_member(node: &Map<String, Value>) -> bool {
    node.is_empty() || node.contains_key(SELF)
}

/// Converts what a client sent into the form in which the set is stored.
fn tidy(node: &mut Map<String, Value>) {
    node.retain(|element, child| match child {
        child if element == SELF => {
            *child = json!({});
            true
        }
        Value::Object(map) if map.is_empty() => true,
        Value::Object(map) => {
            tidy(map);
            let keep = !map.is_empty();
            if map.len() == 1 && map.contains_key(SELF) {
                map.clear();
            }
            keep
        }
        _ => false,
    });
}

fn unite(node: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (element, added) in other {
        let Some(known) = node.get_mut(element) else {
            node.insert(element.clone(), added.clone());
            continue;
        };
        let (known, Some(added)) = (children_mut(known), added.as_object()) else { continue };
        let member = is_member(known) || is_member(added);
        unite(known, added);
        if member && !known.is_empty() {
            known.insert(SELF.to_owned(), json!({}));
        }
    }
}

fn subtract(node: &mut Map<String, Value>, other: &Map<String, Value>) {
    if other.is_empty() {
        return;
    }
    node.retain(|element, child| {
        let Some(taken) = other.get(element).and_then(Value::as_object) else { return true };
        if element == SELF {
            return false;
        }
        let child = children_mut(child);
        let member = is_member(child) && !is_member(taken);
        child.remove(SELF);
        subtract(child, taken);
        if member && !child.is_empty() {
            child.insert(SELF.to_owned(), json!({}));
        }
        member || !child.is_empty()
    });
}

fn intersect(node: &Map<String, Value>, other: &Map<String, Value>) -> Map<String, Value> {
    let mut both = Map::new();
    for (element, child) in node {
        let (Some(child), Some(theirs)) = (child.as_object(), other.get(element).and_then(Value::as_object)) else {
            continue;
        };
        let member = is_member(child) && is_member(theirs);
        let mut shared = intersect(child, theirs);
        shared.remove(SELF);
        if member && !shared.is_empty() {
            shared.insert(SELF.to_owned(), json!({}));
        }
        if member || !shared.is_empty() {
            both.insert(element.clone(), Value::Object(shared));
        }
    }
    both
}

fn strip(node: &mut Map<String, Value>, unwanted: impl Fn(&str) -> bool) {
    node.retain(|element, child| {
        if !unwanted(element) {
            return true;
        }
        let child = children_mut(child);
        child.remove(SELF);
        !child.is_empty()
    });
}

fn collect(node: &Map<String, Value>, path: &mut Path, paths: &mut Vec<Path>) {
    if path.is_empty() && node.contains_key(SELF) {
        paths.push(Vec::new());
    }
    let children = || node.iter().filter(|(element, _)| *element != SELF);
    for (element, child) in children() {
        if child.as_object().is_some_and(is_member) {
            paths.push(path.iter().chain([element]).cloned().collect());
        }
    }
    for (element, child) in children() {
        if let Some(child) = child.as_object() {
            path.push(element.clone());
            collect(child, path, paths);
            path.pop();
        }
    }
}

/// A path as conflict messages print it: `.spec.containers[name="c"].image`.
pub fn path_text(path: &[String]) -> String {
    path.iter().map(|element| element_text(element)).collect()
}

fn element_text(element: &str) -> String {
    let (kind, rest) = element.split_once(':').unwrap_or(("f", element));
    match kind {
        "k" => {
            let keys: Value = serde_json::from_str(rest).unwrap_or_default();
            let parts = keys.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
            format!("[{}]", parts.collect::<Vec<_>>().join(","))
        }
        "v" => format!("[={rest}]"),
        "i" => format!("[{rest}]"),
        _ => format!(".{rest}"),
    }
}

/// The difference between two objects.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Fields that were added or changed.
    pub touched: FieldSet,
    /// Fields that were removed.
    pub removed: FieldSet,
}

/// Compares two objects of a kind, except their managed fields and the field `excluded`.
pub fn compare(resource: &Resource, before: &Value, after: &Value, excluded: Option<&str>) -> Comparison {
    let mut walk = Walk { resource, excluded, names: Vec::new(), path: Vec::new(), result: Comparison::default() };
    walk.node(Some(before), Some(after), false);
    walk.result
}

struct Walk<'a> {
    resource: &'a Resource,
    excluded: Option<&'a str>,
    names: Vec<&'a str>,
    path: Path,
    result: Comparison,
}

impl<'a> Walk<'a> {
    /// Whether the field `key` at the current position is compared.
    fn counts(&self, key: &str) -> bool {
        match self.names.as_slice() {
            [] => self.excluded != Some(key),
            ["metadata"] => key != "managedFields",
            _ => true,
        }
    }

    fn leaf(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let set = match (before, after) {
            (_, Some(_)) if before != after => &mut self.result.touched,
            (Some(_), None) => &mut self.result.removed,
            _ => return,
        };
        set.insert(&self.path);
    }

    fn node(&mut self, before: Option<&'a Value>, after: Option<&'a Value>, atomic_item: bool) {
        // Null equals any value on the other side, but a null that was there before counts as present.
        let is_set = |v: &&Value| !v.is_null();
        let Some(sample) = after.filter(is_set).or(before.filter(is_set)) else { return self.leaf(before, after) };
        let both = before.filter(is_set).zip(after.filter(is_set));
        let same_form = both.is_none_or(|(x, y)| std::mem::discriminant(x) == std::mem::discriminant(y));
        let name = self.names.last().copied().unwrap_or_default();
        match sample {
            Value::Object(_) if same_form && !atomic_item && !is_atomic_map(name) => self.map(before, after),
            Value::Array(_) if same_form => self.list(before, after),
            _ => self.leaf(before, after),
        }
    }

    /// A container that was added or removed is itself a member of the set, unless the real server's types always write it.
    fn container(&mut self, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (None, Some(_)) => self.result.touched.insert(&self.path),
            (Some(_), None) => self.result.removed.insert(&self.path),
            _ => {}
        }
    }

    fn map(&mut self, before: Option<&'a Value>, after: Option<&'a Value>) {
        let before_map = before.and_then(Value::as_object);
        let after_map = after.and_then(Value::as_object);
        if before_map.is_none_or(Map::is_empty) && after_map.is_none_or(Map::is_empty) {
            return self.leaf(before, after);
        }
        let keys: BTreeSet<&'a String> =
            before_map.into_iter().flat_map(Map::keys).chain(after_map.into_iter().flat_map(Map::keys)).collect();
        for key in keys {
            let child = |map: Option<&'a Map<String, Value>>| map.and_then(|map| map.get(key));
            let (before, after) = (child(before_map), child(after_map));
            // Most of an object is unchanged.
            if before == after || !self.counts(key) {
                continue;
            }
            self.names.push(key);
            self.path.push(format!("f:{key}"));
            self.node(before, after, false);
            self.path.pop();
            self.names.pop();
        }
        self.container(before, after);
    }

    fn list(&mut self, before: Option<&'a Value>, after: Option<&'a Value>) {
        let items = |value: Option<&'a Value>| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (old, new) = (items(before), items(after));
        let shape = list_shape(self.resource, &self.names);
        if shape == ListShape::Atomic || (old.is_empty() && new.is_empty()) {
            return self.leaf(before, after);
        }
        let index = |items: &'a [Value]| -> BTreeMap<String, &'a Value> {
            items.iter().filter_map(|item| Some((item_element(&shape, item)?, item))).collect()
        };
        let (old, new) = (index(old), index(new));
        let atomic_item = self.names.last().is_some_and(|name| has_atomic_items(name));
        let elements: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for element in elements {
            self.path.push(element.clone());
            self.node(old.get(element).copied(), new.get(element).copied(), atomic_item);
            self.path.pop();
        }
        self.container(before, after);
    }
}

/// The fields that an applied configuration owns. Matches `TypedValue.ToFieldSet`.
pub fn claimed(resource: &Resource, applied: &Value) -> FieldSet {
    let mut claim = Claim { resource, names: Vec::new(), path: Vec::new(), set: FieldSet::default() };
    claim.node(applied, false);
    claim.set
}

struct Claim<'a> {
    resource: &'a Resource,
    names: Vec<&'a str>,
    path: Path,
    set: FieldSet,
}

impl<'a> Claim<'a> {
    fn node(&mut self, value: &'a Value, atomic_item: bool) {
        let name = self.names.last().copied().unwrap_or_default();
        match value {
            Value::Object(map) if !map.is_empty() && !atomic_item && !is_atomic_map(name) => {
                for (key, child) in map {
                    self.names.push(key);
                    self.path.push(format!("f:{key}"));
                    self.node(child, false);
                    self.path.pop();
                    self.names.pop();
                }
            }
            Value::Array(items) if !items.is_empty() => self.list(items),
            _ => {
                self.set.insert(&self.path);
            }
        }
    }

    fn list(&mut self, items: &'a [Value]) {
        let shape = list_shape(self.resource, &self.names);
        if shape == ListShape::Atomic {
            self.set.insert(&self.path);
            return;
        }
        let atomic_item = self.names.last().is_some_and(|name| has_atomic_items(name));
        for item in items {
            if let Some(element) = item_element(&shape, item) {
                self.path.push(element);
                self.node(item, atomic_item);
                self.set.insert(&self.path);
                self.path.pop();
            }
        }
    }
}
