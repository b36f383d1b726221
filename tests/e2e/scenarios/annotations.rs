//! Scenarios about the annotations that decide when a CronJob runs. A slot of the past is made due by an older record of
//! decided slots, as if the controller had been down since.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Days, TimeDelta, Utc};
use cronjob_controller::api::ObjectName;
use cronjob_controller::api::policy::{
    AFTER_CHANGE, ANNOTATIONS, BACKLOG, COUNTED_FROM, DST, EXCLUDE, LIMITS, MAX_CONCURRENT, NOT_AFTER, NOT_BEFORE,
    PAUSE_AFTER_FAILURES, PREFIX, REASON, REPLACE_WAITS, SCHEDULE, SLOT_IN_POD, SPREAD, STUCK_AFTER, Spread, TIMING,
    WrittenBy,
};
use serde_json::{Value, json};
use testkit::driver::{
    CRON_JOBS, JOBS, Namespace, SOON, cron_job, eventually, hourly_at, job_name, minutes_ago, rfc3339,
};
use testkit::fixture::account::kubectl_apply;
use testkit::world::World;

pub const EVERY_MINUTE: &str = "* * * * *";

/// Enough time for a wrong action of a controller.
pub const QUIET: Duration = Duration::from_secs(3);

pub fn annotated(name: &str, schedule: &str, spec: &Value, annotations: &[(&str, &str)]) -> Value {
    let mut object = cron_job(name, schedule, spec);
    for (annotation, value) in annotations {
        object["metadata"]["annotations"][annotation] = json!(value);
    }
    object
}

/// Creates a CronJob that last ran at `since`, and whose slots after that are not decided.
pub async fn create_since(ns: &Namespace, object: &Value, since: DateTime<Utc>) {
    let mut object = object.clone();
    object["spec"]["suspend"] = json!(true);
    ns.create(CRON_JOBS, &object).await;
    let name = object["metadata"]["name"].as_str().unwrap();
    let record = eventually(format!("the record of {name}"), SOON, || async {
        Some(ns.get(CRON_JOBS, name).await?["metadata"]["annotations"][COUNTED_FROM].as_str()?.to_owned())
    })
    .await;
    ns.patch_status(CRON_JOBS, name, &json!({"lastScheduleTime": rfc3339(since)})).await;
    let (_, fingerprint) = record.split_once(' ').unwrap();
    let record = format!("{} {fingerprint}", rfc3339(since));
    let patch = json!({"metadata": {"annotations": {COUNTED_FROM: record}}, "spec": {"suspend": false}});
    ns.patch(CRON_JOBS, name, &patch).await;
}

/// Each policy decides as documented.
pub async fn timing(world: Arc<World>) -> String {
    let ns = world.namespace("timing").await;
    let recent = minutes_ago(10);
    let (hourly, hours_ago) = (hourly_at(recent), minutes_ago(150));
    let rfc = |minutes| rfc3339(minutes_ago(minutes));

    // Of the hourly slots, today's and yesterday's are excluded.
    let dates = [0, 1].map(|days| (Utc::now() - Days::new(days)).format("%Y-%m-%d").to_string());
    let object = annotated("excluded", &hourly, &json!({}), &[(EXCLUDE, &dates.join(","))]);
    create_since(&ns, &object, hours_ago).await;
    let object = annotated("ended", EVERY_MINUTE, &json!({}), &[(NOT_AFTER, &rfc(70))]);
    create_since(&ns, &object, hours_ago).await;
    let object = annotated("begins", EVERY_MINUTE, &json!({}), &[(NOT_BEFORE, &rfc(-60))]);
    create_since(&ns, &object, hours_ago).await;
    let lines = format!("0 0 29 2 *; @at {}", minutes_ago(20).format("%Y-%m-%dT%H:%MZ"));
    let object = annotated("lines", "0 0 1 1 *", &json!({}), &[(SCHEDULE, &lines)]);
    create_since(&ns, &object, hours_ago).await;
    // Berlin has no 02:30 on that day.
    let once = [(SCHEDULE, "@at 2026-03-29T02:30"), (DST, "once")];
    let object = annotated("once", "0 0 1 1 *", &json!({"timeZone": "Europe/Berlin"}), &once);
    create_since(&ns, &object, "2026-03-28T00:00:00Z".parse().unwrap()).await;
    // The offset of a window of a second is zero. Within a day, that of `later` has not passed since its slot.
    create_since(&ns, &annotated("soon", &hourly, &json!({}), &[(SPREAD, "1s")]), hours_ago).await;
    let offset = Spread::new(86_400_000_000_000).unwrap().offset("", &ObjectName::new("timing", "later"));
    assert!(offset > TimeDelta::hours(3), "{offset}");
    create_since(&ns, &annotated("later", &hourly, &json!({}), &[(SPREAD, "24h")]), hours_ago).await;

    let started = [
        ("ended", minutes_ago(70)),
        ("lines", minutes_ago(20)),
        ("once", "2026-03-29T01:00:00Z".parse().unwrap()),
        ("soon", recent),
    ];
    for (name, slot) in started {
        eventually(format!("the Job of {name}"), SOON, || async {
            ns.job_names().await.into_iter().find(|job| job.starts_with(&format!("{name}-")))
        })
        .await;
        // A minute may have passed since the object was made.
        let wanted = [slot, slot - TimeDelta::minutes(1)].map(|slot| json!(rfc3339(slot)));
        ns.status(name, &format!("one of {wanted:?}"), |status| wanted.contains(&status["lastScheduleTime"])).await;
    }
    tokio::time::sleep(QUIET).await;
    let others: Vec<String> = ns.job_names().await;
    let others = others.iter().filter(|job| ["excluded", "begins", "later"].iter().any(|name| job.starts_with(name)));
    assert_eq!(others.count(), 0, "no slot of these is due");
    let explained = explain(&world, "timing", "later");
    assert_eq!(explained["state"], "waiting", "{explained}");

    // A change of the annotation alone starts nothing older.
    ns.patch(CRON_JOBS, "excluded", &json!({"metadata": {"annotations": {EXCLUDE: null}}})).await;
    ns.patch(CRON_JOBS, "later", &json!({"metadata": {"annotations": {SPREAD: "1s"}}})).await;
    tokio::time::sleep(QUIET).await;
    let jobs = ns.job_names().await;
    let old = [job_name("excluded", recent), job_name("later", recent)];
    assert!(!jobs.iter().any(|job| old.contains(job)), "{jobs:?}");
    String::new()
}

/// Makes `object` start a Job that a finalizer holds, for the slot ten minutes ago, and then makes the slot three minutes ago
/// due by an edit. Returns the names of both Jobs.
async fn held(ns: &Namespace, object: &Value) -> [String; 2] {
    let name = object["metadata"]["name"].as_str().unwrap();
    let (first, second) = (minutes_ago(10), minutes_ago(3));
    let mut object = object.clone();
    object["spec"]["schedule"] = json!(hourly_at(first));
    ns.create_overdue(&object, first - TimeDelta::hours(1)).await;
    let names = [job_name(name, first), job_name(name, second)];
    ns.job(name, first).await;
    ns.patch(JOBS, &names[0], &json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    ns.patch_status(JOBS, &names[0], &json!({"startTime": rfc3339(first)})).await;
    ns.status(name, "the first slot", |status| status["lastScheduleTime"] == rfc3339(first)).await;
    ns.patch(CRON_JOBS, name, &json!({"spec": {"suspend": true, "schedule": hourly_at(second)}})).await;
    ns.patch(CRON_JOBS, name, &json!({"spec": {"suspend": false}})).await;
    names
}

async fn is_terminating(ns: &Namespace, job: &str) {
    let look = || async { ns.get(JOBS, job).await?["metadata"]["deletionTimestamp"].as_str().map(drop) };
    eventually(format!("{job} to terminate"), SOON, look).await;
}

/// A Job that does not go blocks Forbid until the policy says otherwise; under Replace the next one waits for it.
pub async fn terminating(world: Arc<World>) -> String {
    let ns = world.namespace("terminating").await;
    let spec = json!({"concurrencyPolicy": "Forbid"});
    let [first, second] = held(&ns, &annotated("stuck", EVERY_MINUTE, &spec, &[(STUCK_AFTER, "5m")])).await;
    ns.delete(JOBS, &first).await;
    let message = ns.event("stuck", "Warning", "RunStuck").await;
    assert!(message.contains(&first), "{message}");
    tokio::time::sleep(QUIET).await;
    ns.jobs_are(std::slice::from_ref(&first)).await;
    ns.patch(CRON_JOBS, "stuck", &json!({"metadata": {"annotations": {STUCK_AFTER: "5m, delete"}}})).await;
    ns.jobs_are(&[first.clone(), second.clone()]).await;
    for job in [&first, &second] {
        ns.patch(JOBS, job, &json!({"metadata": {"finalizers": null}})).await;
    }
    ns.delete(JOBS, &second).await;

    let spec = json!({"concurrencyPolicy": "Replace"});
    let [first, second] = held(&ns, &annotated("replaced", EVERY_MINUTE, &spec, &[(REPLACE_WAITS, "true")])).await;
    is_terminating(&ns, &first).await;
    tokio::time::sleep(QUIET).await;
    let jobs = ns.job_names().await;
    assert!(!jobs.contains(&second), "{jobs:?}");
    ns.patch(JOBS, &first, &json!({"metadata": {"finalizers": null}})).await;
    ns.job("replaced", minutes_of(&second)).await;
    String::new()
}

/// The slot in the name of a Job.
fn minutes_of(job: &str) -> DateTime<Utc> {
    let minutes: i64 = job.rsplit_once('-').unwrap().1.parse().unwrap();
    DateTime::from_timestamp(minutes * 60, 0).unwrap()
}

fn kubectl(kubeconfig: &Path, args: &[&str], manifest: &Value) -> Output {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), manifest.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    let mut command = Command::new("kubectl");
    command.arg(format!("--kubeconfig={}", kubeconfig.display())).args(args).args(["-f", path]);
    command.output().unwrap()
}

pub fn explain(world: &World, namespace: &str, name: &str) -> Value {
    let kubeconfig = world.plane.admin_kubeconfig();
    let output = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"))
        .args(["explain", name, "--namespace", namespace, "--output", "json", "--kubeconfig"])
        .arg(kubeconfig)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// With the policy objects of `manifests/policies`, kubectl's answer names annotation, value and what is allowed. Without
/// them, an Event and `explain` do.
pub async fn refused(world: Arc<World>) -> String {
    let kubeconfig = world.plane.admin_kubeconfig();
    let ns = world.namespace("refused").await;
    kubectl_apply(&kubeconfig, "manifests/policies", &[]).unwrap();
    let apply = |annotations: &[(&str, &str)]| {
        let object = annotated("asked", EVERY_MINUTE, &json!({"suspend": true}), annotations);
        let args = ["apply", "--namespace=refused", "--dry-run=server"];
        let output = kubectl(&kubeconfig, &args, &object);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    eventually("the policies to hold", SOON, || async { (!apply(&[(SPREAD, "soon")]).0).then_some(()) }).await;
    let by_users = ANNOTATIONS.iter().filter(|known| known.written_by == WrittenBy::User);
    // Any text is a reason.
    for known in by_users.clone().filter(|known| known.name != REASON) {
        let (is_taken, said) = apply(&[(known.name, "wrong!\nagain")]);
        let wanted = format!("{}: \"wrong!\\nagain\" is not allowed. Use {}", known.name, known.allowed);
        assert!(!is_taken && said.contains(&wanted), "{said}");
    }
    // kubectl adds it once more; a sample's policy, which other scenarios install, allows 16,384 characters in all.
    let long = "x".repeat(5_000);
    let (is_taken, said) = apply(&[(SPREAD, &long)]);
    assert!(!is_taken && said.contains("xx…\" is not allowed. Use a duration"), "{said}");
    let unknown = format!("{PREFIX}colour");
    let (is_taken, said) = eventually("the warning", SOON, || async {
        Some(apply(&[(&unknown, "red"), (SPREAD, "15m")])).filter(|(_, said)| said.contains("Warning"))
    })
    .await;
    assert!(is_taken && said.contains(&format!("knows no annotation {unknown}")), "{said}");
    let good = [
        (SPREAD, "1h30m"),
        (DST, "once"),
        (EXCLUDE, "Sat, sun,12-24/01-06,2027-05-01"),
        (NOT_BEFORE, "2026-01-01T00:00:00Z"),
        (NOT_AFTER, "2030-01-01T00:00:00.5+01:00"),
        (SCHEDULE, "0 9 L,15W * *\n0 9 * * FRI#3; @at 2027-03-01T09:00"),
        (MAX_CONCURRENT, "3"),
        (BACKLOG, "100"),
        (REPLACE_WAITS, "true"),
        (AFTER_CHANGE, "wait"),
        (STUCK_AFTER, "1h30m, delete"),
        (PAUSE_AFTER_FAILURES, "3"),
        (SLOT_IN_POD, "true"),
        (COUNTED_FROM, "2026-01-01T00:00:00Z v1:another:0123456789abcdef"),
    ];
    assert!(TIMING.iter().chain(&LIMITS).all(|name| good.iter().any(|(known, _)| known == name)));
    assert_eq!(apply(&good), (true, String::new()));

    // A CronJob that is wrong already can be edited elsewhere, and its status be written.
    let output = Command::new("kubectl")
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["delete", "-k", "manifests/policies"])
        .current_dir(testkit::repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wrong = annotated("wrong", EVERY_MINUTE, &json!({}), &[(SPREAD, "soon"), (&unknown, "red")]);
    eventually("the policies to be gone", SOON, || ns.try_create(CRON_JOBS, &wrong)).await;
    let message = ns.event("wrong", "Warning", "InvalidPolicy").await;
    assert!(message.contains("spread: \"soon\" is not allowed"), "{message}");
    assert!(message.ends_with("Use a duration from 1s to 24h, such as 15m"), "{message}");
    let message = ns.event("wrong", "Warning", "UnknownPolicy").await;
    assert!(message.ends_with(&unknown), "{message}");
    assert_eq!(explain(&world, "refused", "wrong")["state"], "badPolicy");
    String::new()
}

/// The sample gives the CronJobs of a namespace the spread in its label. Releases without MutatingAdmissionPolicies are
/// left out.
pub async fn spread_namespace(world: Arc<World>) -> String {
    if !world.plane.has_mutating_policies() {
        return format!("skipped: no MutatingAdmissionPolicies in 1.{}", world.plane.minor());
    }
    let kubeconfig = world.plane.admin_kubeconfig();
    let ns = world.namespace("spread-out").await;
    kubectl_apply(&kubeconfig, "manifests/samples/spread", &[]).unwrap();
    let labels = Command::new("kubectl")
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["label", "namespace", "spread-out", "cronjob-controller.dev/spread=10m"])
        .status()
        .unwrap();
    assert!(labels.success());
    let create = async |name: &str, annotations: &[(&str, &str)]| {
        let object = annotated(name, EVERY_MINUTE, &json!({"suspend": true}), annotations);
        ns.create(CRON_JOBS, &object).await["metadata"]["annotations"][SPREAD].clone()
    };
    let mut tries = 0..100;
    eventually("the policy to hold", SOON, || {
        let name = format!("plain-{}", tries.next().unwrap());
        let create = &create;
        async move { (create(&name, &[]).await == "10m").then_some(()) }
    })
    .await;
    assert_eq!(create("own", &[(SPREAD, "2m"), (DST, "once")]).await, "2m");
    assert_eq!(create("other", &[(DST, "once")]).await, "10m");
    String::new()
}

/// With `--publish`, kubectl shows when each CronJob runs next and last failed.
pub async fn published(world: Arc<World>) -> String {
    let controller = world.start_controller("publishes", &["--publish=next-run,last-failure"]).await.unwrap();
    let ns = world.namespace("published").await;
    let slot = minutes_ago(10);
    let next = slot + TimeDelta::hours(1);
    ns.create_overdue(&cron_job("nightly", &hourly_at(slot), &json!({})), slot - TimeDelta::hours(1)).await;
    let spread = [(SPREAD, "40m"), (NOT_BEFORE, &rfc3339(slot + TimeDelta::minutes(1)))];
    ns.create(CRON_JOBS, &annotated("spread", &hourly_at(slot), &json!({}), &spread)).await;
    ns.create(CRON_JOBS, &cron_job("off", &hourly_at(slot), &json!({"suspend": true}))).await;
    let offset = Spread::new(2_400_000_000_000).unwrap().offset("", &ObjectName::new("published", "spread"));
    let job = job_name("nightly", slot);
    ns.job("nightly", slot).await;
    ns.finish_job(&job, &["FailureTarget", "Failed"], Utc::now()).await;
    let job = ns.get(JOBS, &job).await.unwrap();
    let failed = job["status"]["conditions"][1]["lastTransitionTime"].as_str().unwrap();
    // The command of the page.
    let columns =
        include_str!("../../../docs/policies.md").lines().find_map(|line| line.split_once("custom-columns='"));
    let columns = format!("custom-columns={}", columns.unwrap().1.trim_end_matches('\''));
    let row = async |name: &str, next: &str, failed: &str| {
        eventually(format!("{next} and {failed} as the times of {name}"), SOON, || async {
            let output = Command::new("kubectl")
                .arg(format!("--kubeconfig={}", world.plane.admin_kubeconfig().display()))
                .args(["get", "cronjobs", "--namespace=published", "--no-headers", "--output", &columns])
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            rows.any(|row| row.starts_with(&["published", name, next, failed])).then_some(())
        })
        .await;
    };
    row("nightly", &rfc3339(next), failed).await;
    row("spread", &rfc3339(next + offset), "<none>").await;
    row("off", "<none>", "<none>").await;
    ns.patch(CRON_JOBS, "nightly", &json!({"spec": {"suspend": true}})).await;
    row("nightly", "<none>", failed).await;
    controller.kill();
    String::new()
}
