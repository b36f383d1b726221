//! The slots that wait where a policy may hold them, and what holds the next one.
//!
//! Guarantees: the answers follow from the objects on the server and the documents of the policies, and share no code
//! with the controller but the search for the next time of a schedule. What is unclear from the objects alone counts as
//! held: a slot with `backlog: 0` a minute after it was due, and one whose name another Job has or had.
//!
//! In the final state, a slot that nothing holds starts within a few seconds, whatever held it before: a limit of Jobs
//! at a time, a Job to be replaced, failures, or a stuck Job. [`Watcher`] judges this.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::Manage;

use crate::freezes::FREEZING;
use crate::model::{Condition, Cron, Job, Model, Version};
use crate::scenario::{Millis, SECOND, Scenario};
use crate::sim::Sim;

/// How late a slot with `backlog: 0` may start.
pub const IN_TIME: TimeDelta = TimeDelta::seconds(60);

/// How many deleted stuck Jobs may linger before no other one is deleted.
pub const LINGERING: usize = 3;

/// How soon a slot starts once nothing holds it: as soon as any write follows its cause in the final state.
const STARTS_WITHIN: TimeDelta = TimeDelta::seconds(7);

/// How long before the end of its deadline nothing has to hold a slot so that it starts.
const STARTS_BEFORE: TimeDelta = TimeDelta::milliseconds(1500);

/// How often the world is looked at.
pub const STEP: Millis = 3 * SECOND;

/// The most slots that are looked at. No world is long enough for more, except with slots of every second.
const MOST: usize = 5000;

/// What holds a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// As many failures as pause the CronJob.
    Failures,
    /// As many Jobs as may run at a time.
    Jobs,
    /// A Job that is to be replaced and is not gone.
    Replaced,
}

impl Hold {
    fn name(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Jobs => "Jobs at a time",
            Self::Replaced => "a Job to be replaced",
        }
    }
}

/// The slot that a CronJob has to start next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub slot: DateTime<Utc>,
    pub hold: Option<Hold>,
    /// Since when nothing has changed that decides about it.
    pub since: DateTime<Utc>,
}

impl Version {
    /// Its slots after `last` that wait at `now`, the oldest first: the newest ones, as many as the backlog keeps, whose
    /// starting deadline has not passed.
    pub fn waiting(&self, last: DateTime<Utc>, now: DateTime<Utc>) -> VecDeque<DateTime<Utc>> {
        let most = self.backlog().unwrap_or(1).max(1);
        let mut newest = VecDeque::new();
        let Some(schedule) = self.schedule() else { return newest };
        let offset = self.offset();
        let slots = std::iter::successors(schedule.next_after(last), |slot| schedule.next_after(*slot));
        for slot in slots.take_while(|slot| *slot + offset <= now).take(MOST) {
            if newest.len() == most {
                newest.pop_front();
            }
            newest.push_back(slot);
        }
        let deadline = self.deadline().map(TimeDelta::seconds);
        newest.retain(|slot| deadline.is_none_or(|deadline| *slot + offset + deadline >= now));
        newest
    }

    /// What holds its slots at `now`, beside these Jobs, and when the last of them became stuck.
    fn hold(&self, jobs: &[&Job], now: DateTime<Utc>) -> (Option<Hold>, Option<DateTime<Utc>>) {
        if self.is_paused(jobs) {
            return (Some(Hold::Failures), None);
        }
        // A Job to be replaced that is not being deleted is no reason to wait: it is for the controller to delete.
        if self.replace_waits() {
            let is_leaving = |job: &&Job| job.deleting && job.backfill.is_none();
            return (jobs.iter().any(is_leaving).then_some(Hold::Replaced), None);
        }
        let limit = match self.max_concurrent() {
            None if self.policy() != "Forbid" => return (None, None),
            limit => limit.unwrap_or(1),
        };
        // Forbid counts the active Jobs. For the tutorial's kind these are all.
        let counts = |job: &&&Job| self.max_concurrent().is_some() || job.is_active(self.controller_kind());
        let unfinished: Vec<&Job> = jobs.iter().filter(counts).copied().filter(|job| job.is_unfinished()).collect();
        let is_stuck = |job: &&&Job| self.is_stuck(job, now);
        let can_rescue = unfinished.iter().filter(is_stuck).filter(|job| job.deleting).count() < LINGERING;
        let freed = unfinished.iter().filter(|_| can_rescue).filter(is_stuck);
        let freed_at = freed.clone().filter_map(|job| Some(job.started? + self.rescues_after()?)).max();
        let holds = unfinished.len() - freed.count() >= limit;
        (holds.then_some(Hold::Jobs), freed_at)
    }

    /// Whether as many Jobs as the policy allows failed since the last success.
    fn is_paused(&self, jobs: &[&Job]) -> bool {
        let Some(limit) = self.pauses_after() else { return false };
        let success = jobs.iter().filter_map(|job| job.succeeded).max().max(self.last_successful_time());
        let is_failure =
            |job: &&&Job| job.finished == Some(Condition::Failed) && !job.deleting && job.backfill.is_none();
        let failed = jobs.iter().filter(is_failure);
        failed.filter(|job| job.started.or(job.creation) >= success).count() >= limit
    }
}

/// The time up to which the slots of a CronJob are decided at `now`, by its status and its record.
pub fn decided_by_status(version: &Version, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let observed = version.observed(now)?;
    Some(observed.last_schedule.unwrap_or(observed.creation))
}

/// Whether a Job has or had the name that the Job of this slot would have.
pub fn is_name_used(model: &Model, cron: &Cron, slot: DateTime<Utc>) -> bool {
    let name = cron.newest().controller_kind().child_name(&cron.name, slot);
    model.jobs.values().any(|job| job.name == name && job.namespace == cron.namespace)
}

/// The slot that a CronJob has to start next at `now`, if it has policies that hold slots and one is due.
pub fn next(model: &Model, uid: &str, cron: &Cron, scenario: &Scenario, now: DateTime<Utc>) -> Option<Next> {
    let version = cron.newest();
    let has_spec = !version.spec().is_null();
    if !version.has_limits() || version.is_suspended() || !has_spec || has_moving_slots(version) {
        return None;
    }
    let started = model.slots_of(uid).max();
    let waiting = version.waiting(decided_by_status(version, now).max(started)?, now);
    let mut open = waiting.into_iter().filter(|slot| !is_name_used(model, cron, *slot));
    // The controller waits for the slots of a new schedule.
    let slot = open.next().filter(|slot| version.due(*slot) >= scenario.wall(cron.scheduled_since()))?;
    if version.backlog() == Some(0) && now - version.due(slot) > IN_TIME {
        return None;
    }
    let jobs: Vec<&Job> = model.jobs_of(uid).collect();
    let (hold, freed_at) = version.hold(&jobs, now);
    let touched = scenario.wall(cron.stirred.max(cron.edited()));
    let since = version.due(slot).max(touched).max(freed_at.unwrap_or(touched));
    Some(Next { slot, hold, since })
}

/// With a starting deadline, the slots of an `@every` are counted from the deadline's beginning.
fn has_moving_slots(version: &Version) -> bool {
    version.deadline().is_some() && version.spec()["schedule"].as_str().is_some_and(|text| text.contains("@every"))
}

/// Judges the final state every few seconds.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The slots that were held when last looked at, by the UID of their CronJobs.
    held: BTreeMap<String, (DateTime<Utc>, Hold)>,
    /// The last slot of each CronJob that was found to be late.
    late: BTreeMap<String, DateTime<Utc>>,
    /// The slots that nothing held when last looked at, and the end of their starting deadline.
    open: BTreeMap<String, (Next, DateTime<Utc>)>,
}

impl Watcher {
    /// Looks at all CronJobs once.
    pub fn look(&mut self, sim: &Sim) {
        let at = sim.now();
        let now = sim.wall(at);
        let mut state = sim.state.lock();
        let state = &mut *state;
        let (model, invariants) = (&state.model, &mut state.invariants);
        for (uid, cron) in model.live() {
            let is_released = sim.scenario.manage == Manage::Annotated && cron.newest().is_taken_back();
            if cron.newest().timing().is_none() || is_released || cron.namespace == FREEZING {
                continue;
            }
            if let Some((slot, hold)) = self.held.get(uid)
                && model.fires_of(uid, *slot).next().is_some()
            {
                invariants.coverage.count("judged", &format!("slot that started after {} held it", hold.name()));
                self.held.remove(uid);
            }
            let next = next(model, uid, cron, &sim.scenario, now);
            if let Some((open, end)) = self.open.remove(uid)
                && next.is_none_or(|next| next.slot != open.slot)
                && end < now
                && is_let_go(model, uid, cron, sim, open)
            {
                let (name, slot, since) = (format!("{}/{}", cron.namespace, cron.name), open.slot, open.since);
                let text =
                    format!("{name}: {slot} passed its deadline at {end}, and nothing has held it since {since}");
                invariants.violated("21", at, text);
            }
            let Some(next) = next else { continue };
            let deadline = cron.newest().deadline().map(TimeDelta::seconds);
            let end = deadline.map(|deadline| cron.newest().due(next.slot) + deadline);
            if let Some(end) = end.filter(|end| next.hold.is_none() && *end - next.since >= STARTS_BEFORE) {
                invariants.coverage.count("judged", "slot under a policy with a deadline");
                self.open.insert(uid.clone(), (next, end));
            }
            if let Some(hold) = next.hold {
                self.held.insert(uid.clone(), (next.slot, hold));
            } else if now - next.since > STARTS_WITHIN && self.late.insert(uid.clone(), next.slot) != Some(next.slot) {
                let (name, slot, since) = (format!("{}/{}", cron.namespace, cron.name), next.slot, next.since);
                invariants.violated("21", at, format!("{name}: {slot} waits, and nothing has held it since {since}"));
            }
        }
    }
}

/// Whether a slot that nothing held was let go without a Job, and no event since is a reason for that.
fn is_let_go(model: &Model, uid: &str, cron: &Cron, sim: &Sim, open: Next) -> bool {
    let is_touched = sim.wall(cron.stirred.max(cron.edited())) > open.since;
    // The controller deleted the Job that it replaces, and the deadline passed before that was gone.
    let is_replacing = cron.newest().replace_waits() && model.jobs_of(uid).any(|job| job.deleting);
    !is_touched
        && !is_replacing
        && model.fires_of(uid, open.slot).next().is_none()
        && !is_name_used(model, cron, open.slot)
}
