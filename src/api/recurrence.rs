//! When a CronJob is due. CronJobs with the same schedule and zone share one record.
//!
//! Guarantee: a schedule is parsed once for as long as any CronJob has it, across any number of status updates.

use std::sync::{Arc, OnceLock};

use schedule::{Timing, Zone};

/// `spec.schedule` and `spec.timeZone`, with what they were parsed to.
#[derive(Debug)]
pub struct Recurrence {
    schedule: Box<str>,
    time_zone: Option<Box<str>>,
    timing: OnceLock<Arc<Timing>>,
}

impl Recurrence {
    /// The schedule and the IANA zone as written.
    pub fn new(schedule: &str, time_zone: Option<&str>) -> Self {
        Self { schedule: schedule.into(), time_zone: time_zone.map(Into::into), timing: OnceLock::new() }
    }

    /// The schedule as written.
    pub fn schedule(&self) -> &str {
        &self.schedule
    }

    /// The IANA zone as written.
    pub fn time_zone(&self) -> Option<&str> {
        self.time_zone.as_deref()
    }

    /// Both, parsed at the first call. `local` must be the same at every call.
    pub fn timing(&self, local: Zone) -> &Arc<Timing> {
        self.timing.get_or_init(|| Arc::new(Timing::parse(&self.schedule, self.time_zone.as_deref(), local)))
    }

    /// Whether it was parsed.
    #[cfg(test)]
    pub(crate) fn is_parsed(&self) -> bool {
        self.timing.get().is_some()
    }
}

impl PartialEq for Recurrence {
    fn eq(&self, other: &Self) -> bool {
        self.schedule == other.schedule && self.time_zone == other.time_zone
    }
}

impl Eq for Recurrence {}
