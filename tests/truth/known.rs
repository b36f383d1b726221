//! Intended differences of the embedded server. `crates/apiserver/src/lib.rs` describes them in more detail.

use serde_json::Value;

use super::compare::Known;

/// The error for a patch with an invalid result quotes the whole object.
const QUOTED: &str = "the members of a quoted object are in alphabetical order, not in that of Go's types";
/// Go's own form of printed objects.
const INTERNAL: &str = "values of upstream's internal Go types are not reproduced";
const PRIORITY: &str = "priority classes are not served: any name is taken";
const LABELS: &str =
    "the first write of a Job that changes nothing stores the labels that upstream has only shown so far";
const YAML: &str = "YAML is read as version 1.2 has it: y, n, yes, no, on and off are text";

pub const KNOWN: &[Known] = &[
    quoted("field-validation", "a merge patch is validated"),
    quoted("field-validation", "a JSON patch is validated"),
    quoted("status", "a time that is none"),
    quoted("status", "a list that is none"),
    quoted("json-patch", "a result of another type"),
    quoted("json-patch", "the kind cannot be replaced"),
    quoted("merge-patch", "a field of another type"),
    quoted("merge-patch", "another kind"),
    quoted("merge-patch", "another version"),
    Known { scenario: "job-update", step: "the template cannot", path: "/body/*", alike: same_refusal, why: INTERNAL },
    Known {
        scenario: "pods",
        step: "a merge patch that changes more than the image",
        path: "/body/*",
        alike: shorter,
        why: INTERNAL,
    },
    Known { scenario: "pods", step: "a node cannot be set", path: "/body/*", alike: shorter, why: INTERNAL },
    Known {
        scenario: "pod-fields",
        step: "a priority class that does not exist",
        path: "/*",
        alike: anyhow,
        why: PRIORITY,
    },
    unchanged_job("a Job is applied again"),
    unchanged_job("a Job is applied a third time"),
    unchanged_job("a patch that changes nothing of it"),
    Known { scenario: "apply", step: "in YAML a y is a boolean", path: "/*", alike: anyhow, why: YAML },
];

const fn quoted(scenario: &'static str, step: &'static str) -> Known {
    Known { scenario, step, path: "/body/*", alike: same_quoted, why: QUOTED }
}

const fn unchanged_job(step: &'static str) -> Known {
    Known { scenario: "apply", step, path: "/body/metadata/resourceVersion", alike: anyhow, why: LABELS }
}

fn anyhow(_real: &Value, _here: &Value) -> bool {
    true
}

/// The real server's message is longer.
fn shorter(real: &Value, here: &Value) -> bool {
    matches!((real.as_str(), here.as_str()), (Some(real), Some(here)) if real.starts_with(here))
}

/// Only the refused value is printed differently.
fn same_refusal(real: &Value, here: &Value) -> bool {
    let parts = |value: &Value| {
        let (start, rest) = value.as_str()?.split_once("Invalid value: ")?;
        Some((start.to_owned(), rest.rsplit_once("}: ")?.1.to_owned()))
    };
    parts(real).is_some() && parts(real) == parts(here)
}

/// The quoted objects are equal as JSON, and so is the text around them.
fn same_quoted(real: &Value, here: &Value) -> bool {
    let parts = |value: &Value| {
        let text = value.as_str()?;
        let at = text.find("\"{")?;
        // Go quotes as JSON does, as far as these texts go.
        let mut quoted = serde_json::Deserializer::from_str(&text[at..]).into_iter::<String>();
        let object: Value = serde_json::from_str(&quoted.next()?.ok()?).ok()?;
        Some((text[..at].to_owned(), sorted(object), text[at + quoted.byte_offset()..].to_owned()))
    };
    parts(real).is_some() && parts(real) == parts(here)
}

/// Managed fields are ordered as everywhere in the comparison.
fn sorted(mut object: Value) -> Value {
    if let Some(Value::Array(managed)) = object.pointer_mut("/metadata/managedFields") {
        managed.sort_by_cached_key(Value::to_string);
    }
    object
}
