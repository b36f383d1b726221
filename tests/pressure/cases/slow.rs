//! Admission of Jobs that is slow, always or under concurrent calls.

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::json;
use testkit::burst::Burst;

use super::{lateness, upcoming};
use crate::contenders::{Arena, still_runs};
use crate::lateness::done_or_late;
use crate::table::{Figure, Reach};
use crate::webhook::{Behaviour, WebhookServer};

const FIVE_SECONDS: Behaviour = Behaviour::Delay(Duration::from_secs(5));
/// The webhook's time for 200 Jobs, whatever their concurrency.
const NARROW_TAKES: f64 = 20.0;

pub async fn small(arena: &Arc<Arena>) -> Vec<Figure> {
    admitted(arena, FIVE_SECONDS, 10, TimeDelta::seconds(15), Reach::AtMost(12.0)).await
}

pub async fn constant(arena: &Arc<Arena>) -> Vec<Figure> {
    admitted(arena, FIVE_SECONDS, 20, TimeDelta::seconds(60), Reach::TimesInTree(1.0)).await
}

pub async fn narrow(arena: &Arc<Arena>) -> Vec<Figure> {
    let behaviour = Behaviour::DelayPerCall(Duration::from_millis(100));
    admitted(arena, behaviour, 200, TimeDelta::seconds(90), Reach::AtMost(1.1 * NARROW_TAKES)).await
}

/// CronJobs due at one instant while each Job has to pass the webhook.
async fn admitted(
    arena: &Arc<Arena>,
    behaviour: Behaviour,
    size: usize,
    patience: TimeDelta,
    last: Reach,
) -> Vec<Figure> {
    let webhook = WebhookServer::start(behaviour).await;
    let controller = arena.start_controller(&[]).await;
    let burst = Burst::due(&arena.world, "slow", size, upcoming(size) + TimeDelta::seconds(5), |_| json!({})).await;
    webhook.register(&arena.world.plane.admin(), std::slice::from_ref(&burst.ns), "CREATE").await;
    assert!(Utc::now() < burst.slot, "the webhook came too late; the machine is busy");
    done_or_late(burst.slot + patience, || lateness(arena, &burst).count() >= size).await;
    still_runs(&controller);
    let late = lateness(arena, &burst);
    vec![
        Figure::count(format!("Jobs created of {size}"), late.count(), Reach::AtLeast(crate::table::float(size))),
        Figure::seconds("the last one's lateness", late.last(), last),
        Figure::count("calls of the webhook", webhook.calls(), Reach::Shown),
    ]
}
