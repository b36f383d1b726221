//! Values of JSON as CEL sees them.
//!
//! Matches k8s.io/apiserver `pkg/cel/common/values.go` and `pkg/cel/escaping.go`.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta};
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;

use super::{Form, RESERVED, Shape};

/// The value of an object or a part of it.
pub fn of_json(value: &Value, shape: Option<&dyn Shape>) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) if shape.is_none_or(|shape| shape.form() != Form::Double) => Cel::Int(integer),
            _ => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => of_text(text, shape.map_or(Form::Json, Shape::form)),
        Value::Array(items) => {
            let shape = shape.and_then(Shape::items);
            Cel::List(Arc::new(items.iter().map(|item| of_json(item, shape)).collect()))
        }
        Value::Object(members) => {
            let is_escaped = shape.is_some_and(|shape| !shape.is_map());
            let entry = |(name, value): (&String, &Value)| {
                let key = if is_escaped { escape(name) } else { name.clone() };
                let value = of_json(value, shape.and_then(|shape| shape.member(name)));
                (Key::String(Arc::new(key)), value)
            };
            Cel::Map(Map { map: Arc::new(members.iter().map(entry).collect::<HashMap<_, _>>()) })
        }
    }
}

fn of_text(text: &str, form: Form) -> Cel {
    let value = match form {
        Form::Timestamp => DateTime::parse_from_rfc3339(text).ok().map(Cel::Timestamp),
        Form::Bytes => STANDARD.decode(text).ok().map(|bytes| Cel::Bytes(Arc::new(bytes))),
        Form::Duration => duration(text).map(Cel::Duration),
        Form::Json | Form::Double => None,
    };
    value.unwrap_or_else(|| Cel::String(Arc::new(text.to_owned())))
}

/// A duration such as `1h30m`, in whole units.
fn duration(text: &str) -> Option<TimeDelta> {
    let (mut total, mut rest) = (TimeDelta::zero(), text);
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..unit].parse().ok()?;
        let next = rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| unit + at);
        let part = match &rest[unit..next] {
            "h" => TimeDelta::try_hours(number),
            "m" => TimeDelta::try_minutes(number),
            "s" => TimeDelta::try_seconds(number),
            "ms" => TimeDelta::try_milliseconds(number),
            _ => None,
        };
        total = total.checked_add(&part?)?;
        rest = &rest[next..];
    }
    Some(total)
}

/// The name of a member as expressions write it.
pub fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

#[cfg(test)]
mod tests;
