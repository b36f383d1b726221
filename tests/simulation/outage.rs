//! The whole server is away across a slot, and replicas restart meanwhile, so that cold ones stand beside warm ones.
//!
//! Guarantee (24): eight seconds after it is back, each due slot that nothing holds has had its Job, where no replica restarted and the
//! leader kept its lease or the lease has expired, or where it has expired for one beside which another restarted; elsewhere after forty: a leader that could not renew has lost its lease, and the
//! lease expires 15 s after its last renewal for a replica that has seen that, and 15 s after the return for another. Judged of CronJobs with Allow or Replace, without a deadline and without an edit from the minutes before, by right clocks.
//!
//! Three seconds after it is back, each replica that was there then watches CronJobs and Jobs again.

use crate::faults::{Fault, FaultKind as F, is_everywhere};
use crate::model::Cron;
use crate::rng::Rng;
use crate::scenario::{MINUTE, Millis, SECOND, Scenario};
use crate::sim::Sim;

/// The number of the fault whose end is judged; no other kind of fault has it or the next one.
pub const AWAY: u64 = 900;

/// What is counted.
pub const WATCHES: &str = "replica that watches again after an outage";

/// Outages after which slots start soon.
pub const ALL_SAW_IT: &str = "an outage that every replica saw";
/// The same, by one that was there before, beside a cold one.
pub const ONE_SAW_IT: &str = "an outage in which a replica restarted beside another";

/// For how long nothing else fails before: a silent watch is found after three minutes.
const BEFORE: Millis = 200 * SECOND;

/// How long after the return of the server slots may start: a replica that has not seen the last renewal counts the lease's 15 s from
/// then, and reads it every few seconds.
pub const BACK: Millis = 40 * SECOND;

/// The same where every replica was there before, and the lease was never lost or has expired meanwhile.
pub const SOON: Millis = 8 * SECOND;

/// The longest outage in which a leader keeps its lease, and the shortest in which the lease expires for every replica.
const KEPT: Millis = 8 * SECOND;
const EXPIRED: Millis = 20 * SECOND;

/// How long after its return each replica watches again.
pub const AGAIN: Millis = 3 * SECOND;

impl Scenario {
    /// Adds the outage, and removes all other faults around it.
    pub fn go_away(&mut self, rng: &mut Rng) {
        if rng.percent(75) && !is_everywhere("OUTAGE") {
            return;
        }
        let at = rng.range(BEFORE, self.active - 4 * MINUTE);
        let until = at + rng.range(5, 90) * SECOND;
        let is_kept = |fault: &Fault| fault.until + BEFORE < at || until + BACK < fault.at;
        if self.loses_takeover(is_kept) {
            return;
        }
        self.faults.retain(is_kept);
        let mut faults = vec![(AWAY, 0, F::ServerRestart, (at, until), 100)];
        if rng.percent(50) {
            let restarts = at + rng.range(1, (until - at) / SECOND) * SECOND;
            let cold = usize::try_from(rng.range(0, self.replicas as u64)).unwrap();
            faults.push((AWAY + 1, cold, F::Restart, (restarts, restarts + SECOND), 100));
        }
        let fault = |(number, replica, kind, (at, until), amount)| Fault {
            number,
            at,
            until,
            replica,
            namespace: None,
            kind,
            amount,
        };
        self.faults.extend(faults.into_iter().map(fault));
    }

    /// Which replicas were there before the outage, if they start what is due as soon as it ends: all, or one beside a cold one, which
    /// knows that the lease has expired.
    pub fn comes_back_to(&self) -> Option<&'static str> {
        let (from, until) = self.outage()?;
        let restarts = self.faults.iter().any(|fault| fault.number == AWAY + 1);
        if restarts {
            return (self.replicas > 1 && until - from >= EXPIRED).then_some(ONE_SAW_IT);
        }
        (!(KEPT..EXPIRED).contains(&(until - from))).then_some(ALL_SAW_IT)
    }

    /// From when until when the server is away.
    pub fn outage(&self) -> Option<(Millis, Millis)> {
        let away = self.faults.iter().find(|fault| fault.number == AWAY)?;
        Some((away.at, away.until))
    }
}

impl Sim {
    /// Judges whether each replica has opened its watches again after an outage.
    pub fn judge_watches(&self, from: Millis, until: Millis) {
        let at = self.now();
        let mut state = self.state.lock();
        let state = &mut *state;
        for (number, replica) in state.replicas.iter().enumerate() {
            if replica.task.is_none() || replica.started > until {
                continue;
            }
            state.invariants.coverage.count("judged", WATCHES);
            if replica.watched.iter().any(|opened| opened.is_none_or(|opened| opened < from)) {
                let text = format!("r{number} has not watched again since the server is back: {:?}", replica.watched);
                state.invariants.violated("24", at, text);
            }
        }
    }

    /// Judges what has started since the server is back, after `what`.
    pub fn judge_outage(&self, what: &str) {
        let at = self.now();
        let mut state = self.state.lock();
        let state = &mut *state;
        let is_warm = |from| state.replicas.iter().any(|replica| replica.task.is_some() && replica.started < from);
        if what == ONE_SAW_IT && !self.scenario.outage().is_some_and(|(from, _)| is_warm(from)) {
            return;
        }
        let is_right = |clock: &apimachinery::clock::SharedClock| (clock.now() - self.wall(at)).num_seconds() == 0;
        if !state.replicas.iter().all(|replica| is_right(&(replica.clock.clone() as apimachinery::clock::SharedClock)))
        {
            return;
        }
        // No replica runs.
        let is_down = |fault: &Fault| fault.kind == F::Outage && fault.at < at && at < fault.until + BACK;
        if self.scenario.faults.iter().any(is_down) {
            return;
        }
        let is_plain = |cron: &&Cron| {
            let version = cron.newest();
            let is_edited = cron.edited() + BEFORE + 2 * MINUTE > at || state.model.namespace_edited(cron) + BACK > at;
            version.policy() != "Forbid" && version.deadline().is_none() && version.timing().is_some() && !is_edited
        };
        let live: Vec<_> = state.model.live().filter(|(_, cron)| is_plain(cron)).collect();
        state.invariants.coverage.add("judged", &format!("CronJob after {what}"), live.len() as u64);
        let lost = live.into_iter().filter_map(|(uid, cron)| {
            let wrong = self.unhandled_slot(&state.model, uid, cron)?;
            Some(format!("{}/{} after {what}: {wrong}", cron.namespace, cron.name))
        });
        for text in lost.collect::<Vec<_>>() {
            state.invariants.violated("24", at, text);
        }
    }
}
