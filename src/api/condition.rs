//! Conditions of a status.
//!
//! Guarantee: a condition that another author wrote is passed through unchanged.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::job_template::time;

/// One aspect of an object's state. Matches metav1 `Condition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The aspect, in camel case.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation of the object that the condition describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    #[serde(default, with = "time")]
    pub last_transition_time: Option<DateTime<Utc>>,
    /// The reason, for programs.
    #[serde(default)]
    pub reason: String,
    /// The reason, for people.
    #[serde(default)]
    pub message: String,
}
