//! Deletion: options, graceful deletion, finalizers, namespaces.
//!
//! Guarantees: an object with finalizers is marked and never removed. A failed precondition changes nothing.
//!
//! Matches k8s.io/apiserver `pkg/registry/generic/registry/store.go` (`Delete`,
//! `updateForGracefulDeletionAndFinalizers`, `deletionFinalizersForGarbageCollection`), `pkg/registry/rest/delete.go`
//! (`BeforeDelete`) and kubernetes `pkg/registry/core/namespace/storage` (`Delete`).

use std::sync::Arc;

use apimachinery::field::{FieldError, invalid_field, unsupported_field};
use apimachinery::quoting::quote;
use apimachinery::status::{self, Qualified, Result};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::meta::{self, CLEANUP, FOREGROUND, ORPHAN};
use super::object::{Document, Object};
use super::query::Query;
use super::registry::Resource;
use super::store::{DEFINITIONS, Id, Store, timestamp};

/// Namespaces that cannot be deleted. Matches the NamespaceLifecycle admission plugin.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// metav1 `DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// `Foreground`, `Background` or `Orphan`.
    pub propagation_policy: Option<String>,
    /// The deprecated form of `Orphan`.
    pub orphan_dependents: Option<bool>,
    /// Seconds.
    pub grace_period_seconds: Option<i64>,
    /// The UID that the object must have.
    pub uid: Option<String>,
    /// The resourceVersion that the object must have.
    pub resource_version: Option<String>,
    /// `All` for a dry run.
    pub dry_run: Vec<String>,
}

/// The result of a deletion.
#[derive(Debug)]
pub struct Deleted {
    /// The document of the answer.
    pub answer: Document,
    /// Whether the object was removed.
    pub gone: bool,
}

impl DeleteOptions {
    /// Whether this is a dry run.
    pub fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// Reads the options from the body, or from the query if there is no body.
    pub fn read(body: Option<&Value>, query: &Query) -> Result<Self> {
        let options = match body {
            Some(body) => Self::from_body(body)?,
            None => Self::from_query(query)?,
        };
        let errors = options.errors();
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(status::invalid(&Qualified::meta("DeleteOptions"), "", &errors))
        }
    }

    fn from_body(body: &Value) -> Result<Self> {
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if kind != "DeleteOptions" {
            let version = body["apiVersion"].as_str().unwrap_or("v1");
            let message = format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                quote(kind),
                quote(version)
            );
            return Err(status::bad_request(message));
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let dry_run = body["dryRun"].as_array().into_iter().flatten();
        Ok(Self {
            propagation_policy: text(&body["propagationPolicy"]),
            orphan_dependents: body["orphanDependents"].as_bool(),
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            dry_run: dry_run.filter_map(text).collect(),
        })
    }

    fn from_query(query: &Query) -> Result<Self> {
        Ok(Self {
            propagation_policy: query.get("propagationPolicy").map(str::to_owned),
            orphan_dependents: query.boolean("orphanDependents"),
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            uid: None,
            resource_version: None,
            dry_run: query.all("dryRun"),
        })
    }

    /// Matches `ValidateDeleteOptions`.
    fn errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(invalid_field("propagationPolicy", &json!(policy), detail));
            }
            if !["Foreground", "Background", "Orphan"].contains(&policy.as_str()) {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(unsupported_field("propagationPolicy", &json!(policy), &supported));
            }
        }
        errors.extend(dry_run_error(&self.dry_run));
        errors
    }

    /// The finalizer for the dependents, if any: [`ORPHAN`] or [`FOREGROUND`]. `default` is the policy of a deletion that gives
    /// none.
    fn finalizer(&self, object: &Value, default: &str) -> Option<&'static str> {
        let of_policy = |policy: &str| match policy {
            "Orphan" => Some(ORPHAN),
            "Foreground" => Some(FOREGROUND),
            _ => None,
        };
        match (self.orphan_dependents, self.propagation_policy.as_deref()) {
            (Some(orphan), _) => orphan.then_some(ORPHAN),
            (None, Some(policy)) => of_policy(policy),
            (None, None) => {
                let known = |finalizer: &String| [ORPHAN, FOREGROUND].into_iter().find(|known| finalizer == known);
                meta::finalizers(object).iter().find_map(known).or_else(|| of_policy(default))
            }
        }
    }

    /// The object's finalizers with the one that the deletion adds for the garbage collector.
    fn finalizers(&self, object: &Value, resource: &Resource) -> Vec<String> {
        let wanted = self.finalizer(object, resource.strategy.default_propagation());
        let mut finalizers = meta::finalizers(object);
        finalizers.retain(|f| (f != ORPHAN && f != FOREGROUND) || wanted.is_some_and(|wanted| f == wanted));
        if let Some(wanted) = wanted.filter(|wanted| !finalizers.iter().any(|f| f == wanted)) {
            finalizers.push(wanted.to_owned());
        }
        finalizers
    }
}

/// Rejects any value but `All`. Matches `ValidateDryRun`.
pub fn dry_run_error(values: &[String]) -> Option<FieldError> {
    let bad = values.iter().any(|value| value != "All");
    bad.then(|| unsupported_field("dryRun", &json!(values), &["All"]))
}

/// Deletes one object, or marks it as deleting.
pub fn delete(store: &mut Store, id: &Id, options: &DeleteOptions) -> Result<Deleted> {
    let (resource, object) = find(store, id)?;
    check_preconditions(&resource, &object, options)?;
    if id.collection == "namespaces" {
        return delete_namespace(store, id, &object, options);
    }
    if id.collection == DEFINITIONS && !meta::is_deleting(&object) {
        return Ok(delete_definition(store, id, &object, options));
    }
    let now = store.now();
    let mut changed = (**object).clone();
    let graceful = match begin_graceful(&mut changed, &resource, options.grace_period_seconds, now) {
        Graceful::Pending => return Ok(Deleted { answer: answer(&resource, object), gone: false }),
        Graceful::No => None,
        Graceful::Yes(seconds) => Some(seconds),
    };
    let finalizers = options.finalizers(&object, &resource);
    meta::set_finalizers(&mut changed, &finalizers);
    if graceful.is_none_or(|seconds| seconds == 0) && finalizers.is_empty() {
        return Ok(remove(store, id, &resource, object, changed, options));
    }
    if graceful.is_none() {
        mark(&mut changed, now);
    }
    let stored = update(store, id, &object, changed, options);
    Ok(Deleted { answer: stored, gone: false })
}

fn find(store: &Store, id: &Id) -> Result<(Arc<Resource>, Arc<Object>)> {
    let Some(collection) = store.collections.get(&id.collection) else {
        return Err(status::generic(404, ""));
    };
    let resource = Arc::clone(&collection.resource);
    if let Some(entry) = collection.objects.get(&id.key) {
        return Ok((resource, entry.object()));
    }
    let name = id.key.split_once('/').map_or("", |(_, name)| name);
    Err(status::not_found(&resource.qualified(), name))
}

fn check_preconditions(resource: &Resource, object: &Value, options: &DeleteOptions) -> Result<()> {
    // Upstream names the kind here and not the plural.
    let refuse = |why: String| Err(status::conflict(&resource.qualified_kind(), meta::text(object, "name"), &why));
    let uid = meta::text(object, "uid");
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        return refuse(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        ));
    }
    let version = meta::text(object, "resourceVersion");
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        return refuse(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        ));
    }
    Ok(())
}

enum Graceful {
    /// The kind, or this object, has no graceful deletion.
    No,
    /// The object is already marked, and nothing changes.
    Pending,
    /// The object is marked with this grace period in seconds.
    Yes(i64),
}

/// Matches `BeforeDelete`.
fn begin_graceful(object: &mut Value, resource: &Resource, wanted: Option<i64>, now: DateTime<Utc>) -> Graceful {
    let wanted = wanted.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let Some(seconds) = resource.strategy.grace_period(object, wanted) else { return Graceful::No };
    if !meta::is_deleting(object) {
        set_grace(object, now + span(seconds), seconds);
        raise_generation(object);
        return Graceful::Yes(seconds);
    }
    let current = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    if current == 0 {
        return Graceful::No;
    }
    match wanted {
        Some(shorter) if shorter < current => {
            let at = meta::text(object, "deletionTimestamp").parse::<DateTime<Utc>>().unwrap_or(now);
            let at = at - span(current) + span(shorter);
            // The whole grace period has passed: 1 is the shortest period that is still graceful.
            let shorter = if at < now && shorter != 0 { 1 } else { shorter };
            set_grace(object, at.max(now), shorter);
            Graceful::Yes(shorter)
        }
        _ => Graceful::Pending,
    }
}

/// A grace period, capped at a thousand years, because chrono's times are bounded and requested values are not.
fn span(seconds: i64) -> TimeDelta {
    const LONGEST: i64 = 1_000 * 365 * 24 * 60 * 60;
    TimeDelta::seconds(seconds.min(LONGEST))
}

fn set_grace(object: &mut Value, at: DateTime<Utc>, seconds: i64) {
    meta::set(object, "deletionTimestamp", timestamp(at));
    meta::set(object, "deletionGracePeriodSeconds", json!(seconds));
}

fn raise_generation(object: &mut Value) {
    let generation = meta::generation(object);
    if generation > 0 {
        meta::set(object, "generation", json!(generation + 1));
    }
}

/// Matches `markAsDeleting`.
fn mark(object: &mut Value, now: DateTime<Utc>) {
    if !meta::is_deleting(object) {
        raise_generation(object);
        meta::set(object, "deletionTimestamp", timestamp(now));
    }
    meta::set(object, "deletionGracePeriodSeconds", json!(0));
}

/// Writes a marked object; one that was marked before stays as it is.
fn update(store: &mut Store, id: &Id, old: &Value, changed: Value, options: &DeleteOptions) -> Document {
    if options.is_dry_run() || changed == *old {
        return changed.into();
    }
    store.put(id, changed).into()
}

fn remove(
    store: &mut Store,
    id: &Id,
    resource: &Resource,
    old: Arc<Object>,
    changed: Value,
    options: &DeleteOptions,
) -> Deleted {
    // A grace period of 0 is written before the object is removed, and watchers see that write.
    let marked = meta::is_deleting(&changed) && changed != **old;
    if options.is_dry_run() {
        return Deleted { answer: answer(resource, if marked { Object::new(changed) } else { old }), gone: true };
    }
    if marked {
        store.put(id, changed);
    }
    let last = store.remove(id);
    Deleted { answer: answer(resource, last.unwrap_or(old)), gone: true }
}

fn answer(resource: &Resource, object: Arc<Object>) -> Document {
    if resource.strategy.returns_deleted_object() {
        object.into()
    } else {
        status::deleted(&resource.qualified(), meta::text(&object, "name"), meta::text(&object, "uid")).into()
    }
}

/// Marks a definition, whose objects are deleted first. Matches k8s.io/apiextensions-apiserver
/// `pkg/registry/customresourcedefinition/etcd.go` (`Delete`).
fn delete_definition(store: &mut Store, id: &Id, object: &Value, options: &DeleteOptions) -> Deleted {
    let mut changed = object.clone();
    let now = timestamp(store.now());
    meta::set(&mut changed, "deletionTimestamp", now.clone());
    let mut finalizers = meta::finalizers(&changed);
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    meta::set_finalizers(&mut changed, &finalizers);
    let condition = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now, "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    if let Some(conditions) = changed["status"]["conditions"].as_array_mut() {
        conditions.push(condition);
    }
    Deleted { answer: update(store, id, object, changed, options), gone: false }
}

fn delete_namespace(store: &mut Store, id: &Id, object: &Value, options: &DeleteOptions) -> Result<Deleted> {
    let name = meta::text(object, "name");
    if IMMORTAL.contains(&name) {
        let what = Qualified::new("", "namespaces");
        return Err(status::forbidden(&what, name, "this namespace may not be deleted"));
    }
    if meta::is_deleting(object) {
        return Ok(Deleted { answer: object.clone().into(), gone: false });
    }
    let mut changed = object.clone();
    let mut finalizers = meta::finalizers(&changed);
    finalizers.retain(|f| f != ORPHAN && f != FOREGROUND);
    finalizers.extend(options.finalizer(object, "").map(str::to_owned));
    meta::set_finalizers(&mut changed, &finalizers);
    let now = store.now();
    meta::set(&mut changed, "deletionTimestamp", timestamp(now));
    changed["status"]["phase"] = json!("Terminating");
    let stored = update(store, id, object, changed, options);
    Ok(Deleted { answer: stored, gone: false })
}
