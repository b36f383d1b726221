//! Expressions of CEL: in policies, in definitions, and in the conditions of webhooks.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The expressions that the embedded server's own test knows to be true of an object.
const TRUE: &str = include_str!("../../../crates/apiserver/src/cel/tests/true.cel");
/// How many expressions a policy has: their warnings are not cut.
const PART: usize = 40;

pub fn scenarios() -> Vec<Scenario> {
    let alone = |name, steps| Scenario { alone: true, ..scenario(name, steps) };
    vec![alone("expressions-policies", policies()), alone("expressions-definitions", rules())]
}

fn definition(plural: &str, kind: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.truth.example.com")},
        "spec": {
            "group": "truth.example.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn defined(plural: &str, kind: &str, schema: &Value) -> Vec<Step> {
    vec![
        post(DEFINITIONS, &definition(plural, kind, schema)).part(no_body).named("a definition"),
        get(format!("{DEFINITIONS}/{plural}.truth.example.com"))
            .until("/status/conditions/1/status", json!("True"))
            .part(no_body)
            .named("it is served"),
        get(format!("/apis/truth.example.com/v1/namespaces/${{ns}}/{plural}"))
            .until_status(200)
            .part(no_body)
            .named("its objects can be listed"),
    ]
}

fn no_body(_: Value) -> Value {
    Value::Null
}

/// A policy and its binding, for objects with this label.
fn policy(name: &str, validations: &Value, action: &str) -> Vec<Step> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {
                "resourceRules": [{"apiGroups": ["truth.example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["things"]}],
                "objectSelector": {"matchLabels": {"part": name}},
            },
            "variables": [{"name": "size", "expression": "size(object.spec)"}, {"name": "unused", "expression": "object.spec.zz + 1"}],
            "validations": validations,
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": [action]},
    });
    vec![
        post(format!("{ADMISSION}/validatingadmissionpolicies"), &policy)
            .part(without_generation)
            .named(format!("the policy {name}")),
        post(format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding)
            .part(no_body)
            .named(format!("its binding {name}")),
    ]
}

/// Errors, if there are any.
fn without_generation(body: Value) -> Value {
    body.get("details").cloned().unwrap_or_default()
}

fn thing(part: &str) -> Value {
    json!({
        "apiVersion": "truth.example.com/v1", "kind": "Thing", "metadata": {"name": part, "labels": {"part": part}},
        "spec": {
            "a": 1, "s": "abc", "l": [1, 2, 3], "m": {"k": "v"}, "d": {"a-b": "w"}, "f": 1.5, "n": null, "names": ["x", "y"], "b": true,
            "objs": [{"name": "p", "v": 1}, {"name": "q"}], "metadata": {"namespace": "ns"}, "umlaut": "äö",
        },
    })
}

fn policies() -> Vec<Step> {
    let things = "/apis/truth.example.com/v1/namespaces/${ns}/things?dryRun=All";
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let mut steps = defined("things", "Thing", &schema);
    let of_object = |text: &str| text.replace("self", "object.spec");
    let all: Vec<&str> = TRUE.lines().filter(|text| !text.is_empty()).collect();
    let parts: Vec<(String, &[&str])> =
        all.chunks(PART).enumerate().map(|(number, part)| (format!("part-{number}"), part)).collect();
    for (name, part) in &parts {
        let validation = |(number, text): (usize, &&str)| json!({"expression": format!("!({})", of_object(text)), "message": format!("{number}")});
        steps.extend(policy(name, &part.iter().enumerate().map(validation).collect(), "Warn"));
    }
    let refusals = [
        ("a-message", json!({"expression": "false", "message": "why", "reason": "Forbidden"})),
        (
            "a-made-message",
            json!({"expression": "object.spec.a == 2", "messageExpression": "'it is ' + string(object.spec.a)"}),
        ),
        ("no-message", json!({"expression": "object.spec.a ==\n 2"})),
        ("a-variable", json!({"expression": "variables.size == 2", "messageExpression": "string(variables.size)"})),
        (
            "the-request",
            json!({"expression": "request.operation == 'UPDATE' || request.kind.kind != 'Thing' || oldObject != null", "message": "a create"}),
        ),
        (
            "the-namespace",
            json!({"expression": "namespaceObject.metadata.name == 'other'", "messageExpression": "namespaceObject.metadata.labels['kubernetes.io/metadata.name']"}),
        ),
    ];
    for (name, validation) in &refusals {
        steps.extend(policy(name, &json!([validation]), "Deny"));
    }
    steps.extend(policy("the-last", &json!([{"expression": "false"}]), "Deny"));
    steps.push(post(things, &thing("the-last")).until_status(422).named("the last policy denies"));
    steps.extend(refusals.iter().map(|(name, _)| post(things, &thing(name)).named(format!("refused by {name}"))));
    steps.extend(parts.iter().map(|(name, _)| post(things, &thing(name)).named(format!("warned of by {name}"))));
    let names =
        parts.iter().map(|(name, _)| name.as_str()).chain(refusals.iter().map(|(name, _)| *name)).chain(["the-last"]);
    for name in names {
        for kind in ["validatingadmissionpolicybindings", "validatingadmissionpolicies"] {
            steps.push(delete(format!("{ADMISSION}/{kind}/{name}")).part(no_body).named(format!("{kind} {name} goes")));
        }
    }
    steps
}

fn rules() -> Vec<Step> {
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 9},
        "size": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}]},
    }});
    let spec = json!({
        "type": "object",
        "properties": {
            "replicas": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 1"}, {"rule": "self <= oldSelf + 5", "message": "at most five more"}]},
            "ratio": {"type": "number", "x-kubernetes-validations": [{"rule": "self != 1.0", "message": "not one"}]},
            "memory": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "isQuantity(self) && quantity(self).isLessThan(quantity('2Gi'))", "messageExpression": "'too much: ' + self"}]},
            "address": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "isIP(self) && cidr('10.0.0.0/8').containsIP(self)", "message": "not in the network", "reason": "FieldValueForbidden"}]},
            "since": {"type": "string", "format": "date-time", "maxLength": 30, "x-kubernetes-validations": [{"rule": "self > timestamp('2026-01-01T00:00:00Z')", "message": "too old"}]},
            "label": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "!format.dns1123Label().validate(self).hasValue()", "message": "no label"}]},
            "name-with.dots": {"type": "string", "maxLength": 9},
            "namespace": {"type": "string", "maxLength": 9},
            "parts": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": part},
            "tags": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 9}, "x-kubernetes-validations": [{"rule": "self.all(key, key.startsWith('a-') && self[key] != '')", "message": "tags begin with a-"}]},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.ratio) || has(self.replicas)", "message": "a ratio needs replicas", "fieldPath": ".replicas", "reason": "FieldValueRequired"},
            {"rule": "self.?name__dash__with__dot__dots.orValue('') != 'x' && self.?__namespace__.orValue('') != 'x'", "message": "not x"},
            {"rule": "!has(self.parts) || self.parts.all(part, self.parts.exists_one(other, other.name == part.name))"},
            {"rule": "has(self.replicas) || !has(oldSelf.replicas)", "message": "replicas stay"},
        ],
    });
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let gadgets = "/apis/truth.example.com/v1/namespaces/${ns}/gadgets";
    let gadget = |name: &str, spec: Value| json!({"apiVersion": "truth.example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec});
    let good = json!({"replicas": 3, "ratio": 2, "memory": "1Gi", "address": "10.1.2.3", "since": "2026-02-01T00:00:00Z", "label": "a-b", "namespace": "a", "parts": [{"name": "p", "size": "1"}, {"name": "q"}], "tags": {"a-b": "c"}});
    let mut steps = defined("gadgets", "Gadget", &schema);
    let bad: [(&str, Value); 9] = [
        ("no replicas", json!({"replicas": 0})),
        ("a ratio alone, which is one", json!({"ratio": 1})),
        ("too much memory", json!({"memory": "3Gi"})),
        ("no quantity", json!({"memory": "much"})),
        ("another network", json!({"address": "192.168.0.1"})),
        ("an old time", json!({"since": "2025-02-01T00:00:00Z"})),
        ("no label", json!({"label": "A_b"})),
        ("names that are escaped", json!({"name-with.dots": "x", "namespace": "x"})),
        ("a wrong tag", json!({"tags": {"b": "c"}})),
    ];
    steps.extend(
        bad.into_iter().map(|(name, spec)| post(format!("{gadgets}?dryRun=All"), &gadget("bad", spec)).named(name)),
    );
    steps.push(post(gadgets, &gadget("good", good.clone())).part(no_body).named("all rules hold"));
    let changes: [(&str, Value); 5] = [
        ("six more", json!({"spec": {"replicas": 9}})),
        ("five more", json!({"spec": {"replicas": 8}})),
        ("the replicas are removed", json!({"spec": {"replicas": null, "ratio": null}})),
        ("the size of a part", json!({"spec": {"parts": [{"name": "q"}, {"name": "p", "size": "2"}]}})),
        ("the order of parts", json!({"spec": {"parts": [{"name": "q", "size": "9"}, {"name": "p", "size": "1"}]}})),
    ];
    let path = format!("{gadgets}/good?dryRun=All");
    steps.extend(
        changes
            .into_iter()
            .map(|(name, change)| patch(MERGE, path.as_str(), &change).part(without_generation).named(name)),
    );
    steps.push(delete(format!("{DEFINITIONS}/gadgets.truth.example.com")).part(no_body).named("the definition goes"));
    steps
}
