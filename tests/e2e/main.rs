//! End-to-end tests: a real etcd, kube-apiserver and garbage collector, and the CronJob controller as a separate
//! process, with only the rights that `manifests/` grants, and under `manifests/guard`.
//!
//! One control plane serves the whole run. The scenarios of the first group share one controller and run in parallel,
//! each in a namespace of its own, since most of their time is waiting for the clock. Those of the second group kill
//! processes, and run in sequence, each with its own controllers.
//!
//! Without kubectl or the fixture's binary, the run is skipped with a message; with `REQUIRE_FIXTURE=1` that is a
//! failure. `make fixture` builds the binary; `CONTROLPLANE_BIN` names another. `E2E_CONTROLLER=in-tree` tests the
//! controller inside kube-controller-manager instead, which shows whether an expectation is upstream's. Arguments are
//! substrings of scenario names; `--list` lists them.
#![allow(clippy::unwrap_used)]

mod rights;
mod runner;
mod scenarios;

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main(&scenarios::all())
}
