//! What the tests and benches of this workspace share.
//!
//! Guarantee: nothing of the controller is linked here, so that it is judged from outside: as a process, or by what it does
//! to an API server. What a test lacks on this machine is said in one line ([`tools`]).
// What is skipped is said past the harness, which swallows what `println!` prints.
#![allow(missing_docs, clippy::explicit_write, clippy::new_without_default, clippy::unwrap_used)]

pub mod burst;
pub mod controller_kinds;
pub mod dev_client;
pub mod driver;
pub mod embedded;
pub mod fixture;
pub mod rotation;
pub mod sightings;
pub mod tools;
pub mod usage;
pub mod verdict;
pub mod world;

use std::path::{Path, PathBuf};

/// The repository.
pub fn repository() -> &'static Path {
    // This crate is two directories below it.
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("every crate is in a directory of the repository")
}

/// The controller that cargo has built for the running test or bench: it lies beside the directory of the tests.
pub fn controller() -> PathBuf {
    let test = std::env::current_exe().expect("the system says which file a process runs");
    let profile = test.ancestors().nth(2).expect("cargo puts tests two directories below the profile's");
    profile.join("cronjob-controller")
}
