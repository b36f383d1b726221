//! Runs of many seeds.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio::task::LocalSet;

use crate::backfill;
use crate::calm::{QUIET, SETTLED_WITHIN};
use crate::coverage::Coverage;
use crate::invariants::Violation;
use crate::people;
use crate::punctual;
use crate::rivals;
use crate::scenario::{Millis, SECOND, Scenario};
use crate::shrink;
use crate::sim::Sim;
use crate::told;
use crate::waiting::{STEP, Watcher};

/// A run of at least this many seeds must have seen every required event.
const MANY: u64 = 200;

/// One seed in this many also runs without its faults.
const COMPARED: u64 = 5;

/// One seed in this many runs twice, and has to give the same history.
const REPEATED: u64 = 10;

/// The result of one world.
#[derive(Debug)]
pub struct Outcome {
    pub violations: Vec<Violation>,
    pub coverage: Coverage,
    /// See [`Sim::started`].
    pub started: BTreeMap<String, Option<DateTime<Utc>>>,
    pub hash: u64,
    pub lines: Vec<String>,
}

/// Runs one world to its end.
pub fn run(scenario: &Scenario, is_journal_kept: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    // An operator's command runs in one thread.
    runtime.block_on(LocalSet::new().run_until(async {
        rivals::warnings();
        let sim = Sim::new(scenario.clone(), is_journal_kept);
        sim.prepare();
        let mut end = scenario.active + SETTLED_WITHIN;
        sim.run_until(end).await;
        in_order(&sim, &mut end).await;
        sim.state.lock().settled_since = Some(end);
        let quiet_until = scenario.active + SETTLED_WITHIN + QUIET;
        // Those whose failures hold their slots go on then, in half of the worlds.
        let mut mends = scenario.seed.is_multiple_of(2).then_some(end + QUIET / 3);
        let mut watcher = Watcher::default();
        while end < quiet_until {
            end = (end + STEP).min(quiet_until);
            sim.run_until(end).await;
            watcher.look(&sim);
            if mends.take_if(|mends| *mends <= end).is_some() {
                scenario.cron_jobs.iter().for_each(|cron_job| people::delete_failures(&sim, cron_job));
            }
        }
        end = quiet_until;
        let started = sim.started();
        in_order(&sim, &mut end).await;
        let late = punctual::late(&sim, scenario.active + SETTLED_WITHIN);
        let told = told::wrong(&sim).await;
        let hanging = backfill::hanging(&sim);
        let mut state = sim.state.lock();
        hanging.into_iter().for_each(|what| state.invariants.violated("27", end, what));
        told.into_iter().for_each(|what| state.invariants.violated("28", end, what));
        late.into_iter().for_each(|what| state.invariants.violated("23", end, what));
        for replica in &mut state.replicas {
            replica.process.kill();
            if let Some(task) = replica.task.take() {
                task.abort();
            }
        }
        let mut coverage = std::mem::take(&mut state.invariants.coverage);
        coverage.add("total", "virtual seconds", end / 1000);
        coverage.count("total", "seeds");
        coverage.count("total", &format!("seeds of {}", scenario.controller_kind));
        coverage.count("total", &format!("seeds that manage {}", scenario.manage.name()));
        let journal = std::mem::take(&mut state.journal);
        Outcome {
            violations: std::mem::take(&mut state.invariants.violations),
            coverage,
            started,
            hash: journal.hash(),
            lines: journal.into_lines(),
        }
    }))
}

/// Checks violations that last longer than a moment: shorter ones are changes on their way.
async fn in_order(sim: &Arc<Sim>, end: &mut Millis) {
    let mut amiss = sim.disorder();
    for _ in 0..3 {
        if amiss.is_empty() {
            return;
        }
        *end += 7 * SECOND;
        sim.run_until(*end).await;
        let now = sim.disorder();
        amiss.retain(|what| now.contains(what));
    }
    let invariants = &mut sim.state.lock().invariants;
    amiss.into_iter().for_each(|(invariant, what)| invariants.violated(invariant, *end, what));
}

/// Runs a world, and for one seed in [`COMPARED`] also without its faults, which must reach the same final state.
pub fn judge(scenario: &Scenario, is_journal_kept: bool) -> Outcome {
    let mut outcome = caught(scenario, is_journal_kept);
    if !scenario.seed.is_multiple_of(COMPARED) {
        return outcome;
    }
    let calm = caught(&scenario.without_faults(), false);
    let prefixed = |mut violation: Violation| {
        violation.text = format!("without faults: {}", violation.text);
        violation
    };
    outcome.violations.extend(calm.violations.into_iter().map(prefixed));
    for (name, started) in &outcome.started {
        let Some(wanted) = calm.started.get(name) else { continue };
        outcome.coverage.count("judged", "newest slot as without faults");
        if started != wanted {
            let text = format!("{name}: {started:?} is the newest slot started, and {wanted:?} without faults");
            outcome.violations.push(Violation { invariant: "11", at: scenario.active + SETTLED_WITHIN + QUIET, text });
        }
    }
    outcome
}

/// Runs a world, and counts a panic of the harness or the product as a violation.
fn caught(scenario: &Scenario, is_journal_kept: bool) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| run(scenario, is_journal_kept))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
        let violation = Violation { invariant: "panic", at: 0, text };
        Outcome {
            violations: vec![violation],
            coverage: Coverage::default(),
            started: BTreeMap::new(),
            hash: 0,
            lines: Vec::new(),
        }
    })
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

pub fn main() -> ExitCode {
    silence_poison();
    rivals::listen();
    let first = number("SIM_SEED", 1);
    let runs = number("SIM_RUNS", if cfg!(debug_assertions) { 3 } else { 200 });
    let threads = number("SIM_THREADS", std::thread::available_parallelism().map_or(1, |n| n.get() as u64));
    let stops = number("SIM_STOP", 0) == 1;
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let found: Mutex<(Coverage, BTreeMap<u64, Vec<Violation>>)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(runs) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + runs {
                        return;
                    }
                    let scenario = Scenario::generate(seed);
                    let mut outcome = judge(&scenario, false);
                    if (seed == first || seed.is_multiple_of(REPEATED)) && !repeats(&scenario, outcome.hash) {
                        let text = "the same seed gives another history".to_owned();
                        outcome.violations.push(Violation { invariant: "repeat", at: 0, text });
                    }
                    let mut found = found.lock().unwrap();
                    found.0.merge(&outcome.coverage);
                    if !outcome.violations.is_empty() {
                        for violation in &outcome.violations {
                            println!("seed {seed}: {violation}");
                        }
                        found.1.insert(seed, outcome.violations);
                        if stops {
                            next.fetch_max(first + runs, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let (coverage, failures) = found.into_inner().unwrap();
    if stops && !failures.is_empty() {
        return ExitCode::FAILURE;
    }
    coverage.print();
    let took = began.elapsed();
    let years = coverage.get("total", "virtual seconds") as f64 / (365.25 * 86_400.0);
    let (fires, faults) = (coverage.sum("policy"), coverage.sum("fault"));
    println!(
        "{runs} seeds from {first}: {years:.4} simulated years, {fires} fires, {faults} faults, {} seeds with violations, {:.1} s, {:.0} ms a seed",
        failures.len(),
        took.as_secs_f64(),
        took.as_secs_f64() * 1000.0 * threads as f64 / runs as f64,
    );
    let mut is_good = failures.is_empty();
    if runs >= MANY {
        is_good &= is_dense(&coverage, runs, fires, faults);
    }
    if let Some(seed) = failures.keys().next() {
        explain(*seed);
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a world gives the history of that hash once more. Prints where two differ.
fn repeats(scenario: &Scenario, hash: u64) -> bool {
    if caught(scenario, false).hash == hash {
        return true;
    }
    println!("seed {} does not repeat:", scenario.seed);
    let one = caught(scenario, true);
    // Most of the runs may be equal.
    let other = (0..5).map(|_| caught(scenario, true)).find(|other| other.hash != one.hash);
    let lines = other.iter().flat_map(|other| one.lines.iter().zip(&other.lines));
    for (a, b) in lines.filter(|(a, b)| a != b).take(3) {
        println!("  {a}\n  {b}");
    }
    false
}

fn is_dense(coverage: &Coverage, runs: u64, fires: u64, faults: u64) -> bool {
    let missing = coverage.missing(runs);
    for what in &missing {
        println!("never happened: {what}");
    }
    let is_dense = fires >= 20 * runs && faults >= 5 * runs;
    if !is_dense {
        println!("too thin: {} fires and {} faults a seed", fires / runs, faults / runs);
    }
    missing.is_empty() && is_dense
}

fn explain(seed: u64) {
    let scenario = Scenario::generate(seed);
    let violation = judge(&scenario, false).violations.into_iter().next();
    let Some(violation) = violation else { return };
    println!("\nseed {seed}: {violation}\nshrinking …");
    let small = if number("SIM_SHRINK", 1) == 1 { shrink::shrink(scenario, violation.invariant) } else { scenario };
    let outcome = judge(&small, true);
    println!("{small:#?}");
    // The history after the violation does not matter.
    let end = outcome.violations.iter().find(|found| found.invariant == violation.invariant).map_or(0, |v| v.at);
    let prefix = format!("{:3}:{:02}.{:03}", end / 60_000, end / 1000 % 60, end % 1000);
    let is_before = |line: &&String| line[..prefix.len()] <= *prefix;
    for line in outcome.lines.iter().take_while(is_before) {
        println!("{line}");
    }
    for violation in outcome.violations {
        println!("seed {seed}: {violation}");
    }
}

/// Hides the panics that poisoned keys cause on purpose; all others are printed.
fn silence_poison() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
        if text != "poisoned key" {
            default(info);
        }
    }));
}
