//! The due start, the number of missed starts, and the next requeue time.
//!
//! Guarantees: the most recent due start is exact for every schedule. The number of search steps grows with the logarithm of
//! the time missed and not with the number of starts. Ten years of downtime with `@every 1s`, a clock in the year 1 or 2999,
//! and a schedule that never fires take microseconds and no memory. Times saturate; nothing overflows.
//!
//! Upstream estimates the most recent start from the first interval and loses the run of an uneven schedule (`15,45 9-17 * * *`
//! after a night). Upstream's estimate of the *number* of missed starts is kept, because the TooManyMissedTimes Event depends
//! on it.

use std::collections::VecDeque;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

use super::{Evaluation, Kind, Schedule};

/// The fields of a CronJob that determine its due starts.
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
    /// The last start, else the creation time.
    fn last(&self) -> DateTime<Utc> {
        self.last_schedule.unwrap_or(self.creation)
    }
}

/// An estimate of the starts missed before the most recent one. Matches `missedSchedulesType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// At most one start is due: the most recent one.
    #[default]
    None,
    /// Up to a hundred.
    Few,
    /// More than a hundred.
    Many,
}

/// The result of [`most_recent_schedule_time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MostRecent {
    /// Starts before this time do not count: the last start, else the creation time, or the starting deadline if later.
    pub earliest: DateTime<Utc>,
    /// The newest start after `earliest` and not after `now`.
    pub most_recent: Option<DateTime<Utc>>,
    /// The first start after `earliest`, if it is after `now`.
    pub upcoming: Option<DateTime<Utc>>,
    /// The estimate of missed starts.
    pub missed: Missed,
}

/// The schedule can never fire (31 February). The message is upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub struct InvalidSchedule;

/// The most missed starts that count as few.
const FEW: i64 = 100;
/// Go's greatest `Duration` in whole seconds, to which `Time.Sub` saturates.
const MAX_DURATION: i64 = i64::MAX / 1_000_000_000;

/// Finds the newest start that is due at `now`. The starting deadline counts only if `include_deadline`.
///
/// Matches `mostRecentScheduleTime` in pkg/controller/cronjob/utils.go, except that the start is exact (see the module). A
/// start without a successor within five years is due like any other; upstream returns an error.
pub fn most_recent_schedule_time(
    o: &Observed,
    now: DateTime<Utc>,
    schedule: &Evaluation<'_>,
    include_deadline: bool,
) -> Result<MostRecent, InvalidSchedule> {
    let mut earliest = o.last();
    if let Some(seconds) = o.starting_deadline_seconds.filter(|_| include_deadline) {
        earliest = earliest.max(saturating_sub(now, seconds));
    }
    let found = most_recent_after(earliest, now, schedule);
    let is_without = found.most_recent.or(found.upcoming).is_none();
    if is_without && never_fires(schedule) { Err(InvalidSchedule) } else { Ok(found) }
}

/// The same, whether or not the schedule ever fires.
fn most_recent_after(earliest: DateTime<Utc>, now: DateTime<Utc>, schedule: &Evaluation<'_>) -> MostRecent {
    let first = schedule.next_after(earliest);
    let upcoming = first.filter(|first| now < *first);
    let found = |most_recent, missed| MostRecent { earliest, most_recent, upcoming, missed };

    let Some(first) = first.filter(|first| *first <= now) else { return found(None, Missed::None) };
    let Some(second) = schedule.next_until(first, now) else { return found(Some(first), Missed::None) };
    let missed = if estimate(first, second, now) > FEW { Missed::Many } else { Missed::Few };
    found(Some(newest(schedule, first, second, now)), missed)
}

/// The start that is due at `now`, if any, and the estimate of starts missed before it. The caller warns of [`Missed::Many`]
/// only if a start is due. Matches `nextScheduleTime` in pkg/controller/cronjob/utils.go.
pub fn next_schedule_time(
    o: &Observed,
    now: DateTime<Utc>,
    schedule: &Evaluation<'_>,
) -> Result<(Option<DateTime<Utc>>, Missed), InvalidSchedule> {
    most_recent_schedule_time(o, now, schedule, true).map(|found| (found.most_recent, found.missed))
}

/// The instant of the next start, when the CronJob must be requeued; `None` if the schedule will not fire.
///
/// `known` is what [`most_recent_schedule_time`] found at the same time for the same schedule, if anything. The newest start is
/// then not searched for again, unless that search began elsewhere: at the starting deadline, which does not count here, or at
/// an older start. It may then have found another one (`@every`, a change of offset).
///
/// Matches `nextScheduleTimeDuration` in pkg/controller/cronjob/utils.go without its extra 100 ms. Upstream's delay for a
/// schedule that never fires is the smallest i64, which means "now".
pub fn next_requeue_time(
    o: &Observed,
    now: DateTime<Utc>,
    schedule: &Evaluation<'_>,
    known: Option<&MostRecent>,
) -> Option<DateTime<Utc>> {
    let known = known.filter(|known| known.earliest == o.last()).copied();
    let found = known.unwrap_or_else(|| most_recent_after(o.last(), now, schedule));
    match found.most_recent {
        Some(newest) => schedule.next_after(newest),
        None => found.upcoming,
    }
}

/// How many steps it takes to find the start that is due and then the time of the next requeue, as every sync does.
#[doc(hidden)]
pub fn steps_of_evaluation(o: &Observed, now: DateTime<Utc>, schedule: &Schedule) -> u32 {
    let schedule = &Evaluation::of(schedule);
    if let Ok(found) = most_recent_schedule_time(o, now, schedule, true) {
        next_requeue_time(o, now, schedule, Some(&found));
    }
    schedule.steps_taken()
}

/// Whether nothing is ever due, as upstream: a deadline of 0 has passed whenever a sync looks. The starts of an `@every` count from
/// the last one, or from the starting deadline if that is later, so that a deadline shorter than the interval always puts the next
/// one off.
pub fn is_never_due(schedule: &Schedule, starting_deadline_seconds: Option<i64>) -> bool {
    let shortest = schedule.interval().map_or(1, |interval| interval.num_seconds());
    starting_deadline_seconds.is_some_and(|deadline| deadline < shortest)
}

/// The newest start after `after` and not after `until`, if there is one.
#[doc(hidden)]
pub fn newest_start(schedule: &Evaluation<'_>, after: DateTime<Utc>, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let observed = Observed { creation: after, last_schedule: None, starting_deadline_seconds: None };
    most_recent_schedule_time(&observed, until, schedule, false).ok()?.most_recent
}

/// The newest `most` starts after `after` and not after `until`, the oldest first; fewer if there are fewer.
///
/// The number of searches grows with `most`, and with the logarithm of the time since `after`, whatever lies between.
#[doc(hidden)]
pub fn newest_starts(
    schedule: &Evaluation<'_>,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    most: usize,
) -> VecDeque<DateTime<Utc>> {
    if let Some(interval) = schedule.schedule().interval() {
        return newest_of_interval(schedule, interval, after, until, most);
    }
    let mut found = VecDeque::new();
    let mut end = until;
    // Starts are whole minutes apart, so that many minutes hold no more.
    let shortest = |wanted: usize| TimeDelta::minutes(i64::try_from(wanted).unwrap_or(i64::MAX >> 32));
    let mut stretch = shortest(most);
    while found.len() < most && end > after {
        let wanted = most - found.len();
        let start = end.checked_sub_signed(stretch).map_or(after, |start| start.max(after));
        let starts = std::iter::successors(schedule.next_until(start, end), |last| schedule.next_until(*last, end));
        let part: Vec<DateTime<Utc>> = starts.take(2 * wanted + 1).collect();
        if part.len() > 2 * wanted {
            // Too many to look at all of them: the newest is searched for, and then those right before it.
            if stretch > shortest(wanted) {
                (end, stretch) = (newest_start(schedule, start, end).unwrap_or(end), shortest(wanted));
            } else {
                stretch = stretch / 4;
            }
            continue;
        }
        for start in part.iter().rev().take(wanted) {
            found.push_front(*start);
        }
        end = start;
        // Twice as many as were wanted are at most looked at, as long as they are evenly spread.
        stretch = if part.len() * 2 > wanted { stretch } else { stretch * 4 };
    }
    found
}

/// The starts of an `@every` count from `after`, so that a search from any other time finds others.
fn newest_of_interval(
    schedule: &Evaluation<'_>,
    interval: TimeDelta,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    most: usize,
) -> VecDeque<DateTime<Utc>> {
    let Some(first) = schedule.next_until(after, until) else { return VecDeque::new() };
    let newest = newest_start(schedule, after, until);
    let all = std::iter::successors(newest, |start| start.checked_sub_signed(interval));
    let mut found: VecDeque<_> = all.take_while(|start| *start >= first).take(most).collect();
    found.make_contiguous().reverse();
    found
}

fn saturating_sub(t: DateTime<Utc>, seconds: i64) -> DateTime<Utc> {
    let limit = if seconds < 0 { DateTime::<Utc>::MAX_UTC } else { DateTime::<Utc>::MIN_UTC };
    TimeDelta::try_seconds(seconds).and_then(|delta| t.checked_sub_signed(delta)).unwrap_or(limit)
}

/// Upstream detects this by searching from Go's zero time, which a failed search returns.
fn never_fires(schedule: &Evaluation<'_>) -> bool {
    if let Kind::Composite(composite) = &schedule.schedule().0 {
        return composite.never_fires(&mut schedule.steps());
    }
    let zero =
        NaiveDate::from_ymd_opt(1, 1, 1).map_or(DateTime::<Utc>::MIN_UTC, |d| d.and_time(NaiveTime::MIN).and_utc());
    schedule.next_after(zero).is_none()
}

/// Upstream's estimate: how often the first interval fits into the time since the first start.
#[doc(hidden)]
pub fn estimate(first: DateTime<Utc>, second: DateTime<Utc>, now: DateTime<Utc>) -> i64 {
    let interval = (second - first).num_seconds().clamp(1, MAX_DURATION);
    (now - first).num_seconds().min(MAX_DURATION) / interval + 1
}

/// The newest start not after `now`, given the first two, which are not after it. The first interval sets the first distance to
/// look back.
fn newest(schedule: &Evaluation<'_>, first: DateTime<Utc>, second: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
    if let Some(interval) = schedule.schedule().interval().map(|interval| interval.num_seconds()) {
        let count = (schedule.schedule().latest(now) - second).num_seconds() / interval;
        return second + TimeDelta::try_seconds(count * interval).unwrap_or_default();
    }
    // Searches backward from `now`, four times as far each time, until a start follows the position. What has none is not
    // searched again.
    let mut best = second;
    let mut none_after = now;
    let mut stride = second - first;
    while let Some(place) = now.checked_sub_signed(stride).filter(|place| *place > best) {
        if let Some(next) = schedule.next_until(place, none_after) {
            best = next;
            break;
        }
        none_after = place;
        stride = stride * 4;
    }
    // While another start follows the best one, halves the distance to the position after which none follows.
    loop {
        let mut next = schedule.next_until(best, none_after);
        if next.is_none() && none_after < now {
            // Around a change of offset, a search from an earlier position may find what one from a later position does not.
            next = schedule.next_until(best, now);
            none_after = now;
        }
        let Some(next) = next else { break };
        best = next;
        while none_after - best >= TimeDelta::seconds(60) {
            let middle = best + (none_after - best) / 2;
            let Some(next) = schedule.next_until(middle, none_after) else {
                // No start follows this position, so the search goes on before it.
                none_after = middle;
                continue;
            };
            // Such an earlier position may also yield an earlier start; `best` never decreases.
            best = best.max(next);
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests;
