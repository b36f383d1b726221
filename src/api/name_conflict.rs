//! batch/v1 CronJobs, reduced to their names.
//!
//! Guarantee: a record holds only what shows that the CronJob exists.

use serde::Deserialize;

use super::batch_v1::decode;
use super::{ControllerKind, DecodeError, Interner, Object, ObjectName, ResourceKind, ResourceVersion, Uid};

/// Shows that a batch/v1 CronJob of that name exists.
#[derive(Debug)]
pub struct NameConflict {
    name: ObjectName,
    uid: Uid,
    resource_version: ResourceVersion,
}

#[derive(Deserialize)]
struct Wire {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    uid: Uid,
    #[serde(default)]
    resource_version: String,
}

impl Object for NameConflict {
    const RESOURCE: ResourceKind = ControllerKind::CRON_JOB.parent;

    fn object_name(&self) -> &ObjectName {
        &self.name
    }

    fn uid(&self) -> &Uid {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let Wire { metadata } = decode(json, Self::RESOURCE.kind)?;
        Ok(Self {
            name: ObjectName { namespace: interner.intern(&metadata.namespace), name: metadata.name.into() },
            uid: metadata.uid,
            resource_version: metadata.resource_version.as_str().into(),
        })
    }
}
