//! The start of test programs that have a harness of their own.

use std::path::Path;
use std::process::ExitCode;

use crate::fixture;

/// Whether the environment variable is 1: the test must not be skipped for what it names.
pub fn is_required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Runs a harness with the binary of the control plane. Without it the harness fails if it `is_required`, else it is
/// skipped.
pub fn with_fixture(harness: &str, is_required: bool, run: impl FnOnce(&Path) -> bool) -> ExitCode {
    let passed = match fixture::find() {
        Ok(binary) => run(&binary),
        Err(why) => {
            println!("{harness}: {}: {why}", if is_required { "FAILED" } else { "skipped" });
            !is_required
        }
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `work` on a runtime with a thread for each core.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    // The tests' clients and servers and kube's client need a crypto provider; a second installation changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("start the runtime");
    runtime.block_on(work)
}
