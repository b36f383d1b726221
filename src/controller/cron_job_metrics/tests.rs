#![allow(clippy::unwrap_used, clippy::float_cmp, clippy::type_complexity)]

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::batch_v1::Job;
use crate::controller::tests::support::{CRON_JOBS, Ending, JOBS, MAX_SERIES, World, cron_job, job};
use crate::controller::tests::wire::{Fate, Verb};
use crate::metrics::encode;

/// The values that a scrape shows of a CronJob, by metric name suffix, with the reason or result after a slash.
fn shown(registry: &Registry, name: &str) -> BTreeMap<String, f64> {
    let text = encode(registry);
    let of_it = format!("{{controller=\"cronjob\",name=\"{name}\",namespace=");
    let samples = text.lines().filter_map(|line| line.strip_prefix(PREFIX)).filter(|line| line.contains(&of_it));
    let read = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (metric, labels) = series.split_once('{').unwrap();
        let label = labels.split_once("reason=\"").or_else(|| labels.split_once("result=\""));
        let label = label.map(|(_, rest)| format!("/{}", rest.trim_end_matches("\"}")));
        (format!("{metric}{}", label.unwrap_or_default()), value.parse().unwrap())
    };
    samples.map(read).collect()
}

fn omitted(registry: &Registry) -> String {
    let text = encode(registry);
    text.lines().find_map(|line| line.strip_prefix("cronjob_controller_cronjob_metrics_omitted ")).unwrap().to_owned()
}

fn epoch(time: &str) -> f64 {
    since_epoch(crate::controller::tests::objects::time(time))
}

fn ends(job: &Job) -> Option<(Duration, Ending)> {
    let after = Duration::from_secs(20);
    match job.name.name.split('-').next() {
        Some("good") => Some((after, Ending::Complete)),
        Some("bad") => Some((after, Ending::Failed)),
        Some("long") => Some((Duration::from_secs(70), Ending::Complete)),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn each_cron_job_shows_what_became_of_its_slots() {
    let world = World::with_jobs_that_end("2026-03-02T09:59:30Z", ends).await;
    world.write("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": "poor" } })).await;
    world.write("POST", "/apis/batch/v1/namespaces/poor/cronjobs", &cron_job("refused", json!({}))).await;
    for (name, spec) in [
        ("good", json!({})),
        ("bad", json!({})),
        ("stuck", json!({ "concurrencyPolicy": "Forbid" })),
        ("late", json!({ "schedule": "0 10 * * *", "startingDeadlineSeconds": 60 })),
        ("off", json!({ "suspend": true })),
        ("taken", json!({})),
        ("invalid", json!({})),
    ] {
        world.create_cron_job(name, spec).await;
    }
    world.write("POST", JOBS, &job("taken-29540765", &Value::Null)).await;
    world.smuggle("cronjobs.batch", "invalid", json!({ "spec": { "schedule": "often" } })).await;
    world.wire.judge(|ask| {
        if ask.is(Verb::Create, "jobs") && ask.namespace == "poor" {
            Fate::Refused(403, "Forbidden")
        } else {
            Fate::Pass
        }
    });
    assert_eq!(shown(&world.registry, "good"), BTreeMap::new(), "one that stands by shows none");
    assert_eq!(omitted(&world.registry), "0", "and leaves none out");
    world.pass_until("2026-03-02T10:02:30Z").await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:05:30Z").await;

    let next = ("next_schedule_timestamp_seconds", epoch("2026-03-02T10:06:00Z"));
    let (took, count) = (("run_duration_seconds_sum", 80.0), ("run_duration_seconds_count", 4.0));
    let last = ("last_run_duration_seconds", 20.0);
    let unstarted = ("unstarted_seconds", 180.0);
    let table: [(&str, &[(&str, f64)]); 8] = [
        (
            "good",
            &[
                ("fires_total", 4.0),
                ("missed_total", 2.0),
                ("last_success_timestamp_seconds", epoch("2026-03-02T10:05:20Z")),
                ("seconds_since_last_success", 10.0),
                ("runs_total/succeeded", 4.0),
                ("run_duration_median_seconds", 20.0),
                took,
                count,
                last,
                next,
            ],
        ),
        (
            "bad",
            &[
                ("fires_total", 4.0),
                ("missed_total", 2.0),
                ("failures_in_a_row", 4.0),
                ("runs_total/failed", 4.0),
                took,
                count,
                last,
                next,
            ],
        ),
        (
            "stuck",
            &[
                ("fires_total", 1.0),
                ("missed_total", 2.0),
                ("skipped_total/forbid", 3.0),
                ("forbidden_in_a_row", 3.0),
                ("active", 1.0),
                unstarted,
                next,
            ],
        ),
        (
            "late",
            &[("skipped_total/deadline", 1.0), ("next_schedule_timestamp_seconds", epoch("2026-03-03T10:00:00Z"))],
        ),
        ("off", &[("skipped_total/suspended", 6.0)]),
        (
            "taken",
            &[
                ("fires_total", 3.0),
                ("missed_total", 2.0),
                ("skipped_total/name_taken", 1.0),
                ("active", 3.0),
                ("active_grown_in_a_row", 2.0),
                unstarted,
                next,
            ],
        ),
        ("invalid", &[("skipped_total/invalid", 1.0)]),
        ("refused", &[("create_refused", 1.0), ("next_schedule_timestamp_seconds", epoch("2026-03-02T10:00:00Z"))]),
    ];
    for (name, want) in table {
        let mut got = shown(&world.registry, name);
        let skew = got.remove("last_skew_seconds");
        assert_eq!(skew.is_some(), got["fires_total"] > 0.0, "{name}");
        assert!(skew.is_none_or(|skew| (0.0..=30.1).contains(&skew)), "{name}: {skew:?}");
        got.retain(|_, value| *value != 0.0);
        let want: BTreeMap<String, f64> = want.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        assert_eq!(got, want, "{name}");
    }
    let good = shown(&world.registry, "good");
    assert_eq!(good.len(), 23, "so many series are promised: {good:?}");

    world.wire.calm();
    world.pass_until("2026-03-02T10:06:30Z").await;
    let refused = shown(&world.registry, "refused");
    assert_eq!(
        (refused["fires_total"], refused["missed_total"], refused["create_refused"]),
        (2.0, 5.0, 0.0),
        "once they can be started, the newest slot starts before the next, and what was not is missed"
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn no_series_outlives_its_cron_job_or_its_controller() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    for name in ["a", "b"] {
        world.create_cron_job(name, json!({})).await;
    }
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:00:30Z").await;
    assert_eq!(shown(&world.registry, "a")["fires_total"], 1.0);
    world.write("DELETE", &format!("{CRON_JOBS}/a"), &Value::Null).await;
    assert_eq!(shown(&world.registry, "a"), BTreeMap::new());
    world.create_cron_job("a", json!({ "suspend": true })).await;
    assert_eq!(shown(&world.registry, "a")["fires_total"], 0.0, "one of the same name is another");
    assert_eq!(shown(&world.registry, "b")["fires_total"], 1.0);
    stop.cancel();
    let registry = world.registry.clone();
    drop(world);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(shown(&registry, "b"), BTreeMap::new(), "the work has gone to another");
}

#[tokio::test(start_paused = true)]
async fn no_more_cron_jobs_have_series_than_were_asked_for() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    for namespace in ["a", "b", "c"] {
        world.write("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await;
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
        for at in 0..=MAX_SERIES / 3 {
            world.write("POST", &path, &cron_job(&format!("{namespace}{at}"), json!({}))).await;
        }
    }
    let names: Vec<String> =
        ["a", "b", "c"].iter().flat_map(|name| (0..=MAX_SERIES / 3).map(move |at| format!("{name}{at}"))).collect();
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:00:30Z").await;
    let having = || -> Vec<&String> { names.iter().filter(|name| !shown(&world.registry, name).is_empty()).collect() };
    assert!(having().len() <= MAX_SERIES);
    assert_eq!(omitted(&world.registry), (names.len() - having().len()).to_string());
    // A CronJob of the namespace with the fewest places.
    let (before, gone) = (having().len(), having()[having().len() - 1].clone());
    let path = format!("/apis/batch/v1/namespaces/{}/cronjobs/{gone}", &gone[..1]);
    world.write("DELETE", &path, &Value::Null).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    assert_eq!(having().len(), before, "a free place is taken");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn series_are_left_for_others_by_a_namespace_with_more_cron_jobs_than_places() {
    let world = World::new("2026-03-02T09:59:30Z").await;
    for at in 0..3 * MAX_SERIES {
        world.create_cron_job(&format!("many{at}"), json!({})).await;
    }
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:00:30Z").await;
    for namespace in ["first", "second"] {
        world.write("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await;
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
        world.write("POST", &path, &cron_job(namespace, json!({}))).await;
    }
    world.pass_until("2026-03-02T10:01:30Z").await;
    for name in ["first", "second"] {
        assert_eq!(shown(&world.registry, name)["fires_total"], 1.0, "{name}");
    }
    stop.cancel();
}

#[test]
fn places_are_shared_between_namespaces() {
    // (limit, the CronJobs of each namespace in the order of requests, how many of each have a place)
    let rows: [(usize, &[(&str, usize)], &[usize]); 5] = [
        (5_000, &[("a", 10_000)], &[3_750]),
        (5_000, &[("a", 10_000), ("b", 10_000), ("c", 10_000)], &[3_750, 625, 625]),
        (5_000, &[("a", 3_000), ("b", 2_000)], &[3_000, 750]),
        (5_000, &[("a", 500), ("b", 500), ("c", 500)], &[500, 500, 500]),
        (1, &[("a", 5), ("b", 5)], &[1, 0]),
    ];
    for (limit, asked, expected) in rows {
        let mut places = SeriesQuota::new(limit);
        let granted = asked.iter().map(|(namespace, count)| {
            let namespace: Arc<str> = (*namespace).into();
            (0..*count).filter(|_| places.take(&namespace)).count()
        });
        assert_eq!(granted.collect::<Vec<_>>(), expected, "{limit}: {asked:?}");
    }
}

/// The values of a metric in a CronJob's series and of all of them, by result.
fn runs(world: &World, name: &str) -> [u64; 4] {
    let shown = shown(&world.registry, name);
    let of_one = |result: &str| shown.get(&format!("runs_total/{result}")).copied().unwrap_or_default();
    let all = &world.controller.parts.metrics.job_run_duration;
    let of_all = |result: &str| all.with_label_values(&[result]).get_sample_count();
    let whole = |number: f64| number.to_string().parse().unwrap();
    let [succeeded, failed] = RESULTS;
    [whole(of_one(succeeded)), whole(of_one(failed)), of_all(succeeded), of_all(failed)]
}

#[tokio::test(start_paused = true)]
async fn each_end_is_counted_once_whatever_becomes_of_the_job_and_its_status() {
    let refuses_statuses = |world: &World| {
        let judge = |ask: &crate::controller::tests::wire::Ask| {
            if ask.is(Verb::Patch, "cronjobs/status") { Fate::Refused(409, "Conflict") } else { Fate::Pass }
        };
        world.wire.judge(judge);
    };
    // (a sentence, the CronJob's name and spec, whether its statuses are refused for a while, what is counted)
    let table = [
        ("Jobs that are kept", "good", json!({}), false, [3, 0, 3, 0]),
        ("Jobs that are deleted at once", "good", json!({ "successfulJobsHistoryLimit": 0 }), false, [3, 0, 3, 0]),
        ("failed ones that are deleted at once", "bad", json!({ "failedJobsHistoryLimit": 0 }), false, [0, 3, 0, 3]),
        ("statuses that are refused", "good", json!({}), true, [3, 0, 3, 0]),
        ("the same, of Jobs to delete", "good", json!({ "successfulJobsHistoryLimit": 0 }), true, [3, 0, 3, 0]),
        (
            "the same, that end after the next began",
            "long",
            json!({ "successfulJobsHistoryLimit": 0 }),
            true,
            [2, 0, 2, 0],
        ),
        ("slots of one minute, which share a Job", "good", json!({ "schedule": "@every 30s" }), false, [3, 0, 3, 0]),
        ("Jobs that do not end", "stuck", json!({}), false, [0; 4]),
    ];
    for (sentence, name, spec, refuses, want) in table {
        let world = World::with_jobs_that_end("2026-03-02T09:59:58Z", ends).await;
        world.create_cron_job(name, spec).await;
        if refuses {
            refuses_statuses(&world);
        }
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:02:40Z").await;
        world.wire.calm();
        world.pass_until("2026-03-02T10:02:55Z").await;
        assert_eq!(runs(&world, name), want, "{sentence}: {:?}", world.seen_names());
        assert!(!world.reasons().await.contains(&"MissingJob".to_owned()), "{sentence}");
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn each_end_is_counted_by_one_of_two_leaders() {
    // (a sentence, when the first leader dies, whether it could write no status, the counts of the first and of the next)
    let table = [
        ("while the Job runs", "2026-03-02T10:00:10Z", false, 0, 1),
        ("right after it created the Job", "2026-03-02T10:00:10Z", true, 0, 1),
        ("after it has seen the end", "2026-03-02T10:00:30Z", false, 1, 0),
    ];
    for (sentence, dies, refuses, first, next) in table {
        let world = World::with_jobs_that_end("2026-03-02T09:59:30Z", ends).await;
        world.create_cron_job("good", json!({})).await;
        if refuses {
            world.wire.judge(|ask| {
                if ask.is(Verb::Patch, "cronjobs/status") { Fate::Refused(500, "InternalError") } else { Fate::Pass }
            });
        }
        let (stop, working) = world.work_to_end(1);
        world.pass_until(dies).await;
        assert_eq!(runs(&world, "good"), [first, 0, first, 0], "{sentence}: the first leader");
        stop.cancel();
        working.await.unwrap();
        world.pass_until("2026-03-02T10:00:40Z").await;
        let world = world.successor().await;
        let stop = world.work(1);
        world.pass_until("2026-03-02T10:00:59Z").await;
        let shown = shown(&world.registry, "good");
        assert_eq!(runs(&world, "good"), [next, 0, next, 0], "{sentence}: the next leader");
        assert_eq!(shown["last_run_duration_seconds"], 20.0, "{sentence}");
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn the_start_of_a_job_and_its_first_ready_pod_are_measured_once_from_the_due_time() {
    let world = World::new("2026-03-02T09:59:58Z").await;
    world.create_cron_job("good", json!({ "schedule": "0 10 * * *" })).await;
    let started = |world: &World| world.controller.parts.metrics.cronjob_start_delay.get_sample_count();
    let with_pods = |world: &World| world.controller.parts.metrics.cronjob_pod_delay.get_sample_count();
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:00:30Z").await;
    let unstarted = shown(&world.registry, "good");
    assert_eq!((unstarted["unstarted_seconds"], unstarted.get("last_start_delay_seconds")), (30.0, None));
    let path = format!("{JOBS}/{}/status", world.seen_names()[0]);
    for (sentence, status, count) in [
        ("the Job controller starts it", json!({ "startTime": "2026-03-02T10:00:30Z" }), 1),
        ("it changes", json!({ "active": 1, "ready": 0 }), 1),
    ] {
        world.write("PATCH", &path, &json!({ "status": status })).await;
        world.catch_up().await;
        assert_eq!(started(&world), count, "{sentence}");
    }
    world.pass_until("2026-03-02T10:01:30Z").await;
    let running = shown(&world.registry, "good");
    assert_eq!((running["last_start_delay_seconds"], running["running_seconds"]), (30.0, 60.0));
    assert_eq!(running.get("last_pod_delay_seconds"), None);
    for ready in [1, 0, 1] {
        world.write("PATCH", &path, &json!({ "status": { "ready": ready } })).await;
        world.catch_up().await;
        assert_eq!(with_pods(&world), 1, "{ready} ready");
    }
    world.pass_until("2026-03-02T10:02:00Z").await;
    let running = shown(&world.registry, "good");
    assert_eq!((running["last_start_delay_seconds"], running["last_pod_delay_seconds"]), (30.0, 90.0));
    assert_eq!(running.get("unstarted_seconds"), None);
    stop.cancel();
    let world = world.successor().await;
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:02:30Z").await;
    for ready in [0, 1] {
        world.write("PATCH", &path, &json!({ "status": { "ready": ready } })).await;
        world.catch_up().await;
    }
    assert_eq!((started(&world), with_pods(&world)), (0, 0), "the last leader has measured both");
    stop.cancel();
}
