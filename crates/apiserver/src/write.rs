//! Creates, updates and patches.
//!
//! Guarantees: a rejected write or a dry run changes nothing. A write that would change nothing makes no revision. The steps
//! and their order are the real server's, and so is the choice among several errors.
//!
//! Matches k8s.io/apiserver `pkg/endpoints/handlers/{create,update,patch}.go`, `pkg/registry/generic/registry/store.go`
//! (`Create`, `Update`), `pkg/registry/rest/{create,update}.go` (`BeforeCreate`, `BeforeUpdate`) and the
//! NamespaceLifecycle admission plugin.

use std::collections::HashSet;

use apimachinery::field::{FieldError, invalid_field};
use apimachinery::quoting::quote;
use apimachinery::status::{self, Cause, Qualified, Result};
use apimachinery::steps;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::admission;
use super::body::{self, FieldValidation};
use super::managers::{self, Writer};
use super::meta;
use super::object::Document;
use super::pending_write::PendingWrite;
use super::registry::{NameRule, Resource, WrongType};
use super::rest::{Call, Target, WriteOptions};
use super::store::{Id, Store, key, timestamp};

/// How often a generated name is regenerated if it is taken.
const NAME_ATTEMPTS: usize = 8;
const LOCK_MESSAGE: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The result of a write.
#[derive(Debug)]
pub struct Written {
    /// The document of the answer.
    pub object: Document,
    /// Whether the write created the object.
    pub created: bool,
}

/// Creates an object. Warnings are added even if the write is rejected.
pub fn create(store: &mut Store, call: &Call, pending: &mut PendingWrite) -> Result<Written> {
    let target = &call.target;
    let format = call.format()?;
    let options = call.write_options("CreateOptions", None)?;
    let decoded = body::decode_object(&target.resource, &call.body, format, options.validation)?;
    pending.warnings.extend(decoded.warnings);
    let mut object = decoded.object;
    for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta::set(&mut object, field, Value::Null);
    }
    match_namespace(target, &mut object)?;
    pending.warnings.extend(meta::dedup_owners(&mut object));
    writer(target, &options, pending.now).update(None, &mut object);
    if target.resource.strategy.is_virtual() {
        return answer_virtual(target, object);
    }
    check_namespace(store, target, meta::text(&object, "name"))?;
    let object = insert(store, target, object, &options, pending)?;
    Ok(Written { object, created: true })
}

fn answer_virtual(target: &Target, mut object: Value) -> Result<Written> {
    let strategy = &target.resource.strategy;
    strategy.prepare_for_create(&mut object);
    if target.resource.kind == "TokenReview" && object["spec"]["token"].as_str().unwrap_or_default().is_empty() {
        return Err(status::bad_request("token is required for TokenReview in authentication"));
    }
    let errors = strategy.validate_create(&object);
    if !errors.is_empty() {
        // Upstream's review has no kind here.
        let what = Qualified::new(&target.resource.group, "");
        return Err(status::invalid(&what, "", &errors));
    }
    strategy.answer(&mut object);
    Ok(Written { object: object.into(), created: true })
}

fn writer<'a>(target: &'a Target, options: &'a WriteOptions, now: DateTime<Utc>) -> Writer<'a> {
    Writer { resource: &target.resource, manager: &options.manager, subresource: &target.subresource, now }
}

/// Sets the object's namespace to the path's. Matches `EnsureObjectNamespaceMatchesRequestNamespace`.
fn match_namespace(target: &Target, object: &mut Value) -> Result<()> {
    let namespace = if target.resource.namespaced { target.namespace.as_str() } else { "" };
    let own = meta::text(object, "namespace");
    if !own.is_empty() && !namespace.is_empty() && own != namespace {
        return Err(status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta::set(object, "namespace", if namespace.is_empty() { Value::Null } else { json!(namespace) });
    Ok(())
}

/// Rejects new objects of a kind whose definition is terminating. Matches `forbidCreateAdmission`.
fn check_definition(store: &Store, target: &Target, name: &str) -> Result<()> {
    if store.ending_definition(&target.resource.qualified_name()).is_some() {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(status::forbidden(&target.resource.qualified(), name, why));
    }
    Ok(())
}

/// Rejects new objects in a namespace that is missing or terminating.
fn check_namespace(store: &Store, target: &Target, name: &str) -> Result<()> {
    check_definition(store, target, name)?;
    if !target.resource.namespaced || !store.collections.contains_key("namespaces") {
        return Ok(());
    }
    let namespace = &target.namespace;
    let id = Id { collection: "namespaces".to_owned(), key: key("", namespace) };
    let Some(found) = store.get(&id) else {
        let what = Qualified::new("", "namespaces");
        return Err(status::not_found(&what, namespace));
    };
    if found["status"]["phase"] != "Terminating" {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    };
    Err(status::forbidden(&target.resource.qualified(), name, &why).with_cause(cause))
}

/// Sets the server's fields, validates and stores a new object.
fn insert(
    store: &mut Store,
    target: &Target,
    object: Value,
    options: &WriteOptions,
    pending: &mut PendingWrite,
) -> Result<Document> {
    let generate = meta::text(&object, "name").is_empty() && !meta::text(&object, "generateName").is_empty();
    if !generate {
        return insert_once(store, target, object, options, pending);
    }
    let mut outcome = insert_once(store, target, object.clone(), options, pending);
    for _ in 1..NAME_ATTEMPTS {
        match &outcome {
            Err(status) if status.reason == "AlreadyExists" => {
                outcome = insert_once(store, target, object.clone(), options, pending);
            }
            _ => break,
        }
    }
    outcome
}

fn insert_once(
    store: &mut Store,
    target: &Target,
    mut object: Value,
    options: &WriteOptions,
    pending: &mut PendingWrite,
) -> Result<Document> {
    let resource = &target.resource;
    meta::set(&mut object, "creationTimestamp", timestamp(pending.now));
    meta::set(&mut object, "uid", json!(pending.new_uid(store)));
    let prefix = meta::text(&object, "generateName").to_owned();
    if meta::text(&object, "name").is_empty() && !prefix.is_empty() {
        meta::set(&mut object, "name", json!(pending.new_name(store, &prefix)));
    }
    let admission = admission::Write { target, options, old: None };
    let mut object = admission.mutate(store, object, pending)?;
    resource.strategy.prepare_for_create(&mut object);
    let name = meta::text(&object, "name").to_owned();
    let errors = creation_errors(resource, &object);
    if !errors.is_empty() {
        return Err(status::invalid(&resource.qualified_kind(), &name, &errors));
    }
    for warning in resource.strategy.warnings(&object, None) {
        if !pending.warnings.contains(&warning) {
            pending.warnings.push(warning);
        }
    }
    admission.validate(store, &object, pending)?;
    // Upstream's store looks at the version, which a dry run does not reach. A create by update or apply drops it.
    let is_version = |text: &str| text.parse::<u64>().is_ok_and(|version| version != 0);
    if !target.name.is_empty() || !options.dry_run {
        if target.name.is_empty() && is_version(meta::text(&object, "resourceVersion")) {
            return Err(status::unknown("resourceVersion should not be set on objects to be created"));
        }
        meta::set(&mut object, "resourceVersion", Value::Null);
    }
    let id = Id { collection: resource.qualified_name(), key: super::store::key_of(&object) };
    if let Some(existing) = store.get(&id) {
        let what = resource.qualified();
        let mut refusal = if prefix.is_empty() {
            status::already_exists(&what, &name)
        } else {
            status::generate_name_conflict(&what, &name)
        };
        if meta::is_deleting(&existing) {
            refusal.message = format!("object is being deleted: {}", refusal.message);
        }
        return Err(refusal);
    }
    if options.dry_run {
        return Ok(object.into());
    }
    Ok(store.put(&id, object).into())
}

/// The result of validating an object for creation.
#[derive(Debug)]
pub struct Judgement {
    /// The paths of unknown fields.
    pub unknown: Vec<String>,
    /// The validation errors; empty if the object is accepted.
    pub errors: Vec<FieldError>,
    /// The warnings for the client: none for an object that strict validation refuses, as the real server sends none.
    pub warnings: Vec<String>,
}

/// Validates a new object without a server. Rules that depend on other objects (namespace, quotas, admission) are not applied.
///
/// # Errors
/// All fields of the wrong type, each with Go's message.
pub fn judge_new(resource: &Resource, object: &Value) -> std::result::Result<Judgement, Vec<WrongType>> {
    let (strategy, given) = (&resource.strategy, object);
    let mut unknown = Vec::new();
    let object = prepare_new(resource, object, &mut unknown).map_err(|message| match strategy.wrong_types(given) {
        wrong if wrong.is_empty() => vec![WrongType { field: String::new(), message }],
        wrong => wrong,
    })?;
    let errors = creation_errors(resource, &object);
    let is_accepted = errors.is_empty() && unknown.is_empty();
    let warnings = if is_accepted { strategy.warnings(&object, None) } else { Vec::new() };
    Ok(Judgement { unknown, errors, warnings })
}

/// A new object as it is validated: with its defaults, in a namespace, with a name.
pub(crate) fn prepared(resource: &Resource, object: &Value) -> std::result::Result<Value, String> {
    prepare_new(resource, object, &mut Vec::new())
}

fn prepare_new(resource: &Resource, object: &Value, unknown: &mut Vec<String>) -> std::result::Result<Value, String> {
    let strategy = &resource.strategy;
    let mut object = object.clone();
    *unknown = strategy.normalize(&mut object)?;
    strategy.set_defaults(&mut object);
    // The entries that a create leaves are validated.
    if !object["metadata"]["managedFields"].is_null() {
        Writer { resource, manager: "", subresource: "", now: DateTime::UNIX_EPOCH }.update(None, &mut object);
    }
    if resource.namespaced && meta::text(&object, "namespace").is_empty() {
        meta::set(&mut object, "namespace", json!("default"));
    }
    let prefix = meta::text(&object, "generateName").to_owned();
    if meta::text(&object, "name").is_empty() && !prefix.is_empty() {
        meta::set(&mut object, "name", json!(format!("{prefix}xxxxx")));
    }
    strategy.prepare_for_create(&mut object);
    Ok(object)
}

/// Matches `BeforeCreate`: the kind's own rules come first, then the common ones.
fn creation_errors(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let rule = resource.strategy.name_rule();
    let own = resource.strategy.validate_create(object);
    if rule == NameRule::PathSegment {
        return if own.is_empty() { meta::validate(object, resource.namespaced, rule) } else { own };
    }
    let mut errors = meta::validate(object, resource.namespaced, rule);
    if resource.strategy.is_native() {
        errors.extend(meta::bare_finalizer_errors(object));
    }
    errors.extend(own);
    once(resource, errors)
}

/// The errors, without repetition where declarative validation removes it. Matches `FilterCoveredHandwrittenErrors` of
/// k8s.io/apimachinery `pkg/api/validate`.
fn once(resource: &Resource, errors: Vec<FieldError>) -> Vec<FieldError> {
    if !resource.strategy.is_native() {
        return errors;
    }
    let mut known = HashSet::new();
    steps::each(errors.into_iter()).filter(|error| known.insert(error.clone())).collect()
}

/// Replaces an object, its status or (of a namespace) its finalizers.
pub fn update(store: &mut Store, call: &Call, pending: &mut PendingWrite) -> Result<Written> {
    let target = &call.target;
    let options = call.write_options("UpdateOptions", None)?;
    let format = call.format()?;
    let decoded = body::decode_object(&target.resource, &call.body, format, options.validation)?;
    pending.warnings.extend(decoded.warnings);
    let mut object = decoded.object;
    match_namespace(target, &mut object)?;
    check_name(target, &object)?;
    pending.warnings.extend(meta::dedup_owners(&mut object));
    let id = super::read::id(target);
    let Some(old) = super::read::current(store, target) else {
        if !target.resource.strategy.allow_create_on_update() {
            return Err(status::not_found(&target.resource.qualified(), &target.name));
        }
        writer(target, &options, pending.now).update(None, &mut object);
        check_namespace(store, target, &target.name)?;
        let object = insert(store, target, object, &options, pending)?;
        return Ok(Written { object, created: true });
    };
    let (uid, known) = (meta::text(&object, "uid"), meta::text(&old, "uid"));
    if !uid.is_empty() && uid != known {
        return Err(uid_conflict(target, &id, uid, known));
    }
    if target.subresource == "finalize" {
        object = finalized(&old, &object);
    }
    writer(target, &options, pending.now).update(Some(&old), &mut object);
    let object = replace(store, target, &id, &old, object, &options, pending)?;
    Ok(Written { object, created: false })
}

/// The namespace with the new `spec.finalizers`; `finalize` changes nothing else.
fn finalized(old: &Value, new: &Value) -> Value {
    let mut object = old.clone();
    let version = meta::text(new, "resourceVersion");
    meta::set(&mut object, "resourceVersion", if version.is_empty() { Value::Null } else { json!(version) });
    let wanted = new["spec"]["finalizers"].clone();
    let none = wanted.as_array().is_none_or(Vec::is_empty);
    match object["spec"].as_object_mut() {
        Some(spec) if none => {
            spec.remove("finalizers");
        }
        _ => object["spec"]["finalizers"] = wanted,
    }
    object
}

fn uid_conflict(target: &Target, id: &Id, uid: &str, known: &str) -> Box<status::Status> {
    let resource = &target.resource;
    let path = format!("/registry/{}/{}", resource.plural, id.key.trim_start_matches('/'));
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {uid}, UID in object meta: {known}"
    );
    status::conflict(&resource.qualified(), &target.name, &why)
}

/// Matches `checkName`.
pub fn check_name(target: &Target, object: &Value) -> Result<()> {
    let (name, url) = (meta::text(object, "name"), &target.name);
    if name.is_empty() {
        let message = format!("the name of the object ({url} based on URL) was undeterminable: name must be provided");
        return Err(status::bad_request(message));
    }
    if name != url {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({url})");
        return Err(status::bad_request(message));
    }
    Ok(())
}

/// Validates an object and stores it in place of `old`. Matches `Store.Update`.
pub fn replace(
    store: &mut Store,
    target: &Target,
    id: &Id,
    old: &Value,
    mut object: Value,
    options: &WriteOptions,
    pending: &mut PendingWrite,
) -> Result<Document> {
    let resource = &target.resource;
    let current = meta::text(old, "resourceVersion");
    let given = meta::text(&object, "resourceVersion").to_owned();
    if !given.is_empty() && given.parse::<u64>().is_err() {
        let quoted = quote(&given);
        return Err(status::unknown(format!("strconv.ParseUint: parsing {quoted}: invalid syntax")));
    }
    if given.is_empty() || given == "0" {
        if !resource.strategy.allow_unconditional_update() {
            let error = invalid_field("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(status::invalid(&resource.qualified(), &target.name, &[error]));
        }
        meta::set(&mut object, "resourceVersion", json!(current));
    } else if given != current {
        return Err(status::conflict(&resource.qualified(), &target.name, LOCK_MESSAGE));
    }
    let admission = admission::Write { target, options, old: Some(old) };
    let mut object = admission.mutate(store, object, pending)?;
    let errors = prepare_update(target, &mut object, old);
    if !errors.is_empty() {
        return Err(status::invalid(&resource.qualified_kind(), meta::text(&object, "name"), &errors));
    }
    admission.validate(store, &object, pending)?;
    if target.subresource.is_empty() {
        pending.warnings.extend(resource.strategy.warnings(&object, Some(old)));
    }
    managers::ignore_times(&mut object, old);
    if is_finished(resource, &object, old) {
        if !options.dry_run {
            store.remove(id);
        }
        return Ok(object.into());
    }
    if object == *old || options.dry_run {
        return Ok(object.into());
    }
    Ok(store.put(id, object).into())
}

/// Matches `BeforeUpdate`.
fn prepare_update(target: &Target, object: &mut Value, old: &Value) -> Vec<FieldError> {
    let strategy = &target.resource.strategy;
    let generation = old["metadata"]["generation"].clone();
    meta::set(object, "generation", generation);
    let status_only = target.subresource == "status";
    match target.subresource.as_str() {
        "" => strategy.prepare_for_update(object, old),
        "status" => strategy.prepare_for_status_update(object, old),
        _ => {}
    }
    if meta::text(object, "uid").is_empty() {
        meta::set(object, "uid", old["metadata"]["uid"].clone());
    }
    meta::set(object, "creationTimestamp", old["metadata"]["creationTimestamp"].clone());
    if meta::is_deleting(old) {
        meta::set(object, "deletionTimestamp", old["metadata"]["deletionTimestamp"].clone());
    }
    let grace = &old["metadata"]["deletionGracePeriodSeconds"];
    if !grace.is_null() && object["metadata"]["deletionGracePeriodSeconds"].is_null() {
        meta::set(object, "deletionGracePeriodSeconds", grace.clone());
    }
    let mut errors = meta::validate(object, target.resource.namespaced, NameRule::PathSegment);
    errors.extend(meta::validate_update(object, old));
    // The rules of most kinds repeat the metadata rules; the status of CronJobs does not.
    let twice = strategy.name_rule() != NameRule::PathSegment
        && !(status_only && target.resource.kind == "CronJob")
        && target.subresource != "finalize";
    if twice {
        errors.extend(meta::validate_update(object, old));
        if strategy.is_native() {
            errors.extend(meta::bare_finalizer_errors(object));
        }
    }
    match target.subresource.as_str() {
        "" => errors.extend(strategy.validate_update(object, old)),
        "status" => errors.extend(strategy.validate_status_update(object, old)),
        _ => {}
    }
    once(&target.resource, errors)
}

/// Whether this update removed the last finalizer of a terminating object. Matches `ShouldDeleteDuringUpdate`.
fn is_finished(resource: &Resource, object: &Value, old: &Value) -> bool {
    let waits = resource.kind == "Namespace" && object["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
    let grace = old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    meta::finalizers(object).is_empty() && meta::is_deleting(old) && grace == 0 && !waits
}

/// Stores the result of a patch: in place of `old`, or as a new object.
pub fn store_patched(
    store: &mut Store,
    target: &Target,
    old: Option<&Value>,
    mut object: Value,
    options: &WriteOptions,
    pending: &mut PendingWrite,
) -> Result<Written> {
    match_namespace(target, &mut object)?;
    check_name(target, &object)?;
    pending.warnings.extend(meta::dedup_owners(&mut object));
    if let Some(old) = old {
        let id = super::read::id(target);
        let object = replace(store, target, &id, old, object, options, pending)?;
        return Ok(Written { object, created: false });
    }
    check_namespace(store, target, &target.name)?;
    let object = insert(store, target, object, options, pending)?;
    Ok(Written { object, created: true })
}

/// Rejects the problems of strict decoding, or returns them as warnings.
pub fn judge_problems(
    problems: Vec<String>,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
    refuse: impl FnOnce(&str) -> Box<status::Status>,
) -> Result<()> {
    match validation {
        _ if problems.is_empty() => Ok(()),
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            warnings.extend(problems);
            Ok(())
        }
        FieldValidation::Strict => Err(refuse(&format!("strict decoding error: {}", problems.join(", ")))),
    }
}
