//! `kill -9` of the controller's dependencies, at random instants of the work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use testkit::burst::Burst;
use testkit::driver::eventually;
use testkit::fixture::controller::Running;
use testkit::usage;
use testkit::world::World;

use super::{Spread, count, seconds};
use crate::luck::Luck;

/// CronJobs due at once, except in the case of 20,000.
const BURST: usize = 1_000;
/// The time limit until everything is correct again.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The process that is killed and restarted.
#[derive(Clone, Copy)]
enum Victim {
    Controller,
    ApiServer,
    Etcd,
}

pub async fn controller_once(world: Arc<World>, mut luck: Luck) -> String {
    let burst = Burst::overdue(&world, "small", 60).await;
    let running = world.start_controller("small", &[]).await.unwrap();
    burst.seen_at_least(luck.number(1, burst.size)).await;
    let (mut jobs, mut statuses) = (Spread::default(), Spread::default());
    let running = strike(&world, Victim::Controller, running, &burst, &mut jobs, &mut statuses).await;
    let settled = burst.settled(LONGEST_WAIT).await;
    works_on(&world, running, "afterwards").await;
    format!("killed at {jobs} Jobs and {statuses} statuses; settled {} after its return", seconds(settled))
}

pub async fn controller(world: Arc<World>, luck: Luck) -> String {
    rounds(&world, luck, Victim::Controller, BURST, 10).await
}

pub async fn api_server(world: Arc<World>, luck: Luck) -> String {
    rounds(&world, luck, Victim::ApiServer, BURST, 3).await
}

pub async fn etcd(world: Arc<World>, luck: Luck) -> String {
    rounds(&world, luck, Victim::Etcd, BURST, 3).await
}

/// A burst without a fault measures the duration of the work. Then one burst for each kill, at a random part of that
/// time.
async fn rounds(world: &World, mut luck: Luck, victim: Victim, size: usize, rounds: usize) -> String {
    let burst = Burst::overdue(world, "calm", size).await;
    let running = world.start_controller("calm", &[]).await.unwrap();
    let calm = burst.settled(LONGEST_WAIT).await;
    running.kill();
    burst.clear().await;

    let (mut jobs, mut statuses, mut settled) = (Spread::default(), Spread::default(), Spread::default());
    for round in 0..rounds {
        let burst = Burst::overdue(world, &format!("round-{round}"), size).await;
        let running = world.start_controller(&format!("round-{round}"), &[]).await.unwrap();
        tokio::time::sleep(luck.part_of(calm)).await;
        let running = strike(world, victim, running, &burst, &mut jobs, &mut statuses).await;
        settled.add(burst.settled(LONGEST_WAIT).await.as_secs_f64());
        works_on(world, running, &format!("after-{round}")).await;
        burst.clear().await;
    }
    let statuses = if statuses.0.is_empty() { String::new() } else { format!(" and {statuses:.0} statuses") };
    format!(
        "undisturbed {}; killed at {jobs:.0} Jobs{statuses} of {size}; settled {settled:.1} s after its return",
        seconds(calm)
    )
}

/// Kills the victim, records the progress of the burst, and restarts the victim. All other processes keep running.
async fn strike(
    world: &World,
    victim: Victim,
    running: Running,
    burst: &Burst,
    jobs: &mut Spread,
    statuses: &mut Spread,
) -> Running {
    let plane = &world.plane;
    match victim {
        Victim::Controller => {
            running.kill();
            let progress = burst.progress().await.expect("the API server lives");
            jobs.add(count(progress.jobs));
            statuses.add(count(progress.settled));
            return world.start_controller("restarted", &[]).await.unwrap();
        }
        Victim::ApiServer => {
            plane.kill_api_server();
            jobs.add(count(burst.seen()));
            tokio::time::sleep(Duration::from_secs(1)).await;
            plane.start_api_server().await.unwrap();
        }
        Victim::Etcd => {
            plane.kill_etcd();
            jobs.add(count(burst.seen()));
            tokio::time::sleep(Duration::from_secs(2)).await;
            plane.start_etcd().await.unwrap();
        }
    }
    running.check_running().unwrap();
    running
}

pub async fn twenty_thousand(world: Arc<World>, mut luck: Luck) -> String {
    let size = 20_000;
    let burst = Burst::overdue(&world, "many", size).await;
    let running = world.start_controller("first", &[]).await.unwrap();
    let started = Utc::now();
    let at_kill = burst.seen_at_least(luck.number(size / 5, size * 4 / 5)).await;
    running.kill();
    let killed = Utc::now();
    let restarted = Instant::now();
    let running = world.start_controller("second", &[]).await.unwrap();
    let ready = restarted.elapsed();
    burst.settled(Duration::from_secs(600)).await;
    let settled = restarted.elapsed();
    let resident = usage::of(running.id()).unwrap().resident;
    works_on(&world, running, "afterwards").await;
    let since = |from: DateTime<Utc>, to: DateTime<Utc>| seconds((to - from).to_std().unwrap_or_default());
    format!(
        "killed at {at_kill} Jobs after {}; after the restart ready {}, last Job {}, last status {}, {resident:.0} MB",
        since(started, killed),
        seconds(ready),
        since(killed, burst.last_seen()),
        seconds(settled)
    )
}

/// The queue is empty, and CronJobs created now start Jobs: the controller follows the cluster. Ends it.
async fn works_on(world: &World, running: Running, namespace: &str) {
    Burst::overdue(world, namespace, 3).await.settled(Duration::from_secs(20)).await;
    eventually("an empty queue", Duration::from_secs(10), || async {
        let metrics = running.get("/metrics").await.ok()?;
        metrics.lines().any(|line| line == "workqueue_depth{name=\"cronjob\"} 0").then_some(())
    })
    .await;
    running.kill();
}
