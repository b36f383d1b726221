//! Namespaces, Events, Leases, reviews.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("namespaces", namespaces()),
        scenario("events", events()),
        scenario("leases", leases()),
        scenario("reviews", reviews()),
    ]
}

fn namespaces() -> Vec<Step> {
    let made = "t-made";
    let path = format!("{NAMESPACES}/{made}");
    vec![
        post(NAMESPACES, &namespace(made)).named("a namespace"),
        post(NAMESPACES, &namespace(made)).named("it exists already"),
        get(path.as_str()).named("it is active"),
        get(format!("{NAMESPACES}?fieldSelector=metadata.name%3D{made}")).named("by name"),
        get(format!("{NAMESPACES}?fieldSelector=status.phase%3DActive,metadata.name%3D{made}")).named("by phase"),
        get(format!("{NAMESPACES}?labelSelector=kubernetes.io%2Fmetadata.name%3D{made}")).named("by its own label"),
        patch(MERGE, path.as_str(), &json!({"metadata": {"labels": {"a": "b"}}})).named("a label is added"),
        patch(MERGE, path.as_str(), &json!({"metadata": {"labels": {"kubernetes.io/metadata.name": null}}}))
            .named("its own label comes back"),
        patch(MERGE, path.as_str(), &json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}}))
            .named("its own label cannot change"),
        patch(MERGE, path.as_str(), &json!({"spec": {"finalizers": []}})).named("its finalizers cannot be patched"),
        post(format!("{NAMESPACES}?dryRun=All"), &namespace("T-Bad")).named("a name in capitals"),
        post(
            format!("/api/v1/namespaces/{made}/pods"),
            &pod("p").with("/metadata/finalizers", json!(["example.com/hold"])),
        )
        .named("a Pod in it that holds on"),
        post(format!("/apis/batch/v1/namespaces/{made}/cronjobs"), &cronjob("c")).named("a CronJob in it"),
        delete(path.as_str()).named("it is deleted"),
        get(path.as_str()).part(without_conditions).named("it is terminating"),
        delete(path.as_str()).part(without_conditions).named("a second deletion"),
        post(format!("/apis/batch/v1/namespaces/{made}/cronjobs"), &cronjob("d")).named("nothing can be created in it"),
        post(format!("/apis/batch/v1/namespaces/{made}/jobs"), &job("d")).named("a Job neither"),
        patch(APPLY, format!("/apis/batch/v1/namespaces/{made}/jobs/e?fieldManager=m"), &job("e"))
            .named("nor can it be applied"),
        get(format!("/api/v1/namespaces/{made}/pods/p"))
            .until("/metadata/deletionGracePeriodSeconds", json!(0))
            .part(without_conditions)
            .named("its Pod is marked"),
        get(format!("/apis/batch/v1/namespaces/{made}/cronjobs/c"))
            .named("its CronJob stays as long as there are Pods"),
        patch(MERGE, format!("/api/v1/namespaces/{made}/pods/p"), &json!({"metadata": {"finalizers": null}}))
            .part(no_body)
            .named("the Pod lets go"),
        get(path.as_str()).until_status(404).named("the namespace is gone"),
        post(NAMESPACES, &namespace(made)).named("it can be made again"),
        get(format!("/apis/batch/v1/namespaces/{made}/cronjobs")).named("it is empty"),
        delete(path.as_str()).named("and deleted again"),
        get(path.as_str()).until_status(404).named("and is gone"),
        delete(format!("{NAMESPACES}/t-never")).named("a namespace that does not exist"),
        delete(format!("{NAMESPACES}/kube-system")).named("a namespace that must not go"),
        delete(format!("{NAMESPACES}/default")).named("the default namespace must not go"),
        delete(NAMESPACES).named("namespaces have no deletecollection"),
        get(format!("{NAMESPACES}/default")).part(without_managed).named("the default namespace is there"),
        get(format!("{NAMESPACES}/kube-system")).part(without_managed).named("kube-system, too"),
    ]
}

/// The namespace controller's findings depend on its progress.
fn without_conditions(value: Value) -> Value {
    value.without("/status/conditions").without("/metadata/resourceVersion").without("/metadata/managedFields")
}

fn without_managed(value: Value) -> Value {
    value.without("/metadata/managedFields")
}

fn no_body(_: Value) -> Value {
    Value::Null
}

fn events() -> Vec<Step> {
    let a = format!("{EVENTS}/a");
    vec![
        post(EVENTS, &event("a")).named("an Event"),
        get(a.as_str()).named("it is got as it was created"),
        patch(STRATEGIC, a.as_str(), &json!({"count": 2, "lastTimestamp": "2020-01-01T00:05:00Z"})).named("its count is patched"),
        patch(STRATEGIC, format!("{EVENTS}/nobody"), &json!({"count": 2})).named("a patch of an absent object"),
        put(a.as_str(), &event("a").with("/message", json!("other"))).named("it is updated"),
        post(EVENTS, &event("b").with("/involvedObject/namespace", json!("default"))).named("its object must be of its namespace"),
        post(EVENTS, &event("b").with("/involvedObject/namespace", json!(""))).named("or of none"),
        post(EVENTS, &event("c").without("/involvedObject")).named("no object"),
        post(EVENTS, &event("d").with("/type", json!("Odd"))).named("a type that does not exist"),
        post(EVENTS, &event("f").without("/metadata/name")).named("no name"),
        post(EVENTS, &event("g").with("/metadata/name", json!("c.17a2b3c4d5e6f708")).with("/type", json!("Warning")).with("/reason", json!("FailedCreate"))).named("a Warning"),
        get(EVENTS).named("the list"),
        get(format!("{EVENTS}?fieldSelector=type%3DWarning")).named("by type"),
        get(format!("{EVENTS}?fieldSelector=involvedObject.name%3Da,involvedObject.kind%3DCronJob,involvedObject.namespace%3D${{ns}},involvedObject.uid%3D00000000-0000-0000-0000-000000000001")).named("by object, as kubectl describe asks"),
        get(format!("{EVENTS}?fieldSelector=reason%3DSuccessfulCreate,reportingComponent%3Dcronjob-controller")).named("by reason and component"),
        get(format!("{EVENTS}?fieldSelector=source%3Dcronjob-controller")).named("by source"),
        get(format!("{EVENTS}?fieldSelector=message%3Dx")).named("by a field that is not served"),
        delete(a.as_str()).named("it is deleted"),
        delete(EVENTS).named("all are deleted"),
    ]
}

fn leases() -> Vec<Step> {
    let a = format!("{LEASES}/a");
    let at =
        |id: &str| lease("a").with("/metadata/resourceVersion", json!(format!("${{{id}:/metadata/resourceVersion}}")));
    vec![
        get(a.as_str()).named("a Lease that does not exist"),
        post(LEASES, &lease("a")).id("a").named("a Lease"),
        put(a.as_str(), &at("a").with("/spec/renewTime", json!("2020-01-01T00:00:11.000000Z")))
            .id("b")
            .named("it is renewed"),
        put(a.as_str(), &at("a").with("/spec/holderIdentity", json!("other"))).named("another holder comes too late"),
        put(a.as_str(), &at("b").with("/spec/holderIdentity", json!("other")).with("/spec/leaseTransitions", json!(1)))
            .named("another holder"),
        put(a.as_str(), &lease("a").with("/spec/holderIdentity", json!(""))).named("it is released"),
        put(a.as_str(), &lease("a").with("/metadata/resourceVersion", json!(""))).named("an update without a version"),
        put(format!("{LEASES}/nobody"), &lease("nobody")).named("an update of an absent object"),
        post(LEASES, &lease("b").with("/spec/leaseDurationSeconds", json!(0))).named("a duration of zero"),
        post(LEASES, &lease("b").with("/spec/leaseTransitions", json!(-1))).named("negative transitions"),
        post(LEASES, &lease("b").with("/spec/renewTime", json!("2020-01-01T00:00:00Z")))
            .named("a time without a fraction"),
        post(LEASES, &lease("c").with("/spec/renewTime", json!("now"))).named("a time that is none"),
        post(LEASES, &lease("d").without("/spec")).named("no spec"),
        get(LEASES).named("the list"),
        delete(a.as_str()).named("it is deleted"),
    ]
}

fn reviews() -> Vec<Step> {
    let attributes = json!({"namespace": "${ns}", "verb": "create", "group": "batch", "resource": "cronjobs"});
    let review = |kind: &str, spec: Value| json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    vec![
        post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            &review("SelfSubjectAccessReview", json!({"resourceAttributes": attributes})),
        )
        .named("whether I may"),
        post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review("SelfSubjectAccessReview", json!({})))
            .named("whether I may what"),
        post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            &review("SelfSubjectAccessReview", json!({"nonResourceAttributes": {"path": "/metrics", "verb": "get"}})),
        )
        .named("whether I may read metrics"),
        post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            &review(
                "SubjectAccessReview",
                json!({"user": "root", "groups": ["system:masters"], "resourceAttributes": attributes}),
            ),
        )
        .named("whether an administrator may"),
        post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            &review("SubjectAccessReview", json!({"resourceAttributes": attributes})),
        )
        .named("whether an empty user may"),
        get("/apis/authorization.k8s.io/v1/subjectaccessreviews").named("reviews cannot be listed"),
        get("/apis/authorization.k8s.io/v1/subjectaccessreviews/a").named("reviews cannot be got"),
        post(
            "/apis/authentication.k8s.io/v1/tokenreviews",
            &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": ""}}),
        )
        .named("who is no token"),
    ]
}
