//! A rolling update from the previous release of this controller and back, under a load each minute.
//!
//! `PREVIOUS_BIN` names the other release's binary. Both releases share one lease, as the Pods of a rolling update do: the
//! next one is ready before the leader is told to stop, each time in the middle of a minute's burst.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};

use testkit::driver::{job_name, sleep_until, upcoming_minute};
use testkit::fixture::controller::Running;
use testkit::world::World;

use super::failures::{ELECTION, Electorate, LEASE, LOOKS, stop};
use super::takeover::{Finisher, LOAD, create_load, names, seen_at_least, seen_in, settled};

/// Slow enough that SIGTERM meets the middle of a burst: on shutdown a controller finishes the syncs in progress.
const SLOWLY: [&str; 4] =
    ["--namespace=upgrade", "--kube-api-qps=40", "--kube-api-burst=10", "--concurrent-cronjob-syncs=4"];

/// The binary of the previous release.
pub fn previous() -> Option<PathBuf> {
    std::env::var_os("PREVIOUS_BIN").map(PathBuf::from)
}

pub async fn there_and_back(world: Arc<World>) -> String {
    let ns = world.namespace("upgrade").await;
    let electorate = Electorate::of(&world);
    let mut leader = start(&world, "previous", true).await;
    let mut holder = electorate.next_holder(None, LEASE + LOOKS).await;
    let first = upcoming_minute().await;
    create_load(&ns).await;
    assert!(Utc::now() < first, "too slow to be ready for the first minute");
    let finisher = Finisher::start(&world, [&ns]);
    let load = LOAD.len();
    let mut stopped = Vec::new();
    let mut slots = Vec::new();
    for (minute, (name, is_previous)) in [("next", false), ("back", true), ("again", false)].into_iter().enumerate() {
        let slot = first + TimeDelta::minutes(i64::try_from(minute).unwrap());
        slots.push(slot);
        let standby = start(&world, name, is_previous).await;
        assert_eq!(electorate.holder().await.as_ref(), Some(&holder), "the release that is ready waits");
        sleep_until(slot, TimeDelta::zero()).await;
        seen_at_least(&world, &ns, minute * load + load / 4).await;
        stop(std::mem::replace(&mut leader, standby)).await;
        let before = world.sightings.count_in(&ns.name) - minute * load;
        assert!(before < load, "the burst was over before SIGTERM");
        stopped.push(before);
        holder = electorate.next_holder(Some(&holder), LEASE + LOOKS).await;
        seen_at_least(&world, &ns, (minute + 1) * load).await;
    }
    let last = slots[slots.len() - 1];
    settled(&ns, |_| last).await;
    let expected =
        names("turn", LOAD).flat_map(|name| slots.iter().map(move |slot| job_name(&name, *slot)).collect::<Vec<_>>());
    assert_eq!(seen_in(&world, &ns), expected.collect());
    finisher.stop().await;
    leader.check_running().unwrap();
    leader.kill();
    let twice = world.sightings.created_twice();
    assert!(twice.is_empty(), "created twice: {twice:?}");
    format!("{} slots once each; the leaders were stopped at {stopped:?} of {load}", slots.len() * load)
}

async fn start(world: &World, name: &str, is_previous: bool) -> Running {
    let args = [&ELECTION[..], &SLOWLY].concat();
    let started = match previous().filter(|_| is_previous) {
        Some(binary) => world.start_binary(&binary, name, &args).await,
        None => world.start_controller(name, &args).await,
    };
    started.unwrap()
}
