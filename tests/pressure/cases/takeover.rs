//! A leader that is killed while Jobs run that are to be replaced.
//!
//! A new leader does not delete a Job while a create of its predecessor may still be committed, so under Replace a slot
//! waits for up to 39 s. The in-tree controller does not wait, and may run two Jobs of one CronJob at a time.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use futures::future::join_all;
use serde_json::json;
use testkit::driver::{CRON_JOBS, cron_job, sleep_until, upcoming_minute};

use crate::contenders::{Arena, still_runs};
use crate::lateness::{Lateness, done_or_late};
use crate::table::{Figure, Reach, float};

const CRON_JOBS_DUE: usize = 20;
/// Seconds between the kill and the slot.
const KILLED_BEFORE: [i64; 2] = [30, 2];
/// The limit, in seconds, within which the slot after the next one counts as on time.
const ON_TIME: f64 = 5.0;

/// For each kill: a slot whose Jobs run on, the slot after the kill, and one more.
pub async fn under_replace(arena: &Arc<Arena>) -> Vec<Figure> {
    let mut leader = arena.start_controller(&[]).await;
    let mut figures = Vec::new();
    for (number, before) in KILLED_BEFORE.into_iter().enumerate() {
        let standby = arena.start_replica(&format!("standby-{number}"), &[]).await;
        let ns = arena.world.namespace(&format!("killed-{before}")).await;
        let first = upcoming_minute().await + TimeDelta::minutes(1);
        let slots = [0, 1, 3].map(|minutes| first + TimeDelta::minutes(minutes));
        let schedule = slots.map(|slot| slot.minute().to_string()).join(",") + " * * * *";
        let names: Vec<String> = (0..CRON_JOBS_DUE).map(|index| format!("cron-{index:05}")).collect();
        join_all(names.iter().map(|name| {
            let object = cron_job(name, &schedule, &json!({"concurrencyPolicy": "Replace"}));
            async { ns.create(CRON_JOBS, &{ object }).await }
        }))
        .await;
        assert!(Utc::now() < first, "making CronJobs took too long; the machine is busy");
        sleep_until(slots[1], TimeDelta::seconds(-before)).await;
        leader.kill();

        let late =
            |slot: DateTime<Utc>| Lateness::of(&arena.world.sightings, &ns.name, names.iter().cloned(), slot, slot);
        done_or_late(slots[2], || late(slots[1]).count() == CRON_JOBS_DUE).await;
        done_or_late(slots[2] + TimeDelta::seconds(30), || late(slots[2]).count() == CRON_JOBS_DUE).await;
        still_runs(&standby);
        assert_eq!(late(slots[0]).count(), CRON_JOBS_DUE, "Jobs that are to be replaced");
        let (replaced, next) = (late(slots[1]), late(slots[2]));
        let all = Reach::AtLeast(float(CRON_JOBS_DUE));
        let what = |text: &str| format!("killed {before} s before: {text}");
        figures.extend([
            Figure::count(what(&format!("Jobs of {CRON_JOBS_DUE}")), replaced.count(), all),
            Figure::seconds(what("the last one's lateness"), replaced.last(), Reach::AtMost(60.0)),
            Figure::count(what("Jobs of the slot after, on time"), next.within(ON_TIME), all),
        ]);
        leader = standby;
    }
    figures
}
