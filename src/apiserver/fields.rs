//! Sets of fields, and how two objects differ in them.
//!
//! Guarantees: a [`FieldSet`] reads and writes the `fieldsV1` form that sigs.k8s.io/structured-merge-diff writes for the
//! same set. What belongs together (atomic lists and maps), what is a set and by which keys lists are merged follows
//! from the kind's merge keys and, for maps, from a table of field names, since there is no full schema here.
//!
//! Matches structured-merge-diff `typed/compare.go`, `typed/tofieldset.go` and `fieldpath/serialize.go`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::registry::Resource;

/// A path: elements in their written form, `f:name`, `k:{"name":"x"}`, `v:"x"`.
pub type Path = Vec<String>;

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet(pub BTreeSet<Path>);

/// Maps that field managers own as a whole (`x-kubernetes-map-type: atomic`).
const ATOMIC_MAPS: [&str; 11] = [
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
];

/// Lists whose items field managers own as a whole.
const ATOMIC_ITEMS: [&str; 2] = ["ownerReferences", "imagePullSecrets"];

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

/// How the list at `path` (field names without indices) is merged.
pub fn list_shape(resource: &Resource, path: &[&str]) -> ListShape {
    let last = path.last().copied().unwrap_or_default();
    match (path.len().checked_sub(2).map(|parent| path[parent]), last) {
        (Some("metadata"), "ownerReferences") => return ListShape::Keyed(vec!["uid"]),
        (Some("metadata"), "finalizers") => return ListShape::Set,
        _ => {}
    }
    if resource.strategy.is_atomic_list(path) {
        return ListShape::Atomic;
    }
    match (last, resource.strategy.patch_merge_key(path)) {
        (_, None) => ListShape::Atomic,
        ("ports", Some("containerPort")) => ListShape::Keyed(vec!["containerPort", "protocol"]),
        ("topologySpreadConstraints", Some(_)) => ListShape::Keyed(vec!["topologyKey", "whenUnsatisfiable"]),
        (_, Some(key)) => ListShape::Keyed(vec![key]),
    }
}

/// The path element of a list's item; `None` when the item lacks a key.
pub fn item_element(shape: &ListShape, item: &Value) -> Option<String> {
    match shape {
        ListShape::Atomic => None,
        ListShape::Set => Some(format!("v:{item}")),
        ListShape::Keyed(keys) => {
            let mut map = Map::new();
            for key in keys {
                let value = match (&item[*key], *key) {
                    (Value::Null, "protocol") => json!("TCP"),
                    (Value::Null, _) => return None,
                    (value, _) => value.clone(),
                };
                map.insert((*key).to_owned(), value);
            }
            Some(format!("k:{}", Value::Object(map)))
        }
    }
}

impl FieldSet {
    /// Reads `fieldsV1`.
    pub fn decode(fields: &Value) -> Self {
        let mut set = Self::default();
        decode_into(&mut set, &mut Vec::new(), fields);
        set
    }

    /// Writes `fieldsV1`.
    pub fn encode(&self) -> Value {
        let mut root = Node::default();
        for path in &self.0 {
            let mut node = &mut root;
            for element in path {
                node = node.children.entry(element).or_default();
            }
            node.member = true;
        }
        root.encode()
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// What is here and not there.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).cloned().collect())
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// Takes away everything at or below the field `name` of the object itself.
    pub fn exclude(&mut self, name: &str) {
        let element = format!("f:{name}");
        self.0.retain(|path| path.first() != Some(&element));
    }

    /// Whether anything at or below `path` is in the set.
    pub fn has_prefix(&self, path: &Path) -> bool {
        self.0.range(path.clone()..).next().is_some_and(|found| found.starts_with(path))
    }

    /// The paths, members of a node before what is below it, as structured-merge-diff walks them.
    pub fn iterate(&self) -> Vec<&Path> {
        let mut paths: Vec<&Path> = self.0.iter().collect();
        paths.sort_by(|a, b| walk_order(a, b));
        paths
    }
}

fn walk_order(a: &Path, b: &Path) -> Ordering {
    for (index, (x, y)) in a.iter().zip(b).enumerate() {
        let (a_ends, b_ends) = (index + 1 == a.len(), index + 1 == b.len());
        match b_ends.cmp(&a_ends).then_with(|| x.cmp(y)) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    a.len().cmp(&b.len())
}

#[derive(Default)]
struct Node<'a> {
    member: bool,
    children: BTreeMap<&'a str, Node<'a>>,
}

impl Node<'_> {
    fn encode(&self) -> Value {
        let mut map = Map::new();
        if self.member && !self.children.is_empty() {
            map.insert(".".to_owned(), json!({}));
        }
        for (element, child) in &self.children {
            map.insert((*element).to_owned(), child.encode());
        }
        Value::Object(map)
    }
}

fn decode_into(set: &mut FieldSet, path: &mut Path, fields: &Value) {
    let Some(map) = fields.as_object() else { return };
    if map.is_empty() && !path.is_empty() {
        set.0.insert(path.clone());
    }
    for (element, child) in map {
        if element == "." {
            set.0.insert(path.clone());
            continue;
        }
        path.push(element.clone());
        decode_into(set, path, child);
        path.pop();
    }
}

/// A path as conflicts print it: `.spec.containers[name="c"].image`.
pub fn path_text(path: &Path) -> String {
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
        _ => format!(".{rest}"),
    }
}

/// How two objects differ.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// There only afterwards.
    pub added: FieldSet,
    /// There before and after, and not the same.
    pub modified: FieldSet,
    /// There only before.
    pub removed: FieldSet,
}

impl Comparison {
    /// Takes a field of the object out of the comparison.
    pub fn exclude(&mut self, name: &str) {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.exclude(name);
        }
    }

    /// What was added or modified.
    pub fn touched(&self) -> FieldSet {
        self.added.union(&self.modified)
    }
}

/// Compares two objects of a kind.
pub fn compare(resource: &Resource, before: &Value, after: &Value) -> Comparison {
    let mut walk = Walk { resource, names: Vec::new(), path: Vec::new(), result: Comparison::default() };
    walk.node(Some(before), Some(after), false);
    walk.result
}

struct Walk<'a> {
    resource: &'a Resource,
    names: Vec<&'a str>,
    path: Path,
    result: Comparison,
}

impl<'a> Walk<'a> {
    fn leaf(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let set = match (before, after) {
            (None, Some(_)) => &mut self.result.added,
            (Some(_), None) => &mut self.result.removed,
            (Some(x), Some(y)) if x != y => &mut self.result.modified,
            _ => return,
        };
        set.0.insert(self.path.clone());
    }

    fn node(&mut self, before: Option<&'a Value>, after: Option<&'a Value>, atomic_item: bool) {
        // Null is whatever the other side is; but what was null was there.
        let is_set = |v: &&Value| !v.is_null();
        let Some(sample) = after.filter(is_set).or(before.filter(is_set)) else { return self.leaf(before, after) };
        let both = before.filter(is_set).zip(after.filter(is_set));
        let same_form = both.is_none_or(|(x, y)| std::mem::discriminant(x) == std::mem::discriminant(y));
        let name = self.names.last().copied().unwrap_or_default();
        match sample {
            Value::Object(_) if same_form && !atomic_item && !ATOMIC_MAPS.contains(&name) => self.map(before, after),
            Value::Array(_) if same_form => self.list(before, after),
            _ => self.leaf(before, after),
        }
    }

    /// A container that is new, or gone, is itself a member of the set, unless it is one that the real server's types
    /// always write.
    fn container(&mut self, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (None, Some(_)) => self.result.added.0.insert(self.path.clone()),
            (Some(_), None) => self.result.removed.0.insert(self.path.clone()),
            _ => return,
        };
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
            self.names.push(key);
            self.path.push(format!("f:{key}"));
            let child = |map: Option<&'a Map<String, Value>>| map.and_then(|map| map.get(key));
            self.node(child(before_map), child(after_map), false);
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
        let atomic_item = self.names.last().is_some_and(|name| ATOMIC_ITEMS.contains(name));
        let elements: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for element in elements {
            self.path.push(element.clone());
            self.node(old.get(element).copied(), new.get(element).copied(), atomic_item);
            self.path.pop();
        }
        self.container(before, after);
    }
}

/// The fields that an applied configuration claims. Matches `TypedValue.ToFieldSet`.
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
            Value::Object(map) if !map.is_empty() && !atomic_item && !ATOMIC_MAPS.contains(&name) => {
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
                self.set.0.insert(self.path.clone());
            }
        }
    }

    fn list(&mut self, items: &'a [Value]) {
        let shape = list_shape(self.resource, &self.names);
        if shape == ListShape::Atomic {
            self.set.0.insert(self.path.clone());
            return;
        }
        let atomic_item = self.names.last().is_some_and(|name| ATOMIC_ITEMS.contains(name));
        for item in items {
            if let Some(element) = item_element(&shape, item) {
                self.path.push(element);
                self.node(item, atomic_item);
                self.set.0.insert(self.path.clone());
                self.path.pop();
            }
        }
    }
}
