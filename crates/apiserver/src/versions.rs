//! The versions of a kind.
//!
//! Guarantees: an object is stored in one version of its definition, and clients see it in the one that they ask for. A conversion
//! changes `apiVersion`, and then the schema of the version removes fields and sets defaults, as those of the definition do for what
//! was stored before it was changed. Kinds of one version whose definition never changed are neither copied nor read. Pure.
//!
//! Matches the conversion `None` of k8s.io/apiextensions-apiserver `pkg/apiserver/conversion`, and its `schemaCoercingDecoder`.

use serde_json::Value;

use super::object::{Document, Entry, List, Object};
use super::registry::Resource;
use super::store::Collection;

impl Collection {
    /// An object as clients of a version see it.
    pub fn shown(&self, wanted: &Resource, entry: &Entry) -> Entry {
        if !self.is_redefined && wanted.version == self.resource.version {
            return entry.clone();
        }
        let mut object = (**entry.object()).clone();
        read(&self.resource, &mut object);
        convert(wanted, &mut object);
        Entry::Whole(Object::new(object))
    }

    /// The document of an answer, whose objects are as they are stored.
    pub fn shown_document(&self, wanted: &Resource, document: Document) -> Document {
        match document {
            Document::Object(entry) => Document::Object(self.shown(wanted, &entry)),
            Document::List(List { resource, metadata, items }) => {
                let items = items.iter().map(|entry| self.shown(wanted, entry)).collect();
                Document::List(List { resource, metadata, items })
            }
            tree @ Document::Tree(_) => tree,
        }
    }

    /// An object as it is stored.
    pub fn stored(&self, mut object: Value) -> Value {
        if self.served.iter().any(|served| served.version != self.resource.version) {
            convert(&self.resource, &mut object);
        }
        object
    }
}

fn convert(wanted: &Resource, object: &mut Value) {
    let version = wanted.api_version();
    if object["apiVersion"] != version.as_str() {
        object["apiVersion"] = version.into();
        read(wanted, object);
    }
}

/// Removes and sets what the schema says. Nothing of a stored object has a wrong type, since the fields of its metadata were decoded
/// before, and those of custom resources are not decoded.
fn read(resource: &Resource, object: &mut Value) {
    let _ = resource.strategy.normalize(object);
}
