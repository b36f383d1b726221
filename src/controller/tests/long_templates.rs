//! Tests with templates that are too long for the cache.

use super::wire::Ask;
use super::*;
use crate::api::job_template::LONGEST_KEPT;
use crate::controller::OVERLOAD_PAUSE;
use crate::controller::template_budget::{BUDGET, NAMESPACE_SHARE};

/// A Pod template with arguments of this many bytes, which begin with `mark`.
fn template(mark: &str, bytes: usize) -> Value {
    let container = json!({ "name": "c", "image": "busybox", "args": [mark, "x".repeat(bytes)] });
    json!({ "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [container] } } } })
}

fn long(mark: &str) -> Value {
    json!({ "jobTemplate": template(mark, 2 * LONGEST_KEPT) })
}

fn args(job: &Value) -> &Value {
    &job["spec"]["template"]["spec"]["containers"][0]["args"]
}

/// A world at 10:00:30 with the CronJob `c` and a running controller.
async fn working(spec: Value) -> World {
    let world = World::new("2026-03-02T10:00:30Z").await;
    world.create_cron_job("c", spec).await;
    world.work(2);
    world
}

#[tokio::test(start_paused = true)]
async fn long_template_is_not_cached_and_fires_unchanged() {
    let world = working(long("v1")).await;
    world.pass_until("2026-03-02T10:02:30Z").await;
    let jobs = world.list(JOBS).await;
    assert_eq!(jobs.len(), 2);
    for job in &jobs {
        assert_eq!(args(job), args(&template("v1", 2 * LONGEST_KEPT)));
    }
    assert_eq!(world.wire.count(Verb::Get, "cronjobs"), 2, "one read for each fire");
    let cached = world.cron_jobs.get(&key("c")).unwrap();
    assert!(cached.spec.job_template.omitted_bytes() > Some(2 * LONGEST_KEPT));
    let known = world.controller.memories.newest(cached);
    assert_eq!(known.spec.job_template.text(), None, "what outlives a sync holds no long template");
    assert_eq!(known.status.active.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn template_as_long_as_the_bound_is_cached_and_not_read_again() {
    let bytes = LONGEST_KEPT - template("v1", 0).to_string().len();
    let world = working(json!({ "jobTemplate": template("v1", bytes / 2) })).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    assert_eq!((world.list(JOBS).await.len(), world.wire.count(Verb::Get, "cronjobs")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn change_between_cache_and_read_is_honoured() {
    let uid = |cron_job: &Value| cron_job["metadata"]["uid"].clone();
    // (sentence, the change, the first argument of the Job of 10:01 if there is one)
    let patch = |spec: Value| Some(json!({ "spec": spec }));
    let rows = [
        ("nothing changed", None, Some("v1")),
        ("another template", patch(long("v2")), Some("v2")),
        ("a template that is short", patch(json!({ "jobTemplate": template("v3", 0) })), Some("v3")),
        ("suspended", patch(json!({ "suspend": true })), None),
        ("another schedule", patch(json!({ "schedule": "5 * * * *" })), None),
    ];
    for (sentence, change, expected) in rows {
        let world = working(long("v1")).await;
        let before = uid(&world.get("c").await);
        world.wire.hold_watches(true);
        if let Some(change) = change {
            world.request("PATCH", &format!("{CRON_JOBS}/c"), &change).await.unwrap();
        }
        assert_eq!(uid(&world.get("c").await), before);
        world.pass_until("2026-03-02T10:01:30Z").await;
        let jobs = world.list(JOBS).await;
        let first: Vec<_> = jobs.iter().map(|job| args(job)[0].as_str().unwrap()).collect();
        assert_eq!(first, expected.as_slice(), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn cron_job_deleted_or_recreated_before_its_read_starts_nothing() {
    for recreated in [false, true] {
        let world = working(long("v1")).await;
        world.wire.hold_watches(true);
        world.request("DELETE", &format!("{CRON_JOBS}/c"), &Value::Null).await.unwrap();
        if recreated {
            world.request("POST", CRON_JOBS, &cron_job("c", long("v2"))).await.unwrap();
        }
        world.pass_until("2026-03-02T10:01:30Z").await;
        assert_eq!(world.list(JOBS).await.len(), 0, "recreated: {recreated}");
        world.wire.hold_watches(false);
        world.pass_until("2026-03-02T10:02:30Z").await;
        let jobs = world.list(JOBS).await;
        assert!(jobs.iter().all(|job| args(job)[0] == "v2"), "recreated: {recreated}");
        assert_eq!(!jobs.is_empty(), recreated);
    }
}

#[tokio::test(start_paused = true)]
async fn change_of_a_long_template_while_answers_are_waited_for_is_noticed() {
    let world = working(merged_spec(&[long("v1"), json!({ "concurrencyPolicy": "Replace" })])).await;
    world.pass_until("2026-03-02T10:01:30Z").await;
    // The Job of 10:01 runs; its deletion for the Job of 10:02 takes five seconds, in which the template changes.
    world.wire.judge(|ask| match ask.verb {
        Verb::Delete => Orders { back: seconds(5), ..Orders::default() },
        _ => Orders::default(),
    });
    world.pass_until("2026-03-02T10:02:02Z").await;
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": long("v2") })).await;
    world.pass_until("2026-03-02T10:02:30Z").await;
    let jobs = world.list(JOBS).await;
    assert_eq!(jobs.iter().map(|job| args(job)[0].clone()).collect::<Vec<_>>(), ["v2"]);
}

fn merged_spec(specs: &[Value]) -> Value {
    specs.iter().cloned().reduce(objects::merged).unwrap()
}

/// The maximum number of these requests in flight at once, if each takes this long.
fn most_at_once(asks: &[Ask], each: Duration) -> usize {
    let at_once = |ask: &Ask| asks.iter().filter(|other| other.at <= ask.at && ask.at < other.at + each).count();
    asks.iter().map(at_once).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn long_templates_due_at_once_are_read_a_few_at_a_time_and_all_fire() {
    const LENGTH: usize = 1_300_000;
    const TOOK: Duration = Duration::from_millis(100);
    let world = World::new("2026-03-02T10:00:30Z").await;
    for at in 0..12 {
        let spec = json!({ "schedule": "1 10 * * *", "jobTemplate": template("v1", LENGTH) });
        world.request("POST", CRON_JOBS, &cron_job(&format!("long{at}"), spec)).await.unwrap();
    }
    for at in 0..20 {
        let spec = json!({ "schedule": "1 10 * * *" });
        world.request("POST", CRON_JOBS, &cron_job(&format!("short{at}"), spec)).await.unwrap();
    }
    world.catch_up().await;
    world.wire.judge(|_| Orders { back: TOOK, ..Orders::default() });
    world.work(16);
    world.pass_until("2026-03-02T10:01:00Z").await;
    world.pass(4 * TOOK).await;
    let short = world.seen_names().iter().filter(|name| name.starts_with("short")).count();
    assert_eq!(short, 20, "what waits for room occupies no worker");
    world.pass(seconds(10)).await;
    assert_eq!(world.list(JOBS).await.len(), 32);
    let reads = world.wire.asked(Verb::Get, "cronjobs");
    assert_eq!(reads.len(), 12);
    let fitting = NAMESPACE_SHARE / LENGTH;
    // Each template is held for a read and a create.
    assert_eq!(most_at_once(&reads, 2 * TOOK), fitting, "of {BUDGET} bytes");
    assert!(world.controller.unattended().is_empty());
}

#[tokio::test(start_paused = true)]
async fn long_template_is_let_go_while_many_jobs_are_looked_for_and_deleted_and_read_again_for_the_create() {
    let long = json!({ "jobTemplate": template("v1", NAMESPACE_SHARE * 2 / 3) });
    // (how many Jobs run, how often the CronJob is read, whether another CronJob starts meanwhile)
    for (running, reads, starts) in [(3, 1, false), (10, 2, true)] {
        let world = World::new("2026-03-02T10:00:30Z").await;
        world.create_cron_job("c", json!({ "jobTemplate": template("v1", 0) })).await;
        world.work(16);
        world.pass_until(&format!("2026-03-02T10:{running:02}:30Z")).await;
        assert_eq!(world.seen().len(), running);
        let spec = merged_spec(&[long.clone(), json!({ "concurrencyPolicy": "Replace" })]);
        world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": spec })).await;
        let suspended = merged_spec(&[long.clone(), json!({ "suspend": true })]);
        world.write("POST", CRON_JOBS, &cron_job("other", suspended)).await;
        world.wire.judge(|ask| match ask.verb {
            Verb::Delete => Orders { back: seconds(1), ..Orders::default() },
            _ => Orders::default(),
        });
        world.pass_until(&format!("2026-03-02T10:{:02}:01Z", running + 1)).await;
        world.write("PATCH", &format!("{CRON_JOBS}/other"), &json!({ "spec": { "suspend": false } })).await;
        world.pass(Duration::from_millis(1_500)).await;
        let has_other = world.seen_names().iter().any(|name| name.starts_with("other"));
        assert_eq!(has_other, starts, "{running} running");
        world.pass_until(&format!("2026-03-02T10:{:02}:30Z", running + 1)).await;
        assert_eq!(world.list(JOBS).await.len(), 2, "{running} running");
        let read = world.wire.asked(Verb::Get, "cronjobs").iter().filter(|ask| ask.name == "c").count();
        assert_eq!(read, reads, "{running} running");
        assert!(world.controller.unattended().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn long_template_that_an_overloaded_server_does_not_return_again_is_tried_after_a_pause() {
    let long = json!({ "jobTemplate": template("v1", 2 * LONGEST_KEPT), "concurrencyPolicy": "Replace" });
    let world = World::new("2026-03-02T10:00:30Z").await;
    world.create_cron_job("c", json!({ "jobTemplate": template("v1", 0) })).await;
    world.work(2);
    world.pass_until("2026-03-02T10:10:30Z").await;
    world.write("PATCH", &format!("{CRON_JOBS}/c"), &json!({ "spec": long })).await;
    let mut reads = 0;
    world.wire.judge(move |ask| {
        reads += usize::from(ask.is(Verb::Get, "cronjobs"));
        if ask.is(Verb::Get, "cronjobs") && reads == 2 { Fate::Overloaded(20) } else { Fate::Pass }
    });
    // Ten Jobs are deleted, and the template that was let go for them is read again before the create.
    world.pass_until("2026-03-02T10:11:30Z").await;
    assert_eq!(world.list(JOBS).await.len(), 1);
    let reads: Vec<_> = world.wire.asked(Verb::Get, "cronjobs").iter().map(|ask| ask.at).collect();
    assert!(reads[2] - reads[1] >= OVERLOAD_PAUSE, "{reads:?}");
}
