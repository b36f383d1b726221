//! The sums of a shadow, and what it prints.
//!
//! Guarantees: the sums follow from the changes that `compare` returns, so a finding that is corrected is taken back. Every list is
//! bounded, with the number of what it leaves out. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, DurationRound as _, TimeDelta, Timelike as _, Utc};
use serde::Serialize;

use super::compare::{Change, Finding};
use super::lateness::{Lateness, Quantiles, seconds};
use super::what_if::{Changed, Supposed, WhatIf};
use crate::api::{ObjectName, Uid};
use crate::cli::output::{Report as Printed, count, stretch};
use crate::cli::restrictions::unread;
use crate::terminal;

/// The most entries of a list.
pub(super) const MOST: usize = 5_000;
/// How many of the latest Jobs, and of the minutes with most of them, are named.
const WORST: usize = 10;
/// How many minutes are summed at a time; the hottest of them stay.
const MINUTES: usize = 64;
/// The annotation that says for which slot a Job is.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// A start as late as this is among the worst cases.
const LATE: TimeDelta = TimeDelta::seconds(1);

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    pub namespace: String,
    pub name: String,
    /// The slot; without one where a status is wrong that tells of none.
    pub slot: Option<DateTime<Utc>>,
    /// A sentence.
    pub why: String,
    /// The CronJob's UID, and when the Job of the slot may start.
    #[serde(skip)]
    pub of: Option<(Uid, DateTime<Utc>)>,
}

/// A list of differences, and how many it leaves out.
#[derive(Clone, Debug, Default)]
pub(super) struct Differences {
    entries: Vec<Entry>,
    more: usize,
}

impl Differences {
    fn add(&mut self, entry: Entry) {
        if self.entries.len() < MOST {
            self.entries.push(entry);
        } else {
            self.more += 1;
        }
    }

    fn remove(&mut self, name: &ObjectName, slot: DateTime<Utc>, why: &str) {
        let is_meant = |entry: &Entry| {
            entry.slot == Some(slot)
                && *entry.namespace == *name.namespace
                && *entry.name == *name.name
                && entry.why == why
        };
        match self.entries.iter().position(is_meant) {
            Some(place) => drop(self.entries.remove(place)),
            None => self.more = self.more.saturating_sub(1),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len() + self.more
    }
}

/// A start that was late.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Late {
    namespace: String,
    name: String,
    slot: DateTime<Utc>,
    seconds: f64,
    why: String,
}

/// The slots of CronJobs with annotations that the controller in charge does not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Apart {
    slots: u64,
    same: u64,
}

/// The starts of a minute.
#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    slots: u64,
    max: TimeDelta,
}

/// The sums.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub same: u64,
    pub missed: Differences,
    pub twice: Differences,
    /// Differences of slots, and wrong statuses.
    pub differs: Differences,
    /// Differences that docs/divergences.md lists.
    pub listed: Differences,
    /// How many of `differs` are not about a slot.
    statuses: u64,
    pub not_seen: u64,
    /// The Jobs that do not say for which slot they are.
    pub unannotated: u64,
    apart: Apart,
    /// Of the controller in charge.
    pub late: Lateness,
    /// Of this one, up to the point of sending.
    pub own: Lateness,
    by_minute: BTreeMap<u32, Lateness>,
    minutes: BTreeMap<DateTime<Utc>, Minute>,
    worst: Vec<Late>,
    /// How many of the slots that neither controller started the API server refused.
    refused: u64,
    /// What other policies would have changed.
    pub supposed: Supposed,
}

impl Sums {
    /// Sums that also tell what `policies` would have changed, with the `--spread-seed`.
    pub fn supposing(policies: WhatIf, seed: &Arc<str>) -> Self {
        Self { supposed: Supposed::new(policies, Arc::clone(seed)), ..Self::default() }
    }

    /// Takes a change of a finding about a CronJob.
    pub fn apply(&mut self, name: &ObjectName, change: &Change) {
        let is_counted = |finding: &Option<Finding>| u64::from(!matches!(finding, None | Some(Finding::NotSeen)));
        let is_same = |finding: &Option<Finding>| u64::from(*finding == Some(Finding::Same));
        if change.was_apart {
            self.apart.slots = self.apart.slots.saturating_sub(is_counted(&change.before));
            self.apart.same = self.apart.same.saturating_sub(is_same(&change.before));
        }
        if change.is_apart {
            self.apart.slots += is_counted(&change.after);
            self.apart.same += is_same(&change.after);
        }
        let slot = change.slot;
        // No annotation allows a second Job.
        let is_of_sums = |is_apart: bool, finding: &Finding| !is_apart || matches!(finding, Finding::Twice(_));
        match change.before.as_ref().filter(|before| is_of_sums(change.was_apart, before)) {
            None => {}
            Some(Finding::Same) => self.same = self.same.saturating_sub(1),
            Some(Finding::NotSeen) => self.not_seen = self.not_seen.saturating_sub(1),
            Some(Finding::Missed(why)) => self.missed.remove(name, slot, why),
            Some(Finding::Twice(why)) => self.twice.remove(name, slot, why),
            Some(Finding::Differs(why)) => self.differs.remove(name, slot, why),
            Some(Finding::Listed(why)) => self.listed.remove(name, slot, why),
        }
        match change.after.as_ref().filter(|after| is_of_sums(change.is_apart, after)) {
            None => {}
            Some(Finding::Same) => self.same += 1,
            Some(Finding::NotSeen) => self.not_seen += 1,
            Some(Finding::Missed(why)) => {
                self.missed.add(Entry { of: Some((change.uid.clone(), change.due)), ..entry(name, Some(slot), why) });
            }
            Some(Finding::Twice(why)) => self.twice.add(entry(name, Some(slot), why)),
            Some(Finding::Differs(why)) => self.differs.add(entry(name, Some(slot), why)),
            Some(Finding::Listed(why)) => self.listed.add(entry(name, Some(slot), why)),
        }
        if change.is_apart {
            return;
        }
        if let Some(own) = change.own {
            self.own.add(own);
        }
        if let Some(late) = change.late {
            self.start(name, change, late);
        }
    }

    fn start(&mut self, name: &ObjectName, change: &Change, late: TimeDelta) {
        self.supposed.start(name, change.slot);
        self.late.add(late);
        self.by_minute.entry(change.due.minute()).or_default().add(late);
        let minute = change.due.duration_trunc(TimeDelta::minutes(1)).unwrap_or(change.due);
        let known = self.minutes.entry(minute).or_default();
        *known = Minute { slots: known.slots + 1, max: known.max.max(late) };
        if self.minutes.len() > MINUTES {
            let newest = self.minutes.last_key_value().map(|(minute, _)| *minute);
            let coolest =
                self.minutes.iter().filter(|(minute, _)| newest > Some(**minute)).min_by_key(|(_, known)| known.slots);
            if let Some(coolest) = coolest.map(|(minute, _)| *minute) {
                self.minutes.remove(&coolest);
            }
        }
        if late >= LATE {
            let Entry { namespace, name, .. } = entry(name, None, "");
            let why = format!("its Job was created {} s late", seconds(late));
            let place = self.worst.partition_point(|known| known.seconds >= seconds(late));
            self.worst.insert(place, Late { namespace, name, slot: change.slot, seconds: seconds(late), why });
            self.worst.truncate(WORST);
        }
    }

    /// Takes a status that is wrong; `slot` is the newest that had a Job.
    pub fn wrong_status(&mut self, name: &ObjectName, slot: Option<DateTime<Utc>>, why: &str) {
        self.statuses += 1;
        self.differs.add(entry(name, slot, why));
    }

    /// The namespaces of the missed slots that are listed.
    pub fn namespaces_of_missed(&self) -> BTreeSet<String> {
        self.missed.entries.iter().map(|entry| entry.namespace.clone()).collect()
    }

    /// Takes back the missed slots in `namespace` whose Jobs the API server refused: no controller could have started them.
    pub fn take_back_refused(&mut self, namespace: &str, refused: impl Fn(&Entry) -> bool) {
        let is_refused = |entry: &Entry| entry.namespace == namespace && refused(entry);
        let before = self.missed.entries.len();
        self.missed.entries.retain(|entry| !is_refused(entry));
        let taken_back = (before - self.missed.entries.len()) as u64;
        self.same += taken_back;
        self.refused += taken_back;
    }

    /// The number of slots that were compared.
    pub fn slots(&self) -> u64 {
        let differences = self.missed.len() + self.twice.len() + self.differs.len() + self.listed.len();
        self.same + (differences as u64).saturating_sub(self.statuses)
    }

    /// Whether nothing differs but what docs/divergences.md lists. Lateness alone does not differ.
    pub fn is_same(&self) -> bool {
        self.missed.len() + self.twice.len() + self.differs.len() == 0
    }

    /// The share of slots about which both controllers agree, in percent, rounded down to a hundredth; `None` of no slots.
    pub fn agreement(&self) -> Option<f64> {
        let hundredths = (self.same * 10_000).checked_div(self.slots())?;
        Some(f64::from(u32::try_from(hundredths).unwrap_or(10_000)) / 100.0)
    }

    /// The report of what was watched from `since` to `until`; `open` slots have no Job yet.
    pub fn report(&self, cron_jobs: usize, open: usize, since: DateTime<Utc>, until: DateTime<Utc>) -> Report {
        let by_minute = self.by_minute.iter().map(|(minute, late)| OfMinute {
            minute: *minute,
            slots: late.len(),
            late: late.quantiles(),
        });
        let mut hottest: Vec<Hot> = self
            .minutes
            .iter()
            .map(|(minute, known)| Hot { minute: *minute, slots: known.slots, max: seconds(known.max) })
            .collect();
        hottest.sort_by_key(|hot| (std::cmp::Reverse(hot.slots), hot.minute));
        hottest.truncate(WORST);
        Report {
            since,
            until,
            cron_jobs,
            slots: self.slots(),
            same: self.same,
            agreement: self.agreement(),
            late: self.late.quantiles(),
            own: self.own.quantiles(),
            missed: self.missed.entries.clone(),
            twice: self.twice.entries.clone(),
            differs: self.differs.entries.clone(),
            listed: self.listed.entries.clone(),
            more: More {
                missed: self.missed.more,
                twice: self.twice.more,
                differs: self.differs.more,
                listed: self.listed.more,
            },
            not_seen: self.not_seen,
            refused: self.refused,
            what_if: self.supposed.changed(),
            open,
            apart: self.apart,
            by_minute: by_minute.collect(),
            hottest,
            worst: self.worst.clone(),
            verdict: self.verdict(),
            namespaces_unread: None,
        }
    }

    fn verdict(&self) -> String {
        if self.unannotated == 0 {
            return self.verdict_of_slots();
        }
        let jobs = count(usize::try_from(self.unannotated).unwrap_or(usize::MAX), "Job");
        format!(
            "{} {jobs} without the annotation {SCHEDULED} could not be compared: control planes before 1.28 do not write it.",
            self.verdict_of_slots()
        )
    }

    fn verdict_of_slots(&self) -> String {
        let slots = self.slots();
        let late = self.late.quantiles();
        if slots == 0 {
            return "No slot was compared.".to_owned();
        }
        let counted = count(usize::try_from(slots).unwrap_or(usize::MAX), "slot");
        if self.is_same() {
            let but = match self.listed.len() {
                0 => String::new(),
                listed => format!(", but for {listed} that differ as docs/divergences.md lists"),
            };
            return format!(
                "{counted}: this controller would have started the same Jobs{but}. The latest was {} s late.",
                late.max
            );
        }
        let (missed, twice, differs) = (self.missed.len(), self.twice.len(), self.differs.len());
        format!("{counted}: the controller in charge missed {missed}, started {twice} twice, and differs in {differs}.")
    }
}

fn entry(name: &ObjectName, slot: Option<DateTime<Utc>>, why: &str) -> Entry {
    Entry { namespace: name.namespace.to_string(), name: name.name.to_string(), slot, why: why.to_owned(), of: None }
}

/// How many entries the lists leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct More {
    missed: usize,
    twice: usize,
    differs: usize,
    listed: usize,
}

/// The starts of one minute of the hour.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct OfMinute {
    minute: u32,
    slots: u64,
    #[serde(flatten)]
    late: Quantiles,
}

/// A minute with many starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Hot {
    minute: DateTime<Utc>,
    slots: u64,
    max: f64,
}

/// What a shadow found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    since: DateTime<Utc>,
    until: DateTime<Utc>,
    cron_jobs: usize,
    /// The slots that were compared.
    slots: u64,
    /// Those about which both controllers agree, however late.
    same: u64,
    /// The same in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agreement: Option<f64>,
    /// How late the controller in charge was, in seconds.
    late: Quantiles,
    /// How late this controller was ready to send its creates, in seconds.
    own: Quantiles,
    missed: Vec<Entry>,
    twice: Vec<Entry>,
    differs: Vec<Entry>,
    /// Differences of the in-tree controller that docs/divergences.md lists.
    listed: Vec<Entry>,
    more: More,
    /// Slots in a gap of the watch, or around a change of the CronJob.
    not_seen: u64,
    /// Slots among `same` whose Jobs the API server refused.
    refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    what_if: Option<Changed>,
    /// Slots without a Job at the end that are not old enough to be missed.
    open: usize,
    apart: Apart,
    by_minute: Vec<OfMinute>,
    hottest: Vec<Hot>,
    worst: Vec<Late>,
    verdict: String,
    /// Why what the Namespaces say is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces_unread: Option<String>,
}

impl Printed for Report {
    fn lines(&self) -> Vec<String> {
        let Self { slots, same, late, own, .. } = self;
        let mut lines = vec![
            format!(
                "{} of {}, {} to {}",
                count(self.cron_jobs, "CronJob"),
                stretch(self.until - self.since),
                told(self.since),
                told(self.until)
            ),
            match self.agreement {
                Some(share) => format!("Slots compared: {slots}, the same: {same} ({share:.2} %)"),
                None => "Slots compared: 0".to_owned(),
            },
            format!("Lateness of the controller in charge: p50 {} s, p99 {} s, max {} s", late.p50, late.p99, late.max),
            format!(
                "This controller was ready to send: p50 {} s, p99 {} s, max {} s; each create would still have to be answered",
                own.p50, own.p99, own.max
            ),
        ];
        if self.not_seen > 0 {
            lines.push(format!("Not seen: {}, in a gap of the watch or around a change", self.not_seen));
        }
        if self.refused > 0 {
            lines.push(format!("Refused by the API server, so that no controller could start them: {}", self.refused));
        }
        if self.open > 0 {
            lines.push(format!("Without a Job yet: {}", self.open));
        }
        if self.apart.slots > 0 {
            let Apart { slots, same } = self.apart;
            lines.push(format!(
                "Apart, with annotations that the controller in charge does not read: {slots}, the same: {same}"
            ));
        }
        let lists = [
            ("Missed", &self.missed, self.more.missed),
            ("Twice", &self.twice, self.more.twice),
            ("Differs", &self.differs, self.more.differs),
            ("Differs as docs/divergences.md lists", &self.listed, self.more.listed),
        ];
        for (title, entries, more) in lists.into_iter().filter(|(_, entries, _)| !entries.is_empty()) {
            lines.extend([String::new(), format!("{title}: {}", entries.len() + more)]);
            let row = |entry: &Entry| {
                let slot = entry.slot.map_or_else(|| "-".to_owned(), told);
                [format!("  {}/{}", entry.namespace, entry.name), slot, entry.why.clone()]
            };
            lines.extend(terminal::columns(&entries.iter().take(WORST).map(row).collect::<Vec<_>>()));
            let hidden = entries.len().saturating_sub(WORST) + more;
            lines.extend((hidden > 0).then(|| format!("  and {hidden} more; -o json lists up to {MOST}")));
        }
        lines.extend(self.namespaces_unread.as_deref().map(unread));
        lines.extend(self.load_lines());
        if let Some(changed) = &self.what_if {
            lines.extend([String::new(), "If every CronJob had these policies:".to_owned()]);
            lines.extend(changed.lines());
        }
        lines.extend([String::new(), self.verdict.clone()]);
        lines
    }
}

impl Report {
    /// The report of a shadow that ended at `now`, before it saw anything.
    pub(super) fn of_nothing(now: DateTime<Utc>) -> Self {
        Sums::default().report(0, 0, now, now)
    }

    /// The same, and why what the Namespaces say is not known.
    #[must_use]
    pub fn without_namespaces(self, namespaces_unread: Option<String>) -> Self {
        Self { namespaces_unread, ..self }
    }

    /// The same, where the watch has a gap at the end because of this `trouble`.
    #[must_use]
    pub fn blind_at_the_end(mut self, trouble: Option<&str>) -> Self {
        if let Some(trouble) = trouble {
            self.verdict = format!("{} At the end nothing was seen any more: {trouble}.", self.verdict);
        }
        self
    }

    fn load_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let is_uneven = |minute: &&OfMinute| minute.late.max >= 1.0;
        let late: Vec<[String; 5]> = self
            .by_minute
            .iter()
            .filter(is_uneven)
            .map(|OfMinute { minute, slots, late }| {
                let told = [late.p50, late.p99, late.max].map(|seconds| format!("{seconds} s"));
                let [p50, p99, max] = told;
                [format!("  :{minute:02}"), slots.to_string(), p50, p99, max]
            })
            .collect();
        if !late.is_empty() {
            let heading = ["  MINUTE", "STARTS", "P50", "P99", "MAX"].map(str::to_owned);
            lines
                .extend([String::new(), "Minutes of the hour with starts that were a second late or more:".to_owned()]);
            lines.extend(terminal::columns(&[vec![heading], late].concat()));
        }
        if !self.hottest.is_empty() {
            let row = |hot: &Hot| [format!("  {}", told(hot.minute)), hot.slots.to_string(), format!("{} s", hot.max)];
            let heading = ["  HOTTEST MINUTE", "STARTS", "LATEST"].map(str::to_owned);
            let table = std::iter::once(heading).chain(self.hottest.iter().map(row)).collect::<Vec<_>>();
            lines.push(String::new());
            lines.extend(terminal::columns(&table));
        }
        if !self.worst.is_empty() {
            let row = |late: &Late| [format!("  {}/{}", late.namespace, late.name), told(late.slot), late.why.clone()];
            lines.extend([String::new(), "The latest starts:".to_owned()]);
            lines.extend(terminal::columns(&self.worst.iter().map(row).collect::<Vec<_>>()));
        }
        lines
    }
}

fn told(time: DateTime<Utc>) -> String {
    time.format("%F %TZ").to_string()
}

#[cfg(test)]
mod tests;
