//! How many Jobs of a CronJob run at a time, which slots wait, when nothing starts, and what Pods are told: the policies that
//! choose no slots.
//!
//! Guarantees: what is read depends on the annotations and on the fields in [`Setting`] alone. A combination that could not
//! do what it says is an error. Without an annotation, [`Limits`] is the default, which changes nothing.

use chrono::TimeDelta;
use schedule::parse_duration;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{
    AFTER_CHANGE, BACKLOG, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, PolicyError, REPLACE_WAITS, SLOT_IN_POD, STUCK_AFTER,
    is_interval, quoted, read,
};
use crate::api::batch_v1::ConcurrencyPolicy;

/// The annotations of [`Limits`], in the order of its fields.
pub const LIMITS: [&str; 7] =
    [MAX_CONCURRENT, BACKLOG, REPLACE_WAITS, AFTER_CHANGE, STUCK_AFTER, PAUSE_AFTER_FAILURES, SLOT_IN_POD];

/// The values of the annotations in [`LIMITS`], where present.
pub(super) type Values<'a> = [Option<&'a str>; LIMITS.len()];

const SECOND: i64 = 1_000_000_000;
/// The longest time of `stuck-after`, in seconds: a year.
const LONGEST_RUN: i64 = 8_760 * 3_600;
/// The most lines of a schedule of which slots wait. Each slot that may wait is searched for in every line.
const MOST_LINES_WITH_BACKLOG: usize = 16;

/// The fields of a CronJob's spec that its policies are read with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// `schedule`.
    pub schedule: &'a str,
    /// `concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// `successfulJobsHistoryLimit`.
    pub successful_jobs_history_limit: Option<i32>,
    /// `failedJobsHistoryLimit`.
    pub failed_jobs_history_limit: Option<i32>,
    /// `jobTemplate`, as JSON.
    pub job_template: &'a str,
}

/// A spec with the default policy, which keeps all Jobs.
impl<'a> From<&'a str> for Setting<'a> {
    fn from(schedule: &'a str) -> Self {
        Self {
            schedule,
            concurrency_policy: ConcurrencyPolicy::Allow,
            successful_jobs_history_limit: None,
            failed_jobs_history_limit: None,
            job_template: "{}",
        }
    }
}

impl Setting<'_> {
    /// Whether finished Jobs delete themselves.
    fn has_ttl(&self) -> bool {
        #[derive(Deserialize)]
        struct Template {
            spec: Option<Spec>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            ttl_seconds_after_finished: Option<IgnoredAny>,
        }
        let spec = serde_json::from_str::<Template>(self.job_template).ok().and_then(|template| template.spec);
        spec.is_some_and(|spec| spec.ttl_seconds_after_finished.is_some())
    }
}

/// The limits that an object's annotations set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most unfinished Jobs beside which none starts, in place of Allow and Forbid.
    pub max_concurrent: Option<usize>,
    /// The most slots that wait.
    pub backlog: Option<usize>,
    /// Whether Replace starts a Job when the one that it replaces is gone.
    pub replace_waits: bool,
    /// Whether an edit or a resume passes over the slots before it.
    pub waits_after_change: bool,
    /// When a Job that blocks a slot counts as stuck.
    pub stuck_after: Option<StuckAfter>,
    /// After how many failures in a row nothing starts.
    pub pause_after_failures: Option<usize>,
    /// Whether the Pods of a Job get its slot in annotations.
    pub slot_in_pod: bool,
}

/// When a Job that blocks a slot counts as stuck, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StuckAfter {
    /// How long it runs by then.
    pub age: TimeDelta,
    /// Whether it is deleted.
    pub delete: bool,
}

impl Limits {
    /// The annotations that change something.
    pub fn effective(&self) -> impl Iterator<Item = &'static str> + use<> {
        let Self {
            max_concurrent,
            backlog,
            replace_waits,
            waits_after_change,
            stuck_after,
            pause_after_failures,
            slot_in_pod,
        } = *self;
        let all = [
            (MAX_CONCURRENT, max_concurrent.is_some()),
            (BACKLOG, backlog.is_some()),
            (REPLACE_WAITS, replace_waits),
            (AFTER_CHANGE, waits_after_change),
            (STUCK_AFTER, stuck_after.is_some()),
            (PAUSE_AFTER_FAILURES, pause_after_failures.is_some()),
            (SLOT_IN_POD, slot_in_pod),
        ];
        all.into_iter().filter_map(|(name, is_set)| is_set.then_some(name))
    }

    /// Whether one of them holds slots, or says what becomes of held ones.
    pub fn hold(&self) -> bool {
        Self { waits_after_change: false, slot_in_pod: false, ..*self } != Self::default()
    }

    /// After what time a Job that blocks a slot is deleted.
    pub fn deletes_after(&self) -> Option<TimeDelta> {
        self.stuck_after.filter(|stuck| stuck.delete).map(|stuck| stuck.age)
    }

    /// Whether Jobs are deleted that exist until their Pods are gone.
    pub fn deletes_in_foreground(&self) -> bool {
        self.replace_waits || self.deletes_after().is_some()
    }

    /// `lines` is the number of lines of the schedule.
    pub(super) fn read(values: &Values<'_>, setting: &Setting<'_>, lines: usize) -> Result<Self, PolicyError> {
        let [max_concurrent, backlog, replace_waits, after_change, stuck_after, pause, slot_in_pod] = *values;
        let limits = Self {
            max_concurrent: read(MAX_CONCURRENT, max_concurrent, |text| number(text, 1, 1_000))?,
            backlog: read(BACKLOG, backlog, |text| number(text, 0, 100))?,
            replace_waits: read(REPLACE_WAITS, replace_waits, |text| one_of(text, &["true"]))?.is_some(),
            waits_after_change: read(AFTER_CHANGE, after_change, |text| one_of(text, &["fire", "wait"]))? == Some(1),
            stuck_after: read(STUCK_AFTER, stuck_after, stuck)?,
            pause_after_failures: read(PAUSE_AFTER_FAILURES, pause, |text| number(text, 1, 100))?,
            slot_in_pod: read(SLOT_IN_POD, slot_in_pod, |text| one_of(text, &["false", "true"]))? == Some(1),
        };
        match limits.contradicted_by(setting, lines) {
            None => Ok(limits),
            Some((annotation, with)) => {
                let value =
                    LIMITS.iter().zip(values).find(|(name, _)| **name == annotation).and_then(|(_, text)| *text);
                Err(PolicyError::Combination { annotation, value: quoted(value.unwrap_or_default()), with })
            }
        }
    }

    /// The annotation that cannot be combined with another one or with the spec, and with what.
    fn contradicted_by(&self, setting: &Setting<'_>, lines: usize) -> Option<(&'static str, &'static str)> {
        let replaces = setting.concurrency_policy == ConcurrencyPolicy::Replace;
        let blocks = self.max_concurrent.is_some() || setting.concurrency_policy == ConcurrencyPolicy::Forbid;
        let keeps_too_few = |needed: &usize| {
            setting.failed_jobs_history_limit.is_some_and(|kept| usize::try_from(kept).unwrap_or(0) < *needed)
        };
        let pauses = self.pause_after_failures.is_some();
        let waits = self.backlog.is_some_and(|slots| slots > 0);
        let is_interval = (self.backlog.is_some() || self.waits_after_change) && is_interval(setting.schedule);
        let every = "@every in spec.schedule, which has no calendar";
        let rows = [
            (MAX_CONCURRENT, self.max_concurrent.is_some() && replaces, "concurrencyPolicy Replace"),
            (
                BACKLOG,
                waits && !blocks,
                "a concurrencyPolicy other than Forbid, unless cronjob-controller.dev/max-concurrent is set",
            ),
            (BACKLOG, self.backlog.is_some() && is_interval, every),
            (
                BACKLOG,
                waits && lines > MOST_LINES_WITH_BACKLOG,
                "more than 16 different lines in cronjob-controller.dev/schedule",
            ),
            (REPLACE_WAITS, self.replace_waits && !replaces, "a concurrencyPolicy other than Replace"),
            (AFTER_CHANGE, self.waits_after_change && is_interval, every),
            (
                STUCK_AFTER,
                self.stuck_after.is_some() && self.replace_waits,
                "cronjob-controller.dev/replace-waits, which deletes the Job itself",
            ),
            (
                PAUSE_AFTER_FAILURES,
                self.pause_after_failures.as_ref().is_some_and(keeps_too_few),
                "a failedJobsHistoryLimit below it",
            ),
            (
                PAUSE_AFTER_FAILURES,
                pauses && setting.successful_jobs_history_limit == Some(0),
                "successfulJobsHistoryLimit 0",
            ),
            (PAUSE_AFTER_FAILURES, pauses && setting.has_ttl(), "ttlSecondsAfterFinished in the Job template"),
        ];
        rows.into_iter()
            .find(|(_, is_contradicted, _)| *is_contradicted)
            .map(|(annotation, _, with)| (annotation, with))
    }
}

/// Reads a number in decimal digits, without a sign and leading zeros.
fn number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    let number = text.parse().ok().filter(|number| is_plain && (least..=most).contains(number));
    number.ok_or_else(|| format!("no whole number from {least} to {most}"))
}

/// The place of the value in a list.
fn one_of(text: &str, allowed: &[&str]) -> Result<usize, &'static str> {
    allowed.iter().position(|known| *known == text).ok_or("no such value")
}

fn stuck(text: &str) -> Result<StuckAfter, String> {
    let (age, delete) = match text.split_once(',') {
        None => (text, false),
        Some((age, action)) if action.trim_matches(' ') == "delete" => (age.trim_matches(' '), true),
        Some((_, action)) => return Err(format!("{action:?} is no action")),
    };
    let seconds = parse_duration(age)? / SECOND;
    let age = TimeDelta::try_seconds(seconds).filter(|_| (1..=LONGEST_RUN).contains(&seconds));
    Ok(StuckAfter { age: age.ok_or("not between 1s and 8760h")?, delete })
}

#[cfg(test)]
pub(super) mod tests;
