//! A namespace that is being deleted while its CronJobs are due.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use http::Method;
use serde_json::{Value, json};
use testkit::burst::Burst;
use testkit::driver::{eventually, request};
use testkit::world::World;

use super::{account_requests, received, seconds};
use crate::luck::Luck;

const BURST: usize = 1_000;
/// How long the namespace stays terminating with all its objects.
const LIMBO: Duration = Duration::from_secs(20);
/// The requests for one CronJob in that time: a backoff from 5 ms, doubled each time, makes thirteen tries.
const TRIES: usize = 15;

pub async fn terminating(world: Arc<World>, mut luck: Luck) -> String {
    let admin = world.plane.admin();
    let controller = world.start_controller("terminating", &[]).await.unwrap();
    let neighbour = Burst::upcoming(&world, "neighbour", BURST, &json!({})).await;
    let doomed = Burst::due(&world, "doomed", BURST, neighbour.slot, |_| json!({})).await;
    doomed.seen_at_least(luck.number(1, BURST / 2)).await;
    // Without the namespace controller its objects stay.
    request(&admin, Method::DELETE, "/api/v1/namespaces/doomed", None).await.unwrap();
    let deleted = Utc::now();
    let at_deletion = doomed.seen();
    neighbour.settled(Duration::from_secs(60)).await;
    let neighbours = neighbour.last_seen() - neighbour.slot;
    tokio::time::sleep(LIMBO).await;

    let creates = creates_in_doomed(&world).await;
    let after = creates.iter().filter(|event| received(event) > deleted).count();
    let waiting = BURST - doomed.seen();
    assert!(waiting > 0, "the burst was over before the namespace was deleted");
    assert!(after <= waiting * TRIES, "{after} creates for {waiting} CronJobs in {LIMBO:?}");

    // With it they are deleted, and the requests end.
    let mut collector = world.plane.component("kube-controller-manager");
    collector.arg(format!("--kubeconfig={}", world.plane.admin_kubeconfig().display())).args([
        "--controllers=namespace-controller",
        "--leader-elect=false",
        "--secure-port=0",
    ]);
    let _collector = world.plane.spawn("namespace-controller", &mut collector).unwrap();
    eventually("the namespace to be gone", Duration::from_secs(60), || async {
        request(&admin, Method::GET, "/api/v1/namespaces/doomed", None).await.err()
    })
    .await;
    let at_the_end = creates_in_doomed(&world).await.len();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let later = creates_in_doomed(&world).await.len();
    assert_eq!(later, at_the_end, "creates for CronJobs that are gone");
    controller.check_running().unwrap();
    format!(
        "deleted at {at_deletion} Jobs of {BURST}; the neighbours' last Job {} after the slot; {after} creates for \
         {waiting} waiting CronJobs in {} of limbo, none once they were gone",
        seconds(neighbours.to_std().unwrap_or_default()),
        seconds(LIMBO)
    )
}

async fn creates_in_doomed(world: &World) -> Vec<Value> {
    let mut requests = account_requests(world).await;
    requests.retain(|event| event["verb"] == "create" && event["objectRef"]["namespace"] == "doomed");
    requests.retain(|event| event["objectRef"]["resource"] == "jobs");
    requests
}
