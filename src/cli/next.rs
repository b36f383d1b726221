//! The next or the previous runs of a schedule, and the schedule in words.
//!
//! Guarantees: the runs are those of the controller, from the same parser and the same search. Runs that a clock change
//! skips are listed among them. What batch/v1 refuses of the schedule is noted. Pure.
//!
//! `cron_jobs` answers for CronJobs with their policies.

pub mod cron_jobs;
#[cfg(feature = "dev")]
pub mod manifests;

use std::collections::VecDeque;

use chrono::{DateTime, FixedOffset, NaiveDateTime, TimeDelta, Utc};
use schedule::{Schedule, Zone};
use serde::Serialize;

use super::clock_changes::{Effect, Twin, clocks, effects, twin};
use super::output::{MOMENT, Report, count};
use super::words;
use crate::terminal;

/// How far back runs are searched: as far as the controller searches ahead.
const FURTHEST_BACK: TimeDelta = TimeDelta::days(5 * 366);

/// The arguments of `next`.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The schedule as written.
    pub text: String,
    /// The schedule.
    pub schedule: Schedule,
    /// List the runs after this instant, or up to it; without it, now.
    pub from: Option<DateTime<Utc>>,
    /// The number of runs.
    pub count: usize,
    /// Whether to list the runs up to the instant.
    pub previous: bool,
}

/// The runs after an instant, or up to it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextRuns {
    schedule: String,
    words: String,
    /// The zone of the fields; `None` for `@every`.
    time_zone: Option<&'static str>,
    from: DateTime<FixedOffset>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    previous: bool,
    runs: Vec<Run>,
    skipped: Vec<Skipped>,
    /// Whether no further run exists within the controller's search limit.
    ends: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    time: DateTime<FixedOffset>,
    utc: DateTime<Utc>,
    /// Which of two runs at the same local time this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    twice: Option<Twin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Local times that a clock change skips.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Skipped {
    first: NaiveDateTime,
    last: NaiveDateTime,
    times: usize,
    #[serde(skip)]
    at: DateTime<Utc>,
    note: String,
}

/// Computes the answer.
pub fn next_runs(question: &Question, now: DateTime<Utc>) -> NextRuns {
    let Question { text, schedule, from, count, previous } = question;
    let from = from.unwrap_or(now);
    let zone = schedule.zone().unwrap_or(Zone::UTC);
    let after = |t: DateTime<Utc>| std::iter::successors(schedule.next_after(t), |t| schedule.next_after(*t));
    let runs: Vec<DateTime<Utc>> =
        if *previous { previous_runs(schedule, from, *count) } else { after(from).take(*count).collect() };
    let ends = runs.len() < *count;
    let (start, end) = if *previous {
        (runs.first().map_or(from, |first| *first - TimeDelta::seconds(1)), from)
    } else {
        (from, runs.last().copied().unwrap_or(from))
    };
    let skips = effects(schedule, start, end).into_iter().filter(Effect::is_skip);
    NextRuns {
        schedule: text.clone(),
        words: words::describe(schedule),
        time_zone: schedule.zone().map(Zone::name),
        from: zone.at(from),
        previous: *previous,
        skipped: skips.map(|effect| Skipped::new(&effect)).collect(),
        runs: runs.into_iter().map(|t| Run::new(schedule, zone, t)).collect(),
        ends,
        notes: notes(text, schedule),
    }
}

/// The last runs up to `until`, ascending. A schedule is searched forward only, from further and further back.
fn previous_runs(schedule: &Schedule, until: DateTime<Utc>, count: usize) -> Vec<DateTime<Utc>> {
    let mut back = TimeDelta::days(1);
    loop {
        let first = schedule.next_after(until - back);
        let runs = std::iter::successors(first, |t| schedule.next_after(*t)).take_while(|t| *t <= until);
        let mut last = VecDeque::with_capacity(count);
        for run in runs {
            if last.len() == count {
                last.pop_front();
            }
            last.push_back(run);
        }
        if last.len() == count || back >= FURTHEST_BACK {
            return last.into();
        }
        back = (back * 4).min(FURTHEST_BACK);
    }
}

/// What a batch/v1 CronJob with this schedule does not do.
fn notes(text: &str, schedule: &Schedule) -> Vec<String> {
    let zone = text
        .contains("TZ")
        .then(|| "batch/v1 refuses it: cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    let is_close = schedule.interval().is_some_and(|interval| interval < TimeDelta::minutes(1));
    let close = is_close
        .then(|| "In batch/v1, runs within a minute share a Job's name: only the first of them starts.".to_owned());
    zone.into_iter().chain(close).collect()
}

impl NextRuns {
    /// Whether there is no run at all.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl Run {
    fn new(schedule: &Schedule, zone: Zone, t: DateTime<Utc>) -> Self {
        let twice = twin(schedule, t).map(|(which, _)| which);
        Self { time: zone.at(t), utc: t, twice, note: twin_note(schedule, t) }
    }
}

/// What the run at `t` is of two at the same local time.
fn twin_note(schedule: &Schedule, t: DateTime<Utc>) -> Option<String> {
    let (which, change) = twin(schedule, t)?;
    let (old, new) = clocks(change);
    let (old, new) = (old.format("%H:%M"), new.format("%H:%M"));
    Some(match which {
        Twin::First => format!("the first of two runs: at {old} the clocks go back to {new}"),
        Twin::Second => format!("the second of two runs: at {old} the clocks went back to {new}"),
    })
}

impl Skipped {
    fn new(effect: &Effect) -> Self {
        let (old, new) = clocks(effect.change);
        let (first, last) = (effect.times[0], effect.times[effect.times.len() - 1]);
        let times = effect.times.len();
        let what = match times {
            1 => "skipped".to_owned(),
            _ => format!("{}, to {}, skipped", count(times, "run"), last.format("%H:%M")),
        };
        let note = format!("{what}: the clocks go from {} to {}", old.format("%H:%M"), new.format("%H:%M"));
        Self { first, last, times, at: effect.change.at, note }
    }
}

const HEADINGS: [&str; 3] = ["RUN", "UTC", "NOTE"];

impl Report for NextRuns {
    fn lines(&self) -> Vec<String> {
        let (from, side) = (self.from.format(MOMENT), if self.previous { "up to" } else { "after" });
        let place = match self.time_zone {
            Some(zone) => format!("in {zone}"),
            None => "counted from the last run (here from the given time)".to_owned(),
        };
        let mut lines = vec![format!("{} {place}, {side} {from}", self.schedule), self.words.clone()];
        lines.extend(self.notes.iter().cloned());
        lines.push(String::new());
        if self.is_empty() {
            let what = if self.previous {
                "It never fired: it matches no time in the five years before."
            } else {
                "It never fires: it matches no time in the next five years."
            };
            lines.push(what.to_owned());
            return lines;
        }
        let run = |run: &Run| {
            let note = run.note.clone().unwrap_or_default();
            (run.utc, [run.time.format(MOMENT).to_string(), run.utc.format("%FT%TZ").to_string(), note])
        };
        let skipped =
            |skip: &Skipped| (skip.at, [skip.first.format("%a %F %T").to_string(), "-".to_owned(), skip.note.clone()]);
        let mut rows: Vec<_> = self.skipped.iter().map(skipped).chain(self.runs.iter().map(run)).collect();
        // What a change skips at an instant comes before a run at that instant.
        rows.sort_by_key(|(at, _)| *at);
        let table: Vec<[String; 3]> =
            std::iter::once(HEADINGS.map(str::to_owned)).chain(rows.into_iter().map(|(_, cells)| cells)).collect();
        lines.extend(terminal::columns(&table));
        if self.ends {
            let side = if self.previous { "precedes" } else { "follows" };
            lines.push(format!("No run {side} within five years."));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::output::{Format, render};
    use super::*;

    fn ask(text: &str, zone: &str, from: &str, count: usize) -> NextRuns {
        runs_of(text, zone, from, count, false)
    }

    fn runs_of(text: &str, zone: &str, from: &str, count: usize, previous: bool) -> NextRuns {
        let zone = Zone::load(zone, Zone::UTC).unwrap();
        let schedule = Schedule::parse_standard(text, zone).unwrap();
        let question = Question { text: text.to_owned(), schedule, from: None, count, previous };
        next_runs(&question, from.parse().unwrap())
    }

    #[test]
    fn table_notes_the_effect_of_clock_changes() {
        let rows: [(&str, NextRuns, &[&str]); 8] = [
            (
                "spring in Berlin",
                ask("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 2),
                &[
                    "30 2 * * * in Europe/Berlin, after Fri 2026-03-27 13:00:00 +01:00",
                    "At 02:30 every day.",
                    "",
                    "RUN                              UTC                    NOTE",
                    "Sat 2026-03-28 02:30:00 +01:00   2026-03-28T01:30:00Z",
                    "Sun 2026-03-29 02:30:00          -                      skipped: the clocks go from 02:00 to 03:00",
                    "Mon 2026-03-30 02:30:00 +02:00   2026-03-30T00:30:00Z",
                ],
            ),
            (
                "autumn in Berlin",
                ask("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3),
                &[
                    "30 2 * * * in Europe/Berlin, after Sat 2026-10-24 14:00:00 +02:00",
                    "At 02:30 every day.",
                    "",
                    "RUN                              UTC                    NOTE",
                    "Sun 2026-10-25 02:30:00 +02:00   2026-10-25T00:30:00Z   the first of two runs: at 03:00 the clocks go back to 02:00",
                    "Sun 2026-10-25 02:30:00 +01:00   2026-10-25T01:30:00Z   the second of two runs: at 03:00 the clocks went back to 02:00",
                    "Mon 2026-10-26 02:30:00 +01:00   2026-10-26T01:30:00Z",
                ],
            ),
            (
                "spring in New York",
                ask("15 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 1),
                &[
                    "15 2 * * * in America/New_York, after Sat 2026-03-07 07:00:00 -05:00",
                    "At 02:15 every day.",
                    "",
                    "RUN                              UTC                    NOTE",
                    "Sun 2026-03-08 02:15:00          -                      skipped: the clocks go from 02:00 to 03:00",
                    "Mon 2026-03-09 02:15:00 -04:00   2026-03-09T06:15:00Z",
                ],
            ),
            (
                "half an hour at Lord Howe, with several runs in it",
                ask("*/10 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", 2),
                &[
                    "*/10 2 * * * in Australia/Lord_Howe, after Sun 2026-10-04 01:30:00 +10:30",
                    "At 02:00, 02:10, 02:20, 02:30, 02:40 and 02:50 every day.",
                    "",
                    "RUN                              UTC                    NOTE",
                    "Sun 2026-10-04 02:00:00          -                      3 runs, to 02:20, skipped: the clocks go from 02:00 to 02:30",
                    "Sun 2026-10-04 02:30:00 +11:00   2026-10-03T15:30:00Z",
                    "Sun 2026-10-04 02:40:00 +11:00   2026-10-03T15:40:00Z",
                ],
            ),
            (
                "half an hour that comes twice",
                ask("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", 2),
                &[
                    "45 1 * * * in Australia/Lord_Howe, after Sat 2026-04-04 23:00:00 +11:00",
                    "At 01:45 every day.",
                    "",
                    "RUN                              UTC                    NOTE",
                    "Sun 2026-04-05 01:45:00 +11:00   2026-04-04T14:45:00Z   the first of two runs: at 02:00 the clocks go back to 01:30",
                    "Sun 2026-04-05 01:45:00 +10:30   2026-04-04T15:15:00Z   the second of two runs: at 02:00 the clocks went back to 01:30",
                ],
            ),
            (
                "a duration has no zone",
                ask("@every 90m", "Europe/Berlin", "2026-03-29T00:00:00Z", 2),
                &[
                    "@every 90m counted from the last run (here from the given time), after Sun 2026-03-29 00:00:00 +00:00",
                    "Every 1h30m, counted from the last run.",
                    "",
                    "RUN                              UTC                    NOTE",
                    "Sun 2026-03-29 01:30:00 +00:00   2026-03-29T01:30:00Z",
                    "Sun 2026-03-29 03:00:00 +00:00   2026-03-29T03:00:00Z",
                ],
            ),
            (
                "31 February",
                ask("0 0 31 2 *", "UTC", "2026-01-01T00:00:00Z", 2),
                &[
                    "0 0 31 2 * in UTC, after Thu 2026-01-01 00:00:00 +00:00",
                    "At 00:00 on day 31 of the month in February.",
                    "",
                    "It never fires: it matches no time in the next five years.",
                ],
            ),
            (
                "the last leap day before a century without one",
                ask("0 0 29 2 *", "UTC", "2095-01-01T00:00:00Z", 2),
                &[
                    "0 0 29 2 * in UTC, after Sat 2095-01-01 00:00:00 +00:00",
                    "At 00:00 on day 29 of the month in February.",
                    "",
                    "RUN                              UTC                    NOTE",
                    "Wed 2096-02-29 00:00:00 +00:00   2096-02-29T00:00:00Z",
                    "No run follows within five years.",
                ],
            ),
        ];
        for (sentence, answer, want) in rows {
            assert_eq!(answer.lines(), want, "{sentence}");
        }
    }

    #[test]
    fn previous_runs_end_with_the_given_time() {
        let ask = |text: &str, from: &str, count: usize| runs_of(text, "Europe/Berlin", from, count, true);
        assert_eq!(
            ask("30 2 * * *", "2026-03-30T00:30:00Z", 2).lines(),
            [
                "30 2 * * * in Europe/Berlin, up to Mon 2026-03-30 02:30:00 +02:00",
                "At 02:30 every day.",
                "",
                "RUN                              UTC                    NOTE",
                "Sat 2026-03-28 02:30:00 +01:00   2026-03-28T01:30:00Z",
                "Sun 2026-03-29 02:30:00          -                      skipped: the clocks go from 02:00 to 03:00",
                "Mon 2026-03-30 02:30:00 +02:00   2026-03-30T00:30:00Z",
            ]
        );
        let utc = |runs: NextRuns| runs.runs.iter().map(|run| run.utc.to_string()).collect::<Vec<_>>();
        let minutely = utc(ask("* * * * *", "2026-07-01T00:00:30Z", 3));
        assert_eq!(minutely, ["2026-06-30 23:58:00 UTC", "2026-06-30 23:59:00 UTC", "2026-07-01 00:00:00 UTC"]);
        let leap = ask("0 12 29 2 *", "2026-07-01T00:00:00Z", 2);
        assert!(leap.ends && leap.lines().last().unwrap() == "No run precedes within five years.");
        assert_eq!(utc(leap), ["2024-02-29 11:00:00 UTC"]);
        assert!(ask("0 0 31 2 *", "2026-07-01T00:00:00Z", 1).is_empty());
    }

    #[test]
    fn what_batch_v1_refuses_is_noted() {
        let notes = |text: &str| ask(text, "UTC", "2026-03-27T12:00:00Z", 1).notes;
        let refused = ["batch/v1 refuses it: cannot use TZ or CRON_TZ in schedule, use timeZone field instead"];
        assert_eq!(notes("TZ=Asia/Tokyo 0 0 * * *"), refused);
        assert_eq!(notes("CRON_TZ=Asia/Tokyo @daily"), refused);
        let close = ["In batch/v1, runs within a minute share a Job's name: only the first of them starts."];
        assert_eq!(notes("@every 30s"), close);
        assert_eq!(notes("* * * * *"), [""; 0]);
    }

    #[test]
    fn json_and_yaml_have_the_same_fields() {
        let answer = ask("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 2);
        let json: serde_json::Value = serde_json::from_str(&render(&answer, Format::Json)).unwrap();
        let want = serde_json::json!({
            "schedule": "30 2 * * *",
            "words": "At 02:30 every day.",
            "timeZone": "Europe/Berlin",
            "from": "2026-03-27T13:00:00+01:00",
            "runs": [
                { "time": "2026-03-28T02:30:00+01:00", "utc": "2026-03-28T01:30:00Z" },
                { "time": "2026-03-30T02:30:00+02:00", "utc": "2026-03-30T00:30:00Z" },
            ],
            "skipped": [{
                "first": "2026-03-29T02:30:00", "last": "2026-03-29T02:30:00", "times": 1,
                "note": "skipped: the clocks go from 02:00 to 03:00",
            }],
            "ends": false,
        });
        assert_eq!(json, want);
        let yaml: serde_json::Value = serde_saphyr::from_str(&render(&answer, Format::Yaml)).unwrap();
        assert_eq!(yaml, want);
        let twice = ask("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        let twice: serde_json::Value = serde_json::from_str(&render(&twice, Format::Json)).unwrap();
        assert_eq!([&twice["runs"][0]["twice"], &twice["runs"][1]["twice"]], ["first", "second"]);
    }
}
