//! Get, create, update, delete: accepted and refused requests, conflicts, preconditions, finalizers, dry run.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

const POD_SPEC: &str = "/spec/jobTemplate/spec/template/spec";

pub fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("life", life()),
        scenario("conflicts", conflicts()),
        scenario("races", races()),
        scenario("deleting", deleting()),
        scenario("finalizers", finalizers()),
        scenario("dry-run", dry_run()),
        scenario("status", status()),
        scenario("bad-requests", bad_requests()),
        scenario("field-validation", field_validation()),
    ]
}

fn a() -> String {
    format!("{CRONJOBS}/a")
}

fn life() -> Vec<Step> {
    vec![
        get(a()).named("a CronJob that does not exist is not found"),
        get(CRONJOBS).named("the empty list"),
        post(CRONJOBS, &cronjob("a")).id("a").named("a CronJob is created with its defaults"),
        get(a()).named("it is got as it was created"),
        post(CRONJOBS, &cronjob("a")).named("a second one of the same name already exists"),
        put(a(), &cronjob("a")).named("an update without a resource version that changes nothing keeps the version"),
        put(a(), &cronjob("a").with("/spec/schedule", json!("0 * * * *")))
            .id("b")
            .named("a changed spec raises the generation"),
        put(a(), &cronjob("a").with("/spec/schedule", json!("0 * * * *")).with("/metadata/labels", json!({"x": "y"})))
            .named("changed labels do not raise the generation"),
        put(format!("{CRONJOBS}/nobody"), &cronjob("nobody")).named("an update of an absent object is not found"),
        put(a(), &cronjob("b")).named("the name in the body must be that of the path"),
        put(a(), &cronjob("a").with("/metadata/namespace", json!("default")))
            .named("so must the namespace in an update"),
        post(CRONJOBS, &cronjob("c").with("/metadata/namespace", json!("default"))).named("and in a create"),
        put(a(), &cronjob("a").without("/metadata/name")).named("an update without a name in the body"),
        put(a(), &cronjob("a").with("/metadata/uid", json!("00000000-0000-0000-0000-000000000009")))
            .named("an update of another uid"),
        put(a(), &cronjob("a").with("/metadata/creationTimestamp", json!("2020-01-01T00:00:00Z")))
            .named("a creation time cannot be changed"),
        put(a(), &cronjob("a").with("/metadata/generation", json!(77))).named("a generation in the body is ignored"),
        get(CRONJOBS).named("the list of one"),
        get("/apis/batch/v1/cronjobs?labelSelector=none%3Dnone").named("the list of all namespaces"),
        delete(a()).named("it is deleted"),
        delete(a()).named("what is gone cannot be deleted"),
        get(a()).named("what is gone is not found"),
        post(
            CRONJOBS,
            &cronjob("a")
                .with("/metadata/uid", json!("00000000-0000-0000-0000-000000000009"))
                .with("/metadata/resourceVersion", json!(""))
                .with("/metadata/generation", json!(5))
                .with("/metadata/creationTimestamp", json!("2020-01-01T00:00:00Z"))
                .with("/metadata/selfLink", json!("/somewhere")),
        )
        .named("a create ignores uid, generation and creation time in the body"),
        post(CRONJOBS, &cronjob("b").with("/metadata/resourceVersion", json!("999")))
            .named("a create must not name a resource version"),
        post(
            CRONJOBS,
            &cronjob("b")
                .with("/metadata/deletionTimestamp", json!("2020-01-01T00:00:00Z"))
                .with("/metadata/deletionGracePeriodSeconds", json!(5)),
        )
        .named("a create ignores a deletion time in the body"),
        post("/apis/batch/v1/namespaces/no-such/cronjobs", &cronjob("a"))
            .named("a namespace that does not exist is not found"),
        get("/apis/batch/v1/namespaces/no-such/cronjobs").named("a list of a namespace that does not exist is empty"),
        get("/apis/batch/v1/namespaces/no-such/cronjobs/a").named("a get in a namespace that does not exist"),
        post(CRONJOBS, &cronjob("b").with("/metadata/managedFields", json!([{"manager": "someone"}])))
            .named("managed fields in a create"),
        post(format!("{CRONJOBS}?pretty=true"), &cronjob("pretty")).named("a pretty answer is the same JSON"),
        get(format!("{CRONJOBS}/pretty?pretty=true")).named("a pretty get"),
    ]
}

fn conflicts() -> Vec<Step> {
    let stale = |id: &str| {
        cronjob("a").with("/metadata/resourceVersion", json!(format!("${{{id}:/metadata/resourceVersion}}")))
    };
    vec![
        post(CRONJOBS, &cronjob("a")).id("first").named("created"),
        put(a(), &stale("first").with("/spec/suspend", json!(true))).id("second").named("an update of the newest version"),
        put(a(), &stale("first").with("/spec/suspend", json!(false))).named("an update of an older version conflicts"),
        put(a(), &stale("second").with("/spec/suspend", json!(true))).id("third").named("an update that changes nothing keeps the version"),
        put(a(), &cronjob("a").with("/metadata/resourceVersion", json!("999999"))).named("an update of a version that never was conflicts"),
        put(a(), &cronjob("a").with("/metadata/resourceVersion", json!("abc"))).named("an update of a version that is no number"),
        put(a(), &cronjob("a").with("/metadata/resourceVersion", json!("0")).with("/spec/suspend", json!(true))).named("an update of version zero"),
        patch(MERGE, a(), &json!({"metadata": {"resourceVersion": "${first:/metadata/resourceVersion}"}, "spec": {"schedule": "1 * * * *"}}))
            .named("a merge patch of an older version conflicts"),
        patch(MERGE, a(), &json!({"metadata": {"resourceVersion": "${third:/metadata/resourceVersion}"}, "spec": {"schedule": "1 * * * *"}}))
            .id("fourth").named("a merge patch of the newest version"),
        patch(JSON_PATCH, a(), &json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "${third:/metadata/resourceVersion}"},
            {"op": "replace", "path": "/spec/schedule", "value": "2 * * * *"}]))
            .named("a JSON patch whose test fails"),
        patch(JSON_PATCH, a(), &json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "${first:/metadata/resourceVersion}"},
            {"op": "replace", "path": "/spec/schedule", "value": "2 * * * *"}]))
            .named("a JSON patch that sets an older version"),
        patch(MERGE, format!("{}/status", a()), &json!({"metadata": {"resourceVersion": "${first:/metadata/resourceVersion}"}, "status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}))
            .named("a status patch of an older version conflicts"),
        patch(MERGE, a(), &json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000009"}, "spec": {"schedule": "1 * * * *"}}))
            .named("a merge patch of another uid conflicts"),
        patch(STRATEGIC, a(), &json!({"metadata": {"uid": "${first:/metadata/uid}"}, "spec": {"schedule": "3 * * * *"}}))
            .named("a strategic patch of the same uid"),
        delete_with(a(), &json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000009"}})).named("a deletion of another uid conflicts"),
        delete_with(a(), &json!({"preconditions": {"resourceVersion": "${first:/metadata/resourceVersion}"}})).named("a deletion of an older version conflicts"),
        delete_with(a(), &json!({"preconditions": {"uid": "${first:/metadata/uid}"}})).named("a deletion of the right uid"),
        post(CRONJOBS, &cronjob("a")).id("again").named("created again"),
        put(a(), &cronjob("a").with("/metadata/uid", json!("${first:/metadata/uid}"))).named("an update of the predecessor's uid conflicts"),
        put(a(), &stale("fourth")).named("an update of the predecessor's version conflicts"),
        delete_with(a(), &json!({"preconditions": {"uid": "${first:/metadata/uid}"}})).named("a deletion of the predecessor conflicts"),
        delete_with(a(), &json!({"preconditions": {"uid": "${again:/metadata/uid}", "resourceVersion": "${again:/metadata/resourceVersion}"}}))
            .named("a deletion of the right uid and version"),
    ]
}

fn races() -> Vec<Step> {
    let ten = |make: &dyn Fn(usize) -> Request| (0..10).map(make).collect::<Vec<_>>();
    let race = |sentence: &str, requests: Vec<Request>| Step::Race(sentence.to_owned(), requests);
    let version = "${a:/metadata/resourceVersion}";
    vec![
        race(
            "of ten creates of one name one wins",
            ten(&|i| post(CRONJOBS, &cronjob("a").with("/spec/schedule", json!(format!("{i} * * * *"))))),
        ),
        get(a()).part(name_alone).id("a").named("the winner"),
        race(
            "of ten updates of one version one wins",
            ten(&|i| {
                put(
                    a(),
                    &cronjob("a")
                        .with("/metadata/resourceVersion", json!(version))
                        .with("/spec/startingDeadlineSeconds", json!(i + 100)),
                )
            }),
        ),
        race(
            "of ten patches that name a version none wins",
            ten(&|i| {
                patch(
                    MERGE,
                    a(),
                    &json!({"metadata": {"resourceVersion": version}, "spec": {"startingDeadlineSeconds": i + 200}}),
                )
            }),
        ),
        race(
            "ten patches that name no version all win",
            ten(&|i| patch(MERGE, a(), &json!({"metadata": {"labels": {format!("l{i}"): "x"}}}))),
        ),
        get(a()).part(labels_alone).named("each left its label"),
        race(
            "ten applies of ten managers all win",
            ten(&|i| {
                let body = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "annotations": {format!("a{i}"): "x"}}});
                patch(APPLY, format!("{}?fieldManager=m{i}", a()), &body)
            }),
        ),
        get(a()).part(labels_alone).named("each left its annotation"),
        race(
            "ten creates with a generated name all win",
            ten(&|_| post(JOBS, &job("x").without("/metadata/name").with("/metadata/generateName", json!("j-")))),
        ),
        race(
            "spec and status do not conflict",
            vec![
                patch(MERGE, a(), &json!({"spec": {"suspend": true}})),
                patch(
                    MERGE,
                    format!("{}/status", a()),
                    &json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}),
                ),
            ],
        ),
        get(a()).part(spec_and_status).named("both are there"),
        race("of ten deletions one wins", ten(&|_| delete(a()))),
        get(a()).named("it is gone"),
    ]
}

fn name_alone(value: serde_json::Value) -> serde_json::Value {
    value["metadata"]["name"].clone()
}

fn labels_alone(value: serde_json::Value) -> serde_json::Value {
    json!([value["metadata"]["labels"], value["metadata"]["annotations"]])
}

fn spec_and_status(value: serde_json::Value) -> serde_json::Value {
    json!([value["spec"]["suspend"], value["status"]])
}

fn deleting() -> Vec<Step> {
    let job_a = format!("{JOBS}/a");
    vec![
        post(CRONJOBS, &cronjob("a")).named("a CronJob"),
        delete_with(a(), &json!({"propagationPolicy": "Sideways"})).named("a propagation policy that does not exist"),
        delete(format!("{}?propagationPolicy=Sideways", a())).named("such a policy in the query"),
        delete_with(a(), &json!({"propagationPolicy": "Background", "orphanDependents": true}))
            .named("a policy and orphanDependents exclude each other"),
        delete_with(a(), &json!({"gracePeriodSeconds": -5})).named("a negative grace period"),
        delete_with(a(), &json!({"dryRun": ["Some"]})).named("a deletion with a dry run that does not exist"),
        delete(format!("{}?dryRun=All", a())).named("a deletion in a dry run"),
        get(a()).named("it is still there"),
        delete(a())
            .header("content-type", "application/json")
            .body("{not json")
            .named("delete options that are no JSON"),
        delete(a())
            .header("content-type", "application/json")
            .body(r#"{"kind":"CronJob","apiVersion":"batch/v1"}"#)
            .named("delete options of another kind"),
        delete(a()).header("content-type", "text/plain").body("x").named("delete options of an unknown content type"),
        delete_with(a(), &json!({"apiVersion": "batch/v1", "propagationPolicy": "Background"}))
            .named("delete options of the resource's group"),
        post(CRONJOBS, &cronjob("a")).named("the CronJob again"),
        delete(format!("{}?propagationPolicy=Background", a())).named("the policy in the query"),
        post(JOBS, &job("a")).named("a Job"),
        delete(job_a.as_str()).named("a Job's deletion without a policy orphans and warns"),
        get(job_a.as_str()).until_status(404).named("the Job is gone once the collector has seen to its Pods"),
        post(JOBS, &job("b")).named("a second Job"),
        delete_with(format!("{JOBS}/b"), &json!({"propagationPolicy": "Background"}))
            .named("a Job's deletion in the background"),
        get(format!("{JOBS}/b")).named("it is gone at once"),
        post(PODS, &pod("a")).named("a Pod"),
        delete(format!("{PODS}/a?gracePeriodSeconds=0")).named("a Pod's deletion without grace"),
        post(PODS, &pod("b")).named("a second Pod"),
        delete(format!("{PODS}/b")).named("a Pod on no node goes at once"),
        get(format!("{PODS}/b")).named("it is gone"),
        post(PODS, &pod("c").with("/spec/nodeName", json!("n"))).named("a Pod on a node"),
        delete(format!("{PODS}/c")).named("its deletion has to wait for the node"),
        get(format!("{PODS}/c")).named("it has a deletion time"),
        delete_with(format!("{PODS}/c"), &json!({"gracePeriodSeconds": 5})).named("a shorter grace period"),
        delete_with(format!("{PODS}/c"), &json!({"gracePeriodSeconds": 50}))
            .named("a longer grace period does not lengthen it"),
        delete_with(format!("{PODS}/c"), &json!({"gracePeriodSeconds": 0})).named("no grace ends it"),
        get(format!("{PODS}/c")).named("now it is gone"),
        post(CRONJOBS, &cronjob("x1").with("/metadata/labels", json!({"x": "1"}))).named("one of a collection"),
        post(CRONJOBS, &cronjob("x2").with("/metadata/labels", json!({"x": "1"}))).named("another"),
        post(CRONJOBS, &cronjob("y").with("/metadata/labels", json!({"x": "2"}))).named("and one beside it"),
        delete(format!("{CRONJOBS}?labelSelector=x%3D1&dryRun=All")).named("the collection is deleted in a dry run"),
        delete(format!("{CRONJOBS}?labelSelector=x%3D1")).named("the collection is deleted"),
        get(CRONJOBS).named("the one beside it is left"),
        delete(format!("{CRONJOBS}?labelSelector=x%3D1")).named("an empty collection is deleted"),
        delete(format!("{CRONJOBS}?fieldSelector=metadata.name%3Dy")).named("a collection by field"),
        delete("/apis/batch/v1/cronjobs").named("a collection of all namespaces cannot be deleted"),
    ]
}

fn finalizers() -> Vec<Step> {
    let held = |name: &str| cronjob(name).with("/metadata/finalizers", json!(["example.com/hold"]));
    vec![
        post(CRONJOBS, &held("a")).id("a").named("a CronJob with a finalizer"),
        delete(a()).named("its deletion only marks it"),
        get(a()).named("it has a deletion time"),
        delete(a()).named("a second deletion changes nothing"),
        put(a(), &held("a").with("/spec/suspend", json!(true))).named("the spec of a marked one can change"),
        patch(MERGE, a(), &json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}))
            .named("no finalizer can be added now"),
        patch(MERGE, a(), &json!({"metadata": {"deletionTimestamp": null}})).named("the mark cannot be taken away"),
        post(CRONJOBS, &cronjob("a")).named("its name is still taken"),
        patch(MERGE, a(), &json!({"metadata": {"finalizers": null}})).named("without its last finalizer it goes"),
        get(a()).named("it is gone"),
        post(CRONJOBS, &held("b")).named("another"),
        patch(JSON_PATCH, format!("{CRONJOBS}/b"), &json!([{"op": "remove", "path": "/metadata/finalizers/0"}]))
            .named("a finalizer of an unmarked one is removed"),
        get(format!("{CRONJOBS}/b")).named("that does not delete it"),
        put(format!("{CRONJOBS}/b"), &held("b")).named("and it can be added again"),
        delete_with(format!("{CRONJOBS}/b"), &json!({"gracePeriodSeconds": 0}))
            .named("no grace does not help against a finalizer"),
        put(format!("{CRONJOBS}/b"), &cronjob("b")).named("an update without finalizers ends it"),
        get(format!("{CRONJOBS}/b")).named("that is gone, too"),
        post(CRONJOBS, &cronjob("c").with("/metadata/finalizers", json!(["bare"])))
            .named("a finalizer without a domain"),
        post(CRONJOBS, &cronjob("c").with("/metadata/finalizers", json!(["foregroundDeletion", "orphan"])))
            .named("both of the collector's finalizers"),
        post(CRONJOBS, &cronjob("c").with("/metadata/finalizers", json!(["not/a/name"])))
            .named("a finalizer that is no qualified name"),
        post(
            CRONJOBS,
            &cronjob("d").with("/metadata/finalizers", json!(["example.com/b", "example.com/a", "example.com/b"])),
        )
        .named("finalizers that repeat"),
        patch(
            STRATEGIC,
            format!("{CRONJOBS}/d"),
            &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}}),
        )
        .named("a finalizer is taken out of the list"),
        patch(STRATEGIC, format!("{CRONJOBS}/d"), &json!({"metadata": {"finalizers": ["example.com/c"]}}))
            .named("a strategic patch adds finalizers"),
        patch(
            STRATEGIC,
            format!("{CRONJOBS}/d"),
            &json!({"metadata": {"$setElementOrder/finalizers": ["example.com/c", "example.com/a"]}}),
        )
        .named("and orders them"),
        delete(format!("{CRONJOBS}/d")).named("marked"),
        patch(JSON_PATCH, format!("{CRONJOBS}/d"), &json!([{"op": "remove", "path": "/metadata/finalizers"}]))
            .named("a JSON patch ends it"),
        get(format!("{CRONJOBS}/d")).named("that is gone"),
    ]
}

fn dry_run() -> Vec<Step> {
    vec![
        post(format!("{CRONJOBS}?dryRun=All"), &cronjob("a")).named("a create in a dry run"),
        get(a()).named("nothing was created"),
        post(format!("{CRONJOBS}?dryRun=all"), &cronjob("a")).named("a dry run that does not exist"),
        post(format!("{CRONJOBS}?dryRun="), &cronjob("a")).named("an empty dry run"),
        post(format!("{CRONJOBS}?dryRun=All&dryRun=All"), &cronjob("a2")).named("a dry run said twice"),
        delete(format!("{CRONJOBS}/a")).named("whether anything was created"),
        post(format!("{CRONJOBS}?dryRun=All"), &cronjob("a").with("/spec/schedule", json!("bad")))
            .named("a dry run validates"),
        post(CRONJOBS, &cronjob("a")).named("a real create"),
        post(format!("{CRONJOBS}?dryRun=All"), &cronjob("a")).named("a dry run finds that it already exists"),
        put(format!("{}?dryRun=All", a()), &cronjob("a").with("/spec/suspend", json!(true)))
            .named("an update in a dry run"),
        patch(MERGE, format!("{}?dryRun=All", a()), &json!({"spec": {"suspend": true}})).named("a patch in a dry run"),
        patch(
            MERGE,
            format!("{}/status?dryRun=All", a()),
            &json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}),
        )
        .named("a status patch in a dry run"),
        patch(APPLY, format!("{CRONJOBS}/applied?fieldManager=m&dryRun=All"), &cronjob("applied"))
            .named("an apply in a dry run"),
        delete_with(a(), &json!({"dryRun": ["All"]})).named("a deletion in a dry run"),
        get(a()).named("nothing changed"),
        post(
            format!("{CRONJOBS}?dryRun=All"),
            &cronjob("").without("/metadata/name").with("/metadata/generateName", json!("gen-")),
        )
        .named("a generated name in a dry run"),
        post("/apis/batch/v1/namespaces/no-such/cronjobs?dryRun=All", &cronjob("a"))
            .named("a dry run in a namespace that does not exist"),
    ]
}

fn status() -> Vec<Step> {
    let status = format!("{}/status", a());
    vec![
        post(CRONJOBS, &cronjob("a").with("/status", json!({"lastScheduleTime": "2020-01-01T00:00:00Z"}))).id("a").named("a status in a create is dropped"),
        put(a(), &cronjob("a").with("/status", json!({"lastScheduleTime": "2020-01-01T00:00:00Z"}))).named("a status in an update is dropped"),
        put(status.as_str(), &cronjob("a").with("/spec/schedule", json!("9 9 * * *")).with("/metadata/labels", json!({"l": "1"}))
            .with("/status", json!({"lastScheduleTime": "2020-01-01T00:00:00Z"}))).named("a status update changes the status alone"),
        get(status.as_str()).named("the status is got with the object"),
        patch(MERGE, status.as_str(), &json!({"status": {"lastSuccessfulTime": "2020-01-01T00:01:00Z",
            "active": [{"kind": "Job", "apiVersion": "batch/v1", "namespace": "${ns}", "name": "a-1", "uid": "00000000-0000-0000-0000-000000000002", "resourceVersion": "999"}]}}))
            .named("a status patch merges"),
        patch(MERGE, status.as_str(), &json!({"spec": {"schedule": "7 7 * * *"}})).named("a status patch cannot change the spec"),
        patch(MERGE, status.as_str(), &json!({"metadata": {"labels": {"from": "status"}, "annotations": {"from": "status"}}})).named("a status patch and labels"),
        patch(MERGE, status.as_str(), &json!({"status": {"active": null, "lastScheduleTime": null}})).named("status fields are removed by null"),
        patch(MERGE, status.as_str(), &json!({"status": {"lastScheduleTime": "yesterday"}})).named("a time that is none"),
        patch(MERGE, status.as_str(), &json!({"status": {"active": "many"}})).named("a list that is none"),
        patch(MERGE, status.as_str(), &json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00.999Z"}})).named("a time with a fraction loses it"),
        patch(MERGE, status.as_str(), &json!({"status": {"lastScheduleTime": "2020-01-01T02:00:00+02:00"}})).named("a time in another zone becomes UTC"),
        patch(STRATEGIC, status.as_str(), &json!({"status": {"active": [{"kind": "Job", "name": "x"}]}})).named("active is replaced by a strategic patch"),
        patch(STRATEGIC, status.as_str(), &json!({"status": {"active": [{"kind": "Job", "name": "y"}]}})).named("and replaced again, having no merge key"),
        patch(MERGE, format!("{CRONJOBS}/nobody/status"), &json!({"status": {}})).named("a status of an absent object"),
        post(status.as_str(), &cronjob("a")).named("a status cannot be posted"),
        delete(status.as_str()).named("a status cannot be deleted"),
        get(format!("{}/scale", a())).named("a CronJob has no scale"),
        get(format!("{}/status/more", a())).named("a status has nothing below it"),
        put(status.as_str(), &cronjob("a").with("/metadata/resourceVersion", json!("${a:/metadata/resourceVersion}"))).named("a status update of an older version conflicts"),
        patch(MERGE, a(), &json!({"status": {"lastScheduleTime": "2021-01-01T00:00:00Z"}})).named("a patch of the object does not reach the status"),
        patch(MERGE, status.as_str(), &json!({"status": {"unknown": 1}})).named("an unknown field of the status is dropped"),
    ]
}

fn bad_requests() -> Vec<Step> {
    let text = |body: &str| request("POST", CRONJOBS).header("content-type", "application/json").body(body);
    vec![
        text("{").named("a body that is no JSON"),
        text("").named("an empty body"),
        text("[]").named("a body that is a list"),
        text("{}").named("a body without a kind"),
        text("null").named("a body that is null"),
        text(r#"{"apiVersion":"batch/v1"}"#).named("a body without a kind but a version"),
        text(r#"{"kind":"CronJob"}"#).named("a body without a version"),
        text(r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}"#).named("a body of another kind"),
        text(r#"{"apiVersion":"v1","kind":"CronJob","metadata":{"name":"a"}}"#).named("a body of another version"),
        text(r#"{"apiVersion":"batch/v2","kind":"CronJob","metadata":{"name":"a"}}"#).named("a body of a version that does not exist"),
        text(r#"{"apiVersion":"a/b/c","kind":"CronJob"}"#).named("a body of a version that is none"),
        text(r#"{"apiVersion":"batch/v1","kind":"Nonsense"}"#).named("a body of a kind that does not exist"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":1}}"#).named("a name that is a number"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":"x"}"#).named("metadata that are text"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"schedule":5}}"#).named("a schedule that is a number"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"suspend":"yes"}}"#).named("a suspend that is text"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"successfulJobsHistoryLimit":"3"}}"#).named("a limit that is text"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"successfulJobsHistoryLimit":1.5}}"#).named("a limit that is a fraction"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"successfulJobsHistoryLimit":99999999999}}"#).named("a limit beyond 32 bits"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"jobTemplate":[]}}"#).named("a template that is a list"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a","labels":{"a":1}}}"#).named("a label that is a number"),
        text(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a","labels":["a"]}}"#).named("labels that are a list"),
        post(CRONJOBS, &cronjob("a")).header("content-type", "application/xml").named("an unknown content type"),
        post(CRONJOBS, &cronjob("defaulted")).header("content-type", "").named("no content type is read as JSON"),
        post(CRONJOBS, &cronjob("charset")).header("content-type", "application/json; charset=utf-8").named("a content type with a character set"),
        request("POST", CRONJOBS).header("content-type", "application/yaml").body(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: yaml\nspec:\n  schedule: '@daily'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n          - name: c\n            image: busybox\n")
            .named("a body in YAML"),
        request("POST", CRONJOBS).header("content-type", "application/yaml").body("a: [b\n").named("a body in broken YAML"),
        get(CRONJOBS).accept("application/xml").named("an answer that cannot be had"),
        get(CRONJOBS).accept("text/html").named("an answer in HTML cannot be had"),
        get(CRONJOBS).accept("*/*").named("any answer is JSON"),
        get(CRONJOBS).accept("").named("no wish is JSON"),
        get(CRONJOBS).accept("application/json;q=0.5, */*;q=0.1").named("wishes with weights"),
        get(CRONJOBS).accept("application/json;as=Nothing;v=v1;g=meta.k8s.io").named("a form that does not exist"),
        get(CRONJOBS).accept("application/json;as=Nothing;v=v1;g=meta.k8s.io,application/json").named("a form that does not exist, or plain"),
        get("/nothing").named("a path that does not exist"),
        get("/apis/nothing.example.com/v1/things").named("a group that does not exist"),
        get("/apis/batch/v7/cronjobs").named("a version that does not exist"),
        get("/apis/batch/v1/namespaces/${ns}/things").named("a resource that does not exist"),
        get("/apis/batch/v1/namespaces/${ns}/cronjobs/a/b/c").named("a path too long"),
        get("/api/v1/namespaces/${ns}/cronjobs").named("a resource of another group"),
        post("/apis/batch/v1/cronjobs", &cronjob("a")).named("a create without a namespace in the path"),
        put(CRONJOBS, &cronjob("a")).named("an update of the list"),
        patch(MERGE, CRONJOBS, &json!({})).named("a patch of the list"),
        post(format!("{CRONJOBS}/a"), &cronjob("a")).named("a create below a name"),
        request("BREW", CRONJOBS).named("a method that does not exist"),
        request("OPTIONS", CRONJOBS).named("a method that is not served"),
        get(format!("{CRONJOBS}?limit=x")).named("a limit that is no number"),
        get(format!("{CRONJOBS}?timeoutSeconds=x")).named("a timeout that is no number"),
        get(format!("{CRONJOBS}?watch=x&timeoutSeconds=1")).named("a watch that is neither true nor false"),
        get(format!("{CRONJOBS}?unknown=1")).named("an unknown parameter is ignored"),
        post(format!("{CRONJOBS}?fieldManager={}", "m".repeat(129)), &cronjob("a")).named("a field manager too long"),
        post(format!("{CRONJOBS}?fieldManager=a%0Ab"), &cronjob("a")).named("a field manager that cannot be printed"),
        post(format!("{CRONJOBS}?fieldManager=somebody"), &cronjob("managed")).named("a field manager in the query"),
        post(CRONJOBS, &cronjob("agent")).header("user-agent", "kubectl-create/v1.2 (x) y").named("a field manager from the user agent"),
        post(CRONJOBS, &cronjob("agentless")).header("user-agent", "").part(without_manager).named("a create without a user agent"),
    ]
}

/// A client library may set a field manager where the script does not.
fn without_manager(mut value: Value) -> Value {
    if let Some(fields) = value.pointer_mut("/metadata/managedFields") {
        *fields = json!("left out");
    }
    value
}

fn field_validation() -> Vec<Step> {
    let odd = |name: &str| {
        cronjob(name).with("/spec/color", json!("red")).with(&format!("{POD_SPEC}/containers/0/shape"), json!("round"))
    };
    let doubled =
        |name: &str| cronjob(name).to_string().replacen(r#""schedule":"#, r#""schedule":"1 1 1 1 1","schedule":"#, 1);
    let text = |path: String, body: String| request("POST", path).header("content-type", "application/json").body(body);
    let mode = |mode: &str| format!("{CRONJOBS}?fieldValidation={mode}");
    // The real server iterates over a map in random order and stops at the first such field, so each map has only one.
    let apply =
        |object: Value| patch(APPLY, format!("{CRONJOBS}/unsaid?fieldManager=m&fieldValidation=Strict"), &object);
    vec![
        post(CRONJOBS, &odd("unsaid")).named("unknown fields warn by default"),
        post(mode("Ignore"), &odd("ignored")).named("unknown fields are ignored where that is asked"),
        post(mode("Warn"), &odd("warned")).named("unknown fields warn where that is asked"),
        post(mode("Strict"), &odd("refused")).named("unknown fields are refused where that is asked"),
        post(mode("Odd"), &odd("odd")).named("a validation that does not exist"),
        text(mode("Strict"), doubled("doubled")).named("a field given twice is refused"),
        text(mode("Warn"), doubled("doubled")).named("a field given twice warns"),
        post(mode("Strict"), &cronjob("cased").with("/spec/Suspend", json!(true)))
            .named("a field of other case is unknown"),
        post(mode("Strict"), &cronjob("meta").with("/metadata/owner", json!("me")))
            .named("an unknown field of the metadata"),
        post(mode("Strict"), &cronjob("top").with("/extra", json!({}))).named("an unknown field at the top"),
        put(format!("{CRONJOBS}/unsaid?fieldValidation=Strict"), &odd("unsaid")).named("an update is validated"),
        patch(MERGE, format!("{CRONJOBS}/unsaid?fieldValidation=Strict"), &json!({"spec": {"color": "blue"}}))
            .named("a merge patch is validated"),
        patch(MERGE, format!("{CRONJOBS}/unsaid"), &json!({"spec": {"color": "blue"}})).named("a merge patch warns"),
        patch(STRATEGIC, format!("{CRONJOBS}/unsaid?fieldValidation=Strict"), &json!({"spec": {"color": "blue"}}))
            .named("a strategic patch is validated"),
        patch(
            JSON_PATCH,
            format!("{CRONJOBS}/unsaid?fieldValidation=Strict"),
            &json!([{"op": "add", "path": "/spec/color", "value": "blue"}]),
        )
        .named("a JSON patch is validated"),
        apply(cronjob("unsaid").with("/spec/color", json!("red"))).named("an apply is validated"),
        apply(cronjob("unsaid").with(&format!("{POD_SPEC}/containers/0/shape"), json!("round")))
            .named("an apply is validated in an item of a list with keys"),
        apply(cronjob("unsaid").with(&format!("{POD_SPEC}/tolerations"), json!([{"key": "a"}, {"colour": "red"}])))
            .named("an apply is validated in an item of a list without keys"),
        apply(cronjob("unsaid").with(
            &format!("{POD_SPEC}/containers"),
            json!([{"name": "c", "image": "c", "shape": "round"}, {"name": "d", "image": "d", "size": 1}]),
        ))
        .named("an apply is validated in several places"),
        post(format!("{PODS}?fieldValidation=Strict"), &pod("p").with("/spec/containers/0/livenessprobe", json!({})))
            .named("an unknown field of a Pod"),
        post(format!("{JOBS}?fieldValidation=Strict"), &job("j").with("/spec/retries", json!(1)))
            .named("an unknown field of a Job"),
        post(
            format!("{NAMESPACES}?fieldValidation=Strict&dryRun=All"),
            &namespace("t-strict").with("/spec/size", json!(1)),
        )
        .named("an unknown field of a namespace"),
        post(format!("{LEASES}?fieldValidation=Strict"), &lease("l").with("/spec/holder", json!("me")))
            .named("an unknown field of a Lease"),
        post(format!("{EVENTS}?fieldValidation=Strict"), &event("e").with("/note", json!("x")))
            .named("an unknown field of an Event"),
    ]
}
