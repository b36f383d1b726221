//! The script: several hundred requests in some dozens of scenarios.
// The script is one long table in the DSL, and functions that reduce an answer may destructure it.
#![allow(clippy::wildcard_imports, clippy::needless_pass_by_value)]

mod apply;
mod cronjobs;
mod discovery;
mod expressions;
mod gc;
mod jobs;
mod kinds;
mod lists;
mod meta;
mod patches;
mod pods;
mod tables;
mod verbs;
mod watches;

use super::dsl::{Scenario, Step};

pub fn all() -> Vec<Scenario> {
    let parts = [
        verbs::scenarios(),
        meta::scenarios(),
        cronjobs::scenarios(),
        jobs::scenarios(),
        pods::scenarios(),
        kinds::scenarios(),
        patches::scenarios(),
        apply::scenarios(),
        lists::scenarios(),
        watches::scenarios(),
        gc::scenarios(),
        tables::scenarios(),
        discovery::scenarios(),
        expressions::scenarios(),
    ];
    let all: Vec<Scenario> = parts.into_iter().flatten().collect();
    let mut names: Vec<&str> = all.iter().map(|scenario| scenario.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "two scenarios have one name");
    all
}

fn scenario(name: &'static str, steps: Vec<Step>) -> Scenario {
    Scenario { name, alone: false, steps }
}
