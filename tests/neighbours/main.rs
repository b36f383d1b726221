//! The programs beside this one that read CronJobs: Argo CD, Flux, kube-state-metrics and k9s; and other schedulers.
//!
//! Guarantee: what the documents say of them is what their own libraries do, in the versions of go.mod. The programs of the Go
//! module in this directory call the libraries; without Go these tests are skipped with a message.
#![allow(clippy::unwrap_used, missing_docs)]

mod argo;
mod dialects;
mod flux;
mod k9s;
mod schedulers;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use testkit::{repository, tools};

/// The programs that were built, or could not be.
static BUILT: Mutex<BTreeMap<&str, Option<PathBuf>>> = Mutex::new(BTreeMap::new());

/// Builds a program of the Go module, once; `None`, and a message, if that is not possible here.
fn build(program: &'static str) -> Option<PathBuf> {
    let build = || {
        if !tools::has(program, "go", &["version"]) {
            return None;
        }
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
        // As the fixture is built, so that packages of both are compiled once.
        let output = Command::new("go")
            .args(["build", "-o", path.to_str().unwrap(), &format!("./{program}")])
            .current_dir(repository().join("tests/neighbours"))
            .env("CGO_ENABLED", "0")
            .output()
            .unwrap();
        if !output.status.success() {
            let why = format!("go build ./{program}: {}", String::from_utf8_lossy(&output.stderr));
            tools::without(program, &why, "REQUIRE_TOOLS");
            return None;
        }
        Some(path)
    };
    BUILT.lock().unwrap().entry(program).or_insert_with(build).clone()
}

/// What a program of the Go module prints for an input; `None` if it cannot be built here.
fn go(program: &'static str, input: &str, kubeconfig: &Path) -> Option<String> {
    let path = build(program)?;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("input");
    std::fs::write(&file, input).unwrap();
    // Schedules without a zone are in UTC.
    let mut command = Command::new(path);
    command.env("TZ", "UTC").env("KUBECONFIG", kubeconfig).stdin(File::open(file).unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}
