//! What server-side apply says of fields that the kind's schema does not have.
//!
//! Guarantees: pure; of the answers that upstream may give, always the same one. Upstream walks a map in Go's random
//! order and leaves it at the first undeclared field, so that the map's later fields are judged only by chance. Here a
//! map's undeclared fields come first: the first of them in alphabetical order is told, and nothing below that map.
//!
//! Matches structured-merge-diff `typed/validate.go` (`visitMapItems`) and `typed/helpers.go`
//! (`ValidationErrors.Error`).

use serde_json::Value;

use crate::apiserver::fields::{item_element, list_shape, path_text};
use crate::apiserver::registry::Resource;

/// The error for the `unknown` paths of `applied`, written as decoding gives them (`spec.containers[0].shape`).
pub fn message(resource: &Resource, applied: &Value, unknown: &[String]) -> String {
    let mut walk = Walk { resource, unknown, names: Vec::new(), path: Vec::new(), found: Vec::new() };
    walk.visit(applied, "");
    match &walk.found[..] {
        [] => format!(".{}: field not declared in schema", unknown.join(", .")),
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    }
}

struct Walk<'a> {
    resource: &'a Resource,
    unknown: &'a [String],
    /// Field names from the root, without items.
    names: Vec<&'a str>,
    /// Elements as managed fields have them.
    path: Vec<String>,
    found: Vec<String>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, value: &'a Value, decoded: &str) {
        match value {
            Value::Object(map) => {
                let below = |name: &str| if decoded.is_empty() { name.to_owned() } else { format!("{decoded}.{name}") };
                let undeclared = map.keys().filter(|name| self.unknown.contains(&below(name)));
                if let Some(name) = undeclared.min() {
                    self.found.push(format!("{}.{name}: field not declared in schema", path_text(&self.path)));
                    return;
                }
                for (name, child) in map {
                    self.names.push(name);
                    self.path.push(format!("f:{name}"));
                    self.visit(child, &below(name));
                    self.path.pop();
                    self.names.pop();
                }
            }
            Value::Array(items) => {
                let shape = list_shape(self.resource, &self.names);
                for (index, item) in items.iter().enumerate() {
                    self.path.push(item_element(&shape, item).unwrap_or_else(|| format!("i:{index}")));
                    self.visit(item, &format!("{decoded}[{index}]"));
                    self.path.pop();
                }
            }
            _ => {}
        }
    }
}
