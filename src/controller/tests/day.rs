//! A simulated day of many CronJobs. The expected Jobs are computed from the schedules alone.

use std::collections::BTreeMap;
use std::time::Instant as WallInstant;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::{Schedule, Zone};
use serde_json::json;

use super::objects::time;
use super::support::{CRON_JOBS, Ending, World, cron_job, key};
use super::wire::Verb;
use super::*;
use crate::api::batch_v1::Job;

/// Daylight saving time begins in Europe.
const BEGIN: &str = "2026-03-29T00:00:00Z";
/// By then, every Job of the day that ends has ended.
const END: &str = "2026-03-30T00:00:50Z";

/// The number of CronJobs; fewer in unoptimised builds.
const MANY: usize = if cfg!(debug_assertions) { 40 } else { 200 };

/// Schedule, zone and policy, repeated every ten CronJobs.
const EVERY_TENTH: [(&str, &str, &str); 10] = [
    ("17 * * * *", "UTC", "Forbid"),
    ("30 2 * * *", "Europe/Berlin", "Allow"),
    ("15,45 9-17 * * 0-5", "America/New_York", "Forbid"),
    ("0 */6 * * *", "Asia/Kathmandu", "Replace"),
    ("@daily", "Pacific/Apia", "Allow"),
    ("@hourly", "Asia/Kolkata", "Replace"),
    ("5 4 * * 1", "Europe/London", "Allow"),
    ("*/20 1-4 * * *", "Europe/Berlin", "Forbid"),
    ("@every 97m", "UTC", "Allow"),
    ("0 0 29 2 *", "UTC", "Allow"),
];

/// The `number`th CronJob of the day.
struct Plan {
    name: String,
    schedule: &'static str,
    zone: &'static str,
    policy: &'static str,
    /// The limits of successful and failed Jobs.
    history: [usize; 2],
}

fn plan(number: usize) -> Plan {
    let (schedule, zone, policy) = match number {
        0 => ("*/5 * * * *", "UTC", "Forbid"),
        1 | 2 => ("*/15 * * * *", "Europe/Berlin", "Replace"),
        _ => EVERY_TENTH[number % 10],
    };
    Plan { name: format!("c{number}"), schedule, zone, policy, history: [number % 4, number / 4 % 3] }
}

/// How a Job named `c<number>-<minute>` ends: 5 to 44 seconds after its slot, every third as a failure. Some CronJobs'
/// Jobs run until Replace deletes them.
fn ends(name: &str) -> Option<(Duration, Ending)> {
    let (number, minute) = name.trim_start_matches('c').split_once('-').unwrap();
    let (number, minute): (u64, u64) = (number.parse().unwrap(), minute.parse().unwrap());
    if number == 2 || number % 20 == 3 {
        return None;
    }
    let mixed = number * 31 + minute / 7;
    let ending = if mixed % 3 == 0 { Ending::Failed } else { Ending::Complete };
    Some((Duration::from_secs(5 + mixed % 40), ending))
}

/// Every slot from the creation on.
fn slots(plan: &Plan) -> Vec<DateTime<Utc>> {
    let schedule = Schedule::parse_standard(plan.schedule, Zone::load(plan.zone, Zone::UTC).unwrap()).unwrap();
    let following = |slot: &DateTime<Utc>| schedule.next_after(*slot).filter(|next| *next <= time(END));
    std::iter::successors(following(&time(BEGIN)), following).collect()
}

fn minute(slot: DateTime<Utc>) -> i64 {
    slot.timestamp() / 60
}

/// The remaining Jobs of a CronJob, and its status.
#[derive(Debug, Default, PartialEq)]
struct Left {
    active: Vec<String>,
    succeeded: Vec<String>,
    failed: Vec<String>,
    last_schedule: Option<DateTime<Utc>>,
    last_success: Option<DateTime<Utc>>,
}

fn expected(plan: &Plan, slots: &[DateTime<Utc>]) -> Left {
    let mut left = Left { last_schedule: slots.last().copied(), ..Left::default() };
    for slot in slots {
        let name = format!("{}-{}", plan.name, minute(*slot));
        match ends(&name) {
            None => left.active = vec![name],
            Some((after, Ending::Complete)) => {
                left.last_success = Some(*slot + TimeDelta::from_std(after).unwrap());
                left.succeeded.push(name);
            }
            Some((_, Ending::Failed)) => left.failed.push(name),
        }
    }
    for (jobs, limit) in [(&mut left.succeeded, plan.history[0]), (&mut left.failed, plan.history[1])] {
        jobs.drain(..jobs.len().saturating_sub(limit));
    }
    left
}

fn found(world: &World, plan: &Plan) -> Left {
    let cron_job = world.cron_jobs.get(&key(&plan.name)).unwrap();
    let mut left = Left {
        active: cron_job.status.active.iter().map(|job| job.name.clone()).collect(),
        last_schedule: cron_job.status.last_schedule_time,
        last_success: cron_job.status.last_successful_time,
        ..Left::default()
    };
    let name = |job: &Job| job.name.name.to_string();
    let jobs = world.jobs.by_controller(&cron_job.uid);
    let running: Vec<String> = jobs.iter().filter(|job| job.finished.is_none()).map(|job| name(job)).collect();
    assert_eq!(running, left.active, "{} has active what runs", plan.name);
    for job in jobs.iter().filter(|job| job.finished.is_some()) {
        if job.succeeded { &mut left.succeeded } else { &mut left.failed }.push(name(job));
    }
    left.succeeded.sort();
    left.failed.sort();
    left
}

#[tokio::test(start_paused = true)]
async fn in_a_day_of_many_cron_jobs_every_slot_fires_once_and_on_time() {
    let wall = WallInstant::now();
    let world = World::with_jobs_that_end(BEGIN, |job| ends(&job.name.name)).await;
    let plans: Vec<Plan> = (0..MANY).map(plan).collect();
    for plan in &plans {
        let spec = json!({
            "schedule": plan.schedule, "timeZone": plan.zone, "concurrencyPolicy": plan.policy,
            "successfulJobsHistoryLimit": plan.history[0], "failedJobsHistoryLimit": plan.history[1],
        });
        world.request("POST", CRON_JOBS, &cron_job(&plan.name, spec)).await.unwrap();
    }
    let stop = world.work(16);
    world.pass_until(END).await;
    let took = wall.elapsed();

    let mut fired: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let seen = world.seen();
    for job in &seen {
        let (name, slot) = job.name.name.rsplit_once('-').unwrap();
        assert_eq!(minute(job.creation_timestamp).to_string(), slot, "{name} is created in the minute of its slot");
        assert_eq!(
            job.scheduled_timestamp,
            Some(job.creation_timestamp),
            "{name} is created in the second of its slot"
        );
        fired.entry(name.to_owned()).or_default().push(minute(job.creation_timestamp));
    }
    for plan in &plans {
        let slots = slots(plan);
        let want: Vec<i64> = slots.iter().copied().map(minute).collect();
        assert_eq!(fired.remove(&plan.name).unwrap_or_default(), want, "{}: {}", plan.name, plan.schedule);
        assert_eq!(found(&world, plan), expected(plan, &slots), "{}: {}", plan.name, plan.schedule);
    }
    assert_eq!(world.controller.queue().len(), 0);
    let requests: usize = [(Verb::Create, "jobs"), (Verb::Patch, "cronjobs/status"), (Verb::Delete, "jobs")]
        .iter()
        .map(|(verb, resource)| world.wire.count(*verb, resource))
        .sum();
    println!("{} fires of {} CronJobs in a day, {requests} writes: {took:?}", seen.len(), plans.len());
    stop.cancel();
}
