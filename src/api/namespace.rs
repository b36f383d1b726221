//! Namespaces, reduced to what they say about CronJobs.
//!
//! Guarantee: a record holds the name, the version and the restriction, and no other annotation or label.

use std::sync::Arc;

use serde::Deserialize;

use super::batch_v1::{decode, wire};
use super::policy::{NOT_BEFORE, Restriction};
use super::{DecodeError, Interner, Object, ObjectName, ResourceKind, ResourceVersion, Uid, identity_at};

/// A Namespace.
#[derive(Debug)]
pub struct Namespace {
    name: ObjectName,
    uid: Uid,
    resource_version: ResourceVersion,
    /// What its annotations leave out of the slots of its CronJobs.
    pub restriction: Option<Arc<Restriction>>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    metadata: wire::Metadata<'a>,
}

impl Namespace {
    /// The key of a Namespace in a store: it is in no Namespace itself.
    pub fn key(name: &Arc<str>) -> ObjectName {
        ObjectName { namespace: "".into(), name: Arc::clone(name) }
    }

    /// Whether it leaves the same slots as another version.
    pub fn leaves_the_same_slots(&self, other: &Self) -> bool {
        Restriction::is_same(self.restriction.as_deref(), other.restriction.as_deref())
    }
}

impl Object for Namespace {
    const RESOURCE: ResourceKind = ResourceKind::NAMESPACE;

    identity_at!(self);

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let Wire { metadata } = decode(json, Self::RESOURCE.kind)?;
        Ok(Self {
            name: metadata.object_name(interner),
            restriction: Restriction::read(&metadata.annotations.policies, || metadata.annotation_written(NOT_BEFORE))
                .map(Arc::new),
            uid: metadata.uid,
            resource_version: (&*metadata.resource_version).into(),
        })
    }
}
