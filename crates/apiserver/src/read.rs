//! Gets and lists.
//!
//! Guarantees: a list is consistent: all its pages show the state of one revision, whatever changes meanwhile. Once the history
//! no longer reaches that revision, the server answers 410 with a token that continues inconsistently.
//!
//! Matches k8s.io/apiserver `pkg/storage/etcd3/store.go` (`GetList`), `pkg/storage/continue.go` and
//! `pkg/storage/cacher/delegator.go`.

use std::sync::Arc;

use apimachinery::status::{self, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::object::{Entry, List, Object};
use super::query::{ListOptions, Query, parse_revision};
use super::registry::Resource;
use super::rest::Target;
use super::store::{Collection, Id, Store, Undo, key};

const LIST_EXPIRED: &str = "The resourceVersion for the provided list is too old.";
const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You \
                                can start a new list without the continue parameter, or use the continue token in \
                                this response to retrieve the remainder of the results. Continuing with the provided \
                                token results in an inconsistent list - objects that were created, modified, or \
                                deleted between the time the first chunk was returned and now may show up in the list.";

/// The collection of a target.
pub fn collection<'a>(store: &'a Store, resource: &Resource) -> Result<&'a Collection> {
    store.collections.get(&resource.qualified_name()).ok_or_else(|| status::generic(404, ""))
}

/// The id of a target's object.
pub fn id(target: &Target) -> Id {
    Id { collection: target.resource.qualified_name(), key: key(&target.namespace, &target.name) }
}

/// Returns one object.
pub fn get(store: &Store, target: &Target, query: &Query) -> Result<Entry> {
    let wanted = parse_revision(query.get("resourceVersion").unwrap_or_default()).map_err(status::unknown)?;
    if wanted > store.revision {
        return Err(status::too_large_resource_version(wanted, store.revision));
    }
    match store.entry(&id(target)) {
        // It is converted with the answer.
        Some(entry) => Ok(entry.clone()),
        None => Err(status::not_found(&target.resource.qualified(), &target.name)),
    }
}

/// The object of a target in its version, for a write.
pub fn current(store: &Store, target: &Target) -> Option<Arc<Object>> {
    let collection = collection(store, &target.resource).ok()?;
    let entry = collection.objects.get(&id(target).key)?;
    Some(collection.shown(&target.resource, entry).object())
}

/// One page of a list.
struct Page {
    /// The revision of the list.
    revision: u64,
    /// The first key of the page.
    start: String,
    /// Whether the page continues an earlier one.
    continued: bool,
}

/// Lists objects. A page reads only its own objects and the changes since the first page.
pub fn list(store: &Store, target: &Target, options: &ListOptions) -> Result<List> {
    let collection = collection(store, &target.resource)?;
    // With a namespace, or a field selector for one, only that range of keys is read.
    let namespace = match options.fields.exact("metadata.namespace") {
        Some(selected) if target.namespace.is_empty() && target.resource.namespaced => selected,
        _ => &target.namespace,
    };
    let whole = namespace.is_empty() && target.resource.namespaced;
    let prefix = if whole { String::new() } else { format!("{namespace}/") };
    let page = page(store, options)?;
    let undo = if page.revision == store.revision { Some(Undo::new()) } else { collection.undo(page.revision) };
    let undo = undo.ok_or_else(|| forgotten(&page))?;
    // The limit applies unless the resourceVersion is "0".
    let limit = if options.resource_version == "0" { 0 } else { options.limit };
    Ok(fill(collection, &target.resource, &undo, options, &page, &prefix, limit))
}

fn fill(
    collection: &Collection,
    resource: &Arc<Resource>,
    undo: &Undo<'_>,
    options: &ListOptions,
    page: &Page,
    prefix: &str,
    limit: usize,
) -> List {
    let mut items = Vec::new();
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".to_owned(), page.revision.to_string().into());
    let first = format!("{prefix}{}", page.start);
    let objects = collection.range(undo, &first);
    let mut rest = objects.take_while(|(key, _)| key.starts_with(prefix)).peekable();
    while let Some((key, entry)) = rest.next() {
        if options.selects(entry, resource) {
            items.push(entry.clone());
        }
        if limit > 0
            && items.len() == limit
            && let Some((following, _)) = rest.peek()
        {
            // Within a namespace, the real server's keys begin with the slash.
            let slash = if prefix.is_empty() { "" } else { "/" };
            let next = format!("{slash}{}\0", &key[prefix.len()..]);
            metadata.insert("continue".to_owned(), encode_token(&next, i128::from(page.revision)).into());
            if options.labels.is_empty() && options.fields.is_empty() {
                // No key contains a character greater than this.
                let end = format!("{prefix}\u{10FFFF}");
                metadata.insert("remainingItemCount".to_owned(), collection.count(undo, following, &end).into());
            }
            break;
        }
    }
    List { resource: Arc::clone(resource), metadata, items }
}

fn page(store: &Store, options: &ListOptions) -> Result<Page> {
    let invalid = |error: String| status::bad_request(format!("invalid resource version: {error}"));
    if !options.continue_token.is_empty() {
        let (start, revision) = decode_token(&options.continue_token)?;
        if !options.resource_version.is_empty() && options.resource_version != "0" {
            return Err(status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let revision = u64::try_from(revision).unwrap_or(store.revision);
        return Ok(Page { revision: revision.min(store.revision), start, continued: true });
    }
    let wanted = options.revision().map_err(invalid)?;
    if wanted > store.revision {
        return Err(status::too_large_resource_version(wanted, store.revision));
    }
    // An explicit revision with a limit means exactly that revision.
    let exact = options.resource_version_match == "Exact"
        || (options.resource_version_match.is_empty() && options.limit > 0 && wanted > 0);
    let revision = if exact { wanted } else { store.revision };
    Ok(Page { revision, start: String::new(), continued: false })
}

fn forgotten(page: &Page) -> Box<status::Status> {
    if !page.continued {
        return status::expired(LIST_EXPIRED);
    }
    let mut status = status::expired(CONTINUE_EXPIRED);
    status.continue_token = Some(encode_token(&page.start, -1));
    status
}

fn encode_token(start: &str, revision: i128) -> String {
    // The members are in the real server's order, so that tokens are equal.
    let start = Value::from(start);
    URL_SAFE_NO_PAD.encode(format!(r#"{{"v":"meta.k8s.io/v1","rv":{revision},"start":{start}}}"#))
}

/// The start key and the revision of a token; -1 means the newest revision.
fn decode_token(token: &str) -> Result<(String, i64)> {
    let refuse = |why: &str| status::bad_request(format!("invalid continue token: {why}"));
    let generic = |why: String| refuse(&format!("continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|error| generic(format!("illegal base64 data at input byte {}", offset(&error))))?;
    let value = super::body::parse_json(&bytes).map_err(generic)?.value;
    if value["v"] != "meta.k8s.io/v1" {
        let version = value["v"].as_str().unwrap_or_default();
        return Err(refuse(&format!(
            "continue key is not valid: server does not recognize this encoded version {version}"
        )));
    }
    let revision = value["rv"].as_i64().unwrap_or_default();
    if revision == 0 {
        let why = "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
        return Err(refuse(why));
    }
    let start = value["start"].as_str().unwrap_or_default();
    if start.is_empty() {
        return Err(refuse("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"));
    }
    if start.split('/').any(|part| part == ".." || part == ".") {
        return Err(refuse(&format!("continue key is not valid: {start}")));
    }
    Ok((start.trim_start_matches('/').to_owned(), revision))
}

fn offset(error: &base64::DecodeError) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _)
        | base64::DecodeError::InvalidLastSymbol(at, _)
        | base64::DecodeError::InvalidLength(at) => *at,
        base64::DecodeError::InvalidPadding => 0,
    }
}
