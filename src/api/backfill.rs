//! What an annotation of a CronJob says about its backfills: the progress of the one that is under way, and which times the
//! earlier ones covered.
//!
//! Guarantees: what is written is read back as the same value. A record of another object, as in a copied manifest, says
//! nothing. Slots at a constant distance take the same space however many they are, and the times of earlier backfills are
//! few: more than [`MOST_RANGES`] are joined, which covers more time and never less. Pure.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Uid;

/// The most slots that one backfill starts. Their record fits in an annotation even if no two have the same distance.
pub const MOST_SLOTS: usize = 5_000;

/// The most times of earlier backfills.
pub const MOST_RANGES: usize = 50;

/// The backfills of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The UID of the CronJob.
    pub uid: Uid,
    /// The times that earlier backfills covered, first and last, in order. A slot in them may have been started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// The backfill that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Backfill>,
}

/// A backfill that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    /// The value of the label on its Jobs.
    pub id: String,
    /// Which process continues it. Another one that finds a new holder stops.
    pub holder: String,
    /// The first time that it covers.
    pub from: DateTime<Utc>,
    /// The last time that it covers.
    pub to: DateTime<Utc>,
    /// Whether it starts slots again whose Job failed.
    pub again: bool,
    /// How many slots it starts.
    pub total: usize,
    /// How many Jobs it created, without the one that was begun last.
    pub created: usize,
    /// The slot whose create was begun last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Begun>,
    /// The slots that are left, oldest first.
    #[serde(serialize_with = "write_slots", deserialize_with = "read_slots")]
    pub left: Vec<DateTime<Utc>>,
}

/// A slot whose create was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// When this was recorded. The create was sent afterwards, if at all.
    pub at: DateTime<Utc>,
}

impl Record {
    /// Of the object `uid`, before its first backfill.
    pub fn new(uid: Uid) -> Self {
        Self { uid, done: Vec::new(), current: None }
    }

    /// Reads the value of the annotation on the object `uid`; `None` if it is no record of that object.
    pub fn read(text: &str, uid: &Uid) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|record| record.uid == *uid)
    }

    /// The value of the annotation.
    pub fn text(&self) -> String {
        // A struct of texts and numbers can be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether the value of the annotation says that a backfill of the object `uid` is under way. Cheaper than
    /// [`Self::read`].
    pub fn is_under_way(text: &str, uid: &Uid) -> bool {
        #[derive(Deserialize)]
        struct Owner {
            uid: Uid,
            #[serde(default)]
            current: Option<IgnoredAny>,
        }
        serde_json::from_str::<Owner>(text).is_ok_and(|owner| owner.uid == *uid && owner.current.is_some())
    }

    /// The record after the end of the backfill that is under way.
    #[must_use]
    pub fn finished(mut self) -> Self {
        if let Some(Backfill { from, to, .. }) = self.current.take() {
            self.done.push((from, to));
            self.done.sort_unstable();
            let mut joined: Vec<(DateTime<Utc>, DateTime<Utc>)> = Vec::new();
            for (from, to) in self.done {
                match joined.last_mut().filter(|last| last.1 >= from) {
                    Some(last) => last.1 = last.1.max(to),
                    None => joined.push((from, to)),
                }
            }
            while joined.len() > MOST_RANGES {
                let (_, to) = joined.remove(1);
                joined[0].1 = to;
            }
            self.done = joined;
        }
        self
    }

    /// Whether an earlier backfill covered a slot.
    pub fn covers(&self, slot: DateTime<Utc>) -> bool {
        self.done.iter().any(|(from, to)| (*from..=*to).contains(&slot))
    }
}

impl Backfill {
    /// How many of its slots were begun.
    pub fn number_begun(&self) -> usize {
        self.total.saturating_sub(self.left.len())
    }
}

/// Writes each longest run of slots at a constant distance as `<first>` or `<first>+<seconds>x<number of further slots>`.
fn write_slots<S: Serializer>(slots: &[DateTime<Utc>], serializer: S) -> Result<S::Ok, S::Error> {
    let mut runs: Vec<String> = Vec::new();
    let mut rest = slots;
    while let [first, others @ ..] = rest {
        let distance = others.first().map_or(0, |second| (*second - *first).num_seconds());
        let pairs = rest.windows(2).take_while(|pair| (pair[1] - pair[0]).num_seconds() == distance);
        let further = pairs.count();
        let first = first.to_rfc3339_opts(SecondsFormat::Secs, true);
        runs.push(if further == 0 { first } else { format!("{first}+{distance}x{further}") });
        rest = &rest[1 + further..];
    }
    serializer.serialize_str(&runs.join(" "))
}

fn read_slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DateTime<Utc>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    slots_of(&text).ok_or_else(|| serde::de::Error::custom("a list of slots, oldest first"))
}

/// Reads what [`write_slots`] wrote; `None` for anything else.
fn slots_of(text: &str) -> Option<Vec<DateTime<Utc>>> {
    let mut slots: Vec<DateTime<Utc>> = Vec::new();
    for run in text.split_whitespace() {
        let (first, run) = run.split_once('+').map_or((run, None), |(first, run)| (first, Some(run)));
        let mut slot = DateTime::parse_from_rfc3339(first).ok()?.to_utc();
        if slots.last().is_some_and(|last| *last >= slot) {
            return None;
        }
        slots.push(slot);
        let (distance, further) = run.map_or(Some(("1", "0")), |run| run.split_once('x'))?;
        let distance = TimeDelta::try_seconds(distance.parse::<i64>().ok().filter(|seconds| *seconds > 0)?)?;
        for _ in 0..further.parse::<usize>().ok().filter(|further| *further <= MOST_SLOTS)? {
            slot = slot.checked_add_signed(distance)?;
            slots.push(slot);
        }
        if slots.len() > MOST_SLOTS {
            return None;
        }
    }
    Some(slots)
}

#[cfg(test)]
mod tests;
