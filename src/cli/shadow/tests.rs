//! A whole shadow beside a whole controller, or beside none, on the embedded API server in virtual time.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::api::batch_v1::Job;
use crate::api::{ControllerKind, Manage};
use crate::cli::cluster::Namespaces;
use crate::client;
use crate::controller::tests::objects::merged;
use crate::controller::tests::support::{CRON_JOBS, Ending, Ends, JOBS, World, job};
use crate::controller::tests::wire::{Ask, Fate, Verb, Wire};
use crate::leader_election::Coverage;

const NOON: &str = "2026-03-02T12:00:30Z";

/// A shadow that runs, and the requests that it sends.
struct Beside {
    wire: Wire,
    ends: JoinHandle<Result<(Value, bool), ShadowError>>,
}

impl Beside {
    /// Watches the world for so many minutes.
    async fn start(world: &World, minutes: i64) -> Self {
        let wire = Wire::new();
        let client = client::on_service(client::read_only(wire.around(world.server.clone().into_service())));
        let clock: SharedClock = world.clock.clone();
        let shadow = Shadow::start(&client, None, ControllerFlags::default(), clock, None, WhatIf::default());
        let ends = tokio::spawn(async move {
            let stop = CancellationToken::new();
            let (report, is_good) = shadow.run(Some(TimeDelta::minutes(minutes)), &stop, &mut |_| {}).await?;
            Ok((serde_json::to_value(report).unwrap(), is_good))
        });
        // Until its first lists are complete.
        world.pass(Duration::from_secs(1)).await;
        Self { wire, ends }
    }

    /// The report, whether it is good, and the requests that were no reads.
    async fn end(self) -> (Value, bool, Vec<Ask>) {
        let (report, is_good) = self.ends.await.unwrap().unwrap();
        let reads = [Verb::Get, Verb::List, Verb::Watch];
        let asked = self.wire.asked_for_anything();
        assert!(!asked.is_empty());
        (report, is_good, asked.into_iter().filter(|ask| !reads.contains(&ask.verb)).collect())
    }
}

#[allow(clippy::unnecessary_wraps, reason = "what an `Ends` returns")]
fn after_twenty_seconds(_: &Job) -> Option<(Duration, Ending)> {
    Some((Duration::from_secs(20), Ending::Complete))
}

/// Jobs of the CronJobs named `long` run for a hundred seconds.
#[allow(clippy::unnecessary_wraps, reason = "what an `Ends` returns")]
fn some_run_long(job: &Job) -> Option<(Duration, Ending)> {
    let seconds = if job.name.name.starts_with("long") { 100 } else { 5 };
    Some((Duration::from_secs(seconds), if job.name.name.contains("fail") { Ending::Failed } else { Ending::Complete }))
}

/// A world in which nothing is due before the shadow watches.
async fn world(ends: Ends) -> World {
    World::with_jobs_that_end(NOON, ends).await
}

/// Creates the Job of a slot, as a controller would, with `change` merged into it.
async fn start_by_hand(world: &World, cron_job: &Value, slot: &str, change: Value) {
    let uid = cron_job["metadata"]["uid"].as_str().unwrap();
    let name = cron_job["metadata"]["name"].as_str().unwrap();
    let number = slot.parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp() / 60;
    let owners = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": true,
    }]);
    let annotations = json!({"metadata": {"annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot}}});
    let object = merged(merged(job(&format!("{name}-{number}"), &owners), annotations), change);
    world.write("POST", JOBS, &object).await;
}

/// The Lease of a controller that is in charge.
async fn hold_lease(world: &World, name: &str, annotations: &Value) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 3600, "renewTime": "2026-03-02T12:00:30.000000Z"},
    });
    world.write("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease).await;
}

fn why(report: &Value, list: &str) -> Vec<String> {
    let entries = report[list].as_array().unwrap().iter();
    entries.map(|entry| format!("{}: {}", entry["name"].as_str().unwrap(), entry["why"].as_str().unwrap())).collect()
}

#[test]
fn log_has_no_numbers_of_a_cluster_that_is_not_read_yet() {
    let refused = || Some("it is away".to_owned());
    for (sentence, is_synced, trouble, want) in [
        ("it is being read", false, None, false),
        ("it cannot be read", false, refused(), true),
        ("it was read", true, None, true),
        ("it was read, and is away", true, refused(), true),
    ] {
        let progress = Progress { is_synced, trouble, ..Progress::default() };
        assert_eq!(progress.says_something(), want, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn report_says_that_namespaces_cannot_be_read() {
    let world = world(after_twenty_seconds).await;
    let shadow = Beside::start(&world, 2).await;
    shadow.wire.judge(|ask| match &*ask.resource {
        "namespaces" => Fate::Denied(403, "Forbidden", "namespaces is forbidden"),
        _ => Fate::Pass,
    });
    world.pass(Duration::from_secs(60)).await;
    let (report, ..) = shadow.end().await;
    assert_eq!(report["namespacesUnread"], "read /api/v1/namespaces: namespaces is forbidden");
}

#[tokio::test(start_paused = true)]
async fn beside_a_controller_that_works_all_slots_agree_and_nothing_is_written() {
    let world = world(some_run_long).await;
    let rows = [
        ("plain", json!({})),
        ("forbid", json!({"concurrencyPolicy": "Forbid"})),
        ("long-forbid", json!({"concurrencyPolicy": "Forbid"})),
        ("long-forbid-late", json!({"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 30})),
        ("long-replace", json!({"concurrencyPolicy": "Replace"})),
        ("fail", json!({"failedJobsHistoryLimit": 0})),
        ("gone", json!({"successfulJobsHistoryLimit": 0})),
        ("suspended", json!({"suspend": true})),
        ("zone", json!({"timeZone": "Europe/Berlin", "schedule": "*/3 13 * * *"})),
        ("every", json!({"schedule": "@every 40s"})),
        ("never", json!({"schedule": "0 0 31 2 *"})),
    ];
    for (name, spec) in rows {
        world.create_cron_job(name, spec).await;
    }
    world.work(4);
    world.pass(Duration::from_secs(1)).await;
    let shadow = Beside::start(&world, 20).await;
    world.pass(Duration::from_secs(300)).await;
    world.create_cron_job("new", json!({})).await;
    world.pass(Duration::from_secs(60)).await;
    world.write("PATCH", &format!("{CRON_JOBS}/plain"), &json!({"spec": {"suspend": true}})).await;
    world.pass(Duration::from_secs(300)).await;
    world.write("PATCH", &format!("{CRON_JOBS}/plain"), &json!({"spec": {"suspend": false}})).await;
    world.write("DELETE", &format!("{CRON_JOBS}/fail"), &Value::Null).await;
    let (report, is_good, writes) = shadow.end().await;
    assert!(is_good, "{report:#}");
    assert!(report["slots"].as_u64().unwrap() > 100, "{report:#}");
    assert_eq!((&report["slots"], &report["agreement"]), (&report["same"], &json!(100.0)), "{report:#}");
    assert!(report["late"]["max"].as_f64().unwrap() < 0.5, "{report:#}");
    assert_eq!(writes, []);
}

#[tokio::test(start_paused = true)]
async fn beside_no_controller_every_slot_is_missed() {
    let world = world(after_twenty_seconds).await;
    for name in ["a", "b"] {
        world.create_cron_job(name, json!({})).await;
    }
    let shadow = Beside::start(&world, 5).await;
    let (report, is_good, writes) = shadow.end().await;
    assert_eq!((is_good, &report["slots"], &report["same"]), (false, &json!(10), &json!(0)), "{report:#}");
    assert_eq!(report["missed"].as_array().unwrap().len(), 10, "{report:#}");
    assert_eq!(report["missed"][0]["namespace"], "default");
    assert_eq!(writes, []);
}

#[tokio::test(start_paused = true)]
async fn what_a_defective_controller_does_is_found_by_name() {
    let world = world(|_| None).await;
    hold_lease(&world, "cronjob-controller", &json!({})).await;
    let daily = |name: &str, spec: Value| {
        let spec = merged(json!({"schedule": "2 12 * * *"}), spec);
        (name.to_owned(), spec)
    };
    let mut made = std::collections::BTreeMap::new();
    for (name, spec) in [
        daily("good", json!({})),
        daily("lost", json!({})),
        daily("twice", json!({})),
        daily("stale", json!({})),
        daily("excluded", json!({})),
        ("forbid".to_owned(), json!({"schedule": "1,2 12 * * *", "concurrencyPolicy": "Forbid"})),
    ] {
        let cron_job = world.create_cron_job(&name, spec).await;
        made.insert(name, cron_job);
    }
    let exclude = json!({"metadata": {"annotations": {"cronjob-controller.dev/exclude": "2026-03-02"}}});
    world.write("PATCH", &format!("{CRON_JOBS}/excluded"), &exclude).await;
    let shadow = Beside::start(&world, 6).await;
    let (first, second) = ("2026-03-02T12:01:00Z", "2026-03-02T12:02:00Z");
    let tell = async |name: &str, slot: &str| {
        let number = slot.parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp() / 60;
        let started = world.request("GET", &format!("{JOBS}/{name}-{number}"), &Value::Null).await.unwrap();
        let active = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": started["metadata"]["name"], "namespace": "default",
            "uid": started["metadata"]["uid"],
        }]);
        let status = json!({"status": {"lastScheduleTime": slot, "active": active}});
        world.write("PATCH", &format!("{CRON_JOBS}/{name}/status"), &status).await;
    };
    world.pass_until("2026-03-02T12:01:00.1Z").await;
    start_by_hand(&world, &made["forbid"], first, json!({})).await;
    tell("forbid", first).await;
    world.pass_until("2026-03-02T12:02:00.1Z").await;
    for name in ["good", "twice", "stale", "excluded", "forbid"] {
        start_by_hand(&world, &made[name], second, json!({})).await;
    }
    for name in ["good", "twice", "excluded"] {
        tell(name, second).await;
    }
    start_by_hand(&world, &made["twice"], second, json!({"metadata": {"name": "another"}})).await;
    let (report, is_good, writes) = shadow.end().await;
    assert!(!is_good);
    assert_eq!(why(&report, "missed"), ["lost: no Job was created for it within 3m00s"], "{report:#}");
    assert_eq!(why(&report, "twice"), ["twice: Jobs twice-29540882 and another were created for it"], "{report:#}");
    let differs = why(&report, "differs");
    for want in [
        "forbid: Forbid broken: Job forbid-29540882 began while Job forbid-29540881 ran, and concurrencyPolicy is Forbid",
        "stale: status wrong for over a minute: active lacks the running Job stale-29540882",
        "excluded: started there and not here: a policy leaves it out; Job excluded-29540882",
    ] {
        assert!(differs.iter().any(|found| found == want), "{want}: {report:#}");
    }
    assert!(!format!("{report}").contains("\"good\""), "{report:#}");
    assert_eq!(writes, []);
}

#[tokio::test(start_paused = true)]
async fn slots_in_a_gap_of_the_watch_are_not_seen() {
    let world = world(after_twenty_seconds).await;
    world.create_cron_job("a", json!({})).await;
    world.work(4);
    world.pass(Duration::from_secs(1)).await;
    let shadow = Beside::start(&world, 10).await;
    world.pass_until("2026-03-02T12:02:30Z").await;
    shadow.wire.hold_watches(true);
    world.pass_until("2026-03-02T12:05:30Z").await;
    world.server.compact();
    shadow.wire.cut_watches();
    shadow.wire.hold_watches(false);
    let (report, is_good, _) = shadow.end().await;
    assert!(is_good, "{report:#}");
    assert_eq!((&report["slots"], &report["same"]), (&json!(7), &json!(7)), "{report:#}");
    assert_eq!(report["notSeen"], 3, "{report:#}");
}

/// The API server goes away, or the credentials end, and nothing is seen any more.
#[tokio::test(start_paused = true)]
async fn a_shadow_that_went_blind_counts_what_came_due_since_as_not_seen() {
    let world = world(after_twenty_seconds).await;
    world.create_cron_job("a", json!({})).await;
    world.work(4);
    let shadow = Beside::start(&world, 10).await;
    world.pass_until("2026-03-02T12:02:30Z").await;
    shadow.wire.judge(|_| Fate::Denied(401, "Unauthorized", "the token has expired"));
    shadow.wire.cut_watches();
    let (report, is_good, _) = shadow.end().await;
    assert!(is_good, "{report:#}");
    assert_eq!([&report["slots"], &report["same"], &report["notSeen"]], [2, 2, 8], "{report:#}");
    let verdict = report["verdict"].as_str().unwrap();
    assert!(verdict.contains("At the end nothing was seen any more: ") && verdict.contains("expired"), "{verdict}");
}

/// Namespaces are read every ten seconds, and the controller sees them at once.
#[tokio::test(start_paused = true)]
async fn freezes_and_thaws_beside_slots_are_no_differences() {
    let world = world(after_twenty_seconds).await;
    for name in ["a", "b"] {
        world.create_cron_job(name, json!({})).await;
    }
    world.work(4);
    let shadow = Beside::start(&world, 12).await;
    let path = "/api/v1/namespaces/default";
    let freeze = |until: Value| json!({"metadata": {"annotations": {"cronjob-controller.dev/not-before": until}}});
    for (at, until) in [
        ("2026-03-02T12:01:59Z", json!("2026-03-02T14:00:00Z")),
        ("2026-03-02T12:02:59Z", Value::Null),
        ("2026-03-02T12:05:52Z", json!("2026-03-02T14:00:00Z")),
        ("2026-03-02T12:08:01Z", Value::Null),
    ] {
        world.pass_until(at).await;
        world.request("PATCH", path, &freeze(until)).await.unwrap();
    }
    let (report, is_good, _) = shadow.end().await;
    assert!(is_good, "{report:#}");
    assert!(report["same"].as_u64().unwrap() >= 12, "{report:#}");
}

/// A CronJob that is handed over is suspended for the in-tree controller, and a controller with `--manage=all` leaves it out.
#[tokio::test(start_paused = true)]
async fn handed_over_cron_job_counts_as_suspended_where_no_controller_manages_it() {
    // What the controller manages, how many slots are missed, and what is found where a Job is started all the same.
    let rows: [(Manage, usize, &[&str]); 2] =
        [(Manage::All, 0, &["c: started there and not here: the CronJob is suspended"]), (Manage::Annotated, 2, &[])];
    for (manage, missed, differs) in rows {
        let world = world(|_| None).await;
        let covers = Coverage::new(["cronjob"], &[]).managing(manage);
        hold_lease(&world, "cronjob-controller", &json!(covers.annotations())).await;
        let cron_job = world.create_cron_job("c", json!({"schedule": "1-3 12 * * *"})).await;
        let handed_over = json!({
            "metadata": {"annotations": {"cronjob-controller.dev/managed": "true"}}, "spec": {"suspend": true},
        });
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &handed_over).await;
        let shadow = Beside::start(&world, 6).await;
        world.pass_until("2026-03-02T12:03:00.1Z").await;
        start_by_hand(&world, &cron_job, "2026-03-02T12:03:00Z", json!({})).await;
        let (report, ..) = shadow.end().await;
        assert_eq!(report["missed"].as_array().unwrap().len(), missed, "{manage:?}: {report:#}");
        let found = why(&report, "differs").into_iter().filter(|why| !why.contains("status wrong")).collect::<Vec<_>>();
        assert_eq!(found.len(), differs.len(), "{manage:?}: {report:#}");
        assert!(found.iter().zip(differs).all(|(found, want)| found.starts_with(want)), "{manage:?}: {report:#}");
    }
}

/// What docs/divergences.md lists is no difference where the in-tree controller is in charge, and is one of this controller.
#[tokio::test(start_paused = true)]
async fn listed_divergences_of_the_in_tree_controller_are_no_differences() {
    const TAKEN: &str = "since a Job of another owner had the name of an earlier slot's Job, it waits for an edit";
    const UNEVEN: &str = "its estimate of the newest slot of an uneven schedule leaves it out";
    let missed = |name: &str| format!("{name}: no Job was created for it within 3m00s");
    let beside = "orphan: Forbid broken: Job orphan-29540882 began while Job orphan-29540881 ran";
    for is_in_tree in [true, false] {
        let world = world(|_| None).await;
        hold_lease(&world, if is_in_tree { "kube-controller-manager" } else { "cronjob-controller" }, &json!({})).await;
        let forbid = json!({"schedule": "1,2 12 * * *", "concurrencyPolicy": "Forbid"});
        let orphan = world.create_cron_job("orphan", forbid).await;
        let again = world.create_cron_job("again", json!({"schedule": "1 12 * * *"})).await;
        world.create_cron_job("taken", json!({"schedule": "1,2 12 * * *"})).await;
        let uneven = world.create_cron_job("uneven", json!({"schedule": "1,2,3,9,13 12 * * *"})).await;
        world.write("POST", JOBS, &job("taken-29540881", &json!([]))).await;
        let shadow = Beside::start(&world, 15).await;
        let (first, second) = ("2026-03-02T12:01:00Z", "2026-03-02T12:02:00Z");
        world.pass_until("2026-03-02T12:01:00.1Z").await;
        for cron_job in [&orphan, &again] {
            start_by_hand(&world, cron_job, first, json!({})).await;
        }
        world.pass_until("2026-03-02T12:01:10Z").await;
        world.write("DELETE", &format!("{JOBS}/again-29540881"), &Value::Null).await;
        world.pass_until("2026-03-02T12:01:20Z").await;
        start_by_hand(&world, &again, first, json!({})).await;
        world.pass_until("2026-03-02T12:02:00.1Z").await;
        start_by_hand(&world, &orphan, second, json!({})).await;
        world.pass_until("2026-03-02T12:13:00.1Z").await;
        start_by_hand(&world, &uneven, "2026-03-02T12:13:00Z", json!({})).await;
        let (report, is_good, _) = shadow.end().await;
        let found = ["missed", "twice", "differs", "listed"].map(|list| {
            let mut found = why(&report, list);
            found.retain(|why| !why.contains("status wrong"));
            found.sort();
            found
        });
        let lost = |slots: usize| vec![missed("uneven"); slots];
        let want = if is_in_tree {
            let listed = vec![
                "again: Job again-29540881 was created again: it was gone before the status told of its slot"
                    .to_owned(),
                format!("{beside}, of which the status does not tell"),
                format!("{}: {TAKEN}", missed("taken")),
                format!("uneven: no Job was created for it before that of 2026-03-02 12:13:00Z: {UNEVEN}"),
            ];
            [lost(3), vec![], vec![], listed]
        } else {
            [
                [vec![missed("taken")], lost(4)].concat(),
                vec!["again: Job again-29540881 was created twice".to_owned()],
                vec![format!("{beside}, and concurrencyPolicy is Forbid")],
                vec![],
            ]
        };
        assert_eq!(found, want, "in-tree: {is_in_tree}: {report:#}");
        assert!(!is_good, "slots are missed, and statuses are wrong");
    }
}

#[tokio::test(start_paused = true)]
async fn annotated_cron_job_of_the_in_tree_controller_is_judged_without_policies_and_counted_apart() {
    let world = world(|_| None).await;
    hold_lease(&world, "kube-controller-manager", &json!({})).await;
    let cron_job = world.create_cron_job("c", json!({"schedule": "1,2 12 * * *"})).await;
    let exclude = json!({"metadata": {"annotations": {"cronjob-controller.dev/exclude": "2026-03-02"}}});
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &exclude).await;
    let shadow = Beside::start(&world, 4).await;
    for slot in ["2026-03-02T12:01:00Z", "2026-03-02T12:02:00Z"] {
        world.pass_until(&slot.replace("00Z", "00.1Z")).await;
        start_by_hand(&world, &cron_job, slot, json!({})).await;
    }
    let (report, is_good, _) = shadow.end().await;
    assert_eq!(report["apart"], json!({"slots": 2, "same": 2}), "{report:#}");
    assert!(is_good, "{report:#}");
}

#[tokio::test(start_paused = true)]
async fn report_so_far_is_in_its_file() {
    let world = world(after_twenty_seconds).await;
    world.create_cron_job("c", json!({})).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let client = client::on_service(client::read_only(world.server.clone().into_service()));
    let clock: SharedClock = world.clock.clone();
    let mut shadow = Shadow::start(&client, None, ControllerFlags::default(), clock, None, WhatIf::default());
    shadow.file = Some(ReportFile::new(path.clone()));
    let stop = CancellationToken::new();
    let ends = tokio::spawn({
        let stop = stop.clone();
        async move { shadow.run(None, &stop, &mut |_| {}).await }
    });
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap();
    world.pass_until("2026-03-02T12:01:45Z").await;
    assert_eq!((&read()["open"], &read()["missed"]), (&json!(1), &json!([])));
    world.pass_until("2026-03-02T12:04:15Z").await;
    assert_eq!(read()["missed"].as_array().unwrap().len(), 1);
    stop.cancel();
    let (report, _) = ends.await.unwrap().unwrap();
    assert_eq!(read(), serde_json::to_value(report).unwrap());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
}

/// The shadow waits for Jobs of slots that were due before its end.
#[tokio::test(start_paused = true)]
async fn job_of_a_slot_after_the_end_shows_what_was_missed_and_is_not_compared() {
    let world = world(|_| None).await;
    hold_lease(&world, "cronjob-controller", &json!({})).await;
    let lost = world.create_cron_job("lost", json!({"schedule": "2,3 12 * * *"})).await;
    let spec = json!({"schedule": "2,3 12 * * *", "concurrencyPolicy": "Forbid"});
    let beside = world.create_cron_job("beside", spec).await;
    let shadow = Beside::start(&world, 2).await;
    let (before, after) = ("2026-03-02T12:02:00Z", "2026-03-02T12:03:00Z");
    world.pass_until("2026-03-02T12:02:00.1Z").await;
    start_by_hand(&world, &beside, before, json!({})).await;
    world.pass_until("2026-03-02T12:03:00.1Z").await;
    for cron_job in [&lost, &beside] {
        start_by_hand(&world, cron_job, after, json!({})).await;
    }
    world.write("PATCH", &format!("{CRON_JOBS}/lost/status"), &json!({"status": {"lastScheduleTime": after}})).await;
    let (report, ..) = shadow.end().await;
    let missed = ["lost: no Job was created for it before that of 2026-03-02 12:03:00Z"];
    assert_eq!((why(&report, "missed").as_slice(), &report["slots"]), (&missed.map(str::to_owned)[..], &json!(2)));
    assert!(!report.to_string().contains("Forbid broken"), "{report:#}");
}

/// The clock of the controller in charge may be ahead. Its Job is compared when its slot is due.
#[tokio::test(start_paused = true)]
async fn job_a_little_before_its_slot_is_judged_when_the_slot_is_due() {
    let world = world(|_| None).await;
    hold_lease(&world, "cronjob-controller", &json!({})).await;
    let slot = "2026-03-02T12:01:00Z";
    let mut made = Vec::new();
    for (name, spec) in [
        ("good", json!({"schedule": "1 12 * * *"})),
        ("never", json!({"schedule": "0 0 1 1 *"})),
        ("suspended", json!({"suspend": true})),
        ("excluded", json!({})),
    ] {
        made.push((name, world.create_cron_job(name, spec).await));
    }
    let exclude = json!({"metadata": {"annotations": {"cronjob-controller.dev/exclude": "2026-03-02"}}});
    world.write("PATCH", &format!("{CRON_JOBS}/excluded"), &exclude).await;
    let shadow = Beside::start(&world, 1).await;
    world.pass_until("2026-03-02T12:00:57Z").await;
    for (name, cron_job) in &made {
        start_by_hand(&world, cron_job, slot, json!({})).await;
        let started = world.request("GET", &format!("{JOBS}/{name}-29540881"), &Value::Null).await.unwrap();
        let active = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": started["metadata"]["name"], "namespace": "default",
            "uid": started["metadata"]["uid"],
        }]);
        let status = json!({"status": {"lastScheduleTime": slot, "active": active}});
        world.write("PATCH", &format!("{CRON_JOBS}/{name}/status"), &status).await;
    }
    let (report, is_good, _) = shadow.end().await;
    let mut differs = why(&report, "differs");
    differs.sort();
    let want = [
        "excluded: started there and not here: a policy leaves it out; Job excluded-29540881",
        "never: started there and not here: the schedule has no such time; Job never-29540881",
        "suspended: started there and not here: the CronJob is suspended (spec.suspend); Job suspended-29540881",
    ];
    assert_eq!((differs.as_slice(), is_good), (&want.map(str::to_owned)[..], false), "{report:#}");
    assert_eq!((&report["slots"], &report["same"], &report["late"]["max"]), (&json!(4), &json!(1), &json!(0.0)));
}

/// All Events together have five seconds.
#[tokio::test(start_paused = true)]
async fn end_does_not_wait_for_a_server_that_is_silent_about_events() {
    let world = world(|_| None).await;
    world.create_cron_job("lost", json!({"schedule": "1 12 * * *"})).await;
    let shadow = Beside::start(&world, 1).await;
    shadow.wire.judge(|ask| if &*ask.resource == "events" { Fate::Swallowed } else { Fate::Pass });
    world.pass_until("2026-03-02T12:04:00.5Z").await;
    let began = tokio::time::Instant::now();
    let (report, ..) = shadow.end().await;
    assert_eq!(report["missed"].as_array().unwrap().len(), 1, "{report:#}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn shadow_that_is_stopped_before_it_saw_anything_prints_a_report_of_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let content = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    std::fs::write(&kubeconfig, content.to_string()).unwrap();
    let scope = Scope {
        controller_kind: ControllerKind::CronJob,
        namespaces: Namespaces::All,
        name: None,
        kubeconfig: Some(kubeconfig),
        context: None,
    };
    let config = ShadowConfig {
        scope,
        flags: ControllerFlags::default(),
        lasts: None,
        format: Format::Json,
        metrics: None,
        what_if: WhatIf::default(),
        report: None,
    };
    let stop = CancellationToken::new();
    stop.cancel();
    let answer = run(config, None, stop).await.unwrap();
    let text = (*answer.text).to_owned();
    let report: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&report["slots"], &report["differs"], answer.is_good), (&json!(0), &json!([]), true));
}
