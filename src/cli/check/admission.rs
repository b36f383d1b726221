//! Judges manifests by ValidatingAdmissionPolicies.
//!
//! Guarantees: an object is judged with its defaults, as a create of it is judged by the embedded server. A policy without a binding in
//! the same files is judged as if one denied for all. What is not judged is a finding of its own. Pure, but for [`read`].

use std::path::{Path, PathBuf};

use apiserver::policies::Policies;
use serde_json::{Value, json};

use super::manifest::SERVED;
use super::{Code, Fault, Severity};
use crate::dev::manifests::{self, ManifestError, Position, documents};

const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";
/// What judges objects.
pub(super) const KINDS: [&str; 2] = [POLICY, BINDING];

/// Policies, their bindings, and what they use as parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionPolicies(Vec<Value>);

/// Reads the policies in files, in directories and on stdin (`-`).
///
/// # Errors
/// The first file or document that cannot be read, the first policy that an API server refuses, or that there is no policy.
pub fn read(paths: &[PathBuf]) -> Result<AdmissionPolicies, ManifestError> {
    let (mut objects, mut ends) = (Vec::new(), Vec::new());
    let fault = |path, field, problem| {
        let place = Position { file: manifests::name_of(path), document: 1 };
        Err(ManifestError::Field { place, field, problem })
    };
    for path in paths {
        let before = objects.len();
        for file in manifests::files(path, false)?.files {
            objects.extend(read_file(&file)?);
        }
        if !objects[before..].iter().any(|object| object["kind"] == POLICY) {
            return fault(path, "kind", format!("there is no {POLICY}"));
        }
        ends.push(objects.len());
    }
    if let Some((index, problem)) = unbound(&objects) {
        let path = &paths[ends.partition_point(|end| *end <= index)];
        return fault(path, "spec.policyName", problem);
    }
    Ok(AdmissionPolicies::new(objects))
}

/// The place of the binding of a policy that is not there: its policy would be judged as if it denied for all.
fn unbound(objects: &[Value]) -> Option<(usize, String)> {
    let policies = objects.iter().filter(|object| object["kind"] == POLICY).map(|policy| &policy["metadata"]["name"]);
    let policies: Vec<&Value> = policies.collect();
    let mut bindings = objects.iter().enumerate().filter(|(_, object)| object["kind"] == BINDING);
    let (index, binding) = bindings.find(|(_, binding)| !policies.contains(&&binding["spec"]["policyName"]))?;
    let (name, policy) = (&binding["metadata"]["name"], &binding["spec"]["policyName"]);
    Some((index, format!("{BINDING} {name} is of {policy}, and there is no such {POLICY}")))
}

fn read_file(file: &Path) -> Result<Vec<Value>, ManifestError> {
    let (name, text) = (manifests::name_of(file), manifests::text_of(file)?);
    let mut objects = Vec::new();
    for (index, document) in documents(&text).into_iter().enumerate() {
        let place = Position { file: name.clone(), document: index + 1 };
        for object in document.objects().map_err(|error| error.of(&place))? {
            let is_judge = KINDS.iter().any(|kind| object["kind"] == *kind);
            let mut faults = SERVED.judge_admission(&object).into_iter().filter(|_| is_judge);
            if let Some(Fault { field, message, .. }) = faults.find(|fault| fault.severity == Severity::Error) {
                return Err(ManifestError::Object { place, problem: format!("{field}: {message}") });
            }
            objects.push(object);
        }
    }
    Ok(objects)
}

impl AdmissionPolicies {
    /// Those among the objects, with a binding for each that has none.
    pub fn new(mut objects: Vec<Value>) -> Self {
        let is_bound = |name: &Value| objects.iter().any(|object| object["spec"]["policyName"] == *name);
        let policies = objects.iter().filter(|object| object["kind"] == POLICY);
        let names = policies.map(|policy| policy["metadata"]["name"].clone()).filter(|name| !is_bound(name));
        let made: Vec<Value> = names
            .map(|name| {
                json!({
                    "apiVersion": "admissionregistration.k8s.io/v1", "kind": BINDING, "metadata": {},
                    "spec": { "policyName": name, "validationActions": ["Deny"] },
                })
            })
            .collect();
        objects.extend(made);
        Self(objects)
    }

    pub(super) fn judge(&self) -> Judge<'_> {
        Judge(Policies::among(self.0.iter()))
    }
}

/// What judges objects.
pub(super) struct Judge<'a>(Policies<'a>);

impl Judge<'_> {
    /// What policies say of an object whose kind is known.
    pub fn faults(&self, object: &Value) -> Vec<Fault> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let judged = SERVED.resource_of(object).and_then(|resource| self.0.judge_new(resource, object));
        let judged = judged.unwrap_or_default();
        let denied = judged.denied.iter().map(|failure| Fault::error(Code::DeniedByPolicy, "", failure.sentence()));
        let warned = judged.warned.iter().map(|failure| Fault::warning(Code::DeniedByPolicy, "", failure.warning()));
        let unknown =
            judged.unknown.iter().map(|why| Fault::warning(Code::PolicyNotJudged, "", format!("{POLICY} {why}")));
        denied.chain(warned).chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests;
