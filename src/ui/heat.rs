//! The load of each minute of a day.
//!
//! Guarantees: the starts are those of `next`, from the same search: each CronJob counts once in a minute, suspended and
//! deleted ones do not count. The hours of the day are those that the clocks of the zone show: a day may have 23 or 25 of
//! them, and an hour fewer than 60 minutes. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc};
use schedule::{Schedule, Zone};
use serde::Serialize;

use crate::api::batch_v1::CronJob;
use crate::api::policy::{Spread, due};
use crate::cli::next::cron_jobs::slots_after;

/// What the load is computed from.
pub struct Question<'a> {
    /// The CronJobs.
    pub cron_jobs: &'a [Arc<CronJob>],
    /// The controller's zone.
    pub zone: Zone,
    /// The controller's `--spread-seed`.
    pub seed: &'a str,
    /// A window over which every CronJob is spread, in place of its own.
    pub what_if: Option<Spread>,
    /// The time of the answer, on which an `@every` may depend.
    pub now: DateTime<Utc>,
}

/// The load of a day.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    /// The day.
    pub date: NaiveDate,
    /// The zone of the day.
    pub time_zone: &'static str,
    /// The hours in their order.
    pub hours: Vec<Hour>,
    /// All starts.
    pub starts: u64,
    /// The most starts in a minute.
    pub most: u32,
    /// The first minute that has them.
    pub most_at: Option<DateTime<Utc>>,
}

/// An hour on the clock.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hour {
    /// The number on the clock.
    pub number: u32,
    /// The offset from UTC, as in `+02:00`.
    pub offset: String,
    /// The first minute on the clock; not 0 after a change of the clocks by half an hour.
    pub first_minute: u32,
    /// When it begins.
    pub start: DateTime<Utc>,
    /// The starts in each minute.
    pub minutes: Vec<u32>,
}

impl Question<'_> {
    fn offset(&self, cron_job: &CronJob) -> TimeDelta {
        match self.what_if.filter(|_| cron_job.controller_kind.counted_from.is_some()) {
            Some(window) => window.offset(self.seed, &cron_job.name),
            None => cron_job.offset(),
        }
    }

    /// The starts in each minute of a time that begins with a minute.
    pub fn load(&self, start: DateTime<Utc>, minutes: usize) -> Vec<u32> {
        let mut load = vec![0; minutes];
        let mut known: HashMap<*const (), Arc<[i64]>> = HashMap::new();
        let end = start + TimeDelta::minutes(i64::try_from(minutes).unwrap_or(i64::MAX));
        // No offset is longer, so these slots are all that may start in the time.
        let earliest = start - TimeDelta::hours(24);
        for cron_job in self.runnable() {
            let offset = self.offset(cron_job);
            let shift = offset.num_seconds() - start.timestamp();
            if let Some(key) = shared_schedule(cron_job, self.zone) {
                let slots = known.entry(key).or_insert_with(|| {
                    let slots = slots_after(cron_job, self.zone, earliest - TimeDelta::seconds(1), self.now);
                    slots.take_while(|slot| *slot < end).map(|slot| slot.timestamp()).collect()
                });
                let first = slots.partition_point(|slot| slot + shift < 0);
                add(&mut load, slots[first..].iter().map(|slot| slot + shift));
            } else {
                let from = start - offset - TimeDelta::nanoseconds(1);
                let slots = slots_after(cron_job, self.zone, from, self.now);
                add(&mut load, slots.map(|slot| slot.timestamp() + shift));
            }
        }
        load
    }

    fn runnable(&self) -> impl Iterator<Item = &Arc<CronJob>> {
        self.cron_jobs.iter().filter(|cron_job| !cron_job.spec.suspend && !cron_job.deleting)
    }

    /// The CronJobs that start in the minute from `start`, with the times.
    pub fn starting(&self, start: DateTime<Utc>) -> Vec<(Arc<CronJob>, DateTime<Utc>)> {
        let end = start + TimeDelta::minutes(1);
        let in_time = |cron_job: &Arc<CronJob>| {
            let offset = self.offset(cron_job);
            let slot = slots_after(cron_job, self.zone, start - offset - TimeDelta::nanoseconds(1), self.now).next()?;
            let due = due(slot, offset);
            (due < end && self.is_reached(cron_job, slot)).then(|| (Arc::clone(cron_job), due))
        };
        self.runnable().filter_map(in_time).collect()
    }

    /// Whether a search from the day before finds a slot, too. After a change of the clocks by half an hour, upstream's search
    /// leaves out slots that it finds from a later time.
    fn is_reached(&self, cron_job: &CronJob, slot: DateTime<Utc>) -> bool {
        let before = slot - TimeDelta::hours(25);
        let zone = cron_job.schedule(self.zone).and_then(Schedule::zone).unwrap_or(self.zone);
        zone.at(slot).offset() == zone.at(before).offset()
            || slots_after(cron_job, self.zone, before, self.now).find(|found| *found >= slot) == Some(slot)
    }

    /// The load of a day in a zone; `None` beyond chrono's range.
    pub fn day(&self, day: NaiveDate, zone: Zone) -> Option<Day> {
        let (start, end) = bounds(day, zone)?;
        let load = self.load(start, usize::try_from((end - start).num_minutes()).ok()?);
        let mut hours: Vec<Hour> = Vec::new();
        for (at, runs) in (0..).zip(&load) {
            let time = start + TimeDelta::minutes(at);
            let local = zone.at(time);
            let offset = local.offset().to_string();
            match hours.last_mut().filter(|hour| hour.number == local.hour() && hour.offset == offset) {
                Some(hour) => hour.minutes.push(*runs),
                None => hours.push(Hour {
                    number: local.hour(),
                    offset,
                    first_minute: local.minute(),
                    start: time,
                    minutes: vec![*runs],
                }),
            }
        }
        let most = load.iter().copied().max().unwrap_or_default();
        let at = load.iter().position(|runs| *runs == most && most > 0).and_then(|at| i64::try_from(at).ok());
        Some(Day {
            date: day,
            time_zone: zone.name(),
            hours,
            starts: load.iter().map(|runs| u64::from(*runs)).sum(),
            most,
            most_at: at.map(|at| start + TimeDelta::minutes(at)),
        })
    }
}

/// The first instants of a day and of the next one, in whole minutes.
fn bounds(day: NaiveDate, zone: Zone) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let next = day.checked_add_days(Days::new(1))?;
    let first = |day: NaiveDate| {
        let midnight = zone.instant(day.and_time(NaiveTime::MIN))?;
        // If a change of the clocks skips midnight, the instant found is before or after the change.
        let before = midnight - TimeDelta::hours(3);
        let minutes = 0..=6 * 60;
        minutes.map(|m| before + TimeDelta::minutes(m)).find(|time| zone.at(*time).date_naive() == day)
    };
    Some((first(day)?, first(next)?))
}

/// An identity of the schedule, if every CronJob with the same one has the same slots.
fn shared_schedule(cron_job: &CronJob, zone: Zone) -> Option<*const ()> {
    let own = cron_job.timing(zone).schedule.as_ref().ok()?;
    let is_own = cron_job.schedule(zone).is_some_and(|schedule| std::ptr::eq(schedule, own));
    (is_own && own.interval().is_none()).then(|| Arc::as_ptr(&cron_job.spec.recurrence).cast())
}

/// Counts starts, in seconds from the beginning, once in each minute.
fn add(load: &mut [u32], starts: impl Iterator<Item = i64>) {
    let mut last = None;
    for second in starts {
        let Some(minute) = usize::try_from(second.div_euclid(60)).ok().filter(|minute| *minute < load.len()) else {
            break;
        };
        if last.replace(minute) != Some(minute) {
            load[minute] += 1;
        }
    }
}

#[cfg(test)]
mod tests;
