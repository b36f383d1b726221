//! Removes the parts of a failing scenario that the failure does not need.

use crate::run::judge;
use crate::scenario::Scenario;

/// The largest number of worlds that a shrink may run.
const TRIES: usize = 300;

/// The smallest scenario found that still violates `invariant`.
pub fn shrink(mut scenario: Scenario, invariant: &str) -> Scenario {
    let mut left = TRIES;
    let mut fails = |candidate: &Scenario| {
        left = left.saturating_sub(1);
        left > 0 && judge(candidate, false).violations.iter().any(|violation| violation.invariant == invariant)
    };
    loop {
        let before = size(&scenario);
        scenario = without(
            scenario,
            |s| s.faults.len(),
            |s, at| {
                s.faults.remove(at);
            },
            &mut fails,
        );
        scenario = without(
            scenario,
            |s| s.edits.len(),
            |s, at| {
                s.edits.remove(at);
            },
            &mut fails,
        );
        scenario = without(scenario, |s| s.cron_jobs.len(), remove_cron_job, &mut fails);
        for number in 0..scenario.replicas {
            let mut candidate = scenario.clone();
            candidate.skews[number] = 0;
            if scenario.skews[number] != 0 && fails(&candidate) {
                scenario = candidate;
            }
        }
        let candidate = Scenario { server_skew: 0, ..scenario.clone() };
        if scenario.server_skew != 0 && fails(&candidate) {
            scenario = candidate;
        }
        let candidate = Scenario { restore: None, ..scenario.clone() };
        if scenario.restore.is_some() && fails(&candidate) {
            scenario = candidate;
        }
        let candidate = Scenario { switch: None, ..scenario.clone() };
        if scenario.switch.is_some() && fails(&candidate) {
            scenario = candidate;
        }
        let candidate = Scenario { standstill: None, ..scenario.clone() };
        if scenario.standstill.is_some() && fails(&candidate) {
            scenario = candidate;
        }
        if size(&scenario) == before {
            return scenario;
        }
    }
}

fn size(scenario: &Scenario) -> usize {
    scenario.faults.len() + scenario.edits.len() + scenario.cron_jobs.len()
}

/// Tries to remove halves, then quarters, and so on down to single elements.
fn without(
    mut scenario: Scenario,
    count: impl Fn(&Scenario) -> usize,
    remove: impl Fn(&mut Scenario, usize),
    fails: &mut impl FnMut(&Scenario) -> bool,
) -> Scenario {
    let mut step = count(&scenario).div_ceil(2);
    while step > 0 {
        let mut end = count(&scenario);
        while end > 0 {
            let begin = end.saturating_sub(step);
            let mut candidate = scenario.clone();
            for at in (begin..end).rev() {
                remove(&mut candidate, at);
            }
            if count(&candidate) < count(&scenario) && fails(&candidate) {
                scenario = candidate;
            }
            end = begin;
        }
        step /= 2;
    }
    scenario
}

/// The CronJob keeps its index, so that references stay valid; it is just never created.
fn remove_cron_job(scenario: &mut Scenario, at: usize) {
    if scenario.cron_jobs.len() == 1 {
        return;
    }
    scenario.cron_jobs.remove(at);
    scenario.edits.retain(|edit| edit.cron_job != at);
    for edit in &mut scenario.edits {
        if edit.cron_job > at {
            edit.cron_job -= 1;
        }
    }
}
