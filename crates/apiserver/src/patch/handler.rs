//! The PATCH verb.
//!
//! Matches k8s.io/apiserver `pkg/endpoints/handlers/patch.go` (`jsonPatcher`, `smpPatcher`, `applyPatcher`).

use apimachinery::field::invalid_field;
use apimachinery::status::{self, Qualified, Result, Status};
use serde_json::{Map, Value, json};

use super::{PatchType, go_map, json_patch, merge_patch, strategic_patch, typed};
use crate::body::{self, Document, FieldValidation, parse_json, parse_yaml, set_kind, strict_problems};
use crate::managers::Writer;
use crate::meta;
use crate::pending_write::PendingWrite;
use crate::read;
use crate::registry::Resource;
use crate::rest::{Call, Target, WriteOptions};
use crate::store::Store;
use crate::write::{Written, judge_problems, store_patched};

/// The maximum number of operations in a JSON patch.
const MAX_OPERATIONS: usize = 10_000;

/// Changes an object, or creates it (apply only).
pub fn patch(store: &mut Store, call: &Call, pending: &mut PendingWrite) -> Result<Written> {
    let target = &call.target;
    let Some(patch_type) = PatchType::from_content_type(&call.content_type) else {
        return Err(status::generic(415, "415: Unsupported Media Type"));
    };
    let options = call.write_options("PatchOptions", Some(patch_type == PatchType::Apply))?;
    let old = read::current(store, target);
    let work = Work { target, options: &options, body: &call.body, now: pending.now };
    let warnings = &mut pending.warnings;
    let object = match (patch_type, &old) {
        (PatchType::Apply, _) if old.is_none() && !target.subresource.is_empty() => {
            return Err(status::not_found(&target.resource.qualified(), &target.name));
        }
        (PatchType::Apply, old) => work.apply(old.as_deref().map(|old| &**old), warnings)?,
        (_, None) => return Err(status::not_found(&target.resource.qualified(), &target.name)),
        (PatchType::Json, Some(old)) => work.json(old, warnings)?,
        (PatchType::Merge, Some(old)) => work.merge(old, warnings)?,
        (PatchType::Strategic, Some(old)) => work.strategic(old, warnings)?,
    };
    store_patched(store, target, old.as_deref().map(|old| &**old), object, &options, pending)
}

struct Work<'a> {
    target: &'a Target,
    options: &'a WriteOptions,
    body: &'a [u8],
    now: chrono::DateTime<chrono::Utc>,
}

/// Matches the Invalid error of a patch, which names neither kind nor object.
fn invalid_patch(value: &str, detail: &str) -> Box<Status> {
    status::invalid(&Qualified::default(), "", &[invalid_field("patch", &json!(value), detail)])
}

impl Work<'_> {
    fn resource(&self) -> &Resource {
        &self.target.resource
    }

    fn finish(&self, old: &Value, mut object: Value) -> Value {
        let resource = self.resource();
        set_kind(resource, &mut object);
        resource.strategy.set_defaults(&mut object);
        self.writer().update(Some(old), &mut object);
        object
    }

    fn writer(&self) -> Writer<'_> {
        Writer {
            resource: self.resource(),
            manager: &self.options.manager,
            subresource: &self.target.subresource,
            now: self.now,
        }
    }

    /// Decodes the result of a JSON or merge patch as the kind. `apply` makes it from the old object; an error shows it before
    /// decoding.
    fn decode(
        &self,
        old: &Value,
        apply: impl Fn(&mut Value),
        duplicates: Vec<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Value> {
        let make = || {
            let mut patched = old.clone();
            apply(&mut patched);
            patched
        };
        let refuse = |error: &str| invalid_patch(&make().to_string(), error);
        let mut patched = make();
        self.check_kind(&patched).map_err(|error| refuse(&error))?;
        let unknown = body::normalize(self.resource(), &mut patched).map_err(|error| refuse(&error))?;
        // Duplicates are found in the patch, before the result is decoded.
        let mut problems = strict_problems(Vec::new(), duplicates);
        problems.extend(strict_problems(unknown, Vec::new()));
        judge_problems(problems, self.options.validation, warnings, refuse)?;
        Ok(self.finish(old, patched))
    }

    /// Rejects a patch that changes the kind of an object.
    fn check_kind(&self, patched: &Value) -> std::result::Result<(), String> {
        let (kind, version) = (&patched["kind"], &patched["apiVersion"]);
        if *kind == json!(self.resource().kind) && *version == json!(self.resource().api_version()) {
            return Ok(());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Err(body::other_kind(self.resource(), &text(version), &text(kind)))
    }

    fn parse_json(&self) -> Result<Document> {
        parse_json(self.body).map_err(|_| status::bad_request("invalid JSON patch"))
    }

    fn parse(&self, form: &str) -> Result<Document> {
        // Without strict decoding, the library that applies the patch finds the error and words it.
        let ignore = self.options.validation == FieldValidation::Ignore;
        let word = |error: String| if ignore { error } else { format!("error decoding patch: {error}") };
        let document = self.parse_json()?;
        let fits = match form {
            "map[string]interface {}" => document.value.is_object(),
            _ => document.value.is_array(),
        };
        if fits {
            return Ok(document);
        }
        let error = format!("json: cannot unmarshal {} into Go value of type {form}", go_form(&document.value));
        Err(status::bad_request(word(error)))
    }

    fn json(&self, old: &Value, warnings: &mut Vec<String>) -> Result<Value> {
        let document = self.parse("[]handlers.jsonPatchOp")?;
        let operations = document.value.as_array().map_or(&[][..], Vec::as_slice);
        if operations.len() > MAX_OPERATIONS {
            let count = operations.len();
            let message = format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}");
            return Err(status::too_large(&message));
        }
        let mut patched = old.clone();
        json_patch(&mut patched, operations).map_err(|_| status::generic(422, ""))?;
        let duplicates = document.duplicates.iter().map(|path| path.rsplit('.').next().unwrap_or(path).to_owned());
        let problems = strict_problems(Vec::new(), duplicates.collect());
        let problems = problems.into_iter().map(|problem| format!("json patch {problem}")).collect();
        judge_problems(problems, self.options.validation, warnings, |error| {
            invalid_patch(&patched.to_string(), error)
        })?;
        let apply = |object: &mut Value| {
            // The same operations have just succeeded.
            let _ = json_patch(object, operations);
        };
        self.decode(old, apply, Vec::new(), warnings)
    }

    fn merge(&self, old: &Value, warnings: &mut Vec<String>) -> Result<Value> {
        if self.body.trim_ascii() == b"null" {
            return Err(status::bad_request("Invalid JSON Patch"));
        }
        let document = self.parse("map[string]interface {}")?;
        self.decode(old, |object| merge_patch(object, &document.value), document.duplicates, warnings)
    }

    fn strategic(&self, old: &Value, warnings: &mut Vec<String>) -> Result<Value> {
        let document = self.parse_json()?;
        let Value::Object(patch) = document.value else {
            let form = go_form(&document.value);
            let message = format!("json: cannot unmarshal {form} into Go value of type map[string]interface {{}}");
            return Err(status::bad_request(message));
        };
        let mut patched = old.clone();
        strategic_patch(self.resource(), &mut patched, &patch).map_err(status::unknown)?;
        let shown = || go_map(&patch);
        let unknown = body::normalize(self.resource(), &mut patched);
        let unknown = unknown.map_err(|error| invalid_patch(&shown(), &convert_error(&error)))?;
        let mut problems = strict_problems(Vec::new(), document.duplicates);
        problems.extend(strict_problems(unknown, Vec::new()));
        judge_problems(problems, self.options.validation, warnings, |error| invalid_patch(&shown(), error))?;
        Ok(self.finish(old, patched))
    }

    fn apply(&self, old: Option<&Value>, warnings: &mut Vec<String>) -> Result<Value> {
        let resource = self.resource();
        let document = parse_yaml(self.body);
        let document = document.map_err(|error| {
            status::bad_request(format!("error decoding patch: error converting YAML to JSON: {error}"))
        })?;
        let repeated = match self.options.validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Warn | FieldValidation::Strict => body::yaml_duplicates(self.body, &document),
        };
        let applied = document.value;
        let text = |key: &str| applied[key].as_str().unwrap_or_default();
        if text("apiVersion") != resource.api_version() || text("kind") != resource.kind {
            let version = if text("apiVersion").is_empty() { "/" } else { text("apiVersion") };
            return Err(status::bad_request(format!("invalid object type: {version}, Kind={}", text("kind"))));
        }
        if !applied["metadata"]["managedFields"].is_null() {
            return Err(status::bad_request("metadata.managedFields must be nil"));
        }
        let mut checked = applied.clone();
        let untyped = |error: &str| {
            let (namespace, name) = (meta::text(&applied, "namespace"), meta::text(&applied, "name"));
            let (version, kind) = (resource.api_version(), &resource.kind);
            let what = format!("{namespace}/{name}; {version}, Kind={kind}");
            status::unknown(format!("failed to create typed patch object ({what}): {error}"))
        };
        let unknown = resource.strategy.normalize(&mut checked);
        let unknown = unknown.map_err(|error| untyped(&typed_error(&error, &applied)))?;
        if let Some(problems) = typed::problems(resource, &applied, &unknown) {
            return Err(untyped(&problems));
        }
        let mut object = self.writer().apply(old, &without_nulls(&applied), self.options.force)?;
        match body::yaml_problem(&repeated).filter(|_| self.options.validation == FieldValidation::Strict) {
            Some(problem) => {
                let problem = format!("error strict decoding patch: error converting YAML to JSON: {problem}");
                return Err(status::bad_request(problem));
            }
            None => warnings.extend(repeated),
        }
        let normalized = resource.strategy.normalize(&mut object);
        normalized.map_err(|error| untyped(&error))?;
        body::set_kind(resource, &mut object);
        resource.strategy.set_defaults(&mut object);
        Ok(object)
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

fn go_form(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Null => "null",
    }
}

/// Converts an error of encoding/json into the words of runtime's unstructured converter.
fn convert_error(error: &str) -> String {
    let Some((got, rest)) = error.strip_prefix("json: cannot unmarshal ").and_then(|e| e.split_once(" into ")) else {
        return error.to_owned();
    };
    let wanted = rest.rsplit(' ').next().unwrap_or_default();
    let got = match got {
        "array" => "slice",
        "object" => "map",
        "number" => "int64",
        other => other,
    };
    match wanted {
        "bool" | "string" | "int32" | "int64" | "int" => format!("unrecognized type: {wanted}"),
        slice if slice.starts_with("[]") => format!("cannot restore slice from {got}"),
        map if map.starts_with("map[") => format!("cannot restore map from {got}"),
        _ => format!("cannot restore struct from: {got}"),
    }
}

/// Converts an error of encoding/json into the words of structured-merge-diff.
fn typed_error(error: &str, applied: &Value) -> String {
    let parts = error.split_once("Go struct field ").and_then(|(_, rest)| rest.split_once(" of type "));
    let Some((field, wanted)) = parts else { return error.to_owned() };
    let path = field.split_once('.').map_or(field, |(_, path)| path);
    let found = path.split('.').fold(applied, |value, part| &value[part]);
    let expected = match wanted {
        "bool" => "boolean",
        "string" => "string",
        "int32" | "int64" | "int" => "numeric (int or float)",
        slice if slice.starts_with("[]") => "list",
        _ => "map",
    };
    let got = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    format!(".{path}: expected {expected}, got &{{{got}}}")
}
