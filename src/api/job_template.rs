//! A Job's body from a CronJob's template.
//!
//! Guarantees: of the template's metadata labels and annotations are taken over, as upstream does, and its whole `spec`
//! is passed on as the text it came in; a slot always gives the same name; times are written as metav1.Time writes them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::batch_v1::{CronJob, Job, SCHEDULED_TIMESTAMP_ANNOTATION};
use super::{Object, ObjectName};
use crate::schedule::Zone;

/// The name of the Job of one slot: `<name>-<unix minutes>`. Matches upstream `getJobName`.
pub fn job_name(cron_job_name: &str, slot: DateTime<Utc>) -> String {
    // Go divides toward zero; slots before 1970 exist only in tests, and there both must agree.
    format!("{cron_job_name}-{}", slot.timestamp() / 60)
}

/// The template has something that cannot become a Job.
#[derive(Debug, thiserror::Error)]
#[error("make Job from the template of CronJob {cron_job}: {source}")]
pub struct TemplateError {
    /// Whose template.
    pub cron_job: ObjectName,
    /// What is wrong with it.
    pub source: serde_json::Error,
}

/// The body of the create request for the Job of `slot`. `local` is the process's zone, as for [`CronJob::timing`].
///
/// Matches upstream `utils.go` `getJobFromTemplate2`, with two differences on the wire that the server makes up for:
/// `creationTimestamp` and an empty `status` are not sent.
///
/// # Errors
/// When the template is not an object with a `spec`, or its labels or annotations are not maps of strings.
pub fn job_from_template(cron_job: &CronJob, slot: DateTime<Utc>, local: Zone) -> Result<Vec<u8>, TemplateError> {
    let fail = |source| TemplateError { cron_job: cron_job.name.clone(), source };
    let template: Template<'_> = serde_json::from_str(cron_job.spec.job_template.get()).map_err(fail)?;
    let zone = cron_job.timing(local).annotation_zone();
    let mut annotations = template.metadata.annotations;
    annotations.insert(SCHEDULED_TIMESTAMP_ANNOTATION.into(), zone.rfc3339(slot).into());
    let body = JobBody {
        api_version: "batch/v1",
        kind: Job::RESOURCE.kind,
        metadata: JobMetadata {
            name: job_name(&cron_job.name.name, slot),
            namespace: &cron_job.name.namespace,
            labels: template.metadata.labels,
            annotations,
            owner_references: [OwnerReference {
                api_version: "batch/v1",
                kind: CronJob::RESOURCE.kind,
                name: &cron_job.name.name,
                uid: &cron_job.uid,
                controller: true,
                block_owner_deletion: true,
            }],
        },
        spec: template.spec,
    };
    serde_json::to_vec(&body).map_err(fail)
}

type StringMap<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

#[derive(Deserialize)]
struct Template<'a> {
    #[serde(borrow, default)]
    metadata: TemplateMetadata<'a>,
    #[serde(borrow)]
    spec: &'a RawValue,
}

#[derive(Default, Deserialize)]
struct TemplateMetadata<'a> {
    #[serde(borrow, default)]
    labels: StringMap<'a>,
    #[serde(borrow, default)]
    annotations: StringMap<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobBody<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: JobMetadata<'a>,
    spec: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobMetadata<'a> {
    name: String,
    namespace: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: StringMap<'a>,
    annotations: StringMap<'a>,
    owner_references: [OwnerReference<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: &'a super::Uid,
    controller: bool,
    block_owner_deletion: bool,
}

/// metav1.Time: RFC 3339 with seconds, in UTC; `null` and absence are the same.
pub mod time {
    use super::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the time, or `null`.
    pub fn serialize<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a time, or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
        Option::<DateTime<Utc>>::deserialize(deserializer)
    }
}
