//! Watches: start versions, selectors, output forms, and expired history.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("watch", watches()),
        scenario("watch-selectors", selectors()),
        scenario("watch-initial", initial()),
        scenario("watch-open", open()),
        Scenario { name: "compaction", alone: true, steps: compaction() },
    ]
}

/// Bookmarks depend on the clock, except the one that ends the initial events.
fn is_by_the_clock(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null()
}

/// The type, name, version and schedule of every event; an error as a whole.
fn brief(value: Value) -> Value {
    let Some(events) = value.as_array() else { return value };
    let one = |event: &Value| {
        let object = &event["object"];
        if object["kind"] == "Status" || event["type"] == "BOOKMARK" {
            return event.clone();
        }
        let (meta, spec) = (&object["metadata"], &object["spec"]);
        json!({"type": event["type"], "object": {"kind": object["kind"], "metadata": {"name": meta["name"], "resourceVersion": meta["resourceVersion"],
            "labels": meta["labels"], "deletionTimestamp": meta["deletionTimestamp"]}, "schedule": spec["schedule"]}})
    };
    events.iter().filter(|event| !is_by_the_clock(event)).map(one).collect()
}

fn nothing(_: Value) -> Value {
    Value::Null
}

/// Only the version, so that the numbering agrees.
fn version(value: Value) -> Value {
    json!({"metadata": {"name": value["metadata"]["name"], "resourceVersion": value["metadata"]["resourceVersion"]}})
}

fn make(name: &str) -> Request {
    post(CRONJOBS, &cronjob(name)).part(version)
}

fn watches() -> Vec<Step> {
    let since = |id: &str| format!("resourceVersion=${{{id}:/metadata/resourceVersion}}");
    let path = "/apis/batch/v1/watch/namespaces/${ns}/cronjobs";
    vec![
        get(CRONJOBS).id("empty").named("the empty list"),
        make("a").id("a").named("a is created"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"spec": {"schedule": "1 1 1 1 1"}}))
            .id("a2")
            .part(version)
            .named("a is changed"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"spec": {"schedule": "1 1 1 1 1"}}))
            .part(version)
            .named("a is not changed"),
        make("b").id("b").named("b is created"),
        delete(format!("{CRONJOBS}/a")).part(nothing).named("a is deleted"),
        watch(CRONJOBS, &since("empty")).named("everything since the empty list, whole"),
        watch(CRONJOBS, &since("a")).part(brief).named("since a was created"),
        watch(CRONJOBS, &since("a2")).part(brief).named("since a was changed"),
        watch(CRONJOBS, &since("b")).part(brief).named("since b was created"),
        watch(CRONJOBS, "").part(brief).named("from what is there now"),
        watch(CRONJOBS, "resourceVersion=0").part(brief).named("from any version"),
        watch(CRONJOBS, "resourceVersion=abc").named("from a version that is no number"),
        watch(CRONJOBS, "resourceVersion=999999999999").part(brief).named("from a version to come"),
        watch(path, &since("a2")).part(brief).named("the old form of a watch"),
        get(format!("{CRONJOBS}?watch=true&timeoutSeconds=1&{}", since("b"))).part(brief).named("watch=true"),
        get(format!("{CRONJOBS}?watch=false&{}", since("b"))).part(brief_list).named("watch=false is a list"),
        watch(&format!("{CRONJOBS}/b"), "").part(version).named("a watch of one object is a get"),
        watch("/apis/batch/v1/watch/namespaces/${ns}/cronjobs/b", "")
            .part(brief)
            .named("the old form of a watch of one object"),
        watch(CRONJOBS, &format!("{}&resourceVersionMatch=NotOlderThan", since("b")))
            .named("a match without initial events"),
        watch(CRONJOBS, &format!("{}&limit=1", since("a2"))).part(brief).named("a limit does not limit a watch"),
        watch(CRONJOBS, "continue=e30").part(brief).named("a token in a watch"),
        watch("/apis/batch/v1/namespaces/no-such/cronjobs", "").part(brief).named("a namespace that does not exist"),
        watch(CRONJOBS, &since("empty")).accept(TABLE).named("a table is watched"),
        watch(CRONJOBS, &format!("{}&includeObject=None", since("b"))).accept(TABLE).named("a table without objects"),
        watch(CRONJOBS, &since("b")).accept(PARTIAL).named("metadata are watched"),
        watch(CRONJOBS, "").accept("application/json;stream=watch").part(brief).named("a stream is asked for"),
        watch(PODS, "").named("Pods that are not there"),
        watch(JOBS, "labelSelector=x%3Dy").named("Jobs that are not there"),
        post(format!("{CRONJOBS}?watch=1"), &cronjob("q")).part(version).named("a create does not watch"),
        delete(format!("{CRONJOBS}?watch=1&labelSelector=a%3Db")).part(nothing).named("a deletion does not watch"),
    ]
}

fn brief_list(value: Value) -> Value {
    json!(
        value["items"]
            .as_array()
            .map(|items| items.iter().map(|item| item["metadata"]["name"].clone()).collect::<Vec<_>>())
    )
}

fn selectors() -> Vec<Step> {
    let label = |value: Value| {
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"labels": {"on": value}}})).part(version)
    };
    let since = "resourceVersion=${start:/metadata/resourceVersion}";
    vec![
        get(CRONJOBS).id("start").part(nothing).named("the start"),
        make("a").named("a without the label"),
        label(json!("yes")).named("a comes in"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"spec": {"suspend": true}}))
            .part(version)
            .named("a changes inside"),
        label(json!("no")).named("a goes out"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"spec": {"suspend": false}}))
            .part(version)
            .named("a changes outside"),
        label(json!("yes")).named("a comes in again"),
        delete(format!("{CRONJOBS}/a")).part(nothing).named("a is deleted inside"),
        watch(CRONJOBS, &format!("{since}&labelSelector=on%3Dyes")).part(brief).named("those with the label"),
        watch(CRONJOBS, &format!("{since}&labelSelector=on%21%3Dyes")).part(brief).named("those without"),
        watch(CRONJOBS, &format!("{since}&fieldSelector=metadata.name%3Da")).part(brief).named("by name"),
        watch(CRONJOBS, &format!("{since}&fieldSelector=metadata.name%3Db")).part(brief).named("by another name"),
        watch(CRONJOBS, &format!("{since}&fieldSelector=spec.color%3Dred")).named("by a field that is not served"),
        watch(CRONJOBS, &format!("{since}&labelSelector=a%20b")).named("by a selector in error"),
        post(PODS, &pod("p")).id("p").part(version).named("a Pod"),
        patch(MERGE, format!("{PODS}/p/status"), &json!({"status": {"phase": "Running"}}))
            .part(version)
            .named("it runs"),
        patch(MERGE, format!("{PODS}/p/status"), &json!({"status": {"phase": "Succeeded"}}))
            .part(version)
            .named("it ends"),
        watch(PODS, "resourceVersion=${p:/metadata/resourceVersion}&fieldSelector=status.phase%3DRunning")
            .part(brief)
            .named("Pods that run"),
        watch(PODS, "resourceVersion=${p:/metadata/resourceVersion}&fieldSelector=status.phase%21%3DRunning")
            .part(brief)
            .named("Pods that do not"),
        post(CRONJOBS, &cronjob("f").with("/metadata/finalizers", json!(["example.com/hold"])))
            .id("f")
            .part(version)
            .named("one with a finalizer"),
        delete(format!("{CRONJOBS}/f")).part(version).named("it is marked"),
        patch(MERGE, format!("{CRONJOBS}/f"), &json!({"metadata": {"finalizers": null}}))
            .part(nothing)
            .named("it is released"),
        watch(CRONJOBS, "resourceVersion=${f:/metadata/resourceVersion}")
            .part(brief)
            .named("a mark is a change, a release a deletion"),
        post(JOBS, &job("j")).id("j").part(version).named("a Job"),
        post(format!("{JOBS}?dryRun=All"), &job("k")).part(nothing).named("a dry run"),
        watch(JOBS, "resourceVersion=${j:/metadata/resourceVersion}").part(brief).named("a dry run is not seen"),
    ]
}

fn initial() -> Vec<Step> {
    let all = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    vec![
        make("a").id("a").named("a"),
        make("b").id("b").named("b"),
        get(CRONJOBS).part(nothing).named("the list"),
        watch(CRONJOBS, all).part(brief).named("initial events and their bookmark"),
        watch(CRONJOBS, &format!("{all}&resourceVersion=0")).part(brief).named("initial events of any version"),
        watch(CRONJOBS, &format!("{all}&resourceVersion=${{b:/metadata/resourceVersion}}")).part(brief).named("initial events not older than a version"),
        watch(CRONJOBS, &format!("{all}&labelSelector=none%3Dnone")).part(brief).named("no initial events, only the bookmark"),
        watch(CRONJOBS, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan").part(brief).named("without bookmarks"),
        watch(CRONJOBS, "sendInitialEvents=true").named("without a match"),
        watch(CRONJOBS, "sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true").named("with the wrong match"),
        watch(CRONJOBS, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").part(brief).named("none asked for"),
        watch(CRONJOBS, "sendInitialEvents=false").named("none asked for, without a match"),
        watch(CRONJOBS, "sendInitialEvents=maybe").named("neither asked for nor not"),
        watch(CRONJOBS, &format!("{all}&resourceVersion=abc")).named("a version that is no number"),
        watch(CRONJOBS, all).accept(TABLE).part(types).named("initial events as tables"),
        watch(CRONJOBS, all).accept(PARTIAL).part(types).named("initial events as metadata"),
        get(format!("{CRONJOBS}?watch=1&timeoutSeconds=4&allowWatchBookmarks=true&resourceVersion=${{b:/metadata/resourceVersion}}")).part(bookmark).until("/0/type", json!("BOOKMARK")).named("a bookmark comes before the end"),
        watch(CRONJOBS, "allowWatchBookmarks=true").part(brief).named("bookmarks from what is there now"),
        watch(CRONJOBS, "allowWatchBookmarks=true&resourceVersion=0").part(brief).named("bookmarks from any version"),
        watch(CRONJOBS, "allowWatchBookmarks=true&resourceVersion=${b:/metadata/resourceVersion}").part(brief).named("bookmarks from a version"),
        watch(EVENTS, "allowWatchBookmarks=true").part(brief).named("bookmarks of Events"),
        watch(EVENTS, all).part(brief).named("initial events of Events"),
    ]
}

/// The last event, which is a bookmark, whatever the number of events before it.
fn bookmark(value: Value) -> Value {
    value.as_array().and_then(|events| events.last()).cloned().unwrap_or(Value::Null)
}

fn types(value: Value) -> Value {
    let Some(events) = value.as_array() else { return value };
    events.iter().filter(|event| event["type"] != "BOOKMARK" || !event.pointer("/object/rows/0/object/metadata/annotations").is_none_or(Value::is_null)
        || !event["object"]["metadata"]["annotations"].is_null()).map(|event| json!({"type": event["type"], "kind": event["object"]["kind"],
        "annotations": event["object"]["metadata"]["annotations"], "row": event["object"]["rows"][0]["object"]["metadata"]["annotations"]})).collect()
}

fn open() -> Vec<Step> {
    let opened = |name: &'static str, path: &str, query: &str| {
        get(format!("{path}?watch=1&timeoutSeconds=15&{query}")).part(brief).open(name)
    };
    vec![
        get(CRONJOBS).id("start").part(nothing).named("the start"),
        opened("all", CRONJOBS, "resourceVersion=${start:/metadata/resourceVersion}"),
        opened("some", CRONJOBS, "resourceVersion=${start:/metadata/resourceVersion}&labelSelector=on%3Dyes"),
        opened("one", CRONJOBS, "resourceVersion=${start:/metadata/resourceVersion}&fieldSelector=metadata.name%3Db"),
        opened("events", EVENTS, ""),
        make("a").named("a is created"),
        make("b").named("b is created"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"labels": {"on": "yes"}}}))
            .part(version)
            .named("a is labelled"),
        patch(MERGE, format!("{CRONJOBS}/b/status"), &json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}))
            .part(version)
            .named("b has a status"),
        post(EVENTS, &event("e")).part(version).named("an Event"),
        delete(CRONJOBS).part(nothing).named("all are deleted"),
        Step::Close("all of it".into(), "all"),
        Step::Close("what bore the label".into(), "some"),
        Step::Close("what bore the name".into(), "one"),
        Step::Close("the Event".into(), "events"),
    ]
}

fn compaction() -> Vec<Step> {
    vec![
        get(CRONJOBS).id("old").part(nothing).named("an old list"),
        make("a").id("a").named("a"),
        make("b").named("b"),
        make("c").named("c"),
        post(EVENTS, &event("e")).id("e").part(version).named("an Event"),
        get(format!("{CRONJOBS}?limit=1")).id("page").part(nothing).named("a page"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"spec": {"suspend": true}})).id("a2").part(version).named("a changes"),
        delete(format!("{CRONJOBS}/b")).part(nothing).named("b is deleted"),
        Step::Compact,
        watch(CRONJOBS, "resourceVersion=${old:/metadata/resourceVersion}").named("a watch from before"),
        watch(CRONJOBS, "resourceVersion=${a:/metadata/resourceVersion}").named("a watch from a's creation"),
        watch(EVENTS, "resourceVersion=${old:/metadata/resourceVersion}").named("a watch of Events from before"),
        watch(CRONJOBS, "resourceVersion=${old:/metadata/resourceVersion}").accept(TABLE).named("a watch of tables from before"),
        get(format!("{CRONJOBS}?limit=1&continue=${{page:/metadata/continue}}")).id("expired").named("a page from before"),
        get(format!("{CRONJOBS}?limit=5&continue=${{expired:/metadata/continue}}")).part(brief_list).named("the rest with the token that came with the refusal"),
        get(format!("{CRONJOBS}?resourceVersion=${{old:/metadata/resourceVersion}}&resourceVersionMatch=Exact")).named("exactly the list from before"),
        get(format!("{CRONJOBS}?resourceVersion=${{old:/metadata/resourceVersion}}")).part(brief_list).named("a list not older than before"),
        get(format!("{CRONJOBS}/a?resourceVersion=${{old:/metadata/resourceVersion}}")).part(version).named("a get not older than before"),
        get(CRONJOBS).id("now").part(brief_list).named("the list now"),
        watch(CRONJOBS, "").part(brief).named("a watch from now"),
        watch(CRONJOBS, "resourceVersion=${now:/metadata/resourceVersion}").part(brief).named("a watch from the list now"),
        make("d").named("d is created"),
        watch(CRONJOBS, "resourceVersion=${now:/metadata/resourceVersion}").part(brief).named("a watch sees d"),
        watch(CRONJOBS, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=${old:/metadata/resourceVersion}")
            .part(brief).named("initial events not older than before"),
    ]
}
