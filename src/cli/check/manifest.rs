//! Splits a document into objects and validates each as an API server does.
//!
//! Guarantees: a batch/v1 CronJob passes the steps of a create on the embedded server. Unknown fields are refused, as
//! kubectl requests. An object of the other kinds with a schedule is validated by its definition, and its schedule by the
//! controller's own parser. Configurations of webhooks and admission policies are judged as the embedded server judges them. Pure.

use std::sync::LazyLock;

use apimachinery::field::invalid_field;
use apiserver::{Resource, kinds};
use schedule::{Schedule, Zone};
use serde_json::Value;

use super::admission;
use super::{Code, Fault};
use crate::api::{ControllerKind, crd};
use crate::dev::manifests::{Content, Document, Place, YamlError, near_kinds};

/// The kind of an object.
pub(super) enum Kind {
    /// A kind with a schedule.
    Scheduled(ControllerKind),
    /// Any other kind.
    Other,
}

/// Errors of a document itself, each with its line in the file, or of a field.
type Faults = Vec<(Option<usize>, Fault)>;

/// The objects of a document, each with its place there, and what is wrong with the document itself.
pub(super) fn objects(document: &Document) -> (Vec<(Place, Value)>, Faults) {
    let (objects, errors, of_list) = match document.content() {
        Ok(Content { objects, lost, list_fault }) => (objects, lost, list_fault),
        Err(error) => (Vec::new(), vec![error], None),
    };
    let fault =
        |YamlError { line, problem, .. }| (Some(line), Fault::error(Code::NotYaml, "", format!("not YAML: {problem}")));
    let code = |field| if field == "items" { Code::Invalid } else { Code::NoKind };
    let of_list = of_list.map(|(field, message)| (None, Fault::error(code(field), field, message)));
    (objects, errors.into_iter().map(fault).chain(of_list).collect())
}

/// Kind, namespace and name, as far as present.
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
    if object.is_array() {
        let message = "the document is a list; write its items as documents, as jq '.[]' prints them, or as items of a List of v1";
        return Err(Fault::error(Code::NoKind, "", message));
    }
    if !object.is_object() {
        return Err(Fault::error(Code::NoKind, "", "the document is no object of Kubernetes"));
    }
    let text = |field: &str| match object[field].as_str() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Fault::error(Code::NoKind, field, near_kinds::MISSING)),
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let controller_kind = ControllerKind::ALL.into_iter().find(|controller_kind| {
        controller_kind.parent.api_version() == api_version && controller_kind.parent.kind == kind
    });
    match controller_kind {
        Some(controller_kind) => Ok(Kind::Scheduled(controller_kind)),
        None => match near_kinds::judge(api_version, kind) {
            Some((field, message)) => Err(Fault::error(Code::NoKind, field, message)),
            None if is_scheduled_job(api_version, kind, object) => {
                let message = "a Job of batch/v1 has no schedule; did you mean CronJob of batch/v1?";
                Err(Fault::error(Code::NoKind, "kind", message))
            }
            None => Ok(Kind::Other),
        },
    }
}

/// Whether a Job has what only a CronJob has.
fn is_scheduled_job(api_version: &str, kind: &str, object: &Value) -> bool {
    let has = |field: &str| !object["spec"][field].is_null();
    api_version == "batch/v1" && kind == "Job" && (has("schedule") || has("jobTemplate"))
}

/// The kinds of an API server, and those with a schedule that this program defines. They take long to make.
pub(super) static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let definitions = crd::all();
    let defined = definitions.iter().filter_map(|definition| kinds::custom(definition).ok());
    Served(kinds::all().into_iter().chain(defined).collect())
});

/// Kinds of objects.
pub(super) struct Served(Vec<Resource>);

impl Served {
    /// The kind of an object, if it is known.
    pub fn resource_of(&self, object: &Value) -> Option<&Resource> {
        let is_meant = |resource: &&Resource| {
            object["kind"] == resource.kind.as_str() && object["apiVersion"] == resource.api_version().as_str()
        };
        self.0.iter().find(is_meant)
    }

    /// All errors that an API server would report for a new object of that kind.
    pub fn judge(&self, controller_kind: ControllerKind, object: &Value) -> Vec<Fault> {
        let is_meant = |resource: &&Resource| {
            resource.group == controller_kind.parent.group && resource.kind == controller_kind.parent.kind
        };
        let Some(resource) = self.0.iter().find(is_meant) else { return Vec::new() };
        let webhook = schedule_fault(controller_kind, object);
        Self::judge_as(resource, object).into_iter().chain(webhook).collect()
    }

    /// All errors of a configuration of webhooks, or of a ValidatingAdmissionPolicy or its binding; of other kinds without a schedule
    /// nothing is said.
    pub fn judge_admission(&self, object: &Value) -> Vec<Fault> {
        let is_meant = |resource: &&Resource| {
            resource.kind.ends_with("WebhookConfiguration") || admission::KINDS.contains(&&*resource.kind)
        };
        self.resource_of(object).filter(is_meant).map(|resource| Self::judge_as(resource, object)).unwrap_or_default()
    }

    fn judge_as(resource: &Resource, object: &Value) -> Vec<Fault> {
        let judgement = match apiserver::judge_new(resource, object) {
            Ok(judgement) => judgement,
            Err(wrong) => {
                return wrong
                    .into_iter()
                    .map(|wrong| Fault::error(Code::Invalid, wrong.field, wrong.message))
                    .collect();
            }
        };
        let unknown = judgement
            .unknown
            .into_iter()
            .map(|field| Fault::error(Code::UnknownField, field, "there is no such field"));
        let refused = judgement.errors.into_iter().map(|error| Fault::error(Code::Invalid, error.field, error.body));
        let warned = judgement.warnings.into_iter().map(|warning| match warning.split_once(": ") {
            Some((field, message)) if is_field(field) => Fault::warning(Code::ServerWarning, field, message),
            _ => Fault::warning(Code::ServerWarning, "", warning),
        });
        unknown.chain(refused).chain(warned).collect()
    }
}

/// Whether the beginning of a warning names a field.
fn is_field(text: &str) -> bool {
    (text.starts_with("spec.") || text.starts_with("metadata.")) && !text.contains(' ')
}

/// The rule that no schema can express; a webhook checks it where there is one.
fn schedule_fault(controller_kind: ControllerKind, object: &Value) -> Option<Fault> {
    let schedule = &object["spec"]["schedule"];
    let text = schedule.as_str().filter(|_| controller_kind != ControllerKind::CronJob)?;
    let error = Schedule::parse_standard(text, Zone::UTC).err()?;
    Some(Fault::error(
        Code::Invalid,
        "spec.schedule",
        invalid_field("spec.schedule", schedule, &error.to_string()).body,
    ))
}
