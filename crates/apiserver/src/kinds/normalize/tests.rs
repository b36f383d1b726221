#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Any small JSON value; half of the keys are fields of Kubernetes types.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z0-9:.-]{0,6}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("status"),
        Just("labels"),
        Just("jobTemplate"),
        Just("template"),
        Just("containers"),
        Just("schedule"),
        Just("suspend"),
        Just("name"),
        Just("image"),
        Just("resources"),
        Just("creationTimestamp"),
        Just("finalizers"),
        Just("foo"),
    ];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn normalizing_a_second_time_changes_nothing(mut object in value()) {
        if normalize(&mut object, "batch.v1.CronJob").is_ok() {
            let mut again = object.clone();
            prop_assert_eq!(normalize(&mut again, "batch.v1.CronJob"), Ok(Vec::new()));
            prop_assert_eq!(again, object);
        }
    }
}

#[test]
fn number_of_the_wrong_type_is_shown_as_go_writes_it() {
    // The texts are those of the real server for what kubectl sends.
    let rows = [
        ("18446744073709551616", "18446744073709552000"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("99999999999999999999", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1e30", "1e+30"),
        ("1.5", "1.5"),
        ("0.00001", "0.00001"),
        ("1e-7", "1e-7"),
        ("9223372036854775808", "9223372036854775808"),
    ];
    for (given, want) in rows {
        let mut object = json!({"spec": {"startingDeadlineSeconds": serde_json::from_str::<Value>(given).unwrap()}});
        let error = normalize(&mut object, "batch.v1.CronJob").unwrap_err();
        assert!(error.contains(&format!("unmarshal number {want} into")), "{given}: {error}");
    }
}

#[test]
fn a_value_of_the_wrong_type_is_named_as_go_names_it() {
    let rows = [
        (
            "an embedded struct is part of the path",
            json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 80.5}}}]}}}}}}),
            "json: cannot unmarshal number 80.5 into Go struct field HTTPGetAction.spec.jobTemplate.spec.template.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            "a list instead of a text",
            json!({"metadata": {"name": []}}),
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            "a text instead of a map",
            json!({"metadata": {"labels": "x"}}),
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
    ];
    for (name, mut object, expected) in rows {
        assert_eq!(normalize(&mut object, "batch.v1.CronJob"), Err(expected.to_owned()), "{name}");
    }
}

#[test]
fn every_value_of_the_wrong_type_is_reported_with_its_indices_and_keys() {
    let container = json!({
        "env": [{"name": "A", "value": "x"}, {"name": "B", "value": true}, {"name": "C", "value": 8080}],
        "resources": {"limits": {"cpu": "1", "memory": "much"}},
    });
    let object = json!({
        "metadata": {"annotations": {"a.b/c": 1}},
        "spec": {"suspend": "no", "jobTemplate": {"spec": {"template": {"spec": {"containers": [container]}}}}},
    });
    let root = "batch.v1.CronJob";
    let found = wrong_types(&object, root);
    let fields: Vec<&str> = found.iter().map(|wrong| wrong.field.as_str()).collect();
    let container = "spec.jobTemplate.spec.template.spec.containers[0]";
    assert_eq!(
        fields,
        [
            "metadata.annotations[a.b/c]",
            &format!("{container}.env[1].value"),
            &format!("{container}.env[2].value"),
            &format!("{container}.resources.limits[memory]"),
            "spec.suspend",
        ]
    );
    for (at, wanted) in
        [(1, "bool into Go struct field EnvVar"), (2, "number into Go struct field EnvVar"), (3, "quantities must")]
    {
        assert!(found[at].message.contains(wanted), "{at}: {found:?}");
    }
    // The server reports only the one at which it stops.
    assert_eq!(normalize(&mut object.clone(), root), Err(found[3].message.clone()));
}
