//! A CronJob's schedule and time zone, parsed together.
//!
//! Guarantee: parsing never fails as a whole. Each error is kept in its field, since a sync reports an unknown zone, a zone
//! inside the schedule and an invalid schedule at different points.

use super::{ParseError, Schedule, UnknownZone, Zone};

/// `spec.schedule` and `spec.timeZone`, parsed.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The zone of `spec.timeZone`, if one is set.
    pub time_zone: Result<Option<Zone>, UnknownZone>,
    /// Whether the schedule itself contains `TZ`. This is not officially supported and takes precedence over `spec.timeZone`.
    pub zone_in_schedule: bool,
    /// The schedule.
    pub schedule: Result<Schedule, ParseError>,
}

impl Timing {
    /// Parses both. `local` is the process's zone, which applies to a schedule without a zone.
    ///
    /// Matches upstream `formatSchedule` and its callers.
    pub fn parse(schedule: &str, time_zone: Option<&str>, local: Zone) -> Self {
        let time_zone = time_zone.map(|name| Zone::load(name, local)).transpose();
        let zone_in_schedule = schedule.contains("TZ");
        let zone = match &time_zone {
            Ok(Some(zone)) if !zone_in_schedule => *zone,
            _ => local,
        };
        Self { time_zone, zone_in_schedule, schedule: Schedule::parse_standard(schedule, zone) }
    }

    /// The zone in which the scheduled-timestamp annotation is written: `spec.timeZone`, else UTC.
    pub fn annotation_zone(&self) -> Zone {
        match self.time_zone {
            Ok(Some(zone)) => zone,
            _ => Zone::UTC,
        }
    }
}
