//! What a test needs beside cargo, and what it says where that is missing.

use std::io::Write as _;
use std::process::Command;

/// Whether there is such a program, which an argument or two make tell its version. See [`skip`].
fn has(test: &str, program: &str, version: &[&str]) -> bool {
    let found = Command::new(program).args(version).output().is_ok_and(|output| output.status.success());
    if !found {
        skip(test, &format!("there is no {program}"), "REQUIRE_TOOLS");
    }
    found
}

pub fn has_kubectl(test: &str) -> bool {
    has(test, "kubectl", &["version", "--client"])
}

/// A program that knows `--version`.
pub fn has_program(test: &str, program: &str) -> bool {
    has(test, program, &["--version"])
}

/// The control plane is not built, or does not start.
pub fn without_fixture(test: &str, why: &str) {
    skip(test, why, "REQUIRE_FIXTURE");
}

/// Says so past the harness, which swallows what a passing test prints.
///
/// # Panics
/// Where everything is meant to be there: the variable is 1.
fn skip(test: &str, why: &str, required: &str) {
    assert!(std::env::var_os(required).is_none_or(|value| value != "1"), "{why}");
    writeln!(std::io::stdout(), "{test}: skipped: {why}").unwrap();
}
