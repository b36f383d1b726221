//! End-to-end tests: a real etcd, kube-apiserver and garbage collector, and the CronJob controller as a process of
//! its own, with the rights that `manifests/` gives it and no others.
//!
//! One control plane serves the whole run. The scenarios of the first group share one controller and run side by
//! side, each in a namespace of its own, since most of their time is waiting for the clock; those of the second
//! group kill things, and run one after the other, each with controllers of its own.
//!
//! Where kubectl or the fixture's binary is missing the run is skipped with one line that says why; with
//! `REQUIRE_FIXTURE=1` that is a failure. `make fixture` builds the binary; `CONTROLPLANE_BIN` names another.
//! `E2E_CONTROLLER=in-tree` judges the controller inside kube-controller-manager instead, which shows whether an
//! expectation is upstream's. Arguments are substrings of scenario names; `--list` lists them.
#![allow(clippy::unwrap_used)]

mod rights;
mod runner;
mod scenarios;

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main(&scenarios::all())
}
