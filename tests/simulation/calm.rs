//! What must hold once there have been no faults for a while.
//!
//! Whatever failed before, the final state is the one that a world without faults reaches. It is a function of the
//! objects on the server: for each CronJob, the specs that users wrote and all Jobs that ever existed determine one
//! right value of everything that a controller is responsible for.
//! - `active` is the unfinished Jobs made for it, and at most as many finished ones are kept as the history limits say.
//! - `lastScheduleTime` is the newest slot that has had a Job, and `lastSuccessfulTime` the newest completion.
//! - The newest due slot has had a Job, or an Event says why not.
//! - The leader's timer is set to its next slot, and not later.
//!
//! A CronJob that was released belongs to another controller. For it, the leader is responsible for the Jobs it
//! started: `lastScheduleTime` is not before the slots of those Jobs, and `active` has those that run. A later leader
//! cannot know about them.
//!
//! These rules do not determine which slots were started during the faults. A run of the same scenario without its
//! faults determines this where the faults cannot influence it. Except for Forbid, a starting deadline or a changed
//! schedule, the newest slot that was started is the same in both worlds ([`Sim::started`]).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use cronjob_controller::api::policy::PAUSE_AFTER_FAILURES;
use cronjob_controller::api::{ControllerKind, Manage, ObjectName, Uid};
use schedule::{Evaluation, missed};

use crate::faults::has_slow_admission;
use crate::model::{Author, Condition, Cron, Job, Model};
use crate::scenario::{CronJob, MINUTE, Millis, SECOND, Scenario};
use crate::sim::{Replica, Sim, State};

/// How long after the last fault the final state is reached. A silent watch is noticed after three minutes, a lease is
/// taken over within half a minute, and no backoff is longer than the fault that caused it.
pub const SETTLED_WITHIN: Millis = 5 * MINUTE;

/// How long the world is then watched for writes without a cause.
pub const QUIET: Millis = 100 * SECOND;

/// How late a slot may be handled without faults.
const LATE: Millis = 5 * SECOND;

/// The Event reasons that explain why a slot was not started.
const REASONS: [&str; 8] = [
    "JobAlreadyActive",
    "MissSchedule",
    "FailedCreate",
    "UnknownTimeZone",
    "UnparseableSchedule",
    "UnParseableCronJobSchedule",
    "InvalidSchedule",
    "TooManyMissedTimes",
];

impl Sim {
    /// All violations of the final state, by invariant.
    pub fn disorder(&self) -> Vec<(&'static str, String)> {
        let mut state = self.state.lock();
        let mut found = Vec::new();
        let mut forgiven = Vec::new();
        let (mut judged, mut waiting) = (0, 0);
        for (uid, cron) in state.model.live() {
            // An unreadable CronJob has no controller.
            if cron.newest().timing().is_none() {
                continue;
            }
            let mut wrong: Vec<(&str, String)> = Vec::new();
            if self.scenario.manage == Manage::Annotated && cron.newest().is_taken_back() {
                let own: Vec<&Job> = state.started_by_leader(uid).collect();
                let unwritten = wrong_where_taken_back(cron, &own).into_iter().map(|what| ("8", what));
                found.extend(
                    unwritten.map(|(number, what)| (number, format!("{}/{}: {what}", cron.namespace, cron.name))),
                );
                judged += own.len();
                continue;
            }
            wrong.extend(wrong_jobs(&state.model, uid, cron).into_iter().map(|what| ("8", what)));
            wrong.extend(self.unhandled_slot(&state.model, uid, cron).map(|what| ("8", what)));
            match wrong_last_schedule_time(&state.model, uid, cron) {
                Some(_) if state.is_unknowable(&self.scenario, uid, cron) => forgiven.push(uid.clone()),
                what => wrong.extend(what.map(|what| ("11", what))),
            }
            wrong.extend(wrong_last_successful_time(&state.model, uid, cron).map(|what| ("11", what)));
            // After many refusals of a status, the next attempt may come with the next slot only.
            let place = self.scenario.cron_jobs.iter().position(|known| known.name == cron.name);
            if !wrong.is_empty() && place.is_some_and(|place| state.invariants.recovery.waits(place, self.now())) {
                let before = wrong.len();
                wrong.retain(|(invariant, _)| *invariant != "11");
                waiting += before - wrong.len();
            }
            wrong.extend(self.wrong_timer(&state, cron).map(|what| ("11", what)));
            let name = format!("{}/{}", cron.namespace, cron.name);
            found.extend(wrong.into_iter().map(|(invariant, what)| (invariant, format!("{name}: {what}"))));
        }
        let leaks = state.leaks();
        found.extend(leaks.into_iter().map(|what| ("13", what)));
        forgiven.into_iter().for_each(|uid| state.invariants.forgive(uid));
        state.invariants.coverage.add("judged", "run of one taken back", judged as u64);
        state.invariants.coverage.add("late", "status that waits after refusals", waiting as u64);
        found
    }

    /// The newest slot that has had a Job, by the names of the CronJobs for which faults cannot influence it. The last
    /// moments are left out.
    pub fn started(&self) -> BTreeMap<String, Option<DateTime<Utc>>> {
        let state = self.state.lock();
        let until = self.wall(self.now() - 2 * LATE);
        let places = self.scenario.cron_jobs.iter().enumerate().filter(|(place, _)| self.scenario.is_steady(*place));
        let newest = |(_, cron_job): (usize, &CronJob)| {
            let uid = state.model.names.get(&(cron_job.namespace.to_owned(), cron_job.name.clone()))?;
            let version = state.model.crons[uid].newest();
            let is_free = version.policy() != "Forbid" && !version.has_limits();
            let is_plain = is_free && version.deadline().is_none() && !version.is_suspended();
            if !is_plain {
                return None;
            }
            let slots: Vec<_> = state.model.slots_of(uid).collect();
            // A clock that ran ahead started slots of the future; no further ones start until those are past.
            let is_of_the_future = slots.iter().any(|slot| version.due(*slot) > until);
            let newest = slots.into_iter().filter(|slot| version.due(*slot) <= until).max();
            (!is_of_the_future).then_some((cron_job.name.clone(), newest))
        };
        places.filter_map(newest).collect()
    }

    /// The newest due slot, if it has neither been started nor explained.
    pub fn unhandled_slot(&self, model: &Model, uid: &str, cron: &Cron) -> Option<String> {
        let version = cron.newest();
        let schedule = version.schedule()?;
        // Of held slots an Event tells once an hour.
        if version.is_suspended() || version.has_limits() || version.object["spec"].is_null() {
            return None;
        }
        let asked_at = self.wall(self.now() - LATE);
        let nominal = asked_at - version.offset();
        let slot =
            missed::next_schedule_time(&version.observed(asked_at)?, nominal, &Evaluation::of(&schedule)).ok()?.0?;
        if model.is_frozen_out(cron, slot) {
            return None;
        }
        // Slots of one minute share a name, and the first has the Job.
        let name = version.controller_kind().child_name(&cron.name, slot);
        if model.all_jobs_of(uid).any(|job| job.name == name) {
            return None;
        }
        let since = self.scenario.moment_of(version.due(slot));
        // The controller waits for the slots of a new schedule; slots that it would have had earlier do not count, as
        // upstream.
        if since < i64::try_from(cron.scheduled_since()).unwrap() {
            return None;
        }
        // An Event explains it, by a clock that was off by at most two minutes.
        let is_explained = REASONS
            .iter()
            .filter_map(|reason| cron.reasons.get(reason))
            .any(|at| i64::try_from(*at).unwrap() >= since - 150_000);
        (!is_explained).then(|| format!("slot {slot} is neither started nor explained"))
    }

    /// The leader's timer, if it comes after the next slot.
    fn wrong_timer(&self, state: &State, cron: &Cron) -> Option<String> {
        let version = cron.newest();
        let schedule = version.schedule()?;
        if version.is_suspended() {
            return None;
        }
        let now = self.wall(self.now());
        let slot = missed::next_requeue_time(
            &version.observed(now)?,
            now - version.offset(),
            &Evaluation::of(&schedule),
            None,
        )?;
        let next = version.due(slot);
        let controller = state.leader()?.1.controller.upgrade()?;
        let (queue, key) = (controller.queue(), ObjectName::new(cron.namespace.as_str(), cron.name.as_str()));
        let timer = queue.scheduled_for(&key).unwrap_or_default().at;
        let is_right = timer.is_some_and(|at| at <= next) || queue.is_dirty(&key) || queue.is_processing(&key);
        (!is_right).then(|| format!("its next slot is due at {next}, the leader waits for {timer:?}"))
    }
}

impl State {
    /// State that controllers keep for deleted CronJobs: there is none, once their watches have shown the deletion.
    fn leaks(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let gone: Vec<_> = self.model.crons.iter().filter(|(_, cron)| cron.deleted.is_some()).collect();
        for (number, replica) in self.replicas.iter().enumerate().filter(|(_, replica)| replica.process.is_running()) {
            {
                let Some(controller) = replica.controller.upgrade() else { continue };
                for (uid, cron) in &gone {
                    let key = ObjectName::new(cron.namespace.as_str(), cron.name.as_str());
                    let mut held = controller.retained_for(&key, &Uid::new(uid.as_str()));
                    let has_successor = self.model.names.contains_key(&(cron.namespace.clone(), cron.name.clone()));
                    if has_slow_admission() && !has_successor && controller.queue().scheduled_for(&key).is_some() {
                        held.push("a timer");
                    }
                    found.extend(held.iter().map(|map| {
                        format!("r{number}.{} keeps {map} of {key} {uid}, which is gone", replica.incarnation)
                    }));
                }
                let (retained, coverage) = (controller.retained(), &mut self.invariants.coverage);
                coverage.count("judged", "controller looked at for leaks");
                coverage.max(
                    "greatest",
                    "entries in a controller's own maps once all is settled",
                    retained.entries as u64,
                );
                coverage.max("greatest", "bytes of templates in them", retained.template_bytes as u64);
                // One that lingers is kept until it is gone.
                let lingering = self.model.jobs.values().filter(|job| job.deleting && job.deleted.is_none()).count();
                if retained.deleted_jobs > lingering {
                    let text = format!("r{number} keeps {} deleted Jobs", retained.deleted_jobs);
                    found.push(text);
                }
            }
        }
        found
    }

    /// The replica that holds the lease.
    fn leader(&self) -> Option<(usize, &Replica)> {
        let holder = &self.model.holder;
        let identity = |(number, replica): &(usize, &Replica)| format!("r{number}.{}", replica.incarnation);
        self.replicas.iter().enumerate().find(|replica| identity(replica) == *holder)
    }

    /// The Jobs of a CronJob that the current leader started, and knows.
    fn started_by_leader(&self, uid: &str) -> impl Iterator<Item = &Job> {
        let leader = self.leader().map(|(number, leader)| Author::Replica(number, leader.incarnation));
        let is_known = |job: &&Job| job.answered || job.deleted.is_none();
        self.model.all_jobs_of(uid).filter(move |job| Some(job.author) == leader).filter(is_known)
    }

    /// Whether the leader could not write the slots that the status lacks: their Jobs are deleted, and it neither created
    /// them nor saw them, or could not read their CronJob while they existed, or when they went, or its writes were refused until it could
    /// not read the CronJob any more.
    fn is_unknowable(&self, scenario: &Scenario, uid: &str, cron: &Cron) -> bool {
        let Some((number, leader)) = self.leader() else { return false };
        let leader = (number, leader.incarnation);
        let since = self.model.held_since.unwrap_or_default();
        let is_refused = |from: Millis, until: Millis| {
            scenario.faults.iter().any(|fault| fault.kind.is_refusal() && fault.at <= until && fault.until >= from)
        };
        // The first version after a Job is one that cannot be read: no status was written in between.
        let is_kept_from = |job: &Job| {
            let next = cron.versions.iter().find(|version| version.at > job.created);
            next.is_some_and(|next| next.timing().is_none() && is_refused(job.created, next.at))
        };
        let is_known = |job: &Job| {
            if is_kept_from(job) {
                return false;
            }
            let is_own = job.answered && job.author == Author::Replica(leader.0, leader.1);
            let Some(deleted) = job.deleted else { return true };
            (is_own || job.seen_by.iter().any(|sight| sight.by == leader))
                && cron.was_readable(since.max(job.created), deleted)
                && cron.was_readable(deleted, deleted)
        };
        let last = cron.newest().last_schedule_time();
        let is_missing = |job: &&Job| job.slot > last && job.backfill.is_none();
        let mut missing = self.model.all_jobs_of(uid).filter(is_missing).peekable();
        missing.peek().is_some() && !missing.any(is_known)
    }
}

/// The history limits' fields, for successful and for failed Jobs.
pub fn limits_of(controller_kind: ControllerKind) -> [&'static str; 2] {
    match controller_kind {
        ControllerKind::ApiExample => ["successfulJobHistoryLimit", "failedJobHistoryLimit"],
        _ => ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
    }
}

fn wrong_jobs(model: &Model, uid: &str, cron: &Cron) -> Vec<String> {
    let mut found = Vec::new();
    let version = cron.newest();
    let mut active: Vec<&str> = version.active();
    // One that is being deleted is in it or not, by how it was deleted and when.
    let is_leaving = |uid: &&str| model.jobs.get(*uid).is_some_and(|job| job.is_unfinished() && job.deleting);
    active.retain(|uid| !is_leaving(uid));
    active.sort_unstable();
    let mut running: Vec<&str> = model
        .jobs_of(uid)
        .filter(|job| job.is_active(version.controller_kind()))
        .filter(|job| job.is_unfinished() && !job.deleting)
        .map(|job| job.uid.as_str())
        .collect();
    running.sort_unstable();
    if active != running {
        found.push(format!("active is {active:?}, unfinished are {running:?}"));
    }
    let fields = limits_of(version.controller_kind());
    for (field, condition) in fields.into_iter().zip([Condition::Complete, Condition::Failed]) {
        let Some(limit) = version.spec()[field].as_u64() else { continue };
        // While a backfill is under way its Jobs are kept, and where failures pause they are counted apart.
        let is_apart = version.backfill_under_way().is_some()
            || condition == Condition::Failed && version.limits().contains_key(PAUSE_AFTER_FAILURES);
        let is_kept = |job: &&Job| job.finished == Some(condition) && !job.deleting;
        let (of_backfill, own): (Vec<_>, Vec<_>) =
            model.jobs_of(uid).filter(is_kept).partition(|job| job.backfill.is_some());
        let kept = own.len() + if is_apart { 0 } else { of_backfill.len() };
        if kept as u64 > limit {
            found.push(format!("{kept} Jobs are kept, {field} is {limit}"));
        }
    }
    found
}

fn wrong_last_schedule_time(model: &Model, uid: &str, cron: &Cron) -> Option<String> {
    let newest = model.slots_of(uid).max();
    let last = cron.newest().last_schedule_time();
    // Slots of one minute share a name, and the Job of the first is the Job of all.
    let number = |slot: Option<DateTime<Utc>>| slot.map(|slot| cron.newest().controller_kind().number_of(slot));
    (last < newest || number(last) != number(newest))
        .then(|| format!("lastScheduleTime is {last:?}, the newest slot that had a Job is {newest:?}"))
}

fn wrong_where_taken_back(cron: &Cron, own: &[&Job]) -> Vec<String> {
    let (last, active) = (cron.newest().last_schedule_time(), cron.newest().active());
    let unwritten = own.iter().filter(|job| job.slot > last);
    let inactive = own.iter().filter(|job| job.is_unfinished() && !job.deleting && !active.contains(&&*job.uid));
    let unwritten = unwritten.map(|job| format!("lastScheduleTime is {last:?}, and the leader started {}", job.name));
    unwritten.chain(inactive.map(|job| format!("active lacks {}, which the leader started", job.name))).collect()
}

/// A Job that is gone may have been seen to succeed, and one that is there must have been.
fn wrong_last_successful_time(model: &Model, uid: &str, cron: &Cron) -> Option<String> {
    let there = model.jobs_of(uid).filter_map(|job| job.succeeded).max();
    let ever = model.all_jobs_of(uid).filter_map(|job| job.succeeded);
    let last = cron.newest().last_successful_time();
    if !cron.newest().controller_kind().has_last_successful_time {
        return last.map(|time| format!("lastSuccessfulTime is {time}, and there is no such field"));
    }
    let is_right = last >= there && (last.is_none() || ever.into_iter().any(|time| last == Some(time)));
    (!is_right)
        .then(|| format!("lastSuccessfulTime is {last:?}, the newest completion of a Job that is there is {there:?}"))
}
