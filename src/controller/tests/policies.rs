//! CronJobs with policy annotations, from the API server to their Jobs.

use super::*;
use crate::api::{ControllerKind, Manage};

const PREFIX: &str = "cronjob-controller.dev";
/// The delay of `default/c` with a spread of one minute.
const OFFSET: i64 = 14;

/// Annotations to create an object with, or to patch it with; `None` removes one.
fn annotations(policies: &[(&str, Option<&str>)]) -> Value {
    let entries: serde_json::Map<_, _> =
        policies.iter().map(|(name, value)| (format!("{PREFIX}/{name}"), json!(value))).collect();
    json!({ "metadata": { "annotations": entries } })
}

async fn create(world: &World, spec: Value, policies: &[(&str, &str)]) {
    let policies: Vec<_> = policies.iter().map(|(name, value)| (*name, Some(*value))).collect();
    world.write("POST", CRON_JOBS, &objects::merged(cron_job("c", spec), annotations(&policies))).await;
}

async fn annotate(world: &World, policies: &[(&str, Option<&str>)]) {
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &annotations(policies)).await;
}

/// The slots of all Jobs ever created.
fn slots(world: &World) -> Vec<String> {
    let slot =
        |job: &Arc<crate::api::batch_v1::Job>| job.scheduled_timestamp.unwrap().format("%m-%dT%H:%M").to_string();
    world.seen().iter().map(slot).collect()
}

/// How often an Event said that slots are passed over.
async fn passed_over(world: &World) -> usize {
    world.reasons().await.iter().filter(|reason| *reason == "PassedOver").count()
}

/// The record of decided slots.
async fn counted_from(world: &World) -> String {
    let cron_job = world.get("c").await;
    cron_job["metadata"]["annotations"][format!("{PREFIX}/counted-from")].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn spread_delays_the_job_and_not_its_name() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({}), &[("spread", "1m")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:02:13Z").await;
    stop.cancel();
    let created = world.seen()[0].creation_timestamp;
    assert_eq!(created, time("2026-03-02T10:00:00Z") + TimeDelta::seconds(OFFSET));
    assert_eq!(world.seen_names(), ["c-29540760", "c-29540761"], "10:00 and 10:01");
    assert_eq!(slots(&world), ["03-02T10:00", "03-02T10:01"]);
    assert_eq!(world.get("c").await["status"]["lastScheduleTime"], "2026-03-02T10:01:00Z");
    let skew = &world.controller.parts.metrics.job_creation_skew;
    assert!(skew.get_sample_sum() < 1.0, "it is measured from when the slot is due: {}", skew.get_sample_sum());
}

#[tokio::test(start_paused = true)]
async fn dst_once_runs_a_skipped_and_a_repeated_time_once() {
    let berlin = json!({ "schedule": "30 2 * * *", "timeZone": "Europe/Berlin" });
    for (from, until, want) in [
        ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", ["03-29T01:00", "03-30T00:30"]),
        ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", ["10-25T00:30", "10-26T01:30"]),
    ] {
        let world = World::new(from).await;
        create(&world, berlin.clone(), &[("dst", "once")]).await;
        let stop = world.work(2);
        world.pass_until(until).await;
        stop.cancel();
        assert_eq!(slots(&world), want);
    }
}

/// Policies, and the slots that have Jobs.
type Choice<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[tokio::test(start_paused = true)]
async fn exclusions_bounds_and_lines_choose_the_slots() {
    let hourly = json!({ "schedule": "0 */6 * * *" });
    let rows: [Choice<'_>; 3] = [
        // The second of March 2026 is a Monday.
        (&[("exclude", "Tue,03-04")], &["03-02T12:00", "03-02T18:00", "03-05T00:00", "03-05T06:00"]),
        (
            &[("not-before", "2026-03-04T18:00:00Z"), ("not-after", "2026-03-05T00:00:00Z")],
            &["03-04T18:00", "03-05T00:00"],
        ),
        (
            &[("schedule", "0 9 * * MON#1;30 9 3W * *\n@at 2026-03-04T09:00")],
            &["03-02T09:00", "03-03T09:30", "03-04T09:00"],
        ),
    ];
    for (policies, want) in rows {
        let world = World::new("2026-03-02T08:00:00Z").await;
        create(&world, hourly.clone(), policies).await;
        let stop = world.work(2);
        world.pass_until("2026-03-05T09:00:00Z").await;
        stop.cancel();
        assert_eq!(slots(&world), want, "{policies:?}");
        assert!(world.controller.unattended().is_empty());
    }
}

/// By the clock that ran ahead, no slot was left.
#[tokio::test(start_paused = true)]
async fn slots_before_the_end_of_a_schedule_are_not_lost_to_a_clock_that_ran_ahead() {
    for policy in [("not-after", "2026-03-02T11:00:00Z"), ("schedule", "@at 2026-03-02T10:30")] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        let spec = json!({ "schedule": "30 10 * * *", "startingDeadlineSeconds": 600 });
        create(&world, spec, &[policy]).await;
        world.clock.step(TimeDelta::hours(2));
        let stop = world.work(1);
        world.pass(seconds(2)).await;
        assert_eq!(slots(&world), [""; 0], "{policy:?}");
        world.clock.step(TimeDelta::hours(-2));
        world.pass_until("2026-03-02T10:31:00Z").await;
        stop.cancel();
        assert_eq!(slots(&world), ["03-02T10:30"], "{policy:?}");
    }
}

/// The excluded slot before the edit does not start, neither by this leader nor by the next.
#[tokio::test(start_paused = true)]
async fn edit_of_an_annotation_starts_nothing_older_over_a_change_of_the_leader() {
    for (edit, later) in [(None, "03-02T14:00"), (Some("12-24"), "03-02T14:00")] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        create(&world, json!({ "schedule": "0 * * * *" }), &[]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:30:00Z").await;
        annotate(&world, &[("exclude", Some("Mon"))]).await;
        world.pass_until("2026-03-02T12:30:00Z").await;
        assert_eq!(slots(&world), ["03-02T10:00"]);
        stop.cancel();
        // The leader is gone when the annotation changes.
        annotate(&world, &[("exclude", edit)]).await;
        let world = world.successor().await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T12:59:00Z").await;
        assert_eq!(slots(&world), ["03-02T10:00"], "{edit:?}");
        world.pass_until("2026-03-02T13:30:00Z").await;
        assert_eq!(slots(&world), ["03-02T10:00", "03-02T13:00"], "{edit:?}");
        stop.cancel();
        let world = world.successor().await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T14:30:00Z").await;
        stop.cancel();
        assert_eq!(slots(&world).last().unwrap(), later, "{edit:?}");
    }
}

/// The leader dies after it has created the Job of the first slot after the edit, before it writes anything else.
#[tokio::test(start_paused = true)]
async fn crash_between_create_and_status_starts_nothing_older() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "0 * * * *" }), &[("exclude", "Mon")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:58:00Z").await;
    let before = counted_from(&world).await;
    assert!(before.starts_with("2026-03-02T09:59:30Z v1:"), "{before}");
    world.wire.judge(|ask| if ask.is(Verb::Patch, "cronjobs/status") { Fate::Swallowed } else { Fate::Pass });
    annotate(&world, &[("exclude", Some("Tue"))]).await;
    world.pass_until("2026-03-02T11:00:30Z").await;
    assert_eq!(slots(&world), ["03-02T11:00"]);
    stop.cancel();
    assert_eq!(counted_from(&world).await, before);
    let world = world.successor().await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T11:59:00Z").await;
    stop.cancel();
    assert_eq!(slots(&world), ["03-02T11:00"]);
    let after = counted_from(&world).await;
    assert!(after.starts_with("2026-03-02T10:58:00Z v1:") && after != before, "{after}");
    assert_eq!(world.get("c").await["status"]["lastScheduleTime"], "2026-03-02T11:00:00Z");
}

/// As `kubectl replace` does with a manifest that never had an annotation.
#[tokio::test(start_paused = true)]
async fn edit_that_also_removes_the_record_starts_nothing_older() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "0 * * * *" }), &[("exclude", "Mon")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:30:00Z").await;
    annotate(&world, &[("exclude", None), ("counted-from", None)]).await;
    world.pass_until("2026-03-02T10:59:00Z").await;
    stop.cancel();
    assert_eq!(slots(&world), [""; 0]);
    let record = counted_from(&world).await;
    assert!(record.starts_with("2026-03-02T10:30:00Z v1:"), "{record}");
    assert_eq!(passed_over(&world).await, 1, "the slot of 10:00, once");
    let world = world.successor().await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T11:30:00Z").await;
    stop.cancel();
    assert_eq!(slots(&world), ["03-02T11:00"]);
}

/// Edits that follow each other before a sync, the first of them without the record.
#[tokio::test(start_paused = true)]
async fn record_that_goes_after_the_policies_still_counts() {
    type Edit = &'static [(&'static str, Option<&'static str>)];
    let rows: [(&str, &[Edit], &[&str]); 5] = [
        ("policies, then record", &[&[("exclude", None)], &[("counted-from", None)]], &["03-02T11:00"]),
        ("record, then policies", &[&[("counted-from", None)], &[("exclude", None)]], &["03-02T11:00"]),
        (
            "policies, others, record",
            &[&[("exclude", None)], &[("not-before", None)], &[("counted-from", None)]],
            &["03-02T11:00"],
        ),
        ("record alone", &[&[("counted-from", None)]], &[]),
        ("policies alone", &[&[("exclude", None)]], &["03-02T11:00"]),
    ];
    for (name, edits, expected) in rows {
        let world = World::new("2026-03-02T09:59:30Z").await;
        create(&world, json!({ "schedule": "0 * * * *" }), &[("exclude", "Mon")]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:30:00Z").await;
        for edit in edits {
            annotate(&world, edit).await;
        }
        world.pass_until("2026-03-02T11:30:00Z").await;
        stop.cancel();
        assert_eq!(slots(&world), expected, "{name}");
        assert_ne!(counted_from(&world).await, "", "{name}");
    }
}

/// The record goes while nothing but it says that a slot is decided.
#[tokio::test(start_paused = true)]
async fn record_that_goes_long_after_the_policies_still_counts() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "0 * * * *" }), &[("exclude", "Mon")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:30:00Z").await;
    annotate(&world, &[("exclude", None)]).await;
    world.pass_until("2026-03-02T10:40:00Z").await;
    let record = counted_from(&world).await;
    annotate(&world, &[("counted-from", None)]).await;
    world.pass_until("2026-03-02T10:50:00Z").await;
    assert_eq!(counted_from(&world).await, record);
    world.pass_until("2026-03-02T11:10:00Z").await;
    // A slot has started since: the record says nothing more, and is not written again.
    annotate(&world, &[("counted-from", None)]).await;
    world.pass_until("2026-03-02T11:30:00Z").await;
    stop.cancel();
    assert_eq!(slots(&world), ["03-02T11:00"]);
    assert_eq!(counted_from(&world).await, "");
}

/// This process sees the edit late, and leads after the one that recorded it in time has died.
#[tokio::test(start_paused = true)]
async fn record_of_an_earlier_leader_counts_and_not_when_a_standby_saw_the_edit() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "*/30 * * * *" }), &[("exclude", "Mon")]).await;
    world.pass_until("2026-03-02T10:30:10Z").await;
    annotate(&world, &[("exclude", None)]).await;
    world.pass(seconds(1)).await;
    let seen = world.controller.parts.cron_jobs.get(&key("c")).unwrap();
    let record = seen.counted_at(time("2026-03-02T10:29:50Z")).to_string();
    annotate(&world, &[("counted-from", Some(&record))]).await;
    world.pass(seconds(1)).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:31:00Z").await;
    stop.cancel();
    assert_eq!(slots(&world), ["03-02T10:30"]);
    assert_eq!(counted_from(&world).await, record);
}

#[tokio::test(start_paused = true)]
async fn the_record_is_written_once_for_each_change() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "0 0 1 1 *" }), &[("exclude", "Sat")]).await;
    let stop = world.work(2);
    world.pass(seconds(60)).await;
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 1);
    let label = json!({ "metadata": { "labels": { "team": "a" } } });
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &label).await;
    world.pass(seconds(60)).await;
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 1);
    annotate(&world, &[("exclude", Some("Sun"))]).await;
    world.pass(seconds(60)).await;
    stop.cancel();
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 2);
}

#[tokio::test(start_paused = true)]
async fn cron_job_without_policies_gets_no_record() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({}), &[]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    stop.cancel();
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 1);
    assert_eq!(counted_from(&world).await, "");
}

#[tokio::test(start_paused = true)]
async fn invalid_policy_holds_the_cron_job_until_an_edit_and_unknown_ones_are_named_once() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({}), &[("spread", "soon"), ("splay", "1h")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:02:30Z").await;
    assert_eq!(slots(&world), [""; 0]);
    assert_eq!(world.reasons().await.iter().filter(|reason| *reason == "UnknownPolicy").count(), 1);
    assert!(world.reasons().await.contains(&"InvalidPolicy".to_owned()));
    assert!(world.controller.unattended().is_empty());
    annotate(&world, &[("spread", Some("1m"))]).await;
    world.pass_until("2026-03-02T10:03:30Z").await;
    stop.cancel();
    assert_eq!(slots(&world), ["03-02T10:03"], "nothing older");
    assert_eq!(world.reasons().await.iter().filter(|reason| *reason == "UnknownPolicy").count(), 1);
    let events = world.list("/api/v1/events").await;
    let message = |reason: &str| events.iter().find(|event| event["reason"] == reason).unwrap()["message"].clone();
    assert_eq!(
        message("UnknownPolicy"),
        "This version of the cronjob-controller knows no annotation cronjob-controller.dev/splay"
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_policies_are_named_again_when_others_are_added_or_removed() {
    type Row<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)], usize);

    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "0 0 1 1 *" }), &[("splay", "1h")]).await;
    let stop = world.work(2);
    // (an edit, its annotations, how often they were named until then)
    let rows: [Row<'_>; 7] = [
        ("none", &[], 1),
        ("another value", &[("splay", Some("2h"))], 1),
        ("one more", &[("sprawl", Some("1h"))], 2),
        ("one less", &[("sprawl", None)], 3),
        ("a known one", &[("spread", Some("1m"))], 3),
        ("all removed", &[("splay", None)], 3),
        ("another one", &[("sprawl", Some("1h"))], 4),
    ];
    for (sentence, edit, want) in rows {
        annotate(&world, edit).await;
        world.pass(seconds(10)).await;
        let named = world.reasons().await.iter().filter(|reason| *reason == "UnknownPolicy").count();
        assert_eq!(named, want, "{sentence}");
    }
    stop.cancel();
}

/// A custom resource's status is written without its metadata.
#[tokio::test(start_paused = true)]
async fn tutorial_cron_job_has_its_record_in_its_status() {
    let world = World::of(ControllerKind::Tutorial, "2026-03-02T09:59:30Z", |_| None).await;
    let path = ControllerKind::Tutorial.parent.path(Some("default"));
    world.create_cron_job("c", json!({ "schedule": "0 * * * *" })).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:30:00Z").await;
    world.write("PATCH", &format!("{path}/c"), &annotations(&[("exclude", Some("Mon"))])).await;
    world.pass_until("2026-03-02T12:30:00Z").await;
    let counted = world.get("c").await["status"]["countedFrom"].as_str().unwrap().to_owned();
    assert!(counted.starts_with("2026-03-02T10:30:00Z v1:"), "{counted}");
    world.write("PATCH", &format!("{path}/c"), &annotations(&[("exclude", None)])).await;
    world.pass_until("2026-03-02T12:59:00Z").await;
    assert_eq!(slots(&world), ["03-02T10:00"]);
    world.pass_until("2026-03-02T13:30:00Z").await;
    stop.cancel();
    assert_eq!(slots(&world), ["03-02T10:00", "03-02T13:00"]);
    assert_eq!(
        passed_over(&world).await,
        1,
        "the removal passes over 11:00 and 12:00; the exclusion passed over nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn resume_that_passes_over_a_slot_is_told_once_and_costs_no_further_request() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    create(&world, json!({ "schedule": "0 * * * *" }), &[("after-change", "wait")]).await;
    let stop = world.work(2);
    let suspend = |suspend: bool| json!({ "spec": { "suspend": suspend } });
    let path = format!("{CRON_JOBS}/c");
    for (time, is_suspended, told) in
        [("2026-03-02T09:59:40Z", true, 0), ("2026-03-02T10:30:00Z", false, 0), ("2026-03-02T10:40:00Z", true, 1)]
    {
        world.pass_until(time).await;
        assert_eq!(passed_over(&world).await, told, "until {time}");
        world.write("PATCH", &path, &suspend(is_suspended)).await;
    }
    world.pass_until("2026-03-02T10:50:00Z").await;
    world.write("PATCH", &path, &suspend(false)).await;
    world.pass_until("2026-03-02T10:59:00Z").await;
    assert_eq!((passed_over(&world).await, slots(&world)), (1, vec![]), "no slot was due after the first resume");
    // The first record, and one for each of the four changes.
    assert_eq!(world.wire.count(Verb::Patch, "cronjobs/status"), 5);
    world.pass_until("2026-03-02T11:30:00Z").await;
    stop.cancel();
    assert_eq!(slots(&world), ["03-02T11:00"]);
}

#[tokio::test(start_paused = true)]
async fn cron_job_that_is_handed_over_has_policies_too() {
    let world = World::managing(Manage::Annotated, ControllerKind::CronJob, "2026-03-02T09:59:30Z", |_| None).await;
    create(&world, json!({ "suspend": true }), &[("managed", "true"), ("spread", "1m")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    stop.cancel();
    assert_eq!(world.seen()[0].creation_timestamp, time("2026-03-02T10:00:00Z") + TimeDelta::seconds(OFFSET));
}

/// `max-concurrent` cannot be combined with Replace.
#[tokio::test(start_paused = true)]
async fn annotations_that_cannot_be_read_decide_slots_before_an_edit_makes_them_ones_that_can() {
    let world = World::new("2026-03-02T10:00:05Z").await;
    create(&world, json!({ "schedule": "*/10 * * * *", "concurrencyPolicy": "Replace" }), &[("exclude", "Mon")]).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:20:10Z").await;
    annotate(&world, &[("exclude", None), ("max-concurrent", Some("2"))]).await;
    world.pass_until("2026-03-02T10:20:30Z").await;
    assert!(world.reasons().await.contains(&"InvalidPolicy".to_owned()));
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": { "concurrencyPolicy": "Allow" } })).await;
    world.pass_until("2026-03-02T10:29:00Z").await;
    assert_eq!(slots(&world), [""; 0], "the slot of 10:20 was due before the change");
    world.pass_until("2026-03-02T10:31:00Z").await;
    assert_eq!(slots(&world), ["03-02T10:30"]);
    stop.cancel();
}

/// Every third Job fails.
fn some_fail(job: &crate::api::batch_v1::Job) -> Option<(Duration, Ending)> {
    let minute = job.scheduled_timestamp?.timestamp() / 60;
    Some((Duration::from_secs(20), if minute % 3 == 0 { Ending::Failed } else { Ending::Complete }))
}

#[tokio::test(start_paused = true)]
async fn published_times_follow_and_cost_one_request_for_a_new_or_changed_cron_job_and_none_for_a_fire() {
    let mut numbers = Vec::new();
    for is_published in [false, true] {
        let world = World::with_jobs_that_end("2026-03-02T09:59:30Z", some_fail).await;
        let world = if is_published { world.publishing(some_fail).await } else { world };
        create(&world, json!({}), &[]).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:30:30Z").await;
        numbers.push(world.wire.count(Verb::Patch, "cronjobs/status"));
        let annotations = world.get("c").await["metadata"]["annotations"].clone();
        if is_published {
            assert_eq!(annotations[format!("{PREFIX}/next-run")], "2026-03-02T10:31:00Z");
            assert_eq!(annotations[format!("{PREFIX}/last-failure")], "2026-03-02T10:30:20Z");
            let path = format!("{CRON_JOBS}/c");
            world.write("PATCH", &path, &json!({ "spec": { "schedule": "0 * * * *" } })).await;
            // Not only when the timer of the old schedule fires.
            world.pass_until("2026-03-02T10:30:40Z").await;
            assert_eq!(
                world.get("c").await["metadata"]["annotations"][format!("{PREFIX}/next-run")],
                "2026-03-02T11:00:00Z"
            );
            world.write("PATCH", &path, &json!({ "spec": { "suspend": true } })).await;
            world.pass_until("2026-03-02T11:30:00Z").await;
            assert!(world.get("c").await["metadata"]["annotations"].get(format!("{PREFIX}/next-run")).is_none());
            assert_eq!(
                world.wire.count(Verb::Patch, "cronjobs/status"),
                numbers[1] + 2,
                "one for the edit, one for the suspension"
            );
        }
        stop.cancel();
    }
    assert_eq!(numbers[1], numbers[0] + 1, "the new CronJob's");
}

/// Each Job gives three Events, and all of them together have one in five minutes.
#[tokio::test(start_paused = true)]
async fn passed_over_is_told_every_hour_beside_the_routine_events_of_a_minutely_cron_job() {
    let world =
        World::with_jobs_that_end("2026-03-02T09:59:30Z", |_| Some((Duration::from_secs(150), Ending::Complete))).await;
    let spec = json!({ "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1 });
    create(&world, spec, &[("backlog", "1")]).await;
    let stop = world.work(2);
    for (hour, told) in [(10, 1), (11, 2), (12, 3), (13, 4), (14, 5)] {
        world.pass_until(&format!("2026-03-02T{hour}:30:00Z")).await;
        assert_eq!(passed_over(&world).await, told, "{hour}:30");
    }
    stop.cancel();
    let written = [Verb::Create, Verb::Patch].map(|verb| world.wire.count(verb, "events")).iter().sum::<usize>();
    assert!(world.seen().len() >= 99 && written < 120, "{written} of three hundred, as upstream");
}

#[tokio::test(start_paused = true)]
async fn pods_are_told_their_slot_also_by_a_template_that_is_not_cached() {
    for filler in [0, 2 * crate::api::job_template::LONGEST_KEPT] {
        let world = World::new("2026-03-02T09:59:30Z").await;
        let container = json!({ "name": "c", "image": "i", "args": ["x".repeat(filler)] });
        let template = json!({ "spec": { "restartPolicy": "Never", "containers": [container] } });
        let spec = json!({ "jobTemplate": { "spec": { "template": template } } });
        create(&world, spec, &[("slot-in-pod", "true"), ("spread", "1m")]).await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:00:30Z").await;
        annotate(&world, &[("slot-in-pod", None)]).await;
        world.pass_until("2026-03-02T10:01:30Z").await;
        stop.cancel();
        let told: Vec<Value> = world
            .list(JOBS)
            .await
            .iter()
            .map(|job| job["spec"]["template"]["metadata"]["annotations"].clone())
            .collect();
        let first = json!({
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T10:00:00Z",
            "cronjob-controller.dev/due-time": format!("2026-03-02T10:00:{OFFSET}Z"),
        });
        assert_eq!(told, [first, Value::Null], "{filler}");
    }
}
