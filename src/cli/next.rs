//! The next runs of a schedule.
//!
//! Guarantees: the runs are those of the controller, from the same parser and the same search. Runs that a clock change
//! skips are listed among them. Pure.

use chrono::{DateTime, FixedOffset, NaiveDateTime, Utc};
use schedule::{Schedule, Zone};
use serde::Serialize;

use super::clock_changes::{Effect, Twin, clocks, effects, twin};
use super::output::{MOMENT, Report, count};
use crate::terminal;

/// The arguments of `next`.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The schedule as written.
    pub text: String,
    /// The schedule.
    pub schedule: Schedule,
    /// List the runs after this instant; without it, after now.
    pub from: Option<DateTime<Utc>>,
    /// The number of runs.
    pub count: usize,
}

/// The runs after an instant.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextRuns {
    schedule: String,
    /// The zone of the fields; `None` for `@every`.
    time_zone: Option<&'static str>,
    from: DateTime<FixedOffset>,
    runs: Vec<Run>,
    skipped: Vec<Skipped>,
    /// Whether no further run exists within the controller's search limit.
    ends: bool,
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
    let Question { text, schedule, from, count } = question;
    let from = from.unwrap_or(now);
    let zone = schedule.zone().unwrap_or(Zone::UTC);
    let first = schedule.next_after(from);
    let runs: Vec<DateTime<Utc>> = std::iter::successors(first, |t| schedule.next_after(*t)).take(*count).collect();
    let ends = runs.len() < *count;
    let last = runs.last().copied().unwrap_or(from);
    let skips = effects(schedule, from, last).into_iter().filter(Effect::is_skip);
    NextRuns {
        schedule: text.clone(),
        time_zone: schedule.zone().map(Zone::name),
        from: zone.at(from),
        skipped: skips.map(|effect| Skipped::new(&effect)).collect(),
        runs: runs.into_iter().map(|t| Run::new(schedule, zone, t)).collect(),
        ends,
    }
}

impl NextRuns {
    /// Whether there is no run at all.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl Run {
    fn new(schedule: &Schedule, zone: Zone, t: DateTime<Utc>) -> Self {
        let twin = twin(schedule, t);
        let note = twin.map(|(which, change)| {
            let (old, new) = clocks(change);
            let (old, new) = (old.format("%H:%M"), new.format("%H:%M"));
            match which {
                Twin::First => format!("the first of two runs: at {old} the clocks go back to {new}"),
                Twin::Second => format!("the second of two runs: at {old} the clocks went back to {new}"),
            }
        });
        Self { time: zone.at(t), utc: t, twice: twin.map(|(which, _)| which), note }
    }
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
        let after = self.from.format(MOMENT);
        let place = match self.time_zone {
            Some(zone) => format!("in {zone}"),
            None => "counted from the last run (here from the given time)".to_owned(),
        };
        let mut lines = vec![format!("{} {place}, after {after}", self.schedule), String::new()];
        if self.is_empty() {
            lines.push("It never fires: it matches no time in the next five years.".to_owned());
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
            lines.push("No run follows within five years.".to_owned());
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
        let zone = Zone::load(zone, Zone::UTC).unwrap();
        let schedule = Schedule::parse_standard(text, zone).unwrap();
        next_runs(&Question { text: text.to_owned(), schedule, from: None, count }, from.parse().unwrap())
    }

    #[test]
    fn table_notes_the_effect_of_clock_changes() {
        let rows: [(&str, NextRuns, &[&str]); 8] = [
            (
                "spring in Berlin",
                ask("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 2),
                &[
                    "30 2 * * * in Europe/Berlin, after Fri 2026-03-27 13:00:00 +01:00",
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
                    "",
                    "It never fires: it matches no time in the next five years.",
                ],
            ),
            (
                "the last leap day before a century without one",
                ask("0 0 29 2 *", "UTC", "2095-01-01T00:00:00Z", 2),
                &[
                    "0 0 29 2 * in UTC, after Sat 2095-01-01 00:00:00 +00:00",
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
    fn json_and_yaml_have_the_same_fields() {
        let answer = ask("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 2);
        let json: serde_json::Value = serde_json::from_str(&render(&answer, Format::Json)).unwrap();
        let want = serde_json::json!({
            "schedule": "30 2 * * *",
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
