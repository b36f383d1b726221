#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use chrono::TimeDelta;
use schedule::Zone;
use serde_json::{Value, json};

use super::controllers::Writers;
use super::old_slots::Reason;
use super::read::Seen;
use super::*;
use crate::api::batch_v1::Job;
use crate::cli::explain::tests::{cron_job, instant, job, name_of};
use crate::cli::output::{Format, render};

mod cluster;
mod facts;
mod handover;
mod objects;
mod skip_missed;

/// A day after the last run of `nightly`, which runs at 02:00.
const NOW: &str = "2026-11-23T10:00:00Z";
const SLOT: &str = "2026-11-23T02:00:00Z";
const LAST: &str = "2026-11-22T02:00:00Z";

/// A CronJob with these annotations, which were set long ago.
fn annotated(annotations: &[(&str, &str)]) -> Value {
    edited(annotations, "2026-11-01T12:00:00Z")
}

fn edited(annotations: &[(&str, &str)], at: &str) -> Value {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|(name, value)| (format!("cronjob-controller.dev/{name}"), json!(value))).collect();
    let managers = json!([{"manager": "kubectl", "time": at}]);
    json!({"metadata": {"annotations": annotations, "managedFields": managers}})
}

/// `object` with another spec.
fn with(mut object: Value, spec: Value) -> Value {
    object["spec"] = spec;
    object
}

fn seen(change: &Value, jobs: Vec<Arc<Job>>) -> Seen {
    Seen {
        cron_job: cron_job(change),
        handed_over: false,
        jobs,
        writers: Writers::default(),
        is_own: false,
        wrong_values: Vec::new(),
    }
}

fn empty() -> Cluster {
    let account = Account::default();
    Cluster {
        namespaces_unread: None,
        cron_jobs: Vec::new(),
        undecoded: Vec::new(),
        leases: Ok(Vec::new()),
        flow_schemas: Ok(Vec::new()),
        account,
        reviews: Ok(Vec::new()),
    }
}

#[test]
fn slot_in_a_freeze_starts_under_the_in_tree_controller_alone() {
    let plain = seen(&json!({}), vec![]);
    assert!(old_slots::find(&plain, Zone::UTC, instant(NOW)).is_none(), "both start it");
    let annotations = json!({"cronjob-controller.dev/not-before": "2099-01-01T00:00:00Z"});
    let name = &plain.cron_job.name.namespace;
    let namespace = json!({"metadata": {"name": &**name, "uid": "n", "annotations": annotations}});
    let mut restrictions = crate::cli::restrictions::Restrictions::default();
    restrictions.add(&namespace.to_string());
    let cron_job = Arc::clone(&plain.cron_job).in_its_namespace(restrictions.of(name));
    let finding = old_slots::find(&Seen { cron_job, ..plain }, Zone::UTC, instant(NOW)).unwrap();
    assert_eq!((finding.reason, finding.changes_runs), (Some(Reason::LeftOut), true));
    let cluster = Cluster { namespaces_unread: Some("forbidden".to_owned()), ..empty() };
    assert_eq!(cluster.not_read(), ["freezes, from Namespaces: forbidden"]);
}

fn found(change: &Value, jobs: Vec<Arc<Job>>) -> Option<(Reason, String)> {
    let finding = old_slots::find(&seen(change, jobs), Zone::UTC, instant(NOW))?;
    assert_eq!((finding.code, finding.changes_runs), (Code::OldSlot, true));
    assert_eq!(finding.slot.unwrap().to_utc(), instant(SLOT));
    assert_eq!(finding.job.unwrap(), name_of(SLOT));
    Some((finding.reason.unwrap(), finding.message))
}

/// What it is, the CronJob, its Jobs, and the reason with the words that are to be found.
type Row = (&'static str, Value, Vec<Arc<Job>>, Option<(Reason, &'static str)>);

fn check_rows(rows: Vec<Row>) {
    for (sentence, change, jobs, want) in rows {
        let found = found(&change, jobs);
        assert_eq!(found.as_ref().map(|(reason, _)| *reason), want.map(|(reason, _)| reason), "{sentence}: {found:?}");
        let part = want.map_or("", |(_, part)| part);
        assert!(found.is_none_or(|(_, message)| message.contains(part)), "{sentence}");
    }
}

#[test]
fn slot_that_a_timing_policy_decided_is_found_and_any_other_is_not() {
    let decided = [("exclude", "Sun"), ("counted-from", "2026-11-23T03:00:00Z v1:cj:0123456789abcdef")];
    let removed = [("counted-from", "2026-11-22T03:00:00Z v1:cj:0123456789abcd3f")];
    check_rows(vec![
        ("an excluded day", annotated(&[("exclude", "Mon")]), vec![], Some((Reason::LeftOut, "exclude leaves"))),
        (
            "before a bound",
            annotated(&[("not-before", "2026-12-01T00:00:00Z")]),
            vec![],
            Some((Reason::LeftOut, "not-before leaves")),
        ),
        (
            "after the last slot, so that the schedule has none",
            annotated(&[("not-after", "2026-11-22T12:00:00Z")]),
            vec![],
            Some((Reason::LeftOut, "not-after leaves")),
        ),
        ("other lines", annotated(&[("schedule", "0 3 1 * *")]), vec![], Some((Reason::LeftOut, "schedule leaves"))),
        ("passed over", annotated(&decided), vec![], Some((Reason::PassedOver, "counted-from"))),
        (
            "a change that no controller has recorded",
            edited(&[("exclude", "Sun")], "2026-11-23T09:00:00Z"),
            vec![],
            Some((Reason::PassedOver, "not recorded yet")),
        ),
        (
            "a removal that no controller has recorded",
            annotated(&removed),
            vec![],
            Some((Reason::PassedOver, "not recorded yet")),
        ),
        (
            "a change with after-change: wait",
            edited(&[("after-change", "wait")], "2026-11-23T09:00:00Z"),
            vec![],
            Some((Reason::PassedOver, "not recorded yet")),
        ),
        ("an invalid policy", annotated(&[("spread", "soon")]), vec![], Some((Reason::BadPolicy, "spread"))),
        ("no policy: this controller starts it, too", json!({}), vec![], None),
        ("a change before the slot", edited(&[("exclude", "Sun")], "2026-11-23T01:00:00Z"), vec![], None),
        ("a spread: it only starts earlier", annotated(&[("spread", "24h")]), vec![], None),
        ("a day that is not excluded", annotated(&[("exclude", "Sun")]), vec![], None),
    ]);
}

#[test]
fn slot_that_a_limit_holds_or_passed_over_is_found() {
    let limits = json!({"failedJobsHistoryLimit": 3, "concurrencyPolicy": "Forbid"});
    let paused = with(annotated(&[("pause-after-failures", "1")]), limits.clone());
    let recorded = with(annotated(&[("pause-after-failures", "1"), ("after-change", "wait")]), limits.clone());
    let (failed, runs) = (|| vec![job(LAST, "cj", Some("Failed"))], || vec![job(LAST, "cj", None)]);
    let active = json!({"lastScheduleTime": LAST, "active": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": name_of(LAST), "namespace": "shop", "uid": name_of(LAST)},
    ]});
    let blocked = |annotations: &[(&str, &str)], policy: &str| {
        let mut object = with(annotated(annotations), json!({"concurrencyPolicy": policy}));
        object["status"] = active.clone();
        object
    };
    check_rows(vec![
        ("paused", paused.clone(), failed(), Some((Reason::Paused, "pause-after-failures holds"))),
        ("paused, and the slot is not recorded", recorded, failed(), Some((Reason::Paused, "pause-after-failures"))),
        ("a success since", paused, vec![job(LAST, "cj", Some("Complete"))], None),
        (
            "passed over while blocked",
            blocked(&[("backlog", "0")], "Forbid"),
            runs(),
            Some((Reason::PassedOver, "backlog passed over")),
        ),
        ("late, and blocked by nothing", with(annotated(&[("backlog", "0")]), limits), vec![], None),
        ("waits in a backlog", blocked(&[("backlog", "3")], "Forbid"), runs(), None),
        ("blocked in both", blocked(&[], "Forbid"), runs(), None),
        (
            "as many as are allowed, and Allow",
            blocked(&[("max-concurrent", "1")], "Allow"),
            runs(),
            Some((Reason::Waiting, "max-concurrent allows")),
        ),
        ("as many as are allowed, and Forbid", blocked(&[("max-concurrent", "1")], "Forbid"), runs(), None),
        (
            "one that is replaced exists",
            blocked(&[("replace-waits", "true")], "Replace"),
            runs(),
            Some((Reason::Waiting, "replace-waits")),
        ),
    ]);
}

#[test]
fn what_keeps_the_in_tree_controller_from_starting_a_slot_counts() {
    let excluded = annotated(&[("exclude", "Mon")]);
    let spec = |spec: Value| with(excluded.clone(), spec);
    assert!(found(&spec(json!({"startingDeadlineSeconds": 28_801})), vec![]).is_some());
    assert_eq!(found(&spec(json!({"startingDeadlineSeconds": 28_799})), vec![]), None);
    assert_eq!(found(&spec(json!({"suspend": true})), vec![]), None);
    assert_eq!(found(&excluded, vec![job(SLOT, "cj", None)]), None, "a backfill has started it");
    let mut ran = excluded.clone();
    ran["status"] = json!({"lastScheduleTime": SLOT});
    assert_eq!(found(&ran, vec![]), None);
}

fn codes(cluster: &Cluster) -> Vec<Code> {
    let findings = findings(cluster, &ControllerFlags::default(), instant(NOW)).list;
    findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn report_names_the_cron_job_in_plain_words_and_as_json() {
    let mut cluster = Cluster { cron_jobs: vec![seen(&annotated(&[("exclude", "Mon")]), vec![])], ..empty() };
    let flags = ControllerFlags::default();
    let findings = findings(&cluster, &flags, instant(NOW));
    assert!(!findings.changes_nothing());
    let text = render(&findings, Format::Table).to_string();
    let lines = format!(
        "2 findings for 1 CronJob; 2 of them change which Jobs run.\n\nold-slot: The in-tree controller would start a slot that \
         does not start here.\n  CronJob shop/nightly would start Job {} of Mon 2026-11-23 02:00:00 +00:00, 8h00m late: \
         cronjob-controller.dev/exclude leaves this slot out.\n{ADVICE}\n\nschedule-differs: ",
        name_of(SLOT)
    );
    assert!(text.starts_with(&lines), "{text}");
    let json: Value = serde_json::from_str(&render(&findings, Format::Json)).unwrap();
    let first = &json["findings"][0];
    assert_eq!(first["object"], json!({"kind": "CronJob", "namespace": "shop", "name": "nightly"}));
    assert_eq!((&first["code"], &first["reason"]), (&json!("old-slot"), &json!("leftOut")));
    assert_eq!((&first["slot"], &first["changesRuns"]), (&json!("2026-11-23T02:00:00Z"), &json!(true)));
    assert_eq!((&json["checked"], &json["notChecked"]), (&json!(1), &json!([])));

    cluster.cron_jobs = vec![seen(&json!({"status": {"lastScheduleTime": SLOT}}), vec![])];
    cluster.leases = Err("leases is forbidden".to_owned());
    let findings = super::findings(&cluster, &flags, instant(NOW));
    assert!(findings.changes_nothing());
    let text = render(&findings, Format::Table).to_string();
    let none = "Nothing changes for 1 CronJob.\n\nNot checked, because it could not be read:\n  two controllers, from Leases: \
                leases is forbidden\n";
    assert_eq!(text, format!("{none}\n{NEXT_STEP}\n"));
}
