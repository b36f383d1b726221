//! The policies of a world's CronJobs that choose no slots, and what they allow.
//!
//! Values are read here once more, independently of the controller's code. An author is judged by the versions of the
//! CronJob that it may have used: what one of them allows is allowed.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::policy::{
    AFTER_CHANGE, BACKLOG, LIMITS, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, REPLACE_WAITS, SLOT_IN_POD, STUCK_AFTER,
};
use serde_json::{Value, json};

use crate::call::Call;
use crate::disguise::disguised;
use crate::invariants::{Invariants, Sent, is_second_on_its_way};
use crate::model::{Author, Condition, Job, Model, Version, owner_of, slot_of, text};
use crate::pairs;
use crate::policies::{Annotations, TIMING};
use crate::rng::Rng;
use crate::scenario::{CronJob, MINUTE, Millis, SECOND};
use crate::waiting::LINGERING;

/// By when every watch has shown a change: a silent one is noticed after three minutes.
pub const SHOWN_WITHIN: Millis = 4 * MINUTE;

/// By when a sync that began before its watch showed something has sent its last request.
pub const LONGEST_SYNC: Millis = MINUTE;

/// The policies of a new CronJob.
pub fn draw(rng: &mut Rng) -> Annotations {
    let mut drawn = Annotations::new();
    for name in LIMITS {
        if rng.percent(if name == REPLACE_WAITS { 45 } else { 30 }) {
            drawn.insert(name, Some(value(rng, name)));
        }
    }
    if rng.percent(70) {
        // Together they are not allowed.
        drawn.remove(if drawn.contains_key(REPLACE_WAITS) { STUCK_AFTER } else { REPLACE_WAITS });
    }
    drawn
}

/// Changes the rest of a new CronJob so that its policies may be combined, and often hold a slot.
pub fn fit(rng: &mut Rng, cron_job: &mut CronJob) {
    let CronJob { spec, policies, .. } = cron_job;
    if policies.contains_key(REPLACE_WAITS) {
        policies.retain(|name, value| match *name {
            MAX_CONCURRENT | STUCK_AFTER => false,
            BACKLOG => value.as_deref() == Some("0"),
            _ => true,
        });
        spec.policy = "Replace";
    } else if policies.contains_key(BACKLOG) || policies.contains_key(STUCK_AFTER) {
        spec.policy = "Forbid";
    } else if policies.contains_key(MAX_CONCURRENT) && spec.policy == "Replace" {
        spec.policy = "Allow";
    }
    if policies.get(MAX_CONCURRENT).is_some_and(|value| value.as_deref() == Some("0")) {
        policies.insert(MAX_CONCURRENT, Some("2".to_owned()));
    }
    if policies.contains_key(PAUSE_AFTER_FAILURES) {
        spec.limits = (Some(3), Some(3));
    }
    spec.schedule = (*rng.pick(&["* * * * *", "* * * * *", "*/2 * * * *"])).to_owned();
    spec.fate = rng.weighted(&[(30, "mixed"), (30, "slow"), (15, "fails"), (15, "hangs"), (10, "vanishes")]);
}

/// Gives a CronJob the policies with which a slot that cannot start within a minute is passed over, and more than a minute between
/// its slots.
pub fn leave_late_ones_out(rng: &mut Rng, cron_job: &mut CronJob) {
    let CronJob { spec, policies, .. } = cron_job;
    policies.retain(|name, _| !LIMITS.contains(name));
    policies.insert(BACKLOG, Some("0".to_owned()));
    spec.policy = if rng.percent(60) { "Replace" } else { "Forbid" };
    if spec.policy == "Replace" {
        policies.insert(REPLACE_WAITS, Some("true".to_owned()));
    } else if rng.percent(60) {
        policies.insert(STUCK_AFTER, Some((*rng.pick(&["40s, delete", "90s, delete"])).to_owned()));
    }
    spec.schedule = (*rng.pick(&["*/2 * * * *", "*/3 * * * *", "*/4 * * * *"])).to_owned();
    spec.fate = rng.weighted(&[(30, "mixed"), (30, "slow"), (20, "hangs"), (20, "quick")]);
}

/// A change of the policies.
pub fn change(rng: &mut Rng) -> Annotations {
    let name = *rng.pick(&LIMITS);
    let value = value(rng, name);
    rng.weighted(&[
        (60, Annotations::from([(name, Some(value))])),
        (30, Annotations::from([(name, None)])),
        (10, LIMITS.iter().map(|name| (*name, None)).collect()),
    ])
}

fn value(rng: &mut Rng, name: &'static str) -> String {
    let values: &[&str] = match name {
        MAX_CONCURRENT => &["1", "1", "2", "3", "0"],
        BACKLOG => &["0", "1", "2", "5"],
        REPLACE_WAITS | SLOT_IN_POD => &["true"],
        AFTER_CHANGE => &["wait", "wait", "fire"],
        STUCK_AFTER => &["40s", "40s, delete", "90s, delete", "3m, delete"],
        PAUSE_AFTER_FAILURES => &["1", "1", "2"],
        _ => panic!("{name} has no values"),
    };
    (*rng.pick(values)).to_owned()
}

impl Version {
    pub fn limits(&self) -> BTreeMap<&'static str, String> {
        let shown = disguised(&self.object);
        let value = |name: &'static str| Some((name, shown["metadata"]["annotations"][name].as_str()?.to_owned()));
        LIMITS.into_iter().filter_map(value).collect()
    }

    /// Its annotations that are policies, in the order of the documents.
    pub fn policies(&self) -> Vec<&'static str> {
        let (timing, limits) = (self.timing_annotations(), self.limits());
        TIMING.into_iter().chain(LIMITS).filter(|name| timing.contains_key(name) || limits.contains_key(name)).collect()
    }

    /// Whether something besides its slots and its concurrency policy decides when a Job starts.
    pub fn has_limits(&self) -> bool {
        self.limits().keys().any(|name| ![AFTER_CHANGE, SLOT_IN_POD].contains(name))
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.limits().get(name)?.parse().ok()
    }

    pub fn max_concurrent(&self) -> Option<usize> {
        self.number(MAX_CONCURRENT)
    }

    /// How many slots wait.
    pub fn backlog(&self) -> Option<usize> {
        self.number(BACKLOG)
    }

    /// After how many failures nothing starts.
    pub fn pauses_after(&self) -> Option<usize> {
        self.number(PAUSE_AFTER_FAILURES)
    }

    /// Whether no slot starts that was due before a change. Policies that cannot be read say nothing.
    pub fn waits_after_change(&self) -> bool {
        self.limits().get(AFTER_CHANGE).is_some_and(|value| value == "wait") && self.schedule().is_some()
    }

    /// How long a Job that blocks a slot runs before it is deleted.
    pub fn rescues_after(&self) -> Option<TimeDelta> {
        let limits = self.limits();
        let age = limits.get(STUCK_AFTER)?.strip_suffix(", delete")?;
        let unit = if age.ends_with('m') { 60 } else { 1 };
        Some(TimeDelta::seconds(age.trim_end_matches(['s', 'm']).parse::<i64>().ok()? * unit))
    }

    /// Whether it is old enough to be deleted by then.
    pub fn is_stuck(&self, job: &Job, now: DateTime<Utc>) -> bool {
        let started = job.started.filter(|_| job.backfill.is_none());
        self.rescues_after().zip(started).is_some_and(|(age, start)| start + age <= now)
    }

    pub fn replace_waits(&self) -> bool {
        self.policy() == "Replace" && self.limits().contains_key(REPLACE_WAITS)
    }
}

/// The finalizer that keeps a Job for a while after its deletion.
pub const FINALIZER: &str = "simulation.example.com/linger";

/// Whether the object has [`FINALIZER`].
pub fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|names| names.contains(&json!(FINALIZER)))
}

/// Whether a deletion of the object waits for its dependents.
pub fn in_foreground(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|names| names.contains(&json!("foregroundDeletion")))
}

impl Invariants {
    /// A Job was created by a replica: what the policies allow.
    pub fn started_within_limits(&mut self, model: &Model, job: &Value, sent: &Sent, at: Millis) {
        let (Some((uid, _)), Some(slot), Some(view)) = (owner_of(job), slot_of(job), &sent.view) else { return };
        let Some(cron) = model.crons.get(&uid) else { return };
        if is_second_on_its_way(model, job, &uid, slot, sent) {
            // What its place is for was judged when the first one came.
            return;
        }
        let versions = cron.since(view.revision);
        let name = format!("{} created {}/{} for {slot}", sent.author, text(job, "namespace"), text(job, "name"));
        for policy in versions.last().map(Version::limits).unwrap_or_default().keys() {
            self.coverage.count("limit", policy);
        }
        versions.last().into_iter().for_each(|version| pairs::count(&mut self.coverage, version));
        let others: Vec<&Job> = model.jobs_of(&uid).filter(|other| other.uid != text(job, "uid")).collect();
        let is_seen = |other: &Job| other.sight(sent.author).is_some_and(|sight| sight.at < sent.at);
        let is_known = |other: &&Job| other.is_made_by_controller() || is_seen(other);
        // A Job may be gone since the create was sent.
        let there = model.all_jobs_of(&uid).filter(|job| job.deleted.is_none_or(|deleted| deleted > sent.at));
        let success = there.filter_map(|job| job.succeeded).max().max(cron.newest().last_successful_time());
        let wrong = |others: &[&Job]| {
            let wrong = [
                Self::too_many(versions, others, sent, is_known),
                Self::beside_a_replaced_one(versions, others, sent),
                Self::while_paused(versions, others, success, at),
            ];
            wrong.into_iter().flatten().collect::<Vec<_>>()
        };
        if wrong(&others).is_empty() {
            return;
        }
        let is_excused = |other: &&Job| {
            self.is_excused_beside(model, other)
                || self.is_of_the_other_controller(versions, other, sent)
                || self.is_of_a_clock_ahead(model, Some(slot), other, sent.author)
        };
        let (_, others): (Vec<&Job>, Vec<&Job>) = others.into_iter().partition(is_excused);
        for (invariant, what) in wrong(&others) {
            self.violated(invariant, at, format!("{name} {what}"));
        }
    }

    /// With `max-concurrent`, fewer Jobs than that are unfinished. A Job made by hand counts once the author has seen it.
    fn too_many(
        versions: &[Version],
        others: &[&Job],
        sent: &Sent,
        is_known: impl Fn(&&Job) -> bool,
    ) -> Option<(&'static str, String)> {
        let limits: Option<Vec<usize>> = versions.iter().map(Version::max_concurrent).collect();
        let most = limits?.into_iter().max()?;
        let is_rescued = |job: &&Job| job.deleting && versions.iter().any(|version| version.is_stuck(job, sent.clock));
        let unfinished = others.iter().copied().filter(|job| job.is_unfinished() && !is_rescued(job)).filter(is_known);
        let number = unfinished.count();
        (number >= most).then(|| ("16", format!("beside {number} unfinished ones, though max-concurrent is {most}")))
    }

    /// With `replace-waits`, the Jobs of earlier slots are gone. A finished one that is being deleted counts when its watch
    /// has shown that to the author.
    fn beside_a_replaced_one(versions: &[Version], others: &[&Job], sent: &Sent) -> Option<(&'static str, String)> {
        let is_shown = |job: &Job| {
            let seen = job.sight(sent.author).and_then(|sight| sight.deleting);
            seen.is_some_and(|seen| seen + 10 * SECOND < sent.at)
        };
        let is_there =
            |job: &&&Job| job.is_made_by_controller() && (job.finished.is_none() || job.deleting && is_shown(job));
        let other = others.iter().find(is_there).filter(|_| versions.iter().all(Version::replace_waits))?;
        Some(("17", format!("while {} is not gone, though it waits for that", other.name)))
    }

    /// After as many failures in a row, nothing starts. A failure counts when every watch has shown it.
    fn while_paused(
        versions: &[Version],
        others: &[&Job],
        success: Option<DateTime<Utc>>,
        at: Millis,
    ) -> Option<(&'static str, String)> {
        let limits: Option<Vec<usize>> = versions.iter().map(Version::pauses_after).collect();
        let most = limits?.into_iter().max()?;
        let is_shown = |job: &&&Job| job.ended.is_some_and(|ended| ended + SHOWN_WITHIN < at);
        let is_failure =
            |job: &&&Job| job.finished == Some(Condition::Failed) && !job.deleting && job.backfill.is_none();
        // Times are of whole seconds, and what started in that of the success may have started before it.
        let failed = others.iter().filter(is_failure).filter(|job| job.started.or(job.creation) > success);
        let number = failed.filter(is_shown).count();
        (number >= most).then(|| ("18", format!("after {number} failures since the last success, {success:?}")))
    }

    /// A replica sends the deletion of a Job. It names the Job's UID. In the foreground it is sent once: before it, the Job
    /// is read live, which shows one that was committed, whoever sent it.
    pub fn deletes(&mut self, model: &Model, call: &Call, sent: &Sent) {
        let body = call.json();
        let Some(uid) = body["preconditions"]["uid"].as_str() else {
            return self.violated("5", sent.at, format!("{} sends {call} without the UID", sent.author));
        };
        let Some(job) = model.jobs.get(uid).filter(|_| body["propagationPolicy"] == "Foreground") else { return };
        if let Some((owner, _)) = &job.owner {
            self.replaced.insert(owner.clone(), sent.at);
        }
        let is_again = |(_, author): (Millis, Author)| matches!(author, Author::Replica(..));
        if job.marked.is_some_and(is_again) && job.deleted.is_none() {
            let text = format!("{} sends {call} for {uid}, whose deletion was committed before", sent.author);
            self.violated("20", sent.at, text);
        }
        self.beside_lingering_ones(model, job, call, sent);
    }

    /// Whether a deletion may change nothing: the author's sync began before its watch showed the first one.
    pub fn is_excused_deletion(&mut self, model: &Model, call: &Call, sent: &Sent) -> bool {
        let uid = call.json()["preconditions"]["uid"].as_str().map(str::to_owned);
        let Some(job) = uid.and_then(|uid| model.jobs.get(&uid)).filter(|job| job.deleting) else { return false };
        let sight = job.sight(sent.author);
        let seen = sight.and_then(|sight| sight.deleting);
        if seen.is_none_or(|seen| seen + LONGEST_SYNC >= sent.at) {
            self.coverage.count("excused", "terminating Job deleted again by a sync that began before");
            return true;
        }
        false
    }

    /// No stuck Job is deleted while others that were linger, as the author has seen for long enough.
    fn beside_lingering_ones(&mut self, model: &Model, job: &Job, call: &Call, sent: &Sent) {
        let (Some((uid, _)), Some(view)) = (&job.owner, &sent.view) else { return };
        let Some(versions) = model.crons.get(uid).map(|cron| cron.since(view.revision)) else { return };
        let is_stuck = |job: &Job, before: Millis| {
            let then = sent.clock - TimeDelta::milliseconds(i64::try_from(before).unwrap());
            versions.iter().all(|version| version.is_stuck(job, then))
        };
        let lingers = |other: &&Job| {
            let seen = other.sight(sent.author).and_then(|sight| sight.deleting);
            other.finished.is_none() && seen.is_some_and(|seen| seen + LONGEST_SYNC < sent.at)
        };
        let limited = model.jobs_of(uid).filter(|other| is_stuck(other, LONGEST_SYNC)).filter(lingers);
        let number = limited.count();
        if number > 0 {
            self.coverage.max("greatest", "stuck Jobs that linger when another one is deleted", number as u64);
        }
        if is_stuck(job, 0) && number >= LINGERING {
            self.violated("20", sent.at, format!("{} sends {call} beside {number} that linger", sent.author));
        }
    }

    /// A replica's deletion in the foreground left a Job terminating. A Pod terminates after any deletion, and its removal is
    /// judged.
    pub fn marked(&mut self, model: &Model, before: &Value, after: &Value, sent: &Sent, at: Millis) {
        let is_terminating = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        if is_terminating(before) || !is_terminating(after) {
            return;
        }
        if !in_foreground(after) {
            // It lingers. Without the finalizer it would have gone at once, and been judged then.
            if is_held(after) {
                self.deleted(model, before, sent, at);
            }
            return;
        }
        let name = format!("{} deleted {}/{}", sent.author, text(before, "namespace"), text(before, "name"));
        let (Some((uid, _)), Some(job)) = (owner_of(before), model.jobs.get(text(before, "uid"))) else { return };
        let Some(cron) = model.crons.get(&uid).filter(|_| job.finished.is_none()) else { return };
        let versions = cron.since(sent.view.as_ref().map_or(0, |view| view.revision));
        if versions.iter().any(|version| version.is_stuck(job, sent.clock)) {
            return self.coverage.count("plan", "rescue");
        }
        if !versions.iter().any(Version::replace_waits) {
            self.violated("5", at, format!("{name}, which runs, is not stuck and is not replaced"));
        }
        self.coverage.count("plan", "replace and wait");
    }
}
