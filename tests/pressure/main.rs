//! The controller under pressure: slow and broken admission, noisy tenants, large objects and hostile clients, beside the
//! in-tree controller, against a real etcd and kube-apiserver.
//!
//! Each case and contender has its own control plane and returns figures; both controllers run with leader election and
//! a ServiceAccount's rights. A watch of the test measures delays. All load and all webhooks are on 127.0.0.1, bounded,
//! and end by themselves.
//!
//! `make pressure` runs all cases with the release build and prints a table of both. Arguments after `--table` are
//! substrings of case names, and `PRESSURE_CONTENDERS=ours` selects columns likewise. The exit code says whether this
//! controller's figures meet their targets. Without arguments, as in `cargo test`, only one small case runs, if the
//! fixture is built.
#![allow(clippy::unwrap_used)]

mod cases;
mod contenders;
mod flood;
mod lateness;
mod runner;
mod table;
mod webhook;

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main(&cases::all())
}
