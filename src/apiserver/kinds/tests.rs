#![allow(clippy::unwrap_used)]
//! `recorded.jsonl` holds objects that were given to kube-apiserver v1.36.3 (dry run) and what came back: the object, the
//! refused fields, or the decoding error. The strategies must say the same.

use serde_json::{Value, json};

use super::*;
use crate::apiserver::registry::{FieldError, FieldErrorKind};

fn resource_of(plural: &str) -> Resource {
    builtin().into_iter().find(|resource| resource.plural == plural).unwrap()
}

fn reason(kind: FieldErrorKind) -> &'static str {
    match kind {
        FieldErrorKind::Required => "FieldValueRequired",
        FieldErrorKind::Invalid => "FieldValueInvalid",
        FieldErrorKind::NotSupported => "FieldValueNotSupported",
        FieldErrorKind::Forbidden => "FieldValueForbidden",
        FieldErrorKind::TooLong => "FieldValueTooLong",
        FieldErrorKind::Duplicate => "FieldValueDuplicate",
        FieldErrorKind::NotFound => "FieldValueNotFound",
        FieldErrorKind::TooMany => "FieldValueTooMany",
    }
}

fn causes(errors: Vec<FieldError>) -> Value {
    errors.into_iter().map(|error| json!([reason(error.kind), error.field, error.body])).collect()
}

/// The first uid in a text, which is the one that the real server had given.
fn uid_in(text: &str) -> Option<&str> {
    let is_uid = |text: &str| {
        text.bytes()
            .enumerate()
            .all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { b == b'-' } else { b.is_ascii_hexdigit() })
    };
    (0..text.len()).filter_map(|start| text.get(start..start + 36)).find(|text| is_uid(text))
}

/// What the server does with an object, as far as strategies take part: the answer, or the refused fields, or the error.
fn run(record: &Value) -> (&'static str, Value, Vec<String>) {
    let resource = resource_of(record["kind"].as_str().unwrap());
    let strategy = &resource.strategy;
    let mut object = record["object"].clone();
    let mut warnings: Vec<String> = match strategy.normalize(&mut object) {
        Ok(unknown) => unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect(),
        Err(error) => {
            let prefix = format!("{0} in version \"v1\" cannot be handled as a {0}: ", resource.kind);
            return ("error", format!("{prefix}{error}").into(), Vec::new());
        }
    };
    strategy.set_defaults(&mut object);
    let mut errors;
    if let Some(old) = record.get("old") {
        let mut old = old.clone();
        strategy.normalize(&mut old).unwrap();
        if record["status"] == true {
            strategy.prepare_for_status_update(&mut object, &old);
            errors = strategy.validate_status_update(&object, &old);
        } else {
            strategy.prepare_for_update(&mut object, &old);
            errors = strategy.validate_update(&object, &old);
        }
    } else {
        let result = &record["result"]["metadata"];
        let causes = record["causes"].to_string();
        let uid = result["uid"].as_str().or_else(|| uid_in(&causes)).unwrap_or("7fd6b3ea-48c2-4ef0-b0f3-0fce039acf32");
        let metadata = fields::child(&mut object, "metadata");
        if !strategy.is_virtual() {
            metadata["uid"] = uid.into();
            metadata["creationTimestamp"] = result["creationTimestamp"].clone();
            if resource.namespaced {
                metadata["namespace"] = "default".into();
            }
        }
        strategy.prepare_for_create(&mut object);
        errors = crate::apiserver::meta::validate(&object, resource.namespaced, strategy.name_rule());
        if strategy.is_virtual() {
            errors.clear();
        }
        errors.extend(strategy.validate_create(&object));
    }
    warnings.extend(strategy.warnings(&object));
    if !errors.is_empty() {
        return ("causes", causes(errors), warnings);
    }
    strategy.answer(&mut object);
    ("result", object, warnings)
}

/// Where ours differs from the real server, and why.
const KNOWN_DIFFERENCES: [(&str, &str); 6] = [
    ("the template may not change", "upstream shows the template in the form of its internal types"),
    ("a suspended job may not change its image", "upstream shows the template in the form of its internal types"),
    ("pod: command may not change", "upstream shows a diff of its internal types"),
    ("a rules review", "upstream lists the default roles behind the rule that allows everything"),
    ("a self review", "upstream gives it a creationTimestamp"),
    ("lease: renewed", "the update had no resourceVersion, which the server judges"),
];

#[test]
fn strategies_say_what_kube_apiserver_says() {
    let mut failures = Vec::new();
    let mut equal = 0;
    for line in include_str!("recorded.jsonl").lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let title = record["title"].as_str().unwrap();
        let (outcome, mut answer, warnings) = run(&record);
        let mut expected = record[outcome].clone();
        if outcome == "causes" {
            // Maps have no order in Go; the same cause twice is one to the server.
            for list in [&mut answer, &mut expected] {
                let list = list.as_array_mut();
                if let Some(list) = list {
                    list.sort_by_key(Value::to_string);
                    list.dedup();
                }
            }
        } else if outcome == "result" {
            for object in [&mut answer, &mut expected] {
                object["metadata"]["resourceVersion"] = Value::Null;
            }
        }
        let mut wanted: Vec<&str> =
            record["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        wanted.sort_unstable();
        let mut warnings: Vec<&str> = warnings.iter().map(String::as_str).collect();
        warnings.sort_unstable();
        let same = answer == expected && (outcome != "result" || warnings == wanted);
        let known = KNOWN_DIFFERENCES.iter().any(|(known, _)| *known == title);
        if same != known {
            equal += usize::from(same);
            continue;
        }
        let all = [&record["result"], &record["causes"], &record["error"]].map(Value::to_string).join(" ");
        failures.push(format!("## {title}\n  ours  ({outcome}): {answer} {warnings:?}\n  theirs: {all} {wanted:?}\n"));
    }
    assert!(failures.is_empty(), "{} differ, {equal} are equal:\n{}", failures.len(), failures.join("\n"));
}
