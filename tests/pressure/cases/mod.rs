//! The table of cases.

mod deletes;
mod large;
mod noisy;
mod slow;
mod strangers;
mod takeover;
mod vanishing;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Timelike, Utc};
use futures::future::join_all;
use serde_json::json;
use testkit::burst::{Burst, name};
use testkit::driver::{CRON_JOBS, Namespace, cron_job};

use crate::contenders::{Arena, IN_TREE, IN_TREE_64, OURS};
use crate::lateness::Lateness;
use crate::runner::Case;

macro_rules! case {
    ($module:ident :: $function:ident, $name:literal, [$($contender:ident),*]) => {
        Case { name: $name, contenders: &[$(&$contender),*], run: |arena| Box::pin(async move { $module::$function(&arena).await }) }
    };
}

/// The case that every `cargo test` runs.
pub const SMALL: Case = case!(slow::small, "small: a webhook that takes 5 s, ten due", [OURS]);

pub fn all() -> Vec<Case> {
    vec![
        case!(slow::constant, "slow webhook: always 5 s, 20 due", [OURS, IN_TREE, IN_TREE_64]),
        case!(slow::narrow, "narrow webhook: 10 Jobs a second, 200 due", [OURS, IN_TREE, IN_TREE_64]),
        case!(noisy::first, "noisy namespace, loaded first", [OURS, IN_TREE]),
        case!(noisy::last, "noisy namespace, loaded last", [OURS, IN_TREE]),
        case!(noisy::ten, "10 noisy namespaces, loaded last", [OURS]),
        case!(noisy::two_hundred, "200 noisy namespaces, loaded last", [OURS]),
        case!(deletes::refused, "refused deletes: Replace, for two minutes", [OURS, IN_TREE]),
        case!(deletes::hanging, "hanging prune: 600 Jobs, five minutely slots", [OURS, IN_TREE]),
        case!(takeover::under_replace, "takeover: Replace, the leader killed", [OURS, IN_TREE]),
        case!(vanishing::jobs, "vanishing jobs: 1,500 due", [OURS, IN_TREE]),
        case!(large::templates, "large templates: 400 of 1.3 MB", [OURS, IN_TREE]),
        case!(strangers::flood, "strangers: 128 connections, 5,000 requests a second", [OURS, IN_TREE]),
    ]
}

/// CronJobs in each namespace whose Jobs are to be replaced.
const REPLACED: usize = 20;
/// The limit, in seconds, within which a slot counts as on time.
const ON_TIME: f64 = 5.0;

/// Creates the CronJobs whose Jobs are to be replaced, before their first slot.
async fn create_replacing(ns: &Namespace, slots: &[DateTime<Utc>]) {
    let minutes: Vec<String> = slots.iter().map(|slot| slot.minute().to_string()).collect();
    let schedule = format!("{} * * * *", minutes.join(","));
    join_all((0..REPLACED).map(|index| {
        let object = cron_job(&name(index), &schedule, &json!({"concurrencyPolicy": "Replace"}));
        async move { ns.create(CRON_JOBS, &object).await }
    }))
    .await;
    assert!(Utc::now() < slots[0], "making CronJobs took too long; the machine is busy");
}

/// A whole second that leaves time to create `size` CronJobs.
fn upcoming(size: usize) -> DateTime<Utc> {
    let lead = Duration::from_secs(8) + Duration::from_millis(20) * u32::try_from(size).unwrap();
    Utc::now().trunc_subsecs(0) + TimeDelta::from_std(lead).unwrap().max(TimeDelta::seconds(9))
}

/// How late the Jobs of a burst are.
fn lateness(arena: &Arc<Arena>, burst: &Burst) -> Lateness {
    let names = (0..burst.size).map(name);
    Lateness::of(&arena.world.sightings, &burst.ns.name, names, burst.slot, burst.slot)
}
