//! Object metadata: access, rules for names, labels and annotations, and the rules for creation and update.
//!
//! Guarantees: every rule rejects what k8s.io/apimachinery `pkg/api/validation/objectmeta.go` rejects, with its messages and in
//! its order (maps are walked by key).

use std::collections::{BTreeSet, HashSet};

use apimachinery::field::{FieldError, FieldErrorKind, forbidden_field, invalid_field, required_field};
use apimachinery::names::{
    dns_label_errors, in_characters, label_key_errors, label_value_errors, path_segment_errors, subdomain_errors,
};
use apimachinery::quoting::quote;
use apimachinery::steps;
use serde_json::{Map, Value, json};

use super::registry::NameRule;

/// So many references that would be second controllers are reported.
const MOST_CONFLICTS: usize = 8;
/// The longest name of a manager of fields, in bytes. Matches `FieldManagerMaxLength`.
pub const LONGEST_MANAGER: usize = 128;
const LONGEST_SUBRESOURCE: usize = 256;
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The finalizer by which an object waits for the deletion of its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer by which a definition waits for the deletion of its objects.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The finalizer by which an object waits until its dependents no longer refer to it.
pub const ORPHAN: &str = "orphan";

/// `metadata.<field>` as text; empty if absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The metadata of an object, created if absent.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("was made an object in the line above")
}

/// Sets `metadata.<field>`, or removes it if the value is null.
pub fn set(object: &mut Value, field: &str, value: Value) {
    let metadata = metadata_mut(object);
    if value.is_null() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(|f| f.as_str().map(str::to_owned)).collect()
}

/// Sets the finalizers; an empty list removes the field.
pub fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    set(object, "finalizers", if finalizers.is_empty() { Value::Null } else { json!(finalizers) });
}

/// The generation; 0 if absent.
pub fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

/// Whether deletion has begun.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The owner references.
pub fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether a finalizer has no domain and is not a known one.
fn is_bare(name: &str) -> bool {
    !name.contains('/') && !["kubernetes", ORPHAN, FOREGROUND].contains(&name)
}

/// Errors for finalizers without a domain, except the known ones. Matches `validateKubeFinalizerName` of kubernetes
/// `pkg/apis/core/validation`.
pub fn bare_finalizer_errors(object: &Value) -> Vec<FieldError> {
    let listed = finalizers(object).into_iter().enumerate().filter(|(_, name)| is_bare(name));
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    listed.map(|(index, name)| invalid_field(format!("metadata.finalizers[{index}]"), &json!(name), detail)).collect()
}

/// Warnings about finalizers without a domain that `old` does not have. Matches `generateWarningsFromObj` and
/// `validateKubeFinalizerName` of k8s.io/apiextensions-apiserver `pkg/registry/customresource`. Names that are not qualified
/// names are rejected earlier.
pub fn bare_finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let known: BTreeSet<String> = old.map(finalizers).unwrap_or_default().into_iter().collect();
    let is_new = |name: &String| is_bare(name) && !known.contains(name);
    let added: BTreeSet<String> = finalizers(object).into_iter().filter(is_new).collect();
    let word = |name: String| {
        let form = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {}: prefer a domain-qualified finalizer name{form} to avoid accidental conflicts with \
             other finalizer writers",
            quote(&name)
        )
    };
    added.into_iter().map(word).collect()
}

fn name_errors(rule: NameRule, name: &str, prefix: bool) -> Vec<String> {
    // Matches `maskTrailingDash`, which drops two bytes and adds one.
    let masked = if prefix && name.len() > 1 && name.ends_with('-') && name.is_char_boundary(name.len() - 2) {
        format!("{}a", &name[..name.len() - 2])
    } else {
        name.to_owned()
    };
    match rule {
        NameRule::Subdomain => in_characters(subdomain_errors(&masked)),
        NameRule::Label => in_characters(dns_label_errors(&masked)),
        NameRule::PathSegment if prefix => {
            path_segment_errors(name).into_iter().filter(|e| !e.contains("be '")).collect()
        }
        NameRule::PathSegment => path_segment_errors(name),
    }
}

/// Validates the metadata of a new object. Matches `ValidateObjectMetaAccessor`.
pub fn validate(object: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate_name = text(object, "generateName");
    if !generate_name.is_empty() {
        for problem in name_errors(rule, generate_name, true) {
            errors.push(invalid_field("metadata.generateName", &json!(generate_name), &problem));
        }
    }
    let name = text(object, "name");
    if name.is_empty() {
        errors.push(required_field("metadata.name", "name or generateName is required"));
    }
    if !name.is_empty() {
        for problem in name_errors(rule, name, false) {
            errors.push(invalid_field("metadata.name", &json!(name), &problem));
        }
    }
    let namespace = text(object, "namespace");
    if namespaced && namespace.is_empty() {
        errors.push(required_field("metadata.namespace", ""));
    } else if namespaced {
        for problem in dns_label_errors(namespace) {
            errors.push(invalid_field("metadata.namespace", &json!(namespace), &problem));
        }
    } else if !namespace.is_empty() {
        errors.push(forbidden_field("metadata.namespace", "not allowed on this type"));
    }
    let generation = generation(object);
    if generation < 0 {
        errors.push(invalid_field("metadata.generation", &json!(generation), "must be greater than or equal to 0"));
    }
    validate_labels_and_annotations(object, &mut errors);
    validate_owners(object, &mut errors);
    validate_finalizers(object, &mut errors);
    validate_managers(object, &mut errors);
    errors
}

/// Validates the name of a manager of fields. Matches `ValidateFieldManager`.
pub fn manager_errors(manager: &str, field: &str) -> Vec<FieldError> {
    // Go quotes what it prints as it is, but for these two.
    let is_print = |c: char| matches!(c, '"' | '\\') || !quote(&c.to_string()).contains('\\');
    let unseen = manager.char_indices().filter(|(_, c)| !is_print(*c));
    let unseen = unseen.map(|(at, c)| {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        invalid_field(field, &json!(manager), &detail)
    });
    too_long(manager, LONGEST_MANAGER, field).into_iter().chain(unseen).collect()
}

fn too_long(text: &str, most: usize, field: &str) -> Option<FieldError> {
    (text.len() > most).then(|| FieldError {
        kind: FieldErrorKind::TooLong,
        field: field.to_owned(),
        body: format!("Too long: may not be more than {most} bytes"),
    })
}

/// Of entries that cannot be decoded, none is left. Matches `ValidateManagedFields`.
fn validate_managers(object: &Value, errors: &mut Vec<FieldError>) {
    for (index, (manager, subresource)) in super::managers::names(object).iter().enumerate() {
        let at = format!("metadata.managedFields[{index}]");
        errors.extend(manager_errors(manager, &format!("{at}.manager")));
        errors.extend(too_long(subresource, LONGEST_SUBRESOURCE, &format!("{at}.subresource")));
    }
}

fn validate_labels_and_annotations(object: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        errors.extend(label_key_errors(key).iter().map(|e| invalid_field("metadata.labels", &json!(key), e)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(label_value_errors(value).iter().map(|e| invalid_field("metadata.labels", &json!(value), e)));
    }
    let mut size = 0;
    for (key, value) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
        let problems = label_key_errors(&key.to_lowercase());
        errors.extend(problems.iter().map(|e| invalid_field("metadata.annotations", &json!(key), e)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError {
            kind: FieldErrorKind::TooLong,
            field: "metadata.annotations".to_owned(),
            body: format!("Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"),
        });
    }
}

fn validate_owners(object: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    let mut conflicts = 0;
    for (index, owner) in owners(object).iter().enumerate() {
        let this = format!("{FIELD}[{index}]");
        let part = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        let version = part("apiVersion");
        if version.matches('/').count() > 1 || (!version.is_empty() && version.ends_with('/')) {
            let detail = "must be <group>/<version> or <version>";
            errors.push(invalid_field(format!("{this}.apiVersion"), &json!(version), detail));
        }
        for key in ["apiVersion", "kind", "name", "uid"] {
            if part(key).is_empty() {
                errors.push(required_field(format!("{this}.{key}"), "must not be empty"));
            }
        }
        if version == "v1" && part("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(invalid_field(this, owner, detail));
        }
        if owner["controller"] == json!(true) {
            let named = format!("{}/{}", part("kind"), part("name"));
            match &controller {
                // Each of these errors has the text of all references.
                Some(_) if conflicts == MOST_CONFLICTS => {}
                Some(first) => {
                    conflicts += 1;
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {named}"
                    );
                    errors.push(FieldError {
                        kind: FieldErrorKind::Invalid,
                        field: FIELD.to_owned(),
                        body: format!("Invalid value: {}: {detail}", owners_text(object)),
                    });
                }
                None => controller = Some(named),
            }
        }
    }
}

/// The owner references as text, their members in the order of the real server's type.
fn owners_text(object: &Value) -> String {
    let one = |owner: &Value| {
        let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
        let present = order.iter().filter(|key| !owner[**key].is_null());
        let members: Vec<String> = present.map(|key| format!("\"{key}\":{}", owner[*key])).collect();
        format!("{{{}}}", members.join(","))
    };
    format!("[{}]", owners(object).iter().map(one).collect::<Vec<_>>().join(","))
}

fn validate_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.finalizers";
    let finalizers = finalizers(object);
    for finalizer in &finalizers {
        errors.extend(label_key_errors(finalizer).iter().map(|e| invalid_field(FIELD, &json!(finalizer), e)));
    }
    let has = |name: &str| finalizers.iter().any(|f| f == name);
    if has(ORPHAN) && has(FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(invalid_field(FIELD, &json!(finalizers), &detail));
    }
}

/// Validates a change of metadata. Matches `ValidateObjectMetaAccessorUpdate`.
pub fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_deleting(old) {
        let before: BTreeSet<String> = finalizers(old).into_iter().collect();
        let mut extra = finalizers(object);
        extra.retain(|finalizer| !before.contains(finalizer));
        extra.sort();
        if !extra.is_empty() {
            let listed: Vec<String> = extra.iter().map(|f| quote(f)).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                listed.join(", ")
            );
            errors.push(forbidden_field("metadata.finalizers", &detail));
        }
    }
    if text(object, "resourceVersion").is_empty() {
        errors.push(invalid_field("metadata.resourceVersion", &json!(""), "must be specified for an update"));
    }
    if generation(object) < generation(old) {
        errors.push(invalid_field("metadata.generation", &json!(generation(object)), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (&object["metadata"][field], &old["metadata"][field]);
        if new != old {
            errors.push(invalid_field(format!("metadata.{field}"), new, "field is immutable"));
        }
    }
    validate_labels_and_annotations(object, &mut errors);
    validate_owners(object, &mut errors);
    errors
}

/// Removes duplicate owner references and returns a warning. Matches `dedupOwnerReferencesAndAddWarning`.
pub fn dedup_owners(object: &mut Value) -> Option<String> {
    let mut known = HashSet::new();
    let (kept, duplicates): (Vec<&Value>, Vec<&Value>) =
        steps::each(owners(object).iter()).partition(|owner| known.insert(*owner));
    if duplicates.is_empty() {
        return None;
    }
    let duplicates: Vec<String> =
        duplicates.iter().map(|owner| owner["uid"].as_str().unwrap_or_default().to_owned()).collect();
    let kept = kept.into_iter().cloned().collect();
    set(object, "ownerReferences", Value::Array(kept));
    let uids = duplicates.join(", ");
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
    ))
}
