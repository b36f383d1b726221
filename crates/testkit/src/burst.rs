//! Many CronJobs in one namespace that are due for one slot, and checks of their progress.

use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use http::{Method, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::driver::{
    CRON_JOBS, JOBS, Namespace, Resource, cron_job, eventually, hourly_at, job_name, minutes_ago, request, rfc3339,
};
use crate::sightings::Sightings;
use crate::world::World;

/// The number of concurrent requests while CronJobs are created.
const IN_FLIGHT: usize = 16;

/// The CronJobs `cron-00000` to `cron-<size>` of one namespace. Their schedule counts a day from the last start, so they can be
/// due at any second, and not a second time during the test.
#[derive(Clone)]
pub struct Burst {
    pub ns: Namespace,
    pub slot: DateTime<Utc>,
    pub size: usize,
    client: kube::Client,
    sightings: Sightings,
}

/// The progress of a burst.
pub struct Progress {
    /// The number of Jobs on the server.
    pub jobs: usize,
    /// The number of CronJobs with exactly one Job and a matching status.
    pub settled: usize,
    /// Descriptions of some of the others.
    pub wrong: Vec<String>,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    uid: String,
}

#[derive(Deserialize)]
struct CronJob {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    last_schedule_time: Option<DateTime<Utc>>,
    active: Vec<Reference>,
}

#[derive(Deserialize, Debug)]
struct Reference {
    name: String,
    uid: String,
}

impl Burst {
    /// CronJobs that were due ten minutes ago, with all policies in turn; no controller should be running yet.
    pub async fn overdue(world: &World, namespace: &str, size: usize) -> Self {
        let policies = ["Allow", "Forbid", "Replace"];
        Self::due(world, namespace, size, minutes_ago(10), |index| json!({"concurrencyPolicy": policies[index % 3]}))
            .await
    }

    /// CronJobs that become due a few seconds after the last one was created.
    pub async fn upcoming(world: &World, namespace: &str, size: usize, spec: &Value) -> Self {
        let lead = TimeDelta::seconds(4) + TimeDelta::milliseconds(i64::try_from(size).unwrap() * 5);
        let slot = Utc::now().trunc_subsecs(0) + lead.max(TimeDelta::seconds(5));
        let burst = Self::due(world, namespace, size, slot.trunc_subsecs(0), |_| spec.clone()).await;
        assert!(Utc::now() < burst.slot, "making {size} CronJobs took longer than was planned; the machine is busy");
        burst
    }

    /// CronJobs due at `slot`, a whole second; `spec` overrides the defaults of each.
    pub async fn due(
        world: &World,
        namespace: &str,
        size: usize,
        slot: DateTime<Utc>,
        spec: impl Fn(usize) -> Value,
    ) -> Self {
        let ns = world.namespace(namespace).await;
        let spec = &spec;
        stream::iter(0..size)
            .for_each_concurrent(IN_FLIGHT, |index| {
                let ns = &ns;
                async move {
                    let object = cron_job(&name(index), "@every 24h", &spec(index));
                    insist(world, Method::POST, &ns.path(CRON_JOBS, ""), &object).await;
                    let status = json!({"status": {"lastScheduleTime": rfc3339(slot - TimeDelta::hours(24))}});
                    let path = format!("{}/status", ns.path(CRON_JOBS, &name(index)));
                    insist(world, Method::PATCH, &path, &status).await;
                }
            })
            .await;
        Self { ns, slot, size, client: world.plane.admin(), sightings: world.sightings.clone() }
    }

    /// CronJobs due at a future minute, with a schedule that does not depend on a starting deadline.
    pub async fn at_minute(world: &World, namespace: &str, size: usize, slot: DateTime<Utc>, spec: &Value) -> Self {
        let ns = world.namespace(namespace).await;
        stream::iter(0..size)
            .for_each_concurrent(IN_FLIGHT, |index| {
                let ns = &ns;
                async move {
                    ns.create(CRON_JOBS, &cron_job(&name(index), &hourly_at(slot), spec)).await;
                }
            })
            .await;
        Self { ns, slot, size, client: world.plane.admin(), sightings: world.sightings.clone() }
    }

    /// The number of Jobs that the observer has seen.
    pub fn seen(&self) -> usize {
        self.sightings.count_in(&self.ns.name)
    }

    /// Waits until the observer has seen `count` Jobs; more precise than polling the server.
    pub async fn seen_at_least(&self, count: usize) -> usize {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let seen = self.seen();
            if seen >= count {
                return seen;
            }
            assert!(Instant::now() < deadline, "{seen} of {count} Jobs in {} after two minutes", self.ns.name);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// When the observer saw the last Job; the slot if it saw none.
    pub fn last_seen(&self) -> DateTime<Utc> {
        let all = self.sightings.all();
        all.iter().filter(|job| job.namespace == self.ns.name).map(|job| job.at).max().unwrap_or(self.slot)
    }

    async fn list<T: DeserializeOwned>(&self, resource: Resource) -> Option<Vec<T>> {
        let request = Request::get(self.ns.path(resource, "")).body(Vec::new()).ok()?;
        let answer = tokio::time::timeout(Duration::from_secs(60), self.client.request::<List<T>>(request)).await;
        answer.ok()?.ok().map(|list| list.items)
    }

    /// Reads every CronJob and Job; `None` if the API server does not answer.
    pub async fn progress(&self) -> Option<Progress> {
        let mut jobs: Vec<(String, String)> =
            self.list::<Named>(JOBS).await?.into_iter().map(|job| (job.metadata.name, job.metadata.uid)).collect();
        jobs.sort();
        let cron_jobs = self.list::<CronJob>(CRON_JOBS).await?;
        let mut progress = Progress { jobs: jobs.len(), settled: 0, wrong: Vec::new() };
        for CronJob { metadata, status } in &cron_jobs {
            let job = job_name(&metadata.name, self.slot);
            let uid = jobs.binary_search_by(|(name, _)| name.cmp(&job)).ok().map(|at| &jobs[at].1);
            let names_its_job =
                |active: &[Reference]| active.len() == 1 && active[0].name == job && Some(&active[0].uid) == uid;
            if status.last_schedule_time == Some(self.slot) && names_its_job(&status.active) {
                progress.settled += 1;
            } else if progress.wrong.len() < 3 {
                progress.wrong.push(format!("{}: Job {uid:?}, {status:?}", metadata.name));
            }
        }
        Some(progress)
    }

    /// Waits until every CronJob has exactly one Job and a matching status, and no Job was seen twice. Returns the elapsed
    /// time.
    pub async fn settled(&self, within: Duration) -> Duration {
        let started = Instant::now();
        let mut last = "the API server did not answer".to_owned();
        loop {
            let asked = Instant::now();
            // Statuses are read only once all Jobs exist.
            let progress = if self.seen() < self.size { None } else { self.progress().await };
            if let Some(Progress { jobs, settled, wrong }) = progress {
                assert!(jobs <= self.size, "{jobs} Jobs of {} CronJobs in {}", self.size, self.ns.name);
                if jobs == self.size && settled == self.size {
                    let twice = self.sightings.created_twice();
                    assert!(twice.is_empty(), "created twice: {twice:?}");
                    return started.elapsed();
                }
                last = format!("{jobs} Jobs, {settled} statuses; {wrong:?}");
            } else {
                last = format!("{} Jobs were seen; before: {last}", self.seen());
                last.truncate(600);
            }
            assert!(started.elapsed() < within, "{} of {} after {within:?}: {last}", self.ns.name, self.size);
            // A read costs the server as much as the controller does; reads take at most a third of the time.
            tokio::time::sleep(Duration::from_millis(50).max(asked.elapsed() * 2)).await;
        }
    }

    /// Deletes everything, so that the next burst does not share the server.
    pub async fn clear(&self) {
        for resource in [CRON_JOBS, JOBS] {
            let path = self.ns.path(resource, "");
            let options = json!({"propagationPolicy": "Background"}).to_string().into_bytes();
            let request = Request::delete(&path).header("content-type", "application/json").body(options).unwrap();
            self.client.request::<Value>(request).await.unwrap_or_else(|why| panic!("DELETE {path}: {why}"));
        }
    }
}

/// Retries a write until it succeeds; a suspended machine is no reason to give up.
async fn insist(world: &World, method: Method, path: &str, body: &Value) {
    eventually(format!("{method} {path}"), Duration::from_secs(120), || async {
        match request(&world.plane.admin(), method.clone(), path, Some(body)).await {
            // An earlier attempt succeeded, and its answer was lost.
            Err(why) if why.contains("already exists") => Some(()),
            answer => answer.ok().map(drop),
        }
    })
    .await;
}

/// The name of a CronJob of a burst.
pub fn name(index: usize) -> String {
    format!("cron-{index:05}")
}
