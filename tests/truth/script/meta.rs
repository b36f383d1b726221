//! Names, labels, annotations, owner references, generated names.

use serde_json::json;

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![scenario("names", names()), scenario("metadata", metadata()), scenario("generated", generated())]
}

fn names() -> Vec<Step> {
    let long = |length: usize| "n".repeat(length);
    let mut steps: Vec<Step> = [
        ("an empty name", String::new()),
        ("a name in capitals", "Abc".into()),
        ("a name with an underscore", "a_b".into()),
        ("a name that ends in a dash", "a-".into()),
        ("a name that starts with a dot", ".a".into()),
        ("a name with a space", "a b".into()),
        ("a name with a slash", "a/b".into()),
        ("a name with a percent sign", "a%b".into()),
        ("a name that is a dot", ".".into()),
        ("a name with dots", "a.b.c".into()),
        ("a name of 52 characters", long(52)),
        ("a name of 53 characters", long(53)),
        ("a name of 63 characters", long(63)),
        ("a name of 254 characters", long(254)),
    ]
    .into_iter()
    .map(|(sentence, name)| post(CRONJOBS, &cronjob(&name)).named(format!("CronJob: {sentence}")))
    .collect();
    for (sentence, name) in [
        ("a name of 63 characters", long(63)),
        ("a name of 64 characters", long(64)),
        ("a name of 254 characters", long(254)),
        ("a name in capitals", "Abc".into()),
        ("a name with dots", "a.b.c".into()),
    ] {
        steps.push(post(JOBS, &job(&name)).named(format!("Job: {sentence}")));
        steps.push(post(PODS, &pod(&name)).named(format!("Pod: {sentence}")));
        steps.push(post(LEASES, &lease(&name)).named(format!("Lease: {sentence}")));
        steps.push(post(EVENTS, &event(&name)).named(format!("Event: {sentence}")));
        if name != "n".repeat(63) {
            steps.push(
                post(format!("{NAMESPACES}?dryRun=All"), &namespace(&name)).named(format!("Namespace: {sentence}")),
            );
        }
    }
    steps.push(get(format!("{CRONJOBS}/A_B")).named("a get of a name that cannot be"));
    steps.push(post(CRONJOBS, &cronjob("x").without("/metadata")).named("no metadata at all"));
    steps
}

fn metadata() -> Vec<Step> {
    let bad = |sentence: &str, pointer: &str, value: serde_json::Value| {
        post(CRONJOBS, &cronjob("a").with(pointer, value)).named(sentence)
    };
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "00000000-0000-0000-0000-000000000003"});
    // A stored object needs an existing owner, or it is collected.
    let living = owner.clone().with("/uid", json!("${p:/metadata/uid}"));
    vec![
        post(PODS, &pod("p")).id("p").named("an owner"),
        bad("a label key in error", "/metadata/labels", json!({"a b": "c"})),
        bad("a label value in error", "/metadata/labels", json!({"a": "b c"})),
        bad("a label value too long", "/metadata/labels", json!({"a": "b".repeat(64)})),
        bad("a label key with a bad prefix", "/metadata/labels", json!({"Ex_ample/a": "b"})),
        bad("a label key with two slashes", "/metadata/labels", json!({"a/b/c": "b"})),
        bad("an annotation key in error", "/metadata/annotations", json!({"a b": "c"})),
        bad("an annotation with an empty key", "/metadata/annotations", json!({"": "c"})),
        bad("annotations too long", "/metadata/annotations", json!({"a": "b".repeat(262_145)})),
        bad("an owner without a uid", "/metadata/ownerReferences", json!([owner.clone().with("/uid", json!(""))])),
        bad("an owner without a name", "/metadata/ownerReferences", json!([owner.clone().with("/name", json!(""))])),
        bad("an owner without a kind", "/metadata/ownerReferences", json!([owner.clone().with("/kind", json!(""))])),
        bad(
            "an owner without a version",
            "/metadata/ownerReferences",
            json!([owner.clone().with("/apiVersion", json!(""))]),
        ),
        bad(
            "an owner of a bad version",
            "/metadata/ownerReferences",
            json!([owner.clone().with("/apiVersion", json!("a/b/c"))]),
        ),
        bad(
            "an owner that is an Event",
            "/metadata/ownerReferences",
            json!([owner.clone().with("/kind", json!("Event"))]),
        ),
        bad(
            "two controllers",
            "/metadata/ownerReferences",
            json!([
                owner.clone().with("/controller", json!(true)),
                owner
                    .clone()
                    .with("/controller", json!(true))
                    .with("/uid", json!("00000000-0000-0000-0000-000000000004"))
            ]),
        ),
        bad("one owner twice warns", "/metadata/ownerReferences", json!([living, living])),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"ownerReferences": null}}))
            .named("its owners are taken away"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"labels": {"a b": "c"}}}))
            .named("a label in error in a patch"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}))
            .named("labels and annotations are set"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"labels": {"a": null}, "annotations": null}}))
            .named("and removed"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"name": "b"}})).named("a name cannot be patched"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"namespace": "other"}}))
            .named("a namespace cannot be patched"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"generateName": "b-"}}))
            .named("a generateName can be patched"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"creationTimestamp": null}}))
            .named("a creation time cannot be removed"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"managedFields": []}}))
            .named("managed fields can be emptied"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"managedFields": [{}]}})).named("and reset"),
        patch(
            MERGE,
            format!("{CRONJOBS}/a"),
            &json!({"metadata": {"ownerReferences": [owner.clone().with("/uid", json!(""))]}}),
        )
        .named("an owner in error in a patch"),
        bad(
            "a label of an empty value and an annotation",
            "/metadata",
            json!({"name": "empty", "labels": {"a": ""}, "annotations": {"b": ""}}),
        ),
        bad(
            "empty maps are left out",
            "/metadata",
            json!({"name": "emptier", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}),
        ),
        bad(
            "nulls are left out",
            "/metadata",
            json!({"name": "nulls", "labels": null, "annotations": null, "finalizers": null}),
        ),
    ]
}

fn generated() -> Vec<Step> {
    let of = |base: &str| cronjob("x").without("/metadata/name").with("/metadata/generateName", json!(base));
    vec![
        post(CRONJOBS, &of("gen-")).id("g").named("a generated name"),
        get(format!("{CRONJOBS}/${{g:/metadata/name}}")).named("it is found by it"),
        post(CRONJOBS, &of("gen-")).id("h").named("another has another name"),
        post(CRONJOBS, &of("Gen-")).named("a base in error"),
        post(CRONJOBS, &of("gen_")).named("a base with an underscore"),
        post(CRONJOBS, &of("g".repeat(60).as_str())).named("a long base for a CronJob"),
        post(JOBS, &job("x").without("/metadata/name").with("/metadata/generateName", json!("j")))
            .named("a base without a dash"),
        post(PODS, &pod("x").without("/metadata/name").with("/metadata/generateName", json!("p.")))
            .named("a base that ends in a dot"),
        post(EVENTS, &event("x").without("/metadata/name").with("/metadata/generateName", json!("e-")))
            .named("an Event with a generated name"),
        post(CRONJOBS, &of("gen-").with("/metadata/name", json!("both"))).named("name and base: the name counts"),
        post(CRONJOBS, &of("")).named("an empty base and no name"),
        delete(format!("{CRONJOBS}/${{g:/metadata/name}}")).named("it is deleted by its name"),
    ]
}
