//! The whole controller under faults, in virtual time, from one seed.
//!
//! Two or three replicas (informers, workqueue, workers, leader election, recorder) run against the in-memory API server
//! in one thread on paused time. A seed decides the world: its CronJobs, what people do to them, what becomes of Jobs, and
//! what goes wrong. Every write is judged when it is sent and when it is committed; when all faults have ended, what must
//! hold in calm is judged. The same seed gives the same history.
//!
//! `SIM_SEED` is the first seed, `SIM_RUNS` how many follow, `SIM_THREADS` how many run at a time. A failure prints the
//! seed, shrinks the scenario, and prints its history.
#![allow(clippy::unwrap_used, clippy::pedantic, clippy::explicit_auto_deref)]

mod agenda;
mod call;
mod calm;
mod coverage;
mod disguise;
mod faults;
mod feed;
mod invariants;
mod job_world;
mod journal;
mod model;
mod network;
mod people;
mod rng;
mod run;
mod scenario;
mod shrink;
mod sim;
mod view;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::main()
}
