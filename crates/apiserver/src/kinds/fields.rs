//! Access to fields of JSON objects, and their validation errors.
//!
//! Guarantees: an error's text is what apimachinery's `field.Error.ErrorBody()` prints for the same kind of error and value.

use apimachinery::field::{FieldError, FieldErrorKind};
use apimachinery::names::{self, in_characters};
use apimachinery::quoting::quote;
use serde_json::{Map, Value};

/// The value at a dotted path of field names; null if absent.
pub(super) fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, name| &value[name])
}

/// The text at a dotted path; empty if absent.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// The number at a dotted path.
pub(super) fn number(object: &Value, path: &str) -> Option<i64> {
    at(object, path).as_i64()
}

/// The list at a dotted path; empty if absent.
pub(super) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path).as_array().map_or(&[], Vec::as_slice)
}

/// The object in a field, created if absent.
pub(super) fn child<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let field = &mut object[name];
    if !field.is_object() {
        *field = Value::Object(Map::new());
    }
    field
}

/// Sets a field that is absent or null.
pub(super) fn default(object: &mut Value, name: &str, value: impl Into<Value>) {
    if object[name].is_null() {
        object[name] = value.into();
    }
}

/// Copies the field `name` from `from` to `object`, or removes it.
pub(super) fn copy(object: &mut Value, from: &Value, name: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    match from.get(name) {
        Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
        None => drop(fields.remove(name)),
    }
}

fn error(kind: FieldErrorKind, field: impl Into<String>, head: String, detail: &str) -> FieldError {
    let body = if detail.is_empty() { head } else { format!("{head}: {detail}") };
    FieldError { kind, field: field.into(), body }
}

/// A value in a message: plain text quoted as Go's `%q` does, everything else as JSON.
fn print(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quote)
}

/// `field.Required`.
pub(super) fn required(field: impl Into<String>, detail: &str) -> FieldError {
    error(FieldErrorKind::Required, field, "Required value".to_owned(), detail)
}

/// `field.Invalid`.
pub(super) fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> FieldError {
    error(FieldErrorKind::Invalid, field, format!("Invalid value: {}", print(&value.into())), detail)
}

/// `field.Invalid` with `OmitValueType`.
pub(super) fn invalid_unshown(field: impl Into<String>, detail: &str) -> FieldError {
    error(FieldErrorKind::Invalid, field, "Invalid value".to_owned(), detail)
}

/// `field.Invalid` for a value with a given text: Go's structs have their own order of fields.
pub(super) fn invalid_as(field: impl Into<String>, shown: &str, detail: &str) -> FieldError {
    error(FieldErrorKind::Invalid, field, format!("Invalid value: {shown}"), detail)
}

/// `field.NotSupported`.
pub(super) fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> FieldError {
    let quoted: Vec<String> = supported.iter().map(|name| quote(name)).collect();
    let detail = format!("supported values: {}", quoted.join(", "));
    error(FieldErrorKind::NotSupported, field, format!("Unsupported value: {}", print(&value.into())), &detail)
}

/// `field.Forbidden`.
pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> FieldError {
    error(FieldErrorKind::Forbidden, field, "Forbidden".to_owned(), detail)
}

/// `field.Duplicate`.
pub(super) fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> FieldError {
    error(FieldErrorKind::Duplicate, field, format!("Duplicate value: {}", print(&value.into())), "")
}

/// `field.NotFound`.
pub(super) fn not_found(field: impl Into<String>, value: impl Into<Value>) -> FieldError {
    error(FieldErrorKind::NotFound, field, format!("Not found: {}", print(&value.into())), "")
}

/// `field.TooLong`.
pub(super) fn too_long(field: impl Into<String>, most: usize) -> FieldError {
    error(FieldErrorKind::TooLong, field, "Too long".to_owned(), &format!("may not be more than {most} bytes"))
}

/// One error for each message about a text.
pub(super) fn each_message(field: &str, value: &str, messages: Vec<String>) -> impl Iterator<Item = FieldError> {
    messages.into_iter().map(move |message| invalid(field, value, &message))
}

/// Rejects a negative number. Matches `ValidateNonnegativeField`.
pub(super) fn nonnegative(errors: &mut Vec<FieldError>, object: &Value, parent: &str, name: &str) {
    if let Some(number) = number(object, name).filter(|number| *number < 0) {
        errors.push(invalid(format!("{parent}.{name}"), number, "must be greater than or equal to 0"));
    }
}

/// Rejects a change of a field. Matches `ValidateImmutableField`.
pub(super) fn immutable(errors: &mut Vec<FieldError>, object: &Value, old: &Value, parent: &str, name: &str) {
    if object[name] != old[name] {
        errors.push(invalid(format!("{parent}.{name}"), object[name].clone(), "field is immutable"));
    }
}

/// `field.TooMany`.
pub(super) fn too_many(field: impl Into<String>, found: usize, most: usize) -> FieldError {
    error(FieldErrorKind::TooMany, field, format!("Too many: {found}"), &format!("must have at most {most} items"))
}

/// Matches apimachinery `util/validation`, `IsDNS1123Label`. It counts characters; the function of the same name in `content`
/// counts bytes.
pub(super) fn dns_label_errors(name: &str) -> Vec<String> {
    in_characters(names::dns_label_errors(name))
}

/// Matches apimachinery `util/validation`, `IsDNS1123Subdomain`.
pub(super) fn subdomain_errors(name: &str) -> Vec<String> {
    in_characters(names::subdomain_errors(name))
}
