#![allow(clippy::unwrap_used)]
//! `recorded.jsonl` holds objects that were sent to kube-apiserver v1.37.2 (dry run) and its answers: the object, the invalid
//! fields, or the decoding error. The strategies must give the same. `tests/controlplane/record` writes it.

use apimachinery::field::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::*;

fn resource_of(plural: &str) -> Resource {
    all().into_iter().find(|resource| resource.plural == plural).unwrap()
}

fn reason(kind: FieldErrorKind) -> &'static str {
    match kind {
        FieldErrorKind::Required => "FieldValueRequired",
        FieldErrorKind::Invalid => "FieldValueInvalid",
        FieldErrorKind::NotSupported => "FieldValueNotSupported",
        FieldErrorKind::Forbidden => "FieldValueForbidden",
        FieldErrorKind::TooLong => "FieldValueTooLong",
        FieldErrorKind::Duplicate => "FieldValueDuplicate",
        FieldErrorKind::NotFound => "FieldValueNotFound",
        FieldErrorKind::TooMany => "FieldValueTooMany",
        FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
    }
}

fn causes(errors: Vec<FieldError>) -> Value {
    errors.into_iter().map(|error| json!([reason(error.kind), error.field, error.body])).collect()
}

/// The first UID in a text: the one that the real server had set.
fn uid_in(text: &str) -> Option<&str> {
    let is_uid = |text: &str| {
        text.bytes()
            .enumerate()
            .all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { b == b'-' } else { b.is_ascii_hexdigit() })
    };
    (0..text.len()).filter_map(|start| text.get(start..start + 36)).find(|text| is_uid(text))
}

/// The part of the server's work that strategies do: returns the object, the invalid fields, or the error.
fn run(record: &Value) -> (&'static str, Value, Vec<String>) {
    let resource = resource_of(record["kind"].as_str().unwrap());
    let strategy = &resource.strategy;
    let mut object = record["object"].clone();
    let mut warnings: Vec<String> = match strategy.normalize(&mut object) {
        Ok(unknown) => unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect(),
        Err(error) => {
            let prefix = format!("{0} in version \"v1\" cannot be handled as a {0}: ", resource.kind);
            return ("error", format!("{prefix}{error}").into(), Vec::new());
        }
    };
    strategy.set_defaults(&mut object);
    let mut errors;
    if let Some(old) = record.get("old") {
        let mut old = old.clone();
        strategy.normalize(&mut old).unwrap();
        if record["status"] == true {
            strategy.prepare_for_status_update(&mut object, &old);
            errors = strategy.validate_status_update(&object, &old);
        } else {
            strategy.prepare_for_update(&mut object, &old);
            errors = strategy.validate_update(&object, &old);
        }
    } else {
        let result = &record["result"]["metadata"];
        let causes = record["causes"].to_string();
        let uid = result["uid"].as_str().or_else(|| uid_in(&causes)).unwrap_or("7fd6b3ea-48c2-4ef0-b0f3-0fce039acf32");
        let metadata = fields::child(&mut object, "metadata");
        if !strategy.is_virtual() {
            metadata["uid"] = uid.into();
            metadata["creationTimestamp"] = result["creationTimestamp"].clone();
            if resource.namespaced {
                metadata["namespace"] = "default".into();
            }
        }
        strategy.prepare_for_create(&mut object);
        errors = crate::meta::validate(&object, resource.namespaced, strategy.name_rule());
        if strategy.is_virtual() {
            errors.clear();
        }
        errors.extend(strategy.validate_create(&object));
    }
    warnings.extend(strategy.warnings(&object, None));
    if !errors.is_empty() {
        return ("causes", causes(errors), warnings);
    }
    strategy.answer(&mut object);
    ("result", object, warnings)
}

/// Known differences from the real server, with reasons.
const KNOWN_DIFFERENCES: [(&str, &str); 6] = [
    ("the template may not change", "upstream shows the template in the form of its internal types"),
    ("a suspended job may not change its image", "upstream shows the template in the form of its internal types"),
    ("pod: command may not change", "upstream shows a diff of its internal types"),
    ("a rules review", "upstream lists the default roles behind the rule that allows everything"),
    ("a self review", "upstream gives it a creationTimestamp"),
    ("lease: renewed", "the update had no resourceVersion, which the server judges"),
];

#[test]
fn strategies_answer_as_kube_apiserver() {
    let mut failures = Vec::new();
    let mut equal = 0;
    for line in include_str!("recorded.jsonl").lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let title = record["title"].as_str().unwrap();
        let (outcome, mut answer, warnings) = run(&record);
        let mut expected = record[outcome].clone();
        if outcome == "causes" {
            // Go's maps have no order, and the server merges equal causes.
            for list in [&mut answer, &mut expected] {
                let list = list.as_array_mut();
                if let Some(list) = list {
                    list.sort_by_key(Value::to_string);
                    list.dedup();
                }
            }
        } else if outcome == "result" {
            for object in [&mut answer, &mut expected] {
                object["metadata"]["resourceVersion"] = Value::Null;
            }
        }
        let mut wanted: Vec<&str> =
            record["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        wanted.sort_unstable();
        let mut warnings: Vec<&str> = warnings.iter().map(String::as_str).collect();
        warnings.sort_unstable();
        let same = answer == expected && (outcome != "result" || warnings == wanted);
        let known = KNOWN_DIFFERENCES.iter().any(|(known, _)| *known == title);
        if same != known {
            equal += usize::from(same);
            continue;
        }
        let all = [&record["result"], &record["causes"], &record["error"]].map(Value::to_string).join(" ");
        failures.push(format!("## {title}\n  ours  ({outcome}): {answer} {warnings:?}\n  theirs: {all} {wanted:?}\n"));
    }
    assert!(failures.is_empty(), "{} differ, {equal} are equal:\n{}", failures.len(), failures.join("\n"));
}

/// The cells of an object as text, separated by bars.
pub(super) fn row(plural: &str, object: &Value) -> String {
    let now = "2026-11-20T12:00:00Z".parse().unwrap();
    let resource = resource_of(plural);
    let cells = resource.strategy.cells(object, now);
    assert_eq!(cells.len(), resource.strategy.columns().len(), "{plural}");
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    cells.iter().map(text).collect::<Vec<_>>().join(" | ")
}

#[test]
fn tables_print_what_kubectl_get_shows() {
    let meta = json!({"name": "x", "creationTimestamp": "2026-11-20T11:00:00Z"});
    let template = json!({"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:2"}]}});
    let condition = |name: &str| json!([{"type": name, "status": "True"}]);
    let job = |status: Value| {
        let spec = json!({"completions": 1, "selector": {"matchLabels": {"k": "v"}}, "template": template});
        json!({"metadata": meta, "spec": spec, "status": status})
    };
    let pod = |status: Value| json!({"metadata": meta, "spec": {"containers": [{"name": "a"}]}, "status": status});
    let state = |state: Value, ready: bool, restarts: i64| json!([{"name": "a", "state": state, "ready": ready, "restartCount": restarts, "lastState": {"terminated": {"finishedAt": "2026-11-20T11:55:00Z"}}}]);
    let start = "2026-11-20T11:00:00Z";
    let done = json!({"succeeded": 1, "startTime": start, "completionTime": "2026-11-20T11:05:00Z", "conditions": condition("Complete")});
    let cron_spec = json!({"schedule": "@daily", "suspend": false, "jobTemplate": {"spec": {"template": template}}});
    let ran = json!({"active": [{}, {}], "lastScheduleTime": "2026-11-20T11:59:58Z"});
    let zoned = json!({"schedule": "1 * * * *", "timeZone": "Asia/Tokyo", "suspend": true, "jobTemplate": {}});
    let event = json!({"metadata": meta, "type": "Normal", "reason": "R", "message": " m\n", "count": 2, "source": {"component": "c", "host": "h"},
        "involvedObject": {"kind": "CronJob", "name": "n", "fieldPath": "spec"}, "firstTimestamp": start, "lastTimestamp": "2026-11-20T11:59:00Z"});
    let series = json!({"metadata": meta, "type": "Normal", "reason": "R", "message": "m", "eventTime": "2026-11-20T11:00:00.000000Z", "reportingComponent": "c",
        "involvedObject": {"kind": "Node"}, "series": {"count": 7, "lastObservedTime": "2026-11-20T11:30:00.000000Z"}});
    let rows = [
        (
            "a CronJob that has run",
            "cronjobs",
            json!({"metadata": meta, "spec": cron_spec, "status": ran}),
            "x | @daily | <none> | False | 2 | 2s | 60m | a,b | i:1,i:2 | <none>",
        ),
        (
            "a CronJob that has not",
            "cronjobs",
            json!({"metadata": meta, "spec": zoned, "status": {}}),
            "x | 1 * * * * | Asia/Tokyo | True | 0 | <none> | 60m |  |  | <none>",
        ),
        ("a Job that has not started", "jobs", job(json!({})), "x | Running | 0/1 |  | 60m | a,b | i:1,i:2 | k=v"),
        (
            "a running Job",
            "jobs",
            job(json!({"startTime": start})),
            "x | Running | 0/1 | 60m | 60m | a,b | i:1,i:2 | k=v",
        ),
        ("a done Job", "jobs", job(done), "x | Complete | 1/1 | 5m | 60m | a,b | i:1,i:2 | k=v"),
        (
            "a suspended Job",
            "jobs",
            job(json!({"conditions": condition("Suspended")})),
            "x | Suspended | 0/1 |  | 60m | a,b | i:1,i:2 | k=v",
        ),
        (
            "a waiting Pod",
            "pods",
            pod(json!({"phase": "Pending"})),
            "x | 0/1 | Pending | 0 | 60m | <none> | <none> | <none> | <none>",
        ),
        (
            "a running Pod that came back",
            "pods",
            pod(
                json!({"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "containerStatuses": state(json!({"running": {}}), true, 3)}),
            ),
            "x | 1/1 | Running | 3 (5m ago) | 60m | 10.0.0.1 | <none> | <none> | <none>",
        ),
        (
            "a completed Pod",
            "pods",
            pod(
                json!({"phase": "Succeeded", "containerStatuses": state(json!({"terminated": {"reason": "Completed", "exitCode": 0}}), false, 0)}),
            ),
            "x | 0/1 | Completed | 0 | 60m | <none> | <none> | <none> | <none>",
        ),
        (
            "a failed Pod",
            "pods",
            pod(
                json!({"phase": "Failed", "containerStatuses": state(json!({"terminated": {"exitCode": 3}}), false, 0)}),
            ),
            "x | 0/1 | ExitCode:3 | 0 | 60m | <none> | <none> | <none> | <none>",
        ),
        ("a namespace", "namespaces", json!({"metadata": meta, "status": {"phase": "Active"}}), "x | Active | 60m"),
        ("a lease", "leases", json!({"metadata": meta, "spec": {"holderIdentity": "me"}}), "x | me | 60m"),
        ("an old-style event", "events", event, "60s | Normal | R | cronjob/n | spec | c, h | m | 60m | 2 | x"),
        ("a series of events", "events", series, "30m | Normal | R | node |  | c | m | 60m | 7 | x"),
    ];
    for (name, plural, object, expected) in rows {
        assert_eq!(row(plural, &object), expected, "{name}");
    }
}

#[test]
fn pods_are_deleted_at_once_unless_they_run() {
    let pods = resource_of("pods");
    let pod = |node: &str, phase: &str| json!({"spec": {"nodeName": node, "terminationGracePeriodSeconds": 30}, "status": {"phase": phase}});
    let rows = [
        ("a running Pod has its own period", pod("n", "Running"), None, Some(30)),
        ("the client may shorten it", pod("n", "Running"), Some(1), Some(1)),
        ("an unscheduled Pod goes at once", pod("", "Pending"), None, Some(0)),
        ("a finished Pod goes at once", pod("n", "Succeeded"), Some(9), Some(0)),
    ];
    for (name, object, requested, expected) in rows {
        assert_eq!(pods.strategy.grace_period(&object, requested), expected, "{name}");
    }
    assert_eq!(resource_of("jobs").strategy.grace_period(&json!({}), None), None);
}

#[test]
fn merge_keys_are_those_of_the_go_types() {
    let rows: [(&str, &[&str], Option<&str>); 8] = [
        ("cronjobs", &["spec", "jobTemplate", "spec", "template", "spec", "containers"], Some("name")),
        ("cronjobs", &["spec", "jobTemplate", "spec", "template", "spec", "containers", "env"], Some("name")),
        ("cronjobs", &["spec", "jobTemplate", "spec", "template", "spec", "containers", "args"], None),
        ("jobs", &["status", "conditions"], Some("type")),
        ("pods", &["spec", "volumes"], Some("name")),
        ("pods", &["spec", "tolerations"], None),
        ("pods", &["metadata", "ownerReferences"], Some("uid")),
        ("pods", &["metadata", "nonsense", "more"], None),
    ];
    for (plural, path, expected) in rows {
        assert_eq!(resource_of(plural).strategy.patch_merge_key(path), expected, "{plural} {path:?}");
    }
    assert!(resource_of("jobs").strategy.is_atomic_list(&["status", "conditions"]));
}

#[test]
fn selectors_may_name_the_fields_that_upstream_indexes() {
    let pod = json!({"spec": {"nodeName": "n", "restartPolicy": "Never"}, "status": {"phase": "Running", "podIPs": [{"ip": "1.2.3.4"}]}});
    let fields = resource_of("pods").strategy.selectable_fields(&pod);
    for field in [
        ("spec.nodeName", "n"),
        ("status.phase", "Running"),
        ("spec.hostNetwork", "false"),
        ("status.podIP", "1.2.3.4"),
    ] {
        assert!(fields.contains(&(field.0, field.1.to_owned())), "{field:?}");
    }
    let job = resource_of("jobs").strategy.selectable_fields(&json!({"status": {"succeeded": 2}}));
    assert_eq!(job, [("status.successful", "2".to_owned())]);
}
