//! Which start is due, how many were missed, and when to look again.
//!
//! Guarantees: the most recent due start is exact for every schedule, found in a number of steps that depends on the
//! logarithm of the time missed and not on the number of starts: ten years down with `@every 1s`, a clock in the year 1 or
//! 2999 and a schedule that never fires cost microseconds and no memory. Times saturate, nothing overflows.
//!
//! Upstream guesses the most recent start from the first interval and loses the run of an uneven schedule
//! (`15,45 9-17 * * *` after a night). Its guess of *how many* starts were missed is kept, because the
//! TooManyMissedTimes Event hangs on it.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

use super::Schedule;

/// What a CronJob says about its own past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// `metadata.creationTimestamp`.
    pub creation: DateTime<Utc>,
    /// `status.lastScheduleTime`.
    pub last_schedule: Option<DateTime<Utc>>,
    /// `spec.startingDeadlineSeconds`, in seconds.
    pub starting_deadline_seconds: Option<i64>,
}

impl Observed {
    /// The last start, else the creation.
    fn last(&self) -> DateTime<Utc> {
        self.last_schedule.unwrap_or(self.creation)
    }
}

/// A rough count of starts that were missed before the most recent one. Matches `missedSchedulesType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// At most one start is due, and it is the most recent.
    #[default]
    None,
    /// Up to a hundred.
    Few,
    /// More than a hundred.
    Many,
}

/// The answer of [`most_recent_schedule_time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MostRecent {
    /// Starts before this are not looked at: the last start, else the creation, or the starting deadline if later.
    pub earliest: DateTime<Utc>,
    /// The newest start after `earliest` that is not after now.
    pub most_recent: Option<DateTime<Utc>>,
    /// How many were missed.
    pub missed: Missed,
}

/// The schedule can never fire (31 February). The text is upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub struct InvalidSchedule;

/// More missed starts than this are many.
const FEW: i64 = 100;
/// Go's greatest `Duration`, to which `Time.Sub` saturates, in whole seconds.
const MAX_DURATION: i64 = i64::MAX / 1_000_000_000;

/// Finds the newest start that is due at `now`. The starting deadline counts only if `include_deadline`.
///
/// Matches `mostRecentScheduleTime` in pkg/controller/cronjob/utils.go, but for the exact start; see the module. A
/// start that no other follows within five years is due like any other (upstream: an error).
pub fn most_recent_schedule_time(
    o: &Observed,
    now: DateTime<Utc>,
    schedule: &Schedule,
    include_deadline: bool,
) -> Result<MostRecent, InvalidSchedule> {
    let mut earliest = o.last();
    if let Some(seconds) = o.starting_deadline_seconds.filter(|_| include_deadline) {
        earliest = earliest.max(saturating_sub(now, seconds));
    }
    let found = |most_recent, missed| Ok(MostRecent { earliest, most_recent, missed });

    let Some(first) = schedule.next_after(earliest) else {
        return if never_fires(schedule) { Err(InvalidSchedule) } else { found(None, Missed::None) };
    };
    if now < first {
        return found(None, Missed::None);
    }
    let second = match schedule.next_after(first) {
        Some(second) if second <= now => second,
        _ => return found(Some(first), Missed::None),
    };
    let missed = if estimate(first, second, now) > FEW { Missed::Many } else { Missed::Few };
    found(Some(newest(schedule, first, second, now)), missed)
}

/// The start that is due at `now`, if any, and how many were missed before it (the caller warns of
/// [`Missed::Many`] only when a start is due). Matches `nextScheduleTime` in pkg/controller/cronjob/utils.go.
pub fn next_schedule_time(
    o: &Observed,
    now: DateTime<Utc>,
    schedule: &Schedule,
) -> Result<(Option<DateTime<Utc>>, Missed), InvalidSchedule> {
    most_recent_schedule_time(o, now, schedule, true).map(|found| (found.most_recent, found.missed))
}

/// The instant of the next start, for which the CronJob is to be looked at again; none if the schedule will not fire.
///
/// Matches `nextScheduleTimeDuration` in pkg/controller/cronjob/utils.go, without the 100 ms that it adds. Upstream's
/// delay for a schedule that never fires is the least i64, which means "now".
pub fn next_requeue_time(o: &Observed, now: DateTime<Utc>, schedule: &Schedule) -> Option<DateTime<Utc>> {
    // The usual case, at the price of one search.
    let first = schedule.next_after(o.last())?;
    if now < first {
        return Some(first);
    }
    match most_recent_schedule_time(o, now, schedule, false) {
        Ok(found) => schedule.next_after(found.most_recent.unwrap_or(found.earliest)),
        Err(InvalidSchedule) => None,
    }
}

fn saturating_sub(t: DateTime<Utc>, seconds: i64) -> DateTime<Utc> {
    let limit = if seconds < 0 { DateTime::<Utc>::MAX_UTC } else { DateTime::<Utc>::MIN_UTC };
    TimeDelta::try_seconds(seconds).and_then(|delta| t.checked_sub_signed(delta)).unwrap_or(limit)
}

/// Upstream finds out by searching from Go's zero time, because that is what a failed search returns there.
fn never_fires(schedule: &Schedule) -> bool {
    let zero =
        NaiveDate::from_ymd_opt(1, 1, 1).map_or(DateTime::<Utc>::MIN_UTC, |d| d.and_time(NaiveTime::MIN).and_utc());
    schedule.next_after(zero).is_none()
}

/// Upstream's estimate: how often the first interval fits into the time since the first start.
fn estimate(first: DateTime<Utc>, second: DateTime<Utc>, now: DateTime<Utc>) -> i64 {
    let interval = (second - first).num_seconds().clamp(1, MAX_DURATION);
    (now - first).num_seconds().min(MAX_DURATION) / interval + 1
}

/// The newest start not after `now`, given the first two, which are not. The first interval says how far to look back.
fn newest(schedule: &Schedule, first: DateTime<Utc>, second: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
    if let Some(interval) = schedule.interval().map(|interval| interval.num_seconds()) {
        let count = (now - second).num_seconds() / interval;
        return second + TimeDelta::try_seconds(count * interval).unwrap_or_default();
    }
    let due_after = |t: DateTime<Utc>| schedule.next_after(t).filter(|next| *next <= now);

    // Step back from now, twice as far each time, until a start comes after the place and before now.
    let mut best = second;
    let mut none_after = now;
    let mut stride = second - first;
    while let Some(place) = now.checked_sub_signed(stride).filter(|place| *place > best) {
        if let Some(next) = due_after(place) {
            best = next;
            break;
        }
        none_after = place;
        stride = stride * 2;
    }
    // Then, as long as another start follows the best one, halve the distance to the place after which none does.
    while let Some(next) = due_after(best) {
        best = next;
        let middle = best + (none_after - best) / 2;
        match due_after(middle) {
            // Around a change of offset an earlier place may show an earlier start; `best` never goes back.
            Some(next) => best = best.max(next),
            None => none_after = middle,
        }
    }
    best
}

#[cfg(test)]
#[path = "missed_tests.rs"]
mod tests;
