//! Lists: the objects in them, and whether kubectl takes the list around them.
//!
//! Guarantees: a list is judged by the rules of kubectl 1.37 if it holds CronJobs or Jobs. A list of a custom group is not judged, since
//! its kinds are not known. A list inside of a list is an error, as it is for kubectl. Pure.
//!
//! Matches `unstructuredJSONScheme` of k8s.io/apimachinery, `FlattenListVisitor` and `mapper` of k8s.io/cli-runtime, and `schemaValidation`
//! of k8s.io/kubectl.

use std::rc::Rc;

use apimachinery::steps;
use serde_json::Value;

use super::documents::Place;
use super::near_kinds;

/// What is wrong with the list itself: the field, and a sentence.
pub(crate) type ListFault = (&'static str, String);

/// The objects of a value, each with its place.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub objects: Vec<(Place, Value)>,
    pub fault: Option<ListFault>,
}

/// The objects of a value: the items of a list. Items whose kind only a faulty list says are left out.
///
/// # Errors
/// An item that is a list, which kubectl refuses with "is not a list: no Items field in this object".
pub(super) fn expand(mut value: Value) -> Result<Expanded, String> {
    if value.is_null() {
        return Ok(Expanded::default());
    }
    let (is_list, is_plain) = (has_text(&value, "kind"), is_plain(&value));
    let items = match value.get_mut("items") {
        Some(Value::Array(items)) if is_list || items.iter().any(is_held) => std::mem::take(items),
        // kubectl also takes null for a list, but for that of v1.
        Some(Value::Null) if is_list && !is_plain => Vec::new(),
        items => {
            let is_missing = items.is_none();
            let fault = (is_list && (is_plain || !is_missing))
                .then(|| ("items", "is missing, or no list; kubectl refuses a list without it".to_owned()));
            let objects = if is_plain { Vec::new() } else { vec![(Place::default(), value)] };
            return Ok(Expanded { objects, fault });
        }
    };
    if let Some(number) = steps::each(items.iter()).position(|item| item.get("items").is_some_and(Value::is_array)) {
        return Err(format!(
            "items[{number}] is a list, and kubectl refuses lists in lists; put its items into the outer one"
        ));
    }
    let fault = judge(&value, &items);
    let list: Rc<str> = "items".into();
    let is_known = |item: &Value| fault.is_none() || has_text(item, "kind") || has_text(item, "apiVersion");
    let known = items.into_iter().enumerate().filter(|(_, item)| is_known(item));
    let objects = known.map(|(number, mut item)| {
        complete(&mut item, &value);
        (Place::item(&list, number), item)
    });
    Ok(Expanded { objects: objects.collect(), fault: fault.clone() })
}

/// Whether it is a List of v1, whose items kubectl looks at before the server does.
fn is_plain(value: &Value) -> bool {
    value["kind"] == "List" && value["apiVersion"] == "v1"
}

fn has_text(value: &Value, field: &str) -> bool {
    value[field].as_str().is_some_and(|text| !text.is_empty())
}

/// Whether an item is a CronJob or a Job, or was meant to be.
fn is_held(item: &Value) -> bool {
    has_text(item, "apiVersion") && item["kind"].as_str().is_some_and(near_kinds::is_meant)
}

/// The kind of the items of a list, as kubectl infers it.
fn item_kind(list: &Value) -> &str {
    let kind = list["kind"].as_str().unwrap_or_default();
    kind.strip_suffix("List").unwrap_or(kind)
}

/// Sets what the API server leaves out of the items of a list such as `CronJobList`, because the list says it.
fn complete(item: &mut Value, list: &Value) {
    let Some(item) = item.as_object_mut() else { return };
    let is_empty = |field| item.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
    let kind = item_kind(list);
    if !kind.is_empty() && is_empty("kind") && is_empty("apiVersion") {
        item.insert("kind".to_owned(), kind.into());
        item.insert("apiVersion".to_owned(), list["apiVersion"].clone());
    }
}

/// Why kubectl refuses a list around CronJobs or Jobs.
fn judge(list: &Value, items: &[Value]) -> Option<ListFault> {
    let own = item_kind(list);
    let is_inferred = |item: &Value| !has_text(item, "kind") && !has_text(item, "apiVersion");
    let holds =
        |item: &Value| item.is_object() && if is_inferred(item) { near_kinds::is_meant(own) } else { is_held(item) };
    if !steps::each(items.iter()).any(holds) {
        return None;
    }
    // An empty version stands for each that is served.
    let is_any = list["apiVersion"] == "";
    if !is_any && !has_text(list, "apiVersion") {
        return Some(("apiVersion", near_kinds::MISSING.to_owned()));
    }
    if !has_text(list, "kind") {
        return Some(("kind", near_kinds::MISSING.to_owned()));
    }
    let text = |field: &str| list[field].as_str().unwrap_or_default();
    let api_version = if is_any { "v1" } else { text("apiVersion") };
    let is_typed = text("kind") != own && !own.is_empty() && near_kinds::is_built_in(api_version);
    let fault = near_kinds::judge_list(api_version, text("kind")).or_else(|| {
        let other = items.iter().find(|item| is_held(item) && item["kind"] != own)?["kind"].as_str()?;
        // A typed list is validated as such; kubectl looks into a list of another name item by item.
        is_typed.then(|| {
            let message = format!("is that of a list of one kind, and kubectl refuses {other} in it; write List of v1");
            ("kind", message)
        })
    });
    fault.or_else(|| wrong_field(list).filter(|_| is_typed))
}

/// What a list of one kind has beside its items that it may not have.
fn wrong_field(list: &Value) -> Option<ListFault> {
    let unknown = |object: &Value, known: &[&str]| {
        let mut fields = object.as_object()?.keys();
        fields.find(|field| !known.contains(&field.as_str())).cloned()
    };
    let metadata = &list["metadata"];
    if !metadata.is_null() && !metadata.is_object() {
        return Some(("metadata", "must be an object".to_owned()));
    }
    if let Some(field) = unknown(metadata, &["continue", "remainingItemCount", "resourceVersion", "selfLink"]) {
        return Some(("metadata", format!("there is no field {field} in that of a list")));
    }
    let field = unknown(list, &["apiVersion", "items", "kind", "metadata"])?;
    Some(("kind", format!("is that of a list, which has no field {field}")))
}

#[cfg(test)]
mod tests;
