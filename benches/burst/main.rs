//! The burst: thousands of CronJobs due at one instant on a real control plane, and the delay of each Job.
//!
//! Contenders take turns, each on a fresh control plane of its own (etcd and kube-apiserver, no other controllers): the
//! bare writes of the same Jobs and statuses (the floor), kube-controller-manager's CronJob controller, this crate's
//! binary, and a polling controller as in Kubernetes before 1.21. Every contender has its own ServiceAccount with RBAC,
//! none is audited, and the same three watches are open for each. A delay is the time from the due instant to the
//! arrival of the bytes of a Job's ADDED event; nothing is decoded before the round is over.
//!
//! `make bench-burst` builds what is needed and runs the standard table. `BURST_ARGS` passes other arguments on, and
//! `--help` lists them. `cargo test` runs a small round if the fixture is built, and otherwise reports that it is not.
#![allow(missing_docs, clippy::unwrap_used)]

mod cases;
mod csv;
mod floor;
mod load;
mod options;
mod plot;
mod polling;
mod report;
mod round;
mod stage;
mod tap;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use testkit::fixture;
use testkit::harness::{block_on, is_required};
use testkit::usage;

use cases::Case;
use options::{Ask, At, Options};
use report::Sample;
use stage::Stage;
use tokio::signal::unix::{SignalKind, signal};

/// Prints a progress line; stdout is for the table.
macro_rules! say {
    ($($arg:tt)*) => { eprintln!("burst: {}", format_args!($($arg)*)) };
}

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(Ask::Run(options)) => options,
        Ok(Ask::Poll(kubeconfig, flags)) => return finish(block_on(polling::run(&kubeconfig, &flags))),
        Ok(Ask::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            say!("{why}");
            return ExitCode::from(2);
        }
    };
    let binary = match fixture::find() {
        Ok(binary) => binary,
        Err(why) if options.small && !is_required("REQUIRE_FIXTURE") => {
            println!("burst: skipped: {why}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            say!("FAILED: {why}");
            return ExitCode::FAILURE;
        }
    };
    finish(block_on(run_or_stop(&binary, &options)))
}

fn finish(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Ctrl-C and SIGTERM end the run at once: dropping it ends every process and removes the directory.
async fn run_or_stop(binary: &Path, options: &Options) -> Result<(), String> {
    let stopped = async {
        let mut terminate = signal(SignalKind::terminate()).map_err(|why| format!("listen for SIGTERM: {why}"))?;
        tokio::select! {
            _ = terminate.recv() => Err("stopped by SIGTERM".to_owned()),
            _ = tokio::signal::ctrl_c() => Err("stopped by Ctrl-C".to_owned()),
        }
    };
    tokio::select! {
        done = run(binary, options) => done,
        stopped = stopped => stopped,
    }
}

async fn run(binary: &Path, options: &Options) -> Result<(), String> {
    if !options.small {
        usage::check_fresh(Path::new(env!("CARGO_BIN_EXE_cronjob-controller")))?;
    }
    let mut samples = if options.append { csv::read(&options.out)? } else { Vec::new() };
    let first = samples.iter().map(|sample| sample.round + 1).max().unwrap_or(0);
    say!("{} rounds of {} cases", options.rounds, options.cases.len());
    // A later contender must not inherit the heap and the history of earlier ones. Without measurements, one stage is
    // enough.
    let mut shared = if options.small { Some(Stage::start(binary).await?) } else { None };
    for round in first..first + options.rounds {
        for case in turns(&options.cases, round) {
            say!("round {}: {}", round + 1, case.describe());
            let (sample, stage) = on_stage(binary, shared.take(), case, options.at, round).await?;
            say!("    {}", sample.one_line());
            samples.push(sample);
            shared = options.small.then_some(stage);
        }
        publish(&samples, &options.out)?;
    }
    println!("{}", report::markdown(&samples));
    if !options.small {
        say!("raw skews, rounds and plot are in {}", options.out.display());
    }
    Ok(())
}

/// Every other round runs in reverse order, so that no case always runs last on a machine under load.
fn turns(cases: &[Case], round: usize) -> Vec<&Case> {
    if round.is_multiple_of(2) { cases.iter().collect() } else { cases.iter().rev().collect() }
}

/// Runs the case on `stage`, or on a fresh one.
async fn on_stage(
    binary: &Path,
    stage: Option<Stage>,
    case: &Case,
    at: At,
    round: usize,
) -> Result<(Sample, Stage), String> {
    let stage = match stage {
        Some(stage) => stage,
        None => Stage::start(binary).await?,
    };
    match round::run(&stage, case, at, round).await {
        Ok(sample) => Ok((sample, stage)),
        Err(why) => Err(format!("{why}\n{}", stage.keep_logs())),
    }
}

/// Writes the samples so far, so that a stopped run keeps its complete rounds.
fn publish(samples: &[Sample], out: &PathBuf) -> Result<(), String> {
    std::fs::create_dir_all(out).map_err(|why| format!("make {}: {why}", out.display()))?;
    csv::write(samples, out)?;
    plot::write(samples, &out.join("burst.svg"))
}
