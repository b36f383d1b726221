//! Decoding and encoding as Go does it, on JSON values.
//!
//! Guarantees: what comes out is what kube-apiserver would store and send: unknown fields are gone, times and quantities
//! have their canonical form, and zero values are left out or written exactly where Go's struct tags say so. A value of the
//! wrong type is an error in the words of Go's `encoding/json` (sigs.k8s.io/json). Where several fields are wrong or
//! unknown they are met in alphabetical order, which is also kubectl's.

use serde_json::{Map, Number, Value};

use super::types::{self, Field, Struct, Type};
use super::{quantity, time};

/// Normalises an object of the Go type `root`. Gives the paths of the unknown fields, which are dropped.
///
/// # Errors
/// The text of Go's decoding error, without the sentence that the server puts in front of it.
pub(super) fn normalize(object: &mut Value, root: &str) -> Result<Vec<String>, String> {
    let mut decoder = Decoder { unknown: Vec::new(), error: None };
    let taken = std::mem::take(object);
    let mut place = Place { struct_name: String::new(), go_path: String::new(), path: String::new() };
    *object = decoder.decode_struct(taken, types::lookup(root), &mut place)?;
    match decoder.error {
        Some(error) => Err(error),
        None => Ok(decoder.unknown),
    }
}

/// Where the decoder is, in Go's words and in ours.
#[derive(Clone)]
struct Place {
    struct_name: String,
    /// Fields and embedded structs, without indices.
    go_path: String,
    /// Fields with indices.
    path: String,
}

struct Decoder {
    unknown: Vec<String>,
    /// The first value of a wrong type; Go goes on after it.
    error: Option<String>,
}

impl Decoder {
    fn decode_struct(&mut self, value: Value, shape: &Struct, place: &mut Place) -> Result<Value, String> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => {
                self.mismatch(&other, &format!("v1.{}", shape.name), place);
                Map::new()
            }
        };
        for name in fields.keys().filter(|name| !shape.fields.contains_key(*name)) {
            self.unknown.push(join(&place.path, name));
        }
        let mut result = Map::new();
        for (name, field) in &shape.fields {
            let given = fields.remove(name).unwrap_or(Value::Null);
            let mut inner = Place {
                struct_name: shape.name.clone(),
                go_path: field.embedded.as_ref().map_or_else(|| place.go_path.clone(), |e| join(&place.go_path, e)),
                path: join(&place.path, name),
            };
            inner.go_path = join(&inner.go_path, name);
            if let Some(value) = self.decode_field(given, field, &mut inner)? {
                result.insert(name.clone(), value);
            }
        }
        Ok(Value::Object(result))
    }

    /// None where Go would leave the field out.
    fn decode_field(&mut self, given: Value, field: &Field, place: &mut Place) -> Result<Option<Value>, String> {
        if field.pointer && given.is_null() {
            return Ok((!field.omit_empty).then_some(Value::Null));
        }
        let given_null = given.is_null();
        let value = self.decode(given, &field.type_, place)?;
        let empty = match &value {
            // `omitempty` never leaves a struct out, and times are structs.
            Value::Null => given_null && !matches!(field.type_, Type::Time | Type::MicroTime),
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_f64() == Some(0.0) && field.type_ != Type::IntOrString,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty() && matches!(field.type_, Type::Map(_)),
        };
        let zero = empty || value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let left_out = !field.pointer && ((field.omit_empty && empty) || (field.omit_zero && zero));
        Ok((!left_out).then_some(value))
    }

    fn decode(&mut self, value: Value, type_: &Type, place: &mut Place) -> Result<Value, String> {
        Ok(match (type_, value) {
            (Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Time | Type::MicroTime, Value::Null) => {
                Value::Null
            }
            (Type::Struct(name), value) => self.decode_struct(value, types::lookup(name), place)?,
            (Type::Pointer(inner), value) => self.decode(value, inner, place)?,
            (Type::List(inner), Value::Array(items)) => self.decode_list(items, inner, place)?,
            (Type::Map(inner), Value::Object(entries)) => {
                let mut result = Map::new();
                for (key, value) in entries {
                    let value = self.decode(value, inner, place)?;
                    result.insert(key, value);
                }
                Value::Object(result)
            }
            (Type::String(_) | Type::Bytes, Value::Null) => Value::String(String::new()),
            (Type::String(_) | Type::Bytes | Type::IntOrString, value @ Value::String(_))
            | (Type::Bool, value @ Value::Bool(_))
            | (Type::Any, value @ (Value::Object(_) | Value::Null)) => value,
            (Type::Bool, Value::Null) => Value::Bool(false),
            (Type::Number(_) | Type::IntOrString, Value::Null) => Value::from(0),
            (Type::Number(name), Value::Number(number)) => self.decode_number(number, name, place),
            (Type::IntOrString, Value::Number(number)) => self.decode_number(number, "int32", place),
            (Type::Time, Value::String(text)) => Value::String(time::normalize(&text)?),
            (Type::MicroTime, Value::String(text)) => Value::String(time::normalize_micro(&text)?),
            (Type::Time | Type::MicroTime, other) => {
                self.mismatch(&other, "string", place);
                Value::Null
            }
            (Type::Quantity, Value::Null) => Value::String("0".to_owned()),
            (Type::Quantity, Value::String(text)) => Value::String(quantity::canonical(&text)?),
            (Type::Quantity, Value::Number(number)) => Value::String(quantity::canonical(&number.to_string())?),
            (Type::Quantity, _) => return Err(quantity::FORMAT_ERROR.to_owned()),
            (type_, other) => {
                let wanted = if *type_ == Type::IntOrString { "int32".to_owned() } else { type_.go_name() };
                self.mismatch(&other, &wanted, place);
                Value::Null
            }
        })
    }

    fn decode_list(&mut self, items: Vec<Value>, inner: &Type, place: &Place) -> Result<Value, String> {
        let mut result = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut place = Place { path: format!("{}[{index}]", place.path), ..place.clone() };
            result.push(self.decode(item, inner, &mut place)?);
        }
        Ok(Value::Array(result))
    }

    fn decode_number(&mut self, number: Number, name: &str, place: &Place) -> Value {
        let fits = match name {
            "int32" => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            "float64" => true,
            _ => number.is_i64(),
        };
        if !fits {
            self.fail(&format!("number {number}"), name, place);
            return Value::from(0);
        }
        Value::Number(number)
    }

    fn mismatch(&mut self, value: &Value, wanted: &str, place: &Place) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.fail(found, wanted, place);
    }

    fn fail(&mut self, found: &str, wanted: &str, place: &Place) {
        if self.error.is_none() {
            let at = if place.struct_name.is_empty() {
                "value".to_owned()
            } else {
                format!("struct field {}.{}", place.struct_name, place.go_path)
            };
            self.error = Some(format!("json: cannot unmarshal {found} into Go {at} of type {wanted}"));
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests;
