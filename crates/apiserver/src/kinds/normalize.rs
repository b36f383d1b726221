//! Go's JSON decoding and encoding, on JSON values.
//!
//! Guarantees: the result is what kube-apiserver would store and send. Unknown fields are removed, times and quantities have
//! their canonical form, and zero values are omitted or written as Go's struct tags require. A value of the wrong type is an
//! error in the words of Go's `encoding/json` (sigs.k8s.io/json). Several wrong or unknown fields are reported in alphabetical
//! order, which is also kubectl's.

use serde_json::{Map, Number, Value};

use super::types::{self, Field, Struct, Type};
use super::{quantity, time};
use crate::registry::WrongType;

/// Normalizes an object of the Go type `root`. Returns the paths of the unknown fields, which are removed.
///
/// # Errors
/// The text of Go's decoding error, without the server's prefix.
pub(super) fn normalize(object: &mut Value, root: &str) -> Result<Vec<String>, String> {
    let mut decoder = Decoder::default();
    decoder.decode_struct(object, types::lookup(root), &Place::Root)?;
    match decoder.wrong.pop() {
        Some(first) => Err(first.message),
        None => Ok(decoder.unknown),
    }
}

/// Every value of an object of the Go type `root` that cannot be decoded, in the order in which they are decoded.
pub(super) fn wrong_types(object: &Value, root: &str) -> Vec<WrongType> {
    let mut decoder = Decoder { reports_all: true, ..Decoder::default() };
    // Nothing ends a decoder that reports all.
    let _ = decoder.decode_struct(&mut object.clone(), types::lookup(root), &Place::Root);
    decoder.wrong
}

/// The decoder's position. It is formatted only for messages.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Field { parent: &'a Place<'a>, shape: &'a Struct, field: &'a Field, name: &'a str },
    Item { parent: &'a Place<'a>, index: usize },
    Entry { parent: &'a Place<'a>, key: &'a str },
}

impl Place<'_> {
    /// The fields with indices and keys.
    fn path(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field { parent, name, .. } => join(&parent.path(), name),
            Self::Item { parent, index } => format!("{}[{index}]", parent.path()),
            Self::Entry { parent, key } => format!("{}[{key}]", parent.path()),
        }
    }

    /// Fields and embedded structs, without indices.
    fn go_path(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field { parent, field, name, .. } => {
                let outer = parent.go_path();
                join(&field.embedded.as_ref().map_or_else(|| outer.clone(), |e| join(&outer, e)), name)
            }
            Self::Item { parent, .. } | Self::Entry { parent, .. } => parent.go_path(),
        }
    }

    /// Whether upstream refuses this field even if it is an empty list or map: it may not be set there at all. Go has such a value,
    /// although it does not write it.
    fn is_refused_if_given(&self) -> bool {
        let Self::Field { parent, shape, name, .. } = self else { return false };
        let parent_is = |of: &str, field: &str| matches!(parent, Self::Field { shape, name, .. } if shape.name == of && *name == field);
        match shape.name.as_str() {
            "ResourceRequirements" if parent_is("EphemeralContainer", "resources") => true,
            "ResourceRequirements" => *name == "claims" && parent_is("PodSpec", "resources"),
            "EphemeralContainer" => matches!(*name, "ports" | "resizePolicy" | "restartPolicyRules"),
            "ObjectMeta" => {
                matches!(*name, "ownerReferences" | "finalizers" | "managedFields")
                    && parent_is("PersistentVolumeClaimTemplate", "metadata")
            }
            _ => false,
        }
    }

    /// The struct of the field.
    fn struct_name(&self) -> &str {
        match self {
            Self::Root => "",
            Self::Field { shape, .. } => &shape.name,
            Self::Item { parent, .. } | Self::Entry { parent, .. } => parent.struct_name(),
        }
    }
}

#[derive(Default)]
struct Decoder {
    unknown: Vec<String>,
    /// The first value of a wrong type, after which Go continues, or all.
    wrong: Vec<WrongType>,
    /// Whether all are reported, and decoding continues where Go stops.
    reports_all: bool,
}

/// The values that Go writes for the absent fields of a struct.
fn absent(shape: &'static Struct) -> &'static [(String, Value)] {
    shape.absent.get_or_init(|| {
        let mut decoder = Decoder::default();
        let mut write = |(name, field): (&String, &'static Field)| {
            let mut value = Value::Null;
            let written = decoder.decode_field(&mut value, field, &Place::Root).unwrap_or_default();
            written.then(|| (name.clone(), value))
        };
        shape.fields.iter().filter_map(&mut write).collect()
    })
}

impl Decoder {
    fn decode_struct(&mut self, value: &mut Value, shape: &'static Struct, place: &Place) -> Result<(), String> {
        if !value.is_object() {
            if !value.is_null() {
                self.mismatch(value, &shape.go_name, place);
            }
            *value = Value::Object(Map::new());
        }
        let Some(fields) = value.as_object_mut() else { return Ok(()) };
        // The unknown fields of a struct are reported before those of nested structs.
        let (mut failure, mut unknown, told) = (None, Vec::new(), self.unknown.len());
        fields.retain(|name, value| {
            let Some(field) = shape.fields.get(name) else {
                unknown.push(join(&place.path(), name));
                return false;
            };
            if failure.is_some() {
                return true;
            }
            let inner = Place::Field { parent: place, shape, field, name };
            self.decode_field(value, field, &inner).unwrap_or_else(|error| {
                failure = Some(error);
                true
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.unknown.splice(told..told, unknown);
        for (name, value) in absent(shape) {
            if !fields.contains_key(name) {
                fields.insert(name.clone(), value.clone());
            }
        }
        Ok(())
    }

    /// Returns false if Go would omit the field.
    fn decode_field(&mut self, value: &mut Value, field: &'static Field, place: &Place) -> Result<bool, String> {
        let given_null = value.is_null();
        if field.pointer && given_null {
            return Ok(!field.omit_empty);
        }
        self.decode(value, &field.type_, place)?;
        let empty = match &*value {
            // `omitempty` never omits a struct, and times are structs.
            Value::Null => given_null && !matches!(field.type_, Type::Time | Type::MicroTime),
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_f64() == Some(0.0) && field.type_ != Type::IntOrString,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty() && matches!(field.type_, Type::Map(_)),
        };
        let zero = empty || value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let left_out = !field.pointer && ((field.omit_empty && empty) || (field.omit_zero && zero));
        Ok(!left_out || (is_collection(value) && place.is_refused_if_given()))
    }

    fn decode(&mut self, value: &mut Value, type_: &'static Type, place: &Place) -> Result<(), String> {
        match (type_, &mut *value) {
            (Type::Struct(name), value) => self.decode_struct(value, types::lookup(name), place)?,
            (Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Time | Type::MicroTime, Value::Null)
            | (Type::String(_) | Type::Bytes | Type::IntOrString, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Any, _) => {}
            (Type::Pointer(inner), value) => self.decode(value, inner, place)?,
            (Type::List(inner), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.decode(item, inner, &Place::Item { parent: place, index })?;
                }
            }
            (Type::Map(inner), Value::Object(entries)) => {
                for (key, value) in entries.iter_mut() {
                    let given = (**inner == Type::Quantity).then(|| quantity_text(value)).flatten();
                    self.decode(value, inner, &Place::Entry { parent: place, key })?;
                    // The defaults round the amounts of a list of resources.
                    if **inner == Type::Quantity {
                        let rounded = given.and_then(|text| quantity::canonical(&text).ok());
                        *value = rounded.map_or_else(|| value.take(), Value::from);
                    }
                }
            }
            (Type::String(_) | Type::Bytes, Value::Null) => *value = Value::String(String::new()),
            (Type::Bool, Value::Null) => *value = Value::Bool(false),
            (Type::Number(_) | Type::IntOrString, Value::Null) => *value = Value::from(0),
            (Type::Number(name), Value::Number(number)) if !self.fits(number, name, place) => *value = Value::from(0),
            (Type::IntOrString, Value::Number(number)) if !is_int32(number) => {
                self.stop(&format!("number {}", shown(number)), "int32", place)?;
                *value = Value::from(0);
            }
            (Type::IntOrString, Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                self.stop(kind_of(value), "int32", place)?;
                *value = Value::from(0);
            }
            (Type::Number(_) | Type::IntOrString, Value::Number(_)) => {}
            (Type::Time, Value::String(text)) => *text = self.parsed(time::normalize(text), place)?,
            (Type::MicroTime, Value::String(text)) => *text = self.parsed(time::normalize_micro(text), place)?,
            (Type::Quantity, Value::Null) => *value = Value::String("0".to_owned()),
            (Type::Quantity, value) => {
                let exact = quantity_text(value).map(|text| quantity::exact(&text));
                let exact = exact.unwrap_or_else(|| Err(quantity::FORMAT_ERROR.to_owned()));
                *value = Value::String(self.parsed(exact, place)?);
            }
            (type_, other) => {
                let wanted = match type_ {
                    Type::Time | Type::MicroTime => "string".to_owned(),
                    type_ => type_.go_name(),
                };
                self.mismatch(other, &wanted, place);
                *value = Value::Null;
            }
        }
        Ok(())
    }

    fn fits(&mut self, number: &Number, name: &str, place: &Place) -> bool {
        let fits = match name {
            "int32" => is_int32(number),
            "float64" => true,
            _ => number.is_i64(),
        };
        if !fits {
            self.fail(&format!("number {}", shown(number)), name, place);
        }
        fits
    }

    fn mismatch(&mut self, value: &Value, wanted: &str, place: &Place) {
        self.fail(kind_of(value), wanted, place);
    }

    /// Fails for a type that decodes itself, at whose errors Go stops.
    fn stop(&mut self, found: &str, wanted: &str, place: &Place) -> Result<(), String> {
        if self.reports_all {
            self.fail(found, wanted, place);
            return Ok(());
        }
        Err(message(found, wanted, place))
    }

    fn fail(&mut self, found: &str, wanted: &str, place: &Place) {
        if self.reports_all || self.wrong.is_empty() {
            self.wrong.push(WrongType { field: place.path(), message: message(found, wanted, place) });
        }
    }

    /// A text in its canonical form. Go stops at one that cannot be read.
    fn parsed(&mut self, canonical: Result<String, String>, place: &Place) -> Result<String, String> {
        canonical.or_else(|message| {
            if !self.reports_all {
                return Err(message);
            }
            self.wrong.push(WrongType { field: place.path(), message });
            Ok(String::new())
        })
    }
}

/// The text of a quantity, which may be a number.
fn quantity_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(shown(number)),
        _ => None,
    }
}

/// Whether it is an empty list or map. Null is none.
fn is_collection(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn is_int32(number: &Number) -> bool {
    number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

/// A number as Go, and so kubectl, writes it: with an exponent only if it is very large or very small. A whole number that is written as
/// a fraction stays one: only other clients send it.
fn shown(number: &Number) -> String {
    const WHOLE: f64 = 9_223_372_036_854_775_808.0;
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    match float.abs() {
        size if size < WHOLE && float.fract() == 0.0 => number.to_string(),
        size if (1e-6..1e21).contains(&size) => float.to_string(),
        size if size < 1.0 => format!("{float:e}"),
        _ => format!("{float:e}").replace('e', "e+"),
    }
}

/// The kind of a value, in Go's words.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn message(found: &str, wanted: &str, place: &Place) -> String {
    let at = match place.struct_name() {
        "" => "value".to_owned(),
        name => format!("struct field {name}.{}", place.go_path()),
    };
    format!("json: cannot unmarshal {found} into Go {at} of type {wanted}")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests;
