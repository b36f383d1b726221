//! The burst: thousands of CronJobs due at one instant on a real control plane, and how late each Job is.
//!
//! Contenders take turns, each on a control plane of its own that nobody has used before (etcd and kube-apiserver alone,
//! no other controllers): the bare writes of the same Jobs and statuses (the floor), kube-controller-manager's CronJob
//! controller, this crate's binary, and a polling controller as Kubernetes had it before 1.21. Every contender has a
//! ServiceAccount of its own with RBAC, none is audited, and the same three watches are open for each. Time runs from
//! the due instant to the moment the bytes of a Job's ADDED event arrive; nothing is decoded before the round is over.
//!
//! `make bench-burst` builds what is needed and runs the standard table; `BURST_ARGS` passes other arguments on, and
//! `--help` lists them. `cargo test` runs a small round where the fixture is built, and says so where it is not.
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
use testkit::usage;

use cases::Case;
use options::{Ask, At, Options};
use report::Sample;
use stage::Stage;
use tokio::signal::unix::{SignalKind, signal};

/// Prints a line for the person who waits; stdout is the table's.
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
        Err(why) if options.small && std::env::var_os("REQUIRE_FIXTURE").is_none_or(|value| value != "1") => {
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

fn block_on(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    // The fixture's clients and kube's own need one; a second installation is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("start the runtime");
    runtime.block_on(work)
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

/// Ctrl-C and SIGTERM end the run where it is: dropping it ends every process and removes the directory.
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
    // Who comes later must not find the heap and the history that others left. Where nothing is measured, one will do.
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

/// Every other round goes backwards: what comes late in a round does so on a machine that others have worked on.
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

/// Writes what is known so far, so that a run that is stopped leaves its whole rounds.
fn publish(samples: &[Sample], out: &PathBuf) -> Result<(), String> {
    std::fs::create_dir_all(out).map_err(|why| format!("make {}: {why}", out.display()))?;
    csv::write(samples, out)?;
    plot::write(samples, &out.join("burst.svg"))
}
