//! Opt-in policies: annotations that change when a CronJob's slots start.
//!
//! Guarantees: an object without a policy annotation has no [`PolicyReading`], and finding that out allocates nothing. A
//! value that cannot be read, or a combination that makes no sense, is an error that names the annotation, the value
//! and what is allowed; then no policy of the object counts. Reading depends on the object alone: no I/O, no clock.
//!
//! `annotations` is the table of all annotations below [`PREFIX`]. `spread` computes a CronJob's offset, `limits` reads what
//! chooses no slots, and `counted_from` says which slots are decided already.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, TimeDelta, Utc};
use ring::digest::{Context, SHA256};
use schedule::{Calendar, ClockChanges, Exclusions, Lines, Schedule, Zone, parse_duration};

mod annotations;
mod counted_from;
mod limits;
mod restriction;
mod spread;
mod unknown;

pub use annotations::*;
pub use counted_from::{Counted, CountedFrom, Fingerprint};
pub use limits::*;
pub use restriction::{LONGEST_REASON, Restriction};
pub use spread::{Spread, due, nominal};
pub use unknown::UnknownNames;

use super::ObjectName;
use super::batch_v1::CronJob;
use super::error::excerpt;

/// The most bytes of a value that an error quotes.
const MOST_QUOTED: usize = 128;

/// The longest value that is read, in bytes.
const LONGEST_VALUE: usize = 16 << 10;

/// The longest value of [`EXCLUDE`] that is read, in bytes: more than 370 dates.
const LONGEST_EXCLUDE: usize = 4 << 10;

/// The most bytes of lines that are kept to be shown.
const MOST_SHOWN: usize = 1 << 10;

/// The timing annotations, in the order of `Values`. Number and order are part of the stored fingerprint
/// ([`CountedFrom`]): another one needs a new version of it, or slots of stored records would be passed over after an upgrade.
pub const TIMING: [&str; 6] = [SPREAD, DST, EXCLUDE, NOT_BEFORE, NOT_AFTER, SCHEDULE];

/// The values of the annotations in [`TIMING`], where present.
type Values<'a> = [Option<&'a str>; TIMING.len()];

/// What the annotations of one version of an object say.
#[derive(Debug)]
pub struct PolicyReading {
    /// The policy; the default if only unknown annotations are present.
    pub policy: Result<Policy, PolicyError>,
    /// The annotations below [`PREFIX`] that this program does not know.
    pub unknown: UnknownNames,
    /// The fingerprint of the timing annotations as written; `None` without any.
    timing: Option<u64>,
    edits: Edits,
    /// How long after its slot a Job may start.
    offset: TimeDelta,
    /// What the object's Namespace says, which is part of `policy` then.
    restricted: Option<restriction::Restricted>,
}

/// What an object says about how often and when it was edited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// `metadata.generation`: how often its spec was.
    pub generation: Option<i64>,
    /// When it was last changed, other than in its status.
    pub last: Option<DateTime<Utc>>,
    /// When one was last changed that says what its schedule, zone or suspension is.
    pub last_of_slots: Option<DateTime<Utc>>,
}

/// The annotations below [`PREFIX`] of one object, collected while its annotations are read. Nothing is allocated for an
/// object without any.
#[derive(Debug, Default)]
pub struct Collected<'a> {
    timing: [Option<Cow<'a, str>>; TIMING.len()],
    limits: [Option<Cow<'a, str>>; LIMITS.len()],
    /// The value of [`COUNTED_FROM`].
    pub counted_from: Option<Cow<'a, str>>,
    /// The value of [`NEXT_RUN`].
    pub next_run: Option<Cow<'a, str>>,
    /// The value of [`LAST_FAILURE`].
    pub last_failure: Option<Cow<'a, str>>,
    /// The value of [`REASON`].
    pub reason: Option<Cow<'a, str>>,
    unknown: UnknownNames,
}

/// How this process reads policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOptions {
    /// Whether policies count at all.
    pub enabled: bool,
    /// The seed of all offsets.
    pub seed: Arc<str>,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self { enabled: true, seed: "".into() }
    }
}

impl PolicyOptions {
    /// Gives a CronJob that was just decoded, and is not shared yet, the policies that count in this process.
    pub fn apply(&self, cron_job: &mut CronJob) {
        if !self.enabled {
            (cron_job.policies, cron_job.status.counted_from) = (None, None);
        } else if !self.seed.is_empty()
            && let Some(policies) = cron_job.policies.as_mut().and_then(Arc::get_mut)
        {
            policies.set_offset(&self.seed, &cron_job.name);
        }
    }
}

impl<'a> Collected<'a> {
    /// Where the value of an annotation below [`PREFIX`] goes; `None` if its value is not read.
    pub fn place(&mut self, name: &str) -> Option<&mut Option<Cow<'a, str>>> {
        if let Some(at) = TIMING.iter().position(|known| *known == name) {
            return Some(&mut self.timing[at]);
        }
        if let Some(at) = LIMITS.iter().position(|known| *known == name) {
            return Some(&mut self.limits[at]);
        }
        match name {
            COUNTED_FROM => return Some(&mut self.counted_from),
            NEXT_RUN => return Some(&mut self.next_run),
            LAST_FAILURE => return Some(&mut self.last_failure),
            REASON => return Some(&mut self.reason),
            _ => {}
        }
        if !annotations::is_known(name) {
            self.unknown.add(name);
        }
        None
    }
}

/// SHA-256.
type Digest = [u8; 32];

/// The policies of an object, as its annotations choose them.
#[derive(Debug, Default)]
pub struct Policy {
    calendar: Calendar,
    /// The lines of the calendar as they were written, on one line, shortened.
    lines: Option<Box<str>>,
    spread: Option<Spread>,
    limits: Limits,
    /// The object's schedule with the calendar.
    schedule: OnceLock<Schedule>,
}

/// Why the policies of an object do not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A value is invalid.
    #[error("{annotation}: {value:?} is not allowed ({cause}). Use {allowed}")]
    Value {
        /// The annotation.
        annotation: &'static str,
        /// Its value, shortened.
        value: Box<str>,
        /// Why.
        cause: Box<str>,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Values exclude each other.
    #[error("{annotation}: {value:?} is not allowed with {with}")]
    Combination {
        /// The annotation.
        annotation: &'static str,
        /// Its value, shortened.
        value: Box<str>,
        /// What it cannot be combined with.
        with: &'static str,
    },
    /// The restriction of the object's Namespace cannot be read.
    #[error("on the Namespace: {0}")]
    Namespace(Box<PolicyError>),
}

impl PolicyError {
    /// The annotation that is to be changed.
    pub fn annotation(&self) -> &'static str {
        match self {
            Self::Value { annotation, .. } | Self::Combination { annotation, .. } => annotation,
            Self::Namespace(error) => error.annotation(),
        }
    }

    /// The value that is to be changed, shortened.
    pub fn value(&self) -> &str {
        match self {
            Self::Value { value, .. } | Self::Combination { value, .. } => value,
            Self::Namespace(error) => error.value(),
        }
    }
}

impl PolicyReading {
    /// Reads the policies among an object's annotations, with its spec or with its `spec.schedule` alone. `None` if it has
    /// neither a policy nor an unknown annotation below [`PREFIX`].
    pub fn of<'a, 's>(
        annotations: impl IntoIterator<Item = (&'a str, &'a str)>,
        setting: impl Into<Setting<'s>>,
    ) -> Option<Self> {
        let mut collected = Collected::default();
        for (name, value) in annotations.into_iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            if let Some(place) = collected.place(name) {
                *place = Some(value.into());
            }
        }
        Self::read(collected, &setting.into(), false, Edits::default)
    }

    /// The same. An object that `is_counted` has a [`CountedFrom`], so it has a reading although its policies were
    /// removed. `edits` is asked for only if there is a reading.
    pub fn read(
        collected: Collected<'_>,
        setting: &Setting<'_>,
        is_counted: bool,
        edits: impl FnOnce() -> Edits,
    ) -> Option<Self> {
        let values: Values<'_> = collected.timing.each_ref().map(Option::as_deref);
        let limits = collected.limits.each_ref().map(Option::as_deref);
        let has_timing = values.iter().any(Option::is_some);
        let has_policy = has_timing || limits.iter().any(Option::is_some);
        if !has_policy && !is_counted && collected.unknown.is_empty() {
            return None;
        }
        Some(Self {
            policy: Policy::read(&values, &limits, setting),
            timing: has_timing.then(|| fingerprint_of(&values)),
            edits: edits(),
            offset: TimeDelta::zero(),
            restricted: None,
            unknown: collected.unknown,
        })
    }

    /// Computes the offset of the object's slots.
    pub fn set_offset(&mut self, seed: &str, name: &ObjectName) {
        let spread = self.policy.as_ref().ok().and_then(Policy::spread);
        self.offset = spread.map_or(TimeDelta::zero(), |spread| spread.offset(seed, name));
    }

    /// How long after its slot a Job may start.
    pub fn offset(&self) -> TimeDelta {
        self.offset
    }

    /// Whether the object has a timing annotation, readable or not.
    pub fn has_timing(&self) -> bool {
        self.timing.is_some()
    }

    /// How often and when the object was edited, as far as it says so.
    pub fn edits(&self) -> Edits {
        self.edits
    }

    /// Whether `other` has the same timing annotations.
    pub fn has_timing_of(&self, other: &Self) -> bool {
        self.timing == other.timing
    }

    /// Whether the object's policies are read as those of `other` are, apart from the slots that they choose.
    pub fn has_limits_of(&self, other: &Self) -> bool {
        match (&self.policy, &other.policy) {
            (Ok(own), Ok(theirs)) => own.limits == theirs.limits,
            (Err(own), Err(theirs)) => own == theirs,
            _ => false,
        }
    }

    /// Whether `other`, of an object with the same schedule, says the same, also about when it was changed.
    pub fn is_same(&self, other: &Self) -> bool {
        self.timing == other.timing
            && self.edits == other.edits
            && self.unknown == other.unknown
            && self.offset == other.offset
            && self.has_limits_of(other)
    }
}

impl Policy {
    fn read(values: &Values<'_>, limits: &limits::Values<'_>, setting: &Setting<'_>) -> Result<Self, PolicyError> {
        let [spread, dst, exclude, not_before, not_after, lines] = *values;
        let calendar = Calendar {
            lines: read(SCHEDULE, lines, Lines::parse)?,
            clock_changes: read(DST, dst, clock_changes)?.unwrap_or_default(),
            exclude: read(EXCLUDE, exclude, Exclusions::parse)?.unwrap_or_default(),
            not_before: read(NOT_BEFORE, not_before, time)?,
            not_after: read(NOT_AFTER, not_after, time)?,
        };
        let spread = read(SPREAD, spread, |text| Spread::new(parse_duration(text)?))?;
        let refused = |annotation, value: Option<&str>, with| {
            let value = quoted(value.unwrap_or_default());
            Err(PolicyError::Combination { annotation, value, with })
        };
        if calendar.not_before.zip(calendar.not_after).is_some_and(|(first, last)| first > last) {
            return refused(NOT_AFTER, not_after, "a later cronjob-controller.dev/not-before");
        }
        for (annotation, value) in [(SCHEDULE, lines), (DST, dst), (EXCLUDE, exclude)] {
            if value.is_some() && is_interval(setting.schedule) {
                return refused(annotation, value, "@every in spec.schedule, which has no calendar");
            }
        }
        let limits = Limits::read(limits, setting, calendar.lines.as_ref().map_or(1, Lines::different))?;
        let lines = calendar.lines.as_ref().and(lines).map(|text| excerpt(&on_one_line(text), MOST_SHOWN).into());
        Ok(Self { calendar, lines, spread, limits, schedule: OnceLock::new() })
    }

    /// What the policy makes of the object's schedule. `own` is `spec.schedule` in the object's zone; it must be the same at
    /// every call. The answer is `own` itself where the policy changes no slots, and is otherwise built at the first call.
    pub fn schedule<'a>(&'a self, own: &'a Schedule) -> &'a Schedule {
        if self.calendar == Calendar::default() {
            return own;
        }
        // Without a calendar of its own, an `@every` has only bounds: all else was refused when the policy was read.
        self.schedule.get_or_init(|| own.with_calendar(&self.calendar).unwrap_or_else(|_| own.clone()))
    }

    /// How many Jobs run, which slots wait, and when nothing starts.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether other lines replace the object's schedule.
    pub fn has_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// The lines that replace the object's schedule, with semicolons between them, shortened.
    pub fn lines(&self) -> Option<&str> {
        self.lines.as_deref()
    }

    /// The first and the last time that may be a slot.
    pub fn bounds(&self) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
        (self.calendar.not_before, self.calendar.not_after)
    }

    /// The dates without slots.
    pub fn exclusions(&self) -> &Exclusions {
        &self.calendar.exclude
    }

    /// Whether all slots of the schedule after `now` are left, and no others: it has a bound at most, which has passed.
    pub fn leaves_all_after(&self, now: DateTime<Utc>) -> bool {
        let past =
            Calendar { not_before: self.calendar.not_before.filter(|start| *start <= now), ..Calendar::default() };
        self.calendar == past
    }

    /// Whether each wall-clock time has one slot over changes of the clock.
    pub fn is_once_a_time(&self) -> bool {
        self.calendar.clock_changes == ClockChanges::Once
    }

    /// The window over which the object's slots are spread with others'.
    pub fn spread(&self) -> Option<Spread> {
        self.spread
    }
}

/// Reads one value, if there is one.
fn read<T, E: ToString>(
    annotation: &'static str,
    value: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, PolicyError> {
    let Some(text) = value else { return Ok(None) };
    let refused = |cause: &str| PolicyError::Value {
        annotation,
        value: quoted(text),
        cause: quoted(cause),
        allowed: annotations::allowed(annotation),
    };
    let most = if annotation == EXCLUDE { LONGEST_EXCLUDE } else { LONGEST_VALUE };
    if text.len() > most {
        return Err(refused(&format!("it has {} bytes, and at most {most} are read", text.len())));
    }
    parse(text).map(Some).map_err(|cause| refused(&cause.to_string()))
}

/// Reads the value of [`NOT_BEFORE`] or of [`NOT_AFTER`] alone, if there is one.
///
/// # Errors
/// As for all policies of the object.
pub fn read_time(annotation: &'static str, value: Option<&str>) -> Result<Option<DateTime<Utc>>, PolicyError> {
    read(annotation, value, time)
}

fn quoted(text: &str) -> Box<str> {
    excerpt(text, MOST_QUOTED).into()
}

/// Lines as they were written, with semicolons between them.
fn on_one_line(lines: &str) -> String {
    let lines = lines.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

fn clock_changes(text: &str) -> Result<ClockChanges, &'static str> {
    match text {
        "upstream" => Ok(ClockChanges::Upstream),
        "once" => Ok(ClockChanges::Once),
        _ => Err("no such value"),
    }
}

fn time(text: &str) -> Result<DateTime<Utc>, &'static str> {
    // chrono also takes a blank, lower-case letters and a typographic minus.
    let is_plain = text.bytes().all(|byte| byte.is_ascii() && !matches!(byte, b' ' | b't' | b'z'));
    let time = DateTime::parse_from_rfc3339(text).ok().filter(|_| is_plain);
    time.map(|time| time.to_utc()).ok_or("no RFC 3339 time")
}

/// Whether a schedule is an `@every`.
fn is_interval(schedule: &str) -> bool {
    Schedule::parse_standard(schedule, Zone::UTC).is_ok_and(|schedule| schedule.zone().is_none())
}

/// A hash of names and values, whose lowest bits say which annotations there are.
fn fingerprint_of(values: &Values<'_>) -> u64 {
    let mut digest = Context::new(&SHA256);
    let mut names = 0;
    for (at, (name, value)) in TIMING.iter().zip(values).enumerate() {
        if let Some(value) = value {
            add(&mut digest, name);
            add(&mut digest, value);
            names |= 1 << at;
        }
    }
    first_number(&finish(digest)) >> TIMING.len() << TIMING.len() | names
}

/// Adds a text with its length, so that no two lists of texts have the same bytes.
fn add(digest: &mut Context, text: &str) {
    digest.update(&(text.len() as u64).to_be_bytes());
    digest.update(text.as_bytes());
}

fn finish(digest: Context) -> Digest {
    let mut bytes = Digest::default();
    bytes.copy_from_slice(digest.finish().as_ref());
    bytes
}

/// The first eight bytes of a digest, big-endian.
fn first_number(digest: &[u8]) -> u64 {
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests;
