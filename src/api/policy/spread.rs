//! How far the slots of a CronJob are moved within a window.
//!
//! Guarantees: the offset depends on seed, namespace, name and window only, so that every replica and every command has
//! the same. It is below the window. Adding an offset never overflows: times stop at the ends of the calendar.

use chrono::{DateTime, TimeDelta, Utc};
use ring::digest::{SHA256, digest};

use super::first_number;
use crate::api::ObjectName;

/// A window over which slots are spread: 1 second to 24 hours, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    seconds: u32,
}

const SECOND: i64 = 1_000_000_000;
const LONGEST: i64 = 24 * 3_600 * SECOND;

impl Spread {
    /// A window in nanoseconds; parts of a second are dropped.
    pub fn new(nanos: i64) -> Result<Self, String> {
        match u32::try_from(nanos / SECOND) {
            Ok(seconds @ 1..) if nanos <= LONGEST => Ok(Self { seconds }),
            _ => Err("not between 1s and 24h".to_owned()),
        }
    }

    /// The offset of a CronJob: the first eight bytes of SHA-256 over `seed/namespace/name`, big-endian, modulo the window's
    /// seconds.
    pub fn offset(self, seed: &str, name: &ObjectName) -> TimeDelta {
        let digest = digest(&SHA256, format!("{seed}/{name}").as_bytes());
        let seconds = first_number(digest.as_ref()) % u64::from(self.seconds);
        TimeDelta::try_seconds(i64::try_from(seconds).unwrap_or_default()).unwrap_or_default()
    }
}

/// When a slot may start.
pub fn due(slot: DateTime<Utc>, offset: TimeDelta) -> DateTime<Utc> {
    slot.checked_add_signed(offset).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// The newest time whose slot may have started at `now`.
pub fn nominal(now: DateTime<Utc>, offset: TimeDelta) -> DateTime<Utc> {
    now.checked_sub_signed(offset).unwrap_or(DateTime::<Utc>::MIN_UTC)
}
