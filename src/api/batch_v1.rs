//! CronJobs and Jobs, reduced to the fields that the controller decides on.
//!
//! The other controller kinds use the same two records. A tutorial's CronJob and an ApiExample have the fields of a
//! batch/v1 CronJob, some under another name. An ApiExample's Pod has every field of a Job that a decision needs. The
//! [`ControllerKind`] of a record says which kind it is.
//!
//! Guarantees:
//! - Fields that no decision depends on are not kept.
//! - The Job template is kept as the text that the API server sent, so that fields unknown to this crate reach the Job.
//! - Values that objects have in common (namespaces, schedules, owners) are kept once.
//! - The size of a record is bounded, whatever its author wrote, and what upstream starts is started. A long template is
//!   omitted from the cache, a long schedule is kept as a short one of the same meaning, an owner reference with longer
//!   names than a real one is ignored, and so are active references and conditions beyond a limit.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::{Timing, Zone};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::job_template::JobTemplate;
use super::manage::Handover;
use super::policy::{CountedFrom, PolicyReading};
use super::recurrence::{kept_schedule, kept_zone};
use super::{
    ActiveList, Condition, ControllerKind, ControllerRef, DecodeError, Interner, Object, ObjectName, ObjectReference,
    Published, Recurrence, ResourceKind, ResourceVersion, Uid, identity_at,
};

mod policies;
pub(super) mod wire;

/// The longest names of a controlling owner, in bytes: kind, group, name and UID together. A CronJob's are shorter.
const LONGEST_OWNER: usize = 1 << 10;
/// What `spec.managedBy` says of the Job controller in kube-controller-manager.
pub const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
/// How long before its slot a controller may create a Job, whose clock may be ahead of the API server's.
const EARLIEST: TimeDelta = TimeDelta::days(1);

/// By how much another clock may be ahead of this process's.
const LATEST: TimeDelta = TimeDelta::minutes(1);

/// What to do when a slot is due while a Job of an earlier slot runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ConcurrencyPolicy {
    /// Start the new Job beside the running ones.
    #[default]
    Allow,
    /// Hold the slot until none runs, or its starting deadline has passed.
    Forbid,
    /// Delete the running Jobs, then start the new one.
    Replace,
    /// A value from a newer API. Treated as upstream does, which compares with the two above only.
    #[serde(other)]
    Unknown,
}

/// A CronJob.
#[derive(Debug, Clone)]
pub struct CronJob {
    /// Its kind.
    pub controller_kind: ControllerKind,
    /// Namespace and name.
    pub name: ObjectName,
    /// UID: a recreated CronJob of the same name has another.
    pub uid: Uid,
    /// The version of this view.
    pub resource_version: ResourceVersion,
    /// When the object was created.
    pub creation_timestamp: DateTime<Utc>,
    /// Whether `deletionTimestamp` is set: nothing is started for such a CronJob.
    pub deleting: bool,
    /// The fields that [`Manage`](super::Manage) decides on.
    pub handover: Handover,
    /// Whether a backfill of it is under way, whose Jobs are not pruned.
    pub is_backfilled: bool,
    /// What its policy annotations say; `None` without any, and where policies do not count.
    pub policies: Option<Arc<PolicyReading>>,
    /// The desired state.
    pub spec: CronJobSpec,
    /// What the controller last wrote.
    pub status: CronJobStatus,
}

/// The part of `spec` that decisions depend on. Matches batch/v1 `CronJobSpec`.
#[derive(Debug, Clone)]
pub struct CronJobSpec {
    /// `schedule` and `timeZone`.
    pub recurrence: Arc<Recurrence>,
    /// How late a Job may start, in seconds after its slot.
    pub starting_deadline_seconds: Option<i64>,
    /// What to do about Jobs still running.
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether starting Jobs is paused.
    pub suspend: bool,
    /// How many successful Jobs to keep; `None` keeps all.
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed Jobs to keep; `None` keeps all.
    pub failed_jobs_history_limit: Option<i32>,
    /// The Job template.
    pub job_template: JobTemplate,
}

impl PartialEq for CronJobSpec {
    fn eq(&self, other: &Self) -> bool {
        let decided = |spec: &Self| {
            let limits = (spec.successful_jobs_history_limit, spec.failed_jobs_history_limit);
            (spec.starting_deadline_seconds, spec.concurrency_policy, spec.suspend, limits)
        };
        decided(self) == decided(other)
            && self.recurrence == other.recurrence
            && self.job_template == other.job_template
    }
}

/// batch/v1 `CronJobStatus`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The running Jobs, oldest first.
    #[serde(default, deserialize_with = "wire::active", skip_serializing_if = "ActiveList::is_empty")]
    pub active: ActiveList,
    /// The newest slot for which a Job was created.
    #[serde(default, with = "super::job_template::time", skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<DateTime<Utc>>,
    /// When a Job last completed successfully.
    #[serde(default, with = "super::job_template::time", skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<DateTime<Utc>>,
    /// The conditions, where the kind has them.
    #[serde(default, deserialize_with = "wire::conditions", skip_serializing_if = "<[_]>::is_empty")]
    pub conditions: Box<[Condition]>,
    /// Which slots are decided, for a CronJob with a policy. A batch/v1 CronJob has it in an annotation.
    #[serde(default, deserialize_with = "counted_from", skip_serializing_if = "Option::is_none")]
    pub counted_from: Option<Box<CountedFrom>>,
    /// What is published about a batch/v1 CronJob, in annotations.
    #[serde(skip)]
    pub published: Option<Box<Published>>,
}

impl CronJobStatus {
    /// Whether `active` holds the UID. Matches upstream `utils.go` `inActiveList`.
    pub fn in_active_list(&self, uid: &Uid) -> bool {
        self.active.contains(uid)
    }

    /// Removes the UID from `active`. Matches upstream `utils.go` `deleteFromActiveList`.
    pub fn delete_from_active_list(&mut self, uid: &Uid) {
        self.active.remove(uid);
    }
}

impl CronJob {
    /// The number of a slot in the name of a child, as [`ControllerKind::child_name`] writes it.
    pub fn number_in(&self, child: &str) -> Option<i64> {
        let digits = child.strip_prefix(&*self.name.name)?.strip_prefix('-')?;
        digits.parse().ok().filter(|_| !digits.starts_with(['0', '+']))
    }

    /// The parsed schedule and zone, parsed at the first call. `local` is the process's zone, in which a schedule
    /// without a zone runs; it must be the same at every call.
    pub fn timing(&self, local: Zone) -> &Arc<Timing> {
        self.spec.recurrence.timing(local)
    }

    /// The zone in which people read its times: that of its schedule, else the one that it names, else `local`.
    pub fn zone(&self, local: Zone) -> Zone {
        self.own_zone(local).unwrap_or(local)
    }

    /// The same; `None` if it has none of its own.
    pub fn own_zone(&self, local: Zone) -> Option<Zone> {
        let timing = self.timing(local);
        // Beside a zone that is not known, the schedule has one that stands in for it.
        let own = timing.time_zone.as_ref().ok()?;
        timing.schedule.as_ref().ok().and_then(schedule::Schedule::zone).or(*own)
    }

    fn decode_with(
        json: &str,
        interner: &Interner,
        template: fn(&RawValue) -> JobTemplate,
    ) -> Result<Self, DecodeError> {
        let mut wire: wire::CronJob<'_> = decode(json, Self::RESOURCE.kind)?;
        wire.spec.schedule = kept_schedule(wire.spec.schedule);
        let time_zone = wire.spec.time_zone.as_deref().map(kept_zone);
        let recurrence = interner.recurrence(&wire.spec.schedule, time_zone.as_deref());
        let name = wire.metadata.object_name(interner);
        let is_backfilled = wire.metadata.annotations.is_backfilled(&wire.metadata.uid);
        let policies = wire.policies(&name);
        Ok(Self {
            controller_kind: wire.controller_kind,
            name,
            uid: wire.metadata.uid,
            resource_version: (&*wire.metadata.resource_version).into(),
            creation_timestamp: wire.metadata.creation_timestamp.unwrap_or_default(),
            deleting: wire.metadata.deletion_timestamp.is_some(),
            handover: wire.metadata.annotations.handover(),
            is_backfilled,
            policies,
            spec: CronJobSpec {
                recurrence,
                starting_deadline_seconds: wire.spec.starting_deadline_seconds,
                concurrency_policy: wire.spec.concurrency_policy,
                suspend: wire.spec.suspend.unwrap_or(false),
                successful_jobs_history_limit: wire.spec.successful_jobs_history_limit,
                failed_jobs_history_limit: wire.spec.failed_jobs_history_limit,
                job_template: template(wire.spec.job_template),
            },
            status: wire.status,
        })
    }

    /// Whether `other` runs on the same schedule in the same zone, with the same timing policies.
    pub fn same_timing(&self, other: &Self) -> bool {
        self.spec.recurrence == other.spec.recurrence && self.same_timing_policies(other)
    }
}

impl Object for CronJob {
    const RESOURCE: ResourceKind = ControllerKind::CRON_JOB.parent;

    identity_at!(self);

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        Self::decode_with(json, interner, JobTemplate::whole)
    }

    fn decode_for_cache(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        Self::decode_with(json, interner, JobTemplate::for_cache)
    }

    fn succeed(&mut self, previous: &Self) {
        if self.spec.recurrence == previous.spec.recurrence {
            self.spec.recurrence = Arc::clone(&previous.spec.recurrence);
            if let (Some(own), Some(known)) = (&mut self.policies, &previous.policies)
                && own.is_same(known)
            {
                *own = Arc::clone(known);
            }
        }
        self.spec.job_template.share(&previous.spec.job_template);
        if self.name == previous.name {
            self.name = previous.name.clone();
        }
    }
}

/// The condition that ended a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedCondition {
    /// The Job succeeded.
    Complete,
    /// The Job failed.
    Failed,
}

impl FinishedCondition {
    /// The condition type as the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

/// What a slot starts: a Job, or an ApiExample's Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is what one field of the object says")]
pub struct Job {
    /// Namespace and name.
    pub name: ObjectName,
    /// UID.
    pub uid: Uid,
    /// The version of this view.
    pub resource_version: ResourceVersion,
    /// When the object was created.
    pub creation_timestamp: DateTime<Utc>,
    /// Whether `deletionTimestamp` is set.
    pub deleting: bool,
    /// The controlling owner.
    pub controller: Option<Arc<ControllerRef>>,
    /// The slot in the annotation of its owner's kind, where present and well formed.
    pub scheduled_timestamp: Option<DateTime<Utc>>,
    /// When the Job's controller first acted on it, or resumed it.
    pub start_time: Option<DateTime<Utc>>,
    /// Whether a Pod of it is ready, as its controller counted last; of a Pod, whether it runs.
    pub has_ready_pod: bool,
    /// Whether it is suspended, or its resumption has yet to be seen by the Job's controller. Before Kubernetes 1.36 a
    /// suspended Job keeps its start time.
    pub suspended: bool,
    /// When it completed successfully.
    pub completion_time: Option<DateTime<Utc>>,
    /// Whether its `spec.parallelism` is 0, so that its controller creates no Pod.
    pub parallelism_is_zero: bool,
    /// Whether its `spec.managedBy` names another controller than the cluster's Job controller.
    pub managed_by_another: bool,
    /// How it ended: the first true condition among Complete and Failed, or a Pod's phase. Matches upstream
    /// `jobutil.FinishedCondition`.
    pub finished: Option<FinishedCondition>,
    /// Whether any Complete condition is true. Matches upstream `jobutil.IsJobSucceeded`.
    pub succeeded: bool,
    /// When it failed.
    pub failed_at: Option<DateTime<Utc>>,
    /// Whether a backfill created it: it never counts as active, and has no slot for a controller.
    pub of_backfill: bool,
}

/// What a Job waits for that has not ended and does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// To be resumed: it is suspended.
    Resumption,
    /// To be started by the controller that `spec.managedBy` names.
    Manager,
    /// To be started by the cluster's Job controller; a Pod, by its kubelet.
    Start,
    /// A `spec.parallelism` above 0.
    Parallelism,
}

impl Job {
    /// When it began, as far as its status says.
    pub fn began(&self) -> DateTime<Utc> {
        self.start_time.unwrap_or(self.creation_timestamp)
    }

    /// When it ended, however it ended, as far as its status says; `None` for one that runs.
    pub fn ended(&self) -> Option<DateTime<Utc>> {
        self.finished.and_then(|_| self.completion_time.or(self.failed_at))
    }

    /// Whether it exists and its controller has yet to start it. A suspended one is not to be started.
    pub fn awaits_start(&self) -> bool {
        matches!(self.waits_for(), Some(WaitsFor::Manager | WaitsFor::Start))
    }

    /// Whether something other than its start has to happen before it runs.
    pub fn is_held(&self) -> bool {
        self.waits_for().is_some_and(|waits_for| waits_for != WaitsFor::Start)
    }

    /// What it waits for, if it has not ended and does not run. Whether the Pods of one that was started run is not known.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        if self.finished.is_some() || self.deleting {
            None
        } else if self.suspended {
            Some(WaitsFor::Resumption)
        } else if self.start_time.is_none() {
            Some(if self.managed_by_another { WaitsFor::Manager } else { WaitsFor::Start })
        } else {
            self.parallelism_is_zero.then_some(WaitsFor::Parallelism)
        }
    }

    /// When it was started: not before its creation, and not in the future. A status may have any time.
    pub fn started(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.start_time.map(|start| self.possible(start, now))
    }

    /// For how long it ran, if it has ended by `now`: from its start, or else its creation. A Pod does not say when it ended,
    /// so that it did so now.
    pub fn ran_for(&self, now: DateTime<Utc>) -> TimeDelta {
        let ended = self.possible(self.completion_time.or(self.failed_at).unwrap_or(now), now);
        (ended - self.possible(self.began(), now)).max(TimeDelta::zero())
    }

    fn possible(&self, time: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
        // The API server's clock may be ahead.
        let latest = now.checked_add_signed(LATEST).unwrap_or(now);
        time.min(latest).max(self.creation_timestamp)
    }

    /// A reference to this child of a CronJob of `controller_kind`, as `status.active` holds it. Matches client-go
    /// `reference.GetReference`.
    pub fn reference(&self, controller_kind: ControllerKind) -> ObjectReference {
        ObjectReference {
            kind: controller_kind.child.kind.to_owned(),
            namespace: self.name.namespace.to_string(),
            name: self.name.name.to_string(),
            uid: self.uid.clone(),
            api_version: controller_kind.child.api_version(),
            resource_version: self.resource_version.to_string(),
            field_path: String::new(),
        }
    }

    /// Whether the controlling owner is `cron_job`: namespace, kind, group and UID match.
    ///
    /// Anyone who can read a UID may name it as the owner of a Job in another namespace. Upstream compares UIDs only
    /// (`getCronJobJobsByIndexer`). Before v1.37 it compared names only, and so counted the
    /// Jobs of a deleted CronJob of the same name.
    pub fn is_child_of(&self, cron_job: &CronJob) -> bool {
        self.name.namespace == cron_job.name.namespace
            && self.controller.as_ref().is_some_and(|owner| {
                *owner.kind == *cron_job.controller_kind.parent.kind
                    && *owner.group == *cron_job.controller_kind.parent.group
                    && owner.uid == cron_job.uid
            })
    }

    /// The slot of a Job that a CronJob controller created for `cron_job`: its annotation and its name give the same
    /// slot. A manual `create job --from` copies the template's annotations, but produces no such name. A Job of a backfill
    /// has both, and no controller created it. Nor did one create a Job more than a day before its slot: whoever writes Jobs
    /// must not decide the slots of years to come.
    pub fn slot_of(&self, cron_job: &CronJob) -> Option<DateTime<Utc>> {
        let number = cron_job.number_in(&self.name.name)?;
        let is_named_for = |slot: &DateTime<Utc>| number == cron_job.controller_kind.number_of(*slot);
        let is_early = |slot: &DateTime<Utc>| slot.signed_duration_since(self.creation_timestamp) > EARLIEST;
        self.scheduled_timestamp.filter(|slot| !self.of_backfill && is_named_for(slot) && !is_early(slot))
    }
}

impl Object for Job {
    const RESOURCE: ResourceKind = ControllerKind::CRON_JOB.child;

    identity_at!(self);

    fn controller_uid(&self) -> Option<&Uid> {
        self.controller.as_ref().map(|owner| &owner.uid)
    }

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        let wire: wire::Job<'_> = decode(json, Self::RESOURCE.kind)?;
        let wire::Job { metadata, spec, status } = wire;
        let is_short = |owner: &&wire::OwnerReference<'_>| {
            owner.api_version.len() + owner.kind.len() + owner.name.len() + owner.uid.text_len() <= LONGEST_OWNER
        };
        let controller = metadata.owner_references.0.as_ref().filter(is_short).map(|owner| {
            let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
            interner.controller(group, &owner.kind, &owner.name, &owner.uid)
        });
        let controller_kind = |owner: &Arc<ControllerRef>| ControllerKind::of_parent(&owner.group, &owner.kind);
        let controller_kind = controller.as_ref().and_then(controller_kind).unwrap_or_default();
        let scheduled = metadata.annotations.scheduled_timestamp(controller_kind);
        Ok(Self {
            name: metadata.object_name(interner),
            controller,
            scheduled_timestamp: scheduled
                .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
                .map(|time| time.to_utc()),
            uid: metadata.uid,
            resource_version: (&*metadata.resource_version).into(),
            creation_timestamp: metadata.creation_timestamp.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            start_time: status.start_time,
            has_ready_pod: status.ready > Some(0) || status.phase == wire::Phase::Running,
            suspended: spec.suspend == Some(true) || status.conditions.suspended,
            parallelism_is_zero: spec.parallelism == Some(0),
            managed_by_another: spec.managed_by.is_some_and(|manager| &*manager != JOB_CONTROLLER),
            completion_time: status.completion_time,
            finished: status.conditions.finished.or(status.phase.finished()),
            succeeded: status.conditions.succeeded || status.phase == wire::Phase::Succeeded,
            failed_at: status.conditions.failed_at,
            of_backfill: metadata.labels.backfill,
        })
    }

    fn succeed(&mut self, previous: &Self) {
        if self.name == previous.name {
            self.name = previous.name.clone();
        }
    }
}

pub(super) fn decode<'de, T: Deserialize<'de>>(json: &'de str, kind: &'static str) -> Result<T, DecodeError> {
    serde_json::from_str(json).map_err(|source| DecodeError { kind, source })
}

/// A text of another form counts as none.
fn counted_from<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Box<CountedFrom>>, D::Error> {
    Ok(Option::<wire::Text<'de>>::deserialize(d)?.and_then(|text| CountedFrom::parse(&text)).map(Box::new))
}

fn null_as_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

/// When what decides about the slots of a CronJob was written last, or another field by the same writer since, or a field that
/// cannot be read. `None` if the object's `managedFields` do not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotsEdited {
    /// The schedule, the zone or the suspension.
    pub last: Option<DateTime<Utc>>,
    /// The suspension: `spec.suspend`, or the annotation in its place.
    pub suspension: Option<DateTime<Utc>>,
}

/// When what decides about the slots of a CronJob was written last.
pub fn slots_edited(json: &str) -> SlotsEdited {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: wire::Metadata<'a>,
    }
    let read = |object: Object<'_>| SlotsEdited {
        last: object.metadata.edits().last_of_slots,
        suspension: object.metadata.suspension_written(),
    };
    serde_json::from_str(json).map_or_else(|_| SlotsEdited::default(), read)
}
