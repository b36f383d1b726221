//! What must hold once nothing has gone wrong for a while.

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::schedule::missed::{self, Observed};

use crate::model::{Condition, Cron, Model};
use crate::scenario::{MINUTE, Millis, SECOND};
use crate::sim::Sim;

/// How long after the last fault everything is in order again: a silent watch is noticed after three minutes, a lease is
/// taken over within half a minute, and no backoff is longer than the fault that caused it.
pub const SETTLED_WITHIN: Millis = 5 * MINUTE;

/// How late a slot may be handled in calm.
const LATE: Millis = 5 * SECOND;

/// The reasons that tell why a slot was not started.
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
    /// Everything that is not in order now.
    pub fn disorder(&self) -> Vec<String> {
        let state = self.state.lock();
        let mut found = Vec::new();
        for (uid, cron) in state.model.live() {
            let name = format!("{}/{}", cron.namespace, cron.name);
            found.extend(disorder_of(&state.model, uid, cron).into_iter().map(|what| format!("{name}: {what}")));
            if let Some(slot) = self.unhandled_slot(&state.model, uid, cron) {
                found.push(format!("{name}: slot {slot} is neither started nor explained"));
            }
        }
        found
    }

    /// The newest due slot, if it has neither been started nor explained.
    fn unhandled_slot(&self, model: &Model, uid: &str, cron: &Cron) -> Option<DateTime<Utc>> {
        let version = cron.newest();
        let timing = version.timing()?;
        let (Ok(schedule), Ok(_)) = (&timing.schedule, &timing.time_zone) else { return None };
        if version.is_suspended() || version.object["spec"].is_null() {
            return None;
        }
        let now = self.now();
        let observed = Observed {
            creation: version.object["metadata"]["creationTimestamp"].as_str()?.parse().ok()?,
            last_schedule: version.last_schedule_time(),
            starting_deadline_seconds: version.deadline(),
        };
        let asked_at = self.wall(now) - TimeDelta::milliseconds(i64::try_from(LATE).unwrap());
        let slot = missed::next_schedule_time(&observed, asked_at, schedule).ok()?.0?;
        // Slots of one minute share a name, and the first has the Job.
        let name = format!("{}-{}", cron.name, slot.timestamp() / 60);
        if model
            .children
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|uid| model.jobs.get(uid))
            .any(|job| job.name == name)
        {
            return None;
        }
        let since = (slot - self.scenario.start).num_milliseconds();
        // A new schedule is waited for; what it would have had before is nobody's business, as upstream.
        if since < i64::try_from(cron.scheduled_since()).unwrap() {
            return None;
        }
        // Explained by whosever clock, which was off by two minutes at most.
        let is_explained = REASONS
            .iter()
            .filter_map(|reason| cron.reasons.get(reason))
            .any(|at| i64::try_from(*at).unwrap() >= since - 150_000);
        (!is_explained).then_some(slot)
    }
}

fn disorder_of(model: &Model, uid: &str, cron: &Cron) -> Vec<String> {
    let mut found = Vec::new();
    let version = cron.newest();
    if version.timing().is_none() {
        // Nobody can read it.
        return found;
    }
    let mut active: Vec<&str> = version.active();
    active.sort_unstable();
    let mut running: Vec<&str> = model
        .jobs_of(uid)
        .filter(|job| job.is_made_by_controller() && job.is_unfinished() && !job.deleting)
        .map(|job| job.uid.as_str())
        .collect();
    running.sort_unstable();
    if active != running {
        found.push(format!("active is {active:?}, unfinished are {running:?}"));
    }
    let limits = [("successfulJobsHistoryLimit", Condition::Complete), ("failedJobsHistoryLimit", Condition::Failed)];
    for (field, condition) in limits {
        let Some(limit) = version.spec()[field].as_u64() else { continue };
        let kept = model.jobs_of(uid).filter(|job| job.finished == Some(condition)).count() as u64;
        if kept > limit {
            found.push(format!("{kept} Jobs are kept, {field} is {limit}"));
        }
    }
    found
}
