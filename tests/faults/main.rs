//! The fault matrix: the controller's behaviour when a dependency fails in the middle of its work, against a real etcd
//! and kube-apiserver.
//!
//! Each case has its own control plane, makes a burst of CronJobs due at one instant, and injects one fault. Afterwards
//! it checks every CronJob: one Job for its slot, seen once by an observer that watches from the beginning, and a
//! status that names it. It panics if a check fails and otherwise returns its figures.
//!
//! `make fault-matrix` runs all cases and prints a table; arguments after `--matrix` are substrings of case names.
//! `make soak` runs thousands of minutely CronJobs for an hour and kills the controller or the API server every few
//! minutes. Without arguments, as in `cargo test`, only a small burst with one kill runs, if the fixture is built.
//! `FAULTS_SEED` repeats the random instants of a run.
#![allow(clippy::unwrap_used)]

mod cases;
mod luck;
mod runner;
mod soak;

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main(&cases::all())
}
