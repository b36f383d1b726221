//! Structural schemas of CustomResourceDefinitions: pruning, defaulting and validation.
//!
//! Guarantees: every keyword of a structural schema is applied, and one that a structural schema may not have is an error. Of
//! the CEL rules, those that `cel` judges are applied; [`Schema::unchecked`] and [`Schema::unjudged`] name the others. Errors have the field, the reason and the words of the real server. Several invalid fields are reported in
//! alphabetical order. Pure.
//!
//! Known differences: where no alternative of `anyOf` or `oneOf` holds, the errors of the first are shown, and not of the one
//! that came closest. Of the formats, `date-time`, `int32` and `int64` are checked.
//!
//! Matches k8s.io/apiextensions-apiserver `pkg/apiserver/schema` (`pruning`, `defaulting`, `listtype`, `cel`) and
//! `pkg/apiserver/validation`, and k8s.io/kube-openapi `pkg/validation/validate`. Values that an update does not change are not
//! validated again (ratcheting), except the items of a changed list.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use apimachinery::field::{FieldError, FieldErrorKind};
use apimachinery::quoting::quote;
use apimachinery::steps;
use regex::Regex;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::super::fields::{duplicate, invalid, not_supported, required, too_long, too_many};
use super::rules::{self, Judged, Rule};
use crate::cel::{Form, Shape};

/// The error that the real server adds if it stopped before the rules.
const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing \
                         errors to complete validation";

/// The field of an error that concerns no field.
const NOWHERE: &str = "<nil>";

/// The schema of one value.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "keywords, which are independent of each other")]
pub(super) struct Schema {
    r#type: Option<Type>,
    format: String,
    nullable: bool,
    properties: BTreeMap<String, Schema>,
    additional_properties: Option<Additional>,
    items: Option<Box<Schema>>,
    required: Vec<String>,
    r#enum: Vec<Value>,
    minimum: Option<f64>,
    exclusive_minimum: bool,
    maximum: Option<f64>,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_properties: Option<usize>,
    max_properties: Option<usize>,
    #[serde(deserialize_with = "pattern")]
    pattern: Option<Regex>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
    default: Option<Value>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    keeps_unknown: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    is_embedded: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    is_int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: String,
    #[serde(rename = "x-kubernetes-validations")]
    rules: Vec<Rule>,
    // What follows has no effect on values.
    #[serde(rename = "x-kubernetes-map-type")]
    _map_type: IgnoredAny,
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "title")]
    _title: IgnoredAny,
    #[serde(rename = "example")]
    _example: IgnoredAny,
    #[serde(rename = "externalDocs")]
    _external_docs: IgnoredAny,
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

/// Whether an object may have other members, and their schema.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
enum Additional {
    Any(bool),
    Of(Box<Schema>),
}

impl TryFrom<Value> for Additional {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> serde_json::Result<Self> {
        match value {
            Value::Bool(allowed) => Ok(Self::Any(allowed)),
            schema => Schema::deserialize(schema).map(Box::new).map(Self::Of),
        }
    }
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    Regex::new(&pattern).map(Some).map_err(|error| D::Error::custom(format!("the pattern {pattern}: {error}")))
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

    /// The schema of members without one of their own.
    fn additional(&self) -> Option<&Self> {
        match &self.additional_properties {
            Some(Additional::Of(schema)) => Some(schema),
            _ => None,
        }
    }

    fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional())
    }

    /// Whether a member without a schema stays.
    fn keeps(&self, name: &str) -> bool {
        self.keeps_unknown
            || matches!(&self.additional_properties, Some(Additional::Any(true)))
            || (self.is_embedded && matches!(name, "apiVersion" | "kind" | "metadata"))
    }

    /// Calls `look` for this schema and all below it, outside of `allOf` and its like, with the path that errors name.
    fn visit<'a>(&'a self, path: &str, look: &mut dyn FnMut(&str, &'a Self)) {
        look(path, self);
        for (name, schema) in &self.properties {
            schema.visit(&format!("{path}.properties[{name}]"), look);
        }
        if let Some(schema) = &self.items {
            schema.visit(&format!("{path}.items"), look);
        }
        if let Some(schema) = self.additional() {
            schema.visit(&format!("{path}.additionalProperties"), look);
        }
    }

    /// What keeps the schema at `root` from being structural. Matches a part of `ValidateStructural`.
    pub(super) fn structural_errors(&self, root: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.visit(root, &mut |path, schema| {
            if schema.r#type.is_none() && !schema.is_int_or_string && !schema.keeps_unknown {
                let place = if path == root {
                    "at the root"
                } else if path.rsplit('.').next() == Some("items") {
                    "for specified array items"
                } else {
                    "for specified object fields"
                };
                errors.push(required(format!("{path}.type"), &format!("must not be empty {place}")));
            }
            if schema.r#type == Some(Type::Array) && schema.items.is_none() {
                errors.push(required(format!("{path}.items"), "must be specified"));
            }
        });
        errors
    }

    /// The CEL rules that are never judged, with the paths of their lists, and why.
    pub(super) fn unchecked(&self, root: &str) -> Vec<(String, &str, String)> {
        let mut unchecked = Vec::new();
        self.visit(root, &mut |path, schema| {
            for rule in &schema.rules {
                if let Some(fault) = rule.fault() {
                    unchecked.push((format!("{path}.x-kubernetes-validations"), rule.text(), fault));
                }
            }
        });
        unchecked
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
                    None if self.keeps(name) => {}
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
                map.retain(|name, value| {
                    !value.is_null() || self.properties.get(name).is_none_or(|schema| schema.nullable)
                });
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
                errors.extend(self.judged_by_rules(value, old).errors);
            }
        }
        errors
    }

    /// The rules that are not judged about an object, and why.
    pub(super) fn unjudged(&self, value: &Value, old: Option<&Value>) -> Vec<String> {
        if self.has_rules() { self.judged_by_rules(value, old).unknown } else { Vec::new() }
    }

    fn judged_by_rules(&self, value: &Value, old: Option<&Value>) -> Judged {
        let mut judged = Judged::default();
        self.apply_rules(value, old, "", &mut judged);
        judged
    }

    fn judge(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        if old == Some(value) {
            return;
        }
        errors.extend(self.type_error(value, path));
        if !value.is_null() {
            self.judge_alternatives(value, old, path, errors);
        }
        match value {
            Value::String(text) => errors.extend(self.text_error(text, path)),
            Value::Number(_) => errors.extend(self.number_errors(value, path)),
            Value::Array(items) => self.judge_items(items, path, errors),
            _ => {}
        }
        if !self.r#enum.is_empty() && !self.r#enum.contains(value) {
            let known = self.r#enum.iter().map(|known| known.as_str().map_or_else(|| known.to_string(), str::to_owned));
            let known: Vec<String> = known.collect();
            errors.push(not_supported(path, value.clone(), &known.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        if let Value::Object(map) = value {
            self.judge_members(map, old, path, errors);
        }
    }

    /// Applies `anyOf`, `oneOf`, `allOf` and `not`. Matches `schemaPropsValidator`.
    fn judge_alternatives(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        let judged = |schema: &Self| {
            let mut errors = Vec::new();
            schema.judge(value, old, path, &mut errors);
            errors
        };
        let failed = |what: &str| invalid(NOWHERE, "", &format!("{} must {what}", quote(path)));
        let any: Vec<_> = self.any_of.iter().map(judged).collect();
        if !any.is_empty() && !any.iter().any(Vec::is_empty) {
            errors.push(failed("validate at least one schema (anyOf)"));
            errors.extend(any.into_iter().next().unwrap_or_default());
        }
        let one: Vec<_> = self.one_of.iter().map(judged).collect();
        match one.iter().filter(|errors| errors.is_empty()).count() {
            1 => {}
            _ if one.is_empty() => {}
            0 => {
                errors.push(failed("validate one and only one schema (oneOf). Found none valid"));
                errors.extend(one.into_iter().next().unwrap_or_default());
            }
            several => {
                let what = format!("validate one and only one schema (oneOf). Found {several} valid alternatives");
                errors.push(failed(&what));
            }
        }
        let all: Vec<_> = self.all_of.iter().map(judged).collect();
        let wrong = all.iter().filter(|errors| !errors.is_empty()).count();
        if wrong > 0 {
            let none = if wrong == all.len() { ". None validated" } else { "" };
            errors.extend(all.into_iter().flatten());
            errors.push(failed(&format!("validate all the schemas (allOf){none}")));
        }
        if self.not.as_deref().is_some_and(|schema| judged(schema).is_empty()) {
            errors.push(failed("not validate the schema (not)"));
        }
    }

    fn judge_items(&self, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = &self.items {
                schema.judge(item, None, &format!("{path}[{index}]"), errors);
            }
        }
        if let Some(least) = self.min_items.filter(|least| items.len() < *least) {
            let detail = format!("{path} in body should have at least {least} items");
            errors.push(invalid(path, items.len(), &detail));
        }
        if let Some(most) = self.max_items.filter(|most| items.len() > *most) {
            errors.push(too_many(path, items.len(), most));
        }
    }

    fn judge_members(&self, map: &Map<String, Value>, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        if let Some(least) = self.min_properties.filter(|least| map.len() < *least) {
            let detail = format!("{path} in body should have at least {least} properties");
            errors.push(invalid(path, map.len(), &detail));
        }
        if let Some(most) = self.max_properties.filter(|most| map.len() > *most) {
            errors.push(too_many(path, map.len(), most));
        }
        if matches!(&self.additional_properties, Some(Additional::Any(false))) {
            let others = map.keys().filter(|name| !self.properties.contains_key(*name));
            errors.extend(others.map(|name| {
                let detail = format!("{path}.{name} in body is a forbidden property");
                invalid(path, "", &detail)
            }));
        }
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
        if value.is_null() && self.nullable {
            return None;
        }
        let fits = match self.r#type {
            None if self.is_int_or_string => value.is_string() || is_whole(value),
            None => true,
            Some(Type::Object) => value.is_object(),
            Some(Type::Array) => value.is_array(),
            Some(Type::String) => value.is_string(),
            Some(Type::Boolean) => value.is_boolean(),
            Some(Type::Integer) => is_whole(value),
            Some(Type::Number) => value.is_number(),
        };
        let is_formatted_number = !self.format.is_empty() && !matches!(found, "null" | "string" | "array");
        let wanted =
            self.r#type.map_or_else(|| "integer,string".to_owned(), |known| format!("{known:?}").to_lowercase());
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
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            return Some(invalid(path, text, &format!("{path} in body should match '{pattern}'")));
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
        let Some(number) = value.as_f64() else { return errors };
        let mut fail =
            |what: String| errors.push(invalid(path, value.clone(), &format!("{path} in body should be {what}")));
        if let Some(factor) = self.multiple_of.filter(|factor| !is_multiple(number, *factor)) {
            fail(format!("a multiple of {factor}"));
        }
        match self.minimum {
            Some(least) if self.exclusive_minimum && number <= least => fail(format!("greater than {least}")),
            Some(least) if number < least => fail(format!("greater than or equal to {least}")),
            _ => {}
        }
        match self.maximum {
            Some(most) if self.exclusive_maximum && number >= most => fail(format!("less than {most}")),
            Some(most) if number > most => fail(format!("less than or equal to {most}")),
            _ => {}
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
                let old = self.old_item(item, old);
                if old != Some(item) {
                    look(schema, item, old, &format!("{path}[{index}]"));
                }
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
        if self.list_type == "set" {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let mut seen = HashSet::new();
            let again = steps::each(items.iter()).enumerate().filter(|(_, item)| !seen.insert(*item));
            errors.extend(again.map(|(index, item)| duplicate(format!("{path}[{index}]"), item.clone())));
        }
        self.descend(value, old, path, |schema, value, old, path| schema.find_duplicates(value, old, path, errors));
    }

    fn has_rules(&self) -> bool {
        let below = || self.properties.values().chain(self.items.as_deref()).chain(self.additional());
        !self.rules.is_empty() || below().any(Self::has_rules)
    }

    fn apply_rules(&self, value: &Value, old: Option<&Value>, path: &str, judged: &mut Judged) {
        if !self.rules.is_empty() && !value.is_null() {
            rules::apply(&self.rules, self, (value, old), path, judged);
        }
        self.descend(value, old, path, |schema, value, old, path| schema.apply_rules(value, old, path, judged));
    }

    /// The item of the old list that has the keys of this one.
    fn old_item<'a>(&self, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
        let is_same = |other: &&Value| self.map_keys.iter().all(|key| other.get(key) == item.get(key));
        old?.as_array()?.iter().find(|other| !self.map_keys.is_empty() && is_same(other))
    }
}

impl Shape for Schema {
    fn form(&self) -> Form {
        match (self.r#type, self.format.as_str()) {
            (Some(Type::Number), _) => Form::Double,
            (Some(Type::String), "date-time") => Form::Timestamp,
            (Some(Type::String), "duration") => Form::Duration,
            (Some(Type::String), "byte") => Form::Bytes,
            _ => Form::Json,
        }
    }

    fn member(&self, name: &str) -> Option<&dyn Shape> {
        Schema::member(self, name).map(|schema| schema as &dyn Shape)
    }

    fn items(&self) -> Option<&dyn Shape> {
        self.items.as_deref().map(|schema| schema as &dyn Shape)
    }

    fn is_map(&self) -> bool {
        self.additional_properties.as_ref().is_some_and(|additional| !matches!(additional, Additional::Any(false)))
    }
}

/// Whether a number is a multiple, apart from the inexactness of its representation.
fn is_multiple(number: f64, factor: f64) -> bool {
    let quotient = number / factor;
    (quotient - quotient.round()).abs() < 1e-9 * quotient.abs().max(1.0)
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
