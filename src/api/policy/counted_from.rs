//! Which slots of a CronJob are decided, and under which schedule.
//!
//! Guarantees: what is written is read back as the same value. A [`Fingerprint`] changes with the object's UID and with
//! every string that changes its slots, and with nothing else. It tells a change of a timing annotation from one of the
//! spec. A value of another object, of the future or of no known form decides nothing. A fingerprint of a newer version
//! keeps its time.
//!
//! A fingerprint does not tell of a change that was undone, such as a suspension. So the record of an object for which that
//! matters has the generation, too, which counts the edits of the spec.

use std::fmt;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use ring::digest::{Context, SHA256};
use serde::{Serialize, Serializer};

use super::{PolicyReading, TIMING, add, finish, first_number};
use crate::api::Uid;

const TIMING_BITS: u64 = 0xffff_ffff;
const NAME_BITS: u64 = (1 << TIMING.len()) - 1;
/// Whether the object has a time zone.
const ZONE_BIT: u64 = 1 << 32;
/// Whether it is suspended.
const SUSPENDED_BIT: u64 = 1 << 33;

/// The longest value that is read, in bytes. This program writes about 80.
const LONGEST: usize = 256;

/// How far ahead the clock of the writer may be.
const TOLERANCE: TimeDelta = TimeDelta::minutes(1);

/// Slots at or before a time are decided, under a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedFrom {
    time: DateTime<Utc>,
    fingerprint: Fingerprint,
    /// `metadata.generation`, where edits of the spec that left no trace in the fingerprint count.
    generation: Option<i64>,
}

/// An object, and what its slots depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(Version);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Version {
    V1 {
        uid: Uid,
        /// Of the timing annotations in [`TIMING_BITS`], of all else in the others. The lowest bits of each say which timing
        /// annotations there are, and whether there is a zone and a suspension, so that a removal is seen.
        hash: u64,
    },
    /// Written by another version of the program.
    Other(Box<str>),
}

/// What a [`CountedFrom`] says about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Nothing: it is another object's, or lies ahead.
    Absent,
    /// Slots up to this time are decided, and nothing has changed since.
    Unchanged(DateTime<Utc>),
    /// Slots up to this time are decided. Since then the schedule, its zone or the suspension has changed.
    Changed {
        /// The time.
        time: DateTime<Utc>,
        /// Whether the zone was removed, which leaves no trace in `managedFields`.
        zone_removed: bool,
        /// Whether it was suspended and is not any more.
        resumed: bool,
    },
    /// Slots up to this time are decided. Since then the spec was edited more than once, and the schedule, its zone and the
    /// suspension are as they were.
    Undone(DateTime<Utc>),
    /// Slots up to a time are decided. Since then a timing annotation has changed, and maybe the others, too.
    Retimed {
        /// Whether a timing annotation was removed, which leaves no trace in `managedFields`.
        removed: bool,
    },
    /// Slots up to this time are decided, and it must be written anew: another version of the program wrote it, so a change
    /// cannot be seen, or the spec was edited once, which changed nothing that counts.
    Outdated(DateTime<Utc>),
}

impl Fingerprint {
    /// The fingerprint of an object with that UID, `spec.schedule`, `spec.timeZone` and effective suspension.
    pub fn new(
        uid: &Uid,
        schedule: &str,
        time_zone: Option<&str>,
        suspended: bool,
        policies: Option<&PolicyReading>,
    ) -> Self {
        let mut digest = Context::new(&SHA256);
        add(&mut digest, schedule);
        digest.update(&[u8::from(time_zone.is_some()), u8::from(suspended)]);
        add(&mut digest, time_zone.unwrap_or_default());
        let timing = policies.and_then(|policies| policies.timing).unwrap_or_default();
        let bit = |holds: bool, bit: u64| if holds { bit } else { 0 };
        let names = bit(time_zone.is_some(), ZONE_BIT) | bit(suspended, SUSPENDED_BIT);
        let spec = first_number(&finish(digest)) & !(TIMING_BITS | ZONE_BIT | SUSPENDED_BIT) | names;
        let hash = spec | timing & TIMING_BITS;
        Self(Version::V1 { uid: uid.clone(), hash })
    }

    fn parse(text: &str) -> Option<Self> {
        let (uid, hash) = text.rsplit_once(':')?;
        let is_hex = hash.len() == 16 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let hash = u64::from_str_radix(hash, 16).ok().filter(|_| is_hex)?;
        Some(Self(Version::V1 { uid: Uid::new(uid), hash }))
    }
}

impl CountedFrom {
    /// Whether both are of the same version of the same object, as far as slots depend on it.
    pub fn is_of_the_version_of(&self, other: &Self) -> bool {
        (&self.fingerprint, self.generation) == (&other.fingerprint, other.generation)
    }

    /// Slots up to `time` are decided under this fingerprint and generation. A fraction of a second is dropped.
    pub fn new(time: DateTime<Utc>, fingerprint: Fingerprint, generation: Option<i64>) -> Self {
        let time = DateTime::from_timestamp(time.timestamp(), 0).unwrap_or(time);
        Self { time, fingerprint, generation }
    }

    /// Reads an annotation's value; `None` if it has not the form `<RFC 3339> <fingerprint>`, or is too long.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let (time, fingerprint) = text.split_once(' ')?;
        let time = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        let (version, rest) = fingerprint.split_once(':')?;
        let (fingerprint, generation) = match version {
            "v1" => (Fingerprint::parse(rest)?, None),
            "v2" => {
                let (rest, generation) = rest.rsplit_once(':')?;
                (Fingerprint::parse(rest)?, Some(generation.parse().ok()?))
            }
            _ => {
                version.strip_prefix('v')?.parse::<u32>().ok()?;
                (Fingerprint(Version::Other(fingerprint.into())), None)
            }
        };
        Some(Self { time, fingerprint, generation })
    }

    /// The time up to which slots are decided, as written.
    pub fn time(&self) -> DateTime<Utc> {
        self.time
    }

    /// The time up to which slots of the object `uid` are decided; `None` if this says nothing about it.
    pub fn decided_until(&self, uid: &Uid, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let is_of = match &self.fingerprint.0 {
            Version::V1 { uid: own, .. } => own == uid,
            Version::Other(_) => true,
        };
        (is_of && self.time.signed_duration_since(now) <= TOLERANCE).then_some(self.time)
    }

    /// What this says about an object that now has the fingerprint `current` and, if edits without a trace in it count, this
    /// `generation`.
    pub fn judge(&self, current: &Fingerprint, generation: Option<i64>, now: DateTime<Utc>) -> Counted {
        if self.time.signed_duration_since(now) > TOLERANCE {
            return Counted::Absent;
        }
        match (&self.fingerprint.0, &current.0) {
            (written, now) if written == now => match generation.map(|new| (new, self.generation)) {
                Some((new, Some(old))) if new == old => Counted::Unchanged(self.time),
                Some((new, Some(old))) if new.checked_sub(old) != Some(1) => Counted::Undone(self.time),
                Some(_) => Counted::Outdated(self.time),
                None => Counted::Unchanged(self.time),
            },
            (Version::V1 { uid, hash }, Version::V1 { uid: own, hash: new }) if uid == own => {
                if (hash ^ new) & TIMING_BITS == 0 {
                    let gone = hash & !new;
                    let (zone_removed, resumed) = (gone & ZONE_BIT != 0, gone & SUSPENDED_BIT != 0);
                    Counted::Changed { time: self.time, zone_removed, resumed }
                } else {
                    Counted::Retimed { removed: hash & !new & NAME_BITS != 0 }
                }
            }
            (Version::V1 { .. }, _) => Counted::Absent,
            (Version::Other(_), _) => Counted::Outdated(self.time),
        }
    }
}

impl fmt::Display for CountedFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.time.to_rfc3339_opts(SecondsFormat::Secs, true))?;
        match (&self.fingerprint.0, self.generation) {
            (Version::V1 { uid, hash }, None) => write!(f, "v1:{uid}:{hash:016x}"),
            (Version::V1 { uid, hash }, Some(generation)) => write!(f, "v2:{uid}:{hash:016x}:{generation}"),
            (Version::Other(text), _) => f.write_str(text),
        }
    }
}

impl Serialize for CountedFrom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
