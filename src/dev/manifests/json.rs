//! Reads a JSON value as kubectl and the API server do.
//!
//! Guarantees: a number without a fraction is an integer, however it is written, as in YAML. Of a key that occurs twice the last value
//! counts, and the first such key is told. An escape of half a surrogate pair is U+FFFD, as for Go. Pure.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use apimachinery::steps;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

use super::scalars::float;
use super::yaml::{DEEPEST, Reading, TWICE, YamlError, too_deep, twice};

/// The words of serde_json for a float that is too large.
const OUT_OF_RANGE: &str = "number out of range";

/// Reads a JSON text.
///
/// # Errors
/// The first fault.
pub(super) fn read(text: &str) -> Result<Reading, YamlError> {
    let text = whole_pairs(text);
    match value(&text, true) {
        Err(error) if error.problem.ends_with(TWICE) => {
            value(&text, false).map(|value| Reading { value, lost: vec![error] })
        }
        read => read.map(|value| Reading { value, lost: Vec::new() }),
    }
}

/// The text with the escape of U+FFFD, which is as long, in place of each that is half of a pair.
fn whole_pairs(text: &str) -> Cow<'_, str> {
    const HIGH: RangeInclusive<u16> = 0xd800..=0xdbff;
    const LOW: RangeInclusive<u16> = 0xdc00..=0xdfff;
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut whole, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        steps::add(1);
        at += found;
        let is_low = |at: usize| unit(at).is_some_and(|unit| LOW.contains(&unit));
        let is_half = match unit(at) {
            Some(unit) if HIGH.contains(&unit) && is_low(at + 6) => {
                at += 12;
                continue;
            }
            unit => unit.is_some_and(|unit| HIGH.contains(&unit) || LOW.contains(&unit)),
        };
        if is_half {
            whole += &text[kept..at];
            whole += "\\ufffd";
            kept = at + 6;
        }
        // What follows a backslash is not one that begins an escape.
        at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8);
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    whole += &text[kept..];
    Cow::Owned(whole)
}

/// The value, or an error for a key that occurs twice if `is_strict`.
fn value(text: &str, is_strict: bool) -> Result<Value, YamlError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Nested { depth: 0, is_strict }.deserialize(&mut deserializer).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let words = error.to_string();
        let words = words.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&words);
        // The text was found to be JSON before; what is left is what no value can have.
        let problem = match error.classify() {
            Category::Syntax if words != OUT_OF_RANGE => "an escape in a text is no character",
            _ => words,
        }
        .to_owned();
        YamlError { line: line.max(1), column: Some(column), problem }
    })
}

/// A value inside of so many lists and mappings.
#[derive(Clone, Copy)]
struct Nested {
    depth: usize,
    is_strict: bool,
}

impl Nested {
    fn inner<E: Error>(self) -> Result<Self, E> {
        if self.depth < DEEPEST { Ok(Self { depth: self.depth + 1, ..self }) } else { Err(E::custom(too_deep())) }
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(float(number).unwrap_or_default())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (inner, mut items) = (self.inner()?, Vec::new());
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (inner, mut map) = (self.inner()?, Map::new());
        while let Some(key) = access.next_key::<String>()? {
            if self.is_strict && map.contains_key(&key) {
                return Err(A::Error::custom(twice(&key)));
            }
            let value = access.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests;
