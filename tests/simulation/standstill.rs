//! One machine runs everything, and sleeps: a laptop with a cluster on it. Every monotonic clock stands still meanwhile, and wall
//! time goes on.
//!
//! So a lease ends although the monotonic time that it has left has not passed, and slots have come due that no timer knows of. A
//! single machine that sleeps while others go on is a [`Sleep`](crate::faults::FaultKind::Sleep).

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::faults::is_everywhere;
use crate::rng::Rng;
use crate::scenario::{MINUTE, Millis, SECOND, Scenario};
use crate::sim::Sim;

/// When everything stands still, and for how much of wall time.
#[derive(Clone, Copy, Debug)]
pub struct Standstill {
    pub at: Millis,
    pub length: Millis,
}

impl Scenario {
    /// In few worlds, the machine sleeps once.
    pub fn stand_still(&mut self, rng: &mut Rng) {
        let is_drawn = rng.percent(7) || is_everywhere("STANDSTILL");
        // What an outage or a restore leaves behind is judged alone.
        if !is_drawn || self.outage().is_some() || self.restore.is_some() {
            return;
        }
        // Whole minutes, so that what begins shortly before a minute still does; or shorter than a lease.
        let (short, long) = (rng.range(1, 15) * SECOND, rng.range(1, 31) * MINUTE);
        let at = rng.range(MINUTE, self.active - 4 * MINUTE);
        self.standstill = Some(Standstill { at, length: rng.weighted(&[(30, short), (70, long)]) });
    }

    /// For how long everything stood still between two times.
    pub fn stood_still(&self, from: Millis, until: Millis) -> Millis {
        self.standstill.filter(|still| from < still.at && still.at <= until).map_or(0, |still| still.length)
    }

    /// The true time at `at`.
    pub fn wall(&self, at: Millis) -> DateTime<Utc> {
        self.start + TimeDelta::milliseconds(i64::try_from(at + self.stood_still(0, at)).unwrap())
    }

    /// When a true time is, or when everything goes on after it; below zero before the start.
    pub fn moment_of(&self, time: DateTime<Utc>) -> i64 {
        let since = (time - self.start).num_milliseconds();
        let Some(Standstill { at, length }) = self.standstill else { return since };
        let [at, length] = [at, length].map(|time| i64::try_from(time).unwrap());
        if since < at { since } else { (since - length).max(at) }
    }
}

impl Sim {
    /// Everything stands still: wall time goes on at once.
    pub fn stand_still(&self) {
        let Some(Standstill { at, length }) = self.scenario.standstill else { return };
        let mut state = self.state.lock();
        state.journal.note(at, format_args!("    *** everything stands still for {} s", length / SECOND));
        state.invariants.coverage.count("world", "machine asleep with everything on it");
        self.clock.suspend(Duration::from_millis(length));
        for replica in &mut state.replicas {
            replica.deadline = replica.deadline.map(|deadline| deadline.saturating_sub(length));
        }
    }
}
