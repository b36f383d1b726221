//! The kinds that the embedded API server serves from the start, and those that can be added.
//!
//! Guarantees: namespaces, pods, events, leases, jobs and cronjobs are decoded, defaulted, validated, updated and printed as
//! kube-apiserver v1.37.2 does. Reviews are always allowed. `recorded.jsonl` holds the real server's answers to some two
//! hundred objects, and the tests compare with it. Nothing here does I/O or reads a clock.
//!
//! Known differences: a rejected change of an immutable Pod template prints the wire form and not upstream's internal types.
//! Unknown fields are reported in alphabetical order. See `pod_spec` for Pods.

mod columns;
mod cron_jobs;
mod custom;
mod defaults;
mod events;
mod extensions;
mod fields;
mod job_spec;
mod job_status;
mod jobs;
mod leases;
mod namespaces;
mod normalize;
mod pod_columns;
mod pod_spec;
mod pods;
mod policies;
mod protobuf;
mod quantity;
mod reviews;
mod stored;
mod time;
mod types;
mod validating_policies;

pub use custom::{DefinitionError, custom};
pub(crate) use custom::{Versions, order as version_order, versions};
pub(crate) use job_spec::matches as label_selector_matches;
pub(super) use types::package;
#[doc(hidden)]
pub use {
    extensions::extensions,
    protobuf::{decode as decode_protobuf, is_protobuf},
    stored::stored,
};

use std::sync::Arc;

use apimachinery::field::FieldError;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::openapi;
use super::registry::{Column, NameRule, Resource, Strategy, WrongType};
use fields::{copy, text};

/// The built-in kinds in discovery order: by group as the real server lists them, then by name.
pub fn builtin() -> Vec<Resource> {
    let core = |kind, plural| resource("", kind, plural);
    let batch = |kind, plural| resource("batch", kind, plural);
    let authentication = |kind, plural| resource("authentication.k8s.io", kind, plural);
    let authorization = |kind, plural| resource("authorization.k8s.io", kind, plural);
    vec![
        Resource { short_names: names(&["ev"]), ..core("Event", "events").served(events::Events) },
        Resource {
            namespaced: false,
            has_status: true,
            short_names: names(&["ns"]),
            ..core("Namespace", "namespaces").served(namespaces::Namespaces)
        },
        Resource {
            has_status: true,
            short_names: names(&["po"]),
            categories: names(&["all"]),
            ..core("Pod", "pods").served(pods::Pods)
        },
        authentication("SelfSubjectReview", "selfsubjectreviews").cluster().served(reviews::SelfSubject),
        authentication("TokenReview", "tokenreviews").cluster().served(reviews::Token),
        authorization("LocalSubjectAccessReview", "localsubjectaccessreviews").served(reviews::LocalSubjectAccess),
        authorization("SelfSubjectAccessReview", "selfsubjectaccessreviews")
            .cluster()
            .served(reviews::SelfSubjectAccess),
        authorization("SelfSubjectRulesReview", "selfsubjectrulesreviews").cluster().served(reviews::SelfSubjectRules),
        authorization("SubjectAccessReview", "subjectaccessreviews").cluster().served(reviews::SubjectAccess),
        Resource {
            has_status: true,
            short_names: names(&["cj"]),
            categories: names(&["all"]),
            ..batch("CronJob", "cronjobs").served(cron_jobs::CronJobs)
        },
        Resource { has_status: true, categories: names(&["all"]), ..batch("Job", "jobs").served(jobs::Jobs) },
        resource("coordination.k8s.io", "Lease", "leases").served(leases::Leases),
    ]
}

/// All kinds: the built-in ones, those that extend a server, and those that are stored only.
pub fn all() -> Vec<Resource> {
    [builtin(), extensions(), stored()].concat()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A resource without its strategy.
struct Unserved {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    version: &'static str,
}

fn resource(group: &'static str, kind: &'static str, plural: &'static str) -> Unserved {
    Unserved { group, kind, plural, namespaced: true, version: "v1" }
}

impl Unserved {
    fn cluster(self) -> Self {
        Self { namespaced: false, ..self }
    }

    fn version(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    fn served<K: Kind>(self, kind: K) -> Resource {
        self.with(Arc::new(Served(kind)))
    }

    fn with(self, strategy: Arc<dyn Strategy>) -> Resource {
        Resource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: self.namespaced,
            has_status: false,
            strategy,
        }
    }
}

/// What differs between the built-in kinds; the shared behaviour is in [`Served`].
trait Kind: Send + Sync + 'static {
    /// The Go type, as the table of types names it.
    const ROOT: &'static str;
    /// The table columns.
    const COLUMNS: &'static [Column] = &[];
    /// The rule for names.
    const NAME_RULE: NameRule = NameRule::Subdomain;
    /// Whether objects are answered and not stored.
    const VIRTUAL: bool = false;
    const ALLOW_UNCONDITIONAL_UPDATE: bool = true;
    const ALLOW_CREATE_ON_UPDATE: bool = false;
    const RETURNS_DELETED_OBJECT: bool = false;
    const DEFAULT_PROPAGATION: &'static str = "Background";

    fn set_defaults(&self, _object: &mut Value) {}
    fn prepare_for_create(&self, _object: &mut Value) {}
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }
    fn prepare_for_update(&self, _object: &mut Value, _old: &Value) {}
    fn validate_update(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }
    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "spec");
    }
    fn validate_status_update(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }
    fn cells(&self, _object: &Value, _now: DateTime<Utc>) -> Vec<Value> {
        Vec::new()
    }
    fn row_conditions(&self, _object: &Value) -> Value {
        Value::Null
    }
    fn selectable_fields(&self, _object: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    fn answer(&self, _object: &mut Value) {}
    fn is_atomic_list(&self, _path: &[&str]) -> bool {
        false
    }
    fn grace_period(&self, _object: &Value, _requested: Option<i64>) -> Option<i64> {
        None
    }
}

/// Implements [`Strategy`] for a [`Kind`].
struct Served<K>(K);

impl<K: Kind> Strategy for Served<K> {
    /// The error is Go's alone; the server prepends `KIND in version "v1" cannot be handled as a KIND: `.
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String> {
        normalize::normalize(object, K::ROOT)
    }

    fn wrong_types(&self, object: &Value) -> Vec<WrongType> {
        normalize::wrong_types(object, K::ROOT)
    }

    fn set_defaults(&self, object: &mut Value) {
        defaults::set(object, K::ROOT);
        self.0.set_defaults(object);
    }

    fn prepare_for_create(&self, object: &mut Value) {
        self.0.prepare_for_create(object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        self.0.validate_create(object)
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        self.0.prepare_for_update(object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.0.validate_update(object, old)
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        self.0.prepare_for_status_update(object, old);
    }

    fn validate_status_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.0.validate_status_update(object, old)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        self.0.warnings(object, old)
    }

    fn columns(&self) -> Vec<Column> {
        K::COLUMNS.to_vec()
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        self.0.cells(object, now)
    }

    fn row_conditions(&self, object: &Value) -> Value {
        self.0.row_conditions(object)
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        self.0.selectable_fields(object)
    }

    fn patch_merge_key(&self, path: &[&str]) -> Option<&'static str> {
        types::merge_key(K::ROOT, path)
    }

    fn name_rule(&self) -> NameRule {
        K::NAME_RULE
    }

    fn is_virtual(&self) -> bool {
        K::VIRTUAL
    }

    fn answer(&self, object: &mut Value) {
        self.0.answer(object);
    }

    fn allow_unconditional_update(&self) -> bool {
        K::ALLOW_UNCONDITIONAL_UPDATE
    }

    fn allow_create_on_update(&self) -> bool {
        K::ALLOW_CREATE_ON_UPDATE
    }

    fn returns_deleted_object(&self) -> bool {
        K::RETURNS_DELETED_OBJECT
    }

    fn is_atomic_list(&self, path: &[&str]) -> bool {
        self.0.is_atomic_list(path)
    }

    fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        self.0.grace_period(object, requested)
    }

    fn default_propagation(&self) -> &'static str {
        K::DEFAULT_PROPAGATION
    }

    fn schema(&self) -> Value {
        openapi::builtin_schema(K::ROOT)
    }
}

/// Keeps the status, and increments the generation if the spec has changed.
fn keep_status_and_count(object: &mut Value, old: &Value) {
    copy(object, old, "status");
    count(object, old, "spec");
}

/// Increments the generation if `field` has changed.
fn count(object: &mut Value, old: &Value, field: &str) {
    let changed = object[field] != old[field];
    count_if(changed, object, old);
}

fn count_if(changed: bool, object: &mut Value, old: &Value) {
    fields::child(object, "metadata")["generation"] =
        (old["metadata"]["generation"].as_i64().unwrap_or(0) + i64::from(changed)).into();
}

/// The age column.
fn age(object: &Value, now: DateTime<Utc>) -> Value {
    time::since(object["metadata"]["creationTimestamp"].as_str(), now).into()
}

/// The names and images of containers. Matches `layoutContainerCells`.
fn container_cells(containers: &[Value]) -> [Value; 2] {
    ["name", "image"].map(|field| containers.iter().map(|c| text(c, field)).collect::<Vec<_>>().join(",").into())
}

/// A label selector as text. Matches metav1 `FormatLabelSelector`.
fn selector_cell(selector: &Value) -> Value {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in fields::list(selector, "matchExpressions") {
        let key = text(expression, "key");
        let mut values: Vec<&str> = fields::list(expression, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let part = match text(expression, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort();
    if parts.is_empty() {
        return "<none>".into();
    }
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",").into()
}

/// Whether the spec is new, or differs from that of the stored object.
fn is_new_spec(object: &Value, old: Option<&Value>) -> bool {
    old.is_none_or(|old| old["metadata"]["generation"] != object["metadata"]["generation"])
}

/// Whether an object is being created: only stored objects have a resourceVersion.
fn is_new(object: &Value) -> bool {
    text(object, "metadata.resourceVersion").is_empty()
}

/// Where the names of Jobs and CronJobs are used.
const POD_NAMES: &str = "Pod names and hostnames";

/// The warning about names that make unusual host names.
fn name_warning(object: &Value, used_in: &str) -> Option<String> {
    let messages = fields::dns_label_errors(text(object, "metadata.name"));
    (is_new(object) && !messages.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: \
             [{}]",
            messages.join(" ")
        )
    })
}

#[cfg(test)]
mod tests;
