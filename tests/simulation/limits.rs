//! The policies of a world's CronJobs that choose no slots, and what they allow.
//!
//! Values are read here once more, independently of the controller's code. An author is judged by the versions of the
//! CronJob that it may have used: what one of them allows is allowed.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::policy::{
    AFTER_CHANGE, BACKLOG, LIMITS, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, REPLACE_WAITS, STUCK_AFTER,
};
use serde_json::{Value, json};

use crate::disguise::disguised;
use crate::invariants::{Invariants, Sent, is_seen_by};
use crate::model::{Condition, Job, Model, Version, owner_of, slot_of, text};
use crate::policies::Annotations;
use crate::rng::Rng;
use crate::scenario::{MINUTE, Millis};

/// By when every watch has shown a change: a silent one is noticed after three minutes.
const SHOWN_WITHIN: Millis = 4 * MINUTE;

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
        REPLACE_WAITS => &["true"],
        AFTER_CHANGE => &["wait", "wait", "fire"],
        STUCK_AFTER => &["40s", "40s, delete", "90s, delete", "3m, delete"],
        _ => &["1", "1", "2"],
    };
    (*rng.pick(values)).to_owned()
}

impl Version {
    fn limits(&self) -> BTreeMap<&'static str, String> {
        let shown = disguised(&self.object);
        let value = |name: &'static str| Some((name, shown["metadata"]["annotations"][name].as_str()?.to_owned()));
        LIMITS.into_iter().filter_map(value).collect()
    }

    /// Whether something besides its slots and its concurrency policy decides when a Job starts.
    pub fn has_limits(&self) -> bool {
        self.limits().keys().any(|name| *name != AFTER_CHANGE)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.limits().get(name)?.parse().ok()
    }

    pub fn max_concurrent(&self) -> Option<usize> {
        self.number(MAX_CONCURRENT)
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
        self.rescues_after().zip(job.started).is_some_and(|(age, start)| start + age <= now)
    }

    pub fn replace_waits(&self) -> bool {
        self.policy() == "Replace" && self.limits().contains_key(REPLACE_WAITS)
    }
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
        let versions = cron.since(view.revision);
        let name = format!("{} created {}/{} for {slot}", sent.author, text(job, "namespace"), text(job, "name"));
        if let Some(decided) = versions[0].decided_until(sent.clock).filter(|decided| *decided >= slot) {
            self.violated("15", at, format!("{name}, which was decided until {decided}"));
        }
        for policy in versions.last().map(Version::limits).unwrap_or_default().keys() {
            self.coverage.count("limit", policy);
        }
        let others: Vec<&Job> = model.jobs_of(&uid).filter(|other| other.uid != text(job, "uid")).collect();
        let is_known = |other: &&Job| other.is_made_by_controller() || is_seen_by(other, sent.author, sent.term);
        let wrong = [
            Self::too_many(versions, &others, sent, is_known),
            Self::beside_a_replaced_one(versions, &others),
            Self::while_paused(versions, &others, cron.newest().last_successful_time(), at),
            Self::out_of_order(model, &uid, versions, job, slot, sent),
        ];
        for (invariant, what) in wrong.into_iter().flatten() {
            if others.iter().any(|other| self.is_excused_beside(model, other)) {
                continue;
            }
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

    /// With `replace-waits`, the Jobs of earlier slots are gone.
    fn beside_a_replaced_one(versions: &[Version], others: &[&Job]) -> Option<(&'static str, String)> {
        let is_there = |job: &&&Job| job.is_made_by_controller() && (job.finished.is_none() || job.deleting);
        let other = others.iter().find(is_there).filter(|_| versions.iter().all(Version::replace_waits))?;
        Some(("17", format!("while {} is not gone, though it waits for that", other.name)))
    }

    /// After as many failures in a row, nothing starts. A failure counts when every watch has shown it.
    fn while_paused(
        versions: &[Version],
        others: &[&Job],
        succeeded: Option<DateTime<Utc>>,
        at: Millis,
    ) -> Option<(&'static str, String)> {
        let limits: Option<Vec<usize>> = versions.iter().map(|version| version.number(PAUSE_AFTER_FAILURES)).collect();
        let most = limits?.into_iter().max()?;
        let has_success = succeeded.is_some() || others.iter().any(|job| job.succeeded.is_some());
        let is_shown = |job: &&&Job| job.ended.is_some_and(|ended| ended + SHOWN_WITHIN < at);
        let failed = others.iter().filter(|job| job.finished == Some(Condition::Failed) && !job.deleting);
        let number = failed.filter(is_shown).count();
        (number >= most && !has_success).then(|| ("18", format!("after {number} failures without a success")))
    }

    /// With `backlog`, slots start in order.
    fn out_of_order(
        model: &Model,
        uid: &str,
        versions: &[Version],
        job: &Value,
        slot: DateTime<Utc>,
        sent: &Sent,
    ) -> Option<(&'static str, String)> {
        if !versions.iter().all(|version| version.limits().contains_key(BACKLOG)) {
            return None;
        }
        let is_own = |other: &&Job| (other.author, other.term) == (sent.author, sent.term) && other.answered;
        let others = model.all_jobs_of(uid).filter(|other| other.uid != text(job, "uid")).filter(is_own);
        let newer = others.filter_map(|other| other.slot).find(|other| *other > slot)?;
        Some(("19", format!("after the one for {newer}, though slots wait in order")))
    }

    /// A replica's deletion in the foreground left a Job terminating. A Pod terminates after any deletion, and its removal is
    /// judged.
    pub fn marked(&mut self, model: &Model, before: &Value, after: &Value, sent: &Sent, at: Millis) {
        let is_terminating = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        if is_terminating(before) || !is_terminating(after) || !in_foreground(after) {
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
