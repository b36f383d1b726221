//! CronJobs whose slots wait for other Jobs or replace them, from the API server to their Jobs.

use super::support::final_status;
use super::*;
use crate::api::job_template::LONGEST_KEPT;

const PREFIX: &str = "cronjob-controller.dev";
const HOLD: &str = "example.com/hold";

async fn create(world: &World, spec: Value, policies: &[(&str, &str)]) {
    let entries: serde_json::Map<_, _> =
        policies.iter().map(|(name, value)| (format!("{PREFIX}/{name}"), json!(value))).collect();
    let annotations = json!({ "metadata": { "annotations": entries } });
    world.write("POST", CRON_JOBS, &objects::merged(cron_job("c", spec), annotations)).await;
}

/// Says when a Job began, and gives it the finalizers.
async fn begin(world: &World, name: &str, at: &str, finalizers: &[&str]) {
    world.write("PATCH", &format!("{JOBS}/{name}"), &json!({ "metadata": { "finalizers": finalizers } })).await;
    world.write("PATCH", &format!("{JOBS}/{name}/status"), &json!({ "status": { "startTime": at } })).await;
}

async fn release(world: &World, name: &str) {
    world.write("PATCH", &format!("{JOBS}/{name}"), &json!({ "metadata": { "finalizers": [] } })).await;
}

async fn count(world: &World, reason: &str) -> usize {
    world.reasons().await.iter().filter(|known| *known == reason).count()
}

/// A Job that does not go neither blocks nor is deleted again, also not by the next leader.
#[tokio::test(start_paused = true)]
async fn stuck_job_is_deleted_once_and_the_slot_starts() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    let forbid = json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Forbid" });
    create(&world, forbid, &[("stuck-after", "90m, delete")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    begin(&world, "c-29540760", "2026-03-02T10:00:00Z", &[HOLD]).await;
    world.pass_until("2026-03-02T11:29:00Z").await;
    assert_eq!((world.seen_names().len(), world.wire.count(Verb::Delete, "jobs")), (1, 0));
    // The controller comes back when the Job has run for 90 minutes, and the slot of 11:00 starts.
    world.pass_until("2026-03-02T11:30:30Z").await;
    assert_eq!(world.seen_names(), ["c-29540760", "c-29540820"]);
    assert_eq!(world.wire.count(Verb::Delete, "jobs"), 1);
    assert_eq!(count(&world, "RunStuck").await, 1);
    complete(&world, "c-29540820", "2026-03-02T11:30:00Z", "2026-03-02T11:35:00Z").await;
    stop.cancel();
    let world = world.successor().await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T12:00:30Z").await;
    stop.cancel();
    assert!(world.seen_names().contains(&"c-29540880".to_owned()), "{:?}", world.seen_names());
    assert_eq!(world.wire.count(Verb::Delete, "jobs"), 0, "by this leader");
    let old = world.request("GET", &format!("{JOBS}/c-29540760"), &Value::Null).await.unwrap();
    assert!(old["metadata"]["deletionTimestamp"].is_string(), "{old}");
}

/// Completes a Job.
async fn complete(world: &World, name: &str, started: &str, ended: &str) {
    let status = final_status(Ending::Complete, objects::time(started), objects::time(ended));
    world.write("PATCH", &format!("{JOBS}/{name}/status"), &json!({ "status": status })).await;
}

#[tokio::test(start_paused = true)]
async fn replaced_job_is_gone_before_the_next_one_starts() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "concurrencyPolicy": "Replace" }), &[("replace-waits", "true")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    begin(&world, "c-29540760", "2026-03-02T10:00:00Z", &[HOLD]).await;
    world.pass_until("2026-03-02T10:02:30Z").await;
    assert_eq!(world.seen_names(), ["c-29540760"], "it is terminating");
    assert_eq!(world.wire.count(Verb::Delete, "jobs"), 1, "once");
    assert_eq!(count(&world, "JobAlreadyActive").await, 1, "not for each slot");
    release(&world, "c-29540760").await;
    world.pass(seconds(5)).await;
    stop.cancel();
    assert_eq!(world.seen_names(), ["c-29540760", "c-29540762"], "the newest slot");
    let status = world.get("c").await["status"].clone();
    assert_eq!(status["active"].as_array().unwrap().len(), 1, "{status}");
}

/// What the controller itself deleted, also as history, counts until it is gone.
#[tokio::test(start_paused = true)]
async fn replacing_job_waits_for_a_finished_one_that_was_pruned_moments_ago() {
    for (finalizers, while_it_lingers) in [(&[HOLD] as &[_], 1), (&[], 2)] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        let spec = json!({ "concurrencyPolicy": "Replace", "successfulJobsHistoryLimit": 0 });
        create(&world, spec, &[("replace-waits", "true")]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:00:30Z").await;
        begin(&world, "c-29540760", "2026-03-02T10:00:00Z", finalizers).await;
        world.pass_until("2026-03-02T10:00:55Z").await;
        complete(&world, "c-29540760", "2026-03-02T10:00:00Z", "2026-03-02T10:00:55Z").await;
        world.pass_until("2026-03-02T10:01:10Z").await;
        assert_eq!(world.wire.count(Verb::Delete, "jobs"), 1, "pruned");
        assert_eq!(world.seen_names().len(), while_it_lingers, "{finalizers:?}");
        if !finalizers.is_empty() {
            release(&world, "c-29540760").await;
        }
        world.pass(seconds(5)).await;
        stop.cancel();
        assert_eq!(world.seen_names(), ["c-29540760", "c-29540761"], "{finalizers:?}");
    }
}

/// Also when it ends within the time for which what this process deleted is hidden: the next slot is an hour away.
#[tokio::test(start_paused = true)]
async fn replaced_job_that_succeeds_while_a_finalizer_keeps_it_is_recorded() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Replace" }), &[]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    begin(&world, "c-29540760", "2026-03-02T10:00:00Z", &[HOLD]).await;
    world.pass_until("2026-03-02T11:00:10Z").await;
    assert_eq!(world.seen_names(), ["c-29540760", "c-29540820"]);
    complete(&world, "c-29540760", "2026-03-02T10:00:00Z", "2026-03-02T11:00:10Z").await;
    world.pass_until("2026-03-02T11:05:00Z").await;
    stop.cancel();
    assert_eq!(world.wire.count(Verb::Delete, "jobs"), 1, "once");
    let status = world.get("c").await["status"].clone();
    assert_eq!(status["lastSuccessfulTime"], "2026-03-02T11:00:10Z", "{status}");
    assert_eq!(status["active"].as_array().unwrap().len(), 1, "{status}");
}

/// Every leader deletes it at most once, also if it knows of the deletion from the API server alone.
#[tokio::test(start_paused = true)]
async fn replaced_job_that_a_finalizer_keeps_is_not_deleted_again_at_each_slot() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "concurrencyPolicy": "Replace" }), &[]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    begin(&world, "c-29540760", "2026-03-02T10:00:00Z", &[HOLD]).await;
    world.pass_until("2026-03-02T10:05:30Z").await;
    stop.cancel();
    let deletions =
        |world: &World| world.wire.asked(Verb::Delete, "jobs").iter().filter(|ask| ask.name == "c-29540760").count();
    assert_eq!((deletions(&world), world.children().await.len()), (1, 2));
    let world = world.successor().await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:07:30Z").await;
    stop.cancel();
    assert_eq!((deletions(&world), world.children().await.len()), (0, 2));
}

/// Nothing is written about slots that wait, and a new leader goes on with them in order.
#[tokio::test(start_paused = true)]
async fn waiting_slots_start_in_order_over_a_change_of_the_leader() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "concurrencyPolicy": "Forbid" }), &[("backlog", "3")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:05:30Z").await;
    assert_eq!(world.seen_names(), ["c-29540760"]);
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 1);
    for (job, next) in [("c-29540760", "c-29540763"), ("c-29540763", "c-29540764")] {
        world.write("DELETE", &format!("{JOBS}/{job}"), &json!({ "propagationPolicy": "Background" })).await;
        world.pass(seconds(2)).await;
        assert_eq!(world.seen_names().last().unwrap(), next);
    }
    stop.cancel();
    let world = world.successor().await;
    let stop = world.work(2);
    world.pass(seconds(2)).await;
    world.write("DELETE", &format!("{JOBS}/c-29540764"), &json!({ "propagationPolicy": "Background" })).await;
    world.pass(seconds(2)).await;
    stop.cancel();
    assert_eq!(world.seen_names().last().unwrap(), "c-29540765");
}

/// The resume is seen by the next leader only.
#[tokio::test(start_paused = true)]
async fn resume_starts_nothing_older_with_after_change_wait() {
    for (policy, want) in [("wait", 1), ("fire", 2)] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        create(&world, json!({ "schedule": "0 * * * *" }), &[("after-change", policy)]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:30:00Z").await;
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": { "suspend": true } })).await;
        world.pass_until("2026-03-02T11:30:00Z").await;
        stop.cancel();
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": { "suspend": false } })).await;
        let world = world.successor().await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T11:59:00Z").await;
        assert_eq!(world.children().await.len(), want, "{policy}");
        world.pass_until("2026-03-02T12:00:30Z").await;
        stop.cancel();
        assert_eq!(world.children().await.len(), want + 1, "{policy}");
    }
}

/// No controller runs while the CronJob is edited, and afterwards it is as it was.
#[tokio::test(start_paused = true)]
async fn a_suspension_that_no_controller_saw_starts_nothing_older_with_after_change_wait() {
    let suspend = |suspend: bool| json!({ "spec": { "suspend": suspend } });
    let label = |value: &str| json!({ "spec": { "jobTemplate": { "metadata": { "labels": { "version": value } } } } });
    // (sentence, the edits with their times and managers, whether the slot of 11:00 starts, the generation in the record)
    let rows = [
        ("nothing is edited", vec![], true, 1),
        ("suspended and resumed", vec![("10:40", suspend(true), "a"), ("11:20", suspend(false), "a")], false, 3),
        ("both before the slot", vec![("10:40", suspend(true), "a"), ("10:50", suspend(false), "a")], true, 3),
        ("an edit of the template", vec![("11:20", label("2"), "a")], true, 2),
        ("two by one who owns no more", vec![("11:10", label("2"), "b"), ("11:20", label("3"), "b")], true, 3),
    ];
    for (sentence, edits, is_started, generation) in rows {
        let world = World::new("2026-03-02T09:59:30Z").await;
        create(&world, json!({ "schedule": "0 * * * *" }), &[("after-change", "wait")]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:30:00Z").await;
        stop.cancel();
        for (at, edit, manager) in edits {
            world.pass_until(&format!("2026-03-02T{at}:00Z")).await;
            world.write("PATCH", &format!("{CRON_JOBS}/c?fieldManager={manager}"), &edit).await;
        }
        world.pass_until("2026-03-02T11:30:00Z").await;
        let world = world.successor().await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T11:59:00Z").await;
        stop.cancel();
        assert_eq!(world.children().await.contains(&"c-29540820".to_owned()), is_started, "{sentence}");
        let annotations = world.get("c").await["metadata"]["annotations"].clone();
        let record = annotations[format!("{PREFIX}/counted-from")].as_str().unwrap().to_owned();
        assert!(record.ends_with(&format!(":{generation}")), "{sentence}: {record}");
    }
}

/// With `backlog: 0` a slot is passed over because of a run, and not because of the API server.
#[tokio::test(start_paused = true)]
async fn a_slot_that_the_server_held_up_for_longer_than_a_minute_starts_whatever_its_sync_had_come_to() {
    let long = json!({ "jobTemplate": { "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [
        { "name": "c", "image": "busybox", "args": ["x".repeat(2 * LONGEST_KEPT)] },
    ] } } } } });
    let gone =
        json!({ "kind": "Job", "namespace": "ns", "name": "c-29540700", "uid": "gone", "apiVersion": "batch/v1" });
    // (sentence, the spec, the status, how long the first Job of 09:00 runs, whether the slot of 10:00 starts)
    let rows = [
        ("its create failed", json!({}), json!({}), None, true),
        ("its template could not be read", long.clone(), json!({}), None, true),
        ("whether another run has ended could not be read", json!({}), json!({ "active": [gone] }), None, true),
        ("another run lasted, too", json!({}), json!({}), Some("2026-03-02T10:01:20Z"), false),
        ("another run lasted, too, and the template is long", long, json!({}), Some("2026-03-02T10:01:20Z"), false),
    ];
    for (sentence, spec, status, until, is_started) in rows {
        let world = World::new("2026-03-02T08:59:30Z").await;
        let spec = objects::merged(json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Forbid" }), spec);
        create(&world, spec, &[("backlog", "0")]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T09:00:10Z").await;
        let first = "2026-03-02T09:00:00Z";
        begin(&world, "c-29540700", first, &[]).await;
        if until.is_none() {
            complete(&world, "c-29540700", first, "2026-03-02T09:00:20Z").await;
        }
        world.pass_until("2026-03-02T09:59:30Z").await;
        if status.get("active").is_some() {
            world.write("DELETE", &format!("{JOBS}/c-29540700"), &Value::Null).await;
            world.write("PATCH", &format!("{CRON_JOBS}/c/status"), &json!({ "status": status })).await;
            world.wire.judge(|ask| if ask.is(Verb::Get, "jobs") { Fate::Refused(503, "") } else { Fate::Pass });
        }
        world.pass_until("2026-03-02T09:59:59Z").await;
        world.wire.judge(|ask| match ask.verb {
            Verb::Get | Verb::Create | Verb::Patch => Fate::Refused(503, "ServiceUnavailable"),
            _ => Fate::Pass,
        });
        world.pass_until("2026-03-02T10:01:15Z").await;
        world.wire.calm();
        if let Some(until) = until {
            world.pass_until(until).await;
            complete(&world, "c-29540700", first, until).await;
        }
        world.pass_until("2026-03-02T10:02:00Z").await;
        stop.cancel();
        assert_eq!(world.seen_names().contains(&"c-29540760".to_owned()), is_started, "{sentence}");
        assert_eq!(count(&world, "PassedOver").await, usize::from(!is_started), "{sentence}");
    }
}

/// With `backlog: 0` and `stuck-after`: the Job of 10:00 is deleted for the slot of 12:00 and lingers for ever, and the API server
/// refuses creates for longer than a minute from that slot on, or from the next.
#[tokio::test(start_paused = true)]
async fn a_slot_that_the_server_held_up_beside_a_stuck_job_that_lingers_starts() {
    for (slot, name) in [("2026-03-02T12:00:00Z", "c-29540880"), ("2026-03-02T13:00:00Z", "c-29540940")] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        let forbid = json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Forbid" });
        create(&world, forbid, &[("stuck-after", "100m, delete"), ("backlog", "0")]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:00:30Z").await;
        begin(&world, "c-29540760", "2026-03-02T10:00:00Z", &[HOLD]).await;
        world.pass_until("2026-03-02T11:59:00Z").await;
        assert_eq!((world.seen_names().len(), count(&world, "PassedOver").await), (1, 1), "the slot of 11:00");
        if slot == "2026-03-02T13:00:00Z" {
            world.pass_until("2026-03-02T12:00:30Z").await;
            complete(&world, "c-29540880", "2026-03-02T12:00:00Z", "2026-03-02T12:00:30Z").await;
        }
        let until = tokio::time::Instant::now() + (time(slot) - world.clock.now()).to_std().unwrap() + seconds(75);
        world.wire.judge(move |ask| {
            let is_refused = ask.is(Verb::Create, "jobs") && ask.at < until;
            if is_refused { Fate::Refused(503, "ServiceUnavailable") } else { Fate::Pass }
        });
        world.pass_until(&(time(slot) + TimeDelta::seconds(90)).to_rfc3339()).await;
        stop.cancel();
        assert_eq!(world.seen_names().last().unwrap(), name);
        assert_eq!(world.wire.count(Verb::Delete, "jobs"), 1, "{slot}: once");
        assert_eq!(count(&world, "PassedOver").await, 1, "{slot}");
    }
}

/// Also with `backlog: 0`: nothing but a run passes a slot over.
#[tokio::test(start_paused = true)]
async fn resume_starts_the_newest_missed_slot_with_backlog_zero() {
    let world = World::new("2026-03-02T09:30:00Z").await;
    create(&world, json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Forbid" }), &[("backlog", "0")]).await;
    let stop = world.work(2);
    for (at, suspend) in [("2026-03-02T09:50:00Z", true), ("2026-03-02T10:20:00Z", false)] {
        world.pass_until(at).await;
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": { "suspend": suspend } })).await;
    }
    world.pass_until("2026-03-02T10:21:00Z").await;
    stop.cancel();
    assert_eq!((world.children().await, count(&world, "PassedOver").await), (vec!["c-29540760".to_owned()], 0));
}

/// What was killed for a slot was not killed for nothing, and the Event about a slot that will not start comes at once.
#[tokio::test(start_paused = true)]
async fn a_slot_for_which_a_job_was_deleted_is_not_passed_over() {
    // (sentence, when someone deletes the running Job, whether the slot of 11:00 starts)
    let rows = [("deleted for the slot", None, true), ("deleted before", Some("2026-03-02T10:30:00Z"), false)];
    for (sentence, deleted, is_started) in rows {
        let world = World::new("2026-03-02T09:59:30Z").await;
        let spec = json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Replace" });
        create(&world, spec, &[("replace-waits", "true"), ("backlog", "0")]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:00:30Z").await;
        begin(&world, "c-29540760", "2026-03-02T10:00:00Z", &[HOLD]).await;
        if let Some(deleted) = deleted {
            world.pass_until(deleted).await;
            world.write("DELETE", &format!("{JOBS}/c-29540760"), &Value::Null).await;
        }
        world.pass_until("2026-03-02T11:01:10Z").await;
        assert_eq!(count(&world, "PassedOver").await, usize::from(!is_started), "{sentence}: told in time");
        world.pass_until("2026-03-02T11:03:00Z").await;
        release(&world, "c-29540760").await;
        world.pass(seconds(10)).await;
        stop.cancel();
        assert_eq!(world.seen_names().contains(&"c-29540820".to_owned()), is_started, "{sentence}");
        assert_eq!(count(&world, "PassedOver").await, usize::from(!is_started), "{sentence}");
    }
}

/// A Job that is in no status yet is what keeps its slot from being started once more.
#[tokio::test(start_paused = true)]
async fn the_newest_job_stays_until_the_status_tells_of_it_whatever_the_history_limits_are() {
    for code in [403, 409, 422, 503] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        create(&world, json!({ "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0 }), &[]).await;
        let stop = world.work(2);
        world.wire.judge(move |ask| {
            let is_refused = ask.is(Verb::Patch, "cronjobs/status");
            if is_refused { Fate::Refused(code, "Refused") } else { Fate::Pass }
        });
        let names = ["c-29540760", "c-29540761", "c-29540762"];
        for (minute, name) in names.into_iter().enumerate() {
            world.pass_until(&format!("2026-03-02T10:0{minute}:02Z")).await;
            let (started, ended) = (format!("2026-03-02T10:0{minute}:00Z"), format!("2026-03-02T10:0{minute}:02Z"));
            complete(&world, name, &started, &ended).await;
            world.pass(seconds(40)).await;
            assert_eq!(world.children().await.last().unwrap(), name, "{code}");
        }
        stop.cancel();
        let world = world.successor().await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:02:58Z").await;
        stop.cancel();
        assert_eq!(world.wire.count(Verb::Create, "jobs"), 0, "{code}: nothing is started once more");
        assert_eq!(world.get("c").await["status"]["lastScheduleTime"], "2026-03-02T10:02:00Z", "{code}");
        assert_eq!(world.children().await, [""; 0], "{code}: the history is pruned once the status is written");
    }
}
