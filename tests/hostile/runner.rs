//! Runs the cases one after the other, each in an environment of its own, and prints the table.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use testkit::harness::block_on;

use crate::command::binary;
use crate::small;
use crate::table::{Figure, Outcome, markdown};

/// Some rows of the table.
pub struct Case {
    pub name: String,
    /// Returns the figures; panics if nothing can be measured.
    pub run: Box<dyn Fn() -> BoxFuture<'static, Vec<Figure>>>,
}

pub fn main(all: &[Case]) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let passed = match arguments.next().as_deref() {
        Some("--table") => {
            let filters: Vec<String> = arguments.collect();
            let is_chosen =
                |case: &&Case| filters.is_empty() || filters.iter().any(|filter| case.name.contains(filter.as_str()));
            block_on(table(all.iter().filter(is_chosen).collect()))
        }
        Some("--list") => {
            for (name, _) in &small::CASES {
                println!("{name}: test");
            }
            true
        }
        _ => {
            println!("hostile: {} small cases; `make hostile` runs all {} at full size", small::CASES.len(), all.len());
            block_on(asserted())
        }
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the small cases; true when all passed.
async fn asserted() -> bool {
    let mut failures = 0;
    for (name, run) in small::CASES {
        let started = Instant::now();
        let result = caught(run()).await;
        let took = started.elapsed().as_secs_f64();
        match &result {
            Ok(note) => println!("test {name} ... ok ({took:.1} s): {note}"),
            Err(why) => println!("test {name} ... FAILED ({took:.1} s): {why}"),
        }
        failures += usize::from(result.is_err());
    }
    failures == 0
}

/// Runs the cases and prints the table; true when every figure meets its target.
async fn table(cases: Vec<&Case>) -> bool {
    println!("hostile: {} cases of {}", cases.len(), binary().display());
    let mut outcomes = Vec::new();
    for case in cases {
        let started = Instant::now();
        let figures = caught((case.run)()).await;
        let took = started.elapsed().as_secs_f64();
        match &figures {
            Ok(figures) => {
                println!("{} ({took:.0} s)", case.name);
                for figure in figures {
                    println!("    {}", figure.line());
                }
            }
            Err(why) => println!("{} ... FAILED ({took:.0} s): {why}", case.name),
        }
        outcomes.push(Outcome { case: case.name.clone(), figures });
    }
    let (table, missed) = markdown(&outcomes);
    println!("\n{table}");
    println!("hostile: {} cases, {missed} figures missed", outcomes.len());
    missed == 0
}

/// The result, or the message of the panic.
async fn caught<T>(run: BoxFuture<'static, T>) -> Result<T, String> {
    AssertUnwindSafe(run).catch_unwind().await.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("panicked").to_owned()
    })
}
