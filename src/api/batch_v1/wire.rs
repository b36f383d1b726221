//! The JSON shapes of CronJobs and Jobs, borrowed from the text where escapes allow it.
//!
//! Guarantee: reading an object allocates nothing for fields that are not kept. A list of which one entry matters is
//! folded while it is read.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use chrono::{DateTime, Utc};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::job_template::time;
use super::super::manage::Handover;
use super::super::{ControllerKind, Interner, ObjectName, Uid};
use super::{ConcurrencyPolicy, CronJobStatus, FinishedCondition, null_as_default};

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
    #[serde(default, with = "time")]
    pub creation_timestamp: Option<DateTime<Utc>>,
    #[serde(default, with = "time")]
    pub deletion_timestamp: Option<DateTime<Utc>>,
    #[serde(borrow, default)]
    pub owner_references: Controller<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub annotations: Annotations<'a>,
}

impl Metadata<'_> {
    pub fn object_name(&self, interner: &Interner) -> ObjectName {
        ObjectName { namespace: interner.intern(&self.namespace), name: (&*self.name).into() }
    }
}

/// The annotations that hold a child's slot, and those that say which controller manages a CronJob.
#[derive(Default, serde::Deserialize)]
pub struct Annotations<'a> {
    #[serde(borrow, default, rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
    upstream: Option<Text<'a>>,
    #[serde(borrow, default, rename = "batch.tutorial.kubebuilder.io/scheduled-at")]
    tutorial: Option<Text<'a>>,
    #[serde(borrow, default, rename = "cronjob-controller.dev/managed")]
    managed: Option<Text<'a>>,
    #[serde(borrow, default, rename = "cronjob-controller.dev/suspend")]
    suspend: Option<Text<'a>>,
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
        let is_true = |text: &Option<Text<'_>>| text.as_deref() == Some("true");
        Handover { managed: is_true(&self.managed), suspend: is_true(&self.suspend) }
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
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: JobStatus,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    #[serde(default, with = "time")]
    pub start_time: Option<DateTime<Utc>>,
    #[serde(default, with = "time")]
    pub completion_time: Option<DateTime<Utc>>,
    #[serde(default)]
    pub conditions: Conditions,
    #[serde(default, deserialize_with = "null_as_default")]
    pub phase: Phase,
}

/// The phase of a Pod. Jobs have no such field.
#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
pub enum Phase {
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
            Self::Unfinished => None,
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
}

#[derive(serde::Deserialize)]
pub struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
}

impl Fold<Condition<'_>> for Conditions {
    fn add(&mut self, condition: Condition<'_>) {
        let met = match (&*condition.kind, &*condition.status) {
            ("Complete", "True") => FinishedCondition::Complete,
            ("Failed", "True") => FinishedCondition::Failed,
            _ => return,
        };
        self.finished = self.finished.or(Some(met));
        self.succeeded |= met == FinishedCondition::Complete;
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fold::<_, _, Condition<'de>>(deserializer)
    }
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
