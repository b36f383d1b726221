//! From a document to objects, and what an API server would say of each.
//!
//! Guarantees: a batch/v1 CronJob passes the steps of a create on the embedded server, with unknown fields refused as kubectl
//! asks for it; of the other kinds everything is judged that their definition's schema says, and the schedule by the
//! controller's own parser. Pure.

use serde_json::Value;

use super::Fault;
use crate::api::{Flavour, crd};
use crate::apiserver::kinds;
use crate::apiserver::status::invalid_field;
use crate::apiserver::{self, Resource};
use crate::schedule::{Schedule, Zone};

/// What an object is to this program.
pub(super) enum Kind {
    /// Something with a schedule.
    Scheduled(Flavour),
    /// Something else.
    Other,
}

/// The objects of a document: none in an empty one, and of a List its items.
pub(super) fn objects(document: &str) -> Result<Vec<Value>, Fault> {
    let object: Value = serde_saphyr::from_str(document).map_err(|error| {
        let text = error.to_string();
        Fault::error("", format!("not YAML: {}", text.lines().next().unwrap_or_default()))
    })?;
    if object.is_null() {
        return Ok(Vec::new());
    }
    Ok(match object["items"].as_array() {
        Some(items) if object["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => items.clone(),
        _ => vec![object],
    })
}

/// Kind, namespace and name, as far as they are there.
pub(super) fn name_of(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace) = (text("/kind"), text("/metadata/namespace"));
    let name = match text("/metadata/name") {
        "" => text("/metadata/generateName"),
        name => name,
    };
    let name = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    format!("{kind} {name}").trim().to_owned()
}

/// What kind of object it is.
pub(super) fn kind_of(object: &Value) -> Result<Kind, Fault> {
    let text = |field: &str| match object[field].as_str() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Fault::error(field, "is missing, or no text; every manifest needs it")),
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let flavour = Flavour::ALL
        .into_iter()
        .find(|flavour| flavour.parent.api_version() == api_version && flavour.parent.kind == kind);
    match flavour {
        Some(flavour) => Ok(Kind::Scheduled(flavour)),
        None if kind == "CronJob" && api_version.starts_with("batch/") => {
            let message =
                format!("{api_version} is not served any more; CronJobs are in batch/v1 since Kubernetes 1.21");
            Err(Fault::error("apiVersion", message))
        }
        None => Ok(Kind::Other),
    }
}

/// Everything that an API server would say of a new object of that flavour.
pub(super) fn judge(flavour: Flavour, object: &Value) -> Vec<Fault> {
    match flavour {
        Flavour::CronJob => judge_builtin(object),
        Flavour::Tutorial | Flavour::ApiExample => judge_custom(flavour, object),
    }
}

fn judge_builtin(object: &Value) -> Vec<Fault> {
    let is_meant = |resource: &Resource| resource.group == "batch" && resource.kind == "CronJob";
    let Some(resource) = kinds::builtin().into_iter().find(is_meant) else { return Vec::new() };
    let judgement = match apiserver::judge_new(&resource, object.clone()) {
        Ok(judgement) => judgement,
        // Go's sentence names the type and the field.
        Err(error) => return vec![Fault::error("", error)],
    };
    let unknown = judgement.unknown.into_iter().map(|field| Fault::error(field, "there is no such field"));
    let refused = judgement.errors.into_iter().map(|error| Fault::error(error.field, error.body));
    let warned = judgement.warnings.into_iter().map(|warning| Fault::warning("", warning));
    unknown.chain(refused).chain(warned).collect()
}

fn judge_custom(flavour: Flavour, object: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let definitions = crd::all();
    let is_meant = |definition: &&Value| definition["spec"]["group"] == flavour.parent.group;
    if let Some(definition) = definitions.iter().find(is_meant) {
        compare(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], object, "", &mut faults);
    }
    if object["metadata"]["name"].as_str().or(object["metadata"]["generateName"].as_str()).is_none_or(str::is_empty) {
        faults.push(Fault::error("metadata.name", "is missing; every manifest needs it"));
    }
    let schedule = &object["spec"]["schedule"];
    if let Some(Err(error)) = schedule.as_str().map(|text| Schedule::parse_standard(text, Zone::UTC)) {
        faults.push(Fault::error("spec.schedule", invalid_field("spec.schedule", schedule, &error.to_string()).body));
    }
    faults
}

/// Compares a value with a structural schema, as far as the schemas of this program go.
fn compare(schema: &Value, value: &Value, path: &str, faults: &mut Vec<Fault>) {
    let mut fault = |message: String| faults.push(Fault::error(path, message));
    match (schema["type"].as_str().unwrap_or_default(), value) {
        // Nothing may be null here, and the server drops what is.
        (_, Value::Null) | ("boolean", Value::Bool(_)) => {}
        ("string", Value::String(text)) => {
            let allowed = schema["enum"].as_array();
            if let Some(allowed) = allowed.filter(|allowed| !allowed.contains(value)) {
                let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
                fault(format!("{value} is not allowed; use one of {}", names.join(", ")));
            }
            if schema["maxLength"].as_u64().is_some_and(|most| text.chars().count() as u64 > most) {
                fault(format!("must be no more than {} characters", schema["maxLength"]));
            }
        }
        ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => {
            if schema["minimum"].as_f64().zip(number.as_f64()).is_some_and(|(least, number)| number < least) {
                fault(format!("must be {} or more, and is {number}", schema["minimum"]));
            }
        }
        ("array", Value::Array(items)) => {
            if schema["minItems"].as_u64().is_some_and(|least| (items.len() as u64) < least) {
                fault(format!("needs at least {} of them", schema["minItems"]));
            }
            for (index, item) in items.iter().enumerate() {
                compare(&schema["items"], item, &format!("{path}[{index}]"), faults);
            }
        }
        ("object", Value::Object(_)) => compare_fields(schema, value, path, faults),
        (type_, value) => fault(format!("{value} is no {type_}")),
    }
}

fn compare_fields(schema: &Value, value: &Value, path: &str, faults: &mut Vec<Fault>) {
    let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let is_there = |name: &str| !value[name].is_null();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !is_there(name) {
            faults.push(Fault::error(inner(name), "is missing"));
        }
    }
    // Of metadata a schema says only what is special about it.
    let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true || path == "metadata";
    for (name, value) in value.as_object().into_iter().flatten() {
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Object(_)) => compare(&schema["additionalProperties"], value, &inner(name), faults),
            (Value::Null, _) if is_open => {}
            (Value::Null, _) => faults.push(Fault::error(inner(name), "there is no such field")),
            (known, _) => compare(known, value, &inner(name), faults),
        }
    }
}
