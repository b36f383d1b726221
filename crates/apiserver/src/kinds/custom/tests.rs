//! Pruning, defaulting, validation and printing with an invented definition. `tests/controller_kinds.rs` tests this
//! repository's definitions on both servers.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn definition() -> Value {
    let item = json!({
        "type": "object", "required": ["name"],
        "properties": { "name": { "type": "string" }, "weight": { "type": "number" } },
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "size": { "type": "integer", "format": "int32", "minimum": 1, "default": 3 },
            "code": {
                "type": "string", "minLength": 1, "maxLength": 4,
                "x-kubernetes-validations": [{ "rule": "self.matches(r'^[a-z]+$')", "message": "must be small letters" }],
            },
            "since": { "type": "string", "format": "date-time" },
            "colour": { "type": "string", "enum": ["red", "blue"] },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "open": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "closed": { "type": "object", "properties": {} } },
            },
            "items": {
                "type": "array", "minItems": 1, "items": item,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            },
        },
    });
    json!({
        "metadata": { "name": "gadgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Gadget", "plural": "gadgets", "shortNames": ["gd"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    { "name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1 },
                    { "name": "First", "type": "string", "jsonPath": ".spec.items[*].name" },
                    { "name": "Labels", "type": "string", "jsonPath": ".spec.labels", "description": "All of them." },
                    { "name": "Since", "type": "date", "jsonPath": ".spec.since" },
                    { "name": "Odd", "type": "boolean", "jsonPath": ".spec.code" },
                ],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": spec,
                    "status": { "type": "object", "properties": { "count": { "type": "integer", "minimum": 0 } } },
                } } },
            }],
        },
    })
}

fn gadget(spec: &Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "g" }, "spec": spec })
}

/// The errors of a new object, or of an update of `old`.
fn refusals(spec: &Value, old: Option<&Value>) -> Vec<String> {
    let strategy = custom(&definition()).unwrap().strategy;
    let errors = match old {
        None => strategy.validate_create(&gadget(spec)),
        Some(old) => strategy.validate_update(&gadget(spec), &gadget(old)),
    };
    errors.into_iter().map(|error| format!("{}: {}", error.field, error.body)).collect()
}

#[test]
fn unknown_fields_are_pruned_and_defaults_are_set() {
    let table = [
        ("a default", json!({}), json!({ "size": 3 }), vec![]),
        (
            "a null has the default, and without one it goes",
            json!({ "size": null, "code": null }),
            json!({ "size": 3 }),
            vec![],
        ),
        ("an unknown field", json!({ "size": 1, "siez": 2 }), json!({ "size": 1 }), vec!["spec.siez"]),
        (
            "in an item",
            json!({ "size": 1, "items": [{ "a": 1 }] }),
            json!({ "size": 1, "items": [{}] }),
            vec!["spec.items[0].a"],
        ),
        (
            "where all is kept, and below",
            json!({ "size": 1, "open": { "a": { "b": null }, "closed": { "c": 1 } } }),
            json!({ "size": 1, "open": { "a": { "b": null }, "closed": {} } }),
            vec!["spec.open.closed.c"],
        ),
        (
            "any label",
            json!({ "size": 1, "labels": { "a": "b" } }),
            json!({ "size": 1, "labels": { "a": "b" } }),
            vec![],
        ),
        ("what is of the wrong type stays", json!({ "size": "1" }), json!({ "size": "1" }), vec![]),
    ];
    let strategy = custom(&definition()).unwrap().strategy;
    for (sentence, given, want, unknown) in table {
        let mut object = gadget(&given);
        object["metadata"]["labels"] = Value::Null;
        assert_eq!(strategy.normalize(&mut object).unwrap(), unknown, "{sentence}");
        strategy.set_defaults(&mut object);
        assert_eq!(object, gadget(&want), "{sentence}");
    }
}

#[test]
fn every_refusal_names_the_field_and_the_reason_as_the_real_server_does() {
    const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was \
                             invalid; correct the existing errors to complete validation";
    let table = [
        (
            json!({ "size": 0 }),
            vec!["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
        ),
        (
            json!({ "size": 1.5 }),
            vec![
                "spec.size: Invalid value: \"float64\": spec.size in body must be of type int32: \"float64\"",
                UNCHECKED,
            ],
        ),
        (
            json!({ "size": true }),
            vec!["spec.size: Invalid value: \"\": spec.size in body must be of type int32: \"\"", UNCHECKED],
        ),
        (
            json!({ "size": "a" }),
            vec![
                "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
                UNCHECKED,
            ],
        ),
        (
            json!({ "size": 1_i64 << 31 }),
            vec!["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.size"],
        ),
        (
            json!({ "code": "" }),
            vec![
                "spec.code: Invalid value: \"\": spec.code in body should be at least 1 chars long",
                "spec.code: Invalid value: \"\": must be small letters",
            ],
        ),
        (json!({ "code": "abcde" }), vec!["spec.code: Too long: may not be more than 4 bytes", UNCHECKED]),
        (json!({ "code": "Ab" }), vec!["spec.code: Invalid value: \"Ab\": must be small letters"]),
        (
            json!({ "since": "today" }),
            vec![
                "spec.since: Invalid value: \"today\": spec.since in body must be of type date-time: \"today\"",
                UNCHECKED,
            ],
        ),
        (
            json!({ "colour": "green" }),
            vec!["spec.colour: Unsupported value: \"green\": supported values: \"red\", \"blue\"", UNCHECKED],
        ),
        (
            json!({ "labels": { "a": 1 } }),
            vec![
                "spec.labels.a: Invalid value: \"integer\": spec.labels.a in body must be of type string: \"integer\"",
                UNCHECKED,
            ],
        ),
        (json!({ "items": [] }), vec!["spec.items: Invalid value: 0: spec.items in body should have at least 1 items"]),
        (
            json!({ "items": {} }),
            vec![
                "spec.items: Invalid value: \"object\": spec.items in body must be of type array: \"object\"",
                UNCHECKED,
            ],
        ),
        (json!({ "items": [{}] }), vec!["spec.items[0].name: Required value", UNCHECKED]),
        (
            json!({ "items": [{ "name": "a" }, { "name": "a" }] }),
            vec!["spec.items[1]: Duplicate value: {\"name\":\"a\"}"],
        ),
        (json!({ "items": [{ "name": "a", "weight": 1 }], "size": 2.0, "since": "2026-01-01T00:00:00Z" }), vec![]),
    ];
    for (spec, want) in table {
        assert_eq!(refusals(&spec, None), want, "{spec}");
        let was_right = json!({ "items": [{ "name": "z" }], "size": 1 });
        assert_eq!(refusals(&spec, Some(&was_right)), want, "{spec} in the place of what was right");
        assert_eq!(
            refusals(&spec, Some(&spec)),
            Vec::<String>::new(),
            "{spec} was let in once, and is not judged again"
        );
    }
    let strategy = custom(&definition()).unwrap().strategy;
    let mut object = gadget(&json!({ "size": 0 }));
    object["status"] = json!({ "count": -1 });
    let errors = strategy.validate_status_update(&object, &gadget(&json!({ "size": 0 })));
    let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["status.count"], "of a status nothing else is judged");
}

#[test]
fn status_subresource_writes_the_status_only() {
    let strategy = custom(&definition()).unwrap().strategy;
    let mut old = gadget(&json!({ "size": 1 }));
    old["metadata"]["generation"] = json!(4);
    old["status"] = json!({ "count": 1 });
    let mut new = gadget(&json!({ "size": 2 }));
    new["status"] = json!({ "count": 9 });
    new["metadata"]["labels"] = json!({ "a": "b" });

    let mut created = new.clone();
    strategy.prepare_for_create(&mut created);
    assert_eq!((&created["status"], &created["metadata"]["generation"]), (&Value::Null, &json!(1)));
    let mut updated = new.clone();
    strategy.prepare_for_update(&mut updated, &old);
    assert_eq!((&updated["status"]["count"], &updated["metadata"]["generation"]), (&json!(1), &json!(5)));
    let mut written = new;
    strategy.prepare_for_status_update(&mut written, &old);
    let mut want = old.clone();
    want["status"]["count"] = json!(9);
    assert_eq!(written, want);
}

#[test]
fn status_without_a_subresource_is_an_ordinary_field() {
    let mut definition = definition();
    definition["spec"]["versions"][0]["subresources"] = json!({});
    let resource = custom(&definition).unwrap();
    assert!(!resource.has_status);
    let mut old = gadget(&json!({ "size": 1 }));
    old["status"] = json!({ "count": 1 });
    resource.strategy.prepare_for_create(&mut old);
    assert_eq!((&old["status"]["count"], &old["metadata"]["generation"]), (&json!(1), &json!(1)));
    let mut new = old.clone();
    new["status"] = json!({ "count": 2 });
    resource.strategy.prepare_for_update(&mut new, &old);
    assert_eq!((&new["status"]["count"], &new["metadata"]["generation"]), (&json!(2), &json!(2)));
    let mut labelled = new.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    resource.strategy.prepare_for_update(&mut labelled, &new);
    assert_eq!(labelled["metadata"]["generation"], 2, "of the metadata nothing is counted");
}

#[test]
fn new_finalizer_without_a_qualified_name_causes_a_warning() {
    let strategy = custom(&definition()).unwrap().strategy;
    let with = |finalizers: &[&str]| {
        let mut object = gadget(&json!({}));
        object["metadata"]["finalizers"] = json!(finalizers);
        object
    };
    let told = |object: &Value, old: Option<&Value>| strategy.warnings(object, old);
    let rest = "to avoid accidental conflicts with other finalizer writers";
    let bare = format!("metadata.finalizers: \"mine\": prefer a domain-qualified finalizer name {rest}");
    let domain =
        format!("metadata.finalizers: \"a.io\": prefer a domain-qualified finalizer name including a path (/) {rest}");
    let all = with(&["mine", "a.io", "a.io/b", "foregroundDeletion"]);
    assert_eq!(told(&all, None), [domain.clone(), bare]);
    assert_eq!(told(&all, Some(&with(&["mine"]))), [domain]);
    assert_eq!(told(&all, Some(&all)), Vec::<String>::new());
}

#[test]
fn a_definition_without_columns_has_the_age() {
    let mut definition = definition();
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
    let strategy = custom(&definition).unwrap().strategy;
    let columns = strategy.columns();
    assert_eq!(columns.iter().map(|column| &*column.name).collect::<Vec<_>>(), ["Name", "Age"]);
    let mut object = gadget(&json!({}));
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let cells = strategy.cells(&object, "2026-01-02T00:00:00Z".parse().unwrap());
    assert_eq!(cells, [json!("g"), json!("24h")]);
}

#[test]
fn the_columns_are_those_of_the_definition() {
    let resource = custom(&definition()).unwrap();
    assert_eq!((resource.singular.as_str(), resource.short_names.as_slice()), ("gadget", &["gd".to_owned()][..]));
    let columns = resource.strategy.columns();
    let shown: Vec<_> = columns.iter().map(|column| (&*column.name, &*column.type_, column.priority)).collect();
    let want = [
        ("Name", "string", 0),
        ("Size", "integer", 1),
        ("First", "string", 0),
        ("Labels", "string", 0),
        ("Since", "date", 0),
        ("Odd", "boolean", 0),
    ];
    assert_eq!(shown, want);
    assert_eq!(columns[1].description, "Custom resource definition column (in JSONPath format): .spec.size");
    assert_eq!(columns[3].description, "All of them.");

    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    let object = gadget(&json!({
        "size": 2, "items": [{ "name": "a" }, { "name": "b" }], "labels": { "x": "y" }, "since": "2026-01-01T00:00:00Z",
        "code": "ab",
    }));
    let cells = resource.strategy.cells(&object, now);
    assert_eq!(cells, [json!("g"), json!(2), json!("a"), json!("{\"x\":\"y\"}"), json!("24h"), Value::Null]);
    let cells = resource.strategy.cells(&gadget(&json!({})), now);
    assert_eq!(cells[1..], vec![Value::Null; 5]);
}

#[test]
fn a_definition_that_is_not_understood_is_refused_with_its_name() {
    let table = [
        ("/versions/0/schema/openAPIV3Schema/properties/spec/$ref", json!("#/x"), "unknown field `$ref`"),
        ("/versions/0/schema/openAPIV3Schema/type", json!("any"), "unknown variant `any`"),
        (
            "/versions/0/schema/openAPIV3Schema/properties/spec/properties/since/type",
            Value::Null,
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[since].type: Required value: must not be \
             empty for specified object fields",
        ),
        (
            "/versions/0/schema/openAPIV3Schema/properties/spec/properties/items/items",
            Value::Null,
            "properties[items].items: Required value: must be specified",
        ),
        ("/versions/0/schema/openAPIV3Schema/properties/spec/properties/since/pattern", json!("("), "the pattern ("),
        ("/versions/0/subresources/size", json!({}), "unknown field `size`"),
        ("/versions", json!([]), "0 of its versions are stored, and one has to be"),
        ("/versions/0/additionalPrinterColumns/0/jsonPath", json!("spec.size"), "the path \"spec.size\" of a column"),
        ("/scope", json!("Everywhere"), "unknown variant `Everywhere`"),
    ];
    for (place, value, want) in table {
        let mut broken = definition();
        let (parent, field) = place.rsplit_once('/').unwrap();
        broken["spec"].pointer_mut(parent).unwrap()[field] = value;
        let error = custom(&broken).unwrap_err().to_string();
        assert!(error.starts_with("cannot serve the CustomResourceDefinition \"gadgets.example.com\": "), "{error}");
        assert!(error.contains(want), "{want}: {error}");
    }
}

#[test]
fn several_versions_are_served_in_kubernetes_order_and_one_is_stored() {
    let mut definition = definition();
    let version = definition["spec"]["versions"][0].clone();
    let made = |name: &str, served: bool, storage: bool| {
        let mut version = version.clone();
        (version["name"], version["served"], version["storage"]) = (name.into(), served.into(), storage.into());
        version
    };
    let names = ["foo1", "v1alpha1", "v3beta1", "v1", "bar", "v10", "v2"];
    let mut all: Vec<Value> = names.iter().map(|name| made(name, true, *name == "v3beta1")).collect();
    all.push(made("v0", false, false));
    definition["spec"]["versions"] = all.into();
    let found = versions(&definition).unwrap();
    let served: Vec<&str> = found.served.iter().map(|resource| resource.version.as_str()).collect();
    assert_eq!(served, ["v10", "v2", "v1", "v3beta1", "v1alpha1", "bar", "foo1"]);
    assert_eq!(found.stored.version, "v3beta1");
    definition["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let error = custom(&definition).unwrap_err().to_string();
    assert!(error.ends_with("spec.conversion.strategy: Webhook is not supported by this server"), "{error}");
}

/// A definition whose `spec.x` has this schema.
fn definition_of(schema: &Value) -> Value {
    let mut definition = definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({ "type": "object", "properties": { "x": schema } });
    definition
}

#[test]
fn every_keyword_is_applied_in_the_real_servers_words() {
    let int_or_string =
        json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] });
    let any = json!({ "type": "object", "additionalProperties": true, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    let one = json!({ "type": "integer", "oneOf": [{ "multipleOf": 2 }, { "multipleOf": 3 }] });
    let all = json!({ "type": "integer", "allOf": [{ "minimum": 1 }, { "maximum": 9 }], "not": { "enum": [5] } });
    let string = json!({ "type": "string", "pattern": "^a+$", "nullable": true });
    let number = json!({
        "type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 2.5, "exclusiveMaximum": true, "multipleOf": 0.1,
    });
    let list = json!({
        "type": "array", "maxItems": 2, "items": { "type": "string" }, "x-kubernetes-list-type": "set",
    });
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" }, "minProperties": 1, "maxProperties": 2 });
    let table = [
        (&int_or_string, json!(1), vec![]),
        (&int_or_string, json!("10%"), vec![]),
        (
            &int_or_string,
            json!(true),
            vec![
                "spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer,string: \"boolean\"",
                "<nil>: Invalid value: \"\": \"spec.x\" must validate at least one schema (anyOf)",
                "spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer: \"boolean\"",
            ],
        ),
        (&any, json!({ "b": 1, "c": 2 }), vec![]),
        (
            &any,
            json!({}),
            vec![
                "<nil>: Invalid value: \"\": \"spec.x\" must validate at least one schema (anyOf)",
                "spec.x.a: Required value",
            ],
        ),
        (&one, json!(4), vec![]),
        (
            &one,
            json!(6),
            vec![
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            &one,
            json!(5),
            vec![
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found none valid",
                "spec.x: Invalid value: 5: spec.x in body should be a multiple of 2",
            ],
        ),
        (&all, json!(4), vec![]),
        (
            &all,
            json!(10),
            vec![
                "spec.x: Invalid value: 10: spec.x in body should be less than or equal to 9",
                "<nil>: Invalid value: \"\": \"spec.x\" must validate all the schemas (allOf)",
            ],
        ),
        (&all, json!(5), vec!["<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)"]),
        (&string, json!("aa"), vec![]),
        (&string, Value::Null, vec![]),
        (&string, json!("b"), vec!["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"]),
        (&number, json!(1.1), vec![]),
        (&number, json!(1), vec!["spec.x: Invalid value: 1: spec.x in body should be greater than 1"]),
        (&number, json!(2.5), vec!["spec.x: Invalid value: 2.5: spec.x in body should be less than 2.5"]),
        (&number, json!(1.15), vec!["spec.x: Invalid value: 1.15: spec.x in body should be a multiple of 0.1"]),
        (&list, json!(["a", "b"]), vec![]),
        (&list, json!(["a", "a"]), vec!["spec.x[1]: Duplicate value: \"a\""]),
        (&list, json!(["a", "b", "c"]), vec!["spec.x: Too many: 3: must have at most 2 items"]),
        (&map, json!({}), vec!["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"]),
        (&map, json!({ "a": "", "b": "", "c": "" }), vec!["spec.x: Too many: 3: must have at most 2 items"]),
    ];
    for (schema, value, want) in table {
        let strategy = custom(&definition_of(schema)).unwrap().strategy;
        let mut object = gadget(&json!({ "x": value }));
        object["metadata"] = json!({ "name": "g" });
        assert_eq!(strategy.normalize(&mut object).unwrap(), [""; 0], "{schema}");
        assert_eq!(object["spec"].get("x"), Some(&value), "{schema} keeps the value");
        let errors = strategy.validate_create(&object).into_iter();
        let errors: Vec<_> = errors.map(|error| format!("{}: {}", error.field, error.body)).collect();
        assert_eq!(errors, want, "{schema}: {value}");
    }
}

#[test]
fn rules_and_subresources_that_have_no_effect_are_named() {
    let mut definition = definition();
    assert_eq!(warnings(&definition), [""; 0]);
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"]["scale"] =
        json!({ "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.count" });
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{ "rule": "url(self.size).getHost() != 'x'" }, { "rule": "self.size != 'x'" }]);
    assert!(custom(&definition).is_ok());
    let want = [
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations: the CEL rule \
         \"url(self.size).getHost() != 'x'\" is not judged by this server: getHost is not evaluated here",
        "spec.versions[0].subresources.scale: it is not served by this server",
    ];
    assert_eq!(warnings(&definition), want);
}

/// A sentence, the spec, the old one, the errors, and how many rules are not judged.
#[cfg(feature = "cel")]
type Applied<'a> = (&'a str, Value, Option<Value>, &'a [&'a str], usize);

#[cfg(feature = "cel")]
#[test]
fn rules_are_applied_to_values_and_to_changes() {
    let mut definition = definition();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    schema["properties"]["size"]["x-kubernetes-validations"] =
        json!([{ "rule": "self >= oldSelf", "message": "it only grows" }, { "rule": "self != 13" }]);
    schema["properties"]["items"]["items"]["properties"]["weight"]["x-kubernetes-validations"] =
        json!([{ "rule": "self == oldSelf", "message": "it stays" }]);
    schema["x-kubernetes-validations"] = json!([
        { "rule": "self.size < 100", "messageExpression": "'too large: ' + string(self.size)", "reason": "FieldValueForbidden", "fieldPath": ".size" },
        { "rule": "self.colour == 'red' || true" }, { "rule": "self.open.x == 1 || self.size < 50" },
    ]);
    let strategy = custom(&definition).unwrap().strategy;
    let items =
        |weights: [f64; 2]| json!([{ "name": "a", "weight": weights[0] }, { "name": "b", "weight": weights[1] }]);
    let swapped = json!([{ "name": "b", "weight": 2.0 }, { "name": "a", "weight": 3.0 }]);
    let rows: [Applied<'_>; 8] = [
        ("they hold", json!({ "size": 1 }), None, &[], 0),
        ("one does not", json!({ "size": 13 }), None, &["spec.size: Invalid value: 13: failed rule: self != 13"], 0),
        (
            "its own words, field and reason",
            json!({ "size": 100, "open": { "x": 1 } }),
            None,
            &["spec.size: Forbidden: too large: 100"],
            0,
        ),
        ("one has no result", json!({ "size": 60 }), None, &[], 1),
        ("it grows", json!({ "size": 3 }), Some(json!({ "size": 2 })), &[], 0),
        (
            "it shrinks",
            json!({ "size": 2 }),
            Some(json!({ "size": 3 })),
            &["spec.size: Invalid value: 2: it only grows"],
            0,
        ),
        (
            "it is not new in the list",
            json!({ "size": 1, "items": swapped }),
            Some(json!({ "size": 1, "items": items([1.0, 2.0]) })),
            &["spec.items[1].weight: Invalid value: 3.0: it stays"],
            0,
        ),
        ("it is new in the list", json!({ "size": 1, "items": items([1.0, 2.0]) }), Some(json!({ "size": 1 })), &[], 0),
    ];
    for (name, spec, old, want, unknown) in rows {
        let (object, old) = (gadget(&spec), old.map(|old| gadget(&old)));
        let errors = match &old {
            Some(old) => strategy.validate_update(&object, old),
            None => strategy.validate_create(&object),
        };
        let errors: Vec<String> = errors.into_iter().map(|error| format!("{}: {}", error.field, error.body)).collect();
        assert_eq!(errors, want, "{name}");
        let warnings = strategy.warnings(&object, old.as_ref());
        assert_eq!(warnings.len(), unknown, "{name}: {warnings:?}");
    }
}

#[test]
fn columns_select_items_of_lists() {
    let object =
        json!({ "a": [{ "type": "Ready", "status": "True" }, { "type": "Old", "status": "False" }], "b.c": 1 });
    let rows = [
        (".a[0].status", json!("True")),
        (".a[*].status", json!("True")),
        (".a[1].status", json!("False")),
        (".a[?(@.type==\"Old\")].status", json!("False")),
        (".a[?(@.type == 'Ready')].status", json!("True")),
        (".a[?(@.type==\"None\")].status", Value::Null),
        (".a[7].status", Value::Null),
    ];
    for (path, want) in rows {
        assert_eq!(follow(&steps(path).unwrap(), &object).unwrap_or(&Value::Null), &want, "{path}");
    }
    for path in ["a", ".", ".a[", ".a[x]", ".a..b", ".a[?(@.b>1)]", r".a\.b", "['a']"] {
        assert!(steps(path).is_none(), "{path}");
    }
}
