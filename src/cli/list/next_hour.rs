//! What runs in the next hour, minute by minute: `list --next-hour`, and the same on the page.
//!
//! Guarantees: what becomes of each slot is what [`forecast`](crate::cli::forecast) says. A minute has at most [`MOST`] runs, those that
//! are held first, and says how many there are. In the table, slots of a CronJob that are held in the same way are one line. Pure.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::cli::cluster::Known;
use crate::cli::explain::{State, Urgency, explain};
use crate::cli::forecast::{Ahead, Question, Will};
use crate::cli::output::{Report, count, named};
use crate::cli::restrictions::unread;

/// The most runs of a minute in an answer.
const MOST: usize = 50;
/// The minutes of an hour.
const MINUTES: usize = 60;
/// So many of the fullest minutes are named, and so many CronJobs of a minute.
const FULLEST: usize = 5;
const NAMED: usize = 5;

/// The next hour.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NextHour {
    from: DateTime<FixedOffset>,
    to: DateTime<FixedOffset>,
    time_zone: &'static str,
    /// The CronJobs that have a slot in it.
    #[serde(rename = "cronJobCount")]
    cron_jobs: usize,
    slots: usize,
    /// The slots that do not start when they are due.
    held: usize,
    /// The slots of which that is not known.
    unknown: usize,
    /// How many CronJobs do not run now, by their state.
    stopped: BTreeMap<&'static str, usize>,
    /// Of how many the slots are not known, because the in-tree controller runs them in a zone that is not known here.
    slots_unknown: usize,
    /// The minutes in which a slot is due.
    minutes: Vec<Minute>,
    /// Why what their Namespaces say is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces_unread: Option<String>,
}

/// A minute.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Minute {
    at: DateTime<FixedOffset>,
    /// The slots that are due in it.
    slots: usize,
    held: usize,
    unknown: usize,
    runs: Vec<Run>,
}

/// A slot of a CronJob.
#[derive(Debug, Serialize)]
struct Run {
    namespace: String,
    name: String,
    #[serde(flatten)]
    ahead: Ahead,
}

impl Run {
    /// Whether it is not said to start when it is due.
    fn is_held(&self) -> bool {
        self.ahead.will != Will::Start
    }

    fn is_unknown(&self) -> bool {
        self.ahead.will == Will::Unknown
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl NextHour {
    /// The hour from `now` on, with times in `zone`; `local` is the zone of the controller.
    pub(crate) fn of(
        known: impl IntoIterator<Item = impl Borrow<Known>>,
        local: Zone,
        zone: Zone,
        now: DateTime<Utc>,
    ) -> Self {
        let until = now + TimeDelta::hours(1);
        let mut minutes: BTreeMap<i64, Vec<Run>> = BTreeMap::new();
        let (mut cron_jobs, mut slots_unknown, mut stopped, mut namespaces_unread) = (0, 0, BTreeMap::new(), None);
        for known in known {
            let known: &Known = known.borrow();
            let facts = &known.facts;
            namespaces_unread = namespaces_unread.or_else(|| facts.namespace_unread.clone());
            let told = explain(facts, local, now);
            let question = Question { facts, told: &told, local, zone, now, until, most: MINUTES };
            let runs = question.answer();
            cron_jobs += usize::from(!runs.is_empty());
            slots_unknown += usize::from(told.by_schedule == State::SlotsUnknown);
            if matches!(told.by_schedule.urgency(), Urgency::Stopped | Urgency::Stuck) {
                *stopped.entry(told.by_schedule.label()).or_default() += 1;
            }
            for ahead in runs {
                let (namespace, name) = (told.namespace.clone(), told.name.clone());
                let minute = ahead.due.max(now).timestamp().div_euclid(60);
                minutes.entry(minute).or_default().push(Run { namespace, name, ahead });
            }
        }
        let minutes: Vec<Minute> = minutes.into_iter().map(|(minute, runs)| Minute::of(minute, runs, zone)).collect();
        Self {
            from: zone.at(now),
            to: zone.at(until),
            time_zone: zone.name(),
            cron_jobs,
            slots: minutes.iter().map(|minute| minute.slots).sum(),
            held: minutes.iter().map(|minute| minute.held).sum(),
            unknown: minutes.iter().map(|minute| minute.unknown).sum(),
            stopped,
            slots_unknown,
            minutes,
            namespaces_unread,
        }
    }

    /// The minutes in which the most slots start, the fullest first.
    fn fullest(&self) -> Vec<&Minute> {
        let mut fullest: Vec<&Minute> = self.minutes.iter().filter(|minute| minute.starts() > 1).collect();
        fullest.sort_by_key(|minute| Reverse(minute.starts()));
        fullest.truncate(FULLEST);
        fullest
    }
}

impl Minute {
    fn of(minute: i64, mut runs: Vec<Run>, zone: Zone) -> Self {
        runs.sort_by(|a, b| {
            let key = |run: &Run| !run.is_held();
            key(a).cmp(&key(b)).then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
        });
        let unknown = runs.iter().filter(|run| run.is_unknown()).count();
        let (slots, held) = (runs.len(), runs.iter().filter(|run| run.is_held()).count() - unknown);
        runs.truncate(MOST);
        Self { at: zone.at(DateTime::from_timestamp(minute * 60, 0).unwrap_or_default()), slots, held, unknown, runs }
    }

    /// The slots that start when they are due.
    fn starts(&self) -> usize {
        self.slots - self.held - self.unknown
    }

    /// The runs that start, by name, of those that the answer has.
    fn starting(&self) -> Vec<String> {
        self.runs.iter().filter(|run| !run.is_held()).map(Run::full_name).collect()
    }

    /// Whether in the minute after `before` the same CronJobs start.
    fn repeats(&self, before: &Self) -> bool {
        let is_whole = |minute: &Self| minute.slots == minute.runs.len();
        let is_next = self.at - before.at == TimeDelta::minutes(1);
        is_next && is_whole(self) && is_whole(before) && self.starting() == before.starting()
    }

    /// The line of what starts in the minutes from this one to `last`, which are alike.
    fn line(&self, last: &Self) -> Option<String> {
        let clock = clock(self.at, last.at);
        let starts = self.starts();
        let names = self.starting();
        (!names.is_empty()).then(|| format!("{clock}  {starts:>3}  {}", named(names.into_iter(), NAMED, starts)))
    }

    /// How many more are held, or may be, than the answer has.
    fn untold(&self) -> usize {
        (self.held + self.unknown).saturating_sub(self.runs.iter().filter(|run| run.is_held()).count())
    }
}

fn clock(from: DateTime<FixedOffset>, to: DateTime<FixedOffset>) -> String {
    let [from, to] = [from, to].map(|at| at.format("%H:%M").to_string());
    if from == to { from } else { format!("{from} to {to}") }
}

/// The slots of a CronJob that are held in the same way.
struct Held {
    from: DateTime<FixedOffset>,
    to: DateTime<FixedOffset>,
    slots: usize,
    what: String,
}

impl Held {
    /// Those of an hour, in the order of their first slots.
    fn of(minutes: &[Minute]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for minute in minutes {
            for run in minute.runs.iter().filter(|run| run.is_held()) {
                let what = match (run.ahead.will, run.ahead.starts) {
                    (Will::Skip, _) => "skipped".to_owned(),
                    (Will::Unknown, _) => "not known".to_owned(),
                    (_, Some(time)) => {
                        format!("held until {}", time.with_timezone(minute.at.offset()).format("%H:%M:%S"))
                    }
                    (_, None) => "held".to_owned(),
                };
                let what = format!("{}: {what}: {}", run.full_name(), run.ahead.why);
                let place = *places.entry(what.clone()).or_insert(all.len());
                match all.get_mut(place) {
                    Some(held) => (held.to, held.slots) = (minute.at, held.slots + 1),
                    None => all.push(Self { from: minute.at, to: minute.at, slots: 1, what }),
                }
            }
        }
        all
    }

    fn line(&self) -> String {
        let slots = if self.slots > 1 { format!(" ({})", count(self.slots, "slot")) } else { String::new() };
        format!("{}    -  {}{slots}", clock(self.from, self.to), self.what)
    }
}

impl Report for NextHour {
    fn lines(&self) -> Vec<String> {
        let held = if self.held > 0 { format!(", {} held or skipped", self.held) } else { String::new() };
        let unknown = if self.unknown > 0 { format!(", {} not known", self.unknown) } else { String::new() };
        let mut lines = vec![format!(
            "The next hour, {} to {} ({}): {} of {}{held}{unknown}.",
            self.from.format("%a %F %H:%M"),
            self.to.format("%H:%M"),
            self.time_zone,
            count(self.slots, "slot"),
            count(self.cron_jobs, "CronJob")
        )];
        if !self.stopped.is_empty() {
            let stopped: Vec<String> = self.stopped.iter().map(|(state, number)| format!("{number} {state}")).collect();
            lines.push(format!("Not running now: {}.", stopped.join(", ")));
        }
        if self.slots_unknown > 0 {
            let number = count(self.slots_unknown, "CronJob");
            lines.push(format!("The slots of {number} are not known here: spec.timeZone is not."));
        }
        if !self.minutes.is_empty() {
            lines.push(String::new());
        }
        let held = Held::of(&self.minutes);
        let begins = |minute: &Minute| held.iter().filter(|held| held.from == minute.at).collect::<Vec<_>>();
        let mut minutes = self.minutes.iter().peekable();
        while let Some(first) = minutes.next() {
            let mut last = first;
            while let Some(next) = minutes.next_if(|next| next.repeats(last) && begins(next).is_empty()) {
                last = next;
            }
            lines.extend(first.line(last));
            lines.extend(begins(first).into_iter().map(Held::line));
        }
        let untold = self.minutes.iter().map(Minute::untold).max().filter(|untold| *untold > 0);
        lines.extend(untold.map(|untold| format!("In a minute, up to {untold} more are held.")));
        let fullest = self.fullest();
        if !fullest.is_empty() {
            let minute = |minute: &&Minute| format!("{} ({})", minute.at.format("%H:%M"), minute.starts());
            let fullest = fullest.iter().map(minute).collect::<Vec<_>>().join(", ");
            lines.extend([String::new(), format!("The fullest minutes: {fullest}.")]);
        }
        lines.extend(self.namespaces_unread.as_deref().map(unread));
        lines
    }
}

#[cfg(test)]
mod tests;
