//! The next runs of the CronJobs in manifests.
//!
//! Guarantee: a CronJob is read as the controller reads it. Pure.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::cron_jobs::{Answer, CronJobRuns, Question};
use crate::api::batch_v1::CronJob;
use crate::api::manage::MANAGED_ANNOTATION;
use crate::api::policy::PolicyOptions;
use crate::api::{ControllerKind, Interner, Manage, Object};
use crate::cli::check::Source;
use crate::cli::explain::InCharge;
use crate::cli::restrictions::Restrictions;
use crate::dev::manifests::{self, ManifestError, Position, documents};
use crate::options::PROGRAM;

/// Computes the answer for all CronJobs in the texts; objects of other kinds are passed over. `namespace` is that of objects
/// without one.
///
/// # Errors
/// The first document that cannot be read, or that there is no CronJob.
pub fn next_of(
    sources: &[Source],
    namespace: &str,
    question: &Question,
    now: DateTime<Utc>,
) -> Result<Answer, ManifestError> {
    let restrictions = restrictions(sources);
    let mut answers = Vec::new();
    for source in sources {
        for (index, document) in documents(&source.text).into_iter().enumerate() {
            let place = Position { file: source.file.clone(), document: index + 1 };
            for object in document.objects().map_err(|error| error.of(&place))? {
                let read = read(object, namespace, &question.seed).map_err(|problem| ManifestError::Field {
                    place: place.clone(),
                    field: "the CronJob",
                    problem,
                })?;
                answers.extend(read.map(|(cron_job, in_charge)| {
                    let cron_job = restrictions.restricted(cron_job, in_charge);
                    CronJobRuns::of(&cron_job, question, now).run_by(whose_rules(&cron_job, in_charge))
                }));
            }
        }
    }
    match answers.pop() {
        None => {
            let file = sources.iter().map(|source| source.file.as_str()).collect::<Vec<_>>().join(", ");
            let problem = "there is no CronJob".to_owned();
            Err(ManifestError::Field { place: Position { file, document: 1 }, field: "kind", problem })
        }
        Some(only) if answers.is_empty() => Ok(Answer::One(Box::new(only))),
        Some(last) => {
            answers.push(last);
            Ok(Answer::Each(answers))
        }
    }
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

/// The CronJob in an object as this controller would see it, with the defaults of the API server, and whether it is handed over
/// ([`InCharge::HandedOver`]) or not ([`InCharge::Own`]); `None` for another kind.
/// `namespace` is that of objects without one, and `seed` the controller's `--spread-seed`.
pub(crate) fn read(mut object: Value, namespace: &str, seed: &Arc<str>) -> Result<Option<(CronJob, InCharge)>, String> {
    let is_meant = |kind: &ControllerKind| {
        object["kind"] == kind.parent.kind && object["apiVersion"] == kind.parent.api_version().as_str()
    };
    let Some(controller_kind) = ControllerKind::ALL.into_iter().find(is_meant) else { return Ok(None) };
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
