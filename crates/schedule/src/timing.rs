//! A CronJob's schedule and time zone together, as its author wrote them.
//!
//! Guarantee: parsing never fails as a whole: what is wrong is kept in its place, since a sync reports an unknown zone,
//! a zone inside the schedule and a bad schedule at different points.

use super::{ParseError, Schedule, UnknownZone, Zone};

/// `spec.schedule` and `spec.timeZone`, parsed.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The zone of `spec.timeZone`, if one is set.
    pub time_zone: Result<Option<Zone>, UnknownZone>,
    /// Whether `TZ` occurs in the schedule itself, where it is not officially supported and wins over `spec.timeZone`.
    pub zone_in_schedule: bool,
    /// The schedule.
    pub schedule: Result<Schedule, ParseError>,
}

impl Timing {
    /// Parses both. `local` is the process's zone, in which a schedule without a zone runs.
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
