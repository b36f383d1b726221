//! The JSON shapes of CronJobs and Jobs, borrowed from the text where escapes allow it.
//!
//! Guarantee: reading an object allocates nothing for fields that are not kept. A list of which one entry matters is
//! folded while it is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use apimachinery::names::is_subdomain;
use chrono::{DateTime, Utc};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::backfill::Record;
use super::super::job_template::time;
use super::super::manage::{Handover, MANAGED_ANNOTATION, SUSPEND_ANNOTATION};
use super::super::policy::{BACKFILL, Collected, CountedFrom, Edits, PREFIX, PolicyReading, Setting};
use super::super::{
    ActiveList, ControllerKind, CountedFromPlace, Interner, ObjectName, ObjectReference, Published, Uid,
};
use super::{ConcurrencyPolicy, CronJobStatus, FinishedCondition, null_as_default};

/// How many bytes of references to active Jobs are kept.
pub const MOST_ACTIVE: usize = 256 << 10;
/// How many bytes of conditions are kept.
pub const MOST_CONDITIONS: usize = 16 << 10;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    pub uid: Uid,
    #[serde(borrow, default)]
    pub resource_version: Cow<'a, str>,
    #[serde(default)]
    generation: Option<i64>,
    #[serde(default, with = "time")]
    pub creation_timestamp: Option<DateTime<Utc>>,
    #[serde(default, with = "time")]
    pub deletion_timestamp: Option<DateTime<Utc>>,
    #[serde(borrow, default)]
    pub owner_references: Controller<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub annotations: Annotations<'a>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub labels: Labels,
    #[serde(borrow, default)]
    managed_fields: Option<&'a RawValue>,
}

impl Metadata<'_> {
    /// The changes of the object other than in its status; without times if it has no readable list of managers.
    pub fn edits(&self) -> Edits {
        let managers = self.managed_fields.and_then(|managers| serde_json::from_str(managers.get()).ok());
        let mut managers: Vec<Manager<'_>> = managers.unwrap_or_default();
        managers.retain(|manager| manager.subresource.as_deref().is_none_or(str::is_empty));
        let last = managers.iter().filter_map(|manager| manager.time).max();
        let of_slots = managers.iter().filter(|manager| manager.owns_slots());
        Edits { generation: self.generation, last, last_of_slots: of_slots.filter_map(|manager| manager.time).max() }
    }

    /// When that was written last which suspends a CronJob, or another field of the same writer since; `None` if it is not known.
    pub fn suspension_written(&self) -> Option<DateTime<Utc>> {
        let managers: Vec<Manager<'_>> = serde_json::from_str(self.managed_fields?.get()).ok()?;
        let of_users = managers.iter().filter(|manager| manager.subresource.as_deref().is_none_or(str::is_empty));
        let written = of_users.filter(|manager| manager.owns_suspend()).filter_map(|manager| manager.time).max();
        let Handover { managed: true, suspend: true, .. } = self.annotations.handover() else { return written };
        // Either of the two may be what counts, and it is suspended for certain since the later one.
        written.zip(self.annotation_written(SUSPEND_ANNOTATION)).map(|(spec, annotation)| spec.max(annotation))
    }

    /// When an annotation was written last, or another field of the same writer since; `None` if `managedFields` does not say it.
    pub fn annotation_written(&self, annotation: &str) -> Option<DateTime<Utc>> {
        let managers: Vec<Manager<'_>> = serde_json::from_str(self.managed_fields?.get()).ok()?;
        let owners = managers.iter().filter(|manager| manager.owns_annotation(annotation));
        owners.filter_map(|manager| manager.time).max()
    }

    pub fn object_name(&self, interner: &Interner) -> ObjectName {
        ObjectName { namespace: interner.intern(&self.namespace), name: (&*self.name).into() }
    }
}

/// An entry of `managedFields`.
#[derive(serde::Deserialize)]
struct Manager<'a> {
    #[serde(default, with = "time")]
    time: Option<DateTime<Utc>>,
    #[serde(borrow, default)]
    subresource: Option<Text<'a>>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

impl Manager<'_> {
    /// Whether it owns a field of the spec that decides which slots there are. One whose fields cannot be read might.
    fn owns_slots(&self) -> bool {
        self.owned_spec()
            .is_none_or(|SpecFields { schedule, time_zone, suspend }| schedule.or(time_zone).or(suspend).is_some())
    }

    /// Whether it owns `spec.suspend`. One whose fields cannot be read might.
    fn owns_suspend(&self) -> bool {
        self.owned_spec().is_none_or(|spec| spec.suspend.is_some())
    }

    /// What it owns of the spec; `None` if its fields cannot be read.
    fn owned_spec(&self) -> Option<SpecFields> {
        #[derive(serde::Deserialize)]
        struct Fields {
            #[serde(default, rename = "f:spec")]
            spec: SpecFields,
        }
        serde_json::from_str(self.fields?.get()).ok().map(|fields: Fields| fields.spec)
    }

    fn owns_annotation(&self, annotation: &str) -> bool {
        #[derive(serde::Deserialize)]
        struct Fields {
            #[serde(default, rename = "f:metadata")]
            metadata: OwnedMetadata,
        }
        let fields = self.fields.and_then(|fields| serde_json::from_str::<Fields>(fields.get()).ok());
        fields.is_some_and(|fields| fields.metadata.annotations.contains_key(&format!("f:{annotation}")))
    }
}

/// The fields of the spec that decide which slots there are, as far as a writer owns them.
#[derive(Default, serde::Deserialize)]
struct SpecFields {
    #[serde(default, rename = "f:schedule")]
    schedule: Option<IgnoredAny>,
    #[serde(default, rename = "f:timeZone")]
    time_zone: Option<IgnoredAny>,
    #[serde(default, rename = "f:suspend")]
    suspend: Option<IgnoredAny>,
}

/// The annotations of which an entry of `managedFields` says that a writer owns them.
#[derive(Default, serde::Deserialize)]
struct OwnedMetadata {
    #[serde(default, rename = "f:annotations")]
    annotations: HashMap<String, Value>,
}

/// The annotations that hold a child's slot, those that say which controller manages a CronJob, and the policies.
#[derive(Default)]
pub struct Annotations<'a> {
    upstream: Option<Text<'a>>,
    tutorial: Option<Text<'a>>,
    managed: Option<Text<'a>>,
    suspend: Option<Text<'a>>,
    backfill: Option<Text<'a>>,
    pub(in crate::api) policies: Collected<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Annotations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<'a>(PhantomData<Annotations<'a>>);
        impl<'de: 'a, 'a> Visitor<'de> for Map<'a> {
            type Value = Annotations<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations<'a>, A::Error> {
                let mut found = Annotations::default();
                while let Some(name) = map.next_key::<Text<'de>>()? {
                    match &*name {
                        "batch.kubernetes.io/cronjob-scheduled-timestamp" => found.upstream = map.next_value()?,
                        "batch.tutorial.kubebuilder.io/scheduled-at" => found.tutorial = map.next_value()?,
                        MANAGED_ANNOTATION => found.managed = map.next_value()?,
                        SUSPEND_ANNOTATION => found.suspend = map.next_value()?,
                        BACKFILL => found.backfill = map.next_value()?,
                        name if name.starts_with(PREFIX) => match found.policies.place(name) {
                            Some(place) => *place = map.next_value::<Option<Text<'de>>>()?.map(|text| text.0),
                            None => {
                                map.next_value::<IgnoredAny>()?;
                            }
                        },
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Map(PhantomData))
    }
}

impl Annotations<'_> {
    /// The annotation that counts for a child of that kind.
    pub fn scheduled_timestamp(&self, controller_kind: ControllerKind) -> Option<&str> {
        match controller_kind {
            ControllerKind::CronJob => self.upstream.as_deref(),
            ControllerKind::Tutorial | ControllerKind::ApiExample => self.tutorial.as_deref(),
        }
    }

    /// The annotations that hand a CronJob over to this controller.
    pub fn handover(&self) -> Handover {
        Handover::read([self.managed.as_deref(), self.suspend.as_deref()])
    }

    /// Whether a backfill of the CronJob `uid` is under way.
    pub fn is_backfilled(&self, uid: &Uid) -> bool {
        self.backfill.as_deref().is_some_and(|text| Record::is_under_way(text, uid))
    }
}

/// The label that decisions depend on.
#[derive(Default)]
pub struct Labels {
    /// Whether the object is a Job of a backfill.
    pub backfill: bool,
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Labels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut found = Labels::default();
                while let Some(name) = map.next_key::<Text<'de>>()? {
                    found.backfill |= &*name == BACKFILL;
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Map)
    }
}

/// Serde borrows a `Cow` only where it stands alone, not inside an `Option`.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference<'a> {
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    pub uid: Uid,
    #[serde(default)]
    pub controller: Option<bool>,
}

/// The first owner reference with `controller: true`.
#[derive(Default)]
pub struct Controller<'a>(pub Option<OwnerReference<'a>>);

impl<'a> Fold<OwnerReference<'a>> for Controller<'a> {
    fn add(&mut self, owner: OwnerReference<'a>) {
        if self.0.is_none() && owner.controller == Some(true) {
            self.0 = Some(owner);
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Controller<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fold::<_, _, OwnerReference<'a>>(deserializer)
    }
}

#[derive(serde::Deserialize)]
pub struct CronJob<'a> {
    #[serde(default, rename = "apiVersion")]
    pub controller_kind: ControllerKind,
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow)]
    pub spec: CronJobSpec<'a>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: CronJobStatus,
}

impl CronJob<'_> {
    /// Reads the policies, and moves what the controller keeps in annotations into the status, wherever the kind has it.
    pub fn policies(&mut self, name: &ObjectName) -> Option<Arc<PolicyReading>> {
        let collected = std::mem::take(&mut self.metadata.annotations.policies);
        match self.controller_kind.counted_from {
            None => {
                self.status.counted_from = None;
                return None;
            }
            Some(CountedFromPlace::Status) => {}
            Some(CountedFromPlace::Annotation) => {
                self.status.counted_from = collected.counted_from.as_deref().and_then(CountedFrom::parse).map(Box::new);
                self.status.published =
                    Published::parse(collected.next_run.as_deref(), collected.last_failure.as_deref());
            }
        }
        let is_counted = self.status.counted_from.is_some();
        let edits = || self.metadata.edits();
        let setting = Setting {
            schedule: &self.spec.schedule,
            concurrency_policy: self.spec.concurrency_policy,
            successful_jobs_history_limit: self.spec.successful_jobs_history_limit,
            failed_jobs_history_limit: self.spec.failed_jobs_history_limit,
            job_template: self.spec.job_template.get(),
        };
        let mut reading = PolicyReading::read(collected, &setting, is_counted, edits)?;
        reading.set_offset("", name);
        Some(Arc::new(reading))
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec<'a> {
    #[serde(borrow)]
    pub schedule: Cow<'a, str>,
    #[serde(borrow, default)]
    pub time_zone: Option<Text<'a>>,
    #[serde(default)]
    pub starting_deadline_seconds: Option<i64>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub concurrency_policy: ConcurrencyPolicy,
    #[serde(default)]
    pub suspend: Option<bool>,
    #[serde(default, alias = "successfulJobHistoryLimit")]
    pub successful_jobs_history_limit: Option<i32>,
    #[serde(default, alias = "failedJobHistoryLimit")]
    pub failed_jobs_history_limit: Option<i32>,
    #[serde(borrow)]
    pub job_template: &'a RawValue,
}

#[derive(serde::Deserialize)]
pub struct Job<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub spec: JobSpec<'a>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: JobStatus,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec<'a> {
    #[serde(default)]
    pub suspend: Option<bool>,
    #[serde(default)]
    pub parallelism: Option<i32>,
    #[serde(borrow, default)]
    pub managed_by: Option<Text<'a>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    #[serde(default, with = "time")]
    pub start_time: Option<DateTime<Utc>>,
    #[serde(default, with = "time")]
    pub completion_time: Option<DateTime<Utc>>,
    #[serde(default)]
    pub ready: Option<i32>,
    #[serde(default)]
    pub conditions: Conditions,
    #[serde(default, deserialize_with = "null_as_default")]
    pub phase: Phase,
}

/// The phase of a Pod. Jobs have no such field.
#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
pub enum Phase {
    Running,
    Succeeded,
    Failed,
    #[default]
    #[serde(other)]
    Unfinished,
}

impl Phase {
    pub fn finished(self) -> Option<FinishedCondition> {
        match self {
            Self::Succeeded => Some(FinishedCondition::Complete),
            Self::Failed => Some(FinishedCondition::Failed),
            Self::Running | Self::Unfinished => None,
        }
    }
}

/// The conditions that decisions depend on.
#[derive(Default)]
pub struct Conditions {
    /// The first true condition among Complete and Failed.
    pub finished: Option<FinishedCondition>,
    /// Whether any Complete condition is true.
    pub succeeded: bool,
    /// When the condition that finished the Job became true, if that is Failed.
    pub failed_at: Option<DateTime<Utc>>,
    /// Whether the condition Suspended is true.
    pub suspended: bool,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(default, with = "time")]
    last_transition_time: Option<DateTime<Utc>>,
}

impl Fold<Condition<'_>> for Conditions {
    fn add(&mut self, condition: Condition<'_>) {
        let met = match (&*condition.kind, &*condition.status) {
            ("Complete", "True") => FinishedCondition::Complete,
            ("Failed", "True") => FinishedCondition::Failed,
            ("Suspended", "True") => {
                self.suspended = true;
                return;
            }
            _ => return,
        };
        if self.finished.is_none() {
            self.finished = Some(met);
            self.failed_at = condition.last_transition_time.filter(|_| met == FinishedCondition::Failed);
        }
        self.succeeded |= met == FinishedCondition::Complete;
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fold::<_, _, Condition<'de>>(deserializer)
    }
}

/// Items of a list, as far as they fit into a number of bytes.
struct Kept<T, const BYTES: usize> {
    items: Vec<T>,
    bytes: usize,
}

impl<T, const BYTES: usize> Default for Kept<T, BYTES> {
    fn default() -> Self {
        Self { items: Vec::new(), bytes: 0 }
    }
}

impl<T: Sized + Texts, const BYTES: usize> Fold<T> for Kept<T, BYTES> {
    fn add(&mut self, item: T) {
        let bytes = self.bytes + size_of::<T>() + item.texts();
        if bytes <= BYTES && item.is_possible() {
            self.bytes = bytes;
            self.items.push(item);
        }
    }
}

/// The length of the texts that a value owns, in bytes.
trait Texts {
    fn texts(&self) -> usize;

    /// Whether a controller could have written it.
    fn is_possible(&self) -> bool {
        true
    }
}

impl Texts for ObjectReference {
    fn texts(&self) -> usize {
        let Self { kind, namespace, name, uid, api_version, resource_version, field_path } = self;
        let texts = [kind, namespace, name, api_version, resource_version, field_path];
        texts.map(String::len).iter().sum::<usize>() + uid.text_len()
    }

    /// The API server does not check these names, and a request for one would be another request.
    fn is_possible(&self) -> bool {
        is_subdomain(&self.name)
    }
}

impl Texts for super::Condition {
    fn texts(&self) -> usize {
        self.type_.len() + self.status.len() + self.reason.len() + self.message.len()
    }
}

/// Reads references to active Jobs: about a thousand of those that a controller writes. A sync adds a Job that runs and is
/// not among them, as after a crash.
pub fn active<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ActiveList, D::Error> {
    let kept: Kept<ObjectReference, MOST_ACTIVE> = fold(deserializer)?;
    let mut active: ActiveList = kept.items.into_iter().collect();
    // The list grew by doubling, and mostly holds one entry.
    active.shrink_to_fit();
    Ok(active)
}

/// Reads conditions: many more than a controller writes. Others are removed when the status is next written.
pub fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[super::Condition]>, D::Error> {
    Ok(fold::<_, Kept<_, MOST_CONDITIONS>, _>(deserializer)?.items.into())
}

/// Reduces a list to one value while it is read.
trait Fold<T>: Default {
    fn add(&mut self, item: T);
}

/// Reads a list, or `null` for an empty one.
fn fold<'de, D: Deserializer<'de>, F: Fold<T>, T: Deserialize<'de>>(deserializer: D) -> Result<F, D::Error> {
    struct List<F, T>(PhantomData<(F, T)>);
    impl<'de, F: Fold<T>, T: Deserialize<'de>> Visitor<'de> for List<F, T> {
        type Value = F;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list or null")
        }
        fn visit_none<E>(self) -> Result<F, E> {
            Ok(F::default())
        }
        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<F, D::Error> {
            deserializer.deserialize_seq(self)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<F, A::Error> {
            let mut folded = F::default();
            while let Some(item) = list.next_element()? {
                folded.add(item);
            }
            Ok(folded)
        }
    }
    deserializer.deserialize_option(List(PhantomData))
}
