//! CronJobs that one of the controllers does not run because of how they are written.

use super::super::{objects, read};
use super::*;
use crate::cli::restrictions::Restrictions;

/// A write shortly before the last edit.
const BEFORE: &str = "2026-11-23T09:15:00Z";
const OWN: &str = "cronjob-controller";
const ALL: &str = "wrote the status of CronJob shop/other 30m00s ago, which is not handed over";

/// A CronJob as the API server stores it.
fn stored(name: &str, annotations: &Value, spec: &Value, writer: Option<(&str, &str)>) -> String {
    let edited =
        if writer.is_some_and(|(_, time)| time == BEFORE) { "2026-11-23T09:20:00Z" } else { "2026-11-23T08:00:00Z" };
    let edit = json!({"manager": "kubectl", "time": edited});
    let status = writer.map(|(manager, time)| json!({"manager": manager, "subresource": "status", "time": time}));
    let managers: Vec<Value> = status.into_iter().chain([edit]).collect();
    let mut object = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": name, "annotations": annotations, "managedFields": managers,
        },
        "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "suspend": false, "jobTemplate": {}},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object.to_string()
}

fn found(objects: &[String]) -> Vec<(String, bool, String)> {
    let (cron_jobs, undecoded) =
        read::seen(objects.iter().map(|text| &**text), &[], &ControllerFlags::default(), &Restrictions::default());
    let found = objects::find(&Cluster { cron_jobs, undecoded, ..empty() }, instant(NOW));
    found.into_iter().map(|finding| (finding.code.to_string(), finding.changes_runs, finding.message)).collect()
}

/// A case, the CronJobs; for each finding its code, whether it changes runs, and a part of the sentence.
type Row<'a> = (&'a str, Vec<String>, &'a [(&'a str, bool, &'a str)]);

#[test]
fn object_that_one_of_the_controllers_does_not_run_is_found() {
    let zone = |zone: &str| vec![stored("a", &json!({}), &json!({"timeZone": zone}), None)];
    let marked = |annotation: &str, value: &str| json!({format!("cronjob-controller.dev/{annotation}"): value});
    let (managed, suspended) = (marked("managed", "true"), json!({"suspend": true}));
    let moved = || stored("moved", &managed, &suspended, None);
    let other = |manager: &str, time: &str| stored("other", &json!({}), &json!({}), Some((manager, time)));
    let (recent, old) = ("2026-11-23T09:30:00Z", "2026-11-23T08:30:00Z");
    let mut held = managed.clone();
    held["cronjob-controller.dev/suspend"] = json!("yes");
    let rows: Vec<Row<'_>> = vec![
        ("a zone of the database", zone("Europe/Berlin"), &[]),
        ("one that Go's zoneinfo has, too", zone("posix/Europe/Berlin"), &[]),
        (
            "one of leap seconds",
            zone("right/UTC"),
            &[("unknown-time-zone", true, "spec.timeZone \"right/UTC\", which")],
        ),
        ("the machine's", zone("localtime"), &[("unknown-time-zone", true, "does not run here")]),
        ("a newer database's", zone("Mars/Phobos"), &[("unknown-time-zone", true, "a file of that name")]),
        ("false", vec![stored("a", &marked("managed", "false"), &json!({}), None)], &[]),
        (
            "another value",
            vec![stored("a", &marked("managed", "yes"), &json!({}), None)],
            &[(
                "handover-value",
                false,
                "managed: \"yes\", which counts as false, so it is not handed over, and the in-tree",
            )],
        ),
        (
            "another value, and suspended",
            vec![stored("a", &marked("managed", "True"), &suspended, None)],
            &[("handover-value", true, "so it is not handed over, and no controller runs it")],
        ),
        (
            "another value of the suspension",
            vec![stored("a", &held, &suspended, None)],
            &[
                ("handover-value", true, "suspend: \"yes\", which counts as false, so it is not suspended"),
                ("handed-over", false, "CronJob shop/a is handed over"),
            ],
        ),
        (
            "another value of a suspension without effect",
            vec![stored("a", &marked("suspend", ""), &json!({}), None)],
            &[("handover-value", false, "has no effect")],
        ),
        ("handed over", vec![moved()], &[("handed-over", false, "where this one runs with --manage=all")]),
        ("with --manage=all", vec![moved(), other(OWN, recent)], &[("handed-over", true, ALL)]),
        (
            "with --manage=annotated",
            vec![moved(), other("kube-controller-manager", recent)],
            &[("handed-over", false, "")],
        ),
        ("with --manage=all, long ago", vec![moved(), other(OWN, old)], &[("handed-over", false, "")]),
        ("taken back since", vec![moved(), other(OWN, BEFORE)], &[("handed-over", false, "")]),
        (
            "several",
            vec![moved(), moved(), moved()],
            &[("handed-over", false, "moved and 2 CronJobs more are handed over")],
        ),
        (
            "one that cannot be decoded",
            vec![stored("a", &json!({}), &json!({"schedule": 5}), None), moved()],
            &[("not-decoded", true, "CronJob shop/a cannot be decoded here"), ("handed-over", false, "")],
        ),
    ];
    for (sentence, stored, want) in rows {
        let found = found(&stored);
        assert_eq!(found.len(), want.len(), "{sentence}: {found:?}");
        for ((code, changes, message), (want, changed, part)) in found.iter().zip(want) {
            assert_eq!((&**code, changes), (*want, changed), "{sentence}: {message}");
            assert!(message.contains(part), "{sentence}: {message}");
        }
    }
}

#[test]
fn zone_that_is_assumed_is_named() {
    let without = json!({"spec": {"timeZone": null}});
    let zoned = json!({"spec": {"timeZone": null, "schedule": "TZ=UTC 0 2 * * *"}});
    let cluster =
        |all: &[&Value]| Cluster { cron_jobs: all.iter().map(|change| seen(change, vec![])).collect(), ..empty() };
    let flags = ControllerFlags::default();
    let assumed = |all: &[&Value]| findings(&cluster(all), &flags, instant(NOW)).assumed;
    assert_eq!(assumed(&[&json!({}), &zoned]), [""; 0]);
    let said = "2 CronJobs have no spec.timeZone: both controllers are assumed to run in UTC (--time-zone).";
    assert_eq!(assumed(&[&json!({}), &without, &without]), [said]);
    let text = render(&findings(&cluster(&[&without]), &flags, instant("2026-11-22T10:00:00Z")), Format::Table);
    let said = "\n1 CronJob has no spec.timeZone: both controllers are assumed to run in UTC (--time-zone).\n\nNext: ";
    assert!(text.contains(said), "{}", &*text);
}
