//! Runs the cases in sequence, each in its own environment, and prints a line for each and a table at the end.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use testkit::fixture::controller::Controller;
use testkit::harness::{block_on, is_required, with_fixture};
use testkit::verdict::{Verdict, judge};
use testkit::world::World;

use crate::cases;
use crate::luck::{self, Luck};
use crate::soak;

/// One row of the matrix.
pub struct Case {
    pub name: &'static str,
    /// What must hold for the case to pass, besides that no slot is lost and none has two Jobs.
    pub holds: &'static str,
    /// Returns the measurements, for the printed line; panics if the case fails.
    pub run: fn(Arc<World>, Luck) -> BoxFuture<'static, String>,
}

/// The time limit of a case.
const LIMIT: Duration = Duration::from_secs(900);

pub fn main(all: &[Case]) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--matrix") => {
            let filters: Vec<String> = arguments.collect();
            let is_chosen =
                |case: &&Case| filters.is_empty() || filters.iter().any(|filter| case.name.contains(filter));
            with_fixture("faults", true, |binary| block_on(matrix(binary, all.iter().filter(is_chosen).collect())))
        }
        Some("--soak") => {
            with_fixture("faults", true, |binary| block_on(soak::main(binary, Luck::new(announced_seed()))))
        }
        Some("--list") => {
            for case in all {
                println!("{}: test", case.name);
            }
            ExitCode::SUCCESS
        }
        _ => {
            println!(
                "faults: one small case; `make fault-matrix` runs all {} at full size, `make soak` an hour",
                all.len()
            );
            with_fixture("faults", is_required("REQUIRE_FIXTURE"), |binary| {
                block_on(matrix(binary, vec![&cases::SMALL]))
            })
        }
    }
}

fn announced_seed() -> u64 {
    let seed = luck::seed();
    println!("faults: FAULTS_SEED={seed}");
    seed
}

/// Runs the cases and prints the table; true when all passed.
async fn matrix(binary: &Path, cases: Vec<&Case>) -> bool {
    let seed = announced_seed();
    let mut table = String::from("| fault | held to | seen |\n| --- | --- | --- |\n");
    let mut failures = 0;
    for case in &cases {
        let (figures, is_failure) = run_one(binary, case, seed).await;
        let _ = writeln!(table, "| {} | {} | {figures} |", case.name, case.holds);
        failures += usize::from(is_failure);
    }
    if cases.len() > 1 {
        println!("\n{table}");
    }
    println!("faults: {} cases, {failures} failures", cases.len());
    failures == 0
}

/// Runs one case and prints its line; its figures, and whether it failed.
async fn run_one(binary: &Path, case: &Case, seed: u64) -> (String, bool) {
    let started = Instant::now();
    let world = match World::start(binary, Controller::Ours).await {
        Ok(world) => Arc::new(world),
        Err(why) => {
            println!("test {} ... FAILED: the control plane did not start: {why}", case.name);
            return ("FAILED: the control plane did not start".to_owned(), true);
        }
    };
    let verdict = judge((case.run)(Arc::clone(&world), Luck::new(seed)), LIMIT).await;
    let took = started.elapsed().as_secs_f64();
    match verdict {
        Verdict::Passed(figures) => {
            println!("test {} ... ok ({took:.1} s): {figures}", case.name);
            (figures, false)
        }
        Verdict::Failed(why) => {
            println!("test {} ... FAILED ({took:.1} s): {why}", case.name);
            match Arc::into_inner(world) {
                Some(world) => println!("{}", world.plane.keep_logs(15)),
                None => println!("(the case still holds the control plane; its logs are gone)"),
            }
            (format!("FAILED: {why}"), true)
        }
    }
}
