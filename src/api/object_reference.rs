//! References from one object to another.
//!
//! Guarantee: a reference that was read from an object is written back with the same fields.

use serde::{Deserialize, Serialize};

use super::Uid;

/// core/v1 `ObjectReference`: an entry of `status.active`, or what an Event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Kind of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID of the object.
    #[serde(default = "no_uid", skip_serializing_if = "is_no_uid")]
    pub uid: Uid,
    /// API group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The version of the object that was seen when the reference was made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// A part of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

fn no_uid() -> Uid {
    Uid::new("")
}

fn is_no_uid(uid: &Uid) -> bool {
    *uid == no_uid()
}
