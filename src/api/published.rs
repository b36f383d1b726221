//! What `--publish` writes to annotations of a CronJob, for people and programs that read it with kubectl.
//!
//! Guarantees: no decision depends on it. It is written in the patch of the status, and read back from the object, so that
//! it is written only when it changes. A value that this controller did not write counts as none.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::policy::{LAST_FAILURE, NEXT_RUN};

/// Which annotations are written: none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// When the next Job is due.
    pub next_run: bool,
    /// When a Job last failed.
    pub last_failure: bool,
}

impl Publish {
    /// The values of `--publish`.
    pub const NAMES: [&str; 2] = ["next-run", "last-failure"];

    /// Adds the annotation of that name; `None` if there is none.
    #[must_use]
    pub fn with(self, name: &str) -> Option<Self> {
        match name {
            "next-run" => Some(Self { next_run: true, ..self }),
            "last-failure" => Some(Self { last_failure: true, ..self }),
            _ => None,
        }
    }

    /// The names of the annotations that are written.
    pub fn names(self) -> Vec<&'static str> {
        let chosen = [self.next_run, self.last_failure];
        Self::NAMES.into_iter().zip(chosen).filter_map(|(name, is_chosen)| is_chosen.then_some(name)).collect()
    }
}

/// The values on one CronJob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// When the next Job is due. A time in the past is that of a slot that is held.
    pub next_run: Option<DateTime<Utc>>,
    /// When a Job last failed.
    pub last_failure: Option<DateTime<Utc>>,
}

impl Published {
    /// Reads the annotations; `None` if neither has a value.
    pub fn parse(next_run: Option<&str>, last_failure: Option<&str>) -> Option<Box<Self>> {
        let time = |text: Option<&str>| DateTime::parse_from_rfc3339(text?).ok().map(|time| time.to_utc());
        Self { next_run: time(next_run), last_failure: time(last_failure) }.boxed()
    }

    /// The same; `None` if it has no value.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// A merge patch of the annotations that turns `old` into `new`.
    pub fn patch(old: Option<&Self>, new: Option<&Self>) -> Map<String, Value> {
        let none = Self::default();
        let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
        let text = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
        [(NEXT_RUN, old.next_run, new.next_run), (LAST_FAILURE, old.last_failure, new.last_failure)]
            .into_iter()
            .filter(|(_, old, new)| old != new)
            .map(|(name, _, new)| (name.to_owned(), json!(new.map(text))))
            .collect()
    }
}
