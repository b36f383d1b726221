//! When a CronJob is due. CronJobs with the same schedule and zone share one record.
//!
//! Guarantees: a schedule is parsed once for as long as any CronJob has it, across any number of status updates. A schedule
//! and a zone of any length run as they are written, and the texts that are kept of them are short.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use schedule::{FieldValues, Schedule, Timing, Zone};

use super::error::excerpt;

/// The longest schedule that is kept as it was written, in bytes. One that names every minute, hour, day, month and weekday
/// has less.
pub const LONGEST_SCHEDULE: usize = 1 << 10;

/// The longest name of a zone that is kept as it was written, in bytes.
const LONGEST_ZONE: usize = 64;

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

/// A schedule as it is kept: one over [`LONGEST_SCHEDULE`] as a short text of the same meaning, or, if it cannot be
/// parsed, as its beginning, which cannot be parsed either.
pub(super) fn kept_schedule(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= LONGEST_SCHEDULE {
        return text;
    }
    let Ok(schedule) = Schedule::parse_standard(&text, Zone::UTC) else {
        return excerpt(&text, LONGEST_SCHEDULE).into();
    };
    let given =
        text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")).and_then(|rest| rest.split_once(' '));
    let zone = match given {
        // Where the letters stand elsewhere, spec.timeZone does not count.
        None if text.contains("TZ") => "TZ=Local ".to_owned(),
        None => String::new(),
        Some(("Local", _)) => "TZ=Local ".to_owned(),
        Some(_) => format!("TZ={} ", schedule.zone().unwrap_or(Zone::UTC).name()),
    };
    let interval = schedule.interval().map(|interval| format!("@every {}s", interval.num_seconds()));
    let fields = interval.or_else(|| Some(in_fields(&schedule.values()?))).unwrap_or_default();
    format!("{zone}{fields}").into()
}

/// Five fields with these values.
fn in_fields(values: &FieldValues) -> String {
    let field = |values: &[u32], all: usize| if values.len() == all { "*".to_owned() } else { listed(values) };
    // A star in one of the day fields says that both must name the day.
    let day = |values_of: &[u32], all| if values.either_day { listed(values_of) } else { field(values_of, all) };
    format!(
        "{} {} {} {} {}",
        field(&values.minutes, 60),
        field(&values.hours, 24),
        day(&values.days, 31),
        field(&values.months, 12),
        day(&values.weekdays, 7)
    )
}

/// A list for a field. A comma alone is a field without values.
fn listed(values: &[u32]) -> String {
    let values: Vec<_> = values.iter().map(u32::to_string).collect();
    if values.is_empty() { ",".to_owned() } else { values.join(",") }
}

/// A zone as it is kept: one over [`LONGEST_ZONE`] under its short name, or, if there is none, as its beginning.
pub(super) fn kept_zone(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST_ZONE {
        return name.into();
    }
    Zone::load(name, Zone::UTC).map_or_else(|_| excerpt(name, LONGEST_ZONE).into(), |zone| zone.name().into())
}

impl PartialEq for Recurrence {
    fn eq(&self, other: &Self) -> bool {
        self.schedule == other.schedule && self.time_zone == other.time_zone
    }
}

impl Eq for Recurrence {}

#[cfg(test)]
mod tests;
