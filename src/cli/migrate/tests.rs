#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::cli::explain::tests::{cron_job, instant, name_of};
use crate::cli::output::{Format, render};

/// A day after the last run of `nightly`, which runs at 02:00.
const NOW: &str = "2026-11-23T10:00:00Z";
const SLOT: &str = "2026-11-23T02:00:00Z";

fn annotated(annotations: &[(&str, &str)]) -> Value {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|(name, value)| (format!("cronjob-controller.dev/{name}"), json!(value))).collect();
    json!({"metadata": {"annotations": annotations}})
}

fn found(change: &Value, jobs: &[&str]) -> Option<(Reason, String)> {
    let cron_job = cron_job(change);
    let finding = find(&cron_job, &jobs.iter().copied().collect(), Zone::UTC, instant(NOW))?;
    assert_eq!(finding.slot.to_utc(), instant(SLOT));
    Some((finding.reason, finding.why))
}

/// What it is, the CronJob, and the reason with the words that are to be found.
type Row = (&'static str, Value, Option<(Reason, &'static str)>);

#[test]
fn slot_that_a_policy_decided_is_found_and_any_other_is_not() {
    let decided = [("exclude", "Sun"), ("counted-from", "2026-11-23T03:00:00Z v1:cj:0123456789abcdef")];
    let rows: Vec<Row> = vec![
        ("an excluded day", annotated(&[("exclude", "Mon")]), Some((Reason::LeftOut, "exclude leaves"))),
        (
            "before a bound",
            annotated(&[("not-before", "2026-12-01T00:00:00Z")]),
            Some((Reason::LeftOut, "not-before leaves")),
        ),
        ("other lines", annotated(&[("schedule", "0 3 1 * *")]), Some((Reason::LeftOut, "schedule leaves"))),
        ("passed over", annotated(&decided), Some((Reason::PassedOver, "a change of the policies"))),
        ("an invalid policy", annotated(&[("spread", "soon")]), Some((Reason::BadPolicy, "spread"))),
        ("no policy: this controller starts it, too", json!({}), None),
        ("a spread: it only starts earlier", annotated(&[("spread", "24h")]), None),
        ("a day that is not excluded", annotated(&[("exclude", "Sun")]), None),
    ];
    for (sentence, change, want) in rows {
        let found = found(&change, &[]);
        assert_eq!(found.as_ref().map(|(reason, _)| *reason), want.map(|(reason, _)| reason), "{sentence}");
        let part = want.map_or("", |(_, part)| part);
        assert!(found.is_none_or(|(_, why)| why.contains(part)), "{sentence}");
    }
}

#[test]
fn what_keeps_the_in_tree_controller_from_starting_a_slot_counts() {
    let excluded = annotated(&[("exclude", "Mon")]);
    let with = |spec: Value| {
        let mut object = excluded.clone();
        object["spec"] = spec;
        object
    };
    assert!(found(&with(json!({"startingDeadlineSeconds": 28_801})), &[]).is_some());
    assert_eq!(found(&with(json!({"startingDeadlineSeconds": 28_799})), &[]), None);
    assert_eq!(found(&with(json!({"suspend": true})), &[]), None);
    assert_eq!(found(&excluded, &[&name_of(SLOT)]), None, "a backfill has started it");
    let mut ran = excluded.clone();
    ran["status"] = json!({"lastScheduleTime": SLOT});
    assert_eq!(found(&ran, &[]), None);
}

#[test]
fn report_names_the_cron_job_in_plain_words_and_as_json() {
    let cron_job = cron_job(&annotated(&[("exclude", "Mon")]));
    let finding = find(&cron_job, &HashSet::new(), Zone::UTC, instant(NOW)).unwrap();
    let findings = Findings { checked: 3, cron_jobs: vec![finding] };
    let text = render(&findings, Format::Table);
    let line = format!(
        "CronJob shop/nightly would start Job {} of Mon 2026-11-23 02:00:00 +00:00, 8h00m late: \
         cronjob-controller.dev/exclude leaves this slot out.",
        name_of(SLOT)
    );
    assert!(text.starts_with("1 of 3 CronJobs would start an old slot"), "{text}");
    assert!(text.contains(&line), "{text}");
    let json: Value = serde_json::from_str(&render(&findings, Format::Json)).unwrap();
    assert_eq!(json["cronJobs"][0]["reason"], "leftOut");
    assert_eq!(json["cronJobs"][0]["slot"], "2026-11-23T02:00:00Z");
    let none = render(&Findings { checked: 1, cron_jobs: Vec::new() }, Format::Table);
    assert_eq!(none, "None of 1 CronJob would start an old slot under the in-tree controller.\n");
}
