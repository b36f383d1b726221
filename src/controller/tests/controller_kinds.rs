//! Tests of the other controller kinds: the tutorial's CronJobs, and ApiExamples.

use super::*;
use crate::api::batch_v1::Job;
use crate::api::{ControllerKind, ResourceKind};

const BOTH: [ControllerKind; 2] = [ControllerKind::Tutorial, ControllerKind::ApiExample];

fn names(name: &str, slots: &[&str]) -> Vec<String> {
    slots.iter().map(|slot| format!("{name}-{}", time(&format!("2026-03-02T{slot}Z")).timestamp())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_child_has_its_slot_in_seconds_in_its_name_and_its_owner_in_its_group() {
    for controller_kind in BOTH {
        let world = World::of(controller_kind, "2026-03-02T09:59:30Z", |_| None).await;
        let uid = world.create_cron_job("hello", json!({ "schedule": "@every 45s" })).await["metadata"]["uid"].take();
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:01:10Z").await;
        stop.cancel();
        assert_eq!(world.children().await, names("hello", &["10:00:15", "10:01:00"]), "{controller_kind}");
        let child = &world.list(&controller_kind.child.path(Some("default"))).await[0];
        assert_eq!(
            child["metadata"]["annotations"]["batch.tutorial.kubebuilder.io/scheduled-at"],
            "2026-03-02T10:00:15Z"
        );
        let owner = json!([{
            "apiVersion": controller_kind.parent.api_version(), "kind": controller_kind.parent.kind, "name": "hello", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
        assert_eq!(child["metadata"]["ownerReferences"], owner);
        let status = &world.get("hello").await["status"];
        assert_eq!(status["lastScheduleTime"], "2026-03-02T10:01:00Z", "{controller_kind}");
        let active: Vec<_> = status["active"].as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
        assert_eq!(active, [controller_kind.child.kind; 2]);
        let writes = world.wire.count(Verb::Patch, &format!("{}/status", controller_kind.parent.plural));
        assert_eq!(
            writes,
            2 + usize::from(controller_kind == ControllerKind::Tutorial),
            "{controller_kind}: one for each, and the conditions"
        );
        assert_eq!(world.reasons().await, ["SuccessfulCreate"; 2], "{controller_kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_policy_does_what_it_is_called() {
    let table = [
        ("Allow", vec!["10:00:00", "10:01:00", "10:02:00"]),
        ("Forbid", vec!["10:00:00", "10:01:00"]),
        ("Replace", vec!["10:02:00"]),
    ];
    for controller_kind in BOTH {
        for (policy, left) in &table {
            // Each Job runs for 90 seconds.
            let ends = |_: &Job| Some((seconds(90), Ending::Complete));
            let world = World::of(controller_kind, "2026-03-02T09:59:30Z", ends).await;
            world.create_cron_job("hello", json!({ "concurrencyPolicy": policy })).await;
            let stop = world.work(2);
            world.pass_until("2026-03-02T10:02:10Z").await;
            stop.cancel();
            assert_eq!(world.children().await, names("hello", left), "{controller_kind} {policy}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_history_limits_keep_the_newest_of_each_kind() {
    let ends = |job: &Job| {
        let failed = job.creation_timestamp.timestamp() / 60 % 2 == 0;
        Some((seconds(20), if failed { Ending::Failed } else { Ending::Complete }))
    };
    let table = [
        (ControllerKind::Tutorial, json!({ "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1 })),
        (ControllerKind::ApiExample, json!({ "successfulJobHistoryLimit": 2, "failedJobHistoryLimit": 1 })),
    ];
    for (controller_kind, limits) in table {
        let world = World::of(controller_kind, "2026-03-02T09:59:30Z", ends).await;
        world.create_cron_job("hello", limits).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:06:30Z").await;
        stop.cancel();
        assert_eq!(world.seen().len(), 7);
        assert_eq!(world.children().await, names("hello", &["10:03:00", "10:05:00", "10:06:00"]), "{controller_kind}");
        let status = world.get("hello").await["status"].take();
        assert_eq!(
            (&status["active"], &status["lastSuccessfulTime"]),
            (&Value::Null, &Value::Null),
            "{controller_kind}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn after_more_than_a_hundred_missed_runs_the_newest_one_starts_with_a_warning() {
    for controller_kind in BOTH {
        let world = World::of(controller_kind, "2026-03-02T06:00:30Z", |_| None).await;
        world.create_cron_job("hello", json!({})).await;
        world.pass_until("2026-03-02T10:00:30Z").await;
        let stop = world.work(1);
        world.pass(seconds(40)).await;
        stop.cancel();
        assert_eq!(world.children().await, names("hello", &["10:00:00", "10:01:00"]), "{controller_kind}");
        assert_eq!(
            world.reasons().await,
            ["TooManyMissedTimes", "SuccessfulCreate", "SuccessfulCreate"],
            "{controller_kind}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_too_late_or_held_back_does_not_start() {
    let table = [
        ("its deadline has passed", json!({ "startingDeadlineSeconds": 20 }), 0),
        ("there is time left", json!({ "startingDeadlineSeconds": 40 }), 1),
        ("it is suspended", json!({ "suspend": true }), 0),
    ];
    for controller_kind in BOTH {
        for (sentence, spec, started) in &table {
            let world = World::of(controller_kind, "2026-03-02T09:59:30Z", |_| None).await;
            let spec = objects::merged(json!({ "schedule": "0 * * * *" }), spec.clone());
            world.create_cron_job("hello", spec).await;
            world.pass_until("2026-03-02T10:00:30Z").await;
            let stop = world.work(1);
            world.pass(seconds(10)).await;
            stop.cancel();
            assert_eq!(world.children().await.len(), *started, "{controller_kind}: {sentence}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_made_by_one_who_died_before_the_status_counts_before_forbid_is_judged() {
    for controller_kind in BOTH {
        let world = World::of(controller_kind, "2026-03-02T09:59:30Z", |_| None).await;
        world.create_cron_job("hello", json!({ "concurrencyPolicy": "Forbid" })).await;
        world.pass_until("2026-03-02T10:00:30Z").await;
        // The first sync starts the Job and leaves the status to the second.
        assert!(world.controller.process_next_work_item().await);
        assert_eq!(world.get("hello").await["status"], Value::Null);
        let world = world.successor().await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:02:30Z").await;
        stop.cancel();
        assert_eq!(world.children().await, names("hello", &["10:00:00"]), "{controller_kind}");
        let status = world.get("hello").await["status"].take();
        assert_eq!(status["lastScheduleTime"], "2026-03-02T10:00:00Z", "{controller_kind}");
        assert_eq!(status["active"][0]["name"], names("hello", &["10:00:00"])[0], "{controller_kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_unfinished_child_is_active_whichever_controller_created_it() {
    for controller_kind in BOTH {
        let world = World::of(controller_kind, "2026-03-02T09:59:30Z", |_| None).await;
        let spec = json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Forbid" });
        let uid = world.create_cron_job("hello", spec).await["metadata"]["uid"].take();
        let owner = json!([{
            "apiVersion": controller_kind.parent.api_version(), "kind": controller_kind.parent.kind, "name": "hello", "uid": uid,
            "controller": true,
        }]);
        let mut child = job("by-hand", &owner);
        child["kind"] = controller_kind.child.kind.into();
        child["apiVersion"] = controller_kind.child.api_version().into();
        if controller_kind == ControllerKind::ApiExample {
            child["spec"] = child["spec"]["template"]["spec"].take();
        }
        world.write("POST", &controller_kind.child.path(Some("default")), &child).await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:00:30Z").await;
        stop.cancel();
        assert_eq!(world.get("hello").await["status"]["active"][0]["name"], "by-hand", "{controller_kind}");
        assert_eq!(world.children().await, ["by-hand"], "{controller_kind}");
        assert_eq!(world.reasons().await, ["JobAlreadyActive"], "{controller_kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_conditions_say_how_a_cron_job_is_and_keep_their_times() {
    let ends = |job: &Job| {
        let failed = job.creation_timestamp == time("2026-03-02T10:01:00Z");
        Some((seconds(20), if failed { Ending::Failed } else { Ending::Complete }))
    };
    let world = World::of(ControllerKind::Tutorial, "2026-03-02T09:59:30Z", ends).await;
    world.create_cron_job("hello", json!({})).await;
    let path = format!("{}/hello", ControllerKind::Tutorial.parent.path(Some("default")));
    let said = async || {
        let status = world.get("hello").await["status"].take();
        let conditions = status["conditions"].as_array().unwrap().clone();
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
        conditions.iter().map(|one| ["reason", "lastTransitionTime"].map(|field| text(one, field))).collect::<Vec<_>>()
    };
    let stop = world.work(1);
    let table = [
        ("09:59:40", None, [("Scheduled", "09:59:30"), ("NothingActive", "09:59:30"), ("NothingFailed", "09:59:30")]),
        ("10:00:10", None, [("Scheduled", "09:59:30"), ("Active", "10:00:00"), ("NothingFailed", "09:59:30")]),
        ("10:00:30", None, [("Scheduled", "09:59:30"), ("NothingActive", "10:00:20"), ("Succeeded", "09:59:30")]),
        ("10:01:30", None, [("Scheduled", "09:59:30"), ("NothingActive", "10:01:20"), ("Failed", "10:01:20")]),
        (
            "10:01:50",
            Some(json!({ "suspend": true })),
            [("Suspended", "10:01:30"), ("NothingActive", "10:01:20"), ("Failed", "10:01:20")],
        ),
        (
            "10:01:55",
            Some(json!({ "suspend": false, "schedule": "59 23 31 2 *" })),
            [("NeverDue", "10:01:30"), ("NothingActive", "10:01:20"), ("Failed", "10:01:20")],
        ),
    ];
    for (at, change, want) in table {
        if let Some(spec) = change {
            world.write("PATCH", &path, &json!({ "spec": spec })).await;
        }
        world.pass_until(&format!("2026-03-02T{at}Z")).await;
        let want = want.map(|(reason, since)| [reason.to_owned(), format!("2026-03-02T{since}Z")]);
        assert_eq!(said().await, want, "{at}");
    }
    stop.cancel();
    let writes = world.wire.count(Verb::Patch, "cronjobs/status");
    assert_eq!(writes, 1 + 2 * 2 + 2, "one at first, two for each run, one for each change");
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_a_cron_job_with_a_name_conflict_in_batch_is_told_once() {
    let told = async |world: &World| world.reasons().await.iter().filter(|reason| *reason == "AmbiguousName").count();
    for controller_kind in BOTH {
        let world = World::of(controller_kind, "2026-03-02T09:59:30Z", |_| None).await;
        world.create_cron_job("hello", json!({})).await;
        world.create_cron_job("other", json!({})).await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:00:30Z").await;
        assert_eq!(told(&world).await, 0, "{controller_kind}");
        world.write("POST", CRON_JOBS, &cron_job("hello", json!({ "suspend": true }))).await;
        world.pass_until("2026-03-02T10:03:30Z").await;
        stop.cancel();
        assert_eq!(told(&world).await, usize::from(controller_kind == ControllerKind::Tutorial), "{controller_kind}");
    }
}

/// What happens to the tutorial's CronJob `hello` and to that of batch/v1.
enum Step {
    Created,
    /// It is deleted, and created again a second later.
    Recreated,
    /// The same, while the watches show nothing.
    RecreatedUnseen,
    Suspended,
    /// The batch/v1 CronJob of its name comes.
    Conflict,
    /// One of that name comes in another namespace.
    OfOtherNamespace,
    /// One of another name comes.
    OfOtherName,
    /// The batch/v1 CronJob of its name goes.
    End,
    /// It is edited.
    Edited,
    /// Two slots of `hello` come, start and are settled.
    TwoSlots,
    /// The watches miss what happens, and both are listed again.
    Gap,
    /// The process ends, and another one takes over.
    Restart,
}

#[tokio::test(start_paused = true)]
async fn name_conflict_is_told_once_by_each_process_for_each_cron_job() {
    use Step::*;

    let rows: [(&str, &[Step], usize); 19] = [
        ("there is none", &[Created, TwoSlots], 0),
        ("one of another name", &[Created, OfOtherName, TwoSlots], 0),
        ("one in another namespace", &[Created, OfOtherNamespace, TwoSlots], 0),
        ("it comes, and a status is written and another", &[Created, Conflict, TwoSlots, TwoSlots], 1),
        ("it is there before the CronJob", &[Conflict, Created, TwoSlots], 1),
        ("it comes while the CronJob is suspended", &[Created, Suspended, Conflict, TwoSlots], 1),
        ("it is edited", &[Created, Conflict, Edited, TwoSlots, Edited], 1),
        ("it ends", &[Created, Conflict, End, TwoSlots], 1),
        ("it ends and comes again", &[Created, Conflict, TwoSlots, End, TwoSlots, Conflict, TwoSlots], 1),
        ("the watches break", &[Created, Conflict, Gap, TwoSlots], 1),
        ("the CronJob is created again", &[Created, Conflict, Recreated, TwoSlots], 2),
        ("it is created again unseen", &[Created, Conflict, TwoSlots, RecreatedUnseen, TwoSlots], 2),
        ("it is created again after the conflict's end", &[Created, Conflict, End, Recreated, TwoSlots], 1),
        (
            "it is created again after the conflict's end, and the conflict comes again",
            &[Created, Conflict, End, Recreated, TwoSlots, Conflict, TwoSlots],
            2,
        ),
        (
            "it is created again, and the conflict ends and comes again",
            &[Created, Conflict, Recreated, TwoSlots, End, Conflict, TwoSlots],
            2,
        ),
        ("it is created again twice", &[Created, Conflict, Recreated, Recreated, TwoSlots], 3),
        ("a restart", &[Created, Conflict, TwoSlots, Restart, TwoSlots], 2),
        ("a restart after the conflict's end", &[Created, Conflict, TwoSlots, End, Restart, TwoSlots], 1),
        (
            "a restart, and the conflict ends and comes again",
            &[Created, Conflict, TwoSlots, Restart, End, Conflict, TwoSlots],
            2,
        ),
    ];
    let path = format!("{}/hello", ControllerKind::Tutorial.parent.path(Some("default")));
    let batch = format!("{CRON_JOBS}/hello");
    let suspended = |name: &str| cron_job(name, json!({ "suspend": true }));
    for (sentence, steps, want) in rows {
        let mut world = World::of(ControllerKind::Tutorial, "2026-03-02T09:59:30Z", |_| None).await;
        let mut stop = world.work(1).drop_guard();
        for (number, step) in steps.iter().enumerate() {
            match step {
                Created => drop(world.create_cron_job("hello", json!({})).await),
                Recreated => {
                    world.write("DELETE", &path, &Value::Null).await;
                    world.pass(seconds(1)).await;
                    world.create_cron_job("hello", json!({})).await;
                }
                RecreatedUnseen => {
                    let mut new = world.get("hello").await;
                    new["metadata"] = json!({ "name": "hello" });
                    new["status"] = Value::Null;
                    world
                        .gap(async || {
                            world.request("DELETE", &path, &Value::Null).await.unwrap();
                            world.request("POST", path.trim_end_matches("/hello"), &new).await.unwrap();
                        })
                        .await;
                }
                Suspended => drop(world.write("PATCH", &path, &json!({ "spec": { "suspend": true } })).await),
                Conflict => drop(world.write("POST", CRON_JOBS, &suspended("hello")).await),
                OfOtherName => drop(world.write("POST", CRON_JOBS, &suspended("other")).await),
                OfOtherNamespace => {
                    let namespace = json!({ "metadata": { "name": "other" } });
                    world.write("POST", "/api/v1/namespaces", &namespace).await;
                    let path = "/apis/batch/v1/namespaces/other/cronjobs";
                    world.write("POST", path, &suspended("hello")).await;
                }
                End => drop(world.write("DELETE", &batch, &Value::Null).await),
                Edited => {
                    let labels = json!({ "metadata": { "labels": { "edit": number.to_string() } } });
                    world.write("PATCH", &path, &labels).await;
                    world.write("PATCH", &path, &json!({ "spec": { "failedJobsHistoryLimit": number } })).await;
                }
                TwoSlots => world.pass(seconds(120)).await,
                Gap => world.gap(async || {}).await,
                Restart => {
                    drop(stop);
                    world.pass(seconds(1)).await;
                    world = world.successor().await;
                    stop = world.work(1).drop_guard();
                }
            }
        }
        // The Events follow.
        world.pass(seconds(10)).await;
        let told = world.reasons().await.iter().filter(|reason| *reason == "AmbiguousName").count();
        assert_eq!(told, want, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_of_all_controller_kinds_side_by_side_leave_each_others_children_alone() {
    let world =
        World::of(ControllerKind::Tutorial, "2026-03-02T09:59:30Z", |_| Some((seconds(5), Ending::Complete))).await;
    world.create_cron_job("hello", json!({ "successfulJobsHistoryLimit": 0 })).await;
    let native = world.write("POST", CRON_JOBS, &cron_job("hello", json!({ "suspend": true }))).await;
    let owner = controlled_by("hello", native["metadata"]["uid"].as_str().unwrap());
    world.write("POST", JOBS, &job("hello-1", &json!([owner]))).await;
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    assert_eq!(world.children().await, ["hello-1"], "its own are pruned, and the other's stays");
    assert_eq!(world.seen().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_zone_in_the_schedule_is_warned_of_where_there_is_a_field_for_it() {
    for controller_kind in ControllerKind::ALL {
        let world = World::of(controller_kind, "2026-03-02T09:59:30Z", |_| None).await;
        world.create_cron_job("hello", json!({ "schedule": "* * * * *" })).await;
        // The API server rejects a new batch/v1 CronJob with such a schedule.
        let collection = controller_kind.parent.qualified_name();
        world.smuggle(&collection, "hello", json!({ "spec": { "schedule": "TZ=Asia/Kathmandu 45 15 * * *" } })).await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:00:30Z").await;
        stop.cancel();
        let warned = world.reasons().await.contains(&"UnsupportedSchedule".to_owned());
        assert_eq!(warned, controller_kind == ControllerKind::CronJob, "{controller_kind}");
        assert_eq!(world.children().await.len(), 1, "{controller_kind}: a quarter to four in Kathmandu is ten o'clock");
    }
}

/// The Event is about the object that cannot be read, whatever its owner is. Only the log tells of a Namespace, whose CronJobs wait.
#[tokio::test(start_paused = true)]
async fn a_malformed_object_of_any_kind_is_counted_and_told_of_as_what_it_is() {
    for controller_kind in [ControllerKind::CronJob, ControllerKind::Tutorial, ControllerKind::ApiExample] {
        let child = controller_kind.child_name("c", time("2026-03-02T10:00:00Z"));
        let annotations = json!({ "cronjob-controller.dev/not-before": 5 });
        let rows = [
            (controller_kind.parent, "c", json!({ "spec": { "schedule": 5 } }), 1),
            (controller_kind.child, &*child, json!({ "status": { "startTime": 5 } }), 1),
            (ResourceKind::NAMESPACE, "default", json!({ "metadata": { "annotations": annotations } }), 0),
        ];
        for (kind, name, patch, told_of) in rows {
            let world = World::of(controller_kind, "2026-03-02T09:59:30Z", |_| None).await;
            world.create_cron_job("c", json!({})).await;
            let stop = world.work(1);
            world.pass_until("2026-03-02T10:00:05Z").await;
            let collection = [kind.plural, kind.group].join(".");
            world.smuggle(collection.trim_end_matches('.'), name, patch).await;
            world.pass(seconds(10)).await;
            stop.cancel();
            let events = world.list("/api/v1/events").await;
            let told = events.iter().filter(|event| event["reason"] == "MalformedObject");
            let told: Vec<_> = told.map(|event| &event["involvedObject"]).collect();
            let want = json!([kind.api_version(), kind.kind, name]);
            let objects: Vec<_> =
                told.iter().map(|object| json!([object["apiVersion"], object["kind"], object["name"]])).collect();
            assert_eq!(objects, vec![want; told_of], "{controller_kind}");
            let counted = &world.controller.parts.metrics.malformed_objects_total;
            let count = counted.with_label_values(&[kind.kind]).get();
            assert_eq!(count, told_of as u64, "{controller_kind}: {}", kind.kind);
        }
    }
}
