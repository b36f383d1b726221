//! Conditions of a status.
//!
//! Guarantee: a condition that somebody else wrote is carried through as it is.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::job_template::time;

/// One side of how an object is. Matches metav1 `Condition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which side, in camel case.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation of the object that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    #[serde(default, with = "time")]
    pub last_transition_time: Option<DateTime<Utc>>,
    /// Why, for programs.
    #[serde(default)]
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
}
