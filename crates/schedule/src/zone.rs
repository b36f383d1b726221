//! Time zones for schedules.
//!
//! Guarantees: a [`Zone`] is two bytes and always valid. Names are accepted and rejected as Go's `time.LoadLocation` does on
//! Linux. Offsets equal Go's for any second of any year. That also holds after 2099, where chrono-tz's compiled tables end and
//! the zone's last rule continues. A local time that does not exist or exists twice becomes the instant that Go's `time.Date`
//! picks.
//!
//! Only [`local_zone`] does I/O: it reads the environment. Everything else is a function of its arguments. A zone's transitions
//! are collected from chrono-tz once per process, at first use, because a search must know how long an offset lasts and
//! chrono-tz does not provide that.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

use chrono::{DateTime, FixedOffset, NaiveDateTime, Offset, SecondsFormat, TimeZone, Utc};
use chrono_tz::{IANA_TZDB_VERSION, TZ_VARIANTS, Tz};

use super::civil::{self, SECONDS_PER_DAY};

/// The version of the embedded IANA time zone database, such as `2025b`.
pub const TIME_ZONE_DATA: &str = IANA_TZDB_VERSION;

/// A zone of the IANA database; the default is UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Zone(Tz);

/// A name that is not a zone. The messages are those of Go's `time` package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownZone {
    /// The name could escape the database's directory.
    #[error("time: invalid location name")]
    Invalid,
    /// The database has no such name.
    #[error("unknown time zone {0}")]
    Unknown(String),
}

/// The names of all time zones, sorted as the database has them.
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    TZ_VARIANTS.iter().map(|tz| tz.name())
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Zone = Zone(Tz::UTC);

    /// Finds a zone by name, as Go's `time.LoadLocation` does: an empty name and `UTC` are UTC, `Local` is `local`, and other
    /// names are case-sensitive.
    ///
    /// Go opens a file of the system's database, so doubled slashes and `.` segments inside a name are harmless there and here.
    /// Of the files of that directory that are not IANA names, two are known here because their offsets are the same on every machine:
    /// `posix/X` is X, and `Factory` is UTC. Unknown are `right/X`, whose transitions Go reads up to 27 s late, and `localtime` and
    /// `posixrules`, which each machine sets.
    pub fn load(name: &str, local: Zone) -> Result<Zone, UnknownZone> {
        match name {
            "" | "UTC" => return Ok(Zone::UTC),
            "Local" => return Ok(local),
            _ if name.contains("..") || name.starts_with(['/', '\\']) => return Err(UnknownZone::Invalid),
            _ => {}
        }
        let unknown = || UnknownZone::Unknown(name.to_owned());
        let name = name.strip_prefix("posix/").unwrap_or(name);
        if name == "Factory" {
            return Ok(Zone::UTC);
        }
        if let Ok(tz) = Tz::from_str(name) {
            return Ok(Zone(tz));
        }
        let (directory, file) = name.rsplit_once('/').ok_or_else(unknown)?;
        let mut plain: String =
            directory.split('/').filter(|part| !matches!(*part, "" | ".")).flat_map(|part| [part, "/"]).collect();
        plain.push_str(file);
        Tz::from_str(&plain).map(Zone).map_err(|_| unknown())
    }

    /// The IANA name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The same instant with this zone's offset.
    pub fn at(self, t: DateTime<Utc>) -> DateTime<FixedOffset> {
        let offset = self.transitions().span(t.timestamp()).offset;
        t.with_timezone(&FixedOffset::east_opt(offset).unwrap_or_else(|| Utc.fix()))
    }

    /// The instant as Go's `t.In(zone).Format(time.RFC3339)` prints it: whole seconds, `Z` where the offset is zero.
    pub fn rfc3339(self, t: DateTime<Utc>) -> String {
        self.at(t).to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// The first change of the offset after `t` and not after `until`.
    #[doc(hidden)]
    pub fn next_change(self, t: DateTime<Utc>, until: DateTime<Utc>) -> Option<Change> {
        let transitions = self.transitions();
        let mut span = transitions.span(t.timestamp());
        while span.end <= until.timestamp() {
            let next = transitions.span(span.end);
            if next.offset != span.offset {
                let at = DateTime::from_timestamp(span.end, 0)?;
                return Some(Change { at, before: span.offset, after: next.offset });
            }
            span = next;
        }
        None
    }

    /// The instant of a local time. If it exists twice or not at all, the instant that Go's `time.Date` picks. `None` beyond
    /// chrono's range.
    pub fn instant(self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.transitions().instant_of_local(local.and_utc().timestamp()), 0)
    }

    /// This zone's transitions, collected at the first call.
    pub(super) fn transitions(self) -> &'static Transitions {
        static TABLES: [OnceLock<Transitions>; TZ_VARIANTS.len()] = [const { OnceLock::new() }; TZ_VARIANTS.len()];
        TABLES[self.0 as usize].get_or_init(|| Transitions::collect(self.0))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A change of a zone's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The first instant with the new offset.
    pub at: DateTime<Utc>,
    /// The old offset, in seconds east of UTC.
    pub before: i32,
    /// The new one.
    pub after: i32,
}

/// The process's zone and its source: the `TZ` variable, else `/etc/localtime`, else UTC. Matches `initLocal` in Go's
/// time/zoneinfo_unix.go, with one difference. A file is identified by its name alone: if `/etc/localtime` is a copy without a
/// name, the system's record of its zone is used, else UTC.
pub fn local_zone() -> (Zone, &'static str) {
    let variable = std::env::var("TZ").ok();
    let target = std::fs::canonicalize("/etc/localtime").ok();
    zone_of_process(variable.as_deref(), target.as_deref(), || iana_time_zone::get_timezone().ok())
}

fn zone_of_process(
    variable: Option<&str>,
    localtime: Option<&Path>,
    recorded: impl Fn() -> Option<String>,
) -> (Zone, &'static str) {
    let named = |name: &str| Tz::from_str(name).ok().map(Zone);
    let Some(value) = variable else {
        let zone = localtime.and_then(name_in_path).and_then(named).or_else(|| recorded().as_deref().and_then(named));
        return zone.map_or((Zone::UTC, "default"), |zone| (zone, "/etc/localtime"));
    };
    let value = value.strip_prefix(':').unwrap_or(value);
    let zone = match value {
        "" => Some(Zone::UTC),
        "/etc/localtime" => localtime.and_then(name_in_path).and_then(named),
        path if path.starts_with('/') => name_in_path(Path::new(path)).and_then(named),
        name => Zone::load(name, Zone::UTC).ok(),
    };
    zone.map_or((Zone::UTC, "default"), |zone| (zone, "TZ"))
}

/// The zone's name in a path such as `/usr/share/zoneinfo/Europe/Berlin`.
fn name_in_path(path: &Path) -> Option<&str> {
    path.to_str()?.split_once("/zoneinfo/").map(|(_, name)| name)
}

/// A span of time with one offset. Times are Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub start: i64,
    /// The first second after the span.
    pub end: i64,
    /// From here until [`Self::calm_end`], every day has exactly one midnight, and local minutes begin with the minutes of UTC.
    /// It lies after the span if that does not hold within it.
    pub calm_start: i64,
    pub calm_end: i64,
    /// Seconds east of UTC.
    pub offset: i32,
}

impl Span {
    /// Whether [`Transitions::instant_of_local`] is certain to interpret a local time with this span's offset.
    pub fn reads_as_itself(&self, local: i64) -> bool {
        let t = local - i64::from(self.offset);
        t.min(local) >= self.start && t.max(local) < self.end
    }
}

/// A zone's offsets.
#[derive(Debug)]
pub(super) struct Transitions {
    /// All spans in order. Spans after [`END`] count only if no rule recurs.
    spans: Box<[Span]>,
    /// For each interval of 2^[`STEP`] seconds from 1970 to [`END`], the span that holds its beginning.
    index: Box<[u16]>,
    /// Whether the last year's rule recurs after [`END`].
    recurs: bool,
}

/// The length of an index interval, as a power of two: seven weeks, in which an offset seldom changes twice.
const STEP: u32 = 22;
/// 1800-01-01: no zone changed its offset earlier.
const BEGIN: i64 = -5_364_662_400;
/// 2100-01-01: the end of chrono-tz's tables.
const END: i64 = 4_102_444_800;
/// 2099-01-01: a zone with a later change has a recurring rule.
const LAST_YEAR: i64 = 4_070_908_800;
/// Shorter than the shortest time between two changes of any zone (America/Cambridge_Bay in 2000: 6 days 22 hours).
const STRIDE: i64 = 6 * SECONDS_PER_DAY;
/// The years whose months represent the months of later years. Explicit tables (Morocco, Gaza) end earlier, so only rules
/// apply. In twelve years each month begins on each of the seven weekdays.
const MODEL_YEARS: std::ops::RangeInclusive<i64> = 2088..=2099;

impl Transitions {
    fn collect(tz: Tz) -> Self {
        let offset_at = |t: i64| {
            let instant = DateTime::from_timestamp(t, 0).unwrap_or_default();
            tz.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()
        };
        let first = offset_at(BEGIN);
        let mut changes = Vec::new();
        if tz != Tz::UTC {
            let (mut from, mut current) = (BEGIN, first);
            while from < END {
                let to = (from + STRIDE).min(END);
                let next = offset_at(to);
                if next != current {
                    let (mut before, mut after) = (from, to);
                    while after - before > 1 {
                        let middle = before.midpoint(after);
                        if offset_at(middle) == current { before = middle } else { after = middle }
                    }
                    changes.push((after, next));
                    current = next;
                }
                from = to;
            }
        }
        let recurs = changes.last().is_some_and(|&(when, _)| when >= LAST_YEAR);
        let spans = spans(first, &changes, if recurs { END } else { i64::MAX });
        let holder = |t: i64| spans.partition_point(|span| span.end <= t);
        let stretches = if spans.len() == 1 { 0..0 } else { 0..(END >> STEP) + 1 };
        let index = stretches.map(|i| u16::try_from(holder(i << STEP)).unwrap_or(u16::MAX)).collect();
        Self { spans, index, recurs }
    }

    /// The span that holds `t`.
    pub fn span(&self, t: i64) -> Span {
        if self.recurs && t >= END { self.recurring_span(t) } else { self.known_span(t) }
    }

    fn known_span(&self, t: i64) -> Span {
        let last = self.spans.len() - 1;
        let stretch = usize::try_from(t >> STEP).ok().and_then(|stretch| self.index.get(stretch));
        let mut at = match stretch {
            Some(first) => usize::from(*first),
            None if last == 0 => 0,
            None => self.spans.partition_point(|span| span.end <= t),
        };
        while at < last && self.spans[at].end <= t {
            at += 1;
        }
        self.spans[at.min(last)]
    }

    /// After the tables, a month equals the model year's month that begins on the same weekday. The span ends with the month at
    /// the latest.
    fn recurring_span(&self, t: i64) -> Span {
        let date = civil::from_days(t.div_euclid(SECONDS_PER_DAY));
        let begin = civil::to_days(date.year, date.month, 1);
        let end = civil::to_days(date.year, date.month + 1, 1);
        let model = MODEL_YEARS
            .map(|year| civil::to_days(year, date.month, 1))
            .find(|days| civil::weekday(*days) == civil::weekday(begin))
            .unwrap_or(begin);
        let shift = (begin - model) * SECONDS_PER_DAY;
        let span = self.known_span(t - shift);
        let start = span.start.saturating_add(shift).max(begin * SECONDS_PER_DAY);
        let end = span.end.saturating_add(shift).min(end * SECONDS_PER_DAY);
        Span { start, end, calm_start: start, calm_end: end, offset: span.offset }
    }

    /// The first instant whose local time is `local` or later: the first of two in an overlap, the end of a gap. It never
    /// decreases while `local` grows.
    pub fn first_instant(&self, local: i64) -> i64 {
        // No zone is a whole day from UTC, so no earlier instant shows this local time.
        let mut span = self.span(local - SECONDS_PER_DAY);
        loop {
            let t = (local - i64::from(span.offset)).max(span.start);
            if t < span.end {
                return t;
            }
            span = self.span(span.end);
        }
    }

    /// The latest local time that any instant up to `t` has shown. `first_instant` of a local time is after `t` exactly if
    /// the local time is later than this.
    pub fn latest_local(&self, t: i64) -> i64 {
        let mut span = self.span(t);
        let mut latest = t + i64::from(span.offset);
        // Two offsets of a zone differ by less than two days.
        while span.start > t - 2 * SECONDS_PER_DAY {
            span = self.span(span.start - 1);
            latest = latest.max(span.end - 1 + i64::from(span.offset));
        }
        latest
    }

    /// The instant of a local time (in seconds since the local 1970-01-01T00:00:00), matching Go's `time.Date`. It first looks
    /// up the local time as if it were UTC, then once more with the offset found. A zero offset is accepted at once.
    pub fn instant_of_local(&self, local: i64) -> i64 {
        let guess = self.span(local);
        let t = local - i64::from(guess.offset);
        if t >= guess.start && t < guess.end { t } else { local - i64::from(self.span(t).offset) }
    }
}

/// The spans between changes, the last of which ends at `horizon`.
fn spans(first: i32, changes: &[(i64, i32)], horizon: i64) -> Box<[Span]> {
    let starts = std::iter::once((i64::MIN, first)).chain(changes.iter().copied());
    let ends = changes.iter().map(|&(when, _)| when).chain([horizon]);
    let mut spans: Vec<Span> = starts
        .zip(ends)
        .map(|((start, offset), end)| {
            let calm_start = if start % 60 == 0 { start } else { start.saturating_add(60) };
            Span { start, end, calm_start, calm_end: end, offset }
        })
        .collect();
    // A calm period extends across a change only if the change itself is calm.
    for at in 1..spans.len() {
        if is_calm(spans[at].start, spans[at - 1].offset, spans[at].offset) {
            spans[at].calm_start = spans[at - 1].calm_start;
        }
    }
    for at in (1..spans.len()).rev() {
        if is_calm(spans[at].start, spans[at - 1].offset, spans[at].offset) {
            spans[at - 1].calm_end = spans[at].calm_end;
        }
    }
    for span in &mut spans {
        if i64::from(span.offset) % 60 != 0 {
            span.calm_start = i64::MAX;
        }
    }
    spans.into()
}

/// Whether the change skips or repeats no midnight and is between offsets of whole minutes.
fn is_calm(when: i64, before: i32, after: i32) -> bool {
    let (before, after) = (when + i64::from(before), when + i64::from(after));
    let same_day = before.min(after).div_euclid(SECONDS_PER_DAY) == before.max(after).div_euclid(SECONDS_PER_DAY);
    let at_midnight = before.min(after).rem_euclid(SECONDS_PER_DAY) == 0;
    same_day && !at_midnight && [when, before, after].iter().all(|t| t.rem_euclid(60) == 0)
}

#[cfg(test)]
mod tests;
