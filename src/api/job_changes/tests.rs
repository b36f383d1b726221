#![allow(clippy::unwrap_used)]

use super::*;

fn spec() -> Value {
    json!({"backoffLimit": 3, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
        "containers": [
            {"name": "main", "args": ["--all"], "env": [
                {"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "A", "value": "2"},
            ]},
            {"name": "proxy", "image": "p"},
        ],
        "initContainers": [{"name": "migrate"}],
    }}})
}

fn changes(container: Option<&str>, env: &[(&str, &str)], args: &[&str]) -> JobChanges {
    JobChanges {
        container: container.map(str::to_owned),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
    }
}

#[test]
fn only_the_named_variables_and_the_arguments_of_one_container_change() {
    let rows = [
        (
            "a variable that exists keeps its place and is set once",
            changes(None, &[("A", "3=3")], &[]),
            "/template/spec/containers/0",
            json!({"name": "main", "args": ["--all"], "env": [
                {"name": "A", "value": "3=3"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ]}),
            r#"{"container":"main","env":["A"]}"#,
        ),
        (
            "a source of a value is replaced, and the last of the same name counts",
            changes(None, &[("B", "1"), ("B", "2"), ("C", "")], &["x", "--y"]),
            "/template/spec/containers/0",
            json!({"name": "main", "args": ["x", "--y"], "env": [
                {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "2"}, {"name": "C", "value": ""},
            ]}),
            r#"{"args":true,"container":"main","env":["B","C"]}"#,
        ),
        (
            "the named container",
            changes(Some("proxy"), &[], &["z"]),
            "/template/spec/containers/1",
            json!({"name": "proxy", "image": "p", "args": ["z"]}),
            r#"{"args":true,"container":"proxy"}"#,
        ),
        (
            "a container that runs before the others",
            changes(Some("migrate"), &[("D", "4")], &[]),
            "/template/spec/initContainers/0",
            json!({"name": "migrate", "env": [{"name": "D", "value": "4"}]}),
            r#"{"container":"migrate","env":["D"]}"#,
        ),
    ];
    for (sentence, changes, place, want, summary) in rows {
        let mut changed = spec();
        let container = changes.choose(&changed).unwrap();
        changes.apply(&mut changed, &container);
        assert_eq!((changed.pointer(place), &*changes.summary(&container)), (Some(&want), summary), "{sentence}");
        let mut expected = spec();
        *expected.pointer_mut(place).unwrap() = want;
        assert_eq!(changed, expected, "{sentence}");
    }
}

#[test]
fn container_is_the_one_that_kubectl_takes() {
    let mut annotated = spec();
    annotated["template"]["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/default-container": "proxy"});
    let mut misnamed = spec();
    misnamed["template"]["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/default-container": "gone"});
    let rows = [
        ("the first", spec(), None, Ok("main")),
        ("the annotated one", annotated.clone(), None, Ok("proxy")),
        ("an annotation that names none", misnamed, None, Ok("main")),
        ("the named one", annotated, Some("main"), Ok("main")),
        (
            "an unknown one",
            spec(),
            Some("web"),
            Err("there is no container web; its containers are main, proxy, migrate"),
        ),
        ("no Pod template", json!({}), None, Err("it has no containers")),
        (
            "containers that are no list",
            json!({"template": {"spec": {"containers": 1}}}),
            None,
            Err("it has no containers"),
        ),
    ];
    for (sentence, spec, wanted, want) in rows {
        let chosen = changes(wanted, &[], &[]).choose(&spec).map(|container| container.name);
        assert_eq!(chosen.as_deref().map_err(String::as_str), want, "{sentence}");
    }
}
