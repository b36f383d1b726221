//! Backfills of a CronJob with `max-concurrent`, beside its regular runs and Jobs made by hand.

use super::*;

impl Cluster {
    /// A cluster whose CronJob has `max-concurrent`.
    pub(super) async fn limited(limit: usize, spec: Value, ends: Ends) -> Self {
        let annotations = json!({"cronjob-controller.dev/max-concurrent": limit.to_string()});
        Self::annotated(ControllerKind::CronJob, &annotations, spec, ends).await
    }
}

const SECONDS: i64 = 7;

/// Jobs take seven seconds.
#[allow(clippy::unnecessary_wraps, reason = "an ending of a world")]
fn short(_: &Job) -> Option<(Duration, Ending)> {
    Some((Duration::from_secs(7), Ending::Complete))
}

/// The Job made by hand takes a hundred seconds, and others seven.
#[allow(clippy::unnecessary_wraps, reason = "an ending of a world")]
fn long_by_hand(job: &Job) -> Option<(Duration, Ending)> {
    let time = if &*job.name.name == "by-hand" { 100 } else { 7 };
    Some((Duration::from_secs(time), Ending::Complete))
}

/// The slots every two minutes from eight o'clock.
fn slots(number: i64, max_active: usize) -> Request {
    let mut asked = request();
    let Given::Instant(from) = asked.question.from else { panic!("a local time") };
    asked.question.to = Given::Instant(from + TimeDelta::minutes(2 * (number - 1)));
    asked.question.max_active = max_active;
    asked
}

#[tokio::test(start_paused = true)]
async fn backfill_obeys_the_limit_and_leaves_the_place_of_a_regular_run_free() {
    for limit in [1, 2] {
        let cluster = Cluster::limited(limit, json!({"schedule": "*/2 * * * *"}), short).await;
        let began = cluster.world.clock.now();
        let (answer, printed) = cluster.call(&slots(50, 5)).await;
        assert!(answer.unwrap().is_good);
        let took = cluster.world.clock.now() - began;
        assert!(took < TimeDelta::minutes(8), "{took}");
        let jobs: Vec<_> = cluster.world.seen().into_iter().filter(|job| job.creation_timestamp >= began).collect();
        let (past, regular): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.of_backfill);
        assert_eq!((past.len(), regular.len() >= 2), (50, true), "{}", regular.len());
        for job in &jobs {
            let runs = |other: &&Arc<Job>| {
                let age = job.creation_timestamp - other.creation_timestamp;
                (0..SECONDS).contains(&age.num_seconds())
            };
            assert!(jobs.iter().filter(runs).count() <= limit, "{}", job.name);
        }
        for (at, job) in (0..).zip(&regular) {
            let slot = time("2026-03-02T10:12:00Z") + TimeDelta::minutes(2 * at);
            assert_eq!(job.scheduled_timestamp, Some(slot), "no run is lost");
            let late = job.creation_timestamp - slot;
            assert!(late <= TimeDelta::seconds(SECONDS - 5), "{} is {late} late", job.name);
            let held = slot - TimeDelta::seconds(5)..job.creation_timestamp;
            assert!(!past.iter().any(|job| held.contains(&job.creation_timestamp)), "{held:?}");
        }
        let waits = printed.iter().filter(|line| line.contains(r#""type":"waiting""#) && line.contains("T10:12:00Z"));
        assert_eq!(waits.count(), 1, "{printed:?}");
    }
}

/// A Job of a slot and one made by hand have ended, and the history keeps both.
#[tokio::test(start_paused = true)]
async fn jobs_that_have_ended_take_no_place_of_a_backfill() {
    let cluster = Cluster::limited(1, json!({"successfulJobsHistoryLimit": 20}), short).await;
    cluster.make_by_hand().await;
    cluster.world.pass(Duration::from_secs(20)).await;
    assert!(cluster.world.children().await.len() >= 2);
    let (answer, printed) = cluster.call(&slots(11, 1)).await;
    assert!(answer.unwrap().is_good);
    assert!(!printed.iter().any(|line| line.contains(r#""type":"waiting""#)), "{printed:?}");
    assert_eq!(cluster.backfilled(), names()[..3]);
}

#[tokio::test(start_paused = true)]
async fn backfill_waits_for_a_job_made_by_hand_and_says_so() {
    let cluster = Cluster::limited(1, json!({}), long_by_hand).await;
    cluster.make_by_hand().await;
    let began = cluster.world.clock.now();
    let asked = Request { format: Format::Table, ..slots(11, 1) };
    let (answer, printed) = cluster.call(&asked).await;
    assert!(answer.unwrap().is_good);
    let past: Vec<_> = cluster.world.seen().into_iter().filter(|job| job.of_backfill).collect();
    assert_eq!(past.len(), 3, "the wait skips no slot");
    let first = &past[0];
    assert!(first.creation_timestamp >= began + TimeDelta::seconds(99), "{}", first.creation_timestamp);
    let waits: Vec<_> = printed.iter().filter(|line| line.starts_with("Waits")).collect();
    assert_eq!(waits, ["Waits: as many Jobs are unfinished as max-concurrent allows\n"], "once, and not for its own");
}

#[tokio::test(start_paused = true)]
async fn regular_run_that_does_not_start_holds_a_backfill_up_for_seconds() {
    let cluster = Cluster::limited(1, json!({"schedule": "* * * * *"}), short).await;
    cluster.stop.as_ref().unwrap().cancel();
    let asked = slots(2, 1);
    let ended = tokio::time::timeout(Duration::from_secs(120), cluster.call(&asked)).await;
    assert!(ended.unwrap().0.unwrap().is_good);
    let past: Vec<_> = cluster.world.seen().into_iter().filter(|job| job.of_backfill).collect();
    assert_eq!(past.len(), 3);
    for job in past {
        let second = job.creation_timestamp.timestamp() % 60;
        assert!((20..55).contains(&second), "{second}");
    }
}

#[tokio::test(start_paused = true)]
async fn suspension_stops_a_backfill_that_waits() {
    let cluster = Cluster::limited(1, json!({}), |_| None).await;
    cluster.make_by_hand().await;
    let later = async {
        cluster.world.pass(Duration::from_secs(30)).await;
        cluster.world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({"spec": {"suspend": true}})).await
    };
    let began = cluster.world.clock.now();
    let asked = request();
    let ended = tokio::time::timeout(Duration::from_secs(100), cluster.call(&asked));
    let (ended, _) = tokio::join!(ended, later);
    let error = ended.unwrap().0.unwrap_err();
    assert!(error.ends_with("it is suspended (spec.suspend); cronjob-controller resume -n default c resumes it. The same command continues it"), "{error}");
    assert!(cluster.world.clock.now() - began < TimeDelta::seconds(95));
    assert_eq!(cluster.backfilled(), [""; 0]);
}

/// One at a time goes on, whatever its range, and the others end with a message: none waits for ever.
#[tokio::test(start_paused = true)]
async fn ten_backfills_at_once_start_each_slot_once_and_one_of_them_always_goes_on() {
    let range = |from: i64, to: i64| {
        let mut asked = slots(1, 10);
        let Given::Instant(start) = asked.question.from else { panic!("a local time") };
        asked.question.from = Given::Instant(start + TimeDelta::minutes(10 * from));
        asked.question.to = Given::Instant(start + TimeDelta::minutes(10 * to));
        asked
    };
    let same = vec![range(0, 9); 10];
    let parts = (0..10).map(|at| range(at, at)).collect::<Vec<_>>();
    for (sentence, mut asked, most_rounds) in [("the same range", same, 2), ("a range each", parts, 10)] {
        let cluster = Cluster::limited(1, json!({}), short).await;
        let mut rounds = 0;
        while !asked.is_empty() {
            rounds += 1;
            let ended = futures::future::join_all(asked.iter().map(|request| cluster.call(request))).await;
            let mut left = Vec::new();
            for (request, (answer, _)) in asked.iter().zip(ended) {
                match answer {
                    Ok(answer) => assert!(answer.is_good, "{sentence}: {answer:?}"),
                    Err(error) => {
                        let is_told = ["another backfill is under way", "another process continues it"];
                        assert!(is_told.iter().any(|text| error.contains(text)), "{sentence}: {error}");
                        left.push(request.clone());
                    }
                }
            }
            assert!(left.len() < asked.len() && rounds <= most_rounds, "{sentence}: {} after {rounds}", left.len());
            asked = left;
        }
        let mut started = cluster.backfilled();
        started.sort();
        assert_eq!(started, names()[..10], "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn change_before_a_slot_is_begun_is_looked_at_first() {
    let cluster = Cluster::limited(1, json!({}), long_by_hand).await;
    let mut writes = 0;
    cluster.wire.judge(move |ask| {
        let is_write = ask.is(Verb::Patch, "cronjobs");
        writes += usize::from(is_write);
        // The one that says which slot is begun.
        let there = if is_write && writes == 2 { Duration::from_secs(5) } else { Duration::ZERO };
        Orders { there, ..Orders::default() }
    });
    let meanwhile = async {
        cluster.world.pass(Duration::from_secs(2)).await;
        cluster.make_by_hand().await;
        let change = json!({"metadata": {"annotations": {"changed": "meanwhile"}}});
        cluster.world.write("PATCH", &format!("{CRON_JOBS}/c"), &change).await
    };
    let began = cluster.world.clock.now();
    let asked = slots(2, 1);
    let ((answer, _), _) = tokio::join!(cluster.call(&asked), meanwhile);
    assert!(answer.unwrap().is_good);
    let past: Vec<_> = cluster.world.seen().into_iter().filter(|job| job.of_backfill).collect();
    let first = past.iter().map(|job| job.creation_timestamp).min().unwrap();
    assert!(first >= began + TimeDelta::seconds(101), "{first} is beside the Job made by hand");
}
