//! The state of the world from the server's commits: every version of every CronJob, and every Job that ever existed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use apiserver::Object;
use chrono::{DateTime, Utc};
use cronjob_controller::api::ControllerKind;
use cronjob_controller::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};
use cronjob_controller::api::policy::BACKFILL;
use schedule::missed::Observed;
use schedule::{Schedule, Timing, local_zone};
use serde::Deserialize as _;
use serde_json::Value;

use crate::disguise::{READS_AS, disguised};
use crate::freezes;
use crate::scenario::{ELSEWHERE, Millis};

/// The author of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A replica, and its number of starts.
    Replica(usize, u32),
    /// Users and the Job controller.
    World,
    /// An operator's backfill.
    Backfill,
    /// The garbage collector.
    Collector,
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replica(number, incarnation) => write!(f, "r{number}.{incarnation}"),
            Self::World => f.write_str("world"),
            Self::Backfill => f.write_str("backfill"),
            Self::Collector => f.write_str("gc"),
        }
    }
}

/// The annotation of all CronJobs in a world where they have to be handed over.
pub const SHARED: &str = "simulation/shared";

/// One version of a CronJob.
#[derive(Clone, Debug)]
pub struct Version {
    pub at: Millis,
    pub revision: u64,
    pub object: Arc<Object>,
}

impl Version {
    pub fn spec(&self) -> &Value {
        &self.object["spec"]
    }

    pub fn policy(&self) -> &str {
        self.spec()["concurrencyPolicy"].as_str().unwrap_or("Allow")
    }

    /// By the annotation, where it is handed over; in these worlds a released CronJob is suspended for all replicas.
    pub fn is_suspended(&self) -> bool {
        let annotations = &self.object["metadata"]["annotations"];
        if annotations[MANAGED_ANNOTATION] == "true" && self.spec()["suspend"] == true {
            annotations[SUSPEND_ANNOTATION] == "true"
        } else {
            annotations[SHARED] == "true" || self.spec()["suspend"] == true
        }
    }

    /// Whether the in-tree controller manages it, where CronJobs are handed over.
    pub fn is_taken_back(&self) -> bool {
        self.object["metadata"]["annotations"][MANAGED_ANNOTATION] != "true" || self.spec()["suspend"] != true
    }

    pub fn deadline(&self) -> Option<i64> {
        self.spec()["startingDeadlineSeconds"].as_i64()
    }

    /// The schedule as clients read it, if it is readable.
    pub fn timing(&self) -> Option<Timing> {
        let shown = disguised(&self.object);
        let schedule = shown["spec"]["schedule"].as_str()?;
        Some(Timing::parse(schedule, shown["spec"]["timeZone"].as_str(), local_zone().0))
    }

    /// Whether clients can compute its next slot at `now`, and there is one.
    pub fn is_schedulable(&self, now: DateTime<Utc>) -> bool {
        let has_next = |schedule: Schedule| {
            let observed = self.observed(now)?;
            let decided = observed.last_schedule.unwrap_or(observed.creation);
            schedule.next_after(decided.max(now - self.offset()))
        };
        !self.is_suspended() && self.schedule().and_then(has_next).is_some()
    }

    /// Whether `slot` is an instant of the schedule.
    pub fn has_slot(&self, slot: DateTime<Utc>) -> bool {
        let Some(schedule) = self.schedule().filter(|_| !self.leaves_out(slot)) else { return false };
        if self.spec()["schedule"].as_str().is_some_and(|text| text.contains("@every")) {
            return slot.timestamp_subsec_nanos() == 0;
        }
        schedule.next_after(slot - chrono::TimeDelta::seconds(1)) == Some(slot)
    }

    /// Whether its slots follow the last start, or are not known.
    pub fn is_every(&self) -> bool {
        self.spec()["schedule"].as_str().is_none_or(|text| text.contains("@every"))
    }

    /// The first slot that is not decided at `now`.
    pub fn first_slot(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (schedule, observed) = (self.schedule()?, self.observed(now)?);
        schedule.next_after(observed.last_schedule.unwrap_or(observed.creation))
    }

    pub fn last_schedule_time(&self) -> Option<DateTime<Utc>> {
        self.object["status"]["lastScheduleTime"].as_str()?.parse().ok()
    }

    pub fn last_successful_time(&self) -> Option<DateTime<Utc>> {
        self.object["status"]["lastSuccessfulTime"].as_str()?.parse().ok()
    }

    pub fn controller_kind(&self) -> ControllerKind {
        ControllerKind::deserialize(&self.object["apiVersion"]).expect("every object says what it is")
    }

    /// The facts that decisions about slots depend on, as clients that read it at `now` understand them.
    pub fn observed(&self, now: DateTime<Utc>) -> Option<Observed> {
        let decided = self.decided_until(now);
        let later = |time: DateTime<Utc>| decided.map_or(time, |decided| decided.max(time));
        Some(Observed {
            creation: later(self.object["metadata"]["creationTimestamp"].as_str()?.parse().ok()?),
            last_schedule: self.last_schedule_time().map(later),
            starting_deadline_seconds: self.deadline(),
        })
    }

    pub fn active(&self) -> Vec<&str> {
        let active = self.object["status"]["active"].as_array();
        active.into_iter().flatten().filter_map(|reference| reference["uid"].as_str()).collect()
    }
}

/// A CronJob from its creation to its deletion.
#[derive(Clone, Debug)]
pub struct Cron {
    pub namespace: String,
    pub name: String,
    pub versions: Vec<Version>,
    pub deleted: Option<Millis>,
    /// When each Event reason was last recorded for it.
    pub reasons: BTreeMap<&'static str, Millis>,
    /// The last time of an event that a controller may have to answer: a third party changed it or one of its Jobs, or
    /// a Job was started for it.
    pub stirred: Millis,
}

impl Cron {
    pub fn newest(&self) -> &Version {
        self.versions.last().expect("a CronJob has a version")
    }

    /// Since when it has its current schedule and timing policies.
    pub fn scheduled_since(&self) -> Millis {
        let timing = |version: &Version| {
            let shown = disguised(&version.object);
            let policies = version.timing_annotations();
            (shown["spec"]["schedule"].clone(), shown["spec"]["timeZone"].clone(), policies)
        };
        let newest = timing(self.newest());
        let same = self.versions.iter().rev().take_while(|version| timing(version) == newest);
        same.last().map_or(0, |version| version.at)
    }

    /// When the timing policies of the version of `revision` came to be. `None` if it was created with them or had them
    /// before, and if clients ever read other annotations than it has.
    pub fn retimed(&self, revision: u64) -> Option<Millis> {
        let known = &self.versions[..self.versions.partition_point(|version| version.revision <= revision)];
        let policies: Vec<_> = known.iter().map(Version::timing_annotations).collect();
        let newest = policies.last()?;
        let since = policies.len() - policies.iter().rev().take_while(|policies| *policies == newest).count();
        let is_new = since > 0 && !policies[..since].contains(newest);
        let is_plain = known.iter().all(|version| version.object["metadata"]["annotations"][READS_AS].is_null());
        // The record of an `@every` keeps the times of its slots, and so lies before the change. The newest slot of another
        // schedule that takes its place may be between them.
        let schedule = |version: &Version| version.spec()["schedule"].clone();
        let is_every = known.get(since).is_some_and(|version| schedule(version).to_string().contains("@every"));
        let is_kept = !is_every || known[since..].iter().all(|version| schedule(version) == schedule(&known[since]));
        (is_new && is_plain && is_kept).then(|| known[since].at)
    }

    /// When a user last changed its spec.
    pub fn edited(&self) -> Millis {
        let annotations = |version: &Version| {
            let mut all = version.object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            // A backfill changes nothing for the controller.
            all.remove(BACKFILL);
            all
        };
        self.unchanged_since(|a, b| {
            let is_same = a.object["metadata"]["annotations"] == b.object["metadata"]["annotations"];
            a.spec() == b.spec() && (is_same || annotations(a) == annotations(b))
        })
    }

    /// Since when all versions have been the same in this respect.
    pub fn unchanged_since(&self, is_same: impl Fn(&Version, &Version) -> bool) -> Millis {
        let newest = self.newest();
        let same = self.versions.iter().rev().take_while(|version| is_same(version, newest));
        same.last().map_or(0, |version| version.at)
    }

    /// Whether it was readable at any time from `start` to `end`.
    pub fn was_readable(&self, start: Millis, end: Millis) -> bool {
        let ends = self.versions.iter().skip(1).map(|next| next.at).chain([Millis::MAX]);
        let mut lives = self.versions.iter().zip(ends);
        lives.any(|(version, gone)| version.at <= end && gone >= start && version.timing().is_some())
    }

    /// The versions that a client may use that has seen the one of `revision`.
    pub fn since(&self, revision: u64) -> &[Version] {
        let start = self.versions.partition_point(|version| version.revision <= revision).saturating_sub(1);
        &self.versions[start..]
    }
}

/// A Job from its creation to its deletion.
#[derive(Clone, Debug)]
pub struct Job {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// The UID and name of the controlling CronJob.
    pub owner: Option<(String, String)>,
    /// The slot in its annotation.
    pub slot: Option<DateTime<Utc>>,
    /// The backfill that its label names.
    pub backfill: Option<String>,
    /// The time of its creation, according to its metadata.
    pub creation: Option<DateTime<Utc>>,
    pub author: Author,
    pub created: Millis,
    pub finished: Option<Condition>,
    /// When it finished.
    pub ended: Option<Millis>,
    /// The revision of that.
    pub ended_with: Option<u64>,
    /// Its start, according to its status.
    pub started: Option<DateTime<Utc>>,
    /// When it succeeded, according to its status.
    pub succeeded: Option<DateTime<Utc>>,
    pub deleting: bool,
    /// When it was first marked for deletion, and by whom. A finalizer may keep it after that.
    pub marked: Option<(Millis, Author)>,
    pub deleted: Option<Millis>,
    /// The author of the deletion.
    pub deleted_by: Option<Author>,
    /// Whether its author received the answer to the create.
    pub answered: bool,
    /// The replicas that saw it in a watch.
    pub seen_by: Vec<Sight>,
}

/// What a watch showed a replica of a Job.
#[derive(Clone, Debug)]
pub struct Sight {
    /// The replica and its incarnation.
    pub by: (usize, u32),
    /// When it first saw the Job.
    pub at: Millis,
    /// When it first saw that the Job is being deleted.
    pub deleting: Option<Millis>,
    /// The newest version that it saw.
    pub revision: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Complete,
    Failed,
}

impl Job {
    /// Whether a CronJob controller created it, and not `create job --from` or a backfill.
    pub fn is_made_by_controller(&self) -> bool {
        self.owner.is_some() && self.slot.is_some() && self.backfill.is_none()
    }

    /// Whether it can be in `active`: a backfill's never is, and otherwise all Jobs of some kinds are.
    pub fn is_active(&self, kind: ControllerKind) -> bool {
        self.is_made_by_controller() || kind.every_child_is_active && self.backfill.is_none()
    }

    /// A watch shows it to a replica.
    pub fn shown(&mut self, by: (usize, u32), revision: u64, is_deleting: bool, at: Millis) {
        let known = self.seen_by.iter().position(|sight| sight.by == by);
        let place = known.unwrap_or_else(|| {
            self.seen_by.push(Sight { by, at, deleting: None, revision });
            self.seen_by.len() - 1
        });
        let sight = &mut self.seen_by[place];
        sight.deleting = sight.deleting.or(is_deleting.then_some(at));
        sight.revision = sight.revision.max(revision);
    }

    /// What a replica had seen of it.
    pub fn sight(&self, author: Author) -> Option<&Sight> {
        let Author::Replica(number, incarnation) = author else { return None };
        self.seen_by.iter().find(|sight| sight.by == (number, incarnation))
    }

    /// Whether a third party removed it, so that its name does not prevent a second one.
    pub fn is_removed_by_others(&self) -> bool {
        self.deleted_by.is_some_and(|author| !matches!(author, Author::Replica(..)))
    }

    pub fn is_unfinished(&self) -> bool {
        self.finished.is_none() && self.deleted.is_none()
    }
}

/// The whole history.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// By UID.
    pub crons: BTreeMap<String, Cron>,
    /// By UID.
    pub jobs: BTreeMap<String, Job>,
    /// The UIDs of the Jobs of each CronJob that ever were.
    pub children: BTreeMap<String, Vec<String>>,
    /// The UID of the CronJob of that namespace and name.
    pub names: BTreeMap<(String, String), String>,
    /// Every version of each Namespace that counts.
    pub namespaces: freezes::Namespaces,
    /// The holder in the lease.
    pub holder: String,
    /// Since when that holder has it.
    pub held_since: Option<Millis>,
    /// Until when the lease, as each holder last wrote it, lets creates of that holder stay open.
    pub creates_end: BTreeMap<String, Millis>,
}

pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub fn revision(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or(0)
}

/// How a Job, or a Pod, ended.
pub fn condition(job: &Value) -> Option<Condition> {
    match job["status"]["phase"].as_str() {
        Some("Succeeded") => return Some(Condition::Complete),
        Some("Failed") => return Some(Condition::Failed),
        _ => {}
    }
    let conditions = job["status"]["conditions"].as_array()?;
    conditions.iter().find_map(|c| match (c["type"].as_str()?, c["status"].as_str()?) {
        ("Complete", "True") => Some(Condition::Complete),
        ("Failed", "True") => Some(Condition::Failed),
        _ => None,
    })
}

pub fn slot_of(job: &Value) -> Option<DateTime<Utc>> {
    let annotations = &job["metadata"]["annotations"];
    let text = ControllerKind::ALL
        .into_iter()
        .find_map(|controller_kind| annotations[controller_kind.scheduled_annotation].as_str())?;
    DateTime::parse_from_rfc3339(text).ok().map(|slot| slot.to_utc())
}

/// UID and name of the CronJob that controls a Job. None does in another namespace than its own.
pub fn owner_of(job: &Value) -> Option<(String, String)> {
    if job["metadata"]["namespace"] == ELSEWHERE {
        return None;
    }
    let owners = job["metadata"]["ownerReferences"].as_array()?;
    let is_parent =
        |owner: &&Value| ControllerKind::ALL.iter().any(|controller_kind| owner["kind"] == controller_kind.parent.kind);
    let owner = owners.iter().filter(is_parent).find(|owner| owner["controller"] == true)?;
    Some((owner["uid"].as_str()?.to_owned(), owner["name"].as_str()?.to_owned()))
}

impl Model {
    pub fn cron_job_written(&mut self, object: &Arc<Object>, at: Millis) {
        let uid = text(object, "uid").to_owned();
        let (namespace, name) = (text(object, "namespace").to_owned(), text(object, "name").to_owned());
        self.names.insert((namespace.clone(), name.clone()), uid.clone());
        let cron = self.crons.entry(uid).or_insert_with(|| Cron {
            namespace,
            name,
            versions: Vec::new(),
            deleted: None,
            reasons: BTreeMap::new(),
            stirred: at,
        });
        cron.versions.push(Version { at, revision: revision(object), object: Arc::clone(object) });
    }

    /// The newest CronJob of that name.
    pub fn cron_named(&self, namespace: &str, name: &str) -> Option<&Cron> {
        self.crons.get(self.names.get(&(namespace.to_owned(), name.to_owned()))?)
    }

    pub fn cron_job_deleted(&mut self, object: &Value, at: Millis) {
        if let Some(cron) = self.crons.get_mut(text(object, "uid")) {
            cron.deleted = Some(at);
            self.names.remove(&(cron.namespace.clone(), cron.name.clone()));
        }
    }

    pub fn job_created(&mut self, object: &Value, author: Author, at: Millis) {
        let uid = text(object, "uid").to_owned();
        let owner = owner_of(object);
        if let Some((owner, _)) = &owner {
            self.children.entry(owner.clone()).or_default().push(uid.clone());
        }
        let job = Job {
            namespace: text(object, "namespace").to_owned(),
            name: text(object, "name").to_owned(),
            uid: uid.clone(),
            owner,
            slot: slot_of(object),
            backfill: object["metadata"]["labels"][BACKFILL].as_str().map(str::to_owned),
            creation: text(object, "creationTimestamp").parse().ok(),
            author,
            created: at,
            finished: None,
            ended: None,
            ended_with: None,
            started: None,
            succeeded: None,
            deleting: false,
            marked: None,
            deleted: None,
            deleted_by: None,
            answered: false,
            seen_by: Vec::new(),
        };
        self.jobs.insert(uid, job);
    }

    pub fn job_changed(&mut self, object: &Value, author: Author, at: Millis) {
        let deleting = !object["metadata"]["deletionTimestamp"].is_null();
        if let Some(job) = self.jobs.get_mut(text(object, "uid")) {
            job.finished = condition(object);
            job.ended = job.ended.or(job.finished.map(|_| at));
            job.ended_with = job.ended_with.or(job.finished.map(|_| revision(object)));
            job.started = object["status"]["startTime"].as_str().and_then(|time| time.parse().ok());
            let completed = object["status"]["completionTime"].as_str().and_then(|time| time.parse().ok());
            job.succeeded = completed.filter(|_| job.finished == Some(Condition::Complete));
            job.deleting = deleting;
            job.marked = job.marked.or(deleting.then_some((at, author)));
            job.owner = owner_of(object);
        }
    }

    pub fn job_deleted(&mut self, uid: &str, author: Author, at: Millis) {
        if let Some(job) = self.jobs.get_mut(uid) {
            job.deleted = Some(at);
            // Who takes the last finalizer away only ends what another author began.
            job.deleted_by = Some(job.marked.map_or(author, |(_, author)| author));
        }
    }

    /// The existing Jobs of a CronJob.
    pub fn jobs_of(&self, uid: &str) -> impl Iterator<Item = &Job> {
        self.all_jobs_of(uid).filter(|job| job.deleted.is_none())
    }

    /// All Jobs of a CronJob that ever existed.
    pub fn all_jobs_of(&self, uid: &str) -> impl Iterator<Item = &Job> {
        self.children.get(uid).into_iter().flatten().filter_map(|uid| self.jobs.get(uid))
    }

    /// All slots of a CronJob that a controller started.
    pub fn slots_of(&self, uid: &str) -> impl Iterator<Item = DateTime<Utc>> {
        self.all_jobs_of(uid).filter(|job| job.backfill.is_none()).filter_map(|job| job.slot)
    }

    /// All Jobs that were ever created for a slot of a CronJob.
    pub fn fires_of(&self, uid: &str, slot: DateTime<Utc>) -> impl Iterator<Item = &Job> {
        self.all_jobs_of(uid).filter(move |job| job.slot == Some(slot))
    }

    /// Records an event about a CronJob that a controller may have to answer.
    pub fn stir(&mut self, uid: &str, at: Millis) {
        if let Some(cron) = self.crons.get_mut(uid) {
            cron.stirred = at;
        }
    }

    pub fn live(&self) -> impl Iterator<Item = (&String, &Cron)> {
        self.crons.iter().filter(|(_, cron)| cron.deleted.is_none())
    }
}
