//! Field managers: who wrote which field last.
//!
//! Guarantees: `metadata.managedFields` after a create, update, patch or apply names the managers, operations and
//! fields that the real server would name, with the limits that [`super::fields`] states.
//!
//! Matches k8s.io/apimachinery `pkg/util/managedfields/internal` (`FieldManager`, `structuredMergeManager`,
//! `managedFieldsUpdater`, `stripMetaManager`, `skipNonAppliedManager`, `capManagersManager`) and structured-merge-diff
//! `merge/update.go`.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::fields::{Comparison, FieldSet, claimed, compare, path_text};
use super::meta;
use super::registry::Resource;
use super::status::{self, Cause, Result, quote};
use super::store::timestamp;

/// Metadata that belongs to nobody.
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

/// More updating managers than this are merged into one.
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
    fn decode(value: &Value) -> Option<Self> {
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
            fields: FieldSet::decode(&value["fieldsV1"]),
        })
    }

    fn encode(&self) -> Value {
        let mut map = Map::new();
        if !self.manager.is_empty() {
            map.insert("manager".to_owned(), json!(self.manager));
        }
        map.insert("operation".to_owned(), json!(self.operation));
        map.insert("apiVersion".to_owned(), json!(self.api_version));
        if let Some(time) = &self.time {
            map.insert("time".to_owned(), json!(time));
        }
        map.insert("fieldsType".to_owned(), json!("FieldsV1"));
        map.insert("fieldsV1".to_owned(), self.fields.encode());
        if !self.subresource.is_empty() {
            map.insert("subresource".to_owned(), json!(self.subresource));
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

    /// As conflicts name it.
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

/// All entries; `None` when one of them cannot be understood.
fn decode(object: &Value) -> Option<Vec<Entry>> {
    object["metadata"]["managedFields"].as_array().into_iter().flatten().map(Entry::decode).collect()
}

fn encode(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.0.is_empty());
    entries.sort_by(|a, b| {
        let rank = |e: &Entry| {
            (e.operation.clone(), e.time.clone(), e.manager.clone(), e.api_version.clone(), e.subresource.clone())
        };
        rank(a).cmp(&rank(b))
    });
    let list: Vec<Value> = entries.iter().map(Entry::encode).collect();
    meta::set(object, "managedFields", if list.is_empty() { Value::Null } else { Value::Array(list) });
}

fn without_managers(object: &Value) -> Value {
    let mut copy = object.clone();
    meta::set(&mut copy, "managedFields", Value::Null);
    copy
}

/// Who writes, to what, and when.
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

    /// The field that writes through this endpoint do not reach. Matches `GetResetFields` of the strategies.
    fn reset_field(&self) -> Option<&'static str> {
        match (self.resource.has_status, self.subresource) {
            (true, "") => Some("status"),
            (true, "status") => Some("spec"),
            _ => None,
        }
    }

    fn compare(&self, before: &Value, after: &Value) -> Comparison {
        let mut comparison = compare(self.resource, before, after);
        if let Some(field) = self.reset_field() {
            comparison.exclude(field);
        }
        comparison
    }

    /// Records a create (`old` is `None`) or an update in `new`. Matches `FieldManager.Update`.
    pub fn update(&self, old: Option<&Value>, new: &mut Value) {
        let given = &new["metadata"]["managedFields"];
        let reset = given.as_array().is_some_and(|list| list.is_empty() || *list == [json!({})]);
        let of_old = || old.and_then(decode).unwrap_or_default();
        let entries = if !self.subresource.is_empty() {
            of_old()
        } else if reset {
            Vec::new()
        } else {
            decode(new).filter(|entries| !entries.is_empty()).unwrap_or_else(of_old)
        };
        meta::set(new, "managedFields", Value::Null);
        // An object whose fields nobody manages stays so, until the first apply.
        if entries.is_empty() && old.is_some() {
            return;
        }
        let before = old.map_or_else(|| empty(self.resource), without_managers);
        let comparison = self.compare(&before, new);
        let mut entries = take_from_others(entries, &comparison);
        let mut fields = comparison.touched();
        strip(&mut fields);
        if !fields.0.is_empty() {
            let current = self.entry("Update", fields);
            match entries.iter_mut().find(|entry| entry.is_same_manager(&current)) {
                Some(entry) => {
                    entry.fields = entry.fields.union(&current.fields);
                    entry.time = current.time;
                }
                None => entries.push(current),
            }
        }
        encode(new, cap(entries));
    }

    /// Merges an applied configuration into `live` (`None` where nothing is there yet) and records it.
    /// Matches `FieldManager.Apply`.
    ///
    /// # Errors
    /// A conflict, when fields belong to others and `force` is not given.
    pub fn apply(&self, live: Option<&Value>, applied: &Value, force: bool) -> Result<Value> {
        let base = live.map_or_else(|| empty(self.resource), without_managers);
        let mut entries = live.and_then(decode).unwrap_or_default();
        if entries.is_empty() && live.is_some() {
            let first = Self { manager: "before-first-apply", ..*self };
            let mut fields = first.compare(&empty(self.resource), &base).touched();
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
        let touched = comparison.touched();
        if !force {
            refuse_conflicts(&entries, &touched)?;
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

/// What the kind looks like with nothing set: the real server's types write some fields always.
pub fn empty(resource: &Resource) -> Value {
    let bare = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {}});
    let mut object = bare.clone();
    if resource.strategy.normalize(&mut object).is_err() { bare } else { object }
}

fn strip(fields: &mut FieldSet) {
    let metadata = "f:metadata".to_owned();
    fields.0.retain(|path| match path.as_slice() {
        [first] => !["f:apiVersion", "f:kind", "f:metadata"].contains(&first.as_str()),
        [first, second] if *first == metadata => !STRIPPED.contains(&second.strip_prefix("f:").unwrap_or_default()),
        _ => true,
    });
}

/// What was changed or removed belongs to its old managers no more.
fn take_from_others(entries: Vec<Entry>, comparison: &Comparison) -> Vec<Entry> {
    let lost = comparison.touched().union(&comparison.removed);
    let mut kept = entries;
    for entry in &mut kept {
        entry.fields = entry.fields.difference(&lost);
    }
    kept.retain(|entry| !entry.fields.0.is_empty());
    kept
}

fn refuse_conflicts(entries: &[Entry], touched: &FieldSet) -> Result<()> {
    let mut conflicts: Vec<(String, String)> = Vec::new();
    for entry in entries {
        let lost = entry.fields.intersection(touched);
        conflicts.extend(lost.iterate().into_iter().map(|path| (entry.describe(), path_text(path))));
    }
    let message = match conflicts.as_slice() {
        [] => return Ok(()),
        [(manager, path)] => format!("Apply failed with 1 conflict: conflict with {manager}: {path}"),
        many => {
            let mut lines = Vec::new();
            let mut managers: Vec<&String> = many.iter().map(|(manager, _)| manager).collect();
            managers.sort();
            managers.dedup();
            for manager in managers {
                lines.push(format!("conflicts with {manager}:"));
                lines.extend(many.iter().filter(|(m, _)| m == manager).map(|(_, path)| format!("- {path}")));
            }
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

/// Merges the oldest updating managers into one when there are too many. Matches `capManagersManager`.
fn cap(mut entries: Vec<Entry>) -> Vec<Entry> {
    loop {
        let mut updaters: Vec<usize> = (0..entries.len()).filter(|i| entries[*i].operation == "Update").collect();
        if updaters.len() <= MAX_UPDATERS {
            return entries;
        }
        updaters.sort_by_key(|i| (entries[*i].time.clone(), entries[*i].manager.clone()));
        let second = entries[updaters[1]].clone();
        let first = &mut entries[updaters[0]];
        first.fields = first.fields.union(&second.fields);
        first.time = second.time;
        "ancient-changes".clone_into(&mut first.manager);
        first.subresource.clear();
        entries.remove(updaters[1]);
    }
}

/// When nothing but the times of entries changed, the old entries stay. Matches
/// `IgnoreManagedFieldsTimestampsTransformer`.
pub fn ignore_times(new: &mut Value, old: &Value) {
    let timeless = |object: &Value| {
        let mut copy = object["metadata"]["managedFields"].clone();
        for entry in copy.as_array_mut().into_iter().flatten() {
            if let Some(map) = entry.as_object_mut() {
                map.remove("time");
            }
        }
        copy
    };
    if timeless(new) != timeless(old) {
        return;
    }
    let bare = |object: &Value| {
        let mut copy = without_managers(object);
        meta::set(&mut copy, "resourceVersion", Value::Null);
        copy
    };
    if bare(new) == bare(old) {
        let entries = old["metadata"]["managedFields"].clone();
        meta::set(new, "managedFields", entries);
    }
}
