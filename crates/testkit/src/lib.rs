//! Shared code of the workspace's tests and benches.
//!
//! Guarantee: this crate does not link the controller. Tests observe it from outside: as a process, or by its effects on an API
//! server. A tool that this machine lacks is reported in one line ([`tools`]).
// Messages about skipped tests bypass the harness, which hides the output of `println!`.
#![allow(missing_docs, clippy::explicit_write, clippy::new_without_default, clippy::unwrap_used)]

pub mod burst;
pub mod controller_kinds;
pub mod dev_client;
pub mod driver;
pub mod embedded;
pub mod fixture;
pub mod harness;
pub mod night;
pub mod rotation;
pub mod sightings;
pub mod tools;
pub mod usage;
pub mod verdict;
pub mod world;

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn repository() -> &'static Path {
    // This crate is two directories below the root.
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("every crate is in a directory of the repository")
}

/// The controller binary that cargo has built for the running test or bench. It is in the parent of the tests' directory.
pub fn controller() -> PathBuf {
    let test = std::env::current_exe().expect("the system says which file a process runs");
    let profile = test.ancestors().nth(2).expect("cargo puts tests two directories below the profile's");
    profile.join("cronjob-controller")
}
