//! Complete replicas that share the shards, on the embedded server and on paused time. Through a join, an orderly leave
//! and a kill, every slot has its one Job, and no replica writes for a namespace whose shard's lease another holds.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{SharedClock, TestClock};
use apiserver::{ApiServer, kinds};
use axum::body::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::app::{AppError, Replica, run_replica};
use cronjob_controller::client;
use cronjob_controller::leader_election::shares::Names;
use cronjob_controller::options::{Config, LeaderElectionConfig};
use cronjob_controller::sharding::Shard;
use cronjob_controller::sim::Process;
use http::{Method, Request};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const NAME: &str = "cronjob-controller";
/// Some namespaces in each of four shards.
const NAMESPACES: [&str; 8] = ["reports", "orders", "web", "staging", "sales", "media", "payments", "team-red"];

fn shards() -> NonZeroU32 {
    NonZeroU32::new(4).unwrap()
}

/// The server, and the writes of replicas without the lease.
struct World {
    server: ApiServer,
    clock: SharedClock,
    start: DateTime<Utc>,
    trespasses: Arc<Mutex<Vec<String>>>,
}

/// A running replica.
struct Peer {
    process: Process,
    stop: CancellationToken,
    task: JoinHandle<Result<(), AppError>>,
}

impl World {
    async fn new() -> Self {
        let start = "2026-03-01T12:00:30Z".parse().unwrap();
        let clock: SharedClock = TestClock::new(start);
        let server = ApiServer::new(apiserver::Config::new(Arc::clone(&clock), kinds::builtin()));
        let world = Self { server, clock, start, trespasses: Arc::default() };
        for namespace in NAMESPACES {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            world.request(Method::POST, "/api/v1/namespaces", &object).await;
            let object = json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "minutely"},
                "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                    "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
                }}}}},
            });
            world.request(Method::POST, &format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"), &object).await;
        }
        world
    }

    async fn request(&self, method: Method, uri: &str, body: &Value) -> Value {
        let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(uri).header("content-type", "application/json");
        let answer = self.server.handle(request.body(bytes).unwrap()).await;
        let body = answer.into_body().collect().await.unwrap_or_else(|never| match never {});
        serde_json::from_slice(&body.to_bytes()).unwrap()
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        self.request(Method::GET, path, &Value::Null).await["items"].as_array().unwrap().clone()
    }

    /// A client that records each write of a CronJob or Job while another replica holds the lease of its shard.
    fn client(&self, identity: &str) -> kube::Client {
        let (server, trespasses, identity) = (self.server.clone(), Arc::clone(&self.trespasses), identity.to_owned());
        client::on_service(tower::service_fn(move |request: Request<kube::client::Body>| {
            let (server, trespasses, identity) = (server.clone(), Arc::clone(&trespasses), identity.clone());
            async move {
                let (parts, body) = request.into_parts();
                let path = parts.uri.path().to_owned();
                let namespace = path.strip_prefix("/apis/batch/v1/namespaces/").and_then(|rest| rest.split('/').next());
                if let Some(namespace) = namespace.filter(|_| parts.method != Method::GET) {
                    let shard = Shard::all(shards()).find(|shard| shard.owns(namespace)).unwrap().index();
                    let lease = Names::new(NAME, shards()).shard(shard);
                    let holder = holder(&server, &lease).await;
                    if holder != identity {
                        let what = format!("{identity}: {} {path}, while {holder:?} holds {lease}", parts.method);
                        trespasses.lock().push(what);
                    }
                }
                let bytes = body.collect().await.unwrap().to_bytes();
                // The duration of an answer.
                sleep(Duration::from_millis(2)).await;
                Ok::<_, Infallible>(server.handle(Request::from_parts(parts, bytes)).await)
            }
        }))
    }

    fn join(&self, identity: &str) -> Peer {
        let seconds = Duration::from_secs;
        let config = Config {
            leader_election: Some(LeaderElectionConfig {
                namespace: "kube-system".into(),
                name: NAME.into(),
                lease_duration: seconds(15),
                renew_deadline: seconds(10),
                retry_period: seconds(2),
            }),
            shards: shards(),
            ..Config::embedded(8.try_into().unwrap())
        };
        let (client, clock, stop) = (self.client(identity), Arc::clone(&self.clock), CancellationToken::new());
        let replica = Replica { client, clock, identity: identity.to_owned(), seed: 7, observer: None };
        let (process, until) = (Process::default(), stop.clone());
        let run = process.bind(async move { run_replica(&config, replica, until).await });
        Peer { process, stop, task: tokio::spawn(run) }
    }

    /// The number of shards that each replica holds, most first.
    async fn shares(&self) -> Vec<(String, usize)> {
        let mut shares: BTreeMap<String, usize> = BTreeMap::new();
        for shard in Shard::all(shards()) {
            let holder = holder(&self.server, &Names::new(NAME, shards()).shard(shard.index())).await;
            *shares.entry(holder).or_default() += 1;
        }
        let mut shares: Vec<_> = shares.into_iter().collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.1));
        shares
    }

    /// The seconds until the shards are distributed like that.
    async fn shared_out(&self, expected: &[usize], among: &[&str]) -> u64 {
        for second in 0..60 {
            let shares = self.shares().await;
            let counts: Vec<usize> = shares.iter().map(|(_, count)| *count).collect();
            if counts == expected && shares.iter().all(|(holder, _)| among.contains(&&**holder)) {
                return second;
            }
            sleep(Duration::from_secs(1)).await;
        }
        panic!("after a minute: {:?}", self.shares().await);
    }

    /// Lets minutes pass, and checks the result: every slot since the start has its one Job.
    async fn judge(&self, what: &str) {
        sleep(Duration::from_secs(150)).await;
        let first = self.start + TimeDelta::seconds(30);
        let minutes = (self.clock.now() - first).num_minutes();
        let slots = (0..=minutes).map(|minute| first + TimeDelta::minutes(minute));
        let expected: BTreeSet<String> =
            slots.flat_map(|slot| NAMESPACES.map(|ns| format!("{ns}/minutely-{}", slot.timestamp() / 60))).collect();
        let name = |job: &Value| {
            let text = |field: &str| job["metadata"][field].as_str().unwrap().to_owned();
            format!("{}/{}", text("namespace"), text("name"))
        };
        let jobs: BTreeSet<String> = self.list("/apis/batch/v1/jobs").await.iter().map(name).collect();
        assert_eq!(jobs, expected, "{what}");
        for cron_job in self.list("/apis/batch/v1/cronjobs").await {
            let active = cron_job["status"]["active"].as_array().map_or(0, Vec::len);
            assert_eq!(i64::try_from(active).unwrap(), minutes + 1, "{what}: {}", name(&cron_job));
        }
        assert_eq!(*self.trespasses.lock(), Vec::<String>::new(), "{what}");
    }
}

async fn holder(server: &ApiServer, lease: &str) -> String {
    let uri = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}");
    let answer = server.handle(Request::get(uri).body(Bytes::new()).unwrap()).await;
    let body = answer.into_body().collect().await.unwrap_or_else(|never| match never {});
    let lease: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn every_slot_has_one_job_and_every_shard_one_owner_through_a_join_a_leave_and_a_kill() {
    let world = World::new().await;
    let a = world.join("a");
    let b = world.join("b");
    assert!(world.shared_out(&[2, 2], &["a", "b"]).await <= 5, "what is free is taken at once");
    world.judge("two replicas").await;

    let c = world.join("c");
    let joined = world.shared_out(&[2, 1, 1], &["a", "b", "c"]).await;
    assert!(joined <= 20, "the third has its share after {joined} s");
    world.judge("a third joined").await;

    a.stop.cancel();
    let left = world.shared_out(&[2, 2], &["b", "c"]).await;
    a.task.await.unwrap().unwrap();
    assert!(left <= 6, "what the first gave up is held after {left} s");
    world.judge("the first left").await;

    b.process.kill();
    let back = world.shared_out(&[4], &["c"]).await;
    assert!(back <= 20, "what the killed one held is held again after {back} s");
    world.judge("the second was killed").await;

    let replicas = world.list("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").await;
    let replicas = replicas.iter().filter(|lease| lease["metadata"]["name"].as_str().unwrap().contains("-replica-"));
    assert_eq!(replicas.count(), 1, "the leases of those that are gone are removed");
    c.stop.cancel();
    c.task.await.unwrap().unwrap();
    assert_eq!(world.shares().await, [(String::new(), 4)], "given up at the end");
}

#[tokio::test(start_paused = true)]
async fn replica_that_was_frozen_for_long_loses_its_shards_and_keeps_running() {
    let world = World::new().await;
    let a = world.join("a");
    let b = world.join("b");
    world.shared_out(&[2, 2], &["a", "b"]).await;
    a.process.freeze();
    let back = world.shared_out(&[4], &["b"]).await;
    assert!(back <= 20, "what the frozen one held is held again after {back} s");
    world.judge("the first is frozen").await;
    a.process.thaw();
    world.shared_out(&[2, 2], &["a", "b"]).await;
    assert!(!a.task.is_finished());
    world.judge("the first goes on").await;
    for peer in [a, b] {
        peer.stop.cancel();
        peer.task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn shards_are_taken_only_after_the_lease_of_a_single_leader_has_expired() {
    let world = World::new().await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME},
        "spec": {"holderIdentity": "alone", "leaseDurationSeconds": 15},
    });
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    world.request(Method::POST, leases, &lease).await;
    let a = world.join("a");
    sleep(Duration::from_secs(12)).await;
    assert_eq!(world.shares().await, [(String::new(), 4)]);
    // It does not renew: its process is dead.
    assert!(world.shared_out(&[4], &["a"]).await <= 8);
    world.judge("it runs out").await;
    a.stop.cancel();
    a.task.await.unwrap().unwrap();
}
