//! Whole clusters with paused time.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Instant as WallInstant;

use apimachinery::clock::{Clock as _, TestClock};
use apiserver::ApiServer;
use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::kubelet::Settings;
use super::requests::{JSON, MERGE_PATCH, Refusal, send};
use super::*;
use crate::api::ControllerKind;

/// 2027-01-15T08:00:00Z, a Friday.
fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

struct World {
    server: ApiServer,
    cluster: Cluster,
    client: Client,
    clock: Arc<TestClock>,
}

impl World {
    fn new(settings: Settings) -> Self {
        let clock = TestClock::new(start() - TimeDelta::seconds(30));
        let shared: SharedClock = clock.clone();
        let server = cluster::api_server(Arc::clone(&shared), settings.seed);
        let controllers = vec![ControllerKind::CronJob];
        let config = cluster::Config { clock: shared, seed: settings.seed, settings, controllers };
        let cluster = Cluster::start(&server, &config, Vec::new());
        Self { client: server.client(), server, cluster, clock }
    }

    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn request(&self, method: Method, path: &str, body: &Value) -> Result<Value, Refusal> {
        let content_type = if method == Method::PATCH { MERGE_PATCH } else { JSON };
        send(&self.client, method, path, content_type, body).await
    }

    async fn create(&self, object: &Value) -> Value {
        let (api, plural) = match object["kind"].as_str().unwrap() {
            "CronJob" => ("/apis/batch/v1", "cronjobs"),
            "Job" => ("/apis/batch/v1", "jobs"),
            _ => ("/api/v1", "pods"),
        };
        self.request(Method::POST, &format!("{api}/namespaces/default/{plural}"), object).await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        self.request(Method::GET, path, &Value::Null).await.unwrap()
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        self.get(path).await["items"].as_array().unwrap().clone()
    }

    /// Reason and count of the Events about objects of that kind, by name.
    async fn events_of(&self, kind: &str) -> BTreeMap<String, (String, u64)> {
        let events =
            self.list("/api/v1/events").await.into_iter().filter(|event| event["involvedObject"]["kind"] == kind);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        { events }
            .map(|event| (text(&event["metadata"]["name"]), (text(&event["reason"]), event["count"].as_u64().unwrap())))
            .collect()
    }

    /// The number of Events by reason, for objects of that kind.
    async fn events(&self, kind: &str) -> BTreeMap<String, u64> {
        by_reason(self.events_of(kind).await)
    }
}

fn by_reason(events: BTreeMap<String, (String, u64)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (reason, count) in events.into_values() {
        *sums.entry(reason).or_default() += count;
    }
    sums
}

fn settings(seconds: u64) -> Settings {
    Settings { duration: Duration::from_secs(seconds), failure_rate: 0.0, seed: 7 }
}

fn pod_template(restart_policy: &str) -> Value {
    json!({ "spec": { "restartPolicy": restart_policy, "containers": [{ "name": "c", "image": "busybox" }] } })
}

fn cron_job(name: &str, schedule: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": name },
        "spec": { "schedule": schedule, "timeZone": "UTC", "jobTemplate": { "spec": { "template": pod_template("Never") } } },
    })
}

fn job(name: &str, spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
        "spec": { "template": pod_template("Never") },
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    job
}

fn conditions(job: &Value) -> Vec<&str> {
    let conditions = job["status"]["conditions"].as_array();
    conditions.into_iter().flatten().filter(|c| c["status"] == "True").map(|c| c["type"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn fired_cron_job_gets_a_job_a_pod_a_status_and_events() {
    let world = World::new(settings(3));
    world.create(&cron_job("hello", "* * * * *")).await;
    world.pass(32).await;
    let name = format!("hello-{}", start().timestamp() / 60);
    let path = format!("/apis/batch/v1/namespaces/default/jobs/{name}");
    let running = world.get(&path).await;
    assert_eq!(running["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z");
    assert_eq!((&running["status"]["active"], &running["status"]["ready"]), (&json!(1), &json!(1)));
    let pods = world.list("/api/v1/namespaces/default/pods").await;
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0]["status"]["phase"], "Running");
    assert_eq!(pods[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"], json!(name));
    world.pass(5).await;
    let done = world.get(&path).await;
    assert_eq!(conditions(&done), ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(done["status"]["succeeded"], 1);
    assert_eq!(done["status"]["completionTime"], "2027-01-15T08:00:03Z");
    let cron_job = world.get("/apis/batch/v1/namespaces/default/cronjobs/hello").await;
    assert_eq!(cron_job["status"]["lastSuccessfulTime"], "2027-01-15T08:00:03Z");
    world.pass(20).await;
    let of_jobs = world.events("Job").await;
    assert_eq!(of_jobs, [("Completed".to_owned(), 1), ("SuccessfulCreate".to_owned(), 1)].into());
    let of_cron_jobs = world.events("CronJob").await;
    assert_eq!(of_cron_jobs, [("SawCompletedJob".to_owned(), 1), ("SuccessfulCreate".to_owned(), 1)].into());
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn jobs_end_as_their_spec_says() {
    let world = World::new(settings(5));
    let fails = json!({ "cronjob-controller.dev/outcome": "fail" });
    let rows = [
        (
            "parallel",
            json!({ "completions": 5, "parallelism": 2 }),
            json!({}),
            vec!["SuccessCriteriaMet", "Complete"],
            5,
            0,
        ),
        (
            "indexed",
            json!({ "completions": 3, "completionMode": "Indexed" }),
            json!({}),
            vec!["SuccessCriteriaMet", "Complete"],
            3,
            0,
        ),
        ("fails", json!({ "backoffLimit": 1 }), fails.clone(), vec!["FailureTarget", "Failed"], 0, 2),
        ("late", json!({ "activeDeadlineSeconds": 2 }), json!({}), vec!["FailureTarget", "Failed"], 0, 1),
        ("paused", json!({ "suspend": true }), json!({}), vec!["Suspended"], 0, 0),
        (
            "restarts",
            json!({ "backoffLimit": 2, "template": pod_template("OnFailure") }),
            fails,
            vec!["FailureTarget", "Failed"],
            0,
            1,
        ),
        ("slow", json!({}), json!({ "cronjob-controller.dev/duration": "1h" }), vec![], 0, 0),
    ];
    for (name, spec, annotations, ..) in &rows {
        let mut job = job(name, spec);
        job["metadata"]["annotations"] = annotations.clone();
        world.create(&job).await;
    }
    world.create(&job("brief", &json!({ "ttlSecondsAfterFinished": 10 }))).await;
    world.pass(7).await;
    let brief = world.get("/apis/batch/v1/namespaces/default/jobs/brief").await;
    assert_eq!(conditions(&brief), ["SuccessCriteriaMet", "Complete"]);
    world.pass(60).await;
    for (name, _, _, want, succeeded, failed) in &rows {
        let job = world.get(&format!("/apis/batch/v1/namespaces/default/jobs/{name}")).await;
        assert_eq!(conditions(&job), *want, "{name}: {}", job["status"]);
        let count = |field: &str| job["status"][field].as_u64().unwrap_or(0);
        assert_eq!((count("succeeded"), count("failed")), (*succeeded, *failed), "{name}: {}", job["status"]);
    }
    let gone = world.request(Method::GET, "/apis/batch/v1/namespaces/default/jobs/brief", &Value::Null).await;
    assert_eq!(gone.unwrap_err().code, 404);
    let pods = world.list("/api/v1/namespaces/default/pods?labelSelector=job-name%3Dbrief").await;
    assert!(pods.is_empty(), "a Job's Pods go with it");
    let resume = json!({ "spec": { "suspend": false } });
    world.request(Method::PATCH, "/apis/batch/v1/namespaces/default/jobs/paused", &resume).await.unwrap();
    world.pass(10).await;
    let resumed = world.get("/apis/batch/v1/namespaces/default/jobs/paused").await;
    assert_eq!(conditions(&resumed), ["SuccessCriteriaMet", "Complete"]);
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_log_can_be_read_and_a_deleted_pod_is_replaced() {
    let world = World::new(settings(600));
    world.create(&job("j", &json!({}))).await;
    world.pass(2).await;
    let pods = world.list("/api/v1/namespaces/default/pods").await;
    let name = pods[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/namespaces/default/pods/{name}");
    let request = http::Request::get(format!("{path}/log?container=c")).body(axum::body::Bytes::new()).unwrap();
    let response = world.server.handle(request).await;
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("This container is simulated"), "{body:?}");
    world.request(Method::DELETE, &path, &Value::Null).await.unwrap();
    world.pass(2).await;
    let pods = world.list("/api/v1/namespaces/default/pods").await;
    assert_eq!(pods.len(), 1);
    assert_ne!(pods[0]["metadata"]["name"], json!(name));
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cluster_continues_from_its_snapshot() {
    let world = World::new(settings(40));
    world.create(&cron_job("hello", "* * * * *")).await;
    world.pass(40).await;
    let snapshot = world.server.snapshot();
    let at = world.clock.now();
    world.cluster.stop().await.unwrap();
    let clock = TestClock::new(at);
    let shared: SharedClock = clock.clone();
    let server = cluster::api_server(Arc::clone(&shared), 8);
    server.restore(&snapshot).unwrap();
    let config =
        cluster::Config { clock: shared, seed: 8, settings: settings(40), controllers: vec![ControllerKind::CronJob] };
    let cluster = Cluster::start(&server, &config, Vec::new());
    let world = World { client: server.client(), server, cluster, clock };
    world.pass(60).await;
    let jobs = world.list("/apis/batch/v1/namespaces/default/jobs").await;
    let finished: Vec<bool> = jobs.iter().map(|job| conditions(job).contains(&"Complete")).collect();
    assert_eq!(finished, [true, false], "the old Job ended and the next slot has fired");
    world.cluster.stop().await.unwrap();
}

/// 200 CronJobs: one fires hourly, the others once, spread over the day.
#[tokio::test(start_paused = true)]
async fn a_day_of_two_hundred_cron_jobs_passes_in_seconds() {
    let wall = WallInstant::now();
    let world = World::new(settings(20));
    world.create(&cron_job("hourly", "0 * * * *")).await;
    for number in 1..200 {
        let schedule = format!("{} {} * * *", number * 7 % 60, number % 24);
        world.create(&cron_job(&format!("daily-{number}"), &schedule)).await;
    }
    // Each Event lives for an hour.
    let mut seen = BTreeMap::new();
    for _ in 0..48 {
        world.pass(1800).await;
        seen.extend(world.events_of("CronJob").await);
    }
    let events = by_reason(seen);
    let want = 199 + 24;
    println!("{want} fires of 200 CronJobs in a day took {:?}", wall.elapsed());
    assert_eq!(events.get("SuccessfulCreate"), Some(&want), "{events:?}");
    assert_eq!(events.get("SawCompletedJob"), Some(&want), "{events:?}");
    assert_eq!(events.get("UnexpectedJob"), None);
    assert_eq!(events.get("MissSchedule"), None);
    let jobs = world.cluster.jobs.list();
    assert!(jobs.iter().all(|job| job.status.finished().is_some()), "every Job has ended");
    assert_eq!(jobs.len(), 199 + 3, "the history limit holds");
    assert_eq!(world.cluster.pods.len(), jobs.len(), "Pods go with their Jobs");
    world.pass(3601).await;
    let of_others =
        |event: &Value| event["involvedObject"]["name"].as_str().is_some_and(|name| !name.starts_with("hourly"));
    let left = world.list("/api/v1/events").await.into_iter().filter(of_others).count();
    assert!(left < 60, "{left} Events of an hour ago are left");
    world.cluster.stop().await.unwrap();
}

/// CPU seconds and peak resident megabytes of this process.
fn usage() -> (f64, f64) {
    let field = |text: &str, number: usize| text.split_whitespace().nth(number).unwrap().parse::<f64>().unwrap();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks = field(after_name, 11) + field(after_name, 12);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    (ticks / f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).unwrap()), field(peak, 1) / 1024.0)
}

const MEASURED: &str = "CRONJOBS_MEASURED_DATA_DIR";

/// One half of the next test, in a process of its own.
#[tokio::test(start_paused = true)]
#[ignore = "a part of the next test"]
async fn hour_of_minutely_cron_jobs() {
    let Some(path) = std::env::var_os(MEASURED).map(std::path::PathBuf::from) else { return };
    let world = World::new(settings(3));
    let data_dir = (!path.as_os_str().is_empty()).then(|| DataDir::open(&path).unwrap());
    let saving =
        data_dir.as_ref().map_or_else(|| Saving::none(&world.server), |dir| dir.record(&world.server).unwrap());
    for number in 0..200 {
        world.create(&cron_job(&format!("c{number}"), "* * * * *")).await;
    }
    for minutes in [20, 40, 60] {
        tokio::select! {
            () = world.pass(1200) => {}
            () = saving.run() => unreachable!("it runs for ever"),
        }
        let (cpu, peak) = usage();
        let events = world.list("/api/v1/events").await.len();
        let length = data_dir.as_ref().map_or(0, |dir| std::fs::metadata(dir.log_path()).unwrap().len() >> 20);
        println!(
            "after {minutes} min: {cpu:.1} s of CPU, {peak:.0} MB at most, {events} Events, a log of {length} MiB"
        );
    }
    let (cpu, peak) = usage();
    println!("usage {cpu} {peak}");
    world.cluster.stop().await.unwrap();
}

#[test]
#[ignore = "a measurement of minutes"]
fn data_dir_costs_less_than_a_fifth() {
    let directory = tempfile::tempdir().unwrap();
    let measure = |path: &std::path::Path| {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "dev::tests::hour_of_minutely_cron_jobs"])
            .env(MEASURED, path)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        println!("{}:\n{text}", if path.as_os_str().is_empty() { "without --data-dir" } else { "with --data-dir" });
        let usage = text.lines().find_map(|line| line.strip_prefix("usage ")).unwrap();
        let (cpu, peak) = usage.split_once(' ').unwrap();
        (cpu.parse::<f64>().unwrap(), peak.parse::<f64>().unwrap())
    };
    let (without, with) = (measure(std::path::Path::new("")), measure(directory.path()));
    let (cpu, memory) = (with.0 / without.0, with.1 / without.1);
    println!("CPU × {cpu:.2}, memory × {memory:.2}");
    assert!(cpu <= 1.2 && memory <= 1.2, "CPU × {cpu:.2}, memory × {memory:.2}");
}

#[test]
fn a_path_is_one_word_for_the_shell() {
    for (path, want) in [("/tmp/a-b_c.1", "/tmp/a-b_c.1"), ("/a b", "'/a b'"), ("/it's", r"'/it'\''s'"), ("", "''")] {
        assert_eq!(shell_word(path), want);
    }
}

/// Commands ask the leases which controller runs a CronJob.
#[tokio::test(start_paused = true)]
async fn lease_says_which_controllers_run_in_this_process() {
    let clock: SharedClock = TestClock::new(start());
    let server = cluster::api_server(Arc::clone(&clock), 1);
    let leases = || async {
        let path = "/apis/coordination.k8s.io/v1/leases";
        let list: Value = send(&server.client(), Method::GET, path, JSON, &Value::Null).await.unwrap();
        serde_json::from_value::<Vec<k8s_openapi::api::coordination::v1::Lease>>(list["items"].clone()).unwrap()
    };
    let rows: [(&str, &[ControllerKind]); 4] = [
        ("without a controller", &[]),
        ("with one", &[ControllerKind::CronJob]),
        ("on the state of an earlier one", &[ControllerKind::CronJob]),
        ("and without one again", &[]),
    ];
    for (sentence, running) in rows {
        lease::hold(&server, running, &clock).await.unwrap();
        let found: Vec<_> = leases().await.iter().filter_map(crate::leader_election::Coverage::of).collect();
        assert_eq!(found.len(), running.len(), "{sentence}");
        for coverage in found {
            assert!(coverage.includes(ControllerKind::CronJob.name, "shop"), "{sentence}");
        }
    }
}
