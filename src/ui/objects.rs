//! Objects as the page needs them.
//!
//! Guarantees: a CronJob and a Job are decoded by the controller's own decoders. What is kept beside them (the policy
//! annotations as written, the end of a failed Job) is for display only and decides nothing. A long Job template is kept,
//! because the rehearsal makes a Job from it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::{ANNOTATIONS, PREFIX, WrittenBy};
use crate::api::{DecodeError, Interner, Object, ObjectName, ResourceKind, Uid, identity_at};
use crate::cli::explain::read::{Said, said};
use crate::cli::explain::watched::Watched;

/// A CronJob.
#[derive(Debug)]
pub struct WatchedCronJob {
    watched: Watched,
    /// The policy annotations, without their prefix, as written.
    pub policies: Box<[(Box<str>, Box<str>)]>,
    /// What it can be found by.
    pub about: Arc<About>,
}

/// What CronJobs are grouped by.
#[derive(Debug, Default)]
pub struct About {
    /// The labels, in the order of their keys.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The images of the containers, each once.
    pub images: Box<[Box<str>]>,
}

impl About {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    fn of(labels: Option<Texts>, spec: Option<&RawValue>) -> Self {
        let labels = labels.unwrap_or_default();
        let labels = labels.into_iter().map(|(key, value)| (key.into(), value.unwrap_or_default().into())).collect();
        let spec = spec.and_then(|spec| serde_json::from_str::<Spec>(spec.get()).ok()).unwrap_or_default();
        let pod = spec.job_template.spec.template.spec;
        let containers = pod.init_containers.into_iter().chain(pod.containers).flatten();
        let images: BTreeSet<Box<str>> = containers.filter_map(|one| one.image).map(Into::into).collect();
        Self { labels, images: images.into_iter().collect() }
    }
}

impl WatchedCronJob {
    /// The CronJob with what its object's text says for display.
    pub fn new(watched: Watched, json: &str) -> Self {
        // What is not of these forms is none: the API server has accepted the object.
        let Shown { metadata, spec } = serde_json::from_str(json).unwrap_or_default();
        let about = Arc::new(About::of(metadata.labels, spec));
        let annotations = metadata.annotations;
        let policy = |(name, value): (String, Option<String>)| -> Option<(Box<str>, Box<str>)> {
            let meant = ANNOTATIONS.iter().find(|known| known.name == name && known.written_by == WrittenBy::User)?;
            let short = meant.name.strip_prefix(PREFIX)?;
            Some((short.into(), value.unwrap_or_default().into()))
        };
        let policies = annotations.unwrap_or_default().into_iter().filter_map(policy).collect();
        Self { watched, policies, about }
    }
}

impl Deref for WatchedCronJob {
    type Target = Watched;

    fn deref(&self) -> &Watched {
        &self.watched
    }
}

impl DerefMut for WatchedCronJob {
    fn deref_mut(&mut self) -> &mut Watched {
        &mut self.watched
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Shown<'a> {
    metadata: Metadata,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    annotations: Option<Texts>,
    labels: Option<Texts>,
}

type Texts = BTreeMap<String, Option<String>>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    job_template: InSpec<JobSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobSpec {
    template: InSpec<Pod>,
}

/// A template of a Job or of a Pod.
#[derive(Default, Deserialize)]
#[serde(default)]
struct InSpec<T> {
    spec: T,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pod {
    init_containers: Option<Vec<Container>>,
    containers: Option<Vec<Container>>,
}

#[derive(Deserialize)]
struct Container {
    image: Option<String>,
}

impl Object for WatchedCronJob {
    const RESOURCE: ResourceKind = CronJob::RESOURCE;

    identity_at!(self.watched.cron_job);

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        // The seed of the controller is applied by the informer.
        Ok(Self::new(Watched::decode(json, interner)?, json))
    }
}

/// A Job.
#[derive(Debug)]
pub struct WatchedJob {
    /// The Job.
    pub job: Arc<Job>,
    /// When it ended, however it ended.
    pub ended: Option<DateTime<Utc>>,
}

#[derive(Default, Deserialize)]
struct Ended {
    #[serde(default)]
    status: EndedStatus,
}

#[derive(Default, Deserialize)]
struct EndedStatus {
    #[serde(default)]
    conditions: Option<Vec<EndedCondition>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndedCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    last_transition_time: Option<DateTime<Utc>>,
}

impl Object for WatchedJob {
    const RESOURCE: ResourceKind = Job::RESOURCE;

    identity_at!(self.job);

    fn controller_uid(&self) -> Option<&Uid> {
        self.job.controller_uid()
    }

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let job = Job::decode(json, interner)?;
        let is_end = |known: &EndedCondition| known.status == "True" && matches!(&*known.type_, "Complete" | "Failed");
        let condition = || {
            let conditions = serde_json::from_str::<Ended>(json).ok()?.status.conditions?;
            conditions.into_iter().find(is_end)?.last_transition_time
        };
        let ended = job.finished.and_then(|_| job.completion_time.or_else(condition));
        Ok(Self { job: Arc::new(job), ended })
    }
}

/// An Event about a CronJob.
#[derive(Debug)]
pub struct WatchedEvent {
    name: ObjectName,
    uid: Uid,
    resource_version: String,
    /// The kind of the object that it is about.
    pub kind: String,
    /// The name of that object.
    pub about: String,
    /// Its UID: the store's index.
    about_uid: Option<Uid>,
    /// Whether it is a Warning.
    pub is_warning: bool,
    /// What it says.
    pub said: Option<Said>,
}

#[derive(Deserialize)]
struct WireEvent {
    metadata: WireMetadata,
    #[serde(default, rename = "type")]
    type_: Option<String>,
    #[serde(default, rename = "involvedObject")]
    involved: Involved,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMetadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    uid: Uid,
    #[serde(default)]
    resource_version: String,
}

#[derive(Default, Deserialize)]
struct Involved {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    uid: Option<Uid>,
}

impl Object for WatchedEvent {
    const RESOURCE: ResourceKind = ResourceKind { group: "", version: "v1", plural: "events", kind: "Event" };

    identity_at!(self);

    fn controller_uid(&self) -> Option<&Uid> {
        self.about_uid.as_ref()
    }

    fn decode(json: &str, _interner: &Interner) -> Result<Self, DecodeError> {
        let error = |source| DecodeError { kind: Self::RESOURCE.kind, source };
        let WireEvent { metadata, type_, involved } = serde_json::from_str(json).map_err(error)?;
        let raw = RawValue::from_string(json.to_owned()).map_err(error)?;
        Ok(Self {
            name: ObjectName::new(metadata.namespace, metadata.name),
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            kind: involved.kind,
            about: involved.name,
            about_uid: involved.uid,
            is_warning: type_.as_deref() == Some("Warning"),
            said: said(vec![raw]).pop(),
        })
    }
}
