//! Sets the wall clock while the controller runs, as after a machine slept; only for its process, by libfaketime.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{SubsecRound, TimeDelta, Utc};
use serde_json::json;
use testkit::burst::Burst;
use testkit::world::World;

use super::seconds;
use crate::luck::Luck;

const BURST: usize = 200;
/// The path in Debian's package libfaketime.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

pub async fn forward(world: Arc<World>, _: Luck) -> String {
    if !Path::new(LIBRARY).exists() {
        return format!("skipped: {LIBRARY} is missing (apt-get install faketime)");
    }
    let step = TimeDelta::hours(1);
    let slot = Utc::now().trunc_subsecs(0) + step;
    let burst = Burst::due(&world, "clock", BURST, slot, |_| json!({})).await;
    let clock = world.account.with_file_name("clock");
    std::fs::write(&clock, "+0").unwrap();
    let environment = [
        ("LD_PRELOAD", LIBRARY.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        // The interval in seconds at which the file is read.
        ("FAKETIME_CACHE_DURATION", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let controller = world.start_controller_as("clock", &world.account, &[], &environment).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(burst.seen(), 0, "Jobs before the hour");
    std::fs::write(&clock, format!("+{}", step.num_seconds() + 60)).unwrap();
    let stepped = Instant::now();
    burst.seen_at_least(BURST).await;
    let jobs = stepped.elapsed();
    burst.settled(Duration::from_secs(60)).await;
    controller.kill();
    assert!(jobs < Duration::from_secs(10), "the last Job came {jobs:?} after the step");
    format!("all {BURST} Jobs {} after the step, of which up to 1 s is libfaketime's", seconds(jobs))
}
