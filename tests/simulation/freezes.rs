//! A namespace that users freeze and thaw, and whose annotation they remove by hand.
//!
//! Guarantees: its CronJobs run in no other namespace, so the rest of each world stays as it is. At the end of the faults it is not
//! frozen. A replica knows of a Namespace what its watch has shown it, or, if it took a lease over, what there was when it got
//! that: it reads a Namespace again before the first create.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use cronjob_controller::api::policy::{NOT_BEFORE, REASON, SPREAD};
use http::Method;
use serde_json::{Value, json};

use crate::call::Call;
use crate::invariants::{Invariants, Sent};
use crate::model::{Cron, Model, owner_of, revision, slot_of, text};
use crate::rng::Rng;
use crate::scenario::{CronJob, Edit, MINUTE, Millis, SECOND, Scenario, Spec};
use crate::sim::Sim;

/// The namespace.
pub const FREEZING: &str = "freezing";

/// What a user does to it.
#[derive(Clone, Debug)]
pub enum Change {
    /// Creates it, frozen for so long if that is given.
    Create(Option<Millis>),
    /// Freezes it for so long.
    Freeze(Millis),
    /// Writes a bound that cannot be read.
    Spoil,
    /// `cronjob-controller thaw`.
    Thaw,
    /// Removes the annotation.
    Remove,
}

/// One version of a Namespace.
#[derive(Clone, Debug)]
pub struct Version {
    pub at: Millis,
    revision: u64,
    /// The annotation, as it was written.
    not_before: Option<String>,
}

impl Version {
    /// Whether the slot does not start.
    fn leaves_out(&self, slot: DateTime<Utc>) -> bool {
        let bound = |text: &String| text.parse::<DateTime<Utc>>();
        self.not_before.as_ref().is_some_and(|text| bound(text).map_or(true, |first| slot < first))
    }
}

/// All versions of each Namespace, by name.
pub type Namespaces = BTreeMap<String, Vec<Version>>;

impl Scenario {
    /// Gives some worlds the namespace, with CronJobs and changes.
    pub fn freeze(&mut self, rng: &mut Rng) {
        if self.restore.is_some() || rng.percent(70) {
            return;
        }
        for number in 0..rng.range(2, 5) {
            let schedule = *rng.pick(&["* * * * *", "* * * * *", "*/2 * * * *", "@every 70s"]);
            let spec = Spec::quick(rng, schedule);
            let at = rng.range(0, 5 * SECOND);
            let mut cron_job = CronJob::new(FREEZING, 900 + number, at, spec);
            if self.controller_kind.counted_from.is_some() && rng.percent(30) {
                cron_job.policies.insert(SPREAD, Some("45s".to_owned()));
            }
            self.cron_jobs.push(cron_job);
        }
        let lasts = |rng: &mut Rng| rng.range(30 * SECOND, 6 * MINUTE);
        let first = if rng.percent(40) { Some(lasts(rng)) } else { None };
        self.namespace_edits.push((0, Change::Create(first)));
        let mut at = rng.range(30 * SECOND, 2 * MINUTE);
        let end = self.active - MINUTE;
        while at < end {
            let freeze = Change::Freeze(lasts(rng));
            let change = rng.weighted(&[(50, freeze), (25, Change::Thaw), (25, Change::Remove), (6, Change::Spoil)]);
            self.namespace_edits.push((at, change));
            at += rng.range(20 * SECOND, 4 * MINUTE);
        }
        let last = rng.weighted(&[(50, Change::Thaw), (50, Change::Remove)]);
        self.namespace_edits.push((end, last));
        self.meddle_in_a_freeze(&mut Rng::fork(self.seed, "people in a freeze"));
    }

    /// People do with its CronJobs what they do with others.
    fn meddle_in_a_freeze(&mut self, rng: &mut Rng) {
        let first = self.cron_jobs.iter().position(|cron_job| cron_job.namespace == FREEZING).unwrap();
        for cron_job in first..self.cron_jobs.len() {
            if rng.percent(60) {
                continue;
            }
            for _ in 0..rng.range(1, 4) {
                let at = rng.range(20 * SECOND, self.active);
                let action = self.deed(rng, !self.cron_jobs[cron_job].policies.is_empty());
                self.edits.push(Edit { at, cron_job, action });
            }
        }
    }
}

/// Applies a change.
pub fn change(sim: &Sim, place: usize) {
    let (at, change) = &sim.scenario.namespace_edits[place];
    let now = sim.wall(sim.now());
    let text = |time: DateTime<Utc>| json!(time.to_rfc3339_opts(SecondsFormat::Secs, true));
    let after = |lasts: Millis| text(now + TimeDelta::milliseconds(i64::try_from(lasts).unwrap()));
    let (what, not_before) = match change {
        Change::Create(None) => ("namespace created", Value::Null),
        Change::Create(Some(lasts)) => ("namespace created frozen", after(*lasts)),
        Change::Freeze(lasts) => ("namespace frozen", after(*lasts)),
        Change::Spoil => ("bound of a namespace spoilt", json!("soon")),
        Change::Thaw => ("namespace thawed", text(now + TimeDelta::milliseconds(999))),
        Change::Remove => ("freeze of a namespace removed", Value::Null),
    };
    sim.state.lock().invariants.coverage.count("world", what);
    let metadata = json!({ "name": FREEZING, "annotations": { NOT_BEFORE: not_before, REASON: "in the simulation" } });
    let path = "/api/v1/namespaces";
    let patch = json!({ "metadata": { "annotations": metadata["annotations"] } });
    let create = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
    let call = if *at == 0 {
        let mut create = create;
        if create["metadata"]["annotations"][NOT_BEFORE].is_null() {
            create["metadata"]["annotations"] = json!({});
        }
        Call::world(Method::POST, path, &create)
    } else {
        Call::world(Method::PATCH, format!("{path}/{FREEZING}"), &patch)
    };
    sim.act(&call);
}

impl Model {
    /// A Namespace was written.
    pub fn namespace_written(&mut self, object: &Value, at: Millis) {
        let name = text(object, "name");
        let not_before = object["metadata"]["annotations"][NOT_BEFORE].as_str().map(str::to_owned);
        let versions = self.namespaces.entry(name.to_owned()).or_default();
        if versions.last().is_some_and(|last| last.not_before == not_before) {
            return;
        }
        versions.push(Version { at, revision: revision(object), not_before });
        for cron in self.crons.values_mut().filter(|cron| cron.namespace == name) {
            cron.stirred = at;
        }
    }

    /// Whether the newest version of the CronJob's Namespace leaves the slot out.
    pub fn is_frozen_out(&self, cron: &Cron, slot: DateTime<Utc>) -> bool {
        self.namespaces.get(&cron.namespace).and_then(|all| all.last()).is_some_and(|newest| newest.leaves_out(slot))
    }

    /// When the Namespace of the CronJob was last changed.
    pub fn namespace_edited(&self, cron: &Cron) -> Millis {
        self.namespaces.get(&cron.namespace).and_then(|all| all.last()).map_or(0, |newest| newest.at)
    }
}

impl Invariants {
    /// A replica created a Job: a version of the Namespace that it may have gone by has the slot.
    pub fn started_as_the_namespace_allows(&mut self, model: &Model, job: &Value, sent: &Sent, at: Millis) {
        let (Some((uid, _)), Some(slot)) = (owner_of(job), slot_of(job)) else { return };
        let (Some(cron), Some(view)) = (model.crons.get(&uid), &sent.view) else { return };
        let Some(all) = model.namespaces.get(&cron.namespace) else { return };
        // The first leader doubts nothing.
        let was_led = cron.versions.iter().any(|version| {
            version.last_schedule_time().is_some() && model.held_since.is_some_and(|since| version.at < since)
        });
        let leads = model.held_since.filter(|since| was_led && model.holder == sent.identity && *since <= sent.at);
        let is_known =
            |version: &&Version| version.revision <= view.namespace || leads.is_some_and(|since| version.at <= since);
        let known = all.iter().filter(is_known).count();
        let candidates = &all[known.saturating_sub(1)..];
        if all.iter().any(|version| version.not_before.is_some()) {
            let seen = if candidates.len() > 1 { "of which it had not seen all" } else { "of which it had seen all" };
            self.coverage.count("judged", &format!("start in a namespace with freezes, {seen}"));
        }
        if candidates.iter().all(|version| version.leaves_out(slot)) {
            let bounds: Vec<_> =
                candidates.iter().map(|version| version.not_before.clone().unwrap_or_default()).collect();
            let text = format!("{} created {} for {slot}, before {bounds:?}", sent.author, text(job, "name"));
            self.violated("30", at, text);
        }
    }
}
