//! The effects of clock changes on a schedule: runs that are skipped, and runs that happen twice.
//!
//! Guarantees: the effects are computed from runs, not guessed from the fields. A run is skipped if the same fields
//! name its time on a clock without changes. A run happens twice if the schedule itself fires at both times. Pure.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Timelike, Utc};
use schedule::{Change, Schedule, Zone};

/// The largest clock change ever made: Pacific/Apia skipped a day.
const LONGEST_CHANGE: TimeDelta = TimeDelta::days(1);

/// The effect of a clock change on the runs of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The change.
    pub change: Change,
    /// The local times that are skipped, or that have a run at each of their two occurrences; at least one.
    pub times: Vec<NaiveDateTime>,
}

impl Effect {
    /// Whether the clocks go forward, so that runs are skipped.
    pub fn is_skip(&self) -> bool {
        self.change.after > self.change.before
    }
}

/// The local time just before a change, and the local time at it.
pub fn clocks(change: Change) -> (NaiveDateTime, NaiveDateTime) {
    let show = |offset: i32| change.at.naive_utc() + TimeDelta::seconds(offset.into());
    (show(change.before), show(change.after))
}

/// The effects of all changes after `from` and up to `until` on `schedule`, in order. An `@every` has none.
pub fn effects(schedule: &Schedule, from: DateTime<Utc>, until: DateTime<Utc>) -> Vec<Effect> {
    let zone = schedule.zone().unwrap_or(Zone::UTC);
    let on_a_steady_clock = schedule.in_zone(Zone::UTC);
    let mut effects = Vec::new();
    let mut from = from;
    while let Some(change) = zone.next_change(from, until) {
        from = change.at;
        let (old, new) = clocks(change);
        let is_run =
            |time: &NaiveDateTime, offset: i32| fires_at(schedule, time.and_utc() - TimeDelta::seconds(offset.into()));
        let is_odd = |time: &NaiveDateTime| new > old || is_run(time, change.before) && is_run(time, change.after);
        let times: Vec<_> = times_between(&on_a_steady_clock, old.min(new), old.max(new)).filter(is_odd).collect();
        if !times.is_empty() {
            effects.push(Effect { change, times });
        }
    }
    effects
}

/// The times from `start` and before `end` that a schedule in UTC names.
fn times_between(
    schedule: &Schedule,
    start: NaiveDateTime,
    end: NaiveDateTime,
) -> impl Iterator<Item = NaiveDateTime> + '_ {
    let first = schedule.next_after(start.and_utc() - TimeDelta::seconds(1));
    std::iter::successors(first, |t| schedule.next_after(*t)).map(|t| t.naive_utc()).take_while(move |time| *time < end)
}

fn fires_at(schedule: &Schedule, t: DateTime<Utc>) -> bool {
    schedule.next_after(t - TimeDelta::seconds(1)) == Some(t)
}

/// Which of two runs at the same local time a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Twin {
    /// Before the clocks go back.
    First,
    /// After.
    Second,
}

/// Whether the run at `t` is one of two at the same local time, and the change that causes it.
pub fn twin(schedule: &Schedule, t: DateTime<Utc>) -> Option<(Twin, Change)> {
    let zone = schedule.zone()?;
    let mut from = t - LONGEST_CHANGE;
    while let Some(change) = zone.next_change(from, t + LONGEST_CHANGE) {
        from = change.at;
        let back = TimeDelta::seconds(i64::from(change.before) - i64::from(change.after));
        let (which, other) = if t < change.at { (Twin::First, t + back) } else { (Twin::Second, t - back) };
        let across = (t < change.at) != (other < change.at);
        if back > TimeDelta::zero() && across && fires_at(schedule, other) {
            return Some((which, change));
        }
    }
    None
}

/// Whether a schedule has a run in every hour of the day on which the clocks change. Such a schedule keeps its pace,
/// and a skipped or repeated hour makes no difference to it.
pub fn runs_in_every_hour(schedule: &Schedule, change: Change) -> bool {
    let (old, new) = clocks(change);
    let midnight = old.min(new).date().and_hms_opt(0, 0, 0).unwrap_or_default();
    let steady = schedule.in_zone(Zone::UTC);
    let hours = times_between(&steady, midnight, midnight + TimeDelta::days(1));
    hours.fold(0_u32, |hours, time| hours | 1 << time.hour()) == 0x00ff_ffff
}

#[cfg(test)]
mod tests;
