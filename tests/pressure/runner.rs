//! Runs each case with each contender, prints a line for both and the table at the end.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use testkit::harness::{block_on, is_required, with_fixture};

use crate::cases;
use crate::contenders::{self, Arena, Contender};
use crate::table::{Figure, Outcome, markdown};

/// Some rows of the table.
pub struct Case {
    pub name: &'static str,
    pub contenders: &'static [&'static Contender],
    /// Returns the measurements; panics if nothing can be measured.
    pub run: fn(Arc<Arena>) -> BoxFuture<'static, Vec<Figure>>,
}

/// The time limit of a case with one contender.
const LIMIT: Duration = Duration::from_secs(900);

pub fn main(all: &[Case]) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--table") => {
            let filters: Vec<String> = arguments.collect();
            let is_chosen =
                |case: &&Case| filters.is_empty() || filters.iter().any(|filter| case.name.contains(filter));
            with_fixture("pressure", true, |binary| block_on(table(binary, all.iter().filter(is_chosen).collect())))
        }
        Some("--list") => {
            for case in all {
                println!("{}: test", case.name);
            }
            ExitCode::SUCCESS
        }
        _ => {
            println!("pressure: one small case; `make pressure` runs all {} at full size", all.len());
            with_fixture("pressure", is_required("REQUIRE_FIXTURE"), |binary| {
                block_on(table(binary, vec![&cases::SMALL]))
            })
        }
    }
}

/// Whether `PRESSURE_CONTENDERS` names the contender, or is not set.
fn is_asked_for(contender: &Contender) -> bool {
    std::env::var("PRESSURE_CONTENDERS")
        .map_or(true, |names| names.is_empty() || names.split(',').any(|name| name == contender.name))
}

/// Runs the cases and prints the table; true when every figure of this controller meets its target.
async fn table(binary: &Path, cases: Vec<&Case>) -> bool {
    let mut outcomes = Vec::new();
    for case in &cases {
        for contender in case.contenders.iter().filter(|contender| is_asked_for(contender)) {
            outcomes.push(run_one(binary, case, contender).await);
        }
    }
    let names: Vec<&str> = contenders::ALL
        .iter()
        .map(|contender| contender.name)
        .filter(|name| outcomes.iter().any(|outcome| outcome.contender == *name))
        .collect();
    let (table, missed) = markdown(&outcomes, &names);
    println!("\n{table}");
    println!("pressure: {} cases, {missed} figures missed", cases.len());
    missed == 0
}

async fn run_one(binary: &Path, case: &Case, contender: &'static Contender) -> Outcome {
    let started = Instant::now();
    let figures = match Arena::start(binary, contender).await {
        Ok(arena) => measure(case, Arc::new(arena)).await,
        Err(why) => Err(format!("the control plane did not start: {why}")),
    };
    let took = started.elapsed().as_secs_f64();
    match &figures {
        Ok(figures) => {
            println!("{}, {} ({took:.0} s)", case.name, contender.name);
            for figure in figures {
                println!("    {}: {}", figure.what, figure.text());
            }
        }
        Err(why) => println!("{}, {} ... FAILED ({took:.0} s): {why}", case.name, contender.name),
    }
    Outcome { case: case.name, contender: contender.name, figures }
}

/// The figures, or the panic and the logs.
async fn measure(case: &Case, arena: Arc<Arena>) -> Result<Vec<Figure>, String> {
    let run = AssertUnwindSafe((case.run)(Arc::clone(&arena))).catch_unwind();
    let why = match tokio::time::timeout(LIMIT, run).await {
        Ok(Ok(figures)) => return Ok(figures),
        Ok(Err(panic)) => panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "panicked".to_owned()),
        Err(_) => format!("still running after {LIMIT:?}"),
    };
    match Arc::into_inner(arena) {
        Some(arena) => Err(format!("{why}\n{}", arena.world.plane.keep_logs(15))),
        None => Err(why),
    }
}
