//! The kinds that extend an API server: CustomResourceDefinitions, the configurations of admission webhooks, and the policies that
//! validate.
//!
//! Guarantees: the server rejects a definition that it cannot apply. What is stored therefore takes effect
//! ([`custom`](super::custom()), `admission`, `policies`), apart from what a warning names. A definition is stored as it was sent and is
//! established on creation.
//!
//! Known differences: of a webhook's configuration, only the selectors and the match conditions are validated, and of these the
//! expressions only if they are missing; nothing else is. A definition is neither defaulted nor pruned, and its `status` says only that
//! it is served. Matches k8s.io/apiextensions-apiserver `pkg/registry/customresourcedefinition` and k8s.io/kubernetes
//! `pkg/registry/admissionregistration`.

use std::collections::BTreeSet;
use std::sync::Arc;

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use apimachinery::quoting::quote;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::fields::{
    at, child, copy, default, duplicate, each_message, forbidden, invalid, list, required, text, too_many,
};
use super::pod_spec::selectors;
use super::stored::{self, PLAIN, Stored};
use super::validating_policies::rule_errors;
use super::{columns, count, custom, names, normalize, resource};
use crate::cel::Expression;
use crate::openapi;
use crate::registry::{Column, Resource, Strategy};

/// The kinds that extend a server; a server serves them if its configuration includes them.
pub fn extensions() -> Vec<Resource> {
    let webhooks = |kind, plural| {
        let kept = Stored {
            counted: "webhooks",
            warnings: unjudged,
            errors: webhook_errors,
            columns: &stored::WEBHOOKS,
            ..PLAIN
        };
        let resource = kept.of(resource("admissionregistration.k8s.io", kind, plural).cluster());
        Resource { categories: names(&["api-extensions"]), ..resource }
    };
    let definitions =
        resource("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions").cluster();
    let own = vec![
        Resource {
            has_status: true,
            short_names: names(&["crd", "crds"]),
            categories: names(&["api-extensions"]),
            ..definitions.with(Arc::new(Definitions))
        },
        webhooks("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        webhooks("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ];
    [own, stored::validating_policies()].concat()
}

/// Decodes the metadata of an object and leaves everything else unchanged.
fn normalize_metadata(object: &mut Value) -> Result<Vec<String>, String> {
    let unknown = normalize::normalize(child(object, "metadata"), "meta.v1.ObjectMeta")?;
    Ok(unknown.into_iter().map(|path| format!("metadata.{path}")).collect())
}

/// The name of the version in which objects are stored.
fn stored_version(definition: &Value) -> Value {
    let versions = list(definition, "spec.versions");
    let stored = versions.iter().find(|version| version["storage"] == true).or(versions.first());
    stored.map_or(Value::Null, |version| version["name"].clone())
}

struct Definitions;

impl Definitions {
    fn judge(definition: &Value) -> Vec<FieldError> {
        let name = text(definition, "metadata.name");
        let wanted = format!("{}.{}", text(definition, "spec.names.plural"), text(definition, "spec.group"));
        let mut errors = Vec::new();
        if name != wanted {
            errors.push(invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
        }
        errors.extend(custom(definition).err().map(|error| forbidden("spec", &error.to_string())));
        errors
    }
}

impl Strategy for Definitions {
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String> {
        normalize_metadata(object)
    }

    fn set_defaults(&self, object: &mut Value) {
        let kind = text(object, "spec.names.kind").to_owned();
        let names = child(child(object, "spec"), "names");
        default(names, "singular", kind.to_lowercase());
        default(names, "listKind", format!("{kind}List"));
    }

    fn prepare_for_create(&self, object: &mut Value) {
        child(object, "metadata")["generation"] = 1.into();
        let since = object["metadata"]["creationTimestamp"].clone();
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since,
            })
        };
        object["status"] = json!({
            "acceptedNames": object["spec"]["names"],
            "conditions": [
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "storedVersions": [stored_version(object)],
        });
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let is_known = old.is_some_and(|old| old["spec"] == object["spec"]);
        if is_known { Vec::new() } else { custom::warnings(object) }
    }

    fn is_native(&self) -> bool {
        false
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        Self::judge(object)
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "status");
        count(object, old, "spec");
        let stored = stored_version(object);
        if let Some(versions) = object["status"]["storedVersions"].as_array_mut().filter(|list| !list.contains(&stored))
        {
            versions.push(stored);
        }
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let fixed = ["spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"];
        let changed = fixed.into_iter().filter(|path| at(object, path) != at(old, path));
        let changed = changed.map(|path| invalid(path, at(object, path).clone(), "field is immutable"));
        changed.chain(Self::judge(object)).collect()
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "spec");
    }

    fn columns(&self) -> Vec<Column> {
        columns::DEFINITIONS.to_vec()
    }

    fn cells(&self, object: &Value, _now: DateTime<Utc>) -> Vec<Value> {
        ["name", "creationTimestamp"].map(|field| object["metadata"][field].clone()).into()
    }

    fn schema(&self) -> Value {
        openapi::builtin_schema("apiextensions.v1.CustomResourceDefinition")
    }
}

/// The most conditions of a webhook.
const MOST_CONDITIONS: usize = 64;

/// What is wrong with the selectors and the match conditions of webhooks. Matches `validateValidatingWebhook`.
fn webhook_errors(configuration: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (number, webhook) in list(configuration, "webhooks").iter().enumerate() {
        for (index, rule) in list(webhook, "rules").iter().enumerate() {
            rule_errors(rule, &format!("webhooks[{number}].rules[{index}]"), &mut errors);
        }
        for selector in ["namespaceSelector", "objectSelector"] {
            selectors::validate(&webhook[selector], &format!("webhooks[{number}].{selector}"), &mut errors);
        }
        condition_errors(webhook, &format!("webhooks[{number}].matchConditions"), &mut errors);
    }
    errors
}

/// What is wrong with the match conditions of an object. Matches `validateMatchConditions`.
pub(super) fn condition_errors(object: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let conditions = list(object, "matchConditions");
    if conditions.len() > MOST_CONDITIONS {
        errors.push(too_many(at, conditions.len(), MOST_CONDITIONS));
    }
    let mut names = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let (name, of_name) = (text(condition, "name"), format!("{at}[{index}].name"));
        if text(condition, "expression").trim().is_empty() {
            errors.push(required(format!("{at}[{index}].expression"), ""));
        }
        if name.is_empty() {
            errors.push(required(of_name.as_str(), ""));
            continue;
        }
        errors.extend(each_message(&of_name, name, label_key_errors(name)));
        if !names.insert(name) {
            errors.push(duplicate(of_name, name));
        }
    }
}

/// The warnings about conditions that are never judged.
fn unjudged(configuration: &Value) -> Vec<String> {
    let of_webhook = |webhook: &Value| {
        let name = text(webhook, "name").to_owned();
        let conditions = list(webhook, "matchConditions").iter();
        let faults =
            conditions.filter(|condition| !text(condition, "expression").trim().is_empty()).filter_map(|condition| {
                let fault = Expression::read(text(condition, "expression")).fault()?.to_string();
                Some(format!(
                    "webhook {}: the condition {} is not judged by this server: {fault}",
                    quote(&name),
                    quote(text(condition, "name"))
                ))
            });
        faults.collect::<Vec<_>>()
    };
    list(configuration, "webhooks").iter().flat_map(of_webhook).collect()
}
