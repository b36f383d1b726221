//! Selectors, paging, resource versions of lists.

use serde_json::json;

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![scenario("selectors", selectors()), scenario("paging", paging()), scenario("list-versions", versions())]
}

fn named(name: &str, labels: serde_json::Value) -> Request {
    post(CRONJOBS, &cronjob(name).with("/metadata/labels", labels)).part(nothing)
}

/// Other scenarios compare the setup steps.
fn nothing(_: serde_json::Value) -> serde_json::Value {
    serde_json::Value::Null
}

/// The names in a list, and the list's own metadata.
fn names(value: serde_json::Value) -> serde_json::Value {
    let names =
        |items: &Vec<serde_json::Value>| items.iter().map(|item| item["metadata"]["name"].clone()).collect::<Vec<_>>();
    match value["items"].as_array() {
        Some(items) => json!({"metadata": value["metadata"], "names": names(items)}),
        None => value,
    }
}

fn selectors() -> Vec<Step> {
    let mut steps = vec![
        named("a", json!({"app": "one", "tier": "web"})).named("a"),
        named("b", json!({"app": "two"})).named("b"),
        named("c", json!({"app": "one", "tier": "db"})).named("c"),
        named("d", json!({})).named("d"),
    ];
    for selector in [
        "app=one",
        "app==one",
        "app!=one",
        "app",
        "!app",
        "app in (one,two)",
        "app in (one)",
        "app notin (one)",
        "app=one,tier=web",
        "app=one,!tier",
        "app=",
        "app in ()",
        "app in (one",
        "=one",
        "app=one=two",
        "app>1",
        "app>x",
        "n>1",
        "app=a b",
        "a b=c",
        "app,",
        ",",
        "app in (one),tier notin (db)",
        "app exists",
        "x/y/z=1",
        "app= one",
        " app = one ",
    ] {
        let query = encode(selector);
        steps.push(
            get(format!("{CRONJOBS}?labelSelector={query}"))
                .part(names)
                .named(format!("the label selector {selector:?}")),
        );
    }
    for selector in [
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        "metadata.namespace=${ns}",
        "metadata.namespace=other",
        "metadata.name=a,metadata.namespace=${ns}",
        "metadata.name",
        "metadata.name=a=b",
        "metadata.uid=x",
        "spec.schedule=x",
        "status.active=1",
        "=a",
        "metadata.name in (a)",
        "metadata.name=",
    ] {
        let query = encode(selector);
        steps.push(
            get(format!("{CRONJOBS}?fieldSelector={query}"))
                .part(names)
                .named(format!("the field selector {selector:?}")),
        );
    }
    for (kind, path) in
        [("Jobs", JOBS), ("Pods", PODS), ("Leases", LEASES), ("Namespaces", NAMESPACES), ("Events", EVENTS)]
    {
        steps.push(
            get(format!("{path}?fieldSelector=spec.color%3Dred"))
                .named(format!("{kind} by a field that is not served")),
        );
        steps.push(get(format!("{path}?fieldSelector=metadata.name%3Dnone")).named(format!("{kind} by name")));
    }
    steps
}

fn encode(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            ' ' => "%20".to_owned(),
            '=' | '!' | '(' | ')' | ',' | '>' | '/' => format!("%{:02X}", c as u32),
            other => other.to_string(),
        })
        .collect()
}

fn paging() -> Vec<Step> {
    let page = |query: &str| get(format!("{CRONJOBS}?{query}")).part(names);
    let mut steps: Vec<Step> =
        (1..=5).map(|i| named(&format!("p{i}"), json!({"odd": (i % 2).to_string()})).named(format!("p{i}"))).collect();
    steps.extend([
        page("limit=2").id("one").named("the first page of two"),
        page("limit=2&continue=${one:/metadata/continue}").id("two").named("the second page"),
        page("limit=2&continue=${two:/metadata/continue}").named("the last page"),
        page("limit=5").named("a page that holds all"),
        page("limit=4").named("a page that holds all but one"),
        page("limit=0").named("no limit"),
        page("limit=-1").named("a negative limit"),
        page("limit=1&labelSelector=odd%3D1").id("odd").named("the first page of the odd ones"),
        page("limit=2&labelSelector=odd%3D1&continue=${odd:/metadata/continue}").named("the rest of the odd ones"),
        page("continue=${one:/metadata/continue}").named("the rest without a limit"),
        page("limit=2&continue=nonsense").named("a token that is none"),
        page("limit=2&continue=e30").named("a token that is an empty object"),
        page("limit=2&continue=${one:/metadata/continue}&resourceVersion=999")
            .named("a token and a version exclude each other"),
        page("limit=2&continue=${one:/metadata/continue}&resourceVersion=0").named("but for version zero"),
        page("limit=2&continue=${one:/metadata/continue}&resourceVersionMatch=Exact")
            .named("a token and a match exclude each other"),
        named("p6", json!({})).named("one more is created"),
        delete(format!("{CRONJOBS}/p4")).part(nothing).named("and one is deleted"),
        get(CRONJOBS).part(nothing).named("which the cache knows once it was asked for what is there"),
        page("limit=9&continue=${one:/metadata/continue}").named("the rest is as it was at the first page"),
        page("limit=9&resourceVersion=${one:/metadata/resourceVersion}&resourceVersionMatch=Exact")
            .named("the list at an older version"),
        page("limit=2&resourceVersion=${one:/metadata/resourceVersion}&resourceVersionMatch=Exact")
            .id("exact")
            .named("a page at an older version"),
        page("limit=2&resourceVersion=0").named("a limit at version zero is ignored"),
        get(format!("{CRONJOBS}?limit=1")).accept(TABLE).part(metadata).named("a page of a table"),
        get(format!("{CRONJOBS}?limit=1")).accept(PARTIAL_LIST).part(names).named("a page of metadata"),
        get("/apis/batch/v1/cronjobs?limit=1&labelSelector=odd%3D7").part(names).named("a page of nothing"),
    ]);
    steps
}

fn metadata(value: serde_json::Value) -> serde_json::Value {
    json!({"metadata": value["metadata"], "rows": value["rows"].as_array().map(Vec::len)})
}

fn versions() -> Vec<Step> {
    let list = |query: &str| get(format!("{CRONJOBS}?{query}")).part(names);
    vec![
        post(CRONJOBS, &cronjob("a")).id("a").part(nothing).named("a"),
        post(CRONJOBS, &cronjob("b")).id("b").part(nothing).named("b"),
        list("").id("now").named("the newest list"),
        list("resourceVersion=0").named("any version"),
        list("resourceVersion=${b:/metadata/resourceVersion}").named("not older than a version"),
        list("resourceVersion=${a:/metadata/resourceVersion}&resourceVersionMatch=Exact").named("exactly a version"),
        list("resourceVersion=${a:/metadata/resourceVersion}&resourceVersionMatch=NotOlderThan")
            .named("not older than a version, said so"),
        list("resourceVersionMatch=Exact").named("a match without a version"),
        list("resourceVersionMatch=NotOlderThan").named("the other match without a version"),
        list("resourceVersion=0&resourceVersionMatch=Exact").named("exactly version zero"),
        list("resourceVersion=1&resourceVersionMatch=Odd").named("a match that does not exist"),
        list("resourceVersion=abc").named("a version that is no number"),
        list("resourceVersion=999999999999&resourceVersionMatch=Exact&timeoutSeconds=1")
            .named("exactly a version to come"),
        list("resourceVersion=999999999999&timeoutSeconds=1").named("a version to come"),
        get(format!("{CRONJOBS}/a?resourceVersion=0")).part(name).named("a get of any version"),
        get(format!("{CRONJOBS}/a?resourceVersion=${{a:/metadata/resourceVersion}}"))
            .part(name)
            .named("a get not older than a version"),
        get(format!("{CRONJOBS}/a?resourceVersion=abc")).named("a get of a version that is no number"),
        get(format!("{CRONJOBS}/a?resourceVersion=999999999999")).named("a get of a version to come"),
        list("sendInitialEvents=true").named("initial events without a watch"),
        list("allowWatchBookmarks=true").named("bookmarks without a watch"),
    ]
}

fn name(value: serde_json::Value) -> serde_json::Value {
    if value["kind"] == "Status" { value } else { value["metadata"]["name"].clone() }
}
