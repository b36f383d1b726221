//! Scenarios about slots in the past: a backfill or a controller that is killed between two of them, edits and resumes that
//! start none, and what the in-tree controller would start.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{Days, TimeDelta, Utc};
use cronjob_controller::api::policy::{
    AFTER_CHANGE, BACKFILL, BACKLOG, COUNTED_FROM, EXCLUDE, MAX_CONCURRENT, NOT_AFTER,
};
use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};
use testkit::driver::{
    CRON_JOBS, JOBS, Namespace, SOON, cron_job, eventually, finished, hourly_at, job_name, minutes_ago, request,
    rfc3339,
};
use testkit::fixture::account::account_kubeconfig;
use testkit::world::World;

use super::annotations::{EVERY_MINUTE, QUIET, annotated, create_since};
use super::takeover::{seen_in, start_in_tree};

/// The number of slots.
const SLOTS: i64 = 500;
/// How many Jobs the killed processes each start.
const PART: usize = 100;

fn command(kubeconfig: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
    command.args(args).arg("--kubeconfig").arg(kubeconfig);
    command
}

/// Completes the Jobs of a namespace until the flag is set.
async fn complete_all(client: kube::Client, ns: Namespace, over: Arc<AtomicBool>) {
    while !over.load(Ordering::Relaxed) {
        let jobs = ns.list(JOBS).await;
        let unfinished = jobs.iter().filter(|job| job["status"]["conditions"].is_null());
        join_all(unfinished.map(|job| {
            let path = format!("{}/status", ns.path(JOBS, job["metadata"]["name"].as_str().unwrap()));
            let status = json!({"status": finished(&["SuccessCriteriaMet", "Complete"], Utc::now())});
            let client = client.clone();
            // It may be deleted by now.
            async move { drop(request(&client, Method::PATCH, &path, Some(&status)).await) }
        }))
        .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Runs a backfill, and kills it when it has started `until` Jobs. Returns whether it ended by itself, and well.
fn backfill(kubeconfig: &Path, from: &str, to: &str, until: usize) -> bool {
    let args = ["backfill", "past", "-n", "backfill", "--from", from, "--to", to, "--max-active", "20", "-o", "json"];
    let mut child = command(kubeconfig, &args).stdout(Stdio::piped()).spawn().unwrap();
    let mut started = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        started += usize::from(line["type"] == "started");
        if started == until {
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap().success()
}

/// The kubeconfig of an account that has the rights in docs/backfill.md, and no others. `delete` is for `--again failed` alone.
async fn account_of_the_page(world: &World, ns: &Namespace) -> PathBuf {
    let page = include_str!("../../../docs/backfill.md");
    let rules: Vec<Value> = [("cronjobs", "| `cronjobs` |"), ("jobs", "| `jobs` |")]
        .into_iter()
        .map(|(resource, start)| {
            let verbs = page.lines().find_map(|line| line.strip_prefix(start)).unwrap().split(';').next().unwrap();
            let verbs: Vec<&str> = verbs.split('`').skip(1).step_by(2).collect();
            json!({"apiGroups": ["batch"], "resources": [resource], "verbs": verbs})
        })
        .collect();
    let name = "operator";
    let account = json!({"kind": "ServiceAccount", "name": name, "namespace": ns.name});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", ns.name);
    let core = format!("/api/v1/namespaces/{}", ns.name);
    for (path, object) in [
        (format!("{core}/serviceaccounts"), json!({"metadata": {"name": name}})),
        (format!("{rbac}/roles"), json!({"metadata": {"name": name}, "rules": rules})),
        (format!("{rbac}/rolebindings"), json!({"metadata": {"name": name}, "roleRef": role, "subjects": [account]})),
    ] {
        request(&world.plane.admin(), Method::POST, &path, Some(&object)).await.unwrap();
    }
    account_kubeconfig(&world.plane, &ns.name, name, "backfill-operator").await.unwrap()
}

pub async fn killed_backfill(world: Arc<World>) -> String {
    let ns = world.namespace("backfill").await;
    let kubeconfig = account_of_the_page(&world, &ns).await;
    let limits = json!({"concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1});
    ns.create(CRON_JOBS, &cron_job("past", "* * * * *", &limits)).await;
    let over = Arc::new(AtomicBool::new(false));
    let finisher = tokio::spawn(complete_all(world.plane.admin(), ns.clone(), Arc::clone(&over)));
    let last = minutes_ago(20);
    let first = last - TimeDelta::minutes(SLOTS - 1);
    let slots: BTreeSet<String> =
        (0..SLOTS).map(|minute| job_name("past", first + TimeDelta::minutes(minute))).collect();
    // The API server has to see the binding first.
    eventually("the rights to be granted", SOON, || async {
        let span = ["--from", &rfc3339(first), "--to", &rfc3339(last), "--dry-run"];
        let output = command(&kubeconfig, &[&["backfill", "past", "-n", "backfill"][..], &span].concat()).output();
        output.unwrap().status.success().then_some(())
    })
    .await;
    for until in [PART, PART, PART, usize::MAX] {
        let (kubeconfig, from, to) = (kubeconfig.clone(), rfc3339(first), rfc3339(last));
        let ended = tokio::task::spawn_blocking(move || backfill(&kubeconfig, &from, &to, until)).await.unwrap();
        assert_eq!(ended, until == usize::MAX);
        let object = ns.get(CRON_JOBS, "past").await.unwrap();
        let active = object["status"]["active"].as_array().cloned().unwrap_or_default();
        assert!(!active.iter().any(|job| slots.contains(job["name"].as_str().unwrap())), "{active:?}");
        let record = object["metadata"]["annotations"][BACKFILL].as_str().unwrap();
        assert_eq!(record.contains("\"current\""), !ended, "{record}");
    }
    assert!(seen_in(&world, &ns).is_superset(&slots), "a slot is missing");
    let twice = world.sightings.created_twice();
    assert!(twice.is_empty(), "created twice: {twice:?}");
    eventually("the end of the history", SOON * 2, || async { (ns.list(JOBS).await.len() <= 2).then_some(()) }).await;
    over.store(true, Ordering::Relaxed);
    finisher.await.unwrap();
    format!("{SLOTS} slots once each, with three kills")
}

pub fn migrate_check(world: &World, namespace: &str) -> (Option<i32>, Value) {
    let args = ["migrate", "check", "-n", namespace, "-o", "json"];
    let output = command(&world.plane.admin_kubeconfig(), &args).output().unwrap();
    let answer = serde_json::from_slice(&output.stdout);
    (output.status.code(), answer.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

/// The codes that the answer names, without those about the installation.
pub fn codes(answer: &Value) -> BTreeSet<String> {
    let codes = answer["findings"].as_array().unwrap().iter().map(|found| found["code"].as_str().unwrap().to_owned());
    codes.filter(|code| !["missing-right", "flow-schema", "in-tree-may-be-on"].contains(&code.as_str())).collect()
}

/// The Jobs that the in-tree controller would start at once.
fn old_jobs(answer: &Value) -> Vec<String> {
    let findings = answer["findings"].as_array().unwrap().iter().filter(|found| found["code"] == "old-slot");
    findings.map(|found| found["job"].as_str().unwrap().to_owned()).collect()
}

/// What `migrate check` names is what the in-tree controller starts. It sees that controller, and a second one, by what they
/// wrote.
pub async fn handover(world: Arc<World>) -> String {
    let ns = world.namespace("way-back").await;
    let (recent, hours_ago) = (minutes_ago(10), minutes_ago(150));
    let hourly = hourly_at(recent);
    let dates = [0, 1].map(|days| (Utc::now() - Days::new(days)).format("%Y-%m-%d").to_string()).join(",");
    let create = async |name: &str, spec: Value, excluded: &str| {
        let mut object = cron_job(name, &hourly, &spec);
        object["metadata"]["annotations"] = json!({EXCLUDE: excluded});
        ns.create_overdue(&object, hours_ago).await;
    };
    create("covered", json!({"startingDeadlineSeconds": 60}), &dates).await;
    create("suspended", json!({"suspend": true}), &dates).await;
    let (_, answer) = migrate_check(&world, "way-back");
    assert_eq!((&answer["checked"], old_jobs(&answer)), (&json!(2), vec![]), "{answer}");
    assert_eq!(codes(&answer), ["schedule-differs".to_owned()].into(), "{answer}");
    create("excluded", json!({}), &dates).await;
    create("decided", json!({}), "1999-01-01").await;
    let uid = ns.get(CRON_JOBS, "decided").await.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let record = format!("{} v1:{uid}:0123456789abcdef", rfc3339(Utc::now()));
    ns.patch(CRON_JOBS, "decided", &json!({"metadata": {"annotations": {COUNTED_FROM: record}}})).await;
    let (code, answer) = migrate_check(&world, "way-back");
    let named = old_jobs(&answer);
    assert_eq!((code, named.len()), (Some(1), 2), "{answer}");
    let in_tree = start_in_tree(&world, "in-tree-way-back").await;
    ns.jobs_are(&named).await;
    for name in ["excluded", "decided"] {
        ns.status(name, "the slot", |status| status["lastScheduleTime"] == rfc3339(recent)).await;
    }
    let (_, answer) = migrate_check(&world, "way-back");
    assert_eq!(old_jobs(&answer), Vec::<String>::new(), "what has started is not old any more");
    let is_on = answer["findings"].as_array().unwrap().iter().find(|found| found["code"] == "in-tree-is-on");
    assert_eq!(is_on.unwrap()["object"]["namespace"], "way-back", "{answer}");
    assert!(!codes(&answer).contains("two-controllers"), "{answer}");
    in_tree.kill();
    format!("of four CronJobs, it started the two that were named: {named:?}")
}

/// With `after-change: wait`, neither an edit nor a resume after two hours starts an old slot.
pub async fn after_change(world: Arc<World>) -> String {
    let ns = world.namespace("after-change").await;
    let (recent, hours_ago) = (minutes_ago(10), minutes_ago(150));
    let (hourly, other) = (hourly_at(recent), hourly_at(minutes_ago(5)));
    for (name, value) in [("edited", "wait"), ("resumed", "wait"), ("fires", "fire")] {
        let object = annotated(name, &hourly, &json!({"suspend": true}), &[(AFTER_CHANGE, value)]);
        ns.create(CRON_JOBS, &object).await;
        ns.patch_status(CRON_JOBS, name, &json!({"lastScheduleTime": rfc3339(hours_ago)})).await;
    }
    for name in ["edited", "resumed"] {
        eventually(format!("the record of {name}"), SOON, || async {
            let record = ns.get(CRON_JOBS, name).await?["metadata"]["annotations"][COUNTED_FROM].clone();
            (!record.is_null()).then_some(())
        })
        .await;
    }
    ns.patch(CRON_JOBS, "edited", &json!({"spec": {"suspend": false, "schedule": other}})).await;
    ns.patch(CRON_JOBS, "resumed", &json!({"spec": {"suspend": false}})).await;
    ns.patch(CRON_JOBS, "fires", &json!({"spec": {"suspend": false}})).await;
    let fired = [job_name("fires", recent)];
    ns.jobs_are(&fired).await;
    tokio::time::sleep(QUIET).await;
    ns.jobs_are(&fired).await;
    // A second edit, of a CronJob that runs.
    ns.patch(CRON_JOBS, "edited", &json!({"spec": {"schedule": hourly}})).await;
    tokio::time::sleep(QUIET).await;
    ns.jobs_are(&fired).await;
    String::new()
}

/// Waiting slots start once each and oldest first, though the controller is killed between two of them.
pub async fn killed_backlog(world: Arc<World>) -> String {
    const KILL_AFTER: usize = 5;
    // Slow enough for a kill to hit the middle.
    const THROTTLE: [&str; 2] = ["--kube-api-qps=4", "--kube-api-burst=4"];
    let ns = world.namespace("backlog").await;
    let last = minutes_ago(2);
    let slots: Vec<_> = (0..20).rev().map(|minute| last - TimeDelta::minutes(minute)).collect();
    let expected: Vec<String> = slots.iter().map(|slot| job_name("waits", *slot)).collect();
    let policies = [(MAX_CONCURRENT, "100"), (BACKLOG, "20"), (NOT_AFTER, &rfc3339(last))];
    let seen = || -> Vec<String> {
        let all = world.sightings.all();
        all.into_iter().filter(|job| job.namespace == ns.name).map(|job| job.name).collect()
    };
    let first = world.start_controller("backlog-killed", &THROTTLE).await.unwrap();
    create_since(&ns, &annotated("waits", EVERY_MINUTE, &json!({}), &policies), slots[0] - TimeDelta::minutes(1)).await;
    let started = || async { Some(seen().len()).filter(|count| *count >= KILL_AFTER) };
    eventually("some Jobs", Duration::from_secs(60), started).await;
    first.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = seen().len();
    assert!(before < expected.len(), "all had started before the kill");
    let second = world.start_controller("backlog-restarted", &[]).await.unwrap();
    ns.jobs_are(&expected).await;
    assert_eq!(seen(), expected, "oldest first, and once each");
    second.kill();
    format!("killed at {before} of {}", expected.len())
}
