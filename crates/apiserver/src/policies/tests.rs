#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::kinds;

fn resource() -> Resource {
    kinds::builtin().into_iter().find(|resource| resource.kind == "CronJob").unwrap()
}

fn cron_job(name: &str, annotations: &Value) -> Value {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "args": ["x"]}]});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "a"}, "annotations": annotations},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}},
    })
}

fn rule() -> Value {
    json!({"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["cronjobs"]})
}

/// A policy with these fields in its spec, and a binding with these.
fn bound(spec: &Value, binding: &Value) -> Vec<Value> {
    let version = "admissionregistration.k8s.io/v1";
    let mut policy = json!({
        "apiVersion": version, "kind": POLICY, "metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule()]}},
    });
    let mut bound = json!({
        "apiVersion": version, "kind": BINDING, "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]},
    });
    for (object, fields) in [(&mut policy, spec), (&mut bound, binding)] {
        for (name, value) in fields.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
    }
    vec![policy, bound]
}

fn judge(objects: &[Value], object: &Value) -> Judged {
    Policies::among(objects.iter()).judge_new(&resource(), object).unwrap()
}

fn messages(judged: &Judged) -> [Vec<String>; 3] {
    let all = |failures: &[Failure]| failures.iter().map(|failure| failure.message.clone()).collect();
    [all(&judged.denied), all(&judged.warned), judged.unknown.clone()]
}

/// A sentence, fields of the policy and of the binding, and the messages of what is denied, warned of and not judged.
type Bound<'a> = (&'a str, Value, &'a Value, [&'a [&'a str]; 3]);

#[test]
fn write_is_denied_warned_of_or_not_judged() {
    let no = |more: Value| {
        let mut validation = json!({"expression": "object.spec.schedule == 'x'"});
        validation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"validations": [validation]})
    };
    let (none, deny) = (json!({}), json!({"validationActions": ["Deny"]}));
    let by_name = json!({"resourceRules": [{"resourceNames": ["other"], "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]});
    let warn = json!({"validationActions": ["Warn", "Audit"]});
    let elsewhere =
        json!({"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}}}});
    let here =
        json!({"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}});
    let with_param = json!({"paramRef": {"name": "limits", "namespace": "shop", "parameterNotFoundAction": "Deny"}});
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let of_team = json!({"matchResources": {"namespaceSelector": {"matchLabels": {"team": "a"}}}});
    let rows: [Bound<'_>; 22] = [
        (
            "it holds",
            json!({"validations": [{"expression": "object.spec.schedule == '0 3 * * *'"}]}),
            &deny,
            [&[], &[], &[]],
        ),
        ("it does not", no(json!({})), &deny, [&["failed expression: object.spec.schedule == 'x'"], &[], &[]]),
        ("a message", no(json!({"message": " why "})), &deny, [&["why"], &[], &[]]),
        (
            "an expression for it",
            no(json!({"message": "why", "messageExpression": "'it is ' + object.spec.schedule"})),
            &deny,
            [&["it is 0 3 * * *"], &[], &[]],
        ),
        (
            "one without a result",
            no(json!({"message": "why", "messageExpression": "object.spec.zz"})),
            &deny,
            [&["why"], &[], &[]],
        ),
        ("a warning", no(json!({"message": "why"})), &warn, [&[], &["why"], &[]]),
        (
            "no result",
            json!({"validations": [{"expression": "object.spec.zz == 1"}]}),
            &deny,
            [&[], &[], &["p: object.spec.zz == 1: it has no result here: No such key: zz"]],
        ),
        (
            "another type",
            json!({"validations": [{"expression": "'a'"}]}),
            &deny,
            [&[], &[], &["p: 'a': its result is no truth value"]],
        ),
        (
            "a condition that does not hold",
            json!({"matchConditions": [{"name": "c", "expression": "request.operation == 'UPDATE'"}], "validations": [{"expression": "false"}]}),
            &deny,
            [&[], &[], &[]],
        ),
        (
            "a condition without a result",
            json!({"matchConditions": [{"name": "c", "expression": "x"}], "validations": [{"expression": "false"}]}),
            &deny,
            [&[], &[], &["p: the condition \"c\": it has no result here: Undeclared reference to 'x'"]],
        ),
        (
            "variables",
            json!({"variables": [{"name": "s", "expression": "size(object.spec.schedule)"}], "validations": [{"expression": "variables.s < 3", "messageExpression": "string(variables.s)"}]}),
            &deny,
            [&["9"], &[], &[]],
        ),
        (
            "what a server sets before",
            json!({"validations": [{"expression": "has(object.metadata.uid) && has(object.metadata.creationTimestamp)"}]}),
            &deny,
            [&[], &[], &[]],
        ),
        (
            "a variable without a result",
            json!({"variables": [{"name": "s", "expression": "object.zz"}], "validations": [{"expression": "variables.s < 3"}]}),
            &deny,
            [&[], &[], &["p: variables.s < 3: variables.s: it has no result here: No such key: zz"]],
        ),
        (
            "another name",
            json!({"matchConstraints": by_name, "validations": [{"expression": "false"}]}),
            &none,
            [&[], &[], &[]],
        ),
        (
            "the user, who is not known",
            json!({"validations": [{"expression": "request.userInfo.username == 'x'"}]}),
            &deny,
            [&[], &[], &["p: request.userInfo.username == 'x': it has no result here: No such key: userInfo"]],
        ),
        (
            "a Namespace that no file has",
            json!({"validations": [{"expression": "namespaceObject.metadata.name == 'x'"}]}),
            &deny,
            [&[], &[], &["p: namespaceObject.metadata.name == 'x': namespaceObject: no file has it"]],
        ),
        ("its labels", no(json!({})), &of_team, [&[], &[], &["p: its namespaceSelector: no file has the Namespace"]]),
        (
            "its labels, where it does not matter",
            json!({"validations": [{"expression": "true"}]}),
            &of_team,
            [&[], &[], &[]],
        ),
        ("another namespace", no(json!({})), &elsewhere, [&[], &[], &[]]),
        ("the namespace", no(json!({"message": "why"})), &here, [&["why"], &[], &[]]),
        (
            "a parameter",
            json!({"paramKind": kind, "validations": [{"expression": "size(object.spec.schedule) < int(params.data.most)", "message": "long"}]}),
            &with_param,
            [&["long"], &[], &[]],
        ),
        (
            "no parameter",
            json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"}, "validations": [{"expression": "false"}]}),
            &with_param,
            [&[], &[], &["p: its parameters are not there"]],
        ),
    ];
    for (name, spec, binding, want) in rows {
        let mut objects = bound(&spec, binding);
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits", "namespace": "shop"}, "data": {"most": "5"}}));
        assert_eq!(messages(&judge(&objects, &cron_job("a", &json!({})))), want.map(<[&str]>::to_vec), "{name}");
    }
    let unbound = bound(&no(json!({})), &json!({"policyName": "other"}));
    assert_eq!(judge(&unbound, &cron_job("a", &json!({}))), Judged::default());
}

#[test]
fn refusal_has_the_words_and_the_code_of_the_real_server() {
    let object = cron_job("a", &json!({}));
    let resource = resource();
    let request = Request {
        resource: &resource,
        subresource: "",
        namespace: "shop",
        object: &object,
        old: None,
        namespace_object: None,
        dry_run: false,
        is_alone: false,
    };
    let failure = |reason: &str| Failure {
        policy: "p".to_owned(),
        binding: "b".to_owned(),
        message: "why".to_owned(),
        reason: reason.to_owned(),
    };
    for (reason, code, want) in
        [("", 422, "Invalid"), ("Forbidden", 403, "Forbidden"), ("Unauthorized", 401, "Unauthorized")]
    {
        let status = failure(reason).status(&request);
        assert_eq!((status.code, status.reason), (code, want), "{reason}");
        let sentence = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: why";
        assert_eq!(status.message, format!("cronjobs.batch \"a\" is forbidden: {sentence}"));
    }
}
