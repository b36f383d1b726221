//! The slim view of the API objects this controller works on.
//!
//! Guarantees: decoding keeps only what `sync` needs. A field of the wrong type fails the decoding of that one object
//! and of no other. The Job template passes to the API server untouched: it is never decoded into types that could drop
//! a field. Times are `chrono` here; the client's own time type stays inside this module.

use std::fmt;
use std::sync::Arc;

mod active_list;
pub mod api_example;
pub mod backfill;
pub mod batch_v1;
mod condition;
mod controller_kind;
mod controller_ref;
pub mod crd;
mod error;
mod interner;
pub mod job_changes;
pub mod job_template;
pub mod manage;
mod name_conflict;
mod namespace;
mod object_reference;
pub mod policy;
mod published;
mod recurrence;
mod resource_version;
pub mod template_schema;
pub mod tutorial_v1;
mod uid;

pub use active_list::ActiveList;
pub use condition::Condition;
pub use controller_kind::{ControllerKind, CountedFromPlace, KindSpec};
pub use controller_ref::ControllerRef;
pub use error::{ApiError, Delivery, FailureClass, shortened};
pub use interner::Interner;
pub use manage::Manage;
pub use name_conflict::NameConflict;
pub use namespace::Namespace;
pub use object_reference::ObjectReference;
pub use published::{Publish, Published};
pub use recurrence::Recurrence;
pub use resource_version::ResourceVersion;
pub use uid::Uid;

/// The `Accept` header of a write of whose answer only the metadata is read: the server encodes no more, where it can.
pub const ACCEPT_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// The query of a write. By default the server validates fields strictly, only to send warnings that the controller
/// does not read.
pub const NO_FIELD_VALIDATION: &str = "?fieldValidation=Ignore";

/// A namespaced object's name: the key of stores and of the workqueue. Matches client-go's `cache.ObjectName`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    /// The namespace, interned by the store that holds the object.
    pub namespace: Arc<str>,
    /// The name inside the namespace.
    pub name: Arc<str>,
}

impl ObjectName {
    /// The name `namespace/name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The namespace, as a workqueue's group of keys.
    pub fn namespace_of(&self) -> &str {
        &self.namespace
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a kind of object lives on the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceKind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural resource name, as in URLs.
    pub plural: &'static str,
    /// Kind, as in `kind:`.
    pub kind: &'static str,
}

impl ResourceKind {
    /// Namespaces.
    pub const NAMESPACE: Self = Self { group: "", version: "v1", plural: "namespaces", kind: "Namespace" };

    /// The collection's URL path, of one namespace or (with `None`) of all.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// `plural.group`, or the plural alone in the core group, as messages name a resource.
    pub fn qualified_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The `apiVersion` of objects of this kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    /// Information only.
    Normal,
    /// Something may need attention.
    Warning,
}

impl EventType {
    /// The value of the Event's `type` field.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One object could not be decoded.
#[derive(Debug, thiserror::Error)]
#[error("decode {kind}: {source}")]
pub struct DecodeError {
    /// The kind that was expected.
    pub kind: &'static str,
    /// The decoder's error, with its position.
    pub source: serde_json::Error,
}

/// What a store and a reflector need to know about an object.
pub trait Object: fmt::Debug + Send + Sync + 'static {
    /// Where objects of this type live, unless an informer is given another resource.
    const RESOURCE: ResourceKind;

    /// Namespace and name.
    fn object_name(&self) -> &ObjectName;
    /// The object's UID.
    fn uid(&self) -> &Uid;
    /// The object's resource version: opaque but for equality, and for order within one resource.
    fn resource_version(&self) -> &str;
    /// The UID of the owner reference with `controller: true`: the value of the store's index.
    fn controller_uid(&self) -> Option<&Uid> {
        None
    }
    /// Decodes one object from its JSON text.
    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError>
    where
        Self: Sized;
    /// Decodes one object as a cache keeps it: without long, seldom needed parts. Those are read from the API server on
    /// demand.
    fn decode_for_cache(json: &str, interner: &Interner) -> Result<Self, DecodeError>
    where
        Self: Sized,
    {
        Self::decode(json, interner)
    }
    /// Called before this version replaces `previous` in a store, so that unchanged parts can share memory.
    fn succeed(&mut self, previous: &Self) {
        let _ = previous;
    }
}

/// The first three methods of [`Object`], from the fields `name`, `uid` and `resource_version` at a place.
macro_rules! identity_at {
    ($this:ident $(.$field:ident)*) => {
        fn object_name(&$this) -> &$crate::api::ObjectName {
            &$this$(.$field)*.name
        }

        fn uid(&$this) -> &$crate::api::Uid {
            &$this$(.$field)*.uid
        }

        fn resource_version(&$this) -> &str {
            &$this$(.$field)*.resource_version
        }
    };
}
pub(crate) use identity_at;

/// Orders two resource versions of one resource; `None` where either is not a number.
///
/// Kubernetes declares them comparable within a resource (KEP-5504).
pub fn compare_resource_versions(a: &str, b: &str) -> Option<std::cmp::Ordering> {
    Some(a.parse::<u64>().ok()?.cmp(&b.parse::<u64>().ok()?))
}

/// Whether what shows every change up to version `seen` shows that of version `wanted`, of the same kind of objects.
pub fn shows(seen: &str, wanted: &str) -> bool {
    compare_resource_versions(seen, wanted).is_some_and(std::cmp::Ordering::is_ge)
}

#[cfg(test)]
mod tests;
