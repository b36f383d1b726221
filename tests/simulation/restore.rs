//! An operator restores etcd from a backup, as docs/operations.md says.
//!
//! Every client is stopped, the objects on the server are again those of the backup, and the revision goes on above all that any
//! client has seen, as after `etcdutl snapshot restore --bump-revision --mark-compacted`: each watch begins anew. In some of these
//! worlds the operator then says with `not-before` that no slot before now counts.
//!
//! With the objects the [`Model`] goes back to the backup. So all judges judge the history before the restore, and then the one
//! that leads to the backup and goes on after the restore. What lies between is known here alone.
//!
//! Guarantee (29): of the slots that started after the backup and came due before the restore, each CronJob starts one again at most,
//! and that is the newest. With `backlog` it starts so many, which are the newest. With `not-before` it starts none. That none is lost
//! from then on is judged as after an outage of the server (24), and in the calm.
//!
//! Excused and counted: a slot that came due after the restore and was started before, by a clock that was ahead, or by the in-tree
//! controller or before an edit without the spread that delays it; one that a clock
//! behind the restore shows to be the newest; and with `not-before`, one of a CronJob whose readers did not see it meanwhile, or from
//! which a user removed it together with the record of decided slots.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SubsecRound as _, Utc};
use cronjob_controller::api::policy::NOT_BEFORE;
use cronjob_controller::cli::migrate::skip_missed::{Bound, bound};
use http::Method;
use serde_json::Value;

use crate::agenda::Act;
use crate::call::Call;
use crate::disguise::READS_AS;
use crate::faults::{self, Fault, FaultKind as F};
use crate::invariants::{Invariants, Sent};
use crate::job_world;
use crate::model::{Author, Cron, Model, owner_of, slot_of, text};
use crate::policies::{Annotations, counted_from};
use crate::rng::Rng;
use crate::scenario::{Action, Edit, MINUTE, Millis, SECOND, Scenario};
use crate::sim::{Sim, State};

/// How much the revision grows, as docs/operations.md says.
const BUMP: u64 = 1_000_000_000;

/// How long before the restore nothing else fails, and how long after it.
const AROUND: (Millis, Millis) = (60 * SECOND, 80 * SECOND);

/// How long after the first replica may start slots have started: the restored lease is held by a replica that is gone, and for
/// another 39 s its creates may arrive.
const BACK: Millis = 75 * SECOND;

/// A backup, and the restore from it.
#[derive(Clone, Copy, Debug)]
pub struct Restore {
    pub backup: Millis,
    pub at: Millis,
    /// When they start again.
    pub until: Millis,
    /// Whether the operator says that no slot before the restore counts.
    pub is_guarded: bool,
}

/// A backup.
pub struct Backup {
    objects: apiserver::Changes,
    model: Model,
}

/// What the cluster has forgotten.
#[derive(Debug, Default)]
pub struct Forgotten {
    /// When etcd was restored.
    restored: DateTime<Utc>,
    /// Since when no slot from before the restore counts.
    guarded: Option<Millis>,
    /// The slots that a controller started since the backup and which were due before the restore, by the UID of the CronJob.
    slots: BTreeMap<String, BTreeSet<DateTime<Utc>>>,
    /// Those that were still to come.
    early: BTreeSet<(String, DateTime<Utc>)>,
    /// Those of `slots` that were started again.
    repeated: BTreeMap<String, BTreeSet<DateTime<Utc>>>,
}

impl Scenario {
    /// In few worlds, etcd is restored.
    pub fn restore(&mut self, rng: &mut Rng) {
        let is_drawn = rng.percent(8) || faults::is_everywhere("RESTORE");
        // What an outage leaves behind is judged alone.
        if !is_drawn || self.outage().is_some() {
            return;
        }
        let stopped = rng.range(3 * MINUTE, self.active - 4 * MINUTE);
        let at = stopped + rng.range(2, 40) * SECOND;
        let until = at + rng.range(SECOND, 70 * SECOND);
        let is_kept = |fault: &Fault| fault.until + AROUND.0 < stopped || until + AROUND.1 < fault.at;
        if self.loses_takeover(is_kept) {
            return;
        }
        let backup = stopped.saturating_sub(rng.range(5 * SECOND, 8 * MINUTE)).max(20 * SECOND);
        let is_guarded = rng.percent(50) && self.controller_kind.counted_from.is_some();
        self.restore = Some(Restore { backup, at, until, is_guarded });
        for cron_job in 0..self.cron_jobs.len() {
            // The page allows to remove it at any time.
            if is_guarded && rng.percent(20) {
                let (later, change) = (until + rng.range(0, 3 * MINUTE), Annotations::from([(NOT_BEFORE, None)]));
                self.edits.push(Edit { at: later, cron_job, action: Action::Timing(change) });
            }
        }
        self.faults.retain(is_kept);
        let is_orderly = rng.range(0, 2);
        self.on_replicas(rng, 800, F::Outage, (stopped, until), is_orderly);
    }
}

impl Restore {
    /// When to judge that no slot was lost.
    pub fn judged(&self) -> Millis {
        self.until + BACK
    }
}

impl Sim {
    /// An operator saves etcd.
    pub fn back_up(&self) {
        let at = self.now();
        let mut state = self.state.lock();
        self.take_in(&mut state, None, at);
        state.journal.note(at, format_args!("    *** backup of etcd"));
        state.backup = Some(Backup { objects: self.server.state(), model: state.model.clone() });
    }

    /// An operator restores etcd.
    pub fn restore_etcd(&self, restore: Restore) {
        let at = self.now();
        for number in 0..self.scenario.replicas {
            // One whose orderly end takes longer.
            if self.state.lock().replicas[number].task.is_some() {
                self.crash_now(number);
            }
        }
        let backup = {
            let mut state = self.state.lock();
            self.take_in(&mut state, None, at);
            state.backup.take()
        };
        let Some(Backup { mut objects, model }) = backup else { return };
        objects.revision = self.server.revision() + BUMP;
        let revision = objects.revision;
        self.server.load(objects).expect("the server has made it");
        let mut state = self.state.lock();
        state.journal.note(at, format_args!("    *** etcd restored"));
        state.invariants.coverage.count("world", "etcd restored from a backup");
        let forgotten = Forgotten::of(&state.model, &model, self.wall(at), restore.is_guarded.then_some(at));
        let number = forgotten.slots.values().map(BTreeSet::len).sum::<usize>();
        state.invariants.coverage.add("world", "slot that a restore forgot", number as u64);
        state.invariants.forgotten = forgotten;
        state.model = model;
        state.goes_on_from(at, revision);
        self.take_in(&mut state, None, at);
        state.resume_jobs(self, at);
        state.resume_backfills(restore.until);
        drop(state);
        if restore.is_guarded {
            self.say_that_no_slot_before_counts(at);
        }
    }

    /// Step 4 of the page, as `migrate skip-missed` decides it. What the command names and leaves, the operator sets by hand.
    fn say_that_no_slot_before_counts(&self, at: Millis) {
        let now = self.wall(at).trunc_subsecs(0);
        let patch = |cron: &Cron| {
            let annotations = &cron.newest().object["metadata"]["annotations"];
            // A slot that its spread delays until after the restore starts then.
            let to = now - cron.newest().offset();
            bound(|name| annotations[name].as_str(), to).unwrap_or(Bound::Set { to, leaves_none: false }).patch()
        };
        let patches: Vec<(String, Value)> = {
            let mut state = self.state.lock();
            state.invariants.coverage.count("world", "not-before set after a restore");
            let parent = self.scenario.controller_kind.parent;
            let path = |cron: &Cron| format!("{}/{}", parent.path(Some(&cron.namespace)), cron.name);
            state.model.live().filter_map(|(_, cron)| Some((path(cron), patch(cron)?))).collect()
        };
        for (path, patch) in patches {
            self.act(&Call::world(Method::PATCH, path, &patch));
        }
    }
}

impl State {
    /// What was on its way is lost, and the server's history begins with the restore.
    fn goes_on_from(&mut self, at: Millis, revision: u64) {
        self.restored = Some(at);
        self.seen = revision;
        self.revisions.clear();
        self.invariants.tried.clear();
        self.invariants.replaced.clear();
    }

    /// Whether a request of that time was lost with the server that had received it.
    pub fn is_lost(&self, sent: &Sent) -> bool {
        self.restored.is_some_and(|restored| sent.at < restored)
    }

    /// The Job controller and the kubelets find the restored Jobs, and know no others.
    fn resume_jobs(&mut self, sim: &Sim, at: Millis) {
        self.agenda.retain(|_, act| !matches!(act, Act::JobBegins(_) | Act::Job(..)));
        let jobs = self.model.jobs.values().filter(|job| job.deleted.is_none());
        let jobs: Vec<(String, bool)> = jobs.map(|job| (job.uid.clone(), job.deleting)).collect();
        for (uid, is_deleting) in jobs {
            if is_deleting {
                let stays = job_world::lingering(sim.scenario.seed, &uid);
                self.plan(at + stays, Act::Job(uid.clone(), job_world::Step::Release));
            }
            self.plan(at, Act::JobBegins(uid));
        }
    }

    /// Each backfill ends, and its operator calls it again.
    fn resume_backfills(&mut self, until: Millis) {
        let edits: Vec<usize> = self.backfills.keys().copied().collect();
        for edit in edits {
            let processes = self.backfills.get_mut(&edit).and_then(|processes| processes.task.take());
            if let Some(task) = processes.filter(|task| !task.is_finished()) {
                task.abort();
                self.plan(until, Act::Backfill(edit));
            }
        }
    }
}

impl Forgotten {
    /// What happened in `lost` and not in `kept`.
    fn of(lost: &Model, kept: &Model, restored: DateTime<Utc>, guarded: Option<Millis>) -> Self {
        let mut forgotten = Self { restored, guarded, ..Self::default() };
        let jobs = lost.jobs.values().filter(|job| job.is_made_by_controller() && !kept.jobs.contains_key(&job.uid));
        for job in jobs {
            let (Some((uid, _)), Some(slot)) = (&job.owner, job.slot) else { continue };
            // A spread may delay it.
            let due = kept.crons.get(uid).map_or(slot, |cron| cron.newest().due(slot));
            if due > restored {
                forgotten.early.insert((uid.clone(), slot));
            } else {
                forgotten.slots.entry(uid.clone()).or_default().insert(slot);
            }
        }
        forgotten
    }
}

impl Cron {
    /// Why `not-before`, as it was set at a time, may not be known to who has led since `led`.
    fn has_lost_its_bound(&self, since: Millis, led: Millis) -> Option<&'static str> {
        let versions = self.versions.iter().filter(|version| version.at >= since);
        let mut versions = versions.map(|version| {
            let annotations = &version.object["metadata"]["annotations"];
            let is_removed = annotations[NOT_BEFORE].is_null();
            let is_recorded = counted_from(&version.object).is_some();
            (!annotations[READS_AS].is_null(), is_removed && !is_recorded, is_removed && version.at < led)
        });
        versions.find_map(|(is_hidden, is_forgotten, is_unseen)| {
            let unseen = is_unseen.then_some("not-before removed before a controller led");
            let removed = is_forgotten.then_some("not-before removed with the record").or(unseen);
            if is_hidden { Some("clients read another CronJob") } else { removed }
        })
    }
}

impl Invariants {
    /// A controller created a Job: whether it had started the slot before etcd was restored.
    pub fn starts_again(&mut self, model: &Model, job: &Value, sent: &Sent, at: Millis) {
        let (Some((uid, _)), Some(slot)) = (owner_of(job), slot_of(job)) else { return };
        let forgotten = &mut self.forgotten;
        let mut excuse = |why: &str| self.coverage.count("excused", &format!("started again after a restore: {why}"));
        if forgotten.early.contains(&(uid.clone(), slot)) {
            return excuse("a slot to come, which a clock ahead had started, or a controller without its spread");
        }
        let Some(known) = forgotten.slots.get(&uid).filter(|slots| slots.contains(&slot)) else { return };
        let Some(cron) = model.crons.get(&uid) else { return };
        let version = cron.newest();
        let mut most = version.backlog().unwrap_or(1).max(1);
        // The in-tree controller reads no annotation.
        if let Some(since) = forgotten.guarded.filter(|_| sent.author != Author::World) {
            match cron.has_lost_its_bound(since, model.held_since.unwrap_or_default()) {
                Some(why) => excuse(why),
                None => most = 0,
            }
        }
        if most > 0 && sent.clock < forgotten.restored {
            return excuse("by a clock behind");
        }
        self.coverage.count("judged", "slot that started again after a restore");
        let repeated = forgotten.repeated.entry(uid).or_default();
        repeated.insert(slot);
        let (number, newer) = (repeated.len(), known.range(slot..).skip(1).filter(|newer| version.has_slot(**newer)));
        let newer = newer.count();
        if number > most || newer >= most {
            let name = format!("{}/{}", text(job, "namespace"), text(job, "name"));
            let text = format!(
                "{} created {name} for {slot} again after etcd was restored: one of {number}, with {newer} newer ones, and {most} may",
                sent.author
            );
            self.violated("29", at, text);
        }
    }
}
