//! The load of each minute of a day: starts, or Jobs that run.
//!
//! Guarantees: the starts are those of `next`, from the same search: each CronJob counts once in a minute, suspended and
//! deleted ones do not count, and none counts before it was created. A Job runs as long as is known of those before it, and else for the
//! minute of its start; under Forbid and Replace, one of a CronJob runs at a time, and under Forbid none starts while one runs. The
//! hours of the day are those that the clocks of the zone show: a day may have 23 or 25 of them, and an hour fewer than 60 minutes.
//! Pure.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::api::ObjectName;
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob};
use crate::api::policy::{Spread, due};
use crate::cli::next::cron_jobs::slots_after;

/// The longest offset and the longest Job, in seconds.
const DAY: i64 = 24 * 60 * 60;

/// What the load is computed from.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The CronJobs.
    pub cron_jobs: &'a [Arc<CronJob>],
    /// The controller's zone.
    pub zone: Zone,
    /// The controller's `--spread-seed`.
    pub seed: &'a str,
    /// For how many seconds the Jobs run; without it, starts are counted.
    pub lengths: Option<&'a HashMap<ObjectName, i64>>,
    /// Whether slots before the creation of a CronJob count, as for manifests.
    pub is_plan: bool,
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

    /// How its Jobs run, if running Jobs are counted.
    fn run(&self, cron_job: &CronJob) -> Run {
        let length = self.lengths.and_then(|lengths| lengths.get(&cron_job.name)).copied().unwrap_or_default();
        let policy = cron_job.spec.concurrency_policy;
        Run {
            length: length.clamp(0, DAY),
            is_one: !matches!(policy, ConcurrencyPolicy::Allow | ConcurrencyPolicy::Unknown),
            is_forbid: policy == ConcurrencyPolicy::Forbid && length > 0,
        }
    }

    /// From where on slots may matter at `start`, whatever the offset, the length and the policy. What starts under Forbid depends
    /// on what ran before, and so on; this is a midnight, that each minute of a day follows from the same Jobs.
    fn earliest(&self, start: DateTime<Utc>) -> DateTime<Utc> {
        match self.lengths {
            Some(_) => start - TimeDelta::seconds(start.timestamp().rem_euclid(DAY) + 2 * DAY),
            None => start - TimeDelta::seconds(DAY),
        }
    }

    /// The times of its slots, in seconds from `start`, in order, from the first one that matters there.
    fn due(&self, cron_job: &CronJob, start: DateTime<Utc>, run: &Run) -> impl Iterator<Item = i64> {
        let (offset, born) = (self.offset(cron_job), self.born(cron_job));
        let from = if run.is_forbid { self.earliest(start) } else { start - offset - TimeDelta::seconds(run.length) };
        let shift = offset.num_seconds() - start.timestamp();
        let slots = slots_after(cron_job, self.zone, from - TimeDelta::nanoseconds(1), self.now);
        slots.map(|slot| slot.timestamp()).skip_while(move |slot| *slot <= born).map(move |slot| slot + shift)
    }

    /// The time up to which its slots do not count.
    fn born(&self, cron_job: &CronJob) -> i64 {
        if self.is_plan { i64::MIN } else { cron_job.creation_timestamp.timestamp() }
    }

    /// The load of each minute of a time that begins with a minute.
    pub fn load(&self, start: DateTime<Utc>, minutes: usize) -> Vec<u32> {
        let mut load = Load::of(minutes, self.lengths.is_some());
        let mut known: HashMap<*const (), Arc<[i64]>> = HashMap::new();
        let end = start + TimeDelta::minutes(i64::try_from(minutes).unwrap_or(i64::MAX));
        let earliest = self.earliest(start);
        for cron_job in self.runnable() {
            let run = self.run(cron_job);
            if let Some(key) = shared_schedule(cron_job, self.zone) {
                let slots = known.entry(key).or_insert_with(|| {
                    let slots = slots_after(cron_job, self.zone, earliest - TimeDelta::seconds(1), self.now);
                    slots.take_while(|slot| *slot < end).map(|slot| slot.timestamp()).collect()
                });
                let (shift, born) = (self.offset(cron_job).num_seconds() - start.timestamp(), self.born(cron_job));
                let is_over = |slot: i64| !run.is_forbid && slot + shift + run.length < 0;
                let first = slots.partition_point(|slot| *slot <= born || is_over(*slot));
                load.add(slots[first..].iter().map(|slot| slot + shift), &run);
            } else {
                load.add(self.due(cron_job, start, &run), &run);
            }
        }
        load.into_minutes()
    }

    fn runnable(&self) -> impl Iterator<Item = &Arc<CronJob>> {
        self.cron_jobs.iter().filter(|cron_job| !cron_job.spec.suspend && !cron_job.deleting)
    }

    /// The CronJobs that the minute from `start` counts, with the times of their starts.
    pub fn starting(&self, start: DateTime<Utc>) -> Vec<(Arc<CronJob>, DateTime<Utc>)> {
        let end = start + TimeDelta::minutes(1);
        let in_time = |cron_job: &Arc<CronJob>| {
            let run = self.run(cron_job);
            if run.length > 0 {
                let started = run.started(self.due(cron_job, start, &run)).take_while(|second| *second < 60);
                let last = started.filter(|second| second + run.length > 0).last()?;
                return Some((Arc::clone(cron_job), start + TimeDelta::seconds(last)));
            }
            let (offset, born) = (self.offset(cron_job), self.born(cron_job));
            let from = start - offset - TimeDelta::nanoseconds(1);
            let slot = slots_after(cron_job, self.zone, from, self.now).next()?;
            let due = due(slot, offset);
            let is_counted = due < end && slot.timestamp() > born && self.is_reached(cron_job, slot);
            is_counted.then(|| (Arc::clone(cron_job), due))
        };
        self.runnable().filter_map(in_time).collect()
    }

    /// Whether a search from the day before finds a slot, too. After a change of the clocks by half an hour, upstream's search
    /// leaves out slots that it finds from a later time.
    fn is_reached(&self, cron_job: &CronJob, slot: DateTime<Utc>) -> bool {
        let before = slot - TimeDelta::hours(25);
        let zone = cron_job.zone(self.zone);
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

/// How the Jobs of a CronJob run.
struct Run {
    /// For how many seconds.
    length: i64,
    /// Whether one runs at a time.
    is_one: bool,
    /// Whether none starts while one runs, for longer than no time.
    is_forbid: bool,
}

impl Run {
    /// Those of the times in seconds, which are in order, at which a Job starts.
    fn started(&self, due: impl Iterator<Item = i64>) -> impl Iterator<Item = i64> {
        let mut busy_until = i64::MIN;
        due.filter(move |second| {
            let starts = !self.is_forbid || *second >= busy_until;
            if starts {
                busy_until = second + self.length;
            }
            starts
        })
    }
}

/// The load of some minutes.
struct Load {
    /// How much more each minute has than the one before it, if Jobs are counted; else what it has.
    minutes: Vec<i64>,
    counts_jobs: bool,
}

impl Load {
    fn of(minutes: usize, counts_jobs: bool) -> Self {
        Self { minutes: vec![0; minutes + 1], counts_jobs }
    }

    /// Counts the times of a CronJob, in seconds from the beginning, in order: once in each minute, or for as long as its Jobs run.
    fn add(&mut self, due: impl Iterator<Item = i64>, run: &Run) {
        let minutes = i64::try_from(self.minutes.len() - 1).unwrap_or(i64::MAX);
        let mut last = i64::MIN;
        for second in run.started(due) {
            let minute = second.div_euclid(60);
            if minute >= minutes {
                break;
            }
            if !self.counts_jobs {
                if last != minute && minute >= 0 {
                    self.change(minute, 1);
                }
                last = minute;
                continue;
            }
            let until = (second + run.length - 1).max(second).div_euclid(60).min(minutes - 1);
            let from = if run.is_one { minute.max(last.saturating_add(1)) } else { minute }.max(0);
            if from <= until {
                self.change(from, 1);
                self.change(until + 1, -1);
                last = until;
            }
        }
    }

    fn change(&mut self, minute: i64, by: i64) {
        if let Some(minute) = usize::try_from(minute).ok().and_then(|minute| self.minutes.get_mut(minute)) {
            *minute += by;
        }
    }

    fn into_minutes(mut self) -> Vec<u32> {
        self.minutes.pop();
        let mut running = 0;
        let count = |change: i64| {
            running = if self.counts_jobs { running + change } else { change };
            u32::try_from(running).unwrap_or_default()
        };
        self.minutes.into_iter().map(count).collect()
    }
}

#[cfg(test)]
mod tests;
