use apiserver::merge_patch;
use serde_json::json;

use super::*;
use crate::api::{Interner, Object};

#[allow(clippy::unwrap_used)]
fn cron_job(suspend: bool, annotations: &serde_json::Value) -> CronJob {
    let object = json!({
        "metadata": { "name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1", "annotations": annotations },
        "spec": { "schedule": "* * * * *", "suspend": suspend, "jobTemplate": {} },
    });
    CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
}

/// Whether the CronJob is managed here, and if so, whether it is suspended.
#[test]
fn a_cron_job_is_handed_over_by_the_annotation_and_its_suspension_together() {
    let managed = json!({ MANAGED_ANNOTATION: "true" });
    let held = json!({ MANAGED_ANNOTATION: "true", SUSPEND_ANNOTATION: "true" });
    let table = [
        ("neither", false, json!({}), Some(false), None),
        ("no annotations at all", true, json!(null), Some(true), None),
        ("suspended, as anybody's", true, json!({ "example.com/managed": "true" }), Some(true), None),
        ("annotated, and the other still fires it", false, managed.clone(), Some(false), None),
        ("handed over", true, managed, Some(true), Some(false)),
        ("handed over and held", true, held.clone(), Some(true), Some(true)),
        ("held, and the other still fires it", false, held, Some(false), None),
        ("another value", true, json!({ MANAGED_ANNOTATION: "True" }), Some(true), None),
        ("taken back", true, json!({ MANAGED_ANNOTATION: "false" }), Some(true), None),
        (
            "held by another value",
            true,
            json!({ MANAGED_ANNOTATION: "true", SUSPEND_ANNOTATION: "false" }),
            Some(true),
            Some(false),
        ),
    ];
    for (sentence, suspend, annotations, all, annotated) in table {
        let seen = |manage: Manage| {
            let mut cron_job = cron_job(suspend, &annotations);
            manage.takes(&mut cron_job).then_some(cron_job.spec.suspend)
        };
        assert_eq!(Manage::BOTH.map(seen), [all, annotated], "{sentence}");
    }
}

/// `managed`, `suspend`, `spec.suspend`.
fn standing((managed, suspend, spec_suspend): (bool, bool, bool)) -> Standing {
    Standing { handover: Handover { managed, suspend, has_other: false }, spec_suspend }
}

type Values = (bool, bool, bool);

#[test]
fn hand_over_and_take_back_change_the_owner_and_not_the_suspension() {
    // What it is before, handed over, and taken back.
    let table: [(&str, Values, Values, Values); 7] = [
        ("runs in-tree", (false, false, false), (true, false, true), (false, false, false)),
        ("suspended in-tree", (false, false, true), (true, true, true), (false, false, true)),
        ("an annotation is left over", (false, true, false), (true, false, true), (false, false, false)),
        ("spec.suspend was reverted", (true, false, false), (true, false, true), (false, false, false)),
        ("reverted while suspended: it runs in-tree", (true, true, false), (true, false, true), (false, false, false)),
        ("handed over", (true, false, true), (true, false, true), (false, false, false)),
        ("handed over and suspended", (true, true, true), (true, true, true), (false, false, true)),
    ];
    for (sentence, before, handed_over, taken_back) in table {
        let before = standing(before);
        assert_eq!(before.handed_over(), standing(handed_over), "{sentence}: handed over");
        assert_eq!(before.taken_back(), standing(taken_back), "{sentence}: taken back");
        for after in [before.handed_over(), before.taken_back()] {
            assert_eq!(after.is_suspended(), before.is_suspended(), "{sentence}");
            assert_eq!(
                patched(&json!({}), false, Standing::default().patch(before), before.patch(after)),
                after,
                "{sentence}"
            );
        }
    }
}

/// What a CronJob with these annotations is after both patches.
fn patched(annotations: &Value, spec_suspend: bool, first: Value, second: Value) -> Standing {
    let mut object = json!({ "spec": { "suspend": spec_suspend }, "metadata": { "annotations": annotations } });
    for patch in [first, second] {
        merge_patch(&mut object, &patch);
    }
    Standing::of(&cron_job(object["spec"]["suspend"] == true, &object["metadata"]["annotations"]), false)
}

#[test]
fn other_values_of_the_annotations_count_as_false_and_a_take_back_removes_them() {
    let of = |managed: &str, suspend: &str| json!({ MANAGED_ANNOTATION: managed, SUSPEND_ANNOTATION: suspend });
    // What it is, the annotations, spec.suspend; whether it is handed over, and suspended.
    let table = [
        ("handed over, and suspended by another value", of("true", "yes"), true, true, false),
        ("half handed over, and suspended by another value", of("true", "True"), false, false, false),
        ("handed over by another value", of("yes", "true"), true, false, true),
        ("neither of them, in-tree", of("yes", ""), false, false, false),
        ("false", of("false", "false"), false, false, false),
    ];
    for (sentence, annotations, spec_suspend, handed_over, suspended) in table {
        let before = Standing::of(&cron_job(spec_suspend, &annotations), false);
        assert_eq!((before.is_handed_over(), before.is_suspended()), (handed_over, suspended), "{sentence}");
        let after = |wanted: Standing| patched(&annotations, spec_suspend, json!({}), before.patch(wanted));
        let back = Standing { handover: Handover::default(), spec_suspend: suspended };
        assert_ne!(before, back, "{sentence}: there is something to remove");
        assert_eq!(after(before.taken_back()), back, "{sentence}: taken back");
        let over = after(before.handed_over());
        assert_eq!((over.is_handed_over(), over.is_suspended()), (true, suspended), "{sentence}: handed over");
        assert_eq!(before.with_suspend(suspended), before, "{sentence}: it is so already");
        assert_eq!(after(before.with_suspend(!suspended)).is_suspended(), !suspended, "{sentence}");
    }
}

#[test]
fn suspend_stops_every_controller_and_resume_starts_the_one_that_runs_it() {
    // What it is before, suspended, and resumed.
    let table: [(&str, Values, Values, Values); 6] = [
        ("runs in-tree", (false, false, false), (false, false, true), (false, false, false)),
        ("suspended in-tree", (false, false, true), (false, false, true), (false, false, false)),
        ("spec.suspend was reverted", (true, false, false), (true, true, true), (true, false, false)),
        ("reverted while suspended", (true, true, false), (true, true, true), (true, true, false)),
        ("handed over", (true, false, true), (true, true, true), (true, false, true)),
        ("handed over and suspended", (true, true, true), (true, true, true), (true, false, true)),
    ];
    for (sentence, before, suspended, resumed) in table {
        let before = standing(before);
        assert_eq!(before.with_suspend(true), standing(suspended), "{sentence}: suspended");
        assert!(before.with_suspend(true).is_suspended() && before.with_suspend(true).spec_suspend, "{sentence}");
        assert_eq!(before.with_suspend(false), standing(resumed), "{sentence}: resumed");
        assert!(!before.with_suspend(false).is_suspended(), "{sentence}");
    }
}

#[test]
fn a_kind_without_an_in_tree_controller_is_never_handed_over() {
    let mut cron_job = cron_job(true, &json!({ MANAGED_ANNOTATION: "true" }));
    cron_job.controller_kind = crate::api::ControllerKind::Tutorial;
    assert!(!Manage::Annotated.takes(&mut cron_job));
    assert!(cron_job.spec.suspend);
}
