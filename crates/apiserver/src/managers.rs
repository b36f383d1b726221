//! Field managers: which manager last wrote which field.
//!
//! Guarantees: after a create, update, patch or apply, `metadata.managedFields` has the managers, operations and fields that
//! the real server would record, within the limits that [`super::fields`] states.
//!
//! Matches k8s.io/apimachinery `pkg/util/managedfields/internal` (`FieldManager`, `structuredMergeManager`,
//! `managedFieldsUpdater`, `stripMetaManager`, `skipNonAppliedManager`, `capManagersManager`) and structured-merge-diff
//! `merge/update.go`.

use std::collections::{BTreeMap, HashSet};

use apimachinery::quoting::quote;
use apimachinery::status::{self, Cause, Result};
use apimachinery::steps;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::fields::{Comparison, FieldSet, claimed, compare, path_text};
use super::meta;
use super::registry::Resource;
use super::store::timestamp;

/// Metadata fields that no manager owns.
const STRIPPED: [&str; 10] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
    "",
];

/// If there are more updating managers than this, the oldest are merged into one.
const MAX_UPDATERS: usize = 10;

/// One entry of `managedFields`.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    time: Option<String>,
    fields: FieldSet,
}

impl Entry {
    fn decode(mut value: Value) -> Option<Self> {
        let fields = value["fieldsV1"].take();
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let operation = text("operation");
        let sound = matches!(operation.as_str(), "Apply" | "Update")
            && !text("apiVersion").is_empty()
            && text("fieldsType") == "FieldsV1";
        sound.then(|| Self {
            manager: text("manager"),
            operation,
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: value["time"].as_str().map(str::to_owned),
            fields: FieldSet::decode(fields),
        })
    }

    fn encode(self) -> Value {
        let mut map = Map::new();
        if !self.manager.is_empty() {
            map.insert("manager".to_owned(), self.manager.into());
        }
        map.insert("operation".to_owned(), self.operation.into());
        map.insert("apiVersion".to_owned(), self.api_version.into());
        if let Some(time) = self.time {
            map.insert("time".to_owned(), time.into());
        }
        map.insert("fieldsType".to_owned(), "FieldsV1".into());
        map.insert("fieldsV1".to_owned(), self.fields.encode());
        if !self.subresource.is_empty() {
            map.insert("subresource".to_owned(), self.subresource.into());
        }
        Value::Object(map)
    }

    fn is_same_manager(&self, other: &Self) -> bool {
        let same_version = self.operation == "Apply" || self.api_version == other.api_version;
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && same_version
    }

    /// The description of the entry in conflict messages.
    fn describe(&self) -> String {
        let mut parts = vec![quote(&self.manager)];
        if !self.subresource.is_empty() {
            parts.push(format!("with subresource {}", quote(&self.subresource)));
        }
        if self.operation == "Update" {
            parts.push(format!("using {}", self.api_version));
        }
        parts.join(" ")
    }
}

/// All entries; `None` if one of them cannot be decoded.
fn decode(managed: Value) -> Option<Vec<Entry>> {
    match managed {
        Value::Array(entries) => entries.into_iter().map(Entry::decode).collect(),
        _ => Some(Vec::new()),
    }
}

fn decode_of(object: &Value) -> Option<Vec<Entry>> {
    decode(object["metadata"]["managedFields"].clone())
}

/// The managers of an object's fields, each with its subresource; none if an entry cannot be decoded.
pub fn names(object: &Value) -> Vec<(String, String)> {
    let entries = decode_of(object).unwrap_or_default();
    entries.into_iter().map(|entry| (entry.manager, entry.subresource)).collect()
}

/// The sort key of an entry.
fn rank(entry: &Entry) -> (&str, Option<&str>, &str, &str, &str) {
    let Entry { operation, time, manager, api_version, subresource, .. } = entry;
    (operation, time.as_deref(), manager, api_version, subresource)
}

fn encode(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    entries.sort_by(|a, b| rank(a).cmp(&rank(b)));
    let list: Vec<Value> = entries.into_iter().map(Entry::encode).collect();
    meta::set(object, "managedFields", if list.is_empty() { Value::Null } else { Value::Array(list) });
}

fn without_managers(object: &Value) -> Value {
    let mut copy = object.clone();
    meta::set(&mut copy, "managedFields", Value::Null);
    copy
}

/// The manager of a write, the kind, and the time.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The kind.
    pub resource: &'a Resource,
    /// Name of the manager; empty becomes `unknown`.
    pub manager: &'a str,
    /// Empty, or `status`.
    pub subresource: &'a str,
    /// Wall time.
    pub now: DateTime<Utc>,
}

impl Writer<'_> {
    fn entry(&self, operation: &str, fields: FieldSet) -> Entry {
        Entry {
            manager: if self.manager.is_empty() { "unknown".to_owned() } else { self.manager.to_owned() },
            operation: operation.to_owned(),
            api_version: self.resource.api_version(),
            subresource: self.subresource.to_owned(),
            time: timestamp(self.now).as_str().map(str::to_owned),
            fields,
        }
    }

    /// The field that writes through this endpoint cannot change. Matches `GetResetFields` of the strategies.
    fn reset_field(&self) -> Option<&'static str> {
        match (self.resource.has_status, self.subresource) {
            (true, "") => Some("status"),
            (true, "status") => Some("spec"),
            _ => None,
        }
    }

    fn compare(&self, before: &Value, after: &Value) -> Comparison {
        compare(self.resource, before, after, self.reset_field())
    }

    /// Records a create (`old` is `None`) or an update in `new`. Matches `FieldManager.Update`.
    pub fn update(&self, old: Option<&Value>, new: &mut Value) {
        let given = meta::metadata_mut(new).remove("managedFields").unwrap_or_default();
        let reset = given.as_array().is_some_and(|list| list.is_empty() || *list == [json!({})]);
        let of_old = || old.and_then(decode_of).unwrap_or_default();
        let is_old = old.is_some_and(|old| old["metadata"]["managedFields"] == given);
        let entries = if !self.subresource.is_empty() && !is_old {
            of_old()
        } else if reset {
            Vec::new()
        } else {
            decode(given).filter(|entries| !entries.is_empty()).unwrap_or_else(of_old)
        };
        // An object without managed fields stays so until the first apply.
        if entries.is_empty() && old.is_some() {
            return;
        }
        let nothing = if old.is_none() { empty(self.resource) } else { Value::Null };
        let before = old.unwrap_or(&nothing);
        let comparison = self.compare(before, new);
        let mut entries = take_from_others(entries, &comparison);
        let mut fields = comparison.touched;
        strip(&mut fields);
        if !fields.is_empty() {
            let current = self.entry("Update", fields);
            match entries.iter_mut().find(|entry| entry.is_same_manager(&current)) {
                Some(entry) => {
                    entry.fields.unite(&current.fields);
                    entry.time = current.time;
                }
                None => entries.push(current),
            }
        }
        encode(new, cap(entries));
    }

    /// Merges an applied configuration into `live` (`None` if the object does not exist yet) and records it.
    /// Matches `FieldManager.Apply`.
    ///
    /// # Errors
    /// A conflict, if other managers own the fields and `force` is false.
    pub fn apply(&self, live: Option<&Value>, applied: &Value, force: bool) -> Result<Value> {
        let base = live.map_or_else(|| empty(self.resource), without_managers);
        let mut entries = live.and_then(decode_of).unwrap_or_default();
        if entries.is_empty() && live.is_some() {
            let first = Self { manager: "before-first-apply", ..*self };
            let mut fields = first.compare(&empty(self.resource), &base).touched;
            strip(&mut fields);
            entries.push(first.entry("Update", fields));
        }
        let mut fields = claimed(self.resource, applied);
        if let Some(field) = self.reset_field() {
            fields.exclude(field);
        }
        let mut current = self.entry("Apply", fields);
        let position = entries.iter().position(|entry| entry.is_same_manager(&current));
        let last = position.map(|index| entries.remove(index));

        let mut merged = super::patch::apply::merge(self.resource, &base, applied);
        if let Some(last) = &last {
            let given_up = last.fields.difference(&current.fields);
            let owned: Vec<&FieldSet> = entries.iter().map(|e| &e.fields).chain([&current.fields]).collect();
            super::patch::apply::prune(self.resource, &mut merged, &given_up, &owned);
        }
        let comparison = self.compare(&base, &merged);
        if !force {
            refuse_conflicts(&entries, &comparison.touched)?;
        }
        let mut entries = take_from_others(entries, &comparison);
        if merged == base && live.is_some() {
            current.time = last.and_then(|last| last.time);
        }
        strip(&mut current.fields);
        entries.push(current);
        encode(&mut merged, entries);
        Ok(merged)
    }
}

/// The kind with no field set: the real server's types always write some fields.
pub fn empty(resource: &Resource) -> Value {
    let bare = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {}});
    let mut object = bare.clone();
    if resource.strategy.normalize(&mut object).is_err() { bare } else { object }
}

fn strip(fields: &mut FieldSet) {
    fields.strip(Some("metadata"), |element| {
        element != "." && STRIPPED.contains(&element.strip_prefix("f:").unwrap_or_default())
    });
    fields.strip(None, |element| ["f:apiVersion", "f:kind", "f:metadata"].contains(&element));
}

/// Removes changed and removed fields from their previous managers.
fn take_from_others(mut entries: Vec<Entry>, comparison: &Comparison) -> Vec<Entry> {
    for entry in &mut entries {
        entry.fields.subtract(&comparison.touched);
        entry.fields.subtract(&comparison.removed);
    }
    entries.retain(|entry| !entry.fields.is_empty());
    entries
}

fn refuse_conflicts(entries: &[Entry], touched: &FieldSet) -> Result<()> {
    let mut conflicts: Vec<(String, String)> = Vec::new();
    for entry in entries {
        let lost = entry.fields.intersection(touched);
        conflicts.extend(lost.iterate().iter().map(|path| (entry.describe(), path_text(path))));
    }
    let message = match conflicts.as_slice() {
        [] => return Ok(()),
        [(manager, path)] => format!("Apply failed with 1 conflict: conflict with {manager}: {path}"),
        many => {
            let mut by_manager: BTreeMap<&String, Vec<String>> = BTreeMap::new();
            for (manager, path) in steps::each(many.iter()) {
                by_manager.entry(manager).or_default().push(format!("- {path}"));
            }
            let lines = by_manager
                .into_iter()
                .flat_map(|(manager, paths)| std::iter::once(format!("conflicts with {manager}:")).chain(paths));
            let lines: Vec<String> = lines.collect();
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let causes = conflicts.into_iter().map(|(manager, field)| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {manager}"),
        field,
    });
    Err(status::apply_conflict(causes.collect(), message))
}

/// Merges the oldest updating managers into one if there are too many. Matches `capManagersManager`.
fn cap(entries: Vec<Entry>) -> Vec<Entry> {
    let mut updaters: Vec<usize> = (0..entries.len()).filter(|i| entries[*i].operation == "Update").collect();
    let Some(excess) = updaters.len().checked_sub(MAX_UPDATERS).filter(|excess| *excess > 0) else { return entries };
    updaters.sort_by_cached_key(|i| (entries[*i].time.clone(), entries[*i].manager.clone()));
    let oldest: HashSet<usize> = updaters.drain(..=excess).collect();
    let is_old = |i: &usize| oldest.contains(i);
    let (mut ancient, mut kept): (Option<Entry>, Vec<Entry>) = (None, Vec::new());
    for (i, entry) in steps::each(entries.into_iter()).enumerate() {
        match &mut ancient {
            _ if !is_old(&i) => kept.push(entry),
            None => ancient = Some(entry),
            Some(ancient) => {
                ancient.fields.unite(&entry.fields);
                ancient.time = ancient.time.take().max(entry.time);
            }
        }
    }
    let merged = |entry: Entry| Entry { manager: "ancient-changes".to_owned(), subresource: String::new(), ..entry };
    kept.extend(ancient.map(merged));
    kept
}

/// Keeps the old entries if only their times have changed. Matches `IgnoreManagedFieldsTimestampsTransformer`.
pub fn ignore_times(new: &mut Value, old: &Value) {
    let (of_new, of_old) = (&new["metadata"]["managedFields"], &old["metadata"]["managedFields"]);
    if of_new != of_old && same_but_times(of_new, of_old) && same_but_managers(new, old) {
        meta::set(new, "managedFields", of_old.clone());
    }
}

fn same_but_times(new: &Value, old: &Value) -> bool {
    let entry = |(new, old): (&Value, &Value)| match (new.as_object(), old.as_object()) {
        (Some(new), Some(old)) => same_but(new, old, &["time"]),
        _ => new == old,
    };
    match (new.as_array(), old.as_array()) {
        (Some(new), Some(old)) => new.len() == old.len() && new.iter().zip(old).all(entry),
        _ => new == old,
    }
}

/// Whether two objects are equal except for their managed fields and versions.
fn same_but_managers(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    let metadata = |new: Option<&Value>, old: Option<&Value>| match (
        new.and_then(Value::as_object),
        old.and_then(Value::as_object),
    ) {
        (Some(new), Some(old)) => same_but(new, old, &["managedFields", "resourceVersion"]),
        _ => false,
    };
    metadata(new.get("metadata"), old.get("metadata")) && same_but(new, old, &["metadata"])
}

/// Whether two maps are equal except for these members.
fn same_but(a: &Map<String, Value>, b: &Map<String, Value>, ignored: &[&str]) -> bool {
    let counted = |map: &Map<String, Value>| map.len() - ignored.iter().filter(|key| map.contains_key(**key)).count();
    let mut members = a.iter().filter(|(key, _)| !ignored.contains(&key.as_str()));
    counted(a) == counted(b) && members.all(|(key, value)| b.get(key) == Some(value))
}
