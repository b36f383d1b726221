//! Decoding of Kubernetes' protobuf encoding, which typed Go clients send (among them kubectl's `create`).
//!
//! Guarantees: an object of a served kind, or DeleteOptions, becomes the JSON that the same client would have sent. Only the
//! difference between empty and missing fields is lost; `normalize` removes it anyway. Unknown fields are skipped, as protobuf
//! requires. Malformed input is an error and never a panic. Matches apimachinery
//! `runtime/serializer/protobuf` (the envelope) and the `generated.proto` files of k8s.io/api.

use apimachinery::quoting::quote;
use base64::Engine;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

use super::types::{self, Struct, Type};

const MAGIC: &[u8] = b"k8s\0";
/// A limit above the nesting of every Kubernetes type.
const MOST_DEPTH: usize = 64;

/// Whether a body has the envelope's prefix.
pub fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Decodes an envelope to the JSON object in it, apiVersion and kind included.
///
/// # Errors
/// When the body is not an envelope, is truncated, or holds an unknown kind.
pub fn decode(body: &[u8]) -> Result<Value, String> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in fields(envelope)? {
        match (field.number, field.value) {
            (1, Wire::Bytes(meta)) => {
                for field in fields(meta)? {
                    match field.number {
                        1 => api_version = field.text()?,
                        2 => kind = field.text()?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let root = root(&api_version, &kind).ok_or_else(|| {
        let (kind, version) = (quote(&kind), quote(&api_version));
        format!("no kind {kind} is registered for version {version} in scheme \"embedded API server\"")
    })?;
    let mut object = decode_struct(raw, types::lookup(&root), 0)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// The Go type of a kind: `batch/v1` and `CronJob` are `batch.v1.CronJob`.
fn root(api_version: &str, kind: &str) -> Option<String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let package = types::package(group);
    // DeleteOptions are sent under the group of the deleted object.
    let name =
        if kind == "DeleteOptions" { "meta.v1.DeleteOptions".into() } else { format!("{package}.{version}.{kind}") };
    types::exists(&name).then_some(name)
}

/// One field on the wire.
struct WireField<'a> {
    number: u64,
    value: Wire<'a>,
}

enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A number of fixed width: a `double`, or one that no served type has.
    Fixed(&'a [u8]),
}

impl WireField<'_> {
    fn text(&self) -> Result<String, String> {
        match self.value {
            Wire::Bytes(bytes) => text(bytes),
            _ => Err(wrong_type(self.number)),
        }
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "proto: invalid UTF-8 string".to_owned())
}

fn wrong_type(number: u64) -> String {
    format!("proto: wrong wireType for field {number}")
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("unexpected EOF")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("proto: integer overflow".to_owned())
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], String> {
    let length = usize::try_from(length).map_err(|_| "unexpected EOF")?;
    let (head, rest) = bytes.split_at_checked(length).ok_or("unexpected EOF")?;
    *bytes = rest;
    Ok(head)
}

/// All fields of a message in wire order.
fn fields(mut bytes: &[u8]) -> Result<Vec<WireField<'_>>, String> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Wire::Varint(varint(&mut bytes)?),
            1 => Wire::Fixed(take(&mut bytes, 8)?),
            2 => {
                let length = varint(&mut bytes)?;
                Wire::Bytes(take(&mut bytes, length)?)
            }
            5 => Wire::Fixed(take(&mut bytes, 4)?),
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        found.push(WireField { number: tag >> 3, value });
    }
    Ok(found)
}

fn decode_struct(bytes: &[u8], shape: &Struct, depth: usize) -> Result<Value, String> {
    let mut object = Map::new();
    fill(bytes, shape, "", &mut object, depth)?;
    Ok(Value::Object(object))
}

/// Decodes a message into `object`. Embedded structs are nested messages on the wire; field numbers with a prefix identify
/// them.
fn fill(
    bytes: &[u8],
    shape: &Struct,
    prefix: &str,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    if depth > MOST_DEPTH {
        return Err("proto: nested too deeply".to_owned());
    }
    for wire in fields(bytes)? {
        let number = format!("{prefix}{}", wire.number);
        if let Some((name, field)) = shape.fields.iter().find(|(_, field)| field.number == number) {
            add(object, name, &field.type_, &wire, depth)?;
            // Go's encoder writes every field that is no pointer; a client that sends JSON leaves the empty ones out.
            if field.omit_empty && !field.pointer && object.get(name).is_some_and(is_empty) {
                object.remove(name);
            }
        } else if let Wire::Bytes(inner) = wire.value {
            let prefix = format!("{number}.");
            if shape.fields.values().any(|field| field.number.starts_with(&prefix)) {
                fill(inner, shape, &prefix, object, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// Whether Go's `omitempty` leaves a scalar out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Adds one occurrence of a field: lists and maps are extended, other values replaced.
fn add(
    object: &mut Map<String, Value>,
    name: &str,
    type_: &Type,
    wire: &WireField<'_>,
    depth: usize,
) -> Result<(), String> {
    match type_ {
        Type::List(element) => {
            let item = decode_value(element, wire, depth)?;
            match object.entry(name).or_insert_with(|| json!([])) {
                Value::Array(items) => items.push(item),
                other => *other = json!([item]),
            }
        }
        Type::Map(element) => {
            let Wire::Bytes(entry) = wire.value else { return Err(wrong_type(wire.number)) };
            let (mut key, mut value) = (String::new(), Value::Null);
            for field in fields(entry)? {
                match field.number {
                    1 => key = field.text()?,
                    2 => value = decode_value(element, &field, depth)?,
                    _ => {}
                }
            }
            if let Value::Object(entries) = object.entry(name).or_insert_with(|| json!({})) {
                entries.insert(key, value);
            }
        }
        _ => drop(object.insert(name.to_owned(), decode_value(type_, wire, depth)?)),
    }
    Ok(())
}

fn decode_value(type_: &Type, wire: &WireField<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (type_, &wire.value) {
        (Type::Pointer(inner), _) => decode_value(inner, wire, depth)?,
        (Type::Bool, Wire::Varint(value)) => Value::Bool(*value != 0),
        // Negative numbers are written in two's complement with 64 bits.
        (Type::Number(_), Wire::Varint(value)) => Value::from(value.cast_signed()),
        (Type::Number(_), Wire::Fixed(bytes)) => double(bytes).ok_or_else(|| wrong_type(wire.number))?,
        (Type::String(_), Wire::Bytes(bytes)) => Value::String(text(bytes)?),
        (Type::Bytes, Wire::Bytes(bytes)) => base64::engine::general_purpose::STANDARD.encode(bytes).into(),
        (Type::Struct(name), Wire::Bytes(bytes)) => {
            alternative(name, decode_struct(bytes, types::lookup(name), depth + 1)?)
        }
        (Type::Time, Wire::Bytes(bytes)) => decode_time(bytes, SecondsFormat::Secs)?,
        (Type::MicroTime, Wire::Bytes(bytes)) => decode_time(bytes, SecondsFormat::Micros)?,
        (Type::Quantity, Wire::Bytes(bytes)) => string_field(bytes)?.into(),
        (Type::Any, Wire::Bytes(bytes)) => {
            serde_json::from_str(&string_field(bytes)?).map_err(|error| format!("fieldsV1: {error}"))?
        }
        (Type::IntOrString, Wire::Bytes(bytes)) => decode_int_or_string(bytes)?,
        // A list inside a map is a message that holds the items.
        (Type::List(element), Wire::Bytes(bytes)) => {
            let items = fields(bytes)?;
            items.iter().map(|item| decode_value(element, item, depth + 1)).collect::<Result<Value, String>>()?
        }
        _ => return Err(wrong_type(wire.number)),
    })
}

/// The JSON form of a schema or something else in its place, which on the wire is a message of all alternatives. Other structs
/// stay as they are. Matches `MarshalJSON` of `JSONSchemaPropsOrBool`, `JSONSchemaPropsOrArray` and
/// `JSONSchemaPropsOrStringArray`.
fn alternative(name: &str, mut message: Value) -> Value {
    let other = match name.strip_prefix("apiextensions.v1.JSONSchemaPropsOr") {
        Some("Bool") => "allows",
        Some("Array") => "jSONSchemas",
        Some("StringArray") => "property",
        _ => return message,
    };
    match (message["schema"].take(), message[other].take()) {
        (Value::Null, Value::Null) if other == "allows" => Value::Bool(false),
        // A list counts if it has items, and then before the schema.
        (schema, Value::Null) | (schema @ Value::Object(_), Value::Bool(_)) => schema,
        (_, other) => other,
    }
}

/// A whole number is written without a fraction, as Go does.
fn double(bytes: &[u8]) -> Option<Value> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    #[allow(clippy::cast_possible_truncation, reason = "checked")]
    let whole = (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
    Some(whole.map_or_else(|| number.into(), Value::from))
}

/// The first field of a message that holds a string.
fn string_field(bytes: &[u8]) -> Result<String, String> {
    fields(bytes)?.iter().find(|field| field.number == 1).map_or(Ok(String::new()), WireField::text)
}

/// A timestamp. The zero time is an empty message, and null in JSON.
fn decode_time(bytes: &[u8], precision: SecondsFormat) -> Result<Value, String> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in fields(bytes)? {
        match (field.number, field.value) {
            (1, Wire::Varint(value)) => seconds = value.cast_signed(),
            (2, Wire::Varint(value)) => nanos = u32::try_from(value).unwrap_or(0),
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(Value::Null);
    }
    let time = DateTime::from_timestamp(seconds, nanos).ok_or("timestamp out of range")?;
    Ok(time.to_rfc3339_opts(precision, true).into())
}

fn decode_int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    for field in fields(bytes)? {
        match (field.number, &field.value) {
            (1, Wire::Varint(value)) => is_text = *value != 0,
            (2, Wire::Varint(value)) => number = value.cast_signed(),
            (3, _) => string = field.text()?,
            _ => {}
        }
    }
    Ok(if is_text { string.into() } else { number.into() })
}

#[cfg(test)]
mod tests;
