//! Annotations for the Pods of a Job, written into the text of the Job's `spec`.
//!
//! Guarantees: every byte of the text stays, but for the value of an annotation of that name, or a `null` in the place of an object
//! on the way to it. A text without such a place (`spec.template.metadata.annotations` is a list) stays as it is: the API
//! server says what is wrong with it. Linear in the text, of which no copy is made.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed as _, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::batch_v1::wire::Text;

/// Where the annotations of the Pods are in the spec of a Job.
const PATH: [&str; 3] = ["template", "metadata", "annotations"];

/// A part of a text, and what replaces it.
type Edit = (Range<usize>, String);

/// Appends the text of a spec, with these annotations for its Pods.
pub(super) fn write(out: &mut Vec<u8>, spec: &str, annotations: &[(&str, String)]) {
    let mut edits = Vec::new();
    if !annotations.is_empty() {
        collect(&mut edits, spec, spec, &PATH, annotations);
        edits.sort_unstable_by_key(|(part, _)| part.start);
    }
    let (spec, mut from) = (spec.as_bytes(), 0);
    for (part, text) in edits {
        out.extend_from_slice(&spec[from..part.start]);
        out.extend_from_slice(text.as_bytes());
        from = part.end;
    }
    out.extend_from_slice(&spec[from..]);
}

/// Adds the edits of `object`, a part of `spec` from which `path` leads to the annotations.
fn collect(edits: &mut Vec<Edit>, spec: &str, object: &str, path: &[&str], annotations: &[(&str, String)]) {
    let Some((name, rest)) = path.split_first() else {
        let names: Vec<&str> = annotations.iter().map(|(name, _)| *name).collect();
        let Some(found) = find(object, &names) else { return };
        let mut missing = Vec::new();
        for ((name, value), found) in annotations.iter().zip(found) {
            match found {
                Some(old) => edits.push((part(spec, old), quoted(value))),
                None => missing.push(member(name, &quoted(value))),
            }
        }
        if !missing.is_empty() {
            edits.push(insertion(spec, object, missing.join(",")));
        }
        return;
    };
    let Some(found) = find(object, &[name]) else { return };
    match found.first().copied().flatten() {
        Some("null") => edits.extend(found.iter().flatten().map(|null| (part(spec, null), nested(rest, annotations)))),
        Some(inner) => collect(edits, spec, inner, rest, annotations),
        None => edits.push(insertion(spec, object, member(name, &nested(rest, annotations)))),
    }
}

/// The annotations as an object, in an object for each step of `path`.
fn nested(path: &[&str], annotations: &[(&str, String)]) -> String {
    let inner = match path.split_first() {
        Some((name, rest)) => member(name, &nested(rest, annotations)),
        None => annotations.iter().map(|(name, value)| member(name, &quoted(value))).collect::<Vec<_>>().join(","),
    };
    format!("{{{inner}}}")
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", quoted(name))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Puts members at the begin of an object.
fn insertion(spec: &str, object: &str, members: String) -> Edit {
    let at = part(spec, object).start + 1;
    let is_empty = object[1..].trim_ascii_start().starts_with('}');
    (at..at, if is_empty { members } else { members + "," })
}

/// Which bytes of `spec` its part `inner` is.
fn part(spec: &str, inner: &str) -> Range<usize> {
    let start = inner.as_ptr().addr() - spec.as_ptr().addr();
    start..start + inner.len()
}

/// The texts of the values of an object under these names; `None` if `text` is no object.
fn find<'a>(text: &'a str, names: &[&str]) -> Option<Vec<Option<&'a str>>> {
    struct Find<'n>(&'n [&'n str]);
    impl<'de> serde::de::DeserializeSeed<'de> for Find<'_> {
        type Value = Vec<Option<&'de str>>;
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_map(self)
        }
    }
    impl<'de> Visitor<'de> for Find<'_> {
        type Value = Vec<Option<&'de str>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = vec![None; self.0.len()];
            while let Some(key) = map.next_key::<Text<'de>>()? {
                match self.0.iter().position(|name| **name == *key) {
                    Some(at) => found[at] = Some(map.next_value::<&'de RawValue>()?.get()),
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(found)
        }
    }
    Find(names).deserialize(&mut serde_json::Deserializer::from_str(text)).ok()
}

#[cfg(test)]
mod tests;
