//! Programs that a test needs beside cargo, and the message if one is missing.

use std::io::Write as _;
use std::process::Command;

use crate::harness::is_required;

/// Whether the program exists; `version` is an argument that prints its version. See [`skip`].
pub fn has(test: &str, program: &str, version: &[&str]) -> bool {
    let found = Command::new(program).args(version).output().is_ok_and(|output| output.status.success());
    if !found {
        skip(test, &format!("there is no {program}"), "REQUIRE_TOOLS");
    }
    found
}

pub fn has_kubectl(test: &str) -> bool {
    has(test, "kubectl", &["version", "--client"])
}

pub fn has_tmux(test: &str) -> bool {
    has(test, "tmux", &["-V"])
}

/// Whether a program that supports `--version` exists.
pub fn has_program(test: &str, program: &str) -> bool {
    has(test, program, &["--version"])
}

/// Reports what is missing; see [`skip`].
pub fn without(test: &str, why: &str, required: &str) {
    skip(test, why, required);
}

/// Reports that the control plane is not built or does not start.
pub fn without_fixture(test: &str, why: &str) {
    skip(test, why, "REQUIRE_FIXTURE");
}

/// Reports a part of a test that is skipped because the Kubernetes release of the fixture does not serve what it needs.
pub fn not_served(test: &str, why: &str) {
    report(test, why);
}

/// Reports that a test is skipped.
///
/// # Panics
/// If the variable `required` is 1, which means that nothing may be missing.
fn skip(test: &str, why: &str, required: &str) {
    assert!(!is_required(required), "{why}");
    report(test, why);
}

/// Prints the message past the test harness, which hides the output of a passing test.
fn report(test: &str, why: &str) {
    writeln!(std::io::stdout(), "{test}: skipped: {why}").unwrap();
}
