//! Three replicas and four shards, with the default lease times, while CronJobs come due all the time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::sharding::Shard;
use futures::stream::{self, StreamExt};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use testkit::driver::{LEASES, Namespace, cron_job, eventually, hourly_at, job_name, minutes_ago, request};
use testkit::fixture::account::{NAME, SYSTEM_NAMESPACE, kubectl_apply};
use testkit::fixture::controller::Running;
use testkit::world::World;

const SHARDS: u32 = 4;
const FLAGS: [&str; 2] = ["--leader-elect=true", "--shards=4"];
/// Some CronJobs in each shard.
const NAMESPACES: [&str; 12] = [
    "reports",
    "orders",
    "search",
    "web",
    "staging",
    "team-blue",
    "sales",
    "media",
    "prod",
    "payments",
    "research",
    "team-red",
];
/// How long a shard may be without an owner after a kill.
const BACK: Duration = Duration::from_secs(25);

/// Creates one CronJob a second in each namespace; each is due at once.
struct Feeder {
    over: Arc<AtomicBool>,
    task: JoinHandle<Vec<(String, String, DateTime<Utc>)>>,
    slot: DateTime<Utc>,
}

impl Feeder {
    async fn start(world: &World) -> Self {
        let mut namespaces = Vec::new();
        for name in NAMESPACES {
            namespaces.push(world.namespace(name).await);
        }
        let (over, slot) = (Arc::new(AtomicBool::new(false)), minutes_ago(10));
        let is_over = Arc::clone(&over);
        let task = tokio::spawn(async move {
            let mut made = Vec::new();
            let mut seconds = tokio::time::interval(Duration::from_secs(1));
            for round in 0.. {
                seconds.tick().await;
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let created = stream::iter(namespaces.clone()).map(|ns| async move {
                    let name = format!("due-{round:02}");
                    ns.create_overdue(&cron_job(&name, &hourly_at(slot), &json!({})), slot - TimeDelta::hours(1)).await;
                    (ns.name.clone(), name, Utc::now())
                });
                made.extend(created.buffer_unordered(4).collect::<Vec<_>>().await);
            }
            made
        });
        Self { over, task, slot }
    }

    /// Waits until every CronJob has its Job; returns their number and the longest delay.
    async fn finish(self, world: &World) -> (usize, Duration) {
        self.over.store(true, Ordering::Relaxed);
        let made = self.task.await.unwrap();
        let mut longest = TimeDelta::zero();
        for (namespace, name, due) in &made {
            let seen = world.sightings.job(namespace, name, self.slot, BACK).await;
            longest = longest.max(seen - *due);
        }
        let twice = world.sightings.created_twice();
        assert!(twice.is_empty(), "created twice: {twice:?}");
        let expected: BTreeSet<_> =
            made.iter().map(|(namespace, name, _)| (namespace.clone(), job_name(name, self.slot))).collect();
        let all = world.sightings.all().into_iter().filter(|job| NAMESPACES.contains(&&*job.namespace));
        assert_eq!(all.map(|job| (job.namespace, job.name)).collect::<BTreeSet<_>>(), expected);
        (made.len(), longest.to_std().unwrap_or_default())
    }
}

/// The holders of all leases with that name prefix, by name.
async fn holders(system: &Namespace, kind: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let leases = system.list(LEASES).await.into_iter();
    let all = leases.map(|lease| (text(&lease["metadata"]["name"]), text(&lease["spec"]["holderIdentity"])));
    all.filter(|(name, _)| name.starts_with(&format!("{NAME}-{kind}-"))).collect()
}

/// A replica, and its identity.
struct Peer {
    running: Running,
    identity: String,
}

async fn join(world: &World, name: &str, others: &[&Peer]) -> Peer {
    let running = world.start_controller(name, &FLAGS).await.unwrap();
    let system = world.system();
    let identity = eventually(format!("the lease of {name}"), BACK, || async {
        let replicas = holders(&system, "replica").await;
        let known = |identity: &String| others.iter().any(|other| other.identity == *identity);
        replicas.into_iter().map(|(_, holder)| holder).find(|holder| !known(holder))
    })
    .await;
    Peer { running, identity }
}

/// Waits until these replicas hold this many shards each; returns the duration.
async fn shares_are(system: &Namespace, what: &str, peers: &[&Peer], expected: &[usize]) -> Duration {
    let began = Instant::now();
    eventually(what, BACK + Duration::from_secs(10), || async {
        let held = holders(system, "shard").await;
        let count = |peer: &&Peer| held.iter().filter(|(_, holder)| *holder == peer.identity).count();
        let mut counts: Vec<usize> = peers.iter().map(count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        (counts == expected).then_some(())
    })
    .await;
    began.elapsed()
}

/// The server divides lists into shards, and the controller asked for that.
async fn server_selects(world: &World) -> usize {
    let mut seen = 0;
    for shard in Shard::all(SHARDS.try_into().unwrap()) {
        let selector = shard.selector().unwrap().replace(' ', "%20").replace('\'', "%27");
        let path = format!("/apis/batch/v1/cronjobs?shardSelector={selector}");
        let list = request(&world.plane.admin(), Method::GET, &path, None).await.unwrap();
        assert_eq!(list["metadata"]["shardInfo"]["selector"], json!(shard.selector()), "{path}");
        for object in list["items"].as_array().unwrap() {
            assert!(shard.owns(object["metadata"]["namespace"].as_str().unwrap()), "{path}: {}", object["metadata"]);
            seen += 1;
        }
    }
    let requests = world.plane.audit(&format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{NAME}"));
    let uris: BTreeSet<String> = requests
        .iter()
        .filter_map(|event| event["requestURI"].as_str()?.split_once("shardSelector=").map(|(_, uri)| uri.to_owned()))
        .collect();
    assert_eq!(uris.len(), Shard::all(SHARDS.try_into().unwrap()).count(), "asked for {uris:?}");
    seen
}

pub async fn handovers(world: Arc<World>) -> String {
    kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/sharded", &[]).unwrap();
    let system = world.system();
    let feeder = Feeder::start(&world).await;
    let first = join(&world, "shards-first", &[]).await;
    let alone = shares_are(&system, "one replica holds all", &[&first], &[4]).await;
    let second = join(&world, "shards-second", &[&first]).await;
    let third = join(&world, "shards-third", &[&first, &second]).await;
    let joined = shares_are(&system, "three share", &[&first, &second, &third], &[2, 1, 1]).await;

    let stopped = Instant::now();
    let status = first.running.terminate(Duration::from_secs(10)).await.unwrap();
    assert!(status.success(), "SIGTERM: {status}");
    shares_are(&system, "two share", &[&second, &third], &[2, 2]).await;
    let left = stopped.elapsed();

    let killed = Instant::now();
    second.running.kill();
    shares_are(&system, "the last one holds all", &[&third], &[4]).await;
    let back = killed.elapsed();
    assert!(back < BACK, "ownership came back after {back:?}");

    let (count, longest) = feeder.finish(&world).await;
    let metrics = third.running.get("/metrics").await.unwrap();
    for shard in 0..SHARDS {
        let line = format!("leader_election_master_status{{name=\"{NAME}-shard-{shard}-of-{SHARDS}\"}} 1");
        assert!(metrics.lines().any(|found| found == line), "no {line}");
    }
    assert_eq!(metrics.lines().filter(|line| line.starts_with("workqueue_adds_total{")).count(), 1);
    assert_eq!(third.running.get("/readyz").await.unwrap(), "ok");
    // An older one sends all objects to each replica.
    if world.plane.has_sharded_lists() {
        let listed = server_selects(&world).await;
        assert!(listed >= count, "{listed} of {count} CronJobs are in the four shards");
    }
    third.running.kill();
    format!(
        "{count} slots once each, the last one {:.1} s late; four shards for one after {:.1} s, for three {:.1} s after \
         the join, for two {:.1} s after SIGTERM, for one {:.1} s after kill -9",
        longest.as_secs_f64(),
        alone.as_secs_f64(),
        joined.as_secs_f64(),
        left.as_secs_f64(),
        back.as_secs_f64(),
    )
}
