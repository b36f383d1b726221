//! An API server with almost no capacity for this controller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use testkit::burst::Burst;
use testkit::driver::{eventually, request};
use testkit::fixture::account::{NAME, SYSTEM_NAMESPACE};
use testkit::world::World;

use super::{account_requests, seconds};
use crate::luck::Luck;

const BURST: usize = 1_000;

/// One nominal share, none borrowed, no queue: what exceeds a few requests at a time is answered with 429.
pub async fn squeezed(world: Arc<World>, _: Luck) -> String {
    let seats = squeeze(&world.plane.admin()).await;
    let burst = Burst::overdue(&world, "squeezed", BURST).await;
    let controller = world.start_controller("squeezed", &[]).await.unwrap();
    let started = Instant::now();
    burst.seen_at_least(BURST).await;
    let jobs = started.elapsed();
    burst.settled(Duration::from_secs(300)).await;
    let settled = started.elapsed();
    controller.kill();

    let requests = account_requests(&world).await;
    let is_write = |event: &Value, verb: &str, resource: &str| {
        event["verb"] == verb
            && event["objectRef"]["resource"] == resource
            && event["objectRef"]["namespace"] == "squeezed"
    };
    let succeeded = |event: &Value| event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
    let refused = requests.iter().filter(|event| event["responseStatus"]["code"] == 429).count();
    // A refused key is retried when the API server's Retry-After allows it, which can be long after all others.
    let creates =
        requests.iter().enumerate().filter(|(_, event)| is_write(event, "create", "jobs") && succeeded(event));
    let most = creates.map(|(at, _)| at).nth(BURST * 9 / 10).unwrap();
    let early =
        requests[..most].iter().filter(|event| is_write(event, "patch", "cronjobs") && succeeded(event)).count();
    assert!(refused > 0, "nothing was refused; the case is not what it says");
    assert!(early < BURST / 20, "{early} statuses were written before nine in ten Jobs");
    format!(
        "{seats} seats, {refused} requests answered with 429; {BURST} Jobs after {}, statuses after {}; {early} statuses \
         before nine in ten Jobs",
        seconds(jobs),
        seconds(settled)
    )
}

/// Gives the account its own small priority level and waits until the API server applies it; returns its seats.
async fn squeeze(admin: &kube::Client) -> u64 {
    let group = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "squeezed"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 1,
            "lendablePercent": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }},
    });
    request(admin, Method::POST, &format!("{group}/prioritylevelconfigurations"), Some(&level)).await.unwrap();
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "squeezed"},
        "spec": {
            "priorityLevelConfiguration": {"name": "squeezed"},
            "matchingPrecedence": 10,
            "rules": [{
                "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": SYSTEM_NAMESPACE, "name": NAME}}],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"],
                }],
            }],
        },
    });
    request(admin, Method::POST, &format!("{group}/flowschemas"), Some(&schema)).await.unwrap();
    eventually("the API server to know the level", Duration::from_secs(20), || async {
        let message = http::Request::get("/metrics").body(Vec::new()).ok()?;
        let metrics = admin.request_text(message).await.ok()?;
        let line = "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"squeezed\"} ";
        metrics.lines().find_map(|found| found.strip_prefix(line)?.parse().ok())
    })
    .await
}
