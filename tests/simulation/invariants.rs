//! What must hold at every write, checked when it is sent and when it is committed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::policy::COUNTED_FROM;
use http::Method;
use serde_json::Value;

use crate::call::{Call, Kind};
use crate::coverage::Coverage;
use crate::disguise::disguised;
use crate::limits::in_foreground;
use crate::model::{Author, Cron, Job, Model, Version, condition, owner_of, slot_of, text};
use crate::policies::counted_from;
use crate::recovery::Recovery;
use crate::restore::Forgotten;
use crate::rivals::Rivals;
use crate::scenario::{MINUTE, Millis, SECOND, Scenario};
use crate::sim::{COMMIT_WITHIN, CREATE_WITHIN, IN_SOCKET, LEASE};
use crate::view::{Delivered, View};

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub at: Millis,
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "({}) at {}:{:02}.{:03}: {}",
            self.invariant,
            self.at / 60_000,
            self.at / 1000 % 60,
            self.at % 1000,
            self.text
        )
    }
}

/// How long after its cause a write may come in the final state: the queue's starvation limit, and time to travel.
const ANSWERED_WITHIN: Millis = 7 * SECOND;

/// How long after a namespace became noisy it is detected; before that, its requests may use all workers.
const KNOWN_AS_NOISY: Millis = 2 * MINUTE;

/// How late a slot may be started beside noisy namespaces.
const IN_TIME: Millis = 2 * SECOND;

/// How late after an overload: the backoff, some seconds in each of which a request that hangs holds the last place, and a
/// request's time.
const AFTER_OVERLOAD: Millis = 4 * SECOND;

/// A write on its way.
#[derive(Clone, Debug)]
pub struct Sent {
    pub author: Author,
    pub identity: String,
    pub at: Millis,
    /// The author's clock.
    pub clock: DateTime<Utc>,
    /// The CronJob as the author's watch had shown it.
    pub view: Option<Delivered>,
}

impl Sent {
    /// Whether a commit at `at` is later than any request may be, except a create in slow admission.
    pub fn is_late(&self, at: Millis) -> bool {
        at > self.at + COMMIT_WITHIN
    }
}

/// The UID and name of the CronJob for which a request starts a Job, or deletes a running one under Replace.
fn started_for(model: &Model, call: &Call) -> Option<(String, String)> {
    match (call.kind, &call.method) {
        (Kind::Jobs, &Method::POST) => owner_of(&call.json()),
        (Kind::Jobs, &Method::DELETE) => {
            let uid = call.json()["preconditions"]["uid"].as_str()?.to_owned();
            model.jobs.get(&uid).filter(|job| job.is_unfinished())?.owner.clone()
        }
        _ => None,
    }
}

/// Whether a Job has the labels of that version's template, and its arguments.
fn is_of_template(job: &Value, version: &Version) -> bool {
    let template = &version.spec()["jobTemplate"];
    let arguments = |spec: &Value| {
        let pod = if spec["template"].is_null() { spec } else { &spec["template"]["spec"] };
        pod["containers"][0]["args"].clone()
    };
    let labels = |object: &Value| {
        let all = &object["metadata"]["labels"];
        (all["fate"].clone(), all["number"].clone())
    };
    labels(job) == labels(template) && arguments(&job["spec"]) == arguments(&template["spec"])
}

/// Checks the invariants.
#[derive(Debug, Default)]
pub struct Invariants {
    pub violations: Vec<Violation>,
    pub coverage: Coverage,
    /// When the create of each slot of a CronJob, by its UID, was first sent.
    pub tried: BTreeMap<(String, DateTime<Utc>), Millis>,
    /// When a replica last deleted an unfinished Job of each CronJob, or began to.
    pub replaced: BTreeMap<String, Millis>,
    /// Whether one replica's clock may be ahead of another's.
    clocks_differ: bool,
    /// The CronJobs whose statuses lack a slot that no controller can know.
    forgiven: BTreeSet<String>,
    pub rivals: Rivals,
    pub recovery: Recovery,
    /// What a restore of etcd has made the cluster forget.
    pub forgotten: Forgotten,
}

impl Invariants {
    /// Nothing happened yet.
    pub fn new(scenario: &Scenario) -> Self {
        Self { clocks_differ: scenario.clocks_differ() != Some(TimeDelta::zero()), ..Self::default() }
    }

    /// Records that the status of a CronJob lacks a slot that no controller can know.
    pub fn forgive(&mut self, uid: String) {
        if self.forgiven.insert(uid) {
            self.coverage
                .count("excused", "slot not recorded: author gone before the status, Job gone before it was seen");
        }
    }

    pub fn violated(&mut self, invariant: &'static str, at: Millis, text: String) {
        self.violations.push(Violation { invariant, at, text });
    }

    /// A replica sends a write that only a leader may send.
    pub fn sent(&mut self, model: &Model, call: &Call, sent: &Sent, deadline: Option<Millis>, view: &View) {
        let at = sent.at;
        if deadline.is_none_or(|deadline| at >= deadline) {
            self.violated("7", at, format!("{} sends {call} beyond its lease's deadline {deadline:?}", sent.author));
        }
        if call.is_create_of_job() {
            let lasts = call.timeout().unwrap_or(CREATE_WITHIN).min(CREATE_WITHIN);
            let end = deadline.map_or(0, |deadline| deadline + (LEASE.0 - LEASE.1) * SECOND);
            let what =
                if at + lasts > end { "create that may outlive its lease" } else { "create bounded by its lease" };
            self.coverage.count("plan", what);
        }
        if call.kind == Kind::CronJobs && call.json()["metadata"]["resourceVersion"].as_str().is_none_or(str::is_empty)
        {
            self.violated("6", at, format!("{} sends {call} without resourceVersion", sent.author));
        }
        if call.kind == Kind::Jobs && call.method == Method::DELETE {
            self.deletes(model, call, sent);
        }
        let Some((uid, name)) = started_for(model, call) else { return };
        if let Some(slot) = slot_of(&call.json()).filter(|_| call.is_create_of_job()) {
            self.tried.entry((uid.clone(), slot)).or_insert(at);
        }
        let key = (call.namespace.clone(), name);
        let shown = view.cron_jobs.get(&key).filter(|shown| shown.uid == uid);
        match shown {
            Some(shown) if shown.at < at && (shown.suspend || shown.deleting) => {
                let why = if shown.deleting { "deletion" } else { "suspension" };
                self.violated(
                    "4",
                    at,
                    format!("{} sends {call} {} ms after it saw the {why}", sent.author, at - shown.at),
                );
            }
            None if view.gone_before(&uid, at) => {
                self.violated("4", at, format!("{} sends {call} after it saw the CronJob go", sent.author));
            }
            _ => {}
        }
        // How old a view can be: the CronJob was suspended or deleted, and the author's watch had not shown it.
        if let Some(cron) = model.crons.get(&uid) {
            let newest = cron.newest();
            if cron.deleted.is_some() || newest.is_suspended() {
                let what = if call.name.is_empty() { "sent" } else { "replaced" };
                self.coverage.count("late", &format!("Job {what} for a CronJob suspended or deleted, unseen yet"));
            }
        }
    }

    /// A Job was created by a replica.
    pub fn created(&mut self, model: &Model, job: &Value, sent: &Sent, at: Millis) {
        let (author, name) = (sent.author, format!("{}/{}", text(job, "namespace"), text(job, "name")));
        let (Some((uid, owner)), Some(slot)) = (owner_of(job), slot_of(job)) else {
            return self.violated("3", at, format!("{author} created {name} without owner or slot"));
        };
        if sent.is_late(at) {
            self.coverage.count("late", "create committed late");
            self.coverage.max("greatest", "time from the sending of a create to its commit, ms", at - sent.at);
        }
        let is_excused = self.once(model, job, &uid, slot, sent, at);
        let Some(cron) = model.crons.get(&uid) else {
            return self.violated("3", at, format!("{author} created {name} for an owner that never was"));
        };
        if let Some(deleted) = cron.deleted {
            self.coverage.count("late", "Job created for a CronJob deleted, unseen yet");
            self.coverage.max("greatest", "age of a view in which a deleted CronJob lived, ms", at - deleted);
        }
        let versions = cron.since(sent.view.as_ref().map_or(0, |view| view.revision));
        let due = cron.newest().controller_kind().child_name(&cron.name, slot);
        if cron.name != owner || name != format!("{}/{due}", cron.namespace) {
            self.violated("3", at, format!("{author} created {name}: name, owner and slot {slot} disagree"));
        }
        if !versions.iter().any(|version| version.has_slot(slot)) {
            self.violated("3", at, format!("{author} created {name} for {slot}, which is no slot of the schedule"));
        }
        if !versions.iter().any(|version| is_of_template(job, version)) {
            self.violated("3", at, format!("{author} created {name}, and no version has its template"));
        }
        let early = versions.iter().map(|version| version.due(slot) - sent.clock).min().unwrap_or_default();
        if early > TimeDelta::zero() {
            let early = early.num_milliseconds();
            self.violated("3", at, format!("{author} created {name} for {slot}, {early} ms before it is due"));
        }
        let in_time = |version: &Version| {
            version.deadline().is_none_or(|deadline| version.due(slot) + TimeDelta::seconds(deadline) >= sent.clock)
        };
        // A Job that was deleted for it is followed by one. The deletion may have been answered late.
        let was_deleted = |job: &Job| {
            let gone = job.marked.or(job.deleted.zip(job.deleted_by));
            gone.is_some_and(|(when, by)| by == author && when + 45 * SECOND >= sent.at)
        };
        if !versions.iter().any(in_time) {
            if model.all_jobs_of(&uid).any(was_deleted) {
                self.coverage.count("late", "create after the deadline, for which a Job had been deleted");
            } else {
                self.violated("3", at, format!("{author} sent {name} at {}, after its starting deadline", sent.clock));
            }
        }
        let passed_over = cron.newest().first_slot(sent.clock).is_some_and(|first| first < slot);
        if passed_over && cron.newest().deadline().is_some() {
            self.coverage.count("plan", "create: earlier slots passed over for their deadline");
        } else if passed_over {
            self.coverage.count("plan", "create: earlier slots passed over for this one");
        }
        self.coverage.count("policy", cron.newest().policy());
        for name in cron.newest().timing_annotations().keys() {
            self.coverage.count("timing", name);
        }
        if !is_excused {
            self.concurrency(model, &uid, versions, job, sent, at);
        }
    }

    /// Where the only faults concern the admission of some namespaces, each slot of the others starts in time.
    pub fn started_in_time(&mut self, model: &Model, job: &Value, at: Millis, scenario: &Scenario) {
        let namespace = text(job, "namespace");
        if !scenario.is_calm_elsewhere() || scenario.is_noisy(namespace) {
            return;
        }
        let (Some((uid, _)), Some(slot)) = (owner_of(job), slot_of(job)) else { return };
        let Some(cron) = model.crons.get(&uid) else { return };
        let since_start = |slot: DateTime<Utc>| u64::try_from(scenario.moment_of(slot)).unwrap_or(0);
        // A skipped slot counts from its due time; Forbid waits for the previous Job.
        let first = cron.newest().first_slot(slot).filter(|first| *first < slot).unwrap_or(slot);
        let due = since_start(first);
        let late = at.saturating_sub(due);
        if cron.newest().policy() == "Forbid" || due < cron.edited() {
            return;
        }
        let of_namespaces = scenario.faults.iter().filter(|fault| fault.namespace.is_some());
        let noisy_since = of_namespaces.map(|fault| fault.at).max().unwrap_or(0);
        // Whatever hangs, an overload of the server is over soon after it.
        let overloads = scenario.faults.iter().filter(|fault| fault.namespace.is_none());
        if overloads.clone().any(|fault| fault.at <= due && due < fault.until) {
            let ends = overloads.map(|fault| fault.until).max().unwrap_or(0);
            let late = at.saturating_sub(ends);
            self.coverage.count("judged", "slot of a calm namespace that was due in an overload");
            self.coverage.max("greatest", "lateness after an overload beside noisy namespaces, ms", late);
            if late > AFTER_OVERLOAD {
                let name = text(job, "name");
                self.violated("12", at, format!("{namespace}/{name} of {slot} comes {late} ms after an overload"));
            }
            return;
        }
        if due < noisy_since + KNOWN_AS_NOISY {
            return self.coverage.max("greatest", "lateness beside namespaces that have just become noisy, ms", late);
        }
        self.coverage.count("judged", "slot of a calm namespace beside a noisy one");
        self.coverage.max("greatest", "lateness of a slot of a calm namespace beside a noisy one, ms", late);
        if late > IN_TIME {
            let name = text(job, "name");
            self.violated("12", at, format!("{namespace}/{name} of {slot} is {late} ms late beside noisy namespaces"));
        }
    }

    fn concurrency(&mut self, model: &Model, uid: &str, versions: &[Version], job: &Value, sent: &Sent, at: Millis) {
        let (author, policy) = (sent.author, versions[0].policy());
        // With max-concurrent, neither Allow nor Forbid counts.
        if versions.iter().any(|version| version.policy() != policy || version.max_concurrent().is_some()) {
            return;
        }
        let is_rescued =
            |other: &Job| other.deleting && versions.iter().any(|version| version.rescues_after().is_some());
        let own = text(job, "uid");
        let (counts, though): (&dyn Fn(&Job) -> bool, _) = match policy {
            "Forbid" => (&|other| other.is_unfinished() && !is_rescued(other), "though Forbid"),
            "Replace" => (&|other| other.is_unfinished() && !other.deleting, "not replaced"),
            _ => return,
        };
        let others = model.jobs_of(uid).filter(|other| other.uid != own && other.is_made_by_controller());
        let wrong = others.filter(|other| counts(other)).find(|other| {
            !self.is_excused_beside(model, other)
                && !self.is_of_the_other_controller(versions, other, sent)
                && !self.is_of_a_clock_ahead(model, slot_of(job), other, author)
        });
        if let Some(other) = wrong {
            let (name, runs) = (text(job, "name"), &other.name);
            let text = format!("{author} created {name} while {runs} of {} runs, {though}", other.author);
            self.violated("2", at, text);
        }
    }

    /// Whether `other` is the second Job of its slot, which is excused only where a third party removed the first.
    pub fn is_excused_beside(&mut self, model: &Model, other: &Job) -> bool {
        let (Some((uid, _)), Some(slot)) = (&other.owner, other.slot) else { return false };
        let was_on_its_way =
            |first: &Job| first.deleted.is_some_and(|deleted| deleted + IN_SOCKET + CREATE_WITHIN > other.created);
        let is_second = model
            .fires_of(uid, slot)
            .any(|first| first.uid != other.uid && first.is_removed_by_others() && was_on_its_way(first));
        if is_second {
            self.coverage
                .count("excused", "two run: the first of one slot was removed while its create was on its way");
        }
        is_second
    }

    /// Whether the in-tree controller started `other`, which the author had not seen: the CronJob was given back to it, or both run.
    pub fn is_of_the_other_controller(&mut self, versions: &[Version], other: &Job, sent: &Sent) -> bool {
        let is_given_back = !versions[0].is_taken_back() && versions.iter().any(Version::is_taken_back);
        let is_unseen = other.sight(sent.author).is_none_or(|sight| sight.at >= sent.at);
        if other.author != Author::World || !is_given_back && !is_unseen {
            return false;
        }
        let how = if is_given_back { "the CronJob was given back to it" } else { "both run" };
        self.coverage.count("excused", &format!("two run: one of the in-tree controller, unseen yet, since {how}"));
        true
    }

    /// Whether a leader whose clock was ahead started `other`, the Job of a slot still to come, and ended before its answer or before
    /// the status had the slot, and the watch of `author` has not shown it.
    pub fn is_of_a_clock_ahead(
        &mut self,
        model: &Model,
        slot: Option<DateTime<Utc>>,
        other: &Job,
        author: Author,
    ) -> bool {
        let is_early = other.slot > slot && other.creation < other.slot;
        let cron = other.owner.as_ref().and_then(|(uid, _)| model.crons.get(uid));
        let is_recorded = cron.is_some_and(|cron| cron.newest().last_schedule_time() >= other.slot);
        let is_unknown = !other.answered || other.author != author && !is_recorded;
        let is_excused = is_early && is_unknown && other.sight(author).is_none();
        if is_excused {
            self.coverage
                .count("excused", "two run: a slot to come of a dead leader whose clock was ahead, unseen yet");
        }
        is_excused
    }

    /// At most one Job for each slot, over all history. Returns whether a second one is excused because a create was on
    /// its way when a third party removed the first.
    fn once(&mut self, model: &Model, job: &Value, uid: &str, slot: DateTime<Utc>, sent: &Sent, at: Millis) -> bool {
        let own = text(job, "uid");
        let Some(first) = model.fires_of(uid, slot).find(|other| other.uid != own) else { return false };
        if is_second_on_its_way(model, job, uid, slot, sent) {
            self.coverage.count("excused", "fired again: removed by others while another create of it was on its way");
            return true;
        }
        let recorded = model.crons.get(uid).is_some_and(|cron| cron.newest().last_schedule_time() >= Some(slot));
        let is_own = first.author == sent.author;
        let is_gone = first.deleted.is_some_and(|deleted| deleted <= sent.at);
        // A standby that saw the Job remembers nothing of it.
        let led = model.held_since.filter(|_| model.holder == sent.identity);
        let is_unknown = first.sight(sent.author).is_none()
            || first.deleted < led.map(|since| since + SECOND)
            || was_taken_back_meanwhile(model, uid, first);
        if !recorded && !is_own && is_gone && first.is_removed_by_others() && is_unknown {
            // Its author never wrote the status, and later controllers could not see the Job any more.
            self.coverage.count("excused", "fired again: author gone before the status, Job removed by others");
            return false;
        }
        if !recorded && is_own && !first.answered && first.sight(sent.author).is_none() {
            // Whether the request arrived cannot be determined any more: the answer was lost, and the Job was deleted
            // before the author's watch could show it.
            self.coverage.count("excused", "fired again: answer lost, Job gone before the watch showed it");
            return false;
        }
        if !recorded && self.was_unreadable(model, uid, first, sent) {
            return false;
        }
        let replaces = |cron: &Cron| cron.newest().policy() == "Replace";
        if !recorded && !is_own && is_gone && self.clocks_differ && model.crons.get(uid).is_some_and(replaces) {
            // It was replaced for a slot of the future, which only its author's clock had reached.
            self.coverage
                .count("excused", "fired again: replaced by a clock that ran ahead, author gone before the status");
            return false;
        }
        let recorded = if recorded { "recorded" } else { "not recorded" };
        let text = format!(
            "{} created {} for {slot} again: {} by {} at {} ms (answered: {}, {recorded}, deleted {:?}, seen by {:?})",
            sent.author,
            text(job, "name"),
            first.uid,
            first.author,
            first.created,
            first.answered,
            first.deleted,
            first.seen_by,
        );
        self.violated("1", at, text);
        false
    }

    /// Whether the CronJob could not be read before its status had the slot, and the Job was gone when it could be read again.
    fn was_unreadable(&mut self, model: &Model, uid: &str, first: &Job, sent: &Sent) -> bool {
        let is_gone = first.deleted.is_some_and(|deleted| deleted <= sent.at);
        let meanwhile = first.created..=sent.at;
        let mut versions = model.crons.get(uid).into_iter().flat_map(|cron| &cron.versions);
        let is_excused = first.author != sent.author
            && is_gone
            && versions.any(|version| meanwhile.contains(&version.at) && version.timing().is_none());
        if is_excused {
            self.coverage.count("excused", "fired again: its CronJob unreadable meanwhile, and the Job gone");
        }
        is_excused
    }

    /// A replica's deletion of a Job was committed; `before` is the deleted object.
    pub fn deleted(&mut self, model: &Model, before: &Value, sent: &Sent, at: Millis) {
        let name = format!("{}/{}", text(before, "namespace"), text(before, "name"));
        let Some((uid, _)) = owner_of(before) else {
            return self.violated("5", at, format!("{} deleted {name}, which no CronJob owns", sent.author));
        };
        if let Some(view) = &sent.view
            && view.uid != uid
        {
            return self.violated("5", at, format!("{} deleted {name} of another UID", sent.author));
        }
        if condition(before).is_some() {
            self.prunes_during_backfill(model, before, &uid, sent, at);
            return self.coverage.count("plan", "prune");
        }
        self.replaced.insert(uid.clone(), at);
        // It was judged when it began.
        if in_foreground(before) {
            return;
        }
        self.coverage.count("plan", "replace");
        let Some(cron) = model.crons.get(&uid) else { return };
        let versions = cron.since(sent.view.as_ref().map_or(0, |view| view.revision));
        if !versions.iter().any(|version| version.policy() == "Replace") {
            self.violated("5", at, format!("{} deleted the unfinished {name} though not Replace", sent.author));
        }
    }

    /// Whether a status is written that has a record of decided slots, and clients do not see that the CronJob has it. Each
    /// leader that saw how it vanished writes it once.
    pub fn is_record_of_hidden_one(&mut self, model: &Model, call: &Call) -> bool {
        let cron = model.cron_named(&call.namespace, &call.name).filter(|_| call.kind == Kind::CronJobs);
        let Some(cron) = cron else { return false };
        let object = &cron.newest().object;
        let is_hidden = counted_from(object).is_some() && counted_from(&disguised(object)).is_none();
        let is_excused = is_hidden && counted_from(&call.json()).is_some();
        if is_excused {
            self.coverage.count("excused", "record of decided slots written again, which no client sees");
        }
        is_excused
    }

    /// No write without a cause: in the final state each write answers a recent event. A Job's start for a due slot is
    /// checked at its creation; a deletion for Replace belongs to such a start.
    pub fn has_cause(&mut self, model: &mut Model, call: &Call, sent: &Sent, at: Millis) {
        if call.kind == Kind::Jobs && call.method == Method::POST {
            // The slot's name may be taken, by the Job of another slot in that minute or by a Job of another owner.
            let body = call.json();
            let (Some((uid, _)), Some(slot)) = (owner_of(&body), slot_of(&body)) else { return };
            if slot <= sent.clock && model.crons.get(&uid).is_some_and(|cron| cron.newest().has_slot(slot)) {
                model.stir(&uid, at);
            }
            return;
        }
        let uid = match (call.kind, &call.method) {
            (Kind::CronJobs, _) => model.names.get(&(call.namespace.clone(), call.name.clone())),
            (Kind::Jobs, &Method::DELETE) => {
                let job = call.json()["preconditions"]["uid"].as_str().and_then(|uid| model.jobs.get(uid));
                job.filter(|job| job.finished.is_some()).and_then(|job| job.owner.as_ref()).map(|(owner, _)| owner)
            }
            _ => None,
        };
        let Some(cron) = uid.and_then(|uid| model.crons.get(uid)) else { return };
        // A slot that is held may be recorded when it comes due.
        if cron.newest().has_limits() {
            return;
        }
        // A changed schedule is looked at when its next slot comes, or that of the one before, which a fast clock may have put off; also
        // that of a suspended CronJob. Then it is recorded.
        let newest = cron.newest();
        let recently = sent.clock - TimeDelta::seconds((ANSWERED_WITHIN / SECOND) as i64);
        // The write itself may be the newest version already.
        let before = cron.versions.iter().rfind(|version| version.at < at).unwrap_or(newest);
        let since = cron.scheduled_since();
        let old = cron.versions.iter().rfind(|version| version.at < since);
        let mut due =
            [Some(newest), old].into_iter().flatten().filter_map(|version| version.schedule()?.next_after(recently));
        if before.at == since && due.any(|slot| slot <= sent.clock) {
            return;
        }
        self.coverage.count("judged", "write once all was settled");
        if at - cron.stirred > ANSWERED_WITHIN {
            let text = format!("{} sent {call}, and nothing had happened for {} ms", sent.author, at - cron.stirred);
            self.violated("9", at, text);
        }
    }

    /// A replica's write of a CronJob was committed.
    pub fn status_written(&mut self, model: &Model, before: &Value, after: &Value, sent: &Sent, at: Millis) {
        let time =
            |object: &Value| -> Option<DateTime<Utc>> { object["status"]["lastScheduleTime"].as_str()?.parse().ok() };
        let name = format!("{}/{}", text(after, "namespace"), text(after, "name"));
        if time(after) < time(before) {
            let text = format!(
                "{} set lastScheduleTime of {name} back from {:?} to {:?}",
                sent.author,
                time(before),
                time(after)
            );
            self.violated("6", at, text);
        }
        if before["spec"] != after["spec"] {
            self.violated("6", at, format!("{} changed the spec of {name}", sent.author));
        }
        let annotations = |object: &Value| {
            let all = object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            all.into_iter().filter(|(name, _)| name != COUNTED_FROM).collect::<Vec<_>>()
        };
        if annotations(before) != annotations(after) {
            self.violated("6", at, format!("{} changed the annotations of {name}", sent.author));
        }
        if counted_from(before) != counted_from(after) {
            self.coverage.count("plan", "record of decided slots");
        }
        self.coverage.count("plan", "status");
        let active = |object: &Value| -> Vec<String> {
            let list = object["status"]["active"].as_array().into_iter().flatten();
            list.filter_map(|reference| reference["uid"].as_str().map(str::to_owned)).collect()
        };
        let old = active(before);
        let joined = active(after).into_iter().filter(|uid| !old.contains(uid));
        let is_adopted = |job: &Job| job.author != sent.author;
        if joined.filter_map(|uid| model.jobs.get(&uid)).any(is_adopted) {
            self.coverage.count("plan", "adopt");
        }
    }
}

/// Whether others removed another Job of the slot while this create was on its way.
pub fn is_second_on_its_way(model: &Model, job: &Value, uid: &str, slot: DateTime<Utc>, sent: &Sent) -> bool {
    let was_removed = |other: &Job| other.is_removed_by_others() && other.deleted >= Some(sent.at);
    model.fires_of(uid, slot).any(|other| other.uid != text(job, "uid") && was_removed(other))
}

/// Whether a CronJob was taken back within a second of the create of `first`, for as long as that was there: no replica looked after it.
fn was_taken_back_meanwhile(model: &Model, uid: &str, first: &Job) -> bool {
    let Some(cron) = model.crons.get(uid) else { return false };
    let (before, since) = cron.versions.split_at(cron.versions.partition_point(|version| version.at < first.created));
    let meanwhile = since.iter().take_while(|version| first.deleted.is_some_and(|deleted| version.at <= deleted));
    let is_at_once = since.first().is_some_and(|version| version.at <= first.created + SECOND);
    let was_managed = before.last().is_some_and(|version| !version.is_taken_back());
    was_managed && is_at_once && meanwhile.into_iter().all(Version::is_taken_back)
}
