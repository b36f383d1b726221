//! Backfills on the embedded API server, most of them beside a running controller, with paused time.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::Mutex;
use schedule::Zone;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::client;
use crate::controller::tests::objects::{controlled_by, time};
use crate::controller::tests::support::{CRON_JOBS, Ending, Ends, JOBS, World, final_status, job};
use crate::controller::tests::wire::{Fate, Orders, Verb, Wire};

mod limits;
mod plans;

/// Jobs take half a minute.
#[allow(clippy::unnecessary_wraps, reason = "an ending of a world")]
fn usual(_: &Job) -> Option<(Duration, Ending)> {
    Some((Duration::from_secs(30), Ending::Complete))
}

struct Cluster {
    world: World,
    wire: Wire,
    client: Client,
    stop: Option<CancellationToken>,
    /// What the commands wrote to stderr.
    notes: Mutex<Vec<String>>,
}

/// The end of a command, with what it printed.
type Ended = (Result<Answer, String>, Vec<String>);

impl Cluster {
    /// A cluster at 10:11 in which the CronJob `c` ran at 10:00 and 10:10, under Forbid and with a history of one Job.
    async fn new(spec: Value, ends: Ends) -> Self {
        Self::of(ControllerKind::CronJob, spec, ends).await
    }

    async fn of(controller_kind: ControllerKind, spec: Value, ends: Ends) -> Self {
        Self::annotated(controller_kind, &json!({}), spec, ends).await
    }

    async fn annotated(controller_kind: ControllerKind, annotations: &Value, spec: Value, ends: Ends) -> Self {
        let world = World::of(controller_kind, "2026-03-02T09:59:30Z", ends).await;
        let limits = match controller_kind {
            ControllerKind::CronJob => json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}),
            _ => json!({}),
        };
        let mut object = json!({"schedule": "*/10 * * * *", "concurrencyPolicy": "Forbid"});
        for (key, value) in [limits, spec].iter().flat_map(|spec| spec.as_object().unwrap()) {
            object[key] = value.clone();
        }
        world.create_cron_job("c", object).await;
        let path = format!("{}/c", controller_kind.parent.path(Some("default")));
        world.write("PATCH", &path, &json!({"metadata": {"annotations": annotations}})).await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:11:00Z").await;
        let wire = Wire::new();
        let client = client::on_service(wire.around(world.server.into_service()));
        Self { world, wire, client, stop: Some(stop), notes: Mutex::default() }
    }

    async fn call(&self, request: &Request) -> Ended {
        self.call_for(ControllerKind::CronJob, request).await
    }

    async fn call_for(&self, controller_kind: ControllerKind, request: &Request) -> Ended {
        let mut printed = Vec::new();
        let mut print = |text: &PlainText| {
            printed.push(text.to_string());
            true
        };
        let mut note = |text: &PlainText| self.notes.lock().push(text.to_string());
        let (place, clock) = (("default", "c"), &*self.world.clock);
        let ended = backfill_with(&self.client, controller_kind, place, request, clock, &mut print, &mut note).await;
        (ended.map_err(|error| error.to_string()), printed)
    }

    /// Creates a Job of the CronJob as `kubectl create job --from` does.
    async fn make_by_hand(&self) {
        let object = self.world.get("c").await;
        let owner = controlled_by("c", object["metadata"]["uid"].as_str().unwrap());
        self.world.write("POST", JOBS, &job("by-hand", &json!([owner]))).await;
    }

    /// The names of all Jobs ever created for slots before 10:00.
    fn backfilled(&self) -> Vec<String> {
        let is_old = |job: &&Arc<Job>| job.scheduled_timestamp.is_some_and(|slot| slot < time("2026-03-02T10:00:00Z"));
        self.world.seen().iter().filter(is_old).map(|job| job.name.name.to_string()).collect()
    }

    /// Whether a backfill is under way.
    async fn is_under_way(&self) -> bool {
        let object = self.world.get("c").await;
        let record = object["metadata"]["annotations"][BACKFILL].as_str();
        record.is_some_and(|text| Record::is_under_way(text, &Uid::new(object["metadata"]["uid"].as_str().unwrap())))
    }

    async fn active(&self) -> Vec<String> {
        let object = self.world.get("c").await;
        let active = object["status"]["active"].as_array().cloned().unwrap_or_default();
        active.iter().map(|reference| reference["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.cancel();
        }
    }
}

/// All slots from 08:00 to 09:50, twelve of them.
fn request() -> Request {
    let question = Question {
        from: Given::Instant(time("2026-03-02T08:00:00Z")),
        to: Given::Instant(time("2026-03-02T09:50:00Z")),
        zone: Zone::UTC,
        seed: "".into(),
        max_active: 2,
        again: false,
        rerun: false,
    };
    Request { question, dry_run: false, format: Format::Json }
}

/// The names of the Jobs of these slots.
fn names() -> Vec<String> {
    let first = time("2026-03-02T08:00:00Z");
    (0..12).map(|at| ControllerKind::CronJob.child_name("c", first + TimeDelta::minutes(10 * at))).collect()
}

#[tokio::test(start_paused = true)]
async fn past_slots_start_once_each_in_order_beside_the_controller() {
    let cluster = Cluster::new(json!({}), usual).await;
    let (answer, printed) = cluster.call(&request()).await;
    assert!(answer.unwrap().is_good);
    assert_eq!(cluster.backfilled(), names());
    let lines: Vec<Value> = printed.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["type"].as_str(), lines[0]["starts"].as_u64()), (Some("plan"), Some(12)));
    assert_eq!(lines[1]["type"], "started");
    assert_eq!(lines.iter().filter(|line| line["type"] == "ended" && line["outcome"] == "succeeded").count(), 12);
    assert!(!cluster.is_under_way().await);
    // Each waits for a watch. The controller's status writes may cost a read more.
    assert_eq!(cluster.wire.count(Verb::List, "jobs"), 1);
    assert!(cluster.wire.count(Verb::Get, "jobs") < 12);
    cluster.world.pass(Duration::from_secs(5)).await;
    assert_eq!(cluster.world.children().await.len(), 1, "then the history is pruned");
    let (answer, printed) = cluster.call(&request()).await;
    assert!(answer.unwrap().is_good && printed[0].contains(r#""starts":0"#), "{printed:?}");
    let job = &cluster.world.seen()[2];
    assert!(job.of_backfill && job.scheduled_timestamp.is_some());
}

#[tokio::test(start_paused = true)]
async fn killed_backfill_continues_and_starts_nothing_twice() {
    for (fate, limit) in [(Fate::Unreachable, 100), (Fate::AnswerLost, 100), (Fate::AnswerLost, 1)] {
        for (verb, resource) in [(Verb::Create, "jobs"), (Verb::Patch, "cronjobs")] {
            let cluster = Cluster::limited(limit, json!({}), usual).await;
            let mut calls = 0;
            loop {
                // The second write of each process is its last.
                let mut writes = 0;
                let is_last = calls > 20;
                cluster.wire.judge(move |ask| {
                    writes += usize::from(ask.is(verb, resource));
                    if writes == 3 && ask.is(verb, resource) && !is_last { fate } else { Fate::Pass }
                });
                calls += 1;
                let (answer, _) = cluster.call(&request()).await;
                assert!(cluster.active().await.iter().all(|name| !names().contains(name)));
                // Jobs end, and the controller looks at its history.
                cluster.world.pass(Duration::from_secs(100)).await;
                if let Ok(answer) = answer {
                    assert!(answer.is_good, "{fate:?} {resource}: {answer:?}");
                    break;
                }
            }
            assert!(calls > 4, "{fate:?} {resource}: {calls}");
            assert_eq!(cluster.backfilled(), names(), "{fate:?} {resource}");
            assert!(!cluster.is_under_way().await);
            // The controller started its own on time meanwhile.
            let all: BTreeSet<String> = cluster.world.seen_names().into_iter().collect();
            let now = cluster.world.clock.now();
            let own =
                (0..).map(|at| time("2026-03-02T10:00:00Z") + TimeDelta::minutes(10 * at)).take_while(|at| *at < now);
            let own: Vec<String> = own.map(|slot| ControllerKind::CronJob.child_name("c", slot)).collect();
            assert!(own.iter().all(|name| all.contains(name)) && all.len() == own.len() + 12, "{all:?}");
        }
    }
}

/// The process ends between the record and the create, with a request under way that the server never sees, or sees later.
#[tokio::test(start_paused = true)]
async fn create_of_a_dead_process_that_arrives_late_starts_nothing_twice() {
    let cluster = Cluster::new(json!({}), usual).await;
    let mut creates = 0;
    cluster.wire.judge(move |ask| {
        creates += usize::from(ask.is(Verb::Create, "jobs"));
        if creates == 12 { Fate::Swallowed } else { Fate::Pass }
    });
    let asked = request();
    let killed = tokio::time::timeout(Duration::from_secs(170), cluster.call(&asked)).await;
    assert!(killed.is_err());
    assert_eq!(cluster.backfilled().len(), 11);
    cluster.wire.calm();
    let began = cluster.world.clock.now();
    assert!(cluster.call(&asked).await.0.unwrap().is_good);
    assert!(cluster.world.clock.now() - began >= TimeDelta::seconds(39), "until then the name protects the slot");
    assert_eq!(cluster.backfilled(), names());
}

#[tokio::test(start_paused = true)]
async fn job_of_a_backfill_is_not_active_and_holds_up_no_slot() {
    for controller_kind in [ControllerKind::CronJob, ControllerKind::Tutorial] {
        let long = |job: &Job| {
            let time = if job.of_backfill { 3000 } else { 30 };
            Some((Duration::from_secs(time), Ending::Complete))
        };
        let cluster = Cluster::of(controller_kind, json!({}), long).await;
        let asked = request();
        let killed = tokio::time::timeout(Duration::from_secs(1200), cluster.call_for(controller_kind, &asked)).await;
        assert!(killed.is_err());
        assert_eq!(cluster.backfilled().len(), 2, "at most two at a time");
        assert_eq!(cluster.active().await, [""; 0]);
        let status = cluster.world.get("c").await["status"].clone();
        assert_eq!(status["lastScheduleTime"], "2026-03-02T10:30:00Z", "{controller_kind}: under Forbid");
        assert!(!cluster.world.reasons().await.iter().any(|reason| reason == "UnexpectedJob"));
    }
}

#[tokio::test(start_paused = true)]
async fn second_process_takes_over_and_the_first_stops() {
    let cluster = Cluster::new(json!({}), usual).await;
    let asked = request();
    let second = async {
        cluster.world.pass(Duration::from_secs(70)).await;
        cluster.call(&asked).await
    };
    let (first, second) = tokio::join!(cluster.call(&asked), second);
    let error = first.0.unwrap_err();
    assert!(error.contains("another process continues it"), "{error}");
    assert!(second.0.unwrap().is_good);
    assert_eq!(cluster.backfilled(), names());
}

#[tokio::test(start_paused = true)]
async fn failed_slots_start_again_on_request() {
    let failing = |job: &Job| {
        let is_first = job.creation_timestamp < time("2026-03-02T11:00:00Z");
        Some((Duration::from_secs(30), if is_first { Ending::Failed } else { Ending::Complete }))
    };
    let cluster = Cluster::new(json!({"failedJobsHistoryLimit": 20}), failing).await;
    let (answer, printed) = cluster.call(&request()).await;
    assert!(!answer.unwrap().is_good);
    assert!(printed.iter().any(|line| line.contains(r#""outcome":"failed""#)));
    cluster.world.pass_until("2026-03-02T11:00:30Z").await;
    let (answer, _) = cluster.call(&request()).await;
    assert!(answer.unwrap().is_good, "nothing is left to start");
    assert_eq!(cluster.backfilled().len(), 12);
    let mut again = request();
    again.question.again = true;
    assert!(cluster.call(&again).await.0.unwrap().is_good);
    let seen = cluster.backfilled();
    assert_eq!(seen[12..], names());
    assert_eq!(seen.len(), 24);
}

#[tokio::test(start_paused = true)]
async fn slot_whose_job_may_have_been_deleted_starts_on_request_only() {
    let cluster = Cluster::new(json!({}), usual).await;
    let mut creates = 0;
    cluster.wire.judge(move |ask| {
        creates += usize::from(ask.is(Verb::Create, "jobs"));
        if creates == 3 { Fate::AnswerLost } else { Fate::Pass }
    });
    assert!(cluster.call(&request()).await.0.is_err());
    cluster.wire.calm();
    // Another program deletes two of the Jobs, among them the last, which has run.
    cluster.world.pass(Duration::from_secs(60)).await;
    for name in &names()[1..3] {
        cluster.world.write("DELETE", &format!("{JOBS}/{name}"), &Value::Null).await;
    }
    let (answer, printed) = cluster.call(&request()).await;
    assert!(!answer.unwrap().is_good);
    let skipped = printed.iter().find(|line| line.contains("skipped")).unwrap();
    assert!(skipped.contains("2026-03-02T08:20:00Z") && skipped.contains("--rerun"), "{skipped}");
    assert_eq!(cluster.backfilled(), names());
}

/// Its first Job ran, the process died, and the Job is gone. Of a CronJob that is handed over, the in-tree controller prunes it.
#[tokio::test(start_paused = true)]
async fn first_slot_of_a_backfill_starts_again_only_where_this_controller_keeps_its_job() {
    let handed_over = (json!({ "cronjob-controller.dev/managed": "true" }), json!({ "suspend": true }));
    let rows = [("handed over", handed_over, 0), ("its own", (json!({}), json!({})), 1)];
    for (sentence, (annotations, spec), started) in rows {
        let cluster = Cluster::annotated(ControllerKind::CronJob, &annotations, spec, usual).await;
        let mut creates = 0;
        cluster.wire.judge(move |ask| {
            creates += usize::from(ask.is(Verb::Create, "jobs"));
            if creates == 1 { Fate::AnswerLost } else { Fate::Pass }
        });
        let mut asked = request();
        asked.question.to = Given::Instant(time("2026-03-02T08:00:00Z"));
        assert!(cluster.call(&asked).await.0.is_err(), "{sentence}");
        cluster.wire.calm();
        cluster.world.pass(Duration::from_secs(60)).await;
        let name = &names()[0];
        assert_eq!(cluster.backfilled(), std::slice::from_ref(name), "{sentence}");
        cluster.world.write("DELETE", &format!("{JOBS}/{name}"), &Value::Null).await;
        let (answer, _) = cluster.call(&asked).await;
        assert_eq!(answer.unwrap().is_good, started == 1, "{sentence}");
        assert_eq!(
            cluster.world.list(JOBS).await.iter().filter(|job| job["metadata"]["name"] == **name).count(),
            started,
            "{sentence}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn suspension_stops_it_and_the_same_command_continues() {
    let cluster = Cluster::new(json!({}), usual).await;
    let suspend = async |suspend: bool| {
        cluster.world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({"spec": {"suspend": suspend}})).await
    };
    let asked = request();
    let later = async {
        cluster.world.pass(Duration::from_secs(70)).await;
        suspend(true).await
    };
    let ((answer, _), _) = tokio::join!(cluster.call(&asked), later);
    let error = answer.unwrap_err();
    assert!(error.contains("it is suspended (spec.suspend); cronjob-controller resume -n default c resumes it. The same command continues it"), "{error}");
    let begun = cluster.backfilled().len();
    assert!(begun < 12);
    let error = cluster.call(&asked).await.0.unwrap_err();
    assert_eq!(
        error,
        "backfill CronJob default/c: it is suspended (spec.suspend); cronjob-controller resume -n default c resumes it"
    );
    suspend(false).await;
    let mut other = request();
    other.question.to = Given::Instant(time("2026-03-02T09:00:00Z"));
    let error = cluster.call(&other).await.0.unwrap_err();
    let continues = "--from 2026-03-02T08:00:00Z --to 2026-03-02T09:50:00Z --max-active 2 continues it";
    assert!(error.contains(continues), "{error}");
    assert!(cluster.call(&asked).await.0.unwrap().is_good);
    assert_eq!(cluster.backfilled(), names());
}

/// The watch is held back from before the create on, and its history is gone when it goes on.
#[tokio::test(start_paused = true)]
async fn end_of_a_job_that_no_watch_has_shown_is_found_when_all_are_listed_again() {
    for (sentence, ends, goes, want) in [
        ("it has ended", true, false, "succeeded"),
        ("it was deleted", false, true, "gone"),
        ("it has ended and was deleted", true, true, "gone"),
    ] {
        let cluster = Cluster::new(json!({}), |_| None).await;
        let mut asked = request();
        asked.question.to = asked.question.from;
        cluster.wire.judge(|ask| {
            let there = Duration::from_secs(if ask.is(Verb::Create, "jobs") { 5 } else { 0 });
            Orders { there, ..Orders::default() }
        });
        let meanwhile = async {
            let Cluster { world, wire, .. } = &cluster;
            world.pass(Duration::from_secs(2)).await;
            wire.hold_watches(true);
            world.pass(Duration::from_secs(8)).await;
            let path = format!("{JOBS}/{}", names()[0]);
            if ends {
                let now = world.clock.now();
                let status = final_status(Ending::Complete, now, now);
                world.write("PATCH", &format!("{path}/status"), &json!({"status": status})).await;
            }
            if goes {
                world.write("DELETE", &path, &Value::Null).await;
            }
            world.server.compact();
            wire.cut_watches();
            wire.hold_watches(false);
        };
        let call = tokio::time::timeout(Duration::from_secs(120), cluster.call(&asked));
        let (ended, ()) = tokio::join!(call, meanwhile);
        let (answer, printed) = ended.unwrap_or_else(|_| panic!("{sentence}: it waits for ever"));
        assert_eq!(answer.unwrap().is_good, want == "succeeded", "{sentence}");
        let outcome = format!(r#""outcome":"{want}""#);
        assert!(printed.iter().any(|line| line.contains(&outcome)), "{sentence}: {printed:?}");
        assert_eq!(cluster.backfilled(), names()[..1], "{sentence}");
    }
}

/// The Jobs that still exist tell which slots ran. One made by hand takes the place of another in the history.
#[tokio::test(start_paused = true)]
async fn slots_that_ran_do_not_start_again_after_a_job_made_by_hand() {
    let cluster = Cluster::new(json!({"successfulJobsHistoryLimit": 3}), usual).await;
    cluster.world.pass_until("2026-03-02T13:21:00Z").await;
    cluster.make_by_hand().await;
    cluster.world.pass(Duration::from_secs(60)).await;
    assert_eq!(cluster.world.children().await.len(), 3, "two of slots, and the one made by hand");
    let mut asked = request();
    let at = |text| Given::Instant(time(text));
    (asked.question.from, asked.question.to) = (at("2026-03-02T10:00:00Z"), at("2026-03-02T13:20:00Z"));
    let (answer, printed) = cluster.call(&asked).await;
    assert!(answer.unwrap().is_good && printed[0].contains(r#""starts":0"#), "{printed:?}");
    let names = cluster.world.seen_names();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn dry_run_writes_nothing_and_what_is_printed_is_for_people() {
    let cluster = Cluster::new(json!({}), usual).await;
    let asked = Request { dry_run: true, format: Format::Table, ..request() };
    let (answer, printed) = cluster.call(&asked).await;
    assert_eq!(answer.unwrap(), Answer { text: PlainText::default(), is_good: true });
    assert_eq!(
        printed.join(""),
        "Backfill of CronJob default/c from Mon 2026-03-02 08:00:00 +00:00 to Mon 2026-03-02 09:50:00 +00:00: 12 of 12 slots \
         to start.\n\
         SLOT                                                                    KNOWN         START   WHY\n\
         Mon 2026-03-02 08:00:00 +00:00 to Mon 2026-03-02 09:50:00 +00:00 (12)   did not run   yes     the slot is older \
         than the CronJob\n"
    );
    assert_eq!(cluster.backfilled(), [""; 0]);
    assert!(!cluster.is_under_way().await);
    let asked = Request { format: Format::Table, ..request() };
    let (answer, _) = cluster.call(&asked).await;
    assert_eq!(&*answer.unwrap().text, "Backfill of CronJob default/c: 12 Jobs succeeded.\n");
    let tally = Tally { total: 500, succeeded: 240, failed: 10, running: 2, ..Tally::default() };
    assert_eq!(bar(&tally, None), "[###############               ] 250 of 500, 2 running, 10 failed");
    let waits = bar(&tally, Some("waits for the run of 10:12:00"));
    assert_eq!(waits, "[###############               ] 250 of 500, waits for the run of 10:12:00");
}

/// The third create is the last of a process.
#[tokio::test(start_paused = true)]
async fn dry_run_of_an_interrupted_backfill_says_what_is_left() {
    let left = json!(["2026-03-02T08:30:00Z", "left", 9, true]);
    let begun = |known: &str, starts: bool| json!(["2026-03-02T08:20:00Z", known, 1, starts]);
    // (a sentence, what happens to the create, the Jobs that are deleted, --rerun, the row of the slot begun last)
    let rows = [
        ("its Job was created", Fate::AnswerLost, 0..0, false, begun("hasJob", false)),
        ("its Job was not created", Fate::Unreachable, 0..0, false, begun("didNotRun", true)),
        ("its Job is gone with another", Fate::AnswerLost, 1..3, false, begun("mayHaveRun", false)),
        ("its Job is gone with another, and may run again", Fate::AnswerLost, 1..3, true, begun("mayHaveRun", true)),
    ];
    for (sentence, fate, deleted, rerun, first) in rows {
        let cluster = Cluster::new(json!({}), usual).await;
        let mut creates = 0;
        cluster.wire.judge(move |ask| {
            creates += usize::from(ask.is(Verb::Create, "jobs"));
            if creates == 3 { fate } else { Fate::Pass }
        });
        assert!(cluster.call(&request()).await.0.is_err(), "{sentence}");
        cluster.wire.calm();
        cluster.world.pass(Duration::from_secs(60)).await;
        for name in &names()[deleted] {
            cluster.world.write("DELETE", &format!("{JOBS}/{name}"), &Value::Null).await;
        }
        let mut asked = request();
        asked.question.rerun = rerun;
        let before = cluster.world.get("c").await["metadata"]["annotations"].clone();
        let (answer, printed) = cluster.call(&Request { dry_run: true, ..asked.clone() }).await;
        assert!(answer.unwrap().is_good, "{sentence}");
        assert_eq!(cluster.world.get("c").await["metadata"]["annotations"], before, "{sentence}");
        let lines: Vec<Value> = printed.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!([&lines[0]["type"], &lines[1]["type"]], ["continued", "plan"], "{sentence}");
        let row = |slot: &Value| json!([slot["from"], slot["known"], slot["count"], slot["starts"]]);
        let found: Vec<Value> = lines[1]["slots"].as_array().unwrap().iter().map(row).collect();
        let utc = |row: &Value| row.to_string().replace("+00:00", "Z");
        assert_eq!(found.iter().map(utc).collect::<Vec<_>>(), [&first, &left].map(utc), "{sentence}");
        assert_eq!((&lines[0]["begun"], &lines[0]["total"]), (&json!(2), &json!(12)), "{sentence}: 2 + 1 + 9");
        let (_, printed) = cluster.call(&Request { dry_run: true, format: Format::Table, ..asked.clone() }).await;
        assert!(
            printed[1].ends_with("\nWithout --dry-run, this command goes on with these.\n"),
            "{sentence}: {printed:?}"
        );
        let (_, printed) = cluster.call(&asked).await;
        let started = printed.iter().filter(|line| line.contains(r#""type":"started""#)).count();
        assert_eq!(lines[1]["starts"], started, "{sentence}: the next call does that");
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_backfill_says_what_continues_it() {
    let cluster = Cluster::new(json!({}), usual).await;
    let at = |minutes| Since::Ago(TimeDelta::minutes(minutes));
    let Request { mut question, format, .. } = request();
    question.rerun = true;
    for (sentence, from, to) in
        [("the first process", at(131), at(21)), ("the same times are others now", at(131), at(21))]
    {
        let asked = Request { question: question.clone().at(from, to), dry_run: false, format };
        let (place, clock) = (("default", "c"), &*cluster.world.clock);
        let stop = cluster.world.pass(Duration::from_secs(70));
        let (mut print, mut note) = (|_: &PlainText| true, |_: &PlainText| {});
        let kind = ControllerKind::CronJob;
        let ended = interruptible(&cluster.client, kind, place, &asked, clock, &mut print, &mut note, stop).await;
        let error = ended.unwrap_err().to_string();
        let continues = "--from 2026-03-02T08:00:00Z --to 2026-03-02T09:50:00Z --max-active 2 --rerun continues it";
        assert!(error.contains(continues), "{sentence}: {error}");
    }
    let begun = cluster.backfilled().len();
    assert!((2..12).contains(&begun), "{begun}");
    assert!(cluster.call(&request()).await.0.unwrap().is_good);
    assert_eq!(cluster.backfilled(), names());
}

#[tokio::test(start_paused = true)]
async fn controller_other_than_this_one_is_said_before_the_plan() {
    const IN_TREE: &str = "The in-tree controller runs it. Limits such as Forbid are that controller's, which does not know the \
                           Jobs of a backfill, and prunes those that have ended.";
    const STOPPED: &str = "cronjob-controller ran it, and its lease has run out.";
    const UNKNOWN: &str = "It is not known which controller runs it. What follows holds if cronjob-controller does.";
    let lease = |name: &str, renewed: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {"holderIdentity": "pod-a", "leaseDurationSeconds": 15, "renewTime": renewed},
        })
    };
    let (now, old) = ("2026-03-02T10:10:55.000000Z", "2026-03-02T10:05:00.000000Z");
    let (own, in_tree) = ("cronjob-controller", "kube-controller-manager");
    // (a sentence, who writes the status, whether the object is edited then, the leases, what is said)
    let rows = [
        ("this one", Some(own), false, vec![lease(own, now)], None),
        ("this one, and no lease can be read", Some(own), false, vec![], None),
        ("this one, which is gone", Some(own), false, vec![lease(own, old)], Some(STOPPED)),
        ("the in-tree one", Some(in_tree), false, vec![lease(own, now), lease(in_tree, now)], Some(IN_TREE)),
        ("by the leases", None, true, vec![lease(in_tree, now)], Some(IN_TREE)),
        ("this one by the leases", None, true, vec![lease(own, now)], None),
        ("both may", None, true, vec![lease(own, now), lease(in_tree, now)], Some(UNKNOWN)),
    ];
    let mut plans = BTreeSet::new();
    for (sentence, writer, is_edited, leases, want) in rows {
        let cluster = Cluster::new(json!({}), usual).await;
        for lease in leases {
            cluster.world.write("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", &lease).await;
        }
        if let Some(writer) = writer {
            let path = format!("{CRON_JOBS}/c/status?fieldManager={writer}");
            let status = json!({"status": {"lastSuccessfulTime": "2026-03-02T10:10:40Z"}});
            crate::cli::cluster::try_patch(&cluster.client, &path, &status).await.unwrap();
        }
        if is_edited {
            cluster.world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
        }
        let (answer, printed) = cluster.call(&Request { dry_run: true, ..request() }).await;
        assert!(answer.is_ok(), "{sentence}: {answer:?}");
        let want: Vec<String> = want.iter().map(|want| format!("CronJob default/c: {want}\n")).collect();
        assert_eq!(*cluster.notes.lock(), want, "{sentence}");
        plans.insert(printed.concat());
    }
    assert_eq!(plans.len(), 1, "the output for machines is the same");
}

#[tokio::test(start_paused = true)]
async fn label_in_a_template_has_no_effect() {
    let labels = json!({BACKFILL: "x", "team": "a"});
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    });
    let cluster = Cluster::new(json!({"jobTemplate": template}), |_| None).await;
    assert!(!cluster.world.seen()[0].of_backfill);
    assert_eq!(cluster.active().await.len(), 1);
}

#[test]
fn freeze_of_the_namespace_is_said_and_that_it_holds_no_backfill() {
    let now: DateTime<Utc> = "2026-11-22T10:00:00Z".parse().unwrap();
    let rows = [
        (
            "a freeze",
            json!({"cronjob-controller.dev/not-before": "2026-11-24T00:00:00Z", "cronjob-controller.dev/reason": "audit"}),
            Some(
                "Namespace shop is frozen until Tue 2026-11-24 00:00:00 +00:00: \"audit\". A freeze holds regular runs, and no \
                 backfill.",
            ),
        ),
        ("one that is over", json!({"cronjob-controller.dev/not-before": "2026-11-21T00:00:00Z"}), None),
        ("none", json!({}), None),
    ];
    for (sentence, annotations, want) in rows {
        let mut restrictions = Restrictions::default();
        let metadata = json!({"name": "shop", "uid": "", "annotations": annotations});
        restrictions.add(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string());
        assert_eq!(freeze_of(&restrictions, "shop", Zone::UTC, now).as_deref(), want, "{sentence}");
    }
}
