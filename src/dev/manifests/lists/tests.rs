#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn items_of_lists_are_objects_and_no_item_is_a_list() {
    let inner = json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "C"}, {"name": "d"}]});
    let rows = [
        ("no list", json!({"kind": "A"}), vec![("x", json!({"kind": "A"}))]),
        ("nothing", Value::Null, vec![]),
        ("an empty list", json!({"kind": "List", "items": []}), vec![]),
        ("null for a list", json!({"kind": "List", "items": null}), vec![]),
        ("a list without a kind", json!({"items": [1]}), vec![("x", json!({"items": [1]}))]),
        ("items that are no list", json!({"kind": "A", "items": {}}), vec![("x", json!({"kind": "A", "items": {}}))]),
        ("a List without items", json!({"apiVersion": "v1", "kind": "List"}), vec![]),
        (
            "a typed list",
            json!({"apiVersion": "v", "kind": "AList", "items": [{"name": "a"}, {"kind": "B"}, {"kind": "", "apiVersion": ""}]}),
            vec![
                ("items[0].x", json!({"apiVersion": "v", "kind": "A", "name": "a"})),
                ("items[1].x", json!({"kind": "B"})),
                ("items[2].x", json!({"apiVersion": "v", "kind": "A"})),
            ],
        ),
        (
            "a list of another name",
            json!({"apiVersion": "v", "kind": "A", "items": [{"name": "a"}]}),
            vec![("items[0].x", json!({"apiVersion": "v", "kind": "A", "name": "a"}))],
        ),
        (
            "items that are no list, in a list",
            json!({"apiVersion": "v", "kind": "AList", "items": [{"items": {}}]}),
            vec![("items[0].x", json!({"apiVersion": "v", "kind": "A", "items": {}}))],
        ),
    ];
    for (name, value, want) in rows {
        let found: Vec<(String, Value)> =
            expand(value).unwrap().objects.into_iter().map(|(place, object)| (place.field("x"), object)).collect();
        let want: Vec<(String, Value)> = want.into_iter().map(|(path, object)| (path.to_owned(), object)).collect();
        assert_eq!(found, want, "{name}");
    }
    // As `kubectl label --local` of v1.32, whatever the kinds.
    for (name, items) in
        [("a list", json!([{"kind": "B"}, inner])), ("an empty one", json!([{"kind": "B"}, {"items": []}]))]
    {
        let error = expand(json!({"kind": "List", "items": items})).unwrap_err();
        assert!(error.starts_with("items[1] is a list, and kubectl refuses"), "{name}: {error}");
    }
}

/// A sentence, the version and the kind of a list, its items, and the field and words of the fault.
type Row<'a> = (&'a str, Value, Value, &'a [&'a Value], Option<(&'a str, &'a str)>);

#[test]
fn list_that_kubectl_refuses_around_cron_jobs_is_a_fault() {
    let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob"});
    let (of_v1, of_batch) = ("did you mean List of v1?", "did you mean CronJobList of batch/v1?");
    let other = "is that of a list of one kind, and kubectl refuses CronJob in it; write List of v1";
    let items = "is missing, or no list; kubectl refuses a list without it";
    let whole: &[&Value] = &[&cron_job];
    let bare = json!({"metadata": {"name": "a"}});
    // `kubectl create --dry-run=server` of v1.37.2 refuses those with a fault, and takes the others.
    let rows: [Row<'_>; 35] = [
        ("List", json!("v1"), json!("List"), whole, None),
        ("of no version", json!(""), json!("List"), whole, None),
        ("of another group", json!("batch/v1"), json!("List"), whole, None),
        ("of a version that there is not", json!("v2"), json!("List"), whole, Some(("apiVersion", of_v1))),
        ("in small letters", json!("v1"), json!("list"), whole, Some(("kind", of_v1))),
        ("in capitals", json!("v1"), json!("LIST"), whole, Some(("kind", of_v1))),
        ("in the plural", json!("v1"), json!("Lists"), whole, Some(("kind", of_v1))),
        ("of CronJobs", json!("batch/v1"), json!("CronJobList"), whole, None),
        ("of CronJobs that do not say it", json!("batch/v1"), json!("CronJobList"), &[&bare], None),
        ("of CronJobs of no group", json!("v1"), json!("CronJobList"), whole, Some(("apiVersion", of_batch))),
        ("that do not say it", json!("v1"), json!("CronJobList"), &[&bare], Some(("apiVersion", of_batch))),
        ("in other letters", json!("batch/v1"), json!("CronjobList"), whole, Some(("kind", of_batch))),
        (
            "of an old version",
            json!("batch/v1beta1"),
            json!("CronJobList"),
            whole,
            Some(("apiVersion", "is not served any more")),
        ),
        ("of the wrong group", json!("apps/v1"), json!("CronJobList"), whole, Some(("apiVersion", of_batch))),
        ("of Jobs", json!("batch/v1"), json!("JobList"), whole, Some(("kind", other))),
        ("of Pods", json!("v1"), json!("PodList"), whole, Some(("kind", other))),
        ("of a kind that is not compared", json!("v1"), json!("EndpointsList"), whole, Some(("kind", other))),
        ("a kind that is served", json!("v1"), json!("ConfigMap"), whole, None),
        ("a kind that is not compared", json!("v1"), json!("Endpoints"), whole, None),
        ("the kind itself", json!("batch/v1"), json!("CronJob"), whole, None),
        ("no kind of a group", json!("v1"), json!("Frogs"), whole, Some(("kind", of_v1))),
        ("no group", json!("foo/v1"), json!("Bar"), whole, Some(("kind", of_v1))),
        ("no group, of a list", json!("foo/v1"), json!("BarList"), whole, Some(("kind", of_v1))),
        ("a custom group", json!("foo.example/v1"), json!("Bar"), whole, None),
        ("a list of a custom group", json!("foo.example/v1"), json!("BarList"), whole, None),
        ("no version", Value::Null, json!("List"), whole, Some(("apiVersion", near_kinds::MISSING))),
        ("a number for a version", json!(1), json!("List"), whole, Some(("apiVersion", near_kinds::MISSING))),
        ("no kind", json!("v1"), Value::Null, whole, Some(("kind", near_kinds::MISSING))),
        ("a number for a kind", json!("v1"), json!(5), whole, Some(("kind", near_kinds::MISSING))),
        ("neither", Value::Null, Value::Null, whole, Some(("apiVersion", near_kinds::MISSING))),
        ("one of another tool", Value::Null, Value::Null, &[&bare], None),
        ("without a CronJob", json!("v1"), json!("Lists"), &[&json!({"apiVersion": "v1", "kind": "Pod"})], None),
        ("without anything", json!("v1"), json!("list"), &[], None),
        ("a text for an item", json!("v1"), json!("List"), &[&json!("x")], None),
        (
            "a misspelt CronJob",
            json!("v1"),
            json!("list"),
            &[&json!({"apiVersion": "batch/v1", "kind": "Cronjob"})],
            Some(("kind", of_v1)),
        ),
    ];
    let check = |name: &str, value: Value, want: Option<(&str, &str)>| {
        let fault = expand(value).unwrap().fault;
        let is_wanted = match (&fault, want) {
            (None, None) => true,
            (Some((field, message)), Some((in_field, words))) => *field == in_field && message.contains(words),
            _ => false,
        };
        assert!(is_wanted, "{name}: {fault:?}");
    };
    for (name, api_version, kind, items, want) in rows {
        check(name, json!({"apiVersion": api_version, "kind": kind, "items": items}), want);
    }
    let rows = [
        ("no items", json!({"apiVersion": "v1", "kind": "List"}), Some(items)),
        ("items in a mapping", json!({"apiVersion": "v1", "kind": "List", "items": {}}), Some(items)),
        ("items that are null", json!({"apiVersion": "v1", "kind": "List", "items": null}), Some(items)),
        ("items of another name", json!({"apiVersion": "v1", "kind": "List", "Items": [cron_job]}), Some(items)),
        ("items of a CronJob", json!({"apiVersion": "batch/v1", "kind": "CronJob", "items": {}}), Some(items)),
        ("null of a CronJob", json!({"apiVersion": "batch/v1", "kind": "CronJob", "items": null}), None),
        ("an empty List", json!({"apiVersion": "v1", "kind": "List", "items": []}), None),
        ("a CronJob", cron_job.clone(), None),
    ];
    for (name, value, want) in rows {
        check(name, value, want.map(|words| ("items", words)));
    }
    let typed = |field: &str, value: Value| json!({"apiVersion": "batch/v1", "kind": "CronJobList", "items": [cron_job], field: value});
    let rows = [
        ("its version", typed("metadata", json!({"resourceVersion": "5", "continue": ""})), None),
        ("no metadata", typed("metadata", json!(null)), None),
        ("a text for its metadata", typed("metadata", json!("x")), Some(("metadata", "must be an object"))),
        ("a field of its metadata", typed("metadata", json!({"name": "x"})), Some(("metadata", "no field name"))),
        ("a field of its own", typed("foo", json!(1)), Some(("kind", "no field foo"))),
    ];
    for (name, value, want) in rows {
        check(name, value, want);
    }
}
