//! Runs the table of scenarios and prints a line for each.
//!
//! It replaces the standard harness for two reasons: the scenarios share one expensive control plane and all wait at
//! the same time, and a skipped run has to be visible without `--nocapture`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

use testkit::fixture;
use testkit::fixture::account::kubectl_apply;
use testkit::fixture::controller::Controller;
use testkit::harness::{block_on, is_required};
use testkit::verdict::{Verdict, judge};
use testkit::world::World;

/// Which other scenarios may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Shares the controller and the control plane with every other scenario of this kind.
    Together,
    /// Has the control plane to itself and starts its own controllers.
    Alone,
}

/// One scenario: a sentence, and a future that panics if the sentence is false.
pub struct Scenario {
    pub name: &'static str,
    pub group: Group,
    /// Why the in-tree controller does not pass.
    pub differs_in_tree: Option<&'static str>,
    /// Returns the measurements, for the printed line.
    pub run: fn(Arc<World>) -> BoxFuture<'static, String>,
}

/// The time limit of a scenario.
const LIMIT: Duration = Duration::from_secs(240);

pub fn main(scenarios: &[Scenario]) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--list") {
        for scenario in scenarios {
            println!("{}: test", name_of(scenario));
        }
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let chosen: Vec<&Scenario> = scenarios
        .iter()
        .filter(|scenario| {
            filters.is_empty() || filters.iter().any(|filter| name_of(scenario).contains(filter.as_str()))
        })
        .collect();
    if chosen.is_empty() {
        println!("e2e: no scenario matches");
        return ExitCode::SUCCESS;
    }
    let binary = match fixture::find() {
        Ok(binary) => binary,
        Err(why) if is_required("REQUIRE_FIXTURE") => {
            println!("e2e: FAILED: {why}");
            return ExitCode::FAILURE;
        }
        Err(why) => {
            println!("e2e: {} scenarios skipped: {why}", chosen.len());
            return ExitCode::SUCCESS;
        }
    };
    block_on(run(binary, &chosen))
}

/// The name in the form of a test name, for use as a filter.
fn name_of(scenario: &Scenario) -> String {
    scenario.name.replace(' ', "_")
}

async fn run(binary: PathBuf, scenarios: &[&Scenario]) -> ExitCode {
    let controller = Controller::from_env("E2E_CONTROLLER");
    let started = Instant::now();
    println!("e2e: {} scenarios against {controller:?}", scenarios.len());
    let world = match World::start(&binary, controller).await {
        Ok(world) => Arc::new(world),
        Err(why) => {
            println!("e2e: FAILED: the control plane did not start: {why}");
            return ExitCode::FAILURE;
        }
    };
    // Every status and every Job of the run passes it.
    if let Err(why) = kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/guard", &[]) {
        println!("e2e: FAILED: the guard cannot be applied: {why}");
        return ExitCode::FAILURE;
    }
    println!("e2e: control plane ready in {:.1} s", started.elapsed().as_secs_f64());

    let mut failures = run_together(&world, scenarios).await;
    for scenario in scenarios.iter().filter(|scenario| scenario.group == Group::Alone) {
        failures += run_one(&world, scenario).await;
    }
    if let Err(why) = world.verify().await {
        println!("e2e: FAILED after the scenarios: {why}");
        failures += 1;
    }
    println!("e2e: {failures} failures, {:.1} s", started.elapsed().as_secs_f64());
    if failures == 0 {
        return ExitCode::SUCCESS;
    }
    match Arc::into_inner(world) {
        Some(world) => println!("{}", world.plane.keep_logs(15)),
        None => println!("(a scenario still holds the control plane; its logs are gone)"),
    }
    ExitCode::FAILURE
}

async fn run_together(world: &Arc<World>, scenarios: &[&Scenario]) -> usize {
    let together: Vec<_> = scenarios.iter().filter(|scenario| scenario.group == Group::Together).collect();
    if together.is_empty() {
        return 0;
    }
    if let Err(why) = world.start_shared().await {
        println!("e2e: FAILED: the controller did not start: {why}");
        return 1;
    }
    let mut running: FuturesUnordered<_> = together.iter().map(|scenario| run_one(world, scenario)).collect();
    let mut failures = 0;
    while let Some(failed) = running.next().await {
        failures += failed;
    }
    if let Err(why) = world.stop_shared() {
        println!("e2e: FAILED: the shared controller did not live: {why}");
        failures += 1;
    }
    failures
}

/// Runs one scenario and prints its line; 1 when it counts as a failure.
async fn run_one(world: &Arc<World>, scenario: &Scenario) -> usize {
    let started = Instant::now();
    let verdict = judge((scenario.run)(world.clone()), LIMIT).await;
    let known = scenario.differs_in_tree.filter(|_| world.controller == Controller::InTree);
    let (verdict, note, failed) = match (verdict, known) {
        (Verdict::Passed(note), None) => ("ok", note, 0),
        (Verdict::Passed(note), Some(why)) => ("ok", format!("{note} (known to differ in-tree at times: {why})"), 0),
        (Verdict::Failed(why), Some(known)) => {
            ("DIFFERS", format!("as is known of the in-tree one: {known}: {why}"), 0)
        }
        (Verdict::Failed(why), None) => ("FAILED", why, 1),
    };
    let note = if note.is_empty() { note } else { format!(": {note}") };
    println!("test {} ... {verdict} ({:.1} s){note}", name_of(scenario), started.elapsed().as_secs_f64());
    failed
}
