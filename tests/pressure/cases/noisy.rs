//! Namespaces whose Jobs are never admitted, beside one whose Jobs are.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use futures::stream::{self, StreamExt};
use serde_json::json;
use testkit::burst::name;
use testkit::driver::{CRON_JOBS, Namespace, cron_job, sleep_until, upcoming_minute};

use crate::contenders::{Arena, still_runs};
use crate::lateness::Lateness;
use crate::table::{Figure, Reach, float};
use crate::webhook::{Behaviour, WebhookServer};

const NOISY: usize = 1_000;
const CALM: usize = 100;
const MINUTES: i32 = 3;

/// Requests in flight while CronJobs are created.
const IN_FLIGHT: usize = 16;

pub async fn first(arena: &Arc<Arena>) -> Vec<Figure> {
    measure(arena, 1, true).await
}

pub async fn last(arena: &Arc<Arena>) -> Vec<Figure> {
    measure(arena, 1, false).await
}

pub async fn ten(arena: &Arc<Arena>) -> Vec<Figure> {
    measure(arena, 10, false).await
}

pub async fn two_hundred(arena: &Arc<Arena>) -> Vec<Figure> {
    measure(arena, 200, false).await
}

async fn measure(arena: &Arc<Arena>, namespaces: usize, is_noisy_first: bool) -> Vec<Figure> {
    let webhook = WebhookServer::start(Behaviour::Hang).await;
    let calm = [arena.world.namespace("calm").await];
    let mut noisy = Vec::new();
    for index in 0..namespaces {
        noisy.push(arena.world.namespace(&format!("noisy-{index:03}")).await);
    }
    webhook.register(&arena.world.plane.admin(), &noisy, "CREATE").await;
    let controller = arena.start_controller(&[]).await;
    // All are created within one minute, after its boundary, so that all are due for the first time at the next one.
    let loaded_from = upcoming_minute().await;
    sleep_until(loaded_from, TimeDelta::milliseconds(500)).await;
    if is_noisy_first {
        load(&noisy, NOISY).await;
    }
    load(&calm, CALM).await;
    if !is_noisy_first {
        load(&noisy, NOISY).await;
    }
    let slot = loaded_from + TimeDelta::minutes(1);
    assert!(Utc::now() < slot, "loading took a minute; the machine is busy");
    let mut figures = Vec::new();
    for minute in 0..MINUTES {
        let slot = slot + TimeDelta::minutes(i64::from(minute));
        sleep_until(slot, TimeDelta::seconds(59)).await;
        figures.extend(minute_of(arena, &calm[0], minute + 1, slot));
    }
    still_runs(&controller);
    figures.push(Figure::count("calls of the webhook", webhook.calls(), Reach::Shown));
    figures
}

/// Creates `count` minutely CronJobs, spread over the namespaces.
async fn load(namespaces: &[Namespace], count: usize) {
    stream::iter(0..count)
        .for_each_concurrent(IN_FLIGHT, |index| async move {
            let ns = &namespaces[index % namespaces.len()];
            ns.create(CRON_JOBS, &cron_job(&name(index), "* * * * *", &json!({}))).await;
        })
        .await;
}

/// The runs of the quiet namespace until the end of the slot's own minute.
fn minute_of(arena: &Arena, calm: &Namespace, number: i32, slot: DateTime<Utc>) -> [Figure; 4] {
    debug_assert_eq!(slot.second(), 0);
    let late = Lateness::of(&arena.world.sightings, &calm.name, (0..CALM).map(name), slot, slot);
    let what = |what: &str| format!("minute {number}: {what}");
    [
        Figure::count(what("calm ones that ran"), late.count(), Reach::AtLeast(float(CALM))),
        Figure::seconds(what("p50"), late.percentile(0.5), Reach::Shown),
        Figure::seconds(what("p99"), late.percentile(0.99), Reach::AtMost(1.0)),
        Figure::seconds(what("max"), late.last(), Reach::Shown),
    ]
}
