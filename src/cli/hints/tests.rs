#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::cli::dispatch;
use crate::cli::explain::explain;
use crate::cli::explain::tests::{cron_job, facts, instant};
use crate::cli::next::cron_jobs::{Answer, CronJobRuns, Question};
use crate::cli::output::Report as _;
use crate::options::Environment;

#[test]
fn schedule_of_another_scheduler_is_refused_with_what_to_write() {
    let rows = [
        ("0 0 L * *", "L, W and # are known to the annotation cronjob-controller.dev/schedule only"),
        ("\u{201c}0 3 * * *\u{201d}", "the quotation marks are a part of it; write 0 3 * * *"),
        ("'@daily'", "the quotation marks are a part of it; write @daily"),
        ("@daily ", "blanks at its start or end are a part of it; write @daily"),
        ("@every  5m", "one blank follows @every; write @every 5m"),
        ("0 0 15W * *", "L, W and #"),
        ("0 0 LW * *", "L, W and #"),
        ("0 0 * * 5L", "L, W and #"),
        ("0 0 * * FRI#2", "L, W and #"),
        ("H 3 * * *", "H is Jenkins's"),
        ("H/15 * * * *", "H is Jenkins's"),
        ("0 0 * * 7", "Sunday is 0"),
        ("0 0 * * 5-7", "write 5-6,0"),
        ("0 0 * * 6-7", "write 6,0"),
        ("0 0 * * SAT-SUN", "write 6,0"),
        ("0 0 * * FRI-MON", "write 5-6,0-1"),
        ("0 22-6 * * *", "write 22-23,0-6"),
        ("0 0 1 NOV-FEB *", "write 11-12,1-2"),
        ("0 22-6/2 * * *", "write 22,0,2,4,6"),
        ("0 0 * * 7/2", "Sunday is 0"),
        ("0 0 0 * * *", "leave out the first (seconds)"),
        ("0 0 3 ? * MON", "leave out the first (seconds)"),
        ("0 10 * * ? *", "leave out the last (years)"),
        ("0 10 ? * MON-FRI *", "leave out the last (years)"),
        ("0 0 1 1 * 2027", "leave out the last (years)"),
        (
            "0 0 12 ? * SAT-SUN",
            "leave out the first (seconds), and then: a range ends at the end of its field; write 6,0",
        ),
        ("0 0 12 ? * 6#3", "leave out the first (seconds), and then: L, W and #"),
        ("0 0 12 ? * 6#3", "schedule only; Quartz and AWS count the days from 1 for Sunday, so name them"),
        ("*/30 * * * * *", "write @every 30s"),
        ("0/10 * * * * ?", "write @every 10s"),
        ("@every 5M", "it is written in small letters; write @every 5m"),
        ("@Every 5m", "it is written in small letters; write @every 5m"),
        ("0 0 12 ? * 1-7", "leave out the first (seconds), and then: Sunday is 0; write 1-6,0"),
        ("0 0 12 ? * 2-6", "Quartz and AWS count the days from 1 for Sunday"),
        ("0 0 12 ? * 2 *", "(years); Quartz and AWS count the days from 1 for Sunday"),
        ("0 3 ? * 2 *", "(years); Quartz and AWS count the days from 1 for Sunday"),
        ("0 9 * * 1-5 Europe/Berlin", "spec.timeZone"),
        ("cron(0 12 ? * 2 *)", "where Sunday is 0"),
        ("0 3 * * 1, 5", "a list has no blanks"),
        ("0 3 * * 1 - 5", "a range has no blanks"),
        ("0 0 0 * * ? 2027", "leave out the first (seconds), and the last (years)"),
        ("rate(5 minutes)", "@every 5m"),
        ("0 0 12 L * ?", "leave out the first (seconds), and then: L, W and #"),
        ("0 0 * * MONDAY", "write MON"),
        ("0 0 * * Monday-Friday", "write MON-FRI"),
        ("0 0 * * mon-thurs/2", "write MON-THU"),
        ("0 0 1 january *", "write JAN"),
        ("0 0 1 Sept-nov *", "write SEP-NOV"),
        ("0 24 * * *", "hours go from 0 to 23; write 0"),
        ("0 8-24 * * *", "hours go from 0 to 23"),
        ("60 * * * *", "minutes go from 0 to 59; write 0"),
        ("@every 1d", "write @every 24h"),
        ("@every 2w", "write @every 336h"),
        ("@every 1d12h", "write @every 24h12h"),
        ("@every 5 minutes", "write @every 5m"),
        ("@every 90min", "write @every 90m"),
        ("@EVERY 1h", "write @every 1h"),
        ("@Daily", "write @daily"),
        ("@DAILY", "write @daily"),
        ("hourly", "write @hourly"),
        ("@reboot", "Kubernetes has no @reboot"),
    ];
    for (text, want) in rows {
        assert!(Schedule::parse_standard(text, Zone::UTC).is_err(), "{text}");
        let hint = of(text).unwrap_or_default();
        assert!(hint.contains(want), "{text}: {hint}");
    }
}

#[test]
fn other_refused_schedules_have_no_hint() {
    for text in [
        "",
        "often",
        "61 * * * *",
        "0 0 * * MOO",
        "* * * *",
        "0 25 * * *",
        "0 0 24 * 24",
        "0 0 * * MONDAYS",
        "@every",
        "@every 5",
        "@every 1d x",
        "@every 99999999999d",
        "@never",
        "0 0 32-1 * *",
        "5-1/0 * * * *",
        "TZ=Europe/Berlin 0 3 * * * *",
        "CRON_TZ=UTC 0 3 * * *  x",
        "0 3 * * * echo hi",
    ] {
        assert!(Schedule::parse_standard(text, Zone::UTC).is_err(), "{text}");
        assert_eq!(of(text), None, "{text}");
    }
}

/// The dialects that people write most, one of each.
const DIALECTS: [(&str, &str); 10] = [
    ("0 0 L * *", "; L, W and # are known to the annotation cronjob-controller.dev/schedule only"),
    ("0 0 15W * *", "; L, W and # are known"),
    ("0 0 * * FRI#2", "; L, W and # are known"),
    ("H 3 * * *", "; H is Jenkins's; write a number"),
    ("0 0 * * 7", "; Sunday is 0"),
    ("0 0 * * SAT-SUN", "; a range ends at the end of its field; write 6,0"),
    ("0 22-6 * * *", "; a range ends at the end of its field; write 22-23,0-6"),
    ("0 0 3 * * *", "; schedules have five fields here; leave out the first (seconds)"),
    ("rate(5 minutes)", "; this is an interval of AWS; write @every 5m"),
    ("rate(1 day)", "; this is an interval of AWS; write @every 24h"),
];

#[test]
fn next_and_explain_give_the_hint_behind_the_refusal() {
    for (text, want) in DIALECTS {
        let refused = dispatch::parse(["cronjob-controller", "next", text], &Somewhere).unwrap_err().to_string();
        assert!(refused.contains("is not a schedule: ") && refused.contains(want), "{refused}");
        let change = json!({"spec": {"schedule": text}});
        let (cron_job, now) = (cron_job(&change), instant("2026-11-22T10:00:00Z"));
        let question = Question { zone: Zone::UTC, seed: "".into(), from: None, count: 1, all: false };
        let runs = Answer::One(Box::new(CronJobRuns::of(&cron_job, &question, now))).lines().join("\n");
        assert!(runs.contains("It does not run: spec.schedule: ") && runs.contains(want), "{runs}");
        let told = explain(&facts(&change, vec![]), Zone::UTC, now);
        assert!(told.why.contains(" cannot be read: ") && told.why.contains(want), "{}", told.why);
    }
}

#[cfg(feature = "dev")]
#[test]
fn check_gives_the_hint_behind_the_refusal() {
    use crate::cli::check::{Rules, Source, check};

    for (text, want) in DIALECTS {
        let text =
            format!("apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: a}}\nspec: {{schedule: \"{text}\"}}\n");
        let lines =
            check(&[Source { file: "a".to_owned(), text }], &Rules::default(), instant("2026-11-22T10:00:00Z")).lines();
        assert!(lines.iter().any(|line| line.contains("[invalid]") && line.contains(want)), "{want}: {lines:#?}");
    }
}

struct Somewhere;

impl Environment for Somewhere {
    fn pod_namespace(&self) -> Option<String> {
        None
    }

    fn local_zone(&self) -> Zone {
        Zone::UTC
    }
}
