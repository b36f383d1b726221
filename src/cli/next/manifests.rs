//! The next runs of the CronJobs in manifests.
//!
//! Guarantees: a CronJob is read as the controller reads it. What cannot be read, and what an API server refuses in the specification
//! outside the Job template, is named, and hides nothing else. Pure.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::cron_jobs::{Answer, CronJobRuns, Question};
use crate::api::batch_v1::CronJob;
use crate::api::manage::MANAGED_ANNOTATION;
use crate::api::policy::PolicyOptions;
use crate::api::{ControllerKind, Interner, Manage, Object};
use crate::cli::check::{Source, Wrong, repository};
use crate::cli::explain::InCharge;
use crate::cli::restrictions::Restrictions;
use crate::dev::manifests::{self, Content, ManifestError, Position, documents};
use crate::options::PROGRAM;

/// The CronJobs of the texts.
pub(crate) struct Found {
    /// Each as this controller would see it, with its object and whether it is handed over.
    pub cron_jobs: Vec<(Value, CronJob, InCharge)>,
    /// A document or a CronJob that cannot be read or would be refused, or what kubectl loses of a document, each.
    pub unreadable: Vec<ManifestError>,
}

/// Reads the CronJobs in the texts; objects of other kinds are passed over, and what cannot be read hides nothing else. `namespace` is
/// that of objects without one, and `seed` the controller's `--spread-seed`.
pub(crate) fn find(sources: &[Source], namespace: &str, seed: &Arc<str>) -> Found {
    let mut found = Found { cron_jobs: Vec::new(), unreadable: Vec::new() };
    for source in sources {
        let template = repository::template(source);
        for (index, document) in documents(&source.text).into_iter().enumerate() {
            let place = Position { file: source.file.clone(), document: index + 1 };
            let Content { objects, lost, list_fault } = match document.content() {
                Ok(content) => content,
                Err(error) => {
                    let hint =
                        template.map_or(String::new(), |noun| format!("; the file is {noun}, so read what it renders"));
                    found.unreadable.push(ManifestError::Yaml { place, cause: format!("{error}{hint}") });
                    continue;
                }
            };
            found.unreadable.extend(lost.iter().map(|what| {
                if !what.problem.ends_with(manifests::TWICE) {
                    return what.of(&place);
                }
                let problem = format!("{what}; as for kubectl, the last one counts");
                ManifestError::Object { place: place.clone(), problem }
            }));
            let of_list = |(field, problem)| ManifestError::Field { place: place.clone(), field, problem };
            found.unreadable.extend(list_fault.map(of_list));
            let wrong = Wrong::in_document(&document);
            let error = |problem| ManifestError::Object { place: place.clone(), problem };
            for (of, object) in objects {
                let Some(kind) = kind_of(&object) else {
                    found.unreadable.extend(wrong.of_kind(&of, &object).map(error));
                    continue;
                };
                let (faults, is_refused) = wrong.of_object(&of, kind, &object);
                match read(object.clone(), namespace, seed) {
                    Ok(Some((cron_job, in_charge))) if !is_refused => {
                        found.cron_jobs.push((object, cron_job, in_charge));
                    }
                    Err(problem) if faults.is_empty() => {
                        found.unreadable.push(error(format!("the CronJob: {problem}")));
                    }
                    _ => found.unreadable.extend(faults.into_iter().map(error)),
                }
            }
        }
    }
    found
}

/// Computes the answer for all CronJobs in the texts, if there is one, and says what cannot be read. `namespace` is that of objects
/// without one.
pub fn next_of(
    sources: &[Source],
    namespace: &str,
    question: &Question,
    now: DateTime<Utc>,
) -> (Option<Answer>, Vec<ManifestError>) {
    let Found { cron_jobs, mut unreadable } = find(sources, namespace, &question.seed);
    let restrictions = restrictions(sources);
    let answer = |(_, cron_job, in_charge)| {
        let cron_job = restrictions.restricted(cron_job, in_charge);
        CronJobRuns::of(&cron_job, question, now).run_by(whose_rules(&cron_job, in_charge))
    };
    let mut answers: Vec<CronJobRuns> = cron_jobs.into_iter().map(answer).collect();
    let answer = match answers.pop() {
        None => {
            if unreadable.is_empty() && !sources.is_empty() {
                let file = sources.iter().map(|source| source.file.as_str()).collect::<Vec<_>>().join(", ");
                let problem = "there is no CronJob".to_owned();
                let place = Position { file, document: 1 };
                unreadable.push(ManifestError::Field { place, field: "kind", problem });
            }
            None
        }
        Some(only) if answers.is_empty() => Some(Answer::One(Box::new(only))),
        Some(last) => {
            answers.push(last);
            Some(Answer::Each(answers))
        }
    };
    (answer, unreadable)
}

/// What the Namespaces among the objects say about their CronJobs.
pub(crate) fn restrictions(sources: &[Source]) -> Restrictions {
    let mut restrictions = Restrictions::default();
    // Few manifests have one, and reading takes time.
    let sources = sources.iter().filter(|source| source.text.contains("Namespace"));
    for document in sources.flat_map(|source| documents(&source.text)) {
        document.objects().iter().flatten().for_each(|object| restrictions.add_manifest(object));
    }
    restrictions
}

/// No cluster says which controller runs what is in a manifest.
fn whose_rules(cron_job: &CronJob, in_charge: InCharge) -> String {
    if in_charge.is_handed_over() {
        format!("It is handed over: these are its runs under {PROGRAM} with --manage=annotated.")
    } else if cron_job.controller_kind.is_in_tree && cron_job.handover.managed {
        format!(
            "These are its runs under {PROGRAM} with --manage=all: {MANAGED_ANNOTATION} is \"true\", but spec.suspend is false."
        )
    } else {
        format!("These are its runs under {PROGRAM}.")
    }
}

/// The kind of an object, if that has a schedule.
fn kind_of(object: &Value) -> Option<ControllerKind> {
    let is_meant = |kind: &ControllerKind| {
        object["kind"] == kind.parent.kind && object["apiVersion"] == kind.parent.api_version().as_str()
    };
    ControllerKind::ALL.into_iter().find(is_meant)
}

/// The CronJob in an object as this controller would see it, with the defaults of the API server, and whether it is handed over
/// ([`InCharge::HandedOver`]) or not ([`InCharge::Own`]); `None` for another kind.
/// `namespace` is that of objects without one, and `seed` the controller's `--spread-seed`.
pub(crate) fn read(mut object: Value, namespace: &str, seed: &Arc<str>) -> Result<Option<(CronJob, InCharge)>, String> {
    let Some(controller_kind) = kind_of(&object) else { return Ok(None) };
    manifests::set_defaults(controller_kind, &mut object);
    // What the API server adds, and what no run depends on.
    for (part, field, value) in [
        ("metadata", "uid", json!("")),
        ("metadata", "namespace", json!(namespace)),
        ("spec", "jobTemplate", json!({})),
    ] {
        if let Some(part) = object[part].as_object_mut() {
            part.entry(field).or_insert(value);
        }
    }
    object["status"] = Value::Null;
    let mut cron_job =
        CronJob::decode(&object.to_string(), &Interner::default()).map_err(|error| error.source.to_string())?;
    PolicyOptions { enabled: true, seed: Arc::clone(seed) }.apply(&mut cron_job);
    let in_charge = if Manage::Annotated.takes(&mut cron_job) { InCharge::HandedOver } else { InCharge::Own };
    Ok(Some((cron_job, in_charge)))
}

#[cfg(test)]
mod tests;
