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
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn record(left: Vec<DateTime<Utc>>) -> Record {
        let backfill = Backfill {
            id: "x7k2p".to_owned(),
            holder: "b3n8q".to_owned(),
            from: at("2026-03-01T00:00:00Z"),
            to: at("2026-03-02T00:00:00Z"),
            again: false,
            total: left.len() + 1,
            created: 0,
            begun: Some(Begun { slot: at("2026-03-01T00:00:00Z"), at: at("2026-03-05T00:00:00Z") }),
            left,
        };
        Record { current: Some(backfill), ..Record::new(Uid::new("one")) }
    }

    #[test]
    fn slots_at_one_distance_take_no_space() {
        let first = at("2026-03-01T00:00:00Z");
        let hourly = (1..500).map(|hour| first + TimeDelta::hours(hour)).collect();
        let text = record(hourly).text();
        assert!(text.contains(r#""left":"2026-03-01T01:00:00Z+3600x498""#), "{text}");
        let (one, another) = (Uid::new("one"), Uid::new("another"));
        assert_eq!(Record::read(&text, &one).unwrap().current.unwrap().left.len(), 499);
        assert_eq!(Record::read(&text, &another), None);
        assert!(Record::is_under_way(&text, &one) && !Record::is_under_way(&text, &another));
    }

    #[test]
    fn finished_backfills_are_remembered_by_their_times() {
        let covering = |from: i64, to: i64| {
            let mut record = record(Vec::new());
            let current = record.current.as_mut().unwrap();
            (current.from, current.to) = (current.from + TimeDelta::hours(from), current.from + TimeDelta::hours(to));
            record.current
        };
        let mut known = record(Vec::new()).finished();
        assert!(!Record::is_under_way(&known.text(), &Uid::new("one")));
        assert!(known.covers(at("2026-03-01T00:00:00Z")) && known.covers(at("2026-03-02T00:00:00Z")));
        assert!(!known.covers(at("2026-03-02T00:01:00Z")));
        for (from, to, number) in [(48, 72, 2), (20, 30, 2), (10, 60, 1)] {
            known = Record { current: covering(from, to), ..known }.finished();
            assert_eq!(known.done.len(), number, "{known:?}");
        }
        for day in 0..200 {
            known = Record { current: covering(100 * day, 100 * day + 1), ..known }.finished();
            assert!(known.covers(at("2026-03-01T00:00:00Z") + TimeDelta::hours(100 * day)));
        }
        assert_eq!(known.done.len(), MOST_RANGES);
        assert_eq!(Record::read(&known.text(), &Uid::new("one")), Some(known));
    }

    #[test]
    fn most_slots_fit_in_an_annotation() {
        let mut slot = at("2026-03-01T00:00:00Z");
        let mut next = |minutes: usize| {
            slot += TimeDelta::minutes(i64::try_from(minutes).unwrap());
            slot
        };
        let text = record((1..=MOST_SLOTS).map(&mut next).collect()).text();
        assert!(text.len() < 200_000, "{}", text.len());
    }

    #[test]
    fn damaged_list_is_no_record() {
        for text in [
            "soon",
            "2026-03-01T00:00:00Z+60",
            "2026-03-01T00:00:00Z+0x3",
            "2026-03-01T00:00:00Z+60x9999999999",
            "2026-03-01T00:00:00Z+60x5000",
            "2026-03-02T00:00:00Z 2026-03-01T00:00:00Z",
        ] {
            assert_eq!(slots_of(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn record_is_read_as_it_was_written(minutes in proptest::collection::vec(1_i64..4, 0..60)) {
            let mut slot = at("2026-03-01T00:00:00Z");
            let mut next = |minutes: i64| {
                slot += TimeDelta::minutes(minutes);
                slot
            };
            let written = record(minutes.into_iter().map(&mut next).collect());
            prop_assert_eq!(Record::read(&written.text(), &Uid::new("one")), Some(written));
        }
    }
}
