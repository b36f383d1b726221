//! Tests beside kube-controller-manager's own controller: only CronJobs that are handed over are managed. The tests do
//! what that controller does to a suspended CronJob.

use super::support::NAMESPACE;
use super::wire::Ask;
use super::*;
use crate::api::batch_v1::Job;
use crate::api::{ControllerKind, Manage};
use tokio_util::sync::CancellationToken;

const SLOT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

async fn beside(now: &str, ends: support::Ends) -> World {
    World::managing(Manage::Annotated, ControllerKind::CronJob, now, ends).await
}

/// Hands a CronJob over.
fn over() -> Value {
    json!({ "metadata": { "annotations": { "cronjob-controller.dev/managed": "true" } }, "spec": { "suspend": true } })
}

/// Releases it.
fn back() -> Value {
    json!({ "metadata": { "annotations": { "cronjob-controller.dev/managed": null } }, "spec": { "suspend": false } })
}

async fn patch(world: &World, name: &str, patch: &Value) {
    world.write("PATCH", &format!("{CRON_JOBS}/{name}"), patch).await;
}

/// Creates a CronJob that is handed over.
async fn create_handed_over(world: &World, name: &str, spec: Value) -> String {
    let object = objects::merged(cron_job(name, spec), over());
    world.write("POST", CRON_JOBS, &object).await["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The Job that the other controller starts for a slot.
fn theirs(cron_job: &str, uid: &str, slot: &str) -> Value {
    let minutes = time(slot).timestamp() / 60;
    let mut theirs = job(&format!("{cron_job}-{minutes}"), &json!([controlled_by(cron_job, uid)]));
    theirs["metadata"]["annotations"] = json!({ SLOT: slot });
    theirs
}

async fn status_of(world: &World, name: &str) -> Value {
    world.get(name).await["status"].take()
}

/// The requests for CronJobs and Jobs, except lists and watches.
fn asked(world: &World) -> Vec<(Verb, String)> {
    let all = world.wire.asked_for_anything().into_iter();
    let asked = all.filter(|ask| !matches!(ask.verb, Verb::List | Verb::Watch) && ask.resource != "events");
    asked.map(|ask| (ask.verb, if ask.name.is_empty() { ask.resource } else { ask.name })).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_not_handed_over_is_neither_fired_nor_pruned_nor_written_nor_told_of() {
    let ends = |_: &Job| Some((seconds(5), Ending::Complete));
    let world = beside("2026-03-02T09:59:30Z", ends).await;
    let limit = json!({ "successfulJobsHistoryLimit": 0 });
    let uid = world.create_cron_job("theirs", limit.clone()).await["metadata"]["uid"].as_str().unwrap().to_owned();
    world.create_cron_job("held", objects::merged(limit.clone(), json!({ "suspend": true }))).await;
    let annotated = json!({ "metadata": { "annotations": { "cronjob-controller.dev/managed": "true" } } });
    let undecided = objects::merged(cron_job("undecided", limit.clone()), annotated);
    world.write("POST", CRON_JOBS, &undecided).await;
    create_handed_over(&world, "ours", limit).await;
    world.write("POST", JOBS, &theirs("theirs", &uid, "2026-03-02T09:59:00Z")).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:30Z").await;
    // This controller ignores these edits.
    world.smuggle("cronjobs.batch", "theirs", json!({ "spec": { "schedule": "bad" } })).await;
    world.smuggle("cronjobs.batch", "held", json!({ "spec": { "schedule": 5 } })).await;
    world.pass_until("2026-03-02T10:02:30Z").await;
    stop.cancel();
    assert_eq!(world.seen_names()[1..], ["ours-29540760", "ours-29540761", "ours-29540762"]);
    assert!(world.children().await.contains(&"theirs-29540759".to_owned()), "beyond its limit, and left alone");
    // The Namespace is read again after a gap in the watch.
    let is_own = |name: &str| name == "jobs" || name == NAMESPACE || name.starts_with("ours");
    assert!(asked(&world).iter().all(|(_, name)| is_own(name)), "{:?}", asked(&world));
    let told = world.events().await;
    assert!(told.iter().all(|(_, name)| name == "ours"), "{told:?}");
    assert_eq!(world.cron_jobs.len(), 1, "and it takes no memory");
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_that_is_handed_over_is_taken_up_and_one_that_is_taken_back_is_dropped() {
    let world = beside("2026-03-02T10:00:30Z", |_| None).await;
    let uid = world.create_cron_job("c", json!({})).await["metadata"]["uid"].as_str().unwrap().to_owned();
    let stop = world.work(2);
    // The other controller starts the Job of 10:01 and does not write its status. The Job's name shows its slot.
    world.pass_until("2026-03-02T10:01:00.100Z").await;
    world.write("POST", JOBS, &theirs("c", &uid, "2026-03-02T10:01:00Z")).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    assert_eq!(asked(&world), []);
    patch(&world, "c", &over()).await;
    world.pass(seconds(1)).await;
    let status = status_of(&world, "c").await;
    assert_eq!(status["lastScheduleTime"], "2026-03-02T10:01:00Z");
    assert_eq!(status["active"][0]["name"], "c-29540761");
    world.pass_until("2026-03-02T10:02:30Z").await;
    patch(&world, "c", &back()).await;
    world.pass_until("2026-03-02T10:03:30Z").await;
    // It is handed over again before the Job of 10:03 was started, so this controller starts it.
    patch(&world, "c", &over()).await;
    world.pass_until("2026-03-02T10:04:30Z").await;
    patch(&world, "c", &back()).await;
    world.pass_until("2026-03-02T10:06:30Z").await;
    let names = world.seen_names();
    assert_eq!(names, ["c-29540761", "c-29540762", "c-29540763", "c-29540764"], "10:01 to 10:04, and no more");
    assert!(world.controller.unattended().is_empty() && world.cron_jobs.is_empty());
    assert_eq!(world.controller.parts.metrics.external_jobs_total.get(), 0);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn what_a_live_read_did_not_find_gets_no_job_while_the_watch_is_silent() {
    type Change = (&'static str, &'static str, fn() -> Value);
    let changes: [Change; 2] = [("taken back", "PATCH", back), ("deleted", "DELETE", || Value::Null)];
    for (name, method, body) in changes {
        let world = beside("2026-03-02T10:00:30Z", |_| None).await;
        let uid = create_handed_over(&world, "c", json!({})).await;
        let stop = world.work(2);
        world.catch_up().await;
        world.wire.silence("cronjobs");
        world.write(method, &format!("{CRON_JOBS}/c"), &body()).await;
        // It is read live for a Job that no slot explains, and not for the slots, since nothing else makes the cache suspect.
        world.write("POST", JOBS, &job("stranger", &json!([controlled_by("c", &uid)]))).await;
        world.pass(seconds(5)).await;
        assert!(world.wire.count(Verb::Get, "cronjobs") > 0, "{name}: read live");
        // Where its owner was deleted, it is gone by now.
        let _ = world.request("DELETE", &format!("{JOBS}/stranger"), &Value::Null).await;
        world.pass_until("2026-03-02T10:02:30Z").await;
        stop.cancel();
        assert_eq!(world.wire.count(Verb::Create, "jobs"), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_suspension_of_a_handed_over_cron_job_is_its_annotation() {
    let world = beside("2026-03-02T09:59:30Z", |_| None).await;
    create_handed_over(&world, "c", json!({})).await;
    let suspend = |value: Value| json!({ "metadata": { "annotations": { "cronjob-controller.dev/suspend": value } } });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    patch(&world, "c", &suspend(json!("true"))).await;
    world.pass_until("2026-03-02T10:02:30Z").await;
    assert_eq!(world.seen_names(), ["c-29540760"]);
    patch(&world, "c", &suspend(Value::Null)).await;
    world.pass_until("2026-03-02T10:03:30Z").await;
    stop.cancel();
    assert_eq!(world.seen_names(), ["c-29540760", "c-29540762", "c-29540763"], "the newest missed slot, as ever");
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_shared_cron_job_is_written_directly_after_its_job_was_created() {
    let world = beside("2026-03-02T10:00:30Z", |_| None).await;
    for name in ["a", "b", "c"] {
        create_handed_over(&world, name, json!({ "schedule": "1 10 * * *" })).await;
    }
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    let asked = asked(&world);
    let creates: Vec<_> = asked.iter().step_by(2).map(|(verb, name)| (*verb, &**name)).collect();
    let mut statuses: Vec<_> = asked.iter().skip(1).step_by(2).map(|(verb, name)| (*verb, &**name)).collect();
    statuses.sort_unstable_by_key(|(_, name)| *name);
    assert_eq!(creates, [(Verb::Create, "jobs"); 3]);
    assert_eq!(statuses, ["a", "b", "c"].map(|name| (Verb::Patch, name)), "though others are due, too");
}

#[tokio::test(start_paused = true)]
async fn a_shared_history_is_pruned_by_the_other_and_what_it_leaves_with_the_next_start() {
    let ends = |_: &Job| Some((seconds(5), Ending::Complete));
    let world = beside("2026-03-02T09:59:30Z", ends).await;
    create_handed_over(&world, "c", json!({ "successfulJobsHistoryLimit": 1 })).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:50Z").await;
    let both = ["c-29540760", "c-29540761"];
    assert_eq!((world.children().await, world.wire.count(Verb::Delete, "jobs")), (both.map(str::to_owned).to_vec(), 0));
    let status = status_of(&world, "c").await;
    assert_eq!((&status["active"], &status["lastSuccessfulTime"]), (&Value::Null, &json!("2026-03-02T10:01:05Z")));
    // The other controller is not running, so this one prunes the history.
    world.pass_until("2026-03-02T10:02:02Z").await;
    assert_eq!(world.children().await, ["c-29540761", "c-29540762"]);
    // Now the other controller is running.
    world.pass_until("2026-03-02T10:02:10Z").await;
    world.write("DELETE", &format!("{JOBS}/c-29540761"), &json!({ "propagationPolicy": "Background" })).await;
    world.pass_until("2026-03-02T10:03:02Z").await;
    stop.cancel();
    assert_eq!(world.children().await, ["c-29540762", "c-29540763"]);
    assert_eq!(world.wire.count(Verb::Delete, "jobs"), 1);
    let reasons = world.reasons().await;
    assert!(!reasons.iter().any(|reason| reason == "FailedDelete" || reason == "MissingJob"), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_for_a_cron_job_taken_back_while_an_answer_was_waited_for() {
    let world = beside("2026-03-02T10:00:30Z", |_| None).await;
    create_handed_over(&world, "c", json!({ "concurrencyPolicy": "Replace" })).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:30Z").await;
    world.wire.answer_late(Verb::Get, "jobs", seconds(1));
    world.pass_until("2026-03-02T10:02:00.500Z").await;
    patch(&world, "c", &back()).await;
    world.pass_until("2026-03-02T10:02:30Z").await;
    stop.cancel();
    assert!(world.wire.count(Verb::Get, "jobs") > 0, "the slot was about to be started");
    assert_eq!((world.seen().len(), world.wire.count(Verb::Delete, "jobs")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_that_was_taken_back_unseen_is_read_before_it_fires_and_left_alone() {
    let world = beside("2026-03-02T10:00:30Z", |_| None).await;
    create_handed_over(&world, "c", json!({})).await;
    world.wire.hold_watches(true);
    patch(&world, "c", &back()).await;
    world.controller.doubt_caches();
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    assert!(world.wire.count(Verb::Get, "cronjobs") > 0);
    assert_eq!(asked(&world).iter().filter(|(verb, _)| *verb != Verb::Get).count(), 0, "{:?}", asked(&world));
}

/// The answer to a create takes half a second and then has this fate.
fn slowly(fate: Fate) -> impl Fn(&Ask) -> Orders {
    move |ask| {
        let is_create = ask.is(Verb::Create, "jobs");
        if is_create {
            Orders { back: Duration::from_millis(500), fate, ..Orders::default() }
        } else {
            Orders::default()
        }
    }
}

/// Releases a CronJob at 10:01:00.250, when its Job of 10:01 exists and the answer to the create is on its way.
async fn taken_back_in_the_very_moment(judge: impl Fn(&Ask) -> Orders + Send + 'static) -> (World, CancellationToken) {
    let world = beside("2026-03-02T10:00:30Z", |_| None).await;
    create_handed_over(&world, "c", json!({ "concurrencyPolicy": "Forbid" })).await;
    world.wire.judge(judge);
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:00.250Z").await;
    patch(&world, "c", &back()).await;
    assert_eq!((world.seen_names(), world.cron_jobs.len()), (vec!["c-29540761".to_owned()], 0));
    (world, stop)
}

/// Asserts that no state is kept and no more requests are sent.
async fn assert_forgotten(world: &World) {
    let before = asked(world);
    world.pass(seconds(120)).await;
    assert_eq!(asked(world), before);
    assert!(!world.controller.memories.contains(&key("c")));
}

#[tokio::test(start_paused = true)]
async fn run_of_a_cron_job_released_during_the_create_is_written_into_its_status() {
    for fate in [Fate::Pass, Fate::AnswerLost] {
        let (world, stop) = taken_back_in_the_very_moment(slowly(fate)).await;
        world.pass_until("2026-03-02T10:01:00.600Z").await;
        let status = status_of(&world, "c").await;
        assert_eq!(status["lastScheduleTime"], "2026-03-02T10:01:00Z", "{fate:?}");
        assert_eq!(status["active"][0]["name"], "c-29540761", "{fate:?}: so a Forbid knows of it");
        assert_forgotten(&world).await;
        assert_eq!(world.seen_names(), ["c-29540761"], "{fate:?}");
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn run_of_a_released_cron_job_that_starts_late_is_written_into_its_status() {
    let world = beside("2026-03-02T10:00:30Z", |_| None).await;
    create_handed_over(&world, "c", json!({ "concurrencyPolicy": "Forbid" })).await;
    let mut creates = 0;
    world.wire.judge(move |ask| match ask.is(Verb::Create, "jobs") {
        true if creates == 0 => {
            creates = 1;
            Orders { there: seconds(20), fate: Fate::ArrivesLate, ..Orders::default() }
        }
        true => Fate::Unreachable.into(),
        false => Orders::default(),
    });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:00.250Z").await;
    patch(&world, "c", &back()).await;
    world.pass_until("2026-03-02T10:01:10Z").await;
    assert_eq!((world.seen_names().len(), world.wire.count(Verb::Get, "jobs") > 0), (0, true), "it is asked for");
    world.pass_until("2026-03-02T10:02:00Z").await;
    assert_eq!(world.seen_names(), ["c-29540761"]);
    let status = status_of(&world, "c").await;
    assert_eq!(status["lastScheduleTime"], "2026-03-02T10:01:00Z");
    assert_eq!(status["active"][0]["name"], "c-29540761", "so a Forbid knows of it");
    assert_forgotten(&world).await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn pending_status_of_a_released_cron_job_is_retried_until_it_is_written() {
    let (read, write) = ((Verb::Get, "cronjobs"), (Verb::Patch, "cronjobs/status"));
    let table = [
        ("the read has no answer", read, Fate::Unreachable),
        ("the write meets another", write, Fate::Refused(409, "Conflict")),
        ("the write fails", write, Fate::Refused(500, "InternalError")),
        ("the server is overloaded", write, Fate::Refused(429, "TooManyRequests")),
    ];
    for (sentence, (verb, resource), fate) in table {
        let slow = slowly(Fate::Pass);
        let judge = move |ask: &Ask| if ask.is(verb, resource) { fate.into() } else { slow(ask) };
        let (world, stop) = taken_back_in_the_very_moment(judge).await;
        world.pass_until("2026-03-02T10:01:20Z").await;
        let tried = world.wire.count(verb, resource);
        assert!((2..25).contains(&tried), "{sentence}: tried {tried} times");
        assert_eq!(status_of(&world, "c").await, json!({}), "{sentence}");
        world.wire.calm();
        world.pass_until("2026-03-02T10:01:50Z").await;
        assert_eq!(status_of(&world, "c").await["lastScheduleTime"], "2026-03-02T10:01:00Z", "{sentence}");
        assert_forgotten(&world).await;
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn pending_status_of_a_released_cron_job_is_dropped_when_the_cron_job_is_deleted() {
    for is_created_anew in [false, true] {
        let (world, stop) = taken_back_in_the_very_moment(slowly(Fate::Pass)).await;
        let orphan = json!({ "propagationPolicy": "Orphan" });
        world.write("DELETE", &format!("{CRON_JOBS}/c"), &orphan).await;
        if is_created_anew {
            world.create_cron_job("c", json!({})).await;
        }
        world.pass_until("2026-03-02T10:01:01Z").await;
        assert_forgotten(&world).await;
        if is_created_anew {
            assert_eq!(status_of(&world, "c").await, json!({}), "it is another's");
        }
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn cron_job_released_and_handed_over_again_loses_no_status() {
    let (world, stop) = taken_back_in_the_very_moment(slowly(Fate::Pass)).await;
    // The live read shows this before the watch does.
    world.wire.hold_watches(true);
    patch(&world, "c", &over()).await;
    world.pass_until("2026-03-02T10:01:01Z").await;
    assert!(world.wire.count(Verb::Get, "cronjobs") > 0 && world.cron_jobs.is_empty());
    assert_eq!(status_of(&world, "c").await, json!({}), "that is for an ordinary sync to do");
    world.wire.hold_watches(false);
    world.pass_until("2026-03-02T10:02:30Z").await;
    let status = status_of(&world, "c").await;
    assert_eq!(
        (&status["lastScheduleTime"], &status["active"][0]["name"]),
        (&json!("2026-03-02T10:01:00Z"), &json!("c-29540761"))
    );
    assert_eq!(world.seen_names(), ["c-29540761"], "that of 10:02 is forbidden");
    stop.cancel();
}

/// The edits are made while a create is open, and in the moments in which the CronJob changes hands; the watch shows each late.
#[tokio::test(start_paused = true)]
async fn cron_job_edited_while_it_changes_hands_keeps_every_edit_and_runs_by_the_last() {
    let edit = |number: u64, schedule: &str| {
        json!({
            "metadata": { "labels": { format!("edit-{number}"): "made" } },
            "spec": { "schedule": schedule, "jobTemplate": { "metadata": { "labels": { "edit": number.to_string() } } } },
        })
    };
    let (world, stop) = taken_back_in_the_very_moment(slowly(Fate::Pass)).await;
    world.wire.hold_watches(true);
    patch(&world, "c", &edit(1, "*/2 * * * *")).await;
    patch(&world, "c", &objects::merged(over(), edit(2, "*/3 * * * *"))).await;
    world.pass_until("2026-03-02T10:01:02Z").await;
    patch(&world, "c", &edit(3, "*/5 * * * *")).await;
    patch(&world, "c", &json!({ "spec": { "concurrencyPolicy": "Allow" } })).await;
    world.wire.hold_watches(false);
    world.pass_until("2026-03-02T10:10:30Z").await;
    assert_eq!(world.seen_names(), ["c-29540761", "c-29540765", "c-29540770"], "10:01, and by the last schedule");
    let jobs = world.list(JOBS).await;
    let last = jobs.iter().find(|job| job["metadata"]["name"] == "c-29540770").unwrap();
    assert_eq!(last["metadata"]["labels"]["edit"], "3");
    patch(&world, "c", &objects::merged(back(), edit(4, "*/7 * * * *"))).await;
    world.pass_until("2026-03-02T10:15:30Z").await;
    let object = world.get("c").await;
    assert_eq!(object["spec"]["schedule"], "*/7 * * * *");
    assert_eq!(object["spec"]["concurrencyPolicy"], "Allow");
    for number in 1..=4 {
        assert_eq!(object["metadata"]["labels"][format!("edit-{number}")], "made", "{number}");
    }
    assert_eq!(world.seen_names().len(), 3, "the in-tree controller has it");
    stop.cancel();
}

/// With `--manage=all`, `spec.suspend` holds what is handed over, and no other controller runs it either.
#[tokio::test(start_paused = true)]
async fn controller_of_all_warns_of_a_cron_job_that_is_handed_over_and_so_suspended() {
    // (a sentence, the manager, managed, suspend, spec.suspend, whether the Warning comes)
    let rows = [
        ("handed over", Manage::All, Some("true"), None, true, true),
        ("handed over and suspended", Manage::All, Some("true"), Some("true"), true, true),
        ("annotated, and it runs", Manage::All, Some("true"), None, false, false),
        ("suspended by its owner", Manage::All, None, None, true, false),
        ("the annotation has another value", Manage::All, Some("yes"), None, true, false),
        ("where it is managed", Manage::Annotated, Some("true"), None, true, false),
        ("where it is managed, and suspended", Manage::Annotated, Some("true"), Some("true"), true, false),
    ];
    for (sentence, manage, managed, suspend, spec_suspend, is_warned) in rows {
        let world = World::managing(manage, ControllerKind::CronJob, "2026-03-02T09:59:30Z", |_| None).await;
        let annotations =
            json!({ "cronjob-controller.dev/managed": managed, "cronjob-controller.dev/suspend": suspend });
        let change = json!({ "metadata": { "annotations": annotations } });
        let object = objects::merged(cron_job("c", json!({ "suspend": spec_suspend })), change);
        world.write("POST", CRON_JOBS, &object).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:01:30Z").await;
        // Another sync.
        patch(&world, "c", &json!({ "metadata": { "labels": { "a": "b" } } })).await;
        world.pass_until("2026-03-02T10:02:30Z").await;
        stop.cancel();
        let events = world.list("/api/v1/events").await;
        let events = events.iter().filter(|event| event["reason"] == "HandedOver");
        let warnings: Vec<_> = events.map(|event| (&event["type"], &event["count"], &event["message"])).collect();
        let text = "Not starting job: the CronJob is handed over (cronjob-controller.dev/managed is \"true\" and \
                    spec.suspend is true), and this controller runs with --manage=all, so it is suspended. \
                    cronjob-controller migrate takeback -n default c undoes the handover";
        let want = (json!("Warning"), json!(1), json!(text));
        let want = if is_warned { vec![(&want.0, &want.1, &want.2)] } else { vec![] };
        assert_eq!(warnings, want, "{sentence}");
        let runs = manage == Manage::All && !spec_suspend || manage == Manage::Annotated && suspend.is_none();
        assert_eq!(!world.seen_names().is_empty(), runs, "{sentence}");
    }
}
