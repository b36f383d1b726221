//! Server-side apply.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![scenario("apply", apply()), scenario("apply-shapes", shapes())]
}

fn apply() -> Vec<Step> {
    let by = |manager: &str, sentence: &str, body: Value| {
        patch(APPLY, format!("{CRONJOBS}/a?fieldManager={manager}"), &body).named(sentence)
    };
    let some =
        |spec: Value| json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": spec});
    vec![
        by("one", "an apply creates", cronjob("a")),
        by("one", "the same again changes nothing", cronjob("a")),
        by("two", "another manager adds a field", some(json!({"startingDeadlineSeconds": 10}))),
        by("two", "a field of another manager conflicts", some(json!({"startingDeadlineSeconds": 10, "schedule": "0 0 * * *"}))),
        patch(APPLY, format!("{CRONJOBS}/a?fieldManager=two&force=true"), &some(json!({"startingDeadlineSeconds": 10, "schedule": "0 0 * * *"})))
            .named("force takes it over"),
        by("two", "the same value is shared", some(json!({"startingDeadlineSeconds": 10, "schedule": "0 0 * * *", "suspend": true}))),
        by("two", "a field left out goes", some(json!({"schedule": "0 0 * * *"}))),
        by("three", "a label", json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "labels": {"a": "b"}}})),
        by("three", "another label in its place", json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "labels": {"c": "d"}}})),
        by("one", "a container is merged by name", cronjob("a").without("/spec/schedule").with("/spec/jobTemplate/spec/template/spec/containers/1", json!({"name": "d", "image": "x"}))),
        by("one", "and goes when left out", cronjob("a").without("/spec/schedule")),
        patch(MERGE, format!("{CRONJOBS}/a?fieldManager=four"), &json!({"spec": {"suspend": true}})).named("an update beside it"),
        by("two", "an apply conflicts with an update", some(json!({"schedule": "0 0 * * *", "suspend": false}))),
        patch(APPLY, format!("{CRONJOBS}/a"), &cronjob("a")).named("a manager is required"),
        by("one", "a name that is not the path's", cronjob("b")),
        by("one", "another kind", json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}})),
        by("one", "no kind", json!({"metadata": {"name": "a"}})),
        by("one", "managed fields in the body", cronjob("a").with("/metadata/managedFields", json!([{"manager": "x"}]))),
        by("one", "an unknown field", some(json!({"color": "red"}))),
        by("one", "a result that is not valid", some(json!({"schedule": "bad"}))),
        patch(APPLY, format!("{CRONJOBS}/y?fieldManager=m"), &json!({})).body("{").named("a body that is neither YAML nor JSON"),
        patch(APPLY, format!("{CRONJOBS}/y?fieldManager=m"), &json!({})).body(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: y\nspec:\n  schedule: '@daily'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n          - name: c\n            image: busybox\n")
            .named("in YAML a y is a boolean"),
        patch(APPLY, format!("{CRONJOBS}/yaml?fieldManager=m"), &json!({})).body(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: yaml\nspec:\n  schedule: '@daily'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n          - name: c\n            image: busybox\n")
            .named("a body in YAML"),
        patch(APPLY, format!("{CRONJOBS}/s?fieldManager=m"), &cronjob("s").with("/metadata/resourceVersion", json!("999999"))).named("a version that is not the newest"),
        patch(APPLY, format!("{CRONJOBS}/z?fieldManager=m"), &cronjob("z").with("/metadata/resourceVersion", json!("999999"))).named("a version where there is nothing"),
        patch(APPLY, format!("{CRONJOBS}/z?fieldManager=m"), &cronjob("z").with("/metadata/uid", json!("00000000-0000-0000-0000-000000000009"))).named("a uid where there is nothing"),
        patch(APPLY, format!("{CRONJOBS}/s/status?fieldManager=s"), &json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "s"}, "status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}})).named("a status is applied"),
        patch(APPLY, format!("{LEASES}/l?fieldManager=m"), &lease("l")).named("a Lease is applied"),
        patch(APPLY, format!("{PODS}/p?fieldManager=m"), &pod("p")).named("a Pod is applied"),
        patch(APPLY, format!("{JOBS}/j?fieldManager=m"), &job("j")).named("a Job is applied"),
        patch(APPLY, format!("{JOBS}/j?fieldManager=m"), &job("j")).named("a Job is applied again"),
        patch(APPLY, format!("{JOBS}/j?fieldManager=m"), &job("j")).named("a Job is applied a third time"),
        post(JOBS, &job("k")).named("a Job is created"),
        patch(MERGE, format!("{JOBS}/k"), &json!({})).named("a patch that changes nothing of it"),
        patch(APPLY, format!("{PODS}/p?fieldManager=m"), &pod("p")).named("a Pod is applied again"),
        patch(APPLY, format!("{LEASES}/l?fieldManager=m"), &lease("l")).named("a Lease is applied again"),
        patch(APPLY, format!("{NAMESPACES}/t-applied?fieldManager=m"), &namespace("t-applied")).named("a namespace is applied"),
        patch(APPLY, format!("{CRONJOBS}/a?fieldManager=two"), &some(json!({}))).named("a manager lets go of everything"),
        get(format!("{CRONJOBS}/a")).named("what came of it"),
    ]
}

/// The effect on lists, maps and the fields around those that an applier gives up.
fn shapes() -> Vec<Step> {
    let by = |manager: &str, sentence: &str, body: Value| {
        patch(APPLY, format!("{CRONJOBS}/a?fieldManager={manager}"), &body).named(sentence)
    };
    let spec = "/spec/jobTemplate/spec/template/spec";
    let pod = |field: &str, value: Value| cronjob("a").with(&format!("{spec}/{field}"), value);
    let env = |items: Value| pod("containers/0/env", items);
    let init = |names: &[&str]| {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "i"})).collect();
        pod("initContainers", json!(items))
    };
    let secret = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let probe = json!({"httpGet": {"path": "/", "port": 80}});
    let limits = |value: Value| pod("containers/0/resources", json!({"limits": value}));
    let nothing = || json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}});
    let labels = |value: Value| nothing().with("/metadata/labels", value);
    let partly = |container: Value| {
        let spec = json!({"jobTemplate": {"spec": {"template": {"spec": {"containers": [container]}}}}});
        nothing().with("/spec", spec)
    };
    // An existing owner: the garbage collector deletes objects whose owner does not exist.
    let owned = |more: Value| {
        let mut owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "${p:/metadata/uid}"});
        owner.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        cronjob("a").with("/metadata/ownerReferences", json!([owner]))
    };
    vec![
        by("one", "a variable from a secret", env(json!([{"name": "A", "valueFrom": secret}]))),
        by("one", "becomes one with a value", env(json!([{"name": "A", "value": "x"}]))),
        by("one", "a volume of one kind", pod("volumes", json!([{"name": "v", "configMap": {"name": "c"}}]))),
        by("one", "becomes one of another", pod("volumes", json!([{"name": "v", "emptyDir": {}}]))),
        by("one", "a probe", pod("containers/0/livenessProbe", probe.clone())),
        by("one", "goes with its defaults", cronjob("a")),
        by("one", "a probe of its own", pod("containers/0/livenessProbe", probe)),
        by(
            "two",
            "of which another manager has a field",
            partly(json!({"name": "c", "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 7}})),
        ),
        by("one", "stays in part", cronjob("a")),
        by("two", "and goes with its last owner", nothing()),
        by("one", "a node selector", pod("nodeSelector", json!({"a": "b", "c": "d"}))),
        by("one", "is replaced as a whole", pod("nodeSelector", json!({"a": "b", "e": "f"}))),
        by("one", "an init container", init(&["main"])),
        by("one", "one before it", init(&["first", "main"])),
        by("one", "in another order", init(&["main", "first"])),
        by("one", "the same order changes nothing", init(&["main", "first"])),
        by("one", "more of them", init(&["x", "main", "y", "first", "z"])),
        by("one", "shuffled", init(&["z", "y", "x", "first", "main"])),
        by(
            "one",
            "variables",
            env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}, {"name": "C", "value": "1"}])),
        ),
        by(
            "two",
            "another manager's stand in their place",
            partly(json!({
                "name": "c", "env": [{"name": "X", "value": "1"}, {"name": "B", "value": "1"}, {"name": "Y", "value": "1"}]
            })),
        ),
        by(
            "one",
            "and stay where they are",
            env(json!([{"name": "C", "value": "1"}, {"name": "D", "value": "1"}, {"name": "A", "value": "1"}])),
        ),
        by("one", "a variable twice", env(json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]))),
        by("one", "a variable without a name", env(json!([{"name": "A", "value": "1"}, {"value": "2"}]))),
        by("one", "a finalizer twice", cronjob("a").with("/metadata/finalizers", json!(["a.b/c", "a.b/c"]))),
        by(
            "one",
            "tolerations",
            pod("tolerations", json!([{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}])),
        ),
        by("one", "are replaced as a whole", pod("tolerations", json!([{"key": "b", "operator": "Exists"}]))),
        by("one", "limits", limits(json!({"cpu": "1", "memory": "1Gi"}))),
        by("one", "of which one goes", limits(json!({"memory": "1Gi"}))),
        by("one", "and then all", cronjob("a")),
        by("one", "a security context", pod("securityContext", json!({"runAsUser": 7}))),
        by("one", "goes", cronjob("a")),
        by("three", "labels", labels(json!({"a": "1", "b": "2"}))),
        by("three", "go all", nothing()),
        post(PODS, &crate::dsl::pod("p")).id("p").named("an owner to be"),
        by("one", "an owner", owned(json!({"controller": true}))),
        by("one", "who does not control it", owned(json!({}))),
        get(format!("{CRONJOBS}/a")).named("what came of it"),
    ]
}
