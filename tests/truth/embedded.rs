//! The embedded server as a target: in process, over its tower service, on paused time.

use std::sync::Arc;

use apimachinery::clock::{Clock, TestClock};
use apiserver::{ApiServer, Config, Resource, discovery, kinds};
use chrono::{DateTime, TimeZone, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::compare::Recording;
use super::drive::{self, Target};
use super::dsl::Scenario;
use super::mutations;

struct Embedded {
    server: ApiServer,
    clock: Arc<TestClock>,
}

impl Target for Embedded {
    fn client(&self) -> kube::Client {
        self.server.client()
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    fn compact(&self) -> BoxFuture<'_, Result<(), String>> {
        self.server.compact();
        futures::future::ready(Ok(())).boxed()
    }
}

/// Runs the scenarios in sequence against a server.
pub fn ask(scenarios: &[Scenario]) -> Result<Recording, String> {
    // Definitions and policies are not among the kinds of an ordinary server.
    let (extended, ordinary): (Vec<_>, Vec<_>) =
        scenarios.iter().partition(|scenario| scenario.name.starts_with("expressions-"));
    let mut answers = Recording::new();
    for (scenarios, kinds) in [(ordinary, kinds::builtin()), (extended, kinds::all())] {
        answers.extend(on_server(kinds, async |target| {
            let mut answers = Recording::new();
            for scenario in scenarios {
                answers.insert(scenario.name.to_owned(), drive::run(target, scenario).await?);
            }
            Ok(answers)
        })?);
    }
    Ok(answers)
}

/// Creates mutated objects.
pub fn ask_mutations(objects: &mutations::Objects) -> Result<Vec<mutations::Answer>, String> {
    on_server(kinds::builtin(), async |target| mutations::ask(target, objects).await)
}

fn on_server<T>(kinds: Vec<Resource>, work: impl AsyncFnOnce(&dyn Target) -> Result<T, String>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|why| format!("start the runtime: {why}"))?;
    runtime.block_on(async {
        let start = Utc.with_ymd_and_hms(2026, 1, 15, 10, 0, 30).single().expect("a time that exists");
        let clock = TestClock::new(start);
        let config = Config { discovery: Some(discovery::respond), ..Config::new(clock.clone(), kinds) };
        work(&Embedded { server: ApiServer::new(config), clock }).await
    })
}
