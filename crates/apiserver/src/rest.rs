//! Request routing: from an HTTP request to a [`Call`].
//!
//! Guarantees: paths, methods and their errors (404, 405, 406, 415) are those of the real server.
//!
//! Matches `RequestInfoFactory` and the installer of k8s.io/apiserver `pkg/endpoints`.

use std::sync::Arc;

use apimachinery::field::{FieldError, forbidden_field, required_field, unsupported_field};
use apimachinery::status::{self, Qualified, Result};
use axum::body::Bytes;
use http::{Method, Request, header};
use serde_json::Value;

use super::body::{FieldValidation, Format};
use super::delete::dry_run_error;
use super::meta::{LONGEST_MANAGER, manager_errors};
use super::negotiate::{IncludeObject, Output, Transform};
use super::patch::PatchType;
use super::query::{Query, percent_decode};
use super::registry::Resource;

/// The resource or object that a path addresses.
#[derive(Clone, Debug)]
pub struct Target {
    /// The kind.
    pub resource: Arc<Resource>,
    /// The namespace; empty for all namespaces and for cluster-scoped kinds.
    pub namespace: String,
    /// The name; empty for the collection.
    pub name: String,
    /// `status`, `finalize`, `log` or empty.
    pub subresource: String,
    /// Whether the path has the deprecated `/watch/` prefix.
    pub watch_prefix: bool,
}

/// The result of routing a path.
#[derive(Debug)]
pub enum Route {
    /// A resource or an object.
    Target(Box<Target>),
    /// A served group and version with an unknown resource.
    Unknown,
    /// Anything else: discovery, health, or nothing.
    Other,
}

/// Parses a path.
pub fn route<'a>(path: &str, resources: impl Iterator<Item = &'a Arc<Resource>> + Clone) -> Route {
    let parts: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(|part| percent_decode(part, false)).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Route::Other,
    };
    if rest.is_empty() {
        return Route::Other;
    }
    let known_group = group.is_empty() || resources.clone().any(|r| r.group == group);
    let mut served = resources.filter(|r| r.group == group && r.version == version);
    if served.clone().next().is_none() {
        return if known_group { Route::Unknown } else { Route::Other };
    }
    let (watch_prefix, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, plural, rest @ ..] if !matches!(*plural, "status" | "finalize") => {
            (*namespace, [&[*plural], rest].concat())
        }
        rest => ("", rest.to_vec()),
    };
    let (plural, name, subresource) = match rest.as_slice() {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Route::Unknown,
    };
    let Some(resource) = served.find(|r| r.plural == plural) else { return Route::Unknown };
    let known = match subresource {
        "" => true,
        "status" => resource.has_status,
        "finalize" => resource.kind == "Namespace",
        "log" => resource.kind == "Pod",
        _ => false,
    };
    // A namespaced object is addressed only within its namespace, and a cluster-scoped one only outside of any.
    let misplaced = resource.namespaced == namespace.is_empty() && !(resource.namespaced && name.is_empty());
    let nowhere = resource.strategy.is_virtual() && !name.is_empty();
    if !known || misplaced || nowhere {
        return Route::Unknown;
    }
    Route::Target(Box::new(Target {
        resource: Arc::clone(resource),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        watch_prefix,
    }))
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// List or watch.
    List,
    /// Create an object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
    /// Read a container's log.
    Log,
}

impl Target {
    /// The verb for an HTTP method.
    pub fn verb(&self, method: &Method) -> Result<Verb> {
        let virtual_ = self.resource.strategy.is_virtual();
        let everywhere = self.resource.namespaced && self.namespace.is_empty();
        let verb = match (self.name.is_empty(), self.subresource.as_str(), method.as_str()) {
            (true, _, "POST") if !everywhere => Some(Verb::Create),
            (true, _, "GET") if !virtual_ => Some(Verb::List),
            (true, _, "DELETE") if !everywhere && !virtual_ && self.resource.kind != "Namespace" => {
                Some(Verb::DeleteCollection)
            }
            (false, "log", "GET") => Some(Verb::Log),
            (false, "", "GET") if self.watch_prefix => Some(Verb::List),
            (false, "" | "status", "GET") => Some(Verb::Get),
            (false, "" | "status" | "finalize", "PUT") => Some(Verb::Update),
            (false, "" | "status", "PATCH") => Some(Verb::Patch),
            (false, "", "DELETE") => Some(Verb::Delete),
            _ => None,
        };
        let allowed = verb.filter(|verb| !self.watch_prefix || *verb == Verb::List);
        allowed.ok_or_else(|| status::generic(405, ""))
    }
}

/// A parsed request.
#[derive(Debug)]
pub struct Call {
    /// The resource or object.
    pub target: Target,
    /// The decoded query.
    pub query: Query,
    /// `Content-Type`.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
    /// The form of the answer.
    pub output: Output,
    user_agent: String,
}

/// The common options of writes.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// The field manager, from the query or from `User-Agent`.
    pub manager: String,
    /// How unknown members are treated.
    pub validation: FieldValidation,
    /// Whether an apply takes over fields from other managers.
    pub force: bool,
}

impl Call {
    /// Parses headers and query.
    pub fn new(target: Target, verb: Verb, request: Request<Bytes>) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let content_type = header(header::CONTENT_TYPE).to_owned();
        if verb == Verb::Patch {
            check_patch_type(&target, &content_type)?;
        }
        let user_agent = header(header::USER_AGENT).to_owned();
        let output = match verb {
            // Logs are always text.
            Verb::Log => Output { include: IncludeObject::Metadata, ..Output::JSON },
            _ => Output::negotiate(header(header::ACCEPT), &query, &user_agent, verb == Verb::List)?,
        };
        // What is not stored has no columns. Matches the storage of reviews, which implements no `TableConvertor`.
        if output.transform == Transform::Table && target.resource.strategy.is_virtual() {
            return Err(Output::not_acceptable());
        }
        Ok(Self { target, query, content_type, body, output, user_agent })
    }

    /// The media type of the body.
    pub fn format(&self) -> Result<Format> {
        Format::from_content_type(&self.content_type)
    }

    /// The options of a write. `kind` is the name of the options' kind in messages; `is_apply` is `None` unless the write is a
    /// patch.
    pub fn write_options(&self, kind: &str, is_apply: Option<bool>) -> Result<WriteOptions> {
        let manager = self.query.get("fieldManager").unwrap_or_default();
        let dry_run = self.query.all("dryRun");
        let validation = self.query.get("fieldValidation").unwrap_or_default();
        let force = self.query.boolean("force");
        let mut errors: Vec<FieldError> = Vec::new();
        if is_apply == Some(true) && manager.is_empty() {
            errors.push(required_field("fieldManager", "is required for apply patch"));
        }
        if is_apply == Some(false) && force.is_some() {
            errors.push(forbidden_field("force", "may not be specified for non-apply patch"));
        }
        errors.extend(manager_errors(manager, "fieldManager"));
        errors.extend(dry_run_error(&dry_run));
        let validation = match validation {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(unsupported_field("fieldValidation", &Value::from(other), &supported));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(status::invalid(&Qualified::meta(kind), "", &errors));
        }
        let manager = if manager.is_empty() { agent_prefix(&self.user_agent) } else { manager.to_owned() };
        Ok(WriteOptions { dry_run: !dry_run.is_empty(), manager, validation, force: force.unwrap_or_default() })
    }
}

/// Rejects a patch type that the kind does not accept.
fn check_patch_type(target: &Target, content_type: &str) -> Result<()> {
    match PatchType::from_content_type(content_type) {
        None => Err(status::generic(415, "415: Unsupported Media Type")),
        Some(PatchType::Strategic) if !target.resource.strategy.takes_strategic_patches() => {
            Err(status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ))
        }
        Some(_) => Ok(()),
    }
}

/// The part of a user agent that names the manager. Matches `prefixFromUserAgent`.
fn agent_prefix(user_agent: &str) -> String {
    let prefix = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for c in prefix.chars().filter(|c| !c.is_control()) {
        if manager.len() + c.len_utf8() > LONGEST_MANAGER {
            break;
        }
        manager.push(c);
    }
    manager
}
