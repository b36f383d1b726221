//! Validation of an applied configuration against the kind's schema: undeclared fields, and items of keyed lists and sets that
//! are duplicates or have no key.
//!
//! Guarantees: pure. Of the answers that upstream may give, it always gives the same one. Upstream walks a map in Go's random
//! order and leaves it at the first undeclared field, so it reaches the map's later fields only by chance. Here a map's
//! undeclared fields come first: only the first in alphabetical order is reported, and nothing below that map.
//!
//! Matches structured-merge-diff `typed/validate.go` (`visitListItems`, `visitMapItems`) and `typed/helpers.go`
//! (`ValidationErrors.Error`, `listItemToPathElement`).

use std::collections::{BTreeSet, HashSet};

use apimachinery::steps;
use serde_json::Value;

use crate::fields::{ListShape, item_element, list_shape, path_text};
use crate::registry::Resource;

/// The error for `applied`; `None` if it is valid. `unknown` are its undeclared fields as decoding returns them
/// (`spec.containers[0].shape`).
pub fn problems(resource: &Resource, applied: &Value, unknown: &[String]) -> Option<String> {
    let unknown_fields = unknown.iter().map(String::as_str).collect();
    let mut walk = Walk { resource, unknown: unknown_fields, names: Vec::new(), path: Vec::new(), found: Vec::new() };
    walk.visit(applied, "");
    match &walk.found[..] {
        [] => unknown.first().map(|path| format!(".{path}: {UNDECLARED}")),
        [one] => Some(one.clone()),
        several => Some(format!("errors:\n  {}", several.join("\n  "))),
    }
}

const UNDECLARED: &str = "field not declared in schema";

struct Walk<'a> {
    resource: &'a Resource,
    unknown: HashSet<&'a str>,
    /// Field names from the root, without list items.
    names: Vec<&'a str>,
    /// Path elements as in managed fields.
    path: Vec<String>,
    found: Vec<String>,
}

impl<'a> Walk<'a> {
    fn tell(&mut self, what: &str) {
        self.found.push(format!("{}: {what}", path_text(&self.path)));
    }

    fn visit(&mut self, value: &'a Value, decoded: &str) {
        steps::add(1);
        match value {
            Value::Object(map) => {
                // Without unknown fields, no path is looked up.
                let is_known = self.unknown.is_empty();
                let below = |name: &str| match decoded {
                    _ if is_known => String::new(),
                    "" => name.to_owned(),
                    decoded => format!("{decoded}.{name}"),
                };
                let undeclared = map.keys().filter(|name| self.unknown.contains(&*below(name)));
                if let Some(name) = undeclared.min() {
                    self.path.push(format!("f:{name}"));
                    self.tell(UNDECLARED);
                    self.path.pop();
                    return;
                }
                for (name, child) in map {
                    let decoded = below(name);
                    self.names.push(name);
                    self.path.push(format!("f:{name}"));
                    self.visit(child, &decoded);
                    self.path.pop();
                    self.names.pop();
                }
            }
            Value::Array(items) => self.visit_list(items, decoded),
            _ => {}
        }
    }

    fn visit_list(&mut self, items: &'a [Value], decoded: &str) {
        let shape = list_shape(self.resource, &self.names);
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match keyless(&shape, item) {
                Some(why) => return self.tell(&format!("element {index}: {why}")),
                None => item_element(&shape, item).unwrap_or_else(|| format!("i:{index}")),
            };
            if !seen.insert(element.clone()) {
                self.tell(&format!("duplicate entries for key {}", path_text(std::slice::from_ref(&element))));
            }
            self.path.push(element);
            self.visit(item, &format!("{decoded}[{index}]"));
            self.path.pop();
        }
    }
}

/// Why a list item has no path element.
fn keyless(shape: &ListShape, item: &Value) -> Option<&'static str> {
    match (shape, item) {
        (ListShape::Set, Value::Null) => Some("associative list without keys has an element that's an explicit null"),
        (ListShape::Set, Value::Object(_)) => Some("associative list without keys has an element that's a map type"),
        (ListShape::Set, Value::Array(_)) => Some("not supported: associative list with lists as elements"),
        (ListShape::Keyed(_), Value::Null) => Some("associative list with keys may not have a null element"),
        (ListShape::Atomic | ListShape::Set, _) | (ListShape::Keyed(_), Value::Object(_)) => None,
        (ListShape::Keyed(_), _) => Some("associative list with keys may not have non-map elements"),
    }
}
