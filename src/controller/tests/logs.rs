//! The log lines, as a log collector reads them.

use super::*;
use crate::logging::tests::{Page, subscriber};

/// The controller's log lines as text, without the fields that differ between runs.
fn told(page: &Page) -> Vec<String> {
    let of_controller = |line: &Value| line["caller"].as_str().unwrap().starts_with("controller/");
    let lines = page
        .lines()
        .into_iter()
        .filter(|line| of_controller(line) || line["caller"].as_str().unwrap().starts_with("src/controller.rs"));
    let stable = |mut line: Value| {
        let object = line.as_object_mut().unwrap();
        assert!(object.remove("ts").is_some_and(|ts| ts.is_f64()) && object.remove("caller").is_some(), "{object:?}");
        line.to_string()
    };
    lines.map(stable).collect()
}

#[tokio::test(start_paused = true)]
async fn every_decision_is_one_line_with_the_key_and_the_form_of_lines_is_stable() {
    let page = Page::default();
    let _guard = tracing::subscriber::set_default(subscriber(2, &page));
    let ends: support::Ends = |job| match job.name.name.split('-').next() {
        Some("history") => Some((seconds(5), Ending::Complete)),
        Some("fails") => Some((seconds(5), Ending::Failed)),
        _ => None,
    };
    let world = World::with_jobs_that_end("2026-03-02T10:01:30Z", ends).await;
    let at_two = |more: Value| objects::merged(json!({ "schedule": "2,3 10 * * *" }), more);
    for (name, spec) in [
        ("history", at_two(json!({ "successfulJobsHistoryLimit": 1 }))),
        ("fails", json!({ "schedule": "2 10 * * *" })),
        ("forbid", at_two(json!({ "concurrencyPolicy": "Forbid" }))),
        ("replace", at_two(json!({ "concurrencyPolicy": "Replace" }))),
        ("suspended", json!({ "suspend": true })),
        ("taken", json!({ "schedule": "2 10 * * *" })),
        ("invalid", json!({ "schedule": "2 10 * * *" })),
        ("refused", json!({ "schedule": "4 10 * * *" })),
        ("panics", json!({ "schedule": "5 10 * * *" })),
    ] {
        world.create_cron_job(name, spec).await;
    }
    world.smuggle("cronjobs.batch", "invalid", json!({ "spec": { "schedule": "often" } })).await;
    let taken = i64::from(29_540_760) + 2;
    world.write("POST", JOBS, &job(&format!("taken-{taken}"), &Value::Null)).await;
    let orphan = world.create_cron_job("orphan", json!({ "schedule": "0 9 * * *" })).await;
    let mut job =
        job("orphan-29540700", &json!([controlled_by("orphan", orphan["metadata"]["uid"].as_str().unwrap())]));
    job["metadata"]["annotations"] =
        json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T09:00:00Z" });
    world.write("POST", JOBS, &job).await;
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:03:30Z").await;
    world.wire.judge(|ask| if ask.is(Verb::Create, "jobs") { Fate::Refused(403, "Forbidden") } else { Fate::Pass });
    world.pass_until("2026-03-02T10:04:00.001Z").await;
    world.write("DELETE", &format!("{CRON_JOBS}/refused"), &Value::Null).await;
    world.wire.judge(|ask| if ask.is(Verb::Create, "jobs") { Fate::Panic } else { Fate::Pass });
    world.pass_until("2026-03-02T10:05:00.001Z").await;
    world.wire.calm();
    stop.cancel();
    world.pass(seconds(1)).await;
    drop(world);

    // The next leader finds the overdue slots.
    let world = World::new("2026-03-02T10:01:30Z").await;
    world.create_cron_job("late", json!({})).await;
    world.create_cron_job("too-late", json!({ "schedule": "2 10 * * *", "startingDeadlineSeconds": 60 })).await;
    world.pass_until("2026-03-02T10:04:30Z").await;
    let stop = world.work(1);
    world.pass(seconds(1)).await;
    stop.cancel();
    world.pass(seconds(1)).await;

    let lines = told(&page);
    for line in lines.iter().filter(|line| !line.contains(" cronjob controller\"")) {
        assert!(line.contains("\"cronjob\":\"default/"), "without its key: {line}");
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn lines_of_one_run_are_those_of_the_page() {
    let page = Page::default();
    let world = World::with_jobs_that_end("2026-03-02T10:00:30Z", |_| None).await;
    world.create_cron_job("hello", json!({})).await;
    let stop = world.work(1);
    world.pass_until("2026-03-02T10:00:59Z").await;
    let guard = tracing::subscriber::set_default(subscriber(2, &page));
    world.pass_until("2026-03-02T10:01:01Z").await;
    drop(guard);
    stop.cancel();
    let lines = told(&page).join("\n");
    let documented = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/observability.md");
    assert!(std::fs::read_to_string(documented).unwrap().contains(&lines), "{documented} should have:\n{lines}");
}
