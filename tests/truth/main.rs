//! The truth test: one script of requests, run against the embedded API server and against the real kube-apiserver.
//!
//! Status code, content type, warnings and body of every answer must be equal after `normalize`. The only exceptions
//! are the differences listed in `known`, which `crates/apiserver/src/lib.rs` explains. An entry of that list that no
//! longer occurs is a failure, too.
//!
//! `recorded.json` holds the real server's answers, so that the embedded one can be tested without the fixture. Where
//! the fixture is built (`make fixture`; `CONTROLPLANE_BIN` names another) the recording itself is checked against the
//! real server; with `REQUIRE_FIXTURE=1` its absence is a failure. `cargo test --test truth -- --record` writes the
//! recording again. Other arguments are substrings of scenario names.
#![allow(clippy::unwrap_used)]

mod compare;
mod drive;
mod dsl;
mod embedded;
mod known;
mod mutations;
mod normalize;
mod real;
mod script;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;
use testkit::fixture::binary;
use testkit::harness::is_required;

use futures::StreamExt;

use compare::{Difference, Recording, differences, judge};
use drive::Target;
use dsl::{Scenario, Step};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth/recorded.json");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let scenarios: Vec<Scenario> = script::all()
        .into_iter()
        .filter(|scenario| filters.is_empty() || filters.iter().any(|filter| scenario.name.contains(filter.as_str())))
        .collect();
    if has("--list") {
        for scenario in &scenarios {
            println!("{}: test", scenario.name);
        }
        return ExitCode::SUCCESS;
    }
    let requests = scenarios.iter().flat_map(|scenario| &scenario.steps).map(|step| match step {
        Step::Ask(..) | Step::Open(..) => 1,
        Step::Race(_, requests) => requests.len(),
        Step::Close(..) | Step::Compact => 0,
    });
    println!("truth: {} scenarios, {} requests", scenarios.len(), requests.sum::<usize>());
    let is_whole = filters.is_empty();
    let asks_for_mutations = is_whole || filters.iter().any(|filter| "mutations".contains(filter.as_str()));
    let result =
        if scenarios.is_empty() { Ok(()) } else { run(&scenarios, is_whole, has("--record"), has("--no-real")) };
    let mutated = if asks_for_mutations { mutate(has("--record"), has("--no-real")) } else { Ok(()) };
    match result.and(mutated) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("truth: FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(scenarios: &[Scenario], is_whole: bool, is_recording: bool, without_real: bool) -> Result<(), String> {
    let mut recorded = read_recording()?;
    match binary::find() {
        _ if without_real => {}
        Ok(binary) => {
            let started = Instant::now();
            let answers = ask_real(&binary, scenarios.iter())?;
            println!("truth: the real server answered in {:.1} s", started.elapsed().as_secs_f64());
            if is_recording {
                recorded.retain(|name, _| !is_whole || answers.contains_key(name));
                recorded.extend(answers);
                std::fs::write(RECORDED, compare::to_text(&recorded)).map_err(|why| format!("{RECORDED}: {why}"))?;
            } else {
                let mut stale = differences(&recorded, &answers);
                if !stale.is_empty() {
                    stale.iter().for_each(print);
                    // The real server ends a watch at random before or after an event of its last moment.
                    println!("truth: it is asked once more");
                    let names: BTreeSet<&str> = stale.iter().map(|one| one.scenario.as_str()).collect();
                    let again = ask_real(&binary, scenarios.iter().filter(|one| names.contains(one.name)))?;
                    stale = differences(&recorded, &again);
                    stale.iter().for_each(print);
                }
                if !stale.is_empty() {
                    return Err(format!("the real server answers otherwise than recorded in {} places", stale.len()));
                }
                println!("truth: the recording is what the real server answers");
            }
        }
        Err(why) if is_recording || is_required("REQUIRE_FIXTURE") => {
            return Err(why);
        }
        Err(why) => println!("truth: the recording is not checked against the real server: {why}"),
    }
    let started = Instant::now();
    let answers = embedded::ask(scenarios)?;
    println!("truth: the embedded server answered in {:.1} s", started.elapsed().as_secs_f64());
    let whole = concat!(env!("CARGO_TARGET_TMPDIR"), "/truth-embedded.json");
    std::fs::write(whole, compare::to_text(&answers)).map_err(|why| format!("{whole}: {why}"))?;
    report(&recorded, &answers, is_whole).inspect_err(|_| println!("truth: the whole answers are in {whole}"))
}

/// Compares how the two servers judge mutated objects.
fn mutate(is_recording: bool, without_real: bool) -> Result<(), String> {
    let objects = mutations::Objects::drawn()?;
    let started = Instant::now();
    let here = embedded::ask_mutations(&objects)?;
    println!("mutations: the embedded server answered in {:.1} s", started.elapsed().as_secs_f64());
    match binary::find() {
        Ok(binary) if !without_real => {
            let started = Instant::now();
            let real = on_real(&binary, async |target| mutations::ask(target, &objects).await)?;
            println!("mutations: the real server answered in {:.1} s", started.elapsed().as_secs_f64());
            if is_recording {
                mutations::record(&objects, &real)?;
            }
            mutations::compare(&objects, &real, &here)?;
            // The recording is for those who have no real server: it must be one of these objects.
            let recorded = mutations::recorded(&objects);
            recorded.map_or(Ok(()), |recorded| mutations::compare_recorded(&objects, &recorded, &here))
        }
        Err(why) if is_required("REQUIRE_FIXTURE") => Err(why),
        _ => match mutations::recorded(&objects) {
            Some(recorded) => mutations::compare_recorded(&objects, &recorded, &here),
            None => Err("these mutations have no recorded answers; build the fixture (make fixture)".to_owned()),
        },
    }
}

/// Runs `work` against the real control plane.
fn on_real<T>(binary: &std::path::Path, work: impl AsyncFnOnce(&real::Real) -> Result<T, String>) -> Result<T, String> {
    // Both kube's client and rcgen need one; a second installation is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    runtime.block_on(async {
        let target = real::Real::start(binary).await?;
        work(&target).await
    })
}

fn report(recorded: &Recording, answers: &Recording, is_whole: bool) -> Result<(), String> {
    let found = differences(recorded, answers);
    let (unknown, gone) = judge(&found, known::KNOWN);
    let total: usize = answers.values().map(Vec::len).sum();
    let places = |list: &mut dyn Iterator<Item = &Difference>| {
        list.map(|one| (one.scenario.as_str(), one.step.as_str())).collect::<std::collections::BTreeSet<_>>().len()
    };
    let different = places(&mut found.iter());
    let wrong = places(&mut unknown.iter().copied());
    for one in &unknown {
        print(one);
    }
    let gone: Vec<_> = if is_whole { gone } else { Vec::new() };
    for entry in &gone {
        println!("  no longer differs: {}: {} {} ({})", entry.scenario, entry.step, entry.path, entry.why);
    }
    println!(
        "truth: {total} answers: {} equal, {} differ as known ({} entries), {wrong} differ otherwise",
        total - different,
        different - wrong,
        known::KNOWN.len()
    );
    if wrong == 0 && gone.is_empty() {
        return Ok(());
    }
    Err(format!("{wrong} answers differ from the real server's, {} known differences are gone", gone.len()))
}

fn print(one: &Difference) {
    let short = |value: &serde_json::Value| {
        let text = value.to_string();
        if text.chars().count() > 600 { text.chars().take(600).collect::<String>() + "…" } else { text }
    };
    println!(
        "  {}: {}\n    {}\n      real: {}\n      here: {}",
        one.scenario,
        one.step,
        one.path,
        short(&one.wanted),
        short(&one.got)
    );
}

fn read_recording() -> Result<Recording, String> {
    match std::fs::read_to_string(RECORDED) {
        Ok(text) => serde_json::from_str(&text).map_err(|why| format!("{RECORDED}: {why}")),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(Recording::new()),
        Err(why) => Err(format!("{RECORDED}: {why}")),
    }
}

fn ask_real<'a>(binary: &std::path::Path, scenarios: impl Iterator<Item = &'a Scenario>) -> Result<Recording, String> {
    let (alone, together): (Vec<_>, Vec<_>) = scenarios.partition(|scenario| scenario.alone);
    on_real(binary, async |target| {
        let mut answers = Recording::new();
        let together = together.into_iter().map(|scenario| one(target, scenario));
        let mut running = futures::stream::iter(together).buffer_unordered(8);
        while let Some(result) = running.next().await {
            answers.extend([result?]);
        }
        for scenario in alone {
            answers.extend([one(target, scenario).await?]);
        }
        Ok(answers)
    })
}

async fn one(target: &dyn Target, scenario: &Scenario) -> Result<(String, drive::Answers), String> {
    Ok((scenario.name.to_owned(), drive::run(target, scenario).await?))
}
