#![allow(clippy::unwrap_used)]

mod changes;
mod freeze;
mod limits;
mod pairs;
mod policies;
mod publish;
mod script;
mod taken;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use serde_json::{Value, json};

use super::children::{MOST_LOOKED_UP, MOST_UNEXPECTED};
use crate::api::batch_v1::{CronJob, CronJobStatus, Job};
use crate::api::{ApiError, ControllerKind, Delivery, ObjectName, Uid};
use crate::controller::conditions;
use crate::controller::history::{MOST_PRUNED, oldest_beyond_limit};
use crate::controller::messages::PASSED_OVER;
use crate::controller::observation::{CreateReply, Observation, Ownership, PendingCreate};
use crate::controller::plan::{Failure, Lookup, Memo, Outcome, RecentEvent, Settlement, Verdict};
use crate::controller::status::Draft;
use crate::controller::tests::objects::{cron_job, job, merge, merged, time};
use script::{Case, Plan, reconcile};

/// 10:00:00 on the day of these tests; the schedule is hourly unless a row says otherwise.
const SLOT: &str = "2026-03-02T10:00:00Z";
const NAME: &str = "report-29540760";

fn now() -> DateTime<Utc> {
    time("2026-03-02T10:00:05Z")
}

fn finished(kind: &str) -> Value {
    json!({ "status": {
        "startTime": "2026-03-02T09:00:01Z", "completionTime": "2026-03-02T09:10:00Z",
        "conditions": [{ "type": kind, "status": "True" }],
    } })
}

fn made_by_controller(slot: &str) -> Value {
    json!({ "metadata": { "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": slot } } })
}

fn reference(name: &str, uid: &str) -> Value {
    json!({ "kind": "Job", "namespace": "ns", "name": name, "uid": uid, "apiVersion": "batch/v1" })
}

fn observe(cron_job: &Arc<CronJob>, jobs: &[&Arc<Job>]) -> Case {
    let jobs = jobs.iter().map(|job| Arc::clone(job)).collect();
    Case::new(Observation::new(Arc::clone(cron_job), jobs, Zone::UTC))
}

fn refusal(code: u16, reason: &str) -> ApiError {
    ApiError {
        code,
        reason: reason.to_owned(),
        ..ApiError::transport("test", ObjectName::new("ns", "x"), "refused for the test")
    }
}

fn settle(observation: &Case) -> Settlement {
    match reconcile(observation, now()) {
        Plan::Settle(settlement) => settlement,
        other => panic!("expected to settle, got {other:?}"),
    }
}

fn reasons(settlement: &Settlement) -> Vec<&'static str> {
    settlement.events.iter().map(|event| event.reason).collect()
}

fn requeued_at(settlement: &Settlement) -> Option<DateTime<Utc>> {
    match settlement.outcome {
        Outcome::Requeue(at) => Some(at),
        _ => None,
    }
}

fn written(settlement: &Settlement) -> &CronJobStatus {
    &settlement.status.as_ref().unwrap().status
}

/// A create that was sent once for the slot and has no answer.
fn unanswered(slot: &str, wait: Option<TimeDelta>) -> PendingCreate {
    PendingCreate { slot: time(slot), wait, is_repeated: false }
}

fn created() -> CreateReply {
    CreateReply::Created(job(NAME, "new-uid", json!({})))
}

#[test]
fn a_due_slot_is_created_before_anything_is_pruned_or_written() {
    let cron_job = cron_job(json!({ "spec": { "successfulJobsHistoryLimit": 0 } }));
    let old = job("report-29540700", "old", finished("Complete"));
    let mut observation = observe(&cron_job, &[&old]);

    let Plan::Create { name, slot, .. } = reconcile(&observation, now()) else { panic!("no create") };
    assert_eq!((name.to_string(), slot), (format!("ns/{NAME}"), time(SLOT)));

    observation.create = Some(created());
    let settlement = settle(&observation);
    assert_eq!(settlement.pruning.jobs, std::slice::from_ref(&old));
    assert_eq!(reasons(&settlement), ["SuccessfulCreate"]);
    assert_eq!(written(&settlement).last_schedule_time, Some(time(SLOT)));
    assert_eq!(written(&settlement).active.len(), 1);
    assert_eq!(requeued_at(&settlement), Some(time("2026-03-02T11:00:00Z")));
}

/// A status may hold any number of references.
#[test]
fn one_sync_looks_for_few_jobs_of_many_references_and_another_follows_if_some_are_gone() {
    let names: Vec<String> = (0..200).map(|number| format!("gone-{number}")).collect();
    let active: Vec<Value> = names.iter().map(|name| reference(name, name)).collect();
    let cron_job = cron_job(json!({ "status": { "active": active } }));
    for (sentence, is_gone) in [("they are gone", true), ("they exist, and are no children", false)] {
        let mut observation = observe(&cron_job, &[]);
        observation.create = Some(created());
        let Plan::Lookup(lookups) = reconcile(&observation, now()) else { panic!("no lookup") };
        assert_eq!(lookups.len(), MOST_LOOKED_UP, "{sentence}");
        for lookup in lookups {
            let Lookup::Job(name) = lookup else { panic!("{sentence}: {lookup:?}") };
            let other = job(&name.name, &name.name, json!({ "metadata": { "ownerReferences": null } }));
            observation.learn_job(name, if is_gone { Err(refusal(404, "NotFound")) } else { Ok(other) });
        }
        let settlement = settle(&observation);
        // The slot is decided about by the sync that follows.
        let left = if is_gone { 200 - MOST_LOOKED_UP } else { 200 + 1 };
        let again = matches!(settlement.outcome, Outcome::Again);
        assert_eq!((written(&settlement).active.len(), again), (left, is_gone), "{sentence}");
    }
}

/// Each has a UID of its own, and all the same name.
#[test]
fn job_is_looked_for_once_however_many_references_name_it() {
    let active: Vec<Value> = (0..50).map(|number| reference("gone", &format!("{number}"))).collect();
    let cron_job = cron_job(json!({ "status": { "active": active } }));
    let mut observation = observe(&cron_job, &[]);
    observation.create = Some(created());
    let Plan::Lookup(lookups) = reconcile(&observation, now()) else { panic!("no lookup") };
    assert_eq!(lookups.len(), 1);
}

#[test]
fn one_sync_reports_few_unexpected_jobs_of_many() {
    let live = cron_job(json!({}));
    let jobs: Vec<_> =
        (0..200).map(|number| job(&format!("by-hand-{number}"), &format!("{number}"), json!({}))).collect();
    let mut observation = observe(&live, &jobs.iter().collect::<Vec<_>>());
    (observation.live.cron_job, observation.create) = (Some(Ok(Arc::clone(&live))), Some(created()));
    let unexpected = reasons(&settle(&observation)).into_iter().filter(|reason| *reason == "UnexpectedJob").count();
    assert_eq!(unexpected, MOST_UNEXPECTED);
}

/// The edits of a sync that is settled later, or that was overtaken, do not say that a Job is deleted before it is.
#[test]
fn the_end_of_an_active_job_is_reported_if_it_cannot_be_pruned_after_its_sync_was_put_off() {
    let old = job("report-29540700", "old", finished("Complete"));
    for (is_overtaken, reply, want) in [
        (false, Err(refusal(500, "InternalError")), vec!["FailedDelete", "SawCompletedJob"]),
        (true, Err(refusal(500, "InternalError")), vec!["FailedDelete", "SawCompletedJob"]),
        (false, Ok(()), vec!["SuccessfulDelete"]),
        (true, Ok(()), vec!["SuccessfulDelete"]),
    ] {
        let cron_job = cron_job(json!({
            "spec": { "successfulJobsHistoryLimit": 0 },
            "status": { "active": [reference("report-29540700", "old")] },
        }));
        let mut observation = observe(&cron_job, &[&old]);
        (observation.settle_later, observation.is_overtaken) = (!is_overtaken, is_overtaken);
        observation.create = Some(created());
        let put_off = settle(&observation);
        assert!(put_off.status.is_none() && put_off.pruning.jobs.is_empty(), "{put_off:?}");

        let mut observation = observe(&cron_job, &[&old, &job(NAME, "new-uid", made_by_controller(SLOT))]);
        observation.recalled.carried = put_off.edits;
        let Plan::Prune { jobs, .. } = reconcile(&observation, now()) else { panic!("nothing to prune") };
        observation.learn_deletion(jobs[0].uid.clone(), reply);
        let settlement = settle(&observation);
        assert_eq!(reasons(&settlement), want, "{is_overtaken}");
        assert_eq!(&*written(&settlement).active.iter().next().unwrap().name, NAME, "{is_overtaken}");
        assert_eq!(written(&settlement).active.len(), 1, "{is_overtaken}");
        // The status could not be written, so the Job is deleted once more.
        let mut again = observation.clone();
        again.recalled.carried = settlement.edits;
        let want: Vec<_> = want.into_iter().filter(|reason| *reason != "SawCompletedJob").collect();
        assert_eq!(reasons(&settle(&again)), want, "{is_overtaken}: its end is reported once");
    }
}

/// A finalizer may keep a Job for as long as it likes.
#[test]
fn a_finished_job_that_is_being_deleted_is_not_pruned_again() {
    let cron_job = cron_job(json!({ "spec": { "successfulJobsHistoryLimit": 0 } }));
    let old = job("report-29540700", "old", finished("Complete"));
    let lingering = Arc::new(Job { deleting: true, ..Job::clone(&old) });
    for (job, pruned) in [(&old, 1), (&lingering, 0)] {
        let mut observation = observe(&cron_job, &[job]);
        observation.create = Some(created());
        assert_eq!(settle(&observation).pruning.jobs.len(), pruned);
    }
}

/// Where this process deleted it, it is hidden for a while and then seen again: the condition must not change.
#[test]
fn a_finished_job_that_is_being_deleted_counts_in_no_condition() {
    let cron_job = cron_job(json!({}));
    let failed = job("report-29540700", "old", finished("Failed"));
    let lingering = Arc::new(Job { deleting: true, ..Job::clone(&failed) });
    for (jobs, reason) in
        [(vec![], "NothingFailed"), (vec![&lingering], "NothingFailed"), (vec![&lingering, &failed], "Failed")]
    {
        let observation = observe(&cron_job, &jobs);
        let draft = Draft::new(&observation.cron_job, &observation.recalled);
        let [.., degraded] = conditions::of(&observation, &draft, &Outcome::Done, now());
        assert_eq!(degraded.reason, reason);
    }
}

/// A linear search through the edits for each Job would take minutes.
#[test]
fn a_history_of_a_hundred_thousand_jobs_is_pruned_some_at_a_time() {
    const JOBS: usize = 100_000;
    let cron_job = cron_job(json!({ "spec": { "failedJobsHistoryLimit": 1 } }));
    let old = job("old", "old", finished("Failed"));
    let jobs = (0..JOBS).map(|number| {
        let (name, uid) = (ObjectName::new("ns", format!("old-{number:06}")), Uid::new(&format!("old-{number}")));
        Arc::new(Job { name, uid, ..Job::clone(&old) })
    });
    let mut observation = Case::new(Observation::new(cron_job, jobs.collect(), Zone::UTC));
    observation.create = Some(created());
    let settlement = settle(&observation);
    assert_eq!((settlement.pruning.jobs.len(), settlement.pruning.more), (MOST_PRUNED, JOBS - 1 - MOST_PRUNED));
    assert_eq!(&*settlement.pruning.jobs[0].name.name, "old-000000", "the oldest first");
    assert_eq!(written(&settlement).active.len(), 1);
}

#[test]
fn history_is_judged_on_the_version_that_was_read_live_like_the_policy() {
    let cached = cron_job(json!({ "spec": { "successfulJobsHistoryLimit": 0 } }));
    let (done, unexpected) = (job("report-a", "a", finished("Complete")), job("report-b", "b", json!({})));
    for is_suspect in [false, true] {
        let mut observation = observe(&cached, &[&done, &unexpected]);
        observation.view_is_suspect = is_suspect;
        assert!(matches!(reconcile(&observation, now()), Plan::Lookup(asked) if asked == [Lookup::CronJob]));
        observation.live.cron_job =
            Some(Ok(cron_job(json!({ "spec": { "successfulJobsHistoryLimit": 1, "suspend": true } }))));
        let settlement = settle(&observation);
        assert_eq!((settlement.pruning.jobs.len(), reasons(&settlement)), (0, vec!["UnexpectedJob"]), "{is_suspect}");
        assert!(matches!(settlement.outcome, Outcome::Done), "{is_suspect}");
    }
}

/// Its deletion here hides its success from later syncs.
#[test]
fn finished_job_is_not_pruned_by_a_sync_that_failed_before_it_recorded_its_success() {
    let cached = cron_job(json!({ "spec": { "successfulJobsHistoryLimit": 0 } }));
    let (by_hand, done) = (job("report-a", "a", json!({})), job("report-b", "b", finished("Complete")));
    for (sentence, is_suspect, jobs, pruned) in
        [("before it looks at them", true, vec![&done], 0), ("at the one before", false, vec![&by_hand, &done], 1)]
    {
        let mut observation = observe(&cached, &jobs);
        observation.view_is_suspect = is_suspect;
        observation.live.cron_job = Some(Err(refusal(503, "ServiceUnavailable")));
        let settlement = settle(&observation);
        assert!(matches!(settlement.outcome, Outcome::Failed(_)), "{sentence}");
        let status = settlement.status.as_ref().map(|write| &write.status);
        let success = status.and_then(|status| status.last_successful_time);
        assert_eq!((settlement.pruning.jobs.len(), success.is_some()), (pruned, pruned == 1), "{sentence}");
    }
}

#[test]
fn what_was_decided_before_a_live_read_is_written_to_the_live_version() {
    // Upstream continues with the live copy but writes the cached one, and so loses the new Job's reference.
    let stale = json!({ "status": { "active": [reference("report-a", "a")] } });
    let done = job("report-a", "a", finished("Complete"));
    let running = job("report-b", "b", json!({}));
    let mut observation = observe(&cron_job(stale), &[&done, &running]);
    assert!(matches!(reconcile(&observation, now()), Plan::Lookup(asked) if asked == [Lookup::CronJob]));

    observation.live.cron_job = Some(Ok(cron_job(json!({
        "metadata": { "resourceVersion": "8" },
        "status": { "active": [reference("report-a", "a"), reference("report-b", "b")] },
    }))));
    observation.create = Some(created());
    let settlement = settle(&observation);
    let write = settlement.status.as_ref().unwrap();
    let uids: Vec<_> = write.status.active.iter().map(|r| r.uid.to_string()).collect();
    assert_eq!((&*write.base.resource_version, uids), ("8", vec!["b".to_owned(), "new-uid".to_owned()]));
    assert_eq!(write.status.last_successful_time, Some(time("2026-03-02T09:10:00Z")));
    assert_eq!(write.status.last_schedule_time, Some(time(SLOT)));
}

#[test]
fn name_taken_by_another_owner_is_reported_once_per_slot_and_waits_for_the_next() {
    let foreign = job(NAME, "foreign", json!({ "metadata": { "ownerReferences": [] } }));
    let mut observation = observe(&cron_job(json!({})), &[]);
    observation.create = Some(CreateReply::Refused(refusal(409, "AlreadyExists")));
    assert!(matches!(reconcile(&observation, now()), Plan::Lookup(_)));
    observation.learn_job(foreign.name.clone(), Ok(foreign));

    let settlement = settle(&observation);
    assert_eq!(reasons(&settlement), ["FailedCreate"]);
    assert_eq!(settlement.memo.name_taken, Some(time(SLOT)));
    assert!(settlement.status.is_none(), "lastScheduleTime stays");
    assert_eq!(requeued_at(&settlement), Some(time("2026-03-02T11:00:00Z")));

    observation.recalled.memo.name_taken = Some(time(SLOT));
    assert!(reasons(&settle(&observation)).is_empty());
}

#[test]
fn a_name_taken_by_our_own_job_is_adopted_and_waits_for_the_next_slot() {
    let own = job(NAME, "earlier", json!({}));
    let mut observation = observe(&cron_job(json!({})), &[]);
    observation.create = Some(CreateReply::Refused(refusal(409, "AlreadyExists")));
    observation.learn_job(own.name.clone(), Ok(own));
    let settlement = settle(&observation);
    assert_eq!(written(&settlement).active.iter().next().unwrap().uid.to_string(), "earlier");
    assert_eq!(requeued_at(&settlement), Some(time("2026-03-02T11:00:00Z")));
    assert!(reasons(&settlement).is_empty());
}

#[test]
fn only_a_job_that_a_controller_made_for_the_slot_was_there_before_its_create() {
    let rows = [
        ("made for the slot", made_by_controller(SLOT), true),
        ("made for another slot of the minute", made_by_controller("2026-03-02T10:00:20Z"), false),
        ("made by hand", json!({}), false),
    ];
    for (sentence, made, want) in rows {
        let own = job(NAME, "earlier", made);
        let mut observation = observe(&cron_job(json!({})), &[]);
        observation.create = Some(CreateReply::Refused(refusal(409, "AlreadyExists")));
        observation.learn_job(own.name.clone(), Ok(own));
        assert_eq!(settle(&observation).already_there, want.then_some(time(SLOT)), "{sentence}");
    }
}

#[test]
fn after_a_crash_between_create_and_status_the_job_is_adopted_before_any_policy_is_judged() {
    for policy in ["Allow", "Forbid", "Replace"] {
        let cron_job = cron_job(json!({ "spec": { "concurrencyPolicy": policy } }));
        let orphan = job(NAME, "orphan", made_by_controller(SLOT));
        let settlement = settle(&observe(&cron_job, &[&orphan]));
        let status = written(&settlement);
        assert_eq!(status.last_schedule_time, Some(time(SLOT)), "{policy}");
        assert_eq!(status.active.iter().next().unwrap().uid.to_string(), "orphan", "{policy}");
        assert!(reasons(&settlement).is_empty(), "{policy}");
    }
}

#[test]
fn a_finished_orphan_takes_its_slot_but_does_not_become_active() {
    let mut patch = made_by_controller(SLOT);
    merge(&mut patch, finished("Failed"));
    let settlement = settle(&observe(&cron_job(json!({})), &[&job(NAME, "orphan", patch)]));
    assert_eq!(written(&settlement).last_schedule_time, Some(time(SLOT)));
    assert!(written(&settlement).active.is_empty());
}

#[test]
fn the_ends_of_runs_are_news_once_in_their_order_whatever_the_order_of_the_jobs() {
    let ended = |number: i32, slot: &str, end: &str, kind: &str| {
        let mut patch = made_by_controller(slot);
        let conditions = json!([{ "type": kind, "status": "True", "lastTransitionTime": end }]);
        let completion = (kind == "Complete").then_some(end);
        merge(
            &mut patch,
            json!({ "status": { "startTime": slot, "completionTime": completion, "conditions": conditions } }),
        );
        job(&format!("report-{number}"), &number.to_string(), patch)
    };
    let (eight, nine, ten) = ("2026-03-02T08:00:00Z", "2026-03-02T09:00:00Z", SLOT);
    let oldest = ended(29_540_640, eight, "2026-03-02T08:10:00Z", "Complete");
    let long = ended(29_540_700, nine, "2026-03-02T10:00:04Z", "Complete");
    let newest = ended(29_540_760, ten, "2026-03-02T10:00:03Z", "Failed");
    let by_hand = job("by-hand", "by-hand", finished("Complete"));
    let all = [&oldest, &long, &newest, &by_hand];
    let active = json!([reference(&long.name.name, "29540700"), reference("by-hand", "by-hand")]);
    // (a sentence, the status, the runs whose end is news)
    let rows = [
        ("nothing is recorded", json!({ "lastScheduleTime": null }), vec!["29540640", "29540760", "29540700"]),
        ("the first is recorded", json!({ "lastScheduleTime": eight }), vec!["29540760", "29540700"]),
        ("two were active", json!({ "lastScheduleTime": ten, "active": active }), vec!["29540700"]),
        ("all are recorded", json!({ "lastScheduleTime": ten }), vec![]),
    ];
    for (sentence, status, news) in rows {
        let cron_job = cron_job(json!({ "status": status }));
        for jobs in [all.to_vec(), all.into_iter().rev().collect()] {
            let settlement = settle(&observe(&cron_job, &jobs));
            let runs = settlement.ended_runs(&cron_job);
            let found: Vec<_> = runs.into_iter().map(|job| job.uid.to_string()).collect();
            assert_eq!(found, news, "{sentence}");
        }
    }
}

#[test]
fn a_manual_job_with_the_annotation_but_not_the_name_is_not_adopted() {
    let manual = job("report-manual", "manual", made_by_controller(SLOT));
    let mut observation = observe(&cron_job(json!({})), &[&manual]);
    observation.live.cron_job = Some(Ok(Arc::clone(&observation.cron_job)));
    observation.create = Some(created());
    let settlement = settle(&observation);
    assert_eq!(reasons(&settlement), ["UnexpectedJob", "SuccessfulCreate"]);
    assert_eq!(written(&settlement).active.len(), 1);
}

#[test]
fn unobserved_job_is_read_when_its_cron_job_was_taken_back() {
    let made = |what: Value| merged(made_by_controller(SLOT), what);
    let before = "2026-03-02T09:00:00Z";
    let running = job(NAME, "new", made(json!({})));
    let ended = job(NAME, "new", made(finished("Complete")));
    let theirs = job(NAME, "new", json!({ "metadata": { "ownerReferences": [] } }));
    let table = [
        ("it runs", Ok(running), (SLOT, 1, false)),
        ("it has ended", Ok(ended), (SLOT, 0, false)),
        ("it was never made, or is gone", Err(refusal(404, "NotFound")), (before, 0, false)),
        ("its name belongs to another owner", Ok(theirs), (before, 0, false)),
        ("who knows", Err(refusal(503, "ServiceUnavailable")), (before, 0, true)),
    ];
    for (sentence, reply, want) in table {
        let cron_job = cron_job(json!({}));
        let mut observation = observe(&cron_job, &[]);
        observation.ownership = Ownership::Released { begun: Some(time(SLOT)) };
        let name = ObjectName::new("ns", NAME);
        let Plan::Lookup(lookups) = reconcile(&observation, now()) else { panic!("{sentence}: not looked for") };
        assert_eq!(lookups, [Lookup::Job(name.clone())]);
        observation.learn_job(name, reply);
        let settlement = settle(&observation);
        let status = settlement.status.as_ref().map_or(&cron_job.status, |write| &write.status);
        let is_failed = matches!(settlement.outcome, Outcome::Failed(_));
        let got = (status.last_schedule_time, status.active.len(), is_failed);
        assert_eq!(got, (Some(time(want.0)), want.1, want.2), "{sentence}");
        assert!(is_failed || matches!(settlement.outcome, Outcome::Done), "{sentence}: it has no more slots here");
        assert_eq!(reasons(&settlement), [""; 0], "{sentence}");
    }
}

#[test]
fn a_deletion_that_finds_nothing_is_what_was_wanted() {
    let active = json!({
        "spec": { "concurrencyPolicy": "Replace" },
        "status": { "active": [reference("report-a", "a")] },
    });
    let running = job("report-a", "a", json!({}));
    let mut by_delete = observe(&cron_job(active.clone()), &[&running]);
    by_delete.learn_job(running.name.clone(), Ok(Arc::clone(&running)));
    assert!(matches!(reconcile(&by_delete, now()), Plan::Replace { victims, .. } if victims[0].uid == running.uid));
    by_delete.learn_deletion(running.uid.clone(), Err(refusal(404, "NotFound")));

    let mut by_get = observe(&cron_job(active), &[&running]);
    by_get.learn_job(running.name.clone(), Err(refusal(404, "NotFound")));

    for mut observation in [by_delete, by_get] {
        observation.create = Some(created());
        let settlement = settle(&observation);
        assert_eq!(reasons(&settlement), ["SuccessfulCreate"]);
        assert_eq!(written(&settlement).active.len(), 1);
    }
}

#[test]
fn replace_never_deletes_another_job_of_the_same_name() {
    let cron_job = cron_job(json!({
        "spec": { "concurrencyPolicy": "Replace" },
        "status": { "active": [reference("report-a", "a")] },
    }));
    let name_conflict = job("report-a", "another", json!({}));
    let mut observation = observe(&cron_job, &[&job("report-a", "a", json!({}))]);
    observation.learn_job(name_conflict.name.clone(), Ok(name_conflict));
    assert!(matches!(reconcile(&observation, now()), Plan::Create { .. }));
}

#[test]
fn a_schedule_that_never_fires_gives_one_event_and_no_timer() {
    let never = cron_job(json!({ "spec": { "schedule": "59 23 31 2 *" } }));
    let settlement = settle(&observe(&never, &[]));
    assert_eq!(reasons(&settlement), ["InvalidSchedule"]);
    assert!(matches!(settlement.outcome, Outcome::Done));
}

#[test]
fn the_newest_slot_of_an_uneven_schedule_is_not_lost_after_downtime() {
    let uneven = cron_job(json!({
        "spec": { "schedule": "15,45 9-17 * * *" },
        "status": { "lastScheduleTime": "2026-03-01T17:45:00Z" },
    }));
    let Plan::Create { slot, .. } = reconcile(&observe(&uneven, &[]), now()) else { panic!("no create") };
    assert_eq!(slot, time("2026-03-02T09:45:00Z"));
}

#[test]
fn a_suspect_view_is_confirmed_before_a_job_is_created() {
    let mut observation = observe(&cron_job(json!({})), &[]);
    observation.view_is_suspect = true;
    assert!(matches!(reconcile(&observation, now()), Plan::Lookup(asked) if asked == [Lookup::CronJob]));

    let mut fired = observation.clone();
    fired.live.cron_job = Some(Ok(cron_job(json!({ "status": { "lastScheduleTime": SLOT } }))));
    assert!(settle(&fired).status.is_none(), "another actor has fired the slot");

    let mut suspended = observation.clone();
    suspended.live.cron_job = Some(Ok(cron_job(json!({ "spec": { "suspend": true } }))));
    assert!(matches!(settle(&suspended).outcome, Outcome::Done));

    let mut recreated = observation.clone();
    recreated.live.cron_job = Some(Ok(cron_job(json!({ "metadata": { "uid": "other-uid" } }))));
    assert!(matches!(settle(&recreated).outcome, Outcome::Failed(Failure::Recreated(_))));

    observation.live.cron_job = Some(Ok(Arc::clone(&observation.cron_job)));
    assert!(matches!(reconcile(&observation, now()), Plan::Create { .. }));
}

#[test]
fn outcomes_of_a_due_slot() {
    let forbid = json!({
        "spec": { "concurrencyPolicy": "Forbid" }, "status": { "active": [reference("report-a", "a")] },
    });
    let running = job("report-a", "a", json!({}));
    let table = [
        ("suspended", json!({ "spec": { "suspend": true } }), vec![], None),
        ("being deleted", json!({ "metadata": { "deletionTimestamp": SLOT } }), vec![], None),
        ("unknown zone", json!({ "spec": { "timeZone": "Nowhere/Land" } }), vec!["UnknownTimeZone"], None),
        ("unparseable", json!({ "spec": { "schedule": "bad" } }), vec!["UnparseableSchedule"], None),
        (
            "too late",
            json!({ "spec": { "startingDeadlineSeconds": 2, "schedule": "1 * * * *" } }),
            vec![],
            Some("2026-03-02T10:01:00Z"),
        ),
        ("forbidden by a running Job", forbid, vec!["JobAlreadyActive"], Some("2026-03-02T11:00:00Z")),
        ("already processed", json!({ "status": { "lastScheduleTime": SLOT } }), vec![], Some("2026-03-02T11:00:00Z")),
    ];
    for (sentence, patch, expected, requeue) in table {
        let cron_job = cron_job(patch);
        let jobs: Vec<_> = cron_job.status.active.iter().map(|_| &running).collect();
        let settlement = settle(&observe(&cron_job, &jobs));
        assert_eq!(reasons(&settlement), expected, "{sentence}");
        assert_eq!(requeued_at(&settlement), requeue.map(time), "{sentence}");
        assert!(settlement.status.is_none(), "{sentence}");
    }
}

/// The syncs of one CronJob with `--manage=all`, each of which knows what the ones before it told.
#[test]
fn warning_about_a_handover_comes_once_an_hour_and_anew_after_a_take_back() {
    let handed_over = cron_job(json!({
        "metadata": { "annotations": { "cronjob-controller.dev/managed": "true" } }, "spec": { "suspend": true },
    }));
    let taken_back = cron_job(json!({ "spec": { "suspend": true } }));
    let rows = [
        ("at first", &handed_over, "10:00", true),
        ("again", &handed_over, "10:20", false),
        ("an hour later", &handed_over, "11:01", true),
        ("taken back", &taken_back, "11:02", false),
        ("handed over anew", &handed_over, "11:03", true),
    ];
    let mut told = Vec::new();
    for (sentence, cron_job, minute, is_told) in rows {
        let mut observation = observe(cron_job, &[]);
        observation.recalled.memo.recent_events = told;
        let Plan::Settle(settlement) = reconcile(&observation, time(&format!("2026-03-02T{minute}:00Z"))) else {
            panic!("{sentence}: it does not settle")
        };
        assert_eq!(reasons(&settlement).contains(&"HandedOver"), is_told, "{sentence}");
        told = settlement.memo.recent_events;
    }
    let tutorial = Arc::new(CronJob { controller_kind: ControllerKind::Tutorial, ..CronJob::clone(&handed_over) });
    for (sentence, cron_job, ownership) in [
        ("beside the in-tree controller", &handed_over, Ownership::Shared),
        ("a kind that is never handed over", &tutorial, Ownership::Exclusive),
    ] {
        let mut observation = observe(cron_job, &[]);
        observation.ownership = ownership;
        assert!(!reasons(&settle(&observation)).contains(&"HandedOver"), "{sentence}");
    }
}

#[test]
fn a_deadline_of_any_size_is_judged() {
    for (deadline, missed) in [(4, true), (5, false), (i64::MAX, false), (-1, true), (i64::MIN, false)] {
        assert_eq!(super::is_too_late(time(SLOT), Some(deadline), now()), missed, "{deadline}");
    }
}

#[test]
fn the_history_keeps_the_newest_by_start_time_then_name() {
    let started = |name: &str, at: Option<&str>| {
        let mut patch = finished("Complete");
        merge(&mut patch, json!({ "status": { "startTime": at } }));
        job(name, name, patch)
    };
    let jobs = [
        started("never-started", None),
        started("b", Some("2026-03-02T09:00:00Z")),
        started("a", Some("2026-03-02T09:00:00Z")),
        started("c", Some("2026-03-02T08:00:00Z")),
    ];
    let pruned = |limit| -> Vec<_> {
        oldest_beyond_limit(&jobs, true, limit).iter().map(|job| job.name.name.to_string()).collect()
    };
    assert_eq!(pruned(0), ["c", "a", "b", "never-started"]);
    assert_eq!(pruned(2), ["c", "a"]);
    assert!(pruned(4).is_empty());
    assert!(oldest_beyond_limit(&jobs, false, 0).is_empty());
}

/// The next step, as text.
fn next_step(observation: &Case, at: &str) -> String {
    match reconcile(observation, time(at)) {
        Plan::Create { name, .. } => format!("create {}", name.name),
        Plan::Replace { victims, .. } => {
            victims.iter().fold("delete".to_owned(), |text, victim| format!("{text} {}", victim.name.name))
        }
        Plan::Lookup(lookups) => lookups.iter().fold("read".to_owned(), |text, lookup| match lookup {
            Lookup::CronJob => format!("{text} CronJob"),
            Lookup::Job(name) => format!("{text} {}", name.name),
        }),
        Plan::Prune { jobs, .. } => format!("prune {}", jobs.len()),
        Plan::Settle(settlement) => match requeued_at(&settlement) {
            Some(slot) => format!("wait until {}", slot.format("%H:%M:%S")),
            None => format!("{:?}", settlement.outcome),
        },
    }
}

/// The create for 10:00 was sent and has no answer, beside a Job of 09:00; it is 11:00:05. The policy was changed meanwhile.
#[test]
fn a_create_is_repeated_under_replace_once_what_runs_was_deleted() {
    let old = job("report-29540700", "old", made_by_controller("2026-03-02T09:00:00Z"));
    let spec = json!({ "concurrencyPolicy": "Replace" });
    let active = json!([reference("report-29540700", "old")]);
    let cron_job =
        cron_job(json!({ "spec": spec, "status": { "active": active, "lastScheduleTime": "2026-03-02T09:00:00Z" } }));
    let mut observation = observe(&cron_job, &[&old]);
    observation.recalled.pending_create = Some(unanswered(SLOT, Some(TimeDelta::seconds(20))));
    assert_eq!(next_step(&observation, "2026-03-02T11:00:05Z"), "read report-29540700");
    observation.learn_job(old.name.clone(), Ok(Arc::clone(&old)));
    assert_eq!(next_step(&observation, "2026-03-02T11:00:05Z"), "delete report-29540700");
}

/// The deadline of 10:00 has passed. A metric and an alert say of a skipped slot that it has no Job.
#[test]
fn a_slot_whose_create_has_no_answer_is_not_skipped_for_its_deadline() {
    let cron_job = cron_job(json!({ "spec": { "startingDeadlineSeconds": 30 } }));
    let rows = [
        ("no create", None, Some("deadline")),
        ("of the slot", Some(SLOT), None),
        ("of another", Some("2026-03-02T09:00:00Z"), Some("deadline")),
    ];
    for (sentence, slot, want) in rows {
        let mut observation = observe(&cron_job, &[]);
        observation.recalled.pending_create = slot.map(|slot| unanswered(slot, Some(TimeDelta::seconds(20))));
        let Plan::Settle(settlement) = reconcile(&observation, time("2026-03-02T10:00:40Z")) else {
            panic!("{sentence}")
        };
        let skip = match settlement.verdict {
            Verdict::Skipped(skip) => Some(skip.as_str()),
            _ => None,
        };
        assert_eq!(skip, want, "{sentence}");
    }
}

/// The create for 10:00 was sent and has no answer; it is 11:00:05. Its Job is report-29540760, the next
/// report-29540820.
#[test]
fn an_earlier_create_without_an_answer_is_settled_before_a_later_slot_starts() {
    let (may_commit, cannot) = (Some(TimeDelta::seconds(20)), None);
    let (earlier, later) = ("create report-29540760", "create report-29540820");
    let deadline = |seconds: u32| json!({ "startingDeadlineSeconds": seconds });
    let schedule = |text: &str| json!({ "schedule": text });
    let rows = [
        ("Forbid repeats the same create", "Forbid", json!({}), may_commit, earlier),
        ("Replace, too", "Replace", json!({}), may_commit, earlier),
        ("Allow has nothing to lose", "Allow", json!({}), may_commit, later),
        ("one after its deadline is waited for", "Forbid", deadline(60), may_commit, "wait until 11:00:25"),
        ("one of another schedule, too", "Replace", schedule("0 11 * * *"), may_commit, "wait until 11:00:25"),
        ("a changed schedule may have the slot", "Replace", schedule("0 10,11 * * *"), may_commit, earlier),
        ("when nothing can come of it, the Job is asked for", "Forbid", json!({}), cannot, "read report-29540760"),
        ("under Replace, too", "Replace", deadline(60), cannot, "read report-29540760"),
    ];
    for (sentence, policy, spec, wait, want) in rows {
        let spec = merged(json!({ "concurrencyPolicy": policy }), spec);
        let mut observation = observe(&cron_job(json!({ "spec": spec })), &[]);
        observation.recalled.pending_create = Some(unanswered(SLOT, wait));
        assert_eq!(next_step(&observation, "2026-03-02T11:00:05Z"), want, "{sentence}");
    }
}

/// The create for 11:00 was sent and has no answer; the slot that is due is that of 10:00, after an edit of the schedule, or by a
/// clock that was set back.
#[test]
fn a_create_of_a_later_slot_without_an_answer_is_settled_before_an_older_slot_starts() {
    let (may_commit, cannot, later) = (Some(TimeDelta::seconds(20)), None, "2026-03-02T11:00:00Z");
    let rows = [
        ("the clock was set back", "Forbid", "0 * * * *", "2026-03-02T10:00:05Z", may_commit, "wait until 10:00:25"),
        ("under Replace, too", "Replace", "0 * * * *", "2026-03-02T10:00:05Z", may_commit, "wait until 10:00:25"),
        ("the schedule was changed", "Forbid", "0 10 * * *", "2026-03-02T11:00:05Z", may_commit, "wait until 11:00:25"),
        ("it is asked for", "Forbid", "0 10 * * *", "2026-03-02T11:00:05Z", cannot, "read report-29540820"),
        (
            "Allow has nothing to lose",
            "Allow",
            "0 10 * * *",
            "2026-03-02T11:00:05Z",
            may_commit,
            "create report-29540760",
        ),
    ];
    for (sentence, policy, schedule, now, wait, want) in rows {
        let spec = json!({ "concurrencyPolicy": policy, "schedule": schedule });
        let mut observation = observe(&cron_job(json!({ "spec": spec })), &[]);
        observation.recalled.pending_create = Some(unanswered(later, wait));
        assert_eq!(next_step(&observation, now), want, "{sentence}");
        if wait.is_none() {
            let name = ObjectName::new("ns", "report-29540820");
            observation.learn_job(name, Ok(job("report-29540820", "new-uid", made_by_controller(later))));
            assert_eq!(next_step(&observation, now), "wait until 10:00:00", "{sentence}: it took a later slot");
        }
    }
}

#[test]
fn an_earlier_create_is_settled_by_its_answer_or_its_job() {
    let at = "2026-03-02T11:00:05Z";
    let observed = |policy: &str, wait| {
        let mut observation = observe(&cron_job(json!({ "spec": { "concurrencyPolicy": policy } })), &[]);
        observation.recalled.pending_create = Some(unanswered(SLOT, wait));
        observation
    };
    let mut repeated = observed("Forbid", Some(TimeDelta::seconds(20)));
    repeated.create = Some(created());
    assert_eq!(next_step(&repeated, at), "wait until 11:00:00", "the slot that is due is judged next");

    let job_there = || job(NAME, "new-uid", made_by_controller(SLOT));
    let name = ObjectName::new("ns", NAME);
    let mut forbidden = observed("Forbid", None);
    forbidden.learn_job(name.clone(), Ok(job_there()));
    assert_eq!(next_step(&forbidden, at), "wait until 12:00:00", "its Job runs, and Forbid forbids another");
    let mut gone = observed("Forbid", None);
    gone.learn_job(name.clone(), Err(refusal(404, "NotFound")));
    assert_eq!(next_step(&gone, at), "create report-29540820", "it was never created");
    let mut unknown = observed("Forbid", None);
    unknown.learn_job(name, Err(refusal(503, "ServiceUnavailable")));
    assert!(next_step(&unknown, at).starts_with("Failed"), "nothing starts before that is known");

    let seen = job_there();
    let cron_job = cron_job(json!({ "spec": { "concurrencyPolicy": "Forbid" } }));
    let mut shown = observe(&cron_job, &[&seen]);
    shown.recalled.pending_create = Some(unanswered(SLOT, Some(TimeDelta::seconds(20))));
    assert_eq!(next_step(&shown, at), "wait until 12:00:00", "the watch has shown it");
}

/// The last leader's lease expired ten seconds ago; it is 11:00:05.
#[test]
fn after_a_lease_that_ran_out_only_what_a_name_fences_starts_at_once() {
    let due_once = json!({ "lastScheduleTime": SLOT });
    let due_twice = json!({ "lastScheduleTime": "2026-03-02T09:00:00Z" });
    let running = json!({ "lastScheduleTime": SLOT, "active": [reference("report-a", "a")] });
    let create = "create report-29540820";
    let rows = [
        ("Allow", &due_twice, create),
        ("Forbid", &due_once, create),
        ("Forbid", &due_twice, "wait until 11:00:34"),
        ("Replace", &due_once, create),
        ("Replace", &due_twice, "wait until 11:00:34"),
        ("Replace", &running, "wait until 11:00:34"),
    ];
    let old = job("report-a", "a", json!({}));
    for (policy, status, want) in rows {
        let cron_job = cron_job(json!({ "spec": { "concurrencyPolicy": policy }, "status": status }));
        let jobs: Vec<_> = cron_job.status.active.iter().map(|_| &old).collect();
        let mut observation = observe(&cron_job, &jobs);
        observation.open_creates_wait = Some(TimeDelta::seconds(29));
        assert_eq!(next_step(&observation, "2026-03-02T11:00:05Z"), want, "{policy} {status}");
    }
}

/// The create for 10:00 was sent once or twice, and its Job is shown before the status has the slot; it is 11:00:05. Without its
/// Job, the other create could still start the slot.
#[test]
fn a_job_is_not_deleted_while_another_create_of_it_may_be_committed() {
    let twenty = Some(TimeDelta::seconds(20));
    // A Job is read before it is deleted.
    let (deletes, waits) = ("read report-29540760", "wait until 11:00:25");
    let (none, later) = (json!({}), json!({ "lastScheduleTime": "2026-03-02T10:30:00Z" }));
    let rows = [
        ("sent once", false, twenty, &none, deletes, 1),
        ("sent twice", true, twenty, &none, waits, 0),
        ("sent twice, long ago", true, None, &none, deletes, 1),
        ("sent once, and a later slot is recorded", false, twenty, &later, waits, 1),
    ];
    for (sentence, is_repeated, wait, status, want, pruned) in rows {
        let pending = PendingCreate { is_repeated, ..unanswered(SLOT, wait) };
        let replace = cron_job(json!({ "spec": { "concurrencyPolicy": "Replace" }, "status": status }));
        let mut observation = observe(&replace, &[&job(NAME, "new-uid", made_by_controller(SLOT))]);
        observation.recalled.pending_create = Some(pending);
        assert_eq!(next_step(&observation, "2026-03-02T11:00:05Z"), want, "{sentence}");

        let kept = cron_job(json!({ "spec": { "successfulJobsHistoryLimit": 0 } }));
        let mut observation = observe(&kept, &[&job(NAME, "new-uid", finished("Complete"))]);
        (observation.create, observation.recalled.pending_create) = (Some(created()), Some(pending));
        assert_eq!(settle(&observation).pruning.jobs.len(), pruned, "{sentence}: its history");
    }
}

/// What an earlier sync noted lasts until it is of no use, whatever this one decides.
#[test]
fn a_sync_keeps_what_an_earlier_one_noted() {
    let status = json!({ "lastScheduleTime": SLOT });
    for (sentence, status) in [("a slot is due", json!({})), ("nothing is due", status)] {
        let mut observation = observe(&cron_job(json!({ "status": status })), &[]);
        observation.create = Some(created());
        let earlier = Memo {
            recent_events: vec![RecentEvent {
                reason: PASSED_OVER,
                until: None,
                at: time(SLOT) - TimeDelta::minutes(50),
            }],
            name_taken: Some(time("2026-03-02T09:00:00Z")),
            blocked: None,
        };
        observation.recalled.memo = earlier.clone();
        assert_eq!(settle(&observation).memo, earlier, "{sentence}");
    }
}

#[test]
fn after_a_lease_that_ran_out_no_history_is_pruned() {
    let cron_job = cron_job(json!({ "spec": { "successfulJobsHistoryLimit": 0 } }));
    let mut observation = observe(&cron_job, &[&job("report-29540700", "old", finished("Complete"))]);
    observation.create = Some(created());
    assert_eq!(settle(&observation).pruning.jobs.len(), 1);
    observation.open_creates_wait = Some(TimeDelta::seconds(29));
    assert!(settle(&observation).pruning.jobs.is_empty());
}

#[test]
fn a_job_that_finished_and_was_deleted_before_a_sync_has_finished_all_the_same() {
    for (end, success) in [("Complete", Some("2026-03-02T09:10:00Z")), ("Failed", None)] {
        let gone = job("report-a", "a", finished(end));
        let status = json!({ "active": [reference("report-a", "a")], "lastScheduleTime": SLOT });
        let mut observation = observe(&cron_job(json!({ "status": status })), &[]);
        observation.recalled.vanished = vec![gone];
        let settlement = settle(&observation);
        assert_eq!(reasons(&settlement), ["SawCompletedJob"], "{end}");
        assert!(written(&settlement).active.is_empty(), "{end}");
        assert_eq!(written(&settlement).last_successful_time, success.map(time), "{end}");
    }
}

#[test]
fn a_busy_server_gives_a_warning_only_once_it_has_lasted() {
    let webhook = "Internal error occurred: failed calling webhook \"x\": context deadline exceeded";
    let message = |text: &str, error: ApiError| ApiError { message: text.to_owned(), ..error };
    let late = ApiError { delivery: Delivery::GaveUp, ..refusal(0, "") };
    let rows = [
        ("429", refusal(429, "TooManyRequests"), false),
        ("a Retry-After", ApiError { retry_after: Some(std::time::Duration::ZERO), ..refusal(503, "") }, false),
        ("no answer in time", late, false),
        ("the server's own time is over", refusal(504, "Timeout"), false),
        ("a webhook's time is over", message(webhook, refusal(500, "InternalError")), false),
        ("a quota", refusal(403, "Forbidden"), true),
        ("what will never be right", refusal(422, "Invalid"), true),
        ("an error of the server", refusal(500, "InternalError"), true),
    ];
    for (sentence, error, is_told_at_once) in rows {
        let mut observation = observe(&cron_job(json!({})), &[]);
        observation.create = Some(CreateReply::Refused(error));
        assert_eq!(reasons(&settle(&observation)), ["FailedCreate"], "{sentence}, for long");
        observation.hides_transient = true;
        assert_eq!(reasons(&settle(&observation)).len(), usize::from(is_told_at_once), "{sentence}, at first");
    }
}

/// Whoever may run Jobs decides how many there are.
#[test]
fn the_steps_of_a_sync_grow_with_the_running_jobs_and_not_with_their_square() {
    let slot = |at: usize| time("2026-01-01T00:00:00Z") + TimeDelta::hours(i64::try_from(at).unwrap());
    for (policy, annotation) in [
        ("Allow", json!({})),
        ("Forbid", json!({ "cronjob-controller.dev/stuck-after": "1h, delete" })),
        ("Allow", json!({ "cronjob-controller.dev/max-concurrent": "100" })),
        ("Replace", json!({})),
        ("Replace", json!({ "cronjob-controller.dev/replace-waits": "true" })),
    ] {
        let steps = [400, 4_000].map(|number| {
            let name = |at: usize| format!("report-{}", slot(at).timestamp() / 60);
            let jobs: Vec<_> = (0..number)
                .map(|at| {
                    let finished = if at % 4 == 0 { finished("Failed") } else { json!({}) };
                    let made = made_by_controller(&slot(at).to_rfc3339());
                    job(&name(at), &format!("uid-{at}"), merged(made, finished))
                })
                .collect();
            // Every other Job is listed, and as many that are gone. A sync finds the others to be its own.
            let listed = (0..2 * number).step_by(2).map(|at| reference(&name(at), &format!("uid-{at}")));
            let status =
                json!({ "active": listed.collect::<Vec<_>>(), "lastScheduleTime": slot(number - 1).to_rfc3339() });
            let cron_job = cron_job(json!({
                "metadata": { "annotations": annotation }, "spec": { "concurrencyPolicy": policy }, "status": status,
            }));
            let mut observation = observe(&cron_job, &jobs.iter().collect::<Vec<_>>());
            let there: HashMap<_, _> = jobs.iter().map(|job| (&job.name, job)).collect();
            let (steps, rounds) = apimachinery::steps::of(|| {
                for round in 1.. {
                    match reconcile(&observation, now()) {
                        Plan::Lookup(lookups) => lookups.into_iter().for_each(|lookup| match lookup {
                            Lookup::Job(name) => {
                                let found = there.get(&name).map(|job| Arc::clone(job));
                                observation.learn_job(name, found.ok_or_else(|| refusal(404, "NotFound")));
                            }
                            Lookup::CronJob => observation.live.cron_job = Some(Ok(Arc::clone(&cron_job))),
                        }),
                        Plan::Replace { victims, .. } => {
                            assert_eq!(victims.len(), number / 4 * 3, "a quarter has failed");
                            for victim in victims {
                                observation.learn_deletion(victim.uid, Ok(()));
                            }
                        }
                        _ => return round,
                    }
                }
                0
            });
            assert!(rounds <= 5, "{policy} {annotation}: {rounds} decisions");
            assert!(steps > 0 || !cfg!(debug_assertions));
            steps
        });
        assert!(steps[1] <= 15 * steps[0], "{policy} {annotation}: {steps:?}");
    }
}
