//! Tests of what a slow or silent API server may and may not affect.

use super::*;
use crate::api::batch_v1::Job;
use crate::controller::LONGEST_CREATE;

/// A succeeded Job of the CronJob with that UID.
async fn finished_job(world: &World, name: &str, uid: &str) {
    world.request("POST", JOBS, &job(name, &json!([objects::controlled_by("c", uid)]))).await.unwrap();
    let conditions = ["SuccessCriteriaMet", "Complete"]
        .map(|kind| json!({ "type": kind, "status": "True", "lastTransitionTime": "2026-03-02T10:00:20Z" }));
    let status = json!({ "status": {
        "startTime": "2026-03-02T10:00:10Z", "completionTime": "2026-03-02T10:00:20Z", "succeeded": 1,
        "conditions": conditions,
    } });
    world.request("PATCH", &format!("{JOBS}/{name}/status"), &status).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_history_whose_deletions_hang_costs_no_slot() {
    // The client gives up on a request after 10 s. Pruning without a time limit, begun at 10:00:30, would end at each
    // full minute.
    let world = World::with_jobs_that_end("2026-03-02T10:00:33Z", |_| Some((seconds(1), Ending::Complete))).await;
    let uid = world.create_cron_job("c", json!({ "successfulJobsHistoryLimit": 0 })).await["metadata"]["uid"].clone();
    for number in 0..50 {
        finished_job(&world, &format!("old-{number}"), uid.as_str().unwrap()).await;
    }
    world.catch_up().await;
    world.wire.judge(|ask| if ask.is(Verb::Delete, "jobs") { Fate::Swallowed } else { Fate::Pass });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:10:30Z").await;
    let slots: Vec<_> = world.seen().iter().filter(|job| !job.name.name.starts_with("old")).cloned().collect();
    assert_eq!(slots.len(), 10);
    for job in slots {
        let slot = job.scheduled_timestamp.unwrap();
        assert!(job.creation_timestamp - slot < TimeDelta::seconds(1), "{} at {}", job.name, job.creation_timestamp);
    }
    let status = &world.get("c").await["status"];
    assert_eq!(status["lastSuccessfulTime"], "2026-03-02T10:10:01Z", "the status does not wait for the history");
    world.wire.calm();
    world.pass_until("2026-03-02T10:12:30Z").await;
    stop.cancel();
    assert_eq!(world.list(JOBS).await.len(), 0, "it is pruned once deletions are answered");
}

/// Two slots of a minute share a name: the Job that the repeat of a lost create meets is that of the slot before. It is not pruned
/// while the lost create may arrive.
#[tokio::test(start_paused = true)]
async fn lost_create_of_a_slot_whose_minute_has_a_job_starts_no_second_one() {
    let ends = |job: &Job| Some((seconds(if job.name.name.ends_with("760") { 21 } else { 5 }), Ending::Complete));
    let world = World::with_jobs_that_end("2026-03-02T10:00:00Z", ends).await;
    world.create_cron_job("c", json!({ "schedule": "@every 20s", "successfulJobsHistoryLimit": 1 })).await;
    let mut creates = 0;
    world.wire.judge(move |ask| {
        creates += usize::from(ask.is(Verb::Create, "jobs"));
        let is_lost = creates == 2 && ask.is(Verb::Create, "jobs");
        if is_lost {
            Orders { there: seconds(38), fate: Fate::ArrivesLate, ..Orders::default() }
        } else {
            Orders::default()
        }
    });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:50Z").await;
    stop.cancel();
    let of_the_minute = world.seen_names().into_iter().filter(|name| name == "c-29540760").count();
    assert_eq!((of_the_minute, world.wire.count(Verb::Create, "jobs") > 2), (1, true));
    let left: Vec<_> = world.list(JOBS).await.iter().map(|job| job["metadata"]["name"].clone()).collect();
    assert!(!left.contains(&json!("c-29540760")), "it is pruned later: {left:?}");
}

#[tokio::test(start_paused = true)]
async fn deletion_that_hangs_of_a_job_that_just_finished_delays_neither_the_status_nor_the_next_slot() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| Some((seconds(57), Ending::Complete))).await;
    world.create_cron_job("c", json!({ "successfulJobsHistoryLimit": 0 })).await;
    world.wire.judge(|ask| if ask.is(Verb::Delete, "jobs") { Fate::Swallowed } else { Fate::Pass });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:59.500Z").await;
    assert!(world.wire.count(Verb::Delete, "jobs") > 0, "the deletion hangs");
    assert_eq!(world.get("c").await["status"]["lastSuccessfulTime"], "2026-03-02T10:01:57Z");
    world.pass_until("2026-03-02T10:05:30Z").await;
    stop.cancel();
    let late = |job: &Arc<Job>| (job.creation_timestamp - job.scheduled_timestamp.unwrap()).num_milliseconds();
    let skews: Vec<_> = world.seen().iter().map(late).collect();
    assert!(skews.len() == 5 && skews.iter().all(|skew| *skew < 1_000), "{skews:?}");
}

/// The first create of a slot loses its connection, and the server works on it; the second one makes the Job.
#[tokio::test(start_paused = true)]
async fn a_job_is_not_pruned_while_an_earlier_create_of_its_slot_may_be_committed() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| Some((seconds(1), Ending::Complete))).await;
    world.create_cron_job("c", json!({ "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 0 })).await;
    let mut is_first = true;
    world.wire.judge(move |ask| {
        let is_lost = ask.is(Verb::Create, "jobs") && std::mem::take(&mut is_first);
        let fate = if is_lost { Fate::ArrivesLate } else { Fate::Pass };
        Orders { there: if is_lost { seconds(8) } else { Duration::ZERO }, fate, ..Orders::default() }
    });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:30Z").await;
    assert_eq!(world.wire.count(Verb::Create, "jobs"), 2);
    assert_eq!(world.list(JOBS).await.len(), 1, "its name keeps the slot");
    world.pass_until("2026-03-02T10:01:50Z").await;
    assert_eq!(world.list(JOBS).await.len(), 0, "it is pruned once nothing can be committed");
    world.pass_until("2026-03-02T10:03:30Z").await;
    stop.cancel();
    let slots: Vec<_> = world.seen().iter().map(|job| job.scheduled_timestamp.unwrap().to_rfc3339()).collect();
    assert_eq!(slots, ["10:01", "10:02", "10:03"].map(|time| format!("2026-03-02T{time}:00+00:00")));
}

#[tokio::test(start_paused = true)]
async fn a_history_of_a_hundred_is_pruned_some_at_a_time_without_a_pause() {
    let world = World::new("2026-03-02T10:00:30Z").await;
    let spec = json!({ "schedule": "0 0 1 1 *", "successfulJobsHistoryLimit": 3 });
    let uid = world.create_cron_job("c", spec).await["metadata"]["uid"].clone();
    for number in 0..100 {
        finished_job(&world, &format!("old-{number}"), uid.as_str().unwrap()).await;
    }
    world.catch_up().await;
    let stop = world.work(2);
    world.pass(seconds(3)).await;
    stop.cancel();
    assert_eq!(world.list(JOBS).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_completes_and_is_deleted_unseen_is_recorded_as_successful() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| Some((seconds(1), Ending::Complete))).await;
    world.create_cron_job("c", json!({})).await;
    // The sync after the create waits for its status write, while the Job completes and, as with ttlSecondsAfterFinished: 0, is
    // deleted: no sync sees it finished.
    world.wire.answer_late(Verb::Patch, "cronjobs/status", seconds(3));
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:01.100Z").await;
    let name = world.seen_names().remove(0);
    world.write("DELETE", &format!("{JOBS}/{name}"), &Value::Null).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    let status = &world.get("c").await["status"];
    assert_eq!(status["lastSuccessfulTime"], "2026-03-02T10:01:01Z", "{status}");
    assert!(status["active"].is_null(), "{status}");
    assert!(!world.reasons().await.contains(&"MissingJob".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_hangs_costs_no_slot() {
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| Some((seconds(1), Ending::Complete))).await;
    world.create_cron_job("c", json!({ "schedule": "@every 5s" })).await;
    world.wire.judge(|ask| if ask.is(Verb::Patch, "cronjobs/status") { Fate::Swallowed } else { Fate::Pass });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:05:30Z").await;
    stop.cancel();
    // Slots of the same minute share a Job's name.
    let late = |job: &Arc<Job>| (job.creation_timestamp - job.scheduled_timestamp.unwrap()).num_seconds();
    let skews: Vec<_> = world.seen().iter().map(late).collect();
    assert!(skews.len() >= 5 && skews.iter().all(|skew| *skew < 1), "{skews:?}");
}

#[tokio::test(start_paused = true)]
async fn replace_comes_back_within_seconds_after_deletions_are_possible_again() {
    let table = [
        ("the server's error", Fate::Refused(500, "InternalError")),
        ("a denial of one that is busy", Fate::Refused(503, "ServiceUnavailable")),
        ("a denial of one that is asked too much", Fate::Refused(429, "TooManyRequests")),
    ];
    for (sentence, fate) in table {
        let world = World::new("2026-03-02T10:00:30Z").await;
        world.create_cron_job("c", json!({ "concurrencyPolicy": "Replace" })).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:01:30Z").await;
        world.wire.judge(move |ask| if ask.is(Verb::Delete, "jobs") { fate } else { Fate::Pass });
        world.pass_until("2026-03-02T10:03:40Z").await;
        assert_eq!(world.seen().len(), 1, "{sentence}");
        world.wire.calm();
        world.pass(seconds(5)).await;
        stop.cancel();
        assert_eq!(world.seen().len(), 2, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_lease_that_ran_out_replace_waits_until_its_creates_have_ended() {
    let world = World::new("2026-03-02T10:00:30Z").await;
    world.create_cron_job("c", json!({ "concurrencyPolicy": "Replace" })).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:50Z").await;
    stop.cancel();
    world.pass(seconds(1)).await;
    let world = world.successor().await;
    world.controller.take_over(LONGEST_CREATE);
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:02:29Z").await;
    assert_eq!(world.list(JOBS).await[0]["metadata"]["name"], "c-29540761", "it is not deleted yet");
    world.pass_until("2026-03-02T10:02:31Z").await;
    assert_eq!(world.list(JOBS).await[0]["metadata"]["name"], "c-29540762");
    stop.cancel();
}

/// The last leader made the Job of 10:01 and wrote no status, and the Job watch of the next one is silent for longer than that one
/// waits.
#[tokio::test(start_paused = true)]
async fn a_job_of_the_last_leader_is_found_although_the_watch_is_silent() {
    let rows = [
        ("Forbid", json!({}), LONGEST_CREATE, "c-29540761"),
        ("Forbid", json!({}), Duration::ZERO, "c-29540761"),
        ("Allow", json!({ "cronjob-controller.dev/max-concurrent": "1" }), LONGEST_CREATE, "c-29540761"),
        ("Allow", json!({ "cronjob-controller.dev/max-concurrent": "1" }), Duration::ZERO, "c-29540761"),
        ("Replace", json!({}), LONGEST_CREATE, "c-29540762"),
        ("Replace", json!({}), Duration::ZERO, "c-29540762"),
        ("Replace", json!({ "cronjob-controller.dev/replace-waits": "true" }), LONGEST_CREATE, "c-29540762"),
        ("Replace", json!({ "cronjob-controller.dev/replace-waits": "true" }), Duration::ZERO, "c-29540762"),
    ];
    for (policy, annotations, pending, runs) in rows {
        let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
        let created = world.create_cron_job("c", json!({ "concurrencyPolicy": policy })).await;
        let uid = created["metadata"]["uid"].as_str().unwrap().to_owned();
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "metadata": { "annotations": annotations } })).await;
        world.catch_up().await;
        world.wire.silence("jobs");
        world.pass_until("2026-03-02T10:01:00Z").await;
        let mut theirs = job("c-29540761", &json!([objects::controlled_by("c", &uid)]));
        theirs["metadata"]["annotations"] =
            json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T10:01:00Z" });
        world.write("POST", JOBS, &theirs).await;
        // The slot of 10:02 is due when that leader's creates can no longer be committed.
        world.pass_until(if pending.is_zero() { "2026-03-02T10:02:05Z" } else { "2026-03-02T10:01:30Z" }).await;
        world.controller.take_over(pending);
        let stop = world.work(2);
        // Where nothing can be open any more, a look at the Jobs is all that is waited for.
        world.pass_until(if pending.is_zero() { "2026-03-02T10:02:07Z" } else { "2026-03-02T10:02:30Z" }).await;
        stop.cancel();
        assert_eq!(world.children().await, [runs], "{policy} {annotations} {pending:?}");
    }
}

/// No create for 10:01 was answered, and another owner's Job takes its name: as soon as that is known, 10:02 can start.
#[tokio::test(start_paused = true)]
async fn later_slot_does_not_wait_for_an_unanswered_create_whose_name_another_owner_has_taken() {
    let rows = [
        ("a retry finds it", "Forbid", "2026-03-02T10:01:40Z", 0),
        ("a retry finds it", "Replace", "2026-03-02T10:01:40Z", 0),
        ("the next slot finds it", "Forbid", "2026-03-02T10:01:59.990Z", 1),
        ("the next slot finds it", "Replace", "2026-03-02T10:01:59.990Z", 1),
    ];
    for (sentence, policy, taken_at, repeated) in rows {
        let world = World::new("2026-03-02T10:00:30Z").await;
        world.create_cron_job("c", json!({ "concurrencyPolicy": policy })).await;
        let latency = |fate| Orders { there: Duration::from_millis(5), back: Duration::from_millis(5), fate };
        world.wire.judge(move |ask| {
            latency(if ask.is(Verb::Create, "jobs") { Fate::Refused(504, "Timeout") } else { Fate::Pass })
        });
        let stop = world.work(2);
        world.pass_until(taken_at).await;
        world.request("POST", JOBS, &job("c-29540761", &json!([]))).await.unwrap();
        world.wire.judge(move |_| latency(Fate::Pass));
        world.pass_until("2026-03-02T10:01:59.999Z").await;
        let [creates, reads] = [Verb::Create, Verb::Get].map(|verb| world.wire.count(verb, "jobs"));
        world.pass_until("2026-03-02T10:02:50Z").await;
        stop.cancel();
        let later = world.seen().into_iter().find(|job| *job.name.name == *"c-29540762").unwrap();
        assert_eq!(later.creation_timestamp, time("2026-03-02T10:02:00Z"), "{sentence}, {policy}");
        let asked = [world.wire.count(Verb::Create, "jobs") - creates, world.wire.count(Verb::Get, "jobs") - reads];
        assert_eq!(asked, [1 + repeated, repeated], "{sentence}, {policy}: creates and reads of Jobs");
        assert!(!world.controller.creates_may_be_pending(), "{sentence}, {policy}");
    }
}

/// Replace's deletion of the Job of 10:01 meets these one after the other, and the next is not answered at all.
#[tokio::test(start_paused = true)]
async fn request_after_a_timeout_is_given_more_time_whatever_failed_between() {
    let (timeout, denied, away) =
        (Fate::Refused(504, "Timeout"), Fate::Refused(403, "Forbidden"), Fate::Refused(503, "ServiceUnavailable"));
    let rows: [(&str, &[Fate], u64); 9] = [
        ("nothing before", &[], 10),
        ("a refusal", &[denied], 10),
        ("a server that is away", &[away, away], 10),
        ("a timeout", &[timeout], 39),
        ("a timeout, then a refusal", &[timeout, denied], 39),
        ("a timeout, then a server that is away and a refusal", &[timeout, away, denied], 39),
        ("a refusal, then a timeout", &[denied, timeout], 39),
        ("a timeout, then an answer", &[timeout, Fate::Pass], 10),
        ("a timeout, an answer and a refusal", &[timeout, Fate::Pass, denied], 10),
    ];
    for (sentence, fates, limit) in rows {
        let world = World::new("2026-03-02T10:00:30Z").await;
        world.create_cron_job("c", json!({ "concurrencyPolicy": "Replace" })).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:01:30Z").await;
        let mut met: std::collections::VecDeque<Fate> = fates.iter().copied().collect();
        world.wire.judge(move |ask| {
            if ask.is(Verb::Delete, "jobs") { met.pop_front().unwrap_or(Fate::Swallowed) } else { Fate::Pass }
        });
        world.pass_until("2026-03-02T10:04:30Z").await;
        stop.cancel();
        let asked = world.wire.asked(Verb::Delete, "jobs");
        let waited = asked[fates.len() + 1].at - asked[fates.len()].at;
        assert!((seconds(limit)..seconds(limit + 1)).contains(&waited), "{sentence}: {waited:?}");
    }
}

/// Under Allow the slot of 10:02 starts although the create for 10:01 may be committed yet.
#[tokio::test(start_paused = true)]
async fn lease_is_held_for_an_unanswered_create_although_that_of_a_later_slot_was_answered() {
    let rows = [
        ("answered", Fate::Pass, false),
        ("refused", Fate::Refused(403, "Forbidden"), false),
        ("no answer in time", Fate::Refused(504, "Timeout"), true),
    ];
    for (sentence, fate, is_pending) in rows {
        let world = World::new("2026-03-02T10:00:30Z").await;
        world.create_cron_job("c", json!({})).await;
        let until = tokio::time::Instant::now() + seconds(90) - Duration::from_millis(1);
        world.wire.judge(move |ask| if ask.is(Verb::Create, "jobs") && ask.at < until { fate } else { Fate::Pass });
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:02:05Z").await;
        stop.cancel();
        assert!(world.seen_names().contains(&"c-29540762".to_owned()), "{sentence}");
        assert_eq!(world.controller.creates_may_be_pending(), is_pending, "{sentence}");
        world.pass_until("2026-03-02T10:02:40Z").await;
        assert!(!world.controller.creates_may_be_pending(), "{sentence}: for as long as it may be committed");
    }
}
