//! The number of CronJobs that start in each minute.
//!
//! Guarantees: every run in the week that begins today is counted, and each CronJob once per minute. Suspended CronJobs are left
//! out, those with annotations that cannot be read, and every `@every`, whose minutes depend on its last run. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use apimachinery::steps;
use chrono::{DateTime, FixedOffset, TimeDelta, Timelike, Utc};
use schedule::Zone;
use serde::Serialize;

use super::{Code, Fault, Runner};
use crate::cli::output::{count, named};
use crate::terminal;

const DAYS: usize = 7;
const MINUTES: usize = DAYS * 24 * 60;
/// From this number on, CronJobs that all start at midnight are reported.
const CROWD: usize = 3;
/// The largest number of busy minutes in a report.
const MAX_TOLD: usize = 10;
/// The largest number of CronJobs named for a busy minute.
const MAX_NAMED: usize = 3;
/// The number of the busiest minutes.
const BUSIEST: usize = 5;
/// The longest bar, in characters.
const BAR: f64 = 40.0;

/// The runs of a week.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Load {
    time_zone: &'static str,
    /// The number of CronJobs counted.
    cron_jobs: usize,
    /// The hours of the day, from midnight.
    hours: Vec<Bucket>,
    /// The minutes of the day in which the most start together, the worst first.
    busiest: Vec<Busy>,
    #[serde(skip)]
    zone: Zone,
    /// The first minute.
    #[serde(skip)]
    start: DateTime<Utc>,
    /// The runs in each minute from there.
    #[serde(skip)]
    minutes: Vec<usize>,
}

/// The different values, each with how often it occurs.
fn counts<T: Eq + Hash>(values: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bucket {
    hour: usize,
    runs_a_day: f64,
    /// The largest number of runs in one minute, and its time.
    most: usize,
    most_at: String,
}

/// A minute of the day in which several start.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Busy {
    at: String,
    /// The most runs in it on one day.
    most: usize,
    /// On how many days of the week so many CronJobs, or fewer but more than one, start in it.
    days: usize,
    /// The first of the CronJobs.
    cron_jobs: Vec<String>,
}

impl Load {
    /// Counts the runs of the week from `start`, which is a midnight; with their spread, or at their slots.
    pub fn of(runners: &[Runner], zone: Zone, start: DateTime<Utc>, is_spread: bool) -> Self {
        let mut minutes = vec![0; MINUTES];
        let counted = runners.iter().filter(|runner| runner.schedule.zone().is_some());
        for alike in Self::alike(counted.clone()) {
            let offset = |runner: &Runner| if is_spread { runner.offset } else { TimeDelta::zero() };
            let offsets = || alike.iter().map(|runner| offset(runner));
            let (Some(least), Some(most)) = (offsets().min(), offsets().max()) else { continue };
            let schedule = &alike[0].schedule;
            let (from, until) = (start - most, start - least + TimeDelta::days(7));
            let slots =
                std::iter::successors(schedule.next_after(from - TimeDelta::seconds(1)), |t| schedule.next_after(*t));
            let slots: Vec<DateTime<Utc>> = steps::each(slots.take_while(|slot| *slot < until)).collect();
            for (offset, runners) in counts(offsets()) {
                for slot in steps::each(slots.iter()) {
                    let minute = usize::try_from((*slot + offset - start).num_seconds().div_euclid(60)).ok();
                    if let Some(minute) = minute.and_then(|minute| minutes.get_mut(minute)) {
                        *minute += runners;
                    }
                }
            }
        }
        let cron_jobs = counted.count();
        let (hours, busiest) = (Vec::new(), Vec::new());
        let mut load = Self { time_zone: zone.name(), cron_jobs, hours, busiest, zone, start, minutes };
        load.hours = load.by_hour();
        load
    }

    /// The runners, those with the same slots together.
    fn alike<'a>(runners: impl Iterator<Item = &'a Runner>) -> Vec<Vec<&'a Runner>> {
        let mut groups: Vec<Vec<&Runner>> = Vec::new();
        let mut known: HashMap<&(String, Option<Zone>), usize> = HashMap::new();
        for runner in steps::each(runners) {
            let next = groups.len();
            let group = runner.written.as_ref().map_or(next, |written| *known.entry(written).or_insert(next));
            if group == next {
                groups.push(Vec::new());
            }
            groups[group].push(runner);
        }
        groups
    }

    /// The start of the minute, in the report's zone.
    fn time(&self, minute: usize) -> DateTime<FixedOffset> {
        let minutes = i64::try_from(minute).unwrap_or_default();
        self.zone.at(self.start + TimeDelta::minutes(minutes))
    }

    /// The time of day of the minute there.
    fn time_of_day(&self, minute: usize) -> String {
        self.time(minute).format("%H:%M").to_string()
    }

    fn by_hour(&self) -> Vec<Bucket> {
        let mut totals = [0; 24];
        let mut hours: Vec<Bucket> = (0..24).map(|hour| Bucket { hour, ..Bucket::default() }).collect();
        for (minute, &runs) in self.minutes.iter().enumerate().filter(|(_, runs)| **runs > 0) {
            let at = self.time(minute).hour() as usize;
            totals[at] += runs;
            if runs > hours[at].most {
                hours[at].most = runs;
                hours[at].most_at = self.time_of_day(minute);
            }
        }
        for (hour, total) in hours.iter_mut().zip(totals) {
            #[allow(clippy::cast_precision_loss, reason = "a number for people")]
            let a_day = total as f64 / DAYS as f64;
            hour.runs_a_day = (a_day * 10.0).round() / 10.0;
        }
        hours
    }

    /// The times of day at which more than `max` start: the most runs, the minute that has them, and the number of days.
    fn by_time_of_day(&self, max: usize) -> BTreeMap<String, (usize, usize, usize)> {
        let mut busy: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
        for (minute, &runs) in self.minutes.iter().enumerate().filter(|(_, runs)| **runs > max) {
            let (most, at, days) = busy.entry(self.time_of_day(minute)).or_default();
            *days += 1;
            if runs > *most {
                (*most, *at) = (runs, minute);
            }
        }
        busy
    }

    /// The same with the busiest minutes, and the CronJobs of each.
    #[must_use]
    pub fn with_busiest(mut self, runners: &[Runner]) -> Self {
        let mut busy: Vec<_> = self.by_time_of_day(1).into_iter().collect();
        busy.sort_by_key(|(_, (most, _, days))| std::cmp::Reverse((*most, *days)));
        let busy = busy.into_iter().take(BUSIEST).map(|(at, (most, minute, days))| {
            let starting = self.starting(runners, minute).into_iter().take(MAX_NAMED);
            Busy { at, most, days, cron_jobs: starting.map(|runner| runners[runner].name.clone()).collect() }
        });
        self.busiest = busy.collect();
        self
    }

    /// The minutes of the day in which more than `max` start together, and midnight if most start then; the worst first, each
    /// with the first of its runners.
    pub fn busy(&self, runners: &[Runner], max: usize) -> Vec<(usize, Fault)> {
        let mut busy = self.by_time_of_day(max);
        let midnight = "00:00".to_owned();
        if let (Some(found), false) = (self.crowded_midnight(), busy.contains_key(&midnight)) {
            busy.insert(midnight, found);
        }
        let mut busy: Vec<_> = busy.into_iter().collect();
        busy.sort_by_key(|(_, (most, ..))| std::cmp::Reverse(*most));
        let untold = busy.len().saturating_sub(MAX_TOLD);
        let taken = if busy.is_empty() { BTreeSet::new() } else { self.taken() };
        let told = busy.into_iter().take(MAX_TOLD).map(|(time, (most, minute, days))| {
            let starting = self.starting(runners, minute);
            let first = starting.first().copied().unwrap_or_default();
            let names = named(starting.into_iter().map(|runner| runners[runner].name.clone()), MAX_NAMED, most);
            let days =
                if days < DAYS { format!("on {} of the week", count(days, "day")) } else { "every day".to_owned() };
            let free =
                self.free_after(minute, &taken).map(|free| format!("; none starts at {free}")).unwrap_or_default();
            let message =
                format!("{most} CronJobs start in one minute, at {time} {} {days}: {names}{free}", self.time_zone);
            (first, Fault::warning(Code::BusyMinute, "", message))
        });
        let told: Vec<_> = told.collect();
        let rest = told.last().filter(|_| untold > 0).map(|(runner, _)| {
            let message = format!("more than {max} CronJobs start in {} as well", count(untold, "other minute"));
            (*runner, Fault::warning(Code::BusyMinute, "", message))
        });
        told.into_iter().chain(rest).collect()
    }

    /// The most runs at a midnight, its minute and the number of such days, if most of the CronJobs start then.
    fn crowded_midnight(&self) -> Option<(usize, usize, usize)> {
        let is_midnight = |minute: usize| self.time_of_day(minute) == "00:00";
        let crowded = |(_, runs): &(usize, &usize)| **runs >= CROWD && **runs * 2 > self.cron_jobs;
        let nights = self.minutes.iter().enumerate().filter(crowded).filter(|(minute, _)| is_midnight(*minute));
        let days = nights.clone().count();
        nights
            .max_by_key(|(minute, runs)| (**runs, std::cmp::Reverse(*minute)))
            .map(|(minute, runs)| (*runs, minute, days))
    }

    /// The times of day at which something starts on some day.
    fn taken(&self) -> BTreeSet<String> {
        (0..MINUTES).filter(|minute| self.minutes[*minute] > 0).map(|minute| self.time_of_day(minute)).collect()
    }

    /// The first time of day after that of `minute` that is not taken.
    fn free_after(&self, minute: usize, taken: &BTreeSet<String>) -> Option<String> {
        let mut times = (minute..minute + 24 * 60).map(|minute| self.time_of_day(minute % MINUTES));
        times.find(|time| !taken.contains(time))
    }

    /// The runners that start in a minute.
    fn starting(&self, runners: &[Runner], minute: usize) -> Vec<usize> {
        let start = self.time(minute).to_utc();
        let end = start + TimeDelta::minutes(1);
        let starts = |runner: &Runner| {
            let next = runner.schedule.next_after(start - runner.offset - TimeDelta::seconds(1));
            runner.schedule.zone().is_some() && next.is_some_and(|t| t + runner.offset < end)
        };
        steps::each(runners.iter()).enumerate().filter(|(_, runner)| starts(runner)).map(|(number, _)| number).collect()
    }

    /// The histogram with the busiest minutes; empty without runs. `at_slots` is the load without any spread, if there is one.
    pub fn lines(&self, at_slots: Option<&Self>) -> Vec<String> {
        if self.cron_jobs == 0 {
            return Vec::new();
        }
        let most = self.hours.iter().map(|hour| hour.runs_a_day).fold(0.0, f64::max);
        let peak = |hour: &Bucket| {
            if hour.most > 0 { format!("{} at {}", hour.most, hour.most_at) } else { "-".to_owned() }
        };
        let row = |hour: &Bucket| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the longest bar")]
            let bar = if most > 0.0 { (hour.runs_a_day / most * BAR).ceil() as usize } else { 0 };
            let without = at_slots.and_then(|load| load.hours.get(hour.hour)).map(peak).unwrap_or_default();
            [format!("{:02}:00", hour.hour), format!("{:.1}", hour.runs_a_day), peak(hour), without, "█".repeat(bar)]
        };
        let without = if at_slots.is_some() { "WITHOUT SPREAD" } else { "" };
        let headings = ["HOUR", "RUNS A DAY", "MOST IN A MINUTE", without, ""].map(str::to_owned);
        let table: Vec<[String; 5]> = std::iter::once(headings).chain(self.hours.iter().map(row)).collect();
        let table = match at_slots {
            Some(_) => terminal::columns(&table),
            None => terminal::columns(&table.into_iter().map(|[a, b, c, _, bar]| [a, b, c, bar]).collect::<Vec<_>>()),
        };
        let number = count(self.cron_jobs, "CronJob");
        let what = format!(
            "Seven days from today, {}: {number}, without suspended ones and @every schedules.",
            self.time_zone
        );
        [vec![what], table, self.busiest_lines(), vec![String::new()]].concat()
    }

    fn busiest_lines(&self) -> Vec<String> {
        let row = |busy: &Busy| {
            let days = if busy.days < DAYS { count(busy.days, "day") } else { "every day".to_owned() };
            [busy.at.clone(), busy.most.to_string(), days, named(busy.cron_jobs.iter().cloned(), MAX_NAMED, busy.most)]
        };
        if self.minutes.iter().all(|runs| *runs == 0) {
            return vec!["None starts in these seven days.".to_owned()];
        }
        if self.busiest.is_empty() {
            return vec!["No two start in the same minute.".to_owned()];
        }
        let headings = ["BUSIEST", "RUNS", "ON", "CRONJOBS"].map(str::to_owned);
        let rows = std::iter::once(headings).chain(self.busiest.iter().map(row));
        [vec![String::new()], terminal::columns(&rows.collect::<Vec<_>>())].concat()
    }
}
