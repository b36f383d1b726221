//! Structural schemas of CustomResourceDefinitions: pruning, defaulting and validation.
//!
//! Guarantees: a schema is applied completely or not at all: an unsupported keyword makes it an error. Errors have the field,
//! the reason and the words of the real server. Several invalid fields are reported in alphabetical order. Pure.
//!
//! Matches k8s.io/apiextensions-apiserver `pkg/apiserver/schema` (`pruning`, `defaulting`, `listtype`, `cel`) and
//! `pkg/apiserver/validation`, and k8s.io/kube-openapi `pkg/validation/validate`. Values that an update does not change are not
//! validated again (ratcheting), except the items of a changed list.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::field::{FieldError, FieldErrorKind};
use regex::Regex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::super::fields::{duplicate, invalid, not_supported, required, too_long};

/// The error that the real server adds if it stopped before the rules.
const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing \
                         errors to complete validation";

/// The field of an error that concerns no field.
const NOWHERE: &str = "<nil>";

/// The schema of one value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Schema {
    r#type: Type,
    #[serde(default, rename = "description")]
    _description: IgnoredAny,
    #[serde(default)]
    format: String,
    #[serde(default)]
    properties: BTreeMap<String, Schema>,
    additional_properties: Option<Box<Schema>>,
    items: Option<Box<Schema>>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default)]
    r#enum: Vec<Value>,
    minimum: Option<f64>,
    min_items: Option<usize>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    default: Option<Value>,
    #[serde(default, rename = "x-kubernetes-preserve-unknown-fields")]
    keeps_unknown: bool,
    #[serde(default, rename = "x-kubernetes-list-map-keys")]
    map_keys: Vec<String>,
    /// Field ownership; it has no effect on validation.
    #[serde(default, rename = "x-kubernetes-list-type")]
    _list_type: IgnoredAny,
    #[serde(default, rename = "x-kubernetes-map-type")]
    _map_type: IgnoredAny,
    #[serde(default, rename = "x-kubernetes-validations")]
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// A CEL rule, as far as it is supported.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    rule: Matches,
    message: String,
}

/// The one supported form of rule: `self.matches(r'…')`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Matches(Regex);

impl TryFrom<String> for Matches {
    type Error = String;

    fn try_from(rule: String) -> Result<Self, String> {
        let pattern = rule.strip_prefix("self.matches(r'").and_then(|rest| rest.strip_suffix("')"));
        let pattern = pattern.filter(|pattern| !pattern.contains('\''));
        let pattern = pattern.ok_or_else(|| format!("the rule {rule} is not of the form self.matches(r'…')"))?;
        Regex::new(pattern).map(Self).map_err(|error| format!("the rule {rule}: {error}"))
    }
}

/// The path of the member `name` of an object at `path`.
fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

impl Schema {
    /// The schema of a member.
    pub(super) fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name)
    }

    fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional_properties.as_deref())
    }

    /// Removes unknown fields unless the schema preserves them; returns their paths.
    pub(super) fn prune(&self, value: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        self.prune_at(value, "", &mut unknown);
        unknown
    }

    fn prune_at(&self, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.retain(|name, value| {
                let path = member(path, name);
                match self.member(name) {
                    Some(schema) => schema.prune_at(value, &path, unknown),
                    None if self.keeps_unknown => {}
                    None => {
                        unknown.push(path);
                        return false;
                    }
                }
                true
            }),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    schema.prune_at(item, &format!("{path}[{index}]"), unknown);
                }
            }
            _ => {}
        }
    }

    /// Sets the defaults of missing fields, and removes nulls without a default.
    pub(super) fn fill(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|name, value| !(value.is_null() && self.properties.contains_key(name)));
                for (name, schema) in &self.properties {
                    if let Some(default) = schema.default.as_ref().filter(|_| !map.contains_key(name)) {
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (name, value) in map {
                    if let Some(schema) = self.member(name) {
                        schema.fill(value);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    schema.fill(item);
                }
            }
            _ => {}
        }
    }

    /// All errors of `value`, which replaces `old`.
    pub(super) fn errors(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.judge(value, old, "", &mut errors);
        self.find_duplicates(value, old, "", &mut errors);
        if self.has_rules() {
            if errors.iter().any(|error| blocks_rules(error.kind)) {
                errors.push(invalid(NOWHERE, Value::Null, UNCHECKED));
            } else {
                self.apply_rules(value, old, "", &mut errors);
            }
        }
        errors
    }

    fn judge(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        if old == Some(value) {
            return;
        }
        errors.extend(self.type_error(value, path));
        match value {
            Value::String(text) => errors.extend(self.text_error(text, path)),
            Value::Number(_) => errors.extend(self.number_errors(value, path)),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(schema) = &self.items {
                        schema.judge(item, None, &format!("{path}[{index}]"), errors);
                    }
                }
                if let Some(least) = self.min_items.filter(|least| items.len() < *least) {
                    let detail = format!("{path} in body should have at least {least} items");
                    errors.push(invalid(path, items.len(), &detail));
                }
            }
            _ => {}
        }
        if !self.r#enum.is_empty() && !self.r#enum.contains(value) {
            let known: Vec<&str> = self.r#enum.iter().filter_map(Value::as_str).collect();
            errors.push(not_supported(path, value.clone(), &known));
        }
        if let Value::Object(map) = value {
            self.judge_members(map, old, path, errors);
        }
    }

    fn judge_members(&self, map: &Map<String, Value>, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        for (name, value) in map {
            if let Some(schema) = self.member(name) {
                schema.judge(value, old.and_then(|old| old.get(name)), &member(path, name), errors);
            }
        }
        let missing = self.required.iter().filter(|name| !map.contains_key(*name));
        errors.extend(missing.map(|name| required(member(path, name), "")));
    }

    fn type_error(&self, value: &Value, path: &str) -> Option<FieldError> {
        let (found, found_format) = match value {
            Value::Null => ("null", ""),
            Value::Bool(_) => ("boolean", ""),
            Value::Number(number) if number.is_f64() => ("number", "float64"),
            Value::Number(_) => ("integer", "int64"),
            Value::String(_) => ("string", ""),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
        };
        let is_whole = |value: &Value| value.as_f64().is_some_and(|number| number.fract() == 0.0);
        let fits = match self.r#type {
            Type::Object => value.is_object(),
            Type::Array => value.is_array(),
            Type::String => value.is_string(),
            Type::Boolean => value.is_boolean(),
            Type::Integer => is_whole(value),
            Type::Number => value.is_number(),
        };
        let is_formatted_number = !self.format.is_empty() && !matches!(found, "null" | "string" | "array");
        let wanted = format!("{:?}", self.r#type).to_lowercase();
        let (wanted, found) =
            if is_formatted_number { (self.format.as_str(), found_format) } else { (wanted.as_str(), found) };
        (!fits).then(|| type_invalid(path, found, wanted))
    }

    fn text_error(&self, text: &str, path: &str) -> Option<FieldError> {
        let length = text.chars().count();
        if let Some(most) = self.max_length.filter(|most| length > *most) {
            return Some(too_long(path, most));
        }
        if let Some(least) = self.min_length.filter(|least| length < *least) {
            return Some(invalid(path, text, &format!("{path} in body should be at least {least} chars long")));
        }
        let is_no_time = self.format == "date-time" && chrono::DateTime::parse_from_rfc3339(text).is_err();
        is_no_time.then(|| type_invalid(path, text, "date-time"))
    }

    fn number_errors(&self, value: &Value, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.format == "int32" && value.as_i64().is_some_and(|number| i32::try_from(number).is_err()) {
            let detail = format!("Checked value must be of type integer with format int32 in {path}");
            errors.push(invalid(NOWHERE, "", &detail));
        }
        if let Some(least) = self.minimum.filter(|least| value.as_f64().is_some_and(|number| number < *least)) {
            let detail = format!("{path} in body should be greater than or equal to {least}");
            errors.push(invalid(path, value.clone(), &detail));
        }
        errors
    }

    /// Calls `look` for every child that has changed and has a schema.
    fn descend<'a>(
        &'a self,
        value: &'a Value,
        old: Option<&'a Value>,
        path: &str,
        mut look: impl FnMut(&'a Self, &'a Value, Option<&'a Value>, &str),
    ) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let old = old.and_then(|old| old.get(name));
            if let Some(schema) = self.member(name).filter(|_| old != Some(value)) {
                look(schema, value, old, &member(path, name));
            }
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = &self.items {
                look(schema, item, None, &format!("{path}[{index}]"));
            }
        }
    }

    /// Rejects items with duplicate keys. Matches `ValidateListSetsAndMaps`.
    fn find_duplicates(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        if !self.map_keys.is_empty() {
            let mut seen = BTreeSet::new();
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                let keys = self.map_keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                let key = Value::Object(keys.collect());
                if !seen.insert(key.to_string()) {
                    errors.push(duplicate(format!("{path}[{index}]"), key));
                }
            }
        }
        self.descend(value, old, path, |schema, value, old, path| schema.find_duplicates(value, old, path, errors));
    }

    fn has_rules(&self) -> bool {
        let below =
            || self.properties.values().chain(self.items.as_deref()).chain(self.additional_properties.as_deref());
        !self.rules.is_empty() || below().any(Self::has_rules)
    }

    fn apply_rules(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        for Rule { rule, message } in &self.rules {
            if value.as_str().is_some_and(|text| !rule.0.is_match(text)) {
                errors.push(invalid(path, value.clone(), message));
            }
        }
        self.descend(value, old, path, |schema, value, old, path| schema.apply_rules(value, old, path, errors));
    }
}

/// Matches `hasBlockingErr`.
fn blocks_rules(kind: FieldErrorKind) -> bool {
    use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// `field.TypeInvalid` in the words of kube-openapi.
fn type_invalid(path: &str, found: &str, wanted: &str) -> FieldError {
    let shown = json!(found);
    let field = if path.is_empty() { NOWHERE } else { path };
    let detail = format!("{path} in body must be of type {wanted}: {shown}");
    FieldError { kind: FieldErrorKind::TypeInvalid, ..invalid(field, shown, &detail) }
}
