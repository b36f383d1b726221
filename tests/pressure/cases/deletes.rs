//! Deletions of Jobs that are refused, or never answered.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use testkit::burst::name;
use testkit::driver::{CRON_JOBS, JOBS, Namespace, cron_job, finished, minutes_ago, sleep_until, upcoming_minute};

use super::{ON_TIME, REPLACED, create_replacing};
use crate::contenders::{Arena, still_runs};
use crate::lateness::{Lateness, done_or_late};
use crate::table::{Figure, Reach, float};
use crate::webhook::{Behaviour, WebhookServer};

/// How long deletions are refused, starting at the slot.
const REFUSED: TimeDelta = TimeDelta::minutes(2);
/// Finished Jobs that are to be pruned.
const PRUNED: usize = 600;
const SLOTS: usize = 5;

/// In three namespaces at once, each refused in its own way. One slot comes due a minute after each CronJob's first,
/// while deletions are refused, and another a minute after they are admitted again.
pub async fn refused(arena: &Arc<Arena>) -> Vec<Figure> {
    let ways = [
        ("HTTP 500", "failed-500", Behaviour::Fail(500), Reach::AtMost(5.0)),
        ("denied with 503", "denied-503", Behaviour::Deny(503), Reach::Shown),
        ("denied with 429", "denied-429", Behaviour::Deny(429), Reach::Shown),
    ];
    let controller = arena.start_controller(&[]).await;
    let admin = arena.world.plane.admin();
    let spaces = join_all(ways.map(|(_, namespace, ..)| async {
        let ns = arena.world.namespace(namespace).await;
        let webhook = WebhookServer::start(Behaviour::Admit).await;
        webhook.register(&admin, std::slice::from_ref(&ns), "DELETE").await;
        (ns, webhook)
    }))
    .await;

    let first = upcoming_minute().await + TimeDelta::minutes(1);
    let slots = [first, first + TimeDelta::minutes(1), first + TimeDelta::minutes(4)];
    for (ns, _) in &spaces {
        create_replacing(ns, &slots).await;
    }
    sleep_until(first, TimeDelta::seconds(50)).await;
    for ((_, webhook), (.., behaviour, _)) in spaces.iter().zip(ways) {
        webhook.set(behaviour);
    }
    sleep_until(slots[1], REFUSED).await;
    let calls: Vec<usize> = spaces.iter().map(|(_, webhook)| webhook.calls()).collect();
    for (_, webhook) in &spaces {
        webhook.set(Behaviour::Admit);
    }
    let recovered = Utc::now();

    let late = |ns: &Namespace, slot, since| {
        Lateness::of(&arena.world.sightings, &ns.name, (0..REPLACED).map(name), slot, since)
    };
    let all = |slot| spaces.iter().all(|(ns, _)| late(ns, slot, slot).count() == REPLACED);
    done_or_late(slots[2], || all(slots[1])).await;
    done_or_late(slots[2] + TimeDelta::seconds(30), || all(slots[2])).await;
    still_runs(&controller);
    let mut figures = Vec::new();
    for (((ns, _), (way, .., reach)), calls) in spaces.iter().zip(ways).zip(calls) {
        let running = late(ns, slots[0], slots[0]).count();
        assert_eq!(running, REPLACED, "Jobs that are to be replaced, in {}", ns.name);
        let (replaced, next) = (late(ns, slots[1], recovered), late(ns, slots[2], slots[2]));
        figures.extend([
            Figure::count(format!("{way}: Jobs of {REPLACED}"), replaced.count(), Reach::Shown),
            Figure::seconds(format!("{way}: p50 after recovery"), replaced.percentile(0.5), Reach::Shown),
            Figure::seconds(format!("{way}: last after recovery"), replaced.last(), reach),
            Figure::count(
                format!("{way}: next slots on time of {REPLACED}"),
                next.within(ON_TIME),
                Reach::AtLeast(float(REPLACED)),
            ),
            Figure::count(format!("{way}: deletions tried meanwhile"), calls, Reach::Shown),
        ]);
    }
    figures
}

/// One minutely CronJob with hundreds of finished Jobs beyond its history, whose deletion is never answered.
pub async fn hanging(arena: &Arc<Arena>) -> Vec<Figure> {
    let webhook = WebhookServer::start(Behaviour::Hang).await;
    let ns = arena.world.namespace("pruned").await;
    webhook.register(&arena.world.plane.admin(), std::slice::from_ref(&ns), "DELETE").await;
    let spec = json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0, "suspend": true});
    let owner = ns.create(CRON_JOBS, &cron_job("pruned", "* * * * *", &spec)).await;
    let past = minutes_ago(30);
    stream::iter(0..PRUNED)
        .for_each_concurrent(16, |index| {
            let (ns, job) = (&ns, finished_job(&owner, index));
            async move {
                ns.create(JOBS, &job).await;
                let name = job["metadata"]["name"].as_str().unwrap();
                ns.patch_status(JOBS, name, &finished(&["SuccessCriteriaMet", "Complete"], past)).await;
            }
        })
        .await;
    let controller = arena.start_controller(&[]).await;
    let first = upcoming_minute().await;
    ns.patch(CRON_JOBS, "pruned", &json!({"spec": {"suspend": false}})).await;
    let slots: Vec<DateTime<Utc>> =
        (0..SLOTS).map(|index| first + TimeDelta::minutes(i64::try_from(index).unwrap())).collect();
    sleep_until(slots[SLOTS - 1], TimeDelta::seconds(30)).await;
    still_runs(&controller);
    let late = |slot| Lateness::of(&arena.world.sightings, &ns.name, ["pruned".to_owned()], slot, slot);
    let on_time = slots.iter().filter(|slot| late(**slot).within(ON_TIME) == 1).count();
    let ran = slots.iter().filter_map(|slot| late(*slot).last());
    let (count, last) = ran.fold((0, None), |(count, last), late| (count + 1, Some(late.max(last.unwrap_or(0.0)))));
    vec![
        Figure::count(format!("slots on time of {SLOTS}"), on_time, Reach::AtLeast(float(SLOTS))),
        Figure::count(format!("slots that ran of {SLOTS}"), count, Reach::Shown),
        Figure::seconds("the latest of these", last, Reach::Shown),
        Figure::count("deletions tried", webhook.calls(), Reach::Shown),
    ]
}

fn finished_job(owner: &Value, index: usize) -> Value {
    let reference = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": format!("done-{index:05}"), "ownerReferences": [reference]},
        "spec": owner["spec"]["jobTemplate"]["spec"],
    })
}
