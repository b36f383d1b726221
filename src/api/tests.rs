#![allow(clippy::unwrap_used)]

use schedule::Zone;
use serde_json::{Value, json};

use super::ControllerKind;
use super::batch_v1::{ConcurrencyPolicy, CronJob, FinishedCondition, Job};
use super::job_changes::JobChanges;
use super::job_template::{JobTemplate, LONGEST_KEPT, job_from_template, manual_job};
use super::policy::{DUE_TIME, SLOT_IN_POD, SPREAD, TRACEPARENT};
use super::{Interner, Object, ObjectName, Uid};

fn cron_job(spec: &Value) -> CronJob {
    let object = json!({
        "metadata": {
            "name": "hello", "namespace": "default", "uid": "61ab93d6-a54e-4366-8ceb-d74618b1bb91",
            "resourceVersion": "207", "creationTimestamp": "2026-11-20T17:49:42Z",
        },
        "spec": spec,
    });
    CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
}

#[test]
fn a_uid_prints_what_it_was_made_from() {
    for text in [
        "61ab93d6-a54e-4366-8ceb-d74618b1bb91",
        "61AB93D6-a54e-4366-8ceb-d74618b1bb91",
        "61ab93d6a54e43668cebd74618b1bb91",
        "61ab93d6-a54e-4366-8ceb-d74618b1bbzz",
        "created-uid",
        "",
    ] {
        assert_eq!(Uid::new(text).to_string(), text);
    }
    assert_ne!(Uid::new("61ab93d6-a54e-4366-8ceb-d74618b1bb91"), Uid::new("61AB93D6-a54e-4366-8ceb-d74618b1bb91"));
    assert!(size_of::<Uid>() <= 24);
}

#[test]
fn fields_this_crate_does_not_know_reach_the_job() {
    let spec = json!({
        "schedule": "* * * * *", "timeZone": "Asia/Kathmandu", "fieldOfTheFuture": 1,
        "jobTemplate": {
            "metadata": { "labels": { "app": "x" }, "annotations": { "note": "y" }, "finalizers": ["not/taken-over"] },
            "spec": { "fieldOfTheFuture": { "deep": [1.0, 1e30, "\u{e9}"] }, "backoffLimit": 2 },
        },
    });
    let slot = "2026-11-20T17:50:00Z".parse().unwrap();
    let body = job_from_template(&cron_job(&spec), slot, Zone::UTC, None, None).unwrap();
    let expected = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "hello-29919950", "namespace": "default", "labels": { "app": "x" },
            "annotations": {
                "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-20T23:35:00+05:45", "note": "y",
            },
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "hello",
                "uid": "61ab93d6-a54e-4366-8ceb-d74618b1bb91", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec["jobTemplate"]["spec"],
    });
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains(&spec["jobTemplate"]["spec"].to_string()), "the spec passes as text: {text}");
}

#[test]
fn pods_are_told_of_their_slot_and_the_rest_of_the_spec_passes_as_text() {
    let object = |policies: &Value| {
        json!({
            "metadata": { "name": "hello", "namespace": "default", "uid": "u", "annotations": policies },
            "spec": { "schedule": "0 2 * * *", "timeZone": "Asia/Kathmandu", "jobTemplate": { "spec": {
                "fieldOfTheFuture": 1e30,
                "template": { "metadata": { "annotations": { "note": "y" } }, "spec": { "restartPolicy": "Never" } },
            } } },
        })
    };
    let decoded = |policies: Value| CronJob::decode(&object(&policies).to_string(), &Interner::default()).unwrap();
    let told = decoded(json!({ SLOT_IN_POD: "true", SPREAD: "1h" }));
    let (slot, now) = ("2026-11-19T20:15:00Z".parse().unwrap(), "2026-11-20T17:50:00.5Z".parse().unwrap());
    let (scheduled, due) =
        ("2026-11-20T02:00:00+05:45", Zone::load("Asia/Kathmandu", Zone::UTC).unwrap().rfc3339(told.due(slot)));
    assert_ne!(due, scheduled);
    let (trace, pressed) = ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "2026-11-20T23:35:00+05:45");
    let regular = |of: &CronJob, trace| job_from_template(of, slot, Zone::UTC, None, trace).unwrap();
    let table = [
        ("a regular run", regular(&told, None), json!([scheduled, due, null])),
        ("one that is traced", regular(&told, Some(trace)), json!([scheduled, due, trace])),
        (
            "a backfill",
            job_from_template(&told, slot, Zone::UTC, Some("id"), Some(trace)).unwrap(),
            json!([scheduled, due, trace]),
        ),
        (
            "one that a user starts",
            manual_job(&told, "by-hand".to_owned(), &JobChanges::default(), now, Zone::UTC, None).unwrap().0,
            json!([pressed, pressed, null]),
        ),
        ("without the policy", regular(&decoded(json!({ SPREAD: "1h" })), Some(trace)), json!([null, null, null])),
    ];
    let whole = object(&json!({}))["spec"]["jobTemplate"]["spec"].clone();
    let text = format!("\"fieldOfTheFuture\":{}", whole["fieldOfTheFuture"]);
    for (sentence, body, want) in table {
        let mut spec = serde_json::from_slice::<Value>(&body).unwrap()["spec"].take();
        let annotations = spec["template"]["metadata"]["annotations"].as_object_mut().unwrap();
        let names = ["batch.kubernetes.io/cronjob-scheduled-timestamp", DUE_TIME, TRACEPARENT];
        let found = names.map(|name| annotations.remove(name).unwrap_or_default());
        assert_eq!(json!(found), want, "{sentence}");
        assert_eq!(spec, whole, "{sentence}");
        assert!(String::from_utf8(body).unwrap().contains(&text), "{sentence}");
    }
    let job: Value = serde_json::from_slice(
        &manual_job(&told, "x".to_owned(), &JobChanges::default(), now, Zone::UTC, None).unwrap().0,
    )
    .unwrap();
    assert_eq!(
        job["metadata"]["annotations"],
        json!({ "cronjob.kubernetes.io/instantiate": "manual" }),
        "it has no slot"
    );
}

#[test]
fn a_template_that_makes_no_job_names_its_cron_job() {
    let bad = cron_job(&json!({ "schedule": "* * * * *", "jobTemplate": { "metadata": { "labels": { "a": 1 } } } }));
    let slot = "2026-11-20T17:50:00Z".parse().unwrap();
    let error = job_from_template(&bad, slot, Zone::UTC, None, None).unwrap_err().to_string();
    assert!(error.starts_with("make Job from the template of CronJob default/hello: "), "{error}");
}

#[test]
fn optional_and_unknown_values_are_read_as_upstream_reads_them() {
    let plain = cron_job(&json!({ "schedule": "* * * * *", "jobTemplate": {} }));
    assert_eq!(plain.spec.concurrency_policy, ConcurrencyPolicy::Allow);
    assert!(!plain.spec.suspend && plain.spec.successful_jobs_history_limit.is_none());
    let newer = cron_job(&json!({ "schedule": "* * * * *", "jobTemplate": {}, "concurrencyPolicy": "Sometimes" }));
    assert_eq!(newer.spec.concurrency_policy, ConcurrencyPolicy::Unknown);
}

#[test]
fn a_field_of_the_wrong_type_is_an_error_that_says_where() {
    let object = json!({ "metadata": { "name": "x", "uid": "u" }, "spec": { "schedule": 5, "jobTemplate": {} } });
    let error = CronJob::decode(&object.to_string(), &Interner::default()).unwrap_err().to_string();
    assert!(error.starts_with("decode CronJob: invalid type: integer `5`"), "{error}");
}

#[test]
fn an_unchanged_schedule_is_parsed_once() {
    let spec = json!({ "schedule": "* * * * *", "jobTemplate": {} });
    let (first, mut second) = (cron_job(&spec), cron_job(&spec));
    second.succeed(&first);
    assert!(std::sync::Arc::ptr_eq(first.timing(Zone::UTC), second.timing(Zone::UTC)));
    let mut third = cron_job(&json!({ "schedule": "* * * * *", "timeZone": "Asia/Tokyo", "jobTemplate": {} }));
    third.succeed(&second);
    assert!(!std::sync::Arc::ptr_eq(first.timing(Zone::UTC), third.timing(Zone::UTC)));
}

#[test]
fn a_job_is_finished_by_its_first_true_condition() {
    let table = [
        (json!([]), None, false),
        (json!([{ "type": "Complete", "status": "False" }]), None, false),
        (json!([{ "type": "Suspended", "status": "True" }]), None, false),
        (json!([{ "type": "Failed", "status": "True" }]), Some(FinishedCondition::Failed), false),
        (
            json!([{ "type": "Failed", "status": "True" }, { "type": "Complete", "status": "True" }]),
            Some(FinishedCondition::Failed),
            true,
        ),
    ];
    for (conditions, finished, succeeded) in table {
        let object =
            json!({ "metadata": { "name": "x", "uid": "u" }, "status": { "conditions": conditions } }).to_string();
        let job = Job::decode(&object, &Interner::default()).unwrap();
        assert_eq!((job.finished, job.succeeded), (finished, succeeded), "{conditions}");
    }
}

#[test]
fn a_child_has_our_namespace_kind_group_and_uid() {
    let parent = cron_job(&json!({ "schedule": "* * * * *", "jobTemplate": {} }));
    let ours = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "hello",
        "uid": "61ab93d6-a54e-4366-8ceb-d74618b1bb91", "controller": true,
    });
    let table = [
        ("our own", json!({}), true),
        ("an older version of our group", json!({ "apiVersion": "batch/v1beta1" }), true),
        ("of a deleted CronJob of the same name", json!({ "uid": "b1ab93d6-a54e-4366-8ceb-d74618b1bb91" }), false),
        ("another group's CronJob's", json!({ "apiVersion": "batch.tutorial.kubebuilder.io/v1" }), false),
        ("another kind's", json!({ "kind": "Workflow" }), false),
        ("ours, by another name", json!({ "name": "other" }), true),
        ("one we own but do not control", json!({ "controller": false }), false),
    ];
    for (sentence, patch, expected) in table {
        let mut owner = ours.clone();
        for (key, value) in patch.as_object().unwrap() {
            owner[key] = value.clone();
        }
        for (namespace, is_ours) in [("default", true), ("other", false)] {
            let object =
                json!({ "metadata": { "name": "x", "namespace": namespace, "uid": "u", "ownerReferences": [owner] } });
            let job = Job::decode(&object.to_string(), &Interner::default()).unwrap();
            assert_eq!(job.is_child_of(&parent), expected && is_ours, "{sentence}, in {namespace}");
        }
    }
}

/// Whoever writes Jobs gives one any name and any annotation. The time of its creation is the API server's.
#[test]
fn slot_of_a_job_is_a_day_after_its_creation_at_most() {
    let parent = cron_job(&json!({ "schedule": "* * * * *", "jobTemplate": {} }));
    let slot = "2026-03-02T10:00:00Z";
    let name = format!("{}-29540760", parent.name.name);
    for (creation, is_of_slot) in [
        ("2026-03-02T10:00:01Z", true),
        ("2026-03-02T09:59:00Z", true),
        ("2026-03-01T10:00:00Z", true),
        ("2026-03-01T09:59:59Z", false),
        ("1970-01-01T00:00:00Z", false),
    ] {
        let annotations = json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": slot });
        let object = json!({ "metadata": {
            "name": name, "namespace": "default", "uid": "u", "creationTimestamp": creation, "annotations": annotations,
        } });
        let job = Job::decode(&object.to_string(), &Interner::default()).unwrap();
        assert_eq!(job.slot_of(&parent), is_of_slot.then(|| slot.parse().unwrap()), "{creation}");
    }
}

#[test]
fn names_and_paths_are_the_apis_own() {
    assert_eq!(ControllerKind::CronJob.child_name("hello", "2026-11-20T17:50:59Z".parse().unwrap()), "hello-29919950");
    assert_eq!(Job::RESOURCE.path(Some("ns")), "/apis/batch/v1/namespaces/ns/jobs");
    assert_eq!(CronJob::RESOURCE.path(None), "/apis/batch/v1/cronjobs");
    assert_eq!(ObjectName::new("ns", "x").to_string(), "ns/x");
}

fn with_template(argument: &str) -> Value {
    json!({ "schedule": "* * * * *", "jobTemplate": { "spec": { "x": argument } } })
}

#[test]
fn cached_record_keeps_a_short_template_and_the_digest_of_a_long_one() {
    let decode = |argument: &str| {
        let object = json!({
            "metadata": { "name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1" },
            "spec": with_template(argument),
        });
        let text = object.to_string();
        let whole = CronJob::decode(&text, &Interner::default()).unwrap();
        (whole, CronJob::decode_for_cache(&text, &Interner::default()).unwrap())
    };
    let overhead = r#"{"spec":{"x":""}}"#.len();
    let fits = "x".repeat(LONGEST_KEPT - overhead);
    for (argument, is_kept) in [("short", true), (&*fits, true), (&*format!("{fits}x"), false)] {
        let (whole, cached) = decode(argument);
        assert_eq!(cached.spec.job_template.text().is_some(), is_kept, "{} bytes", argument.len());
        assert_eq!(whole.spec, cached.spec, "{} bytes", argument.len());
        assert_eq!(cached.spec, whole.spec, "{} bytes", argument.len());
        assert_eq!(std::sync::Arc::new(whole).for_cache().spec.job_template.text().is_some(), is_kept);
    }
    let (long, longer) = (format!("{fits}x"), format!("{fits}y"));
    let ((whole, cached), (other_whole, other_cached)) = (decode(&long), decode(&longer));
    for (one, other) in
        [(&whole, &other_whole), (&whole, &other_cached), (&cached, &other_whole), (&cached, &other_cached)]
    {
        assert_ne!(one.spec, other.spec, "a changed template of the same length");
    }
    let error = job_from_template(&cached, "2026-11-20T17:50:00Z".parse().unwrap(), Zone::UTC, None, None).unwrap_err();
    assert!(error.to_string().contains("the template was not read"), "{error}");
    assert!(size_of::<JobTemplate>() <= 16, "no larger than the text alone");
}

#[test]
fn active_references_and_conditions_are_kept_up_to_a_number_of_bytes() {
    let reference = |i: usize| {
        json!({
            "kind": "Job", "namespace": "team", "name": format!("nightly-{}", 29_000_000 + i), "apiVersion": "batch/v1",
            "uid": format!("00000000-0000-4000-8000-{i:012}"), "resourceVersion": "1234567",
        })
    };
    let read = |status: Value| {
        let object = json!({
            "apiVersion": "batch.tutorial.kubebuilder.io/v1",
            "metadata": { "name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1" },
            "spec": { "schedule": "@daily", "jobTemplate": {} },
            "status": status,
        });
        CronJob::decode(&object.to_string(), &Interner::default()).unwrap().status
    };
    let active = |number: usize| json!({ "active": (0..number).map(reference).collect::<Vec<_>>() });
    assert_eq!(read(active(900)).active.len(), 900);
    let kept = read(active(10_000)).active;
    assert!((900..1_200).contains(&kept.len()), "{}", kept.len());
    assert_eq!(serde_json::to_value(kept.iter().nth(899)).unwrap(), reference(899), "those that are kept are whole");
    // The one after a long one has space.
    let long = json!([{ "name": "x".repeat(300_000) }, reference(1)]);
    assert_eq!(serde_json::to_value(read(json!({ "active": long })).active).unwrap(), json!([reference(1)]));
    assert!(read(json!({ "active": null, "conditions": null })).active.is_empty());
    // No Job has such a name. The API server does not check it.
    for name in ["", "..", "a/b", "a?watch=true", "a b", "A", &"a".repeat(254)] {
        let active = json!({ "active": [{ "name": name, "uid": "u" }, reference(1)] });
        assert_eq!(serde_json::to_value(read(active).active).unwrap(), json!([reference(1)]), "{name:?}");
    }

    let condition =
        |i: usize, message: usize| json!({ "type": format!("T{i}"), "status": "True", "message": "m".repeat(message) });
    let conditions = |number: usize, message| {
        let list = (0..number).map(|i| condition(i, message)).collect::<Vec<_>>();
        read(json!({ "conditions": list })).conditions.len()
    };
    assert_eq!([conditions(20, 500), conditions(1, 10_000), conditions(1, 20_000)], [20, 1, 0]);
    assert!(conditions(10_000, 0) < 200);
}

#[test]
fn record_of_decided_slots_is_read_up_to_a_length() {
    for (version, is_read) in [
        ("v9:x", true),
        (&*format!("v9:{}", "x".repeat(300)), false),
        (&*format!("v1:{}:0123456789abcdef", "x".repeat(300)), false),
    ] {
        let text = format!("2026-03-02T09:00:00Z {version}");
        assert_eq!(super::policy::CountedFrom::parse(&text).is_some(), is_read, "{version}");
    }
}

#[test]
fn owner_with_a_longer_name_than_any_is_none() {
    for (length, is_kept) in [(253, true), (2_000, false)] {
        let owner = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "name": "n".repeat(length), "uid": "u", "controller": true,
        });
        let object = json!({ "metadata": {
            "name": "j", "namespace": "ns", "uid": "v", "resourceVersion": "1", "ownerReferences": [owner],
        } });
        let job = Job::decode(&object.to_string(), &Interner::default()).unwrap();
        assert_eq!(job.controller.is_some(), is_kept, "{length}");
    }
}
