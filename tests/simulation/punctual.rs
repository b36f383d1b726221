//! In the calm, each slot that nothing holds starts within a few seconds, and before its starting deadline.
//!
//! Guarantee: of each CronJob, every slot between its last edit and the end is judged, whether or not an Event explains what
//! became of it. A world without faults is calm from its first election on.
//!
//! The slots of an `@every` count from the last one, else from the creation, or from where the starting deadline begins if that is
//! later. So where the deadline is not shorter than the interval, one comes due within an interval after the last, whatever moved
//! them before, and is judged like any other slot. A shorter deadline puts each of them off for ever, as upstream.
//!
//! Not judged: CronJobs with policies that hold slots ([`waiting`](crate::waiting) judges those), and each `@every` with policies that
//! leave slots out.

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::Manage;
use cronjob_controller::api::policy::SPREAD;

use crate::model::{Cron, Job, Model, Version, text};
use crate::scenario::{Millis, SECOND, Scenario};
use crate::sim::Sim;
use crate::waiting::is_name_used;

/// How late a slot may start.
const STARTS_WITHIN: TimeDelta = TimeDelta::seconds(7);

/// How soon after an edit each controller has seen it.
const SEEN_WITHIN: Millis = 5 * SECOND;

/// What is counted of each `@every`.
pub const EVERY: &str = "slot of an @every with a deadline in the calm";

/// When the first leader works.
const ELECTED: Millis = 30 * SECOND;

impl Scenario {
    /// Whether nothing fails, and all clocks are right.
    fn has_no_faults(&self) -> bool {
        self.faults.is_empty() && self.skews.iter().all(|skew| *skew == 0)
    }
}

/// The slots that did not start in time, though the world was calm since `calm_since`.
pub fn late(sim: &Sim, calm_since: Millis) -> Vec<String> {
    let scenario = &sim.scenario;
    let awake = scenario.standstill.map_or(0, |still| still.at);
    let calm_since = if scenario.has_no_faults() { awake + ELECTED } else { calm_since };
    let mut state = sim.state.lock();
    let mut found = Vec::new();
    let (mut judged, mut every, mut excused) = (0, 0, Vec::new());
    for (uid, cron) in state.model.live() {
        let version = cron.newest();
        let is_released = scenario.manage == Manage::Annotated && version.is_taken_back();
        let is_every = version.is_every();
        if is_released || version.is_suspended() || version.has_limits() {
            continue;
        }
        let edited = cron.edited().max(state.model.namespace_edited(cron));
        let begin = calm_since.max(edited + SEEN_WITHIN);
        if is_every {
            let (number, stalled) = stalls(&state.model, (uid, cron), begin, sim);
            every += number;
            found.extend(stalled.map(|what| format!("{}/{}: {what}", cron.namespace, cron.name)));
            continue;
        }
        let begin = sim.wall(begin);
        // A slot from before is decided, although its spread delays it.
        let is_later = |slot: &DateTime<Utc>| *slot > sim.wall(edited) && !state.model.is_frozen_out(cron, *slot);
        for slot in slots(version, begin, sim.wall(sim.now())).into_iter().filter(is_later) {
            judged += 1;
            if let Some(what) = wrong(&state.model, (uid, cron), slot, sim, &mut excused) {
                found.push(format!("{}/{}: {slot} {what}", cron.namespace, cron.name));
            }
        }
    }
    let coverage = &mut state.invariants.coverage;
    coverage.add("judged", "slot in the calm", judged);
    coverage.add("judged", EVERY, every);
    excused.into_iter().for_each(|why| coverage.count("excused", why));
    found
}

/// The slots that come due after `begin` and can no longer start in time at `end`.
fn slots(version: &Version, begin: DateTime<Utc>, end: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let (Some(schedule), offset) = (version.schedule(), version.offset()) else { return Vec::new() };
    let all = std::iter::successors(schedule.next_after(begin - offset), |slot| schedule.next_after(*slot));
    all.take_while(|slot| *slot + offset + STARTS_WITHIN < end).collect()
}

fn wrong(
    model: &Model,
    (uid, cron): (&str, &Cron),
    slot: DateTime<Utc>,
    sim: &Sim,
    excused: &mut Vec<&'static str>,
) -> Option<String> {
    let version = cron.newest();
    let due = version.due(slot);
    let patience = version.deadline().map_or(STARTS_WITHIN, |seconds| TimeDelta::seconds(seconds).min(STARTS_WITHIN));
    let name = version.controller_kind().child_name(&cron.name, slot);
    // Also one of another owner, which takes the name.
    let mut named = model.jobs.values().filter(|job| job.name == name && job.namespace == cron.namespace);
    if named.any(|job| sim.wall(job.created) <= due + patience) || blocked(model, uid, cron, (due, due + patience), sim)
    {
        return None;
    }
    let is_passed_over = ran_ahead(model, uid, cron, slot, sim);
    if is_passed_over {
        excused.push("slot in the calm: a clock that ran ahead had started a later one, or recorded one as decided");
    }
    (!is_passed_over).then(|| format!("did not start within {} s", patience.num_seconds()))
}

/// How many slots of an `@every` started in the calm, with a deadline, and what is wrong if one did not start when it had to.
fn stalls(model: &Model, (uid, cron): (&str, &Cron), begin: Millis, sim: &Sim) -> (u64, Option<String>) {
    let version = cron.newest();
    let schedule = version.schedule().filter(|_| version.timing_annotations().keys().all(|name| *name == SPREAD));
    let Some(interval) = schedule.and_then(|schedule| schedule.interval()) else { return (0, None) };
    let deadline = version.deadline().map(TimeDelta::seconds);
    if deadline.is_some_and(|deadline| deadline < interval) {
        return (0, None);
    }
    // When each slot was started or found to have its Job, which several of one minute share.
    let statuses = cron.versions.iter().map(|version| (version.at, version.last_schedule_time()));
    let jobs = model.all_jobs_of(uid).filter(|job| job.backfill.is_none()).map(|job| (job.created, job.slot));
    let mut steps: Vec<_> = statuses.chain(jobs).collect();
    steps.sort_unstable();
    let mut newest = None;
    steps.retain(|(_, slot)| {
        *slot > newest && {
            newest = *slot;
            true
        }
    });
    let before = steps.iter().take_while(|(at, _)| *at < begin).count();
    let last = before.checked_sub(1).and_then(|place| steps[place].1);
    let within = |steps: &[(Millis, Option<DateTime<Utc>>)]| steps.first().map_or(sim.now(), |(at, _)| *at);
    let mut since = (sim.wall(begin) + version.offset(), last);
    let created = text(&version.object, "creationTimestamp").parse().ok();
    for place in before..=steps.len() {
        let next = sim.wall(within(&steps[place..]));
        let due = since.0 + interval;
        // Several slots in a row share a name.
        let slots = |last| (1..).map(move |number| last + interval * number);
        let are_named = since.1.or(created).is_some_and(|last| {
            let mut due = slots(last).take_while(|slot| version.due(*slot) + STARTS_WITHIN < next);
            due.all(|slot| is_name_used(model, cron, slot))
        });
        let is_ahead = since.1.is_some_and(|last| version.due(last) > since.0);
        if next > due + STARTS_WITHIN
            && !is_ahead
            && !are_named
            && !blocked(model, uid, cron, (due, due + STARTS_WITHIN), sim)
        {
            let text = format!("no slot of its @every started from {} to {next}", since.0);
            return (0, Some(text));
        }
        let Some((at, slot)) = steps.get(place) else { break };
        since = (sim.wall(*at), *slot);
    }
    let number = if deadline.is_some() { steps.len() - before } else { 0 };
    (number as u64, None)
}

/// Whether a controller whose clock ran ahead had decided about the slot before it came due.
fn ran_ahead(model: &Model, uid: &str, cron: &Cron, slot: DateTime<Utc>, sim: &Sim) -> bool {
    let due = cron.newest().due(slot);
    let is_later = |job: &Job| job.slot > Some(slot) && sim.wall(job.created) < due;
    let decided = cron.newest().decided_until(sim.wall(sim.now()));
    let may_run_ahead = sim.scenario.clocks_differ() != Some(TimeDelta::zero());
    may_run_ahead && (model.all_jobs_of(uid).any(is_later) || decided >= Some(slot))
}

/// Whether a Job runs in that time beside which Forbid starts none.
fn blocked(model: &Model, uid: &str, cron: &Cron, (due, last): (DateTime<Utc>, DateTime<Utc>), sim: &Sim) -> bool {
    let version = cron.newest();
    let counts = |job: &&Job| job.is_active(version.controller_kind());
    let runs = |job: &Job| {
        let end = job.ended.into_iter().chain(job.deleted).min();
        sim.wall(job.created) <= last && end.is_none_or(|end| sim.wall(end) >= due)
    };
    version.policy() == "Forbid" && model.all_jobs_of(uid).filter(counts).any(runs)
}
