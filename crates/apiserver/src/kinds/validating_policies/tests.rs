#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

/// A rule for all Jobs, with a change.
fn rule(change: &Value) -> Value {
    let mut rule =
        json!({"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]});
    for (field, value) in change.as_object().unwrap() {
        rule[field] = value.clone();
    }
    rule
}

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{}: {}", error.field, error.body)).collect()
}

#[test]
fn what_kube_apiserver_refuses_of_a_rule_is_refused_in_its_words() {
    let operations = r#"supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#;
    let rows: [(Value, Vec<String>); 7] = [
        (json!({}), vec![]),
        (json!({"operations": ["*"], "apiGroups": [""], "scope": "Namespaced"}), vec![]),
        (
            json!({"operations": ["create"]}),
            vec![format!("r.operations[0]: Unsupported value: \"create\": {operations}")],
        ),
        (
            json!({"operations": ["*", "CREATE"]}),
            vec![
                r#"r.operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations"#
                    .to_owned(),
            ],
        ),
        (
            json!({"apiGroups": [], "apiVersions": [""], "resources": null}),
            ["r.apiGroups", "r.apiVersions[0]", "r.resources"].map(|field| format!("{field}: Required value")).into(),
        ),
        (
            json!({"apiGroups": ["*", "batch"]}),
            vec![
                r#"r.apiGroups: Invalid value: ["*","batch"]: if '*' is present, must not specify other API groups"#
                    .to_owned(),
            ],
        ),
        (
            json!({"scope": "cluster"}),
            vec![r#"r.scope: Unsupported value: "cluster": supported values: "*", "Cluster", "Namespaced""#.to_owned()],
        ),
    ];
    for (change, want) in rows {
        let mut errors = Vec::new();
        rule_errors(&rule(&change), "r", &mut errors);
        assert_eq!(told(&errors), want, "{change}");
    }
}

#[test]
fn what_kube_apiserver_refuses_of_a_binding_is_refused_in_its_words() {
    let actions = r#"supported values: "Audit", "Deny", "Warn""#;
    let rows: [(Value, Vec<String>); 7] = [
        (json!({"validationActions": ["Deny", "Audit"]}), vec![]),
        (
            json!({"validationActions": ["deny"]}),
            vec![format!("spec.validationActions[0]: Unsupported value: \"deny\": {actions}")],
        ),
        (
            json!({}),
            vec!["spec.validationActions: Required value: at least one validation action is required".to_owned()],
        ),
        (
            json!({"validationActions": ["Deny", "Warn"]}),
            vec![format!(r#"spec.validationActions: Invalid value: ["Deny","Warn"]: {DENY_AND_WARN}"#)],
        ),
        (
            json!({"validationActions": ["Deny", "Deny"]}),
            vec![r#"spec.validationActions[1]: Duplicate value: "Deny""#.to_owned()],
        ),
        (
            json!({"validationActions": ["Deny"], "paramRef": {}}),
            vec![
                "spec.paramRef: Required value: one of name or selector must be specified".to_owned(),
                "spec.paramRef.parameterNotFoundAction: Required value".to_owned(),
            ],
        ),
        (
            json!({"validationActions": ["Deny"], "matchResources": {"resourceRules": [{}]}}),
            ["operations", "apiGroups", "apiVersions", "resources"]
                .map(|field| format!("spec.matchResources.resourceRules[0].{field}: Required value"))
                .into(),
        ),
    ];
    for (spec, want) in rows {
        assert_eq!(told(&binding_errors(&json!({ "spec": spec }))), want, "{spec}");
    }
}

#[test]
fn what_kube_apiserver_refuses_of_a_policy_is_refused_in_its_words() {
    let good = json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [rule(&json!({}))], "namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Exact" },
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
        assert_eq!(told(&errors(&policy)), want, "{sentence}");
    }
}
