//! CronJobs that are written to cost the controller much, and what they cost.
//!
//! Every manifest is within the API server's limits, and needs no more than the right to edit CronJobs in one namespace. The
//! API server is `dev` in a process of its own, and the controller is another process with leader election, so that both are
//! measured apart. All requests stay on 127.0.0.1. A command or a write that takes longer than half a minute is given up.
//!
//! `make hostile` runs all cases and prints a table; arguments after `--table` are substrings of case names. `HOSTILE_BINARY`
//! measures another build, such as an earlier one, and `HOSTILE_MINUTES` sets how long the updates last. The exit code says
//! whether each figure meets its target. Without arguments, as in `cargo test`, only a small case runs, which asserts what does
//! not depend on the machine.
#![allow(clippy::unwrap_used)]

mod cases;
mod cluster;
mod command;
mod flood;
mod manifests;
mod runner;
mod small;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main(&cases::all())
}
