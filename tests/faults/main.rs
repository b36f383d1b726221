//! The fault matrix: what the controller does when something breaks in the middle of its work, against a real etcd
//! and kube-apiserver.
//!
//! Each case has a control plane of its own, brings a burst of CronJobs due at one instant, breaks one thing, and
//! judges every CronJob afterwards: one Job for its slot, seen once by a witness that watches from the beginning, and
//! a status that names it. It panics where that is not so and otherwise returns its figures.
//!
//! `make fault-matrix` runs all cases and prints a table; arguments behind `--matrix` are substrings of case names.
//! `make soak` keeps thousands of minutely CronJobs for an hour and kills what it runs on every few minutes.
//! Without arguments, as in `cargo test`, only a small burst with one kill is run, where the fixture is built.
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
