//! batch/v1 CronJobs, reduced to their names.
//!
//! Guarantee: a record holds only what shows that the CronJob exists.

use serde::Deserialize;

use super::batch_v1::{decode, wire};
use super::{
    ControllerKind, DecodeError, Interner, Object, ObjectName, ResourceKind, ResourceVersion, Uid, identity_at,
};

/// Shows that a batch/v1 CronJob of that name exists.
#[derive(Debug)]
pub struct NameConflict {
    name: ObjectName,
    uid: Uid,
    resource_version: ResourceVersion,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    metadata: wire::Metadata<'a>,
}

impl Object for NameConflict {
    const RESOURCE: ResourceKind = ControllerKind::CRON_JOB.parent;

    identity_at!(self);

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let Wire { metadata } = decode(json, Self::RESOURCE.kind)?;
        Ok(Self {
            name: metadata.object_name(interner),
            uid: metadata.uid,
            resource_version: (&*metadata.resource_version).into(),
        })
    }
}
