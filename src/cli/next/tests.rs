#![allow(clippy::unwrap_used, clippy::type_complexity)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::output::{Format, render};
use super::*;
use crate::api::batch_v1::CronJob;
use crate::api::policy::{EXCLUDE, PolicyOptions, SCHEDULE, SPREAD};
use crate::controller::tests::objects::cron_job;

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

/// The table of a CronJob's next run after 2026-11-22T10:01:00Z (a Sunday), without its title.
fn of_cron_job(annotations: &[(&str, &str)], spec: &Value, all: bool, now: &str) -> Vec<String> {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let patch = json!({ "metadata": { "creationTimestamp": "2026-03-27T10:00:30Z", "annotations": annotations }, "spec": spec });
    let mut cron_job = CronJob::clone(&cron_job(patch));
    PolicyOptions::default().apply(&mut cron_job);
    let question = cron_jobs::Question { zone: Zone::UTC, seed: Arc::from(""), from: None, count: 1, all };
    let runs = cron_jobs::CronJobRuns::of(&cron_job, &question, now.parse().unwrap());
    cron_jobs::Answer::One(Box::new(runs)).lines()
}

#[test]
fn table_of_a_cron_job_has_what_it_skips_and_nothing_before_its_creation() {
    let berlin = json!({ "schedule": "30 2 * * *", "timeZone": "Europe/Berlin" });
    let days = (EXCLUDE, "11-23/11-25");
    let heading = "SLOT                             DUE                              NOTE";
    let rows: [(&str, &[(&str, &str)], Value, bool, &str, &[&str]); 5] = [
        (
            "a clock change",
            &[],
            berlin,
            false,
            "2026-03-28T12:00:00Z",
            &[
                heading,
                "Sun 2026-03-29 02:30:00          -                                skipped: the clocks go from 02:00 to 03:00",
                "Mon 2026-03-30 02:30:00 +02:00   Mon 2026-03-30 02:30:00 +02:00",
            ],
        ),
        (
            "all that is left out before the run",
            &[days],
            json!({ "schedule": "0 10 * * *" }),
            true,
            "2026-11-22T10:01:00Z",
            &[
                heading,
                "Mon 2026-11-23 10:00:00 +00:00   -                                left out by cronjob-controller.dev/exclude",
                "Tue 2026-11-24 10:00:00 +00:00   -                                left out by cronjob-controller.dev/exclude",
                "Wed 2026-11-25 10:00:00 +00:00   -                                left out by cronjob-controller.dev/exclude",
                "Thu 2026-11-26 10:00:00 +00:00   Thu 2026-11-26 10:00:00 +00:00",
            ],
        ),
        (
            "made after the slot, which is due later",
            &[(SPREAD, "30m")],
            json!({}),
            false,
            "2026-03-27T10:01:00Z",
            &[heading, "Fri 2026-03-27 11:00:00 +00:00   Fri 2026-03-27 11:25:01 +00:00"],
        ),
        (
            "lines that replace the schedule",
            &[(SCHEDULE, "0 14 * * MON-FRI; 0 9 * * SAT")],
            json!({ "schedule": "0 2 * * *" }),
            false,
            "2026-03-27T10:01:00Z",
            &[
                "Its schedule is that of cronjob-controller.dev/schedule, which replaces spec.schedule (0 2 * * *).",
                heading,
                "Fri 2026-03-27 14:00:00 +00:00   Fri 2026-03-27 14:00:00 +00:00",
            ],
        ),
        (
            "an interval, whose zone is that of the times alone",
            &[],
            json!({ "schedule": "@every 12h", "timeZone": "Asia/Tokyo" }),
            false,
            "2026-03-27T10:01:00Z",
            &[heading, "Sat 2026-03-28 06:00:00 +09:00   Sat 2026-03-28 06:00:00 +09:00"],
        ),
    ];
    for (sentence, annotations, spec, all, now, want) in rows {
        let lines = of_cron_job(annotations, &spec, all, now);
        assert_eq!(lines[1..], *want, "{sentence}");
        let schedule = annotations.iter().find(|(name, _)| *name == SCHEDULE).map(|(_, lines)| *lines);
        assert!(
            schedule.is_none_or(|lines_of| lines[0].contains(&format!(": {lines_of} in "))),
            "{sentence}: {}",
            lines[0]
        );
    }
}
