#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::api::ControllerKind;
use crate::cli::check::Rules;
use crate::cli::restrictions::Restrictions;

fn judged(controller_kind: ControllerKind, schedule: &str, more: &Value) -> Option<Fault> {
    let mut object = json!({ "spec": { "schedule": schedule } });
    for (field, value) in more.as_object().unwrap() {
        match field.as_str() {
            "max-concurrent" | "pause-after-failures" => {
                object["metadata"]["annotations"][format!("cronjob-controller.dev/{field}")] = value.clone();
            }
            field => object["spec"][field] = value.clone(),
        }
    }
    let timed = Timed::of(controller_kind, &object, &Rules::default(), &Restrictions::default()).unwrap();
    judge(&timed, &object, "2026-11-22T00:00:00Z".parse().unwrap())
}

#[test]
fn jobs_that_nothing_bounds_are_found_where_they_start_often() {
    let job = |spec: Value| json!({ "jobTemplate": { "spec": spec } });
    let rows = [
        ("every minute", "* * * * *", json!({}), true),
        ("hourly", "0 * * * *", json!({}), true),
        ("hourly by interval", "@every 1h", json!({}), true),
        ("Allow, said", "0 * * * *", json!({"concurrencyPolicy": "Allow"}), true),
        ("often on working days", "*/10 8-17 * * 1-5", json!({}), true),
        ("every two hours", "0 */2 * * *", json!({}), false),
        ("some hours of the day", "0 8-17 * * *", json!({}), false),
        ("daily", "@daily", json!({}), false),
        ("never", "0 0 31 2 *", json!({}), false),
        ("always too late", "* * * * *", json!({"startingDeadlineSeconds": 0}), false),
        ("Forbid", "* * * * *", json!({"concurrencyPolicy": "Forbid"}), false),
        ("Replace", "* * * * *", json!({"concurrencyPolicy": "Replace"}), false),
        ("a Job that ends", "* * * * *", job(json!({"activeDeadlineSeconds": 60})), false),
        (
            "a Pod that ends once it runs",
            "* * * * *",
            job(json!({"template": {"spec": {"activeDeadlineSeconds": 60}}})),
            true,
        ),
        ("a Job that ends in a year", "*/5 * * * *", job(json!({"activeDeadlineSeconds": 31_536_000})), true),
        ("a Job that ends after a hundred", "* * * * *", job(json!({"activeDeadlineSeconds": 6_000})), false),
        ("a Job that ends after a hundred and one", "* * * * *", job(json!({"activeDeadlineSeconds": 6_001})), true),
        ("a policy that bounds it", "* * * * *", json!({"max-concurrent": "3"}), false),
        ("a value that cannot be read bounds nothing", "* * * * *", json!({"max-concurrent": "few"}), true),
        ("a Job that hangs does not fail", "* * * * *", json!({"pause-after-failures": "1"}), true),
        ("ended Jobs are not the ones", "* * * * *", job(json!({"ttlSecondsAfterFinished": 60})), true),
    ];
    for (sentence, schedule, more, want) in rows {
        for controller_kind in [ControllerKind::CronJob, ControllerKind::Tutorial] {
            let found = judged(controller_kind, schedule, &more);
            assert_eq!(found.is_some(), want, "{sentence}: {found:?}");
        }
        assert_eq!(judged(ControllerKind::ApiExample, schedule, &more), None, "{sentence}, without Jobs");
    }
}

#[test]
fn finding_says_what_happens_and_what_to_write() {
    let message = |spec: &Value| judged(ControllerKind::CronJob, "0 * * * *", spec).unwrap().message;
    let rows = [
        ("*/5 * * * *", 288),
        ("* * * * *", 1440),
        ("@every 1s", 86_400),
        ("@every 7m", 206),
        ("*/10 8-17 * * 1-5", 60),
        ("0 * * * *", 24),
    ];
    for (schedule, runs) in rows {
        let message = judged(ControllerKind::CronJob, schedule, &json!({})).unwrap().message;
        assert!(message.contains(&format!(" pile up, {runs} a day; write")), "{schedule}: {message}");
    }
    let rest = "and nothing bounds how many Jobs run at a time: those that hang or cannot start pile up, 24 a day; write \
                Forbid or Replace here, activeDeadlineSeconds in the Job, or the annotation cronjob-controller.dev/max-concurrent";
    assert_eq!(message(&json!({})), format!("is not set, which means Allow, {rest}"));
    assert_eq!(message(&json!({"concurrencyPolicy": "Allow"})), format!("is Allow, {rest}"));
}
