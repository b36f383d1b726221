use serde_json::json;

use super::*;

#[test]
fn what_kube_apiserver_refuses_of_a_policy_is_refused_in_its_words() {
    let good = json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [{}], "namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Exact" },
        "validations": [{ "expression": "true" }],
    });
    let rows: [(&str, &str, Value, &[&str]); 13] = [
        ("all is well", "/failurePolicy", json!("Ignore"), &[]),
        (
            "a policy in small letters",
            "/failurePolicy",
            json!("fail"),
            &["spec.failurePolicy: Unsupported value: \"fail\": supported values: \"Fail\", \"Ignore\""],
        ),
        ("nothing to match", "/matchConstraints", Value::Null, &["spec.matchConstraints: Required value"]),
        (
            "no rule",
            "/matchConstraints/resourceRules",
            json!([]),
            &["spec.matchConstraints.resourceRules: Required value"],
        ),
        (
            "nothing to validate",
            "/validations",
            json!([]),
            &[
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        ),
        (
            "an empty expression",
            "/validations/0/expression",
            json!(" "),
            &["spec.validations[0].expression: Required value: expression is not specified"],
        ),
        (
            "two lines",
            "/validations/0",
            json!({"expression": "true", "message": "a\nb"}),
            &["spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks"],
        ),
        (
            "an empty message",
            "/validations/0",
            json!({"expression": "true", "messageExpression": " "}),
            &["spec.validations[0].messageExpression: Invalid value: \" \": must be non-empty if specified"],
        ),
        (
            "another reason",
            "/validations/0",
            json!({"expression": "true", "reason": "Foo"}),
            &[
                "spec.validations[0].reason: Unsupported value: \"Foo\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
            ],
        ),
        (
            "a parameter without a kind",
            "/paramKind",
            json!({"apiVersion": "v1"}),
            &["spec.paramKind.kind: Required value"],
        ),
        (
            "a number for a name",
            "/variables",
            json!([{"name": "1b", "expression": "1"}]),
            &["spec.variables[0].name: Invalid value: \"1b\": must be a valid CEL identifier"],
        ),
        (
            "a word of the language",
            "/variables",
            json!([{"name": "in", "expression": ""}]),
            &[
                "spec.variables[0].name: Invalid value: \"in\": must be a valid CEL identifier",
                "spec.variables[0].expression: Required value: expression is not specified",
            ],
        ),
        (
            "the name of a condition",
            "/matchConditions",
            json!([{"name": "", "expression": "true"}]),
            &["spec.matchConditions[0].name: Required value"],
        ),
    ];
    for (sentence, pointer, value, want) in rows {
        let mut policy = json!({ "spec": good });
        let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
        let parent = policy.pointer_mut(&format!("/spec{parent}"));
        match (parent, field.parse::<usize>()) {
            (Some(Value::Array(items)), Ok(index)) => items[index] = value,
            (Some(parent), _) => parent[field] = value,
            (None, _) => panic!("{sentence}: there is no {pointer}"),
        }
        let found: Vec<String> =
            errors(&policy).iter().map(|error| format!("{}: {}", error.field, error.body)).collect();
        assert_eq!(found, want, "{sentence}");
    }
}
