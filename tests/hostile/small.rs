//! What `cargo test` asserts: counts of steps, and that no slot of another namespace is missing. Nothing here depends on the
//! machine.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::batch_v1::CronJob;
use cronjob_controller::api::{Interner, Object as _};
use futures::future::BoxFuture;
use schedule::Zone;
use schedule::missed::{Observed, steps_of_evaluation};
use serde_json::{Value, json};
use testkit::driver::{CRON_JOBS, JOBS, cron_job, names};
use tokio::time::Instant;

use crate::cluster::{Dev, OTHERS, annotate};
use crate::manifests::{KINDS, Kind};

/// The most steps of one evaluation, some of which take ten nanoseconds.
const MOST_STEPS: u32 = 100_000;
/// How many CronJobs of each kind run beside the other one.
const OF_EACH: usize = 3;
/// How many of its slots are waited for.
const SLOTS: usize = 5;
/// The cluster's time at the start: some minutes before the clocks of New York change.
const START: &str = "2027-03-14T06:57:30Z";

/// A name, and the case, which returns what it saw.
type Case = (&'static str, fn() -> BoxFuture<'static, String>);

pub const CASES: [Case; 2] = [
    ("evaluation_of_each_kind_takes_bounded_steps", || Box::pin(async { steps() })),
    ("every_slot_beside_hot_cron_jobs_starts", || Box::pin(slots())),
];

/// Times around clock changes and skipped days, and others.
const NOWS: [&str; 9] = [
    "2011-12-30T09:59:59Z",
    "2026-11-26T12:00:00Z",
    "2027-03-14T06:59:00Z",
    "2027-03-14T07:30:00Z",
    "2027-09-05T03:59:30Z",
    "2027-09-25T13:59:00Z",
    "2027-10-02T15:29:00Z",
    "2096-02-29T00:00:00Z",
    "2400-01-01T00:00:00Z",
];

/// How long before that the last slot was decided.
const SINCE: [TimeDelta; 5] =
    [TimeDelta::minutes(1), TimeDelta::days(1), TimeDelta::days(100), TimeDelta::days(366), TimeDelta::days(40 * 366)];

fn steps() -> String {
    let (mut most, mut of) = (0, "");
    for kind in &KINDS {
        let steps = most_steps(kind);
        assert!(steps <= MOST_STEPS, "{}: an evaluation takes {steps} steps", kind.name);
        if steps > most {
            (most, of) = (steps, kind.name);
        }
    }
    format!("{most} at most ({of})")
}

/// The most steps at any of the times; none if the controller refuses the object.
fn most_steps(kind: &Kind) -> u32 {
    let mut object = kind.cron_job("one");
    object["metadata"]["namespace"] = json!("hot");
    object["metadata"]["uid"] = json!("1");
    object["metadata"]["resourceVersion"] = json!("1");
    let cron_job = CronJob::decode(&object.to_string(), &Interner::default()).unwrap();
    let Some(schedule) = cron_job.schedule(Zone::UTC) else { return 0 };
    let times = NOWS.iter().flat_map(|now| {
        let now: DateTime<Utc> = now.parse().unwrap();
        SINCE.map(|since| (now - since, now))
    });
    let steps = times.map(|(creation, now)| {
        let observed = Observed { creation, last_schedule: None, starting_deadline_seconds: None };
        steps_of_evaluation(&observed, now, schedule)
    });
    steps.max().unwrap_or_default()
}

/// A cluster whose time runs fast, in which hot CronJobs change all the time.
async fn slots() -> String {
    let hot: Vec<String> = (0..OF_EACH * KINDS.len()).map(|at| format!("hot-{at}")).collect();
    let mut objects: Vec<Value> =
        hot.iter().zip(KINDS.iter().cycle()).map(|(name, kind)| kind.cron_job(name)).collect();
    for object in &mut objects {
        object["metadata"]["namespace"] = json!("hot");
    }
    let mut minutely = cron_job("minutely", "* * * * *", &json!({"successfulJobsHistoryLimit": 100}));
    minutely["metadata"]["namespace"] = json!(OTHERS);
    objects.push(minutely);
    let dev = Dev::start(&objects, &["--at", START, "--speed=60"]).await;

    let (others, deadline) = (dev.namespace(OTHERS), Instant::now() + Duration::from_secs(120));
    let (mut started, mut turn) = (BTreeSet::new(), 0);
    while started.len() < SLOTS {
        assert!(Instant::now() < deadline, "only these Jobs after {turn} updates: {started:?}");
        assert!(annotate(&dev.client, &hot[turn % hot.len()], turn).await, "update {turn} was refused");
        turn += 1;
        started = names(&others.list(JOBS).await).into_iter().collect();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let minutely = others.get(CRON_JOBS, "minutely").await.unwrap();
    let created: DateTime<Utc> = minutely["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    let first = created.timestamp() / 60 + 1;
    let expected = (first..).take(started.len()).map(|minute| format!("minutely-{minute}"));
    assert_eq!(started, expected.collect::<BTreeSet<_>>(), "each slot has its Job");
    format!("{} slots beside {} CronJobs with {turn} updates", started.len(), hot.len())
}
