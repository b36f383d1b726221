//! A leader that is stopped (SIGSTOP) past its lease and then continues, unaware of the elapsed time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::burst::Burst;
use testkit::driver::{LEASES, eventually};
use testkit::fixture::account::{NAME, SYSTEM_NAMESPACE, account_kubeconfig};
use testkit::world::World;

use super::{Spread, account_requests, count, received};
use crate::luck::Luck;

const BURST: usize = 1_000;
const ROUNDS: usize = 3;
/// A short lease shortens the test; the ratios are the defaults'.
const ELECTION: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];
/// The default number of concurrent syncs.
const WORKERS: usize = 32;
/// How long requests on their way may take to arrive.
const ON_ITS_WAY: TimeDelta = TimeDelta::seconds(1);
/// Long enough for a lease to expire and for a candidate to notice, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(15);

pub async fn leader(world: Arc<World>, mut luck: Luck) -> String {
    let mut seen = Seen::default();
    for round in 0..ROUNDS {
        one_round(&world, &mut luck, round, &mut seen).await;
    }
    let Seen { at_freeze, frozen, late, counted, settled } = seen;
    format!(
        "frozen at {at_freeze} of {BURST} Jobs for {frozen:.1} s; thawed it began no write; {late} creates that were on \
         their way arrived, {counted} in time to count; exit code 1; settled {settled:.1} s later"
    )
}

/// The results of the rounds.
#[derive(Default)]
struct Seen {
    at_freeze: Spread,
    /// In seconds.
    frozen: Spread,
    /// Requests of the resumed leader, and those that had an effect.
    late: Spread,
    counted: Spread,
    /// In seconds after the end of the resumed leader.
    settled: Spread,
}

async fn one_round(world: &World, luck: &mut Luck, round: usize, seen: &mut Seen) {
    // Two tokens of one account: the audit log distinguishes them.
    let [first, second] = ["first", "second"].map(|name| format!("{name}-{round}"));
    let first_kubeconfig = account_kubeconfig(&world.plane, SYSTEM_NAMESPACE, NAME, &first).await.unwrap();
    let second_kubeconfig = account_kubeconfig(&world.plane, SYSTEM_NAMESPACE, NAME, &second).await.unwrap();
    let before = holder(world).await;
    let leader = world.start_controller_as(&first, &first_kubeconfig, &ELECTION, &[]).await.unwrap();
    let led = next_holder(world, before.as_ref()).await;
    let successor = world.start_controller_as(&second, &second_kubeconfig, &ELECTION, &[]).await.unwrap();

    let burst = Burst::upcoming(world, &format!("frozen-{round}"), BURST, &json!({})).await;
    burst.seen_at_least(luck.number(1, BURST / 2)).await;
    leader.signal(Signal::STOP);
    let frozen = Utc::now();
    seen.at_freeze.add(count(burst.seen()));
    next_holder(world, Some(&led)).await;
    // The successor still has the rest of the burst to do; the resumed leader believes it does, too.
    let at_takeover = burst.seen();
    burst.seen_at_least((at_takeover + 50).min(BURST)).await;
    leader.signal(Signal::CONT);
    let thawed = Utc::now();
    let status = leader.ended(Duration::from_secs(10)).await.unwrap();
    assert_eq!(status.code(), Some(1), "a leader that lost its lease ends with {status}");
    seen.settled.add(burst.settled(Duration::from_secs(60)).await.as_secs_f64());
    successor.terminate(Duration::from_secs(10)).await.unwrap();
    burst.clear().await;

    let late = writes_since(world, &first_kubeconfig, thawed).await;
    // What a worker had begun to send when it was stopped may still arrive: one request of each.
    let begun_afterwards: Vec<&Value> =
        late.iter().filter(|event| received(event) > thawed + ON_ITS_WAY || event["verb"] != "create").collect();
    assert!(begun_afterwards.is_empty() && late.len() <= WORKERS, "after its thaw it wrote {late:?}");
    let has_effect = |event: &&Value| event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
    seen.late.add(count(late.len()));
    seen.counted.add(count(late.iter().filter(has_effect).count()));
    seen.frozen.add((thawed - frozen).as_seconds_f64());
}

async fn holder(world: &World) -> Option<String> {
    let lease = world.system().get(LEASES, NAME).await?;
    lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(ToOwned::to_owned)
}

async fn next_holder(world: &World, before: Option<&String>) -> String {
    eventually(format!("a leader other than {before:?}"), TAKEOVER, || async {
        holder(world).await.filter(|holder| Some(holder) != before)
    })
    .await
}

/// The writes that reached the API server with this kubeconfig's token after `since`.
async fn writes_since(world: &World, kubeconfig: &Path, since: DateTime<Utc>) -> Vec<Value> {
    let id = format!("JTI={}", token_id(kubeconfig));
    let mut own = account_requests(world).await;
    own.retain(|event| event["user"]["extra"]["authentication.kubernetes.io/credential-id"][0] == id.as_str());
    assert!(!own.is_empty(), "the audit log has no request with {id}");
    own.retain(|event| {
        received(event) > since && !["get", "list", "watch"].contains(&event["verb"].as_str().unwrap_or_default())
    });
    own
}

/// The `jti` of the token in a kubeconfig of the fixture's.
fn token_id(kubeconfig: &Path) -> String {
    let kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(kubeconfig).unwrap()).unwrap();
    let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice::<Value>(&claims).unwrap()["jti"].as_str().unwrap().to_owned()
}
