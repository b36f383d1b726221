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
    value.as_str().map_or_else(|| go_json(value), quote)
}

/// A value as Go's `encoding/json` writes it. So are typed strings, pointers and structs shown in messages.
pub(super) fn go_json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let escapes =
        [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    escapes.into_iter().fold(text, |text, (from, to)| text.replace(from, to))
}

/// A struct of Go without JSON tags, as `encoding/json` writes it: each field by Go's name, absent ones as null. The fields are
/// those of `object` that the table pairs with Go's names.
pub(super) fn go_struct(object: &Value, fields: &[(&str, &str)]) -> String {
    let written = fields.iter().map(|(name, field)| format!("{}:{}", quote(name), go_json(&object[*field])));
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

/// A label selector as `encoding/json` writes it: its labels come first.
pub(super) fn selector_json(selector: &Value) -> String {
    let given = ["matchLabels", "matchExpressions"].into_iter().filter(|name| !selector[*name].is_null());
    let written = given.map(|name| format!("{}:{}", quote(name), go_json(&selector[name])));
    if selector.is_null() { "null".to_owned() } else { format!("{{{}}}", written.collect::<Vec<_>>().join(",")) }
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

/// `field.Invalid` for a typed string or a pointer.
pub(super) fn invalid_json(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> FieldError {
    invalid_as(field, &go_json(&value.into()), detail)
}

/// `field.NotSupported` for a typed string or a pointer, as almost all of them are.
pub(super) fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> FieldError {
    unsupported(field, &go_json(&value.into()), supported)
}

/// `field.NotSupported` for a plain string.
pub(super) fn not_supported_text(field: impl Into<String>, value: &str, supported: &[&str]) -> FieldError {
    unsupported(field, &quote(value), supported)
}

fn unsupported(field: impl Into<String>, shown: &str, supported: &[&str]) -> FieldError {
    let quoted: Vec<String> = supported.iter().map(|name| quote(name)).collect();
    let detail = format!("supported values: {}", quoted.join(", "));
    error(FieldErrorKind::NotSupported, field, format!("Unsupported value: {shown}"), &detail)
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

/// Requires a text.
pub(super) fn require(errors: &mut Vec<FieldError>, object: &Value, parent: &str, name: &str) {
    if text(object, name).is_empty() {
        errors.push(required(format!("{parent}.{name}"), ""));
    }
}

/// Checks a field that has one of some values if it is there.
pub(super) fn one_of_if_set(
    errors: &mut Vec<FieldError>,
    object: &Value,
    parent: &str,
    name: &str,
    supported: &[&str],
) {
    if let Some(value) = object[name].as_str().filter(|value| !supported.contains(value)) {
        errors.push(not_supported(format!("{parent}.{name}"), value, supported));
    }
}

/// Rejects a number outside a range. Matches `InclusiveRangeError`.
pub(super) fn in_range(
    errors: &mut Vec<FieldError>,
    object: &Value,
    parent: &str,
    name: &str,
    range: std::ops::RangeInclusive<i64>,
) {
    if let Some(number) = number(object, name).filter(|number| !range.contains(number)) {
        let detail = format!("must be between {} and {}, inclusive", range.start(), range.end());
        errors.push(invalid(format!("{parent}.{name}"), number, &detail));
    }
}

/// Whether a field is true.
pub(super) fn is_true(object: &Value, name: &str) -> bool {
    at(object, name) == &Value::Bool(true)
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
