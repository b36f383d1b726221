//! Placeholder until the schedule room is merged.
use chrono::{DateTime, Utc};
/// zone
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone;
impl Zone {
    /// rfc
    pub fn format_rfc3339(self, t: DateTime<Utc>) -> String {
        t.to_rfc3339()
    }
}
/// timing
#[derive(Debug)]
pub struct Timing;
impl Timing {
    /// parse
    pub fn parse(_schedule: &str, _time_zone: Option<&str>, _local: Zone) -> Self {
        Self
    }
}
