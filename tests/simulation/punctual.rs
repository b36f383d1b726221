//! In the calm, each slot that nothing holds starts within a few seconds, and before its starting deadline.
//!
//! Guarantee: of each CronJob, every slot between its last edit and the end is judged, whether or not an Event explains what
//! became of it. A world without faults is calm from its first election on.
//!
//! Not judged: CronJobs with policies that hold slots ([`waiting`](crate::waiting) judges those), and each `@every`, whose
//! slots depend on when the last one started.

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::Manage;

use crate::model::{Cron, Job, Model, Version};
use crate::scenario::{Millis, SECOND, Scenario};
use crate::sim::Sim;

/// How late a slot may start.
const STARTS_WITHIN: TimeDelta = TimeDelta::seconds(7);

/// How soon after an edit each controller has seen it.
const SEEN_WITHIN: Millis = 5 * SECOND;

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
    let calm_since = if scenario.has_no_faults() { ELECTED } else { calm_since };
    let mut state = sim.state.lock();
    let mut found = Vec::new();
    let (mut judged, mut excused) = (0, Vec::new());
    for (uid, cron) in state.model.live() {
        let version = cron.newest();
        let is_released = scenario.manage == Manage::Annotated && version.is_taken_back();
        let is_every = version.spec()["schedule"].as_str().is_none_or(|text| text.contains("@every"));
        if is_released || is_every || version.is_suspended() || version.has_limits() {
            continue;
        }
        let begin = sim.wall(calm_since.max(cron.edited() + SEEN_WITHIN));
        // A slot from before is decided, although its spread delays it.
        let is_later = |slot: &DateTime<Utc>| *slot > sim.wall(cron.edited());
        for slot in slots(version, begin, sim.wall(sim.now())).into_iter().filter(is_later) {
            judged += 1;
            if let Some(what) = wrong(&state.model, (uid, cron), slot, sim, &mut excused) {
                found.push(format!("{}/{}: {slot} {what}", cron.namespace, cron.name));
            }
        }
    }
    let coverage = &mut state.invariants.coverage;
    coverage.add("judged", "slot in the calm", judged);
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
