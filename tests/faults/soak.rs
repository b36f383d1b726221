//! The soak: thousands of minutely CronJobs for an hour, and a kill every few minutes.
//!
//! A finisher replaces the Job controller and the Pods: each Job ends five seconds after it was seen. The controller is
//! killed (`kill -9`) in the first twenty seconds of a minute, when the work is done, and restarted at once; every
//! third time kube-apiserver is killed instead. Afterwards every slot of every CronJob is checked against what a watch
//! on Jobs recorded, and every CronJob's status is checked.
//!
//! `SOAK_MINUTES` (60) and `SOAK_CRONJOBS` (5000) set the size.

mod finisher;
mod verdict;

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use serde_json::json;
use testkit::burst::name;
use testkit::driver::{CRON_JOBS, Namespace, cron_job, sleep_until, upcoming_minute};
use testkit::fixture::controller::{Controller, Running};
use testkit::usage;
use testkit::world::World;

use crate::luck::Luck;
use finisher::Finisher;
use verdict::Kills;

const NAMESPACES: usize = 10;
/// The mean time between kills; a short soak has at least three kills.
const BETWEEN_KILLS: usize = 4;
/// When in its minute a kill may happen, in milliseconds.
const KILL_WINDOW: usize = 20_000;

/// The duration, and the number of CronJobs.
struct Size {
    minutes: usize,
    cron_jobs: usize,
}

impl Size {
    fn from_env() -> Self {
        let number = |name: &str, default: usize| match std::env::var(name) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
            Err(_) => default,
        };
        Self { minutes: number("SOAK_MINUTES", 60), cron_jobs: number("SOAK_CRONJOBS", 5_000) }
    }

    /// A kill happens every this many minutes.
    fn minutes_between_kills(&self) -> usize {
        BETWEEN_KILLS.min(self.minutes / 3).max(1)
    }
}

/// Runs the soak and prints the result; true when no slot was lost or started twice.
pub async fn main(binary: &Path, luck: Luck) -> bool {
    let world = match World::start(binary, Controller::Ours).await {
        Ok(world) => world,
        Err(why) => {
            println!("soak: FAILED: the control plane did not start: {why}");
            return false;
        }
    };
    let passed = run(&world, &Size::from_env(), luck).await;
    if !passed {
        println!("{}", world.plane.keep_logs(15));
    }
    passed
}

async fn run(world: &World, size: &Size, mut luck: Luck) -> bool {
    let namespaces = create(world, size.cron_jobs).await;
    println!("soak: {} minutely CronJobs for {} minutes", size.cron_jobs, size.minutes);
    let mut running = world.start_controller("soak", &[]).await.unwrap();
    let finisher = Finisher::start(world);
    let first = upcoming_minute().await;
    let (mut kills, mut resident) = (Kills::default(), Vec::new());
    for minute in 0..size.minutes {
        let slot = first + TimeDelta::minutes(i64::try_from(minute).unwrap());
        if minute % size.minutes_between_kills() == size.minutes_between_kills() - 1 {
            let offset = TimeDelta::milliseconds(i64::try_from(luck.number(0, KILL_WINDOW)).unwrap());
            sleep_until(slot, offset).await;
            running = kill(world, running, &mut kills).await;
        }
        sleep_until(slot, TimeDelta::seconds(45)).await;
        running.check_running().unwrap();
        resident.push(usage::of(running.id()).unwrap().resident);
        progress(world, &finisher, slot, &kills, &resident);
    }
    let last = first + TimeDelta::minutes(i64::try_from(size.minutes).unwrap() - 1);
    // Slots after the last one are not checked; the statuses are, before the next slot.
    sleep_until(last, TimeDelta::seconds(50)).await;
    let wrong = verdict::wrong_statuses(&namespaces, last).await;
    running.kill();
    let verdict = verdict::judge(&world.sightings, size.cron_jobs, first, last);
    println!("soak: {verdict}");
    println!("soak: {kills}; {} statuses wrong at the end{}", wrong.len(), verdict::some(&wrong));
    println!("soak: resident MB, each minute: {}", verdict::list(&resident));
    let passed = verdict.is_clean() && wrong.is_empty();
    println!("soak: {}", if passed { "passed" } else { "FAILED" });
    passed
}

/// Creates the CronJobs, evenly over the namespaces.
async fn create(world: &World, count: usize) -> Vec<Namespace> {
    let mut namespaces = Vec::new();
    for index in 0..NAMESPACES {
        namespaces.push(world.namespace(&format!("soak-{index}")).await);
    }
    stream::iter(0..count)
        .for_each_concurrent(16, |index| {
            let ns = namespaces[index % NAMESPACES].clone();
            async move {
                let object = cron_job(&name(index), "* * * * *", &json!({"successfulJobsHistoryLimit": 1}));
                ns.create(CRON_JOBS, &object).await;
            }
        })
        .await;
    namespaces
}

/// `kill -9` of the controller, or every third time of the API server.
async fn kill(world: &World, running: Running, kills: &mut Kills) -> Running {
    let started = Instant::now();
    if kills.total() % 3 == 1 {
        kills.api_server += 1;
        world.plane.kill_api_server();
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.plane.start_api_server().await.unwrap();
        kills.longest_outage = kills.longest_outage.max(started.elapsed());
        return running;
    }
    kills.controller += 1;
    running.kill();
    world.start_controller(&format!("soak-{}", kills.controller), &[]).await.unwrap()
}

fn progress(world: &World, finisher: &Finisher, slot: DateTime<Utc>, kills: &Kills, resident: &[f64]) {
    let jobs = world.sightings.all();
    let of_slot: Vec<f64> = jobs
        .iter()
        .filter(|job| verdict::slot_of(job) == Some(slot))
        .map(|job| (job.at - slot).as_seconds_f64())
        .collect();
    println!(
        "soak: {} {} Jobs, the last {:.1} s after it; {} in all, {} finished; {kills}; {:.0} MB",
        slot.format("%H:%M"),
        of_slot.len(),
        of_slot.iter().copied().fold(0.0, f64::max),
        jobs.len(),
        finisher.finished(),
        resident.last().copied().unwrap_or_default()
    );
}
