//! Decodes the bytes of a list's object or a watch line into objects, in two stages. Pure.
//!
//! Guarantee: the envelope is read first and each object separately, so an object that cannot be decoded is one
//! [`MalformedObject`] and does not affect others. Objects' text is borrowed from the bytes and never copied. A line in the
//! form that servers write is read in one pass, by [`decode_quickly`], which accepts nothing that the two stages would
//! refuse. Error messages about unreadable text are short, however long the text.

use std::borrow::Cow;

use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ServerStatus;
use super::handlers::MalformedObject;
use crate::api::{Interner, Object, ObjectName, shortened};
use crate::client::retry_after;

/// How many bytes of a server's or a decoder's message are kept. Both quote their input.
pub(super) const MAX_MESSAGE: usize = 512;

/// The part of a list's page around its objects.
#[derive(Deserialize)]
pub(super) struct PageEnvelope<'a> {
    #[serde(default)]
    pub(super) metadata: PageMetadata,
    /// Objects that were not taken out before, because their key was written in an unusual way.
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

/// `ListMeta`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMetadata {
    pub(super) resource_version: String,
    #[serde(rename = "continue")]
    pub(super) continue_token: String,
}

impl<'a> PageEnvelope<'a> {
    pub(super) fn decode(text: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &'a RawValue> {
        self.items.iter().flatten().copied()
    }
}

/// One line of a watch.
#[derive(Debug)]
pub(super) enum Event<'a> {
    /// ADDED or MODIFIED: after a gap the two cannot be told apart, so the store decides.
    Upserted(&'a RawValue),
    /// DELETED, with the object's final state.
    Deleted(&'a RawValue),
    /// BOOKMARK: every change up to this resource version was sent.
    Bookmark { resource_version: String, ends_initial_events: bool },
    /// ERROR.
    Error(ServerStatus),
    /// An event type of a newer server.
    Unknown(String),
}

#[derive(Deserialize)]
struct EventEnvelope<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    annotations: Option<BookmarkAnnotations>,
}

#[derive(Deserialize)]
struct BookmarkAnnotations {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<String>,
}

impl<'a> Event<'a> {
    pub(super) fn decode(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        let EventEnvelope { kind, object } = serde_json::from_slice(line)?;
        Ok(match &*kind {
            "ADDED" | "MODIFIED" => Self::Upserted(object),
            "DELETED" => Self::Deleted(object),
            "BOOKMARK" => {
                let Bookmark { metadata } = serde_json::from_str(object.get())?;
                let end = metadata.annotations.and_then(|annotations| annotations.initial_events_end);
                Self::Bookmark {
                    resource_version: metadata.resource_version,
                    ends_initial_events: end.as_deref() == Some("true"),
                }
            }
            "ERROR" => Self::Error(decode_status(object.get().as_bytes(), None)),
            _ => Self::Unknown(shortened(&kind, MAX_MESSAGE).to_owned()),
        })
    }
}

/// The change to an object that was read in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// ADDED or MODIFIED.
    Upserted,
    /// DELETED.
    Deleted,
}

/// Reads a line that is exactly `{"type":"…","object":{…}}` and shows a change of a well-formed object. `None` for any other
/// line, which [`Event::decode`] then reads.
pub(super) fn decode_quickly<T: Object>(
    line: &[u8],
    namespace: Option<&str>,
    interner: &Interner,
) -> Option<(Change, T)> {
    let text = std::str::from_utf8(line).ok()?;
    let (kind, rest) = text.strip_prefix(r#"{"type":""#)?.split_once('"')?;
    let change = match kind {
        "ADDED" | "MODIFIED" => Change::Upserted,
        "DELETED" => Change::Deleted,
        _ => return None,
    };
    // If the line has more than the object, the decoder finds trailing text.
    let json = rest.strip_prefix(r#","object":"#)?.trim_ascii_end().strip_suffix('}')?;
    let object = T::decode_for_cache(json, interner).ok()?;
    fault(&object, namespace).is_none().then_some((change, object))
}

/// Decodes one object in the scope `namespace` (`None`: any).
pub(super) fn decode_object<T: Object>(
    raw: &RawValue,
    namespace: Option<&str>,
    interner: &Interner,
) -> Result<T, MalformedObject> {
    let object = T::decode_for_cache(raw.get(), interner).map_err(|error| malformed(raw, &error.to_string()))?;
    match fault(&object, namespace) {
        Some(fault) => Err(malformed(raw, &fault)),
        None => Ok(object),
    }
}

/// Why an object could not be distinguished from others, or its deletion could never be detected.
fn fault<T: Object>(object: &T, namespace: Option<&str>) -> Option<String> {
    let ObjectName { namespace: own, name } = object.object_name();
    if name.is_empty() {
        return Some("it has no name".to_owned());
    }
    if object.resource_version().is_empty() {
        return Some("it has no resource version".to_owned());
    }
    let namespace = namespace.filter(|namespace| *namespace != &**own)?;
    Some(format!("it is not of the namespace {namespace}"))
}

/// Reads as much of a malformed object's metadata as possible, each field separately.
fn malformed(raw: &RawValue, error: &str) -> MalformedObject {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        namespace: Option<&'a RawValue>,
        #[serde(borrow)]
        name: Option<&'a RawValue>,
        #[serde(borrow)]
        uid: Option<&'a RawValue>,
        #[serde(borrow)]
        resource_version: Option<&'a RawValue>,
    }
    let text = |field: Option<&RawValue>| -> String {
        field.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    };
    let outer = serde_json::from_str(raw.get()).ok();
    let metadata: Option<Metadata<'_>> =
        outer.and_then(|outer: Outer<'_>| serde_json::from_str(outer.metadata.get()).ok());
    let error = shortened(error, MAX_MESSAGE).to_owned();
    let Some(metadata) = metadata else {
        return MalformedObject { error, ..MalformedObject::default() };
    };
    MalformedObject {
        namespace: text(metadata.namespace),
        name: text(metadata.name),
        uid: text(metadata.uid),
        resource_version: text(metadata.resource_version),
        error,
    }
}

/// Reads a Status from an ERROR event, or from the body of an HTTP error with this code. A body that is not a Status becomes
/// the message: proxies answer in plain text.
pub(super) fn decode_status(body: &[u8], code: Option<u16>) -> ServerStatus {
    let status: Status = serde_json::from_slice(body)
        .unwrap_or_else(|_| Status { message: String::from_utf8_lossy(body).into_owned(), ..Status::default() });
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    ServerStatus {
        code: code.unwrap_or(status.code),
        reason: shortened(&status.reason, MAX_MESSAGE).to_owned(),
        message: shortened(&status.message, MAX_MESSAGE).to_owned(),
        retry_after: retry_after(&status),
        resource_version_too_large: causes.any(|cause| cause.reason == "ResourceVersionTooLarge"),
    }
}

#[cfg(test)]
mod tests;
