//! What happened last night: `list --night`, and the same on the page.
//!
//! Guarantees: a night begins at the newest 18:00 of the zone and ends at 08:00 or now. What became of a slot is what `explain --since`
//! says. Each list has at most [`MOST`] entries, the worst first, and says how many there are; a CronJob is in a list once. Pure.

use std::borrow::Borrow;
use std::cmp::Reverse;

use chrono::{DateTime, Days, FixedOffset, NaiveTime, TimeDelta, Timelike as _, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::cli::cluster::Known;
use crate::cli::explain::LATE_AFTER;
use crate::cli::forecast::Durations;
use crate::cli::output::{MOMENT, Report, count, stretch};
use crate::cli::restrictions::unread;
use crate::cli::slots::{Fate, History, Judged, LATE, RunResult};
use crate::terminal;

/// The hours on the clock at which a night begins and ends.
const EVENING: u32 = 18;
const MORNING: u32 = 8;
/// The most entries of a list, and of that of the longest runs.
const MOST: usize = 20;
const LONGEST: usize = 5;
/// So many slots of a CronJob are judged, the newest.
const SLOTS: usize = 2_000;

/// A night.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Night {
    from: DateTime<FixedOffset>,
    to: DateTime<FixedOffset>,
    time_zone: &'static str,
    #[serde(rename = "cronJobCount")]
    cron_jobs: usize,
    /// The slots that came.
    slots: usize,
    /// Those of them that started.
    started: usize,
    /// Those of which nothing is known any more.
    unknown: usize,
    /// How many CronJobs have more slots than are judged.
    cut: usize,
    failed: Part,
    missed: Part,
    /// CronJobs that had slots, of which none started; those that were suspended or frozen are not among them.
    never_ran: Part,
    late: Part,
    skipped: Part,
    /// CronJobs that were suspended or frozen when slots came.
    stopped: Part,
    /// The longest runs.
    longest: Part,
    /// Why what their Namespaces say is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces_unread: Option<String>,
}

/// A list.
#[derive(Debug, Default, Serialize)]
struct Part {
    total: usize,
    entries: Vec<Entry>,
}

/// A CronJob in a list.
#[derive(Debug, Serialize)]
struct Entry {
    namespace: String,
    name: String,
    /// How many of its slots are meant.
    slots: usize,
    /// Whether it may have been more: what became of others is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
    /// When the newest of them was due.
    at: DateTime<FixedOffset>,
    /// How late it was, or how long it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<i64>,
    /// What is said of that one.
    why: String,
}

/// The beginning and the end of the night.
fn window(zone: Zone, now: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
    let local = zone.at(now);
    let today = local.date_naive();
    let begins = if local.hour() >= EVENING { today } else { today.checked_sub_days(Days::new(1)).unwrap_or(today) };
    let ends = begins.checked_add_days(Days::new(1)).unwrap_or(begins);
    let at = |day: chrono::NaiveDate, hour| {
        let time = NaiveTime::from_hms_opt(hour, 0, 0).unwrap_or_default();
        zone.instant(day.and_time(time)).unwrap_or(now)
    };
    (at(begins, EVENING), at(ends, MORNING).min(now))
}

impl Night {
    /// The night in `zone`; `local` is the zone of the controller.
    pub(crate) fn of(
        known: impl IntoIterator<Item = impl Borrow<Known>>,
        local: Zone,
        zone: Zone,
        now: DateTime<Utc>,
    ) -> Self {
        let (from, to) = window(zone, now);
        let mut night = Self { from: zone.at(from), to: zone.at(to), time_zone: zone.name(), ..Self::default() };
        for known in known {
            night.add(known.borrow(), local, zone, (from, to, now));
        }
        for part in [&mut night.failed, &mut night.missed, &mut night.never_ran, &mut night.skipped, &mut night.stopped]
        {
            part.finish(MOST, |entry| entry.slots);
        }
        night.late.finish(MOST, |entry| usize::try_from(entry.seconds.unwrap_or_default()).unwrap_or_default());
        night.longest.finish(LONGEST, |entry| usize::try_from(entry.seconds.unwrap_or_default()).unwrap_or_default());
        night
    }

    fn add(
        &mut self,
        known: &Known,
        local: Zone,
        zone: Zone,
        (from, to, now): (DateTime<Utc>, DateTime<Utc>, DateTime<Utc>),
    ) {
        let cron_job = &known.facts.cron_job;
        let history = History::new(known, local, now);
        let (judged, cut) = history.judged(cron_job.nominal(from) - TimeDelta::seconds(1), cron_job.nominal(to), SLOTS);
        self.cron_jobs += 1;
        self.namespaces_unread = self.namespaces_unread.take().or_else(|| known.facts.namespace_unread.clone());
        self.cut += usize::from(cut);
        self.slots += judged.len();
        let number = |fate: Fate| judged.iter().filter(|slot| slot.fate == fate).count();
        self.started += number(Fate::Started);
        self.unknown += number(Fate::Unknown);
        let entry = |slots: usize, newest: &Judged, seconds: Option<i64>, why: String| Entry {
            namespace: cron_job.name.namespace.to_string(),
            name: cron_job.name.name.to_string(),
            slots,
            at_least: false,
            at: zone.at(cron_job.due(newest.slot)),
            seconds,
            why,
        };
        let told = |is_meant: &dyn Fn(&Judged) -> bool| {
            let newest = judged.iter().rfind(|slot| is_meant(slot))?;
            Some(entry(judged.iter().filter(|slot| is_meant(slot)).count(), newest, None, newest.why.clone()))
        };
        // Its logs are what is read next.
        let is_failed = |slot: &Judged| slot.run == Some(RunResult::Failed) || slot.is_lost;
        let newest = judged.iter().rfind(|slot| is_failed(slot));
        let job = newest.and_then(|slot| slot.job.as_ref());
        let is_unknown =
            |slot: &Judged| slot.fate == Fate::Unknown || slot.run == Some(RunResult::Gone) && !slot.is_lost;
        let at_least = judged.iter().any(is_unknown);
        self.failed.entries.extend(told(&is_failed).map(|entry| match job {
            Some(job) => Entry { why: format!("{}, Job {job}", entry.why), at_least, ..entry },
            None => Entry { at_least, ..entry },
        }));
        // What is long due has not started either, and may never do.
        let is_overdue = |slot: &Judged| slot.fate == Fate::Due && now - cron_job.due(slot.slot) > LATE_AFTER;
        self.missed.entries.extend(told(&|slot| slot.fate == Fate::Missed || is_overdue(slot)));
        self.skipped.entries.extend(told(&|slot| slot.fate == Fate::Skipped));
        self.stopped.entries.extend(told(&|slot| matches!(slot.fate, Fate::Suspended | Fate::Frozen)));
        let is_idle =
            |slot: &Judged| matches!(slot.fate, Fate::Skipped | Fate::Missed | Fate::Due | Fate::Waits | Fate::Held);
        if judged.iter().all(is_idle) {
            self.never_ran.entries.extend(told(&|_| true));
        }
        let is_late = |slot: &&Judged| slot.late.is_some_and(|late| late > LATE);
        let late = judged.iter().filter(is_late);
        self.late.entries.extend(late.clone().max_by_key(|slot| slot.late).map(|worst| {
            let seconds = worst.late.unwrap_or_default();
            entry(late.count(), worst, Some(seconds.num_seconds()), format!("{} late", stretch(seconds)))
        }));
        let longest = judged.iter().filter(|slot| slot.took.is_some_and(|took| took > 0)).max_by_key(|slot| slot.took);
        self.longest.entries.extend(longest.map(|slot| {
            let took = slot.took.unwrap_or_default();
            let median = Durations::of(known.facts.children(), now);
            let median = median.map(|durations| format!(", median {}", stretch(seconds(durations.median))));
            // Of one that has not ended, whether it was started at all.
            let is_under_way = slot.run.is_some_and(RunResult::is_under_way);
            let what = || format!("took {}", stretch(TimeDelta::seconds(took)));
            let what = if is_under_way { slot.why.clone() } else { what() };
            let why = format!("{what}{}", median.unwrap_or_default());
            entry(1, slot, Some(took), why)
        }));
    }

    fn parts(&self) -> [(&'static str, &Part); 7] {
        [
            ("FAILED", &self.failed),
            ("MISSED", &self.missed),
            ("NEVER RAN", &self.never_ran),
            ("LATE", &self.late),
            ("SKIPPED", &self.skipped),
            ("SUSPENDED OR FROZEN", &self.stopped),
            ("LONGEST", &self.longest),
        ]
    }
}

fn seconds(seconds: f64) -> TimeDelta {
    #[allow(clippy::cast_possible_truncation, reason = "a median of runs")]
    let whole = seconds.ceil() as i64;
    TimeDelta::try_seconds(whole).unwrap_or(TimeDelta::MAX)
}

impl Part {
    /// The first `most` in the order of `weight`, the heaviest first.
    fn finish(&mut self, most: usize, weight: impl Fn(&Entry) -> usize) {
        self.total = self.entries.len();
        self.entries.sort_by(|a, b| {
            let key = |entry: &Entry| Reverse(weight(entry));
            key(a).cmp(&key(b)).then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
        });
        self.entries.truncate(most);
    }
}

impl Report for Night {
    fn lines(&self) -> Vec<String> {
        let day = |time: &DateTime<FixedOffset>| time.format("%a %F %H:%M").to_string();
        let unknown = if self.unknown > 0 { format!(", {} not known any more", self.unknown) } else { String::new() };
        let mut lines = vec![format!(
            "Last night, {} to {} ({}): {}, {}, {} started{unknown}.",
            day(&self.from),
            day(&self.to),
            self.time_zone,
            count(self.cron_jobs, "CronJob"),
            count(self.slots, "slot"),
            self.started
        )];
        if self.cut > 0 {
            lines.push(format!("Of {}, only the last {SLOTS} slots are counted.", count(self.cut, "CronJob")));
        }
        for (title, part) in self.parts() {
            if part.total == 0 {
                lines.extend([String::new(), format!("{title}: none")]);
                continue;
            }
            lines.extend([String::new(), format!("{title}: {}", count(part.total, "CronJob"))]);
            let row = |entry: &Entry| {
                let slots = if entry.seconds.is_some() && entry.slots == 1 {
                    String::new()
                } else {
                    let at_least = if entry.at_least { "at least " } else { "" };
                    format!("{at_least}{}", count(entry.slots, "slot"))
                };
                let name = format!("  {}/{}", entry.namespace, entry.name);
                [name, slots, entry.at.format(MOMENT).to_string(), entry.why.clone()]
            };
            lines.extend(terminal::columns(&part.entries.iter().map(row).collect::<Vec<_>>()));
            let more = part.total - part.entries.len();
            lines.extend((more > 0 && title != "LONGEST").then(|| format!("  and {more} more")));
        }
        lines.extend(self.namespaces_unread.as_deref().map(unread));
        lines
    }
}

#[cfg(test)]
mod tests;
