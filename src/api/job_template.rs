//! The Job template of a CronJob, and the request body of a Job, or of an ApiExample's Pod, made from it.
//!
//! Guarantees: a cached record holds no template longer than [`LONGEST_KEPT`], only its digest. A template and its
//! digest compare as two templates do. As upstream does, a Job takes labels and annotations from the template's
//! metadata, and the whole `spec` as its original text, with the slot in it where a policy asks for that, and but for what a user
//! changes in a Job that is started by hand. A slot always gives the same name. Times are written as metav1.Time writes them.

mod pod_annotations;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use schedule::Zone;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::batch_v1::{CronJob, CronJobSpec};
use super::job_changes::{Container, JobChanges, TRIGGER};
use super::policy::{BACKFILL, DUE_TIME, TRACEPARENT};
use super::{ControllerKind, ObjectName};

/// The longest template that a cached record keeps, in bytes. A longer one is read again when a Job is created from it.
pub const LONGEST_KEPT: usize = 16 << 10;

/// How many bytes of a Job are not its spec, in most cases.
const USUAL_HEAD: usize = 1 << 10;

/// A Job template.
#[derive(Clone, Debug)]
pub enum JobTemplate {
    /// The text that the API server sent.
    Whole(Arc<RawValue>),
    /// The text was too long to keep.
    Omitted(Arc<TemplateDigest>),
}

/// Identifies a template without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateDigest {
    /// The length of the text, in bytes.
    pub bytes: usize,
    /// A hash of the text. It need not resist attacks: a template made to collide with its predecessor only delays the
    /// detection of its own change, because a Job is always created from text that was read for it.
    hash: u64,
}

impl TemplateDigest {
    fn of(text: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        Self { bytes: text.len(), hash: hasher.finish() }
    }
}

impl JobTemplate {
    /// The template with all of its text.
    pub fn whole(text: &RawValue) -> Self {
        Self::Whole(text.to_owned().into())
    }

    /// The template as a cached record keeps it.
    pub fn for_cache(text: &RawValue) -> Self {
        if text.get().len() > LONGEST_KEPT {
            Self::Omitted(Arc::new(TemplateDigest::of(text.get())))
        } else {
            Self::whole(text)
        }
    }

    /// The cached form, if it is smaller.
    fn shortened(&self) -> Option<Self> {
        match self {
            Self::Whole(text) if text.get().len() > LONGEST_KEPT => Some(Self::for_cache(text)),
            Self::Whole(_) | Self::Omitted(_) => None,
        }
    }

    /// The text, where it was kept.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Whole(text) => Some(text.get()),
            Self::Omitted(_) => None,
        }
    }

    /// The length of the text, in bytes, where it was not kept.
    pub fn omitted_bytes(&self) -> Option<usize> {
        match self {
            Self::Whole(_) => None,
            Self::Omitted(digest) => Some(digest.bytes),
        }
    }

    /// How many seconds after their end its Jobs are deleted (`ttlSecondsAfterFinished`); `None` if they are not, or the text
    /// was not kept.
    pub fn time_to_live(&self) -> Option<i64> {
        #[derive(Deserialize)]
        struct Template {
            spec: Spec,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            #[serde(default)]
            ttl_seconds_after_finished: Option<i64>,
        }
        serde_json::from_str::<Template>(self.text()?).ok()?.spec.ttl_seconds_after_finished
    }

    /// Shares the memory of `previous`, where the two are equal.
    pub(super) fn share(&mut self, previous: &Self) {
        if self == previous && self.text().is_some() == previous.text().is_some() {
            self.clone_from(previous);
        }
    }

    fn digest(&self) -> TemplateDigest {
        match self {
            Self::Whole(text) => TemplateDigest::of(text.get()),
            Self::Omitted(digest) => **digest,
        }
    }
}

impl PartialEq for JobTemplate {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(own), Self::Whole(theirs)) => Arc::ptr_eq(own, theirs) || own.get() == theirs.get(),
            _ => self.digest() == other.digest(),
        }
    }
}

impl CronJob {
    /// The cached form: what outlives a sync must hold no long template.
    pub fn for_cache(self: &Arc<Self>) -> Arc<Self> {
        let Some(job_template) = self.spec.job_template.shortened() else { return Arc::clone(self) };
        Arc::new(Self { spec: CronJobSpec { job_template, ..self.spec.clone() }, ..Self::clone(self) })
    }
}

/// The template cannot become a Job.
#[derive(Debug, thiserror::Error)]
#[error("make {} from the template of {} {cron_job}: {source}", controller_kind.child.kind, controller_kind.parent.kind)]
pub struct TemplateError {
    /// The kind of the template's owner.
    pub controller_kind: ControllerKind,
    /// The template's owner.
    pub cron_job: ObjectName,
    /// What is wrong with it.
    pub source: serde_json::Error,
}

/// The body of the create request for the Job of `slot`, which the controller starts, or the backfill of that id: its Job has a
/// label, and as for [`manual_job`], its owner blocks no deletion. `local` is the process's zone, as for [`CronJob::timing`]. With
/// `slot-in-pod`, the Pods are told of the slot and of `traceparent`.
///
/// Matches upstream `utils.go` `getJobFromTemplate2`, with two differences on the wire that the server makes up for:
/// `creationTimestamp` and an empty `status` are not sent.
///
/// # Errors
/// When the template was [omitted](JobTemplate::Omitted), is not an object with a `spec`, or its labels or annotations
/// are not maps of strings.
pub fn job_from_template(
    cron_job: &CronJob,
    slot: DateTime<Utc>,
    local: Zone,
    backfill: Option<&str>,
    traceparent: Option<&str>,
) -> Result<Vec<u8>, TemplateError> {
    let controller_kind = cron_job.controller_kind;
    let zone = cron_job.timing(local).annotation_zone();
    let pods = slot_in_pod(cron_job, slot, cron_job.due(slot), zone, traceparent);
    let edit = |template: &mut Template<'_>| {
        template.metadata.annotations.insert(controller_kind.scheduled_annotation.into(), zone.rfc3339(slot).into());
        if let Some(id) = backfill {
            template.metadata.labels.insert(BACKFILL.into(), id.to_owned().into());
        }
        Ok(())
    };
    let name = controller_kind.child_name(&cron_job.name.name, slot);
    body(cron_job, name, backfill.is_none().then_some(true), &pods, edit)
}

/// The body of the create request for a Job that a user starts, under this name and with these changes, and the container that
/// these are about; `None` if there are none and the template has no container. Matches kubectl `create_job.go`
/// `createJobFromCronJob`: an owner that blocks no deletion, which needs fewer permissions, and an annotation of its own. With
/// `slot-in-pod`, `now` counts as its slot for the Pods; the Job itself has none.
///
/// # Errors
/// As [`job_from_template`], and when the template has no such container.
pub fn manual_job(
    cron_job: &CronJob,
    name: String,
    changes: &JobChanges,
    now: DateTime<Utc>,
    local: Zone,
    traceparent: Option<&str>,
) -> Result<(Vec<u8>, Option<Container>), TemplateError> {
    let zone = cron_job.timing(local).annotation_zone();
    let pods = slot_in_pod(cron_job, now, now, zone, traceparent);
    let mut container = None;
    let edit = |template: &mut Template<'_>| {
        let annotations = &mut template.metadata.annotations;
        annotations.entry("cronjob.kubernetes.io/instantiate".into()).or_insert("manual".into());
        let mut spec: Value = serde_json::from_str(template.spec.get())?;
        match changes.choose(&spec) {
            Ok(chosen) if changes.is_empty() => container = Some(chosen),
            Ok(chosen) => {
                annotations.insert(TRIGGER.into(), changes.summary(&chosen).into());
                changes.apply(&mut spec, &chosen);
                template.spec = Cow::Owned(to_raw_value(&spec)?);
                container = Some(chosen);
            }
            Err(_) if changes.is_empty() && changes.container.is_none() => {}
            Err(why) => return Err(serde_json::Error::custom(why)),
        }
        Ok(())
    };
    let body = body(cron_job, name, None, &pods, edit)?;
    Ok((body, container))
}

/// What the Pods of a Job are told of its slot; nothing without `slot-in-pod`.
fn slot_in_pod(
    cron_job: &CronJob,
    slot: DateTime<Utc>,
    due: DateTime<Utc>,
    zone: Zone,
    traceparent: Option<&str>,
) -> Vec<(&'static str, String)> {
    if !cron_job.limits().slot_in_pod {
        return Vec::new();
    }
    let times = [(cron_job.controller_kind.scheduled_annotation, zone.rfc3339(slot)), (DUE_TIME, zone.rfc3339(due))];
    times.into_iter().chain(traceparent.map(|text| (TRACEPARENT, text.to_owned()))).collect()
}

fn body(
    cron_job: &CronJob,
    name: String,
    block_owner_deletion: Option<bool>,
    pods: &[(&str, String)],
    edit: impl FnOnce(&mut Template<'_>) -> Result<(), serde_json::Error>,
) -> Result<Vec<u8>, TemplateError> {
    let controller_kind = cron_job.controller_kind;
    let fail = |source| TemplateError { controller_kind, cron_job: cron_job.name.clone(), source };
    let omitted = || serde_json::Error::custom("the template was not read");
    let text = cron_job.spec.job_template.text().ok_or_else(omitted).map_err(fail)?;
    let mut template: Template<'_> = serde_json::from_str(text).map_err(fail)?;
    // A Job with this label would never be active.
    template.metadata.labels.remove(BACKFILL);
    edit(&mut template).map_err(fail)?;
    let Template { metadata, spec } = template;
    let head = JobHead {
        api_version: controller_kind.child.api_version(),
        kind: controller_kind.child.kind,
        metadata: JobMetadata {
            name,
            namespace: &cron_job.name.namespace,
            labels: metadata.labels,
            annotations: metadata.annotations,
            owner_references: [OwnerReference {
                api_version: controller_kind.parent.api_version(),
                kind: controller_kind.parent.kind,
                name: &cron_job.name.name,
                uid: &cron_job.uid,
                controller: true,
                block_owner_deletion,
            }],
        },
    };
    let spec = spec.get();
    // Most heads fit; the spec is written once.
    let of_pods: usize = pods.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
    let mut body = Vec::with_capacity(spec.len() + USUAL_HEAD + of_pods);
    serde_json::to_writer(&mut body, &head).map_err(fail)?;
    body.pop();
    body.extend_from_slice(br#","spec":"#);
    pod_annotations::write(&mut body, spec, pods);
    body.push(b'}');
    Ok(body)
}

type StringMap<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

#[derive(Deserialize)]
struct Template<'a> {
    #[serde(borrow, default)]
    metadata: TemplateMetadata<'a>,
    #[serde(borrow, deserialize_with = "borrowed")]
    spec: Cow<'a, RawValue>,
}

fn borrowed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Cow::Borrowed)
}

#[derive(Default, Deserialize)]
struct TemplateMetadata<'a> {
    #[serde(borrow, default)]
    labels: StringMap<'a>,
    #[serde(borrow, default)]
    annotations: StringMap<'a>,
}

/// A Job without its spec, which follows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobHead<'a> {
    api_version: String,
    kind: &'a str,
    metadata: JobMetadata<'a>,
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
    api_version: String,
    kind: &'a str,
    name: &'a str,
    uid: &'a super::Uid,
    controller: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

/// metav1.Time: RFC 3339 with seconds, in UTC; `null` and absence are the same.
pub mod time {
    use std::fmt;

    use chrono::NaiveDate;
    use serde::Serializer;
    use serde::de::{self, Deserializer, Visitor};

    use super::{DateTime, SecondsFormat, Utc};

    /// Writes the time, or `null`.
    pub fn serialize<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a time, or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
        struct Time;
        impl<'de> Visitor<'de> for Time {
            type Value = Option<DateTime<Utc>>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time or null")
            }
            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                deserializer.deserialize_str(self)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                parse(text).map(Some).map_err(E::custom)
            }
        }
        deserializer.deserialize_option(Time)
    }

    /// Reads RFC 3339. The one form that servers write is read by position, in a tenth of the time.
    pub fn parse(text: &str) -> Result<DateTime<Utc>, chrono::ParseError> {
        canonical(text.as_bytes()).map_or_else(|| text.parse(), Ok)
    }

    fn canonical(text: &[u8]) -> Option<DateTime<Utc>> {
        let text: &[u8; 20] = text.try_into().ok()?;
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
        if separators.iter().any(|&(at, byte)| text[at] != byte) {
            return None;
        }
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0')))
        };
        let year = i32::try_from(number(&text[..4])?).ok()?;
        let date = NaiveDate::from_ymd_opt(year, number(&text[5..7])?, number(&text[8..10])?)?;
        let time = date.and_hms_opt(number(&text[11..13])?, number(&text[14..16])?, number(&text[17..19])?)?;
        Some(time.and_utc())
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn timestamp_parses_as_chrono_parses_it(text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](Z|z|\\.5Z|\\+01:00)?") {
                prop_assert_eq!(parse(&text).ok(), text.parse::<DateTime<Utc>>().ok());
            }
        }
    }
}
