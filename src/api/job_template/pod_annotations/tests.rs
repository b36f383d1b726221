#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn written(spec: &str, annotations: &[(&str, &str)]) -> String {
    let annotations: Vec<_> = annotations.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let mut out = b"before ".to_vec();
    write(&mut out, spec, &annotations);
    String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_owned()
}

#[test]
fn annotations_are_put_where_they_belong_and_every_other_byte_stays() {
    // (a sentence, the text of the spec, the same with the annotations a and b)
    let table = [
        (
            "Pods with annotations",
            r#"{"x": 1.0,"template":{"metadata":{"labels":{},"annotations":{"note":"é\u0041"}},"spec":{ }} }"#,
            r#"{"x": 1.0,"template":{"metadata":{"labels":{},"annotations":{"a":"1","b":"2","note":"é\u0041"}},"spec":{ }} }"#,
        ),
        (
            "one of the annotations",
            r#"{"template":{"metadata":{"annotations":{"b" : "of the user", "z":""}}}}"#,
            r#"{"template":{"metadata":{"annotations":{"a":"1","b" : "2", "z":""}}}}"#,
        ),
        (
            "both, in another order, one with an escape in its name",
            r#"{"template":{"metadata":{"annotations":{"b":"x","\u0061":"y"}}}}"#,
            r#"{"template":{"metadata":{"annotations":{"b":"2","\u0061":"1"}}}}"#,
        ),
        (
            "no annotations",
            r#"{"template":{"metadata":{"labels":{"annotations":"x"}}}}"#,
            r#"{"template":{"metadata":{"annotations":{"a":"1","b":"2"},"labels":{"annotations":"x"}}}}"#,
        ),
        (
            "empty objects",
            r#"{"template":{"metadata":{"annotations":{ }}}}"#,
            r#"{"template":{"metadata":{"annotations":{"a":"1","b":"2" }}}}"#,
        ),
        (
            "null in the place of an object",
            r#"{"template":{"metadata":{"annotations":null}}}"#,
            r#"{"template":{"metadata":{"annotations":{"a":"1","b":"2"}}}}"#,
        ),
        (
            "no metadata",
            r#"{"template":{"spec":{}}}"#,
            r#"{"template":{"metadata":{"annotations":{"a":"1","b":"2"}},"spec":{}}}"#,
        ),
        (
            "metadata that is null",
            r#"{"template":{"metadata":null,"spec":{}}}"#,
            r#"{"template":{"metadata":{"annotations":{"a":"1","b":"2"}},"spec":{}}}"#,
        ),
        ("no template", "{}", r#"{"template":{"metadata":{"annotations":{"a":"1","b":"2"}}}}"#),
        ("annotations that are a list", r#"{"template":{"metadata":{"annotations":[]}}}"#, ""),
        ("metadata that is a text", r#"{"template":{"metadata":"x"}}"#, ""),
        ("a spec that is a number", "5", ""),
    ];
    for (sentence, spec, want) in table {
        let want = if want.is_empty() { spec } else { want };
        assert_eq!(written(spec, &[("a", "1"), ("b", "2")]), want, "{sentence}");
        assert_eq!(written(spec, &[]), spec, "{sentence}, without annotations");
    }
}

#[test]
fn names_and_values_are_escaped() {
    let text = written("{}", &[("a\"", "b\n\\")]);
    let want = json!({ "template": { "metadata": { "annotations": { "a\"": "b\n\\" } } } });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), want);
}

fn json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["template", "metadata", "annotations", "a", "b", "\u{e9}\""]);
    let leaf = prop_oneof![Just(Value::Null), Just(json!("text")), Just(json!([1, {}])), Just(json!({}))];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(|members| {
            Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
    })
}

proptest! {
    /// Whatever the spec is, the result is JSON and differs from it in the annotations at most.
    #[test]
    fn nothing_else_changes(spec in json(), is_pretty in any::<bool>()) {
        let text = if is_pretty { serde_json::to_string_pretty(&spec).unwrap() } else { spec.to_string() };
        let text = written(&text, &[("a", "1"), ("b", "2")]);
        let mut read: Value = serde_json::from_str(&text).unwrap();
        let is_object = |value: &Value| value.is_object() || value.is_null();
        let is_possible = spec.is_object()
            && is_object(&spec["template"])
            && is_object(&spec["template"]["metadata"])
            && is_object(&spec["template"]["metadata"]["annotations"]);
        let mut want = spec.clone();
        if is_possible {
            for (name, value) in [("a", "1"), ("b", "2")] {
                want["template"]["metadata"]["annotations"][name] = value.into();
            }
        }
        prop_assert_eq!(read.take(), want);
    }
}
