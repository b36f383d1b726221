#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::{Interner, Object as _};

fn at(second: i64) -> DateTime<Utc> {
    // 2027-01-15T08:00:00Z, a Friday.
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn utc() -> Zone {
    Zone::load("UTC", schedule::local_zone().0).unwrap()
}

fn cron_job(name: &str, spec: &Value, last: Option<i64>) -> CronJob {
    let mut whole = json!({ "schedule": "* * * * *", "jobTemplate": {} });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let object = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": whole,
        "status": { "lastScheduleTime": last.map(at) },
    });
    CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
}

fn job(name: &str, slot: Option<i64>, end: Option<(&str, i64)>) -> Arc<Job> {
    let object = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name,
            "annotations": slot.map(|slot| json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": at(slot).to_rfc3339() })),
            "ownerReferences": slot.map(|_| json!([{ "kind": "CronJob", "name": "hello", "uid": "u", "controller": true }])),
        },
        "spec": {},
        "status": {
            "startTime": at(0),
            "conditions": end.map(|(type_, second)| json!([{
                "type": type_, "status": "True", "message": "Job has\u{1b}[2J failed", "lastTransitionTime": at(second),
            }])),
        },
    });
    Arc::new(Job::decode(&object.to_string(), &Interner::default()).unwrap())
}

fn row(cron_job: &CronJob, jobs: &[Arc<Job>], skew: Option<i64>) -> Row {
    Row::new(cron_job, jobs, skew.map(TimeDelta::milliseconds), at(5), utc())
}

#[test]
fn the_table_shows_each_cron_job_on_one_line() {
    let jobs = [
        job("b", Some(-60), None),
        job("a", Some(-120), Some(("Failed", 0))),
        job("c", Some(-180), Some(("Complete", 0))),
    ];
    let rows = [
        row(&cron_job("hello", &json!({}), Some(0)), &jobs, Some(3)),
        row(
            &cron_job("nightly", &json!({ "schedule": "30 2 * * MON-FRI", "timeZone": "Europe/Berlin" }), None),
            &[],
            None,
        ),
        row(&cron_job("none", &json!({ "schedule": "0 0 31 2 *" }), None), &[], None),
        row(&cron_job("odd", &json!({ "schedule": "often" }), None), &[], None),
        row(&cron_job("paused", &json!({ "suspend": true }), Some(-3600)), &[], None),
    ];
    let lines = screen(&["dev".to_owned()], &rows, at(5), utc(), 100, 40);
    let want = [
        "dev",
        "",
        "CRONJOB           SCHEDULE                           NEXT           LAST             ACTIVE   JOBS",
        "default/hello     * * * * *                          in 55s         08:00:00 +3 ms   1        ✓✗…",
        "default/nightly   30 2 * * MON-FRI (Europe/Berlin)   in 2d17h       -                0",
        "default/none      0 0 31 2 *                         never          -                0",
        "default/odd       often                              bad schedule   -                0",
        "default/paused    * * * * *                          suspended      07:00:00         0",
    ];
    assert_eq!(lines, want);
    let few = screen(&["dev".to_owned()], &rows, at(5), utc(), 30, 6);
    let want = [
        "dev",
        "",
        "CRONJOB           SCHEDULE   …",
        "default/hello     * * * * *  …",
        "default/nightly   30 2 * * MO…",
        "and 3 more",
    ];
    assert_eq!(few, want, "a small terminal");
    let none = screen(&["dev".to_owned()], &[], at(5), utc(), 100, 40);
    assert_eq!(none.last().unwrap(), "There are no CronJobs. Apply one with kubectl apply -f FILE.");
}

#[test]
fn durations_are_shortened() {
    let rows = [(-5, "0s"), (0, "0s"), (1, "1s"), (999, "1s"), (59_001, "1m00s"), (3_599_000, "59m59s")];
    let more = [(3_600_000, "1h00m"), (86_399_000, "23h59m"), (86_400_000, "1d00h"), (864_000_000, "10d00h")];
    for (ms, want) in rows.into_iter().chain(more) {
        assert_eq!(countdown(TimeDelta::milliseconds(ms)), want, "{ms}");
    }
    for (ms, want) in [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (75_300, "75 s"), (-3, "-3 ms")] {
        assert_eq!(milliseconds(TimeDelta::milliseconds(ms)), want, "{ms}");
    }
}

#[test]
fn lines_report_starts_and_ends() {
    let started = job("hello-1", Some(0), None);
    assert_eq!(
        line_of_start(&started, at(0) + TimeDelta::milliseconds(4)),
        "default/hello: started Job hello-1, 4 ms after its time"
    );
    assert_eq!(line_of_start(&job("manual", None, None), at(0)), "default/started Job manual");
    let complete = job("hello-1", Some(0), Some(("Complete", 3)));
    assert_eq!(line_of_end(&started, &complete).unwrap(), "default/hello: Job hello-1 succeeded after 3s");
    let failed = job("hello-1", Some(0), Some(("Failed", 63)));
    assert_eq!(
        line_of_end(&started, &failed).unwrap(),
        "default/hello: Job hello-1 failed after 1m03s: Job has [2J failed"
    );
    assert_eq!(line_of_end(&complete, &complete), None, "once only");
    assert_eq!(line_of_end(&started, &started), None);
}

proptest! {
    #[test]
    fn view_stays_within_the_terminal(
        names in prop::collection::vec(".{0,40}", 0..30), width in 0_usize..120, height in 0_usize..40,
    ) {
        let rows: Vec<Row> = names.iter().map(|name| Row {
            name: name.clone(), schedule: name.clone(), next: Next::Never, last: None, skew: None, active: 0, jobs: vec![Fate::Running; 20],
        }).collect();
        let lines = screen(&["a".to_owned(), "b".to_owned()], &rows, at(0), utc(), width, height);
        prop_assert!(lines.len() <= height);
        for line in lines {
            prop_assert!(line.chars().count() <= width, "{line:?}");
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
}
