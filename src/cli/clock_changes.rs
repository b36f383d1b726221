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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn schedule(text: &str, zone: &str) -> Schedule {
        Schedule::parse_standard(text, Zone::load(zone, Zone::UTC).unwrap()).unwrap()
    }

    fn instant(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// The effects within two years, each as the day of the change, `-` or `+`, and the first and the last time.
    fn shown(text: &str, zone: &str) -> Vec<String> {
        let effects = effects(&schedule(text, zone), instant("2026-01-01T00:00:00Z"), instant("2028-01-01T00:00:00Z"));
        let show = |effect: Effect| {
            let [first, last] = [effect.times[0], *effect.times.last().unwrap()].map(|t| t.format("%H:%M").to_string());
            let sign = if effect.is_skip() { '-' } else { '+' };
            format!("{} {sign}{} {first} {last}", effect.times[0].format("%F"), effect.times.len())
        };
        effects.into_iter().map(show).collect()
    }

    #[test]
    fn skipped_and_repeated_local_times_are_found() {
        let rows: [(&str, &str, &str, &[&str]); 11] = [
            (
                "Berlin skips 02:30 in spring and has it twice in autumn",
                "30 2 * * *",
                "Europe/Berlin",
                &[
                    "2026-03-29 -1 02:30 02:30",
                    "2026-10-25 +1 02:30 02:30",
                    "2027-03-28 -1 02:30 02:30",
                    "2027-10-31 +1 02:30 02:30",
                ],
            ),
            ("03:00 is there once each day", "0 3 * * *", "Europe/Berlin", &[]),
            ("01:59 too", "59 1 * * *", "Europe/Berlin", &[]),
            (
                "New York changes its clocks on other days",
                "0 2 * * *",
                "America/New_York",
                &["2026-03-08 -1 02:00 02:00", "2027-03-14 -1 02:00 02:00"],
            ),
            (
                "and repeats the hour before",
                "30 1 * * *",
                "America/New_York",
                &["2026-11-01 +1 01:30 01:30", "2027-11-07 +1 01:30 01:30"],
            ),
            (
                "Lord Howe leaves out half an hour",
                "15,45 2 * * *",
                "Australia/Lord_Howe",
                &["2026-10-04 -1 02:15 02:15", "2027-10-03 -1 02:15 02:15"],
            ),
            (
                "and repeats half an hour",
                "15,45 1 * * *",
                "Australia/Lord_Howe",
                &["2026-04-05 +1 01:45 01:45", "2027-04-04 +1 01:45 01:45"],
            ),
            (
                "of a schedule of minutes the whole hour",
                "*/5 * 29 3 *",
                "Europe/Berlin",
                &["2026-03-29 -12 02:00 02:55"],
            ),
            ("only on the days that it names", "30 2 * * 1-5", "Europe/Berlin", &[]),
            ("UTC never changes", "30 2 * * *", "UTC", &[]),
            ("a duration knows no clock", "@every 90m", "Europe/Berlin", &[]),
        ];
        for (sentence, text, zone, want) in rows {
            assert_eq!(shown(text, zone), want, "{sentence}");
        }
    }

    #[test]
    fn both_runs_of_a_repeated_local_time_are_marked() {
        let rows = [
            ("the first", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", Some(Twin::First)),
            ("the second", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", Some(Twin::Second)),
            ("the day before", "30 2 * * *", "Europe/Berlin", "2026-10-24T00:30:00Z", None),
            ("in spring", "30 3 * * *", "Europe/Berlin", "2026-03-29T01:30:00Z", None),
            ("half an hour, first", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", Some(Twin::First)),
            ("half an hour, second", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T15:15:00Z", Some(Twin::Second)),
            ("before the half hour", "15 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:15:00Z", None),
            ("a duration", "@every 30m", "Europe/Berlin", "2026-10-25T00:30:00Z", None),
        ];
        for (sentence, text, zone, t, want) in rows {
            assert_eq!(twin(&schedule(text, zone), instant(t)).map(|(which, _)| which), want, "{sentence}");
        }
    }

    #[test]
    fn hourly_schedule_is_not_affected_by_clock_changes() {
        let berlin = schedule("30 2 * * *", "Europe/Berlin");
        let change = effects(&berlin, instant("2026-01-01T00:00:00Z"), instant("2026-06-01T00:00:00Z"))[0].change;
        for (text, want) in
            [("30 * * * *", true), ("*/7 * * * *", true), ("0 */2 * * *", false), ("0 0-22 * * *", false)]
        {
            assert_eq!(runs_in_every_hour(&schedule(text, "Europe/Berlin"), change), want, "{text}");
        }
    }
}
