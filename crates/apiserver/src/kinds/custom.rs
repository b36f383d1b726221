//! Kinds that a CustomResourceDefinition defines.
//!
//! Guarantees: the server applies the definition (schema, columns, names, versions, the status subresource). It rejects a
//! definition with a part that is neither applied nor among the two that [`warnings`] names: CEL rules that are not judged and the
//! `scale` subresource. Objects are pruned, defaulted and validated by the schema, their metadata by the common rules. If the status
//! is a subresource, it changes through `/status` only, and everything else only through the main endpoint. The generation counts
//! changes of everything else except the metadata.
//!
//! Known differences: versions are converted by their names alone, and a definition of several that names a webhook for that is
//! rejected. There is no `scale` and no selectable field. CEL rules are applied where `cel` judges them. Field managers own lists
//! as a whole, whatever the schema says.
//!
//! Matches k8s.io/apiextensions-apiserver `pkg/registry/customresource/strategy.go`, `status_strategy.go` and
//! `tableconvertor`.

mod rules;
mod schema;

use std::cmp::Ordering;
use std::sync::Arc;

use apimachinery::field::FieldError;
use apimachinery::quoting::quote;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Map, Value};

use self::schema::Schema;
use super::fields::{child, copy};
use super::{columns, count_if, normalize, time};
use crate::meta;
use crate::registry::{Column, Resource, Strategy, WrongType};

/// Where a definition has the schema of a version.
fn schema_path(index: usize) -> String {
    format!("spec.versions[{index}].schema.openAPIV3Schema")
}

/// Why a definition cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// A part is missing, has the wrong type, or is not supported here.
    #[error("cannot serve the CustomResourceDefinition {name:?}: {source}")]
    Unreadable {
        /// The definition's name.
        name: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// Objects are stored in one version.
    #[error(
        "cannot serve the CustomResourceDefinition {name:?}: {count} of its versions are stored, and one has to be"
    )]
    Versions {
        /// The definition's name.
        name: String,
        /// The number of versions that are stored.
        count: usize,
    },
    /// The schema is not structural.
    #[error("cannot serve the CustomResourceDefinition {name:?}: {}: {}", .error.field, .error.body)]
    Structure {
        /// The definition's name.
        name: String,
        /// The first error.
        error: FieldError,
    },
    /// A column whose path has steps other than members, indices, `[*]` and `[?(@.a=="b")]`.
    #[error("cannot serve the CustomResourceDefinition {name:?}: the path {path:?} of a column is not understood")]
    Path {
        /// The definition's name.
        name: String,
        /// The path.
        path: String,
    },
}

#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Called,
    scope: Scope,
    versions: Vec<Version>,
    #[serde(default)]
    conversion: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Called {
    kind: String,
    plural: String,
    singular: Option<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(PartialEq, Deserialize)]
enum Scope {
    Namespaced,
    Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    #[serde(default = "yes")]
    served: bool,
    #[serde(default = "yes")]
    storage: bool,
    schema: Validation,
    #[serde(default)]
    subresources: Subresources,
    #[serde(default)]
    additional_printer_columns: Vec<Printer>,
}

/// A definition without these fields, which kube-apiserver requires, has one version.
fn yes() -> bool {
    true
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subresources {
    status: Option<IgnoredAny>,
    scale: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    schema: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Printer {
    name: String,
    r#type: String,
    json_path: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i32,
}

/// The versions of a kind that a CustomResourceDefinition defines.
pub struct Versions {
    /// The one in which objects are stored.
    pub stored: Resource,
    /// Those that clients see, the preferred one first.
    pub served: Vec<Resource>,
}

/// The kind that a CustomResourceDefinition defines, in the version in which its objects are stored.
///
/// # Errors
/// When the definition is incomplete, or uses a feature that is not supported here.
pub fn custom(definition: &Value) -> Result<Resource, DefinitionError> {
    versions(definition).map(|versions| versions.stored)
}

/// All versions of the kind that a CustomResourceDefinition defines.
///
/// # Errors
/// As [`custom`].
pub fn versions(definition: &Value) -> Result<Versions, DefinitionError> {
    let name = || definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let unreadable = |source| DefinitionError::Unreadable { name: name(), source };
    let Definition { spec } = Definition::deserialize(definition).map_err(unreadable)?;
    if spec.versions.len() > 1 && spec.conversion["strategy"] == "Webhook" {
        let source = serde_json::Error::custom("spec.conversion.strategy: Webhook is not supported by this server");
        return Err(unreadable(source));
    }
    let count = spec.versions.iter().filter(|version| version.storage).count();
    let (mut stored, mut served) = (None, Vec::new());
    for (index, version) in spec.versions.into_iter().enumerate() {
        let (is_stored, is_served) = (version.storage, version.served);
        let resource = resource(&spec.group, &spec.names, &spec.scope, (index, version), &name)?;
        if is_served {
            served.push(resource.clone());
        }
        if is_stored {
            stored = Some(resource);
        }
    }
    let stored = stored.filter(|_| count == 1).ok_or_else(|| DefinitionError::Versions { name: name(), count })?;
    served.sort_by(|a, b| order(&a.version, &b.version));
    Ok(Versions { stored, served })
}

/// The order of versions in discovery: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, and then others by name. Matches
/// `CompareKubeAwareVersionStrings` of k8s.io/apimachinery `pkg/version`.
pub fn order(one: &str, other: &str) -> Ordering {
    let parts = |version: &str| {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(end);
        let (stage, minor) = match rest {
            "" => (2, "0"),
            rest => {
                let beta = rest.strip_prefix("beta").map(|minor| (1, minor));
                beta.or_else(|| rest.strip_prefix("alpha").map(|minor| (0, minor)))?
            }
        };
        Some((stage, major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    match (parts(one), parts(other)) {
        (None, None) => one.cmp(other),
        (one, other) => other.cmp(&one),
    }
}

fn resource(
    group: &str,
    names: &Called,
    scope: &Scope,
    (index, version): (usize, Version),
    name: &dyn Fn() -> String,
) -> Result<Resource, DefinitionError> {
    let described = version.schema.schema;
    let schema =
        Schema::deserialize(&described).map_err(|source| DefinitionError::Unreadable { name: name(), source })?;
    if let Some(error) = schema.structural_errors(&schema_path(index)).into_iter().next() {
        return Err(DefinitionError::Structure { name: name(), error });
    }
    let printers = version.additional_printer_columns.into_iter().map(|printer| {
        let path = steps(&printer.json_path);
        path.ok_or_else(|| DefinitionError::Path { name: name(), path: printer.json_path.clone() })
            .map(|path| (column(printer), path))
    });
    let mut printers: Vec<_> = printers.collect::<Result<_, _>>()?;
    if printers.is_empty() {
        printers.push(age());
    }
    let has_status = version.subresources.status.is_some();
    Ok(Resource {
        group: group.to_owned(),
        version: version.name,
        singular: names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase()),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: *scope == Scope::Namespaced,
        has_status,
        strategy: Arc::new(Custom { has_status, described, schema, printers }),
    })
}

/// What a definition asks for that is stored and has no effect, for a definition that can be served.
pub fn warnings(definition: &Value) -> Vec<String> {
    let Ok(Definition { spec }) = Definition::deserialize(definition) else { return Vec::new() };
    let of_version = |(index, Version { schema, subresources, .. }): (usize, Version)| {
        let schema = Schema::deserialize(&schema.schema).unwrap_or_default();
        let rules = schema.unchecked(&schema_path(index)).into_iter();
        let rules = rules.map(|(path, rule, fault)| {
            format!("{path}: the CEL rule {} is not judged by this server: {fault}", quote(rule))
        });
        let scale = subresources
            .scale
            .map(|_| format!("spec.versions[{index}].subresources.scale: it is not served by this server"));
        rules.chain(scale).collect::<Vec<_>>()
    };
    spec.versions.into_iter().enumerate().flat_map(of_version).collect()
}

/// The column of a definition that has none. Matches `serveDefaultColumnsIfEmpty`.
fn age() -> (Column, Vec<Step>) {
    let steps = ["metadata", "creationTimestamp"].map(|name| Step::Member(name.to_owned()));
    (columns::age_column(0), steps.into())
}

fn column(Printer { name, r#type, json_path, format, description, priority }: Printer) -> Column {
    let description = if description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {json_path}")
    } else {
        description
    };
    Column { name: name.into(), type_: r#type.into(), format: format.into(), priority, description: description.into() }
}

/// One step of a column's path.
enum Step {
    Member(String),
    /// An index, or `[*]`, which reads the first item.
    Index(usize),
    /// `[?(@.NAME=="VALUE")]`: the first item with that member.
    Filter(String, Value),
}

/// Parses a path.
fn steps(path: &str) -> Option<Vec<Step>> {
    let (mut steps, mut rest) = (Vec::new(), path.strip_prefix('.').map(|_| path)?);
    while !rest.is_empty() {
        let (step, later) = if let Some(after) = rest.strip_prefix('[') {
            let (inside, later) = after.split_once(']')?;
            (selection(inside)?, later)
        } else {
            let after = rest.strip_prefix('.')?;
            let (name, later) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
            (Step::Member(is_plain(name).then(|| name.to_owned())?), later)
        };
        steps.push(step);
        rest = later;
    }
    Some(steps)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['[', ']', '\'', '"', '*', '@', '?', '\\'])
}

/// Parses what is between brackets.
fn selection(inside: &str) -> Option<Step> {
    let unquoted = |text: &str| {
        let quotes = ['\'', '"'].into_iter();
        { quotes }.find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote).map(str::to_owned))
    };
    if inside == "*" {
        return Some(Step::Index(0));
    }
    if let Some(filter) = inside.strip_prefix("?(@.").and_then(|rest| rest.strip_suffix(')')) {
        let (name, value) = filter.split_once("==")?;
        let name = name.trim();
        return is_plain(name).then(|| Some(Step::Filter(name.to_owned(), unquoted(value.trim())?.into())))?;
    }
    unquoted(inside).map(Step::Member).or_else(|| inside.parse().ok().map(Step::Index))
}

fn follow<'a>(steps: &[Step], object: &'a Value) -> Option<&'a Value> {
    steps.iter().try_fold(object, |value, step| match step {
        Step::Member(name) => value.get(name),
        Step::Index(index) => value.get(index),
        Step::Filter(name, wanted) => value.as_array()?.iter().find(|item| item.get(name) == Some(wanted)),
    })
}

struct Custom {
    /// Whether the status is a subresource.
    has_status: bool,
    described: Value,
    schema: Schema,
    printers: Vec<(Column, Vec<Step>)>,
}

impl Strategy for Custom {
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String> {
        // The common fields are handled as for every kind, whatever the schema says about them.
        let mut common = ["apiVersion", "kind", "metadata"].map(|name| (name, object[name].take()));
        object.as_object_mut().into_iter().for_each(|fields| fields.retain(|_, value| !value.is_null()));
        let unknown = normalize::normalize(&mut common[2].1, "meta.v1.ObjectMeta")?;
        let mut paths: Vec<String> = unknown.into_iter().map(|path| format!("metadata.{path}")).collect();
        paths.extend(self.schema.prune(object));
        self.schema.fill(object);
        for (name, value) in common {
            object[name] = value;
        }
        Ok(paths)
    }

    fn wrong_types(&self, object: &Value) -> Vec<WrongType> {
        let wrong = normalize::wrong_types(&object["metadata"], "meta.v1.ObjectMeta");
        let at = |field: &str| if field.is_empty() { "metadata".to_owned() } else { format!("metadata.{field}") };
        wrong.into_iter().map(|wrong| WrongType { field: at(&wrong.field), ..wrong }).collect()
    }

    fn set_defaults(&self, object: &mut Value) {
        self.schema.fill(object);
    }

    fn prepare_for_create(&self, object: &mut Value) {
        if self.has_status {
            object.as_object_mut().and_then(|object| object.remove("status"));
        }
        child(object, "metadata")["generation"] = 1.into();
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        self.schema.errors(object, None)
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        if self.has_status {
            copy(object, old, "status");
        }
        let names = [&*object, old].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
        let changed = { names }.any(|name| name != "metadata" && object.get(name) != old.get(name));
        count_if(changed, object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.schema.errors(object, Some(old))
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        let mut kept = old.clone();
        meta::set(&mut kept, "managedFields", object["metadata"]["managedFields"].take());
        copy(&mut kept, object, "status");
        *object = kept;
    }

    fn validate_status_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let (Some(schema), Some(status)) = (self.schema.property("status"), object.get("status")) else {
            return Vec::new();
        };
        let mut errors = schema.errors(status, old.get("status"));
        for error in &mut errors {
            error.field = format!("status.{}", error.field);
        }
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = meta::bare_finalizer_warnings(object, old);
        warnings.extend(self.schema.unjudged(object, old));
        warnings
    }

    fn is_native(&self) -> bool {
        false
    }

    fn columns(&self) -> Vec<Column> {
        [columns::name_column(0)].into_iter().chain(self.printers.iter().map(|(column, _)| column.clone())).collect()
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        let cell = |(column, path): &(Column, Vec<Step>)| {
            let value = follow(path, object).unwrap_or(&Value::Null);
            match (&*column.type_, value) {
                ("date", Value::String(text)) => time::since(Some(text), now).into(),
                ("string", Value::Null | Value::String(_))
                | ("boolean", Value::Bool(_))
                | ("integer" | "number", Value::Number(_)) => value.clone(),
                ("string", other) => other.to_string().into(),
                _ => Value::Null,
            }
        };
        [object["metadata"]["name"].clone()].into_iter().chain(self.printers.iter().map(cell)).collect()
    }

    fn takes_strategic_patches(&self) -> bool {
        false
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn schema(&self) -> Value {
        self.described.clone()
    }
}

#[cfg(test)]
mod tests;
