#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn generated_name_is_short_enough_and_keeps_the_start_of_the_cron_jobs() {
    let long = "a".repeat(44) + "-" + &"b".repeat(8);
    let rows = [
        ("nightly", "nightly-manual-bcdfg".to_owned()),
        (long.as_str(), format!("{}-{}-manual-bcdfg", "a".repeat(44), "b".repeat(5))),
    ];
    for (cron_job, want) in rows {
        let name = generated(cron_job, [0, 1, 2, 3, 4]);
        assert_eq!(name, want);
        assert!(name.len() <= LONGEST_NAME);
    }
}

#[test]
fn a_trace_of_the_command_is_passed_on_if_it_is_one() {
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let table = [
        (format!("00-{trace}-{span}-01"), true),
        (format!("00-{trace}-{span}-00"), true),
        (format!("01-{trace}-{span}-01"), false),
        (format!("00-{trace}-{span}-01-more"), false),
        (format!("00-{}-{span}-01", trace.to_uppercase()), false),
        (format!("00-{}-{span}-01", "0".repeat(32)), false),
        (format!("00-{trace}-{}-01", "0".repeat(16)), false),
        (format!("00-{trace}-{span}"), false),
        (String::new(), false),
        ("x".repeat(1 << 20), false),
    ];
    for (text, want) in table {
        assert_eq!(is_traceparent(&text), want, "{text}");
    }
}

#[test]
fn what_the_job_means_for_the_next_run_follows_from_the_policies() {
    const PREFIX: &str = "cronjob-controller.dev";
    let waits = " While it runs, no further run starts (concurrencyPolicy: Forbid).";
    let deleted = " The next run deletes it if it still runs (concurrencyPolicy: Replace).";
    let alone = " While it runs, no further run starts (cronjob-controller.dev/max-concurrent: 1).";
    let one_of = " It is one of the 2 Jobs that may run at a time (cronjob-controller.dev/max-concurrent).";
    // batch/v1 counts under Forbid and Replace what the schedule started, the tutorial's CronJob every Job.
    let table = [
        ("Allow", "", "", ["", ""]),
        ("Forbid", "", "", ["", waits]),
        ("Replace", "", "", ["", deleted]),
        ("Replace", "replace-waits", "true", [deleted, deleted]),
        ("Allow", "max-concurrent", "1", [alone, alone]),
        ("Forbid", "max-concurrent", "2", [one_of, one_of]),
        ("Forbid", "max-concurrent", "no number", ["", waits]),
    ];
    for (policy, annotation, value, want) in table {
        let annotations =
            if annotation.is_empty() { json!({}) } else { json!({format!("{PREFIX}/{annotation}"): value}) };
        let object = json!({
            "metadata": {"name": "report", "namespace": "default", "uid": "u", "annotations": annotations},
            "spec": {"schedule": "0 * * * *", "concurrencyPolicy": policy, "jobTemplate": {"spec": {}}},
        });
        for (kind, want) in [ControllerKind::CronJob, ControllerKind::Tutorial].into_iter().zip(want) {
            let cron_job = CronJob {
                controller_kind: kind,
                ..CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
            };
            assert_eq!(consequence(&cron_job), want, "{policy} {annotation}={value}, {}", kind.name);
        }
    }
}

#[test]
fn job_beside_one_that_runs_under_forbid_is_told() {
    let tail = "(concurrencyPolicy: Forbid counts Jobs of slots alone).";
    let one = format!(" It starts beside a Job that runs {tail}");
    let two = format!(" It starts beside 2 Jobs that run {tail}");
    for (policy, running, want) in [("Forbid", 0, ""), ("Forbid", 1, &*one), ("Forbid", 2, &*two), ("Allow", 1, "")] {
        let active: Vec<_> = (0..running)
            .map(|number| json!({"kind": "Job", "name": format!("j-{number}"), "uid": format!("{number}")}))
            .collect();
        let object = json!({
            "metadata": {"name": "report", "namespace": "default", "uid": "u"},
            "spec": {"schedule": "0 * * * *", "concurrencyPolicy": policy, "jobTemplate": {"spec": {}}},
            "status": {"active": active},
        });
        let cron_job = CronJob::decode(&object.to_string(), &Interner::default()).unwrap();
        assert_eq!(consequence(&cron_job), want, "{policy}, {running} running");
    }
}

#[cfg(feature = "dev")]
mod on_a_cluster;
